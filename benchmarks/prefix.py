"""What the shared prefix of a generative reranker is worth: gemma-3-270m on the 77 intents, with and without it.

    python benchmarks/prefix.py

Both ways give the same scores; the plain one computes every whole prompt, with the better of two token budgets.
Run nothing else beside it.
"""

import argparse
import statistics
import time
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import numpy as np
from tasks import DATA, ROOT

from labelspace.evaluate.bench.tasks import load_task
from labelspace.evaluate.provenance import provenance, write_result
from labelspace.families.generative_reranker import GenerativeReranker

TASK = "mteb/banking77"
PLAIN_BUDGETS = (2048, 16_384)


def seconds(work: Callable[[], Any]) -> tuple[float, Any]:
    """Time one call."""
    started = time.perf_counter()
    value = work()
    return time.perf_counter() - started, value


def difference(name: str, texts: list[str], labels: list[str]) -> float:
    """The largest difference of a score between both ways, in float32."""
    reranker = GenerativeReranker(name, dtype="float32")
    return float(np.abs(reranker.score_texts(texts, labels) - reranker._score_without_cache(texts, labels)).max())


def main() -> None:
    """Measure and write it down."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--model", default="gemma-3-270m")
    parser.add_argument("--texts", type=int, default=4)
    parser.add_argument("--repeats", type=int, default=3)
    options = parser.parse_args()
    task = load_task(TASK, data=DATA, limit=options.texts)
    labels = list(task.space.verbalizers)
    reranker = GenerativeReranker(options.model)
    own = reranker.config

    def plain(budget: int) -> np.ndarray:
        reranker.config = replace(own, token_budget=budget)
        try:
            return reranker._score_without_cache(task.texts, labels)
        finally:
            reranker.config = own

    reranker.score_texts(task.texts[:1], labels[:4])
    pairs = []
    for _ in range(options.repeats):
        slow = {budget: seconds(lambda budget=budget: plain(budget)) for budget in PLAIN_BUDGETS}
        fast, _ = seconds(lambda: reranker.score_texts(task.texts, labels))
        best = min(taken for taken, _ in slow.values())
        pairs.append(
            {"plain_seconds": {str(b): t for b, (t, _) in slow.items()}, "shared_seconds": fast, "ratio": best / fast}
        )
        print(pairs[-1], flush=True)
    prefixes = reranker._prefixes(task.texts, reranker._continuations(labels))
    facts = {
        "model": options.model,
        "dtype": str(reranker.model.dtype).removeprefix("torch."),
        "task": TASK,
        "texts": len(task.texts),
        "labels": len(labels),
        "prefix_tokens": [len(ids) for ids in prefixes],
        "largest_difference_float32": difference(options.model, task.texts[:1], labels),
        "pairs": pairs,
        "ratio": statistics.median(pair["ratio"] for pair in pairs),
    }
    path = ROOT / "benchmarks" / "results" / "speed_prefix.json"
    write_result(path, facts, provenance=provenance(seeds=[0], data="shared/data/mteb/banking77"))


if __name__ == "__main__":
    main()
