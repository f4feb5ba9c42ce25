"""Anchor-positive pairs: positives only, a limit per source in any order, every pair once per epoch, mixed."""

import gzip
import json
import random
import tracemalloc
from collections import Counter
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from labelspace.corpus import (
    MAX_CHARACTERS,
    Pairs,
    PairSource,
    draw_pairs,
    mixed_batches,
    open_labelled_pairs,
    open_pairs,
    open_scored_pairs,
    open_table,
)
from labelspace.errors import ColumnError, ConfigError, InputError, LabelSpaceWarning

Row = dict[str, Any]


def rows_of(count: int, **more: Any) -> list[Row]:
    return [{"anchor": f"question {n}, ünï", "positive": f"answer {n}", **more} for n in range(count)]


def table(rows: list[Row]) -> pa.Table:
    return pa.Table.from_pylist(rows)


def write_file(path: Path, rows: list[Row]) -> Path:
    """Write rows without using labelspace."""
    name = path.name.removesuffix(".gz")
    if name.endswith(".parquet"):
        pq.write_table(table(rows), path, row_group_size=7)
        return path
    if name.endswith(".jsonl"):
        content = "".join(json.dumps(row) + "\n" for row in rows)
    else:
        lines = [list(rows[0]), *(list(map(str, row.values())) for row in rows)]
        content = "".join(",".join(f'"{cell}"' for cell in line) + "\n" for line in lines)
    path.write_bytes(gzip.compress(content.encode()) if path.suffix == ".gz" else content.encode())
    return path


def texts(source: PairSource) -> list[tuple[str, str]]:
    return [(pair.anchor, pair.positive) for pair in source]


# ---- tables of pairs


@pytest.mark.parametrize("suffix", ["csv", "csv.gz", "jsonl", "jsonl.gz", "parquet"])
def test_every_format_gives_every_pair_once_in_order_and_the_file_names_the_source(tmp_path: Path, suffix: str):
    source = open_pairs(write_file(tmp_path / f"qa.v2.{suffix}", rows_of(50)), batch_rows=8)
    assert texts(source) == [(row["anchor"], row["positive"]) for row in rows_of(50)]
    assert source.name == "qa.v2"
    assert {pair.source for pair in source} == {"qa.v2"}, "and it can be read again"


def test_columns_with_other_names_can_be_chosen():
    found = open_pairs(table([{"q": "who?", "a": "she", "n": 3}]), anchor_column="q", positive_column="a", name="qa")
    assert list(found) == [("who?", "she", "qa")]


def test_rows_may_name_their_source():
    rows = [{"anchor": "a", "positive": "A", "source": "one"}, {"anchor": "b", "positive": "B", "source": "two"}]
    source = open_pairs(table(rows))
    assert [pair.source for pair in source] == ["one", "two"]
    assert source.name is None


def test_another_column_may_name_the_sources_or_none(tmp_path: Path):
    rows = [{**row, "source": f"https://{n}", "origin": "ab"[n % 2]} for n, row in enumerate(rows_of(6))]
    path = write_file(tmp_path / "qa.jsonl", rows)
    by_default = draw_pairs([open_pairs(path)])
    assert (len(by_default.sources), by_default.source_columns[0]) == (6, "source")
    by_origin = draw_pairs([open_pairs(path, source_column="origin")])
    assert (by_origin.counts(), by_origin.source_columns) == ({"a": 3, "b": 3}, ("origin", "origin"))
    by_file = draw_pairs([open_pairs(path, source_column=None)])
    assert (by_file.counts(), by_file.source_columns) == ({"qa": 6}, ("",))
    assert by_file.take([0]).source_columns == ("",)
    assert open_pairs(path, source_column=None, name="mine").name == "mine"


def test_a_list_of_positives_gives_a_pair_for_each():
    rows = [{"anchor": "who?", "positive": ["she", "her"]}, {"anchor": "when?", "positive": ["now"]}]
    assert texts(open_pairs(table(rows), name="qa")) == [("who?", "she"), ("who?", "her"), ("when?", "now")]


def test_an_empty_list_of_positives_gives_no_pair_and_is_counted_once(tmp_path: Path):
    rows = [{"anchor": f"question {n}", "positive": [] if n % 10 == 9 else ["a", "b"]} for n in range(50)]
    path = write_file(tmp_path / "qa.jsonl", rows)
    with pytest.warns(LabelSpaceWarning) as caught:
        pairs = draw_pairs([open_pairs(path, batch_rows=8)])
    assert (pairs.seen, len(set(pairs.anchors))) == ((90,), 45)
    assert [str(one.message) for one in caught] == [
        f"{path}: 5 of 50 rows have an empty list of positives; they give no pairs."
    ]
    with pytest.warns(LabelSpaceWarning, match="the table: 1 of 2 rows has an empty list"):
        assert texts(open_pairs(table([rows[9], rows[0]]), name="qa")) == [("question 0", "a"), ("question 0", "b")]


@pytest.mark.parametrize("nothing", [[""], [None], ["a", ""], None])
def test_a_positive_without_a_text_is_refused(nothing: Any):
    with pytest.raises(InputError, match="row 2"):
        list(open_pairs(table([{"anchor": "a", "positive": ["A"]}, {"anchor": "b", "positive": nothing}]), name="qa"))


@pytest.mark.parametrize("column", ["label", "score"])
def test_a_column_that_may_mark_negatives_is_warned_of(column: str):
    with pytest.warns(LabelSpaceWarning, match=rf"taken for a positive pair, whatever its column '{column}' says"):
        source = open_pairs(table(rows_of(2, **{column: 0})), name="x")
    assert len(list(source)) == 2


def test_a_label_column_that_names_the_source_causes_no_warning():
    source = open_pairs(table(rows_of(2, label="news")), source_column="label")
    assert [pair.source for pair in source] == ["news", "news"]


def test_a_stream_can_be_read_repeatedly_and_skips_nothing():
    rows = rows_of(250)
    datasets = pytest.importorskip("datasets")
    stream = datasets.Dataset.from_list(rows).to_iterable_dataset(num_shards=3)
    source = open_pairs(stream, name="hub")
    assert texts(source) == texts(source) == texts(open_pairs(table(rows), name="memory"))
    assert [b.num_rows for b in open_table(stream, text_column="anchor", batch_rows=100).batches(skip_rows=30)] == [
        100,
        100,
        20,
    ]


def test_a_stream_whose_columns_change_is_refused():
    datasets = pytest.importorskip("datasets")

    def rows() -> Iterator[Row]:
        yield from rows_of(150)
        yield {"anchor": "question", "positive": 3}

    stream = datasets.IterableDataset.from_generator(rows)
    with pytest.raises(InputError, match="other columns than the first rows"):
        list(open_pairs(stream, name="hub"))


@pytest.mark.parametrize("make", ["pandas", "polars", "datasets"])
def test_tables_of_other_libraries_are_read_like_files(make: str):
    module = pytest.importorskip(make)
    columns = {"anchor": ["a", "b"], "positive": ["A", "B"]}
    made = module.Dataset.from_dict(columns) if make == "datasets" else module.DataFrame(columns)
    assert texts(open_pairs(made, name="letters")) == [("a", "A"), ("b", "B")]


# ---- labelled texts

LABELLED = [
    {"text": "a cup", "label": "sports"},
    {"text": "a vote", "label": "politics"},
    {"text": "a match", "label": "sports"},
]


def test_the_positive_of_a_labelled_text_is_the_name_of_its_label():
    source = open_labelled_pairs(table(LABELLED), name="news")
    assert texts(source) == [("a cup", "sports"), ("a vote", "politics"), ("a match", "sports")]


def test_with_descriptions_the_positive_is_drawn_by_seed_and_text_alone():
    descriptions = {"sports": [f"sports {n}" for n in range(4)], "politics": ["elections"]}
    rows = [{"text": f"text {n}", "label": "sports"} for n in range(400)]

    def drawn(rows: list[Row], **options: Any) -> dict[str, str]:
        source = open_labelled_pairs(table(rows), name="news", descriptions=descriptions, **options)
        return {pair.anchor: pair.positive for pair in source}

    first = drawn(rows)
    counts = Counter(first.values())
    # Binomial with n = 400, p = 1 / 4: mean 100, deviation 9; five deviations either way.
    assert set(counts) == set(descriptions["sports"])
    assert all(abs(count - 100) < 45 for count in counts.values())
    assert drawn(random.Random(0).sample(rows, 400), batch_rows=7) == first
    assert drawn(rows, seed=1) != first
    assert drawn(LABELLED)["a vote"] == "elections"


def test_a_label_without_descriptions_keeps_its_name():
    source = open_labelled_pairs(table(LABELLED), name="news", descriptions={"sports": (), "politics": ["elections"]})
    assert [pair.positive for pair in source] == ["sports", "elections", "sports"]


@pytest.mark.parametrize("nothing", [None, "", " ", "-1", " -1 "])
def test_rows_without_a_label_are_left_out(nothing: str | None):
    rows = [{"text": "?", "label": nothing}, *LABELLED]
    assert texts(open_labelled_pairs(table(rows), name="news"))[0] == ("a cup", "sports")


def test_the_warning_about_an_overlong_text_ends_its_place_at_the_bracket():
    rows = [{"anchor": "a" * 100_001, "positive": "b"}]
    with pytest.warns(LabelSpaceWarning, match=r"\(first: the table: row 1, column 'anchor'\); only"):
        list(open_pairs(table(rows), name="long"))


def test_nan_of_pandas_is_a_missing_label():
    pandas = pytest.importorskip("pandas")
    frame = pandas.DataFrame({"text": ["a", "b"], "label": [float("nan"), "sports"]})
    assert texts(open_labelled_pairs(frame, name="news")) == [("b", "sports")]


def test_white_space_around_a_label_is_not_part_of_its_name():
    rows = [{"text": "a", "label": " sports"}, {"text": "b", "label": "sports\t"}, {"text": "c", "label": "  "}]
    for descriptions in (None, {"sports": []}):
        source = open_labelled_pairs(table(rows), name="news", descriptions=descriptions)
        assert texts(source) == [("a", "sports"), ("b", "sports")]


def test_a_label_may_be_called_minus_one_if_it_has_descriptions():
    rows = [{"text": "a", "label": "-1"}]
    assert texts(open_labelled_pairs(table(rows), name="x", descriptions={"-1": ["less"]})) == [("a", "less")]


def test_a_label_that_has_no_description_list_is_refused_with_the_closest_one():
    with pytest.raises(InputError, match=r"row 2 has the label 'politics'.*Did you mean 'politic'\? There are: sports"):
        list(open_labelled_pairs(table(LABELLED), name="news", descriptions={"sports": ["s"], "politic": ["p"]}))


@pytest.mark.parametrize("stream", [False, True])
def test_class_label_numbers_become_their_names(stream: bool):
    datasets = pytest.importorskip("datasets")
    kinds = datasets.Features(text=datasets.Value("string"), label=datasets.ClassLabel(names=["money", "sports"]))
    made = datasets.Dataset.from_dict({"text": ["a", "b", "c"], "label": [1, -1, 0]}, features=kinds)
    made = made.to_iterable_dataset() if stream else made
    assert texts(open_labelled_pairs(made, name="x")) == [("a", "sports"), ("c", "money")]
    described = open_labelled_pairs(made, name="x", descriptions={"sports": ["s"], "money": []})
    assert texts(described) == [("a", "s"), ("c", "money")]


def test_a_number_is_not_a_label_name():
    with pytest.raises(InputError, match=r"row 1, column 'label', is not a text but 2 of type int"):
        list(open_labelled_pairs(table([{"text": "a", "label": 2}]), name="x"))


@pytest.mark.parametrize(
    ("descriptions", "said"),
    [("one text", "must be a list of texts"), ([3], "must be a list of texts"), (["a", " "], "an empty description")],
    ids=str,
)
def test_descriptions_must_be_lists_of_texts(descriptions: Any, said: str):
    with pytest.raises(InputError, match=said):
        open_labelled_pairs(table(LABELLED), name="news", descriptions={"sports": descriptions})


# ---- scored pairs


@pytest.mark.parametrize(
    ("scores", "threshold", "kept"),
    [
        ([1, 0, 1, 0], 1, [0, 2]),
        ([True, False, False, True], 1, [0, 3]),
        ([4.9, 4.0, 3.99, None], 4, [0, 1]),
        ([float("nan"), 5.0, 0.0, 5.0], 4, [1, 3]),
        (["5", " 3.5 ", "", "4"], 4, [0, 3]),
    ],
    ids=["0 and 1", "true and false", "similarities, one missing", "one not a number", "texts of a CSV file"],
)
def test_positives_are_the_pairs_at_or_above_the_threshold(scores: list[Any], threshold: float, kept: list[int]):
    rows = [{**row, "label": score} for row, score in zip(rows_of(4), scores, strict=True)]
    source = open_scored_pairs(table(rows), min_score=threshold, name="sts")
    assert texts(source) == [(rows[n]["anchor"], rows[n]["positive"]) for n in kept]


def test_an_empty_half_of_a_negative_pair_is_ignored():
    rows = [{"anchor": "a", "positive": "A", "label": 1}, {"anchor": "", "positive": "B", "label": 0}]
    assert texts(open_scored_pairs(table(rows), min_score=1, name="x")) == [("a", "A")]


def test_a_score_that_is_not_a_number_is_refused():
    rows = [{**row, "label": "entailment"} for row in rows_of(2)]
    with pytest.raises(InputError, match=r"row 1, column 'label', is not a number but 'entailment'"):
        list(open_scored_pairs(table(rows), min_score=1, name="x"))
    with pytest.raises(ConfigError, match="min_score must be a number"):
        open_scored_pairs(table(rows), min_score="high", name="x")  # pyright: ignore[reportArgumentType]


# ---- one clear error each


@pytest.mark.parametrize("half", ["anchor", "positive"])
@pytest.mark.parametrize("empty", ["", " \n"])
def test_an_empty_half_is_refused_with_file_and_row(tmp_path: Path, half: str, empty: str):
    rows = rows_of(20)
    rows[11] = {**rows[11], half: empty}
    path = write_file(tmp_path / "qa.parquet", rows)
    with pytest.raises(InputError, match=rf"qa\.parquet: row 12 has an empty {half}; fill it in or remove the row"):
        list(open_pairs(path, batch_rows=5))


@pytest.mark.parametrize("half", ["anchor", "positive", "source"])
def test_a_missing_half_is_refused_with_file_row_and_column(tmp_path: Path, half: str):
    rows = rows_of(20, source="s")
    rows[11] = {**rows[11], half: None}
    path = write_file(tmp_path / "qa.parquet", rows)
    with pytest.raises(InputError, match=rf"row 12, column '{half}', is missing \(None\)"):
        list(open_pairs(path, batch_rows=5))


NOTHING: dict[str, tuple[Callable[[], PairSource], str]] = {
    "no rows": (
        lambda: open_pairs(
            pa.table({"anchor": pa.array([], pa.string()), "positive": pa.array([], pa.string())}), name="x"
        ),
        "has no positive pair; it has 0 rows",
    ),
    "empty lists": (
        lambda: open_pairs(pa.table({"anchor": ["a"], "positive": pa.array([[]], pa.list_(pa.string()))}), name="x"),
        "has no positive pair; the list of positives of every row is empty; fill one in, or leave it out",
    ),
    "no label": (
        lambda: open_labelled_pairs(pa.table({"text": ["a"], "label": pa.array([None], pa.string())}), name="x"),
        "none of its 1 rows has a label",
    ),
    "no positive": (
        lambda: open_scored_pairs(table([{**row, "label": 0} for row in rows_of(3)]), min_score=1, name="x"),
        "none of its 3 rows has a label of at least 1; lower min_score, or leave it out",
    ),
}


@pytest.mark.parametrize("what", NOTHING)
def test_a_source_without_a_positive_is_refused(what: str):
    make, said = NOTHING[what]
    with pytest.raises(InputError, match=said):
        draw_pairs([make()])


@pytest.mark.parametrize(
    "call",
    [
        lambda t: open_pairs(t, name="x", anchor_column="anchors"),
        lambda t: open_pairs(t, name="x", positive_column="positives"),
        lambda t: open_pairs(t, name="x", source_column="origin"),
        lambda t: open_labelled_pairs(t, name="x", text_column="anchor"),
        lambda t: open_scored_pairs(t, name="x", min_score=1, score_column="score"),
    ],
    ids=["anchor", "positive", "source", "label", "score"],
)
def test_a_missing_column_is_refused_before_anything_is_read(call: Callable[[pa.Table], PairSource]):
    with pytest.raises(ColumnError, match=r"the table has no column '.*Its columns: anchor, positive"):
        call(table(rows_of(3)))


def test_a_missing_file_is_refused():
    with pytest.raises(InputError, match="no such file"):
        open_pairs("nowhere.parquet")


def test_a_table_or_several_files_need_a_name(tmp_path: Path):
    with pytest.raises(InputError, match="a table in memory must be given a name"):
        open_pairs(table(rows_of(3)))
    paths = [write_file(tmp_path / f"{name}.csv", rows_of(3)) for name in "ab"]
    with pytest.raises(InputError, match="2 files read together must be given a name"):
        open_pairs(paths)
    assert draw_pairs([open_pairs(paths, name="both")]).seen == (6,)


def test_two_sources_of_one_name_are_refused():
    with pytest.raises(InputError, match="2 sources are called 'qa'; give each its own name"):
        draw_pairs([open_pairs(table(rows_of(3)), name="qa"), open_pairs(table(rows_of(3)), name="qa")])


def test_no_source_is_refused():
    with pytest.raises(InputError, match="at least one source"):
        draw_pairs([])


def test_an_overlong_text_is_cut_with_one_warning():
    rows = [{"anchor": f"{n}" + "x" * MAX_CHARACTERS, "positive": "short"} for n in range(5)]
    with pytest.warns(LabelSpaceWarning, match="Later ones are not reported") as caught:
        (first, *_) = open_pairs(table(rows), name="long", batch_rows=2)
    assert len(first.anchor) == MAX_CHARACTERS
    assert len(caught) == 1


# ---- the draw


def sources_of(*counts: int, batch_rows: int = 1024) -> list[PairSource]:
    return [
        open_pairs(
            table([{**row, "anchor": f"{name}: {row['anchor']}"} for row in rows_of(count)]),
            name=name,
            batch_rows=batch_rows,
        )
        for name, count in zip("abcdefgh", counts, strict=False)
    ]


def test_each_source_gives_up_to_its_limit_and_small_ones_all_their_pairs():
    pairs = draw_pairs(sources_of(300, 20, 50), per_source=40, seed=0)
    assert pairs.counts() == {"a": 40, "b": 20, "c": 40}
    assert pairs.seen == (300, 20, 50)
    assert len(pairs) == len(set(zip(pairs.anchors, pairs.positives, strict=True))) == 100
    for anchor, positive, number in zip(pairs.anchors, pairs.positives, pairs.source_ids, strict=True):
        assert anchor.startswith(f"{pairs.sources[number]}: question ")
        assert anchor.split()[2].rstrip(",") == positive.split()[1], "halves stay together"


def test_without_a_limit_all_pairs_are_taken_in_row_order():
    pairs = draw_pairs(sources_of(30, 5))
    assert pairs.positives == (*(f"answer {n}" for n in range(30)), *(f"answer {n}" for n in range(5)))
    assert pairs.source_ids == (0,) * 30 + (1,) * 5


def test_the_draw_depends_only_on_the_seed():
    def drawn(rows: list[Row], *, batch_rows: int = 1024, seed: int = 0, name: str = "qa") -> set[str]:
        source = open_pairs(table(rows), name=name, batch_rows=batch_rows)
        return set(draw_pairs([source], per_source=20, seed=seed).anchors)

    rows = rows_of(500)
    first = drawn(rows)
    assert drawn(rows, batch_rows=1) == drawn(rows, batch_rows=37) == first
    assert drawn(random.Random(0).sample(rows, 500)) == first
    assert drawn(rows, seed=1) != first
    assert drawn(rows, name="other") != first, "sources are drawn from apart"
    both = draw_pairs([*sources_of(60), open_pairs(table(rows), name="qa")], per_source=20)
    assert set(both.anchors[20:]) == first, "and one more source changes nothing for another"


def test_all_pairs_are_drawn_equally_often_even_repeated_ones():
    rows = [*rows_of(19), *([{"anchor": "again", "positive": "and again"}] * 200)]
    random.Random(0).shuffle(rows)
    source = open_pairs(table(rows), name="qa")
    counts = Counter(anchor for seed in range(500) for anchor in draw_pairs([source], per_source=5, seed=seed).anchors)
    # Binomial with n = 500, p = 5 / 20: mean 125, deviation 9.7; five deviations either way.
    assert len(counts) == 20
    assert all(abs(count - 125) < 49 for count in counts.values())


def test_a_pair_is_its_two_halves_and_not_their_letters():
    rows = [{"anchor": "ab", "positive": "c"}, {"anchor": "a", "positive": "bc"}, {"anchor": "ab", "positive": "c"}]
    assert len(draw_pairs([open_pairs(table(rows), name="x")])) == 2


def test_rows_that_name_the_same_source_share_one_draw():
    shards = [open_pairs(table(rows_of(100, source="qa")[part])) for part in (slice(0, 60), slice(60, 100))]
    pairs = draw_pairs(shards, per_source=30)
    assert pairs.counts() == {"qa": 30}
    assert pairs.seen == (100,)
    whole = draw_pairs([open_pairs(table(rows_of(100, source="qa")))], per_source=30)
    assert pairs.anchors == whole.anchors


def test_all_kinds_of_sources_are_drawn_together():
    pairs = draw_pairs(
        [
            open_pairs(table(rows_of(3)), name="qa"),
            open_labelled_pairs(table(LABELLED), name="news"),
            open_scored_pairs(table([{**row, "label": 1} for row in rows_of(3)]), min_score=1, name="dup"),
        ]
    )
    assert pairs.counts() == {"qa": 3, "news": 3, "dup": 3}


@pytest.mark.slow
def test_drawing_from_a_long_file_needs_little_memory(tmp_path: Path):
    path = tmp_path / "long.jsonl"
    with path.open("w") as file:
        for number in range(20_000):
            file.write(json.dumps({"anchor": f"{number} " + "lorem ipsum " * 40, "positive": f"{number}"}) + "\n")
    source = open_pairs(path, batch_rows=256)
    tracemalloc.start()
    pairs = draw_pairs([source], per_source=100)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert len(pairs) == 100
    assert path.stat().st_size > 9e6
    assert peak < 3e6


@pytest.mark.parametrize("most", [0, -1, 1.5, True])
def test_a_limit_that_is_not_a_positive_whole_number_is_refused(most: Any):
    with pytest.raises(ConfigError, match="per_source must be a whole number at least 1"):
        draw_pairs(sources_of(5), per_source=most)


@pytest.mark.parametrize(
    ("wrong", "said"),
    [
        ({"positives": ("A",)}, "2 anchors, 1 positives and 2 source ids"),
        ({"source_ids": (0,)}, "2 anchors, 2 positives and 1 source ids"),
        ({"seen": ()}, "1 sources and 0 numbers seen"),
        ({"source_ids": (0, 1)}, "an index into the 1 sources, from 0. Got 1 instead"),
        ({"source_ids": (-1, 0)}, "Got -1 instead"),
    ],
)
def test_columns_of_pairs_must_fit_together(wrong: dict[str, Any], said: str):
    right = {"anchors": ("a", "b"), "positives": ("A", "B"), "source_ids": (0, 0)}
    named = {"sources": ("letters",), "seen": (2,)}
    assert len(Pairs(**right, **named)) == 2
    with pytest.raises(InputError, match=said):
        Pairs(**{**right, **named, **wrong})


def test_taken_rows_keep_their_sources_and_fingerprints_differ():
    pairs = draw_pairs(sources_of(5, 3))
    some = pairs.take([6, 0])
    assert some.anchors == (pairs.anchors[6], pairs.anchors[0])
    assert some.source_ids == (1, 0)
    assert some.counts() == {"a": 1, "b": 1}
    assert pairs.take(range(8)).fingerprint() == pairs.fingerprint() == draw_pairs(sources_of(5, 3)).fingerprint()
    assert some.fingerprint() != pairs.take([0, 6]).fingerprint()


# ---- batches


def drawn() -> Pairs:
    return draw_pairs(sources_of(40, 10, 50))


@pytest.mark.parametrize("batch_size", [1, 7, 8, 100, 1000])
def test_an_epoch_has_every_pair_once_in_batches_of_one_size(batch_size: int):
    batches = list(mixed_batches(drawn(), batch_size, seed=0, epoch=0))
    assert sorted(row for batch in batches for row in batch) == list(range(100))
    assert {len(batch) for batch in batches[:-1]} <= {batch_size}
    assert 0 < len(batches[-1]) <= batch_size
    assert all(type(row) is int for row in batches[0])


def test_seed_and_epoch_decide_the_order():
    def order(**options: int) -> list[list[int]]:
        return list(mixed_batches(drawn(), 8, **options))

    assert order(seed=0, epoch=0) == order(seed=0, epoch=0)
    assert order(seed=0, epoch=0) != order(seed=0, epoch=1)
    assert order(seed=0, epoch=0) != order(seed=1, epoch=0)


def test_sources_are_mixed_in_batches_at_random():
    """Batches of 8 from 40 + 10 + 50 pairs: 3.2 pairs of the first source on average, with the variance of drawing
    without replacement, 8 * 0.4 * 0.6 * 92 / 99 = 1.784."""
    pairs = drawn()
    found = [
        sum(pairs.source_ids[row] == 0 for row in batch)
        for epoch in range(300)
        for batch in list(mixed_batches(pairs, 8, seed=0, epoch=epoch))[:-1]
    ]
    mean = sum(found) / len(found)
    assert mean == pytest.approx(3.2, abs=0.1)
    assert sum((count - mean) ** 2 for count in found) / len(found) == pytest.approx(1.784, rel=0.1)


@pytest.mark.parametrize("size", [0, 2.5, True])
def test_an_invalid_batch_size_is_refused(size: Any):
    with pytest.raises(ConfigError, match="batch_size must be a whole number"):
        list(mixed_batches(drawn(), size, seed=0, epoch=0))
