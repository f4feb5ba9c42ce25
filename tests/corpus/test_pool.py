"""A pool is a fair, repeatable sample of distinct documents from any source."""

import dataclasses
import random
from collections import Counter
from pathlib import Path

import pyarrow as pa
import pytest

from labelspace.corpus import MAX_CHARACTERS, Pool, sample_pool
from labelspace.errors import ColumnError, ConfigError, InputError, LabelSpaceWarning

TEXTS = [f"document {number}" for number in range(500)]


def test_a_pool_has_the_requested_size_and_no_document_twice():
    pool = sample_pool(TEXTS * 3, size=40, seed=0)
    assert len(pool.texts) == len(set(pool.texts)) == 40
    assert set(pool.texts) <= set(TEXTS)
    assert pool.seen == 1500


def test_a_small_source_is_taken_completely_in_its_own_order():
    assert sample_pool(["b", "a", "", "b", " \n", "c"], size=10, seed=0).texts == ("b", "a", "c")
    assert sample_pool([], size=10, seed=0) == Pool(texts=(), seen=0, source="list in memory (0 documents)")


def test_documents_come_in_order_of_first_appearance():
    numbers = [int(text.split()[1]) for text in sample_pool(TEXTS, size=50, seed=3).texts]
    assert numbers == sorted(numbers)


def test_the_same_seed_gives_the_same_pool_and_another_seed_another():
    assert sample_pool(TEXTS, size=20, seed=1) == sample_pool(TEXTS, size=20, seed=1)
    assert sample_pool(TEXTS, size=20, seed=1) != sample_pool(TEXTS, size=20, seed=2)


def test_the_draw_does_not_depend_on_the_order_of_documents():
    shuffled = random.Random(0).sample(TEXTS, len(TEXTS))
    assert set(sample_pool(TEXTS, size=20, seed=1).texts) == set(sample_pool(shuffled, size=20, seed=1).texts)


def test_all_documents_are_drawn_equally_often_even_repeated_ones():
    source = [f"rare {number}" for number in range(19)] + ["frequent"] * 200
    random.Random(0).shuffle(source)
    counts = Counter(text for seed in range(500) for text in sample_pool(source, size=5, seed=seed).texts)
    # Binomial with n = 500, p = 5 / 20: mean 125, deviation 9.7; five deviations either way.
    assert len(counts) == 20
    assert all(abs(count - 125) < 49 for count in counts.values())


def test_an_iterator_is_read_once_and_never_held():
    alive, most = 0, 0

    class Counted(str):
        def __init__(self, _):
            nonlocal alive, most
            alive += 1
            most = max(most, alive)

        def __del__(self):
            nonlocal alive
            alive -= 1

    pool = sample_pool((Counted(f"document {number}") for number in range(20_000)), size=10, seed=0)
    assert pool.seen == 20_000
    assert most < 3000
    assert pool.source == "generator in memory (20000 documents)"


@pytest.fixture
def files(tmp_path):
    for number in range(3):
        (tmp_path / f"news-{number}.csv").write_text("text,body\n" + "".join(f"a{number}{n},b{n}\n" for n in range(9)))
    return tmp_path


def test_the_source_names_the_files(files):
    one = sample_pool(files / "news-0.csv", size=100, seed=0)
    assert one.source == "news-0.csv (9 rows)"
    assert one.texts == tuple(f"a0{n}" for n in range(9))
    for source in (str(files / "news-*.csv"), [files / f"news-{n}.csv" for n in range(3)]):
        pool = sample_pool(source, size=100, seed=0)
        assert pool.source == "news-0.csv, news-1.csv, news-2.csv (27 rows)"
        assert (len(pool.texts), pool.seen) == (27, 27)
    assert sample_pool(str(files / "*.csv"), size=100, seed=0, text_column="body").texts == tuple(
        f"b{n}" for n in range(9)
    )


@pytest.mark.parametrize("kind", ["pandas.DataFrame", "polars.DataFrame", "pandas.Series", "datasets.Dataset", "arrow"])
def test_tables_and_columns_in_memory_are_accepted(kind):
    library, _, name = kind.partition(".")
    if library == "arrow":
        source = pa.table({"text": TEXTS})
    elif library == "datasets":
        source = pytest.importorskip("datasets").Dataset.from_dict({"text": TEXTS})
    else:
        made = TEXTS if name == "Series" else {"text": TEXTS}
        source = getattr(pytest.importorskip(library), name)(made)
    pool = sample_pool(source, size=20, seed=1)
    assert pool.texts == sample_pool(TEXTS, size=20, seed=1).texts
    assert "500" in pool.source


def test_the_only_column_of_strings_is_the_text_as_in_predict():
    table = pa.table({"id": range(len(TEXTS)), "review": TEXTS})
    for source in (table, table.to_pandas()[["review"]]):
        assert sample_pool(source, size=20, seed=1).texts == sample_pool(TEXTS, size=20, seed=1).texts


@pytest.mark.parametrize("size", [0, -1, 2.5, True, None])
def test_the_size_must_be_a_positive_whole_number(size):
    with pytest.raises(ConfigError, match="size must be a whole number at least 1"):
        sample_pool(TEXTS, size=size, seed=0)


@pytest.mark.parametrize(
    ("source", "error", "said"),
    [
        (["a", None], InputError, r"source\[1\] is missing"),
        (7, InputError, "source must be documents"),
        (Path("nowhere.csv"), InputError, "no such file"),
        (pa.table({"body": ["a"], "title": ["b"]}), ColumnError, "without a column 'text'"),
        (pa.table({"text": ["a", None]}), InputError, "row 2 is missing"),
    ],
)
def test_an_invalid_source_is_refused(source, error, said):
    with pytest.raises(error, match=said):
        sample_pool(source, size=5, seed=0)


def test_overlong_documents_are_cut_with_one_warning():
    with pytest.warns(LabelSpaceWarning, match="2 documents are longer") as caught:
        pool = sample_pool(["x" * 200_000, "y" * 200_000, "", "z"], size=5, seed=0)
    assert len(caught) == 1
    assert caught[0].filename == __file__
    assert [len(text) for text in pool.texts] == [MAX_CHARACTERS, MAX_CHARACTERS, 1]


def test_a_pool_cannot_be_changed():
    pool = sample_pool(["a"], size=1, seed=0)
    with pytest.raises(dataclasses.FrozenInstanceError):
        pool.seen = 5
