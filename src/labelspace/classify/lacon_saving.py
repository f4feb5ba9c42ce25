"""The part of a saved model that only `LaConClassifier` has: its head and its label embeddings, in safetensors."""

from pathlib import Path
from typing import Any

import numpy as np
import torch
from safetensors import SafetensorError
from safetensors.numpy import load_file, save_file

from labelspace.classify.lacon import LaConClassifier
from labelspace.errors import ModelFolderError, ShapeError
from labelspace.training.lacon import HeadShape, LaConHead

HEAD = "lacon.safetensors"


def write_head(model: LaConClassifier, folder: Path) -> dict[str, Any]:
    """Write the tensors into the folder, and return what `labelspace.json` must say of them."""
    head = model.head_
    save_file(model.learnt_tensors(), folder / HEAD)
    return {
        "head": head.shape.to_dict() if head is not None else None,
        "embedded": list(model.label_embeddings_),
        "logit_columns": model.logit_columns_,
        "pairs": model.pairs_,
        "labels_from_y": model.labels is None,
    }


def read_head(model: LaConClassifier, folder: Path, header: dict[str, Any]) -> None:
    """Give a model that is read from a folder its head, as `write_head` left it.

    A label that was added by hand to the label file is placed by its descriptions; so are all of a model that saw no
    labelled row.

    Raises:
        ModelFolderError: the folder is damaged, its label file names a label that the model has no logit for, or a
            label that was learnt is gone from it where another has come.
    """
    try:
        facts = header["lacon"]
        tensors = load_file(folder / HEAD)
        model.pairs_ = bool(facts["pairs"])
        if facts["labels_from_y"]:
            model.labels = None  # a second fit finds them in its own y
        model.head_ = _head(facts["head"], tensors)
        if model.head_ is not None:
            model.head_.to(model.encoder_.backbone.device)
        model.logit_columns_ = {name: int(column) for name, column in facts["logit_columns"].items()}
        model.label_embeddings_ = {name: tensors[f"embeddings.{n}"] for n, name in enumerate(facts["embedded"])}
    except (OSError, KeyError, TypeError, ValueError, AttributeError, SafetensorError) as error:
        raise ModelFolderError(f"{folder} cannot be read ({error}); it is damaged, save the model again.") from error
    if model.head_ is None:
        # No row has moved a label from where its texts are, and these may have been edited by hand.
        model._set_head(None, model.label_space_.names)
    known = model.logit_columns_ or model.label_embeddings_
    lost = [name for name in known if name not in model.label_space_]
    new = [name for name in model.label_space_.names if name not in known]
    if model.head_ is not None and lost and new:
        raise ModelFolderError(
            f"{folder} has learnt the label {lost[0]!r}, and its label file has {new[0]!r} in place of it; put the old "
            "name back, and rename it with rename_label after loading."
        )
    for label, verbalizer in zip(model.label_space_.labels, model.label_space_.verbalizers, strict=True):
        if label.name in known:
            continue
        if model.logit_columns_:
            raise ModelFolderError(
                f"{folder} has the label {label.name!r} in its label file and no logit for it; take it out, or fit "
                "the model with it."
            )
        model.label_embeddings_[label.name] = model._place(label, verbalizer)


def _head(shape: dict[str, Any] | None, tensors: dict[str, np.ndarray]) -> LaConHead | None:
    if shape is None:
        return None
    head = LaConHead(HeadShape.from_dict(shape), generator=torch.Generator())
    with torch.no_grad():
        for name, values in head.named_parameters():
            saved = torch.from_numpy(tensors[f"head.{name}"])
            if saved.shape != values.shape:
                raise ShapeError(f"head.{name} has shape {tuple(saved.shape)} and should have {tuple(values.shape)}")
            values.copy_(saved)
    return head.eval()
