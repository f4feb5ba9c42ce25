"""The evaluation of a classifier whose texts may have several labels, in blocks as that of one label a text."""

import hashlib
import time
from collections.abc import Iterable, Sequence
from typing import Any

import numpy as np

from labelspace.classify import Classifier
from labelspace.classify.distinct import at_once
from labelspace.corpus import Documents, DocumentTable
from labelspace.corpus.label_sets import LabelSets, as_label_sets, check_label_sets, sets_of_column
from labelspace.errors import ConfigError, InputError
from labelspace.evaluate.origin import origin_of
from labelspace.evaluate.rejection import Rejections
from labelspace.evaluate.several import SetTally, SeveralEvaluation
from labelspace.labels.document import SEPARATOR
from labelspace.progress import progress_bar


def _as_sets(y: Any, names: Sequence[str], documents: int | None = None) -> LabelSets:
    return as_label_sets(y, names, n_documents=len(y) if documents is None else documents, separator=SEPARATOR)


def evaluate_sets(
    model: Classifier, documents: Documents, y: Any, rejections: Rejections | None, *, verbose: bool
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
    return _evaluate(model, blocks, len(documents), data, rejections, verbose=verbose)


def evaluate_sets_table(
    model: Classifier, table: DocumentTable, rejections: Rejections | None, *, verbose: bool
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
    return _evaluate(model, blocks, rows, table.fingerprint(), rejections, verbose=verbose)


def _evaluate(
    model: Classifier,
    blocks: Iterable[tuple[Documents, LabelSets]],
    rows: int,
    data: dict[str, Any],
    rejections: Rejections | None,
    *,
    verbose: bool,
) -> SeveralEvaluation:
    if rejections is not None:
        raise ConfigError("a rejection curve is for one label a text; a text may have several labels here.")
    tally = SetTally(model.label_space_.names)
    seconds, done = 0.0, 0
    with progress_bar("evaluating", verbose=verbose) as report:
        for texts, sets in blocks:
            tally.left_out += int((~sets.known).sum())
            started = time.perf_counter()
            answers = model.answers(texts.take(np.flatnonzero(sets.known).tolist()))
            seconds += time.perf_counter() - started
            assert answers.chosen is not None
            tally.add(sets.truth[sets.known], answers.chosen)
            done += len(texts)
            report(done, rows)
    metrics = tally.metrics()
    return SeveralEvaluation(
        model=type(model).__name__,
        space=model.label_space_.name,
        metrics=metrics,
        per_label=tally.per_label(),
        provenance=origin_of(model, data),
        seconds=seconds,
        documents_per_second=metrics.documents / max(seconds, 1e-9),
    )
