"""Pairs are joined as the tokenizer joins them; the text is cut, never the label; only lengths of T x L are held."""

from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from transformers import AutoTokenizer

from families.tiny_pairs import KINDS
from labelspace.errors import EncoderError, InputError
from labelspace.families.pairs import PairLayout, check_labels_fit, plan_pairs, tokenize

every_kind = pytest.mark.parametrize("kind", KINDS)
PairsFolder = Callable[..., Path]

PAIRS = [
    ("The team won the match.", "This text is about sports."),
    ("a", "b"),
    ("", "good"),
    ("  white   space\n", "Müller 北京 ☃"),
    ("bank " * 30, "The market."),
]
BERT = PairLayout(leading=(2,), middle=(3,), trailing=(3,), types=((0,), 0, (0,), 1, (1,)))


def opened(folder: Path) -> Any:
    return AutoTokenizer.from_pretrained(folder)


# ---- the layout


@every_kind
def test_a_joined_pair_is_the_tokenizers_own(kind: str, pairs_folder: PairsFolder):
    tokenizer = opened(pairs_folder(kind))
    layout = PairLayout.learn(tokenizer)
    for text, label in PAIRS:
        expected = tokenizer(text, label)
        first, second = tokenize(tokenizer, [text, label])
        joined = layout.join(first, second)
        assert joined == expected["input_ids"]
        if "token_type_ids" in expected:
            assert layout.token_types(len(joined), len(second)) == expected["token_type_ids"]
        else:
            assert layout.types is None


def test_the_learnt_layout_is_that_of_the_architecture(pairs_folder: PairsFolder):
    assert PairLayout.learn(opened(pairs_folder("bert"))) == BERT
    roberta = PairLayout.learn(opened(pairs_folder("roberta")))
    assert (roberta.leading, roberta.middle, roberta.trailing, roberta.types) == ((0,), (2, 2), (2,), None)
    assert PairLayout.learn(opened(pairs_folder("qwen3"))).special == 0


class OddTokenizer:
    """Letters as tokens, 0 between the texts; `odd` names its fault."""

    def __init__(self, odd: str) -> None:
        self.odd = odd
        self.deprecation_warnings: dict[str, bool] = {}

    def __call__(self, first: Any, second: str | None = None, **options: Any) -> Any:
        if second is None:
            return {"input_ids": [[ord(letter) for letter in text] for text in first]}
        a, b = ([ord(letter) for letter in text] for text in (first, second))
        ids, owners = [*a, 0, *b], [*[0] * len(a), None, *[1] * len(b)]
        if self.odd == "second first":
            ids, owners = [*b, 0, *a], [*[1] * len(b), None, *[0] * len(a)]
        if self.odd == "long pairs differ" and len(a) > 30:
            ids = [*a, 0, 0, *b]
        types = [0] * len(ids)
        if self.odd == "types follow the length" and len(a) > 30:
            types = [1] * len(ids)
        mask = [int(owner is None) for owner in owners]
        if self.odd == "special inside":
            mask[0] = 1

        def sequence_ids() -> list[int | None]:
            if self.odd == "slow":
                raise ValueError("sequence_ids() is not available when using non-fast tokenizers")
            return owners

        return Answer({"input_ids": ids, "special_tokens_mask": mask, "token_type_ids": types}, sequence_ids)


class Answer(dict[str, Any]):
    def __init__(self, values: dict[str, Any], sequence_ids: Callable[[], list[int | None]]) -> None:
        super().__init__(values)
        self.sequence_ids = sequence_ids


def test_a_tokenizer_without_oddities_is_learnt():
    assert PairLayout.learn(OddTokenizer("nothing")).middle == (0,)


@pytest.mark.parametrize(
    ("odd", "said"),
    [
        ("slow", "does not report which token"),
        ("second first", "not all of the first text comes before"),
        ("long pairs differ", "joined in another way"),
        ("types follow the length", "follow another rule"),
        ("special inside", "special tokens inside"),
    ],
)
def test_a_tokenizer_that_joins_in_its_own_way_is_refused(odd: str, said: str):
    with pytest.raises(EncoderError, match=said):
        PairLayout.learn(OddTokenizer(odd))


# ---- what is cut


def test_the_text_is_cut_at_its_end_and_the_label_stays_whole():
    assert BERT.join([10, 11, 12, 13], [20, 21], limit=7) == [2, 10, 11, 3, 20, 21, 3]
    assert BERT.join([10], [20, 21], limit=7) == [2, 10, 3, 20, 21, 3]


@given(first=st.lists(st.integers(10, 19), max_size=30), second=st.lists(st.integers(20, 29), min_size=1, max_size=9))
@settings(max_examples=50)
def test_a_cut_pair_keeps_its_label_and_fills_the_limit(first: list[int], second: list[int]):
    limit = 16
    ids = BERT.join(first, second, limit)
    assert len(ids) == min(limit, len(first) + len(second) + 3)
    assert ids[-len(second) - 1 : -1] == second
    kept = ids[1 : -len(second) - 2]
    assert kept == first[: len(kept)]
    assert BERT.token_types(len(ids), len(second)) == [0] * (len(kept) + 2) + [1] * (len(second) + 1)


def test_a_label_that_leaves_no_room_for_the_text_is_named():
    check_labels_fit(["good", "fits"], [[1], [1, 1, 1, 1]], BERT, limit=8)
    with pytest.raises(InputError, match=r"the label 'too long' alone takes 5 of the 8 tokens"):
        check_labels_fit(["good", "too long"], [[1], [1, 1, 1, 1, 1]], BERT, limit=8)


def test_a_very_long_label_is_named_by_its_beginning():
    with pytest.raises(InputError, match=r"the label '(word ){11}wo\.\.\.' alone"):
        check_labels_fit(["word " * 500], [[1] * 500], BERT, limit=8)


# ---- the batches


@given(
    texts=st.lists(st.integers(0, 40), min_size=1, max_size=12),
    labels=st.lists(st.integers(1, 8), min_size=1, max_size=6),
    budget=st.integers(1, 120),
)
@settings(max_examples=50)
def test_every_pair_occurs_once_and_batches_stay_within_the_budget(texts: list[int], labels: list[int], budget: int):
    of = [(text, label) for text in range(len(texts)) for label in range(len(labels))]
    plan = plan_pairs(
        [[5] * length for length in texts],
        [[6] * length for length in labels],
        of,
        layout=BERT,
        limit=20,
        token_budget=budget,
    )
    assert sorted(pair for batch in plan.batches for pair in batch) == list(range(len(of)))
    widths = [[min(20, texts[of[pair][0]] + labels[of[pair][1]] + 3) for pair in batch] for batch in plan.batches]
    assert all(len(batch) == 1 or len(batch) * max(batch) <= budget for batch in widths)
    assert [max(batch) for batch in widths] == sorted((max(batch) for batch in widths), reverse=True)


def test_a_batch_mixes_texts_and_labels_of_one_length():
    texts, labels = [[7] * 6, [8] * 2], [[9] * 1, [9] * 5]
    plan = plan_pairs(
        texts, labels, [(0, 0), (0, 1), (1, 0), (1, 1)], layout=BERT, limit=99, token_budget=20
    )  # 10, 14, 6 and 10 tokens
    assert plan.batches == [[1], [0, 3], [2]]


@pytest.mark.parametrize("side", ["left", "right"])
def test_ids_and_types_are_padded_on_the_tokenizers_side(side: str):
    tokenizer: Any = SimpleNamespace(padding_side=side, pad_token_id=99, pad_token_type_id=4)
    plan = plan_pairs([[10], [11, 12]], [[20]], [(0, 0), (1, 0)], layout=BERT, limit=50, token_budget=50)
    batch = plan.batch([0, 1], tokenizer)
    input_ids, mask, types = batch["input_ids"], batch["attention_mask"], batch["token_type_ids"]
    short = slice(1, None) if side == "left" else slice(0, -1)
    gap = 0 if side == "left" else -1
    assert input_ids[0, short].tolist() == [2, 10, 3, 20, 3]
    assert input_ids[1].tolist() == [2, 11, 12, 3, 20, 3]
    assert (input_ids[0, gap], mask[0, gap], types[0, gap]) == (99, 0, 4)
    assert types[0, short].tolist() == [0, 0, 0, 1, 1]
    assert mask.sum().item() == 11


def test_a_batch_without_types_goes_to_the_model_without_types():
    tokenizer: Any = SimpleNamespace(padding_side="right", pad_token_id=0)
    layout = PairLayout(leading=(2,), middle=(3,), trailing=(3,), types=None)
    plan = plan_pairs([[10]], [[20]], [(0, 0)], layout=layout, limit=50, token_budget=50)
    assert set(plan.batch([0], tokenizer)) == {"input_ids", "attention_mask"}
    assert layout.token_types(3, 1) == [0, 0, 0]


def test_no_texts_are_no_tokens():
    assert tokenize(OddTokenizer("nothing"), []) == []
