"""CSV as spreadsheets write it: the detected dialect is reported, and an ambiguous one is refused."""

import codecs
import csv
import gzip
import io
import warnings

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from labelspace.corpus import as_documents, open_table, sample_pool
from labelspace.errors import ColumnError, ConfigError, InputError, LabelSpaceWarning

GERMAN = 'Nr;text;Größe\r\n1;Grüße, aus München;1,5\r\n2;"eine Zeile;\r\nund noch eine";2,25\r\n'
GERMAN_ROWS = [
    {"Nr": "1", "text": "Grüße, aus München", "Größe": "1,5"},
    {"Nr": "2", "text": "eine Zeile;\r\nund noch eine", "Größe": "2,25"},
]


def read(path, **options):
    return [row for batch in open_table(path, **options).batches() for row in batch.to_pylist()]


@pytest.fixture
def write(tmp_path):
    def to(content, name="in.csv", encoding="utf-8"):
        path = tmp_path / name
        data = content if isinstance(content, bytes) else content.encode(encoding)
        path.write_bytes(gzip.compress(data) if path.suffix == ".gz" else data)
        return path

    return to


@pytest.mark.parametrize("suffix", [".csv", ".tsv", ".csv.gz"])
@pytest.mark.parametrize(
    ("mark", "encoding", "said"),
    [
        (b"", "utf-8", "utf-8"),
        (codecs.BOM_UTF8, "utf-8", "utf-8"),
        (b"", "cp1252", "cp1252"),
        (b"", "iso8859-1", "cp1252"),
        (codecs.BOM_UTF16_LE, "utf-16-le", "utf-16"),
        (codecs.BOM_UTF16_BE, "utf-16-be", "utf-16"),
        (b"", "utf-16-le", "utf-16-le"),
        (b"", "utf-16-be", "utf-16-be"),
        (codecs.BOM_UTF32_LE, "utf-32-le", "utf-32"),
    ],
)
def test_a_german_spreadsheet_is_read_and_its_dialect_reported(write, suffix, mark, encoding, said):
    path = write(mark + GERMAN.encode(encoding), f"in{suffix}")
    with pytest.warns(LabelSpaceWarning) as told:
        assert read(path) == GERMAN_ROWS
    (line,) = {str(warning.message) for warning in told}
    assert f"{path}: read with the delimiter ';' and the encoding {said}" in line
    assert "--delimiter" in line
    assert "--encoding" in line
    assert said == "utf-8" or "Größe" in line, "a wrong guess shows in a word of the file"


@pytest.mark.parametrize(
    ("text", "encoding", "telling"),
    [
        ("Güzel bir gün. Kargo şehir içinde.", "cp1254", "þehir"),
        ("Zásilka nepřišla včas.", "cp1250", "nepøišla"),
    ],
    ids=["Turkish", "Czech"],
)
def test_the_words_shown_of_a_guessed_encoding_are_those_that_tell(write, text, encoding, telling):
    path = write(f"id,text\n1,{text}\n", encoding=encoding)
    with pytest.warns(LabelSpaceWarning, match=rf"cp1252 \(it has .*'{telling}'"):
        read(path)


def test_unicode_text_of_a_spreadsheet_has_tabs_and_a_mark(write):
    path = write("id\ttext\r\n1\tfür alle, „immer“\r\n".encode("utf-16"), "in.csv")
    with pytest.warns(LabelSpaceWarning, match=r"'\\t' and the encoding utf-16"):
        assert as_documents(path) == ["für alle, „immer“"]


@pytest.mark.parametrize(
    ("name", "content", "texts"),
    [
        ("in.csv", "id,text\n1,one; two; three\n2,four\n", ["one; two; three", "four"]),
        ("in.csv", "text\none; two\nthree\n", ["one; two", "three"]),
        ("in.csv", "id,text\n1,Grüße 日本 😀\n", ["Grüße 日本 😀"]),
        ("in.csv", '\n\nid,text\n\n1,"a\n;b|c\td"\n', ["a\n;b|c\td"]),
        ("in.csv", "id,text,a;b\n1,x,y\n", ["x"]),
        ("in.csv", "id,text\n", []),
        ("in.csv", "id,text;x\n", None),
        ("in.tsv", "id\ttext\n1\ta, b; c\n", ["a, b; c"]),
        ("in.tsv", "text\na, b; c\n", ["a, b; c"]),
    ],
)
def test_plain_files_are_read_without_a_warning(write, name, content, texts, recwarn):
    if texts is None:
        with pytest.raises(ColumnError, match="no column 'text'"):
            read(write(content, name))
    else:
        assert [row["text"] for row in read(write(content, name))] == texts
    assert not recwarn.list


@pytest.mark.parametrize("options", [{}, {"delimiter": ";"}])
@pytest.mark.parametrize("encoding", ["utf-8", "utf-8-sig", "utf-16"])
def test_the_line_by_which_excel_knows_the_delimiter_is_no_row(write, options, encoding):
    path = write("sep=;\r\ntext;label\r\nsep=;x\r\n", encoding=encoding)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", LabelSpaceWarning)  # of the delimiter and the encoding
        assert read(path, **options) == [{"text": "sep=", "label": "x"}]


@pytest.mark.parametrize("delimiter", [";", "\t", "|"])
def test_commas_in_the_text_do_not_mislead_the_detection(write, delimiter):
    path = write(f"id{delimiter}text\n1{delimiter}one, two\n2{delimiter}three\n")
    with pytest.warns(LabelSpaceWarning, match="delimiter"):
        assert [row["text"] for row in read(path)] == ["one, two", "three"]


@pytest.mark.parametrize(
    "content",
    [
        "Nr;text;;\n1;a;;\n2;b;;\n;;;\n;;;\n",
        ";;;\nNr;text;;\n1;a\n;;\n2;b;\n",
    ],
    ids=["beside and below the table", "above the header"],
)
def test_empty_cells_around_a_table_of_a_spreadsheet_are_left_out(write, content):
    path = write(content)
    with pytest.warns(LabelSpaceWarning, match="the delimiter ';'"):
        assert read(path) == [{"Nr": "1", "text": "a"}, {"Nr": "2", "text": "b"}]


@pytest.mark.parametrize("content", ["Nr;text;;\n1;a;;\n2;b;lost;\n", "Nr;text\n1;a\n2;a smile ;\n"])
def test_a_text_beside_the_table_is_refused_and_so_are_rows_longer_than_the_header(write, content):
    with pytest.raises(InputError, match=r"row 2 .*cells, and there are 2 columns"):
        read(write(content), delimiter=";")


def test_the_columns_asked_for_decide_between_two_delimiters(write):
    path = write("text;Preis, netto\nbillig;1,5\n")
    with pytest.warns(LabelSpaceWarning, match="';'"):
        assert read(path) == [{"text": "billig", "Preis, netto": "1,5"}]


@pytest.mark.parametrize(
    ("content", "said"),
    [
        ("a;b, text\nx;1,5\n", r"is ambiguous, it could be ',' or ';'; name it \(--delimiter\)"),
        ("a;text\nx;y\nx\n", r"is ambiguous, ';' splits the header, but not every row the same way; name it \(--del"),
        ("text;b\none\ntwo\n", r"is ambiguous, ';' splits the header"),
        ("id,text\n1,привет всем\n".encode("cp1251"), r"not UTF-8 .*name its encoding \(--encoding\)"),
        ("id,text\n1,źródło wody\n".encode("cp1250"), r"not UTF-8 .*name its encoding \(--encoding\)"),
        ("id,text\n1,schöne Grüße\n".encode("cp850"), r"not UTF-8 .*name its encoding \(--encoding\)"),
        ("id,text\n1,日本の新聞\n".encode("shift_jis"), r"not UTF-8 .*name its encoding \(--encoding\)"),
        ("id,text\n1,schöne Gr\0üße\n".encode("cp1252"), r"not UTF-8 .*name its encoding \(--encoding\)"),
        ("id,text\n1,für\n".encode("utf-16")[:-1], r"not utf-16 .*truncated"),
    ],
)
def test_an_ambiguous_dialect_is_refused_and_the_option_named(write, content, said):
    with pytest.raises(InputError, match=said) as caught:
        read(write(content))
    assert "\n" not in str(caught.value)


def test_an_odd_letter_far_behind_the_sample_is_an_error(write):
    path = write(b"id,text\n" + (b"1,a plain row" + b" and more" * 20 + b"\n") * 6000 + "2,für\n".encode("cp1252"))
    with pytest.raises(InputError, match=r"not UTF-8 .*name its encoding \(--encoding\), for example cp1252"):
        read(path)
    assert read(path, encoding="cp1252")[-1]["text"] == "für"


def test_a_row_far_behind_the_sample_that_does_not_fit_names_the_delimiter(write):
    path = write("id;text\n" + "1;a, plain row\n" * 1000 + "2;b;c\n")
    with (
        pytest.warns(LabelSpaceWarning),
        pytest.raises(InputError, match=r"row 1001 does not fit.*another delimiter \(--delimiter\)"),
    ):
        read(path)


@pytest.mark.parametrize(
    ("content", "options"),
    [
        ("id;text\nx;one, two\nragged\n".replace("ragged\n", ""), {"delimiter": ";"}),
        ("id;text\nx;one, two\n".encode("utf-16-be"), {"delimiter": ";", "encoding": "utf-16"}),
        ("id;text\nx;one, two\n".encode("utf-16"), {"delimiter": ";", "encoding": "utf-16-le"}),
        ("id\ttext\nx\tone, two\n", {"delimiter": "tab", "encoding": "UTF8"}),
        (codecs.BOM_UTF8 + b"id\ttext\nx\tone, two\n", {"delimiter": "\\t", "encoding": "utf-8-sig"}),
        ("id^text\nx^one, two\n", {"delimiter": "^"}),
    ],
)
def test_a_named_dialect_is_used_without_a_warning(write, content, options, recwarn):
    assert read(write(content), **options) == [{"id": "x", "text": "one, two"}]
    assert not recwarn.list


def test_a_named_encoding_settles_an_uncertain_one(write):
    path = write("id,text\n1,привет всем\n", encoding="cp1251")
    assert as_documents([row["text"] for row in read(path, encoding="cp1251")]) == ["привет всем"]


def test_a_wrong_delimiter_names_itself_and_the_columns_it_found(write):
    path = write("id,text\n1,a\n")
    with pytest.raises(ColumnError, match=r"read with the delimiter ';' .*no column 'text'.*Its columns: id,text\."):
        read(path, delimiter=";")


def test_an_encoding_that_contradicts_the_byte_order_mark_is_refused(write):
    with pytest.raises(InputError, match="begins with the mark of utf-16, so it is not cp1252"):
        read(write("id,text\n1,a\n", encoding="utf-16"), encoding="cp1252")


@pytest.mark.parametrize(
    "option", [{"delimiter": ";;"}, {"delimiter": '"'}, {"encoding": "klingon"}, {"encoding": "hex"}]
)
def test_invalid_options_are_refused(write, option):
    with pytest.raises(ConfigError, match=f"^{next(iter(option))} must be auto"):
        read(write("id,text\n1,a\n"), **option)


def test_the_dialect_of_each_file_in_a_glob_is_detected_separately(write, tmp_path):
    write("id,text\n1,a\n", "a.csv")
    write("id;text\n2;b, c\n", "b.csv")
    with pytest.warns(LabelSpaceWarning, match=r"b\.csv"):
        assert [row["text"] for row in read(tmp_path / "*.csv")] == ["a", "b, c"]


def test_the_fingerprint_includes_the_dialect(write):
    path = write("text;b\na;c\n")
    with pytest.warns(LabelSpaceWarning):
        found = open_table(path).fingerprint()
    assert found == open_table(path, delimiter=";").fingerprint()
    assert found != open_table(path, delimiter=";", encoding="cp1252").fingerprint()


def test_a_pool_takes_both_options(write):
    path = write("text;b\nGrüße;1\n", encoding="cp1252")
    assert sample_pool(str(path), size=5, seed=0, delimiter=";", encoding="cp1252").texts == ("Grüße",)


CELLS = st.text(
    st.characters(codec="cp1252", exclude_characters="\0\r\x1a", exclude_categories=["Cc"])
    | st.sampled_from(',;|\t\n"é“')
)
TABLES = st.integers(1, 4).flatmap(lambda width: st.lists(st.lists(CELLS, min_size=width, max_size=width), max_size=6))


@settings(max_examples=150)
@given(
    rows=TABLES,
    delimiter=st.sampled_from(",;\t|"),
    encoding=st.sampled_from(["utf-8", "utf-8-sig", "cp1252", "utf-16", "utf-16-le", "utf-16-be"]),
    quoting=st.sampled_from([csv.QUOTE_MINIMAL, csv.QUOTE_ALL]),
    end=st.sampled_from(["\n", "\r\n"]),
    named=st.booleans(),
)
def test_any_table_comes_back_as_it_was_or_not_at_all(tmp_path_factory, rows, delimiter, encoding, quoting, end, named):
    width = len(rows[0]) if rows else 2
    head = ["text", "größe", "b", "c"][:width]
    out = io.StringIO(newline="")
    csv.writer(out, delimiter=delimiter, quoting=quoting, lineterminator=end).writerows([head, *rows])
    path = tmp_path_factory.mktemp("dialects") / "in.csv"
    path.write_bytes(out.getvalue().encode(encoding))
    options = {"delimiter": delimiter, "encoding": encoding} if named else {}
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", LabelSpaceWarning)
        try:
            back = [list(row.values()) for row in read(path, **options)]
        except InputError:
            assert not named
            return
    assert back == [row for row in rows if any(row) or width == 1]
