"""`UncertaintyClassifier`: a small head on a frozen encoder that knows when it does not know."""

import warnings
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, Self, cast, final

import numpy as np
from numpy.typing import NDArray
from sklearn.utils import Tags
from sklearn.utils.validation import check_is_fitted

from labelspace.checks import as_seed, check_callbacks, check_number
from labelspace.classify.abstaining import AbstainingClassifier
from labelspace.classify.base import Answers, _label_from, as_encoder, as_label_space, in_windows
from labelspace.classify.editing import LabelChange
from labelspace.classify.labelled_input import as_texts_or_pairs, is_pairs, supervise
from labelspace.config import UncertaintyConfig
from labelspace.encoders import DEFAULT_ENCODER
from labelspace.encoders.packaged import user_cache
from labelspace.encoders.state_cache import DEFAULT_BYTES, StateCache
from labelspace.errors import ConfigError, InputError, LabelSpaceWarning
from labelspace.labels import Label
from labelspace.training import Callback
from labelspace.training.engine import clear_finished
from labelspace.training.uncertainty import (
    HeldOut,
    Outputs,
    UncertaintyFit,
    outputs_of_texts,
    train_gaussian_head,
)

Matrix = NDArray[np.float32]

NO_LOGIT = -1e6
"""The score of a label that no row taught: its probability is 0 at any temperature, and an entropy stays a number."""

NAMED = 5
"""Such labels that the warning names."""


@final
class UncertaintyClassifier(AbstainingClassifier):
    """Learns from many labelled texts with the encoder frozen, and says how sure it is.

    Each text becomes a Gaussian: a mean, from which the label is read, and a std, whose mean over the coordinates is
    the text's uncertainty. The encoder's token states are computed once and kept on disk, so that epochs are cheap.
    Probabilities are set right on held-out rows, and `set_coverage` or `set_risk` make `predict` answer None where the
    text is too uncertain.

    Args:
        labels: a LabelSpace, a label file, a dictionary like one, or a list of names; None: the names that y holds.
        encoder: a name from `labelspace encoders`, any sentence-transformers name or folder, an Encoder (never
            changed), or a dictionary of its arguments.
        extractor: how token states become features: `"textcnn"`, or one of the ablation: `"cls"`, `"eos"`, `"mean"`,
            `"mlp"`, `"attention"`.
        uncertain: False leaves std out; each text is then its mean, and its uncertainty 0.
        contrastive: `"label-wise"`, or one of the ablation: `"self-supervised"`, `"supervised"`, `"none"`.
        contrastive_weight: of the contrastive part, 0 to 1; the rest is cross-entropy's.
        kl_weight: of the part that pulls each Gaussian towards the standard normal one.
        contrastive_temperature: divides the cosines of the contrastive part.
        dropout: share of TextCNN's features set to zero in training.
        learning_rate: highest rate; `"auto"`: 8e-4 for `"textcnn"`, higher for extractors with few weights.
        batch_size: texts of one update.
        epochs: times that each text is seen; `"auto"`: 3, and more for less than some ten thousand texts.
        warmup: share of the updates over which the rate rises, before it falls to 0.
        weight_decay: AdamW's.
        validation: share of the labelled rows held out for temperature and limits; equal texts stay together.
            `"auto"`: 0.1 with 20 rows per label and 200 in all or more, else none.
        threshold: 0 to 1, probability below which `predict` answers None; None always names a label.
        cache: folder for token states; `"auto"`: `token-states` in labelspace's cache folder; None: nothing is
            written, and every epoch encodes the texts again. They tell much of the texts: None for what must not lie
            on a disk.
        cache_bytes: of all that lies in that folder; the least recently used goes first.
        checkpoint: folder to keep unfinished training in, about 20 times a run: the same fit on the same data goes on
            from there after a kill, to the same bits; a finished fit empties it. None: nothing is kept.
        callbacks: told losses and the rate at every step, see `training.callbacks`.
        seed: of everything random; the same seed gives the same bits on the same machine.
        verbose: True shows progress.

    Attributes:
        fit_result_: the curve, what was held out, calibration before and after.
        head_: the trained head.
        temperature_: divides the logits in `predict_proba`; 1.0 where no row was held out.
        limit_: above which uncertainty `predict` answers None; None: never.
        encoder_, label_space_, classes_: what it stands on, and for which labels.

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

    anchor = "descriptions"  # what the baselines of `evaluate` look at
    temperature = 1.0

    fit_result_: UncertaintyFit
    logit_columns_: dict[str, int | None]

    _least_threshold = 0

    def __init__(
        self,
        labels: Any = None,
        encoder: Any = DEFAULT_ENCODER,
        *,
        extractor: str = UncertaintyConfig.extractor,
        uncertain: bool = UncertaintyConfig.uncertain,
        contrastive: str = UncertaintyConfig.contrastive,
        contrastive_weight: float = UncertaintyConfig.contrastive_weight,
        kl_weight: float = UncertaintyConfig.kl_weight,
        contrastive_temperature: float = UncertaintyConfig.contrastive_temperature,
        dropout: float = UncertaintyConfig.dropout,
        learning_rate: float | str = UncertaintyConfig.learning_rate,
        batch_size: int = UncertaintyConfig.batch_size,
        epochs: int | str = UncertaintyConfig.epochs,
        warmup: float = UncertaintyConfig.warmup,
        weight_decay: float = UncertaintyConfig.weight_decay,
        validation: float | str = UncertaintyConfig.validation,
        threshold: float | None = None,
        cache: str | Path | None = "auto",
        cache_bytes: int = DEFAULT_BYTES,
        checkpoint: str | Path | None = None,
        callbacks: Sequence[Callback] = (),
        seed: int = 0,
        verbose: bool = False,
    ) -> None:
        self.labels = labels
        self.encoder = encoder
        self.extractor = extractor
        self.uncertain = uncertain
        self.contrastive = contrastive
        self.contrastive_weight = contrastive_weight
        self.kl_weight = kl_weight
        self.contrastive_temperature = contrastive_temperature
        self.dropout = dropout
        self.learning_rate = learning_rate
        self.batch_size = batch_size
        self.epochs = epochs
        self.warmup = warmup
        self.weight_decay = weight_decay
        self.validation = validation
        self.threshold = threshold
        self.cache = cache
        self.cache_bytes = cache_bytes
        self.checkpoint = checkpoint
        self.callbacks = callbacks
        self.seed = seed
        self.verbose = verbose

    def training_config(self) -> UncertaintyConfig:
        """Return the parameters that concern training as one checked value.

        Raises:
            ConfigError: one of them makes no sense.
        """
        return UncertaintyConfig(**{name: getattr(self, name) for name in UncertaintyConfig.__dataclass_fields__})

    def fit(self, X: Any = None, y: Any = None) -> Self:
        """Learn from the rows that have a label; the encoder stays as it is.

        Args:
            X: documents.
            y: label names; rows without a label carry None, NaN, -1 or "", and are left out.

        Returns:
            The classifier.

        Warns:
            LabelSpaceWarning: a label has no row, and so is never the answer.

        Raises:
            ConfigError: a parameter makes no sense.
            LabelFileError: the labels cannot be used.
            EncoderError: the encoder cannot be opened.
            InputError: documents and labels do not fit, no row has a label, or none can be held out as `validation`
                asks.
            TrainingError: the loss is not finite.
        """
        config, seed = self.training_config(), as_seed(self.seed)
        check_callbacks(self.callbacks)
        self._check_threshold()
        check_number("cache_bytes", self.cache_bytes, least=0, whole=True)
        cache = self._state_cache()
        space = None if self.labels is None else as_label_space(self.labels)
        given = supervise(space, X, y)
        if given is None:
            raise InputError(
                "no row has a label, and UncertaintyClassifier learns from nothing else; label some, or use "
                "DescriptionClassifier."
            )
        if is_pairs(given.documents):
            raise InputError("UncertaintyClassifier takes single texts. Got pairs; use LaConClassifier for them.")
        names = given.space.names
        taught = {names[target] for target in np.unique(given.targets)}
        _warn_of_labels_without_a_row([name for name in names if name not in taught], len(names))
        # Columns of the head by name, so that the order of the label file decides nothing.
        columns = {name: column for column, name in enumerate(sorted(taught))}
        of_labels = np.array([columns.get(name, -1) for name in names])
        encoder = as_encoder(self.encoder)
        head, held_out, result = train_gaussian_head(
            encoder,
            encoder.tokenize(cast(list[str], given.documents)),
            of_labels[given.targets],
            len(columns),
            config,
            cache=cache,
            seed=seed,
            unlabelled=given.unlabelled,
            checkpoint=self.checkpoint,
            callbacks=self.callbacks,
            show_progress=self.verbose,
        )
        self._finish(encoder, given.space)
        self.fit_result_ = result
        self.head_ = head
        self.held_out_ = held_out
        self.temperature_ = result.calibration.temperature if result.calibration else 1.0
        self.limit_ = None
        self.logit_columns_ = {name: columns.get(name) for name in sorted(names)}
        clear_finished(self.checkpoint, result.curve)
        return self

    def predict_uncertainty(self, X: Any) -> NDArray[np.float32]:
        """Return the uncertainty of each document: the mean of std over its coordinates, [text], above 0.

        It is the paper's measure. How well it finds wrong answers depends on data and encoder;
        `labelspace evaluate --rejection-curve` tells, beside the entropy of the probabilities.
        """
        documents = self._documents(X)
        found = np.empty(len(documents), dtype=np.float32)
        for rows, outputs in self._outputs(documents):
            found[rows] = outputs.uncertainty
        return found

    def transform(self, X: Any) -> NDArray[np.float32]:
        """Return the mean of each document's Gaussian, [text dim]: the embedding that was learnt for these labels."""
        documents = self._documents(X)
        found = np.empty((len(documents), self.head_.dim), dtype=np.float32)
        for rows, outputs in self._outputs(documents):
            found[rows] = outputs.means
        return found

    def scores(self, texts: Sequence[str], space: Any) -> Matrix:
        """Return logits, [text label]; see `classify.scorer.Scorer`.

        A label of the fitted space that no row taught gets `NO_LOGIT`.

        Raises:
            InputError: a label that the model was not fitted with.
        """
        check_is_fitted(self)
        return self._judge(texts, space).scores

    def add_label(self, label: Label | Mapping[str, Any]) -> LabelChange:
        """Refuse: a label that no row carries has no logit.

        Raises:
            InputError: always.
        """
        name = label.name if isinstance(label, Label) else _label_from(label).name
        raise InputError(f"the model has no logit for {name!r}; label rows of it and call fit with them.")

    def rename_label(self, old: str, new: str) -> LabelChange:
        """Rename a label of a fitted model; all scores stay as they are."""
        check_is_fitted(self)
        place = self.label_space_.index(old)
        change = super().rename_label(old, new)
        new = self.label_space_.names[place]
        self.logit_columns_ = {new if name == old else name: c for name, c in self.logit_columns_.items()}
        return change

    def remove_label(self, name: str) -> LabelChange:
        """Remove a label from a fitted model; the other labels' logits stay as they are.

        A limit stays too. The record of the held-out rows does not: they were judged among all labels.
        """
        change = super().remove_label(name)
        self._forget_logits()
        return change

    def learnt_tensors(self) -> dict[str, NDArray[np.generic]]:
        """Return what was learnt beside the encoder: the head, and its record on the held-out rows."""
        check_is_fitted(self)
        tensors = {f"head.{name}": part.detach().cpu().numpy() for name, part in self.head_.named_parameters()}
        limit = np.array([self.limit_.value if self.limit_ else np.inf, self.temperature_])
        held_out = {
            "held_out.uncertainty": self.held_out_.uncertainty,
            "held_out.entropy": self.held_out_.entropy,
            "held_out.wrong": self.held_out_.wrong.astype(np.uint8),
            "limit_and_temperature": limit,
        }
        return {name: np.ascontiguousarray(values) for name, values in (tensors | held_out).items()}

    def _forget_logits(self) -> None:
        """Drop the logits of labels that are gone, and with them what was said of the held-out rows."""
        known = {name: column for name, column in self.logit_columns_.items() if name in self.label_space_}
        # A label that no row taught was never among those that the held-out rows were judged by.
        if any(column is not None for name, column in self.logit_columns_.items() if name not in known):
            self.held_out_ = HeldOut(*(part[:0] for part in vars(self.held_out_).values()))
        self.logit_columns_ = known

    def _state_cache(self) -> StateCache | None:
        if self.cache is None:
            return None
        if not isinstance(self.cache, (str, Path)) or self.cache == "" or "\0" in str(self.cache):
            raise ConfigError(f"cache must be a folder, 'auto' or None. Got {self.cache!r} instead.")
        folder = user_cache() / "token-states" if self.cache == "auto" else Path(self.cache).expanduser()
        return StateCache(folder, self.cache_bytes)

    def _documents(self, X: Any) -> list[str]:
        check_is_fitted(self)
        documents = as_texts_or_pairs(X)
        self._check_kind(pairs=is_pairs(documents))
        return cast(list[str], documents)

    def _outputs(self, texts: Sequence[str]) -> Iterator[tuple[NDArray[np.intp], Outputs]]:
        """What the head says of some texts at a time, and which they are."""
        for rows, window, each in in_windows(texts):
            outputs = outputs_of_texts(self.encoder_, self.head_, self.encoder_.tokenize(window))
            yield rows, Outputs(*(part[each] for part in outputs))

    def _answers(self, texts: Sequence[str]) -> Answers:
        self._check_threshold()
        return self._judge(texts, self.label_space_)

    def _judge(self, texts: Sequence[str], space: Any) -> Answers:
        """Scores among the labels of a space, and the uncertainty."""
        columns = dict(enumerate(self._logit_columns(space)))
        taught = {place: column for place, column in columns.items() if column is not None}
        scores = np.full((len(texts), len(columns)), NO_LOGIT, dtype=np.float32)
        uncertainty = np.empty(len(texts), dtype=np.float32)
        for rows, outputs in self._outputs(texts):
            scores[rows[:, None], list(taught)] = outputs.logits[:, list(taught.values())]
            uncertainty[rows] = outputs.uncertainty
        return Answers(scores, uncertainty)

    def _looks_at_descriptions(self) -> bool:
        return False

    def _logit_columns(self, space: Any) -> list[int | None]:
        """The head's column of each label, None where no row taught it."""
        for name in space.names:
            if name not in self.logit_columns_:
                raise InputError(
                    f"the model has no logit for {name!r}; it knows {', '.join(self.logit_columns_)}. Fit it with that "
                    "label."
                )
        return [self.logit_columns_[name] for name in space.names]

    def _names(self, scores: Matrix, uncertainty: NDArray[np.float32] | None = None) -> NDArray[np.object_]:
        names = np.array(self.label_space_.names, dtype=object)[self._winners(scores)]
        if self.threshold is not None and len(scores):
            names[self._probabilities(scores).max(axis=1) < self.threshold] = None
        names[self._too_uncertain(Answers(scores, uncertainty))] = None
        return names

    def _probabilities(self, scores: Matrix) -> NDArray[np.float64]:
        logits = scores.astype(np.float64) / self.temperature_
        powers = np.exp(logits - logits.max(axis=1, keepdims=True))
        return powers / powers[:, self._class_columns()].sum(axis=1, keepdims=True)

    def __sklearn_tags__(self) -> Tags:
        tags = super().__sklearn_tags__()
        tags.target_tags.required = True  # it learns from nothing else
        return tags


def _warn_of_labels_without_a_row(names: Sequence[str], labels: int) -> None:
    if not names:
        return
    named = ", ".join(repr(name) for name in names[:NAMED])
    more = f" and {len(names) - NAMED} more" if len(names) > NAMED else ""
    warnings.warn(
        f"{len(names)} of {labels} labels have no labelled row, so they get no probability and are never the answer: "
        f"{named}{more}; label some rows of each, or leave them out of the labels.",
        LabelSpaceWarning,
        stacklevel=3,
    )
