"""Label a million documents: speed on one core, memory, and the same bytes after a kill.

    python benchmarks/million.py words      # a model of words: CSV, .csv.gz and Parquet; killed half-way and resumed
    python benchmarks/million.py encoder    # MiniLM: predict_file beside Encoder.encode of the same rows, pairs in turn

Rows of AG News, repeated; each has its own number in place of one word, so that no two are the same. The files are
written to a temporary folder, about a gigabyte for a million rows. The words are learnt from the labelled training
rows: a student of a consensus is of the same size. Run it on an otherwise idle machine.
"""

import argparse
import hashlib
import json
import os
import signal
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.csv as pa_csv
import pyarrow.parquet as pq
from measured import measure, seconds
from tasks import DATA, SOURCES, load_rows, load_task

from labelspace import ZeroShotClassifier
from labelspace.classify import WordsClassifier, predict_file

MINILM = "all-MiniLM-L6-v2"
FORMATS = ("csv", "csv.gz", "parquet")
PIECE = 50_000
SCHEMA = pa.schema([("id", pa.int64()), ("text", pa.string())])


def edited(texts: list[str], row: int) -> str:
    """Return the text of a row: one of `texts`, with the row's number in place of a word."""
    words = texts[row % len(texts)].split(" ")
    words[row // len(texts) * 7 % len(words)] = str(row)
    return " ".join(words)


def pieces(texts: list[str], rows: int) -> Iterator[pa.Table]:
    """Yield the rows as tables of `PIECE` rows."""
    for start in range(0, rows, PIECE):
        numbers = range(start, min(start + PIECE, rows))
        yield pa.table({"id": list(numbers), "text": [edited(texts, row) for row in numbers]}, schema=SCHEMA)


def write(path: Path, texts: list[str], rows: int) -> Path:
    """Write the rows to a file."""
    if path.suffix == ".parquet":
        with pq.ParquetWriter(path, SCHEMA) as writer:
            for piece in pieces(texts, rows):
                writer.write_table(piece)
        return path
    with pa.output_stream(str(path), compression="detect") as file, pa_csv.CSVWriter(file, SCHEMA) as writer:
        for piece in pieces(texts, rows):
            writer.write_table(piece)
    return path


def predict(model: Path, source: Path, target: Path, *more: str, until: Callable[[], bool] | None = None) -> Any:
    """Run `labelspace predict`, and return its seconds, those of the processor, and its peak memory in MiB.

    Args:
        model: the saved model.
        source: the file to read.
        target: the file to write.
        more: options.
        until: kill the command, by SIGKILL, as soon as this is true; None: let it end.
    """
    words = [sys.executable, "-m", "labelspace", "predict", str(model), str(source), str(target), "--quiet", *more]
    started = time.perf_counter()
    with subprocess.Popen(words, stdout=subprocess.DEVNULL) as process:
        while until is not None and not until():
            time.sleep(0.01)
        if until is not None:
            process.send_signal(signal.SIGKILL)
        _, status, used = os.wait4(process.pid, 0)
        process.returncode = os.waitstatus_to_exitcode(status)
    if process.returncode != (0 if until is None else -signal.SIGKILL):
        raise SystemExit(f"{' '.join(words)} ended with {process.returncode}")
    return {
        "seconds": round(time.perf_counter() - started, 2),
        "processor_seconds": round(used.ru_utime + used.ru_stime, 2),
        "peak_mib": round(used.ru_maxrss / 1024, 1),
    }


def digest(path: Path) -> str:
    """Return a hash of a file's bytes."""
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def one_format(kind: str, model: Path, texts: list[str], rows: int, folder: Path) -> dict[str, Any]:
    """Predict a tenth of the rows, all of them, and all of them with a kill half-way."""
    fewer = write(folder / f"fewer.{kind}", texts, rows // 10)
    small = predict(model, fewer, folder / f"small.{kind}")
    source = write(folder / f"rows.{kind}", texts, rows)
    whole, killed = folder / f"whole.{kind}", folder / f"killed.{kind}"
    large = predict(model, source, whole)
    parts = killed.with_name(f"{killed.name}.parts")
    half = rows // 2048 // 2
    predict(model, source, killed, until=lambda: parts.is_dir() and len(list(parts.iterdir())) > half)
    left = sum(int(part.name.split(".")[1]) for part in parts.iterdir() if part.name[:6].isdigit())
    resumed = predict(model, source, killed, "--resume")
    found = {
        **large,
        "rows_per_processor_second": round(rows / large["processor_seconds"]),
        "peak_mib_of_a_tenth": small["peak_mib"],
        "rows_left_by_the_kill": left,
        "seconds_to_resume": resumed["seconds"],
        "same_bytes": digest(whole) == digest(killed),
    }
    for file in (fewer, source, whole, killed, folder / f"small.{kind}"):
        file.unlink()
    print(kind, json.dumps(found), flush=True)
    return found


def words(options: argparse.Namespace) -> dict[str, Any]:
    """Measure a model of words on one core, and beside MiniLM on some of the rows."""
    import torch

    torch.set_num_threads(1)
    if hasattr(os, "sched_setaffinity"):
        os.sched_setaffinity(0, {min(os.sched_getaffinity(0))})
    task = load_task("agnews", options.data, "official")
    known, names = load_rows(options.data / SOURCES["agnews"].folder, "train", task.labels)
    model = WordsClassifier(task.labels).fit(known, names)
    texts = [*task.texts, *known]
    encoder = ZeroShotClassifier(task.labels, encoder=options.encoder).fit()
    asked = [edited(texts, row) for row in range(options.beside)]
    pairs = []
    for _ in range(options.repeats):
        slow, _ = seconds(lambda: encoder.predict(asked))
        fast, _ = seconds(lambda: model.predict(asked))
        pairs.append({"encoder": round(len(asked) / slow), "words": round(len(asked) / fast), "ratio": slow / fast})
        print(pairs[-1], flush=True)
    with tempfile.TemporaryDirectory() as scratch:
        folder = model.save(Path(scratch) / "model")
        files = {kind: one_format(kind, folder, texts, options.rows, Path(scratch)) for kind in FORMATS}
    return {
        "rows": options.rows,
        "words": len(model.head_.words),
        "accuracy": model.score(task.texts, task.truth),
        "documents_beside": options.beside,
        "pairs": pairs,
        "ratio": statistics.median(pair["ratio"] for pair in pairs),
        "files": files,
    }


def encoder(options: argparse.Namespace) -> dict[str, Any]:
    """Measure `predict_file` beside `Encoder.encode` of the same rows, in turns: theirs, ours, theirs, ours ..."""
    task = load_task("agnews", options.data, "official")
    model = ZeroShotClassifier(task.labels, encoder=options.encoder).fit()
    asked = [edited(task.texts, row) for row in range(options.rows)]
    model.encoder_.encode(asked[:64])
    pairs: list[dict[str, Any]] = []
    with tempfile.TemporaryDirectory() as scratch:
        sources = {kind: write(Path(scratch) / f"rows.{kind}", task.texts, options.rows) for kind in ("csv", "parquet")}
        for number in range(options.repeats):
            kind = ("csv", "parquet")[number % 2]
            alone, _ = seconds(lambda: model.encoder_.encode(asked))
            whole, _ = seconds(
                lambda kind=kind: predict_file(model, sources[kind], Path(scratch) / f"out.{kind}", overwrite=True)
            )
            pairs.append({"file": kind, "encode": alone, "predict_file": whole, "ratio": alone / whole})
            print(pairs[-1], flush=True)
    return {
        "rows": options.rows,
        "dtype": model.encoder_.dtype,
        "pairs": pairs,
        "ratio": statistics.median(pair["ratio"] for pair in pairs),
    }


def main() -> None:
    """Run one measurement and store it."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("what", choices=["words", "encoder"])
    parser.add_argument("--data", type=Path, default=DATA)
    parser.add_argument("--encoder", default=MINILM)
    parser.add_argument("--rows", type=int, help="default: 1,000,000 for words, 20,000 for the encoder")
    parser.add_argument("--beside", type=int, default=1000, help="words: rows that the encoder labels too")
    parser.add_argument("--repeats", type=int, default=4)
    options = parser.parse_args()
    options.rows = options.rows or {"words": 1_000_000, "encoder": 20_000}[options.what]
    work = {"words": words, "encoder": encoder}[options.what]
    measure(
        f"million_{options.what}", "shared/data/btzsc/agnews", lambda: {"encoder": options.encoder, **work(options)}
    )


if __name__ == "__main__":
    main()
