"""Workbooks: the first sheet as strings; anything that would lose data is refused."""

import datetime
import sys

import openpyxl
import pytest

from labelspace.corpus import as_documents, open_table
from labelspace.corpus.label_sets import check_label_sets
from labelspace.errors import ColumnError, InputError, LabelSpaceWarning, MissingDependencyError


def write(path, rows, *, sheets=()):
    book = openpyxl.Workbook()
    assert book.active is not None
    for row in rows:
        book.active.append(row)
    for name in sheets:
        book.create_sheet(name).append(["text"])
    book.save(path)
    return path


def read(path, **options):
    return [row for batch in open_table(path, **options).batches() for row in batch.to_pylist()]


def test_what_excel_escapes_is_read_as_it_was_typed(tmp_path):
    rows = [["text"], ["a_x000D_\nb _x0041_"], ["the name _x005F_x000D_ stays"], ["a_xyz_"]]
    assert [row["text"] for row in read(write(tmp_path / "in.xlsx", rows))] == [
        "a\r\nb A",
        "the name _x000D_ stays",
        "a_xyz_",
    ]


def test_cells_become_the_displayed_strings(tmp_path):
    day, noon = datetime.datetime(2026, 1, 31), datetime.datetime(2026, 1, 31, 12, 30)
    rows = [["text", "a", "b", 7], ["Grüße;\nan, alle", "007", 7.0, 1.25], ["b", True, day, noon], ["c", None, "", -3]]
    assert read(write(tmp_path / "in.xlsx", rows)) == [
        {"text": "Grüße;\nan, alle", "a": "007", "b": "7", "7": "1.25"},
        {"text": "b", "a": "TRUE", "b": "2026-01-31", "7": "2026-01-31 12:30:00"},
        {"text": "c", "a": "", "b": "", "7": "-3"},
    ]


def test_empty_rows_and_unnamed_empty_columns_are_skipped(tmp_path):
    rows = [[None], [None, "text", None, "id"], [], [None, "a", None, "1"], [None], [None, "b"]]
    assert read(write(tmp_path / "in.xlsx", rows)) == [{"text": "a", "id": "1"}, {"text": "b", "id": ""}]


@pytest.mark.parametrize("batch_rows", [1, 7, 100])
def test_rows_come_in_order_and_can_be_skipped(tmp_path, batch_rows):
    path = write(tmp_path / "in.xlsx", [["text"], *([f"text {n}"] for n in range(50))])
    table = open_table(path, batch_rows=batch_rows)
    texts = [text for batch in table.batches(skip_rows=14) for text in table.texts(batch)]
    assert texts == [f"text {n}" for n in range(14, 50)]
    assert table.bytes_read() == table.bytes_total
    assert as_documents(path) == [f"text {n}" for n in range(50)]


def test_other_sheets_cause_a_warning(tmp_path):
    path = write(tmp_path / "in.xlsx", [["text"], ["a"]], sheets=["more", "most"])
    with pytest.warns(LabelSpaceWarning, match="only the first sheet, 'Sheet', is read, not 'more', 'most'"):
        assert as_documents(path) == ["a"]


def test_rows_without_a_text_are_empty_documents_and_named_by_their_number_in_the_sheet(tmp_path):
    rows = [["text", "id"], [None], [None], ["a", 1], [None], [None, 2], [None, 3]]
    path = write(tmp_path / "in.xlsx", rows)
    with pytest.warns(LabelSpaceWarning, match=r"2 documents are empty or white space \(first: .*in\.xlsx: row 6\)"):
        assert as_documents(path) == ["a", "", ""]


def test_naming_every_row_reads_the_sheet_once_more_at_most(tmp_path, monkeypatch):
    path = write(tmp_path / "in.xlsx", [["text", "label"], *([f"text {n}", "a|b"] for n in range(30)), ["last", "c"]])
    opened, load = [], openpyxl.load_workbook
    monkeypatch.setattr(openpyxl, "load_workbook", lambda *args, **options: opened.append(1) or load(*args, **options))
    table = open_table(path, label_column="label")
    before = len(opened)
    with pytest.raises(InputError, match=r"in\.xlsx: row 32: column 'label' holds 'c'"):
        check_label_sets(table, ["a", "b"], "|")
    assert len(opened) - before <= 6


@pytest.mark.parametrize(
    ("rows", "said"),
    [
        ([], "the sheet 'Sheet' is empty; its first row must name the columns"),
        ([["text"], [], ["a", "lost"]], "row 3 has 'lost' in column 2, which has no name"),
        ([["text", None, "id"], ["a", "lost", 1]], "row 2 has 'lost' in column 2, which has no name"),
        ([["text"], ["=1+1"]], "the cell A2 has a formula, and no value was saved with it"),
        ([["text", "text"], ["a", "b"]], "two columns share a name"),
        ([["body"], ["a"]], "no column 'text'"),
    ],
)
def test_nothing_is_lost_silently(tmp_path, rows, said):
    with pytest.raises((InputError, ColumnError), match=said) as caught:
        read(write(tmp_path / "in.xlsx", rows))
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize("content", [b"", b"text\na\n", b"\xd0\xcf\x11\xe0 an old one", b"PK\x05\x06" + b"\0" * 18])
def test_a_file_that_is_not_a_workbook_is_one_line(tmp_path, content):
    path = tmp_path / "in.xlsx"
    path.write_bytes(content)
    with pytest.raises(InputError, match=r"cannot be read as \.xlsx") as caught:
        read(path)
    assert "\n" not in str(caught.value)


def test_a_workbook_cut_short_is_one_line(tmp_path):
    path = write(tmp_path / "in.xlsx", [["text"], *([f"text {n}"] for n in range(500))])
    path.write_bytes(path.read_bytes()[:-200])
    with pytest.raises(InputError, match=r"cannot be read as \.xlsx"):
        read(path)


def test_an_abandoned_workbook_leaves_no_open_file(tmp_path):
    path = write(tmp_path / "in.xlsx", [["text"], *([f"text {n}"] for n in range(500))])
    batches = open_table(path, batch_rows=10).batches()
    next(batches)
    del batches
    path.unlink()


def test_without_openpyxl_the_error_names_the_install_command(tmp_path, monkeypatch):
    path = write(tmp_path / "in.xlsx", [["text"], ["a"]])
    monkeypatch.setitem(sys.modules, "openpyxl", None)
    with pytest.raises(MissingDependencyError, match=r"labelspace\[excel\]"):
        read(path)
