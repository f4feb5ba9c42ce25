"""The prior of a view, and the shift that corrects it."""

import numpy as np
import pytest
from scipy.special import softmax

from labelspace.consensus.prior import NEAR, as_sure_as, levelled, shift_answers_to, shift_to


def random_logits(rows: int = 200, labels: int = 4) -> np.ndarray:
    """Logits of a view that prefers the later labels."""
    return np.random.default_rng(0).normal(size=(rows, labels)) * 2 + np.arange(labels)


@pytest.mark.parametrize("prior", [[0.25, 0.25, 0.25, 0.25], [0.7, 0.1, 0.1, 0.1], [0.001, 0.333, 0.333, 0.333]])
def test_after_the_shift_mean_probabilities_meet_the_prior(prior):
    logits = random_logits()
    shift = shift_to(logits, np.array(prior))
    assert softmax(logits + shift, axis=1).mean(axis=0) == pytest.approx(prior, abs=1e-5)
    assert shift.mean() == pytest.approx(0)


def test_a_view_that_meets_the_prior_is_not_shifted():
    logits = random_logits()
    assert shift_to(logits, softmax(logits, axis=1).mean(axis=0)) == pytest.approx(np.zeros(4), abs=1e-5)


def test_alpha_goes_from_equal_shares_to_the_views_own():
    shares = np.array([0.8, 0.15, 0.05])
    assert levelled(shares, 0) == pytest.approx([1 / 3] * 3)
    assert levelled(shares, 1) == pytest.approx(shares)
    assert levelled(shares, 0.5) == pytest.approx(np.sqrt(shares) / np.sqrt(shares).sum())


def test_a_label_that_no_document_is_near_keeps_a_finite_shift():
    logits = np.array([[0.0, -1000.0]] * 5)
    assert np.isfinite(shift_to(logits, levelled(softmax(logits, axis=1).mean(axis=0), 0.5))).all()


@pytest.mark.parametrize("confidence", [0.4, 0.7, 0.95])
def test_scaled_logits_are_as_sure_as_wanted_and_rank_as_before(confidence):
    logits = random_logits()
    scaled = as_sure_as(logits, confidence)
    assert softmax(scaled, axis=1).max(axis=1).mean() == pytest.approx(confidence, abs=1e-3)
    assert (scaled.argsort(axis=1) == logits.argsort(axis=1)).all()


def test_logits_without_any_difference_stay():
    assert (as_sure_as(np.ones((3, 2)), 0.9) == 1).all()


def test_ties_do_not_make_the_other_rows_sure_beyond_measure():
    scaled = as_sure_as(np.array([[0.5, 0.5], [0.2, 0.1]]), 0.9)
    assert scaled[1, 0] - scaled[1, 1] < 20


@pytest.mark.parametrize(
    ("prior", "sure", "bias"),
    [([0.9, 0.1], 0.1, 1), ([0.99, 0.01], 0.01, 0), ([0.99, 0.01], 0.1, 10), ([0.7, 0.295, 0.005], 5, 0)],
)
def test_the_answers_have_the_shares_of_a_prior_rare_labels_too(prior, sure, bias):
    logits = np.random.default_rng(0).normal(size=(2000, len(prior))) * sure
    logits[:, -1] -= bias * sure
    answers = (logits + shift_answers_to(logits, np.array(prior))).argmax(axis=1)
    shares = np.bincount(answers, minlength=len(prior)) / len(answers)
    assert (np.abs(shares - prior) <= 2 * NEAR * np.array(prior) + 1 / len(answers)).all()


def test_a_view_that_is_sure_of_some_documents_alone_meets_a_prior_too():
    """One correction is not enough: what the sure documents leave to the others is known after it."""
    draw = np.random.default_rng(0)
    logits = draw.normal(size=(2000, 11)) * draw.choice([0.01, 3], size=(2000, 1))
    prior = np.array([0.02] * 10 + [0.8])
    answers = (logits + shift_answers_to(logits, prior)).argmax(axis=1)
    assert np.bincount(answers, minlength=11) / 2000 == pytest.approx(prior, rel=NEAR)
