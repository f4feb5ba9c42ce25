"""Configurations to plain values and back."""

from dataclasses import asdict, fields
from typing import Any, Self

from labelspace.checks import check_keys, plain


class SavedConfig:
    """Dictionary in, dictionary out, for the dataclasses of this folder."""

    def _keep_plain(self) -> None:
        """Take scalars of numpy as Python's own, before anything is checked, computed or saved with them."""
        for field in fields(self):  # pyright: ignore[reportArgumentType]
            object.__setattr__(self, field.name, plain(getattr(self, field.name)))

    def to_dict(self) -> dict[str, Any]:
        """Return the fields as plain values, ready for JSON."""
        values = asdict(self)  # pyright: ignore[reportArgumentType]
        return {key: list(value) if isinstance(value, tuple) else value for key, value in values.items()}

    @classmethod
    def from_dict(cls, values: dict[str, Any]) -> Self:
        """Build the configuration from `to_dict`'s result; an unknown key raises ConfigError."""
        names = [field.name for field in fields(cls)]  # pyright: ignore[reportArgumentType]
        check_keys(cls.__name__, values, names)
        return cls(**{key: tuple(value) if isinstance(value, list) else value for key, value in values.items()})
