"""The tiny encoders match the real ones in class, pooling and last modules, and have the same bytes everywhere."""

import functools
import json
from collections.abc import Callable
from pathlib import Path

import pytest
import torch
from safetensors.torch import load_file
from sentence_transformers import SentenceTransformer

from tiny_models import BUILDERS, KINDS, WIDTH, build_tiny

TEXTS = ["Sports news about a game", "stock market", "Müller 北京 ☃ zyxw", "a " * 300, ""]

LIKE_THE_REAL_ONE = {
    # kind: class of the model, pooling, modules after it
    "bert-mean": ("BertModel", "mean", ["Pooling", "Normalize"]),
    "bert-cls": ("BertModel", "cls", ["Pooling", "Normalize"]),
    "modernbert-cls": ("ModernBertModel", "cls", ["Pooling", "Normalize"]),
    "qwen3-last": ("Qwen3Model", "lasttoken", ["Pooling", "Normalize"]),
    "gemma3-mean": ("Gemma3TextModel", "mean", ["Pooling", "Dense", "Dense", "Normalize"]),
    "mpnet-mean": ("MPNetModel", "mean", ["Pooling", "Normalize"]),
    "unigram-mean": ("BertModel", "mean", ["Pooling", "Normalize"]),
}

Opened = Callable[[str], SentenceTransformer]
every_kind = pytest.mark.parametrize("kind", BUILDERS)


@pytest.fixture(scope="module")
def opened(tiny_folder: Callable[[str], Path]) -> Opened:
    """Open a kind, once; do not change it."""
    return functools.cache(lambda kind: SentenceTransformer(str(tiny_folder(kind)), device="cpu"))


def size(folder: Path) -> int:
    return sum(path.stat().st_size for path in folder.rglob("*") if path.is_file())


def test_every_kind_is_described_here():
    assert set(LIKE_THE_REAL_ONE) == set(BUILDERS)
    assert set(KINDS) == {*BUILDERS, "gte-remote"}


@every_kind
def test_classes_pooling_and_modules_are_those_of_the_real_encoder(kind: str, opened: Opened):
    encoder = opened(kind)
    model, pooling, modules = LIKE_THE_REAL_ONE[kind]
    assert type(encoder[0].model).__name__ == model
    assert [type(module).__name__ for module in encoder][1:] == modules
    assert encoder[1].pooling_mode == pooling


@every_kind
def test_any_text_gets_a_finite_vector_of_length_one(kind: str, opened: Opened):
    vectors = opened(kind).encode(TEXTS, convert_to_tensor=True)
    assert vectors.shape == (len(TEXTS), WIDTH)
    torch.testing.assert_close(vectors.norm(dim=1), torch.ones(len(TEXTS)))


@every_kind
def test_padding_changes_no_vector(kind: str, opened: Opened):
    encoder = opened(kind)
    together = encoder.encode(TEXTS, convert_to_tensor=True)
    alone = torch.stack([encoder.encode(text, convert_to_tensor=True) for text in TEXTS])
    torch.testing.assert_close(together, alone, rtol=1e-5, atol=1e-5)


@every_kind
def test_different_texts_get_different_vectors(kind: str, opened: Opened):
    vectors = opened(kind).encode(TEXTS[:3], convert_to_tensor=True)
    cosines = vectors @ vectors.T
    assert (cosines[~torch.eye(3, dtype=torch.bool)] < 0.99).all()


@every_kind
def test_a_second_build_has_the_same_bytes(kind: str, tiny_folder: Callable[[str], Path], tmp_path: Path):
    again = build_tiny(kind, tmp_path / "again")
    first = tiny_folder(kind)
    names = sorted(path.relative_to(first) for path in first.rglob("*") if path.is_file())
    assert names == sorted(path.relative_to(again) for path in again.rglob("*") if path.is_file())
    for name in names:
        assert (first / name).read_bytes() == (again / name).read_bytes(), name


def test_building_leaves_the_global_generator_alone(tmp_path: Path):
    before = torch.random.get_rng_state()
    build_tiny("bert-mean", tmp_path / "tiny")
    assert torch.equal(before, torch.random.get_rng_state())


def test_there_is_no_pickle_and_no_python_except_in_the_one_that_refuses(tiny_folder: Callable[[str], Path]):
    for kind in BUILDERS:
        assert {path.suffix for path in tiny_folder(kind).rglob("*") if path.is_file()} == {
            ".json",
            ".md",
            ".safetensors",
        }


def test_the_committed_bert_is_what_the_script_makes(tiny_encoder_folder: Path, tmp_path: Path):
    fresh = build_tiny("bert-mean", tmp_path / "fresh")
    ours, theirs = load_file(tiny_encoder_folder / "model.safetensors"), load_file(fresh / "model.safetensors")
    assert ours.keys() == theirs.keys()
    assert all(torch.equal(ours[name], theirs[name]) for name in ours)
    ours, theirs = (json.loads((folder / "tokenizer.json").read_text()) for folder in (tiny_encoder_folder, fresh))
    assert ours["model"] == theirs["model"]


def test_the_committed_bert_is_under_200_kb(tiny_encoder_folder: Path):
    assert size(tiny_encoder_folder) < 200_000


@every_kind
def test_every_kind_stays_small(kind: str, tiny_folder: Callable[[str], Path]):
    assert size(tiny_folder(kind)) < 400_000


def test_gemma_sees_both_ways_and_qwen_only_back(opened: Opened):
    def moved(kind: str) -> bool:
        """Return whether the first token's state depends on the last token."""
        encoder = opened(kind)
        states = []
        for text in ("news about sports", "news about business"):
            with torch.no_grad():
                states.append(encoder[0](encoder.preprocess([text]))["token_embeddings"][0, 0])
        return not torch.equal(*states)

    assert moved("gemma3-mean")
    assert not moved("qwen3-last")


def test_qwen_ends_every_text_with_its_end_token_and_pads_on_the_left(opened: Opened):
    tokenizer = opened("qwen3-last").tokenizer
    assert tokenizer.padding_side == "left"
    assert tokenizer("news")["input_ids"][-1] == tokenizer.convert_tokens_to_ids("<|endoftext|>")


def test_prompts_are_saved_as_the_authors_save_them(tiny_folder: Callable[[str], Path]):
    def prompts(kind: str) -> dict[str, str]:
        return json.loads((tiny_folder(kind) / "config_sentence_transformers.json").read_text())["prompts"]

    assert prompts("qwen3-last")["query"].endswith("\nQuery:")
    assert prompts("gemma3-mean")["Classification"] == "task: classification | query: "


def test_the_code_of_the_remote_kind_would_fail_if_it_ran(tiny_folder: Callable[[str], Path]):
    folder = tiny_folder("gte-remote")
    assert "auto_map" in json.loads((folder / "config.json").read_text())
    with pytest.raises(RuntimeError, match="remote code ran"):
        exec((folder / "modeling.py").read_text(), {})
