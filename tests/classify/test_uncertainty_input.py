"""Which documents, labels and parameters `UncertaintyClassifier` accepts and refuses."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import polars as pl
import pytest
from sklearn.exceptions import NotFittedError

from classify.doubt import FEW, FEW_Y, NAMES, uncertainty
from labelspace import LabelSpace, UncertaintyClassifier
from labelspace.classify import uncertainty as module
from labelspace.encoders import Encoder
from labelspace.errors import ConfigError, InputError, LabelSpaceWarning
from labelspace.heads import GaussianHead

Maker = Callable[..., UncertaintyClassifier]


@pytest.fixture
def make(encoders: dict[str, Encoder]) -> Maker:
    """Make an unfitted classifier that trains in a moment."""
    return lambda dtype="float32", **options: uncertainty(**{"encoder": encoders[dtype], **options})


# ---- documents


def test_documents_can_be_lists_arrays_series_tables_or_iterators(make: Maker):
    expected = make().fit(FEW, FEW_Y)
    for X in (
        tuple(FEW),
        np.array(FEW),
        np.array(FEW, dtype=object),
        pd.Series(FEW),
        pd.DataFrame({"text": FEW, "id": range(12)}),
        pl.Series(FEW),
        pl.DataFrame({"text": FEW}),
        pl.DataFrame({"text": FEW}).to_arrow(),
    ):
        assert (expected.decision_function(X) == expected.decision_function(FEW)).all()
    assert (expected.predict_uncertainty(iter(FEW)) == expected.predict_uncertainty(FEW)).all()
    for X, y in (
        (iter(FEW), tuple(FEW_Y)),
        (np.array(FEW, dtype=object), np.array(FEW_Y)),
        (pd.DataFrame({"text": FEW, "id": range(12)}), pd.Series(FEW_Y, index=range(5, 17))),
        (pl.DataFrame({"text": FEW}).to_arrow(), pl.Series(FEW_Y)),
    ):
        assert (make().fit(X, y).decision_function(FEW) == expected.decision_function(FEW)).all()


def test_an_empty_document_is_answered_with_a_warning(clf: UncertaintyClassifier):
    with pytest.warns(LabelSpaceWarning, match="empty or white space"):
        assert clf.predict_uncertainty(["", "a team"]).min() > 0


# ---- bad input


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"extractor": "lstm"}, "extractor must be one of 'textcnn'"),
        ({"contrastive": "triplet"}, "contrastive must be one of"),
        ({"contrastive_weight": 1.5}, "contrastive_weight must be a number at least 0 and at most 1. Got 1.5"),
        ({"kl_weight": -1}, "kl_weight must be a number at least 0"),
        ({"dropout": 1.0}, "dropout must be"),
        ({"learning_rate": 0}, "learning_rate must be a number above 0"),
        ({"learning_rate": "base"}, "learning_rate must be a number or 'auto'. Got 'base'"),
        ({"batch_size": 0}, "batch_size must be a whole number at least 1"),
        ({"epochs": "many"}, "epochs must be a number or 'auto'"),
        ({"validation": 1.0}, "validation must be"),
        ({"uncertain": "yes"}, "uncertain must be one of"),
        ({"min_probability": 1.1}, "min_probability must be a number at least 0 and at most 1. Got 1.1"),
        ({"min_probability": -0.1}, "min_probability must be a number at least 0 and at most 1. Got -0.1"),
        ({"cache": ""}, "cache must be a folder, 'auto' or None. Got '' instead"),
        ({"cache": 3}, "cache must be a folder, 'auto' or None. Got 3 instead"),
        ({"cache": "a\0b"}, "cache must be a folder, 'auto' or None. Got 'a"),
        ({"cache": True}, "cache must be a folder, 'auto' or None. Got True instead"),
        ({"cache_bytes": -1}, "cache_bytes must be a whole number at least 0. Got -1"),
        ({"seed": "x"}, "seed must be a whole number at least 0. Got 'x' instead"),
        ({"seed": None}, "seed must be a whole number at least 0. Got None instead"),
        ({"seed": 1.9}, "seed must be a whole number at least 0. Got 1.9 instead"),
        ({"labels": 3}, "labels must be a LabelSpace"),
        ({"encoder": 3}, "encoder must be a name"),
    ],
)
def test_an_invalid_parameter_is_refused_before_any_work(
    options: dict[str, Any], message: str, make: Maker, monkeypatch: pytest.MonkeyPatch
):
    for owner, work in ((GaussianHead, "forward"), (Encoder, "tokenize"), (Encoder, "__init__")):
        monkeypatch.setattr(owner, work, lambda *_, **__: pytest.fail("work began"))
    if "encoder" not in options:
        monkeypatch.setattr(module, "as_encoder", lambda *_: pytest.fail("the encoder was opened"))
    clf = make(**options)
    with pytest.raises(ConfigError, match=message) as error:
        clf.fit(FEW, FEW_Y)
    assert "\n" not in str(error.value)
    assert not hasattr(clf, "classes_")


@pytest.mark.parametrize(
    ("X", "y", "message"),
    [
        (FEW, None, "no row has a label, and UncertaintyClassifier learns from nothing else; label some, or use"),
        (FEW, [None] * 12, "no row has a label, and"),
        (None, None, "no row has a label, and"),
        (None, FEW_Y, "y names labels, and X is None"),
        (FEW, FEW_Y[:3], r"y must hold one label for each of the 12 documents\. Got 3"),
        (FEW[:2], ["sports", "mony"], r"y\[1\] is 'mony', which is no label\. Did you mean 'money'"),
        (FEW, ["sports"] * 12, "all 12 labelled rows have the label 'sports', so there is nothing to tell apart"),
        ([*FEW[:11], None], FEW_Y, r"X\[11\] is missing"),
        ([*FEW[:11], 3], FEW_Y, r"X\[11\] is not a text"),
        ("a text", FEW_Y, "single str"),
        (list(zip(FEW, FEW, strict=True)), FEW_Y, r"takes single texts\. Got pairs; use LaConClassifier for them"),
    ],
)
def test_invalid_documents_and_labels_are_refused_in_one_line(X: Any, y: Any, message: str, make: Maker):
    clf = make(labels=NAMES)
    with pytest.raises(InputError, match=message) as error:
        clf.fit(X, y)
    assert "\n" not in str(error.value)
    assert not hasattr(clf, "classes_")


@pytest.mark.filterwarnings("ignore:1 of the 1 labelled documents have rows with different labels")
def test_a_validation_share_without_a_row_is_refused_before_any_work(make: Maker, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(GaussianHead, "forward", lambda *_, **__: pytest.fail("work began"))
    for X, y in ((["a match", "a bank"], ["sports", "money"]), (["a match"] * 10, ["sports", "money"] * 5)):
        with pytest.raises(InputError, match=r"validation=0.5 holds out none of \d+ rows.*; label more texts, or set"):
            make(validation=0.5).fit(X, y)
    monkeypatch.undo()
    assert make(validation="auto").fit(["a match", "a bank"], ["sports", "money"]).fit_result_.held_out == 0


TWO_LABELS = "y must name two labels at least, as text, .* Got {} instead"


@pytest.mark.parametrize(
    ("y", "message"),
    [
        (["sports"] * 12, TWO_LABELS.format(1)),
        ([None] * 12, TWO_LABELS.format(0)),
        (["sports", b"money"] * 6, r"y\[1\] is b'money' of type bytes; pass label names, as text"),
        (list(range(12)), r"y\[0\] is the number 0, and labels is None, .*; pass names in y"),
    ],
)
def test_a_y_with_too_few_labels_is_refused_in_one_line(y: Any, message: str, make: Maker):
    with pytest.raises(InputError, match=message):
        make().fit(FEW, y)


def test_a_minus_one_that_may_be_a_label_is_told(make: Maker):
    y = ["-1", "0", "1"] * 4
    with pytest.warns(LabelSpaceWarning, match="y holds the text '-1' 4 times, .*; if it is a label, say labels="):
        assert list(make().fit(FEW, y).classes_) == ["0", "1"]
    assert list(make(labels=["-1", "0", "1"]).fit(FEW, y).classes_) == ["-1", "0", "1"]
    assert list(make().fit(FEW, np.array([-1, "0", "1"] * 4)).classes_) == ["0", "1"]  # numpy made the text


def test_both_ways_to_compose_a_letter_are_one_label(make: Maker):
    y = ["caf\u00e9", "cafe\u0301", "bar"] * 4
    assert list(make().fit(FEW, y).classes_) == ["bar", "caf\u00e9"]
    clf = make(labels=["cafe\u0301", "bar"]).fit(FEW, y)
    assert list(clf.classes_) == ["bar", "cafe\u0301"]
    assert clf.score(FEW, y) == np.mean(clf.predict(FEW) == [{"caf\u00e9": "cafe\u0301"}.get(one, one) for one in y])


@pytest.mark.parametrize(
    "ask",
    ["predict", "predict_proba", "decision_function", "predict_uncertainty", "transform", "most_uncertain", "explain"],
)
def test_methods_refuse_an_unfitted_model_and_invalid_documents(ask: str, make: Maker, clf: UncertaintyClassifier):
    with pytest.raises(NotFittedError):
        getattr(make(), ask)(FEW)
    if ask == "explain":
        return
    with pytest.raises(InputError, match=r"X\[1\] is missing"):
        getattr(clf, ask)(["a text", None])
    with pytest.raises(InputError, match=r"fitted on texts\. Got pairs of texts"):
        getattr(clf, ask)([("a", "b")])


def test_limits_and_edits_need_a_fitted_model(make: Maker, tmp_path: Path):
    for ask in (
        lambda clf: clf.set_coverage(0.5),
        lambda clf: clf.set_risk(0.1),
        lambda clf: clf.scores(FEW, LabelSpace.from_names(NAMES)),
        lambda clf: clf.rename_label("money", "cash"),
        lambda clf: clf.remove_label("money"),
        lambda clf: clf.state(),
        lambda clf: clf.save(tmp_path / "model"),
    ):
        with pytest.raises(NotFittedError):
            ask(make())
