"""Classifiers by anchors as far as they answer, and a saved one that only answers. They need no scikit-learn."""

from dataclasses import replace
from typing import Any, Self, final

import numpy as np

from labelspace.checks import check_choice
from labelspace.classify.by_anchors import ByAnchors
from labelspace.classify.cuts import Cuts
from labelspace.classify.decision import Decision
from labelspace.classify.on_encoder import OnEncoder
from labelspace.classify.saved.state import State
from labelspace.classify.several import check_several, digest_of
from labelspace.config import ANCHORS, LONG_TEXTS, DecisionConfig
from labelspace.corpus import Kind
from labelspace.errors import ConfigError, ModelFolderError


class AnswersByAnchors(OnEncoder):
    """A fitted classifier that compares documents with one anchor per label."""

    anchor: Any
    temperature: float
    threshold: float | None
    several: bool
    labels_per_text: float | None
    long_texts: str

    cuts_: Cuts | None = None

    @property
    def head_(self) -> ByAnchors:
        """The head, made on each access because `anchor` may change after `fit`."""
        return ByAnchors(self.encoder_, self.label_space_, self.label_vectors_, self.anchor)

    def decision(self) -> Decision:
        """Return the decision rule: temperature, threshold on the cosine, limit of closeness, cuts of several labels.

        Raises:
            ConfigError: a parameter is invalid, or the cuts were set for another anchor.
        """
        rule = Decision(temperature=self.temperature_, threshold=self.threshold, none=self.none_)
        cuts = self.cuts_
        if cuts is None:
            return rule
        check_several(self.label_space_, self.several, self.labels_per_text, self.threshold)
        if cuts.made_for != digest_of(self.label_space_, self.anchor):
            raise ConfigError(
                f"the cuts of the labels were set with another anchor than {self.anchor!r}; set it back, or call fit "
                "again."
            )
        return replace(rule, cuts=cuts)

    def _check_rule(self) -> None:
        """Check the parameters that decide the answers, beside those of several labels."""
        check_choice("anchor", self.anchor, ANCHORS)
        check_choice("long_texts", self.long_texts, LONG_TEXTS)
        Decision(temperature=self.temperature, threshold=self.threshold)


@final
class OpenedAnchors(AnswersByAnchors):
    """A `ZeroShotClassifier` or `DescriptionClassifier` as the command line opens it, without `fit`."""

    tensors_file = None
    trains_encoder = False  # nothing trains it further, and what it was trained from is not asked

    def __init__(self, state: State) -> None:
        known = state.parameters
        self.encoder_, self.label_space_, self.label_vectors_ = state.encoder, state.space, state.label_vectors
        self.classes_ = np.array(sorted(state.space.names), dtype=object)
        self.reads_ = Kind.TEXTS
        self.anchor, self.temperature, self.threshold = known["anchor"], known["temperature"], known["threshold"]
        self.several = False  # the label space says it
        self.labels_per_text = known.get("labels_per_text")
        self.long_texts = known.get("long_texts", DecisionConfig.long_texts)
        self._class_name = state.facts["class"]

    @property
    def class_name(self) -> str:
        """Name of the class that made the model."""
        return self._class_name

    @classmethod
    def from_state(cls, state: State) -> Self:
        """Return the model of a state; see `ZeroShotClassifier.from_state`."""
        model = cls(state)
        model._check_rule()
        check_several(state.space, model.several, model.labels_per_text, model.threshold)
        model.cuts_ = saved_cuts(state, model.anchor)
        return model


def saved_cuts(state: State, anchor: str) -> Cuts | None:
    """Return the cuts of several labels in a saved model; None if its texts have one label each.

    Args:
        state: the model's state.
        anchor: what represents a label.

    Raises:
        ModelFolderError: the label space is not the one that the cuts were set for.
    """
    found = state.facts.get("cuts")
    cuts = None if found is None else Cuts.from_dict(found)
    wanted = digest_of(state.space, anchor) if state.space.several else None
    if wanted != (cuts and cuts.made_for):
        raise ModelFolderError(
            f"{state.place}: label_space.yaml changed since the cuts of several labels were set; call fit again, or "
            "put it back as it was."
        )
    return cuts
