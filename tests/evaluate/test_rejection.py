"""The accuracy-rejection curve equals its definition, averages over ties, and works for any classifier."""

import copy
import itertools
import json
import math
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from labelspace import UncertaintyClassifier
from labelspace.classify import distinct
from labelspace.errors import ConfigError, InputError, ShapeError
from labelspace.evaluate import (
    Rejections,
    difficulty,
    evaluate,
    evaluate_table,
    rejection_curve,
    softmax_entropy,
)
from labelspace.evaluate.rejection import (
    ENTROPY,
    LEAST_CONFIDENCE,
    OWN,
    bands_text,
    rejection_rows,
    rejection_text,
)

rows = st.lists(st.tuples(st.integers(0, 5), st.booleans()), min_size=1, max_size=30)


def accuracies_in_order(right):
    """Compute the accuracy with 0, 1, ..., n - 1 rejected; `right` is sorted from most to least certain."""
    return [sum(right[:answered]) / answered for answered in range(len(right), 0, -1)]


def curve_by_hand(uncertainty, right):
    """Go through the documents one by one; right answers are spread evenly over equal uncertainties."""
    found = []
    for answered in range(len(right), 0, -1):
        limit = sorted(uncertainty)[answered - 1]
        surer = [good for value, good in zip(uncertainty, right, strict=True) if value < limit]
        equal = [good for value, good in zip(uncertainty, right, strict=True) if value == limit]
        expected = sum(surer) + sum(equal) / len(equal) * (answered - len(surer))
        found.append(expected / answered)
    return found


# ---- the curve


@given(rows)
@settings(max_examples=100)
def test_the_curve_and_its_areas_are_their_definitions_written_out(drawn):
    uncertainty, right = zip(*drawn, strict=True)
    curve = rejection_curve(uncertainty, right)
    expected = curve_by_hand(uncertainty, right)
    count = len(right)
    assert curve.accuracy == pytest.approx(expected, abs=1e-12)
    assert curve.area == pytest.approx(sum(expected) / count)
    assert curve.area_random == pytest.approx(sum(right) / count)
    assert curve.area_best == pytest.approx(sum(accuracies_in_order(sorted(right, reverse=True))) / count)
    assert curve.rejected == pytest.approx([number / count for number in range(count)])
    assert curve.coverage == pytest.approx([1 - number / count for number in range(count)])


@pytest.mark.parametrize("uncertainty", [[1, 1, 1, 1, 1], [0, 1, 1, 1, 2], [0, 0, 1, 1, 1], [0, 1, 2, 2, 3]])
@pytest.mark.parametrize("right", [[1, 0, 1, 1, 0], [0, 0, 1, 0, 1]])
def test_ties_are_the_mean_over_all_orders(uncertainty, right):
    sums, orders = [0.0] * 5, 0
    for order in itertools.permutations(range(5)):
        if sorted(uncertainty) == [uncertainty[place] for place in order]:
            orders += 1
            sums = [a + b for a, b in zip(sums, accuracies_in_order([right[place] for place in order]), strict=True)]
    curve = rejection_curve(uncertainty, right)
    assert curve.accuracy == pytest.approx([total / orders for total in sums])


@given(st.lists(st.booleans(), min_size=1, max_size=200), st.floats(-1e6, 1e6))
@settings(max_examples=60)
def test_a_constant_uncertainty_has_the_area_of_chance(right, value):
    curve = rejection_curve([value] * len(right), right)
    assert curve.area == pytest.approx(curve.area_random, abs=1e-12)
    assert curve.accuracy == pytest.approx([curve.area_random] * len(right), abs=1e-12)


@given(rows)
@settings(max_examples=60)
def test_no_uncertainty_beats_the_oracle(drawn):
    uncertainty, right = zip(*drawn, strict=True)
    curve = rejection_curve(uncertainty, right)
    assert curve.area <= curve.area_best + 1e-12
    oracle = rejection_curve([0 if good else 1 for good in right], right)
    assert oracle.area == pytest.approx(curve.area_best)
    assert oracle.accuracy == pytest.approx(np.minimum(1, curve.area_random / oracle.coverage))


@given(rows, st.randoms(use_true_random=False))
@settings(max_examples=40)
def test_the_order_of_documents_and_the_scale_of_uncertainty_do_not_matter(drawn, random):
    uncertainty, right = zip(*drawn, strict=True)
    first = rejection_curve(uncertainty, right)
    moved = list(drawn)
    random.shuffle(moved)
    second = rejection_curve([math.exp(value) - 3 for value, _ in moved], [good for _, good in moved])
    assert second.accuracy == pytest.approx(first.accuracy)
    assert second.area == pytest.approx(first.area)


def test_random_uncertainty_has_about_the_area_of_chance_and_an_informed_one_more():
    generator = np.random.default_rng(0)
    uncertainty = generator.random(20_000)
    right = generator.random(20_000) > 0.4 * uncertainty
    assert rejection_curve(generator.random(20_000), right).area == pytest.approx(right.mean(), abs=0.01)
    # E[accuracy at coverage c] = 1 - 0.4 c / 2, and its mean over c is 0.9.
    assert rejection_curve(uncertainty, right).area == pytest.approx(0.9, abs=0.01)


@pytest.mark.parametrize(("coverage", "left"), [(1, 10), (0.9, 9), (0.85, 9), (0.5, 5), (0.1, 1), (1e-6, 1)])
def test_the_accuracy_at_a_coverage_is_over_at_least_that_share(coverage, left):
    right = np.random.default_rng(1).random(10) > 0.4
    curve = rejection_curve(np.arange(10), right)
    assert curve.accuracy_at(coverage) == pytest.approx(right[:left].mean())


@pytest.mark.parametrize("right", [[True], [False]])
def test_one_document_has_a_curve_of_one_point(right):
    curve = rejection_curve([0.3], right)
    assert (curve.area, curve.area_random, curve.area_best) == (right[0],) * 3
    assert curve.rejected.tolist() == [0]


# ---- probabilities, bands


@given(st.lists(st.lists(st.floats(0, 1), min_size=3, max_size=3).filter(lambda row: sum(row) > 0.1), min_size=1))
@settings(max_examples=40)
def test_the_entropy_is_its_definition_written_out(weights):
    shares = [[weight / sum(row) for weight in row] for row in weights]
    expected = [-sum(share * math.log(share) for share in row if share > 0) for row in shares]
    assert softmax_entropy(shares) == pytest.approx(expected, abs=1e-9)


def test_the_entropy_is_0_for_certainty_and_the_log_of_the_labels_for_uniform_rows():
    found = softmax_entropy([[0, 1, 0], [1 / 3] * 3, [1 + 1e-7, 0, 0]])
    assert found.tolist() == [0, pytest.approx(math.log(3)), 0]


@given(rows)
@settings(max_examples=40)
def test_bands_hold_each_document_and_each_error_once(drawn):
    uncertainty, right = zip(*drawn, strict=True)
    bands = difficulty(uncertainty, right, easy=2, hard=4)
    assert [band.level for band in bands] == ["easy", "semi-hard", "hard"]
    inside = (
        [good for value, good in drawn if value < 2],
        [good for value, good in drawn if 2 <= value < 4],
        [good for value, good in drawn if value >= 4],
    )
    wrong = sum(not good for good in right)
    for band, members in zip(bands, inside, strict=True):
        errors = sum(not good for good in members)
        assert (band.documents, band.errors) == (len(members), errors)
        assert band.error_rate == (pytest.approx(errors / len(members)) if members else None)
        assert band.share_of_errors == (pytest.approx(errors / wrong) if wrong else None)


def test_the_bounds_are_those_of_the_paper_and_belong_to_the_band_above():
    bands = difficulty([0.79, 0.8, 0.99, 1.0, 5.0], [True] * 5)
    assert [band.documents for band in bands] == [1, 2, 2]


# ---- classifiers


def unsure_of(documents):
    """A substitute for the mean of sigma: longer texts are more uncertain."""
    return np.array([len(document) / 100 for document in documents])


def with_doubt(model, doubt=unsure_of):
    """The same classifier with its own uncertainty."""
    found = copy.copy(model)
    found.answers = lambda documents: replace(model.answers(documents), uncertainty=doubt(documents))
    return found


def collected(model, texts, names, **more):
    kept = Rejections()
    evaluation = evaluate(model, texts, names, baselines=False, rejections=kept, **more)
    return evaluation, kept.curves()


@pytest.mark.parametrize("which", ["untrained", "trained"])
def test_the_curves_of_a_classifier_are_those_of_its_probabilities(which, request, texts, names):
    model = request.getfixturevalue(which)
    evaluation, curves = collected(model, texts, names)
    shares = model.predict_proba(texts)
    right = model.predict(texts) == np.array(names)
    assert list(curves) == [LEAST_CONFIDENCE, ENTROPY]
    for name, unsure in ((LEAST_CONFIDENCE, 1 - shares.max(axis=1)), (ENTROPY, softmax_entropy(shares))):
        assert curves[name].accuracy == pytest.approx(rejection_curve(unsure, right).accuracy)
        assert curves[name].area_random == pytest.approx(evaluation.metrics.accuracy)


def test_a_classifier_with_an_uncertainty_of_its_own_has_that_curve_first(trained, texts, names):
    _, curves = collected(with_doubt(trained), texts, names)
    assert list(curves) == [OWN, LEAST_CONFIDENCE, ENTROPY]
    right = trained.predict(texts) == np.array(names)
    assert curves[OWN].accuracy == pytest.approx(rejection_curve(unsure_of(texts), right).accuracy)


def test_blocks_files_and_documents_without_a_label_change_nothing(trained, texts, names, monkeypatch, tmp_path):
    model = with_doubt(trained)
    _, whole = collected(model, texts, names)
    monkeypatch.setattr(distinct, "WINDOW", 3)
    path = tmp_path / "rows.jsonl"
    # Five rows without a label, so that a whole block has none.
    lines = [*zip(texts, names, strict=True), *[("nobody knows", None)] * 5]
    path.write_text("".join(json.dumps({"text": text, "label": name}) + "\n" for text, name in lines))
    kept = Rejections()
    evaluate_table(model, path, baselines=False, rejections=kept)
    parts = kept.curves()
    assert list(parts) == list(whole)
    for name, curve in whole.items():
        assert parts[name].accuracy == pytest.approx(curve.accuracy)


def test_the_curve_ignores_the_threshold_of_the_model(trained, texts, names):
    _, without = collected(trained, texts, names)
    strict = copy.copy(trained).set_params(threshold=1.0)
    evaluation, curves = collected(strict, texts, names)
    assert evaluation.metrics.coverage < 1
    assert curves[ENTROPY].accuracy.tolist() == without[ENTROPY].accuracy.tolist()


@pytest.fixture(scope="module")
def gaussian(encoder):
    """A classifier that measures its uncertainty."""
    texts = ["the team won", "the bank lost", "a match", "prices rise", "the minister", "police and court"]
    names = ["sports", "money", "sports", "money", "world", "world"]
    return UncertaintyClassifier(encoder=encoder, epochs=2, cache=None, seed=1).fit(texts, names)


def test_the_uncertainty_classifier_is_asked_once_for_both(gaussian, texts, names, monkeypatch):
    asked = []
    answers = UncertaintyClassifier.answers
    monkeypatch.setattr(
        UncertaintyClassifier, "answers", lambda self, texts: asked.append(len(texts)) or answers(self, texts)
    )
    _, curves = collected(gaussian, texts, names)
    assert asked == [len(texts)]
    monkeypatch.undo()
    right = gaussian.predict(texts) == np.array(names)
    assert list(curves) == [OWN, LEAST_CONFIDENCE, ENTROPY]
    assert curves[OWN].accuracy == pytest.approx(rejection_curve(gaussian.predict_uncertainty(texts), right).accuracy)


def test_bands_use_the_models_uncertainty_over_all_batches():
    kept = Rejections()
    assert kept.bands() is None
    unsure, right = [0.5, 0.9, 1.5, 0.7, 1.0], [True, False, False, True, True]
    for rows in (slice(0, 2), slice(2, 5)):
        kept.add(right[rows], [[0.9, 0.1]] * len(right[rows]), unsure[rows])
    assert kept.bands() == difficulty(unsure, right)
    without = Rejections()
    without.add(right, [[0.9, 0.1]] * 5)
    assert without.bands() is None, "the bounds are for the mean of sigma"


def test_bands_are_printed_one_per_line_and_an_empty_one_has_no_rate():
    lines = bands_text(difficulty([0.5] * 1000 + [2.0], [True] * 999 + [False] * 2)).splitlines()
    assert lines[1:] == [
        "easy       below 0.8   1 of 1,000 wrong (0.1 %)",
        "semi-hard  0.8 to 1    0 of 0 wrong",
        "hard       1 or above  1 of 1 wrong (100.0 %)",
    ]


@pytest.mark.parametrize("by", ["uncertainty", "entropy"])
def test_the_limit_of_a_model_abstains_in_its_evaluation_and_is_left_out_of_the_curve(gaussian, texts, names, by):
    _, without = collected(gaussian, texts, names)
    strict = copy.copy(gaussian).set_coverage(0.5, texts, by=by)
    evaluation, curves = collected(strict, texts, names)
    assert evaluation.metrics.coverage == 0.5
    assert evaluation.confusion[:, -1].sum() == sum(name is None for name in strict.predict(texts)) == 4
    assert {name: curve.area for name, curve in curves.items()} == {name: curve.area for name, curve in without.items()}


def test_collecting_changes_no_number_of_the_evaluation(trained, texts, names):
    evaluation, _ = collected(trained, texts, names)
    plain = evaluate(trained, texts, names, baselines=False)
    assert evaluation.metrics == plain.metrics
    assert evaluation.to_dict().keys() == plain.to_dict().keys()


def test_near_certain_documents_are_still_ranked():
    """1 minus the highest probability would be 0 for the first two documents."""
    kept = Rejections()
    kept.add([True, False, True], [[1.0, 1e-30], [1.0, 1e-20], [0.5, 0.5]])
    assert kept.curves()[LEAST_CONFIDENCE].accuracy.tolist() == pytest.approx([2 / 3, 1 / 2, 1])


def test_memory_is_two_numbers_per_document_and_a_third_for_the_models_own():
    generator = np.random.default_rng(0)
    shares = generator.dirichlet(np.ones(40), size=500)
    for own, size in ((None, 17), (generator.random(500), 25)):
        kept = Rejections()
        kept.add(np.ones(500, dtype=bool), shares, own)
        arrays = [*kept._right, *(part for parts in kept._unsure.values() for part in parts)]
        assert sum(array.nbytes for array in arrays) == 500 * size
        assert all(array.base is None for array in arrays), "no view that would hold the probabilities"


# ---- reports


def test_the_rows_end_with_chance_and_the_oracle():
    generator = np.random.default_rng(2)
    right = generator.random(50) > 0.3
    unsure = generator.random(50)
    curves = {"one": rejection_curve(unsure, right), "other": rejection_curve(-unsure, right)}
    told = rejection_rows(curves)
    assert [row["by"] for row in told] == ["one", "other", "random", "best possible"]
    oracle = rejection_curve(~right, right)
    for row, curve in zip(told, (*curves.values(), None, oracle), strict=True):
        accuracies = {f"{share:g}": curve.accuracy_at(share) if curve else right.mean() for share in (0.9, 0.8, 0.5)}
        assert row["accuracy_at_coverage"] == pytest.approx(accuracies)
        assert row["area"] == pytest.approx(curve.area if curve else right.mean())
    assert json.loads(json.dumps(told, allow_nan=False)) == told
    text = rejection_text(told)
    for word in ("area", "90 % answered", "50 % answered", "best possible", f"{curves['one'].area:.3f}"):
        assert word in text


# ---- refusals


def test_mismatched_documents_are_refused():
    for function in (rejection_curve, difficulty):
        with pytest.raises(InputError, match="uncertainty holds no document"):
            function([], [])
        with pytest.raises(InputError, match=r"uncertainty\[1\] must be a finite number. Got nan"):
            function([0.5, math.nan], [True, True])
        with pytest.raises(ShapeError, match=r"one number for each document\. Got shape"):
            function([[0.5]], [True])
        with pytest.raises(ShapeError, match="right must hold one value for each of 2 documents"):
            function([0.5, 0.6], [True])
        with pytest.raises(InputError, match=r"right\[1\] must be True or False. Got"):
            function([0.5, 0.6], [True, 0.5])


@pytest.mark.parametrize(
    ("shares", "error", "words"),
    [
        ([0.5, 0.5], ShapeError, r"probabilities must be a matrix"),
        (np.empty((0, 2)), InputError, "probabilities are empty"),
        ([[0.5, 0.6]], InputError, "with rows that sum to 1. Got 0.5 to 0.6 in rows with sums from 1.1"),
        ([[1.5, -0.5]], InputError, "must be 0 or more"),
        ([[math.nan, 1.0]], InputError, "probabilities must be"),
    ],
)
def test_rows_that_are_not_probabilities_are_refused(shares, error, words):
    with pytest.raises(error, match=words):
        softmax_entropy(shares)
    with pytest.raises(error, match=words):
        Rejections().add([True], shares)


def test_doubt_that_is_no_number_is_refused():
    with pytest.raises(InputError, match=r"must hold numbers\. could not convert string"):
        rejection_curve(["a"], [1])


def test_invalid_bounds_and_coverages_are_refused():
    with pytest.raises(ConfigError, match=r"hard must be above easy \(0.8\). Got 0.8"):
        difficulty([0.5], [True], hard=0.8)
    with pytest.raises(ConfigError, match="easy must be a number"):
        difficulty([0.5], [True], easy=math.nan)
    with pytest.raises(ConfigError, match="coverage must be a number above 0"):
        rejection_curve([0.5], [True]).accuracy_at(0)


def test_an_empty_collector_and_mismatched_input_are_refused(trained, texts, names):
    with pytest.raises(InputError, match="no document was evaluated"):
        Rejections().curves()
    with pytest.raises(ShapeError, match=r"one number for each of 2 documents\. Got 1"):
        Rejections().add([True, True], [[1.0, 0.0]] * 2, [0.5])
    model = with_doubt(trained, lambda documents: [math.nan] * len(documents))
    with pytest.raises(InputError, match=r"uncertainty\[0\] must be a finite number"):
        evaluate(model, texts, names, baselines=False, rejections=Rejections())
