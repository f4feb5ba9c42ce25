"""The effect of pre-finetuning on the space, measured on held-aside pairs."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple, final

import numpy as np
import torch
from numpy.typing import NDArray

from labelspace.corpus import Pairs
from labelspace.encoders import Encoder
from labelspace.errors import InputError, MissingDependencyError
from labelspace.geometry import alignment, drift, isoscore, neighbours_kept, sample_pairs, uniformity
from labelspace.seeds import child_seed

NEIGHBOURS = 10
UNIFORMITY_PAIRS = 50_000


@final
@dataclass(frozen=True, kw_only=True)
class Measures:
    """An encoder's space in three numbers."""

    uniformity: float
    """Uniformity of the distinct texts; lower is more evenly spread, near 0 is collapsed."""

    alignment: float
    """Mean squared distance between anchor and positive; lower is closer."""

    isoscore: float | None
    """IsoScore of the distinct texts, 0 to 1, higher is more isotropic; None if the package is not installed."""


class Shift(NamedTuple):
    """Movement of the texts between two encoders."""

    drift: float
    """Mean cosine distance between a text's old and new vector."""

    neighbours_kept: float
    """Share of each text's nearest neighbours that remain so."""

    neighbours: int
    """Number of nearest neighbours compared."""


@final
class Yardstick:
    """The texts of some pairs, to measure one encoder and to compare two.

    Args:
        pairs: pairs with at least two distinct texts.
        seed: seed of the text pairs that uniformity samples.
    """

    def __init__(self, pairs: Pairs, *, seed: int) -> None:
        self.texts: Sequence[str] = list(dict.fromkeys([*pairs.anchors, *pairs.positives]))
        place = {text: number for number, text in enumerate(self.texts)}
        self._anchors = [place[text] for text in pairs.anchors]
        self._positives = [place[text] for text in pairs.positives]
        self._seed = child_seed(seed, "uniformity")

    def vectors(self, encoder: Encoder) -> NDArray[np.float32]:
        """Encode the texts, [text dim]."""
        return encoder.encode(self.texts)

    def measure(self, vectors: NDArray[np.float32]) -> Measures:
        """Measure an encoder's space by its vectors of the texts.

        Raises:
            InputError: a vector is not finite, or all vectors are equal.
        """
        odd = np.flatnonzero(~np.isfinite(vectors).all(axis=1))
        if len(odd):
            raise InputError(
                f"the encoder's vector of {self.texts[odd[0]]!r:.60} has a NaN or an infinity; check its weights, or "
                "try dtype='float32'."
            )
        if (vectors == vectors[0]).all():
            raise InputError(
                f"the encoder makes one vector of all {len(vectors)} texts that it is measured by; check the texts, "
                "or use an encoder that tells them apart."
            )
        rows = torch.from_numpy(vectors)
        try:
            evenness = isoscore(vectors)
        except MissingDependencyError:
            evenness = None
        pairs = sample_pairs(len(self.texts), UNIFORMITY_PAIRS, self._seed)
        return Measures(
            uniformity=uniformity(rows, pairs).item(),
            alignment=alignment(rows[self._anchors], rows[self._positives]).item(),
            isoscore=evenness,
        )

    def compare(self, before: NDArray[np.float32], after: NDArray[np.float32]) -> Shift:
        """Return how far the texts have moved."""
        nearest = min(NEIGHBOURS, len(self.texts) - 1)
        return Shift(drift(before, after), neighbours_kept(before, after, k=nearest), nearest)
