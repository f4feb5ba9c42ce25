"""The main job on real data, as a user would type it: 77 intents from their descriptions and unlabelled messages.

Prints every command before it runs it. Results go to build/demo/.
"""

import json
import shlex
import subprocess
import sys
import time
from pathlib import Path

HERE = Path(__file__).resolve().parent
OUT = Path("build") / "demo"


def labelspace(*arguments: str | Path, into: Path | None = None) -> None:
    """Run one command of labelspace, shown as it would be typed; `into` keeps what it prints."""
    words = [str(argument) for argument in arguments]
    print(f"\n$ labelspace {shlex.join(words)}" + (f" > {into}" if into else ""), flush=True)
    command = [sys.executable, "-m", "labelspace", *words]
    if into is None:
        subprocess.run(command, check=True)
    else:
        with into.open("w", encoding="utf-8") as file:
            subprocess.run(command, check=True, stdout=file)


def main() -> None:
    """Lint, fit, predict, evaluate, draw; end with the table."""
    started = time.perf_counter()
    OUT.mkdir(parents=True, exist_ok=True)
    here = HERE.relative_to(Path.cwd()) if HERE.is_relative_to(Path.cwd()) else HERE
    labels, pool, test = here / "labels.yaml", here / "pool.parquet", here / "test.parquet"
    model = OUT / "model"
    labelspace("lint", labels)
    # 40 updates, to end in minutes on two cores. Then the encoder, the documents nearby and words correct one another.
    labelspace("fit", labels, "--pool", pool, "--out", model, "--set", "view_steps=40", "--overwrite")
    labelspace("estimate", model, pool)
    labelspace("predict", model, test, OUT / "predictions.parquet", "--overwrite")
    labelspace("evaluate", model, test, "--json", "--confusion", OUT / "confusion.png", into=OUT / "evaluation.json")
    labelspace("figures", model, test, "--out", OUT)
    labelspace("explain", model, "my card still has not come in the post")
    evaluation = json.loads((OUT / "evaluation.json").read_text(encoding="utf-8"))
    print("\n77 intents, 3,080 test messages, no labelled message used\n")
    print(f"{'':32}{'macro-F1':>10}{'accuracy':>10}")
    rows = [(row["name"], row["metrics"]) for row in evaluation["baselines"]] + [("consensus", evaluation["metrics"])]
    for name, metrics in rows:
        if metrics is None:  # the untrained encoder could not be opened; evaluation.json says why
            continue
        print(f"{name:32}{metrics['macro_f1']:10.3f}{metrics['accuracy']:10.3f}")
    print(f"\nFigures and predictions are in {OUT}/. Took {time.perf_counter() - started:,.0f} s.")


if __name__ == "__main__":
    main()
