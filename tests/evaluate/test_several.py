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
from labelspace.evaluate.several import SetTally
from tiny_rows import tiny_rows

TEXTS = [f"{text} {row}" for row, text in enumerate(tiny_rows(50)[0])]


@pytest.fixture(scope="module")
def clf(tiny_encoder_folder):
    """A model of three labels."""
    return ZeroShotClassifier(["sports", "money", "war"], str(tiny_encoder_folder), several=True).fit(TEXTS)


def test_metrics_are_those_of_scikit_learn():
    random = np.random.default_rng(0)
    truth, predicted = random.random((2, 300, 6)) < 0.3
    truth[:, 5] = False
    tally = SetTally("abcdef")
    for rows in np.array_split(np.arange(300), 7):
        tally.add(truth[rows], predicted[rows])
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
