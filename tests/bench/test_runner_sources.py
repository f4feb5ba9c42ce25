"""The runner takes models of the btzsc package and data of the hub, and releases each model before the next."""

import sys
import weakref
from types import SimpleNamespace

import numpy as np
import pytest

from bench.fakes import fake_model
from labelspace.bench import bench_tables, load_task, run, runner
from labelspace.bench.plan import expand_tasks
from labelspace.errors import ConfigError, InputError
from labelspace.evaluate.metrics import Tally

NAMES = ("rottentomatoes", "imdb")

# ---- models of the btzsc package


class Theirs:
    """A model written for the btzsc package; scores by the length of text and label."""

    def __init__(self, **facts) -> None:
        self.asked: list[list[str]] = []
        for name, value in facts.items():
            setattr(self, name, value)

    def predict_scores(self, texts, labels, batch_size=32):
        self.asked.append(labels)
        return [[-abs(len(text) - len(label)) for label in labels] for text in texts]


@pytest.mark.slow
def test_a_model_of_the_package_runs_unchanged(data, store):
    mine = Theirs(model_name="me/mine", model_type="reranker")
    report = run([mine, Theirs()], ["imdb"], store, data=data, bootstrap=0)
    assert [(record["model"], record["family"], record["dtype"]) for record in report.finished] == [
        ("harness:me/mine", "reranker", "float32"),
        ("harness:Theirs", "custom", "float32"),
    ]
    task = load_task("imdb", data=data)
    assert mine.asked[0] == list(task.space.verbalizers)
    predicted = np.array(Theirs().predict_scores(task.texts, task.space.verbalizers)).argmax(axis=1)
    tally = Tally(task.space.names)
    tally.add(task.targets, predicted)
    assert report.finished[0]["metrics"]["macro_f1_predicted"] == tally.metrics().macro_f1_predicted
    assert "harness:Theirs" in bench_tables(store.records())[0].to_text()


def test_a_model_of_unknown_weights_is_reused_by_name_with_a_note(data, store):
    run([Theirs()], ["imdb"], store, data=data, bootstrap=0)
    report = run([Theirs()], ["imdb"], store, data=data, bootstrap=0)
    assert len(report.reused) == 1
    assert report.notes == ("harness:Theirs: the stored result of this name is reused; its weights cannot be checked.",)


def test_two_models_with_one_name_are_refused_and_a_repeated_model_runs_once(data, store):
    for pair in ([Theirs(), Theirs()], [fake_model(), fake_model()]):
        with pytest.raises(ConfigError, match=r"two models are called \S+; give each a name of its own"):
            run(pair, ["imdb"], store, data=data)
    same = Theirs()
    assert len(run([same, same], ["imdb"], store, data=data, bootstrap=0).finished) == 1


def test_an_object_that_is_not_a_model_is_refused(data, store):
    with pytest.raises(ConfigError, match=r"must be an object, not a class\. Got Theirs; call it first"):
        run([Theirs], ["imdb"], store, data=data)
    with pytest.raises(ConfigError, match="a model is one word such as"):
        run([object()], ["imdb"], store, data=data)


def test_a_harness_model_scores_no_pairs_of_sentences(data, store, nli_folder):
    report = run([Theirs()], ["imdb"], store, data=data, nli=nli_folder, bootstrap=0)
    assert [record["task"] for record in report.finished] == ["imdb"]
    assert any("harness:Theirs scores no pairs of sentences" in note for note in report.notes)


# ---- the hub


class HubTable:
    """Hub rows of one data set: pairs of two texts with two hypotheses."""

    column_names = ["text", "hypothesis", "labels"]
    cache_files = [{"filename": "/cache/btzsc___btzsc/imdb/0.0.0/" + "c0ffee42" * 5 + "/btzsc-test.arrow"}]

    def iter(self, batch_size):
        yield {"text": ["a", "a", "bb", "bb"], "hypothesis": ["Good.", "Bad."] * 2, "labels": [1, 0, 0, 1]}


@pytest.fixture
def hub(monkeypatch):
    """Replace the package datasets: imdb is available, yelpreviews is damaged, the rest is unreachable."""
    asked: list[tuple[str, bool]] = []

    def load_dataset(repository, name, *, split):
        asked.append((name, module.config.HF_HUB_OFFLINE))
        if name not in ("imdb", "yelpreviews"):
            raise ConnectionError("Couldn't reach the hub")
        table = HubTable()
        if name == "yelpreviews":
            table.iter = lambda batch_size: iter(())
        return table

    module = SimpleNamespace(load_dataset=load_dataset, config=SimpleNamespace(HF_HUB_OFFLINE=False), asked=asked)
    monkeypatch.setitem(sys.modules, "datasets", module)
    return module


def test_unreadable_hub_sets_are_absent_with_the_reason_and_the_others_run(hub, store):
    report = run([fake_model()], ["sentiment", "mteb/imdb"], store, bootstrap=0)
    assert [record["task"] for record in report.finished] == ["imdb"]
    assert set(report.absent) == {*expand_tasks(["sentiment"]), "mteb/imdb"} - {"imdb"}
    assert "agnews" not in report.absent
    assert "cannot be read from the hub (Couldn't reach the hub)" in report.absent["appreviews"]
    assert "yelpreviews on the hub has no rows" in report.absent["yelpreviews"]
    assert report.absent["mteb/imdb"] == "read from a folder only"


def test_an_unreadable_hub_is_an_error(hub, store):
    with pytest.raises(InputError, match=r"none of the 2 tasks can be run \(emotiondair: .*Couldn't reach") as caught:
        run([fake_model()], ["emotion"], store)
    assert "\n" not in str(caught.value)
    assert not store.path.exists()


def test_offline_is_passed_to_the_data(hub, store):
    run([fake_model()], ["imdb", "agnews"], store, bootstrap=0, offline=True)
    assert set(hub.asked) == {("imdb", True), ("agnews", True)}
    assert hub.config.HF_HUB_OFFLINE is False, "only while the data is read"
    hub.asked.clear()
    run([fake_model()], ["imdb"], store, bootstrap=0)
    assert set(hub.asked) == {("imdb", False)}


@pytest.mark.slow
def test_the_hubs_commit_is_in_the_provenance(hub, store, data):
    (record,) = run([fake_model()], ["imdb"], store, bootstrap=0).finished
    assert record["provenance"]["data"]["revision"] == "c0ffee42" * 5
    (record,) = run([fake_model()], ["imdb"], store, data=data, bootstrap=0).finished
    assert "revision" not in record["provenance"]["data"]


# ---- memory


def test_memory_held_before_a_model_is_in_its_record(data, store, tiny_encoder_folder, monkeypatch):
    given_back = []
    monkeypatch.setattr(runner, "give_back", lambda: given_back.append(len(given_back)))
    monkeypatch.setattr(runner, "resident_mib", lambda: 100.0 + len(given_back))
    models = [f"embedding:{tiny_encoder_folder}", f"base:{tiny_encoder_folder}", fake_model()]
    report = run(models, NAMES, store, data=data, dtype="float32", bootstrap=0)
    before = [(record["model"].partition(":")[0], record["memory_before_mib"]) for record in store.records()]
    assert before == [("embedding", 101.0)] * 2 + [("base", 102.0)] * 2 + [("embedding", None)] * 2
    assert len(report.finished) == 6


@pytest.mark.slow
def test_a_model_is_released_before_the_next_is_opened(data, store, monkeypatch):
    alive: weakref.WeakSet = weakref.WeakSet()
    seen = []

    def opening(spec, **options):
        seen.append(len(alive))
        model = fake_model(str(spec))
        alive.add(model.scorer)
        return model

    monkeypatch.setattr(runner, "open_model", opening)
    run(["embedding:one", "embedding:two", "embedding:three"], NAMES, store, data=data, dtype="float32", bootstrap=0)
    assert seen == [0, 0, 0]
