"""Figures of the benchmark: how alike the data sets are, size, speed and NLI ability against the score.

Published models are hollow, measured ones filled and named; each family has a colour and a marker, so that grey
printers and eyes that see no hue tell them apart. Drawn as all figures here (`evaluate.drawing`).
"""

import math
import statistics
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from labelspace.errors import InputError, OutputError
from labelspace.evaluate.bench.ability import NLI_TASK
from labelspace.evaluate.bench.cards import BTZSC, FAMILIES
from labelspace.evaluate.bench.models import FAMILIES_OF_MODELS
from labelspace.evaluate.bench.published import NLI_SETS, published_models, published_scores
from labelspace.evaluate.bench.rows import Record, Row, measured_rows, published_rows
from labelspace.evaluate.bench.similarity import Similarities
from labelspace.evaluate.bench.statistics import kendall_tau
from labelspace.evaluate.drawing import drawing, files_of, write_figure
from labelspace.evaluate.palette import FEW, MARKERS

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

COLOURS = dict(zip(FAMILIES_OF_MODELS, (FEW[7], FEW[0], FEW[2], FEW[1], FEW[3]), strict=True))
SIGNS = dict(zip(FAMILIES_OF_MODELS, MARKERS, strict=False))
CUSTOM_NLI = {
    "base, binary": ("bert-base-uncased-nli", "deberta-v3-base-nli", "modernbert-base-nli"),
    "large, binary": ("bert-large-uncased-nli", "deberta-v3-large-nli", "modernbert-large-nli"),
    "large, three-way": (
        "bert-large-uncased-nli-triplet",
        "deberta-v3-large-nli-triplet",
        "modernbert-large-nli-triplet",
    ),
}
"""The cross-encoders that the authors trained themselves, by size and loss (section 5, Figure 2a)."""


class Point(NamedTuple):
    """A model in a scatter."""

    name: str
    """What it is called."""

    family: str
    """A key of `FAMILIES_OF_MODELS`."""

    x: float
    """Across."""

    y: float
    """Up."""

    measured: bool
    """True for a model of the store, False for a published one."""


def similarity_figure(found: Similarities, path: str | Path) -> tuple[Path, ...]:
    """Draw how alike the data sets are in their words, as a heat map (Figure 1).

    Args:
        found: what `similarities` returned.
        path: a .png, .svg or .pdf file; without an extension both .png and .svg are written.

    Returns:
        The files written.

    Raises:
        MissingDependencyError: matplotlib is not installed.
        OutputError: another extension, or a file that cannot be written.

    Example:
        >>> import tempfile
        >>> from labelspace.evaluate.bench.similarity import similarities
        >>> found = similarities({"games": ["a match"], "votes": ["a vote"]})
        >>> [file.name for file in similarity_figure(found, tempfile.mkdtemp() + "/similarity")]
        ['similarity.png', 'similarity.svg']
    """
    files = files_of(path)
    count = len(found.names)
    with drawing("the heat map") as new_figure:
        side = max(3.0, 0.36 * count)
        figure = new_figure(side + 2.6, side + 1.9)
        axes = figure.add_subplot()
        # The diagonal is 1 by definition and would leave no shades for the rest.
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


def nli_size_figure(path: str | Path, *, metric: str = "macro_f1") -> tuple[Path, ...]:
    """Draw the authors' NLI cross-encoders by size and loss for each kind of task (Figure 2a, published numbers).

    Points are data sets under a model, diamonds the medians.

    Args:
        path: as in `similarity_figure`.
        metric: what is drawn upwards.

    Returns:
        The files written.

    Raises:
        MissingDependencyError: matplotlib is not installed.
        OutputError: another extension, or a file that cannot be written.

    Example:
        >>> import tempfile
        >>> [file.name for file in nli_size_figure(tempfile.mkdtemp() + "/nli_size.png")]
        ['nli_size.png']
    """
    files = files_of(path)
    scores = published_scores(metric)
    with drawing("the NLI figure") as new_figure:
        figure = new_figure(7.6, 3.8)
        axes = figure.add_subplot()
        for group, (words, models) in enumerate(CUSTOM_NLI.items()):
            colour, sign = FEW[group], ("o", "s", "^")[group]
            for place, family in enumerate(FAMILIES):
                sets = [name for name, card in BTZSC.items() if card.family == family]
                values = sorted(scores[model][name] for model in models for name in sets)
                x = place + 0.26 * (group - 1)
                # Side by side in the order of their values: the same picture each time, and no random state.
                beside = x + 0.08 * np.cos(np.arange(len(values)) * 2.4)
                axes.scatter(beside, values, s=12, color=colour, marker=sign, alpha=0.55, linewidths=0)
                label = words if place == 0 else None
                axes.scatter(x, statistics.median(values), s=60, marker="D", color=colour, edgecolors="black", zorder=3)
                axes.scatter([], [], s=22, color=colour, marker=sign, label=label)
        axes.set_xticks(range(len(FAMILIES)), FAMILIES)
        axes.set_ylim(-0.03, 1.03)
        axes.set_ylabel(_words(metric))
        axes.grid(axis="y", color="#e4e4e4", linewidth=0.6)
        axes.set_axisbelow(True)
        axes.set_title("NLI cross-encoders by size and loss (published; diamonds: medians)")
        figure.legend(loc="outside right center")
        return write_figure(figure, files)


def scaling_figure(path: str | Path, records: Sequence[Record] = (), *, metric: str = "macro_f1") -> tuple[Path, ...]:
    """Draw the score against the number of parameters (Figure 2b), published models and measured ones.

    The line of a family is the least-squares line of its published models over the logarithm of their size.

    Args:
        path: as in `similarity_figure`.
        records: of the store; the mean of both is over the data sets that all measured models have.
        metric: what is drawn upwards.

    Returns:
        The files written.

    Raises:
        MissingDependencyError: matplotlib is not installed.
        OutputError: another extension, or a file that cannot be written.

    Example:
        >>> import tempfile
        >>> [file.name for file in scaling_figure(tempfile.mkdtemp() + "/scaling.png")]
        ['scaling.png']
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
        _log_axis(axes, [point.x for point in points])
        for family in FAMILIES_OF_MODELS:
            own = [point for point in points if point.family == family and not point.measured]
            # A line through sizes that hardly differ would say nothing.
            if own and max(point.x for point in own) > 2 * min(point.x for point in own):
                logs = [math.log10(point.x) for point in own]
                slope, base = np.polyfit(logs, [point.y for point in own], 1)
                ends = np.array([min(logs), max(logs)])
                axes.plot(10**ends, base + slope * ends, color=COLOURS[family], linewidth=0.9, alpha=0.6, zorder=1)
        _scatter(axes, points)
        axes.set_xlabel("parameters")
        _finish(figure, axes, metric, sets, points)
        return write_figure(figure, files)


def speed_figure(path: str | Path, records: Sequence[Record], *, metric: str = "macro_f1") -> tuple[Path, ...]:
    """Draw the score against texts per second (Figure 3a), measured models only, with the medians of each family.

    Dashed lines are the medians of all models: the best compromises lie above and right of both. A cross is the median
    of a family with two models or more.

    Args:
        path: as in `similarity_figure`.
        records: of the store, from one machine: a speed of another does not compare.
        metric: what is drawn upwards.

    Returns:
        The files written.

    Raises:
        InputError: no record of the benchmark.
        MissingDependencyError: matplotlib is not installed.
        OutputError: another extension, or a file that cannot be written.
    """
    files = files_of(path)
    sets, rows = _rows(records, metric)
    points = [
        Point(row.model, row.family, row.texts_per_second, score, True)
        for row in rows
        if not row.published and row.texts_per_second and (score := row.mean(sets)) is not None
    ]
    if not points:
        raise InputError("the store holds no measured speed on the benchmark; run `labelspace bench run` first.")
    with drawing("the speed figure") as new_figure:
        figure = new_figure(6.8, 4.4)
        axes = figure.add_subplot()
        _log_axis(axes, [point.x for point in points])
        axes.axvline(statistics.median(point.x for point in points), color="#888888", linewidth=0.7, linestyle="--")
        axes.axhline(statistics.median(point.y for point in points), color="#888888", linewidth=0.7, linestyle="--")
        _scatter(axes, points)
        for family in FAMILIES_OF_MODELS:
            own = [point for point in points if point.family == family]
            if len(own) > 1:
                x, y = (statistics.median(values) for values in ([p.x for p in own], [p.y for p in own]))
                axes.scatter(x, y, marker="+", s=160, color=COLOURS[family], linewidths=1.6, zorder=2)
        axes.set_xlabel(f"texts per second, {_machines(records)}")
        _finish(figure, axes, metric, sets, points)
        return write_figure(figure, files)


def nli_figure(path: str | Path, records: Sequence[Record] = (), *, metric: str = "macro_f1") -> tuple[Path, ...]:
    """Draw the score against AUROC on NLI pairs (Figure 3b), with Kendall's tau and Pearson's r of each family.

    Both are over the published models of a family with three models or more.

    Args:
        path: as in `similarity_figure`.
        records: of the store; models whose NLI AUROC was asked for are drawn as well. Means are over the sources that
            all of them have.
        metric: what is drawn upwards.

    Returns:
        The files written.

    Raises:
        MissingDependencyError: matplotlib is not installed.
        OutputError: another extension, or a file that cannot be written.

    Example:
        >>> import tempfile
        >>> [file.name for file in nli_figure(tempfile.mkdtemp() + "/nli.png")]
        ['nli.png']
    """
    files = files_of(path)
    sets, rows = _rows(records, metric)
    able = [row for row in rows if row.nli]
    sources = [name for name in NLI_SETS if all(name in row.nli for row in able)]
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
        _scatter(axes, points)
        axes.set_xlabel(f"AUROC on NLI pairs, mean over {len(sources)} of {len(NLI_SETS)} sources")
        _finish(figure, axes, metric, sets, points, words)
        return write_figure(figure, files)


def bench_figures(
    records: Sequence[Record],
    out: str | Path,
    *,
    data_sets: Mapping[str, Iterable[str]] | None = None,
    metric: str = "macro_f1",
) -> tuple[Path, ...]:
    """Draw every figure that there are numbers for, each as .png and .svg.

    Args:
        records: of the store; without any, what the paper published is drawn.
        out: the folder; made if it is not there.
        data_sets: texts of each data set, for the heat map; None leaves it out.
        metric: what is drawn upwards.

    Returns:
        The files written.

    Raises:
        InputError: the models of the store share no data set.
        MissingDependencyError: matplotlib is not installed.
        OutputError: the folder or a file cannot be written.
    """
    from labelspace.evaluate.bench.similarity import similarities

    out = Path(out)
    try:
        out.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise OutputError(f"{out} cannot be made ({error.strerror}); give another place.") from error
    written: list[Path] = []
    if data_sets:
        written += similarity_figure(similarities(data_sets), out / "similarity")
    written += nli_size_figure(out / "nli_by_size", metric=metric)
    written += scaling_figure(out / "scaling", records, metric=metric)
    if any(record.get("benchmark") == "btzsc" for record in records):
        written += speed_figure(out / "speed", records, metric=metric)
    return (*written, *nli_figure(out / "nli_auroc", records, metric=metric))


def _rows(records: Sequence[Record], metric: str) -> tuple[list[str], list[Row]]:
    """Return the data sets that every measured model has, and the rows, measured ones first."""
    own = [record for record in records if record.get("benchmark") == "btzsc"]
    nli = [record for record in records if record["task"] == NLI_TASK]
    measured = measured_rows(own, metric, nli)
    sets = [name for name in BTZSC if all(name in row.cells for row in measured)]
    if not sets:
        names = ", ".join(row.model for row in measured)
        raise InputError(f"the models of the store share no data set ({names}); run them on the same ones.")
    return sets, [*measured, *published_rows(published_models(), metric)]


def _scatter(axes: "Axes", points: Sequence[Point]) -> None:
    for point in sorted(points, key=lambda point: point.measured):
        colour = COLOURS.get(point.family, "#555555")
        sign = SIGNS.get(point.family, "o")
        inside = colour if point.measured else "white"
        size = 70 if point.measured else 30
        axes.scatter(
            point.x, point.y, s=size, marker=sign, facecolors=inside, edgecolors=colour, zorder=2 + point.measured
        )
        if point.measured:
            right = _is_right(axes, point)
            axes.annotate(
                _short(point.name.partition(":")[2] or point.name),
                (point.x, point.y),
                xytext=(-6 if right else 6, 5),
                textcoords="offset points",
                ha="right" if right else "left",
                fontsize=7,
                zorder=4,
                bbox={"facecolor": "white", "edgecolor": "none", "alpha": 0.7, "pad": 0.6},
            )


def _is_right(axes: "Axes", point: Point) -> bool:
    """True where a name to the right of the point would leave the picture."""
    low, high = axes.get_xlim()
    if axes.get_xscale() == "log":
        return math.log(point.x / low) > 0.6 * math.log(high / low)
    return point.x - low > 0.6 * (high - low)


def _log_axis(axes: "Axes", values: Sequence[float]) -> None:
    from matplotlib.ticker import FuncFormatter, LogLocator, NullFormatter

    axes.set_xscale("log")
    # Of one model alone there is no range; its point should lie in the middle.
    axes.set_xlim(min(values) / 2, max(values) * 2)
    wide = max(values) > 100 * min(values)
    axes.xaxis.set_major_locator(LogLocator(subs=(1.0,) if wide else (1.0, 2.0, 5.0)))
    axes.xaxis.set_major_formatter(FuncFormatter(lambda value, _: _count(value)))
    axes.xaxis.set_minor_formatter(NullFormatter())


def _count(value: float) -> str:
    for size, letter in ((1e9, "B"), (1e6, "M"), (1e3, "k")):
        if value >= size:
            return f"{value / size:g}{letter}"
    return f"{value:g}"


def _finish(
    figure: "Figure",
    axes: "Axes",
    metric: str,
    sets: Sequence[str],
    points: Sequence[Point],
    words: Mapping[str, str] | None = None,
) -> None:
    from matplotlib.lines import Line2D

    def entry(colour: str, sign: str, inside: str) -> Line2D:
        return Line2D([], [], linestyle="none", marker=sign, color=colour, markerfacecolor=inside, markersize=6)

    axes.set_ylabel(f"{_words(metric)}, mean over {len(sets)} of {len(BTZSC)} data sets")
    axes.grid(color="#e4e4e4", linewidth=0.6)
    axes.set_axisbelow(True)
    entries = []
    for family, name in FAMILIES_OF_MODELS.items():
        if any(point.family == family for point in points):
            more = f"\n{words[family]}" if words and family in words else ""
            entries.append((entry(COLOURS[family], SIGNS[family], COLOURS[family]), name + more))
    if len({point.measured for point in points}) == 2:
        entries.append((entry("#555555", "o", "white"), "published"))
        entries.append((entry("#555555", "o", "#555555"), "measured"))
    if entries:
        handles, names = zip(*entries, strict=True)
        figure.legend(handles, names, loc="outside right center")


def _machines(records: Sequence[Record]) -> str:
    hardware = {
        record["provenance"]["hardware"].get("accelerator") or record["provenance"]["hardware"].get("processor")
        for record in records
        if record.get("benchmark") == "btzsc" and "hardware" in record.get("provenance", {})
    }
    if len(hardware) == 1:
        return f"on {_short(str(hardware.pop()), 48)}"
    return "on different machines: not to be compared" if hardware else "measured here"


def _words(metric: str) -> str:
    return {"macro_f1": "macro-F1"}.get(metric, metric.replace("_", " "))


def _short(name: str, most: int = 36) -> str:
    return name if len(name) <= most else name[: most - 1] + "…"
