"""Figures of a user's own model: confusion matrix, maps, label similarity, rejection curves.

    confusion          true against predicted labels
    maps, sphere       documents and labels in two dimensions, and on the sphere, before and after training
    label_similarity   cosine between labels
    rejection          accuracy on the remaining documents as the most uncertain ones are rejected
    spaces             the vectors drawn for each kind of model
    panels             parts shared by the maps

Figures are drawn on a `matplotlib.figure.Figure`, never through pyplot, so the caller's figures are not touched. All
share one style. Colour is always backed by lightness, marker or name, so figures stay readable in greyscale. The same
input gives the same bytes. Modules load on first use.
"""

from typing import TYPE_CHECKING

from labelspace.late import late_names

__all__ = [
    "confusion_figure",
    "label_similarity_figure",
    "map_figure",
    "rejection_figure",
    "sphere_figure",
]

if TYPE_CHECKING:
    from labelspace.evaluate.figures.confusion import confusion_figure
    from labelspace.evaluate.figures.label_similarity import label_similarity_figure
    from labelspace.evaluate.figures.maps import map_figure
    from labelspace.evaluate.figures.rejection import rejection_figure
    from labelspace.evaluate.figures.sphere import sphere_figure

__getattr__ = late_names(
    __name__,
    {
        "confusion": "confusion_figure",
        "label_similarity": "label_similarity_figure",
        "maps": "map_figure",
        "rejection": "rejection_figure",
        "sphere": "sphere_figure",
    },
)
