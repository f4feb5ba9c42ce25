"""The head that reads words alone: TF-IDF and one weight per word and label. It needs no encoder."""

from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any, final

import numpy as np
from numpy.typing import NDArray
from sklearn.feature_extraction.text import TfidfVectorizer
from sklearn.linear_model import LogisticRegression

from labelspace.classify.head import Judged, columns_of
from labelspace.corpus import Documents
from labelspace.errors import ShapeError
from labelspace.labels import LabelSpace

# Words of one letter too.
TOKEN = r"(?u)\b\w+\b"

WINDOW = 4096
UNSEEN = float(np.log(1e-6))
"""Logit of a label that no training document had, below those of the others."""


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
        vectorizer = TfidfVectorizer(sublinear_tf=True, min_df=min_df, token_pattern=TOKEN)
        try:
            table: Any = vectorizer.fit_transform(texts)
        except ValueError:  # no word is in `min_df` texts
            vectorizer = TfidfVectorizer(sublinear_tf=True, token_pattern=TOKEN)
            table = vectorizer.fit_transform([*texts, "none"])[: len(texts)]
        known = np.unique(targets)
        matrix = np.zeros((len(names), table.shape[1]))
        bias = np.full(len(names), UNSEEN)
        if len(known) == 1:
            bias[known] = 0.0
        else:
            model: Any = LogisticRegression(C=C, max_iter=300, tol=1e-3, random_state=seed)
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
            scores[start : start + WINDOW] = (table @ self.weights.T + self.bias)[:, columns]
        return Judged(scores, None)

    def table(self, texts: list[str]) -> Any:
        """Return TF-IDF values, a sparse matrix [text word]."""
        return self._vectorizer.transform(texts)

    def spoken(self, text: str, label: str, *, most: int) -> tuple[tuple[str, float], ...]:
        """Return the words of a text that speak most for a label, each with what it adds to the logit."""
        row = self.table([text])
        # Compared with the mean of all labels: a weight that all labels share says nothing.
        weights = self.weights - self.weights.mean(axis=0)
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
    def _vectorizer(self) -> TfidfVectorizer:
        made = TfidfVectorizer(sublinear_tf=True, vocabulary=list(self.words), token_pattern=TOKEN)
        made.idf_ = self.idf
        return made
