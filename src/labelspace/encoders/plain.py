"""A sentence-transformers folder read with torch and a tokenizer alone, where its parts are the plain ones.

sentence-transformers and transformers take seconds to import. A folder of transformer, pooling and normalisation, with
a tokenizer that transformers takes as it is, says in its files all that inference needs.
"""

import json
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, Self, final

import torch
from safetensors import SafetensorError, safe_open
from tokenizers import Tokenizer
from torch import Tensor

from labelspace.encoders.opening import NO_LIMIT, TOKENIZING
from labelspace.encoders.packed import POOLINGS, PackedTransformer, read_by, runs
from labelspace.errors import EncoderError

WEIGHTS = "model.safetensors"

# What sentence-transformers writes for one file of weights, a transformer without code of its own.
_FILES = ("modules.json", "config.json", "tokenizer.json", "tokenizer_config.json", WEIGHTS)

# transformers' classes that take tokenizer.json as it is, and what may stand beside it without changing a token.
_AS_IT_IS = ("TokenizersBackend", "PreTrainedTokenizerFast")
_SPECIAL = ("bos_token", "cls_token", "eos_token", "mask_token", "pad_token", "sep_token", "unk_token")
_HARMLESS = {"backend", "clean_up_tokenization_spaces", "is_local", "local_files_only", "model_input_names"}
_HARMLESS |= {"model_max_length", "padding_side", "tokenizer_class", "truncation_side"}

# Files of older folders. transformers adds the tokens that they name and tokenizer.json lacks.
_ADDED, _SPECIAL_MAP = "added_tokens.json", "special_tokens_map.json"

# Classes that build words and their pieces anew.
_TOKENIZERS = {"bert": ("BertTokenizer", "BertTokenizerFast"), "mpnet": ("MPNetTokenizer", "MPNetTokenizerFast")}

# Settings in tokenizer_config.json, and in tokenizer.json.
_NORMALIZER = {
    "do_lower_case": "lowercase",
    "strip_accents": "strip_accents",
    "tokenize_chinese_chars": "handle_chinese_chars",
}

# sentence-transformers' names of poolings, and the switches that it wrote before version 6.
_POOLED = {own: name for name, own in POOLINGS.items()}
_SWITCHES = {"pooling_mode_mean_tokens": "mean", "pooling_mode_cls_token": "cls", "pooling_mode_lasttoken": "last"}


@final
class PlainFolder:
    """What inference needs of a sentence-transformers folder; `read` finds out whether it is that plain."""

    def __init__(self, folder: Path, pooling: str | None, max_tokens: int | None) -> None:
        self.folder = folder
        self._signature = self._sign()
        self.config = _read(folder / "config.json")
        own_pooling = _only_pooling(folder)
        self.pooling = pooling or own_pooling
        told = _read(folder / "tokenizer_config.json")
        self._tokenizer = _open_tokenizer(folder, self.config["model_type"], told)
        # Older folders do not name it; then it is the one of BERT or of RoBERTa.
        unknown = [_content(told["unk_token"])] if told.get("unk_token") else ["[UNK]", "<unk>"]
        found = [self._tokenizer.token_to_id(name) for name in unknown]
        self.unknown_id = next((each for each in found if each is not None), None)
        positions = int(self.config["max_position_embeddings"])
        if self.config["model_type"] != "bert":
            positions -= 2  # counted after the padding index
        self.max_tokens = _window(folder, told, positions) if max_tokens is None else max_tokens
        own = folder / "config_sentence_transformers.json"
        prompts = _read(own) if own.is_file() else {}
        self.prompts: dict[str, str | None] = prompts.get("prompts") or {}
        self.default_prompt: str | None = prompts.get("default_prompt_name")
        with safe_open(folder / WEIGHTS, framework="pt") as file:
            names = read_by(file.keys())
            plain = runs(self.config, names) and all(file.get_slice(name).get_dtype() == "F32" for name in names)
        if not plain or "auto_map" in self.config or not 2 < self.max_tokens <= positions:
            raise _not_plain()

    @classmethod
    def read(cls, folder: str, *, pooling: str | None, max_tokens: int | None) -> Self | None:
        """Read a folder; None if it is not plain, not whole, or no folder.

        Args:
            folder: its path.
            pooling: as for `Encoder`.
            max_tokens: as for `Encoder`.
        """
        try:
            return cls(Path(folder), pooling, max_tokens)
        except (EncoderError, OSError, ValueError, KeyError, TypeError, AttributeError, SafetensorError):
            return None  # sentence-transformers opens it, or says what is wrong

    @property
    def dimension(self) -> int:
        """Width of a vector."""
        return int(self.config["hidden_size"])

    def weights(self) -> dict[str, Tensor]:
        """Read the weights that decide the vectors.

        Raises:
            EncoderError: the folder has changed since it was opened, or is gone.
        """
        self.check_unchanged()
        with safe_open(self.folder / WEIGHTS, framework="pt") as file:
            return {name: file.get_tensor(name) for name in read_by(file.keys())}

    def transformer(self, dtype: torch.dtype) -> PackedTransformer:
        """Return the transformer for inference."""
        return PackedTransformer(self.config, self.weights(), pooling=self.pooling, dtype=dtype)

    def check_unchanged(self) -> None:
        """Raise EncoderError if the folder has changed since it was opened, or is gone."""
        try:
            same = self._sign() == self._signature
        except OSError:
            same = False
        if not same:
            raise EncoderError(
                f"the folder {self.folder} has changed or moved since it was opened; put it back, or open it again."
            )

    def _sign(self) -> list[tuple[int, int, int]]:
        older = [self.folder / name for name in (_ADDED, _SPECIAL_MAP)]
        told = [(self.folder / name).stat() for name in _FILES]
        told += [file.stat() for file in older if file.is_file()]
        return [(file.st_ino, file.st_size, file.st_mtime_ns) for file in told]

    def tokenize(self, texts: Sequence[str], *, truncate: bool = True) -> list[list[int]]:
        """Turn texts into token ids with special tokens, truncated to `max_tokens` unless `truncate` is False."""
        with TOKENIZING:
            if truncate:
                self._tokenizer.enable_truncation(self.max_tokens)
            else:
                self._tokenizer.no_truncation()
            return [found.ids for found in self._tokenizer.encode_batch(list(texts))]

    def __deepcopy__(self, memo: dict[int, Any]) -> Self:
        return self  # it never changes


def _not_plain() -> EncoderError:
    return EncoderError("the folder is not plain; open it with sentence-transformers.")


def _read(path: Path) -> dict[str, Any]:
    return json.loads(path.read_text(encoding="utf-8"))


def _only_pooling(folder: Path) -> str:
    """Return the pooling of a folder of transformer, pooling and, perhaps, normalisation."""
    modules: Any = _read(folder / "modules.json")
    kinds = [module["type"].rpartition(".") for module in modules]
    if any(not package.startswith("sentence_transformers.") for package, _, _ in kinds):
        raise _not_plain()
    names = [name for _, _, name in kinds]
    if names[:2] != ["Transformer", "Pooling"] or set(names[2:]) - {"Normalize"} or modules[0]["path"]:
        raise _not_plain()
    told = _read(folder / modules[1]["path"] / "config.json")
    if not told.get("include_prompt", True):
        raise _not_plain()
    if "pooling_mode" in told:
        return _POOLED[told["pooling_mode"]]
    chosen = [name for name, on in told.items() if name.startswith("pooling_mode_") and on]
    if len(chosen) != 1:
        raise _not_plain()
    return _SWITCHES[chosen[0]]


def _open_tokenizer(folder: Path, kind: str, told: Mapping[str, Any]) -> Tokenizer:
    """Open a tokenizer whose two files agree, and that cuts texts on the right."""
    inside = _read(folder / "tokenizer.json")
    sides = {told.get("truncation_side", "right"), (inside["truncation"] or {}).get("direction", "Right").lower()}
    as_it_is = told["tokenizer_class"] in _AS_IT_IS
    agree = _is_taken_as_it_is(told, inside) if as_it_is else _is_of_words(told, inside, kind)
    if sides != {"right"} or not agree or not set(_named_beside(folder)) <= _known(inside):
        raise _not_plain()
    try:
        tokenizer = Tokenizer.from_file(str(folder / "tokenizer.json"))
    except Exception as error:  # all that tokenizers raises
        raise _not_plain() from error
    tokenizer.no_padding()
    return tokenizer


def _known(inside: Mapping[str, Any]) -> set[str]:
    """Return the added tokens of tokenizer.json, special ones among them."""
    return {token["content"] for token in inside["added_tokens"]}


def _named_beside(folder: Path) -> Iterator[str]:
    """Yield the tokens that the older files beside tokenizer.json name."""
    added, special = folder / _ADDED, folder / _SPECIAL_MAP
    if added.is_file():
        yield from _read(added)
    for value in _read(special).values() if special.is_file() else ():
        for token in value if isinstance(value, list) else [value]:
            yield _content(token)


def _content(token: Any) -> str:
    return token["content"] if isinstance(token, dict) else token


def _is_taken_as_it_is(told: Mapping[str, Any], inside: Mapping[str, Any]) -> bool:
    """Return whether transformers takes tokenizer.json as it is."""
    special = {told[name] for name in _SPECIAL if told.get(name)}
    return told.keys() <= {*_HARMLESS, *_SPECIAL} and special <= _known(inside) and bool(inside["post_processor"])


def _is_of_words(told: Mapping[str, Any], inside: Mapping[str, Any], kind: str) -> bool:
    """Return whether transformers makes what tokenizer.json has: words of the model type `kind`, and their pieces."""
    normalizer = inside["normalizer"]
    kinds = (normalizer["type"], inside["pre_tokenizer"]["type"], inside["model"]["type"])
    return (
        told["tokenizer_class"] in _TOKENIZERS[kind]
        and kinds == ("BertNormalizer", "BertPreTokenizer", "WordPiece")
        and all(normalizer[own] == told.get(name, normalizer[own]) for name, own in _NORMALIZER.items())
    )


def _window(folder: Path, told: Mapping[str, Any], positions: int) -> int:
    """Return the longest input in tokens, as sentence-transformers finds it."""
    own = folder / "sentence_bert_config.json"
    settings = _read(own) if own.is_file() else {}
    if settings.get("do_lower_case"):
        raise _not_plain()
    limit = settings.get("max_seq_length") or told.get("model_max_length") or NO_LIMIT
    return min(int(limit), positions)
