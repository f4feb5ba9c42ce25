"""Figures of the benchmark: word overlap of the data sets; score against size, speed and NLI AUROC.

Each function takes the file to write (.png, .svg or .pdf; without an extension both .png and .svg) and the metric of
the y-axis, and returns the files. `scatter` holds the parts that the scatter plots share, `evaluate.drawing` the style.
"""

import math
import statistics
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path

import numpy as np

from labelspace.bench.cards import BTZSC, FAMILIES, METRICS
from labelspace.bench.models import FAMILIES_OF_MODELS
from labelspace.bench.published import NLI_SETS, published_models, published_scores
from labelspace.bench.records import NLI_TASK
from labelspace.bench.rows import Record, Row, measured_rows, published_rows, shared_nli_sources
from labelspace.bench.scatter import COLOURS, Point, finish, log_axis, machines, scatter
from labelspace.bench.similarity import Similarities
from labelspace.bench.statistics import kendall_tau, regression
from labelspace.bench.tables import WORDS
from labelspace.checks import check_choice
from labelspace.errors import InputError, OutputError
from labelspace.evaluate.drawing import drawing, files_of, write_figure
from labelspace.evaluate.palette import FEW, MARKERS

CUSTOM_NLI = {
    "base, binary": ("bert-base-uncased-nli", "deberta-v3-base-nli", "modernbert-base-nli"),
    "large, binary": ("bert-large-uncased-nli", "deberta-v3-large-nli", "modernbert-large-nli"),
    "large, three-way": (
        "bert-large-uncased-nli-triplet",
        "deberta-v3-large-nli-triplet",
        "modernbert-large-nli-triplet",
    ),
}
"""Cross-encoders trained by the authors, by size and loss (section 5, Figure 2a)."""


def similarity_figure(found: Similarities, path: str | Path) -> tuple[Path, ...]:
    """Draw the word overlap of the data sets as a heat map (Figure 1).

    Args:
        found: result of `similarities`.
    """
    files = files_of(path)
    count = len(found.names)
    with drawing("the heat map") as new_figure:
        side = max(3.0, 0.36 * count)
        figure = new_figure(side + 2.6, side + 1.9)
        axes = figure.add_subplot()
        # Scale colours by the off-diagonal cells: the diagonal is always 1 and would use up the range.
        off = found.values[~np.eye(count, dtype=bool)]
        most = float(off.max()) if len(off) else 1.0
        image = axes.imshow(found.values, cmap="Blues", vmin=0, vmax=max(most, 1e-9), interpolation="nearest")
        axes.set_xticks(range(count), found.names, rotation=90)
        axes.set_yticks(range(count), found.names)
        axes.tick_params(length=2)
        for row in range(count):
            for column in range(count):
                value = found.values[row, column]
                text = "1" if row == column else f"{value:.2f}".removeprefix("0")
                dark = value > 0.6 * most
                axes.text(column, row, text, ha="center", va="center", fontsize=6.5, color="white" if dark else "black")
        axes.set_title("Weighted Jaccard similarity of the data sets' words")
        figure.colorbar(image, ax=axes, shrink=0.7)
        return write_figure(figure, files)


def nli_size_figure(
    path: str | Path, records: Sequence[Record] = (), *, metric: str = "macro_f1_predicted"
) -> tuple[Path, ...]:
    """Draw the authors' NLI cross-encoders by size and loss for each task family (Figure 2a), and measured ones.

    Each point is one model on one data set; diamonds are medians.

    Args:
        records: records of the store. Their NLI cross-encoders are drawn too; all values are over the data sets that
            these share.
    """
    files = files_of(path)
    scores = published_scores(metric)
    own = measured_rows([r for r in records if r["benchmark"] == "btzsc" and r["family"] == "nli"], metric)
    common = [name for name in BTZSC if all(name in row.cells for row in own)]
    groups = {f"{words} (published)": [scores[model] for model in models] for words, models in CUSTOM_NLI.items()}
    groups |= {row.model: [{name: row.cells[name].value for name in common}] for row in own}
    with drawing("the NLI figure") as new_figure:
        figure = new_figure(7.6 + 0.6 * len(own), 3.8)
        axes = figure.add_subplot()
        apart = 0.78 / len(groups)
        for group, (words, models) in enumerate(groups.items()):
            colour, sign = FEW[group % len(FEW)], MARKERS[group % len(MARKERS)]
            axes.scatter([], [], s=22, color=colour, marker=sign, label=words)
            for place, family in enumerate(FAMILIES):
                values = sorted(model[name] for model in models for name in common if BTZSC[name].family == family)
                if not values:
                    continue
                x = place + apart * (group - (len(groups) - 1) / 2)
                # Spread points by their rank rather than at random, so that the figure is reproducible.
                beside = x + 0.3 * apart * np.cos(np.arange(len(values)) * 2.4)
                axes.scatter(beside, values, s=12, color=colour, marker=sign, alpha=0.55, linewidths=0)
                axes.scatter(x, statistics.median(values), s=60, marker="D", color=colour, edgecolors="black", zorder=3)
        axes.set_xticks(range(len(FAMILIES)), FAMILIES)
        axes.set_ylim(-0.03, 1.03)
        axes.set_ylabel(f"{WORDS[metric]} on {len(common)} of {len(BTZSC)} data sets")
        axes.grid(axis="y", color="#e4e4e4", linewidth=0.6)
        axes.set_axisbelow(True)
        axes.set_title("NLI cross-encoders by size and loss (diamonds: medians)")
        figure.legend(loc="outside right center")
        return write_figure(figure, files)


def scaling_figure(
    path: str | Path, records: Sequence[Record] = (), *, metric: str = "macro_f1_predicted"
) -> tuple[Path, ...]:
    """Draw the score against the number of parameters (Figure 2b), published models and measured ones.

    Each family has a least-squares line through its published models over log size. The band is the 95 % interval of
    the mean (three models or more).

    Args:
        records: records of the store. All means are over the data sets that every measured model has.
    """
    files = files_of(path)
    sets, rows = _rows(records, metric)
    points = [
        Point(row.model, row.family, float(row.parameters), score, not row.published)
        for row in rows
        if row.parameters and (score := row.mean(sets)) is not None
    ]
    with drawing("the scaling figure") as new_figure:
        figure = new_figure(6.8, 4.4)
        axes = figure.add_subplot()
        log_axis(axes, [point.x for point in points])
        for family in FAMILIES_OF_MODELS:
            own = [point for point in points if point.family == family and not point.measured]
            # No line where sizes differ by less than a factor of two: its slope would be meaningless.
            if own and max(point.x for point in own) > 2 * min(point.x for point in own):
                logs = [math.log10(point.x) for point in own]
                along = np.linspace(min(logs), max(logs), 60)
                line = regression(logs, [point.y for point in own], along)
                axes.plot(10**along, line.at, color=COLOURS[family], linewidth=0.9, alpha=0.6, zorder=1)
                if line.half_width is not None:
                    low, high = line.at - line.half_width, line.at + line.half_width
                    axes.fill_between(10**along, low, high, color=COLOURS[family], alpha=0.08, linewidth=0, zorder=0)
        scatter(axes, points)
        axes.set_ylim(0, 1)  # the wide band of a small family would compress the rest
        axes.set_xlabel("parameters (bands: 95 % intervals of the published families)")
        finish(figure, axes, metric, sets, points)
        return write_figure(figure, files)


def speed_figure(
    path: str | Path, records: Sequence[Record], *, metric: str = "macro_f1_predicted"
) -> tuple[Path, ...]:
    """Draw the score against texts per second (Figure 3a), for measured models only.

    Dashed lines are the medians of all models; the best trade-offs lie above and to the right of both. A cross is the
    median of a family with two models or more.

    Args:
        records: records of the store, all from one machine: speeds of different machines are not comparable.

    Raises:
        InputError: the store has no record of the benchmark.
    """
    files = files_of(path)
    sets, rows = _rows(records, metric)
    points = [
        Point(row.model, row.family, speed, score, True)
        for row in rows
        if (speed := row.texts_per_second(sets)) and (score := row.mean(sets)) is not None
    ]
    if not points:
        raise InputError("the store holds no measured speed on the benchmark; run `labelspace bench run` first.")
    with drawing("the speed figure") as new_figure:
        figure = new_figure(6.8, 4.4)
        axes = figure.add_subplot()
        log_axis(axes, [point.x for point in points])
        axes.axvline(statistics.median(point.x for point in points), color="#888888", linewidth=0.7, linestyle="--")
        axes.axhline(statistics.median(point.y for point in points), color="#888888", linewidth=0.7, linestyle="--")
        scatter(axes, points)
        for family in FAMILIES_OF_MODELS:
            own = [point for point in points if point.family == family]
            if len(own) > 1:
                x, y = (statistics.median(values) for values in ([p.x for p in own], [p.y for p in own]))
                axes.scatter(x, y, marker="x", s=90, color=COLOURS[family], linewidths=1.6, zorder=2)
        axes.set_xlabel(f"texts per second, {machines(records)} (x, dashed: medians)")
        finish(figure, axes, metric, sets, points)
        return write_figure(figure, files)


def nli_figure(
    path: str | Path, records: Sequence[Record] = (), *, metric: str = "macro_f1_predicted"
) -> tuple[Path, ...]:
    """Draw the score against AUROC on NLI pairs (Figure 3b), with Kendall's tau and Pearson's r of each family.

    Both are over the published models of a family, if it has three or more.

    Args:
        records: records of the store; models with a measured NLI AUROC are drawn too. Means are over the sources that
            all drawn models have.
    """
    files = files_of(path)
    sets, rows = _rows(records, metric)
    able = [row for row in rows if row.nli]
    sources = [name for name in shared_nli_sources(able) if name in NLI_SETS]
    points = [
        Point(row.model, row.family, statistics.fmean(row.nli[name] for name in sources), score, not row.published)
        for row in able
        if sources and (score := row.mean(sets)) is not None
    ]
    words = {}
    for family in FAMILIES_OF_MODELS:
        own = [point for point in points if point.family == family and not point.measured]
        if len(own) > 2:
            xs, ys = [point.x for point in own], [point.y for point in own]
            words[family] = f"τ {kendall_tau(xs, ys).tau:.2f}, r {float(np.corrcoef(xs, ys)[0, 1]):.2f}"
    with drawing("the NLI figure") as new_figure:
        figure = new_figure(6.8, 4.4)
        axes = figure.add_subplot()
        axes.set_xlim(0.45, 1.0)
        scatter(axes, points)
        axes.set_xlabel(f"AUROC on NLI pairs, mean over {len(sources)} of {len(NLI_SETS)} sources")
        finish(figure, axes, metric, sets, points, words)
        return write_figure(figure, files)


def bench_figures(
    records: Sequence[Record],
    out: str | Path,
    *,
    data_sets: Mapping[str, Iterable[str]] | None = None,
    metric: str = "macro_f1_predicted",
) -> tuple[Path, ...]:
    """Draw every figure that the numbers allow, each as .png and .svg.

    Args:
        records: records of the store; if empty, only published numbers are drawn.
        out: output folder, created if missing.
        data_sets: texts of each data set, for the heat map; None: no heat map.
        metric: the metric of the y-axis.

    Returns:
        The files written.

    Raises:
        ConfigError: an unknown metric.
        InputError: the models of the store share no data set.
        MissingDependencyError: matplotlib is not installed.
        OutputError: the folder or a file cannot be written.

    Example:
        >>> import tempfile
        >>> with tempfile.TemporaryDirectory() as folder:
        ...     [file.name for file in bench_figures([], folder) if file.suffix == ".png"]
        ['nli_by_size.png', 'scaling.png', 'nli_auroc.png']
    """
    from labelspace.bench.similarity import similarities

    check_choice("metric", metric, METRICS)
    out = Path(out)
    try:
        out.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise OutputError(f"{out} cannot be made ({error.strerror}); give another place.") from error
    written: list[Path] = []
    if data_sets:
        written += similarity_figure(similarities(data_sets), out / "similarity")
    written += nli_size_figure(out / "nli_by_size", records, metric=metric)
    written += scaling_figure(out / "scaling", records, metric=metric)
    if any(record.get("benchmark") == "btzsc" for record in records):
        written += speed_figure(out / "speed", records, metric=metric)
    return (*written, *nli_figure(out / "nli_auroc", records, metric=metric))


def _rows(records: Sequence[Record], metric: str) -> tuple[list[str], list[Row]]:
    """Return the data sets that every measured model has, and the rows, measured rows first."""
    own = [record for record in records if record.get("benchmark") == "btzsc"]
    nli = [record for record in records if record["task"] == NLI_TASK]
    measured = measured_rows(own, metric, nli)
    sets = [name for name in BTZSC if all(name in row.cells for row in measured)]
    if not sets:
        names = ", ".join(row.model for row in measured)
        raise InputError(f"the models of the store share no data set ({names}); run them on the same ones.")
    return sets, [*measured, *published_rows(published_models(), metric)]
