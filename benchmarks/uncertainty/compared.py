"""Compare runs of main row by row: gains with standard errors, areas, errors by another model's uncertainty."""

from collections.abc import Iterator, Sequence
from functools import partial
from typing import Any

import numpy as np
from pieces import Piece

from labelspace.evaluate import difficulty, rejection_curve
from uncertainty.answers import Answers, kept
from uncertainty.draws import area_gap
from uncertainty.experiments import CURVE_POINTS, PROBES, main_variants, sets_of
from uncertainty.selection import waiting
from uncertainty.settings import Settings

METHODS = ("textcnn-both", "textcnn-chosen", "attention-both-chosen")
"""The whole method: with the paper's options for its nearest encoder; with options chosen on train rows; and with the
ablation's attention in place of TextCNN, chosen in the same way."""

RIVALS = (*PROBES, "textcnn-base")
AREAS = (("uncertainty", "random"), ("uncertainty", "entropy"), ("entropy", "random"))
GUIDE = "textcnn-ucl"
"""Variant whose uncertainty the paper uses for rejection, whichever model answers."""


def compared_pieces(settings: Settings) -> Iterator[Piece]:
    """Make a piece for each set whose runs are all possible."""
    if waiting(settings, ["main"]):
        return
    for name in sets_of(settings):
        yield Piece(
            part="compared",
            name=f"{settings.short}_{name}",
            facts=settings.facts(name),
            work=partial(_run, settings, name),
            seeds=settings.seeds,
            data=f"shared/data/mteb/{name}: what the runs of part main answered",
        )


def _run(settings: Settings, name: str) -> dict[str, Any]:
    runs = {probe: [kept(settings, name, probe, 0)] for probe in PROBES}
    runs |= {one: [kept(settings, name, one, seed) for seed in settings.seeds] for one in main_variants(settings)}
    return compared(runs)


def compared(runs: dict[str, list[Answers]]) -> dict[str, Any]:
    """Compare the runs of the variants, one per seed, on the same test rows."""
    methods = [method for method in METHODS if method in runs]
    guided = [variant for variant in ("textcnn-base", "textcnn-both") if GUIDE in runs]
    return {
        "gains": {one: {rival: list(paired_gain(runs[one], runs[rival])) for rival in RIVALS} for one in methods},
        "areas": {
            one: {f"{by} above {other}": list(area_gap(runs[one], by, other)) for by, other in AREAS} for one in methods
        },
        "by_ucl": {variant: _guided(runs[variant], runs[GUIDE]) for variant in guided},
        "errors_of_base": errors_by_doubt(runs["textcnn-base"], runs["textcnn-both"]),
    }


def paired_gain(ours: Sequence[Answers], theirs: Sequence[Answers]) -> tuple[float, float]:
    """Return the gain in accuracy on the same test rows and its standard error; each side is averaged over seeds."""
    first, second = (np.mean([run.right for run in runs], axis=0) for runs in (ours, theirs))
    difference = first - second
    return float(difference.mean()), float(difference.std(ddof=1) / np.sqrt(len(difference)))


def _guided(runs: Sequence[Answers], guides: Sequence[Answers]) -> dict[str, Any]:
    """Reject the answers of one variant by the uncertainty of another with the same seed."""
    curves = [rejection_curve(guide.uncertainty, run.right) for run, guide in zip(runs, guides, strict=True)]
    places = np.linspace(0, len(curves[0].accuracy) - 1, CURVE_POINTS).astype(int)
    return {
        "area": [curve.area for curve in curves],
        "area_random": [curve.area_random for curve in curves],
        "curve": np.mean([curve.accuracy[places] for curve in curves], axis=0).tolist(),
    }


def errors_by_doubt(base: Sequence[Answers], full: Sequence[Answers]) -> dict[str, int]:
    """Count one model's errors by the difficulty band that another model gives the texts, over all seeds."""
    bands = [difficulty(other.uncertainty, run.right) for run, other in zip(base, full, strict=True)]
    return {level[0].level: sum(band.errors for band in level) for level in zip(*bands, strict=True)}
