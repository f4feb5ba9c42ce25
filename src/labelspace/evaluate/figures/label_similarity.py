"""The heat map of label similarity, which shows the labels that are likely to be confused."""

from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray
from sklearn.utils.validation import check_is_fitted

from labelspace.classify import BiEncoderClassifier
from labelspace.classify.anchors import cosines
from labelspace.classify.fitted import answerer
from labelspace.evaluate.drawing import drawing, files_of, short, write_figure
from labelspace.evaluate.figures.panels import MOST_INCHES
from labelspace.evaluate.figures.spaces import check_drawable
from labelspace.labels.lint_meaning import unrelated_cosine
from labelspace.text_table import width_of

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

ORDERED_ABOVE = 12
"""More labels than this are ordered by a clustering; fewer keep the order of the label file."""

DARKEST = 0.5
"""Least place of the darkest shade between the palest one and 1, so that labels far from one another all stay pale."""

NUMBERS_UP_TO = 40
"""Maximum number of labels whose cells have room for a number."""


def label_similarity_figure(model: BiEncoderClassifier, path: str | Path) -> tuple[Path, ...]:
    """Draw the cosine between every two labels, using the label vectors that `predict` compares with.

    A dark cell marks two labels whose documents are likely to be confused. More than 12 labels are ordered by a
    hierarchical clustering (average linkage), so that near labels are neighbours.

    The palest shade is the cosine of texts that have nothing in common, for example .77 with multilingual-e5-small; of
    label embeddings it is 0.

    Args:
        model: a fitted classifier. Its `anchor` decides which vectors are compared; for a `LaConClassifier` it is the
            label embeddings.
        path: a .png, .svg or .pdf file; without an extension both .png and .svg are written.

    Returns:
        The files written.

    Raises:
        MissingDependencyError: matplotlib is not installed.
        ConfigError: an invalid `model.anchor`, or a model without label vectors.
        OutputError: an unknown extension, or a file that cannot be written.

    Example:
        >>> import tempfile
        >>> from labelspace import ZeroShotClassifier
        >>> clf = ZeroShotClassifier(["sports", "politics"], encoder="tests/data/tiny-bert").fit()
        >>> with tempfile.TemporaryDirectory() as folder:
        ...     [file.name for file in label_similarity_figure(clf, f"{folder}/labels")]
        ['labels.png', 'labels.svg']

    See also:
        bench.figures.similarity_figure: word overlap of data sets.
    """
    check_is_fitted(model)
    model = answerer(model)
    check_drawable(model, "similarity")
    files = files_of(path)
    with drawing("the heat map of labels") as new_figure:
        head: Any = model.head_  # compares with vectors of labels, says `check_drawable`
        anchors = head.label_vectors(model.label_space_)
        values = cosines(anchors, anchors).astype(np.float64)
        order = label_order(values)
        names = [short(model.label_space_.names[column], 60) for column in order]
        values = values[np.ix_(order, order)]
        count = len(names)
        cell = 0.62 if count <= ORDERED_ABOVE else 0.36 if count <= NUMBERS_UP_TO else 0.17
        font = 9.0 if count <= ORDERED_ABOVE else 8.0 if count <= NUMBERS_UP_TO else 7.0
        side = min(max(2.6, cell * count), MOST_INCHES - 8)
        figure = new_figure(side + 3, side + 3)
        axes = figure.add_subplot()
        _draw_cosines(axes, values, names, font, _palest(model))
        figure.suptitle(
            f"{short(model.label_space_.name, 40)}\n{type(model).__name__}: cosine of labels\n{head.label_word}",
            fontsize=9 if count <= ORDERED_ABOVE else 12,
        )
        _make_square(figure, axes, side)
        return write_figure(figure, files)


def label_order(values: NDArray[np.float64]) -> list[int]:
    """Return the columns ordered so that near labels are neighbours; few labels keep their order.

    Args:
        values: [label label] cosines, symmetric.

    Example:
        >>> near = np.kron(np.eye(2), np.ones((7, 7)))  # two groups of seven
        >>> mixed = np.arange(14).reshape(2, 7).T.ravel()
        >>> [int(column) % 2 for column in label_order(near[np.ix_(mixed, mixed)])]
        [0, 0, 0, 0, 0, 0, 0, 1, 1, 1, 1, 1, 1, 1]
    """
    if len(values) <= ORDERED_ABOVE:
        return list(range(len(values)))
    from scipy.cluster.hierarchy import leaves_list, linkage

    distances = np.clip(1.0 - values, 0.0, None)
    upper = distances[np.triu_indices(len(values), 1)]
    order = leaves_list(linkage(upper, method="average", optimal_ordering=True)).tolist()
    # The direction of a clustering is arbitrary; put the first label of the file into the first half.
    return order if order.index(0) < len(order) / 2 else order[::-1]


def _make_square(figure: "Figure", axes: "Axes", side: float) -> None:
    """Resize the figure so that the cells are square and names, title and colour bar fit.

    A fixed aspect ratio instead would make the layout cut off long names.
    """
    for _ in range(2):  # the colour bar grows with the figure, so once is not enough
        figure.draw_without_rendering()
        inside, whole = axes.get_window_extent(), figure.get_size_inches()
        missing = side - np.array([inside.width, inside.height]) / figure.dpi
        width, height = (whole + missing).round(2).tolist()
        figure.set_size_inches(width, height)


def _palest(model: BiEncoderClassifier) -> float:
    return max(0.0, unrelated_cosine(model.encoder_)) if model.head_.reads_descriptions else 0.0


def _draw_cosines(axes: "Axes", values: NDArray[np.float64], names: list[str], font: float, palest: float) -> None:
    import matplotlib

    count = len(names)
    itself = np.eye(count, dtype=bool)
    # Scale colours by the off-diagonal cells: the diagonal is always 1 and would use up the range.
    others = values[~itself] if count > 1 else values.ravel()
    low = min(palest, float(others.min()))
    high = max(palest + DARKEST * (1 - palest), float(others.max()))
    shades = matplotlib.colormaps["Blues"].with_extremes(bad="#f0f0f0")
    cells = np.ma.array(values, mask=itself)
    image = axes.imshow(cells, cmap=shades, vmin=low, vmax=high, interpolation="nearest", aspect="auto")
    slanted = count > ORDERED_ABOVE or max(map(width_of, names)) > 10
    axes.set_xticks(range(count), names, fontsize=font)
    axes.set_yticks(range(count), names, fontsize=font)
    axes.tick_params(axis="x", rotation=90 if slanted else 0, length=2)
    axes.tick_params(axis="y", length=2)
    if count <= NUMBERS_UP_TO:
        for row, column in zip(*np.nonzero(~itself), strict=True):
            value = float(values[row, column])
            number = f"{round(value, 2) + 0.0:.2f}"
            if count > ORDERED_ABOVE:  # drop the leading zero to save room
                number = number.replace("0.", ".", 1)
            axes.text(
                column,
                row,
                number,
                ha="center",
                va="center",
                fontsize=font if count <= ORDERED_ABOVE else 6.5,
                color="white" if value - low > 0.6 * (high - low) else "#111111",
            )
    figure = axes.get_figure()
    if figure is not None:
        bar = figure.colorbar(image, ax=axes, shrink=0.6, aspect=30, pad=0.02)
        bar.ax.tick_params(labelsize=8, length=2)
        bar.outline.set_linewidth(0.4)
