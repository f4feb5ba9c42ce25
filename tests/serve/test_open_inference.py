"""`/v2`, asked by the package `open-inference-openapi`."""

import itertools
from collections.abc import Iterator
from typing import Any

import httpx
import pytest
from open_inference.openapi.client import OpenInferenceClient
from open_inference.openapi.core.api_error import ApiError
from open_inference.openapi.errors import BadRequestError, NotFoundError
from open_inference.openapi.types import InferenceRequest, RequestInput, RequestOutput

from labelspace import __version__
from serve.conftest import ROWS
from serve.service import TEXTS, Service

PAIRS = list(itertools.pairwise(ROWS))


@pytest.fixture(scope="module")
def client(service: Service) -> Iterator[OpenInferenceClient]:
    with httpx.Client(trust_env=False) as http:
        yield OpenInferenceClient(base_url=service.url, httpx_client=http)


def tensor(texts: Any, name: str = "text", **other: Any) -> RequestInput:
    return RequestInput(**{"name": name, "shape": [len(texts)], "datatype": "BYTES", "data": texts} | other)


@pytest.mark.parametrize("name", ["news", "choosy", "sure", "words", "joint", "lacon", "doubting", "several"])
def test_tensors_are_what_the_model_answers(client: OpenInferenceClient, classifiers: dict[str, Any], name: str):
    expected = classifiers[name].answers(TEXTS)
    found = client.model_infer(name, request=InferenceRequest(id="7", inputs=[tensor(TEXTS)]))
    assert (found.model_name, found.model_version, found.id) == (name, "1", "7")
    label, probabilities, scores = found.outputs
    assert (label.name, label.datatype, label.shape) == ("label", "BYTES", [6])
    assert label.data.__root__ == [each or "" for each in expected.names]
    for output, kind, values in (
        (probabilities, "FP64", expected.probabilities),
        (scores, "FP32", expected.scores),
    ):
        assert (output.datatype, output.shape) == (kind, [6, 3])
        assert output.data.__root__ == pytest.approx(values.ravel().tolist(), abs=1e-5)


def test_pairs_are_two_tensors(client: OpenInferenceClient, judge: Any):
    inputs = [tensor([pair[number] for pair in PAIRS], name) for number, name in enumerate(("text", "text_pair"))]
    for order in (inputs, inputs[::-1]):
        found = client.model_infer("judge", request=InferenceRequest(inputs=order))
        assert found.outputs[0].data.__root__ == judge.predict(PAIRS).tolist()
    assert [each.name for each in client.read_model_metadata("judge").inputs or []] == ["text", "text_pair"]
    with pytest.raises(BadRequestError, match="differ in length"):
        client.model_infer("judge", request=InferenceRequest(inputs=[inputs[0], tensor(["a"], "text_pair")]))


def test_wanted_outputs_come_in_their_order(client: OpenInferenceClient):
    wanted = [RequestOutput(name=name) for name in ("scores", "label")]
    found = client.model_infer("news", request=InferenceRequest(inputs=[tensor(TEXTS[:1])], outputs=wanted))
    assert [output.name for output in found.outputs] == ["scores", "label"]
    assert found.id is None


def test_data_may_be_nested_as_its_shape_says(client: OpenInferenceClient):
    flat = client.model_infer("news", request=InferenceRequest(inputs=[tensor(TEXTS)]))
    nested = tensor([[text] for text in TEXTS], shape=[6, 1])
    assert client.model_infer("news", request=InferenceRequest(inputs=[nested])) == flat


def test_metadata_names_inputs_outputs_and_labels(client: OpenInferenceClient, service: Service):
    server = client.read_server_metadata()
    assert (server.name, server.version, server.extensions) == ("labelspace", __version__, [])
    model = client.read_model_metadata("news")
    assert model == client.read_model_version_metadata("news", "1")
    assert (model.name, model.versions, model.platform) == ("news", ["1"], "labelspace")
    assert [(each.name, each.datatype, each.shape) for each in model.inputs or []] == [("text", "BYTES", [-1])]
    assert [(each.name, each.datatype, each.shape) for each in model.outputs or []] == [
        ("label", "BYTES", [-1]),
        ("probabilities", "FP64", [-1, 3]),
        ("scores", "FP32", [-1, 3]),
    ]
    assert service.http.get("/v2/models/news").json()["labels"] == ["sports", "money", "world"]


def test_health_is_told(client: OpenInferenceClient):
    client.check_server_liveness()
    client.check_server_readiness()
    client.check_model_readiness("news")
    client.check_model_version_readiness("news", "1")
    for version in ("2", "0"):
        with pytest.raises(NotFoundError, match="there is one version"):
            client.check_model_version_readiness("news", version)
    with pytest.raises(NotFoundError, match="no model is called 'other'"):
        client.check_model_readiness("other")


@pytest.mark.parametrize(
    ("inputs", "said"),
    [
        ([tensor(TEXTS, "words")], r"takes the input\(s\) text, once. Got words"),
        ([tensor(TEXTS), tensor(TEXTS)], "once"),
        ([tensor(TEXTS, shape=[5])], "does not fit 6 texts"),
        ([tensor([1.5, 2.5])], "strings"),
        ([tensor(TEXTS, datatype="FP32")], "must be BYTES. Got FP32"),
    ],
)
def test_a_wrong_tensor_is_a_bad_request(client: OpenInferenceClient, inputs: Any, said: str):
    with pytest.raises(BadRequestError, match=said) as caught:
        client.model_infer("news", request=InferenceRequest(inputs=inputs))
    assert isinstance(caught.value.body["error"], str)


def test_other_errors_tell_their_status(client: OpenInferenceClient):
    for data, status in ((["a" * 50_001], 413), ([" "], 422), ([], 422)):
        with pytest.raises(ApiError) as caught:
            client.model_infer("news", request=InferenceRequest(inputs=[tensor(data)]))
        assert caught.value.status_code == status
        assert isinstance(caught.value.body["error"], str)
    with pytest.raises(BadRequestError, match="no output is called 'logits'; there is label, probabilities, scores"):
        client.model_infer(
            "news", request=InferenceRequest(inputs=[tensor(TEXTS)], outputs=[RequestOutput(name="logits")])
        )
