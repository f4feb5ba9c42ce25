"""Importing is cheap and has no side effects: measured in a fresh process, by modules instead of seconds."""

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

HEAVY = [
    "torch",
    "numpy",
    "transformers",
    "sentence_transformers",
    "sklearn",
    "pyarrow",
    "matplotlib",
    "openpyxl",
    "pandas",
    "rich",
    "typer",
]

WATCH = """
import json, logging, os, sys, warnings

# sklearn and torch set these for themselves.
THEIRS = {"KMP_DUPLICATE_LIB_OK", "KMP_INIT_AT_FORK", "TORCHINDUCTOR_CACHE_DIR"}

def state():
    root = logging.getLogger()
    return {
        "environment": {name: value for name, value in os.environ.items() if name not in THEIRS},
        "filters": [str(entry) for entry in warnings.filters],
        "logging": [root.level, len(root.handlers), logging.raiseExceptions, logging.root.manager.disable],
        "hooks": [str(sys.excepthook), str(sys.displayhook)],
    }

before = state()
for name in sys.argv[1:]:
    __import__(name)
after = state()
changed = [key for key in before if before[key] != after[key]]
print(json.dumps({"modules": sorted(sys.modules), "changed": changed}))
"""

STORE = Path(__file__).parents[2] / "benchmarks" / "results" / "btzsc_paper_rows.jsonl"

HELP = """
import sys
from labelspace.cli import main
sys.argv = ["labelspace", *sys.argv[1:]]
try:
    main()
except SystemExit as stop:
    code = stop.code
loaded = sorted({name.partition(".")[0] for name in sys.modules})
print("\\nLOADED", *loaded, "CODE", code)
"""


def in_a_fresh_process(code: str, *arguments: str) -> subprocess.CompletedProcess[str]:
    """Run code with warnings as errors, in an environment without a terminal."""
    environment = {**os.environ, "COLUMNS": "100"}
    return subprocess.run(
        [sys.executable, "-W", "error", "-c", code, *arguments],
        capture_output=True,
        text=True,
        check=False,
        env=environment,
        timeout=120,
    )


LIGHT = ["labelspace", "labelspace.errors", "labelspace.config", "labelspace.labels", "labelspace.encoders.resolve"]


@pytest.mark.parametrize("module", LIGHT)
def test_importing_loads_nothing_heavy_and_changes_and_prints_nothing(module):
    done = in_a_fresh_process(WATCH, module)
    assert done.returncode == 0, done.stderr
    assert done.stderr == ""
    lines = done.stdout.splitlines()
    assert len(lines) == 1, "something was printed"
    seen = json.loads(lines[0])
    assert [name for name in HEAVY if name in seen["modules"]] == []
    assert seen["changed"] == []


def test_importing_labelspace_loads_no_submodule():
    seen = json.loads(in_a_fresh_process(WATCH, "labelspace").stdout)
    own = [name for name in seen["modules"] if name.startswith("labelspace")]
    assert own == ["labelspace", "labelspace.late", "labelspace.version"]


@pytest.mark.slow
def test_using_the_library_leaves_environment_and_logging_alone():
    done = in_a_fresh_process(WATCH, "labelspace.classify")
    seen = json.loads(done.stdout)
    assert "torch" in seen["modules"]
    assert set(seen["changed"]) <= {"filters"}, "numpy and torch set filters of their own, and nothing else changes"


@pytest.mark.parametrize(
    "arguments",
    [
        ["--help"],
        ["--version"],
        ["fit", "--help"],
        ["predict", "--help"],
        ["bench", "tasks", "--data", "."],
        ["bench", "table", "--store", str(STORE)],
    ],
)
def test_help_and_lists_load_no_torch(arguments):
    done = in_a_fresh_process(HELP, *arguments)
    assert done.returncode == 0, done.stderr
    words = done.stdout.split()
    loaded = words[words.index("LOADED") :]
    assert loaded[-1] == "0"
    assert not {"torch", "transformers", "sentence_transformers", "sklearn"} & set(loaded)


def test_wrong_use_is_reported_without_torch(tmp_path):
    missing = tmp_path / "missing.yaml"
    done = in_a_fresh_process(HELP, "fit", str(missing), "--out", str(tmp_path / "model"))
    words = done.stdout.split()
    loaded = words[words.index("LOADED") :]
    assert loaded[-1] == "2"
    assert "torch" not in loaded
    assert len(done.stderr.strip().splitlines()) == 1
