"""Label a million documents: speed on one core, memory, and the same bytes after a kill.

    python benchmarks/million.py words      # a model of words: CSV, .csv.gz and Parquet; killed half-way and resumed
    python benchmarks/million.py encoder    # MiniLM: predict_file beside Encoder.encode of the same rows, pairs in turn
    python benchmarks/million.py killed     # MiniLM: a million rows in Parquet, killed half-way and resumed; an hour

Rows of AG News, repeated; each has its own number in place of one word, so that no two are the same. The files are
written to a temporary folder, about a gigabyte for a million rows. The words are learnt from the labelled training
rows: a student of a consensus is of the same size. Run it on an otherwise idle machine.
"""

import argparse
import filecmp
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
from labelspace.classify.tables.stream import CHUNK_ROWS

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


LIGHT_PARENT = """
import json, resource, subprocess, sys, time
started = time.perf_counter()
code = subprocess.call(sys.argv[1:], stdout=subprocess.DEVNULL)
took, used = time.perf_counter() - started, resource.getrusage(resource.RUSAGE_CHILDREN)
print(json.dumps([took, used.ru_utime + used.ru_stime, used.ru_maxrss / 1024]))
sys.exit(code)
"""
"""Runs a command. A child's peak memory begins with that of the process that starts it, so this one imports little."""


def command(model: Path, source: Path, target: Path) -> list[str]:
    """Return the command line that labels a file."""
    return [sys.executable, "-m", "labelspace", "predict", str(model), str(source), str(target), "--quiet"]


def predict(model: Path, source: Path, target: Path, *more: str) -> dict[str, float]:
    """Label a file, and return the seconds that it took, those of the processor, and the peak memory in MiB."""
    words = [sys.executable, "-c", LIGHT_PARENT, *command(model, source, target), *more]
    done = subprocess.run(words, stdout=subprocess.PIPE, text=True, check=True)
    names = ("seconds", "processor_seconds", "peak_mib")
    return {name: round(value, 2) for name, value in zip(names, json.loads(done.stdout), strict=True)}


def killed(model: Path, source: Path, target: Path, *, after: int) -> int:
    """Label a file, kill the command once it has written some chunks, and return the number of rows kept."""
    parts = target.with_name(f"{target.name}.parts")

    def chunks() -> list[str]:
        return [part.name for part in parts.glob("*.*.*") if part.suffix != ".tmp"]

    with subprocess.Popen(command(model, source, target), stdout=subprocess.DEVNULL) as process:
        while process.poll() is None and len(chunks()) < after:
            time.sleep(0.01)
        process.kill()
    if process.returncode != -signal.SIGKILL:
        raise SystemExit(f"the command ended with {process.returncode} before it could be killed")
    return sum(int(name.split(".")[1]) for name in chunks())


def one_format(kind: str, model: Path, texts: list[str], rows: int, folder: Path) -> dict[str, Any]:
    """Predict a tenth of the rows, all of them, and all of them with a kill half-way."""
    fewer, source = (write(folder / f"{count}.{kind}", texts, count) for count in (rows // 10, rows))
    small, whole, half = (folder / f"{name}.{kind}" for name in ("small", "whole", "half"))
    few, all_rows = predict(model, fewer, small), predict(model, source, whole)
    left = killed(model, source, half, after=rows // CHUNK_ROWS // 2)
    resumed = predict(model, source, half, "--resume")
    found = {
        **all_rows,
        "rows_per_processor_second": round(rows / all_rows["processor_seconds"]),
        "peak_mib_of_a_tenth": few["peak_mib"],
        "rows_left_by_the_kill": left,
        "seconds_to_resume": resumed["seconds"],
        "same_bytes": filecmp.cmp(whole, half, shallow=False),
    }
    for file in (fewer, source, small, whole, half):
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


def times(work: Callable[[], Any]) -> tuple[float, float]:
    """Call `work`, and return its seconds and those of the processor, which others on the machine disturb less."""
    started = time.process_time()
    taken, _ = seconds(work)
    return round(taken, 2), round(time.process_time() - started, 2)


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
            alone = times(lambda: model.encoder_.encode(asked))
            whole = times(
                lambda kind=kind: predict_file(model, sources[kind], Path(scratch) / f"out.{kind}", overwrite=True)
            )
            ratios = {"ratio": alone[0] / whole[0], "processor_ratio": alone[1] / whole[1]}
            pairs.append({"file": kind, "encode": alone, "predict_file": whole, **ratios})
            print(pairs[-1], flush=True)
    return {
        "rows": options.rows,
        "dtype": model.encoder_.dtype,
        "pairs": pairs,
        **{name: statistics.median(pair[name] for pair in pairs) for name in ("ratio", "processor_ratio")},
    }


def resumed(options: argparse.Namespace) -> dict[str, Any]:
    """Label a tenth of the rows, and all of them with a kill half-way; compare memory, rows and answers."""
    task = load_task("agnews", options.data, "official")
    with tempfile.TemporaryDirectory() as scratch:
        folder = Path(scratch)
        model = ZeroShotClassifier(task.labels, encoder=options.encoder).fit().save(folder / "model")
        counts = (options.rows // 10, options.rows)
        fewer, source = (write(folder / f"{count}.parquet", task.texts, count) for count in counts)
        small, whole = folder / "small.parquet", folder / "whole.parquet"
        few = predict(model, fewer, small)
        left = killed(model, source, whole, after=options.rows // CHUNK_ROWS // 2)
        rest = predict(model, source, whole, "--resume")
        tenth, answers = pq.read_table(small), pq.read_table(whole)
    alike = len(tenth) // CHUNK_ROWS * CHUNK_ROWS  # whole chunks: the last one of a file has other batches
    return {
        "rows": options.rows,
        "peak_mib_of_a_tenth": few["peak_mib"],
        "peak_mib": rest["peak_mib"],
        "rows_left_by_the_kill": left,
        "each_row_once": answers["id"].to_pylist() == list(range(options.rows)),
        "rows_compared": alike,
        "same_answers": answers[:alike].equals(tenth[:alike]),
    }


def main() -> None:
    """Run one measurement and store it."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("what", choices=["words", "encoder", "killed"])
    parser.add_argument("--data", type=Path, default=DATA)
    parser.add_argument("--encoder", default=MINILM)
    parser.add_argument("--rows", type=int, help="default: 20,000 for the encoder, else 1,000,000")
    parser.add_argument("--beside", type=int, default=1000, help="words: rows that the encoder labels too")
    parser.add_argument("--repeats", type=int, default=4)
    options = parser.parse_args()
    options.rows = options.rows or (20_000 if options.what == "encoder" else 1_000_000)
    work = {"words": words, "encoder": encoder, "killed": resumed}[options.what]
    measure(
        f"million_{options.what}", "shared/data/btzsc/agnews", lambda: {"encoder": options.encoder, **work(options)}
    )


if __name__ == "__main__":
    main()
