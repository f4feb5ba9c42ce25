"""Steps of a consensus, and when they are left out."""

import json

import numpy as np
import pytest

from labelspace import LabelSpace
from labelspace.classify.by_joint import Seen
from labelspace.config import ConsensusConfig
from labelspace.consensus.steps import agree

SPACE = LabelSpace.from_names(["sports", "money"])
WORDS = (["team", "match", "coach", "goal"], ["bank", "price", "market", "loan"])


def pool(rows: int = 200) -> tuple[list[str], np.ndarray]:
    """Documents of three words of their label, and their labels."""
    draw = np.random.default_rng(0)
    truth = np.arange(rows) % 2
    return [" ".join(draw.choice(WORDS[label], 3)) + f" {row}" for row, label in enumerate(truth)], truth


def view(
    truth: np.ndarray, accuracy: float, seed: int, *, space: bool = False, bias: float = 0.0, sure: float = 1.0
) -> Seen:
    """A view that is right with this probability, and whose space shows the label or nothing."""
    draw = np.random.default_rng(seed)
    answer = np.where(draw.random(len(truth)) < accuracy, truth, 1 - truth)
    logits = np.where(answer[:, None] == np.arange(2), 1.0, 0.0) + draw.normal(scale=0.2, size=(len(truth), 2))
    logits[:, 0] += bias
    logits *= sure
    shown = truth if space else draw.integers(0, 2, len(truth))
    vectors = np.eye(2)[shown] + draw.normal(scale=0.2, size=(len(truth), 2))
    return Seen(logits, vectors.astype(np.float32))


def right(consensus, truth) -> float:
    return float((consensus.logits.argmax(axis=1) == truth).mean())


def found(views: list[Seen], texts: list[str], **options):
    names = [f"view {number}" for number in range(len(views))]
    return agree(views, names, texts, SPACE, ConsensusConfig(**options), seed=0)


def test_together_views_are_right_more_often_than_each_alone():
    texts, truth = pool()
    views = [view(truth, 0.75, seed) for seed in range(3)]
    alone = [float((one.logits.argmax(axis=1) == truth).mean()) for one in views]
    assert right(found(views, texts, neighbours=0, words=False), truth) > max(alone)


def test_words_correct_a_noisy_view():
    texts, truth = pool()
    views = [view(truth, 0.75, 0, sure=0.3)]
    consensus = found(views, texts, neighbours=0)
    assert consensus.words is not None
    assert right(consensus, truth) > 0.95


def test_the_space_is_chosen_where_neighbours_have_the_same_label():
    texts, truth = pool()
    views = [view(truth, 0.8, 0), view(truth, 0.8, 1, space=True)]
    consensus = found(views, texts, words=False)
    assert consensus.near == 1
    assert right(consensus, truth) > 0.95


def test_levelling_mends_a_label_that_attracts_everything():
    texts, truth = pool()
    views = [view(truth, 0.8, 0, bias=0.9)]
    left = right(found(views, texts, alpha=1, neighbours=0, words=False), truth)
    assert right(found(views, texts, alpha=0, neighbours=0, words=False), truth) > left + 0.1


def test_a_known_prior_takes_the_place_of_levelling():
    texts, truth = pool()
    for options in ({"neighbours": 0, "words": False}, {"neighbours": 0}, {}):
        for sure, bias in ((1.0, 0), (0.05, 0), (0.05, 10)):
            consensus = agree(
                [view(truth, 0.8, 0, sure=sure, bias=bias, space=True)],
                ["view"],
                texts,
                SPACE,
                ConsensusConfig(**options),
                prior=np.array([0.9, 0.1]),
                seed=0,
            )
            shares = np.bincount(consensus.probabilities.argmax(axis=1), minlength=2) / len(texts)
            assert shares == pytest.approx([0.9, 0.1], abs=0.04), (options, sure, bias)


def test_too_few_documents_leave_every_step_out_and_the_report_says_so():
    texts, truth = pool(20)
    views = [view(truth, 0.8, 0)]
    consensus = found(views, texts)
    assert [step.kept for step in consensus.steps] == [False] * 2
    assert {step.reason for step in consensus.steps} == {"20 documents are too few for 2 labels"}
    assert (consensus.logits.argmax(axis=1) == views[0].logits.argmax(axis=1)).all()


def test_words_that_say_nothing_are_left_out():
    _, truth = pool()
    draw = np.random.default_rng(5)
    texts = [" ".join(draw.choice(list("abcdefgh"), 4)) for _ in truth]
    consensus = found([view(truth, 0.9, 0, space=True)], texts)
    assert (consensus.words, consensus.smoothed) == (None, None)
    # Smoothing changes too few answers to disagree with them itself; the reason says who does.
    assert all(step.reason.startswith("words agree too little with the answers (kappa") for step in consensus.steps)


def test_no_step_is_kept_where_near_documents_have_different_labels():
    texts, truth = pool()
    views = [view(truth, 0.85, 0), view(truth, 0.85, 1)]
    consensus = found(views, texts)
    assert [step.kept for step in consensus.steps] == [False, False]
    assert all("near documents agree too little (kappa " in step.reason for step in consensus.steps)
    assert (consensus.words, consensus.near, consensus.smoothed) == (None, None, None)
    # One space that shows the labels is enough.
    assert found([views[0], view(truth, 0.85, 1, space=True)], texts).words is not None
    assert found(views, texts, guards=False).words is not None


def test_words_are_left_out_where_all_documents_have_one_label():
    texts, truth = pool()
    consensus = found([view(truth, 0.8, 0, bias=9)], texts, alpha=1, neighbours=0)
    assert consensus.words is None
    assert consensus.steps[-1].reason == "all documents have the same label"


def test_labels_keep_their_shares_through_words_and_neighbours():
    texts, truth = pool(300)
    rare = np.flatnonzero((truth == 0) | (np.arange(300) % 10 == 1))
    texts, truth = [texts[row] for row in rare], truth[rare]
    one = view(truth, 0.9, 0, space=True, sure=0.3)
    before = found([one], texts, neighbours=0, words=False).probabilities.mean(axis=0)
    after = found([one], texts)
    assert all(step.kept for step in after.steps if step.name != "levelled")
    assert after.probabilities.mean(axis=0) == pytest.approx(before, abs=1e-3)


def test_shares_are_levelled_by_default_only_where_words_then_agree_far_better():
    texts, truth = pool()
    swallowed = found([view(truth, 0.95, 0, bias=1.5)], texts)
    assert [step.kept for step in swallowed.steps if step.name == "levelled"] == [True]
    assert right(swallowed, truth) > right(found([view(truth, 0.95, 0, bias=1.5)], texts, alpha=1), truth) + 0.1
    even = found([view(truth, 0.8, 0)], texts)
    assert (even.shifts == 0).all()


def test_without_guards_every_step_is_taken():
    texts, truth = pool(20)
    steps = found([view(truth, 0.8, 0)], texts, guards=False).steps
    assert [step.kept for step in steps if step.name != "levelled"] == [True, True]


def test_a_view_that_saw_a_part_counts_where_it_was_asked():
    texts, truth = pool()
    slow = view(truth, 1.0, 7)
    slow.logits[100:] = np.nan
    consensus = found([view(truth, 0.7, 0), Seen(slow.logits * 5)], texts, alpha=1, neighbours=0, words=False)
    half = consensus.logits.argmax(axis=1) == truth
    assert half[:100].mean() > 0.95 > half[100:].mean()
    assert (consensus.alone[1, 100:] == -1).all()


def part_of(seen: Seen) -> Seen:
    """The same view, asked about the first half of the documents."""
    seen.logits[len(seen.logits) // 2 :] = np.nan
    return seen


def test_a_view_that_saw_a_part_is_left_out_where_it_is_far_off_views_that_agree():
    texts, truth = pool()
    fast = [view(truth, 0.9, 0), view(truth, 0.9, 1)]
    odd = part_of(view(truth, 0.5, 7, sure=5.0))
    alone, consensus = (found(views, texts, words=False, neighbours=0) for views in (fast, [*fast, odd]))
    assert (consensus.logits == alone.logits).all(), "as if it had not been asked"
    (step,) = (step for step in consensus.steps if not step.kept)
    assert step.name == "view 2"
    assert step.reason.startswith("agrees with the others far less (kappa ")
    assert step.changed > 0.1
    assert consensus.alone.shape == (3, len(texts)), "the report shows it all the same"
    heard = found([*fast, odd], texts, words=False, neighbours=0, guards=False)
    assert right(heard, truth) < right(alone, truth) - 0.1


@pytest.mark.parametrize(
    ("fast", "slow"),
    [([0.9], 0.5), ([0.6, 0.6], 0.5), ([0.8, 0.8], 0.8), ([0.8, 0.8], 1.0)],
    ids=["one other view", "the others disagree", "as good", "better"],
)
def test_a_view_that_saw_a_part_counts_unless_others_that_agree_speak_against_it(fast, slow):
    texts, truth = pool()
    views = [*(view(truth, each, seed) for seed, each in enumerate(fast)), part_of(view(truth, slow, 7, sure=5.0))]
    consensus = found(views, texts, words=False, neighbours=0)
    assert all(step.kept for step in consensus.steps)
    half = slice(None, len(texts) // 2)
    assert (consensus.alone[-1, half] == consensus.logits.argmax(axis=1)[half]).mean() > 0.95, "it is sure, and heard"


def test_a_view_that_saw_a_part_is_not_levelled():
    texts, truth = pool()
    slow = view(truth, 0.9, 7)
    slow.logits[100:] = np.nan
    consensus = found([view(truth, 0.7, 0, bias=0.5), slow], texts, alpha=0.5, neighbours=0, words=False)
    assert (consensus.shifts[1] == 0).all()
    assert (consensus.shifts[0] != 0).all()


def test_the_report_is_plain_and_complete():
    texts, truth = pool()
    report = found([view(truth, 0.8, 0), view(truth, 0.8, 1)], texts).to_dict()
    json.dumps(report)
    assert sum(report["shares"].values()) == pytest.approx(1)
    assert report["agreement"][0][0] == 1.0
    assert [step["name"].split()[0] for step in report["steps"]] == ["words", "smoothed"]


def test_the_report_tells_shares_before_any_step_and_what_all_steps_changed():
    texts, truth = pool()
    views = [view(truth, 0.75, 0, sure=0.3), view(truth, 0.75, 1, sure=0.3)]
    plain = found(views, texts, alpha=1, neighbours=0, words=False)
    assert plain.to_dict()["changed"] == 0
    assert plain.to_dict()["shares_before"] == plain.to_dict()["shares"]
    consensus = found(views, texts, alpha=1, neighbours=0)
    before, after = plain.logits.argmax(axis=1).tolist(), consensus.logits.argmax(axis=1).tolist()
    report = consensus.to_dict()
    assert report["changed"] == sum(one != other for one, other in zip(before, after, strict=True)) / 200 > 0
    assert report["shares_before"] == {"sports": before.count(0) / 200, "money": before.count(1) / 200}
    assert report["shares"] == {"sports": after.count(0) / 200, "money": after.count(1) / 200}


def test_words_agree_more_with_the_better_view_also_where_they_are_left_out():
    texts, truth = pool()
    views = [view(truth, 0.9, 0), view(truth, 0.7, 1)]
    for options in ({}, {"documents_per_label": 1000}):
        better, worse = found(views, texts, neighbours=0, **options).agreement_with_words()
        assert better > worse + 0.2 > 0.2
    assert found(views, texts, neighbours=0, words=False).agreement_with_words() is None
