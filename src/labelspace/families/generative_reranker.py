"""`GenerativeReranker`: a language model that says yes or no to every pair of text and label (BTZSC benchmark, C.2).

A prompt is instruction, query (the text), document (the label), and an end. All up to the document is the same for
every label, so its keys and values are computed once per text and shared by all labels.

    prefix         <|im_start|>system ... <Instruct>: I, <Query>: the text, <Document>:
    continuation   the blank before the label, the label, <|im_end|> ... </think>, empty line

What all continuations begin with, the template of the verbalizers, goes with the prefix; what some of them begin with
is computed once where the model can read a tree (`token_tree`).

Each is tokenised by itself, as Qwen's own code does with its prefix and suffix, and the prompt is defined as the two
joined. The blank goes with the label, since tokenizers join a blank to the word behind it: so the joined ids are those
of the whole string for the tokenizers of Qwen3 and Gemma 3.
"""

from collections.abc import Sequence
from pathlib import Path
from typing import Any, final

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from labelspace.config import EncodingConfig
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

# Texts whose prompts are held together.
WINDOW = 1024

# Tokens of a batch of pairs: nothing is shared there, and small batches are no slower.
PAIR_BUDGET = 2048

# Stands for a label while a prompt is cut in two; no special token, and nothing a template would trim.
_LABEL = "{label}"


@final
class GenerativeReranker:
    """Scores each pair of text and label by the probability of "yes" against "no" (C.2.1).

    A label's score depends on text and label alone: other labels, or another order, change nothing. (But a text that
    is too long is cut at its end so that the longest label still fits; labels and the prompt's own words are never
    cut.) Special tokens inside a text or a label are taken apart.

    The paper's strings are used where the tokenizer knows `<|im_start|>`. Other models get the same words in their chat
    template or, without one, as plain text with a line `Answer:` at the end (`prompts.judge_prompt_without_markers`).

    Args:
        name: a folder, a hub name, or a `.gguf` file.
        instruction: what to retrieve; None: `prompts.LABEL_RETRIEVAL`, and `prompts.NLI_RETRIEVAL` for `pair_scores`.
        dtype: `"auto"`, `"float32"` or `"bfloat16"`, of the weights.
        device: a torch device, or `"auto"`.
        token_budget: most tokens that a batch of labels may look at, the text counted in for each label; of a tree of
            labels, most nodes, up to 1,024.
        max_tokens: tokens of a prompt that are read; None: as many as the model was made for.
        trust_remote_code: True lets the model's own code run; never without.
        revision: of the hub repository.
        offline: True never asks the hub.
        gguf_file: the file to open in a folder or hub repository of GGUF files.

    Raises:
        EncoderNotFoundError: nothing stands behind the name.
        RemoteCodeError: the model brings code and `trust_remote_code` is False.
        EncoderError: it cannot be opened, is no language model, or "yes" and "no" are not one token each.
        ConfigError: an option makes no sense.
        MissingDependencyError: a GGUF file without the packages gguf and accelerate.

    Example:
        >>> from families.tiny_causal import tiny_causal  # random weights, as small as can be
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
        dtype: str = "auto",
        device: str = "auto",
        token_budget: int = 16_384,
        max_tokens: int | None = None,
        trust_remote_code: bool = False,
        revision: str | None = None,
        offline: bool | None = None,
        gguf_file: str | None = None,
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
            report: told how many texts are done.

        Returns:
            [text label], float32, 0 to 1; each entry by itself, rows sum to nothing in particular.

        Raises:
            InputError: `texts` or `labels` is one string, or holds something else than strings.
            EncoderError: a label and the prompt's own words alone are too long.
        """
        check_texts("texts", texts)
        check_texts("labels", labels)
        scores = np.empty((len(texts), len(labels)), dtype=np.float32)
        if not len(labels):
            return scores
        continuations = self._continuations(labels)
        # Verbalizers of one template begin alike: what all begin with is computed once as well.
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
                    token_budget=self.config.token_budget,
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
        """Return the probability of "yes" for each premise, the query, with the hypothesis at its place, the document.

        Args:
            premises: one text for each pair; cut where a prompt is too long.
            hypotheses: as many; never cut.
            report: told how many pairs are done.

        Returns:
            [pair], float32, 0 to 1.

        Raises:
            InputError: the lengths differ, or one is not a string.
            EncoderError: a hypothesis and the prompt's own words alone are too long.
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
        """Return what the model reads for one text and one label, before anything is cut off."""
        prefix, suffix = self._around(self.model.without_markers(text))
        return f"{prefix} {self.model.without_markers(label)}{suffix}"

    @property
    def weights(self) -> Path | None:
        """The folder or GGUF file that the weights came from."""
        return self.model.weights

    def describe(self) -> dict[str, Any]:
        """Name, family, size, precision and prompt, for a log or a result file."""
        return {**self.model.describe(), "family": self.family, "prompt": self.style, "instruction": self.instruction}

    def __repr__(self) -> str:
        return f"GenerativeReranker({self.name!r}, parameters={self.parameters})"

    def _score_without_cache(self, texts: Sequence[str], labels: Sequence[str]) -> NDArray[np.float32]:
        """Return what `score_texts` does, every pair as a whole prompt: slow, to check the cache against."""
        continuations = self._continuations(labels)
        joined = [
            [*prefix, *ids] for prefix in self._prefixes(texts, continuations) for ids in continuations
        ]  # text by text, label by label
        logits = self.model.next_token_logits(
            joined, token_ids=[self.yes_id, self.no_id], token_budget=self.config.token_budget
        )
        return _yes(logits).reshape(len(texts), len(labels))

    def _style(self) -> str:
        tokenizer = self.model.tokenizer
        start = tokenizer.convert_tokens_to_ids("<|im_start|>")
        if start is not None and start != tokenizer.unk_token_id:
            return "paper"
        return "chat template" if self.model.has_chat_template else "plain"

    def _around(self, text: str, instruction: str | None = None) -> tuple[str, str]:
        """Return the strings before and after the blank and the label."""
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
        """Return the token ids of all up to the label, the texts cut so that the longest label still fits."""
        most = self.model.max_tokens - max(len(ids) for ids in continuations)
        clean = [self.model.without_markers(text) for text in texts]
        return self.model.encode_within(clean, lambda text: self._around(text, instruction)[0], most)

    def _continuations(self, labels: Sequence[str]) -> list[list[int]]:
        suffix = self._around("")[1]
        return self.model.encode([f" {self.model.without_markers(label)}{suffix}" for label in labels], start=False)

    def _answers(self) -> tuple[int, int]:
        """Return the ids of yes and no where the prompt ends; with a blank in front only where it must be."""
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
    """Return with how many tokens all begin, and leave one token at least to each."""
    most = min(map(len, token_ids)) - 1
    return next((place for place in range(most) if len({ids[place] for ids in token_ids}) > 1), most)


def _yes(logits: Tensor) -> NDArray[np.float32]:
    """Return the probability of the first of two columns (C.2.1): a softmax over two is a sigmoid of the difference."""
    return torch.sigmoid(logits[:, 0] - logits[:, 1]).numpy()
