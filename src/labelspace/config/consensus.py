"""Settings for the consensus of views."""

from dataclasses import dataclass
from typing import final

from labelspace.checks import check_choice
from labelspace.config.decision import LONG_TEXTS, DecisionConfig
from labelspace.config.saved import SavedConfig


@final
@dataclass(frozen=True, kw_only=True)
class ConsensusConfig(SavedConfig):
    """What several views of unlabelled documents agree on."""

    documents: int = 10_000
    """Maximum number of documents of the pool that are used."""

    view_steps: int | str = "auto"
    """Updates on the descriptions, for each encoder that is a view. `"auto"`: 60 up to a width of 384, and in inverse
    proportion to the width above it, which costs about as much."""

    slow_documents: int = 500
    """Maximum number of documents for a view that reads text and label together: those of which the others are least
    sure."""

    price: float | None = None
    """Price of a million tokens that a hosted view (`openai:`) reads, 0 or more, in any currency; the cost of its calls
    is estimated from it before the first one. None: their number and tokens alone."""

    temperature: float = 0.07
    """Divides the cosines of an encoder that was trained for the consensus, above 0; saved models keep theirs, and
    models that read text and label together are scaled so that they are as sure on average."""

    alpha: float | str = "auto"
    """How often each label is expected: its share by each view, to this power. 1: as the view has it; 0: all labels
    equally often. `"auto"`: 1, or 0.5 where the view by words then agrees far better. A `prior` takes its place."""

    long_texts: str = DecisionConfig.long_texts
    """Whether views that are encoders, and such a student, read texts longer than their limit `"cut"` to it or in
    `"windows"`; saved models keep their own way."""

    neighbours: int = 15
    """Nearest documents whose answers are mixed in; 0: none."""

    rounds: int = 5
    """Rounds of mixing."""

    own: float = 0.5
    """Share of a document's own answer in each round, 0 to 1."""

    words: bool = True
    """Whether a view by words (TF-IDF, linear) learns from the others' answers and adds its own."""

    C: float = 3.0
    """Inverse strength of the regularization of the view by words, above 0."""

    folds: int = 5
    """The view by words answers each document after learning from the others; this many parts."""

    guards: bool = True
    """Whether a step is left out where it is not safe."""

    documents_per_label: int = 25
    """Guard: fewest documents a label, on average, for any step."""

    min_agreement: float = 0.2
    """Guard: lowest agreement beyond chance (kappa) of near documents with one another, of the view by words with the
    answers that it learnt from, and of smoothing with the answers before it."""

    def _check(self) -> None:
        self._check_numbers("view_steps", least=1, whole=True, words=("auto",))
        self._check_numbers("slow_documents", least=1, whole=True)
        self._check_numbers("documents", least=2, whole=True)
        self._check_numbers("price", least=0, or_none=True)
        self._check_numbers("temperature", above=0)
        self._check_numbers("alpha", least=0, most=1, words=("auto",))
        check_choice("long_texts", self.long_texts, LONG_TEXTS)
        self._check_numbers("neighbours", least=0, whole=True)
        self._check_numbers("rounds", least=1, whole=True)
        self._check_numbers("own", least=0, most=1)
        self._check_numbers("C", above=0)
        self._check_numbers("folds", least=2, whole=True)
        self._check_numbers("documents_per_label", least=0, whole=True)
        self._check_numbers("min_agreement", least=0, most=1)
