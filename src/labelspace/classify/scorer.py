"""The one protocol that joins the lower half of the house to the upper."""

from collections.abc import Sequence
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from labelspace.labels import LabelSpace


class Scorer(Protocol):
    """Turns texts and a label space into scores; the benchmark, the service and the explanations know no more."""

    def scores(self, texts: Sequence[str], space: LabelSpace) -> NDArray[np.float32]:
        """Return [text label], higher is likelier, columns in the order of the label space."""
        ...
