"""Pre-finetuning: move an encoder into a domain while REZE preserves its geometry.

    sources    the pairs: drawn, checked before any long work, some held aside
    relations  the reference encoder's vectors of the pairs, computed once and stored on disk
    offline    REZE's phase 1: the eigenspace of these relations, and the debiased targets of a batch
    objective  REZE's phase 2: training, for the loop
    measures   the effect on the space: uniformity, alignment, IsoScore, drift, neighbours kept
    result     the record of a run, as one value
    saving     an encoder with its eigenspace and result as a folder
    run        `prefinetune`, which runs all of these

Drawing and checking pairs needs no torch; the rest is imported on first use.
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
