"""The losses and the geometry, imported a second time with jaxtyping and beartype checking every shape.

A copy, because the first import may have happened already in another folder's test, and then a hook comes too late.
The copies stay out of `sys.modules`; errors and axes are the library's own.
"""

import importlib
import sys

from jaxtyping import install_import_hook

import labelspace.geometry
import labelspace.losses

HOOKED = ("labelspace.losses", "labelspace.geometry")


def _import_anew(name: str) -> object:
    kept = {known: sys.modules.pop(known) for known in list(sys.modules) if known.startswith(HOOKED)}
    try:
        with install_import_hook(list(HOOKED), "beartype.beartype"):
            return importlib.import_module(name)
    finally:
        sys.modules.update(kept)
        for known in HOOKED:
            setattr(labelspace, known.rpartition(".")[2], kept[known])


losses = _import_anew("labelspace.losses")
geometry = _import_anew("labelspace.geometry")
