"""BTZSC in its published form: one row per (text, hypothesis) pair, with `labels` 1 for the true hypothesis.

    text     hypothesis            labels
    "goal!"  "It is about sport."  1
    "goal!"  "It is about money."  0
    "a fee"  "It is about sport."  0
    ...

The hypotheses of the first text define the classes and their order; every other text must repeat them in that order.
The authors' harness instead counts rows until the first row's `labels` value recurs, which gives another number of
classes unless the first text is of the first class. A text without any 1 belongs to a class without a hypothesis: the
harness counts it as class 0, and `load_task` lets the caller choose.
"""

import contextlib
import dataclasses
import re
from collections.abc import Iterable, Iterator
from typing import Any

from labelspace.bench.cards import PAPER_IN_FULL, Rows, TaskCard
from labelspace.checks import import_optional
from labelspace.errors import InputError
from labelspace.labels import Label, LabelSpace

REPOSITORY = "btzsc/btzsc"
COLUMNS = ("text", "hypothesis", "labels")
BLOCK = 10_000
ORDER = "every text needs the same hypotheses in the same order, or its label cannot be told"

Pair = tuple[str, str, int]
_COMMIT = re.compile(r"[@/\\]([0-9a-f]{40})[/\\]")


def read_hub(card: TaskCard, *, protocol: str = "full", offline: bool | None = None) -> Rows:
    """Read a BTZSC data set from the hub, or from the hub's cache on this machine.

    Args:
        card: card of one of the 22 BTZSC sets.
        protocol: `"full"`; or `"paper"`, only for sets that the paper's tables are computed on in full.
        offline: True uses the cache only; None and False follow `HF_HUB_OFFLINE`.

    Raises:
        InputError: the set is not on the hub, the hub cannot be reached, or its rows are malformed.
        MissingDependencyError: the package datasets is not installed.
    """
    where = f"{card.name} on the hub"
    if card.benchmark != "btzsc":
        raise InputError(f"{card.name} is read from a folder only; give the folder that holds it as data.")
    if protocol == "paper" and card.name not in PAPER_IN_FULL:
        raise InputError(
            f"the paper's 1,000 rows of {card.name} are not on the hub; use protocol='full', or a folder that holds "
            f"them as data. In full the paper has only: {', '.join(PAPER_IN_FULL)}."
        )
    found = open_hub(card.name, offline=offline)
    rows = rows_of_pairs(_pairs(found), card, where=where)
    return dataclasses.replace(rows, revision=revision_of(found))


def rows_of_pairs(pairs: Iterable[Pair], card: TaskCard, *, where: str) -> Rows:
    """Group (text, hypothesis, label) rows into texts with one label each.

    Args:
        pairs: text, hypothesis and 0 or 1, in file order.
        card: the data set's card; a different number of classes becomes a note.
        where: name of the source in error messages.

    Returns:
        The rows. A label's name is its hypothesis, because the file has no names.

    Raises:
        InputError: no rows, a text with other hypotheses than the first text, or more than one true hypothesis.

    Example:
        >>> from labelspace.bench.cards import BTZSC
        >>> pairs = [("a", "Good.", 0), ("a", "Bad.", 1), ("b", "Good.", 0), ("b", "Bad.", 0)]
        >>> rows = rows_of_pairs(pairs, BTZSC["imdb"], where="two texts")
        >>> rows.texts, rows.targets, rows.space.names
        (['a', 'b'], [1, -1], ('Good.', 'Bad.'))
    """
    hypotheses: list[str] = []
    texts: list[str] = []
    targets: list[int] = []
    place = row = 0
    for row, (text, hypothesis, label) in enumerate(pairs, start=1):
        at = f"{where}: row {row}"
        _check_pair(text, hypothesis, label, at)
        if not texts or hypothesis == hypotheses[0]:  # the first hypothesis begins a text
            _check_whole(place, hypotheses, at)
            texts.append(text)
            targets.append(-1)
            place = 0
        if len(texts) == 1:
            _check_first(hypothesis, hypotheses, text, texts[0], at)
            hypotheses.append(hypothesis)
        else:
            _check_next(hypothesis, hypotheses, place, text, texts[-1], at)
        if label == 1:
            if targets[-1] >= 0:
                raise InputError(f"{at} is the second right answer for its text; there must be one.")
            targets[-1] = place
        place += 1
    if not texts:
        raise InputError(f"{where} has no rows; there is nothing to score.")
    _check_whole(place, hypotheses, f"{where}: the end after row {row}")
    return Rows(space=_space(hypotheses, card, where), texts=texts, targets=targets, notes=_notes(hypotheses, card))


def open_hub(name: str, *, offline: bool | None = None) -> Any:
    """Open one data set of the hub repository as a `datasets.Dataset`, whose rows stay on disk.

    Args:
        name: name of the data set.
        offline: True uses no network.

    Raises:
        InputError: the hub cannot be reached and its cache has no copy, or a column is missing.
        MissingDependencyError: the package datasets is not installed.
    """
    datasets = import_optional("datasets", package="datasets", extra="bench", purpose="Reading BTZSC from the hub")
    try:
        with _without_network(datasets) if offline else contextlib.nullcontext():
            found = datasets.load_dataset(REPOSITORY, name, split="test")
    except _failures(datasets) as error:
        where = "is not in the hub's cache on this machine" if offline else "cannot be read from the hub"
        raise InputError(
            f"{name} of {REPOSITORY} {where} ({' '.join(str(error).split())[:200]}); "
            f"{'load it once without offline, or ' * bool(offline)}give a folder that holds the data sets as data."
        ) from error
    missing = [column for column in COLUMNS if column not in found.column_names]
    if missing:
        raise InputError(
            f"{name} of {REPOSITORY} has no column {missing[0]!r}. Got {', '.join(found.column_names)} instead."
        )
    return found


def revision_of(found: Any) -> str | None:
    """Return the hub commit that a `datasets.Dataset` was made from; None if it is not recorded.

    Example:
        >>> from types import SimpleNamespace
        >>> commit = "0123456789abcdef0123456789abcdef01234567"
        >>> revision_of(SimpleNamespace(cache_files=[{"filename": f"/cache/agnews/0.0.0/{commit}/btzsc-test.arrow"}]))
        '0123456789abcdef0123456789abcdef01234567'
    """
    sources = getattr(getattr(found, "info", None), "download_checksums", None) or {}
    files = [file.get("filename", "") for file in getattr(found, "cache_files", None) or ()]
    commits = (_COMMIT.search(place) for place in (*sources, *files))
    return next((commit[1] for commit in commits if commit), None)


def _pairs(found: Any) -> Iterator[Pair]:
    for block in found.iter(batch_size=BLOCK):
        yield from zip(*(block[column] for column in COLUMNS), strict=True)


@contextlib.contextmanager
def _without_network(datasets: Any) -> Iterator[None]:
    """Restrict the package to its cache. It has no argument for that, only a process-wide switch."""
    before = datasets.config.HF_HUB_OFFLINE
    datasets.config.HF_HUB_OFFLINE = True
    try:
        yield
    finally:
        datasets.config.HF_HUB_OFFLINE = before


def _failures(datasets: Any) -> tuple[type[Exception], ...]:
    own = getattr(getattr(datasets, "exceptions", None), "DatasetsError", OSError)
    return (OSError, ValueError, RuntimeError, own)


def _check_pair(text: object, hypothesis: object, label: object, where: str) -> None:
    if not isinstance(text, str) or not isinstance(hypothesis, str):
        raise InputError(f"{where} lacks a text or a hypothesis; both must be text.")
    if label not in (0, 1):
        raise InputError(f"{where}: labels must be 0 or 1. Got {label!r} instead.")


def _check_first(hypothesis: str, hypotheses: list[str], text: str, own: str, where: str) -> None:
    if text != own:
        raise InputError(
            f"{where} begins the second text with {hypothesis!r}, the first began with {hypotheses[0]!r}; {ORDER}."
        )
    if hypothesis in hypotheses:
        raise InputError(f"{where}: the first text has {hypothesis!r} twice; two classes cannot share a hypothesis.")


def _check_next(hypothesis: str, hypotheses: list[str], place: int, text: str, own: str, where: str) -> None:
    expected = hypotheses[place] if place < len(hypotheses) else "the next text"
    if hypothesis != expected:
        raise InputError(f"{where} has the hypothesis {hypothesis!r} where {expected!r} is due; {ORDER}.")
    if text != own:
        raise InputError(f"{where} has another text before all hypotheses of the last one came; {ORDER}.")


def _check_whole(place: int, hypotheses: list[str], where: str) -> None:
    """Check at the end of a text that all its hypotheses came."""
    if place != len(hypotheses):
        raise InputError(
            f"{where} comes after {place} of {len(hypotheses)} hypotheses of its text; "
            "the file is cut off or lacks rows, get it again."
        )


def _space(hypotheses: list[str], card: TaskCard, where: str) -> LabelSpace:
    if len(hypotheses) < 2:
        raise InputError(f"{where} has a single hypothesis, {hypotheses[0]!r}; classification needs two or more.")
    # A label name must be one line; the verbalizer keeps the hypothesis unchanged.
    return LabelSpace([Label(" ".join(text.split()), verbalizer=text) for text in hypotheses], name=card.name)


def _notes(hypotheses: list[str], card: TaskCard) -> tuple[str, ...]:
    if len(hypotheses) == card.classes:
        return ()
    return (f"the data has {len(hypotheses)} hypotheses, {card.classes} were expected",)
