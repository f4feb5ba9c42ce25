"""Models of the benchmark by one word each: `embedding:all-MiniLM-L6-v2`, `nli:NAME`, `saved:FOLDER`, ...

    embedding:NAME[@POOLING]   a text encoder; cosine of text and verbalizer (paper, section 4)
    base:NAME                  an encoder that nobody tuned, by its [CLS] vector (paper, section 3.2)
    nli:NAME[@SCORE]           a cross-encoder trained on NLI; log_odds of entailment, or its logit as in the paper
    reranker:NAME[#FILE]       a reranker; relevance of the verbalizer to the text
    llm:NAME[#FILE]            a language model; probability of the answer's letter. FILE: a GGUF file in the folder
    saved:FOLDER               a classifier that labelspace saved

A bare name is an embedding model; a bare folder that labelspace saved is what its `labelspace.json` says.
"""

import functools
import hashlib
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, final

import numpy as np
from numpy.typing import NDArray

from labelspace.checks import check_choice, did_you_mean
from labelspace.config import EncodingConfig
from labelspace.errors import ConfigError
from labelspace.header import CLASSIFIER, NLI, kind_of, read_header
from labelspace.labels import LabelSpace

if TYPE_CHECKING:
    from labelspace.classify.anchors import LabelVectors
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
"""What each family is called in a table, in the order of Table 2; last, models of another kind that somebody brings."""

OTHER = "custom"
"""The family of a model that is of none of the paper's."""

POOLINGS = ("mean", "cls", "last")
WITH_GGUF = ("reranker", "llm")
NLI_SCORES = ("log_odds", "logit")
WEIGHTS = (".safetensors", ".gguf")


@final
@dataclass(frozen=True, kw_only=True)
class ModelSpec:
    """Which model, and as what it is asked."""

    kind: str
    """`"embedding"`, `"base"`, `"nli"`, `"reranker"`, `"llm"` or `"saved"`."""

    name: str
    """Hub name, short name or folder."""

    pooling: str | None = None
    """Of an embedding model, in place of its own: `"mean"`, `"cls"` or `"last"`."""

    score: str | None = None
    """Of an NLI cross-encoder: `"log_odds"`, which None means too, or `"logit"`."""

    gguf_file: str | None = None
    """Of a language model or a generative reranker: the GGUF file in the folder or repository."""

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
        """Read a specification.

        Args:
            text: see the top of this file.

        Raises:
            ConfigError: an unknown kind, or an option that the kind does not have.
            ModelFolderError: a saved model whose `labelspace.json` cannot be read.

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
        """The name without the way to it, where it is a folder."""
        folder = Path(self.name).expanduser()
        return folder.resolve().name if folder.is_dir() else self.name

    @property
    def family(self) -> str:
        """The family that it is compared in: a key of `FAMILIES_OF_MODELS`."""
        return "embedding" if self.kind == "saved" else self.kind

    def folder_revision(self) -> str | None:
        """Return what tells the weights from others before anything is opened; None for a name on the hub."""
        folder = Path(self.name).expanduser()
        return weights_revision(folder) if folder.is_dir() else None


@final
@dataclass(frozen=True, kw_only=True)
class OpenModel:
    """A model that is ready to score."""

    scorer: "Scorer"
    """What turns (texts, label space) into scores."""

    spec: str
    """The specification, the name of its records in the store; `harness:NAME` for a model of the btzsc package."""

    name: str
    """The model's own name, without its kind."""

    family: str
    """A key of `FAMILIES_OF_MODELS`."""

    parameters: int | None
    """Number of weights; None where nobody counted."""

    revision: str | None
    """Commit of the hub, or `sha256:` and the start of the hash of the weights."""

    describe: dict[str, Any]
    """Plain values for the record: precision, pooling, prompts, template."""


@final
class EncoderScorer:
    """Scores by the cosine of text and label; the labels are encoded once for each label space.

    Args:
        encoder: an open encoder.
        anchor: what stands for a label, as in `ZeroShotClassifier`; the paper takes the verbalizer.
        space: a label space whose vectors are known.
        vectors: these vectors, by label name.

    Example:
        >>> from labelspace import Encoder, LabelSpace
        >>> scorer = EncoderScorer(Encoder("tests/data/tiny-bert", dtype="float32"))
        >>> scorer.scores(["the match"], LabelSpace.from_names(["sports", "politics"])).shape
        (1, 2)
    """

    def __init__(
        self,
        encoder: "Encoder",
        *,
        anchor: str = "verbalizer",
        space: LabelSpace | None = None,
        vectors: "dict[str, LabelVectors] | None" = None,
    ) -> None:
        self.encoder = encoder
        self.anchor = anchor
        self._space = space
        self._vectors = vectors

    def scores(self, texts: Sequence[str], space: LabelSpace) -> NDArray[np.float32]:
        """Return [text label] cosines, to the bit those of `ZeroShotClassifier` with the same anchor."""
        from labelspace.classify.anchors import anchor_matrix, cosines, encode_labels

        if self._vectors is None or space != self._space:
            self._space, self._vectors = space, encode_labels(self.encoder, space)
        return cosines(self.encoder.encode(texts), anchor_matrix(self._vectors, space, self.anchor))


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
        token_budget: most tokens of a batch; None: what the family takes.
        trust_remote_code: True lets the model's own code run; never without.
        revision: of the hub repository.
        offline: True never asks the hub.

    Returns:
        The scorer with what a record says of it.

    Raises:
        ConfigError: the specification or an option makes no sense.
        EncoderError: the model is not there or cannot be opened.
        ModelFolderError: a saved model is broken.

    Example:
        >>> model = open_model("embedding:tests/data/tiny-bert", dtype="float32")
        >>> model.family, model.parameters < 100_000, model.describe["dtype"]
        ('embedding', True, 'float32')
    """
    spec = ModelSpec.parse(spec)
    if spec.kind == "saved":
        return _open_saved(spec, device, trust_remote_code)
    options: dict[str, Any] = {"dtype": dtype, "device": device, "trust_remote_code": trust_remote_code}
    options |= {"revision": revision, "offline": offline}
    if token_budget is not None:
        options["token_budget"] = token_budget
    if spec.kind in ("embedding", "base"):
        return _open_encoder(spec, options)
    return _open_family(spec, options)


def computed_dtype(spec: str | ModelSpec, dtype: str = "auto", device: str = "auto") -> str:
    """Return the number format that a model will compute in: part of the name of a record.

    Example:
        >>> computed_dtype("nli:some/model", "float32")
        'float32'
    """
    from labelspace.encoders.precision import choose_device, choose_dtype

    spec = ModelSpec.parse(spec)
    EncodingConfig(dtype=dtype, device=device)  # checks both
    if spec.kind == "saved":
        dtype = read_header(Path(spec.name).expanduser(), CLASSIFIER).get("encoding", {}).get("dtype", dtype)
    return str(choose_dtype(dtype, choose_device(device))).removeprefix("torch.")


def weights_revision(place: Path) -> str | None:
    """Return what tells weights from others: the hub's commit, or the start of their hash.

    Args:
        place: the folder of a model on this machine, or its one file.

    Returns:
        None where the folder holds no weights.
    """
    folder = place.parent if place.is_file() else place
    if folder.parent.name == "snapshots":
        return folder.name
    if place.is_file():
        facts = place.stat()
        return f"sha256:{_hash(place, facts.st_size, facts.st_mtime_ns)[:16]}"
    files = sorted(path for path in folder.rglob("*") if path.suffix in WEIGHTS and path.is_file())
    if not files:
        return None
    digest = hashlib.sha256()
    for path in files:
        facts = path.stat()
        digest.update(f"{path.relative_to(folder).as_posix()} {_hash(path, facts.st_size, facts.st_mtime_ns)}".encode())
    return f"sha256:{digest.hexdigest()[:16]}"


@functools.lru_cache(maxsize=256)
def _hash(path: Path, size: int, changed: int) -> str:  # noqa: ARG001  a changed file is another entry
    with path.open("rb") as handle:
        return hashlib.file_digest(handle, "sha256").hexdigest()


def _split(name: str, sign: str, wanted: bool) -> tuple[str, str | None]:
    # A folder may have the sign in its name.
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
    return OpenModel(
        scorer=EncoderScorer(encoder),
        spec=str(spec),
        name=spec.shown,
        family=spec.family,
        parameters=_parameters(encoder),
        revision=weights_revision(encoder.folder),
        describe={**encoder.describe(), "anchor": "verbalizer"},
    )


def _open_saved(spec: ModelSpec, device: str, trust_remote_code: bool) -> OpenModel:
    from labelspace.classify import load
    from labelspace.classify.by_anchors import Anchored
    from labelspace.corpus import Kind

    folder = Path(spec.name).expanduser()
    model: Any = load(folder, device=device, trust_remote_code=trust_remote_code)
    if model.reads_ is Kind.PAIRS:
        raise ConfigError(f"{spec} was fitted on pairs of texts, and the benchmark has single ones; leave it out.")
    scorer, anchored = model, isinstance(model, Anchored)
    describe: dict[str, Any] = {"class": type(model).__name__, **model.encoder_.describe()}
    if anchored:  # what others learnt is more than their encoder
        scorer = EncoderScorer(
            model.encoder_, anchor=model.anchor, space=model.label_space_, vectors=model.label_vectors_
        )
        describe["anchor"] = model.anchor
    return OpenModel(
        scorer=scorer,
        spec=str(spec),
        name=spec.shown,
        family=spec.family,
        parameters=_parameters(model.encoder_) if hasattr(model, "encoder_") else None,
        revision=weights_revision(folder),
        describe=describe,
    )


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
    describe = dict(scorer.describe())
    return OpenModel(
        scorer=scorer,
        spec=str(spec),
        name=spec.shown,
        family=spec.family,
        parameters=scorer.parameters,
        revision=weights_revision(scorer.weights),
        describe=describe,
    )


def _parameters(encoder: "Encoder") -> int:
    return sum(weights.numel() for weights in encoder.backbone.model.parameters())
