"""The base of the two classifiers by anchors, which train nothing but the encoder."""

from collections.abc import Mapping
from dataclasses import replace
from typing import Any, Self

from sklearn.utils.validation import check_is_fitted

from labelspace.classify.anchors import encode_labels
from labelspace.classify.arguments import as_label, as_label_space
from labelspace.classify.bi_encoder import BiEncoderClassifier
from labelspace.classify.by_anchors import ByAnchors
from labelspace.classify.editing import LabelChange, advice_after_adding
from labelspace.classify.encoding import Matrix
from labelspace.classify.long_texts import read_on, tell_other_reading
from labelspace.classify.opened_anchors import AnswersByAnchors, saved_cuts
from labelspace.classify.saved.cards import anchored_card
from labelspace.classify.saved.state import State
from labelspace.classify.several import Material, check_several, digest_of, set_cuts
from labelspace.encoders import Encoder
from labelspace.errors import ConfigError, warn
from labelspace.labels import Label, LabelSpace


class AnchoredClassifier(AnswersByAnchors, BiEncoderClassifier):
    """Base of the two classifiers by anchors, which differ in what `fit` does with the encoder."""

    not_parameters = (*BiEncoderClassifier.not_parameters, "several")

    card_of = staticmethod(anchored_card)

    def set_params(self, **params: Any) -> Self:
        """Set parameters, as in scikit-learn; another anchor takes the limit for "none of these" away.

        Warns:
            LabelSpaceWarning: the limit is taken away, or was set with another `long_texts`.
        """
        before, read = self.anchor, self.long_texts
        super().set_params(**params)
        if self.none_ is not None and self.anchor != before:
            self.none_ = None
            warn(
                f"the limit for 'none of these' was set with the anchor {before!r}, and is not used with "
                f"{self.anchor!r}; set it again with documents."
            )
        tell_other_reading(self, read)
        return self

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
        cuts = saved_cuts(state, model.anchor)
        if cuts is not None:
            model.cuts_ = cuts
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

    def _check_parameters(self) -> LabelSpace:
        self._check_rule()
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
