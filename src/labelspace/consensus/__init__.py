"""Several views of unlabelled documents: what they agree on, and a student that learns it."""

from typing import TYPE_CHECKING

from labelspace.late import late_names

__all__ = ["Consensus", "ConsensusClassifier", "ConsensusFit", "agree"]

if TYPE_CHECKING:
    from labelspace.consensus.classifier import ConsensusClassifier, ConsensusFit
    from labelspace.consensus.steps import Consensus, agree

__getattr__ = late_names(
    __name__,
    {
        "steps": "Consensus agree",
        "classifier": "ConsensusClassifier ConsensusFit",
    },
)
