"""Documents and labels in memory: every kind of collection, every kind of odd value."""

import math
import subprocess
import sys
import time
import warnings

import datasets
import numpy as np
import pyarrow as pa
import pytest
import scipy.sparse

from labelspace.corpus import MAX_CHARACTERS, as_documents, as_targets, as_texts_or_pairs
from labelspace.corpus.in_memory import as_arrow_table
from labelspace.errors import ColumnError, InputError, LabelSpaceWarning

pd = pytest.importorskip("pandas")
pl = pytest.importorskip("polars")

TEXTS = ["one", "zwei", "três 😀"]
COLUMNS = {"id": [1, 2, 3], "text": TEXTS, "other": ["x", "y", "z"]}


def hf_dataset(columns):
    return pytest.importorskip("datasets").Dataset.from_dict(columns)


COLLECTIONS = {
    "list": lambda: TEXTS,
    "tuple": lambda: tuple(TEXTS),
    "generator": lambda: (text for text in TEXTS),
    "iterator": lambda: iter(TEXTS),
    "dict values": lambda: dict(enumerate(TEXTS)).values(),
    "numpy str": lambda: np.array(TEXTS),
    "numpy object": lambda: np.array(TEXTS, dtype=object),
    "numpy one column": lambda: np.array(TEXTS, dtype=object).reshape(-1, 1),
    "numpy bytes": lambda: np.array([text.encode() for text in TEXTS]),
    "list of bytes": lambda: [text.encode() for text in TEXTS],
    "pandas series": lambda: pd.Series(TEXTS, index=[9, 4, 7]),
    "pandas category": lambda: pd.Series(TEXTS, dtype="category"),
    "pandas index": lambda: pd.Index(TEXTS),
    "pandas frame": lambda: pd.DataFrame(COLUMNS),
    "pandas frame, a column of categories": lambda: pd.DataFrame({"review": pd.Categorical(TEXTS)}),
    "pandas frame, one column of Arrow strings": lambda: pd.DataFrame(
        {"id": [1, 2, 3], "review": pd.Series(TEXTS, dtype=pd.ArrowDtype(pa.string()))}
    ),
    "pandas frame, one column of strings": lambda: pd.DataFrame({"id": [1, 2, 3], "review": TEXTS}),
    "polars series": lambda: pl.Series(TEXTS),
    "polars frame": lambda: pl.DataFrame(COLUMNS),
    "polars frame, one column of strings": lambda: pl.DataFrame({"id": [1, 2, 3], "review": TEXTS}),
    "arrow array": lambda: pa.array(TEXTS),
    "arrow dictionary": lambda: pa.array(TEXTS).dictionary_encode(),
    "arrow chunks": lambda: pa.chunked_array([TEXTS[:1], TEXTS[1:]]),
    "arrow table": lambda: pa.table(COLUMNS),
    "arrow batch": lambda: pa.record_batch(COLUMNS),
    "hf dataset": lambda: hf_dataset(COLUMNS),
    "hf dataset, shuffled back": lambda: hf_dataset({"text": TEXTS[::-1]}).select([2, 1, 0]),
    "hf column": lambda: hf_dataset(COLUMNS)["text"],
}


@pytest.mark.parametrize("make", COLLECTIONS.values(), ids=COLLECTIONS.keys())
def test_every_collection_gives_the_same_documents(make):
    documents = as_documents(make())
    assert documents == TEXTS
    assert {type(document) for document in documents} == {str}


@pytest.mark.parametrize("make", [pd.DataFrame, pl.DataFrame, pa.table, hf_dataset])
def test_text_chooses_the_column_of_a_table(make):
    assert as_documents(make(COLUMNS), text_column="other") == ["x", "y", "z"]


@pytest.mark.parametrize("make", [pd.DataFrame, pl.DataFrame, pa.table, hf_dataset])
def test_a_missing_column_error_lists_the_columns(make):
    with pytest.raises(ColumnError, match=r"docs has no column 'txet'\. Did you mean 'text'\? .*id, text, other"):
        as_documents(make(COLUMNS), text_column="txet", what="docs")


@pytest.mark.parametrize("make", [pd.DataFrame, pl.DataFrame, pa.table])
def test_two_columns_of_strings_are_ambiguous(make):
    with pytest.raises(ColumnError, match=r"pass the column of texts, for example X\['a'\]\. Its columns: a, b"):
        as_documents(make({"a": ["x"], "b": ["y"]}))


def test_two_columns_of_one_name_are_refused():
    frame = pd.DataFrame([["a", "b"]], columns=["text", "text"])
    with pytest.raises(ColumnError, match="two columns named 'text'"):
        as_documents(frame)


@pytest.mark.parametrize("name", ["docs.csv", "docs.jsonl"])
def test_a_path_is_read_as_a_file(tmp_path, name):
    path = tmp_path / name
    path.write_text('text\nhello\n"a\nb"\n' if name.endswith("csv") else '{"text": "hello"}\n{"text": "a\\nb"}\n')
    assert as_documents(path) == ["hello", "a\nb"]


@pytest.mark.parametrize(
    ("value", "said"),
    [
        (None, r"X\[3\] is missing \(None\)"),
        (math.nan, r"X\[3\] is missing \(nan\)"),
        (np.float32("nan"), r"X\[3\] is missing"),
        (pd.NA, r"X\[3\] is missing \(<NA>\)"),
        (pd.NaT, r"X\[3\] is missing \(NaT\)"),
        (np.datetime64("NaT"), r"X\[3\] is missing"),
        (7, r"X\[3\] is not a text but 7 of type int; pass a str"),
        (True, r"X\[3\] is not a text but True of type bool"),
        (["a"], r"X\[3\] is not a text but \['a'\] of type list"),
        ({"text": "a"}, r"X\[3\] is not a text but .* of type dict"),
        (b"\xff\xfe", r"X\[3\] is bytes that are not valid UTF-8 \(byte 0\)"),
    ],
)
def test_a_value_that_is_not_a_document_is_refused_by_position(value, said):
    with pytest.raises(InputError, match=said) as caught:
        as_documents(["a", "b", "c", value, None])
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize("make", [pd.Series, pl.Series, pa.array, lambda values: pd.Series(values, dtype="string")])
def test_a_missing_value_in_a_column_is_refused(make):
    with pytest.raises(InputError, match=r"X\[1\] is missing"):
        as_documents(make(["a", None]))


@pytest.mark.parametrize(
    ("X", "said"),
    [
        ("hello", r"X is a single str.*pass \[X\].*pathlib\.Path"),
        (b"hello", "X is a single bytes"),
        (7, "Got a int instead"),
        (None, "Got a NoneType instead"),
        ({"a": 1}, "Got a dict instead"),
        ({"a"}, "in some order.*Got a set instead"),
        (scipy.sparse.coo_matrix((2, 2)), "in some order.*Got a coo_matrix instead"),
        (np.array("a"), r"Got an array of shape \(\) instead"),
        (np.array([["a", "b"]]), r"Got an array of shape \(1, 2\) instead"),
        (pl.LazyFrame({"text": ["a"]}), r"call \.collect\(\) first"),
    ],
    ids=lambda value: type(value).__name__,
)
def test_an_input_that_is_not_a_collection_is_refused(X, said):
    with pytest.raises(InputError, match=said):
        as_documents(X)


def test_a_dataset_dict_asks_for_a_split():
    datasets = pytest.importorskip("datasets")
    with pytest.raises(InputError, match="choose a split"):
        as_documents(datasets.DatasetDict({"train": hf_dataset(COLUMNS)}))


def test_an_empty_input_gives_no_documents():
    assert as_documents([]) == []
    assert as_documents(pd.DataFrame({"text": []})) == []
    assert as_documents(np.array([], dtype=object)) == []


def test_empty_documents_are_kept_with_one_warning():
    with pytest.warns(LabelSpaceWarning, match=r"3 documents are empty or white space \(first: X\[1\]\)") as caught:
        assert as_documents(["a", "", " \n", "b", b""]) == ["a", "", " \n", "b", ""]
    assert len(caught) == 1


def test_the_warning_points_at_the_caller():
    with pytest.warns(LabelSpaceWarning) as caught:
        as_documents([""])
    assert caught[0].filename == __file__


def test_a_document_of_ten_megabytes_is_cut_with_one_warning():
    long = "ab " * 3_500_000
    with pytest.warns(
        LabelSpaceWarning, match=r"2 documents are longer than 100,000 characters \(first: X\[1\]\)"
    ) as caught:
        documents = as_documents(["short", long, long.encode()])
    assert len(caught) == 1
    assert documents == ["short", long[:MAX_CHARACTERS], long[:MAX_CHARACTERS]]


def test_a_document_of_exactly_the_maximum_length_is_not_cut():
    assert as_documents(["x" * MAX_CHARACTERS]) == ["x" * MAX_CHARACTERS]


def test_a_stream_that_cannot_be_read_is_refused_before_it_is_read():
    def rows():
        pytest.fail("it was read")
        yield {"text": "a"}

    stream = datasets.IterableDataset.from_generator(rows)
    with pytest.raises(InputError, match="pass an iterator over its texts"):
        as_texts_or_pairs(stream)


def test_lone_surrogates_are_replaced():
    assert as_documents(["a\ud800b", "\udfff"]) == ["a\ufffdb", "\ufffd"]


def test_a_hundred_thousand_documents_take_no_time():
    start = time.perf_counter()
    as_documents(f"document {number} ü" for number in range(100_000))
    assert time.perf_counter() - start < 2


def test_the_callers_list_is_not_changed():
    given = [b"a", "b"]
    assert as_documents(given) is not given
    assert given == [b"a", "b"]


def test_frames_are_recognised_without_importing_their_libraries():
    code = (
        "import sys; from labelspace.corpus import as_documents; as_documents(['a']); "
        "print([m for m in ('pandas', 'polars', 'datasets', 'torch') if m in sys.modules])"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"


def test_two_columns_of_one_name_are_refused_in_every_kind_of_table():
    for table in (pd.DataFrame([["a", "b"]], columns=["text", "text"]), pa.table([["a"], ["b"]], ["text", "text"])):
        with pytest.raises(ColumnError, match="two columns named 'text'; rename one"):
            as_arrow_table(table)


def test_a_column_of_mixed_types_cannot_be_an_arrow_table():
    with pytest.raises(InputError, match=r"do not share one type.*column o") as caught:
        as_arrow_table(pd.DataFrame({"text": ["a", "b"], "o": ["x", 3]}))
    assert "\n" not in str(caught.value)


NAMES = ["world", "sports", "business"]


@pytest.mark.parametrize(
    "y",
    [
        ["sports", None, "world", -1],
        ("sports", math.nan, "world", -1.0),
        np.array(["sports", -1, "world", -1]),  # numpy turns these into strings
        np.array(["sports", None, "world", -1], dtype=object),
        pd.Series(["sports", None, "world", None]),
        pd.Series(["sports", None, "world", None], dtype="category"),
        pd.Series(["sports", None, "world", pd.NA], dtype="string"),
        pl.Series(["sports", None, "world", ""]),
        pa.array(["sports", None, "world", "-1"]),
    ],
)
def test_labels_become_column_numbers_and_missing_ones_minus_one(y):
    targets = as_targets(y, NAMES, n_documents=4)
    assert targets == [1, -1, 0, -1]
    assert {type(target) for target in targets} == {int}


def test_white_space_around_a_label_is_ignored():
    assert as_targets([" sports", "world\n", "  ", " -1 "], NAMES, n_documents=4) == [1, 0, -1, -1]


def test_a_label_called_minus_one_is_a_label():
    assert as_targets(["-1", -1], ["-1", "1"], n_documents=2) == [0, -1]


@pytest.mark.parametrize(
    ("y", "said"),
    [
        (["world", "sprots"], r"y\[1\] is 'sprots', which is no label\. Did you mean 'sports'\? Labels: world, sports"),
        (["world", 1], r"y\[1\] is 1 of type int; pass label names"),
        (["world", True], r"y\[1\] is True of type bool"),
        (["world"], "each of the 2 documents. Got 1 instead"),
        (["world", None, None], "Got 3 instead"),
        ("world", r"y is a single str, not the label of each document; pass the column: X\['label'\]\.$"),
    ],
)
def test_invalid_labels_are_refused(y, said):
    with pytest.raises(InputError, match=said):
        as_targets(y, NAMES, n_documents=2)


def test_no_warning_without_a_reason():
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        as_documents(TEXTS)
