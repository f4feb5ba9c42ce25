"""Fixtures of the runner's tests: two small data sets, a store, NLI pairs."""

from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from bench.fakes import write_task
from labelspace.bench import ResultStore


@pytest.fixture
def data(tmp_path) -> Path:
    """A folder with two of the data sets."""
    for name in ("rottentomatoes", "imdb"):
        write_task(tmp_path / "data", name)
    return tmp_path / "data"


@pytest.fixture
def store(tmp_path) -> ResultStore:
    """An empty store."""
    return ResultStore(tmp_path / "results.jsonl")


@pytest.fixture
def nli_folder(tmp_path) -> Path:
    """A folder with eight NLI pairs of two sources."""
    pairs = {
        "premise": ["it rains", "it rains", "a team won", "a team won"] * 2,
        "hypothesis": ["it is wet", "it is dry", "somebody won", "nobody won"] * 2,
        "label": [0, 2, 0, 1] * 2,
        "source": ["mnli_matched_dev"] * 4 + ["other"] * 4,
    }
    (tmp_path / "nli").mkdir()
    pq.write_table(pa.table(pairs), tmp_path / "nli" / "dev.parquet")
    return tmp_path / "nli"
