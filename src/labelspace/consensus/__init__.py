"""Several views of unlabelled documents: what they agree on, and a student that learns it."""

from typing import TYPE_CHECKING

from labelspace.late import late_names

__all__ = ["Consensus", "ConsensusClassifier", "ConsensusFit", "agree"]

if TYPE_CHECKING:
    from labelspace.consensus.agree import Consensus, agree
    from labelspace.consensus.classifier import ConsensusClassifier, ConsensusFit

__getattr__ = late_names(
    __name__,
    {
        "agree": "Consensus agree",
        "classifier": "ConsensusClassifier ConsensusFit",
    },
)
