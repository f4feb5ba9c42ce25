"""Measure the service: documents per second and latency of 1, 8 and 64 clients, beside the same model in this process.

    python benchmarks/serving.py

Texts of AG News (test), each once. In one run, in turns: `predict` in this process, of all texts and of 64 at a time
(more than 64 clients that wait can never send); the service with 1, 8 and 64
clients that each send one text and wait for its answer, which is checked; and the zero-shot pipeline of `transformers`
with a cross-encoder of the same encoder (its weights are random: the time does not depend on them). The clients are one
process beside the service, on the same cores. Run it on an otherwise idle machine.
"""

import argparse
import asyncio
import json
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

import peers
from measured import measure, seconds
from tasks import DATA, load_task

from labelspace import LabelSpace, ZeroShotClassifier

MINILM = "all-MiniLM-L6-v2"
CLIENTS = (1, 8, 64)
LOAD = """
import asyncio, json, sys
sys.path.insert(0, {here!r})
from serving import load
print(json.dumps(asyncio.run(load({port}, {clients}, json.load(sys.stdin)))))
"""


async def load(port: int, clients: int, texts: list[str]) -> dict[str, Any]:
    """Send all texts by some clients; return the seconds of each request, of all, and the answers by text."""
    waiting = iter(texts)
    each: list[float] = []
    answers: dict[str, str] = {}

    async def client() -> None:
        reader, writer = await asyncio.open_connection("127.0.0.1", port)
        for text in waiting:
            body = json.dumps({"inputs": text}).encode()
            head = f"POST /predict HTTP/1.1\r\nHost: x\r\nContent-Type: application/json\r\nContent-Length: {len(body)}"
            started = time.perf_counter()
            writer.write(f"{head}\r\n\r\n".encode() + body)
            answer = await reader.readuntil(b"\r\n\r\n")
            length = int(answer.lower().split(b"content-length: ")[1].split(b"\r\n")[0])
            found = json.loads(await reader.readexactly(length))
            each.append(time.perf_counter() - started)
            answers[text] = found[0][0]["label"]
        writer.close()

    started = time.perf_counter()
    await asyncio.gather(*(client() for _ in range(clients)))
    return {"all": time.perf_counter() - started, "each": each, "answers": answers}


def run_load(port: int, clients: int, texts: list[str]) -> dict[str, Any]:
    """Run the clients in a process of their own."""
    code = LOAD.format(here=str(Path(__file__).parent), port=port, clients=clients)
    done = subprocess.run([sys.executable, "-c", code], input=json.dumps(texts), capture_output=True, text=True)
    if done.returncode:
        raise SystemExit(done.stderr)
    return json.loads(done.stdout)


def start(folder: Path) -> tuple[subprocess.Popen[str], int]:
    """Start the service; return it and its port."""
    command = [sys.executable, "-m", "labelspace", "serve", str(folder), "--port", "0"]
    server = subprocess.Popen(command, stderr=subprocess.PIPE, text=True)
    assert server.stderr
    for line in server.stderr:
        if "serving" in line:
            return server, int(line.rsplit(":", 1)[1])
    raise SystemExit("the service did not start")


def by_64(clf: Any, texts: list[str]) -> None:
    """Predict texts, 64 at a time."""
    for start in range(0, len(texts), 64):
        clf.predict(texts[start : start + 64])


def serving(options: argparse.Namespace) -> dict[str, Any]:
    """Measure in turns; give the median of the turns."""
    task = load_task("agnews", options.data, "official")
    texts = list(dict.fromkeys(task.texts))[: options.documents]
    labels = LabelSpace.from_file(Path(__file__).parent.parent / "examples" / "agnews.yaml")
    clf = ZeroShotClassifier(labels, encoder=options.encoder).fit()
    right = dict(zip(texts, clf.predict(texts).tolist(), strict=True))
    alone = [1000 * seconds(lambda text=text: clf.answers([text]))[0] for text in texts[:300]]
    pipeline = peers.zero_shot(clf.encoder_.folder, labels.names)
    pipeline(texts[:8])
    rates: dict[str, list[float]] = {
        "predict": [],
        "predict, 64 at a time": [],
        "pipeline": [],
        **{str(clients): [] for clients in CLIENTS},
    }
    latency: dict[str, list[float]] = {str(clients): [] for clients in CLIENTS}
    different = 0
    with tempfile.TemporaryDirectory() as folder:
        server, port = start(clf.save(Path(folder) / "agnews"))
        try:
            run_load(port, 8, texts[:200])
            for _ in range(options.repeats):
                rates["predict"].append(len(texts) / seconds(lambda: clf.predict(texts))[0])
                rates["predict, 64 at a time"].append(len(texts) / seconds(lambda: by_64(clf, texts))[0])
                rates["pipeline"].append(50 / seconds(lambda: pipeline(texts[:50]))[0])
                for clients in CLIENTS:
                    asked = texts[: max(300, len(texts) // (1 if clients > 1 else 4))]
                    found = run_load(port, clients, asked)
                    rates[str(clients)].append(len(asked) / found["all"])
                    latency[str(clients)] += [1000 * second for second in found["each"]]
                    different += sum(right[text] != label for text, label in found["answers"].items())
                    assert len(found["answers"]) == len(asked), "an answer was lost"
                print({key: round(each[-1]) for key, each in rates.items()}, flush=True)
        finally:
            server.terminate()
            server.wait()
    medians = {key: statistics.median(each) for key, each in rates.items()}
    return {
        "documents": len(texts),
        "dtype": clf.encoder_.dtype,
        "rates": rates,
        "share_of_predict": {key: medians[key] / medians["predict"] for key in medians},
        "milliseconds_alone": statistics.median(alone),
        "milliseconds": {
            key: {"median": statistics.median(each), "p95": statistics.quantiles(each, n=20)[-1]}
            for key, each in latency.items()
        },
        "answers_that_differ": different,
    }


def main() -> None:
    """Run the measurement and store it."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--data", type=Path, default=DATA)
    parser.add_argument("--encoder", default=MINILM)
    parser.add_argument("--documents", type=int, default=3000)
    parser.add_argument("--repeats", type=int, default=3)
    options = parser.parse_args()
    measure("serving", "shared/data/btzsc/agnews", lambda: {"encoder": options.encoder, **serving(options)})


if __name__ == "__main__":
    main()
