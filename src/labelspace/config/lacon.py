"""Training on labelled texts, with labels as anchors."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, final

from labelspace.checks import check_choice, check_number, plain
from labelspace.config.saved import SavedConfig
from labelspace.errors import ConfigError

LACON_OBJECTIVES = ("lacon", "cross-entropy", "cross-entropy+self-contrastive", "cross-entropy+supervised-contrastive")
LACON_HEADS = ("vanilla", "fusion", "leam", "lsan")
LABEL_STARTS = ("descriptions", "random")


@final
@dataclass(frozen=True, kw_only=True)
class LaConConfig(SavedConfig):
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
    2.1. A label without a description stands where its verbalizer does; one whose descriptions the rows contradict
    starts at its rows alone; where labels say nothing, all start at random: codes, names
    of pairs, and labels that only `y` names."""

    description_weight: float | str = "auto"
    """Share of the prior in the loss, 0 to 1: the contrastive loss of the labels' descriptions, as if they were texts,
    counted as often as a text counts in the objective. `"auto"`: of each label 8 / (8 + its labelled rows), and 0 where
    that is below 0.05 or the rows contradict its descriptions, which are drawn in proportion; the mean over labels is
    the share, by which the head's learning rate is lowered, and the encoder's twice. Of labels that say nothing (see
    `init`) it is 0; a number says that they mean something. Not in the paper; 0 takes it out."""

    description_steps: int = 60
    """Updates of description-only training before the labelled rows come, where the prior has a weight, and instead of
    them where no row is labelled. 0: none, for an encoder that has been trained on these descriptions."""

    learning_rate: float | str = "auto"
    """Highest rate of the encoder. `"auto"`: 1e-4 up to a width of 384, and less in proportion for a wider one, 5e-5
    at 768. The paper searches 1e-5 to 3e-5 (section 3.1), for BERT of 768 and thousands of updates: dozens to hundreds
    move a small encoder too little at these (docs/LOG.md)."""

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
    are fewer than 20 rows per label or 2,000 in all, because fewer than 100 held-out rows cannot tell epochs apart; 0:
    none, all epochs are run."""

    patience: int = 3
    """Epochs without improvement on the held-out rows after which training stops; the paper is silent."""

    class_weight: str | Mapping[str, float] | None = field(default=None, hash=False)
    """How often a row is drawn: None, once an epoch; a mapping from label names to weights, in proportion to its
    label's weight (1 where it has none); `"balanced"`, so that all labels come equally often. An epoch stays as long.
    It decides which rows are drawn, and multiplies no loss: in eq. 5 a text is a term of one label and a negative of
    all others, so a weight of its own would not say what it does in cross-entropy."""

    encoder_dropout: bool = True
    """The encoder's own dropout in training, as fine-tuning does."""

    max_tokens_in_memory: int = 16_384
    """Tokens whose activations may be held at once; a larger batch is cut into chunks with the same gradient."""

    def __post_init__(self) -> None:
        self._keep_plain()
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
        for name in ("description_weight", "validation", "learning_rate"):
            value = getattr(self, name)
            if isinstance(value, str) and value != "auto":
                raise ConfigError(f"{name} must be a number or 'auto'. Got {value!r} instead.")
        for name, most in (("description_weight", 1), ("validation", 0.9)):
            if getattr(self, name) != "auto":
                check_number(name, getattr(self, name), least=0, most=most)
        if self.learning_rate != "auto":
            check_number("learning_rate", self.learning_rate, above=0, most=1)
        check_number("head_learning_rate", self.head_learning_rate, above=0, most=1)
        for name in ("batch_size", "epochs", "patience", "max_tokens_in_memory"):
            check_number(name, getattr(self, name), least=1, whole=True)
        check_number("description_steps", self.description_steps, least=0, whole=True)
        check_number("warmup", self.warmup, least=0, most=1)
        if isinstance(self.class_weight, Mapping):
            weights = {str(name).strip(): plain(weight) for name, weight in self.class_weight.items()}
            for name, weight in weights.items():
                check_number(f"class_weight[{name!r}]", weight, above=0)
            object.__setattr__(self, "class_weight", weights)
        else:
            check_choice("class_weight", self.class_weight, (None, "balanced"))
        check_choice("encoder_dropout", self.encoder_dropout, (False, True))
        self._check_together()

    @staticmethod
    def search_space(width: int) -> dict[str, list[Any]]:
        """Return the grid of section 4.4 for `GridSearchCV`: temperature, weight of the regularizer, heads.

        Args:
            width: of the encoder's vectors, which the heads must divide.

        Example:
            >>> grid = LaConConfig.search_space(width=384)
            >>> grid["temperature"][:3], grid["config"][0], len(grid["config"])
            ([0.05, 0.1, 0.15], {'regularizer_weight': 0.1, 'heads': 1}, 90)
        """
        check_number("width", width, least=1, whole=True)
        return {
            "temperature": [round(0.05 * step, 2) for step in range(1, 11)],
            "config": [
                {"regularizer_weight": round(0.1 * step, 1), "heads": heads}
                for step in range(1, 11)
                for heads in range(1, 25)
                if width % heads == 0
            ],
        }

    def _check_together(self) -> None:
        if self.head in ("leam", "lsan") and self.objective != "cross-entropy":
            raise ConfigError(
                f"head {self.head!r} gives logits and goes with objective 'cross-entropy' only. "
                f"Got objective {self.objective!r}; choose that one, or head 'vanilla' or 'fusion'."
            )
        if self.objective == "cross-entropy+self-contrastive" and not self.encoder_dropout:
            raise ConfigError(
                "objective 'cross-entropy+self-contrastive' needs encoder_dropout=True: the two views of a text "
                "differ by it alone. Got encoder_dropout=False."
            )
