"""Figures: the confusion matrix, and the map of documents and labels before and after training.

Everything is drawn on a `matplotlib.figure.Figure`, never through pyplot, so that no figure of the caller is touched;
one style holds for all; what is told by colour is told by lightness, marker or name as well, so that it survives a
grey printer; and the same input gives the same bytes.
"""

import warnings
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray
from sklearn.utils.validation import check_is_fitted

from labelspace.checks import check_choice, check_number
from labelspace.classify import BiEncoderClassifier, ZeroShotClassifier
from labelspace.classify.anchors import LabelVectors, encode_labels
from labelspace.corpus import as_documents, as_targets
from labelspace.encoders import Encoder
from labelspace.errors import EncoderError, InputError, LabelSpaceWarning
from labelspace.evaluate.drawing import drawing, files_of, write_figure
from labelspace.evaluate.evaluation import Evaluation, untrained_encoder
from labelspace.evaluate.metrics import NONE_OF_THESE
from labelspace.evaluate.palette import MARKERS, label_colours
from labelspace.geometry import project
from labelspace.geometry.projection import import_umap, turned_like
from labelspace.seeds import child_seed

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

METHODS = ("umap", "pca", "tsne")
MOST_INCHES = 40.0
LEGEND_LABELS = 20
"""With more labels the legend would be longer than the map; then the largest classes are named on the map."""

NAMED_STARS = 20
NO_LABEL = "#b8b8b8"


def confusion_figure(evaluation: Evaluation, path: str | Path) -> tuple[Path, ...]:
    """Draw the confusion matrix of an evaluation.

    Darkness is the share of the true label's documents, on a square-root scale, so that rare confusions show; the
    numbers are documents. The column "none of these" is there if a document was left without a label.

    Args:
        evaluation: what `evaluate` returned.
        path: a .png, .svg or .pdf file; without an extension both .png and .svg are written.

    Returns:
        The files written.

    Raises:
        MissingDependencyError: matplotlib is not installed.
        OutputError: another extension, or a file that cannot be written.

    Example:
        >>> import tempfile
        >>> from labelspace import ZeroShotClassifier
        >>> from labelspace.evaluate import evaluate
        >>> clf = ZeroShotClassifier(["sports", "politics"], encoder="tests/data/tiny-bert").fit()
        >>> found = evaluate(clf, ["the match", "the vote"], ["sports", "politics"], baselines=False)
        >>> [file.name for file in confusion_figure(found, tempfile.mkdtemp() + "/confusion")]
        ['confusion.png', 'confusion.svg']
    """
    files = files_of(path)
    counts = evaluation.confusion if evaluation.confusion[:, -1].any() else evaluation.confusion[:, :-1]
    columns = [*evaluation.labels, NONE_OF_THESE][: counts.shape[1]]
    longest = max(map(len, columns))
    with drawing("the confusion matrix") as new_figure:
        # Inches of a cell: room for four digits where there are few, for two where there are many.
        cell = 0.62 if len(columns) <= 12 else 0.36 if len(columns) <= 30 else 0.24
        font = 9.0 if len(columns) <= 30 else 6.5
        margin = 0.9 + min(longest, 60) * font * 0.6 / 72
        size = max(3.2, cell * len(columns))
        inches = min(MOST_INCHES, size + margin)
        font *= min(1.0, inches / (size + margin))
        figure = new_figure(inches + 0.4, inches)
        axes = figure.add_subplot()
        _draw_confusion(axes, counts, evaluation.labels, font)
        metrics = evaluation.metrics
        figure.suptitle(
            f"{_short(evaluation.space, 40)}, {evaluation.model}\n{metrics.documents:,} documents, "
            f"macro-F1 {metrics.macro_f1:.3f}, accuracy {metrics.accuracy:.3f}",
            fontsize=9 if len(columns) <= 12 else 12 if len(columns) <= 30 else 18,
        )
        return write_figure(figure, files)


def map_figure(
    model: BiEncoderClassifier,
    X: Any,
    path: str | Path,
    *,
    y: Any = None,
    method: str = "umap",
    before: bool = True,
    seed: int = 0,
    max_documents: int = 2000,
) -> tuple[Path, ...]:
    """Draw where documents, verbalizers and descriptions lie: left by the untrained encoder, right by the trained one.

    Documents are dots, verbalizers stars, descriptions triangles, each in the colour of its label; up to eight labels
    differ in the form of the dots as well. The right map is turned so that its points lie near those of the left one.

    Args:
        model: a fitted classifier. Of a `ZeroShotClassifier` there is one map, as before is after.
        X: [text] documents.
        path: a .png, .svg or .pdf file; without an extension both .png and .svg are written.
        y: [text] label names, which colour the documents, missing ones in grey; None colours by what `model` predicts.
        method: `"umap"` (needs the package umap-learn), `"pca"` or `"tsne"`.
        before: False leaves out the untrained encoder. It is left out with a warning if it cannot be opened.
        seed: of the map and of the draw of documents.
        max_documents: at most so many are drawn, at random.

    Returns:
        The files written.

    Raises:
        MissingDependencyError: matplotlib or umap-learn is not installed.
        ConfigError: an option makes no sense.
        InputError: no document, a document that is none, or `y` does not fit.
        OutputError: another extension, or a file that cannot be written.

    Example:
        >>> import tempfile
        >>> from labelspace import ZeroShotClassifier
        >>> clf = ZeroShotClassifier(["sports", "politics"], encoder="tests/data/tiny-bert").fit()
        >>> path = tempfile.mkdtemp() + "/map.png"
        >>> [file.name for file in map_figure(clf, ["the match", "a vote"], path, method="pca")]
        ['map.png']

    Reference:
        "Description-only supervision", Figure 1.
    """
    check_is_fitted(model)
    check_choice("method", method, METHODS)
    check_number("seed", seed, whole=True)
    check_number("max_documents", max_documents, least=1, whole=True)
    files = files_of(path)
    with drawing("the map") as new_figure:
        if method == "umap":
            import_umap()  # not only after the documents are encoded
        documents, own = _documents(model, X, y, child_seed(seed, "map documents"), max_documents)
        after = model.encoder_.encode(documents)
        if own is None:
            own = _predicted(model, documents)
        titles, maps = [], []
        untrained = _untrained(model) if before else None
        if untrained is not None:
            vectors = encode_labels(untrained, model.label_space_)
            titles.append("before: the untrained encoder")
            maps.append(_project(untrained.encode(documents), vectors, model, method, seed))
        titles.append(f"after: {type(model).__name__}" if untrained is not None else type(model).__name__)
        maps.append(_project(after, model.label_vectors_, model, method, seed))
        if len(maps) == 2:
            maps[1] = turned_like(maps[1], maps[0])
        legend = len(model.label_space_) <= LEGEND_LABELS
        side = 5.2 if legend else 8.5
        figure = new_figure(side * len(maps) + (1.9 if legend else 0.1), side + 0.4)
        for column, (title, points) in enumerate(zip(titles, maps, strict=True), 1):
            axes = figure.add_subplot(1, len(maps), column)
            _draw_map(axes, points, own, model, side)
            axes.set_title(f"{title} ({method.upper() if method != 'tsne' else 't-SNE'})")
        _draw_legend(figure, model.label_space_.names if legend else (), bool((own < 0).any()), y is not None)
        return write_figure(figure, files)


def _draw_confusion(axes: "Axes", counts: NDArray[np.int64], rows: Sequence[str], font: float) -> None:
    from matplotlib.colors import PowerNorm

    shares = counts / np.maximum(counts.sum(axis=1, keepdims=True), 1)
    axes.imshow(shares, cmap="Blues", norm=PowerNorm(0.5, vmin=0, vmax=1), interpolation="nearest")
    slanted = counts.shape[1] > 12 or max(map(len, rows)) > 10
    below = [_short(name, 60) for name in rows]
    if counts.shape[1] > len(rows):
        below.append(NONE_OF_THESE if slanted else NONE_OF_THESE.replace("of ", "of\n"))
    axes.set_xticks(range(counts.shape[1]), below, fontsize=font)
    axes.set_yticks(range(len(rows)), [_short(name, 60) for name in rows], fontsize=font)
    axes.tick_params(axis="x", rotation=90 if slanted else 0, length=2)
    axes.tick_params(axis="y", length=2)
    axes.set_xlabel("predicted", fontsize=font + 1)
    axes.set_ylabel("true", fontsize=font + 1)
    # Lines between the cells, a little stronger around the whole and before "none of these".
    axes.set_xticks(np.arange(counts.shape[1] - 1) + 0.5, minor=True)
    axes.set_yticks(np.arange(len(rows) - 1) + 0.5, minor=True)
    axes.grid(which="minor", color="#d5d5d5", linewidth=0.4)
    axes.tick_params(which="minor", length=0)
    if counts.shape[1] > len(rows):
        axes.axvline(len(rows) - 0.5, color="#555555", linewidth=0.8)
    smaller = font if counts.shape[1] <= 12 else font * 0.85
    for row, column in zip(*np.nonzero(counts), strict=True):
        number = f"{counts[row, column]}"
        axes.text(
            column,
            row,
            number,
            ha="center",
            va="center",
            fontsize=smaller * min(1.0, 3.5 / len(number)) if counts.shape[1] > 12 else smaller,
            color="white" if shares[row, column] > 0.35 else "#111111",
        )


def _draw_map(
    axes: "Axes", points: NDArray[np.float64], own: NDArray[np.int64], model: BiEncoderClassifier, side: float
) -> None:
    space = model.label_space_
    colours = label_colours(len(space))
    documents, stars, triangles = np.split(points, [len(own), len(own) + len(space)])
    # A dot for each document, smaller in a crowd.
    size = float(np.clip(6000 / len(own), 6, 22))
    for column in range(-1, len(space)):
        dots = documents[own == column]
        marker = MARKERS[column % len(MARKERS)] if len(space) <= len(MARKERS) and column >= 0 else "o"
        colour = colours[column] if column >= 0 else NO_LABEL
        axes.scatter(*dots.T, s=size, color=colour, marker=marker, alpha=0.7, linewidths=0, zorder=1 + (column >= 0))
    begin = 0
    many = len(space) > LEGEND_LABELS
    for column, label in enumerate(space.labels):
        mine = triangles[begin : begin + len(label.descriptions)]
        begin += len(label.descriptions)
        edge = {"edgecolors": "black", "color": colours[column], "clip_on": False}
        axes.scatter(*mine.T, s=16 if many else 46, marker="^", linewidths=0.5 if many else 0.8, zorder=3, **edge)
        axes.scatter(*stars[column], s=70 if many else 260, marker="*", linewidths=0.7, zorder=4, **edge)
    counts = np.bincount(own[own >= 0], minlength=len(space))
    inch = max(float(np.ptp(points, axis=0).max()), 1e-12) * 1.12 / side
    _name_stars(axes, stars / inch, inch, np.argsort(-counts, kind="stable"), space.names, small=many)
    axes.set_xticks([])
    axes.set_yticks([])
    axes.set_aspect("equal", adjustable="datalim")
    axes.margins(0.08)


def _name_stars(
    axes: "Axes",
    stars: NDArray[np.float64],
    inch: float,
    order: NDArray[np.int64],
    names: Sequence[str],
    *,
    small: bool,
) -> None:
    """Write names above or below their stars, the largest class first, and leave out what would cover another name."""
    from matplotlib.patheffects import withStroke

    font = 8.0 if small else 9.5
    taken: list[NDArray[np.float64]] = []
    for column in map(int, order):
        name = _short(names[column], 32)
        half = np.array([0.33 * font * len(name), 0.65 * font]) / 72  # of the box of a name, in inches
        for points in (0.9 * font + 4, -0.9 * font - 4):  # above the star, or below
            centre = stars[column] + np.array([0, points / 72])
            if all((np.abs(centre - other[0]) > half + other[1]).any() for other in taken):
                break
        else:
            continue
        taken.append(np.stack([centre, half]))
        axes.text(
            float(centre[0] * inch),
            float(centre[1] * inch),
            name,
            ha="center",
            va="center",
            fontsize=font,
            fontweight="bold",
            zorder=5,
            path_effects=[withStroke(linewidth=2.2, foreground="white")],
        )
        if len(taken) == NAMED_STARS:
            break


def _draw_legend(figure: "Figure", names: Sequence[str], unlabelled: bool, true_labels: bool) -> None:
    from matplotlib.lines import Line2D

    def entry(marker: str, colour: str, size: float, edge: str = "none") -> Line2D:
        return Line2D([], [], linestyle="none", marker=marker, color=colour, markersize=size, markeredgecolor=edge)

    colours = label_colours(len(names))
    marked = len(names) <= len(MARKERS)
    entries = [(entry("*", "white", 12, "black"), "verbalizer"), (entry("^", "white", 7, "black"), "description")]
    entries.append((entry("o", "#555555", 5), "document, by true label" if true_labels else "document, as predicted"))
    if unlabelled:
        entries.append((entry("o", NO_LABEL, 5), "without a label" if true_labels else NONE_OF_THESE))
    for column, name in enumerate(names):
        # With a space before it, as matplotlib would leave out a name that begins with an underscore.
        shown = _short(f" {name}" if name.startswith("_") else name, 24)
        entries.append((entry(MARKERS[column] if marked else "o", colours[column], 7), shown))
    handles, words = zip(*entries, strict=True)
    figure.legend(
        handles, words, loc="outside right center" if names else "outside lower center", ncols=1 if names else 4
    )


def _project(
    documents: NDArray[np.float32],
    vectors: dict[str, LabelVectors],
    model: BiEncoderClassifier,
    method: str,
    seed: int,
) -> NDArray[np.float64]:
    """Put documents, verbalizers and descriptions, in this order, on one map, [point 2]."""
    names = model.label_space_.names
    labels = [vectors[name].verbalizer[None] for name in names] + [vectors[name].descriptions for name in names]
    return project(np.concatenate([documents, *labels]), method=method, seed=seed)


def _documents(
    model: BiEncoderClassifier, X: Any, y: Any, seed: int, most: int
) -> tuple[list[str], NDArray[np.int64] | None]:
    """Draw documents, in their order, and the columns of their labels."""
    documents = as_documents(X)
    if not documents:
        raise InputError("X holds no document; a map needs at least one.")
    own = None
    if y is not None:
        own = np.array(as_targets(y, model.label_space_.names, n_documents=len(documents)), dtype=np.int64)
    if len(documents) > most:
        drawn = np.sort(np.random.default_rng(seed).choice(len(documents), size=most, replace=False))
        documents, own = [documents[row] for row in drawn], None if own is None else own[drawn]
    return documents, own


def _predicted(model: BiEncoderClassifier, documents: list[str]) -> NDArray[np.int64]:
    columns = {name: column for column, name in enumerate(model.label_space_.names)}
    names: Any = model.predict(documents)
    return np.array([columns.get(name, -1) for name in names], dtype=np.int64)


def _untrained(model: BiEncoderClassifier) -> Encoder | None:
    if isinstance(model, ZeroShotClassifier):
        return None
    try:
        return untrained_encoder(model.encoder_)
    except EncoderError as error:
        warnings.warn(f"the map before training is left out: {error}", LabelSpaceWarning, stacklevel=3)
        return None


def _short(name: str, most: int) -> str:
    return name if len(name) <= most else name[: most - 1] + "…"
