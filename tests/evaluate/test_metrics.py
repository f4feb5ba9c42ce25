"""Metrics equal their definitions written as loops; batches, order and missing labels change nothing."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from labelspace.errors import InputError, ShapeError
from labelspace.evaluate.metrics import ECE_BINS, Metrics, Tally

NAMES = ["a", "b", "c", "d"]
cases = st.lists(st.tuples(st.integers(-1, 3), st.integers(-1, 3), st.floats(0, 1)), min_size=1, max_size=40).filter(
    lambda rows: any(own >= 0 for own, _, _ in rows)
)


def tally_of(rows: list[tuple[int, int, float]], names: list[str] = NAMES, *, none: bool = False) -> Tally:
    tally = Tally(names, none=none)
    own, answer, sure = zip(*rows, strict=True)
    tally.add(own, answer, sure)
    return tally


def share(part: float, whole: float) -> float:
    return part / whole if whole else 0.0


def macro_by_hand(known: list[tuple[int, int, float]], labels: set[int]) -> tuple[float, ...]:
    """Mean precision, recall and F1 over some labels."""
    rows = []
    for label in sorted(labels):
        hits = sum(own == answer == label for own, answer, _ in known)
        precision = share(hits, sum(answer == label for _, answer, _ in known))
        recall = share(hits, sum(own == label for own, _, _ in known))
        rows.append((precision, recall, share(2 * precision * recall, precision + recall)))
    return tuple(sum(column) / len(column) for column in zip(*rows, strict=True))


def by_hand(rows: list[tuple[int, int, float]]) -> dict[str, float | None]:
    """Compute every metric from its definition, one document at a time."""
    known = [(own, answer, sure) for own, answer, sure in rows if own >= 0]
    occurring = {own for own, _, _ in known}
    predicted = {answer for _, answer, _ in known if answer >= 0}
    precision, recall, f1 = macro_by_hand(known, occurring)
    precision_predicted, recall_predicted, f1_predicted = macro_by_hand(known, occurring | predicted)
    covered = [row for row in known if row[1] >= 0]
    error = 0.0
    for number in range(ECE_BINS):
        inside = [
            row
            for row in covered
            if (row[2] > number / ECE_BINS or number == 0)
            and (row[2] <= (number + 1) / ECE_BINS or number == ECE_BINS - 1)
        ]
        if inside:
            confidence = sum(sure for _, _, sure in inside) / len(inside)
            accuracy = sum(own == answer for own, answer, _ in inside) / len(inside)
            error += len(inside) / len(covered) * abs(confidence - accuracy)
    agreed = sum(own == answer for own, answer, _ in known) / len(known)
    pairs = [own == answer for own, _, _ in known for _, answer, _ in known]
    chance = sum(pairs) / len(pairs)
    return {
        "macro_f1": f1,
        "accuracy": agreed,
        "kappa": 1.0 if chance == 1 else (agreed - chance) / (1 - chance),
        "macro_precision": precision,
        "macro_recall": recall,
        "macro_f1_predicted": f1_predicted,
        "macro_precision_predicted": precision_predicted,
        "macro_recall_predicted": recall_predicted,
        "coverage": len(covered) / len(known),
        "accuracy_on_covered": sum(own == answer for own, answer, _ in covered) / len(covered) if covered else None,
        "expected_calibration_error": error if covered else None,
        "documents": len(known),
        "left_out": len(rows) - len(known),
    }


def same(found: Metrics, expected: dict[str, float | None]) -> None:
    values = found.to_dict()
    assert list(values) == list(expected)
    for name, value in expected.items():
        assert values[name] == (None if value is None else pytest.approx(value, abs=1e-12)), name


@given(cases)
@settings(max_examples=25)
def test_every_number_equals_its_definition_written_out(rows):
    same(tally_of(rows).metrics(), by_hand(rows))


@given(cases)
@settings(max_examples=25)
def test_texts_that_fit_none_are_a_class_that_an_abstention_hits(rows):
    fits_none = len(NAMES)
    classes = [tuple(fits_none if column < 0 else column for column in row[:2]) for row in rows]
    known = {own for own, _ in classes}
    expected = tally_of([(own, answer, 1.0) for own, answer in classes], [*NAMES, "none"]).metrics().to_dict()
    answered = [(own, answer, sure) for own, answer, sure in rows if answer >= 0]
    expected |= {
        "coverage": len(answered) / len(rows),
        "accuracy_on_covered": share(sum(own == answer for own, answer, _ in answered), len(answered))
        if answered
        else None,
        # By the definition on the answered documents, one whose text fits none being wrong.
        "expected_calibration_error": by_hand(
            [(fits_none if own < 0 else own, answer, sure) for own, answer, sure in answered]
        )["expected_calibration_error"]
        if answered
        else None,
    }
    tally = tally_of(rows, none=True)
    same(tally.metrics(), expected)
    last = tally.per_label()[-1]
    assert (last.label, last.support) == ("none of these", sum(own < 0 for own, _, _ in rows))
    assert last.predicted == sum(answer < 0 for _, answer, _ in rows)
    assert tally.metrics().macro_f1 == pytest.approx(macro_by_hand([(*row, 1.0) for row in classes], known)[2])


def test_a_label_called_none_of_these_is_no_class_of_texts_that_fit_none():
    assert Tally(["a", "none of these"]).names == ("a", "none of these")
    with pytest.raises(InputError, match="a label is called 'none of these'"):
        Tally(["a", "none of these"], none=True)


@given(cases, st.permutations(range(4)))
@settings(max_examples=25)
def test_another_order_of_labels_changes_no_number(rows, order):
    moved = [(order[own] if own >= 0 else -1, order[answer] if answer >= 0 else -1, sure) for own, answer, sure in rows]
    names = [NAMES[order.index(column)] for column in range(4)]
    first, second = tally_of(rows), tally_of(moved, names)
    same(second.metrics(), first.metrics().to_dict())
    rows_of = [{row.label: vars(row) for row in tally.per_label()} for tally in (first, second)]
    assert rows_of[0] == rows_of[1]


@given(cases, st.integers(0, 40))
@settings(max_examples=25)
def test_batches_change_no_number(rows, cut):
    tally = Tally(NAMES)
    for part in (rows[:cut], rows[cut:]):
        own, answer, sure = zip(*part, strict=True) if part else ((), (), ())
        tally.add(own, answer, sure)
    same(tally.metrics(), tally_of(rows).metrics().to_dict())
    assert np.array_equal(tally.counts.toarray(), tally_of(rows).counts.toarray())


@given(cases)
@settings(max_examples=25)
def test_the_table_of_labels_is_the_confusion_matrix_added_up(rows):
    tally = tally_of(rows)
    confusion = tally.counts.toarray()
    for column, row in enumerate(tally.per_label()):
        assert row.support == sum(own == column for own, _, _ in rows) == confusion[column].sum()
        assert row.predicted == sum(own >= 0 and answer == column for own, answer, _ in rows)
        assert row.recall == pytest.approx(share(confusion[column, column], row.support))
        assert row.precision == pytest.approx(share(confusion[column, column], row.predicted))
        assert row.f1 == pytest.approx(share(2 * row.precision * row.recall, row.precision + row.recall))


def test_a_label_that_does_not_occur_in_y_is_not_in_the_mean():
    """A wrong answer lowers the recall of the true label; the wrong label does not change the divisor."""
    right_and_wrong = [(0, 0, 1.0), (1, 1, 1.0), (1, 3, 1.0)]
    found = tally_of(right_and_wrong).metrics()
    assert found.macro_recall == pytest.approx((1 + 0.5) / 2)
    assert found.macro_f1 == pytest.approx((1 + 2 / 3) / 2)


def test_the_mean_over_predicted_labels_counts_them_as_scikit_learn_does():
    from sklearn.metrics import f1_score

    tally = Tally(["a", "b", "c", "d"])
    own, answer = [0, 0, 1, 1], [0, 2, 1, 1]
    tally.add(own, answer)
    found = tally.metrics()
    assert found.macro_f1_predicted == pytest.approx(f1_score(own, answer, average="macro", zero_division=0))
    assert found.macro_f1_predicted < found.macro_f1


def test_abstaining_lowers_accuracy_recall_and_coverage_and_no_precision():
    sure = tally_of([(0, 0, 1.0), (0, 0, 1.0), (1, 1, 1.0), (1, 0, 1.0)]).metrics()
    unsure = tally_of([(0, 0, 1.0), (0, 0, 1.0), (1, 1, 1.0), (1, -1, 1.0)]).metrics()
    assert (sure.coverage, unsure.coverage) == (1.0, 0.75)
    assert sure.accuracy == unsure.accuracy == 0.75
    assert sure.macro_recall == unsure.macro_recall == 0.75
    assert unsure.macro_precision == 1.0 > sure.macro_precision
    assert unsure.accuracy_on_covered == 1.0


def test_a_model_that_always_abstains_has_accuracy_0_and_no_calibration_error():
    found = tally_of([(0, -1, 0.4), (1, -1, 0.4)]).metrics()
    assert (found.accuracy, found.macro_f1, found.coverage) == (0.0, 0.0, 0.0)
    assert found.accuracy_on_covered is None
    assert found.expected_calibration_error is None


def test_the_last_column_of_the_confusion_matrix_is_none_of_these():
    tally = Tally(["a", "b"])
    tally.add([0, 0, 1, 1, 1], [0, -1, 0, -1, -1])
    assert tally.counts.toarray().tolist() == [[1, 0, 1], [1, 0, 2]]


def test_the_returned_counts_are_a_copy():
    tally = tally_of([(0, 0, 1.0)])
    tally.counts.data[:] = 9
    assert tally.counts.sum() == 1


def test_memory_grows_with_the_pairs_of_labels_that_occur_only():
    labels = 20_000  # all pairs would be 3 GB
    tally = Tally([f"label {number}" for number in range(labels)])
    for _ in range(3):
        tally.add([0, 1, labels - 1], [0, 2, -1])
    assert tally.counts.nnz == 3
    found = tally.metrics()
    assert (found.accuracy, found.coverage) == (pytest.approx(1 / 3), pytest.approx(2 / 3))
    assert tally.per_label()[-1].support == 3


def test_a_confident_model_is_calibrated_only_if_it_is_right():
    assert tally_of([(0, 0, 1.0)] * 4).metrics().expected_calibration_error == 0.0
    assert tally_of([(0, 1, 1.0)] * 4).metrics().expected_calibration_error == 1.0
    three_of_four = [(0, 0, 0.75)] * 3 + [(0, 1, 0.75)]
    assert tally_of(three_of_four).metrics().expected_calibration_error == pytest.approx(0.0)


def test_without_probabilities_there_is_no_calibration_error():
    tally = tally_of([(0, 0, 1.0)])
    tally.add([1], [1])
    assert tally.metrics().expected_calibration_error is None


def test_documents_without_a_label_are_left_out_and_counted():
    with_missing = tally_of([(0, 0, 0.9), (-1, 1, 0.9), (1, 0, 0.9), (-1, -1, 0.9)]).metrics()
    without = tally_of([(0, 0, 0.9), (1, 0, 0.9)]).metrics()
    assert with_missing.left_out == 2
    assert {**with_missing.to_dict(), "left_out": 0} == without.to_dict()


def test_no_label_at_all_is_a_clear_error():
    tally = Tally(NAMES)
    tally.add([-1, -1], [0, 1])
    assert tally.per_label() == ()
    with pytest.raises(InputError, match="no label for any of the 2 documents"):
        tally.metrics()


@pytest.mark.parametrize(
    ("own", "answer", "sure", "words"),
    [
        ([0, 1], [0], None, "predicted must hold one number for each of 2 documents"),
        ([0], [0], [0.5, 0.5], "confidence must hold"),
        ([4], [0], None, "targets must be column numbers from 0 to 3, or -1. Got 4"),
        ([0], [-2], None, "predicted must be column numbers"),
    ],
)
def test_mismatched_input_is_refused_and_counts_nothing(own, answer, sure, words):
    tally = Tally(NAMES)
    with pytest.raises(ShapeError, match=words):
        tally.add(own, answer, sure)
    assert tally.counts.toarray().sum() == 0
