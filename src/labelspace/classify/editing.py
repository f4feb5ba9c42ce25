"""Label changes on a fitted model, and advice on retraining."""

from dataclasses import dataclass
from typing import final

import numpy as np

from labelspace.classify.anchors import LabelVectors, anchor_matrix, cosines
from labelspace.labels import LabelSpace
from labelspace.notebook import Shown


@final
@dataclass(frozen=True, kw_only=True)
class LabelChange(Shown):
    """The result of a label change on a fitted model."""

    retrain: bool
    """Whether retraining is advised."""

    reason: str
    """The reason, in a sentence."""

    def __str__(self) -> str:
        return f"{'retraining is advised' if self.retrain else 'no retraining needed'}: {self.reason}"


def advice_after_adding(name: str, space: LabelSpace, vectors: dict[str, LabelVectors], kind: str) -> LabelChange:
    """Return whether to retrain after adding a label.

    No retraining is needed if each description of the label is nearest to its own anchor, and no description of another
    label is nearer to the new anchor than to its own.
    """
    anchors = anchor_matrix(vectors, space, kind)
    column = space.index(name)
    own = vectors[name].descriptions
    if not len(own):
        return LabelChange(retrain=True, reason=f"{name!r} has no description, so its place cannot be checked.")
    astray = int((cosines(own, anchors).argmax(axis=1) != column).sum())
    stolen = 0
    for other in space.names:
        theirs = vectors[other].descriptions
        if other != name and len(theirs):
            near = cosines(theirs, anchors[[space.index(other), column]])
            stolen += int(np.sum(near[:, 1] > near[:, 0]))
    if astray or stolen:
        return LabelChange(
            retrain=True,
            reason=f"{astray} of the {len(own)} descriptions of {name!r} lie nearer to another label, and it draws "
            f"{stolen} descriptions away from theirs; call fit again.",
        )
    return LabelChange(retrain=False, reason=f"all descriptions of {name!r} lie nearest to it, and it takes no others.")
