"""The vectors of labels' texts, kept by text: an edit embeds only the texts that are new."""

import threading
from collections import OrderedDict
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, final

import numpy as np

from labelspace.classify.anchors import LabelVectors, Matrix, encode_labels
from labelspace.classify.answers import Answers
from labelspace.classify.by_anchors import ByAnchors
from labelspace.classify.decision import Decision
from labelspace.classify.saved.state import State
from labelspace.config import DecisionConfig
from labelspace.encoders import Encoder
from labelspace.labels import LabelSpace

if TYPE_CHECKING:
    from labelspace.classify import ZeroShotClassifier

BLOCK = 128
"""Documents that are encoded before the texts of labels have their turn."""


@final
class KnownTexts:
    """An encoder that remembers the texts of labels, and encodes for one thread at a time.

    Each text is encoded alone, so that its vector depends on nothing else.

    Args:
        encoder: the encoder; it is not changed.
        most: number of texts that are kept; those that were used least recently go first.
    """

    def __init__(self, encoder: Encoder, most: int = 20_000) -> None:
        self.encoder, self.most = encoder, most
        self._kept: OrderedDict[tuple[str, str], Matrix] = OrderedDict()
        self.one_at_a_time = threading.Lock()
        """Is held while the encoder is used, or saved."""

    def model(self, space: LabelSpace) -> "ZeroShotClassifier":
        """Return the untrained classifier of these labels."""
        from labelspace.classify import ZeroShotClassifier  # with scikit-learn, which a service does without

        state = State(
            encoder=self.encoder,
            started_from=self.encoder.name,
            space=space,
            label_vectors=self.label_vectors(space),
            parameters={"encoder": self.encoder},
        )
        return ZeroShotClassifier.from_state(state)

    def answers(self, vectors: Matrix, space: LabelSpace) -> Answers:
        """Return the answers of vectors [text dim], the same as those of `ZeroShotClassifier(anchor="both")`."""
        head = ByAnchors(self.encoder, space, self.label_vectors(space), "both")
        # Not a classifier's own temperature, which may have been set for the answers to its own labels.
        decision = Decision(temperature=DecisionConfig.temperature)
        return decision.answers(space.names, head.judge_vectors(vectors, space).scores)

    def label_vectors(self, space: LabelSpace) -> dict[str, LabelVectors]:
        """Return the vectors of every label's texts by name, and those of `space.outside` by `OUTSIDE`."""
        return encode_labels(self, space)

    def unknown(self, space: LabelSpace) -> list[tuple[str, str]]:
        """Return role and text of what `label_vectors` would encode, each once, without waiting for the encoder."""
        texts = [("label", verbalizer) for verbalizer in space.verbalizers]
        texts += [("text", text) for label in space.labels for text in (*label.descriptions, *label.excludes)]
        return [each for each in dict.fromkeys(texts) if each not in self._kept]

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

    def tokenize(self, texts: Sequence[str]) -> Sequence[Sequence[int]]:
        """Return the tokens of each text that the encoder reads."""
        with self.one_at_a_time:
            return self.encoder.tokenize(texts)

    # ---- what labels are encoded by, and lint compares

    def encode(self, texts: Sequence[str], *, role: str = "text") -> Matrix:
        """Return the vectors of texts of labels, [text dim]; only new ones are encoded."""
        found = np.empty((len(texts), self.encoder.dimension), dtype=np.float32)
        with self.one_at_a_time:
            for row, text in enumerate(texts):
                if (role, text) not in self._kept:
                    if len(self._kept) >= self.most:
                        self._kept.popitem(last=False)
                    self._kept[role, text] = self.encoder.encode([text], role=role)[0]
                self._kept.move_to_end((role, text))
                found[row] = self._kept[role, text]
        return found

    def encode_apart(self, groups: Sequence[Sequence[str]], *, role: str = "text") -> list[Matrix]:
        """Return the vectors of groups of texts."""
        return [self.encode(texts, role=role) for texts in groups]
