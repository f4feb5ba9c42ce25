"""Tables as streams: every format, exact batches, no row lost, and one line per broken file."""

import csv
import gzip
import json
import os
import random
import subprocess
import sys
import unicodedata
import warnings

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from labelspace.corpus import DocumentTable, files_to_rows, open_table
from labelspace.corpus.files_to_rows import SCHEMA_ROWS
from labelspace.errors import ColumnError, ConfigError, InputError, LabelSpaceWarning

FORMATS = ["csv", "jsonl", "parquet", "csv.gz", "jsonl.gz"]
NASTY = [
    "plain",
    "with, comma",
    "with\ttab",
    'with "quotes"',
    "two\nlines",
    "cr\r\nlf",
    "ünï 😀",
    " edges ",
    "NA",
    "null",
]


def rows_of(count):
    return [{"id": f"{number:03d}", "text": f"{NASTY[number % len(NASTY)]} {number}"} for number in range(count)]


def write_file(path, rows):
    """Write rows without using labelspace, so that readers are tested independently."""
    name = path.name.removesuffix(".gz")
    if name.endswith(".parquet"):
        pq.write_table(pa.Table.from_pylist(rows), path, row_group_size=7)
        return path
    if name.endswith((".jsonl", ".ndjson")):
        content = "".join(json.dumps(row) + "\n" for row in rows)
    else:
        mark = "," if name.endswith(".csv") else "\t"
        quoted = [['"' + str(cell).replace('"', '""') + '"' for cell in row.values()] for row in rows]
        content = "".join(mark.join(line) + "\n" for line in [list(rows[0]), *quoted])
    data = content.encode()
    path.write_bytes(gzip.compress(data) if path.name.endswith(".gz") else data)
    return path


def read_all(table, skip=0):
    return [row for batch in table.batches(skip) for row in batch.to_pylist()]


@pytest.mark.parametrize("suffix", [*FORMATS, "tsv", "ndjson", "tsv.gz"])
def test_every_format_gives_every_row_once_and_in_order(tmp_path, suffix):
    rows = rows_of(50)
    table = open_table(write_file(tmp_path / f"in.{suffix}", rows), id_column="id", batch_rows=8)
    assert isinstance(table, DocumentTable)
    assert read_all(table) == rows
    assert table.columns == ["id", "text"]
    assert table.rows == (50 if suffix == "parquet" else None)


@pytest.mark.parametrize("suffix", FORMATS)
def test_batches_have_exactly_the_requested_rows(tmp_path, suffix):
    path = write_file(tmp_path / f"in.{suffix}", rows_of(50))
    for batch_rows in (1, 7, 8, 50, 1000):
        sizes = [batch.num_rows for batch in open_table(path, batch_rows=batch_rows).batches()]
        assert sizes == [batch_rows] * (50 // batch_rows) + [50 % batch_rows] * (50 % batch_rows > 0)


@pytest.mark.parametrize("suffix", FORMATS)
def test_skipped_rows_are_left_out(tmp_path, suffix):
    rows = rows_of(50)
    table = open_table(write_file(tmp_path / f"in.{suffix}", rows), batch_rows=8)
    for skip in (0, 1, 7, 8, 14, 24, 49, 50, 60):
        assert read_all(table, skip) == rows[skip:]


@pytest.mark.parametrize("suffix", FORMATS)
def test_a_glob_reads_its_files_in_sorted_order_as_one(tmp_path, suffix):
    rows = rows_of(50)
    for number, (start, end) in enumerate([(0, 11), (11, 12), (12, 40), (40, 50)]):
        write_file(tmp_path / f"part-{number}.{suffix}", rows[start:end])
    table = open_table(str(tmp_path / f"part-*.{suffix}"), batch_rows=16)
    assert read_all(table) == rows
    assert [batch.num_rows for batch in table.batches()] == [16, 16, 16, 2]
    for skip in (11, 13, 16, 45):
        assert read_all(table, skip) == rows[skip:]


def test_a_list_of_paths_is_read_in_its_own_order(tmp_path):
    first, second = (write_file(tmp_path / f"{name}.csv", rows_of(3)) for name in "ab")
    assert len(read_all(open_table([second, str(first)]))) == 6
    assert [file["name"] for file in open_table([second, first]).fingerprint()["files"]] == ["b.csv", "a.csv"]


@pytest.mark.parametrize("make", ["pandas", "polars", "arrow", "datasets"])
def test_a_table_in_memory_is_read_like_a_file(make):
    columns = {"id": list(range(10)), "text": [f"t{number}" for number in range(10)]}
    if make == "arrow":
        source = pa.table(columns)
    elif make == "datasets":
        source = pytest.importorskip("datasets").Dataset.from_dict(columns)
    else:
        source = pytest.importorskip(make).DataFrame(columns)
    table = open_table(source, batch_rows=4)
    assert [batch.num_rows for batch in table.batches()] == [4, 4, 2]
    assert [row["id"] for row in read_all(table, 3)] == list(range(3, 10))
    assert table.rows == 10
    assert table.bytes_read() == table.bytes_total
    assert table.schema.metadata is None
    json.dumps(table.fingerprint())


@pytest.mark.parametrize("encoding", ["utf-8", "utf-16"])
@pytest.mark.parametrize("suffix", ["csv", "csv.gz"])
def test_a_line_break_of_two_characters_in_a_cell_is_whole_wherever_a_block_ends(
    tmp_path, monkeypatch, encoding, suffix
):
    monkeypatch.setattr(files_to_rows, "_CSV_PIECE_CHARACTERS", 200)
    texts = ["x" * (1 + row % 50) + "\r\nend" for row in range(500)]
    content = ("text\r\n" + "".join(f'"{text}"\r\n' for text in texts)).encode(encoding)
    path = tmp_path / f"in.{suffix}"
    path.write_bytes(gzip.compress(content) if suffix == "csv.gz" else content)
    assert [row["text"] for row in read_all(open_table(path, encoding=encoding))] == texts


@pytest.mark.parametrize("end", ["", "\r", "\n", "\r\n"])
def test_a_csv_may_end_in_any_line_break_or_none(tmp_path, end):
    path = tmp_path / "in.csv"
    path.write_text(f"id,text\r1,a\r2,b{end}", newline="")
    assert [row["text"] for row in read_all(open_table(path))] == ["a", "b"]


def test_csv_columns_are_strings_and_empty_cells_are_empty_strings(tmp_path):
    path = tmp_path / "in.csv"
    path.write_text("\ufeffid,text,score\n007,,1.50\n008,NA,\n\n009,true,1e5\n")
    assert [tuple(row.values()) for row in read_all(open_table(path))] == [
        ("007", "", "1.50"),
        ("008", "NA", ""),
        ("009", "true", "1e5"),
    ]


def test_jsonl_keeps_nested_values_and_fills_missing_keys(tmp_path):
    path = tmp_path / "in.jsonl"
    path.write_text(
        '\ufeff{"text": "a", "tags": ["x"], "by": {"name": "n"}}\n\n{"text": "b", "tags": []}\n{"text": "c"}'
    )
    assert read_all(open_table(path)) == [
        {"text": "a", "tags": ["x"], "by": {"name": "n"}},
        {"text": "b", "tags": [], "by": None},
        {"text": "c", "tags": None, "by": None},
    ]


@pytest.mark.parametrize("text", ["text", "id,text", "id,text\n", "id,text\r\n"])
def test_a_csv_header_alone_has_no_rows_with_or_without_a_line_break(tmp_path, text):
    path = tmp_path / "in.csv"
    path.write_bytes(text.encode())
    table = open_table(path)
    assert (table.columns, list(table.batches())) == (text.strip().split(","), [])


def test_jsonl_without_rows_has_no_rows(tmp_path):
    path = tmp_path / "in.jsonl"
    path.write_text("\n")
    table = open_table(path, id_column="id")
    assert read_all(table) == []
    assert table.columns == ["text", "id"]


def test_jsonl_replaces_lone_surrogates_everywhere(tmp_path):
    path = tmp_path / "in.jsonl"
    path.write_text(r'{"text": "a\ud800", "by": {"k": ["\uDFFF"]}, "pair": "\ud83d\ude00"}')
    assert read_all(open_table(path)) == [{"text": "a\ufffd", "by": {"k": ["\ufffd"]}, "pair": "😀"}]


@pytest.mark.parametrize(
    ("late", "said"),
    [
        ({"text": "x", "n": 1.5}, "has 1.5 as 'n', where the first rows have int64"),
        ({"text": "x", "n": "1"}, "has '1' as 'n'"),
        ({"text": "x", "n": True}, "has True as 'n'"),
        ({"text": 5}, "has 5 as 'text', where the first rows have string"),
        ({"text": "x", "new": 1}, "has the key 'new', which none of the first rows has"),
        ({"text": "x", "deep": {"a": 1, "b": 2}}, "has {'a': 1, 'b': 2} as 'deep'"),
    ],
)
def test_a_later_json_row_that_does_not_fit_is_named(tmp_path, late, said):
    path = tmp_path / "in.jsonl"
    rows = [{"text": "a", "n": 1, "deep": {"a": 1}}] * SCHEMA_ROWS + [late]
    path.write_text("".join(json.dumps(row) + "\n" for row in rows))
    table = open_table(path, batch_rows=64)
    with pytest.raises(InputError, match=f"in.jsonl: row {SCHEMA_ROWS + 1} {said}"):
        read_all(table)


def test_batch_rows_do_not_change_the_types_of_json(tmp_path):
    path = tmp_path / "in.jsonl"
    path.write_text('{"text": "a", "n": 1}\n{"text": "b", "n": 1.5}\n{"text": "c", "n": null}\n')
    assert [row["n"] for row in read_all(open_table(path, batch_rows=1))] == [1.0, 1.5, None]


@pytest.mark.parametrize(
    ("content", "said"),
    [
        (b'{"text": "a"}\n{"text": \n', r"in\.jsonl: line 2 is not valid JSON"),
        (b'{"text": "a"}\n\n["b"]\n', r"in\.jsonl: line 3 must be an object"),
        (b'{"text": "\xff"}\n', r"in\.jsonl: line 1 is not valid JSON .*utf-8"),
        (
            b'{"text": "a", "n": 1}\n{"text": "b", "n": "x"}\n',
            r"'n' in the first 2 rows do not share one type: .*in\.jsonl: row 2 has 'x' .*; give the column one type",
        ),
        (b'{"text": "a", "n": []}\n\n{"text": "b", "n": [1, "x"]}\n', r"one type: .*in\.jsonl: row 2 has \[1, 'x'\]"),
        (b'{"text": 5}\n', "column 'text' holds int64, not texts"),
        (b'{"text": "a", "n": 99999999999999999999999}\n', "values of 'n'"),
    ],
)
def test_broken_jsonl_is_one_line_that_names_the_place(tmp_path, content, said):
    path = tmp_path / "in.jsonl"
    path.write_bytes(content)
    with pytest.raises(InputError, match=said) as caught:
        read_all(open_table(path))
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize(
    ("name", "content", "said"),
    [
        ("in.csv", b"", "is empty; its first line must name the columns"),
        (
            "in.csv",
            b"id,text\n1,a\n1,2,3\n",
            r"row 2 does not fit the header.*it has 3 cells, and there are 2 columns \(1,2,3\)",
        ),
        ("in.csv", b"id,text\n1,\xff\xfe\n", r"cannot be read.*not UTF-8.*; save it as UTF-8"),
        ("in.csv", b"t\xe9\x81xte,text\n1,a\n", r"cannot be read.*not UTF-8.*; save it as UTF-8"),
        ("in.csv", b"text,text\na,b\n", "two columns share a name"),
        ("in.csv.gz", b"no gzip at all", "cannot be read"),
        ("in.jsonl.gz", b"no gzip at all", "cannot be read"),
        (
            "in.csv.gz",
            gzip.compress(b"text\n" + random.Random(0).randbytes(50_000).hex().encode(), mtime=0)[:30_000],
            "cannot be read",
        ),
        ("in.jsonl.gz", gzip.compress(b'{"text": "a"}\n' * 5000, mtime=0)[:60], "cannot be read"),
        ("in.parquet", b"PAR1 no parquet", "cannot be read"),
        ("in.parquet", b"", "cannot be read"),
    ],
)
def test_a_broken_file_is_one_line_that_names_it(tmp_path, name, content, said):
    path = tmp_path / name
    path.write_bytes(content)
    with pytest.raises(InputError, match=said) as caught:
        read_all(open_table(path))
    assert str(caught.value).startswith(str(path))
    assert "\n" not in str(caught.value)


def test_a_parquet_file_damaged_in_the_middle_is_one_line(tmp_path):
    path = write_file(tmp_path / "in.parquet", rows_of(500))
    data = bytearray(path.read_bytes())
    data[200:900] = b"\xff" * 700
    path.write_bytes(data)
    with pytest.raises(InputError, match=r"in\.parquet: cannot be read") as caught:
        read_all(open_table(path))
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize("suffix", FORMATS)
def test_a_missing_column_is_refused_before_anything_is_read(tmp_path, suffix):
    path = write_file(tmp_path / f"in.{suffix}", rows_of(3))
    with pytest.raises(ColumnError, match=r"has no column 'txt'\. Did you mean 'text'\? Its columns: id, text\."):
        open_table(path, text_column="txt")
    with pytest.raises(ColumnError, match="has no column 'label'"):
        open_table(path, label_column="label")


def test_a_column_in_another_form_of_unicode_is_named_as_such(tmp_path):
    (tmp_path / "in.csv").write_text(unicodedata.normalize("NFD", "Äußerung,id") + "\nx,1\n", encoding="utf-8")
    with pytest.raises(
        ColumnError, match=r"'Äußerung'\. It has one in another form of Unicode; copy the name from it\."
    ):
        open_table(tmp_path / "in.csv", text_column="Äußerung")


def test_files_of_a_glob_must_share_their_columns(tmp_path):
    (tmp_path / "a.csv").write_text("id,text\n1,x\n")
    (tmp_path / "b.csv").write_text("text,id\ny,2\n")
    assert read_all(open_table(tmp_path / "*.csv")) == [{"id": "1", "text": "x"}, {"id": "2", "text": "y"}]
    (tmp_path / "c.csv").write_text("text\nz\n")
    with pytest.raises(InputError, match=r"c\.csv: files read together must have the same columns"):
        open_table(tmp_path / "*.csv")
    pq.write_table(pa.table({"text": ["a"], "n": [1]}), tmp_path / "a.parquet")
    pq.write_table(pa.table({"text": ["a"], "n": ["1"]}), tmp_path / "b.parquet")
    with pytest.raises(InputError, match=r"b\.parquet: files read .* n \(string\); .* n \(int64\)"):
        open_table(tmp_path / "*.parquet")
    with pytest.raises(InputError, match="must have one format"):
        open_table([tmp_path / "a.csv", tmp_path / "a.parquet"])


@pytest.mark.parametrize(
    ("source", "said"),
    [
        ("nowhere.csv", "nowhere.csv: no such file"),
        ("no-*.csv", "no file matches"),
        ("x" * 5000, "^'?x{50,300}.* (is not a path|no such file)"),  # the second from Python 3.14 on
        ("folder", r"is a folder, not a file; name a file in it, or several by a glob, such as 'folder/\*\.jsonl'"),
        ("saved", "is a folder, not a file; write this data set to a file, with its to_parquet"),
        ("in.txt", "the extension must tell the format"),
        ("in.parquet.gz", "the extension must tell the format"),
        (["a", 3], "not a table but a list"),
        ([], "not a table but a list"),
        (7, "not a table but a int"),
    ],
)
def test_an_input_that_names_no_table_is_refused(tmp_path, monkeypatch, source, said):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "folder").mkdir()
    (tmp_path / "saved").mkdir()
    (tmp_path / "saved" / "dataset_info.json").write_text("{}")
    (tmp_path / "in.txt").write_text("text\n")
    (tmp_path / "in.parquet.gz").write_text("")
    with pytest.raises(InputError, match=said):
        open_table(source)


def test_a_file_whose_name_looks_like_a_glob_is_still_a_file(tmp_path):
    assert len(read_all(open_table(write_file(tmp_path / "in[1].csv", rows_of(2))))) == 2


@pytest.mark.parametrize("batch_rows", [0, -1, 1.5, True, "8"])
def test_batch_rows_must_be_a_positive_whole_number(batch_rows):
    with pytest.raises(ConfigError, match="batch_rows must be a whole number at least 1"):
        open_table(pa.table({"text": ["a"]}), batch_rows=batch_rows)


def test_a_row_without_text_is_named_by_file_and_row(tmp_path):
    pq.write_table(pa.table({"text": ["a"] * 10}), tmp_path / "a.parquet")
    pq.write_table(pa.table({"text": ["a"] * 6 + [None]}), tmp_path / "b.parquet")
    table = open_table(tmp_path / "*.parquet", batch_rows=4)
    batches = list(table.batches())  # read all before checking any
    for batch in batches[:-1]:
        assert table.texts(batch) == ["a"] * 4
    with pytest.raises(InputError, match=r"b\.parquet: row 7 is missing \(None\)"):
        table.texts(batches[-1])


@pytest.mark.parametrize(
    "late",
    [pa.array(["a"] * 9 + [None]), pa.array([b"a"] * 9 + [b"\xff"]), pa.array(["a"] * 9 + [None]).dictionary_encode()],
)
def test_checking_all_texts_names_the_first_missing_one(tmp_path, late):
    for name, texts in (("a", late.slice(0, 9)), ("b", late)):
        pq.write_table(
            pa.table({"text": texts, "n": range(len(texts))}), tmp_path / f"{name}.parquet", row_group_size=3
        )
    open_table(tmp_path / "a.parquet", batch_rows=4).check_documents()
    table = open_table(tmp_path / "*.parquet", batch_rows=4)
    with pytest.raises(InputError, match=r"b\.parquet: row 10 is "):
        table.check_documents()
    assert sum(batch.num_rows for batch in table.batches()) == 19, "and then all is read from the beginning"


def test_checking_all_texts_accepts_empty_ones_without_a_warning(tmp_path, recwarn):
    path = tmp_path / "in.csv"
    path.write_text("id,text\n1,a\n2,\n3,b,c\n")
    with pytest.raises(InputError, match=r"in\.csv: row 3 does not fit"):
        open_table(path).check_documents()
    path.write_text("id,text\n1,a\n2,\n3,b\n")
    open_table(path).check_documents()
    assert not recwarn.list


def test_checking_a_parquet_file_reads_only_the_text_column(tmp_path, monkeypatch):
    path, asked = tmp_path / "in.parquet", []
    pq.write_table(pa.table({"big": ["x" * 100] * 5, "text": list("abcde"), "pair": list("fghij")}), path)
    batches = pq.ParquetFile.iter_batches

    def iter_batches(self, *args, columns, **options):
        asked.append(columns)
        return batches(self, *args, columns=columns, **options)

    monkeypatch.setattr(pq.ParquetFile, "iter_batches", iter_batches)
    open_table(path).check_documents()
    open_table(path, pair_column="pair").check_documents()
    open_table(path, pair_column="text").check_documents()
    assert asked == [["text"], ["text", "pair"], ["text"]]


def test_rows_keep_their_numbers_after_a_skip(tmp_path):
    path = tmp_path / "in.parquet"
    pq.write_table(pa.table({"text": [*"abcdefg", None]}), path, row_group_size=2)
    table = open_table(path, batch_rows=4)
    with pytest.raises(InputError, match=r"in\.parquet: row 8 is missing"):
        table.texts(next(table.batches(4)))


def test_odd_documents_cause_one_warning_per_table(tmp_path):
    path = tmp_path / "in.csv"
    path.write_text("id,text\n1,a\n2,\n3,\n4,b\n5,\n")
    table = open_table(path, batch_rows=2)
    with pytest.warns(LabelSpaceWarning, match=r"in\.csv: row 2") as caught:
        texts = [table.texts(batch) for batch in table.batches()]
    assert texts == [["a", ""], ["", "b"], [""]]
    assert len(caught) == 1


@pytest.mark.parametrize("suffix", ["csv", "jsonl", "parquet"])
def test_a_document_of_ten_megabytes_passes_through(tmp_path, suffix):
    long = "ab " * 3_500_000
    table = open_table(write_file(tmp_path / f"in.{suffix}", [{"text": long}, {"text": "b"}]))
    (batch,) = table.batches()
    assert batch.column("text")[0].as_py() == long
    with pytest.warns(LabelSpaceWarning, match="row 1"):
        assert [len(text) for text in table.texts(batch)] == [100_000, 1]


@pytest.mark.parametrize("name", ["in.csv.gz", "in.jsonl.gz"])
def test_a_line_without_an_end_is_refused_before_it_fills_the_memory(tmp_path, monkeypatch, name):
    """4 MB packed may be a line of 4 GB."""
    monkeypatch.setattr(files_to_rows, "_LINE", 1000)
    path = tmp_path / name
    with gzip.open(path, "wb") as file:
        file.write(b"text\n" if "csv" in name else b"\n")
        file.write(b"a" * 2000)
    with pytest.raises(InputError, match=r"gz: line 2 has more than .* characters; write a row a document\.$"):
        read_all(open_table(path))


def test_the_error_for_an_endless_cell_suggests_an_open_quote(tmp_path, monkeypatch):
    monkeypatch.setattr(files_to_rows, "_CSV_CELL_CHARACTERS", 2 * 1024**2)
    path = tmp_path / "in.csv"
    path.write_bytes(b'text\na\n"open\n' + b"some words of a text\n" * 120_000)
    limit = csv.field_size_limit(0)  # of the whole process; reading only raises it
    try:
        with pytest.raises(InputError, match=r"in\.csv: row 1, or .* 2 million characters; is a quotation mark left"):
            read_all(open_table(path))
    finally:
        csv.field_size_limit(limit)


@pytest.mark.parametrize(
    ("content", "row"),
    [
        ('id,text\n1,a\n2,"b\n3,c\n', 2),
        ('id,text\n1,a\n2,b\n3,"c', 3),
        ('id,text\n1,a\n"2,b\n3,c\n', 2),  # the other column is missing from the row then
        ('text\n"a\nb\n', 1),
        ("text\n" + f"{'x' * 1000}\n" * 5000 + '"open\nx\n', 5001),  # behind the first pieces
    ],
)
@pytest.mark.parametrize("end", ["", ".gz"])
def test_a_quotation_mark_that_is_never_closed_is_an_error_that_names_its_row(tmp_path, content, row, end):
    path = tmp_path / f"in.csv{end}"
    path.write_bytes(gzip.compress(content.encode()) if end else content.encode())
    with pytest.raises(InputError, match=rf"in\.csv{end}: row {row} has a quotation mark that is never closed"):
        read_all(open_table(path))


@pytest.mark.parametrize(
    "content",
    [
        'id\ttext\n1\t"Star Wars" is fine\n2\t"A start of a quote\n3\tmiddle\n4\t"end of it", she said\n',
        'id,text\n1,"He said \\"hello\\" to me"\n',  # as Spark and MySQL write it
    ],
)
def test_text_after_a_closing_quotation_mark_is_refused_because_rows_could_run_together(tmp_path, content):
    path = tmp_path / ("in.tsv" if "\t" in content else "in.csv")
    path.write_text(content)
    with pytest.raises(InputError, match=r"row 1, or one soon after, has more text after a quotation mark"):
        read_all(open_table(path))


def test_a_pipe_is_said_to_be_one(tmp_path):
    os.mkfifo(tmp_path / "in.csv")
    with pytest.raises(InputError, match="is no regular file but a pipe or a device"):
        open_table(tmp_path / "in.csv")


def test_a_header_with_an_open_quotation_mark_is_refused(tmp_path):
    (tmp_path / "in.csv").write_text('id,"text\n1,a\n')
    with pytest.raises(InputError, match="the header has a quotation mark that is never closed"):
        open_table(tmp_path / "in.csv")


def test_rows_before_a_row_that_does_not_fit_are_read(tmp_path):
    (tmp_path / "in.csv").write_text("id,text\n1,a\n2,b\n3,c,d\n4,e\n")
    batches = open_table(tmp_path / "in.csv", batch_rows=1).batches()
    assert [next(batches).column("text")[0].as_py() for _ in range(2)] == ["a", "b"]
    with pytest.raises(InputError, match="row 3 does not fit"):
        next(batches)


def test_quotation_marks_within_a_cell_without_quotes_are_letters(tmp_path):
    (tmp_path / "in.csv").write_text('text,size\na 5" disk,3"\nthe "new" one,5""\n')
    assert [list(row.values()) for row in read_all(open_table(tmp_path / "in.csv"))] == [
        ['a 5" disk', '3"'],
        ['the "new" one', '5""'],
    ]


@pytest.mark.parametrize("suffix", FORMATS)
def test_progress_runs_from_zero_to_the_total(tmp_path, suffix):
    table = open_table(write_file(tmp_path / f"in.{suffix}", rows_of(400)), batch_rows=16)
    seen = [table.bytes_read() for _ in table.batches()]
    assert seen == sorted(seen)
    if suffix != "jsonl.gz":  # such a small file is unpacked in one step
        assert seen[0] < table.bytes_total / 2
    assert table.bytes_read() == table.bytes_total


def test_the_fingerprint_tells_inputs_apart(tmp_path):
    path = write_file(tmp_path / "in.csv", rows_of(5))
    first = open_table(path).fingerprint()
    assert json.loads(json.dumps(first)) == first == open_table(path).fingerprint()
    assert str(tmp_path) not in json.dumps(first)
    assert open_table(path, batch_rows=7).fingerprint() != first
    assert open_table(path, id_column="id").fingerprint() != first
    stat = path.stat()
    path.write_text(path.read_text().replace("plain", "plane"))
    os.utime(path, ns=(stat.st_atime_ns, stat.st_mtime_ns))
    changed = open_table(path).fingerprint()
    assert changed != first
    assert changed["files"][0]["bytes"] == first["files"][0]["bytes"]


def test_an_abandoned_reader_leaves_no_open_file(tmp_path):
    for suffix in FORMATS:
        batches = open_table(write_file(tmp_path / f"in.{suffix}", rows_of(50)), batch_rows=4).batches()
        next(batches)
        with warnings.catch_warnings():
            warnings.simplefilter("error")
            batches.close()


def test_a_csv_row_longer_than_a_block_loses_and_repeats_no_row(tmp_path):
    rows = [{"id": str(n), "text": "y" * (3_000_000 if n in (5_000, 5_001, 9_000) else 300)} for n in range(10_000)]
    path = write_file(tmp_path / "in.csv", rows)
    table = open_table(path, batch_rows=100)
    assert [row["id"] for row in read_all(table)] == [row["id"] for row in rows]
    assert [row["id"] for row in read_all(table, 5_001)] == [row["id"] for row in rows[5_001:]]


def test_a_reader_that_is_held_while_python_exits_does_not_disturb_the_exit(tmp_path):
    path = tmp_path / "in.csv"
    path.write_text("text\n" + f"{'x' * 1000}\n" * 20_000)
    held = "import sys; from labelspace.corpus import open_table; rows = open_table(sys.argv[1]).batches(); next(rows)"
    done = subprocess.run([sys.executable, "-c", f"{held}; sys.exit(3)", path], capture_output=True, timeout=60)
    assert (done.returncode, done.stderr) == (3, b"")


@pytest.mark.slow
@pytest.mark.skipif(not hasattr(os, "sched_setaffinity"), reason="a process cannot be bound to one processor here")
def test_a_process_that_exits_right_after_it_has_read_a_csv_does_not_abort(tmp_path):
    (tmp_path / "rows.csv").write_text("text\n" + "a text\n" * 200)
    # 12 of 15 did on one processor: a thread of pyarrow's CSV reader wanted Python while it exited.
    script = "import os, torch; os.sched_setaffinity(0, {min(os.sched_getaffinity(0))})\n"
    script += "from labelspace.corpus import open_table; open_table('rows.csv').check_documents()"
    for _ in range(5):
        done = subprocess.run([sys.executable, "-c", script], cwd=tmp_path, capture_output=True, text=True, check=False)
        assert done.returncode == 0, done.stderr
