"""The worst three descriptions of each label file of examples/, rewritten by the advice of a pool: test macro-F1.

    python benchmarks/run.py mending --parts advice     # prints the advice, from train rows; keeps nothing
    python benchmarks/run.py mending                    # scores the label files before and after

`mended.yaml` holds the rewritten descriptions. Whoever wrote them saw the label file and what `labelspace lint --pool`
prints for the train rows, and no label of a row and no test row.
"""

import argparse
from collections.abc import Iterator
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

import pieces
import yaml
from layout import markdown
from pieces import Piece
from quality_tables import TASKS
from runner import Study
from scoring import by_anchor
from store import ROOT, frame
from tasks import SOURCES, Task, load_task

from labelspace import Encoder, LabelSpace
from labelspace.config import DEFAULT_ANCHOR
from labelspace.consensus.views import fit_view
from labelspace.evaluate import advise

MENDED = ROOT / "benchmarks" / "mended.yaml"
UPDATES = 60
"""Updates of an encoder that is a view of a consensus. No dropout and no draw: another seed gives the same."""


@dataclass(frozen=True, kw_only=True)
class Settings(pieces.Settings):
    """Settings of all pieces of one call."""

    test_rows: int


def changes(task: str) -> list[dict[str, str]]:
    """Return the rewritten descriptions of a task: the label, what was there, what is there now."""
    return yaml.safe_load(MENDED.read_text(encoding="utf-8"))[task]


def mended(space: LabelSpace, task: str) -> LabelSpace:
    """Return a space with the task's rewritten descriptions.

    Raises:
        SystemExit: a description is not in its label.
    """
    labels = {label.name: label for label in space}
    for change in changes(task):
        label = labels[change["label"]]
        if change["was"] not in label.descriptions:
            raise SystemExit(f"{MENDED.name}: {task}, {label.name} has no description {change['was']!r}.")
        texts = tuple(change["now"] if text == change["was"] else text for text in label.descriptions)
        labels[label.name] = replace(label, descriptions=texts)
    return LabelSpace(list(labels.values()), name=space.name, template=space.template)


def mended_pieces(settings: Settings) -> Iterator[Piece]:
    """Score each label file before and after."""
    for name in ("banking77_cards",) if settings.small else SOURCES:
        task = load_task(name, settings.data, "official", test_rows=40 if settings.small else settings.test_rows)
        facts = {"test_rows": len(task.texts)}
        work = partial(_scores, settings, task)
        yield Piece(part="mended", name=name, facts=facts, work=work, seeds=(0,), data=task.pool_source)


def advice_pieces(settings: Settings) -> Iterator[Piece]:
    """Print the advice; nothing but the expected macro-F1 becomes a row."""
    for name in ("banking77_cards",) if settings.small else SOURCES:
        task = load_task(name, settings.data, "official")
        work = partial(_told, settings, task)
        yield Piece(part="advice", name=name, facts={}, work=work, seeds=(0,), data=task.pool_source)


def _told(settings: Settings, task: Task) -> dict[str, Any]:
    found = advise(task.labels, task.pool, encoder=Encoder(settings.encoder))
    print(found)
    return {"expected_macro_f1": found.macro_f1.expected}


def _scores(settings: Settings, task: Task) -> dict[str, Any]:
    encoder = Encoder(settings.encoder)
    spaces = (task.labels, mended(task.labels, task.name))
    vectors, steps = encoder.encode(task.texts), 2 if settings.small else UPDATES

    def trained(space: LabelSpace) -> float:
        model: Any = fit_view(encoder, space, {}, steps=steps, seed=0)
        return _score(model.encoder_, space, model.encoder_.encode(task.texts), task)

    return {
        "untrained": [_score(encoder, space, vectors, task) for space in spaces],
        "trained": [trained(space) for space in spaces],
    }


def _score(encoder: Encoder, space: LabelSpace, vectors: Any, task: Task) -> float:
    return round(by_anchor(encoder, space, vectors, task.truth)[DEFAULT_ANCHOR], 4)


def table() -> str:
    """Test macro-F1 before and after, untrained and trained."""
    runs = {row["name"]: row for row in frame("mending", "mended").to_dict("records")}
    rows = []
    for task, title in TASKS.items():
        if task in runs:
            cells = [f"{score:.3f}" for score in (*runs[task]["untrained"], *runs[task]["trained"])]
            rows.append([title, str(len(changes(task))), *cells])
    return markdown(
        ["", "rewritten", "untrained, before", "untrained, after", "trained, before", "trained, after"], rows
    )


def add_options(parser: argparse.ArgumentParser) -> None:
    """Add the options of this study."""
    parser.add_argument("--test-rows", type=int, default=2000, help="maximum, a fixed sample")


BLOCKS = {"mending": table}
STUDY = Study(
    name="mending",
    doc=__doc__,
    parts={"mended": mended_pieces, "advice": advice_pieces},
    on_request=("advice",),
    blocks=BLOCKS,
    settings=Settings.of,
    options=add_options,
)
