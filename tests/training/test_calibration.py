"""Calibration: the error and the temperature equal their definitions written as loops; extremes stay finite."""

import math
import subprocess
import sys

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from labelspace.errors import ConfigError, InputError, ShapeError
from labelspace.evaluate import metrics
from labelspace.evaluate.rejection import rejection_curve, softmax_entropy
from labelspace.training import calibration
from labelspace.training.calibration import (
    ECE_BINS,
    MOST_TEMPERATURE,
    calibrate,
    calibration_bins,
    expected_calibration_error,
    temperature_for_accuracy,
)

answers = st.lists(st.tuples(st.floats(0, 1), st.booleans()), min_size=1, max_size=40)


def error_by_hand(confidence, right, bins):
    """Compute equation 3 of Guo et al., bin by bin, in Python floats."""
    error = 0.0
    for number in range(bins):
        inside = [
            (sure, good)
            for sure, good in zip(confidence, right, strict=True)
            if (sure > number / bins or number == 0) and (sure <= (number + 1) / bins or number == bins - 1)
        ]
        if inside:
            mean = sum(sure for sure, _ in inside) / len(inside)
            accuracy = sum(good for _, good in inside) / len(inside)
            error += len(inside) / len(confidence) * abs(mean - accuracy)
    return error


def nll_by_hand(logits, targets, temperature):
    """Compute the mean cross-entropy of softmax(logits / temperature), term by term."""
    total = 0.0
    for row, own in zip(logits, targets, strict=True):
        highest = max(row)
        total += math.log(sum(math.exp((value - highest) / temperature) for value in row))
        total -= (row[own] - highest) / temperature
    return total / len(targets)


def temperature_by_hand(logits, targets):
    """Bisect the slope over beta = 1 / T, in which the sum is convex; half an error is spread over the other labels."""
    error = 0.5 / (len(targets) + 1)

    def slope(beta):
        total = 0.0
        for row, own in zip(logits, targets, strict=True):
            powers = [math.exp(beta * (value - max(row))) for value in row]
            total += sum(p * value for p, value in zip(powers, row, strict=True)) / sum(powers)
            for label, value in enumerate(row):
                total -= value * (1 - error if label == own else error / (len(row) - 1))
        return total

    low, high = 1 / MOST_TEMPERATURE, MOST_TEMPERATURE
    for _ in range(60):
        middle = (low + high) / 2
        low, high = (middle, high) if slope(middle) < 0 else (low, middle)
    return 1 / low


def drawn(seed, documents=60, labels=4, sure=3.0):
    """Draw logits of a model that is overconfident by this factor."""
    generator = np.random.default_rng(seed)
    plain = generator.normal(size=(documents, labels)) * 2
    shares = np.exp(plain) / np.exp(plain).sum(axis=1, keepdims=True)
    return plain * sure, np.array([generator.choice(labels, p=row) for row in shares])


# ---- the error


@given(answers, st.integers(1, 20))
@settings(max_examples=60)
def test_the_error_is_its_definition_written_out(rows, bins):
    confidence, right = zip(*rows, strict=True)
    expected = error_by_hand(confidence, right, bins)
    assert expected_calibration_error(confidence, right, bins) == pytest.approx(expected, abs=1e-12)


def test_an_edge_belongs_to_the_lower_bin_and_zero_to_the_first():
    edges = np.arange(ECE_BINS + 1) / ECE_BINS
    places = [int(calibration_bins([edge], [True])[0].argmax()) for edge in edges]
    assert places == [0, *range(ECE_BINS)]


@given(answers, st.integers(0, 40))
@settings(max_examples=40)
def test_bins_of_batches_add_up(rows, cut):
    parts = [calibration_bins([a for a, _ in part], [b for _, b in part]) for part in (rows[:cut], rows[cut:])]
    whole = calibration_bins([a for a, _ in rows], [b for _, b in rows])
    assert parts[0] + parts[1] == pytest.approx(whole)


def test_the_tally_of_an_evaluation_uses_the_same_bins():
    assert metrics.calibration_bins is calibration_bins
    assert metrics.ECE_BINS is ECE_BINS
    generator = np.random.default_rng(0)
    own, answer, sure = generator.integers(0, 3, 50), generator.integers(0, 3, 50), generator.random(50)
    tally = metrics.Tally(["a", "b", "c"])
    tally.add(own, answer, sure)
    assert tally.metrics().expected_calibration_error == expected_calibration_error(sure, own == answer)


def test_float32_probabilities_may_lie_slightly_out_of_range():
    assert expected_calibration_error([1 + 1e-7, -1e-7], [True, False]) == pytest.approx(0, abs=1e-6)


# ---- the temperature


@pytest.mark.parametrize("seed", range(2))
@pytest.mark.parametrize("sure", [0.3, 1.0, 4.0])
def test_the_temperature_is_where_the_slope_written_out_is_zero(seed, sure):
    logits, targets = drawn(seed, sure=sure)
    expected = temperature_by_hand(logits.tolist(), targets.tolist())
    assert 1 / MOST_TEMPERATURE < expected < MOST_TEMPERATURE
    assert calibrate(logits, targets).temperature == pytest.approx(expected, rel=1e-5)


def test_the_temperature_recovers_the_overconfidence():
    logits, targets = drawn(0, documents=20_000, sure=3.0)
    assert calibrate(logits, targets).temperature == pytest.approx(3.0, rel=0.05)


@given(st.floats(0.2, 5), st.lists(st.floats(-50, 50), min_size=60, max_size=60))
@settings(max_examples=25)
def test_scaled_logits_have_a_scaled_temperature_and_shifted_rows_the_same(factor, shifts):
    logits, targets = drawn(1)
    first = calibrate(logits, targets).temperature
    assert calibrate(factor * logits, targets).temperature == pytest.approx(factor * first, rel=1e-4)
    assert calibrate(logits + np.array(shifts)[:, None], targets).temperature == pytest.approx(first, rel=1e-4)


def test_the_order_of_labels_and_rows_does_not_matter():
    logits, targets = drawn(2)
    order = np.array([2, 0, 3, 1])
    moved = np.empty_like(logits)
    moved[:, order] = logits
    first = calibrate(logits, targets).temperature
    assert calibrate(moved, order[targets]).temperature == pytest.approx(first, rel=1e-6)
    assert calibrate(logits[::-1], targets[::-1]).temperature == pytest.approx(first, rel=1e-6)


HUGE = 1e308
DEGENERATE = {
    "all right by a huge margin": ([[HUGE, -HUGE], [-HUGE, HUGE]], [0, 1], MOST_TEMPERATURE),
    # Half an error beside two right answers is a probability of 5/6, so the logits differ by at most log(5).
    "all right by a margin": ([[3.0, 0.0], [0.0, 3.0]], [0, 1], 3 / math.log(5)),
    "all wrong by a huge margin": ([[HUGE, -HUGE], [-HUGE, HUGE]], [1, 0], MOST_TEMPERATURE),
    "all wrong by a margin": ([[3.0, 0.0], [0.0, 3.0]], [1, 0], MOST_TEMPERATURE),
    "one row, right": ([[2.0, 0.0, 0.0]], [0], 2 / math.log(6)),
    "one row, wrong": ([[2.0, 1.0, 0.0]], [2], MOST_TEMPERATURE),
    "equal logits": ([[1.0, 1.0], [1.0, 1.0]], [0, 1], 1.0),
    "one label": ([[1.0], [5.0]], [0, 0], 1.0),
    "whole numbers": ([[3, 0], [0, 3]], [0, 1], 3 / math.log(5)),
}


@pytest.mark.parametrize("kind", DEGENERATE)
def test_degenerate_rows_stay_finite_and_inside_the_range(kind):
    logits, targets, expected = DEGENERATE[kind]
    found = calibrate(logits, targets)
    assert found.temperature == pytest.approx(expected, rel=1e-6)
    assert 1 / MOST_TEMPERATURE <= found.temperature <= MOST_TEMPERATURE
    numbers = (found.ece_before, found.ece_after, found.nll_before, found.nll_after)
    assert all(math.isfinite(number) for number in numbers)


@pytest.mark.parametrize("documents", [1, 10, 100, 1000])
def test_the_confidence_of_a_faultless_model_is_limited_by_the_number_of_rows(documents):
    targets = np.arange(documents) % 2
    logits = np.where(np.arange(2) == targets[:, None], 9.0, 0.0)
    gap = 9.0 / calibrate(logits, targets).temperature
    assert 1 / (1 + math.exp(-gap)) == pytest.approx(1 - 0.5 / (documents + 1), abs=1e-6)


# ---- both


@pytest.mark.parametrize("sure", [0.3, 4.0])
def test_calibrating_reports_likelihood_and_error_before_and_after(sure):
    logits, targets = drawn(3, sure=sure)
    found = calibrate(logits, targets)
    assert found.documents == 60
    for temperature, nll, ece in (
        (1.0, found.nll_before, found.ece_before),
        (found.temperature, found.nll_after, found.ece_after),
    ):
        assert nll == pytest.approx(nll_by_hand(logits.tolist(), targets.tolist(), temperature))
        powers = np.exp(logits / temperature)
        shares = powers / powers.sum(axis=1, keepdims=True)
        right = shares.argmax(axis=1) == targets
        assert ece == pytest.approx(expected_calibration_error(shares.max(axis=1), right))
    assert found.nll_after < found.nll_before
    assert found.ece_after < found.ece_before


# ---- refusals


@pytest.mark.parametrize(
    ("logits", "targets", "error", "words"),
    [
        ([1.0, 2.0], [0, 1], ShapeError, r"logits must be a matrix .* Got shape \(2,\)"),
        ([[1.0, 2.0]], [0, 1], ShapeError, r"one column number for each of 1 documents. Got int64 of shape \(2,\)"),
        ([[1.0, 2.0]], [0.5], ShapeError, "Got float64 of shape"),
        ([[1.0, 2.0]], ["a"], ShapeError, "column number"),
        ([[1.0, 2.0]], [2], ShapeError, "from 0 to 1. Got 2"),
        ([[1.0, 2.0]], [-1], ShapeError, "from 0 to 1. Got -1"),
        (np.empty((0, 2)), [], InputError, r"nothing to calibrate on, they have shape \(0, 2\)"),
        (np.empty((2, 0)), [0, 0], InputError, "nothing to calibrate on"),
        ([[1.0, math.nan]], [0], InputError, "logits must be finite. Got nan"),
        ([[1.0, -math.inf]], [0], InputError, "logits must be finite. Got -inf"),
    ],
)
def test_invalid_logits_and_targets_are_refused(logits, targets, error, words):
    with pytest.raises(error, match=words):
        calibrate(logits, targets)


@pytest.mark.parametrize(
    ("confidence", "right", "bins", "error", "words"),
    [
        ([[0.5]], [True], 15, ShapeError, "confidence must hold one number for each document"),
        ([0.5], [True, False], 15, ShapeError, r"right must hold one value for each of 1 documents"),
        ([0.5], [2], 15, InputError, r"right\[0\] must be True or False"),
        ([], [], 15, InputError, "confidence holds no document"),
        ([0.5, math.nan], [True, True], 15, InputError, r"confidence\[1\] must be a finite number. Got nan"),
        ([0.5, 1.5], [True, True], 15, InputError, "probabilities from 0 to 1. Got 1.5"),
        ([0.5], [True], 0, ConfigError, "bins must be a whole number at least 1"),
    ],
)
def test_invalid_confidences_are_refused(confidence, right, bins, error, words):
    with pytest.raises(error, match=words):
        expected_calibration_error(confidence, right, bins)


def test_tensors_with_a_gradient_and_in_half_precision_are_read():
    logits, targets = torch.tensor([[6.0, 0.0], [6.0, 0.0], [0.0, 6.0], [6.0, 0.0]]), torch.tensor([0, 0, 1, 1])
    learnt = logits.bfloat16().requires_grad_()
    assert calibrate(learnt, targets) == calibrate(logits.numpy(), targets.numpy())
    assert temperature_for_accuracy(learnt, 0.9) == temperature_for_accuracy(logits.numpy(), 0.9)
    sure, right = learnt[:, 0] / 8, [True, True, False, True]
    assert expected_calibration_error(sure, right) == expected_calibration_error([0.75, 0.75, 0.0, 0.75], right)
    assert rejection_curve(sure, right).area == rejection_curve([0.75, 0.75, 0.0, 0.75], right).area


def test_a_softmax_in_half_precision_is_refused_with_the_cure():
    shares = torch.linspace(-3, 3, 77)[None].bfloat16().softmax(dim=1)
    with pytest.raises(InputError, match="give those of a softmax in float32 or wider"):
        softmax_entropy(shares)
    assert softmax_entropy(torch.tensor([[0.5, 0.5]], dtype=torch.bfloat16)).tolist() == [math.log(2)]


def test_neither_calibration_nor_abstention_needs_torch():
    code = "import sys, labelspace.training.calibration, labelspace.training.abstention; print('torch' in sys.modules)"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "False"
    assert calibration.__doc__
