"""A cross-encoder as one module: transformers backbone, head, tokenizer; saved as a folder.

folder/
├── config.json, model.safetensors, tokenizer.json ...   a transformers model: the backbone
├── head.safetensors                                     the head
├── labelspace.json                                      kind, variant, versions, record of the training
├── README.md                                            the model card
└── checkpoint/                                          only while training is unfinished
"""

from collections.abc import Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager
from pathlib import Path
from typing import Any, NamedTuple, Self, final

import torch
from jaxtyping import Float, Int
from safetensors import SafetensorError
from safetensors.torch import load_file, save_file
from torch import Tensor, nn

from labelspace.checks import check_choice, check_number
from labelspace.config import NLI_VARIANTS
from labelspace.encoders.batching import pad
from labelspace.encoders.opening import quiet_loading
from labelspace.encoders.precision import choose_device, choose_dtype
from labelspace.encoders.resolve import check_remote_code, resolve
from labelspace.encoders.undocumented import attention_for_training
from labelspace.errors import EncoderError, ModelFolderError
from labelspace.folders import staged
from labelspace.header import NLI, UNFINISHED, check_place, kind_of, new_header, write_header
from labelspace.heads.cross_encoder import CLASSES, CrossEncoderHead
from labelspace.seeds import child_seed
from labelspace.training.gradients import seeded
from labelspace.training.nli.card import model_card
from labelspace.training.nli.opening import check_class_token, open_backbone, token_limit
from labelspace.training.nli.saving import CHECKPOINT, link_folder, read_nli_header

DEFAULT_MAX_TOKENS = 256
PACKAGES = ("torch", "transformers", "numpy")


class PairBatch(NamedTuple):
    """Pairs padded to one width, ready for `NLIModel.forward`."""

    input_ids: Int[Tensor, "pair token"]
    attention_mask: Int[Tensor, "pair token"]
    token_type_ids: Int[Tensor, "pair token"] | None


class PairTokens(NamedTuple):
    """Pairs as token ids, without padding."""

    ids: list[list[int]]
    types: list[list[int]] | None

    @property
    def lengths(self) -> list[int]:
        """Tokens of each pair."""
        return [len(ids) for ids in self.ids]


@final
class NLIModel(nn.Module):
    """A transformer that reads premise and hypothesis together, and a head on its [CLS] state.

    Create one with `from_encoder` or `load`. The weights are always float32; bfloat16 means autocast, and the head
    always computes in float32.

    Args:
        backbone: a transformers model.
        head: turns the [CLS] state into logits.
        tokenizer: the backbone's; it must put its class token first.
        variant: `"binary"` or `"triplet"`.
        max_tokens: longest pair in tokens; longer pairs are truncated.
        dtype: number format of the backbone's matrix products.
        header: contents of `labelspace.json`; empty for a model that was never saved.

    Example:
        >>> model = NLIModel.from_encoder("tests/data/tiny-bert", "triplet", seed=0, dtype="float32", device="cpu")
        >>> batch = model.pad(model.tokenize(["the team won"], ["this is about sports"]))
        >>> model(*batch).shape
        torch.Size([1, 3])

    Reference:
        BTZSC benchmark, appendix C.1.
    """

    def __init__(
        self,
        backbone: Any,
        head: CrossEncoderHead,
        tokenizer: Any,
        *,
        variant: str,
        max_tokens: int,
        dtype: torch.dtype = torch.float32,
        header: dict[str, Any] | None = None,
    ) -> None:
        super().__init__()
        check_choice("variant", variant, NLI_VARIANTS)
        self.backbone = backbone
        self.head = head
        self.tokenizer = tokenizer
        self.variant = variant
        self.max_tokens = max_tokens
        self.dtype = dtype
        self.header: dict[str, Any] = header or {}
        self.eval()

    @classmethod
    def from_encoder(
        cls,
        name: str | Path,
        variant: str,
        seed: int,
        *,
        max_tokens: int | None = None,
        dropout: float = 0.1,
        dtype: str = "auto",
        device: str = "auto",
        revision: str | None = None,
        trust_remote_code: bool = False,
        offline: bool | None = None,
    ) -> Self:
        """Put a new head on an encoder.

        Args:
            name: a folder, a hub name or a short name of the registry.
            variant: `"binary"` (one logit) or `"triplet"` (entailment, neutral, contradiction).
            seed: seed of the head's initial weights, 0 or more.
            max_tokens: longest pair in tokens; None: 256, or the encoder's limit if that is smaller.
            dropout: of the head.
            dtype: `"auto"`, `"float32"` or `"bfloat16"`.
            device: a torch device, or `"auto"`.
            revision: commit, tag or branch on the hub.
            trust_remote_code: True allows code from the encoder's repository to run.
            offline: True uses no network.

        Returns:
            The untrained model, in evaluation mode.

        Raises:
            EncoderError: the encoder is not found, cannot be opened, or has no class token.
            ConfigError: an option is out of range.
        """
        check_choice("variant", variant, NLI_VARIANTS)
        place = choose_device(device)
        check_remote_code(str(name), trust_remote_code)
        found = resolve(str(name), revision=revision, offline=offline)
        check_remote_code(found, trust_remote_code)
        with seeded(torch.device("cpu"), seed, "backbone"):  # weights missing from the folder are drawn at random
            backbone, tokenizer = open_backbone(Path(found.path_or_name), trust_remote_code)
        limit = token_limit(backbone, tokenizer)
        if max_tokens is None:
            max_tokens = min(DEFAULT_MAX_TOKENS, limit)
        check_number("max_tokens", max_tokens, least=8, whole=True)
        max_tokens = int(max_tokens)
        if max_tokens > limit:
            raise EncoderError(f"max_tokens is more than the encoder can read ({limit}). Got {max_tokens} instead.")
        check_class_token(tokenizer, str(name))
        head = CrossEncoderHead(
            int(backbone.config.hidden_size),
            classes=CLASSES[variant],
            generator=torch.Generator().manual_seed(child_seed(seed, "head")),
            dropout=dropout,
        )
        model = cls(
            backbone,
            head,
            tokenizer,
            variant=variant,
            max_tokens=max_tokens,
            dtype=choose_dtype(dtype, place),
            header={"encoder": str(name)},
        )
        return model.to(place)

    @property
    def device(self) -> torch.device:
        """Device of the weights."""
        return self.head.inner.weight.device

    def forward(
        self,
        input_ids: Int[Tensor, "pair token"],
        attention_mask: Int[Tensor, "pair token"],
        token_type_ids: Int[Tensor, "pair token"] | None = None,
    ) -> Float[Tensor, "pair class"]:
        """Return the logits of a padded batch, float32.

        Args:
            input_ids: [pair token], from `pad`.
            attention_mask: [pair token], 1 for a token, 0 for padding.
            token_type_ids: [pair token], 0 premise and 1 hypothesis, for encoders that use token types.

        Returns:
            [pair class], one column (binary) or three (triplet).
        """
        inputs = {"input_ids": input_ids, "attention_mask": attention_mask}
        if token_type_ids is not None:
            inputs["token_type_ids"] = token_type_ids
        with self.autocast():
            states = self.backbone(**inputs).last_hidden_state
        with torch.autocast(self.device.type, enabled=False):
            return self.head(states[:, 0].float())

    def autocast(self) -> AbstractContextManager[Any]:
        """Autocast for the backbone; one context around several batches casts each weight only once."""
        return torch.autocast(self.device.type, torch.bfloat16, enabled=self.dtype is torch.bfloat16)

    def tokenize(self, premises: Sequence[str], hypotheses: Sequence[str]) -> PairTokens:
        """Turn pairs into token ids with special tokens, truncated to `max_tokens`, the longer text first.

        Args:
            premises: the premises.
            hypotheses: one hypothesis per premise.

        Returns:
            The ids, and the token types if the encoder uses them.
        """
        if not premises:
            return PairTokens([], None)
        made = self.tokenizer(
            list(premises),
            list(hypotheses),
            truncation="longest_first",
            max_length=self.max_tokens,
            return_attention_mask=False,
        )
        return PairTokens(made["input_ids"], made.get("token_type_ids"))

    def pad(self, tokens: PairTokens, rows: Sequence[int] | None = None) -> PairBatch:
        """Pad some pairs to one width, on this model's device.

        Args:
            tokens: from `tokenize`.
            rows: the pairs to pad; None: all.
        """
        rows = list(range(len(tokens.ids)) if rows is None else rows)
        padded = pad(tokens.ids, rows, pad_token_id=self.tokenizer.pad_token_id or 0, left=False)
        types = None if tokens.types is None else pad(tokens.types, rows, pad_token_id=0, left=False).input_ids
        return PairBatch(
            input_ids=padded.input_ids.to(self.device),
            attention_mask=padded.attention_mask.to(self.device),
            token_type_ids=None if types is None else types.to(self.device),
        )

    @contextmanager
    def training_mode(self) -> Iterator[None]:
        """Enable dropout and the fastest attention for training inside the block; restore both afterwards."""
        self.train()
        try:
            with attention_for_training(self.backbone, self.device):
                yield
        finally:
            self.eval()

    def save(self, folder: str | Path, *, facts: dict[str, Any] | None = None, keep_checkpoint: bool = False) -> Path:
        """Write the model as a folder; a killed save leaves the old folder or the new one.

        Args:
            folder: the target; replaced if it holds an NLI model or an unfinished run.
            facts: plain values for `labelspace.json`: `training`, `data`, `dev`, `provenance`.
            keep_checkpoint: True keeps `checkpoint/`, so that training can resume.

        Returns:
            The folder.

        Raises:
            OutputError: it cannot be written, or it holds something else; the old contents are unchanged.
        """
        folder = Path(folder)
        if kind_of(folder) != UNFINISHED:
            check_place(folder, NLI)
        told = {key: value for key, value in self.header.items() if key in ("training", "data", "dev", "provenance")}
        told |= facts or {}
        header = new_header(
            NLI,
            PACKAGES,
            variant=self.variant,
            max_tokens=self.max_tokens,
            encoder=self.header.get("encoder"),
            dropout=self.head.dropout.p,
            **told,
        )
        with staged(folder) as new:
            with quiet_loading():
                self.backbone.save_pretrained(new, safe_serialization=True)
                self.tokenizer.save_pretrained(new)
            head = {name: value.detach().cpu().contiguous() for name, value in self.head.state_dict().items()}
            save_file(head, new / "head.safetensors")
            (new / "README.md").write_text(model_card(header), encoding="utf-8")
            self.header = write_header(new, header)
            if keep_checkpoint and (folder / CHECKPOINT).is_dir():
                link_folder(folder / CHECKPOINT, new / CHECKPOINT)
        return folder

    @classmethod
    def load(
        cls, folder: str | Path, *, dtype: str = "auto", device: str = "auto", trust_remote_code: bool = False
    ) -> Self:
        """Open a model that `save` wrote.

        Args:
            folder: the model's folder.
            dtype: `"auto"`, `"float32"` or `"bfloat16"`.
            device: a torch device, or `"auto"`.
            trust_remote_code: True allows code from the backbone's repository to run.

        Returns:
            The model in evaluation mode. On the machine that saved it, its logits are bit-identical.

        Raises:
            ModelFolderError: the folder is not an NLI model, is truncated, has a newer format, or holds a pickle.

        Example:
            >>> import tempfile
            >>> model = NLIModel.from_encoder("tests/data/tiny-bert", "binary", seed=0, dtype="float32")
            >>> with tempfile.TemporaryDirectory() as folder:
            ...     NLIModel.load(model.save(f"{folder}/nli")).variant
            'binary'
        """
        folder = Path(folder)
        place = choose_device(device)
        header = read_nli_header(folder)
        check_remote_code(folder, trust_remote_code)
        try:
            with seeded(torch.device("cpu"), 0, "load"):
                backbone, tokenizer = open_backbone(folder, trust_remote_code)
            head = CrossEncoderHead(
                int(backbone.config.hidden_size),
                classes=CLASSES[header["variant"]],
                generator=torch.Generator(),
                dropout=header["dropout"],
            )
            head.load_state_dict(load_file(folder / "head.safetensors"), assign=True)
        except (KeyError, RuntimeError, OSError, SafetensorError, EncoderError) as error:
            reason = str(error).splitlines()[0][:300]
            raise ModelFolderError(f"{folder} cannot be read ({reason}); it is damaged, save it again.") from error
        model = cls(
            backbone,
            head,
            tokenizer,
            variant=header["variant"],
            max_tokens=header["max_tokens"],
            dtype=choose_dtype(dtype, place),
            header=header,
        )
        return model.to(place)
