"""`GET /v1/models`, which both decision clients read: one list in the words of each."""

import datetime

from pydantic import BaseModel

from labelspace.serve.decisions import OpenAIError, openai_error
from labelspace.serve.operations import Operation, model_of
from labelspace.serve.room import Room, Served


class Model(BaseModel):
    """A model, as OpenAI's client reads it, with its labels."""

    id: str
    object: str = "model"
    created: int
    owned_by: str = "labelspace"
    labels: list[str]


class Metadata(BaseModel):
    """A model, as TypeSafe's client reads it."""

    name: str
    description: str
    release_date: str


class ModelList(BaseModel):
    """All models, in both forms."""

    object: str = "list"
    data: list[Model]
    models: list[Metadata]


def _model(served: Served) -> Model:
    return Model(id=served.name, created=served.created, labels=list(served.labels))


def _metadata(served: Served) -> Metadata:
    day = datetime.datetime.fromtimestamp(served.created, datetime.UTC).date()
    labels = f"{len(served.labels):,} labels: {', '.join(served.labels[:20])}"
    return Metadata(
        name=served.name, description=f"{served.classifier.class_name}, {labels}", release_date=day.isoformat()
    )


async def every_model(room: Room) -> ModelList:
    """List the models."""
    served = list(room.models.values())
    return ModelList(data=[_model(each) for each in served], models=[_metadata(each) for each in served])


async def one_model(room: Room, name: str) -> Model:
    """Describe a model."""
    return _model(model_of(room, name))


MODELS = Operation(
    method="GET",
    path="/v1/models",
    summary="List the models, for the clients of OpenAI and of TypeSafe.",
    answer=every_model,
    gives=ModelList,
    error=openai_error,
    problem=OpenAIError,
)
MODEL = Operation(
    method="GET",
    path="/v1/models/{name}",
    summary="Describe a model.",
    answer=one_model,
    gives=Model,
    error=openai_error,
    problem=OpenAIError,
)
