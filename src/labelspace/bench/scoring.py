"""Score one model on one task, block by block, and measure time and memory."""

import time
from collections.abc import Callable, Sequence
from typing import NamedTuple, TypeVar

import numpy as np
from numpy.typing import NDArray

from labelspace.bench.memory import PeakMemory, gpu_peak_mib
from labelspace.bench.models import OpenModel
from labelspace.bench.tasks import Task
from labelspace.config import EncodingConfig
from labelspace.errors import EncoderError
from labelspace.progress import Progress, silent

T = TypeVar("T")

WARM_UP_TEXTS = 8
ENCODER_BLOCK = 4096
PAIR_BLOCK = 4096
LLM_BLOCK = 128
"""Block sizes: texts per call, except `PAIR_BLOCK`, which is text-label pairs per call."""


class Cost(NamedTuple):
    """Time and memory of scoring."""

    seconds: float
    """Seconds of scoring."""

    peak_memory_mib: float
    """Peak memory of the process, in MiB."""

    memory_method: str
    """Method of that measurement."""

    gpu_memory_mib: float | None
    """Peak memory of torch on the GPU, in MiB; None without a GPU."""


def measured(work: Callable[[], T], device: str) -> tuple[T, Cost]:
    """Call `work`, and return its result and its cost; GPU memory is measured if `device` is one."""
    gpu_peak_mib(device, reset=True)
    started = time.perf_counter()
    with PeakMemory() as peak:
        result = work()
    return result, Cost(time.perf_counter() - started, peak.mib, peak.method, gpu_peak_mib(device))


def score_task(
    model: OpenModel, task: Task, *, device: str = EncodingConfig.device, report: Progress = silent
) -> tuple[NDArray[np.int64], Cost]:
    """Score a task in blocks of texts, holding the predictions only.

    Args:
        model: an open model.
        task: texts and labels.
        device: the model's device.
        report: called with the number of texts done.

    Returns:
        [text] columns of the likeliest labels, ties to the first; and the cost, without the warm-up on the first few
        texts, which encodes labels and allocates buffers.

    Raises:
        EncoderError: the scores are not [text label], or not finite.

    Example:
        >>> from labelspace.bench import BTZSC, open_model
        >>> from labelspace.labels import LabelSpace
        >>> card = BTZSC["rottentomatoes"]
        >>> space = LabelSpace.from_names(["bad", "good"])
        >>> task = Task(card=card, space=space, texts=["dull"], targets=np.array([0]), notes=(), fingerprint="")
        >>> score_task(open_model("tests/data/tiny-bert", dtype="float32"), task)[0].shape
        (1,)
    """
    size = _block(model.family, len(task.space))
    predicted = np.empty(len(task.texts), dtype=np.int64)
    _scores(model, task, task.texts[:WARM_UP_TEXTS])

    def score() -> None:
        for at in range(0, len(task.texts), size):
            block = task.texts[at : at + size]
            predicted[at : at + len(block)] = _scores(model, task, block).argmax(axis=1)
            report(at + len(block), len(task.texts))

    return predicted, measured(score, device)[1]


def _scores(model: OpenModel, task: Task, texts: Sequence[str]) -> NDArray[np.float32]:
    scores = np.asarray(model.scorer.scores(texts, task.space))
    if scores.shape != (len(texts), len(task.space)):
        raise EncoderError(
            f"{model.spec} on {task.card.name}: the scores must be [text label], {(len(texts), len(task.space))}. "
            f"Got shape {scores.shape} instead."
        )
    if not np.isfinite(scores).all():
        bad = int((~np.isfinite(scores)).any(axis=1).sum())
        raise EncoderError(
            f"{model.spec} on {task.card.name}: the scores of {bad} of {len(texts)} texts are not finite; this run was "
            "not stored. Try dtype float32."
        )
    return scores


def _block(family: str, labels: int) -> int:
    # Fixed sizes: the make-up of a batch changes the last digits of a score, so it must not depend on speed.
    if family == "llm":
        return LLM_BLOCK
    return max(1, PAIR_BLOCK // labels) if family in ("nli", "reranker") else ENCODER_BLOCK
