"""A Gaussian head on a frozen encoder, trained from token states that are computed once."""

from labelspace.training.abstention import Limit, entropy
from labelspace.training.uncertainty.fit import HeldOut, UncertaintyFit, train_gaussian_head
from labelspace.training.uncertainty.outputs import Outputs, outputs_of_states, outputs_of_texts

__all__ = [
    "HeldOut",
    "Limit",
    "Outputs",
    "UncertaintyFit",
    "entropy",
    "outputs_of_states",
    "outputs_of_texts",
    "train_gaussian_head",
]
