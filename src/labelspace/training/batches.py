"""The batches of an epoch: of like length, so that little is padded, and yet drawn at random."""

import random
from collections.abc import Callable, Sequence
from typing import final

from labelspace.seeds import child_seed

# An epoch has so many windows at least: with fewer, sorting would put the same texts together again and again.
WINDOWS = 8


def sorting_window(texts: int, batch_size: int, *, most: int) -> int:
    """Choose within how many batches texts are sorted by length: `most`, and fewer where texts are few.

    What a contrastive loss learns depends on who shares a batch, so it must differ from epoch to epoch.

    Example:
        >>> sorting_window(100_000, 16, most=50), sorting_window(256, 16, most=50), sorting_window(40, 16, most=50)
        (50, 2, 1)
    """
    return max(1, min(most, texts // (WINDOWS * batch_size)))


def epoch_batches(lengths: Sequence[int], batch_size: int, *, window: int, seed: int, epoch: int) -> list[list[int]]:
    """Plan one epoch: every text once, in a seeded order, batches of similar length.

    All texts are shuffled, cut into windows of `window` batches, sorted by length within each, cut into batches; then
    the batches are shuffled. So little is padded, and no batch says where in the epoch it comes.

    Args:
        lengths: tokens of each text, or pair.
        batch_size: texts of a batch; the last one made may be smaller.
        window: batches of a window, see `sorting_window`.
        seed: of the run.
        epoch: its number, so that each has another order.

    Returns:
        Rows of each batch, `ceil(len(lengths) / batch_size)` batches.

    Example:
        >>> sorted(map(sorted, epoch_batches([9, 1, 8, 2], 2, window=2, seed=0, epoch=0)))
        [[0, 2], [1, 3]]
    """
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
    """The batch of any update, so that a run can go on from any.

    Args:
        plan: the batches of an epoch, by its number.
        per_epoch: how many they are.

    Example:
        >>> epochs = Epochs(lambda epoch: [[epoch, 0], [epoch, 1]], 2)
        >>> [epochs.batch(step) for step in (0, 3, 4)]
        [[0, 0], [1, 1], [2, 0]]
    """

    def __init__(self, plan: Callable[[int], Sequence[list[int]]], per_epoch: int) -> None:
        self._plan, self._per_epoch = plan, per_epoch
        self._epoch, self._batches = -1, list[list[int]]()

    def batch(self, step: int) -> list[int]:
        """Return the rows of an update, counted from 0."""
        epoch, place = divmod(step, self._per_epoch)
        if epoch != self._epoch:
            self._epoch, self._batches = epoch, list(self._plan(epoch))
        return self._batches[place]
