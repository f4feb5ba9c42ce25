"""Tiny cross-encoders built from code: real architectures, random weights, tokenizers of the real classes.

They have two layers of width 32 and one generator per tensor. The weights have a large spread, because the logits of a
freshly initialised model hardly depend on its input.

    kind          like                               a pair is
    bert          bert-large-uncased-nli, ms-marco   [CLS] a [SEP] b [SEP]        types 0, 1
    deberta-v3    deberta-v3-large-zeroshot          [CLS] a [SEP] b [SEP]        types 0, 1
    modernbert    modernbert-large-nli               [CLS] a [SEP] b [SEP]        no types
    bart          bart-large-mnli                    <s> a </s></s> b </s>        no types
    roberta       roberta-large-mnli                 <s> a </s></s> b </s>        no types
    xlm-roberta   bge-reranker-v2-m3                 <s> a </s></s> b </s>        no types
    qwen3         a decoder that classifies by its   a b                          no types, padded on the left
                  last token
"""

import json
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from tokenizers import processors
from transformers import (
    AutoModelForSequenceClassification,
    AutoTokenizer,
    BartConfig,
    BartForSequenceClassification,
    BartTokenizer,
    BertConfig,
    BertForSequenceClassification,
    BertTokenizer,
    DebertaV2Config,
    DebertaV2ForSequenceClassification,
    DebertaV2Tokenizer,
    ModernBertConfig,
    ModernBertForSequenceClassification,
    PreTrainedModel,
    PreTrainedTokenizerBase,
    PreTrainedTokenizerFast,
    Qwen3Config,
    Qwen3ForSequenceClassification,
    RobertaConfig,
    RobertaForSequenceClassification,
    RobertaTokenizer,
    XLMRobertaConfig,
    XLMRobertaForSequenceClassification,
    XLMRobertaTokenizer,
)

from labelspace.seeds import child_seed
from tiny_models import (
    HEADS,
    INNER,
    LAYERS,
    LETTERS,
    MAX_TOKENS,
    PUNCTUATION,
    SIZES,
    WIDTH,
    WORDS,
    byte_level,
    byte_pairs,
)

NLI = {0: "entailment", 1: "neutral", 2: "contradiction"}

Parts = tuple[PreTrainedModel, PreTrainedTokenizerBase]


def build_pairs(kind: str, folder: Path, id2label: dict[int, str] | None = None, *, max_tokens: int = 64) -> Path:
    """Write the tiny cross-encoder of this kind, one class for each name (NLI's three by default)."""
    names = NLI if id2label is None else id2label
    labels = {"id2label": names, "label2id": {name: index for index, name in names.items()}}
    with torch.random.fork_rng(devices=[]):  # the library's own initialisation would change the global generator
        model, tokenizer = BUILDERS[kind](labels)
    _fill(model.eval(), kind)
    model.save_pretrained(folder)
    tokenizer.model_max_length = max_tokens
    tokenizer.save_pretrained(folder)
    return folder


def change_config(folder: Path, **values: object) -> Path:
    """Change values in the folder's `config.json`."""
    path = folder / "config.json"
    path.write_text(json.dumps({**json.loads(path.read_text(encoding="utf-8")), **values}), encoding="utf-8")
    return folder


def plain_scores(folder: Path, texts: Sequence[str], labels: Sequence[str]) -> NDArray[np.float32]:
    """Return the logits [text label class], float32, of one pair at a time, joined by the tokenizer."""
    model = AutoModelForSequenceClassification.from_pretrained(folder, dtype=torch.float32).eval()
    tokenizer = AutoTokenizer.from_pretrained(folder)
    rows = []
    with torch.inference_mode():
        for text in texts:
            for label in labels:
                pair = tokenizer(text, label, truncation="only_first", return_tensors="pt")
                rows.append(model(**pair).logits[0].tolist())
    return np.array(rows, dtype=np.float32).reshape(len(texts), len(labels), -1)


def _fill(model: PreTrainedModel, kind: str) -> None:
    with torch.no_grad():
        for key, weight in model.named_parameters():
            if weight.ndim < 2:
                continue
            generator = torch.Generator().manual_seed(child_seed(0, "tiny pairs", kind, key))
            scale = 0.5 if "embed" in key or "classifier" in key or "score" in key else 0.25
            weight.copy_((torch.rand(weight.shape, generator=generator) * 2 - 1) * scale)


def _pieces(specials: list[str]) -> dict[str, int]:
    signs = [*PUNCTUATION, *LETTERS, *(f"##{letter}" for letter in LETTERS)]
    return {token: index for index, token in enumerate(dict.fromkeys([*specials, *signs, *WORDS]))}


def _unigrams(specials: list[str]) -> list[tuple[str, float]]:
    words = [f"\u2581{word}" for word in WORDS]
    signs = ["\u2581", *PUNCTUATION, *LETTERS]
    pieces = [*((token, 0.0) for token in specials), *((token, -4.0) for token in words)]
    return [*pieces, *((token, -8.0) for token in dict.fromkeys(signs))]


def _bert(labels: dict[str, Any]) -> Parts:
    vocabulary = _pieces(["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]"])
    config = BertConfig(vocab_size=len(vocabulary), max_position_embeddings=MAX_TOKENS, **SIZES, **labels)
    return BertForSequenceClassification(config), BertTokenizer(vocab=vocabulary)


# The settings of version 3; the configuration accepts them without listing them.
_DEBERTA_V3: dict[str, Any] = {"position_buckets": 16, "norm_rel_ebd": "layer_norm", "share_att_key": True}


def _deberta(labels: dict[str, Any]) -> Parts:
    pieces = _unigrams(["[PAD]", "[CLS]", "[SEP]", "[UNK]", "[MASK]"])
    tokenizer = DebertaV2Tokenizer(vocab=pieces, unk_id=3)
    config = DebertaV2Config(
        vocab_size=len(tokenizer),
        max_position_embeddings=MAX_TOKENS,
        relative_attention=True,
        pos_att_type=["p2c", "c2p"],
        position_biased_input=False,
        type_vocab_size=0,
        pad_token_id=0,
        **_DEBERTA_V3,
        **SIZES,
        **labels,
    )
    return DebertaV2ForSequenceClassification(config), tokenizer


def _modernbert(labels: dict[str, Any]) -> Parts:
    backend = byte_level(["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]"])
    backend.post_processor = processors.TemplateProcessing(
        single="[CLS] $A [SEP]", pair="[CLS] $A [SEP] $B [SEP]", special_tokens=[("[CLS]", 2), ("[SEP]", 3)]
    )
    tokenizer = PreTrainedTokenizerFast(
        tokenizer_object=backend,
        pad_token="[PAD]",
        unk_token="[UNK]",
        cls_token="[CLS]",
        sep_token="[SEP]",
        mask_token="[MASK]",
        model_input_names=["input_ids", "attention_mask"],
    )
    config = ModernBertConfig(
        vocab_size=len(tokenizer),
        max_position_embeddings=MAX_TOKENS,
        layer_types=["full_attention", "sliding_attention"],
        local_attention=16,
        pad_token_id=0,
        cls_token_id=2,
        bos_token_id=2,
        sep_token_id=3,
        eos_token_id=3,
        **SIZES,
        **labels,
    )
    return ModernBertForSequenceClassification(config), tokenizer


_ROBERTA_SPECIALS = ["<s>", "<pad>", "</s>", "<unk>", "<mask>"]
_ROBERTA_IDS = {"bos_token_id": 0, "pad_token_id": 1, "eos_token_id": 2}


def _roberta(labels: dict[str, Any]) -> Parts:
    vocabulary, merges = byte_pairs(_ROBERTA_SPECIALS)
    positions = MAX_TOKENS + 2  # positions start after the padding index, which is 1
    config = RobertaConfig(
        vocab_size=len(vocabulary),
        max_position_embeddings=positions,
        type_vocab_size=1,
        **SIZES,
        **_ROBERTA_IDS,
        **labels,
    )
    return RobertaForSequenceClassification(config), RobertaTokenizer(vocab=vocabulary, merges=merges)


def _xlm_roberta(labels: dict[str, Any]) -> Parts:
    tokenizer = XLMRobertaTokenizer(vocab=_unigrams(["<s>", "<pad>", "</s>", "<unk>"]))
    config = XLMRobertaConfig(
        vocab_size=len(tokenizer),
        max_position_embeddings=MAX_TOKENS + 2,
        type_vocab_size=1,
        **SIZES,
        **_ROBERTA_IDS,
        **labels,
    )
    return XLMRobertaForSequenceClassification(config), tokenizer


def _bart(labels: dict[str, Any]) -> Parts:
    vocabulary, merges = byte_pairs(_ROBERTA_SPECIALS)
    config = BartConfig(
        vocab_size=len(vocabulary),
        max_position_embeddings=MAX_TOKENS,
        d_model=WIDTH,
        encoder_layers=LAYERS,
        decoder_layers=LAYERS,
        encoder_attention_heads=HEADS,
        decoder_attention_heads=HEADS,
        encoder_ffn_dim=INNER,
        decoder_ffn_dim=INNER,
        decoder_start_token_id=2,
        forced_eos_token_id=None,
        **_ROBERTA_IDS,
        **labels,
    )
    return BartForSequenceClassification(config), BartTokenizer(vocab=vocabulary, merges=merges)


def _qwen3(labels: dict[str, Any]) -> Parts:
    tokenizer = PreTrainedTokenizerFast(
        tokenizer_object=byte_level(["<|endoftext|>", "<|im_end|>"]),
        pad_token="<|endoftext|>",
        eos_token="<|im_end|>",
        padding_side="left",
        model_input_names=["input_ids", "attention_mask"],
    )
    config = Qwen3Config(
        vocab_size=len(tokenizer),
        num_key_value_heads=1,
        head_dim=WIDTH // HEADS,
        max_position_embeddings=MAX_TOKENS,
        bos_token_id=0,
        eos_token_id=1,
        pad_token_id=None,  # as in published folders, only the tokenizer has it
        **SIZES,
        **labels,
    )
    return Qwen3ForSequenceClassification(config), tokenizer


BUILDERS: dict[str, Callable[[dict[str, Any]], Parts]] = {
    "bert": _bert,
    "deberta-v3": _deberta,
    "modernbert": _modernbert,
    "bart": _bart,
    "roberta": _roberta,
    "xlm-roberta": _xlm_roberta,
    "qwen3": _qwen3,
}
KINDS = tuple(BUILDERS)
