"""Pairs of token ids: how a tokenizer joins two texts, learnt once, and batches of such pairs.

T texts and L labels make T x L pairs. Each text and each label is tokenised once; a pair is joined from their ids when
its batch runs, so that only lengths are ever held for all T x L pairs.

    leading   text ...   middle    label ...   trailing
    [CLS]     ids        [SEP]     ids         [SEP]         BERT, DeBERTa, ModernBERT
    <s>       ids        </s></s>  ids         </s>          RoBERTa, XLM-R, BART

If a pair is too long, the end of the text is cut. The label stays whole, because a truncated label would be another
label.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, final

from jaxtyping import Int
from torch import Tensor

from labelspace.encoders.batching import pad, plan_batches
from labelspace.encoders.undocumented import quiet_tokenizer
from labelspace.errors import EncoderError, InputError
from labelspace.text_table import shortened

TokenIds = Sequence[Sequence[int]]

_LEARN_FROM = ("One text comes first.", "The other follows it.")
_VERIFY_WITH = ("A longer text, of two sentences. The second of them is here.", "a label")


@final
@dataclass(frozen=True, kw_only=True)
class PairLayout:
    """The special tokens that a tokenizer puts before, between and after two texts, and the token types."""

    leading: tuple[int, ...]
    """Special tokens before the first text."""

    middle: tuple[int, ...]
    """Special tokens between the texts."""

    trailing: tuple[int, ...]
    """Special tokens after the second text."""

    types: tuple[tuple[int, ...], int, tuple[int, ...], int, tuple[int, ...]] | None
    """Token types of the parts: leading (each), first text (all), middle (each), second text (all), trailing (each).
    None for a tokenizer without token types."""

    @property
    def special(self) -> int:
        """The number of special tokens of a pair."""
        return len(self.leading) + len(self.middle) + len(self.trailing)

    @classmethod
    def learn(cls, tokenizer: Any) -> "PairLayout":
        """Learn the layout from a pair that the tokenizer joins, and verify it on another pair.

        Args:
            tokenizer: a fast tokenizer of transformers.

        Raises:
            EncoderError: the tokenizer does not report which token belongs to which text, or a pair joined by the
                layout differs from the tokenizer's own.

        Example:
            >>> from transformers import AutoTokenizer
            >>> layout = PairLayout.learn(AutoTokenizer.from_pretrained("tests/data/tiny-bert"))
            >>> layout.leading, layout.middle, layout.trailing      # [CLS] text [SEP] label [SEP]
            ((2,), (3,), (3,))
        """
        encoded = tokenizer(*_LEARN_FROM, return_special_tokens_mask=True)
        ids, types = encoded["input_ids"], encoded.get("token_type_ids")
        try:
            owners = encoded.sequence_ids()
        except ValueError as error:
            raise _unknown_layout(tokenizer, "it does not report which token belongs to which text") from error
        firsts = [place for place, owner in enumerate(owners) if owner == 0]
        seconds = [place for place, owner in enumerate(owners) if owner == 1]
        if not firsts or not seconds or firsts[-1] > seconds[0]:
            raise _unknown_layout(tokenizer, "not all of the first text comes before the second")
        cuts = (firsts[0], firsts[-1] + 1, seconds[0], seconds[-1] + 1, len(ids))
        parts = (slice(0, cuts[0]), slice(cuts[1], cuts[2]), slice(cuts[3], cuts[4]))
        leading, middle, trailing = (tuple(ids[part]) for part in parts)
        if sum(encoded["special_tokens_mask"]) != len(leading) + len(middle) + len(trailing):
            raise _unknown_layout(tokenizer, "there are special tokens inside a text")
        if types is None:
            layout = cls(leading=leading, middle=middle, trailing=trailing, types=None)
        else:
            around = [tuple(types[part]) for part in parts]
            all_types = (around[0], types[firsts[0]], around[1], types[seconds[0]], around[2])
            layout = cls(leading=leading, middle=middle, trailing=trailing, types=all_types)
        layout._verify(tokenizer)
        return layout

    def _verify(self, tokenizer: Any) -> None:
        for pair in (_LEARN_FROM, _VERIFY_WITH):
            expected = tokenizer(*pair)
            first, second = tokenize(tokenizer, pair)
            ids = self.join(first, second)
            if ids != expected["input_ids"]:
                raise _unknown_layout(tokenizer, f"{pair[0]!r} and {pair[1]!r} are joined in another way")
            if self.types is not None and self.token_types(len(ids), len(second)) != expected["token_type_ids"]:
                raise _unknown_layout(tokenizer, f"the token types of {pair[0]!r} and {pair[1]!r} follow another rule")

    def room(self, second: int, limit: int) -> int:
        """Return how many tokens of the first text fit beside `second` tokens of the second under `limit`."""
        return limit - self.special - second

    def join(self, first: Sequence[int], second: Sequence[int], limit: int | None = None) -> list[int]:
        """Join a pair; with a limit, cut the end of the first text, never the second."""
        if limit is not None:
            first = first[: max(0, self.room(len(second), limit))]
        return [*self.leading, *first, *self.middle, *second, *self.trailing]

    def token_types(self, total: int, second: int) -> list[int]:
        """Return the token types of a joined pair of `total` tokens, `second` of them from the second text."""
        if self.types is None:
            return [0] * total
        leading, first_type, middle, second_type, trailing = self.types
        first = total - self.special - second
        return [*leading, *[first_type] * first, *middle, *[second_type] * second, *trailing]


@final
@dataclass(frozen=True, kw_only=True)
class PairPlan:
    """The pairs to run, in batches; pair p joins text `of[p][0]` with label `of[p][1]`."""

    texts: TokenIds
    """Token ids of each text, without special tokens."""

    labels: TokenIds
    """Token ids of each label, without special tokens."""

    of: Sequence[tuple[int, int]]
    """Text and label of each pair."""

    batches: list[list[int]]
    """Pair numbers, the longest pairs first; every pair occurs once."""

    layout: PairLayout
    """The tokenizer's way to join a pair."""

    limit: int
    """Most tokens of a pair, special tokens included."""

    def batch(self, pairs: list[int], tokenizer: Any) -> dict[str, Int[Tensor, "pair token"]]:
        """Join some pairs and pad them on the tokenizer's padding side, as a model's keyword arguments."""
        left = tokenizer.padding_side == "left"
        everything = list(range(len(pairs)))
        rows, types = [], []
        for text, label in (self.of[pair] for pair in pairs):
            rows.append(self.layout.join(self.texts[text], self.labels[label], self.limit))
            types.append(self.layout.token_types(len(rows[-1]), len(self.labels[label])))
        padded = pad(rows, everything, pad_token_id=int(tokenizer.pad_token_id), left=left)
        arguments = {"input_ids": padded.input_ids, "attention_mask": padded.attention_mask}
        if self.layout.types is not None:
            fill = int(getattr(tokenizer, "pad_token_type_id", 0))
            arguments["token_type_ids"] = pad(types, everything, pad_token_id=fill, left=left).input_ids
        return arguments


def plan_pairs(
    texts: TokenIds,
    labels: TokenIds,
    of: Sequence[tuple[int, int]],
    *,
    layout: PairLayout,
    limit: int,
    token_budget: int,
) -> PairPlan:
    """Sort pairs by length, across texts and labels, into batches under a token budget.

    Args:
        texts: token ids of each text, without special tokens.
        labels: token ids of each label, without special tokens.
        of: the pairs, each as (text, label).
        layout: the tokenizer's way to join a pair.
        limit: most tokens of a pair; longer texts are cut.
        token_budget: most tokens of a batch, padding included.

    Returns:
        The plan; its batches depend only on the lengths.

    Example:
        >>> layout = PairLayout(leading=(2,), middle=(3,), trailing=(3,), types=None)
        >>> plan = plan_pairs([[7], [8, 8, 8, 8]], [[9]], [(0, 0), (1, 0)], layout=layout, limit=7, token_budget=8)
        >>> plan.batches
        [[1], [0]]
        >>> layout.join(plan.texts[1], plan.labels[0], plan.limit)    # one token of the text is cut off
        [2, 8, 8, 8, 3, 9, 3]
    """
    lengths = [min(layout.special + len(texts[text]) + len(labels[label]), limit) for text, label in of]
    batches = plan_batches(lengths, token_budget)
    return PairPlan(texts=texts, labels=labels, of=of, batches=batches, layout=layout, limit=limit)


def check_labels_fit(labels: Sequence[str], token_ids: TokenIds, layout: PairLayout, limit: int) -> None:
    """Raise InputError for the first label that leaves no room for a single token of a text.

    Args:
        labels: the labels' texts, for the message.
        token_ids: token ids of each label, without special tokens.
        layout: the tokenizer's way to join a pair.
        limit: most tokens of a pair.
    """
    for label, ids in zip(labels, token_ids, strict=True):
        if layout.room(len(ids), limit) < 1:
            raise InputError(
                f"the label {shortened(label, 60)!r} alone takes {len(ids)} of the {limit} tokens that text, label and "
                f"{layout.special} special tokens share; write it shorter, or raise max_tokens if the model reads more."
            )


def tokenize(tokenizer: Any, texts: Sequence[str]) -> list[list[int]]:
    """Turn texts into token ids, without special tokens and without truncation."""
    if not len(texts):
        return []
    with quiet_tokenizer(tokenizer):
        return tokenizer(
            list(texts), add_special_tokens=False, return_attention_mask=False, return_token_type_ids=False
        )["input_ids"]


def _unknown_layout(tokenizer: Any, why: str) -> EncoderError:
    return EncoderError(
        f"cannot learn how {type(tokenizer).__name__} joins two texts: {why}; "
        "use a model with a fast tokenizer (a tokenizer.json in its folder)."
    )
