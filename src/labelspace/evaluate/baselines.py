"""What a model is compared with on the same documents: the untrained encoder, views of a consensus, another model."""

from collections.abc import Sequence
from dataclasses import replace
from typing import Any, final

import numpy as np
from numpy.typing import NDArray

from labelspace.classify import BiEncoderClassifier, Classifier
from labelspace.classify.anchors import anchor_matrix, cosines, encode_labels
from labelspace.classify.decision import Decision
from labelspace.classify.joint import JointClassifier
from labelspace.classify.long_texts import read_on, reads_windows
from labelspace.config import DecisionConfig
from labelspace.corpus import Documents, Kind
from labelspace.encoders import Encoder
from labelspace.errors import EncoderError
from labelspace.evaluate.intervals import PairedTally
from labelspace.evaluate.metrics import Tally
from labelspace.evaluate.report import Baseline
from labelspace.labels import LabelSpace

BASELINES = {
    "untrained: nearest verbalizer": "verbalizer",
    "untrained: mean of descriptions": "descriptions",
}
"""Name of each baseline -> the anchor that represents a label in it."""

ALONE = "alone: "
"""Prefix of a view of a consensus that answers alone."""

BESIDE = "beside: "
"""Prefix of another model."""

Vectors = NDArray[np.float32]
Columns = NDArray[np.intp]


def compared_with(
    model: Classifier, beside: Classifier | None, *, baselines: bool, none: bool
) -> "list[Beside | Untrained | Alone]":
    """Return what a model is compared with, in the order of the report.

    Args:
        model: the fitted classifier.
        beside: another one with the same labels, or None.
        baselines: whether the untrained encoder, and the views of a consensus, are among them.
        none: whether documents without a label fit none.
    """
    space = model.label_space_
    found: list[Beside | Untrained | Alone] = [] if beside is None else [Beside(beside, space, none=none)]
    if baselines:
        found.append(Untrained(_start(model), space, none=none))
    if baselines and isinstance(model, JointClassifier):
        found.append(Alone(model, none=none))
    return found


def untrained_encoder(encoder: Encoder) -> Encoder:
    """Open the encoder that a trained one started from, with the same pooling, prompts and precision.

    Raises:
        EncoderError: the encoder cannot be opened on this machine.
    """
    return Encoder(
        encoder.name,
        pooling=encoder.pooling,
        text_prompt=encoder.prompts["text"],
        label_prompt=encoder.prompts["label"],
        revision=encoder.revision,
        offline=encoder.offline,
        **encoder.config.to_dict(),
    )


def _start(model: Classifier) -> Classifier:
    """Return the model whose encoder's untrained state is a baseline: the first such view of a consensus."""
    members = model.head_.members if isinstance(model, JointClassifier) else ()
    return next((one for one in members if isinstance(one, BiEncoderClassifier)), model)


@final
class _Compared:
    """The answers of something beside the model's: their own metrics, and the difference."""

    def __init__(self, names: Sequence[str], *, none: bool) -> None:
        self._tally = Tally(names, none=none)
        self._pairs = PairedTally(len(names), none=none)

    def add(self, own: list[int], columns: Columns, others: Columns, confidence: Any) -> None:
        """Count the model's columns and the other's."""
        self._tally.add(own, others, confidence)
        self._pairs.add(own, columns, others)

    def result(self, name: str, left_out: int, note: str = "") -> Baseline:
        """Return the baseline of all documents counted."""
        metrics = replace(self._tally.metrics(), left_out=left_out)
        return Baseline(name, metrics, note, self._pairs.difference())


@final
class Beside:
    """Another model, whose labels may stand in another order."""

    def __init__(self, model: Classifier, space: LabelSpace, *, none: bool) -> None:
        self._model = model
        self._columns = np.array([space.names.index(name) for name in model.label_space_.names])
        self._compared = _Compared(space.names, none=none)

    def add(self, documents: Documents, own: list[int], columns: Columns, _: Vectors | None) -> None:
        """Count some documents."""
        answers = self._model.answers(documents)
        others = np.where(answers.columns < 0, answers.columns, self._columns[answers.columns])
        self._compared.add(own, columns, others, answers.confidence)

    def results(self, left_out: int) -> tuple[Baseline, ...]:
        """Return the other model as a baseline."""
        return (self._compared.result(f"{BESIDE}{type(self._model).__name__}", left_out),)


@final
class Alone:
    """Each view of a consensus by itself."""

    def __init__(self, model: JointClassifier, *, none: bool) -> None:
        self._names, self._head = model.label_space_.names, model.head_
        self._compared = [_Compared(self._names, none=none) for _ in self._head.members]

    def add(self, documents: Documents, own: list[int], columns: Columns, _: Vectors | None) -> None:
        """Count some documents."""
        # Views know the labels by the names that they were trained with.
        before, kept = self._head.space, [self._head.columns[name] for name in self._names]
        for member, compared in zip(self._head.members, self._compared, strict=True):
            scores = member.scores(list(documents.rows), before)[:, kept]
            found = replace(member.decision(), none=None).answers(self._names, scores)
            compared.add(own, columns, found.likeliest, found.confidence)

    def results(self, left_out: int) -> tuple[Baseline, ...]:
        """Return a baseline for each view."""
        return tuple(
            compared.result(f"{ALONE}{_short(member)}", left_out)
            for member, compared in zip(self._head.members, self._compared, strict=True)
        )


def _short(member: Classifier) -> str:
    started = getattr(member, "started_from_", "")
    return started.rsplit("/", 1)[-1] if started else type(member).__name__


@final
class Untrained:
    """Both baselines, from one encoding of each document."""

    def __init__(self, model: Classifier, space: LabelSpace, *, none: bool) -> None:
        self._space = space
        self._encoder, self._reason = None, ""
        if not isinstance(model, BiEncoderClassifier):
            self._reason = "the model has no encoder"
            return
        if model.reads_ is Kind.PAIRS:
            self._reason = "an encoder has no vector of a pair that would lie near a label"
            return
        try:
            self._encoder = untrained_encoder(model.encoder_) if model.trains_encoder else model.encoder_
        except EncoderError as error:
            self._reason = f"the untrained encoder cannot be opened: {error}"
            return
        own = not model.trains_encoder and model.label_space_ is space
        vectors = model.label_vectors_ if own else encode_labels(self._encoder, space)
        # Not the model's temperature: a baseline is the same whatever was trained on its encoder.
        self._decision = Decision(temperature=DecisionConfig.temperature)
        self._anchors = np.concatenate([anchor_matrix(vectors, space, kind) for kind in BASELINES.values()])
        self._windows = reads_windows(model)
        self._compared = {name: _Compared(space.names, none=none) for name in BASELINES}

    def add(self, documents: Documents, own: list[int], columns: Columns, vectors: Vectors | None) -> None:
        """Count some documents; `vectors` are their known vectors, or None."""
        if self._encoder is None:
            return
        if vectors is None:
            vectors = self._encoder.encode(documents.rows)
        encoder, anchors = self._encoder, self._anchors
        scores = cosines(vectors, anchors)
        if self._windows:  # long texts are read as the model reads them
            scores = read_on(encoder, documents.rows, scores, lambda texts: cosines(encoder.encode(texts), anchors))
        for compared, found in zip(self._compared.values(), np.split(scores, len(BASELINES), axis=1), strict=True):
            answers = self._decision.answers(self._space.names, found)
            compared.add(own, columns, answers.likeliest, answers.confidence)

    def results(self, left_out: int) -> tuple[Baseline, ...]:
        """Return both baselines, or the reason why there are none."""
        if self._encoder is None:
            return tuple(Baseline(name, None, self._reason) for name in BASELINES)
        return tuple(
            compared.result(name, left_out, self._note(BASELINES[name])) for name, compared in self._compared.items()
        )

    def _note(self, kind: str) -> str:
        labels = self._space.labels
        bare = sum(not label.descriptions for label in labels)
        if kind != "descriptions" or not bare:
            return ""
        return f"{bare} of {len(labels)} labels have no description; their verbalizer stands for them"
