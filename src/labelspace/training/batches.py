"""The batches of an epoch: texts of similar length, which need little padding, drawn at random."""

import random
from collections.abc import Callable, Iterable, Sequence
from typing import final

from labelspace.checks import check_number
from labelspace.seeds import child_seed

# Least number of windows per epoch; with fewer, sorting would put the same texts together again and again.
WINDOWS = 8


def sorting_window(texts: int, batch_size: int, *, most: int) -> int:
    """Return how many batches to sort by length together: `most`, or fewer if there are few texts.

    A contrastive loss depends on which texts share a batch, so batches must differ between epochs.

    Example:
        >>> sorting_window(100_000, 16, most=50), sorting_window(256, 16, most=50), sorting_window(40, 16, most=50)
        (50, 2, 1)
    """
    return max(1, min(most, texts // (WINDOWS * batch_size)))


def epoch_batches(lengths: Sequence[int], batch_size: int, *, window: int, seed: int, epoch: int) -> list[list[int]]:
    """Plan one epoch: every text once, in a seeded order, in batches of similar length.

    All texts are shuffled, cut into windows of `window` batches, sorted by length within each window and cut into
    batches; then the batches are shuffled. So padding is small, and lengths do not depend on the place in the epoch.

    Args:
        lengths: tokens of each text, or pair.
        batch_size: texts per batch, 1 or more; one batch may be smaller.
        window: batches per window, 1 or more, see `sorting_window`.
        seed: seed of the run.
        epoch: number of the epoch; each epoch has its own order.

    Returns:
        The rows of each batch, `ceil(len(lengths) / batch_size)` batches.

    Raises:
        ConfigError: `batch_size` or `window` is out of its range.

    Example:
        >>> sorted(map(sorted, epoch_batches([9, 1, 8, 2], 2, window=2, seed=0, epoch=0)))
        [[0, 2], [1, 3]]
    """
    check_number("batch_size", batch_size, least=1, whole=True)
    check_number("window", window, least=1, whole=True)
    draw = random.Random(child_seed(seed, "epoch", epoch))
    order = list(range(len(lengths)))
    draw.shuffle(order)
    batches: list[list[int]] = []
    for start in range(0, len(order), window * batch_size):
        near = sorted(order[start : start + window * batch_size], key=lambda row: lengths[row])
        batches += [near[at : at + batch_size] for at in range(0, len(near), batch_size)]
    draw.shuffle(batches)
    return batches


@final
class Epochs:
    """The batch of any update, so that a run can resume at any update.

    Args:
        plan: yields the batches of the epoch whose number it gets as `epoch`.
        per_epoch: batches per epoch.

    Example:
        >>> epochs = Epochs(lambda epoch: [[epoch, 0], [epoch, 1]], 2)
        >>> [epochs.batch(step) for step in (0, 3, 4)]
        [[0, 0], [1, 1], [2, 0]]
    """

    def __init__(self, plan: Callable[..., Iterable[list[int]]], per_epoch: int) -> None:
        self._plan, self._per_epoch = plan, per_epoch
        self._epoch, self._batches = -1, list[list[int]]()

    def batch(self, step: int) -> list[int]:
        """Return the rows of an update; updates count from 0."""
        epoch, place = divmod(step, self._per_epoch)
        if epoch != self._epoch:
            self._epoch, self._batches = epoch, list(self._plan(epoch=epoch))
        return self._batches[place]
