"""Settings for encoding texts."""

from dataclasses import dataclass
from typing import final

from labelspace.checks import check_choice
from labelspace.config.saved import SavedConfig
from labelspace.errors import ConfigError

WINDOW = 4096
"""Texts that are tokenized and sorted together: enough to sort well, few enough to hold in memory."""

DTYPES = ("auto", "float32", "bfloat16")

RUNTIMES = ("onnx", "openvino")
"""Where an exported model can run."""


@final
@dataclass(frozen=True, kw_only=True)
class EncodingConfig(SavedConfig):
    """Settings for encoding texts."""

    dtype: str = "auto"
    """Number format of the weights. `"auto"`: bfloat16 if the processor computes in it natively, else float32."""

    device: str = "auto"
    """Torch device. `"auto"`: a GPU if there is one."""

    token_budget: int = 1024
    """Maximum tokens per batch, padding included, when only vectors are computed."""

    max_tokens: int | None = None
    """Maximum tokens read from a text, 4 or more. None: the encoder's own limit."""

    def _check(self) -> None:
        check_choice("dtype", self.dtype, DTYPES)
        self._check_numbers("token_budget", least=1, whole=True)
        self._check_numbers("max_tokens", least=4, whole=True, or_none=True)
        if not isinstance(self.device, str) or not self.device:
            raise ConfigError(f"device must be 'auto' or a torch device such as 'cpu'. Got {self.device!r} instead.")
