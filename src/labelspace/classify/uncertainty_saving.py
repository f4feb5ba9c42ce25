"""The part of a saved model that only `UncertaintyClassifier` has: head, temperature, limit, held-out record."""

from dataclasses import asdict
from pathlib import Path
from typing import Any

import numpy as np
import torch
from safetensors import SafetensorError
from safetensors.numpy import load_file, save_file

from labelspace.checks import check_choice, check_number
from labelspace.classify.abstaining import RANKINGS
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
        # Its own, because the parameters may have been set for another fit since.
        "head": model.head_.options,
        "logit_columns": model.logit_columns_,
        "temperature": model.temperature_,
        "limit": asdict(model.limit_) if model.limit_ else None,
        "labels_from_y": model.labels is None,
        "keeps_states": model.cache is not None,
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
        if not facts["keeps_states"]:
            model.cache = None  # where is a matter of the machine, that nothing is written is the caller's wish
        model.head_ = _head(model, facts, tensors)
        model.head_.to(model.encoder_.backbone.device)
        model.logit_columns_ = _columns(facts["logit_columns"], model.head_.classifier.out_features)
        model.temperature_ = float(facts["temperature"])
        check_number("temperature", model.temperature_, above=0)
        limit = facts["limit"]
        model.limit_ = None if limit is None else Limit(limit["by"], float(limit["value"]))
        if model.limit_ is not None:
            check_choice("limit", model.limit_.by, RANKINGS[1:])
            check_number("limit", model.limit_.value)
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
    model._forget_logits()


def _columns(given: dict[str, Any], labels: int) -> dict[str, int | None]:
    # None is a label that no row taught.
    columns = {name: None if column is None else int(column) for name, column in given.items()}
    taught = [column for column in columns.values() if column is not None]
    if len(set(taught)) < len(taught) or not set(taught) <= set(range(labels)):
        raise ShapeError(f"logit_columns must be different numbers below {labels}, and are {list(columns.values())}")
    return columns


def _head(model: UncertaintyClassifier, facts: dict[str, Any], tensors: dict[str, np.ndarray]) -> GaussianHead:
    # Older folders have no "head"; there the parameters are those of the fit.
    options = facts.get("head", {name: getattr(model, name) for name in ("extractor", "uncertain", "dropout")})
    head = GaussianHead(int(facts["dim"]), int(facts["labels"]), generator=torch.Generator(), **options)
    own = {f"head.{name}" for name, _ in head.named_parameters()}
    foreign = sorted(name for name in tensors if name.startswith("head.") and name not in own)
    if foreign:
        raise ShapeError(f"{foreign[0]} is of another head than labelspace.json tells of")
    with torch.no_grad():
        for name, values in head.named_parameters():
            saved = torch.from_numpy(tensors[f"head.{name}"])
            if saved.shape != values.shape:
                raise ShapeError(f"head.{name} has shape {tuple(saved.shape)} and should have {tuple(values.shape)}")
            values.copy_(saved)
    return head.eval().requires_grad_(False)
