"""The open inference protocol, version 2, as KServe and its clients speak it."""

import math
from typing import Annotated, Any, Literal

from pydantic import BaseModel, Field

from labelspace.serve.operations import Items, Operation, RefusedError, check_size, checked_texts, model_of
from labelspace.serve.room import Room, Served
from labelspace.version import __version__

TEXT, PAIR = "text", "text_pair"
BYTES = "BYTES"


class Input(BaseModel):
    """A tensor of texts."""

    name: str
    shape: Items[Annotated[int, Field(ge=0, le=2**31)]] = Field(min_length=1, max_length=8)
    datatype: str
    data: list[Any] | str
    parameters: dict[str, Any] | None = None


class WantedOutput(BaseModel):
    """The name of an output."""

    name: str


class InferenceRequest(BaseModel):
    """The body of a request: an input `text`, and `text_pair` for a model of pairs."""

    id: str | None = None
    parameters: dict[str, Any] | None = None
    inputs: Items[Input] = Field(min_length=1)
    outputs: Items[WantedOutput] | None = None


class Output(BaseModel):
    """A tensor; its rows are the texts."""

    name: str
    datatype: Literal["BYTES", "FP32", "FP64"]
    shape: list[int]
    data: list[Any]


class InferenceResponse(BaseModel):
    """`label` is empty for a text that fits none; columns of the others follow the model's metadata."""

    model_name: str
    model_version: str = "1"
    id: str | None = None
    outputs: list[Output]


OUTPUTS = ("label", "probabilities", "scores")


async def infer(room: Room, request: InferenceRequest, name: str, version: str = "1") -> InferenceResponse:
    """Label the texts of a tensor."""
    served = model_of(room, name)
    _check_version(version)
    documents = _documents(room, served, request)
    wanted = [output.name for output in request.outputs] if request.outputs else list(OUTPUTS)
    for output in wanted:
        if output not in OUTPUTS:
            raise RefusedError(400, f"no output is called {output[:100]!r}; there is {', '.join(OUTPUTS)}.")
    tables = sum(output != "label" for output in wanted)
    check_size(
        len(documents) * len(served.labels) * tables, ("outputs",), "ask for fewer outputs, or send fewer texts."
    )
    [answers], _ = await room.ask(served, documents)
    rows, columns = answers.scores.shape
    every = {
        "label": ("BYTES", [rows], [found or "" for found in answers.names]),
        "probabilities": ("FP64", [rows, columns], answers.probabilities.ravel().tolist()),
        "scores": ("FP32", [rows, columns], answers.scores.ravel().tolist()),
    }
    outputs = [Output(name=key, datatype=every[key][0], shape=every[key][1], data=every[key][2]) for key in wanted]
    return InferenceResponse(model_name=served.name, id=request.id, outputs=outputs)


def _documents(room: Room, served: Served, request: InferenceRequest) -> list[Any]:
    given = {tensor.name: tensor for tensor in request.inputs}
    names = [TEXT, PAIR] if served.reads_pairs else [TEXT]
    if sorted(given) != sorted(names) or len(given) < len(request.inputs):
        raise RefusedError(
            400, f"{served.name} takes the input(s) {' and '.join(names)}, once. Got {', '.join(given)[:100]}."
        )
    texts = [_texts(room, given[name], number) for number, name in enumerate(names)]
    if len({len(each) for each in texts}) > 1:
        raise RefusedError(400, f"{TEXT} and {PAIR} differ in length.")
    return list(zip(*texts, strict=True)) if served.reads_pairs else texts[0]


def _texts(room: Room, tensor: Input, number: int) -> list[str]:
    where = ("inputs", number)
    if tensor.datatype != BYTES:
        raise RefusedError(400, f"the input {tensor.name[:100]!r} must be {BYTES}. Got {tensor.datatype[:20]}.", where)
    data = _flat(tensor.data)
    if not all(isinstance(text, str) for text in data):
        raise RefusedError(400, "the data must be strings.", where)
    if math.prod(tensor.shape) != len(data):
        raise RefusedError(400, f"the shape {tensor.shape} does not fit {len(data):,} texts.", where)
    return checked_texts(room, data, where)


def _flat(data: Any) -> list[Any]:
    if not isinstance(data, list):
        return [data]
    return [part for each in data for part in (_flat(each) if isinstance(each, list) else [each])]


def _check_version(version: str) -> None:
    if version != "1":
        raise RefusedError(404, f"there is one version of a model, 1. Got {version[:20]!r}.")


async def server(_: Room) -> dict[str, Any]:
    """Name the server."""
    return {"name": "labelspace", "version": __version__, "extensions": []}


async def metadata(room: Room, name: str, version: str = "1") -> dict[str, Any]:
    """Return what a model takes and gives; `labels` names the columns."""
    served = model_of(room, name)
    _check_version(version)
    columns = len(served.labels)
    return {
        "name": served.name,
        "versions": ["1"],
        "platform": "labelspace",
        "inputs": [
            {"name": each, "datatype": BYTES, "shape": [-1]}
            for each in ([TEXT, PAIR] if served.reads_pairs else [TEXT])
        ],
        "outputs": [
            {"name": "label", "datatype": BYTES, "shape": [-1]},
            {"name": "probabilities", "datatype": "FP64", "shape": [-1, columns]},
            {"name": "scores", "datatype": "FP32", "shape": [-1, columns]},
        ],
        "labels": list(served.labels),
    }


async def live(_: Room) -> dict[str, Any]:
    """Say that the server lives."""
    return {"live": True}


async def ready(room: Room, name: str | None = None, version: str = "1") -> dict[str, Any]:
    """Say that the server, or one of its models, is ready."""
    if name is None:
        return {"ready": True}
    _check_version(version)
    return {"name": model_of(room, name).name, "ready": True}


def _get(path: str, summary: str, answer: Any) -> Operation:
    return Operation(method="GET", path=path, summary=summary, answer=answer)


EXAMPLE = {"inputs": [{"name": TEXT, "shape": [1], "datatype": BYTES, "data": ["I was charged twice."]}]}
INFERENCE = [
    Operation(
        method="POST",
        path=f"/v2/models/{{name}}{version}/infer",
        summary="Label texts, as clients of the open inference protocol (KServe) send them.",
        answer=infer,
        takes=InferenceRequest,
        gives=InferenceResponse,
        example=EXAMPLE,
    )
    for version in ("", "/versions/{version}")
] + [
    _get("/v2", "Name the server.", server),
    _get("/v2/health/live", "Say that the server lives.", live),
    _get("/v2/health/ready", "Say that the server is ready.", ready),
    _get("/v2/models/{name}", "Say what a model takes and gives.", metadata),
    _get("/v2/models/{name}/versions/{version}", "Say what a model takes and gives.", metadata),
    _get("/v2/models/{name}/ready", "Say that a model is ready.", ready),
    _get("/v2/models/{name}/versions/{version}/ready", "Say that a model is ready.", ready),
]
