"""Measure time and peak memory of what a user does with 100, 1,000 and 10,000 labels of five descriptions each.

    python benchmarks/many_labels.py            # labels made of the words of AG News
    python benchmarks/many_labels.py --icd      # 10,000 codes of diseases, and how many documents get the right one

Every job runs in a process of its own, which may not use more than `--most` GiB. The codes come from a package with the
tables of the U.S. centers for disease control: `pip install simple-icd-10-cm==1.5.0`.
"""

import argparse
import json
import random
import resource
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any

from measured import seconds
from tasks import DATA, load_task

SIZES = (100, 1_000, 10_000)
DESCRIPTIONS = 5
ENCODER = "all-MiniLM-L6-v2"
STEPS = 2


def made(count: int, data: Path) -> Any:
    """Return labels named by two words each, described by pieces of news, always the same ones."""
    from labelspace import Label, LabelSpace

    draw = random.Random(0)
    texts = [text.split() for text in load_task("agnews", data, "own").pool]
    words = sorted({word.lower() for text in texts for word in text if word.isalpha() and len(word) > 3})
    names = dict.fromkeys(" ".join(draw.sample(words, 2)) for _ in range(2 * count))

    def piece() -> str:
        text = draw.choice(texts)
        start = draw.randrange(max(len(text) - 12, 1))
        return " ".join(text[start : start + 12])

    return LabelSpace(
        [Label(name, descriptions=[piece() for _ in range(DESCRIPTIONS)]) for name in list(names)[:count]]
    )


def documents(count: int, data: Path) -> list[str]:
    """Return texts of AG News test."""
    return load_task("agnews", data, "own").texts[:count]


def size_of(folder: Path) -> float:
    """Return the size of all files of a folder in MiB."""
    return sum(file.stat().st_size for file in folder.rglob("*") if file.is_file()) / 2**20


def job(name: str, folder: Path, data: Path, count: int) -> dict[str, float]:
    """Do one thing and return its seconds, and what else is worth a number."""
    from labelspace import DescriptionClassifier, Encoder, Label, LabelSpace, ZeroShotClassifier, load
    from labelspace.classify import predict_file
    from labelspace.evaluate import evaluate
    from labelspace.labels.lint import lint

    file, saved = folder / "labels.yaml", folder / "model"
    if name == "read":
        return {"seconds": seconds(lambda: LabelSpace.from_file(file))[0]}
    if name == "lint":
        space = LabelSpace.from_file(file)
        took, found = seconds(lambda: lint(space))
        return {"seconds": took, "findings": len(found)}
    encoder = Encoder(ENCODER)
    if name in ("lint_meaning", "fit", "train"):
        space = LabelSpace.from_file(file)
        encoder.encode(["warm"])
        if name == "lint_meaning":
            took, found = seconds(lambda: lint(space, encoder))
            return {"seconds": took, "findings": len(found)}
        if name == "fit":
            clf = ZeroShotClassifier(space, encoder)
            took = seconds(clf.fit)[0]
            return {"seconds": took, "save": seconds(lambda: clf.save(saved))[0], "folder_mib": size_of(saved)}
        clf = DescriptionClassifier(space, encoder, learning_rate="base", max_steps=STEPS)
        took = seconds(clf.fit)[0]
        return {"seconds": took}
    took, clf = seconds(lambda: load(saved))
    if name == "load":
        return {"seconds": took}
    texts = documents(count, data)
    clf.predict(texts[:64])
    if name == "predict":
        encode = seconds(lambda: clf.encoder_.encode(texts))[0]
        took = seconds(lambda: clf.predict(texts))[0]
        return {"seconds": took, "of_encode_speed": encode / took}
    if name == "predict_file":
        import pyarrow as pa

        encode = seconds(lambda: clf.encoder_.encode(texts))[0]
        took = seconds(lambda: predict_file(clf, pa.table({"text": texts}), folder / "out.csv", overwrite=True))[0]
        return {"seconds": took, "of_encode_speed": encode / took}
    if name == "evaluate":
        names = clf.label_space_.names
        return {"seconds": seconds(lambda: evaluate(clf, texts, [names[row % 7] for row in range(len(texts))]))[0]}
    if name == "explain":
        return {"seconds": seconds(lambda: clf.explain(texts[0]))[0]}
    if name == "add_label":
        label = Label("a new one", descriptions=["A text about something new.", "Nothing like it was there before."])
        return {"seconds": seconds(lambda: clf.add_label(label))[0]}
    raise SystemExit(name)


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


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--data", type=Path, default=DATA)
    parser.add_argument("--sizes", type=int, nargs="+", default=SIZES)
    parser.add_argument("--jobs", nargs="+", default=JOBS)
    parser.add_argument("--documents", type=int, default=4096)
    parser.add_argument("--most", type=float, default=12)
    parser.add_argument("--work", type=Path)
    parser.add_argument("--job")
    o = parser.parse_args()
    if o.job:
        resource.setrlimit(resource.RLIMIT_AS, (int(o.most * 2**30) + (6 << 30), -1))
        found = job(o.job, o.work, o.data, o.documents)
        print(json.dumps({**found, "peak_mib": resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024}))
        return
    for size in o.sizes:
        folder = (o.work or Path(tempfile.mkdtemp())) / str(size)
        folder.mkdir(exist_ok=True, parents=True)
        if not (folder / "labels.yaml").exists():
            made(size, o.data).to_file(folder / "labels.yaml")
        for name in o.jobs:
            done = subprocess.run(
                [
                    sys.executable,
                    __file__,
                    "--job",
                    name,
                    "--work",
                    str(folder),
                    "--documents",
                    str(o.documents),
                    "--most",
                    str(o.most),
                ],
                capture_output=True,
                text=True,
            )
            last = (done.stdout.splitlines() or [""])[-1] or (done.stderr.splitlines() or [""])[-1][:200]
            print(size, name, last, flush=True)


if __name__ == "__main__":
    main()
