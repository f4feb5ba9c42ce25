"""Ways of running a model are kept apart and named; one is chosen by rules, not by the order of the store."""

from itertools import permutations

import pytest

from bench.fakes import record
from labelspace.bench.ways import choose_way, means_of, names_of, ways_of
from labelspace.errors import ConfigError, InputError


def dated(date: str, **more):
    origin = {**record()["provenance"], "date": date}
    return record(**{"provenance": origin, **more})


OLD, NEW = "2026-01-01T00:00:00+00:00", "2026-02-01T00:00:00+00:00"
BEST_FIRST = {
    "more sets": [dated(OLD, limit=5, protocol="paper"), dated(OLD, limit=5, protocol="paper", task="imdb")],
    "full rows": [dated(OLD, limit=5)],
    "no limit": [dated(OLD, protocol="paper", dtype="bfloat16")],
    "larger limit": [dated(OLD, limit=50, protocol="paper")],
    "newest": [dated(NEW, limit=20, protocol="paper", dtype="bfloat16")],
    "the rest": [dated(OLD, limit=20, protocol="paper")],
}


@pytest.mark.parametrize("place", range(len(BEST_FIRST) - 1))
def test_the_rules_apply_in_order_for_any_order_of_the_store(place):
    better, *worse = list(BEST_FIRST.values())[place:]
    for others in permutations(worse) if len(worse) < 4 else [worse, worse[::-1]]:
        for order in ([better, *others], [*others, better]):
            found = choose_way([each for group in order for each in group], "embedding:a")
            assert found[1] == better
            assert found[2] == len(order)


def test_files_of_the_users_own_do_not_outnumber_data_sets_of_others():
    own = [record(task=f"own/{name}") for name in ("a", "b")]
    public = [record(task="agnews", limit=50)]
    assert choose_way([*own, *public], "a")[1] == public


def test_among_otherwise_equal_ways_the_last_one_counts_as_newest():
    runs = [record(dtype="float32"), record(dtype="bfloat16")]
    assert [choose_way(order, "a")[0].dtype for order in (runs, runs[::-1])] == ["bfloat16", "float32"]


@pytest.mark.parametrize(
    ("asked", "way"),
    [
        ({"limit": 10}, "full rows, at most 10 texts, float32"),
        ({"limit": "all"}, "full rows, all texts, float32"),
        ({"dtype": "bfloat16"}, "full rows, all texts, bfloat16"),
        ({"protocol": "paper"}, "paper rows, class 0, all texts, float32"),
        ({"limit": "all", "dtype": "float32", "protocol": "full"}, "full rows, all texts, float32"),
    ],
)
def test_a_way_can_be_requested(asked, way):
    runs = [record(limit=10), record(dtype="bfloat16"), record(), record(protocol="paper", unverbalized="class_0")]
    assert str(choose_way(runs, "embedding:a", **asked)[0]) == way


def test_a_missing_way_is_an_error_that_lists_the_others():
    runs = [record(limit=10), record(task="imdb", limit=10), record(protocol="paper")]
    with pytest.raises(ConfigError) as caught:
        choose_way(runs, "a", limit=20, dtype="bfloat16")
    assert str(caught.value) == (
        "embedding:a was not run with limit 20, dtype bfloat16. "
        "The store has: full rows, at most 10 texts, float32 (2 sets); paper rows, all texts, float32 (1 sets)."
    )


def test_nli_pairs_alone_are_not_a_way():
    pairs = record(task="nli", benchmark="nli", task_family="nli", metrics={"auroc": 0.6}, by_source={})
    with pytest.raises(InputError, match="no data set for embedding:a"):
        choose_way([pairs], "a")


def test_known_weights_are_kept_apart():
    runs = [record(revision="sha256:0123456789"), record(task="imdb", revision="sha256:ffff456789")]
    names = list(names_of(list(ways_of(runs))).values())
    assert names == ["embedding:a [weights 01234567]", "embedding:a [weights ffff4567]"]
    assert len(ways_of([runs[0], record(task="imdb")])) == 1, "a record of unknown weights is of the known ones"
    assert len(ways_of([*runs, record(task="massive")])) == 3, "but of which, where there are two?"


def test_means_are_over_seeds():
    runs = [record(score=score, seed=seed, limit=5) for seed, score in enumerate((0.25, 0.75))]
    assert means_of([*runs, record(task="imdb", score=1.0)]) == {
        "agnews": dict.fromkeys(
            ("macro_f1_predicted", "accuracy", "macro_precision_predicted", "macro_recall_predicted"), 0.5
        ),
        "imdb": dict.fromkeys(
            ("macro_f1_predicted", "accuracy", "macro_precision_predicted", "macro_recall_predicted"), 1.0
        ),
    }
