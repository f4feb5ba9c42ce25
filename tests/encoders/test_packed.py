"""`PackedTransformer` computes what transformers does, without padding."""

from typing import Any

import pytest
import torch
from torch.nn import functional as F
from transformers import (
    BertConfig,
    BertModel,
    MPNetConfig,
    MPNetModel,
    RobertaConfig,
    RobertaModel,
    XLMRobertaConfig,
    XLMRobertaModel,
)
from transformers.models.mpnet.modeling_mpnet import MPNetEncoder

from labelspace.encoders import packed
from labelspace.encoders.packed import PackedTransformer, read_by, runs

SIZES = {
    "vocab_size": 50,
    "hidden_size": 24,
    "num_hidden_layers": 2,
    "num_attention_heads": 3,
    "intermediate_size": 40,
    "max_position_embeddings": 300,
    "layer_norm_eps": 1e-5,
}
FAMILIES: dict[str, tuple[Any, Any]] = {
    "bert": (BertConfig, BertModel),
    "roberta": (RobertaConfig, RobertaModel),
    "xlm-roberta": (XLMRobertaConfig, XLMRobertaModel),
    "mpnet": (MPNetConfig, MPNetModel),
}
PADDING = 1
# Some alike; token 1 is padding, which a text may hold.
LENGTHS = [260, 129, 128, 128, 40, 40, 40, 7, 3, 3, 2]

every_family = pytest.mark.parametrize("family", FAMILIES)


def model_of(family: str) -> Any:
    config, model = FAMILIES[family]
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(0)
        made = model(config(**SIZES, pad_token_id=PADDING)).eval()
        for weight in made.parameters():  # also biases and norms, which start as zeros and ones
            weight.data += 0.2 * torch.randn(weight.shape)
    return made


def texts() -> list[list[int]]:
    generator = torch.Generator().manual_seed(1)
    return [torch.randint(0, 50, (length,), generator=generator).tolist() for length in LENGTHS]


def states_of(model: Any, ids: list[int]) -> torch.Tensor:
    """Run transformers on one text alone, so that nothing is padded."""
    with torch.inference_mode():
        tokens = torch.tensor([ids])
        return model(input_ids=tokens, attention_mask=torch.ones_like(tokens)).last_hidden_state[0]


def packed_of(model: Any, pooling: str = "mean", dtype: torch.dtype = torch.float32) -> PackedTransformer:
    return PackedTransformer(model.config.to_dict(), model.state_dict(), pooling=pooling, dtype=dtype)


@pytest.mark.parametrize(
    ("family", "pooling"), [*((family, "mean") for family in FAMILIES), ("bert", "cls"), ("bert", "last")]
)
def test_vectors_are_those_of_transformers(family: str, pooling: str):
    model = model_of(family)
    found = packed_of(model, pooling).embed(texts())
    pool = {"mean": lambda states: states.mean(0), "cls": lambda states: states[0], "last": lambda states: states[-1]}
    expected = torch.stack([F.normalize(pool[pooling](states_of(model, ids)), dim=0) for ids in texts()])
    assert found.dtype == torch.float32
    torch.testing.assert_close(found, expected, atol=2e-6, rtol=0)


@every_family
def test_a_text_does_not_see_the_others_of_its_batch(family: str):
    together = packed_of(model_of(family))
    alone = torch.cat([together.embed([ids]) for ids in texts()])
    torch.testing.assert_close(together.embed(texts()), alone, atol=2e-6, rtol=0)
    torch.testing.assert_close(together.embed(texts()[::-1]), alone.flip(0), atol=2e-6, rtol=0)


@every_family
def test_bfloat16_stays_near(family: str):
    model = model_of(family)
    near = (packed_of(model).embed(texts()) * packed_of(model, dtype=torch.bfloat16).embed(texts())).sum(1)
    assert near.min() > 0.999


def test_weights_arranged_for_the_processor_change_nothing_but_the_last_digits(monkeypatch: pytest.MonkeyPatch):
    model = model_of("bert")
    usual = packed_of(model, dtype=torch.bfloat16).embed(texts())
    monkeypatch.setattr(packed, "_can_prepack", lambda _: False)
    other = packed_of(model, dtype=torch.bfloat16).embed(texts())
    assert (usual * other).sum(1).min() > 0.999


@pytest.mark.parametrize("error", [AttributeError, RuntimeError, TypeError])
def test_another_torch_without_these_operators_or_with_other_arguments_is_no_error(error, monkeypatch):
    def changed(name: str):
        raise error(name)

    monkeypatch.setattr(packed, "_mkldnn", changed)
    model = model_of("bert")
    near = (packed_of(model).embed(texts()) * packed_of(model, dtype=torch.bfloat16).embed(texts())).sum(1)
    assert near.min() > 0.999


def test_later_training_does_not_reach_a_packed_copy():
    model = model_of("bert")
    copy = packed_of(model)
    before = copy.embed(texts())
    with torch.no_grad():
        for weight in model.parameters():
            weight.add_(1)
    assert torch.equal(copy.embed(texts()), before)


def test_distances_fall_into_the_buckets_of_mpnet():
    places = torch.arange(300)
    expected = MPNetEncoder.relative_position_bucket(places[None, :] - places[:, None], num_buckets=32)
    assert torch.equal(packed._buckets(300), expected)


@pytest.mark.parametrize(
    "change",
    [
        {"model_type": "modernbert"},
        {"hidden_act": "relu"},
        {"position_embedding_type": "relative_key"},
        {"is_decoder": True},
        {"add_cross_attention": True},
        {"quantization_config": {"bits": 4}},
        {"relative_attention_num_buckets": 64},
        {"num_hidden_layers": 3},
    ],
)
def test_what_it_does_not_compute_it_does_not_run(change: dict[str, Any]):
    model = model_of("bert")
    config, names = model.config.to_dict(), list(model.state_dict())
    assert runs(config, names)
    assert not runs({**config, **change}, names)


def test_a_weight_too_few_or_too_many_is_not_run():
    model = model_of("bert")
    config, names = model.config.to_dict(), list(model.state_dict())
    assert not runs(config, [name for name in names if name != "encoder.layer.1.output.dense.bias"])
    assert not runs(config, [*names, "encoder.layer.1.output.adapter.weight"])


def test_weights_that_decide_the_vectors_leave_the_pooler_out():
    names = model_of("bert").state_dict()
    left_out = set(names) - set(read_by(names))
    assert left_out == {"pooler.dense.weight", "pooler.dense.bias"}
