"""Batches: every text once, within the budget, in a plan that depends only on the lengths."""

import itertools

from hypothesis import given
from hypothesis import strategies as st

from labelspace.encoders.batching import pad, plan_batches, windows

lengths_of_texts = st.lists(st.integers(0, 200), max_size=60)
budgets = st.integers(1, 600)


@given(lengths_of_texts, budgets)
def test_every_index_comes_exactly_once(lengths: list[int], budget: int):
    plan = plan_batches(lengths, budget)
    assert sorted(itertools.chain.from_iterable(plan)) == list(range(len(lengths)))
    assert all(plan)


@given(lengths_of_texts, budgets)
def test_only_a_single_text_exceeds_the_budget(lengths: list[int], budget: int):
    for batch in plan_batches(lengths, budget):
        width = max(1, max(lengths[index] for index in batch))
        assert len(batch) == 1 or width * len(batch) <= budget


@given(lengths_of_texts, budgets)
def test_no_batch_has_room_for_the_first_text_of_the_next(lengths: list[int], budget: int):
    """Otherwise there would be more batches than necessary."""
    for batch, following in itertools.pairwise(plan_batches(lengths, budget)):
        assert max(1, lengths[batch[0]]) * (len(batch) + 1) > budget
        assert lengths[batch[-1]] >= lengths[following[0]]


@given(lengths_of_texts, budgets)
def test_longest_come_first_and_equal_lengths_keep_their_order(lengths: list[int], budget: int):
    flat = list(itertools.chain.from_iterable(plan_batches(lengths, budget)))
    assert flat == sorted(range(len(lengths)), key=lambda index: (-lengths[index], index))


def test_an_empty_input_gives_no_batches():
    assert plan_batches([], 10) == []


@given(st.lists(st.lists(st.integers(1, 9), max_size=7), min_size=1, max_size=6), st.booleans())
def test_padding_fills_one_side_and_masks_exactly_what_it_fills(token_ids: list[list[int]], left: bool):
    positions = list(range(len(token_ids)))[::-1]
    batch = pad(token_ids, positions, pad_token_id=77, left=left)
    width = max(1, max(map(len, token_ids)))
    assert batch.tokens == width * len(token_ids)
    for row, index in enumerate(positions):
        ids, gap = token_ids[index], width - len(token_ids[index])
        filled, ones, zeros = [77] * gap, [1] * len(ids), [0] * gap
        assert batch.input_ids[row].tolist() == (filled + ids if left else ids + filled)
        assert batch.attention_mask[row].tolist() == (zeros + ones if left else ones + zeros)


@given(st.lists(st.text(max_size=3), max_size=30), st.integers(1, 8))
def test_windows_cut_without_losing_or_moving_a_text(texts: list[str], size: int):
    cut = list(windows(iter(texts), size))
    assert list(itertools.chain.from_iterable(cut)) == texts
    assert all(len(window) == size for window in cut[:-1])
    assert all(0 < len(window) <= size for window in cut)


def test_windows_read_only_as_far_as_needed():
    read = 0

    def texts():
        nonlocal read
        for number in range(100):
            read += 1
            yield str(number)

    stream = windows(texts(), 10)
    assert read == 0
    next(stream)
    assert read == 10
    next(stream)
    assert read == 20
