"""Trainable weights: all, the upper layers, or adapters that are merged into a plain model."""

from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
import torch
from sentence_transformers import SentenceTransformer
from torch import Tensor

from labelspace.config import TrainingConfig
from labelspace.encoders import Encoder
from labelspace.errors import ConfigError, MissingDependencyError
from labelspace.labels import LabelSpace
from labelspace.training.description.objective import run
from labelspace.training.description.sweep import build_sweep
from labelspace.training.trainable import layers_of, restore, snapshot, trainable_weights
from weights import weights_of

KINDS = ("bert-mean", "modernbert-cls", "qwen3-last", "gemma3-mean", "mpnet-mean")


def train(encoder: Encoder, space: LabelSpace, *, steps: int = 3, seed: int = 0, **which: int | None) -> list[str]:
    """Train a few steps; return the names of the trainable weights."""
    config = TrainingConfig(max_steps=steps)
    sweep = build_sweep(encoder, space, max_tokens_in_memory=10_000)
    with trainable_weights(encoder.backbone, seed=seed, **which) as weights:  # type: ignore[arg-type]
        run(encoder.backbone, weights, sweep, config, learning_rate=1e-2, seed=0)
        return [name for name, _ in weights]


def moved(before: dict[str, Tensor], encoder: Encoder) -> set[str]:
    after = weights_of(encoder)
    assert before.keys() == after.keys()
    return {name for name in before if not torch.equal(before[name], after[name])}


def test_everything_but_the_unused_pooler_learns_by_default(encoder: Encoder, space: LabelSpace):
    before = weights_of(encoder)
    train(encoder, space)
    still = before.keys() - moved(before, encoder)
    assert all(".pooler." in name for name in still), still


def test_frozen_layers_and_the_embeddings_below_do_not_move_and_the_others_do(encoder: Encoder, space: LabelSpace):
    before = weights_of(encoder)
    learnt = train(encoder, space, freeze_layers=1)
    changed = moved(before, encoder)
    assert all(".layer.1." in name for name in changed)
    assert changed == {name for name in before if ".layer.1." in name}
    assert not any(".embeddings." in name or ".layer.0." in name for name in learnt)
    assert all(parameter.requires_grad for parameter in encoder.backbone.model.parameters())


@pytest.mark.parametrize("kind", KINDS)
def test_freezing_works_in_every_architecture(kind: str, open_tiny: Callable[..., Encoder], space: LabelSpace):
    encoder = open_tiny(kind)
    stack = layers_of(encoder.backbone)
    lower = {id(parameter) for parameter in stack[0].parameters()}
    words = {id(parameter) for parameter in encoder.backbone.transformer.model.get_input_embeddings().parameters()}
    upper = {id(parameter) for parameter in stack[1].parameters()}
    before = {id(parameter): parameter.detach().clone() for parameter in encoder.backbone.model.parameters()}
    train(encoder, space, freeze_layers=1)
    changed = {id(p) for p in encoder.backbone.model.parameters() if not torch.equal(p, before[id(p)])}
    assert not changed & (lower | words)
    assert changed >= upper


def test_freezing_more_layers_than_exist_is_refused(encoder: Encoder):
    manager = trainable_weights(encoder.backbone, freeze_layers=3)
    with pytest.raises(ConfigError, match=r"more than the encoder's 2 layers\. Got 3"):
        manager.__enter__()
    assert all(parameter.requires_grad for parameter in encoder.backbone.model.parameters())


# ---- low-rank adapters


@pytest.mark.parametrize("kind", KINDS)
def test_adapters_train_and_are_merged_into_a_plain_model(
    kind: str, open_tiny: Callable[..., Encoder], space: LabelSpace, tmp_path: Path
):
    encoder = open_tiny(kind)
    before, model_class = weights_of(encoder), type(encoder.backbone.transformer.model)
    texts = ["the team won the match", "banks and prices"]
    vectors = encoder.encode(texts)
    learnt = train(encoder, space, lora_rank=2)
    inside = [name for name in learnt if name.startswith("0.")]
    assert inside
    assert all(".lora_" in name for name in inside)
    assert type(encoder.backbone.transformer.model) is model_class
    changed = moved(before, encoder)
    assert any(".weight" in name and "norm" not in name.lower() for name in changed)
    assert not any("embed" in name for name in changed)
    trained = encoder.encode(texts)
    assert not np.allclose(trained, vectors, atol=1e-4)
    encoder.save(tmp_path / "model")
    assert not any("lora" in path.name or "adapter" in path.name for path in (tmp_path / "model").rglob("*"))
    assert (Encoder(tmp_path / "model", dtype="float32").encode(texts) == trained).all()
    assert np.allclose(SentenceTransformer(str(tmp_path / "model"), device="cpu").encode(texts), trained, atol=1e-5)


def test_adapters_are_far_smaller_than_the_weights(encoder: Encoder):
    with trainable_weights(encoder.backbone) as weights:
        everything = sum(parameter.numel() for _, parameter in weights)
    with trainable_weights(encoder.backbone, lora_rank=1) as weights:
        assert sum(parameter.numel() for _, parameter in weights) < 0.1 * everything


def test_adapters_without_a_step_change_no_vector(encoder: Encoder):
    before = encoder.encode(["a text"])
    with trainable_weights(encoder.backbone, lora_rank=2):
        assert np.allclose(encoder.encode(["a text"]), before, atol=1e-6)
    assert np.allclose(encoder.encode(["a text"]), before, atol=1e-6)


def test_the_seed_decides_the_adapters_and_no_global_state_is_touched(
    open_tiny: Callable[..., Encoder], space: LabelSpace
):
    encoders = [open_tiny() for _ in range(3)]
    state = torch.get_rng_state()
    for encoder, seed in zip(encoders, (1, 1, 2), strict=True):
        train(encoder, space, steps=1, lora_rank=2, seed=seed)
    assert torch.equal(torch.get_rng_state(), state)
    first, again, other = (encoder.encode(["a text"]) for encoder in encoders)
    assert (first == again).all()
    assert not (first == other).all()


def test_an_error_in_between_still_leaves_a_plain_model(encoder: Encoder):
    model_class = type(encoder.backbone.transformer.model)

    def fail() -> None:
        with trainable_weights(encoder.backbone, lora_rank=2):
            raise OSError("planted")

    with pytest.raises(OSError, match="planted"):
        fail()
    assert type(encoder.backbone.transformer.model) is model_class
    assert all(parameter.requires_grad for parameter in encoder.backbone.model.parameters())


def test_without_peft_the_error_names_the_install_command(encoder: Encoder, monkeypatch: pytest.MonkeyPatch):
    import sys

    monkeypatch.setitem(sys.modules, "peft", None)
    manager = trainable_weights(encoder.backbone, lora_rank=2)
    with pytest.raises(MissingDependencyError, match=r"pip install 'labelspace\[lora\]'"):
        manager.__enter__()
    assert all(parameter.requires_grad for parameter in encoder.backbone.model.parameters())


# ---- snapshots


def test_a_snapshot_restores_every_bit_and_does_not_share_memory(encoder: Encoder):
    with trainable_weights(encoder.backbone) as weights:
        before = weights_of(encoder)
        kept = snapshot(weights)
        for _, parameter in weights:
            parameter.data.add_(1.0)
        assert moved(before, encoder) == set(before)
        restore(weights, kept)
        assert not moved(before, encoder)
