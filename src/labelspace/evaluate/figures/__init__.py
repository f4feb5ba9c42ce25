"""Figures: confusions, maps of the space, the heat map of labels, and what training does to the space.

    confusion          true against predicted labels
    maps, sphere       documents and labels in two dimensions, and on the sphere, before and after
    label_similarity   which labels lie near one another
    rates              uniformity against macro-F1 over learning rates; retrains
    trajectories       alignment and uniformity along training; retrains
    rejection          accuracy of what is left as the least sure documents are rejected
    spaces             which vectors are shown of which model
    panels             what these share

Everything is drawn on a `matplotlib.figure.Figure`, never through pyplot, so that no figure of the caller is touched;
one style holds for all; what is told by colour is told by lightness, marker or name as well, so that it survives a
grey printer; and the same input gives the same bytes. Everything loads on first use.
"""

import importlib
from typing import TYPE_CHECKING, Any

# No module has the name of a function in it: once imported, it would take its place.
_HOMES = {
    "RatePoint": "rates",
    "Trajectory": "trajectories",
    "TrajectoryPoint": "trajectories",
    "confusion_figure": "confusion",
    "label_similarity_figure": "label_similarity",
    "map_figure": "maps",
    "rate_points": "rates",
    "rates_figure": "rates",
    "rejection_figure": "rejection",
    "sphere_figure": "sphere",
    "trajectory": "trajectories",
    "trajectory_figure": "trajectories",
}

__all__ = [
    "RatePoint",
    "Trajectory",
    "TrajectoryPoint",
    "confusion_figure",
    "label_similarity_figure",
    "map_figure",
    "rate_points",
    "rates_figure",
    "rejection_figure",
    "sphere_figure",
    "trajectory",
    "trajectory_figure",
]

if TYPE_CHECKING:
    from labelspace.evaluate.figures.confusion import confusion_figure
    from labelspace.evaluate.figures.label_similarity import label_similarity_figure
    from labelspace.evaluate.figures.maps import map_figure
    from labelspace.evaluate.figures.rates import RatePoint, rate_points, rates_figure
    from labelspace.evaluate.figures.rejection import rejection_figure
    from labelspace.evaluate.figures.sphere import sphere_figure
    from labelspace.evaluate.figures.trajectories import Trajectory, TrajectoryPoint, trajectory, trajectory_figure


def __getattr__(name: str) -> Any:
    if name not in _HOMES:
        raise AttributeError(f"module 'labelspace.evaluate.figures' has no attribute {name!r}")
    value = getattr(importlib.import_module(f"labelspace.evaluate.figures.{_HOMES[name]}"), name)
    globals()[name] = value
    return value
