"""GGUF files: where one is, by path, folder or hub repository; transformers opens them."""

from pathlib import Path

from labelspace.errors import EncoderNotFoundError
from labelspace.hub import reachable, request_error


def is_gguf(name: str | Path) -> bool:
    """Return whether a name alone says GGUF.

    Example:
        >>> is_gguf("models/tiny.gguf"), is_gguf("Qwen/Qwen3-0.6B")
        (True, False)
    """
    return Path(name).suffix == ".gguf"


def find_gguf(name: str, gguf_file: str | None, revision: str | None, offline: bool | None) -> Path | None:
    """Return the GGUF file that is meant, or None where a folder or hub name of safetensors is."""
    place = Path(name).expanduser()
    if gguf_file is None:
        if not is_gguf(name):
            return None
        file = place
    elif place.is_dir():
        file = place / gguf_file
    else:
        return _gguf_of_hub(name, gguf_file, revision, offline)
    if not file.is_file():
        raise EncoderNotFoundError(f"no GGUF file {str(file)!r}; pass the path of a file that is there.")
    return file


def _gguf_of_hub(name: str, gguf_file: str, revision: str | None, offline: bool | None) -> Path:
    from huggingface_hub import constants, hf_hub_download

    local = bool(offline) or constants.HF_HUB_OFFLINE or not reachable(constants.ENDPOINT)
    try:
        return Path(hf_hub_download(name, gguf_file, revision=revision, local_files_only=local))
    except (request_error(), OSError, ValueError) as error:
        raise EncoderNotFoundError(
            f"no GGUF file {gguf_file!r} of {name!r}: looked for a folder (none) and the hub cache (not there), "
            f"the hub {'was not asked or not reachable' if local else 'did not give it'}. Pass a folder that holds it."
        ) from error
