"""Which tasks a run is about: words and files become tasks that are loaded one at a time."""

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple, final

from labelspace.bench.cards import BTZSC, FAMILIES, MTEB, PAPER_IN_FULL
from labelspace.bench.local import paper_rows_in
from labelspace.bench.own import own_task
from labelspace.bench.tasks import Task, find_tasks, load_task
from labelspace.checks import did_you_mean
from labelspace.errors import ConfigError, InputError
from labelspace.labels import LabelSpace

BENCHMARKS = {"btzsc": BTZSC, "mteb": MTEB}


@final
@dataclass(frozen=True, kw_only=True)
class OwnFile:
    """A labelled file of the user's own as a task."""

    file: Path
    """CSV, TSV, JSONL or Parquet."""

    labels: Path
    """Label file: names, and what they mean."""

    text_column: str = "text"
    """Column with the texts."""

    label_column: str = "label"
    """Column with the names of the labels."""


class Source(NamedTuple):
    """A task that can be loaded, again and again, so that one at a time is held."""

    name: str
    load: Callable[[int], Task]
    from_hub: bool = False
    """True: whether it can be read shows when it is loaded first."""


@final
class Plan:
    """What can be loaded of what was asked for."""

    def __init__(self, data: Path | None, **options: Any) -> None:
        self.data = data
        self.options = options

    def sources(self, tasks: Iterable[str | Task | OwnFile]) -> tuple[list[Source], dict[str, str]]:
        """Return what can be loaded, and of what cannot its name and why. The hub is not asked.

        Raises:
            ConfigError: an unknown name, or none at all.
            InputError: nothing can be loaded.
        """
        sources, names = [], []
        for task in tasks:
            if isinstance(task, str):
                names += [name for name in expand_tasks([task]) if name not in names]
            else:
                sources.append(self._own(task))
        if not sources and not names:
            raise ConfigError("there is no task to run; name one, a family, or 'btzsc' for all of them.")
        absent = self._absent(names) if names else {}
        hub = self.data is None
        sources += [Source(name, self._loader(name), hub) for name in names if name not in absent]
        if not sources:
            raise none_can_be_run(absent)
        return sources, absent

    def _absent(self, names: Sequence[str]) -> dict[str, str]:
        found = find_tasks(self.data)
        absent = {name: found.why.get(name, "not there") for name in names if name not in found.present}
        if self.options["protocol"] == "paper":
            known = PAPER_IN_FULL if self.data is None else paper_rows_in(self.data)
            absent |= {name: "the paper's rows are not known" for name in names if name not in {*known, *absent}}
        return absent

    def _loader(self, name: str) -> Callable[[int], Task]:
        return lambda seed: load_task(name, data=self.data, seed=seed, **self.options)

    def _own(self, task: Task | OwnFile) -> Source:
        if isinstance(task, Task):
            return Source(task.card.name, lambda _: task)

        labels = LabelSpace.from_file(task.labels)

        def load(seed: int) -> Task:
            columns = {"text_column": task.text_column, "label_column": task.label_column}
            return own_task(task.file, labels, **columns, limit=self.options["limit"], seed=seed)

        return Source(load(0).card.name, load)


def none_can_be_run(absent: Mapping[str, str]) -> InputError:
    """Return the error that says why none of the tasks is there."""
    reasons = "; ".join(f"{name}: {why}" for name, why in list(absent.items())[:3])
    return InputError(
        f"none of the {len(absent)} tasks can be run ({reasons}{'; ...' if len(absent) > 3 else ''}). "
        "Give the folder of the data sets, or other tasks."
    )


def expand_tasks(words: Iterable[str]) -> list[str]:
    """Return names of data sets for names, families, `"btzsc"`, `"mteb"` and `"all"`.

    Raises:
        ConfigError: a word is none of these.

    Example:
        >>> expand_tasks(["agnews", "emotion"])
        ['agnews', 'emotiondair', 'empathetic']
    """
    names: list[str] = []
    cards = {**BTZSC, **MTEB}
    for word in words:
        if word == "all":
            found = list(cards)
        elif word in BENCHMARKS:
            found = list(BENCHMARKS[word])
        elif word in FAMILIES:
            found = [name for name, card in BTZSC.items() if card.family == word]
        elif word in cards:
            found = [word]
        else:
            known = [*cards, *FAMILIES, *BENCHMARKS, "all"]
            raise ConfigError(
                f"there is no task {word!r}.{did_you_mean(word, known)} `labelspace bench tasks` lists them."
            )
        names += [name for name in found if name not in names]
    return names
