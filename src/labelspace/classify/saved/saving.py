"""Writing a fitted model to a folder, and reading it. No pickle is written or read.

    model/
    ├── modules.json, config.json, model.safetensors ...   a sentence-transformers model
    ├── label_space.yaml                                   the labels, may be edited
    ├── label_vectors.safetensors                          the labels' encoded texts
    ├── lacon.safetensors, words.safetensors ...           a class's own tensors
    ├── members/0/, members/1/ ...                         models that the model consists of
    ├── labelspace.json                                    class, parameters, versions, facts of the fit
    └── README.md                                          the model card

The folder is written under a temporary name and moved into place in one step. Both directions use a `State`; `opening`
chooses the class.
"""

import hashlib
import json
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from safetensors import SafetensorError, safe_open
from safetensors.numpy import load_file, save_file

from labelspace.classify.anchors import OUTSIDE, LabelVectors, encode_labels
from labelspace.classify.arguments import TRAINED
from labelspace.classify.saved.model_card import Card, model_card
from labelspace.classify.saved.state import State
from labelspace.config import EncodingConfig
from labelspace.errors import ConfigError, ModelFolderError
from labelspace.folders import staged
from labelspace.header import CLASSIFIER, check_place, new_header, write_header
from labelspace.labels import LabelSpace

if TYPE_CHECKING:
    from labelspace.encoders import Encoder

LABELS = "label_space.yaml"
VECTORS = "label_vectors.safetensors"
MEMBERS = "members"
ABOUT_THE_HUB = ("revision", "offline")
"""Arguments of `Encoder` that are kept if they were given."""

PACKAGES = ("torch", "transformers", "sentence-transformers", "numpy", "scikit-learn")


def write(state: State, card: Card, folder: Path, *, name: str, tensors_file: str | None) -> Path:
    """Write a fitted model; see `Classifier.save`.

    Args:
        state: the state of the model.
        card: its model card.
        folder: the target folder.
        name: name of its class.
        tensors_file: file name of the class's own tensors, if it has any.
    """
    folder = folder.absolute()
    check_place(folder, CLASSIFIER)
    with staged(folder) as scratch:
        state.space.to_file(scratch / LABELS)
        encoder = state.encoder
        if encoder is not None:
            encoder.save(scratch)
            _write_vectors(state, scratch / VECTORS)
        for number, member in enumerate(state.members):
            member.save(scratch / MEMBERS / str(number))
        if tensors_file is not None:
            tensors = {key: np.ascontiguousarray(values) for key, values in state.tensors.items()}
            save_file(tensors, scratch / tensors_file)
        facts = {
            "class": name,
            "parameters": state.parameters,
            "encoder": encoder and {**encoder.describe(), "name": state.started_from, **_of_hub(encoder)},
            "encoding": encoder and encoder.config.to_dict(),
            "fit": state.fit,
            **state.facts,
        }
        header = new_header(CLASSIFIER, PACKAGES, **facts)
        (scratch / "README.md").write_text(model_card(card, header, state.space), encoding="utf-8")
        write_header(scratch, header, editable=(LABELS,))
    return folder


def _of_hub(encoder: "Encoder") -> dict[str, Any]:
    told = {option: getattr(encoder, option) for option in ABOUT_THE_HUB}
    return {option: value for option, value in told.items() if value is not None}


def read(
    folder: Path,
    header: dict[str, Any],
    *,
    tensors_file: str | None,
    trains_encoder: bool,
    device: str | None,
    trust_remote_code: bool,
) -> State:
    """Read a folder that `write` wrote.

    Args:
        folder: the model's folder.
        header: its header, from `header.read_header`.
        tensors_file: file name of the class's own tensors, if it has any.
        trains_encoder: whether the class trains the encoder.
        device: as for `load`.
        trust_remote_code: as for `load`.

    Raises:
        ModelFolderError: the folder is damaged.
    """
    if not (folder / LABELS).is_file():
        raise ModelFolderError(f"{folder} lacks {LABELS}; it was copied in part, copy or save it again.")
    space = LabelSpace.from_file(folder / LABELS)
    try:
        state = State(
            space=space,
            parameters={**header["parameters"]},
            fit=header.get("fit"),
            facts=header,
            tensors=load_file(folder / tensors_file) if tensors_file is not None else {},
            place=folder,
        )
        if header.get("encoder", "") is None:
            return state
        encoding = EncodingConfig.from_dict(header["encoding"]).to_dict()
        name, pooling = str(header["encoder"]["name"] or ""), header["encoder"]["pooling"]
        prompts = {f"{role}_prompt": prompt for role, prompt in header["encoder"]["prompts"].items()}
        hub = {option: header["encoder"][option] for option in ABOUT_THE_HUB if option in header["encoder"]}
        if not name:
            raise ConfigError("the encoder that it began with has no name")
        encoding["device"] = device or _still_here(encoding["device"])
    except (OSError, KeyError, TypeError, ValueError, AttributeError, SafetensorError, ConfigError) as error:
        raise damaged(folder, error) from error
    from labelspace.encoders import Encoder

    try:
        encoder = Encoder(folder, **encoding, trust_remote_code=trust_remote_code, offline=True)
        encoder.name, encoder.pooling = name, pooling
        encoder.revision, encoder.offline = hub.get("revision"), hub.get("offline")
        encoder.trained = trains_encoder or name.endswith(TRAINED)
        # A second fit starts from the encoder as it was before training.
        untrained = {"name": name, "pooling": pooling, **prompts, **encoding, **hub}
        if trust_remote_code:
            untrained["trust_remote_code"] = trust_remote_code
        return replace(
            state,
            encoder=encoder,
            started_from=name,
            label_vectors=_read_vectors(folder / VECTORS, encoder, space),
            parameters={**state.parameters, "encoder": untrained},
        )
    except (KeyError, TypeError, SafetensorError) as error:
        raise damaged(folder, error) from error


def damaged(folder: Path, error: Exception | str) -> ModelFolderError:
    """Return the error for a folder that cannot be read."""
    return ModelFolderError(f"{folder} cannot be read ({error}); it is damaged, save the model again.")


def _still_here(device: str) -> str:
    """Return the device, or `"auto"` if this machine lacks it."""
    from labelspace.encoders.precision import choose_device

    try:
        choose_device(device)
    except ConfigError:
        return "auto"
    return device


def _space_hash(space: LabelSpace) -> str:
    return hashlib.sha256(json.dumps(space.to_dict(), sort_keys=True).encode()).hexdigest()


def _write_vectors(state: State, path: Path) -> None:
    tensors: dict[str, np.ndarray] = {}
    for column, name in enumerate(state.space.names):
        vectors = state.label_vectors[name]
        tensors[f"{column}.verbalizer"] = np.ascontiguousarray(vectors.verbalizer)
        tensors[f"{column}.descriptions"] = np.ascontiguousarray(vectors.descriptions)
        if vectors.excludes is not None:
            tensors[f"{column}.not"] = np.ascontiguousarray(vectors.excludes)
    if state.space.outside and OUTSIDE in state.label_vectors:
        tensors["outside"] = np.ascontiguousarray(state.label_vectors[OUTSIDE].descriptions)
    save_file(tensors, path, metadata={"space": _space_hash(state.space)})


def _read_vectors(path: Path, encoder: "Encoder", space: LabelSpace) -> dict[str, LabelVectors]:
    with safe_open(path, framework="numpy") as file:
        # label_space.yaml was edited by hand, or an older version left out what lies outside: encode the labels again.
        edited = (file.metadata() or {}).get("space") != _space_hash(space)
        if edited or (space.outside and "outside" not in file.keys()):  # noqa: SIM118 - the file is no dictionary
            return encode_labels(encoder, space)
        found = {
            name: LabelVectors(
                verbalizer=file.get_tensor(f"{column}.verbalizer"),
                descriptions=file.get_tensor(f"{column}.descriptions"),
                excludes=file.get_tensor(f"{column}.not") if label.excludes else None,
            )
            for column, (name, label) in enumerate(zip(space.names, space.labels, strict=True))
        }
        if space.outside:
            texts = file.get_tensor("outside")
            found[OUTSIDE] = LabelVectors(verbalizer=texts[0], descriptions=texts)
        return found
