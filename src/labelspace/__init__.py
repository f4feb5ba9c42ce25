"""labelspace: write down what your labels mean, get a fast text classifier.

The public names load on first use, so that `import labelspace` and `labelspace --help` load no torch.
"""

import importlib
from typing import TYPE_CHECKING, Any

__version__ = "0.1.0"

_HOMES = {
    "Label": "labelspace.labels",
    "LabelSpace": "labelspace.labels",
    "LabelSpaceError": "labelspace.errors",
    "Encoder": "labelspace.encoders",
    "ZeroShotClassifier": "labelspace.classify",
    "DescriptionClassifier": "labelspace.classify",
    "LaConClassifier": "labelspace.classify",
    "UncertaintyClassifier": "labelspace.classify",
    "load": "labelspace.classify",
    "prefinetune": "labelspace.training.prefinetune",
}

__all__ = [
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

if TYPE_CHECKING:
    from labelspace.classify import (
        DescriptionClassifier,
        LaConClassifier,
        UncertaintyClassifier,
        ZeroShotClassifier,
        load,
    )
    from labelspace.encoders import Encoder
    from labelspace.errors import LabelSpaceError
    from labelspace.labels import Label, LabelSpace
    from labelspace.training.prefinetune import prefinetune


def __getattr__(name: str) -> Any:
    if name not in _HOMES:
        raise AttributeError(f"module 'labelspace' has no attribute {name!r}")
    value = getattr(importlib.import_module(_HOMES[name]), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return __all__
