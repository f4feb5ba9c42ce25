"""Results in the JSON layout of the btzsc leaderboard, schema 1.0.

    schema_version  "1.0"
    model           name, model_type, params (such as "434M"), revision, url
    evaluation      btzsc_version, btzsc_commit, timestamp, device, precision, batch_size, max_samples
    results         overall, by_task (4 families), by_dataset (22 sets): each with the four metrics, from 0 to 1,
                    by the leaderboard's names (`cards.THEIR_NAMES`)

The leaderboard accepts complete results only. Means here are over the measured data sets; a family without any is left
out rather than set to 0, which nobody measured.
"""

import statistics
from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from importlib.metadata import PackageNotFoundError, version
from typing import Any

from labelspace.bench.cards import BTZSC, FAMILIES, METRICS, THEIR_NAMES
from labelspace.bench.records import is_number
from labelspace.checks import check_number
from labelspace.errors import ConfigError, InputError
from labelspace.version import __version__

SCHEMA = "1.0"
MODEL_TYPES = ("embedding", "nli", "reranker", "llm")
"""The families that the leaderboard accepts; base encoders and custom models are not among them."""

Scores = Mapping[str, Mapping[str, float]]


def leaderboard_payload(
    measured: Scores,
    *,
    name: str,
    family: str,
    parameters: int | None = None,
    revision: str | None = None,
    url: str | None = None,
    precision: str = "unknown",
    device: str = "cpu",
    limit: int | None = None,
    timestamp: str | None = None,
    commit: str | None = None,
    partial: bool = False,
) -> dict[str, Any]:
    """Convert measured scores to the layout of the btzsc leaderboard.

    Args:
        measured: data set -> metric -> score from 0 to 1, all four metrics of each; data sets outside BTZSC are left
            out.
        name: the model's name, as on the hub if it is there.
        family: one of `MODEL_TYPES`.
        parameters: number of parameters; None: unknown.
        revision: the model's commit or tag.
        url: the model's page or download.
        precision: dtype of the computation, such as `"bfloat16"`.
        device: device of the run.
        limit: maximum rows of each data set; None: all.
        timestamp: time of the measurement, ISO 8601; None: now.
        commit: commit of the measuring code.
        partial: True allows missing data sets. The leaderboard does not accept such a file.

    Returns:
        Plain values, ready for JSON.

    Raises:
        ConfigError: an unknown family.
        InputError: a data set is missing and `partial` is False, or a score is missing or not from 0 to 1.

    Example:
        >>> scores = dict.fromkeys(METRICS, 0.5)
        >>> everywhere = dict.fromkeys(BTZSC, scores)
        >>> payload = leaderboard_payload(everywhere, name="me/mine", family="nli", parameters=434_000_000)
        >>> payload["model"]["params"], payload["results"]["by_task"]["topic"]["accuracy"]
        ('434M', 0.5)

    Reference:
        The package btzsc 0.1.2, `BTZSCResults.to_json`.
    """
    if family not in MODEL_TYPES:
        raise ConfigError(
            f"family must be one of {', '.join(map(repr, MODEL_TYPES))}: the leaderboard has no others. "
            f"Got {family!r} instead; such a model cannot be submitted."
        )
    if parameters is not None:
        check_number("parameters", parameters, least=1, whole=True)
    known = [task for task in BTZSC if task in measured]
    missing = [task for task in BTZSC if task not in measured]
    if missing and not partial:
        raise InputError(
            f"the leaderboard takes all 22 data sets. Got {len(known)}; missing: {', '.join(missing)}. "
            "Measure them, or ask for a partial file."
        )
    by_dataset = {task: _numbers(task, measured[task]) for task in known}
    if not by_dataset:
        raise InputError(f"none of the 22 data sets is measured. Got {', '.join(measured) or 'nothing'} instead.")
    by_task = {
        kind: _means([by_dataset[task] for task in known if BTZSC[task].family == kind])
        for kind in FAMILIES
        if any(BTZSC[task].family == kind for task in known)
    }
    return {
        "schema_version": SCHEMA,
        "model": {
            "name": name,
            "model_type": family,
            "params": _short_count(parameters),
            "revision": revision or "unknown",
            "url": url or "",
        },
        "evaluation": {
            "btzsc_version": _harness(),
            "btzsc_commit": commit or "unknown",
            "timestamp": timestamp or datetime.now(UTC).isoformat(),
            "device": device,
            "precision": precision,
            "batch_size": None,  # texts are batched by tokens
            "max_samples": limit,
        },
        "results": {"overall": _means(list(by_dataset.values())), "by_task": by_task, "by_dataset": by_dataset},
    }


def _numbers(task: str, numbers: Mapping[str, float]) -> dict[str, float]:
    for metric in METRICS:
        value = numbers.get(metric)
        if not is_number(value, most=1):
            raise InputError(f"{task}.{metric} must be a number from 0 to 1. Got {value!r} instead.")
    return {theirs: float(numbers[ours]) for ours, theirs in THEIR_NAMES.items()}


def _means(blocks: Sequence[Mapping[str, float]]) -> dict[str, float]:
    return {metric: statistics.fmean(block[metric] for block in blocks) for metric in THEIR_NAMES.values()}


def _harness() -> str:
    """Return the version of the authors' package if it is installed, else that of labelspace."""
    try:
        return version("btzsc")
    except PackageNotFoundError:
        return f"labelspace {__version__}"


def _short_count(parameters: int | None) -> str:
    """Format a count as on the leaderboard: 22.7e6 becomes 23M, 8.2e9 becomes 8.2B."""
    if parameters is None:
        return "unknown"
    for size, letter, digits in ((1e9, "B", 1), (1e6, "M", 0), (1e3, "K", 0)):
        if parameters >= size:
            return f"{parameters / size:.{digits}f}".removesuffix(".0") + letter
    return str(parameters)
