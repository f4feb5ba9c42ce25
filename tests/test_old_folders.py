"""Folders that an earlier version wrote still open and give the same scores."""

from pathlib import Path
from typing import Any

import numpy as np
import pytest

from labelspace import Encoder, LabelSpace, load
from old_folders import CLASSIFIERS, old_answers, old_folder

# Another processor may add in another order, so bits are not compared.
CLOSE: dict[str, Any] = {"atol": 1e-5, "rtol": 0}


@pytest.fixture(scope="module")
def asked() -> dict[str, Any]:
    return old_answers()


@pytest.mark.parametrize("name", CLASSIFIERS)
def test_an_old_classifier_opens_and_predicts_as_before(name: str, asked: dict[str, Any], tmp_path: Path):
    told, texts = asked["answers"][name], asked["texts"]
    clf = load(old_folder(name, tmp_path))
    assert list(clf.classes_) == told["classes"]
    assert list(clf.predict(texts)) == told["predict"]
    np.testing.assert_allclose(clf.decision_function(texts), told["decision_function"], **CLOSE)
    np.testing.assert_allclose(clf.predict_proba(texts), told["predict_proba"], **CLOSE)


@pytest.mark.parametrize("name", CLASSIFIERS)
def test_an_old_classifier_can_be_saved_over_itself(name: str, asked: dict[str, Any], tmp_path: Path):
    folder = old_folder(name, tmp_path)
    load(folder).save(folder)
    told = asked["answers"][name]["decision_function"]
    np.testing.assert_allclose(load(folder).decision_function(asked["texts"]), told, **CLOSE)


def test_an_old_nli_model_opens_and_scores_as_before(asked: dict[str, Any], tmp_path: Path):
    from labelspace.families import EntailmentScorer

    scorer = EntailmentScorer(old_folder("nli", tmp_path), dtype="float32", device="cpu")
    scores = scorer.scores(asked["texts"], LabelSpace.from_dict(asked["labels"]))
    np.testing.assert_allclose(scores, asked["answers"]["nli"]["scores"], **CLOSE)


def test_an_old_pre_finetuned_encoder_opens_and_encodes_as_before(asked: dict[str, Any], tmp_path: Path):
    from labelspace.training.prefinetune import read_eigenspace

    folder = old_folder("encoder", tmp_path)
    encoder = Encoder(folder, dtype="float32", device="cpu")
    np.testing.assert_allclose(encoder.encode(asked["texts"]), asked["answers"]["encoder"]["encode"], **CLOSE)
    assert read_eigenspace(folder, width=2 * encoder.dimension).active > 0
