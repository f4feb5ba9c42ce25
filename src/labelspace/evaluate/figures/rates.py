"""Uniformity against macro-F1 over learning rates: is the rule that chooses the rate right here?"""

import math
import warnings
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple, final

import numpy as np

from labelspace.classify import BiEncoderClassifier, DescriptionClassifier
from labelspace.classify.arguments import own_encoder
from labelspace.config import SearchConfig
from labelspace.corpus import as_documents, as_targets
from labelspace.errors import InputError, LabelSpaceWarning, TrainingError
from labelspace.evaluate.bench.statistics import regression
from labelspace.evaluate.drawing import drawing, files_of, write_figure
from labelspace.evaluate.evaluation import evaluate
from labelspace.evaluate.figures.panels import progress_colours, rate_words, short
from labelspace.evaluate.figures.retraining import LearnsFromDescriptions, pool_of, retrainable
from labelspace.evaluate.naming import name_points
from labelspace.progress import Progress, progress_bar

if TYPE_CHECKING:
    from matplotlib.axes import Axes

COLUMNS = 4
"""Of a page of panels that have no rows and columns of their own."""


class RatePoint(NamedTuple):
    """One run: what a learning rate does to the space, and how good the classifier is then."""

    learning_rate: float
    """The rate of the run."""

    uniformity: float
    """Of the pool after it; lower is more uniform. Infinite where the loss was not finite."""

    score: float
    """Macro-F1, 0 to 1; NaN where the loss was not finite."""

    chosen: bool
    """True for the rate of lowest uniformity, which the rule of section 3.1 takes."""


LEAST_RANGE = 0.05
"""Of uniformity across, so that points that hardly differ lie near one another."""

Panel = Sequence[RatePoint]


def rate_points(
    model: BiEncoderClassifier,
    pool: Any,
    X: Any,
    y: Any,
    *,
    rates: Sequence[float] | None = None,
    steps: int | None = None,
    seed: int = 0,
    show_progress: bool = False,
) -> tuple[RatePoint, ...]:
    """Train a model anew at each learning rate, from its untrained encoder, and measure what comes out.

    The model itself stays as it is. Labels are looked at for the score only, never for the choice.

    Args:
        model: a fitted `DescriptionClassifier`; its other parameters hold for every run.
        pool: unlabelled documents, as for `fit`: uniformity is measured on them, on the same pairs each time.
        X: [text] labelled documents. Give others than those of the pool, or say so: the paper's Figure 3 does not.
        y: [text] their labels; documents without one are left out.
        rates: the candidates; None takes those of the model's search, the paper's nine.
        steps: most updates of a run; None takes the model's `max_steps`.
        seed: of the runs and of the draw of the pool.
        show_progress: True shows a bar on a terminal, plain lines elsewhere.

    Returns:
        A point for each rate, the lowest rate first.

    Raises:
        ConfigError: a model that is not trained on descriptions, or an option that makes no sense.
        EncoderError: the untrained encoder cannot be opened.
        InputError: documents or labels that do not fit, before anything is trained.

    Example:
        >>> from labelspace import DescriptionClassifier
        >>> labels = {"sports": ["matches and teams"], "money": ["banks and prices"]}
        >>> clf = DescriptionClassifier({"labels": labels}, "tests/data/tiny-bert", learning_rate=1e-4, max_steps=2)
        >>> points = rate_points(clf.fit(), ["a match", "a vote"], ["a team"], ["sports"], rates=[1e-3, 1e-5])
        >>> [point.learning_rate for point in points], sum(point.chosen for point in points)
        ([1e-05, 0.001], 1)

    Reference:
        "Description-only supervision", section 3.1 and Figure 3.
    """
    fitted = retrainable(model, "a comparison of learning rates")
    candidates = (fitted.search or SearchConfig()).rates if rates is None else rates
    candidates = sorted(set(SearchConfig(rates=tuple(candidates)).rates))
    documents = _labelled(fitted, X, y)
    drawn = pool_of(fitted, pool, seed=seed, what="a comparison of learning rates")
    given = {name: value for name, value in fitted.get_params(deep=False).items() if name not in ("labels", "encoder")}
    given |= {"seed": seed, "verbose": False} | ({} if steps is None else {"max_steps": steps})
    DescriptionClassifier(fitted.label_space_, **given).training_config()  # refuses before anything is opened
    encoder = own_encoder(fitted.encoder)
    found: list[RatePoint] = []
    with progress_bar("retraining", show=show_progress) as report:
        steps_told = _AllSteps(report, len(candidates), given["max_steps"])
        for number, rate in enumerate(candidates):
            steps_told.next_run(number, f"rate {rate_words(rate)}")
            changed = {"learning_rate": rate, "callbacks": [steps_told]}
            one = DescriptionClassifier(fitted.label_space_, encoder, **given | changed)
            found.append(_point(one, drawn, documents, y))
        steps_told.finish()
    best = min(found, key=lambda point: point.uniformity)
    return tuple(point._replace(chosen=point is best and math.isfinite(best.uniformity)) for point in found)


def rates_figure(
    points: Panel | Mapping[str, Panel] | Mapping[tuple[str, str], Panel], path: str | Path
) -> tuple[Path, ...]:
    """Draw macro-F1 over uniformity, a dot for each learning rate, with the least-squares line and Pearson's r.

    A line that falls to the right says that a lower uniformity goes with a better score, as the rule that chooses the
    learning rate supposes. The band holds the mean with 95 % confidence; the most uniform is a star.

    Args:
        points: of one model; or several panels by name; or by (encoder, data set), which gives a row for each encoder
            and a column for each data set.
        path: a .png, .svg or .pdf file; without an extension both .png and .svg are written.

    Returns:
        The files written.

    Raises:
        MissingDependencyError: matplotlib is not installed.
        InputError: no panel, or one without a finite point.
        OutputError: another extension, or a file that cannot be written.

    Example:
        >>> import tempfile
        >>> points = [RatePoint(1e-5, -2.9, 0.81, True), RatePoint(1e-4, -2.1, 0.7, False)]
        >>> with tempfile.TemporaryDirectory() as folder:
        ...     [file.name for file in rates_figure(points, f"{folder}/rates")]
        ['rates.png', 'rates.svg']

    Reference:
        "Description-only supervision", Figure 3.
    """
    files = files_of(path)
    panels: dict[Any, Panel] = dict(points) if isinstance(points, Mapping) else {"": points}
    places, rows, columns = _places(list(panels))
    kept = {name: _finite(name, panel) for name, panel in panels.items()}
    with drawing("the figure of learning rates") as new_figure:
        from matplotlib.cm import ScalarMappable
        from matplotlib.colors import LogNorm
        from matplotlib.ticker import FuncFormatter, NullFormatter, NullLocator

        one = len(panels) == 1
        figure = new_figure(6.2, 4.6) if one else new_figure(2.5 * columns + 1.3, 2.4 * rows + 0.8)
        rates = sorted({point.learning_rate for panel in kept.values() for point in panel})
        norm = LogNorm(rates[0] / 1.001, rates[-1] * 1.001)
        colours = ScalarMappable(norm, progress_colours())
        grid = figure.subplots(rows, columns, squeeze=False)
        for name, panel in kept.items():
            row, column = places[name]
            axes = grid[row, column]
            _draw_panel(axes, panel, colours, large=one)
            left_out = len(panels[name]) - len(panel)
            words = [
                _heading(name, row, one=one),
                f"{_pearson(panel)}, {len(panel)} learning rates" if one else _pearson(panel),
            ]
            words.append(f"{left_out} without a finite loss left out" if left_out else "")
            axes.set_title("\n".join(filter(None, words)), fontsize=10 if one else 8.5)
            first = min(other for line, other in places.values() if line == row)  # an encoder may lack a data set
            if isinstance(name, tuple) and column == first and not one:
                axes.set_ylabel(short(name[0], 34), fontsize=8.5)
        for axes in (grid[place] for place in np.ndindex(rows, columns) if place not in places.values()):
            axes.set_axis_off()
        across = "uniformity of the pool (further left: better spread)"
        if not one:
            figure.supxlabel(across, fontsize=9)
            figure.supylabel("macro-F1", fontsize=9)
            bar = figure.colorbar(colours, ax=grid.ravel().tolist(), shrink=max(0.4, 1 / rows), aspect=25)
            bar.set_label("learning rate (star: most uniform)")
            bar.set_ticks(rates)
            bar.ax.yaxis.set_minor_locator(NullLocator())
            bar.ax.yaxis.set_minor_formatter(NullFormatter())
            bar.ax.yaxis.set_major_formatter(FuncFormatter(lambda rate, _: rate_words(rate)))
        else:
            (panel,) = kept.values()
            grid[0, 0].set_xlabel(across)
            grid[0, 0].set_ylabel("macro-F1")
            if grid[0, 0].get_legend_handles_labels()[0]:
                figure.legend(loc="outside lower center", ncols=2)
            ordered = sorted(panel, key=lambda point: not point.chosen)
            named = [
                f"{rate_words(point.learning_rate)}{' (most uniform)' if point.chosen else ''}" for point in ordered
            ]
            places_of_points = np.array([(point.uniformity, point.score) for point in ordered])
            name_points(grid[0, 0], places_of_points, named)
        return write_figure(figure, files)


@final
class _AllSteps:
    """Told the steps of one run after another, tells those of all."""

    def __init__(self, report: Progress, runs: int, steps: int) -> None:
        self._report, self._steps, self._total = report, steps, runs * steps
        self._done = self._before = 0
        self._what = ""

    def next_run(self, number: int, what: str) -> None:
        """Go on with another run; one that stopped early counts whole."""
        self._before, self._what = number * self._steps, what

    def __call__(self, step: int, values: dict[str, float]) -> None:
        if "loss" in values:  # what comes after the last step is no step
            self._done = self._before + step
            self._report(self._done, self._total, f"{self._what}, loss {values['loss']:.4f}")

    def finish(self) -> None:
        """Tell the end, where the last run has not told it."""
        if self._done < self._total:
            self._report(self._total, self._total, self._what)


def _labelled(model: LearnsFromDescriptions, X: Any, y: Any) -> list[str]:
    """Refuse documents and labels that would be refused after the first run."""
    documents = as_documents(X)
    if y is None:
        raise InputError("y is None, and a comparison of learning rates scores by labels; give one for each document.")
    targets = as_targets(y, model.label_space_.names, n_documents=len(documents))
    if all(target < 0 for target in targets):
        raise InputError(f"y has no label for any of the {len(targets)} documents; give labelled ones to compare with.")
    return documents


def _point(model: DescriptionClassifier, pool: Any, documents: list[str], y: Any) -> RatePoint:
    rate = float(model.learning_rate)
    try:
        with warnings.catch_warnings():
            # A rate that is too high is part of the question, and an interrupt ends it all.
            warnings.filterwarnings("ignore", "the documents have moved together", LabelSpaceWarning)
            warnings.filterwarnings("ignore", "training was interrupted", LabelSpaceWarning)
            result = model.fit(pool).fit_result_
    except TrainingError:
        return RatePoint(rate, math.inf, math.nan, False)
    if result.curve.stop_reason == "interrupted" or result.uniformity_after is None:
        raise KeyboardInterrupt
    score = evaluate(model, documents, y, baselines=False).metrics.macro_f1
    return RatePoint(rate, result.uniformity_after, score, False)


def _places(names: list[Any]) -> tuple[dict[Any, tuple[int, int]], int, int]:
    """Return row and column of each panel, and how many of them there are."""
    if not names:
        raise InputError("there is no panel to draw; give points.")
    if all(isinstance(name, tuple) for name in names):
        down = list(dict.fromkeys(encoder for encoder, _ in names))
        across = list(dict.fromkeys(data_set for _, data_set in names))
        places = {name: (down.index(name[0]), across.index(name[1])) for name in names}
        return places, len(down), len(across)
    columns = min(COLUMNS, len(names))
    places = {name: divmod(number, columns) for number, name in enumerate(names)}
    return places, math.ceil(len(names) / columns), columns


def _finite(name: Any, panel: Panel) -> list[RatePoint]:
    kept = [point for point in panel if math.isfinite(point.uniformity) and math.isfinite(point.score)]
    if not kept:
        where = f" of {name!r}" if name else ""
        raise InputError(f"no point{where} has a finite uniformity and score. Got {len(panel)}; try lower rates.")
    return kept


def _heading(name: Any, row: int, *, one: bool) -> str:
    """Return what stands above a panel: of rows and columns the data set, above the first row only."""
    if isinstance(name, tuple):
        return short(", ".join(name), 70) if one else short(name[1], 34) if row == 0 else ""
    return short(name, 70 if one else 34)


def _pearson(panel: Panel) -> str:
    from scipy.stats import pearsonr

    across, up = [point.uniformity for point in panel], [point.score for point in panel]
    if len(panel) < 3 or len(set(across)) < 2 or len(set(up)) < 2:
        return "no r: too few points"
    found: Any = pearsonr(across, up)
    return f"Pearson's r = {found.statistic:.2f}"


def _draw_panel(axes: "Axes", panel: Panel, colours: Any, *, large: bool) -> None:
    across = np.array([point.uniformity for point in panel])
    up = np.array([point.score for point in panel])
    margin = 0.08 * max(float(np.ptp(across)), LEAST_RANGE)
    if len(set(across.tolist())) > 1:
        at = np.linspace(across.min() - margin, across.max() + margin, 60)
        line = regression(across, up, at)
        axes.plot(at, line.at, color="#666666", linewidth=1.0, linestyle="--", zorder=1, label="least squares")
        if line.half_width is not None:
            low, high = line.at - line.half_width, line.at + line.half_width
            axes.fill_between(at, low, high, color="#e0e0e0", linewidth=0, zorder=0.4, label="its 95 % interval")
    for point in panel:
        axes.scatter(
            point.uniformity,
            point.score,
            s=(150 if large else 90) if point.chosen else (46 if large else 26),
            marker="*" if point.chosen else "o",
            color=colours.to_rgba(point.learning_rate),
            edgecolors="black",
            linewidths=0.7 if point.chosen else 0.4,
            zorder=3 if point.chosen else 2,
        )
    # The band may be far wider than the points; these decide what is seen.
    room = max(0.25 * float(np.ptp(up)), 0.01)
    axes.set_ylim(up.min() - room, up.max() + room)
    axes.set_xlim(across.min() - margin, across.max() + margin)
    axes.ticklabel_format(useOffset=False)
    axes.locator_params(nbins=7 if large else 4)
    axes.grid(color="#ececec", linewidth=0.5)
    axes.set_axisbelow(True)
