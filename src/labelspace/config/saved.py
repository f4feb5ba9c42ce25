"""Conversion of configurations to plain values and back."""

from dataclasses import asdict, fields
from typing import Any, Self

from labelspace.checks import check_keys, plain


class SavedConfig:
    """Base of the configurations: conversion to and from dictionaries."""

    def _keep_plain(self) -> None:
        """Convert numpy scalars to Python scalars, before they are checked or saved."""
        for field in fields(self):  # pyright: ignore[reportArgumentType]
            object.__setattr__(self, field.name, plain(getattr(self, field.name)))

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
