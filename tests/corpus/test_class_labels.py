"""Labels that a table has as numbers, with their names in its metadata, are read by their names."""

import json
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from labelspace import LabelSpace, LaConClassifier
from labelspace.corpus import open_table
from labelspace.corpus.targets import as_targets
from labelspace.errors import InputError

NAMES = ["sports", "money"]
TEXTS = ["the team lost", "the bank closed", "prices rise"]


def metadata(names: Any = NAMES) -> dict[str, str]:
    features = {"text": {"dtype": "string", "_type": "Value"}, "label": {"names": names, "_type": "ClassLabel"}}
    return {"huggingface": json.dumps({"info": {"features": features}})}


def table(numbers: list[int | None], said: dict[str, str] | None = None) -> pa.Table:
    return pa.table({"text": TEXTS, "label": numbers}).replace_schema_metadata(metadata() if said is None else said)


def labels(source: Any, **options: Any) -> list[str | None]:
    read = open_table(source, label_column="label", **options)
    found = [name for batch in read.batches() for name in batch.column("label").to_pylist()]
    assert read.schema.field("label").type == pa.string()
    return found


@pytest.mark.parametrize("batch_rows", [1, 2, 1024])
def test_a_parquet_file_and_a_table_have_names_in_place_of_numbers(tmp_path, batch_rows):
    given = table([1, -1, None])
    pq.write_table(given, tmp_path / "rows.parquet")
    for source in (tmp_path / "rows.parquet", given):
        assert labels(source, batch_rows=batch_rows) == ["money", None, None]
    read = open_table(tmp_path / "rows.parquet", label_column="label")
    assert read.check_labels(NAMES) == (3, 1)


def test_a_column_that_is_not_asked_for_as_labels_keeps_its_numbers():
    read = open_table(table([1, 0, 1]))
    assert [batch.column("label").to_pylist() for batch in read.batches()] == [[1, 0, 1]]


@pytest.mark.parametrize(
    "said",
    [
        {},
        {"huggingface": "{"},
        {"huggingface": "[]"},
        {"huggingface": '{"info": {"features": {"label": "int"}}}'},
        metadata([]),
        metadata([1, 2]),
        metadata("sports"),
    ],
    ids=range(7),
)
def test_metadata_that_names_nothing_leaves_the_numbers(said):
    read = open_table(table([1, 0, 1], said), label_column="label")
    assert [batch.column("label").to_pylist() for batch in read.batches()] == [[1, 0, 1]]


@pytest.mark.parametrize("number", [2, -2])
def test_a_number_without_a_name_is_refused_with_its_row(tmp_path, number):
    pq.write_table(table([0, 1, number]), tmp_path / "rows.parquet")
    read = open_table(tmp_path / "rows.parquet", label_column="label", batch_rows=2)
    with pytest.raises(InputError, match=rf"rows.parquet: row 3: column 'label' is {number}, and the metadata names 0"):
        read.check_labels(NAMES)


def test_files_that_name_the_numbers_otherwise_are_not_read_together(tmp_path):
    pq.write_table(table([0, 1, 0]), tmp_path / "a.parquet")
    pq.write_table(table([0, 1, 0], metadata(NAMES[::-1])), tmp_path / "b.parquet")
    with pytest.raises(InputError, match=r"b.parquet: files read together must give the numbers of labels the same na"):
        open_table(tmp_path / "*.parquet", label_column="label")


def test_a_data_set_and_its_column_have_names_too(tiny_encoder_folder):
    datasets = pytest.importorskip("datasets")
    features = datasets.Features({"text": datasets.Value("string"), "label": datasets.ClassLabel(names=NAMES)})
    given = datasets.Dataset.from_dict({"text": TEXTS, "label": [0, 1, -1]}, features=features)
    for source in (
        given,
        given.to_iterable_dataset(),
        given.rename_column("label", "kind").rename_column("kind", "label"),
    ):
        assert labels(source) == ["sports", "money", None]
    assert as_targets(given["label"], NAMES, n_documents=3) == [0, 1, -1]
    assert as_targets(given["text"], TEXTS, n_documents=3) == [0, 1, 2]
    clf = LaConClassifier(LabelSpace.from_names(NAMES), tiny_encoder_folder, epochs=1, description_steps=1)
    assert clf.fit(given["text"], given["label"]).fit_result_.labelled == 2
    assert LaConClassifier(None, tiny_encoder_folder, epochs=1).fit(
        given["text"], given["label"]
    ).classes_.tolist() == [
        "money",
        "sports",
    ]
