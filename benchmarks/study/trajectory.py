"""Alignment and uniformity during training."""

import math
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, NamedTuple, final

import numpy as np
import torch

from labelspace import DescriptionClassifier, Encoder, LabelSpace
from labelspace.bench.naming import name_points
from labelspace.classify.arguments import own_encoder
from labelspace.config import SearchConfig
from labelspace.corpus import Pool, sample_pool
from labelspace.errors import unsaid
from labelspace.evaluate.drawing import drawing, files_of, write_figure
from labelspace.geometry import alignment
from labelspace.training import train_on_descriptions
from labelspace.training.description.learning_rate import PoolUniformity
from labelspace.training.engine import INTERRUPTED
from study.measure import evaluating
from study.rates_figure import progress_colours, rate_words

MEASUREMENTS = 40
"""Default number of measurements, approximately."""

NAMED_POINTS = 8

LEAST_RANGE = 0.05
"""Minimum range of an axis, so that a tiny change does not look large."""


class TrajectoryPoint(NamedTuple):
    """Alignment and uniformity after a number of updates."""

    step: int
    """Number of updates; 0: untrained."""

    alignment: float
    """Alignment of descriptions with the verbalizer of their label; lower is nearer."""

    uniformity: float
    """Uniformity of the pool; lower is more uniform."""


@final
@dataclass(frozen=True, kw_only=True)
class Trajectory:
    """Alignment and uniformity during a training run."""

    points: tuple[TrajectoryPoint, ...]
    """Measurements in the order of their steps."""

    best_step: int
    """Step whose weights were kept."""

    learning_rate: float
    """Learning rate at the end of the warm-up."""

    pool: str
    """Source of the documents."""


def trajectory(model: DescriptionClassifier, pool: Any, *, every: int | None = None) -> Trajectory:
    """Repeat the training of a fitted model from its untrained encoder, at its learning rate, and measure on the way.

    The model itself is unchanged.

    Args:
        model: model whose training is repeated.
        pool: unlabelled documents for measuring uniformity, on the same pairs each time.
        every: steps between two measurements; None: about 40 measurements.

    Returns:
        A point before training, one every `every` steps, and one for the best step.

    Reference:
        "Description-only supervision", section 3.1; Wang & Isola, 2020, https://arxiv.org/abs/2005.10242.
    """
    rate = model.fit_result_.to_dict()["rate"]["learning_rate"]
    config = replace(model.training_config(), learning_rate=rate)
    every = every or math.ceil(config.max_steps / MEASUREMENTS)
    search = model.search or SearchConfig()
    drawn = sample_pool(pool, size=search.documents, seed=model.seed)
    encoder = own_encoder(model.encoder)
    measure = _Measure(encoder, model.label_space_, drawn, search, model.seed)
    points = {0: measure(0)}

    def look(step: int, values: dict[str, float]) -> None:  # noqa: ARG001 - the name is the protocol's
        if step % every == 0 or step == config.max_steps:
            points[step] = measure(step)

    with unsaid(INTERRUPTED):
        # Train without a pool: its uniformity is measured here.
        result = train_on_descriptions(
            encoder, model.label_space_, config, search, pool=None, seed=model.seed, callbacks=[look]
        )
    if result.curve.stop_reason == "interrupted":
        raise KeyboardInterrupt
    best = result.curve.best_step
    points[best] = measure(best)  # the encoder has the weights of the best step again
    ordered = tuple(points[step] for step in sorted(points))
    return Trajectory(points=ordered, best_step=best, learning_rate=rate, pool=drawn.source)


def trajectory_figure(found: Trajectory, path: str | Path) -> tuple[Path, ...]:
    """Draw uniformity over alignment during training, from dark to light; the best step is a star.

    To the left is better aligned, down is better spread. A way that goes left and up buys its alignment with a
    collapsing space: the learning rate is too high.

    Args:
        found: what `trajectory` returned.
        path: a .png, .svg or .pdf file; without an extension both .png and .svg are written.

    Returns:
        The files written.

    Reference:
        Wang & Isola, 2020, https://arxiv.org/abs/2005.10242; the paper of description-only supervision names the two
        numbers and draws no such figure.
    """
    files = files_of(path)
    places = np.array([(point.alignment, point.uniformity) for point in found.points])
    steps = np.array([point.step for point in found.points])
    with drawing("the trajectory") as new_figure:
        from matplotlib.cm import ScalarMappable
        from matplotlib.collections import LineCollection
        from matplotlib.colors import Normalize
        from matplotlib.ticker import MaxNLocator

        figure = new_figure(6.4, 4.8)
        axes = figure.add_subplot()
        colours, norm = progress_colours(), Normalize(0, max(int(steps.max()), 1))
        if len(places) > 1:
            _draw_arrow(axes, places[0], places[-1])
            pieces = np.stack([places[:-1], places[1:]], axis=1)
            way = LineCollection(list(pieces), cmap=colours, norm=norm, linewidths=1.8, zorder=2)
            way.set_array((steps[:-1] + steps[1:]) / 2)
            axes.add_collection(way)
        for number, (step, place) in enumerate(zip(steps, places, strict=True)):
            best, first = step == found.best_step, number == 0
            axes.scatter(
                *place,
                s=190 if best else 60 if first else 22,
                marker="*" if best else "s" if first else "o",
                color=colours(norm(step)),
                edgecolors="black",
                linewidths=0.7 if best or first else 0.4,
                zorder=4 if best else 3,
            )
        axes.set_xlabel("alignment of descriptions with their label (further left: nearer)")
        axes.set_ylabel("uniformity of documents (further down: better spread)")
        axes.set_title(f"Training at learning rate {rate_words(found.learning_rate)}, {len(places)} measurements")
        axes.grid(color="#ececec", linewidth=0.5)
        axes.set_axisbelow(True)
        axes.set_xlim(*_limits(places[:, 0]))
        axes.set_ylim(*_limits(places[:, 1]))
        bar = figure.colorbar(ScalarMappable(norm, colours), ax=axes, label="step", aspect=30)
        bar.ax.yaxis.set_major_locator(MaxNLocator(integer=True))
        order = _named_first(steps, found.best_step)
        names = ["" if number >= NAMED_POINTS else _name(steps[place], found) for number, place in enumerate(order)]
        around = np.concatenate([places, places[:1]])  # the trajectory, and back along the arrow
        name_points(axes, places[order], names, way=around)
        return write_figure(figure, files)


@final
class _Measure:
    """Measures alignment of one label space and uniformity of one pool, each tokenised once."""

    def __init__(self, encoder: Encoder, space: LabelSpace, pool: Pool, search: SearchConfig, seed: int) -> None:
        self._encoder = encoder
        self._uniformity = PoolUniformity(encoder, pool, search, seed)
        # A label without a description has no pair, and is skipped.
        self._own = [column for column, texts in enumerate(space.descriptions) for _ in texts]
        self._descriptions = encoder.tokenize([text for texts in space.descriptions for text in texts])
        self._verbalizers = encoder.tokenize(space.verbalizers, role="label")

    def __call__(self, step: int) -> TrajectoryPoint:
        with evaluating(self._encoder):
            descriptions = torch.from_numpy(self._encoder.embed(self._descriptions))
            verbalizers = torch.from_numpy(self._encoder.embed(self._verbalizers, role="label"))
            return TrajectoryPoint(step, alignment(descriptions, verbalizers[self._own]).item(), self._uniformity())


def _limits(values: np.ndarray) -> tuple[float, float]:
    half = 0.62 * max(float(np.ptp(values)), LEAST_RANGE)
    middle = float(values.min() + values.max()) / 2
    return middle - half, middle + half


def _draw_arrow(axes: Any, first: np.ndarray, last: np.ndarray) -> None:
    look = {"arrowstyle": "-|>", "color": "#9a9a9a", "linestyle": (0, (5, 4)), "linewidth": 0.9, "mutation_scale": 14}
    axes.annotate("", tuple(last), tuple(first), arrowprops={**look, "shrinkA": 6, "shrinkB": 7}, zorder=1)


def _named_first(steps: np.ndarray, best: int) -> list[int]:
    """Return point numbers by priority: the best, first and last, then evenly spaced ones, then the rest."""
    ends = [int(np.flatnonzero(steps == best)[0]) if best in steps else 0, 0, len(steps) - 1]
    between = np.linspace(0, len(steps) - 1, NAMED_POINTS).round().astype(int).tolist()
    return list(dict.fromkeys([*ends, *between, *range(len(steps))]))


def _name(step: int, found: Trajectory) -> str:
    words = "untrained" if step == 0 else f"step {step}"
    return f"best: {words}" if step == found.best_step else words
