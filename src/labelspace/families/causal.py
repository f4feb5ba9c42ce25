"""`CausalModel`: a decoder-only language model; token ids in, next-token logits out.

    next_token_logits      many prompts, in batches under a token budget
    continue_from_prefix   one prefix, computed once, with many continuations

Rows of a batch are padded on the right and read at their last token. A causal model never looks ahead, so padding
changes no result, needs no mask and shifts no position or sliding window. All continuations share the cached prefix:
only the layer that is running holds a copy of the prefix joined to a continuation. Continuations run as one tree where
the model accepts a custom attention mask (`token_tree`), else as rows of a batch.

Weights come from safetensors, or from a GGUF file, which transformers dequantizes.
"""

import inspect
import re
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, Self, final

import torch
from jaxtyping import Float, Int
from torch import Tensor
from torch.nn import functional as F

from labelspace.encoders.batching import pad, plan_batches
from labelspace.encoders.opening import NO_LIMIT
from labelspace.encoders.precision import choose_device, choose_dtype
from labelspace.encoders.side_by_side import side_by_side
from labelspace.encoders.undocumented import silence_lengths
from labelspace.errors import EncoderError, InputError
from labelspace.families.causal_opening import open_causal
from labelspace.families.cross_encoder import find_folder
from labelspace.families.gguf import find_gguf
from labelspace.families.prefix_cache import empty_cache, lend
from labelspace.families.token_tree import TokenTree, plan_trees, plant, takes_a_tree
from labelspace.progress import Progress, silent

# A mask has this many entries squared; larger trees share hardly more.
_MOST_NODES = 1024


@final
class CausalModel:
    """A language model and its tokenizer; safe to use from several threads at once.

    Args:
        model: a causal language model of transformers, in evaluation mode.
        tokenizer: its tokenizer.
        name: name of the model in messages and descriptions.
        weights: the folder or GGUF file of the weights, if any.
        max_tokens: most tokens of a prompt; None: the model's own limit.
    """

    def __init__(
        self, model: Any, tokenizer: Any, *, name: str, weights: Path | None = None, max_tokens: int | None = None
    ) -> None:
        self.model = model
        self.tokenizer = tokenizer
        self.name = name
        self.weights = weights
        self.device: torch.device = model.device
        self.dtype: torch.dtype = model.dtype
        self.max_tokens = _limit(model, tokenizer, max_tokens)
        self.parameters = sum(weight.numel() for weight in model.parameters())
        # Prompts are cut here; the tokenizer's warning about long texts would only confuse.
        silence_lengths(tokenizer)
        bos = tokenizer.bos_token_id
        self._start = [bos] if bos is not None and tokenizer("a")["input_ids"][:1] == [bos] else []
        self._markers = _special_tokens(tokenizer)
        self._picks_positions = "logits_to_keep" in inspect.signature(model.forward).parameters
        self._decoder = self._find_plain_decoder()
        self._cache_name = _cache_name(self._decoder or model)
        self._takes_a_tree = takes_a_tree(model.config)

    @classmethod
    def load(
        cls,
        name: str | Path,
        *,
        dtype: str = "auto",
        device: str = "auto",
        max_tokens: int | None = None,
        trust_remote_code: bool = False,
        revision: str | None = None,
        offline: bool | None = None,
        gguf_file: str | None = None,
    ) -> Self:
        """Open a language model by folder, hub name or GGUF file.

        Args:
            name: a folder, a hub name, or a `.gguf` file.
            dtype: `"auto"`, `"float32"` or `"bfloat16"`, of the weights; logits are float32 always.
            device: a torch device, or `"auto"`.
            max_tokens: most tokens of a prompt; None: the model's own limit.
            trust_remote_code: True allows the model to run its own code.
            revision: revision of the hub repository.
            offline: True never contacts the hub.
            gguf_file: the file to open in a folder or hub repository of GGUF files.

        Raises:
            EncoderNotFoundError: no folder, package or hub repository has this name.
            RemoteCodeError: the model brings code and `trust_remote_code` is False.
            EncoderError: it cannot be opened, or is no language model.
            MissingDependencyError: a GGUF file needs the packages gguf and accelerate.

        Example:
            >>> from families.tiny_causal import tiny_causal  # a tiny model with random weights
            >>> model = CausalModel.load(tiny_causal("qwen3"), dtype="float32")
            >>> model.next_token_logits(model.encode(["the match was", "we"]), token_ids=[5, 6, 7]).shape
            torch.Size([2, 3])
        """
        chosen_device = choose_device(device)
        options: dict[str, Any] = {"local_files_only": not trust_remote_code, "trust_remote_code": trust_remote_code}
        gguf = find_gguf(str(name), gguf_file, revision, offline)
        if gguf is not None:
            folder, options["gguf_file"] = str(gguf.parent), gguf.name
        else:
            folder = str(find_folder(name, trust_remote_code=trust_remote_code, revision=revision, offline=offline))
        model, tokenizer = open_causal(folder, choose_dtype(dtype, chosen_device), options)
        weights = Path(folder) if gguf is None else gguf
        return cls(model.to(chosen_device), tokenizer, name=str(name), weights=weights, max_tokens=max_tokens)

    def describe(self) -> dict[str, Any]:
        """Return name, size and precision, for a log or a result file."""
        return {
            "name": self.name,
            "parameters": self.parameters,
            "dtype": str(self.dtype).removeprefix("torch."),
            "device": str(self.device),
            "max_tokens": self.max_tokens,
        }

    # ---- strings to token ids

    @property
    def has_chat_template(self) -> bool:
        """Whether the tokenizer has a chat template."""
        return bool(self.tokenizer.chat_template)

    def chat(self, system: str, user: str) -> str:
        """Return a conversation in the chat template, up to the start of the assistant's turn.

        Reasoning is turned off (`enable_thinking=False`, as in C.2's empty think block). If the template has no system
        message, the instructions go before the user's question.

        Args:
            system: the instructions.
            user: the question.
        """
        from jinja2 import TemplateError

        options: dict[str, Any] = {"tokenize": False, "add_generation_prompt": True, "enable_thinking": False}
        two = [{"role": "system", "content": system}, {"role": "user", "content": user}]
        try:
            written = str(self.tokenizer.apply_chat_template(two, **options))
        except TemplateError:
            written = ""
        if system.strip() in written and user.strip() in written:
            return written
        one = [{"role": "user", "content": f"{system}\n\n{user}"}]
        return str(self.tokenizer.apply_chat_template(one, **options))

    def without_markers(self, text: str) -> str:
        """Return a text without special tokens: `"<|im_end|>"` becomes `"< |im_end|>"`.

        A document is data: it must not be able to end the user's turn or open the assistant's.
        """
        return text if self._markers is None else self._markers.sub(lambda found: f"{found[0][0]} {found[0][1:]}", text)

    def encode(self, texts: Sequence[str], *, start: bool = True) -> list[list[int]]:
        """Turn texts into token ids, without truncation and without an end token.

        Args:
            texts: prompts, or parts of prompts.
            start: True adds the tokenizer's start token, if it has one and the text does not begin with it; False is
                for continuations.
        """
        if not texts:
            return []
        token_ids = self.tokenizer(list(texts), add_special_tokens=False, return_attention_mask=False)["input_ids"]
        if not start or not self._start:
            return token_ids
        return [ids if ids[:1] == self._start else self._start + ids for ids in token_ids]

    def encode_within(self, texts: Sequence[str], render: Callable[[str], str], most: int) -> list[list[int]]:
        """Turn texts into the token ids of their prompts; cut the end of a text whose prompt would be too long.

        Args:
            texts: the texts; only they are cut.
            render: makes the prompt around a text.
            most: most tokens of a prompt.

        Raises:
            EncoderError: the prompt around an empty text is too long.
        """
        prompts = self.encode([render(text) for text in texts])
        for row, ids in enumerate(prompts):
            if len(ids) > most:
                prompts[row] = self._cut(texts[row], render, most)
        return prompts

    def _cut(self, text: str, render: Callable[[str], str], most: int) -> list[int]:
        best = self.encode([render("")])[0]
        if len(best) > most:
            raise EncoderError(
                f"the prompt is too long for {self.name!r} even without a text: at most {most} tokens fit. "
                f"Got {len(best)} instead; use fewer or shorter labels, or a larger max_tokens."
            )
        # Whole prompts are tokenised, so that the tokens at the cut are those of a shorter text.
        fits, too_long = 0, len(text)
        while too_long - fits > 1:
            middle = (fits + too_long) // 2
            ids = self.encode([render(text[:middle])])[0]
            if len(ids) <= most:
                fits, best = middle, ids
            else:
                too_long = middle
        return best

    # ---- token ids to logits

    def next_token_logits(
        self,
        prompts: Sequence[Sequence[int]],
        *,
        token_ids: Sequence[int] | None = None,
        token_budget: int = 2048,
        done: int = 0,
        total: int | None = None,
        report: Progress = silent,
    ) -> Float[Tensor, "prompt vocab"]:
        """Return the logits of the token that follows each prompt.

        Args:
            prompts: token ids of each prompt, at least one.
            token_ids: columns of the vocabulary to return, in this order; None: all.
            token_budget: most tokens of a batch, padding included.
            done: prompts of earlier calls, for `report`.
            total: number of prompts in all calls, for `report`.
            report: called with the number of prompts done.

        Returns:
            [prompt vocab], float32, on the CPU, in the order of `prompts`.
        """
        _check_not_empty(prompts, "prompt")
        logits = torch.empty((len(prompts), self._columns(token_ids)))

        def run(positions: list[int]) -> Tensor:
            return self._last_logits(*self._padded(prompts, positions), token_ids).cpu()

        plan = plan_batches([len(ids) for ids in prompts], token_budget)
        for positions, block in side_by_side(run, plan, self.device):
            logits[positions] = block
            done += len(positions)
            report(done, total)
        return logits

    @torch.inference_mode()
    def continue_from_prefix(
        self,
        prefix: Sequence[int],
        continuations: Sequence[Sequence[int]],
        *,
        token_ids: Sequence[int] | None = None,
        token_budget: int = 16_384,
    ) -> Float[Tensor, "continuation vocab"]:
        """Return the logits of the token that follows the prefix joined with each continuation.

        The prefix is computed once. The result equals `next_token_logits` of the joined ids up to rounding. Models
        without a plain key/value cache (those with state-space layers, for example) run on the joined ids.

        Args:
            prefix: token ids, at least one.
            continuations: token ids of each continuation, at least one.
            token_ids: columns of the vocabulary to return, in this order; None: all.
            token_budget: most tokens that a batch of continuations attends to, the prefix counted in every row; for
                trees, most nodes of a tree, up to 1,024.

        Returns:
            [continuation vocab], float32, on the CPU, in the order of `continuations`.
        """
        _check_not_empty([prefix], "prefix")
        _check_not_empty(continuations, "continuation")
        cache = self._run_prefix(prefix)
        if cache is None:
            joined = [[*prefix, *ids] for ids in continuations]
            return self.next_token_logits(joined, token_ids=token_ids, token_budget=token_budget)
        logits = torch.empty((len(continuations), self._columns(token_ids)))
        if self._takes_a_tree:
            for positions in plan_trees(continuations, min(token_budget, _MOST_NODES)):
                tree = plant([continuations[index] for index in positions])
                logits[positions] = self._tree_logits(tree, token_ids, cache, len(prefix)).cpu()
            return logits
        for positions in plan_batches([len(prefix) + len(ids) for ids in continuations], token_budget):
            padded = self._padded(continuations, positions)
            logits[positions] = self._last_logits(*padded, token_ids, lend(cache, len(positions))).cpu()
        return logits

    def _padded(
        self, token_ids: Sequence[Sequence[int]], positions: list[int]
    ) -> tuple[Int[Tensor, "row token"], Int[Tensor, " row"]]:
        """Return the rows padded on the right, and the position of each row's last token."""
        pad_token_id = self.tokenizer.pad_token_id
        batch = pad(token_ids, positions, pad_token_id=0 if pad_token_id is None else int(pad_token_id), left=False)
        return batch.input_ids.to(self.device), (batch.attention_mask.sum(dim=1) - 1).to(self.device)

    def _run_prefix(self, prefix: Sequence[int]) -> Any | None:
        cache = empty_cache(self.model.config)
        if cache is None:
            return None
        input_ids = torch.tensor([list(prefix)], device=self.device)
        options: dict[str, Any] = {"logits_to_keep": 1} if self._picks_positions and self._decoder is None else {}
        options[self._cache_name] = cache
        (self._decoder or self.model)(input_ids=input_ids, use_cache=True, **options)
        return cache

    def _last_logits(
        self,
        input_ids: Int[Tensor, "row token"],
        last: Int[Tensor, " row"],
        token_ids: Sequence[int] | None,
        cache: Any | None = None,
    ) -> Float[Tensor, "row vocab"]:
        rows = torch.arange(len(last), device=self.device)
        inputs = {"input_ids": input_ids, self._cache_name: cache, "use_cache": cache is not None}
        return self._logits_at(inputs, rows, last, token_ids)

    def _tree_logits(
        self, tree: TokenTree, token_ids: Sequence[int] | None, cache: Any, prefix: int
    ) -> Float[Tensor, "continuation vocab"]:
        """Return the logits at the end of each continuation of the tree."""
        inputs = {
            "input_ids": tree.input_ids[None].to(self.device),
            "position_ids": (tree.depth[None] + prefix).to(self.device),
            "attention_mask": tree.masks_for(self.model.config, prefix, self.dtype, self.device),
            self._cache_name: lend(cache, 1),
            "use_cache": True,
        }
        last = tree.last.to(self.device)
        return self._logits_at(inputs, torch.zeros_like(last), last, token_ids)

    def _logits_at(
        self,
        inputs: dict[str, Any],
        rows: Int[Tensor, " place"],
        last: Int[Tensor, " place"],
        token_ids: Sequence[int] | None,
    ) -> Float[Tensor, "place vocab"]:
        """Run the model and return its logits at the positions (`rows`, `last`) of the batch."""
        if self._decoder is not None:
            states = self._decoder(**inputs).last_hidden_state[rows, last]
            head = self.model.get_output_embeddings()
            weight, bias = head.weight, head.bias
            if token_ids is not None:
                weight, bias = weight[list(token_ids)], None if bias is None else bias[list(token_ids)]
            return F.linear(states.float(), weight.float(), None if bias is None else bias.float())
        # Logits dominate memory in a long batch, so only the positions where a row ends are computed.
        kept, column = last.unique(return_inverse=True)
        if self._picks_positions:
            logits = self.model(**inputs, logits_to_keep=kept).logits[rows, column]
        else:
            logits = self.model(**inputs).logits[rows, last]
        return (logits if token_ids is None else logits[:, list(token_ids)]).float()

    def _columns(self, token_ids: Sequence[int] | None) -> int:
        return int(self.model.get_output_embeddings().weight.shape[0]) if token_ids is None else len(token_ids)

    @torch.inference_mode()
    def _find_plain_decoder(self) -> Any | None:
        """Return the model below the head if the head is a single linear layer, else None.

        Then only the requested rows of its matrix are used, at the requested tokens: with 262,144 words in the
        vocabulary the rest would cost more than the model. A trial finds models that scale or bound their logits.
        """
        decoder, head = self.model.base_model, self.model.get_output_embeddings()
        if decoder is self.model or not isinstance(head, torch.nn.Linear):
            return None
        trial = torch.arange(2, device=self.device)[None]
        states = getattr(decoder(input_ids=trial, use_cache=False), "last_hidden_state", None)
        if states is None:
            return None
        logits = self.model(input_ids=trial, use_cache=False).logits
        return decoder if torch.equal(head(states), logits) else None


def _cache_name(model: Any) -> str:
    """Return the name of the cache among the model's arguments: transformers renamed it in 5.24."""
    return "cache" if "cache" in inspect.signature(model.forward).parameters else "past_key_values"


def _limit(model: Any, tokenizer: Any, max_tokens: int | None) -> int:
    """Return the most tokens of a prompt."""
    positions = getattr(model.config.get_text_config(), "max_position_embeddings", None)
    known = [int(limit) for limit in (positions, tokenizer.model_max_length) if limit and limit < NO_LIMIT]
    most = min(known, default=NO_LIMIT)
    if max_tokens is not None and max_tokens > most:
        raise EncoderError(f"max_tokens is more than the model can read ({most}). Got {max_tokens} instead.")
    return most if max_tokens is None else max_tokens


def _special_tokens(tokenizer: Any) -> re.Pattern[str] | None:
    """Return a pattern that matches every special token of two characters or more."""
    added = tokenizer.added_tokens_decoder.values()
    names = {*tokenizer.all_special_tokens, *(str(token) for token in added if token.special)}
    written = sorted((name for name in names if len(name) > 1), key=lambda name: (-len(name), name))
    return re.compile("|".join(map(re.escape, written))) if written else None


def _check_not_empty(token_ids: Sequence[Sequence[int]], what: str) -> None:
    for row, ids in enumerate(token_ids):
        if not len(ids):
            raise InputError(f"a {what} must have one token or more. Got none (number {row}) instead.")
