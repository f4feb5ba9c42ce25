"""The cache of token states: off if asked, encoded once otherwise, and without effect on the result."""

import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from classify.doubt import FEW, FEW_Y, NEW, uncertainty
from labelspace import UncertaintyClassifier
from labelspace.encoders import Encoder, state_cache
from labelspace.encoders.state_cache import INDEX, STATES
from labelspace.errors import LabelSpaceWarning

Maker = Callable[..., UncertaintyClassifier]
MIXED = [text + " and the news" * (row % 3) for row, text in enumerate(FEW)]


@pytest.fixture
def fitted(encoders: dict[str, Encoder]) -> Maker:
    """Fit a classifier for three epochs on texts of several lengths."""

    def made(cache: Any, dtype: str = "float32", texts: Any = MIXED, **options: Any) -> UncertaintyClassifier:
        return uncertainty(encoders[dtype], epochs=3, cache=cache, **options).fit(texts, FEW_Y[: len(texts)])

    return made


@pytest.fixture
def encoded(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """The number of texts in each call that encodes."""
    asked: list[int] = []
    real = state_cache.encoded_states

    def counting(encoder: Encoder, token_ids: Any, *rest: Any) -> Any:
        asked.append(len(token_ids))
        return real(encoder, token_ids, *rest)

    monkeypatch.setattr(state_cache, "encoded_states", counting)
    return asked


def entries(folder: Path) -> list[Path]:
    return [path for path in folder.iterdir() if path.is_dir()]


def answers_of(clf: UncertaintyClassifier) -> tuple[np.ndarray, ...]:
    return clf.decision_function(NEW), clf.predict_uncertainty(NEW), np.array(clf.fit_result_.curve.losses)


def same(one: UncertaintyClassifier, other: UncertaintyClassifier) -> bool:
    return all((a == b).all() for a, b in zip(answers_of(one), answers_of(other), strict=True))


def test_cache_none_writes_nothing_and_encodes_in_every_epoch(
    fitted: Maker, encoded: list[int], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("LABELSPACE_CACHE", str(tmp_path / "cache"))
    fitted(None)
    assert encoded == [6, 6] * 3
    assert list(tmp_path.rglob("*")) == []


@pytest.mark.parametrize("dtype", ["float32", "bfloat16"])
def test_a_cache_folder_serves_every_epoch_and_the_next_fit(
    dtype: str, fitted: Maker, encoded: list[int], tmp_path: Path
):
    first = fitted(tmp_path, dtype)
    assert encoded == [12]
    assert {path.name for path in entries(tmp_path)[0].iterdir()} == {STATES, INDEX}
    again = fitted(str(tmp_path), dtype)
    assert encoded == [12]
    assert same(first, again)
    fitted(tmp_path, dtype, learning_rate=1e-4, seed=3)
    assert encoded == [12], "rate and seed do not affect the encoded states"
    fitted(tmp_path, dtype, texts=MIXED[:9])
    assert encoded == [12, 9]
    assert len(entries(tmp_path)) == 2


def test_the_same_rows_in_another_order_are_encoded_once(fitted: Maker, encoded: list[int], tmp_path: Path):
    fitted(tmp_path)
    uncertainty(fitted(None).encoder, cache=tmp_path).fit(MIXED[::-1], FEW_Y[::-1])
    assert encoded.count(12) == 1
    assert len(entries(tmp_path)) == 1


def test_cache_auto_uses_the_cache_folder_of_labelspace(fitted: Maker, tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setenv("LABELSPACE_CACHE", str(tmp_path))
    fitted("auto")
    assert len(entries(tmp_path / "token-states")) == 1


def test_a_tilde_in_the_cache_folder_is_the_home_folder(fitted: Maker, tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("HOME", str(tmp_path / "home"))
    monkeypatch.setenv("USERPROFILE", str(tmp_path / "home"))
    fitted(cache="~/states")
    assert list((tmp_path / "home" / "states").glob("*/states.bf16"))
    assert not (tmp_path / "~").exists()


@pytest.mark.parametrize(
    ("how", "dtype"),
    [("evicted", "float32"), ("damaged", "float32"), ("removed", "float32"), ("removed", "bfloat16")],
)
def test_states_computed_again_are_bit_equal(how: str, dtype: str, fitted: Maker, encoded: list[int], tmp_path: Path):
    first = fitted(tmp_path, dtype)
    (entry,) = entries(tmp_path)
    if how == "evicted":
        os.utime(entry / INDEX, (1_000_000, 1_000_000))
        size = (entry / STATES).stat().st_size
        fitted(tmp_path, dtype, texts=[f"{text} today" for text in MIXED], cache_bytes=int(1.5 * size))
        assert not entry.exists()
        encoded.pop()
    elif how == "damaged":
        with (entry / STATES).open("r+b") as file:
            file.write(b"\xff")
    else:
        state_cache.StateCache(tmp_path).clear()
    again = fitted(tmp_path, dtype)
    assert encoded == [12, 12]
    assert same(first, again)


def test_without_a_cache_the_result_differs_only_by_rounding(fitted: Maker, tmp_path: Path):
    """Not bit-equal: without a cache a text is encoded in other batches, which may change the last digit."""
    for one, other in zip(answers_of(fitted(None)), answers_of(fitted(tmp_path)), strict=True):
        assert np.abs(one - other).max() < 1e-3


def test_states_larger_than_the_cache_are_encoded_each_time_with_one_warning(
    fitted: Maker, encoded: list[int], tmp_path: Path
):
    with pytest.warns(LabelSpaceWarning, match="token states are not kept on disk.*cache_bytes") as told:
        clf = fitted(tmp_path, cache_bytes=10)
    assert len(told) == 1
    assert encoded == [6, 6] * 3
    assert same(clf, fitted(None))
    assert list(tmp_path.iterdir()) == []


def test_held_out_rows_share_the_entry_and_predictions_are_not_cached(
    fitted: Maker, encoded: list[int], tmp_path: Path
):
    clf = fitted(tmp_path, validation=0.25)
    assert encoded == [12]
    before = sorted(path.name for path in tmp_path.rglob("*"))
    clf.predict(NEW)
    assert sorted(path.name for path in tmp_path.rglob("*")) == before
