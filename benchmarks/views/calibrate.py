"""Measure how much the signals of an estimate say, and write `signals.json` of the library.

python benchmarks/views/calibrate.py          # from results/consensus.jsonl
python benchmarks/views/calibrate.py --check  # say whether the file is what the results give

Each set counts once, however many runs it has, and in it each size of pool. The deviation is the one at which the
stated range, 80 %, would hold the next set's error, from the errors of sets that were each estimated from the others.
"""

import json
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray
from scipy.optimize import lsq_linear
from scipy.special import logit
from scipy.stats import norm

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from store import ROOT

from labelspace.consensus.signals import STATED, Signals, features, fewness, ranges, which
from views.answered import NEW, TOGETHER, answered, answered_from_few, base_set
from views.fitting_report import probability_errors

OF_ACCURACY = 0.9
"""Largest part of the error of macro-F1, of 1, that goes with the error of accuracy."""

SIZES = (0, 75, 150, 300, 700, 2000, np.inf)
"""Bounds between sizes of pools that count alike."""

FILE = ROOT / "src" / "labelspace" / "consensus" / "signals.json"
Values = NDArray[np.float64]


def all_runs() -> pd.DataFrame:
    """Return the runs that the lines are of, from whole pools and from few documents."""
    return usable(pd.concat([answered(), answered_from_few()], ignore_index=True))


def usable(runs: pd.DataFrame) -> pd.DataFrame:
    """Return the runs with 50 documents and 100 test rows or more, without consensuses that changed nothing."""
    kept = runs[(runs["pool_documents"] >= 50) & (runs["test_rows"] >= 100)]
    kept = kept.assign(base=kept["task"].map(base_set), consensus=kept["who"].isin((TOGETHER, NEW)))
    kept = kept.assign(size=pd.cut(kept["pool_documents"], SIZES, labels=False))
    # A consensus that did nothing is its view, and no example of a model that learnt from the pool.
    return kept[~kept["consensus"] | kept["changed"]].reset_index(drop=True)


def lines(runs: pd.DataFrame) -> dict[str, Any]:
    """Return the measured line of each kind of model."""
    found = {}
    for consensus in (False, True):
        own = runs[runs["consensus"] == consensus]
        for neighbours in (True, False):
            found[which(neighbours, consensus=consensus)] = _line(own, neighbours=neighbours)
    return found


def coverage(runs: pd.DataFrame) -> pd.DataFrame:
    """Estimate each set from a line of the others, and return whether the ranges held the truth."""
    found = []
    for base in sorted(runs["base"].unique()):
        measured = lines(runs[runs["base"] != base])
        for run in runs[runs["base"] == base].to_dict("records"):
            signals: Any = Signals(run["words"], run["neighbours"], None, None)  # pyright: ignore[reportArgumentType]
            counts = int(run["label_count"]), int(run["pool_documents"])
            both = ranges(signals, *counts, consensus=bool(run["consensus"]), lines=measured)
            for name, told in zip(("accuracy", "macro_f1"), both, strict=True):
                held = told.low <= run[name] <= told.high
                error = abs(told.expected - run[name])
                found.append({**run, "quantity": name, "held": held, "error": error, "width": told.high - told.low})
    return pd.DataFrame(found)


def calibration() -> dict[str, Any]:
    """Return how far probabilities were off, on average and at worst over the sets, each kind of model by itself."""
    found = probability_errors()
    if found.empty:
        return {}
    means = found.groupby(["who", "task"])[["ece_fixed", "ece_told"]].mean()
    return {
        "sets": int(found["task"].nunique()),
        "mean": round(float(means["ece_told"].mean()), 3),
        "worst": round(float(means["ece_told"].max()), 3),
        "fixed": round(float(means["ece_fixed"].mean()), 3),
    }


def _line(runs: pd.DataFrame, *, neighbours: bool) -> dict[str, Any]:
    few = [fewness(*counts) for counts in zip(runs["pool_documents"], runs["label_count"], strict=True)]
    near = runs["neighbours"] if neighbours else [None] * len(runs)
    table = np.array([features(*one, *how) for *one, how in zip(runs["words"], near, few, strict=True)])
    weight = 1 / runs.groupby(["base", "size"])["base"].transform("size")
    weight = (weight / runs.groupby("base")["size"].transform("nunique")).to_numpy()
    bases = runs["base"].to_numpy()
    errors, found = {}, {}
    for name in ("accuracy", "macro_f1"):
        wanted = _log_odds(runs[name].to_numpy(), runs["label_count"].to_numpy())
        errors[name] = np.empty(len(runs))
        for base in np.unique(bases):
            others = bases != base
            solved = _solved(table[others], wanted[others], weight[others])
            errors[name][~others] = wanted[~others] - table[~others] @ solved
        found[name] = {"weights": [round(float(one), 4) for one in _solved(table, wanted, weight)]}
    one, other = (_deviation(errors[name], weight) for name in ("accuracy", "macro_f1"))
    slope = float((weight * errors["accuracy"] * errors["macro_f1"]).sum() / (weight * errors["accuracy"] ** 2).sum())
    slope = float(np.clip(slope, 0, OF_ACCURACY * other / one))
    found["accuracy"]["deviation"] = round(one, 4)
    found["macro_f1"]["slope"] = round(slope, 4)
    found["macro_f1"]["own_deviation"] = round(float(np.sqrt(other**2 - (slope * one) ** 2)), 4)
    return found


def _solved(table: Values, wanted: Values, weight: Values) -> Values:
    """Return the weights of least squares; more agreement never lowers the estimate."""
    root = np.sqrt(weight)
    least = np.full(table.shape[1], 0.0)
    least[0] = -np.inf
    return lsq_linear(table * root[:, None], wanted * root, bounds=(least, np.inf)).x


def _deviation(errors: Values, weight: Values) -> float:
    order = np.argsort(np.abs(errors), kind="stable")
    summed = np.cumsum(weight[order]) / weight.sum()
    # The sum of the weights is the number of sets; the next set is one more (Vovk et al., conformal prediction).
    share = min(STATED * (1 + 1 / weight.sum()), 1.0)
    size = float(np.abs(errors)[order][min(int(np.searchsorted(summed, share)), len(errors) - 1)])
    return size / float(norm.ppf((1 + STATED) / 2))


def _log_odds(values: Values, labels: Values) -> Values:
    return logit(np.clip((values - 1 / labels) / (1 - 1 / labels), 0.02, 0.98))


def main() -> None:
    """Write the file, or compare it."""
    measured = {**lines(all_runs()), "calibration": calibration()}
    text = json.dumps(measured, indent=1) + "\n"
    if "--check" in sys.argv[1:]:
        if FILE.read_text(encoding="utf-8") != text:
            raise SystemExit(f"{FILE.name} is not what the results give; run python benchmarks/views/calibrate.py")
        return
    FILE.write_text(text, encoding="utf-8")


if __name__ == "__main__":
    main()
