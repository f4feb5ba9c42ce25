"""A fitted model as a folder, and back. No pickle is written or read.

    model/
    ├── modules.json, config.json, model.safetensors ...   a sentence-transformers model
    ├── label_space.yaml                                   the labels, to read and to edit
    ├── label_vectors.safetensors                          the labels' encoded texts
    ├── lacon.safetensors                                  of LaConClassifier: its head and its label embeddings
    ├── uncertainty.safetensors                            of UncertaintyClassifier: its head and its held-out record
    ├── labelspace.json                                    class, parameters, versions, what it was fitted on
    └── README.md                                          the model card

The folder is written beside its place under another name and exchanged in one step.
"""

import hashlib
import json
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from safetensors import SafetensorError, safe_open
from safetensors.numpy import save_file

from labelspace.checks import check_choice, check_number, did_you_mean, plain
from labelspace.classify.anchors import LabelVectors, encode_labels
from labelspace.classify.base import TRAINED, BiEncoderClassifier
from labelspace.classify.description import DescriptionClassifier
from labelspace.classify.labelled_card import lacon_card, uncertainty_card
from labelspace.classify.lacon import LaConClassifier
from labelspace.classify.lacon_saving import read_head, write_head
from labelspace.classify.model_card import model_card
from labelspace.classify.uncertainty import UncertaintyClassifier
from labelspace.classify.uncertainty_saving import read_gaussian, write_gaussian
from labelspace.classify.zero_shot import ZeroShotClassifier
from labelspace.config import ANCHORS, EncodingConfig, SearchConfig
from labelspace.encoders import Encoder
from labelspace.encoders.precision import choose_device
from labelspace.errors import ConfigError, ModelFolderError
from labelspace.folders import staged
from labelspace.header import CLASSIFIER, HEADER, check_place, new_header, read_header, write_header
from labelspace.labels import LabelSpace

CLASSES: dict[str, type[BiEncoderClassifier]] = {
    "DescriptionClassifier": DescriptionClassifier,
    "LaConClassifier": LaConClassifier,
    "UncertaintyClassifier": UncertaintyClassifier,
    "ZeroShotClassifier": ZeroShotClassifier,
}
CARDS = {LaConClassifier: lacon_card, UncertaintyClassifier: uncertainty_card}
LABELS = "label_space.yaml"
NOT_SAVED = ("labels", "encoder", "callbacks", "search", "cache", "cache_bytes", "checkpoint")
PACKAGES = ("torch", "transformers", "sentence-transformers", "numpy", "scikit-learn")


def save(model: BiEncoderClassifier, folder: Path) -> Path:
    """Write a fitted model; see `BiEncoderClassifier.save`."""
    folder = folder.absolute()
    check_place(folder, CLASSIFIER)
    with staged(folder) as scratch:
        _write(model, scratch)
    return folder


def load(folder: str | Path, *, device: str | None = None, trust_remote_code: bool = False) -> BiEncoderClassifier:
    """Open a model that `save` wrote.

    Args:
        folder: the model's folder.
        device: a torch device, or `"auto"` for the best one here; None: the one that it was saved with, or the best
            one where this machine has no such device.
        trust_remote_code: True lets code run that the model's encoder brings; never without.

    Returns:
        The fitted classifier. On the machine that saved it, its scores are the same to the bit. `fit` begins
        again with the encoder it was first fitted from, and cannot where that was an Encoder trained before; to go
        on from this one, pass the folder as `encoder`.

    Raises:
        ModelFolderError: the folder holds something else, is truncated, of a newer format, or holds a pickle.
        RemoteCodeError: the encoder brings code and `trust_remote_code` is False.
        ConfigError: the device asked for is not on this machine.

    Example:
        >>> import tempfile, labelspace
        >>> clf = labelspace.ZeroShotClassifier(["sports", "politics"], encoder="tests/data/tiny-bert").fit()
        >>> with tempfile.TemporaryDirectory() as folder:
        ...     labelspace.load(clf.save(f"{folder}/model")).predict(["a text"]) == clf.predict(["a text"])
        array([ True])
    """
    folder = Path(folder)
    header = read_header(folder, CLASSIFIER)
    cls: Any = _read_class(folder, header)
    if not (folder / LABELS).is_file():
        raise ModelFolderError(f"{folder} lacks {LABELS}; it was copied in part, copy or save it again.")
    space = LabelSpace.from_file(folder / LABELS)
    try:
        encoding = EncodingConfig.from_dict({**header["encoding"]}).to_dict()
        search = SearchConfig.from_dict(header["search"]) if header.get("search") else None
        name, pooling = str(header["encoder"]["name"] or ""), header["encoder"]["pooling"]
        prompts = {f"{role}_prompt": prompt for role, prompt in header["encoder"]["prompts"].items()}
        saved = {**header["parameters"]}
        if not name:
            raise ConfigError("the encoder that it began with has no name")
    except (KeyError, TypeError, ValueError, AttributeError, ConfigError) as error:
        raise ModelFolderError(f"{folder} cannot be read ({error}); it is damaged, save the model again.") from error
    try:
        encoding["device"] = device or _still_here(encoding["device"])
        encoder = Encoder(folder, **encoding, trust_remote_code=trust_remote_code, offline=True)
        encoder.name, encoder.pooling = name, pooling
        encoder.backbone.trained = cls in (DescriptionClassifier, LaConClassifier) or encoder.name.endswith(TRAINED)
        # A second fit forgets the first: it begins with the encoder as it was before training.
        untrained = {"name": encoder.name, "pooling": encoder.pooling, **prompts, **encoding}
        if trust_remote_code:
            untrained["trust_remote_code"] = trust_remote_code
        parameters: dict[str, Any] = {**saved, "encoder": untrained}
        if "search" in header:
            parameters["search"] = search
        model: Any = cls(space, **parameters)
        model.encoder_, model.started_from_ = encoder, encoder.name
        model.label_vectors_ = _read_vectors(folder, encoder, space)
    except (KeyError, TypeError, SafetensorError) as error:
        raise ModelFolderError(f"{folder} cannot be read ({error}); it is damaged, save the model again.") from error
    _check_parameters(model, folder)
    model._set_labels(space)
    if cls is LaConClassifier:
        read_head(model, folder, header)
    if cls is UncertaintyClassifier:
        read_gaussian(model, folder, header)
    if header.get("fit") is not None:
        model.fit_result_ = SavedFit(header["fit"])
    return model


def _check_parameters(model: Any, folder: Path) -> None:
    """Refuse parameters that nothing would ask about before they are used."""
    try:
        if model.threshold is not None:
            check_number("threshold", model.threshold)
        check_number("temperature", getattr(model, "temperature", 1), above=0)
        check_choice("anchor", getattr(model, "anchor", ANCHORS[0]), ANCHORS)
    except ConfigError as error:
        raise ModelFolderError(f"{folder} cannot be read ({error}); it is damaged, save the model again.") from error


@dataclass(frozen=True)
class SavedFit:
    """What a saved model knows of its fit: the plain values of FitResult.to_dict."""

    values: dict[str, Any]
    """Curve, learning rate, uniformity, pool, seed."""

    def to_dict(self) -> dict[str, Any]:
        """Return the values."""
        return self.values


def _write(model: BiEncoderClassifier, folder: Path) -> None:
    model.encoder_.save(folder)
    model.label_space_.to_file(folder / LABELS)
    _write_vectors(model, folder)
    parameters = {key: plain(value) for key, value in model.get_params(deep=False).items() if key not in NOT_SAVED}
    trained = isinstance(model, (DescriptionClassifier, LaConClassifier, UncertaintyClassifier))
    fit = model.fit_result_.to_dict() if trained else None
    facts = {
        "class": type(model).__name__,
        "parameters": parameters,
        "encoder": {**model.encoder_.describe(), "name": model.started_from_},
        "encoding": model.encoder_.config.to_dict(),
        "fit": fit,
    }
    header = new_header(CLASSIFIER, PACKAGES, **facts)
    if isinstance(model, DescriptionClassifier):
        header["search"] = model.search.to_dict() if model.search else None
    if isinstance(model, LaConClassifier):
        header["lacon"] = write_head(model, folder)
    if isinstance(model, UncertaintyClassifier):
        header["uncertainty"] = write_gaussian(model, folder)
    card = CARDS.get(type(model), model_card)
    (folder / "README.md").write_text(card(model, header), encoding="utf-8")
    write_header(folder, header, editable=(LABELS,))


def _still_here(device: str) -> str:
    """Where a model was trained is no part of it: a device that this machine lacks gives way to the best it has."""
    try:
        choose_device(device)
    except ConfigError:
        return "auto"
    return device


def _read_class(folder: Path, header: dict[str, Any]) -> type[BiEncoderClassifier]:
    name = header.get("class")
    if not isinstance(name, str) or name not in CLASSES:
        raise ModelFolderError(f"{folder / HEADER} names the unknown class {name!r}.{did_you_mean(str(name), CLASSES)}")
    return CLASSES[name]


def _space_hash(space: LabelSpace) -> str:
    return hashlib.sha256(json.dumps(space.to_dict(), sort_keys=True).encode()).hexdigest()


def _write_vectors(model: BiEncoderClassifier, folder: Path) -> None:
    tensors: dict[str, np.ndarray] = {}
    for column, name in enumerate(model.label_space_.names):
        vectors = model.label_vectors_[name]
        tensors[f"{column}.verbalizer"] = np.ascontiguousarray(vectors.verbalizer)
        tensors[f"{column}.descriptions"] = np.ascontiguousarray(vectors.descriptions)
    save_file(tensors, folder / "label_vectors.safetensors", metadata={"space": _space_hash(model.label_space_)})


def _read_vectors(folder: Path, encoder: Encoder, space: LabelSpace) -> dict[str, LabelVectors]:
    with safe_open(folder / "label_vectors.safetensors", framework="numpy") as file:
        # Whoever edits label_space.yaml by hand means it: then the vectors are made anew.
        if (file.metadata() or {}).get("space") != _space_hash(space):
            return encode_labels(encoder, space)
        return {
            name: LabelVectors(
                verbalizer=file.get_tensor(f"{column}.verbalizer"),
                descriptions=file.get_tensor(f"{column}.descriptions"),
            )
            for column, name in enumerate(space.names)
        }
