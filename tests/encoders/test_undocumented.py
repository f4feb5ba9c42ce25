"""What transformers offers in no documented way is used where it is, and missed nowhere."""

from types import SimpleNamespace
from typing import Any

import pytest
import torch

from labelspace.encoders.undocumented import attention_for_training, attention_of, quiet_tokenizer, silence_lengths

CPU = torch.device("cpu")


class Model:
    """A transformer that tells its attention, or does not."""

    def __init__(self, **told: Any) -> None:
        self.config = SimpleNamespace(**told)
        self.given: list[str] = []

    def set_attn_implementation(self, name: str) -> None:
        self.given.append(name)
        self.config._attn_implementation = name


def test_training_has_plain_attention_and_an_error_inside_leaves_the_models_own():
    model = Model(_attn_implementation="sdpa")
    with pytest.raises(ZeroDivisionError), attention_for_training(model, CPU):
        raise ZeroDivisionError(attention_of(model.config))
    assert model.given == ["eager", "sdpa"]


@pytest.mark.parametrize("told", [{}, {"_attn_implementation": "flash_attention_2"}])
def test_another_attention_or_an_untold_one_is_left_alone(told: dict[str, str]):
    model = Model(**told)
    with attention_for_training(model, CPU):
        assert model.given == []
    assert model.given == []


def test_a_tokenizer_is_quiet_inside_the_block_and_warns_once_as_before():
    tokenizer = SimpleNamespace(deprecation_warnings={})
    with quiet_tokenizer(tokenizer):
        assert list(tokenizer.deprecation_warnings.values()) == [True]
    assert tokenizer.deprecation_warnings == {}
    silence_lengths(tokenizer)
    with quiet_tokenizer(tokenizer):
        pass
    assert list(tokenizer.deprecation_warnings.values()) == [True]


def test_a_tokenizer_that_keeps_no_list_of_warnings_is_no_error():
    tokenizer = SimpleNamespace()
    silence_lengths(tokenizer)
    with quiet_tokenizer(tokenizer):
        pass
