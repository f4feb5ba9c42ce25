"""`GenerativeReranker`: a language model that says yes or no to every pair of text and label (BTZSC benchmark, C.2).

A prompt is instruction, query (the text), document (the label) and a suffix. The part before the label is computed once
per text; all labels share its keys and values.

    prefix         <|im_start|>system ... <Instruct>: I, <Query>: the text, <Document>:
    continuation   the blank before the label, the label, <|im_end|> ... </think>, empty line

The beginning that all continuations share (the template of the verbalizers) is computed with the prefix. A beginning
that some share is computed once if the model can read a tree (`token_tree`).

Prefix and continuation are tokenised separately, as in Qwen's own code, and joined. The blank goes with the label,
because tokenizers join a blank to the word after it: for the tokenizers of Qwen3 and Gemma 3 the joined ids equal those
of the whole string.
"""

from collections.abc import Sequence
from pathlib import Path
from typing import Any, final

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from labelspace.encoders.batching import windows
from labelspace.encoders.side_by_side import side_by_side
from labelspace.errors import EncoderError
from labelspace.families.causal import CausalModel
from labelspace.families.cross_encoder import check_pairs, check_texts
from labelspace.families.prompts import (
    JUDGE_INSTRUCTIONS,
    LABEL_RETRIEVAL,
    NLI_RETRIEVAL,
    judge_prompt,
    judge_prompt_without_markers,
    judge_question,
)
from labelspace.labels import LabelSpace
from labelspace.progress import Progress, silent

# Texts whose prompts are held in memory together.
WINDOW = 1024

# Tokens of a batch of pairs: pairs share no prefix, and small batches are no slower.
PAIR_BUDGET = 2048

# Placeholder for the label while a prompt is split in two; no special token, and templates do not trim it.
_LABEL = "{label}"


@final
class GenerativeReranker:
    """Scores each pair of text and label by the probability of "yes" against "no" (C.2.1).

    A score depends only on its text and label, not on other labels or their order. The exception is a text that is too
    long: its end is cut until the longest label fits. Labels and the prompt's own words are never cut. Special tokens
    inside a text or a label are broken up.

    The paper's strings are used if the tokenizer knows `<|im_start|>`. Other models get the same words in their chat
    template or, without one, as plain text with a final line `Answer:` (`prompts.judge_prompt_without_markers`).

    Args:
        name: a folder, a hub name, or a `.gguf` file.
        instruction: what to retrieve; None: `prompts.LABEL_RETRIEVAL`, and `prompts.NLI_RETRIEVAL` for `pair_scores`.
        token_budget: most tokens that a batch of labels attends to, the text counted for each label; for trees, most
            nodes of a tree, up to 1,024.

    The other arguments are those of `CausalModel.load`.

    Raises:
        EncoderError: it cannot be opened, is no language model, or "yes" and "no" are not one token each.

    Other errors are those of `CausalModel.load`.

    Example:
        >>> from families.tiny_causal import tiny_causal  # a tiny model with random weights
        >>> reranker = GenerativeReranker(tiny_causal("qwen3"), dtype="float32")
        >>> scores = reranker.score_texts(["the match was won late"], ["sports", "politics", "music"])
        >>> scores.shape, bool((scores > 0).all() and (scores < 1).all())
        ((1, 3), True)

    Reference:
        BTZSC benchmark, appendix C.2.
    """

    family = "reranker"

    def __init__(
        self,
        name: str | Path,
        *,
        instruction: str | None = None,
        token_budget: int = 16_384,
        **opening: Any,
    ) -> None:
        self.token_budget = token_budget
        self.model = CausalModel.load(name, **opening)
        self.name = str(name)
        self.parameters = self.model.parameters
        self.instruction = LABEL_RETRIEVAL if instruction is None else instruction
        self.pair_instruction = NLI_RETRIEVAL if instruction is None else instruction
        self.style = self._style()
        self.yes_id, self.no_id = self._answers()

    def score_texts(
        self, texts: Sequence[str], labels: Sequence[str], report: Progress = silent
    ) -> NDArray[np.float32]:
        """Return the probability of "yes" for every text and label: exp(yes) / (exp(yes) + exp(no)).

        Args:
            texts: the texts to classify.
            labels: the labels' texts.
            report: called with the number of texts done.

        Returns:
            [text label], float32, 0 to 1; entries are independent, so rows need not sum to 1.

        Raises:
            InputError: `texts` or `labels` is a single string, or an entry is not a string.
            EncoderError: the prompt is too long for a label even without a text.
        """
        check_texts("texts", texts)
        check_texts("labels", labels)
        scores = np.empty((len(texts), len(labels)), dtype=np.float32)
        if not len(labels):
            return scores
        continuations = self._continuations(labels)
        # Verbalizers of one template share their beginning; it is computed with the prefix.
        alike = _alike(continuations)
        begun, rests = continuations[0][:alike], [ids[alike:] for ids in continuations]
        done = 0
        for window in windows(texts, WINDOW):
            prefixes = [[*ids, *begun] for ids in self._prefixes(window, continuations)]
            first = done

            def judge(row: int, prefixes: list[list[int]] = prefixes) -> Tensor:
                return self.model.continue_from_prefix(
                    prefixes[row],
                    rests,
                    token_ids=[self.yes_id, self.no_id],
                    token_budget=self.token_budget,
                )

            longest_first = sorted(range(len(window)), key=lambda row: -len(prefixes[row]))
            for row, logits in side_by_side(judge, longest_first, self.model.device):
                scores[first + row] = _yes(logits)
                done += 1
                report(done, len(texts))
        return scores

    def pair_scores(
        self, premises: Sequence[str], hypotheses: Sequence[str], report: Progress = silent
    ) -> NDArray[np.float32]:
        """Return the probability of "yes" for the query `premises[i]` with the document `hypotheses[i]`.

        Args:
            premises: one text per pair; cut if the prompt is too long.
            hypotheses: one text per pair; never cut.
            report: called with the number of pairs done.

        Returns:
            [pair], float32, 0 to 1.

        Raises:
            InputError: the lengths differ, or a text is not a string.
            EncoderError: the prompt is too long for a hypothesis even without its premise.
        """
        check_pairs(premises, hypotheses)
        scores = np.empty(len(premises), dtype=np.float32)
        for start in range(0, len(premises), WINDOW):
            continuations = self._continuations(hypotheses[start : start + WINDOW])
            prompts = [
                [*self._prefixes([premise], [ids], self.pair_instruction)[0], *ids]
                for premise, ids in zip(premises[start : start + WINDOW], continuations, strict=True)
            ]
            logits = self.model.next_token_logits(
                prompts,
                token_ids=[self.yes_id, self.no_id],
                token_budget=PAIR_BUDGET,
                done=start,
                total=len(premises),
                report=report,
            )
            scores[start : start + len(prompts)] = _yes(logits)
        return scores

    def scores(self, texts: Sequence[str], space: LabelSpace) -> NDArray[np.float32]:
        """Return `score_texts` of the space's verbalizers, [text label]."""
        return self.score_texts(texts, space.verbalizers)

    def prompt(self, text: str, label: str) -> str:
        """Return the prompt for one text and one label, before truncation."""
        prefix, suffix = self._around(self.model.without_markers(text))
        return f"{prefix} {self.model.without_markers(label)}{suffix}"

    @property
    def weights(self) -> Path | None:
        """The folder or GGUF file of the weights."""
        return self.model.weights

    def describe(self) -> dict[str, Any]:
        """Return name, family, size, precision and prompt, for a log or a result file."""
        return {**self.model.describe(), "family": self.family, "prompt": self.style, "instruction": self.instruction}

    def __repr__(self) -> str:
        return f"GenerativeReranker({self.name!r}, parameters={self.parameters})"

    def _score_without_cache(self, texts: Sequence[str], labels: Sequence[str]) -> NDArray[np.float32]:
        """Return the same as `score_texts`, each pair as a whole prompt: slow, used to test the cache."""
        continuations = self._continuations(labels)
        joined = [
            [*prefix, *ids] for prefix in self._prefixes(texts, continuations) for ids in continuations
        ]  # text by text, label by label
        logits = self.model.next_token_logits(
            joined, token_ids=[self.yes_id, self.no_id], token_budget=self.token_budget
        )
        return _yes(logits).reshape(len(texts), len(labels))

    def _style(self) -> str:
        tokenizer = self.model.tokenizer
        start = tokenizer.convert_tokens_to_ids("<|im_start|>")
        if start is not None and start != tokenizer.unk_token_id:
            return "paper"
        return "chat template" if self.model.has_chat_template else "plain"

    def _around(self, text: str, instruction: str | None = None) -> tuple[str, str]:
        """Return the strings before the blank and after the label."""
        instruction = self.instruction if instruction is None else instruction
        if self.style == "chat template":
            whole = self.model.chat(JUDGE_INSTRUCTIONS, judge_question(instruction, text, _LABEL))
        else:
            write = judge_prompt if self.style == "paper" else judge_prompt_without_markers
            whole = write(instruction, text, _LABEL)
        prefix, _, suffix = whole.rpartition(f" {_LABEL}")
        return prefix, suffix

    def _prefixes(
        self, texts: Sequence[str], continuations: list[list[int]], instruction: str | None = None
    ) -> list[list[int]]:
        """Return the token ids before the label, with texts cut so that the longest label fits."""
        most = self.model.max_tokens - max(len(ids) for ids in continuations)
        clean = [self.model.without_markers(text) for text in texts]
        return self.model.encode_within(clean, lambda text: self._around(text, instruction)[0], most)

    def _continuations(self, labels: Sequence[str]) -> list[list[int]]:
        suffix = self._around("")[1]
        return self.model.encode([f" {self.model.without_markers(label)}{suffix}" for label in labels], start=False)

    def _answers(self) -> tuple[int, int]:
        """Return the ids of yes and no after the prompt; with a blank before them only if needed."""
        suffix = self._around("")[1]
        for blank in ("", " "):
            words = [suffix, f"{suffix}{blank}yes", f"{suffix}{blank}no"]
            before, yes, no = self.model.encode(words, start=False)
            one_more = all(len(ids) == len(before) + 1 and ids[:-1] == before for ids in (yes, no))
            if one_more and yes[-1] != no[-1] and self.model.tokenizer.unk_token_id not in (yes[-1], no[-1]):
                return yes[-1], no[-1]
        raise EncoderError(
            f"{self.name!r} cannot judge: its tokenizer has no single tokens for 'yes' and 'no'. "
            "Pass a generative reranker such as Qwen/Qwen3-Reranker-0.6B."
        )


def _alike(token_ids: Sequence[Sequence[int]]) -> int:
    """Return the length of the beginning that all share, leaving at least one token of each."""
    most = min(map(len, token_ids)) - 1
    return next((place for place in range(most) if len({ids[place] for ids in token_ids}) > 1), most)


def _yes(logits: Tensor) -> NDArray[np.float32]:
    """Return the softmax probability of the first of two columns (C.2.1), as a sigmoid of their difference."""
    return torch.sigmoid(logits[:, 0] - logits[:, 1]).numpy()
