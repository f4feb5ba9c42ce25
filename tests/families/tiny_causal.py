"""Tiny language models with random weights and matching tokenizers, built from code.

kind          like
qwen3         Qwen3: byte-level BPE with <|im_start|>, no chat template kept, full attention
qwen3-chat    the same with a chat template that has a system role
gemma3        Gemma 3: alternating sliding and full attention (window of 16), a start token, letters after a blank
gemma3-chat   the same with a chat template that refuses a system role
softcap       gemma3 whose logits are bounded after the head, in the whole model only
qwen2, llama  the tokenizer of qwen3 with those architectures
letters       qwen3 with a tokenizer of five letters: too few symbols, no yes and no
"""

import functools
import json
import tempfile
from pathlib import Path

import torch
from tokenizers import AddedToken, Tokenizer, decoders, models, normalizers, pre_tokenizers, processors
from transformers import (
    Gemma3ForCausalLM,
    Gemma3TextConfig,
    LlamaConfig,
    LlamaForCausalLM,
    PreTrainedModel,
    PreTrainedTokenizerBase,
    PreTrainedTokenizerFast,
    Qwen2Config,
    Qwen2ForCausalLM,
    Qwen3Config,
    Qwen3ForCausalLM,
)

from labelspace.seeds import child_seed
from leftovers import SHARED

WIDTH = 32
HEADS = 2
WINDOW = 16
MAX_TOKENS = 1024

KINDS = ("qwen3", "qwen3-chat", "gemma3", "gemma3-chat", "softcap", "qwen2", "llama", "letters")

UPPER = "ABCDEFGHIJKLMNOPQRSTUVWXYZ"
COMMON = """
yes no the text is about this match was won late law passed a sports politics music letter option answer correct
options instruct query document judge whether
"""
WORDS = COMMON.split()

CHAT = """\
{%- for message in messages %}<|im_start|>{{ message.role }}
{{ message.content }}<|im_end|>
{% endfor %}{% if add_generation_prompt %}<|im_start|>assistant
{% if enable_thinking is defined and not enable_thinking %}<think>

</think>

{% endif %}{% endif %}"""

CHAT_WITHOUT_SYSTEM = """\
{{ bos_token }}{%- for message in messages %}\
{%- if message.role == 'system' %}{{ raise_exception('System role not supported') }}{% endif %}<turn>{{ message.role }}
{{ message.content | trim }}<end>
{% endfor %}{% if add_generation_prompt %}<turn>model
{% endif %}"""


@functools.cache
def tiny_causal(kind: str) -> Path:
    """Return the folder of a tiny language model, built once per process; do not write into it."""
    scratch = tempfile.TemporaryDirectory(prefix="tiny-causal-")
    SHARED.append(scratch)
    return build_tiny_causal(kind, Path(scratch.name) / kind)


def build_tiny_causal(kind: str, folder: Path, **changes: object) -> Path:
    """Write the tiny language model of this kind into `folder` and return the folder.

    Args:
        kind: one of `KINDS`.
        folder: target folder, created if missing.
        changes: values that replace those of the model's configuration.
    """
    tokenizer = _tokenizer(kind)
    model = _model(kind, len(tokenizer), changes)
    with torch.no_grad():
        for name, weight in model.named_parameters():
            if weight.ndim == 2:
                generator = torch.Generator().manual_seed(child_seed(0, "tiny", name))
                weight.copy_(torch.randn(weight.shape, generator=generator) * 0.3)
    model.save_pretrained(folder)
    tokenizer.save_pretrained(folder)
    return folder


def write_gguf(folder: Path, file: Path) -> Path:
    """Write the tiny Qwen3 in `folder` as a GGUF file of float32 numbers; its heads must be 128 wide, as GGUF assumes.

    Args:
        folder: from `build_tiny_causal("qwen3", ..., head_dim=128)`.
        file: the file to write.
    """
    import gguf

    model = Qwen3ForCausalLM.from_pretrained(folder)
    config = model.config
    words = json.loads((folder / "tokenizer.json").read_text(encoding="utf-8"))["model"]
    tokens = sorted(words["vocab"], key=words["vocab"].__getitem__)
    writer = gguf.GGUFWriter(file, "qwen3")
    writer.add_context_length(config.max_position_embeddings)
    writer.add_block_count(config.num_hidden_layers)
    writer.add_feed_forward_length(config.intermediate_size)
    writer.add_embedding_length(config.hidden_size)
    writer.add_head_count(config.num_attention_heads)
    writer.add_head_count_kv(config.num_key_value_heads)
    writer.add_layer_norm_rms_eps(config.rms_norm_eps)
    writer.add_rope_freq_base(config.rope_parameters["rope_theta"])
    writer.add_vocab_size(config.vocab_size)
    writer.add_tokenizer_model("gpt2")
    writer.add_tokenizer_pre("qwen2")
    writer.add_token_list(tokens)
    writer.add_token_types([3 if token.startswith("<|") else 1 for token in tokens])  # 3: control, 1: normal
    writer.add_token_merges([" ".join(pair) for pair in words["merges"]])
    writer.add_eos_token_id(config.eos_token_id)
    writer.add_pad_token_id(config.pad_token_id)
    names = gguf.get_tensor_name_map(gguf.MODEL_ARCH.QWEN3, config.num_hidden_layers)
    for name, weight in model.state_dict().items():
        if name != "lm_head.weight":  # the embedding's
            writer.add_tensor(names.get_name(name, try_suffixes=(".weight",)), weight.numpy())
    writer.write_header_to_file()
    writer.write_kv_data_to_file()
    writer.write_tensors_to_file()
    writer.close()
    return file


def _model(kind: str, words: int, changes: dict[str, object]) -> PreTrainedModel:
    common = {
        "vocab_size": words,
        "hidden_size": WIDTH,
        "num_attention_heads": HEADS,
        "num_key_value_heads": 1,
        "head_dim": WIDTH // HEADS,
        "intermediate_size": 2 * WIDTH,
        "max_position_embeddings": MAX_TOKENS,
        "tie_word_embeddings": True,
        "pad_token_id": 0,
        "eos_token_id": 1,
    }
    with torch.random.fork_rng(devices=[]):  # the library's own initialisation would change the global generator
        if kind.startswith(("qwen3", "letters")):
            return Qwen3ForCausalLM(Qwen3Config(**{"num_hidden_layers": 2, **common, **changes})).eval()
        if kind == "qwen2":
            return Qwen2ForCausalLM(Qwen2Config(**{"num_hidden_layers": 2, **common, **changes})).eval()
        if kind == "llama":
            return LlamaForCausalLM(LlamaConfig(**{"num_hidden_layers": 2, **common, **changes})).eval()
        gemma = {
            "num_hidden_layers": 3,
            "layer_types": ["sliding_attention", "full_attention", "sliding_attention"],
            "sliding_window": WINDOW,
            "query_pre_attn_scalar": WIDTH // HEADS,
            "bos_token_id": 2,
            "final_logit_softcapping": 2.0 if kind == "softcap" else None,
        }
        return Gemma3ForCausalLM(Gemma3TextConfig(**{**gemma, **common, **changes})).eval()


def _tokenizer(kind: str) -> PreTrainedTokenizerBase:
    if kind == "letters":
        return _five_letters()
    return _byte_level(kind) if kind.startswith(("qwen", "llama")) else _with_blanks(kind)


def _grow(words: list[str], tokens: dict[str, None]) -> list[tuple[str, str]]:
    """Add each word to the tokens, letter by letter, and return the merges that build it."""
    merges: dict[tuple[str, str], None] = {}
    for word in words:
        left = word[0]
        for letter in word[1:]:
            merges[(left, letter)] = None
            left += letter
            tokens[left] = None
    return list(merges)


def _byte_level(kind: str) -> PreTrainedTokenizerBase:
    """A tokenizer for any text; a blank joins the word after it, and pairs of capitals are one token."""
    pairs = [f"\u0120{first}{second}" for first in UPPER for second in UPPER]
    words = [f"\u0120{letter}" for letter in UPPER + UPPER.lower()] + pairs
    words += [f"\u0120{word}" for word in WORDS] + ["yes", "no"]
    tokens = dict.fromkeys(sorted(pre_tokenizers.ByteLevel.alphabet()))
    merges = _grow(words, tokens)
    specials = ["<|endoftext|>", "<|im_end|>", "<|im_start|>"]
    vocabulary = {token: index for index, token in enumerate([*specials, *tokens])}
    backend = Tokenizer(models.BPE(vocab=vocabulary, merges=merges))
    backend.normalizer = normalizers.NFC()
    backend.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    backend.decoder = decoders.ByteLevel()
    tokenizer = PreTrainedTokenizerFast(
        tokenizer_object=backend,
        pad_token="<|endoftext|>",
        eos_token="<|im_end|>",
        padding_side="left",
        model_max_length=MAX_TOKENS,
        model_input_names=["input_ids", "attention_mask"],
        additional_special_tokens=["<|im_start|>"],
    )
    tokenizer.chat_template = CHAT if kind == "qwen3-chat" else None
    return tokenizer


def _with_blanks(kind: str) -> PreTrainedTokenizerBase:
    """A tokenizer with blanks as text, unknown characters as bytes, and a start token."""
    blank = "\u2581"
    tokens = dict.fromkeys([f"<0x{byte:02X}>" for byte in range(256)])
    letters = UPPER + UPPER.lower() + "0123456789" + "".join(map(chr, range(0x391, 0x3CA))) + ".,:;()<>!?\"'"
    tokens.update(dict.fromkeys([blank, "\n", *letters]))
    words = [f"{blank}{letter}" for letter in letters] + [f"{blank}{word}" for word in WORDS] + ["yes", "no"]
    merges = _grow(words, tokens)
    specials = ["<pad>", "<eos>", "<bos>", "<unk>", "<turn>", "<end>"]
    vocabulary = {token: index for index, token in enumerate([*specials, *tokens])}
    backend = Tokenizer(models.BPE(vocab=vocabulary, merges=merges, unk_token="<unk>", byte_fallback=True))
    backend.normalizer = normalizers.Replace(" ", blank)
    backend.decoder = decoders.Sequence([decoders.Replace(blank, " "), decoders.ByteFallback(), decoders.Fuse()])
    backend.add_special_tokens([AddedToken(token, normalized=False) for token in specials])
    backend.post_processor = processors.TemplateProcessing(
        single="<bos> $A", pair="<bos> $A $B:1", special_tokens=[("<bos>", vocabulary["<bos>"])]
    )
    tokenizer = PreTrainedTokenizerFast(
        tokenizer_object=backend,
        pad_token="<pad>",
        eos_token="<eos>",
        bos_token="<bos>",
        unk_token="<unk>",
        model_max_length=MAX_TOKENS,
        model_input_names=["input_ids", "attention_mask"],
        additional_special_tokens=["<turn>", "<end>"],
    )
    tokenizer.chat_template = CHAT_WITHOUT_SYSTEM if kind == "gemma3-chat" else None
    return tokenizer


def _five_letters() -> PreTrainedTokenizerBase:
    """A tokenizer whose only words are A to E."""
    vocabulary = {token: index for index, token in enumerate(["<pad>", "<eos>", "<unk>", "letter", *"ABCDE"])}
    backend = Tokenizer(models.WordLevel(vocab=vocabulary, unk_token="<unk>"))
    backend.pre_tokenizer = pre_tokenizers.Whitespace()
    return PreTrainedTokenizerFast(
        tokenizer_object=backend,
        pad_token="<pad>",
        eos_token="<eos>",
        unk_token="<unk>",
        model_max_length=MAX_TOKENS,
        model_input_names=["input_ids", "attention_mask"],
    )
