"""A measured model is ranked among the published ones on the same data sets."""

import json
import math
import statistics

import pytest

from bench.paper_means import paper_row
from labelspace.bench.cards import BTZSC, METRICS, MTEB
from labelspace.bench.compare import benchmark_agreement, place
from labelspace.bench.published import published_models, published_scores
from labelspace.bench.statistics import kendall_tau
from labelspace.errors import ConfigError, InputError


def measured(**scores: float) -> dict[str, dict[str, float]]:
    return {name: {"macro_f1_predicted": value} for name, value in scores.items()}


def rank_by_hand(score: float, names: list[str]) -> int:
    """Sort all means over the same sets, best first, and return this one's place."""
    means = [statistics.fmean(row[name] for name in names) for row in published_scores().values()]
    return sorted([*means, score], reverse=True).index(score) + 1


def test_each_rank_equals_the_place_in_a_sorted_list():
    scores = {"agnews": 0.7, "banking77": 0.61, "imdb": 0.9, "massive": 0.55}
    found = place(measured(**scores))
    for each in found.data_sets:
        assert each.rank == rank_by_hand(scores[each.what], [each.what])
    mean = statistics.fmean(scores.values())
    assert found.overall is not None
    assert found.overall.score == pytest.approx(mean)
    assert found.overall.rank == rank_by_hand(mean, list(scores))
    assert (found.overall.sets, found.overall.of, found.overall.among) == (4, 22, 39)


def test_published_means_are_over_the_measured_sets_only():
    """Over all 22 sets the best model has 0.72; on IMDB alone others are better, and higher."""
    found = place(measured(imdb=0.5)).overall
    assert found is not None
    assert found.best == max(row["imdb"] for row in published_scores().values())
    assert found.median == statistics.median(row["imdb"] for row in published_scores().values())


def test_a_published_model_gets_the_rank_of_the_paper():
    """Only better models rank above it, although the list holds the model itself."""
    scores = published_scores()
    for name in ("Qwen3-Reranker-8B", "gte-large-en-v1.5", "bert-large-uncased"):
        found = place({task: {"macro_f1_predicted": scores[name][task]} for task in (*BTZSC, *MTEB)})
        means = [paper_row(other).overall.mean for other in published_models()]
        assert found.overall is not None
        assert found.overall.rank == 1 + sum(mean > paper_row(name).overall.mean for mean in means)
        assert found.mteb is not None
        assert found.mteb.score == pytest.approx(paper_row(name).mteb.mean)
        assert (found.overall.sets, found.mteb.sets) == (22, 8)


def test_each_family_is_ranked_separately():
    found = place(measured(agnews=0.7, capsotu=0.5, banking77=0.6))
    assert [(each.what, each.sets, each.of) for each in found.families] == [("topic", 2, 11), ("intent", 1, 3)]
    assert found.mteb is None


def test_the_btzsc_mean_excludes_mteb():
    found = place({"mteb/imdb": {"macro_f1_predicted": 0.9}})
    assert found.overall is None
    assert found.families == ()
    assert found.mteb is not None
    assert found.mteb.sets == 1


def test_the_best_and_the_worst_score_get_the_first_and_the_last_rank():
    assert place(measured(agnews=1.0)).data_sets[0].rank == 1
    assert place(measured(agnews=0.0)).data_sets[0].rank == 39


@pytest.mark.parametrize("metric", METRICS)
def test_every_metric_is_compared_with_its_own_table(metric):
    found = place({"agnews": {metric: 0.5}}, metric=metric)
    assert found.data_sets[0].best == max(row["agnews"] for row in published_scores(metric).values())


def test_sets_that_the_paper_lacks_are_listed():
    found = place({**measured(agnews=0.7), "own/mail": {"macro_f1_predicted": 0.3}})
    assert found.not_compared == ("own/mail",)
    assert "Not in the paper: own/mail." in found.to_text()


def test_the_table_says_how_many_sets_a_mean_is_over():
    text = str(place(measured(agnews=0.7, imdb=0.9)))
    assert "BTZSC (mean of 2 of 22)" in text
    assert "20 of 39" in text
    assert "same data sets" in text


def test_a_placement_is_json_serializable():
    found = place(measured(agnews=0.7))
    assert json.loads(json.dumps(found.to_dict()))["overall"]["rank"] == found.overall.rank


@pytest.mark.parametrize("scores", [{}, {"own/mail": {"macro_f1_predicted": 0.5}}], ids=["nothing", "own only"])
def test_nothing_to_compare_is_refused(scores):
    with pytest.raises(InputError, match="none of the measured data sets is in the paper"):
        place(scores)


@pytest.mark.parametrize("value", [math.nan, 71.0, -0.1, None, "0.5"])
def test_an_invalid_score_is_refused(value):
    with pytest.raises(InputError, match="agnews: macro_f1_predicted must be a number from 0 to 1"):
        place({"agnews": {"macro_f1_predicted": value}})


def test_an_unknown_metric_is_refused():
    with pytest.raises(ConfigError, match="metric must be one of"):
        place(measured(agnews=0.7), metric="auroc")


# ---- rank agreement of two lists of data sets


def test_the_agreement_of_btzsc_and_mteb_is_what_the_paper_says():
    found = benchmark_agreement()
    said = {"all": (0.69, 1.3e-9), "nli": (0.64, 0.0057), "reranker": (1.0, 0.0028), "llm": (0.62, 0.069)}
    said["embedding"] = (0.31, 0.22)
    for group, (tau, p) in said.items():
        assert found[group][0].tau == pytest.approx(tau, abs=0.005)
        assert found[group][0].p == pytest.approx(p, rel=0.05)
    assert found["all"][1] == sum(models for group, (_, models) in found.items() if group != "all") == 38


def test_a_rank_on_some_sets_comes_with_the_rank_agreement():
    scores = published_scores("macro_f1_predicted")
    few = place({name: {"macro_f1_predicted": 0.5} for name in ("imdb", "agnews")})
    whole = [statistics.fmean(row[name] for name in BTZSC) for row in scores.values()]
    part = [(row["imdb"] + row["agnews"]) / 2 for row in scores.values()]
    assert few.agreement == kendall_tau(part, whole)
    assert f"on these 2 BTZSC sets against their order on all 22: Kendall's tau {few.agreement.tau:.2f}." in str(few)
    assert place({name: {"macro_f1_predicted": 0.5} for name in BTZSC}).agreement is None
    assert place({"mteb/imdb": {"macro_f1_predicted": 0.5}}).agreement is None
