"""`LaConClassifier`: learns from few or many labelled texts, starting from the descriptions."""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any, Self, final

import numpy as np
import torch
from sklearn.utils.validation import check_is_fitted

from labelspace.checks import as_seed, check_callbacks, check_number, did_you_mean
from labelspace.classify.arguments import as_label, one_label_space, own_encoder, warn_of_alike, warn_of_unread
from labelspace.classify.base import Change
from labelspace.classify.bi_encoder import BiEncoderClassifier
from labelspace.classify.by_label_embeddings import ANCHOR, ByEmbeddings, taught, untaught
from labelspace.classify.by_logits import ByLogits
from labelspace.classify.decision import Decision
from labelspace.classify.editing import LabelChange, advice_after_adding
from labelspace.classify.labelled_input import Given, Supervision, look_at
from labelspace.classify.saved.cards import lacon_card
from labelspace.classify.saved.modules import fill_module
from labelspace.classify.saved.state import State
from labelspace.classify.settings import merged
from labelspace.config import LaConConfig, SearchConfig
from labelspace.corpus import Documents, Kind, Pool, sample_pool
from labelspace.encoders import DEFAULT_ENCODER
from labelspace.errors import ConfigError, InputError, ModelFolderError, warn
from labelspace.labels import Label, LabelSpace
from labelspace.training import Callback
from labelspace.training.engine import clear_finished
from labelspace.training.lacon import (
    HeadShape,
    LaConFit,
    LaConHead,
    short_of_rows,
    train_before_labels,
    train_on_labels,
)


@final
class LaConClassifier(BiEncoderClassifier):
    """Trains the encoder on labelled texts, contrasting texts with labels and labels with texts.

    Each label has a trained vector, and a text gets the label with the nearest one. If labels have descriptions, or
    names that are words, the vectors start there, and the descriptions stay in the loss with a weight that falls with
    the number of labelled rows. Without labelled rows, training is that of `DescriptionClassifier`, for
    `description_steps` updates.

    Args:
        labels: a LabelSpace, a label file, a dictionary like one, or a list of names; None: the names in y.
        encoder: a name from `labelspace encoders`, any sentence-transformers name or folder, an Encoder (copied,
            never changed), or a dictionary of its arguments.
        temperature: divides the cosines, in training and in `predict_proba`.
        description_steps: updates on the descriptions alone, before the labelled rows or instead of them; 0: none,
            for an encoder already trained on them.
        learning_rate: peak learning rate of the encoder on labelled rows; `"auto"`: 1e-4, lower in proportion for an
            encoder wider than 384.
        epochs: passes over the training texts; use more with only a dozen labelled texts.
        validation: share of the labelled rows held out for early stopping, by macro-F1 and then by loss; `"auto"`: 0.05
            from 2,000 rows on, with 20 per label, else none.
        class_weight: weights by label name, in proportion to which rows are drawn; `"balanced"`: all labels equally
            often. No loss is multiplied.
        threshold: lowest cosine, -1 to 1, at which `predict` returns a label; None: always.
        min_probability: lowest probability, 0 to 1, at which `predict` returns a label; only with a cross-entropy
            objective, which gives no cosines.
        checkpoint: folder for checkpoints, saved about 20 times per run. After a kill, the same fit on the same data
            resumes from it with bit-identical results; a finished fit empties it. None: no checkpoints.
        callbacks: get the losses and learning rates of every step, see `training.callbacks`.
        seed: random seed; the same seed gives bit-identical results on the same machine.
        verbose: True shows progress.
        config: rarely set options, a mapping of fields of `config.LaConConfig`.

    Attributes:
        fit_result_: the loss curve, the number of held-out rows, the weight of the descriptions and its reason.
        head_: turns documents into scores; `head_.module` holds its weights, None if no row was labelled.
        encoder_, label_space_, classes_: the trained encoder and its labels.

    Example:
        >>> from labelspace import LaConClassifier
        >>> texts = ["the team lost", "a match was won", "the bank closed", "prices rise"]
        >>> clf = LaConClassifier(encoder="tests/data/tiny-bert", epochs=2)
        >>> clf.fit(texts, ["sports", "sports", "money", "money"]).predict(["the team won"]).shape
        (1,)
        >>> clf.fit_result_.labelled, clf.fit_result_.prior.reason
        (4, 'no meaning')

    Reference:
        Zhang et al., "Label anchored contrastive learning for language understanding" (LaCon).
    """

    config_class = LaConConfig
    trains_encoder = True
    takes_pairs = True
    tensors_file = "lacon.safetensors"
    card_of = staticmethod(lacon_card)

    fit_result_: LaConFit
    labels_changed_ = False
    head_: ByEmbeddings | ByLogits

    def __init__(
        self,
        labels: Any = None,
        encoder: Any = DEFAULT_ENCODER,
        *,
        temperature: float = LaConConfig.temperature,
        description_steps: int = LaConConfig.description_steps,
        learning_rate: float | str = LaConConfig.learning_rate,
        epochs: int = LaConConfig.epochs,
        validation: float | str = LaConConfig.validation,
        class_weight: str | Mapping[str, float] | None = LaConConfig.class_weight,
        threshold: float | None = None,
        min_probability: float | None = None,
        checkpoint: str | Path | None = None,
        callbacks: Sequence[Callback] = (),
        seed: int = 0,
        verbose: bool = False,
        config: Mapping[str, Any] | None = None,
    ) -> None:
        self.labels = labels
        self.encoder = encoder
        self.temperature = temperature
        self.description_steps = description_steps
        self.learning_rate = learning_rate
        self.epochs = epochs
        self.validation = validation
        self.class_weight = class_weight
        self.threshold = threshold
        self.min_probability = min_probability
        self.checkpoint = checkpoint
        self.callbacks = callbacks
        self.seed = seed
        self.verbose = verbose
        self.config = config

    def training_config(self) -> LaConConfig:
        """Return the arguments and `config` as one checked configuration.

        Raises:
            ConfigError: a value is invalid.
        """
        return merged(self, LaConConfig)

    def fit(self, X: Any = None, y: Any = None) -> Self:
        """Learn from the labelled rows, or from the descriptions if no row has a label.

        Args:
            X: documents, or pairs of texts as 2-tuples or two columns. Without labelled rows, the input of
                `DescriptionClassifier.fit`.
            y: label names; None, NaN, -1 or "" for a row without a label. Rows without a label only help to choose the
                learning rate of the description training.

        Returns:
            The classifier.

        Warns:
            LabelSpaceWarning: all labelled rows have the same label, so that the descriptions alone are learnt from; or
                some labels have few or no rows, and others many; or a document has rows with different labels.

        Raises:
            ConfigError: a parameter is invalid.
            LabelFileError: the labels are invalid.
            EncoderError: the encoder cannot be opened.
            InputError: documents and labels do not fit, or there is nothing to learn from.
            TrainingError: the loss is not finite.
            KeyboardInterrupt: Ctrl-C before anything was learnt. Later it ends the fit, and a warning says what stays.
        """
        config, seed = self.training_config(), as_seed(self.seed)
        check_callbacks(self.callbacks)
        Decision(temperature=self.temperature, threshold=self.threshold, min_probability=self.min_probability)
        space = None if self.labels is None else one_label_space(self.labels, type(self).__name__)
        if space is not None:
            warn_of_unread(space, type(self).__name__)
            _check_class_weight(config, space)
        given = look_at(space, X, y)
        rows = given.supervision
        if rows is not None and rows.only is not None:
            if not any(rows.space.descriptions) or not config.description_steps:
                raise rows.nothing_to_tell_apart()
            warn(
                f"all {len(rows.targets)} labelled rows have the label {rows.only!r}, which tells no two labels apart; "
                "the model learns from the descriptions alone. Label rows of another label too."
            )
            rows = None
        self._check_lowest(by_logits=rows is not None and config.objective != "lacon")
        if rows is None:
            return self._fit_on_descriptions(given, space, config, seed)
        _check_class_weight(config, rows.space)  # if y names the labels, they are known only now
        _warn_of_uneven_rows(rows)
        encoder = own_encoder(self.encoder)
        # Sorted by name, so that the order of the label file has no effect.
        ordered = rows.space.reorder(sorted(rows.space.names))
        places = np.array([ordered.index(name) for name in rows.space.names], dtype=np.intp)
        module, result = train_on_labels(
            encoder,
            ordered,
            rows.documents.rows,
            places[rows.targets],
            config,
            described=rows.space,
            meaningful=rows.meaningful or config.description_weight not in ("auto", 0),
            seed=seed,
            unlabelled=rows.unlabelled,
            pool=self._pool(given.documents),
            checkpoint=self.checkpoint,
            callbacks=self.callbacks,
            verbose=self.verbose,
        )
        self._finish(encoder, rows.space, rows.documents.kind)
        self.fit_result_, self.labels_changed_ = result, False
        if module.shape.classifies:
            self.head_ = ByLogits(encoder, module, {name: column for column, name in enumerate(ordered.names)})
        else:
            self.head_ = taught(encoder, module, ordered.names, reads_descriptions=result.init != "random")
        clear_finished(self.checkpoint, result.curve)
        return self

    def decision(self) -> Decision:
        """Return the decision rule: on cosines / temperature, or on plain logits."""
        check_number("temperature", self.temperature, above=0)
        by_logits = isinstance(self.head_, ByLogits)
        self._check_lowest(by_logits=by_logits)
        if by_logits:
            return Decision(min_probability=self.min_probability, none=self.none_)
        return Decision(temperature=self.temperature_, threshold=self.threshold, none=self.none_)

    def takes_temperature(self) -> bool:
        """Return whether documents may set the temperature: not that of logits."""
        return not isinstance(self.head_, ByLogits)

    def add_label(self, label: Label | Mapping[str, Any]) -> LabelChange:
        """Add a label to a fitted model without training; the other labels' scores stay as they are.

        Args:
            label: a Label, or a mapping with the keys of a label file.

        Returns:
            Whether retraining is advised, and why.

        Raises:
            InputError: the model was trained by cross-entropy and has no logit for it.
        """
        check_is_fitted(self)
        label = as_label(label)
        if isinstance(self.head_, ByLogits):
            raise InputError(
                f"a model trained by cross-entropy has no logit for {label.name!r}; call fit with the new label."
            )
        head = self.head_.added(self.label_space_.add(label), (label.name,))
        space = self._encode_new(label)
        self.head_ = head
        if not head.learnt_labels:
            return advice_after_adding(label.name, space, self.label_vectors_, ANCHOR)
        own = "descriptions are" if label.descriptions else "verbalizer is"
        return LabelChange(
            retrain=True,
            reason=f"{label.name!r} stands where its {own}, while the others have seen labelled texts; "
            "label some of its own and call fit again.",
        )

    def state(self) -> State:
        """Return the fitted model as plain values and arrays; `from_state` is the inverse."""
        state, head = super().state(), self.head_
        facts = {
            "head": head.module.shape.to_dict() if head.module is not None else None,
            "embedded": list(head.embeddings) if isinstance(head, ByEmbeddings) else [],
            "logit_columns": head.columns if isinstance(head, ByLogits) else {},
            "pairs": self.reads_ is Kind.PAIRS,
            "labels_from_y": self.labels is None,
            "labels_changed": self.labels_changed_,
        }
        return replace(state, facts={"lacon": facts}, tensors=head.tensors())

    @classmethod
    def from_state(cls, state: State) -> Self:
        """Return the fitted model of a state.

        Labels added to the label file by hand are placed by their descriptions, as are all labels of a model without
        labelled rows.

        Raises:
            ModelFolderError: the label file names a label without a logit, or a new label in place of a learnt one.
        """
        model, facts = super().from_state(state), state.facts["lacon"]
        if facts["labels_from_y"]:
            model.labels = None  # a second fit takes them from its own y
        model.reads_ = Kind.PAIRS if facts["pairs"] else Kind.TEXTS
        model.head_ = _head_of(state, facts)
        model.labels_changed_ = facts.get("labels_changed", False)
        return model

    def _check_lowest(self, *, by_logits: bool) -> None:
        """Raise ConfigError for a threshold with logits, or a `min_probability` with cosines."""
        if by_logits and self.threshold is not None:
            raise ConfigError("threshold is a cosine, and training by cross-entropy has none; set min_probability.")
        if not by_logits and self.min_probability is not None:
            raise ConfigError(
                "min_probability needs rows of two labels and training by cross-entropy; here labels are compared by "
                "cosine, set threshold."
            )

    def _edit(self, space: LabelSpace, change: Change) -> None:
        super()._edit(space, change)
        self.head_ = self.head_.edited(change)
        if isinstance(self.class_weight, Mapping):
            self.class_weight = change({name.strip(): weight for name, weight in self.class_weight.items()})

    def _forget_measured(self) -> None:
        super()._forget_measured()
        self.labels_changed_ = True

    def _fit_on_descriptions(self, given: Given, space: LabelSpace | None, config: LaConConfig, seed: int) -> Self:
        if space is None or not any(space.descriptions):
            raise InputError(
                "no row has a label and no label has a description, so there is nothing to learn from; give one or "
                "the other."
            )
        if not config.description_steps:
            raise ConfigError("description_steps must be 1 or more where no row has a label. Got 0 instead.")
        documents, pool = given.documents, self._pool(given.documents)
        pairs = isinstance(documents, Documents) and documents.kind is Kind.PAIRS
        encoder = own_encoder(self.encoder)
        warn_of_alike(encoder, space)
        result = train_before_labels(
            encoder,
            space,
            config,
            pool=pool,
            seed=seed,
            checkpoint=self.checkpoint,
            callbacks=self.callbacks,
            verbose=self.verbose,
        )
        self._finish(encoder, space, Kind.PAIRS if pairs else Kind.TEXTS)
        self.labels_changed_ = False
        self.fit_result_ = LaConFit(
            curve=None,
            prior=None,
            init=None,
            heads=None,
            labelled=0,
            unlabelled=len(documents) if pairs else pool.seen if pool else 0,
            held_out=0,
            device=str(encoder.device),
            seed=seed,
            descriptions=result,
        )
        self.head_ = untaught(encoder, self.label_vectors_)
        clear_finished(self.checkpoint, result.curve)
        return self

    def _pool(self, documents: Any) -> Pool | None:
        """Return the documents that choose the learning rate, as in `DescriptionClassifier`; None for pairs."""
        if documents is None or isinstance(documents, Pool):
            return documents
        if isinstance(documents, Documents):
            if documents.kind is Kind.PAIRS:
                return None
            documents = documents.rows
        return sample_pool(documents, size=SearchConfig.documents, seed=self.seed, what="X")


def _warn_of_uneven_rows(rows: Supervision) -> None:
    """Warn of labels with fewer than 8 rows where another has eight times as many, which may draw their texts away."""
    counts = np.bincount(rows.targets, minlength=len(rows.space))
    few = [rows.space.names[column] for column in np.flatnonzero(short_of_rows(counts))]
    if few:
        warn(
            f"{few[0]!r}{f' and {len(few) - 1} more labels have' if len(few) > 1 else ' has'} few or no labelled rows, "
            f"and others up to {counts.max():,}, which may draw texts away; label some rows of each."
        )


def _head_of(state: State, facts: dict[str, Any]) -> ByEmbeddings | ByLogits:
    space, place = state.space, state.place
    if facts["head"] is None:
        # Labels are placed by their texts, which may have been edited by hand.
        return untaught(state.encoder, state.label_vectors)
    module = LaConHead(HeadShape.from_dict(facts["head"]), generator=torch.Generator())
    fill_module(module, state.tensors)
    module = module.eval().to(state.encoder.device)
    columns = {name: int(column) for name, column in facts["logit_columns"].items()}
    embeddings: Any = {name: state.tensors[f"embeddings.{number}"] for number, name in enumerate(facts["embedded"])}
    known = columns or embeddings
    lost = [name for name in known if name not in space]
    new = tuple(name for name in space.names if name not in known)
    if lost and new:
        raise ModelFolderError(
            f"{place} has learnt the label {lost[0]!r}, and its label file has {new[0]!r} in place of it; put the old "
            "name back, and rename it with rename_label after loading."
        )
    if not module.shape.classifies:
        reads = (state.fit or {})["init"] != "random"
        return ByEmbeddings(state.encoder, module, embeddings, reads).added(space, new)
    if new:
        raise ModelFolderError(
            f"{place} has the label {new[0]!r} in its label file and no logit for it; take it out, or fit the model "
            "with it."
        )
    return ByLogits(state.encoder, module, columns)


def _check_class_weight(config: LaConConfig, space: LabelSpace) -> None:
    for name in config.class_weight if isinstance(config.class_weight, Mapping) else ():
        if name not in space:
            names = space.names
            raise ConfigError(
                f"class_weight has a weight for {name!r}, which is no label.{did_you_mean(name, names)} "
                f"Labels are {', '.join(names[:10])}{' and more' if len(names) > 10 else ''}."
            )
