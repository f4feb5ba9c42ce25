"""Figures of a user's own model: confusions, maps of the space, the heat map of labels, rejection.

    confusion          true against predicted labels
    maps, sphere       documents and labels in two dimensions, and on the sphere, before and after
    label_similarity   which labels lie near one another
    rejection          accuracy of what is left as the least sure documents are rejected
    spaces             which vectors are shown of which model
    panels             what these share

Everything is drawn on a `matplotlib.figure.Figure`, never through pyplot, so that no figure of the caller is touched;
one style holds for all; what is told by colour is told by lightness, marker or name as well, so that it survives a
grey printer; and the same input gives the same bytes. Everything loads on first use.
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
