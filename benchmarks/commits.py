"""Trace results to commits: tables mark results of uncommitted code, or of a commit missing from the history.

python benchmarks/commits.py    # number of results of each study by state, according to git
"""

import json
import subprocess
from collections import Counter
from collections.abc import Collection
from pathlib import Path

import pandas as pd
from layout import DAGGER, markdown
from store import RESULTS, ROOT, Table

STUDIES = ("consensus", "lacon", "nli", "prefinetune", "quality", "several", "study", "uncertainty")
LOST = frozenset(
    [
        "10fdefda959c59ab463ff7739544fe99ff56938e",
        "39828f96b732fc9961ada6e51db17a4a5278c42a",
        "49e463b7c15d3045ec1b6e7da6d5fb664a405801",
        "503bf8399fc04ad22c0f6fbbba0003993f9f999d",
        "6f5f8b272d00365d95f3b5a663b3aa1d954e7dbf",
        "73c6b7054eff98f92d2b4a1b22ba25e93cfd18fe",
        "9fac198d19b1ab08c1b9df46b5b3f32c7cd0e78a",
        "bd42adf2b626cc379a796a6aa0e1ae2d8392d052",
        "c3e8efdf954bd9d1f0ed20d6f007c70d03b71934",
        "da50a5771184c2154801ab6618943d74049a5420",
        "e9caa397d1d6a03bb5fac49ca5a4891159915a5b",
    ]
)
"""Commits of results that the history lacks, listed so that tables do not need git; a test checks them with git."""

SINGLE = "single files"
COMMITTED, CHANGED, GONE = "a commit of this history", "changed code (`-dirty`)", "a commit not in this history"


def state(commit: str | None, history: Collection[str] | None = None) -> str:
    """Return the state of a result's commit; without a history, use the list of lost commits."""
    if pd.isna(commit) or commit.endswith("-dirty"):
        return CHANGED
    known = commit not in LOST if history is None else commit in history
    return COMMITTED if known else GONE


def marked(title: str, runs: pd.DataFrame) -> str:
    """Add a dagger to a title if one of its runs cannot be traced to a commit."""
    return title + DAGGER * any(state(commit) != COMMITTED for commit in runs["provenance.commit"])


def counts(folder: Path = RESULTS, history: Collection[str] | None = None) -> dict[str, Counter[str]]:
    """Count the runs of each study by the state of their commit."""
    found: dict[str, Counter[str]] = {}
    for path in sorted(folder.glob("*.jsonl"), key=lambda path: (path.stem in STUDIES, path.stem)):
        for commit in _commits(path):
            found.setdefault(path.stem if path.stem in STUDIES else SINGLE, Counter())[state(commit, history)] += 1
    return found


def _commits(path: Path) -> list[str | None]:
    """Return the commit of each run, without rows computed from other runs and without `shared.jsonl`."""
    if path.stem.startswith("btzsc"):  # the store of `labelspace bench run`
        return [json.loads(line)["provenance"]["commit"] for line in path.read_text(encoding="utf-8").splitlines()]
    rows = Table(path).rows() if path.stem != "shared" else []
    return [row["provenance"]["commit"] for row in rows if row["part"] != "compared"]


def history(folder: Path = ROOT) -> frozenset[str] | None:
    """Return all ancestors of the checked-out commit, and itself; None without git or in a shallow clone."""
    git = ["git", "--no-optional-locks", "-C", str(folder)]
    try:
        shallow = subprocess.run([*git, "rev-parse", "--is-shallow-repository"], capture_output=True, text=True)
        listed = subprocess.run([*git, "rev-list", "HEAD"], capture_output=True, text=True)
    except OSError:
        return None
    if shallow.stdout.strip() != "false" or listed.returncode:
        return None
    return frozenset(listed.stdout.split())


def table(history: Collection[str] | None = None) -> str:
    """Number of results of each study by the state of their commit."""
    states = (COMMITTED, CHANGED, GONE)
    found = counts(history=history).items()
    return markdown(["results of", *states], [[name, *(str(own[one]) for one in states)] for name, own in found])


if __name__ == "__main__":
    print(table(history()))
