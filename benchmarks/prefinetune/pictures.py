"""The figures of REZE's experiments: weights (Fig. 2), IsoScore (Fig. 3), relation vectors (Fig. 4)."""

import statistics
from pathlib import Path

from labelspace.evaluate.drawing import drawing, files_of, write_figure
from labelspace.evaluate.palette import FEW, MARKERS, label_colours
from prefinetune.report import SPACES, STARTS, fine_tuned_alone, results, weight_averages, weights
from prefinetune.sets import DOMAINS
from prefinetune.settings import SIZES

BARS = {"base": "as it came", **SPACES}
HATCHES = ("", "///", "...", "xxx", "---")


def sweep_figure(path: Path) -> tuple[Path, ...]:
    """Figure 2: domain averages by the weight of the regularizer, at even distances; 0 is PFT, dashed is FT."""
    found = {weight: runs for weight, runs in weights().items() if runs}
    means = {(weight, size): weight_averages(runs, size) for weight, runs in found.items() for size in SIZES}
    alone = {size: weight_averages(fine_tuned_alone(), size) for size in SIZES}
    panels = [where for where in (*DOMAINS, "mean") if any(one[where] is not None for one in means.values())]
    if not panels:
        return ()
    with drawing("the weight of the regularizer") as new_figure:
        figure = new_figure(3.0 * len(panels) + 0.4, 2.9)
        for column, where in enumerate(panels, 1):
            axes = figure.add_subplot(1, len(panels), column)
            for place, size in enumerate(SIZES):
                scores = [means[weight, size][where] for weight in found]
                there = [(number, score) for number, score in enumerate(scores) if score is not None]
                if len(there) == len(found):  # a line that skips a weight would say what was not measured
                    axes.plot(
                        *zip(*there, strict=True),
                        color=FEW[place],
                        marker=MARKERS[place],
                        markersize=4,
                        label=f"{size:,} rows",
                    )
                    level = alone[size][where]
                    if level is not None:
                        axes.axhline(level, color=FEW[place], linestyle="--", linewidth=0.9)
            axes.set_xticks(range(len(found)), [f"{weight:g}" for weight in found])
            axes.set_title(where)
            axes.set_xlabel("weight")
            axes.set_ylabel("accuracy, nDCG@10" if column == 1 else "")
            axes.grid(color="#e4e4e4", linewidth=0.6)
            axes.set_axisbelow(True)
            if column == 1:
                axes.legend(fontsize=7)
        return write_figure(figure, files_of(path))


def isotropy_figure(path: Path) -> tuple[Path, ...]:
    """Figure 3: IsoScore of texts of the targets before and after, with the standard deviation over seeds."""
    runs = results("encoders")
    mixes = sorted({run["mix"] for run in runs})
    if not any(run["targets"]["isoscore"][1] is not None for run in runs):
        return ()
    with drawing("IsoScore") as new_figure:
        figure = new_figure(1.6 * len(mixes) + 2.0, 2.9)
        axes = figure.add_subplot()
        width = 0.8 / len(BARS)
        for place, (method, title) in enumerate(BARS.items()):
            for column, mix in enumerate(mixes):
                own = [run for run in runs if run["mix"] == mix and method in ("base", run["method"])]
                if not own:
                    continue
                measured = [run["targets"]["isoscore"][0 if method == "base" else 1] for run in own]
                values = [value for value in measured if value is not None]  # the package may have been missing
                if not values:
                    continue
                axes.bar(
                    column + (place - (len(BARS) - 1) / 2) * width,
                    statistics.fmean(values),
                    width,
                    yerr=statistics.stdev(values) if len(values) > 1 else None,
                    color=FEW[place],
                    hatch=HATCHES[place],
                    edgecolor="white",
                    ecolor="#333333",
                    label=title if column == 0 else None,
                )
        axes.set_xticks(range(len(mixes)), [mix.replace("-without-", "\nwithout ") for mix in mixes])
        axes.set_ylabel("IsoScore")
        axes.legend(fontsize=7, loc="center left", bbox_to_anchor=(1.0, 0.5))
        return write_figure(figure, files_of(path))


def maps_figure(path: Path) -> tuple[Path, ...]:
    """Figure 4: [anchor; positive] of every set, before, after PFT, after REZE.

    One PCA is fitted on the relations of all three encoders together, so the three panels of a domain are one space.
    """
    found = {run["domain"]: run for run in results("maps")}
    domains = [domain for domain in DOMAINS if domain in found]
    if not domains:
        return ()
    with drawing("relation vectors") as new_figure:
        figure = new_figure(2.6 * len(STARTS) + 1.9, 2.6 * len(domains) + 0.2)
        for row, domain in enumerate(domains):
            run = found[domain]
            sources = list(dict.fromkeys(run["sources"]))
            colours = label_colours(len(sources))
            first = None
            for column, start in enumerate(STARTS):
                axes = figure.add_subplot(
                    len(domains), len(STARTS), row * len(STARTS) + column + 1, sharex=first, sharey=first
                )
                first = first or axes
                for place, source in enumerate(sources):
                    own = [
                        point for point, one in zip(run["points"][start], run["sources"], strict=True) if one == source
                    ]
                    axes.scatter(
                        [point[0] for point in own],
                        [point[1] for point in own],
                        s=7,
                        color=colours[place],
                        marker=MARKERS[place % len(MARKERS)],
                        alpha=0.7,
                        linewidths=0,
                        label=f"{source} (target)" if source in run["targets"] else source,
                    )
                axes.set_title(f"{domain}: {STARTS[start]}", fontsize=8)
                axes.set_xticks([])
                axes.set_yticks([])
                if column == len(STARTS) - 1:
                    axes.legend(fontsize=6, loc="center left", bbox_to_anchor=(1.0, 0.5), markerscale=1.5)
        return write_figure(figure, files_of(path))


def all_figures(folder: Path) -> list[Path]:
    """Draw what there are results for, and return the files."""
    drawn = [
        *sweep_figure(folder / "prefinetune-weights"),
        *isotropy_figure(folder / "prefinetune-isoscore"),
        *maps_figure(folder / "prefinetune-maps"),
    ]
    for file in drawn:
        if file.suffix == ".svg":  # the page shows the PNG
            file.unlink()
    return [file for file in drawn if file.suffix == ".png"]
