"""The targets of the study: gain over the linear probe, uncertainty that finds errors, the cost of the head.

For targets measured on test rows, the table also names the sets with too few rows to decide: their 95 % interval
contains 0.
"""

import statistics
from collections.abc import Callable, Mapping, Sequence, Sized
from itertools import product

import numpy as np
from layout import markdown
from numpy.typing import NDArray
from store import results

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


def gains() -> str:
    """Gain of the whole method over the linear probe, by set; the paper's method gains 1.6 points over its probe."""
    rows = []
    for encoder in ENCODERS:
        for method, rival in product(METHODS, RIVALS):
            cells, found = [], {}
            for name in SETS:
                if own := _gain(encoder, name, method, rival):
                    gain, error = own
                    found[name] = 100 * gain
                    cells.append(f"{100 * gain:+.1f} ± {196 * error:.1f}")
                else:
                    cells.append("-")
            if found:
                large = [gain for name, gain in found.items() if name != SMALL_SET]
                mean = f"{statistics.fmean(found.values()):+.2f}" if len(found) == len(SETS) else "-"
                without = f"{statistics.fmean(large):+.2f}" if len(found) == len(SETS) else "-"
                rows.append([encoder, report.TITLES[method], report.TITLES[rival], *cells, mean, without])
    own = {name: paper.QWEN3["textcnn-both"][name] - paper.QWEN3["cls-base"][name] for name in SETS}
    if rows:
        large = [gain for name, gain in own.items() if name != SMALL_SET]
        cells = [f"{gain:+.1f}" for gain in own.values()]
        mean = [f"{statistics.fmean(gains):+.2f}" for gains in (own.values(), large)]
        both = report.TITLES["textcnn-both"]
        rows.append(["paper: Qwen3-Embedding-0.6B", both, "EOS and a linear layer", *cells, *mean])
    return report.beside_paper(["", "", "above", *report.titles(), "mean", f"without {SETS[SMALL_SET]}"], rows)


def average_gain(encoder: str, method: str, rival: str) -> list[str] | None:
    """Whether the mean accuracy over the sets exceeds a rival's, and the sets where it does not; None: no results."""
    every = {name: _gain(encoder, name, method, rival) for name in SETS}
    found = {name: gain for name, gain in every.items() if gain}
    if not found:
        return None
    mean = 100 * statistics.fmean(gain for gain, _ in found.values())
    error = 196 * sum(error**2 for _, error in found.values()) ** 0.5 / len(found)
    missed = [SETS[name] for name, (gain, _) in found.items() if gain <= 0]
    unsure = [SETS[name] for name, (gain, error) in found.items() if abs(gain) <= 1.96 * error]
    words = f"average accuracy over {len(found)} of {len(SETS)} tasks above that of the {report.TITLES[rival]}"
    return [words, f"{_yes(mean > 0)}, {mean:+.2f} ± {error:.2f}", _listed(missed), _listed(unsure)]


def mean_curve(runs: Sequence[Result], by: str) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Shares rejected until `LEFT` remains, and the accuracy on the rest, averaged over runs."""
    curve = np.mean([run["curve"][by] for run in runs], axis=0)
    shares = np.linspace(0, 1, len(curve))
    kept = shares <= 1 - LEFT
    return shares[kept], curve[kept]


def largest_fall(runs: Sequence[Result], by: str = "uncertainty") -> float:
    """Largest fall in accuracy from one point of the curve to any later one."""
    _, curve = mean_curve(runs, by)
    return float((np.maximum.accumulate(curve) - curve).max())


def rises(runs: Sequence[Result], by: str = "uncertainty") -> bool:
    """Return whether the curve rises: it never falls by more than `MOST_FALL`, and ends above its start."""
    _, curve = mean_curve(runs, by)
    return largest_fall(runs, by) <= MOST_FALL and bool(curve[-1] > curve[0])


def slope(runs: Sequence[Result], by: str = "uncertainty") -> float:
    """Slope of the least-squares line through the curve: the gain extrapolated to rejecting all."""
    return float(np.polyfit(*mean_curve(runs, by), 1)[0])


def _curve_rows(found: Mapping[str, Sequence[Result]]) -> list[list[str]]:
    falling = [f"{SETS[name]} ({100 * largest_fall(runs):.1f})" for name, runs in found.items() if not rises(runs)]
    sinking = [SETS[name] for name, runs in found.items() if slope(runs) <= 0]
    words = f"the curve by uncertainty rises: until {LEFT:.0%} are left it never falls by more than "
    words += f"{100 * MOST_FALL:g} point (in brackets: by how many), and ends above its start"
    return [
        [words, _of(falling, found), _listed(falling), ""],
        ["its line by least squares rises", _of(sinking, found), _listed(sinking), ""],
    ]


def _gain(encoder: str, name: str, method: str, rival: str) -> tuple[float, float] | None:
    """Gain on one set and its standard error; None if the two were not compared."""
    found = report.compared(encoder, name)
    return found["gains"].get(method, {}).get(rival) if found else None


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
            found = {name: report.runs_of("main", encoder, name, method) for name in SETS}
            found = {name: runs for name, runs in found.items() if runs}
            if found:
                own += _curve_rows(found)
                own += [_area_row(encoder, method, *area) for area in AREAS]
            rows += [[encoder, report.TITLES[method], *row] for row in own if row]
        for result in results(report.STUDY, "cost", encoder=encoder):
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
