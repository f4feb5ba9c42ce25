"""The evaluation of a model of several labels agrees with scikit-learn."""

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from sklearn.metrics import f1_score, precision_recall_fscore_support

from labelspace import ZeroShotClassifier
from labelspace.errors import ConfigError, InputError
from labelspace.evaluate import (
    Rejections,
    SeveralEvaluation,
    abstaining_scorer,
    confusion_figure,
    evaluate,
    evaluate_table,
)
from labelspace.evaluate.intervals import PairedTally, score_intervals
from labelspace.evaluate.metrics import Tally
from labelspace.evaluate.several.metrics import PairedSets, SetTally, Weights
from tiny_rows import tiny_rows

TEXTS = [f"{text} {row}" for row, text in enumerate(tiny_rows(50)[0])]


@pytest.fixture(scope="module")
def clf(tiny_encoder_folder):
    """A model of three labels."""
    return ZeroShotClassifier(["sports", "money", "war"], str(tiny_encoder_folder), several=True).fit(TEXTS)


def tallied(truth, predicted, batches=1):
    """A tally of the sets of documents, [text label] each."""
    weights = Weights(truth.shape[1])
    tally = SetTally([str(label) for label in range(truth.shape[1])], weights.repeats)
    for rows in np.array_split(np.arange(len(truth)), batches):
        tally.add(truth[rows], predicted[rows], weights.draw(len(rows)))
    return tally


def sets_of(documents, seed):
    """True sets of five labels, those of a model that is often right, and of one that is less often right."""
    random = np.random.default_rng(seed)
    truth = random.random((documents, 5)) < [0.5, 0.3, 0.3, 0.1, 0.1]
    wrong = random.random((2, documents, 5)) < np.reshape([0.1, 0.2], (2, 1, 1))
    return truth, *(truth ^ wrong)


def test_metrics_are_those_of_scikit_learn():
    random = np.random.default_rng(0)
    truth, predicted = random.random((2, 300, 6)) < 0.3
    truth[:, 5] = False
    tally = tallied(truth, predicted, batches=7)
    found, table = tally.metrics(), precision_recall_fscore_support(truth, predicted, zero_division=0)
    assert found.micro_f1 == pytest.approx(f1_score(truth, predicted, average="micro"))
    assert found.macro_f1 == pytest.approx(f1_score(truth[:, :5], predicted[:, :5], average="macro"))
    assert found.exact == (truth == predicted).all(axis=1).mean()
    assert (found.labels_per_text, found.predicted_per_text) == (truth.sum() / 300, predicted.sum() / 300)
    for column, row in enumerate(tally.per_label()):
        own = (row.precision, row.recall, row.f1, row.support)
        assert own == pytest.approx(tuple(part[column] for part in table))


def test_documents_whose_labels_are_not_known_are_left_out(clf):
    names = [None if row % 5 == 0 else ["sports"] * (row % 2) for row in range(50)]
    found = evaluate(clf, TEXTS, names)
    assert isinstance(found, SeveralEvaluation)
    assert (found.metrics.documents, found.metrics.left_out) == (40, 10)
    assert found.per_label[0].support == 20
    assert "micro-F1" in str(found)
    assert evaluate(clf, TEXTS, clf.predict(TEXTS)).metrics.micro_f1 == 1


@pytest.mark.parametrize("labels", [[], [-1, -1, -1], [float("nan")] * 3])
def test_a_table_without_labels_is_refused(clf, tmp_path, labels):
    table = pa.table({"text": pa.array(TEXTS[: len(labels)], pa.string()), "label": pa.array(labels)})
    pq.write_table(table, tmp_path / "rows.parquet")
    with pytest.raises(InputError, match=f"no labels for any of the {len(labels)} rows"):
        evaluate_table(clf, tmp_path / "rows.parquet")


def test_what_is_of_one_label_a_text_is_refused(clf, tmp_path):
    sets = [["sports"]] * 50
    with pytest.raises(ConfigError, match="rejection curve is for one label"):
        evaluate(clf, TEXTS, sets, rejections=Rejections())
    with pytest.raises(ConfigError, match="confusion matrix is of one label"):
        confusion_figure(evaluate(clf, TEXTS, sets), tmp_path / "a.png")
    with pytest.raises(ConfigError, match="scikit-learn's own"):
        abstaining_scorer("accuracy")(clf, TEXTS, sets)
    with pytest.raises(InputError, match="no labels for any of the 50 documents"):
        evaluate(clf, TEXTS, [None] * 50)


# ---- intervals, and another model beside


def f1_of(truth, predicted):
    """Micro- and macro-F1, label by label."""
    columns = [(own, answers) for own, answers in zip(truth.T, predicted.T, strict=True) if own.any()]
    each = [2 * (own & answers).sum() / (own.sum() + answers.sum()) for own, answers in columns]
    return np.array([2 * (truth & predicted).sum() / (truth.sum() + predicted.sum()), np.mean(each)])


def test_the_intervals_of_f1_have_the_spread_of_a_loop_over_documents():
    truth, this, other = sets_of(200, seed=1)
    weights = Weights(5)
    tally, pairs = SetTally("abcde", weights.repeats), PairedSets("abcde", weights.repeats)
    batch = weights.draw(200)
    tally.add(truth, this, batch)
    pairs.add(truth, this, other, batch)
    random = np.random.default_rng(2)
    drawn = random.integers(0, 200, (300, 200))
    loop = np.array([f1_of(truth[rows], this[rows]) for rows in drawn])
    paired = loop - [f1_of(truth[rows], other[rows]) for rows in drawn]
    measured = f1_of(truth, this)
    for found, scores, values in (
        (tally.intervals(), loop, measured),
        (pairs.difference(tally), paired, measured - f1_of(truth, other)),
    ):
        ends = np.quantile(scores, [0.025, 0.975], axis=0) - scores.mean(axis=0) + values
        for one, value, low, high in zip(found[:2], values, *ends, strict=True):
            assert one.value == pytest.approx(value)
            assert (one.low, one.high) == pytest.approx((low, high), abs=0.015)


def test_batches_of_any_size_give_the_same_intervals():
    truth, this, _ = sets_of(100, seed=3)
    assert tallied(truth, this).intervals() == tallied(truth, this, batches=9).intervals()


def test_exact_sets_have_the_intervals_of_right_answers_to_one_label():
    truth, this, other = sets_of(80, seed=4)
    right, also = ((truth == predicted).all(axis=1) for predicted in (this, other))
    own, answers, others = np.zeros(80, dtype=int), (~right).astype(int), (~also).astype(int)
    single, paired = Tally(["right", "wrong"]), PairedTally(2)
    single.add(own, answers)
    paired.add(own, answers, others)
    weights, tally = Weights(5), tallied(truth, this)
    pairs = PairedSets("abcde", weights.repeats)
    pairs.add(truth, this, other, weights.draw(80))
    assert tally.intervals().exact == score_intervals(single.counts).accuracy
    assert pairs.difference(tally)[2:] == paired.difference()[1:]


@pytest.mark.parametrize("wrong", [5, 6, 54, 55])
def test_f1_has_an_interval_if_six_documents_are_wrong_and_six_have_a_right_label(wrong):
    truth = np.zeros((60, 2), dtype=bool)
    truth[np.arange(60), np.arange(60) % 2] = True
    predicted = truth ^ (np.arange(60) < wrong)[:, None]
    found = tallied(truth, predicted).intervals()
    assert [one.low is not None for one in found] == [wrong in (6, 54)] * 2 + [True]


def test_thousands_of_labels_have_fewer_repeats():
    assert [Weights(labels).repeats for labels in (1, 2_000, 4_000, 100_000)] == [1000, 1000, 500, 200]


def test_another_model_beside_is_measured_as_it_would_be_alone(clf, tiny_encoder_folder):
    other = ZeroShotClassifier(
        ["war", "sports", "money"], str(tiny_encoder_folder), several=True, labels_per_text=2.0
    ).fit(TEXTS)
    y = other.predict(TEXTS[:40])[:, [1, 2, 0]]
    y[::2] = clf.predict(TEXTS[:40])[::2]
    y = [[name for name, has in zip(clf.classes_, row, strict=True) if has] for row in y]
    y[7] = None
    found, alone = evaluate(clf, TEXTS[:40], y, beside=other), evaluate(other, TEXTS[:40], y)
    (beside,) = found.baselines
    assert beside.name == "beside: ZeroShotClassifier"
    assert beside.metrics.to_dict() == pytest.approx(alone.metrics.to_dict())
    assert beside.metrics.left_out == 1
    assert 0 < beside.metrics.micro_f1 != found.metrics.micro_f1 > 0
    for field in ("micro_f1", "macro_f1", "exact"):
        minus = getattr(found.metrics, field) - getattr(alone.metrics, field)
        assert getattr(beside.difference, field).value == pytest.approx(minus)
    assert "beside: ZeroShotClassifier" in str(found).split("minus")[1]
    assert found.to_dict()["baselines"][0]["difference"]["exact"].keys() == {"value", "low", "high"}


def test_a_model_beside_itself_does_not_differ(clf):
    y = [["sports"] if row % 3 else [] for row in range(50)]
    (beside,) = evaluate(clf, TEXTS, y, beside=clf).baselines
    assert beside.difference[:2] == ((0, None, None), (0, None, None))
    assert -beside.difference.exact.low == pytest.approx(beside.difference.exact.high)
    assert beside.difference[3:] == (0, 0)


def test_one_label_and_several_are_not_compared(clf, tiny_encoder_folder):
    single = ZeroShotClassifier(["sports", "money", "war"], str(tiny_encoder_folder)).fit()
    with pytest.raises(ConfigError, match="the model gives a text several labels and the model beside one label; give"):
        evaluate(clf, TEXTS, [["sports"]] * 50, beside=single)
    with pytest.raises(ConfigError, match="the model gives a text one label and the model beside several labels; give"):
        evaluate(single, TEXTS, ["sports"] * 50, beside=clf)
