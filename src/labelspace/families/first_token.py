"""The last layer for the first token alone, in cross-encoders whose head reads nothing else.

Behind the attention of the last layer, tokens no longer meet: what is computed of the others there is thrown away. Of
six layers that is an eighth of all products.
"""

from typing import Any

import torch
from torch import Tensor, nn

# What joins attention to the layer's input, in BERT, RoBERTa, XLM-R, ELECTRA, CamemBERT, DeBERTa.
_JOINS = "SelfOutput"

# The trial's logits in float32: rounding of another batch shape, no more.
_TOLERANCE = 1e-4


@torch.inference_mode()
def keep_first_token(model: nn.Module, base: nn.Module) -> bool:
    """Let the last layer of `base` go on with the first token alone, if the logits of `model` stay what they are.

    Args:
        model: takes input_ids and attention_mask, in float32 and evaluation mode.
        base: the transformer in it.

    Returns:
        Whether it does; False leaves the model as it was: another architecture, or a head that reads other tokens too.
    """
    joins = [module for module in base.modules() if type(module).__name__.endswith(_JOINS)]
    if not joins:
        return False
    # Tokens that differ, so that a head which reads another one gives another answer.
    input_ids = torch.arange(5, 13, device=next(model.parameters()).device).reshape(2, 4)
    trial = {"input_ids": input_ids, "attention_mask": torch.ones_like(input_ids)}
    before = _logits(model(**trial))
    hook = joins[-1].register_forward_pre_hook(_first_token)
    try:
        after = _logits(model(**trial))
        if after.shape == before.shape and torch.allclose(before, after, rtol=_TOLERANCE, atol=_TOLERANCE):
            return True
    except (RuntimeError, IndexError, ValueError, TypeError):  # a model that needs the others: they are not there
        pass
    hook.remove()
    return False


def _first_token(_module: nn.Module, inputs: tuple[Any, ...]) -> tuple[Any, ...]:
    # Contiguous: a product with a slice would copy its matrix for every row of the batch.
    return tuple(
        value[:, :1].contiguous() if isinstance(value, Tensor) and value.ndim == 3 else value for value in inputs
    )


def _logits(answer: Any) -> Tensor:
    return answer if isinstance(answer, Tensor) else answer.logits
