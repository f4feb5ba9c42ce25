"""What a session leaves: the model, the documents with their labels, and the commands that do the same."""

import glob
import re
from collections.abc import Collection, Mapping, Sequence
from pathlib import Path
from typing import Any, final

from labelspace.config import EncodingConfig
from labelspace.encoders import DEFAULT_ENCODER
from labelspace.errors import InputError
from labelspace.folders import write_atomically
from labelspace.header import CLASSIFIER, check_place
from labelspace.serve.studio.answering import Answered
from labelspace.serve.studio.clicks import as_csv
from labelspace.shell import command_line

LONGEST_NAME = 200
PLAIN_NAME = re.compile(r"[^\W.][\w. -]*")
COLUMNS = ("text", "label", "score", "doubt")
"""Columns of labelled documents."""

READING = {"text_column": "text", "delimiter": "auto", "encoding": "auto"}
OPENING = {"encoder": DEFAULT_ENCODER, "dtype": EncodingConfig.dtype, "offline": False}
RUNNING = {"device": EncodingConfig.device, "trust_remote_code": False}
"""Options that the commands share with `labelspace studio`, with their defaults, which the commands leave out."""


@final
class Exports:
    """Writes beside the label file, and nowhere else.

    Args:
        labels: the label file.
        clicks: the CSV file of clicks.
        pool_file: the pool as the user gave it.
        options: options of `labelspace studio` that the commands take too.
    """

    def __init__(self, labels: Path, clicks: Path, pool_file: str, options: Mapping[str, Any]) -> None:
        self._labels, self._clicks, self._pool_file, self._options = labels, clicks, pool_file, options

    def model(self, name: str, model: Any) -> dict[str, Any]:
        """Save a model as a folder beside the label file, in place of a model of that name.

        Raises:
            InputError: the name is not a plain one, or there is no model.
            OutputError: something that is not a model has the name, or the folder cannot be written.
        """
        if model is None:
            raise InputError("no model is trained yet; train one first, or export the untrained one.")
        folder = self._beside(name)
        replaced = check_place(folder, CLASSIFIER)
        model.save(folder)
        return {"path": str(folder), "replaced": replaced}

    def documents(self, name: str, texts: Sequence[str], answered: Answered) -> dict[str, Any]:
        """Write the documents with their labels as CSV, in place of an earlier export of that name alone.

        Raises:
            InputError: the name is not a plain one that ends in .csv, or a file of other contents has it.
            OutputError: the file cannot be written.
        """
        path = self._beside(name)
        if path.suffix.lower() != ".csv":
            raise InputError(f"the name of this file ends in .csv. Got {name!r}; add it.")
        if path.name.casefold() == self._clicks.name.casefold() or path.resolve() in self._pool_paths():
            raise InputError(f"{name} holds your clicks or your documents; choose another name.")
        replaced = path.exists()
        if replaced and not _is_export(path):
            raise InputError(f"{name} exists and holds something else; choose another name.")
        answers = answered.answers
        columns = (texts, answers.names, answers.score, answered.doubt)
        rows = (
            [text, label or "", f"{score:.4f}", f"{doubt:.4f}"]
            for text, label, score, doubt in zip(*columns, strict=True)
        )
        write_atomically(path, as_csv([COLUMNS, *rows]))
        return {"path": str(path), "replaced": replaced}

    def commands(self, *, clicked: Collection[str], names: Collection[str], none: bool) -> dict[str, Any]:
        """Return the places of the files, and the commands that do what the page does, on all documents.

        Clicks have no command if `labelspace fit` would refuse their file: if some are on a label that is gone, which
        `gone` names, or all are on one label.

        Args:
            clicked: names that documents were labelled with.
            names: names of the labels.
            none: whether documents may fit no label.
        """
        gone = sorted(set(clicked).difference(names))
        labels, stem = str(self._labels), self._labels.stem
        # Names of their own, because fit and predict refuse what the page has exported.
        fitted, learnt = (str(self._labels.with_name(f"{stem}-{end}")) for end in ("fit", "clicks-fit"))
        labelled = str(self._labels.with_name(f"{stem}.labelled.csv"))
        reading, encoder = self._words(READING), self._words({**OPENING, **RUNNING})
        limit = ["--none", "auto"] if none else []
        train = ["fit", labels, "--pool", self._pool_file, *reading, *limit, "--out", fitted, *encoder]
        learn = ["fit", labels, "--labelled", str(self._clicks), "--out", learnt, *encoder]
        label = ["predict", fitted, self._pool_file, labelled, *reading, *self._words(RUNNING)]
        lines = {"train": train, "label": label} | ({"clicks": learn} if len(clicked) > 1 and not gone else {})
        return {
            "labels": labels,
            "clicks": str(self._clicks) if clicked else None,
            "gone": gone,
            "commands": {name: command_line("labelspace", *words) for name, words in lines.items()},
        }

    def _words(self, defaults: Mapping[str, Any]) -> list[str]:
        """Return the options that are not at their default, as words of a command line."""
        words = []
        for name, default in defaults.items():
            value = self._options.get(name, default)
            if value != default:
                words += [f"--{name.replace('_', '-')}", *([] if value is True else [str(value)])]
        return words

    def _beside(self, name: object) -> Path:
        if not isinstance(name, str) or not PLAIN_NAME.fullmatch(name):
            raise InputError(f"a name has letters, digits, '-', '_', '.' and spaces, and no folder. Got {name!r}.")
        if len(name.encode()) > LONGEST_NAME:
            raise InputError(
                f"a name has at most {LONGEST_NAME} bytes. Got {len(name.encode())}; choose a shorter one."
            )
        return self._labels.absolute().with_name(name)

    def _pool_paths(self) -> set[Path]:
        matches = glob.glob(self._pool_file, recursive=True)  # noqa: PTH207 - Path.glob refuses absolute patterns
        return {Path(match).resolve() for match in (self._pool_file, *matches)}


def _is_export(path: Path) -> bool:
    """Return whether a file begins as an earlier export of documents does."""
    head = ",".join(COLUMNS).encode() + b"\n"
    try:
        with path.open("rb") as file:
            return file.read(len(head)) == head
    except OSError:
        return False
