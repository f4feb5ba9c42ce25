"""Tiny cross-encoders, built once per session, and what clients of hosted models read."""

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


@pytest.fixture(scope="session")
def certificate(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A file of the first certificate that clients trust."""
    import certifi

    first, end, _ = certifi.contents().partition("-----END CERTIFICATE-----\n")
    file = tmp_path_factory.mktemp("certificates") / "one.pem"
    file.write_text(first + end, encoding="utf-8")
    return file


@pytest.fixture
def one_certificate(certificate: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Let a client read one certificate: our server has none, and reading all takes most of a test's time."""
    monkeypatch.setenv("SSL_CERT_FILE", str(certificate))
