"""`evaluate`: a fitted classifier on labelled documents, beside two untrained baselines.

Documents are processed in blocks of 4,096, fewer with thousands of labels: the window that `predict` encodes together.
So memory hardly grows with their number. Documents without a label are not encoded.
"""

import hashlib
import time
from collections.abc import Iterable, Sequence
from typing import Any

from sklearn.utils.validation import check_is_fitted

from labelspace.classify import Answers, BiEncoderClassifier, Classifier
from labelspace.classify.base import Answering
from labelspace.classify.by_anchors import Anchored
from labelspace.classify.distinct import at_once
from labelspace.classify.fitted import answerer
from labelspace.classify.long_texts import in_full, tell_cost
from labelspace.corpus import Documents, as_targets, open_table
from labelspace.corpus.documents import check_kind
from labelspace.errors import ConfigError, InputError
from labelspace.evaluate.baselines import Vectors, compared_with
from labelspace.evaluate.intervals import Copies, score_intervals
from labelspace.evaluate.metrics import Tally
from labelspace.evaluate.origin import origin_of
from labelspace.evaluate.rejection import Rejections
from labelspace.evaluate.report import Evaluation
from labelspace.evaluate.several.evaluation import evaluate_sets, evaluate_sets_table
from labelspace.evaluate.several.report import SeveralEvaluation
from labelspace.progress import progress_bar

Block = tuple[Documents, Sequence[int]]


def evaluate(
    model: Classifier,
    X: Any,
    y: Any,
    *,
    none: bool = False,
    baselines: bool = True,
    beside: Classifier | None = None,
    rejections: Rejections | None = None,
    verbose: bool = False,
) -> Evaluation | SeveralEvaluation:
    """Evaluate a classifier on labelled documents, beside the untrained encoder.

    Macro-F1 and accuracy (with several labels micro-F1, macro-F1 and the share of exact sets) have 95 % intervals, and
    so have their differences from what the model is compared with. They hold if the documents were drawn at random from
    those that the model is for, and none was used to fit it.

    Args:
        model: a fitted classifier.
        X: [text] documents: list, numpy, pandas, polars, Arrow, Hugging Face dataset, pathlib.Path. For a model fitted
            on pairs, pairs of texts; these have no baselines.
        y: [text] label names; documents with a missing label (None, NaN, -1) are left out and counted. Where a text
            may have several labels, an indicator matrix in the order of `classes_`, or a list of names a document; an
            empty list means that no label applies.
        none: whether documents without a label fit no label, rather than being left out. Then an abstention is right
            there, and "none of these" is one of the classes of the figures. With several labels this is always so.
        baselines: False skips the untrained baselines, and with them the second encoding of the documents.
        beside: another fitted classifier of the same labels, to compare with on the same documents. Both abstain, or
            cut, by their own limits.
        rejections: collects each document's correctness and uncertainty, for `Rejections.curves`; None: no collection.
        verbose: True shows how far it is.

    Returns:
        An `Evaluation`. The baselines always name a label: threshold and limit apply to the models only. Where a text
        may have several labels, a `SeveralEvaluation`, whose only baseline is `beside`: the pool that would set the
        cuts of the others is gone.

    Raises:
        ConfigError: `model` or `beside` is not a labelspace classifier, `beside` has other labels, or `rejections` with
            several labels.
        InputError: an invalid document, an unknown label, no label at all, or `y` and `X` differ in length.

    Warns:
        LabelSpaceWarning: more than a tenth of the documents repeat another; if they are copies, intervals are too
            narrow.

    Example:
        >>> from labelspace import ZeroShotClassifier
        >>> clf = ZeroShotClassifier(["sports", "politics"], encoder="tests/data/tiny-bert").fit()
        >>> found = evaluate(clf, ["the match", "the vote", "a film"], ["sports", "politics", None])
        >>> found.metrics.documents, found.metrics.left_out, found.confusion.shape
        (2, 1, (2, 3))
        >>> [baseline.name for baseline in found.baselines]
        ['untrained: nearest verbalizer', 'untrained: mean of descriptions']
        >>> evaluate(clf, ["the match", "a film"], ["sports", None], none=True).labels
        ('sports', 'politics', 'none of these')
    """
    model, beside = _checked(model, "model"), _checked_beside(beside, model)
    documents = model.read(X)
    if model.label_space_.several:
        return evaluate_sets(model, documents, y, beside=beside, rejections=rejections, verbose=verbose)
    targets = as_targets(y, model.label_space_.names, n_documents=len(documents))
    if not none and all(target < 0 for target in targets):
        raise InputError(f"y has no label for any of the {len(targets)} documents; give labelled ones to compare with.")
    digest = hashlib.sha256()
    for document, target in zip(documents, targets, strict=True):
        digest.update(f"{len(document)} {target} {document}".encode())
    data = {"documents": len(documents), "sha256": digest.hexdigest()}
    size = at_once(len(model.label_space_))
    blocks = ((documents[at : at + size], targets[at : at + size]) for at in range(0, len(documents), size))
    given: dict[str, Any] = {"none": none, "baselines": baselines, "beside": beside, "rejections": rejections}
    return _evaluate(model, blocks, len(documents), data, **given, verbose=verbose)


def evaluate_table(
    model: Classifier,
    source: Any,
    *,
    text_column: str = "text",
    pair_column: str | None = None,
    label_column: str = "label",
    none: bool = False,
    baselines: bool = True,
    beside: Classifier | None = None,
    rejections: Rejections | None = None,
    delimiter: str = "auto",
    encoding: str = "auto",
    verbose: bool = False,
) -> Evaluation | SeveralEvaluation:
    """Evaluate a classifier on a table of labelled documents, read as a stream.

    Args:
        model: a fitted classifier.
        source: CSV, TSV, JSONL, Parquet (text also .gz), a glob, or a table in memory.
        text_column: the column with the documents.
        pair_column: the column with the second text, for a model fitted on pairs; there are no baselines then.
        label_column: the column with the label names; rows with an empty label are left out and counted. Where a text
            may have several labels, their names joined by `|`; an empty cell means that no label applies.
        none: whether rows with an empty label fit no label, as in `evaluate`.
        baselines: False skips the untrained baselines.
        beside: another fitted classifier of the same labels, as in `evaluate`.
        rejections: as in `evaluate`.
        delimiter: cell delimiter of CSV and TSV files, as in `open_table`.
        encoding: text encoding of CSV and TSV files, as in `open_table`.
        verbose: True shows how far it is.

    Returns:
        An `Evaluation`, or a `SeveralEvaluation` where a text may have several labels.

    Raises:
        ConfigError: `model` or `beside` cannot be taken, as in `evaluate`, or `rejections` with several labels.
        ColumnError: a column is missing.
        InputError: unreadable input, a row without a text, or an unknown label; raised before any document is encoded.

    Example:
        >>> import pyarrow as pa
        >>> from labelspace import ZeroShotClassifier
        >>> clf = ZeroShotClassifier(["sports", "politics"], encoder="tests/data/tiny-bert").fit()
        >>> table = pa.table({"text": ["the match", "the vote"], "label": ["sports", "politics"]})
        >>> evaluate_table(clf, table, baselines=False).metrics.documents
        2
    """
    model, beside = _checked(model, "model"), _checked_beside(beside, model)
    table = open_table(
        source,
        text_column=text_column,
        pair_column=pair_column,
        label_column=label_column,
        batch_rows=at_once(len(model.label_space_)),
        delimiter=delimiter,
        encoding=encoding,
    )
    check_kind(table.kind, model.reads_)
    names = model.label_space_.names
    if model.label_space_.several:
        return evaluate_sets_table(model, table, beside=beside, rejections=rejections, verbose=verbose)
    rows, labelled = table.check_labels(names)  # before anything is encoded
    table.check_documents()
    if not labelled and not none:
        raise InputError(
            f"column {label_column!r} has no label in any of the {rows} rows; give labelled ones to compare with."
        )
    blocks = (
        (table.documents(batch), as_targets(batch.column(label_column), names, n_documents=batch.num_rows))
        for batch in table.batches()
    )
    given: dict[str, Any] = {"none": none, "baselines": baselines, "beside": beside, "rejections": rejections}
    return _evaluate(model, blocks, rows, table.fingerprint(), **given, verbose=verbose)


def _checked(model: Any, name: str) -> Classifier:
    if not isinstance(model, Answering):
        raise ConfigError(f"{name} must be a fitted classifier of labelspace. Got {type(model).__name__} instead.")
    check_is_fitted(model)
    return answerer(model)


def _checked_beside(beside: Any, model: Classifier) -> Classifier | None:
    if beside is None:
        return None
    beside = _checked(beside, "beside")
    if model.label_space_.several is not beside.label_space_.several:
        one, other = ("several labels", "one label")[:: 1 if model.label_space_.several else -1]
        raise ConfigError(f"the model gives a text {one} and the model beside {other}; give two of a kind.")
    own, others = model.label_space_.names, beside.label_space_.names
    for what, lacking in (("lacks", set(own) - set(others)), ("also has", set(others) - set(own))):
        if lacking:
            raise ConfigError(
                f"the model beside {what} the label {min(lacking)!r}; two models can be compared where they have the "
                "same labels."
            )
    if beside.reads_ is not model.reads_:
        raise ConfigError(f"the model reads {model.reads_} and the model beside {beside.reads_}; give two of a kind.")
    return beside


def _evaluate(
    model: Classifier,
    blocks: Iterable[Block],
    rows: int,
    data: dict[str, Any],
    *,
    none: bool,
    baselines: bool,
    beside: Classifier | None,
    rejections: Rejections | None,
    verbose: bool,
) -> Evaluation:
    space = model.label_space_
    tally = Tally(space.names, none=none)
    others = compared_with(model, beside, baselines=baselines, none=none)
    copies, seconds, done = Copies(), 0.0, 0
    with progress_bar("evaluating", verbose=verbose) as report:
        for texts, targets in blocks:
            known = [row for row, target in enumerate(targets) if none or target >= 0]
            documents, own = texts.take(known), [targets[row] for row in known]
            if not done:
                for one in (model, beside):
                    tell_cost(one, documents, more=len(texts) < rows)
            tally.left_out += len(texts) - len(known)
            copies.add(documents)
            started = time.perf_counter()
            answers, vectors = _answers(model, documents)
            seconds += time.perf_counter() - started
            tally.add(own, answers.columns, answers.confidence)
            if rejections is not None and documents:
                # Ignore the model's threshold and limit: the curves show the effect of every limit.
                rejections.add(answers.likeliest == own, answers.probabilities, answers.uncertainty)
            for other in others:
                other.add(documents, own, answers.columns, vectors)
            done += len(texts)
            report(done, rows)
    metrics = tally.metrics()
    copies.tell()
    return Evaluation(
        model=type(model).__name__,
        space=space.name,
        metrics=metrics,
        intervals=score_intervals(tally.counts),
        per_label=tally.per_label(),
        labels=tally.names,
        none=none,
        counts=tally.counts,
        baselines=tuple(found for other in others for found in other.results(tally.left_out)),
        provenance=origin_of(model, data),
        seconds=seconds,
        documents_per_second=metrics.documents / max(seconds, 1e-9),
    )


def _answers(model: Classifier, documents: Documents) -> tuple[Answers, Vectors | None]:
    """Return the model's answers, and the documents' vectors if the untrained encoder would give the same ones."""
    if model.trains_encoder or not isinstance(model, Anchored) or not isinstance(model, BiEncoderClassifier):
        return model.answers(documents), None
    space, vectors = model.label_space_, model.encoder_.encode(documents.rows)
    judged = model.head_.judge_vectors(vectors, space)
    judged = in_full(model, documents, space, judged)
    return model.decision().answers(space.names, *judged), vectors
