"""A save killed at any moment leaves the old model or the new one, complete."""

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

ROUNDS = 30
SCRIPT = """
import json, os, random, signal, sys, time
from pathlib import Path
import numpy as np
from labelspace import ZeroShotClassifier, load
from labelspace.encoders import Encoder

tiny, folder, rounds, seed = sys.argv[1], Path(sys.argv[2]), int(sys.argv[3]), int(sys.argv[4])
encoder = Encoder(tiny, dtype="float32", device="cpu")
models = [ZeroShotClassifier([f"{c}{n}" for n in range(3)], encoder).fit() for c in ("old", "new")]
texts = ["the team won", "a bank"]
expected = {tuple(model.classes_): model.decision_function(texts) for model in models}
for model in models:  # the first save opens the encoder for training, which takes longer
    model.save(folder)
started = time.perf_counter()
models[0].save(folder)
models[1].save(folder)
models[0].save(folder)
one_save = (time.perf_counter() - started) / 3
random.seed(seed)
seen = {"old0": 0, "new0": 0}
for _ in range(rounds):
    child = os.fork()
    if child == 0:
        while True:
            for model in reversed(models):
                model.save(folder)
    time.sleep(random.random() * 6 * one_save)
    os.kill(child, signal.SIGKILL)
    os.waitpid(child, 0)
    found = load(folder)
    assert (found.decision_function(texts) == expected[tuple(found.classes_)]).all()
    seen[found.classes_[0]] += 1
models[1].save(folder)
assert load(folder).classes_[0] == "new0"
print(json.dumps({"seen": seen, "beside": sorted(p.name for p in folder.parent.iterdir())}))
"""


@pytest.mark.slow
@pytest.mark.skipif(not hasattr(os, "fork"), reason="needs fork")
def test_a_save_killed_at_any_time_leaves_a_complete_model(tiny_encoder_folder: Path, tmp_path: Path):
    command = [sys.executable, "-c", SCRIPT, str(tiny_encoder_folder), str(tmp_path / "model"), str(ROUNDS), "0"]
    done = subprocess.run(command, capture_output=True, text=True, timeout=600, check=False)
    assert done.returncode == 0, done.stderr[-3000:]
    report = json.loads(done.stdout.splitlines()[-1])
    # Both models were found, so some kills came before the exchange and some after it.
    assert min(report["seen"].values()) > 0
    assert sum(report["seen"].values()) == ROUNDS
    # The last save removed what the killed ones had left.
    assert report["beside"] == ["model"]
