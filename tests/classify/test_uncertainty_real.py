"""The real MiniLM on real requests to a bank: better than untrained, calibrated, the same after a reload elsewhere."""

import hashlib
import json
import os
import subprocess
import sys
from pathlib import Path

import numpy as np
import pyarrow.parquet as pq
import pytest
import torch

from labelspace import UncertaintyClassifier, ZeroShotClassifier
from labelspace.encoders import Encoder

DATA = Path(__file__).parents[3] / "shared" / "data" / "mteb" / "banking77"
CLASSES, TRAINED, SCORED = 10, 30, 10

ELSEWHERE = """
import hashlib, json, sys
from labelspace import load
clf, texts = load(sys.argv[1]), json.load(open(sys.argv[2], encoding="utf-8"))
answers = clf.answers(texts)
for found in (answers.scores, answers.uncertainty, answers.probabilities):
    print(hashlib.sha256(found.tobytes()).hexdigest())
print(json.dumps(list(answers.names)))
"""


def rows() -> tuple[list[str], list[str], list[str], list[str]]:
    """Forty train rows of each of ten classes: thirty to train on, ten to score."""
    table = pq.read_table(DATA / "train.parquet", columns=["text", "label_text"])
    found: dict[str, list[str]] = {}
    for text, name in zip(table["text"].to_pylist(), table["label_text"].to_pylist(), strict=True):
        found.setdefault(name.replace("_", " "), []).append(text)
    names = [name for name in sorted(found) if len(found[name]) >= TRAINED + SCORED][:: len(found) // CLASSES][:CLASSES]
    ours = [(text, name) for name in names for text in found[name][:TRAINED]]
    theirs = [(text, name) for name in names for text in found[name][TRAINED : TRAINED + SCORED]]
    return *map(list, zip(*ours, strict=True)), *map(list, zip(*theirs, strict=True))  # type: ignore[return-value]


@pytest.mark.slow
@pytest.mark.skipif(not DATA.is_dir(), reason=f"no Banking77 at {DATA}")
def test_minilm_learns_what_customers_want_and_knows_its_doubts(tmp_path: Path):
    texts, y, others, their_y = rows()
    encoder = Encoder("sentence-transformers/all-MiniLM-L6-v2", offline=True)
    names = sorted(set(y))
    assert (len(names), len(texts), len(others)) == (CLASSES, CLASSES * TRAINED, CLASSES * SCORED)
    baseline = ZeroShotClassifier(names, encoder, anchor="verbalizer").fit()
    clf = UncertaintyClassifier(names, encoder, validation=0.25, cache=tmp_path / "states", seed=0).fit(texts, y)

    assert clf.score(others, their_y) > baseline.score(others, their_y) + 0.05
    calibration = clf.fit_result_.calibration
    assert calibration is not None
    assert calibration.ece_after <= calibration.ece_before + 0.01
    assert calibration.documents == 75
    wrong = clf.predict(others) != np.array(their_y)
    answered = clf.set_coverage(0.8).predict(others) != np.array(None)
    assert 0.5 < answered.mean() < 1
    assert wrong[answered].mean() <= wrong.mean(), "the least sure are wrong more often"

    (tmp_path / "texts.json").write_text(json.dumps(others), encoding="utf-8")
    command = [sys.executable, "-c", ELSEWHERE, str(clf.save(tmp_path / "model")), str(tmp_path / "texts.json")]
    environment = {**os.environ, "OMP_NUM_THREADS": str(torch.get_num_threads()), "HF_HUB_OFFLINE": "1"}
    told = subprocess.run(command, capture_output=True, text=True, check=True, env=environment).stdout.splitlines()
    answers = clf.answers(others)
    for line, found in zip(told, (answers.scores, answers.uncertainty, answers.probabilities), strict=False):
        assert line == hashlib.sha256(found.tobytes()).hexdigest()
    assert json.loads(told[3]) == list(answers.names)
