"""`LaConClassifier`: learns from a few labelled texts or from many, with the descriptions as a start."""

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, Self, cast, final

import numpy as np
from numpy.typing import NDArray
from sklearn.utils.validation import check_is_fitted
from torch import Tensor
from torch.nn import functional as F

from labelspace.checks import as_seed, check_callbacks, did_you_mean
from labelspace.classify.anchors import cosines, encode_label
from labelspace.classify.base import BiEncoderClassifier, _label_from, as_encoder, as_label_space, in_windows
from labelspace.classify.editing import LabelChange
from labelspace.classify.labelled_input import as_texts_or_pairs, is_pairs, is_stream, supervise
from labelspace.config import LaConConfig, SearchConfig
from labelspace.corpus import Pool, sample_pool
from labelspace.encoders import DEFAULT_ENCODER, Encoder
from labelspace.errors import ConfigError, InputError
from labelspace.labels import Label, LabelSpace
from labelspace.training import Callback
from labelspace.training.engine import clear_finished
from labelspace.training.features import Features, answers, plain_vectors
from labelspace.training.lacon import LaConFit, LaConHead, train_before_labels, train_on_labels
from labelspace.training.rows import Document, tokenize

Matrix = NDArray[np.float32]


@final
class LaConClassifier(BiEncoderClassifier):
    """Trains the encoder on labelled texts: every text against the labels, every label against the texts.

    Each label is a vector that is learnt along, and a text gets the label whose vector is nearest. Where labels have
    descriptions, or names that are words, the vectors start there and these go on teaching, the less the more rows
    are labelled. Without a labelled row it is trained as `DescriptionClassifier` is, for `description_steps` updates.

    Args:
        labels: a LabelSpace, a label file, a dictionary like one, or a list of names; None: the names that y holds.
        encoder: a name from `labelspace encoders`, any sentence-transformers name or folder, an Encoder (copied,
            never changed), or a dictionary of its arguments.
        objective: `"lacon"`, or a baseline: `"cross-entropy"`, `"cross-entropy+self-contrastive"`,
            `"cross-entropy+supervised-contrastive"`.
        head: `"vanilla"` (the encoder's vector of a text), `"fusion"` (words weighed by the labels), or the baselines
            `"leam"` and `"lsan"`, for `"cross-entropy"` only.
        projection: whether the projection head g stands on the encoder; `"auto"`: where labels start at random.
        heads: slices of the vectors in eq. 4; None: the largest divisor of the width up to 6.
        temperature: divides the cosines, in training and in `predict_proba`.
        regularizer_weight: of the part that keeps labels apart.
        instance_weight: of the part that asks each text for its label; of cross-entropy in a baseline.
        label_weight: of the part that asks each label for its texts; of the contrastive part of a baseline.
        init: where label embeddings start, `"descriptions"` (and the rows there are) or `"random"`.
        description_weight: share of the descriptions in the loss, 0 to 1; `"auto"`: 8 / (8 + labelled rows) of each
            label for its own, 0 where that is below 0.05, the rows contradict them or labels are codes; by the
            mean the head's rate is lowered, and the encoder's twice.
        description_steps: updates on the descriptions alone, before the labelled rows or instead of them; 0: none,
            for an encoder that was trained on them already.
        learning_rate: highest rate of the encoder with labelled rows; `"auto"`: 1e-4, less in proportion for one wider
            than 384.
        head_learning_rate: highest rate of what stands on it.
        batch_size: texts of one update.
        epochs: times that each text is seen. With a dozen labelled texts give more.
        max_steps: at most so many updates; None: as many as the epochs make.
        warmup: share of the updates over which the rates rise, before they fall to 0.
        weight_decay: AdamW's.
        validation: share of the labelled rows held out to stop early, by macro-F1 and then by loss; `"auto"`: 0.05
            from 2,000 rows on, with 20 per label, else none.
        patience: epochs without improvement after which training stops.
        class_weight: weights of labels by name, in proportion to which their rows are drawn; `"balanced"`: so that all
            labels come equally often. No row's loss is multiplied.
        dropout: the encoder's own dropout in training.
        max_tokens_in_memory: a larger batch is cut into chunks; the gradient is the same.
        threshold: -1 to 1, below which `predict` answers None: of the cosine, with a cross-entropy objective of the
            probability; None always names a label.
        checkpoint: folder to keep unfinished training in, about 20 times a run: the same fit on the same data goes on
            from there after a kill, to the same bits; a finished fit empties it. None: nothing is kept.
        callbacks: told losses and rates at every step, see `training.callbacks`.
        seed: of everything random; the same seed gives the same bits on the same machine.
        verbose: True shows progress.

    Attributes:
        fit_result_: the curve, what was held out, the weight of the descriptions and why.
        head_: what stands on the encoder; None where no row was labelled.
        encoder_, label_space_, classes_: what was learnt, and for which labels.

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

    anchor = "descriptions"

    fit_result_: LaConFit
    head_: LaConHead | None
    label_embeddings_: dict[str, Matrix]
    logit_columns_: dict[str, int]
    pairs_: bool

    def __init__(
        self,
        labels: Any = None,
        encoder: Any = DEFAULT_ENCODER,
        *,
        objective: str = LaConConfig.objective,
        head: str = LaConConfig.head,
        projection: bool | str = LaConConfig.projection,
        heads: int | None = LaConConfig.heads,
        temperature: float = LaConConfig.temperature,
        regularizer_weight: float = LaConConfig.regularizer_weight,
        instance_weight: float = LaConConfig.instance_weight,
        label_weight: float = LaConConfig.label_weight,
        init: str = LaConConfig.init,
        description_weight: float | str = LaConConfig.description_weight,
        description_steps: int = LaConConfig.description_steps,
        learning_rate: float | str = LaConConfig.learning_rate,
        head_learning_rate: float = LaConConfig.head_learning_rate,
        batch_size: int = LaConConfig.batch_size,
        epochs: int = LaConConfig.epochs,
        max_steps: int | None = LaConConfig.max_steps,
        warmup: float = LaConConfig.warmup,
        weight_decay: float = LaConConfig.weight_decay,
        validation: float | str = LaConConfig.validation,
        patience: int = LaConConfig.patience,
        class_weight: str | Mapping[str, float] | None = LaConConfig.class_weight,
        dropout: bool = LaConConfig.dropout,
        max_tokens_in_memory: int = LaConConfig.max_tokens_in_memory,
        threshold: float | None = None,
        checkpoint: str | Path | None = None,
        callbacks: Sequence[Callback] = (),
        seed: int = 0,
        verbose: bool = False,
    ) -> None:
        self.labels = labels
        self.encoder = encoder
        self.objective = objective
        self.head = head
        self.projection = projection
        self.heads = heads
        self.temperature = temperature
        self.regularizer_weight = regularizer_weight
        self.instance_weight = instance_weight
        self.label_weight = label_weight
        self.init = init
        self.description_weight = description_weight
        self.description_steps = description_steps
        self.learning_rate = learning_rate
        self.head_learning_rate = head_learning_rate
        self.batch_size = batch_size
        self.epochs = epochs
        self.max_steps = max_steps
        self.warmup = warmup
        self.weight_decay = weight_decay
        self.validation = validation
        self.patience = patience
        self.class_weight = class_weight
        self.dropout = dropout
        self.max_tokens_in_memory = max_tokens_in_memory
        self.threshold = threshold
        self.checkpoint = checkpoint
        self.callbacks = callbacks
        self.seed = seed
        self.verbose = verbose

    def training_config(self) -> LaConConfig:
        """Return the parameters that concern training as one checked value.

        Raises:
            ConfigError: one of them makes no sense.
        """
        return LaConConfig(**{name: getattr(self, name) for name in LaConConfig.__dataclass_fields__})

    def fit(self, X: Any = None, y: Any = None) -> Self:
        """Learn from the rows that have a label, or, where none has one, from the descriptions.

        Args:
            X: documents, or pairs of texts as 2-tuples or two columns. Without a labelled row it is what
                `DescriptionClassifier.fit` takes.
            y: label names; rows without a label carry None, NaN, -1 or "". They say which learning rate suits the
                descriptions, and are left out of the rest, unless all are.

        Returns:
            The classifier.

        Raises:
            ConfigError: a parameter makes no sense.
            LabelFileError: the labels cannot be used.
            EncoderError: the encoder cannot be opened.
            InputError: documents and labels do not fit, or there is nothing to learn from.
            TrainingError: the loss is not finite.
        """
        config, seed = self.training_config(), as_seed(self.seed)
        check_callbacks(self.callbacks)
        self._check_threshold()
        space = None if self.labels is None else as_label_space(self.labels)
        if space is not None:
            _check_class_weight(config, space)
        if y is not None and is_stream(X):
            X = list(X)  # it is read once, and asked for again where no row has a label
        given = supervise(space, X, y)
        if given is None:
            return self._fit_on_descriptions(X, y, space, config, seed)
        _check_class_weight(config, given.space)  # where y names the labels, it is known only now
        encoder = self._own_encoder()
        # Labels by name, so that the order of the label file decides nothing.
        ordered = given.space.reorder(sorted(given.space.names))
        places = np.array([ordered.index(name) for name in given.space.names], dtype=np.intp)
        head, result = train_on_labels(
            encoder,
            ordered,
            given.documents,
            places[given.targets],
            config,
            described=given.space,
            meaningful=given.meaningful or config.description_weight not in ("auto", 0),
            seed=seed,
            unlabelled=given.unlabelled,
            pool=self._pool(given.everything),
            checkpoint=self.checkpoint,
            callbacks=self.callbacks,
            show_progress=self.verbose,
        )
        self._finish(encoder, given.space)
        self.pairs_ = is_pairs(given.documents)
        self.fit_result_ = result
        self._set_head(head, ordered.names)
        clear_finished(self.checkpoint, result.curve)
        return self

    def scores(self, texts: Sequence[str], space: LabelSpace) -> Matrix:
        """Score texts against a label space, the fitted one or another; see `classify.scorer.Scorer`.

        A label keeps by its name what was learnt of it. One that training never saw stands where its descriptions
        are, or its verbalizer.

        Raises:
            InputError: a label without a logit, after training by cross-entropy.
        """
        check_is_fitted(self)
        columns = self._logit_columns(space) if self._classifies else []
        labels = None if self._classifies else self._embeddings(space)
        found = np.empty((len(texts), len(space)), dtype=np.float32)
        for rows, documents, each in in_windows(texts):
            if labels is None:
                found[rows] = self._logits(documents)[:, columns][each]
            else:
                found[rows] = cosines(self._vectors(documents), labels)[each]
        return found

    def add_label(self, label: Label | Mapping[str, Any]) -> LabelChange:
        """Add a label to a fitted model without training; the other labels' scores stay as they are.

        Args:
            label: a Label, or a mapping with the keys of a label file.

        Returns:
            Whether retraining is advised, and why.

        Raises:
            InputError: the model was trained by cross-entropy, and has no logit for it.
        """
        check_is_fitted(self)
        label = _label_from(label) if isinstance(label, Mapping) else label
        if self._classifies:
            raise InputError(
                f"a model trained by cross-entropy has no logit for {label.name!r}; call fit with the new label."
            )
        space = self.label_space_.add(label)
        placed = self._place(label, space.verbalizers[space.index(label.name)])
        change = super().add_label(label)
        self.label_embeddings_ = {**self.label_embeddings_, label.name: placed}
        if self.head_ is None:
            return change
        own = "descriptions are" if label.descriptions else "verbalizer is"
        return LabelChange(
            retrain=True,
            reason=f"{label.name!r} stands where its {own}, while the others have seen labelled texts; "
            "label some of its own and call fit again.",
        )

    def learnt_tensors(self) -> dict[str, NDArray[np.generic]]:
        """Return what was learnt beside the encoder: the label embeddings in their order, and the head."""
        check_is_fitted(self)
        tensors = {f"embeddings.{place}": values for place, values in enumerate(self.label_embeddings_.values())}
        if self.head_ is not None:
            tensors |= {f"head.{name}": part.detach().cpu().numpy() for name, part in self.head_.named_parameters()}
        return {name: np.ascontiguousarray(values) for name, values in tensors.items()}

    def rename_label(self, old: str, new: str) -> LabelChange:
        """Rename a label of a fitted model; all scores stay as they are."""
        check_is_fitted(self)
        place = self.label_space_.index(old)
        change = super().rename_label(old, new)
        new = self.label_space_.names[place]
        self.label_embeddings_ = {new if name == old else name: v for name, v in self.label_embeddings_.items()}
        self.logit_columns_ = {new if name == old else name: c for name, c in self.logit_columns_.items()}
        if isinstance(self.class_weight, Mapping):
            self.class_weight = {new if name.strip() == old else name: w for name, w in self.class_weight.items()}
        return change

    def remove_label(self, name: str) -> LabelChange:
        """Remove a label from a fitted model; the other labels' scores stay as they are."""
        change = super().remove_label(name)
        self.label_embeddings_ = {kept: v for kept, v in self.label_embeddings_.items() if kept != name}
        self.logit_columns_ = {kept: c for kept, c in self.logit_columns_.items() if kept != name}
        if isinstance(self.class_weight, Mapping):
            self.class_weight = {kept: w for kept, w in self.class_weight.items() if kept.strip() != name}
        return change

    @property
    def _classifies(self) -> bool:
        return self.head_ is not None and self.head_.shape.classifies

    def _looks_at_descriptions(self) -> bool:
        return not self._classifies and self.fit_result_.to_dict()["init"] != "random"

    def _encoded(self, documents: Sequence[Document]) -> Matrix:
        if not self.pairs_:
            return super()._encoded(documents)
        rows = tokenize(self.encoder_, documents)
        return answers(self.encoder_, rows, plain_vectors, words=False, width=self.encoder_.dimension)

    def _own_encoder(self) -> Encoder:
        given = as_encoder(self.encoder)
        return given.copy() if given is self.encoder else given

    def _fit_on_descriptions(self, X: Any, y: Any, space: LabelSpace | None, config: LaConConfig, seed: int) -> Self:
        if space is None or not any(space.descriptions):
            raise InputError(
                "no row has a label and no label has a description, so there is nothing to learn from; give one or "
                "the other."
            )
        # What is neither may be a stream or a file, of which no more is held than is used.
        documents = as_texts_or_pairs(X) if is_pairs(X) or y is not None else X
        pairs = is_pairs(documents)
        if not config.description_steps:
            raise ConfigError("description_steps must be 1 or more where no row has a label. Got 0 instead.")
        pool = self._pool(documents)
        encoder = self._own_encoder()
        result = train_before_labels(
            encoder,
            space,
            config,
            pool=pool,
            seed=seed,
            checkpoint=self.checkpoint,
            callbacks=self.callbacks,
            show_progress=self.verbose,
        )
        self._finish(encoder, space)
        self.pairs_ = pairs
        self.fit_result_ = LaConFit(
            curve=None,
            prior=None,
            init=None,
            heads=None,
            labelled=0,
            unlabelled=len(documents) if pairs else pool.seen if pool else 0,
            held_out=0,
            device=str(encoder.backbone.device),
            seed=seed,
            descriptions=result,
        )
        self._set_head(None, space.names)
        clear_finished(self.checkpoint, result.curve)
        return self

    def _pool(self, documents: Any) -> Pool | None:
        """Documents to choose the rate for descriptions by, as in `DescriptionClassifier`; pairs say nothing of it."""
        if documents is None or isinstance(documents, Pool):
            return documents
        return None if is_pairs(documents) else sample_pool(documents, size=SearchConfig.documents, seed=self.seed)

    def _set_head(self, head: LaConHead | None, names: tuple[str, ...]) -> None:
        """Take a head whose labels are these, in this order."""
        self.head_ = head
        self.logit_columns_ = dict(zip(names, range(len(names)), strict=True)) if self._classifies else {}
        self.label_embeddings_ = {}
        if head is None:
            self.label_embeddings_ = {name: self.label_vectors_[name].anchor(self.anchor) for name in names}
        elif not self._classifies and head.labels is not None:
            vectors = F.normalize(head.labels().detach(), dim=1).cpu().numpy()
            self.label_embeddings_ = {name: vectors[column] for column, name in enumerate(names)}

    def _documents(self, X: Any) -> Sequence[str]:
        check_is_fitted(self)
        documents = as_texts_or_pairs(X)
        if documents:
            self._check_kind(pairs=is_pairs(documents))
        return cast(Sequence[str], documents)

    def _logit_columns(self, space: LabelSpace) -> list[int]:
        for name in space.names:
            if name not in self.logit_columns_:
                raise InputError(
                    f"a model trained by cross-entropy has no logit for {name!r}; it knows "
                    f"{', '.join(self.logit_columns_)}. Fit it with that label, or use objective='lacon'."
                )
        return [self.logit_columns_[name] for name in space.names]

    def _logits(self, documents: Sequence[Document]) -> Matrix:
        """Logits of texts, [text label], in the order of the head."""
        head = self.head_
        assert head is not None
        rows = tokenize(self.encoder_, documents)
        return answers(self.encoder_, rows, head.logits, words=head.shape.words, width=head.shape.labels)

    def _vectors(self, documents: Sequence[Document]) -> Matrix:
        """Unit vectors of texts, [text dim], that label embeddings are compared with."""
        head = self.head_
        rows = tokenize(self.encoder_, documents)
        if head is None:
            return answers(self.encoder_, rows, plain_vectors, words=False, width=self.encoder_.dimension)

        def project(features: Features) -> Tensor:
            return F.normalize(head.vectors(features), dim=-1)

        return answers(self.encoder_, rows, project, words=head.shape.words, width=head.shape.dim)

    def _embeddings(self, space: LabelSpace) -> Matrix:
        """Unit vectors of labels, [label dim], each made on its own."""
        return np.stack(
            [
                self.label_embeddings_[label.name]
                if label.name in self.label_embeddings_
                else self._place(label, verbalizer)
                for label, verbalizer in zip(space.labels, space.verbalizers, strict=True)
            ]
        )

    def _place(self, label: Label, verbalizer: str) -> Matrix:
        """Where a label stands that training never saw."""
        if self.head_ is None:
            return encode_label(self.encoder_, label, verbalizer).anchor(self.anchor)
        vectors = self._vectors(label.descriptions or (verbalizer,))
        mean = vectors.mean(axis=0, dtype=np.float64)
        return (mean / max(float(np.linalg.norm(mean)), 1e-12)).astype(np.float32)

    def _names(self, scores: Matrix, uncertainty: Matrix | None = None) -> NDArray[np.object_]:
        if not self._classifies or self.threshold is None:
            return super()._names(scores, uncertainty)
        names = np.array(self.label_space_.names, dtype=object)[self._winners(scores)]
        if len(scores):
            names[self._probabilities(scores).max(axis=1) < self.threshold] = None
        return names

    def _probabilities(self, scores: Matrix) -> NDArray[np.float64]:
        if not self._classifies:
            return super()._probabilities(scores)
        logits = scores.astype(np.float64)
        powers = np.exp(logits - logits.max(axis=1, keepdims=True))
        return powers / powers[:, self._class_columns()].sum(axis=1, keepdims=True)


def _check_class_weight(config: LaConConfig, space: LabelSpace) -> None:
    for name in config.class_weight if isinstance(config.class_weight, Mapping) else ():
        if name not in space:
            names = space.names
            raise ConfigError(
                f"class_weight has a weight for {name!r}, which is no label.{did_you_mean(name, names)} "
                f"Labels are {', '.join(names[:10])}{' and more' if len(names) > 10 else ''}."
            )
