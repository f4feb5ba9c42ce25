"""Tasks as data: a label space, texts and the right answers, whatever folder, hub or file they come from.

    load_task("agnews", data=folder)      one of 22 BTZSC or 8 MTEB sets
    own_task("mail.csv", labels)          a file of one's own in place of them
    find_tasks(folder)                    which are there

Decisions that change numbers are options and are written into the task's notes: which rows (`protocol`), what becomes
of rows whose class has no verbalizer (`unverbalized`), how many (`limit`). Macro figures are means over the labels
that occur or are predicted, as in the published results; a label that no row of the whole set has is noted.
"""

import hashlib
import os
import random
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import final

import numpy as np
from numpy.typing import NDArray

from labelspace.checks import check_choice, check_number
from labelspace.corpus import as_targets, open_table
from labelspace.errors import InputError
from labelspace.evaluate.bench.cards import BTZSC, MTEB, Rows, TaskCard, card_of
from labelspace.evaluate.bench.hub import REPOSITORY, read_hub
from labelspace.evaluate.bench.local import missing_file, read_local
from labelspace.labels import LabelSpace
from labelspace.seeds import child_seed

PROTOCOLS = ("full", "paper")
UNVERBALIZED = ("leave_out", "class_0")


@final
@dataclass(frozen=True, kw_only=True)
class Task:
    """One data set, ready to be scored."""

    card: TaskCard
    """What is known of it."""

    space: LabelSpace
    """The candidate labels, each with its verbalizer; targets are columns of it."""

    texts: list[str]
    """[text] the documents."""

    targets: NDArray[np.int64]
    """[text] column number of each document's label."""

    notes: tuple[str, ...]
    """What a reader of the numbers should know: rows left out, labels without a row, sample or whole."""

    fingerprint: str
    """SHA-256 over texts, targets and verbalizers: two tasks with the same one give a model the same work."""

    @property
    def name(self) -> str:
        """The name of its card."""
        return self.card.name


@final
@dataclass(frozen=True, kw_only=True)
class Availability:
    """Which data sets are there."""

    present: list[str]
    """Names, BTZSC first, in the order of the cards."""

    absent: list[str]
    """Names of those that are not."""

    why: Mapping[str, str]
    """Of each absent name: why."""


def load_task(
    name: str,
    *,
    data: str | os.PathLike[str] | None = None,
    protocol: str = "full",
    unverbalized: str | None = None,
    limit: int | None = None,
    seed: int = 0,
) -> Task:
    """Load one of the 22 BTZSC or 8 MTEB data sets.

    Args:
        name: a name of `cards.BTZSC` or `cards.MTEB`.
        data: folder with the data sets (see `local`); None: the hub repository btzsc/btzsc.
        protocol: `"full"`: all test rows; `"paper"`: the rows that the paper's tables are computed on, where known.
        unverbalized: rows whose class has no verbalizer: `"leave_out"`, or `"class_0"` as the authors' harness does;
            None: what the protocol did, `"class_0"` for the paper's.
        limit: at most so many rows, drawn without replacement, in their order; None: all.
        seed: of that draw; without `limit` it changes nothing.

    Returns:
        The task.

    Raises:
        ConfigError: an unknown name or option.
        InputError: the data is not there, is damaged, or has a label out of range; the message names file and row.

    Example:
        >>> load_task("agnew")
        Traceback (most recent call last):
        labelspace.errors.ConfigError: there is no data set 'agnew'. Did you mean 'agnews'? Known: ...

    Reference:
        BTZSC, section 3 and appendix A.
    """
    card = card_of(name)
    check_choice("protocol", protocol, PROTOCOLS)
    unverbalized = what_the_protocol_did(protocol, unverbalized)
    folder = None if data is None else _folder(data)
    rows = read_hub(card, protocol=protocol) if folder is None else read_local(card, folder, protocol=protocol)
    rows = _settle(rows, unverbalized)
    if protocol == "paper":
        note = "the rows of the paper's tables"
        rows = Rows(space=rows.space, texts=rows.texts, targets=rows.targets, notes=(note, *rows.notes))
    return _task(card, rows, limit=limit, seed=seed)


def find_tasks(data: str | os.PathLike[str] | None) -> Availability:
    """Say which data sets are there, without reading their rows.

    Args:
        data: folder with the data sets; None: the hub, which has the BTZSC sets. The hub is not asked.

    Raises:
        InputError: there is no such folder.

    Example:
        >>> found = find_tasks(None)
        >>> len(found.present), len(found.absent), found.why["mteb/imdb"]
        (22, 8, 'read from a folder only')
    """
    if data is None:
        return Availability(present=list(BTZSC), absent=list(MTEB), why=dict.fromkeys(MTEB, "read from a folder only"))
    folder = _folder(data)
    present, why = [], {}
    for name, card in (*BTZSC.items(), *MTEB.items()):
        missing = missing_file(card, folder)
        if missing is None:
            present.append(name)
        else:
            why[name] = f"no {missing}"
    return Availability(present=present, absent=list(why), why=why)


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
        label_column: the column with label names; rows where it is empty are left out, and counted in the notes.
        name: what the task is called, with `"own/"` before it; the file's name if left out.
        limit: at most so many rows, drawn without replacement, in their order; None: all.
        seed: of that draw.

    Returns:
        The task.

    Raises:
        ColumnError: no such column.
        InputError: an unreadable or empty file, a row without a text, a label that the space lacks, no label at all.

    Example:
        >>> import pyarrow as pa
        >>> table = pa.table({"text": ["a fine day", "rain", "?"], "label": ["good", "bad", ""]})
        >>> task = own_task(table, LabelSpace.from_names(["bad", "good"]), name="weather")
        >>> task.name, task.texts, task.targets.tolist(), task.notes
        ('own/weather', ['a fine day', 'rain'], [1, 0], ('1 row without a label left out',))
    """
    table = open_table(file, text=text_column, label=label_column)
    texts: list[str] = []
    targets: list[int] = []
    for batch in table.batches():
        values = batch.column(label_column).to_pylist()
        targets += _columns(
            values, labels.names, lambda row: f"{table.place(row)}: column {label_column!r}", len(targets)
        )
        texts += table.texts(batch)
    shown = Path(file).name if isinstance(file, str | os.PathLike) else "a table in memory"
    if not texts:
        raise InputError(f"{shown} has no rows; there is nothing to score.")
    known = [row for row, target in enumerate(targets) if target >= 0]
    if not known:
        raise InputError(f"column {label_column!r} has no label in any of the {len(texts)} rows; give labelled ones.")
    notes = (f"{_rows(len(texts) - len(known))} without a label left out",) if len(known) < len(texts) else ()
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
    rows = Rows(space=labels, texts=[texts[r] for r in known], targets=[targets[r] for r in known], notes=notes)
    return _task(card, rows, limit=limit, seed=seed)


def _folder(data: str | os.PathLike[str]) -> Path:
    folder = Path(data)
    if not folder.is_dir():
        raise InputError(
            f"there is no folder {folder} with data sets; give another, or none to read from {REPOSITORY}."
        )
    return folder


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


def _settle(rows: Rows, unverbalized: str) -> Rows:
    """Rows without a verbalizer: out, or into class 0."""
    without = sum(target < 0 for target in rows.targets)
    if not without:
        return rows
    if unverbalized == "class_0":
        first = rows.space.names[0]
        what = f"{_rows(without)} of classes without a verbalizer"
        note = f"{what} counted as class 0 ({first}), as the authors' harness does"
        targets = [max(target, 0) for target in rows.targets]
        return Rows(space=rows.space, texts=rows.texts, targets=targets, notes=(*rows.notes, note))
    kept = [row for row, target in enumerate(rows.targets) if target >= 0]
    return Rows(
        space=rows.space,
        texts=[rows.texts[row] for row in kept],
        targets=[rows.targets[row] for row in kept],
        notes=(*rows.notes, f"{_rows(without)} of classes without a verbalizer left out"),
    )


def _task(card: TaskCard, rows: Rows, *, limit: int | None, seed: int) -> Task:
    if not rows.texts:
        raise InputError(f"{card.name} has no row with a label; there is nothing to score.")
    notes = [*rows.notes, *_labels_without_rows(rows)]
    texts, targets = rows.texts, rows.targets
    if limit is not None:
        check_number("limit", limit, least=1, whole=True)
        if limit < len(texts):
            draw = random.Random(child_seed(seed, "bench", card.name)).sample(range(len(texts)), limit)
            notes.append(f"{_rows(limit)} of {len(texts):,} drawn with seed {seed}")
            texts, targets = [texts[row] for row in sorted(draw)], [targets[row] for row in sorted(draw)]
    return Task(
        card=card,
        space=rows.space,
        texts=texts,
        targets=np.array(targets, dtype=np.int64),
        notes=tuple(notes),
        fingerprint=_fingerprint(texts, targets, rows.space.verbalizers),
    )


def what_the_protocol_did(protocol: str, unverbalized: str | None) -> str:
    """Return how rows without a hypothesis are counted where nobody says.

    Example:
        >>> what_the_protocol_did("paper", None), what_the_protocol_did("full", None)
        ('class_0', 'leave_out')
    """
    if unverbalized is None:
        return "class_0" if protocol == "paper" else "leave_out"
    check_choice("unverbalized", unverbalized, UNVERBALIZED)
    return unverbalized


def _labels_without_rows(rows: Rows) -> list[str]:
    counts = Counter(rows.targets)
    bare = [name for column, name in enumerate(rows.space.names) if not counts[column]]
    if not bare:
        return []
    shown = ", ".join(bare[:5]) + (", ..." if len(bare) > 5 else "")
    return [
        f"no row has {len(bare)} of {len(rows.space)} labels ({shown}); they can be predicted, "
        "macro figures are means over the labels that occur or are predicted"
    ]


def _fingerprint(texts: Sequence[str], targets: Sequence[int], verbalizers: Sequence[str]) -> str:
    digest = hashlib.sha256()
    for kind, parts in (("verbalizer", verbalizers), ("text", texts)):
        for part in parts:
            content = part.encode("utf-8", "surrogatepass")
            digest.update(f"{kind} {len(content)} ".encode() + content)
    digest.update(",".join(map(str, targets)).encode())
    return digest.hexdigest()


def _rows(count: int) -> str:
    return f"{count:,} row{'' if count == 1 else 's'}"
