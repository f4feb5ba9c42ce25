"""Merging of constructor arguments with the fields of their configuration."""

import functools
import inspect
from collections.abc import Callable, Mapping
from dataclasses import fields
from typing import Any, TypeVar

from labelspace.checks import check_keys
from labelspace.config.saved import SavedConfig
from labelspace.errors import ConfigError

Config = TypeVar("Config", bound=SavedConfig)


def own_arguments(cls: type) -> tuple[str, ...]:
    """Return the arguments of a class's constructor, in order."""
    return tuple(inspect.signature(cls).parameters)


def hinting(init: Callable[..., None]) -> Callable[..., None]:
    """Return a constructor that says where an unknown keyword belongs, in place of Python's TypeError."""
    parameters = [*inspect.signature(init).parameters.values()][1:]
    if any(parameter.kind is parameter.VAR_KEYWORD for parameter in parameters):
        return init  # it passes them on, and the constructor that gets them is hinting
    known = [parameter.name for parameter in parameters]

    @functools.wraps(init)
    def hinted(self: Any, *arguments: Any, **named: Any) -> None:
        made = self.config_class if "config" in known else None
        settings = [] if made is None else [field.name for field in fields(made)]
        for key in named:
            if key in settings and key not in known:
                raise ConfigError(
                    f"{key} is a setting of {type(self).__name__}, not an argument; pass config={{{key!r}: ...}}."
                )
        check_keys(type(self).__name__, named, known, what="argument")
        init(self, *arguments, **named)

    return hinted


def merged(model: Any, made: type[Config]) -> Config:
    """Return an estimator's arguments and its `config` as one checked configuration.

    Args:
        model: the estimator.
        made: class of its configuration; fields that are not constructor arguments may be set in `config`.

    Raises:
        ConfigError: `config` is no mapping, holds an unknown field or an argument, or a value is invalid.
    """
    name, given, arguments = type(model).__name__, _config_of(model), own_arguments(type(model))
    for key in given:
        if key in arguments:
            raise ConfigError(f"{key} is an argument of {name}; pass {key}=..., and leave it out of config.")
    known = [field.name for field in fields(made)]  # pyright: ignore[reportArgumentType]
    check_keys(f"config of {name}", given, [key for key in known if key not in arguments])
    return made(**{key: getattr(model, key) for key in known if key in arguments}, **given)


def whole_config(model: Any, made: type[SavedConfig]) -> dict[str, Any]:
    """Return an estimator's `config` completed with defaults, as saved with a model."""
    arguments = own_arguments(type(model))
    defaults = {key: value for key, value in made().to_dict().items() if key not in arguments}
    return {**defaults, **_config_of(model)}


def as_arguments(cls: Any, settings: Mapping[str, Any]) -> dict[str, Any]:
    """Return constructor arguments from settings by name; fields of the configuration go to `config`.

    Example:
        >>> from labelspace import LaConClassifier
        >>> as_arguments(LaConClassifier, {"epochs": 3, "heads": 2})
        {'epochs': 3, 'config': {'heads': 2}}
    """
    arguments = own_arguments(cls)
    given = {key: value for key, value in settings.items() if key in arguments}
    config = {key: value for key, value in settings.items() if key not in arguments}
    return {**given, "config": {**(given.get("config") or {}), **config}} if config else given


def _config_of(model: Any) -> Mapping[str, Any]:
    if model.config is None:
        return {}
    if not isinstance(model.config, Mapping):
        raise ConfigError(f"config must be a mapping of options. Got {type(model.config).__name__} instead.")
    return model.config
