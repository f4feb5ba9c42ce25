"""Measure time and peak memory of what a user does with 100, 1,000 and 10,000 labels of five descriptions each.

    python benchmarks/many_labels.py            # labels named and described by words of AG News, always the same ones
    python benchmarks/many_labels.py --icd      # 10,000 codes of diseases: how many documents find theirs

Every job runs in a process of its own. Run it on an otherwise idle machine. The codes come from a package with the
tables of the U.S. centers for disease control (`pip install simple-icd-10-cm==1.5.0`), which have synonyms for many
codes: of each code one is a document, and the others describe the label.
"""

import argparse
import json
import random
import resource
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
from measured import SINGLE, measure, seconds
from store import Table
from tasks import DATA, load_task

from labelspace import DescriptionClassifier, Encoder, Label, LabelSpace, ZeroShotClassifier, load
from labelspace.classify import predict_file
from labelspace.evaluate import evaluate
from labelspace.labels import lint

SIZES = (100, 1_000, 10_000)
DESCRIPTIONS, WORDS = 5, 12
ENCODER = "all-MiniLM-L6-v2"
JOBS = (
    "read",
    "lint",
    "lint_meaning",
    "fit",
    "load",
    "predict",
    "predict_file",
    "evaluate",
    "explain",
    "add_label",
    "train",
)
"""`lint_meaning` is lint with an encoder; `fit` saves the model that those after it load; `train` is two updates."""


def made(count: int, data: Path) -> LabelSpace:
    """Return labels named by two words each, described by pieces of news."""
    draw = random.Random(0)
    texts = [text.split() for text in load_task("agnews", data, "own").pool]
    words = sorted({word.lower() for text in texts for word in text if word.isalpha() and len(word) > 3})
    names = list(dict.fromkeys(" ".join(draw.sample(words, 2)) for _ in range(2 * count)))[:count]

    def piece() -> str:
        text = draw.choice(texts)
        start = draw.randrange(max(len(text) - WORDS, 1))
        return " ".join(text[start : start + WORDS])

    return LabelSpace([Label(name, descriptions=[piece() for _ in range(DESCRIPTIONS)]) for name in names])


def do(name: str, folder: Path, texts: list[str]) -> dict[str, float]:
    """Do one thing, and return its seconds and what else is worth a number."""
    file, saved = folder / "labels.yaml", folder / "model"
    if name == "read":
        return {"seconds": seconds(lambda: LabelSpace.from_file(file))[0]}
    if name in ("lint", "lint_meaning", "fit", "train"):
        space = LabelSpace.from_file(file)
        if name == "lint":
            return {"seconds": seconds(lambda: lint(space))[0]}
        encoder = Encoder(ENCODER)
        once = seconds(lambda: encoder.encode([text for label in space for text in label.descriptions]))[0]
        if name == "lint_meaning":
            took, found = seconds(lambda: lint(space, encoder))
            return {"seconds": took, "of_encoding": took / once, "findings": len(found)}
        if name == "train":
            at: list[float] = []

            def timed(step: int, values: dict[str, float]) -> None:  # noqa: ARG001
                at.append(time.perf_counter())

            clf: Any = DescriptionClassifier(space, encoder, learning_rate="base", max_steps=2, callbacks=[timed])
            took, update = seconds(clf.fit)[0], at[1] - at[0]  # the first update makes the kernels
            return {"seconds": took, "seconds_an_update": update, "update_of_encoding": update / once}
        clf = ZeroShotClassifier(space, encoder)
        took = seconds(clf.fit)[0]
        clf.save(saved)
        size = sum(part.stat().st_size for part in saved.rglob("*") if part.is_file())
        return {"seconds": took, "of_encoding": took / once, "mb": size / 1e6}
    took, clf = seconds(lambda: load(saved))
    if name == "load":
        return {"seconds": took}
    clf.predict(texts[:64])
    names = clf.label_space_.names
    new = Label("a new one", descriptions=["A text about something new.", "Nothing like it was there before."])
    work = {
        "predict": lambda: clf.predict(texts),
        "predict_file": lambda: predict_file(clf, pa.table({"text": texts}), folder / "out.csv", overwrite=True),
        "evaluate": lambda: evaluate(clf, texts, [names[row % len(names)] for row in range(len(texts))]),
        "explain": lambda: clf.explain(texts[0]),
        "add_label": lambda: clf.add_label(new),
    }[name]
    if name in ("explain", "add_label"):
        return {"seconds": seconds(work)[0]}
    clf.encoder_.encode(texts)  # makes the kernels
    encode = seconds(lambda: clf.encoder_.encode(texts))[0]
    took = seconds(work)[0]
    return {"seconds": took, "documents_a_second": len(texts) / took, "of_encode_speed": encode / took}


def made_sizes(options: argparse.Namespace) -> dict[str, Any]:
    """Measure every job with every number of labels, each in a fresh process."""
    found: dict[str, Any] = {"documents": options.documents}
    with tempfile.TemporaryDirectory() as scratch:
        for size in options.sizes:
            folder = Path(scratch) / str(size)
            folder.mkdir()
            made(size, options.data).to_file(folder / "labels.yaml")
            for name in options.jobs:
                command = [sys.executable, __file__, "--job", name, "--work", str(folder), "--data", str(options.data)]
                command += ["--documents", str(options.documents)]
                done = subprocess.run(command, capture_output=True, text=True, check=True)
                found.setdefault(str(size), {})[name] = json.loads(done.stdout.splitlines()[-1])
                print(size, name, found[str(size)][name], flush=True)
    return found


def codes(count: int, documents: int) -> tuple[LabelSpace, list[str], list[str]]:
    """Return codes as labels, and synonyms with their codes as documents."""
    import simple_icd_10_cm as cm  # pyright: ignore[reportMissingImports]

    known = list(dict.fromkeys(code for code in cm.get_all_codes() if cm.is_category_or_subcategory(code)))
    synonyms = {code: list(dict.fromkeys(cm.get_inclusion_term(code))) for code in known}
    with_some = [code for code in known if synonyms[code]]
    without = random.Random(0).sample([code for code in known if not synonyms[code]], max(count - len(with_some), 0))
    chosen = [*with_some, *without][:count]
    labels = [Label(code, cm.get_description(code), descriptions=synonyms[code][1:]) for code in chosen]
    asked = random.Random(0).sample([code for code in chosen if synonyms[code]], documents)
    return LabelSpace(labels, name="ICD-10-CM", template="{label}"), [synonyms[code][0] for code in asked], asked


def icd(options: argparse.Namespace) -> dict[str, Any]:
    """Measure how many documents find their code, untrained."""
    space, texts, truth = codes(10_000, options.documents)
    clf = ZeroShotClassifier(space, ENCODER, anchor="both").fit()
    names = clf.predict_top(texts, k=10)[0]
    right = names == np.array(truth, dtype=object)[:, None]
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
    shares = {f"in_top_{k}": float(right[:, :k].any(axis=1).mean()) for k in (1, 10)}
    return {"labels": len(space), "documents": len(texts), **shares, "peak_mib": peak}


def main() -> None:
    """Measure, or run as one of the processes."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--data", type=Path, default=DATA)
    parser.add_argument("--documents", type=int, default=2048)
    parser.add_argument("--sizes", type=int, nargs="+", default=SIZES)
    parser.add_argument("--jobs", nargs="+", choices=JOBS, default=JOBS)
    parser.add_argument("--icd", action="store_true")
    parser.add_argument(
        "--out", type=Path, default=SINGLE.path, help="table of results; outside the checkout for a trial"
    )
    parser.add_argument("--job", choices=JOBS, help=argparse.SUPPRESS)
    parser.add_argument("--work", type=Path, help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.job:
        texts = load_task("agnews", options.data, "own").texts[: options.documents]
        found = do(options.job, options.work, texts)
        peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
        print(json.dumps({name: round(value, 3) for name, value in found.items()} | {"peak_mib": round(peak)}))
    elif options.icd:
        measure("many_labels_icd", "simple-icd-10-cm 1.5.0, April 2026", lambda: icd(options), Table(options.out))
    else:
        measure("many_labels", "btzsc/agnews", lambda: made_sizes(options), Table(options.out))


if __name__ == "__main__":
    main()
