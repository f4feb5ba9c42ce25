"""Keys and values of a prefix, computed once and shared by all its continuations."""

import copy
from typing import Any

from torch import Tensor


def empty_cache(config: Any) -> Any | None:
    """Return an empty cache for a model of this configuration, or None if it needs more than keys and values."""
    from transformers.cache_utils import DynamicCache, DynamicLayer, DynamicSlidingWindowLayer

    cache = DynamicCache(config=config)
    plain = all(type(layer) in (DynamicLayer, DynamicSlidingWindowLayer) for layer in cache.layers)
    return cache if plain else None


def lend(cache: Any, rows: int) -> Any:
    """Return a cache that gives every row the same prefix and discards what the rows add.

    Nothing is copied here; a layer's joined keys and values exist only while that layer runs.
    """
    lent = copy.copy(cache)
    lent.layers = [_lend_layer(layer, rows) for layer in cache.layers]
    return lent


def _lend_layer(layer: Any, rows: int) -> Any:
    lent = copy.copy(layer)
    if not layer.is_initialized:  # a layer that shares another layer's keys
        return lent
    lent.keys = layer.keys.expand(rows, *layer.keys.shape[1:])
    lent.values = layer.values.expand(rows, *layer.values.shape[1:])
    grow = lent.update

    def update(keys: Tensor, values: Tensor, *args: Any, **kwargs: Any) -> tuple[Tensor, Tensor]:
        own = lent.keys, lent.values
        joined = grow(keys, values, *args, **kwargs)
        lent.keys, lent.values = own
        return joined

    lent.update = update
    return lent
