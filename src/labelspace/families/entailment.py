"""`EntailmentScorer`: does the text, the premise, entail the label's verbalizer, the hypothesis?"""

from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any, final

import numpy as np
from numpy.typing import NDArray

from labelspace.checks import check_choice
from labelspace.config import EncodingConfig
from labelspace.errors import EncoderError
from labelspace.families.cross_encoder import TOKEN_BUDGET, CrossEncoder
from labelspace.labels import LabelSpace
from labelspace.progress import progress_bar

SCORES = ("log_odds", "logit")
ENTAILMENT_NAMES = (("entailment",), ("true", "yes"))


@final
class EntailmentScorer:
    """Scores labels by the entailment of an NLI cross-encoder, as a Scorer (BTZSC, sections 3.2 and 4).

    A model with one logit scores by that logit. A model with several scores by

        "log_odds"   s = l_ent - log(sum of exp of the other logits), the log-odds of entailment against the union
                     of the other classes (appendix C.1): the default
        "logit"      s = l_ent alone, as in section 4 and in the authors' own program

    The two can rank labels differently, because the bare logit ignores the other classes. Use `"logit"` to reproduce
    results that were published with bare logits.

    The entailment class is found by its name in the model's configuration: `entailment`, else `true` or `yes`, in any
    case. A model whose classes are LABEL_0, LABEL_1 needs `entailment_index`.

    Args:
        name: a sequence-classification model of transformers, a folder of `labelspace train-nli`, or a hub name.
        dtype: `"auto"`, `"float32"` or `"bfloat16"`.
        device: a torch device, or `"auto"`.
        token_budget: most tokens of a batch, padding included.
        max_tokens: most tokens of a pair; None: the encoder's limit. The text is cut, never the label.
        trust_remote_code: True allows the model to run its own code.
        revision: revision of the hub repository.
        offline: True never contacts the hub.
        score: `"log_odds"` or `"logit"`, see above.
        entailment_index: index of the entailment logit; None: found by name.
        verbose: True shows a bar on a terminal, plain lines elsewhere.

    Raises:
        EncoderNotFoundError: no folder, package or hub repository has this name.
        RemoteCodeError: the model brings code and `trust_remote_code` is False.
        EncoderError: the model cannot be opened as a cross-encoder, or its entailment class is unknown.
        ConfigError: an option is invalid.

    Example:
        >>> EntailmentScorer("tests/data/tiny-bert")            # doctest: +ELLIPSIS
        Traceback (most recent call last):
        labelspace.errors.EncoderError: 'tests/data/tiny-bert' lacks weights that classifying pairs needs ...

    Reference:
        "BTZSC: a benchmark for zero-shot text classification", sections 3.2 and 4, appendix C.1.
    """

    family = "nli"

    def __init__(
        self,
        name: str | Path,
        *,
        dtype: str = EncodingConfig.dtype,
        device: str = EncodingConfig.device,
        token_budget: int = TOKEN_BUDGET,
        max_tokens: int | None = None,
        trust_remote_code: bool = False,
        revision: str | None = None,
        offline: bool | None = None,
        score: str = "log_odds",
        entailment_index: int | None = None,
        verbose: bool = False,
    ) -> None:
        check_choice("score", score, SCORES)
        self.name = str(name)
        self.score = score
        self.verbose = verbose
        self.model = CrossEncoder.load(
            name,
            dtype=dtype,
            device=device,
            trust_remote_code=trust_remote_code,
            revision=revision,
            offline=offline,
            token_budget=token_budget,
            max_tokens=max_tokens,
        )
        self.entailment_index = choose_class(
            self.model, ENTAILMENT_NAMES, given=entailment_index, option="entailment_index"
        )

    @property
    def parameters(self) -> int:
        """The number of weights of the model."""
        return self.model.parameters

    @property
    def weights(self) -> Path:
        """The folder of the weights."""
        return self.model.weights

    def scores(self, texts: Sequence[str], space: LabelSpace) -> NDArray[np.float32]:
        """Score texts against a label space; see `classify.scorer.Scorer`.

        Args:
            texts: the premises.
            space: its verbalizers are the hypotheses.

        Returns:
            [text label] float32, higher is likelier, columns in the order of the label space.

        Raises:
            InputError: a text is not a string, or a verbalizer leaves no room for the text.
        """
        with progress_bar("scoring pairs", verbose=self.verbose) as report:
            blocks = self.model.logits(texts, space.verbalizers, report=report)
            return reduce_blocks(blocks, (len(texts), len(space)), self.entailment_index, self.score)

    def pair_scores(self, premises: Sequence[str], hypotheses: Sequence[str]) -> NDArray[np.float32]:
        """Score `premises[i]` with `hypotheses[i]`, for natural language inference.

        Args:
            premises: one text per pair; cut if the pair is too long.
            hypotheses: one text per pair; never cut.

        Returns:
            [pair] float32, higher means entailment is likelier.

        Raises:
            InputError: the lengths differ, a text is not a string, or a hypothesis leaves no room for its premise.
        """
        with progress_bar("scoring pairs", verbose=self.verbose) as report:
            blocks = self.model.pair_logits(premises, hypotheses, report=report)
            return reduce_blocks(blocks, (len(premises),), self.entailment_index, self.score)

    def describe(self) -> dict[str, Any]:
        """Return the model and how it scores, for a log or a result file."""
        return {
            **self.model.describe(),
            "family": self.family,
            "score": self.score,
            "entailment_index": self.entailment_index,
        }

    def __repr__(self) -> str:
        return f"EntailmentScorer({self.name!r}, score={self.score!r}, dtype={self.model.dtype!r})"


def choose_class(model: CrossEncoder, wanted: Sequence[Sequence[str]], *, given: int | None, option: str) -> int:
    """Return the index of the logit to score by: the one given, the only one, or the one with a wanted name.

    Args:
        model: the model, with its class names.
        wanted: groups of names to look for, see `class_index`.
        given: the index that the caller passed; None: look for a name.
        option: name of the caller's option, for messages.

    Raises:
        EncoderError: the index is out of range, or no class, or more than one, has a wanted name.
    """
    if given is not None:
        if isinstance(given, bool) or not isinstance(given, int) or not 0 <= given < model.classes:
            raise EncoderError(f"{option} must be a whole number below {model.classes}. Got {given!r} instead.")
        return given
    if model.classes == 1:
        return 0
    found = class_index(model.class_names, wanted)
    if found is None or found >= model.classes:
        listed = "; ".join(f"{index}: {', '.join(sorted(names))}" for index, names in model.class_names.items())
        words = ", ".join(repr(name) for group in wanted for name in group)
        raise EncoderError(
            f"cannot tell which of the {model.classes} classes of {model.name} to score by: exactly one should be "
            f"called {words}. Got {listed or 'no names'} instead; look at the model's card and pass {option}=..."
        )
    return found


def reduce_blocks(
    blocks: Iterable[NDArray[np.float32]], shape: tuple[int, ...], index: int, score: str
) -> NDArray[np.float32]:
    """Turn blocks of logits [some ... class] into scores: the only logit, a class's log-odds, or its bare logit."""
    found = np.empty(shape, dtype=np.float32)
    done = 0
    for block in blocks:
        bare = score == "logit" or block.shape[-1] == 1
        found[done : done + len(block)] = block[..., index] if bare else log_odds(block, index)
        done += len(block)
    return found


def class_index(class_names: Mapping[int, frozenset[str]], wanted: Sequence[Sequence[str]]) -> int | None:
    """Find the one class that has a wanted name.

    Args:
        class_names: the lower-case names of each class.
        wanted: groups of lower-case names; the first group that matches any class decides.

    Returns:
        The class, or None if no group matches, or the first that does matches several classes.

    Example:
        >>> class_index({0: frozenset({"entailment"}), 1: frozenset({"true"})}, [["entailment"], ["true", "yes"]])
        0
    """
    for group in wanted:
        found = [index for index, names in class_names.items() if not names.isdisjoint(group)]
        if found:
            return found[0] if len(found) == 1 else None
    return None


def log_odds(logits: NDArray[np.float32], index: int) -> NDArray[np.float32]:
    """Return the log-odds of one class: its logit minus the log-sum-exp of the others.

    If p is the softmax probability of the class, this is log(p / (1 - p)).

    Args:
        logits: [... class], two classes or more.
        index: the class, `0 <= index < class`.

    Returns:
        [...] float32.

    Example:
        >>> float(log_odds(np.array([[2.0, 0.5]], dtype=np.float32), 0)[0])
        1.5

    Reference:
        "BTZSC", appendix C.1, the entailment score of the three-way variant.
    """
    wide = logits.astype(np.float64)
    others = np.delete(wide, index, axis=-1)
    return (wide[..., index] - np.logaddexp.reduce(others, axis=-1)).astype(np.float32)
