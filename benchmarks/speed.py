"""Measure speed as ratios of two measurements of the same run.

    python benchmarks/speed.py encode      # texts to vectors and labels, beside other libraries on the same encoder
    python benchmarks/speed.py step        # a training step against the float32, padded, single-batch reference
    python benchmarks/speed.py products    # matrix products of its shapes, bfloat16 against float32, one thread

Run it on an otherwise idle machine.
"""

import argparse
import statistics
import time
from collections.abc import Callable, Mapping
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import numpy as np
import peers
import torch
from measured import measure, seconds
from scoring import by_anchor
from tasks import DATA, load_rows, load_task

from labelspace import Encoder, ZeroShotClassifier
from labelspace.config import TrainingConfig
from labelspace.labels import LabelSpace
from labelspace.training.description.objective import run as train
from labelspace.training.description.sweep import build_sweep, sweep_loss, sweep_texts
from labelspace.training.trainable import trainable_weights

MINILM = "all-MiniLM-L6-v2"


def encode(options: argparse.Namespace) -> dict[str, Any]:
    """Measure documents per second on four sets, in turns: every peer, ours, every peer, ours ..."""
    ours, exact = Encoder(options.encoder), Encoder(options.encoder, dtype="float32")
    peer = {
        "sentence-transformers, float32": peers.sentence_transformers(ours.folder, torch.float32),
        "sentence-transformers, bfloat16": peers.sentence_transformers(ours.folder, torch.bfloat16),
    }
    if peers.installed("onnxruntime", "onnxscript"):
        peer["ONNX runtime, float32"] = peers.onnx_runtime(ours.folder)
    ways = {**peer, "labelspace, float32": exact.encode, "labelspace": ours.encode}
    if peers.installed("model2vec"):
        ways["model2vec, static"] = peers.static(ours.folder, exact.encode)
    found = {}
    for name in options.tasks or ("agnews", "emotion", "imdb", "banking77"):
        texts, truth, space = _rows(name, options)
        rates, vectors = _in_turns(ways, texts, options.repeats)
        limit = _product_seconds(sum(map(len, ours.tokenize(list(dict.fromkeys(texts))))), ours)
        found[name] = {
            "documents": len(texts),
            "rates": {way: round(statistics.median(each), 1) for way, each in rates.items()},
            "ratios": {
                way: [round(ours_rate / rate, 2) for ours_rate, rate in zip(rates["labelspace"], each, strict=True)]
                for way, each in rates.items()
                if way != "labelspace"
            },
            "products_share": round(limit * statistics.median(rates["labelspace"]) / len(texts), 2),
            "macro_f1_predicted": {
                way: {anchor: round(score, 4) for anchor, score in by_anchor(exact, space, each, truth).items()}
                for way, each in vectors.items()
            },
        }
        print(name, found[name], flush=True)
    return {"dtype": ours.dtype, "sets": found, "predict": _predicting(options, ours)}


def _rows(name: str, options: argparse.Namespace) -> tuple[list[str], list[str], LabelSpace]:
    if name == "imdb":
        space = LabelSpace.from_file(Path(__file__).parent.parent / "examples" / "rottentomatoes.yaml")
        texts, truth = load_rows(options.data / "mteb" / "imdb", "test", space)
    else:
        task = load_task(name, options.data, "own")
        texts, truth, space = task.texts, task.truth, task.labels
    rows = np.random.default_rng(0).permutation(len(texts))[: options.documents // (4 if name == "imdb" else 1)]
    return [texts[row] for row in rows], [truth[row] for row in rows], space


def _in_turns(
    ways: Mapping[str, Callable[[list[str]], np.ndarray]], texts: list[str], repeats: int
) -> tuple[dict[str, list[float]], dict[str, np.ndarray]]:
    """Return the documents per second of each turn, which has texts not seen before, and the vectors, of each way."""
    rates: dict[str, list[float]] = {way: [] for way in ways}
    vectors: dict[str, list[np.ndarray]] = {way: [] for way in ways}
    for work in ways.values():
        work(texts[:64])
    for part in np.array_split(np.array(texts, dtype=object), repeats):
        for way, work in ways.items():
            taken, found = seconds(lambda work=work, part=part: work(part.tolist()))
            rates[way].append(len(part) / taken)
            vectors[way].append(np.asarray(found))
    return rates, {way: np.concatenate(each) for way, each in vectors.items()}


def _product_seconds(tokens: int, encoder: Encoder, rows: int = 1024) -> float:
    """Return the seconds of the linear layers' products alone for some tokens, in the encoder's number format.

    A product a thread at once, each on one thread, over and over on the same numbers: what this torch makes of this
    machine, with nothing between the products.
    """
    config = encoder.backbone.transformer.model.config
    width, wide = config.hidden_size, config.intermediate_size
    dtype = getattr(torch, encoder.dtype)
    shapes = [(width, 3 * width), (width, width), (width, wide), (wide, width)]
    pairs = [(torch.ones(rows, inner, dtype=dtype), torch.ones(outer, inner, dtype=dtype)) for inner, outer in shapes]
    threads, times = torch.get_num_threads(), 30

    def work(_: int) -> None:
        torch.set_num_threads(1)
        with torch.inference_mode():
            for states, weight in pairs * times:
                torch.nn.functional.linear(states, weight)

    with ThreadPoolExecutor(threads) as pool:
        list(pool.map(work, range(threads)))
        taken, _ = seconds(lambda: list(pool.map(work, range(threads))))
    torch.set_num_threads(threads)
    return taken / (threads * times * rows) * tokens * config.num_hidden_layers


def _predicting(options: argparse.Namespace, encoder: Encoder) -> dict[str, Any]:
    """Measure labelled documents per second on AG News, in turns; few, because the pipeline is slow."""
    texts, truth, space = _rows("agnews", options)
    ways: dict[str, Callable[[list[str]], Any]] = {
        "labelspace": ZeroShotClassifier(space, encoder=encoder).fit().predict
    }
    if peers.installed("setfit"):
        ways["SetFit"] = peers.setfit(encoder.folder, texts[:64], truth[:64])
    pipeline = peers.zero_shot(encoder.folder, space.names)
    ways["zero-shot pipeline"] = pipeline
    rates, _ = _in_turns(ways, texts, options.repeats)
    return {way: round(statistics.median(each), 1) for way, each in rates.items()}


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
    for name in options.tasks or ("agnews", "banking77"):
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
    parser.add_argument("what", choices=["encode", "step", "products"])
    parser.add_argument("--data", type=Path, default=DATA)
    parser.add_argument("--encoder", default=MINILM)
    parser.add_argument("--documents", type=int, default=3000)
    parser.add_argument("--repeats", type=int, default=3)
    parser.add_argument("--steps", type=int, default=6)
    parser.add_argument("--tasks", nargs="+")
    options = parser.parse_args()
    work = {"encode": encode, "step": step, "products": products}[options.what]
    data = "shared/data, agnews, emotiondair, imdb, banking77"
    measure(f"speed_{options.what}", data, lambda: {"encoder": options.encoder, **work(options)})


if __name__ == "__main__":
    main()
