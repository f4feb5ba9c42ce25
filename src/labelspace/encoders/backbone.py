"""The only file that imports sentence-transformers: load, tokenize, run, save.

Callers see texts as lists of token ids, and embeddings as float32 tensors of unit length.
"""

import copy
import json
import os
from collections.abc import Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager
from pathlib import Path
from typing import Any, Self, final

import torch
from jaxtyping import Bool, Float, Int
from safetensors import safe_open
from sentence_transformers import SentenceTransformer
from sentence_transformers.sentence_transformer.modules import Normalize, Pooling
from torch import Tensor, nn
from torch.nn import functional as F

from labelspace.encoders.batching import TokenBatch, pad
from labelspace.encoders.graph import Graph
from labelspace.encoders.opening import NO_LIMIT, TOKENIZING, opening, padded_table, quiet_loading
from labelspace.encoders.packed import POOLINGS, PackedTransformer, read_by, runs
from labelspace.encoders.undocumented import attention_for_training, quiet_tokenizer
from labelspace.errors import EncoderError


@final
class Backbone:
    """A sentence-transformers model: token ids in, unit vectors out.

    The weights are always float32. Inference on a CPU runs a packed copy of a transformer of the BERT family; others
    run as they are, in bfloat16 a cast copy. Copies are made once and dropped when the weights change, also where a
    training loop of the caller's changes them. Training in bfloat16 uses autocast. Pooling and later modules always
    run in float32.
    """

    def __init__(self, model: SentenceTransformer, *, dtype: torch.dtype, device: torch.device) -> None:
        self.model = model.to(device)
        # The unused model card refers back to the model; that cycle would hold the weights until garbage collection.
        self.model.model_card_data.model = None
        self.dtype = dtype
        self.device = device
        self._low_precision: nn.Module | None = None
        self._packed: PackedTransformer | None = None
        self._table = padded_table(self.transformer.model)
        self._trained, self._seen = False, self._sample()

    @classmethod
    def load(
        cls,
        path: str,
        *,
        dtype: torch.dtype,
        device: torch.device,
        pooling: str | None = None,
        max_tokens: int | None = None,
        trust_remote_code: bool = False,
        packed: PackedTransformer | None = None,
    ) -> Self:
        """Open a sentence-transformers folder; weights are read from safetensors only.

        `packed` is a packed copy of the same weights, if there is one.
        """
        with opening(path, "sentence-transformers model"):
            model = SentenceTransformer(
                path,
                device=str(device),
                trust_remote_code=trust_remote_code,
                local_files_only=not trust_remote_code,
                model_kwargs={"use_safetensors": True, "dtype": torch.float32},
            )
        if not isinstance(getattr(model[0], "model", None), nn.Module):
            raise EncoderError(
                f"{path} is no encoder for labelspace: its first module is {type(model[0]).__name__}, and it must be a "
                "transformer; choose another encoder."
            )
        backbone = cls(model, dtype=dtype, device=device)
        backbone._zero_missing_pooler(path)
        if pooling is not None:
            backbone._set_pooling(pooling)
        if max_tokens is not None:
            backbone._set_max_tokens(max_tokens)
        if os.name == "nt":  # the weights are in the mapped file, and Windows neither moves nor removes one
            for tensor in (*model.parameters(), *model.buffers()):
                tensor.data = tensor.data.clone()
        model.eval()
        backbone._seen, backbone._packed = backbone._sample(), packed
        return backbone

    @property
    def trained(self) -> bool:
        """Whether the weights may differ from those it was opened with."""
        self._notice_changes()
        return self._trained

    @trained.setter
    def trained(self, trained: bool) -> None:
        self._notice_changes()
        self._trained = trained

    def _sample(self) -> Tensor:
        """One number of each weight: any training moves most of them. To hash all would take longer than a text."""
        weights = [weight.detach() for weight in self.model.parameters() if weight.numel()]
        return torch.stack([weight[tuple(size // 2 for size in weight.shape)] for weight in weights]).cpu()

    def _notice_changes(self) -> None:
        # Not by torch's count of writes, which its fused optimizers do not raise.
        sample = self._sample()
        if not torch.equal(sample, self._seen):
            self.weights_changed()
            self._trained, self._seen = True, sample

    def _zero_missing_pooler(self, path: str) -> None:
        """Zero a pooler that the folder lacks: no vector reads it, but random weights would change every hash."""
        pooler = getattr(self.transformer.model, "pooler", None)
        if not isinstance(pooler, nn.Module):
            return
        names: list[str] = []
        for folder in ("", "0_Transformer"):  # the second is older
            for file in (Path(path) / folder).glob("*.safetensors"):
                with safe_open(file, framework="pt") as weights:
                    names += weights.keys()
        if names and not any("pooler." in name for name in names):
            for weight in pooler.parameters():
                nn.init.zeros_(weight)

    def _set_pooling(self, pooling: str) -> None:
        modules = list(self.model.named_children())
        for place, (name, module) in enumerate(modules):
            if not isinstance(module, Pooling):
                continue
            new = Pooling(
                module.embedding_dimension,
                pooling_mode=POOLINGS[pooling],  # pyright: ignore[reportArgumentType]
                include_prompt=module.include_prompt,
            )
            same = new.get_embedding_dimension() == module.get_embedding_dimension()
            if not same and any(not isinstance(later, Normalize) for _, later in modules[place + 1 :]):
                raise EncoderError("modules of this encoder read the vectors of its own pooling; leave pooling out.")
            setattr(self.model, name, new)
            return
        raise EncoderError("this encoder has no pooling module to replace; leave pooling out.")

    def _set_max_tokens(self, max_tokens: int) -> None:
        positions = self._positions()
        if positions is not None and max_tokens > positions:
            raise EncoderError(f"max_tokens is more than the encoder can read ({positions}). Got {max_tokens} instead.")
        self.tokenizer.model_max_length = max_tokens

    @property
    def transformer(self) -> Any:
        """The first module: sentence-transformers' wrapper around the transformers model."""
        return self.model[0]

    @property
    def tokenizer(self) -> Any:
        """The transformers tokenizer."""
        return self.transformer.tokenizer

    @property
    def unknown_id(self) -> int | None:
        """Token id of what the vocabulary lacks, if it has one."""
        return self.tokenizer.unk_token_id

    @property
    def hidden_size(self) -> int:
        """Width of a token state."""
        config = self.transformer.model.config
        return int(getattr(config, "hidden_size", None) or config.get_text_config().hidden_size)

    @property
    def dimension(self) -> int:
        """Width of an embedding."""
        return int(self.model.get_embedding_dimension() or self.hidden_size)

    @property
    def max_tokens(self) -> int:
        """Longest input in tokens; longer texts are truncated."""
        limit = int(self.tokenizer.model_max_length)
        # sentence-transformers caps it at the size of the position table, which includes positions of padding.
        return self._positions() or 512 if limit > NO_LIMIT else min(limit, self._table or limit)

    def _positions(self) -> int | None:
        """Number of token positions; None if the model sets no limit."""
        return self._table or getattr(self.transformer.model.config, "max_position_embeddings", None)

    def tokenize(self, texts: Sequence[str], *, truncate: bool = True) -> list[list[int]]:
        """Turn texts into token ids with special tokens, truncated to `max_tokens` unless `truncate` is False."""
        if not texts:
            return []
        # Keep white space, as sentence-transformers does, so that both give the same vectors.
        texts = [text.lower() for text in texts] if getattr(self.transformer, "do_lower_case", False) else list(texts)
        options = {"truncation": True, "max_length": self.max_tokens} if truncate else {"truncation": False}
        with TOKENIZING, quiet_tokenizer(self.tokenizer):
            return self.tokenizer(texts, return_attention_mask=False, return_token_type_ids=False, **options)[
                "input_ids"
            ]

    def tokenize_pairs(self, pairs: Sequence[tuple[str, str]]) -> tuple[list[list[int]], list[list[int]] | None]:
        """Turn pairs of texts into token ids, joined by the tokenizer's pair format.

        Args:
            pairs: (first, second); a pair that is too long loses tokens from its longer text.

        Returns:
            The token ids of each pair, and their token types (BERT: 0 for the first text, 1 for the second), or None
            if the tokenizer has no token types.
        """
        if not pairs:
            return [], None
        lower = getattr(self.transformer, "do_lower_case", False)
        firsts, seconds = ([text.lower() if lower else text for text in half] for half in zip(*pairs, strict=True))
        with TOKENIZING, quiet_tokenizer(self.tokenizer):
            encoded = self.tokenizer(
                firsts, seconds, truncation=True, max_length=self.max_tokens, return_attention_mask=False
            )
        return encoded["input_ids"], encoded.get("token_type_ids")

    def prompt_tokens(self, prompt: str) -> int:
        """Number of prompt tokens that pooling excludes; 0 if pooling includes the prompt, as in most encoders."""
        skips = any(isinstance(module, Pooling) and not module.include_prompt for module in self.model)
        return max(0, len(self.tokenize([prompt])[0]) - 1) if prompt and skips else 0

    def batch(self, token_ids: Sequence[Sequence[int]], positions: list[int], *, at_least: int = 1) -> TokenBatch:
        """Pad the texts at `positions` to one width, `at_least` or more, on the side this encoder expects."""
        pad_token_id = self.tokenizer.pad_token_id
        return pad(
            token_ids,
            positions,
            pad_token_id=0 if pad_token_id is None else int(pad_token_id),
            left=self.tokenizer.padding_side == "left",
            at_least=at_least,
        )

    def batch_types(
        self, token_types: Sequence[Sequence[int]], positions: list[int], *, at_least: int = 1
    ) -> Int[Tensor, "text token"]:
        """Pad token types of pairs the way `batch` pads token ids."""
        fill, left = int(getattr(self.tokenizer, "pad_token_type_id", 0)), self.tokenizer.padding_side == "left"
        return pad(token_types, positions, pad_token_id=fill, left=left, at_least=at_least).input_ids

    def embed(
        self,
        batch: TokenBatch,
        *,
        prompt_tokens: int = 0,
        token_types: Tensor | None = None,
        training: bool = False,
    ) -> Float[Tensor, "text dim"]:
        """Embed one batch as float32 unit vectors.

        Args:
            batch: from `batch`.
            prompt_tokens: number of leading tokens that pooling excludes.
            token_types: from `batch_types`, for pairs; None: all of the first type.
            training: True keeps gradients and runs bfloat16 as autocast over the float32 weights; False runs the
                bfloat16 copy of the weights.
        """
        features = self._run_transformer(batch, token_types, training)
        if prompt_tokens:
            features["prompt_length"] = prompt_tokens
        # Pooling sums many tokens; in bfloat16 that alone would cost a digit.
        with torch.autocast(self.device.type, enabled=False):
            features["token_embeddings"] = features["token_embeddings"].float()
            for module in list(self.model)[1:]:
                features = module(features)
            return F.normalize(features["sentence_embedding"].float(), dim=-1)

    def states(
        self, batch: TokenBatch, *, token_types: Tensor | None = None, training: bool = False
    ) -> tuple[Float[Tensor, "text token dim"], Bool[Tensor, "text token"]]:
        """Return the last-layer state of every token of one batch, before pooling.

        Args:
            batch: from `batch`.
            token_types: from `batch_types`, for pairs; None: all of the first type.
            training: True for gradients, as in `embed`.

        Returns:
            The states, [text token dim] in float32 with `dim` equal to `hidden_size`, and a mask that is True at
            tokens, special tokens included. States at padding are meaningless.
        """
        features = self._run_transformer(batch, token_types, training)
        return features["token_embeddings"].float(), batch.attention_mask.to(self.device).bool()

    def _run_transformer(self, batch: TokenBatch, token_types: Tensor | None, training: bool) -> dict[str, Any]:
        features: dict[str, Any] = {
            "input_ids": batch.input_ids.to(self.device),
            "attention_mask": batch.attention_mask.to(self.device),
        }
        if token_types is not None:
            features["token_type_ids"] = token_types.to(self.device)
        if self.dtype is torch.bfloat16 and not training:
            return self._low_precision_copy()(features)
        with self.autocast():
            return self.transformer(features)

    @contextmanager
    def training_mode(self, *, encoder_dropout: bool) -> Iterator[None]:
        """Set dropout and the fastest attention for training inside the block; restore both afterwards."""
        self.model.train(encoder_dropout)
        self.weights_changed()
        self.trained = True
        try:
            with attention_for_training(self.transformer.model, self.device):
                yield
        finally:
            self.model.eval()
            self.weights_changed()

    def autocast(self) -> AbstractContextManager[Any]:
        """Autocast for training; one context around several batches casts each weight only once."""
        return torch.autocast(self.device.type, torch.bfloat16, enabled=self.dtype is torch.bfloat16)

    def packed(self) -> PackedTransformer | None:
        """Return the copy for inference on a CPU; None if this encoder runs as it is."""
        self._notice_changes()
        packed = self._packed  # another thread may notice a change meanwhile
        if packed is None and (found := self._packable()) is not None:
            config, pooling = found
            weights = self.transformer.model.state_dict()
            self._packed = packed = PackedTransformer(config, weights, pooling=pooling, dtype=self.dtype)
        return packed

    def _packable(self) -> tuple[dict[str, Any], str] | None:
        """Return the configuration and the pooling of an encoder that can be packed."""
        model, later = self.transformer.model, list(self.model)[1:]
        known = type(model).__module__.startswith("transformers.models.") and not self.transformer.do_lower_case
        if self.device.type != "cpu" or not known or not later or not isinstance(later[0], Pooling):
            return None
        pooling = {own: name for name, own in POOLINGS.items()}.get(str(later[0].pooling_mode))
        config = model.config.to_dict()
        plain = later[0].include_prompt and all(isinstance(module, Normalize) for module in later[1:])
        return (config, pooling) if pooling and plain and runs(config, model.state_dict()) else None

    def graph(self) -> Graph:
        """Return the encoder as one module, which shares the weights; on a CPU only.

        Raises:
            EncoderError: it pools without the prompt, or lowers texts, both of which the graph would have to know.
        """
        skips = any(isinstance(module, Pooling) and not module.include_prompt for module in self.model)
        if skips or self.transformer.do_lower_case:
            raise EncoderError(
                "this encoder pools without its prompt or lowers texts itself, which other runtimes would not do; "
                "choose another encoder, or run it with torch."
            )
        inputs = ["input_ids", "attention_mask"]
        if "token_type_ids" in self.tokenizer.model_input_names:
            inputs.append("token_type_ids")
        return Graph(
            self.model,
            inputs,
            max_tokens=self.max_tokens,
            pad_token_id=int(self.tokenizer.pad_token_id or 0),
            pad_left=self.tokenizer.padding_side == "left",
        )

    def weights(self) -> dict[str, Tensor]:
        """Return the weights that decide the vectors."""
        if self._packable() is None:
            return self.model.state_dict()
        weights = self.transformer.model.state_dict()
        return {name: weights[name] for name in read_by(weights)}

    def prepare(self) -> None:
        """Create the inference copy of the weights now, so that threads sharing this encoder do not race to make it."""
        self._notice_changes()
        if self.dtype is torch.bfloat16:
            self._low_precision_copy()

    def _low_precision_copy(self) -> nn.Module:
        copied = self._low_precision  # another thread may notice a change meanwhile
        if copied is None:
            duplicate: nn.Module = copy.deepcopy(self.transformer).eval().requires_grad_(False)
            for weight in duplicate.parameters():  # not buffers: rotary frequencies need full precision
                weight.data = weight.data.to(torch.bfloat16)
            self._low_precision = copied = duplicate
        return copied

    def weights_changed(self) -> None:
        """Drop everything derived from the weights."""
        self._low_precision = self._packed = None

    def save(self, folder: Path) -> None:
        """Write a sentence-transformers folder: configs, tokenizer, safetensors."""
        with quiet_loading():
            self.model.save(str(folder), create_model_card=False, safe_serialization=True)
        _keep_window(self.transformer.model.config, folder)

    def __getstate__(self) -> dict[str, Any]:
        self._notice_changes()
        # Copies are made again where it is opened; a packed one is arranged for this processor.
        return {**self.__dict__, "_packed": None, "_low_precision": None}

    def __deepcopy__(self, memo: dict[int, Any]) -> "Backbone":
        twin = Backbone(copy.deepcopy(self.model, memo), dtype=self.dtype, device=self.device)
        twin.trained = self.trained
        return twin


def _keep_window(config: Any, folder: Path) -> None:
    """Save a window of attention that opens as the one in use.

    Before transformers 5.16, opening a Gemma 3 encoder halved its window, so a saved one opened with a quarter of it.
    """
    window, file = getattr(config, "sliding_window", None), folder / "config.json"
    if window is None or not file.is_file() or type(config).from_pretrained(folder).sliding_window == window:
        return
    saved = json.loads(file.read_text(encoding="utf-8"))
    saved["sliding_window"] = 2 * (window - 1)
    file.write_text(json.dumps(saved, indent=2, sort_keys=True) + "\n", encoding="utf-8")
