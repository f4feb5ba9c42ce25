"""Outputs of a trained head, without gradients.

Token states are large, so only one batch of them is in memory; logits, uncertainty and mean are returned for all texts.
"""

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from labelspace.encoders import Encoder
from labelspace.encoders.batching import plan_batches
from labelspace.encoders.side_by_side import side_by_side
from labelspace.encoders.state_cache import TokenStates
from labelspace.heads import GaussianHead


class Outputs(NamedTuple):
    """Outputs for some texts, in order."""

    logits: NDArray[np.float32]
    """[text label], logits of the mean."""

    uncertainty: NDArray[np.float32]
    """[text], the mean of std over its coordinates; 0 for a head without uncertainty."""

    means: NDArray[np.float32]
    """[text dim], the mean: the head's vector of the text."""


def outputs_of_texts(encoder: Encoder, head: GaussianHead, token_ids: Sequence[Sequence[int]]) -> Outputs:
    """Run texts through encoder and head.

    Args:
        encoder: frozen.
        head: trained, on the encoder's device.
        token_ids: from `Encoder.tokenize`.

    Returns:
        Logits, uncertainty and mean of each text, in the order of `token_ids`.
    """
    backbone = encoder.backbone
    found = _empty(len(token_ids), head)

    def run(positions: list[int]) -> tuple[NDArray[np.float32], ...]:
        states, mask = backbone.states(backbone.batch(token_ids, positions))
        return _arrays(head, states.to(backbone.dtype), mask)

    backbone.prepare()
    plan = plan_batches([len(ids) for ids in token_ids], encoder.config.token_budget)
    for positions, parts in side_by_side(run, plan, backbone.device):
        for whole, part in zip(found, parts, strict=True):
            whole[positions] = part
    return found


def outputs_of_states(encoder: Encoder, head: GaussianHead, states: TokenStates, rows: Sequence[int]) -> Outputs:
    """Run stored states of some texts through the head.

    Args:
        encoder: decides device and precision.
        head: trained, on the encoder's device.
        states: states of these texts and perhaps others.
        rows: the texts to use.

    Returns:
        Logits, uncertainty and mean of each text, in the order of `rows`.
    """
    found = _empty(len(rows), head)
    lengths = [int(states.lengths[row]) for row in rows]
    for places in plan_batches(lengths, encoder.config.token_budget):
        values, mask = states.take([rows[place] for place in places])
        with torch.inference_mode():
            parts = _arrays(head, values.to(encoder.backbone.device, encoder.backbone.dtype), mask)
        for whole, part in zip(found, parts, strict=True):
            whole[places] = part
    return found


def _arrays(head: GaussianHead, states: Tensor, mask: Tensor) -> tuple[NDArray[np.float32], ...]:
    mean, std = head(states, mask.to(states.device))
    uncertainty = mean.new_zeros(len(mean)) if std is None else std.mean(dim=1)
    return tuple(part.float().cpu().numpy() for part in (head.logits(mean), uncertainty, mean))


def _empty(texts: int, head: GaussianHead) -> Outputs:
    labels = head.classifier.out_features
    return Outputs(
        np.empty((texts, labels), dtype=np.float32),
        np.empty(texts, dtype=np.float32),
        np.empty((texts, head.dim), dtype=np.float32),
    )
