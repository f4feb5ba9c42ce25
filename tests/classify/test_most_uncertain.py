"""The most uncertain rows of a file: found in one pass, in bounded memory, with every column unchanged."""

from collections.abc import Iterator
from datetime import datetime
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from classify.doubt import FEW, FEW_Y, uncertainty
from labelspace import ConsensusClassifier, LaConClassifier, UncertaintyClassifier, ZeroShotClassifier
from labelspace.classify import Answers, predict_file
from labelspace.classify.tables import most_uncertain as module
from labelspace.classify.tables.most_uncertain import most_uncertain_file, most_uncertain_rows
from labelspace.corpus import Documents, Kind, spreadsheets
from labelspace.encoders import Encoder
from labelspace.errors import ColumnError, ConfigError, InputError
from labelspace.training.uncertainty import HeldOut
from tiny_rows import tiny_rows

TEXTS, _ = tiny_rows(60, seed=4, doubtful=0.5)
SCHEMA = pa.schema([("id", pa.int32()), ("text", pa.string())])


def blocks_of(texts: list[str], size: int) -> Iterator[tuple[pa.RecordBatch, Documents]]:
    for start in range(0, len(texts), size):
        block = texts[start : start + size]
        batch = pa.record_batch([pa.array(range(start, start + len(block)), pa.int32()), block], schema=SCHEMA)
        yield batch, Documents(block, Kind.TEXTS)


@pytest.mark.parametrize(("size", "top"), [(1, 5), (7, 1), (7, 60), (60, 5), (100, 1000)])
def test_the_block_size_changes_no_row(size: int, top: int, clf: UncertaintyClassifier):
    found = most_uncertain_rows(clf, blocks_of(TEXTS, size), SCHEMA, top)
    assert found["id"].to_pylist() == clf.most_uncertain(TEXTS, top).tolist()
    doubt = found["predicted_uncertainty"].to_numpy()
    assert doubt == pytest.approx(clf.predict_uncertainty(found["text"].to_pylist()), abs=1e-5)


@pytest.mark.parametrize("by", ["uncertainty", "entropy"])
def test_rows_are_ordered_by_the_measure_that_ranks_errors_better(by: str, clf: UncertaintyClassifier, monkeypatch):
    monkeypatch.setattr(HeldOut, "better_ranking", lambda _: by)
    found = most_uncertain_rows(clf, blocks_of(TEXTS, 7), SCHEMA, 60)
    assert found["id"].to_pylist() == clf.most_uncertain(TEXTS, by=by).tolist()
    assert (np.diff(found["predicted_uncertainty"].to_numpy()) <= 0).all() == (by == "uncertainty")


def test_a_model_without_uncertainty_orders_rows_by_entropy(encoders: dict[str, Encoder]):
    without = uncertainty(encoders["float32"], uncertain=False).fit(FEW, FEW_Y)
    found = most_uncertain_rows(without, blocks_of(TEXTS, 7), SCHEMA, 60)
    assert found["id"].to_pylist() == without.most_uncertain(TEXTS, by="entropy").tolist()


def test_among_equally_uncertain_rows_the_earlier_are_kept(clf: UncertaintyClassifier, monkeypatch):
    monkeypatch.setattr(type(clf), "doubt", lambda _, answers: np.zeros(len(answers)))
    found = most_uncertain_rows(clf, blocks_of(TEXTS[:20], 5), SCHEMA, 8)
    assert found["id"].to_pylist() == list(range(8))


def test_a_repeated_document_is_there_once(clf: UncertaintyClassifier):
    first = most_uncertain_rows(clf, blocks_of(TEXTS[:6], 6), SCHEMA, 4)
    found = most_uncertain_rows(clf, blocks_of([*TEXTS[:6], TEXTS[0], *TEXTS[:6]], 5), SCHEMA, 4)
    assert found["id"].to_pylist() == first["id"].to_pylist()
    every = most_uncertain_rows(clf, blocks_of([*TEXTS[:6], *TEXTS[:6]], 6), SCHEMA, 20)
    assert sorted(every["id"].to_pylist()) == list(range(6))


def test_documents_are_read_once_and_only_the_requested_rows_are_held(clf: UncertaintyClassifier):
    """The kept rows must not keep the blocks alive that they came from."""
    held: list[int] = []
    before = pa.total_allocated_bytes()

    def blocks() -> Iterator[tuple[pa.RecordBatch, Documents]]:
        ballast = "x" * 200_000
        for block, texts in blocks_of(TEXTS, 6):
            heavy = block.append_column("ballast", pa.array([ballast] * len(texts)))
            held.append(pa.total_allocated_bytes() - before)
            yield heavy, texts

    schema = pa.schema([*SCHEMA, ("ballast", pa.string())])
    given = blocks()
    found = most_uncertain_rows(clf, given, schema, 2)
    assert next(given, None) is None
    assert found.num_rows == 2
    assert len(held) == 10
    assert max(held) < 200_000 * (2 + 2 * 6 + 2), "two kept rows and at most two blocks of six"


def test_every_column_keeps_its_values_and_type(clf: UncertaintyClassifier, tmp_path: Path):
    table = pa.table(
        {
            "text": TEXTS,
            "when": pa.array([datetime(2020, 1, 1 + row % 28) for row in range(60)], pa.timestamp("ns")),
            "kind": pa.array([f"k{row % 3}" for row in range(60)]).dictionary_encode(),
            "parts": pa.array([[row, row + 1] if row % 2 else None for row in range(60)]),
            "share": pa.array([row / 7 if row % 5 else None for row in range(60)], pa.float32()),
        }
    )
    pq.write_table(table, tmp_path / "in.parquet", row_group_size=11)
    done = most_uncertain_file(clf, tmp_path / "in.parquet", tmp_path / "out.parquet", 9)
    assert (done.path, done.rows, done.resumed_at, done.abstained) == (tmp_path / "out.parquet", 9, 0, 0)
    found = pq.read_table(tmp_path / "out.parquet")
    expected = table.take(clf.most_uncertain(TEXTS, 9))
    assert found.select(table.column_names).to_pylist() == expected.to_pylist()
    assert found.schema.field("when").type == pa.timestamp("ns")
    predict_file(clf, expected, tmp_path / "whole.parquet")
    whole = pq.read_table(tmp_path / "whole.parquet")
    assert found.column_names == whole.column_names
    assert found["predicted_label"].to_pylist() == whole["predicted_label"].to_pylist()


def test_rows_are_chosen_from_all_chunks(clf: UncertaintyClassifier, tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(module, "CHUNK_ROWS", 7)
    pq.write_table(pa.table({"id": range(60), "text": TEXTS}), tmp_path / "in.parquet")
    most_uncertain_file(clf, tmp_path / "in.parquet", tmp_path / "out.jsonl", 4, all_scores=True)
    lines = (tmp_path / "out.jsonl").read_text(encoding="utf-8").splitlines()
    assert [int(line.split(",")[0].split(":")[1]) for line in lines] == clf.most_uncertain(TEXTS, 4).tolist()
    assert all('"predicted_score:world"' in line for line in lines)


def test_a_file_with_predictions_gets_new_ones_under_another_prefix(clf: UncertaintyClassifier, tmp_path: Path):
    pq.write_table(pa.table({"text": TEXTS, "predicted_label": ["sports"] * 60}), tmp_path / "in.parquet")
    done = most_uncertain_file(clf, tmp_path / "in.parquet", tmp_path / "out.parquet", 4, prefix="again_")
    found = pq.read_table(tmp_path / "out.parquet")
    added = [f"again_{what}" for what in ("label", "score", "probability", "uncertainty")]
    assert (done.rows, found.column_names) == (4, ["text", "predicted_label", *added])


def test_a_workbook_of_few_rows_is_made_from_any_number(
    clf: UncertaintyClassifier, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.setattr(spreadsheets, "MOST_ROWS", 7)
    monkeypatch.setattr(module, "CHUNK_ROWS", 7)
    assert most_uncertain_file(clf, pa.table({"text": TEXTS}), tmp_path / "out.xlsx", 4).rows == 4
    with pytest.raises(InputError, match="a text of 40,000 characters"):
        most_uncertain_file(clf, pa.table({"text": [*TEXTS, "a" * 40_000]}), tmp_path / "long.xlsx", 4)


def test_an_empty_file_has_no_most_uncertain_row(clf: UncertaintyClassifier, tmp_path: Path):
    (tmp_path / "in.csv").write_text("id,text\n", encoding="utf-8")
    assert most_uncertain_file(clf, tmp_path / "in.csv", tmp_path / "out.csv", 3).rows == 0
    assert (tmp_path / "out.csv").read_text(encoding="utf-8").startswith("id,text,predicted_label,")


@pytest.mark.parametrize(
    ("options", "error", "message"),
    [
        ({"top": 0}, ConfigError, "top must be a whole number at least 1"),
        ({"text_column": "body"}, ColumnError, "no column 'body'"),
        ({"target": "in.csv"}, InputError, "exists already"),
        ({"target": "out.xls"}, InputError, r"\.parquet"),
    ],
)
def test_invalid_arguments_are_refused_before_any_work(
    options: dict[str, Any],
    error: type[Exception],
    message: str,
    clf: UncertaintyClassifier,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
):
    monkeypatch.chdir(tmp_path)
    Path("in.csv").write_text("text\na team\n", encoding="utf-8")
    monkeypatch.setattr(UncertaintyClassifier, "answer_blocks", lambda *_: pytest.fail("work began"))
    given = {"target": "out.csv", "top": 2, **options}
    with pytest.raises(error, match=message):
        most_uncertain_file(clf, "in.csv", **given)
    assert [path.name for path in tmp_path.iterdir()] == ["in.csv"]


def _fitted(kind: str, encoder: Encoder) -> Any:
    if kind == "zero-shot":
        return ZeroShotClassifier(["sports", "money", "world"], encoder).fit()
    if kind == "rows":
        return LaConClassifier(encoder=encoder, epochs=1).fit(FEW, FEW_Y)
    views = ["zero-shot:tests/data/tiny-bert", "words"]
    return ConsensusClassifier(["sports", "money"], views, encoder_options={"dtype": "float32"}).fit(TEXTS)


@pytest.mark.parametrize("kind", ["zero-shot", "rows", "consensus"])
def test_without_a_measure_of_its_own_the_least_probable_answer_is_first(kind: str, encoders: dict[str, Encoder]):
    model = _fitted(kind, encoders["float32"])
    texts = [*TEXTS[:20], TEXTS[0], TEXTS[7]]
    likeliest = model.predict_proba(texts).max(axis=1)
    wanted = sorted(range(20), key=lambda row: likeliest[row])
    assert model.most_uncertain(texts).tolist() == wanted
    assert model.most_uncertain(texts, 3).tolist() == wanted[:3]
    found = most_uncertain_rows(model, blocks_of(texts, 7), SCHEMA, 5)
    assert found["id"].to_pylist() == wanted[:5]
    assert found.column_names == ["id", "text", *(f"predicted_{what}" for what in ("label", "score", "probability"))]


def test_of_several_labels_the_text_nearest_to_a_cut_is_first(encoders: dict[str, Encoder]):
    model = ZeroShotClassifier(["sports", "money"], encoders["float32"], several=True).fit(TEXTS)
    away = np.abs(model.decision_function(TEXTS)).min(axis=1)
    found = model.most_uncertain(TEXTS)
    assert sorted(found.tolist()) == list(range(60))
    # A cut lies midway between two scores: which of the two texts is nearer is a matter of the processor's rounding.
    assert (np.diff(away[found]) > -1e-6).all()


def test_texts_as_far_from_a_cut_on_either_side_keep_their_order():
    def of(margins: list[list[float]]) -> Answers:
        away, none = np.array(margins), np.empty(0, dtype=np.intp)
        return Answers(none, away.astype(np.float32), away, None, ("a", "b"), none, margins=away)

    # The difference of two sums of tenths is not quite that of their mirror image.
    one, other = (0.1 + 0.2) - 0.25, 0.25 - 0.2
    assert one != other
    found = of([[one, 0.3], [-other, -0.3], [0.2, -0.01]]).least_confidence
    assert found[0] == found[1] < found[2] == pytest.approx(-0.01, abs=1e-7)


def test_a_limit_for_none_of_these_has_no_part_in_the_order(encoders: dict[str, Encoder]):
    model = _fitted("zero-shot", encoders["float32"])
    before = model.most_uncertain(TEXTS).tolist()
    model.set_coverage(0.5, TEXTS)
    assert None in model.predict(TEXTS)
    assert model.most_uncertain(TEXTS).tolist() == before


def test_a_model_of_pairs_and_a_table_of_texts_refuse_each_other_even_without_rows(
    encoders: dict[str, Encoder], tmp_path: Path
):
    pq.write_table(pa.table({"text": pa.array([], pa.string())}), tmp_path / "in.parquet")
    model = LaConClassifier(encoder=encoders["float32"], epochs=1).fit(list(zip(FEW, FEW, strict=True)), FEW_Y)
    with pytest.raises(InputError, match="fitted on pairs of texts"):
        most_uncertain_file(model, tmp_path / "in.parquet", tmp_path / "out.parquet", 2)
    assert not (tmp_path / "out.parquet").exists()


def test_the_order_of_the_label_file_changes_no_order(encoders: dict[str, Encoder]):
    orders = [
        ZeroShotClassifier(names, encoders["float32"]).fit().most_uncertain(TEXTS).tolist()
        for names in (["sports", "money", "world"], ["world", "sports", "money"])
    ]
    assert orders[0] == orders[1]


@pytest.mark.parametrize("kind", ["zero-shot", "uncertainty"])
def test_of_no_document_none_is_uncertain(kind: str, clf: UncertaintyClassifier, encoders: dict[str, Encoder]):
    model = clf if kind == "uncertainty" else _fitted(kind, encoders["float32"])
    assert model.most_uncertain([]).tolist() == []
    with pytest.raises(ConfigError, match="top must be a whole number at least 1"):
        model.most_uncertain(TEXTS, 0)


def test_pairs_of_texts_are_ordered_too(encoders: dict[str, Encoder], tmp_path: Path):
    pairs = list(zip(FEW, FEW[1:] + FEW[:1], strict=True))
    model = LaConClassifier(encoder=encoders["float32"], epochs=1).fit(pairs, FEW_Y)
    pq.write_table(pa.table({"one": FEW, "two": FEW[1:] + FEW[:1]}), tmp_path / "in.parquet")
    most_uncertain_file(
        model, tmp_path / "in.parquet", tmp_path / "out.parquet", 4, text_column="one", pair_column="two"
    )
    found = pq.read_table(tmp_path / "out.parquet")
    wanted = [pairs[row] for row in model.most_uncertain(pairs, 4)]
    assert list(zip(found["one"].to_pylist(), found["two"].to_pylist(), strict=True)) == wanted


def test_a_missing_text_is_named_before_anything_is_encoded(clf: UncertaintyClassifier, tmp_path: Path, monkeypatch):
    path = tmp_path / "in.jsonl"
    path.write_text('{"text": "a match"}\n{"text": null}\n', encoding="utf-8")
    monkeypatch.setattr(Encoder, "tokenize", None)
    with pytest.raises(InputError, match=r"in\.jsonl: row 2 is missing"):
        most_uncertain_file(clf, path, tmp_path / "out.jsonl", 1)


def test_the_input_is_not_replaced_by_its_most_uncertain_rows(clf: UncertaintyClassifier, tmp_path: Path):
    path = tmp_path / "in.csv"
    path.write_text("text\na match\na loan\n", encoding="utf-8")
    (tmp_path / "link.csv").symlink_to(path)
    for target in (path, tmp_path / "link.csv"):
        with pytest.raises(InputError, match="its other rows would be lost"):
            most_uncertain_file(clf, path, target, 1, overwrite=True)
    assert path.read_text(encoding="utf-8") == "text\na match\na loan\n"
