"""`DescriptionClassifier`: adapts the encoder to the labels by their descriptions alone."""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any, Self, final

from labelspace.checks import as_seed, check_callbacks
from labelspace.classify.anchored import AnchoredClassifier
from labelspace.classify.arguments import check_targets, own_encoder, warn_of_alike
from labelspace.classify.saved.state import State
from labelspace.classify.settings import merged
from labelspace.classify.several import Material, material
from labelspace.config import DecisionConfig, SearchConfig, TrainingConfig
from labelspace.corpus import Pool, sample_pool
from labelspace.encoders import DEFAULT_ENCODER
from labelspace.errors import ConfigError
from labelspace.training import Callback, FitResult, train_on_descriptions
from labelspace.training.engine import clear_finished


@final
class DescriptionClassifier(AnchoredClassifier):
    """Trains the encoder to pull verbalizer and descriptions of a label together and push labels apart.

    No labelled document is used. Unlabelled documents given to `fit` measure whether the space collapses, and choose
    the learning rate if none is published for the encoder.

    Args:
        labels: a LabelSpace, a label file, a dictionary like one, or a list of names.
        encoder: a name from `labelspace encoders`, any sentence-transformers name or folder, an Encoder (copied,
            never changed), or a dictionary of its arguments.
        anchor: what represents a label in `predict`: `"verbalizer"` (the paper), `"descriptions"` (mean of their
            vectors) or `"both"`. The default measured best, see the method page of the docs.
        temperature: divides the cosines, in training and in `predict_proba`.
        threshold: lowest cosine, -1 to 1, at which `predict` returns a label; None: always.
        several: True: a text may have several labels, or none, as with `several: true` in the label file.
        labels_per_text: mean number of labels of a text, if it is known, for the cuts of several labels; None: the
            cuts come from the documents given to `fit`.
        long_texts: how texts longer than the encoder's limit are read: `"cut"` to it, or in `"windows"` whose best
            scores count for each label.
        learning_rate: a number; `"base"`: the rate published for the encoder, or 2e-5; `"uniformity"`: chosen on the
            documents given to `fit`; `"auto"`: `"base"` if a rate is published, the encoder keeps its own pooling and
            `search` has its defaults, else `"uniformity"`.
        search: settings of that choice, a SearchConfig; None: its defaults.
        max_steps: maximum number of updates; each is one sweep over all descriptions x verbalizers.
        checkpoint: folder for checkpoints, saved about 20 times per run. After a kill, the same fit on the same data
            resumes from it with bit-identical results; a finished fit empties it. None: no checkpoints.
        callbacks: get the loss and learning rate of every step, see `training.callbacks`.
        seed: random seed; the same seed gives bit-identical results on the same machine.
        verbose: True shows progress.
        config: rarely set options, a mapping of fields of `config.TrainingConfig`.

    Attributes:
        fit_result_: the loss curve, the learning rate and how it was chosen, uniformity before and after.
        encoder_, label_space_, classes_: the trained encoder and its labels.

    Example:
        >>> from labelspace import DescriptionClassifier
        >>> labels = {"sports": ["matches and teams", "results of games"], "money": ["banks and prices", "markets"]}
        >>> clf = DescriptionClassifier({"labels": labels}, encoder="tests/data/tiny-bert", max_steps=5)
        >>> clf.fit().predict(["the team lost the match"]).shape
        (1,)

    Reference:
        "Description-only supervision: contrastive label-embedding alignment for zero-shot text classification".
    """

    config_class = TrainingConfig
    trains_encoder = True
    not_parameters = (*AnchoredClassifier.not_parameters, "search")

    fit_result_: FitResult

    def __init__(
        self,
        labels: Any,
        encoder: Any = DEFAULT_ENCODER,
        *,
        anchor: str = DecisionConfig.anchor,
        temperature: float = TrainingConfig.temperature,
        threshold: float | None = None,
        several: bool = False,
        labels_per_text: float | None = None,
        long_texts: str = DecisionConfig.long_texts,
        learning_rate: float | str = TrainingConfig.learning_rate,
        search: SearchConfig | None = None,
        max_steps: int = TrainingConfig.max_steps,
        checkpoint: str | Path | None = None,
        callbacks: Sequence[Callback] = (),
        seed: int = 0,
        verbose: bool = False,
        config: Mapping[str, Any] | None = None,
    ) -> None:
        self.labels = labels
        self.encoder = encoder
        self.anchor = anchor
        self.temperature = temperature
        self.threshold = threshold
        self.several = several
        self.labels_per_text = labels_per_text
        self.long_texts = long_texts
        self.learning_rate = learning_rate
        self.search = search
        self.max_steps = max_steps
        self.checkpoint = checkpoint
        self.callbacks = callbacks
        self.seed = seed
        self.verbose = verbose
        self.config = config

    def training_config(self) -> TrainingConfig:
        """Return the arguments and `config` as one checked configuration.

        Raises:
            ConfigError: a value is invalid.
        """
        return merged(self, TrainingConfig)

    def fit(self, X: Any = None, y: Any = None) -> Self:
        """Adapt the encoder to the labels.

        Args:
            X: unlabelled documents, a path to a file of them, a `corpus.Pool`, or None. At most `search.documents` of
                them are held in memory. Use documents like those to predict, but not the test set. With several
                labels they are needed, and set the cut of each label (at most 5,000 of them, or a `Pool` as drawn).
            y: with several labels, the labels of X, which set the cuts then: an indicator matrix, or for each document
                a list of names; None: X is unlabelled. Else it is checked but not used.

        Returns:
            The classifier.

        Raises:
            ConfigError: a parameter is invalid.
            LabelFileError: the labels are invalid.
            EncoderError: the encoder cannot be opened.
            InputError: an entry of X is not a document, or `y` does not fit; with several labels, there are no
                documents, or too few.
            TrainingError: the loss is not finite.
            KeyboardInterrupt: Ctrl-C before anything was learnt. Later it ends the fit, and a warning says what stays.
        """
        space = self._check_parameters()
        config, seed = self.training_config(), as_seed(self.seed)
        check_callbacks(self.callbacks)
        if self.search is not None and not isinstance(self.search, SearchConfig):
            raise ConfigError(f"search must be a SearchConfig or None. Got {type(self.search).__name__} instead.")
        search = self.search or SearchConfig()
        given = None
        if space.several:
            given = material(space, X, y, self.labels_per_text, seed=seed)
            pool = _smaller(given, search.documents, seed)
        else:
            check_targets(X, y, space)
            pool = X if X is None or isinstance(X, Pool) else sample_pool(X, size=search.documents, seed=seed, what="X")
        encoder = own_encoder(self.encoder)
        warn_of_alike(encoder, space)
        result = train_on_descriptions(
            encoder,
            space,
            config,
            search,
            pool=pool,
            seed=seed,
            checkpoint=self.checkpoint,
            callbacks=self.callbacks,
            verbose=self.verbose,
        )
        self._finish_with_cuts(encoder, space, given)
        self.fit_result_ = result
        clear_finished(self.checkpoint, result.curve)
        return self

    def state(self) -> State:
        """Return the fitted model as plain values and arrays; `from_state` is the inverse."""
        state = super().state()
        return replace(state, facts={**state.facts, "search": self.search.to_dict() if self.search else None})

    @classmethod
    def from_state(cls, state: State) -> Self:
        """Return the fitted model of a state."""
        given = state.facts.get("search")
        search = SearchConfig.from_dict(given) if given else None
        return super().from_state(replace(state, parameters={**state.parameters, "search": search}))


def _smaller(given: Material, size: int, seed: int) -> Pool:
    """Return the documents of the cuts as a pool of at most this size, which measures the learning rate."""
    drawn = sample_pool(list(given.texts), size=size, seed=seed)
    return drawn if given.pool is None else replace(drawn, seen=given.pool.seen, source=given.pool.source)
