"""The targets of the study: gain over the linear probe, uncertainty that finds errors, the cost of the head.

For targets measured on test rows, the table also names the sets with too few rows to decide: their 95 % interval
contains 0.
"""

from collections.abc import Callable, Mapping, Sequence, Sized
from itertools import product

import numpy as np
import pandas as pd
from layout import NOT_YET, crossed, markdown, products, table, titled
from numpy.typing import NDArray

from uncertainty import paper, report
from uncertainty.compared import AREAS, METHODS, RIVALS
from uncertainty.draws import Gap
from uncertainty.report import ENCODERS, SMALL_SET, Result
from uncertainty.sets import SETS

MOST_LATENCY = 1.05
LEAST_EPOCHS = 10
MOST_FALL, LEFT = 0.01, 0.1
"""Criteria of a rising rejection curve: the largest fall allowed between two points, and the share of texts at which
the curve ends, because a single answer moves it by points when few texts are left."""


def paired() -> pd.DataFrame:
    """Return the gain of each method over each rival in points, and its standard error, by encoder and set."""
    rows = [
        (run["encoder"], run["set"], method, rival, 100 * gain, 100 * error)
        for run in report.runs_of("compared").to_dict("records")
        for method, rivals in run["gains"].items()
        for rival, (gain, error) in rivals.items()
    ]
    return pd.DataFrame(rows, columns=["encoder", "set", "method", "rival", "gain", "error"])


def gains() -> str:
    """Gain of the whole method over the linear probe, by set; the paper's method gains 1.6 points over its probe."""
    runs = paired()
    at = ["encoder", "method", "rival"]
    cells = crossed(runs, at, ["set"], lambda own, *_: f"{own.gain.iloc[0]:+.1f} ± {1.96 * own.error.iloc[0]:.1f}")
    cells = report.with_means(cells, crossed(runs, at, ["set"], lambda own, *_: own.gain.iloc[0]), "{:+.2f}")
    both, bottom = "textcnn-both", ("paper: Qwen3-Embedding-0.6B", "textcnn-both", report.EOS)
    theirs = pd.DataFrame({bottom: {name: paper.QWEN3[both][name] - paper.QWEN3["cls-base"][name] for name in SETS}}).T
    cells = pd.concat([cells, report.with_means(theirs.map("{:+.1f}".format), theirs, "{:+.2f}")])
    names = [{name: report.TITLES[name] for name in own} for own in (METHODS, RIVALS)]
    rows = products({encoder: encoder for encoder in ENCODERS}, *names)
    if not any(row in cells.index for row in rows):
        return NOT_YET
    rows[bottom] = (bottom[0], report.TITLES[both], bottom[2])
    titles = [*report.titles(), "mean", f"without {SETS[SMALL_SET]}"]
    columns = dict(zip([*SETS, "mean", "large"], titles, strict=True))
    return report.noted(table(titled(cells, rows, columns), "", "", "above"))


def average_gain(encoder: str, method: str, rival: str) -> list[str] | None:
    """Whether the mean accuracy over the sets exceeds a rival's, and the sets where it does not; None: no results."""
    runs = paired().set_index(["encoder", "method", "rival", "set"]).sort_index()
    found = runs.reindex([(encoder, method, rival, name) for name in SETS]).droplevel([0, 1, 2]).dropna()
    if found.empty:
        return None
    mean, error = found.gain.mean(), 1.96 * (found.error**2).sum() ** 0.5 / len(found)
    missed, unsure = found[found.gain <= 0], found[found.gain.abs() <= 1.96 * found.error]
    words = f"average accuracy over {len(found)} of {len(SETS)} tasks above that of the {report.TITLES[rival]}"
    names = (_listed([SETS[name] for name in own.index]) for own in (missed, unsure))
    return [words, f"{_yes(mean > 0)}, {mean:+.2f} ± {error:.2f}", *names]


def mean_curve(runs: pd.DataFrame) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Shares rejected by uncertainty until `LEFT` remains, and the accuracy on the rest, averaged over runs."""
    curve = np.mean(runs["curve.uncertainty"].tolist(), axis=0)
    shares = np.linspace(0, 1, len(curve))
    kept = shares <= 1 - LEFT
    return shares[kept], curve[kept]


def largest_fall(runs: pd.DataFrame) -> float:
    """Largest fall in accuracy from one point of the curve to any later one."""
    _, curve = mean_curve(runs)
    return float((np.maximum.accumulate(curve) - curve).max())


def rises(runs: pd.DataFrame) -> bool:
    """Return whether the curve rises: it never falls by more than `MOST_FALL`, and ends above its start."""
    _, curve = mean_curve(runs)
    return largest_fall(runs) <= MOST_FALL and bool(curve[-1] > curve[0])


def slope(runs: pd.DataFrame) -> float:
    """Slope of the least-squares line through the curve: the gain extrapolated to rejecting all."""
    return float(np.polyfit(*mean_curve(runs), 1)[0])


def _curve_rows(found: Mapping[str, pd.DataFrame]) -> list[list[str]]:
    falling = [f"{SETS[name]} ({100 * largest_fall(runs):.1f})" for name, runs in found.items() if not rises(runs)]
    sinking = [SETS[name] for name, runs in found.items() if slope(runs) <= 0]
    words = f"the curve by uncertainty rises: until {LEFT:.0%} are left it never falls by more than "
    words += f"{100 * MOST_FALL:g} point (in brackets: by how many), and ends above its start"
    return [
        [words, _of(falling, found), _listed(falling), ""],
        ["its line by least squares rises", _of(sinking, found), _listed(sinking), ""],
    ]


def _gap(encoder: str, name: str, method: str, by: str, other: str) -> Gap | None:
    found = report.compared(encoder, name)
    own = found["areas"].get(method) if found else None
    return Gap(*own[f"{by} above {other}"]) if own else None


def _area_row(encoder: str, method: str, by: str, other: str) -> list[str]:
    every = {name: _gap(encoder, name, method, by, other) for name in SETS}
    gaps = {name: gap for name, gap in every.items() if gap}
    target = f"the area by {by} is {'at least that by' if other == 'entropy' else 'above'} {other}"
    missed = [SETS[name] for name, gap in gaps.items() if gap.value < 0 or (gap.value == 0 and other == "random")]
    unsure = [SETS[name] for name, gap in gaps.items() if not gap.is_told]
    return [target, _of(missed, gaps), _listed(missed), _listed(unsure)]


def targets() -> str:
    """Number of data sets on which each target holds, those where it fails, and those with too few test rows."""
    rows = []
    for encoder in ENCODERS:
        for method in METHODS:
            own = [average_gain(encoder, method, rival) for rival in ("probe", "probe-tuned")]
            found = {name: runs for where, name, runs in report.by_place("main", variant=method) if where == encoder}
            if found:
                own += _curve_rows(found)
                own += [_area_row(encoder, method, *area) for area in AREAS]
            rows += [[encoder, report.TITLES[method], *row] for row in own if row]
        for result in report.runs_of("cost", encoder=encoder).to_dict("records"):
            rows += [[encoder, report.PARTED[result["extractor"]], *row, "", ""] for row in _cost_rows(result)]
    return markdown(["", "", "target", "reached", "not on", "cannot be told on"], rows, side="---|")


def areas() -> str:
    """Differences in area under the rejection curve by set, in points, with intervals."""
    rows = []
    for encoder, method in product(ENCODERS, METHODS):
        for name, title in SETS.items():
            gaps = [gap for area in AREAS if (gap := _gap(encoder, name, method, *area))]
            if gaps:
                cells = [f"{100 * gap.value:+.2f} ({100 * gap.low:+.2f} to {100 * gap.high:+.2f})" for gap in gaps]
                rows.append([encoder, report.TITLES[method], title, *cells])
    head = ["", "", "", "uncertainty above random", "uncertainty above entropy", "entropy above random"]
    return markdown(head, rows)


def _cost_rows(result: Result) -> list[list[str]]:
    """Target and result of one cost."""
    texts = f"{result['length']} texts"
    if result["what"] == "latency":
        ratio = result["ratio"]
        return [[f"latency at most {MOST_LATENCY} of the encoder's, {texts}", _at(ratio <= MOST_LATENCY, ratio, 2)]]
    words = f"an epoch after the first {LEAST_EPOCHS} times as fast as encoding, {texts}"
    reading = f"reading the stored states alone, without training, {LEAST_EPOCHS} times as fast as encoding, {texts}"
    pairs = ((words, result["ratio"]), (reading, result["encoding to reading"]))
    return [[words, _at(ratio >= LEAST_EPOCHS, ratio, 1)] for words, ratio in pairs]


def _at(reached: bool, ratio: float, digits: int) -> str:
    return f"{_yes(reached)}, {ratio:.{digits}f}"


def _yes(reached: bool) -> str:
    return "yes" if reached else "no"


def _of(missed: Sequence[str], found: Sized) -> str:
    return f"{len(found) - len(missed)} of {len(found)}"


def _listed(names: Sequence[str]) -> str:
    return ", ".join(names) or "-"


BLOCKS: dict[str, Callable[[], str]] = {
    "uncertainty-gains": gains,
    "uncertainty-targets": targets,
    "uncertainty-areas": areas,
}
