"""The command prefinetune: its options, what it refuses and prints, Ctrl-C, kill and resume."""

import json
import re
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

from labelspace import Encoder
from labelspace.config import PrefinetuneConfig
from labelspace.errors import InputError
from labelspace.training.prefinetune import read_eigenspace
from training.prefinetune.toy import toy_pairs

SHORT = ("--learning-rate", 1e-3, "--dtype", "float32", "--device", "cpu")


def write_source(folder: Path, name: str, count: int = 12) -> Path:
    """Write the toy pairs of one source as JSONL."""
    pairs = toy_pairs(count, sources=(name,))
    rows = zip(pairs.anchors, pairs.positives, strict=True)
    path = folder / f"{name}.jsonl"
    path.write_text("".join(json.dumps({"anchor": one, "positive": other}) + "\n" for one, other in rows))
    return path


@pytest.fixture
def sources(tmp_path):
    return [write_source(tmp_path, name) for name in ("news", "questions", "shouts")]


@pytest.fixture
def command(sources, tiny_encoder_folder, tmp_path):
    given = [word for path in sources for word in ("--pairs", path)]
    return ("prefinetune", *given, "--encoder", tiny_encoder_folder, "--out", tmp_path / "model", *SHORT)


def vectors(folder: Path) -> np.ndarray:
    return Encoder(folder, dtype="float32", device="cpu").encode(list(toy_pairs().anchors))


def test_defaults_are_those_of_the_configuration(commands):
    command = commands.commands["prefinetune"]
    given = {parameter.name: parameter.default for parameter in command.params}
    shared = {name: value for name, value in vars(PrefinetuneConfig()).items() if name in given}
    assert {name: given[name] for name in shared} == shared


def test_an_encoder_is_trained_saved_and_reported_on(run, command, tmp_path, tiny_encoder_folder):
    result = run(*command)
    assert result.exit_code == 0, result.output
    head, table = result.stdout.split("on 36 training pairs")
    said = dict(re.split(r"\s{2,}", line, maxsplit=1) for line in head.rstrip().splitlines())
    assert list(said) == ["pairs", "steps", "loss", "regularizer", "directions shrunk"]
    assert said["pairs"] == "36 of 3 sources"
    assert said["steps"].startswith("5 of 5, in ")
    assert re.fullmatch(r"\d+ of \d+ active ones, of 64", said["directions shrunk"])
    names = [line.split("  ")[0].strip() for line in table.splitlines() if line.strip()]
    assert names[1:] == ["uniformity", "alignment", "isoscore", "drift", "nearest 10 kept", "saved"]
    assert re.search(r"uniformity +-\d\.\d{4} +-\d\.\d{4} +lower is better spread", table)
    assert "note: 36 pairs of 3 sources: news 12, questions 12, shouts 12" in result.stderr
    assert "note: next: labelspace fit" in result.stderr
    folder = tmp_path / "model"
    assert read_eigenspace(folder, width=64).sources == ("news", "questions", "shouts")
    assert not (tmp_path / "model.unfinished").exists()
    assert not np.allclose(vectors(folder), vectors(tiny_encoder_folder), atol=1e-3)


def test_options_reach_the_training(run, command, tmp_path):
    settings = {
        **{"regularizer_weight": 0.5, "rho": 0.9, "gamma": 0.5, "eta": 0.3, "centre": "mean", "temperature": 0.1},
        **{"batch_size": 4, "warmup": 0.2, "weight_decay": 0.1, "max_tokens_in_memory": 64, "encoder_dropout": "false"},
    }
    given = [word for name, value in settings.items() for word in ("--set", f"{name}={value}")]
    own = ("--epochs", 2, "--max-tokens", 16, "--per-source", 8, "--seed", 5)
    result = run(*command, *own, *given, "--json", "--quiet")
    assert result.exit_code == 0, result.output
    assert result.stderr == ""
    told = json.loads(result.stdout)
    assert told["encoder"] == str(tmp_path / "model")
    found = told["result"]
    config = PrefinetuneConfig.from_dict(found["config"])
    assert (config.regularizer_weight, config.rho, config.gamma, config.eta, config.centre) == (
        0.5,
        0.9,
        0.5,
        0.3,
        "mean",
    )
    assert (config.temperature, config.batch_size, config.epochs, config.warmup) == (0.1, 4, 2, 0.2)
    assert (config.weight_decay, config.max_tokens, config.max_tokens_in_memory) == (0.1, 16, 64)
    assert (config.per_source, config.encoder_dropout, config.learning_rate) == (8, False, 1e-3)
    assert (found["seed"], found["training"]["total_steps"]) == (5, 12)
    assert found["pairs"] == {"news": 8, "questions": 8, "shouts": 8}
    assert read_eigenspace(tmp_path / "model").settings["centre"] == "mean"


def test_scored_pairs_at_or_above_the_threshold_are_used(run, command, tmp_path):
    rows = [f"question {n}\tthe answer {n}\t{n % 2}" for n in range(12)]
    path = tmp_path / "duplicates.tsv"
    path.write_text("\n".join(["text\ttext_pair\tis_duplicate", *rows]) + "\n")
    columns = ("--anchor-column", "text", "--positive-column", "text_pair", "--score-column", "is_duplicate")
    # The other files have other column names, so this file is given alone.
    alone = ("prefinetune", *command[command.index("--encoder") :])
    result = run(
        *alone, "--scored", path, "--min-score", 1, *columns, "--set", "regularizer_weight=0", "--json", "--quiet"
    )
    assert result.exit_code == 0, result.output
    assert json.loads(result.stdout)["result"]["pairs"] == {"duplicates": 6}


def test_sources_are_named_by_a_column_or_by_the_file(run, refused, command, tmp_path):
    words = [f"https://a/{n}\tquestion {n}\tthe answer {n}\t{'ab'[n % 2]}" for n in range(14)]
    path = tmp_path / "posts.tsv"
    path.write_text("\n".join(["source\tanchor\tpositive\tforum", *words]) + "\n")
    alone = ("prefinetune", "--pairs", path, *command[command.index("--encoder") :], "--json", "--quiet")
    assert "and 4 more" in (said := refused(run(*alone)))
    assert said.endswith("it means something else: source_column=None, --source-column ''.")
    for column, found in (("", {"posts": 14}), ("forum", {"a": 7, "b": 7})):
        result = run(*alone, "--source-column", column, "--set", "gamma=0.5", "--set", "eta=0", "--overwrite")
        assert result.exit_code == 0, result.output
        assert json.loads(result.stdout)["result"]["pairs"] == found


def test_files_with_their_own_columns_labels_and_thresholds_can_be_mixed(run, command, label_file, documents, tmp_path):
    (tmp_path / "quora.tsv").write_text(
        "q1\tq2\tdup\n" + "".join(f"question {n}\tthe answer {n}\t{n % 2}\n" for n in range(12))
    )
    (tmp_path / "sts.tsv").write_text(
        "anchor\tpositive\tlabel\n" + "".join(f"sentence {n}\tanother {n}\t{n / 2}\n" for n in range(12))
    )
    (tmp_path / "moods.csv").write_text(
        "body,mood\n" + "".join(f"text {n},{'up' if n % 2 else 'down'}\n" for n in range(8))
    )
    (tmp_path / "moods.yaml").write_text(
        "labels: [{name: up, descriptions: [It rose.]}, {name: down, descriptions: [It fell.]}]"
    )
    given = (
        *("--scored", f"{tmp_path}/quora.tsv:anchor=q1,positive=q2,score=dup,min_score=1"),
        *("--scored", tmp_path / "sts.tsv", "--min-score", 3),
        *("--labelled", documents, "--labels", label_file),
        *("--labelled", f"{tmp_path}/moods.csv:text=body,label=mood,labels={tmp_path}/moods.yaml"),
    )
    result = run(*command, *given, "--json", "--quiet")
    assert result.exit_code == 0, result.output
    assert json.loads(result.stdout)["result"]["pairs"] == {
        **{"news": 12, "questions": 12, "shouts": 12},
        **{"documents": 6, "moods": 8, "quora": 6, "sts": 6},
    }
    assert "documents" in read_eigenspace(tmp_path / "model").sources


@pytest.mark.parametrize("given", [("--min-score", 1), ("--scored", "x.tsv")])
def test_scored_files_need_a_threshold_and_a_threshold_needs_them(given, run, refused, command):
    assert "--scored FILE and --min-score X need one another" in refused(run(*command, *given))


@pytest.mark.parametrize("weight", [0, 1])
def test_the_command_printed_after_an_early_ctrl_c_works(weight, run, command, tmp_path, monkeypatch):
    def stopped(*_, **__):
        raise KeyboardInterrupt

    early = (*command, "--set", f"regularizer_weight={weight}")
    with monkeypatch.context() as patched:
        patched.setattr("labelspace.training.prefinetune.objective.PrefinetuneObjective.__init__", stopped)
        said = run(*early)
    assert said.exit_code == 130
    assert "--resume" in said.stderr
    assert run(*early, "--resume").exit_code == 0
    assert (tmp_path / "model" / "modules.json").is_file()


def test_weight_0_is_plain_prefinetuning_and_the_next_command_is_quoted_for_the_shell(run, command, tmp_path):
    result = run(*command, "--set", "regularizer_weight=0", "--out", tmp_path / "of mine")
    assert result.exit_code == 0, result.output
    assert "regularizer" not in result.stdout
    assert not (tmp_path / "of mine" / "eigenspace.safetensors").exists()
    assert f"--encoder '{tmp_path / 'of mine'}' --out model" in result.stderr


def test_files_of_the_same_name_and_globs_are_separate_sources(run, tiny_encoder_folder, tmp_path):
    for folder in ("a", "b"):
        (tmp_path / folder).mkdir()
        write_source(tmp_path / folder, "news")
    rows = [json.loads(line) for line in (tmp_path / "b/news.jsonl").read_text().splitlines()]
    (tmp_path / "b/news.tsv").write_text("anchor\tpositive\n" + "".join("\t".join(r.values()) + "\n" for r in rows))
    (tmp_path / "c").mkdir()
    for name in ("questions", "shouts"):
        write_source(tmp_path / "c", name)
    given = [word for path in ("a/news.jsonl", "b/news.tsv", "c/*.jsonl") for word in ("--pairs", tmp_path / path)]
    out = tmp_path / "model"
    result = run("prefinetune", *given, "--encoder", tiny_encoder_folder, "--out", out, *SHORT, "--json")
    assert result.exit_code == 0, result.output
    names = json.loads(result.stdout)["result"]["pairs"]
    assert [Path(name).relative_to(tmp_path).as_posix() for name in names] == [
        "a/news.jsonl",
        "b/news.tsv",
        "c/*.jsonl",
    ]


def test_an_invalid_seed_is_refused_before_any_pair_is_read(run, refused, command):
    assert "seed" in refused(run(*command, "--seed", -1))


def test_a_run_that_fails_can_be_repeated_at_once(run, refused, command, tmp_path, monkeypatch):
    from labelspace.training.prefinetune import run as module

    def alike(*_given, **_more):
        raise InputError("the relations are one vector.")

    with monkeypatch.context() as patch:
        patch.setattr(module, "find_eigenspace", alike)
        assert "one vector" in refused(run(*command, "--quiet"))
    assert not (tmp_path / "model.unfinished").exists()
    assert run(*command).exit_code == 0


def test_fit_can_start_from_the_encoder(run, command, label_file, tmp_path):
    assert run(*command).exit_code == 0
    fitted = run(
        *("fit", label_file, "--encoder", tmp_path / "model", "--out", tmp_path / "classifier"),
        *("--max-steps", 2, "--learning-rate", "1e-4", "--dtype", "float32"),
    )
    assert fitted.exit_code == 0, fitted.output


@pytest.mark.parametrize(
    ("args", "said"),
    [
        (["--set", "regularizer_weight=-1"], "regularizer_weight"),
        (["--set", "rho=0"], "rho"),
        (["--set", "eta=2"], "eta"),
        (["--set", "centre=middle"], "centre must be one of"),
        (["--epochs", "0"], "epochs"),
        (["--learning-rate", "-1"], "learning_rate"),
        (["--per-source", "0"], "per_source"),
        (["--per-source", "4"], "each source needs at least 5 pairs"),
        (["--max-tokens", "2"], "max_tokens"),
        (["--max-tokens", "4096"], "more than the encoder reads (128)"),
        (["--dtype", "float8"], "dtype"),
        (["--device", "abacus"], "device"),
        (["--encoder", "no/such-encoder"], "no encoder 'no/such-encoder'"),
        (["--pairs", "nowhere.parquet"], "nowhere.parquet"),
        (["--labels", "labels.yaml"], "--labels needs --labelled"),
        (["--resume"], "to go on from"),
        (["--resume", "--overwrite"], "cannot both be asked for"),
    ],
    ids=lambda value: " ".join(value) if isinstance(value, list) else "",
)
def test_it_refuses_before_any_work(run, command, tmp_path, args, said):
    before = sorted(tmp_path.rglob("*"))
    result = run(*command, *args)
    errors = [line for line in result.stderr.splitlines() if not line.startswith("note: ")]
    assert result.exit_code == 2, result.output
    assert len(errors) == 1
    assert said in errors[0]
    assert sorted(tmp_path.rglob("*")) == before


def test_nothing_to_learn_from_is_refused(run, refused, tmp_path):
    said = refused(run("prefinetune", "--out", tmp_path / "model"))
    assert "give --pairs FILE, --labelled FILE or --scored FILE" in said


def test_the_error_for_a_missing_column_lists_the_columns(run, refused, documents, tmp_path):
    said = refused(run("prefinetune", "--pairs", documents, "--out", tmp_path / "model"))
    assert "no column 'anchor'" in said
    assert "text, label" in said


def test_an_existing_encoder_is_replaced_only_with_overwrite(run, refused, command, tmp_path):
    model = tmp_path / "model"
    model.mkdir()
    (model / "mine").write_text("mine")
    assert "holds something else, not a pre-finetuned encoder" in refused(run(*command))
    assert "holds something else, not a pre-finetuned encoder" in refused(run(*command, "--overwrite"))
    (model / "mine").unlink()
    assert run(*command).exit_code == 0
    first = vectors(model)
    assert "replace it with --overwrite" in refused(run(*command))
    again = run(*command, "--overwrite", "--seed", 1)
    assert again.exit_code == 0, again.output
    assert not np.array_equal(vectors(model), first)


def stop_after(step: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """Press Ctrl-C in that update, counted from 0; the update before it has a checkpoint."""
    from labelspace.training.prefinetune.objective import PrefinetuneObjective

    real = PrefinetuneObjective.update

    def interrupted(objective, done):
        if done == step:
            raise KeyboardInterrupt
        return real(objective, done)

    monkeypatch.setattr(PrefinetuneObjective, "update", interrupted)


@pytest.mark.slow
def test_ctrl_c_keeps_the_encoder_that_was_to_be_overwritten(run, command, tmp_path, monkeypatch):
    model, again = tmp_path / "model", (*command, "--set", "regularizer_weight=0", "--seed", 1)
    assert run(*command, "--set", "regularizer_weight=0").exit_code == 0
    first = vectors(model)
    for step, more in ((2, "--overwrite"), (3, "--resume")):
        with monkeypatch.context() as patch:
            stop_after(step, patch)
            stopped = run(*again, more, "--json")
        assert stopped.exit_code == 130, stopped.output
        assert json.loads(stopped.stdout)["encoder"] is None
        lies = f"{model} holds what it held before; update {step} lies in {model}.unfinished."
        assert f"interrupted: {lies}" in stopped.stderr
        assert stopped.stderr.rstrip().endswith("--resume")
        assert np.array_equal(vectors(model), first)
    done = run(*again, "--resume")
    assert done.exit_code == 0, done.output
    assert not np.array_equal(vectors(model), first)
    assert not (tmp_path / "model.unfinished").exists()


def test_a_second_ctrl_c_replaces_the_encoder_of_the_first(run, command, tmp_path, monkeypatch):
    found = []
    for step, more in ((2, ()), (3, ("--resume",))):
        with monkeypatch.context() as patch:
            stop_after(step, patch)
            stopped = run(*command, *more)
        assert stopped.exit_code == 130, stopped.output
        assert f"holds the encoder of update {step}, and can be used as it is" in stopped.stderr
        found.append(vectors(tmp_path / "model"))
    assert not np.array_equal(*found)


@pytest.mark.parametrize("how", ["as given", "by another way", "through a link"])
def test_the_starting_encoder_is_never_replaced(how, run, refused, command, tmp_path):
    (tmp_path / "model").mkdir()
    (tmp_path / "model" / "labelspace.json").write_text("{}")
    (tmp_path / "link").symlink_to(tmp_path / "model")
    same = {"as given": "model", "by another way": "../" + tmp_path.name + "/model", "through a link": "link"}[how]
    said = refused(run(*command, "--encoder", tmp_path / same, "--overwrite"))
    assert said == f"error: --encoder and --out are both {tmp_path / 'model'}; give --out another name."


def test_a_single_source_causes_one_warning(run, sources, tiny_encoder_folder, tmp_path):
    given = ("--encoder", tiny_encoder_folder, "--out", tmp_path / "model", *SHORT)
    result = run("prefinetune", "--pairs", sources[0], *given)
    assert result.exit_code == 0, result.output
    warned = [line for line in result.stderr.splitlines() if line.startswith("warning: ")]
    assert len(warned) == 1
    assert "REZE needs three sources" in warned[0]
    assert "0 of " in result.stdout


def test_a_refusal_loads_no_torch(command_line, one_thread, command, tmp_path):
    code = "import sys; from labelspace.cli import main\ntry: main()\nfinally: print('torch' in sys.modules)"
    few = write_source(tmp_path, "shouts", 3).rename(tmp_path / "few.jsonl")
    write_source(tmp_path, "shouts")
    line = [sys.executable, "-c", code, *(str(word) for word in (*command, "--pairs", few))]
    done = subprocess.run(line, capture_output=True, text=True, check=False, env=one_thread, timeout=120)
    assert done.returncode == 2
    assert "fewer in 'few' (3)" in done.stderr
    assert done.stdout.strip() == "False"


@pytest.mark.slow
def test_a_killed_and_an_interrupted_run_resume_to_the_same_bits(run, refused, stopped, command, tmp_path):
    longer, out = (*command, "--epochs", 20), tmp_path / "model"
    state = tmp_path / "model.unfinished" / "checkpoint" / "state.json"
    stopped(longer, state, "SIGKILL")
    assert not out.exists(), "a killed run leaves no incomplete encoder"
    said = stopped((*longer, "--resume"), state, "SIGINT")
    assert "can be used as it is" in said
    assert "to go on from it: labelspace " in said
    vectors(out)
    assert "holds an unfinished run; go on with --resume" in refused(run(*longer))
    other = run(*longer, "--resume", "--seed", 1)
    assert other.exit_code == 2
    assert "had " in other.stderr
    for words in ((*longer, "--resume"), [word if word != out else tmp_path / "straight" for word in longer]):
        result = run(*words)
        assert result.exit_code == 0, result.output
    assert np.array_equal(vectors(out), vectors(tmp_path / "straight"))
    assert not (tmp_path / "model.unfinished").exists()
