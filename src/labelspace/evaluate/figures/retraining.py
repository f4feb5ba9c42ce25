"""What the figures that retrain a model share: which models can be, from what, and on which documents."""

from typing import Any

from labelspace.classify import BiEncoderClassifier, DescriptionClassifier
from labelspace.classify.base import as_encoder
from labelspace.config import SearchConfig
from labelspace.corpus import Pool, sample_pool
from labelspace.encoders import Encoder
from labelspace.errors import ConfigError, InputError


def retrainable(model: BiEncoderClassifier, what: str) -> DescriptionClassifier:
    """Return a fitted model that learns from descriptions, or refuse it in one line.

    Raises:
        ConfigError: a model of another kind, or without any description.
    """
    if not isinstance(model, DescriptionClassifier):
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


def base_encoder(model: DescriptionClassifier) -> Encoder:
    """Open the encoder that `fit` would begin with; weights of its own, free to be trained.

    Raises:
        EncoderError: it is not on this machine, or not any more.
    """
    given = as_encoder(model.encoder)
    return given.copy() if given is model.encoder else given


def pool_of(model: DescriptionClassifier, pool: Any, *, seed: int, what: str) -> Pool:
    """Draw the unlabelled documents, as many as the model's search takes.

    Raises:
        InputError: fewer than two documents, or one that is none.
    """
    size = (model.search or SearchConfig()).documents
    drawn = pool if isinstance(pool, Pool) else sample_pool([] if pool is None else pool, size=size, seed=seed)
    if len(drawn.texts) < 2:
        raise InputError(f"{what} needs a pool of two different documents or more. Got {len(drawn.texts)}; give more.")
    return drawn
