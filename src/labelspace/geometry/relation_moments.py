"""The moments of relations: all that REZE's offline phase keeps of the anchor-positive pairs it sees."""

from collections.abc import Sequence
from typing import final

import torch
from jaxtyping import Float, Int
from torch import Tensor

from labelspace.checks import check_integers
from labelspace.errors import InputError, ShapeError
from labelspace.geometry.moments import Moments, first_not_finite, row_blocks


@final
class RelationMoments:
    """Mean, covariance and source means of relation vectors, in one pass and float64.

    Memory is that of D^2 + S D numbers, whatever the number of pairs.

    Args:
        sources: the names of the sources; source ids are positions in it.

    Raises:
        InputError: no source, or one name twice.

    Example:
        >>> moments = RelationMoments(["qa", "news"])
        >>> moments.update(torch.tensor([[0.0, 1.0], [2.0, 1.0], [4.0, 4.0]]), torch.tensor([0, 0, 1]))
        >>> moments.count, moments.mean.tolist()
        (3, [2.0, 2.0])
        >>> moments.source_counts.tolist(), moments.source_means.tolist()
        ([2, 1], [[1.0, 1.0], [4.0, 4.0]])
    """

    def __init__(self, sources: Sequence[str]) -> None:
        self.sources = tuple(sources)
        if not self.sources or len(set(self.sources)) < len(self.sources):
            raise InputError(
                f"sources must be names, each once, at least one. Got {', '.join(self.sources) or 'none'} instead."
            )
        self.source_counts = torch.zeros(len(self.sources), dtype=torch.int64)
        self._all = Moments(0)
        self.source_means = torch.zeros(len(self.sources), 0, dtype=torch.float64)
        """The mean of the relations of each source; zeros where none was seen."""

    @property
    def count(self) -> int:
        """How many relations were seen."""
        return self._all.count

    @property
    def width(self) -> int:
        """Coordinates of a relation; 0 before the first."""
        return self._all.width

    @property
    def mean(self) -> Float[Tensor, " dim"]:
        """The mean of all relations."""
        return self._all.mean

    def covariance(self) -> Float[Tensor, "dim dim"]:
        """Return the covariance of all relations around their mean, with 1/N."""
        return self._all.covariance()

    def is_constant(self) -> bool:
        """Whether all relations seen are one, but for rounding."""
        return self._all.is_constant()

    def update(self, relations: Float[Tensor, "pair dim"], sources: Int[Tensor, " pair"]) -> None:
        """Add a block of relations; on an error nothing of it is added.

        Args:
            relations: [pair dim], any float type.
            sources: [pair], the id of the source of each.

        Raises:
            ShapeError: another width than before, or not one id for each relation.
            InputError: a value is not finite (the message names the source), or an id is out of range or no integer.
        """
        self._check(relations, sources)
        relations, sources = relations.detach().cpu(), sources.cpu().long()
        if not self.width:
            self._all = Moments(relations.shape[1])
            self.source_means = torch.zeros(len(self.sources), self.width, dtype=torch.float64)
        for start, block in row_blocks(relations):
            ids = sources[start : start + len(block)]
            self._all.update(block)
            counts = torch.bincount(ids, minlength=len(self.sources))
            # Differences to the means so far, not the relations themselves: a common offset costs no digits.
            apart = torch.zeros_like(self.source_means).index_add_(0, ids, block - self.source_means[ids])
            apart /= counts.clamp(min=1)[:, None]
            self.source_counts = self.source_counts + counts
            shares = counts.double() / self.source_counts.clamp(min=1)  # whole numbers alone would divide in float32
            self.source_means += apart * shares[:, None]

    def _check(self, relations: Tensor, sources: Tensor) -> None:
        check_relations(relations, sources, self.width or None)
        check_source_ids(sources, len(self.sources))
        row = first_not_finite(relations)
        if row is not None:
            raise InputError(
                f"a relation vector of source '{self.sources[int(sources[row])]}' has a NaN or an infinity (pair {row} "
                "of its block); look at the pair and at the encoder, whose vectors must be finite numbers."
            )


def check_relations(relations: Tensor, sources: Tensor, width: int | None) -> None:
    """Raise ShapeError unless there is one source id for each relation, and the width is the one wanted."""
    if relations.ndim != 2 or not relations.shape[1]:
        raise ShapeError(f"relations must be a matrix [pair dim]. Got shape {tuple(relations.shape)} instead.")
    if sources.ndim != 1 or sources.shape[0] != relations.shape[0]:
        raise ShapeError(
            f"sources must hold one id per relation ({relations.shape[0]}). Got shape {tuple(sources.shape)} instead."
        )
    if width is not None and relations.shape[1] != width:
        raise other_width(relations.shape[1], width)


def check_source_ids(sources: Tensor, count: int) -> None:
    """Raise InputError unless all ids are positions among `count` sources."""
    check_integers("sources", sources)
    if sources.numel() and (int(sources.min()) < 0 or int(sources.max()) >= count):
        raise InputError(
            f"source ids must lie between 0 and {count - 1}. Got {int(sources.min())} to {int(sources.max())} instead."
        )


def other_width(got: int, wanted: int) -> ShapeError:
    """Return the error for relations that another encoder made."""
    return ShapeError(
        f"relations must have the width of those before, {wanted} (two embeddings of {wanted // 2}). Got {got} "
        "instead; use the encoder that the others were made with, or fit anew."
    )
