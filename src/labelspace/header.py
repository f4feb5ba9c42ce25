"""The header `labelspace.json` of a saved folder, and the kind of any model folder.

    format      version of the folder's format, a whole number
    kind        `"classifier"`, `"nli-cross-encoder"`, `"encoder"` or `"export"`
    labelspace  version of labelspace that wrote it
    versions    versions of the packages it depends on
    files       size and hash of each file
    ...         fields of the kind

In format 1 a classifier had `format_version` and no `kind`, and an encoder's header was named `prefinetune.json`; up to
format 2 the parameters of a classifier were flat (`classify/saved/old_folders.py`).
"""

import json
import math
from collections.abc import Iterable
from importlib import metadata
from pathlib import Path
from typing import Any

from labelspace.errors import ModelFolderError, OutputError
from labelspace.folders import check_files, fingerprints, refuse_pickles
from labelspace.version import __version__

FORMAT = 3
HEADER = "labelspace.json"
CLASSIFIER, NLI, ENCODER = "classifier", "nli-cross-encoder", "encoder"
EXPORT = "export"
UNFINISHED = "unfinished"
_OLD_ENCODER = "prefinetune.json"
# What `labelspace.training.checkpoint` writes, in the folder of a run or of a fit.
_CHECKPOINTS = (
    "state.json",
    *(f"{part}/state.json" for part in ("checkpoint", "descriptions", "rows", "student", "view-*/descriptions")),
    "view-*/*/labelspace.json",  # trained views of a consensus
    "scores/*/*.safetensors",  # of its slow views
)
_AS_ENCODER = "open it with labelspace.Encoder, or fit a classifier on it with --encoder {folder}"

# The name of each kind, and how to open it. The last four are not written by labelspace.
_KINDS = {
    CLASSIFIER: ("a classifier", "open it with labelspace.load"),
    NLI: (
        "an NLI cross-encoder",
        "open it with labelspace.families.EntailmentScorer, or in labelspace bench as nli:{folder}",
    ),
    ENCODER: ("a pre-finetuned encoder", _AS_ENCODER),
    EXPORT: ("an exported model", "run its files with ONNX Runtime or OpenVINO, or open the model it was made of"),
    UNFINISHED: ("an unfinished training", "finish it with the command that began it and --resume"),
    "sequence-classification": (
        "a transformers model for sequence classification",
        "open it with labelspace.families.EntailmentScorer if it learnt NLI, with RerankerScorer if it ranks",
    ),
    "language-model": ("a language model", "open it with labelspace.families.LLMScorer"),
    "sentence-transformers": ("a sentence-transformers encoder", _AS_ENCODER),
    "transformers": ("a transformers model", _AS_ENCODER),
}
_ARCHITECTURES = {"ForSequenceClassification": "sequence-classification", "ForCausalLM": "language-model"}


def kind_of(folder: Path) -> str | None:
    """Return the kind of model in a folder, judged by its JSON files alone; None if unknown.

    Raises:
        ModelFolderError: the folder has a damaged header.

    Example:
        >>> kind_of(Path("tests/data/tiny-bert"))
        'sentence-transformers'
    """
    header = peek(folder)
    if (folder / HEADER).is_file():
        kind = header.get("kind", CLASSIFIER if "class" in header else None)
        if not isinstance(kind, str):
            why = "it names no kind" if header else "it is no JSON object"
            raise ModelFolderError(f"{folder / HEADER} is damaged ({why}); save the model again.")
        return kind
    if header:
        return ENCODER
    if any(next(folder.glob(name), None) for name in _CHECKPOINTS):
        return UNFINISHED
    named = _read_json(folder / "config.json").get("architectures")
    for name in named if isinstance(named, list) else []:
        for ending, kind in _ARCHITECTURES.items():
            if str(name).endswith(ending):
                return kind
    if (folder / "modules.json").is_file():
        return "sentence-transformers"
    return "transformers" if (folder / "config.json").is_file() else None


def peek(folder: Path) -> dict[str, Any]:
    """Return a folder's header, unchecked; empty if it is missing or unreadable."""
    return _read_json(folder / HEADER) or _read_json(folder / _OLD_ENCODER)


def refuse_kinds(folder: Path, wanted: str, kinds: Iterable[str]) -> None:
    """Refuse a folder of certain kinds; the message says how to open it.

    Args:
        folder: any folder; it need not exist.
        wanted: the kind that the caller opens, with its article.
        kinds: kinds to refuse.

    Raises:
        ModelFolderError: the folder is of a refused kind, or its header is damaged.
    """
    found = kind_of(folder)
    if found in _KINDS and found in kinds:
        name, cure = _KINDS[found]
        raise ModelFolderError(f"{folder} holds {name}, not {wanted}; {cure.format(folder=folder)}.")


def refuse_no_encoder(name: str | Path) -> None:
    """Refuse a folder that labelspace wrote without a text encoder; other names pass.

    Raises:
        ModelFolderError: transformers would open the folder, but its vectors would be meaningless.
    """
    refuse_kinds(Path(name).expanduser(), "an encoder", (NLI, EXPORT, UNFINISHED))


def read_header(folder: Path, kind: str) -> dict[str, Any]:
    """Read the header of a folder of the given kind, and check the folder against it.

    Raises:
        ModelFolderError: the folder is of another kind, damaged, of a newer format, or contains a pickle.
    """
    name = _KINDS[kind][0]
    if not folder.is_dir():
        raise ModelFolderError(f"{folder} is no folder; give the folder of {name} that labelspace saved.")
    refuse_kinds(folder, name, _KINDS.keys() - {kind})
    refuse_pickles(folder)
    if kind_of(folder) is None:
        raise ModelFolderError(f"{folder} holds no {HEADER}; give the folder of {name} that labelspace saved.")
    header = peek(folder)
    version = header.get("format", header.get("format_version"))
    if type(version) is not int or version < 1:
        raise ModelFolderError(f"{folder / HEADER} is damaged (format {version!r}); save the model again.")
    if version > FORMAT:
        raise ModelFolderError(
            f"{folder} is of format {version}, and labelspace {__version__} reads up to {FORMAT}; upgrade labelspace."
        )
    if kind_of(folder) != kind:
        raise ModelFolderError(f"{folder / HEADER} is damaged (kind {header['kind']!r}); save the model again.")
    try:
        header["files"] = {file: {**facts, "bytes": int(facts["bytes"])} for file, facts in header["files"].items()}
    except (ValueError, KeyError, TypeError, AttributeError) as error:
        raise ModelFolderError(f"{folder / HEADER} is damaged ({error}); save the model again.") from error
    check_files(folder, header["files"])
    return header


def new_header(kind: str, packages: Iterable[str], **facts: Any) -> dict[str, Any]:
    """Return a header without its list of files.

    Args:
        kind: kind of the folder.
        packages: packages whose versions are recorded.
        facts: fields of the kind, plain values.
    """
    versions = {package: metadata.version(package) for package in packages}
    return {"format": FORMAT, "kind": kind, "labelspace": __version__, "versions": versions, **facts}


def write_header(folder: Path, header: dict[str, Any], *, editable: Iterable[str] = ()) -> dict[str, Any]:
    """Add a folder's files to its header and write it, as the last file of the folder.

    Args:
        folder: the folder, with all its other files.
        header: from `new_header`; numbers that are not finite become null, as JSON has none.
        editable: files that users may edit, and that are therefore not checked.

    Returns:
        The header as written.
    """
    files = {file: facts for file, facts in fingerprints(folder).items() if file not in editable}
    whole = _finite({**header, "files": files})
    text = json.dumps(whole, indent=2, ensure_ascii=False, allow_nan=False)
    (folder / HEADER).write_text(text + "\n", encoding="utf-8")
    return whole


def check_place(folder: Path, kind: str) -> bool:
    """Refuse a place where saving would overwrite anything but an older model of the same kind.

    Returns:
        Whether there is an older model.

    Raises:
        OutputError: the place is a file, or a folder with other contents.
    """
    name = _KINDS[kind][0]
    if folder.exists() and not folder.is_dir():
        raise OutputError(f"{folder} is a file; {name} is saved as a folder, give another name.")
    if not folder.is_dir() or not any(folder.iterdir()):
        return False
    try:
        found = kind_of(folder)
    except ModelFolderError:  # a damaged model, to be saved again
        return True
    if found != kind:
        holds = _KINDS[found][0] if found in _KINDS else "something else"
        raise OutputError(f"{folder} holds {holds}, not {name}; give another name, so that nothing is lost.")
    return True


def _finite(value: Any) -> Any:
    if isinstance(value, dict):
        return {key: _finite(inner) for key, inner in value.items()}
    if isinstance(value, (list, tuple)):
        return [_finite(inner) for inner in value]
    return None if isinstance(value, float) and not math.isfinite(value) else value


def _read_json(path: Path) -> dict[str, Any]:
    try:
        content = json.loads(path.read_text(encoding="utf-8"))
    except (OSError, ValueError, RecursionError):  # the last one: nested too deep
        return {}
    return content if isinstance(content, dict) else {}
