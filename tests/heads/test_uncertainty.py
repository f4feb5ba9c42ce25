"""The Gaussian head: each extractor as a loop, padding, noise, the paper's sizes, seeds and refusals."""

import math

import pytest
import torch
from torch import Tensor, nn

from heads.layers_by_hand import Table, dot, linear, relu
from labelspace.config import EXTRACTORS
from labelspace.errors import ConfigError, ShapeError
from labelspace.heads import GaussianHead, TextCNN, sample
from labelspace.heads.uncertainty import LOG_VARIANCES
from shape_checked import imported_anew

DIM, LABELS = 6, 4
LENGTHS = [7, 5, 4, 3, 2, 1]  # longer than each kernel, exactly each, and shorter than each


# ---- the extractors, term by term, in Python floats


def mean_of(words: Table) -> list[float]:
    return [sum(column) / len(words) for column in zip(*words, strict=True)]


def textcnn_by_hand(cnn: TextCNN, words: Table) -> list[float]:
    """Every filter over every window of the text; zeros fill up a text that is shorter than the filter."""
    features = []
    for kernel, layer in zip(cnn.kernels, cnn.filters, strict=True):
        assert isinstance(layer, nn.Linear)
        filled = [*words, *[[0.0] * cnn.dim] * (kernel - len(words))]
        for weights, bias in zip(layer.weight.tolist(), layer.bias.tolist(), strict=True):
            responses = []
            for t in range(len(filled) - kernel + 1):
                response = bias
                for r in range(kernel):
                    response += dot(weights[r * cnn.dim : (r + 1) * cnn.dim], filled[t + r])
                responses.append(max(0.0, response))
            features.append(max(responses))
    return features


def attention_by_hand(pooling: nn.Module, words: Table) -> list[float]:
    scores = [linear(pooling.question, [math.tanh(v) for v in linear(pooling.words, word)])[0] for word in words]  # pyright: ignore[reportArgumentType]
    weights = [math.exp(score) / sum(math.exp(other) for other in scores) for score in scores]
    return [sum(w * word[i] for w, word in zip(weights, words, strict=True)) for i in range(len(words[0]))]


BY_HAND = {
    "textcnn": textcnn_by_hand,
    "cls": lambda module, words: words[0],
    "eos": lambda module, words: words[-1],
    "mean": lambda module, words: mean_of(words),
    "mlp": lambda module, words: relu(linear(module.second, relu(linear(module.first, mean_of(words))))),
    "attention": attention_by_hand,
}


# ---- heads and batches


def seeded(seed: int = 0) -> torch.Generator:
    return torch.Generator().manual_seed(seed)


def batch(dtype: torch.dtype = torch.float64, *, left: bool = False, dim: int = DIM) -> tuple[Tensor, Tensor]:
    """Return texts of several lengths, padded by zeros on the right or left."""
    width = max(LENGTHS)
    states = torch.randn(len(LENGTHS), width, dim, generator=seeded(2), dtype=torch.float64).to(dtype)
    mask = torch.arange(width) < torch.tensor(LENGTHS)[:, None]
    mask = mask.flip(1) if left else mask
    return states.masked_fill(~mask[..., None], 0), mask.long()


def of_words(states: Tensor, mask: Tensor) -> list[list[list[float]]]:
    return [text[own.bool()].tolist() for text, own in zip(states, mask, strict=True)]


def trained(head: nn.Module) -> nn.Module:
    """Return the head with values far from the initial ones, so that no term is near zero."""
    generator = seeded(3)
    with torch.no_grad():
        for values in head.parameters():
            values.copy_(torch.randn(values.shape, generator=generator) / 2)
    return head.double()


def make(name: str = "mean", **options) -> GaussianHead:
    return GaussianHead(DIM, LABELS, generator=seeded(), extractor=name, **options)


def close(found: Tensor, expected: Tensor) -> None:
    """Assert equality up to the order of sums in float64."""
    torch.testing.assert_close(found, expected, rtol=0, atol=1e-12)


each_extractor = pytest.mark.parametrize("name", EXTRACTORS)
each_side = pytest.mark.parametrize("left", [False, True], ids=["padding after", "padding before"])


# ---- values


@each_side
@pytest.mark.parametrize("kernels", [(3, 4, 5), (1,), (2, 7), (9,)], ids=str)
def test_the_cnn_equals_the_loop_over_windows(kernels: tuple[int, ...], left: bool):
    cnn = TextCNN(DIM, generator=seeded(), kernels=kernels)
    trained(cnn)
    states, mask = batch(left=left)
    expected = [textcnn_by_hand(cnn, words) for words in of_words(states, mask)]
    close(cnn(states, mask), torch.tensor(expected, dtype=torch.float64))
    assert (cnn(states, mask) >= 0).all()


@each_extractor
@each_side
def test_each_extractor_equals_its_formula_written_out(name: str, left: bool):
    extractor = trained(make(name).extractor)
    states, mask = batch(left=left)
    expected = [BY_HAND[name](extractor, words) for words in of_words(states, mask)]
    close(extractor(states, mask), torch.tensor(expected, dtype=torch.float64))


def test_a_window_reads_its_words_in_their_order():
    """One filter matches 1, 2, 3 in a row: 1 + 4 + 9 - 10 in this order, at best 6 + 6 - 10 in another."""
    cnn = TextCNN(1, generator=seeded(), kernels=(3,))
    with torch.no_grad():
        cnn.filters[0].weight.copy_(torch.tensor([[1.0, 2.0, 3.0]]))  # pyright: ignore[reportCallIssue]
        cnn.filters[0].bias.fill_(-10.0)  # pyright: ignore[reportCallIssue]
    states = torch.tensor([[0.0, 1, 2, 3, 0], [0.0, 3, 2, 1, 0]])[..., None]
    assert cnn(states, torch.ones(2, 5, dtype=torch.bool)).tolist() == [[4.0], [2.0]]


@each_extractor
@pytest.mark.parametrize("uncertain", [True, False])
def test_the_head_equals_equations_1_2_and_4_written_out(name: str, uncertain: bool):
    head = make(name, uncertain=uncertain)
    trained(head)
    states, mask = batch()
    mean, std = head(states, mask)
    logits = head.logits(mean)
    for row, words in enumerate(of_words(states, mask)):
        features = BY_HAND[name](head.extractor, words)
        own = linear(head.mean, features)
        assert mean[row].tolist() == pytest.approx(own, rel=1e-12, abs=1e-12)
        assert logits[row].tolist() == pytest.approx(linear(head.classifier, own), rel=1e-12, abs=1e-12)
        if std is not None:
            assert head.log_variance is not None
            logs = [min(max(v, LOG_VARIANCES[0]), LOG_VARIANCES[1]) for v in linear(head.log_variance, features)]
            assert std[row].tolist() == pytest.approx([math.sqrt(math.exp(v)) for v in logs], rel=1e-12)
    assert (std is not None) == uncertain
    assert head.classifier.bias is None


def test_every_weighted_mean_of_equal_words_is_that_word():
    """The weights of the words sum to one, with none at padding."""
    word = torch.randn(DIM, generator=seeded(5), dtype=torch.float64)
    _, mask = batch()
    states = torch.where(mask.bool()[..., None], word, 1e30)
    for name in ("cls", "eos", "mean", "attention"):
        close(trained(make(name).extractor)(states, mask), word.expand(len(LENGTHS), DIM))


# ---- sizes


def count(module: nn.Module) -> int:
    return sum(values.numel() for values in module.parameters())


def test_the_sizes_are_those_of_table_6_as_printed():
    """19.0M at 1024 with the 77 labels of Banking77, 10.6M at 768 with two."""

    def size(dim: int, labels: int) -> int:
        return 18 * dim**2 + 5 * dim + labels * dim

    assert count(GaussianHead(32, 5, generator=seeded())) == size(32, 5)
    assert [f"{size(*given) / 1e6:.1f}M" for given in ((1024, 77), (768, 2))] == ["19.0M", "10.6M"]


@pytest.mark.parametrize(
    ("name", "size", "width"),
    [
        ("textcnn", 12 * DIM**2 + 3 * DIM, 3 * DIM),
        ("mlp", 12 * DIM**2 + 6 * DIM, 3 * DIM),
        ("attention", DIM**2 + 2 * DIM, DIM),
        ("mean", 0, DIM),
        ("cls", 0, DIM),
        ("eos", 0, DIM),
    ],
)
def test_the_size_of_each_head_is_that_of_its_formula(name: str, size: int, width: int):
    head = make(name)
    assert count(head.extractor) == size
    branch = (width + 1) * DIM
    assert count(head) == size + 2 * branch + LABELS * DIM
    assert count(make(name, uncertain=False)) == size + branch + LABELS * DIM


# ---- padding


@each_extractor
@each_side
@pytest.mark.parametrize("rubbish", [1e30, math.nan])
def test_states_at_padding_are_ignored(name: str, left: bool, rubbish: float):
    """The bits are equal in float32, and the gradient at padding is zero."""
    head = make(name)
    states, mask = batch(torch.float32, left=left)
    spoilt = states.masked_fill(mask[..., None] == 0, rubbish).requires_grad_()
    found, expected = head(spoilt, mask), head(states, mask)
    assert torch.equal(found[0], expected[0])
    assert torch.equal(found[1], expected[1])
    (found[0].sum() + found[1].sum()).backward()
    assert spoilt.grad is not None
    assert torch.isfinite(spoilt.grad).all()
    assert (spoilt.grad[mask == 0] == 0).all()
    assert spoilt.grad.any()


@each_extractor
@each_side
def test_more_padding_changes_nothing_on_either_side(name: str, left: bool):
    extractor = trained(make(name).extractor)
    states, mask = batch(left=left)
    expected = extractor(states, mask)
    for before, after in ((0, 9), (9, 0), (4, 60), (1, 0), (0, 1)):
        padded = nn.functional.pad(states, (0, 0, before, after), value=math.nan)
        close(extractor(padded, nn.functional.pad(mask, (before, after))), expected)


@each_extractor
@each_side
def test_a_text_gives_the_same_result_alone_and_in_a_batch(name: str, left: bool):
    """Alone, a short text has fewer positions than the kernels; in a batch it has more."""
    extractor = trained(make(name).extractor)
    states, mask = batch(left=left)
    together = extractor(states, mask)
    for row in range(len(LENGTHS)):
        own = mask[row].bool()
        close(extractor(states[row : row + 1, own], mask[row : row + 1, own]), together[row : row + 1])
    order = torch.tensor([3, 5, 0, 1, 4, 2])
    close(extractor(states[order], mask[order]), together[order])


@each_extractor
def test_left_and_right_padding_may_share_a_batch(name: str):
    extractor = trained(make(name).extractor)
    (after, mask_after), (before, mask_before) = batch(), batch(left=True)
    found = extractor(torch.cat([after, before]), torch.cat([mask_after, mask_before]))
    close(found, torch.cat([extractor(after, mask_after), extractor(before, mask_before)]))


@each_extractor
def test_masks_of_bools_and_of_integers_are_equivalent(name: str):
    extractor = make(name).extractor
    states, mask = batch(torch.float32)
    assert torch.equal(extractor(states, mask.bool()), extractor(states, mask))


@pytest.mark.filterwarnings("ignore:Anomaly Detection has been enabled")
@each_extractor
@pytest.mark.parametrize("rubbish", [0.0, math.nan])
def test_a_text_without_tokens_is_one_of_zeros_and_gives_finite_gradients(name: str, rubbish: float):
    extractor = trained(make(name).extractor)
    states, mask = batch()
    whole = extractor(states, mask)
    mask[1] = 0
    states[1] = rubbish
    with torch.autograd.set_detect_anomaly(True):  # an intermediate nan is an error, even if a mask hides it later
        found = extractor(states.requires_grad_(), mask)
        found.square().sum().backward()
    expected = BY_HAND[name](extractor, [[0.0] * DIM])
    assert found[1].tolist() == pytest.approx(expected, rel=1e-12, abs=1e-12)
    close(found[[0, 2, 3, 4, 5]], whole[[0, 2, 3, 4, 5]])
    assert states.grad is not None
    assert torch.isfinite(states.grad).all()
    assert (states.grad[1] == 0).all()
    assert all(torch.isfinite(values.grad).all() for values in extractor.parameters() if values.grad is not None)


# ---- std


@pytest.mark.parametrize(("log_variance", "std"), [(1e30, math.exp(7)), (-1e30, math.exp(-7)), (1.0, math.exp(0.5))])
def test_std_and_its_gradient_are_finite_for_any_log_variance(log_variance: float, std: float):
    head = make("cls")
    assert head.log_variance is not None
    with torch.no_grad():
        head.log_variance.weight.zero_()
        head.log_variance.bias.fill_(log_variance)
    states, mask = batch(torch.float32)
    _, found = head(states, mask)
    torch.testing.assert_close(found, torch.full_like(found, std))
    (found.square().sum() - found.log().sum() - (1 / found).sum()).backward()
    slope = head.log_variance.bias.grad
    assert slope is not None
    assert torch.isfinite(slope).all()
    assert slope.any() == (LOG_VARIANCES[0] < log_variance < LOG_VARIANCES[1])


@each_extractor
def test_texts_of_any_size_have_a_std_within_the_bounds_of_the_module(name: str):
    head = make(name)
    states, mask = batch(torch.float32)
    _, std = head(1e20 * states, mask)
    assert std.max().item() == pytest.approx(math.exp(7), rel=1e-6)
    assert std.min().item() == pytest.approx(math.exp(-7), rel=1e-6)


# ---- dropout


def test_dropout_zeroes_its_share_and_keeps_the_expectation():
    """Filters of three words pass one coordinate each, and the mean reads only those."""
    head = make("textcnn", dropout=0.3, uncertain=False)
    assert isinstance(head.extractor, TextCNN)
    with torch.no_grad():
        for values in head.parameters():
            values.zero_()
        head.extractor.filters[0].weight[:, :DIM].copy_(torch.eye(DIM))
        head.mean.weight[:, :DIM].copy_(torch.eye(DIM))
    texts = 20_000
    states = torch.arange(1.0, DIM + 1).expand(texts, 1, DIM)
    mask = torch.ones(texts, 1, dtype=torch.bool)
    plain, _ = head(states, mask)
    dropped, _ = head(states, mask, noise=seeded(1))
    gone = dropped == 0
    torch.testing.assert_close(dropped[~gone], (plain / 0.7)[~gone])
    error = math.sqrt(0.3 * 0.7 / texts)
    assert (gone.double().mean(dim=0) - 0.3).abs().max() < 4 * error
    # Mean of x * kept / 0.7, whose standard error is x * error / 0.7.
    assert ((dropped.double().mean(dim=0) - plain[0]).abs() / plain[0]).max() < 4 * error / 0.7
    both = (gone[:, 0] & gone[:, 1]).double().mean().item()
    assert both == pytest.approx(0.3**2, abs=4 * math.sqrt(0.09 * 0.91 / texts))  # coordinates drop independently


def test_dropout_acts_only_in_training_with_noise_and_depends_on_it_alone():
    head = make("textcnn").train()
    states, mask = batch(torch.float32)
    plain, noise = head(states, mask), seeded(1)
    before = noise.get_state()
    for evaluated in (head.eval()(states, mask), head(states, mask, noise=noise)):
        assert all(torch.equal(a, b) for a, b in zip(plain, evaluated, strict=True))
    assert torch.equal(noise.get_state(), before)
    head.train()
    one, again, other = (head(states, mask, noise=seeded(seed)) for seed in (1, 1, 2))
    for part in (0, 1):
        assert torch.equal(one[part], again[part])
        assert not torch.equal(one[part], other[part])
        assert not torch.equal(one[part], plain[part])


def test_mean_and_std_are_read_from_the_same_features():
    """Both branches share one dropout, so equal weights give equal results."""
    head = make("textcnn")
    assert head.log_variance is not None
    head.log_variance.load_state_dict(head.mean.state_dict())
    states, mask = batch(torch.float32)
    mean, std = head(states, mask, noise=seeded(1))
    torch.testing.assert_close(2 * std.log(), mean, rtol=1e-5, atol=1e-6)


@pytest.mark.parametrize("name", sorted({*EXTRACTORS} - {"textcnn"}))
def test_the_extractors_of_the_ablation_have_no_dropout(name: str):
    """Section 5.3 gives dropout to TextCNN only."""
    head, noise = make(name, dropout=0.5), seeded(1)
    states, mask = batch(torch.float32)
    before = noise.get_state()
    assert torch.equal(head(states, mask, noise=noise)[0], head(states, mask)[0])
    assert torch.equal(noise.get_state(), before)


def test_no_dropout_draws_nothing():
    head, noise = make("textcnn", dropout=0), seeded(1)
    states, mask = batch(torch.float32)
    before = noise.get_state()
    assert torch.equal(head(states, mask, noise=noise)[0], head(states, mask)[0])
    assert torch.equal(noise.get_state(), before)


@pytest.mark.parametrize("name", sorted(EXTRACTORS))
def test_autocast_narrows_nothing_behind_the_work_per_token(name: str):
    head = make(name)
    states, mask = batch(torch.float32)
    outside = [*head(states, mask), head.logits(head(states, mask)[0])]
    with torch.autocast("cpu", torch.bfloat16):
        mean, std = head(states, mask)
        inside = [mean, std, head.logits(mean)]
    for narrowed, plain in zip(inside, outside, strict=True):
        assert narrowed.dtype is torch.float32
        if name not in ("textcnn", "attention"):  # the others have no weights per token
            assert torch.equal(narrowed, plain)


# ---- sample


def test_samples_have_the_given_mean_and_variance_and_independent_noise():
    draws = 50_000
    mean, std = torch.tensor([0.0, -2.0, 5.0]), torch.tensor([1.0, 0.1, 3.0])
    drawn = sample(mean.expand(draws, 3), std.expand(draws, 3), seeded(1)).double()
    assert ((drawn.mean(dim=0) - mean).abs() / std).max() < 4 / math.sqrt(draws)
    assert (drawn.var(dim=0) / std.square() - 1).abs().max() < 4 * math.sqrt(2 / draws)
    assert (torch.corrcoef(drawn.T) - torch.eye(3)).abs().max() < 4 / math.sqrt(draws)
    neighbours = torch.corrcoef(torch.stack([drawn[:-1, 0], drawn[1:, 0]]))  # texts, too
    assert neighbours[0, 1].abs() < 4 / math.sqrt(draws)


def test_the_gradient_of_a_sample_reaches_mean_and_std():
    mean = torch.randn(4, DIM, generator=seeded(), dtype=torch.float64).requires_grad_()
    std = torch.rand(4, DIM, generator=seeded(1), dtype=torch.float64).requires_grad_()
    drawn = sample(mean, std, seeded(2))
    drawn.sum().backward()
    torch.testing.assert_close(mean.grad, torch.ones_like(mean))
    torch.testing.assert_close(std.grad, ((drawn - mean) / std).detach())
    assert torch.autograd.gradcheck(lambda m, s: sample(m, s, seeded(2)), (mean, std))


def test_a_std_of_another_shape_is_refused_and_not_broadcast():
    with pytest.raises(ShapeError, match=r"shape of mean, \(2, 6\)\. Got \(1, 6\)"):
        sample(torch.ones(2, DIM), torch.ones(1, DIM), seeded())


def test_a_sample_without_a_std_is_the_mean_and_draws_nothing():
    mean, noise = torch.ones(2, DIM), seeded(1)
    before = noise.get_state()
    assert sample(mean, None, noise) is mean
    assert torch.equal(noise.get_state(), before)


# ---- seeds


@each_extractor
def test_all_values_depend_on_the_seed_and_leave_global_state_alone(name: str):
    before = torch.get_rng_state()
    one, again, other = (GaussianHead(DIM, LABELS, generator=seeded(seed), extractor=name) for seed in (0, 0, 1))
    states, mask = batch(torch.float32)
    mean, std = one(states, mask, noise=seeded(1))
    drawn = sample(mean, std, seeded(2))
    assert torch.equal(torch.get_rng_state(), before)
    mean_again, std_again = again(states, mask, noise=seeded(1))
    assert torch.equal(drawn, sample(mean_again, std_again, seeded(2)))
    assert not torch.equal(drawn, sample(mean, std, seeded(3)))
    for part, values in one.state_dict().items():
        assert torch.equal(values, again.state_dict()[part])
        assert not torch.equal(values, other.state_dict()[part])


# ---- gradients


def test_the_gradient_through_the_cnn_is_that_of_finite_differences():
    cnn = TextCNN(3, generator=seeded())
    trained(cnn)
    states, mask = batch(left=True, dim=3)
    parts = [name for name, _ in cnn.named_parameters()]

    def read(words: Tensor, *values: Tensor) -> Tensor:
        return torch.func.functional_call(cnn, dict(zip(parts, values, strict=True)), (words, mask))

    leaves = [values.detach().clone().requires_grad_() for values in cnn.parameters()]
    assert read(states, *leaves).dtype is torch.float64
    assert torch.autograd.gradcheck(read, (states.requires_grad_(), *leaves), fast_mode=True)
    assert torch.autograd.gradcheck(lambda words: read(words, *leaves), states)


@each_extractor
def test_the_gradient_of_mean_and_std_is_that_of_finite_differences(name: str):
    head = make(name)
    trained(head)
    states, mask = batch()
    assert torch.autograd.gradcheck(lambda words: head(words / 2, mask), states.requires_grad_(), fast_mode=True)


@each_extractor
def test_cross_entropy_of_samples_reaches_every_parameter_and_falls(name: str):
    head = make(name)
    states, mask = batch(torch.float32)
    targets, noise = torch.tensor([0, 1, 2, 3, 0, 1]), seeded(1)
    optimizer = torch.optim.AdamW(head.parameters(), lr=2e-2)
    for step in range(80):
        mean, std = head(states, mask, noise=noise)
        loss = nn.functional.cross_entropy(head.logits(sample(mean, std, noise)), targets)
        optimizer.zero_grad()
        loss.backward()
        if step == 0:
            without = [part for part, values in head.named_parameters() if values.grad is None or not values.grad.any()]
            assert without == []
        optimizer.step()
    mean, _ = head(states, mask)
    assert nn.functional.cross_entropy(head.logits(mean), targets) < 0.5 * math.log(LABELS)


# ---- precision


@each_extractor
def test_bfloat16_states_give_float32_within_its_rounding(name: str):
    """CNN and attention compute in bfloat16: within half a percent of the largest feature; others are bit-equal."""
    head = make(name)
    states, mask = batch(torch.bfloat16)
    found, expected = head.extractor(states, mask), head.extractor(states.float(), mask)
    assert found.dtype is torch.float32
    if name in ("textcnn", "attention"):
        assert (found - expected).abs().max() < 0.005 * expected.abs().max()
    else:
        assert torch.equal(found, expected)
    mean, std = head(states, mask)
    expected_mean, expected_std = head(states.float(), mask)
    assert mean.dtype is std.dtype is head.logits(mean).dtype is torch.float32
    assert (mean - expected_mean).abs().max() <= 0.005 * expected_mean.abs().max()
    assert (std / expected_std - 1).abs().max() < 0.005


@each_extractor
def test_float32_states_are_near_float64(name: str):
    head = make(name)
    states, mask = batch(torch.float32)
    found = head(states, mask)
    expected = head.double()(states.double(), mask)
    assert [part.dtype for part in found] == [torch.float32] * 2
    assert [part.dtype for part in expected] == [torch.float64] * 2
    for narrow, wide in zip(found, expected, strict=True):
        torch.testing.assert_close(narrow.double(), wide, rtol=1e-5, atol=1e-6)


@each_extractor
def test_a_gradient_passes_through_bfloat16(name: str):
    head = make(name)
    states, mask = batch(torch.bfloat16)
    mean, std = head(states, mask)
    (mean.sum() + std.sum()).backward()
    for part, values in head.named_parameters():
        if part != "classifier.weight":
            assert values.grad is not None
            assert values.grad.dtype is torch.float32
            assert torch.isfinite(values.grad).all()


# ---- shapes and refusals


@each_extractor
@pytest.mark.parametrize(
    ("shape", "mask_shape", "message"),
    [
        ((2, 3), (2, 3), r"states must be \[text token dim\] of width 6\. Got shape \(2, 3\)"),
        ((2, 3, DIM + 1), (2, 3), "of width 6"),
        ((2, 0, DIM), (2, 0), "of width 6"),
        ((0, 3, DIM), (0, 3), "of width 6"),
        ((1, 2, 3, DIM), (1, 2, 3), "of width 6"),
        ((2, 3, DIM), (2, 4), r"mask must be a matrix \[text token\] of shape \(2, 3\)\. Got shape \(2, 4\)"),
        ((2, 3, DIM), (3,), "mask must be a matrix"),
        ((2, 3, DIM), (1, 3), "mask must be a matrix"),
    ],
    ids=str,
)
def test_states_or_a_mask_of_another_shape_are_refused(name: str, shape, mask_shape, message: str):
    with pytest.raises(ShapeError, match=message):
        make(name)(torch.ones(shape), torch.ones(mask_shape, dtype=torch.bool))


def test_arguments_out_of_range_are_refused():
    for wrong, word in (
        (lambda: GaussianHead(0, LABELS, generator=seeded()), "dim must be"),
        (lambda: GaussianHead(DIM, 0, generator=seeded()), "labels must be"),
        (lambda: make("bert"), "extractor must be one of 'textcnn', 'cls'"),
        (lambda: make("mean", dropout=-0.1), "dropout must be"),
        (lambda: make("mean", dropout=1), "dropout must be"),
        (lambda: TextCNN(0, generator=seeded()), "dim must be"),
        (lambda: TextCNN(DIM, generator=seeded(), kernels=(3, 0)), "kernels must be"),
        (
            lambda: TextCNN(DIM, generator=seeded(), kernels=()),
            r"number of kernels must be a whole number at least 1\. Got 0 instead",
        ),
    ):
        with pytest.raises(ConfigError, match=word):
            wrong()


@each_extractor
def test_a_generator_that_is_not_on_the_cpu_is_refused(name: str):
    class Elsewhere:
        device = torch.device("meta")

    with pytest.raises(ConfigError, match="generator must be on the cpu"):
        GaussianHead(DIM, LABELS, generator=Elsewhere(), extractor=name)  # pyright: ignore[reportArgumentType]


def test_the_shapes_hold_under_the_checking_hook():
    names = ("labelspace.heads.layers", "labelspace.heads.uncertainty")
    checked = imported_anew(names[1], *names)
    for dtype in (torch.float32, torch.bfloat16):
        states, mask = batch(dtype, left=True)
        for name in EXTRACTORS:
            head = checked.GaussianHead(DIM, LABELS, generator=seeded(), extractor=name)
            for words in (mask, mask.bool()):
                mean, std = head(states, words, noise=seeded(1))
                assert head.logits(checked.sample(mean, std, seeded(2))).shape == (len(LENGTHS), LABELS)
            with pytest.raises(Exception, match="mask"):
                head(states, mask.float())
    certain = checked.GaussianHead(DIM, LABELS, generator=seeded(), uncertain=False)
    mean, std = certain(*batch(torch.float32))
    assert checked.sample(mean, std, seeded()) is mean
    with pytest.raises(Exception, match="std"):
        checked.sample(mean, torch.ones(1, DIM), seeded())
