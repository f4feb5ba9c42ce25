"""Limits of the service over HTTP."""

from dataclasses import dataclass
from typing import final

from labelspace.config.saved import SavedConfig


@final
@dataclass(frozen=True, kw_only=True)
class ServingConfig(SavedConfig):
    """Limits of the service over HTTP: beyond each it refuses rather than slows down."""

    max_waiting: int = 1024
    """Maximum texts that wait for the encoder. Beyond it a request gets status 503 and is asked to come again."""

    max_characters: int = 50_000
    """Maximum characters of a text. A longer one gets status 413."""

    max_megabytes: float = 4.0
    """Maximum size of a request, unpacked. A larger one gets status 413."""

    max_options: int = 10_000
    """Maximum texts of options whose vectors are kept, per model. The least recently used one goes first."""

    together: int = 8192
    """Tokens that one run of the encoder takes from waiting requests, at four characters a token."""

    wait: float = 0.003
    """Seconds to wait for more requests where several clients are active; a single client never waits."""

    def _check(self) -> None:
        self._check_numbers("max_waiting", "max_characters", "max_options", "together", least=1, whole=True)
        self._check_numbers("max_megabytes", above=0)
        self._check_numbers("wait", least=0, most=1)
