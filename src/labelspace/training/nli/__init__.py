"""Training cross-encoders on natural language inference (BTZSC, appendix C.1).

    data        pairs from Parquet files, the balanced dev set
    schedule    the two learning rates
    model       backbone, head and tokenizer as one module; saving and loading
    opening     a transformers folder as a backbone
    saving      the header of a saved model, and links to its checkpoint
    card        the model card
    objective   training and scoring, for the loop

Data needs no torch; the rest is imported on first use.
"""

from typing import TYPE_CHECKING

from labelspace.late import late_names
from labelspace.training.nli.data import Pairs, balanced_dev, read_pairs

if TYPE_CHECKING:
    from labelspace.training.nli.model import NLIModel
    from labelspace.training.nli.objective import Look, dev_scores, pair_loss, train_nli

__all__ = [
    "Look",
    "NLIModel",
    "Pairs",
    "balanced_dev",
    "dev_scores",
    "pair_loss",
    "read_pairs",
    "train_nli",
]

__getattr__ = late_names(
    __name__,
    {
        "model": "NLIModel",
        "objective": "Look dev_scores pair_loss train_nli",
    },
)
