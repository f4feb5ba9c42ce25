"""Pairs: reading, refusals, the draw, and the balanced dev set."""

from collections import Counter
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from labelspace.errors import ColumnError, InputError
from labelspace.training.nli.data import (
    DEV_SOURCES,
    balanced_dev,
    check_sources,
    read_pairs,
    smallest_class,
    sources_of,
)
from training.nli.toy import toy_pairs, write_pairs

REAL = Path(__file__).parents[4] / "shared" / "data" / "nli"
ROW = {"premise": ["a"], "hypothesis": ["b"], "label": [0], "source": ["s"]}


def test_written_pairs_are_read_in_order(tmp_path):
    pairs = toy_pairs(30, sources=("one", "two"))
    assert read_pairs(write_pairs(tmp_path / "train.parquet", pairs)) == pairs


def test_a_source_is_left_out(tmp_path):
    path = write_pairs(tmp_path / "train.parquet", toy_pairs(30, sources=("one", "two")))
    assert read_pairs(path, leave_out=["one"]).counts() == {"two": 15}
    assert sources_of(path) == {"one", "two"}


def test_a_limit_draws_by_the_seed_without_replacement(tmp_path):
    numbered = toy_pairs(40)
    numbered = type(numbered)(**{**vars(numbered), "premises": tuple(f"row {n}" for n in range(40))})
    path = write_pairs(tmp_path / "train.parquet", numbered)
    drawn = [read_pairs(path, limit=10, seed=seed).premises for seed in (0, 0, 1)]
    assert drawn[0] == drawn[1] != drawn[2]
    assert len(set(drawn[0])) == 10
    assert list(drawn[0]) == sorted(drawn[0], key=lambda text: int(text.split()[1]))
    assert len(read_pairs(path, limit=99)) == 40


def test_the_fingerprint_depends_on_every_cell_and_the_order():
    pairs = toy_pairs(6)
    assert pairs.fingerprint() == toy_pairs(6).fingerprint()
    assert pairs.take([1, 0, 2, 3, 4, 5]).fingerprint() != pairs.fingerprint()
    changed = type(pairs)(**{**vars(pairs), "labels": (1, *pairs.labels[1:])})
    assert changed.fingerprint() != pairs.fingerprint()


@pytest.mark.parametrize(
    ("change", "said"),
    [
        ({"label": [3]}, "row 1 has label 3"),
        ({"label": pa.array([None], pa.int64())}, "row 1 has label None"),
        ({"label": [0.0]}, "must hold 0, 1 or 2. Got double"),
        ({"premise": ["  "]}, "row 1 has an empty premise"),
        ({"hypothesis": pa.array([None], pa.string())}, "row 1 has an empty hypothesis"),
        ({"source": [7]}, "column source must hold texts"),
        ({name: pa.array([], pa.string()) for name in ROW}, "holds no row"),
    ],
    ids=["range", "no label", "float", "blank", "null", "number", "empty"],
)
def test_an_invalid_file_is_refused(tmp_path, change, said):
    pq.write_table(pa.table({**ROW, **change}), tmp_path / "bad.parquet")
    with pytest.raises(InputError, match=said):
        read_pairs(tmp_path / "bad.parquet")


def test_a_missing_column_is_named(tmp_path):
    pq.write_table(pa.table({name: ROW[name] for name in ("premise", "label", "source")}), tmp_path / "bad.parquet")
    with pytest.raises(ColumnError, match="no column 'hypothesis'; it has premise, label, source"):
        read_pairs(tmp_path / "bad.parquet")


def test_a_missing_file_and_another_format_are_refused(tmp_path):
    (tmp_path / "text.parquet").write_text("premise,hypothesis")
    with pytest.raises(InputError, match="cannot be read as Parquet"):
        read_pairs(tmp_path / "text.parquet")
    with pytest.raises(InputError, match="there is no file"):
        read_pairs(tmp_path / "none.parquet")


def test_leaving_out_all_sources_is_refused(tmp_path):
    path = write_pairs(tmp_path / "train.parquet", toy_pairs(6))
    with pytest.raises(InputError, match="leave out fewer"):
        read_pairs(path, leave_out=["toy"])


def test_a_source_with_a_typo_is_refused():
    check_sources(["anli"], ["anli", "mnli"])
    with pytest.raises(InputError, match=r"no source 'anlj'\. Did you mean 'anli'"):
        check_sources(["anlj"], ["anli", "mnli"])


def test_the_dev_set_has_the_same_number_of_every_class_and_source():
    dev = balanced_dev(toy_pairs(90, sources=("one", "two")), per_class=4)
    assert set(Counter(zip(dev.sources, dev.labels, strict=True)).values()) == {4}
    assert len(dev) == 2 * 3 * 4


def test_the_smallest_class_limits_the_dev_set():
    pairs = toy_pairs(60, sources=("one", "two"))
    few = pairs.take([row for row in range(60) if pairs.sources[row] == "one" or row < 24])
    dev = balanced_dev(few, per_class=60)
    assert set(Counter(zip(dev.sources, dev.labels, strict=True)).values()) == {4}
    assert smallest_class(few)[0] == "two"
    assert smallest_class(few)[2] == 4


def test_the_dev_draw_depends_on_the_seed_and_not_on_other_sources():
    numbered = toy_pairs(90, sources=("one", "two"))
    numbered = type(numbered)(**{**vars(numbered), "premises": tuple(f"row {n}" for n in range(90))})
    first, second = balanced_dev(numbered, per_class=4), balanced_dev(numbered, per_class=4, seed=1)
    assert first == balanced_dev(numbered, per_class=4) != second
    assert balanced_dev(numbered, sources=["one"], per_class=4).premises == first.premises[:12]


def test_the_papers_sources_are_preferred_if_present():
    pairs = toy_pairs(90, sources=(DEV_SOURCES[0], "other", DEV_SOURCES[5]))
    assert set(balanced_dev(pairs, per_class=2).sources) == {DEV_SOURCES[0], DEV_SOURCES[5]}


def test_a_dev_source_without_a_class_is_refused():
    pairs = toy_pairs(30)
    lacking = pairs.take([row for row in range(30) if pairs.labels[row] != 1])
    with pytest.raises(InputError, match="'toy' has no row of class neutral"):
        balanced_dev(lacking, sources=["toy"])
    with pytest.raises(InputError, match="all three classes"):
        balanced_dev(lacking)


@pytest.mark.slow
@pytest.mark.skipif(not REAL.is_dir(), reason="needs ../shared/data/nli")
def test_the_real_files_can_be_read():
    train = read_pairs(REAL / "train.parquet", leave_out=["anli_train_part"])
    assert len(train) == 95_126
    dev = balanced_dev(read_pairs(REAL / "dev.parquet"))
    assert list(dev.counts()) == sorted(DEV_SOURCES)
    assert len(dev) == 7 * 3 * 60
