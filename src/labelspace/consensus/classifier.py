"""`ConsensusClassifier`: unlabelled documents teach, through what several views of them agree on."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Self, final

import numpy as np
from numpy.typing import NDArray
from scipy.special import softmax
from sklearn.base import BaseEstimator, ClassifierMixin
from sklearn.utils import Tags
from sklearn.utils.validation import check_is_fitted

from labelspace.checks import as_seed, check_callbacks, check_number
from labelspace.classify import Answers, Classifier, DescriptionClassifier, Explanation, WordsClassifier
from labelspace.classify.anchors import encode_labels
from labelspace.classify.arguments import as_encoder, as_label_space, check_targets
from labelspace.classify.by_joint import ByJoint, Seen, see
from labelspace.classify.joint import JointClassifier
from labelspace.classify.settings import merged
from labelspace.classify.state import SavedFit
from labelspace.config import ConsensusConfig, StudentConfig
from labelspace.consensus.agree import Consensus, agree
from labelspace.consensus.agreement import kappa
from labelspace.consensus.prior import as_sure_as
from labelspace.consensus.store import ScoreStore
from labelspace.consensus.views import WORDS, check_student, check_views, family_of, fit_view, name_of, open_scorer
from labelspace.corpus import Pool, sample_pool
from labelspace.encoders import DEFAULT_ENCODER, Encoder
from labelspace.errors import ConfigError, InputError
from labelspace.labels import LabelSpace
from labelspace.progress import progress_bar
from labelspace.training import Callback
from labelspace.training.engine import clear_finished
from labelspace.training.student import StudentFit, train_student


@final
@dataclass(frozen=True, kw_only=True)
class ConsensusFit:
    """What a consensus did: enough to judge the run and to repeat it."""

    views: tuple[str, ...]
    """Names of the views."""

    pool: str
    """Source of the unlabelled documents."""

    pool_documents: int
    """Number of documents used."""

    consensus: dict[str, Any]
    """Steps, shares of the labels and agreement of the views; `Consensus.to_dict`."""

    student: str | None
    """Name of the student; None: the views answer themselves."""

    taught: dict[str, Any] | None
    """Agreement (kappa) of the student with the consensus on the pool, and its training; None without a student."""

    seed: int
    """The seed of the run."""

    def to_dict(self) -> dict[str, Any]:
        """Return plain values, ready for JSON."""
        return {
            "views": list(self.views),
            "pool": self.pool,
            "pool_documents": self.pool_documents,
            "steps": self.consensus["steps"],
            "consensus": self.consensus,
            "student": self.student,
            "taught": self.taught,
            "seed": self.seed,
        }


@final
class ConsensusClassifier(ClassifierMixin, BaseEstimator):
    """Several views of unlabelled documents correct one another; their consensus answers, or teaches a student.

    Args:
        labels: a LabelSpace, a label file, a dictionary like one, or a list of names.
        views: what looks at the documents: encoders by name (trained on the descriptions first), `zero-shot:NAME` (as
            it is), a folder of a saved classifier, `nli:NAME`, `reranker:NAME`, `llm:NAME[#FILE]`, and `words`.
        student: None: the encoders and words among the views answer together; `"words"`: a linear model of words; an
            encoder by name: that encoder, trained on the consensus.
        prior: how often each label is expected, a mapping from names to shares; None: from the views.
        teaching: settings of an encoder's training on the consensus, a StudentConfig; None: its defaults.
        checkpoint: folder for checkpoints and for the answers of slow views. After a kill, the same fit on the same
            data resumes from it, and asks nothing twice. None: none.
        callbacks: get the losses of every training step, see `training.callbacks`.
        seed: random seed.
        verbose: True shows progress.
        config: the steps of the consensus, a mapping of fields of `config.ConsensusConfig`.

    Attributes:
        model_: the fitted classifier that answers: a `JointClassifier`, a `WordsClassifier` or, with an encoder as
            student, a `DescriptionClassifier`. `save` saves it.
        consensus_: what the views agree on, step by step.
        fit_result_: the views, the steps, the pool and how well the student follows.
        label_space_, classes_: the labels.

    Example:
        >>> from labelspace import ConsensusClassifier
        >>> pool = ["the team won", "a match was lost", "the bank closed", "prices rise"] * 3
        >>> clf = ConsensusClassifier(["sports", "money"], views=["zero-shot:tests/data/tiny-bert", "words"])
        >>> clf.fit(pool).predict(["the team lost"]).shape
        (1,)
        >>> [step.name for step in clf.consensus_.steps]
        ['levelled', 'smoothed in the space of zero-shot:tests/data/tiny-bert', 'words']
    """

    model_: Classifier
    consensus_: Consensus
    fit_result_: ConsensusFit

    def __init__(
        self,
        labels: Any,
        views: Sequence[Any] = (DEFAULT_ENCODER, WORDS),
        *,
        student: Any = None,
        prior: Mapping[str, float] | None = None,
        teaching: StudentConfig | None = None,
        checkpoint: str | Path | None = None,
        callbacks: Sequence[Callback] = (),
        seed: int = 0,
        verbose: bool = False,
        config: Mapping[str, Any] | None = None,
    ) -> None:
        self.labels = labels
        self.views = views
        self.student = student
        self.prior = prior
        self.teaching = teaching
        self.checkpoint = checkpoint
        self.callbacks = callbacks
        self.seed = seed
        self.verbose = verbose
        self.config = config

    def consensus_config(self) -> ConsensusConfig:
        """Return `config` as a checked configuration.

        Raises:
            ConfigError: a value is invalid.
        """
        return merged(self, ConsensusConfig)

    def fit(self, X: Any, y: Any = None) -> Self:
        """Let the views look at the documents, and learn from what they agree on.

        Args:
            X: unlabelled documents, a path to a file of them, or a `corpus.Pool`. Use documents like those to predict,
                but not the test set.
            y: checked but not used.

        Returns:
            The classifier.

        Raises:
            ConfigError: a parameter is invalid.
            LabelFileError: the labels are invalid.
            EncoderError: a view cannot be opened.
            InputError: an entry of X is not a document, or there are fewer than two.
        """
        space, config, seed = as_label_space(self.labels), self.consensus_config(), as_seed(self.seed)
        others, words = check_views(self.views, student=self.student)
        check_student(self.student)
        check_callbacks(self.callbacks)
        if self.teaching is not None and not isinstance(self.teaching, StudentConfig):
            raise ConfigError(f"teaching must be a StudentConfig or None. Got {type(self.teaching).__name__} instead.")
        prior = as_prior(self.prior, space)
        check_targets(X, y, space)
        student = self._open_student()
        pool = X
        if not isinstance(X, Pool) or len(X.texts) > config.documents:
            pool = sample_pool(list(X.texts) if isinstance(X, Pool) else X, size=config.documents, seed=seed)
        if len(pool.texts) < 2:
            raise InputError(f"a consensus needs two documents or more. Got {len(pool.texts)}; give more.")
        config = config if words else replace(config, words=False)

        texts = list(pool.texts)
        fast = [view for view in others if not family_of(view)]
        slow = [view for view in others if family_of(view)]
        if not fast:
            raise ConfigError("views needs an encoder or a saved classifier beside slow views; add all-MiniLM-L6-v2.")
        members = tuple(self._member(number, view, space, config, seed) for number, view in enumerate(fast))
        scales = tuple(_scale(model, config) for model in members)
        seen: list[Seen] = []
        with progress_bar("asking the views", verbose=self.verbose) as report:
            for number, (model, scale) in enumerate(zip(members, scales, strict=True)):
                seen.append(see(model, texts, space, scale=scale))
                report(number + 1, len(fast))
        for view in slow:
            seen.append(self._ask_slow(view, texts, space, seen[: len(fast)], config.slow_documents))
        names = [name_of(view) for view in (*fast, *slow)]
        found = agree(seen, names, texts, space, config, prior=prior, seed=seed)
        model, taught = self._model(found, members, scales, texts, space, config, student, seed)
        self.consensus_, self.model_ = found, model
        self.label_space_, self.classes_ = model.label_space_, model.classes_
        self.fit_result_ = ConsensusFit(
            views=(*names, *([WORDS] if found.words is not None else [])),
            pool=pool.source,
            pool_documents=len(texts),
            consensus=found.to_dict(),
            student=None if self.student is None else name_of(self.student),
            taught=taught,
            seed=seed,
        )
        if isinstance(model, DescriptionClassifier):
            learnt: Any = model
            learnt.fit_result_ = SavedFit({**model.fit_result_.to_dict(), "consensus": self.fit_result_.to_dict()})
        elif isinstance(model, (JointClassifier, WordsClassifier)):
            model.fit_result_ = self.fit_result_
        return self

    def answers(self, X: Any) -> Answers:
        """Return names, scores, probabilities and uncertainty; see `Classifier.answers`."""
        return self._fitted().answers(X)

    def predict(self, X: Any, *, return_scores: bool = False) -> Any:
        """Return the name of each document's likeliest label; see `Classifier.predict`."""
        return self._fitted().predict(X, return_scores=return_scores)

    def predict_proba(self, X: Any) -> NDArray[np.float64]:
        """Return probabilities, [text label], in the order of `classes_`."""
        return self._fitted().predict_proba(X)

    def decision_function(self, X: Any) -> NDArray[np.float32]:
        """Return scores, [text label], in the order of `classes_`; see `Classifier.decision_function`."""
        return self._fitted().decision_function(X)

    def score(self, X: Any, y: Any, sample_weight: Any = None) -> float:
        """Return the accuracy on labelled documents; see `Classifier.score`."""
        return self._fitted().score(X, y, sample_weight)

    def scores(self, texts: Sequence[str], space: LabelSpace) -> NDArray[np.float32]:
        """Score texts against a label space; see `classify.scorer.Scorer`."""
        return self._fitted().scores(texts, space)

    def explain(self, text: str, *, top: int = 3, nearest: int = 2) -> Explanation:
        """Explain the label of one text; see the class of `model_`."""
        model: Any = self._fitted()
        return model.explain(text, top=top, nearest=nearest)

    def save(self, folder: str | Path) -> Path:
        """Save `model_` as a folder that `labelspace.load` opens."""
        return self._fitted().save(folder)

    def _fitted(self) -> Classifier:
        check_is_fitted(self)
        return self.model_

    def _member(self, number: int, view: Any, space: LabelSpace, config: ConsensusConfig, seed: int) -> Classifier:
        model = fit_view(
            view,
            space,
            max_steps=config.view_steps,
            checkpoint=self._place(f"view-{number}"),
            callbacks=self.callbacks,
            seed=seed,
            verbose=self.verbose,
        )
        curve = getattr(getattr(model, "fit_result_", None), "curve", None)
        if curve is not None and model is not view and curve.stop_reason == "interrupted":
            raise KeyboardInterrupt  # a view that is half trained would decide with the others
        return model

    def _place(self, name: str) -> Path | None:
        return None if self.checkpoint is None else Path(self.checkpoint).expanduser() / name

    def _ask_slow(self, view: str, texts: list[str], space: LabelSpace, fast: Sequence[Seen], most: int) -> Seen:
        """Return what a slow view says about the documents where the fast ones are least sure together."""
        together = np.mean([softmax(one.logits, axis=1) for one in fast], axis=0)
        asked = np.sort(np.argsort(together.max(axis=1), kind="stable")[:most])
        store = ScoreStore(self._place("scores"), view, [texts[row] for row in asked], space)
        with progress_bar(f"asking {view}", verbose=self.verbose) as report:
            scores = store.ask(lambda: open_scorer(view), report)
        logits = np.full((len(texts), len(space)), np.nan)
        confidence = float(np.mean([softmax(one.logits[asked], axis=1).max(axis=1).mean() for one in fast]))
        logits[asked] = as_sure_as(scores.astype(np.float64), confidence)
        return Seen(logits)

    def _model(
        self,
        found: Consensus,
        members: tuple[Classifier, ...],
        scales: tuple[float, ...],
        texts: list[str],
        space: LabelSpace,
        config: ConsensusConfig,
        student: Encoder | None,
        seed: int,
    ) -> tuple[Classifier, dict[str, Any] | None]:
        """Return the model that answers, and how well it follows the consensus."""
        sure = found.probabilities.max(axis=1)
        if student is None and self.student is None:
            head = ByJoint(
                members=members,
                scales=scales,
                shifts=found.shifts,
                space=space,
                columns={name: column for column, name in enumerate(space.names)},
                own=config.own,
                near=found.near,
                graph=found.graph,
                smoothed=found.smoothed,
                words=found.words,
            )
            return JointClassifier.of(head), None
        if student is None:
            names = np.array(space.names, dtype=object)[found.logits.argmax(axis=1)]
            model: Any = WordsClassifier(space, C=config.C, seed=seed).fit(texts, names, sample_weight=sure)
            training = None
        else:
            model, training = self._encoder_student(found, members, texts, space, sure, config, student, seed)
        agreed = kappa(model.answers(texts).likeliest, found.logits.argmax(axis=1), len(space))
        return model, {"kappa": agreed, "training": training.to_dict() if training is not None else None}

    def _encoder_student(
        self,
        found: Consensus,
        members: tuple[Classifier, ...],
        texts: list[str],
        space: LabelSpace,
        sure: NDArray[np.float64],
        config: ConsensusConfig,
        student: Encoder,
        seed: int,
    ) -> tuple[DescriptionClassifier, StudentFit]:
        """Train the student on the descriptions, unless a view was, and then on the consensus."""
        own = [one for one in members if isinstance(one, DescriptionClassifier) and one.started_from_ == student.name]
        model: Any = own[0] if own else self._member(len(members), student, space, config, seed)
        anchors = model.head_.label_vectors(space)
        result = train_student(
            model.encoder_,
            space,
            texts,
            found.probabilities,
            sure,
            anchors,
            self.teaching or StudentConfig(),
            seed=seed,
            checkpoint=self.checkpoint,
            callbacks=self.callbacks,
            verbose=self.verbose,
        )
        if result.curve.stop_reason == "interrupted":
            raise KeyboardInterrupt  # half a student is no answer; the checkpoint keeps it
        clear_finished(self.checkpoint, result.curve)
        vectors = encode_labels(model.encoder_, space)  # the encoder has moved, and the labels with it
        taught = DescriptionClassifier.from_state(replace(model.state(), label_vectors=vectors))
        taught.encoder = model.encoder
        return taught, result

    def _open_student(self) -> Encoder | None:
        """Open the encoder that is the student, so that a wrong name is told before any work."""
        return None if self.student is None or self.student == WORDS else as_encoder(self.student)

    def __sklearn_tags__(self) -> Tags:
        tags = super().__sklearn_tags__()
        tags.input_tags.two_d_array = False
        tags.input_tags.one_d_array = True
        tags.input_tags.string = True
        tags.target_tags.required = False
        return tags


def as_prior(prior: Mapping[str, float] | None, space: LabelSpace) -> NDArray[np.float64] | None:
    """Return how often each label is expected, [label], with sum 1; None without a prior.

    Raises:
        ConfigError: a label is missing or unknown, or a share is not above 0.
    """
    if prior is None:
        return None
    if not isinstance(prior, Mapping) or set(prior) != set(space.names):
        raise ConfigError(f"prior must give each label a share ({', '.join(space.names)}). Got {prior!r} instead.")
    for name, share in prior.items():
        check_number(f"prior[{name!r}]", share, above=0)
    shares = np.array([float(prior[name]) for name in space.names])
    return shares / shares.sum()


def _scale(model: Classifier, config: ConsensusConfig) -> float:
    """Return what a view's logits are multiplied by, so that encoders have the temperature of the configuration."""
    return model.decision().temperature / config.temperature if isinstance(model, DescriptionClassifier) else 1.0
