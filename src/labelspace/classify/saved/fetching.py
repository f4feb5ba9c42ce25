"""A saved model by name: a folder here, or a repository of the hub, of which only a model's own files are fetched.

    1  the repository's list of files   no path outside, no pickle, a labelspace.json
    2  labelspace.json                  names the model's files and their sizes, which must be those of the list
    3  these files                      never code, never a pickle, nothing else that lies there

They go to the hub library's cache. What comes out is a folder, and whoever opens it checks it like any other.
"""

import glob
import shutil
from collections.abc import Iterable, Mapping
from pathlib import Path, PurePosixPath

from labelspace.errors import ConfigError, ModelFolderError
from labelspace.folders import PICKLES
from labelspace.header import CLASSIFIER, HEADER, kind_of, peek
from labelspace.hub import endpoint, is_repository, offline_by_environment, reachable, refusal, request_error

MODEL_FILES = frozenset({".safetensors", ".json", ".yaml", ".md", ".txt", ".model", ".jinja"})
"""Endings of the files that a saved model is made of: weights, configurations, labels, card, vocabularies."""

EDITABLE = ("label_space.yaml", "README.md")
"""Files that a header does not list, as users may edit them."""

HEADER_BYTES = 32 * 2**20


def model_folder(name: str | Path, *, revision: str | None = None, offline: bool | None = None) -> Path:
    """Return the folder of a saved model; one on the hub is fetched, unless its files are here already.

    Args:
        name: a folder, which comes first, or `owner/name` on the hub.
        revision: commit, tag or branch on the hub; None for its main branch.
        offline: True uses no network. None and False follow `HF_HUB_OFFLINE` and `TRANSFORMERS_OFFLINE`.

    Raises:
        ModelFolderError: the hub has no such model, cannot be reached, or holds something that is not fetched.
        ConfigError: a revision of a folder.

    Example:
        >>> model_folder("tests/data/tiny-bert").name
        'tiny-bert'
    """
    if not isinstance(name, (str, Path)):
        raise ModelFolderError(f"a model is a folder or a name on the hub. Got {type(name).__name__} instead.")
    folder = Path(name)
    repository = name if isinstance(name, str) else name.as_posix()
    if folder.exists() or not is_repository(repository):
        if revision is not None:
            raise ConfigError(f"revision is for a model on the hub, and {name} is none; leave revision out.")
        return folder
    return _fetched(repository, revision, bool(offline) or offline_by_environment())


def check_file_names(names: Iterable[str], where: str) -> None:
    """Refuse file names that lead out of their folder, and those of files that can run code when opened.

    Raises:
        ModelFolderError: there is one; the message names it.

    Example:
        >>> check_file_names(["model.safetensors", "members/0/words.safetensors"], "owner/name")
    """
    for name in names:
        path = PurePosixPath(name)
        if path.is_absolute() or ".." in path.parts or "\\" in name or ":" in name or not name.isprintable():
            raise ModelFolderError(f"{where} holds {name!r}, which leads out of its folder; do not use this model.")
        if path.suffix.lower() in PICKLES:
            raise ModelFolderError(
                f"{where} holds {name}, which can run code when opened; labelspace reads safetensors only. "
                "Nothing was fetched."
            )


def _fetched(name: str, revision: str | None, offline: bool) -> Path:
    from huggingface_hub import HfApi

    api = HfApi(endpoint=endpoint())
    unreachable = _unreachable(offline)
    try:
        if unreachable:
            return Path(api.snapshot_download(name, revision=revision, allow_patterns=[HEADER], local_files_only=True))
        info = api.model_info(name, revision=revision, files_metadata=True)
        sizes = {file.rfilename: file.size for file in info.siblings or ()}
        where = f"{name} on the hub"
        check_file_names(sizes, where)
        if HEADER not in sizes:
            raise ModelFolderError(f"{where} holds no {HEADER}, so it is no model that labelspace saved.")
        if (sizes[HEADER] or 0) > HEADER_BYTES:
            raise ModelFolderError(f"{where} has a {HEADER} of {sizes[HEADER]:,} bytes, which no model needs.")
        header = Path(api.hf_hub_download(name, HEADER, revision=revision))
        if header.parent.name != info.sha:
            raise ModelFolderError(f"{where} was changed while it was read; try again.")
        wanted = [HEADER, *_listed(header.parent, sizes, where)]
        _check_space(sum(sizes[file] or 0 for file in wanted), header.parent, where)
        exactly = [glob.escape(file) for file in wanted]
        return Path(api.snapshot_download(name, revision=info.sha, allow_patterns=exactly))
    except (request_error(), OSError, ValueError, RuntimeError) as error:
        if isinstance(error, ModelFolderError):
            raise
        raise ModelFolderError(
            f"{name} is no folder here, and {unreachable or refusal(error, name, revision)}; "
            "give the folder of a saved model, or its name on the hub."
        ) from error


def _unreachable(offline: bool) -> str:
    """Return why the hub is not asked; empty if it is."""
    cache = "and its cache on this machine has no such model"
    if offline:
        return f"the hub was not asked (offline was requested), {cache}"
    return "" if reachable(endpoint()) else f"the hub {endpoint()} cannot be reached, {cache}"


def _listed(folder: Path, sizes: Mapping[str, int | None], where: str) -> list[str]:
    """Return the files of a model, as its header lists them, except for the header itself."""
    listed = peek(folder).get("files")
    if kind_of(folder) != CLASSIFIER or not isinstance(listed, dict):
        raise ModelFolderError(f"{where} is no classifier that labelspace saved: its {HEADER} is of something else.")
    for file, facts in listed.items():
        if PurePosixPath(file).suffix not in MODEL_FILES:
            raise ModelFolderError(
                f"{where} needs {file}, which is not fetched from the hub; read it, download the repository yourself, "
                "and give its folder."
            )
        size = facts.get("bytes") if isinstance(facts, dict) else None
        if file not in sizes:
            raise ModelFolderError(f"{where} lacks {file}; push the model again.")
        if size != sizes[file]:
            there = f"{sizes[file] or 0:,} bytes"
            raise ModelFolderError(
                f"{where} has {file} with {there}, and its {HEADER} says {size}; push the model again."
            )
    return [*listed, *(file for file in EDITABLE if file in sizes)]


def _check_space(size: int, folder: Path, where: str) -> None:
    free = shutil.disk_usage(folder).free
    if size > free:
        raise ModelFolderError(f"{where} has {size:,} bytes, and the disk of {folder} has {free:,} left; make room.")
