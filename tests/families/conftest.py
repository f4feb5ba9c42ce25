"""Tiny cross-encoders, built once per session."""

from collections.abc import Callable
from pathlib import Path

import pytest

PairsFolder = Callable[..., Path]


@pytest.fixture(scope="session")
def pairs_folder(tmp_path_factory: pytest.TempPathFactory) -> PairsFolder:
    """Build a tiny cross-encoder of a kind with given classes, once per session; do not write into it."""
    built: dict[tuple[object, ...], Path] = {}

    def folder(kind: str = "bert", *names: str) -> Path:
        from families.tiny_pairs import build_pairs

        key = (kind, *names)
        if key not in built:
            place = tmp_path_factory.mktemp("pairs") / kind
            built[key] = build_pairs(kind, place, dict(enumerate(names)) if names else None)
        return built[key]

    return folder
