"""The part of a saved model that only `UncertaintyClassifier` has: head, temperature, limit, held-out record."""

from dataclasses import asdict
from pathlib import Path
from typing import Any

import numpy as np
import torch
from safetensors import SafetensorError
from safetensors.numpy import load_file, save_file

from labelspace.classify.uncertainty import UncertaintyClassifier
from labelspace.errors import ConfigError, ModelFolderError, ShapeError
from labelspace.heads import GaussianHead
from labelspace.training.uncertainty import HeldOut, Limit

HEAD = "uncertainty.safetensors"


def write_gaussian(model: UncertaintyClassifier, folder: Path) -> dict[str, Any]:
    """Write the tensors into the folder, and return what `labelspace.json` must say of them."""
    save_file(model.learnt_tensors(), folder / HEAD)
    return {
        "dim": model.head_.dim,
        "labels": model.head_.classifier.out_features,
        "logit_columns": model.logit_columns_,
        "temperature": model.temperature_,
        "limit": asdict(model.limit_) if model.limit_ else None,
        "labels_from_y": model.labels is None,
    }


def read_gaussian(model: UncertaintyClassifier, folder: Path, header: dict[str, Any]) -> None:
    """Give a model that is read from a folder its head, as `write_gaussian` left it.

    Raises:
        ModelFolderError: the folder is damaged, or names a label that the model has no logit for.
    """
    try:
        facts = header["uncertainty"]
        tensors = load_file(folder / HEAD)
        if facts["labels_from_y"]:
            model.labels = None  # a second fit finds them in its own y
        model.head_ = _head(model, facts, tensors)
        model.head_.to(model.encoder_.backbone.device)
        model.logit_columns_ = {name: int(column) for name, column in facts["logit_columns"].items()}
        model.temperature_ = float(facts["temperature"])
        limit = facts["limit"]
        model.limit_ = None if limit is None else Limit(str(limit["by"]), float(limit["value"]))
        model.held_out_ = HeldOut(
            tensors["held_out.uncertainty"], tensors["held_out.entropy"], tensors["held_out.wrong"].astype(bool)
        )
    except (OSError, KeyError, TypeError, ValueError, AttributeError, SafetensorError, ConfigError) as error:
        raise ModelFolderError(f"{folder} cannot be read ({error}); it is damaged, save the model again.") from error
    for name in model.label_space_.names:
        if name not in model.logit_columns_:
            raise ModelFolderError(
                f"{folder} has the label {name!r} in its label file and no logit for it; take it out, or fit the model "
                "with it."
            )


def _head(model: UncertaintyClassifier, facts: dict[str, Any], tensors: dict[str, np.ndarray]) -> GaussianHead:
    head = GaussianHead(
        int(facts["dim"]),
        int(facts["labels"]),
        generator=torch.Generator(),
        extractor=model.extractor,
        uncertain=model.uncertain,
        dropout=model.dropout,
    )
    with torch.no_grad():
        for name, values in head.named_parameters():
            saved = torch.from_numpy(tensors[f"head.{name}"])
            if saved.shape != values.shape:
                raise ShapeError(f"head.{name} has shape {tuple(saved.shape)} and should have {tuple(values.shape)}")
            values.copy_(saved)
    return head.eval().requires_grad_(False)
