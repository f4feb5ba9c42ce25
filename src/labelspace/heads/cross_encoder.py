r"""The head of an NLI cross-encoder, and the entailment score of its logits (BTZSC, appendix C.1).

    h -> Dropout -> W1, b1 -> GELU -> LayerNorm -> W2, b2 -> logits

Axes        here      paper      meaning
            pair      -          pairs (premise, hypothesis) in the batch
            dim       D          width of the [CLS] row
            class     C          1 (binary) or 3 (triplet: entailment, neutral, contradiction)

Its losses come from torch: `binary_cross_entropy_with_logits` for C = 1, `cross_entropy` for C = 3.
"""

from typing import final

import torch
from jaxtyping import Float
from torch import Tensor, nn
from torch.nn import functional as F

from labelspace.checks import check_choice, check_number
from labelspace.errors import ShapeError
from labelspace.heads.layers import check_generator, linear

CLASSES = {"binary": 1, "triplet": 3}


@final
class CrossEncoderHead(nn.Module):
    r"""Two layers from the [CLS] row of a pair to its logits.

    .. math::
        u = \text{GELU}(W_1\,\text{Dropout}(h) + b_1), \qquad \ell = W_2\,\text{LayerNorm}(u) + b_2

    Paper: the same names; :math:`W_2 \in R^{C \times D}`. GELU is exact (by the error function). Initial values are
    torch's for linear layers.

    Args:
        dim: width of the [CLS] row, D.
        classes: number of logits per pair, C: 1 or 3.
        generator: source of the initial values, on the CPU.
        dropout: share of the coordinates of h that are set to 0 in training, 0 to 0.99.

    Raises:
        ConfigError: `classes` is neither 1 nor 3, another argument is out of its range, or the generator is not on the
            CPU.

    Example:
        >>> head = CrossEncoderHead(8, classes=3, generator=torch.Generator().manual_seed(0)).eval()
        >>> head(torch.zeros(2, 8)).shape
        torch.Size([2, 3])

    Reference:
        BTZSC benchmark, appendix C.1.
    """

    def __init__(self, dim: int, *, classes: int, generator: torch.Generator, dropout: float = 0.1) -> None:
        super().__init__()
        check_number("dim", dim, least=1, whole=True)
        check_choice("classes", classes, CLASSES.values())
        check_number("dropout", dropout, least=0, most=0.99)
        check_generator(generator)
        self.dropout = nn.Dropout(float(dropout))
        self.inner = linear(dim, dim, generator)
        self.norm = nn.LayerNorm(dim)
        self.outer = linear(dim, classes, generator)

    def forward(self, states: Float[Tensor, "pair dim"]) -> Float[Tensor, "pair class"]:
        """Return the logits of each pair, [pair class], with the dtype of the weights.

        `states` are the first rows of the encoder's output, one per pair, of any float type.

        Raises:
            ShapeError: `states` is not a matrix as wide as the head.
        """
        if states.ndim != 2 or states.shape[1] != self.inner.in_features:
            raise ShapeError(
                f"states must be a matrix [pair dim] with {self.inner.in_features} columns. "
                f"Got shape {tuple(states.shape)} instead."
            )
        hidden = F.gelu(self.inner(self.dropout(states.to(self.inner.weight.dtype))))
        return self.outer(self.norm(hidden))


def entailment_score(logits: Float[Tensor, "pair class"]) -> Float[Tensor, " pair"]:
    r"""Log-odds of entailment against everything else.

    .. math::
        s = \ell \quad (C = 1), \qquad
        s = \ell_\text{ent} - \log\bigl(e^{\ell_\text{neut}} + e^{\ell_\text{contra}}\bigr) \quad (C = 3)

    Paper: the same names. The probability of entailment is :math:`\sigma(s)` in both cases; for C = 3 this is the first
    entry of the softmax.

    Args:
        logits: [pair class], one column (binary) or three (entailment, neutral, contradiction).

    Returns:
        [pair], any real number, with the dtype and device of `logits`.

    Raises:
        ShapeError: `logits` is not a matrix of one or three columns.

    Example:
        >>> entailment_score(torch.tensor([[0.5], [-2.0]])).tolist()
        [0.5, -2.0]
        >>> round(entailment_score(torch.tensor([[1.0, 1.0, 1.0]])).item(), 4)
        -0.6931

    Reference:
        BTZSC benchmark, appendix C.1, "Three-way variant (triplet)".
    """
    if logits.ndim != 2 or logits.shape[1] not in CLASSES.values():
        raise ShapeError(
            f"logits must be a matrix [pair class] with 1 or 3 columns. Got shape {tuple(logits.shape)} instead."
        )
    if logits.shape[1] == 1:
        return logits[:, 0]
    return logits[:, 0] - torch.logsumexp(logits[:, 1:], dim=1)
