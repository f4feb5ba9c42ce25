"""Settings for adapting an encoder to a domain."""

from dataclasses import dataclass
from typing import final

from labelspace.checks import check_choice
from labelspace.config.saved import SavedConfig

CENTRES = ("median", "mean")


@final
@dataclass(frozen=True, kw_only=True)
class PrefinetuneConfig(SavedConfig):
    """Adapting an encoder to a domain without damaging its geometry (REZE, section 3 and appendix B)."""

    regularizer_weight: float = 1.0
    """Weight of the regularizer, alpha in eq. 10; 0 is plain pre-finetuning. Section 5.1 finds 0.5 to 1 best and takes
    1."""

    rho: float = 0.99
    """Share of the variance that the active directions hold, above 0 to 1 (eq. 3)."""

    gamma: float = 1.0
    """Scale of the threshold and of the bands, 0 or more (eq. 4 and 5)."""

    eta: float = 0.7
    """Strength of the shrinkage, 0 to 1 (eq. 6; Figure 2)."""

    centre: str = "median"
    """What sources are shrunk towards: the `"median"` of their means (section 3.1), or the `"mean"`, the alternative in
    Table 3."""

    temperature: float = 0.05
    """Divides the cosines of the main loss, above 0 (eq. 9)."""

    learning_rate: float = 1e-4
    """Peak learning rate (appendix B)."""

    batch_size: int = 8
    """Pairs per update, 2 or more, with sources mixed freely (appendix B and section 3.2)."""

    epochs: int = 1
    """Passes over the training pairs (appendix B)."""

    warmup: float = 0.0
    """Share of the updates over which the learning rate rises, before it falls along a cosine to 0. Appendix B names
    only the cosine. The first update of a rise has rate 0, which is costly in a run of few updates."""

    weight_decay: float = 0.01
    """Weight decay of AdamW; the paper gives none, this is the optimizer's default."""

    max_tokens: int | None = None
    """Maximum tokens read from a text in training, 4 or more. None: 1,024, or the encoder's limit if that is smaller
    (appendix B)."""

    per_source: int | None = None
    """Maximum number of distinct pairs per source, drawn with the seed. None: all."""

    validation: float = 0.1
    """Share of each source held out to measure the space, 0 to 0.5, at most 500 pairs in all. 0: train on all, as the
    paper does, and measure on the training pairs."""

    encoder_dropout: bool = True
    """Whether the encoder's own dropout is on in training, as in fine-tuning; it is always off in the reference. The
    paper does not say."""

    max_tokens_in_memory: int = 16_384
    """Maximum tokens whose activations are held at once; a larger batch is split into chunks with the same gradient."""

    def _check(self) -> None:
        self._check_numbers("regularizer_weight", "gamma", "weight_decay", least=0)
        self._check_numbers("rho", above=0, most=1)
        self._check_numbers("eta", least=0, most=1)
        check_choice("centre", self.centre, CENTRES)
        self._check_numbers("temperature", above=0)
        self._check_numbers("learning_rate", above=0, most=1)
        self._check_numbers("warmup", least=0, most=0.99)
        self._check_numbers("validation", least=0, most=0.5)
        # A pair alone in its batch has no negatives: its main loss is always 0.
        self._check_numbers("batch_size", least=2, whole=True)
        self._check_numbers("epochs", "max_tokens_in_memory", least=1, whole=True)
        self._check_numbers("max_tokens", least=4, whole=True, or_none=True)
        self._check_numbers("per_source", least=1, whole=True, or_none=True)
