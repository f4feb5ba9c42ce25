"""How far each label of a model can be trusted, by the agreements that an estimate of quality is made of."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import final

import numpy as np

from labelspace.consensus.signals import Columns, Signals, of_many

TRUSTED, DOUBTFUL = 0.75, 0.5
"""Lowest agreement of a label that is trusted, and, with many documents, of one that is doubtful."""

FEW_PER_LABEL = 5
"""Documents per label below which neither a low agreement nor a confusion with another label tells anything."""


@final
@dataclass(frozen=True)
class LabelTrust:
    """How far one label can be trusted."""

    name: str
    """Name of the label."""

    documents: int
    """Number of documents with this label."""

    agreement: float
    """How far words, and neighbours, agree with this label beyond chance, 0 to 1."""

    trust: str
    """`"trusted"`, `"doubtful"`, `"not to be trusted"`, `"too few documents"`, or `"none found"`."""

    why: str
    """What lowers it; empty if nothing does."""


def label_trust(
    answers: Columns, found: Signals, names: Sequence[str], *, consensus: bool = False
) -> tuple[LabelTrust, ...]:
    """Return the trust in each label, the label with most documents first."""
    counts = np.bincount(answers, minlength=len(names))
    trusts = []
    for column in np.argsort(-counts, kind="stable").tolist():
        agreement, why = label_agreement(answers, found, column), ""
        by_near = found.near is not None
        trust = trust_of(agreement, len(names), len(answers), neighbours=by_near, consensus=consensus)
        if counts[column] == 0:
            trust, why = "none found", "no document has it; the label may not occur, or its descriptions miss it"
        elif trust != "trusted" and counts[column] >= FEW_PER_LABEL:
            said = np.bincount(found.by_words[answers == column], minlength=len(names))
            said[column] = 0
            other = int(said.argmax())
            if said[other] >= 0.25 * counts[column] and len(names) > 2:
                why = f"hard to tell from {names[other]}"
        trusts.append(LabelTrust(str(names[column]), int(counts[column]), agreement, trust, why))
    return tuple(trusts)


def trust_of(agreement: float, labels: int, documents: int, *, neighbours: bool, consensus: bool) -> str:
    """Return the trust in a label: distrusted is what would agree too little with many documents as well.

    Args:
        agreement: its agreement.
        labels: number of labels.
        documents: number of documents, of all labels.
        neighbours: whether near documents count.
        consensus: whether the model is a consensus.

    Example:
        >>> [trust_of(0.3, 2, documents, neighbours=True, consensus=False) for documents in (3000, 100, 8)]
        ['not to be trusted', 'doubtful', 'doubtful']
    """
    if agreement >= TRUSTED:
        return "trusted"
    if of_many(agreement, labels, documents, neighbours=neighbours, consensus=consensus) >= DOUBTFUL:
        return "doubtful"
    return "not to be trusted" if documents >= FEW_PER_LABEL * labels else "too few documents"


def label_agreement(answers: Columns, found: Signals, column: int) -> float:
    """Return how far words, and neighbours, agree with a label beyond chance, 0 to 1; 0 without a document.

    Words: Dice's coefficient of the documents that have the label, and those that have it by words. Neighbours: the
    share of near documents with the label. By chance both are the label's share of all documents.
    """
    own = answers == column
    if not own.any():
        return 0.0
    shares = [2 * float((own & (found.by_words == column)).sum()) / float(own.sum() + (found.by_words == column).sum())]
    if found.near is not None:
        shares.append(float(found.near[own].mean()))
    chance = float(own.mean())
    return max(0.0, (float(np.mean(shares)) - chance) / (1 - chance)) if chance < 1 else 0.0
