"""scikit-learn's rules: init stores, fit checks and returns self, a second fit forgets the first, clone works."""

import inspect
import io
import itertools
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
import torch
from sklearn.base import BaseEstimator, TransformerMixin, clone
from sklearn.calibration import CalibratedClassifierCV
from sklearn.metrics import get_scorer, log_loss, roc_auc_score
from sklearn.model_selection import GridSearchCV, StratifiedKFold, cross_val_score
from sklearn.pipeline import make_pipeline
from sklearn.utils import Tags
from sklearn.utils.estimator_checks import parametrize_with_checks

import labelspace
from classify.conftest import METHODS, TEXTS, columns_of
from labelspace import (
    ConsensusClassifier,
    DescriptionClassifier,
    LabelSpace,
    LaConClassifier,
    UncertaintyClassifier,
    ZeroShotClassifier,
)
from labelspace.config import SearchConfig
from labelspace.encoders import Encoder
from labelspace.errors import ConfigError, InputError, LabelFileError, LabelSpaceWarning
from weights import weights_of

Maker = Callable[..., Any]

TINY = str(Path(__file__).parents[1] / "data" / "tiny-bert")
each_method = pytest.mark.parametrize("method", METHODS)
each_class = pytest.mark.parametrize("cls", [ZeroShotClassifier, DescriptionClassifier])
Y = ["sports", "money", "world", "world", "money", "sports"]


# ---- scikit-learn's own checks
#
# They feed tables of numbers, and whole numbers as labels. The tag says truthfully that X is documents, for which
# scikit-learn makes one check; a subclass that says otherwise runs them all, and these cannot hold:

NUMBERS = "its X is a table of numbers; ours is documents"
CLASSES = "its y is not made of the label space's names"
CANNOT_HOLD = {
    "check_fit_score_takes_y": CLASSES,
    "check_estimators_overwrite_params": CLASSES,
    "check_estimators_fit_returns_self": CLASSES,
    "check_readonly_memmap_input": CLASSES,
    "check_n_features_in_after_fitting": CLASSES,
    "check_positive_only_tag_during_fit": CLASSES,
    "check_estimators_dtypes": CLASSES,
    "check_dtype_object": CLASSES,
    "check_pipeline_consistency": CLASSES,
    "check_estimators_pickle": CLASSES,
    "check_classifiers_one_label": CLASSES,
    "check_classifiers_classes": CLASSES,
    "check_classifiers_train": CLASSES,
    "check_supervised_y_2d": CLASSES,
    "check_supervised_y_no_nan": "a missing label is an unlabelled document here; it asks for another message",
    "check_classifiers_regression_target": "an unknown label is named as such; it asks for another message",
    "check_decision_proba_consistency": CLASSES,
    "check_fit_idempotent": CLASSES,
    "check_fit_check_is_fitted": CLASSES,
    "check_n_features_in": CLASSES,
    "check_dont_overwrite_attributes": NUMBERS,
    "check_dont_overwrite_parameters": NUMBERS,
    "check_complex_data": NUMBERS,
    "check_estimators_empty_data_messages": "without a document fit still knows the labels",
    "check_estimators_nan_inf": NUMBERS,
    "check_estimator_sparse_array": NUMBERS,
    "check_estimator_sparse_matrix": NUMBERS,
    "check_f_contiguous_array_estimator": NUMBERS,
    "check_classifier_data_not_an_array": NUMBERS,
    "check_methods_sample_order_invariance": NUMBERS,
    "check_methods_subset_invariance": NUMBERS,
    "check_fit2d_1sample": NUMBERS,
    "check_fit2d_1feature": NUMBERS,
    "check_dict_unchanged": NUMBERS,
    "check_fit2d_predict1d": NUMBERS,
}


class _TakesTables:
    """Claims to take tables, so that scikit-learn runs all of its checks."""

    def __sklearn_tags__(self) -> Tags:
        tags = super().__sklearn_tags__()  # type: ignore[misc]
        tags.input_tags.two_d_array = True
        return tags


class _OnTables(_TakesTables, ZeroShotClassifier):  # type: ignore[misc]
    pass


class _TrainedOnTables(_TakesTables, DescriptionClassifier):  # type: ignore[misc]
    pass


def cannot_hold(estimator: BaseEstimator) -> dict[str, str]:
    trains = isinstance(estimator, _TrainedOnTables)  # it checks X first and refuses numbers before it reads y
    return {name: why for name, why in CANNOT_HOLD.items() if not (trains and name == "check_supervised_y_no_nan")}


@parametrize_with_checks(
    [_OnTables(["a", "b"], TINY), _TrainedOnTables(["a", "b"], TINY, max_steps=1)],
    expected_failed_checks=cannot_hold,
    **({"xfail_strict": True} if "xfail_strict" in inspect.signature(parametrize_with_checks).parameters else {}),
)
@pytest.mark.filterwarnings("ignore::sklearn.exceptions.SkipTestWarning")
def test_scikit_learns_own_checks_pass(estimator: BaseEstimator, check: Callable[[BaseEstimator], None]):
    check(estimator)


# ---- the important ones, on documents


@pytest.mark.parametrize(
    "cls", [ZeroShotClassifier, DescriptionClassifier, LaConClassifier, UncertaintyClassifier, ConsensusClassifier]
)
def test_init_stores_what_it_is_given_and_does_nothing_else(cls: type):
    """Sentinels would raise if anything were done with them."""
    sentinels = {name: object() for name in inspect.signature(cls).parameters}
    assert vars(cls(**sentinels)) == sentinels


@each_class
def test_the_tags_say_that_x_is_documents_and_y_is_optional(cls: type):
    tags = cls(["a", "b"]).__sklearn_tags__()
    assert (tags.input_tags.two_d_array, tags.input_tags.one_d_array, tags.input_tags.string) == (False, True, True)
    assert tags.target_tags.required is False
    assert tags.estimator_type == "classifier"


@each_method
def test_fit_returns_self_and_learns_names_that_end_in_an_underscore(method: str, make: Maker):
    clf = make(method)
    before = set(vars(clf))
    assert clf.fit() is clf
    learnt = set(vars(clf)) - before
    assert learnt == {
        "encoder_",
        "started_from_",
        "label_space_",
        "label_vectors_",
        "classes_",
        "reads_",
        "none_",
        "calibrated_",
    } | ({"fit_result_"} if method == "description" else set())


@each_method
def test_fit_changes_no_parameter(method: str, make: Maker):
    clf = make(method)
    before = clf.get_params()
    clf.fit(TEXTS, Y)
    after = clf.get_params()
    assert before.keys() == after.keys()
    assert all(after[name] is before[name] for name in before)


@pytest.mark.parametrize(
    "clf",
    [
        DescriptionClassifier(["sports", "money"], TINY),
        DescriptionClassifier(["sports", "money"], TINY, learning_rate="uniformity"),
        LaConClassifier(["sports", "money", "world"], TINY),
        UncertaintyClassifier(["sports", "money", "world"], TINY, cache=None),
    ],
    ids=["descriptions", "rate by uniformity", "rows", "frozen encoder"],
)
def test_a_fit_inside_inference_mode_says_what_to_do(clf: Any):
    given = (TEXTS,) if isinstance(clf, DescriptionClassifier) else (TEXTS, Y)
    with (
        torch.inference_mode(),
        pytest.raises(ConfigError, match=r"^torch\.inference_mode\(\) keeps no gradients; load"),
    ):
        clf.fit(*given)


def test_a_second_fit_forgets_the_first(make: Maker, space: LabelSpace):
    """The second fit starts from the given encoder and does not know the labels of the first."""
    other = LabelSpace.from_names(["film", "food"])
    clf = make(labels=space).fit()
    clf.set_params(labels=other).fit()
    fresh = make(labels=other).fit()
    assert list(clf.classes_) == ["film", "food"]
    assert set(clf.label_vectors_) == {"film", "food"}
    assert (clf.decision_function(TEXTS) == fresh.decision_function(TEXTS)).all()
    assert clf.fit_result_.curve.losses == fresh.fit_result_.curve.losses


def test_fit_trains_its_own_encoder_and_not_the_callers(make: Maker, encoders: dict[str, Encoder]):
    before = weights_of(encoders["float32"])
    clf = make(learning_rate=1e-2).fit()
    after = weights_of(encoders["float32"])
    assert all(torch.equal(before[name], after[name]) for name in before)
    assert clf.encoder is encoders["float32"]
    trained = weights_of(clf.encoder_)
    assert not all(torch.equal(before[name], trained[name]) for name in before)


@each_method
def test_predicting_changes_no_stored_attribute(method: str, fitted: Maker):
    clf = fitted(method)
    before = {name: id(value) for name, value in vars(clf).items()}
    first = clf.decision_function(TEXTS)
    for ask in (clf.predict, clf.predict_proba, clf.decision_function):
        ask(TEXTS)
    assert {name: id(value) for name, value in vars(clf).items()} == before
    assert (clf.decision_function(TEXTS) == first).all()


@each_method
def test_a_clone_is_unfitted_and_fits_to_the_same_bits(method: str, fitted: Maker):
    clf = fitted(method, threshold=0.1)
    twin = clone(clf)
    assert not hasattr(twin, "classes_")
    assert twin.get_params().keys() == clf.get_params().keys()
    assert (twin.threshold, twin.labels) == (0.1, clf.labels)
    assert (twin.fit().decision_function(TEXTS) == clf.decision_function(TEXTS)).all()


def test_set_params_reaches_the_next_fit(make: Maker):
    clf = make().fit()
    clf.set_params(max_steps=2, temperature=0.5).fit()
    assert clf.fit_result_.curve.steps == 2
    with pytest.raises(ValueError, match="Invalid parameter 'max_step'"):
        clf.set_params(max_step=2)


@each_method
def test_neither_the_order_of_documents_nor_the_others_change_an_answer(method: str, fitted: Maker):
    """Holds in float32; in bfloat16 a vector may depend on its batch, as `Encoder` documents."""
    clf = fitted(method)
    whole = clf.decision_function(TEXTS)
    assert np.abs(clf.decision_function(TEXTS[::-1]) - whole[::-1]).max() < 1e-6
    assert np.abs(np.concatenate([clf.decision_function([text]) for text in TEXTS]) - whole).max() < 1e-6


# ---- company


class Lowercase(TransformerMixin, BaseEstimator):
    """A pipeline step before the classifier."""

    def fit(self, X: Any, y: Any = None) -> "Lowercase":
        return self

    def transform(self, X: list[str]) -> list[str]:
        return [text.lower() for text in X]

    def __sklearn_is_fitted__(self) -> bool:
        return True


@each_method
def test_a_pipeline_fits_and_predicts(method: str, make: Maker):
    pipeline = make_pipeline(Lowercase(), make(method)).fit(TEXTS)
    lowered = [text.lower() for text in TEXTS]
    assert list(pipeline.predict([text.upper() for text in TEXTS])) == list(pipeline[-1].predict(lowered))


@each_method
def test_cross_validation_scores_names(method: str, make: Maker):
    scores = cross_val_score(make(method), TEXTS, Y, cv=2)
    assert scores.shape == (2,)
    assert ((scores >= 0) & (scores <= 1)).all()
    clf = make(method).fit()
    y = clf.predict(TEXTS)
    assert clf.score(TEXTS, y) == 1.0


def test_a_grid_search_over_anchor_and_temperature_finds_its_best(make: Maker):
    grid = {"anchor": ["verbalizer", "descriptions", "both"], "temperature": [0.05, 0.5]}
    search = GridSearchCV(make("zero-shot"), grid, cv=2, error_score="raise").fit(TEXTS, Y)
    assert search.best_params_.keys() == grid.keys()
    assert search.cv_results_["mean_test_score"].shape == (6,)
    assert list(search.predict(TEXTS)) == list(search.best_estimator_.predict(TEXTS))
    assert list(search.classes_) == ["money", "sports", "world"]


def by_hand(metric: str, proba: dict[str, np.ndarray], y: list[str]) -> float:
    """Compute the metric from a vector of probabilities per label, independent of the classifier's column order."""
    names = sorted(proba)
    columns = np.column_stack([proba[name] for name in names])
    if metric == "neg_log_loss":
        # sklearn's own log loss, and the same from the definition.
        found = -log_loss(y, columns, labels=names)
        assert found == pytest.approx(np.mean([np.log(proba[name][row]) for row, name in enumerate(y)]), rel=1e-9)
        return found
    found = roc_auc_score(y, columns, multi_class="ovr", average="macro", labels=names)
    assert found == pytest.approx(
        np.mean([roc_auc_score([name == own for own in y], proba[name]) for name in names]), rel=1e-9
    )
    return found


@pytest.mark.parametrize(("method", "metric"), [("zero-shot", "neg_log_loss"), ("description", "roc_auc_ovr")])
def test_scorers_that_read_columns_are_right_for_any_order_of_labels(method: str, metric: str, make: Maker):
    """scikit-learn assumes that columns follow the sorted names in y, without asking the classifier."""
    names = ["sports", "money", "art"]
    texts = [f"{text} {extra}" for text in TEXTS for extra in ("music", "market", "league")]
    y = [names[(row * row + row // 5) % 3] for row in range(len(texts))]
    clf = make(method, labels=names, temperature=0.02).fit()
    # The column of each label is looked up by name in the label space; the softmax is written out.
    scores = clf.scores(texts, clf.label_space_).astype(np.float64)
    powers = np.exp((scores - scores.max(axis=1, keepdims=True)) / clf.temperature)
    proba = dict(zip(names, (powers / powers.sum(axis=1, keepdims=True)).T, strict=True))
    expected = by_hand(metric, proba, y)
    wrong = by_hand(metric, dict(zip(sorted(names), proba.values(), strict=True)), y)
    assert abs(wrong - expected) > 1e-3  # otherwise columns in label-file order would pass too
    assert get_scorer(metric)(clf, texts, y) == pytest.approx(expected, rel=1e-6)

    folds = StratifiedKFold(3)
    found = cross_val_score(make(method, labels=names, temperature=0.02), texts, y, cv=folds, scoring=metric)
    in_folds = [
        by_hand(metric, {name: column[rows] for name, column in proba.items()}, [y[row] for row in rows])
        for _, rows in folds.split(texts, y)
    ]
    assert found == pytest.approx(in_folds, rel=1e-4)


@pytest.mark.parametrize("metric", ["neg_log_loss", "roc_auc_ovr", "accuracy"])
def test_a_scorer_gives_the_same_for_every_order_of_the_labels(metric: str, make: Maker, space: LabelSpace):
    found = {
        get_scorer(metric)(make("zero-shot", labels=space.reorder(list(names))).fit(), TEXTS, Y)
        for names in itertools.permutations(space.names)
    }
    assert len(found) == 1


def test_the_columns_of_every_answer_follow_the_sorted_classes(make: Maker):
    clf = make("zero-shot", labels=["sports", "money", "art"]).fit()
    assert list(clf.classes_) == ["art", "money", "sports"]
    assert clf.label_space_.names == ("sports", "money", "art")
    expected = clf.scores(TEXTS, clf.label_space_)[:, [2, 1, 0]]
    assert (clf.decision_function(TEXTS) == expected).all()
    assert (clf.predict(TEXTS, return_scores=True)[1] == expected).all()
    assert (columns_of(clf, clf.decision_function(TEXTS), ["art"])[:, 0] == expected[:, 0]).all()
    powers = np.exp(expected.astype(np.float64) / clf.temperature)
    assert np.abs(clf.predict_proba(TEXTS) - powers / powers.sum(axis=1, keepdims=True)).max() < 1e-9


@each_method
def test_two_labels_have_one_decision_column_that_scorers_can_read(method: str, make: Maker):
    clf = make(method, labels=["sports", "money"]).fit()
    names, scores = clf.predict(TEXTS, return_scores=True)
    decision = clf.decision_function(TEXTS)
    assert (decision == scores[:, 1] - scores[:, 0]).all()
    assert [clf.classes_[int(value > 0)] for value in decision] == list(names)
    y = ["sports", "money"] * 3
    expected = roc_auc_score([name == "sports" for name in y], scores[:, 1] - scores[:, 0])
    assert get_scorer("roc_auc")(clf, TEXTS, y) == expected
    by_scikit = CalibratedClassifierCV(make(method, labels=["sports", "money"]), cv=2).fit(np.array(TEXTS), y)
    assert by_scikit.predict_proba(TEXTS).shape == (6, 2)


def test_labels_that_differ_in_the_form_of_a_letter_alone_are_scored_as_they_are(make: Maker):
    with pytest.warns(LabelSpaceWarning, match="alike"):
        clf = make("zero-shot", labels=["caf\u00e9", "cafe\u0301"]).fit()
    assert clf.score(TEXTS, list(clf.predict(TEXTS))) == 1


def test_a_score_leaves_out_documents_without_a_label(make: Maker):
    clf = make("zero-shot").fit()
    names = list(clf.predict(TEXTS))
    wrong = "money" if names[1] != "money" else "world"
    assert clf.score(TEXTS, [names[0], wrong, None, float("nan"), "", -1]) == 0.5
    assert clf.score(TEXTS, [names[0], wrong, *[None] * 4], sample_weight=[3, 1, 9, 9, 9, 9]) == 0.75
    with pytest.raises(InputError, match="sample_weight is 0 for every document that has a label"):
        clf.score(TEXTS, [names[0], wrong, *[None] * 4], sample_weight=[0, 0, 9, 9, 9, 9])
    clf.set_params(threshold=1.0)
    assert clf.score(TEXTS, names) == 0.0, "an abstention is never right"
    with pytest.warns(LabelSpaceWarning, match="y names 'Money', which is no label and counts as wrong. Did you mean"):
        assert clf.set_params(threshold=None).score(TEXTS, ["Money", *names[1:]]) == pytest.approx(5 / 6)
    with pytest.raises(InputError, match="y names no label"):
        clf.score(TEXTS, [None] * 6)
    with pytest.raises(InputError, match=r"one label for each of the 6 documents\. Got 2"):
        clf.score(TEXTS, names[:2])


# ---- y


@each_method
def test_an_unknown_name_in_y_is_refused_before_any_work(method: str, make: Maker, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(Encoder, "copy", lambda self: pytest.fail("work began"))
    with pytest.raises(InputError, match=r"y\[1\] is 'sprots', which is no label\. Did you mean 'sports'\?"):
        make(method).fit(TEXTS[:2], ["money", "sprots"])


@each_method
def test_y_of_another_length_is_refused(method: str, make: Maker):
    with pytest.raises(InputError, match=r"one label for each of the 6 documents\. Got 2"):
        make(method).fit(TEXTS, Y[:2])


@each_method
@pytest.mark.parametrize("X", [iter(TEXTS), "pool.csv", Path("pool.csv")])
def test_labels_for_an_iterator_of_documents_are_refused(method: str, X: Any, make: Maker):
    with pytest.raises(InputError, match="y goes with documents in memory"):
        make(method).fit(X, Y)


@each_method
def test_unlabelled_rows_are_accepted(method: str, make: Maker):
    make(method).fit(TEXTS, ["sports", None, -1, "", np.nan, "world"])


def test_labels_in_y_teach_nothing(make: Maker):
    one, other = make().fit(TEXTS, Y), make().fit(TEXTS, Y[::-1])
    assert (one.decision_function(TEXTS) == other.decision_function(TEXTS)).all()


# ---- parameters


@pytest.mark.parametrize("name", ["DescriptionClassifier", "LaConClassifier", "UncertaintyClassifier"])
@pytest.mark.parametrize(
    ("callbacks", "message"),
    [
        (print, r"must be a list of callables\. Got builtin_function_or_method instead; pass \[it\]"),
        (["tensorboard"], r"must be a list of callables\. Got list of other things instead"),
        (None, "Got NoneType instead"),
    ],
)
def test_invalid_callbacks_are_refused_before_training(name, callbacks, message, space):
    clf = getattr(labelspace, name)(space, "no such encoder", callbacks=callbacks)
    with pytest.raises(ConfigError, match=message):
        clf.fit(["a text", "another one"], list(space.names[:2]))


@pytest.mark.parametrize("wrong", [{"threshold": 2}, {"threshold": "0.5"}, {"temperature": 0}])
@pytest.mark.parametrize("ask", ["predict", "predict_proba", "explain"])
def test_an_invalid_parameter_set_after_fit_is_refused_before_encoding(
    fitted: Maker, monkeypatch: pytest.MonkeyPatch, wrong: dict[str, Any], ask: str
):
    clf = fitted("zero-shot")
    monkeypatch.setattr(Encoder, "encode", lambda *given, **more: pytest.fail("documents were encoded"))
    with pytest.raises(ConfigError, match=f"{next(iter(wrong))} must be a number"):
        getattr(clf.set_params(**wrong), ask)("a text" if ask == "explain" else ["a text"])


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"anchor": "mean"}, "anchor must be one of 'verbalizer', 'descriptions', 'both'"),
        ({"temperature": 0}, "temperature must be a number above 0"),
        ({"threshold": 2}, "threshold must be a number at least -1 and at most 1"),
        ({"max_steps": 0}, "max_steps must be a whole number at least 1"),
        ({"learning_rate": "best"}, "learning_rate must be a number or 'auto', 'uniformity', 'base'"),
        ({"objective": "cols"}, "objective must be one of"),
        ({"search": {"steps": 3}}, "search must be a SearchConfig or None. Got dict"),
        ({"lora_rank": 4, "freeze_layers": 1}, "lora_rank and freeze_layers exclude each other"),
        ({"encoder_dropout": "yes"}, "encoder_dropout must be one of"),
        ({"seed": None}, "seed must be a whole number at least 0. Got None instead"),
        ({"seed": -1}, "seed must be a whole number at least 0. Got -1 instead"),
        ({"labels": 3}, "labels must be a LabelSpace"),
        ({"labels": pd.DataFrame({"label": ["a", "b"], "description": ["c", "d"]})}, "Got DataFrame instead"),
        ({"labels": io.StringIO("sports\nmoney\n")}, "Got StringIO instead"),
        ({"labels": {"sports", "money"}}, "Got set instead"),
        ({"labels": iter(["sports", "money"])}, "Got list_iterator instead"),
        ({"labels": ["sports", 1]}, "Got a list that holds 1, a number instead"),
        ({"encoder": 3}, "encoder must be a name, a folder, an Encoder or a dictionary of its arguments. Got int"),
    ],
)
def test_an_invalid_parameter_is_refused_at_fit(options: dict[str, Any], message: str, make: Maker):
    clf = make(**options)
    with pytest.raises(ConfigError, match=message) as error:
        clf.fit()
    assert "\n" not in str(error.value)
    assert not hasattr(clf, "classes_")


def test_labels_can_be_names_a_dictionary_a_file_or_label_objects(make: Maker, space: LabelSpace, tmp_path: Path):
    space.to_file(tmp_path / "labels.yaml")
    for labels in (space, space.to_dict(), tmp_path / "labels.yaml", str(tmp_path / "labels.yaml")):
        assert make("zero-shot", labels=labels).fit().label_space_ == space
    by_label = make("zero-shot", labels=list(space.labels)).fit()
    assert by_label.label_space_.names == space.names
    assert list(by_label.classes_) == sorted(space.names)
    assert list(make("zero-shot", labels=["a", "b"]).fit().classes_) == ["a", "b"]
    with pytest.raises(LabelFileError, match="used twice"):
        make("zero-shot", labels=["a", "a"]).fit()


def test_the_encoder_can_be_a_folder(make: Maker):
    by_object, by_folder = make("zero-shot"), make("zero-shot")
    by_folder.set_params(encoder=Path(TINY))
    assert np.abs(by_folder.fit().decision_function(TEXTS) - by_object.fit().decision_function(TEXTS)).max() < 2e-2


# ---- the pool


def test_fit_chooses_the_rate_on_its_documents_and_records_their_source(make: Maker, tmp_path: Path):
    search = SearchConfig(rates=(1e-4, 1e-3), steps=4)
    clf = make(learning_rate="uniformity", search=search).fit(TEXTS)
    assert clf.fit_result_.rate.reason == "uniformity"
    assert clf.fit_result_.rate.learning_rate in search.rates
    assert clf.fit_result_.pool == "list in memory (6 documents)"
    pool = tmp_path / "pool.csv"
    pool.write_text("text\n" + "\n".join(TEXTS) + "\n", encoding="utf-8")
    from_file = make(learning_rate="uniformity", search=search).fit(pool)
    assert from_file.fit_result_.pool == "pool.csv (6 rows)"
    assert from_file.fit_result_.rate.trials == clf.fit_result_.rate.trials


def test_a_fit_without_documents_takes_the_base_rate(make: Maker):
    assert make(learning_rate="uniformity").fit().fit_result_.rate.reason == "no pool"


def test_fit_holds_only_the_documents_that_the_search_reads(make: Maker):
    clf = make(search=SearchConfig(documents=4)).fit(TEXTS)
    assert clf.fit_result_.pool_documents == 4


READ_ALIKE = {"財經": ["the bank fell"], "遊戲": ["the game won"], "體育": ["the team won"]}


@pytest.mark.parametrize(
    ("made", "given"),
    [
        (ZeroShotClassifier, {"labels": list(READ_ALIKE)}),
        (ZeroShotClassifier, {"anchor": "both"}),
        (DescriptionClassifier, {"max_steps": 1}),
        (LaConClassifier, {"description_steps": 1}),
    ],
    ids=["names", "anchor", "description", "lacon"],
)
def test_a_fit_warns_of_labels_that_the_encoder_reads_alike(made, given, tiny_encoder_folder):
    with pytest.warns(LabelSpaceWarning, match="reads the verbalizers of '財經', '遊戲', '體育' alike"):
        made(**{"labels": READ_ALIKE, "encoder": tiny_encoder_folder} | given).fit()


def test_labels_known_by_their_descriptions_may_have_names_that_the_encoder_reads_alike(tiny_encoder_folder):
    assert ZeroShotClassifier(READ_ALIKE, tiny_encoder_folder).fit().predict(["the bank fell"]).tolist() == ["財經"]
