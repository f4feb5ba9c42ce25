"""The estimator with its defaults: calibration of its probabilities and promised risks on test rows."""

from collections.abc import Iterator
from functools import partial
from itertools import product
from typing import Any

import numpy as np
from pieces import Piece
from rows import Rows
from scipy.special import softmax

from labelspace import UncertaintyClassifier
from labelspace.config import UncertaintyConfig
from labelspace.errors import InputError
from labelspace.training.calibration import expected_calibration_error
from uncertainty.sets import SETS
from uncertainty.settings import Settings
from uncertainty.states import STATES_BYTES, both, opened
from uncertainty.variants import plain

COVERAGES = (0.9, 0.8, 0.5)
RISKS = (0.1, 0.05, 0.02)
HELD_OUT = 0.1


def usage_pieces(settings: Settings) -> Iterator[Piece]:
    """Run the defaults on every set, but always with a tenth of the rows held out."""
    names = tuple(SETS)[:1] if settings.small else tuple(SETS)
    for seed, name in product(settings.seeds, names):
        yield Piece(
            part="usage",
            name=f"{settings.short}_{name}_seed{seed}",
            facts=settings.facts(name, seed=seed, config=plain(UncertaintyConfig(validation=HELD_OUT))),
            work=partial(_run, settings, name, seed),
            seeds=(seed,),
            data=f"shared/data/mteb/{name}",
        )


def _run(settings: Settings, name: str, seed: int) -> dict[str, Any]:
    rows, test = both(settings, name)
    clf = UncertaintyClassifier(
        encoder=opened(settings),
        cache=settings.states,
        validation=HELD_OUT,
        seed=seed,
        config={"cache_bytes": STATES_BYTES},
    )
    clf.fit(rows.texts, rows.truth)
    if clf.fit_result_.curve.stop_reason != "epochs":  # an interrupted run is not a result
        raise KeyboardInterrupt
    answers = clf.answers(test.texts)  # encode once for all measurements below
    right = answers.names == np.array(test.truth, dtype=object)
    before = softmax(answers.scores.astype(np.float64), axis=1)
    calibration = clf.fit_result_.calibration
    assert calibration is not None
    return {
        "rows": len(rows),
        "held_out": clf.fit_result_.held_out,
        "accuracy": float(right.mean()),
        "temperature": calibration.temperature,
        "ece": {
            "held out, before": calibration.ece_before,
            "held out, after": calibration.ece_after,
            "test, before": expected_calibration_error(before.max(axis=1), right),
            "test, after": expected_calibration_error(answers.confidence, right),
        },
        "by": clf.held_out_.better_ranking(),
        "coverage": {str(wanted): _kept(clf.set_coverage(wanted), answers, test) for wanted in COVERAGES},
        "risk": {str(wanted): _promised(clf, wanted, answers, test) for wanted in RISKS},
    }


def _promised(clf: UncertaintyClassifier, risk: float, answers: Any, test: Rows) -> dict[str, float | None] | None:
    try:
        return _kept(clf.set_risk(risk), answers, test)
    except InputError:
        return None


def _kept(clf: UncertaintyClassifier, answers: Any, test: Rows) -> dict[str, float | None]:
    names = clf.decision().answers(answers.labels, answers.scores, answers.uncertainty).names
    given = np.array([name is not None for name in names])
    right = names == np.array(test.truth, dtype=object)
    return {"coverage": float(given.mean()), "accuracy": float(right[given].mean()) if given.any() else None}
