"""bench: run, tasks, table, compare, export, figures."""

import json
import sys
from types import SimpleNamespace

import pytest

from bench.fakes import record, write_task
from labelspace.bench import BTZSC, ResultStore

NAMES = ("rottentomatoes", "imdb")
BOTH = ",".join(NAMES)


@pytest.fixture
def here(tmp_path, monkeypatch):
    """A working folder with two data sets in `data`."""
    for name in NAMES:
        write_task(tmp_path / "data", name)
    monkeypatch.chdir(tmp_path)
    return tmp_path


@pytest.fixture
def bench_run(run, here, tiny_encoder_folder):
    """Run the tiny encoder on the data sets in `data`."""

    def call(*args, tasks=BOTH):
        words = ("--data", "data", "--dtype", "float32", "--bootstrap", 0, *(("--tasks", tasks) if tasks else ()))
        return run("bench", "run", tiny_encoder_folder, *words, *args)

    return call


@pytest.fixture
def stored(here):
    """A store with two models."""
    store = ResultStore(here / "results.jsonl")
    for model, score in (("embedding:one", 0.6), ("nli:two", 0.7)):
        for task in ("agnews", "imdb", "massive"):
            store.append(record(model, task, score, family=model.partition(":")[0]))
    return store


def test_run_prints_a_table_and_keeps_the_results(bench_run, here):
    result = bench_run()
    assert result.exit_code == 0, result.output
    for word in (*NAMES, "mean of 2", "2 runs finished, 0 from before", "results.jsonl"):
        assert word in result.stdout
    assert len(ResultStore(here / "results.jsonl").records()) == 2
    again = bench_run()
    assert "0 runs finished, 2 from before" in again.stdout
    assert again.stderr.count("was in the store already") == 2


def test_run_names_absent_tasks_even_if_quiet(bench_run):
    result = bench_run("--quiet", tasks="sentiment")
    assert result.exit_code == 0, result.output
    assert result.stderr == ""
    assert "left out, not here: " in result.stdout
    assert "appreviews (no data/btzsc/appreviews/test.parquet)" in result.stdout


def test_run_without_tasks_runs_the_whole_benchmark(bench_run):
    result = bench_run("--quiet", "--json", tasks=None)
    told = json.loads(result.stdout)
    assert {found["task"] for found in told["finished"]} == set(NAMES)
    assert len(told["absent"]) == 20


def test_run_with_a_limit_and_seeds(bench_run):
    told = json.loads(bench_run("--quiet", "--json", "--limit", 5, "--seeds", "0,1", tasks="imdb").stdout)
    assert [(found["seed"], found["texts"]) for found in told["finished"]] == [(0, 5), (1, 5)]
    assert "without one each model is run once" in bench_run("--seeds", "0,1", tasks="imdb").stderr


def test_run_on_the_users_own_file_needs_no_data(run, here, documents, label_file, tiny_encoder_folder):
    words = ("--file", documents, "--labels", label_file, "--dtype", "float32", "--json", "--quiet")
    told = json.loads(run("bench", "run", tiny_encoder_folder, *words).stdout)
    assert [(found["task"], found["texts"]) for found in told["finished"]] == [("own/documents", 6)]


def test_run_reports_a_label_without_rows(run, here, label_file, tiny_encoder_folder):
    here.joinpath("few.jsonl").write_text('{"text": "the match", "label": "sports"}\n')
    done = run("bench", "run", tiny_encoder_folder, "--file", "few.jsonl", "--labels", label_file, "--dtype", "float32")
    assert "own/few: no row has" in done.stderr


@pytest.mark.parametrize(
    ("args", "said"),
    [
        (["--unverbalized", "drop"], "--unverbalized must be one of 'leave-out', 'class-0'"),
        (["--seeds", "a,b"], "--seeds must be whole numbers with commas"),
        (["--seeds", ""], "seeds must hold at least one seed"),
        (["--file", "x.csv"], "--file and --labels go together"),
        (["--protocol", "all"], "protocol must be one of"),
        (["--limit", "0"], "--limit must be"),
        (["--dtype", "float16"], "dtype must be one of"),
        (["--store", "nowhere/results.jsonl"], "nowhere/results.jsonl cannot be written"),
        (["--data", "nowhere"], "there is no folder nowhere"),
        (["--nli", "nowhere"], "nowhere"),
        (["--tasks", "imbd"], "Did you mean 'imdb'"),
        (["--tasks", "appreviews"], "none of the 1 tasks can be run"),
    ],
    ids=lambda value: value[0] + " " + value[1] if isinstance(value, list) else None,
)
def test_run_refuses(run, refused, here, tiny_encoder_folder, args, said):
    data = [] if "--data" in args else ["--data", "data"]
    tasks = [] if "--tasks" in args else ["--tasks", "imdb"]
    result = run("bench", "run", tiny_encoder_folder, *data, *tasks, "--quiet", *args)
    if args == ["--store", "nowhere/results.jsonl"]:
        assert result.exit_code == 1, "the system refuses to write there"
        assert said in result.stderr
    else:
        assert said in refused(result)
    assert not (here / "results.jsonl").exists()


@pytest.mark.parametrize("model", ["embeding:x", "embedding:nobody/nothing", "nli:nobody/nothing"])
def test_run_refuses_a_model_that_does_not_exist(run, refused, here, model):
    line = refused(run("bench", "run", model, "--data", "data", "--tasks", "imdb", "--offline", "--quiet"))
    assert model.partition(":")[2] in line


def test_a_damaged_store_is_refused_in_one_line(run, refused, stored):
    text = stored.path.read_text()
    stored.path.write_text("{\n" + text)
    assert "results.jsonl, line 1 is not JSON" in refused(run("bench", "table"))


def test_a_half_written_last_line_causes_a_warning(run, stored):
    stored.path.write_text(stored.path.read_text() + '{"schema": 1, "mod')
    result = run("bench", "table")
    assert result.exit_code == 0
    assert "warning: results.jsonl: the last line is half-written" in result.stderr


def test_tasks_lists_all_tasks_and_which_are_present(run, here):
    text = run("bench", "tasks", "--data", "data").stdout
    assert "2 of 30 present" in text
    assert "absent: no data/btzsc/agnews/test.parquet" in text
    told = json.loads(run("bench", "tasks", "--data", "data", "--json").stdout)
    assert {card["name"] for card in told if card["present"]} == set(NAMES)
    assert len(told) == 30
    assert "22 of 30 present (read from the hub)" in run("bench", "tasks").stdout


def test_tasks_offline_lists_the_tasks_in_the_hubs_cache(run, here, monkeypatch):
    def load_dataset(repository, name, *, split):
        if name == "imdb":
            return SimpleNamespace(column_names=["text", "hypothesis", "labels"])
        raise ValueError("not cached")

    module = SimpleNamespace(load_dataset=load_dataset, config=SimpleNamespace(HF_HUB_OFFLINE=False))
    monkeypatch.setitem(sys.modules, "datasets", module)
    text = run("bench", "tasks", "--offline").stdout
    assert "1 of 30 present (read from the hub's cache)" in text
    assert "absent: not in the hub's cache on this machine" in text


def test_run_offline_names_the_sets_that_are_not_cached(run, here, tiny_encoder_folder, monkeypatch, refused):
    def load_dataset(repository, name, *, split):
        assert module.config.HF_HUB_OFFLINE
        raise ValueError("not cached")

    module = SimpleNamespace(load_dataset=load_dataset, config=SimpleNamespace(HF_HUB_OFFLINE=False))
    monkeypatch.setitem(sys.modules, "datasets", module)
    line = refused(run("bench", "run", tiny_encoder_folder, "--tasks", "emotion", "--offline", "--quiet"))
    assert "none of the 2 tasks can be run (emotiondair: emotiondair of btzsc/btzsc is not in the hub's cache" in line


def test_table_prints_text_markdown_and_json(run, stored):
    text = run("bench", "table", "--beside", "bart-large-mnli, gte-large-en-v1.5").stdout
    assert "3 of 22" in text
    assert "bart-large-mnli (published)" in text
    markdown = run("bench", "table", "--markdown", "--by", "set", "--metric", "accuracy").stdout
    assert "| massive | 0.600 | 0.700 |" in markdown
    told = json.loads(run("bench", "table", "--json", "--beside", "all").stdout)
    assert len(told[0]["rows"]) == 40


@pytest.mark.parametrize(
    ("args", "said"),
    [
        (["--by", "model"], "--by must be one of"),
        (["--metric", "f1"], "metric must be one of"),
        (["--markdown", "--json"], "give one of them"),
        (["--beside", "bart"], "not a model of the paper"),
        (["--store", "none.jsonl"], "there is no file none.jsonl"),
    ],
    ids=lambda value: " ".join(value) if isinstance(value, list) else None,
)
def test_table_refuses(run, refused, stored, args, said):
    assert said in refused(run("bench", "table", *args))


def test_compare_places_a_model_among_the_published_ones(run, refused, stored):
    for model in ("nli:two", "two"):
        assert "of 39" in run("bench", "compare", model).stdout
    told = json.loads(run("bench", "compare", "two", "--json", "--metric", "accuracy").stdout)
    assert told["overall"]["score"] == pytest.approx(0.7)
    line = refused(run("bench", "compare", "nli:tow"))
    assert "Did you mean 'nli:two'" in line
    assert "embedding:one, nli:two" in line


def test_compare_uses_one_protocol_and_names_it(run, stored):
    stored.append(record("nli:two", "imdb", 0.1, family="nli", protocol="paper"))
    result = run("bench", "compare", "nli:two", "--json")
    assert json.loads(result.stdout)["overall"]["score"] == pytest.approx(0.7)
    assert "was run in 2 ways" in result.stderr


def test_compare_says_that_a_run_saw_a_sample(run, here):
    ResultStore(here / "results.jsonl").append(record("nli:two", "imdb", 0.9, family="nli", limit=60))
    result = run("bench", "compare", "two", "--store", "results.jsonl")
    assert "scored on a sample of at most 60 texts of each set" in result.stderr


def test_compare_prefers_runs_without_a_limit_in_any_order_of_the_store(run, here):
    for name, limits in (("one", (10, None)), ("other", (None, 10))):
        store = ResultStore(here / f"{name}.jsonl")
        for limit in limits:
            store.append(record("nli:two", "imdb", 0.9 if limit else 0.4, family="nli", limit=limit))
        result = run("bench", "compare", "two", "--store", f"{name}.jsonl", "--json")
        assert json.loads(result.stdout)["overall"]["score"] == pytest.approx(0.4)
        assert "was run in 2 ways; this is full rows, all texts, float32" in result.stderr


def test_options_choose_the_runs_for_compare_and_export(run, refused, stored, here):
    stored.append(record("nli:two", "imdb", 0.1, family="nli", limit=10))
    stored.append(record("nli:two", "imdb", 0.2, family="nli", dtype="bfloat16"))
    stored.append(record("nli:two", "imdb", 0.3, family="nli", protocol="paper"))
    asked = {("--limit", 10): 0.1, ("--dtype", "bfloat16"): 0.2, ("--protocol", "paper"): 0.3}
    for words, score in asked.items():
        result = run("bench", "compare", "two", "--json", *words)
        assert json.loads(result.stdout)["overall"]["score"] == pytest.approx(score)
        assert "ways" not in result.stderr
        assert ("sample" in result.stderr) == ("--limit" in words)
        assert run("bench", "export", "two", "--out", "two.json", "--partial", *words).exit_code == 0
        assert json.loads((here / "two.json").read_text())["results"]["overall"]["macro_f1"] == pytest.approx(score)
    told = run("bench", "compare", "two", "--json", "--limit", "all", "--dtype", "float32", "--protocol", "full")
    assert json.loads(told.stdout)["overall"]["score"] == pytest.approx(0.7)
    for command in (["compare", "two"], ["export", "two", "--out", "no.json"]):
        line = refused(run("bench", *command, "--limit", 20))
        assert "nli:two was not run with limit 20. The store has: full rows, all texts, float32 (3 sets); full" in line
        assert "--limit must be a whole number, or all" in refused(run("bench", *command, "--limit", "few"))
    assert not (here / "no.json").exists()


def test_a_custom_model_can_be_compared_but_not_exported(run, refused, here):
    store = ResultStore(here / "results.jsonl")
    store.append(record("harness:mine", "imdb", 0.9, family="custom"))
    assert "of 39" in run("bench", "compare", "mine").stdout
    assert "family must be one of" in refused(run("bench", "export", "mine", "--out", "mine.json", "--partial"))


@pytest.mark.parametrize(
    "args", [["table"], ["compare", "one"], ["export", "one", "--out", "x.json"], ["figures", "--out", "f"]], ids=str
)
def test_every_command_refuses_an_invalid_value_in_the_store(run, refused, stored, args):
    line = {"schema": 1, **record("embedding:one", "capsotu"), "limit": [10]}
    stored.path.write_text(stored.path.read_text() + json.dumps(line) + "\n")
    assert "results.jsonl, line 7: limit must be" in refused(run("bench", *args))


def test_export_needs_complete_results_or_the_option_partial(run, refused, stored, here):
    assert "takes all 22 data sets. Got 3" in refused(run("bench", "export", "one", "--out", "one.json"))
    result = run("bench", "export", "one", "--out", "one.json", "--partial", "--name", "me/one")
    assert result.stdout.strip() == "one.json"
    assert "the leaderboard will not take it" in result.stderr
    assert json.loads((here / "one.json").read_text())["model"]["name"] == "me/one"
    for task in BTZSC:
        stored.append(record("embedding:one", task, 0.5))
    result = run("bench", "export", "one", "--out", "whole.json")
    assert result.exit_code == 0, result.output
    assert result.stderr == ""
    assert json.loads((here / "whole.json").read_text())["results"]["overall"]["macro_f1"] == 0.5


@pytest.mark.slow
def test_figures_are_drawn_with_and_without_results(run, stored, here):
    result = run("bench", "figures", "--out", "figures", "--data", "data", "--quiet")
    assert result.exit_code == 0, result.output
    assert len(result.stdout.split()) == len(list((here / "figures").iterdir())) == 10
    stored.path.unlink()
    bare = run("bench", "figures", "--out", "bare")
    assert "published models only" in bare.stderr
    assert len(bare.stdout.split()) == 6


def test_figures_refuses_a_missing_store(run, refused, here):
    assert "there is no file none.jsonl" in refused(run("bench", "figures", "--out", "f", "--store", "none.jsonl"))
    assert not (here / "f").exists()
