"""`load`: open a saved model of any class."""

import importlib
from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

import numpy as np

from labelspace.checks import did_you_mean
from labelspace.classify.fitted import Fitted
from labelspace.classify.none_of_these import NoneLimit, still_holding
from labelspace.classify.saved.fetching import model_folder
from labelspace.classify.saved.old_folders import CONFIG_SINCE, brought_up
from labelspace.classify.saved.saving import LABELS, MEMBERS, damaged, read
from labelspace.errors import ConfigError, LabelSpaceError, ModelFolderError
from labelspace.header import CLASSIFIER, HEADER, read_header

if TYPE_CHECKING:
    from labelspace.classify.base import Classifier

Model = TypeVar("Model")

CLASSES = {
    "DescriptionClassifier": "description",
    "JointClassifier": "joint",
    "LaConClassifier": "lacon",
    "UncertaintyClassifier": "uncertainty",
    "WordsClassifier": "words",
    "ZeroShotClassifier": "zero_shot",
}
"""Classes of saved models, and where they are: only the one that opens is imported, and words need no torch."""

TRIES = 3
"""How often a model is opened that is replaced in the meantime."""

OPENED = {
    "DescriptionClassifier": ("opened_anchors", "OpenedAnchors"),
    "WordsClassifier": ("opened_words", "OpenedWords"),
    "ZeroShotClassifier": ("opened_anchors", "OpenedAnchors"),
}
"""Where the class is that opens a model to answer only, by the class that saved it."""


def load(
    folder: str | Path,
    *,
    revision: str | None = None,
    device: str | None = None,
    trust_remote_code: bool = False,
) -> "Classifier":
    """Open a model that `save` or `push_to_hub` wrote.

    Args:
        folder: the model's folder; or, where there is none of that name, `owner/name` on the hub.
        revision: commit, tag or branch on the hub; None for its main branch.
        device: a torch device, or `"auto"` for the best one here; None: the device it was saved with, or the best one
            if this machine lacks it.
        trust_remote_code: True allows code that comes with the model's encoder to run.

    Returns:
        The fitted classifier. On the machine that saved it, scores are bit-identical. A new `fit` starts again from the
        original encoder, and fails if that was an Encoder trained before; to continue from this model, pass its
        folder as `encoder`.

    Raises:
        ModelFolderError: the folder is no model, incomplete, of a newer format, or holds a pickle; or the hub does not
            give it.
        RemoteCodeError: the encoder has its own code and `trust_remote_code` is False.
        ConfigError: this machine lacks the requested device; or a folder has no revision.

    Example:
        >>> import tempfile, labelspace
        >>> clf = labelspace.ZeroShotClassifier(["sports", "politics"], encoder="tests/data/tiny-bert").fit()
        >>> with tempfile.TemporaryDirectory() as folder:
        ...     labelspace.load(clf.save(f"{folder}/model")).predict(["a text"]) == clf.predict(["a text"])
        array([ True])
    """
    place = model_folder(folder, revision=revision)
    return _as_one(place, lambda: _loaded(place, device=device, trust_remote_code=trust_remote_code))


def _loaded(folder: Path, *, device: str | None, trust_remote_code: bool) -> "Classifier":
    header = read_header(folder, CLASSIFIER)
    cls = _class_of(folder, header)
    try:
        header = brought_up(header, cls) if header.get("format", 1) < CONFIG_SINCE else header
    except (KeyError, TypeError, AttributeError) as error:
        raise damaged(folder, error) from error
    found = (folder / MEMBERS).glob("*") if header["class"] == "JointClassifier" else ()
    parts = [part for part in found if part.name.isdecimal()]
    members = [
        _loaded(part, device=device, trust_remote_code=trust_remote_code)
        for part in sorted(parts, key=lambda part: int(part.name))
    ]
    return _opened(folder, header, cls, members, device=device, trust_remote_code=trust_remote_code)


def open_to_answer(folder: str | Path, *, device: str | None = None, trust_remote_code: bool = False) -> Fitted:
    """Open a saved model that has only to answer and to explain; those of `OPENED` then need no scikit-learn.

    Args and errors are those of `load`.
    """
    place = model_folder(folder)

    def opened() -> Fitted:
        header = read_header(place, CLASSIFIER)
        name = header.get("class")
        if not isinstance(name, str) or name not in OPENED or header.get("format", 1) < CONFIG_SINCE:
            return _loaded(place, device=device, trust_remote_code=trust_remote_code)
        cls = _imported(place, name, *OPENED[name])
        return _opened(place, header, cls, device=device, trust_remote_code=trust_remote_code)

    return _as_one(place, opened)


def _as_one(folder: Path, opened: Callable[[], Model]) -> Model:
    """Open a model, and again if another was put in its place meanwhile: a mixture of two would answer wrong."""
    for _ in range(TRIES):
        before = _identity(folder)
        try:
            model = opened()
        except (LabelSpaceError, OSError):
            if _identity(folder) == before:
                raise
        else:
            if _identity(folder) == before:
                return model
            del model  # before another one takes as much memory
    raise ModelFolderError(f"{folder} was replaced {TRIES} times while it was opened; open it once it stays.")


def _identity(folder: Path) -> list[bytes | None]:
    """Return what tells one model from another: its header, which has the hashes of its files, and its labels."""
    found: list[bytes | None] = []
    for path in (folder / HEADER, folder / LABELS):
        try:
            found.append(path.read_bytes())
        except OSError:
            found.append(None)
    return found


def _opened(
    folder: Path,
    header: dict[str, Any],
    cls: Any,
    members: Sequence["Classifier"] = (),
    *,
    device: str | None = None,
    trust_remote_code: bool = False,
) -> Any:
    if not isinstance(header.get("fit"), dict | None):
        raise damaged(folder, "fit is no mapping")
    state = read(
        folder,
        header,
        tensors_file=cls.tensors_file,
        trains_encoder=cls.trains_encoder,
        device=device,
        trust_remote_code=trust_remote_code,
    )
    try:
        model = cls.from_state(replace(state, members=tuple(members)))
        if getattr(model, "encoder_", model) is None:
            raise damaged(folder, "encoder is null")
        limit = None if header.get("none") is None else NoneLimit.from_dict(header["none"])
        model.none_ = still_holding(limit, model.label_space_)
        if "temperature" in header:
            model.tell(header["temperature"], header.get("temperature_by"))
        decision = model.decision()
        names = state.space.names
        no_text = np.zeros((1, len(names)), dtype=np.float32)
        decision.answers(names, no_text, no_text[:, 0])  # so that a damaged limit or cut is told now
    except ModelFolderError:
        raise
    except (LookupError, TypeError, ValueError, OverflowError, AttributeError, RuntimeError, ConfigError) as error:
        raise damaged(folder, error) from error
    if state.space.several and decision.cuts is None:
        raise ModelFolderError(
            f"{folder}: its label_space.yaml says several: true, and this model gives each text one label; take the "
            "line out."
        )
    return model


def _class_of(folder: Path, header: dict[str, Any]) -> "type[Classifier]":
    name = header.get("class")
    if not isinstance(name, str) or name not in CLASSES:
        raise ModelFolderError(f"{folder / HEADER} names the unknown class {name!r}.{did_you_mean(str(name), CLASSES)}")
    return _imported(folder, name, CLASSES[name], name)


def _imported(folder: Path, name: str, module: str, cls: str) -> Any:
    """Return a class that opens the models that a classifier of this name saved."""
    try:
        return getattr(importlib.import_module(f"labelspace.classify.{module}"), cls)
    except ModuleNotFoundError as error:
        raise ModelFolderError(
            f"{folder} holds a {name}, which needs the package {error.name!r}, and it is not installed here; only a "
            "model of words does without. Install labelspace with all that it depends on."
        ) from error
