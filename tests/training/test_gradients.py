"""The gradient in bounded memory is exact: same numbers, same dropout masks, global state untouched."""

import random
import threading
import weakref
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
import torch
from torch import Tensor

from labelspace.encoders import Encoder
from labelspace.labels import LabelSpace
from labelspace.losses import infonce
from labelspace.training import rows as rows_module
from labelspace.training.description import sweep as sweep_module
from labelspace.training.description.sweep import Sweep, build_sweep, sweep_gradient, sweep_loss, sweep_texts
from labelspace.training.gradients import seeded

LOSS = sweep_loss("both", 0.07)
EVERYTHING = 10**9
KINDS = ("bert-mean", "modernbert-cls", "qwen3-last")


def gradients(
    encoder: Encoder, sweep: Sweep, memory: int, *, dropout: bool, seed: int = 5, loss: Callable[..., Tensor] = LOSS
) -> tuple[float, dict[str, Tensor]]:
    """Return the loss and the gradient of every parameter, 0 if it has none."""
    encoder.backbone.model.zero_grad(set_to_none=True)
    with encoder.backbone.training_mode(encoder_dropout=dropout):
        value = sweep_gradient(encoder.backbone, sweep, loss, seed=seed, max_tokens_in_memory=memory)
    parameters = encoder.backbone.model.named_parameters()
    return value, {name: torch.zeros_like(p) if p.grad is None else p.grad.clone() for name, p in parameters}


def with_dropout(encoder: Encoder) -> Encoder:
    """Enable dropout in architectures that have none by default."""
    for module in encoder.backbone.model.modules():
        if isinstance(module, torch.nn.Dropout):
            module.p = 0.1
        if hasattr(module, "attention_dropout"):
            module.attention_dropout = 0.1
    return encoder


def assert_same(found: dict[str, Tensor], expected: dict[str, Tensor], tolerance: float = 1e-5) -> None:
    """Compare with `tolerance` relative to each tensor's largest gradient, or 1% of the model's if larger."""
    largest = max(float(gradient.abs().max()) for gradient in expected.values())
    assert largest > 1e-3
    for name, gradient in expected.items():
        allowed = tolerance * max(float(gradient.abs().max()), 1e-2 * largest)
        assert float((found[name] - gradient).abs().max()) <= allowed, name


# Room for only the longest text, for two or three texts, for half of them.
@pytest.mark.parametrize(("kind", "chunk"), [("bert-mean", 16), *((kind, 60) for kind in KINDS), ("bert-mean", 150)])
def test_three_passes_give_the_gradient_of_one_pass_with_dropout_active(
    kind: str, chunk: int, open_tiny: Callable[..., Encoder], space: LabelSpace
):
    encoder = with_dropout(open_tiny(kind))
    sweep = build_sweep(encoder, space, max_tokens_in_memory=chunk)
    assert len(sweep.chunks) > 2
    one, expected = gradients(encoder, sweep, EVERYTHING, dropout=True)
    three, found = gradients(encoder, sweep, chunk, dropout=True)
    assert three == pytest.approx(one, rel=1e-6)
    assert_same(found, expected)


@pytest.mark.parametrize("kind", KINDS)
def test_dropout_is_active_and_its_masks_depend_on_the_seed(
    kind: str, open_tiny: Callable[..., Encoder], space: LabelSpace
):
    """Otherwise the test above would pass trivially."""
    encoder = with_dropout(open_tiny(kind))
    sweep = build_sweep(encoder, space, max_tokens_in_memory=60)
    first, again, other = (gradients(encoder, sweep, EVERYTHING, dropout=True, seed=seed)[0] for seed in (5, 5, 6))
    assert first == again
    assert first != other
    assert gradients(encoder, sweep, EVERYTHING, dropout=False)[0] not in (first, other)


def test_gradients_differ_if_the_masks_of_the_passes_differ(encoder: Encoder, space: LabelSpace):
    sweep = build_sweep(encoder, space, max_tokens_in_memory=60)
    _, expected = gradients(encoder, sweep, EVERYTHING, dropout=True, seed=5)
    _, found = gradients(encoder, sweep, 60, dropout=True, seed=6)
    with pytest.raises(AssertionError):
        assert_same(found, expected)


@pytest.mark.parametrize("kind", KINDS)
def test_without_dropout_the_gradient_is_that_of_a_single_padded_batch(
    kind: str, open_tiny: Callable[..., Encoder], space: LabelSpace
):
    """The reference has no chunks and no sorting: sentence-transformers' forward, one batch, backward."""
    encoder = open_tiny(kind)
    descriptions, targets = sweep_texts(space)
    model = encoder.backbone.model
    model.zero_grad(set_to_none=True)
    features = model.preprocess([*descriptions, *space.verbalizers])
    stacked = model(features)["sentence_embedding"]
    value = LOSS(stacked[: len(descriptions)], stacked[len(descriptions) :], torch.tensor(targets))
    value.backward()
    expected = {n: torch.zeros_like(p) if p.grad is None else p.grad.clone() for n, p in model.named_parameters()}
    for chunk in (60, EVERYTHING):
        sweep = build_sweep(encoder, space, max_tokens_in_memory=chunk)
        one, found = gradients(encoder, sweep, chunk, dropout=False)
        assert one == pytest.approx(value.item(), rel=1e-5)
        assert_same(found, expected, tolerance=1e-4)  # another attention and padding round differently


def test_gradients_are_added_to_existing_ones(encoder: Encoder, space: LabelSpace):
    sweep = build_sweep(encoder, space, max_tokens_in_memory=60)
    _, once = gradients(encoder, sweep, 60, dropout=False)
    with encoder.backbone.training_mode(encoder_dropout=False):
        sweep_gradient(encoder.backbone, sweep, LOSS, seed=5, max_tokens_in_memory=60)
    twice = {n: p.grad for n, p in encoder.backbone.model.named_parameters() if p.grad is not None}
    assert len(twice) > 10
    for name, gradient in twice.items():
        torch.testing.assert_close(gradient, 2 * once[name], rtol=1e-5, atol=1e-7)


@pytest.mark.parametrize("memory", [60, EVERYTHING])
def test_a_loss_that_is_not_finite_leaves_no_gradient(memory: int, encoder: Encoder, space: LabelSpace):
    sweep = build_sweep(encoder, space, max_tokens_in_memory=60)
    value, found = gradients(encoder, sweep, memory, dropout=False, loss=lambda d, v, t: LOSS(d, v, t) * torch.nan)
    assert np.isnan(value)
    assert all(not gradient.any() for gradient in found.values())


@pytest.mark.parametrize("memory", [60, EVERYTHING])
def test_no_global_random_state_is_touched(memory: int, encoder: Encoder, space: LabelSpace):
    sweep = build_sweep(encoder, space, max_tokens_in_memory=60)
    before = torch.get_rng_state(), np.random.get_state()[1].copy(), random.getstate()  # noqa: NPY002
    gradients(encoder, sweep, memory, dropout=True)
    assert torch.equal(torch.get_rng_state(), before[0])
    assert (np.random.get_state()[1] == before[1]).all()  # noqa: NPY002
    assert random.getstate() == before[2]


def test_the_masks_do_not_depend_on_the_callers_random_state(encoder: Encoder, space: LabelSpace):
    sweep = build_sweep(encoder, space, max_tokens_in_memory=60)
    values = []
    for state in (1, 2):
        with torch.random.fork_rng(devices=[]):
            torch.default_generator.manual_seed(state)
            values.append(gradients(encoder, sweep, EVERYTHING, dropout=True)[0])
    assert values[0] == values[1]


def test_apples_gpu_is_seeded_and_its_state_restored(monkeypatch: pytest.MonkeyPatch):
    theirs = torch.Generator()  # stands in for the generator of a device that test machines lack
    monkeypatch.setattr(torch.mps, "get_rng_state", lambda device="mps": theirs.get_state())
    monkeypatch.setattr(torch.mps, "set_rng_state", lambda state, device="mps": theirs.set_state(state))
    monkeypatch.setattr(torch.mps, "manual_seed", theirs.manual_seed)
    masks = []
    for _ in range(2):
        before = theirs.get_state()
        with seeded(torch.device("mps"), 5, "dropout", 1):
            masks.append(torch.rand(4, generator=theirs))
        assert torch.equal(theirs.get_state(), before)
        torch.rand(1, generator=theirs)
    assert torch.equal(*masks), "else the second pass would draw other masks than the first"


def test_a_second_thread_waits_for_the_generators():
    """Otherwise two fits in threads, for example in a joblib backend, would not be reproducible."""
    cpu, entered, leave = torch.device("cpu"), threading.Event(), threading.Event()
    with seeded(cpu, 1):
        alone = torch.rand(2)

    def other() -> None:
        with seeded(cpu, 2):
            entered.set()
            leave.wait(10)

    thread = threading.Thread(target=other)
    with seeded(cpu, 1):
        first = torch.rand(1)
        thread.start()
        came_in = entered.wait(0.05)
        second = torch.rand(1)
    leave.set()
    thread.join()
    assert not came_in
    assert torch.equal(torch.cat([first, second]), alone)


def test_seeded_restores_the_state_even_after_an_error():
    before = torch.get_rng_state()

    def draw_and_fail() -> None:
        with seeded(torch.device("cpu"), 0, "x"):
            torch.rand(3)
            raise RuntimeError("planted")

    with pytest.raises(RuntimeError, match="planted"):
        draw_and_fail()
    assert torch.equal(torch.get_rng_state(), before)


# ---- memory


class Held:
    """Counts the bytes that autograd holds for backward: currently and at the peak."""

    def __init__(self) -> None:
        self.now = self.most = 0

    def pack(self, tensor: Tensor) -> object:
        if isinstance(tensor, torch.nn.Parameter):
            return lambda: tensor
        kept = _Kept(tensor)
        size = tensor.numel() * tensor.element_size()
        self.now += size
        self.most = max(self.most, self.now)
        weakref.finalize(kept, self._let_go, size)
        return kept

    def unpack(self, kept: object) -> Tensor:
        return kept.tensor if isinstance(kept, _Kept) else kept()  # type: ignore[operator]

    def _let_go(self, size: int) -> None:
        self.now -= size


class _Kept:
    def __init__(self, tensor: Tensor) -> None:
        self.tensor = tensor.detach()  # an output stored with its history would keep itself alive


def most_held(encoder: Encoder, descriptions: int, memory: int) -> int:
    """Return the peak bytes for a number of equally long descriptions, with the sweep cut to `memory`."""
    texts = [f"the team of {number} won the match in the last minute" for number in range(10, 10 + descriptions // 2)]
    space = LabelSpace.from_dict({"labels": {"sports": texts, "money": [f"bank {text}" for text in texts]}})
    sweep = build_sweep(encoder, space, max_tokens_in_memory=memory)
    held = Held()
    with torch.autograd.graph.saved_tensors_hooks(held.pack, held.unpack):
        gradients(encoder, sweep, memory, dropout=True)
    assert held.now == 0
    return held.most


@pytest.mark.slow
def test_activation_memory_depends_on_the_chunk_and_not_on_the_number_of_descriptions(encoder: Encoder):
    few, many = most_held(encoder, 160, 100), most_held(encoder, 640, 100)
    assert many <= 1.01 * few
    assert most_held(encoder, 160, 200) > 1.5 * few


def test_memory_of_a_single_pass_grows_with_the_descriptions(encoder: Encoder):
    """This shows that the count above works."""
    assert most_held(encoder, 160, EVERYTHING) > 6 * most_held(encoder, 20, EVERYTHING)


def test_at_most_one_chunk_has_a_graph(encoder: Encoder, space: LabelSpace, monkeypatch: pytest.MonkeyPatch):
    sweep = build_sweep(encoder, space, max_tokens_in_memory=60)
    alive: weakref.WeakSet[Tensor] = weakref.WeakSet()
    most = 0
    embed = type(encoder.backbone).embed

    def spy(self: object, *args: object, **options: object) -> Tensor:
        nonlocal most
        result = embed(self, *args, **options)  # type: ignore[arg-type]
        if result.grad_fn is not None:
            alive.add(result)
            most = max(most, len(alive))
        return result

    monkeypatch.setattr(type(encoder.backbone), "embed", spy)
    gradients(encoder, sweep, 60, dropout=True)
    assert most <= 2  # a name keeps one chunk's result until the next is assigned
    gradients(encoder, sweep, EVERYTHING, dropout=True)
    assert most == len(sweep.chunks) > 4


# ---- sweeps


def test_a_sweep_holds_every_text_once_and_its_targets(encoder: Encoder, space: LabelSpace):
    sweep = build_sweep(encoder, space, max_tokens_in_memory=60)
    rows = [row for chunk in sweep.chunks for row in chunk.batch.positions]
    assert sorted(rows) == list(range(9 + 4))
    assert sweep.targets.tolist() == [0, 0, 0, 1, 2, 2, 3, 3, 3]
    assert sweep.descriptions == 9
    assert all(chunk.batch.tokens <= 60 or len(chunk.batch.positions) == 1 for chunk in sweep.chunks)


def test_a_label_without_descriptions_is_represented_by_its_verbalizer():
    space = LabelSpace.from_dict({"template": "On {label}.", "labels": {"a": ["one"], "b": []}})
    assert sweep_texts(space) == (["one", "On b."], [0, 1])


def many_texts() -> LabelSpace:
    """Labels of every length up to 30 tokens, in more chunks of 150 tokens than are cut by exact width."""
    return LabelSpace.from_dict({"labels": {f"team {n}": [f"bank {'money ' * n}"] * 5 for n in range(1, 28)}})


def test_many_texts_are_cut_to_few_widths_and_their_gradient_is_that_of_exact_widths(
    encoder: Encoder, monkeypatch: pytest.MonkeyPatch
):
    few = build_sweep(encoder, many_texts(), max_tokens_in_memory=150)
    found, gradient = gradients(encoder, few, 150, dropout=False)
    monkeypatch.setattr(rows_module, "MANY_CHUNKS", 10**9)
    exact = build_sweep(encoder, many_texts(), max_tokens_in_memory=150)
    value, expected = gradients(encoder, exact, 150, dropout=False)
    widths, others = (
        {chunk.batch.input_ids.shape[1] for chunk in sweep.chunks if chunk.batch.positions[0] < sweep.descriptions}
        for sweep in (few, exact)
    )
    assert all(width % 4 == 0 for width in widths)
    assert len(widths) <= 8 < len(others)
    assert all(chunk.batch.tokens <= 150 for chunk in few.chunks)
    assert found == pytest.approx(value, rel=1e-6)
    assert_same(gradient, expected, tolerance=1e-4)  # padding rounds differently


def test_few_texts_are_cut_by_exact_width(encoder: Encoder, space: LabelSpace):
    """So small label spaces train to the bits that they have always trained to."""
    sweep = build_sweep(encoder, space, max_tokens_in_memory=EVERYTHING)
    assert all(chunk.batch.attention_mask.sum(dim=1).max() == chunk.batch.input_ids.shape[1] for chunk in sweep.chunks)


def test_no_text_is_padded_beyond_what_the_encoder_can_read(open_tiny: Callable[..., Encoder]):
    encoder = open_tiny("bert-mean", max_tokens=27)
    sweep = build_sweep(encoder, many_texts(), max_tokens_in_memory=150)
    assert max(chunk.batch.input_ids.shape[1] for chunk in sweep.chunks) == 27


def test_the_features_of_all_rows_are_held_once_and_not_beyond_the_loss(
    encoder: Encoder, space: LabelSpace, monkeypatch: pytest.MonkeyPatch
):
    """With 60,000 texts each further copy would be 90 MB."""
    sweep = build_sweep(encoder, space, max_tokens_in_memory=60)
    vectors: weakref.WeakSet[Tensor] = weakref.WeakSet()
    embed, before, at_loss = type(encoder.backbone).embed, [], []

    def watched(*given: Any, **options: Any) -> Tensor:
        before.append(len(vectors))
        vectors.add(made := embed(*given, **options))
        return made

    def loss(descriptions: Tensor, verbalizers: Tensor, targets: Tensor) -> Tensor:
        at_loss.append(len(vectors))
        assert descriptions._base is not None
        vectors.add(descriptions._base)
        return LOSS(descriptions, verbalizers, targets)

    monkeypatch.setattr(type(encoder.backbone), "embed", watched)
    gradients(encoder, sweep, 60, dropout=False, loss=loss)
    assert at_loss == [0]
    assert before[: len(sweep.chunks)] == list(range(len(sweep.chunks)))  # this shows that the count works
    assert max(before[len(sweep.chunks) :]) <= 1


@pytest.mark.parametrize("objective", ["rows", "columns", "both"])
def test_the_loss_of_many_labels_in_blocks_gives_the_same_gradient(
    objective: str, encoder: Encoder, space: LabelSpace, monkeypatch: pytest.MonkeyPatch
):
    sweep, loss = build_sweep(encoder, space, max_tokens_in_memory=60), sweep_loss(objective, 0.07)
    value, expected = gradients(encoder, sweep, 60, dropout=False, loss=loss)
    used: list[str] = []
    in_blocks = sweep_module.infonce_in_blocks
    monkeypatch.setattr(sweep_module, "MOST_SCORES", 0)
    monkeypatch.setattr(sweep_module, "infonce_in_blocks", lambda *given: used.append(given[-1]) or in_blocks(*given))
    monkeypatch.setattr(infonce, "BLOCK_SCORES", 2 * len(space))
    found, others = gradients(encoder, sweep, 60, dropout=False, loss=loss)
    assert used == [objective]
    assert found == pytest.approx(value, rel=1e-6)
    assert_same(others, expected, tolerance=1e-4)  # sums in another order
