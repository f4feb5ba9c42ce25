"""Figures of a user's own model: confusion matrix, maps, label similarity, rejection curves, estimate, advice and more.

    confusion          true against predicted labels
    maps, sphere       documents and labels in two dimensions, and on the sphere, before and after training
    label_similarity   cosine between labels
    rejection          accuracy on the remaining documents as the most uncertain ones are rejected
    estimate           ranges of accuracy and macro-F1 without labels, and the trust in each label
    consensus          agreement of the views, what each step changed, shares of the labels before and after
    advice             what the worst descriptions do on documents without labels, and labels that are confused
    spaces             the vectors drawn for each kind of model
    panels             parts shared by the maps
    rows               parts shared by figures with a row for each label

Figures are drawn on a `matplotlib.figure.Figure`, never through pyplot, so the caller's figures are not touched. All
share one style. Colour is always backed by lightness, marker or name, so figures stay readable in greyscale. The same
input gives the same bytes. Modules load on first use.
"""

from typing import TYPE_CHECKING

from labelspace.late import late_names

__all__ = [
    "advice_figure",
    "confusion_figure",
    "consensus_figure",
    "estimate_figure",
    "label_similarity_figure",
    "map_figure",
    "rejection_figure",
    "sphere_figure",
]

if TYPE_CHECKING:
    from labelspace.evaluate.figures.advice import advice_figure
    from labelspace.evaluate.figures.confusion import confusion_figure
    from labelspace.evaluate.figures.consensus import consensus_figure
    from labelspace.evaluate.figures.estimate import estimate_figure
    from labelspace.evaluate.figures.label_similarity import label_similarity_figure
    from labelspace.evaluate.figures.maps import map_figure
    from labelspace.evaluate.figures.rejection import rejection_figure
    from labelspace.evaluate.figures.sphere import sphere_figure

__getattr__ = late_names(
    __name__,
    {
        "advice": "advice_figure",
        "confusion": "confusion_figure",
        "consensus": "consensus_figure",
        "estimate": "estimate_figure",
        "label_similarity": "label_similarity_figure",
        "maps": "map_figure",
        "rejection": "rejection_figure",
        "sphere": "sphere_figure",
    },
)
