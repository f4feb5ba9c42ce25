"""Read the data sets from folders with this layout:

    FOLDER/btzsc/NAME/test.parquet          text, label (column number)
                      labels.json           classes: [{name, hypothesis}], in label order
                      unverbalized.parquet  text; rows of classes without a hypothesis (some sets)
                      paper_rows.parquet    text, label; the 1,000 rows of the paper's tables (some sets)
    FOLDER/mteb/NAME/test.parquet           text, label
                     meta.json              label_names, in label order

The path may be FOLDER or either of its two groups. The MTEB sets have no label sentences. Their verbalizers are the
hypotheses of the BTZSC set with the same labels, if that set lies beside them, else labelspace's own sentences in
`data/mteb_verbalizers.yaml`.
"""

import json
from importlib import resources
from pathlib import Path
from typing import Any

import yaml

from labelspace.bench.cards import BTZSC, MTEB, PAPER_IN_FULL, SAME_LABELS, Rows, TaskCard
from labelspace.corpus import open_table
from labelspace.errors import InputError
from labelspace.labels import Label, LabelSpace


def folder_of(card: TaskCard, data: Path) -> Path:
    """Return the folder of a data set below `data`, which is either the parent of both groups or one group."""
    parent = data.parent if data.name in ("btzsc", "mteb") else data
    group = parent / card.benchmark
    if card.benchmark == "btzsc" and not group.is_dir():
        group = data  # a group under another name
    return group / card.name.removeprefix("mteb/")


def missing_file(card: TaskCard, data: Path) -> Path | None:
    """Return the first missing file of a data set; None if it is complete."""
    folder = folder_of(card, data)
    names = ("test.parquet", "labels.json" if card.benchmark == "btzsc" else "meta.json")
    return next((folder / name for name in names if not (folder / name).is_file()), None)


def paper_rows_in(data: Path) -> list[str]:
    """Return the names of the data sets below `data` whose paper rows are known."""
    return [
        name
        for name, card in BTZSC.items()
        if missing_file(card, data) is None
        and (name in PAPER_IN_FULL or (folder_of(card, data) / "paper_rows.parquet").is_file())
    ]


def read_local(card: TaskCard, data: Path, *, protocol: str = "full") -> Rows:
    """Read a data set from a folder.

    Args:
        card: card of the data set.
        data: the folder, see the top of this file.
        protocol: `"full"`: all test rows; `"paper"`: the rows of the paper's tables.

    Raises:
        InputError: the data set is missing or damaged; the message names file and row.
    """
    missing = missing_file(card, data)
    if missing is not None:
        raise InputError(
            f"{card.name} is not in the folder: there is no {missing}. "
            f"The folder has: {', '.join(names_in(data)) or 'none of the data sets'}."
        )
    return (_read_btzsc if card.benchmark == "btzsc" else _read_mteb)(card, data, protocol)


def names_in(data: Path) -> list[str]:
    """Return the names of the data sets below `data`, BTZSC first."""
    return [name for name, card in (*BTZSC.items(), *MTEB.items()) if missing_file(card, data) is None]


def _read_btzsc(card: TaskCard, data: Path, protocol: str) -> Rows:
    folder = folder_of(card, data)
    space, whole = _space(card, folder)
    notes = [] if len(space) == card.classes else [f"{len(space)} labels here, {card.classes} were expected"]
    verbless = folder / "unverbalized.parquet"
    extra = _texts_and_labels(verbless, None, 0)[0] if verbless.is_file() else []
    if protocol == "paper":
        texts, targets = _paper_rows(card, data, len(space))
        # The harness assigned class 0 to these rows; separate them from rows that truly are of class 0.
        without = set(extra)
        targets = [
            -1 if text in without and target == 0 else target for text, target in zip(texts, targets, strict=True)
        ]
    else:
        texts, targets = _texts_and_labels(folder / "test.parquet", "label", len(space))
        texts, targets = texts + extra, targets + [-1] * len(extra)
        notes += _subset(len(texts), card, whole)
    return Rows(space=space, texts=texts, targets=targets, notes=tuple(notes))


def _paper_rows(card: TaskCard, data: Path, classes: int) -> tuple[list[str], list[int]]:
    folder = folder_of(card, data)
    file = folder / ("test.parquet" if card.name in PAPER_IN_FULL else "paper_rows.parquet")
    if not file.is_file():
        raise InputError(
            f"the rows of the paper's table are not known for {card.name}: there is no {file}; use protocol='full', "
            f"or one of: {', '.join(paper_rows_in(data)) or 'none in this folder'}."
        )
    return _texts_and_labels(file, "label", classes)


def _read_mteb(card: TaskCard, data: Path, protocol: str) -> Rows:
    if protocol == "paper":
        raise InputError(
            f"the rows of the paper's table are not known for {card.name}; use protocol='full', "
            f"or one of: {', '.join(paper_rows_in(data)) or 'none in this folder'}."
        )
    folder = folder_of(card, data)
    meta = _json(folder / "meta.json")
    names = meta.get("label_names")
    if not isinstance(names, list) or not all(isinstance(name, str) for name in names):
        raise InputError(f"{folder / 'meta.json'} has no list of texts under 'label_names'; get the file again.")
    space, note = _mteb_space(card, data, names)
    texts, targets = _texts_and_labels(folder / "test.parquet", "label", len(space))
    # "complete" in meta.json covers the training rows too, so only the row count can be used here.
    return Rows(space=space, texts=texts, targets=targets, notes=(note, *_subset(len(texts), card, True)))


def _mteb_space(card: TaskCard, data: Path, names: list[str]) -> tuple[LabelSpace, str]:
    """Use the hypotheses of the BTZSC twin where there are any, and labelspace's own sentences for the rest."""
    text = resources.files("labelspace.bench").joinpath("data/mteb_verbalizers.yaml").read_text("utf-8")
    own = yaml.safe_load(text)[card.name]
    like = BTZSC.get(SAME_LABELS.get(card.name, ""))
    shared: dict[str, str] = {}
    if like is not None and missing_file(like, data) is None:
        known = _space(like, folder_of(like, data))[0]
        shared = {label.name: label.verbalize(known.template) for label in known}
    sentences = [
        shared.get(name) or own["labels"].get(name) or own["template"].format(label=_spoken(name)) for name in names
    ]
    space = LabelSpace([Label(n, verbalizer=v) for n, v in zip(names, sentences, strict=True)], name=card.name)
    taken = sum(name in shared for name in names)
    theirs = f"the hypotheses of BTZSC's {like.name} for {taken}" if like is not None and taken else ""
    own_words = f"labelspace's own words for {len(names) - taken}" if taken < len(names) else ""
    return space, f"verbalizers, of {len(names)} labels: {', '.join(filter(None, (theirs, own_words)))}"


def _spoken(name: str) -> str:
    return " ".join(name.replace("_", " ").rstrip("?").split())


def _space(card: TaskCard, folder: Path) -> tuple[LabelSpace, bool]:
    """Return the labels of `labels.json`, and whether the rows are the whole test set."""
    file = folder / "labels.json"
    content = _json(file)
    classes = content.get("classes")
    if not isinstance(classes, list) or not all(isinstance(each, dict) for each in classes):
        raise InputError(f"{file} has no list of mappings under 'classes'; get the file again.")
    for place, each in enumerate(classes, start=1):
        for key in ("name", "hypothesis"):
            if not isinstance(each.get(key), str):
                raise InputError(f"{file}: class {place} needs {key!r} as text. Got {each.get(key)!r} instead.")
    labels = [Label(each["name"], verbalizer=each["hypothesis"]) for each in classes]
    return LabelSpace(labels, name=card.name), bool(content.get("complete", True))


def _subset(rows: int, card: TaskCard, whole: bool) -> list[str]:
    if card.rows is not None and rows < card.rows:
        return [f"not the whole test set: {rows:,} rows here of {card.rows:,}"]
    return [] if whole else ["marked in labels.json as not complete, or not the benchmark's own rows"]


def _json(file: Path) -> dict[str, Any]:
    try:
        content = json.loads(file.read_text(encoding="utf-8"))
    except (OSError, ValueError) as error:
        raise InputError(f"{file} is not readable as JSON ({error}); get the file again.") from error
    if not isinstance(content, dict):
        raise InputError(f"{file} must hold a JSON object. Got {type(content).__name__} instead.")
    return content


def _texts_and_labels(file: Path, label: str | None, classes: int) -> tuple[list[str], list[int]]:
    table = open_table(file, id_column=label)  # labels as numbers
    texts: list[str] = []
    targets: list[int] = []
    for batch in table.batches():
        if label is not None:
            for value in batch.column(label).to_pylist():
                if isinstance(value, bool) or not isinstance(value, int) or not 0 <= value < classes:
                    raise InputError(
                        f"{table.place(len(targets))}: column {label!r} must be the number of one of {classes} labels, "
                        f"0 to {classes - 1}. Got {value!r} instead."
                    )
                targets.append(value)
        texts += table.texts(batch)
    if not texts:
        raise InputError(f"{file} has no rows; there is nothing to score.")
    return texts, targets
