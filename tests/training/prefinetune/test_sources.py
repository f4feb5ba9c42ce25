"""The pairs of a run: which are accepted, refused before any work, or held aside."""

import itertools
import json
import subprocess
import sys
import warnings
from collections import Counter
from pathlib import Path

import pyarrow as pa
import pytest

from labelspace.config import PrefinetuneConfig
from labelspace.corpus import open_pairs
from labelspace.errors import ConfigError, InputError, LabelSpaceWarning
from labelspace.training.prefinetune import check_pairs, gather_pairs
from labelspace.training.prefinetune.sources import FEWEST_PAIRS, MOST_HELD_ASIDE, hold_aside
from training.prefinetune.toy import toy_pairs


def file_of(path: Path, count: int) -> Path:
    rows = [{"anchor": f"{path.stem} {row}", "positive": "yes"} for row in range(count)]
    path.write_text("".join(json.dumps(row) + "\n" for row in rows), encoding="utf-8")
    return path


def test_files_sources_and_drawn_pairs_are_accepted(tmp_path):
    one, two = file_of(tmp_path / "one.jsonl", 6), file_of(tmp_path / "two.jsonl", 7)
    in_memory = open_pairs(pa.table({"anchor": ["a"], "positive": ["b"]}), name="three")
    assert gather_pairs(one).counts() == {"one": 6}
    assert gather_pairs(str(one), per_source=4).counts() == {"one": 4}
    assert gather_pairs(in_memory).counts() == {"three": 1}
    assert gather_pairs([one, str(two), in_memory]).counts() == {"one": 6, "two": 7, "three": 1}
    drawn = toy_pairs(5)
    assert gather_pairs(drawn, per_source=5) is drawn


def test_drawn_pairs_are_not_drawn_from_again():
    with pytest.raises(ConfigError, match="drawn already, 12 of 'news', and per_source is 11"):
        gather_pairs(toy_pairs(12), per_source=11)


@pytest.mark.parametrize("given", [[], "nowhere.parquet"], ids=str)
def test_nothing_to_read_is_refused(given):
    with pytest.raises(InputError):
        gather_pairs(given)


def test_a_source_with_fewer_than_five_pairs_is_refused_and_named():
    pairs = toy_pairs(12).take([*range(24), *range(24, 28)])
    with pytest.raises(InputError, match=r"at least 5 pairs.*fewer in 'shouts' \(4 of 12\); leave these sources out"):
        check_pairs(pairs, PrefinetuneConfig())
    assert not check_pairs(pairs, PrefinetuneConfig(regularizer_weight=0.0)), "plain pre-finetuning has no source means"


def test_the_error_for_few_pairs_names_repetitions_or_the_limit(tmp_path):
    alike, other = tmp_path / "alike.jsonl", file_of(tmp_path / "other.jsonl", 9)
    alike.write_text('{"anchor": "a", "positive": "A"}\n' * 20, encoding="utf-8")
    config = PrefinetuneConfig()
    with pytest.raises(InputError, match=r"at least two\. Got 1 of 20, repetitions not counted"):
        check_pairs(gather_pairs(alike), config)
    with pytest.raises(InputError, match=r"at least 5 pairs, repetitions not counted,.* 'alike' \(1 of 20\); leave"):
        check_pairs(gather_pairs([alike, other]), config)
    with pytest.raises(InputError, match=r"'other' \(4 of 9\); let per_source be 5 or more, it is 4\."):
        check_pairs(gather_pairs(other, per_source=4), PrefinetuneConfig(per_source=4))


def test_a_column_that_names_no_sources_is_refused_in_a_short_message():
    rows = pa.table(
        {
            "anchor": [f"a {row}" for row in range(3000)],
            "positive": ["yes"] * 3000,
            "source": [f"https://news/{row}/{'x' * 100}" for row in range(3000)],
        }
    )
    with pytest.raises(InputError, match=r"/9/x+' \(1\) and 2,990 more; leave") as refused:
        check_pairs(gather_pairs(open_pairs(rows)), PrefinetuneConfig())
    assert str(refused.value).endswith(
        "Names come from the column 'source'; if it means something else: source_column=None, --source-column ''."
    )
    assert len(str(refused.value)) < 1200
    named = gather_pairs(open_pairs(rows.slice(0, 3), source_column=None, name="news"))
    with pytest.raises(InputError, match=r"fewer in 'news' \(3\).*of their kind\.$"):
        check_pairs(named, PrefinetuneConfig())


def test_a_single_pair_is_refused():
    with pytest.raises(InputError, match=r"at least two\. Got 1"):
        check_pairs(toy_pairs(1, sources=("news",)), PrefinetuneConfig(regularizer_weight=0.0))


@pytest.mark.parametrize("sources", [("news",), ("news", "shouts")], ids=len)
def test_the_warning_for_few_sources_says_what_reze_still_does(sources):
    with pytest.warns(LabelSpaceWarning, match="needs three sources.*shrinks nothing.*still limits drift"):
        assert check_pairs(toy_pairs(8, sources=sources), PrefinetuneConfig())


@pytest.mark.parametrize(
    ("sources", "options"),
    [
        (("news", "questions", "shouts"), {}),
        (("news", "shouts"), {"gamma": 0.5}),
        (("news",), {"regularizer_weight": 0.0}),
        (("news",), {"eta": 0.0}),
    ],
    ids=str,
)
def test_there_is_no_warning_if_shrinking_is_possible_or_off(sources, options):
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert not check_pairs(toy_pairs(8, sources=sources), PrefinetuneConfig(**options))


def test_a_tenth_of_each_source_is_held_aside_by_the_seed():
    pairs = toy_pairs(40)
    train, aside = hold_aside(pairs, seed=1)
    assert sorted(train + aside) == list(range(120))
    assert Counter(pairs.source_ids[row] for row in aside) == {0: 4, 1: 4, 2: 4}
    assert hold_aside(pairs, seed=1) == (train, aside)
    assert hold_aside(pairs, seed=2) != (train, aside)


def test_the_pairs_held_aside_of_a_source_do_not_depend_on_other_sources():
    both, alone = toy_pairs(20), toy_pairs(20, sources=("news",))
    assert [row for row in hold_aside(both, seed=0)[1] if row < 20] == hold_aside(alone, seed=0)[1]


def test_small_sources_keep_all_pairs_and_large_ones_give_a_limited_number():
    assert hold_aside(toy_pairs(9), seed=0)[1] == []
    assert len(hold_aside(toy_pairs(8000, sources=("news",)), seed=0)[1]) == MOST_HELD_ASIDE
    assert len(hold_aside(toy_pairs(3000), seed=0)[1]) == 3 * (MOST_HELD_ASIDE // 3)


def test_sources_keep_enough_pairs_for_reze():
    from labelspace.geometry import reze

    assert FEWEST_PAIRS == reze.FEWEST_PAIRS
    for share, count in itertools.product((0.1, 0.5), range(FEWEST_PAIRS, 30)):
        assert len(hold_aside(toy_pairs(count, sources=("news",)), seed=0, share=share)[0]) >= FEWEST_PAIRS


def test_drawing_and_checking_load_no_torch():
    code = "import sys; from labelspace.training.prefinetune import check_pairs; print('torch' in sys.modules)"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True, timeout=60)
    assert done.stdout.strip() == "False"
