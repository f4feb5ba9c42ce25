"""What `fit` does where a text may have several labels: read the documents, and set the cuts on their scores."""

import hashlib
import json
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Any, final

import numpy as np
from numpy.typing import NDArray

from labelspace.checks import check_number
from labelspace.classify.cuts import Cuts, Truth, cuts_of_mean, cuts_of_pool, cuts_of_rows
from labelspace.corpus import Pool, as_documents, sample_pool
from labelspace.corpus.label_sets import LabelSets, as_label_sets
from labelspace.errors import ConfigError, InputError
from labelspace.labels import LabelSpace
from labelspace.labels.document import SEPARATOR

DOCUMENTS = 5000
"""Maximum number of unlabelled documents that the cuts are set on."""

LEAST_DOCUMENTS = 20
"""With fewer documents a mean and a deviation are too uncertain for a cut."""


@final
@dataclass(frozen=True)
class Material:
    """The documents that cuts are set on."""

    texts: Sequence[str]
    """The documents."""

    sets: LabelSets | None
    """Their labels; None: they are unlabelled."""

    pool: Pool | None
    """The pool that they are, if they are unlabelled."""


def check_several(space: LabelSpace, several: object, labels_per_text: object, threshold: float | None) -> LabelSpace:
    """Check the arguments that concern several labels, and return the label space with its `several`.

    Raises:
        ConfigError: an argument is invalid, or does nothing here.
    """
    if not isinstance(several, (bool, np.bool_)):
        raise ConfigError(f"several must be True or False. Got {several!r} instead.")
    if several and not space.several:
        space = replace(space, several=True)
    if labels_per_text is not None:
        if not space.several:
            raise ConfigError("labels_per_text needs several=True, or several: true in the label file.")
        check_number("labels_per_text", labels_per_text, above=0)
    if space.several and threshold is not None:
        raise ConfigError(
            "threshold does nothing with several labels, each of which has a cut of its own; leave it out, or say "
            "labels_per_text."
        )
    return space


def material(space: LabelSpace, X: Any, y: Any, labels_per_text: float | None, *, seed: int) -> Material:
    """Read the documents that the cuts are set on.

    Args:
        space: the labels.
        X: documents, a path to a file of them, or a `corpus.Pool`, which is taken as it was drawn.
        y: their labels, as `as_label_sets` takes them; None: unlabelled documents.
        labels_per_text: the stated mean number of labels of a text, or None.
        seed: draws the documents if there are more than `DOCUMENTS`.

    Raises:
        ConfigError: `labels_per_text` beside labelled rows, or more than there are labels.
        InputError: no documents, too few, or `y` does not fit them.
    """
    if labels_per_text is not None:  # only here: it may be more than the labels that stay after `remove_label`
        check_number("labels_per_text", labels_per_text, above=0, below=len(space))
    if X is None:
        raise InputError(
            "several labels need documents to set their cuts on, and X is None; pass unlabelled documents, fit(pool), "
            "or rows with their labels, fit(X, y)."
        )
    if y is None:
        pool = X if isinstance(X, Pool) else sample_pool(X, size=DOCUMENTS, seed=seed, what="X")
        found = Material(pool.texts, None, pool)
    else:
        if labels_per_text is not None:
            raise ConfigError("labels_per_text does nothing beside labelled rows, which set the cuts; leave one out.")
        texts = as_documents(X)
        sets = as_label_sets(y, space.names, n_documents=len(texts), separator=SEPARATOR)
        if not sets.truth.any():
            raise InputError("y gives no document a label, so there is nothing to set a cut on; leave y out.")
        found = Material(texts, sets, None)
    if len(found.texts) < LEAST_DOCUMENTS:
        raise InputError(
            f"the cuts of several labels need {LEAST_DOCUMENTS} different documents or more. Got "
            f"{len(found.texts)}; give more documents like those to predict."
        )
    return found


def set_cuts(
    given: Material, space: LabelSpace, labels_per_text: float | None, score: Callable[[Any], NDArray[np.float32]]
) -> Cuts:
    """Return the cuts of the labels.

    Args:
        given: the documents.
        space: the labels.
        labels_per_text: the stated mean number of labels of a text; None: from the documents.
        score: returns the scores of documents, [text label].
    """
    scores = score(list(given.texts))
    if given.sets is not None:
        return cuts_of_rows(space.names, scores, given.sets.truth, given.sets.known)
    if labels_per_text is not None:
        return cuts_of_mean(space.names, scores, labels_per_text)
    return cuts_of_pool(space.names, scores)


def digest_of(space: LabelSpace, anchor: str) -> str:
    """Return a digest of what scores depend on beside the encoder: the labels' texts, and the anchor."""
    return hashlib.sha256(json.dumps([space.to_dict(), anchor], sort_keys=True).encode()).hexdigest()[:16]


def joined_names(labels: Sequence[str], chosen: Truth) -> NDArray[np.object_]:
    """Return the names of each text's labels, sorted and joined by `|`; None where there is none.

    Example:
        >>> joined_names(("sports", "money"), np.array([[True, True], [False, False]])).tolist()
        ['money|sports', None]
    """
    order = sorted(range(len(labels)), key=labels.__getitem__)
    found = np.empty(len(chosen), dtype=object)
    for row, own in enumerate(chosen):
        found[row] = SEPARATOR.join(labels[column] for column in order if own[column]) or None
    return found
