"""Encoder identity: a hash of everything that decides an encoder's output for given token ids."""

import hashlib
import json
from collections.abc import Iterable

import torch
from torch import Tensor

from labelspace.encoders.encoder import Encoder

# Configuration fields that do not change the output.
IRRELEVANT = ("_name_or_path", "transformers_version")


def encoder_hash(encoder: Encoder, *, states: bool = False) -> str:
    """Return a hash of everything that decides the vectors of given token ids, except the device.

    Args:
        encoder: all its weights are read.
        states: True hashes only what decides token states: no prompt, no pooling, no later modules.
    """
    model = encoder.backbone.transformer.model if states else encoder.backbone.model
    config = encoder.backbone.transformer.model.config.to_diff_dict()
    told = [{name: value for name, value in config.items() if name not in IRRELEVANT}, encoder.dtype]
    if not states:
        told += [encoder.prompts["text"], [str(module) for module in list(encoder.backbone.model)[1:]]]
    return weights_hash(model.state_dict().items(), json.dumps(told, sort_keys=True, default=str))


def weights_hash(weights: Iterable[tuple[str, Tensor]], told: str = "") -> str:
    """Return a hash of named weights in any order, and of the string `told`."""
    digest = hashlib.sha256(told.encode())
    for name, values in sorted(weights, key=lambda named: named[0]):
        digest.update(name.encode())
        digest.update(values.detach().cpu().contiguous().view(-1).view(torch.uint8).numpy().data)
    return digest.hexdigest()
