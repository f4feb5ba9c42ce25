"""Settings for training on labelled texts with labels as anchors."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, final

from labelspace.checks import as_python, check_choice, check_number
from labelspace.config.saved import SavedConfig
from labelspace.errors import ConfigError

LACON_OBJECTIVES = ("lacon", "cross-entropy", "cross-entropy+self-contrastive", "cross-entropy+supervised-contrastive")
LACON_HEADS = ("vanilla", "fusion", "leam", "lsan")
LABEL_STARTS = ("descriptions", "random")


@final
@dataclass(frozen=True, kw_only=True)
class LaConConfig(SavedConfig):
    """Training on labelled texts with LaCon or one of its baselines (LaCon, sections 2 to 4)."""

    objective: str = "lacon"
    """Training objective. `"lacon"` (eq. 7), or a baseline of section 3.2: `"cross-entropy"`,
    `"cross-entropy+self-contrastive"` (two dropout views of each text), `"cross-entropy+supervised-contrastive"`."""

    head: str = "vanilla"
    """How a text is compared with the labels. `"vanilla"`: by the encoder's own vector; `"fusion"`: by words weighted
    by the labels (eq. 9); `"leam"` and `"lsan"`: label-embedding baselines, only with `"cross-entropy"`."""

    projection_head: bool | str = "auto"
    """Whether to train the projection head g of eq. 1; section 3.4 loses 0.2 to 1.8 points without it. `"auto"`: only
    if the label embeddings start at random. From descriptions, the texts start near their labels and g only adds ways
    to move away (docs/LOG.md). `"leam"` and `"lsan"` have none."""

    heads: int | None = None
    """Number of slices of each vector in eq. 4; it must divide the width. None: the largest divisor up to 6, the best
    number in section 4.4."""

    temperature: float = 0.1
    """Divides the cosines, above 0; section 4.4 recommends 0.1 to 0.2."""

    regularizer_weight: float = 0.1
    """Weight of the regularizer, lambda in eq. 7; section 4.4 searches 0.1 to 1.0. With `"leam"`: the weight of its own
    regularizer."""

    instance_weight: float = 1.0
    """Weight of eq. 4 in eq. 7; with a baseline, the weight of its cross-entropy."""

    label_weight: float = 1.0
    """Weight of eq. 5 in eq. 7; with a contrastive baseline, the weight of its contrastive loss."""

    init: str = "descriptions"
    """Initial label embeddings. `"descriptions"`: the mean of a label's rows and its descriptions, which count as 8
    rows; the projection, if any, starts as the identity. `"random"`: as in section 2.1. A label without a description
    uses its verbalizer; one whose rows contradict its descriptions uses its rows alone. If the labels carry no meaning
    (codes, names of pairs, labels that only `y` names), all start at random."""

    description_weight: float | str = "auto"
    """Share of the description prior in the loss, 0 to 1; 0 removes it. The prior is the contrastive loss of the
    labels' descriptions, treated as texts; it is not in the paper. `"auto"`: the mean over labels of 8 / (8 + labelled
    rows), in which a label counts 0 if its value is below 0.05 or its rows contradict its descriptions; descriptions
    are drawn in proportion. This share lowers the head's learning rate once and the encoder's twice. If the labels
    carry no meaning (see `init`), `"auto"` is 0, and a number overrides that."""

    description_steps: int = 60
    """Updates of description-only training before training on labelled rows, if the prior has a weight, or instead of
    it, if no row is labelled. 0: none, for an encoder already trained on these descriptions."""

    learning_rate: float | str = "auto"
    """Peak learning rate of the encoder. `"auto"`: 1e-4 up to a width of 384, and in inverse proportion to the width
    above it (5e-5 at 768). The paper searches 1e-5 to 3e-5 (section 3.1) for BERT with width 768 and thousands of
    updates; with dozens to hundreds, these rates move a small encoder too little (docs/LOG.md)."""

    head_learning_rate: float = 1e-4
    """Peak learning rate of the layers on top of the encoder. The paper uses one rate for all weights: thousands of
    updates at 2e-5 are enough for new weights, but a few labelled rows give only a few dozen updates."""

    batch_size: int = 16
    """Texts per update; the paper searches 8 to 96 (section 3.1)."""

    epochs: int = 10
    """Passes over the training texts (section 3.1; the paper takes 20 with 20 texts per label, section 4.1)."""

    max_steps: int | None = None
    """Maximum number of updates; the learning rate schedule then covers exactly these. None: as many as the epochs
    make."""

    warmup: float = 0.06
    """Share of the updates over which the learning rates rise linearly, before they fall linearly to 0 (section
    3.1)."""

    weight_decay: float = 0.01
    """Weight decay of AdamW; the paper gives none, this is the optimizer's default."""

    validation: float | str = "auto"
    """Share of the labelled rows held out for early stopping; 0: none, all epochs are run. `"auto"`: 0.05 (section
    3.1), or none with fewer than 20 rows per label on average or 2,000 in all, because fewer than 100 held-out rows
    cannot tell epochs apart."""

    patience: int = 3
    """Checks without improvement before training stops; the held-out rows are checked after each epoch. The paper gives
    no value."""

    class_weight: str | Mapping[str, float] | None = field(default=None, hash=False)
    """How often rows are drawn. None: each once per epoch; a mapping from label names to weights: in proportion to the
    weight of the label (1 if not given); `"balanced"`: all labels equally often. The length of an epoch stays the same.
    No loss is multiplied: in eq. 5 a text is a term of one label and a negative of all others, so a weight would not
    mean what it means in cross-entropy."""

    encoder_dropout: bool = True
    """Whether the encoder's own dropout is on in training, as in fine-tuning."""

    max_tokens_in_memory: int = 16_384
    """Maximum tokens whose activations are held at once; a larger batch is split into chunks with the same gradient."""

    def _check(self) -> None:
        check_choice("objective", self.objective, LACON_OBJECTIVES)
        check_choice("head", self.head, LACON_HEADS)
        check_choice("projection_head", self.projection_head, (False, True, "auto"))
        self._check_numbers("heads", "max_steps", least=1, whole=True, or_none=True)
        self._check_numbers("temperature", above=0)
        self._check_numbers("regularizer_weight", "instance_weight", "label_weight", "weight_decay", least=0)
        check_choice("init", self.init, LABEL_STARTS)
        self._check_numbers("description_weight", least=0, most=1, words=("auto",))
        self._check_numbers("validation", least=0, most=0.9, words=("auto",))
        self._check_numbers("learning_rate", above=0, most=1, words=("auto",))
        self._check_numbers("head_learning_rate", above=0, most=1)
        self._check_numbers("batch_size", "epochs", "patience", "max_tokens_in_memory", least=1, whole=True)
        self._check_numbers("description_steps", least=0, whole=True)
        self._check_numbers("warmup", least=0, most=1)
        if isinstance(self.class_weight, Mapping):
            weights = {str(name).strip(): as_python(weight) for name, weight in self.class_weight.items()}
            for name, weight in weights.items():
                check_number(f"class_weight[{name!r}]", weight, above=0)
            object.__setattr__(self, "class_weight", weights)
        else:
            check_choice("class_weight", self.class_weight, (None, "balanced"))
        self._check_together()

    @staticmethod
    def search_space(width: int) -> dict[str, list[Any]]:
        """Return the grid of section 4.4 for `GridSearchCV`: temperature, regularizer weight, heads.

        Args:
            width: width of the encoder's vectors; the heads must divide it.

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
