"""Bounded memory: texts are tokenised and scored in windows, and a deleted classifier frees its weights."""

import gc
import itertools
import tracemalloc
import weakref
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import pytest

from classify.doubt import FEW, FEW_Y, NEW, uncertainty
from labelspace import LaConClassifier
from labelspace.classify import anchors, distinct
from labelspace.classify.settings import as_arguments
from labelspace.corpus import Kind
from labelspace.encoders import Encoder
from labelspace.encoders.backbone import Backbone

Maker = Callable[..., Any]

TEXTS = [text + " and the news" * (row % 4) for row, text in enumerate(NEW[:23])]
PAIRS = list(itertools.pairwise([*TEXTS, TEXTS[0]]))
WINDOW = 5
LACON = {
    "lacon": {},
    "lacon of pairs": {},
    "lacon with words": {"head": "fusion"},
    "lacon by cross-entropy": {"objective": "cross-entropy"},
}
KINDS = ("zero-shot", "description", *LACON, "uncertainty")
ASKS = ("predict", "predict_proba", "decision_function", "predict_uncertainty", "transform", "most_uncertain")
each_kind = pytest.mark.parametrize("kind", KINDS)


@pytest.fixture
def model(make: Maker, encoders: dict[str, Encoder]) -> Maker:
    """Return a fitted classifier of a kind, made once."""

    def made(kind: str) -> Any:
        if kind == "uncertainty":
            return uncertainty(encoders["float32"]).fit(FEW, FEW_Y)
        if kind not in LACON:
            return make(kind).fit()
        rows = list(itertools.pairwise([*FEW, FEW[0]])) if kind == "lacon of pairs" else FEW
        options = {"max_steps": 2, "description_steps": 0, "batch_size": 6, **LACON[kind]}
        return LaConClassifier(encoder=encoders["float32"], **as_arguments(LaConClassifier, options)).fit(rows, FEW_Y)

    return made


class Tokens(list):
    """A list of token ids that can be weakly referenced, so that a test can see when it is freed."""


def watch(monkeypatch: pytest.MonkeyPatch) -> tuple[list[int], list[int]]:
    """Record the documents in each call of the tokenizer, and how many earlier batches were still held."""
    sizes: list[int] = []
    held: list[int] = []
    lots: list[weakref.ref[Tokens]] = []
    tokenize, tokenize_pairs = Backbone.tokenize, Backbone.tokenize_pairs

    def noted(documents: Sequence[Any], ids: list[list[int]]) -> Tokens:
        sizes.append(len(documents))
        held.append(sum(lot() is not None for lot in lots))
        found = Tokens(ids)
        lots.append(weakref.ref(found))
        return found

    def pairs(self: Backbone, documents: Any) -> Any:
        ids, types = tokenize_pairs(self, documents)
        return noted(documents, ids), types

    monkeypatch.setattr(
        Backbone, "tokenize", lambda self, texts, **options: noted(texts, tokenize(self, texts, **options))
    )
    monkeypatch.setattr(Backbone, "tokenize_pairs", pairs)
    return sizes, held


@each_kind
def test_at_most_one_window_of_documents_is_tokenised_at_a_time(
    kind: str, model: Maker, monkeypatch: pytest.MonkeyPatch
):
    clf = model(kind)
    documents = PAIRS if clf.reads_ is Kind.PAIRS else TEXTS
    monkeypatch.setattr(distinct, "WINDOW", WINDOW)
    sizes, held = watch(monkeypatch)
    for ask in ASKS:
        if not hasattr(clf, ask):
            continue
        sizes.clear()
        getattr(clf, ask)(documents)
        assert [size for size in sizes if size] == [5, 5, 5, 5, 3], ask
    assert max(held) == 0


@each_kind
def test_a_window_is_scored_like_a_call_of_its_own(kind: str, model: Maker, monkeypatch: pytest.MonkeyPatch):
    clf = model(kind)
    documents = PAIRS if clf.reads_ is Kind.PAIRS else TEXTS
    asks = [ask for ask in ASKS if hasattr(clf, ask) and ask != "most_uncertain"]
    whole = {ask: getattr(clf, ask)(documents) for ask in asks}
    parts = [documents[start : start + WINDOW] for start in range(0, len(documents), WINDOW)]
    alone = {ask: np.concatenate([getattr(clf, ask)(part) for part in parts]) for ask in asks}
    monkeypatch.setattr(distinct, "WINDOW", WINDOW)
    for ask in asks:
        found = getattr(clf, ask)(documents)
        assert (found == alone[ask]).all(), ask
        if ask == "predict":
            assert list(found) == list(whole[ask])
        else:
            assert np.abs(found - whole[ask]).max() < 1e-5, ask
    monkeypatch.setattr(distinct, "WINDOW", len(documents))
    assert all((getattr(clf, ask)(documents) == whole[ask]).all() for ask in asks)


def unit_vectors(rows: int, dim: int) -> np.ndarray:
    drawn = np.random.default_rng(0).normal(size=(rows, dim)).astype(np.float32)
    return drawn / np.linalg.norm(drawn, axis=1, keepdims=True)


@pytest.mark.parametrize("window", [1, 7, 100])
def test_cosines_computed_in_windows_are_bit_equal(window: int, monkeypatch: pytest.MonkeyPatch):
    texts, labels = unit_vectors(300, 48), unit_vectors(40, 48)
    product = texts.astype(np.float64) @ labels.astype(np.float64).T
    monkeypatch.setattr(distinct, "WINDOW", window)
    found = anchors.cosines(texts, labels)
    assert found.dtype == np.float32
    assert (found == (np.rint(product * anchors.GRID) / anchors.GRID).astype(np.float32)).all()


def test_cosines_never_copy_all_texts_to_float64():
    texts, labels = unit_vectors(50_000, 48), unit_vectors(2, 48)
    tracemalloc.start()
    anchors.cosines(texts, labels)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert peak < texts.nbytes / 2


@pytest.fixture
def no_collection():
    """Turn the garbage collector off, so that only objects without references are freed."""
    gc.collect()
    gc.disable()
    yield
    gc.enable()


@each_kind
@pytest.mark.usefixtures("no_collection")
def test_deleting_a_classifier_frees_its_weights(model: Maker, kind: str):
    clf = model(kind)
    clf.predict(PAIRS[:3] if kind == "lacon of pairs" else TEXTS[:3])
    copied = clf.encoder_.copy()
    kept = [weakref.ref(one.backbone.transformer.model) for one in (copied, clf.encoder_)]
    own = kind not in ("zero-shot", "uncertainty")  # these two do not train the encoder and share it
    del clf, copied
    assert kept[0]() is None
    assert (kept[1]() is None) == own
