"""Training warms up, stops by the rule, keeps the best weights, and leaves a sound state however it ends."""

import random
from collections.abc import Callable

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from labelspace.config import TrainingConfig
from labelspace.encoders import Encoder
from labelspace.errors import TrainingError
from labelspace.labels import LabelSpace
from labelspace.training import Training
from labelspace.training.description.objective import run
from labelspace.training.description.sweep import build_sweep, sweep_loss
from labelspace.training.engine import EarlyStopping
from labelspace.training.schedule import warmup_factor
from labelspace.training.trainable import trainable_weights
from stops import stop_at
from weights import same_bits, weights_of

RATE = 1e-3


def train(
    encoder: Encoder, space: LabelSpace, *, rate: float = RATE, seed: int = 0, callbacks: tuple = (), **options: object
) -> Training:
    config = TrainingConfig(**{"max_steps": 20, **options})  # type: ignore[arg-type]
    sweep = build_sweep(encoder, space, max_tokens_in_memory=config.max_tokens_in_memory)
    with trainable_weights(encoder.backbone) as weights:
        return run(encoder.backbone, weights, sweep, config, learning_rate=rate, seed=seed, callbacks=callbacks)


class Recorder:
    """Records its values, and copies the weights after each update."""

    def __init__(self, encoder: Encoder) -> None:
        self.encoder = encoder
        self.told: list[tuple[int, dict[str, float]]] = []
        self.weights = [weights_of(encoder)]

    def __call__(self, step: int, values: dict[str, float]) -> None:
        self.told.append((step, values))
        self.weights.append(weights_of(self.encoder))


# ---- schedule


def test_the_rate_rises_linearly_over_the_first_half_and_then_stays(encoder: Encoder, space: LabelSpace):
    """Section 4: a linear warm-up during the first 50% of the steps."""
    recorder = Recorder(encoder)
    train(encoder, space, callbacks=(recorder,), max_steps=8)
    rates = [values["learning_rate"] for _, values in recorder.told]
    assert rates == pytest.approx([RATE * share for share in (0.25, 0.5, 0.75, 1, 1, 1, 1, 1)])


@pytest.mark.parametrize("steps", [0, 1, 7])
def test_the_warm_up_never_starts_at_zero_and_ends_at_one(steps: int):
    factors = [warmup_factor(step, 10, steps / 10) for step in range(10)]
    assert factors[0] > 0
    assert factors[max(0, steps - 1) :] == [1.0] * (10 - max(0, steps - 1))
    assert factors == sorted(factors)


def test_without_a_warm_up_the_first_step_has_the_peak_rate(encoder: Encoder, space: LabelSpace):
    recorder = Recorder(encoder)
    train(encoder, space, callbacks=(recorder,), max_steps=2, warmup=0.0)
    assert recorder.told[0][1]["learning_rate"] == RATE


# ---- the stopping rule


def looks(losses: list[float], patience: int = 10, tolerance: float = 1e-5) -> tuple[int, EarlyStopping]:
    """Return the number of looks until the rule stops, or all."""
    stopping = EarlyStopping(patience, lambda loss, best: best is None or loss <= best - tolerance)
    for number, loss in enumerate(losses, start=1):
        stopping.improved(loss)
        if stopping.exhausted:
            return number, stopping
    return len(losses), stopping


def test_ten_looks_without_a_fall_stop_and_nine_do_not():
    assert looks([1.0] * 30)[0] == 11
    assert looks([1.0] * 11)[1].exhausted
    assert not looks([1.0] * 10)[1].exhausted


def test_a_fall_by_the_tolerance_restarts_the_count_and_a_smaller_one_does_not():
    flat = [1.0] * 9
    assert looks([1.0, *flat, 1.0 - 2e-5, *flat])[1].looks_without == 9
    assert looks([1.0, *flat, 1.0 - 0.5e-5])[1].exhausted


def test_small_falls_add_up_because_they_are_measured_from_the_best():
    slow = [1.0 - 0.3e-5 * number for number in range(200)]
    stops, stopping = looks(slow)
    assert stops == 200
    assert stopping.best == pytest.approx(slow[-1], abs=1.2e-5)


def test_a_rise_counts_as_no_improvement_and_never_lowers_the_bar():
    _, stopping = looks([1.0, 5.0, 2.0])
    assert (stopping.best, stopping.looks_without) == (1.0, 2)


@given(st.lists(st.floats(0, 10), min_size=1, max_size=60), st.integers(1, 5))
def test_the_rule_is_the_one_written_in_the_paper(losses: list[float], patience: int):
    """Section 3.1: training halts if the loss fails to improve by at least D over so many consecutive checks."""
    best, without, expected = None, 0, len(losses)
    for number, loss in enumerate(losses, start=1):
        if best is None or loss <= best - 1e-5:
            best, without = loss, 0
        else:
            without += 1
        if without == patience:
            expected = number
            break
    assert looks(losses, patience=patience)[0] == expected


def test_training_stops_by_patience_once_nothing_improves(encoder: Encoder, space: LabelSpace):
    curve = train(encoder, space, max_steps=100, check_every=2, patience=3, tolerance=1e3)
    assert curve.stop_reason == "patience"
    # The first loss that is looked at sets the best one, three more do not improve it, and the update of the last is
    # not made.
    assert (len(curve.losses), curve.steps) == (2 * (1 + 3), 2 * (1 + 3) - 1)


# ---- best weights


def test_the_loss_falls_and_the_last_weights_are_kept_while_it_does(encoder: Encoder, space: LabelSpace):
    recorder = Recorder(encoder)
    curve = train(encoder, space, callbacks=(recorder,), max_steps=15, check_every=5)
    assert curve.losses[-1] < 0.8 * curve.losses[0]
    assert (curve.stop_reason, curve.best_step, curve.steps) == ("max_steps", 15, 15)
    assert same_bits(weights_of(encoder), recorder.weights[15])


def test_the_weights_of_the_best_look_are_kept_when_the_loss_rises_after(encoder: Encoder, space: LabelSpace):
    """The encoder is spoilt on purpose after step 10: the best weights up to then must be restored exactly."""
    recorder = Recorder(encoder)

    def spoil(step: int, values: dict[str, float]) -> None:
        if step == 10:
            for parameter in encoder.backbone.model.parameters():
                parameter.data.zero_()

    curve = train(encoder, space, callbacks=(recorder, spoil), max_steps=15, check_every=5, tolerance=0.0)
    assert min(curve.losses[10:]) > curve.losses[9]
    # The look after ten steps sees the weights before the tenth update.
    assert curve.best_step == 9
    assert same_bits(weights_of(encoder), recorder.weights[9])


def test_a_run_shorter_than_one_look_still_trains(encoder: Encoder, space: LabelSpace):
    before = weights_of(encoder)
    curve = train(encoder, space, max_steps=3)
    assert curve.best_step == 3
    assert not same_bits(weights_of(encoder), before)


# ---- seeds


def test_the_seed_decides_every_bit(open_tiny: Callable[..., Encoder], space: LabelSpace):
    first, again, other = open_tiny(), open_tiny(), open_tiny()
    runs = ((first, 1), (again, 1), (other, 2))
    curves = [train(e, space, seed=s, encoder_dropout=True, max_steps=3) for e, s in runs]
    assert curves[0].losses == curves[1].losses
    assert same_bits(weights_of(first), weights_of(again))
    assert curves[0].losses != curves[2].losses
    assert not same_bits(weights_of(first), weights_of(other))


def test_training_touches_no_global_random_state(encoder: Encoder, space: LabelSpace):
    before = torch.get_rng_state(), np.random.get_state()[1].copy(), random.getstate()  # noqa: NPY002
    train(encoder, space, max_steps=3, encoder_dropout=True, max_tokens_in_memory=60)
    assert torch.equal(torch.get_rng_state(), before[0])
    assert (np.random.get_state()[1] == before[1]).all()  # noqa: NPY002
    assert random.getstate() == before[2]


def test_chunks_give_the_same_curve_as_one_pass(open_tiny: Callable[..., Encoder], space: LabelSpace):
    whole, cut = (train(open_tiny(), space, max_steps=4, max_tokens_in_memory=most) for most in (10_000, 40))
    assert cut.losses == pytest.approx(whole.losses, rel=1e-4)


# ---- objective


def test_the_objective_chooses_rows_columns_or_both(open_tiny: Callable[..., Encoder], space: LabelSpace):
    rows, columns, both = (
        train(open_tiny(), space, max_steps=1, objective=objective).losses[0]
        for objective in ("rows", "columns", "both")
    )
    assert both == pytest.approx((rows + columns) / 2, rel=1e-6)
    assert abs(rows - columns) > 0.01


def test_the_temperature_divides_the_cosines():
    vectors, targets = torch.eye(2), torch.tensor([0, 1])
    cold, warm = (sweep_loss("rows", t)(vectors, vectors, targets).item() for t in (0.07, 1.0))
    assert cold == pytest.approx(np.log1p(np.exp(-1 / 0.07)), abs=1e-6)
    assert warm == pytest.approx(np.log1p(np.exp(-1.0)))


def test_labels_without_descriptions_train_and_move_apart(encoder: Encoder):
    space = LabelSpace.from_names(["sports", "money", "science"])
    before = encoder.encode(space.verbalizers, role="label")
    curve = train(encoder, space, max_steps=10)
    after = encoder.encode(space.verbalizers, role="label")
    assert curve.losses[-1] < curve.losses[0]
    assert (after @ after.T).sum() < (before @ before.T).sum()


# ---- ends


def test_a_loss_that_is_not_finite_stops_at_once_and_says_what_to_do(encoder: Encoder, space: LabelSpace):
    """Cosines over a temperature of 1e-39 are infinite in float32."""
    before = weights_of(encoder)
    with pytest.raises(
        TrainingError,
        match=r"the loss is nan at step 1 with learning_rate=1.0e-03; use a lower one, for example learning_rate=1e-04",
    ) as error:
        train(encoder, space, temperature=1e-39)
    assert "\n" not in str(error.value)
    assert same_bits(weights_of(encoder), before)


def test_a_loss_that_diverges_later_leaves_the_best_finite_weights(encoder: Encoder, space: LabelSpace):
    recorder = Recorder(encoder)

    def poison(step: int, values: dict[str, float]) -> None:
        if step == 12:
            encoder.backbone.transformer.model.embeddings.word_embeddings.weight.data.fill_(float("nan"))

    with pytest.raises(TrainingError, match="at step 13"):
        train(encoder, space, callbacks=(recorder, poison), max_steps=30, check_every=5)
    assert same_bits(weights_of(encoder), recorder.weights[9])
    assert all(torch.isfinite(tensor).all() for tensor in weights_of(encoder).values() if tensor.is_floating_point())
    assert np.isfinite(encoder.encode(["a text"])).all()


def test_an_interrupt_keeps_the_best_weights(encoder: Encoder, space: LabelSpace):
    recorder = Recorder(encoder)
    interrupt = stop_at(12, KeyboardInterrupt)
    curve = train(encoder, space, callbacks=(recorder, interrupt), max_steps=30, check_every=5)
    assert (curve.stop_reason, curve.steps, curve.best_step) == ("interrupted", 12, 9)
    assert same_bits(weights_of(encoder), recorder.weights[9])


def test_another_error_of_a_callback_is_raised_and_leaves_sound_weights(encoder: Encoder, space: LabelSpace):
    before = weights_of(encoder)

    def fail(step: int, values: dict[str, float]) -> None:
        raise OSError("no space left")

    with pytest.raises(OSError, match="no space left"):
        train(encoder, space, callbacks=(fail,))
    assert same_bits(weights_of(encoder), before)
    assert not encoder.backbone.model.training


def test_training_restores_the_encoders_settings(encoder: Encoder, space: LabelSpace):
    required = {name: parameter.requires_grad for name, parameter in encoder.backbone.model.named_parameters()}
    attention = encoder.backbone.transformer.model.config._attn_implementation
    train(encoder, space, max_steps=2, encoder_dropout=True)
    assert not encoder.backbone.model.training
    assert encoder.backbone.transformer.model.config._attn_implementation == attention
    assert {n: p.requires_grad for n, p in encoder.backbone.model.named_parameters()} == required
    assert all(parameter.grad is None for parameter in encoder.backbone.model.parameters())


def test_callbacks_receive_loss_and_rate_at_each_step(encoder: Encoder, space: LabelSpace):
    recorder = Recorder(encoder)
    curve = train(encoder, space, callbacks=(recorder,), max_steps=7)
    assert [step for step, _ in recorder.told] == list(range(1, 8))
    assert tuple(values["loss"] for _, values in recorder.told) == curve.losses
    assert all(values.keys() == {"loss", "learning_rate"} for _, values in recorder.told)


def test_bfloat16_trains_float32_weights(open_tiny: Callable[..., Encoder], space: LabelSpace):
    encoder = open_tiny(dtype="bfloat16")
    before = encoder.encode(["the team won"])
    curve = train(encoder, space, max_steps=15)
    assert curve.losses[-1] < 0.8 * curve.losses[0]
    assert all(parameter.dtype is torch.float32 for parameter in encoder.backbone.model.parameters())
    assert not np.array_equal(encoder.encode(["the team won"]), before)
