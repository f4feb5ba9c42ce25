"""A file in, the same file with predictions out; an interrupted run goes on to the same bytes."""

import csv
import io
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from classify.conftest import TEXTS
from labelspace.classify import predict_file
from labelspace.classify.stream import model_fingerprint
from labelspace.encoders import Encoder
from labelspace.errors import ColumnError, InputError

Maker = Callable[..., Any]
ROWS = 23


def table() -> pa.Table:
    texts = [f"{TEXTS[number % 6]} {number}" for number in range(ROWS)]
    return pa.table({"id": list(range(ROWS)), "text": texts, "note": [f"n{number % 3}" for number in range(ROWS)]})


@pytest.fixture
def source(tmp_path: Path) -> Path:
    """Three columns, 23 rows, as Parquet."""
    pq.write_table(table(), tmp_path / "in.parquet")
    return tmp_path / "in.parquet"


@pytest.mark.parametrize("suffix", ["parquet", "csv", "jsonl"])
def test_all_columns_are_kept_and_predictions_stand_beside(suffix: str, source: Path, fitted: Maker, tmp_path: Path):
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


def test_below_the_threshold_the_label_is_null_and_the_score_is_still_there(
    source: Path, fitted: Maker, tmp_path: Path
):
    clf = fitted("zero-shot")
    best = sorted(clf.decision_function(table()["text"].to_pylist()).max(axis=1).tolist())
    clf.threshold = (best[9] + best[10]) / 2
    done = predict_file(clf, source, tmp_path / "out.parquet")
    out = pq.read_table(tmp_path / "out.parquet")
    assert done.abstained == out["predicted_label"].null_count == 10
    assert out["predicted_score"].null_count == 0
    low = [score < clf.threshold for score in out["predicted_score"].to_pylist()]
    assert [name is None for name in out["predicted_label"].to_pylist()] == low


def test_all_scores_are_one_column_a_label_and_the_winners_is_the_largest(source: Path, fitted: Maker, tmp_path: Path):
    clf = fitted("zero-shot")
    predict_file(clf, source, tmp_path / "out.parquet", all_scores=True, prefix="p_")
    for row in pq.read_table(tmp_path / "out.parquet").to_pylist():
        scores = {name: row[f"p_score:{name}"] for name in clf.classes_}
        assert row["p_label"] == max(scores, key=lambda name: scores[name])
        assert row["p_score"] == max(scores.values())


@pytest.mark.parametrize("suffix", ["parquet", "csv"])
def test_an_interrupted_run_goes_on_to_the_same_bytes(
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


@pytest.mark.parametrize("change", ["threshold", "anchor", "labels", "weights", "options", "input"])
def test_parts_of_another_run_are_not_gone_on_with(
    change: str, source: Path, fitted: Maker, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    clf = fitted("description")
    target, options = tmp_path / "out.parquet", {"chunk_rows": 5}
    score = type(clf).scores

    def interrupted(self: Any, *arguments: Any) -> Any:
        if getattr(self, "calls", 0) == 2:
            raise KeyboardInterrupt
        self.calls = getattr(self, "calls", 0) + 1
        return score(self, *arguments)

    with monkeypatch.context() as patch:
        patch.setattr(type(clf), "scores", interrupted)
        with pytest.raises(KeyboardInterrupt):
            predict_file(clf, source, target, **options)
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
    else:
        pq.write_table(table().slice(0, ROWS - 1), source)
    with pytest.raises(InputError):
        predict_file(clf, source, target, resume=True, **options)
    done = predict_file(clf, source, target, overwrite=True, **options)
    assert done.resumed_at == 0


def test_a_finished_file_is_not_written_twice(source: Path, fitted: Maker, tmp_path: Path):
    clf = fitted("zero-shot")
    predict_file(clf, source, tmp_path / "out.csv")
    with pytest.raises(InputError, match="exists already"):
        predict_file(clf, source, tmp_path / "out.csv")
    predict_file(clf, source, tmp_path / "out.csv", overwrite=True)


def test_a_column_that_is_there_already_is_not_overwritten(fitted: Maker, tmp_path: Path):
    clf, source = fitted("zero-shot"), table().append_column("predicted_score", pa.array([0.0] * ROWS))
    with pytest.raises(InputError, match=r"has a column 'predicted_score' already; choose another prefix than"):
        predict_file(clf, source, tmp_path / "out.parquet")
    assert list(tmp_path.iterdir()) == []
    assert predict_file(clf, source, tmp_path / "out.parquet", prefix="new_").rows == ROWS


def test_a_missing_text_column_is_named(source: Path, fitted: Maker, tmp_path: Path):
    with pytest.raises(ColumnError, match="no column 'body'"):
        predict_file(fitted("zero-shot"), source, tmp_path / "out.csv", text="body")


def test_the_encoder_sees_one_chunk_at_a_time(
    source: Path, fitted: Maker, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    clf = fitted("zero-shot")
    sizes = []
    score = type(clf).scores
    monkeypatch.setattr(type(clf), "scores", lambda self, t, s: sizes.append(len(t)) or score(self, t, s))
    predict_file(clf, source, tmp_path / "out.csv", chunk_rows=5)
    assert sizes == [5, 5, 5, 5, 3]


def test_the_fingerprint_of_a_model_is_that_of_its_reload_and_of_no_other(fitted: Maker, tmp_path: Path):
    from labelspace import load

    clf = fitted()
    assert model_fingerprint(load(clf.save(tmp_path / "model"))) == model_fingerprint(clf)
    others = [fitted("zero-shot"), fitted(max_steps=7), fitted(dtype="bfloat16"), fitted(temperature=0.5)]
    prints = {model_fingerprint(other) for other in [clf, *others]}
    assert len(prints) == 5
