"""Public names that load on first use, so that importing a package stays cheap."""

import importlib
import sys
from collections.abc import Callable, Collection, Mapping
from typing import Any


def late_names(package: str, homes: Mapping[str, str], modules: Collection[str] = ()) -> Callable[[str], Any]:
    """Return a `__getattr__` for a package whose public names and modules load on first use.

    Type checkers read the same names under `TYPE_CHECKING`.

    Args:
        package: its `__name__`.
        homes: module below the package -> the names in it, with spaces between.
        modules: modules below the package that are themselves public names.

    Example:
        >>> find = late_names("labelspace", {"errors": "LabelSpaceError ConfigError"})
        >>> find("ConfigError").__module__
        'labelspace.errors'
    """
    home_of = {name: module for module, names in homes.items() for name in names.split()}

    def __getattr__(name: str) -> Any:
        if name in modules:
            return importlib.import_module(f"{package}.{name}")
        if name not in home_of:
            raise AttributeError(f"module {package!r} has no attribute {name!r}")
        value = getattr(importlib.import_module(f"{package}.{home_of[name]}"), name)
        setattr(sys.modules[package], name, value)
        return value

    return __getattr__
