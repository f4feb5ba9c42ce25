"""Settings for training on descriptions and for its learning rate search."""

from dataclasses import dataclass
from typing import final

from labelspace.checks import check_choice, check_number
from labelspace.config.saved import SavedConfig
from labelspace.errors import ConfigError

PAPER_LEARNING_RATES = tuple(sorted(factor * power for factor in (1.0, 3.0, 5.0) for power in (1e-4, 1e-5, 1e-6)))
FALLBACK_LEARNING_RATE = 2e-5

OBJECTIVES = ("both", "rows", "columns")
SEARCHES = ("halving", "grid")


@final
@dataclass(frozen=True, kw_only=True)
class SearchConfig(SavedConfig):
    """Choosing the learning rate by uniformity (description-only supervision, section 3.1)."""

    rates: tuple[float, ...] = PAPER_LEARNING_RATES
    """Candidate learning rates; the paper's grid is {1, 3, 5} x {1e-4, 1e-5, 1e-6}."""

    strategy: str = "halving"
    """Search strategy. `"halving"`: all candidates run a quarter of the steps, then the best and the two below it run
    them all; `"grid"`: all candidates run all steps."""

    steps: int = 40
    """Steps of a full warm-up run; the paper says only "short"."""

    documents: int = 1000
    """Maximum number of pool documents encoded at each measurement; the paper does not say."""

    pairs: int = 50_000
    """Number of pairs (i, j), i != j, in the uniformity estimate (section 4)."""

    def _check(self) -> None:
        if not isinstance(self.rates, tuple) or not self.rates:
            raise ConfigError(f"rates must be a tuple of one learning rate or more. Got {self.rates!r} instead.")
        for rate in self.rates:
            check_number("rates", rate, above=0, most=1)
        check_choice("strategy", self.strategy, SEARCHES)
        self._check_numbers("steps", least=1, whole=True)
        self._check_numbers("documents", least=2, whole=True)
        self._check_numbers("pairs", least=1, whole=True)


@final
@dataclass(frozen=True, kw_only=True)
class TrainingConfig(SavedConfig):
    """Description-only training (description-only supervision, sections 3.1 and 4)."""

    objective: str = "both"
    """Contrastive direction: `"rows"` (eq. 1), `"columns"` (eq. 2) or `"both"` (eq. 3)."""

    temperature: float = 0.07
    """Divides the cosines, above 0 (section 3)."""

    learning_rate: float | str = "auto"
    """Learning rate, a number or how to choose one. `"base"`: the rate published for the encoder, or 2e-5;
    `"uniformity"`: chosen on the pool, or as `"base"` without one; `"auto"`: `"base"` if a rate is published, the
    encoder keeps its own pooling and the search has its defaults, else `"uniformity"`."""

    max_steps: int = 60
    """Maximum number of updates. Each is one sweep over all descriptions x verbalizers. The paper has 1,000, which were
    no better (docs/study.md)."""

    warmup: float = 0.5
    """Share of `max_steps` over which the learning rate rises linearly."""

    check_every: int = 10
    """Steps between two checks of the stopping rule."""

    patience: int = 10
    """Checks without improvement before training stops."""

    tolerance: float = 1e-5
    """Smallest decrease of the loss that counts as an improvement."""

    encoder_dropout: bool = False
    """Whether the encoder's own dropout is on in training. The paper does not say; off is faster and leaves nothing
    random."""

    weight_decay: float = 0.01
    """Weight decay of AdamW; the paper gives none, this is the optimizer's default."""

    descriptions_per_label: int | None = None
    """Maximum number of descriptions used per label. None: all."""

    freeze_layers: int = 0
    """Number of lower layers frozen, together with the word embeddings below them. 0: nothing is frozen."""

    lora_rank: int | None = None
    """Rank of low-rank adapters trained in place of the weights; needs the package peft. None: train the weights."""

    max_tokens_in_memory: int = 16_384
    """Maximum tokens whose activations are held at once; a larger sweep is split into chunks with the same gradient."""

    def _check(self) -> None:
        check_choice("objective", self.objective, OBJECTIVES)
        self._check_numbers("temperature", above=0)
        self._check_numbers("learning_rate", above=0, most=1, words=("auto", "uniformity", "base"))
        self._check_numbers("max_steps", least=1, whole=True)
        self._check_numbers("warmup", least=0, most=1)
        self._check_numbers("check_every", "patience", least=1, whole=True)
        self._check_numbers("tolerance", least=0)
        self._check_numbers("weight_decay", least=0)
        self._check_numbers("descriptions_per_label", least=1, whole=True, or_none=True)
        self._check_numbers("freeze_layers", least=0, whole=True)
        self._check_numbers("lora_rank", least=1, whole=True, or_none=True)
        if self.lora_rank is not None and self.freeze_layers:
            raise ConfigError(
                f"lora_rank and freeze_layers exclude each other. Got lora_rank={self.lora_rank} and "
                f"freeze_layers={self.freeze_layers}; leave one of them out."
            )
        self._check_numbers("max_tokens_in_memory", least=1, whole=True)
