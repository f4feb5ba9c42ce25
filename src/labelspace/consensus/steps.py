"""What several views of a pool agree on, step by step; each step is left out where it is not safe.

    views        scores of each view, divided by its temperature; one that saw a part and is far off is left out
    levelled     a bias per label and view (prior.py), where the view by words then agrees far better
    mean         of the views' log-probabilities
    words        a view by words learns from these answers, and its log-probabilities are added
    smoothed     over the neighbours, in the space where near documents agree most (geometry/neighbours.py)

The mean of log-probabilities is a product of experts: a view that is sure against a label can rule it out. The view by
words sees what encoders do not, single words, and learns from thousands of answers, of which most are right: training
on another view's answers is co-training (Blum and Mitchell, 1998, "Combining labeled and unlabeled data with
co-training").

Words and neighbours favour frequent labels, and would do so more with each step: on IMDB's reviews a share of 0.73
became 0.93. So each of these steps ends with a bias per label that gives the labels their shares back.
"""

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field
from typing import Any, final

import numpy as np
from numpy.typing import NDArray
from scipy.special import log_softmax, softmax

from labelspace.classify.base import Classifier
from labelspace.classify.by_joint import FLOOR, TINY, ByJoint, Seen, by_words
from labelspace.classify.by_words import ByWords
from labelspace.config import ConsensusConfig
from labelspace.consensus.agreement import kappa
from labelspace.consensus.guards import Columns, Judge, Step, Table, asked
from labelspace.consensus.prior import LEAST, levelled, shift_answers_to, shift_to
from labelspace.geometry.neighbours import Graph, smooth
from labelspace.labels import LabelSpace
from labelspace.seeds import child_seed

LEVELLED = 0.5
"""The power of `alpha="auto"`, where shares are levelled."""

CLEARLY, SURE = 0.15, 0.7
"""Shares are levelled if the agreement of the words rises by this much; not tried where it is this high already."""


@final
@dataclass(frozen=True, kw_only=True)
class Consensus:
    """What the views of a pool agree on."""

    labels: tuple[str, ...]
    """[label], names."""

    views: tuple[str, ...]
    """[view], names."""

    logits: Table = field(repr=False)
    """[text label], log-probabilities of the documents of the pool."""

    shifts: Table
    """[view label], what was added to the log-probabilities of each view."""

    held: Table
    """[step label], what was added after the words and after the neighbours, so that labels keep their shares."""

    steps: tuple[Step, ...]
    """What was done, and what was left out."""

    alone: NDArray[np.intp] = field(repr=False)
    """[view text], column of the likeliest label by each view; -1 where it was not asked."""

    first: NDArray[np.intp] = field(repr=False)
    """[text], column of the likeliest label by the mean of the views, before any step."""

    across: NDArray[np.intp] | None = field(repr=False)
    """[text], column of the likeliest label by words that learnt it from other documents; None: words are no view."""

    near: int | None
    """The view whose space gives the neighbours; None: not smoothed."""

    graph: Graph | None = field(repr=False)
    """The pool in that space."""

    smoothed: NDArray[np.float32] | None = field(repr=False)
    """[text label], the smoothed probabilities."""

    words: ByWords | None = field(repr=False)
    """The view by words; None if it was left out."""

    config: ConsensusConfig
    """The settings."""

    @property
    def probabilities(self) -> Table:
        """[text label], the views' answers together."""
        return np.exp(self.logits)

    def agreement(self) -> list[list[float]]:
        """Return kappa of every two views, where both were asked, [view view]."""
        return [[self._kappa(one, other) for other in self.alone] for one in self.alone]

    def agreement_with_words(self) -> list[float] | None:
        """Return kappa of each view and the words, where it was asked, [view]; None if words are no view."""
        return None if self.across is None else [self._kappa(one, self.across) for one in self.alone]

    def _kappa(self, one: Columns, other: Columns) -> float:
        both = (one >= 0) & (other >= 0)
        return kappa(one[both], other[both], len(self.labels))

    def to_dict(self) -> dict[str, Any]:
        """Return what a report shows, as plain values."""
        last = self.logits.argmax(axis=1)
        return {
            "views": list(self.views),
            "documents": len(self.logits),
            "steps": [asdict(step) for step in self.steps],
            "changed": float((self.first != last).mean()),
            "shares_before": self._shares(self.first),
            "shares": self._shares(last),
            "agreement": self.agreement(),
            "agreement_with_words": self.agreement_with_words(),
            "config": self.config.to_dict(),
        }

    def _shares(self, columns: Columns) -> dict[str, float]:
        shares = np.bincount(columns, minlength=len(self.labels)) / len(columns)
        return dict(zip(self.labels, shares.tolist(), strict=True))


def agree(
    views: Sequence[Seen],
    names: Sequence[str],
    texts: Sequence[str],
    space: LabelSpace,
    config: ConsensusConfig,
    *,
    prior: NDArray[np.floating] | None = None,
    seed: int,
) -> Consensus:
    """Return what the views of a pool agree on.

    Args:
        views: what each says; a row of NaN is a document that it was not asked about. Every document needs a view.
        names: what each view is, for the report.
        texts: the documents.
        space: the labels.
        config: the steps.
        prior: [label], how often each label is expected, if that is known.
        seed: seed of all randomness.

    Returns:
        The answers, and what each step did.

    Example:
        >>> texts = ["the team won", "a team lost", "the bank closed", "a bank opened"] * 20
        >>> logits = np.tile([[1.0, 0.0], [0.2, 0.0], [0.0, 1.0], [0.1, 0.0]], (20, 1))
        >>> found = agree([Seen(logits)], ["view"], texts, LabelSpace.from_names(["sports", "money"]),
        ...               ConsensusConfig(), seed=0)
        >>> [step.name for step in found.steps if step.kept]
        ['words']
    """
    labels = len(space)
    prior = None if prior is None else np.asarray(prior, dtype=np.float64) / np.sum(prior)
    judge = Judge(config, labels)
    few = ""
    if len(texts) < config.documents_per_label * labels:
        few = f"{len(texts)} documents are too few for {labels} labels"
    learner = _WordsLearner(texts, space, config, seed)
    plain = [log_softmax(view.logits, axis=1) for view in views]
    heard = _heard(plain, names, judge)
    shifts = np.zeros((len(plain), labels))
    shifts[heard], logits = _levelled([plain[number] for number in heard], config, prior, learner, judge, few)
    shares, held = softmax(logits, axis=1).mean(axis=0), np.zeros((2, labels))
    words, across, near, graph, smoothed = None, None, None, None, None
    spaces = _spaces(views, config, seed=seed)
    chance = few
    if spaces:
        _, close = _best_space(spaces, logits.argmax(axis=1))
        chance = chance or judge.scattered(logits, close)
    if config.words:
        across = learner.answers(logits)
        joined, bias = _held(logits + across, shares, prior)
        chance = chance or judge.chance(logits, across, words=True)
        if judge.keeps("words", logits, joined, chance, reason=judge.agreed(logits, across)):
            words = ByWords.learn(list(texts), logits.argmax(axis=1), space.names, C=config.C, seed=seed)
            logits, held[0] = joined, bias
    if spaces:
        near, graph = _best_space(spaces, logits.argmax(axis=1))
        # As they will be saved, so that a loaded model answers alike.
        mixed = smooth(softmax(logits, axis=1), graph.own, rounds=config.rounds, own=config.own).astype(np.float32)
        joined, bias = _held(np.log(mixed.astype(np.float64) + TINY), shares, prior)
        if judge.keeps(
            f"smoothed in the space of {names[near]}", logits, joined, chance or judge.chance(logits, joined)
        ):
            smoothed, logits, held[1] = mixed, joined, bias
        else:
            near = graph = None
    return Consensus(
        labels=space.names,
        views=tuple(names),
        logits=log_softmax(logits, axis=1),
        shifts=shifts,
        held=held,
        steps=tuple(judge.steps),
        alone=np.array([np.where(asked(each), np.nan_to_num(each).argmax(axis=1), -1) for each in plain]),
        first=_mean([plain[number] for number in heard]).argmax(axis=1),
        across=None if across is None else across.argmax(axis=1),
        near=near,
        graph=graph,
        smoothed=smoothed,
        words=words,
        config=config,
    )


def joint_head(
    found: Consensus, space: LabelSpace, members: tuple[Classifier, ...] = (), scales: tuple[float, ...] = ()
) -> ByJoint:
    """Return what a consensus learnt as the head that joins its views; without members it joins what they said."""
    return ByJoint(
        members=members,
        scales=scales,
        shifts=found.shifts,
        held=found.held,
        space=space,
        columns={name: column for column, name in enumerate(space.names)},
        own=found.config.own,
        near=found.near,
        graph=found.graph,
        smoothed=found.smoothed,
        words=found.words,
    )


@final
class _WordsLearner:
    """The view by words on the pool; what it learnt from is remembered."""

    def __init__(self, texts: Sequence[str], space: LabelSpace, config: ConsensusConfig, seed: int) -> None:
        self._texts, self._space, self._config, self._seed = list(texts), space, config, seed
        self._kept: dict[bytes, Table] = {}

    def answers(self, logits: Table) -> Table:
        """Return log-probabilities by words that were learnt from other documents' answers, [text label]."""
        targets = logits.argmax(axis=1)
        key = targets.tobytes()
        if key not in self._kept:
            self._kept[key] = words_across(self._texts, targets, self._space, self._config, seed=self._seed)
        return self._kept[key]


def _heard(plain: Sequence[Table], names: Sequence[str], judge: Judge) -> list[int]:
    """Return the places of the views that count: all but those that saw a part and are far off the others there."""
    whole = [number for number, each in enumerate(plain) if asked(each).all()]
    heard = list(range(len(plain)))
    for number in sorted(set(heard) - set(whole)):
        without = [plain[other] for other in heard if other != number]
        against = judge.odd(plain[number], [plain[other] for other in whole])
        if against and not judge.keeps(names[number], _mean(without), _mean([*without, plain[number]]), against):
            heard.remove(number)
    return heard


def _levelled(
    plain: Sequence[Table],
    config: ConsensusConfig,
    prior: Table | None,
    learner: _WordsLearner,
    judge: Judge,
    few: str,
) -> tuple[Table, Table]:
    """Return the bias of each label and view, and the mean of the views."""
    none, own = np.zeros((len(plain), plain[0].shape[1])), _mean(plain)
    alpha = LEVELLED if config.alpha == "auto" else float(config.alpha)
    if prior is None and (alpha == 1 or (config.alpha == "auto" and not config.words)):
        return none, own
    found = np.array([_shift(each, alpha, prior) for each in plain])
    shifted = _mean([log_softmax(each + by, axis=1) for each, by in zip(plain, found, strict=True)])
    if prior is not None or config.alpha != "auto":
        reason = f"to the power alpha {alpha:g}" if prior is None else "to the shares of the prior"
        judge.record("levelled", own, shifted, reason)
        return found, shifted
    if few:
        return none, own
    before = judge.kappa(own, learner.answers(own))
    after = before if before > SURE else judge.kappa(shifted, learner.answers(shifted))
    if after < before + CLEARLY:
        return none, own
    judge.record("levelled", own, shifted, f"kappa of the words {before:.2f} without it, {after:.2f} with it")
    return found, shifted


def _held(logits: Table, shares: Table, prior: Table | None) -> tuple[Table, Table]:
    """Return log-probabilities whose mean over the pool has these shares, [text label], and the bias of each label.

    With a prior the shares of the answers are held at it.
    """
    least = np.maximum(shares, LEAST)
    bias = shift_to(logits, least / least.sum()) if prior is None else shift_answers_to(logits, prior)
    return log_softmax(logits + bias, axis=1), bias


def words_across(texts: list[str], targets: Columns, space: LabelSpace, config: ConsensusConfig, *, seed: int) -> Table:
    """Return log-probabilities by words, [text label], of each document by a model that has not seen it."""
    part = np.random.default_rng(child_seed(seed, "folds")).permutation(len(texts)) % config.folds
    found = np.full((len(texts), len(space)), FLOOR)
    for fold in range(config.folds):
        inside, outside = np.flatnonzero(part != fold), np.flatnonzero(part == fold)
        if len(inside) and len(outside):
            head = ByWords.learn(
                [texts[row] for row in inside.tolist()], targets[inside], space.names, C=config.C, seed=seed
            )
            found[outside] = by_words(head, [texts[row] for row in outside.tolist()], space)
    return found


def _mean(each: Sequence[Table]) -> Table:
    """Return the mean over the views that were asked, [text label]."""
    return np.nanmean(np.array(each), axis=0)


def _shift(logits: Table, alpha: float, prior: Table | None) -> Table:
    """Return the bias of each label; none for a view that saw a part, whose documents are not those of the pool."""
    if not asked(logits).all():
        return np.zeros(logits.shape[1])
    if prior is not None:
        return shift_answers_to(logits, prior)
    return shift_to(logits, levelled(np.exp(logits).mean(axis=0), alpha))


def _spaces(views: Sequence[Seen], config: ConsensusConfig, *, seed: int) -> dict[int, Graph]:
    """Return the neighbours in the space of each view that has one, by the view's place."""
    return {
        number: Graph(view.vectors, neighbours=config.neighbours, seed=seed)
        for number, view in enumerate(views)
        if view.vectors is not None and config.neighbours
    }


def _best_space(spaces: Mapping[int, Graph], own: Columns) -> tuple[int, Graph]:
    """Return the view in whose space neighbours have the same label most often, and its graph."""
    return max(spaces.items(), key=lambda each: float((own[each[1].own] == own[:, None]).mean()))
