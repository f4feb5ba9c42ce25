"""Frozen, keyword-only configurations: a run is one value that can be printed, saved and loaded.

Making one checks every field. A contract test holds the estimators' defaults to the defaults here.
"""

from labelspace.config.consensus import ConsensusConfig
from labelspace.config.decision import ANCHORS, DEFAULT_ANCHOR, LONG_TEXTS, DecisionConfig
from labelspace.config.encoding import DTYPES, RUNTIMES, EncodingConfig
from labelspace.config.lacon import LABEL_STARTS, LACON_HEADS, LACON_OBJECTIVES, LaConConfig
from labelspace.config.nli import NLI_VARIANTS, NLIConfig
from labelspace.config.prefinetune import CENTRES, PrefinetuneConfig
from labelspace.config.serving import ServingConfig
from labelspace.config.student import StudentConfig
from labelspace.config.training import (
    FALLBACK_LEARNING_RATE,
    OBJECTIVES,
    PAPER_LEARNING_RATES,
    SEARCHES,
    SearchConfig,
    TrainingConfig,
)
from labelspace.config.uncertainty import CONTRASTIVES, EXTRACTORS, UncertaintyConfig

CONFIGS = (
    EncodingConfig,
    DecisionConfig,
    SearchConfig,
    TrainingConfig,
    LaConConfig,
    UncertaintyConfig,
    PrefinetuneConfig,
    NLIConfig,
    ConsensusConfig,
    StudentConfig,
    ServingConfig,
)

__all__ = [
    "ANCHORS",
    "CENTRES",
    "CONFIGS",
    "CONTRASTIVES",
    "DEFAULT_ANCHOR",
    "DTYPES",
    "EXTRACTORS",
    "FALLBACK_LEARNING_RATE",
    "LABEL_STARTS",
    "LACON_HEADS",
    "LACON_OBJECTIVES",
    "LONG_TEXTS",
    "NLI_VARIANTS",
    "OBJECTIVES",
    "PAPER_LEARNING_RATES",
    "RUNTIMES",
    "SEARCHES",
    "ConsensusConfig",
    "DecisionConfig",
    "EncodingConfig",
    "LaConConfig",
    "NLIConfig",
    "PrefinetuneConfig",
    "SearchConfig",
    "ServingConfig",
    "StudentConfig",
    "TrainingConfig",
    "UncertaintyConfig",
]
