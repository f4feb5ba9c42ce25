"""The base of classifiers on an encoder: keeping it and its labels' vectors after `fit`, saving."""

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any, Self

from sklearn.utils.validation import check_is_fitted

from labelspace.classify.anchors import encode_label, encode_labels
from labelspace.classify.arguments import TRAINED, name_of_start
from labelspace.classify.base import Change, Classifier
from labelspace.classify.none_of_these import OUTDATED
from labelspace.classify.on_encoder import OnEncoder
from labelspace.classify.saved.state import State
from labelspace.corpus import Kind
from labelspace.encoders import Encoder
from labelspace.errors import warn
from labelspace.labels import Label, LabelSpace


class BiEncoderClassifier(OnEncoder, Classifier):
    """Base of the classifiers on an encoder.

    Fitted attributes are also `encoder_` and `label_vectors_` (encoded label texts).

    Example:
        >>> from labelspace import ZeroShotClassifier
        >>> from labelspace.classify import BiEncoderClassifier
        >>> clf = ZeroShotClassifier(["sports", "politics"], encoder="tests/data/tiny-bert").fit()
        >>> isinstance(clf, BiEncoderClassifier), clf.classes_.tolist()
        (True, ['politics', 'sports'])
    """

    encoder: Any

    started_from_: str

    def state(self) -> State:
        """Return the fitted model as plain values and arrays; `from_state` is the inverse."""
        state = super().state()
        return replace(state, encoder=self.encoder_, started_from=self.started_from_, label_vectors=self.label_vectors_)

    @classmethod
    def from_state(cls, state: State) -> Self:
        """Return the fitted model of a state.

        Raises:
            ConfigError: a parameter is invalid.
            ModelFolderError: the labels are not the learnt ones.
        """
        model = cls._made(state.space, state.fit, state.parameters)
        model.encoder_, model.started_from_ = state.encoder, state.started_from
        model.label_vectors_ = state.label_vectors
        return model

    @contextmanager
    def _in_place_of(self, place: str | Path) -> Iterator[None]:
        """Note that the name of what `fit` started from leads to this model, once it is saved there."""
        check_is_fitted(self)
        before = self.started_from_
        if self.encoder_.trained and _leads_to(before, place):
            self.started_from_ += TRAINED
        try:
            yield
        except BaseException:
            self.started_from_ = before
            raise

    def _finish(self, encoder: Encoder, space: LabelSpace, reads: Kind = Kind.TEXTS) -> Self:
        vectors = encode_labels(encoder, space)  # first, so that Ctrl-C here leaves no mixture of two fits
        self.encoder_, self.started_from_ = encoder, name_of_start(self.encoder, encoder)
        self.label_vectors_, self.reads_ = vectors, reads
        self.none_, self.calibrated_ = None, None
        self._set_labels(space, keep_parameter=True)
        return self

    def _edit(self, space: LabelSpace, change: Change) -> None:
        self.label_vectors_ = change(self.label_vectors_)
        super()._edit(space, change)

    def _encode_new(self, label: Label) -> LabelSpace:
        """Add a label to the space and encode its texts."""
        space = self.label_space_.add(label)
        encoded = encode_label(self.encoder_, label, space.verbalizers[space.index(label.name)])
        self.label_vectors_ = {**self.label_vectors_, label.name: encoded}
        if self.none_ is not None:
            self.none_ = None
            warn(f"{OUTDATED}.")
        self._forget_measured()
        self._set_labels(space)
        return space


def _leads_to(name: str, place: str | Path) -> bool:
    """Return whether an encoder's name is this folder, or this repository of the hub."""
    try:
        return name == str(place) or Path(name).expanduser().resolve() == Path(place).expanduser().resolve()
    except (OSError, RuntimeError):  # a name that no path can have
        return False
