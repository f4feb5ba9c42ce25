"""Workbooks: the first sheet as strings, and rows as a sheet; anything that would lose data is refused."""

import datetime
import errno
import re
import sys
import zipfile

import openpyxl
import pyarrow as pa
import pytest

from labelspace.corpus import ResumableWriter, as_documents, open_table, spreadsheets
from labelspace.corpus.label_sets import check_label_sets
from labelspace.errors import ColumnError, InputError, LabelSpaceWarning, MissingDependencyError, OutputError


def write(path, rows, *, sheets=()):
    book = openpyxl.Workbook()
    assert book.active is not None
    for row in rows:
        book.active.append(row)
    for name in sheets:
        book.create_sheet(name).append(["text"])
    book.save(path)
    return path


def written(path, columns):
    """Write columns with the library, and return the path."""
    rows = pa.record_batch(columns)
    with ResumableWriter(path, schema=rows.schema, fingerprint={}) as writer:
        writer.write(rows)
        writer.finish()
    return path


def cells(path):
    """Return the rows of cells below the header, as Excel would show them."""
    sheet = openpyxl.load_workbook(path).worksheets[0]
    return [list(row) for row in sheet.iter_rows(min_row=2)]


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


def test_a_formula_that_found_an_empty_text_is_an_empty_cell(tmp_path):
    path, saved = write(tmp_path / "in.xlsx", [["text", "more"], ["a", "EMPTY"], ["b", "c"]]), tmp_path / "saved.xlsx"
    with zipfile.ZipFile(path) as book, zipfile.ZipFile(saved, "w") as copy:
        for name in book.namelist():
            content = book.read(name).decode()
            if name.endswith("sheet1.xml"):
                content, changed = re.subn(
                    r'<c r="B2" .*?</c>',
                    '<c r="B2" t="str"><f>IF(A2="a","","x")</f><v></v></c>',
                    content,
                )
                assert changed == 1
            copy.writestr(name, content)
    assert read(saved) == [{"text": "a", "more": ""}, {"text": "b", "more": "c"}]


@pytest.mark.parametrize("content", [b"", b"text\na\n", b"\xd0\xcf\x11\xe0 an old one", b"PK\x05\x06" + b"\0" * 18])
def test_a_file_that_is_not_a_workbook_is_one_line(tmp_path, content):
    path = tmp_path / "in.xlsx"
    path.write_bytes(content)
    with pytest.raises(InputError, match=r"cannot be read as \.xlsx") as caught:
        read(path)
    assert "\n" not in str(caught.value)


def test_a_row_that_no_sheet_has_is_refused_before_the_rows_above_it_are_made(tmp_path, monkeypatch):
    """A row may say any number, and each one above it is read as an empty one: a billion of them never ended."""
    monkeypatch.setattr(spreadsheets, "MOST_ROWS", 20)
    path = tmp_path / "in.xlsx"
    book = openpyxl.Workbook()
    book.active["A1"], book.active["A999"] = "text", "far"
    book.save(path)
    with pytest.raises(InputError, match=r"has more rows than \.xlsx holds, 20; save it as \.csv\.$"):
        read(path)


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


def test_texts_are_written_as_texts_whatever_they_look_like(tmp_path):
    texts = ["=1+1", "{=1}", "#N/A", "http://labels.example", "007", "1,5", "TRUE", "a\r\nb", "\x07", "_x0041_", " a "]
    path = written(tmp_path / "out.xlsx", {"text": texts})
    assert [cell.data_type for (cell,) in cells(path)] == ["s"] * len(texts)
    assert all(cell.hyperlink is None for (cell,) in cells(path))
    assert [row["text"] for row in read(path)] == texts


def test_numbers_are_written_as_numbers_unless_excel_would_change_them(tmp_path):
    columns = {
        "score": pa.array([0.9, float("nan"), float("-inf"), None], pa.float32()),
        "id": [5, 10**15 - 1, 1_234_567_890_123_456_789, None],
        "sure": [True, False, None, True],
        "day": [datetime.date(2026, 1, 31)] * 4,
        "tags": [["a", "b"], [], None, ["c"]],
    }
    assert [[cell.value for cell in row] for row in cells(written(tmp_path / "out.xlsx", columns))] == [
        [0.9, 5, True, "2026-01-31", '["a", "b"]'],
        [None, 10**15 - 1, False, "2026-01-31", "[]"],
        [None, "1234567890123456789", None, "2026-01-31", None],
        [None, None, True, "2026-01-31", '["c"]'],
    ]


def test_a_text_as_long_as_a_cell_is_written_and_a_longer_one_refused(tmp_path):
    for character, most in (("a", 32_767), ("😀", 16_383)):
        fits = character * most
        assert read(written(tmp_path / f"{most}.xlsx", {"text": [fits]})) == [{"text": fits}]
        with pytest.raises(InputError, match=r"a text of 32,768 characters, .* holds 32,767; name a \.csv"):
            written(tmp_path / "out.xlsx", {"id": [1], "text": [fits + character]})


def test_more_rows_than_a_sheet_holds_are_refused(tmp_path, monkeypatch):
    monkeypatch.setattr(spreadsheets, "MOST_ROWS", 3)
    written(tmp_path / "three.xlsx", {"text": ["a"] * 3})
    with pytest.raises(InputError, match=r"more rows than \.xlsx holds, 3; name a \.csv"):
        written(tmp_path / "four.xlsx", {"text": ["a"] * 4})


def test_a_full_disk_is_told_and_the_rows_are_safe(tmp_path, monkeypatch):
    def full(*_, **__):
        raise OSError(errno.ENOSPC, "No space left on device")

    rows = pa.record_batch({"text": ["a", "b"]})
    monkeypatch.setattr(zipfile.ZipFile, "write", full)
    with ResumableWriter(tmp_path / "out.xlsx", schema=rows.schema, fingerprint={}) as writer:
        writer.write(rows)
        with pytest.raises(OutputError, match=r"the disk is full, or a quota reached\)\. 2 rows are safe in out\.xlsx"):
            writer.finish()
    monkeypatch.undo()
    with ResumableWriter(tmp_path / "out.xlsx", schema=rows.schema, fingerprint={}, resume=True) as writer:
        writer.finish()
    assert read(tmp_path / "out.xlsx") == [{"text": "a"}, {"text": "b"}]


def test_without_xlsxwriter_the_error_names_the_install_command(tmp_path, monkeypatch):
    monkeypatch.setitem(sys.modules, "xlsxwriter", None)
    with pytest.raises(MissingDependencyError, match=r"labelspace\[excel\]"):
        written(tmp_path / "out.xlsx", {"text": ["a"]})
    assert not list(tmp_path.iterdir())
