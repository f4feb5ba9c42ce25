"""Label Studio: its four routes, with the bodies that Label Studio 1.23 sends."""

from typing import Any

import pytest

from serve.service import TEXTS, Service

CHOICES = '<View><Text name="t" value="$body"/><Choices name="c" toName="t"><Choice value="sports"/></Choices></View>'
SEVERAL = CHOICES.replace('toName="t"', 'toName="t" choice="multiple"')


def asked(texts: list[Any], config: str = CHOICES) -> dict[str, Any]:
    tasks = [{"id": number, "data": {"body": text}, "annotations": []} for number, text in enumerate(texts)]
    params = {"login": None, "password": None, "context": None}
    return {"tasks": tasks, "project": "1.1795550", "label_config": config, "params": params}


def test_each_task_gets_the_label_of_its_text_with_its_probability(service: Service, news: Any):
    found = service.post("/label-studio/news/predict", asked(TEXTS)).json()
    assert len(found["results"]) == len(TEXTS)
    answers = news.answers(TEXTS)
    for row, prediction in enumerate(found["results"]):
        [region] = prediction["result"]
        assert region["value"] == {"choices": [answers.names[row]]}
        assert (region["from_name"], region["to_name"], region["type"]) == ("c", "t", "choices")
        assert prediction["score"] == pytest.approx(answers.confidence[row], abs=1e-6)
        assert prediction["model_version"] == found["model_version"]


def test_a_blank_text_has_no_choice_and_the_others_are_labelled(service: Service, news: Any):
    texts = [" ", TEXTS[0], "", TEXTS[1]]
    found = service.post("/label-studio/news/predict", asked(texts)).json()["results"]
    told = [prediction["result"][0]["value"]["choices"][0] if prediction["result"] else None for prediction in found]
    assert told == [None, news.predict(TEXTS[:1])[0], None, news.predict(TEXTS[1:2])[0]]
    alone = service.post("/label-studio/news/predict", asked([" "])).json()["results"]
    assert [(prediction["result"], prediction["score"]) for prediction in alone] == [([], 0)]


def test_the_first_choices_of_a_text_are_taken(service: Service):
    image = '<View><Image name="i" value="$image"/><Choices name="q" toName="i" choice="multiple"/>'
    found = service.post("/label-studio/news/predict", asked(TEXTS[:1], CHOICES.replace("<View>", image))).json()
    [region] = found["results"][0]["result"]
    assert (region["from_name"], region["to_name"]) == ("c", "t")


def test_a_text_that_fits_none_has_no_choice(service: Service, classifiers: Any):
    names = classifiers["choosy"].predict(TEXTS).tolist()
    assert None in names
    found = service.post("/label-studio/choosy/predict", asked(TEXTS)).json()["results"]
    assert [bool(prediction["result"]) for prediction in found] == [name is not None for name in names]


def test_several_labels_need_choices_of_which_several_may_be_taken(service: Service, classifiers: Any):
    several = classifiers["several"]
    refused = service.post("/label-studio/several/predict", asked(TEXTS))
    assert refused.status_code == 422
    assert 'choice="multiple"' in refused.json()["error"]
    found = service.post("/label-studio/several/predict", asked(TEXTS, SEVERAL)).json()["results"]
    told = [set(prediction["result"][0]["value"]["choices"]) if prediction["result"] else set() for prediction in found]
    matrix = several.predict(TEXTS)
    assert told == [{str(name) for name, one in zip(several.classes_, row, strict=True) if one} for row in matrix]


@pytest.mark.parametrize("empty", [{"body": None}, {}])
def test_a_task_without_a_text_gets_no_choice_and_the_others_their_own(service: Service, empty: dict[str, Any]):
    body = asked([*TEXTS[:2], ""])
    whole = service.post("/label-studio/news/predict", body).json()["results"]
    body["tasks"][2]["data"] = empty
    assert service.post("/label-studio/news/predict", body).json()["results"] == whole
    assert [bool(prediction["result"]) for prediction in whole] == [True, True, False]


@pytest.mark.parametrize(
    ("body", "words"),
    [
        (asked(TEXTS, "<View/>"), "no choices of a text"),
        (asked(TEXTS, "<View>" + "<" * 9), "no choices of a text"),
        (asked(TEXTS, "<![foo <View/>"), "no choices of a text"),
        (asked([None]), "no task has a text in 'body'"),
        (asked([]), "there is no text"),
    ],
)
def test_what_cannot_be_labelled_is_refused_in_one_line(service: Service, body: Any, words: str):
    refused = service.post("/label-studio/news/predict", body)
    assert refused.status_code == 422
    assert words in refused.json()["error"]
    assert "\n" not in refused.json()["error"]


def test_a_backend_is_connected_and_told_of_events_and_does_not_train(service: Service):
    assert service.http.get("/label-studio/news/health").json()["status"] == "UP"
    setup = {"project": "1.17", "schema": CHOICES, "hostname": "http://localhost", "access_token": "secret"}
    assert service.post("/label-studio/news/setup", setup).json()["model_version"].startswith("news ")
    noted = service.post("/label-studio/news/webhook", {"action": "ANNOTATION_CREATED", "annotation": {}})
    assert noted.status_code == 200
    refused = service.post("/label-studio/news/webhook", {"action": "START_TRAINING", "project": {}})
    assert refused.status_code == 422
    assert "labelspace fit" in refused.json()["error"]
    assert service.http.get("/label-studio/nothing/health").status_code == 404
