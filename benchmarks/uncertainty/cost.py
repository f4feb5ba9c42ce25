"""Table 5, and the time saved by stored token states: parameters, latency, throughput, seconds per epoch.

Texts are descriptions from the repository, so no data is needed. Run it on an otherwise idle machine. The parts of a
ratio are measured in turns, in one process. The load at the start is part of the result.
"""

import hashlib
import os
import statistics
import tempfile
import time
from collections.abc import Callable, Iterator
from functools import partial
from itertools import product
from pathlib import Path
from typing import Any

import numpy as np
import torch
from pieces import Piece
from tasks import INTENT_FILE, JOINED, intent_texts

from labelspace import Encoder
from labelspace.config import UncertaintyConfig
from labelspace.encoders.state_cache import FreshStates, StateCache, TokenStates
from labelspace.heads import GaussianHead
from labelspace.training.engine import train
from labelspace.training.uncertainty import outputs_of_texts
from labelspace.training.uncertainty.objective import UncertaintyObjective
from uncertainty.settings import Settings
from uncertainty.variants import plain

BATCH = 32
# TextCNN is the paper's; attention multiplies a twelfth as much.
CONFIGS = {name: UncertaintyConfig(extractor=name, epochs=1, validation=0.0) for name in ("textcnn", "attention")}


def cost_pieces(settings: Settings) -> Iterator[Piece]:
    """Latency and an epoch with each extractor, on short and on long texts."""
    revision = f"sha256:{hashlib.sha256(INTENT_FILE.read_bytes()).hexdigest()}"
    works = (("latency", _latency), ("epoch", _epoch))
    for extractor, length, (what, work) in product(CONFIGS, ("short",) if settings.small else tuple(JOINED), works):
        yield Piece(
            part="cost",
            name=f"{settings.short}_{extractor}_{what}_{length}",
            facts={
                "encoder": settings.short,
                "extractor": extractor,
                "what": what,
                "length": length,
                "revision": revision,
                "config": plain(CONFIGS[extractor]),
            },
            work=partial(_with_load, partial(work, settings, extractor, length)),
            seeds=(0,),
            data="examples/banking77/labels.yaml",
            alone=True,
        )


def _with_load(work: Callable[[], dict[str, Any]]) -> dict[str, Any]:
    load = os.getloadavg()  # averages over 1, 5 and 15 minutes, read before this run adds to them
    return {**work(), "load_average": list(load)}


def texts_of(length: str) -> tuple[list[str], np.ndarray, int]:
    """Return descriptions, their labels, and the number of labels."""
    intents = intent_texts(length)
    targets = np.repeat(np.arange(len(intents)), list(map(len, intents)))
    return [text for own in intents for text in own], targets, len(intents)


def _head(encoder: Encoder, extractor: str, labels: int) -> GaussianHead:
    generator = torch.Generator().manual_seed(0)
    head = GaussianHead(encoder.backbone.hidden_size, labels, generator=generator, extractor=extractor)
    return head.to(encoder.backbone.device)


def _latency(settings: Settings, extractor: str, length: str) -> dict[str, Any]:
    """Time a batch of 32 with and without the head, in turns; tokenised beforehand, as in table 5."""
    encoder = Encoder(settings.encoder)
    texts, _, labels = texts_of(length)
    ids = encoder.tokenize(texts[:BATCH])
    head = _head(encoder, extractor, labels).eval().requires_grad_(False)
    turns = 2 if settings.small else 40
    ways: dict[str, Callable[[], Any]] = {
        "encoder": lambda: encoder.embed(ids),
        "with head": lambda: outputs_of_texts(encoder, head, ids),
    }
    seconds = _in_turns(ways, turns)
    medians = {way: statistics.median(values) for way, values in seconds.items()}
    encoder_parameters = sum(values.numel() for values in encoder.backbone.transformer.model.parameters())
    return {
        "batch": BATCH,
        "tokens": sum(map(len, ids)),
        "median_seconds": medians,
        "ratio": statistics.median(
            own / bare for own, bare in zip(seconds["with head"], seconds["encoder"], strict=True)
        ),
        "texts_per_second": {way: BATCH / value for way, value in medians.items()},
        "parameters": {"encoder": encoder_parameters, "head": sum(values.numel() for values in head.parameters())},
        "dtype": encoder.dtype,
    }


def _epoch(settings: Settings, extractor: str, length: str) -> dict[str, Any]:
    """Time an epoch from stored states, one that encodes again, and encoding alone."""
    encoder = Encoder(settings.encoder)
    texts, targets, labels = texts_of(length)
    if settings.small:
        texts, targets = texts[:64], targets[:64]
    ids = encoder.tokenize(texts)
    with tempfile.TemporaryDirectory() as folder:
        stored = StateCache(Path(folder)).open(encoder, ids)
        fresh = FreshStates(encoder, ids)

        def epoch(states: TokenStates) -> float:
            objective = UncertaintyObjective(
                _head(encoder, extractor, labels),
                states,
                range(len(texts)),
                targets,
                CONFIGS[extractor],
                device=encoder.backbone.device,
                dtype=encoder.backbone.dtype,
                seed=0,
            )
            return train(objective).looks[0].seconds  # without making the head

        def read() -> None:
            for start in range(0, len(texts), 64):
                stored.take(range(start, min(start + 64, len(texts))))

        ways = {
            "stored": lambda: epoch(stored),
            "encoded again": lambda: epoch(fresh),
            "encoding": lambda: encoder.embed(ids),
            "reading": read,
        }
        seconds = _in_turns(ways, 1 if settings.small else 5)
    medians = {way: statistics.median(values) for way, values in seconds.items()}
    return {
        "texts": len(texts),
        "tokens": sum(map(len, ids)),
        "median_seconds": medians,
        "ratio": medians["encoding"] / medians["stored"],
        "training included": medians["encoded again"] / medians["stored"],
        "encoding to reading": medians["encoding"] / medians["reading"],
        "dtype": encoder.dtype,
    }


def _in_turns(ways: dict[str, Callable[[], Any]], turns: int) -> dict[str, list[float]]:
    """Return the seconds of each way in each turn, after a warm-up turn; a way that returns a number times itself.

    Every other turn runs in reverse order, so that no way always comes first.
    """
    seconds: dict[str, list[float]] = {way: [] for way in ways}
    for turn in range(turns + 1):
        for way in list(ways)[:: -1 if turn % 2 else 1]:
            started = time.perf_counter()
            told = ways[way]()
            passed = time.perf_counter() - started
            if turn:
                seconds[way].append(told if isinstance(told, float) else passed)
    return seconds
