"""`Encoder`: text in, unit vectors out, on any sentence-transformers model."""

import copy
import warnings
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, final

import numpy as np
from numpy.typing import NDArray

from labelspace.checks import check_choice
from labelspace.config import EncodingConfig
from labelspace.encoders.backbone import POOLINGS, Backbone
from labelspace.encoders.batching import plan_batches, windows
from labelspace.encoders.precision import choose_device, choose_dtype
from labelspace.encoders.registry import DEFAULT_ENCODER, EncoderSpec
from labelspace.encoders.resolve import check_remote_code, resolve
from labelspace.encoders.side_by_side import side_by_side
from labelspace.errors import InputError, LabelSpaceWarning
from labelspace.header import refuse_no_encoder
from labelspace.progress import Progress, progress_bar, silent

ROLES = ("text", "label")
# Texts tokenised and sorted together: enough to sort well, few enough to hold.
WINDOW = 4096


@final
class Encoder:
    """A text encoder: one vector of unit length per text.

    Texts are sorted by length within a window of 4,096, run in batches under a token budget, in bfloat16
    where the processor has it, and given back in the order of input. Memory does not grow with the number
    of texts, except for the vectors themselves; `encode_iter` holds not even those.

    In bfloat16 a text's vector can move in the fourth digit with the batch it shares; ask for
    `dtype="float32"` where that matters.

    Args:
        name: a name from `labelspace encoders`, any other sentence-transformers name, or a folder.
        pooling: `"mean"`, `"cls"` or `"last"` in place of the encoder's own; None keeps that.
        dtype: `"auto"`, `"float32"` or `"bfloat16"`.
        device: a torch device, or `"auto"`.
        max_tokens: tokens of a text that are read; None: as many as the encoder was made for.
        token_budget: most tokens of a batch, padding counted in.
        text_prompt: put before every document and description; None: what the registry recommends, or for an encoder
            that it does not hold, the one that the encoder itself has as default.
        label_prompt: put before every verbalizer; None: as for `text_prompt`.
        trust_remote_code: True lets the encoder's own code run; never without.
        revision: of the hub repository.
        offline: True never asks the hub.

    Raises:
        EncoderNotFoundError: nothing stands behind the name.
        RemoteCodeError: the encoder brings code and `trust_remote_code` is False.
        EncoderError: the folder cannot be opened.
        ConfigError: an option makes no sense.

    Warns:
        LabelSpaceWarning: the encoder has prompts, and nothing says which of them to use.

    Example:
        >>> encoder = Encoder("tests/data/tiny-bert", dtype="float32")
        >>> encoder.encode(["a text", "another"]).shape
        (2, 32)
    """

    def __init__(
        self,
        name: str | Path = DEFAULT_ENCODER,
        *,
        pooling: str | None = None,
        dtype: str = EncodingConfig.dtype,
        device: str = EncodingConfig.device,
        max_tokens: int | None = EncodingConfig.max_tokens,
        token_budget: int = EncodingConfig.token_budget,
        text_prompt: str | None = None,
        label_prompt: str | None = None,
        trust_remote_code: bool = False,
        revision: str | None = None,
        offline: bool | None = None,
    ) -> None:
        self.config = EncodingConfig(dtype=dtype, device=device, max_tokens=max_tokens, token_budget=token_budget)
        if pooling is not None:
            check_choice("pooling", pooling, POOLINGS)
        # Asked by name first: a refusal should cost no download.
        refuse_no_encoder(name)
        check_remote_code(str(name), trust_remote_code)
        found = resolve(str(name), revision=revision, offline=offline)
        check_remote_code(found, trust_remote_code)
        chosen_device = choose_device(device)
        self.name = str(name)
        self.spec = found.spec
        self.source = found.source
        self.folder = Path(found.path_or_name)
        self.backbone = Backbone.load(
            found.path_or_name,
            dtype=choose_dtype(dtype, chosen_device),
            device=chosen_device,
            pooling=pooling,
            max_tokens=self.config.max_tokens,
            trust_remote_code=trust_remote_code,
        )
        self.pooling = pooling
        own = self.backbone.model.prompts or {}
        given = {"text": text_prompt, "label": label_prompt}
        chosen = _choose_prompts(given, own, found.spec, self.backbone.model.default_prompt_name)
        if not chosen and any(own.values()):
            listed = ", ".join(repr(key) for key, prompt in own.items() if prompt)
            warnings.warn(
                f"{self.name} has prompts ({listed}) but no default one, so none is used; pass text_prompt= and "
                'label_prompt=, or "" for none.',
                LabelSpaceWarning,
                stacklevel=2,
            )
        self.prompts = {role: chosen.get(role, "") for role in ROLES}

    @property
    def dimension(self) -> int:
        """Width of a vector."""
        return self.backbone.dimension

    @property
    def max_tokens(self) -> int:
        """Tokens of a text that are read, the prompt and special tokens among them."""
        return self.backbone.max_tokens

    @property
    def dtype(self) -> str:
        """`"bfloat16"` or `"float32"`, as chosen."""
        return str(self.backbone.dtype).removeprefix("torch.")

    def encode(self, texts: Iterable[str], *, role: str = "text", verbose: bool = False) -> NDArray[np.float32]:
        """Turn texts into vectors, in the order given.

        Args:
            texts: any iterable of strings.
            role: `"text"` for documents and descriptions, `"label"` for verbalizers; decides the prompt.
            verbose: True shows a bar on a terminal, plain lines elsewhere.

        Returns:
            [text dim], float32, rows of unit length.
        """
        total = len(texts) if isinstance(texts, Sequence) else None
        with progress_bar("encoding", show=verbose) as report:
            parts = list(self.encode_iter(texts, role=role, total=total, report=report))
        return np.concatenate(parts) if parts else np.zeros((0, self.dimension), dtype=np.float32)

    def encode_iter(
        self,
        texts: Iterable[str],
        *,
        role: str = "text",
        window: int = WINDOW,
        total: int | None = None,
        report: Progress = silent,
    ) -> Iterator[NDArray[np.float32]]:
        """Turn a stream of texts into a stream of vector blocks, in constant memory.

        Args:
            texts: any iterable of strings, of any length.
            role: `"text"` or `"label"`.
            window: texts that are held, sorted and encoded together.
            total: how many texts there are, if known, for `report`.
            report: told how many are done.

        Yields:
            [text dim] float32 for each window of `window` texts, the last one shorter.
        """
        if isinstance(texts, str):
            raise InputError("texts is a single str, not a collection of texts; pass [text] for one text.")
        done = 0
        for block in windows(texts, window):
            yield self.embed(self.tokenize(block, role=role), role=role, done=done, total=total, report=report)
            done += len(block)

    def tokenize(self, texts: Sequence[str], *, role: str = "text") -> list[list[int]]:
        """Return token ids, prompt and special tokens included, cut to `max_tokens`."""
        check_choice("role", role, ROLES)
        prompt = self.prompts[role]
        return self.backbone.tokenize([prompt + text for text in texts] if prompt else texts)

    def tokenize_pairs(self, pairs: Sequence[tuple[str, str]]) -> tuple[list[list[int]], list[list[int]] | None]:
        """Return token ids and, where the tokenizer has them, token types of pairs of texts, cut to `max_tokens`.

        The prompt of texts stands before the first one.
        """
        prompt = self.prompts["text"]
        return self.backbone.tokenize_pairs([(prompt + first, second) for first, second in pairs] if prompt else pairs)

    def embed(
        self,
        token_ids: Sequence[Sequence[int]],
        *,
        role: str = "text",
        done: int = 0,
        total: int | None = None,
        report: Progress = silent,
    ) -> NDArray[np.float32]:
        """Turn token ids from `tokenize` into vectors [text dim]; what is encoded often is tokenised once.

        Texts with the same tokens are encoded once, so that their vectors are the same to the bit.
        """
        first: dict[tuple[int, ...], int] = {}
        place = np.array([first.setdefault(tuple(ids), len(first)) for ids in token_ids], dtype=np.intp)
        different, copies = list(first), np.bincount(place)
        vectors = np.empty((len(different), self.dimension), dtype=np.float32)
        prompt_tokens = self.backbone.prompt_tokens(self.prompts[role])

        def run(positions: list[int]) -> NDArray[np.float32]:
            batch = self.backbone.batch(different, positions)
            return self.backbone.embed(batch, prompt_tokens=prompt_tokens).cpu().numpy()

        self.backbone.prepare()
        plan = plan_batches([len(ids) for ids in different], self.config.token_budget)
        for positions, block in side_by_side(run, plan, self.backbone.device):
            vectors[positions] = block
            done += int(copies[positions].sum())
            report(done, total)
        return vectors if len(different) == len(place) else vectors[place]

    def count_tokens(self, texts: Sequence[str], *, role: str = "text") -> list[int]:
        """Tokens of each text before anything is cut off, prompt and special tokens included."""
        prompt = self.prompts[role]
        return [len(ids) for ids in self.backbone.tokenize([prompt + text for text in texts], truncate=False)]

    def similarities(self, texts: Sequence[str]) -> NDArray[np.float32]:
        """Cosine of every pair of texts, [text text]."""
        vectors = self.encode(texts)
        return vectors @ vectors.T

    def copy(self) -> "Encoder":
        """Return an encoder with weights of its own; training that one leaves this one alone."""
        return copy.deepcopy(self)

    def save(self, folder: str | Path) -> None:
        """Write a folder that `Encoder(folder)` and `SentenceTransformer(folder)` open.

        The prompts go with it, as `labelspace_text` and `labelspace_label`.
        """
        own = self.backbone.model.prompts
        prompts = {f"labelspace_{role}": prompt for role, prompt in self.prompts.items()}
        self.backbone.model.prompts = {**(own or {}), **prompts}
        try:
            self.backbone.save(Path(folder))
        finally:
            self.backbone.model.prompts = own

    def describe(self) -> dict[str, Any]:
        """Name, source, precision and sizes, for a log or a model card."""
        return {
            "name": self.name,
            "source": self.source,
            "pooling": self.pooling,
            "dimension": self.dimension,
            "max_tokens": self.max_tokens,
            "dtype": self.dtype,
            "prompts": dict(self.prompts),
        }

    def __repr__(self) -> str:
        return f"Encoder({self.name!r}, dimension={self.dimension}, dtype={self.dtype!r})"


def _choose_prompts(
    given: Mapping[str, str | None], own: Mapping[str, str | None], spec: EncoderSpec | None, default: str | None
) -> dict[str, str]:
    """Return the prompt of each role; a role that nobody has a prompt for is left out.

    Args:
        given: by role, what the caller wants.
        own: by name, what the encoder's folder holds.
        spec: what the registry knows.
        default: the name in `own` that `SentenceTransformer.encode` uses when nothing is said.
    """
    recommended = {"text": spec.text_prompt, "label": spec.label_prompt} if spec else {}
    chosen = {}
    for role in ROLES:
        # A folder that labelspace saved carries the prompts it was trained with.
        saved = own.get(f"labelspace_{role}")
        candidates = (given[role], saved, recommended.get(role), own.get(default) if default else None)
        prompt = next((candidate for candidate in candidates if candidate is not None), None)
        if prompt is not None:
            chosen[role] = prompt
    return chosen
