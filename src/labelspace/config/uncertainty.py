"""Training a Gaussian head on a frozen encoder."""

from dataclasses import dataclass
from typing import final

from labelspace.checks import check_choice, check_number
from labelspace.config.saved import SavedConfig

EXTRACTORS = ("textcnn", "cls", "eos", "mean", "mlp", "attention")
CONTRASTIVES = ("label-wise", "self-supervised", "supervised", "none")


@final
@dataclass(frozen=True, kw_only=True)
class UncertaintyConfig(SavedConfig):
    """A Gaussian head on a frozen encoder (uncertainty-aware contrastive, sections 4 and 5.3)."""

    extractor: str = "textcnn"
    """How token states become features: `"textcnn"`, or one of the ablation of section 5.5: `"cls"`, `"eos"`, `"mean"`,
    `"mlp"`, `"attention"`."""

    uncertain: bool = True
    """Whether there is a std and vectors are sampled (UCL in table 3); False: each text is its mean."""

    contrastive: str = "label-wise"
    """Contrastive part: `"label-wise"` (eq. 3), or one of the ablation of table 4: `"self-supervised"` (SimCSE),
    `"supervised"` (SupCon), `"none"`."""

    contrastive_weight: float = 0.9
    """lambda_LCL in eq. 6, 0 to 1. With TextCNN's learning rate it is the pair of embeddinggemma-300m (section 5.3), of
    the paper's encoders the nearest to ours in size; Qwen3 has 0.6 with 1e-4, F2LLM 0.7 with 8e-4."""

    kl_weight: float = 1e-3
    """lambda_KL in eq. 6; best for all encoders in section 5.6. Here it weighs a sum over coordinates; the paper does
    not say whether its own is of a sum or of a mean, and 1e-3 of a mean is 1e-3 over the width here."""

    contrastive_temperature: float = 2.0
    """Divides the cosines of the contrastive part; "fixed at 2.0" in section 5.3."""

    dropout: float = 0.5
    """Share of TextCNN's features that a training step sets to zero (section 5.3); other extractors have none."""

    learning_rate: float | str = "auto"
    """Highest rate. `"auto"`: 8e-4 for TextCNN (section 5.3, two of three encoders; see `contrastive_weight`) and for
    the MLP, 3e-3 for the others, which have few weights or none: what train rows chose for attention and the mean."""

    batch_size: int = 64
    """Texts of one update (section 5.3)."""

    epochs: int | str = "auto"
    """Times that each text is seen. `"auto"`: 3 (section 5.3), and more where these would make fewer than 400 updates,
    up to 30: an epoch after the first encodes nothing, and a few hundred rows need more than 3."""

    warmup: float = 0.1
    """Share of the updates over which the rate rises linearly, before it falls linearly to 0; the paper names no
    share."""

    weight_decay: float = 0.01
    """AdamW's; the paper is silent, this is the default of its optimizer."""

    validation: float | str = "auto"
    """Share of the labelled rows held out to set the temperature of probabilities and limits of uncertainty. `"auto"`:
    0.1, and none where there are fewer than 20 rows per label or 200 in all; 0: none."""

    cache_bytes: int = 10 * 1024**3
    """Most bytes of the folder of token states, 10 GiB; the least recently used go first."""

    def __post_init__(self) -> None:
        self._keep_plain()
        check_choice("extractor", self.extractor, EXTRACTORS)
        check_choice("uncertain", self.uncertain, (False, True))
        check_choice("contrastive", self.contrastive, CONTRASTIVES)
        check_number("contrastive_weight", self.contrastive_weight, least=0, most=1)
        for name in ("kl_weight", "weight_decay"):
            check_number(name, getattr(self, name), least=0)
        check_number("contrastive_temperature", self.contrastive_temperature, above=0)
        check_number("dropout", self.dropout, least=0, most=0.99)
        if isinstance(self.learning_rate, str):
            check_choice("learning_rate", self.learning_rate, ("auto",))
        else:
            check_number("learning_rate", self.learning_rate, above=0, most=1)
        check_number("cache_bytes", self.cache_bytes, least=0, whole=True)
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
