"""The real MiniLM on real news: training on descriptions beats the untrained encoder in both formats."""

import json
from pathlib import Path

import pyarrow.parquet as pq
import pytest
from sklearn.metrics import f1_score

from labelspace import DescriptionClassifier, ZeroShotClassifier

ROOT = Path(__file__).parents[2]
DATA = ROOT.parent / "shared" / "data" / "btzsc" / "agnews"
ROWS = 300


@pytest.mark.slow
@pytest.mark.skipif(not DATA.is_dir(), reason=f"no AG News at {DATA}")
@pytest.mark.filterwarnings("ignore::labelspace.errors.LabelSpaceWarning")
def test_descriptions_teach_minilm_the_news():
    table = pq.read_table(DATA / "test.parquet")
    names = [entry["name"] for entry in json.loads((DATA / "labels.json").read_text(encoding="utf-8"))["classes"]]
    every = range(0, table.num_rows, table.num_rows // ROWS)[:ROWS]
    texts = [table["text"][row].as_py() for row in every]
    y = [names[table["label"][row].as_py()] for row in every]
    encoder = "sentence-transformers/all-MiniLM-L6-v2"

    def macro_f1(clf: ZeroShotClassifier | DescriptionClassifier) -> float:
        return f1_score(y, clf.predict(texts), average="macro")

    from labelspace.encoders import Encoder

    labels = ROOT / "examples" / "agnews.yaml"
    found = {}
    for dtype in ("float32", "bfloat16"):
        opened = Encoder(encoder, dtype=dtype, offline=True)
        untrained = macro_f1(ZeroShotClassifier(labels, opened, anchor="verbalizer").fit())
        clf = DescriptionClassifier(labels, opened, anchor="verbalizer", learning_rate=1e-5, max_steps=10).fit()
        found[dtype] = macro_f1(clf)
        assert clf.fit_result_.curve.losses[-1] < clf.fit_result_.curve.losses[0]
        assert found[dtype] > untrained + 0.02, (dtype, untrained, found)
    assert abs(found["float32"] - found["bfloat16"]) < 0.01, found
