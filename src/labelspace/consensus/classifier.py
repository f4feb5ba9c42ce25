"""`ConsensusClassifier`: unlabelled documents teach, through what several views of them agree on."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Self, final

import numpy as np
from numpy.typing import NDArray
from sklearn.utils.validation import check_is_fitted

from labelspace.checks import as_seed, check_callbacks
from labelspace.classify import Answers, Classifier, Explanation, WordsClassifier
from labelspace.classify.answers import AnswerBlock
from labelspace.classify.arguments import check_targets, one_label_space
from labelspace.classify.base import Answering
from labelspace.classify.by_joint import Seen
from labelspace.classify.joint import JointClassifier
from labelspace.classify.none_of_these import NoneLimit
from labelspace.classify.saved.state import SavedFit
from labelspace.classify.settings import merged
from labelspace.config import ConsensusConfig, StudentConfig
from labelspace.consensus.asking import View, ask, checked_views, scale_of
from labelspace.consensus.members import Members, as_options
from labelspace.consensus.prior import as_prior
from labelspace.consensus.signals import NEIGHBOURS
from labelspace.consensus.steps import Consensus, agree, joint_head
from labelspace.consensus.sureness import Sureness, of_student, sureness
from labelspace.consensus.teach import Taught, teach
from labelspace.consensus.views import WORDS, check_student, check_views, name_of
from labelspace.corpus import Pool, sample_pool
from labelspace.encoders import DEFAULT_ENCODER, Encoder
from labelspace.errors import ConfigError, InputError, warn
from labelspace.geometry.neighbours import Graph, check_size
from labelspace.labels import LabelSpace
from labelspace.progress import stage
from labelspace.training import Callback
from labelspace.training.fit_report import FitReport


@final
@dataclass(frozen=True, kw_only=True)
class ConsensusFit(FitReport):
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
    """How well the student follows the consensus, and its training, see `teach.Taught`; None without a student."""

    probabilities: dict[str, Any] | None
    """How the temperature was chosen, see `sureness.Sureness`; None if the documents do not tell one, or the model has
    one that was calibrated on rows."""

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
            "probabilities": self.probabilities,
            "seed": self.seed,
        }


@final
class ConsensusClassifier(Answering):
    """Several views of unlabelled documents correct one another; their consensus answers, or teaches a student.

    Args:
        labels: a LabelSpace, a label file, a dictionary like one, or a list of names.
        views: what looks at the documents: encoders by name (trained on the descriptions first), `zero-shot:NAME` (as
            it is), a folder of a saved classifier or `saved:` and its name on the hub, `nli:NAME`, `reranker:NAME`,
            `llm:NAME[#FILE]`, `openai:MODEL[@URL]` (the texts leave this machine), and `words`.
        student: None: the encoders and words among the views answer together; `"words"`: a linear model of words; an
            encoder by name: that encoder, trained on the consensus.
        prior: how often each label is expected, a mapping from names to shares; None: from the views.
        teaching: settings of an encoder's training on the consensus, a StudentConfig; None: its defaults.
        encoder_options: how views and a student that are given by name are opened, a mapping: device, dtype,
            max_tokens, token_budget, offline. Models that read text and label together take device, dtype and
            offline.
        checkpoint: folder for checkpoints, trained views and the answers of slow views. After a kill, the same fit on
            the same data resumes from it, and trains and asks nothing twice. None: none.
        callbacks: get the losses of every training step, see `training.callbacks`.
        seed: random seed.
        verbose: True shows progress.
        config: the steps of the consensus, a mapping of fields of `config.ConsensusConfig`.

    Attributes:
        model_: the fitted classifier that answers: a `JointClassifier`, a `WordsClassifier` or, with an encoder as
            student, a `DescriptionClassifier`; the only encoder itself if no step was safe. `save` saves it.
        consensus_: what the views agree on, step by step.
        fit_result_: the views, the steps, the pool and how well the student follows.
        label_space_, classes_: the labels.

    Example:
        >>> from labelspace import ConsensusClassifier
        >>> pool = [f"{text} {day}" for day in range(13) for text in ("the team won", "a match", "the bank", "prices")]
        >>> clf = ConsensusClassifier(["sports", "money"], views=["zero-shot:tests/data/tiny-bert", "words"])
        >>> clf.fit(pool).predict(["the team lost"]).shape
        (1,)
        >>> [step.name for step in clf.consensus_.steps]
        ['words', 'smoothed in the space of zero-shot:tests/data/tiny-bert']
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
        encoder_options: Mapping[str, Any] | None = None,
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
        self.encoder_options = encoder_options
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
            MissingDependencyError: the pool is so large that its neighbours need a package that is missing.

        Warns:
            LabelSpaceWarning: the student follows the consensus poorly.
        """
        space = one_label_space(self.labels, type(self).__name__)
        config, seed = self.consensus_config(), as_seed(self.seed)
        others, words = check_views(self.views, student=self.student)
        config = config if words else replace(config, words=False)
        check_student(self.student)
        check_callbacks(self.callbacks)
        if self.teaching is not None and not isinstance(self.teaching, StudentConfig):
            raise ConfigError(f"teaching must be a StudentConfig or None. Got {type(self.teaching).__name__} instead.")
        options, prior = as_options(self.encoder_options), as_prior(self.prior, space)
        check_targets(X, y, space)
        pool = _pool_of(X, config, seed)
        opener = Members(
            space=space,
            config=config,
            options=options,
            checkpoint=self.checkpoint,
            callbacks=self.callbacks,
            seed=seed,
            verbose=self.verbose,
        )
        views = checked_views(others, opener)
        student = self._open_student(opener)

        texts, names = list(pool.texts), [view.name for view in views]
        members, seen = ask(views, texts, opener)
        if words:
            stage("the views together, and words that learn from them", verbose=self.verbose)
        found = agree(seen, names, texts, space, config, prior=prior, seed=seed)
        least = config.documents_per_label * len(space)
        if len(texts) < least and not any(step.kept for step in found.steps):
            warn(
                f"{len(texts):,} documents are too few to correct the views' answers for {len(space):,} labels, which "
                f"stay as they are; give {least:,} or more."
            )
        sure = _sureness(found, seen, texts, space, seed)
        if self.student is None:
            scales = tuple(scale_of(one, view.given, config) for one, view in zip(members, views, strict=False))
            model, taught = _answering(found, members, scales, space), None
        else:
            taught = self._teach(found, views, members, student, texts, space, opener)
            model = taught.model
            sure = None if sure is None else of_student(sure, taught.logits, agreed=taught.agreed)
        alone = scale_of(model, views[0].given, config) if model in members else 1
        if sure is not None and not _set_temperature(model, sure, alone):
            sure = None
        self.consensus_, self.model_ = found, model
        self.fit_result_ = ConsensusFit(
            views=(*names, *([WORDS] if found.words is not None else [])),
            pool=pool.source,
            pool_documents=len(texts),
            consensus=found.to_dict(),
            student=None if self.student is None else name_of(self.student),
            taught=None if taught is None else taught.to_dict(),
            probabilities=None if sure is None else sure.to_dict(),
            seed=seed,
        )
        _tell_model(model, self.fit_result_)
        opener.clear()
        return self

    @property
    def label_space_(self) -> LabelSpace:  # pyright: ignore[reportIncompatibleVariableOverride]
        """The labels of `model_`."""
        return self._fitted().label_space_

    @property
    def classes_(self) -> NDArray[np.object_]:  # pyright: ignore[reportIncompatibleVariableOverride]
        """Sorted names of the labels of `model_`."""
        return self._fitted().classes_

    def answers(self, X: Any) -> Answers:
        """Return names, scores, probabilities and uncertainty; see `Classifier.answers`."""
        return self._fitted().answers(X)

    def answer_blocks(self, X: Any) -> Iterator[AnswerBlock]:
        """Yield what `answers` returns in blocks; see `Classifier.answer_blocks`."""
        return self._fitted().answer_blocks(X)

    def scores(self, texts: Sequence[str], space: LabelSpace) -> NDArray[np.float32]:
        """Score texts against a label space; see `classify.scorer.Scorer`."""
        return self._fitted().scores(texts, space)

    def explain(self, text: str, *, top: int = 3, nearest: int = 2) -> Explanation:
        """Explain the label of one text; see the class of `model_`."""
        return self._fitted().explain(text, top=top, nearest=nearest)

    @property
    def none_(self) -> NoneLimit | None:
        """The limit for "none of these" of `model_`."""
        return self._fitted().none_

    def set_coverage(self, coverage: float, X: Any) -> Self:
        """Label this share of documents like these; see `Classifier.set_coverage`."""
        self._fitted().set_coverage(coverage, X)
        return self

    def set_none(self, X: Any) -> Self:
        """Give no label to documents that fit none; see `Classifier.set_none`."""
        self._fitted().set_none(X)
        return self

    def save(self, folder: str | Path) -> Path:
        """Save `model_` as a folder that `labelspace.load` opens."""
        return self._fitted().save(folder)

    def push_to_hub(self, name: str, **options: Any) -> str:
        """Save `model_` as a repository of the hub; see `Classifier.push_to_hub`."""
        return self._fitted().push_to_hub(name, **options)

    def _fitted(self) -> Classifier:
        check_is_fitted(self)
        return self.model_

    def _open_student(self, opener: Members) -> Encoder | None:
        """Open the encoder that is the student, so that a wrong name is told before any work."""
        if self.student is None or self.student == WORDS:
            return None
        student = opener.checked(self.student)
        return student if isinstance(student, Encoder) else Encoder(student, **opener.options)

    def _teach(
        self,
        found: Consensus,
        views: Sequence[View],
        members: Sequence[Classifier],
        encoder: Encoder | None,
        texts: list[str],
        space: LabelSpace,
        opener: Members,
    ) -> Taught:
        """Teach the student; an encoder starts from the view of that encoder, or is trained on the descriptions."""
        stage(f"student: {name_of(self.student)}", verbose=self.verbose)
        student: Any = WORDS
        if encoder is not None:
            fast = zip(views, members, strict=False)  # slow views come last, and are no members
            same = (model for view, model in fast if opener.start_alike(view.given, model, encoder))
            student = next(same, None) or opener.fit(len(self.views), encoder)
        return teach(
            found,
            texts,
            space,
            student,
            teaching=self.teaching,
            seed=opener.seed,
            checkpoint=self.checkpoint,
            callbacks=self.callbacks,
            verbose=self.verbose,
        )


def _pool_of(X: Any, config: ConsensusConfig, seed: int) -> Pool:
    """Return the documents that are used.

    Raises:
        InputError: there are fewer than two.
        MissingDependencyError: there are so many that their neighbours need a package that is missing.
    """
    pool = X if isinstance(X, Pool) else sample_pool(X, size=config.documents, seed=seed, what="X")
    if len(pool.texts) > config.documents:
        fewer = sample_pool(list(pool.texts), size=config.documents, seed=seed)
        pool = replace(fewer, seen=pool.seen, source=pool.source)
    if len(pool.texts) < 2:
        raise InputError(f"a consensus needs two different documents or more. Got {len(pool.texts)}; give more.")
    if config.neighbours:
        check_size(len(pool.texts))
    return pool


def _answering(
    found: Consensus, members: tuple[Classifier, ...], scales: tuple[float, ...], space: LabelSpace
) -> Classifier:
    """Return the views of a consensus as one classifier, or the only one if no step was kept."""
    if len(members) == 1 and not any(step.kept for step in found.steps):
        return members[0]
    return JointClassifier.of(joint_head(found, space, members, scales))


def _sureness(
    found: Consensus, seen: Sequence[Seen], texts: list[str], space: LabelSpace, seed: int
) -> Sureness | None:
    """Return how sure the views together should be."""
    kept, graph, vectors = any(step.kept for step in found.steps), found.graph, seen[found.near or 0].vectors
    if vectors is not None and (graph is None or graph.count != NEIGHBOURS):
        graph = Graph(vectors, neighbours=NEIGHBOURS, seed=seed)
    return sureness(found.logits, texts, space, graph, consensus=kept, seed=seed)


def _set_temperature(model: Any, sure: Sureness, scale: float) -> bool:
    """Make a model as sure as it should be, and return whether it is: one calibrated on rows keeps its temperature.

    Args:
        model: the model.
        sure: the temperature of logits that were multiplied by `scale`.
        scale: see `scale_of`.
    """
    if not model.takes_temperature():
        return False
    model.tell(model.temperature_ / scale * sure.temperature, sure.to_dict())
    return True


def _tell_model(model: Any, result: ConsensusFit) -> None:
    """Write into the model who taught it, so that its saved folder says so."""
    if isinstance(model, (JointClassifier, WordsClassifier)):
        model.fit_result_ = result
    else:
        before: Any = getattr(model, "fit_result_", None)
        model.fit_result_ = SavedFit({**(before.to_dict() if before else {}), "consensus": result.to_dict()})
