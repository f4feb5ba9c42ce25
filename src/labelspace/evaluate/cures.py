"""The words that part two labels on a pool, and the sentences that say how to mend a description."""

from collections.abc import Sequence
from typing import Any, final

import numpy as np

from labelspace.classify.by_words import ByWords, words_in_lower_case
from labelspace.consensus.signals import Columns
from labelspace.consensus.without import Without
from labelspace.labels import LabelSpace
from labelspace.labels.label import quoted
from labelspace.labels.words import is_unspaced

NAMED = 5
"""Number of words that a cure names."""


@final
class Cures:
    """Cures by words: a linear model of words learns the answers of the pool.

    Args:
        texts: the documents.
        answers: [text] columns of labels.
        space: the labels.
        seed: seed of the model of words.
    """

    def __init__(self, texts: Sequence[str], answers: Columns, space: LabelSpace, *, seed: int) -> None:
        self._space, self._texts = space, texts
        self._model = ByWords.learn(list(texts), answers, space.names, seed=seed)
        table: Any = self._model.table(list(texts))
        own = np.eye(len(space))[answers]
        counts = own.sum(axis=0)[:, None]
        self._means = np.asarray(table.T @ own).T / np.maximum(counts, 1)
        having = np.asarray((table > 0).T.astype(float) @ own).T
        self._shares = (having + 0.5) / (counts + 1)
        elsewhere = (having.sum(axis=0) - having + 0.5) / (counts.sum() - counts + 1)
        telling = np.array([len(word) > 1 and not word.isdecimal() for word in self._model.words])
        self._own = telling & (self._shares >= 2 * elsewhere)
        """[label, word] Whether the documents of a label have a word twice as often as all others."""

    def parting(self, one: int, other: int, *, new_to: int | None = None) -> tuple[tuple[str, ...], tuple[str, ...]]:
        """Return the words that speak most for the one label, and for the other.

        A word counts by its weight, and by how much of it the documents of the label have. It parts the two only if it
        is twice as frequent in these as in the other's, and as in those of all other labels together, so `the` does
        not. Single letters and numbers are left out.

        Args:
            one: column of a label.
            other: column of another.
            new_to: column of a label; words of its descriptions are left out. None: no word is.
        """
        known = (
            {word for text in self._space.descriptions[new_to] for word in words_in_lower_case(text)}
            if new_to is not None
            else ()
        )
        return (
            self._best(self._speaks(one, other) * self._means[one], known),
            self._best(self._speaks(other, one) * self._means[other], known),
        )

    def of_description(self, without: Without, other: int | None, *, draws: bool, hurts: bool) -> str:
        """Return what to do with a description.

        Args:
            without: the description, and the answers without it.
            other: column of the label that most documents would go to, or come from; None: none would.
            draws: whether more documents would go than come.
            hurts: whether the macro-F1 expected without it is higher.
        """
        own, names = without.label, self._space.names
        if not hurts:
            return "Keep it: without it the answers agree no better." if without.wins else self._unused(own)
        if other is None:
            return self._unused(own)
        mine, _ = self.parting(own, other, new_to=own)
        if not draws:
            return (
                f"It keeps documents with {names[other]} that look like {names[own]}: write it nearer to them"
                f"{_with(mine)}."
            )
        text = self._space.descriptions[own][without.place]
        pulling = self._pulling(text, own, other)
        leave = f"leave out {_listed(pulling)}, and " if pulling else ""
        return (
            f"It draws documents that look like {names[other]}: {leave}say what only documents of {names[own]} have"
            f"{_with(mine)}."
        )

    def of_pair(self, one: int, other: int, parting: tuple[tuple[str, ...], tuple[str, ...]]) -> str:
        """Return what to do with two labels that are confused; `parting` are the words of each."""
        sides = [
            (self._space.names[column], found) for column, found in zip((one, other), parting, strict=True) if found
        ]
        told = "; ".join(f"of {name} {_listed(found)}" for name, found in sides)
        tell = f" Words that part them: {told}." if told else ""
        return f"Decide which label these documents have, and say it in the descriptions of both.{tell}"

    def _unused(self, own: int) -> str:
        weights = self._model.weights[own] - self._model.weights.mean(axis=0)
        found = self._best(np.where(self._own[own], weights, 0.0) * self._means[own], ())
        return f"Rewrite it, or leave it out: describe documents that the label has here{_with(found)}."

    def _pulling(self, text: str, own: int, other: int) -> tuple[str, ...]:
        """Return the words of a text that speak for another label."""
        row = self._model.table([text])
        added = np.zeros(len(self._model.words))
        added[row.indices] = row.data * self._speaks(other, own)[row.indices]
        return self._best(added, ())

    def _speaks(self, one: int, other: int) -> Any:
        """Return [word] weights for one label against another, 0 for words that the labels share."""
        weights = self._model.weights[one] - self._model.weights[other]
        return np.where(self._own[one] & (self._shares[one] >= 2 * self._shares[other]), weights, 0.0)

    def _best(self, values: Any, known: Any) -> tuple[str, ...]:
        found: list[str] = []
        for place in np.argsort(-values, kind="stable").tolist():
            if values[place] <= 0 or len(found) == NAMED:
                break
            word = self._model.words[place]
            if word not in known and not self._joins(found, word):
                found.append(word)
        return tuple(found)

    def _joins(self, found: list[str], word: str) -> bool:
        """Join two letters of a script without spaces to the run that they go on in the texts; return whether."""
        if not is_unspaced(word):
            return False
        for at, run in enumerate(found):
            longer = [run + word[1:]] * (run[-1] == word[0]) + [word[:-1] + run] * (word[-1] == run[0])
            whole = next((one for one in longer if any(one in text for text in self._texts)), None)
            if whole is not None or word in run:
                found[at] = whole or run
                return True
        return False


def _listed(found: Sequence[str]) -> str:
    return ", ".join(map(quoted, found))


def _with(found: Sequence[str]) -> str:
    return f", with words such as {_listed(found)}" if found else ""
