"""The last layer continues with the first token only if the head reads no other, and no logit changes."""

import pytest
import torch
from torch import nn
from transformers import AutoModelForSequenceClassification

from families.tiny_pairs import KINDS, build_pairs
from labelspace.families.first_token import keep_first_token

READ_THE_FIRST = ("bert", "deberta-v3", "roberta", "xlm-roberta")


def opened(kind, tmp_path):
    return AutoModelForSequenceClassification.from_pretrained(build_pairs(kind, tmp_path), dtype=torch.float32).eval()


def joins(model):
    return [module for module in model.modules() if type(module).__name__.endswith("SelfOutput")]


@pytest.mark.parametrize("kind", KINDS)
@torch.inference_mode()
def test_logits_stay_the_same_and_the_last_layer_continues_with_one_token(kind, tmp_path):
    model = opened(kind, tmp_path)
    ids = torch.tensor([[5, 9, 7, 12, 6], [8, 6, 0, 0, 0]])
    batch = {"input_ids": ids, "attention_mask": torch.tensor([[1] * 5, [1, 1, 0, 0, 0]])}
    if kind == "bart":  # needs its end token in every row
        batch["input_ids"][:, 1] = model.config.eos_token_id
    if kind == "qwen3":
        model.config.pad_token_id = 0
    before = model(**batch).logits
    assert keep_first_token(model, model.base_model) == (kind in READ_THE_FIRST)
    assert torch.allclose(model(**batch).logits, before, atol=1e-5)
    if kind in READ_THE_FIRST:
        seen = []
        layer = joins(model)[-1]
        layer.dense.register_forward_hook(lambda _module, inputs, _output: seen.append(inputs[0].shape[1]))
        joins(model)[0].dense.register_forward_hook(lambda _module, inputs, _output: seen.append(inputs[0].shape[1]))
        model(**batch)
        assert seen == [5, 1]


class MeanHead(nn.Module):
    """A head that reads every token."""

    def __init__(self, base):
        super().__init__()
        self.base = base

    def forward(self, **batch):
        return self.base(**batch).last_hidden_state.mean(dim=1)


class LastHead(MeanHead):
    """A head that reads the last token."""

    def forward(self, **batch):
        return self.base(**batch).last_hidden_state[:, 3]


@pytest.mark.parametrize("head", [MeanHead, LastHead])
@torch.inference_mode()
def test_a_model_whose_head_reads_other_tokens_is_unchanged(head, tmp_path):
    base = opened("bert", tmp_path).base_model
    model = head(base).eval()
    batch = {"input_ids": torch.tensor([[5, 9, 7, 12]]), "attention_mask": torch.ones(1, 4, dtype=torch.long)}
    before = model(**batch)
    assert not keep_first_token(model, base)
    assert torch.equal(model(**batch), before)
