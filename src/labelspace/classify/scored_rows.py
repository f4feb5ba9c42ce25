"""What a score is of: the rows that have a label, with no answer as a wrong one."""

from collections.abc import Iterable
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from labelspace.corpus.in_memory import document_values
from labelspace.corpus.targets import is_unlabelled
from labelspace.errors import InputError


class ScoredRows(NamedTuple):
    """The rows that have a label, beside what was answered."""

    truth: list[Any]
    """[text] label names."""

    answers: list[Any]
    """[text] label names, "" where there was no answer."""

    weights: NDArray[np.float64] | None
    """[text], where there are any."""


def scored_rows(names: Any, y: Any, classes: Iterable[Any], sample_weight: Any = None) -> ScoredRows:
    """Leave out the rows without a label, and give no answer a name that is never the right one.

    Args:
        names: [text] from `predict`, None where it names no label.
        y: [text] label names; None, NaN, -1 or "" where there is none.
        classes: the label names that are known.
        sample_weight: [text], or None.

    Raises:
        InputError: lengths differ, or y names no label at all.
    """
    truth = list(document_values(y, text=None, what="y"))
    truth = [name.strip() if isinstance(name, str) else name for name in truth]  # as label spaces strip theirs
    if len(truth) != len(names):
        raise InputError(f"y must hold one label for each of the {len(names)} documents. Got {len(truth)} instead.")
    known = set(classes)
    rows = [row for row, name in enumerate(truth) if not is_unlabelled(name) or name in known]
    if not rows:
        raise InputError("y names no label, so there is nothing to score; pass label names.")
    weights = None if sample_weight is None else np.asarray(sample_weight)
    if weights is not None and weights.shape != (len(names),):
        raise InputError(
            f"sample_weight must hold one weight for each of the {len(names)} documents. Got the shape "
            f"{weights.shape} instead."
        )
    # "" is no label's name, and unlike None it can be sorted among names.
    answers = ["" if names[row] is None else names[row] for row in rows]
    return ScoredRows([truth[row] for row in rows], answers, None if weights is None else weights[rows])
