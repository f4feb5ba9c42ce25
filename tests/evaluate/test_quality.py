"""An estimate without labels: what raises it, what lowers it, and what labels add."""

import json
from collections import Counter

import numpy as np
import pytest
from scipy.special import expit
from sklearn.exceptions import NotFittedError

from labelspace import LabelSpace, ZeroShotClassifier
from labelspace.classify import WordsClassifier
from labelspace.consensus.signals import Signals, features, measured, ranges, signals, which
from labelspace.errors import InputError
from labelspace.evaluate import estimate, evaluate
from labelspace.evaluate.quality import SHOWN, estimate_of
from labelspace.evaluate.trust import label_trust, trust_of

NAMES = ("sports", "money", "food")
SPACE = LabelSpace.from_names(list(NAMES))
DRAWS = 200_000
WORDS = (["team", "match", "coach", "goal"], ["bank", "price", "market", "loan"], ["soup", "bread", "cheese", "apple"])


def documents(rows: int = 300) -> tuple[list[str], np.ndarray, np.ndarray]:
    """Documents of three words of their label, their labels, and vectors that show the label."""
    draw = np.random.default_rng(0)
    truth = np.arange(rows) % 3
    texts = [" ".join(draw.choice(WORDS[label], 3)) + f" {row}" for row, label in enumerate(truth)]
    vectors = np.eye(3)[truth] + draw.normal(scale=0.2, size=(rows, 3))
    return texts, truth, vectors.astype(np.float32)


def answered(truth: np.ndarray, accuracy: float) -> np.ndarray:
    draw = np.random.default_rng(1)
    return np.where(draw.random(len(truth)) < accuracy, truth, draw.integers(0, 3, len(truth)))


def middle(accuracy: float) -> float:
    texts, truth, vectors = documents()
    found = signals(answered(truth, accuracy), texts, SPACE, vectors, seed=0)
    return ranges(found, 3, 3000, consensus=False)[0].expected


def test_an_estimate_tells_what_share_of_documents_gets_no_label(tiny_encoder_folder):
    texts, _, _ = documents()
    clf = ZeroShotClassifier(list(NAMES), str(tiny_encoder_folder)).fit()
    assert estimate(clf, texts).refused is None
    clf.set_params(threshold=-1)
    found = estimate(clf, texts)
    assert found.refused == 0
    clf.set_params(threshold=float(np.quantile(clf.answers(texts).score, 0.25)))
    strict = estimate(clf, texts)
    assert strict.refused == pytest.approx(0.25, abs=0.01)
    assert "the model gives 25% of the documents no label; the ranges count each with its likeliest one" in str(strict)
    assert strict.accuracy == found.accuracy


def test_the_more_answers_are_right_the_higher_the_estimate():
    assert middle(0.0) < middle(0.5) < middle(0.8) < middle(1.0)
    assert middle(0.0) < 0.5
    assert middle(1.0) > 0.9


def test_an_agreement_of_fewer_documents_says_more():
    found = Signals(0.4, 0.5, np.zeros(1, np.intp), None)
    middles = [ranges(found, 3, documents, consensus=False)[0].expected for documents in (10_000, 3000, 400, 60)]
    assert middles[0] == middles[1] < middles[2] < middles[3]


@pytest.mark.parametrize(
    ("neighbours", "consensus", "labelled", "right", "documents"),
    [
        *((neighbours, consensus, 12, 4, 3000) for neighbours in (0.7, None) for consensus in (False, True)),
        (0.7, False, 0, 0, 3000),
        (0.7, True, 0, 0, 100),
        (None, False, 0, 0, 100),
    ],
)
def test_ranges_are_the_quantiles_of_many_draws(neighbours, consensus, labelled, right, documents):
    found = Signals(0.6, neighbours, np.zeros(1, np.intp), None)
    few = {3000: (0.0, 0.0), 100: (np.log(30), np.log(4))}[documents]
    line, at = measured()[which(neighbours is not None, consensus=consensus)], features(0.6, neighbours, *few)
    draw = np.random.default_rng(0)
    error = line["accuracy"]["deviation"] * draw.normal(size=DRAWS)
    own = line["macro_f1"]["own_deviation"] * draw.normal(size=DRAWS)
    accuracy = 0.25 + 0.75 * expit(at @ line["accuracy"]["weights"] + error)
    misled = draw.random(DRAWS) < 0.02
    accuracy[misled] = draw.random(misled.sum())
    beyond = np.clip((accuracy - 0.25) / 0.75, 0.02, 0.98)
    error = np.log(beyond / (1 - beyond)) - at @ line["accuracy"]["weights"]
    macro_f1 = 0.25 + 0.75 * expit(at @ line["macro_f1"]["weights"] + line["macro_f1"]["slope"] * error + own)
    weight = accuracy**right * (1 - accuracy) ** (labelled - right)
    both = ranges(found, 4, documents, consensus=consensus, labelled=labelled, right=right)
    for told, values in zip(both, (accuracy, macro_f1), strict=True):
        order = np.argsort(values)
        summed = np.cumsum(weight[order]) / weight.sum()
        wanted = [values[order][np.searchsorted(summed, share)] for share in (0.1, 0.5, 0.9)]
        assert [told.low, told.expected, told.high] == pytest.approx(wanted, abs=0.01)


def test_ten_labels_make_the_range_narrower_and_move_it_to_what_they_say():
    found = Signals(0.5, 0.6, np.zeros(1, np.intp), None)
    none, _ = ranges(found, 3, 3000, consensus=False)
    good, _ = ranges(found, 3, 3000, consensus=False, labelled=10, right=10)
    bad, _ = ranges(found, 3, 3000, consensus=False, labelled=10, right=3)
    assert bad.expected < none.expected < good.expected
    assert good.high - good.low < none.high - none.low


def test_a_label_whose_answers_follow_nothing_is_not_trusted():
    texts, truth, vectors = documents()
    answers = truth.copy()
    money = np.flatnonzero(truth == 1)
    answers[money[::2]] = 2  # half of money is called food
    found = signals(answers, texts, SPACE, vectors, seed=0)
    told = {one.name: one for one in label_trust(answers, found, NAMES)}
    assert told["sports"].trust == "trusted"
    assert told["money"].trust != "trusted"
    assert "food" in told["money"].why
    assert told["sports"].why == ""


def test_a_low_agreement_of_few_documents_is_not_held_against_a_label():
    told = [trust_of(0.4, 3, documents, neighbours=True, consensus=False) for documents in (3000, 150, 12)]
    assert told == ["not to be trusted", "doubtful", "doubtful"]
    assert trust_of(0.05, 30, 60, neighbours=True, consensus=False) == "too few documents"
    assert trust_of(0.8, 30, 60, neighbours=True, consensus=False) == "trusted"


def test_a_label_without_documents_is_reported():
    texts, truth, vectors = documents()
    answers = np.where(truth == 2, 1, truth)
    found = signals(answers, texts, SPACE, vectors, seed=0)
    last = label_trust(answers, found, NAMES)[-1]
    assert (last.name, last.documents, last.trust) == ("food", 0, "none found")


def test_many_labels_overrule_the_signals():
    low = Signals(0.05, 0.05, np.zeros(1, np.intp), None)
    assert ranges(low, 2, 3000, consensus=False, labelled=500, right=450)[0].low > 0.85
    high = Signals(0.95, 0.95, np.zeros(1, np.intp), None)
    assert ranges(high, 2, 3000, consensus=False, labelled=30, right=3)[0].high < 0.5


def test_macro_f1_goes_by_enough_labels_too(encoder):
    texts, truth, _ = documents()
    clf = ZeroShotClassifier(SPACE, encoder).fit()
    answers, names = list(clf.predict(texts)), [SPACE.names[column] for column in truth]
    other = dict(zip(SPACE.names, (*SPACE.names[1:], SPACE.names[0]), strict=True))
    wrong = estimate(clf, texts, [other[name] for name in answers])
    assert wrong.macro_f1.high < 0.05, "though answers that differ have more by chance"
    macro_f1 = evaluate(clf, texts, names, baselines=False).metrics.macro_f1
    found = estimate(clf, texts, names).macro_f1
    assert found.low - 0.02 <= macro_f1 <= found.high + 0.02
    few = [name if row < 29 else None for row, name in enumerate(names)]
    assert estimate(clf, texts, few).macro_f1.high - estimate(clf, texts, few).macro_f1.low > found.high - found.low


def test_a_label_that_occurs_and_is_never_answered_bounds_macro_f1():
    texts, truth, vectors = documents()
    answers = np.where(truth == 2, 1, truth)
    found = signals(answers, texts, SPACE, vectors, seed=0)
    none = np.full(len(truth), -1)
    assert estimate_of(answers, found, SPACE, none).macro_f1.high > 0.7
    some = np.where(np.arange(len(truth)) < 12, truth, -1)
    assert estimate_of(answers, found, SPACE, some).macro_f1.high < 0.667


def test_labelled_documents_of_a_single_label_are_told():
    texts, truth, vectors = documents()
    found = signals(truth, texts, SPACE, vectors, seed=0)
    one = np.where((truth == 1) & (np.arange(len(truth)) < 30), 1, -1)
    told = "all 10 labelled documents have one label, money; is it a random draw?"
    assert told in estimate_of(truth, found, SPACE, one).notes
    one[0] = 0
    assert told not in estimate_of(truth, found, SPACE, one).notes


@pytest.mark.parametrize("found", [(1.0, 1e-4), (0.0, 1e-4), (0.5, 0.01)])
def test_a_macro_f1_far_from_what_the_signals_say_overrules_them(found):
    low = Signals(0.0, 0.0, np.zeros(1, np.intp), None)
    right = round(10_000 * found[0])
    macro_f1 = ranges(low, 3, 3000, consensus=False, labelled=10_000, right=right, measured_f1=found)[1]
    assert macro_f1.expected == pytest.approx(found[0], abs=0.02)


def test_answers_by_chance_leave_no_label_trusted():
    texts, truth, vectors = documents()
    often = (np.random.default_rng(3).random(len(truth)) < 0.2).astype(np.intp)  # four in five have the first label
    found = signals(often, texts, SPACE, vectors, seed=0)
    assert all(one.trust != "trusted" for one in label_trust(often, found, NAMES))


def test_copies_of_a_document_count_once(encoder):
    texts, _, _ = documents(60)
    clf = ZeroShotClassifier(list(NAMES), encoder=encoder).fit()
    labels = [None] * 60 + ["sports"] * 5 + [None] * 535
    again = estimate(clf, texts * 10, labels)
    assert (again.documents, again.labelled) == (60, 5)
    assert again.words == estimate(clf, texts).words


def test_a_text_whose_copies_have_several_labels_counts_as_unlabelled(encoder):
    texts, _, _ = documents(60)
    clf = ZeroShotClassifier(list(NAMES), encoder=encoder).fit()
    first, second = NAMES[:2]
    for labels in ([first, second], [second, first]):
        assert estimate(clf, [texts[0], *texts], [*labels, *[None] * 59]).labelled == 0
    assert estimate(clf, [texts[0], *texts], [first, None, *[None] * 59]).labelled == 1


def test_a_model_of_words_has_an_estimate_from_words_alone():
    texts, truth, _ = documents()
    clf = WordsClassifier(list(NAMES)).fit(texts, np.array(NAMES)[truth])
    found = estimate(clf, texts)
    assert found.neighbours is None
    assert found.accuracy.expected > 0.7
    assert [one.trust for one in found.labels] == ["trusted"] * 3


def test_labels_that_are_given_are_counted_and_missing_ones_are_not(encoder):
    texts, truth, _ = documents(60)
    clf = ZeroShotClassifier(list(NAMES), encoder=encoder).fit()
    labels = [NAMES[column] if row < 10 else None for row, column in enumerate(truth)]
    assert estimate(clf, texts, labels).labelled == 10
    assert estimate(clf, texts).labelled == 0


def test_the_report_is_plain_and_reads_alone(encoder):
    texts, _, _ = documents(60)
    found = estimate(ZeroShotClassifier(list(NAMES), encoder=encoder).fit(), texts)
    json.dumps(found.to_dict())
    told = str(found)
    assert told.startswith("accuracy 0.")
    assert "60 documents are few for 3 labels" in told


def test_a_report_of_a_thousand_labels_counts_those_of_which_nothing_can_be_said():
    names = [f"code {number}" for number in range(1000)]
    draw = np.random.default_rng(0)
    answers = np.concatenate([np.full(300, 0), draw.integers(0, 500, 1000)])
    texts = [f"{'wheat' if answer == 0 else draw.integers(10**6)} {row}" for row, answer in enumerate(answers)]
    space = LabelSpace.from_names(names)
    found = estimate_of(answers, signals(answers, texts, space, None, seed=0), space, np.full(len(texts), -1))
    trust = Counter(one.trust for one in found.labels)
    told = str(found)
    assert f"{trust['none found']:,} more" in told
    assert f"{trust['too few documents'] - SHOWN:,} more" in told
    assert f"and {trust['none found'] - SHOWN:,} more: no document has it" in told
    assert len(told.splitlines()) < 40
    assert len(found.to_dict()["labels"]) == 1000


@pytest.mark.parametrize(
    ("texts", "labels", "error", "words"),
    [
        ([f"a {row}" for row in range(49)] * 2, None, InputError, "needs 50 different documents or more. Got 49"),
        ([f"a {row}" for row in range(50)], ["sport"] + [None] * 49, InputError, "sport"),
        ([f"a {row}" for row in range(50)], ["sports"], InputError, "50"),
    ],
)
def test_what_cannot_be_estimated_is_refused(encoder, texts, labels, error, words):
    clf = ZeroShotClassifier(list(NAMES), encoder=encoder).fit()
    with pytest.raises(error, match=words):
        estimate(clf, texts, labels)


def test_a_model_that_is_not_fitted_is_refused():
    with pytest.raises(NotFittedError):
        estimate(WordsClassifier(["a", "b"]), ["x"] * 50)
