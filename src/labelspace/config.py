"""Frozen, keyword-only configurations: a run is one value that can be printed, saved and loaded.

Every field is checked in `__post_init__`; the defaults here are the defaults of the estimators
(a contract test compares them).
"""

from dataclasses import asdict, dataclass, fields
from typing import Any, Self, final

from labelspace.checks import check_choice, check_keys, check_number
from labelspace.errors import ConfigError

PAPER_LEARNING_RATES = tuple(sorted(factor * power for factor in (1.0, 3.0, 5.0) for power in (1e-4, 1e-5, 1e-6)))
FALLBACK_LEARNING_RATE = 2e-5

ANCHORS = ("verbalizer", "descriptions", "both")
DEFAULT_ANCHOR = "descriptions"  # measured best on average, see docs/benchmarks.md; the paper takes "verbalizer"
OBJECTIVES = ("both", "rows", "columns")
DTYPES = ("auto", "float32", "bfloat16")
SEARCHES = ("halving", "grid")
LACON_OBJECTIVES = ("lacon", "cross-entropy", "cross-entropy+self-contrastive", "cross-entropy+supervised-contrastive")
LACON_HEADS = ("vanilla", "fusion", "leam", "lsan")
LABEL_STARTS = ("descriptions", "random")
EXTRACTORS = ("textcnn", "cls", "eos", "mean", "mlp", "attention")
CENTRES = ("median", "mean")
CONTRASTIVES = ("label-wise", "self-supervised", "supervised", "none")


class _Saved:
    """Dictionary in, dictionary out, for the dataclasses below."""

    def to_dict(self) -> dict[str, Any]:
        """Return the fields as plain values, ready for JSON."""
        values = asdict(self)  # pyright: ignore[reportArgumentType]
        return {key: list(value) if isinstance(value, tuple) else value for key, value in values.items()}

    @classmethod
    def from_dict(cls, values: dict[str, Any]) -> Self:
        """Build the configuration from `to_dict`'s result; an unknown key raises ConfigError."""
        names = [field.name for field in fields(cls)]  # pyright: ignore[reportArgumentType]
        check_keys(cls.__name__, values, names)
        return cls(**{key: tuple(value) if isinstance(value, list) else value for key, value in values.items()})


@final
@dataclass(frozen=True, kw_only=True)
class EncodingConfig(_Saved):
    """How texts become vectors."""

    dtype: str = "auto"
    """`"auto"`: bfloat16 where the processor computes in it natively, else float32."""

    device: str = "auto"
    """A torch device; `"auto"` takes a GPU where there is one."""

    token_budget: int = 1024
    """Most tokens, padding counted in, of one batch when only vectors are wanted."""

    max_tokens: int | None = None
    """Tokens of a text that are read; None: as many as the encoder was made for."""

    def __post_init__(self) -> None:
        check_choice("dtype", self.dtype, DTYPES)
        check_number("token_budget", self.token_budget, least=1, whole=True)
        if self.max_tokens is not None:
            check_number("max_tokens", self.max_tokens, least=4, whole=True)
        if not isinstance(self.device, str) or not self.device:
            raise ConfigError(f"device must be 'auto' or a torch device such as 'cpu'. Got {self.device!r} instead.")


@final
@dataclass(frozen=True, kw_only=True)
class SearchConfig(_Saved):
    """How the learning rate is chosen by uniformity (description-only supervision, section 3.1)."""

    rates: tuple[float, ...] = PAPER_LEARNING_RATES
    """The candidates: {1, 3, 5} x {1e-4, 1e-5, 1e-6}, the paper's grid."""

    strategy: str = "halving"
    """`"halving"`: all run a quarter of the steps, the best three all of them; `"grid"`: all run all of them."""

    steps: int = 40
    """Steps of a full warm-up run. The paper says "short" and no more."""

    documents: int = 1000
    """Documents of the pool that are encoded at each measurement; the paper does not say."""

    pairs: int = 50_000
    """Pairs (i, j), i != j, in the uniformity estimate (section 4)."""

    def __post_init__(self) -> None:
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
class TrainingConfig(_Saved):
    """Description-only training (description-only supervision, sections 3.1 and 4)."""

    objective: str = "both"
    """`"rows"` (eq. 1), `"columns"` (eq. 2) or `"both"` (eq. 3)."""

    temperature: float = 0.07
    """Divides the cosines (section 3)."""

    learning_rate: float | str = "uniformity"
    """A rate; `"uniformity"`: chosen on the pool, the encoder's base rate without one; `"base"`: always that."""

    max_steps: int = 1000
    """Most optimizer updates; one update is one sweep over all descriptions x verbalizers."""

    warmup: float = 0.5
    """Share of `max_steps` over which the learning rate rises linearly."""

    check_every: int = 10
    """Steps between two looks at the stopping rule."""

    patience: int = 10
    """Looks without improvement after which training stops."""

    tolerance: float = 1e-5
    """Least fall of the loss that counts as improvement."""

    dropout: bool = False
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
        check_choice("objective", self.objective, OBJECTIVES)
        check_number("temperature", self.temperature, above=0)
        if isinstance(self.learning_rate, str):
            check_choice("learning_rate", self.learning_rate, ("uniformity", "base"))
        else:
            check_number("learning_rate", self.learning_rate, above=0, most=1)
        check_number("max_steps", self.max_steps, least=1, whole=True)
        check_number("warmup", self.warmup, least=0, most=1)
        check_number("check_every", self.check_every, least=1, whole=True)
        check_number("patience", self.patience, least=1, whole=True)
        check_number("tolerance", self.tolerance, least=0)
        check_choice("dropout", self.dropout, (False, True))
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


@final
@dataclass(frozen=True, kw_only=True)
class LaConConfig(_Saved):
    """Training on labelled texts: LaCon, and the baselines it is measured against (LaCon, sections 2 to 4)."""

    objective: str = "lacon"
    """`"lacon"` (eq. 7), or a baseline of section 3.2: `"cross-entropy"`, `"cross-entropy+self-contrastive"` (two
    dropout views of each text), `"cross-entropy+supervised-contrastive"`."""

    head: str = "vanilla"
    """`"vanilla"`: the encoder's own vector of a text; `"fusion"`: words weighed by the labels (eq. 9); `"leam"` and
    `"lsan"`: label-embedding baselines, for `"cross-entropy"` only."""

    projection: bool | str = "auto"
    """The projection head g of eq. 1; without it section 3.4 finds 0.2 to 1.8 points less. `"auto"`: as there where
    label embeddings start at random, and none where they start at the descriptions, because the texts are near their
    labels by then and g only adds ways to leave (docs/LOG.md). `"leam"` and `"lsan"` have none."""

    heads: int | None = None
    """Slices of the vectors in eq. 4; they must divide the width. None: the largest divisor up to 6, the best number
    in section 4.4."""

    temperature: float = 0.1
    """Divides the cosines; section 4.4 recommends 0.1 to 0.2."""

    regularizer_weight: float = 0.1
    """Of eq. 6 in eq. 7, lambda, searched from 0.1 to 1.0 in section 4.4; of LEAM's own regularizer with `"leam"`."""

    instance_weight: float = 1.0
    """Of eq. 4 in eq. 7; with a baseline, of its cross-entropy."""

    label_weight: float = 1.0
    """Of eq. 5 in eq. 7; with a contrastive baseline, of its contrastive part."""

    init: str = "descriptions"
    """Where the label embeddings start: `"descriptions"`, at the mean of the label's descriptions and its rows, the
    descriptions counting as 8 rows, with the projection, if there is one, as the identity; or `"random"`, as in section
    2.1. Labels that are known from y alone, or that the rows contradict, start at random in any case."""

    description_weight: float | str = "auto"
    """Share of the prior in the loss, 0 to 1: the contrastive loss of the labels' descriptions, as if they were texts,
    counted as often as a text counts in the objective. `"auto"`: 8 / (8 + labelled rows per label), and 0 where that
    is below 0.05 or the rows contradict the descriptions; both learning rates are then lowered by the same share. Not
    in the paper; 0 takes it out."""

    description_steps: int = 60
    """Updates of description-only training before the labelled rows come, where the prior has a weight, and instead of
    them where no row is labelled. 0: none, for an encoder that has been trained on these descriptions."""

    learning_rate: float = 2e-5
    """Highest rate of the encoder; the paper searches 1e-5, 2e-5 and 3e-5 (section 3.1)."""

    head_learning_rate: float = 1e-4
    """Highest rate of what stands on the encoder. The paper has one rate for all; its thousands of updates bring new
    weights to their place at 2e-5, the few dozen that a few labels make do not."""

    batch_size: int = 16
    """Texts of one update; the paper searches 8 to 96 (section 3.1)."""

    epochs: int = 10
    """Times that each text is seen (section 3.1; 20 with 20 texts of each label, section 4.1)."""

    max_steps: int | None = None
    """At most so many updates; the schedule then covers exactly these. None: as many as the epochs make."""

    warmup: float = 0.06
    """Share of the updates over which the rates rise linearly, before they fall linearly to 0 (section 3.1)."""

    weight_decay: float = 0.01
    """AdamW's; the paper is silent, this is the default of its optimizer."""

    validation: float | str = "auto"
    """Share of the labelled rows that is held out to stop early. `"auto"`: 0.05 (section 3.1), and none where there
    are fewer than 20 rows per label; 0: none, all epochs are run."""

    patience: int = 3
    """Epochs without improvement on the held-out rows after which training stops; the paper is silent."""

    class_weight: str | None = None
    """`"balanced"`: every label is drawn equally often; None: as often as it has rows."""

    dropout: bool = True
    """The encoder's own dropout in training, as fine-tuning does."""

    max_tokens_in_memory: int = 16_384
    """Tokens whose activations may be held at once; a larger batch is cut into chunks with the same gradient."""

    def __post_init__(self) -> None:
        check_choice("objective", self.objective, LACON_OBJECTIVES)
        check_choice("head", self.head, LACON_HEADS)
        check_choice("projection", self.projection, (False, True, "auto"))
        for name in ("heads", "max_steps"):
            if getattr(self, name) is not None:
                check_number(name, getattr(self, name), least=1, whole=True)
        check_number("temperature", self.temperature, above=0)
        for name in ("regularizer_weight", "instance_weight", "label_weight", "weight_decay"):
            check_number(name, getattr(self, name), least=0)
        check_choice("init", self.init, LABEL_STARTS)
        for name, most in (("description_weight", 1), ("validation", 0.9)):
            if isinstance(getattr(self, name), str):
                check_choice(name, getattr(self, name), ("auto",))
            else:
                check_number(name, getattr(self, name), least=0, most=most)
        for name in ("learning_rate", "head_learning_rate"):
            check_number(name, getattr(self, name), above=0, most=1)
        for name in ("batch_size", "epochs", "patience", "max_tokens_in_memory"):
            check_number(name, getattr(self, name), least=1, whole=True)
        check_number("description_steps", self.description_steps, least=0, whole=True)
        check_number("warmup", self.warmup, least=0, most=1)
        check_choice("class_weight", self.class_weight, (None, "balanced"))
        check_choice("dropout", self.dropout, (False, True))
        self._check_together()

    def _check_together(self) -> None:
        if self.head in ("leam", "lsan") and self.objective != "cross-entropy":
            raise ConfigError(
                f"head {self.head!r} gives logits and goes with objective 'cross-entropy' only. "
                f"Got objective {self.objective!r}; choose that one, or head 'vanilla' or 'fusion'."
            )
        if self.objective == "cross-entropy+self-contrastive" and not self.dropout:
            raise ConfigError(
                "objective 'cross-entropy+self-contrastive' needs dropout=True: the two views of a text differ by it "
                "alone. Got dropout=False."
            )


@final
@dataclass(frozen=True, kw_only=True)
class UncertaintyConfig(_Saved):
    """A Gaussian head on a frozen encoder (uncertainty-aware contrastive, sections 4 and 5.3)."""

    extractor: str = "textcnn"
    """How token states become features: `"textcnn"`, or one of the ablation of section 5.5: `"cls"`, `"eos"`, `"mean"`,
    `"mlp"`, `"attention"`."""

    uncertain: bool = True
    """Whether there is a std and vectors are sampled (UCL in table 3); False: each text is its mean."""

    contrastive: str = "label-wise"
    """Contrastive part: `"label-wise"` (eq. 3), or one of the ablation of table 4: `"self-supervised"` (SimCSE),
    `"supervised"` (SupCon), `"none"`."""

    contrastive_weight: float = 0.6
    """lambda_LCL in eq. 6, 0 to 1; 0.6, 0.7 and 0.9 for the three encoders of section 5.3."""

    kl_weight: float = 1e-3
    """lambda_KL in eq. 6, of a sum over coordinates; best for all encoders in section 5.6."""

    contrastive_temperature: float = 2.0
    """Divides the cosines of the contrastive part; "fixed at 2.0" in section 5.3."""

    dropout: float = 0.5
    """Share of the features that a training step sets to zero (section 5.3)."""

    learning_rate: float = 8e-4
    """Highest rate; 1e-4 for Qwen3 and 8e-4 for the two other encoders in section 5.3."""

    batch_size: int = 64
    """Texts of one update (section 5.3)."""

    epochs: int | str = "auto"
    """Times that each text is seen. `"auto"`: 3 (section 5.3), and more where these would make fewer than 400 updates,
    up to 30: an epoch after the first costs next to nothing, and a few hundred rows need more than 3."""

    warmup: float = 0.1
    """Share of the updates over which the rate rises linearly, before it falls linearly to 0; the paper names no
    share."""

    weight_decay: float = 0.01
    """AdamW's; the paper is silent, this is the default of its optimizer."""

    validation: float | str = "auto"
    """Share of the labelled rows held out to set the temperature of probabilities and limits of uncertainty. `"auto"`:
    0.1, and none where there are fewer than 20 rows per label; 0: none."""

    def __post_init__(self) -> None:
        check_choice("extractor", self.extractor, EXTRACTORS)
        check_choice("uncertain", self.uncertain, (False, True))
        check_choice("contrastive", self.contrastive, CONTRASTIVES)
        check_number("contrastive_weight", self.contrastive_weight, least=0, most=1)
        for name in ("kl_weight", "weight_decay"):
            check_number(name, getattr(self, name), least=0)
        check_number("contrastive_temperature", self.contrastive_temperature, above=0)
        check_number("dropout", self.dropout, least=0, most=0.99)
        check_number("learning_rate", self.learning_rate, above=0, most=1)
        check_number("batch_size", self.batch_size, least=1, whole=True)
        if isinstance(self.epochs, str):
            check_choice("epochs", self.epochs, ("auto",))
        else:
            check_number("epochs", self.epochs, least=1, whole=True)
        check_number("warmup", self.warmup, least=0, most=1)
        if isinstance(self.validation, str):
            check_choice("validation", self.validation, ("auto",))
        else:
            check_number("validation", self.validation, least=0, most=0.9)


@final
@dataclass(frozen=True, kw_only=True)
class PrefinetuneConfig(_Saved):
    """Moving an encoder into a domain without breaking it (REZE, section 3 and appendix B)."""

    regularizer_weight: float = 1.0
    """Of the regularizer in eq. 10, alpha; section 5.1 finds 0.5 to 1 best and takes 1. 0 is plain pre-finetuning."""

    rho: float = 0.99
    """Share of the variance that the active directions hold (eq. 3)."""

    gamma: float = 1.0
    """Scale of the threshold and of the bands (eq. 4 and 5)."""

    eta: float = 0.7
    """Strength of the shrinkage, 0 to 1 (eq. 6; Figure 2)."""

    centre: str = "median"
    """What sources are shrunk towards: the `"median"` of their means (section 3.1), or the `"mean"`, the rival of
    Table 3."""

    temperature: float = 0.05
    """Divides the cosines of the main loss (eq. 9)."""

    learning_rate: float = 1e-4
    """Highest rate (appendix B)."""

    batch_size: int = 8
    """Pairs of one update, sources mixed freely (appendix B and section 3.2)."""

    epochs: int = 1
    """Times that each pair is seen (appendix B)."""

    warmup: float = 0.1
    """Share of the updates over which the rate rises, before it falls along a cosine to 0. Appendix B names the cosine
    and no warm-up; 0 leaves it out."""

    weight_decay: float = 0.01
    """AdamW's; the paper is silent, this is the default of its optimizer."""

    max_tokens: int | None = None
    """Tokens of a text that are read in training; None: 1,024, or the encoder's limit if that is smaller (appendix
    B)."""

    per_source: int | None = None
    """At most so many pairs of each source, drawn by the seed; None: all, as in the paper."""

    dropout: bool = True
    """The encoder's own dropout, as fine-tuning does; the paper is silent. Never in the reference."""

    max_tokens_in_memory: int = 16_384
    """Tokens whose activations may be held at once; a larger batch is cut into chunks with the same gradient."""

    def __post_init__(self) -> None:
        for name in ("regularizer_weight", "gamma", "weight_decay"):
            check_number(name, getattr(self, name), least=0)
        check_number("rho", self.rho, above=0, most=1)
        check_number("eta", self.eta, least=0, most=1)
        check_choice("centre", self.centre, CENTRES)
        check_number("temperature", self.temperature, above=0)
        check_number("learning_rate", self.learning_rate, above=0, most=1)
        check_number("warmup", self.warmup, least=0, most=0.99)
        for name in ("batch_size", "epochs", "max_tokens_in_memory"):
            check_number(name, getattr(self, name), least=1, whole=True)
        for name, least in (("max_tokens", 4), ("per_source", 1)):
            if getattr(self, name) is not None:
                check_number(name, getattr(self, name), least=least, whole=True)
        check_choice("dropout", self.dropout, (False, True))


CONFIGS = (EncodingConfig, SearchConfig, TrainingConfig, LaConConfig, UncertaintyConfig, PrefinetuneConfig)
