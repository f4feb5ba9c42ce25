"""NLI training: it learns, equals a plain loop, stops when it should, and resumes bit-identically."""

import json
import math
import shutil
from dataclasses import replace
from pathlib import Path

import pytest
import torch
from torch.nn import functional as F

from labelspace.config import NLIConfig
from labelspace.errors import ConfigError, ModelFolderError, TrainingError
from labelspace.seeds import child_seed
from labelspace.training.batches import epoch_batches
from labelspace.training.gradients import seeded
from labelspace.training.nli import NLIModel, dev_scores, pair_loss, train_nli
from labelspace.training.schedule import cosine_factor
from training.nli.toy import toy_pairs
from weights import same_bits, weights_of

TINY = Path(__file__).parents[2] / "data" / "tiny-bert"
SHORT = NLIConfig(epochs=2, batch_size=8, learning_rate=1e-3, head_learning_rate=1e-3, evaluate_every=0.25, seed=3)
TRAIN, DEV = toy_pairs(45), toy_pairs(12, seed=1)


def tiny(variant: str = "binary", **options: object) -> NLIModel:
    given = {"dtype": "float32", "device": "cpu", **options}
    return NLIModel.from_encoder(TINY, variant, 3, **given)  # type: ignore[arg-type]


class CtrlC:
    """Press Ctrl-C after a number of updates."""

    def __init__(self, after: int) -> None:
        self.after = after

    def __call__(self, done: float, total: float | None = None, note: str = "") -> None:
        if done == self.after:
            raise KeyboardInterrupt


@pytest.fixture(scope="module")
def straight() -> tuple[NLIModel, object]:
    """Train without interruption."""
    model = tiny()
    return model, train_nli(model, TRAIN, DEV, SHORT)


def test_a_toy_is_learnt():
    model = tiny("triplet")
    before = dev_scores(model, DEV)["all"]
    config = replace(SHORT, variant="triplet", epochs=8)
    run = train_nli(model, TRAIN, DEV, config)
    after = dev_scores(model, DEV)["all"]
    assert after["loss"] < before["loss"]
    assert after["auroc"] > 0.9
    assert after["loss"] == pytest.approx(min(look.dev_loss for look in run.looks), abs=1e-5)


def test_the_losses_are_those_of_the_paper():
    logits, labels = torch.tensor([[0.3], [-2.0], [1.5]]), torch.tensor([0, 1, 2])
    by_hand = [-math.log(1 / (1 + math.exp(-0.3)))]
    by_hand += [-math.log(1 - 1 / (1 + math.exp(-value))) for value in (-2.0, 1.5)]
    assert pair_loss(logits, labels).item() == pytest.approx(sum(by_hand) / 3)
    three = torch.tensor([[1.0, 0.5, -1.0], [0.0, 0.0, 3.0]])
    rows = [(three[0].tolist(), 2), (three[1].tolist(), 1)]
    expected = sum(math.log(sum(math.exp(v) for v in row)) - row[label] for row, label in rows) / 2
    assert pair_loss(three, torch.tensor([2, 1])).item() == pytest.approx(expected)


def test_a_run_equals_a_plain_loop_over_single_pairs():
    """Without padding and batching, with torch's AdamW: the same weights within rounding."""
    config = replace(SHORT, dropout=0.0, epochs=1, evaluate_every=1.0)
    model, plain = tiny(dropout=0.0), tiny(dropout=0.0)
    for each in (model, plain):
        for module in each.modules():
            if isinstance(module, torch.nn.Dropout):
                module.p = 0.0
        each.backbone.config.attention_probs_dropout_prob = 0.0
    run = train_nli(model, TRAIN, DEV, config)
    tokens = plain.tokenize(TRAIN.premises, TRAIN.hypotheses)
    batches = epoch_batches(tokens.lengths, 8, window=50, seed=3, epoch=0)
    optimizer = torch.optim.AdamW(plain.parameters(), weight_decay=0.01, foreach=False, fused=False)
    for step, rows in enumerate(batches):
        optimizer.param_groups[0]["lr"] = 1e-3 * cosine_factor(step, len(batches))
        optimizer.zero_grad()
        total = 0
        for row in rows:
            logit = plain(*plain.pad(tokens, [row]))[0, 0]
            target = torch.tensor(1.0 if TRAIN.labels[row] == 0 else 0.0)
            total = total + F.binary_cross_entropy_with_logits(logit, target) / len(rows)
        total.backward()
        optimizer.step()
    assert run.total_steps == len(batches)
    for (name, one), other in zip(model.named_parameters(), plain.parameters(), strict=True):
        if name.endswith("key.bias"):  # its gradient is rounding noise, which Adam scales up to full steps
            continue
        torch.testing.assert_close(one, other, rtol=1e-3, atol=2e-4, msg=name)


def test_the_same_seed_gives_the_same_bits_and_another_one_others(straight):
    model, run = straight
    again = tiny()
    assert train_nli(again, TRAIN, DEV, SHORT).looks == run.looks
    assert same_bits(weights_of(again), weights_of(model))
    other = tiny()
    assert train_nli(other, TRAIN, DEV, replace(SHORT, seed=4)).looks != run.looks


def test_training_leaves_the_global_generator_and_the_mode_alone():
    before = torch.get_rng_state()
    model = tiny()
    attention = model.backbone.config._attn_implementation
    train_nli(model, TRAIN, DEV, replace(SHORT, max_steps=2))
    assert torch.equal(torch.get_rng_state(), before)
    assert not model.training
    assert model.backbone.config._attn_implementation == attention


def test_evaluations_come_at_equal_shares_and_at_the_end(straight):
    _, run = straight
    assert run.total_steps == 12
    assert [look.step for look in run.looks] == [3, 6, 9, 12]
    assert run.stop_reason == "epochs"
    for look in run.looks:
        assert look.head_rate == pytest.approx(1e-3 * cosine_factor(look.step - 1, 12))
    json.dumps(run.to_dict(), allow_nan=False)


def test_the_schedule_covers_exactly_the_limited_updates():
    run = train_nli(tiny(), TRAIN, DEV, replace(SHORT, max_steps=4))
    assert (run.total_steps, run.stop_reason) == (4, "max_steps")
    assert run.looks[-1].step == 4
    assert run.looks[-1].backbone_rate == pytest.approx(1e-3 * cosine_factor(3, 4))


def test_patience_stops_and_the_best_state_is_kept():
    model = tiny()
    rising = replace(SHORT, epochs=8, learning_rate=0.3, head_learning_rate=0.3, evaluate_every=0.05, patience=2)
    run = train_nli(model, TRAIN, DEV, rising)
    assert run.stop_reason == "patience"
    losses = [look.dev_loss for look in run.looks]
    best = losses.index(min(losses))
    assert len(losses) == best + 3
    assert run.best_step == run.looks[best].step
    assert dev_scores(model, DEV)["all"]["loss"] == pytest.approx(min(losses), abs=1e-5)


def test_the_time_limit_stops_at_an_evaluation():
    run = train_nli(tiny(), TRAIN, DEV, replace(SHORT, max_seconds=1e-6))
    assert (run.stop_reason, [look.step for look in run.looks]) == ("max_seconds", [3])
    assert not run.finished


def test_a_loss_that_is_not_finite_stops_with_the_best_weights():
    model = tiny()
    with torch.no_grad():
        model.head.outer.weight.fill_(math.nan)
    with pytest.raises(TrainingError, match=r"the loss is nan at step 1 with learning_rate=1\.0e-03; use a lower one"):
        train_nli(model, TRAIN, DEV, SHORT)


def test_ctrl_c_keeps_the_best_evaluation(straight):
    model = tiny()
    run = train_nli(model, TRAIN, DEV, SHORT, report=CtrlC(after=8))
    assert run.stop_reason == "interrupted"
    assert run.looks == straight[1].looks[:2]
    assert run.best_step in (3, 6)


def test_ctrl_c_before_the_first_evaluation_restores_the_weights():
    model = tiny()
    before = weights_of(model)
    run = train_nli(model, TRAIN, DEV, SHORT, report=CtrlC(after=2))
    assert run.best_step == 0
    assert same_bits(weights_of(model), before)


def test_a_resumed_run_is_bit_identical_to_an_uninterrupted_one(straight, tmp_path):
    model, run = straight
    train_nli(tiny(), TRAIN, DEV, SHORT, folder=tmp_path / "checkpoint", report=CtrlC(after=4))
    resumed = tiny()
    went_on = train_nli(resumed, TRAIN, DEV, SHORT, folder=tmp_path / "checkpoint", resume=True)
    assert went_on.looks == run.looks
    assert (went_on.best_step, went_on.stop_reason) == (run.best_step, run.stop_reason)
    assert same_bits(weights_of(resumed), weights_of(model))


@pytest.fixture(scope="module")
def made_unfinished(tmp_path_factory) -> Path:
    folder = tmp_path_factory.mktemp("nli") / "checkpoint"
    train_nli(tiny(), TRAIN, DEV, SHORT, folder=folder, report=CtrlC(after=8))
    return folder


@pytest.fixture
def unfinished(made_unfinished, tmp_path) -> Path:
    """Return a checkpoint that the test may damage."""
    return Path(shutil.copytree(made_unfinished, tmp_path / "checkpoint"))


def test_another_run_is_not_resumed(unfinished):
    with pytest.raises(ConfigError, match=r"had batch_size 8\. Got 4 instead"):
        train_nli(tiny(), TRAIN, DEV, replace(SHORT, batch_size=4), folder=unfinished, resume=True)
    with pytest.raises(ConfigError, match="had other train; resume with the same"):
        train_nli(tiny(), toy_pairs(45, seed=9), DEV, SHORT, folder=unfinished, resume=True)
    more_time = replace(SHORT, max_seconds=1000.0)
    assert train_nli(tiny(), TRAIN, DEV, more_time, folder=unfinished, resume=True).finished


def test_callbacks_receive_every_update_and_every_evaluation(straight):
    _, run = straight
    told: list[tuple[int, dict[str, float]]] = []
    train_nli(tiny(), TRAIN, DEV, SHORT, callbacks=[lambda step, values: told.append((step, values))])
    updates = [values for _, values in told if "loss" in values]
    looks = {step: values for step, values in told if "dev_loss" in values}
    assert [values["loss"] for values in updates] == list(run.losses)
    assert [values["learning_rate"] for values in updates] == pytest.approx(
        [1e-3 * cosine_factor(step, 12) for step in range(12)]
    )
    assert {step: values["dev_loss"] for step, values in looks.items()} == {
        look.step: look.dev_loss for look in run.looks
    }


def test_another_encoder_is_not_resumed(unfinished):
    other = tiny()
    with torch.no_grad():
        other.head.outer.weight.add_(1)
    with pytest.raises(ConfigError, match="had other weights; resume with the same"):
        train_nli(other, TRAIN, DEV, SHORT, folder=unfinished, resume=True)


def test_resuming_without_a_checkpoint_or_folder_is_refused(tmp_path):
    with pytest.raises(ConfigError, match="holds no checkpoint"):
        train_nli(tiny(), TRAIN, DEV, SHORT, folder=tmp_path / "checkpoint", resume=True)
    with pytest.raises(ConfigError, match="resume needs the folder"):
        train_nli(tiny(), TRAIN, DEV, SHORT, resume=True)


def test_a_damaged_checkpoint_is_refused(unfinished):
    state = unfinished / "state.json"
    text = state.read_text()
    other = json.loads(text) | {"format": 1}
    del other["step"]
    state.write_text(json.dumps(other))
    with pytest.raises(ModelFolderError, match=r"\(format 1, not 3\); start again"):
        train_nli(tiny(), TRAIN, DEV, SHORT, folder=unfinished, resume=True)
    state.write_text(text)
    weights = unfinished / "weights.safetensors"
    weights.write_bytes(weights.read_bytes()[:-10])
    with pytest.raises(ModelFolderError, match="cut off"):
        train_nli(tiny(), TRAIN, DEV, SHORT, folder=unfinished, resume=True)
    state.write_text(text[:50])
    with pytest.raises(ModelFolderError, match="is damaged"):
        train_nli(tiny(), TRAIN, DEV, SHORT, folder=unfinished, resume=True)


def test_a_checkpoint_holds_safetensors_and_json_only(unfinished):
    assert {path.suffix for path in unfinished.iterdir()} == {".safetensors", ".json"}
    assert [path.name for path in unfinished.parent.iterdir()] == ["checkpoint"]


def test_model_and_configuration_must_agree():
    with pytest.raises(ConfigError, match="the model's variant is triplet"):
        train_nli(tiny("triplet"), TRAIN, DEV, SHORT)


def test_scores_are_reported_per_source():
    scores = dev_scores(tiny(), toy_pairs(24, sources=("one", "two")))
    assert scores["all"]["pairs"] == 24
    assert {name: each["pairs"] for name, each in scores["sources"].items()} == {"one": 12, "two": 12}
    whole = sum(each["loss"] for each in scores["sources"].values()) / 2
    assert scores["all"]["loss"] == pytest.approx(whole, rel=1e-5)


def test_pairs_of_one_class_have_no_auroc():
    pairs = toy_pairs(12)
    entailed = pairs.take([row for row in range(12) if pairs.labels[row] == 0])
    assert dev_scores(tiny(), entailed)["all"]["auroc"] is None


def test_dropout_depends_on_seed_and_step():
    model = tiny()
    batch = model.pad(model.tokenize(TRAIN.premises[:4], TRAIN.hypotheses[:4]))
    logits = []
    with model.training_mode():
        for step in (0, 0, 1):
            with seeded(torch.device("cpu"), child_seed(3, "nli", step), "dropout"):
                logits.append(model(*batch))
    assert torch.equal(logits[0], logits[1])
    assert not torch.equal(logits[0], logits[2])
