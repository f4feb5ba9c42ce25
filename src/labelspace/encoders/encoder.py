"""`Encoder`: text in, unit vectors out, for any sentence-transformers model."""

import copy
import os
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from itertools import islice
from pathlib import Path
from typing import TYPE_CHECKING, Any, final

import numpy as np
from numpy.typing import NDArray

from labelspace.checks import check_choice
from labelspace.config import EncodingConfig
from labelspace.config.encoding import WINDOW
from labelspace.encoders.batching import plan_batches, windows
from labelspace.encoders.packed import POOLINGS, PackedTransformer
from labelspace.encoders.plain import PlainFolder
from labelspace.encoders.precision import choose_device, choose_dtype
from labelspace.encoders.registry import DEFAULT_ENCODER, MULTILINGUAL, EncoderSpec, find_spec
from labelspace.encoders.resolve import check_remote_code, resolve
from labelspace.encoders.scripts import language_of, unread_text
from labelspace.encoders.side_by_side import side_by_side
from labelspace.errors import ConfigError, InputError, warn
from labelspace.header import refuse_no_encoder
from labelspace.progress import Progress, progress_bar, silent

if TYPE_CHECKING:
    from torch import Tensor

    from labelspace.encoders.backbone import Backbone

ROLES = ("text", "label")
Run = Callable[[list[int]], NDArray[np.float32]]


@final
class Encoder:
    """A text encoder: one vector of unit length per text.

    Texts are sorted by length within a window of 4,096 and run in batches under a token budget, in bfloat16 where
    the processor supports it. Vectors come back in input order. Memory holds one window and the vectors;
    `encode_iter` does not hold the vectors either. A transformer of the BERT family runs without padding on a CPU. A
    plain folder of one is opened without sentence-transformers, until `backbone` is asked for: to train or to save it.
    `backbone.model` is the `SentenceTransformer`; where a loop of the caller's trains it, the vectors follow.

    In bfloat16, a text's vector can change in the fourth digit depending on its batch; use `dtype="float32"` where
    that matters.

    Args:
        name: a name from `labelspace encoders`, any other sentence-transformers name, or a folder.
        pooling: `"mean"`, `"cls"` or `"last"`; None keeps the encoder's own.
        dtype: `"auto"`, `"float32"` or `"bfloat16"`.
        device: a torch device, or `"auto"`.
        max_tokens: longest input in tokens; longer texts are truncated. None uses the encoder's own limit.
        token_budget: most tokens per batch, including padding.
        text_prompt: prefix of every document and description; None uses the registry's recommendation or, for an
            encoder that is not in the registry, the encoder's own default prompt.
        label_prompt: prefix of every verbalizer; None: as for `text_prompt`.
        trust_remote_code: True allows code from the encoder's repository to run.
        revision: commit, tag or branch of the hub repository.
        offline: True never contacts the hub.

    Raises:
        EncoderNotFoundError: no encoder has this name.
        RemoteCodeError: the encoder needs its own code and `trust_remote_code` is False.
        EncoderError: the folder cannot be opened.
        ConfigError: an option is invalid.

    Warns:
        LabelSpaceWarning: the encoder has prompts, but none is a default or was chosen.

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
        if not isinstance(name, str | os.PathLike):
            raise ConfigError(
                f"name must be the name or the folder of an encoder. Got {type(name).__name__} instead; save a model "
                "to a folder and pass the folder."
            )
        if pooling is not None:
            check_choice("pooling", pooling, POOLINGS)
        # Check the name before resolving it, so that a refusal costs no download.
        refuse_no_encoder(name)
        check_remote_code(str(name), trust_remote_code)
        found = resolve(str(name), revision=revision, offline=offline)
        check_remote_code(found, trust_remote_code)
        self.device = choose_device(device)
        self.name = str(name)
        self.spec = found.spec
        self.source = found.source
        self.folder = Path(found.path_or_name)
        self.pooling = pooling
        self.revision, self.offline = revision, offline
        self._trained = self._warned = False
        self._dtype = choose_dtype(dtype, self.device)
        self._opening: dict[str, Any] = {"pooling": pooling, "trust_remote_code": trust_remote_code}
        self._backbone: Backbone | None = None
        self._packed: PackedTransformer | None = None
        self._plain: PlainFolder | None = None
        if self.device.type == "cpu":
            self._plain = PlainFolder.read(found.path_or_name, pooling=pooling, max_tokens=max_tokens)
        if self._plain is not None:
            self._packed = self._plain.transformer(self._dtype)
            own, default = self._plain.prompts, self._plain.default_prompt
        else:
            own, default = self.backbone.model.prompts or {}, self.backbone.model.default_prompt_name
        given = {"text": text_prompt, "label": label_prompt}
        chosen = _choose_prompts(given, own, found.spec, default)
        if not chosen and any(own.values()):
            listed = ", ".join(repr(key) for key, prompt in own.items() if prompt)
            warn(
                f"{self.name} has prompts ({listed}) but no default one, so none is used; pass text_prompt= and "
                'label_prompt=, or "" for none.'
            )
        self.prompts = {role: chosen.get(role, "") for role in ROLES}
        for role in (role for role in ROLES if self.prompts[role]):
            taken = self.count_tokens([""], role=role)[0]
            if taken >= self.max_tokens:
                raise ConfigError(
                    f"the prompt of each {role} takes {taken} tokens, and {self.name} reads {self.max_tokens}, so no "
                    f"text would be read; give a higher max_tokens, or a shorter {role}_prompt."
                )

    @property
    def backbone(self) -> "Backbone":
        """The model that can be trained, in sentence-transformers; a plain folder is opened so on first use.

        Raises:
            EncoderError: the folder has changed since it was opened, or is gone.
        """
        if self._backbone is None:
            from labelspace.encoders.backbone import Backbone

            if self._plain is not None:
                self._plain.check_unchanged()
            self._backbone = Backbone.load(
                str(self.folder),
                dtype=self._dtype,
                device=self.device,
                max_tokens=self.config.max_tokens,
                packed=self._packed,
                **self._opening,
            )
            self._backbone.trained = self._trained
            self._plain = self._packed = None
        return self._backbone

    @property
    def trained(self) -> bool:
        """Whether the weights may differ from those of the encoder that `name` names."""
        return self._trained if self._backbone is None else self._backbone.trained

    @trained.setter
    def trained(self, trained: bool) -> None:
        self._trained = trained
        if self._backbone is not None:
            self._backbone.trained = trained

    @property
    def _reader(self) -> "PlainFolder | Backbone":
        """What makes tokens of texts."""
        return self._plain or self.backbone

    @property
    def dimension(self) -> int:
        """Width of a vector."""
        return self._reader.dimension

    @property
    def max_tokens(self) -> int:
        """Longest input in tokens, including the prompt and special tokens."""
        return self._reader.max_tokens

    @property
    def dtype(self) -> str:
        """Number format of inference, `"bfloat16"` or `"float32"`."""
        return str(self._dtype if self._backbone is None else self._backbone.dtype).removeprefix("torch.")

    def encode(
        self, texts: Iterable[str], *, role: str = "text", verbose: bool = False, report: Progress | None = None
    ) -> NDArray[np.float32]:
        """Turn texts into vectors, in input order.

        Args:
            texts: any iterable of strings.
            role: `"text"` for documents and descriptions, `"label"` for verbalizers; selects the prompt.
            verbose: True shows a bar on a terminal, plain lines elsewhere.
            report: called with the number of texts done, in place of a bar.

        Returns:
            [text dim], float32, rows of unit length.
        """
        total = len(texts) if isinstance(texts, Sequence) else None
        with progress_bar("encoding", verbose=verbose and report is None) as bar:
            parts = list(self.encode_iter(texts, role=role, total=total, report=report or bar))
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
            texts: any iterable of strings.
            role: `"text"` or `"label"`.
            window: number of texts held, sorted and encoded together.
            total: number of texts, if known, for `report`.
            report: called with the number of texts done.

        Yields:
            [text dim] float32 for each window of `window` texts, the last one shorter.
        """
        if isinstance(texts, str):
            raise InputError("texts is a single str, not a collection of texts; pass [text] for one text.")
        done = 0
        for block in windows(texts, window):
            yield self.embed(self.tokenize(block, role=role), role=role, done=done, total=total, report=report)
            done += len(block)

    def encode_apart(self, groups: Sequence[Sequence[str]], *, role: str = "text") -> list[NDArray[np.float32]]:
        """Turn groups of texts into vectors, the same as if each group was encoded alone; several groups at once.

        The last bits of a vector depend on what is encoded with it. Here that is only its own group.

        Args:
            groups: texts, in groups.
            role: `"text"` or `"label"`.

        Returns:
            [text dim] of each group, as `encode` returns it.

        Example:
            >>> encoder = Encoder("tests/data/tiny-bert")
            >>> [vectors.shape for vectors in encoder.encode_apart([["sports"], [], ["a vote", "a match"]])]
            [(1, 32), (0, 32), (2, 32)]
        """
        rows = iter(self.tokenize([text for group in groups for text in group], role=role))
        token_ids = [list(islice(rows, len(group))) for group in groups]
        ready = self.packed() is not None
        if not ready:
            self.backbone.prepare()
        done = side_by_side(lambda ids: self.embed(ids, role=role), token_ids, self.device, ready=ready, alike=True)
        return [vectors for _, vectors in done]

    def tokenize(self, texts: Sequence[str], *, role: str = "text") -> list[list[int]]:
        """Return token ids with prompt and special tokens, truncated to `max_tokens`.

        Raises:
            InputError: one is no text.
        """
        check_choice("role", role, ROLES)
        # In windows, because a tokenizer holds some hundred bytes a token until all of its texts are done.
        found = [ids for block in windows(texts, WINDOW) for ids in self._ids(block, role)]
        self._warn_of_an_unread_language(texts)
        return found

    def _warn_of_an_unread_language(self, texts: Sequence[str]) -> None:
        """Warn, once for an encoder and each copy, of texts whose language it hardly knows."""
        if self._warned:
            return
        reader = self._reader
        text = None
        if not all(map(str.isascii, texts)):
            text = unread_text(texts, lambda some: reader.tokenize(some, truncate=False), reader.unknown_id)
        if text is not None:
            self._warned = True
            # Not the text: warnings go to logs, and texts may be confidential.
            letters = ", ".join(sorted({letter for letter in text if letter.isalpha() and not letter.isascii()})[:3])
            warn(
                f"{self.name} does not know the language of texts with letters such as {letters}: it reads single "
                f"letters, or nothing. Take an encoder of that language, such as {MULTILINGUAL}."
            )
            return
        spec = self.spec or find_spec(self.name)  # a saved model has the name of what it was trained from
        if spec is None or spec.languages != "English" or (language := language_of(texts)) is None:
            return
        self._warned = True
        warn(
            f"{self.name} was trained on English, and texts seem to be {language}; their vectors say less. Take an "
            f"encoder that reads it, such as {MULTILINGUAL}."
        )

    def _ids(self, texts: Sequence[str], role: str, *, truncate: bool = True) -> list[list[int]]:
        prompt = self.prompts[role]
        try:
            return self._reader.tokenize([prompt + text for text in texts], truncate=truncate)
        except TypeError as error:
            if (told := _no_text(texts)) is None:
                raise
            raise InputError(told) from error

    def tokenize_pairs(self, pairs: Sequence[tuple[str, str]]) -> tuple[list[list[int]], list[list[int]] | None]:
        """Return token ids and, if the tokenizer has them, token types of text pairs, truncated to `max_tokens`.

        The text prompt goes before the first text of each pair.
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
        """Turn token ids from `tokenize` into vectors [text dim]; tokenize once what is encoded repeatedly.

        Texts with the same tokens are encoded once, so their vectors are bit-identical.
        """
        first: dict[tuple[int, ...], int] = {}
        place = np.array([first.setdefault(tuple(ids), len(first)) for ids in token_ids], dtype=np.intp)
        different, copies = list(first), np.bincount(place)
        vectors = np.empty((len(different), self.dimension), dtype=np.float32)
        packed = self.packed()
        run = self._runner(different, role) if packed is None else _packed_runner(packed, different)
        plan = plan_batches([len(ids) for ids in different], self.config.token_budget)
        for positions, block in side_by_side(run, plan, self.device, ready=packed is not None):
            vectors[positions] = block
            done += int(copies[positions].sum())
            report(done, total)
        return vectors if len(different) == len(place) else vectors[place]

    def _runner(self, token_ids: Sequence[Sequence[int]], role: str) -> Run:
        """Return what turns the texts at some positions into vectors; several threads may call it."""
        backbone, prompt_tokens = self.backbone, self.prompt_tokens(role)
        backbone.prepare()

        def run(positions: list[int]) -> NDArray[np.float32]:
            return backbone.embed(backbone.batch(token_ids, positions), prompt_tokens=prompt_tokens).cpu().numpy()

        return run

    def packed(self) -> PackedTransformer | None:
        """Return the transformer as it is arranged for inference; None if it cannot be, or runs on no CPU."""
        if self._plain is None:
            return self.backbone.packed()
        self._packed = self._packed or self._plain.transformer(self._dtype)
        return self._packed

    def prompt_tokens(self, role: str) -> int:
        """Number of prompt tokens that pooling excludes; 0 if pooling includes the prompt, as in most encoders."""
        return 0 if self._plain is not None else self.backbone.prompt_tokens(self.prompts[role])

    def weights(self) -> "dict[str, Tensor]":
        """Return the weights that decide the vectors, by name.

        Raises:
            EncoderError: the folder has changed since it was opened, or is gone.
        """
        return self._plain.weights() if self._plain is not None else self.backbone.weights()

    def count_tokens(self, texts: Sequence[str], *, role: str = "text") -> list[int]:
        """Count the tokens of each text before truncation, including the prompt and special tokens."""
        return [len(ids) for ids in self._ids(texts, role, truncate=False)]

    def copy(self) -> "Encoder":
        """Return an independent copy; training it leaves this encoder unchanged."""
        return copy.deepcopy(self)

    def save(self, folder: str | Path) -> None:
        """Write a folder that `Encoder(folder)` and `SentenceTransformer(folder)` open.

        The prompts are saved as `labelspace_text` and `labelspace_label`.
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

    def __getstate__(self) -> dict[str, Any]:
        return {**self.__dict__, "_packed": None}  # arranged for this processor, and made again where it is opened

    def __repr__(self) -> str:
        return f"Encoder({self.name!r}, dimension={self.dimension}, dtype={self.dtype!r})"


def _no_text(texts: Sequence[Any]) -> str | None:
    """Return which of these cannot be encoded, and why; None if all can."""
    for text in texts:
        if not isinstance(text, str):
            return f"a text must be a str. Got {type(text).__name__} ({text!r:.60}) instead."
        if any("\ud800" <= letter <= "\udfff" for letter in text):
            return f"a text holds half of a character (a lone surrogate), which no encoder reads: {text!r:.60}."
    return None


def _packed_runner(packed: PackedTransformer, token_ids: Sequence[Sequence[int]]) -> Run:
    return lambda positions: packed.embed([token_ids[index] for index in positions]).numpy()


def _choose_prompts(
    given: Mapping[str, str | None], own: Mapping[str, str | None], spec: EncoderSpec | None, default: str | None
) -> dict[str, str]:
    """Choose the prompt of each role; a role without any prompt is left out.

    Args:
        given: the caller's prompt per role.
        own: the prompts of the encoder's folder, by name.
        spec: the registry's entry.
        default: the name in `own` that `SentenceTransformer.encode` uses by default.
    """
    recommended = {"text": spec.text_prompt, "label": spec.label_prompt} if spec else {}
    chosen = {}
    for role in ROLES:
        # A folder saved by labelspace holds the prompts used in training.
        saved = own.get(f"labelspace_{role}")
        candidates = (given[role], saved, recommended.get(role), own.get(default) if default else None)
        prompt = next((candidate for candidate in candidates if candidate is not None), None)
        if prompt is not None:
            chosen[role] = prompt
    return chosen
