"""Models written for the btzsc package, as scorers and models of ours.

    HarnessScorer(model)    their model   -> our Scorer:  scores(texts, space)
    open_harness(model)     their model   -> our OpenModel, for `run`

Their interface takes labels as sentences; ours takes a label space, whose verbalizers are those sentences.
"""

from collections.abc import Sequence
from pathlib import Path
from typing import Any, Protocol, final, runtime_checkable

import numpy as np
from numpy.typing import NDArray

from labelspace.bench.models import FAMILIES_OF_MODELS, OTHER, OpenModel
from labelspace.bench.revision import model_revision
from labelspace.errors import ConfigError, InputError
from labelspace.labels import LabelSpace

BATCH_SIZE = 32
"""Texts per batch, passed to the model; the package's own default."""


@runtime_checkable
class HarnessLike(Protocol):
    """The part of the btzsc package's model interface that is used here."""

    def predict_scores(self, texts: list[str], labels: list[str], batch_size: int = 32) -> Any:
        """Return [text label], higher is likelier."""
        ...


@final
class HarnessScorer:
    """A model written for the btzsc package, as a Scorer.

    Args:
        model: an object with `predict_scores(texts, labels, batch_size)`.

    Raises:
        ConfigError: the object has no such method.

    Example:
        >>> class Lengths:
        ...     model_type = "embedding"
        ...     def predict_scores(self, texts, labels, batch_size=32):
        ...         return [[-abs(len(text) - len(label)) for label in labels] for text in texts]
        >>> space = LabelSpace.from_dict({"labels": {"short": {"verbalizer": "ab"}, "long": {"verbalizer": "abcdef"}}})
        >>> scorer = HarnessScorer(Lengths())
        >>> scorer.family, scorer.scores(["xyz", "uvwxy"], space).tolist()
        ('embedding', [[-1.0, -3.0], [-3.0, -1.0]])
    """

    def __init__(self, model: HarnessLike) -> None:
        if not callable(getattr(model, "predict_scores", None)):
            raise ConfigError(
                "model must have a method predict_scores(texts, labels, batch_size). "
                f"Got {type(model).__name__} instead."
            )
        self.model = model
        self.family: str = str(getattr(model, "model_type", OTHER))
        self.name: str = str(getattr(model, "model_name", type(model).__name__))

    def scores(self, texts: Sequence[str], space: LabelSpace) -> NDArray[np.float32]:
        """Return [text label], higher is likelier, columns in the order of the space.

        Raises:
            InputError: the model returned a value that is not a number.
        """
        given = self.model.predict_scores(list(texts), list(space.verbalizers), batch_size=BATCH_SIZE)
        try:
            return np.asarray(given, dtype=np.float32)
        except (TypeError, ValueError) as error:
            raise InputError(
                f"{self.name} gave scores that are not a matrix of numbers ({error}); return [text label]."
            ) from error

    def describe(self) -> dict[str, Any]:
        """Return the scorer's description as plain values."""
        return {"name": self.name, "family": self.family, "adapter": "btzsc", "batch_size": BATCH_SIZE}


def open_harness(model: HarnessLike) -> OpenModel:
    """Wrap a model with the btzsc package's interface as an `OpenModel` for `run`.

    The specification is `harness:` followed by `model_name`, or by the class name. The family is `model_type` if it is
    one of ours, else `"custom"`. Such a model does not score pairs of sentences, so it has no NLI AUROC.

    Args:
        model: an object with `predict_scores(texts, labels, batch_size)`. Its parameters are counted if its attribute
            `model` is a torch module, as in the package; its weights are hashed if `model_name` is a folder.

    Raises:
        ConfigError: the object has no such method, or is a class.

    Example:
        >>> class Lengths:
        ...     model_type = "length"
        ...     def predict_scores(self, texts, labels, batch_size=32):
        ...         return [[-abs(len(text) - len(label)) for label in labels] for text in texts]
        >>> opened = open_harness(Lengths())
        >>> opened.spec, opened.family, opened.parameters
        ('harness:Lengths', 'custom', None)
    """
    if isinstance(model, type):
        raise ConfigError(f"model must be an object, not a class. Got {model.__name__}; call it first.")
    scorer = HarnessScorer(model)
    folder = Path(scorer.name)
    is_folder = folder.is_dir()
    parameters, dtype = _weights(getattr(model, "model", None))
    return OpenModel(
        scorer=scorer,
        spec=f"harness:{scorer.name}",
        name=folder.resolve().name if is_folder else scorer.name,
        family=scorer.family if scorer.family in FAMILIES_OF_MODELS else OTHER,
        parameters=parameters,
        revision=model_revision(folder) if is_folder else None,
        describe={**scorer.describe(), "dtype": dtype},
    )


def _weights(module: Any) -> tuple[int | None, str]:
    """Return a torch module's parameter count and dtype; None and float32 for anything else."""
    if not callable(getattr(module, "parameters", None)):
        return None, "float32"
    weights = [each for each in module.parameters() if hasattr(each, "numel")]
    kinds = {str(each.dtype).removeprefix("torch.") for each in weights if each.dtype.is_floating_point}
    return sum(each.numel() for each in weights) or None, min(kinds, default="float32")
