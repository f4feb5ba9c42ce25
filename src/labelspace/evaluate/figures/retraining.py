"""What the figures that retrain a model share: which models can be, from what, and on which documents."""

from typing import Any, Protocol, runtime_checkable

from labelspace.classify import BiEncoderClassifier
from labelspace.config import SearchConfig, TrainingConfig
from labelspace.corpus import Pool, sample_pool
from labelspace.errors import ConfigError, InputError
from labelspace.labels import LabelSpace


@runtime_checkable
class LearnsFromDescriptions(Protocol):
    """A fitted classifier whose training on descriptions can be done again, by the parameters that it has."""

    encoder: Any
    label_space_: LabelSpace
    fit_result_: Any
    search: SearchConfig | None
    max_steps: int
    seed: int

    def training_config(self) -> TrainingConfig:
        """Return the parameters that concern training."""
        ...

    def get_params(self, deep: bool = True) -> dict[str, Any]:
        """Return all parameters."""
        ...


def retrainable(model: BiEncoderClassifier, what: str) -> LearnsFromDescriptions:
    """Return a fitted model that learns from descriptions, or refuse it in one line.

    Raises:
        ConfigError: a model of another kind, or without any description.
    """
    if not isinstance(model, LearnsFromDescriptions):
        raise ConfigError(
            f"{what} needs a model that was trained on descriptions. Got {type(model).__name__}, which is not; "
            "fit a DescriptionClassifier (labelspace fit)."
        )
    if not any(model.label_space_.descriptions):
        raise ConfigError(
            f"{what} needs descriptions to train on. Got {len(model.label_space_)} labels without any; write some and "
            "fit the model again."
        )
    return model


def pool_of(model: LearnsFromDescriptions, pool: Any, *, seed: int, what: str) -> Pool:
    """Draw the unlabelled documents, as many as the model's search takes.

    Raises:
        InputError: fewer than two documents, or one that is none.
    """
    size = (model.search or SearchConfig()).documents
    drawn = pool if isinstance(pool, Pool) else sample_pool([] if pool is None else pool, size=size, seed=seed)
    if len(drawn.texts) < 2:
        raise InputError(f"{what} needs a pool of two different documents or more. Got {len(drawn.texts)}; give more.")
    return drawn
