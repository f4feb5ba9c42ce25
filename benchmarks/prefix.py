"""Measure the speed-up of a generative reranker's shared prefix: gemma-3-270m with 77 labels, with and without it.

    python benchmarks/prefix.py

The labels are the 77 intents; the texts are short (banking77, the source of the labels) and longer ones. Both ways give
the same scores. The plain way computes every prompt in full, with the faster of two token budgets. Run it on an
otherwise idle machine.
"""

import argparse
import statistics
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
from measured import measure, seconds
from tasks import DATA

from labelspace.bench.tasks import load_task
from labelspace.families.generative_reranker import GenerativeReranker

LABELS = "mteb/banking77"
TEXTS = ("mteb/banking77", "agnews", "imdb")
PLAIN_BUDGETS = (2048, 16_384)


def difference(name: str, texts: list[str], labels: list[str]) -> float:
    """Return the largest difference between the scores of both ways, in float32."""
    reranker = GenerativeReranker(name, dtype="float32")
    return float(np.abs(reranker.score_texts(texts, labels) - reranker._score_without_cache(texts, labels)).max())


def compare(reranker: GenerativeReranker, texts: list[str], labels: list[str], repeats: int) -> dict[str, Any]:
    """Time in turns: full prompts with each budget, then the shared prefix."""
    own = reranker.config

    def plain(budget: int) -> np.ndarray:
        reranker.config = replace(own, token_budget=budget)
        try:
            return reranker._score_without_cache(texts, labels)
        finally:
            reranker.config = own

    pairs = []
    for _ in range(repeats):
        slow = {budget: seconds(lambda budget=budget: plain(budget))[0] for budget in PLAIN_BUDGETS}
        fast, _ = seconds(lambda: reranker.score_texts(texts, labels))
        ratio = min(slow.values()) / fast
        pairs.append({"plain_seconds": {str(b): t for b, t in slow.items()}, "shared_seconds": fast, "ratio": ratio})
        print(pairs[-1], flush=True)
    prefixes = reranker._prefixes(texts, reranker._continuations(labels))
    return {
        "texts": len(texts),
        "prefix_tokens": [len(ids) for ids in prefixes],
        "pairs": pairs,
        "ratio": statistics.median(pair["ratio"] for pair in pairs),
    }


def both_ways(options: argparse.Namespace) -> dict[str, Any]:
    """Compare both ways on every set of texts."""
    labels = list(load_task(LABELS, data=DATA, limit=1).space.verbalizers)
    texts = {name: load_task(name, data=DATA, limit=options.texts).texts for name in TEXTS}
    reranker = GenerativeReranker(options.model)
    reranker.score_texts(texts[LABELS][:1], labels[:4])
    return {
        "model": Path(options.model).stem,
        "dtype": str(reranker.model.dtype).removeprefix("torch."),
        "labels": len(labels),
        "largest_difference_float32": difference(options.model, texts[LABELS][:1], labels),
        "sets": {name: compare(reranker, texts[name], labels, options.repeats) for name in TEXTS},
    }


def main() -> None:
    """Measure and store the result."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--model", default="runs/gemma-3-270m.gguf")
    parser.add_argument("--texts", type=int, default=3)
    parser.add_argument("--repeats", type=int, default=3)
    options = parser.parse_args()
    measure("speed_prefix", "shared/data, " + ", ".join(TEXTS), lambda: both_ways(options))


if __name__ == "__main__":
    main()
