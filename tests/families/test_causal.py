"""`CausalModel`: batches, padding, shared prefixes and the short path to the logits change no number.

The reference is the whole model on one prompt at a time, with all logits and without padding or cache.
"""

import functools
import itertools
import json
from types import SimpleNamespace

import pytest
import torch

from families.tiny_causal import KINDS, WINDOW, build_tiny_causal, tiny_causal, write_gguf
from labelspace.errors import EncoderError, EncoderNotFoundError, InputError, MissingDependencyError, RemoteCodeError
from labelspace.families.causal import CausalModel
from labelspace.families.prefix_cache import lend
from labelspace.families.token_tree import takes_a_tree

MODELS = ("qwen3", "gemma3", "softcap", "qwen2", "llama")
PREFIX = list(range(40, 40 + 3 * WINDOW))  # far longer than the sliding window
CONTINUATIONS = [[9, 8, 7], [5], list(range(100, 100 + WINDOW + 5)), [9, 8, 7, 6, 5, 4], [30, 31], [9, 8, 2], [5]]


@functools.cache
def load(kind: str, **options) -> CausalModel:
    return CausalModel.load(tiny_causal(kind), **{"dtype": "float32", "device": "cpu", **options})


def one_by_one(model: CausalModel, prompts: list[list[int]]) -> torch.Tensor:
    with torch.inference_mode():
        rows = [model.model(input_ids=torch.tensor([ids]), use_cache=False).logits[0, -1] for ids in prompts]
    return torch.stack(rows).float()


def prompts_of(lengths: list[int]) -> list[list[int]]:
    return [[(7 * row + 3 * place) % 250 + 10 for place in range(length)] for row, length in enumerate(lengths)]


# ---- batches


@pytest.mark.parametrize("kind", MODELS)
def test_padding_and_batching_change_nothing(kind):
    model = load(kind)
    prompts = prompts_of([3, 40, 1, 17, 18, 60, 3])
    whole = one_by_one(model, prompts)
    for budget in (1, 64, 100_000):
        logits = model.next_token_logits(prompts, token_budget=budget)
        assert logits.dtype == torch.float32
        assert torch.allclose(logits, whole, rtol=0, atol=1e-5), budget


@pytest.mark.usefixtures("two_threads")
def test_batches_that_run_side_by_side_give_the_same():
    model = load("gemma3")
    prompts = prompts_of([5 + row % 30 for row in range(40)])
    together = model.next_token_logits(prompts, token_budget=64)
    torch.set_num_threads(1)
    # Not bit-equal: with another number of threads some processors sum in another order.
    assert torch.allclose(together, model.next_token_logits(prompts, token_budget=64), rtol=0, atol=1e-5)


@pytest.mark.parametrize("kind", MODELS)
def test_selected_columns_equal_those_of_the_full_vocabulary(kind):
    model = load(kind)
    prompts = prompts_of([4, 9])
    everything = model.next_token_logits(prompts)
    assert torch.allclose(model.next_token_logits(prompts, token_ids=[70, 3]), everything[:, [70, 3]], atol=1e-5)


def test_logits_are_float32_even_if_the_weights_are_bfloat16():
    model = load("qwen3", dtype="bfloat16")
    prompts = prompts_of([4, 9])
    logits = model.next_token_logits(prompts)
    assert model.dtype == torch.bfloat16
    assert logits.dtype == torch.float32
    exact = one_by_one(load("qwen3"), prompts)
    assert float((logits - exact).abs().max() / exact.abs().max()) < 0.05


def test_progress_is_reported_up_to_the_total():
    told = []
    load("qwen3").next_token_logits(
        prompts_of([2, 2, 5]),
        token_budget=4,
        done=7,
        total=10,
        report=lambda done, total=None, note="": told.append(done),
    )
    assert told == [8, 10]


def test_the_short_path_to_the_logits_is_taken_only_for_a_linear_head():
    assert load("qwen3")._decoder is not None
    assert load("gemma3")._decoder is not None
    assert load("softcap")._decoder is None


def test_a_model_that_cannot_pick_positions_is_read_at_each_last_token():
    model = load.__wrapped__("softcap")
    model._picks_positions = False
    prompts = prompts_of([3, 8])
    assert torch.allclose(model.next_token_logits(prompts), one_by_one(model, prompts), atol=3e-5)


# ---- prefixes


# Only a sliding window makes the length matter.
@pytest.mark.parametrize(
    ("kind", "length"),
    [(kind, 3 * WINDOW) for kind in MODELS] + [("gemma3", at) for at in (1, WINDOW - 1, WINDOW, WINDOW + 1)],
)
def test_a_cached_prefix_gives_the_logits_of_whole_prompts(kind, length, monkeypatch):
    model = load(kind)
    assert model._takes_a_tree
    prefix = PREFIX[:length]
    whole = one_by_one(model, [prefix + ids for ids in CONTINUATIONS])
    for tree, budget in itertools.product((True, False), (1, 150, 100_000)):
        monkeypatch.setattr(model, "_takes_a_tree", tree)
        logits = model.continue_from_prefix(prefix, CONTINUATIONS, token_budget=budget)
        assert torch.allclose(logits, whole, rtol=0, atol=3e-5), (tree, budget)


@pytest.mark.parametrize("kind", MODELS)
def test_the_test_above_would_notice_a_missing_prefix(kind):
    model = load(kind)
    whole = one_by_one(model, [PREFIX + ids for ids in CONTINUATIONS])
    assert not torch.allclose(one_by_one(model, CONTINUATIONS), whole, atol=1e-2)


def test_the_tiny_gemma_uses_its_sliding_window(tmp_path):
    prompts = [[*PREFIX, 9, 8, 7]]
    wide = CausalModel.load(build_tiny_causal("gemma3", tmp_path, sliding_window=512), dtype="float32", device="cpu")
    assert not torch.allclose(one_by_one(load("gemma3"), prompts), one_by_one(wide, prompts), atol=1e-2)


def test_a_prefix_returns_only_the_selected_columns():
    model = load("gemma3")
    everything = model.continue_from_prefix(PREFIX, CONTINUATIONS)
    assert torch.allclose(model.continue_from_prefix(PREFIX, CONTINUATIONS, token_ids=[70, 3]), everything[:, [70, 3]])


@pytest.mark.parametrize("kind", MODELS)
def test_a_shared_prefix_is_unchanged_afterwards(kind):
    model = load(kind)
    cache = model._run_prefix(PREFIX)
    before = [(layer.keys.clone(), layer.values.clone(), layer.get_seq_length()) for layer in cache.layers]
    with torch.inference_mode():
        lent = lend(cache, 4)
        model._last_logits(torch.full((4, 6), 9), torch.full((4,), 5), None, lent)
    for layer, (keys, values, length) in zip(cache.layers, before, strict=True):
        assert torch.equal(layer.keys, keys)
        assert torch.equal(layer.values, values)
        assert layer.get_seq_length() == length
    for layer in lent.layers:  # the rows' additions are discarded, and the prefix is still a single piece of memory
        assert layer.keys.shape[0] == 4
        assert layer.keys.stride(0) == 0


@pytest.mark.parametrize("attention", ["eager", "sdpa"])
def test_a_tree_gives_the_same_under_each_attention(attention):
    model = load.__wrapped__("gemma3")
    model.model.set_attn_implementation(attention)
    logits = CausalModel(model.model, model.tokenizer, name="gemma3").continue_from_prefix(PREFIX, CONTINUATIONS)
    whole = one_by_one(model, [PREFIX + ids for ids in CONTINUATIONS])
    assert torch.allclose(logits, whole, rtol=0, atol=3e-5)


@pytest.mark.parametrize(
    ("architecture", "attention"), [("one not looked at", "sdpa"), ("gemma3_text", "flash_attention_2")]
)
def test_a_tree_is_used_only_where_the_model_reads_its_mask(architecture, attention):
    assert takes_a_tree(SimpleNamespace(model_type="gemma3_text", _attn_implementation="sdpa"))
    assert not takes_a_tree(SimpleNamespace(model_type=architecture, _attn_implementation=attention))


def test_a_model_without_a_plain_cache_runs_on_whole_prompts(monkeypatch):
    model = load("qwen3")
    cached = model.continue_from_prefix(PREFIX, CONTINUATIONS)
    monkeypatch.setattr(CausalModel, "_run_prefix", lambda self, prefix: None)
    assert torch.allclose(model.continue_from_prefix(PREFIX, CONTINUATIONS), cached, atol=1e-5)


def test_an_empty_prompt_is_refused():
    model = load("qwen3")
    with pytest.raises(InputError, match=r"a prompt must have one token or more. Got none \(number 1\)"):
        model.next_token_logits([[3], []])
    with pytest.raises(InputError, match="a prefix must"):
        model.continue_from_prefix([], [[3]])
    with pytest.raises(InputError, match="a continuation must"):
        model.continue_from_prefix([3], [[]])


def test_no_prompts_give_no_rows():
    assert load("qwen3").next_token_logits([], token_ids=[1, 2]).shape == (0, 2)
    assert load("qwen3").encode([]) == []


# ---- strings to token ids


def test_the_start_token_comes_once_and_an_end_token_never():
    model = load("gemma3")
    start, end = model.tokenizer.bos_token_id, model.tokenizer.eos_token_id
    ids, again, part = *model.encode(["the text", "<bos>the text"]), *model.encode(["the text"], start=False)
    assert ids == again == [start, *part]
    assert end not in ids


def test_a_text_is_cut_if_its_prompt_would_be_too_long():
    model = load("gemma3")
    texts = ["was won late " * 30, "the match"]
    long, short = model.encode_within(texts, lambda text: f"<<{text}>>", 24)
    assert 22 <= len(long) <= 24
    written = model.tokenizer.decode(long, skip_special_tokens=True)
    assert written.startswith("<<was won late was")
    assert written.endswith(">>")
    assert short == model.encode(["<<the match>>"])[0]


def test_a_prompt_that_is_too_long_without_any_text_is_refused():
    with pytest.raises(
        EncoderError, match=r"too long for .* even without a text: at most 4 tokens fit\. Got 5 instead"
    ):
        load("gemma3").encode_within(["the match"], lambda text: f"<<{text}>>", 4)


@pytest.mark.parametrize("kind", ["qwen3", "gemma3"])
def test_texts_contain_no_special_token(kind):
    model = load(kind)
    tokenizer = model.tokenizer
    for token in tokenizer.all_special_tokens:
        clean = model.without_markers(f"a {token} b")
        ids = model.encode([clean], start=False)[0]
        assert not set(ids) & set(tokenizer.all_special_ids)
        assert set(model.encode([f"a {token} b"], start=False)[0]) & set(tokenizer.all_special_ids)
    assert model.without_markers("a < b, <i>|c|</i>") == "a < b, <i>|c|</i>"


def test_a_chat_has_a_system_turn_where_the_template_has_one():
    assert load("qwen3-chat").chat("Judge.", "Well?") == (
        "<|im_start|>system\nJudge.<|im_end|>\n<|im_start|>user\nWell?<|im_end|>\n"
        "<|im_start|>assistant\n<think>\n\n</think>\n\n"
    )
    assert load("gemma3-chat").chat("Judge.", "Well?") == "<bos><turn>user\nJudge.\n\nWell?<end>\n<turn>model\n"


def test_a_template_that_drops_the_system_message_gets_it_with_the_question():
    model = load.__wrapped__("qwen3-chat")
    model.tokenizer.chat_template = (
        "{% for message in messages if message.role == 'user' %}{{ message.content }}{% endfor %}"
    )
    assert model.chat("Judge.", "Well?") == "Judge.\n\nWell?"


# ---- loading


def test_a_tiny_model_of_every_kind_can_be_opened():
    for kind in KINDS:
        model = load(kind)
        assert model.parameters == sum(weight.numel() for weight in model.model.parameters())
        assert not any(weight.requires_grad for weight in model.model.parameters())


def test_a_model_without_a_head_is_no_language_model(tiny_encoder_folder):
    with pytest.raises(EncoderError, match="is no language model: it lacks"):
        CausalModel.load(tiny_encoder_folder)


def test_an_unknown_name_is_refused():
    with pytest.raises(EncoderNotFoundError, match="no encoder 'nobody/nothing'"):
        CausalModel.load("nobody/nothing", offline=True)


def test_a_pickle_is_never_opened(tmp_path):
    folder = build_tiny_causal("qwen3", tmp_path / "model")
    (folder / "model.safetensors").unlink()
    (folder / "pytorch_model.bin").write_bytes(b"\x80\x04.")
    with pytest.raises(EncoderError, match="weights as a pickle"):
        CausalModel.load(folder)


def test_a_folder_without_weights_is_refused_in_one_line(tmp_path):
    folder = build_tiny_causal("qwen3", tmp_path / "model")
    (folder / "model.safetensors").unlink()
    with pytest.raises(EncoderError, match="cannot be opened as a language model") as caught:
        CausalModel.load(folder)
    assert "\n" not in str(caught.value)


def test_truncated_weights_are_refused(tmp_path):
    folder = build_tiny_causal("qwen3", tmp_path / "model")
    weights = folder / "model.safetensors"
    weights.write_bytes(weights.read_bytes()[:-100])
    with pytest.raises(EncoderError, match="cannot be opened as a language model"):
        CausalModel.load(folder)


def test_remote_code_is_refused(tmp_path):
    folder = build_tiny_causal("qwen3", tmp_path / "model")
    config = json.loads((folder / "config.json").read_text())
    config["auto_map"] = {"AutoModelForCausalLM": "modeling.Own"}
    (folder / "config.json").write_text(json.dumps(config))
    with pytest.raises(RemoteCodeError, match=r"modeling\.Own"):
        CausalModel.load(folder)


def test_more_tokens_than_the_model_can_read_are_refused():
    with pytest.raises(EncoderError, match=r"more than the model can read \(1024\). Got 2000"):
        load("qwen3", max_tokens=2000)
    assert load("qwen3", max_tokens=100).max_tokens == 100


def test_loading_prints_nothing(capfd):
    tiny_causal("gemma3")  # writing it, where no test before this one has, shows a bar
    capfd.readouterr()
    load.__wrapped__("gemma3")
    assert capfd.readouterr() == ("", "")


# ---- GGUF


def test_a_gguf_file_is_not_requested_from_the_hub_when_offline():
    with pytest.raises(EncoderNotFoundError, match=r"no GGUF file 'a\.gguf' of 'nobody/nothing': .* not asked"):
        CausalModel.load("nobody/nothing", gguf_file="a.gguf", offline=True)


def test_a_gguf_file_needs_its_package(tmp_path, monkeypatch):
    (tmp_path / "a.gguf").write_bytes(b"GGUF")
    monkeypatch.setitem(__import__("sys").modules, "gguf", None)
    with pytest.raises(MissingDependencyError, match=r"needs the package 'gguf'.*labelspace\[bench\]"):
        CausalModel.load(tmp_path / "a.gguf")


def test_a_gguf_file_gives_the_logits_of_its_safetensors(tmp_path, capfd):
    pytest.importorskip("gguf", reason="needs the package gguf")
    pytest.importorskip("accelerate", reason="needs the package accelerate")
    folder = build_tiny_causal("qwen3", tmp_path / "model", head_dim=128)
    file = write_gguf(folder, tmp_path / "tiny.gguf")
    capfd.readouterr()
    original = CausalModel.load(folder, dtype="float32", device="cpu")
    model = CausalModel.load(tmp_path, gguf_file=file.name, dtype="float32", device="cpu")
    prompts = model.encode(["the match was won late", "we"])
    assert prompts == original.encode(["the match was won late", "we"])
    assert torch.equal(model.next_token_logits(prompts), original.next_token_logits(prompts))
    assert capfd.readouterr() == ("", "")


def test_a_damaged_gguf_file_is_refused(tmp_path):
    pytest.importorskip("gguf", reason="needs the package gguf")
    pytest.importorskip("accelerate", reason="needs the package accelerate")
    (tmp_path / "a.gguf").write_bytes(b"GGUF" + bytes(100))
    with pytest.raises(EncoderError, match="cannot be opened as a language model"):
        CausalModel.load(tmp_path / "a.gguf")
