"""A student learns what a consensus found, and is measured on documents that it did not learn from.

words      the documents are split into five parts, and each part is answered by a model of the others, until 500
           documents are answered; then the student learns from all of them
encoder    a tenth of the documents, 300 at most, is left out of its training; with fewer than 300 documents none is,
           and it is measured on those that it learnt from

The documents learnt from say nothing about a model of words: it repeats nine in ten of their labels, whatever they are.
"""

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, Literal, final

import numpy as np
from numpy.typing import NDArray

from labelspace.classify import DescriptionClassifier, WordsClassifier
from labelspace.classify.anchors import encode_labels
from labelspace.classify.base import Classifier
from labelspace.config import StudentConfig
from labelspace.consensus.agreement import kappa
from labelspace.consensus.steps import Consensus
from labelspace.consensus.views import WORDS
from labelspace.errors import warn
from labelspace.labels import LabelSpace
from labelspace.seeds import child_seed
from labelspace.training import Callback
from labelspace.training.student import StudentFit, train_student

Rows = NDArray[np.intp]
Logits = NDArray[np.float64]

FOLLOWS = 0.6
"""Lowest agreement (kappa) of a student that follows. In a trial on five data sets with 100 to 2,000 documents,
students of words below it lost .08 to .69 of their teacher's macro-F1, half of them .2 or more; others .03 to .18."""

FOLDS, ENOUGH = 5, 500
SHARE, LEAST, MOST = 0.1, 300, 300


@final
@dataclass(frozen=True, kw_only=True)
class Taught:
    """A student, and how well it follows the consensus."""

    model: Classifier = field(repr=False)
    """The student, fitted."""

    kappa: float
    """Agreement with the consensus beyond chance."""

    documents: int
    """Number of documents on which that was measured."""

    held_out: bool
    """Whether the student did not learn from those documents."""

    training: StudentFit | None = field(repr=False)
    """Training of a student that is an encoder."""

    logits: Logits = field(repr=False)
    """[text label], what it says about these documents."""

    agreed: float
    """Share of these documents with the answer of the consensus."""

    @property
    def follows(self) -> bool:
        """Whether its answers are those of the consensus for most documents."""
        return self.kappa >= FOLLOWS

    def to_dict(self) -> dict[str, Any]:
        """Return plain values, ready for JSON."""
        return {
            "kappa": self.kappa,
            "documents": self.documents,
            "held_out": self.held_out,
            "follows": self.follows,
            "training": None if self.training is None else self.training.to_dict(),
        }


def teach(
    found: Consensus,
    texts: Sequence[str],
    space: LabelSpace,
    student: DescriptionClassifier | Literal["words"],
    *,
    teaching: StudentConfig | None = None,
    seed: int,
    checkpoint: str | Path | None = None,
    callbacks: Sequence[Callback] = (),
    verbose: bool = False,
) -> Taught:
    """Teach a student what a consensus found.

    Args:
        found: the consensus.
        texts: the documents that it is about.
        space: the labels, in the order of the consensus.
        student: `"words"`, or a classifier trained on the descriptions, which stays as it is: a copy is taught.
        teaching: settings of an encoder's training; None: the defaults.
        seed: seed of all randomness.
        checkpoint: folder for an encoder's unfinished training; the caller clears it.
        callbacks: get the losses of an encoder's training.
        verbose: True shows progress.

    Raises:
        KeyboardInterrupt: an encoder's training was interrupted; half a student is no answer.

    Warns:
        LabelSpaceWarning: the student gives other answers than the consensus too often.
    """
    if isinstance(student, DescriptionClassifier):
        taught = _teach_encoder(
            found,
            texts,
            space,
            student,
            teaching or StudentConfig(),
            seed=seed,
            checkpoint=checkpoint,
            callbacks=callbacks,
            verbose=verbose,
        )
    else:
        taught = _teach_words(found, texts, space, seed=seed)
    if not taught.follows:
        cure = "more documents, or an encoder as student" if student == WORDS else "more documents or more epochs"
        warn(
            f"the student follows the consensus poorly: kappa {taught.kappa:.2f} on {taught.documents} documents "
            f"{'that it did not learn from' if taught.held_out else 'of the pool'}, and {FOLLOWS} is the least for a "
            f"student to be of use. Give it {cure}, or do without a student."
        )
    return taught


def _teach_words(found: Consensus, texts: Sequence[str], space: LabelSpace, *, seed: int) -> Taught:
    """Fit a model of words, once for itself and once for each part of the documents that measures it."""
    columns, sure = _answers(found)
    names = np.array(space.names, dtype=object)[columns]

    def learn(rows: Rows) -> WordsClassifier:
        model = WordsClassifier(space, C=found.config.C, seed=seed)
        return model.fit([texts[row] for row in rows], names[rows], sample_weight=sure[rows])

    part = np.random.default_rng(child_seed(seed, "student")).permutation(len(texts)) % FOLDS
    asked: list[int] = []
    logits: list[Logits] = []
    for number in range(FOLDS):
        inside, outside = np.flatnonzero(part != number), np.flatnonzero(part == number)
        if len(outside) and len(asked) < ENOUGH:
            asked += outside.tolist()
            logits.append(_logits(learn(inside), texts, outside, space))
    return _taught(learn(np.arange(len(texts))), np.concatenate(logits), columns[asked], held_out=True)


def _teach_encoder(
    found: Consensus,
    texts: Sequence[str],
    space: LabelSpace,
    student: DescriptionClassifier,
    teaching: StudentConfig,
    *,
    seed: int,
    **training: Any,
) -> Taught:
    """Train a copy of the encoder on the consensus; its labels' vectors stay in place meanwhile."""
    columns, sure = _answers(found)
    held_out = _held_out(len(texts), seed=seed)
    weights = sure.copy()
    weights[held_out] = 0
    encoder = student.encoder_.copy()
    anchors = student.head_.label_vectors(space)
    result = train_student(
        encoder, space, texts, found.probabilities, weights, anchors, teaching, seed=seed, **training
    )
    vectors = encode_labels(encoder, space)  # the encoder has moved, and the labels with it
    model = DescriptionClassifier.from_state(replace(student.state(), encoder=encoder, label_vectors=vectors))
    model.encoder = student.encoder
    asked = held_out if len(held_out) else np.arange(len(texts))
    logits = _logits(model, texts, asked, space)
    return _taught(model, logits, columns[asked], held_out=len(held_out) > 0, training=result)


def _taught(
    model: Classifier, logits: Logits, wanted: Rows, *, held_out: bool, training: StudentFit | None = None
) -> Taught:
    """Return a student with its agreement on documents of which the consensus wants these columns."""
    answers = logits.argmax(axis=1)
    return Taught(
        model=model,
        kappa=kappa(answers, wanted, logits.shape[1]),
        documents=len(wanted),
        held_out=held_out,
        training=training,
        logits=logits,
        agreed=float((answers == wanted).mean()),
    )


def _answers(found: Consensus) -> tuple[Rows, NDArray[np.float64]]:
    """Return the column of each document's label, and how sure the consensus is of it."""
    return found.logits.argmax(axis=1), found.probabilities.max(axis=1)


def _logits(model: Classifier, texts: Sequence[str], rows: Rows, space: LabelSpace) -> Logits:
    """Return the student's scores of some documents, divided by its temperature, [text label]."""
    return model.scores([texts[row] for row in rows], space).astype(np.float64) / model.decision().temperature


def _held_out(documents: int, *, seed: int) -> Rows:
    """Return the documents that an encoder does not learn from, ascending; none of a small pool.

    Example:
        >>> [len(_held_out(documents, seed=0)) for documents in (299, 300, 10_000)]
        [0, 30, 300]
    """
    count = 0 if documents < LEAST else min(round(SHARE * documents), MOST)
    drawn = np.random.default_rng(child_seed(seed, "held out")).choice(documents, count, replace=False)
    return np.sort(drawn)
