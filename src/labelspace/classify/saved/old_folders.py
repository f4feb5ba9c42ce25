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
    if "temperature" in header and "temperature_by" not in header:
        # Only a consensus told then what its temperature was chosen by.
        fit = header.get("fit") or {}
        by = fit["probabilities"] if "probabilities" in fit else (fit.get("consensus") or {}).get("probabilities")
        header = {**header, "temperature_by": by}
    if header.get("format", 1) >= CONFIG_SINCE:
        # An argument of then may be a field of the configuration now.
        return {**header, "parameters": as_arguments(cls, header["parameters"])}
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
