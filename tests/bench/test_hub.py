"""The hub's pairs become texts with one label each, or a clear error, never a wrong number of classes."""

import contextlib
import os
import subprocess
import sys
from types import SimpleNamespace

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from labelspace.bench import hub, tasks
from labelspace.bench.cards import BTZSC, MTEB
from labelspace.errors import InputError, MissingDependencyError

NEWS = ("It is sport.", "It is trade.", "It is war.", "It is science.")
WHERE = "agnews on the hub"


def pairs(*answers: int | None, hypotheses: tuple[str, ...] = NEWS) -> list[tuple[str, str, int]]:
    """Pairs of one text per answer, each with all hypotheses; None: no hypothesis is true."""
    return [
        (f"text {i}", hypothesis, int(place == answer))
        for i, answer in enumerate(answers)
        for place, hypothesis in enumerate(hypotheses)
    ]


def read(rows: list[tuple[str, str, int]]):
    return hub.rows_of_pairs(rows, BTZSC["agnews"], where=WHERE)


@pytest.mark.parametrize("first", range(4))
def test_classes_are_counted_by_hypotheses_for_any_first_label(first):
    """Counting up to the first repeat of the 0/1 pattern gives 1 class where the first answer is not class 0."""
    found = read(pairs(first, 2, 0, 3))
    assert found.targets == [first, 2, 0, 3]
    assert found.texts == ["text 0", "text 1", "text 2", "text 3"]
    assert found.space.verbalizers == NEWS


def test_the_same_text_twice_in_a_row_is_two_rows():
    found = read([(text.replace("1", "0"), hypothesis, label) for text, hypothesis, label in pairs(1, 2)])
    assert (found.texts, found.targets) == (["text 0", "text 0"], [1, 2])


def test_a_text_without_a_true_hypothesis_has_no_class():
    assert read(pairs(0, None, 3)).targets == [0, -1, 3]


def test_another_number_of_classes_than_expected_is_noted():
    found = read(pairs(0, 1, hypotheses=NEWS[:2]))
    assert found.notes == ("the data has 2 hypotheses, 4 were expected",)
    assert read(pairs(0, 1)).notes == ()


def test_a_two_line_hypothesis_is_unchanged_and_its_name_is_one_line():
    found = read(pairs(0, 1, hypotheses=("It is\nsport.", "It is trade.")))
    assert (found.space.names[0], found.space.verbalizers[0]) == ("It is sport.", "It is\nsport.")


def swapped(rows: list) -> list:
    return [*rows[:4], rows[5], rows[4], *rows[6:]]


def renamed(rows: list) -> list:
    return [*rows[:5], (rows[5][0], "It is gossip.", 0), *rows[6:]]


def mixed(rows: list) -> list:
    return [*rows[:6], ("text 9", *rows[6][1:]), *rows[7:]]


def twice(rows: list) -> list:
    return [
        (text, hypothesis, 1) if i in (4, 6) else (text, hypothesis, label)
        for i, (text, hypothesis, label) in enumerate(rows)
    ]


@pytest.mark.parametrize(
    ("broken", "message"),
    [
        (lambda rows: rows[:-1], r"the end after row 11 comes after 3 of 4 hypotheses"),
        (lambda rows: rows[:5] + rows[6:], r"row 6 has the hypothesis 'It is war\.' where 'It is trade\.' is due"),
        (lambda rows: rows[:7] + rows[8:], "row 8 comes after 3 of 4 hypotheses"),
        (swapped, "row 5 begins the second text"),
        (renamed, r"row 6 has the hypothesis 'It is gossip\.'"),
        (mixed, "row 7 has another text before all hypotheses"),
        (twice, "row 7 is the second right answer"),
        (lambda rows: [rows[0], rows[1], rows[1], *rows[2:]], r"row 3: the first text has 'It is trade\.' twice"),
        (lambda rows: [rows[0], ("text 5", *rows[1][1:]), *rows[2:]], "row 2 begins the second text"),
        (lambda rows: [*rows[:3], (rows[3][0], rows[3][1], 2), *rows[4:]], "labels must be 0 or 1. Got 2 instead"),
        (lambda rows: [(None, *rows[0][1:]), *rows[1:]], "row 1 lacks a text or a hypothesis"),
        (lambda rows: [], "has no rows"),
        (lambda rows: rows[:1], "a single hypothesis"),
    ],
    ids=[
        "cut off",
        "row missing",
        "last row missing",
        "order",
        "other hypothesis",
        "texts mixed",
        "two answers",
        "hypothesis twice",
        "first text cut",
        "label 2",
        "no text",
        "empty",
        "one class",
    ],
)
def test_malformed_rows_are_refused_by_row(broken, message):
    with pytest.raises(InputError, match=message):
        read(broken(pairs(0, 2, 3)))


class Table:
    """The part of a `datasets.Dataset` that is used."""

    def __init__(self, rows: list[tuple[str, str, int]], columns: tuple[str, ...] = hub.COLUMNS) -> None:
        self.column_names = list(columns)
        self.rows = rows

    def iter(self, batch_size: int):
        for at in range(0, len(self.rows), batch_size):
            yield dict(zip(hub.COLUMNS, map(list, zip(*self.rows[at : at + batch_size], strict=True)), strict=True))


def stand_in(monkeypatch: pytest.MonkeyPatch, answer) -> list[tuple]:
    """Replace the package datasets by `answer`; the returned list collects the requests."""
    asked: list[tuple] = []

    def load_dataset(*args, **options):
        asked.append((*args, options))
        if isinstance(answer, Exception):
            raise answer
        return answer

    config = SimpleNamespace(HF_HUB_OFFLINE=False)
    monkeypatch.setitem(sys.modules, "datasets", SimpleNamespace(load_dataset=load_dataset, config=config))
    return asked


def test_without_a_folder_a_task_comes_from_the_hub(monkeypatch):
    monkeypatch.setattr(hub, "BLOCK", 5)
    asked = stand_in(monkeypatch, Table(pairs(1, None, 2)))
    task = tasks.load_task("agnews")
    assert asked == [("btzsc/btzsc", "agnews", {"split": "test"})]
    assert (task.texts, task.targets.tolist()) == (["text 0", "text 2"], [1, 2])
    assert "1 row of classes without a verbalizer left out" in task.notes


def test_rows_without_a_true_hypothesis_are_class_0_as_in_the_harness(monkeypatch):
    stand_in(monkeypatch, Table(pairs(1, None, 2)))
    assert tasks.load_task("agnews", unverbalized="class_0").targets.tolist() == [1, 0, 2]


def test_an_unreachable_hub_is_a_clear_error(monkeypatch):
    stand_in(monkeypatch, ConnectionError("Couldn't reach\nthe hub"))
    with pytest.raises(InputError, match=r"agnews of btzsc/btzsc cannot be read .*give a folder") as caught:
        tasks.load_task("agnews")
    assert "\n" not in str(caught.value)


def test_missing_columns_are_a_clear_error(monkeypatch):
    stand_in(monkeypatch, Table([], columns=("text", "label")))
    with pytest.raises(InputError, match=r"has no column 'hypothesis'\. Got text, label instead"):
        tasks.load_task("agnews")


def test_without_the_package_the_message_says_what_to_install(monkeypatch):
    monkeypatch.setitem(sys.modules, "datasets", None)
    with pytest.raises(MissingDependencyError, match=r"'datasets'.*pip install"):
        tasks.load_task("agnews")


def test_mteb_is_not_on_the_hub_repository():
    with pytest.raises(InputError, match="read from a folder only"):
        hub.read_hub(MTEB["mteb/imdb"])


def test_the_papers_rows_are_on_the_hub_for_two_sets_only(monkeypatch):
    stand_in(monkeypatch, Table(pairs(1, 0, hypotheses=NEWS[:2])))
    assert tasks.load_task("rottentomatoes", protocol="paper").targets.tolist() == [1, 0]
    with pytest.raises(InputError, match="In full the paper has only: rottentomatoes, financialphrasebank"):
        tasks.load_task("agnews", protocol="paper")


# ---- offline mode, commits


def test_an_uncached_set_is_a_clear_error_offline(monkeypatch):
    stand_in(monkeypatch, ValueError("Couldn't find cache for btzsc/btzsc\nfor config 'agnews'"))
    with pytest.raises(InputError, match=r"agnews of btzsc/btzsc is not in the hub's cache .*load it once") as caught:
        tasks.load_task("agnews", offline=True)
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize("ends", ["well", "badly"])
def test_offline_mode_ends_after_reading(monkeypatch, ends):
    seen = []

    def load_dataset(*args, **options):
        seen.append(module.config.HF_HUB_OFFLINE)
        if ends == "badly":
            raise OSError("no cache")
        return Table(pairs(1, 2))

    module = SimpleNamespace(load_dataset=load_dataset, config=SimpleNamespace(HF_HUB_OFFLINE=False))
    monkeypatch.setitem(sys.modules, "datasets", module)
    with contextlib.suppress(InputError):
        tasks.load_task("agnews", offline=True)
    assert seen == [True]
    assert module.config.HF_HUB_OFFLINE is False


def test_only_cached_sets_are_available_offline(monkeypatch):
    def load_dataset(repository, name, *, split):
        if name != "imdb":
            raise ValueError(f"Couldn't find cache for {name}")
        return Table(pairs(1))

    module = SimpleNamespace(load_dataset=load_dataset, config=SimpleNamespace(HF_HUB_OFFLINE=False))
    monkeypatch.setitem(sys.modules, "datasets", module)
    found = tasks.find_tasks(None, offline=True)
    assert found.present == ["imdb"]
    assert len(found.absent) == 29
    assert found.why["agnews"] == "not in the hub's cache on this machine"
    assert found.why["mteb/imdb"] == "read from a folder only"


def test_an_error_class_of_the_package_itself_is_a_clear_error(monkeypatch):
    class DatasetsError(Exception):
        pass

    stand_in(monkeypatch, DatasetsError("An error occurred while generating the dataset"))
    sys.modules["datasets"].exceptions = SimpleNamespace(DatasetsError=DatasetsError)
    with pytest.raises(InputError, match="cannot be read from the hub"):
        tasks.load_task("agnews")


COMMIT = "0123456789abcdef0123456789abcdef01234567"


@pytest.mark.parametrize(
    ("facts", "revision"),
    [
        ({"info": SimpleNamespace(download_checksums={f"hf://datasets/btzsc/btzsc@{COMMIT}/x.parquet": {}})}, COMMIT),
        ({"cache_files": [{"filename": f"/c/btzsc___btzsc/agnews/0.0.0/{COMMIT}/btzsc-test.arrow"}]}, COMMIT),
        ({"cache_files": [{"filename": "/c/btzsc___btzsc/agnews/0.0.0/12ab/btzsc-test.arrow"}]}, None),
        ({"info": SimpleNamespace(download_checksums=None), "cache_files": []}, None),
        ({}, None),
    ],
    ids=["checksums", "cache", "no commit", "empty", "nothing"],
)
def test_the_commit_of_the_rows_is_read_from_the_package(monkeypatch, facts, revision):
    table = Table(pairs(1, None, 2))
    vars(table).update(facts)
    stand_in(monkeypatch, table)
    for options in ({}, {"limit": 1}, {"unverbalized": "class_0"}):
        assert tasks.load_task("agnews", **options).revision == revision


CACHED = """
import socket, sys
from pathlib import Path
import datasets
from datasets.packaged_modules.parquet.parquet import Parquet

def refused(*args):
    raise AssertionError("the network was asked")

rows = {"test": [sys.argv[1]]}
made = Parquet(cache_dir=sys.argv[2], dataset_name="btzsc", config_name="agnews", hash=sys.argv[3], data_files=rows)
made.download_and_prepare(
    output_dir=str(Path(datasets.config.HF_DATASETS_CACHE) / "btzsc___btzsc" / "agnews" / "0.0.0" / sys.argv[3])
)
socket.socket.connect = socket.getaddrinfo = refused
from labelspace.bench import find_tasks, load_task
assert not datasets.config.HF_HUB_OFFLINE
task = load_task("agnews", offline=True)
print(task.texts, task.revision, find_tasks(None, offline=True).present)
"""


@pytest.mark.slow
def test_the_real_package_reads_its_cache_without_the_network(tmp_path):
    pytest.importorskip("datasets")
    columns = dict(zip(hub.COLUMNS, map(list, zip(*pairs(1, 2), strict=True)), strict=True))
    pq.write_table(pa.table(columns), tmp_path / "test.parquet")
    offline = ("HF_HUB_OFFLINE", "TRANSFORMERS_OFFLINE", "HF_DATASETS_OFFLINE")
    environment = {name: value for name, value in os.environ.items() if name not in offline}
    done = subprocess.run(
        [sys.executable, "-c", CACHED, str(tmp_path / "test.parquet"), str(tmp_path / "made"), COMMIT],
        env={**environment, "HF_HOME": str(tmp_path / "home")},
        capture_output=True,
        text=True,
        check=False,
        timeout=120,
    )
    assert done.returncode == 0, done.stderr
    assert done.stdout.splitlines()[-1] == f"['text 0', 'text 1'] {COMMIT} ['agnews']"
