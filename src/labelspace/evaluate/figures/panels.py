"""Parts shared by the maps: the sample of documents, their colours, names, the legend."""

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from labelspace.classify import BiEncoderClassifier
from labelspace.classify.by_anchors import Anchored
from labelspace.corpus import as_documents, as_targets
from labelspace.encoders import Encoder
from labelspace.errors import EncoderError, InputError, warn
from labelspace.evaluate.baselines import untrained_encoder
from labelspace.evaluate.drawing import short
from labelspace.evaluate.figures.spaces import PanelVectors, check_points, shown_after, shown_before
from labelspace.evaluate.metrics import NONE_OF_THESE
from labelspace.evaluate.palette import MARKERS, label_colours
from labelspace.seeds import child_seed
from labelspace.text_table import width_of

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

MOST_INCHES = 40.0
LEGEND_LABELS = 20
"""Maximum number of labels in the legend; with more, the largest classes are named on the map instead."""

NAMED_STARS = 20
NO_LABEL = "#b8b8b8"


def before_and_after(
    model: BiEncoderClassifier, X: Any, y: Any, *, figure: str, before: bool, seed: int, most: int, least: int
) -> tuple[NDArray[np.int64], dict[str, PanelVectors]]:
    """Return [text] the column of each drawn document's label, -1 for none, and what each panel shows, by its title.

    All figures of one seed show the same documents.

    Args:
        model: a fitted classifier.
        X: [text] documents.
        y: [text] label names; None: those that the model predicts.
        figure: `"map"` or `"sphere"`.
        before: whether the untrained encoder has a panel too, if it can be opened.
        seed: seed of the sample of documents.
        most: maximum number of documents.
        least: minimum number of points, documents and labels together.

    Raises:
        InputError: too few documents, an invalid document, or `y` does not fit.
    """
    documents = as_documents(X)
    if not documents:
        raise InputError(f"X holds no document; a {figure} needs at least one.")
    own = None
    if y is not None:
        own = np.array(as_targets(y, model.label_space_.names, n_documents=len(documents)), dtype=np.int64)
    if len(documents) > most:
        generator = np.random.default_rng(child_seed(seed, "map documents"))
        drawn = np.sort(generator.choice(len(documents), size=most, replace=False))
        documents, own = [documents[row] for row in drawn], None if own is None else own[drawn]
    if own is None:
        own = model.answers(documents).columns.astype(np.int64)
    panels, title = dict[str, PanelVectors](), type(model).__name__
    untrained = _untrained_of(model, f"the {figure}") if before else None
    if untrained is not None:
        panels["before: the untrained encoder"] = shown_before(model, untrained, documents, own)
        title = f"after: {title}"
    panels[title] = shown_after(model, documents, own)
    check_points(panels.values(), least, f"a {figure}")
    return own, panels


def _untrained_of(model: BiEncoderClassifier, what: str) -> Encoder | None:
    """Open the encoder as it was before training; None if before equals after, or, with a warning, if it is missing."""
    if not model.trains_encoder:
        return None if isinstance(model, Anchored) else model.encoder_  # by anchors, before equals after
    try:
        return untrained_encoder(model.encoder_)
    except EncoderError as error:
        warn(f"{what} before training is left out: {error}")
        return None


def in_step(points: NDArray[np.float64], count: int, middle: NDArray[np.float64]) -> NDArray[np.float64]:
    """Pad the left panel's points to `count` with its middle, for `turned_like`.

    Points at the middle have no influence on the rotation.
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
    """Draw a dot for each document, in the colour of its label; documents without a label are grey and below.

    Args:
        axes: the axes.
        points: [text 2].
        own: [text] column of each document's label, -1 for none.
        labels: number of labels.
        size: area of a dot, in square points.
        alpha: opacity, from 0 to 1.
        zorder: drawing order; higher is drawn on top.
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
    """Write names above or below their stars, skipping names that would cover another.

    Args:
        axes: the axes.
        stars: [label 2], in inches.
        inch: data units per inch.
        order: [label] columns, the most important first.
        names: names of the labels.
        small: True uses a smaller font, for many labels.
        pale: [label] True for names in grey.
        edge: horizontal distance from the middle, in inches, that no name may exceed.
    """
    from matplotlib.patheffects import withStroke

    font = 8.0 if small else 9.5
    taken: list[NDArray[np.float64]] = []
    for column in map(int, order):
        name = short(names[column], 32)
        half = np.array([0.33 * font * width_of(name), 0.65 * font]) / 72  # of the box of a name, in inches
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
    signs: Sequence[tuple[str, str]],
    far: str = "",
) -> None:
    """Draw the legend beside the panels, or below them if it has no label names.

    Args:
        figure: the figure.
        names: names of the labels; empty if the panel itself names them.
        unlabelled: True if there are grey documents.
        true_labels: True if documents are coloured by their true label.
        signs: marker and meaning of everything drawn besides documents.
        far: meaning of pale signs; empty: there are none.
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
        # The leading space keeps a name with an underscore in the legend: matplotlib drops such labels.
        shown = short(f" {name}" if name.startswith("_") else name, 24)
        entries.append((entry(MARKERS[column] if marked else "o", colours[column], 7), shown))
    handles, words = zip(*entries, strict=True)
    figure.legend(
        handles, words, loc="outside right center" if names else "outside lower center", ncols=1 if names else 4
    )
