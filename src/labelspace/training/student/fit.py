"""Training a student from end to end."""

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import final

import numpy as np
import torch
from numpy.typing import NDArray

from labelspace.config import StudentConfig
from labelspace.encoders import Encoder
from labelspace.labels import LabelSpace
from labelspace.notebook import Plain
from labelspace.progress import progress_bar
from labelspace.seeds import child_seed
from labelspace.training import engine
from labelspace.training.callbacks import Callback
from labelspace.training.checkpoint import Place, digest_of
from labelspace.training.description.sweep import sweep_texts
from labelspace.training.engine import Training
from labelspace.training.lacon.fit import choose_rate
from labelspace.training.rows import Labelled, tokenize
from labelspace.training.student.objective import SoftLabelled, StudentObjective
from labelspace.training.trainable import trainable_weights


@final
@dataclass(frozen=True, kw_only=True)
class StudentFit(Plain):
    """Result of training a student: enough to judge the run and to repeat it."""

    curve: Training
    """The training run."""

    documents: int
    """Number of documents trained on."""

    seed: int
    """The seed of the run."""


def train_student(
    encoder: Encoder,
    space: LabelSpace,
    documents: Sequence[str],
    probabilities: NDArray[np.floating],
    weights: NDArray[np.floating],
    anchors: NDArray[np.floating],
    config: StudentConfig,
    *,
    seed: int,
    checkpoint: str | Path | None = None,
    callbacks: Sequence[Callback] = (),
    verbose: bool = False,
) -> StudentFit:
    """Train an encoder, in place, on a teacher's probabilities.

    Args:
        encoder: its weights are changed.
        space: labels and their descriptions.
        documents: unlabelled documents; at most `config.documents` of those with a weight are drawn.
        probabilities: [text label], the teacher's.
        weights: [text], how sure the teacher is, 0 or more; a document's share in the loss.
        anchors: [label dim], the labels' vectors before training.
        config: schedule and weights of the losses.
        seed: seed of all randomness.
        checkpoint: folder for unfinished training; a checkpoint of this run in it is resumed.
        callbacks: called with loss and rate at every step.
        verbose: True shows a bar on a terminal, plain lines elsewhere.

    Returns:
        The record of the fit.

    Raises:
        KeyboardInterrupt: training was interrupted; half a student is no answer.
        ConfigError: the checkpoint belongs to another run.
        OutputError: a checkpoint cannot be written.
        TrainingError: the loss is not finite.
    """
    place = Place.of_fit(
        checkpoint,
        "student",
        encoder,
        config=config.to_dict(),
        seed=seed,
        labels=digest_of([space.to_dict()]),
        rows=digest_of([*documents, probabilities.tobytes().hex(), weights.tobytes().hex()]),
    )
    drawn = draw(weights, config.documents, seed=seed)
    taught = SoftLabelled(
        tokenize(encoder, [documents[row] for row in drawn]),
        probabilities[drawn].astype(np.float32),
        weights[drawn].astype(np.float32),
    )
    texts, columns = sweep_texts(space)
    descriptions = Labelled(tokenize(encoder, texts), np.array(columns, dtype=np.intp))
    fixed = torch.from_numpy(np.asarray(anchors, dtype=np.float32)).to(encoder.backbone.device)
    rate = choose_rate(config.learning_rate, encoder.backbone.hidden_size)
    with (
        trainable_weights(encoder.backbone) as trained,
        progress_bar("training the student", verbose=verbose) as report,
    ):
        objective = StudentObjective(
            encoder,
            trained,
            fixed,
            taught,
            descriptions,
            config,
            learning_rate=rate,
            seed=child_seed(seed, "student"),
        )
        curve = engine.train(objective, checkpoint=place, callbacks=callbacks, report=report)
    if curve.stop_reason == "interrupted":
        raise KeyboardInterrupt
    return StudentFit(curve=curve, documents=len(drawn), seed=seed)


def draw(weights: NDArray[np.floating], most: int, *, seed: int) -> list[int]:
    """Return at most so many rows with a weight, ascending; more are drawn alike.

    Example:
        >>> draw(np.array([1.0, 0.0, 2.0]), 5, seed=0)
        [0, 2]
    """
    rows = np.flatnonzero(weights > 0)
    if len(rows) > most:
        rows = np.random.default_rng(child_seed(seed, "documents")).choice(rows, most, replace=False)
    return sorted(rows.tolist())
