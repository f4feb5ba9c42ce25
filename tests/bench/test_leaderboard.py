"""A payload has the layout of the btzsc leaderboard, and holds measured numbers only."""

import json
import math
import statistics

import pytest

from labelspace.bench.cards import BTZSC, FAMILIES, METRICS, THEIR_NAMES
from labelspace.bench.leaderboard import leaderboard_payload
from labelspace.errors import ConfigError, InputError


@pytest.fixture
def scores() -> dict[str, dict[str, float]]:
    """Different scores for each of the 22 sets."""
    return {task: {metric: (i + j) / 30 for j, metric in enumerate(METRICS)} for i, task in enumerate(BTZSC)}


def payload_of(scores: dict, **options) -> dict:
    return leaderboard_payload(scores, **{"name": "me/mine", "family": "embedding", **options})


def test_a_complete_payload_is_json_serializable(scores):
    payload = payload_of(scores, parameters=434_000_000, revision="abc", precision="bfloat16", limit=1000)
    assert json.loads(json.dumps(payload)) == payload
    assert payload["model"] == {
        "name": "me/mine",
        "model_type": "embedding",
        "params": "434M",
        "revision": "abc",
        "url": "",
    }
    assert payload["evaluation"]["max_samples"] == 1000


def test_the_authors_own_check_accepts_it(scores):
    theirs = pytest.importorskip("btzsc.leaderboard.validate", reason="the package btzsc is not installed")
    assert theirs.validate_result_payload(payload_of(scores)) == []


def test_means_are_over_the_sets_of_each_family(scores):
    results = payload_of(scores)["results"]
    for family in FAMILIES:
        own = [scores[task] for task, card in BTZSC.items() if card.family == family]
        for metric in METRICS:
            assert results["by_task"][family][THEIR_NAMES[metric]] == pytest.approx(
                statistics.fmean(row[metric] for row in own)
            )
    assert results["overall"]["accuracy"] == pytest.approx(statistics.fmean(row["accuracy"] for row in scores.values()))
    renamed = {task: {THEIR_NAMES[name]: value for name, value in row.items()} for task, row in scores.items()}
    assert results["by_dataset"] == renamed


def test_missing_sets_are_refused_by_name(scores):
    del scores["imdb"], scores["agnews"]
    with pytest.raises(InputError, match=r"Got 20; missing: imdb, agnews"):
        payload_of(scores)


def test_a_partial_payload_has_no_zero_for_missing_families(scores):
    payload = payload_of({"imdb": scores["imdb"]}, partial=True)
    assert list(payload["results"]["by_task"]) == ["sentiment"]
    assert list(payload["results"]["overall"].values()) == pytest.approx(list(scores["imdb"].values()))


def test_other_data_sets_are_left_out(scores):
    payload = payload_of({**scores, "own/mail": scores["imdb"], "mteb/imdb": scores["imdb"]})
    assert set(payload["results"]["by_dataset"]) == set(BTZSC)


def test_an_empty_payload_is_refused_even_if_partial():
    with pytest.raises(InputError, match="none of the 22"):
        payload_of({}, partial=True)


@pytest.mark.parametrize("value", [math.nan, 1.5, -0.1, "0.5", True, None])
def test_an_invalid_score_is_refused(scores, value):
    scores["imdb"]["accuracy"] = value
    with pytest.raises(InputError, match=r"imdb\.accuracy must be a number from 0 to 1"):
        payload_of(scores)


@pytest.mark.parametrize("family", ["base", "custom", ""])
def test_a_family_that_the_leaderboard_lacks_is_refused(scores, family):
    with pytest.raises(ConfigError, match=r"family must be one of 'embedding', 'nli', 'reranker', 'llm': .* submitted"):
        payload_of(scores, family=family)


@pytest.mark.parametrize(
    ("count", "shown"),
    [
        (None, "unknown"),
        (900, "900"),
        (4_400_000, "4M"),
        (22_700_000, "23M"),
        (8_000_000_000, "8B"),
        (8_200_000_000, "8.2B"),
    ],
    ids=lambda value: str(value),
)
def test_parameters_are_written_as_on_the_leaderboard(scores, count, shown):
    assert payload_of(scores, parameters=count)["model"]["params"] == shown
