"""Texts longer than the encoder reads: cut to its limit, or read in windows."""

import logging
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

from classify.conftest import TEXTS
from classify.test_stream import interrupt_after_two_chunks
from labelspace import ConsensusClassifier, ZeroShotClassifier, load
from labelspace.classify import distinct, predict_file
from labelspace.classify.long_texts import BEST, OVERLAP, cost_of, joined
from labelspace.classify.tables.stream import model_fingerprint
from labelspace.config import DecisionConfig
from labelspace.encoders import Encoder
from labelspace.encoders.passages import passages, sentences
from labelspace.errors import ConfigError
from labelspace.evaluate import evaluate
from labelspace.labels import LabelSpace
from labelspace.training.calibration import expected_calibration_error

Maker = Callable[..., Any]

LONG = [
    "the team won the match. the players left. the bank said that prices will rise. the minister asked the court.",
    "police said nothing. the vote was late and the war is over. my card is not working. " * 3,
]
LIMIT = 24
MIXED = [TEXTS[0], LONG[0], TEXTS[1], LONG[1], LONG[0], TEXTS[2]]


@pytest.fixture
def narrow(request: pytest.FixtureRequest, tiny_encoder_folder: Path) -> Encoder:
    """An encoder of few tokens."""
    return Encoder(tiny_encoder_folder, dtype=getattr(request, "param", "float32"), max_tokens=LIMIT)


both_formats = pytest.mark.parametrize("narrow", ["float32", "bfloat16"], indirect=True)


@pytest.fixture
def clf(narrow: Encoder, space: Any) -> ZeroShotClassifier:
    return ZeroShotClassifier(space, narrow, long_texts="windows").fit()


def cut(clf: Any, texts: list[str]) -> np.ndarray:
    return ZeroShotClassifier(clf.labels, clf.encoder_, long_texts="cut").fit().answers(texts).scores


@both_formats
def test_texts_that_fit_have_the_same_scores_to_the_last_bit(clf: Any, fitted: Maker):
    assert DecisionConfig().long_texts == "cut"
    short = [place for place, text in enumerate(MIXED) if text in TEXTS]
    found = clf.answers(MIXED).scores
    assert (found[short] == cut(clf, MIXED)[short]).all()
    assert (found != cut(clf, MIXED)).any(axis=1).tolist() == [False, True, False, True, True, False]
    wide = fitted("zero-shot", long_texts="windows")
    assert (wide.answers(TEXTS).scores == fitted("zero-shot").answers(TEXTS).scores).all()


@both_formats
def test_a_score_is_the_mean_of_the_best_windows_of_each_label(clf: Any):
    windows = passages(clf.encoder_, LONG[1], overlap=OVERLAP)
    assert len(windows) > BEST
    first, rest = cut(clf, [LONG[1]]), cut(clf, windows[1:])
    by_hand = [sum(sorted(map(float, column))[-BEST:]) / BEST for column in np.concatenate([first, rest]).T]
    assert clf.answers([LONG[1]]).scores[0] == pytest.approx(by_hand, abs=2**-24)


def test_the_mean_of_few_windows_is_that_of_all():
    scores = np.array([[0.5, 0.25, -0.5]], dtype=np.float32)
    assert (joined(scores, 3) == scores[0]).all()
    assert (joined(np.repeat(scores, 2, axis=0), None) == scores[0]).all()


@both_formats
def test_a_repeated_text_is_read_once_and_scores_alike(clf: Any, monkeypatch: pytest.MonkeyPatch):
    asked: list[list[str]] = []
    encode = Encoder.encode
    monkeypatch.setattr(
        Encoder, "encode", lambda self, texts, **more: asked.append(list(texts)) or encode(self, texts, **more)
    )
    found = clf.answers([LONG[0]] * 5).scores
    assert (found == found[0]).all()
    assert sum(map(len, asked)) == len(passages(clf.encoder_, LONG[0], overlap=OVERLAP))


@both_formats
def test_few_windows_are_in_memory_at_once(clf: Any, monkeypatch: pytest.MonkeyPatch):
    whole = clf.answers(MIXED).scores
    sizes: list[int] = []
    judge = type(clf.head_).judge
    monkeypatch.setattr(
        type(clf.head_), "judge", lambda self, texts, space: sizes.append(len(texts)) or judge(self, texts, space)
    )
    monkeypatch.setattr(distinct, "WINDOW", 2)
    assert clf.answers(MIXED).scores == pytest.approx(whole, abs=1e-2 if clf.encoder_.dtype == "bfloat16" else 1e-6)
    assert max(sizes[1:]) == 2


@both_formats
def test_another_label_changes_no_score(clf: Any):
    before = clf.answers(MIXED).scores
    clf.add_label({"name": "weather", "descriptions": ["Rain and sun."]})
    assert (clf.answers(MIXED).scores[:, :3] == before).all()
    assert clf.predict(MIXED).tolist() == clf.classes_[clf.predict_proba(MIXED).argmax(axis=1)].tolist()


def test_the_setting_may_change_after_fit_and_is_saved(clf: Any, tmp_path: Path):
    clf.save(tmp_path / "model")
    again = load(tmp_path / "model")
    assert again.long_texts == "windows"
    assert (again.answers(MIXED).scores == clf.answers(MIXED).scores).all()
    assert "in windows of 24 tokens" in (tmp_path / "model" / "README.md").read_text(encoding="utf-8")
    again.set_params(long_texts="cut")
    assert (again.answers(MIXED).scores == cut(clf, MIXED)).all()
    again.set_params(long_texts="wndows")
    with pytest.raises(ConfigError, match=r"long_texts must be .*cut.*windows.*Got 'wndows'"):
        again.predict(MIXED)
    with pytest.raises(ConfigError, match="long_texts"):
        again.fit()


def test_explain_names_the_window_that_the_winner_comes_from(clf: Any):
    text = f"{'police said nothing. ' * 6}the team won the match. {'police said nothing. ' * 6}"
    told = clf.explain(text, nearest=1)
    windows = passages(clf.encoder_, text, overlap=OVERLAP)
    winner = clf.label_space_.index(told.top[0].label)
    scores = np.concatenate([cut(clf, [text]), cut(clf, windows[1:])])[:, winner]
    assert (told.passage.number, told.passage.of) == (int(scores.argmax()) + 1, len(windows))
    assert told.passage.text == windows[told.passage.number - 1]
    parts = [part.strip() for part in sentences(told.passage.text)]
    assert told.passage.sentence == parts[int(cut(clf, parts)[:, winner].argmax())]
    assert f"  window {told.passage.number} of {len(windows)}: {told.passage.sentence}\n" in str(told)
    assert told.to_dict()["passage"]["of"] == len(windows)
    assert clf.explain(TEXTS[3]).passage is None
    assert clf.set_params(long_texts="cut").explain(text).passage is None


def test_explain_quotes_for_each_label_what_is_near_its_own_window(clf: Any):
    text = " ".join(description for own in clf.label_space_.descriptions for description in [*own] * 4)
    told = clf.explain(text, nearest=1)
    windows = passages(clf.encoder_, text, overlap=OVERLAP)
    scores = np.concatenate([cut(clf, [text]), cut(clf, windows[1:])])
    best = [windows[int(scores[:, clf.label_space_.index(entry.label)].argmax())] for entry in told.top[:2]]
    assert best[0] != best[1], "the test needs two windows"
    for entry, window in zip(told.top, best, strict=False):
        [(quoted, cosine)] = entry.nearest
        one, other = clf.encoder_.encode([window, quoted])
        assert cosine == pytest.approx(float(one @ other), abs=1e-3)


def test_a_resumed_file_equals_an_uninterrupted_one(clf: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    texts = [f"{MIXED[number % 6]} {number}" for number in range(23)]
    source, options = pa.table({"text": texts}), {"chunk_rows": 5, "all_scores": True}
    predict_file(clf, source, tmp_path / "whole.csv", **options)
    interrupt_after_two_chunks(monkeypatch, clf, source, tmp_path / "out.csv", **options)
    done = predict_file(clf, source, tmp_path / "out.csv", resume=True, **options)
    assert done.resumed_at == 10
    assert (tmp_path / "out.csv").read_bytes() == (tmp_path / "whole.csv").read_bytes()
    before = model_fingerprint(clf)
    assert model_fingerprint(clf.set_params(long_texts="cut")) != before


def test_costs_are_told_before_a_file_is_read(clf: Any, tmp_path: Path, caplog: pytest.LogCaptureFixture):
    caplog.set_level(logging.INFO, "labelspace")
    predict_file(clf, pa.table({"text": MIXED}), tmp_path / "out.csv", chunk_rows=4)
    windows = [window for text in (LONG[0], LONG[1]) for window in passages(clf.encoder_, text, overlap=OVERLAP)[1:]]
    read = sum(min(LIMIT, count) for count in clf.encoder_.count_tokens(MIXED[:4]))
    times = (read + sum(clf.encoder_.count_tokens(windows))) / read
    assert [record.message for record in caplog.records] == [
        f"2 of the first 4 texts are longer than 24 tokens; they are read in windows, about {times:.1f} "
        "times the tokens."
    ]
    caplog.clear()
    predict_file(clf.set_params(long_texts="cut"), pa.table({"text": MIXED}), tmp_path / "cut.csv")
    assert not caplog.records
    assert cost_of(clf.encoder_, TEXTS[:1]) == ""


def test_evaluation_and_its_baselines_read_windows_too(clf: Any):
    truth = clf.predict(MIXED)
    found = evaluate(clf, MIXED, truth)
    assert found.metrics.accuracy == 1
    (same,) = [one for one in found.baselines if one.name == "untrained: mean of descriptions"]
    # The answers alone do not tell: the tiny encoder gives all of these texts one label.
    sure = clf.answers(MIXED).confidence
    expected = expected_calibration_error(sure, [True] * len(MIXED))
    assert found.metrics.expected_calibration_error == pytest.approx(expected)
    assert same.metrics is not None
    assert same.metrics.to_dict() == pytest.approx(found.metrics.to_dict())


def test_the_encoders_of_a_consensus_read_windows(narrow: Encoder, space: Any, caplog: pytest.LogCaptureFixture):
    caplog.set_level(logging.INFO, "labelspace")
    pool = [f"{text} {number}" for number in range(3) for text in MIXED]
    options: dict[str, Any] = {"config": {"guards": False, "long_texts": "windows", "view_steps": 1}}
    model = ConsensusClassifier(space, [narrow, "words"], **options).fit(pool)
    (view,) = model.model_.head_.members
    assert view.long_texts == "windows"
    assert "6 of 15 texts are longer than 24 tokens" in caplog.text
    told = model.explain(LONG[1])
    assert told.passage is not None
    assert told.passage.of == len(passages(narrow, LONG[1], overlap=OVERLAP))
    student = ConsensusClassifier(space, [narrow, "words"], student=narrow, **options).fit(pool)
    assert student.model_.long_texts == "windows"


def test_all_windows_of_a_long_text_say_whether_it_lies_outside_of_the_labels(tiny_encoder_folder):
    space = LabelSpace.from_dict(
        {"labels": {"sports": ["matches and teams"], "money": ["banks and prices"]}, "outside": ["rain clouds storm"]}
    )
    encoder = Encoder(tiny_encoder_folder, dtype="float32", device="cpu", max_tokens=12)
    clf = ZeroShotClassifier(space, encoder, long_texts="windows").fit()
    text = "rain clouds storm. " * 3 + "matches and teams. " * 12
    whole = clf.judge([text], space)
    cut = ZeroShotClassifier(space, encoder, long_texts="cut").fit()
    windows = [cut.judge([part], space) for part in (text, *passages(encoder, text, overlap=OVERLAP)[1:])]
    assert whole.outside is not None
    for name in ("scores", "outside"):
        each = np.stack([np.atleast_1d(getattr(one, name)[0]) for one in windows])
        expected = np.sort(each, axis=0)[-BEST:].mean(axis=0)
        assert np.atleast_1d(getattr(whole, name)[0]) == pytest.approx(expected, abs=1e-5)
