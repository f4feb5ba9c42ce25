"""`LLMScorer`: classification as a multiple-choice question to a language model (BTZSC benchmark, appendix C.3).

One forward pass scores a text against all labels. The prompt lists each option after a symbol that is one token; the
score of a label is the softmax of the next-token logits over the symbols in use.

The order of the labels changes the scores, because it assigns other symbols to the verbalizers. Column k is always
label k of the space.
"""

import itertools
import string
from collections.abc import Callable, Sequence
from functools import partial
from pathlib import Path
from typing import Any, final

import numpy as np
from numpy.typing import NDArray

from labelspace.config import EncodingConfig
from labelspace.encoders.batching import windows
from labelspace.errors import EncoderError
from labelspace.families.causal import CausalModel
from labelspace.families.cross_encoder import check_pairs, check_texts
from labelspace.families.prompts import (
    CHOICE_INSTRUCTIONS,
    CHOICE_SUFFIX,
    ENTAILMENT_OPTIONS,
    choice_prompt,
    choice_question,
    pair_text,
)
from labelspace.labels import LabelSpace
from labelspace.progress import progress_bar

MOST_SYMBOLS = 200
# Prompts that are held in memory and sorted together.
WINDOW = 1024

# Letters that do not look like Latin ones.
_GREEK = "ΓΔΘΛΞΠΣΦΨΩαβγδεζηθλμξπσφψω"
_CYRILLIC = "БГДЖЗИЛПФЦЧШЩЫЭЮЯбгджзилптфцчшщыэюя"
_MARKED = "".join(chr(point) for point in range(0xC0, 0x180) if chr(point).isalpha())
_CANDIDATES = (
    *string.ascii_uppercase,
    *string.ascii_lowercase,
    *string.digits,
    *_GREEK,
    *_CYRILLIC,
    *_MARKED,
    *("".join(pair) for pair in itertools.product(string.ascii_uppercase, repeat=2)),
    *("".join(pair) for pair in itertools.product(string.ascii_lowercase, repeat=2)),
)


def option_symbols(encode: Callable[[Sequence[str]], list[list[int]]], *, unknown: int | None = None) -> dict[str, int]:
    """Find strings that are a single token at the end of the prompt.

    The candidates are letters (A to Z, a to z), then digits, Greek, Cyrillic and accented letters, then pairs of
    letters. The prompt ends in a word, so in most tokenizers a blank and a letter are one token, and the logit of that
    token is read. " A" shows whether this holds; if not, the letter without the blank is used.

    Args:
        encode: the tokenizer, without start and end tokens.
        unknown: the tokenizer's id for unknown tokens, if it has one.

    Returns:
        Symbol to token id, in the order of the options; all ids are distinct.

    Example:
        In a tokenizer of single bytes the blank is a token of its own, so the bare letters are used.

        >>> symbols = option_symbols(lambda texts: [list(text.encode()) for text in texts])
        >>> len(symbols), symbols["A"]
        (62, 65)

    Reference:
        BTZSC benchmark, appendix C.3. It uses letters only, but 77 labels need more than 52.
    """
    before, spaced = encode([CHOICE_SUFFIX, f"{CHOICE_SUFFIX} A"])
    blank = " " if len(spaced) == len(before) + 1 and spaced[:-1] == before and spaced[-1] != unknown else ""
    found: dict[str, int] = {}
    for symbol, ids in zip(_CANDIDATES, encode([f"{CHOICE_SUFFIX}{blank}{each}" for each in _CANDIDATES]), strict=True):
        if len(found) == MOST_SYMBOLS:
            break
        one_more = len(ids) == len(before) + 1 and ids[:-1] == before
        if one_more and ids[-1] != unknown and ids[-1] not in found.values():
            found[symbol] = ids[-1]
    return found


@final
class LLMScorer:
    """Scores texts against labels by asking a language model which option fits.

    With a chat template the instructions are the system message (or precede the question if the template has none), and
    the suffix begins the assistant's turn; without one the paper's strings are joined. If a prompt is too long, the end
    of the text is cut, never the options or the suffix. Special tokens inside a text or a verbalizer are broken up, so
    that a document cannot speak for the assistant.

    Args:
        name: a folder, a hub name, or a `.gguf` file.
        gguf_file: the file to open in a folder or hub repository of GGUF files.
        dtype: dtype of the weights, `"auto"`, `"float32"` or `"bfloat16"`.
        device: a torch device, or `"auto"`.
        token_budget: most tokens of a batch, padding included.
        max_tokens: most tokens of a prompt; None: the model's own limit.
        trust_remote_code: True allows the model to run its own code.
        revision: revision of the hub repository.
        offline: True never contacts the hub.
        verbose: True shows a bar on a terminal, plain lines elsewhere.

    Raises:
        EncoderNotFoundError: no folder, package or hub repository has this name.
        RemoteCodeError: the model brings code and `trust_remote_code` is False.
        EncoderError: it cannot be opened, or is no language model.
        ConfigError: an option is invalid.
        MissingDependencyError: a GGUF file needs the packages gguf and accelerate.

    Example:
        >>> from families.tiny_causal import tiny_causal  # a tiny model with random weights
        >>> scorer = LLMScorer(tiny_causal("qwen3"), dtype="float32")
        >>> space = LabelSpace.from_names(["sports", "politics"])
        >>> scores = scorer.scores(["the match was won late", "the law was passed"], space)
        >>> scores.shape, bool(abs(scores.sum(axis=1) - 1).max() < 1e-6)
        ((2, 2), True)

    Reference:
        BTZSC benchmark, appendix C.3.
    """

    family = "llm"

    def __init__(
        self,
        name: str | Path,
        *,
        gguf_file: str | None = None,
        dtype: str = "auto",
        device: str = "auto",
        token_budget: int = 2048,
        max_tokens: int | None = None,
        trust_remote_code: bool = False,
        revision: str | None = None,
        offline: bool | None = None,
        verbose: bool = False,
    ) -> None:
        self.config = EncodingConfig(dtype=dtype, device=device, max_tokens=max_tokens, token_budget=token_budget)
        self.model = CausalModel.load(
            name,
            dtype=dtype,
            device=device,
            max_tokens=max_tokens,
            trust_remote_code=trust_remote_code,
            revision=revision,
            offline=offline,
            gguf_file=gguf_file,
        )
        self.name = str(name)
        self.parameters = self.model.parameters
        self.verbose = verbose
        self.symbols = option_symbols(
            partial(self.model.encode, start=False), unknown=self.model.tokenizer.unk_token_id
        )

    def scores(self, texts: Sequence[str], space: LabelSpace) -> NDArray[np.float32]:
        """Return the probability of each label among the options (C.3.1).

        Args:
            texts: the texts to classify.
            space: the labels; their verbalizers are the options, in order.

        Returns:
            [text label], float32, above 0; rows sum to 1.

        Raises:
            InputError: `texts` is a single string, or an entry is not a string.
            EncoderError: the tokenizer has fewer symbols than there are labels, or the options alone are too long.
        """
        check_texts("texts", texts)
        token_ids = list(self._symbols_for(space).values())
        render = partial(self.prompt, space=space)
        scores = np.empty((len(texts), len(space)), dtype=np.float32)
        done = 0
        with progress_bar("asking the model", verbose=self.verbose) as report:
            for window in windows(texts, WINDOW):
                logits = self.model.next_token_logits(
                    self.model.encode_within(window, render, self.model.max_tokens),
                    token_ids=token_ids,
                    token_budget=self.config.token_budget,
                    done=done,
                    total=len(texts),
                    report=report,
                )
                scores[done : done + len(window)] = logits.softmax(dim=1).numpy()
                done += len(window)
        return scores

    def pair_scores(self, premises: Sequence[str], hypotheses: Sequence[str]) -> NDArray[np.float32]:
        """Score `premises[i]` with `hypotheses[i]`, for natural language inference.

        The prompt offers two options, `prompts.ENTAILMENT_OPTIONS`; the paper does not give its own.

        Args:
            premises: one text per pair; cut if the prompt is too long.
            hypotheses: one text per pair; never cut.

        Returns:
            [pair] float32, the log-odds of the first option against the second.

        Raises:
            InputError: the lengths differ, or a text is not a string.
            EncoderError: the tokenizer has fewer than two symbols, or a prompt is too long even without its premise.
        """
        check_pairs(premises, hypotheses)
        space = LabelSpace.from_names(ENTAILMENT_OPTIONS, template="{label}")
        token_ids = list(self._symbols_for(space).values())
        scores = np.empty(len(premises), dtype=np.float32)
        with progress_bar("asking the model", verbose=self.verbose) as report:
            for start in range(0, len(premises), WINDOW):
                pairs = zip(premises[start : start + WINDOW], hypotheses[start : start + WINDOW], strict=True)
                prompts = [self._pair_prompt(premise, hypothesis, space) for premise, hypothesis in pairs]
                logits = self.model.next_token_logits(
                    prompts,
                    token_ids=token_ids,
                    token_budget=self.config.token_budget,
                    done=start,
                    total=len(premises),
                    report=report,
                )
                scores[start : start + len(prompts)] = (logits[:, 0] - logits[:, 1]).numpy()
        return scores

    def _pair_prompt(self, premise: str, hypothesis: str, space: LabelSpace) -> list[int]:
        def render(premise: str) -> str:
            return self.prompt(pair_text(premise, hypothesis), space)

        return self.model.encode_within([premise], render, self.model.max_tokens)[0]

    def prompt(self, text: str, space: LabelSpace) -> str:
        """Return the prompt for one text, before truncation."""
        symbols = list(self._symbols_for(space))
        text = self.model.without_markers(text)
        verbalizers = [self.model.without_markers(verbalizer) for verbalizer in space.verbalizers]
        if not self.model.has_chat_template:
            return choice_prompt(text, symbols, verbalizers)
        question = choice_question(text, symbols, verbalizers).rstrip("\n")
        return self.model.chat(CHOICE_INSTRUCTIONS, question) + CHOICE_SUFFIX

    def _symbols_for(self, space: LabelSpace) -> dict[str, int]:
        if len(space) > len(self.symbols):
            raise EncoderError(
                f"the tokenizer of {self.name!r} has {len(self.symbols)} option symbols that are one token each. "
                f"Got {len(space)} labels instead; use fewer labels or another family of scorers."
            )
        return dict(itertools.islice(self.symbols.items(), len(space)))

    @property
    def weights(self) -> Path | None:
        """The folder or GGUF file of the weights."""
        return self.model.weights

    def describe(self) -> dict[str, Any]:
        """Return name, family, size, precision and prompt, for a log or a result file."""
        return {
            **self.model.describe(),
            "family": self.family,
            "chat_template": self.model.has_chat_template,
            "symbols": len(self.symbols),
        }

    def __repr__(self) -> str:
        return f"LLMScorer({self.name!r}, parameters={self.parameters})"
