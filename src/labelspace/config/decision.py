"""Settings for turning scores into labels; they may change after `fit`."""

from dataclasses import dataclass
from typing import final

from labelspace.checks import check_choice
from labelspace.config.saved import SavedConfig
from labelspace.config.training import TrainingConfig

ANCHORS = ("verbalizer", "descriptions", "both")
DEFAULT_ANCHOR = "descriptions"  # measured best on average, see docs/benchmarks.md; the paper takes "verbalizer"

LONG_TEXTS = ("cut", "windows")


@final
@dataclass(frozen=True, kw_only=True)
class DecisionConfig(SavedConfig):
    """Settings for turning scores into labels; each classifier has those that apply to it."""

    anchor: str = DEFAULT_ANCHOR
    """What represents a label when documents are compared with it: `"verbalizer"`, `"descriptions"` (the mean of their
    vectors) or `"both"`."""

    temperature: float = TrainingConfig.temperature
    """Divides the scores before the softmax, above 0."""

    threshold: float | None = None
    """Lowest cosine, -1 to 1, at which a label is predicted, for models that compare by cosine. None: always predict
    one."""

    min_probability: float | None = None
    """Lowest probability, 0 to 1, at which a label is predicted, for models with logits. None: always predict one."""

    labels_per_text: float | None = None
    """Mean number of labels of a text, above 0, if it is known, where a text may have several. None: the cuts of the
    labels come from the documents."""
    long_texts: str = "cut"
    """Whether texts longer than the encoder's limit are `"cut"` to it or read in `"windows"`, the best of which count
    for each label; for models of descriptions."""

    def _check(self) -> None:
        check_choice("anchor", self.anchor, ANCHORS)
        self._check_numbers("temperature", above=0)
        self._check_numbers("threshold", least=-1, most=1, or_none=True)
        self._check_numbers("labels_per_text", above=0, or_none=True)
        self._check_numbers("min_probability", least=0, most=1, or_none=True)
        check_choice("long_texts", self.long_texts, LONG_TEXTS)
