"""Texts longer than the encoder reads: cut, or read in windows whose scores are joined for each label.

The first window is what cutting leaves, encoded in the same batch, so that a text that fits has the same scores, to the
last bit, either way.
"""

import logging
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from itertools import groupby, islice
from typing import TYPE_CHECKING, Any, final

import numpy as np
from numpy.typing import NDArray

from labelspace.checks import check_choice
from labelspace.classify.anchors import GRID, Matrix
from labelspace.classify.distinct import at_once, in_windows
from labelspace.classify.head import Judged
from labelspace.config import LONG_TEXTS
from labelspace.config.encoding import WINDOW
from labelspace.encoders.passages import passages, sentences
from labelspace.errors import warn
from labelspace.labels import LabelSpace

if TYPE_CHECKING:
    from labelspace.encoders import Encoder

_logger = logging.getLogger("labelspace")

BEST = 3
"""A label's score is the mean of this many windows', the highest ones; chosen in docs/long-texts.md."""

OVERLAP = 0.0
"""Maximum share of a window that the next one repeats; more costs more and gains nothing, see docs/long-texts.md."""

Compare = Callable[[list[str]], Matrix]
"""From texts to their scores, [text label]."""


@final
@dataclass(frozen=True)
class Passage:
    """The window of a long text that speaks most for a label."""

    number: int
    """Its place among the windows, from 1."""

    of: int
    """Number of windows."""

    text: str
    """Its text."""

    sentence: str
    """The sentence of it that speaks most for the label by itself."""


def reads_windows(model: object) -> bool:
    """Return whether a classifier reads long texts in windows.

    Raises:
        ConfigError: `long_texts` is neither of its values; `set_params` may have changed it.
    """
    way = getattr(model, "long_texts", "cut")
    check_choice("long_texts", way, LONG_TEXTS)
    return way == "windows"


def tell_other_reading(model: Any, before: str) -> None:
    """Warn if a limit or cuts were set while the model read long texts in another way, in which they score otherwise.

    Args:
        model: a fitted classifier.
        before: its `long_texts` before a change.

    Warns:
        LabelSpaceWarning: they were.
    """
    set_then = model.none_ is not None or getattr(model, "cuts_", None) is not None
    if set_then and model.long_texts != before:
        what = "limit for 'none of these' was" if model.none_ is not None else "cuts of the labels were"
        warn(
            f"the {what} set with long_texts={before!r}, and long texts score otherwise with {model.long_texts!r}; fit "
            "the model with it."
        )


def in_full(model: Any, documents: Any, space: LabelSpace, judged: Judged) -> Judged:
    """Return what a head says, with long texts counted in full if the classifier reads them so.

    Args:
        model: a fitted classifier.
        documents: texts; pairs if it cuts them.
        space: the labels.
        judged: what the head says of the documents as cut; its scores are changed in place.
    """
    if not reads_windows(model):
        return judged
    found = read_on(
        model.encoder_, documents, _columns(judged), lambda texts: _columns(model.head_.judge(texts, space))
    )
    if judged.outside is None:
        return judged._replace(scores=found)
    return judged._replace(scores=np.ascontiguousarray(found[:, :-1]), outside=found[:, -1])


def _columns(judged: Judged) -> Matrix:
    """Return the scores, and what lies outside of the labels as one more column: its windows are joined alike."""
    return judged.scores if judged.outside is None else np.column_stack([judged.scores, judged.outside])


def read_on(encoder: "Encoder", texts: Sequence[str], scores: Matrix, compare: Compare) -> Matrix:
    """Return scores in which those of long texts come from all their windows.

    Args:
        encoder: the encoder, which cut the texts.
        texts: the texts.
        scores: [text label], of the texts as cut; changed in place.
        compare: returns the scores of windows.

    Returns:
        [text label].
    """
    for rows, found in scores_of_windows(encoder, texts, scores, compare, overlap=OVERLAP):
        scores[rows] = joined(found, BEST)
    return scores


def scores_of_windows(
    encoder: "Encoder", texts: Sequence[str], scores: Matrix, compare: Compare, *, overlap: float
) -> Iterator[tuple[NDArray[np.intp], Matrix]]:
    """Yield the rows of each long text, and the scores of its windows, [window label].

    Each different text is read once. In memory are some thousand windows, and the scores of all windows of one text.

    Args:
        encoder: the encoder, which cut the texts.
        texts: the texts.
        scores: [text label], of the texts as cut.
        compare: returns the scores of windows.
        overlap: maximum share of a window that the next one repeats.
    """
    for rows, different, each in in_windows(texts, scores.shape[1]):
        for place, found in _scored(_more(encoder, different, overlap), compare, at_once(scores.shape[1])):
            own = rows[each == place]
            yield own, np.concatenate([scores[own[:1]], found])


def joined(scores: Matrix, best: int | None) -> Matrix:
    """Return each label's mean over its best windows, [label], on the grid of the cosines.

    Args:
        scores: [window label].
        best: number of windows that count; None: all.

    Example:
        >>> windows = np.array([[0.5, 0.25], [0.25, 0.5], [0.0, 0.0]], dtype=np.float32)
        >>> joined(windows, 2).tolist(), joined(windows, None).tolist()
        ([0.375, 0.375], [0.25, 0.25])
    """
    if best is not None:
        scores = np.sort(scores, axis=0)[-best:]
    mean = scores.mean(axis=0, dtype=np.float64)
    return (np.rint(mean * GRID) / GRID).astype(np.float32)


@final
class Windows:
    """The windows of a long text, and how much each speaks for each label.

    Args:
        model: a fitted classifier that reads windows.
        text: a text longer than its encoder's limit.
        space: the labels.
    """

    def __init__(self, model: Any, text: str, space: LabelSpace) -> None:
        self._model, self._space = model, space
        self._texts = passages(model.encoder_, text, overlap=OVERLAP)
        # The first window is what cutting leaves.
        self._scores = np.concatenate([self._judge(part) for part in ([text], self._texts[1:]) if part])
        # Some encoders make tokens of white space, which may fill a window.
        self._scores[[not own for own in self._texts]] = -np.inf

    def _judge(self, texts: list[str]) -> Matrix:
        return self._model.head_.judge(texts, self._space).scores

    def text(self, label: str) -> str:
        """Return the window that speaks most for a label."""
        return self._texts[self._best(label)]

    def passage(self, label: str) -> Passage:
        """Return that window with its place, and the sentence of it that speaks most for the label by itself."""
        number, text = self._best(label), self.text(label)
        parts = [part.strip() for part in sentences(text) if part.strip()] or [text]
        sentence = parts[int(self._judge(parts)[:, self._space.index(label)].argmax())]
        return Passage(number + 1, len(self._texts), text, sentence)

    def _best(self, label: str) -> int:
        return int(self._scores[:, self._space.index(label)].argmax())


def windows_of(model: Any, text: str, space: LabelSpace) -> Windows | None:
    """Return the windows of a text; None if it fits, or the model cuts it or is None."""
    if not reads_windows(model) or _tokens(model.encoder_, text) <= model.encoder_.max_tokens:
        return None
    return Windows(model, text, space)


def tell_cost(model: Any, documents: Any, *, more: bool = False) -> None:
    """Log how many texts are long and what reading them in windows costs, before a long run.

    Args:
        model: the classifier; nothing is logged unless it reads long texts in windows.
        documents: the first texts.
        more: whether others follow.
    """
    if reads_windows(model):
        texts = list(islice(documents, WINDOW))
        if told := cost_of(model.encoder_, texts, more=more or len(documents) > len(texts)):
            _logger.info(told)


def cost_of(encoder: "Encoder", texts: Sequence[str], *, more: bool = False) -> str:
    """Return in a sentence how many texts are long, and what reading them in windows costs; empty if none is.

    Example:
        >>> from labelspace import Encoder
        >>> cost_of(Encoder("tests/data/tiny-bert", max_tokens=8), ["the team won. a match was lost.", "a bank"])
        '1 of 2 texts is longer than 8 tokens; it is read in windows, about 2.1 times the tokens.'
    """
    counts = [_tokens(encoder, text) for text in texts]
    long = [text for text, count in zip(texts, counts, strict=True) if count > encoder.max_tokens]
    if not long:
        return ""
    cut = sum(min(count, encoder.max_tokens) for count in counts)
    whole = cut + sum(sum(encoder.count_tokens(rest)) for text in long if (rest := _rest(encoder, text, OVERLAP)))
    are, they = ("are", "they are") if len(long) > 1 else ("is", "it is")
    return (
        f"{len(long):,} of {'the first ' if more else ''}{len(texts):,} texts {are} longer than {encoder.max_tokens} "
        f"tokens; {they} read in windows, about {whole / cut:.1f} times the tokens."
    )


def _more(encoder: "Encoder", texts: list[str], overlap: float) -> Iterator[tuple[int, str]]:
    """Yield the windows of long texts after the first, each with the index of its text."""
    for place, ids in enumerate(encoder.tokenize(texts)):
        if len(ids) >= encoder.max_tokens and _tokens(encoder, texts[place]) > encoder.max_tokens:
            for window in _rest(encoder, texts[place], overlap):
                yield place, window


def _tokens(encoder: "Encoder", text: str) -> int:
    """Count the tokens of one text; those of thousands of whole books would not fit into memory."""
    return encoder.count_tokens([text])[0]


def _rest(encoder: "Encoder", text: str, overlap: float) -> list[str]:
    return passages(encoder, text, overlap=overlap)[1:]


def _scored(windows: Iterator[tuple[int, str]], compare: Compare, size: int) -> Iterator[tuple[int, Matrix]]:
    """Yield the scores of each text's windows, [window label], reading many windows at once."""
    last, kept = -1, list[Matrix]()
    while block := list(islice(windows, size)):
        scores = compare([window for _, window in block])
        for place, own in groupby(range(len(block)), key=lambda row: block[row][0]):
            if place != last and kept:
                yield last, np.concatenate(kept)
                kept = []
            last = place
            kept.append(scores[list(own)])
    if kept:
        yield last, np.concatenate(kept)
