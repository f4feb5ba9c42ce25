"""Long texts as passages: they fit, overlap, end with sentences, and lose nothing."""

import itertools
from collections.abc import Callable
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from labelspace.encoders import Encoder
from labelspace.encoders.passages import passages, sentences, spans

SENTENCES = [f"the team number {number} won the match." for number in range(40)]


@pytest.fixture(scope="module")
def encoder(tiny_encoder_folder: Path) -> Encoder:
    return Encoder(tiny_encoder_folder, dtype="float32", max_tokens=32)


def test_a_text_that_fits_is_its_only_passage(encoder: Encoder):
    assert passages(encoder, SENTENCES[0], overlap=0.25) == [SENTENCES[0]]
    assert passages(encoder, "", overlap=0.25) == [""]


def test_every_passage_fits_and_is_whole_sentences(encoder: Encoder):
    found = passages(encoder, " ".join(SENTENCES), overlap=0.25)
    assert max(encoder.count_tokens(found)) <= 32
    for passage in found:
        own = [sentence for sentence in SENTENCES if sentence in passage]
        assert " ".join(own) == passage
    assert {sentence for sentence in SENTENCES for passage in found if sentence in passage} == set(SENTENCES)


@pytest.mark.parametrize(
    ("first", "second"),
    [
        ('He said: "No."', "Then he went."),
        ("Er sagte: „Nein.“", "Dann ging er."),
        ("Er sagte: »Nein.«", "Dann ging er."),
        ("Il dit : « Non.\u00a0»", "Puis il part."),
        ("He left.", "“No,” she said."),
    ],
)
def test_quotes_that_close_a_sentence_belong_to_it(first: str, second: str):
    assert [sentence.strip() for sentence in sentences(f"{first} {second}")] == [first, second]


def test_without_overlap_only_the_last_passage_repeats_sentences(encoder: Encoder):
    found = passages(encoder, " ".join(SENTENCES), overlap=0)
    assert " ".join(found[:-1]) == " ".join(SENTENCES)[: len(" ".join(found[:-1]))]
    assert found[-1].endswith(SENTENCES[-1])
    assert len(passages(encoder, " ".join(SENTENCES), overlap=0.5)) > len(found)


@pytest.mark.parametrize("text", ["هل وصلت؟ ", "جیت لیا\u06d4 ", "वह जीता। "], ids=["Arabic", "Urdu", "Hindi"])
def test_sentences_end_in_other_scripts_too(text: str, encoder: Encoder):
    assert all(passage.endswith(text.strip()[-1]) for passage in passages(encoder, text * 40, overlap=0))


def test_passages_of_a_text_without_spaces_are_full(encoder: Encoder):
    found = passages(encoder, "北京" * 100, overlap=0)
    assert min(encoder.count_tokens(found)) > 24


@pytest.mark.parametrize(
    "text", ["word " * 500, "ab" * 500, "北京" * 200, "a。b。" * 100, "\n \n" * 9 + "one two\n" * 80]
)
def test_texts_without_sentences_are_broken_at_words_or_anywhere(text: str, encoder: Encoder):
    found = passages(encoder, text, overlap=0)
    assert max(encoder.count_tokens(found)) <= 32
    assert all(found)
    assert set("".join("".join(found).split())) == set("".join(text.split()))


def test_the_prompt_counts(tiny_folder: Callable[[str], Path], tiny_encoder_folder: Path):
    prompted = Encoder(tiny_encoder_folder, dtype="float32", max_tokens=32, text_prompt="the text is this : ")
    found = passages(prompted, " ".join(SENTENCES), overlap=0)
    assert max(prompted.count_tokens(found)) <= 32
    # A byte-level tokenizer counts white space too.
    other = Encoder(tiny_folder("gemma3-mean"), dtype="float32", max_tokens=32, text_prompt="", label_prompt="")
    assert max(other.count_tokens(passages(other, " ".join(SENTENCES), overlap=0.25))) <= 32


@settings(max_examples=200)
@given(st.lists(st.integers(0, 12), min_size=1, max_size=40), st.integers(0, 9))
def test_spans_cover_every_piece_in_order_and_fit(sizes: list[int], overlap: int):
    found = spans(sizes, 12, overlap)
    assert found[0][0] == 0
    assert found[-1][1] == len(sizes)
    assert all(sum(sizes[start:end]) <= 12 for start, end in found)
    for (first, end), (start, last) in itertools.pairwise(found):
        assert first < start <= end < last
    for (_, end), (start, _) in itertools.pairwise(found[:-1]):
        assert sum(sizes[start:end]) <= overlap
