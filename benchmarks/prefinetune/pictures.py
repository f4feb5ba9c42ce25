"""The figures of REZE's experiments: weights (Fig. 2), IsoScore (Fig. 3), relation vectors (Fig. 4)."""

import statistics
from functools import partial
from itertools import product
from pathlib import Path
from typing import Any

import pandas as pd
from panels import Figures, bare, dots, level, panelled, quiet

from labelspace.evaluate.palette import FEW, MARKERS, label_colours
from prefinetune.printed import PRINTED
from prefinetune.report import SPACES, STARTS, WEIGHTED, runs_of, weight_averages
from prefinetune.sets import DOMAINS
from prefinetune.settings import SIZES

BARS = {"base": "as it came", **{method: title for method, title in SPACES.items() if method not in PRINTED}}
HATCHES = ("", "///", "...", "xxx", "---")


def sweep_figure(path: Path) -> tuple[Path, ...]:
    """Figure 2: domain averages by weight of the regularizer, evenly spaced; 0 is PFT, dashed is FT."""
    means = weight_averages()
    found = means.drop(index="base", errors="ignore")
    weights = [f"{WEIGHTED[start]:g}" for start in found.index]
    shown = [where for where in (*DOMAINS, "mean") if found[where].notna().any(axis=None)]

    def panel(where: str, axes: Any) -> None:
        for place, size in enumerate(SIZES):
            if found[where, size].isna().any():  # a line across a missing weight would suggest a measurement
                continue
            looks = {"color": FEW[place], "marker": MARKERS[place], "markersize": 4, "label": f"{size:,} rows"}
            axes.plot(range(len(found)), found[where, size], **looks)
            if "base" in means.index and pd.notna(height := means.loc["base", (where, size)]):
                level(axes, height, place)
        axes.set_xticks(range(len(found)), weights)
        axes.set_title(where)
        axes.set_xlabel("weight")
        axes.set_ylabel("accuracy, nDCG@10" if where == shown[0] else "")
        quiet(axes)
        if where == shown[0]:
            axes.legend(fontsize=7)

    return panelled(path, [partial(panel, where) for where in shown], (3.0 * len(shown) + 0.4, 2.9))


def isotropy_figure(path: Path) -> tuple[Path, ...]:
    """Figure 3: IsoScore of target texts before and after, with the standard deviation over seeds."""
    runs = runs_of("encoders", "mix", "method", "targets.isoscore")
    mixes = sorted(runs.mix.unique())
    width = 0.8 / len(BARS)

    def values_of(mix: str, method: str) -> pd.Series:
        own = runs[(runs.mix == mix) & (runs.method == method if method in SPACES else True)]
        return own["targets.isoscore"].str[int(method in SPACES)].dropna()  # missing without the package IsoScore

    def panel(axes: Any) -> None:
        for (place, method), (column, mix) in product(enumerate(BARS), enumerate(mixes)):
            if len(values := values_of(mix, method)):
                axes.bar(
                    column + (place - (len(BARS) - 1) / 2) * width,
                    statistics.fmean(values),
                    width,
                    yerr=statistics.stdev(values) if len(values) > 1 else None,
                    color=FEW[place],
                    hatch=HATCHES[place],
                    edgecolor="white",
                    ecolor="#333333",
                    label=BARS[method] if column == 0 else None,
                )
        axes.set_xticks(range(len(mixes)), [mix.replace("-without-", "\nwithout ") for mix in mixes])
        axes.set_ylabel("IsoScore")
        axes.legend(fontsize=7, loc="center left", bbox_to_anchor=(1.0, 0.5))

    measured = any(len(values_of(mix, method)) for mix in mixes for method in SPACES)
    return panelled(path, [panel] * measured, (1.6 * len(mixes) + 2.0, 2.9))


def maps_figure(path: Path) -> tuple[Path, ...]:
    """Figure 4: [anchor; positive] of every set, before, after PFT, after REZE.

    One PCA is fitted on the relations of all three encoders together, so the three panels of a domain are one space.
    """
    found = {run["domain"]: run for run in runs_of("maps").to_dict("records")}
    first: dict[str, Any] = {}

    def panel(domain: str, start: str, axes: Any) -> None:
        run = found[domain]
        if shared := first.setdefault(domain, axes) is not axes:
            axes.sharex(first[domain])
            axes.sharey(first[domain])
        sources = list(dict.fromkeys(run["sources"]))
        for place, (source, colour) in enumerate(zip(sources, label_colours(len(sources)), strict=True)):
            own = [point for point, one in zip(run["points"][start], run["sources"], strict=True) if one == source]
            title = f"{source} (target)" if source in run["targets"] else source
            dots(axes, own, place, color=colour, s=7, alpha=0.7, label=title)
        axes.set_title(f"{domain}: {STARTS[start]}", fontsize=8)
        bare(axes)
        if shared and start == list(STARTS)[-1]:
            axes.legend(fontsize=6, loc="center left", bbox_to_anchor=(1.0, 0.5), markerscale=1.5)

    panels = [partial(panel, *one) for one in product([name for name in DOMAINS if name in found], STARTS)]
    size = (2.6 * len(STARTS) + 1.9, 2.6 * len(found) + 0.2)
    return panelled(path, panels, size, columns=len(STARTS))


FIGURES: Figures = {
    "prefinetune-weights": sweep_figure,
    "prefinetune-isoscore": isotropy_figure,
    "prefinetune-maps": maps_figure,
}
