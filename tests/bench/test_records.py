"""A store line with an invalid value is a clear error, never a traceback or a wrong mean."""

import json
from pathlib import Path

import pytest

from bench.fakes import record
from labelspace.bench.records import NEEDED
from labelspace.bench.store import ResultStore
from labelspace.errors import InputError

SHIPPED = sorted((Path(__file__).parents[2] / "benchmarks" / "results").glob("btzsc*.jsonl"))
PAIRS = {"task": "nli", "benchmark": "nli", "task_family": "nli", "metrics": {"auroc": 0.6}, "by_source": {"x": 0.6}}
FOUR = record()["metrics"]


def written(tmp_path: Path, **wrong) -> ResultStore:
    """A store whose second line has the given values."""
    lines = [{"schema": 1, **record()}, {"schema": 1, **record(task="imdb"), **wrong}]
    file = tmp_path / "results.jsonl"
    file.write_text("".join(json.dumps(line) + "\n" for line in lines))
    return ResultStore(file)


@pytest.mark.parametrize("path", SHIPPED, ids=lambda path: path.stem)
def test_the_shipped_stores_can_be_read(path):
    assert len(ResultStore(path).records()) == len(path.read_text().splitlines())


@pytest.mark.parametrize(
    ("wrong", "said"),
    [
        ({"model": ["embedding:a"]}, "model must be text. Got ['embedding:a'] instead"),
        ({"task": {}}, "task must be text. Got {} instead"),
        ({"protocol": None}, "protocol must be text. Got None instead"),
        ({"unverbalized": 3}, "unverbalized must be text"),
        ({"limit": "10"}, "limit must be a whole number, 1 or more, or null. Got '10' instead"),
        ({"limit": 2.5}, "limit must be a whole number"),
        ({"limit": True}, "limit must be a whole number"),
        ({"seed": None}, "seed must be a whole number"),
        ({"seed": [0]}, "seed must be a whole number"),
        ({"dtype": ""}, "dtype must be text"),
        ({"fingerprint": 7}, "fingerprint must be text"),
        ({"family": None}, "family must be text"),
        ({"benchmark": "BTZSC"}, "benchmark must be one of 'btzsc', 'mteb', 'own', 'nli'. Got 'BTZSC' instead"),
        ({"benchmark": ["btzsc"]}, "benchmark must be one of"),
        ({"benchmark": "nli"}, "benchmark cannot be 'nli' for the task 'imdb'"),
        ({"task_family": "topics"}, "task_family must be one of"),
        ({"texts": 0}, "texts must be a whole number, 1 or more. Got 0 instead"),
        ({"texts": "many"}, "texts must be a whole number"),
        ({"seconds": "2"}, "seconds must be a number, 0 or more. Got '2' instead"),
        ({"seconds": float("nan")}, "seconds must be a number"),
        ({"seconds": float("inf")}, "seconds must be a number"),
        ({"seconds": 10**400}, "seconds must be a number"),
        ({"metrics": [0.5]}, "metrics must be names with a value each"),
        (
            {"metrics": {"macro_f1_predicted": 0.5}},
            "metrics lacks accuracy, macro_precision_predicted, macro_recall_predicted",
        ),
        (
            {"metrics": {**FOUR, "macro_f1_predicted": 71}},
            "macro_f1_predicted of metrics must be a number from 0 to 1. Got 71 instead",
        ),
        ({"metrics": {**FOUR, "accuracy": "0.5"}}, "accuracy of metrics must be a number from 0 to 1"),
        ({"metrics": {**FOUR, "accuracy": None}}, "accuracy of metrics must be a number from 0 to 1"),
        (
            {"metrics": {**FOUR, "macro_recall_predicted": True}},
            "macro_recall_predicted of metrics must be a number from 0 to 1",
        ),
        (
            {"metrics": {**FOUR, "macro_precision_predicted": float("nan")}},
            "macro_precision_predicted of metrics must be a number",
        ),
        (
            {"metrics": {**FOUR, "macro_precision_predicted": -0.1}},
            "macro_precision_predicted of metrics must be a number",
        ),
        ({"intervals": [0.4, 0.6]}, "intervals must be names with a value each, or null"),
        ({"intervals": {"macro_f1_predicted": 0.4}}, "macro_f1_predicted of intervals must be two numbers from 0 to 1"),
        ({"intervals": {"macro_f1_predicted": [0.4, None]}}, "macro_f1_predicted of intervals must be two numbers"),
        ({"parameters": "22M"}, "parameters must be a whole number, 1 or more, or null"),
        ({"revision": 5}, "revision must be text, or null"),
        ({"peak_memory_mib": "a lot"}, "peak_memory_mib must be a number"),
        ({"memory_before_mib": -1}, "memory_before_mib must be a number"),
        ({"notes": "one"}, "notes must be a list of texts"),
        ({"provenance": None}, "provenance must be names with a value each"),
        ({"provenance": {}}, "provenance lacks labelspace, commit"),
        ({"provenance": {**record()["provenance"], "hardware": "a laptop"}}, "hardware of provenance must be names"),
        ({"provenance": {**record()["provenance"], "date": 20261121}}, "date of provenance must be text"),
        ({**PAIRS, "metrics": {"macro_f1_predicted": 0.6}}, "metrics lacks auroc"),
        ({**PAIRS, "by_source": None}, "by_source must be names with a number each. Got None instead"),
        ({**PAIRS, "by_source": {"mnli_matched_dev": "high"}}, "mnli_matched_dev of by_source must be a number"),
        ({**PAIRS, "benchmark": "btzsc"}, "benchmark cannot be 'btzsc' for the task 'nli'"),
    ],
    ids=lambda value: value[:50] if isinstance(value, str) else None,
)
def test_a_wrong_value_is_one_error_with_file_line_and_field(tmp_path, wrong, said):
    store = written(tmp_path, **wrong)
    with pytest.raises(InputError) as caught:
        store.records()
    told = str(caught.value)
    assert told.startswith(f"{store.path}, line 2: {said}")
    assert told.endswith("repair the line or remove it.")
    assert "\n" not in told


@pytest.mark.parametrize("name", NEEDED)
def test_a_missing_required_field_is_named(tmp_path, name):
    line = {"schema": 1, **record()}
    del line[name]
    (tmp_path / "results.jsonl").write_text(json.dumps(line) + "\n")
    with pytest.raises(InputError, match=rf"line 1: it lacks {name};"):
        ResultStore(tmp_path / "results.jsonl").records()


def test_nli_records_have_their_sources(tmp_path):
    assert len(written(tmp_path, **PAIRS).records()) == 2


def test_unknown_fields_and_metrics_are_allowed(tmp_path):
    more = {"carbon": {"kg": 1}, "metrics": {**FOUR, "kappa": 0.3}}
    assert written(tmp_path, **more).records()[1]["carbon"] == {"kg": 1}


@pytest.mark.parametrize("line", ["[" * 100_000, '{"schema": true}'], ids=["deep", "schema"])
def test_lines_that_are_not_records_are_refused(tmp_path, line):
    (tmp_path / "results.jsonl").write_text(line + "\n")
    with pytest.raises(InputError, match="line 1 is no"):
        ResultStore(tmp_path / "results.jsonl").records()
