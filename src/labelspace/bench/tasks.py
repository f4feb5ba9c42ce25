"""Tasks as data: a label space, texts and the right answers, whatever folder, hub or file they come from.

    load_task("agnews", data=folder)      one of 22 BTZSC or 8 MTEB sets
    own.own_task("mail.csv", labels)      a file of one's own in place of them
    find_tasks(folder)                    which are there

Decisions that change numbers are options and are written into the task's notes: which rows (`protocol`), what becomes
of rows whose class has no verbalizer (`unverbalized`), how many (`limit`); and whether a folder has the rows of which
the shipped results are (`rows_checksum`). Macro figures are means over the labels
that occur or are predicted, as in the published results; a label that no row of the whole set has is noted.
"""

import hashlib
import os
import random
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import final

import numpy as np
from numpy.typing import NDArray

from labelspace.bench.cards import BTZSC, MTEB, Rows, TaskCard, card_of
from labelspace.bench.hub import REPOSITORY, open_hub, read_hub
from labelspace.bench.local import missing_file, read_local
from labelspace.checks import check_choice, check_number
from labelspace.errors import InputError
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

    revision: str | None = None
    """Commit of the hub's repository that the rows are from; None elsewhere."""

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
    offline: bool | None = None,
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
        offline: True reads the hub's cache only.

    Returns:
        The task. Where the folder's copy has other rows than the card says, a note tells so.

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
    if folder is None:
        rows = read_hub(card, protocol=protocol, offline=offline)
    else:
        rows = read_local(card, folder, protocol=protocol)
    if protocol == "paper":
        rows = replace(rows, notes=("the rows of the paper's tables", *rows.notes))
    elif folder is not None and card.checksum not in (None, rows_checksum(rows, card.benchmark)):
        rows = replace(rows, notes=(*rows.notes, "other rows than the known copy"))
    return task_of(card, _settle(rows, unverbalized), limit=limit, seed=seed)


def find_tasks(data: str | os.PathLike[str] | None, *, offline: bool | None = None) -> Availability:
    """Say which data sets are there, without reading their rows.

    Args:
        data: folder with the data sets; None: the hub, which has the BTZSC sets. The hub is not asked.
        offline: True counts of the hub's sets only those that its cache on this machine has.

    Returns:
        The names that are there, those that are not, and why each of these is not.

    Raises:
        InputError: there is no such folder.
        MissingDependencyError: the cache was to be looked at, and the package datasets is not installed.

    Example:
        >>> found = find_tasks(None)
        >>> len(found.present), len(found.absent), found.why["mteb/imdb"]
        (22, 8, 'read from a folder only')
    """
    if data is None:
        lost = {name: why for name in BTZSC if (why := _not_cached(name))} if offline else {}
        lost |= dict.fromkeys(MTEB, "read from a folder only")
        return Availability(present=[name for name in BTZSC if name not in lost], absent=list(lost), why=lost)
    folder = _folder(data)
    present, why = [], {}
    for name, card in (*BTZSC.items(), *MTEB.items()):
        missing = missing_file(card, folder)
        if missing is None:
            present.append(name)
        else:
            why[name] = f"no {missing}"
    return Availability(present=present, absent=list(why), why=why)


def rows_checksum(rows: Rows, benchmark: str) -> str:
    """Return the SHA-256 that tells a copy of a data set from others, before anything is left out of it.

    Neither the order of the rows nor that of the labels is in it: a copy of the same rows from elsewhere is the same.

    Args:
        rows: all that a reader found.
        benchmark: `"btzsc"`: a class is its verbalizer; `"mteb"`: its name, as the verbalizers are not of the data.

    Example:
        >>> from labelspace.labels import LabelSpace
        >>> one = Rows(space=LabelSpace.from_names(["a", "b"]), texts=["x", "y"], targets=[0, 1], notes=())
        >>> other = Rows(space=LabelSpace.from_names(["b", "a"]), texts=["y", "x"], targets=[0, 1], notes=())
        >>> rows_checksum(one, "btzsc") == rows_checksum(other, "btzsc")
        True
    """
    words = rows.space.names if benchmark == "mteb" else rows.space.verbalizers

    def digest(kind: str, word: str, text: str) -> bytes:
        content = text.encode("utf-8", "surrogatepass")
        return hashlib.sha256(f"{kind} {len(word)} {word}".encode() + content).digest()

    parts = [digest("label", word, "") for word in words]
    parts += [
        digest("row", words[target], text) if target >= 0 else digest("no class", "", text)
        for text, target in zip(rows.texts, rows.targets, strict=True)
    ]
    return hashlib.sha256(b"".join(sorted(parts))).hexdigest()


def _not_cached(name: str) -> str:
    try:
        open_hub(name, offline=True)
    except InputError:
        return "not in the hub's cache on this machine"
    return ""


def _folder(data: str | os.PathLike[str]) -> Path:
    folder = Path(data)
    if not folder.is_dir():
        raise InputError(
            f"there is no folder {folder} with data sets; give another, or none to read from {REPOSITORY}."
        )
    return folder


def _settle(rows: Rows, unverbalized: str) -> Rows:
    """Rows without a verbalizer: out, or into class 0."""
    without = sum(target < 0 for target in rows.targets)
    if not without:
        return rows
    if unverbalized == "class_0":
        first = rows.space.names[0]
        what = f"{counted(without)} of classes without a verbalizer"
        note = f"{what} counted as class 0 ({first}), as the authors' harness does"
        targets = [max(target, 0) for target in rows.targets]
        return replace(rows, targets=targets, notes=(*rows.notes, note))
    kept = [row for row, target in enumerate(rows.targets) if target >= 0]
    return replace(
        rows,
        texts=[rows.texts[row] for row in kept],
        targets=[rows.targets[row] for row in kept],
        notes=(*rows.notes, f"{counted(without)} of classes without a verbalizer left out"),
    )


def task_of(card: TaskCard, rows: Rows, *, limit: int | None = None, seed: int = 0) -> Task:
    """Make a task of rows, or of a draw of them.

    Args:
        card: what is known of the data set.
        rows: each with a label.
        limit: at most so many, drawn without replacement, in their order; None: all.
        seed: of that draw.

    Raises:
        ConfigError: a limit that makes no sense.
        InputError: there are no rows.
    """
    if not rows.texts:
        raise InputError(f"{card.name} has no row with a label; there is nothing to score.")
    notes = [*rows.notes, *_labels_without_rows(rows)]
    texts, targets = rows.texts, rows.targets
    if limit is not None:
        check_number("limit", limit, least=1, whole=True)
        if limit < len(texts):
            draw = random.Random(child_seed(seed, "bench", card.name)).sample(range(len(texts)), limit)
            notes.append(f"{counted(limit)} of {len(texts):,} drawn with seed {seed}")
            texts, targets = [texts[row] for row in sorted(draw)], [targets[row] for row in sorted(draw)]
    return Task(
        card=card,
        space=rows.space,
        texts=texts,
        targets=np.array(targets, dtype=np.int64),
        notes=tuple(notes),
        fingerprint=_fingerprint(texts, targets, rows.space.verbalizers),
        revision=rows.revision,
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


def counted(count: int) -> str:
    """Return a number of rows in words.

    Example:
        >>> counted(1), counted(2000)
        ('1 row', '2,000 rows')
    """
    return f"{count:,} row{'' if count == 1 else 's'}"
