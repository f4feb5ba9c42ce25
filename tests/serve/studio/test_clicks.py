"""The file of clicks: every document comes back as it was, and a broken file is told."""

import pytest

from labelspace.corpus import open_table
from labelspace.errors import InputError
from labelspace.serve.studio.clicks import Clicks

TEXTS = {
    "a long one": "word " * 40_000,
    "lines of Windows": "one\r\ntwo",
    "lines of an old Mac": "one\rtwo",
    "lines": "one\ntwo",
    "quotes": 'she said "no", twice',
    "another script": "\u0628\u0637\u0627\u0642\u0629",
}


@pytest.mark.parametrize("text", TEXTS.values(), ids=TEXTS)
def test_a_clicked_document_is_read_as_it_was(tmp_path, text):
    file = tmp_path / "labels.clicks.csv"
    Clicks(file).label(text, "money", "random")
    clicks = Clicks(file)
    assert clicks.labels([text], ["money"]) == ["money"]
    clicks.label("another", "sports", "doubt")
    assert list(Clicks(file).rows) == [text, "another"]
    if len(text) < 1000:  # what `labelspace fit --labelled` reads
        table = open_table(str(file))
        assert [each for batch in table.batches() for each in table.texts(batch)] == [text, "another"]


@pytest.mark.parametrize(
    "content",
    [
        "text,label,source\na,money\n",
        "text,label,source\na,money,random,more\n",
        "text,label\na,b,c\n",
        "text,topic\na,money\n",
        "",
        b"text,label\n\xff,money\n",
        "text,label,source,coder\na,money,chosen,ann\na,sports,chosen,bob\n",
    ],
)
def test_a_broken_file_says_so_and_stays_as_it_is(tmp_path, content):
    file = tmp_path / "labels.clicks.csv"
    raw = content if isinstance(content, bytes) else content.encode()
    file.write_bytes(raw)
    with pytest.raises(InputError, match=r"labels\.clicks\.csv.*[Mm]end .*, or move it away\.") as said:
        Clicks(file)
    assert "\n" not in str(said.value)
    assert file.read_bytes() == raw


@pytest.mark.parametrize("content", ["text,label\n", "\ufefftext,label\n\na,money\n"])
def test_a_file_of_a_spreadsheet_or_without_rows_is_read(tmp_path, content):
    file = tmp_path / "labels.clicks.csv"
    file.write_text(content, encoding="utf-8")
    clicks = Clicks(file)
    assert clicks.labels(["a"], ["money"]) == (["money"] if "money" in content else [None])
    clicks.label("b", "money", "random")
    assert "b" in Clicks(file).rows
