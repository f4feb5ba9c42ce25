"""A model's ability in NLI as a record of the store: its AUROC on pairs of sentences (BTZSC, section 5.1)."""

import hashlib
import time
from collections.abc import Mapping
from typing import Any

from labelspace.bench.memory import PeakMemory, gpu_peak_mib
from labelspace.bench.models import EncoderScorer, OpenModel
from labelspace.bench.nli import MEAN, NLIPairs, PairScorer, encoder_pair_scores, nli_auroc
from labelspace.bench.records import NLI_TASK
from labelspace.bench.store import RunKey
from labelspace.evaluate.provenance import provenance


def pair_scorer(model: OpenModel) -> PairScorer | None:
    """Return what scores pairs of sentences: the cosine of an encoder, the entailment of a cross-encoder.

    Returns:
        None for a model that scores texts against label spaces only.

    Example:
        >>> from labelspace.bench.models import open_model
        >>> score = pair_scorer(open_model("tests/data/tiny-bert", dtype="float32"))
        >>> score(["it rains"], ["it is wet"]).shape
        (1,)
    """
    if isinstance(model.scorer, EncoderScorer):
        return encoder_pair_scores(model.scorer.encoder)
    return getattr(model.scorer, "pair_scores", None)


def nli_fingerprint(sets: Mapping[str, NLIPairs]) -> tuple[str, int]:
    """Return what tells pairs from other pairs, and how many there are.

    Example:
        >>> import numpy as np
        >>> pairs = NLIPairs(premises=["a", "b"], hypotheses=["c", "d"], is_entailment=np.array([True, False]))
        >>> nli_fingerprint({"mine": pairs})[1]
        2
    """
    digest = hashlib.sha256()
    for source, pairs in sets.items():
        for premise, hypothesis, kind in zip(pairs.premises, pairs.hypotheses, pairs.is_entailment, strict=True):
            digest.update(f"{source} {len(premise)} {len(hypothesis)} {int(kind)} {premise}{hypothesis}".encode())
    return digest.hexdigest(), sum(map(len, sets.values()))


def nli_record(
    model: OpenModel, score: PairScorer, sets: Mapping[str, NLIPairs], key: RunKey, fingerprint: str, device: str
) -> dict[str, Any]:
    """Score the pairs and return the record.

    Args:
        model: an open model.
        score: its `pair_scorer`.
        sets: what `load_nli` returned.
        key: of the record.
        fingerprint: of the pairs.
        device: where the model computes, to know whose memory to look at.

    Raises:
        InputError: a score is not finite.
    """
    started = time.perf_counter()
    gpu_peak_mib(device, reset=True)
    with PeakMemory() as peak:
        found = nli_auroc(score, sets)
    seconds = time.perf_counter() - started
    pairs = sum(map(len, sets.values()))
    return {
        **key._asdict(),
        "name": model.name,
        "family": model.family,
        "parameters": model.parameters,
        "revision": model.revision,
        "described": model.describe,
        "benchmark": NLI_TASK,
        "task_family": NLI_TASK,
        "fingerprint": fingerprint,
        "texts": pairs,
        "classes": 2,
        "notes": [],
        "metrics": {"auroc": found[MEAN]},
        "by_source": {source: value for source, value in found.items() if source != MEAN},
        "intervals": None,
        "seconds": seconds,
        "texts_per_second": pairs / max(seconds, 1e-9),
        "peak_memory_mib": peak.mib,
        "memory_method": peak.method,
        "gpu_memory_mib": gpu_peak_mib(device),
        "provenance": provenance(
            seeds=key.seed,
            data={"task": "NLI pairs", "sources": list(sets), "fingerprint": fingerprint},
            dtype=key.dtype,
        ),
    }
