"""The vectors of labels' texts, kept by text: an edit embeds only the texts that are new."""

import threading
from collections.abc import Callable, Sequence
from typing import final

import numpy as np

from labelspace.classify import ZeroShotClassifier
from labelspace.classify.anchors import LabelVectors, Matrix, encode_labels
from labelspace.classify.state import State
from labelspace.encoders import Encoder
from labelspace.labels import LabelSpace

MOST = 20_000
"""Number of texts that are kept; the oldest go first."""

BLOCK = 128
"""Documents that are encoded before the texts of labels have their turn."""


@final
class KnownTexts:
    """An encoder that remembers the texts of labels, and encodes for one thread at a time.

    Each text is encoded alone, so that its vector depends on nothing else.

    Args:
        encoder: the encoder; it is not changed.
    """

    def __init__(self, encoder: Encoder) -> None:
        self.encoder = encoder
        self._kept: dict[tuple[str, str], Matrix] = {}
        self.one_at_a_time = threading.Lock()
        """Is held while the encoder is used, or saved."""

    def model(self, space: LabelSpace) -> ZeroShotClassifier:
        """Return the untrained classifier of these labels."""
        state = State(
            encoder=self.encoder,
            started_from=self.encoder.name,
            space=space,
            label_vectors=self.label_vectors(space),
            parameters={"encoder": self.encoder},
        )
        return ZeroShotClassifier.from_state(state)

    def label_vectors(self, space: LabelSpace) -> dict[str, LabelVectors]:
        """Return the vectors of every label's texts by name, and those of `space.outside` by `OUTSIDE`."""
        return encode_labels(self, space)

    def documents(self, texts: Sequence[str], report: Callable[[int], None]) -> Matrix:
        """Return the vectors of documents, [text dim]; texts of labels are encoded in between."""
        parts = []
        for start in range(0, len(texts), BLOCK):
            with self.one_at_a_time:
                parts.append(self.encoder.encode(texts[start : start + BLOCK]))
            report(min(start + BLOCK, len(texts)))
        return np.concatenate(parts)

    def copy(self) -> Encoder:
        """Return an independent encoder, for training."""
        with self.one_at_a_time:
            return self.encoder.copy()

    # ---- what lint measures

    @property
    def max_tokens(self) -> int:
        """Longest input in tokens."""
        return self.encoder.max_tokens

    def count_tokens(self, texts: Sequence[str]) -> Sequence[int]:
        """Return the number of tokens of each text before truncation."""
        with self.one_at_a_time:
            return self.encoder.count_tokens(texts)

    # ---- what labels are encoded by, and lint compares

    def encode(self, texts: Sequence[str], *, role: str = "text") -> Matrix:
        """Return the vectors of texts of labels, [text dim]; only new ones are encoded."""
        found = np.empty((len(texts), self.encoder.dimension), dtype=np.float32)
        with self.one_at_a_time:
            for row, text in enumerate(texts):
                if (role, text) not in self._kept:
                    if len(self._kept) >= MOST:
                        self._kept.pop(next(iter(self._kept)))
                    self._kept[role, text] = self.encoder.encode([text], role=role)[0]
                found[row] = self._kept[role, text]
        return found

    def encode_apart(self, groups: Sequence[Sequence[str]], *, role: str = "text") -> list[Matrix]:
        """Return the vectors of groups of texts."""
        return [self.encode(texts, role=role) for texts in groups]
