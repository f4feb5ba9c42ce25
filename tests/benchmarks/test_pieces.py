import importlib
import json
from pathlib import Path
from typing import Any

import pytest

ROOT = Path(__file__).resolve().parents[2]


@pytest.fixture
def pieces(monkeypatch):
    monkeypatch.syspath_prepend(str(ROOT / "benchmarks"))
    return importlib.import_module("pieces")


def failing() -> dict[str, Any]:
    raise ValueError("no such rows")


def test_a_piece_that_fails_stops_none_behind_it_and_is_named(pieces, tmp_path, capfd):
    works = {"first": failing, "second": lambda: {"accuracy": 0.5}}
    some = [pieces.Piece(part="main", name=name, facts={"set": name}, work=work) for name, work in works.items()]
    with pytest.raises(SystemExit, match="1 pieces failed: main/first"):
        pieces.run_pieces(some, tmp_path, minutes=1, command=[])
    assert "no such rows" in capfd.readouterr().err
    assert [path.name for path in tmp_path.rglob("*.json")] == ["second.json"]


def test_a_piece_that_another_process_has_finished_meanwhile_is_not_run_again(pieces, tmp_path):
    second = pieces.Piece(part="main", name="second", facts={}, work=failing)

    def first_and_second() -> dict[str, Any]:
        second.path(tmp_path).write_text("{}")
        return {}

    first = pieces.Piece(part="main", name="first", facts={}, work=first_and_second)
    second.path(tmp_path).parent.mkdir(parents=True)
    assert pieces.run_pieces([first, second], tmp_path, minutes=1, command=[]) == 0
    assert second.path(tmp_path).read_text() == "{}"


def test_a_result_names_the_commit_that_was_read_not_the_one_there_when_it_ends(pieces, tmp_path, monkeypatch):
    monkeypatch.setattr(pieces, "COMMIT", "a1b2c3")
    piece = pieces.Piece(part="main", name="one", facts={}, work=dict)
    pieces.run_piece(piece, tmp_path)
    assert json.loads(piece.path(tmp_path).read_text())["provenance"]["commit"] == "a1b2c3"


def test_a_measurement_of_a_piece_cannot_be_written_over_by_the_pieces_own_seconds(pieces, tmp_path):
    piece = pieces.Piece(part="cost", name="one", facts={}, work=lambda: {"seconds": {"encoder": 0.5}})
    with pytest.raises(ValueError, match="cost/one: 'seconds' are those of the piece"):
        pieces.run_piece(piece, tmp_path)
    assert list(tmp_path.rglob("*.json")) == []


def test_ctrl_c_ends_the_run_and_leaves_no_result(pieces, tmp_path):
    def stopped() -> dict[str, Any]:
        raise KeyboardInterrupt

    piece = pieces.Piece(part="main", name="one", facts={}, work=stopped)
    with pytest.raises(KeyboardInterrupt):
        pieces.run_pieces([piece], tmp_path, minutes=1, command=[])
    assert list(tmp_path.rglob("*.json")) == []


def test_a_result_of_other_settings_ends_the_call_before_anything_runs(pieces, tmp_path):
    old = pieces.Piece(part="main", name="one", facts={"set": "a", "rates": (1, 2)}, work=dict)
    pieces.run_piece(old, tmp_path)
    new = pieces.Piece(part="main", name="one", facts={"set": "a", "rates": (1, 3)}, work=dict)
    fresh = pieces.Piece(part="main", name="two", facts={}, work=failing)
    with pytest.raises(SystemExit, match=r"other settings \(rates \[1, 2\], not \[1, 3\]\)"):
        pieces.run_pieces([fresh, new], tmp_path, minutes=1, command=[])
    assert pieces.run_pieces([old], tmp_path, minutes=1, command=[]) == 0


def test_two_calls_at_once_share_the_pieces(pieces, tmp_path):
    done = []
    some = [pieces.Piece(part="main", name=name, facts={}, work=lambda: done.append(1) or {}) for name in ("a", "b")]
    with pieces.claimed(some[0], tmp_path):
        assert pieces.run_pieces(some, tmp_path, minutes=1, command=[]) == 1
    assert [path.name for path in tmp_path.rglob("*.json")] == ["b.json"]
    assert pieces.run_pieces(some, tmp_path, minutes=1, command=[]) == 0
    assert len(done) == 2
    assert list((tmp_path / ".claims").iterdir()) == []


def test_a_result_that_has_the_old_name_of_a_metric_is_read_under_its_own(pieces):
    old = {"metric": "macro_f1", "macro_f1": {"verbalizer": 0.5}, "macro_f1_by_count": {"1": [0.25]}, "accuracy": 0.75}
    new = pieces.renamed(old)
    assert new["metric"] == "macro_f1_predicted"
    assert new["macro_f1_predicted"] == {"verbalizer": 0.5}
    assert new["macro_f1_predicted_by_count"] == {"1": [0.25]}
    assert new["accuracy"] == 0.75
    assert pieces.renamed(new) == new
