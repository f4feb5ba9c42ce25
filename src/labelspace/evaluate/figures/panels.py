"""What several figures share: which documents are drawn and in which colours, the legend."""

import warnings
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from labelspace.classify import BiEncoderClassifier
from labelspace.classify.by_anchors import Anchored
from labelspace.corpus import as_documents, as_targets
from labelspace.encoders import Encoder
from labelspace.errors import EncoderError, InputError, LabelSpaceWarning
from labelspace.evaluate.drawing import short
from labelspace.evaluate.evaluation import untrained_encoder
from labelspace.evaluate.metrics import NONE_OF_THESE
from labelspace.evaluate.palette import MARKERS, label_colours
from labelspace.seeds import child_seed

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

MOST_INCHES = 40.0
LEGEND_LABELS = 20
"""With more labels the legend would be longer than the map; then the largest classes are named on the map."""

BEFORE = "before: the untrained encoder"
NAMED_STARS = 20
NO_LABEL = "#b8b8b8"


def drawn_documents(
    model: BiEncoderClassifier, X: Any, y: Any, *, seed: int, most: int, what: str
) -> tuple[list[str], NDArray[np.int64] | None]:
    """Draw documents, in their order, and the columns of their labels.

    Every figure of one seed shows the same documents.

    Args:
        model: a fitted classifier.
        X: [text] documents.
        y: [text] label names, or None.
        seed: of the figure.
        most: at most so many are drawn.
        what: the figure, for the error.

    Raises:
        InputError: no document, a document that is none, or `y` does not fit.
    """
    documents = as_documents(X)
    if not documents:
        raise InputError(f"X holds no document; {what} needs at least one.")
    own = None
    if y is not None:
        own = np.array(as_targets(y, model.label_space_.names, n_documents=len(documents)), dtype=np.int64)
    if len(documents) > most:
        generator = np.random.default_rng(child_seed(seed, "map documents"))
        drawn = np.sort(generator.choice(len(documents), size=most, replace=False))
        documents, own = [documents[row] for row in drawn], None if own is None else own[drawn]
    return documents, own


def predicted_columns(model: BiEncoderClassifier, documents: list[str]) -> NDArray[np.int64]:
    """Return the column of the label that the model gives each document, -1 for none, [text]."""
    return model.answers(documents).columns.astype(np.int64)


def untrained_of(model: BiEncoderClassifier, what: str) -> Encoder | None:
    """Open the encoder as it was before training; None, with a warning where it should be there, if there is none."""
    if not model.trains_encoder:
        return None if isinstance(model, Anchored) else model.encoder_  # by anchors before is after
    try:
        return untrained_encoder(model.encoder_)
    except EncoderError as error:
        warnings.warn(f"{what} before training is left out: {error}", LabelSpaceWarning, stacklevel=3)
        return None


def after_title(model: BiEncoderClassifier, untrained: Encoder | None) -> str:
    """Return the title of the panel that shows the model."""
    return f"after: {type(model).__name__}" if untrained is not None else type(model).__name__


def in_step(points: NDArray[np.float64], count: int, middle: NDArray[np.float64]) -> NDArray[np.float64]:
    """Fill points up to so many, for `turned_like`: what the panel before has no place for goes to the middle.

    There it has no say in the turn.
    """
    return np.concatenate([points, np.tile(middle, (count - len(points), 1))])


def draw_documents(
    axes: "Axes",
    points: NDArray[np.float64],
    own: NDArray[np.int64],
    labels: int,
    *,
    size: float,
    alpha: float = 0.7,
    zorder: float = 1,
) -> None:
    """Put a dot for each document into the axes, in the colour of its label; grey ones below.

    Args:
        axes: where to.
        points: [text 2].
        own: [text] column of each document's label, -1 for none.
        labels: how many there are.
        size: of a dot, in square points.
        alpha: 1 covers what is below, 0 is not to be seen.
        zorder: what is drawn over what.
    """
    colours = label_colours(labels)
    for column in range(-1, labels):
        dots = points[own == column]
        marker = MARKERS[column % len(MARKERS)] if labels <= len(MARKERS) and column >= 0 else "o"
        colour = colours[column] if column >= 0 else NO_LABEL
        order = zorder + 0.5 * (column >= 0)
        axes.scatter(*dots.T, s=size, color=colour, marker=marker, alpha=alpha, linewidths=0, zorder=order)


def name_stars(
    axes: "Axes",
    stars: NDArray[np.float64],
    inch: float,
    order: NDArray[np.int64],
    names: Sequence[str],
    *,
    small: bool,
    pale: NDArray[np.bool_] | None = None,
    edge: float = np.inf,
) -> None:
    """Write names above or below their stars, the largest class first, and leave out what would cover another name.

    Args:
        axes: where to.
        stars: [label 2], in inches.
        inch: how much of the axes one is.
        order: [label] columns, the most important first.
        names: of the labels.
        small: True for a crowd.
        pale: [label] True for names in grey.
        edge: inches from the middle beyond which no name may reach to the left or right.
    """
    from matplotlib.patheffects import withStroke

    font = 8.0 if small else 9.5
    taken: list[NDArray[np.float64]] = []
    for column in map(int, order):
        name = short(names[column], 32)
        half = np.array([0.33 * font * len(name), 0.65 * font]) / 72  # of the box of a name, in inches
        for points in (0.9 * font + 4, -0.9 * font - 4):  # above the star, or below
            centre = stars[column] + np.array([0, points / 72])
            room = max(edge - half[0], 0.0)
            centre[0] = np.clip(centre[0], -room, room)
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
            color="#707070" if pale is not None and pale[column] else "#111111",
            zorder=6,
            path_effects=[withStroke(linewidth=2.2, foreground="white")],
        )
        if len(taken) == NAMED_STARS:
            break


def draw_legend(
    figure: "Figure",
    names: Sequence[str],
    *,
    unlabelled: bool,
    true_labels: bool,
    signs: Sequence[tuple[str, str]] = (("*", "verbalizer"), ("^", "description")),
    far: str = "",
) -> None:
    """Write the legend beside the panels, or below them where there are no names of labels.

    Args:
        figure: where to.
        names: of the labels; empty where the panel itself names them.
        unlabelled: True where there are grey documents.
        true_labels: True where documents have the colour of their true label.
        signs: marker and word of what is drawn beside documents.
        far: what pale signs mean, if there are any.
    """
    from matplotlib.lines import Line2D

    def entry(marker: str, colour: str, size: float, edge: str = "none") -> Line2D:
        return Line2D([], [], linestyle="none", marker=marker, color=colour, markersize=size, markeredgecolor=edge)

    colours = label_colours(len(names))
    marked = len(names) <= len(MARKERS)
    entries = [(entry(marker, "white", 12 if marker == "*" else 7, "black"), word) for marker, word in signs]
    entries.append((entry("o", "#555555", 5), "document, by true label" if true_labels else "document, as predicted"))
    if unlabelled:
        entries.append((entry("o", NO_LABEL, 5), "without a label" if true_labels else NONE_OF_THESE))
    if far:
        entries.append((entry("o", "#cfcfcf", 4), far))
    for column, name in enumerate(names):
        # With a space before it, as matplotlib would leave out a name that begins with an underscore.
        shown = short(f" {name}" if name.startswith("_") else name, 24)
        entries.append((entry(MARKERS[column] if marked else "o", colours[column], 7), shown))
    handles, words = zip(*entries, strict=True)
    figure.legend(
        handles, words, loc="outside right center" if names else "outside lower center", ncols=1 if names else 4
    )
