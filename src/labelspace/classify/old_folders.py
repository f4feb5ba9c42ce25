"""Folders of format 1 and 2: their flat parameters, under the names and in the places that they have now."""

from typing import Any

from labelspace.classify.settings import as_arguments

CONFIG_SINCE = 3
"""The format that has a `config` among the parameters."""


def brought_up(header: dict[str, Any], cls: Any) -> dict[str, Any]:
    """Return the header of a classifier's folder as this version writes it; a new one as it is.

    Args:
        header: from `header.read_header`.
        cls: the class of the folder's model.
    """
    if header.get("format", 1) >= CONFIG_SINCE:
        return header
    flat, name = {**header["parameters"]}, cls.__name__
    facts = header.get("uncertainty") or header.get("lacon") or {}
    if name == "UncertaintyClassifier":
        # The first folders did not describe their head; it is that of the parameters.
        described = {option: flat[option] for option in ("extractor", "uncertain", "dropout")}
        header = {**header, "uncertainty": {"head": described, **facts}}
    elif "dropout" in flat:
        flat["encoder_dropout"] = flat.pop("dropout")
    if name == "UncertaintyClassifier" or facts.get("logit_columns"):
        flat["min_probability"] = flat.pop("threshold")
    return {**header, "parameters": as_arguments(cls, flat)}
