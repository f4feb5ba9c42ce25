"""Axis names, the same in shape annotations, docstrings and error messages.

    text    documents or any other texts, in the order given
    desc    descriptions in a sweep, all labels stacked
    label   labels, in the order of the LabelSpace
    dim     coordinates of an embedding
    pair    sampled pairs (i, j) of texts
    token   tokens of one text, padded to the longest of a batch

`Scores` and the other annotations are for the numeric folders (`losses`, `geometry`, `heads`). Only tests check them,
through the jaxtyping import hook.
"""

from jaxtyping import Float, Int
from torch import Tensor

Scores = Float[Tensor, "desc label"]
Targets = Int[Tensor, " desc"]
Embeddings = Float[Tensor, "text dim"]
Scalar = Float[Tensor, ""]
