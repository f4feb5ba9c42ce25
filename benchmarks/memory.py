"""Peak memory of fit with 500 and with 10,000 descriptions, each in a process of its own.

    python benchmarks/memory.py

The descriptions are those of the 77 intents, repeated with small edits.
"""

import argparse
import json
import resource
import subprocess
import sys

from tasks import ROOT

from labelspace import DescriptionClassifier, Label, LabelSpace
from labelspace.evaluate.provenance import provenance, write_result


def grown(count: int) -> LabelSpace:
    """The 77 intents with about `count` descriptions: real ones, numbered apart."""
    space = LabelSpace.from_file(ROOT / "examples" / "banking77" / "labels.yaml")
    each = count // len(space)
    return LabelSpace(
        [
            Label(
                label.name,
                verbalizer=verbalizer,
                descriptions=[
                    f"Case {number + 1}: {label.descriptions[number % len(label.descriptions)]}"
                    for number in range(each)
                ],
            )
            for label, verbalizer in zip(space.labels, space.verbalizers, strict=True)
        ]
    )


def measure(count: int, steps: int) -> dict[str, float]:
    """Fit for a few steps and return the peak resident memory of this process in MiB."""
    space = grown(count)
    DescriptionClassifier(space, encoder="all-MiniLM-L6-v2", max_steps=steps, learning_rate=1e-5).fit()
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
    return {"descriptions": sum(len(own) for own in space.descriptions), "peak_mib": peak}


def main() -> None:
    """Measure both sizes in fresh processes."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--count", type=int)
    parser.add_argument("--steps", type=int, default=2)
    options = parser.parse_args()
    if options.count:
        print(json.dumps(measure(options.count, options.steps)))
        return
    runs = []
    for count in (500, 10_000):
        command = [sys.executable, __file__, "--count", str(count), "--steps", str(options.steps)]
        done = subprocess.run(command, capture_output=True, text=True, check=True)
        runs.append(json.loads(done.stdout.splitlines()[-1]))
        print(runs[-1], flush=True)
    result = {"runs": runs, "ratio": runs[1]["peak_mib"] / runs[0]["peak_mib"], "steps": options.steps}
    path = ROOT / "benchmarks" / "results" / "memory.json"
    write_result(path, result, provenance=provenance(seeds=[0], data="examples/banking77/labels.yaml"))


if __name__ == "__main__":
    main()
