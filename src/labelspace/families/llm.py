"""`LLMScorer`: classification as a multiple-choice question to a language model (BTZSC benchmark, appendix C.3).

One forward pass per text, however many labels: the options stand in the prompt, each behind a symbol that is one token,
and the score of a label is the softmax of the next-token logits over the symbols in use.

The order of the labels matters, as it does to anyone who fills in such a form: another order puts another verbalizer
behind the same symbol. Column k is always label k of the space, but its numbers move when the labels change places.
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
# Prompts that are held and sorted together.
WINDOW = 1024

# What no reader would take for a Latin letter.
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


def option_symbols(
    encode: Callable[[Sequence[str]], list[list[int]]],
    *,
    context: str = CHOICE_SUFFIX,
    unknown: int | None = None,
    most: int = MOST_SYMBOLS,
) -> dict[str, int]:
    """Find strings that are one token each where the prompt ends.

    Letters come first (A to Z, a to z), then digits, Greek, Cyrillic and accented letters, and pairs of letters last.
    The prompt ends in a word, so most tokenizers go on with a blank and a letter as one token: then it is that token
    whose logit is read. Whether they do is seen on " A"; if not, the letter without the blank is taken.

    Args:
        encode: the tokenizer, without start and end tokens.
        context: what the prompt ends with.
        unknown: the id that stands for what the tokenizer does not know, if it has one.
        most: how many symbols are enough.

    Returns:
        Symbol to token id, in the order in which options get them; all ids are distinct.

    Example:
        A tokenizer of single bytes: the blank is a token of its own, so the bare letters are taken.

        >>> symbols = option_symbols(lambda texts: [list(text.encode()) for text in texts], most=3)
        >>> symbols
        {'A': 65, 'B': 66, 'C': 67}

    Reference:
        BTZSC benchmark, appendix C.3; it names letters only, and 77 labels need more than 52.
    """
    before, spaced = encode([context, f"{context} A"])
    blank = " " if len(spaced) == len(before) + 1 and spaced[:-1] == before and spaced[-1] != unknown else ""
    found: dict[str, int] = {}
    for symbol, ids in zip(_CANDIDATES, encode([f"{context}{blank}{each}" for each in _CANDIDATES]), strict=True):
        if len(found) == most:
            break
        one_more = len(ids) == len(before) + 1 and ids[:-1] == before
        if one_more and ids[-1] != unknown and ids[-1] not in found.values():
            found[symbol] = ids[-1]
    return found


@final
class LLMScorer:
    """Scores texts against labels by asking a language model which option fits.

    With a chat template the instructions are the system message (or stand in front of the question where the template
    has none), and the suffix begins the assistant's turn; without one the paper's strings follow one another.
    A text that is too long is cut at its end, the options and the suffix never. Special tokens inside a text or a
    verbalizer are taken apart, so that a document cannot speak for the assistant.

    Args:
        name: a folder, a hub name, or a `.gguf` file.
        gguf_file: the file to open in a folder or hub repository of GGUF files.
        dtype: `"auto"`, `"float32"` or `"bfloat16"`, of the weights.
        device: a torch device, or `"auto"`.
        token_budget: most tokens of a batch, padding counted in.
        max_tokens: tokens of a prompt that are read; None: as many as the model was made for.
        trust_remote_code: True lets the model's own code run; never without.
        revision: of the hub repository.
        offline: True never asks the hub.
        show_progress: True shows a bar on a terminal, plain lines elsewhere.

    Raises:
        EncoderNotFoundError: nothing stands behind the name.
        RemoteCodeError: the model brings code and `trust_remote_code` is False.
        EncoderError: it cannot be opened, or is no language model.
        ConfigError: an option makes no sense.
        MissingDependencyError: a GGUF file without the packages gguf and accelerate.

    Example:
        >>> from families.tiny_causal import tiny_causal  # random weights, as small as can be
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
        show_progress: bool = False,
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
        self.show_progress = show_progress
        self.symbols = option_symbols(
            partial(self.model.encode, start=False), unknown=self.model.tokenizer.unk_token_id
        )

    def scores(self, texts: Sequence[str], space: LabelSpace) -> NDArray[np.float32]:
        """Return the probability of each label among the options (C.3.1).

        Args:
            texts: the texts to classify.
            space: the labels; their verbalizers are the options, in their order.

        Returns:
            [text label], float32, above 0; rows sum to 1.

        Raises:
            InputError: `texts` is one string, or holds something else than strings.
            EncoderError: the tokenizer has too few symbols for so many labels, or the options alone are too long.
        """
        check_texts("texts", texts)
        token_ids = list(self._symbols_for(space).values())
        render = partial(self.prompt, space=space)
        scores = np.empty((len(texts), len(space)), dtype=np.float32)
        done = 0
        with progress_bar("asking", show=self.show_progress) as report:
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
        """Score each premise with the hypothesis at its place, for natural language inference.

        The same prompt with two options, `prompts.ENTAILMENT_OPTIONS`. The paper does not say how it asked.

        Args:
            premises: one text for each pair; cut where a prompt is too long.
            hypotheses: as many; never cut.

        Returns:
            [pair] float32, the log-odds of the first option against the second.

        Raises:
            InputError: the lengths differ, or one is not a string.
            EncoderError: the tokenizer has no two option symbols, or a hypothesis and the prompt alone are too long.
        """
        check_pairs(premises, hypotheses)
        space = LabelSpace.from_names(ENTAILMENT_OPTIONS, template="{label}")
        token_ids = list(self._symbols_for(space).values())
        scores = np.empty(len(premises), dtype=np.float32)
        with progress_bar("asking", show=self.show_progress) as report:
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
        """Return what the model reads for one text, before anything is cut off."""
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
        """The folder or GGUF file that the weights came from."""
        return self.model.weights

    def describe(self) -> dict[str, Any]:
        """Name, family, size, precision and prompt, for a log or a result file."""
        return {
            **self.model.describe(),
            "family": self.family,
            "chat_template": self.model.has_chat_template,
            "symbols": len(self.symbols),
        }

    def __repr__(self) -> str:
        return f"LLMScorer({self.name!r}, parameters={self.parameters})"
