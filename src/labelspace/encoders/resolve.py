"""Resolve an encoder's name to a local folder.

Places, in order:

    1  folder      a folder of that name
    2  hub cache   the copy of an earlier download
    3  package     the copy in an installed package (all-MiniLM-L6-v2)
    4  hub         a download, unless offline is set or the hub does not answer within 3 s

Offline, the package comes before the hub cache. The result is always a folder with weights in safetensors; a folder
with only pickled weights is refused.
"""

import json
import logging
import os
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal, final

from labelspace.checks import did_you_mean
from labelspace.encoders.packaged import is_installed, is_model_folder, packaged_folder
from labelspace.encoders.registry import KNOWN_ENCODERS, EncoderSpec, find_spec
from labelspace.errors import EncoderError, EncoderNotFoundError, RemoteCodeError
from labelspace.hub import endpoint, offline_by_environment, reachable, request_error

Source = Literal["folder", "package", "hub cache", "hub"]

# Pickles, and copies of the weights for other runtimes.
NOT_DOWNLOADED = ("*.bin", "*.pt", "*.pth", "*.pkl", "*.ckpt", "*.h5", "*.msgpack", "*.ot", "*.onnx", "*.onnx_data")
NOT_DOWNLOADED += ("onnx/*", "openvino/*", "*.tflite", "*.mlmodel", "*.gguf", "rust_model*", "coreml/*")

_logger = logging.getLogger("labelspace")
_said: set[str] = set()


@final
@dataclass(frozen=True)
class ResolvedEncoder:
    """Location of an encoder."""

    path_or_name: str
    """The folder that sentence-transformers opens."""

    spec: EncoderSpec | None
    """The registry's entry; for a folder, the entry of the folder's name."""

    source: Source
    """The place it was found in."""


def resolve(
    name: str,
    *,
    revision: str | None = None,
    offline: bool | None = None,
) -> ResolvedEncoder:
    """Find an encoder by folder, hub name or short name.

    Args:
        name: a folder, a hub name such as `"intfloat/e5-base-v2"`, or a short name of the registry.
        revision: commit, tag or branch on the hub; None for the registry's. A package serves only the registry's.
        offline: True uses no network. None and False follow `HF_HUB_OFFLINE` and `TRANSFORMERS_OFFLINE`.

    Returns:
        The folder, the registry's entry, and the place it was found in.

    Raises:
        EncoderNotFoundError: no place has it; the message lists the places and what to do.
        EncoderError: it was found, but its weights are only pickled or do not match the package's hash.

    Example:
        >>> resolve("tests/data/tiny-bert").source
        'folder'
    """
    if not name.strip():
        raise EncoderError("the encoder's name is empty; pass a folder or a name such as 'all-MiniLM-L6-v2'.")
    folder = Path(name).expanduser()
    if folder.is_dir() and is_model_folder(folder):
        return _checked(folder, find_spec(folder.resolve().name), "folder")
    if folder.is_dir() and not _could_be_hub_name(name):
        raise EncoderError(f"the folder {name} holds no encoder: neither modules.json nor config.json is in it.")
    spec = find_spec(name)
    pinned = spec is None or revision in (None, spec.revision)
    revisions = _revisions(spec, revision)
    no_network = bool(offline) or offline_by_environment()
    places: tuple[Source, ...] = ("package", "hub cache") if no_network else ("hub cache", "package")
    for source in places:
        if source == "package":
            found = packaged_folder(spec) if spec is not None and pinned else None
        else:
            found = _cached(_hub_names(name, spec), revisions)
        if found is not None:
            if source == "package":
                _say_once(f"{spec.name if spec else name}: using the packaged copy in {found}")
            return _checked(found, spec, source)
    hub = "not asked, offline was requested" if no_network else "not asked, this is not a hub name"
    if not no_network and _could_be_hub_name(name):
        if reachable(endpoint()):
            return _checked(_download(name, spec, revisions[0]), spec, "hub")
        hub = "not reachable"
    raise EncoderNotFoundError(_not_found(name, spec, hub))


def where(spec: EncoderSpec) -> Source | None:
    """Return the place on this machine that has a known encoder, without network access or hash checks.

    Args:
        spec: a registry entry.

    Returns:
        `"package"`, `"hub cache"`, or None if it would have to be downloaded.

    Example:
        >>> where(find_spec("all-MiniLM-L6-v2"))
        'package'
    """
    if is_installed(spec):
        return "package"
    return "hub cache" if _cached([spec.name], _revisions(spec, None)) is not None else None


def check_remote_code(encoder: ResolvedEncoder | EncoderSpec | Path | str, trust_remote_code: bool) -> None:
    """Refuse an encoder that needs its own code, unless that is allowed.

    Args:
        encoder: a result of `resolve`, a registry entry, a folder or a name. Checking the name before `resolve`
            refuses without a download.
        trust_remote_code: True allows the code.

    Raises:
        RemoteCodeError: the encoder needs its own code, which is not allowed.

    Example:
        >>> check_remote_code("e5-base-v2", trust_remote_code=False)
        >>> check_remote_code("gte-base-en-v1.5", trust_remote_code=True)
    """
    if trust_remote_code:
        return
    who, code = _remote_code(encoder)
    if code:
        raise RemoteCodeError(
            f"{who} would run Python code that is not part of an installed package ({code}). "
            "Read that code, then allow it with trust_remote_code=True or --trust-remote-code."
        )


def _remote_code(encoder: ResolvedEncoder | EncoderSpec | Path | str) -> tuple[str, str]:
    """Return the encoder's name and the code that it would run, empty if none."""
    if isinstance(encoder, ResolvedEncoder):
        code = _code_in_folder(Path(encoder.path_or_name))
        if not code and encoder.source != "folder" and encoder.spec is not None:
            return _remote_code(encoder.spec)
        return encoder.path_or_name, code
    if isinstance(encoder, EncoderSpec):
        return encoder.name, "its model class, from the hub" if encoder.remote_code else ""
    if Path(encoder).expanduser().is_dir():
        return str(encoder), _code_in_folder(Path(encoder).expanduser())
    spec = find_spec(str(encoder))
    return (str(encoder), "") if spec is None else _remote_code(spec)


def _named_code(config: Mapping[str, Any]) -> str:
    """Return the classes in a configuration's `auto_map`: in files beside it, or as `repository--file.Class`."""
    auto_map = config.get("auto_map")
    if not auto_map:
        return ""
    values = list(auto_map.values()) if isinstance(auto_map, Mapping) else [auto_map]
    flat = [item for value in values for item in (value if isinstance(value, list) else [value]) if item]
    return ", ".join(sorted({str(item) for item in flat}))


def _code_in_folder(folder: Path) -> str:
    code = []
    for path in sorted(folder.rglob("*.json")):
        if path.name.endswith("config.json") or path.name == "modules.json":
            try:
                content = json.loads(path.read_text(encoding="utf-8"))
            except (ValueError, RecursionError) as error:  # includes UnicodeDecodeError
                raise EncoderError(f"{path} is not JSON ({error}); the encoder's folder is damaged.") from error
            except OSError as error:
                raise EncoderError(
                    f"{path} cannot be read ({error.strerror}); the encoder's folder is damaged, or was copied in part."
                ) from error
            if isinstance(content, Mapping):
                code.append(_named_code(content))
            elif path.name == "modules.json":
                types = [str(module.get("type", "")) for module in content if isinstance(module, Mapping)]
                code += [kind for kind in types if not kind.startswith("sentence_transformers.")]
    return ", ".join(dict.fromkeys(part for part in code if part))


def _checked(folder: Path, spec: EncoderSpec | None, source: Source) -> ResolvedEncoder:
    for pickled in sorted(folder.rglob("pytorch_model*.bin")):
        if not any(pickled.parent.glob("*.safetensors")):
            raise EncoderError(
                f"{folder} holds weights as a pickle ({pickled.name}), which labelspace never reads; "
                "save the encoder again in safetensors, or use a revision that has them."
            )
    return ResolvedEncoder(str(folder), spec, source)


def _hub_names(name: str, spec: EncoderSpec | None) -> list[str]:
    if spec is not None:
        return [spec.name]
    # sentence-transformers accepts its own models without the owner.
    return [name] if "/" in name else [f"sentence-transformers/{name}", name]


def _could_be_hub_name(name: str) -> bool:
    return name.count("/") <= 1 and "\\" not in name and name[0] not in "./~" and " " not in name


def _cache_folder() -> str | None:
    chosen = os.environ.get("SENTENCE_TRANSFORMERS_HOME")
    return str(Path(chosen).expanduser()) if chosen else None


def _revisions(spec: EncoderSpec | None, revision: str | None) -> list[str | None]:
    """Return the revisions to try: the requested one, else the registry's and then the newest in the cache (None)."""
    if revision is not None:
        return [revision]
    return [None] if spec is None or spec.revision is None else [spec.revision, None]


def _cached(names: list[str], revisions: list[str | None]) -> Path | None:
    """Return the first complete snapshot in the hub cache."""
    from huggingface_hub import try_to_load_from_cache
    from huggingface_hub.errors import HFValidationError

    for name in names:
        for revision in revisions:
            for file in ("modules.json", "config.json"):
                try:
                    path = try_to_load_from_cache(name, file, cache_dir=_cache_folder(), revision=revision)
                except HFValidationError:
                    continue
                if isinstance(path, str) and any(Path(path).parent.rglob("*.safetensors")):
                    return Path(path).parent
    return None


def _download(name: str, spec: EncoderSpec | None, revision: str | None) -> Path:
    from huggingface_hub import snapshot_download
    from huggingface_hub.errors import GatedRepoError

    reason: Exception | None = None
    for hub_name in _hub_names(name, spec):
        try:
            folder = snapshot_download(
                hub_name,
                revision=revision,
                cache_dir=_cache_folder(),
                endpoint=endpoint(),
                ignore_patterns=list(NOT_DOWNLOADED),
            )
        except GatedRepoError as error:
            raise EncoderNotFoundError(
                f"the hub gives {hub_name} only to users who accepted its licence; "
                f"accept it at {endpoint()}/{hub_name}, log in with 'hf auth login', and try again."
            ) from error
        except (request_error(), OSError, ValueError) as error:
            reason = error
            continue
        if not any(Path(folder).rglob("*.safetensors")):
            raise EncoderError(f"{hub_name} has no weights in safetensors on the hub; labelspace reads no pickles.")
        return Path(folder)
    said = str(reason).strip().splitlines()
    raise EncoderNotFoundError(
        _not_found(name, spec, f"answered: {said[0] if said else type(reason).__name__}")
    ) from reason


def _not_found(name: str, spec: EncoderSpec | None, hub: str) -> str:
    """Compose the one-line error: the name, the places searched, and how to get the encoder."""
    if (Path(name) / "labelspace.json").is_file():
        return f"{name!r} is a model without an encoder of its own, such as a consensus; open it with labelspace.load."
    from huggingface_hub import constants

    package = None if spec is None else spec.package
    looked = (
        f"a folder (none), a package ({f'{package}, not installed' if package else 'none is known for it'}), "
        f"the hub cache {_cache_folder() or constants.HF_HUB_CACHE} (not there), the hub {endpoint()} ({hub})"
    )
    guess = (
        ""
        if spec is not None
        else did_you_mean(name, [name for s in KNOWN_ENCODERS for name in (s.short_name, s.name)])
    )
    cure = f"Install it with: pip install {package}; or pass" if package else "Pass"
    return f"no encoder {name!r}: looked for {looked}.{guess} {cure} a folder that holds it."


def _say_once(message: str) -> None:
    if message not in _said:
        _said.add(message)
        _logger.info(message)
