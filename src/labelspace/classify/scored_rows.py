"""Rows used for scoring: labelled rows only; an abstention counts as wrong."""

from collections.abc import Iterable
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from labelspace.checks import did_you_mean
from labelspace.corpus.in_memory import document_values
from labelspace.corpus.label_sets import as_label_sets
from labelspace.corpus.targets import composed, is_unlabelled
from labelspace.errors import InputError, warn
from labelspace.labels.document import SEPARATOR


class ScoredRows(NamedTuple):
    """The labelled rows with their answers."""

    truth: list[Any]
    """[text] label names."""

    answers: list[Any]
    """[text] label names, "" for an abstention."""

    weights: NDArray[np.float64] | None
    """[text]; None if not given."""


def scored_rows(names: Any, y: Any, classes: Iterable[Any], sample_weight: Any = None) -> ScoredRows:
    """Leave out rows without a label, and replace abstentions by a name that is never right.

    Args:
        names: [text] from `predict`, None for an abstention.
        y: [text] label names; None, NaN, -1 or "" for a row without a label.
        classes: the known label names.
        sample_weight: [text], or None.

    Raises:
        InputError: lengths differ, or y names no label.

    Warns:
        LabelSpaceWarning: y names something that is no label.
    """
    truth = list(document_values(y, text_column=None, what="y"))
    # As in label spaces, and however it is composed.
    spelt = {**{composed(name): name for name in classes}, **{name: name for name in classes}}
    truth = [name.strip() if isinstance(name, str) else name for name in truth]
    truth = [spelt.get(name, spelt.get(composed(name), name)) if isinstance(name, str) else name for name in truth]
    if len(truth) != len(names):
        raise InputError(f"y must hold one label for each of the {len(names)} documents. Got {len(truth)} instead.")
    known = set(classes)
    rows = [row for row, name in enumerate(truth) if not is_unlabelled(name) or name in known]
    if not rows:
        raise InputError("y names no label, so there is nothing to score; pass label names.")
    wrong = next((row for row in rows if not isinstance(truth[row], str)), None)
    if wrong is not None:
        raise InputError(f"y[{wrong}] is {truth[wrong]!r} of type {type(truth[wrong]).__name__}; pass label names.")
    unknown = sorted({str(truth[row]) for row in rows} - known)
    if unknown:
        warn(f"y names {unknown[0]!r}, which is no label and counts as wrong.{did_you_mean(unknown[0], list(classes))}")
    weights = _weights_of(rows, sample_weight, len(names))
    # No label is named "", and unlike None it can be sorted among names.
    answers = ["" if names[row] is None else names[row] for row in rows]
    return ScoredRows([truth[row] for row in rows], answers, weights)


def scored_sets(predicted: Any, y: Any, classes: Any, sample_weight: Any = None) -> float:
    """Return the share of documents, among those with known labels, for which every label is right.

    Args:
        predicted: [text label] from `predict`, columns in the order of `classes`.
        y: the labels, as `as_label_sets` takes them.
        classes: the sorted label names.
        sample_weight: [text], or None.

    Raises:
        InputError: lengths differ, no labels are known, or documents with known labels have no weight.
    """
    sets = as_label_sets(y, list(classes), n_documents=len(predicted), separator=SEPARATOR)
    if not sets.known.any():
        raise InputError("y holds no labels, so there is nothing to score; pass label names.")
    from sklearn.metrics import accuracy_score

    weights = _weights_of(sets.known, sample_weight, len(predicted))
    return float(accuracy_score(sets.truth[sets.known], predicted[sets.known], sample_weight=weights))


def _weights_of(rows: Any, sample_weight: Any, documents: int) -> NDArray[np.float64] | None:
    """Return the weights of the rows that have a label, given by number or as a mask."""
    weights = as_weights(sample_weight, documents)
    if weights is not None and not weights[rows].any():
        raise InputError("sample_weight is 0 for every document that has a label, so there is nothing to score.")
    return None if weights is None else weights[rows]


def as_weights(sample_weight: Any, documents: int) -> NDArray[np.float64] | None:
    """Return the weight of each document, [text], or None.

    Raises:
        InputError: these are not as many numbers, 0 or more.
    """
    if sample_weight is None:
        return None
    told = f"sample_weight must be {documents} numbers, one for each document, 0 or more"
    try:
        weights = np.asarray(sample_weight, dtype=np.float64)
    except (TypeError, ValueError, OverflowError) as error:
        raise InputError(f"{told}. {error}.") from error
    if weights.shape != (documents,):
        raise InputError(f"{told}. Got the shape {weights.shape} instead.")
    wrong = weights[~((weights >= 0) & np.isfinite(weights))]
    if len(wrong):
        raise InputError(f"{told}. Got {wrong[0]} among them.")
    if not weights.any():
        raise InputError(f"{told}. All of them are 0.")
    return weights
