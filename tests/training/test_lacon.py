"""Training on labelled texts: batches, exact gradients, initial heads, the prior, the schedule, stopping."""

import math
import tracemalloc
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from torch import Tensor
from torch.nn import functional as F

from labelspace.config import LaConConfig, SearchConfig
from labelspace.encoders import Encoder
from labelspace.errors import ConfigError, InputError, LabelSpaceWarning, TrainingError
from labelspace.labels import LabelSpace
from labelspace.losses import (
    instance_centred,
    label_centred,
    label_regularizer,
    self_supervised_contrastive,
    supervised_contrastive,
    symmetric_infonce,
)
from labelspace.training.description.sweep import sweep_texts
from labelspace.training.features import Features, answers, plain_vectors
from labelspace.training.gradients import backpropagate
from labelspace.training.lacon import HeadShape, LaConHead, loss, objective, prior, train_on_labels
from labelspace.training.lacon import fit as lacon_fit
from labelspace.training.lacon.fit import choose_rate
from labelspace.training.lacon.loss import BatchLoss, prior_loss
from labelspace.training.lacon.objective import Look, Turns, choose_heads
from labelspace.training.lacon.prior import (
    Agreement,
    choose_prior,
    compare,
    label_vectors,
    measure_agreement,
    place_labels,
    prior_weights,
    rows_to_tell,
    sums_of_rows,
)
from labelspace.training.rows import Rows, class_weights, cut, cycle, draw_weighted, split, split_texts, tokenize
from labelspace.training.schedule import rate_factor
from stops import stop_at
from weights import weights_of

TEXTS = [
    "the team won the match",
    "players of the league",
    "a great game this season",
    "banks and prices",
    "the market closed low",
    "stock and profit of the company",
    "research in physics",
    "a new computer for science",
    "medicine and study results",
    "war and peace",
    "the government falls after the election",
    "the court asked the minister",
]
TARGETS = np.repeat(np.arange(4), 3)
FAST = {
    "learning_rate": 1e-3,
    "head_learning_rate": 3e-3,
    "batch_size": 4,
    "epochs": 3,
    "encoder_dropout": False,
    "description_steps": 0,
}
KINDS = [
    ("lacon", "vanilla", "descriptions"),
    ("lacon", "fusion", "random"),
    ("cross-entropy", "vanilla", "random"),
    ("cross-entropy", "fusion", "descriptions"),
    ("cross-entropy", "leam", "descriptions"),
    ("cross-entropy", "lsan", "random"),
    ("cross-entropy+self-contrastive", "vanilla", "descriptions"),
    ("cross-entropy+supervised-contrastive", "fusion", "random"),
]


def train(
    encoder: Encoder, space: LabelSpace, *, seed: int = 0, copies: int = 1, callbacks: tuple = (), **options: Any
) -> Any:
    config, told = LaConConfig(**{**FAST, **options}), {"seed": seed, "callbacks": callbacks}
    return train_on_labels(encoder, space, TEXTS * copies, np.tile(TARGETS, copies), config, meaningful=True, **told)


def head_of(head: str = "vanilla", *, classifies: bool = False, dim: int = 32) -> LaConHead:
    shape = HeadShape(head=head, classifies=classifies, projection=head in ("vanilla", "fusion"), labels=4, dim=dim)
    return LaConHead(shape, generator=torch.Generator().manual_seed(0))


# ---- rows


def test_rows_are_held_out_in_proportion_to_each_label():
    targets = np.array([0] * 40 + [1] * 20 + [2] * 20)
    ours, theirs = split(targets, 0.1, seed=0)
    assert sorted(ours + theirs) == list(range(80))
    assert np.bincount(targets[theirs]).tolist() == [4, 2, 2]
    assert split(targets, 0.1, seed=0) == (ours, theirs)
    assert split(targets, 0.1, seed=1) != (ours, theirs)


def test_a_label_with_one_row_keeps_it_for_training():
    targets = np.array([0] * 10 + [1])
    ours, theirs = split(targets, 0.5, seed=0)
    assert 10 in ours
    assert len(theirs) == 6 or len(theirs) == 5


def test_equal_texts_are_trained_on_or_held_out_together():
    """Thirty texts, ten times each: drawing single rows would put nearly every text on both sides."""
    ids = [[1, text, 2] for text in range(30)] * 10
    targets = np.arange(300) % 3
    rows, held_out = split_texts(Rows(ids, None, 0), targets, 0.2, seed=0)
    assert sorted([*rows, *held_out]) == list(range(300))
    assert {row % 30 for row in rows}.isdisjoint(row % 30 for row in held_out)
    assert len(held_out) == 60
    assert np.bincount(targets[held_out]).tolist() == [20, 20, 20]


def test_distinct_texts_are_split_as_single_rows():
    ids, targets = [[1, text] for text in range(60)], np.arange(60) % 3
    assert split_texts(Rows(ids, None, 0), targets, 0.2, seed=3) == split(targets, 0.2, seed=3)


def test_a_label_whose_texts_all_have_another_label_too_is_trained_on():
    ids = [[text] for text in range(20)] + [[text] for text in range(3)]
    targets = np.array([0, 1] * 10 + [2] * 3)
    for seed in range(20):
        rows, held_out = split_texts(Rows(ids, None, 0), targets, 0.9, seed=seed)
        assert set(targets[rows]) == {0, 1, 2}
        assert {tuple(ids[row]) for row in rows}.isdisjoint(tuple(ids[row]) for row in held_out)
    assert split_texts(Rows([[1, 2]] * 4, None, 0), np.array([0, 0, 1, 1]), 0.5, seed=0) == ([0, 1, 2, 3], [])


def test_a_text_that_is_most_of_the_rows_is_never_held_out():
    rows = Rows([[0]] * 900 + [[1 + number] for number in range(100)], None, 0)
    targets = np.array([0] * 900 + [0, 1] * 50)
    for seed in range(8):
        ours, theirs = split_texts(rows, targets, 0.2, seed=seed)
        assert len(theirs) == 20
        assert set(range(900)) <= set(ours)


def test_pairs_are_equal_only_if_both_texts_are():
    """Two pairs may share their tokens and be divided at another place, as their token types tell."""
    pairs = Rows([[1, 2, 3]] * 20, [[0, 0, 1], [0, 1, 1]] * 10, 0)
    rows, held_out = split_texts(pairs, np.array([0, 1] * 10), 0.5, seed=0)
    assert (rows, held_out) == (list(range(20)), []), "each label has one text"
    three = Rows([[1, 2, 3], [1, 2, 3], [4]] * 10, [[0, 0, 1], [0, 1, 1], [0]] * 10, 0)
    assert len(split_texts(three, np.zeros(30, dtype=int), 0.5, seed=0)[1]) == 20


def test_balanced_draws_repeat_a_row_only_after_all_of_its_label():
    targets = np.array([0] * 9 + [1] * 3)
    equally = class_weights("balanced", "ab", targets)
    drawn = draw_weighted(targets, equally, seed=0, epoch=0)
    assert np.bincount(targets[drawn]).tolist() == [6, 6]
    assert len({row for row in drawn if targets[row] == 0}) == 6
    assert {row for row in drawn if targets[row] == 1} == {9, 10, 11}
    assert draw_weighted(targets, equally, seed=0, epoch=1) != drawn


def test_a_label_of_low_weight_is_drawn_in_some_epochs():
    targets = np.array([0] * 40 + [1] * 2)
    weights = class_weights({"b": 0.1}, "ab", targets)
    drawn = [draw_weighted(targets, weights, seed=0, epoch=epoch) for epoch in range(200)]
    assert {len(rows) for rows in drawn} == {42}
    mean = np.mean([np.bincount(targets[rows], minlength=2) for rows in drawn], axis=0)
    assert mean == pytest.approx(42 * np.array([40, 0.2]) / 40.2, rel=0.25)
    heavy = [draw_weighted(np.repeat([0, 1, 2], [90, 9, 1]), np.array([1e6, 1, 1]), seed=0, epoch=0)]
    assert len(heavy[0]) == 100


def test_a_cycle_is_endless():
    turns = cycle(3, seed=0)
    first, second = [next(turns) for _ in range(3)], [next(turns) for _ in range(3)]
    assert sorted(first) == sorted(second) == [0, 1, 2]


def test_pairs_are_joined_by_the_tokenizer(encoder: Encoder):
    rows = tokenize(encoder, [("the team won", "a match"), ("war", "peace and war")])
    expected = encoder.backbone.tokenizer(["the team won", "war"], ["a match", "peace and war"])
    assert rows.token_ids == expected["input_ids"]
    assert rows.token_types == expected["token_type_ids"]
    both = rows + tokenize(encoder, ["war"])
    assert both.token_types is not None
    assert both.token_types[2] == [0] * len(both.token_ids[2])


def test_token_types_of_a_pair_change_its_vector(encoder: Encoder):
    rows = tokenize(encoder, [("the team won", "a match")])
    with_types = plain_vectors(encoder, rows, words=False)
    without = plain_vectors(encoder, type(rows)(rows.token_ids, None, 0), words=False)
    assert np.abs(with_types - without).max() > 1e-4


# ---- the encoder


def test_token_states_pooled_by_hand_are_the_embedding(encoder: Encoder):
    """The reference uses mean pooling, as the tiny BERT does."""
    rows = tokenize(encoder, TEXTS)
    assert np.abs(plain_vectors(encoder, rows, words=True) - encoder.encode(TEXTS)).max() < 1e-5


@pytest.mark.parametrize("words", [False, True])
def test_the_gradient_does_not_depend_on_the_memory_limit(words: bool, open_tiny: Callable[..., Encoder]):
    found = []
    for most in (10_000, 20):
        encoder, head = open_tiny(), head_of("fusion" if words else "vanilla")
        rows = tokenize(encoder, TEXTS)
        with encoder.backbone.training_mode(encoder_dropout=True):
            loss = backpropagate(
                encoder.backbone,
                cut(encoder.backbone, rows, 20),
                lambda features, head=head: head.table(features, 0.1)[torch.arange(12), torch.arange(12) % 4].logsumexp(
                    0
                ),
                words=words,
                seed=3,
                max_tokens_in_memory=most,
            )
        found.append((loss, [p.grad.clone() for p in encoder.backbone.model.parameters() if p.grad is not None]))
    (one, of_one), (other, of_other) = found
    assert one == pytest.approx(other, rel=1e-5)
    assert len(of_one) == len(of_other) > 0
    for left, right in zip(of_one, of_other, strict=True):
        assert (left - right).abs().max() <= 1e-4 * max(1.0, left.abs().max().item())


# ---- the head


@pytest.mark.parametrize("classifies", [False, True])
def test_a_head_started_from_descriptions_scores_like_the_untrained_encoder(
    classifies: bool, encoder: Encoder, space: LabelSpace
):
    anchors = torch.from_numpy(label_vectors(encoder, space, words=False))
    head = head_of(classifies=classifies)
    texts = torch.from_numpy(encoder.encode(TEXTS))
    before = head.table(Features(texts, None), 0.1)
    head.start_from(anchors, 0.1)
    expected = texts @ anchors.T / 0.1
    assert (head.table(Features(texts, None), 0.1) - expected).abs().max() < 0.05
    assert (before - expected).abs().max() > 1


def test_initial_weights_of_a_head_come_only_from_its_generator():
    torch.manual_seed(1)
    first = head_of("fusion")
    torch.manual_seed(2)
    again = head_of("fusion")
    assert all(torch.equal(a, b) for a, b in zip(first.parameters(), again.parameters(), strict=True))


@pytest.mark.parametrize(("given", "dim", "found"), [(None, 384, 6), (None, 32, 4), (None, 7, 1), (8, 32, 8)])
def test_heads_are_as_given_or_the_largest_divisor_up_to_six(given: int | None, dim: int, found: int):
    assert choose_heads(given, dim) == found


def test_heads_that_do_not_divide_the_width_are_refused(encoder: Encoder, space: LabelSpace):
    with pytest.raises(ConfigError, match=r"heads must divide the width of the encoder, 32\. Got 6 instead"):
        train(encoder, space, heads=6)


# ---- the prior


def test_the_weight_of_descriptions_falls_with_the_rows_to_zero():
    weights = prior_weights(np.array([0, 1, 8, 100, 152, 153, 10_000])).tolist()
    assert weights == sorted(weights, reverse=True)
    assert (weights[0], weights[2]) == (1.0, 0.5)
    assert weights[4] == pytest.approx(0.05)
    assert weights[-2:] == [0, 0]


def agreement(*contradicted: str) -> Agreement:
    return Agreement(rows=8, by_descriptions=0.5, by_rows=0.6, contradicted=contradicted)


def test_each_label_has_its_own_weight_and_the_mean_slows_training():
    """400 rows of one label leave the descriptions of another with a single row their weight."""
    prior = choose_prior(LaConConfig(), agreement(), np.array([400, 1]), "ab")
    assert prior.by_label == (0, pytest.approx(8 / 9))
    assert (prior.weight, prior.rate) == (pytest.approx(4 / 9), pytest.approx(5 / 9))
    assert (prior.reason, prior.rows_per_label) == ("rows per label", 200.5)
    assert choose_prior(LaConConfig(), agreement(), np.array([1000, 153]), "ab").reason == "many rows"


def test_a_contradiction_removes_the_descriptions_unless_their_weight_is_given():
    auto, given, counts = LaConConfig(), LaConConfig(description_weight=0.3), np.array([8, 8])
    whole = choose_prior(auto, agreement("a", "b"), counts, "ab")
    assert (whole.weight, whole.reason, whole.rate) == (0, "contradicted", 1)
    half = choose_prior(auto, agreement("a"), counts, "ab")
    assert (half.by_label, half.reason) == ((0, 0.5), "rows per label")
    unknown = Agreement(rows=0, by_descriptions=None, by_rows=None, contradicted=None)
    assert choose_prior(auto, unknown, counts, "ab").by_label == (0.5, 0.5)
    stands = choose_prior(given, agreement("a", "b"), counts, "ab")
    assert (stands.by_label, stands.reason, stands.rate) == ((0.3, 0.3), "given", 1)
    none = choose_prior(given, None, counts, "ab")
    assert (none.weight, none.reason) == (0, "no meaning")


def test_descriptions_are_drawn_in_proportion_to_their_weight():
    drawn = np.bincount(Turns(np.array([0.5, 1.0, 0.25]), seed=0).take(0, 3500))
    assert drawn == pytest.approx([1000, 2000, 500], rel=0.1)
    equal = Turns(np.full(5, 0.3), seed=0)
    assert sorted(equal.take(0, 5)) == list(range(5)), "equal weights: all in turn"
    assert Turns(np.full(5, 0.3), seed=0).take(5, 5) == equal.take(5, 5), "whoever starts later gets the same"


def test_label_vectors_are_means_of_the_descriptions(encoder: Encoder, space: LabelSpace):
    texts, targets = sweep_texts(space)
    vectors = encoder.encode(texts)
    for label, found in enumerate(label_vectors(encoder, space, words=False)):
        own = [vectors[row] for row in range(len(texts)) if targets[row] == label]
        mean = sum(own) / len(own)
        assert found == pytest.approx(mean / np.linalg.norm(mean), abs=1e-5)


def gaussians(
    seed: int, labels: int, rows: int, *, noise: float, wrong: float = 0.8
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Draw descriptions, rows and targets around shared centres, with separate styles for rows and descriptions."""
    draw, dim = np.random.default_rng(seed), 64
    centres, styles = draw.normal(size=(labels, dim)), draw.normal(size=(2, dim))
    targets = np.repeat(np.arange(labels), rows)
    anchors = centres + styles[0] + wrong * draw.normal(size=(labels, dim))
    vectors = centres[targets] + styles[1] + noise * draw.normal(size=(len(targets), dim))
    anchors, vectors = (each / np.linalg.norm(each, axis=1, keepdims=True) for each in (anchors, vectors))
    return anchors, vectors, targets


def sums_and_counts(vectors: np.ndarray, targets: np.ndarray, labels: int) -> tuple[np.ndarray, np.ndarray]:
    """Return the sum and the number of each label's rows, for `place_labels`."""
    sums = np.zeros((labels, vectors.shape[1]))
    np.add.at(sums, targets, vectors)
    return sums, np.bincount(targets, minlength=labels)


@pytest.mark.parametrize("labels", [2, 6])
@pytest.mark.parametrize("rows", [4, 16, 64])
@pytest.mark.parametrize("noise", [1.0, 3.0])
def test_sound_descriptions_are_never_contradicted(labels: int, rows: int, noise: float):
    """Both with many rows, which know more than the descriptions, and with few, which know much less."""
    names = [str(label) for label in range(labels)]
    found = [compare(*gaussians(seed, labels, rows, noise=noise, wrong=1.5), names) for seed in range(20)]
    assert {each.contradicted for each in found} == {()}
    if (labels, rows) == (6, 64):
        assert sum(each.by_rows > each.by_descriptions for each in found) >= 15, "the rows are the better ones"


@pytest.mark.parametrize("labels", [2, 6])
@pytest.mark.parametrize("rows", [4, 16, 64])
def test_swapped_descriptions_are_contradicted_from_four_rows_per_label(labels: int, rows: int):
    names = tuple(str(label) for label in range(labels))
    for seed in range(10):
        anchors, vectors, targets = gaussians(seed, labels, rows, noise=1.0)
        assert compare(np.roll(anchors, 1, axis=0), vectors, targets, names).contradicted == names


def test_three_rows_per_label_are_too_few_to_judge():
    anchors, vectors, targets = gaussians(0, 4, 3, noise=1.0)
    found = compare(np.roll(anchors, 1, axis=0), vectors, targets, "abcd")
    assert (found.rows, found.by_rows, found.contradicted) == (0, None, None)


def test_single_labels_are_contradicted_while_others_are_sound():
    for seed in range(10):
        anchors, vectors, targets = gaussians(seed, 6, 64, noise=1.5)
        assert compare(anchors[[1, 0, 3, 2, 4, 5]], vectors, targets, "abcdef").contradicted == tuple("abcd")


@pytest.mark.parametrize("labels", [77, 200])
def test_enough_rows_are_drawn_to_find_two_swapped_labels_among_many(labels: int):
    names = tuple(str(label) for label in range(labels))
    anchors, vectors, targets = gaussians(0, labels, rows_to_tell(labels), noise=0.5, wrong=0.3)
    swapped = anchors[[1, 0, *range(2, labels)]]
    assert compare(swapped, vectors, targets, names).contradicted == names[:2]
    assert compare(anchors, vectors, targets, names).contradicted == ()
    fewer = np.arange(len(targets)) % rows_to_tell(labels) < 12
    assert compare(swapped, vectors[fewer], targets[fewer], names).contradicted == (), "twelve could be luck"


def test_enough_rows_of_each_label_are_drawn_to_judge_it(encoder: Encoder):
    labels, each = 80, 20
    rows = tokenize(encoder, ["a text"] * labels * each)
    targets = np.repeat(np.arange(labels), each)
    anchors = np.ones((labels, 32), dtype=np.float32)
    names = [str(label) for label in range(labels)]
    found = measure_agreement(encoder, anchors, rows, targets, names, words=False, seed=0)
    assert found.rows == labels * rows_to_tell(labels)


def test_results_do_not_depend_on_the_block_size(monkeypatch: pytest.MonkeyPatch, encoder: Encoder):
    anchors, vectors, targets = gaussians(0, 6, 16, noise=2.0)
    rows, own = tokenize(encoder, TEXTS), np.repeat([0, 1, 2], 4)
    whole = compare(anchors, vectors, targets, "abcdef"), sums_of_rows(encoder, rows, own, 4, words=False)
    vectors_of_texts = plain_vectors(encoder, rows, words=False)
    assert whole[1] == pytest.approx(sums_and_counts(vectors_of_texts, own, 4)[0], abs=1e-5)
    monkeypatch.setattr(prior, "BLOCK", 5)
    assert compare(anchors, vectors, targets, "abcdef") == whole[0]
    assert sums_of_rows(encoder, rows, own, 4, words=False) == pytest.approx(whole[1], abs=1e-2)  # bfloat16 batches


def test_the_comparison_never_holds_all_rows_by_labels(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(prior, "BLOCK", 256)
    labels, each, dim = 1000, 8, 8
    draw = np.random.default_rng(0)
    anchors, targets = draw.normal(size=(labels, dim)), np.repeat(np.arange(labels), each)
    vectors = anchors[targets].astype(np.float32)
    names = [str(label) for label in range(labels)]
    tracemalloc.start()
    compare(anchors, vectors, targets, names)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    table = labels * each * labels * 8
    assert peak < table / 8


def test_uninformative_descriptions_are_not_contradicted_by_uninformative_rows():
    draw = np.random.default_rng(0)
    for _ in range(20):
        anchors, vectors = draw.normal(size=(2, 64)), draw.normal(size=(40, 64))
        assert compare(anchors, vectors, np.repeat([0, 1], 20), "ab").contradicted == ()


def test_agreement_is_measured_on_rows_of_every_label(encoder: Encoder):
    rows = tokenize(encoder, TEXTS)
    vectors = plain_vectors(encoder, rows, words=False)
    halves = np.repeat([0, 1], 6)
    right = (vectors - vectors.mean(axis=0)) @ (vectors[:6].mean(axis=0) - vectors[6:].mean(axis=0)) < 0
    assert min(np.bincount(right.astype(np.intp))) >= 4
    anchors = np.stack([vectors[~right].mean(axis=0), vectors[right].mean(axis=0)])
    for own, expected in ((right, ()), (~right, ("a", "b"))):
        found = measure_agreement(encoder, anchors, rows, own.astype(np.intp), "ab", words=False, seed=0)
        assert (found.rows, found.contradicted) == (12, expected)
    assert measure_agreement(encoder, anchors, rows, halves, "ab", words=False, seed=0).rows == 12


def test_a_label_with_fewer_rows_loses_no_texts_to_the_others():
    """Label 0 has no row; it keeps three quarters of the texts that its descriptions alone would win."""
    kept = described = halfway = 0
    for seed in range(10):
        anchors, vectors, targets = gaussians(seed, 5, 80, noise=2.5)
        known = (np.arange(len(targets)) % 80 < 40) & (targets > 0)
        places = place_labels(anchors, *sums_and_counts(vectors[known], targets[known], 5))
        own = vectors[(targets == 0)]
        sums = 8 * anchors
        np.add.at(sums, targets[known], vectors[known])
        plain = sums / np.linalg.norm(sums, axis=1, keepdims=True)
        tables = (own @ places.T, own @ anchors.T, own @ plain.T)
        kept, described, halfway = (
            count + (table.argmax(axis=1) == 0).sum()
            for count, table in zip((kept, described, halfway), tables, strict=True)
        )
    assert kept >= 0.75 * described > halfway


def test_contradicted_labels_start_at_the_means_of_their_rows():
    anchors, vectors, targets = gaussians(0, 3, 10, noise=1.0)
    known = targets < 2
    places = place_labels(anchors, *sums_and_counts(vectors[known], targets[known], 3), contradicted=[0, 1, 2])
    for label in (0, 1):
        mean = vectors[targets == label].mean(axis=0)
        assert places[label] == pytest.approx(mean / np.linalg.norm(mean))
    assert np.isfinite(places).all(), "the last has no row, and starts by its descriptions"


def test_the_prior_of_a_description_of_each_label_is_symmetric_infonce():
    table, targets = torch.randn(5, 3, generator=torch.Generator().manual_seed(0)), torch.tensor([2, 0, 1, 0, 2])
    assert torch.allclose(prior_loss(table, targets), symmetric_infonce(table, targets))
    assert torch.isfinite(prior_loss(table[:2], targets[:2])), "label 1 has no description among these"


@pytest.mark.parametrize(("objective", "heads", "terms"), [("lacon", 4, 4 + 6 / 3), ("cross-entropy", 1, 1)])
def test_a_description_counts_like_a_text_times_its_share(objective: str, heads: int, terms: float):
    """Six texts of three labels: each has a term in every head, and eq. 5 two for each label."""
    head = head_of(classifies=objective != "lacon")
    config = LaConConfig(objective=objective)
    features = Features(torch.randn(10, 32, generator=torch.Generator().manual_seed(1)), None)
    targets, of_descriptions = torch.tensor([0, 0, 1, 1, 3, 3]), torch.tensor([0, 1, 2, 3])
    rows = BatchLoss(head, config, heads, targets=targets, description_targets=of_descriptions[:0], prior=0)
    both = BatchLoss(head, config, heads, targets=targets, description_targets=of_descriptions, prior=0.2)
    prior = prior_loss(head.table(features[6:], config.temperature), of_descriptions)
    assert torch.allclose(both(features), 0.8 * rows(features[:6]) + 0.2 * terms * prior)


@pytest.mark.parametrize("weights", [(2.0, 0.5, 0.7), (0.5, 2.0, 0.0)])
def test_the_objective_is_its_parts_times_their_weights(weights: tuple[float, float, float]):
    instance, label, regularizer = weights
    own = {"instance_weight": instance, "label_weight": label, "regularizer_weight": regularizer}
    features = Features(torch.randn(6, 32, generator=torch.Generator().manual_seed(1)), None)
    targets, nothing = torch.tensor([0, 0, 1, 1, 3, 3]), torch.zeros(0, dtype=torch.long)

    def loss(head: LaConHead, values: Features, objective: str) -> Tensor:
        config = LaConConfig(objective=objective, temperature=0.2, **own)
        return BatchLoss(head, config, 4, targets=targets, description_targets=nothing, prior=0)(values)

    head = head_of()
    vectors, labels = head.vectors(features), head.labels()
    expected = instance * instance_centred(vectors, labels, targets, 0.2, 4)
    expected = expected + label * label_centred(vectors, labels, targets, 0.2) + regularizer * label_regularizer(labels)
    assert torch.allclose(loss(head, features, "lacon"), expected)

    head = head_of(classifies=True)
    cross_entropy = F.cross_entropy(head.logits(features), targets)
    assert torch.allclose(loss(head, features, "cross-entropy"), instance * cross_entropy)
    supervised = supervised_contrastive(head.vectors(features), targets, 0.2)
    expected = instance * cross_entropy + label * supervised
    assert torch.allclose(loss(head, features, "cross-entropy+supervised-contrastive"), expected)
    twice = Features(torch.cat([features.values, features.values.flip(0)]), None)
    views = self_supervised_contrastive(head.vectors(features), head.vectors(twice[6:]), 0.2)
    expected = instance * cross_entropy + label * views
    assert torch.allclose(loss(head, twice, "cross-entropy+self-contrastive"), expected)


def test_leams_objective_has_its_own_regularizer():
    head, targets = head_of("leam", classifies=True), torch.tensor([0, 0, 1, 1, 3, 3])
    words = Features(torch.randn(6, 5, 32, generator=torch.Generator().manual_seed(1)), torch.ones(6, 5).bool())
    config = LaConConfig(objective="cross-entropy", head="leam", instance_weight=2.0, regularizer_weight=0.7)
    nothing = torch.zeros(0, dtype=torch.long)
    found = BatchLoss(head, config, 1, targets=targets, description_targets=nothing, prior=0)(words)
    own = F.cross_entropy(head.classifier.label_logits(), torch.arange(4))
    assert torch.allclose(found, 2 * F.cross_entropy(head.logits(words), targets) + 0.7 * own)


def test_the_two_views_of_a_text_go_through_two_dropout_masks(encoder: Encoder, monkeypatch: pytest.MonkeyPatch):
    seen: list[Tensor] = []
    contrastive = loss.self_supervised_contrastive

    def spy(first: Tensor, second: Tensor, temperature: float) -> Tensor:
        seen.append((first - second).norm(dim=1))
        return contrastive(first, second, temperature)

    monkeypatch.setattr(loss, "self_supervised_contrastive", spy)
    space = LabelSpace.from_names(["a", "b", "c", "d"])
    train(encoder, space, objective="cross-entropy+self-contrastive", encoder_dropout=True, max_steps=1)
    assert len(seen) == 1
    assert (seen[0] > 1e-3).all()


def test_in_a_batch_of_one_label_a_description_has_only_the_terms_of_the_heads():
    """Eq. 5 has no term there, so a description must not be weighted by one."""
    alone = BatchLoss(head_of(), LaConConfig(), 4, torch.zeros(6, dtype=torch.long), torch.tensor([0]), prior=0.2)
    assert alone.terms_of_a_text == 4


# ---- the schedule


def test_steps_on_labelled_rows_continue_from_those_on_descriptions(
    encoder: Encoder, space: LabelSpace, monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.setattr(lacon_fit, "SearchConfig", lambda: SearchConfig(rates=(1e-4, 1e-5), steps=2))
    told: list[int] = []
    callbacks = (lambda step, values: told.append(step) if "loss" in values else None,)
    train(encoder, space, callbacks=callbacks, description_steps=3, max_steps=4)
    assert told == [1, 2, 3, 4, 5, 6, 7]


@pytest.mark.parametrize("warmup", [0.0, 0.06, 0.5, 1.0])
def test_the_rate_rises_and_falls_and_is_never_zero(warmup: float):
    factors = [rate_factor(step, 50, warmup) for step in range(50)]
    peak = factors.index(max(factors))
    assert max(factors) == 1.0
    assert min(factors) > 0
    assert factors[: peak + 1] == sorted(factors[: peak + 1])
    assert factors[peak:] == sorted(factors[peak:], reverse=True)


def test_both_groups_follow_the_schedule_and_callbacks_receive_all_parts(encoder: Encoder, space: LabelSpace):
    told: list[dict[str, float]] = []
    train(encoder, space, callbacks=(lambda step, values: told.append(values),), max_steps=5, warmup=0.4)
    rates = [values["learning_rate"] for values in told]
    own = 3 / (8 + 3)  # three rows per label against the descriptions' eight
    assert rates == pytest.approx([1e-3 * own**2 * factor for factor in (0.5, 1, 0.75, 0.5, 0.25)])
    assert {"loss", "instance", "label", "regularizer", "descriptions"} <= set(told[0])


def test_the_rate_is_lower_for_wide_encoders_and_with_a_prior(encoder: Encoder, space: LabelSpace):
    assert [choose_rate("auto", width) for width in (32, 384, 768, 1024)] == pytest.approx([1e-4, 1e-4, 5e-5, 3.75e-5])
    own = 3 / (8 + 3)
    for given, highest in (("auto", 1e-4), (2e-5, 2e-5)):
        _, fit = train(encoder, space, learning_rate=given, head_learning_rate=1e-3, max_steps=1)
        assert fit.curve.learning_rate == pytest.approx(highest * own**2)
        assert fit.curve.head_learning_rate == pytest.approx(1e-3 * own)
    _, fit = train(encoder, space, learning_rate="auto", head_learning_rate=1e-3, max_steps=1, description_weight=0.5)
    assert (fit.curve.learning_rate, fit.curve.head_learning_rate) == (1e-4, 1e-3), "a given weight lowers none"


def test_copies_of_rows_say_nothing_new_about_the_descriptions(encoder: Encoder, space: LabelSpace):
    _, once = train(encoder, space, max_steps=1)
    _, four = train(encoder, space, copies=4, max_steps=1)
    assert four.prior == once.prior
    assert four.labelled == 4 * once.labelled
    assert four.curve.head_learning_rate == once.curve.head_learning_rate


# ---- training


@pytest.mark.parametrize(("objective", "head", "init"), KINDS)
def test_every_objective_and_head_reduces_its_loss(
    objective: str, head: str, init: str, encoder: Encoder, space: LabelSpace
):
    options = {"encoder_dropout": True} if "self" in objective else {}
    _, fit = train(encoder, space, objective=objective, head=head, init=init, batch_size=12, epochs=8, **options)
    losses = fit.curve.losses
    assert len(losses) == 8
    assert losses[-1] < losses[0]
    assert fit.init == init
    assert (fit.curve.stop_reason, fit.curve.best_step) == ("epochs", 8)


@pytest.mark.parametrize("projection", [False, True])
def test_the_projection_can_be_left_out(projection: bool, encoder: Encoder, space: LabelSpace):
    head, _ = train(encoder, space, projection_head=projection, max_steps=1)
    assert (head.projection is not None) == projection


def test_the_same_seed_gives_the_same_bits_and_another_does_not(open_tiny: Callable[..., Encoder], space: LabelSpace):
    runs = []
    for seed in (0, 0, 1):
        torch.manual_seed(len(runs))  # must have no effect
        encoder = open_tiny()
        head, fit = train(encoder, space, seed=seed, encoder_dropout=True, max_steps=2)
        runs.append((fit.curve.losses, {**weights_of(encoder), **head.state_dict()}))
    assert runs[0][0] == runs[1][0] != runs[2][0]
    assert all(torch.equal(values, runs[1][1][name]) for name, values in runs[0][1].items())


def test_training_leaves_the_global_generators_alone(encoder: Encoder, space: LabelSpace):
    before = torch.get_rng_state(), np.random.get_state()[1].copy()  # noqa: NPY002
    train(encoder, space, encoder_dropout=True, max_steps=2)
    assert torch.equal(before[0], torch.get_rng_state())
    assert (before[1] == np.random.get_state()[1]).all()  # noqa: NPY002


def test_auto_validation_holds_out_rows_from_a_hundred_held_out_rows_on(encoder: Encoder, space: LabelSpace):
    for count, held_out in ((80, 0), (1999, 0), (2000, 100)):
        share = lacon_fit._share(LaConConfig(), np.resize(TARGETS, count), space)
        assert round(share * count) == held_out
    for validation, held_out in (("auto", 0), (0.34, 4)):
        _, fit = train(encoder, space, validation=validation, max_steps=1)
        assert (fit.labelled, fit.held_out, len(fit.curve.looks)) == (12, held_out, 2 if held_out else 0)
    many = np.resize(np.arange(12), 2000)
    documents = [f"{TEXTS[row]} {' '.join(np.base_repr(place))}" for place, row in enumerate(many)]
    config = LaConConfig(**{**FAST, "max_steps": 1})
    _, fit = train_on_labels(encoder, space, documents, TARGETS[many], config, meaningful=True, seed=0)
    assert (fit.labelled, fit.held_out, len(fit.curve.looks)) == (2000, 100, 2)


def test_a_label_with_one_row_is_refused_only_if_rows_are_held_out(encoder: Encoder, space: LabelSpace):
    documents, targets = TEXTS[:10], TARGETS[:10]  # one row of the last label
    for validation in ("auto", 0.0):
        config = LaConConfig(**{**FAST, "max_steps": 1, "validation": validation})
        train_on_labels(encoder, space, documents, targets, config, meaningful=True, seed=0)
    with pytest.raises(
        InputError, match=r"validation=0\.2 holds rows of every label out, and 'world' has a single one"
    ):
        train_on_labels(encoder, space, documents, targets, LaConConfig(validation=0.2), meaningful=True, seed=0)
    same = ["one text", "another"] * 10
    with pytest.raises(InputError, match=r"validation=0\.2 holds out none of 20 rows, as each label keeps a text"):
        train_on_labels(
            encoder, space, same, np.array([0, 1] * 10), LaConConfig(validation=0.2), meaningful=True, seed=0
        )


def test_training_stops_when_patience_ends_and_keeps_the_best_look(encoder: Encoder, space: LabelSpace):
    """At this rate later epochs make it worse; the weights of the best look are kept."""
    at_look: dict[int, dict[str, Tensor]] = {}

    def remember(step: int, values: dict[str, float]) -> None:
        if "held_out_loss" in values:
            at_look[step] = weights_of(encoder)

    options = {"patience": 2, "epochs": 30, "learning_rate": 0.3, "head_learning_rate": 1.0}
    _, fit = train(encoder, space, validation=0.34, callbacks=(remember,), **options)
    curve = fit.curve
    assert curve.stop_reason == "patience"
    best = max(curve.looks, key=lambda look: (look.macro_f1_predicted, -look.loss))
    assert curve.best_step == best.step
    assert curve.looks[-1].step - curve.best_step >= 2 * 2
    assert all(torch.equal(at_look[best.step][name], values) for name, values in weights_of(encoder).items())
    assert any((at_look[best.step][name] != values).any() for name, values in at_look[curve.steps].items())


def test_equal_texts_are_not_both_trained_on_and_held_out(encoder: Encoder, space: LabelSpace, monkeypatch):
    halves: list[set[tuple[int, ...]]] = []
    make = objective.LaConObjective.__init__

    def spied(self: Any, *given: Any, **options: Any) -> None:
        halves.extend({tuple(ids) for ids in part.rows.token_ids} for part in given[3:5])
        make(self, *given, **options)

    monkeypatch.setattr(objective.LaConObjective, "__init__", spied)
    config = LaConConfig(**{**FAST, "max_steps": 1, "validation": 0.34})
    train_on_labels(encoder, space, TEXTS * 9, np.tile(TARGETS, 9), config, meaningful=True, seed=0)
    train_part, held_out = halves
    assert train_part
    assert held_out
    assert train_part.isdisjoint(held_out)


def test_a_head_that_is_no_longer_finite_at_a_look_ends_in_one_line(
    open_tiny: Callable[..., Encoder], space: LabelSpace, monkeypatch, tmp_path: Path
):
    look = objective.LaConObjective.look

    def broken(self: Any, made: int, *more: Any) -> Any:
        if made == 2:
            with torch.no_grad():
                next(self._head.parameters()).fill_(math.nan)
        return look(self, made, *more)

    monkeypatch.setattr(objective.LaConObjective, "look", broken)
    config = LaConConfig(**{**FAST, "validation": 0.34, "batch_size": 4})
    said = r"^the held-out loss is nan at step 2 with learning_rate=.*use a lower"
    for checkpoint in (None, tmp_path / "here"):
        with pytest.raises(TrainingError, match=said):
            train_on_labels(open_tiny(), space, TEXTS, TARGETS, config, meaningful=True, seed=0, checkpoint=checkpoint)


def test_held_out_scores_do_not_depend_on_the_window(open_tiny, space: LabelSpace, monkeypatch):
    whole = train(open_tiny(), space, validation=0.34, epochs=1)[1].curve.looks
    sizes: list[int] = []

    def counted(encoder: Encoder, rows: Rows, *more: Any, **options: Any) -> Any:
        sizes.append(len(rows.lengths))
        return answers(encoder, rows, *more, **options)

    monkeypatch.setattr(objective, "answers", counted)
    monkeypatch.setattr(objective, "LOOKED_AT_ONCE", 3)
    parts = train(open_tiny(), space, validation=0.34, epochs=1)[1].curve.looks
    assert max(sizes) == 3
    assert len(sizes) > len(whole)
    assert [look.macro_f1_predicted for look in parts] == [look.macro_f1_predicted for look in whole]
    assert [look.loss for look in parts] == pytest.approx([look.loss for look in whole], rel=1e-5)


def test_a_look_is_better_by_macro_f1_and_among_equals_by_loss():
    look = Look(step=1, macro_f1_predicted=0.5, loss=1.0)
    assert look.better_than(None)
    assert Look(step=2, macro_f1_predicted=0.6, loss=9.0).better_than(look)
    assert Look(step=2, macro_f1_predicted=0.5, loss=0.9).better_than(look)
    assert not Look(step=2, macro_f1_predicted=0.5, loss=1.0).better_than(look)
    assert not Look(step=2, macro_f1_predicted=0.4, loss=0.1).better_than(look)


def test_a_loss_that_is_not_finite_stops_with_the_rate_to_try(
    encoder: Encoder, space: LabelSpace, monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.setattr(LaConHead, "vectors", lambda self, features: features.values * math.nan)
    with pytest.raises(
        TrainingError, match=r"the loss is nan at step 1 .*learning_rate=1e-04, a lower head_learning_rate, or"
    ):
        train(encoder, space, description_weight=0.0)


def test_an_interrupted_run_keeps_the_last_whole_epoch(encoder: Encoder, space: LabelSpace):
    with pytest.warns(LabelSpaceWarning, match="training was interrupted at step 5; the weights of step 3 are kept"):
        _, fit = train(encoder, space, callbacks=(stop_at(5, KeyboardInterrupt),))
    assert (fit.curve.stop_reason, fit.curve.best_step) == ("interrupted", 3)


def test_a_fit_can_be_written_as_json(encoder: Encoder, space: LabelSpace):
    import json

    _, fit = train(encoder, space, max_steps=1, validation=0.34)
    values = json.loads(json.dumps(fit.to_dict()))
    assert values["prior"]["agreement"].keys() == {"rows", "by_descriptions", "by_rows", "contradicted"}
    assert values["curve"]["looks"][0]["step"] == 0
    assert values["device"] == "cpu"
