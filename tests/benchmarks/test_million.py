"""The rows of the benchmark of a million documents, and its kill."""

import pyarrow.csv as pa_csv
import pyarrow.parquet as pq
import pytest

from labelspace.classify import WordsClassifier

TEXTS = ["the team won a match today", "the bank closed its doors today"]


@pytest.fixture
def million(store):
    import million

    return million


def test_no_two_rows_are_the_same_and_each_keeps_its_text_but_for_one_word(million):
    rows = [million.edited(TEXTS, row) for row in range(1000)]
    assert len(set(rows)) == 1000
    for row, text in enumerate(rows):
        changed = [old != new for old, new in zip(TEXTS[row % 2].split(), text.split(), strict=True)]
        assert sum(changed) == 1


def test_every_format_holds_the_same_rows(million, tmp_path):
    million.PIECE = 7
    files = [million.write(tmp_path / f"rows.{kind}", TEXTS, 20) for kind in million.FORMATS]
    whole = pq.read_table(files[-1]).to_pylist()
    assert [row["id"] for row in whole] == list(range(20))
    for file in files[:-1]:
        assert pa_csv.read_csv(file).to_pylist() == whole


@pytest.mark.slow
@pytest.mark.parametrize("kind", ["csv.gz", "parquet"])
def test_a_command_that_was_killed_half_way_goes_on_to_the_same_bytes(million, kind, tmp_path):
    names = ["sports", "money"]
    model = WordsClassifier(names, min_df=1).fit(TEXTS, names).save(tmp_path / "model")
    found = million.one_format(kind, model, TEXTS, 200_000, tmp_path)
    assert found["same_bytes"]
    assert 80_000 < found["rows_left_by_the_kill"] < 200_000
    assert [file.name for file in tmp_path.iterdir()] == ["model"]
