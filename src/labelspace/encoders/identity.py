"""Which encoder is this: a hash of all that decides what it makes of token ids."""

import hashlib
import json
from collections.abc import Iterable

import torch
from torch import Tensor

from labelspace.encoders.encoder import Encoder

# Of a configuration: where it lies and who wrote it.
IRRELEVANT = ("_name_or_path", "transformers_version")


def encoder_hash(encoder: Encoder, *, states: bool = False) -> str:
    """Return a hash of all that decides which vector an encoder makes of given token ids, but for its device.

    Args:
        encoder: its weights are read, all of them.
        states: True for what decides the states of tokens, so without prompt, pooling and what else comes after them.
    """
    model = encoder.backbone.transformer.model if states else encoder.backbone.model
    config = encoder.backbone.transformer.model.config.to_diff_dict()
    told = [{name: value for name, value in config.items() if name not in IRRELEVANT}, encoder.dtype]
    if not states:
        told += [encoder.prompts["text"], [str(module) for module in list(encoder.backbone.model)[1:]]]
    return weights_hash(model.state_dict().items(), json.dumps(told, sort_keys=True, default=str))


def weights_hash(weights: Iterable[tuple[str, Tensor]], told: str = "") -> str:
    """Return a hash of named weights, whatever their order, and of what else is told of them."""
    digest = hashlib.sha256(told.encode())
    for name, values in sorted(weights, key=lambda named: named[0]):
        digest.update(name.encode())
        digest.update(values.detach().cpu().contiguous().view(-1).view(torch.uint8).numpy().data)
    return digest.hexdigest()
