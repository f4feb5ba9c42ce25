"""The runner stores finished runs, repeats none, reports what it left out, and agrees with the metrics."""

import json
import logging
import os
import signal
import subprocess
import sys
from pathlib import Path

import numpy as np
import pyarrow.parquet as pq
import pytest

from bench.fakes import FakeScorer, fake_model, write_task
from labelspace import LabelSpace, ZeroShotClassifier
from labelspace.bench import load_task, run
from labelspace.bench import scoring as scoring_module
from labelspace.bench.plan import OwnFile, expand_tasks
from labelspace.bench.rows import nli_of
from labelspace.bench.ways import ways_of
from labelspace.encoders import Encoder
from labelspace.errors import ConfigError, EncoderError, InputError, LabelSpaceWarning
from labelspace.evaluate.metrics import Tally

NAMES = ("rottentomatoes", "imdb")


def keys(records):
    return [(record["model"], record["task"], record["seed"]) for record in records]


def test_every_model_runs_on_every_task_and_each_run_is_a_line(data, store):
    models = [fake_model("embedding:one"), fake_model("nli:two", family="nli")]
    report = run(models, NAMES, store, data=data, bootstrap=20)
    expected = [(model.spec, task, 0) for model in models for task in NAMES]
    assert keys(report.finished) == keys(store.records()) == expected
    record = report.finished[0]
    assert (record["texts"], record["classes"], record["task_family"], record["family"]) == (
        12,
        2,
        "sentiment",
        "embedding",
    )
    assert record["provenance"]["data"]["fingerprint"] == record["fingerprint"]
    low, high = record["intervals"]["accuracy"]
    assert 0 <= low <= record["metrics"]["accuracy"] <= high <= 1
    assert record["intervals"]["macro_f1_predicted"] is None, "of twelve texts fewer than six are wrong, or right"
    assert record["texts_per_second"] > 0
    assert record["peak_memory_mib"] > 10
    assert record["memory_method"]


def test_numbers_are_those_of_the_metrics_on_the_argmax(data, store):
    record = run([fake_model()], ["imdb"], store, data=data, bootstrap=0).finished[0]
    task = load_task("imdb", data=data)
    tally = Tally(task.space.names)
    tally.add(task.targets, FakeScorer().scores(task.texts, task.space).argmax(axis=1))
    assert record["metrics"] == {name: getattr(tally.metrics(), name) for name in record["metrics"]}
    assert record["intervals"] is None


@pytest.mark.slow
def test_the_number_of_blocks_changes_no_result(data, store, monkeypatch, tmp_path):
    whole = run([fake_model()], ["imdb"], store, data=data, bootstrap=0).finished[0]
    monkeypatch.setattr(scoring_module, "ENCODER_BLOCK", 5)
    monkeypatch.setattr(scoring_module, "PAIR_BLOCK", 6)
    monkeypatch.setattr(scoring_module, "LLM_BLOCK", 4)
    expected = {"embedding": [8, 5, 5, 2], "reranker": [8, 3, 3, 3, 3], "llm": [8, 4, 4, 4]}
    for family, calls in expected.items():
        model = fake_model(f"{family}:blocks", family=family)
        record = run([model], ["imdb"], tmp_path / f"{family}.jsonl", data=data, bootstrap=0).finished[0]
        assert record["metrics"] == whole["metrics"]
        assert model.scorer.calls == calls, "the first few texts warm up"


def test_stored_results_are_reused_and_listed(data, store):
    run([fake_model()], ["imdb"], store, data=data, bootstrap=0)
    model = fake_model()
    report = run([model], NAMES, store, data=data, bootstrap=0)
    assert keys(report.reused) == [("embedding:fake", "imdb", 0)]
    assert keys(report.finished) == [("embedding:fake", "rottentomatoes", 0)]
    assert len(report.records) == 2
    assert run([model], NAMES, store, data=data).finished == ()


def test_a_model_all_of_whose_runs_are_stored_is_not_opened(data, store, tiny_encoder_folder, monkeypatch):
    spec = f"embedding:{tiny_encoder_folder}"
    first = run([spec], ["imdb"], store, data=data, dtype="float32", bootstrap=0)
    monkeypatch.setattr("labelspace.bench.runner.open_model", None)
    assert run([spec], ["imdb"], store, data=data, dtype="float32").reused == first.finished


def test_a_stored_result_of_other_texts_is_rerun_with_a_note(data, store):
    run([fake_model()], ["imdb"], store, data=data, bootstrap=0)
    table = pq.read_table(data / "btzsc" / "imdb" / "test.parquet").slice(2)
    pq.write_table(table, data / "btzsc" / "imdb" / "test.parquet")
    report = run([fake_model()], ["imdb"], store, data=data, bootstrap=0)
    assert [record["texts"] for record in report.finished] == [10]
    assert any("of other texts or labels and is replaced" in note for note in report.notes)
    assert len(store.records()) == 1


def test_a_saved_model_with_another_anchor_or_label_file_is_scored_again(tmp_path, store, tiny_encoder_folder):
    space = LabelSpace.from_dict({"labels": {"good": ["Sun."], "bad": ["Rain."]}})
    labels, file = tmp_path / "labels.yaml", tmp_path / "mail.csv"
    file.write_text("text,label\nthe match,good\nthe bank,bad\n")
    encoder = Encoder(tiny_encoder_folder, dtype="float32")

    def finished(anchor, space):
        ZeroShotClassifier(space, encoder, anchor=anchor).fit().save(tmp_path / "model")
        space.to_file(labels)
        return len(
            run([f"saved:{tmp_path / 'model'}"], [OwnFile(file=file, labels=labels)], store, bootstrap=0).finished
        )

    assert finished("both", space) == 1
    assert finished("both", space) == 0, "the same again"
    assert finished("verbalizer", space) == 1
    assert finished("verbalizer", LabelSpace.from_dict({"labels": {"good": ["Snow."], "bad": ["Rain."]}})) == 1


def test_two_files_of_one_name_are_refused(tmp_path, store, monkeypatch):
    labels = tmp_path / "labels.yaml"
    LabelSpace.from_names(["good", "bad"]).to_file(labels)
    files = [tmp_path / "mail.csv", tmp_path / "old" / "mail.tsv"]
    (tmp_path / "old").mkdir()
    files[0].write_text("text,label\nsun,good\n")
    files[1].write_text("text\tlabel\nrain\tbad\n")
    own = [OwnFile(file=file, labels=labels) for file in files]
    with pytest.raises(ConfigError, match="two tasks are called own/mail"):
        run([fake_model()], own, store, bootstrap=0)
    monkeypatch.chdir(tmp_path)
    twice = [own[0], OwnFile(file=Path("mail.csv"), labels=Path("labels.yaml"))]
    assert len(run([fake_model()], twice, store, bootstrap=0).finished) == 1, "one file named twice"


def test_results_of_before_and_after_settings_were_stored_are_one_row(data, store, tiny_encoder_folder):
    spec = f"embedding:{tiny_encoder_folder}"
    [first] = run([spec], ["imdb"], store, data=data, dtype="float32", bootstrap=0).finished
    store.append({**first, "revision": first["revision"].partition("+")[0]})  # as it was stored before
    report = run([spec], NAMES, store, data=data, dtype="float32", bootstrap=0)
    assert (len(report.reused), len(report.finished)) == (1, 1)
    assert any("stored without settings are reused" in note for note in report.notes)
    [(way, records)] = ways_of(store.records()).items()
    assert (way.revision, len(records)) == (first["revision"], 2)
    alone = {**first, "seed": 0, "revision": first["revision"].partition("+")[0]}
    assert nli_of(way, records, [alone]) == [alone]


def test_absent_tasks_are_named_with_the_reason_and_the_others_run(data, store):
    report = run([fake_model()], ["sentiment"], store, data=data, bootstrap=0)
    assert {record["task"] for record in report.finished} == set(NAMES)
    assert set(report.absent) == set(expand_tasks(["sentiment"])) - set(NAMES)
    assert all("no " in why for why in report.absent.values())
    with pytest.raises(InputError, match="none of the 2 tasks can be run"):
        run([fake_model()], ["emotion"], store, data=data)


def test_known_paper_rows_are_run_and_the_other_sets_named(data, store):
    report = run([fake_model()], NAMES, store, data=data, protocol="paper", bootstrap=0)
    assert [record["task"] for record in report.finished] == ["rottentomatoes"]
    assert report.absent == {"imdb": "the paper's rows are not known"}


def test_seeds_draw_texts_with_a_limit(data, store):
    report = run([fake_model()], ["imdb"], store, data=data, limit=6, seeds=(0, 1, 2), bootstrap=0)
    assert [(record["seed"], record["texts"]) for record in report.finished] == [(0, 6), (1, 6), (2, 6)]
    assert len({record["fingerprint"] for record in report.finished}) == 3
    assert not report.notes


def test_numpy_seeds_and_limits_are_stored_as_python_ints(data, store):
    given = {"limit": np.int64(6), "seeds": np.arange(2), "bootstrap": np.int64(0)}
    report = run([fake_model()], ["imdb"], store, data=data, **given)
    assert [(record["seed"], record["limit"]) for record in report.finished] == [(0, 6), (1, 6)]
    assert not run([fake_model()], ["imdb"], store, data=data, limit=6, seeds=(0, 1), bootstrap=0).finished


def test_seeds_without_a_limit_give_one_run_with_a_note(data, store):
    report = run([fake_model()], ["imdb"], store, data=data, seeds=(3, 4), bootstrap=0)
    assert keys(report.finished) == [("embedding:fake", "imdb", 0)]
    assert "without one each model is run once" in report.notes[0]


@pytest.mark.slow
@pytest.mark.parametrize("bad", [np.nan, np.inf, -np.inf], ids=["nan", "inf", "minus inf"])
def test_non_finite_scores_are_an_error_and_the_run_is_not_stored(data, store, bad):
    models = [fake_model("embedding:good"), fake_model("embedding:broken", bad=bad)]
    with pytest.raises(EncoderError, match="embedding:broken on imdb: the scores of 1 of 8 texts are not finite"):
        run(models, ["imdb"], store, data=data, bootstrap=0)
    assert keys(store.records()) == [("embedding:good", "imdb", 0)]


def test_scores_of_another_shape_are_an_error(data, store):
    with pytest.raises(EncoderError, match=r"must be \[text label\], \(8, 2\). Got shape \(8, 1\)"):
        run([fake_model(shape=1)], ["imdb"], store, data=data)


def test_a_models_own_error_is_raised_unchanged(data, store):
    """An error such as a language model's with too few answer letters for the labels."""

    class NoSymbols:
        def scores(self, texts, space):
            raise EncoderError("this model has 26 answer letters, 72 labels were given")

    model = fake_model("llm:small", family="llm")
    object.__setattr__(model, "scorer", NoSymbols())
    with pytest.raises(EncoderError, match=r"^this model has 26 answer letters, 72 labels were given$"):
        run([model], ["imdb"], store, data=data)
    assert store.records() == []


def test_a_stored_result_without_the_interval_that_is_asked_for_is_told(data, store):
    run([fake_model()], ["imdb"], store, data=data, bootstrap=20)
    for bootstrap, told in ((0, False), (20, False), (30, True)):
        report = run([fake_model()], ["imdb"], store, data=data, bootstrap=bootstrap)
        assert report.finished == ()
        told_so = any(
            "1 of 1 stored results have an interval of fewer than 30 samples" in note for note in report.notes
        )
        assert told_so == told


def test_a_stored_result_without_intervals_is_reused(data, store):
    [record] = run([fake_model()], ["imdb"], store, data=data).finished
    store.path.write_text(json.dumps({key: value for key, value in record.items() if key != "intervals"}) + "\n")
    again = run([fake_model()], ["imdb"], store, data=data)
    assert (len(again.reused), again.finished) == (1, ())


def test_pairs_that_a_model_cannot_read_cost_its_nli_auroc_alone(data, store, nli_folder):
    class Short(FakeScorer):
        def pair_scores(self, premises, hypotheses):
            raise InputError("the label 'When ...' alone takes 133 of 128 tokens.")

    model = fake_model()
    object.__setattr__(model, "scorer", Short())
    report = run([model, fake_model("embedding:other")], ["imdb"], store, data=data, nli=nli_folder, bootstrap=0)
    assert [record["model"] for record in report.finished if record["task"] == "imdb"] == [
        model.spec,
        "embedding:other",
    ]
    assert any("its NLI AUROC is not measured, because the label 'When" in note for note in report.notes)


def test_ctrl_c_keeps_finished_runs_and_says_how_to_resume(data, store, caplog):
    class Stops(FakeScorer):
        def scores(self, texts, space):
            if len(self.calls) == 3:  # two calls for the first task, the warm-up and the block
                raise KeyboardInterrupt
            return super().scores(texts, space)

    model = fake_model()
    object.__setattr__(model, "scorer", Stops())
    with caplog.at_level(logging.INFO, "labelspace"), pytest.raises(KeyboardInterrupt):
        run([model], NAMES, store, data=data, bootstrap=0)
    assert "1 of 2 runs are finished" in caplog.text
    assert "repeat the command to resume" in caplog.text
    assert keys(store.records()) == [("embedding:fake", "rottentomatoes", 0)]
    assert len(run([fake_model()], NAMES, store, data=data, bootstrap=0).finished) == 1


KILLED = """
import sys
from pathlib import Path
from bench.fakes import fake_model
from labelspace.bench import run, runner
seconds = float(sys.argv[3])
append = runner.ResultStore.append
def told(store, record):
    written = append(store, record)
    print(record["seed"], flush=True)
    return written
runner.ResultStore.append = told
run([fake_model(seconds=seconds)], ["imdb"], Path(sys.argv[1]), data=Path(sys.argv[2]), limit=6,
    seeds=range(12), bootstrap=0)
"""


@pytest.mark.slow
@pytest.mark.skipif(not hasattr(signal, "SIGKILL"), reason="needs SIGKILL")
def test_a_killed_run_resumes_to_the_same_records_without_duplicates(data, store, tmp_path, request):
    command = [sys.executable, "-c", KILLED, str(store.path), str(data)]
    environment = {**os.environ, "PYTHONPATH": str(request.config.rootpath / "tests"), "OMP_NUM_THREADS": "1"}
    with subprocess.Popen([*command, "0.02"], stdout=subprocess.PIPE, text=True, env=environment) as child:
        assert child.stdout is not None
        before = [int(child.stdout.readline()) for _ in range(3)]
        child.send_signal(signal.SIGKILL)
        before += [int(line) for line in child.stdout.read().split()]
    assert child.returncode == -signal.SIGKILL
    # Simulate a kill during the next write as well.
    with store.path.open("ab") as handle:
        handle.write(b'{"schema": 1, "model": "embedding:fa')
    options = {"data": data, "limit": 6, "seeds": range(12), "bootstrap": 0}
    with pytest.warns(LabelSpaceWarning, match="half-written"):
        report = run([fake_model()], ["imdb"], store, **options)
    assert {record["seed"] for record in report.reused} >= set(before)
    assert 0 < len(report.finished) < 12
    lines = store.path.read_text().splitlines()
    assert len(lines) == len(store.records()) == 12
    straight = run([fake_model()], ["imdb"], tmp_path / "straight.jsonl", **options).finished
    same = ("model", "task", "seed", "fingerprint", "metrics", "texts", "notes")
    assert [[record[name] for name in same] for record in store.records()] == [
        [record[name] for name in same] for record in straight
    ]


def test_end_to_end_a_real_encoder_scores_as_the_zero_shot_classifier(data, store, tiny_encoder_folder):
    report = run([str(tiny_encoder_folder)], ["imdb"], store, data=data, dtype="float32", device="cpu", bootstrap=0)
    (record,) = report.finished
    task = load_task("imdb", data=data)
    model = ZeroShotClassifier(
        task.space, {"name": tiny_encoder_folder, "dtype": "float32", "device": "cpu"}, anchor="verbalizer"
    ).fit()
    tally = Tally(task.space.names)
    tally.add(task.targets, model.scores(task.texts, task.space).argmax(axis=1))
    assert record["metrics"]["macro_f1_predicted"] == tally.metrics().macro_f1_predicted
    assert record["dtype"] == "float32"
    assert record["revision"].startswith("sha256:")
    assert record["described"]["anchor"] == "verbalizer"
    assert record["parameters"] > 0


@pytest.mark.slow
def test_end_to_end_every_family_scores_or_stops_with_its_own_error(data, store, tmp_path):
    from families.tiny_causal import tiny_causal
    from families.tiny_pairs import build_pairs

    nli, reranker = build_pairs("bert", tmp_path / "nli"), build_pairs("bert", tmp_path / "one", {0: "relevant"})
    models = [f"nli:{nli}", f"nli:{nli}@logit", f"reranker:{reranker}", f"llm:{tiny_causal('qwen3')}"]
    options = {"data": data, "dtype": "float32", "device": "cpu", "limit": 6, "bootstrap": 0}
    report = run(models, ["imdb"], store, **options)
    assert [record["family"] for record in report.finished] == ["nli", "nli", "reranker", "llm"]
    assert [record["described"].get("score") for record in report.finished[:2]] == ["log_odds", "logit"]
    assert all(record["parameters"] > 0 and record["revision"] for record in report.finished)
    write_task(data, "emotiondair", classes=[f"feeling {number}" for number in range(6)])
    small = f"llm:{tiny_causal('letters')}"
    with pytest.raises(EncoderError, match="5"):
        run([*models, small], ["emotiondair"], store, **options)
    assert [record["task"] for record in store.records()] == ["imdb"] * 4 + ["emotiondair"] * 4


def test_the_users_own_file_is_a_task(tmp_path, store):
    (tmp_path / "mail.csv").write_text("body,kind\nthe match,sports\nthe vote,politics\nthe goal,sports\n")
    LabelSpace.from_names(["sports", "politics"]).to_file(tmp_path / "labels.yaml")
    own = OwnFile(file=tmp_path / "mail.csv", labels=tmp_path / "labels.yaml", text_column="body", label_column="kind")
    report = run([fake_model()], [own], store, bootstrap=0)
    assert [(record["task"], record["benchmark"], record["texts"]) for record in report.finished] == [
        ("own/mail (kind)", "own", 3)
    ]


@pytest.mark.slow
def test_nli_auroc_is_a_separate_record(data, store, nli_folder, tiny_encoder_folder):
    models = [str(tiny_encoder_folder), fake_model()]
    report = run(models, ["imdb"], store, data=data, nli=nli_folder, dtype="float32", bootstrap=0)
    found = [record for record in report.finished if record["task"] == "nli"]
    assert [record["model"] for record in found] == [f"embedding:{tiny_encoder_folder}"]
    assert 0 <= found[0]["metrics"]["auroc"] <= 1
    assert set(found[0]["by_source"]) == {"mnli_matched_dev", "other"}
    assert any("embedding:fake scores no pairs" in note for note in report.notes)
    assert len(run(models[:1], ["imdb"], store, data=data, nli=nli_folder, dtype="float32").reused) == 2


def test_only_one_block_of_scores_is_held_in_memory(data, store, monkeypatch):
    import tracemalloc

    classes = [f"class {number}" for number in range(72)]
    write_task(data, "banking77", rows=4000, classes=classes)

    class Flat:
        def scores(self, texts, space):
            return np.ones((len(texts), len(space)), dtype=np.float32)

    model = fake_model("reranker:flat", family="reranker")
    object.__setattr__(model, "scorer", Flat())
    peaks = []
    for block in (500 * 72, 4000 * 72):
        monkeypatch.setattr(scoring_module, "PAIR_BLOCK", block)
        task = load_task("banking77", data=data)
        tracemalloc.start()
        scoring_module.score_task(model, task)
        peaks.append(tracemalloc.get_traced_memory()[1])
        tracemalloc.stop()
    assert peaks[0] < 4000 * 72 * 4 / 2 < peaks[1]


@pytest.mark.parametrize(
    ("wrong", "said"),
    [
        ({"protocol": "all"}, "protocol must be one of"),
        ({"unverbalized": "drop"}, "unverbalized must be one of"),
        ({"limit": 0}, "limit must be"),
        ({"bootstrap": -1}, "bootstrap must be"),
        ({"seeds": ()}, "seeds must hold"),
        ({"seeds": (-1,), "limit": 2}, "seeds must be"),
        ({"dtype": "float16"}, "dtype must be one of"),
    ],
    ids=["protocol", "unverbalized", "limit", "bootstrap", "no seed", "seed", "dtype"],
)
def test_invalid_options_are_refused_before_anything_runs(data, store, wrong, said):
    with pytest.raises(ConfigError, match=said):
        run([fake_model()], ["imdb"], store, data=data, **wrong)
    assert not store.path.exists()


def test_unknown_tasks_and_no_models_are_refused(data, store):
    with pytest.raises(ConfigError, match=r"no task 'imbd'. Did you mean 'imdb'"):
        run([fake_model()], ["imbd"], store, data=data)
    with pytest.raises(ConfigError, match="no model to run"):
        run([], ["imdb"], store, data=data)
    with pytest.raises(ConfigError, match="no task to run"):
        run([fake_model()], [], store, data=data)


def test_task_words_expand_to_many_tasks():
    assert len(expand_tasks(["btzsc"])) == 22
    assert len(expand_tasks(["mteb"])) == 8
    assert len(expand_tasks(["all"])) == 30
    assert expand_tasks(["emotion", "empathetic"]) == expand_tasks(["emotion"])
