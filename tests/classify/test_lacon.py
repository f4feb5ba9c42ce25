"""`LaConClassifier` as a scikit-learn estimator: what it learns from, answers, and how it is edited and saved."""

import copy
import functools
import itertools
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import polars as pl
import pytest
import torch
from safetensors import safe_open
from safetensors.numpy import load_file, save_file
from sentence_transformers import SentenceTransformer
from sklearn.base import clone
from sklearn.model_selection import GridSearchCV, cross_val_score
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import FunctionTransformer

from classify.conftest import SPACE
from labelspace import DescriptionClassifier, LabelSpace, LaConClassifier, ZeroShotClassifier, load
from labelspace.classify import bi_encoder, predict_file
from labelspace.classify.settings import as_arguments
from labelspace.classify.tables.stream import model_fingerprint
from labelspace.config import LaConConfig, SearchConfig
from labelspace.corpus import Kind, as_texts_or_pairs
from labelspace.encoders import Encoder
from labelspace.errors import ColumnError, ConfigError, InputError, LabelSpaceWarning, ModelFolderError
from labelspace.evaluate import evaluate
from labelspace.training.lacon import objective as loop
from labelspace.training.lacon.prior import label_vectors, place_labels, sums_of_rows
from labelspace.training.rows import tokenize

Maker = Callable[..., Any]

TEXTS = [
    "the team won the match in the last minute",
    "players and a coach of the league",
    "a great game this season",
    "results of the match",
    "the bank said that prices will rise",
    "the market closed low",
    "stock and profit of the company",
    "trade and price of money",
    "war and peace",
    "the minister asked the court for time",
    "the government falls after the election",
    "police said nothing of the law",
]
Y = ["sports"] * 4 + ["money"] * 4 + ["world"] * 4
PAIRS = list(itertools.pairwise([*TEXTS, TEXTS[0]]))
KINDS = {
    "lacon": {},
    "fusion": {"head": "fusion"},
    "cross-entropy": {"objective": "cross-entropy"},
    "leam": {"objective": "cross-entropy", "head": "leam"},
    "lsan": {"objective": "cross-entropy", "head": "lsan"},
}
each_kind = pytest.mark.parametrize("kind", KINDS)


pytestmark = pytest.mark.usefixtures("short_search")


@pytest.fixture(scope="module")
def make(encoders: dict[str, Encoder]) -> Maker:
    """Make a classifier of a kind that trains in a moment."""
    space = LabelSpace.from_dict(SPACE)

    def made(kind: str = "lacon", dtype: str = "float32", labels: Any = space, **options: Any) -> LaConClassifier:
        fast = {"max_steps": 3, "description_steps": 2, "batch_size": 12}
        fast |= {"learning_rate": 1e-3, "head_learning_rate": 1e-3}
        options = {"encoder": encoders[dtype], **fast, **KINDS[kind], **options}
        return LaConClassifier(labels, **as_arguments(LaConClassifier, options))

    return made


@pytest.fixture
def fitted(make: Maker) -> Maker:
    """Make and fit a classifier on all twelve texts."""
    return lambda *args, **options: make(*args, **options).fit(TEXTS, Y)


@pytest.fixture(scope="module")
def learnt(make: Maker) -> Maker:
    """Fit a kind on all twelve texts or pairs, once; do not change it."""
    fit = functools.cache(lambda kind, pairs: make(kind).fit(PAIRS if pairs else TEXTS, Y))
    return lambda kind="lacon", pairs=False: fit(kind, pairs)


# ---- answers


@each_kind
def test_predictions_probabilities_and_scores_agree(kind: str, learnt: Maker):
    clf = learnt(kind)
    scores, proba = clf.decision_function(TEXTS), clf.predict_proba(TEXTS)
    names, again = clf.predict(TEXTS, return_scores=True)
    assert scores.shape == proba.shape == (12, 3)
    assert list(clf.classes_) == ["money", "sports", "world"]
    assert (again == scores).all()
    assert list(names) == list(clf.classes_[scores.argmax(axis=1)]) == list(clf.classes_[proba.argmax(axis=1)])
    divisor = clf.temperature if kind in ("lacon", "fusion") else 1
    powers = np.exp(scores.astype(np.float64) / divisor)
    assert proba == pytest.approx(powers / powers.sum(axis=1, keepdims=True))


def test_labels_are_learnt(fitted: Maker):
    clf = fitted(max_steps=None, epochs=40, encoder_dropout=False, description_weight=0.0)
    assert clf.score(TEXTS, Y) == 1.0
    assert clf.fit_result_.curve.losses[-1] < clf.fit_result_.curve.losses[0]
    assert (clf.fit_result_.labelled, clf.fit_result_.unlabelled, clf.fit_result_.held_out) == (12, 0, 0)


def test_without_given_labels_they_come_from_y(make: Maker):
    clf = make(labels=None).fit(TEXTS, Y)
    assert clf.label_space_.names == ("money", "sports", "world")
    assert (clf.labels, clf.fit_result_.init, clf.fit_result_.prior.reason) == (None, "random", "no meaning")
    assert clf.predict(TEXTS).shape == (12,)


def test_a_score_below_the_threshold_gives_none(fitted: Maker):
    for kind, lowest in (("lacon", "threshold"), ("cross-entropy", "min_probability")):
        clf = fitted(kind, **{lowest: 1.0})
        assert set(clf.predict(TEXTS)) == {None}
        clf.set_params(**{lowest: 0.0})
        assert None not in clf.predict(TEXTS)
    clf.set_params(min_probability=float(np.median(clf.predict_proba(TEXTS).max(axis=1))))
    assert 0 < sum(name is None for name in clf.predict(TEXTS)) < 12


@pytest.mark.parametrize(
    ("kind", "wrong", "message"),
    [
        (
            "lacon",
            "min_probability",
            "min_probability needs rows of two labels and .*set threshold",
        ),
        ("cross-entropy", "threshold", "threshold is a cosine, .*set min_probability"),
    ],
)
def test_the_threshold_of_the_other_kind_of_head_is_refused(
    kind: str, wrong: str, message: str, make: Maker, learnt: Maker, monkeypatch: pytest.MonkeyPatch
):
    clf = copy.copy(learnt(kind)).set_params(**{wrong: 0.1})
    with pytest.raises(ConfigError, match=message):
        clf.predict(TEXTS)
    monkeypatch.setattr("labelspace.classify.lacon.own_encoder", lambda _: pytest.fail("work began"))
    with pytest.raises(ConfigError, match=message):
        make(kind, **{wrong: 0.1}).fit(TEXTS, Y)


@pytest.mark.parametrize(
    ("config", "message"),
    [
        (
            {"epochs": 2},
            r"^epochs is an argument of LaConClassifier; pass epochs=\.\.\., and leave it out of config\.$",
        ),
        ({"head_rate": 1}, "config of LaConClassifier has no option 'head_rate'"),
        ({"projection_heads": True}, "Did you mean 'projection_head'"),
        ({"heads": 0}, "heads must be a whole number at least 1"),
        (3, "config must be a mapping of options. Got int"),
    ],
    ids=str,
)
def test_a_config_with_an_unknown_setting_is_refused(config: Any, message: str):
    with pytest.raises(ConfigError, match=message):
        LaConClassifier(config=config).training_config()


@pytest.mark.parametrize(
    ("named", "message"),
    [
        (
            {"batch_size": 32},
            r"^batch_size is a setting of LaConClassifier, not an argument; pass config=\{'batch_size': \.\.\.\}\.$",
        ),
        ({"epoch": 3}, r"^LaConClassifier has no argument 'epoch'\. Did you mean 'epochs'\? Known: labels, encoder, "),
    ],
    ids=str,
)
def test_a_keyword_that_is_no_argument_is_refused_with_its_place(named: dict[str, Any], message: str):
    with pytest.raises(ConfigError, match=message):
        LaConClassifier(**named)


def test_a_subclass_may_have_arguments_of_its_own():
    class Cautious(LaConClassifier):
        def __init__(self, caution: float = 0.9) -> None:
            super().__init__(min_probability=caution)

    assert Cautious(caution=0.8).min_probability == 0.8
    with pytest.raises(ConfigError, match="Cautious has no argument 'epochs'"):
        Cautious(**{"epochs": 3})


def test_a_subclass_of_a_classifier_without_settings_may_call_an_argument_config():
    class Stored(ZeroShotClassifier):
        def __init__(self, labels: Any = None, config: str = "") -> None:
            super().__init__(labels)
            self.config = config

    assert Stored(["a", "b"], config="mine").config == "mine"


def test_a_subclass_may_pass_keywords_on():
    class Cautious(LaConClassifier):
        def __init__(self, caution: float = 0.9, **others: Any) -> None:
            super().__init__(min_probability=caution, **others)

    assert Cautious(caution=0.8, epochs=3).epochs == 3
    with pytest.raises(ConfigError, match="has no argument 'epoch'"):
        Cautious(epoch=3)


def test_arguments_and_config_merge_into_one_configuration():
    made = LaConClassifier(epochs=3, config={"heads": 2, "init": "random"}).training_config()
    assert made == LaConConfig(epochs=3, heads=2, init="random")


@each_kind
def test_the_score_of_a_text_does_not_depend_on_the_others(kind: str, learnt: Maker):
    clf = learnt(kind)
    whole = clf.decision_function(TEXTS)
    assert np.abs(np.concatenate([clf.decision_function([text]) for text in TEXTS]) - whole).max() < 1e-5
    assert clf.decision_function([]).shape == (0, 3)
    assert clf.predict([]).shape == (0,)


@each_kind
def test_the_same_seed_gives_the_same_bits(kind: str, fitted: Maker, learnt: Maker):
    assert (fitted(kind).decision_function(TEXTS) == learnt(kind).decision_function(TEXTS)).all()


def test_another_seed_gives_other_scores(fitted: Maker, learnt: Maker):
    assert (fitted(seed=1).decision_function(TEXTS) != learnt().decision_function(TEXTS)).any()


@pytest.mark.parametrize("projection", ["auto", True])
def test_training_starts_between_the_descriptions_and_the_rows(projection: Any, make: Maker):
    """At almost no rate and with an identity projection, descriptions count as eight rows beside four of each label."""
    clf = make(max_steps=1, learning_rate=1e-9, head_learning_rate=1e-9, projection_head=projection).fit(TEXTS, Y)
    assert (clf.fit_result_.init, clf.head_.module.shape.projection) == ("descriptions", projection is True)
    vectors = clf.encoder_.encode(TEXTS)
    for column, name in enumerate(clf.classes_):
        rows = vectors[[own == name for own in Y]].sum(axis=0)
        label = 8 * clf.label_vectors_[name].anchor("descriptions") + rows
        expected = vectors @ label / np.linalg.norm(label)
        assert np.abs(clf.decision_function(TEXTS)[:, column] - expected).max() < 5e-3


def test_labels_that_start_at_random_use_the_papers_projection(make: Maker):
    assert make(labels=None).fit(TEXTS, Y).head_.module.shape.projection
    assert make(init="random").fit(TEXTS, Y).head_.module.shape.projection
    assert not make(init="random", projection_head=False).fit(TEXTS, Y).head_.module.shape.projection


# ---- scikit-learn


def test_fit_learns_names_that_end_in_an_underscore_and_changes_no_parameter(make: Maker):
    clf = make()
    before = dict(vars(clf))
    assert clf.fit(TEXTS, Y) is clf
    assert all(vars(clf)[name] is value for name, value in before.items())
    assert all(name.endswith("_") for name in set(vars(clf)) - set(before))


def test_a_second_fit_forgets_the_first(make: Maker):
    clf = make(labels=None).fit(TEXTS, Y)
    clf.fit(TEXTS, ["a", "b"] * 6)
    fresh = make(labels=None).fit(TEXTS, ["a", "b"] * 6)
    assert list(clf.classes_) == ["a", "b"]
    assert (clf.decision_function(TEXTS) == fresh.decision_function(TEXTS)).all()


def test_the_callers_encoder_is_not_changed(fitted: Maker, encoders: dict[str, Encoder]):
    before = encoders["float32"].encode(TEXTS)
    clf = fitted()
    assert (encoders["float32"].encode(TEXTS) == before).all()
    assert np.abs(clf.encoder_.encode(TEXTS) - before).max() > 1e-3


def test_a_clone_fits_to_the_same_bits(learnt: Maker):
    clf = learnt()
    twin = clone(clf)
    assert not hasattr(twin, "classes_")
    assert (twin.fit(TEXTS, Y).decision_function(TEXTS) == clf.decision_function(TEXTS)).all()


@pytest.mark.slow
def test_a_pipeline_a_grid_search_and_cross_validation_work(make: Maker):
    pipeline = make_pipeline(FunctionTransformer(lambda texts: [text.lower() for text in texts]), make(max_steps=1))
    assert pipeline.fit([text.upper() for text in TEXTS], Y).predict(TEXTS).shape == (12,)
    search = GridSearchCV(
        make(max_steps=1),
        {"config": [{"objective": "lacon"}, {"objective": "cross-entropy"}]},
        cv=2,
        error_score="raise",
    )
    assert set(search.fit(TEXTS, Y).best_params_) == {"config"}
    assert cross_val_score(make(max_steps=1), PAIRS, Y, cv=2, error_score="raise").shape == (2,)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"head": "lsan"}, "head 'lsan' gives logits"),
        ({"objective": "ce"}, "objective must be one of"),
        ({"learning_rate": "base"}, "learning_rate must be a number or 'auto'. Got 'base'"),
        ({"threshold": 2}, "threshold must be a number at least -1 and at most 1"),
        ({"heads": 5}, "heads must divide the width of the encoder, 32"),
        ({"seed": None}, "seed must be a whole number at least 0. Got None instead"),
        ({"labels": 3}, "labels must be a LabelSpace"),
        ({"encoder": 3}, "encoder must be a name"),
    ],
)
def test_an_invalid_parameter_is_refused_at_fit(options: dict[str, Any], message: str, make: Maker):
    with pytest.raises(ConfigError, match=message):
        make(**options).fit(TEXTS, Y)


# ---- few labels, partial labels, none


def test_rows_without_a_label_are_left_out(make: Maker):
    nothing = {1: None, 5: -1, 7: "", 10: np.nan}
    clf = make().fit(TEXTS, [nothing.get(row, name) for row, name in enumerate(Y)])
    kept = [row for row in range(12) if row not in nothing]
    alone = make().fit([TEXTS[row] for row in kept], [Y[row] for row in kept])
    assert (clf.fit_result_.labelled, clf.fit_result_.unlabelled) == (8, 4)
    assert (clf.decision_function(TEXTS) == alone.decision_function(TEXTS)).all()


def test_a_text_with_rows_of_different_labels_is_told_of(make: Maker):
    texts, labels = [*TEXTS, TEXTS[0], TEXTS[1]], [*Y, "world", "sports"]
    said = rf"1 of the 12 labelled documents have rows with different labels, such as '{TEXTS[0]}' \(sports, world\)"
    with pytest.warns(LabelSpaceWarning, match=said) as told:
        make().fit(texts, labels)
    assert told[0].filename == __file__


def test_an_iterator_of_unlabelled_rows_chooses_the_rate_for_descriptions(make: Maker):
    told = make().fit(iter(TEXTS), [None] * 12).fit_result_
    assert told.descriptions.pool_documents == make().fit(TEXTS).fit_result_.descriptions.pool_documents == 12


@pytest.mark.parametrize("given", [np.array, iter])
def test_without_a_label_every_document_counts_as_unlabelled(given: Callable[..., Any], make: Maker):
    assert make().fit(given(TEXTS)).fit_result_.unlabelled == 12


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore:'world' has few or no labelled rows")
def test_a_label_without_rows_keeps_the_recall_of_its_descriptions(make: Maker):
    """Two labels have sixty rows each, the third has none, and the rates are high enough to learn."""
    labels = {name: TEXTS[start : start + 4 : 2] for name, start in (("sports", 0), ("money", 4), ("world", 8))}
    training = {"labels": labels, "max_steps": None, "epochs": 8, "description_steps": 20}
    alone = make(**training).fit()
    rows, own = [f"{text} {turn}" for turn in range(15) for text in TEXTS[:8]], Y[:8] * 15
    clf = make(**training).fit(rows, own)
    assert list(clf.classes_) == ["money", "sports", "world"]
    assert clf.fit_result_.prior.by_label == (pytest.approx(8 / 68), pytest.approx(8 / 68), 1.0)
    assert (clf.predict(TEXTS[8:]) == "world").mean() >= (alone.predict(TEXTS[8:]) == "world").mean() - 0.25
    assert clf.score(rows, own) > 0.8


def test_the_fewer_the_rows_the_more_the_descriptions_weigh(make: Maker):
    few = make().fit(TEXTS[::4], Y[::4]).fit_result_.prior
    many = make().fit([f"{text} {turn}" for turn in range(5) for text in TEXTS], Y * 5).fit_result_.prior
    assert (few.rows_per_label, few.weight, few.reason) == (1, pytest.approx(8 / 9), "rows per label")
    assert (many.rows_per_label, many.weight) == (20, pytest.approx(8 / 28))
    assert make(description_weight=0.7).fit(TEXTS, Y).fit_result_.prior.reason == "given"


def test_descriptions_that_the_rows_contradict_are_left_out(make: Maker):
    """Each label is described by the rows of the other, so every nearest description is wrong."""
    one, other = TEXTS[0], TEXTS[8]
    texts, y = [f"{text} {row}" for text in (one, other) for row in range(4)], ["sports"] * 4 + ["world"] * 4
    still = {"learning_rate": 1e-9, "head_learning_rate": 1e-9, "max_steps": 1}
    clf = make(labels={"sports": [other], "world": [one]}, **still).fit(texts, y)
    fit = clf.fit_result_
    assert (fit.prior.weight, fit.prior.reason, fit.init, fit.descriptions) == (0, "contradicted", "rows", None)
    assert fit.prior.agreement.contradicted == ("sports", "world")
    assert clf.score(texts, y) == 1.0, "labels start at their rows, so they differ before any training"
    right = make(labels={"sports": [one], "world": [other]}).fit(texts, y).fit_result_
    assert (right.prior.reason, right.init, right.prior.agreement.contradicted) == (
        "rows per label",
        "descriptions",
        (),
    )


@pytest.mark.parametrize("labels", [["money", "sports", "world"], LabelSpace.from_names(["money", "sports", "world"])])
def test_labels_named_by_words_start_at_their_verbalizers(labels: Any, make: Maker):
    fit = make(labels=labels).fit(TEXTS, Y).fit_result_
    assert (fit.prior.reason, fit.prior.weight, fit.init) == ("rows per label", pytest.approx(8 / 12), "descriptions")
    assert fit.descriptions is None, "there are no descriptions to train on"
    alone = make(labels=labels, max_steps=1, learning_rate=1e-12, head_learning_rate=1e-12).fit(TEXTS[::4], Y[::4])
    sentences = alone.encoder_.encode(alone.label_space_.verbalizers)
    placed = np.stack([alone.head_.embeddings[name] for name in alone.label_space_.names])
    assert (placed * sentences).sum(axis=1).min() > 0.9, "the verbalizer counts eight times as much as the row"


@pytest.mark.parametrize("names", [("0", "1", "2"), ("A", "B", "C"), ("LABEL_0", "LABEL_1", "LABEL_2")])
def test_labels_named_by_codes_start_at_random(names: tuple[str, ...], make: Maker):
    y = [names[("sports", "money", "world").index(name)] for name in Y]
    fit = make(labels=list(names)).fit(TEXTS, y).fit_result_
    assert (fit.prior.reason, fit.prior.weight, fit.prior.rate, fit.init) == ("no meaning", 0, 1, "random")


def test_codes_have_a_meaning_only_if_given_a_weight(make: Maker):
    names = ("0", "1", "2")
    y = [names[("sports", "money", "world").index(name)] for name in Y]
    assert make(labels=list(names), description_weight=0.5).fit(TEXTS, y).fit_result_.init == "descriptions"
    space = LabelSpace.from_names(names, template="A text of kind {label}.")
    assert make(labels=space).fit(TEXTS, y).fit_result_.init == "random", "a template around a code adds no meaning"
    renamed = space.rename(names[0], "sports").rename(names[1], "money").rename(names[2], "world")
    assert make(labels=renamed).fit(TEXTS, Y).fit_result_.init == "random", (
        "renaming keeps the verbalizers, which are still codes"
    )


def test_for_pairs_names_have_no_meaning(make: Maker):
    fit = make(labels=["money", "sports", "world"]).fit(PAIRS, Y).fit_result_
    assert (fit.prior.reason, fit.init) == ("no meaning", "random")


@pytest.mark.parametrize("given", [(None, None), (TEXTS, None), (TEXTS, [None] * 12)], ids=["nothing", "X", "empty y"])
def test_without_labelled_rows_it_trains_like_the_description_classifier(
    given: tuple[Any, Any], make: Maker, space: LabelSpace, encoders: dict[str, Encoder], short_search: SearchConfig
):
    clf = make(description_steps=4).fit(*given)
    peer = DescriptionClassifier(space, encoders["float32"], max_steps=4, search=short_search).fit(given[0])
    assert (clf.encoder_.encode(TEXTS) == peer.encoder_.encode(TEXTS)).all()
    assert clf.decision_function(TEXTS) == pytest.approx(peer.decision_function(TEXTS), abs=1e-6)
    assert clf.head_.module is None
    assert clf.fit_result_.curve is None
    assert clf.fit_result_.descriptions.curve.losses == peer.fit_result_.curve.losses


def test_training_on_rows_starts_where_training_on_descriptions_ends(make: Maker):
    """At a rate too low to move weights, the encoder equals the one trained without labels on the same texts."""
    still = {"learning_rate": 1e-12, "head_learning_rate": 1e-12, "max_steps": 1, "description_steps": 4}
    alone = make(**still).fit(TEXTS)
    clf = make(**still).fit(TEXTS, [name if row % 4 == 0 else None for row, name in enumerate(Y)])
    assert clf.fit_result_.descriptions.rate == alone.fit_result_.descriptions.rate
    assert alone.fit_result_.descriptions.rate.reason == "uniformity"
    assert clf.encoder_.encode(TEXTS) == pytest.approx(alone.encoder_.encode(TEXTS), abs=1e-6)
    assert clf.fit_result_.descriptions.curve.losses == alone.fit_result_.descriptions.curve.losses
    again = make(**still | {"description_steps": 0}, encoder=alone.encoder_).fit(TEXTS[::4], Y[::4])
    assert again.decision_function(TEXTS) == pytest.approx(clf.decision_function(TEXTS), abs=1e-5)


@pytest.mark.slow
def test_few_rows_move_the_encoder_less_than_many(make: Maker):
    """One row per label gets a ninth of the rates; without descriptions it gets all of them."""
    few = make().fit(TEXTS[::4], Y[::4]).fit_result_.prior
    assert (few.rate, make().fit(TEXTS, Y).fit_result_.prior.rate) == (pytest.approx(1 / 9), pytest.approx(4 / 12))
    for options in ({"description_weight": 0.0}, {"description_weight": 0.7}, {"labels": None}):
        assert make(**options).fit(TEXTS, Y).fit_result_.prior.rate == 1


def test_descriptions_without_weight_are_not_trained_on(make: Maker, learnt: Maker):
    assert make(description_weight=0.0).fit(TEXTS, Y).fit_result_.descriptions is None
    assert make(description_steps=0).fit(TEXTS, Y).fit_result_.descriptions is None
    assert make(labels=None).fit(TEXTS, Y).fit_result_.descriptions is None
    assert learnt().fit_result_.descriptions.curve.steps == 2
    with pytest.raises(ConfigError, match=r"description_steps must be 1 or more where no row has a label\. Got 0"):
        make(description_steps=0).fit()


@pytest.mark.parametrize("asked", ["balanced", {"world": 3.0, "money": np.float32(2)}])
def test_class_weights_decide_how_often_each_label_is_drawn(asked: Any, make: Maker, monkeypatch: pytest.MonkeyPatch):
    texts, y = TEXTS + TEXTS[:4] * 2, Y + Y[:4] * 2
    seen: list[int] = []
    gradient = loop.batch_gradient

    def spy(encoder: Any, head: Any, batch: Any, *rest: Any, **more: Any) -> Any:
        seen.extend(batch.targets.tolist())
        return gradient(encoder, head, batch, *rest, **more)

    monkeypatch.setattr(loop, "batch_gradient", spy)
    clf = make(class_weight=asked, batch_size=4, max_steps=None, epochs=2).fit(texts, y)
    assert clf.fit_result_.curve.steps == 2 * 5, "class weights do not change the length of an epoch"
    found, names = np.bincount(seen) / 2, sorted(set(y))
    rows = np.array([y.count(name) for name in names])
    weights = 1 / rows if asked == "balanced" else np.array([asked.get(name, 1) for name in names])
    assert found == pytest.approx(len(y) * weights * rows / (weights * rows).sum(), abs=1)
    assert clone(clf).class_weight == asked
    assert (
        clf.training_config().from_dict(json.loads(json.dumps(clf.training_config().to_dict()))).class_weight == asked
    )


def test_a_class_weight_of_an_unknown_label_or_of_zero_is_refused(make: Maker):
    with pytest.raises(ConfigError, match=r"class_weight has a weight for 'sport', which is no label\. Did you mean"):
        make(class_weight={"sport": 2}).fit(TEXTS, Y)
    with pytest.raises(ConfigError, match=r"class_weight has a weight for 'sport', which is no label"):
        make(class_weight={"sport": 2}, encoder="there-is-none").fit()
    with pytest.raises(ConfigError, match=r"class_weight has a weight for 'sport', which is no label\. Did you mean"):
        make(class_weight={"sport": 2}, encoder="there-is-none", labels=None).fit(TEXTS, Y)
    with pytest.raises(ConfigError, match=r"class_weight\['sports'\] must be a number above 0"):
        make(class_weight={"sports": 0}).fit(TEXTS, Y)


def test_class_weights_follow_renamed_and_removed_labels(make: Maker, tmp_path: Path):
    clf = make(class_weight={"sports ": 2.0, "money": 3.0}, max_steps=1).fit(TEXTS, Y)
    clf.rename_label("sports", "games")
    clf.remove_label("money")
    clf.save(tmp_path / "model")
    again = load(tmp_path / "model")
    assert isinstance(again, LaConClassifier)
    assert again.class_weight == {"games": 2.0}
    assert again.fit(TEXTS, ["games" if name == "sports" else None if name == "money" else name for name in Y])
    assert hash(again.training_config()) == hash(clf.training_config())


def test_training_runs_without_instance_and_label_weights(make: Maker):
    for options in ({}, {"regularizer_weight": 0.0}, {"max_tokens_in_memory": 8}):
        clf = make(instance_weight=0.0, label_weight=0.0, labels=None, **options).fit(TEXTS, Y)
        assert np.isfinite(clf.fit_result_.curve.losses).all()


def test_rows_held_out_stop_training_early(make: Maker):
    clf = make(validation=0.25, patience=1, epochs=20, max_steps=None, learning_rate=0.3, head_learning_rate=0.9)
    fit = clf.fit(TEXTS, Y).fit_result_
    assert (fit.labelled, fit.held_out, fit.curve.stop_reason) == (12, 3, "patience")
    assert fit.curve.best_step < fit.curve.steps < 20


# ---- pairs


def test_pairs_can_be_tuples_an_array_or_a_table_of_two_text_columns():
    expected = PAIRS[:3]
    firsts, seconds = zip(*expected, strict=True)
    for X in (
        expected,
        [list(pair) for pair in expected],
        iter(expected),
        np.array(expected),
        np.array(expected, dtype=object),
        pd.DataFrame({"text": firsts, "text_pair": seconds}),
        pl.DataFrame({"text": firsts, "text_pair": seconds}),
        pl.DataFrame({"text": firsts, "text_pair": seconds}).to_arrow(),
    ):
        assert as_texts_or_pairs(X).rows == expected
    assert as_texts_or_pairs(pd.DataFrame({"text": firsts, "id": [1, 2, 3]})).rows == list(firsts)
    assert as_texts_or_pairs(pd.Series(firsts)).rows == list(firsts)
    named = pd.DataFrame({"id": [1, 2, 3], "text": firsts, "text_pair": seconds})
    assert as_texts_or_pairs(named).rows == as_texts_or_pairs(named[["text", "text_pair"]]).rows == expected


def test_a_table_of_texts_and_labels_is_not_read_as_pairs(make: Maker):
    table = pd.DataFrame({"review": TEXTS, "label": Y})
    for X in (table, pl.DataFrame(table), pl.DataFrame(table).to_arrow()):
        with pytest.raises(ColumnError, match=r"pass the column of texts, for example X\['review'\]"):
            make().fit(X, Y)
    assert as_texts_or_pairs(table[["review"]]).rows == as_texts_or_pairs(table.assign(label=0)).rows == list(TEXTS)


def test_a_table_of_pairs_needs_no_label(make: Maker):
    firsts, seconds = zip(*PAIRS, strict=True)
    table = pd.DataFrame({"text": firsts, "text_pair": seconds})
    for X in (table, pl.DataFrame(table).to_arrow()):
        clf = make().fit(X)
        assert clf.reads_ is Kind.PAIRS
        assert clf.predict(PAIRS).shape == clf.predict(table).shape == (12,)


@each_kind
def test_pairs_are_learnt_and_their_order_matters(kind: str, learnt: Maker):
    clf = learnt(kind, pairs=True)
    scores = clf.decision_function(PAIRS)
    assert clf.predict(np.array(PAIRS)).shape == (12,)
    assert (clf.decision_function([(b, a) for a, b in PAIRS]) != scores).any()


def test_models_of_pairs_and_of_texts_refuse_each_others_input(learnt: Maker):
    with pytest.raises(InputError, match=r"fitted on pairs of texts\. Got texts"):
        learnt(pairs=True).predict(TEXTS)
    with pytest.raises(InputError, match=r"fitted on texts\. Got pairs of texts"):
        learnt().predict(PAIRS)


@pytest.mark.parametrize(
    ("X", "message"),
    [
        ([("a", "b"), ("a", None)], r"X\[1\]\[1\] is missing \(None\)"),
        ([("a", "b"), (float("nan"), "b")], r"X\[1\]\[0\] is missing \(nan\)"),
        ([("a", "b"), ("a",)], r"X\[1\] must be a pair of texts, as X\[0\] is\. Got 1 values"),
        ([("a", "b"), "a"], r"X\[1\] must be a pair of texts, as X\[0\] is\. Got a str"),
        (["a", ("a", "b")], r"X\[1\] is not a text"),
        (np.array([["a", "b", "c"]]), "must have one dimension, or one column"),
    ],
)
def test_a_pair_with_a_missing_half_is_named(X: Any, message: str):
    with pytest.raises(InputError, match=message):
        as_texts_or_pairs(X)


def test_an_empty_half_is_kept_with_one_warning():
    with pytest.warns(LabelSpaceWarning, match=r"empty or white space \(first: X\[0\]\[1\]\)"):
        assert as_texts_or_pairs([("a", ""), ("b", " ")]).rows == [("a", ""), ("b", " ")]


def test_white_space_around_names_in_y_is_ignored(make: Maker):
    plain, padded = make(labels=None).fit(TEXTS, Y), [f" {name} " for name in Y]
    clf = make(labels=None).fit(TEXTS, padded)
    assert clf.label_space_.names == plain.label_space_.names == ("money", "sports", "world")
    assert (clf.decision_function(TEXTS) == plain.decision_function(TEXTS)).all()
    assert clf.score(TEXTS, padded) == plain.score(TEXTS, Y)
    found, expected = evaluate(clf, TEXTS, padded, baselines=False), evaluate(plain, TEXTS, Y, baselines=False)
    assert found.metrics == expected.metrics


# ---- bad input


@pytest.mark.parametrize(
    ("X", "y", "message"),
    [
        (TEXTS, Y[:3], r"y must hold one label for each of the 12 documents\. Got 3"),
        (TEXTS[:2], ["sports", "mony"], r"y\[1\] is 'mony', which is no label\. Did you mean 'money'"),
        (None, Y, "y names labels, and X is None"),
        ([*TEXTS[:11], None], Y, r"X\[11\] is missing"),
        ("a text", Y, "single str"),
    ],
)
def test_invalid_documents_and_labels_are_refused_in_one_line(X: Any, y: Any, message: str, make: Maker):
    with pytest.raises(InputError, match=message) as error:
        make().fit(X, y)
    assert "\n" not in str(error.value)


def test_rows_of_a_single_label_leave_the_descriptions_to_learn_from(make: Maker):
    none = make().fit(TEXTS)
    with pytest.warns(LabelSpaceWarning, match="all 1 labelled rows have the label 'sports'.* Label rows of another"):
        one = make().fit(TEXTS, ["sports", *[None] * 11])
    assert (one.decision_function(TEXTS) == none.decision_function(TEXTS)).all()
    assert one.fit_result_.labelled == 0
    with pytest.raises(InputError, match=r"all 1 labelled rows .* nothing to tell apart"):
        make(description_steps=0).fit(TEXTS, ["sports", *[None] * 11])
    with pytest.raises(InputError, match=r"all 12 labelled rows .* nothing to tell apart"):
        make(labels=["sports", "money"]).fit(TEXTS, ["sports"] * 12)


def test_a_label_with_far_fewer_rows_than_another_is_told(make: Maker):
    texts = [f"{text} {place}" for place in range(2) for text in TEXTS]
    of_label = {name: [text for text, own in zip(texts, Y * 2, strict=True) if own == name] for name in set(Y)}
    rows = [*((text, "sports") for text in of_label["sports"]), *((text, "money") for text in of_label["money"][:7])]
    X, y = zip(*rows, strict=True)
    assert y.count("sports") == 8
    with pytest.warns(LabelSpaceWarning, match="^'world' has few or no labelled rows, and others up to 8"):
        make(epochs=1).fit(X, y)
    make(epochs=1).fit(X[1:], y[1:])  # seven rows are too few to say so


@pytest.mark.filterwarnings("ignore:'world' has few or no labelled rows")
def test_a_label_with_few_rows_is_placed_anew_after_training(make: Maker):
    X, y = [*TEXTS[:8], *(f"{text} again" for text in TEXTS[:8]), TEXTS[8]], [*Y[:8], *Y[:8], "world"]
    clf = make(epochs=2, max_steps=None).fit(X, y)
    space, encoder, rows = clf.label_space_.reorder(sorted(set(Y))), clf.encoder_, tokenize(clf.encoder_, X)
    targets = np.array([space.index(name) for name in y])
    sums = sums_of_rows(encoder, rows, targets, 3, words=False)
    placed = place_labels(label_vectors(encoder, space, words=False), sums, np.bincount(targets))
    found = np.stack([clf.head_.embeddings[name] for name in space.names])
    assert found[2] == pytest.approx(placed[2], abs=1e-4)
    assert (np.abs(found[:2] - placed[:2]).max(axis=1) > 1e-3).all(), "the others keep what they learnt"


@pytest.mark.parametrize(
    ("y", "message"),
    [
        (["sports"] * 12, "y must name two labels at least, as text, where labels is None. Got 1"),
        (list(range(12)), r"y\[0\] is the number 0, and labels is None.* pass names in y"),
        (np.array([1.0, np.nan] * 6), r"y\[0\] is the number .*1\.0.* pass names in y"),
        ([None] * 12, "Got 0 instead"),
        (None, "no row has a label and no label has a description"),
    ],
)
def test_a_y_with_too_few_labels_is_refused_in_one_line(y: Any, message: str, make: Maker):
    with pytest.raises(InputError, match=message):
        make(labels=None).fit(TEXTS, y)


def test_nothing_to_learn_from_is_refused_in_one_line(make: Maker):
    with pytest.raises(InputError, match="no row has a label and no label has a description"):
        make(labels=["sports", "money"]).fit(TEXTS)


def test_a_label_with_one_row_is_refused_if_rows_are_held_out(make: Maker):
    make().fit(TEXTS[:9], Y[:9])
    with pytest.raises(InputError, match="'world' has a single one"):
        make(validation=0.2).fit(TEXTS[:9], Y[:9])


# ---- other spaces, edits, explanations


def test_another_space_is_scored_by_name_and_by_description(learnt: Maker, space: LabelSpace):
    clf = learnt()
    own = clf.scores(TEXTS, space)
    turned = space.reorder(["world", "money", "sports"])
    assert (clf.scores(TEXTS, turned) == own[:, [2, 1, 0]]).all()
    wider = space.add(LabelSpace.from_dict({"film": ["A film or a book."], "food": []})["film"])
    assert (clf.scores(TEXTS, wider)[:, :3] == own).all()
    assert np.isfinite(clf.scores(TEXTS, LabelSpace.from_names(["film", "food"]))).all()
    with pytest.raises(InputError, match=r"no logit for 'film'; it knows money, sports, world"):
        learnt("cross-entropy").scores(TEXTS, wider)


@pytest.mark.parametrize("kind", ["lacon", "fusion"])
def test_adding_renaming_and_removing_changes_no_other_score(kind: str, fitted: Maker):
    clf = fitted(kind)
    before = clf.scores(TEXTS, clf.label_space_)
    change = clf.add_label({"name": "film", "descriptions": ["A film or a book."]})
    assert change.retrain
    assert (clf.scores(TEXTS, clf.label_space_)[:, :3] == before).all()
    clf.rename_label("sports", "Sport")
    clf.remove_label("money")
    assert list(clf.classes_) == ["Sport", "film", "world"]
    assert (clf.scores(TEXTS, clf.label_space_)[:, :2] == before[:, [0, 2]]).all()


def test_a_model_with_logits_renames_and_removes_but_does_not_add(fitted: Maker):
    clf = fitted("cross-entropy")
    before = clf.scores(TEXTS, clf.label_space_)
    with pytest.raises(InputError, match="has no logit for 'film'; call fit"):
        clf.add_label({"name": "film"})
    clf.rename_label("sports", " Sport ")
    clf.remove_label("money")
    assert (clf.scores(TEXTS, clf.label_space_) == before[:, [0, 2]]).all()


def test_an_explanation_has_label_score_and_nearest_descriptions(learnt: Maker):
    clf = learnt()
    told = clf.explain(TEXTS[0])
    assert told.label == clf.predict([TEXTS[0]])[0]
    assert told.top[0].score == clf.decision_function([TEXTS[0]]).max()
    with pytest.raises(InputError, match="explain takes one text"):
        clf.explain(TEXTS)


def test_an_explanation_quotes_descriptions_only_if_the_model_uses_them(fitted: Maker, learnt: Maker):
    assert learnt().explain(TEXTS[0]).top[0].nearest
    assert not fitted(init="random").explain(TEXTS[0]).top[0].nearest
    assert not learnt("cross-entropy").explain(TEXTS[0]).top[0].nearest


def test_a_file_is_predicted_row_by_row(learnt: Maker, tmp_path: Path):
    clf = learnt()
    pd.DataFrame({"text": TEXTS}).to_csv(tmp_path / "in.csv", index=False)
    predict_file(clf, tmp_path / "in.csv", tmp_path / "out.csv", chunk_rows=12)
    assert list(pd.read_csv(tmp_path / "out.csv")["predicted_label"]) == list(clf.predict(TEXTS))


# ---- saving


@pytest.mark.parametrize(("kind", "dtype"), [*((kind, "float32") for kind in KINDS), ("lacon", "bfloat16")])
def test_a_loaded_model_gives_the_same_bits(kind: str, dtype: str, fitted: Maker, tmp_path: Path):
    lowest = "threshold" if kind in ("lacon", "fusion") else "min_probability"
    clf = fitted(kind, dtype, **{lowest: 0.1})
    again = load(clf.save(tmp_path / "model"))
    assert type(again) is LaConClassifier
    assert (again.decision_function(TEXTS) == clf.decision_function(TEXTS)).all()
    assert (again.predict_proba(TEXTS) == clf.predict_proba(TEXTS)).all()
    assert list(again.predict(TEXTS)) == list(clf.predict(TEXTS))
    assert again.fit_result_.to_dict() == json.loads(json.dumps(clf.state().fit))


def test_every_parameter_is_restored_and_fitting_again_gives_the_same_bits(fitted: Maker, make: Maker, tmp_path: Path):
    clf = fitted(class_weight="balanced", seed=3, projection_head=False)
    again = load(clf.save(tmp_path / "model"))
    before, after = clf.get_params(deep=False), again.get_params(deep=False)
    same = before.keys() - {"encoder", "config"}
    assert {name: after[name] for name in same} == {name: before[name] for name in same}
    assert again.training_config() == clf.training_config()
    found = again.fit(TEXTS, Y).decision_function(TEXTS)
    assert np.abs(found - clf.decision_function(TEXTS)).max() < 1e-6
    from_y = load(make(labels=None).fit(TEXTS, Y).save(tmp_path / "from y"))
    assert from_y.labels is None


@pytest.mark.slow
def test_parameters_given_as_numpy_scalars_are_saved(fitted: Maker, tmp_path: Path):
    options = {"seed": np.int64(3), "epochs": np.int32(2), "encoder_dropout": np.bool_(False)}
    for objective, lowest in (("lacon", "threshold"), ("cross-entropy", "min_probability")):
        given = {**options, lowest: np.float32(0.4)}
        clf = fitted(objective=objective, **given)
        own = fitted(objective=objective, **{name: value.item() for name, value in given.items()})
        again = load(clf.save(tmp_path / objective))
        for other in (own, again):
            assert (other.predict_proba(TEXTS) == clf.predict_proba(TEXTS)).all()
            assert list(other.predict(TEXTS)) == list(clf.predict(TEXTS))
    again = load(load(tmp_path / "lacon").fit(None, None).save(tmp_path / "no row"))
    assert not again.training_config().encoder_dropout


def test_models_of_pairs_of_descriptions_and_edited_ones_are_restored(
    make: Maker, fitted: Maker, learnt: Maker, tmp_path: Path
):
    pairs = learnt(pairs=True)
    again = load(pairs.save(tmp_path / "pairs"))
    assert (again.decision_function(PAIRS) == pairs.decision_function(PAIRS)).all()
    unlabelled = make().fit()
    assert (load(unlabelled.save(tmp_path / "none")).predict_proba(TEXTS) == unlabelled.predict_proba(TEXTS)).all()
    for kind in ("lacon", "cross-entropy"):
        edited = fitted(kind)
        edited.remove_label("world")
        edited.rename_label("sports", "Sport")
        again = load(edited.save(tmp_path / kind))
        assert list(again.classes_) == ["Sport", "money"]
        assert (again.decision_function(TEXTS) == edited.decision_function(TEXTS)).all()


def test_sentence_transformers_opens_the_folder_and_nothing_in_it_is_a_pickle(learnt: Maker, tmp_path: Path):
    clf = learnt()
    folder = clf.save(tmp_path / "model")
    found = SentenceTransformer(str(folder), device="cpu").encode(TEXTS)
    assert np.abs(found - clf.encoder_.encode(TEXTS)).max() < 1e-5
    files = [path for path in folder.rglob("*") if path.is_file()]
    assert {path.suffix for path in files} <= {".json", ".safetensors", ".yaml", ".md", ".txt"}
    with safe_open(folder / "lacon.safetensors", framework="numpy") as tensors:
        assert {name.split(".")[0] for name in tensors.keys()} == {"head", "embeddings"}  # noqa: SIM118
    card = (folder / "README.md").read_text(encoding="utf-8")
    for words in ("trained on 12 labelled rows", "| objective | lacon |", "rows per label", "No row was held out"):
        assert words in card, words


@pytest.mark.slow
def test_the_card_tells_no_score_of_other_labels(make: Maker, tmp_path: Path):
    clf = make(validation=0.25).fit(TEXTS, Y)
    change = {
        "fitted": lambda _: None,
        "renamed": lambda model: model.rename_label("sports", "Sport"),
        "removed": lambda model: model.remove_label("world"),
        "added": lambda model: model.add_label({"name": "zoo", "descriptions": ["Animals."]}),
    }
    folder = clf.save(tmp_path / "model")
    for name, changed in change.items():
        model = load(folder)
        changed(model)
        again = load(model.save(tmp_path / name))
        card = (again.save(tmp_path / "again") / "README.md").read_text(encoding="utf-8")
        assert ("macro-F1" in card) == (name in {"fitted", "renamed"}), name
        assert ("No row was held out with these labels" in card) == (name in {"removed", "added"}), name


def test_a_label_added_by_hand_starts_at_its_description(learnt: Maker, tmp_path: Path):
    for kind in ("lacon", "cross-entropy"):
        folder = learnt(kind).save(tmp_path / kind)
        before = load(folder).decision_function(TEXTS)
        text = (folder / "label_space.yaml").read_text(encoding="utf-8")
        (folder / "label_space.yaml").write_text(
            text + "  - name: zoo\n    descriptions: [Animals.]\n", encoding="utf-8"
        )
        if kind == "lacon":
            assert (load(folder).decision_function(TEXTS)[:, :3] == before).all()
            continue
        with pytest.raises(ModelFolderError, match="the label 'zoo' in its label file and no logit for it"):
            load(folder)


def test_descriptions_edited_by_hand_take_effect_without_labelled_rows(make: Maker, tmp_path: Path):
    folder = make().fit().save(tmp_path / "model")
    before, path = load(folder), folder / "label_space.yaml"
    text = path.read_text(encoding="utf-8")
    edited = text.replace("War, peace and elections.", "Films and music.")
    assert edited != text
    path.write_text(edited, encoding="utf-8")
    found = load(folder).decision_function(TEXTS) != before.decision_function(TEXTS)
    assert found.any(axis=0).tolist() == [name == "world" for name in before.classes_]


def test_a_label_renamed_by_hand_keeps_what_was_learnt(learnt: Maker, tmp_path: Path):
    folder = learnt().save(tmp_path / "model")
    path = folder / "label_space.yaml"
    path.write_text(path.read_text(encoding="utf-8").replace("name: sports", "name: Sport"), encoding="utf-8")
    with pytest.raises(ModelFolderError, match=r"learnt the label 'sports', .* has 'Sport' in place .* rename_label"):
        load(folder)


@pytest.mark.parametrize("kind", ["lacon", "lsan"])
def test_the_order_of_the_labels_does_not_matter(kind: str, make: Maker, space: LabelSpace):
    turned = space.reorder(["world", "sports", "money"])
    first, second = (make(kind, labels=list(one.names)).fit(TEXTS, Y) for one in (space, turned))
    assert (first.predict_proba(TEXTS) == second.predict_proba(TEXTS)).all()


def test_the_order_of_labels_with_descriptions_changes_no_more_than_rounding(
    fitted: Maker, learnt: Maker, space: LabelSpace
):
    """Descriptions are trained on in the given order, as in DescriptionClassifier."""
    found = fitted(labels=space.reorder(["world", "sports", "money"])).predict_proba(TEXTS)
    assert found == pytest.approx(learnt().predict_proba(TEXTS), abs=1e-4)


def test_ctrl_c_before_the_end_of_the_first_epoch_leaves_no_classifier(make: Maker):
    def stop(step: int, _values: dict[str, float]) -> None:
        if step == last:
            raise KeyboardInterrupt

    several = {"labels": None, "max_steps": None, "epochs": 3, "batch_size": 4, "callbacks": [stop]}
    last = 2
    with pytest.raises(KeyboardInterrupt):
        make(**several).fit(TEXTS, Y)
    last = 5
    with pytest.warns(LabelSpaceWarning, match="interrupted at step 5; the weights of step 3 are kept"):
        clf = make(**several).fit(TEXTS, Y)
    assert clf.fit_result_.curve.best_step == 3


@pytest.mark.parametrize("y", [Y, None], ids=["labelled", "descriptions"])
def test_ctrl_c_while_encoding_labels_keeps_the_previous_model(
    make: Maker, monkeypatch: pytest.MonkeyPatch, y: list[str] | None
):
    def stop(*given: object) -> None:
        raise KeyboardInterrupt

    clf = make().fit(TEXTS, Y)
    before = dict(vars(clf))
    monkeypatch.setattr(bi_encoder, "encode_labels", stop)
    with pytest.raises(KeyboardInterrupt):
        clf.fit(TEXTS, y)
    assert vars(clf) == before


def test_ctrl_c_keeps_the_start_if_no_epoch_was_better(make: Maker, monkeypatch: pytest.MonkeyPatch):
    def stop(step: int, values: dict[str, float]) -> None:
        if step == 6 and "loss" in values:
            raise KeyboardInterrupt

    monkeypatch.setattr(loop.Look, "better_than", lambda _, other: other is None)
    several = {"labels": None, "max_steps": None, "epochs": 3, "batch_size": 4, "validation": 0.25, "patience": 9}
    with pytest.warns(LabelSpaceWarning, match="interrupted at step 6; the weights of step 0 are kept"):
        clf = make(**several, callbacks=[stop]).fit(TEXTS, Y)
    assert [look.step for look in clf.fit_result_.curve.looks] == [0, 3]


def test_a_model_of_pairs_explains_a_pair(learnt: Maker):
    clf = learnt(pairs=True)
    told = clf.explain(PAIRS[0])
    assert (told.label, told.text) == (clf.predict(PAIRS[:1])[0], " | ".join(PAIRS[0]))
    for model, wrong, message in (
        (clf, TEXTS[0], "was fitted on pairs of texts. Got texts instead"),
        (clf, PAIRS[:2], "takes one pair of texts, a tuple. Got list instead"),
        (learnt(), PAIRS[0], "takes one text. Got tuple instead"),
    ):
        with pytest.raises(InputError, match=message):
            model.explain(wrong)


def test_pairs_can_be_objects_in_a_series_or_an_array(make: Maker, learnt: Maker):
    expected = learnt(pairs=True).decision_function(PAIRS)
    objects = np.empty(len(PAIRS), dtype=object)
    objects[:] = PAIRS
    for pairs in (pd.Series(PAIRS), objects):
        clf = make().fit(pairs, Y)
        assert clf.reads_ is Kind.PAIRS
        assert (clf.decision_function(pairs) == expected).all()


@pytest.mark.parametrize("missing", [np.nan, None])
def test_missing_labels_that_numpy_turned_into_text_are_refused(missing: object, make: Maker):
    y = np.array([*Y[:-1], missing], dtype=object).astype(str)
    with pytest.raises(InputError, match=f"y holds the text '{missing}', which numpy makes of a missing label"):
        make(labels=None).fit(TEXTS, y)
    assert str(missing) in make(labels=None).fit(TEXTS, [*Y[:-1], str(missing)]).classes_


@pytest.mark.parametrize("spoil", ["gone", "short", "header"])
def test_a_damaged_head_is_one_clear_error(spoil: str, learnt: Maker, tmp_path: Path):
    folder = learnt().save(tmp_path / "model")
    path, header = folder / "lacon.safetensors", json.loads((folder / "labelspace.json").read_text(encoding="utf-8"))
    if spoil == "gone":
        path.unlink()
    elif spoil == "short":
        tensors = load_file(path)
        tensors.pop("head.labels.vectors")
        save_file(tensors, path)
        header["files"].pop("lacon.safetensors")
    else:
        header["lacon"] = {"head": {"shape": 3}}
    (folder / "labelspace.json").write_text(json.dumps(header), encoding="utf-8")
    with pytest.raises(ModelFolderError, match=r"lacon\.safetensors|damaged") as error:
        load(folder)
    assert "\n" not in str(error.value)


def test_the_fingerprint_depends_on_the_head(make: Maker):
    clf = make("lacon").fit(TEXTS, Y)
    before = model_fingerprint(clf)
    assert model_fingerprint(clf) == before
    with torch.no_grad():
        next(iter(clf.head_.module.parameters())).add_(1)
    assert model_fingerprint(clf) != before
