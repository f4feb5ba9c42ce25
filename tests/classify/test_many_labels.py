"""Thousands of labels: the same answers as with few, from as much memory as a block of scores takes."""

import json
import subprocess
import sys
import tracemalloc
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

from classify.conftest import TEXTS
from labelspace import DescriptionClassifier, LabelSpace, ZeroShotClassifier, load
from labelspace.classify import distinct, predict_file
from labelspace.classify.decision import Decision
from labelspace.classify.tables import columns
from labelspace.corpus import open_table
from labelspace.encoders import Encoder
from labelspace.errors import ConfigError
from labelspace.training.description import fit

WORDS = [
    "team",
    "match",
    "bank",
    "price",
    "court",
    "minister",
    "card",
    "money",
    "police",
    "vote",
    "goal",
    "film",
    "book",
    "song",
    "rain",
]
NAMES = [f"{one} {other}" for one in WORDS for other in WORDS]


@pytest.fixture(scope="module")
def many(encoders: dict[str, Encoder]) -> ZeroShotClassifier:
    """A classifier of 225 labels; do not change it."""
    return ZeroShotClassifier(NAMES, encoders["float32"]).fit()


@pytest.fixture
def small_blocks(monkeypatch: pytest.MonkeyPatch) -> None:
    """Four documents at a time are encoded, and two compared with the labels."""
    monkeypatch.setattr(distinct, "CELLS", 2 * len(NAMES))
    monkeypatch.setattr(distinct, "KEPT", 4 * len(NAMES))


def documents(count: int) -> list[str]:
    return [f"the {NAMES[row % len(NAMES)]} of {row}" for row in range(count)]


@pytest.mark.usefixtures("small_blocks")
def test_blocks_of_documents_give_every_row_its_own_answer(many: ZeroShotClassifier):
    asked = [*TEXTS, TEXTS[0], *TEXTS[::-1]]
    alone = {text: many.answers([text]) for text in TEXTS}
    assert many.predict(asked).tolist() == [alone[text].names[0] for text in asked]
    sizes = [len(block.answers) for block in many.answer_blocks(asked)]
    assert sizes == [2, 2, 2], "each different document is judged once"
    rows = np.concatenate([block.rows for block in many.answer_blocks(asked)])
    assert sorted(rows.tolist()) == list(range(len(asked)))


@pytest.mark.parametrize("count", [5, 77, 225, 4000])
def test_the_probabilities_of_a_document_do_not_hang_on_those_beside_it(count: int):
    scores = np.random.default_rng(0).uniform(-1, 1, (2 * distinct.TILE // count + 1, count)).astype(np.float32)[:500]
    names = [f"label {place * 7919 % count}" for place in range(count)]
    decision = Decision(temperature=0.05)
    whole = decision.answers(names, scores)
    for row in (0, len(scores) // 2, len(scores) - 1):
        alone = decision.answers(names, scores[row : row + 1])
        assert (alone.probabilities[0] == whole.probabilities[row]).all(), row
        assert decision.doubt(alone, "entropy")[0] == decision.doubt(whole, "entropy")[row]


def test_the_top_labels_are_the_best_columns_of_predict_proba(many: ZeroShotClassifier):
    names, probabilities = many.predict_top(TEXTS, k=7)
    whole = many.predict_proba(TEXTS)
    order = np.argsort(-whole, axis=1, kind="stable")[:, :7]
    assert (names == many.classes_[order]).all()
    assert (probabilities == np.take_along_axis(whole, order, axis=1)).all()
    assert (names[:, 0] == many.predict(TEXTS)).all()


@pytest.mark.filterwarnings("ignore:.*reads the verbalizers")
def test_labels_that_tie_come_in_the_order_of_their_names(encoders: dict[str, Encoder]):
    labels = [{"name": name, "phrase": phrase} for name, phrase in (("c", "x"), ("b", "y"), ("d", "x"), ("a", "x"))]
    clf = ZeroShotClassifier({"labels": labels}, encoders["float32"]).fit()
    names, _ = clf.predict_top(TEXTS, k=4)
    for row in names.tolist():
        assert [name for name in row if name != "b"] == ["a", "c", "d"]
    winners = [row[0] for row in names.tolist()]
    assert clf.predict(TEXTS).tolist() == winners
    # With two of three that tie, the first two by name stay.
    two = [row for row in clf.predict_top(TEXTS, k=2)[0].tolist() if "b" not in row]
    assert two
    assert all(row == ["a", "c"] for row in two)


def test_a_text_below_the_threshold_has_top_labels_too(encoders: dict[str, Encoder]):
    clf = ZeroShotClassifier(["sports", "money"], encoders["float32"], threshold=1.0).fit()
    assert clf.predict(TEXTS).tolist() == [None] * len(TEXTS)
    names, probabilities = clf.predict_top(TEXTS, k=10)
    assert names.shape == (len(TEXTS), 2), "all labels, where there are fewer than asked for"
    assert probabilities.sum(axis=1) == pytest.approx(1)


def test_no_documents_have_no_top_labels(many: ZeroShotClassifier):
    names, probabilities = many.predict_top([], k=3)
    assert names.shape == probabilities.shape == (0, 3)
    assert many.predict([]).shape == (0,)


def test_a_count_of_top_labels_that_is_none_is_refused(many: ZeroShotClassifier):
    with pytest.raises(ConfigError, match=r"k must be a whole number at least 1\. Got 0"):
        many.predict_top(TEXTS, k=0)


def test_with_several_labels_a_text_the_top_ones_are_furthest_above_their_cuts(encoders: dict[str, Encoder]):
    clf = ZeroShotClassifier(["sports", "money", "world"], encoders["float32"], several=True).fit(documents(40))
    names, probabilities = clf.predict_top(TEXTS, k=3)
    assert (names == clf.classes_[np.argsort(-clf.decision_function(TEXTS), axis=1, kind="stable")]).all()
    assert (np.sort(probabilities, axis=1)[:, ::-1] == np.sort(clf.predict_proba(TEXTS), axis=1)[:, ::-1]).all()


@pytest.mark.slow
def test_predict_never_holds_the_scores_of_all_documents(many: ZeroShotClassifier, monkeypatch: pytest.MonkeyPatch):
    asked = documents(3000)
    monkeypatch.setattr(distinct, "CELLS", 2**14)
    monkeypatch.setattr(distinct, "KEPT", 2**15)
    many.predict(asked[:10])
    tracemalloc.start()
    many.predict(asked)
    many.predict_top(asked, k=2)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert peak < len(asked) * len(NAMES) * 4 / 2  # half of the scores alone, in float32


@pytest.mark.usefixtures("small_blocks")
def test_a_file_has_the_same_rows_from_blocks_and_its_top_labels(many: ZeroShotClassifier, tmp_path: Path):
    table = pa.table({"text": [*TEXTS, TEXTS[1]]})
    predict_file(many, table, tmp_path / "out.parquet", top=2, chunk_rows=5)
    written = open_table(tmp_path / "out.parquet")
    rows: dict[str, list[Any]] = pa.Table.from_batches(list(written.batches())).to_pydict()
    names, probabilities = many.predict_top(table["text"].to_pylist(), k=2)
    assert rows["predicted_label"] == rows["predicted_label:1"] == names[:, 0].tolist()
    assert rows["predicted_label:2"] == names[:, 1].tolist()
    assert rows["predicted_probability:2"] == pytest.approx(probabilities[:, 1].tolist())


def test_a_file_with_a_column_for_each_of_too_many_labels_is_refused(
    many: ZeroShotClassifier, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.setattr(columns, "MOST_COLUMNS", 200)
    with pytest.raises(
        ConfigError, match=r"each of 225 labels, and 200 is the most; ask for the likeliest ones with top"
    ):
        predict_file(many, pa.table({"text": TEXTS}), tmp_path / "out.csv", all_scores=True)
    assert list(tmp_path.iterdir()) == []


def test_all_scores_and_top_labels_are_not_asked_for_together(many: ZeroShotClassifier, tmp_path: Path):
    with pytest.raises(ConfigError, match="not for both"):
        predict_file(many, pa.table({"text": TEXTS}), tmp_path / "out.csv", all_scores=True, top=2)


@pytest.mark.slow
def test_the_answers_to_documents_of_one_label_file_do_not_depend_on_its_length(encoders: dict[str, Encoder]):
    """Every label is encoded as if it stood alone, also where several are encoded at once."""
    space = LabelSpace.from_dict(
        {name: [f"a text about {name}", "the " * (row % 5) + name] for row, name in enumerate(NAMES)}
    )
    for dtype in ("float32", "bfloat16"):
        whole = ZeroShotClassifier(space, encoders[dtype], anchor="both").fit()
        few = ZeroShotClassifier(space.reorder(space.names), encoders[dtype], anchor="both")
        few.labels = LabelSpace(space.labels[100:103], template=space.template)
        assert (few.fit().answers(TEXTS).scores == whole.answers(TEXTS).scores[:, 100:103]).all()


def test_training_on_many_texts_says_what_makes_it_shorter(
    encoders: dict[str, Encoder], monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
):
    options: dict[str, Any] = {"max_steps": 1, "learning_rate": 1e-4, "verbose": True}
    encoder = encoders["float32"].copy()
    for most, expected in ((4, False), (3, True)):
        monkeypatch.setattr(fit, "MANY_TEXTS", most)
        DescriptionClassifier({"a": ["the match"], "b": []}, encoder, **options).fit()
        told = "each of at most 1 updates reads all 4 texts of the labels" in capsys.readouterr().err
        assert told == expected


MEASURED = """
import json, resource, sys
from labelspace import DescriptionClassifier, Label, LabelSpace, ZeroShotClassifier
from labelspace.encoders import Encoder

words = [f"{one}{other}" for one in "team match bank price court minister card money".split() for other in range(625)]
space = LabelSpace([Label(word, descriptions=[f"{word} {row}" for row in range(5)]) for word in words])
encoder = Encoder(sys.argv[1], dtype="float32", device="cpu")
kind = sys.argv[2]
peak = lambda: resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
DescriptionClassifier(["a", "b"], encoder, max_steps=1, learning_rate=1e-4).fit()  # imports what training needs
before = peak()
if kind == "train":
    DescriptionClassifier(space, encoder, max_steps=1, learning_rate=1e-4).fit()
else:
    clf = ZeroShotClassifier(space, encoder).fit()
    asked = [f"{word} of {row}" for row, word in enumerate(words)]
    clf.predict(asked)
    clf.predict_top(asked, k=3)
print(json.dumps({"before": before, "after": peak()}))
"""


@pytest.mark.slow
@pytest.mark.parametrize("kind", ["predict", "train"])
def test_five_thousand_labels_fit_into_a_few_hundred_megabytes(kind: str, tiny_encoder_folder: Path):
    """The scores of 5,000 documents would be 600 MB with their probabilities, those of 25,000 descriptions 500 MB."""
    command = [sys.executable, "-c", MEASURED, str(tiny_encoder_folder), kind]
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    found = json.loads(done.stdout.splitlines()[-1])
    assert found["after"] - found["before"] < 450


def test_a_saved_model_of_many_labels_answers_the_same(many: ZeroShotClassifier, tmp_path: Path):
    many.save(tmp_path / "model")
    assert (load(tmp_path / "model").predict_top(TEXTS, k=3)[1] == many.predict_top(TEXTS, k=3)[1]).all()
