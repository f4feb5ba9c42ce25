"""The consensus study: its table, and a small run on real data."""

import json
import subprocess
import sys

import pytest

from contracts.source import ROOT

pytestmark = pytest.mark.skipif(not (ROOT.parent / "shared" / "data").is_dir(), reason="no data")


@pytest.mark.slow
def test_a_small_run_scores_the_consensus_and_each_view_alone(tmp_path):
    out = tmp_path / "consensus.jsonl"
    command = [sys.executable, "benchmarks/run.py", "consensus", "--small", "--documents", "300", "--test-rows", "100"]
    done = subprocess.run([*command, "--out", str(out)], cwd=ROOT, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    (row,) = [json.loads(line) for line in out.read_text().splitlines()]
    assert row["views"] == "all-MiniLM-L6-v2+words"
    assert 0.5 < row["scores"]["macro_f1"] <= 1
    assert len(row["alone"]) == 1
