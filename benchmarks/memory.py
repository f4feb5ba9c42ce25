"""Measure the peak memory of fit with 500 and with 10,000 descriptions, each in its own process.

    python benchmarks/memory.py

The descriptions are those of the 77 intents, repeated with a number in front.
"""

import argparse
import json
import resource
import subprocess
import sys
from typing import Any

from measured import measure
from tasks import INTENT_FILE

from labelspace import DescriptionClassifier, Label, LabelSpace


def grown(count: int) -> LabelSpace:
    """Return the 77 intents with about `count` descriptions: real ones, repeated with a number in front."""
    space = LabelSpace.from_file(INTENT_FILE)
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


def peak(count: int, steps: int) -> dict[str, float]:
    """Fit for a few steps and return the peak resident memory of this process in MiB."""
    space = grown(count)
    DescriptionClassifier(space, encoder="all-MiniLM-L6-v2", max_steps=steps, learning_rate=1e-5).fit()
    found = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
    return {"descriptions": sum(len(own) for own in space.descriptions), "peak_mib": found}


def both(steps: int) -> dict[str, Any]:
    """Measure both sizes in fresh processes."""
    runs = []
    for count in (500, 10_000):
        command = [sys.executable, __file__, "--count", str(count), "--steps", str(steps)]
        done = subprocess.run(command, capture_output=True, text=True, check=True)
        runs.append(json.loads(done.stdout.splitlines()[-1]))
        print(runs[-1], flush=True)
    return {"runs": runs, "ratio": runs[1]["peak_mib"] / runs[0]["peak_mib"], "steps": steps}


def main() -> None:
    """Measure both sizes, or run as one of their processes."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--count", type=int)
    parser.add_argument("--steps", type=int, default=2)
    options = parser.parse_args()
    if options.count:
        print(json.dumps(peak(options.count, options.steps)))
        return
    measure("memory", "examples/banking77/labels.yaml", lambda: both(options.steps))


if __name__ == "__main__":
    main()
