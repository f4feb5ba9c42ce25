"""What several views of a pool agree on, step by step; each step is left out where it is not safe.

    views        scores of each view, divided by its temperature
    levelled     a bias per label and view (prior.py)
    mean         of the views' log-probabilities
    smoothed     over the neighbours, in the space where near documents agree most (geometry/neighbours.py)
    words        a view by words learns from these answers, and its log-probabilities are added

The mean of log-probabilities is a product of experts: a view that is sure against a label can rule it out. The view by
words sees what encoders do not, single words, and learns from thousands of answers, of which most are right: training
on another view's answers is co-training (Blum and Mitchell, 1998, "Combining labeled and unlabeled data with
co-training").
"""

from collections.abc import Sequence
from dataclasses import asdict, dataclass, field
from typing import Any, final

import numpy as np
from numpy.typing import NDArray
from scipy.special import log_softmax, softmax

from labelspace.classify.by_joint import FLOOR, TINY, Seen, by_words
from labelspace.classify.by_words import ByWords
from labelspace.config import ConsensusConfig
from labelspace.consensus.agreement import kappa
from labelspace.consensus.prior import levelled, shift_to
from labelspace.geometry.neighbours import Graph, smooth
from labelspace.labels import LabelSpace
from labelspace.seeds import child_seed

Table = NDArray[np.float64]
Columns = NDArray[np.intp]


@final
@dataclass(frozen=True, kw_only=True)
class Step:
    """One step of the consensus."""

    name: str
    """What was done."""

    kept: bool
    """Whether it was kept."""

    reason: str
    """Why, in plain words."""

    changed: float
    """Share of the documents whose likeliest label it changed, or would have changed."""


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

    steps: tuple[Step, ...]
    """What was done, and what was left out."""

    alone: NDArray[np.intp] = field(repr=False)
    """[view text], column of the likeliest label by each view; -1 where it was not asked."""

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
        found = []
        for one in self.alone:
            both = [(one >= 0) & (other >= 0) for other in self.alone]
            found.append(
                [
                    kappa(one[asked], other[asked], len(self.labels))
                    for other, asked in zip(self.alone, both, strict=True)
                ]
            )
        return found

    def to_dict(self) -> dict[str, Any]:
        """Return what a report shows, as plain values."""
        shares = np.bincount(self.logits.argmax(axis=1), minlength=len(self.labels)) / len(self.logits)
        return {
            "views": list(self.views),
            "documents": len(self.logits),
            "steps": [asdict(step) for step in self.steps],
            "shares": {name: float(share) for name, share in zip(self.labels, shares, strict=True)},
            "agreement": self.agreement(),
            "config": self.config.to_dict(),
        }


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
    """
    labels = len(space)
    judge = _Judge(config, labels)
    few = ""
    if len(texts) < config.documents_per_label * labels:
        few = f"{len(texts)} documents are too few for {labels} labels"
    plain = [log_softmax(view.logits, axis=1) for view in views]
    shifts, logits = np.zeros((len(views), labels)), _mean(plain)
    if prior is not None or config.alpha < 1:
        found = np.array([_shift(each, config, prior) for each in plain])
        shifted = _mean([log_softmax(each + by, axis=1) for each, by in zip(plain, found, strict=True)])
        if judge.keeps("levelled", logits, shifted, few, asked_for=prior is not None):
            shifts, logits = found, shifted
    near, graph, smoothed, words = None, None, None, None
    if config.neighbours and any(view.vectors is not None for view in views):
        near, graph = _best_space(views, logits.argmax(axis=1), config, seed=seed)
        mixed = smooth(softmax(logits, axis=1), graph.own, rounds=config.rounds, own=config.own)
        if judge.keeps(f"smoothed in the space of {names[near]}", logits, mixed, few):
            # As it will be saved, so that a loaded model answers alike.
            smoothed, logits = mixed.astype(np.float32), np.log(mixed + TINY)
        else:
            near = graph = None
    if config.words:
        across = words_across(list(texts), logits.argmax(axis=1), space, config, seed=seed)
        alike = len(np.unique(logits.argmax(axis=1))) == 1
        against = few or ("all documents have the same label" if alike else "")
        if judge.keeps("words", logits, across, against, result=logits + across):
            words = ByWords.learn(list(texts), logits.argmax(axis=1), space.names, C=config.C, seed=seed)
            logits = logits + across
    return Consensus(
        labels=space.names,
        views=tuple(names),
        logits=log_softmax(logits, axis=1),
        shifts=shifts,
        steps=tuple(judge.steps),
        alone=np.array([np.where(_asked(each), np.nan_to_num(each).argmax(axis=1), -1) for each in plain]),
        near=near,
        graph=graph,
        smoothed=smoothed,
        words=words,
        config=config,
    )


@final
class _Judge:
    """Decides whether a step is safe, and writes down why."""

    def __init__(self, config: ConsensusConfig, labels: int) -> None:
        self._config, self._labels = config, labels
        self.steps: list[Step] = []

    def keeps(
        self,
        name: str,
        before: Table,
        after: Table,
        against: str,
        *,
        asked_for: bool = False,
        result: Table | None = None,
    ) -> bool:
        """Record a step, and return whether it is kept.

        Args:
            name: what was done.
            before: [text label], the answers so far.
            after: [text label], the answers of the step.
            against: a reason to leave it out, or empty.
            asked_for: True keeps it whatever comes.
            result: [text label], the answers with the step; None: those of the step.
        """
        one, other = before.argmax(axis=1), after.argmax(axis=1)
        agreed = kappa(one, other, self._labels)
        if not against and agreed < self._config.min_agreement:
            against = f"its answers have little to do with those before it (kappa {agreed:.2f})"
        if not against:
            against = self._swallows(one, other)
        kept = asked_for or not (self._config.guards and against)
        reason = "as given" if asked_for else against or f"kappa {agreed:.2f} with the answers before it"
        changed = float((one != (after if result is None else result).argmax(axis=1)).mean())
        self.steps.append(Step(name=name, kept=kept, reason=reason, changed=changed))
        return kept

    def _swallows(self, before: Columns, after: Columns) -> str:
        """Return a reason if one label has most of the documents after a step, and had far fewer before it."""
        grown = [
            after_share - before_share
            for before_share, after_share in zip(self._shares(before), self._shares(after), strict=True)
            if after_share > 0.5
        ]
        return "one label would have most of the documents" if grown and max(grown) > 0.2 else ""

    def _shares(self, columns: Columns) -> list[float]:
        return (np.bincount(columns, minlength=self._labels) / len(columns)).tolist()


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


def _asked(logits: Table) -> NDArray[np.bool_]:
    return ~np.isnan(logits[:, 0])


def _mean(each: Sequence[Table]) -> Table:
    """Return the mean over the views that were asked, [text label]."""
    return np.nanmean(np.array(each), axis=0)


def _shift(logits: Table, config: ConsensusConfig, prior: NDArray[np.floating] | None) -> Table:
    """Return the bias of each label; none for a view that saw a part, whose documents are not those of the pool."""
    return shift_to(logits, _wanted(logits, config, prior)) if _asked(logits).all() else np.zeros(logits.shape[1])


def _wanted(logits: Table, config: ConsensusConfig, prior: NDArray[np.floating] | None) -> Table:
    if prior is not None:
        return np.asarray(prior, dtype=np.float64) / np.sum(prior)
    return levelled(np.exp(logits).mean(axis=0), config.alpha)


def _best_space(views: Sequence[Seen], own: Columns, config: ConsensusConfig, *, seed: int) -> tuple[int, Graph]:
    """Return the view in whose space neighbours have the same label most often, and its graph."""
    found: list[tuple[float, int, Graph]] = []
    for number, view in enumerate(views):
        if view.vectors is not None:
            graph = Graph(view.vectors, neighbours=config.neighbours, seed=seed)
            found.append((float((own[graph.own] == own[:, None]).mean()), number, graph))
    _, number, graph = max(found, key=lambda each: each[0])
    return number, graph
