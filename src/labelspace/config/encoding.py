"""How texts become vectors."""

from dataclasses import dataclass
from typing import final

from labelspace.checks import check_choice, check_number
from labelspace.config.saved import SavedConfig
from labelspace.errors import ConfigError

DTYPES = ("auto", "float32", "bfloat16")


@final
@dataclass(frozen=True, kw_only=True)
class EncodingConfig(SavedConfig):
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
        self._keep_plain()
        check_choice("dtype", self.dtype, DTYPES)
        check_number("token_budget", self.token_budget, least=1, whole=True)
        if self.max_tokens is not None:
            check_number("max_tokens", self.max_tokens, least=4, whole=True)
        if not isinstance(self.device, str) or not self.device:
            raise ConfigError(f"device must be 'auto' or a torch device such as 'cpu'. Got {self.device!r} instead.")
