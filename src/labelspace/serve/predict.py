"""`POST /predict`, as text-embeddings-inference and the zero-shot pipeline of `transformers` take it."""

import asyncio
from dataclasses import replace
from typing import Any

import numpy as np
from pydantic import BaseModel, Field

from labelspace.classify.answers import Answers
from labelspace.labels import LabelSpace
from labelspace.serve.operations import Items, Operation, RefusedError, check_size, checked_texts, model_of
from labelspace.serve.questions import Option, space_of
from labelspace.serve.room import Room, Served


class Parameters(BaseModel):
    """Parameters of the zero-shot pipeline and of the hub's client, and how many labels to tell."""

    candidate_labels: Items[str] | str | None = None
    hypothesis_template: str | None = None
    multi_label: bool = False
    top_k: int | None = Field(default=None, ge=1)
    function_to_apply: str | None = None


class PredictRequest(BaseModel):
    """The body of a request: texts, and perhaps other labels than the model's own."""

    inputs: str | Items[str | Items[str]]
    parameters: Parameters | None = None
    raw_scores: bool = False


class Scored(BaseModel):
    """A label with its probability."""

    label: str
    score: float


async def predict(room: Room, request: PredictRequest, name: str | None = None) -> Any:
    """Return the labels of texts, the likeliest first; none for a text that fits none, as the model says.

    The hub's client wants a list for each text, but with candidate labels and a single text that list alone.
    """
    served = model_of(room, name)
    single, documents = _documents(room, served, request.inputs)
    parameters = request.parameters or Parameters()
    if request.raw_scores:
        raise RefusedError(422, "scores are probabilities; leave raw_scores out.", ("raw_scores",))
    if parameters.function_to_apply not in (None, "softmax"):
        raise RefusedError(
            422, "scores are probabilities; leave function_to_apply out.", ("parameters", "function_to_apply")
        )
    space = _space(room, served, parameters)
    labels = len((served.space if space is None else space).labels)
    told = min(labels, parameters.top_k or labels)
    check_size(len(documents) * told, ("parameters", "top_k"), "name a smaller top_k, or send fewer texts.")
    [answers], _ = await room.ask(served, documents, [space])
    names = answers.labels if space is None else tuple(label.phrase or label.name for label in space.labels)
    # In a thread, because many labels take seconds, in which others would get no answer.
    found = await asyncio.to_thread(_ranked, answers, names, told)
    return found[0] if single and parameters.candidate_labels is not None else found


def _documents(room: Room, served: Served, inputs: Any) -> tuple[bool, list[Any]]:
    """Return whether one text came alone, and the documents."""
    rows = [inputs] if isinstance(inputs, str) else inputs
    if served.reads_pairs and len(rows) == 2 and all(isinstance(row, str) for row in rows):
        rows = [rows]  # one pair
    parts = [[row] if isinstance(row, str) else row for row in rows]
    width = 2 if served.reads_pairs else 1
    for row, each in enumerate(parts):
        if len(each) != width:
            kind = "pairs of texts" if served.reads_pairs else "single texts"
            raise RefusedError(422, f"{served.name} reads {kind}. Got {len(each)} text(s) in a row.", ("inputs", row))
    flat = checked_texts(room, [text for each in parts for text in each], ("inputs",))
    documents = list(zip(flat[::2], flat[1::2], strict=True)) if served.reads_pairs else flat
    return isinstance(inputs, str), documents


def _space(room: Room, served: Served, parameters: Parameters) -> LabelSpace | None:
    """Return the candidate labels; None: the model's own."""
    asked = parameters.candidate_labels
    several = served.space.several
    if asked is None:
        return None
    names = [name.strip() for name in (asked.split(",") if isinstance(asked, str) else asked)]
    template = parameters.hypothesis_template
    template = None if template is None else template.replace("{}", "{label}")
    if set(names) == set(served.labels) and template in (None, served.space.template):
        if parameters.multi_label == several:
            return None
        if several:
            raise RefusedError(
                422,
                f"a text may have several labels of {served.name}; say multi_label: true, or leave its labels out.",
                ("parameters", "multi_label"),
            )
    if parameters.multi_label:
        raise RefusedError(
            422,
            "how likely each of several labels is cannot be told without documents; fit a model with several: true.",
            ("parameters", "multi_label"),
        )
    return space_of(room, served, [Option(name) for name in names], ("parameters", "candidate_labels"), template)


def _ranked(answers: Answers, names: tuple[str, ...], top: int) -> list[list[Scored]]:
    """Return the labels of each text, the likeliest first; all of them where a text may have several."""
    found: list[list[Scored]] = []
    columns = np.arange(len(names))
    for name, shares, first in zip(answers.names, answers.probabilities, answers.likeliest, strict=True):
        fits = answers.chosen is not None or name is not None
        order = np.lexsort((columns != first, -shares))[:top] if fits else []
        found.append([Scored(label=names[column], score=float(shares[column])) for column in order])
    return found


PREDICT = Operation(
    method="POST",
    path="/predict",
    summary="Label texts, as text-embeddings-inference and the zero-shot pipeline take them, by the only model.",
    answer=predict,
    takes=PredictRequest,
    gives=list[list[Scored]] | list[Scored],
    example={"inputs": ["I was charged twice.", "I forgot my password."]},
)
PREDICT_BY = replace(PREDICT, path="/predict/{name}", summary="Label texts by one of the models.")
