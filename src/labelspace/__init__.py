"""labelspace: write down what your labels mean, get a fast text classifier.

The public names load on first use, so that `import labelspace` and `labelspace --help` load no torch.
"""

from typing import TYPE_CHECKING

from labelspace.late import late_names
from labelspace.version import __version__

__all__ = [
    "ConsensusClassifier",
    "DescriptionClassifier",
    "Encoder",
    "LaConClassifier",
    "Label",
    "LabelSpace",
    "LabelSpaceError",
    "UncertaintyClassifier",
    "ZeroShotClassifier",
    "__version__",
    "load",
    "prefinetune",
]

_MODULES = (
    *("bench", "classify", "config", "consensus", "corpus", "encoders", "errors", "evaluate", "families", "geometry"),
    *("heads", "labels", "losses", "serve", "training"),
)

if TYPE_CHECKING:
    from labelspace.classify import (
        DescriptionClassifier,
        LaConClassifier,
        UncertaintyClassifier,
        ZeroShotClassifier,
        load,
    )
    from labelspace.consensus import ConsensusClassifier
    from labelspace.encoders import Encoder
    from labelspace.errors import LabelSpaceError
    from labelspace.labels import Label, LabelSpace
    from labelspace.training.prefinetune import prefinetune


__getattr__ = late_names(
    __name__,
    {
        "classify": "DescriptionClassifier LaConClassifier UncertaintyClassifier ZeroShotClassifier load",
        "consensus": "ConsensusClassifier",
        "encoders": "Encoder",
        "errors": "LabelSpaceError",
        "labels": "Label LabelSpace",
        "training.prefinetune": "prefinetune",
    },
    _MODULES,
)


def __dir__() -> list[str]:
    return [*__all__, *_MODULES]
