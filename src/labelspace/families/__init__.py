"""Other ways to score texts against labels: entailment, rerankers, language models.

Each is a Scorer (see `labelspace.classify.scorer`). They import torch, so each is loaded on first use.
"""

from typing import TYPE_CHECKING, Any

__all__ = ["EntailmentScorer", "LLMScorer", "RerankerScorer"]

if TYPE_CHECKING:
    from labelspace.families.entailment import EntailmentScorer
    from labelspace.families.llm import LLMScorer
    from labelspace.families.reranker import RerankerScorer


def __getattr__(name: str) -> Any:
    if name == "EntailmentScorer":
        from labelspace.families.entailment import EntailmentScorer

        return EntailmentScorer
    if name == "RerankerScorer":
        from labelspace.families.reranker import RerankerScorer

        return RerankerScorer
    if name == "LLMScorer":
        from labelspace.families.llm import LLMScorer

        return LLMScorer
    raise AttributeError(f"module 'labelspace.families' has no attribute {name!r}")
