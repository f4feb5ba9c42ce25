"""Model specifications of the benchmark: `embedding:all-MiniLM-L6-v2`, `nli:NAME`, `saved:NAME`, ...

    embedding:NAME[@POOLING]   a text encoder; cosine of text and verbalizer (paper, section 4)
    base:NAME                  a pretrained encoder without tuning; cosine of [CLS] vectors (paper, section 3.2)
    nli:NAME[@SCORE]           an NLI cross-encoder; log_odds of entailment, or the entailment logit as in the paper
    reranker:NAME[#FILE]       a reranker; relevance of the verbalizer to the text
    llm:NAME[#FILE]            a language model; probability of the answer's letter. FILE: a GGUF file in the folder
    saved:NAME                 a classifier saved by labelspace: its folder, or owner/name on the hub

A name without a kind is an embedding model. A folder saved by labelspace gets its kind from `labelspace.json`.
"""

import copy
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, final

import numpy as np
from numpy.typing import NDArray

from labelspace.bench.revision import model_revision
from labelspace.checks import check_choice, did_you_mean
from labelspace.config import EncodingConfig
from labelspace.errors import ConfigError
from labelspace.header import CLASSIFIER, NLI, kind_of, read_header
from labelspace.labels import LabelSpace

if TYPE_CHECKING:
    from labelspace.classify.scorer import Scorer
    from labelspace.encoders import Encoder

KINDS = ("embedding", "base", "nli", "reranker", "llm", "saved")
FAMILIES_OF_MODELS = {
    "base": "base encoder",
    "nli": "NLI cross-encoder",
    "reranker": "reranker",
    "embedding": "embedding",
    "llm": "LLM",
    "custom": "other",
}
"""Names of the families in tables, in the order of Table 2, then custom models."""

OTHER = "custom"
"""The family of a model outside the paper's families."""

POOLINGS = ("mean", "cls", "last")
WITH_GGUF = ("reranker", "llm")
NLI_SCORES = ("log_odds", "logit")


@final
@dataclass(frozen=True, kw_only=True)
class ModelSpec:
    """A model and the kind of scorer it is used as."""

    kind: str
    """`"embedding"`, `"base"`, `"nli"`, `"reranker"`, `"llm"` or `"saved"`."""

    name: str
    """Hub name, short name or folder."""

    pooling: str | None = None
    """Pooling of an embedding model: `"mean"`, `"cls"` or `"last"`; None: the model's own."""

    score: str | None = None
    """Score of an NLI cross-encoder: `"log_odds"` or `"logit"`; None: `"log_odds"`."""

    gguf_file: str | None = None
    """GGUF file of a language model or generative reranker, in its folder or repository."""

    def __post_init__(self) -> None:
        check_choice("the kind of a model", self.kind, KINDS)
        if not self.name.strip():
            raise ConfigError(f"{self.kind}: names no model; give a name or a folder after the colon.")
        if self.pooling is not None:
            if self.kind != "embedding":
                raise ConfigError(
                    f"{self.kind}:{self.name} takes no pooling. Got {self.pooling!r}; leave it out, or use embedding:."
                )
            check_choice("pooling", self.pooling, POOLINGS)
        if self.score is not None:
            if self.kind != "nli":
                raise ConfigError(f"{self.kind}:{self.name} takes no score. Got {self.score!r}; use nli:.")
            check_choice("score", self.score, NLI_SCORES)
        if self.gguf_file is not None and self.kind not in WITH_GGUF:
            raise ConfigError(
                f"{self.kind}:{self.name} takes no GGUF file. Got {self.gguf_file!r}; use {' or '.join(WITH_GGUF)}."
            )

    @classmethod
    def parse(cls, text: "str | ModelSpec") -> "ModelSpec":
        """Parse a specification.

        Args:
            text: the specification, see the top of this file.

        Raises:
            ConfigError: an unknown kind, or an option that this kind does not take.
            ModelFolderError: the `labelspace.json` of a saved model cannot be read.

        Example:
            >>> ModelSpec.parse("embedding:all-MiniLM-L6-v2@cls").pooling
            'cls'
            >>> print(ModelSpec.parse("intfloat/e5-base-v2"))
            embedding:intfloat/e5-base-v2
            >>> ModelSpec.parse("llm:models#tiny.gguf").gguf_file
            'tiny.gguf'
        """
        if isinstance(text, ModelSpec):
            return text
        if not isinstance(text, str) or not text.strip():
            raise ConfigError(f"a model is one word such as 'embedding:all-MiniLM-L6-v2'. Got {text!r} instead.")
        kind, colon, name = text.partition(":")
        if not colon or Path(text).is_dir():
            kind, name = _kind_of(text), text
        elif kind not in KINDS:
            raise ConfigError(
                f"a model is one of {', '.join(KINDS)}, a colon and a name. Got {text!r} instead."
                f"{did_you_mean(kind, KINDS)}"
            )
        name, option = _split(name, "@", True)
        name, gguf_file = _split(name, "#", kind in WITH_GGUF)
        as_score = kind == "nli"
        pooling, score = (None, option) if as_score else (option, None)
        return cls(kind=kind, name=name, pooling=pooling, score=score, gguf_file=gguf_file)

    def __str__(self) -> str:
        option = self.pooling or self.score
        option = f"@{option}" if option else ""
        gguf = f"#{self.gguf_file}" if self.gguf_file else ""
        return f"{self.kind}:{self.name}{option}{gguf}"

    @property
    def shown(self) -> str:
        """The folder name without its path; for other models the name."""
        folder = Path(self.name).expanduser()
        return folder.resolve().name if folder.is_dir() else self.name

    @property
    def family(self) -> str:
        """The family in tables: a key of `FAMILIES_OF_MODELS`."""
        return "embedding" if self.kind == "saved" else self.kind

    def folder_revision(self) -> str | None:
        """Return the revision of a model's folder or file without opening it; None for a name on the hub."""
        place = Path(self.name).expanduser() / (self.gguf_file or "")
        return model_revision(place) if place.exists() else None


@final
@dataclass(frozen=True, kw_only=True)
class OpenModel:
    """A model that is ready to score."""

    scorer: "Scorer"
    """The scorer: (texts, label space) -> scores."""

    spec: str
    """The specification, which names its records in the store; `harness:NAME` for a model of the btzsc package."""

    name: str
    """The model's own name, without its kind."""

    family: str
    """A key of `FAMILIES_OF_MODELS`."""

    parameters: int | None
    """Number of parameters; None: not counted."""

    revision: str | None
    """See `model_revision`; None: unknown."""

    describe: dict[str, Any]
    """Plain values for the record: dtype, pooling, prompts, template."""


@final
class EncoderScorer:
    """Score by the cosine of text and verbalizer (paper, section 4). The labels of a space are encoded once.

    Args:
        encoder: an open encoder.

    Example:
        >>> from labelspace import Encoder, LabelSpace
        >>> scorer = EncoderScorer(Encoder("tests/data/tiny-bert", dtype="float32"))
        >>> scorer.scores(["the match"], LabelSpace.from_names(["sports", "politics"])).shape
        (1, 2)
    """

    def __init__(self, encoder: "Encoder") -> None:
        self.encoder = encoder
        self._space: LabelSpace | None = None
        self._anchors: NDArray[np.float32] | None = None

    def scores(self, texts: Sequence[str], space: LabelSpace) -> NDArray[np.float32]:
        """Return [text label] cosines."""
        from labelspace.classify.anchors import anchor_matrix, cosines, encode_labels

        if self._anchors is None or space != self._space:
            self._space, self._anchors = space, anchor_matrix(encode_labels(self.encoder, space), space, "verbalizer")
        return cosines(self.encoder.encode(texts), self._anchors)


@final
class SavedScorer:
    """Score as a saved classifier by anchors does. The labels of another space are encoded once.

    Args:
        model: the opened model.

    Example:
        >>> from labelspace import LabelSpace, ZeroShotClassifier
        >>> clf = ZeroShotClassifier(["sports", "politics"], encoder="tests/data/tiny-bert").fit()
        >>> SavedScorer(clf).scores(["the match"], LabelSpace.from_names(["war", "peace", "art"])).shape
        (1, 3)
    """

    def __init__(self, model: Any) -> None:
        self.encoder: Encoder = model.encoder_
        self._model = model

    def scores(self, texts: Sequence[str], space: LabelSpace) -> NDArray[np.float32]:
        """Return what the model's own `scores` returns, [text label]."""
        from labelspace.classify.anchors import encode_labels

        if space != self._model.label_space_:
            self._model = copy.copy(self._model)
            self._model.label_space_, self._model.label_vectors_ = space, encode_labels(self.encoder, space)
        return self._model.scores(texts, space)


def open_model(
    spec: str | ModelSpec,
    *,
    dtype: str = "auto",
    device: str = "auto",
    token_budget: int | None = None,
    trust_remote_code: bool = False,
    revision: str | None = None,
    offline: bool | None = None,
) -> OpenModel:
    """Open a model of any family.

    Args:
        spec: a specification, see `ModelSpec.parse`.
        dtype: `"auto"`, `"float32"` or `"bfloat16"`; a saved model brings its own.
        device: a torch device, or `"auto"`.
        token_budget: maximum tokens of a batch; None: the family's default.
        trust_remote_code: True lets the model's own code run; never without.
        revision: revision of the hub repository.
        offline: True never asks the hub.

    Returns:
        The scorer and its facts for the record.

    Raises:
        ConfigError: an invalid specification or option.
        EncoderError: the model is missing or cannot be opened.
        ModelFolderError: a saved model is broken.

    Example:
        >>> model = open_model("embedding:tests/data/tiny-bert", dtype="float32")
        >>> model.family, model.parameters < 100_000, model.describe["dtype"]
        ('embedding', True, 'float32')
    """
    spec = ModelSpec.parse(spec)
    if spec.kind == "saved":
        return _open_saved(spec, device, trust_remote_code, offline)
    options: dict[str, Any] = {"dtype": dtype, "device": device, "trust_remote_code": trust_remote_code}
    options |= {"revision": revision, "offline": offline}
    if token_budget is not None:
        options["token_budget"] = token_budget
    if spec.kind in ("embedding", "base"):
        return _open_encoder(spec, options)
    return _open_family(spec, options)


def computed_dtype(
    spec: str | ModelSpec, dtype: str = "auto", device: str = "auto", offline: bool | None = None
) -> str:
    """Return the dtype that a model will compute in, which is part of a record's key; fetches one saved on the hub.

    Example:
        >>> computed_dtype("nli:some/model", "float32")
        'float32'
    """
    from labelspace.encoders.precision import choose_device, choose_dtype

    spec = ModelSpec.parse(spec)
    EncodingConfig(dtype=dtype, device=device)  # checks both
    if spec.kind == "saved":
        header = read_header(_saved_folder(spec, offline), CLASSIFIER)
        dtype = (header.get("encoding") or {}).get("dtype", dtype)  # None: words, or a consensus
    return str(choose_dtype(dtype, choose_device(device))).removeprefix("torch.")


def _split(name: str, sign: str, wanted: bool) -> tuple[str, str | None]:
    # The sign may be part of a folder's name.
    if not wanted or sign not in name or Path(name).is_dir():
        return name, None
    before, _, after = name.rpartition(sign)
    return before, after


def _kind_of(name: str) -> str:
    found = kind_of(Path(name.rpartition("#")[0] or name).expanduser())
    return {NLI: "nli", CLASSIFIER: "saved"}.get(str(found), "embedding")


def _open_encoder(spec: ModelSpec, options: dict[str, Any]) -> OpenModel:
    from labelspace.encoders import Encoder

    encoder = Encoder(spec.name, pooling="cls" if spec.kind == "base" else spec.pooling, **options)
    describe = {**encoder.describe(), "anchor": "verbalizer"}
    return _opened(spec, EncoderScorer(encoder), _parameters(encoder), encoder.folder, describe)


def _saved_folder(spec: ModelSpec, offline: bool | None) -> Path:
    from labelspace.classify.saved.fetching import model_folder

    return model_folder(Path(spec.name).expanduser(), offline=offline)


def _open_saved(spec: ModelSpec, device: str, trust_remote_code: bool, offline: bool | None) -> OpenModel:
    from labelspace.classify import load
    from labelspace.classify.by_anchors import Anchored
    from labelspace.corpus import Kind

    folder = _saved_folder(spec, offline)
    model: Any = load(folder, device=device, trust_remote_code=trust_remote_code)
    if model.reads_ is Kind.PAIRS:
        raise ConfigError(f"{spec} was fitted on pairs of texts, and the benchmark has single ones; leave it out.")
    scorer, anchored = model, isinstance(model, Anchored)
    encoder = getattr(model, "encoder_", None)  # None: words, or a consensus
    describe: dict[str, Any] = {"class": type(model).__name__, **({} if encoder is None else encoder.describe())}
    if anchored:
        scorer = SavedScorer(model)
        describe["anchor"] = model.anchor
    return _opened(spec, scorer, None if encoder is None else _parameters(encoder), folder, describe)


def _open_family(spec: ModelSpec, options: dict[str, Any]) -> OpenModel:
    if spec.kind == "nli":
        from labelspace.families import EntailmentScorer as Family

        options |= {"score": spec.score} if spec.score else {}
    elif spec.kind == "reranker":
        from labelspace.families import RerankerScorer as Family
    else:
        from labelspace.families import LLMScorer as Family
    if spec.kind in WITH_GGUF:
        options |= {"gguf_file": spec.gguf_file}
    scorer: Any = Family(spec.name, **options)
    return _opened(spec, scorer, scorer.parameters, scorer.weights, dict(scorer.describe()))


def _opened(
    spec: ModelSpec, scorer: "Scorer", parameters: int | None, weights: Path, describe: dict[str, Any]
) -> OpenModel:
    return OpenModel(
        scorer=scorer,
        spec=str(spec),
        name=spec.shown,
        family=spec.family,
        parameters=parameters,
        revision=model_revision(weights),
        describe=describe,
    )


def _parameters(encoder: "Encoder") -> int:
    return sum(weights.numel() for weights in encoder.backbone.model.parameters())
