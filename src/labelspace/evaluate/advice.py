"""Which description hurts: what a pool of unlabelled documents says about each description, and how to mend it."""

from collections import Counter
from dataclasses import dataclass
from typing import Any, final

import numpy as np

from labelspace.checks import as_seed
from labelspace.classify.anchors import encode_labels
from labelspace.classify.arguments import as_encoder, as_label_space
from labelspace.config import ConsensusConfig
from labelspace.consensus.signals import NEIGHBOURS, Range, Signals, ranges
from labelspace.consensus.without import Descriptions, Without
from labelspace.corpus import as_documents
from labelspace.encoders import DEFAULT_ENCODER
from labelspace.errors import ConfigError, InputError
from labelspace.evaluate.cures import Cures
from labelspace.evaluate.drawing import short
from labelspace.evaluate.quality import DOCUMENTS, FEWEST
from labelspace.geometry.neighbours import Graph
from labelspace.labels.lint_words import words
from labelspace.notebook import Report
from labelspace.seeds import child_seed

JUDGED = 10
"""Number of descriptions, those that help least, whose words are learnt anew without them."""

HURTS = 0.0005
"""A description hurts if the macro-F1 expected without it is higher by this much, the last digit that is printed."""

SHOWN = 5
"""Maximum number of pairs of labels, and of descriptions among documents of others, that a report shows."""

ASTRAY, FEW = 0.5, 5
"""A description is among the documents of other labels if they are more than this share of those that are nearer to it
than to any other description, which are this many or more."""

PAIRS, BETWEEN = 20, 3
"""Maximum number of confused pairs, and of the documents that each shows."""

CONFUSED = 3
"""Fewest documents of a confused pair."""

FREQUENT, SHARED = 50, 0.1
"""Of this many most frequent words of the pool, the share that label texts in the same language have at least."""


@final
@dataclass(frozen=True, kw_only=True)
class DescriptionAdvice:
    """What the pool says about one description. Changes are those that leaving it out would make."""

    label: str
    """Name of its label."""

    text: str
    """The description."""

    wins: int
    """Number of documents with its label that are nearer to it than to the label's other descriptions."""

    leaving: int
    """Number of documents that its label would lose."""

    coming: int
    """Number of documents that its label would gain."""

    other: str | None
    """The label that most of these would go to, or come from; None: no document would change its label."""

    near: int
    """Number of documents that are nearer to it than to any other description, of all labels."""

    strays: int
    """Number of these that have another label."""

    among: str | None
    """The label that most of the strays have; None: there are none."""

    words: float
    """Change of the agreement with words (kappa); negative is worse."""

    neighbours: float
    """Change of the agreement of near documents; negative is worse."""

    macro_f1: float | None
    """Change of the expected macro-F1; from 0.0005 on it hurts. None: not among the ten that help least."""

    cure: str
    """What to do, as a sentence."""

    @property
    def astray(self) -> bool:
        """Whether it lies among the documents of other labels."""
        return self.near >= FEW and self.strays > ASTRAY * self.near


@final
@dataclass(frozen=True, kw_only=True)
class PairAdvice:
    """Two labels that the pool confuses."""

    labels: tuple[str, str]
    """Their names."""

    confused: int
    """Number of documents with the one label by the encoder, and the other by words."""

    between: tuple[str, ...]
    """The documents between them: these are the two nearest labels, with the smallest differences of cosines."""

    words: tuple[tuple[str, ...], tuple[str, ...]]
    """Words of the documents of each that part them."""

    cure: str
    """What to do, as a sentence."""


@final
@dataclass(frozen=True, kw_only=True)
class Advice(Report):
    """What a pool says about descriptions. `print` it, or read its fields."""

    documents: int
    """Number of documents looked at."""

    words: float
    """Agreement of the answers with the words of the documents (kappa)."""

    neighbours: float
    """Agreement of the answers of near documents, beyond chance."""

    macro_f1: Range
    """Likely macro-F1 with all descriptions, the encoder untrained."""

    descriptions: tuple[DescriptionAdvice, ...]
    """Each description, the worst first."""

    pairs: tuple[PairAdvice, ...]
    """The labels that are confused most, the worst first; 20 at most."""

    notes: tuple[str, ...]
    """What else to know."""

    def to_text(self) -> str:
        """Return a report."""
        lines = [
            f"{len(self.descriptions)} descriptions on {self.documents:,} documents, the worst first; "
            f"expected macro-F1 {self.macro_f1}",
            f"agreement beyond chance: with words {self.words:.2f}, with near documents {self.neighbours:.2f}",
        ]
        for number, one in enumerate(self.descriptions[:JUDGED], 1):
            lines += ["", f"{number}. {one.label}: {short(one.text, 100)!r}", f"   {_told(one)}", f"   -> {one.cure}"]
        astray = sorted((one for one in self.descriptions if one.astray), key=lambda one: -one.strays)
        if astray:
            lines += ["", f"descriptions among the documents of other labels ({len(astray)})"]
        for one in astray[:SHOWN]:
            lines += ["", f"- {one.label}: {short(one.text, 100)!r}"]
            lines += [f"   {one.strays:,} of the {one.near:,} documents that are nearest to it have another label"]
            lines += [f"   -> If it describes {one.among}, move it there; else say what only {one.label} has."]
        if self.pairs:
            lines += ["", "labels that the documents confuse"]
        for one in self.pairs[:SHOWN]:
            told = f"- {one.labels[0]} and {one.labels[1]}: {one.confused:,} documents; between them"
            lines += ["", told, *(f"     {short(text, 100)!r}" for text in one.between), f"   -> {one.cure}"]
        return "\n".join([*lines, *(["", *(f"note: {note}" for note in self.notes)] if self.notes else [])])


def advise(labels: Any, pool: Any, *, encoder: Any = DEFAULT_ENCODER, seed: int = 0) -> Advice:
    """Say what each description does on unlabelled documents, which labels they confuse, and what to mend.

    Documents are encoded once, and labels are the means of their descriptions. The agreement with words and near
    documents, and the macro-F1 expected from both, are those of `estimate`.

    Args:
        labels: a LabelSpace, a label file, a dictionary like one.
        pool: [text] documents, 50 or more, like those to predict; a repeated one counts once. Of more than 10,000 as
            many are drawn. Those that lie outside of all labels, as the space's `outside` says, are left out.
        encoder: a name, a folder (also of a saved model), an Encoder, or a dictionary of its arguments.
        seed: seed of the draw and of the model of words.

    Returns:
        The advice: descriptions and pairs of labels, the worst first, each with a cure.

    Raises:
        LabelFileError: the labels are invalid.
        ConfigError: a text may have several labels.
        InputError: no label has a description, there are fewer than 50 documents, all get the same label, or their
            words are not those of the labels' texts.

    Example:
        >>> labels = {"sports": ["The team won.", "A player lost."], "money": ["The bank won.", "Prices fell."]}
        >>> pool = [f"the {who} {what} {row}" for who in ("team", "bank") for what in ("won", "fell")
        ...         for row in range(20)]
        >>> found = advise(labels, pool, encoder="tests/data/tiny-bert")
        >>> sum(one.wins for one in found.descriptions) == found.documents
        True
    """
    seed, space = as_seed(seed), as_label_space(labels)
    if space.several:
        raise ConfigError(
            "advice is about one label a text, and with several: true a text may have several; judge these labels "
            "without a pool, or take several out of a copy of them."
        )
    if not any(space.descriptions):
        raise InputError("no label has a description, so there is none to judge; write three to five for each label.")
    texts = list(dict.fromkeys(as_documents(pool, what="pool")))
    if len(texts) < FEWEST:
        raise InputError(f"advice needs {FEWEST} different documents or more. Got {len(texts)}; give more.")
    if len(texts) > DOCUMENTS:
        draw = np.random.default_rng(child_seed(seed, "advice")).permutation(len(texts))[:DOCUMENTS]
        texts = [texts[row] for row in np.sort(draw).tolist()]
    opened = as_encoder(encoder)
    vectors = opened.encode(texts)
    graph = Graph(vectors, neighbours=NEIGHBOURS, seed=seed)
    return advice_on(Descriptions(texts, vectors, space, encode_labels(opened, space), graph, seed=seed))


def advice_on(found: Descriptions) -> Advice:
    """Return the advice on descriptions whose documents are encoded.

    Raises:
        InputError: all documents get the same label, or their words are not those of the labels' texts.
    """
    texts, space, signals = found.texts, found.space, found.signals
    if len(np.unique(found.answers)) == 1:
        raise InputError(
            f"all {len(texts)} documents get the label {space.names[found.answers[0]]}, which tells nothing about "
            "single descriptions; rewrite those of that label, or give other documents."
        )
    foreign = _foreign(found)
    if foreign and signals.words < ConsensusConfig.min_agreement:
        raise InputError(
            f"{foreign}, and the answers do not follow words (kappa {signals.words:.2f}); give documents and "
            "descriptions in one language, and of one kind."
        )
    cures = Cures(texts, found.answers, space, seed=found.seed)
    described = _descriptions(found, cures)
    unused = [one for one in described if not one.wins]
    notes = [
        f"{name} has no description, and is represented by its verbalizer"
        for name, own in zip(space.names, space.descriptions, strict=True)
        if not own
    ]
    notes += [f"{found.outside:,} documents lie outside of all labels, and are left out"] if found.outside else []
    notes += [foreign] if foreign else []
    notes += [f"no document is nearest to {len(unused)} of the descriptions"] if unused else []
    if len(texts) < ConsensusConfig.documents_per_label * len(space):
        notes.append(f"{len(texts):,} documents are few for {len(space)} labels; give more")
    assert signals.neighbours is not None
    return Advice(
        documents=len(texts),
        words=signals.words,
        neighbours=signals.neighbours,
        macro_f1=_expected(found, signals),
        descriptions=described,
        pairs=_pairs(found, cures),
        notes=tuple(notes),
    )


def _foreign(found: Descriptions) -> str:
    """Return that documents and labels' texts have hardly a frequent word in common; empty if they have."""
    known = {word for text in found.space.verbalizers for word in words(text)}
    known |= {word for texts in found.space.descriptions for text in texts for word in words(text)}
    counts = Counter(word for text in found.texts for word in set(words(text)))
    frequent = [word for word, _ in counts.most_common(FREQUENT)]
    shared = sum(word in known for word in frequent)
    if shared >= SHARED * len(frequent):
        return ""
    return (
        f"{shared} of the {len(frequent)} most frequent words of the documents occur in the labels' texts, so they may "
        "be in different languages"
    )


def _expected(found: Descriptions, signals: Signals) -> Range:
    return ranges(signals, len(found.space), len(found.texts), consensus=False)[1]


def _descriptions(found: Descriptions, cures: Cures) -> tuple[DescriptionAdvice, ...]:
    """Return every description, the worst first: those whose words are learnt anew, then the others."""
    order = sorted(found.each(), key=lambda one: -(one.words + one.neighbours))
    now = _expected(found, found.signals).expected
    judged = []
    for one in order[:JUDGED]:
        signals = found.signals_of(one.answers)
        change = _expected(found, signals).expected - now
        judged.append(_advice(found, cures, one, words=signals.words - found.signals.words, macro_f1=change))
    judged.sort(key=lambda one: -(one.macro_f1 or 0.0))
    return (*judged, *(_advice(found, cures, one, words=one.words, macro_f1=None) for one in order[JUDGED:]))


def _advice(
    found: Descriptions, cures: Cures, one: Without, *, words: float, macro_f1: float | None
) -> DescriptionAdvice:
    names, labels = found.space.names, len(found.space)
    leaves = np.bincount(one.answers[(found.answers == one.label) & (one.answers != one.label)], minlength=labels)
    comes = np.bincount(found.answers[(found.answers != one.label) & (one.answers == one.label)], minlength=labels)
    leaving, coming = int(leaves.sum()), int(comes.sum())
    strays = one.near[found.answers[one.near] != one.label]
    among = np.bincount(found.answers[strays], minlength=labels)
    most = leaves if leaving >= coming else comes
    other = int(most.argmax()) if most.any() else None
    return DescriptionAdvice(
        label=names[one.label],
        text=found.space.descriptions[one.label][one.place],
        wins=one.wins,
        leaving=leaving,
        coming=coming,
        other=None if other is None else names[other],
        near=len(one.near),
        strays=len(strays),
        among=names[int(among.argmax())] if len(strays) else None,
        words=words,
        neighbours=one.neighbours,
        macro_f1=macro_f1,
        cure=cures.of_description(
            one, other, draws=leaving >= coming, hurts=macro_f1 is not None and macro_f1 >= HURTS
        ),
    )


def _pairs(found: Descriptions, cures: Cures) -> tuple[PairAdvice, ...]:
    """Return the labels that the encoder and words confuse, those with most such documents first."""
    names = found.space.names
    both = zip(found.answers.tolist(), found.signals.by_words.tolist(), strict=True)
    counts = Counter((min(pair), max(pair)) for pair in both if pair[0] != pair[1])
    nearest = np.argsort(-found.scores, axis=1, kind="stable")[:, :2]
    at = np.arange(len(nearest))
    margins = found.scores[at, nearest[:, 0]] - found.scores[at, nearest[:, 1]]
    nearest.sort(axis=1)
    pairs = []
    for (one, other), count in sorted(counts.items(), key=lambda each: (-each[1], each[0]))[:PAIRS]:
        if count < CONFUSED:
            break
        rows = np.flatnonzero((nearest == (one, other)).all(axis=1))
        rows = rows[np.argsort(margins[rows], kind="stable")][:BETWEEN]
        parting = cures.parting(one, other)
        pairs.append(
            PairAdvice(
                labels=(names[one], names[other]),
                confused=count,
                between=tuple(found.texts[row] for row in rows.tolist()),
                words=parting,
                cure=cures.of_pair(one, other, parting),
            )
        )
    return tuple(pairs)


def _told(one: DescriptionAdvice) -> str:
    """Return the numbers of a description in words."""
    moves = [f"{one.leaving:,} would leave {one.label}"] if one.leaving else []
    moves += [f"{one.coming:,} would come to {one.label}"] if one.coming else []
    where = f", most {'for' if one.leaving >= one.coming else 'from'} {one.other}"
    moved = (" and ".join(moves) + where) if moves else "no document would change its label"
    change = "" if one.macro_f1 is None else f"; expected macro-F1 {one.macro_f1:+.3f}"
    return f"nearest to {one.wins:,} documents; without it {moved}{change}"
