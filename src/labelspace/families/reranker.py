"""`RerankerScorer`: how relevant is the label's verbalizer to the text?"""

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
    """Scores labels by the relevance that a reranker gives them, as a Scorer (BTZSC, sections 3.2 and 4).

    The text is the query and each verbalizer a document, as in the paper. The model's configuration tells its kind:

        ...ForSequenceClassification    a cross-encoder: the score is the only logit or, with several, the log-odds of
                                        the class called relevant, entailment, true or yes
        ...ForCausalLM, or a GGUF file  a generative reranker such as Qwen3-Reranker: the score is the probability of
                                        "yes" against "no" (appendix C.2)

    Args:
        name: a folder, a hub name, or a `.gguf` file.
        dtype: `"auto"`, `"float32"` or `"bfloat16"`.
        device: a torch device, or `"auto"`.
        token_budget: most tokens of a batch, padding included; None: the default of the kind.
        max_tokens: most tokens of a pair; None: the model's limit. The text is cut, never the label.
        trust_remote_code: True allows the model to run its own code.
        revision: revision of the hub repository.
        offline: True never contacts the hub.
        instruction: what a generative reranker should retrieve; None: the paper's sentence.
        gguf_file: name of a GGUF file in the folder, for a generative reranker.
        relevant_index: index of a cross-encoder's relevance logit; None: found by name.
        verbose: True shows a bar on a terminal, plain lines elsewhere.

    Raises:
        EncoderNotFoundError: no folder, package or hub repository has this name.
        RemoteCodeError: the model brings code and `trust_remote_code` is False.
        EncoderError: the model is of neither kind, cannot be opened, or its relevant class is unknown.
        ConfigError: an option is invalid, or does not apply to this kind of model.

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
        verbose: bool = False,
    ) -> None:
        budget = EncodingConfig.token_budget if token_budget is None else token_budget
        EncodingConfig(dtype=dtype, device=device, max_tokens=max_tokens, token_budget=budget)
        self.name = str(name)
        self.verbose = verbose
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
            raise ConfigError("relevant_index is for cross-encoders; this is a generative reranker, leave it out.")
        if not generative and instruction is not None:
            raise ConfigError("instruction is for generative rerankers; this is a cross-encoder, leave it out.")
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
        """The number of weights of the model."""
        return int(self.model.parameters)

    @property
    def weights(self) -> Path | None:
        """The folder or GGUF file of the weights."""
        return self.model.weights

    def scores(self, texts: Sequence[str], space: LabelSpace) -> NDArray[np.float32]:
        """Score texts against a label space; see `classify.scorer.Scorer`.

        Args:
            texts: the queries.
            space: its verbalizers are the documents.

        Returns:
            [text label] float32, higher is likelier, columns in the order of the label space.

        Raises:
            InputError: a text is not a string, or a verbalizer leaves no room for the text.
        """
        check_texts("texts", texts)
        if not len(texts):
            return np.empty((0, len(space)), dtype=np.float32)
        with progress_bar("scoring pairs", verbose=self.verbose) as report:
            if self.relevant_index is None:
                return self.model.score_texts(texts, space.verbalizers, report)
            blocks = self.model.logits(texts, space.verbalizers, report=report)
            return reduce_blocks(blocks, (len(texts), len(space)), self.relevant_index, "log_odds")

    def pair_scores(self, premises: Sequence[str], hypotheses: Sequence[str]) -> NDArray[np.float32]:
        """Score the query `premises[i]` with the document `hypotheses[i]`.

        A generative reranker gets the paper's instruction for entailment (C.2), unless it was given another.

        Args:
            premises: one text per pair; cut if the pair is too long.
            hypotheses: one text per pair; never cut.

        Returns:
            [pair] float32, higher means entailment is likelier.

        Raises:
            InputError: the lengths differ, a text is not a string, or a hypothesis leaves no room for its premise.
        """
        with progress_bar("scoring pairs", verbose=self.verbose) as report:
            if self.relevant_index is None:
                return self.model.pair_scores(premises, hypotheses, report)
            blocks = self.model.pair_logits(premises, hypotheses, report=report)
            return reduce_blocks(blocks, (len(premises),), self.relevant_index, "log_odds")

    def describe(self) -> dict[str, Any]:
        """Return the model and how it scores, for a log or a result file."""
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
