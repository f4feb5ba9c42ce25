"""Settings for training a Gaussian head on a frozen encoder."""

from dataclasses import dataclass
from typing import final

from labelspace.checks import check_choice
from labelspace.config.saved import SavedConfig

EXTRACTORS = ("textcnn", "cls", "eos", "mean", "mlp", "attention")
CONTRASTIVES = ("label-wise", "self-supervised", "supervised", "none")


@final
@dataclass(frozen=True, kw_only=True)
class UncertaintyConfig(SavedConfig):
    """A Gaussian head on a frozen encoder (uncertainty-aware contrastive, sections 4 and 5.3)."""

    extractor: str = "textcnn"
    """How token states become features: `"textcnn"`, or one from the ablation of section 5.5: `"cls"`, `"eos"`,
    `"mean"`, `"mlp"`, `"attention"`."""

    uncertain: bool = True
    """Whether each text has a std from which vectors are sampled (UCL in table 3). False: each text is its mean."""

    contrastive: str = "label-wise"
    """Contrastive loss: `"label-wise"` (eq. 3), or one from the ablation of table 4: `"self-supervised"` (SimCSE),
    `"supervised"` (SupCon), `"none"`."""

    contrastive_weight: float = 0.9
    """Weight of the contrastive loss, lambda_LCL in eq. 6, 0 to 1. With TextCNN's learning rate it is the pair for
    embeddinggemma-300m (section 5.3), the paper's encoder nearest in size to ours. Qwen3 has 0.6 with 1e-4, F2LLM 0.7
    with 8e-4."""

    kl_weight: float = 1e-3
    """Weight of the KL divergence, lambda_KL in eq. 6; the best for all encoders in section 5.6. Here it weighs a sum
    over coordinates. The paper does not say whether its own is a sum or a mean; 1e-3 of a mean is 1e-3 / width here."""

    contrastive_temperature: float = 2.0
    """Divides the cosines of the contrastive loss, above 0; "fixed at 2.0" in section 5.3."""

    dropout: float = 0.5
    """Share of TextCNN's features that a training step sets to zero (section 5.3); other extractors have no dropout."""

    learning_rate: float | str = "auto"
    """Peak learning rate. `"auto"`: 8e-4 for TextCNN (two of three encoders in section 5.3; see `contrastive_weight`)
    and the MLP, 3e-3 for the others, which have few weights or none. Training rows chose 3e-3 for attention and the
    mean."""

    batch_size: int = 64
    """Texts per update (section 5.3)."""

    epochs: int | str = "auto"
    """Passes over the training texts. `"auto"`: 3 (section 5.3), raised to at most 30 to reach 400 updates: a few
    hundred rows need more than 3, and an epoch after the first encodes nothing."""

    warmup: float = 0.1
    """Share of the updates over which the learning rate rises linearly, before it falls linearly to 0; the paper gives
    no share."""

    weight_decay: float = 0.01
    """Weight decay of AdamW; the paper gives none, this is the optimizer's default."""

    validation: float | str = "auto"
    """Share of the labelled rows held out to fit the temperature and to set limits of uncertainty; 0: none. `"auto"`:
    0.1, or none with fewer than 20 rows per label on average or 200 in all."""

    cache_bytes: int = 10 * 1024**3
    """Maximum size of the folder of token states in bytes, 10 GiB by default; the least recently used are deleted
    first."""

    def _check(self) -> None:
        check_choice("extractor", self.extractor, EXTRACTORS)
        check_choice("contrastive", self.contrastive, CONTRASTIVES)
        self._check_numbers("contrastive_weight", least=0, most=1)
        self._check_numbers("kl_weight", "weight_decay", least=0)
        self._check_numbers("contrastive_temperature", above=0)
        self._check_numbers("dropout", least=0, most=0.99)
        self._check_numbers("learning_rate", above=0, most=1, words=("auto",))
        self._check_numbers("cache_bytes", least=0, whole=True)
        self._check_numbers("batch_size", least=1, whole=True)
        self._check_numbers("epochs", least=1, whole=True, words=("auto",))
        self._check_numbers("warmup", least=0, most=1)
        self._check_numbers("validation", least=0, most=0.9, words=("auto",))
