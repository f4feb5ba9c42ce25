"""Macro-F1 on the five data sets of the description-only study: untrained and trained, every anchor, every seed.

    python benchmarks/quality.py                                   # MiniLM, three seeds
    python benchmarks/quality.py --encoder all-mpnet-base-v2 --max-steps 60

One JSON file a run; a run that has its file is skipped. The pool comes from the train split, never from test.
"""

import argparse
import time
from pathlib import Path
from typing import Any

import numpy as np
from sklearn.metrics import f1_score
from tasks import DATA, ROOT, SOURCES, Task, load_task

from labelspace import DescriptionClassifier, Encoder
from labelspace.classify.anchors import anchor_matrix, cosines, encode_labels
from labelspace.config import ANCHORS, SearchConfig
from labelspace.evaluate.provenance import provenance, write_result
from labelspace.labels import LabelSpace


def macro_f1_predicted(encoder: Encoder, space: LabelSpace, vectors: np.ndarray, truth: list[str]) -> dict[str, float]:
    """Score documents that are encoded already, once for each anchor."""
    label_vectors = encode_labels(encoder, space)
    names = np.array(space.names, dtype=object)
    scores = {anchor: cosines(vectors, anchor_matrix(label_vectors, space, anchor)) for anchor in ANCHORS}
    return {
        anchor: float(f1_score(truth, names[matrix.argmax(axis=1)], average="macro", zero_division=0))
        for anchor, matrix in scores.items()
    }


def run(task: Task, encoder_name: str, pooling: str | None, seed: int, options: argparse.Namespace) -> dict[str, Any]:
    """Train once and score every anchor."""
    search = SearchConfig(steps=options.search_steps, strategy=options.strategy)
    clf = DescriptionClassifier(
        task.labels,
        encoder=Encoder(encoder_name, pooling=pooling),
        seed=seed,
        max_steps=options.max_steps,
        learning_rate=options.learning_rate,
        search=search,
        verbose=True,
    )
    started = time.perf_counter()
    clf.fit(task.pool)
    seconds = time.perf_counter() - started
    result = clf.fit_result_
    return {
        "macro_f1_predicted": macro_f1_predicted(
            clf.encoder_, task.labels, clf.encoder_.encode(task.texts), task.truth
        ),
        "learning_rate": result.rate.learning_rate,
        "trials": [vars(trial) for trial in result.rate.trials],
        "steps": result.curve.steps,
        "best_step": result.curve.best_step,
        "stop_reason": result.curve.stop_reason,
        "last_loss": result.curve.losses[-1],
        "uniformity": [result.uniformity_before, result.uniformity_after],
        "fit_seconds": seconds,
        "training": clf.training_config().to_dict(),
        "search": search.to_dict(),
    }


def main() -> None:
    """Run what is missing."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--data", type=Path, default=DATA)
    parser.add_argument("--out", type=Path, default=ROOT / "benchmarks" / "results" / "quality")
    parser.add_argument("--encoder", default="all-MiniLM-L6-v2")
    parser.add_argument("--pooling", default=None)
    parser.add_argument("--tasks", nargs="+", default=list(SOURCES), choices=list(SOURCES))
    parser.add_argument("--seeds", nargs="+", type=int, default=[0, 1, 2])
    parser.add_argument("--verbalizers", choices=["official", "own"], default="official")
    parser.add_argument("--max-steps", type=int, default=1000)
    parser.add_argument("--learning-rate", default="uniformity", choices=["uniformity", "base"])
    parser.add_argument("--test-rows", type=int, help="at most so many test rows, a fixed draw; all")
    parser.add_argument("--search-steps", type=int, default=SearchConfig.steps)
    parser.add_argument("--strategy", default=SearchConfig.strategy)
    parser.add_argument("--untrained-only", action="store_true")
    options = parser.parse_args()
    if not options.data.is_dir():
        raise SystemExit(f"no data in {options.data}; say where it is with --data")
    short = Path(options.encoder).name
    for name in options.tasks:
        task = load_task(name, options.data, options.verbalizers, test_rows=options.test_rows)
        prefix = f"{short}{'-' + options.pooling if options.pooling else ''}_{name}_{options.verbalizers}"
        facts = {
            "task": name,
            "encoder": short,
            "pooling": options.pooling,
            "verbalizers": options.verbalizers,
        }
        facts |= {"labels": len(task.labels), "test_rows": len(task.texts), "pool": task.pool_source}
        untrained = options.out / f"{prefix}_untrained.json"
        if not untrained.exists():
            encoder = Encoder(options.encoder, pooling=options.pooling)
            scores = macro_f1_predicted(encoder, task.labels, encoder.encode(task.texts), task.truth)
            write_result(
                untrained,
                {**facts, "macro_f1_predicted": scores},
                provenance=provenance(seeds=[], data=task.pool_source),
            )
            print(f"{prefix} untrained {scores}", flush=True)
        for seed in [] if options.untrained_only else options.seeds:
            way = options.strategy if options.learning_rate == "uniformity" else "base"
            path = options.out / f"{prefix}_{way}_{options.max_steps}_seed{seed}.json"
            if path.exists():
                continue
            result = run(task, options.encoder, options.pooling, seed, options)
            write_result(
                path, {**facts, "seed": seed, **result}, provenance=provenance(seeds=[seed], data=task.pool_source)
            )
            print(
                f"{path.stem} {result['macro_f1_predicted']} lr {result['learning_rate']:.0e} steps {result['steps']}",
                flush=True,
            )


if __name__ == "__main__":
    main()
