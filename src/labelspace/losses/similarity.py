r"""Cosine scores between two sets of embeddings, in float32 or wider.

At temperature 0.07 scores reach +-14.3, and bfloat16 keeps two to three digits: whatever the embeddings
come in, the product is taken in float32, also inside autocast. Call `backward` outside it, as torch advises: inside,
the products of the gradient fall to half precision.
"""

import torch
from jaxtyping import Float
from torch import Tensor
from torch.nn import functional as F

from labelspace.axes import Scalar
from labelspace.checks import check_number
from labelspace.errors import ConfigError, ShapeError

Temperature = float | Scalar


def cosine_scores(
    anchors: Float[Tensor, "desc dim"],
    others: Float[Tensor, "label dim"],
    temperature: Temperature = 1.0,
) -> Float[Tensor, "desc label"]:
    r"""Cosine of every pair, divided by the temperature.

    .. math::
        S_{il} = \frac{e(d_i)^\top e(v_l)}{\tau}

    Paper: :math:`s(d, v)` of section 3; `anchors` are descriptions or documents, `others` verbalizers.

    Args:
        anchors: embeddings, not necessarily of unit length.
        others: embeddings of the same width.
        temperature: :math:`\tau`, above zero. A tensor without axes may be learnt, here and in every loss with a
            temperature; its value is not checked, so keep it above zero, for example as the exponential of what is
            learnt.

    Returns:
        The scores, float32 (float64 where an input is), also inside autocast.

    Raises:
        ShapeError: the inputs are not matrices of one width.
        ConfigError: `temperature` is a number that is not above zero.

    Example:
        >>> a = torch.tensor([[1.0, 0.0]])
        >>> b = torch.tensor([[2.0, 0.0], [0.0, 1.0]])
        >>> cosine_scores(a, b, temperature=0.5)
        tensor([[2., 0.]])

    Reference:
        "Description-only supervision", section 3.
    """
    if anchors.ndim != 2 or others.ndim != 2 or anchors.shape[1] != others.shape[1]:
        raise ShapeError(
            "cosine_scores needs two matrices of one width. "
            f"Got shapes {tuple(anchors.shape)} and {tuple(others.shape)} instead."
        )
    check_temperature(temperature)
    wide = torch.promote_types(torch.promote_types(anchors.dtype, others.dtype), torch.float32)
    with torch.autocast(anchors.device.type, enabled=False):
        return F.normalize(anchors.to(wide), dim=-1) @ F.normalize(others.to(wide), dim=-1).T / temperature


def check_temperature(temperature: Temperature) -> None:
    """Raise ConfigError unless it is a number above zero, or a tensor of one number, whose value is not read."""
    if not isinstance(temperature, Tensor):
        check_number("temperature", temperature, above=0)
    elif temperature.ndim:
        raise ConfigError(f"temperature must be a tensor without axes. Got shape {tuple(temperature.shape)} instead.")
