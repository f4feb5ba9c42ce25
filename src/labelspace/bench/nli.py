"""Natural language inference (NLI): measure how well a model scores entailed pairs above others.

The paper asks whether NLI ability predicts zero-shot classification (section 5.1, Figure 3b). The metric is the AUROC
of the pair scores, entailment against neutral and contradiction together, because it needs neither a threshold nor
probabilities (section 3.1).
"""

import hashlib
import os
import random
import statistics
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, final

import numpy as np
from numpy.typing import NDArray

from labelspace.bench.models import EncoderScorer, OpenModel, SavedScorer
from labelspace.bench.statistics import auroc
from labelspace.checks import check_number
from labelspace.corpus import DocumentTable, open_table
from labelspace.errors import InputError, ShapeError
from labelspace.seeds import child_seed

if TYPE_CHECKING:
    from labelspace.encoders import Encoder

ENTAILMENT = 0
"""The label of an entailed pair; 1 is neutral, 2 contradiction."""

MEAN = "mean"
"""The key of the mean in the result of `nli_auroc`."""

PUBLISHED_COLUMNS = {
    "anli_r1_dev": "anli_r1",
    "anli_r2_dev": "anli_r2",
    "anli_r3_dev": "anli_r3",
    "lingnli_val": "lingnli",
    "mnli_matched_dev": "mnli_m",
    "mnli_mismatched_dev_tok": "mnli_mm",
}
"""Source names in the data file -> columns of the published AUROC. The file has no WANLI and no FEVER-NLI."""

BLOCK = 4096

PairScorer = Callable[[list[str], list[str]], NDArray[np.float32]]


@final
@dataclass(frozen=True, kw_only=True)
class NLIPairs:
    """Pairs of sentences from one source."""

    premises: list[str]
    """[pair] premises."""

    hypotheses: list[str]
    """[pair] hypotheses."""

    is_entailment: NDArray[np.bool_]
    """[pair] True where the premise entails the hypothesis."""

    def __len__(self) -> int:
        return len(self.premises)


def load_nli(data: str | os.PathLike[str], *, limit: int | None = None, seed: int = 0) -> dict[str, NLIPairs]:
    """Read development pairs, grouped by source.

    Args:
        data: a file with the columns premise, hypothesis, label (0 entailment, 1 neutral, 2 contradiction) and source;
            or a folder with `dev.parquet` or `nli/dev.parquet` in it.
        limit: maximum pairs of each source, drawn without replacement, in file order; None: all.
        seed: seed of that draw.

    Returns:
        Source -> pairs, in file order. A source with only one kind of pair is left out: it has no AUROC.

    Raises:
        ColumnError: a column is missing.
        InputError: a missing or damaged file, an unknown label, or no source with both kinds of pairs.

    Example:
        >>> import pathlib, tempfile
        >>> row = '{"premise": "It rains.", "hypothesis": "It is wet.", "label": %d, "source": "mine"}'
        >>> with tempfile.TemporaryDirectory() as folder:
        ...     file = pathlib.Path(folder) / "dev.jsonl"
        ...     _ = file.write_text("\\n".join([row % 0, row % 2]))
        ...     load_nli(file)["mine"].is_entailment.tolist()
        [True, False]
    """
    if limit is not None:
        check_number("limit", limit, least=2, whole=True)
    file = _file(Path(data))
    found: dict[str, tuple[list[str], list[str], list[bool]]] = {}
    table = open_table(file, text_column="premise", id_column="source")  # labels as numbers
    open_table(file, text_column="hypothesis", id_column="label")  # raises if a column is missing
    row = 0
    for batch in table.batches():
        values = [batch.column(name).to_pylist() for name in ("premise", "hypothesis", "label", "source")]
        for premise, hypothesis, label, source in zip(*values, strict=True):
            _check_row(premise, hypothesis, label, source, table, row)
            premises, hypotheses, kinds = found.setdefault(source, ([], [], []))
            premises.append(premise)
            hypotheses.append(hypothesis)
            kinds.append(label == ENTAILMENT)
            row += 1
    sets = {source: _drawn(source, columns, limit, seed) for source, columns in found.items()}
    sets = {source: pairs for source, pairs in sets.items() if 0 < pairs.is_entailment.sum() < len(pairs)}
    if not sets:
        raise InputError(f"{file} has no source with entailed and other pairs; an AUROC needs both.")
    return sets


def nli_auroc(scorer_pairs: PairScorer, sets: Mapping[str, NLIPairs]) -> dict[str, float]:
    """Compute the AUROC of entailment against the rest, source by source.

    Args:
        scorer_pairs: (premises, hypotheses) -> [pair] scores, higher for entailment; such as
            `EntailmentScorer.pair_scores` or `encoder_pair_scores(encoder)`.
        sets: source -> pairs, see `load_nli`.

    Returns:
        Source -> AUROC from 0 to 1. `"mean"` is the unweighted mean over the sources of `PUBLISHED_COLUMNS`, for
        comparison with the paper; over all sources if none of those is present.

    Raises:
        InputError: no sets, or a score that is not finite.
        ShapeError: not one score per pair.

    Example:
        >>> pairs = NLIPairs(premises=["a b", "a b"], hypotheses=["a", "c"], is_entailment=np.array([True, False]))
        >>> def shared(premises, hypotheses):
        ...     return np.array([float(h in p) for p, h in zip(premises, hypotheses)], dtype=np.float32)
        >>> nli_auroc(shared, {"mine": pairs})
        {'mine': 1.0, 'mean': 1.0}

    Reference:
        BTZSC, sections 3.1 and 5.1.
    """
    if not sets:
        raise InputError("there are no NLI sets to score; load some with load_nli.")
    found: dict[str, float] = {}
    for source, pairs in sets.items():
        scores = np.asarray(scorer_pairs(pairs.premises, pairs.hypotheses), dtype=np.float64)
        if scores.shape != (len(pairs),):
            raise ShapeError(f"{source}: there must be one score for each of {len(pairs)} pairs. Got {scores.shape}.")
        found[source] = auroc(scores, pairs.is_entailment)
    meant = [value for source, value in found.items() if source in PUBLISHED_COLUMNS]
    return {**found, MEAN: statistics.fmean(meant or found.values())}


def pair_scorer(model: OpenModel) -> PairScorer | None:
    """Return a model's pair scorer: cosine for an encoder, entailment for a cross-encoder.

    Returns:
        None for a model that only scores texts against label spaces.

    Example:
        >>> from labelspace.bench.models import open_model
        >>> score = pair_scorer(open_model("tests/data/tiny-bert", dtype="float32"))
        >>> score(["it rains"], ["it is wet"]).shape
        (1,)
    """
    if isinstance(model.scorer, EncoderScorer | SavedScorer):
        return encoder_pair_scores(model.scorer.encoder)
    return getattr(model.scorer, "pair_scores", None)


def encoder_pair_scores(encoder: "Encoder") -> PairScorer:
    """Return a pair scorer: the cosine of premise and hypothesis (BTZSC, sections 3.1 and 4).

    As in classification, the premise is encoded as a text and the hypothesis as a label, each with its prompt.
    """

    def score(premises: list[str], hypotheses: list[str]) -> NDArray[np.float32]:
        blocks = []
        for at in range(0, len(premises), BLOCK):
            given = _unit(encoder.encode(premises[at : at + BLOCK], role="text"))
            followed = _unit(encoder.encode(hypotheses[at : at + BLOCK], role="label"))
            blocks.append((given * followed).sum(axis=1))
        return np.concatenate(blocks) if blocks else np.zeros(0, dtype=np.float32)

    return score


def nli_fingerprint(sets: Mapping[str, NLIPairs]) -> str:
    """Return a SHA-256 over all pairs and their labels."""
    digest = hashlib.sha256()
    for source, pairs in sets.items():
        for premise, hypothesis, kind in zip(pairs.premises, pairs.hypotheses, pairs.is_entailment, strict=True):
            digest.update(f"{source} {len(premise)} {len(hypothesis)} {int(kind)} {premise}{hypothesis}".encode())
    return digest.hexdigest()


def _unit(vectors: NDArray[np.float32]) -> NDArray[np.float32]:
    lengths = np.linalg.norm(vectors, axis=1, keepdims=True)
    return vectors / np.maximum(lengths, np.finfo(np.float32).tiny)


def _file(data: Path) -> Path:
    if not data.is_dir():
        return data
    found = next((path for path in (data / "dev.parquet", data / "nli" / "dev.parquet") if path.is_file()), None)
    if found is None:
        raise InputError(f"there is no dev.parquet with NLI pairs in {data}; give the folder or the file that has it.")
    return found


def _check_row(
    premise: object, hypothesis: object, label: object, source: object, table: DocumentTable, row: int
) -> None:
    for name, value in (("premise", premise), ("hypothesis", hypothesis), ("source", source)):
        if not isinstance(value, str):
            raise InputError(f"{table.place(row)}: column {name!r} must be text. Got {value!r} instead.")
    if isinstance(label, bool) or label not in (0, 1, 2):
        raise InputError(
            f"{table.place(row)}: column 'label' must be 0 (entailment), 1 (neutral) or 2 (contradiction). "
            f"Got {label!r} instead."
        )


def _drawn(
    source: str, columns: tuple[Sequence[str], Sequence[str], Sequence[bool]], limit: int | None, seed: int
) -> NLIPairs:
    rows = range(len(columns[0]))
    if limit is not None and limit < len(rows):
        rows = sorted(random.Random(child_seed(seed, "nli", source)).sample(rows, limit))
    premises, hypotheses, kinds = columns
    return NLIPairs(
        premises=[premises[row] for row in rows],
        hypotheses=[hypotheses[row] for row in rows],
        is_entailment=np.array([kinds[row] for row in rows], dtype=bool),
    )
