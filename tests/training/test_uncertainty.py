"""Training a Gaussian head on token states: randomness, schedule, stopping, held-out rows, outputs."""

import json
import math
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import pytest
import torch
from torch import Tensor

from labelspace.config import EXTRACTORS, UncertaintyConfig
from labelspace.encoders import Encoder
from labelspace.encoders.state_cache import FreshStates, StateCache
from labelspace.errors import LabelSpaceWarning, TrainingError
from labelspace.heads import GaussianHead
from labelspace.training import engine
from labelspace.training.schedule import rate_factor
from labelspace.training.uncertainty import (
    HeldOut,
    entropy,
    objective,
    outputs_of_states,
    outputs_of_texts,
    train_gaussian_head,
)
from labelspace.training.uncertainty import fit as fit_module
from labelspace.training.uncertainty.objective import UncertaintyObjective, choose_epochs, choose_rate
from stops import stop_at
from tiny_rows import WORDS, tiny_rows

TEXTS, NAMES = tiny_rows(24)
TARGETS = np.array([sorted(WORDS).index(name) for name in NAMES])
FAST = {"learning_rate": 5e-3, "batch_size": 8, "epochs": 2, "validation": 0.0}


def config_of(**options: Any) -> UncertaintyConfig:
    return UncertaintyConfig(**{**FAST, **options})


def train(encoder: Encoder, *, cache: StateCache | None = None, seed: int = 0, callbacks: tuple = (), **options: Any):
    ids = encoder.tokenize(TEXTS)
    return train_gaussian_head(
        encoder, ids, TARGETS, 3, config_of(**options), cache=cache, seed=seed, callbacks=callbacks
    )


def head_of(dim: int = 32, seed: int = 0, **options: Any) -> GaussianHead:
    return GaussianHead(dim, 3, generator=torch.Generator().manual_seed(seed), **options)


def values_of(head: GaussianHead) -> dict[str, Tensor]:
    return {name: values.detach().clone() for name, values in head.named_parameters()}


def same(one: dict[str, Tensor], other: dict[str, Tensor]) -> bool:
    return one.keys() == other.keys() and all(torch.equal(values, other[name]) for name, values in one.items())


# ---- randomness


def test_the_same_seed_gives_the_same_bits_and_another_does_not(encoder: Encoder):
    runs = []
    for seed in (0, 0, 1):
        torch.manual_seed(len(runs))  # must have no effect
        head, held_out, fit = train(encoder, seed=seed, validation=0.2)
        runs.append((fit.curve.losses, values_of(head), held_out))
    assert runs[0][0] == runs[1][0]
    assert same(runs[0][1], runs[1][1])
    assert (runs[0][2].uncertainty == runs[1][2].uncertainty).all()
    assert runs[0][0] != runs[2][0]
    assert not same(runs[0][1], runs[2][1])


@pytest.mark.parametrize("what", ["order", "noise", "dropout"])
def test_order_noise_and_dropout_each_come_from_the_seed_of_the_loop(
    what: str, encoder: Encoder, monkeypatch: pytest.MonkeyPatch
):
    """The initial head is the same, and the other sources of randomness are off."""
    if what != "order":
        monkeypatch.setattr(objective, "epoch_batches", lambda *_, **__: [list(range(24))])
    options = {
        "order": {"batch_size": 8, "dropout": 0.0, "uncertain": False},
        "noise": {"batch_size": 24, "dropout": 0.0, "uncertain": True},
        "dropout": {"batch_size": 24, "dropout": 0.5, "uncertain": False},
    }[what]
    states = FreshStates(encoder, encoder.tokenize(TEXTS))

    def losses(seed: int) -> tuple[float, ...]:
        head = head_of(dropout=options["dropout"], uncertain=options["uncertain"])
        config = config_of(**options)
        return run(encoder, head, states, config, seed=seed).losses

    assert losses(0) == losses(0)
    assert losses(0) != losses(1)


def run(
    encoder: Encoder, head: GaussianHead, states: Any, config: UncertaintyConfig, *, seed: int = 0, **more: Any
) -> engine.Training:
    place = {"device": encoder.backbone.device, "dtype": encoder.backbone.dtype}
    own = UncertaintyObjective(head, states, range(24), TARGETS, config, seed=seed, **place)
    return engine.train(own, **more)


def test_training_leaves_the_global_generators_alone(encoder: Encoder):
    before = torch.get_rng_state(), np.random.get_state()[1].copy()  # noqa: NPY002
    train(encoder, validation=0.2)
    assert torch.equal(before[0], torch.get_rng_state())
    assert (before[1] == np.random.get_state()[1]).all()  # noqa: NPY002


# ---- what is trained


def test_the_encoder_stays_as_it_is(encoder: Encoder):
    before = {name: values.clone() for name, values in encoder.backbone.model.state_dict().items()}
    vectors = encoder.encode(TEXTS)
    head, _, _ = train(encoder)
    after = encoder.backbone.model.state_dict()
    assert all(torch.equal(values, after[name]) for name, values in before.items())
    assert all(parameter.grad is None for parameter in encoder.backbone.model.parameters())
    assert (encoder.encode(TEXTS) == vectors).all()
    assert not any(values.requires_grad or values.grad is not None for values in head.parameters())
    assert not head.training


def test_easy_labels_are_learnt(encoder: Encoder, tmp_path: Any):
    # At 0.9 nearly all of the loss is contrastive, which can hardly fall at a temperature of 2.0.
    head, _, fit = train(encoder, cache=StateCache(tmp_path), contrastive_weight=0.6, epochs=12)
    losses = fit.curve.losses
    assert len(losses) == fit.curve.steps == fit.curve.best_step == 36
    assert np.mean(losses[-3:]) < 0.8 * np.mean(losses[:3])
    found = outputs_of_texts(encoder, head, encoder.tokenize(TEXTS)).logits.argmax(axis=1)
    assert (found == TARGETS).mean() > 0.9, "chance is one in three"


def test_the_extractors_of_the_ablation_train(encoder: Encoder):
    for extractor in ("cls", "eos", "mean", "mlp", "attention"):
        _, _, fit = train(encoder, extractor=extractor, batch_size=24, epochs=4, dropout=0.0, uncertain=False)
        assert fit.curve.losses[-1] < fit.curve.losses[0], extractor


# ---- the schedule


@pytest.mark.parametrize(
    ("epochs", "texts", "found"),
    [("auto", 12_000, 3), ("auto", 9_000, 3), ("auto", 4_000, 7), ("auto", 64, 30), ("auto", 1, 30), (5, 12_000, 5)],
)
def test_epochs_are_those_of_the_paper_and_more_for_fewer_texts(epochs: Any, texts: int, found: int):
    assert choose_epochs(UncertaintyConfig(epochs=epochs), texts) == found


@pytest.mark.parametrize("texts", [65, 900, 5_000, 100_000])
def test_the_chosen_epochs_are_the_fewest_with_enough_updates(texts: int):
    config = UncertaintyConfig()
    epochs, updates = choose_epochs(config, texts), math.ceil(texts / config.batch_size)
    assert epochs == objective.MOST_EPOCHS or epochs * updates >= objective.FEWEST_UPDATES
    assert epochs == objective.PAPER_EPOCHS or (epochs - 1) * updates < objective.FEWEST_UPDATES


@pytest.mark.parametrize("extractor", EXTRACTORS)
def test_each_extractor_has_its_own_rate_unless_one_is_given(extractor: str):
    large = extractor in ("textcnn", "mlp")
    assert choose_rate(UncertaintyConfig(extractor=extractor)) == (8e-4 if large else 3e-3)
    assert choose_rate(UncertaintyConfig(extractor=extractor, learning_rate=2e-3)) == 2e-3


def test_the_rate_rises_and_falls_and_callbacks_receive_all_parts(encoder: Encoder):
    told: list[dict[str, float]] = []
    _, _, fit = train(encoder, callbacks=(lambda step, values: told.append(values),), epochs=4, warmup=0.25)
    rates = [values["learning_rate"] for values in told]
    assert rates == [5e-3 * rate_factor(step, 12, 0.25) for step in range(12)]
    peak = rates.index(max(rates))
    assert (max(rates), peak) == (5e-3, 2)
    assert rates[: peak + 1] == sorted(rates[: peak + 1])
    assert rates[peak:] == sorted(rates[peak:], reverse=True)
    assert 0 < rates[-1] <= 5e-4
    assert [values["loss"] for values in told] == list(fit.curve.losses)
    assert all(values.keys() == {"loss", "learning_rate", "softmax", "kl", "contrastive"} for values in told)


def test_the_weights_move_by_the_rate(encoder: Encoder):
    """AdamW's first step moves every weight by the rate, regardless of its gradient; here half the peak rate."""
    states = FreshStates(encoder, encoder.tokenize(TEXTS))
    head = head_of(uncertain=False)
    before, moved = values_of(head), {}

    def look(step: int, values: dict[str, float]) -> None:
        if step == 1:
            moved.update({name: (now - before[name]).abs().max().item() for name, now in values_of(head).items()})

    config = config_of(warmup=1.0, epochs=2, batch_size=24, weight_decay=0.0)
    run(encoder, head, states, config, callbacks=(look,))
    assert all(step == pytest.approx(2.5e-3, rel=1e-2) for step in moved.values()), moved


# ---- the end


def test_an_interrupt_in_the_first_epoch_is_raised(encoder: Encoder):
    with pytest.raises(KeyboardInterrupt):
        train(encoder, callbacks=(stop_at(1, KeyboardInterrupt),))


@pytest.mark.parametrize("where", ["after an update", "in the middle of one"])
def test_an_interrupt_later_keeps_the_weights_of_the_last_whole_epoch(where: str, encoder: Encoder):
    """They are bit-identical, although more updates have been made since."""
    inner = FreshStates(encoder, encoder.tokenize(TEXTS))
    head = head_of()
    at_the_end: dict[str, Tensor] = {}
    taken = []

    class Interrupted:
        lengths = inner.lengths

        def take(self, rows: Sequence[int]) -> Any:
            taken.append(rows)
            if where == "in the middle of one" and len(taken) == 9:
                raise KeyboardInterrupt
            return inner.take(rows)

    def look(step: int, values: dict[str, float]) -> None:
        if step == 6:
            at_the_end.update(values_of(head))
        if where == "after an update" and step == 8:
            assert not same(values_of(head), at_the_end)
            raise KeyboardInterrupt

    config = config_of(epochs=5)
    curve = run(encoder, head, Interrupted(), config, callbacks=(look,))
    assert same(values_of(head), at_the_end)
    assert (curve.stop_reason, curve.best_step, curve.steps, curve.epochs) == ("interrupted", 6, 8, 5)
    assert [look.step for look in curve.looks] == [3, 6]
    assert all(look.seconds > 0 for look in curve.looks)


def test_an_interrupted_run_is_usable_and_recorded_as_interrupted(encoder: Encoder):
    with pytest.warns(LabelSpaceWarning, match="interrupted at step 5; the weights of step 3 are kept and can be"):
        head, held_out, fit = train(encoder, callbacks=(stop_at(5, KeyboardInterrupt),), validation=0.2)
    assert fit.curve.stop_reason == "interrupted"
    assert len(held_out.wrong) == fit.held_out == 5
    assert not any(values.requires_grad for values in head.parameters())


def test_a_loss_that_is_not_finite_stops_with_the_rate_to_try(encoder: Encoder, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(GaussianHead, "logits", lambda self, vectors: self.classifier(vectors) * math.nan)
    with pytest.raises(
        TrainingError, match=r"the loss is nan at step 1 .*lower one, for example learning_rate=5e-04, or"
    ):
        train(encoder)


# ---- held-out rows


def spied(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """Return a list that collects every row whose states training reads."""
    seen: list[int] = []

    def spying(head: GaussianHead, states: Any, *rest: Any, **more: Any) -> Any:
        class Spy:
            lengths = states.lengths

            def take(self, rows: Sequence[int]) -> Any:
                seen.extend(rows)
                return states.take(rows)

        return UncertaintyObjective(head, Spy(), *rest, **more)

    monkeypatch.setattr(fit_module, "UncertaintyObjective", spying)
    return seen


def test_rows_held_out_are_never_trained_on(encoder: Encoder, monkeypatch: pytest.MonkeyPatch):
    seen = spied(monkeypatch)
    _, held_out, fit = train(encoder, validation=0.25, epochs=3)
    assert (fit.labelled, fit.held_out, len(held_out.wrong)) == (24, 6, 6)
    assert len(set(seen)) == 18
    assert sorted(seen) == sorted([*set(seen)] * 3), "every row once an epoch"
    assert np.bincount(TARGETS[sorted(set(range(24)) - set(seen))]).tolist() == [2, 2, 2]


def test_the_held_out_record_holds_the_heads_outputs(encoder: Encoder, monkeypatch: pytest.MonkeyPatch):
    seen = spied(monkeypatch)
    head, held_out, fit = train(encoder, validation=0.25)
    rows = sorted(set(range(24)) - set(seen))
    found = outputs_of_texts(encoder, head, encoder.tokenize([TEXTS[row] for row in rows]))
    assert fit.calibration is not None
    assert held_out.uncertainty == pytest.approx(found.uncertainty, abs=0.02)
    assert held_out.entropy == pytest.approx(entropy(found.logits, fit.calibration.temperature), abs=0.05)
    assert (held_out.wrong == (found.logits.argmax(axis=1) != TARGETS[rows])).all()
    assert fit.held_out_accuracy == pytest.approx(1 - held_out.wrong.mean())
    assert fit.calibration.documents == 6


def test_a_label_with_one_row_keeps_it_for_training(encoder: Encoder, monkeypatch: pytest.MonkeyPatch):
    seen = spied(monkeypatch)
    rows = [row for row in range(24) if TARGETS[row] != 2] + [2]
    ids = encoder.tokenize([TEXTS[row] for row in rows])
    train_gaussian_head(encoder, ids, TARGETS[rows], 3, config_of(validation=0.9, epochs=1), cache=None, seed=0)
    assert {0, 1, 2} == {int(TARGETS[rows[place]]) for place in set(seen)}
    assert len(rows) - 1 in seen


@pytest.mark.parametrize(("rows", "labels", "held_out"), [(199, 3, 0), (200, 3, 20), (239, 12, 0), (240, 12, 24)])
def test_rows_are_held_out_from_twenty_per_label_and_two_hundred_in_all(rows: int, labels: int, held_out: int):
    shares = fit_module._share(config_of(validation="auto"), np.arange(rows) % labels, labels)
    assert round(shares * rows) == held_out


def test_without_held_out_rows_there_is_no_calibration(encoder: Encoder):
    _, record, fit = train(encoder, validation="auto", epochs=1)
    assert (fit.held_out, len(record.wrong)) == (0, 0)
    assert fit.calibration is fit.held_out_accuracy is None


def test_the_ranking_of_the_held_out_rows_is_the_one_that_finds_more_wrong_answers():
    rising, falling, flat = np.arange(6.0), -np.arange(6.0), np.zeros(6)
    wrong = np.arange(6) > 3

    def better(uncertainty: Any, doubt: Any, wrong: Any = wrong) -> str:
        return HeldOut(uncertainty, doubt, wrong).better_ranking()

    assert better(rising, falling) == "uncertainty"
    assert better(falling, rising) == "entropy"
    assert better(rising, rising) == "entropy"
    assert better(rising, falling, flat > 0) == better(rising, falling, flat == 0) == "entropy"
    assert better(flat, falling) == "entropy", "an uncertainty that is the same for all ranks nothing"
    assert better(flat[:0], flat[:0], wrong[:0]) == "entropy"


# ---- outputs


@pytest.mark.parametrize("dtype", ["float32", "bfloat16"])
@pytest.mark.parametrize("extractor", ["textcnn", "mean"])
def test_outputs_of_states_match_those_of_texts(
    extractor: str, dtype: str, open_tiny: Callable[..., Encoder], tmp_path: Any
):
    """Not bit-identical: stored states are rounded to bfloat16, two to three digits, and batches differ."""
    tolerances = (0.005, 0.0005, 0.01)
    encoder = open_tiny(dtype=dtype)
    head = head_of(extractor=extractor).requires_grad_(False)
    ids = encoder.tokenize([text + " and the news" * (row % 4) for row, text in enumerate(TEXTS)])
    of_texts = outputs_of_texts(encoder, head, ids)
    rows = [6, 0, 17]  # the longest first
    for states in (FreshStates(encoder, ids), StateCache(tmp_path).open(encoder, ids)):
        of_states = outputs_of_states(encoder, head, states, rows)
        for one, other, tolerance in zip(of_states, of_texts, tolerances, strict=True):
            assert one.dtype == np.float32
            assert np.abs(one - other[rows]).max() < tolerance
            assert np.abs(one - other[sorted(rows)]).max() > 3 * tolerance, "the order shows"


def test_an_empty_input_gives_empty_outputs(encoder: Encoder):
    head = head_of().requires_grad_(False)
    states = FreshStates(encoder, encoder.tokenize(TEXTS))
    for found in (outputs_of_texts(encoder, head, []), outputs_of_states(encoder, head, states, [])):
        assert [part.shape for part in found] == [(0, 3), (0,), (0, 32)]


def test_entropy_is_the_sum_written_out():
    logits = np.array([[1.0, 2.0, -1.0], [900.0, -900.0, 0.0], [3.0, 3.0, 3.0]])
    for temperature in (0.5, 1.0, 20.0):
        for row, found in zip(logits.tolist(), entropy(logits, temperature), strict=True):
            powers = [math.exp((value - max(row)) / temperature) for value in row]
            shares = [power / sum(powers) for power in powers]
            assert found == pytest.approx(-sum(p * math.log(p) for p in shares if p > 0), abs=1e-12)


def test_a_fit_can_be_written_as_json(encoder: Encoder):
    _, _, fit = train(encoder, validation=0.25, epochs=1)
    values = json.loads(json.dumps(fit.to_dict()))
    assert values["calibration"]["documents"] == values["held_out"] == 6
    assert values["curve"]["stop_reason"] == "epochs"
    assert values["device"] == "cpu"
