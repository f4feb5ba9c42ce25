"""Modules imported a second time, with jaxtyping and beartype checking every shape.

A copy, because the first import may have happened already in another folder's test, and then a hook comes too late.
The copies stay out of `sys.modules`; errors and axes are the library's own.
"""

import importlib
import sys
from typing import Any

from jaxtyping import install_import_hook


def imported_anew(name: str, *hooked: str) -> Any:
    """Return a checked copy of a module; `hooked` are the modules and packages that are copied and checked."""
    for each in hooked:
        importlib.import_module(each)
    kept = {known: sys.modules.pop(known) for known in list(sys.modules) if known.startswith(hooked)}
    try:
        with install_import_hook(list(hooked), "beartype.beartype"):
            return importlib.import_module(name)
    finally:
        sys.modules.update(kept)
        for each in hooked:
            package, _, own = each.rpartition(".")
            setattr(sys.modules[package], own, kept[each])
