"""The shipped scores equal the paper's tables to the two printed decimals."""

import pytest

from bench.paper_means import paper_row
from labelspace.bench.cards import BTZSC, FAMILIES, METRICS, MTEB
from labelspace.bench.published import MODEL_FAMILIES, NLI_SETS, published_models, published_scores

ROUNDING = 0.0051  # the paper prints two decimals

# Table 2: topic, sentiment, intent, emotion, mean F1, mean accuracy.
TABLE_2 = {
    "bert-large-uncased": (0.34, 0.38, 0.15, 0.08, 0.30, 0.40),
    "deberta-v3-large-nli-triplet": (0.50, 0.90, 0.45, 0.42, 0.60, 0.62),
    "ms-marco-MiniLM-L6-v2": (0.41, 0.59, 0.30, 0.19, 0.42, 0.46),
    "Qwen3-Reranker-8B": (0.66, 0.92, 0.70, 0.49, 0.72, 0.76),
    "all-MiniLM-L6-v2": (0.41, 0.35, 0.41, 0.13, 0.37, 0.44),
    "gte-large-en-v1.5": (0.54, 0.85, 0.59, 0.37, 0.62, 0.64),
    "Mistral-Nemo-Instruct-2407": (0.69, 0.84, 0.46, 0.36, 0.67, 0.71),
}
# Its standard deviations: topic, sentiment, intent, emotion, mean F1.
TABLE_2_STD = {
    "bart-large-mnli": (0.23, 0.19, 0.16, 0.04, 0.28),
    "bge-base-en-v1.5": (0.20, 0.20, 0.05, 0.09, 0.24),
    "Qwen3-4B": (0.23, 0.11, 0.04, 0.08, 0.25),
}
# Tables 5 to 8, in the order of their columns.
COLUMNS = [
    "agnews",
    "biasframes_offensive",
    "biasframes_sex",
    "capsotu",
    "manifesto",
    "trueteacher",
    "wikitoxic_insult",
    "wikitoxic_obscene",
    "wikitoxic_threat",
    "wikitoxic_toxicaggregated",
    "yahootopics",
    "amazonpolarity",
    "appreviews",
    "financialphrasebank",
    "imdb",
    "rottentomatoes",
    "yelpreviews",
    "banking77",
    "biasframes_intent",
    "massive",
    "emotiondair",
    "empathetic",
]
TABLES_5_TO_8 = {
    ("macro_f1_predicted", "gte-large-en-v1.5"): (
        "0.74 0.47 0.21 0.55 0.28 0.40 0.75 0.82 0.38 0.82 0.56 0.95 0.91 0.49 0.94 0.87 0.93 0.63 0.56 0.57 0.40 0.34"
    ),
    ("accuracy", "Qwen3-Reranker-8B"): (
        "0.80 0.78 0.82 0.68 0.46 0.52 0.82 0.88 0.78 0.86 0.67 0.96 0.93 0.84 0.95 0.90 0.98 0.67 0.75 0.72 0.56 0.49"
    ),
    ("macro_recall_predicted", "deberta-v3-base-nli"): (
        "0.77 0.55 0.74 0.19 0.08 0.50 0.73 0.83 0.72 0.79 0.47 0.90 0.91 0.80 0.91 0.82 0.93 0.13 0.54 0.34 0.42 0.31"
    ),
    ("macro_precision_predicted", "Qwen3-8B"): (
        "0.86 0.79 0.64 0.61 0.23 0.25 0.85 0.89 0.66 0.87 0.64 0.95 0.93 0.73 0.94 0.88 0.98 0.52 0.73 0.48 0.56 0.42"
    ),
}
# Tables 9 to 12: Amazon Counterfactual, MASSIVE scenario, MTOP, toxic, IMDB, tweets, Banking77, MASSIVE intent, mean.
MTEB_COLUMNS = [
    "mteb/amazon_counterfactual",
    "mteb/massive_scenario",
    "mteb/mtop_domain",
    "mteb/toxic_conversations",
    "mteb/imdb",
    "mteb/tweet_sentiment_extraction",
    "mteb/banking77",
    "mteb/massive_intent",
]
TABLES_9_TO_12 = {
    ("macro_f1_predicted", "Qwen3-Reranker-8B"): (0.46, 0.77, 0.80, 0.74, 0.95, 0.62, 0.69, 0.67, 0.71),
    ("accuracy", "gte-large-en-v1.5"): (0.34, 0.63, 0.86, 0.81, 0.94, 0.66, 0.63, 0.58, 0.68),
    ("macro_recall_predicted", "Qwen3-8B"): (0.79, 0.69, 0.83, 0.56, 0.94, 0.66, 0.43, 0.43, 0.67),
    ("macro_precision_predicted", "all-MiniLM-L6-v2"): (0.09, 0.55, 0.69, 0.48, 0.74, 0.45, 0.56, 0.42, 0.50),
}


@pytest.mark.parametrize("metric", METRICS)
def test_every_model_has_a_score_on_every_set(metric):
    scores = published_scores(metric)
    assert list(scores) == list(published_models())
    assert all(set(row) == {*BTZSC, *MTEB} for row in scores.values())
    assert all(0 <= value <= 1 for row in scores.values() for value in row.values())


def test_every_model_has_an_auroc_on_every_nli_set():
    scores = published_scores("auroc")
    assert list(scores) == list(published_models())
    assert all(tuple(row) == NLI_SETS for row in scores.values())


def test_the_models_are_38_in_the_families_of_table_2():
    models = published_models()
    count = {family: sum(model.family == family for model in models.values()) for family in MODEL_FAMILIES}
    assert count == {"base": 3, "nli": 11, "reranker": 6, "embedding": 11, "llm": 7}
    assert all(model.parameters > 1e7 for model in models.values())


@pytest.mark.parametrize("model", TABLE_2)
def test_table_2(model):
    row = paper_row(model)
    means = [row.families[family].mean for family in ("topic", "sentiment", "intent", "emotion")]
    accuracy = paper_row(model, metric="accuracy").overall.mean
    assert [*means, row.overall.mean, accuracy] == pytest.approx(TABLE_2[model], abs=ROUNDING)


@pytest.mark.parametrize("model", TABLE_2_STD)
def test_the_deviations_of_table_2(model):
    row = paper_row(model)
    found = [row.families[family].std for family in ("topic", "sentiment", "intent", "emotion")]
    assert [*found, row.overall.std] == pytest.approx(TABLE_2_STD[model], abs=ROUNDING)


@pytest.mark.parametrize(("metric", "model"), TABLES_5_TO_8)
def test_tables_5_to_8(metric, model):
    printed = [float(value) for value in TABLES_5_TO_8[metric, model].split()]
    found = published_scores(metric)[model]
    assert [found[name] for name in COLUMNS] == pytest.approx(printed, abs=ROUNDING)


@pytest.mark.parametrize(("metric", "model"), TABLES_9_TO_12)
def test_tables_9_to_12(metric, model):
    found = published_scores(metric)[model]
    mean = paper_row(model, metric=metric).mteb.mean
    assert [*(found[name] for name in MTEB_COLUMNS), mean] == pytest.approx(TABLES_9_TO_12[metric, model], abs=ROUNDING)


def test_the_overall_mean_is_unweighted():
    row = paper_row("bart-large-mnli")
    assert row.overall.sets == 22
    assert {family: row.families[family].sets for family in FAMILIES} == {
        "sentiment": 6,
        "topic": 11,
        "intent": 3,
        "emotion": 2,
    }
    weighed = sum(each.mean * each.sets for each in row.families.values()) / 22
    assert row.overall.mean == pytest.approx(weighed)


def test_changing_a_returned_table_changes_no_later_result():
    published_scores()["bart-large-mnli"]["agnews"] = 2.0
    assert published_scores()["bart-large-mnli"]["agnews"] < 1
