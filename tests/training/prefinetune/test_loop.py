"""Updates: the gradient of a batch in chunks, REZE's two limiting cases, bit-identical repetition and resumption."""

import math
from dataclasses import replace

import pytest
import torch

from labelspace.config import PrefinetuneConfig
from labelspace.corpus import mixed_batches
from labelspace.errors import TrainingError
from labelspace.geometry import drift
from labelspace.losses import pair_infonce, reze_loss
from labelspace.seeds import child_seed
from labelspace.training import rows as row_module
from labelspace.training.checkpoint import Place
from labelspace.training.engine import train
from labelspace.training.gradients import seeded
from labelspace.training.prefinetune.objective import PrefinetuneObjective, batch_gradient
from labelspace.training.prefinetune.offline import Targets, find_eigenspace
from labelspace.training.prefinetune.relations import ReferenceRelations
from labelspace.training.schedule import cosine_factor
from labelspace.training.trainable import trainable_weights
from stops import Stop, stop_at
from training.prefinetune.toy import toy_pairs
from training.test_gradients import assert_same
from weights import same_bits, weights_of

SHORT = PrefinetuneConfig(learning_rate=1e-3, epochs=2)
PLAIN = replace(SHORT, regularizer_weight=0.0)


@pytest.fixture(scope="module")
def targets(base, tmp_path_factory):
    pairs = toy_pairs()
    relations = ReferenceRelations(base, pairs, tmp_path_factory.mktemp("reference"))
    return Targets(relations, pairs, find_eigenspace(relations, pairs, SHORT))


def trained(base, targets, config=SHORT, *, seed=3, folder=None, resume=False, callbacks=()):
    """Train a copy of the base encoder on the toy; return it and the record of the training."""
    encoder, pairs = base.copy(), toy_pairs()
    with trainable_weights(encoder.backbone) as weights:
        used = targets if config.regularizer_weight else None
        run = {"config": config.to_dict(), "seed": seed}
        objective = PrefinetuneObjective(encoder, weights, pairs, used, config, seed=seed)
        place = Place(folder, run, resume) if folder is not None else None
        went = train(objective, checkpoint=place, callbacks=callbacks)
    return encoder, went


@pytest.fixture(scope="module")
def straight(base, targets):
    """Train without interruption."""
    return trained(base, targets)


def gradients(base, targets, memory, *, dropout, rows=range(0, 36, 3)):
    encoder, pairs = base.copy(), toy_pairs()
    config = replace(SHORT, max_tokens_in_memory=memory, regularizer_weight=2.0)
    with encoder.backbone.training_mode(encoder_dropout=dropout):
        found = batch_gradient(
            encoder,
            [pairs.anchors[row] for row in rows],
            [pairs.positives[row] for row in rows],
            targets.take(rows),
            config,
            seed=5,
        )
    named = encoder.backbone.model.named_parameters()
    return found, {name: weight.grad for name, weight in named if weight.grad is not None}


@pytest.mark.parametrize("memory", [16, 60])
def test_the_gradient_of_a_batch_in_chunks_is_that_of_the_whole(base, targets, memory, monkeypatch):
    # Chunks have one size in both cases, so dropout draws the same masks; only the memory use differs.
    monkeypatch.setattr(row_module, "CHUNK_TOKENS", memory)
    whole, expected = gradients(base, targets, 10**6, dropout=True)
    parts, found = gradients(base, targets, memory, dropout=True)
    assert parts == pytest.approx(whole, rel=1e-5)
    assert_same(found, expected, tolerance=1e-4)
    without, _ = gradients(base, targets, memory, dropout=False)
    assert abs(parts[0] - without[0]) > 1e-4, "dropout is active"


def test_the_gradient_is_that_of_the_losses_on_one_padded_batch(base, targets):
    """The reference has no chunks: sentence-transformers' forward, equation 10, backward."""
    rows, pairs, encoder = range(0, 36, 3), toy_pairs(), base.copy()
    (value, main, regularizer), found = gradients(base, targets, 10**6, dropout=False)
    model = encoder.backbone.model
    texts = [pairs.anchors[row] for row in rows] + [pairs.positives[row] for row in rows]
    stacked = model(model.preprocess(texts))["sentence_embedding"]
    loss = reze_loss(stacked[:12], stacked[12:], targets.take(rows), 2.0, 0.05)
    loss.total.backward()
    assert (value, main, regularizer) == pytest.approx([part.item() for part in loss], rel=1e-5)
    assert value == pytest.approx(main + 2 * regularizer, rel=1e-6)
    expected = {name: weight.grad for name, weight in model.named_parameters() if weight.grad is not None}
    assert_same(found, expected, tolerance=1e-3)  # another attention and padding round differently


def test_weight_0_is_bit_identical_to_plain_infonce(base, targets):
    """The reference is a loop without REZE: eq. 9, AdamW, the schedule."""
    config = replace(PLAIN, epochs=1)
    encoder, went = trained(base, targets, config)
    plain, pairs = base.copy(), toy_pairs()
    with trainable_weights(plain.backbone) as weights, plain.backbone.training_mode(encoder_dropout=True):
        optimizer = torch.optim.AdamW([weight for _, weight in weights], weight_decay=0.01, fused=True)
        for step, rows in enumerate(mixed_batches(pairs, 8, seed=3, epoch=0)):
            optimizer.param_groups[0]["lr"] = 1e-3 * cosine_factor(step, 5, 0.0)
            optimizer.zero_grad()
            tokens = plain.tokenize([pairs.anchors[row] for row in rows] + [pairs.positives[row] for row in rows])
            order = sorted(range(len(tokens)), key=lambda place: -len(tokens[place]))
            with seeded(plain.backbone.device, child_seed(3, "prefinetune", step), "dropout", 0):
                vectors = plain.backbone.embed(plain.backbone.batch(tokens, order), training=True)
            vectors = vectors[torch.tensor(order).argsort()]
            pair_infonce(vectors[: len(rows)], vectors[len(rows) :], 0.05).backward()
            optimizer.step()
    assert went.total_steps == 5
    assert same_bits(encoder, plain)
    assert not same_bits(encoder, base)
    assert all(look.regularizer is None and look.loss == look.main for look in went.looks)


def test_a_tiny_weight_is_close_to_weight_0_and_the_default_is_not(base, targets):
    texts = list(toy_pairs().anchors)
    config = replace(SHORT, encoder_dropout=False, epochs=1)
    plain, tiny, usual = (
        trained(base, targets, replace(config, regularizer_weight=weight))[0].encode(texts)
        for weight in (0.0, 1e-9, 1.0)
    )
    assert drift(plain, tiny) < 1e-3 * drift(plain, usual)


def test_a_huge_weight_keeps_the_encoder_in_place(base, targets):
    """The targets are the reference itself, because debiased ones lie elsewhere."""
    pairs = toy_pairs()
    texts = [*pairs.anchors, *dict.fromkeys(pairs.positives)]
    nothing_shrunk = replace(SHORT, eta=0.0, regularizer_weight=1e6, encoder_dropout=False, learning_rate=1e-4)
    reference = targets._relations
    own = Targets(reference, pairs, find_eigenspace(reference, pairs, nothing_shrunk))
    held, _ = trained(base, own, nothing_shrunk)
    free, _ = trained(base, own, replace(nothing_shrunk, regularizer_weight=0.0))
    before = base.encode(texts)
    assert drift(before, free.encode(texts)) > 1e-3
    assert drift(before, held.encode(texts)) < 0.05 * drift(before, free.encode(texts))


def test_the_regularizer_pulls_towards_the_debiased_targets_and_not_the_reference(base, targets):
    strong = replace(SHORT, regularizer_weight=1e6, encoder_dropout=False, epochs=6)
    encoder, went = trained(base, targets, strong)
    pairs, rows = toy_pairs(), range(36)
    sides = [torch.from_numpy(encoder.encode(side)) for side in (pairs.anchors, pairs.positives)]
    relations = torch.cat(sides, dim=1)
    aim, reference = targets.take(rows), targets._relations.take(rows)
    to_aim, to_reference = (torch.cosine_similarity(relations, each).mean().item() for each in (aim, reference))
    apart = torch.cosine_similarity(aim, reference).mean().item()
    assert to_aim > max(to_reference, apart)
    assert went.looks[-1].regularizer < went.looks[0].regularizer


def test_the_toy_is_learnt_and_the_curve_shows_it(base, targets):
    _, went = trained(base, targets, replace(SHORT, epochs=4))
    assert went.looks[-1].main < went.looks[0].main
    assert [look.step for look in went.looks] == list(range(1, 21))
    assert went.total_steps == went.best_step == 20
    assert went.finished
    for look in went.looks:
        assert look.learning_rate == pytest.approx(1e-3 * cosine_factor(look.step - 1, 20, 0.0))
        assert look.loss == pytest.approx(look.main + look.regularizer, rel=1e-5)


def test_a_look_is_the_mean_of_the_updates_since_the_last(base, targets):
    losses = []
    callback = lambda step, values: losses.append((step, values["loss"], values["regularizer"]))  # noqa: E731
    _, went = trained(base, targets, replace(SHORT, epochs=8), callbacks=[callback])
    assert [look.step for look in went.looks] == list(range(2, 41, 2))
    for look in went.looks:
        last = [each for each in losses if look.step - 2 < each[0] <= look.step]
        assert look.loss == pytest.approx(sum(each[1] for each in last) / 2)
        assert look.regularizer == pytest.approx(sum(each[2] for each in last) / 2)


def test_the_same_seed_gives_the_same_bits_and_another_one_others(base, targets, straight):
    encoder, went = straight
    again, once_more = trained(base, targets)
    assert same_bits(encoder, again)
    assert once_more.looks == went.looks
    assert not same_bits(encoder, trained(base, targets, seed=4)[0])


def test_training_leaves_the_global_generator_and_the_given_encoder_alone(base, targets):
    before, weights = torch.get_rng_state(), weights_of(base)
    encoder, _ = trained(base, targets)
    assert torch.equal(torch.get_rng_state(), before)
    assert all(torch.equal(weights_of(base)[name], values) for name, values in weights.items())
    assert not encoder.backbone.model.training
    assert all(weight.grad is None for weight in encoder.backbone.model.parameters())


def test_ctrl_c_keeps_the_weights_of_the_last_look(base, targets, tmp_path):
    config, folder = replace(SHORT, epochs=8), tmp_path / "checkpoint"
    encoder, went = trained(base, targets, config, folder=folder, callbacks=[stop_at(9, KeyboardInterrupt)])
    assert (went.stop_reason, went.best_step, went.finished) == ("interrupted", 8, False)
    written = Place(folder, {"config": config.to_dict(), "seed": 3}).read().weights
    assert all(torch.equal(written[name], values) for name, values in weights_of(encoder).items())
    assert not same_bits(encoder, base)


def test_ctrl_c_before_the_first_look_restores_the_weights(base, targets):
    encoder, went = trained(base, targets, callbacks=[stop_at(1, KeyboardInterrupt)])
    assert (went.stop_reason, went.best_step, went.looks) == ("interrupted", 0, ())
    assert same_bits(encoder, base)


def test_a_run_of_one_update_moves_the_encoder(base, targets):
    encoder, went = trained(base, targets, replace(SHORT, epochs=1, batch_size=36))
    assert (went.total_steps, went.looks[0].learning_rate) == (1, SHORT.learning_rate)
    assert not same_bits(encoder, base)


def test_a_loss_that_is_not_finite_stops_it(base, targets):
    broken = base.copy()
    with torch.no_grad():
        broken.backbone.model[0].model.encoder.layer[0].output.dense.bias.fill_(math.nan)
    with pytest.raises(
        TrainingError, match=r"the loss is nan at step 1 with .*; use a lower one, for example learning_rate=1e-04"
    ):
        trained(broken, targets)


def test_a_run_stopped_without_warning_resumes_bit_identically(base, tmp_path):
    """Like a kill, `Stop` is not caught; the tests of the command `prefinetune` kill a process."""
    from labelspace.training.prefinetune import prefinetune

    straight = prefinetune(toy_pairs(), base, SHORT, seed=3)
    with pytest.raises(Stop):
        prefinetune(toy_pairs(), base, SHORT, seed=3, folder=tmp_path, callbacks=[stop_at(7)])
    steps = []
    went_on = prefinetune(
        *(toy_pairs(), base, SHORT),
        seed=3,
        folder=tmp_path,
        resume=True,
        callbacks=[lambda step, values: steps.append(step)],
    )
    assert steps == [7, 8, 9, 10], "update 7 was made and not written down"
    assert went_on.result.training.looks == straight.result.training.looks
    assert same_bits(went_on.encoder, straight.encoder)
