"""Resolve task names and labelled files to tasks that are loaded one at a time."""

import os
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple, final

from labelspace.bench.cards import BTZSC, FAMILIES, MTEB, PAPER_IN_FULL, Rows, TaskCard
from labelspace.bench.local import paper_rows_in
from labelspace.bench.tasks import Task, counted, find_tasks, load_task, task_of
from labelspace.checks import did_you_mean
from labelspace.corpus import as_targets, open_table
from labelspace.corpus.policy import DocumentPolicy, is_missing
from labelspace.corpus.targets import read_cells
from labelspace.errors import ConfigError, InputError
from labelspace.labels import LabelSpace

BENCHMARKS = {"btzsc": BTZSC, "mteb": MTEB}


@final
@dataclass(frozen=True, kw_only=True)
class OwnFile:
    """A labelled file of the user's own, used as a task."""

    file: Path
    """CSV, TSV, JSONL or Parquet."""

    labels: Path
    """Label file."""

    text_column: str = "text"
    """Column with the texts."""

    label_column: str = "label"
    """Column with the label names."""


class Source(NamedTuple):
    """A task that can be loaded repeatedly, so that only one is in memory at a time."""

    name: str
    load: Callable[[int], Task]
    from_hub: bool = False
    """True for a hub task, which may turn out to be unreadable on its first load."""


@final
class Plan:
    """Finds which of the requested tasks can be loaded."""

    def __init__(self, data: Path | None, **options: Any) -> None:
        self.data = data
        self.options = options

    def sources(self, tasks: Iterable[str | Task | OwnFile]) -> tuple[list[Source], dict[str, str]]:
        """Return the loadable tasks, and the others as name -> reason. The hub is not contacted.

        Raises:
            ConfigError: an unknown name, no task, or two files of one name, which would share results in the store.
            InputError: no task can be loaded.
        """
        sources, names, own = [], [], {}
        for task in tasks:
            if isinstance(task, str):
                names += [name for name in expand_tasks([task]) if name not in names]
                continue
            source = self._own(task)
            if source.name not in own:
                own[source.name] = task
                sources.append(source)
            elif _named(own[source.name]) != _named(task):
                raise ConfigError(
                    f"two tasks are called {source.name}, and would share their results; rename the file of one, or "
                    "run them into stores of their own."
                )
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
        if labels.several:
            raise InputError(
                f"{task.labels} says several: true, and the benchmark scores one label a text; leave it out."
            )

        def load(seed: int) -> Task:
            columns = {"text_column": task.text_column, "label_column": task.label_column}
            return own_task(task.file, labels, **columns, limit=self.options["limit"], seed=seed)

        return Source(load(0).card.name, load)


def _named(task: Task | OwnFile) -> object:
    """Return what tells a task from another one of its name."""
    if isinstance(task, Task):
        return task.fingerprint
    return task.file.resolve(), task.labels.resolve(), task.text_column, task.label_column


def none_can_be_run(absent: Mapping[str, str]) -> InputError:
    """Return the error for a run without a loadable task, with the reasons."""
    reasons = "; ".join(f"{name}: {why}" for name, why in list(absent.items())[:3])
    return InputError(
        f"none of the {len(absent)} tasks can be run ({reasons}{'; ...' if len(absent) > 3 else ''}). "
        "Give the folder of the data sets, or other tasks."
    )


def expand_tasks(words: Iterable[str]) -> list[str]:
    """Expand names, families, `"btzsc"`, `"mteb"` and `"all"` to names of data sets.

    Raises:
        ConfigError: an unknown word.

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


def own_task(
    file: object,
    labels: LabelSpace,
    *,
    text_column: str = "text",
    label_column: str = "label",
    name: str | None = None,
    limit: int | None = None,
    seed: int = 0,
) -> Task:
    """Make a task from the user's own labelled file.

    Args:
        file: CSV, TSV, JSONL, Parquet (text also .gz), or a table in memory.
        labels: the candidate labels.
        text_column: the column with the documents.
        label_column: the column with label names. Rows with an empty label or a blank text are left out, and counted
            in the notes.
        name: name of the task, prefixed with `"own/"`; default: the file's name, and the label
            column if it is not `label`.
        limit: maximum rows, drawn without replacement, in file order; None: all.
        seed: seed of that draw.

    Returns:
        The task.

    Raises:
        ColumnError: a column is missing.
        InputError: an unreadable or empty file, an unknown label, or no label or no text in
            any row.

    Example:
        >>> import pyarrow as pa
        >>> table = pa.table({"text": ["a fine day", "rain", "?", " "], "label": ["good", "bad", "", "bad"]})
        >>> task = own_task(table, LabelSpace.from_names(["bad", "good"]), name="weather")
        >>> task.name, task.texts, task.targets.tolist()
        ('own/weather', ['a fine day', 'rain'], [1, 0])
        >>> task.notes
        ('1 row without a label left out', '1 row without a text left out')
    """
    table = open_table(file, text_column=text_column, label_column=label_column)
    # A policy of its own: the table's keeps empty texts and warns of them; here they are left out.
    policy = DocumentPolicy(table.place)
    texts: list[str] = []
    targets: list[int] = []
    for batch in table.batches():
        values, first = batch.column(label_column).to_pylist(), len(targets)
        targets += read_cells(
            values,
            lambda cells, what: as_targets(cells, labels.names, n_documents=len(cells), what=what),
            lambda cell, first=first: f"{table.place(first + cell)}: column {label_column!r}",
        )
        found = batch.column(text_column).to_pylist()
        texts += policy.clean(["" if is_missing(value) else value for value in found], len(texts))
    shown = Path(file).name if isinstance(file, str | os.PathLike) else "a table in memory"
    if not texts:
        raise InputError(f"{shown} has no rows; there is nothing to score.")
    known = [row for row, target in enumerate(targets) if target >= 0]
    if not known:
        raise InputError(f"column {label_column!r} has no label in any of the {len(texts)} rows; give labelled ones.")
    kept = [row for row in known if texts[row].strip()]
    if not kept:
        raise InputError(f"column {text_column!r} has no text in any of the {len(known)} labelled rows; give some.")
    left_out = {"label": len(texts) - len(known), "text": len(known) - len(kept)}
    notes = [f"{counted(count)} without a {what} left out" for what, count in left_out.items() if count]
    notes += [note.rstrip(".") for kind, note in policy.notes().items() if kind != "empty"]
    # Two coders in one file are two data sets.
    coder = "" if label_column == OwnFile.label_column else f" ({label_column})"
    stem = name if name is not None else Path(shown.removesuffix(".gz")).stem + coder
    card = TaskCard(
        name=f"own/{stem.removeprefix('own/')}",
        benchmark="own",
        family="own",
        domain="own",
        classes=len(labels),
        licence="not stated",
        source=shown,
        rows=len(texts),
    )
    rows = Rows(space=labels, texts=[texts[r] for r in kept], targets=[targets[r] for r in kept], notes=tuple(notes))
    return task_of(card, rows, limit=limit, seed=seed)
