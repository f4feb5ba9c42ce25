"""Description-only training: an encoder meets the meaning of its labels, and no labelled document."""

from labelspace.training.description.fit import FitResult, train_on_descriptions
from labelspace.training.description.learning_rate import RateChoice, Trial

__all__ = ["FitResult", "RateChoice", "Trial", "train_on_descriptions"]
