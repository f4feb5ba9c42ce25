"""The store keeps whole lines, names damaged ones, and never mixes results of different texts or weights."""

import errno
import json
import os
import threading

import pytest

from bench.fakes import record
from labelspace.bench.cards import THEIR_NAMES
from labelspace.bench.store import SCHEMA_VERSION, ResultStore, chosen, key_of
from labelspace.errors import ConfigError, InputError, LabelSpaceWarning, OutputError


def test_what_is_appended_is_read_back_with_its_schema(store):
    store.append(record(score=0.25))
    assert store.records() == [{"schema": SCHEMA_VERSION, **record(score=0.25)}]


def test_a_store_without_a_file_is_empty_and_creates_none(store):
    assert store.records() == []
    store.check_writable()
    assert not store.path.exists()


def test_the_last_of_two_lines_with_one_key_counts_in_the_place_of_the_first(store):
    store.append(record(score=0.1))
    store.append(record(task="imdb", score=0.2))
    store.append(record(score=0.3))
    assert [(found["task"], found["metrics"]["macro_f1_predicted"]) for found in store.records()] == [
        ("agnews", 0.3),
        ("imdb", 0.2),
    ]


@pytest.mark.parametrize(
    "other",
    [
        {"model": "embedding:b"},
        {"task": "imdb"},
        {"protocol": "paper"},
        {"unverbalized": "class_0"},
        {"limit": 10},
        {"seed": 1},
        {"dtype": "bfloat16"},
    ],
    ids=lambda other: next(iter(other)),
)
def test_a_different_key_field_makes_another_record(store, other):
    store.append(record())
    store.append({**record(), **other})
    assert len(store.records()) == 2


@pytest.mark.parametrize("cut", [1, 20, 150])
def test_a_half_written_last_line_is_left_out_with_a_warning_and_cut_off_by_the_next(store, cut):
    store.append(record())
    store.append(record(task="imdb"))
    whole = store.path.read_bytes()
    first = whole.index(b"\n") + 1
    store.path.write_bytes(whole[: first + cut])
    with pytest.warns(LabelSpaceWarning, match="last line is half-written"):
        assert len(store.records()) == 1
    assert store.path.read_bytes() == whole[: first + cut], "reading changes nothing"
    store.append(record(task="imdb"))
    assert store.path.read_bytes() == whole


def test_a_last_line_that_lacks_only_its_line_break_is_whole(store):
    store.append(record())
    store.path.write_bytes(store.path.read_bytes().rstrip(b"\n"))
    assert len(store.records()) == 1
    store.append(record(task="imdb"))
    assert [found["task"] for found in store.records()] == ["agnews", "imdb"]


@pytest.mark.parametrize(
    ("line", "said"),
    [
        ("{not json", "line 2 is not JSON"),
        ("[1, 2]", "line 2 is not a record. Got list instead"),
        ('{"model": "x"}', "line 2 is not a record: it has no schema version"),
        ('{"schema": 99}', "line 2 was written by a newer labelspace"),
        ('{"schema": 1, "model": "x"}', "line 2: it lacks task, protocol"),
    ],
    ids=["broken", "list", "no schema", "newer", "fields missing"],
)
def test_a_bad_line_in_the_middle_is_an_error_with_file_and_line(store, line, said):
    store.append(record())
    good = store.path.read_text()
    store.path.write_text(good + line + "\n" + good)
    with pytest.raises(InputError) as caught:
        store.records()
    assert said in str(caught.value)
    assert str(store.path) in str(caught.value)
    assert "\n" not in str(caught.value)


def test_a_result_of_other_texts_or_weights_is_not_reused_and_noted(store):
    store.append(record(revision="sha256:1"))
    known, key = store.by_key(), key_of(record())
    assert chosen(known, key, fingerprint="f", revision="sha256:1")[0] is not None
    assert chosen(known, key, fingerprint="f")[0] is not None
    assert chosen(known, key_of(record(seed=5)), fingerprint="f") == (None, "")
    found, why = chosen(known, key, fingerprint="other")
    assert found is None
    assert "embedding:a on agnews (full, float32)" in why
    assert "other texts" in why
    found, why = chosen(known, key, fingerprint="f", revision="sha256:2")
    assert found is None
    assert "other weights or settings" in why
    assert chosen(known, key, fingerprint="f", revision="sha256:1+9f")[0] is not None, "stored before settings were"


@pytest.mark.parametrize(
    ("wrong", "said"),
    [
        ({"metrics": {"macro_f1_predicted": float("nan")}}, "must hold plain finite values"),
        ({"metrics": {"f1": 0.5}}, "metrics lacks macro_f1_predicted"),
        ({"provenance": {"labelspace": "1"}}, "provenance lacks commit"),
        ({"texts": object()}, "must hold plain finite values"),
    ],
    ids=["nan", "metric", "provenance", "object"],
)
def test_an_invalid_record_is_not_written(store, wrong, said):
    with pytest.raises(ConfigError, match=said):
        store.append({**record(), **wrong})
    assert not store.path.exists()


def test_a_missing_folder_is_an_error_before_and_during_writing(tmp_path):
    store = ResultStore(tmp_path / "nowhere" / "results.jsonl")
    for write in (store.check_writable, lambda: store.append(record())):
        with pytest.raises(OutputError, match="cannot be written"):
            write()


@pytest.mark.parametrize("kind", ["refused", "half written"])
def test_a_full_disk_is_an_error_and_the_file_is_unchanged(store, monkeypatch, kind):
    store.append(record())
    before = store.path.read_bytes()
    write = os.write

    def full(descriptor: int, line: bytes) -> int:
        if kind == "refused":
            raise OSError(errno.ENOSPC, "No space left on device")
        return write(descriptor, line[: len(line) // 2])

    monkeypatch.setattr(os, "write", full)
    with pytest.raises(OutputError, match=r"cannot be written .*[Nn]o space left.*unchanged"):
        store.append(record(task="imdb"))
    assert store.path.read_bytes() == before


def test_concurrent_writers_lose_and_mix_no_lines(store):
    def write(number: int) -> None:
        for seed in range(10):
            ResultStore(store.path).append(record(model=f"embedding:{number}", seed=seed, note="x" * 5000))

    threads = [threading.Thread(target=write, args=(number,)) for number in range(6)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(store.records()) == 60
    assert all(json.loads(line) for line in store.path.read_text().splitlines())


def test_a_schema_1_store_is_read_with_the_new_metric_names(tmp_path):
    """Schema 1 used the name `macro_f1` for the mean over predicted labels too."""
    new = record(score=0.25)
    old = {"metrics": {THEIR_NAMES[name]: value for name, value in new["metrics"].items()}}
    old["intervals"] = {"macro_f1": [0.2, 0.3], "accuracy": [0.1, 0.4]}
    store = ResultStore(tmp_path / "old.jsonl")
    store.path.write_text(json.dumps({"schema": 1, **new, **old}) + "\n", encoding="utf-8")
    (read,) = store.records()
    assert read["metrics"] == new["metrics"]
    assert read["intervals"] == {"macro_f1_predicted": [0.2, 0.3], "accuracy": [0.1, 0.4]}
