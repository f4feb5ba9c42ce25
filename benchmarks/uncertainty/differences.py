"""Differences on the same test rows, with intervals: gains over the probe, areas under the rejection curve."""

from collections.abc import Callable
from itertools import product

import pandas as pd
from layout import NOT_YET, crossed, markdown, products, table, titled

from uncertainty import paper, report
from uncertainty.compared import AREAS, METHODS, RIVALS
from uncertainty.draws import Gap
from uncertainty.report import ENCODERS, SMALL_SET
from uncertainty.sets import SETS


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


def _gap(encoder: str, name: str, method: str, by: str, other: str) -> Gap | None:
    found = report.compared(encoder, name)
    own = found["areas"].get(method) if found else None
    return Gap(*own[f"{by} above {other}"]) if own else None


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


BLOCKS: dict[str, Callable[[], str]] = {
    "uncertainty-gains": gains,
    "uncertainty-areas": areas,
}
