"""`Batches` answers Arrow rows in any process as `predict_file` answers a file."""

import multiprocessing
import pickle
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from classify.test_stream import ROWS, table
from labelspace import load
from labelspace.classify import Batches, predict_file
from labelspace.classify.tables import batches
from labelspace.corpus import Kind
from labelspace.errors import ColumnError, InputError, ModelFolderError

Maker = Callable[..., Any]


@pytest.fixture
def folder(fitted: Maker, tmp_path: Path) -> Path:
    """A saved model that leaves some of the rows without a label."""
    clf = fitted("zero-shot")
    best = sorted(clf.decision_function(table()["text"].to_pylist()).max(axis=1).tolist())
    return clf.set_params(threshold=(best[9] + best[10]) / 2).save(tmp_path / "model")


@pytest.mark.parametrize("all_scores", [False, True])
def test_a_table_gets_the_columns_and_bits_of_predict_file(all_scores: bool, folder: Path, tmp_path: Path):
    predict_file(load(folder), table(), tmp_path / "out.parquet", all_scores=all_scores, prefix="p_")
    answered = Batches(folder, all_scores=all_scores, prefix="p_")(table())
    assert answered.equals(pq.read_table(tmp_path / "out.parquet"))
    assert answered["p_label"].null_count == 10


def test_a_record_batch_comes_back_as_one(folder: Path):
    [batch] = table().to_batches()
    label = Batches(folder)
    answered = label(batch)
    assert isinstance(answered, pa.RecordBatch)
    assert pa.Table.from_batches([answered]).equals(label(table()))


def test_the_schema_is_known_before_any_row_and_an_empty_batch_has_it(folder: Path):
    label = Batches(folder, all_scores=True)
    [batch] = table().to_batches()
    assert label.schema(table().schema).equals(label(table()).schema)
    assert label(batch.slice(0, 0)).schema.equals(label(table()).schema)


@pytest.mark.parametrize("size", [1, 4, 7])
def test_other_cuts_give_the_same_labels_and_scores_equal_to_six_digits(size: int, folder: Path):
    label = Batches(folder, all_scores=True)
    whole = label(table())
    cut = pa.Table.from_batches([label(batch) for batch in table().to_batches(max_chunksize=size)])
    assert cut["predicted_label"].equals(whole["predicted_label"])
    for name in whole.column_names[4:]:
        assert cut[name].to_pylist() == pytest.approx(whole[name].to_pylist(), abs=1e-6)


def test_what_is_sent_to_a_process_holds_no_weights(folder: Path):
    label = Batches(folder)
    label(table())
    assert len(pickle.dumps(label)) < 1000
    assert pickle.loads(pickle.dumps(label))(table()).equals(label(table()))


@pytest.mark.slow
def test_processes_answer_with_the_same_bits(folder: Path):
    parts = [table().slice(start, 5) for start in range(0, ROWS, 5)]
    label = Batches(folder)
    with multiprocessing.get_context("spawn").Pool(2) as pool:
        there = pool.map(label, parts)
    assert pa.concat_tables(there).equals(pa.concat_tables([label(part) for part in parts]))


def test_a_process_opens_the_model_once(folder: Path, monkeypatch: pytest.MonkeyPatch):
    opened = []
    real = batches.open_to_answer
    monkeypatch.setattr(
        batches, "open_to_answer", lambda *args, **options: opened.append(args) or real(*args, **options)
    )
    for _ in range(3):
        Batches(folder)(table())
    assert len(opened) == 1


def test_a_new_fit_in_the_same_folder_is_not_answered_by_the_old_model(folder: Path, fitted: Maker):
    old = Batches(folder)
    before = old(table())
    fitted("zero-shot", labels=["first", "second"]).save(folder)
    assert set(Batches(folder)(table())["predicted_label"].to_pylist()) == {"first", "second"}
    assert old(table()).equals(before), "a run under way goes on with one model"


def test_a_machine_with_another_model_in_the_folder_refuses(folder: Path, fitted: Maker):
    label = Batches(folder)
    fitted("zero-shot", labels=["first", "second"]).save(folder)
    with pytest.raises(ModelFolderError, match="does not hold the model that Batches was made with"):
        label(table())


def test_a_folder_without_a_model_is_refused_at_once(tmp_path: Path):
    with pytest.raises(ModelFolderError, match="is no folder"):
        Batches(tmp_path / "none")


def test_rows_that_cannot_be_answered_are_named(folder: Path):
    with pytest.raises(ColumnError, match="no column 'body'"):
        Batches(folder, text_column="body")(table())
    with pytest.raises(InputError, match=r"row 2 is missing"):
        Batches(folder)(pa.table({"text": ["a", None]}))
    with pytest.raises(InputError, match="has a column 'predicted_label' already"):
        Batches(folder)(Batches(folder)(table()))
    with pytest.raises(InputError, match=str(Kind.TEXTS)):
        Batches(folder, pair_column="note")(table())
