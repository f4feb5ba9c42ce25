"""The one file that knows sentence-transformers: load, tokenise, run, save.

Everything above sees texts as lists of token ids and embeddings as float32 tensors of unit length.
"""

import copy
from collections.abc import Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager
from pathlib import Path
from typing import Any, Self, final

import torch
from jaxtyping import Bool, Float, Int
from sentence_transformers import SentenceTransformer
from torch import Tensor, nn
from torch.nn import functional as F

from labelspace.encoders.batching import TokenBatch, pad
from labelspace.encoders.opening import NO_LIMIT, opening, quiet_loading
from labelspace.errors import EncoderError

POOLINGS = {"mean": "mean", "cls": "cls", "last": "lasttoken"}


@final
class Backbone:
    """A sentence-transformers model seen as token ids in, unit vectors out.

    The weights are float32 always. For inference in bfloat16 a copy of the transformer's weights is made
    once and dropped when the weights change; for training bfloat16 means autocast. Pooling and whatever
    follows it run in float32 in both.
    """

    def __init__(self, model: SentenceTransformer, *, dtype: torch.dtype, device: torch.device) -> None:
        self.model = model.to(device)
        # The card, which is never written, points back at the model: weights would stay until all garbage is collected.
        self.model.model_card_data.model = None
        self.dtype = dtype
        self.device = device
        self._low_precision: nn.Module | None = None
        self._table = _padded_table(self.transformer.model)
        self.trained = False
        """Whether the weights may be others than those it was opened with."""

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
    ) -> Self:
        """Open a sentence-transformers folder, weights from safetensors only."""
        with opening(path, "sentence-transformers model"):
            model = SentenceTransformer(
                path,
                device=str(device),
                trust_remote_code=trust_remote_code,
                local_files_only=not trust_remote_code,
                model_kwargs={"use_safetensors": True, "dtype": torch.float32},
            )
        backbone = cls(model, dtype=dtype, device=device)
        if pooling is not None:
            backbone._set_pooling(pooling)
        if max_tokens is not None:
            backbone._set_max_tokens(max_tokens)
        model.eval()
        return backbone

    def _set_pooling(self, pooling: str) -> None:
        from sentence_transformers.sentence_transformer.modules import Pooling

        for name, module in self.model.named_children():
            if isinstance(module, Pooling):
                self.model._modules[name] = Pooling(self.hidden_size, pooling_mode=POOLINGS[pooling])  # pyright: ignore[reportArgumentType]
                return
        raise EncoderError("this encoder has no pooling module to replace; leave pooling out.")

    def _set_max_tokens(self, max_tokens: int) -> None:
        positions = self._positions()
        if positions is not None and max_tokens > positions:
            raise EncoderError(f"max_tokens is more than the encoder can read ({positions}). Got {max_tokens} instead.")
        self.tokenizer.model_max_length = max_tokens

    @property
    def transformer(self) -> Any:
        """The first module: sentence-transformers' wrapper of the transformers model."""
        return self.model[0]

    @property
    def tokenizer(self) -> Any:
        """The tokenizer of transformers."""
        return self.transformer.tokenizer

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
        """Tokens of a text that are read; the rest is cut off."""
        limit = int(self.tokenizer.model_max_length)
        # sentence-transformers has cut it at the number of positions already, of which some may be no token's.
        return self._positions() or 512 if limit > NO_LIMIT else min(limit, self._table or limit)

    def _positions(self) -> int | None:
        """Tokens that the model has positions for; None where it is not bound to a number."""
        return self._table or getattr(self.transformer.model.config, "max_position_embeddings", None)

    def tokenize(self, texts: Sequence[str], *, truncate: bool = True) -> list[list[int]]:
        """Turn texts into token ids, special tokens included, cut to `max_tokens` unless told not to."""
        if not texts:
            return []
        # White space stays, as in sentence-transformers: the vectors must not depend on who calls.
        texts = [text.lower() for text in texts] if getattr(self.transformer, "do_lower_case", False) else list(texts)
        options = {"truncation": True, "max_length": self.max_tokens} if truncate else {"truncation": False}
        with quiet_tokenizer(self.tokenizer):
            return self.tokenizer(texts, return_attention_mask=False, return_token_type_ids=False, **options)[
                "input_ids"
            ]

    def tokenize_pairs(self, pairs: Sequence[tuple[str, str]]) -> tuple[list[list[int]], list[list[int]] | None]:
        """Turn pairs of texts into token ids, joined as the tokenizer joins a pair.

        Args:
            pairs: (first, second); where they are too long together, the longer one is cut.

        Returns:
            The token ids of each pair, and the token types of each where the tokenizer gives them (BERT: 0 for the
            first text, 1 for the second), else None.
        """
        if not pairs:
            return [], None
        lower = getattr(self.transformer, "do_lower_case", False)
        firsts, seconds = ([text.lower() if lower else text for text in half] for half in zip(*pairs, strict=True))
        with quiet_tokenizer(self.tokenizer):
            encoded = self.tokenizer(
                firsts, seconds, truncation=True, max_length=self.max_tokens, return_attention_mask=False
            )
        return encoded["input_ids"], encoded.get("token_type_ids")

    def prompt_tokens(self, prompt: str) -> int:
        """Tokens that pooling leaves out because they are the prompt; 0 where it keeps them (most encoders)."""
        from sentence_transformers.sentence_transformer.modules import Pooling

        skips = any(isinstance(module, Pooling) and not module.include_prompt for module in self.model)
        return max(0, len(self.tokenize([prompt])[0]) - 1) if prompt and skips else 0

    def batch(self, token_ids: Sequence[Sequence[int]], positions: list[int]) -> TokenBatch:
        """Pad some of the texts to one width, on the side this encoder wants."""
        pad_token_id = self.tokenizer.pad_token_id
        return pad(
            token_ids,
            positions,
            pad_token_id=0 if pad_token_id is None else int(pad_token_id),
            left=self.tokenizer.padding_side == "left",
        )

    def batch_types(self, token_types: Sequence[Sequence[int]], positions: list[int]) -> Int[Tensor, "text token"]:
        """Pad the token types of some pairs as `batch` pads their ids."""
        fill = int(getattr(self.tokenizer, "pad_token_type_id", 0))
        return pad(token_types, positions, pad_token_id=fill, left=self.tokenizer.padding_side == "left").input_ids

    def embed(
        self,
        batch: TokenBatch,
        *,
        prompt_tokens: int = 0,
        token_types: Tensor | None = None,
        training: bool = False,
    ) -> Float[Tensor, "text dim"]:
        """Run the encoder on one batch: unit vectors, float32.

        Args:
            batch: from `batch`.
            prompt_tokens: how many leading tokens pooling leaves out.
            token_types: from `batch_types`, for pairs; None: all of the first type.
            training: True for gradients: bfloat16 then means autocast on the float32 weights; False runs the
                copy of the weights in bfloat16.
        """
        features = self._run_transformer(batch, token_types, training)
        if prompt_tokens:
            features["prompt_length"] = prompt_tokens
        # Pooling sums many tokens: in bfloat16 that alone would cost a digit.
        with torch.autocast(self.device.type, enabled=False):
            features["token_embeddings"] = features["token_embeddings"].float()
            for module in list(self.model)[1:]:
                features = module(features)
            return F.normalize(features["sentence_embedding"].float(), dim=-1)

    def states(
        self, batch: TokenBatch, *, token_types: Tensor | None = None, training: bool = False
    ) -> tuple[Float[Tensor, "text token dim"], Bool[Tensor, "text token"]]:
        """Run the encoder on one batch up to its last layer: the states of all tokens, before any pooling.

        Args:
            batch: from `batch`.
            token_types: from `batch_types`, for pairs; None: all of the first type.
            training: True for gradients, as in `embed`.

        Returns:
            The states, [text token dim] in float32 with `dim` of `hidden_size`, and where there is a token. Special
            tokens count as tokens; what stands at padding means nothing.
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
    def training_mode(self, *, dropout: bool) -> Iterator[None]:
        """Switch dropout on or off for the block, take the attention that trains fastest, and put both back."""
        model = self.transformer.model
        attention = model.config._attn_implementation
        # On a CPU the backward of the fused attention is slower than the plain products (up to 3 times in bfloat16).
        if self.device.type == "cpu" and attention == "sdpa":
            model.set_attn_implementation("eager")
        self.model.train(dropout)
        self.weights_changed()
        self.trained = True
        try:
            yield
        finally:
            self.model.eval()
            if model.config._attn_implementation != attention:
                model.set_attn_implementation(attention)
            self.weights_changed()

    def autocast(self) -> AbstractContextManager[Any]:
        """Training's precision, as a context; around several batches it casts each weight once."""
        return torch.autocast(self.device.type, torch.bfloat16, enabled=self.dtype is torch.bfloat16)

    def prepare(self) -> None:
        """Make what inference needs beside the weights, so that threads that share this encoder need not."""
        if self.dtype is torch.bfloat16:
            self._low_precision_copy()

    def _low_precision_copy(self) -> nn.Module:
        if self._low_precision is None:
            duplicate: nn.Module = copy.deepcopy(self.transformer).eval().requires_grad_(False)
            for weight in duplicate.parameters():  # not the buffers: rotary frequencies need their digits
                weight.data = weight.data.to(torch.bfloat16)
            self._low_precision = duplicate
        return self._low_precision

    def weights_changed(self) -> None:
        """Forget what was derived from the weights."""
        self._low_precision = None

    def save(self, folder: Path) -> None:
        """Write a sentence-transformers folder: configs, tokenizer, safetensors."""
        with quiet_loading():
            self.model.save(str(folder), create_model_card=False, safe_serialization=True)

    def __deepcopy__(self, memo: dict[int, Any]) -> "Backbone":
        twin = Backbone(copy.deepcopy(self.model, memo), dtype=self.dtype, device=self.device)
        twin.trained = self.trained
        return twin


def _padded_table(model: nn.Module) -> int | None:
    """Tokens that fit a table of positions which begins with padding; None where there is no such table.

    RoBERTa, XLM-R and MPNet count from the place after that of padding: of 514 positions two are never a token's.
    """
    for name, module in model.named_modules():
        if name.endswith("position_embeddings") and isinstance(module, nn.Embedding) and module.padding_idx:
            return module.num_embeddings - module.padding_idx - 1
    return None


@contextmanager
def quiet_tokenizer(tokenizer: Any) -> Iterator[None]:
    """Counting the tokens of a long text is no reason to warn that it is long."""
    said = tokenizer.deprecation_warnings.get("sequence-length-is-longer-than-the-specified-maximum")
    tokenizer.deprecation_warnings["sequence-length-is-longer-than-the-specified-maximum"] = True
    try:
        yield
    finally:
        if said is None:
            tokenizer.deprecation_warnings.pop("sequence-length-is-longer-than-the-specified-maximum", None)
