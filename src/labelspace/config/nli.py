"""Settings for training a cross-encoder on natural language inference (BTZSC, appendix C.1)."""

from dataclasses import dataclass
from typing import final

from labelspace.checks import check_choice
from labelspace.config.encoding import DTYPES
from labelspace.config.saved import SavedConfig
from labelspace.errors import ConfigError

NLI_VARIANTS = ("binary", "triplet")


@final
@dataclass(frozen=True, kw_only=True)
class NLIConfig(SavedConfig):
    """Training a cross-encoder on pairs of premise and hypothesis.

    Example:
        >>> NLIConfig(variant="triplet", epochs=1).to_dict()["batch_size"]
        32
        >>> NLIConfig(variant="quartet")
        Traceback (most recent call last):
        labelspace.errors.ConfigError: variant must be one of 'binary', 'triplet'. Got 'quartet' instead.
    """

    variant: str = "binary"
    """Output of the model. `"binary"`: one logit, with neutral and contradiction as one class; `"triplet"`: three
    logits."""

    max_tokens: int | None = None
    """Maximum tokens of a pair, 8 or more. None: 256, or the encoder's limit if that is smaller. The paper gives no
    value."""

    leave_out: tuple[str, ...] = ()
    """Sources excluded from training and from the dev set."""

    max_pairs: int | None = None
    """Maximum number of training pairs, drawn with the seed. None: all."""

    epochs: int = 3
    """Passes over the training pairs, E."""

    batch_size: int = 32
    """Pairs per update, B."""

    max_steps: int | None = None
    """Maximum number of updates; the learning rate schedule then covers exactly these. None: epochs x pairs / batch
    size."""

    max_seconds: float | None = None
    """Stop at the first evaluation after this many seconds; the schedule is not shortened. None: no limit."""

    learning_rate: float | None = None
    """Peak learning rate of the backbone. None: 2e-5, or 8e-6 for a width of 1024 or more."""

    head_learning_rate: float | None = None
    """Peak learning rate of the head. None: 1e-4, or 4e-5 for a backbone width of 1024 or more."""

    warmup: float = 0.1
    """Share of the updates over which the learning rates rise linearly."""

    weight_decay: float = 0.01
    """Weight decay of AdamW, on all weights."""

    dropout: float = 0.1
    """Dropout of the head; the backbone keeps its own."""

    evaluate_every: float = 0.01
    """Interval between evaluations of the dev set, as a share of all updates."""

    patience: int = 10
    """Checks without improvement before training stops: evaluations in a row with a dev loss above its lowest value."""

    dev_per_class: int = 60
    """Dev pairs per class and source, or as many as the smallest class allows. The paper gives no number."""

    window: int = 50
    """Number of batches within which pairs are sorted by length, so that padding is small."""

    seed: int = 0
    """Seed of the head's initial weights, the pairs drawn, their order and the dropout masks."""

    dtype: str = "auto"
    """Number format of the weights. `"auto"`: bfloat16 if the processor computes in it natively, else float32."""

    device: str = "auto"
    """Torch device. `"auto"`: a GPU if there is one."""

    def _check(self) -> None:
        check_choice("variant", self.variant, NLI_VARIANTS)
        if not isinstance(self.leave_out, tuple) or not all(isinstance(name, str) and name for name in self.leave_out):
            raise ConfigError(f"leave_out must be a tuple of names of sources. Got {self.leave_out!r} instead.")
        self._check_numbers("max_tokens", least=8, whole=True, or_none=True)
        self._check_numbers("max_pairs", "max_steps", least=1, whole=True, or_none=True)
        self._check_numbers("epochs", "batch_size", "patience", "dev_per_class", "window", least=1, whole=True)
        self._check_numbers("max_seconds", above=0, or_none=True)
        self._check_numbers("learning_rate", "head_learning_rate", above=0, most=1, or_none=True)
        self._check_numbers("warmup", least=0, most=0.99)
        self._check_numbers("weight_decay", least=0)
        self._check_numbers("dropout", least=0, most=0.99)
        self._check_numbers("evaluate_every", above=0, most=1)
        self._check_numbers("seed", least=0, whole=True)
        check_choice("dtype", self.dtype, DTYPES)
        if not isinstance(self.device, str) or not self.device:
            raise ConfigError(f"device must be 'auto' or a torch device such as 'cpu'. Got {self.device!r} instead.")
