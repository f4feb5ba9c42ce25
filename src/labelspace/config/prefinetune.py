"""Moving an encoder into a domain."""

from dataclasses import dataclass
from typing import final

from labelspace.checks import check_choice, check_number
from labelspace.config.saved import SavedConfig

CENTRES = ("median", "mean")


@final
@dataclass(frozen=True, kw_only=True)
class PrefinetuneConfig(SavedConfig):
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
    """Pairs of one update, two at least, sources mixed freely (appendix B and section 3.2)."""

    epochs: int = 1
    """Times that each pair is seen (appendix B)."""

    warmup: float = 0.0
    """Share of the updates over which the rate rises, before it falls along a cosine to 0. Appendix B names the cosine
    alone. The first update of a rise has rate 0, which a run of few updates can ill afford."""

    weight_decay: float = 0.01
    """AdamW's; the paper is silent, this is the default of its optimizer."""

    max_tokens: int | None = None
    """Tokens of a text that are read in training; None: 1,024, or the encoder's limit if that is smaller (appendix
    B)."""

    per_source: int | None = None
    """At most so many distinct pairs of each source, drawn by the seed; None: all of them."""

    held_aside: float = 0.1
    """Share of each source, 500 pairs in all at most, that is not trained on, to measure the space by; 0 trains on
    all, as the paper does, and measures by the training pairs."""

    encoder_dropout: bool = True
    """The encoder's own dropout, as fine-tuning does; the paper is silent. Never in the reference."""

    max_tokens_in_memory: int = 16_384
    """Tokens whose activations may be held at once; a larger batch is cut into chunks with the same gradient."""

    def __post_init__(self) -> None:
        self._keep_plain()
        for name in ("regularizer_weight", "gamma", "weight_decay"):
            check_number(name, getattr(self, name), least=0)
        check_number("rho", self.rho, above=0, most=1)
        check_number("eta", self.eta, least=0, most=1)
        check_choice("centre", self.centre, CENTRES)
        check_number("temperature", self.temperature, above=0)
        check_number("learning_rate", self.learning_rate, above=0, most=1)
        check_number("warmup", self.warmup, least=0, most=0.99)
        check_number("held_aside", self.held_aside, least=0, most=0.5)
        # A pair alone in its batch has nothing to be told from: its main loss is 0, whatever the encoder does.
        check_number("batch_size", self.batch_size, least=2, whole=True)
        for name in ("epochs", "max_tokens_in_memory"):
            check_number(name, getattr(self, name), least=1, whole=True)
        for name, least in (("max_tokens", 4), ("per_source", 1)):
            if getattr(self, name) is not None:
                check_number(name, getattr(self, name), least=least, whole=True)
        check_choice("encoder_dropout", self.encoder_dropout, (False, True))
