"""Figure 4: relation vectors before pre-finetuning, after PFT and after REZE."""

from collections.abc import Iterator
from functools import partial
from typing import Any

import numpy as np
import pyarrow.parquet as pq
from pieces import Piece

from labelspace import Encoder
from labelspace.geometry import drift, project
from labelspace.seeds import child_seed
from prefinetune.encoders import SWEEP_SEED, starting_encoder
from prefinetune.sets import domains, targets
from prefinetune.settings import Settings

STARTS = ("base", "pft", "reze")
SHOWN = 60
"""Pairs of each set."""


def map_pieces(settings: Settings) -> Iterator[Piece]:
    """One map for each domain."""
    for domain in domains(settings):
        yield Piece(
            part="maps",
            name=f"{settings.short}_{domain}_seed{SWEEP_SEED}",
            facts=settings.facts(domain=domain, seed=SWEEP_SEED),
            work=partial(_run, settings, domain),
            seeds=(SWEEP_SEED,),
            data=f"shared/data/domain/{domain}",
        )


def shown_pairs(settings: Settings, domain: str) -> list[tuple[str, str, str]]:
    """Draw (source, anchor, positive) of every set of a domain, its targets too, as in the paper's figure."""
    found = []
    for file in sorted((settings.data / "domain" / domain).glob("*/pairs.parquet")):
        rows = pq.read_table(file).to_pydict()
        draw = np.random.default_rng(child_seed(0, "shown", file.parent.name)).permutation(len(rows["anchor"]))
        found += [(file.parent.name, rows["anchor"][row], rows["positive"][row]) for row in draw[:SHOWN]]
    return found


def _run(settings: Settings, domain: str) -> dict[str, Any]:
    pairs = shown_pairs(settings, domain)
    first = targets(settings, domain)[0]
    relations = [_relations(starting_encoder(settings, first, start, SWEEP_SEED)[0], pairs) for start in STARTS]
    every = np.concatenate(relations)
    # One PCA for all three encoders, so that shifts between them are visible.
    places = project(every, projection="pca", dimensions=2)
    held = float(places.var(axis=0).sum() / every.var(axis=0).sum())
    by_start = np.split(places.round(4), len(STARTS))
    return {
        "sources": [source for source, _, _ in pairs],
        "targets": list(targets(settings, domain)),
        "variance_shown": held,
        "drift": {start: drift(relations[0], moved) for start, moved in zip(STARTS, relations, strict=True)},
        "points": {start: rows.tolist() for start, rows in zip(STARTS, by_start, strict=True)},
    }


def _relations(encoder: Encoder, pairs: list[tuple[str, str, str]]) -> np.ndarray:
    halves = [encoder.encode([pair[side] for pair in pairs]) for side in (1, 2)]
    return np.concatenate(halves, axis=1)
