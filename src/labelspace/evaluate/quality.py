"""How good a classifier is on documents without labels.

`signals.py` turns two agreements that need no label into ranges of accuracy and macro-F1, and `trust.py` judges each
label by them. Here a model is asked, and the report is written.
"""

from collections import Counter
from collections.abc import Sequence
from dataclasses import asdict, dataclass, replace
from typing import Any, NamedTuple, final

import numpy as np
from numpy.typing import NDArray

from labelspace.checks import as_seed
from labelspace.classify import Classifier
from labelspace.classify.by_joint import judged
from labelspace.classify.fitted import answerer, check_fitted
from labelspace.classify.head import Judged
from labelspace.classify.joint import JointClassifier
from labelspace.config import ConsensusConfig
from labelspace.consensus.signals import Columns, Range, Signals, Values, ranges, signals
from labelspace.corpus import Kind, as_targets
from labelspace.errors import ConfigError, InputError
from labelspace.evaluate.trust import TRUSTED, LabelTrust, label_trust
from labelspace.labels import LabelSpace
from labelspace.notebook import Report
from labelspace.seeds import child_seed
from labelspace.text_table import some_of, text_table
from labelspace.training.calibration import temperature_for_accuracy

DOCUMENTS = 10_000
"""Maximum number of documents looked at; more are drawn at random."""

FEWEST = 50
"""Fewest documents of an estimate."""

SHOWN = 10
"""Number of labels that a report lists at least, those that agree least, and of names in one of its lines."""

LISTED = ("doubtful", "not to be trusted")
"""A report lists every label of this trust; of the others it counts those beyond the first `SHOWN`."""

FEW = 100
"""Number of documents below which a range holds the truth less often than it states, see docs/estimate.md."""

ENOUGH = 100
"""Number of labelled documents from which on they measure by themselves."""

ROWS_PER_LABEL = 10
"""Labelled documents per label from which on their macro-F1 counts, and not only how many are right."""

RESAMPLED = 200
"""Samples of the bootstrap."""


@final
@dataclass(frozen=True, kw_only=True)
class Estimate(Report):
    """How good a classifier is likely to be on these documents. `print` it, or read its fields."""

    documents: int
    """Number of documents looked at."""

    labelled: int
    """Number of labelled documents among them."""

    accuracy: Range
    """Likely accuracy."""

    macro_f1: Range
    """Likely macro-F1."""

    words: float
    """Agreement of the answers with the words of the documents (kappa)."""

    neighbours: float | None
    """Agreement of the answers of near documents, beyond chance; None if the model has no vectors."""

    labels: tuple[LabelTrust, ...]
    """Each label, the one with most documents first."""

    notes: tuple[str, ...]
    """What lowers the estimate, in plain words."""

    refused: float | None = None
    """Share of documents that the model gives no label, which the ranges do not know; None: it has no limit."""

    def to_text(self) -> str:
        """Return a report."""
        near = "" if self.neighbours is None else f", with near documents {self.neighbours:.2f}"
        known = f", {self.labelled} of them labelled" if self.labelled else ""
        worst = sorted(self.labels, key=lambda one: (one.documents == 0, one.agreement))
        shown = [one for number, one in enumerate(worst) if number < SHOWN or one.trust in LISTED]
        kinds = Counter(one.trust for one in worst) - Counter(one.trust for one in shown)
        rows = [["label", "documents", "agreement", "trust"]]
        rows += [[one.name, f"{one.documents:,}", f"{one.agreement:.2f}", one.trust] for one in shown]
        rows += [[f"{number:,} more", "", "", trust] for trust, number in kinds.items()]
        reasons: dict[str, list[str]] = {}
        for one in self.labels:
            if one.why:
                reasons.setdefault(one.why, []).append(one.name)
        notes = [f"{some_of(names)}: {why}" for why, names in reasons.items()] + list(self.notes)
        lines = [
            f"accuracy {self.accuracy}, macro-F1 {self.macro_f1}; from {self.documents:,} documents{known}",
            f"each range holds the truth in about {8 if self.documents >= FEW else 7} of 10 cases",
            f"agreement beyond chance: with words {self.words:.2f}{near}",
            "",
            text_table(rows, left=(0, 3), rules=(1,)),
        ]
        return "\n".join([*lines, *(["", *(f"- {note}" for note in notes)] if notes else [])])


def estimate(model: Any, X: Any, y: Any = None, *, seed: int = 0) -> Estimate:
    """Estimate how good a classifier is on documents like these, without labels or with a few.

    Every document counts with its likeliest label, also where the model would answer "none of these" or abstain;
    `refused` says how many these are.

    Args:
        model: a fitted classifier.
        X: [text] documents, 50 or more, like those to predict; a repeated one counts once, without a label if its
            copies have several. A student looks better on
            documents that it learnt from, so give others.
        y: [text] label names, None where a document has none. The labelled documents must be a random draw: those that
            were picked because they are hard, or easy, mislead. None: no labels.
        seed: seed of the draw, if there are more than 10,000 documents, and of the model of words.

    Returns:
        Ranges that held the truth in the share of cases that docs/estimate.md tells.

    Raises:
        ConfigError: `model` is not a fitted classifier of single texts.
        InputError: there are fewer than 50 documents, all get the same label, or a label is unknown.

    Example:
        >>> from labelspace import ZeroShotClassifier
        >>> clf = ZeroShotClassifier(["sports", "money"], encoder="tests/data/tiny-bert").fit()
        >>> pool = [f"the {who} won {row}" for who in ("team", "bank", "player") for row in range(20)]
        >>> found = estimate(clf, pool)
        >>> 0 <= found.accuracy.low <= found.accuracy.expected <= found.accuracy.high <= 1
        True
    """
    look = _look(model, X, y, as_seed(seed))
    return _with_refused(_estimated(look), look)


def calibrate(model: Any, X: Any, y: Any = None, *, seed: int = 0) -> Estimate:
    """Set a classifier's `temperature_` so that its answers are as sure, on average, as they are likely to be right.

    No answer changes, but a `min_probability` may then refuse other documents; choose it afterwards.

    Args:
        model: a fitted classifier; its `temperature_` is set, until the next `fit`; another value of its parameter
            `temperature` comes before it.
        X: [text] documents, as for `estimate`.
        y: [text] label names, None where a document has none, as for `estimate`.
        seed: as for `estimate`.

    Returns:
        The estimate of quality that the temperature was chosen by.

    Raises:
        ConfigError: `model` is not a fitted classifier of single texts, or it has no temperature to set.
        InputError: as for `estimate`.

    Example:
        >>> from labelspace import ZeroShotClassifier
        >>> clf = ZeroShotClassifier(["sports", "money"], encoder="tests/data/tiny-bert").fit()
        >>> pool = [f"the {who} won {row}" for who in ("team", "bank", "player") for row in range(20)]
        >>> found = calibrate(clf, pool)
        >>> bool(abs(clf.predict_proba(pool).max(axis=1).mean() - found.accuracy.expected) < 0.01)
        True
    """
    look = _look(model, X, y, as_seed(seed))
    own: Any = look.model
    if not own.takes_temperature():
        raise ConfigError(f"{type(own).__name__} has no temperature to set; its probabilities are those of its rows.")
    found = _estimated(look)
    # From the parameter, so that a second call finds what the first one found.
    factor = own.temperature_ / own.temperature
    by = {"accuracy": asdict(found.accuracy), "documents": found.documents, "labelled": found.labelled}
    own.tell(own.temperature * temperature_for_accuracy(look.logits * factor, found.accuracy.expected), by)
    return _with_refused(found, look)


class _Look(NamedTuple):
    """A model, and what it says about some documents."""

    model: Classifier
    texts: list[str]
    targets: Columns
    judged: Judged
    logits: Values
    vectors: NDArray[np.float32] | None
    seed: int


def _look(model: Any, X: Any, y: Any, seed: int) -> _Look:
    """Check the arguments, and ask the model about the documents."""
    model = answerer(model)
    if not isinstance(model, Classifier):
        raise ConfigError(f"model must be a classifier of labelspace. Got {type(model).__name__} instead.")
    check_fitted(model)
    if model.reads_ is not Kind.TEXTS:
        raise ConfigError("an estimate is about single texts, and this model reads pairs; use evaluate with labels.")
    if model.label_space_.several:
        raise ConfigError(
            "an estimate is about one label a text, and this model may give several; evaluate it instead."
        )
    texts = [str(text) for text in model.read(X).rows]
    space = model.label_space_
    targets = np.array(
        as_targets(y, space.names, n_documents=len(texts)) if y is not None else [-1] * len(texts), dtype=np.intp
    )
    texts, targets = _drawn(*_once(texts, targets), seed)
    if len(texts) < FEWEST:
        raise InputError(f"an estimate needs {FEWEST} different documents or more. Got {len(texts)}; give more.")
    found, vectors = _judged(model, texts)
    logits = found.scores.astype(np.float64) * (1 / model.decision().temperature)
    answers = logits.argmax(axis=1)
    if len(np.unique(answers)) == 1:
        raise InputError(
            f"all {len(texts)} documents get the label {space.names[answers[0]]}, and answers that do not differ tell "
            "nothing; look at the descriptions of the labels, or give other documents."
        )
    return _Look(model, texts, targets, found, logits, vectors, seed)


def _estimated(look: _Look) -> Estimate:
    model, texts, targets, _, logits, vectors, seed = look
    answers = logits.argmax(axis=1)
    found = signals(answers, texts, model.label_space_, vectors, seed=seed)
    return estimate_of(answers, found, model.label_space_, targets, consensus=_of_consensus(model))


def _with_refused(found: Estimate, look: _Look) -> Estimate:
    """Tell as well what share of the documents gets no label by the model's limits."""
    rule, space = look.model.decision(), look.model.label_space_
    limits = (rule.threshold, rule.min_probability, rule.limit, rule.none)
    if all(limit is None for limit in limits) and not space.outside:
        return found
    names = rule.answers(space.names, *look.judged).names
    refused = float(np.mean([name is None for name in names]))
    if not refused:
        return replace(found, refused=refused)
    share = "less than 1%" if refused < 0.01 else f"{refused:.0%}"
    note = f"the model gives {share} of the documents no label; the ranges count each with its likeliest one"
    return replace(found, refused=refused, notes=(*found.notes, note))


def estimate_of(
    answers: Columns, found: Signals, space: LabelSpace, targets: Columns, *, consensus: bool = False
) -> Estimate:
    """Return the estimate of answers whose signals are known.

    Args:
        answers: [text] columns of labels.
        found: their signals.
        space: the labels.
        targets: [text] columns of the right labels, -1 where none is known; see `estimate` for which may be given.
        consensus: whether the model learnt from unlabelled documents, whose words and neighbours it then follows.
    """
    known = targets >= 0
    labelled, right = int(known.sum()), int((answers[known] == targets[known]).sum())
    enough = labelled >= ROWS_PER_LABEL * len(space)
    # A label that is known to occur and that no document gets has an F1 of 0.
    missed = np.setdiff1d(targets[known], answers)
    accuracy, macro_f1 = ranges(
        found,
        len(space),
        len(answers),
        most_f1=1 - len(missed) / len(space),
        consensus=consensus,
        labelled=labelled,
        right=right,
        measured_f1=_macro_f1(answers[known], targets[known], len(space)) if enough else None,
    )
    trusts = label_trust(answers, found, space.names, consensus=consensus)
    return Estimate(
        documents=len(answers),
        labelled=labelled,
        accuracy=accuracy,
        macro_f1=macro_f1,
        words=found.words,
        neighbours=found.neighbours,
        labels=trusts,
        notes=_notes(answers, found, trusts, space.names, targets[known]),
    )


def _macro_f1(answers: Columns, targets: Columns, labels: int) -> tuple[float, float]:
    """Return macro-F1 over the labels that occur, and its standard error by the bootstrap."""
    cells, counts = np.unique(targets * labels + answers, return_counts=True)
    truth, given = np.divmod(cells, labels)
    drawn = np.random.default_rng(0).multinomial(len(targets), counts / len(targets), size=RESAMPLED)
    found = np.vstack([counts, drawn])
    right, all_of = np.zeros((labels, len(found))), np.zeros((labels, len(found)))
    for of in (truth, given):
        np.add.at(all_of, of, found.T)
    np.add.at(right, truth[truth == given], found.T[truth == given])
    f1 = (2 * right / np.maximum(all_of, 1))[np.unique(truth)].mean(axis=0)
    return float(f1[0]), max(float(f1[1:].std()), 1 / len(targets))


def _notes(
    answers: Columns, found: Signals, trusts: Sequence[LabelTrust], names: Sequence[str], known: Columns
) -> tuple[str, ...]:
    labels, labelled, notes = len(names), len(known), []
    shares = np.bincount(answers, minlength=labels) / len(answers)
    most = int(shares.argmax())
    # The label with most documents is the first.
    if shares[most] > max(1.5 / labels, 0.4) and trusts[0].agreement < TRUSTED:
        notes.append(f"{names[most]} has {shares[most]:.0%} of the documents, and may attract those of other labels")
    if found.words < ConsensusConfig.min_agreement:
        notes.append("the answers have little to do with the words of the documents; most may be wrong")
    if len(answers) < ConsensusConfig.documents_per_label * labels:
        notes.append(f"{len(answers):,} documents are few for {labels} labels; with more, words agree more")
    if labelled >= ROWS_PER_LABEL and len(np.unique(known)) == 1:
        notes.append(f"all {labelled:,} labelled documents have one label, {names[known[0]]}; is it a random draw?")
    if labelled >= ENOUGH:
        notes.append(f"{labelled:,} labelled documents are enough to measure: use evaluate")
    return tuple(notes)


def _judged(model: Classifier, texts: list[str]) -> tuple[Judged, NDArray[np.float32] | None]:
    """Return the output of the model's head, and vectors of the documents, from one run of the encoder."""
    if not isinstance(model, JointClassifier):
        return judged(model, texts, model.label_space_)
    head = model.head_
    seen = head.see(texts)
    vectors = [one.vectors for one in seen if one.vectors is not None]
    own = seen[head.near].vectors if head.near is not None else (vectors[0] if vectors else None)
    return head.judge_seen(seen, texts, model.label_space_), own


def _of_consensus(model: Classifier) -> bool:
    fit = getattr(model, "fit_result_", None)
    found = {} if fit is None else fit.to_dict().get("consensus", {})
    return any(step["kept"] for step in found.get("steps", ()))


def _once(texts: list[str], targets: Columns) -> tuple[list[str], Columns]:
    """Return each text once, without a label if its copies have several: copies would agree with one another."""
    kept: dict[str, set[int]] = {}
    for text, target in zip(texts, targets.tolist(), strict=True):
        kept.setdefault(text, set()).update([target] if target >= 0 else [])
    return list(kept), np.array([next(iter(own)) if len(own) == 1 else -1 for own in kept.values()], dtype=np.intp)


def _drawn(texts: list[str], targets: Columns, seed: int) -> tuple[list[str], Columns]:
    """Return all documents, or a draw of them that keeps the labelled ones."""
    if len(texts) <= DOCUMENTS:
        return texts, targets
    known, others = np.flatnonzero(targets >= 0), np.flatnonzero(targets < 0)
    draw = np.random.default_rng(child_seed(seed, "estimate"))
    most = max(DOCUMENTS - len(known), 0)
    rows = np.sort(np.concatenate([known, draw.permutation(others)[:most]]))
    return [texts[row] for row in rows.tolist()], targets[rows]
