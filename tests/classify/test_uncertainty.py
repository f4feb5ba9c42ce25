"""`UncertaintyClassifier` as a scikit-learn estimator: what it learns from, answers and refuses."""

import copy
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from sklearn.base import clone
from sklearn.model_selection import GridSearchCV, cross_val_score
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import FunctionTransformer

from classify.doubt import FEW, FEW_Y, NAMES, NEW, NEW_Y, SEEN, SEEN_Y, uncertainty
from labelspace import LabelSpace, UncertaintyClassifier
from labelspace.classify import bi_encoder
from labelspace.classify.by_gaussians import NO_LOGIT
from labelspace.encoders import Encoder
from labelspace.errors import ConfigError, InputError, LabelSpaceWarning
from labelspace.training.uncertainty import outputs_of_texts

Maker = Callable[..., UncertaintyClassifier]


@pytest.fixture
def make(encoders: dict[str, Encoder]) -> Maker:
    """Make an unfitted classifier that trains in a moment."""
    return lambda dtype="float32", **options: uncertainty(encoders[dtype], **options)


@pytest.fixture
def fitted(make: Maker) -> Maker:
    """Make and fit a classifier on twelve texts."""
    return lambda **options: make(**options).fit(FEW, FEW_Y)


# ---- answers


def test_predictions_probabilities_and_scores_agree(clf: UncertaintyClassifier):
    scores, proba = clf.decision_function(NEW), clf.predict_proba(NEW)
    names, again = clf.predict(NEW, return_scores=True)
    assert scores.shape == proba.shape == (120, 3)
    assert list(clf.classes_) == NAMES
    assert (again == scores).all()
    assert list(names) == list(clf.classes_[scores.argmax(axis=1)]) == list(clf.classes_[proba.argmax(axis=1)])
    powers = np.exp(scores.astype(np.float64) / clf.temperature_)
    assert proba == pytest.approx(powers / powers.sum(axis=1, keepdims=True))


def test_labels_are_learnt(clf: UncertaintyClassifier):
    assert clf.score(SEEN, SEEN_Y) > 0.85
    assert clf.score(NEW, NEW_Y) > 0.8
    fit = clf.fit_result_
    assert fit.curve.losses[-1] < fit.curve.losses[0]
    assert (fit.labelled, fit.unlabelled, fit.held_out) == (90, 0, 9)
    assert fit.calibration is not None
    assert fit.calibration.documents == 9
    assert fit.calibration.nll_after <= fit.calibration.nll_before
    assert clf.temperature_ == fit.calibration.temperature != 1
    assert clf.limit_ is None


def test_the_temperature_changes_no_predicted_label(clf: UncertaintyClassifier):
    other = copy.copy(clf)
    other.temperature_ = 3.0
    assert (other.decision_function(NEW) == clf.decision_function(NEW)).all()
    assert list(other.predict(NEW)) == list(clf.predict(NEW))
    proba = other.predict_proba(NEW)
    assert list(other.classes_[proba.argmax(axis=1)]) == list(clf.predict(NEW))
    assert np.abs(proba - clf.predict_proba(NEW)).max() > 0.01


def test_uncertainty_is_the_mean_standard_deviation_and_positive(clf: UncertaintyClassifier):
    found = clf.predict_uncertainty(NEW)
    assert (found.shape, found.dtype) == ((120,), np.float32)
    assert found.min() > 0
    assert len(np.unique(found)) > 100
    tokens = clf.encoder_.backbone.batch(clf.encoder_.tokenize(NEW[:5]), list(range(5)))
    with torch.inference_mode():
        mean, std = clf.head_.module(*clf.encoder_.backbone.states(tokens))
    assert std is not None
    assert found[:5] == pytest.approx(std.numpy().sum(axis=1) / 32, abs=1e-5)
    assert clf.transform(NEW)[:5] == pytest.approx(mean.numpy(), abs=1e-5)


def test_a_model_without_uncertainty_returns_zero(fitted: Maker):
    clf = fitted(uncertain=False)
    assert (clf.predict_uncertainty(FEW) == np.zeros(12)).all()
    assert clf.head_.module.log_variance is None
    assert clf.most_uncertain(FEW, 3, by="entropy").shape == (3,)
    for ask in (clf.most_uncertain, lambda X, **by: clf.set_coverage(0.5, X, **by)):
        with pytest.raises(ConfigError, match="fitted with uncertain=False measures no uncertainty; take by='entropy'"):
            ask(FEW, by="uncertainty")


def test_logits_are_the_linear_classifier_on_the_means(clf: UncertaintyClassifier):
    """Equation 4 has no bias and classifies a text by its mean."""
    means = clf.transform(NEW)
    assert (means.shape, means.dtype) == ((120, 32), np.float32)
    weights = clf.head_.module.classifier.weight.numpy()
    assert clf.decision_function(NEW) == pytest.approx(means @ weights.T, abs=1e-4)


def test_a_probability_below_the_threshold_gives_none(clf: UncertaintyClassifier):
    clf.temperature_ = 1.0
    best = clf.predict_proba(NEW).max(axis=1)
    clf.set_params(min_probability=float(np.median(best)))
    names = clf.predict(NEW)
    assert [name is None for name in names] == list(best < clf.min_probability)
    assert 0 < sum(name is None for name in names) < 120
    assert None not in clf.set_params(min_probability=0.0).predict(NEW)


@pytest.mark.parametrize("dtype", ["float32", "bfloat16"])
def test_the_score_of_a_text_does_not_depend_on_the_others(dtype: str, make: Maker):
    clf = make(dtype).fit(FEW, FEW_Y)
    mixed = [text + " and the news" * (row % 3) for row, text in enumerate(FEW)]
    scores, doubt = clf.decision_function(mixed), clf.predict_uncertainty(mixed)
    tolerance = 1e-5 if dtype == "float32" else 0.02
    assert np.abs(np.concatenate([clf.decision_function([text]) for text in mixed]) - scores).max() < tolerance
    assert np.abs(clf.predict_uncertainty(mixed[::-1])[::-1] - doubt).max() < tolerance
    assert clf.decision_function([]).shape == (0, 3)
    assert clf.predict([]).shape == clf.predict_uncertainty([]).shape == clf.most_uncertain([]).shape == (0,)
    assert clf.transform([]).shape == (0, 32)


def test_the_same_seed_gives_the_same_bits(fitted: Maker):
    one, other, another = fitted(), fitted(), fitted(seed=1)
    assert (one.decision_function(FEW) == other.decision_function(FEW)).all()
    assert (one.predict_uncertainty(FEW) == other.predict_uncertainty(FEW)).all()
    assert (one.decision_function(FEW) != another.decision_function(FEW)).any()


def test_outputs_are_those_of_the_head(clf: UncertaintyClassifier):
    found = outputs_of_texts(clf.encoder_, clf.head_.module, clf.encoder_.tokenize(NEW))
    assert (clf.predict_uncertainty(NEW) == found.uncertainty).all()
    assert (clf.transform(NEW) == found.means).all()
    assert (clf.decision_function(NEW) == found.logits).all()


# ---- labels


def test_labels_come_from_y_or_names_or_a_dictionary_space_or_file(make: Maker, tmp_path: Path):
    space = LabelSpace.from_dict({name: [f"News of {name}."] for name in NAMES})
    space.to_file(tmp_path / "labels.yaml")
    from_y = make().fit(FEW, FEW_Y)
    assert from_y.labels is None
    assert from_y.label_space_.names == tuple(NAMES)
    for labels in (NAMES, space, {"labels": space.to_dict()["labels"]}, tmp_path / "labels.yaml"):
        clf = make(labels=labels).fit(FEW, FEW_Y)
        assert (clf.decision_function(FEW) == from_y.decision_function(FEW)).all()
    assert clf.label_space_ == space


def test_the_order_of_the_labels_changes_no_score(make: Maker):
    """Holds to the bit although the head starts at random, because its columns are sorted by name."""
    expected = make(labels=NAMES, validation=0.2).fit(FEW, FEW_Y)
    for order in (("world", "sports", "money"), ("sports", "world", "money")):
        clf = make(labels=list(order), validation=0.2).fit(FEW, FEW_Y)
        assert clf.label_space_.names == order
        assert (clf.decision_function(NEW) == expected.decision_function(NEW)).all()
        assert (clf.predict_proba(NEW) == expected.predict_proba(NEW)).all()
        assert list(clf.predict(NEW)) == list(expected.predict(NEW))
        assert (clf.held_out_.entropy == expected.held_out_.entropy).all()


def test_another_space_is_scored_by_name(clf: UncertaintyClassifier):
    own = clf.scores(NEW, clf.label_space_)
    assert (clf.scores(NEW, LabelSpace.from_names(["world", "money"])) == own[:, [2, 0]]).all()
    with pytest.raises(InputError, match=r"no logit for 'film'; it knows money, sports, world"):
        clf.scores(NEW, LabelSpace.from_names(["money", "film"]))


@pytest.mark.parametrize("nothing", [None, -1, "", np.nan])
def test_rows_without_a_label_are_left_out(nothing: Any, make: Maker):
    partial = [*FEW_Y[:1], nothing, *FEW_Y[2:5], nothing, *FEW_Y[6:]]
    clf = make().fit(FEW, partial)
    kept = [row for row in range(12) if row not in (1, 5)]
    alone = make().fit([FEW[row] for row in kept], [FEW_Y[row] for row in kept])
    assert (clf.fit_result_.labelled, clf.fit_result_.unlabelled) == (10, 2)
    assert (clf.decision_function(FEW) == alone.decision_function(FEW)).all()


def test_a_label_without_rows_warns_gets_probability_0_and_changes_nothing_else(make: Maker):
    options = {"validation": 0.3, "min_probability": 0.4}
    without = make(**options).fit(FEW, FEW_Y)
    message = (
        r"^2 of 5 labels have no labelled row, .* never the answer: 'zoo', 'film'; label some rows of each, or leave .*"
    )
    with pytest.warns(LabelSpaceWarning, match=message) as warned:
        clf = make(labels=["zoo", *NAMES, "film"], **options).fit(FEW, FEW_Y)
    assert [(warning.filename, "\n" in str(warning.message)) for warning in warned] == [(__file__, False)]
    assert list(clf.classes_) == ["film", *NAMES, "zoo"]
    proba, scores = clf.predict_proba(NEW), clf.decision_function(NEW)
    assert (proba[:, [0, 4]] == 0).all()
    assert (scores[:, [0, 4]] == NO_LOGIT).all()
    assert (scores[:, 1:4] == without.decision_function(NEW)).all()
    assert (proba[:, 1:4] == without.predict_proba(NEW)).all()
    assert list(clf.predict(NEW)) == list(without.predict(NEW))
    assert clf.temperature_ == without.temperature_ != 1
    assert (clf.held_out_.entropy == without.held_out_.entropy).all()
    for by in ("entropy", "uncertainty"):
        assert list(clf.most_uncertain(NEW, by=by)) == list(without.most_uncertain(NEW, by=by))
    assert clf.explain(NEW[0], top=1) == without.explain(NEW[0], top=1)
    assert (clf.scores(NEW, LabelSpace.from_names(["film", "money"])) == scores[:, [0, 1]]).all()


def test_removing_a_label_without_rows_keeps_the_record_of_held_out_rows(make: Maker):
    with pytest.warns(LabelSpaceWarning, match=r"^1 of 4 labels have no labelled row"):
        clf = make(labels=[*NAMES, "film"], validation=0.3).fit(FEW, FEW_Y)
    clf.rename_label("film", "cinema")
    assert (clf.predict_proba(NEW)[:, 0] == 0).all()
    before = clf.decision_function(NEW)[:, 1:]
    clf.remove_label("cinema")
    assert (clf.decision_function(NEW) == before).all()
    assert len(clf.held_out_.wrong)


def test_the_warning_names_five_labels_without_rows_and_counts_the_rest(make: Maker):
    with pytest.warns(LabelSpaceWarning, match="answer: 'a', 'b', 'c', 'd', 'e' and 2 more; label some rows"):
        make(labels=[*NAMES, *"abcdefg"]).fit(FEW, FEW_Y)


# ---- scikit-learn


def test_the_tags_say_that_it_learns_from_labels():
    tags = UncertaintyClassifier().__sklearn_tags__()
    assert (tags.input_tags.string, tags.input_tags.two_d_array, tags.target_tags.required) == (True, False, True)
    assert tags.estimator_type == "classifier"


def test_fit_learns_names_that_end_in_an_underscore_and_changes_no_parameter(make: Maker):
    clf = make()
    before = dict(vars(clf))
    assert clf.fit(FEW, FEW_Y) is clf
    assert all(vars(clf)[name] is value for name, value in before.items())
    assert all(name.endswith("_") for name in set(vars(clf)) - set(before))


def test_a_second_fit_forgets_the_first(make: Maker):
    clf = make().fit(FEW, FEW_Y).set_coverage(0.5, FEW)
    clf.fit(FEW, ["a", "b"] * 6)
    fresh = make().fit(FEW, ["a", "b"] * 6)
    assert list(clf.classes_) == ["a", "b"]
    assert clf.limit_ is None
    assert (clf.decision_function(FEW) == fresh.decision_function(FEW)).all()


def test_an_interrupted_fit_keeps_the_previous_model(make: Maker):
    def stop(step: int, values: dict[str, float]) -> None:
        raise KeyboardInterrupt

    clf = make(callbacks=(stop,))
    with pytest.raises(KeyboardInterrupt):
        clf.fit(FEW, FEW_Y)
    assert not [name for name in vars(clf) if name.endswith("_")]
    clf.set_params(callbacks=()).fit(FEW, FEW_Y)
    before = clf.decision_function(FEW)
    with pytest.raises(KeyboardInterrupt):
        clf.set_params(callbacks=(stop,)).fit(FEW, ["a", "b"] * 6)
    assert (clf.decision_function(FEW) == before).all()


def test_a_fit_interrupted_while_encoding_labels_keeps_the_previous_model(make: Maker, monkeypatch: pytest.MonkeyPatch):
    def stop(*given: object) -> None:
        raise KeyboardInterrupt

    clf = make().fit(FEW, FEW_Y)
    before = dict(vars(clf))
    monkeypatch.setattr(bi_encoder, "encode_labels", stop)
    with pytest.raises(KeyboardInterrupt):
        clf.fit(FEW, ["a", "b"] * 6)
    assert vars(clf) == before


def test_the_callers_encoder_is_not_changed(encoders: dict[str, Encoder], fitted: Maker):
    weights = encoders["float32"].backbone.model.state_dict()
    before = {name: values.clone() for name, values in weights.items()}
    clf = fitted()
    assert clf.encoder is encoders["float32"]
    after = clf.encoder_.backbone.model.state_dict()
    assert all(torch.equal(values, after[name]) for name, values in before.items())


def test_predicting_changes_no_stored_attribute(clf: UncertaintyClassifier):
    before = dict(vars(clf))
    for ask in (clf.predict, clf.predict_proba, clf.predict_uncertainty, clf.transform, clf.most_uncertain):
        ask(FEW)
    assert vars(clf) == before


def test_a_clone_fits_to_the_same_bits(fitted: Maker):
    clf = fitted(min_probability=0.1, validation=0.2)
    twin = clone(clf)
    assert not hasattr(twin, "classes_")
    assert twin.get_params().keys() == clf.get_params().keys()
    assert (twin.fit(FEW, FEW_Y).decision_function(FEW) == clf.decision_function(FEW)).all()


def test_set_params_reaches_the_next_fit(make: Maker):
    clf = make().fit(FEW, FEW_Y)
    assert clf.fit_result_.curve.steps == 2
    assert clf.set_params(epochs=3, config={"batch_size": 12}).fit(FEW, FEW_Y).fit_result_.curve.steps == 3
    with pytest.raises(ValueError, match="Invalid parameter 'epoch'"):
        clf.set_params(epoch=2)


def test_a_pipeline_cross_validation_and_a_grid_search_work(make: Maker):
    pipeline = make_pipeline(FunctionTransformer(lambda texts: [text.lower() for text in texts]), make())
    assert pipeline.fit([text.upper() for text in FEW], FEW_Y).predict(FEW).shape == (12,)
    assert cross_val_score(make(), FEW, FEW_Y, cv=2, error_score="raise", scoring="neg_log_loss").shape == (2,)
    grid = {"config": [{"contrastive_weight": 0.0}, {"contrastive_weight": 0.6}]}
    search = GridSearchCV(make(), grid, cv=2, error_score="raise").fit(FEW, FEW_Y)
    assert search.best_params_.keys() == {"config"}
    assert list(search.predict(NEW)) == list(search.best_estimator_.predict(NEW))
