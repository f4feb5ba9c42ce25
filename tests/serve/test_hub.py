"""`/predict`, asked by the client of the package `huggingface_hub`, and as text-embeddings-inference takes it."""

import itertools
import json
import os
import subprocess
import sys
from typing import Any

import numpy as np
import pytest

from labelspace import LabelSpace, ZeroShotClassifier
from serve.service import TEXTS, Service

# The client refuses every address where the environment says that there is no hub, so it runs in a process of its own.
ASK = """
import json, sys
from huggingface_hub import InferenceClient
url, texts = sys.argv[1], json.loads(sys.argv[2])
client = InferenceClient(model=url, timeout=60)
labels = ["rain", "sun, and wind"]
print(json.dumps({
    "classified": [client.text_classification(text) for text in texts],
    "top": client.text_classification(texts[0], top_k=1),
    "zero": [client.zero_shot_classification(text, labels) for text in texts],
    "template": client.zero_shot_classification(texts[0], labels, hypothesis_template="The weather: {}."),
    "own": client.zero_shot_classification(texts[0], ["world", "money", "sports"]),
}))
"""


@pytest.fixture(scope="module")
def told(service: Service) -> dict[str, Any]:
    environment = {key: value for key, value in os.environ.items() if key != "HF_HUB_OFFLINE"}
    line = [sys.executable, "-c", ASK, f"{service.url}/predict/news", json.dumps(TEXTS)]
    done = subprocess.run(line, capture_output=True, text=True, check=False, env=environment, timeout=120)
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout)


def as_told(clf: Any, text: str) -> dict[str, Any]:
    return dict(zip(clf.classes_, clf.predict_proba([text])[0], strict=True))


def test_text_classification_tells_all_labels(told: dict[str, Any], news: ZeroShotClassifier):
    for text, found in zip(TEXTS, told["classified"], strict=True):
        assert {each["label"]: each["score"] for each in found} == pytest.approx(as_told(news, text), abs=1e-6)
        assert found[0]["label"] == news.predict([text])[0]
        assert all(set(each) == {"label", "score"} for each in found)
    assert told["top"] == told["classified"][0][:1]


@pytest.mark.parametrize(
    ("asked", "template"), [("zero", "This news text is about {label}."), ("template", "The weather: {label}.")]
)
def test_zero_shot_classification_compares_the_candidates(
    told: dict[str, Any], encoder: Any, asked: str, template: str
):
    space = LabelSpace.from_names(["rain", "sun, and wind"], template=template)
    clf = ZeroShotClassifier(space, encoder, anchor="both").fit()
    for text, found in zip(TEXTS, told[asked] if asked == "zero" else [told[asked]], strict=False):
        assert {each["label"]: each["score"] for each in found} == pytest.approx(as_told(clf, text), abs=1e-6)
        assert found[0]["label"] == clf.predict([text])[0]


def test_candidates_that_are_the_models_labels_are_answered_by_the_model(told: dict[str, Any], news: Any):
    assert {each["label"]: each["score"] for each in told["own"]} == pytest.approx(as_told(news, TEXTS[0]), abs=1e-6)


def test_a_template_of_the_users_is_never_ignored(service: Service, encoder: Any):
    names, template = ["sports", "money", "world"], "{}!"
    asked = {"inputs": TEXTS[0], "parameters": {"candidate_labels": names, "hypothesis_template": template}}
    found = service.post("/predict/news", asked).json()
    clf = ZeroShotClassifier(LabelSpace.from_names(names, template="{label}!"), encoder, anchor="both").fit()
    assert {each["label"]: each["score"] for each in found} == pytest.approx(as_told(clf, TEXTS[0]), abs=1e-6)


def test_several_texts_get_a_list_each(service: Service):
    for parameters in ({}, {"candidate_labels": ["rain", "sun"]}):
        found = service.post("/predict/news", {"inputs": TEXTS, "parameters": parameters}).json()
        alone = [service.post("/predict/news", {"inputs": [text], "parameters": parameters}).json() for text in TEXTS]
        for each, [one] in zip(found, alone, strict=True):
            assert [part["label"] for part in each] == [part["label"] for part in one]
            assert [part["score"] for part in each] == pytest.approx([part["score"] for part in one], abs=1e-6)


def test_candidates_may_come_in_one_text_separated_by_commas(service: Service):
    def ask(labels: Any) -> Any:
        return service.post("/predict/news", {"inputs": TEXTS[0], "parameters": {"candidate_labels": labels}}).json()

    assert ask("rain, sun") == ask(["rain", "sun"])


def test_rows_may_be_lists_and_pairs_are_lists_of_two(service: Service, judge: Any):
    assert (
        service.post("/predict/news", {"inputs": [[text] for text in TEXTS]}).json()
        == service.post("/predict/news", {"inputs": TEXTS}).json()
    )
    pairs = list(itertools.pairwise(TEXTS))
    found = service.post("/predict/judge", {"inputs": pairs}).json()
    assert [each[0]["label"] for each in found] == judge.predict(pairs).tolist()
    told = [{part["label"]: part["score"] for part in each} for each in found]
    expected = [dict(zip(judge.classes_, row, strict=True)) for row in judge.predict_proba(pairs)]
    assert np.allclose(
        [sorted(each.values()) for each in told], [sorted(each.values()) for each in expected], atol=1e-6
    )
    [alone] = service.post("/predict/judge", {"inputs": list(pairs[0])}).json()  # one pair, as TEI takes it
    assert [part["label"] for part in alone] == [part["label"] for part in found[0]]
    assert np.allclose([part["score"] for part in alone], [part["score"] for part in found[0]], atol=1e-6)
    wrong = service.post("/predict/judge", {"inputs": "one text"})
    assert (wrong.status_code, wrong.json()["error"]) == (
        422,
        "inputs.0: judge reads pairs of texts. Got 1 text(s) in a row.",
    )


def test_the_models_labels_with_its_own_template_are_answered_by_the_model(service: Service, space: LabelSpace):
    for name in ("news", "choosy", "words"):
        own = {
            "candidate_labels": list(space.names)[::-1],
            "hypothesis_template": space.template.replace("{label}", "{}"),
        }
        found = service.post(f"/predict/{name}", {"inputs": TEXTS, "parameters": own})
        assert found.json() == service.post(f"/predict/{name}", {"inputs": TEXTS}).json()


def test_shares_of_a_model_of_several_labels_are_refused(service: Service, space: LabelSpace):
    asked: dict[str, Any] = {"candidate_labels": list(space.names)}
    refused = service.post("/predict/several", {"inputs": TEXTS, "parameters": asked})
    assert (refused.status_code, "say multi_label: true" in refused.json()["error"]) == (422, True)
    found = service.post("/predict/several", {"inputs": TEXTS, "parameters": {**asked, "multi_label": True}})
    assert found.json() == service.post("/predict/several", {"inputs": TEXTS}).json()


def test_other_scores_than_probabilities_are_refused(service: Service):
    for more in ({"raw_scores": True}, {"parameters": {"function_to_apply": "sigmoid"}}):
        refused = service.post("/predict/news", {"inputs": "a text", **more})
        assert (refused.status_code, "scores are probabilities" in refused.json()["error"]) == (422, True)
    for more in ({"raw_scores": False, "truncate": True}, {"parameters": {"function_to_apply": "softmax"}}):
        assert service.post("/predict/news", {"inputs": "a text", **more}).status_code == 200


def test_what_cannot_be_answered_is_said(service: Service):
    for parameters, said in (
        ({"candidate_labels": ["rain", "sun"], "multi_label": True}, "fit a model with several"),
        ({"candidate_labels": ["rain"]}, "2"),
        ({"candidate_labels": []}, "2"),
        ({"candidate_labels": ["rain", " "]}, "option 2 has neither"),
        ({"candidate_labels": ["rain", "sun"], "hypothesis_template": "no place"}, "no {label}"),
        ({"candidate_labels": ["rain", "sun"], "hypothesis_template": "{} {x}"}, "unknown placeholder"),
    ):
        found = service.post("/predict/news", {"inputs": TEXTS[0], "parameters": parameters})
        assert found.status_code == 422, parameters
        assert said in found.json()["error"], found.json()
    found = service.post("/predict/lacon", {"inputs": "a", "parameters": {"candidate_labels": ["rain", "sun"]}})
    assert (
        "lacon knows only its own labels and reads no other options; ask for all of them: sports, money, world"
        in found.json()["error"]
    )


def test_without_a_name_the_only_model_answers(service: Service, alone: Service):
    assert alone.post("/predict", {"inputs": TEXTS}).json() == alone.post("/predict/news", {"inputs": TEXTS}).json()
    found = service.post("/predict", {"inputs": TEXTS})
    assert (found.status_code, "several models are served; name one" in found.json()["error"]) == (400, True)
