"""A labelled file of one's own as a task, beside the data sets of the benchmark."""

import os
from collections.abc import Callable, Sequence
from pathlib import Path

from labelspace.bench.cards import Rows, TaskCard
from labelspace.bench.tasks import Task, counted, task_of
from labelspace.corpus import as_targets, open_table
from labelspace.corpus.policy import DocumentPolicy
from labelspace.errors import InputError
from labelspace.labels import LabelSpace


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
    """Make a task of a labelled file of one's own.

    Args:
        file: CSV, TSV, JSONL, Parquet (text also .gz), or a table in memory.
        labels: the candidate labels.
        text_column: the column with the documents.
        label_column: the column with label names; rows where it is empty are left out, and counted in the notes, and
            so are rows with a label whose text is empty or white space.
        name: what the task is called, with `"own/"` before it; the file's name if left out.
        limit: at most so many rows, drawn without replacement, in their order; None: all.
        seed: of that draw.

    Returns:
        The task.

    Raises:
        ColumnError: no such column.
        InputError: an unreadable or empty file, a row whose text is missing in a way that is no text (null), a label
            that the space lacks, no label or no text at all.

    Example:
        >>> import pyarrow as pa
        >>> table = pa.table({"text": ["a fine day", "rain", "?", " "], "label": ["good", "bad", "", "bad"]})
        >>> task = own_task(table, LabelSpace.from_names(["bad", "good"]), name="weather")
        >>> task.name, task.texts, task.targets.tolist()
        ('own/weather', ['a fine day', 'rain'], [1, 0])
        >>> task.notes
        ('1 row without a label left out', '1 row without a text left out')
    """
    table = open_table(file, text=text_column, label=label_column)
    # Not the table's own: that keeps empty texts and says so in a warning, and here they are left out.
    policy = DocumentPolicy(table.place)
    texts: list[str] = []
    targets: list[int] = []
    for batch in table.batches():
        values = batch.column(label_column).to_pylist()
        targets += _columns(
            values, labels.names, lambda row: f"{table.place(row)}: column {label_column!r}", len(targets)
        )
        texts += policy.clean(batch.column(text_column).to_pylist(), len(texts))
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
    stem = name if name is not None else shown.split(".")[0]
    card = TaskCard(
        name=f"own/{stem.removeprefix('own/')}",
        benchmark="own",
        family="own",
        domain="own",
        classes=len(labels),
        license="not stated",
        source=shown,
        rows=len(texts),
    )
    rows = Rows(space=labels, texts=[texts[r] for r in kept], targets=[targets[r] for r in kept], notes=tuple(notes))
    return task_of(card, rows, limit=limit, seed=seed)


def _columns(values: Sequence[object], names: Sequence[str], place: Callable[[int], str], first: int) -> list[int]:
    """Column numbers of label names; an unknown one is an error that names its row."""
    try:
        return as_targets(values, names, n_documents=len(values))
    except InputError:
        for row, value in enumerate(values, start=first):
            try:
                as_targets([value], names, n_documents=1)
            except InputError as error:
                raise InputError(str(error).replace("y[0]", place(row), 1)) from None
        raise
