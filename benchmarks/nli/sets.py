"""Trained heads on the sets of BTZSC, scored as by `labelspace bench run nli:FOLDER --limit 1000`.

A three-way head is scored by the log-odds of entailment (appendix C.1) and by its bare logit (section 4) in one pass.
As a reranker a head gives the same scores to the bit (tests/families/test_reranker.py), so no head is run as one.
"""

import copy
from collections.abc import Iterator, Sequence
from dataclasses import replace
from functools import partial
from itertools import product
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import numpy as np
from numpy.typing import NDArray
from pieces import Piece

from labelspace.bench import run
from labelspace.bench.models import OpenModel
from labelspace.bench.revision import weights_revision
from labelspace.progress import Progress
from nli.heads import PROTOCOL, Head, heads, make, opened
from nli.settings import Settings

SETS = (
    "rottentomatoes",
    "emotiondair",
    "agnews",
    "wikitoxic_obscene",
    "amazonpolarity",
    "wikitoxic_insult",
    "yelpreviews",
    "wikitoxic_toxicaggregated",
    "imdb",
    "massive",
    "capsotu",
    "banking77",
    "manifesto",
)
"""The sets that we have, roughly from 10 to 190 seconds for 1,000 texts on one core."""


def set_pieces(settings: Settings) -> Iterator[Piece]:
    """Every head of a seed on one set after the other."""
    for seed, task in product(settings.seeds, SETS[:1] if settings.small else SETS):
        for head in heads(seed):
            yield Piece(
                part="btzsc",
                name=f"{settings.short}_{task}_{head}",
                facts=settings.facts((*PROTOCOL, "rows"), task=task, **head._asdict()),
                work=partial(_run, settings, task, head),
                seeds=(seed,),
                data=f"shared/data/btzsc/{task}",
            )


def _run(settings: Settings, task: str, head: Head) -> dict[str, Any]:
    trained = make(settings, head)
    models = scored_once(opened(trained))
    with TemporaryDirectory() as folder:
        store = Path(folder) / "results.jsonl"
        records = run(models, [task], store, limit=settings.rows, data=settings.data, bootstrap=0).records
    first = records[0]  # the second reuses its logits, so it has no speed of its own
    facts = {name: first[name] for name in ("texts", "classes", "fingerprint", "texts_per_second")}
    scores = {record["described"]["score"]: record["metrics"] for record in records}
    return {**facts, "weights": weights_revision(trained), **scores}


def scored_once(model: OpenModel) -> list[OpenModel]:
    """Return a head by log-odds and, if it is three-way, by its bare logit too, from the logits of one pass."""
    scorer: Any = copy.copy(model.scorer)
    if scorer.model.classes == 1:
        return [model]
    scorer.model = Remembered(scorer.model)
    bare = copy.copy(scorer)
    bare.score = "logit"
    described = {**model.describe, "score": bare.score}
    return [replace(model, scorer=scorer), replace(model, scorer=bare, spec=f"{model.spec}@logit", describe=described)]


class Remembered:
    """The logits of a cross-encoder, kept for the next model that scores the same texts."""

    def __init__(self, model: Any) -> None:
        self._model = model
        self._kept: dict[tuple[tuple[str, ...], ...], list[NDArray[np.float32]]] = {}

    def logits(self, texts: Sequence[str], labels: Sequence[str], *, report: Progress) -> Iterator[NDArray[np.float32]]:
        """Yield the logits of every text with every label; see `CrossEncoder.logits`."""
        asked = tuple(texts), tuple(labels)
        if asked not in self._kept:
            self._kept[asked] = list(self._model.logits(texts, labels, report=report))
        yield from self._kept[asked]
