"""Rerankers as scorers: how relevant is the label's verbalizer, a document, to the text, a query?

Two kinds: a cross-encoder reads the pair and gives a logit; a generative reranker is asked for "yes" or "no".
"""

from collections.abc import Sequence
from pathlib import Path
from typing import Any, final

import numpy as np
from numpy.typing import NDArray

from labelspace.config import EncodingConfig
from labelspace.errors import ConfigError, EncoderError
from labelspace.families.cross_encoder import (
    CrossEncoder,
    architectures,
    check_texts,
    find_folder,
    is_nli_folder,
)
from labelspace.families.entailment import choose_class, reduce_blocks
from labelspace.families.gguf import is_gguf
from labelspace.labels import LabelSpace
from labelspace.progress import progress_bar

RELEVANCE_NAMES = (("relevant",), ("entailment",), ("true", "yes"))


@final
class RerankerScorer:
    """Scores labels by a reranker's relevance, as a Scorer (BTZSC, sections 3.2 and 4).

    The text is the query and each verbalizer a document, as in the paper. The model's configuration says which
    kind it is:

        ...ForSequenceClassification    a cross-encoder; one logit is the score, of several the log-odds of the
                                        class called relevant, entailment, true or yes
        ...ForCausalLM, or a GGUF file  a generative reranker such as Qwen3-Reranker: the probability of "yes"
                                        against "no" (appendix C.2)

    A folder of `labelspace train-nli` is a cross-encoder, too.

    Args:
        name: a folder, a hub name, or a `.gguf` file.
        dtype: `"auto"`, `"float32"` or `"bfloat16"`.
        device: a torch device, or `"auto"`.
        token_budget: most tokens of a batch, padding counted in; None: what suits the kind.
        max_tokens: most tokens of a pair; None: as many as the encoder can read. The text is cut, never the label.
        trust_remote_code: True lets the model's own code run; never without.
        revision: of the hub repository.
        offline: True never asks the hub.
        instruction: what a generative reranker is told to look for; None: the paper's sentence.
        gguf_file: name of a GGUF file in the folder; makes it a generative reranker.
        relevant_index: which logit of a cross-encoder means relevant; None: found by name.
        show_progress: True shows a bar on a terminal, plain lines elsewhere.

    Raises:
        EncoderNotFoundError: nothing stands behind the name.
        RemoteCodeError: the model brings code and `trust_remote_code` is False.
        EncoderError: the model is of neither kind, cannot be opened, or no class is called relevant.
        ConfigError: an option makes no sense, alone or for this kind of model.

    Example:
        >>> RerankerScorer("tests/data/tiny-bert")              # doctest: +ELLIPSIS
        Traceback (most recent call last):
        labelspace.errors.EncoderError: 'tests/data/tiny-bert' is no reranker: ...

    Reference:
        "BTZSC: a benchmark for zero-shot text classification", sections 3.2 and 4, appendix C.2.
    """

    family = "reranker"

    def __init__(
        self,
        name: str | Path,
        *,
        dtype: str = EncodingConfig.dtype,
        device: str = EncodingConfig.device,
        token_budget: int | None = None,
        max_tokens: int | None = None,
        trust_remote_code: bool = False,
        revision: str | None = None,
        offline: bool | None = None,
        instruction: str | None = None,
        gguf_file: str | None = None,
        relevant_index: int | None = None,
        show_progress: bool = False,
    ) -> None:
        budget = EncodingConfig.token_budget if token_budget is None else token_budget
        EncodingConfig(dtype=dtype, device=device, max_tokens=max_tokens, token_budget=budget)
        self.name = str(name)
        self.show_progress = show_progress
        options: dict[str, Any] = {
            "dtype": dtype,
            "device": device,
            "max_tokens": max_tokens,
            "trust_remote_code": trust_remote_code,
            "revision": revision,
            "offline": offline,
        }
        if token_budget is not None:
            options["token_budget"] = token_budget
        generative = gguf_file is not None or is_gguf(name)
        generative = generative or _is_generative(name, trust_remote_code, revision, offline)
        if generative and relevant_index is not None:
            raise ConfigError("relevant_index is for rerankers with logits; a generative one has none, leave it out.")
        if not generative and instruction is not None:
            raise ConfigError("instruction is for generative rerankers; this one reads the pair alone, leave it out.")
        self.relevant_index: int | None = None
        if generative:
            from labelspace.families.generative_reranker import GenerativeReranker

            self.model: Any = GenerativeReranker(str(name), instruction=instruction, gguf_file=gguf_file, **options)
        else:
            self.model = CrossEncoder.load(name, **options)
            self.relevant_index = choose_class(
                self.model, RELEVANCE_NAMES, given=relevant_index, option="relevant_index"
            )

    @property
    def parameters(self) -> int:
        """How many weights the model has."""
        return int(self.model.parameters)

    @property
    def weights(self) -> Path | None:
        """The folder or GGUF file that the weights came from."""
        return self.model.weights

    def scores(self, texts: Sequence[str], space: LabelSpace) -> NDArray[np.float32]:
        """Score texts against a label space; see `classify.scorer.Scorer`.

        Args:
            texts: the queries.
            space: its verbalizers are the documents.

        Returns:
            [text label] float32, higher is likelier, columns in the order of the label space.

        Raises:
            InputError: a text is not a string, or a verbalizer alone fills a pair.
        """
        check_texts("texts", texts)
        if not len(texts):
            return np.empty((0, len(space)), dtype=np.float32)
        with progress_bar("reading pairs", show=self.show_progress) as report:
            if self.relevant_index is None:
                return self.model.score_texts(texts, space.verbalizers, report)
            blocks = self.model.logits(texts, space.verbalizers, report=report)
            return reduce_blocks(blocks, (len(texts), len(space)), self.relevant_index, "log_odds")

    def pair_scores(self, premises: Sequence[str], hypotheses: Sequence[str]) -> NDArray[np.float32]:
        """Score each premise, a query, with the hypothesis at its place, a document.

        A generative reranker is told the paper's sentence for entailment (C.2), unless it was given another.

        Args:
            premises: one text for each pair; cut where a pair is too long.
            hypotheses: as many; never cut.

        Returns:
            [pair] float32, higher means entailment is likelier.

        Raises:
            InputError: the lengths differ, one is not a string, or a hypothesis alone fills a pair.
        """
        with progress_bar("reading pairs", show=self.show_progress) as report:
            if self.relevant_index is None:
                return self.model.pair_scores(premises, hypotheses, report)
            blocks = self.model.pair_logits(premises, hypotheses, report=report)
            return reduce_blocks(blocks, (len(premises),), self.relevant_index, "log_odds")

    def describe(self) -> dict[str, Any]:
        """What scored, for a log or a result file."""
        return {**self.model.describe(), "family": self.family, "relevant_index": self.relevant_index}

    def __repr__(self) -> str:
        return f"RerankerScorer({self.name!r}, model={self.model!r})"


def _is_generative(name: str | Path, trust_remote_code: bool, revision: str | None, offline: bool | None) -> bool:
    folder = find_folder(name, trust_remote_code=trust_remote_code, revision=revision, offline=offline)
    named = architectures(folder)
    if is_nli_folder(folder) or any(kind.endswith("ForSequenceClassification") for kind in named):
        return False
    if any(kind.endswith("ForCausalLM") for kind in named):
        return True
    raise EncoderError(
        f"{str(folder)!r} is no reranker: its config.json names {', '.join(named) or 'no architecture'}, "
        "neither ...ForSequenceClassification nor ...ForCausalLM; pass a reranker, or score by the encoder itself."
    )
