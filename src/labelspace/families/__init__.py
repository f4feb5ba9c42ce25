"""Other ways to score texts against labels: entailment, rerankers, language models here and hosted.

Each is a Scorer (see `labelspace.classify.scorer`). They import torch, so each is loaded on first use.
"""

from typing import TYPE_CHECKING

from labelspace.late import late_names

__all__ = ["EndpointScorer", "EntailmentScorer", "LLMScorer", "RerankerScorer"]

if TYPE_CHECKING:
    from labelspace.families.endpoint import EndpointScorer
    from labelspace.families.entailment import EntailmentScorer
    from labelspace.families.llm import LLMScorer
    from labelspace.families.reranker import RerankerScorer

__getattr__ = late_names(
    __name__,
    {
        "endpoint": "EndpointScorer",
        "entailment": "EntailmentScorer",
        "llm": "LLMScorer",
        "reranker": "RerankerScorer",
    },
)
