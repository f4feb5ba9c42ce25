"""Labels that a table has as numbers, with their names in its metadata, are read by their names."""

import json
from typing import Any

import pandas as pd
import polars as pl
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from scipy.sparse import csr_matrix

from labelspace import LabelSpace, LaConClassifier, ZeroShotClassifier
from labelspace.classify import predict_file
from labelspace.corpus import open_table
from labelspace.corpus.label_sets import as_label_sets, check_label_sets
from labelspace.corpus.targets import as_targets
from labelspace.errors import ConfigError, InputError, LabelSpaceWarning

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
        {"huggingface": '{"info": {"features": []}}'},
    ],
    ids=range(8),
)
def test_metadata_that_names_nothing_leaves_the_numbers(said):
    read = open_table(table([1, 0, 1], said), label_column="label")
    assert [batch.column("label").to_pylist() for batch in read.batches()] == [[1, 0, 1]]


def test_a_feature_of_another_form_leaves_the_names_of_the_others():
    said = json.loads(metadata()["huggingface"])
    said["info"]["features"]["choices"] = [{"dtype": "string", "_type": "Value"}]
    assert labels(table([1, 0, 1], {"huggingface": json.dumps(said)})) == ["money", "sports", "money"]


@pytest.mark.parametrize("kind", [pa.uint8(), pa.int8(), pa.uint64()], ids=str)
def test_numbers_of_any_kind_have_names(kind):
    given = pa.table({"text": TEXTS, "label": pa.array([1, None, 0], kind)}).replace_schema_metadata(metadata())
    assert labels(given) == ["money", None, "sports"]


@pytest.mark.parametrize("number", [2, -2])
def test_a_number_without_a_name_is_refused_with_its_row(tmp_path, number):
    pq.write_table(table([0, 1, number]), tmp_path / "rows.parquet")
    read = open_table(tmp_path / "rows.parquet", label_column="label", batch_rows=2)
    with pytest.raises(InputError, match=rf"rows.parquet: row 3: column 'label' is {number}, and the metadata names 0"):
        read.check_labels(NAMES)


@pytest.mark.parametrize("other", [metadata(NAMES[::-1]), {}], ids=["others", "none"])
def test_files_that_name_the_numbers_otherwise_keep_the_numbers(tmp_path, other):
    pq.write_table(table([0, 1, 0]), tmp_path / "a.parquet")
    pq.write_table(table([0, 1, 0], other), tmp_path / "b.parquet")
    read = open_table(tmp_path / "*.parquet", label_column="label")
    assert [batch.column("label").to_pylist() for batch in read.batches()] == [[0, 1, 0] * 2]
    with pytest.raises(
        InputError, match=r"a.parquet: row 1: column 'label' is 0 of type int; pass label names, and None"
    ):
        read.check_labels(NAMES)


LISTS = [
    {"feature": {"names": NAMES, "_type": "ClassLabel"}, "_type": "List"},
    {"feature": {"names": NAMES, "_type": "ClassLabel"}, "_type": "Sequence", "length": -1},
    [{"names": NAMES, "_type": "ClassLabel"}],
]


@pytest.mark.parametrize("feature", LISTS, ids=["List", "Sequence", "as older releases wrote it"])
def test_lists_of_numbers_have_names_too(feature, tmp_path):
    said = {"huggingface": json.dumps({"info": {"features": {"label": feature}}})}
    sets = [[0, 1], [], None]
    given = pa.table({"text": TEXTS, "label": pa.array(sets, pa.list_(pa.int64()))}).replace_schema_metadata(said)
    pq.write_table(given, tmp_path / "rows.parquet")
    for source in (given, tmp_path / "rows.parquet"):
        read = open_table(source, label_column="label")
        assert [batch.column("label").to_pylist() for batch in read.batches()] == [[NAMES, [], None]]
        assert read.schema.field("label").type == pa.list_(pa.string())
        assert check_label_sets(read, NAMES, "|") == (3, 3)
    fixed = given.slice(0, 1).cast(pa.schema([("text", pa.string()), ("label", pa.list_(pa.int64(), 2))]))
    fixed = fixed.replace_schema_metadata(said)
    assert open_table(fixed, label_column="label").schema.field("label").type == pa.list_(pa.string())
    odd = given.set_column(1, "label", pa.array([[0], [2], []], pa.list_(pa.int64())))
    with pytest.raises(InputError, match=r"row 2: column 'label' is \[2\], and the metadata names 0 to 1"):
        list(open_table(odd, label_column="label").batches())


def test_lists_of_numbers_without_names_are_no_indicators():
    read = open_table(pa.table({"text": TEXTS, "label": [[1, 0], [0, 1], [1, 1]]}), label_column="label")
    with pytest.raises(InputError, match=r"row 1: column 'label' holds numbers; write the names of labels, joined by"):
        check_label_sets(read, NAMES, "|")


def test_predictions_in_parquet_keep_the_names(tiny_encoder_folder, tmp_path):
    pq.write_table(table([1, -1, 0]), tmp_path / "rows.parquet")
    clf = ZeroShotClassifier(NAMES, tiny_encoder_folder).fit()
    done = predict_file(clf, tmp_path / "rows.parquet", tmp_path / "out.parquet")
    assert pq.read_table(done.path)["label"].to_pylist() == [1, -1, 0]
    assert labels(done.path) == ["money", None, "sports"]


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
    for kind in ("numpy", "torch"):
        assert as_targets(given.with_format(kind)["label"], NAMES, n_documents=3) == [0, 1, -1]
    with pytest.raises(
        InputError, match=r"y\[0\] is 0 of type int; pass label names, for example \[names\[number\] if"
    ):
        as_targets(list(given["label"]), NAMES, n_documents=3)
    with pytest.raises(ConfigError, match="Got ClassLabel instead; pass its names"):
        ZeroShotClassifier(features["label"], tiny_encoder_folder).fit()
    clf = LaConClassifier(LabelSpace.from_names(NAMES), tiny_encoder_folder, epochs=1, description_steps=1)
    assert clf.fit(given["text"], given["label"]).fit_result_.labelled == 2
    assert LaConClassifier(None, tiny_encoder_folder, epochs=1).fit(
        given["text"], given["label"]
    ).classes_.tolist() == [
        "money",
        "sports",
    ]


def test_streams_say_it_by_their_features():
    datasets = pytest.importorskip("datasets")
    features = datasets.Features({"text": datasets.Value("string"), "label": datasets.ClassLabel(names=NAMES)})
    rows = {"text": TEXTS, "label": [0, 1, -1]}
    stream = datasets.Dataset.from_dict(rows, features=features).to_iterable_dataset()
    made = datasets.IterableDataset.from_generator(
        lambda: ({"text": text, "label": number} for text, number in zip(*rows.values(), strict=True)),
        features=features,
    )
    for source in (stream, stream.filter(lambda row: True), stream.map(lambda row: row, features=features), made):
        assert labels(source) == ["sports", "money", None]
    cast = stream.cast_column("label", datasets.ClassLabel(names=["a", "b"]))
    assert labels(cast) == ["a", "b", None]
    # A map may have made other numbers, so that nothing names these.
    unknown = open_table(cast.with_format("arrow").map(lambda rows: rows, batched=True), label_column="label")
    assert [batch.column("label").to_pylist() for batch in unknown.batches()] == [[0, 1, -1]]


def test_columns_of_a_data_set_are_sets_of_labels():
    datasets = pytest.importorskip("datasets")
    lists = datasets.Features({"own": datasets.Sequence(datasets.ClassLabel(names=NAMES))})
    own = datasets.Dataset.from_dict({"own": [[0, 1], [1], []]}, features=lists)["own"]
    truth = [[True, True], [False, True], [False, False]]
    assert as_label_sets(own, NAMES, n_documents=3, separator="|").truth.tolist() == truth
    # Indicators have the order of the sorted names.
    wide = datasets.Dataset.from_dict({"money": [1, 1, 0], "sports": [1, 0, 0]})
    column = datasets.Dataset.from_dict({"own": [[1, 1], [1, 0], [0, 0]]})["own"]
    for given in (wide, wide.data.table, column):
        assert as_label_sets(given, NAMES, n_documents=3, separator="|").truth.tolist() == truth
    with pytest.raises(InputError, match=r"a table whose columns are not the sorted label names\. Got sports, m"):
        as_label_sets(wide.select_columns(NAMES), NAMES, n_documents=3, separator="|")


def test_frames_of_indicators_are_read_as_numpy_reads_them():
    sparse = pd.DataFrame.sparse.from_spmatrix(csr_matrix([[1, 1], [0, 1]]), columns=sorted(NAMES))
    mixed = pd.DataFrame({"money": [True, 0], "sports": [1, 1]}, dtype=object)
    for given in (sparse, mixed):
        found = as_label_sets(given, sorted(NAMES), n_documents=2, separator="|")
        assert found.truth.tolist() == [[True, True], [False, True]]
    for empty in (pd.DataFrame(), pl.DataFrame(), pa.table({})):
        with pytest.raises(InputError, match="must have a row for each of the 2 documents"):
            as_label_sets(empty, NAMES, n_documents=2, separator="|")


@pytest.mark.usefixtures("short_search")
@pytest.mark.parametrize("kind", ["arrow", "pandas"])
def test_labels_that_are_left_in_the_table_are_told(kind, tiny_encoder_folder):
    given: Any = pa.table({"text": TEXTS, "label": ["sports", "money", "money"]})
    given = given.to_pandas() if kind == "pandas" else given
    labels = {"sports": {"descriptions": ["a match"]}, "money": {"descriptions": ["a bank"]}}
    clf = LaConClassifier({"labels": labels}, tiny_encoder_folder, description_steps=1)
    with pytest.warns(
        LabelSpaceWarning, match=r"column 'label', which is not read as labels.*pass y=X\['label'\]"
    ) as told:
        clf.fit(given)
    assert told[0].filename == __file__
    assert clf.fit_result_.labelled == 0


@pytest.mark.usefixtures("short_search")
def test_a_column_label_that_holds_the_documents_is_no_column_of_labels(tiny_encoder_folder):
    labels = {"sports": {"descriptions": ["a match"]}, "money": {"descriptions": ["a bank"]}}
    clf = LaConClassifier({"labels": labels}, tiny_encoder_folder, description_steps=1)
    clf.fit(pd.DataFrame({"label": TEXTS, "column_names": [1, 2, 3]}))
