"""REZE's phase 1 (Algorithm 1): the eigenspace of the reference relations, and the targets of any batch."""

from collections.abc import Sequence
from contextlib import nullcontext
from typing import final

import torch
from jaxtyping import Float
from torch import Tensor

from labelspace.config import PrefinetuneConfig
from labelspace.corpus import Pairs
from labelspace.errors import unsaid
from labelspace.geometry import Eigenspace, RelationMoments, debias, fit_eigenspace
from labelspace.progress import Progress, silent
from labelspace.training.prefinetune.relations import ReferenceRelations


@final
class Targets:
    """Debiased reference relations (eq. 7), computed per batch, so they need no file and little memory.

    Args:
        relations: relations of all training pairs.
        pairs: the training pairs.
        eigenspace: from `find_eigenspace`.
    """

    def __init__(self, relations: ReferenceRelations, pairs: Pairs, eigenspace: Eigenspace) -> None:
        self._relations, self._eigenspace = relations, eigenspace
        self._sources = torch.tensor(pairs.source_ids)

    def take(self, rows: Sequence[int]) -> Float[Tensor, "pair relation"]:
        """Return the targets of some pairs."""
        return debias(self._relations.take(rows), self._sources[list(rows)], self._eigenspace)


def find_eigenspace(
    relations: ReferenceRelations,
    pairs: Pairs,
    config: PrefinetuneConfig,
    *,
    hopeless: bool = False,
    report: Progress = silent,
) -> Eigenspace:
    """Accumulate the moments of all relations while they are computed, and fit the eigenspace.

    Args:
        relations: relations of the pairs, computed if they are not stored yet.
        pairs: the pairs, for their sources.
        config: rho, gamma, eta and centre.
        hopeless: True if the user was already warned that nothing will be shrunk.
        report: called with the number of pairs done.

    Raises:
        InputError: a vector is not finite, all relations are equal, or a source has fewer than 5 pairs.
        OutputError: the relations cannot be stored.

    Warns:
        LabelSpaceWarning: nothing is shrunk.
    """
    moments = RelationMoments(pairs.sources)
    sources = torch.tensor(pairs.source_ids)
    for rows, block in relations.blocks(report):
        moments.update(block, sources[rows])
    with unsaid("REZE shrinks nothing") if hopeless else nullcontext():
        return fit_eigenspace(moments, rho=config.rho, gamma=config.gamma, eta=config.eta, centre=config.centre)
