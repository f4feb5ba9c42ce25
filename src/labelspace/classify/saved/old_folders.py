"""Conversion of model folders of format 1 and 2 to the current parameter names."""

from typing import Any

from labelspace.classify.settings import as_arguments

CONFIG_SINCE = 3
"""First format with `config` among the parameters."""

RENAMED = {"dropout": "encoder_dropout", "projection": "projection_head"}
"""New names of parameters of those classifiers that train the encoder."""


def brought_up(header: dict[str, Any], cls: Any) -> dict[str, Any]:
    """Convert the header of a classifier folder to the current parameters.

    Args:
        header: the header, from `header.read_header`.
        cls: class of the saved model.
    """
    flat: dict[str, Any] = {**header["parameters"]}
    name = cls.__name__
    facts = header.get("uncertainty") or header.get("lacon") or {}
    if name == "UncertaintyClassifier":
        # Format 1 did not describe the head, so take it from the parameters.
        described = {option: flat[option] for option in ("extractor", "uncertain", "dropout")}
        header = {**header, "uncertainty": {"head": described, **facts}}
    else:
        flat = {RENAMED.get(option, option): value for option, value in flat.items()}
    if name == "UncertaintyClassifier" or facts.get("logit_columns"):
        flat["min_probability"] = flat.pop("threshold")
    return {**header, "parameters": as_arguments(cls, flat)}
