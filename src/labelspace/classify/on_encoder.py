"""What a fitted classifier on an encoder does with documents, without scikit-learn."""

import functools
from collections.abc import Sequence
from typing import Any

from labelspace.classify.anchors import LabelVectors
from labelspace.classify.encoding import Matrix, own_vectors
from labelspace.classify.explanation import Explanation, check_asked, explain_answer, nearest_descriptions
from labelspace.classify.fitted import Fitted, check_fitted
from labelspace.classify.head import Judged
from labelspace.classify.long_texts import in_full, windows_of
from labelspace.corpus import Documents, Kind
from labelspace.encoders import Encoder
from labelspace.labels import LabelSpace


class OnEncoder(Fitted):
    """A fitted classifier with `encoder_` and `label_vectors_` (encoded label texts), which quotes descriptions."""

    encoder_: Encoder
    label_vectors_: dict[str, LabelVectors]

    def explain(self, text: str | tuple[str, str], *, top: int = 3, nearest: int = 2) -> Explanation:
        """Explain the label of one text.

        Args:
            text: one text, or a pair of texts if the model was fitted on pairs.
            top: number of labels to show.
            nearest: number of descriptions to quote for the winner and the runner-up, nearest by the encoder's vectors;
                none if the model does not read descriptions.

        Returns:
            Scores, margin and nearest descriptions, and the window of a long text that speaks most for the winner. The
            descriptions are those near the window that speaks most for their label. `print` shows all as text.
        """
        check_fitted(self)
        shown = check_asked(text, top, nearest, pairs=self.reads_ is Kind.PAIRS)
        documents = self.read([text if isinstance(text, tuple) else shown])
        answers = self.answers(documents)
        windows = windows_of(self, shown, self.label_space_)
        encode = functools.cache(lambda one: own_vectors(self.encoder_, Documents([one], self.reads_)))

        def vector(name: str) -> Matrix:
            return encode(documents.rows[0] if windows is None else windows.text(name))

        quoted = nearest_descriptions(vector, self.label_space_, self.label_vectors_, most=nearest)
        return explain_answer(
            shown,
            answers,
            space=self.label_space_,
            decision=self.decision(),
            top=top,
            nearest=quoted if nearest > 0 and self.head_.reads_descriptions else None,
            passage=windows and windows.passage(answers.labels[answers.likeliest[0]]),
        )

    def judge(self, documents: Sequence[Any], space: LabelSpace) -> Judged:
        """Return what the head says about texts or pairs of texts, long ones as the model reads them."""
        return in_full(self, documents, space, self.head_.judge(documents, space))
