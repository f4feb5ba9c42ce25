from pathlib import Path
from typing import Any

import pytest


@pytest.fixture
def pieces(store):
    import pieces

    return pieces


@pytest.fixture
def out(tmp_path: Path) -> Path:
    return tmp_path / "study.jsonl"


def names(store, out: Path) -> list[str]:
    return [row["name"] for row in store.Table(out).rows()]


def failing() -> dict[str, Any]:
    raise ValueError("no such rows")


def test_a_failing_piece_is_named_and_stops_no_other(pieces, store, out, capfd):
    works = {"first": failing, "second": lambda: {"accuracy": 0.5}}
    some = [pieces.Piece(part="main", name=name, facts={"set": name}, work=work) for name, work in works.items()]
    with pytest.raises(SystemExit, match="1 pieces failed: main/first"):
        pieces.run_pieces(some, out, minutes=1, command=[])
    assert "no such rows" in capfd.readouterr().err
    assert names(store, out) == ["second"]


def test_a_piece_finished_by_another_process_is_not_run_again(pieces, store, out):
    second = pieces.Piece(part="main", name="second", facts={}, work=failing)

    def first_and_second() -> dict[str, Any]:
        pieces.run_piece(pieces.Piece(part="main", name="second", facts={}, work=dict), out)
        return {}

    first = pieces.Piece(part="main", name="first", facts={}, work=first_and_second)
    assert pieces.run_pieces([first, second], out, minutes=1, command=[]) == 0
    assert names(store, out) == ["first", "second"]


def test_a_result_names_the_commit_at_the_start_of_the_process(pieces, out, monkeypatch):
    monkeypatch.setattr(pieces, "COMMIT", "a1b2c3")
    piece = pieces.Piece(part="main", name="one", facts={}, work=dict)
    pieces.run_piece(piece, out)
    assert piece.result(out)["provenance"]["commit"] == "a1b2c3"


def test_a_result_cannot_use_the_reserved_field_seconds(pieces, store, out):
    piece = pieces.Piece(part="cost", name="one", facts={}, work=lambda: {"seconds": {"encoder": 0.5}})
    with pytest.raises(ValueError, match="cost/one: 'seconds' is reserved for the time of the piece"):
        pieces.run_piece(piece, out)
    assert names(store, out) == []


def test_ctrl_c_ends_the_run_and_leaves_no_result(pieces, store, out):
    def stopped() -> dict[str, Any]:
        raise KeyboardInterrupt

    piece = pieces.Piece(part="main", name="one", facts={}, work=stopped)
    with pytest.raises(KeyboardInterrupt):
        pieces.run_pieces([piece], out, minutes=1, command=[])
    assert names(store, out) == []


def test_a_piece_that_is_not_finished_in_time_is_left_for_the_next_call(pieces, store, out, capsys):
    def stopped() -> dict[str, Any]:
        raise pieces.Unfinished("one: 3 of 9 updates are made.")

    some = [
        pieces.Piece(part="main", name=name, facts={}, work=work) for name, work in (("one", stopped), ("two", dict))
    ]
    assert pieces.run_pieces(some, out, minutes=1, command=[]) == 1
    assert "one: 3 of 9 updates are made." in capsys.readouterr().out
    assert names(store, out) == ["two"]


def test_a_result_of_other_settings_is_refused_before_anything_runs(pieces, out):
    old = pieces.Piece(part="main", name="one", facts={"set": "a", "rates": (1, 2)}, work=dict)
    pieces.run_piece(old, out)
    new = pieces.Piece(part="main", name="one", facts={"set": "a", "rates": (1, 3)}, work=dict)
    fresh = pieces.Piece(part="main", name="two", facts={}, work=failing)
    with pytest.raises(SystemExit, match=r"other settings \(rates \[1, 2\], not \[1, 3\]\)"):
        pieces.run_pieces([fresh, new], out, minutes=1, command=[])
    assert pieces.run_pieces([old], out, minutes=1, command=[]) == 0


def test_a_part_has_results_of_one_protocol(pieces, out):
    def piece(name: str, protocol: dict[str, int], part: str = "main") -> Any:
        return pieces.Piece(part=part, name=name, facts={"protocol": protocol}, work=dict)

    pieces.run_piece(piece("one", {"epochs": 1}), out)
    with pytest.raises(SystemExit, match=r"main/one was run with other settings .*'epochs': 1.* not .*'epochs': 2"):
        pieces.run_pieces([piece("two", {"epochs": 2})], out, minutes=1, command=[])
    assert pieces.run_pieces([piece("two", {"epochs": 2}, part="curve")], out, minutes=1, command=[]) == 0


def test_two_calls_at_once_share_the_pieces(pieces, store, out):
    done = []
    some = [pieces.Piece(part="main", name=name, facts={}, work=lambda: done.append(1) or {}) for name in ("a", "b")]
    with pieces.claimed(some[0], out):
        assert pieces.run_pieces(some, out, minutes=1, command=[]) == 1
    assert names(store, out) == ["b"]
    assert pieces.run_pieces(some, out, minutes=1, command=[]) == 0
    assert len(done) == 2
    assert list((out.parent / ".claims").glob("study-*")) == []


def test_a_recorded_command_names_no_folder_of_the_machine_and_no_piece(pieces):
    command = "run.py study --encoder /home/me/models/mpnet --out=/tmp/x.jsonl --piece part/name"
    assert pieces.told(command) == "run.py study --encoder mpnet --out=x.jsonl"
