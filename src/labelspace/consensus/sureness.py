"""How sure a model should be of its answers, without labels: as sure, on average, as they are likely to be right."""

from collections.abc import Sequence
from dataclasses import asdict, dataclass
from typing import Any, final

import numpy as np
from numpy.typing import NDArray
from scipy.special import softmax

from labelspace.consensus.signals import Range, measured, ranges, signals_of_graph
from labelspace.geometry.neighbours import Graph
from labelspace.labels import LabelSpace
from labelspace.training.calibration import temperature_for_accuracy

FEWEST = 50
"""Fewest documents."""


Logits = NDArray[np.floating[Any]]


@final
@dataclass(frozen=True, kw_only=True)
class Sureness:
    """A temperature, and what it was chosen by."""

    temperature: float
    """Divides the logits."""

    accuracy: Range
    """Likely accuracy of the answers."""

    confidence_before: float
    """Mean probability of the likeliest label before."""

    documents: int
    """Number of documents."""

    def to_dict(self) -> dict[str, Any]:
        """Return plain values, ready for JSON, with what was measured elsewhere."""
        return {**asdict(self), "elsewhere": measured()["calibration"]}


def sureness(
    logits: Logits,
    texts: Sequence[str],
    space: LabelSpace,
    graph: Graph | None,
    *,
    consensus: bool,
    seed: int,
) -> Sureness | None:
    """Return the temperature at which answers are as sure, on average, as words and neighbours say they are right.

    Args:
        logits: [text label] of the pool.
        texts: the documents.
        space: the labels.
        graph: the documents in the encoder's space; None: there is no such space.
        consensus: whether the model learnt from these documents.
        seed: seed of the model of words.

    Returns:
        None with fewer than 50 documents, or if all get the same label: nothing is told then.
    """
    answers = logits.argmax(axis=1)
    if len(texts) < FEWEST or len(np.unique(answers)) == 1:
        return None
    found = signals_of_graph(answers, texts, space, graph, seed=seed)
    accuracy, _ = ranges(found, len(space), len(texts), consensus=consensus)
    return _as_sure_as(logits, accuracy)


def of_student(teacher: Sureness, logits: Logits, *, agreed: float) -> Sureness:
    """Return the temperature of a student that answers a share of the documents as its teacher.

    Where they differ, the teacher is mostly in doubt: half of the student's other answers count as right as the
    teacher's are on average.

    Args:
        teacher: what was chosen for the teacher.
        logits: [text label] of the student, on documents that it did not learn from.
        agreed: share of these documents with the teacher's answer.
    """
    share = (1 + agreed) / 2
    own = teacher.accuracy
    return _as_sure_as(logits, Range(share * own.low, share * own.expected, share * own.high))


def _as_sure_as(logits: Logits, accuracy: Range) -> Sureness:
    return Sureness(
        temperature=temperature_for_accuracy(logits, accuracy.expected),
        accuracy=accuracy,
        confidence_before=float(softmax(logits, axis=1).max(axis=1).mean()),
        documents=len(logits),
    )
