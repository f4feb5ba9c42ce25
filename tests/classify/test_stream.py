"""`predict_file` adds predictions to a file, and an interrupted run resumes to the same bytes."""

import csv
import io
import json
import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from sklearn.base import clone

from classify.conftest import TEXTS
from labelspace.classify import predict_file
from labelspace.classify.tables.stream import model_fingerprint
from labelspace.corpus import DocumentTable, Kind, spreadsheets
from labelspace.corpus.in_memory import MemorySource
from labelspace.encoders import Encoder
from labelspace.errors import ColumnError, ConfigError, InputError

Maker = Callable[..., Any]
ROWS = 23


def table() -> pa.Table:
    texts = [f"{TEXTS[number % 6]} {number}" for number in range(ROWS)]
    return pa.table({"id": list(range(ROWS)), "text": texts, "note": [f"n{number % 3}" for number in range(ROWS)]})


def interrupt_after_two_chunks(monkeypatch: pytest.MonkeyPatch, clf: Any, *arguments: Any, **options: Any) -> None:
    """Start `predict_file` and interrupt it in the third chunk."""
    answer, calls = type(clf).answer_blocks, 0

    def interrupted(self: Any, *texts: Any) -> Any:
        nonlocal calls
        calls += 1
        if calls == 3:
            raise KeyboardInterrupt
        return answer(self, *texts)

    with monkeypatch.context() as patch:
        patch.setattr(type(clf), "answer_blocks", interrupted)
        with pytest.raises(KeyboardInterrupt):
            predict_file(clf, *arguments, **options)


@pytest.fixture
def source(tmp_path: Path) -> Path:
    """Three columns, 23 rows, as Parquet."""
    pq.write_table(table(), tmp_path / "in.parquet")
    return tmp_path / "in.parquet"


@pytest.mark.parametrize("suffix", ["parquet", "csv", "jsonl"])
def test_all_columns_are_kept_beside_the_predictions(suffix: str, source: Path, fitted: Maker, tmp_path: Path):
    clf = fitted("zero-shot")
    target = tmp_path / f"out.{suffix}"
    done = predict_file(clf, source, target, chunk_rows=5)
    assert (done.path, done.rows, done.resumed_at, done.abstained) == (target, ROWS, 0, 0)
    names = ["id", "text", "note", "predicted_label", "predicted_score", "predicted_probability"]
    expected = list(clf.predict(table()["text"].to_pylist()))
    if suffix == "parquet":
        out = pq.read_table(target)
        assert out.column_names == names
        assert out.select(["id", "text", "note"]).equals(table())
        assert out["predicted_label"].to_pylist() == expected
        probabilities = clf.predict_proba(table()["text"].to_pylist()).max(axis=1)
        assert out["predicted_probability"].to_pylist() == pytest.approx(probabilities.tolist(), abs=1e-4)
    elif suffix == "csv":
        rows = list(csv.DictReader(io.StringIO(target.read_text(encoding="utf-8"), newline="")))
        assert list(rows[0]) == names
        assert [row["predicted_label"] for row in rows] == expected
    else:
        assert len(target.read_text(encoding="utf-8").splitlines()) == ROWS
    assert sorted(path.name for path in tmp_path.iterdir()) == sorted(["in.parquet", target.name])


def test_below_the_threshold_the_label_is_null_and_the_score_is_kept(source: Path, fitted: Maker, tmp_path: Path):
    clf = fitted("zero-shot")
    best = sorted(clf.decision_function(table()["text"].to_pylist()).max(axis=1).tolist())
    clf.threshold = (best[9] + best[10]) / 2
    done = predict_file(clf, source, tmp_path / "out.parquet")
    out = pq.read_table(tmp_path / "out.parquet")
    assert done.abstained == out["predicted_label"].null_count == 10
    assert out["predicted_score"].null_count == 0
    low = [score < clf.threshold for score in out["predicted_score"].to_pylist()]
    assert [name is None for name in out["predicted_label"].to_pylist()] == low


def test_all_scores_adds_a_column_per_label(source: Path, fitted: Maker, tmp_path: Path):
    clf = fitted("zero-shot")
    predict_file(clf, source, tmp_path / "out.parquet", all_scores=True, prefix="p_")
    for row in pq.read_table(tmp_path / "out.parquet").to_pylist():
        scores = {name: row[f"p_score:{name}"] for name in clf.classes_}
        assert row["p_label"] == max(scores, key=lambda name: scores[name])
        assert row["p_score"] == max(scores.values())


@pytest.mark.parametrize("suffix", ["parquet", "csv"])
def test_an_interrupted_run_resumes_to_the_same_bytes(
    suffix: str, source: Path, fitted: Maker, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    clf = fitted("zero-shot")
    whole, target = tmp_path / f"whole.{suffix}", tmp_path / f"out.{suffix}"
    predict_file(clf, source, whole, chunk_rows=5)
    encode, calls = Encoder.encode, 0

    def interrupted(self: Encoder, texts: Any, **options: Any) -> Any:
        nonlocal calls
        calls += 1
        if calls == 4:
            raise KeyboardInterrupt
        return encode(self, texts, **options)

    with monkeypatch.context() as patch:
        patch.setattr(Encoder, "encode", interrupted)
        with pytest.raises(KeyboardInterrupt):
            predict_file(clf, source, target, chunk_rows=5)
    assert not target.exists()
    with pytest.raises(InputError, match=r"resume|overwrite"):
        predict_file(clf, source, target, chunk_rows=5)
    done = predict_file(clf, source, target, chunk_rows=5, resume=True)
    assert (done.resumed_at, done.rows) == (15, ROWS)
    assert target.read_bytes() == whole.read_bytes()


@pytest.mark.parametrize("change", ["threshold", "anchor", "labels", "weights", "options", "top", "input"])
def test_the_parts_of_another_run_are_not_resumed(
    change: str, source: Path, fitted: Maker, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    clf = fitted("description")
    target, options = tmp_path / "out.parquet", {"chunk_rows": 5}
    interrupt_after_two_chunks(monkeypatch, clf, source, target, **options)
    if change == "threshold":
        clf.threshold = 0.1
    elif change == "anchor":
        clf.anchor = "verbalizer"
    elif change == "labels":
        clf.remove_label("money")
    elif change == "weights":
        clf.set_params(max_steps=7).fit()
    elif change == "options":
        options["all_scores"] = True
    elif change == "top":
        options["top"] = 2
    else:
        pq.write_table(table().slice(0, ROWS - 1), source)
    with pytest.raises(InputError):
        predict_file(clf, source, target, resume=True, **options)
    done = predict_file(clf, source, target, overwrite=True, **options)
    assert done.resumed_at == 0


def test_a_table_in_memory_with_another_row_in_its_middle_is_not_resumed(
    fitted: Maker, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    clf, target, rows = fitted("zero-shot"), tmp_path / "out.parquet", table()
    interrupt_after_two_chunks(monkeypatch, clf, rows, target, chunk_rows=5)
    other = rows.to_pylist()
    other[ROWS // 2]["text"] += " again"
    with pytest.raises(InputError):
        predict_file(clf, pa.Table.from_pylist(other, rows.schema), target, chunk_rows=5, resume=True)
    pieces = pa.concat_tables([rows.slice(0, 3), rows.slice(3)])
    assert predict_file(clf, pieces, target, chunk_rows=5, resume=True).resumed_at == 10


def test_what_a_table_in_memory_holds_is_its_fingerprint():
    def fingerprint(rows: pa.Table) -> dict[str, Any]:
        return MemorySource(rows).fingerprint()

    rows = pa.table({"text": ["a", None, "b"] * 5000, "flag": [True, False, None] * 5000})
    assert fingerprint(rows.slice(1)) == fingerprint(pa.table(rows.slice(1).to_pydict()))
    assert fingerprint(pa.concat_tables([rows.slice(0, 7), rows.slice(7)])) == fingerprint(rows)
    changed = pa.concat_tables([rows.slice(0, 7000), rows.slice(2, 1), rows.slice(7001)])
    assert changed.num_rows == rows.num_rows
    assert fingerprint(changed) != fingerprint(rows)
    nested = pa.table({"text": ["a"], "more": pa.array([["b"]], pa.list_(pa.string_view()))})
    assert fingerprint(nested) == fingerprint(nested.slice(0, 1))
    named = [pa.table({"text": pa.array(["a", name] * 50).dictionary_encode()}) for name in "bc"]
    assert fingerprint(named[0]) != fingerprint(named[1])


@pytest.mark.parametrize("suffix", ["parquet", "jsonl", "memory"])
@pytest.mark.parametrize("column", ["text", "pair"])
def test_a_missing_text_far_down_is_found_before_anything_is_written(
    column: str, suffix: str, fitted: Maker, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    clf = fitted("zero-shot")
    clf.reads_ = Kind.PAIRS
    monkeypatch.setattr(Encoder, "encode", lambda *_, **__: pytest.fail("work began"))
    rows = [{"id": row, "text": "a", "pair": "b"} for row in range(ROWS)]
    rows[19][column] = None
    source: Any = tmp_path / f"in.{suffix}"
    if suffix == "parquet":
        pq.write_table(pa.Table.from_pylist(rows), source, row_group_size=4)
    elif suffix == "jsonl":
        source.write_text("".join(json.dumps(row) + "\n" for row in rows), encoding="utf-8")
    else:
        source = pa.Table.from_pylist(rows)
    before, folder = sorted(tmp_path.iterdir()), tmp_path / "out.csv"
    for options in ({}, {"resume": True}, {"overwrite": True}):
        with pytest.raises(InputError, match=rf"row 20, column '{column}', is missing \(None\)"):
            predict_file(clf, source, folder, pair_column="pair", chunk_rows=5, **options)
    assert sorted(tmp_path.iterdir()) == before


def test_what_a_workbook_cannot_hold_is_refused_before_the_model_answers(
    fitted: Maker, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    clf, target = fitted("zero-shot"), tmp_path / "out.xlsx"
    monkeypatch.setattr(type(clf), "answer_blocks", lambda *_: pytest.fail("the model was asked"))
    with pytest.raises(InputError, match="a text of 40,000 characters"):
        predict_file(clf, pa.table({"text": ["short"] * 9 + ["a" * 40_000]}), target, chunk_rows=2)
    monkeypatch.setattr(spreadsheets, "MOST_ROWS", 8)
    with pytest.raises(InputError, match="more rows than"):
        predict_file(clf, pa.table({"text": ["short"] * 9}), target, chunk_rows=2)
    assert not list(tmp_path.iterdir())


def test_a_workbook_is_not_written_over_itself(fitted: Maker, tmp_path: Path):
    clf, target = fitted("zero-shot"), tmp_path / "in.xlsx"
    predict_file(clf, pa.table({"text": ["a match"]}), target)
    before = target.read_bytes()
    with pytest.raises(InputError, match=r"in\.xlsx: its other sheets and its formats would be lost; write to another"):
        predict_file(clf, target, target, prefix="new_", overwrite=True)
    assert target.read_bytes() == before


def test_finished_chunks_survive_if_the_input_is_damaged_and_repaired(
    source: Path, fitted: Maker, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    clf, target, good = fitted("zero-shot"), tmp_path / "out.parquet", source.read_bytes()
    times = source.stat().st_atime_ns, source.stat().st_mtime_ns
    interrupt_after_two_chunks(monkeypatch, clf, source, target, chunk_rows=5)
    texts = [*table()["text"].to_pylist()[:-1], None]
    pq.write_table(table().set_column(1, "text", pa.array(texts, pa.string())), source)
    for options in ({"resume": True}, {"overwrite": True}):
        with pytest.raises(InputError, match=f"row {ROWS} is missing"):
            predict_file(clf, source, target, chunk_rows=5, **options)
    source.write_bytes(good)
    os.utime(source, ns=times)
    assert predict_file(clf, source, target, chunk_rows=5, resume=True).resumed_at == 10


def test_an_existing_output_is_refused_before_the_input_is_read(
    source: Path, fitted: Maker, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    clf, target = fitted("zero-shot"), tmp_path / "out.csv"
    predict_file(clf, source, target)
    monkeypatch.setattr(DocumentTable, "check_documents", lambda *_: pytest.fail("the input was read"))
    with pytest.raises(InputError, match="exists already"):
        predict_file(clf, source, target)
    done = predict_file(clf, source, target, resume=True)
    assert (done.rows, done.resumed_at, done.abstained) == (ROWS, ROWS, 0)


@pytest.mark.parametrize("suffix", ["parquet", "csv", "tsv", "jsonl", "csv.gz", "xlsx"])
def test_resuming_a_finished_file_reports_its_rows(suffix: str, source: Path, fitted: Maker, tmp_path: Path):
    clf, target = fitted("zero-shot"), tmp_path / f"out.{suffix}"
    before = predict_file(clf, source, target)
    done = predict_file(clf, source, target, resume=True)
    assert (before.rows, done.rows, done.resumed_at) == (ROWS, ROWS, ROWS)


def test_resuming_a_file_without_predictions_is_refused(source: Path, fitted: Maker, tmp_path: Path):
    target = tmp_path / "mine.csv"
    target.write_text("text\nmine\n", encoding="utf-8")
    with pytest.raises(ColumnError, match=r"mine\.csv has no column 'predicted_label'"):
        predict_file(fitted("zero-shot"), source, target, resume=True)
    assert target.read_text(encoding="utf-8") == "text\nmine\n"


@pytest.mark.parametrize("suffix", ["parquet", "csv", "jsonl"])
def test_a_file_finished_by_another_run_is_not_passed_off_as_this_one(
    suffix: str, source: Path, fitted: Maker, tmp_path: Path
):
    clf, target = fitted("zero-shot"), tmp_path / f"out.{suffix}"
    predict_file(clf, source, target)
    before = target.read_bytes()
    with pytest.raises(InputError, match=r"finished by a run with other input.*'predicted_label:1'.*--overwrite"):
        predict_file(clf, source, target, resume=True, top=1)
    fewer = tmp_path / "fewer.csv"
    fewer.write_text("id,text,note\n1,the match,n\n", encoding="utf-8")
    with pytest.raises(InputError, match=rf"finished by a run with other input.*it has {ROWS} rows, the input 1\)"):
        predict_file(clf, fewer, target, resume=True)
    texts = table()["text"].to_pylist()
    other = table().set_column(1, "text", pa.array([texts[0], "a vote", *texts[2:]]))
    with pytest.raises(InputError, match=r"finished by a run with other input.*\(row 2 has another text\)"):
        predict_file(clf, other, target, resume=True)
    assert target.read_bytes() == before


@pytest.mark.parametrize("suffix", ["parquet", "csv", "xlsx"])
def test_rows_without_a_label_are_counted_in_the_whole_file(
    suffix: str, source: Path, fitted: Maker, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    clf, target = fitted("zero-shot"), tmp_path / f"out.{suffix}"
    clf.set_params(threshold=float(np.median(clf.answers(table()["text"].to_pylist()).score)))
    wanted = predict_file(clf, source, tmp_path / f"whole.{suffix}", chunk_rows=5).abstained
    assert wanted > 0
    interrupt_after_two_chunks(monkeypatch, clf, source, target, chunk_rows=5)
    done = predict_file(clf, source, target, chunk_rows=5, resume=True)
    assert (done.resumed_at, done.abstained) == (10, wanted)
    assert predict_file(clf, source, target, chunk_rows=5, resume=True).abstained == wanted


def test_a_label_that_looks_like_none_counts_as_a_label(source: Path, fitted: Maker, tmp_path: Path):
    clf, target = fitted("zero-shot", labels=["-1", "1"]), tmp_path / "out.csv"
    predict_file(clf, source, target)
    assert predict_file(clf, source, target, resume=True).abstained == 0


@pytest.mark.parametrize("suffix", ["parquet", "csv", "jsonl"])
def test_resuming_a_finished_file_without_rows_keeps_it(suffix: str, fitted: Maker, tmp_path: Path):
    clf, target, empty = fitted("zero-shot"), tmp_path / f"out.{suffix}", table().slice(0, 0)
    predict_file(clf, empty, target)
    before = target.read_bytes()
    assert predict_file(clf, empty, target, resume=True).rows == 0
    assert target.read_bytes() == before


def test_a_stream_is_read_only_once(fitted: Maker, tmp_path: Path):
    datasets = pytest.importorskip("datasets")
    read = []

    def rows() -> Any:
        for row in table().to_pylist():
            read.append(row["id"])
            yield row

    stream = datasets.IterableDataset.from_generator(rows)
    assert predict_file(fitted("zero-shot"), stream, tmp_path / "out.csv", chunk_rows=5).rows == ROWS
    assert read.count(ROWS - 1) in (2, 3), "once for the columns (twice by datasets 4.0) and once for the documents"


def test_a_finished_file_is_written_again_only_with_overwrite(source: Path, fitted: Maker, tmp_path: Path):
    clf = fitted("zero-shot")
    predict_file(clf, source, tmp_path / "out.csv")
    with pytest.raises(InputError, match="exists already"):
        predict_file(clf, source, tmp_path / "out.csv")
    before = (tmp_path / "out.csv").read_bytes()
    predict_file(clone(clf).set_params(threshold=1.0).fit(), source, tmp_path / "out.csv", overwrite=True)
    assert (tmp_path / "out.csv").read_bytes() != before


def test_an_existing_column_is_not_overwritten(fitted: Maker, tmp_path: Path):
    clf, source = fitted("zero-shot"), table().append_column("predicted_score", pa.array([0.0] * ROWS))
    with pytest.raises(InputError, match=r"has a column 'predicted_score' already; choose another prefix than"):
        predict_file(clf, source, tmp_path / "out.parquet")
    assert list(tmp_path.iterdir()) == []
    assert predict_file(clf, source, tmp_path / "out.parquet", prefix="new_").rows == ROWS


def test_a_missing_text_column_is_named(source: Path, fitted: Maker, tmp_path: Path):
    with pytest.raises(ColumnError, match="no column 'body'"):
        predict_file(fitted("zero-shot"), source, tmp_path / "out.csv", text_column="body")


def test_the_encoder_sees_one_chunk_at_a_time(
    source: Path, fitted: Maker, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    clf = fitted("zero-shot")
    sizes = []
    answer = type(clf).answer_blocks
    monkeypatch.setattr(type(clf), "answer_blocks", lambda self, X: sizes.append(len(X)) or answer(self, X))
    predict_file(clf, source, tmp_path / "out.csv", chunk_rows=5)
    assert sizes == [5, 5, 5, 5, 3]


def test_numpy_scalars_and_python_numbers_write_the_same_file(source: Path, fitted: Maker, tmp_path: Path):
    clf = fitted("zero-shot")
    clf.set_params(threshold=np.float32(0.5), temperature=np.float64(0.5))
    done = predict_file(clf, source, tmp_path / "out.parquet", chunk_rows=np.int64(5))  # type: ignore[arg-type]
    clf.set_params(threshold=0.5, temperature=0.5)
    predict_file(clf, source, tmp_path / "own.parquet", chunk_rows=5)
    assert done.rows == ROWS
    assert (tmp_path / "out.parquet").read_bytes() == (tmp_path / "own.parquet").read_bytes()


def test_a_reloaded_model_has_the_same_fingerprint_and_others_differ(fitted: Maker, tmp_path: Path):
    from labelspace import load

    clf = fitted()
    assert model_fingerprint(load(clf.save(tmp_path / "model"))) == model_fingerprint(clf)
    others = [fitted("zero-shot"), fitted(max_steps=7), fitted(dtype="bfloat16"), fitted(temperature=0.5)]
    prints = {model_fingerprint(other) for other in [clf, *others]}
    assert len(prints) == 5


def test_a_path_in_place_of_a_model_is_refused_in_one_line(source: Path, tmp_path: Path):
    with pytest.raises(ConfigError, match=r"Got a path; open it: labelspace\.load\('model'\)"):
        predict_file("model", source, tmp_path / "out.csv")  # pyright: ignore[reportArgumentType]
