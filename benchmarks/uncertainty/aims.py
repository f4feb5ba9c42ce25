"""Whether the targets are reached: gains over the linear probe, doubt that finds errors, the cost of the head."""

import statistics
from collections.abc import Callable, Sequence
from itertools import product

import numpy as np
from layout import markdown
from pieces import read_results

from uncertainty import paper, report
from uncertainty.report import ENCODERS, SMALL_SET, Result
from uncertainty.sets import SETS

METHODS = ("textcnn-both", "textcnn-chosen")
"""The whole method, with the paper's options for its nearest encoder and with those that train rows chose."""

MOST_LATENCY = 1.05
LEAST_EPOCHS = 10


def paired_gain(ours: Sequence[Result], theirs: Sequence[Result]) -> tuple[float, float]:
    """Gain in accuracy on the same test rows and its standard error over them; each side is a mean over seeds."""
    first, second = (np.mean([report.right_of(run) for run in runs], axis=0) for runs in (ours, theirs))
    difference = first - second
    return float(difference.mean()), float(difference.std(ddof=1) / np.sqrt(len(difference)))


def gains() -> str:
    """The whole method above the linear probe, by set; the paper gains 1.6 points over its own."""
    rows = []
    for encoder in ENCODERS:
        for method, rival in product(METHODS, ("probe", "probe-tuned", "textcnn-base")):
            cells, found = [], {}
            for name in SETS:
                ours, theirs = (report.runs_of("main", encoder, name, one) for one in (method, rival))
                if ours and theirs:
                    gain, error = paired_gain(ours, theirs)
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
    return markdown(["", "", "above", *SETS.values(), "mean", f"without {SETS[SMALL_SET]}"], rows)


def _area(by: str) -> Callable[[Sequence[Result]], float]:
    return lambda runs: statistics.fmean(run["area"][by] for run in runs)


QUESTIONS: dict[str, Callable[[Sequence[Result]], bool]] = {
    "the curve by uncertainty rises": lambda runs: report.risen(runs) > 0,
    "its area is above random": lambda runs: _area("uncertainty")(runs) > _area("random")(runs),
    "its area is at least that by entropy": lambda runs: _area("uncertainty")(runs) >= _area("entropy")(runs),
    "the area by entropy is above random": lambda runs: _area("entropy")(runs) > _area("random")(runs),
}


def targets() -> str:
    """On how many data sets each target holds, and where it does not."""
    rows = []
    for encoder in ENCODERS:
        for method in METHODS:
            found = {name: report.runs_of("main", encoder, name, method) for name in SETS}
            found = {name: runs for name, runs in found.items() if runs}
            for question, holds in QUESTIONS.items():
                if found:
                    missed = [SETS[name] for name, runs in found.items() if not holds(runs)]
                    count = f"{len(found) - len(missed)} of {len(found)}"
                    rows.append([encoder, report.TITLES[method], question, count, ", ".join(missed) or "-"])
        costs = [result for result in read_results(report.OUT, "cost") if result["encoder"] == encoder]
        rows += [[encoder, "TextCNN", *_cost(result), "-"] for result in costs]
    return markdown(["", "", "target", "reached", "not on"], rows, side="---|")


def _cost(result: Result) -> tuple[str, str]:
    words = f"{result['length']} texts"
    if result["what"] == "latency":
        reached = "yes" if result["ratio"] <= MOST_LATENCY else "no"
        return f"latency at most {MOST_LATENCY} of the encoder's, {words}", f"{reached}, {result['ratio']:.2f}"
    ratio = result["encoding to reading"]
    reached = "yes" if ratio >= LEAST_EPOCHS else "no"
    return f"reading states {LEAST_EPOCHS} times as fast as encoding, {words}", f"{reached}, {ratio:.0f}"


BLOCKS: dict[str, Callable[[], str]] = {"uncertainty-gains": gains, "uncertainty-targets": targets}
