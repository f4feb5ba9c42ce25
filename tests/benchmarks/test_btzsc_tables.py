"""The tables of docs/btzsc.md take one way of running a model each, and show memory where its origin is known."""

import sys
from pathlib import Path

import pytest

from bench_fakes import record
from labelspace.evaluate.bench import ResultStore

FOLDER = Path(__file__).parents[2] / "benchmarks"


@pytest.fixture
def tables(monkeypatch, tmp_path):
    """The module, with stores of its own."""
    monkeypatch.syspath_prepend(str(FOLDER))
    monkeypatch.delitem(sys.modules, "btzsc_tables", raising=False)
    import btzsc_tables

    monkeypatch.setattr(btzsc_tables, "STORE", tmp_path / "results.jsonl")
    monkeypatch.setattr(btzsc_tables, "SPEED", tmp_path / "speed.jsonl")
    return btzsc_tables


def test_a_place_is_that_of_one_way_and_not_of_whichever_came_last(tables):
    store = ResultStore(tables.STORE)
    for way in ({}, {"limit": 10}, {"protocol": "paper"}):
        store.append(record("embedding:a", "imdb", 0.1 if way else 0.9, **way))
    assert tables.by_model()["embedding:a"]["imdb"]["macro_f1_predicted"] == 0.9
    assert "| embedding:a | 17 |" in tables.places()


def test_costs_are_in_no_table_of_means(tables):
    ResultStore(tables.STORE).append(record(peak_memory_mib=900.0))
    assert "peak MiB" not in tables.means("btzsc")
    assert "texts/s" not in tables.means("btzsc")


def test_peak_memory_is_beside_the_speeds_where_it_is_known_what_was_there_before(tables):
    store = ResultStore(tables.SPEED)
    store.append(record(classes=4, peak_memory_mib=900.0))
    assert "peak MiB" not in tables.speeds()
    store.append(record(classes=4, peak_memory_mib=900.4, memory_before_mib=500.0))
    assert tables.speeds().splitlines() == [
        "| texts per second | agnews, 4 labels | peak MiB |",
        "|---|---:|---:|",
        "| embedding:a | 50.0 (1 x) | 900 |",
    ]
