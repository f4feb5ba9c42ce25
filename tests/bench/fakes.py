"""Helpers of the benchmark's tests: data sets in the layout of the data folder, one-line scorers, records."""

import hashlib
import json
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from labelspace.bench.models import OpenModel
from labelspace.labels import LabelSpace

WORDS = ("match", "vote", "price", "film", "goal", "bank", "team", "law")


class FakeScorer:
    """A scorer without a model: a hash of text and label, equal on every machine."""

    def __init__(self, *, seconds: float = 0.0, bad: float | None = None, shape: int = 0) -> None:
        self.seconds = seconds
        self.bad = bad
        self.shape = shape
        self.calls: list[int] = []

    def scores(self, texts: Sequence[str], space: LabelSpace) -> np.ndarray:
        self.calls.append(len(texts))
        time.sleep(self.seconds)
        rows = [
            [hashlib.sha256(f"{text}|{label}".encode()).digest()[0] / 255 for label in space.verbalizers]
            for text in texts
        ]
        found = np.array(rows, dtype=np.float32).reshape(len(texts), len(space))
        if self.bad is not None:
            found[-1, 0] = self.bad
        return found[:, : found.shape[1] - self.shape]


def fake_model(spec: str = "embedding:fake", *, family: str = "embedding", **options: Any) -> OpenModel:
    """An open model that needs no weights."""
    return OpenModel(
        scorer=FakeScorer(**options),
        spec=spec,
        name=spec.partition(":")[2],
        family=family,
        parameters=1_000_000,
        revision="sha256:fake",
        describe={"dtype": "float32"},
    )


def write_task(folder: Path, name: str, *, rows: int = 12, classes: Sequence[str] = ("bad", "good")) -> Path:
    """Write a data set in the layout of the data folder, with made-up texts."""
    place = folder / "btzsc" / name
    place.mkdir(parents=True)
    texts = [f"text {number} about the {WORDS[number % len(WORDS)]}" for number in range(rows)]
    labels = [number % len(classes) for number in range(rows)]
    pq.write_table(pa.table({"text": texts, "label": pa.array(labels, pa.int64())}), place / "test.parquet")
    known = [{"name": label, "hypothesis": f"This is {label}"} for label in classes]
    facts = {"task": "sentiment", "domain": "test", "classes": known, "template": "This is {class}", "complete": True}
    facts |= {"source": "made by a test", "licence": "CC0", "note": ""}
    (place / "labels.json").write_text(json.dumps(facts), encoding="utf-8")
    return folder


def record(model: str = "embedding:a", task: str = "agnews", score: float = 0.5, **more: Any) -> dict[str, Any]:
    """A record as the runner writes it."""
    from labelspace.bench.cards import BTZSC, MTEB
    from labelspace.evaluate.provenance import REQUIRED

    card = BTZSC.get(task) or MTEB.get(task)
    origin = dict.fromkeys(REQUIRED) | {"hardware": {"processor": "a processor", "accelerator": None}}
    numbers = {
        "macro_f1_predicted": score,
        "accuracy": score,
        "macro_precision_predicted": score,
        "macro_recall_predicted": score,
    }
    return {
        "model": model,
        "task": task,
        "protocol": "full",
        "unverbalized": "leave_out",
        "limit": None,
        "seed": 0,
        "dtype": "float32",
        "name": model.partition(":")[2],
        "family": "embedding",
        "parameters": 22_000_000,
        "revision": None,
        "benchmark": card.benchmark if card else "own",
        "task_family": card.family if card else "own",
        "fingerprint": f"f{more.get('seed') or ''}",
        "texts": 100,
        "metrics": numbers,
        "intervals": None,
        "seconds": 2.0,
        "texts_per_second": 50.0,
        "provenance": origin,
        **more,
    }
