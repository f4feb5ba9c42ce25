"""Compare our scorers with the authors' harness (package btzsc) on the same models and texts, in one run.

    python benchmarks/harness.py agree --nli FOLDER --triplet FOLDER    # float32: largest difference, same argmax
    python benchmarks/harness.py speed --nli FOLDER    # texts per second, both with their defaults

FOLDER is a cross-encoder written by `labelspace train-nli`. The harness cannot open its head, so the harness's code
runs on the same weights through `_AsSequenceClassifier`. That both open a transformers checkpoint alike is tested on
tiny ones (tests/families). Run `speed` on an otherwise idle machine.
"""

import argparse
import statistics
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import torch
from btzsc.models.embedding import EmbeddingModel
from btzsc.models.nli import NLIModel as TheirNLI
from btzsc.models.reranker import RerankerModel as TheirReranker
from measured import measure, seconds
from tasks import DATA

from labelspace.bench.models import open_model
from labelspace.bench.tasks import Task, load_task
from labelspace.families import EntailmentScorer, RerankerScorer
from labelspace.training.nli.model import NLIModel

MINILM = "all-MiniLM-L6-v2"


class _AsSequenceClassifier:
    """Our checkpoint behind the interface that the harness expects of transformers' models."""

    def __init__(self, model: NLIModel) -> None:
        self.model = model.eval()
        names = {"ENTAILMENT": 0} if model.variant == "binary" else {"ENTAILMENT": 0, "NEUTRAL": 1, "CONTRADICTION": 2}
        self.config = SimpleNamespace(label2id=names)

    def __call__(self, **encoded: Any) -> Any:
        return SimpleNamespace(logits=self.model(**encoded))


def theirs(kind: str, folder: str) -> Any:
    """Open a model with the harness's adapter."""
    if kind == "embedding":
        return EmbeddingModel(folder, device="cpu")
    model = NLIModel.load(Path(folder), dtype="float32", device="cpu")
    cls: Any = TheirReranker if kind == "reranker" else TheirNLI
    adapter = cls.__new__(cls)
    adapter.model_name, adapter.device = folder, "cpu"
    adapter.tokenizer, adapter.model = model.tokenizer, _AsSequenceClassifier(model)
    adapter.entailment_idx, adapter.is_qwen_reranker = 0, False
    return adapter


def ours(kind: str, folder: str, dtype: str) -> Any:
    """Open the same model with our scorer."""
    if kind == "embedding":
        return open_model(f"embedding:{folder}", dtype=dtype).scorer
    # The harness scores a three-way head by its entailment logit, as in section 4 of the paper.
    if kind == "reranker":
        return RerankerScorer(folder, dtype=dtype)
    return EntailmentScorer(folder, dtype=dtype, score="logit")


def agree(kinds: list[str], folders: dict[str, str], task: Task) -> dict[str, Any]:
    """Compare scores in float32."""
    found = {}
    labels = list(task.space.verbalizers)
    for kind in kinds:
        a = theirs(kind, folders[kind]).predict_scores(task.texts, labels)
        b = ours(kind, folders[kind], "float32").scores(task.texts, task.space)
        found[kind] = {
            "largest_difference": float(np.abs(a - b).max()),
            "largest_score": float(np.abs(a).max()),
            "same_argmax": float((a.argmax(axis=1) == b.argmax(axis=1)).mean()),
        }
        print(kind, found[kind], flush=True)
    return found


def speed(kinds: list[str], folders: dict[str, str], task: Task, repeats: int) -> dict[str, Any]:
    """Time both in turns: theirs, ours, theirs, ours ..."""
    found = {}
    labels = list(task.space.verbalizers)
    for kind in kinds:
        slow_model, fast_model = theirs(kind, folders[kind]), ours(kind, folders[kind], "auto")
        slow_model.predict_scores(task.texts[:2], labels)
        fast_model.scores(task.texts[:2], task.space)
        pairs = []
        for _ in range(repeats):
            slow, a = seconds(lambda model=slow_model: model.predict_scores(task.texts, labels))
            fast, b = seconds(lambda model=fast_model: model.scores(task.texts, task.space))
            pairs.append(
                {"harness": len(task.texts) / slow, "labelspace": len(task.texts) / fast, "ratio": slow / fast}
            )
            print(kind, pairs[-1], flush=True)
        found[kind] = {
            "texts_per_second": pairs,
            "ratio": statistics.median(pair["ratio"] for pair in pairs),
            "same_argmax": float((a.argmax(axis=1) == b.argmax(axis=1)).mean()),
        }
    return found


def main() -> None:
    """Run one measurement and store it."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("what", choices=["agree", "speed"])
    parser.add_argument("--nli", help="a cross-encoder of labelspace train-nli; without it, embeddings only")
    parser.add_argument("--triplet", help="one with a three-way head")
    parser.add_argument("--data", type=Path, default=DATA / "btzsc")
    parser.add_argument("--task", default="banking77")
    parser.add_argument("--texts", type=int, default=200)
    parser.add_argument("--repeats", type=int, default=3)
    options = parser.parse_args()
    from labelspace.encoders.resolve import resolve

    folders = {"embedding": resolve(MINILM).path_or_name, "nli": options.nli, "nli-triplet": options.triplet}
    folders["reranker"] = options.nli
    kinds = [kind for kind, folder in folders.items() if folder]
    task = load_task(options.task, data=options.data, limit=options.texts)
    facts = {"task": options.task, "texts": len(task.texts), "labels": len(task.space)}
    work = agree if options.what == "agree" else lambda *given: speed(*given, options.repeats)
    with torch.inference_mode():
        measure(
            f"harness_{options.what}",
            f"shared/data/btzsc/{options.task}",
            lambda: {**facts, **work(kinds, folders, task)},
        )


if __name__ == "__main__":
    main()
