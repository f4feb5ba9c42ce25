"""The batches of an epoch."""

import pytest

from labelspace.errors import ConfigError
from labelspace.training.batches import epoch_batches, sorting_window


@pytest.mark.parametrize("count", [1, 8, 33, 200])
def test_an_epoch_has_every_text_once(count):
    lengths = [(7 * row) % 40 + 1 for row in range(count)]
    batches = epoch_batches(lengths, 8, window=3, seed=0, epoch=0)
    assert sorted(row for batch in batches for row in batch) == list(range(count))
    assert len(batches) == -(-count // 8)
    assert max(map(len, batches)) <= 8


def test_sorting_within_windows_keeps_padding_small():
    lengths = [(7919 * row) % 100 + 1 for row in range(1600)]

    def padded(batches):
        return sum(max(lengths[row] for row in batch) * len(batch) for batch in batches) / sum(lengths)

    assert padded(epoch_batches(lengths, 16, window=50, seed=0, epoch=0)) < 1.03
    assert padded(epoch_batches(lengths, 16, window=1, seed=0, epoch=0)) > 1.5


def test_every_epoch_and_seed_has_its_own_order():
    lengths = [row % 5 for row in range(64)]
    plans = [epoch_batches(lengths, 8, window=4, seed=seed, epoch=epoch) for seed, epoch in ((0, 0), (0, 1), (1, 0))]
    assert plans[0] == epoch_batches(lengths, 8, window=4, seed=0, epoch=0)
    assert plans[0] != plans[1]
    assert plans[0] != plans[2]


@pytest.mark.parametrize("count", [40, 256, 1000])
def test_few_texts_have_other_batches_in_the_next_epoch(count):
    lengths = [(7919 * row) % 100 + 1 for row in range(count)]

    def kept(most):
        """Return the share of pairs in a batch that share a batch again in the next epoch."""
        window = sorting_window(count, 16, most=most) if most else 50
        pairs = [
            {
                (low, high)
                for batch in epoch_batches(lengths, 16, window=window, seed=0, epoch=epoch)
                for low in batch
                for high in batch
                if low < high
            }
            for epoch in (0, 1)
        ]
        return len(pairs[0] & pairs[1]) / len(pairs[0])

    at_random = 15 / (count - 1)
    assert kept(50) < at_random + 0.1
    assert kept(None) > kept(50) + 0.2  # sorted as a whole


@pytest.mark.parametrize("option", [{"batch_size": 0}, {"batch_size": -1}, {"window": 0}])
def test_sizes_below_one_are_refused(option):
    with pytest.raises(ConfigError, match=rf"{next(iter(option))} must be a whole number at least 1"):
        epoch_batches([1, 2, 3], **{"batch_size": 2, "window": 1, "seed": 0, "epoch": 0, **option})


@pytest.mark.parametrize(("texts", "window"), [(1, 1), (255, 1), (256, 2), (6_400, 50), (10**6, 50)])
def test_few_texts_are_sorted_within_fewer_batches(texts, window):
    assert sorting_window(texts, 16, most=50) == window
