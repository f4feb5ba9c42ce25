"""Tasks: a label space, texts and their labels, from a folder, the hub or a file.

    load_task("agnews", data=folder)      one of 22 BTZSC or 8 MTEB sets
    plan.own_task("mail.csv", labels)     the user's own file
    find_tasks(folder)                    which data sets are available

Choices that change results are options, and are recorded in the task's notes: which rows (`protocol`), the treatment of
rows whose class has no verbalizer (`unverbalized`), and how many rows (`limit`). A note also tells if a folder's rows
are not those of the shipped results (`rows_checksum`), and which labels no row of the whole set has. Macro figures are
means over the labels that occur or are predicted, as in the published results.
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
    """Metadata of the data set."""

    space: LabelSpace
    """The candidate labels, each with its verbalizer; targets are columns of it."""

    texts: list[str]
    """[text] the documents."""

    targets: NDArray[np.int64]
    """[text] column of each document's label."""

    notes: tuple[str, ...]
    """Remarks to print beside results: rows left out, labels without a row, sampling."""

    fingerprint: str
    """SHA-256 over texts, targets and verbalizers, for own files also over names, descriptions, `not` and `outside`;
    equal fingerprints mean the same task."""

    revision: str | None = None
    """Hub commit of the rows; None for rows from elsewhere."""

    @property
    def name(self) -> str:
        """Name of the data set."""
        return self.card.name


@final
@dataclass(frozen=True, kw_only=True)
class Availability:
    """The data sets that can be loaded."""

    present: list[str]
    """Names of available data sets, BTZSC first, in the order of the cards."""

    absent: list[str]
    """Names of the others."""

    why: Mapping[str, str]
    """Absent name -> reason."""


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
        unverbalized: treatment of rows whose class has no verbalizer: `"leave_out"`, or `"class_0"` as in the authors'
            harness; None: `"class_0"` for the protocol `"paper"`, else `"leave_out"`.
        limit: maximum rows, drawn without replacement, in their order; None: all.
        seed: seed of that draw; unused without `limit`.
        offline: True reads the hub's cache only.

    Returns:
        The task, with a note if the folder's rows differ from the known copy.

    Raises:
        ConfigError: an unknown name or option.
        InputError: the data is missing or damaged, or a label is out of range; the message names file and row.

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
    """Find the available data sets without reading their rows.

    Args:
        data: folder with the data sets; None: the hub, which has the BTZSC sets and is not contacted.
        offline: True counts only those hub sets that are in the local cache.

    Returns:
        The available names, the others, and the reason for each of these.

    Raises:
        InputError: the folder does not exist.
        MissingDependencyError: the cache is needed, and the package datasets is not installed.

    Example:
        >>> found = find_tasks(None)
        >>> len(found.present), len(found.absent), found.why["mteb/imdb"]
        (22, 8, 'read from a folder only')
    """
    if data is None:
        why = {name: reason for name in BTZSC if (reason := _not_cached(name))} if offline else {}
        why |= dict.fromkeys(MTEB, "read from a folder only")
    else:
        folder = _folder(data)
        cards = {**BTZSC, **MTEB}.items()
        why = {name: f"no {missing}" for name, card in cards if (missing := missing_file(card, folder))}
    return Availability(present=[name for name in (*BTZSC, *MTEB) if name not in why], absent=list(why), why=why)


def rows_checksum(rows: Rows, benchmark: str) -> str:
    """Return a SHA-256 of all rows of a data set, before any are left out.

    It does not depend on the order of rows or labels, so two copies with the same rows have the same checksum.

    Args:
        rows: all rows found by a reader.
        benchmark: `"btzsc"` identifies a class by its verbalizer; `"mteb"` by its name, as its verbalizers are ours.

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
            f"there is no folder {folder} with data sets; give another, or none to read {REPOSITORY} from the hub."
        )
    return folder


def _settle(rows: Rows, unverbalized: str) -> Rows:
    """Drop the rows whose class has no verbalizer, or count them as class 0."""
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
    """Make a task from rows, or from a sample of them.

    Args:
        card: metadata of the data set.
        rows: rows that all have a label.
        limit: maximum rows, drawn without replacement, in their order; None: all.
        seed: seed of that draw.

    Raises:
        ConfigError: `limit` is not a positive whole number.
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
        fingerprint=_fingerprint(texts, targets, rows.space, whole=card.benchmark == "own"),
        revision=rows.revision,
    )


def what_the_protocol_did(protocol: str, unverbalized: str | None) -> str:
    """Check `unverbalized`, or return the protocol's default if it is None.

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


def _fingerprint(texts: Sequence[str], targets: Sequence[int], space: LabelSpace, *, whole: bool) -> str:
    parts = [("verbalizer", verbalizer) for verbalizer in space.verbalizers]
    if whole:  # the labels of a benchmark have nothing but verbalizers
        for label in space.labels:
            parts += [("label", label.name), *(("description", each) for each in label.descriptions)]
            parts += [("not", each) for each in label.excludes]
        parts += [("outside", each) for each in space.outside]
    digest = hashlib.sha256()
    for kind, part in (*parts, *(("text", text) for text in texts)):
        content = part.encode("utf-8", "surrogatepass")
        digest.update(f"{kind} {len(content)} ".encode() + content)
    digest.update(",".join(map(str, targets)).encode())
    return digest.hexdigest()


def counted(count: int) -> str:
    """Format a number of rows.

    Example:
        >>> counted(1), counted(2000)
        ('1 row', '2,000 rows')
    """
    return f"{count:,} row{'' if count == 1 else 's'}"
