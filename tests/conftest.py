"""Fixtures that all folders of tests share. The tiny encoders are built from code, so no test needs a hub."""

import gc
import os
import signal
import sys
from collections.abc import Callable, Generator, Iterator
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, settings

pytest_plugins = ["leftovers"]

# A slow or busy machine is no failure.
settings.register_profile("any-speed", deadline=None, suppress_health_check=[HealthCheck.too_slow])
settings.load_profile("any-speed")

os.environ.setdefault("HF_HUB_OFFLINE", "1")

# A process in a shell's background ignores Ctrl-C, and so would every process that a test starts and interrupts.
if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
    signal.signal(signal.SIGINT, signal.default_int_handler)


@pytest.hookimpl(wrapper=True)
def pytest_collection() -> Generator[None, object, object]:
    """Exclude the hundreds of thousands of objects that collection creates from later garbage collection."""
    gc.disable()
    try:
        return (yield)
    finally:
        gc.freeze()
        gc.enable()


@pytest.hookimpl(trylast=True)
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Start with the file that takes longest, so that no process ends long after the others."""
    items.sort(key=lambda item: item.path.name != "test_package.py")


@pytest.hookimpl(tryfirst=True)
def pytest_runtest_makereport(item: pytest.Item) -> None:
    """Report an expected failure in one line; a traceback through scikit-learn's longest file takes .2 s."""
    if item.get_closest_marker("xfail"):
        item.repr_failure = lambda excinfo, style=None: excinfo.exconly()


@pytest.fixture(scope="session", autouse=True)
def no_waiting_for_the_disk() -> Iterator[None]:
    """Leave files in memory: waiting for the disk took a tenth of the time, and no test cuts the power."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(os, "fsync", lambda descriptor: None)
        yield


@pytest.fixture
def short_search(monkeypatch: pytest.MonkeyPatch) -> Any:
    """Let LaCon try two rates for two steps; it searches in earnest for an encoder without a published rate."""
    from labelspace.config import SearchConfig
    from labelspace.training.lacon import fit

    search = SearchConfig(rates=(1e-3, 1e-4), steps=2)
    monkeypatch.setattr(fit, "SearchConfig", lambda: search)
    return search


@pytest.fixture
def no_key_in_environment(monkeypatch: pytest.MonkeyPatch) -> None:
    """Take away the developer's own key and server of a hosted model."""
    for name in ("OPENAI_API_KEY", "OPENAI_BASE_URL"):
        monkeypatch.delenv(name, raising=False)


@pytest.fixture
def two_threads() -> Iterator[None]:
    """Compute on two threads."""
    import torch  # late: tests without an encoder should not load it

    before = torch.get_num_threads()
    torch.set_num_threads(2)
    yield
    torch.set_num_threads(before)


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


@pytest.fixture(scope="session")
def own_code_folder(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    """A tiny encoder with its own model code, which runs; do not write into it."""
    from tiny_models import build_own_code

    with pytest.MonkeyPatch.context() as patch:
        # Keep transformers' copy of that code out of the user's cache and off the import path.
        modules = tmp_path_factory.mktemp("modules")
        patch.setattr("transformers.dynamic_module_utils.HF_MODULES_CACHE", str(modules))
        patch.setattr(sys, "path", list(sys.path))
        yield build_own_code(tmp_path_factory.mktemp("own") / "own-code")
