"""Fixtures with made-up results in separate tables."""

import importlib
from collections.abc import Callable, Iterable
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

BENCHMARKS = Path(__file__).resolve().parents[2] / "benchmarks"
PROVENANCE = {
    "labelspace": "0.1.0",
    "commit": "a" * 40,
    "versions": {"python": "3.11"},
    "hardware": {"cores": 1},
    "command": "run.py",
    "seeds": [0],
    "data": "made up",
    "date": "2026-01-01T00:00:00+00:00",
}


@pytest.fixture
def store(monkeypatch: pytest.MonkeyPatch) -> Any:
    """The module that reads and adds results; changes by a test are undone."""
    monkeypatch.syspath_prepend(str(BENCHMARKS))
    import store

    monkeypatch.setattr(store, "TABLES", {})
    monkeypatch.setattr(store, "ENCODER", store.ENCODER)
    return store


@pytest.fixture
def study_of(store: Any) -> Callable[..., SimpleNamespace]:
    """Return the modules of a study by name, and others of benchmarks/, from where they import one another."""

    def study_of(study: str, *others: str) -> SimpleNamespace:
        names = {path.stem: f"{study}.{path.stem}" for path in (BENCHMARKS / study).glob("*.py")}
        names |= {other: other for other in others}
        return SimpleNamespace(**{name: importlib.import_module(place) for name, place in names.items()})

    return study_of


@pytest.fixture
def plant(store: Any, tmp_path: Path) -> Callable[..., Path]:
    """Rewrite the table of a study, and make the docs' tables from it."""

    def plant(study: str, rows: Iterable[dict[str, Any]]) -> Path:
        path, shared, packed = tmp_path / f"{study}.jsonl", {}, []
        for number, row in enumerate(rows):
            own, more = store._packed({"name": f"{number:05d}", **row}, PROVENANCE)
            packed.append(own)
            shared |= more
        store._write(path.with_name("shared.jsonl"), ({"key": key, "value": shared[key]} for key in shared))
        store._write(path, packed)
        store.TABLES[study] = path
        return path

    return plant
