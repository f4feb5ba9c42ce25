"""Results in the JSON layout of the btzsc leaderboard, schema 1.0.

    schema_version  "1.0"
    model           name, model_type, params (such as "434M"), revision, url
    evaluation      btzsc_version, btzsc_commit, timestamp, device, precision, batch_size, max_samples
    results         overall, by_task (4 families), by_dataset (22 sets): each with the four metrics, from 0 to 1,
                    by the leaderboard's names (`cards.THEIR_NAMES`)

The leaderboard takes complete results only. Means here are over the data sets that were measured; a family without any
is left out and never 0, which would be a number that nobody measured.
"""

import statistics
from collections.abc import Iterable, Mapping, Sequence
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
"""The families that the leaderboard knows; base encoders and models of a kind of their own have no place."""

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
    batch_size: int | None = None,
    limit: int | None = None,
    timestamp: str | None = None,
    commit: str | None = None,
    partial: bool = False,
) -> dict[str, Any]:
    """Put measured scores into the layout of the btzsc leaderboard.

    Args:
        measured: data set -> metric -> score from 0 to 1, all four metrics of each; other data sets than the 22 of
            BTZSC are left out.
        name: the model's name, on the hub if it is there.
        family: one of `MODEL_TYPES`; base encoders and models of a kind of their own have no place on the leaderboard.
        parameters: number of weights, None: not known.
        revision: the model's commit or tag.
        url: where the model is to be had.
        precision: the number format it computed in, such as `"bfloat16"`.
        device: what it ran on.
        batch_size: texts in a batch; None where batches are made by tokens.
        limit: rows at most of each data set; None: all.
        timestamp: when it was measured, ISO 8601; now if left out.
        commit: the commit of the code that measured.
        partial: True gives what there is, though the leaderboard will not take it; see `validate`.

    Returns:
        Plain values, ready for JSON.

    Raises:
        ConfigError: another family.
        InputError: a data set is missing (without `partial`), or a score is missing or not from 0 to 1.

    Example:
        >>> scores = dict.fromkeys(METRICS, 0.5)
        >>> everywhere = dict.fromkeys(BTZSC, scores)
        >>> payload = leaderboard_payload(everywhere, name="me/mine", family="nli", parameters=434_000_000)
        >>> validate(payload), payload["model"]["params"], payload["results"]["by_task"]["topic"]["accuracy"]
        ([], '434M', 0.5)

    Reference:
        The package btzsc 0.1.2, `BTZSCResults.to_json` and `leaderboard.validate`.
    """
    if family not in MODEL_TYPES:
        raise ConfigError(
            f"family must be one of {', '.join(map(repr, MODEL_TYPES))}, as the leaderboard has no others. "
            f"Got {family!r} instead; a model of that kind has no place there."
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
            "batch_size": batch_size,
            "max_samples": limit,
        },
        "results": {"overall": _means(list(by_dataset.values())), "by_task": by_task, "by_dataset": by_dataset},
    }


def validate(payload: Mapping[str, Any]) -> list[str]:
    """Return what keeps the leaderboard from taking a payload; nothing: it may be sent in.

    Args:
        payload: what `leaderboard_payload` gave, or the content of somebody's file.

    Example:
        >>> problems = validate({"schema_version": "1.0"})
        >>> len(problems), problems[0]
        (31, 'model.name is missing')
    """
    model, evaluation, results = (_part(payload, key) for key in ("model", "evaluation", "results"))
    found = []
    if payload.get("schema_version") != SCHEMA:
        found.append(f"schema_version must be {SCHEMA!r}. Got {payload.get('schema_version')!r} instead.")
    if not model.get("name"):
        found.append("model.name is missing")
    if model.get("model_type") not in MODEL_TYPES:
        listed = ", ".join(MODEL_TYPES)
        found.append(f"model.model_type must be one of {listed}. Got {model.get('model_type')!r} instead.")
    found += [f"evaluation.{key} is missing" for key in ("btzsc_version", "btzsc_commit") if not evaluation.get(key)]
    found += _wrong_numbers(results.get("overall"), "results.overall")
    for part, names in (("by_task", FAMILIES), ("by_dataset", tuple(BTZSC))):
        held = _part(results, part)
        for name in names:
            found += _wrong_numbers(held.get(name), f"results.{part}.{name}")
    return found


def _wrong_numbers(block: object, where: str, names: Iterable[str] = THEIR_NAMES.values()) -> list[str]:
    if not isinstance(block, Mapping):
        return [f"{where} is missing"]
    return [
        f"{where}.{metric} must be a number from 0 to 1. Got {block.get(metric)!r} instead."
        for metric in names
        if not is_number(block.get(metric), most=1)
    ]


def _part(payload: Mapping[str, Any], key: str) -> Mapping[str, Any]:
    part = payload.get(key)
    return part if isinstance(part, Mapping) else {}


def _numbers(task: str, numbers: Mapping[str, float]) -> dict[str, float]:
    wrong = _wrong_numbers(numbers, task, METRICS)
    if wrong:
        raise InputError(wrong[0])
    return {theirs: float(numbers[ours]) for ours, theirs in THEIR_NAMES.items()}


def _means(blocks: Sequence[Mapping[str, float]]) -> dict[str, float]:
    return {metric: statistics.fmean(block[metric] for block in blocks) for metric in THEIR_NAMES.values()}


def _harness() -> str:
    """The version of the authors' package where it is installed, else whose code measured."""
    try:
        return version("btzsc")
    except PackageNotFoundError:
        return f"labelspace {__version__}"


def _short_count(parameters: int | None) -> str:
    """A count as the leaderboard writes it: 22.7M becomes 23M, 8.2e9 becomes 8.2B."""
    if parameters is None:
        return "unknown"
    for size, letter, digits in ((1e9, "B", 1), (1e6, "M", 0), (1e3, "K", 0)):
        if parameters >= size:
            return f"{parameters / size:.{digits}f}".removesuffix(".0") + letter
    return str(parameters)
