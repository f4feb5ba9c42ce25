"""Description-only training: adapt an encoder to the meaning of its labels, without labelled documents."""

from labelspace.training.description.fit import FitResult, train_on_descriptions
from labelspace.training.description.learning_rate import RateChoice, Trial

__all__ = ["FitResult", "RateChoice", "Trial", "train_on_descriptions"]
