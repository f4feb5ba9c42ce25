"""Documents from stdin and predictions on stdout, a line each."""

import codecs
import os
import sys
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

from labelspace.cli.printing import harmless, note, print_json
from labelspace.errors import InputError, warn
from labelspace.labels.document import SEPARATOR

if TYPE_CHECKING:
    from labelspace.corpus import Documents
    from labelspace.corpus.policy import DocumentPolicy

LINES_AT_ONCE = 256
_READ_BYTES = 64 * 1024
_LINE_BYTES = 64 * 1024 * 1024  # the limit for one row of a file


def read_lines() -> "Iterator[Documents]":
    """Yield the lines of stdin as they come: single lines from a terminal, blocks from a pipe or file."""
    from labelspace.corpus.documents import Documents, Kind
    from labelspace.corpus.policy import DocumentPolicy

    if sys.stdin.isatty():
        note(f"one document a line; {'Ctrl-Z and Enter' if os.name == 'nt' else 'Ctrl-D'} ends.")
    policy = DocumentPolicy(lambda position: f"stdin: line {position + 1}")
    stdin: Any = sys.stdin.buffer
    done, pending = 0, b""
    while piece := stdin.read1(_READ_BYTES):
        *lines, pending = (pending + piece).split(b"\n")
        if len(pending) > _LINE_BYTES:
            raise InputError(f"stdin: line {done + len(lines) + 1} is longer than {_LINE_BYTES // 1024**2} MB.")
        for start in range(0, len(lines), LINES_AT_ONCE):
            block = [line.removesuffix(b"\r") for line in lines[start : start + LINES_AT_ONCE]]
            if not done:
                block[0] = block[0].removeprefix(codecs.BOM_UTF8)
            yield from _cleaned(policy, block, done)
            done += len(block)
    if not done:
        pending = pending.removeprefix(codecs.BOM_UTF8)
    if pending:
        yield Documents(policy.clean([pending], done), Kind.TEXTS)
    for message in policy.notes().values():
        warn(message)


def _cleaned(policy: "DocumentPolicy", lines: list[bytes], done: int) -> "Iterator[Documents]":
    """Yield some lines as documents, also those before a line that cannot be read."""
    from labelspace.corpus.documents import Documents, Kind

    try:
        whole = policy.clean(lines, done)
    except InputError:
        for row, line in enumerate(lines):
            yield Documents(policy.clean([line], done + row), Kind.TEXTS)
        raise
    yield Documents(whole, Kind.TEXTS)


def print_predictions(
    model: Any, blocks: "Iterator[Documents]", *, all_scores: bool, top: int | None, as_json: bool, argilla: bool
) -> None:
    from labelspace.classify.long_texts import tell_cost

    for number, texts in enumerate(blocks):
        if not number:
            tell_cost(model, texts, more=len(texts) == LINES_AT_ONCE)
        answers = model.answers(texts)
        if argilla:
            for text, name, sure in zip(texts, answers.names, answers.confidence.tolist(), strict=True):
                print_json(_record(text, name, sure, several=answers.chosen is not None), indent=None)
            continue
        best = None if top is None else answers.top(min(top, len(answers.labels)))
        confidence = answers.confidence if as_json else ()
        for row, (text, name, score) in enumerate(zip(texts, answers.names, answers.score.tolist(), strict=True)):
            parts = text if isinstance(text, tuple) else (text,)
            if not as_json:
                print(name or "", f"{score:.4f}", *map(_flat, parts), sep="\t")
                continue
            every: dict[str, Any] = {"probability": float(confidence[row])}
            if answers.uncertainty is not None:
                every["uncertainty"] = float(answers.uncertainty[row])
            if all_scores:
                scores = dict(zip(answers.labels, answers.scores[row].tolist(), strict=True))
                every["scores"] = {label: scores[label] for label in model.classes_}
                if answers.chosen is not None:
                    likely = dict(zip(answers.labels, answers.probabilities[row].tolist(), strict=True))
                    every["probabilities"] = {label: likely[label] for label in model.classes_}
            if best is not None:
                sure = answers.probabilities[row, best[row]].tolist()
                likeliest = zip((answers.labels[column] for column in best[row]), sure, strict=True)
                every["top"] = [{"label": label, "probability": probability} for label, probability in likeliest]
            told = dict(zip(("text", "pair"), parts, strict=False))
            print_json({"label": name, "score": score, **every, **told}, indent=None)
        sys.stdout.flush()


def print_most_uncertain(
    model: Any,
    blocks: "Iterator[Documents]",
    top: int,
    *,
    all_scores: bool,
    as_json: bool,
    argilla: bool,
    verbose: bool,
) -> None:
    import pyarrow as pa

    from labelspace.classify.long_texts import tell_cost
    from labelspace.classify.tables.most_uncertain import most_uncertain_rows
    from labelspace.corpus.documents import Kind
    from labelspace.progress import progress_bar

    several = model.label_space_.several
    columns = ("text", "pair") if model.reads_ is Kind.PAIRS else ("text",)
    schema = pa.schema([(column, pa.string()) for column in columns])
    with progress_bar("predicting", verbose=verbose) as report:

        def rows() -> "Iterator[tuple[pa.RecordBatch, Documents]]":
            done = 0
            for texts in blocks:
                if not done:
                    tell_cost(model, texts, more=len(texts) == LINES_AT_ONCE)
                parts = zip(*texts.rows, strict=True) if len(columns) > 1 else (texts.rows,)
                yield pa.record_batch([pa.array(part, pa.string()) for part in parts], schema=schema), texts
                done += len(texts)
                report(done)

        found = most_uncertain_rows(model, rows(), schema, top, all_scores=all_scores)
    for row in found.to_pylist():
        name, parts = row["predicted_label"], [row[column] for column in columns]
        # A model that measures no uncertainty has no column of it.
        measures = [what for what in ("probability", "uncertainty") if f"predicted_{what}" in row]
        told = {what: row[f"predicted_{what}"] for what in measures}
        if argilla:
            text = tuple(parts) if len(parts) > 1 else parts[0]
            print_json(_record(text, name, told["probability"], several=several), indent=None)
        elif as_json:
            told |= {"label": name, "score": row["predicted_score"]}
            if all_scores:
                told["scores"] = {label: row[f"predicted_score:{label}"] for label in model.classes_}
                if several:
                    told["probabilities"] = {label: row[f"predicted_probability:{label}"] for label in model.classes_}
            print_json({**told, **dict(zip(columns, parts, strict=True))}, indent=None)
        else:
            shown = [f"{value:.4f}" for value in told.values()]
            print(*shown, name or "", *map(_flat, parts), sep="\t")


def _record(text: Any, label: str | None, probability: float, *, several: bool) -> dict[str, Any]:
    """Return a record for Argilla: its field `text`, and a suggestion for its question `label`."""
    parts = text if isinstance(text, tuple) else (text,)
    value = label.split(SEPARATOR) if label and several else label
    suggestion = {"value": value, "score": None if several else probability, "agent": "labelspace"}
    return {
        "fields": dict(zip(("text", "text_pair"), parts, strict=False)),
        "metadata": {"probability": probability},
        "suggestions": {"label": suggestion} if label else {},
    }


def _flat(text: str) -> str:
    """Return a text as one harmless line."""
    return harmless(" ".join(text.splitlines()))
