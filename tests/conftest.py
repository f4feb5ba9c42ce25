"""Fixtures that every folder of tests shares. No test asks a hub: the tiny encoders are made here from code."""

import os
from collections.abc import Callable
from pathlib import Path

import pytest

os.environ.setdefault("HF_HUB_OFFLINE", "1")


@pytest.fixture(scope="session")
def tiny_encoder_folder() -> Path:
    """The tiny BERT with mean pooling that is in the repository."""
    return Path(__file__).parent / "data" / "tiny-bert"


@pytest.fixture(scope="session")
def tiny_folder(tmp_path_factory: pytest.TempPathFactory) -> Callable[[str], Path]:
    """Build a tiny encoder of a kind listed in `tiny_models.py`, once per session; do not write into it."""
    built: dict[str, Path] = {}

    def folder(kind: str) -> Path:
        from tiny_models import build_tiny  # late: tests without an encoder should not load torch

        if kind not in built:
            built[kind] = build_tiny(kind, tmp_path_factory.mktemp("tiny") / kind)
        return built[kind]

    return folder
