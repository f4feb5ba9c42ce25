"""`UncertaintyClassifier`: a small head on a frozen encoder that measures its uncertainty."""

from collections.abc import Mapping, Sequence
from dataclasses import asdict, replace
from pathlib import Path
from typing import Any, Self, final

import numpy as np
import torch
from numpy.typing import NDArray
from sklearn.utils import Tags

from labelspace.checks import as_seed, check_callbacks, check_choice, check_number
from labelspace.classify.abstaining import AbstainingClassifier
from labelspace.classify.anchors import OUTSIDE
from labelspace.classify.arguments import as_encoder, as_label, one_label_space, warn_of_unread
from labelspace.classify.base import Change
from labelspace.classify.by_gaussians import ByGaussians
from labelspace.classify.decision import RANKINGS, Decision
from labelspace.classify.editing import LabelChange
from labelspace.classify.labelled_input import look_at
from labelspace.classify.saved.cards import uncertainty_card
from labelspace.classify.saved.modules import fill_module
from labelspace.classify.saved.state import State
from labelspace.classify.settings import merged
from labelspace.config import UncertaintyConfig
from labelspace.corpus import Kind
from labelspace.encoders import DEFAULT_ENCODER
from labelspace.encoders.packaged import user_cache
from labelspace.encoders.state_cache import StateCache
from labelspace.errors import ConfigError, InputError, ModelFolderError, ShapeError, warn
from labelspace.heads import GaussianHead
from labelspace.labels import Label, LabelSpace
from labelspace.training import Callback
from labelspace.training.engine import clear_finished
from labelspace.training.uncertainty import HeldOut, Limit, UncertaintyFit, train_gaussian_head

NAMED = 5
"""Maximum number of labels that the warning names."""


@final
class UncertaintyClassifier(AbstainingClassifier):
    """Learns from many labelled texts with a frozen encoder, and measures the uncertainty of each answer.

    Each text becomes a Gaussian: its mean gives the label, and its std, averaged over coordinates, is the uncertainty.
    The encoder's token states are computed once and cached on disk, so epochs are cheap. Probabilities are calibrated
    on held-out rows, and `set_coverage` or `set_risk` make `predict` return None for texts that are too uncertain.

    Args:
        labels: a LabelSpace, a label file, a dictionary like one, or a list of names; None: the names in y.
        encoder: a name from `labelspace encoders`, any sentence-transformers name or folder, an Encoder (never
            changed), or a dictionary of its arguments.
        extractor: how token states become features: `"textcnn"`, or one from the ablation: `"cls"`, `"eos"`, `"mean"`,
            `"mlp"`, `"attention"`.
        learning_rate: peak learning rate; `"auto"`: 8e-4 for `"textcnn"`, higher for extractors with few weights.
        epochs: passes over the training texts; `"auto"`: 3, more for fewer than about ten thousand texts.
        validation: share of the labelled rows held out for temperature and limits; equal texts stay together.
            `"auto"`: 0.1 with 20 rows per label on average and 200 in all or more, else none.
        min_probability: lowest probability, 0 to 1, at which `predict` returns a label; None: always.
        cache: folder for token states; `"auto"`: `token-states` in labelspace's cache folder; None: no cache, so every
            epoch encodes the texts again. Token states reveal much of the texts, so use None for confidential ones.
        checkpoint: folder for checkpoints, saved about 20 times per run. After a kill, the same fit on the same data
            resumes from it with bit-identical results; a finished fit empties it. None: no checkpoints.
        callbacks: get the losses and the learning rate of every step, see `training.callbacks`.
        seed: random seed; the same seed gives bit-identical results on the same machine.
        verbose: True shows progress.
        config: rarely set options, a mapping of fields of `config.UncertaintyConfig`.

    Attributes:
        fit_result_: the loss curve, the number of held-out rows, calibration before and after.
        head_: turns documents into scores; `head_.module` is the trained head.
        temperature_: divides the logits in `predict_proba`; 1.0 if no row was held out.
        limit_: `predict` returns None above this doubt; None: it always answers.
        encoder_, label_space_, classes_: the frozen encoder and the labels.

    Example:
        >>> from labelspace import UncertaintyClassifier
        >>> texts = ["the team lost", "a match was won", "the bank closed", "prices rise"]
        >>> clf = UncertaintyClassifier(encoder="tests/data/tiny-bert", epochs=2, cache=None)
        >>> clf = clf.fit(texts, ["sports", "sports", "money", "money"])
        >>> clf.predict(["the team won"]).shape, clf.predict_uncertainty(["the team won"]).shape
        ((1,), (1,))

    Reference:
        "Uncertainty-aware contrastive sentence embedding with local context representation for text classification".
    """

    config_class = UncertaintyConfig
    tensors_file = "uncertainty.safetensors"
    card_of = staticmethod(uncertainty_card)
    not_parameters = (*AbstainingClassifier.not_parameters, "cache")

    fit_result_: UncertaintyFit

    def __init__(
        self,
        labels: Any = None,
        encoder: Any = DEFAULT_ENCODER,
        *,
        extractor: str = UncertaintyConfig.extractor,
        learning_rate: float | str = UncertaintyConfig.learning_rate,
        epochs: int | str = UncertaintyConfig.epochs,
        validation: float | str = UncertaintyConfig.validation,
        min_probability: float | None = None,
        cache: str | Path | None = "auto",
        checkpoint: str | Path | None = None,
        callbacks: Sequence[Callback] = (),
        seed: int = 0,
        verbose: bool = False,
        config: Mapping[str, Any] | None = None,
    ) -> None:
        self.labels = labels
        self.encoder = encoder
        self.extractor = extractor
        self.learning_rate = learning_rate
        self.epochs = epochs
        self.validation = validation
        self.min_probability = min_probability
        self.cache = cache
        self.checkpoint = checkpoint
        self.callbacks = callbacks
        self.seed = seed
        self.verbose = verbose
        self.config = config

    def training_config(self) -> UncertaintyConfig:
        """Return the arguments and `config` as one checked configuration.

        Raises:
            ConfigError: a value is invalid.
        """
        return merged(self, UncertaintyConfig)

    def fit(self, X: Any = None, y: Any = None) -> Self:
        """Learn from the labelled rows; the encoder stays as it is.

        Args:
            X: documents.
            y: label names; rows without a label (None, NaN, -1 or "") are left out.

        Returns:
            The classifier.

        Warns:
            LabelSpaceWarning: a label has no labelled row, so it is never predicted; or a document has rows with
                different labels.

        Raises:
            ConfigError: a parameter is invalid.
            LabelFileError: the labels are invalid.
            EncoderError: the encoder cannot be opened.
            InputError: documents and labels do not fit, fewer than two labels have rows, or `validation` cannot be held
                out.
            TrainingError: the loss is not finite.
            KeyboardInterrupt: Ctrl-C before anything was learnt. Later it ends the fit, and a warning says what stays.
        """
        config, seed = self.training_config(), as_seed(self.seed)
        check_callbacks(self.callbacks)
        Decision(min_probability=self.min_probability)
        cache = self._state_cache(config.cache_bytes)
        space = None if self.labels is None else one_label_space(self.labels, type(self).__name__)
        if space is not None:
            warn_of_unread(space, type(self).__name__)
        given = look_at(space, X, y).supervision
        if given is None:
            raise InputError(
                "no row has a label, and UncertaintyClassifier learns from nothing else; label some, or use "
                "DescriptionClassifier."
            )
        if given.only is not None:
            raise given.nothing_to_tell_apart()
        if given.documents.kind is Kind.PAIRS:
            raise InputError("UncertaintyClassifier takes single texts. Got pairs; use LaConClassifier for them.")
        names = given.space.names
        taught = {names[target] for target in np.unique(given.targets)}
        _warn_of_labels_without_a_row([name for name in names if name not in taught], len(names))
        # Columns sorted by name, so that the order of the label file has no effect.
        columns = {name: column for column, name in enumerate(sorted(taught))}
        of_labels = np.array([columns.get(name, -1) for name in names])
        encoder = as_encoder(self.encoder)
        module, held_out, result = train_gaussian_head(
            encoder,
            encoder.tokenize(given.documents.rows),
            of_labels[given.targets],
            len(columns),
            config,
            cache=cache,
            seed=seed,
            unlabelled=given.unlabelled,
            checkpoint=self.checkpoint,
            callbacks=self.callbacks,
            verbose=self.verbose,
        )
        self._finish(encoder, given.space)
        self.fit_result_ = result
        self.head_ = ByGaussians(encoder, module, {name: columns.get(name) for name in sorted(names)})
        self.held_out_ = held_out
        self.temperature_ = result.calibration.temperature if result.calibration else 1.0
        self.limit_ = None
        clear_finished(self.checkpoint, result.curve)
        return self

    def decision(self) -> Decision:
        """Return the decision rule: calibrated probabilities, `min_probability` and the limit of doubt."""
        return replace(super().decision(), limit=self.limit_)

    def predict_uncertainty(self, X: Any) -> NDArray[np.float32]:
        """Return the uncertainty of each document, [text]: the mean of its std over coordinates, above 0.

        This is the paper's measure. How well it finds wrong answers depends on data and encoder;
        `labelspace evaluate --rejection-curve` compares it with the entropy of the probabilities.
        """
        documents = self.read(X)
        return self.head_.uncertainty(documents)

    def transform(self, X: Any) -> NDArray[np.float32]:
        """Return the mean of each document's Gaussian, [text dim], as its embedding."""
        documents = self.read(X)
        return self.head_.vectors(documents)

    def add_label(self, label: Label | Mapping[str, Any]) -> LabelChange:
        """Raise InputError: a label without training rows has no logit.

        Raises:
            InputError: always.
        """
        raise InputError(
            f"the model has no logit for {as_label(label).name!r}; label rows of it and call fit with them."
        )

    def state(self) -> State:
        """Return the fitted model as plain values and arrays; `from_state` is the inverse."""
        state, module = super().state(), self.head_.module
        facts = {
            "dim": module.dim,
            "labels": module.classifier.out_features,
            # From the module, because the parameters may have changed since the fit.
            "head": module.options,
            "logit_columns": self.head_.columns,
            "temperature": self.temperature_,
            "limit": asdict(self.limit_) if self.limit_ else None,
            "labels_from_y": self.labels is None,
            "keeps_states": self.cache is not None,
        }
        tensors = {
            **self.head_.tensors(),
            "held_out.uncertainty": self.held_out_.uncertainty,
            "held_out.entropy": self.held_out_.entropy,
            "held_out.wrong": self.held_out_.wrong.astype(np.uint8),
        }
        return replace(state, facts={"uncertainty": facts}, tensors=tensors)

    @classmethod
    def from_state(cls, state: State) -> Self:
        """Return the fitted model of a state.

        Raises:
            ModelFolderError: the label file names a label without a logit.
        """
        model, facts, tensors = super().from_state(state), state.facts["uncertainty"], state.tensors
        if not facts["keeps_states"]:
            model.cache = None  # the cache folder depends on the machine, but the wish not to write is kept
        model.head_ = _head_of(state, facts)
        model.temperature_ = float(facts["temperature"])
        limit = facts["limit"]
        model.limit_ = None if limit is None else Limit(limit["by"], float(limit["value"]))
        if model.limit_ is not None:
            check_choice("limit", model.limit_.by, RANKINGS[1:])
            check_number("limit", model.limit_.value)
        model.held_out_ = HeldOut(
            tensors["held_out.uncertainty"], tensors["held_out.entropy"], tensors["held_out.wrong"].astype(bool)
        )
        for name in state.space.names:
            if name not in model.head_.columns:
                raise ModelFolderError(
                    f"{state.place} has the label {name!r} in its label file and no logit for it; take it out, or fit "
                    "the model with it."
                )
        # Drop labels removed from the label file by hand.
        kept = (*state.space.names, OUTSIDE)
        model._edit(state.space, lambda known: {name: its for name, its in known.items() if name in kept})
        if facts["labels_from_y"]:
            model.labels = None  # a second fit takes them from its own y
        return model

    def _edit(self, space: LabelSpace, change: Change) -> None:
        super()._edit(space, change)
        head = self.head_.edited(change)
        # Removing a label without training rows does not change the answers on held-out rows, so keep their record.
        if head.taught < self.head_.taught:
            self.held_out_ = HeldOut(*(part[:0] for part in vars(self.held_out_).values()))
        self.head_ = head

    def _state_cache(self, max_bytes: int) -> StateCache | None:
        if self.cache is None:
            return None
        if not isinstance(self.cache, (str, Path)) or self.cache == "" or "\0" in str(self.cache):
            raise ConfigError(f"cache must be a folder, 'auto' or None. Got {self.cache!r} instead.")
        folder = user_cache() / "token-states" if self.cache == "auto" else Path(self.cache).expanduser()
        return StateCache(folder, max_bytes)

    def __sklearn_tags__(self) -> Tags:
        tags = super().__sklearn_tags__()
        tags.target_tags.required = True  # it learns from nothing else
        return tags


def _warn_of_labels_without_a_row(names: Sequence[str], labels: int) -> None:
    if not names:
        return
    named = ", ".join(repr(name) for name in names[:NAMED])
    more = f" and {len(names) - NAMED} more" if len(names) > NAMED else ""
    warn(
        f"{len(names)} of {labels} labels have no labelled row, so they get no probability and are never the answer: "
        f"{named}{more}; label some rows of each, or leave them out of the labels."
    )


def _head_of(state: State, facts: dict[str, Any]) -> ByGaussians:
    labels = int(facts["labels"])
    module = GaussianHead(int(facts["dim"]), labels, generator=torch.Generator(), **facts["head"])
    fill_module(module, state.tensors)
    # None marks a label without training rows.
    columns = {name: None if column is None else int(column) for name, column in facts["logit_columns"].items()}
    taught = [column for column in columns.values() if column is not None]
    if len(set(taught)) < len(taught) or not set(taught) <= set(range(labels)):
        raise ShapeError(f"logit_columns must be different numbers below {labels}, and are {list(columns.values())}")
    return ByGaussians(state.encoder, module.eval().requires_grad_(False).to(state.encoder.device), columns)
