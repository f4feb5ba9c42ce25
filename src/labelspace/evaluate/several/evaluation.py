"""The evaluation of a classifier whose texts may have several labels, in blocks as that of one label a text."""

import hashlib
import time
from collections.abc import Iterable, Sequence
from dataclasses import replace
from typing import Any, final

import numpy as np
from numpy.typing import NDArray

from labelspace.classify import Classifier
from labelspace.classify.distinct import at_once
from labelspace.classify.long_texts import tell_cost
from labelspace.corpus import Documents, DocumentTable
from labelspace.corpus.label_sets import LabelSets, as_label_sets, check_label_sets, sets_of_column
from labelspace.errors import ConfigError, InputError
from labelspace.evaluate.baselines import BESIDE
from labelspace.evaluate.intervals import Copies
from labelspace.evaluate.origin import origin_of
from labelspace.evaluate.rejection import Rejections
from labelspace.evaluate.several.metrics import PairedSets, SetTally, Weights
from labelspace.evaluate.several.report import SeveralBaseline, SeveralEvaluation
from labelspace.labels.document import SEPARATOR
from labelspace.progress import progress_bar


def _as_sets(y: Any, names: Sequence[str], documents: int | None = None) -> LabelSets:
    return as_label_sets(y, names, n_documents=len(y) if documents is None else documents, separator=SEPARATOR)


def evaluate_sets(
    model: Classifier,
    documents: Documents,
    y: Any,
    *,
    beside: Classifier | None,
    rejections: Rejections | None,
    verbose: bool,
) -> SeveralEvaluation:
    """Evaluate a classifier of several labels on documents in memory; see `evaluate`."""
    sets = _as_sets(y, model.label_space_.names, len(documents))
    if not sets.known.any():
        raise InputError(f"y has no labels for any of the {len(documents)} documents; give some to compare with.")
    digest = hashlib.sha256()
    for document, own in zip(documents, sets.truth, strict=True):
        digest.update(f"{len(document)} {own.tobytes().hex()} {document}".encode())
    data = {"documents": len(documents), "sha256": digest.hexdigest()}
    size = at_once(len(model.label_space_))
    places = (slice(at, at + size) for at in range(0, len(documents), size))
    blocks = ((documents[place], LabelSets(*(part[place] for part in sets))) for place in places)
    return _evaluate(model, blocks, len(documents), data, beside, rejections, verbose=verbose)


def evaluate_sets_table(
    model: Classifier,
    table: DocumentTable,
    *,
    beside: Classifier | None,
    rejections: Rejections | None,
    verbose: bool,
) -> SeveralEvaluation:
    """Evaluate a classifier of several labels on a table that was opened with a label column; see `evaluate_table`."""
    names, column = model.label_space_.names, table.label_column
    rows, known = check_label_sets(table, names, SEPARATOR)  # before anything is encoded
    if not known:
        raise InputError(
            f"column {column!r} has no labels for any of the {rows} rows; give labelled ones to compare with."
        )
    table.check_documents()
    blocks = (
        (table.documents(batch), _as_sets(sets_of_column(batch.column(column).to_pylist()), names))
        for batch in table.batches()
    )
    return _evaluate(model, blocks, rows, table.fingerprint(), beside, rejections, verbose=verbose)


def _evaluate(
    model: Classifier,
    blocks: Iterable[tuple[Documents, LabelSets]],
    rows: int,
    data: dict[str, Any],
    beside: Classifier | None,
    rejections: Rejections | None,
    *,
    verbose: bool,
) -> SeveralEvaluation:
    if rejections is not None:
        raise ConfigError("a rejection curve is for one label a text; a text may have several labels here.")
    names = model.label_space_.names
    weights = Weights(len(names))
    tally = SetTally(names, weights.repeats)
    other = None if beside is None else _Beside(beside, names, weights.repeats)
    copies, seconds, done = Copies(), 0.0, 0
    with progress_bar("evaluating", verbose=verbose) as report:
        for texts, sets in blocks:
            tally.left_out += int((~sets.known).sum())
            documents, truth = texts.take(np.flatnonzero(sets.known).tolist()), sets.truth[sets.known]
            copies.add(documents)
            if not done:
                for one in (model, beside):
                    tell_cost(one, documents, more=len(texts) < rows)
            started = time.perf_counter()
            chosen = _chosen(model, documents)
            seconds += time.perf_counter() - started
            batch = weights.draw(len(documents))
            tally.add(truth, chosen, batch)
            if other is not None:
                other.add(documents, truth, chosen, batch)
            done += len(texts)
            report(done, rows)
    metrics = tally.metrics()
    copies.tell()
    return SeveralEvaluation(
        model=type(model).__name__,
        space=model.label_space_.name,
        metrics=metrics,
        intervals=tally.intervals(),
        per_label=tally.per_label(),
        baselines=() if other is None else (other.result(tally),),
        provenance=origin_of(model, data),
        seconds=seconds,
        documents_per_second=metrics.documents / max(seconds, 1e-9),
    )


@final
class _Beside:
    """Another model of the same labels, which may stand in another order."""

    def __init__(self, model: Classifier, names: Sequence[str], repeats: int) -> None:
        self._model = model
        self._places = [model.label_space_.names.index(name) for name in names]
        self._sets = PairedSets(names, repeats)

    def add(
        self,
        documents: Documents,
        truth: NDArray[np.bool_],
        chosen: NDArray[np.bool_],
        weights: NDArray[np.float64],
    ) -> None:
        """Count some documents; `chosen` are the sets of the model that is evaluated."""
        self._sets.add(truth, chosen, _chosen(self._model, documents)[:, self._places], weights)

    def result(self, tally: SetTally) -> SeveralBaseline:
        """Return this model's metrics, and the difference from it."""
        metrics = replace(self._sets.other.metrics(), left_out=tally.left_out)
        return SeveralBaseline(f"{BESIDE}{type(self._model).__name__}", metrics, self._sets.difference(tally))


def _chosen(model: Classifier, documents: Documents) -> NDArray[np.bool_]:
    chosen = model.answers(documents).chosen
    assert chosen is not None
    return chosen
