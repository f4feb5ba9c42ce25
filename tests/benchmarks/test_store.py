"""Results are one table per study and one row per run, with shared values stored once and no lost rows."""

import json
import subprocess
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from labelspace.evaluate.provenance import provenance, source_commit

GIT = ["git", "-c", "user.name=a", "-c", "user.email=a@example.org"]


@pytest.fixture
def table(store, tmp_path):
    return store.Table(tmp_path / "study.jsonl")


def add(table, name: str, part: str = "main", **result) -> None:
    table.add(part, name, result, provenance=provenance(seeds=[result.get("seed", 0)], data="made up"))


def test_a_row_is_read_back_to_seven_digits_and_shared_values_are_stored_once(table):
    config = {"epochs": 3}
    for seed in (1, 0):
        add(table, f"seed{seed}", seed=seed, config=config, accuracy=0.1 + 0.2, losses=[2 / 3, 1e-9 / 3])
    first, second = table.rows("main")
    assert (first["name"], first["accuracy"], first["config"]) == ("seed0", 0.3, config)
    assert first["losses"] == [0.6666667, 3.333333e-10], "seven digits"
    assert second["provenance"]["seeds"] == [1]
    assert set(first["provenance"]) >= {"commit", "versions", "hardware", "command", "data", "date"}
    shared = (table.path.with_name("shared.jsonl")).read_text().splitlines()
    assert len(shared) == 3, "the code, the data and the configuration"
    assert "epochs" not in table.path.read_text()


def test_rows_are_sorted_by_part_and_name(table, tmp_path, store):
    other = store.Table(tmp_path / "other" / "study.jsonl")
    runs = [("b", "main"), ("a", "main"), ("c", "grid")]
    for one, order in ((table, runs), (other, runs[::-1])):
        for name, part in order:
            one.add(part, name, {}, provenance={**provenance(data=""), "date": ""})
    assert [(row["part"], row["name"]) for row in table.rows()] == [("grid", "c"), ("main", "a"), ("main", "b")]
    assert table.path.read_bytes() == other.path.read_bytes()


def test_a_row_replaces_one_with_the_same_part_and_name(table):
    for accuracy in (0.5, 0.75):
        add(table, "one", accuracy=accuracy)
    assert [row["accuracy"] for row in table.rows()] == [0.75]


def test_rows_added_concurrently_are_all_stored(table):
    with ThreadPoolExecutor(4) as pool:
        list(pool.map(lambda number: add(table, f"{number:02d}", config={"epochs": number}), range(20)))
    assert [row["config"]["epochs"] for row in table.rows()] == list(range(20))


def test_a_frame_has_the_runs_with_the_facts_and_a_column_for_each_nested_value(store, plant):
    runs = [{"set": "imdb", "pooling": None, "scores": {"none": {"f1": 0.5}}}, {"set": "imdb", "pooling": "cls"}]
    plant("study", [{"part": "main", **run} for run in (*runs, {"set": "rte"})] + [{"part": "grid", "set": "imdb"}])
    frame = store.frame("study", "main", "scores.none.f1", "scores", "no such column", set="imdb")
    assert list(frame) == ["scores.none.f1", "scores", "no such column"]
    assert frame["scores.none.f1"].dropna().tolist() == [0.5]
    assert frame["scores"].iloc[0] == {"none": {"f1": 0.5}}
    assert frame["no such column"].isna().all()
    assert store.frame("study", "main", "set", pooling=None)["set"].tolist() == ["imdb", "rte"]
    assert store.frame("study", "main", pooling="cls", set="rte").empty
    given = store.frame("study", "main")
    given["set"] = "changed by its reader"
    assert store.frame("study", "main")["set"].tolist() == ["imdb", "imdb", "rte"]
    assert store.frame("study", "no such part", "set", set="imdb").empty


def test_a_damaged_line_is_named_and_the_table_is_not_rewritten(table):
    add(table, "one")
    with table.path.open("a") as file:
        file.write('{"part":"main","na')
    damaged = table.path.read_bytes()
    for work in (table.rows, lambda: add(table, "two")):
        with pytest.raises(SystemExit, match=r"study.jsonl, line 2 is damaged .*; remove it, and repeat its run"):
            work()
    assert table.path.read_bytes() == damaged


def test_a_result_without_provenance_or_with_non_finite_values_is_not_added(table):
    with pytest.raises(ValueError, match="main/one: the provenance lacks versions"):
        table.add("main", "one", {}, provenance={key: "" for key in provenance() if key != "versions"})
    with pytest.raises(ValueError, match="not JSON compliant"):
        add(table, "one", accuracy=float("nan"))
    assert table.rows() == []


def test_results_of_changed_code_are_refused_inside_the_repository_only(store, tmp_path, monkeypatch):
    root = tmp_path / "checkout"
    package = root / "src" / "labelspace"
    package.mkdir(parents=True)
    (package / "code.py").write_text("old")
    subprocess.run([*GIT, "init", "--quiet", str(root)], check=True)
    subprocess.run([*GIT, "-C", str(root), "add", "."], check=True)
    subprocess.run([*GIT, "-C", str(root), "commit", "--quiet", "-m", "one"], check=True)
    monkeypatch.setattr(store, "ROOT", root)
    monkeypatch.setattr(store, "SCRATCH", root / "build")

    def add_to(folder: Path) -> None:
        origin = {**provenance(data=""), "commit": source_commit(package)}
        store.Table(folder / "study.jsonl").add("main", "one", {}, provenance=origin)

    add_to(root / "benchmarks" / "results")  # as committed; the table itself is no change
    add_to(root / "benchmarks" / "results")
    (package / "code.py").write_text("new")
    for commit in (source_commit(package), None):
        with pytest.raises(SystemExit, match=r"^study.jsonl: the code has uncommitted changes; commit them"):
            store.refuse_dirty(root / "benchmarks" / "results" / "study.jsonl", commit)
    with pytest.raises(SystemExit, match="uncommitted changes"):
        add_to(root / "benchmarks" / "results")
    for folder in (root / "build", tmp_path / "elsewhere"):
        add_to(folder)
        (row,) = store.Table(folder / "study.jsonl").rows()
        assert row["provenance"]["commit"].endswith("-dirty")


def test_a_run_whose_results_would_be_refused_does_not_start(store, monkeypatch):
    import pieces

    monkeypatch.setattr(pieces, "COMMIT", "a" * 40 + "-dirty")
    piece = pieces.Piece(part="main", name="none", facts={}, work=lambda: pytest.fail("hours of work"))
    with pytest.raises(SystemExit, match="uncommitted changes"):
        pieces.run_pieces([piece], store.RESULTS / "no.jsonl", minutes=1, command=[])


def test_the_stored_results_are_small_sorted_and_complete(store):
    files = list(store.RESULTS.iterdir())
    assert sum(file.stat().st_size for file in files if file.is_file()) < 5_000_000
    shared = {json.loads(line)["key"] for line in (store.RESULTS / "shared.jsonl").read_text().splitlines()}
    used = set()
    for file in files:
        if file.suffix == ".jsonl" and not file.name.startswith(("btzsc", "shared")):
            rows = [json.loads(line) for line in file.read_text().splitlines()]
            assert [(row["part"], row["name"]) for row in rows] == sorted({(row["part"], row["name"]) for row in rows})
            used |= {row[key] for row in rows for key in store.SHARED if key in row}
            used |= {row["provenance"][key] for row in rows for key in ("code", "data")}
    assert used <= shared
