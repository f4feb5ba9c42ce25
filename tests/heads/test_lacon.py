"""LaCon's heads and its two label-embedding baselines: the equations as loops, padding, seeds, shapes and refusals."""

import math
from collections.abc import Callable, Sequence

import pytest
import torch
from torch import Tensor, nn

from heads.layers_by_hand import Table, dot, linear, relu
from labelspace.errors import ConfigError, ShapeError
from labelspace.heads import FusionHead, LabelEmbeddings, LEAMHead, LSANHead, ProjectionHead
from losses.oracles import cosine_by_hand
from shape_checked import imported_anew

DIM, COUNT = 6, 4
LENGTHS = [5, 2, 1, 7]


# ---- the equations, term by term, in Python floats


def softmax(values: Sequence[float]) -> list[float]:
    exps = [math.exp(value) for value in values]
    return [value / sum(exps) for value in exps]


def mix(weights: Sequence[float], words: Table) -> list[float]:
    return [sum(w * word[i] for w, word in zip(weights, words, strict=True)) for i in range(len(words[0]))]


def smoothed(words: Table, label: Sequence[float], kernel: Sequence[float], at: int) -> float:
    """The filter centred on one word, with zeros beyond both ends."""
    total = 0.0
    for r, weight in enumerate(kernel):
        there = at + r - len(kernel) // 2
        if 0 <= there < len(words):
            total += weight * cosine_by_hand(words[there], label)
    return total


def fusion_by_hand(words: Table, labels: Table, kernel: Sequence[float]) -> list[float]:
    """LaCon, equation 9."""
    m = [max(smoothed(words, label, kernel, at) for label in labels) for at in range(len(words))]
    return mix(softmax(m), words)


def leam_by_hand(head: LEAMHead, words: Table) -> list[float]:
    """LEAM: a bias for each label, ReLU, the best label, then two layers."""
    kernel, bias, labels = head.filter.tolist(), head.bias.tolist(), head.labels.vectors.tolist()
    m = [
        max(relu([smoothed(words, label, kernel, at) + shift for label, shift in zip(labels, bias, strict=True)]))
        for at in range(len(words))
    ]
    return linear(head.outer, relu(linear(head.inner, mix(softmax(m), words))))


def lsan_by_hand(head: LSANHead, words: Table) -> list[float]:
    """LSAN: two vectors for each label, mixed by two gates that are scaled to sum to one."""
    questions = [linear(head.queries, [math.tanh(v) for v in linear(head.words, word)]) for word in words]
    logits = []
    for p, label in enumerate(head.labels.vectors.tolist()):
        by_self = mix(softmax([question[p] for question in questions]), words)
        by_label = mix([dot(label, word) for word in words], words)
        alpha = 1 / (1 + math.exp(-linear(head.self_gate, by_self)[0]))
        beta = 1 / (1 + math.exp(-linear(head.label_gate, by_label)[0]))
        share = alpha / (alpha + beta)
        fused = [share * a + (1 - share) * b for a, b in zip(by_self, by_label, strict=True)]
        logits += linear(head.outer, relu(linear(head.inner, fused)))
    return logits


# ---- heads and batches


def seeded(seed: int = 0) -> torch.Generator:
    return torch.Generator().manual_seed(seed)


def labels(seed: int = 1) -> LabelEmbeddings:
    """Return labels far enough apart that the weights of words differ."""
    return LabelEmbeddings(COUNT, DIM, generator=seeded(seed), spread=1.0)


def batch(width: int = max(LENGTHS), dtype: torch.dtype = torch.float64) -> tuple[Tensor, Tensor]:
    """Return texts of several lengths, padded by zeros at the end."""
    states = torch.randn(len(LENGTHS), width, DIM, generator=seeded(2), dtype=torch.float64).to(dtype)
    mask = torch.arange(width) < torch.tensor(LENGTHS)[:, None]
    return states.masked_fill(~mask[..., None], 0), mask.long()


def trained(head: nn.Module) -> nn.Module:
    """Return the head with values far from the initial ones, so that no term is near zero."""
    generator = seeded(3)
    with torch.no_grad():
        for values in head.parameters():
            values.copy_(torch.randn(values.shape, generator=generator))
    return head.double()


def fusion() -> Callable[[Tensor, Tensor], Tensor]:
    head, own = trained(FusionHead(generator=seeded(), window=3)), labels().double()
    return lambda states, mask: head(states, mask, own())


READERS: dict[str, Callable[[], Callable[[Tensor, Tensor], Tensor]]] = {
    "FusionHead": fusion,
    "LEAMHead": lambda: trained(LEAMHead(labels(), generator=seeded(), window=3, hidden=5)),
    "LSANHead": lambda: trained(LSANHead(labels(), generator=seeded(), attention=3, hidden=5)),
}
each_reader = pytest.mark.parametrize("name", READERS)
MAKERS: dict[str, Callable[[torch.Generator], nn.Module]] = {
    "ProjectionHead": lambda generator: ProjectionHead(DIM, generator=generator),
    "LabelEmbeddings": lambda generator: LabelEmbeddings(COUNT, DIM, generator=generator),
    "FusionHead": lambda generator: FusionHead(generator=generator),
    "LEAMHead": lambda generator: LEAMHead(labels(), generator=generator),
    "LSANHead": lambda generator: LSANHead(labels(), generator=generator),
}
each_head = pytest.mark.parametrize("name", MAKERS)


# ---- values


def test_the_projection_head_equals_the_formula_written_out():
    head = trained(ProjectionHead(DIM, generator=seeded()))
    states = torch.randn(5, DIM, generator=seeded(2), dtype=torch.float64)
    expected = [linear(head.third, relu(linear(head.second, relu(linear(head.first, row))))) for row in states.tolist()]
    torch.testing.assert_close(head(states), torch.tensor(expected, dtype=torch.float64))
    assert (head(states) < 0).any()  # no ReLU after the last layer


@pytest.mark.parametrize("window", [1, 3, 55])
def test_the_fusion_head_equals_equation_9_written_out(window: int):
    head, own = FusionHead(generator=seeded(), window=window).double(), labels().double()
    states, mask = batch()
    expected = [
        fusion_by_hand(text[:length], own.vectors.tolist(), head.filter.tolist())
        for text, length in zip(states.tolist(), LENGTHS, strict=True)
    ]
    torch.testing.assert_close(head(states, mask, own()), torch.tensor(expected, dtype=torch.float64))


@pytest.mark.parametrize("window", [1, 3, 55])
def test_the_leam_head_equals_its_formula_written_out(window: int):
    head = LEAMHead(labels(), generator=seeded(), window=window, hidden=5)
    states, mask = batch()
    trained(head)
    expected = [leam_by_hand(head, text[:length]) for text, length in zip(states.tolist(), LENGTHS, strict=True)]
    torch.testing.assert_close(head(states, mask), torch.tensor(expected, dtype=torch.float64))


def test_the_lsan_head_equals_its_formula_written_out():
    head = LSANHead(labels(), generator=seeded(), attention=3, hidden=5)
    states, mask = batch()
    trained(head)
    expected = [lsan_by_hand(head, text[:length]) for text, length in zip(states.tolist(), LENGTHS, strict=True)]
    torch.testing.assert_close(head(states, mask), torch.tensor(expected, dtype=torch.float64))


def test_the_weights_of_the_words_of_a_text_sum_to_one():
    states, mask = batch()
    weights = FusionHead(generator=seeded()).double().attention(states, mask, labels().double()())
    torch.testing.assert_close(weights.sum(dim=1), torch.ones(len(LENGTHS), dtype=torch.float64))
    assert torch.equal(weights == 0, mask == 0)


def test_a_text_without_words_has_zero_weights():
    states, mask = batch()
    weights = FusionHead(generator=seeded()).double().attention(states, 0 * mask, labels().double()())
    assert torch.equal(weights, torch.zeros_like(weights))


def test_a_word_that_equals_a_label_has_the_largest_weight():
    head = FusionHead(generator=seeded(), window=1)
    with torch.no_grad():
        head.filter.fill_(5.0)
    words = torch.tensor([[[1.0, 1.0, 0.0], [0.0, 0.0, 3.0], [1.0, -1.0, 1.0]]])
    own = torch.tensor([[0.0, 0.0, 0.1], [-1.0, 0.0, 0.0]])
    weights = head.attention(words, torch.ones(1, 3, dtype=torch.bool), own)[0]
    assert weights.argmax() == 1
    torch.testing.assert_close(weights, torch.softmax(torch.tensor([0.0, 5.0, 5 / math.sqrt(3)]), dim=0))


def test_the_weights_ignore_norms_label_order_and_duplicate_labels():
    states, mask = batch()
    head, own = FusionHead(generator=seeded()).double(), labels().double()()
    expected = head.attention(states, mask, own)
    torch.testing.assert_close(head.attention(7 * states, mask, 0.1 * own), expected)
    torch.testing.assert_close(head.attention(states, mask, own[[3, 1, 0, 2]]), expected)
    torch.testing.assert_close(head.attention(states, mask, torch.cat([own, own[:1]])), expected)


def test_the_fused_vector_of_one_word_is_that_word():
    states, mask = batch()
    fused = READERS["FusionHead"]()(states, mask)
    torch.testing.assert_close(fused[LENGTHS.index(1)], states[LENGTHS.index(1), 0])


def test_leam_classifies_labels_and_texts_by_the_same_classifier():
    head = LEAMHead(labels(), generator=seeded(), hidden=5)
    expected = [linear(head.outer, relu(linear(head.inner, row))) for row in head.labels.vectors.tolist()]
    torch.testing.assert_close(head.label_logits(), torch.tensor(expected), rtol=1e-5, atol=1e-6)


def test_underflowing_gates_of_lsan_give_no_nan():
    """Sigmoid of -400 is 0 in float32, so alpha / (alpha + beta) would be nan."""
    head = LSANHead(labels(), generator=seeded(), attention=3, hidden=5)
    with torch.no_grad():
        head.self_gate.weight.fill_(-400)
        head.label_gate.weight.fill_(-400)
    states = torch.ones(1, 2, DIM, requires_grad=True)
    logits = head(states, torch.ones(1, 2, dtype=torch.bool))
    logits.sum().backward()
    assert torch.isfinite(logits).all()
    assert states.grad is not None
    assert torch.isfinite(states.grad).all()


# ---- padding


@each_reader
def test_more_padding_changes_nothing_on_either_side(name: str):
    read = READERS[name]()
    states, mask = batch()
    expected = read(states, mask)
    for left, right in ((0, 9), (9, 0), (4, 60)):
        padded = nn.functional.pad(states, (0, 0, left, right))
        found = read(padded, nn.functional.pad(mask, (left, right)))
        torch.testing.assert_close(found, expected, rtol=0, atol=1e-12)


@each_reader
@pytest.mark.parametrize("rubbish", [1e9, math.nan])
def test_states_at_padding_are_ignored(name: str, rubbish: float):
    read = READERS[name]()
    states, mask = batch()
    spoilt = states.masked_fill(mask[..., None] == 0, rubbish).requires_grad_()
    found = read(spoilt, mask)
    assert torch.equal(found, read(states, mask))
    found.sum().backward()
    assert spoilt.grad is not None
    assert torch.isfinite(spoilt.grad).all()
    assert (spoilt.grad[mask == 0] == 0).all()


@each_reader
def test_a_text_gives_the_same_result_alone_and_in_a_batch(name: str):
    read = READERS[name]()
    states, mask = batch()
    together = read(states, mask)
    for text, length in enumerate(LENGTHS):
        alone = read(states[text : text + 1, :length], mask[text : text + 1, :length])
        torch.testing.assert_close(alone, together[text : text + 1], rtol=0, atol=1e-12)


@each_reader
def test_a_text_without_words_gives_finite_values_and_gradients(name: str):
    read = READERS[name]()
    states, mask = batch()
    states.requires_grad_()
    mask[1] = 0
    found = read(states, mask)
    found.square().sum().backward()
    assert torch.isfinite(found).all()
    if name == "FusionHead":
        assert (found[1] == 0).all()
    assert states.grad is not None
    assert torch.isfinite(states.grad).all()
    assert (states.grad[1] == 0).all()


@each_reader
def test_masks_of_bools_and_of_integers_are_equivalent(name: str):
    read = READERS[name]()
    states, mask = batch()
    assert torch.equal(read(states, mask.bool()), read(states, mask))


# ---- gradients


@each_reader
def test_the_gradient_of_the_words_is_that_of_finite_differences(name: str):
    read = READERS[name]()
    states, mask = batch()
    assert torch.autograd.gradcheck(lambda words: read(words, mask), states.requires_grad_())


def test_the_gradient_of_filter_and_labels_is_that_of_finite_differences():
    head = FusionHead(generator=seeded(), window=3).double()
    states, mask = batch()

    def fused(kernel: Tensor, own: Tensor) -> Tensor:
        return torch.func.functional_call(head, {"filter": kernel}, (states, mask, own))

    kernel = head.filter.detach().clone().requires_grad_()
    assert torch.autograd.gradcheck(fused, (kernel, labels().double().vectors.detach().clone().requires_grad_()))


@pytest.mark.parametrize("name", ["LEAMHead", "LSANHead"])
def test_cross_entropy_reaches_every_parameter_and_falls(name: str):
    head = MAKERS[name](seeded())
    states, mask = batch(dtype=torch.float32)
    targets = torch.tensor([0, 1, 2, 3])
    optimizer = torch.optim.AdamW(head.parameters(), lr=1e-2)
    losses = []
    for _ in range(60):
        loss = nn.functional.cross_entropy(head(states, mask), targets)
        optimizer.zero_grad()
        loss.backward()
        losses.append(loss.item())
        without = [part for part, values in head.named_parameters() if values.grad is None or not values.grad.any()]
        assert without == [] or len(losses) > 1
        optimizer.step()
    assert losses[-1] < 0.2 * losses[0]


# ---- seeds


@each_head
def test_initial_values_depend_on_the_seed_and_leave_global_state_alone(name: str):
    before = torch.get_rng_state()
    one, again, other = (MAKERS[name](seeded(seed)) for seed in (0, 0, 1))
    assert torch.equal(torch.get_rng_state(), before)
    drawn = [part for part in one.state_dict() if not part.startswith("labels.") and part != "bias"]
    assert drawn
    for part in drawn:
        assert torch.equal(one.state_dict()[part], again.state_dict()[part])
        assert not torch.equal(one.state_dict()[part], other.state_dict()[part])


def test_two_heads_of_one_generator_differ():
    generator = seeded()
    assert not torch.equal(FusionHead(generator=generator).filter, FusionHead(generator=generator).filter)


def test_a_linear_layer_is_initialised_with_torchs_distribution():
    layer = ProjectionHead(400, generator=seeded()).first
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(0)
        own = nn.Linear(400, 400)
    for mine, theirs in ((layer.weight, own.weight), (layer.bias, own.bias)):
        assert mine.abs().max().item() == pytest.approx(theirs.abs().max().item(), rel=0.02)
        assert mine.std().item() == pytest.approx(theirs.std().item(), rel=0.1)
        assert mine.requires_grad
        assert mine.dtype is torch.float32


@pytest.mark.parametrize("spread", [0.02, 1.0])
def test_label_embeddings_have_the_requested_spread(spread: float):
    drawn = LabelEmbeddings(100, 100, generator=seeded(), spread=spread)()
    assert drawn.std().item() == pytest.approx(spread, rel=0.05)
    assert drawn.mean().abs().item() < 0.05 * spread


def test_with_the_default_spread_labels_turn_as_documented():
    """One step of AdamW at 2e-5 turns a label by about 1e-3."""
    own = LabelEmbeddings(8, 400, generator=seeded())
    start = nn.functional.normalize(own.vectors.detach().clone(), dim=1)
    optimizer = torch.optim.AdamW(own.parameters(), lr=2e-5)
    aim = nn.functional.normalize(torch.randn(8, 400, generator=seeded(5)), dim=1)
    (-(nn.functional.normalize(own(), dim=1) * aim).sum()).backward()
    optimizer.step()
    turned = (nn.functional.normalize(own.vectors.detach(), dim=1) - start).norm(dim=1).mean().item()
    assert turned == pytest.approx(2e-5 / 0.02, rel=0.1)


def test_the_label_embeddings_of_a_baseline_are_shared_and_trained():
    own = labels()
    assert LEAMHead(own, generator=seeded()).labels is own
    assert "labels.vectors" in dict(LSANHead(own, generator=seeded()).named_parameters())


# ---- shapes, precision and refusals


@each_reader
def test_bfloat16_words_give_float32(name: str):
    head = MAKERS[name](seeded())
    states, mask = batch(dtype=torch.bfloat16)
    more = (labels()(),) if name == "FusionHead" else ()
    found = head(states, mask, *more)
    assert found.dtype is torch.float32
    assert torch.equal(found, head(states.float(), mask, *more))


@pytest.mark.parametrize("kind", [torch.float64, torch.bfloat16])
def test_fusion_and_projection_take_states_weights_and_labels_of_different_types(kind: torch.dtype):
    fusing, projecting = FusionHead(generator=seeded(), window=3), ProjectionHead(DIM, generator=seeded())
    states, mask = batch(dtype=torch.float32)
    expected = fusing(states, mask, labels()())
    assert torch.equal(projecting(expected.to(kind)), projecting(expected.to(kind).float()))
    fused = fusing.to(kind)(states, mask, labels()())
    assert fused.dtype is torch.float32
    torch.testing.assert_close(fused, expected, rtol=1e-2, atol=1e-2)
    assert fusing(states, mask, labels().to(kind)()).dtype is torch.float32
    assert projecting.to(kind)(fused).dtype is kind


@each_reader
@pytest.mark.parametrize(
    ("shape", "mask_shape", "message"),
    [
        ((2, 3), (2, 3), "must have the same width and not be empty"),
        ((2, 3, DIM + 1), (2, 3), "must have the same width and not be empty"),
        ((2, 0, DIM), (2, 0), "must have the same width and not be empty"),
        ((2, 3, DIM), (2, 4), r"mask must be a matrix \[text token\] of shape \(2, 3\)\. Got shape \(2, 4\)"),
        ((2, 3, DIM), (3,), "mask must be a matrix"),
    ],
    ids=str,
)
def test_words_or_a_mask_of_another_shape_are_refused(name: str, shape, mask_shape, message: str):
    more = (labels()(),) if name == "FusionHead" else ()
    with pytest.raises(ShapeError, match=message):
        MAKERS[name](seeded())(torch.ones(shape), torch.ones(mask_shape), *more)


@pytest.mark.parametrize("shape", [(DIM,), (2, DIM + 1), (1, 2, DIM)], ids=str)
def test_states_of_another_shape_are_refused_by_the_projection(shape: tuple[int, ...]):
    with pytest.raises(ShapeError, match=r"\[text dim\] with 6 columns"):
        ProjectionHead(DIM, generator=seeded())(torch.ones(shape))


@pytest.mark.parametrize("window", [0, 4, -1, 2.5])
def test_an_even_window_is_refused(window: int):
    for make in (
        lambda: FusionHead(generator=seeded(), window=window),
        lambda: LEAMHead(labels(), generator=seeded(), window=window),
    ):
        with pytest.raises(ConfigError, match="window must be"):
            make()


def test_widths_and_spreads_out_of_range_are_refused():
    for make, word in (
        (lambda: ProjectionHead(0, generator=seeded()), "dim"),
        (lambda: LabelEmbeddings(0, 3, generator=seeded()), "labels"),
        (lambda: LabelEmbeddings(3, 0, generator=seeded()), "dim"),
        (lambda: LabelEmbeddings(3, 3, generator=seeded(), spread=0), "spread"),
        (lambda: LEAMHead(labels(), generator=seeded(), hidden=0), "hidden"),
        (lambda: LSANHead(labels(), generator=seeded(), hidden=0), "hidden"),
        (lambda: LSANHead(labels(), generator=seeded(), attention=0), "attention"),
    ):
        with pytest.raises(ConfigError, match=f"{word} must be"):
            make()


@each_head
def test_a_generator_that_is_not_on_the_cpu_is_refused(name: str):
    class Elsewhere:
        device = torch.device("meta")

    with pytest.raises(ConfigError, match="generator must be on the cpu"):
        MAKERS[name](Elsewhere())  # pyright: ignore[reportArgumentType]


def test_the_shapes_hold_under_the_checking_hook():
    checked = imported_anew("labelspace.heads.lacon", "labelspace.heads.lacon")
    states, mask = batch(dtype=torch.float32)
    own = checked.LabelEmbeddings(COUNT, DIM, generator=seeded())
    fused = checked.FusionHead(generator=seeded())
    for words in (mask, mask.bool()):
        assert checked.ProjectionHead(DIM, generator=seeded())(fused(states, words, own())).shape == (4, DIM)
        assert checked.LEAMHead(own, generator=seeded())(states, words).shape == (4, COUNT)
        assert checked.LSANHead(own, generator=seeded())(states, words).shape == (4, COUNT)
    assert checked.LEAMHead(own, generator=seeded()).label_logits().shape == (COUNT, COUNT)
    with pytest.raises(Exception, match="mask"):
        fused(states, mask.float(), own())
