"""The exact gradient of a sweep in bounded memory.

The loss looks at all texts at once, so a chunk alone has no gradient. Three passes give the one of the
whole sweep all the same (Gao et al., 2021, "Scaling deep contrastive learning batch size under memory
limited setup", https://arxiv.org/abs/2101.06983):

1. every chunk through the encoder without a graph: all embeddings, [text dim];
2. the loss of these, and its gradient with respect to each embedding;
3. every chunk again, with a graph, back-propagating its rows of that gradient.

Dropout draws the same masks in 1 and 3, because each chunk's random state is a named child seed. A sweep
that fits in memory skips pass 1 and keeps its graphs; the masks, and so the gradient, are the same.
"""

import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager

import torch
from torch import Tensor

from labelspace.encoders.backbone import Backbone
from labelspace.seeds import child_seed
from labelspace.training.sweep import Sweep

SweepLoss = Callable[[Tensor, Tensor, Tensor], Tensor]
"""(descriptions [desc dim], verbalizers [label dim], targets [desc]) -> scalar."""

# Torch's generators are of the process: two fits in threads would draw from one another's seeds.
_GENERATORS = threading.RLock()


@contextmanager
def seeded(device: torch.device, *seed_path: int | str) -> Iterator[None]:
    """Run the block with torch's generators at a child seed, and put their states back after.

    One thread at a time: the same seed gives the same draws, whoever else trains in this process.
    """
    seed, *names = seed_path
    child = child_seed(int(seed), *names)
    # Both draw dropout from a generator of their own.
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
    backbone: Backbone,
    sweep: Sweep,
    loss: SweepLoss,
    *,
    seed: int,
    max_tokens_in_memory: int,
) -> float:
    """Add the gradient of the sweep's loss to the encoder's parameters and return the loss.

    Args:
        backbone: the encoder, inside its `training_mode`; gradients are added to what is there.
        sweep: the texts.
        loss: a function of all embeddings.
        seed: decides the dropout masks, the same for every value of `max_tokens_in_memory`.
        max_tokens_in_memory: a sweep of more tokens goes through in three passes.

    Returns:
        The loss, as a float. Where it is not finite no gradient is computed.
    """
    if sweep.tokens <= max_tokens_in_memory:
        return _in_one_pass(backbone, sweep, loss, seed)
    return _in_three_passes(backbone, sweep, loss, seed)


def _in_one_pass(backbone: Backbone, sweep: Sweep, loss: SweepLoss, seed: int) -> float:
    parts = _embed_all(backbone, sweep, seed)
    value = loss(*_by_role(torch.cat(parts), sweep), sweep.targets.to(backbone.device))
    if torch.isfinite(value):
        value.backward()
    return value.item()


def _in_three_passes(backbone: Backbone, sweep: Sweep, loss: SweepLoss, seed: int) -> float:
    with torch.no_grad():
        embeddings = torch.cat(_embed_all(backbone, sweep, seed))
    embeddings.requires_grad_()
    value = loss(*_by_role(embeddings, sweep), sweep.targets.to(backbone.device))
    if not torch.isfinite(value):
        return value.item()
    value.backward()
    assert embeddings.grad is not None
    start = 0
    for number, chunk in enumerate(sweep.chunks):
        rows = slice(start, start := start + len(chunk.batch.positions))
        with seeded(backbone.device, seed, "dropout", number):
            again = backbone.embed(chunk.batch, prompt_tokens=chunk.prompt_tokens, training=True)
        again.backward(embeddings.grad[rows])
    return value.item()


def _embed_all(backbone: Backbone, sweep: Sweep, seed: int) -> list[Tensor]:
    parts = []
    # One autocast around all chunks casts each weight once instead of once a chunk.
    with backbone.autocast():
        for number, chunk in enumerate(sweep.chunks):
            with seeded(backbone.device, seed, "dropout", number):
                parts.append(backbone.embed(chunk.batch, prompt_tokens=chunk.prompt_tokens, training=True))
    return parts


def _by_role(stacked: Tensor, sweep: Sweep) -> tuple[Tensor, Tensor]:
    """Undo the chunks' order; descriptions [desc dim] and verbalizers [label dim]."""
    order = torch.tensor([row for chunk in sweep.chunks for row in chunk.batch.positions], device=stacked.device)
    embeddings = stacked[order.argsort()]
    return embeddings[: sweep.descriptions], embeddings[sweep.descriptions :]
