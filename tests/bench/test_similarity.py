"""The similarity of data sets equals its formula."""

import random
from collections import Counter

import numpy as np
import pytest

from labelspace.bench.similarity import similarities, weighted_jaccard, word_frequencies
from labelspace.errors import InputError


def jaccard_by_hand(one: list[str], other: list[str]) -> float:
    """Divide the sum of the smaller frequencies by the sum of the larger ones, word by word."""
    first, second = Counter(" ".join(one).split()), Counter(" ".join(other).split())
    smaller = larger = 0.0
    for word in sorted(set(first) | set(second)):
        a = first[word] / sum(first.values())
        b = second[word] / sum(second.values())
        smaller += a if a < b else b
        larger += b if a < b else a
    return smaller / larger


def data_set(seed: int, words: int) -> list[str]:
    draw = random.Random(seed)
    return [" ".join(f"w{int(draw.expovariate(0.3)) % words}" for _ in range(9)) for _ in range(12)]


@pytest.mark.parametrize("seed", range(5))
def test_weighted_jaccard_equals_the_sums_written_out(seed):
    one, other = data_set(seed, 7), data_set(seed + 100, 15)
    found = weighted_jaccard(word_frequencies(one), word_frequencies(other))
    assert found == pytest.approx(jaccard_by_hand(one, other), rel=1e-12)
    assert found == pytest.approx(weighted_jaccard(word_frequencies(other), word_frequencies(one)))


def test_the_matrix_holds_every_pair_and_is_symmetric_with_ones():
    sets = {f"set {seed}": data_set(seed, 5 + seed) for seed in range(4)}
    found = similarities(sets)
    assert found.names == tuple(sets)
    assert found.texts == (12, 12, 12, 12)
    for row, one in enumerate(sets.values()):
        for column, other in enumerate(sets.values()):
            assert found.values[row, column] == pytest.approx(jaccard_by_hand(one, other))
    assert np.array_equal(found.values, found.values.T)
    assert np.array_equal(np.diag(found.values), np.ones(4))


def test_similarity_ignores_order_and_text_count_and_is_0_without_shared_words():
    found = similarities({"a": ["one two"], "b": ["two", "one", "two one"], "c": ["three"]})
    assert found.values.tolist() == [[1, 1, 0], [1, 1, 0], [0, 0, 1]]


def test_words_are_found_in_any_script_without_case_or_punctuation():
    assert word_frequencies(["Don't, DON'T!"]) == {"don't": 1.0}
    assert set(word_frequencies(["Größe 東京 x1"])) == {"größe", "東京", "x1"}


def test_a_generator_is_read_once():
    assert similarities({"a": (text for text in ["x", "y"])}).texts == (2,)


def test_no_data_set_or_a_set_without_words_is_refused():
    with pytest.raises(InputError, match="there is no data set"):
        similarities({})
    with pytest.raises(InputError, match=r"^empty: the texts of a data set hold no word"):
        similarities({"full": ["x"], "empty": ["...", ""]})
