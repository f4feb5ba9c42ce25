"""What a service answers is what the model answers, in every protocol and for every kind of model."""

from pathlib import Path
from typing import Any

import numpy as np
import pytest

from labelspace.config import ServingConfig
from labelspace.serve.app import make_app
from labelspace.serve.room import open_models
from serve.service import TEXTS, Service, running

ONE_LABEL = ["news", "choosy", "sure", "words", "joint", "lacon", "doubting"]


@pytest.mark.parametrize("name", [*ONE_LABEL, "several"])
def test_predict_tells_every_label_with_its_probability_the_likeliest_first(
    service: Service, classifiers: dict[str, Any], name: str
):
    found = classifiers[name].answers(TEXTS)
    told = service.post(f"/predict/{name}", {"inputs": TEXTS}).json()
    for row, each in enumerate(told):
        if name != "several" and found.names[row] is None:
            assert each == []
            continue
        assert {part["label"]: part["score"] for part in each} == pytest.approx(
            dict(zip(found.labels, found.probabilities[row], strict=True)), abs=1e-6
        )
        assert [part["score"] for part in each] == sorted((part["score"] for part in each), reverse=True)
        if name != "several":
            assert each[0]["label"] == found.names[row]


@pytest.mark.parametrize("count", [1, 2])
def test_top_k_tells_the_first_of_the_same_order(service: Service, count: int):
    every = service.post("/predict/words", {"inputs": TEXTS}).json()
    told = service.post("/predict/words", {"inputs": TEXTS, "parameters": {"top_k": count}}).json()
    assert told == [each[:count] for each in every]


def test_a_link_to_a_model_is_served_by_its_own_name(folder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    (tmp_path / "current").symlink_to(folder)
    [served] = open_models([tmp_path / "current"], ServingConfig())
    assert served.name == "current"
    monkeypatch.chdir(folder)
    [served] = open_models([Path()], ServingConfig())
    assert served.name == "news"


def test_the_models_differ_in_what_is_special_about_them(classifiers: dict[str, Any]):
    unnamed = {name: np.mean([each is None for each in clf.answers(TEXTS).names]) for name, clf in classifiers.items()}
    assert 0 < unnamed["choosy"] < 1
    assert 0 < unnamed["sure"] < 1
    assert unnamed["news"] == unnamed["words"] == 0
    assert type(classifiers["joint"]).__name__ == "JointClassifier"


def test_a_saved_model_is_served_with_the_same_answers_and_the_name_of_its_class(folder: Path, service: Service):
    with running(make_app(open_models([folder], ServingConfig()))) as opened:
        assert (
            opened.post("/predict/news", {"inputs": TEXTS}).json()
            == service.post("/predict/news", {"inputs": TEXTS}).json()
        )
        (told,) = opened.http.get("/v1/models").json()["models"]
        assert told["description"].startswith("ZeroShotClassifier, ")
        assert opened.http.get("/label-studio/news/health").json()["model_class"] == "ZeroShotClassifier"
