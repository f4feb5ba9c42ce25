"""The vectors that a map shows for each kind of model: those that it predicts with.

    by anchors              vectors of the encoder; verbalizers and descriptions
    LaCon, matching         outputs of the head; label embeddings, and descriptions through the same head
    LaCon, cross-entropy    outputs of the head; labels have no vectors
    uncertainty             means of the Gaussians; labels have no vectors

A label without a vector is shown as the mean of its documents.
"""

from collections.abc import Iterable
from dataclasses import dataclass
from typing import NamedTuple, final

import numpy as np
from numpy.typing import NDArray

from labelspace.classify import BiEncoderClassifier
from labelspace.classify.anchors import anchor_matrix, encode_labels
from labelspace.classify.head import ComparesLabels
from labelspace.corpus import Documents, Kind
from labelspace.encoders import Encoder
from labelspace.errors import ConfigError, InputError
from labelspace.evaluate.figures.consensus import consensus_of

Matrix = NDArray[np.float32]
Columns = NDArray[np.int64]


class Group(NamedTuple):
    """Vectors that belong to labels."""

    vectors: Matrix
    """[point dim]"""

    columns: Columns
    """[point] column of each vector's label."""


@final
@dataclass(frozen=True, kw_only=True)
class PanelVectors:
    """The vectors drawn in one panel."""

    documents: Matrix
    """[text dim]"""

    stars: Group
    """One for each label with a position."""

    triangles: Group
    """One for each description that the model uses."""


def undrawable(model: BiEncoderClassifier, figure: str) -> str:
    """Return in one line why a figure cannot be drawn of a model; empty if it can.

    Args:
        model: a fitted classifier.
        figure: `"confusion"`, `"map"`, `"sphere"`, `"similarity"` or `"consensus"`; any other gives the empty text.
    """
    name, instead = type(model).__name__, "draw the confusion matrix instead"
    pairs = model.reads_ is Kind.PAIRS
    if pairs:  # `confusion_figure` refuses pairs
        instead = "labelspace evaluate --confusion draws how it mistakes its pairs"
    if figure == "consensus":
        if consensus_of(getattr(model, "fit_result_", None)) is not None:
            return ""
        return f"the {figure} shows what views agreed on, and this {name} learnt from no consensus; fit one first."
    if figure == "confusion" and model.label_space_.several:
        return f"the {figure} matrix is of one label a text, and this {name} may give a text several."
    if figure == "similarity":
        if isinstance(model.head_, ComparesLabels):
            return ""
        return f"the {figure} compares vectors of labels, and this {name} has none; {instead}."
    if pairs and figure in ("confusion", "map", "sphere"):
        return f"the {figure} is one of texts, and this {name} was fitted on pairs of them; {instead}."
    if figure in ("map", "sphere") and not model.head_.makes_vectors:
        return f"the {figure} needs a vector of each text, and the head of this {name} makes none; {instead}."
    return ""


def check_drawable(model: BiEncoderClassifier, figure: str) -> None:
    """Raise ConfigError if a figure cannot be drawn of this model."""
    why = undrawable(model, figure)
    if why:
        raise ConfigError(why)


def check_points(panels: Iterable[PanelVectors], least: int, what: str) -> None:
    """Raise InputError if a panel has too few documents and stars for a layout."""
    for shown in panels:
        documents, labels = len(shown.documents), len(shown.stars.columns)
        if documents + labels < least:
            words = {3: "three", 4: "four"}[least]
            raise InputError(
                f"{what} needs {words} points, documents and labels together. Got {documents} and {labels}; give more "
                "documents."
            )


def shown_before(model: BiEncoderClassifier, encoder: Encoder, documents: list[str], own: Columns) -> PanelVectors:
    """Return the vectors of the encoder that training started from.

    Args:
        model: a fitted classifier.
        encoder: its encoder as it was before training.
        documents: texts.
        own: [text] column of each document's label, -1 for none.
    """
    space, head, vectors = model.label_space_, model.head_, encoder.encode(documents)
    if not isinstance(head, ComparesLabels):
        return _with_means(vectors, own)
    if not head.learnt_labels:
        return _with_texts(model, encoder, vectors)
    if not model.head_.reads_descriptions:
        return PanelVectors(documents=vectors, stars=_nothing(vectors), triangles=_nothing(vectors))
    labels = encode_labels(encoder, space)
    triangles = np.concatenate([labels[name].descriptions for name in space.names])
    stars = anchor_matrix(labels, space, "descriptions")
    return PanelVectors(documents=vectors, stars=_of_labels(stars), triangles=_of_descriptions(model, triangles))


def shown_after(model: BiEncoderClassifier, documents: list[str], own: Columns) -> PanelVectors:
    """Return the vectors that the model predicts with; arguments as in `shown_before`."""
    head, texts = model.head_, Documents(documents, Kind.TEXTS)
    if not isinstance(head, ComparesLabels):
        return _with_means(model.head_.vectors(texts), own)
    if not head.learnt_labels:
        return _with_texts(model, None, model.encoder_.encode(documents))
    vectors, triangles = model.head_.vectors(texts), None
    described = [text for label in model.label_space_.labels for text in label.descriptions]
    if described and model.head_.reads_descriptions:
        triangles = _of_descriptions(model, model.head_.vectors(Documents(described, Kind.TEXTS)))
    stars = _of_labels(head.label_vectors(model.label_space_))
    return PanelVectors(documents=vectors, stars=stars, triangles=triangles or _nothing(vectors))


def star_word(model: BiEncoderClassifier) -> str:
    """Return the meaning of a star, for the legend."""
    if not isinstance(model.head_, ComparesLabels):
        return "mean of its documents"
    return "label" if model.head_.learnt_labels else "verbalizer"


def _with_texts(model: BiEncoderClassifier, encoder: Encoder | None, documents: Matrix) -> PanelVectors:
    labels = model.label_vectors_ if encoder is None else encode_labels(encoder, model.label_space_)
    names = model.label_space_.names
    return PanelVectors(
        documents=documents,
        stars=_of_labels(np.stack([labels[name].verbalizer for name in names])),
        triangles=_of_descriptions(model, np.concatenate([labels[name].descriptions for name in names])),
    )


def _with_means(documents: Matrix, own: Columns) -> PanelVectors:
    columns = np.unique(own[own >= 0])
    means = [documents[own == column].mean(axis=0) for column in columns]
    stars = Group(np.stack(means), columns) if means else _nothing(documents)
    return PanelVectors(documents=documents, stars=stars, triangles=_nothing(documents))


def _of_labels(vectors: Matrix) -> Group:
    return Group(vectors, np.arange(len(vectors)))


def _of_descriptions(model: BiEncoderClassifier, vectors: Matrix) -> Group:
    counts = [len(label.descriptions) for label in model.label_space_.labels]
    return Group(vectors, np.repeat(np.arange(len(counts)), counts))


def _nothing(like: Matrix) -> Group:
    return Group(like[:0], np.zeros(0, dtype=np.int64))
