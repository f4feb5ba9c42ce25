"""Scores of encoded documents, one for each anchor."""

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.metrics import accuracy_score, f1_score

from labelspace import Encoder, LabelSpace
from labelspace.classify.anchors import anchor_matrix, cosines, encode_labels
from labelspace.config import ANCHORS
from labelspace.evaluate.metrics import NO_DIVISION


def macro_f1_predicted(truth: Sequence[str], predicted: Any) -> float:
    """Mean F1 over the labels that occur or are predicted."""
    return float(f1_score(truth, list(predicted), average="macro", **NO_DIVISION))


def accuracy_and_macro_f1(truth: Sequence[str], predicted: Any) -> dict[str, float]:
    """Accuracy, and mean F1 over the labels that occur."""
    chosen = list(predicted)
    macro = f1_score(truth, chosen, labels=sorted(set(truth)), average="macro", **NO_DIVISION)
    return {"accuracy": float(accuracy_score(truth, chosen)), "macro_f1": float(macro)}


def answers_by_anchor(encoder: Encoder, space: LabelSpace, vectors: np.ndarray) -> dict[str, NDArray[Any]]:
    """Return each document's predicted label, for each anchor."""
    label_vectors, names = encode_labels(encoder, space), np.array(space.names, dtype=object)
    return {
        anchor: names[cosines(vectors, anchor_matrix(label_vectors, space, anchor)).argmax(axis=1)]
        for anchor in ANCHORS
    }


def by_anchor(encoder: Encoder, space: LabelSpace, vectors: np.ndarray, truth: Sequence[str]) -> dict[str, float]:
    """Return the macro-F1 of each anchor."""
    found = answers_by_anchor(encoder, space, vectors)
    return {anchor: macro_f1_predicted(truth, chosen) for anchor, chosen in found.items()}
