"""The head that reads words alone: TF-IDF and one weight per word and label. It needs no encoder."""

import re
import warnings
from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from itertools import chain, repeat
from typing import Any, final

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import csr_matrix

from labelspace.classify.head import Judged, columns_of
from labelspace.corpus import Documents
from labelspace.errors import ShapeError, own_filters
from labelspace.labels import LabelSpace
from labelspace.labels.words import in_lower_case, is_unspaced, with_pairs, words_of

WINDOW = 4096
UNSEEN = float(np.log(1e-6))
"""Logit of a label that no training document had, below those of the others."""

# ASCII: letters in lower case, and a space for what is not part of a word.
_ASCII_WORDS = bytes(code if re.fullmatch(r"\w", chr(code)) else ord(" ") for code in range(128)).lower().ljust(256)


def words_in_lower_case(text: str) -> list[str]:
    """Return the words of a text in lower case, those of one letter too.

    Chinese, Japanese, Thai and other scripts without spaces are parted into letters and pairs of letters.

    Example:
        >>> words_in_lower_case("The bank's café, 24/7"), words_in_lower_case("東京都")
        (['the', 'bank', 's', 'café', '24', '7'], ['東', '京', '都', '東京', '京都'])
    """
    if text.isascii():  # three times as fast as the expression, with the same words
        return text.encode().translate(_ASCII_WORDS).decode().split()
    words = words_of(in_lower_case(text))
    return with_pairs(words) if is_unspaced(text) else words


@final
@dataclass(frozen=True)
class ByWords:
    """A linear model of TF-IDF values."""

    words: tuple[str, ...]
    """[word], in the order of their columns."""

    idf: NDArray[np.float64]
    """[word], inverse document frequencies."""

    weights: NDArray[np.float64]
    """[label word]."""

    bias: NDArray[np.float64]
    """[label]."""

    columns: dict[str, int]
    """Row of each label in `weights`, by name."""

    reads_descriptions = False
    makes_vectors = False

    @classmethod
    def learn(
        cls,
        texts: list[str],
        targets: NDArray[np.intp],
        names: tuple[str, ...],
        *,
        weights: NDArray[np.floating] | None = None,
        C: float = 3.0,
        min_df: int = 2,
        seed: int = 0,
    ) -> "ByWords":
        """Fit the model.

        Args:
            texts: [text].
            targets: [text], column of each text's label.
            names: [label].
            weights: [text], how much each text counts; None: all the same.
            C: inverse strength of the regularization.
            min_df: words in fewer texts are ignored, unless none would be left.
            seed: seed of the solver.

        Example:
            >>> texts = ["the team won", "a team lost", "the bank closed", "a bank opened"]
            >>> head = ByWords.learn(texts, np.array([0, 0, 1, 1]), ("sports", "money"), min_df=1)
            >>> int(head.judge(["my team"], LabelSpace.from_names(["sports", "money"])).scores.argmax())
            0
        """
        from sklearn.feature_extraction.text import TfidfVectorizer
        from sklearn.linear_model import LogisticRegression

        split: Any = words_in_lower_case
        vectorizer = TfidfVectorizer(sublinear_tf=True, min_df=min_df, analyzer=split)
        try:
            table: Any = vectorizer.fit_transform(texts)
        except ValueError:  # no word is in `min_df` texts
            vectorizer = TfidfVectorizer(sublinear_tf=True, analyzer=split)
            table = vectorizer.fit_transform([*texts, "none"])[: len(texts)]
        known = np.unique(targets)
        matrix = np.zeros((len(names), table.shape[1]))
        bias = np.full(len(names), UNSEEN)
        if len(known) == 1:
            bias[known] = 0.0
        else:
            model: Any = LogisticRegression(C=C, max_iter=300, tol=1e-3, random_state=seed)
            with own_filters():  # few texts of many labels look like a regression to scikit-learn
                warnings.filterwarnings("ignore", "The number of unique classes", UserWarning)
                model.fit(table, targets, sample_weight=weights)
            if len(known) == 2:  # scikit-learn keeps one row, that of the second label
                matrix[known[1]], bias[known] = model.coef_[0], (0.0, model.intercept_[0])
            else:
                matrix[known], bias[known] = model.coef_, model.intercept_
        words = tuple(vectorizer.get_feature_names_out().tolist())
        return cls(
            words,
            np.asarray(vectorizer.idf_, dtype=np.float64),
            matrix,
            bias,
            {name: column for column, name in enumerate(names)},
        )

    def judge(self, documents: Any, space: LabelSpace) -> Judged:
        """Return logits, [text label].

        Raises:
            InputError: a label has no logit.
        """
        columns = columns_of(self.columns, space, who="a model of words", cure="Fit it with that label.")
        texts = list(documents.rows) if isinstance(documents, Documents) else list(documents)
        scores = np.empty((len(texts), len(columns)), dtype=np.float32)
        for start in range(0, len(texts), WINDOW):
            table = self.table(texts[start : start + WINDOW])
            scores[start : start + WINDOW] = (table @ self._weights_by_word + self.bias)[:, columns]
        return Judged(scores, None)

    def table(self, texts: Sequence[str]) -> Any:
        """Return TF-IDF values, a sparse matrix [text word]: the bits of scikit-learn's TfidfVectorizer, but faster."""
        found = [words_in_lower_case(text) for text in texts]
        columns = np.fromiter(map(self._column_of.get, chain.from_iterable(found), repeat(-1)), dtype=np.int32)
        known = columns >= 0
        ends = np.cumsum([0, *map(len, found)])
        starts = np.concatenate([[0], np.cumsum(known)])[ends]
        table: Any = csr_matrix(
            (np.ones(starts[-1]), columns[known], starts), shape=(len(found), len(self.words)), dtype=np.float64
        )
        table.sum_duplicates()  # and sorts, so that the sums below have one order
        values, rows = table.data, np.repeat(np.arange(len(found)), np.diff(table.indptr))
        np.log(values, out=values)
        values += 1
        values *= self.idf[table.indices]
        # bincount adds one value after the other, as scikit-learn does.
        values /= np.sqrt(np.bincount(rows, weights=values * values, minlength=len(found)))[rows]
        return table

    def spoken(self, text: str, label: str, *, most: int) -> tuple[tuple[str, float], ...]:
        """Return the words of a text that speak most for a label, each with what it adds to the logit."""
        row = self.table([text])
        # Compared with the mean of the labels there are: a weight that all labels share says nothing.
        weights = self.weights - self.weights[list(self.columns.values())].mean(axis=0)
        added = row.data * weights[self.columns[label], row.indices]
        best = np.argsort(-added, kind="stable")[:most]
        return tuple((self.words[row.indices[place]], float(added[place])) for place in best if added[place] > 0)

    def tensors(self) -> dict[str, NDArray[np.generic]]:
        """Return the vocabulary, the document frequencies and the weights; labels in the order of `columns`."""
        order = list(self.columns.values())
        return {
            "vocabulary": np.frombuffer("\n".join(self.words).encode(), dtype=np.uint8),
            "idf": self.idf,
            "weights": self.weights[order],
            "bias": self.bias[order],
        }

    @classmethod
    def from_tensors(cls, tensors: dict[str, NDArray[Any]], names: tuple[str, ...]) -> "ByWords":
        """Return the head that `tensors` was called on; `names` are its labels, in order."""
        words = tuple(tensors["vocabulary"].tobytes().decode().split("\n"))
        if len(words) != len(tensors["idf"]) or tensors["weights"].shape != (len(names), len(words)):
            raise ShapeError("the words, their weights and the labels do not fit together")
        columns = {name: column for column, name in enumerate(names)}
        return cls(words, tensors["idf"], tensors["weights"], tensors["bias"], columns)

    def edited(self, change: Any) -> "ByWords":
        """Return a head with a label renamed or removed."""
        return replace(self, columns=change(self.columns))

    @cached_property
    def _column_of(self) -> dict[str, int]:
        return {word: column for column, word in enumerate(self.words)}

    @cached_property
    def _weights_by_word(self) -> NDArray[np.float64]:
        """[word label], in the order in which the sparse product reads it."""
        return np.ascontiguousarray(self.weights.T)
