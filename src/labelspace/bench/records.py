"""Check the records of the result store.

Tables, figures and exports do not check records again, so any value that could give a wrong mean or a traceback there
is refused here, by field name. Unknown fields are allowed: a later labelspace may write more.
"""

from collections.abc import Callable, Mapping
from typing import Any, NamedTuple

from labelspace.bench.cards import FAMILIES
from labelspace.bench.cards import METRICS as FOUR
from labelspace.evaluate.provenance import REQUIRED

NLI_TASK = "nli"
"""The task and benchmark name of a record about NLI pairs, which are not a data set."""

METRICS = (*FOUR, "auroc")
"""Metrics of a record: the first four for a data set, the last for NLI pairs."""

MOST = 1e15
"""Upper bound of texts, seconds, parameters and MiB; a larger number must be a mistake."""


class _Rule(NamedTuple):
    words: str
    holds: Callable[[Any], bool]


def problem_of(record: Mapping[str, Any]) -> str | None:
    """Return the first problem of a record; None if it is valid.

    Args:
        record: a parsed line of the store.

    Example:
        >>> run = {"model": "embedding:x", "task": "agnews", "protocol": "full", "unverbalized": "leave_out"}
        >>> run |= {"limit": None, "seed": 0, "dtype": "float32", "fingerprint": "9f", "family": "embedding"}
        >>> run |= {"benchmark": "btzsc", "task_family": "topic", "texts": 10, "seconds": 0.5}
        >>> run |= {"provenance": dict.fromkeys(REQUIRED) | {"hardware": {}}}
        >>> problem_of(run)
        'it lacks metrics'
        >>> problem_of({**run, "metrics": dict.fromkeys(FOUR, 71)})
        'macro_f1_predicted of metrics must be a number from 0 to 1. Got 71 instead'
        >>> problem_of({**run, "metrics": dict.fromkeys(FOUR, 0.71)}) is None
        True
    """
    missing = [name for name in NEEDED if name not in record]
    if missing:
        return f"it lacks {', '.join(missing)}"
    for name, rule in (*_NEEDED.items(), *_OPTIONAL.items()):
        if name in record and not rule.holds(record[name]):
            return _must(name, rule.words, record[name])
    pairs = record["task"] == NLI_TASK
    if pairs != (record["benchmark"] == NLI_TASK):
        return f"benchmark cannot be {record['benchmark']!r} for the task {record['task']!r}"
    return (
        _scores(record["metrics"], "metrics", ("auroc",) if pairs else FOUR)
        or (_scores(record.get("by_source"), "by_source", ()) if pairs else None)
        or _intervals(record.get("intervals"))
        or _origin(record["provenance"])
    )


def _must(name: str, words: str, value: object) -> str:
    shown = repr(value)
    return f"{name} must be {words}. Got {shown if len(shown) <= 60 else shown[:59] + '…'} instead"


def _scores(numbers: object, where: str, needed: tuple[str, ...]) -> str | None:
    if not isinstance(numbers, Mapping):
        return _must(where, "names with a number each", numbers)
    missing = [name for name in needed if name not in numbers]
    if missing:
        return f"{where} lacks {', '.join(missing)}"
    wrong = next((name for name, value in numbers.items() if not is_number(value, most=1)), None)
    return None if wrong is None else _must(f"{wrong} of {where}", "a number from 0 to 1", numbers[wrong])


def _intervals(intervals: Mapping[str, Any] | None) -> str | None:
    for name in METRICS:
        bounds = (intervals or {}).get(name)
        if bounds is not None and not (
            isinstance(bounds, list) and len(bounds) == 2 and all(is_number(bound, most=1) for bound in bounds)
        ):
            return _must(f"{name} of intervals", "two numbers from 0 to 1, or null", bounds)
    return None


def _origin(origin: Mapping[str, Any]) -> str | None:
    missing = [name for name in REQUIRED if name not in origin]
    if missing:
        return f"provenance lacks {', '.join(missing)}"
    if not isinstance(origin["hardware"], Mapping):
        return _must("hardware of provenance", "names with a value each", origin["hardware"])
    for name in ("date", "commit"):
        if not (origin[name] is None or isinstance(origin[name], str)):
            return _must(f"{name} of provenance", "text", origin[name])
    return None


def is_number(value: object, *, most: float = MOST) -> bool:
    """Return whether a value is a number from 0 to `most`."""
    # Compare without converting to float: NaN, infinity and huge integers all fail the comparison.
    return isinstance(value, int | float) and not isinstance(value, bool) and 0 <= value <= most


def _is_whole(value: object, least: int) -> bool:
    return isinstance(value, int) and is_number(value) and value >= least


def _one_of(*choices: str) -> _Rule:
    return _Rule(f"one of {', '.join(map(repr, choices))}", lambda value: value in choices)


def _or_null(rule: _Rule) -> _Rule:
    return _Rule(f"{rule.words}, or null", lambda value: value is None or rule.holds(value))


_TEXT = _Rule("text", lambda value: isinstance(value, str) and bool(value.strip()))
_COUNT = _Rule("a whole number, 1 or more", lambda value: _is_whole(value, 1))
_AMOUNT = _Rule("a number, 0 or more", is_number)
_MAPPING = _Rule("names with a value each", lambda value: isinstance(value, Mapping))
_TEXTS = _Rule("a list of texts", lambda value: isinstance(value, list) and all(isinstance(v, str) for v in value))

_NEEDED = {
    **dict.fromkeys(("model", "task", "protocol", "unverbalized"), _TEXT),
    "limit": _or_null(_COUNT),
    "seed": _Rule("a whole number, 0 or more", lambda value: _is_whole(value, 0)),
    **dict.fromkeys(("dtype", "fingerprint", "family"), _TEXT),
    "benchmark": _one_of("btzsc", "mteb", "own", NLI_TASK),
    "task_family": _one_of(*FAMILIES, "own", NLI_TASK),
    "texts": _COUNT,
    "seconds": _AMOUNT,
    "metrics": _MAPPING,
    "provenance": _MAPPING,
}
NEEDED = tuple(_NEEDED)
"""Required fields of a record."""

_OPTIONAL = {
    **dict.fromkeys(("name", "memory_method"), _TEXT),
    "revision": _or_null(_TEXT),
    "parameters": _or_null(_COUNT),
    "classes": _COUNT,
    "notes": _TEXTS,
    "intervals": _or_null(_MAPPING),
    "described": _MAPPING,
    "texts_per_second": _AMOUNT,
    **dict.fromkeys(("peak_memory_mib", "memory_before_mib", "gpu_memory_mib"), _or_null(_AMOUNT)),
}
