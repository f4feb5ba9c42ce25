"""Checks of configurations, and their conversion to plain values and back."""

from abc import ABC, abstractmethod
from dataclasses import asdict, fields
from typing import Any, Self

from labelspace.checks import as_python, check_choice, check_keys, check_number
from labelspace.errors import ConfigError


class SavedConfig(ABC):
    """Base of the configurations: checks, and conversion to and from dictionaries."""

    def __post_init__(self) -> None:
        """Convert numpy scalars to Python scalars, before they are checked or saved."""
        for field in fields(self):  # pyright: ignore[reportArgumentType]
            value = as_python(getattr(self, field.name))
            if field.type is bool:
                check_choice(field.name, value, (False, True))
            object.__setattr__(self, field.name, value)
        self._check()

    @abstractmethod
    def _check(self) -> None:
        """Raise ConfigError unless every field is valid."""

    def _check_numbers(self, *names: str, words: tuple[str, ...] = (), or_none: bool = False, **bounds: Any) -> None:
        """Raise ConfigError unless each field is a number within the bounds of `check_number`, a word or None."""
        for name in names:
            value = getattr(self, name)
            if words and isinstance(value, str):
                if value not in words:
                    listed = ", ".join(map(repr, words))
                    raise ConfigError(f"{name} must be a number or {listed}. Got {value!r} instead.")
            elif value is not None or not or_none:
                check_number(name, value, **bounds)

    def to_dict(self) -> dict[str, Any]:
        """Return the fields as plain values, ready for JSON."""
        values = asdict(self)  # pyright: ignore[reportArgumentType]
        return {key: list(value) if isinstance(value, tuple) else value for key, value in values.items()}

    @classmethod
    def from_dict(cls, values: dict[str, Any]) -> Self:
        """Return the configuration that `to_dict` was called on; an unknown key raises ConfigError."""
        names = [field.name for field in fields(cls)]  # pyright: ignore[reportArgumentType]
        check_keys(cls.__name__, values, names)
        return cls(**{key: tuple(value) if isinstance(value, list) else value for key, value in values.items()})
