"""Models of the btzsc package work as scorers; scores that are no numbers are a clear error."""

import numpy as np
import pytest

from bench.fakes import write_task
from labelspace import Label, LabelSpace
from labelspace.bench import load_task, run
from labelspace.bench.adapters import HarnessScorer, open_harness
from labelspace.errors import ConfigError, InputError

SPACE = LabelSpace([Label("a", verbalizer="It is a."), Label("b", verbalizer="It is bb."), Label("c")])
TEXTS = ["one", "three", "fifteen"]


class Theirs:
    """A model written for the btzsc package."""

    model_type = "reranker"
    model_name = "theirs"

    def __init__(self, give=None) -> None:
        self.asked: list = []
        self.give = give

    def predict_scores(self, texts, labels, batch_size=32):
        self.asked.append((texts, labels, batch_size))
        if self.give is not None:
            return self.give(texts, labels)
        return np.array([[len(text) / len(label) for label in labels] for text in texts])


def test_a_harness_model_gets_the_verbalizers_as_labels():
    model = Theirs()
    found = HarnessScorer(model).scores(tuple(TEXTS), SPACE)
    assert model.asked == [(TEXTS, ["It is a.", "It is bb.", "This text is about c."], 32)]
    assert (found.shape, found.dtype) == ((3, 3), np.float32)
    assert found[0, 0] == pytest.approx(3 / 8)


def test_a_harness_model_keeps_its_name_and_type():
    scorer = HarnessScorer(Theirs())
    assert (scorer.name, scorer.family) == ("theirs", "reranker")
    assert scorer.describe()["adapter"] == "btzsc"


def test_lists_and_tensors_are_accepted_as_scores():
    torch = pytest.importorskip("torch")
    for give in (lambda t, own: [[0.5] * len(own) for _ in t], lambda t, own: torch.full((len(t), len(own)), 0.5)):
        assert HarnessScorer(Theirs(give)).scores(TEXTS, SPACE).tolist() == [[0.5] * 3] * 3


@pytest.mark.parametrize("give", [[[0], [0, 0]], [["high", "low", "low"]] * 3], ids=["ragged", "words"])
def test_scores_that_are_no_numbers_are_refused(give):
    with pytest.raises(InputError, match="theirs gave scores that are not a matrix of numbers"):
        HarnessScorer(Theirs(lambda texts, labels: give)).scores(TEXTS, SPACE)


def test_an_object_without_the_method_is_refused():
    with pytest.raises(ConfigError, match="must have a method"):
        HarnessScorer(object())


def test_an_open_harness_model_has_its_own_name():
    opened = open_harness(Theirs())
    assert (opened.spec, opened.name, opened.family) == ("harness:theirs", "theirs", "reranker")
    assert (opened.parameters, opened.revision, opened.describe["dtype"]) == (None, None, "float32")


@pytest.mark.parametrize(
    ("kind", "family"), [("llm", "llm"), ("base", "base"), ("custom", "custom"), ("my own", "custom"), (None, "custom")]
)
def test_an_unknown_model_type_becomes_the_custom_family(kind, family):
    model = Theirs()
    model.model_type = kind
    assert open_harness(model).family == family


def test_weights_are_counted_if_there_is_a_module():
    torch = pytest.importorskip("torch")
    model = Theirs()
    model.model = torch.nn.Linear(3, 2, dtype=torch.bfloat16)
    opened = open_harness(model)
    assert (opened.parameters, opened.describe["dtype"]) == (8, "bfloat16")


def test_the_packages_own_model_scores_as_it_does_alone(tmp_path, tiny_encoder_folder):
    theirs = pytest.importorskip("btzsc.models.embedding", reason="the package btzsc is not installed")
    write_task(tmp_path / "data", "imdb")
    model = theirs.EmbeddingModel(str(tiny_encoder_folder), device="cpu")
    report = run([model], ["imdb"], tmp_path / "results.jsonl", data=tmp_path / "data", bootstrap=0)
    (record,) = report.finished
    task = load_task("imdb", data=tmp_path / "data")
    right = model.predict(task.texts, list(task.space.verbalizers)) == task.targets
    assert record["metrics"]["accuracy"] == pytest.approx(right.mean())
    assert (record["model"], record["name"]) == (f"harness:{tiny_encoder_folder}", "tiny-bert")
    assert record["family"] == "embedding"
    assert record["parameters"] == sum(each.numel() for each in model.model.parameters())
    assert record["revision"].startswith("sha256:")
