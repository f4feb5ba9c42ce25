"""Ways of running a model: rows, limit, dtype, weights. Results of different ways are never averaged together."""

import statistics
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

from labelspace.bench.cards import METRICS
from labelspace.bench.records import NLI_TASK
from labelspace.bench.revision import same_revision
from labelspace.checks import did_you_mean
from labelspace.errors import ConfigError, InputError

Record = Mapping[str, Any]
ALL = "all"
"""The word for no limit."""


class Way(NamedTuple):
    """What the records of one table row share; their data sets and seeds differ."""

    model: str
    """The model's specification."""

    protocol: str
    """`"full"` or `"paper"`."""

    unverbalized: str
    """`"leave_out"` or `"class_0"`."""

    limit: int | None
    """Maximum texts; None: all."""

    dtype: str
    """Dtype of the computation."""

    revision: str | None
    """Revision of the weights; None: unknown."""

    def __str__(self) -> str:
        rows = "all texts" if self.limit is None else f"at most {self.limit:,} texts"
        class_0 = ["class 0"] * (self.unverbalized != "leave_out")
        return ", ".join([f"{self.protocol} rows", *class_0, rows, self.dtype])


def ways_of(records: Sequence[Record]) -> dict[Way, list[Record]]:
    """Group records by way, in the order of the store.

    A record of unknown weights, or of unknown settings, joins the only known revision that it may be of.

    Example:
        >>> run = {"model": "embedding:x", "protocol": "full", "unverbalized": "leave_out", "dtype": "float32"}
        >>> for way, own in ways_of([{**run, "limit": None}, {**run, "limit": 10}, {**run, "limit": 10}]).items():
        ...     print(way, len(own))
        full rows, all texts, float32 1
        full rows, at most 10 texts, float32 2
    """
    known: dict[Way, set[str]] = {}
    for record in records:
        if record.get("revision") is not None:
            known.setdefault(_without_weights(record), set()).add(record["revision"])
    found: dict[Way, list[Record]] = {}
    for record in records:
        bare = _without_weights(record)
        own, told = record.get("revision"), known.get(bare, set())
        whole = [each for each in told if not any(other.startswith(f"{each}+") for other in told)]
        may_be = [each for each in whole if same_revision(own, each)]
        found.setdefault(bare._replace(revision=may_be[0] if len(may_be) == 1 else own), []).append(record)
    return found


def names_of(ways: Sequence[Way]) -> dict[Way, str]:
    """Name each way by its differences from the default, and from the other ways in the same table."""
    names = {}
    for way in ways:
        words = [f"{way.protocol} rows"] * (way.protocol != "full") + ["class 0"] * (way.unverbalized != "leave_out")
        words += [f"limit {way.limit}"] * (way.limit is not None)
        words += [way.dtype] * any(other.model == way.model and other.dtype != way.dtype for other in ways)
        alike = [other for other in ways if other[:-1] == way[:-1]]
        words += [f"weights {_short(way.revision)}"] * (len(alike) > 1)
        names[way] = _bare(way.model) + (f" [{', '.join(words)}]" if words else "")
    # Add the path where two folders have the same name.
    return {
        way: name if list(names.values()).count(name) == 1 else f"{name} ({way.model})" for way, name in names.items()
    }


def choose_way(
    records: Sequence[Record],
    model: str,
    *,
    protocol: str | None = None,
    limit: int | str | None = None,
    dtype: str | None = None,
) -> tuple[Way, list[Record], int]:
    """Choose one way of running a model on data sets.

    Among the ways that match the arguments, the one with the most data sets of others wins, then the one with the most
    of all. Ties prefer all rows to the paper's, no limit to a limit, a larger limit to a smaller one, and then the
    newest.

    Args:
        records: records of the store.
        model: specification in the store; the kind may be left out if the name is unambiguous.
        protocol: `"full"` or `"paper"`; None: any.
        limit: maximum texts, or `"all"` for no limit; None: any.
        dtype: dtype of the computation; None: any.

    Returns:
        The way, its records, and the number of matching ways.

    Raises:
        ConfigError: the store has no such model, or no matching way.
        InputError: the model was run on pairs of sentences only.

    Example:
        >>> run = {"model": "embedding:x", "protocol": "full", "unverbalized": "leave_out", "dtype": "float32"}
        >>> runs = [{**run, "task": "imdb", "limit": limit, "provenance": {}} for limit in (10, None)]
        >>> print(choose_way(runs, "x")[0], "|", choose_way(runs, "x", limit=10)[0])
        full rows, all texts, float32 | full rows, at most 10 texts, float32
    """
    names = list(dict.fromkeys(record["model"] for record in records))
    found = [name for name in names if name == model] or [name for name in names if name.partition(":")[2] == model]
    if len(found) != 1:
        raise ConfigError(
            f"MODEL must be a model of the store. Got {model!r} instead.{did_you_mean(model, names)} "
            f"The store has: {', '.join(names) or 'nothing'}."
        )
    own = [record for record in records if record["model"] == found[0] and record["task"] != NLI_TASK]
    ways = ways_of(own)
    if not ways:
        raise InputError(f"the store holds no data set for {found[0]}; run `labelspace bench run` first.")
    asked = {"protocol": protocol, "limit": limit, "dtype": dtype}
    asked = {name: value for name, value in asked.items() if value is not None}
    wanted = {name: None if value == ALL else value for name, value in asked.items()}
    fitting = [way for way in ways if all(getattr(way, name) == value for name, value in wanted.items())]
    if not fitting:
        words = ", ".join(f"{name} {value}" for name, value in asked.items())
        there = "; ".join(f"{way} ({_sets(ways[way])} sets)" for way in ways)
        raise ConfigError(f"{found[0]} was not run with {words}. The store has: {there}.")
    at = {id(record): place for place, record in enumerate(records)}

    def rank(way: Way) -> tuple[Any, ...]:
        newest = max(str(record["provenance"].get("date") or "") for record in ways[way])
        last = max(at[id(record)] for record in ways[way])
        full, whole = way.protocol == "full", way.limit is None
        public = [record for record in ways[way] if not record["task"].startswith("own/")]
        return _sets(public), _sets(ways[way]), full, whole, way.limit or 0, newest, last

    best = max(fitting, key=rank)
    return best, ways[best], len(fitting)


def means_of(records: Sequence[Record]) -> dict[str, dict[str, float]]:
    """Return data set -> metric -> mean over the seeds.

    Args:
        records: records of one way.

    Example:
        >>> runs = [{"task": "imdb", "metrics": {"macro_f1_predicted": score}} for score in (0.5, 0.75)]
        >>> means_of(runs)
        {'imdb': {'macro_f1_predicted': 0.625}}
    """
    found: dict[str, list[Mapping[str, float]]] = {}
    for record in records:
        found.setdefault(record["task"], []).append(record["metrics"])
    return {
        task: {metric: statistics.fmean(run[metric] for run in runs) for metric in METRICS if metric in runs[0]}
        for task, runs in found.items()
    }


def _without_weights(record: Record) -> Way:
    return Way(**{field: record[field] for field in Way._fields[:-1]}, revision=None)


def _sets(records: Sequence[Record]) -> int:
    return len({record["task"] for record in records})


def _short(revision: str | None) -> str:
    if revision is None:
        return "unknown"
    weights, plus, settings = revision.removeprefix("sha256:").partition("+")
    return weights[:8] + plus + settings


def _bare(spec: str) -> str:
    kind, _, name = spec.partition(":")
    return f"{kind}:{Path(name).name}" if Path(name).is_absolute() else spec
