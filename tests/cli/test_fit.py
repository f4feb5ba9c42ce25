"""The command fit: its options, what it refuses and prints, Ctrl-C, and checkpoints."""

import inspect
import json
import os
import pty
import re
import select
import signal
import subprocess
import time

import numpy as np
import pytest

import labelspace
from labelspace import ZeroShotClassifier, load
from labelspace.classify.settings import own_arguments
from labelspace.cli.methods import METHODS, settings_of_method
from labelspace.config import EncodingConfig, SearchConfig
from tiny_rows import tiny_rows

SHORT = ("--max-steps", 3, "--dtype", "float32")


def test_every_setting_of_a_method_belongs_to_its_estimator_or_configuration():
    for name, method in METHODS.items():
        estimator = getattr(labelspace, method.estimator)
        own = set(own_arguments(estimator)) - {
            "labels",
            "encoder",
            "views",
            "student",
            "prior",
            "encoder_options",
            "checkpoint",
            "callbacks",
            "seed",
            "verbose",
            "config",
            "several",  # the label file says it
        }
        fields = set(vars(method.config())) if method.config else set()
        known = {setting.partition(".")[0] for setting in settings_of_method(name)}
        assert known == own | fields, name
        defaults = inspect.signature(estimator).parameters
        assert all(
            settings_of_method(name)[one].default == defaults[one].default
            for one in own & known - {"search", "teaching"}
        )


@pytest.mark.parametrize(
    ("words", "told"),
    [
        (("fit", "--dropout"), "--dropout is a setting: give --set dropout=VALUE; --settings lists them."),
        (("fit", "--warmup=1"), "give --set warmup=VALUE or --set teaching.warmup=VALUE; --settings"),
        (("fit", "--search-steps", 5), "give --set search.steps=VALUE; --settings"),
        (("prefinetune", "--regularizer-weight", 2), "give --set regularizer_weight=VALUE; --settings"),
        (("train-nli", "--warmup", 0), "give --set warmup=VALUE; --settings"),
        (("fit", "--encodr", "x"), "No such option: --encodr (Possible options: --encoder"),
    ],
    ids=str,
)
def test_a_setting_that_is_given_as_an_option_is_told_how_to_be_given(words, told, run, refused):
    assert told in refused(run(*words))


def test_the_settings_are_listed_with_type_default_and_meaning(run):
    told = json.loads(run("fit", "--settings", "--method", "lacon", "--json").stdout)["--method lacon"]
    by_name = {one["name"]: one for one in told}
    assert by_name.keys() == settings_of_method("lacon").keys()
    assert (by_name["epochs"]["type"], by_name["epochs"]["default"]) == ("whole number", 10)
    assert all(one["help"] for one in told)
    every = run("fit", "--settings").stdout
    assert all(f"--method {name}" in every for name in METHODS)
    assert "search.steps" in every
    assert "--dtype" in every


def test_the_help_shows_about_twenty_options(commands):
    command = commands.commands["fit"]
    assert sum(not parameter.hidden for parameter in command.params if parameter.param_type_name == "option") <= 25


def test_options_reach_the_model(run, label_file, documents, tiny_encoder_folder, tmp_path):
    result = run(
        *("fit", label_file, "--encoder", tiny_encoder_folder, "--out", tmp_path / "model", *SHORT),
        *("--method", "description", "--pool", documents),
        *("--learning-rate", "uniformity", "--set", "search.rates=1e-5,1e-4"),
        *("--set", "search.steps=2", "--set", "search.strategy=grid", "--set", "search.documents=4"),
        *("--set", "search.pairs=10", "--set", "anchor=verbalizer", "--set", "objective=rows"),
        *("--set", "temperature=0.1", "--threshold", -0.5, "--seed", 7, "--set", "warmup=0.1", "--max-tokens", 32),
        *("--set", "descriptions-per-label=2", "--set", "freeze_layers=1", "--set", "encoder_dropout=true"),
        *("--template", "It is {label}.", "--quiet"),
    )
    assert result.exit_code == 0, result.output
    assert result.stderr == ""
    model = load(tmp_path / "model")
    given = model.get_params()
    config = model.training_config()
    assert (config.objective, config.warmup, config.encoder_dropout) == ("rows", 0.1, True)
    assert (given["temperature"], given["threshold"], given["seed"]) == (0.1, -0.5, 7)
    assert (given["anchor"], config.descriptions_per_label, config.freeze_layers) == ("verbalizer", 2, 1)
    assert given["search"] == SearchConfig(rates=(1e-5, 1e-4), strategy="grid", steps=2, documents=4, pairs=10)
    assert not given["verbose"]
    assert model.encoder_.config == EncodingConfig(dtype="float32", max_tokens=32)
    assert model.label_space_.template == "It is {label}."
    fit = model.fit_result_.to_dict()
    assert fit["rate"]["reason"] == "uniformity"
    assert fit["pool"] == f"{documents.name} (6 rows)"
    assert fit["pool_documents"] == 4


@pytest.mark.slow
def test_the_summary_has_the_result_and_the_next_command(run, label_file, tiny_encoder_folder, tmp_path, documents):
    out = tmp_path / "model"
    pool = ("--method", "description", "--pool", documents)
    result = run("fit", label_file, "--encoder", tiny_encoder_folder, "--out", out, *SHORT, *pool)
    assert result.exit_code == 0, result.output
    said = dict(line.split("  ", 1) for line in result.stdout.splitlines())
    assert list(said) == ["learning rate", "steps", "loss", "uniformity", "pool", "saved"]
    assert said["steps"].strip().startswith("3; all steps made; weights of step ")
    assert said["saved"].strip() == str(out)
    timeless = re.sub(r", in \d+\.\d s$", "", result.stdout, flags=re.MULTILINE)
    assert timeless.startswith(f"{load(out).fit_result_}\n")
    assert f"note: next: labelspace predict {out}" in result.stderr
    assert "training: 3 of 3" in result.stderr


def test_the_next_command_can_be_copied_where_a_name_has_spaces(run, label_file, tiny_encoder_folder, tmp_path):
    spaced, out = tmp_path / "my labels.yaml", tmp_path / "my model"
    label_file.rename(spaced)
    lint = run("lint", spaced)
    fit = run("fit", spaced, "--encoder", tiny_encoder_folder, "--out", out, "--method", "zero-shot")
    assert f"labelspace lint '{spaced}' --encoder" in lint.stderr
    assert f"note: next: labelspace predict '{out}' documents.csv" in fit.stderr


def test_fit_prints_json(run, label_file, tiny_encoder_folder, tmp_path):
    out = tmp_path / "model"
    result = run("fit", label_file, "--encoder", tiny_encoder_folder, "--out", out, *SHORT, "--json")
    told = json.loads(result.stdout)
    assert told["model"] == str(out)
    assert len(told["fit"]["curve"]["losses"]) == 3
    assert told["fit"]["uniformity_before"] is None


def test_zero_shot_saves_the_encoder_without_training(run, label_file, tiny_encoder_folder, tmp_path):
    out = tmp_path / "model"
    result = run("fit", label_file, "--encoder", tiny_encoder_folder, "--out", out, "--method", "zero-shot")
    assert result.exit_code == 0, result.output
    assert "none: the encoder as it is" in result.stdout
    assert isinstance(load(out), ZeroShotClassifier)


def test_another_text_column_and_tensorboard_can_be_given(run, label_file, tiny_encoder_folder, tmp_path):
    pool = tmp_path / "pool.csv"
    pool.write_text("review\nthe team won\nthe bank lost\n")
    result = run(
        *("fit", label_file, "--encoder", tiny_encoder_folder, "--out", tmp_path / "model", *SHORT),
        *("--method", "description", "--pool", pool, "--text-column", "review", "--learning-rate", "1e-4"),
        *("--tensorboard", tmp_path / "log"),
    )
    assert result.exit_code == 0, result.output
    assert list((tmp_path / "log").glob("events.*"))


def test_a_saved_model_can_be_the_encoder(run, label_file, saved, tmp_path):
    result = run("fit", label_file, "--encoder", saved, "--out", tmp_path / "more", *SHORT)
    assert result.exit_code == 0, result.output
    assert load(tmp_path / "more").predict(["a text"]).shape == (1,)


@pytest.mark.parametrize(
    ("args", "said"),
    [
        (["--method", "magic"], "--method"),
        (["--set", "anchor=rope"], "anchor"),
        (["--threshold", "2"], "threshold must be a number at least -1"),
        (["--threshold", "nan"], "threshold must be a number"),
        (["--learning-rate", "fast"], "learning_rate"),
        (["--learning-rate", "-1"], "learning_rate"),
        (["--set", "objective=diagonals"], "objective"),
        (["--max-steps", "0"], "max_steps"),
        (["--dtype", "float8"], "dtype"),
        (["--set", "search.rates=1e-5,low"], "rates must be a number"),
        (["--set", "search.strategy=luck"], "strategy"),
        (["--pooling", "max"], "pooling"),
        (["--set", "warmups=0.1"], "--set has no setting 'warmups'. Did you mean 'warmup'?"),
        (["--set", "warmup"], "--set takes NAME=VALUE. Got 'warmup'"),
        (["--set", "warmup=0.1", "--set", "warmup=0.2"], "--set warmup is there twice"),
        (["--set", "max_steps=5"], "--set max_steps and --max-steps are one setting"),
        (["--set", "warmup=high"], "warmup must be a number"),
        (["--min-probability", "0.5"], "--min-probability does nothing with --method description; it is for lacon and"),
        (["--device", "abacus"], "device"),
        (["--method", "description", "--pool", "nothing.csv"], "nothing.csv"),
        (["--template", "no place for it"], "{label}"),
    ],
)
def test_fit_refuses_invalid_options(run, refused, label_file, tiny_encoder_folder, tmp_path, args, said):
    before = sorted(tmp_path.rglob("*"))
    command = ["fit", label_file, "--encoder", tiny_encoder_folder, "--out", tmp_path / "model", *SHORT]
    assert said in refused(run(*command, *args))
    assert sorted(tmp_path.rglob("*")) == before


def test_an_unusable_out_folder_is_refused_first(run, refused, label_file, saved, tmp_path):
    (tmp_path / "file").write_text("mine")
    (tmp_path / "full").mkdir()
    (tmp_path / "full" / "mine").write_text("mine")
    # The encoder does not exist, so the message shows that it was not looked up first.
    for place, said in (("file", "is a file"), ("full", "holds something else")):
        assert said in refused(run("fit", label_file, "--out", tmp_path / place, "--encoder", "no/such"))
    assert "--overwrite" in refused(run("fit", label_file, "--out", saved, "--encoder", "no/such"))
    assert run("fit", label_file, "--out", tmp_path / "file" / "model", "--encoder", "no/such").exit_code == 1


def test_overwrite_replaces_a_model(run, label_file, tiny_encoder_folder, tmp_path):
    command = ("fit", label_file, "--encoder", tiny_encoder_folder, "--out", tmp_path / "model", *SHORT)
    assert run(*command).exit_code == 0
    assert run(*command, "--overwrite", "--set", "anchor=verbalizer").exit_code == 0
    assert load(tmp_path / "model").anchor == "verbalizer"


def _interrupted_when(pattern: bytes, command: list[str], env: dict[str, str]) -> tuple[int, str, str]:
    """Run on a terminal and press Ctrl-C once `pattern` appears; return exit code, stdout and the terminal's text."""
    ours, theirs = pty.openpty()
    env = {**env, "TERM": "xterm", "COLUMNS": "160"}
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=theirs, env=env) as process:
        os.close(theirs)
        seen, sent, deadline = b"", False, time.monotonic() + 90
        while time.monotonic() < deadline:
            if not select.select([ours], [], [], 0.2)[0]:
                continue
            try:
                piece = os.read(ours, 65536)
            except OSError:  # the process closed the terminal
                break
            if not piece:
                break
            seen += piece
            if not sent and re.search(pattern, seen):
                process.send_signal(signal.SIGINT)
                sent = True
        out = process.communicate(timeout=30)[0]
    os.close(ours)
    assert sent, seen
    return process.returncode, out.decode(), seen.decode()


@pytest.mark.slow
def test_ctrl_c_during_training_saves_a_usable_model(
    command_line, one_thread, label_file, tiny_encoder_folder, tmp_path
):
    out = tmp_path / "model"
    command = command_line(
        *("fit", label_file, "--encoder", tiny_encoder_folder, "--out", out, "--learning-rate", "1e-5"),
        *("--max-steps", 10**6, "--set", f"patience={10**6}"),
    )
    code, stdout, seen = _interrupted_when(rb"\b[2-9]\d/1000000|\d{3}/1000000", command, one_thread)
    assert code == 130, seen
    assert "Traceback" not in seen
    assert "interrupted" in stdout
    assert "warning" not in seen
    assert f"labelspace fit {label_file} --encoder {out}" in " ".join(seen.split())
    model = load(out)
    assert model.fit_result_.to_dict()["curve"]["stop_reason"] == "interrupted"
    assert len(model.predict(["the team won"])) == 1


@pytest.mark.parametrize("when", ["during the search", "before the first look"])
def test_ctrl_c_before_anything_is_kept_writes_nothing(
    run, label_file, tiny_encoder_folder, tmp_path, documents, monkeypatch, when
):
    from labelspace.training.description.objective import DescriptionObjective

    real = DescriptionObjective.update

    def interrupted(objective, step):
        if step == (1 if when == "during the search" else 5):  # a trial has two steps, the first look comes at ten
            raise KeyboardInterrupt
        return real(objective, step)

    monkeypatch.setattr(DescriptionObjective, "update", interrupted)
    search = ("--method", "description", "--pool", documents, "--set", "search.steps=2")
    more = search if when == "during the search" else ("--learning-rate", "1e-5")
    before = sorted(tmp_path.rglob("*"))
    result = run("fit", label_file, "--encoder", tiny_encoder_folder, "--out", tmp_path / "model", *more)
    assert (result.exit_code, result.stdout) == (130, "")
    assert "nothing was written" in result.stderr
    assert sorted(tmp_path.rglob("*")) == before


@pytest.mark.parametrize("option", ["--max-steps", "--epochs", "--learning-rate"])
def test_zero_shot_refuses_options_of_training(run, refused, label_file, tmp_path, option):
    line = refused(run("fit", label_file, "--method", "zero-shot", "--out", tmp_path / "model", option, 3))
    assert f"{option} does nothing with --method zero-shot" in line
    assert not (tmp_path / "model").exists()


def test_a_pool_sets_the_limit_of_a_zero_shot_model_and_nothing_else(
    run, refused, label_file, tiny_encoder_folder, tmp_path
):
    pool = tmp_path / "pool.csv"
    pool.write_text("text\n" + "\n".join(tiny_rows(60)[0]) + "\n", encoding="utf-8")
    line = ("fit", label_file, "--encoder", tiny_encoder_folder, "--method", "zero-shot", "--pool", pool)
    assert "--pool with --method zero-shot tells the limit of --none" in refused(run(*line, "--out", tmp_path / "m"))
    assert run(*line, "--none", "0.75", "--out", tmp_path / "m", "--quiet").exit_code == 0
    model = load(tmp_path / "m")
    assert (model.none_.way, type(model)) == ("coverage", ZeroShotClassifier)
    assert 0 < model.none_.share < 1


@pytest.mark.parametrize("option", ["--text-column", "--delimiter", "--encoding"])
def test_options_of_reading_are_refused_where_nothing_is_read(run, refused, label_file, tmp_path, option):
    line = refused(run("fit", label_file, "--method", "zero-shot", "--out", tmp_path / "model", option, "body"))
    assert f"{option} does nothing without --pool or --labelled" in line


# ---- labelled rows


@pytest.fixture(autouse=True)
def short_search(monkeypatch):
    """Search two learning rates for descriptions, not nine; the tiny encoder has no published rate."""
    from labelspace.config import SearchConfig
    from labelspace.training.lacon import fit

    monkeypatch.setattr(fit, "SearchConfig", lambda: SearchConfig(rates=(1e-4, 1e-5), steps=2))


def fit_labelled(run, label_file, tiny_encoder_folder, documents, out, *more):
    given = ("--labelled", documents, "--set", "description_steps=2", "--dtype", "float32", "--epochs", 2)
    return run("fit", label_file, "--encoder", tiny_encoder_folder, "--out", out, *given, *more)


def test_fit_learns_from_labelled_rows(run, label_file, tiny_encoder_folder, tmp_path, documents):
    out = tmp_path / "model"
    result = fit_labelled(run, label_file, tiny_encoder_folder, documents, out, "--learning-rate", "1e-4", "--seed", 3)
    assert result.exit_code == 0, result.output
    said = dict(line.split("  ", 1) for line in result.stdout.splitlines())
    assert list(said) == ["labelled", "descriptions", "learning rates", "steps", "loss", "saved"]
    assert "(rows per label)" in said["descriptions"]
    model = load(out)
    curve = model.fit_result_.to_dict()["curve"]
    rates = f"encoder {curve['learning_rate']:.2g}, head {curve['head_learning_rate']:.2g}"
    assert said["learning rates"].strip() == rates
    given = model.get_params()
    assert type(model).__name__ == "LaConClassifier"
    assert (given["epochs"], given["description_steps"], given["learning_rate"], given["seed"]) == (2, 2, 1e-4, 3)
    assert not given["verbose"]
    predicted = run("predict", out, documents, tmp_path / "predicted.csv")
    assert predicted.exit_code == 0, predicted.output


def test_the_json_of_a_fit_on_labelled_rows_has_the_prior(run, label_file, tiny_encoder_folder, tmp_path, documents):
    result = fit_labelled(run, label_file, tiny_encoder_folder, documents, tmp_path / "m", "--json", "--quiet")
    told = json.loads(result.stdout)
    assert told["method"] == "lacon"
    assert told["fit"]["labelled"] == 6
    assert told["fit"]["prior"]["reason"] == "rows per label"


def test_a_pool_beside_labelled_rows_sets_the_limit_for_none_of_these(
    run, label_file, tiny_encoder_folder, tmp_path, documents
):
    pool = tmp_path / "pool.csv"
    pool.write_text("text\n" + "\n".join(f"{text} {row}" for row, text in enumerate(tiny_rows(60)[0])) + "\n")
    none = ("--pool", pool, "--none", "auto")
    result = fit_labelled(run, label_file, tiny_encoder_folder, documents, tmp_path / "m", *none, "--json", "--quiet")
    assert result.exit_code == 0, result.output
    told = json.loads(result.stdout)
    assert (told["none"]["way"], told["none"]["documents"], told["fit"]["unlabelled"]) == ("left-out", 60, 0)
    assert 0 < told["none"]["share"] < 1
    again = fit_labelled(run, label_file, tmp_path / "m", documents, tmp_path / "m2")
    assert (
        f"note: {tmp_path / 'm'} lends its encoder alone: its limit for 'none of these' is not taken over."
        in again.stderr
    )
    # The same rows train the same model: the pool has no part in it.
    fit_labelled(run, label_file, tiny_encoder_folder, documents, tmp_path / "without")
    texts = tiny_rows(60)[0]
    np.testing.assert_array_equal(
        load(tmp_path / "m").answers(texts).scores, load(tmp_path / "without").answers(texts).scores
    )


@pytest.mark.parametrize(
    ("more", "said"),
    [
        (("--pool", "documents.csv"), "--pool with --method lacon tells the limit of --none and does nothing else"),
        (("--none", "auto"), "--none needs --pool FILE"),
        (("--pool", "d.csv", "--none", "auto", "--pair-column", "b"), "--none needs documents of one text each"),
        (("--set", "check_every=9"), "--set has no setting 'check_every'"),
        (("--set", "heads=0"), "heads must be a whole number at least 1"),
        (("--method", "zero-shot"), "--method must be lacon or uncertainty with --labelled. Got 'zero-shot'"),
        (("--learning-rate", "base"), "learning_rate must be a number or 'auto'"),
        (("--min-probability", 0.5), "min_probability needs rows of two labels and training by cross-entropy"),
        (("--epochs", 0), "epochs must be"),
        (("--set", "validation=0.95"), "validation must be a number at least 0 and at most 0.9"),
        (("--set", "extractor=mean"), "--set has no setting 'extractor'"),
        (("--label-column", "nothing"), "nothing"),
    ],
    ids=lambda value: value[0] if isinstance(value, tuple) else "",
)
def test_options_without_effect_on_labelled_rows_are_refused(
    more, said, run, label_file, tiny_encoder_folder, tmp_path, documents
):
    result = fit_labelled(run, label_file, tiny_encoder_folder, documents, tmp_path / "model", *more)
    assert result.exit_code == 2
    assert said in result.stderr
    assert not (tmp_path / "model").exists()


@pytest.mark.parametrize(("share", "kept"), [(0, "last"), (0.2, "best")])
def test_ctrl_c_keeps_the_last_epoch_or_the_best_if_rows_are_held_out(
    run, sorted_labels, sorted_rows, tiny_encoder_folder, tmp_path, monkeypatch, share, kept
):
    from labelspace.training.lacon import objective

    real, out = objective.batch_gradient, tmp_path / "model"

    def interrupted(*given, step, **more):
        if step == 8:  # in the third epoch, which has four updates, or three if rows are held out
            raise KeyboardInterrupt
        return real(*given, step=step, **more)

    monkeypatch.setattr(objective, "batch_gradient", interrupted)
    given = (
        "--labelled",
        sorted_rows,
        "--set",
        f"validation={share}",
        "--set",
        "batch_size=24",
        "--epochs",
        3,
        "--quiet",
    )
    encoder = ("--encoder", tiny_encoder_folder, "--dtype", "float32", "--learning-rate", "1e-3")
    result = run("fit", sorted_labels, "--out", out, *given, *encoder)
    assert result.exit_code == 130, result.output
    assert f"{out} holds the {kept} whole epoch, and can be used as it is" in result.stderr
    curve = load(out).fit_result_.to_dict()["curve"]
    scores = {look["step"]: look["macro_f1_predicted"] for look in curve["looks"]}
    assert list(scores) == ([0, 3, 6] if share else [])
    assert scores[curve["best_step"]] == max(scores.values()) if share else curve["best_step"] == 8


def test_an_unknown_label_is_named_by_file_and_row_before_the_encoder_opens(run, label_file, tmp_path):
    rows = tmp_path / "rows.csv"
    rows.write_text("text,label\nthe team won,sports\nthe vote,politik\n", encoding="utf-8")
    result = run("fit", label_file, "--encoder", tmp_path / "nowhere", "--out", tmp_path / "m", "--labelled", rows)
    assert result.exit_code == 2
    assert f"{rows}: row 2: column 'label' is 'politik', which is no label" in result.stderr


def test_options_for_labelled_rows_and_files_without_labels_are_refused(run, label_file, tiny_encoder_folder, tmp_path):
    out = tmp_path / "model"
    for option in ("--epochs", "--pair-column"):
        result = run("fit", label_file, "--out", out, option, 3)
        assert (result.exit_code, f"{option} does nothing with --method description" in result.stderr) == (2, True)
    bare = tmp_path / "bare.csv"
    bare.write_text("text,label\none text,\nanother,\n", encoding="utf-8")
    result = fit_labelled(run, label_file, tiny_encoder_folder, bare, out)
    assert (result.exit_code, "no row has a label in column 'label'" in result.stderr) == (2, True)
    assert not out.exists()


# ---- checkpoints


def fit_long(label_file, encoder, out, *more):
    """Return a fit with many looks and dropout."""
    quick = ("--learning-rate", "1e-4", "--dtype", "float32", "--set", "encoder_dropout=true", "--max-steps", 400)
    quick = (*quick, "--set", f"patience={10**6}")
    return ("fit", label_file, "--encoder", encoder, "--out", out, *quick, *more)


@pytest.mark.parametrize(
    ("more", "said"),
    [
        (("--resume",), "--resume needs --checkpoint, the folder of the training to go on with"),
        (("--resume", "--checkpoint", "{empty}"), "empty holds no unfinished training to go on with; leave --resume"),
        (("--checkpoint", "{begun}"), "begun holds an unfinished training; go on with --resume, or give another name"),
        (("--checkpoint", "{out}"), "lies in --out, where the model will be; give it another name"),
        (("--checkpoint", "{out}/inside"), "lies in --out, where the model will be; give it another name"),
        (("--checkpoint", "{empty}", "--method", "zero-shot"), "--checkpoint does nothing with --method zero-shot"),
    ],
)
def test_an_unusable_checkpoint_is_refused_before_any_work(
    more, said, run, refused, label_file, tiny_encoder_folder, tmp_path
):
    (tmp_path / "empty").mkdir()
    (tmp_path / "begun" / "rows").mkdir(parents=True)
    (tmp_path / "begun" / "rows" / "state.json").write_text("{}", encoding="utf-8")
    places = {name: tmp_path / name for name in ("empty", "begun", "out")}
    words = [word.format(**places) for word in more]
    line = ("fit", label_file, "--encoder", tiny_encoder_folder, "--out", tmp_path / "out", *words)
    assert said in refused(run(*line))


@pytest.mark.slow
def test_a_killed_and_an_interrupted_fit_resume_to_the_same_model(
    run, stopped, label_file, tiny_encoder_folder, tmp_path
):
    line = fit_long(label_file, tiny_encoder_folder, tmp_path / "model", "--checkpoint", tmp_path / "run")
    state = tmp_path / "run" / "descriptions" / "state.json"
    stopped(line, state, "SIGKILL")
    assert not (tmp_path / "model").exists()
    said = stopped((*line, "--resume"), state, "SIGINT")
    assert f"to go on from {tmp_path / 'run'}: labelspace fit" in said
    assert said.rstrip().endswith("--resume")
    for words in ((*line, "--resume"), fit_long(label_file, tiny_encoder_folder, tmp_path / "straight")):
        result = run(*words)
        assert result.exit_code == 0, result.output
    one, two = load(tmp_path / "model"), load(tmp_path / "straight")
    texts = ["the team won the match", "the bank lost money"]
    assert (one.decision_function(texts) == two.decision_function(texts)).all()
    losses = [each.fit_result_.to_dict()["curve"]["losses"] for each in (one, two)]
    assert losses[0] == losses[1]
    assert not (tmp_path / "run").exists()
