"""`Encoder(engine="openvino")`: another way to compute the same vectors."""

import sys
from typing import Any

import numpy as np
import pytest
import torch

from labelspace import DescriptionClassifier, Encoder, load
from labelspace.errors import ConfigError, EncoderError, MissingDependencyError

pytest.importorskip("openvino")

LABELS = {"sports": ["matches and teams", "results of games"], "money": ["banks and prices", "markets"]}
TEXTS = ["the match", "the bank lost money in the market", "a text " * 200, "a record at the games"] * 9


@pytest.mark.slow
def test_openvino_computes_torchs_vectors_in_both_formats(tiny_encoder_folder):
    exact = Encoder(tiny_encoder_folder, dtype="float32").encode(TEXTS)
    for dtype, most in (("float32", 1e-5), ("bfloat16", 0.05)):
        other = Encoder(tiny_encoder_folder, dtype=dtype, engine="openvino", token_budget=64)
        np.testing.assert_allclose(other.encode(TEXTS), exact, atol=most)
        np.testing.assert_allclose(other.copy().encode(TEXTS), exact, atol=most)


@pytest.mark.slow
def test_openvino_computes_with_weights_that_were_trained_in_place(tiny_encoder_folder):
    engines = [Encoder(tiny_encoder_folder, dtype="float32", engine=engine) for engine in ("torch", "openvino")]
    before = [encoder.encode(TEXTS) for encoder in engines]
    for encoder in engines:
        with encoder.backbone.training_mode(encoder_dropout=False), torch.no_grad():
            for weight in encoder.backbone.model.parameters():
                weight.mul_(1.1)
    by_torch, other = (encoder.encode(TEXTS) for encoder in engines)
    assert np.abs(by_torch - before[0]).max() > 1e-3
    np.testing.assert_allclose(other, by_torch, atol=1e-5)


@pytest.mark.slow
def test_a_model_trained_and_saved_on_openvino_answers_with_its_new_weights(tiny_encoder_folder, tmp_path, monkeypatch):
    encoder = Encoder(tiny_encoder_folder, dtype="float32", engine="openvino")
    encoder.encode(TEXTS)  # makes the graph of the weights before training
    options = {"learning_rate": 1e-3, "max_steps": 3}
    trained = DescriptionClassifier({"labels": LABELS}, encoder, **options).fit()
    by_torch = DescriptionClassifier({"labels": LABELS}, Encoder(tiny_encoder_folder, dtype="float32"), **options).fit()
    scores = by_torch.answers(TEXTS).scores
    np.testing.assert_allclose(trained.answers(TEXTS).scores, scores, atol=1e-5)
    assert np.abs(trained.encoder_.encode(TEXTS) - encoder.encode(TEXTS)).max() > 1e-3

    opened: Any = load(trained.save(tmp_path / "model"))
    assert opened.encoder_.config.engine == "openvino"
    assert np.array_equal(opened.answers(TEXTS).scores, trained.answers(TEXTS).scores)
    monkeypatch.setattr("importlib.util.find_spec", lambda name: None)  # where it is not installed, torch computes
    opened = load(tmp_path / "model")
    assert opened.encoder_.config.engine == "torch"
    np.testing.assert_allclose(opened.answers(TEXTS).scores, scores, atol=1e-5)


def test_an_engine_that_cannot_be_is_refused_in_one_line(tiny_encoder_folder, monkeypatch):
    with pytest.raises(ConfigError, match="engine must be one of 'torch', 'openvino'"):
        Encoder(tiny_encoder_folder, engine="tvm")
    with pytest.raises(ConfigError, match=r"engine='openvino' runs on the CPU. Got device='meta'"):
        Encoder(tiny_encoder_folder, engine="openvino", device="meta")
    monkeypatch.setitem(sys.modules, "openvino", None)
    with pytest.raises(MissingDependencyError, match=r"pip install 'labelspace\[export\]'"):
        Encoder(tiny_encoder_folder, engine="openvino")


@pytest.mark.slow
def test_an_encoder_of_which_openvino_makes_other_vectors_is_refused(tiny_folder):
    encoder = Encoder(tiny_folder("qwen3-last"), dtype="float32", engine="openvino", text_prompt="")
    with pytest.raises(EncoderError, match="OpenVINO computes other vectors of this encoder than torch"):
        encoder.encode(["a text"])


def test_an_encoder_that_pools_without_its_prompt_is_refused(tiny_encoder_folder):
    encoder = Encoder(tiny_encoder_folder, dtype="float32", engine="openvino")
    vars(encoder.backbone.model[1])["include_prompt"] = False
    with pytest.raises(EncoderError, match="pools without its prompt"):
        encoder.encode(["a text"])
