"""The tables of docs/btzsc.md use one way of running each model, and mark ranks over other rows."""

import json
import sys
from pathlib import Path

import pytest

from bench.fakes import record
from labelspace.bench import ResultStore
from labelspace.bench.cards import BTZSC, MTEB
from labelspace.bench.published import published_scores

FOLDER = Path(__file__).parents[2] / "benchmarks"
DATA = FOLDER.parents[1] / "shared" / "data"


@pytest.fixture
def tables(monkeypatch, tmp_path):
    """The module with separate stores."""
    monkeypatch.syspath_prepend(str(FOLDER))
    monkeypatch.delitem(sys.modules, "btzsc_tables", raising=False)
    import btzsc_tables

    monkeypatch.setattr(btzsc_tables, "STORE", tmp_path / "results.jsonl")
    monkeypatch.setattr(btzsc_tables, "SPEED", tmp_path / "speed.jsonl")
    return btzsc_tables


@pytest.fixture
def rows(tables):
    import btzsc_rows

    return btzsc_rows


def test_a_rank_uses_one_way_and_not_the_last_record(tables):
    store = ResultStore(tables.STORE)
    for way in ({}, {"limit": 10}, {"protocol": "paper"}):
        store.append(record("embedding:a", "imdb", 0.1 if way else 0.9, **way))
    assert tables.by_model()["embedding:a"]["imdb"]["macro_f1_predicted"] == 0.9
    assert "| embedding:a | 17 |" in tables.places()


def test_tables_of_means_have_no_costs(tables):
    ResultStore(tables.STORE).append(record(peak_memory_mib=900.0))
    assert "peak MiB" not in tables.means("btzsc")
    assert "texts/s" not in tables.means("btzsc")


def test_peak_memory_is_shown_if_the_memory_before_the_model_is_known(tables):
    store = ResultStore(tables.SPEED)
    store.append(record(classes=4, peak_memory_mib=900.0))
    assert "peak MiB" not in tables.speeds()
    store.append(record(classes=4, peak_memory_mib=900.4, memory_before_mib=500.0))
    assert tables.speeds().splitlines() == [
        "| texts per second | agnews, 4 labels | peak MiB |",
        "|---|---:|---:|",
        "| embedding:a | 50.0 (1 x) | 900 |",
    ]


def test_sets_of_other_rows_are_marked_beside_published_scores(tables, rows):
    store = ResultStore(tables.STORE)
    for name in ("yelpreviews", "imdb"):
        store.append(record("embedding:a", name, 0.9))
    assert tables.means("btzsc").splitlines()[-3:] == [
        "Means over 2 data sets: imdb, yelpreviews‡.",
        "",
        rows.OTHER_NOTE,
    ]
    lines = tables.by_set("btzsc").splitlines()
    assert [line.split(" | ")[0] for line in lines[2:4]] == ["| imdb", "| yelpreviews‡"]
    assert lines[-1] == rows.OTHER_NOTE


def test_a_second_rank_is_over_the_comparable_sets(tables):
    store = ResultStore(tables.STORE)
    for name, score in {"imdb": 0.9, "yelpreviews": 0.1}.items():
        store.append(record("embedding:a", name, score))
    head, _, line, *_ = tables.places().splitlines()
    cells = dict(zip(head.split(" | "), line.split(" | "), strict=True))
    better = sum(own["imdb"] > 0.9 for own in published_scores().values())
    assert cells["BTZSC without ‡ (sets)"] == f"{better + 1} (1)"
    rank, sets = cells["BTZSC (sets)"].split()
    assert (int(rank) > better + 1, sets) == (True, "(2)")


def test_the_token_counts_of_the_paper_are_transcribed_correctly(rows):
    paper = DATA.parent / "papers" / "btzsc-benchmark.txt"
    if not paper.is_file():
        pytest.skip(f"no paper at {paper}")
    text = (
        paper.read_text(encoding="utf-8").replace("dair_ai_emotion", "emotiondair").replace("massive_intent", "massive")
    )
    for name, tokens in rows.PAPER_TOKENS.items():
        classes = {"banking77": 77}.get(name, BTZSC[name].classes)
        assert f" {name} {classes} {tokens}\n" in text, name


def test_the_table_of_rows_has_ours_and_the_published_ones(tables, plant):
    plant("single", [{"part": "measured", "name": "btzsc_tokens", "tokens": {"imdb": 292.6}}])
    store = ResultStore(tables.STORE)
    for name in ("imdb", "rottentomatoes", "capsotu"):
        store.append(record("embedding:a", name, 0.5, texts=700))
    store.append(record("embedding:a", "imdb", 0.5, texts=30, limit=30))
    counts = {line.split(" | ")[0]: line.split(" | ")[1:6] for line in tables.rows().splitlines()[2:5]}
    assert counts["| imdb"] == ["700", "10,000", "1,000", "293", "293"]
    assert counts["| rottentomatoes"] == ["700", "1,066", "1,066", "-", "26"]
    assert counts["| capsotu‡"] == ["700", "3,355", "1,000", "-", "44"]


def test_the_differences_of_the_sets_match_the_notes_of_the_data(rows):
    """Sets that the data's notes call complete have the same rows; every other set states its difference."""
    if not DATA.is_dir():
        pytest.skip(f"no data at {DATA}")
    there = {path.parent.name: path for path in (DATA / "btzsc").glob("*/labels.json")}
    there |= {f"mteb/{path.parent.name}": path for path in (DATA / "mteb").glob("*/meta.json")}
    assert set(rows.ROWS) == set(there)
    for name, path in there.items():
        notes = json.loads(path.read_text(encoding="utf-8"))
        same = notes["complete"]
        if name in MTEB:  # "complete" covers train and test together
            same = notes["splits"]["test"]["rows"] == MTEB[name].rows and "SLURP" not in notes["note"]
        assert same == (rows.ROWS[name].differ == rows.SAME), name


def test_the_published_rows_are_the_smallest_number_that_fits_every_accuracy(rows):
    found = {name: rows.published_rows(name) for name in (*BTZSC, *MTEB)}
    assert {name for name, rows in found.items() if rows != 1000} == {
        "rottentomatoes", "financialphrasebank", "mteb/amazon_counterfactual", "mteb/toxic_conversations",
    }  # fmt: skip
    assert found["rottentomatoes"] == BTZSC["rottentomatoes"].rows
