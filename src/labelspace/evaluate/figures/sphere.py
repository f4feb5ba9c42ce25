"""The sphere figure: documents and labels on the unit sphere, before and after training."""

from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray
from scipy.spatial.distance import pdist
from sklearn.utils.validation import check_is_fitted

from labelspace.checks import check_number
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
from labelspace.geometry.projection import turned_like

if TYPE_CHECKING:
    from matplotlib.axes import Axes

Points = NDArray[np.float64]

VIEWS = 400
TILT = 0.35
"""Tilt of the wire sphere towards the viewer, in radians, which shows its parallels as rings."""


def sphere_figure(
    model: BiEncoderClassifier,
    X: Any,
    path: str | Path,
    *,
    y: Any = None,
    before: bool = True,
    seed: int = 0,
    max_documents: int = 2000,
) -> tuple[Path, ...]:
    """Draw documents and labels on the unit sphere: the untrained encoder on the left, the model on the right.

    Documents are dots and verbalizers stars, projected to three coordinates by PCA and normalised to unit length. The
    right sphere is rotated to match the left one, and both are viewed from where the stars of the trained model lie
    furthest apart. Points on the far side are paler. The space on the right, and the stars of a model without
    verbalizers, are as in `map_figure`.

    Args:
        model: a fitted classifier of texts. A `ZeroShotClassifier` has one sphere, as it trains no encoder.
        X: [text] documents.
        path: a .png, .svg or .pdf file; without an extension both .png and .svg are written.
        y: [text] label names, which colour the documents, missing ones in grey; None colours by what `model` predicts.
        before: False leaves out the untrained encoder. It is left out with a warning if it cannot be opened.
        seed: seed of the sample of documents, which is the same as in `map_figure`.
        max_documents: maximum number of documents drawn; more are sampled at random.

    Returns:
        The files written.

    Raises:
        MissingDependencyError: matplotlib is not installed.
        ConfigError: an invalid option, or a model without text vectors.
        InputError: too few documents, an invalid document, or `y` does not fit.
        OutputError: an unknown extension, or a file that cannot be written.

    Example:
        >>> import tempfile
        >>> from labelspace import ZeroShotClassifier
        >>> clf = ZeroShotClassifier(["sports", "politics"], encoder="tests/data/tiny-bert").fit()
        >>> with tempfile.TemporaryDirectory() as folder:
        ...     [file.name for file in sphere_figure(clf, ["the match", "a vote"], f"{folder}/sphere.png")]
        ['sphere.png']

    Reference:
        "Description-only supervision", Figure 2b; it shows the documents of a trained encoder only.
    """
    check_is_fitted(model)
    model = answerer(model)
    check_number("seed", seed, whole=True)
    check_number("max_documents", max_documents, least=1, whole=True)
    check_drawable(model, "sphere")
    files = files_of(path)
    with drawing("the sphere") as new_figure:
        own, panels = before_and_after(
            model, X, y, figure="sphere", before=before, seed=seed, most=max_documents, least=4
        )
        spheres = [_on_sphere(shown) for shown in panels.values()]
        if len(spheres) == 2:
            spheres[1] = _turned_about_the_centre(spheres[1], in_step(spheres[0], len(spheres[1]), np.zeros(3)))
        view = _view(spheres[-1][len(own) :])
        legend = len(model.label_space_) <= LEGEND_LABELS
        side = 5.2 if legend else 7.5
        figure = new_figure(side * len(spheres) + (1.9 if legend else 0.1), side + (0.4 if legend else 0.9))
        for column, ((title, shown), points) in enumerate(zip(panels.items(), spheres, strict=True), 1):
            axes = figure.add_subplot(1, len(spheres), column)
            _draw_sphere(axes, points @ view, shown, own, model, side)
            axes.set_title(f"{title} (PCA, on the sphere)")
        draw_legend(
            figure,
            model.label_space_.names if legend else (),
            unlabelled=bool((own < 0).any()),
            true_labels=y is not None,
            signs=[("*", star_word(model))],
            far="pale: on the far side",
        )
        return write_figure(figure, files)


def _on_sphere(shown: PanelVectors) -> Points:
    """Project documents and stars, in this order, onto one sphere, [point 3]."""
    return project(np.concatenate([shown.documents, shown.stars.vectors]), projection="pca-sphere")


def _turned_about_the_centre(moved: Points, fixed: Points) -> Points:
    # `turned_like` centres its points, which would move them off the sphere. Adding each point's opposite makes the
    # mean zero.
    return turned_like(np.concatenate([moved, -moved]), np.concatenate([fixed, -fixed]))[: len(moved)]


def _view(stars: Points) -> Points:
    """Return the axes across, up and towards the viewer, as columns [3 3], that show the stars furthest apart.

    The score also favours views with more stars on the near side.
    """
    if not len(stars):
        return np.eye(3)
    # Directions spread evenly by the golden angle.
    turns = np.arange(VIEWS) * np.pi * (3 - 5**0.5)
    heights = 1 - 2 * (np.arange(VIEWS) + 0.5) / VIEWS
    radii = np.sqrt(1 - heights**2)
    best, best_view = -np.inf, np.eye(3)
    for towards in np.stack([radii * np.cos(turns), radii * np.sin(turns), heights], axis=1):
        helper = np.eye(3)[np.abs(towards).argmin()]
        up = helper - towards * (helper @ towards)
        up /= np.linalg.norm(up)
        view = np.stack([np.cross(up, towards), up, towards], axis=1)
        seen = stars @ view
        score = (pdist(seen[:, :2]).min() if len(seen) > 1 else 0.0) + 0.25 * float(seen[:, 2].mean())
        if score > best + 1e-9:
            best, best_view = score, view
    return best_view


def _draw_sphere(
    axes: "Axes", points: Points, shown: PanelVectors, own: NDArray[np.int64], model: BiEncoderClassifier, side: float
) -> None:
    space = model.label_space_
    colours = label_colours(len(space))
    documents, stars = np.split(points, [len(own)])
    _draw_wire(axes)
    size = float(np.clip(6000 / len(own), 6, 22))
    near = documents[:, 2] >= 0
    draw_documents(axes, documents[~near, :2], own[~near], len(space), size=0.6 * size, alpha=0.28, zorder=1)
    draw_documents(axes, documents[near, :2], own[near], len(space), size=size, alpha=0.75, zorder=3)
    many = len(space) > LEGEND_LABELS
    columns = shown.stars.columns
    for column, star in zip(columns, stars, strict=True):
        far = bool(star[2] < 0)
        axes.scatter(
            *star[:2],
            s=(70 if many else 260) * (0.7 if far else 1.0),
            marker="*",
            color=colours[column],
            edgecolors="#8a8a8a" if far else "black",
            linewidths=0.7,
            alpha=0.5 if far else 1.0,
            clip_on=False,
            zorder=2.5 if far else 5,
        )
    counts = np.bincount(own[own >= 0], minlength=len(space))[columns]
    inch = 2.3 / side
    names = [space.names[column] for column in columns]
    order = np.lexsort((-counts, stars[:, 2] < 0))
    name_stars(axes, stars[:, :2] / inch, inch, order, names, small=many, pale=stars[:, 2] < 0, edge=side / 2)
    axes.set_xlim(-1.12, 1.12)
    axes.set_ylim(-1.12, 1.12)
    axes.set_aspect("equal")
    axes.set_axis_off()


def _draw_wire(axes: "Axes") -> None:
    """Draw parallels and meridians, the near half darker, and the outline."""
    around = np.linspace(0, 2 * np.pi, 181)
    level = np.stack([np.cos(around), np.zeros_like(around), np.sin(around)], axis=1)  # the equator, seen from above
    rings = []
    for latitude in np.radians(np.arange(-60, 61, 30)):
        rings.append(level * np.cos(latitude) + np.array([0, np.sin(latitude), 0]))
    for longitude in np.radians(np.arange(0, 180, 30)):
        flat = np.array([np.cos(longitude), 0, np.sin(longitude)])
        rings.append(np.outer(np.cos(around), flat) + np.outer(np.sin(around), [0, 1, 0]))
    tilt = np.array([[1, 0, 0], [0, np.cos(TILT), np.sin(TILT)], [0, -np.sin(TILT), np.cos(TILT)]])
    for ring in rings:
        turned = ring @ tilt
        for near in (False, True):
            line = np.where((turned[:, 2] >= 0) == near, turned[:, :2].T, np.nan)
            axes.plot(*line, color="#c9c9c9" if near else "#e6e6e6", linewidth=0.5, zorder=2 if near else 0.5)
    axes.plot(np.cos(around), np.sin(around), color="#a8a8a8", linewidth=0.8, zorder=2)
