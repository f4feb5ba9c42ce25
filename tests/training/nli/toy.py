"""A toy task for two layers: a hypothesis follows from the premise if its word is in the premise."""

import random
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq

from labelspace.training.nli import Pairs

HYPOTHESES = ("team", "bank", "war")
FILLERS = ("the", "will", "time", "good")


def toy_pairs(count: int, *, seed: int = 0, sources: tuple[str, ...] = ("toy",)) -> Pairs:
    """Draw premises about a team, classes in turn: entailment (team), neutral (bank), contradiction (war)."""
    draw = random.Random(seed)
    rows = []
    for row in range(count):
        filled = [draw.choice(FILLERS) for _ in range(draw.randrange(4))]
        label = row % 3
        rows.append((" ".join(["team", *filled]), HYPOTHESES[label], label, sources[row // 3 % len(sources)]))
    premises, hypotheses, labels, names = zip(*rows, strict=True)
    return Pairs(premises=premises, hypotheses=hypotheses, labels=labels, sources=names)


def write_pairs(path: Path, pairs: Pairs) -> Path:
    """Write pairs as Parquet."""
    columns = {
        "premise": pa.array(pairs.premises),
        "hypothesis": pa.array(pairs.hypotheses),
        "label": pa.array(pairs.labels, pa.int8()),
        "source": pa.array(pairs.sources),
    }
    pq.write_table(pa.table(columns), path)
    return path
