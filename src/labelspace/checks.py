"""Input checks that need nothing but the standard library.

Only `ndim`, `shape` and `dtype` of a tensor are read, so that this file need not import torch.
"""

import difflib
import importlib
import math
import numbers
from collections.abc import Iterable, Mapping
from types import ModuleType
from typing import Any, Protocol

from labelspace.errors import ConfigError, InputError, MissingDependencyError, ShapeError

_INTEGERS = ("torch.int64", "torch.int32", "torch.int16", "torch.int8", "torch.uint8")


class HasShape(Protocol):
    """Anything with a shape: a torch tensor, a numpy array."""

    @property
    def ndim(self) -> int: ...

    @property
    def shape(self) -> tuple[int, ...]: ...

    @property
    def dtype(self) -> Any: ...


def did_you_mean(word: str, known: Iterable[str]) -> str:
    """Return `" Did you mean 'x'?"` for the closest known word, or an empty string.

    Example:
        >>> did_you_mean("desciptions", ["name", "descriptions"])
        " Did you mean 'descriptions'?"
    """
    close = difflib.get_close_matches(word, list(known), n=1, cutoff=0.6)
    return f" Did you mean '{close[0]}'?" if close else ""


def check_choice(name: str, value: object, choices: Iterable[object]) -> None:
    """Raise ConfigError unless `value` is one of `choices`."""
    choices = list(choices)
    if value not in choices:
        listed = ", ".join(repr(choice) for choice in choices)
        raise ConfigError(f"{name} must be one of {listed}. Got {value!r} instead.")


def check_number(
    name: str,
    value: object,
    *,
    above: float | None = None,
    least: float | None = None,
    most: float | None = None,
    below: float | None = None,
    whole: bool = False,
) -> None:
    """Raise ConfigError unless `value` is a finite number within the bounds.

    Args:
        name: name of the value in the message.
        value: the value, possibly a numpy scalar; a boolean is refused.
        above: exclusive lower bound.
        least: inclusive lower bound.
        most: inclusive upper bound.
        below: exclusive upper bound.
        whole: True: integers only.
    """
    kind = "a whole number" if whole else "a number"
    bounds = []
    if above is not None:
        bounds.append(f"above {above:g}")
    if least is not None:
        bounds.append(f"at least {least:g}")
    if most is not None:
        bounds.append(f"at most {most:g}")
    if below is not None:
        bounds.append(f"below {below:g}")
    wanted = " ".join([kind, " and ".join(bounds)]).strip()
    # Floats of any library, but no Fraction, which arrays cannot compute with.
    is_float = isinstance(value, numbers.Real) and not isinstance(value, numbers.Rational)
    is_number = isinstance(value, numbers.Integral) or (is_float and not whole)
    fits = (
        is_number
        and not isinstance(value, bool)
        and math.isfinite(value)  # pyright: ignore[reportArgumentType]
        and (above is None or value > above)  # pyright: ignore[reportOperatorIssue]
        and (least is None or value >= least)  # pyright: ignore[reportOperatorIssue]
        and (most is None or value <= most)  # pyright: ignore[reportOperatorIssue]
        and (below is None or value < below)  # pyright: ignore[reportOperatorIssue]
    )
    if not fits:
        raise ConfigError(f"{name} must be {wanted}. Got {_shown(value)} instead.")


def _shown(value: object) -> str:
    """Return a value on one line; of anything long, such as a table with texts, its type alone."""
    shown = repr(value)
    return shown if len(shown) <= 60 and "\n" not in shown else f"a {type(value).__name__}"


def as_seed(seed: object) -> int:
    """Return a seed as a Python int; raise ConfigError unless it is a whole number, 0 or more."""
    check_number("seed", seed, least=0, whole=True)
    return int(seed)  # pyright: ignore[reportArgumentType]


def as_python(value: Any) -> Any:
    """Turn numpy scalars, also inside lists and dictionaries, into Python's own; return all else unchanged.

    JSON cannot represent numpy scalars, and a float32 among Python floats would turn results into float32.

    Example:
        >>> import numpy as np
        >>> as_python({"threshold": np.float32(0.5), "anchor": "both", "heads": [np.int64(2)]})
        {'threshold': 0.5, 'anchor': 'both', 'heads': [2]}
    """
    if isinstance(value, Mapping):
        return {key: as_python(inner) for key, inner in value.items()}
    if isinstance(value, (list, tuple)):
        return type(value)(as_python(inner) for inner in value)
    is_scalar = getattr(value, "ndim", None) == 0 and hasattr(value, "item")
    return value.item() if is_scalar else value


def check_scores_and_targets(scores: HasShape, targets: HasShape, name: str = "scores") -> None:
    """Raise ShapeError unless `scores` is a matrix, and as `check_targets`; `name` is the caller's for the scores."""
    if scores.ndim != 2:
        raise ShapeError(f"{name} must be a matrix [desc label]. Got shape {tuple(scores.shape)} instead.")
    check_targets(targets, scores.shape[0], f"column number per row of {name}")


def check_vectors_and_targets(
    texts: HasShape, labels: HasShape, targets: HasShape, names: str = "instances [text dim] and labels [label dim]"
) -> None:
    """Raise ShapeError unless both are matrices of one width that are not empty, and as `check_targets`."""
    got = f"Got shapes {tuple(texts.shape)} and {tuple(labels.shape)} instead."
    if texts.ndim != 2 or labels.ndim != 2 or texts.shape[1] != labels.shape[1]:
        raise ShapeError(f"{names} must be matrices of one width. {got}")
    if 0 in texts.shape or labels.shape[0] == 0:
        raise ShapeError(f"a batch needs one text, one label and one coordinate at least. {got}")
    check_targets(targets, texts.shape[0], "label number per text")


def check_targets(targets: HasShape, count: int, what: str) -> None:
    """Raise ShapeError unless `targets` has `count` entries, and InputError unless they are integers."""
    if targets.ndim != 1 or targets.shape[0] != count:
        raise ShapeError(f"targets must hold one {what} ({count}). Got shape {tuple(targets.shape)} instead.")
    check_integers("targets", targets)


def check_integers(name: str, values: HasShape) -> None:
    """Raise InputError unless `values` is a torch tensor of integers. No value is read: on a GPU that would wait."""
    if str(values.dtype) not in _INTEGERS:
        got = f"{type(values).__name__} of {values.dtype}"
        raise InputError(f"{name} must be a torch tensor of whole numbers. Got {got} instead.")


def check_callbacks(callbacks: object) -> None:
    """Raise ConfigError unless `callbacks` is a list or tuple of callables."""
    if not isinstance(callbacks, (list, tuple)) or not all(callable(one) for one in callbacks):
        cure = "; pass [it]" if callable(callbacks) else ""
        raise ConfigError(
            f"callbacks must be a list of callables. Got {type(callbacks).__name__}"
            f"{' of other things' if isinstance(callbacks, (list, tuple)) else ''} instead{cure}."
        )


def import_optional(module: str, *, package: str, extra: str, purpose: str) -> ModuleType:
    """Import `module`, or raise MissingDependencyError with the install command.

    Args:
        module: dotted module name, for example `"umap"`.
        package: its name in the package index, for example `"umap-learn"`.
        extra: the extra of labelspace that installs it.
        purpose: the feature that needs it, as the subject of a sentence.
    """
    try:
        return importlib.import_module(module)
    except ModuleNotFoundError as error:
        raise MissingDependencyError(package, extra, purpose) from error


def check_keys(where: str, given: Iterable[Any], known: Iterable[str], *, what: str = "option") -> None:
    """Raise ConfigError for the first unknown key, naming the closest known one."""
    known = list(known)
    for key in given:
        if key not in known:
            raise ConfigError(
                f"{where} has no {what} {key!r}.{did_you_mean(str(key), known)} Known: {', '.join(known)}."
            )
