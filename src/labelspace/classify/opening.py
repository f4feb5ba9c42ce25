"""`load`: open a saved model of any class."""

from dataclasses import replace
from pathlib import Path
from typing import Any

from labelspace.checks import did_you_mean
from labelspace.classify.base import Classifier
from labelspace.classify.description import DescriptionClassifier
from labelspace.classify.joint import JointClassifier
from labelspace.classify.lacon import LaConClassifier
from labelspace.classify.old_folders import brought_up
from labelspace.classify.saving import MEMBERS, damaged, read
from labelspace.classify.uncertainty import UncertaintyClassifier
from labelspace.classify.words import WordsClassifier
from labelspace.classify.zero_shot import ZeroShotClassifier
from labelspace.errors import ConfigError, ModelFolderError
from labelspace.header import CLASSIFIER, HEADER, read_header

CLASSES: dict[str, type[Classifier]] = {
    "DescriptionClassifier": DescriptionClassifier,
    "JointClassifier": JointClassifier,
    "LaConClassifier": LaConClassifier,
    "UncertaintyClassifier": UncertaintyClassifier,
    "WordsClassifier": WordsClassifier,
    "ZeroShotClassifier": ZeroShotClassifier,
}


def load(folder: str | Path, *, device: str | None = None, trust_remote_code: bool = False) -> Classifier:
    """Open a model that `save` wrote.

    Args:
        folder: the model's folder.
        device: a torch device, or `"auto"` for the best one here; None: the device it was saved with, or the best one
            if this machine lacks it.
        trust_remote_code: True allows code that comes with the model's encoder to run.

    Returns:
        The fitted classifier. On the machine that saved it, scores are bit-identical. A new `fit` starts again from the
        original encoder, and fails if that was an Encoder trained before; to continue from this model, pass its
        folder as `encoder`.

    Raises:
        ModelFolderError: the folder is no model, incomplete, of a newer format, or holds a pickle.
        RemoteCodeError: the encoder has its own code and `trust_remote_code` is False.
        ConfigError: this machine lacks the requested device.

    Example:
        >>> import tempfile, labelspace
        >>> clf = labelspace.ZeroShotClassifier(["sports", "politics"], encoder="tests/data/tiny-bert").fit()
        >>> with tempfile.TemporaryDirectory() as folder:
        ...     labelspace.load(clf.save(f"{folder}/model")).predict(["a text"]) == clf.predict(["a text"])
        array([ True])
    """
    folder = Path(folder)
    header = read_header(folder, CLASSIFIER)
    cls = _class_of(folder, header)
    try:
        header = brought_up(header, cls)
    except (KeyError, TypeError, AttributeError) as error:
        raise damaged(folder, error) from error
    state = read(
        folder,
        header,
        tensors_file=cls.tensors_file,
        trains_encoder=cls.trains_encoder,
        device=device,
        trust_remote_code=trust_remote_code,
    )
    parts = sorted((folder / MEMBERS).glob("[0-9]*"), key=lambda part: int(part.name)) if cls is JointClassifier else ()
    members = tuple(load(part, device=device, trust_remote_code=trust_remote_code) for part in parts)
    state = replace(state, members=members)
    try:
        model = cls.from_state(state)
        model.decision()
    except ModelFolderError:
        raise
    except (KeyError, TypeError, ValueError, AttributeError, ConfigError) as error:
        raise damaged(folder, error) from error
    return model


def _class_of(folder: Path, header: dict[str, Any]) -> type[Classifier]:
    name = header.get("class")
    if not isinstance(name, str) or name not in CLASSES:
        raise ModelFolderError(f"{folder / HEADER} names the unknown class {name!r}.{did_you_mean(str(name), CLASSES)}")
    return CLASSES[name]
