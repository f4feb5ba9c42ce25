"""Settings for training a student on a teacher's probabilities."""

from dataclasses import dataclass
from typing import final

from labelspace.config.saved import SavedConfig


@final
@dataclass(frozen=True, kw_only=True)
class StudentConfig(SavedConfig):
    """Training an encoder on the answers of a consensus, beside the descriptions (Hinton et al., 2015)."""

    documents: int = 3000
    """Maximum number of documents trained on; more are drawn at random."""

    epochs: int = 3
    """Passes over the documents."""

    batch_size: int = 32
    """Documents per update; as many descriptions are added."""

    learning_rate: float | str = "auto"
    """Peak learning rate. `"auto"`: 1e-4 up to a width of 384, and in inverse proportion to the width above it."""

    temperature: float = 0.07
    """Divides the cosines, above 0."""

    description_weight: float = 0.2
    """Share of the descriptions in the loss, 0 to 1."""

    warmup: float = 0.06
    """Share of the updates over which the learning rate rises linearly, before it falls linearly to 0."""

    weight_decay: float = 0.01
    """Weight decay of AdamW."""

    encoder_dropout: bool = True
    """Whether the encoder's own dropout is on in training."""

    max_tokens_in_memory: int = 16_384
    """Maximum tokens whose activations are held at once; a larger batch is split into chunks with the same gradient."""

    def _check(self) -> None:
        self._check_numbers("documents", "epochs", "batch_size", "max_tokens_in_memory", least=1, whole=True)
        self._check_numbers("learning_rate", above=0, most=1, words=("auto",))
        self._check_numbers("temperature", above=0)
        self._check_numbers("description_weight", "warmup", least=0, most=1)
        self._check_numbers("weight_decay", least=0)
