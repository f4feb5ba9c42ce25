"""`answers` returns everything a model says about documents, and the other methods agree with it."""

from dataclasses import FrozenInstanceError
from typing import Any

import numpy as np
import pytest

from classify.conftest import METHODS, TEXTS, columns_of
from classify.doubt import NEW
from labelspace import UncertaintyClassifier
from labelspace.classify.by_anchors import Anchored
from labelspace.classify.head import ComparesLabels
from labelspace.corpus import Documents, Kind
from labelspace.errors import InputError


@pytest.mark.parametrize("method", METHODS)
def test_answers_equal_the_scikit_learn_methods_in_the_order_of_the_label_file(method: str, fitted: Any):
    clf = fitted(method, threshold=0.5)
    found, names = clf.answers(TEXTS), clf.label_space_.names
    assert found.labels == names
    assert found.uncertainty is None
    assert list(found.names) == list(clf.predict(TEXTS))
    assert (found.scores == columns_of(clf, clf.decision_function(TEXTS), names)).all()
    assert (found.probabilities == columns_of(clf, clf.predict_proba(TEXTS), names)).all()
    assert found.score.tolist() == found.scores.max(axis=1).tolist()
    assert [column < 0 for column in found.columns] == [name is None for name in found.names]
    with pytest.raises(FrozenInstanceError):
        found.names = names


def test_some_of_the_answers_are_those_of_some_of_the_documents(clf: UncertaintyClassifier):
    found = clf.answers(NEW)[2:5]
    assert len(found) == 3
    assert found.labels == clf.label_space_.names
    assert found.uncertainty is not None
    assert (found.uncertainty == clf.answers(NEW).uncertainty[2:5]).all()  # pyright: ignore
    assert found.names.tolist() == clf.predict(NEW)[2:5].tolist()
    assert (found.scores == clf.answers(NEW).scores[2:5]).all()


def test_a_model_that_measures_uncertainty_includes_it_in_its_answers(clf: UncertaintyClassifier):
    clf.set_coverage(0.5, NEW)
    found = clf.answers(NEW)
    assert found.uncertainty is not None
    assert (found.uncertainty == clf.predict_uncertainty(NEW)).all()
    assert sum(name is None for name in found.names) == 60
    assert (found.likeliest >= 0).all()
    assert np.isfinite(found.confidence).all()


def test_checked_documents_are_not_checked_again(fitted: Any):
    clf = fitted("zero-shot")
    empty = Documents(["", "a text"], Kind.TEXTS)  # a plain list with an empty text would cause a warning
    assert clf.read(empty) is empty
    assert list(clf.answers(empty).names) == list(clf.predict(empty))
    with pytest.raises(InputError, match=r"fitted on texts\. Got pairs of texts"):
        clf.answers(Documents([("a", "b")], Kind.PAIRS))


def test_models_without_anchors_do_not_pretend_to_have_them(fitted: Any, clf: UncertaintyClassifier):
    anchored = fitted("zero-shot")
    assert isinstance(anchored, Anchored)
    assert isinstance(anchored.head_, ComparesLabels)
    assert not isinstance(clf, Anchored)
    assert not isinstance(clf.head_, ComparesLabels)
    assert not hasattr(clf, "temperature")
