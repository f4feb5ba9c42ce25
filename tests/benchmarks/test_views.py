"""The consensus study: its table, and a small run on real data."""

import json
import subprocess
import sys

import pytest

from contracts.source import ROOT
from families.tiny_causal import tiny_causal

pytestmark = pytest.mark.skipif(not (ROOT.parent / "shared" / "data").is_dir(), reason="no data")


@pytest.mark.slow
def test_a_small_run_scores_the_consensus_and_each_view_alone(tmp_path):
    out = tmp_path / "consensus.jsonl"
    command = [sys.executable, "benchmarks/run.py", "consensus", "--small", "--documents", "150", "--test-rows", "100"]
    command += ["--cache", str(tmp_path / "views"), "--parts", "consensus", "sets", "sizes", "pools"]
    command += ["student", "third"]
    command += ["--llm", str(tiny_causal("qwen3"))]
    done = subprocess.run([*command, "--out", str(out)], cwd=ROOT, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    rows = [json.loads(line) for line in out.read_text().splitlines()]
    assert {row["part"] for row in rows} == {"consensus", "sets", "sizes", "pools", "student", "third"}
    (third,) = [row for row in rows if row["part"] == "third"]
    assert third["asked"] == third["pool_documents"] == 150, "fewer than a slow view may see"
    assert set(third["with"]) - set(third["without"]) == {"all-MiniLM-L6-v2"}
    rows.remove(third)
    (few,) = [row for row in rows if row["part"] == "sizes"]
    assert {run["documents"] for run in few["runs"]} >= {50, 100}
    rows.remove(few)
    assert all(0.2 < row["scores"]["macro_f1"] <= 1 for row in rows)
    assert all(len(row["alone"]) == 1 for row in rows if row["part"] != "student")
    assert {row["student"] for row in rows if row["part"] == "student"} == {"all-MiniLM-L6-v2", "words"}


def test_an_estimate_uses_the_lines_that_the_results_give(store):
    from views.calibrate import FILE, all_runs, calibration, lines

    measured, shipped = lines(all_runs()), json.loads(FILE.read_text())
    assert shipped.pop("calibration") == calibration()
    assert set(measured) == set(shipped)
    for kind, quantities in shipped.items():
        for quantity, facts in quantities.items():
            for name, value in facts.items():
                assert measured[kind][quantity][name] == pytest.approx(value, abs=0.01), (kind, quantity, name)


@pytest.mark.slow
def test_the_ranges_of_an_estimate_hold_the_truth_in_three_of_four_sets_left_out(store):
    from views.calibrate import all_runs, coverage

    found = coverage(all_runs())
    few = found[found["part"] == "sizes"]
    by = ["consensus", "quantity", "size"]
    assert few.groupby([*by, "base"])["held"].mean().groupby(by).mean().min() >= 0.65
    held = found.groupby(["consensus", "quantity", "base"])["held"].mean().groupby(["consensus", "quantity"]).mean()
    assert held.min() >= 0.75
