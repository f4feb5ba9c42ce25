"""The scoring protocol that evaluation layers build on."""

from collections.abc import Sequence
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from labelspace.labels import LabelSpace


class Scorer(Protocol):
    """Scores texts against a label space: all that the benchmark requires of a model."""

    def scores(self, texts: Sequence[str], space: LabelSpace) -> NDArray[np.float32]:
        """Return [text label], higher is likelier, columns in the order of the label space."""
        ...
