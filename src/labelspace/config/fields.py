"""Configuration fields as users see them (name, type, default, help), and the parsing of their values."""

import ast
import inspect
import itertools
import json
import re
from collections.abc import Mapping
from dataclasses import fields
from functools import lru_cache
from types import NoneType
from typing import Any, NamedTuple, get_args

from labelspace.errors import ConfigError


class Setting(NamedTuple):
    """One field of a configuration."""

    name: str
    """Name in Python and for `--set`."""

    type: Any
    """A class, or a union of classes."""

    default: Any
    """Default value."""

    help: str
    """The docstring of the field, on one line."""

    @property
    def summary(self) -> str:
        """The first sentence of the help, without code marks and paper references."""
        sentence = _SENTENCE_END.split(self.help, maxsplit=1)[0].rstrip(".")
        return _plain(sentence)

    @property
    def by_default(self) -> str:
        """What the default None or `"auto"` means, without paper references; empty for other defaults."""
        if self.default not in (None, "auto"):
            return ""
        marked = "None" if self.default is None else '`"auto"`'
        found = re.search(rf'(?:^|[.;] ){marked}: (.+?)(?=[.;] [A-Z`"]|\.$)', self.help)
        return _plain(found[1]) if found else ""

    @property
    def takes(self) -> str:
        """The type in words, for example `number or text`."""
        kinds = get_args(self.type) or (self.type,)
        if Ellipsis in kinds:
            return "list"
        return " or ".join(dict.fromkeys(_NAMES.get(kind, "text") for kind in kinds))

    def read(self, word: str) -> Any:
        """Parse a word of the command line; the configuration checks the value.

        Example:
            >>> [Setting("heads", int | None, None, "").read(word) for word in ("2", "none")]
            [2, None]
        """
        kinds = get_args(self.type) or (self.type,)
        if Ellipsis in kinds:
            pieces = [piece.strip() for piece in word.split(",") if piece.strip()]
            return tuple(map(_number, pieces) if float in kinds else pieces)
        if word.startswith("{"):
            return _mapping(self.name, word)
        if NoneType in kinds and word.lower() == "none":
            return None
        if bool in kinds and word.lower() in ("true", "false"):
            return word.lower() == "true"
        return _number(word) if int in kinds or float in kinds else word


_SENTENCE_END = re.compile(r'(?<!\beq)\. (?=[A-Z`"])')
_WHERE_IN_PAPER = re.compile(r" \((?:section|sections|eq\.|appendix)[^()]*\)")
_NAMES = {int: "whole number", float: "number", bool: "true, false", NoneType: "none", str: "text"}


@lru_cache(maxsize=32)
def settings_of(made: type) -> Mapping[str, Setting]:
    """Return the fields of a configuration by name; the docstring under each is its help.

    Example:
        >>> from labelspace.config import LaConConfig
        >>> epochs = settings_of(LaConConfig)["epochs"]
        >>> epochs.takes, epochs.default, epochs.summary
        ('whole number', 10, 'Passes over the training texts')
    """
    body: Any = ast.parse(inspect.getsource(made)).body[0]
    helps: dict[str, str] = {}
    for before, after in itertools.pairwise(body.body):
        if isinstance(before, ast.AnnAssign) and isinstance(after, ast.Expr):
            helps[ast.unparse(before.target)] = " ".join(ast.literal_eval(after.value).split())
    defaults = made()
    return {
        field.name: Setting(field.name, field.type, getattr(defaults, field.name), helps.get(field.name, ""))
        for field in fields(made)
    }


def _plain(text: str) -> str:
    return _WHERE_IN_PAPER.sub("", text).replace("`", "").replace('"', "")


def _number(word: str) -> int | float | str:
    for kind in (int, float):
        try:
            return kind(word)
        except ValueError:
            pass
    return word


def _mapping(name: str, word: str) -> Any:
    try:
        return json.loads(word)
    except ValueError as error:
        raise ConfigError(f'{name} must be JSON, such as {{"fraud": 5}}. Got {word!r} instead.') from error
