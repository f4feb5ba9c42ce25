"""Pre-finetuning: an encoder is moved into a domain, and kept from breaking on the way (REZE).

    sources    the pairs: drawn, refused before any long work, some of them held aside
    relations  what the encoder makes of them before training, computed once and kept on disk
    offline    REZE's phase 1: the eigenspace of these relations, and the debiased targets of a batch
    objective  REZE's phase 2: what the loop trains
    measures   what it did to the space: uniformity, alignment, IsoScore, drift, neighbours kept
    result     all that is to be said of a run, as one value
    saving     an encoder with its eigenspace and its result as a folder
    run        `prefinetune`: all of these, one after the other

Drawing and checking pairs needs no torch; the rest is loaded when first asked for.
"""

from typing import TYPE_CHECKING

from labelspace.late import late_names
from labelspace.training.prefinetune.sources import check_pairs, gather_pairs

if TYPE_CHECKING:
    from labelspace.training.prefinetune.measures import Measures
    from labelspace.training.prefinetune.objective import Look
    from labelspace.training.prefinetune.result import PrefinetuneResult
    from labelspace.training.prefinetune.run import Prefinetuned, prefinetune
    from labelspace.training.prefinetune.saving import read_eigenspace

__all__ = [
    "Look",
    "Measures",
    "PrefinetuneResult",
    "Prefinetuned",
    "check_pairs",
    "gather_pairs",
    "prefinetune",
    "read_eigenspace",
]

__getattr__ = late_names(
    __name__,
    {
        "measures": "Measures",
        "objective": "Look",
        "result": "PrefinetuneResult",
        "run": "Prefinetuned prefinetune",
        "saving": "read_eigenspace",
    },
)
