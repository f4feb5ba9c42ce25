"""A saved model to the hub, as one commit: a failed push leaves the repository's files as they were."""

import contextlib
import re
import tempfile
from collections.abc import Callable, Iterator
from pathlib import Path, PurePosixPath
from typing import Any

from labelspace.classify.saved.fetching import EDITABLE, MODEL_FILES
from labelspace.classify.saved.model_card import HERE
from labelspace.errors import ConfigError, OutputError
from labelspace.header import CLASSIFIER, HEADER, kind_of, peek
from labelspace.hub import endpoint, is_repository, offline_by_environment, reachable, refusal, request_error

BESIDE = ("README.md", "LICENSE", "LICENSE.md", "LICENSE.txt")
"""Files that a repository without a model may have; git's own begin with a dot."""

_TOKEN = re.compile(r"[\w.-]+", re.ASCII)


def push(save: Callable[[Path], Path], name: str, *, private: bool, token: str | None, message: str) -> str:
    """Save a model and send it to the hub; see `Classifier.push_to_hub`.

    Args:
        save: writes the model to a folder.
        name: `owner/name`.
        private: as for `push_to_hub`.
        token: as for `push_to_hub`.
        message: the commit's message.

    Returns:
        The hash of the commit.
    """
    _check(name, token, message)
    from huggingface_hub import HfApi

    with tempfile.TemporaryDirectory() as scratch:
        folder = save(Path(scratch) / "model")
        files = sorted(path.relative_to(folder).as_posix() for path in folder.rglob("*") if path.is_file())
        _refuse_other_files(files)
        card = folder / "README.md"
        card.write_text(card.read_text(encoding="utf-8").replace(HERE, name), encoding="utf-8")
        with _in_plain_words(name):
            api = HfApi(endpoint=endpoint(), token=token)
            head, before = _repository(api, name, private)
            return _commit(api, name, folder, files, before, head, message)


def _check(name: str, token: str | None, message: str) -> None:
    if not isinstance(name, str) or not is_repository(name):
        raise ConfigError(f"a model on the hub is named 'owner/name'. Got {name!r} instead.")
    if token is not None and not (isinstance(token, str) and _TOKEN.fullmatch(token)):
        raise ConfigError("token must be the hub's token, one word, or None for the one that you are logged in with.")
    if not isinstance(message, str) or not message.strip():
        raise ConfigError(f"message must say what the commit is. Got {message!r} instead.")
    if offline_by_environment():
        raise OutputError(f"{name} was not pushed: offline was requested (HF_HUB_OFFLINE); unset it.")
    if not reachable(endpoint()):
        raise OutputError(f"{name} was not pushed: the hub {endpoint()} cannot be reached; try again.")


def _refuse_other_files(files: list[str]) -> None:
    for file in files:
        if PurePosixPath(file).suffix not in MODEL_FILES:
            raise OutputError(
                f"the model needs {file}, which `load` does not fetch from the hub; give others the folder of `save`."
            )


@contextlib.contextmanager
def _in_plain_words(name: str) -> Iterator[None]:
    try:
        yield
    except (request_error(), OSError, ValueError, RuntimeError) as error:
        if isinstance(error, OutputError):
            raise
        raise OutputError(
            f"{name} was not pushed: {refusal(error, name)}; a push is whole or nothing, try again."
        ) from error


def _repository(api: Any, name: str, private: bool) -> tuple[str, list[str]]:
    """Return the head of a repository, made if it is missing, and the files of the model that is in it.

    Raises:
        OutputError: it is public and should be private, or it holds something else than a classifier.
    """
    from huggingface_hub.errors import GatedRepoError, RepositoryNotFoundError

    try:
        info = api.model_info(name)
    except GatedRepoError:
        raise
    except RepositoryNotFoundError:
        api.create_repo(name, private=private, exist_ok=True)
        info = api.model_info(name)
    if private and not info.private:
        raise OutputError(f"{name} is public on the hub, and private was asked for; change it there, or take another.")
    present = {file.rfilename for file in info.siblings or ()}
    if HEADER in present:
        folder = Path(api.hf_hub_download(name, HEADER, revision=info.sha)).parent
        if kind_of(folder) == CLASSIFIER:
            return info.sha, [file for file in (*peek(folder).get("files", ()), *EDITABLE) if file in present]
    elif all(file in BESIDE or file.startswith(".") for file in present):
        return info.sha, []
    raise OutputError(
        f"{name} on the hub holds something else than a classifier; give another name, so that nothing is lost."
    )


def _commit(api: Any, name: str, folder: Path, files: list[str], before: list[str], head: str, message: str) -> str:
    """Send a folder in place of the files before it, as one commit on the head that was looked at."""
    from huggingface_hub import CommitOperationAdd, CommitOperationDelete

    operations: list[Any] = [CommitOperationAdd(file, str(folder / file)) for file in files]
    operations += [CommitOperationDelete(file) for file in before if file not in files]
    return str(api.create_commit(name, operations, commit_message=message, parent_commit=head).oid)
