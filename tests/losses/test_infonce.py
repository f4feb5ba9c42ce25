"""InfoNCE over descriptions and verbalizers says what equations 1 to 3 say."""

import ast
import math
from collections.abc import Callable
from pathlib import Path

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from jaxtyping import TypeCheckError

from labelspace import losses as plain
from labelspace.errors import ShapeError
from losses import oracles
from losses.checked import losses as checked

TEMPERATURE = 0.07
COLDEST = 1e-3

UNEVEN = [0, 0, 0, 1, 2, 2, 2, 2]

Loss = Callable[[torch.Tensor, torch.Tensor], torch.Tensor]
BY_HAND = {
    "infonce_rows": oracles.rows_by_hand,
    "infonce_columns": oracles.columns_by_hand,
    "symmetric_infonce": oracles.both_by_hand,
}
each_loss = pytest.mark.parametrize("name", BY_HAND)


def angles(labels: int, targets: list[int], temperature: float = TEMPERATURE) -> list[list[float]]:
    """Cosines on the circle: verbalizers spread evenly, each description some degrees off its own."""
    table = []
    for number, own in enumerate(targets):
        at = 2 * math.pi * own / labels + 0.3 * (number % 5 - 2)
        table.append([math.cos(at - 2 * math.pi * label / labels) / temperature for label in range(labels)])
    return table


@st.composite
def tables(draw: st.DrawFn) -> tuple[list[list[float]], list[int]]:
    """Scores at temperature 0.07, any number of labels, each with one description at least."""
    labels = draw(st.integers(2, 6))
    extra = draw(st.lists(st.integers(0, labels - 1), max_size=8))
    targets = draw(st.permutations([*range(labels), *extra]))
    cosine = st.floats(-1, 1, allow_subnormal=False)
    scores = draw(
        st.lists(
            st.lists(cosine.map(lambda value: value / TEMPERATURE), min_size=labels, max_size=labels),
            min_size=len(targets),
            max_size=len(targets),
        )
    )
    return scores, targets


def value(name: str, scores: list[list[float]], targets: list[int]) -> float:
    return getattr(checked, name)(torch.tensor(scores, dtype=torch.float64), torch.tensor(targets)).item()


def test_the_oracles_know_no_torch():
    tree = ast.parse(Path(oracles.__file__).read_text(encoding="utf-8"))
    imported = {
        name.split(".")[0]
        for node in ast.walk(tree)
        for name in ([a.name for a in node.names] if isinstance(node, ast.Import) else [getattr(node, "module", "")])
        if isinstance(node, ast.Import | ast.ImportFrom)
    }
    assert imported == {"math", "collections"}


# ---- values


@pytest.mark.parametrize(("labels", "targets"), [(2, [0, 1]), (3, UNEVEN), (5, [4, 3, 2, 1, 0, 0]), (1, [0, 0, 0])])
def test_rows_equals_the_sum_written_out(labels: int, targets: list[int]):
    scores = angles(labels, targets)
    assert value("infonce_rows", scores, targets) == pytest.approx(oracles.rows_by_hand(scores, targets), rel=1e-12)


@pytest.mark.parametrize(("labels", "targets"), [(2, [0, 1]), (3, UNEVEN), (5, [4, 3, 2, 1, 0, 0]), (1, [0, 0, 0])])
def test_columns_equals_the_sum_written_out(labels: int, targets: list[int]):
    scores = angles(labels, targets)
    by_hand = oracles.columns_by_hand(scores, targets)
    assert value("infonce_columns", scores, targets) == pytest.approx(by_hand, rel=1e-12, abs=1e-15)


@given(tables())
@settings(max_examples=30)
def test_every_loss_equals_its_formula_on_any_table(table: tuple[list[list[float]], list[int]]):
    scores, targets = table
    for name, by_hand in BY_HAND.items():
        assert value(name, scores, targets) == pytest.approx(by_hand(scores, targets), rel=1e-9, abs=1e-9), name


@each_loss
@pytest.mark.parametrize("temperature", [TEMPERATURE, 1.0])
def test_float32_is_good_to_one_step_of_the_largest_score(name: str, temperature: float):
    """Scores near 14.3 lie 1e-6 apart; the loss, a difference of such, is good to that and no better."""
    scores = angles(3, UNEVEN, temperature)
    loss = getattr(plain, name)(torch.tensor(scores), torch.tensor(UNEVEN))
    assert loss.dtype is torch.float32
    assert loss.item() == pytest.approx(BY_HAND[name](scores, UNEVEN), rel=0, abs=1e-6)


def test_symmetric_is_half_of_each():
    scores = angles(3, UNEVEN)
    rows, columns = value("infonce_rows", scores, UNEVEN), value("infonce_columns", scores, UNEVEN)
    assert value("symmetric_infonce", scores, UNEVEN) == pytest.approx((rows + columns) / 2, rel=1e-14)
    assert rows != pytest.approx(columns, rel=0.01)  # else the test above could not tell the two apart


@pytest.mark.parametrize("labels", [2, 3, 77])
def test_rows_of_equal_scores_is_log_of_label_count(labels: int):
    targets = [number % labels for number in range(2 * labels)]
    assert value("infonce_rows", [[0.4] * labels] * len(targets), targets) == pytest.approx(math.log(labels))


def test_columns_of_equal_scores_is_the_mean_log_of_each_labels_share():
    """log(D / K) for each label: with counts 3, 1, 4 of 8."""
    expected = (math.log(8 / 3) + math.log(8 / 1) + math.log(8 / 4)) / 3
    assert value("infonce_columns", [[-2.0] * 3] * 8, UNEVEN) == pytest.approx(expected)


# ---- bounds


@given(tables())
@settings(max_examples=30)
def test_rows_lies_between_the_bounds_that_the_docstring_gives(table: tuple[list[list[float]], list[int]]):
    scores, targets = table
    others = len(scores[0]) - 1
    low = math.log1p(others * math.exp(-2 / TEMPERATURE))
    high = math.log1p(others * math.exp(2 / TEMPERATURE))
    assert low * (1 - 1e-9) <= value("infonce_rows", scores, targets) <= high * (1 + 1e-9)


def test_rows_reaches_both_bounds():
    one = 1 / TEMPERATURE
    low, high = math.log1p(2 * math.exp(-2 * one)), math.log1p(2 * math.exp(2 * one))
    assert value("infonce_rows", [[one, -one, -one]], [0]) == pytest.approx(low, rel=1e-3)
    assert value("infonce_rows", [[-one, one, one]], [0]) == pytest.approx(high)


@given(tables())
@settings(max_examples=30)
def test_columns_is_never_below_zero(table: tuple[list[list[float]], list[int]]):
    assert value("infonce_columns", *table) >= -1e-12


def test_columns_of_one_label_is_zero_because_nothing_competes():
    assert value("infonce_columns", [[1.0], [7.0]], [0, 0]) == 0.0


# ---- symmetries


@given(tables(), st.randoms(use_true_random=False))
@settings(max_examples=40)
def test_every_loss_follows_a_permutation_of_labels_and_of_descriptions(
    table: tuple[list[list[float]], list[int]], random
):
    scores, targets = table
    new_place = list(range(len(scores[0])))
    random.shuffle(new_place)
    order = list(range(len(scores)))
    random.shuffle(order)
    moved = [[row[new_place.index(label)] for label in range(len(row))] for row in scores]
    for name in BY_HAND:
        before = value(name, scores, targets)
        after = value(name, [moved[row] for row in order], [new_place[targets[row]] for row in order])
        assert after == pytest.approx(before, rel=1e-9, abs=1e-12), name


def test_rows_ignores_a_constant_added_to_a_row():
    scores = angles(3, UNEVEN)
    shifted = [[score + 10 * number for score in row] for number, row in enumerate(scores)]
    assert value("infonce_rows", shifted, UNEVEN) == pytest.approx(value("infonce_rows", scores, UNEVEN), rel=1e-12)
    assert value("infonce_columns", shifted, UNEVEN) != pytest.approx(
        value("infonce_columns", scores, UNEVEN), rel=0.01
    )


def test_columns_ignores_a_constant_added_to_a_column():
    scores = angles(3, UNEVEN)
    shifted = [[score + 10 * label for label, score in enumerate(row)] for row in scores]
    expected = value("infonce_columns", scores, UNEVEN)
    assert value("infonce_columns", shifted, UNEVEN) == pytest.approx(expected, rel=1e-12)
    assert value("infonce_rows", shifted, UNEVEN) != pytest.approx(value("infonce_rows", scores, UNEVEN), rel=0.01)


def test_columns_of_one_description_per_label_is_rows_of_the_transpose():
    scores = [[math.sin(3 * row + 5 * column) / TEMPERATURE for column in range(4)] for row in range(4)]
    transposed = [list(column) for column in zip(*scores, strict=True)]
    identity = [0, 1, 2, 3]
    assert value("infonce_columns", scores, identity) == pytest.approx(
        value("infonce_rows", transposed, identity), rel=1e-12
    )
    assert value("infonce_rows", scores, identity) != pytest.approx(
        value("infonce_columns", scores, identity), rel=0.001
    )


def test_a_strong_description_covers_for_a_weak_one_in_columns_but_not_in_rows():
    weak = [[8.0, 0.0], [0.0, 0.0], [0.0, 8.0]]
    repaired = [[8.0, 0.0], [8.0, 0.0], [0.0, 8.0]]
    targets = [0, 0, 1]
    gain_in_rows = value("infonce_rows", weak, targets) - value("infonce_rows", repaired, targets)
    gain_in_columns = value("infonce_columns", weak, targets) - value("infonce_columns", repaired, targets)
    assert gain_in_rows > 100 * abs(gain_in_columns)


# ---- in blocks


def embeddings(count: int, seed: int) -> torch.Tensor:
    return torch.randn(count, 5, generator=torch.Generator().manual_seed(seed), dtype=torch.float64)


@pytest.mark.parametrize("rows", [1, 3, 8])
@pytest.mark.parametrize(("objective", "name"), [("rows", 0), ("columns", 1), ("both", 2)])
def test_blocks_have_the_value_and_the_gradient_of_the_whole_table(
    objective: str, name: int, rows: int, monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.setitem(checked.infonce_in_blocks.__globals__, "BLOCK_SCORES", 3 * rows)
    whole = list(BY_HAND)[name]
    found, expected = [], []
    for values, loss in (
        (found, lambda texts, labels: checked.infonce_in_blocks(texts, labels, torch.tensor(UNEVEN), 0.07, objective)),
        (
            expected,
            lambda texts, labels: getattr(checked, whole)(
                checked.cosine_scores(texts, labels, 0.07), torch.tensor(UNEVEN)
            ),
        ),
    ):
        leaves = [embeddings(8, 0).requires_grad_(), embeddings(3, 1).requires_grad_()]
        value = loss(*leaves)
        value.backward()
        values += [value.detach(), *(leaf.grad for leaf in leaves)]
    torch.testing.assert_close(found, expected)


def test_blocks_equal_the_sum_written_out():
    texts, labels = embeddings(8, 0), embeddings(3, 1)
    scores = [[oracles.cosine_by_hand(text, label) / 0.07 for label in labels.tolist()] for text in texts.tolist()]
    found = checked.infonce_in_blocks(texts, labels, torch.tensor(UNEVEN), 0.07).item()
    assert found == pytest.approx(oracles.both_by_hand(scores, UNEVEN), rel=1e-12)


def test_blocks_stay_finite_at_the_coldest_temperature():
    leaves = [embeddings(8, 0).float().requires_grad_(), embeddings(3, 1).float().requires_grad_()]
    loss = checked.infonce_in_blocks(*leaves, torch.tensor(UNEVEN), COLDEST)
    loss.backward()
    assert loss.isfinite()
    assert all(leaf.grad is not None and leaf.grad.isfinite().all() for leaf in leaves)


# ---- gradients


def gradient(name: str, scores: list[list[float]], targets: list[int]) -> torch.Tensor:
    leaf = torch.tensor(scores, dtype=torch.float64, requires_grad=True)
    getattr(checked, name)(leaf, torch.tensor(targets)).backward()
    assert leaf.grad is not None
    return leaf.grad


@each_loss
def test_the_gradient_is_that_of_finite_differences(name: str):
    torch_targets = torch.tensor(UNEVEN)
    leaf = torch.tensor(angles(3, UNEVEN, temperature=0.5), dtype=torch.float64, requires_grad=True)
    assert torch.autograd.gradcheck(lambda scores: getattr(checked, name)(scores, torch_targets), leaf)


def test_rows_gradient_sums_to_zero_in_each_row():
    found = gradient("infonce_rows", angles(3, UNEVEN, temperature=0.5), UNEVEN)
    assert found.abs().max() > 1e-3
    torch.testing.assert_close(found.sum(dim=1), torch.zeros(len(UNEVEN), dtype=torch.float64))


def test_rows_gradient_is_the_softmax_less_one_at_the_own_label_over_the_count():
    scores = angles(3, UNEVEN, temperature=0.5)
    expected = []
    for row, own in zip(scores, UNEVEN, strict=True):
        whole = sum(math.exp(score) for score in row)
        expected.append([(math.exp(score) / whole - (label == own)) / len(UNEVEN) for label, score in enumerate(row)])
    torch.testing.assert_close(gradient("infonce_rows", scores, UNEVEN), torch.tensor(expected, dtype=torch.float64))


def test_columns_gradient_is_the_one_printed_in_the_paper():
    """Section 3: exp(S) / Z - exp(S) / Z+ at a positive, exp(S) / Z elsewhere, over L."""
    scores, labels = angles(3, UNEVEN, temperature=0.5), 3
    everything = [sum(math.exp(row[label]) for row in scores) for label in range(labels)]
    positives = [
        sum(math.exp(row[label]) for row, own in zip(scores, UNEVEN, strict=True) if own == label)
        for label in range(labels)
    ]
    expected = [
        [
            (math.exp(row[label]) / everything[label] - (own == label) * math.exp(row[label]) / positives[label])
            / labels
            for label in range(labels)
        ]
        for row, own in zip(scores, UNEVEN, strict=True)
    ]
    torch.testing.assert_close(gradient("infonce_columns", scores, UNEVEN), torch.tensor(expected, dtype=torch.float64))


# ---- extremes


@each_loss
def test_the_loss_and_its_gradient_stay_finite_at_the_coldest_temperature(name: str):
    """Scores of +-1000 in float32: exp alone would overflow at 89."""
    worst = [[-1 / COLDEST if label == own else 1 / COLDEST for label in range(3)] for own in UNEVEN]
    leaf = torch.tensor(worst, requires_grad=True)
    loss = getattr(plain, name)(leaf, torch.tensor(UNEVEN))
    loss.backward()
    assert leaf.grad is not None
    assert torch.isfinite(loss)
    assert torch.isfinite(leaf.grad).all()
    # The best of the wrong scores lies 2000 above the own one; logs of counts are all that is added.
    assert loss.item() == pytest.approx(2 / COLDEST, rel=0.01)


def test_columns_is_infinite_for_a_label_without_a_description_as_its_docstring_says():
    assert value("infonce_columns", [[1.0, 0.0], [0.0, 1.0]], [0, 0]) == math.inf


def test_rows_weighs_a_label_by_its_count_and_columns_does_not():
    """Doubling every description of the bad label moves the rows' mean, and leaves the columns' shares as they were."""
    scores, targets = [[5.0, 0.0], [5.0, 0.0]], [0, 1]
    doubled = [scores[0], scores[0], scores[1], scores[1]]
    assert value("infonce_columns", doubled, [0, 0, 1, 1]) == pytest.approx(value("infonce_columns", scores, targets))
    uneven = [scores[0], scores[1], scores[1], scores[1]]
    assert value("infonce_rows", uneven, [0, 1, 1, 1]) > 1.4 * value("infonce_rows", scores, targets)


# ---- shapes

WRONG = {
    "one target too many": (torch.zeros(3, 2), torch.tensor([0, 1, 1, 0])),
    "one target too few": (torch.zeros(3, 2), torch.tensor([0, 1])),
    "targets as a table": (torch.zeros(3, 2), torch.tensor([[0], [1], [1]])),
    "scores as a vector": (torch.zeros(3), torch.tensor([0, 1, 1])),
    "scores with a third axis": (torch.zeros(3, 2, 1), torch.tensor([0, 1, 1])),
}


@each_loss
@pytest.mark.parametrize("wrong", WRONG)
def test_every_loss_refuses_a_wrong_shape(name: str, wrong: str):
    with pytest.raises(ShapeError, match=r"Got shape \(.*\) instead"):
        getattr(plain, name)(*WRONG[wrong])


@each_loss
def test_the_shape_hook_catches_what_our_own_check_does_not_see(name: str):
    """Targets that are no integers: so the hook is on, and the tests above ran with it."""
    scores, targets = torch.zeros(3, 2), torch.tensor([0.0, 1.0, 1.0])
    with pytest.raises(TypeCheckError, match="targets"):
        getattr(checked, name)(scores, targets)
