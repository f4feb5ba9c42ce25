"""Token states of every set, computed by the first run that needs them, and the vectors pooled from them."""

import functools
import warnings
from collections.abc import Sequence
from typing import final

import numpy as np
import torch
from numpy.typing import NDArray
from rows import Rows
from torch.nn import functional as F

from labelspace import Encoder
from labelspace.encoders.state_cache import Batch, StateCache, TokenStates
from labelspace.errors import LabelSpaceWarning, own_filters
from labelspace.heads.uncertainty import MeanPooling
from uncertainty.sets import test_rows, train_rows
from uncertainty.settings import Settings

STATES_BYTES = 30 * 1024**3
# Larger sets are encoded in parts, so that a killed run resumes at the part. Smaller ones are stored as
# UncertaintyClassifier stores them.
WHOLE_TOKENS_BYTES, TEXTS_OF_A_PART = 1024**3, 2500
BATCH = 256


@functools.cache
def opened(settings: Settings) -> Encoder:
    """Open the encoder, once for equal settings."""
    return Encoder(settings.encoder, max_tokens=settings.max_tokens)


def both(settings: Settings, name: str) -> tuple[Rows, Rows]:
    """Return the rows to train on and the scored ones."""
    return train_rows(name, settings.data, settings.rows), test_rows(name, settings.data, settings.test_rows)


@final
class JoinedStates:
    """Concatenation of several stored states.

    Args:
        parts: the states, at least one.
    """

    def __init__(self, parts: Sequence[TokenStates]) -> None:
        self.lengths = np.concatenate([part.lengths for part in parts])
        self._parts = parts
        self._starts = np.cumsum([0, *(len(part.lengths) for part in parts)])

    def take(self, rows: Sequence[int]) -> Batch:
        """Return the states of some texts; see `TokenStates`."""
        wanted = np.asarray(rows, dtype=np.intp)
        of_part = np.searchsorted(self._starts, wanted, side="right") - 1
        width = max(1, int(self.lengths[wanted].max(initial=0)))
        found: list[Batch] = []
        places: list[NDArray[np.intp]] = []
        for part in np.unique(of_part):
            places.append(np.flatnonzero(of_part == part))
            values, mask = self._parts[part].take((wanted[places[-1]] - self._starts[part]).tolist())
            missing = width - values.shape[1]
            found.append((F.pad(values, (0, 0, 0, missing)), F.pad(mask, (0, missing))))
        order = torch.from_numpy(np.argsort(np.concatenate(places)))
        values, mask = (torch.cat(own)[order] for own in zip(*found, strict=True))
        return values, mask


@functools.lru_cache(maxsize=1)
def states_of(settings: Settings, name: str) -> tuple[TokenStates, TokenStates]:
    """Return the token states of the rows to train on and of the scored ones."""
    train, test = (_stored(settings, rows.texts) for rows in both(settings, name))
    return train, test


def _stored(settings: Settings, texts: list[str]) -> TokenStates:
    encoder, cache = opened(settings), StateCache(settings.states, STATES_BYTES)
    ids = encoder.tokenize(texts)
    whole = 2 * encoder.backbone.hidden_size * sum(map(len, ids)) <= WHOLE_TOKENS_BYTES
    with own_filters():
        # Fail without a cache: every epoch would encode again, for hours.
        warnings.simplefilter("error", LabelSpaceWarning)
        if whole:
            return cache.open(encoder, ids)
        starts = range(0, len(ids), TEXTS_OF_A_PART)
        return JoinedStates([cache.open(encoder, ids[start : start + TEXTS_OF_A_PART]) for start in starts])


def vectors_of(settings: Settings, name: str) -> tuple[NDArray[np.float32], NDArray[np.float32]]:
    """Pool the encoder's vectors of the rows to train on and of the scored ones from their token states."""
    texts = [rows.texts for rows in both(settings, name)]
    train, test = (_pooled(settings, *one) for one in zip(states_of(settings, name), texts, strict=True))
    return train, test


def _pooled(settings: Settings, states: TokenStates, texts: list[str]) -> NDArray[np.float32]:
    mean = MeanPooling(opened(settings).backbone.hidden_size)
    parts = [range(start, min(start + BATCH, len(texts))) for start in range(0, len(texts), BATCH)]
    vectors = torch.cat([F.normalize(mean(*states.take(part)), dim=-1) for part in parts]).numpy()
    own = opened(settings).encode(texts[:8])
    if float((own * vectors[:8]).sum(axis=1).min()) < 0.999:
        raise RuntimeError(
            f"{settings.encoder} does not use mean pooling: its vectors cannot be computed from token states"
        )
    return vectors
