"""Measure speed as ratios of two measurements of the same run.

    python benchmarks/speed.py encode      # Encoder.encode against SentenceTransformer.encode with its defaults
    python benchmarks/speed.py step        # a training step against the float32, padded, single-batch reference
    python benchmarks/speed.py engines     # Encoder(engine="openvino") against torch
    python benchmarks/speed.py products    # matrix products of its shapes, bfloat16 against float32, one thread

Run it on an otherwise idle machine.
"""

import argparse
import statistics
import time
from pathlib import Path
from typing import Any

import numpy as np
import torch
from measured import measure, seconds
from scoring import by_anchor
from sentence_transformers import SentenceTransformer
from tasks import DATA, load_task

from labelspace import Encoder, ZeroShotClassifier
from labelspace.config import TrainingConfig
from labelspace.labels import LabelSpace
from labelspace.training.description.objective import run as train
from labelspace.training.description.sweep import build_sweep, sweep_loss, sweep_texts
from labelspace.training.trainable import trainable_weights

MINILM = "all-MiniLM-L6-v2"


def encode(options: argparse.Namespace) -> dict[str, Any]:
    """Measure documents per second on AG News test in turns: theirs, ours, theirs, ours ..."""
    task = load_task("agnews", options.data, "official")
    texts = task.texts[: options.documents]
    ours = Encoder(options.encoder)
    theirs = SentenceTransformer(str(ours.folder), device="cpu")
    theirs.encode(texts[:64])
    ours.encode(texts[:64])
    pairs = []
    vectors: dict[str, np.ndarray] = {}
    for _ in range(options.repeats):
        slow, vectors["sentence-transformers"] = seconds(lambda: theirs.encode(texts))
        fast, vectors["labelspace"] = seconds(lambda: ours.encode(texts))
        pairs.append(
            {"sentence_transformers": len(texts) / slow, "labelspace": len(texts) / fast, "ratio": slow / fast}
        )
        print(pairs[-1], flush=True)
    exact = Encoder(options.encoder, dtype="float32")
    truth = task.truth[: len(texts)]
    return {
        "documents": len(texts),
        "dtype": ours.dtype,
        "pairs": pairs,
        "ratio": statistics.median(pair["ratio"] for pair in pairs),
        "macro_f1_predicted": {
            "sentence-transformers, float32": by_anchor(exact, task.labels, vectors["sentence-transformers"], truth),
            "labelspace": by_anchor(ours, task.labels, vectors["labelspace"], truth),
        },
    }


def reference_step(encoder: Encoder, space: LabelSpace, steps: int) -> tuple[list[float], list[float]]:
    """Time the plain implementation: float32, all texts padded to the longest, one batch, AdamW."""
    texts, targets = sweep_texts(space)
    token_ids = encoder.tokenize([*texts, *space.verbalizers])
    batch = encoder.backbone.batch(token_ids, list(range(len(token_ids))))
    optimizer = torch.optim.AdamW(encoder.backbone.model.parameters(), lr=1e-5, weight_decay=0.01)
    loss_of = sweep_loss("both", 0.07)
    times, losses = [], []
    for _ in range(steps):

        def step() -> float:
            optimizer.zero_grad()
            vectors = encoder.backbone.embed(batch, training=True)
            loss = loss_of(vectors[: len(texts)], vectors[len(texts) :], torch.tensor(targets))
            loss.backward()
            optimizer.step()
            return loss.item()

        taken, loss = seconds(step)
        times.append(taken)
        losses.append(loss)
    return times, losses


def step(options: argparse.Namespace) -> dict[str, Any]:
    """Measure seconds per update and both loss curves, at a constant learning rate."""
    results = {}
    for name in options.tasks:
        space = load_task(name, options.data, "own").labels
        slow, slow_losses = reference_step(Encoder(options.encoder, dtype="float32"), space, options.steps)
        encoder = Encoder(options.encoder)
        config = TrainingConfig(warmup=0.0, max_steps=options.steps, check_every=options.steps + 1)
        sweep = build_sweep(encoder, space, max_tokens_in_memory=config.max_tokens_in_memory)
        stamps = [time.perf_counter()]
        with trainable_weights(encoder.backbone) as weights:
            curve = train(
                encoder.backbone,
                weights,
                sweep,
                config,
                learning_rate=1e-5,
                seed=0,
                callbacks=[lambda *_, stamps=stamps: stamps.append(time.perf_counter())],
            )
        fast = np.diff(stamps).tolist()
        # Leave out the first step, the warm-up of both sides.
        results[name] = {
            "reference_seconds": slow,
            "labelspace_seconds": fast,
            "ratio": statistics.median(slow[1:]) / statistics.median(fast[1:]),
            "reference_losses": slow_losses,
            "labelspace_losses": list(curve.losses),
            "dtype": encoder.dtype,
            "tokens": sweep.tokens,
        }
        print(name, "ratio", results[name]["ratio"], flush=True)
    return results


def engines(options: argparse.Namespace) -> dict[str, Any]:
    """Measure documents per second in turns, each time on documents not seen before, and answers that differ."""
    by_torch, other = (Encoder(options.encoder, engine=engine) for engine in ("torch", "openvino"))
    exact = Encoder(options.encoder, dtype="float32")
    results = {}
    for name in options.tasks:
        task = load_task(name, options.data, "own", test_rows=options.documents)
        size = len(task.texts) // (options.repeats + 1)
        parts = [task.texts[start : start + size] for start in range(0, size * (options.repeats + 1), size)]
        for encoder in (by_torch, other):
            encoder.encode(parts[0])
        pairs = []
        for turn, part in enumerate(parts[1:]):
            order = (by_torch, other) if turn % 2 else (other, by_torch)
            taken = {encoder.config.engine: seconds(lambda e=encoder, p=part: e.encode(p))[0] for encoder in order}
            pairs.append(taken | {"ratio": taken["torch"] / taken["openvino"]})
            print(name, pairs[-1], flush=True)
        head = ZeroShotClassifier(task.labels, exact).fit().head_
        answers = {
            key: head.judge_vectors(encoder.encode(task.texts), task.labels).scores.argmax(axis=1)
            for key, encoder in {"float32": exact, "torch": by_torch, "openvino": other}.items()
        }
        results[name] = {
            "documents_a_turn": size,
            "dtype": by_torch.dtype,
            "pairs": pairs,
            "ratio": statistics.median(pair["ratio"] for pair in pairs),
            "differ": {key: int((answers[key] != answers["float32"]).sum()) for key in ("torch", "openvino")},
        }
    return results


def products(options: argparse.Namespace) -> dict[str, Any]:
    """Measure GFLOP/s in MiniLM's linear layers at 1,024 tokens: the bound on what bfloat16 can gain."""
    threads = torch.get_num_threads()
    torch.set_num_threads(1)
    rates: dict[str, dict[str, float]] = {}
    for inner, outer in ((384, 384), (384, 1536), (1536, 384)):
        for dtype in (torch.float32, torch.bfloat16):
            states, weight = (torch.ones(rows, inner, dtype=dtype) for rows in (1024, outer))
            with torch.inference_mode():
                torch.nn.functional.linear(states, weight)
                taken = [
                    seconds(lambda x=states, w=weight: torch.nn.functional.linear(x, w))[0]
                    for _ in range(40 * options.repeats)
                ]
            rate = 2 * 1024 * inner * outer / statistics.median(taken) / 1e9
            rates.setdefault(f"{inner} to {outer}", {})[str(dtype).removeprefix("torch.")] = rate
    torch.set_num_threads(threads)
    ratios = [shape["bfloat16"] / shape["float32"] for shape in rates.values()]
    return {"gflops": rates, "ratio": statistics.median(ratios)}


def main() -> None:
    """Run one measurement and store it."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("what", choices=["encode", "step", "engines", "products"])
    parser.add_argument("--data", type=Path, default=DATA)
    parser.add_argument("--encoder", default=MINILM)
    parser.add_argument("--documents", type=int, default=7600)
    parser.add_argument("--repeats", type=int, default=3)
    parser.add_argument("--steps", type=int, default=6)
    parser.add_argument("--tasks", nargs="+", default=["agnews", "banking77"])
    options = parser.parse_args()
    work = {"encode": encode, "step": step, "engines": engines, "products": products}[options.what]
    data = "shared/data/btzsc/agnews, shared/data/mteb/banking77"
    measure(f"speed_{options.what}", data, lambda: {"encoder": options.encoder, **work(options)})


if __name__ == "__main__":
    main()
