"""The map of documents, labels and descriptions, before and after training."""

from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray
from sklearn.utils.validation import check_is_fitted

from labelspace.checks import check_choice, check_number
from labelspace.classify import BiEncoderClassifier
from labelspace.classify.fitted import answerer
from labelspace.evaluate.drawing import drawing, files_of, write_figure
from labelspace.evaluate.figures.panels import (
    LEGEND_LABELS,
    before_and_after,
    draw_documents,
    draw_legend,
    in_step,
    name_stars,
)
from labelspace.evaluate.figures.spaces import PanelVectors, check_drawable, star_word
from labelspace.evaluate.palette import label_colours
from labelspace.geometry import project
from labelspace.geometry.projection import import_umap, turned_like

if TYPE_CHECKING:
    from matplotlib.axes import Axes

PROJECTIONS = ("umap", "pca", "tsne")


def map_figure(
    model: BiEncoderClassifier,
    X: Any,
    path: str | Path,
    *,
    y: Any = None,
    projection: str = "umap",
    before: bool = True,
    seed: int = 0,
    max_documents: int = 2000,
) -> tuple[Path, ...]:
    """Draw a map of documents, labels and descriptions: the untrained encoder on the left, the model on the right.

    Documents are dots, verbalizers stars and descriptions triangles, each in the colour of its label. With up to eight
    labels the dots differ in their marker too. The right map is rotated to match the left one. For a `LaConClassifier`
    it shows the space of the label embeddings, which are the stars; for an `UncertaintyClassifier` that of `transform`.
    Where labels have no vector, a star is the mean of the label's documents.

    Args:
        model: a fitted classifier of texts. A `ZeroShotClassifier` has one map, because it does not train the encoder.
        X: [text] documents.
        path: a .png, .svg or .pdf file; without an extension both .png and .svg are written.
        y: [text] label names, which colour the documents, missing ones in grey; None colours by what `model` predicts.
        projection: `"umap"` (needs the package umap-learn), `"pca"` or `"tsne"`.
        before: False leaves out the untrained encoder. It is left out with a warning if it cannot be opened.
        seed: seed of the map and of the sample of documents.
        max_documents: maximum number of documents drawn; more are sampled at random.

    Returns:
        The files written.

    Raises:
        MissingDependencyError: matplotlib or umap-learn is not installed.
        ConfigError: an invalid option, or a model without text vectors.
        InputError: too few documents, an invalid document, or `y` does not fit.
        OutputError: an unknown extension, or a file that cannot be written.

    Example:
        >>> import tempfile
        >>> from labelspace import ZeroShotClassifier
        >>> clf = ZeroShotClassifier(["sports", "politics"], encoder="tests/data/tiny-bert").fit()
        >>> with tempfile.TemporaryDirectory() as folder:
        ...     [file.name for file in map_figure(clf, ["the match", "a vote"], f"{folder}/map.png", projection="pca")]
        ['map.png']

    Reference:
        "Description-only supervision", Figure 1.
    """
    check_is_fitted(model)
    model = answerer(model)
    check_choice("projection", projection, PROJECTIONS)
    check_number("seed", seed, whole=True)
    check_number("max_documents", max_documents, least=1, whole=True)
    check_drawable(model, "map")
    files = files_of(path)
    with drawing("the map") as new_figure:
        if projection == "umap":
            import_umap()  # fail before the documents are encoded
        own, panels = before_and_after(model, X, y, figure="map", before=before, seed=seed, most=max_documents, least=3)
        maps = [_project(shown, projection, seed) for shown in panels.values()]
        if len(maps) == 2:
            maps[1] = turned_like(maps[1], in_step(maps[0], len(maps[1]), maps[0].mean(axis=0)))
        legend = len(model.label_space_) <= LEGEND_LABELS
        side = 5.2 if legend else 8.5
        figure = new_figure(side * len(maps) + (1.9 if legend else 0.1), side + 0.4)
        for column, ((title, shown), points) in enumerate(zip(panels.items(), maps, strict=True), 1):
            axes = figure.add_subplot(1, len(maps), column)
            _draw_map(axes, points, shown, own, model, side)
            axes.set_title(f"{title} ({projection.upper() if projection != 'tsne' else 't-SNE'})")
        names = model.label_space_.names if legend else ()
        signs = [("*", star_word(model))]
        if any(len(shown.triangles.columns) for shown in panels.values()):
            signs.append(("^", "description"))
        unlabelled = bool((own < 0).any())
        draw_legend(figure, names, unlabelled=unlabelled, true_labels=y is not None, signs=signs)
        return write_figure(figure, files)


def _draw_map(
    axes: "Axes",
    points: NDArray[np.float64],
    shown: PanelVectors,
    own: NDArray[np.int64],
    model: BiEncoderClassifier,
    side: float,
) -> None:
    space = model.label_space_
    colours = label_colours(len(space))
    columns = shown.stars.columns
    documents, stars, triangles = np.split(points, [len(own), len(own) + len(columns)])
    size = float(np.clip(6000 / len(own), 6, 22))
    draw_documents(axes, documents, own, len(space), size=size)
    many = len(space) > LEGEND_LABELS
    for column in range(len(space)):
        edge = {"edgecolors": "black", "color": colours[column], "clip_on": False}
        mine = triangles[shown.triangles.columns == column]
        axes.scatter(*mine.T, s=16 if many else 46, marker="^", linewidths=0.5 if many else 0.8, zorder=3, **edge)
        mine = stars[columns == column]
        axes.scatter(*mine.T, s=70 if many else 260, marker="*", linewidths=0.7, zorder=4, **edge)
    counts = np.bincount(own[own >= 0], minlength=len(space))[columns]
    inch = max(float(np.ptp(points, axis=0).max()), 1e-12) * 1.12 / side
    names = [space.names[column] for column in columns]
    name_stars(axes, stars / inch, inch, np.argsort(-counts, kind="stable"), names, small=many)
    axes.set_xticks([])
    axes.set_yticks([])
    axes.set_aspect("equal", adjustable="datalim")
    axes.margins(0.08)


def _project(shown: PanelVectors, projection: str, seed: int) -> NDArray[np.float64]:
    """Project documents, stars and triangles, in this order, onto one map, [point 2]."""
    groups = [shown.documents, shown.stars.vectors, shown.triangles.vectors]
    return project(np.concatenate(groups), projection=projection, seed=seed)
