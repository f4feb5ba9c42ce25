"""Classification by the cosine between a document and one anchor per label; only the encoder is trained."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from typing import Any, Protocol, Self, final, runtime_checkable

import numpy as np
from numpy.typing import NDArray
from sklearn.utils.validation import check_is_fitted

from labelspace.checks import check_choice
from labelspace.classify.anchors import (
    OUTSIDE,
    LabelVectors,
    anchor_matrix,
    cosines,
    encode_labels,
    less_what_it_is_not,
)
from labelspace.classify.arguments import as_label, as_label_space
from labelspace.classify.bi_encoder import BiEncoderClassifier
from labelspace.classify.cards import anchored_card
from labelspace.classify.cuts import Cuts
from labelspace.classify.decision import Decision
from labelspace.classify.editing import LabelChange, advice_after_adding
from labelspace.classify.encoding import Matrix, own_vectors, windowed
from labelspace.classify.head import Judged
from labelspace.classify.long_texts import read_on
from labelspace.classify.several import Material, check_several, digest_of, set_cuts
from labelspace.classify.state import State
from labelspace.config import ANCHORS, LONG_TEXTS
from labelspace.corpus import Documents
from labelspace.encoders import Encoder
from labelspace.errors import ConfigError, ModelFolderError
from labelspace.labels import Label, LabelSpace
from labelspace.progress import Progress, silent

WORDS = {
    "verbalizer": "verbalizers",
    "descriptions": "means of the descriptions",
    "both": "verbalizers and descriptions",
}


@final
@dataclass(frozen=True)
class ByAnchors:
    """The head that compares a document's vector with one anchor per label."""

    encoder: Encoder
    """Encoder of documents and labels."""

    space: LabelSpace
    """The labels of `known`."""

    known: dict[str, LabelVectors]
    """Encoded label texts by label name."""

    anchor: str
    """What represents a label: `"verbalizer"`, `"descriptions"` or `"both"`."""

    learnt_labels = False
    reads_descriptions = True
    makes_vectors = True

    def __post_init__(self) -> None:
        check_choice("anchor", self.anchor, ANCHORS)

    @property
    def label_word(self) -> str:
        """What the anchors are, in words."""
        return WORDS[self.anchor]

    def judge(self, documents: Any, space: LabelSpace) -> Judged:
        """Return the cosine of every document with every anchor, [text label].

        It is lower where a document is nearer to what the label is not.
        """
        compare = self.comparison(space)
        width = len(space) + bool(space.outside)
        found = windowed(documents, width, lambda window: compare(self.encoder.encode(window)), labels=len(space))
        return _judged(found, space)

    def comparison(self, space: LabelSpace) -> Callable[[Matrix], Matrix]:
        """Return a function from vectors to their cosines with the labels, and in a last column with the outside."""
        known = self.known if space == self.space else encode_labels(self.encoder, space)
        anchors, labels = anchor_matrix(known, space, self.anchor), [known[name] for name in space.names]
        outside = known[OUTSIDE].descriptions if space.outside else None

        def compare(vectors: Matrix) -> Matrix:
            scores = less_what_it_is_not(cosines(vectors, anchors), vectors, labels)
            if outside is None:
                return scores
            return np.column_stack([scores, cosines(vectors, outside).max(axis=1)])

        return compare

    def judge_vectors(self, vectors: Matrix, space: LabelSpace) -> Judged:
        """Return what `judge` returns, of documents that were encoded before."""
        return _judged(self.comparison(space)(vectors), space)

    def vectors(self, documents: Documents, report: Progress = silent) -> Matrix:
        """Return the encoder's vectors, [text dim]; `report` is called with the number of documents done."""
        return own_vectors(self.encoder, documents, report)

    def label_vectors(self, space: LabelSpace) -> Matrix:
        """Return the anchors, [label dim]; those of another space are encoded on the fly."""
        vectors = self.known if space == self.space else encode_labels(self.encoder, space)
        return anchor_matrix(vectors, space, self.anchor)

    def tensors(self) -> dict[str, NDArray[np.generic]]:
        """Return the anchors."""
        return {"anchors": self.label_vectors(self.space)}


def _judged(found: Matrix, space: LabelSpace) -> Judged:
    if not space.outside:
        return Judged(found, None)
    return Judged(np.ascontiguousarray(found[:, :-1]), None, outside=found[:, -1])


@runtime_checkable
class Anchored(Protocol):
    """A classifier with a parameter `anchor`, which says what represents a label."""

    anchor: Any


class AnchoredClassifier(BiEncoderClassifier):
    """Base of the two classifiers by anchors, which differ in what `fit` does with the encoder."""

    anchor: Any
    temperature: float
    threshold: float | None
    several: bool
    labels_per_text: float | None

    cuts_: Cuts | None = None
    not_parameters = (*BiEncoderClassifier.not_parameters, "several")
    long_texts: str

    card_of = staticmethod(anchored_card)

    @property
    def head_(self) -> ByAnchors:
        """The head, made on each access because `anchor` may change after `fit`."""
        return ByAnchors(self.encoder_, self.label_space_, self.label_vectors_, self.anchor)

    def decision(self) -> Decision:
        """Return the decision rule: temperature, threshold on the cosine, limit of closeness, cuts of several labels.

        Raises:
            ConfigError: a parameter is invalid, or the cuts were set for another anchor.
        """
        rule, cuts = self._rule(), self.cuts_
        if cuts is None:
            return rule
        check_several(self.label_space_, self.several, self.labels_per_text, self.threshold)
        if cuts.made_for != digest_of(self.label_space_, self.anchor):
            raise ConfigError(
                f"the cuts of the labels were set with another anchor than {self.anchor!r}; set it back, or call fit "
                "again."
            )
        return replace(rule, cuts=cuts)

    def add_label(self, label: Label | Mapping[str, Any]) -> LabelChange:
        """Add a label to a fitted model without training; the other labels' scores stay as they are.

        Args:
            label: a Label, or a mapping with the keys of a label file.

        Returns:
            Whether retraining is advised, and why.
        """
        check_is_fitted(self)
        if self.label_space_.several:
            raise ConfigError(
                "a label cannot be added to a model of several labels, because its cut comes from documents; add it to "
                "the labels, and call fit again."
            )
        label = as_label(label)
        space = self._encode_new(label)
        return advice_after_adding(label.name, space, self.label_vectors_, self.anchor)

    @classmethod
    def from_state(cls, state: State) -> Self:
        """Return the fitted model of a state.

        Raises:
            ConfigError: a parameter is invalid.
        """
        model = super().from_state(state)
        model._check_parameters()
        found = state.facts.get("cuts")
        if found is not None:
            model.cuts_ = Cuts.from_dict(found)
        wanted = digest_of(state.space, model.anchor) if state.space.several else None
        if wanted != (model.cuts_ and model.cuts_.made_for):
            raise ModelFolderError(
                f"{state.place}: the labels' texts changed since the cuts of several labels were set; call fit again, "
                "or put label_space.yaml back as it was."
            )
        return model

    def state(self) -> State:
        """Return the fitted model as plain values and arrays; `from_state` is the inverse."""
        state = super().state()
        parameters = {key: value for key, value in state.parameters.items() if key != "labels_per_text"}
        if self.cuts_ is None:
            return replace(state, parameters=parameters)  # as models are written that know of one label a text
        parameters["labels_per_text"] = state.parameters["labels_per_text"]
        return replace(state, parameters=parameters, facts={**state.facts, "cuts": self.cuts_.to_dict()})

    def _edit(self, space: LabelSpace, change: Any) -> None:
        super()._edit(space, change)
        if self.cuts_ is not None:
            self.cuts_ = self.cuts_.edited(change, digest_of(space, self.anchor))

    def _rule(self) -> Decision:
        """Return the decision rule for one label a text."""
        return Decision(temperature=self.temperature, threshold=self.threshold, none=self.none_)

    def _check_parameters(self) -> LabelSpace:
        check_choice("anchor", self.anchor, ANCHORS)
        check_choice("long_texts", self.long_texts, LONG_TEXTS)
        self._rule()
        return check_several(as_label_space(self.labels), self.several, self.labels_per_text, self.threshold)

    def _finish_with_cuts(self, encoder: Encoder, space: LabelSpace, given: Material | None) -> Self:
        """Set the cuts of several labels, then keep the encoder."""
        cuts = None
        if given is not None:
            head = ByAnchors(encoder, space, encode_labels(encoder, space), self.anchor)
            cuts = set_cuts(given, space, self.labels_per_text, lambda texts: self._read_by(head, texts))
            cuts = replace(cuts, made_for=digest_of(space, self.anchor))
        self._finish(encoder, space)
        vars(self).pop("cuts_", None)
        if cuts is not None:
            self.cuts_ = cuts
        return self

    def _read_by(self, head: ByAnchors, texts: Any) -> Matrix:
        """Return the scores of texts by a head, long ones as the model reads them."""
        scores = head.judge(texts, head.space).scores
        if self.long_texts == "cut":
            return scores
        return read_on(head.encoder, texts, scores, lambda windows: head.judge(windows, head.space).scores)
