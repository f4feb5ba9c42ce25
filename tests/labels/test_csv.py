"""Label files in CSV: descriptions in rows or in numbered columns, as spreadsheets save them."""

import csv
from pathlib import Path

import pytest

from labelspace.errors import LabelFileError
from labelspace.labels import Label, LabelSpace


@pytest.fixture
def read(tmp_path, monkeypatch):
    """Write text to labels.csv and read it as a label space."""
    monkeypatch.chdir(tmp_path)

    def write_and_read(text: str, **options) -> LabelSpace:
        Path("labels.csv").write_text(text, encoding="utf-8", newline="")
        return LabelSpace.from_file("labels.csv", **options)

    return write_and_read


def test_rows_of_one_label_are_its_descriptions(read):
    space = read("label,phrase,description\nsports,games,Results.\nworld,,News.\nsports,,Teams.\nno,,\n")
    assert space == LabelSpace(
        [Label("sports", "games", None, ["Results.", "Teams."]), Label("world", descriptions=["News."]), Label("no")]
    )


def test_numbered_columns_are_read_by_number_and_may_be_empty(read):
    space = read("name,Description_10,description2,description_1\na,ten,two,one\nb,,only,\nc\n")
    assert space.descriptions == (("one", "two", "ten"), ("only",), ())


def test_a_list_of_names_is_enough(read):
    assert read("label\r\nyes\r\nno\r\n").names == ("yes", "no")


def test_name_template_and_verbalizer(read):
    space = read("label,verbalizer\na,All of it.\nb,\n", name="mine", template="On {label}.")
    assert (space.name, space.verbalizers) == ("mine", ("All of it.", "On b."))


def test_a_byte_order_mark_quotes_commas_and_lines_in_cells_are_read(read):
    space = read('\ufefflabel,description\na,"Red, ""hot""\nand long."\nb,x\n')
    assert space.descriptions[0] == ('Red, "hot"\nand long.',)


def test_empty_rows_are_skipped(read):
    assert read("label,description\n\na,x\n,\nb,y\n , \n").names == ("a", "b")


def test_empty_cells_beside_the_table_are_skipped(read):
    assert read("label,description,,\na,x,,\nb,y, ,,,\nc,,,\n,,,\n").descriptions == (("x",), ("y",), ())


def test_a_text_beside_the_table_is_refused(read):
    with pytest.raises(LabelFileError, match="3 cells under 2 columns"):
        read("label,description,,\na,x,y,\nb,z,,\n")


@pytest.mark.parametrize("line_break", ["\n", "\r\n"])
@pytest.mark.parametrize("separator", [";", ","])
def test_a_first_line_that_tells_excel_the_separator_is_no_header_and_counts_as_a_line(read, separator, line_break):
    rows = [f"sep={separator}", f"label{separator}description", f"sports{separator}Matches.", f"art{separator}Films."]
    assert read(line_break.join(rows)) == read(line_break.join(rows[1:]))
    with pytest.raises(LabelFileError, match=r":5: no label in this row"):
        read(line_break.join([*rows, f"{separator}Banks."]))


@pytest.mark.parametrize("separator", [";", "\t", "|", ","])
@pytest.mark.parametrize("encoding", ["utf-8", "utf-8-sig"])
def test_a_file_of_a_spreadsheet_is_read(tmp_path, separator, encoding):
    rows = [["label", "phrase", "description_1"], ["öffnen", f"das Öffnen{separator} der Zugang", 'Die Tür, "zu".']]
    file = tmp_path / "labels.csv"
    with file.open("w", encoding=encoding, newline="") as out:
        csv.writer(out, delimiter=separator).writerows([*rows, ["no", "", ""]])
    assert LabelSpace.from_file(file) == LabelSpace([Label(*rows[1][:2], None, rows[1][2:]), Label("no")])


ERRORS = {
    "nothing in it": ("\n", "labels.csv: the file is empty; write a header line"),
    "only a header": ("label,description\n", "labels.csv:1: a classifier needs at least two labels. Got none"),
    "one label": ("label,description\na,x\na,y\n", ": a classifier needs at least two labels. Got only 'a'"),
    "a typo in a column": (
        "label,desciption\n",
        "labels.csv:1: unknown column 'desciption'. Did you mean 'description'?",
    ),
    "a typo in a column behind a semicolon": (
        "label;desciption\na;x\n",
        "labels.csv:1: unknown column 'desciption'. Did you mean 'description'?",
    ),
    "a semicolon without quotes": (
        "label;description\na;x\nb;red; hot\n",
        "labels.csv:3: 3 cells under 2 columns; put a cell that holds a semicolon in quotes.",
    ),
    "unknown columns": ("a;b\nc;d\n", "labels.csv:1: unknown column 'a;b'. Known: label, phrase"),
    "no column of labels": ("phrase,description\n", "there is no column 'label'. Got 'phrase', 'description'"),
    "a column twice": ("label,name\n", "labels.csv:1: the column 'name' appears twice; keep one."),
    "a numbered column twice": ("label,description1,description_1\n", "the column 'description_1' appears twice"),
    "a row without a label": ("label,description\na,x\n,y\n", "labels.csv:3: no label in this row"),
    "a comma without quotes": (
        'label,description\na,"x\ny"\nb,red, hot\n',
        "labels.csv:4: 3 cells under 2 columns; put a cell that holds a comma in quotes.",
    ),
    "an open quote": ('label,description\na,x\nb,"y\n', "labels.csv:3: not valid CSV: unexpected end of data"),
    "a second phrase": (
        "label,phrase\na,x\nb,y\na,z\n",
        "labels.csv:4: label 'a': a second phrase, 'z'. Got 'x' before; keep one.",
    ),
    "a further row with nothing": (
        'label,description\na,"x\n\nz"\nb,y\na, \n',
        "labels.csv:6: label 'a': the description is empty in another row of the label",
    ),
    "a tab in a name": ('label\n"a\tb"\nc\n', "labels.csv:2: label 1: the name must be one line without tabs"),
}


@pytest.mark.parametrize(("text", "message"), ERRORS.values(), ids=ERRORS)
def test_a_csv_file_is_refused_for(read, text: str, message: str):
    with pytest.raises(LabelFileError) as caught:
        read(text)
    assert message in str(caught.value)
    assert "\n" not in str(caught.value)
