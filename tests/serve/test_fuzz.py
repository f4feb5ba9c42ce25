"""Requests made from the OpenAPI document: none makes the service fail, and each answer is as the document says."""

from typing import Any

import pytest
import schemathesis
from hypothesis import HealthCheck, Phase, given, seed, settings
from schemathesis import GenerationMode
from schemathesis.checks import not_a_server_error
from schemathesis.specs.openapi import checks

from serve.service import Service

# Not that right requests succeed: a question may be one that the model cannot answer.
CHECKS = [
    not_a_server_error,
    checks.status_code_conformance,
    checks.content_type_conformance,
    checks.response_headers_conformance,
    checks.response_schema_conformance,
    checks.negative_data_rejection,
]


MODELS = ["news", "choosy", "several"]


@pytest.fixture(scope="module")
def schema(service: Service) -> Any:
    document = service.http.get("/openapi.json").json()
    for operations in document["paths"].values():  # right requests name a model that there is, wrong ones any
        for operation in operations.values():
            for parameter in operation.get("parameters", ()):
                parameter["schema"] = {"enum": MODELS if parameter["name"] == "name" else ["1"]}
    schemas = document["components"]["schemas"]
    for name, most in (("DecisionRequest", "maxItems"), ("SystemOneRequest", "maxProperties")):
        schemas[name]["properties"]["model"] = {"type": "string", "enum": MODELS}
        schemas[name]["properties"]["questions"][most] = 1  # a question that cannot be answered spoils all others
    schemas["Input"]["properties"] |= {"name": {"enum": ["text"]}, "datatype": {"enum": ["BYTES"]}}
    return schemathesis.openapi.from_dict(document)


PATHS = [
    "/v1/decisions",
    "/v1/systemone",
    "/predict/{name}",
    "/predict",
    "/v2/models/{name}/infer",
    "/v2/models/{name}/versions/{version}/infer",
    "/v1/models",
    "/v1/models/{name}",
    "/v2",
    "/v2/models/{name}",
    "/v2/models/{name}/ready",
    "/v2/models/{name}/versions/{version}",
    "/v2/models/{name}/versions/{version}/ready",
    "/v2/health/live",
    "/v2/health/ready",
    "/label-studio/{name}/health",
    "/label-studio/{name}/setup",
    "/label-studio/{name}/predict",
    "/label-studio/{name}/webhook",
]


def test_every_path_of_the_document_is_tried(schema: Any):
    assert set(schema.raw_schema["paths"]) == set(PATHS)


@pytest.mark.slow
@pytest.mark.parametrize("path", PATHS)
@pytest.mark.parametrize("mode", list(GenerationMode), ids=lambda mode: mode.value)
def test_no_request_makes_the_service_fail(service: Service, schema: Any, path: str, mode: GenerationMode):
    [operation] = schema[path].values()
    if mode is GenerationMode.NEGATIVE and not {"requestBody", "parameters"} & set(operation.definition.raw):
        pytest.skip("it takes nothing that could be wrong")
    examples = 100 if "requestBody" in operation.definition.raw else 5

    @seed(1)
    @settings(
        max_examples=examples,
        database=None,
        phases=[Phase.explicit, Phase.generate],
        suppress_health_check=list(HealthCheck),
    )
    @given(case=operation.as_strategy(generation_mode=mode))
    def ask(case: Any) -> None:
        response = case.call(base_url=service.url)
        case.validate_response(response, checks=CHECKS)
        statuses.add(response.status_code)

    statuses: set[int] = set()
    ask()
    if path == "/predict":
        assert statuses <= {400, 422}  # several models are served
    elif mode is GenerationMode.POSITIVE and "requestBody" not in operation.definition.raw:
        assert statuses == {200}  # how often a body that is as described can be answered is a matter of chance
