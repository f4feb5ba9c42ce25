"""The exact gradient of many rows in bounded memory.

A contrastive loss depends on all rows at once, so a chunk alone has no gradient. Three passes give the exact gradient
(Gao et al., 2021, "Scaling deep contrastive learning batch size under memory limited setup",
https://arxiv.org/abs/2101.06983):

1. every chunk through the encoder without a graph, for the features of all rows;
2. the loss of all features, and its gradient with respect to them;
3. every chunk again with a graph, back-propagating its rows of that gradient.

Dropout draws the same masks in passes 1 and 3, because each chunk's random state is a named child seed. Rows that fit
in memory skip pass 1 and keep their graphs; masks and gradient are the same.
"""

import math
import threading
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING

import torch
from torch import Tensor

from labelspace.seeds import child_seed
from labelspace.training.features import Features, gather, rows_of, run_chunk
from labelspace.training.rows import Chunk

if TYPE_CHECKING:
    from labelspace.encoders.backbone import Backbone

# Torch's generators are global: without a lock, two fits in threads would draw from each other's seeds.
_GENERATORS = threading.RLock()


@contextmanager
def seeded(device: torch.device, *seed_path: int | str) -> Iterator[None]:
    """Run the block with torch's generators set to a child seed; restore their states afterwards.

    Only one thread enters at a time, so the same seed gives the same draws, whatever else trains in this process.
    """
    seed, *names = seed_path
    child = child_seed(int(seed), *names)
    # CUDA and MPS each draw dropout from their own generator.
    on_gpu = device.type in ("cuda", "mps")
    kind = device.type if on_gpu else "cuda"
    with _GENERATORS, torch.random.fork_rng(devices=[device] if on_gpu else [], device_type=kind):
        torch.default_generator.manual_seed(child)
        if device.type == "cuda":
            with torch.cuda.device(device):
                torch.cuda.manual_seed(child)
        elif on_gpu:
            torch.mps.manual_seed(child)
        yield


def backpropagate(
    backbone: "Backbone",
    chunks: Sequence[Chunk],
    loss: Callable[[Features], Tensor],
    *,
    words: bool,
    seed: int,
    max_tokens_in_memory: int,
) -> float:
    """Add the gradient of a loss that depends on all rows at once, and return the loss.

    Args:
        backbone: the encoder, inside its `training_mode`; gradients are added to existing ones.
        chunks: all rows of the update.
        loss: a function of the features of all rows, in order; gradients of its own weights are added too.
        words: True for token states, False for text vectors.
        seed: decides the dropout masks, the same for every value of `max_tokens_in_memory`.
        max_tokens_in_memory: chunks with more tokens in total take three passes.

    Returns:
        The loss, as a float. If it is not finite, no gradient is computed.
    """
    bounded = sum(chunk.batch.tokens for chunk in chunks) > max_tokens_in_memory
    parts = []
    # One autocast around all chunks casts each weight once instead of once per chunk.
    with torch.set_grad_enabled(not bounded), backbone.autocast():
        for number, chunk in enumerate(chunks):
            with seeded(backbone.device, seed, "dropout", number):
                parts.append(run_chunk(backbone, chunk, words=words, training=True))
    features = gather(parts, chunks)
    if not bounded:
        return backward(loss(features))
    # Of the first pass only the features of all rows stay, and after the loss only their gradient.
    del parts
    values = features.values.requires_grad_()
    value = backward(loss(features))
    gradient = values.grad
    del features, values
    if gradient is None:  # the loss is not finite
        return value
    for number, (chunk, own) in enumerate(zip(chunks, rows_of(chunks), strict=True)):
        with seeded(backbone.device, seed, "dropout", number):
            again = run_chunk(backbone, chunk, words=words, training=True).values
        given = gradient[own.to(gradient.device)]
        again.backward(given[:, : again.shape[1]] if words else given)
    return value


def backward(loss: Tensor) -> float:
    """Add the gradient of a loss if it is finite, and return the loss as a float."""
    value = loss.item()
    if math.isfinite(value):
        loss.backward()
    return value
