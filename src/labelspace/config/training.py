"""Training on descriptions, and the choice of its learning rate."""

from dataclasses import dataclass
from typing import final

from labelspace.checks import check_choice, check_number
from labelspace.config.saved import SavedConfig
from labelspace.errors import ConfigError

PAPER_LEARNING_RATES = tuple(sorted(factor * power for factor in (1.0, 3.0, 5.0) for power in (1e-4, 1e-5, 1e-6)))
FALLBACK_LEARNING_RATE = 2e-5

ANCHORS = ("verbalizer", "descriptions", "both")
DEFAULT_ANCHOR = "descriptions"  # measured best on average, see docs/benchmarks.md; the paper takes "verbalizer"
OBJECTIVES = ("both", "rows", "columns")
SEARCHES = ("halving", "grid")


@final
@dataclass(frozen=True, kw_only=True)
class SearchConfig(SavedConfig):
    """How the learning rate is chosen by uniformity (description-only supervision, section 3.1)."""

    rates: tuple[float, ...] = PAPER_LEARNING_RATES
    """The candidates: {1, 3, 5} x {1e-4, 1e-5, 1e-6}, the paper's grid."""

    strategy: str = "halving"
    """`"halving"`: all run a quarter of the steps, the best and the two below it all; `"grid"`: all run all of them."""

    steps: int = 40
    """Steps of a full warm-up run. The paper says "short" and no more."""

    documents: int = 1000
    """Documents of the pool that are encoded at each measurement; the paper does not say."""

    pairs: int = 50_000
    """Pairs (i, j), i != j, in the uniformity estimate (section 4)."""

    def __post_init__(self) -> None:
        self._keep_plain()
        if not isinstance(self.rates, tuple) or not self.rates:
            raise ConfigError(f"rates must be a tuple of one learning rate or more. Got {self.rates!r} instead.")
        for rate in self.rates:
            check_number("rates", rate, above=0, most=1)
        check_choice("strategy", self.strategy, SEARCHES)
        check_number("steps", self.steps, least=1, whole=True)
        check_number("documents", self.documents, least=2, whole=True)
        check_number("pairs", self.pairs, least=1, whole=True)


@final
@dataclass(frozen=True, kw_only=True)
class TrainingConfig(SavedConfig):
    """Description-only training (description-only supervision, sections 3.1 and 4)."""

    objective: str = "both"
    """`"rows"` (eq. 1), `"columns"` (eq. 2) or `"both"` (eq. 3)."""

    temperature: float = 0.07
    """Divides the cosines (section 3)."""

    learning_rate: float | str = "auto"
    """Learning rate, a number or how to choose one. `"base"`: the published one, or 2e-5; `"uniformity"`: chosen on the
    pool, without one as `"base"`; `"auto"`: as `"base"` where a rate is published, the encoder keeps its own pooling
    and the search is the default one, else as `"uniformity"`."""

    max_steps: int = 1000
    """At most so many updates; one is a sweep over all descriptions x verbalizers."""

    warmup: float = 0.5
    """Share of `max_steps` over which the learning rate rises linearly."""

    check_every: int = 10
    """Steps between two looks at the stopping rule."""

    patience: int = 10
    """Looks without improvement after which training stops."""

    tolerance: float = 1e-5
    """Least fall of the loss that counts as improvement."""

    encoder_dropout: bool = False
    """The encoder's own dropout; the paper is silent. Off by default: a step is faster, and nothing random is left."""

    weight_decay: float = 0.01
    """AdamW's; the paper is silent, this is the default of its optimizer."""

    descriptions_per_label: int | None = None
    """At most so many descriptions of each label are used; None: all."""

    freeze_layers: int = 0
    """So many lower layers, and the word embeddings below them, stay as they are; 0: nothing is frozen."""

    lora_rank: int | None = None
    """Train low-rank adapters of this rank instead of the weights (needs the package peft); None: the weights."""

    max_tokens_in_memory: int = 16_384
    """Tokens whose activations may be held at once; a larger sweep is cut into chunks with the same gradient."""

    def __post_init__(self) -> None:
        self._keep_plain()
        check_choice("objective", self.objective, OBJECTIVES)
        check_number("temperature", self.temperature, above=0)
        if isinstance(self.learning_rate, str):
            check_choice("learning_rate", self.learning_rate, ("auto", "uniformity", "base"))
        else:
            check_number("learning_rate", self.learning_rate, above=0, most=1)
        check_number("max_steps", self.max_steps, least=1, whole=True)
        check_number("warmup", self.warmup, least=0, most=1)
        check_number("check_every", self.check_every, least=1, whole=True)
        check_number("patience", self.patience, least=1, whole=True)
        check_number("tolerance", self.tolerance, least=0)
        check_choice("encoder_dropout", self.encoder_dropout, (False, True))
        check_number("weight_decay", self.weight_decay, least=0)
        if self.descriptions_per_label is not None:
            check_number("descriptions_per_label", self.descriptions_per_label, least=1, whole=True)
        check_number("freeze_layers", self.freeze_layers, least=0, whole=True)
        if self.lora_rank is not None:
            check_number("lora_rank", self.lora_rank, least=1, whole=True)
            if self.freeze_layers:
                raise ConfigError(
                    f"lora_rank and freeze_layers exclude each other. Got lora_rank={self.lora_rank} and "
                    f"freeze_layers={self.freeze_layers}; leave one of them out."
                )
        check_number("max_tokens_in_memory", self.max_tokens_in_memory, least=1, whole=True)
