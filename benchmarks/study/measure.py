"""Train once on a label space, and score every anchor, untrained and trained."""

import contextlib
import functools
import time
from collections.abc import Iterator
from typing import Any

import numpy as np
import torch
from scoring import by_anchor
from tasks import Task

from labelspace import DescriptionClassifier, Encoder, LabelSpace
from labelspace.classify.settings import as_arguments
from labelspace.geometry import sample_pairs, uniformity
from study.settings import Settings


@functools.cache
def opened(settings: Settings) -> Encoder:
    """Open the encoder, once per process; classifiers copy it before training."""
    prompts = {"text_prompt": settings.prompt, "label_prompt": settings.prompt}
    return Encoder(settings.encoder, pooling=settings.pooling, **prompts)


@contextlib.contextmanager
def evaluating(encoder: Encoder) -> Iterator[None]:
    """Measure an encoder in the middle of its training: without dropout, and without copies of earlier weights."""
    backbone = encoder.backbone
    learning = backbone.model.training
    backbone.model.eval()
    backbone.weights_changed()
    try:
        yield
    finally:
        backbone.model.train(learning)
        backbone.weights_changed()


_ENCODED: dict[tuple[Settings, str], np.ndarray] = {}


def encoded(settings: Settings, task: Task) -> np.ndarray:
    """Return [text dim] vectors of the test texts by the untrained encoder, cached: five tasks take about 30 MB."""
    if (settings, task.name) not in _ENCODED:
        _ENCODED[settings, task.name] = opened(settings).encode(task.texts)
    return _ENCODED[settings, task.name]


def fitted(settings: Settings, task: Task, space: LabelSpace, **options: Any) -> DescriptionClassifier:
    """Train a copy of the encoder on the space; the task's unlabelled rows are there for rates by uniformity."""
    clf = DescriptionClassifier(space, encoder=opened(settings), **as_arguments(DescriptionClassifier, options))
    return clf.fit(task.pool)


def trained(settings: Settings, task: Task, space: LabelSpace, **options: Any) -> dict[str, Any]:
    """Train on the space, and score the task's test texts before and after."""
    started = time.perf_counter()
    clf = fitted(settings, task, space, **options)
    seconds = time.perf_counter() - started
    result = clf.fit_result_
    return {
        "untrained": by_anchor(opened(settings), space, encoded(settings, task), task.truth),
        "macro_f1_predicted": by_anchor(clf.encoder_, space, clf.encoder_.encode(task.texts), task.truth),
        "learning_rate": result.rate.learning_rate,
        "steps": result.curve.steps,
        "last_loss": result.curve.losses[-1],
        "uniformity": [result.uniformity_before, result.uniformity_after],
        "fit_seconds": seconds,
        "training": clf.training_config().to_dict(),
    }


def spread_of(encoder: Encoder, texts: list[str], *, documents: int, pairs: int, seed: int) -> float:
    """Compute the uniformity (eq. 4) of a sample of texts."""
    drawn = np.sort(np.random.default_rng(seed).permutation(len(texts))[:documents])
    vectors = torch.from_numpy(encoder.encode([texts[row] for row in drawn]))
    return uniformity(torch.nn.functional.normalize(vectors), sample_pairs(len(drawn), pairs, seed)).item()
