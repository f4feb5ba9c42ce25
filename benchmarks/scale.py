"""Measure `predict` with 1 and 2 workers: documents per second, memory of each process, and the cost of 10^9 documents.

    python benchmarks/scale.py                       # 20,000 rows of AG News, MiniLM, in turns: 1, 2, 1, 2 ...
    python benchmarks/scale.py --rows 1000 --show    # a try, which writes no result

Documents per second are those after the first chunk of every worker, so that opening the model does not count;
seconds are those of the whole command. The cost is computed: the rate for each of this machine's threads, times the
threads of the instance. Prices are list prices of 2026 in dollars; give others as options. Run it on an otherwise idle
machine.
"""

import argparse
import itertools
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

import psutil
import pyarrow as pa
import pyarrow.parquet as pq
import torch
from measured import measure
from tasks import DATA, load_task

from labelspace import Encoder, ZeroShotClassifier

CHUNK = 2048  # rows of a part, of which the rate is counted
BILLION = 1_000_000_000


def peak_mib(process: psutil.Process) -> float:
    """Return the highest resident memory that a process has had, in MiB; Linux only."""
    status = Path(f"/proc/{process.pid}/status").read_text(encoding="utf-8")
    return next(int(line.split()[1]) for line in status.splitlines() if line.startswith("VmHWM")) / 1024


def run(folder: Path, workers: int) -> dict[str, Any]:
    """Run the command once; look at its processes and its parts while it runs."""
    target = folder / f"out.{workers}.parquet"
    line = [sys.executable, "-m", "labelspace", "predict", str(folder / "model"), str(folder / "in.parquet")]
    line += [str(target), "--workers", str(workers), "--overwrite", "--quiet"]
    seen: dict[str, tuple[float, int]] = {}
    peaks: dict[int, float] = {}
    began = time.perf_counter()
    with subprocess.Popen(line, stdout=subprocess.DEVNULL) as command:
        here = psutil.Process(command.pid)
        while command.poll() is None:
            for part in Path(f"{target}.parts").glob("*.parquet"):
                seen.setdefault(part.name, (time.perf_counter(), int(part.name.split(".")[1])))
            for process in [here, *here.children()]:
                try:
                    if process.pid == here.pid or "spawn_main" in " ".join(process.cmdline()):
                        peaks[process.pid] = max(peaks.get(process.pid, 0), peak_mib(process))
                except (psutil.Error, OSError, StopIteration):  # it has just ended
                    continue
            time.sleep(0.02)
    assert command.returncode == 0
    whole = time.perf_counter() - began
    # The first chunks of all workers come nearly at once: what follows the last of them counts.
    times = sorted(when for when, _ in seen.values())[workers - 1 :]
    rows = sum(rows for _, rows in seen.values()) - workers * CHUNK
    rate = rows / (times[-1] - times[0]) if len(times) > 2 else None
    own = peaks.pop(here.pid)
    return {
        "workers": workers,
        "seconds": whole,
        "documents_per_second": rate,
        "peak_mib": {"reads and writes": own, "each worker": sorted(peaks.values())},
    }


def cost(rate: float, tokens: float, options: argparse.Namespace) -> dict[str, Any]:
    """Compute what 10^9 documents cost on the instance and at the hosted model."""
    threads = torch.get_num_threads()
    there = rate / threads * options.threads
    hours = BILLION / there / 3600
    asked = (tokens + options.question_tokens) * BILLION / 1_000_000
    return {
        "documents_per_second_and_thread": rate / threads,
        "instance": options.instance,
        "instance_hours": hours,
        "instance_dollars": hours * options.price,
        "hosted": options.hosted,
        "hosted_tokens_per_document": tokens + options.question_tokens,
        "hosted_dollars": asked * options.hosted_price,
        "ratio": asked * options.hosted_price / (hours * options.price),
    }


def scale(options: argparse.Namespace) -> dict[str, Any]:
    """Measure in turns, and compute the cost."""
    task = load_task("agnews", options.data, "official")
    texts = list(itertools.islice(itertools.cycle([*task.texts, *task.pool]), options.rows))
    encoder = Encoder(options.encoder)
    tokens = statistics.mean(encoder.count_tokens(texts[:2000]))
    runs = []
    with tempfile.TemporaryDirectory(prefix="labelspace-scale-") as place:
        folder = Path(place)
        ZeroShotClassifier(task.labels, encoder).fit().save(folder / "model")
        pq.write_table(pa.table({"text": texts}), folder / "in.parquet")
        for _ in range(options.repeats):
            for workers in (1, 2):
                runs.append(run(folder, workers))
                print(runs[-1], flush=True)
        same = (folder / "out.1.parquet").read_bytes() == (folder / "out.2.parquet").read_bytes()
    rates = {
        workers: [
            found["documents_per_second"] or options.rows / found["seconds"]
            for found in runs
            if found["workers"] == workers
        ]
        for workers in (1, 2)
    }
    medians = {workers: statistics.median(values) for workers, values in rates.items()}
    return {
        "rows": options.rows,
        "tokens_per_document": tokens,
        "dtype": encoder.dtype,
        "runs": runs,
        "ratio": statistics.median(two / one for one, two in zip(rates[1], rates[2], strict=True)),
        "same_bytes": same,
        "cost": cost(max(medians.values()), tokens, options),
    }


def main() -> None:
    """Run and store the result."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rows", type=int, default=20_000)
    parser.add_argument("--repeats", type=int, default=3)
    parser.add_argument("--encoder", default="all-MiniLM-L6-v2")
    parser.add_argument("--data", type=Path, default=DATA)
    parser.add_argument("--instance", default="AWS c7i.2xlarge, on demand, us-east-1")
    parser.add_argument("--threads", type=int, default=8, help="threads (vCPU) of the instance")
    parser.add_argument("--price", type=float, default=0.357, help="dollars an hour of the instance")
    parser.add_argument("--hosted", default="gpt-4.1-nano, input tokens")
    parser.add_argument("--hosted-price", type=float, default=0.10, help="dollars for a million tokens")
    parser.add_argument("--question-tokens", type=int, default=60, help="tokens of the question and the labels")
    parser.add_argument("--show", action="store_true", help="print the result and write none")
    options = parser.parse_args()
    if options.show:
        print(scale(options))
    else:
        measure("scale", "btzsc/agnews", lambda: scale(options))


if __name__ == "__main__":
    main()
