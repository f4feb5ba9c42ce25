"""`TokenTree`: every continuation can be recovered from its tree, and no tree exceeds its limit."""

import random

import pytest
import torch

from labelspace.families.token_tree import plan_trees, plant


def drawn(seed: int) -> list[list[int]]:
    rng = random.Random(seed)
    return [[rng.randrange(3) for _ in range(rng.randint(1, 6))] for _ in range(rng.randint(1, 20))]


DRAWN = [drawn(seed) for seed in range(20)]


def test_a_last_node_attends_to_its_continuation():
    for continuations in DRAWN:
        tree = plant(continuations)
        for ids, last in zip(continuations, tree.last.tolist(), strict=True):
            seen = tree.sees[last].nonzero().flatten()
            assert tree.input_ids[seen].tolist() == ids
            assert tree.depth[seen].tolist() == list(range(len(ids)))


def test_shared_beginnings_are_stored_once():
    for continuations in DRAWN:
        beginnings = {tuple(ids[: place + 1]) for ids in continuations for place in range(len(ids))}
        assert len(plant(continuations).input_ids) == len(beginnings)


@pytest.mark.parametrize("most", [1, 5, 12, 1000])
def test_a_tree_stays_within_its_limit_unless_one_continuation_is_longer(most):
    for continuations in DRAWN:
        trees = plan_trees(continuations, most)
        assert sorted(index for tree in trees for index in tree) == list(range(len(continuations)))
        for tree in trees:
            nodes = len(plant([continuations[index] for index in tree]).input_ids)
            assert nodes <= most or len({tuple(continuations[index]) for index in tree}) == 1


def test_a_tree_attends_to_the_kept_prefix_within_its_window():
    tree = plant([[1, 2, 3], [1, 4]])
    full = tree.attention_mask(prefix=5, kept=5, dtype=torch.float32)[0, 0] == 0
    assert full.shape == (4, 9)
    assert full[:, :5].all()
    assert torch.equal(full[:, 5:], tree.sees)
    near = tree.attention_mask(prefix=5, kept=2, dtype=torch.float32, window=3)[0, 0] == 0
    # Columns: positions 3 and 4 of the prefix, then the nodes, at positions 5, 6, 7 and 6.
    assert near.int().tolist() == [[1, 1, 1, 0, 0, 0], [0, 1, 1, 1, 0, 0], [0, 0, 1, 1, 1, 0], [0, 1, 1, 0, 0, 1]]


def test_a_mask_uses_the_lowest_number_of_the_models_dtype():
    mask = plant([[1, 2]]).attention_mask(prefix=1, kept=1, dtype=torch.bfloat16)
    assert mask.dtype == torch.bfloat16
    assert mask[0, 0, 0, 2] == torch.finfo(torch.bfloat16).min
