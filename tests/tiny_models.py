"""Tiny real encoders with random weights, one of each architecture of the registry, made from code alone.

Each is a sentence-transformers folder with the model class, pooling and last modules of the real one: 2 layers, 32
wide, a vocabulary of a few hundred tokens. The weights are multiples of 1/1024, drawn from one generator per tensor,
so that the same bytes come out on every machine.

    kind             like
    bert-mean        all-MiniLM-L6-v2, e5-base-v2, e5-large-v2   (under 200 KB; committed as tests/data/tiny-bert)
    bert-cls         bge-base-en-v1.5, bge-large-en-v1.5
    modernbert-cls   gte-modernbert-base
    qwen3-last       Qwen3-Embedding-0.6B
    gemma3-mean      embeddinggemma-300m
    mpnet-mean       all-mpnet-base-v2
    unigram-mean     multilingual-e5-small: BERT with a tokenizer like XLM-R's
    gte-remote       gte-base-en-v1.5, gte-large-en-v1.5: asks for remote code, which must never run

Run `python tests/tiny_models.py` to write tests/data/tiny-bert anew.
"""

import json
import shutil
import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import torch
from sentence_transformers import SentenceTransformer
from sentence_transformers.sentence_transformer.modules import Dense, Normalize, Pooling, Transformer
from sentence_transformers.sentence_transformer.modules.pooling import PoolingMode
from tokenizers import Regex, Tokenizer, decoders, models, normalizers, pre_tokenizers, processors
from transformers import (
    BertConfig,
    BertModel,
    BertTokenizer,
    Gemma3TextConfig,
    Gemma3TextModel,
    ModernBertConfig,
    ModernBertModel,
    MPNetConfig,
    MPNetModel,
    MPNetTokenizer,
    PreTrainedModel,
    PreTrainedTokenizerBase,
    PreTrainedTokenizerFast,
    Qwen3Config,
    Qwen3Model,
)

from labelspace.seeds import child_seed

WIDTH = 32
HEADS = 2
LAYERS = 2
INNER = 64
MAX_TOKENS = 128
SIZES: dict[str, Any] = {
    "hidden_size": WIDTH,
    "num_hidden_layers": LAYERS,
    "num_attention_heads": HEADS,
    "intermediate_size": INNER,
}

COMMITTED = Path(__file__).parent / "data" / "tiny-bert"

COMMON = """
the be to of and a in that have it for not on with he as you do at this but his by from they we say her she or an
will my one all would there their what so up out if about who get which go me when make can like time no just him
know take people into year your good some could them see other than then now look only come its over think also
back after use two how our work first well way even new want because any these give day most us is are was were has
had been example news text world sports business science technology label document match team game player season
coach league win market stock company profit bank trade price economy government election minister war peace law
court police research software computer internet space phone movie film review bad great awful wonderful boring
love hate anger joy fear sad happy surprise card account payment transfer money cash help topic expresses sentiment
positive negative user wants question city country person place group number result study health water food music
book school results reports report analysis coverage focus content include including includes events news story
stories international policy political global local public national research development product products industry
financial economic performance competition professional climate security data systems service services customer
request problem help more less very much many such through between within during against before should must may
where while being been made make say says said year years day days week month life man woman children house home
family state states group groups part high low big small long short old great next last early late right left open
close start end
"""
WORDS = COMMON.split()

PUNCTUATION = "!\"#$%&'()*+,-./:;<=>?@[\\]^_`{|}~"
LETTERS = "abcdefghijklmnopqrstuvwxyz0123456789"

REMOTE_CODE = '''"""This file stands for code from a stranger: importing it fails on purpose."""

raise RuntimeError("remote code ran although nobody allowed it")
'''


Parts = tuple[PreTrainedModel, PreTrainedTokenizerBase, PoolingMode, dict[str, str]]


def build_tiny(kind: str, folder: Path) -> Path:
    """Write the tiny encoder of this kind into `folder` (made if missing) and return the folder."""
    folder = Path(folder)
    if kind == "gte-remote":
        return _build_remote(folder)
    model, tokenizer, pooling, prompts = BUILDERS[kind]()
    _fill(model, kind)
    with tempfile.TemporaryDirectory() as scratch:
        model.save_pretrained(scratch)
        tokenizer.save_pretrained(scratch)
        modules: list[torch.nn.Module] = [Transformer(scratch, max_seq_length=MAX_TOKENS)]
        modules.append(Pooling(WIDTH, pooling_mode=pooling))
        if kind == "gemma3-mean":  # two linear maps without bias, up to four times the width and back
            for index, (wide, out) in enumerate([(WIDTH, 4 * WIDTH), (4 * WIDTH, WIDTH)]):
                dense = Dense(wide, out, bias=False, activation_function=torch.nn.Identity())
                _fill(dense, f"{kind}/dense{index}")
                modules.append(dense)
        modules.append(Normalize())
        encoder = SentenceTransformer(modules=modules, device="cpu", prompts=prompts)
        encoder.save(str(folder), create_model_card=False)
    for weights in folder.rglob("*.safetensors"):
        weights.chmod(0o644)
    (folder / "README.md").write_text(
        f"A tiny encoder with random weights, kind `{kind}`, made by `tests/tiny_models.py`. It knows nothing.\n",
        encoding="utf-8",
    )
    return folder


def _fill(module: torch.nn.Module, name: str) -> None:
    """Overwrite all weights: matrices from [-1/4, 1/4], embeddings from [-1, 1], norms and biases as they start."""
    embeddings = {id(part.weight) for part in module.modules() if isinstance(part, torch.nn.Embedding)}
    with torch.no_grad():
        for key, weight in module.named_parameters():
            if weight.ndim < 2:
                continue
            generator = torch.Generator().manual_seed(child_seed(0, "tiny", name, key))
            numbers = torch.randint(-1024, 1025, weight.shape, generator=generator)
            weight.copy_(numbers / 1024 * (1.0 if id(weight) in embeddings else 0.25))


def _new(model_class: Callable[..., PreTrainedModel], config: object) -> PreTrainedModel:
    with torch.random.fork_rng(devices=[]):  # the library's own initialisation would move the global generator
        return model_class(config).eval()


def _wordpiece_vocabulary(specials: list[str]) -> dict[str, int]:
    signs = [
        *PUNCTUATION,
        *LETTERS,
        *(f"##{letter}" for letter in LETTERS),
        "##ing",
        "##ed",
        "##er",
        "##ly",
        "##es",
        "##ion",
        "##al",
    ]
    return {token: index for index, token in enumerate(dict.fromkeys([*specials, *signs, *WORDS]))}


def _bert() -> tuple[PreTrainedModel, PreTrainedTokenizerBase]:
    vocabulary = _wordpiece_vocabulary(["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]"])
    config = BertConfig(
        vocab_size=len(vocabulary),
        **SIZES,
        max_position_embeddings=MAX_TOKENS,
    )
    return _new(BertModel, config), BertTokenizer(vocab=vocabulary, model_max_length=MAX_TOKENS)


def _bert_mean() -> Parts:
    return *_bert(), "mean", {}


def _bert_cls() -> Parts:
    return *_bert(), "cls", {}


def _mpnet_mean() -> Parts:
    vocabulary = _wordpiece_vocabulary(["<s>", "<pad>", "</s>", "[UNK]", "<mask>"])
    config = MPNetConfig(
        vocab_size=len(vocabulary),
        **SIZES,
        max_position_embeddings=MAX_TOKENS + 2,  # positions start after the padding index, which is 1
        bos_token_id=0,
        pad_token_id=1,
        eos_token_id=2,
    )
    return _new(MPNetModel, config), MPNetTokenizer(vocab=vocabulary, model_max_length=MAX_TOKENS), "mean", {}


def _unigram_mean() -> Parts:
    specials = ["<s>", "<pad>", "</s>", "<unk>"]
    tokens = [
        *specials,
        "\u2581",
        *LETTERS,
        *PUNCTUATION,
        *"北京新闻体育",
        *(f"\u2581{word}" for word in WORDS),
        "<mask>",
    ]
    scores = [0.0 if token in (*specials, "<mask>") else -10 / len(token) for token in tokens]
    backend = Tokenizer(models.Unigram(list(zip(tokens, scores, strict=True)), unk_id=3))
    backend.normalizer = normalizers.Sequence([normalizers.NFKC(), normalizers.Replace(Regex(" {2,}"), " ")])
    backend.pre_tokenizer = pre_tokenizers.Metaspace("\u2581", "always")
    backend.decoder = decoders.Metaspace("\u2581", "always")
    _with_ends(backend, "<s> $A </s>", ["<s>", "</s>"])
    tokenizer = PreTrainedTokenizerFast(
        tokenizer_object=backend,
        bos_token="<s>",
        cls_token="<s>",
        eos_token="</s>",
        sep_token="</s>",
        unk_token="<unk>",
        pad_token="<pad>",
        mask_token="<mask>",
        model_max_length=MAX_TOKENS,
        model_input_names=["input_ids", "attention_mask"],
    )
    config = BertConfig(vocab_size=len(tokens), **SIZES, max_position_embeddings=MAX_TOKENS)
    return _new(BertModel, config), tokenizer, "mean", {}


def _merges(alphabet: list[str], space: str) -> tuple[list[str], list[tuple[str, str]]]:
    """Build each word, with the space before it, letter by letter: the tokens and the merges that make them."""
    tokens, merges = dict.fromkeys(alphabet), {}
    for word in WORDS:
        left = space
        for letter in word:
            merges[(left, letter)] = None
            left += letter
            tokens[left] = None
    return list(tokens), list(merges)


def byte_pairs(specials: list[str]) -> tuple[dict[str, int], list[Any]]:
    """Return a byte-level vocabulary and its merges: every byte, and every word with its space."""
    tokens, merges = _merges(sorted(pre_tokenizers.ByteLevel.alphabet()), "\u0120")
    return {token: index for index, token in enumerate([*specials, *tokens])}, merges


def byte_level(specials: list[str]) -> Tokenizer:
    """Byte-level BPE, as ModernBERT and Qwen3 have: any text becomes tokens, nothing is unknown."""
    vocabulary, merges = byte_pairs(specials)
    tokenizer = Tokenizer(models.BPE(vocab=vocabulary, merges=merges))
    tokenizer.normalizer = normalizers.NFC()
    tokenizer.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    tokenizer.decoder = decoders.ByteLevel()
    return tokenizer


def _with_ends(tokenizer: Tokenizer, single: str, specials: list[str]) -> None:
    ids = [(token, tokenizer.token_to_id(token)) for token in specials]
    tokenizer.post_processor = processors.TemplateProcessing(single=single, pair=f"{single} $B:1", special_tokens=ids)


def _modernbert_cls() -> Parts:
    specials = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]"]
    backend = byte_level(specials)
    _with_ends(backend, "[CLS] $A [SEP]", ["[CLS]", "[SEP]"])
    tokenizer = PreTrainedTokenizerFast(
        tokenizer_object=backend,
        pad_token="[PAD]",
        unk_token="[UNK]",
        cls_token="[CLS]",
        sep_token="[SEP]",
        mask_token="[MASK]",
        model_max_length=MAX_TOKENS,
        model_input_names=["input_ids", "attention_mask"],
    )
    config = ModernBertConfig(
        vocab_size=backend.get_vocab_size(),
        **SIZES,
        max_position_embeddings=MAX_TOKENS,
        layer_types=["full_attention", "sliding_attention"],
        local_attention=16,
        pad_token_id=0,
        cls_token_id=2,
        bos_token_id=2,
        sep_token_id=3,
        eos_token_id=3,
    )
    return _new(ModernBertModel, config), tokenizer, "cls", {}


def _qwen3_last() -> Parts:
    backend = byte_level(["<|endoftext|>", "<|im_end|>"])
    _with_ends(backend, "$A <|endoftext|>", ["<|endoftext|>"])
    tokenizer = PreTrainedTokenizerFast(
        tokenizer_object=backend,
        pad_token="<|endoftext|>",
        eos_token="<|im_end|>",
        padding_side="left",
        model_max_length=MAX_TOKENS,
        model_input_names=["input_ids", "attention_mask"],
    )
    config = Qwen3Config(
        vocab_size=backend.get_vocab_size(),
        **SIZES,
        num_key_value_heads=1,
        head_dim=WIDTH // HEADS,
        max_position_embeddings=MAX_TOKENS,
        tie_word_embeddings=True,
        bos_token_id=0,
        eos_token_id=0,
    )
    query = "Instruct: Given a web search query, retrieve relevant passages that answer the query\nQuery:"
    return _new(Qwen3Model, config), tokenizer, "lasttoken", {"query": query, "document": ""}


def _gemma3_mean() -> Parts:
    specials = ["<pad>", "<eos>", "<bos>", "<unk>"]
    tokens, merges = _merges([f"<0x{byte:02X}>" for byte in range(256)] + ["\u2581", *LETTERS, *PUNCTUATION], "\u2581")
    vocabulary = {token: index for index, token in enumerate([*specials, *tokens])}
    backend = Tokenizer(models.BPE(vocab=vocabulary, merges=merges, unk_token="<unk>", byte_fallback=True))
    backend.normalizer = normalizers.Replace(" ", "\u2581")
    backend.pre_tokenizer = pre_tokenizers.Split(" ", "merged_with_previous")
    backend.decoder = decoders.Sequence([decoders.Replace("\u2581", " "), decoders.ByteFallback(), decoders.Fuse()])
    _with_ends(backend, "<bos> $A <eos>", ["<bos>", "<eos>"])
    tokenizer = PreTrainedTokenizerFast(
        tokenizer_object=backend,
        pad_token="<pad>",
        eos_token="<eos>",
        bos_token="<bos>",
        unk_token="<unk>",
        model_max_length=MAX_TOKENS,
        model_input_names=["input_ids", "attention_mask"],
    )
    config = Gemma3TextConfig(
        vocab_size=backend.get_vocab_size(),
        **SIZES,
        num_key_value_heads=1,
        head_dim=WIDTH // HEADS,
        max_position_embeddings=MAX_TOKENS,
        sliding_window=16,
        query_pre_attn_scalar=WIDTH // HEADS,
        layer_types=["sliding_attention", "full_attention"],
        use_bidirectional_attention=True,
        pad_token_id=0,
        eos_token_id=1,
        bos_token_id=2,
    )
    prompts = {
        "query": "task: search result | query: ",
        "document": "title: none | text: ",
        "Classification": "task: classification | query: ",
    }
    return _new(Gemma3TextModel, config), tokenizer, "mean", prompts


BUILDERS = {
    "bert-mean": _bert_mean,
    "bert-cls": _bert_cls,
    "modernbert-cls": _modernbert_cls,
    "qwen3-last": _qwen3_last,
    "gemma3-mean": _gemma3_mean,
    "mpnet-mean": _mpnet_mean,
    "unigram-mean": _unigram_mean,
}

KINDS = (*BUILDERS, "gte-remote")


def _build_remote(folder: Path) -> Path:
    """A BERT CLS folder that says, as gte-*-en-v1.5 do, that its model class comes with a Python file."""
    build_tiny("bert-cls", folder)
    path = folder / "config.json"
    config = json.loads(path.read_text(encoding="utf-8"))
    config["model_type"] = "new"
    config["architectures"] = ["NewModel"]
    config["auto_map"] = {"AutoConfig": "configuration.NewConfig", "AutoModel": "modeling.NewModel"}
    path.write_text(json.dumps(config, indent=2) + "\n", encoding="utf-8")
    for name in ("configuration.py", "modeling.py"):
        (folder / name).write_text(REMOTE_CODE, encoding="utf-8")
    return folder


OWN_CODE = '''"""Code that an encoder brings along, and that does what it should."""

from transformers import BertConfig, BertModel


class OwnConfig(BertConfig):
    model_type = "own_bert"


class OwnModel(BertModel):
    config_class = OwnConfig
'''


def build_own_code(folder: Path) -> Path:
    """Write a BERT CLS folder whose classes are in a Python file beside it, and return the folder."""
    build_tiny("bert-cls", folder)
    path = folder / "config.json"
    config = json.loads(path.read_text(encoding="utf-8"))
    config |= {"model_type": "own_bert", "architectures": ["OwnModel"]}
    config["auto_map"] = {"AutoConfig": "own.OwnConfig", "AutoModel": "own.OwnModel"}
    path.write_text(json.dumps(config, indent=2) + "\n", encoding="utf-8")
    (folder / "own.py").write_text(OWN_CODE, encoding="utf-8")
    return folder


if __name__ == "__main__":
    shutil.rmtree(COMMITTED, ignore_errors=True)
    build_tiny("bert-mean", COMMITTED)
