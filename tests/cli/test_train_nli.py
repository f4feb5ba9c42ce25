"""The command train-nli: its options, what it refuses and prints, Ctrl-C, kill and resume."""

import json
import re
import shutil
from dataclasses import replace
from pathlib import Path

import pytest
import torch

from labelspace.config import NLIConfig
from labelspace.training.nli import NLIModel
from training.nli.toy import toy_pairs, write_pairs

SHORT = ("--epochs", 1, "--batch-size", 8, "--set", "evaluate_every=0.25", "--dtype", "float32", "--device", "cpu")


@pytest.fixture(scope="session")
def made_data(tmp_path_factory) -> Path:
    folder = tmp_path_factory.mktemp("data")
    write_pairs(folder / "train.parquet", toy_pairs(48, sources=("one", "two")))
    write_pairs(folder / "dev.parquet", toy_pairs(24, seed=1, sources=("three", "four")))
    return folder


@pytest.fixture
def data(made_data, tmp_path) -> Path:
    """Training and dev files that a test may change."""
    return Path(shutil.copytree(made_data, tmp_path / "data"))


@pytest.fixture
def command(data, tiny_encoder_folder, tmp_path) -> tuple[object, ...]:
    return ("train-nli", "--out", tmp_path / "nli", "--data", data, "--encoder", tiny_encoder_folder, *SHORT)


def bits(folder: Path) -> dict[str, torch.Tensor]:
    return NLIModel.load(folder, dtype="float32", device="cpu").state_dict()


def test_defaults_are_those_of_the_configuration(commands):
    command = commands.commands["train-nli"]
    given = {parameter.name: parameter.default for parameter in command.params}
    shared = {name: value for name, value in vars(NLIConfig()).items() if name in given}
    assert {name: given[name] for name in shared} == shared


def test_a_model_is_trained_saved_and_summarised(run, command, tmp_path):
    result = run(*command)
    assert result.exit_code == 0, result.output
    said = dict(re.split(r"\s{2,}", line, maxsplit=1) for line in result.stdout.splitlines())
    assert list(said) == ["steps", "rates", "time", "four", "three", "dev", "saved"]
    assert said["steps"].startswith("6 of 6; all updates made; weights of step")
    assert re.fullmatch(r"loss \d\.\d{4}, accuracy \d\.\d{3}, AUROC \d\.\d{3} \(12 pairs\)", said["three"])
    assert "note: dev: 24 pairs, 4 of each class from four, three" in result.stderr
    assert "note: dev: three has 4 pairs of class entailment and no more, so every class has 4" in result.stderr
    model = NLIModel.load(tmp_path / "nli")
    assert model.header["data"]["train"] == {"one": 24, "two": 24}
    assert len(model.header["training"]["run"]["looks"]) >= 3
    assert model.header["provenance"]["seeds"] == [0]
    assert "| one | 24 |" in (tmp_path / "nli" / "README.md").read_text()
    assert not (tmp_path / "nli" / "checkpoint").exists()


def test_options_reach_the_training(run, command, tmp_path):
    result = run(
        *(
            *command,
            "--variant",
            "triplet",
            "--max-pairs",
            20,
            "--seed",
            5,
            "--set",
            "max_tokens=32",
            "--json",
            "--quiet",
        ),
        *(
            "--learning-rate",
            1e-3,
            "--set",
            "head_learning_rate=2e-3",
            "--set",
            "leave_out=two, three",
            "--max-steps",
            2,
        ),
    )
    assert result.exit_code == 0, result.output
    assert result.stderr == ""
    told = json.loads(result.stdout)
    assert told["run"]["total_steps"] == 2
    assert list(told["dev"]["sources"]) == ["four"]
    model = NLIModel.load(tmp_path / "nli")
    config = NLIConfig.from_dict(model.header["training"]["config"])
    expected = {"variant": "triplet", "max_pairs": 20, "seed": 5, "max_tokens": 32, "max_steps": 2}
    rates = {"learning_rate": 1e-3, "head_learning_rate": 2e-3, "leave_out": ("two", "three")}
    assert config == replace(config, **expected, **rates)
    assert model.header["data"]["train"] == {"one": 20}
    assert (model.variant, model.max_tokens) == ("triplet", 32)


@pytest.mark.parametrize(
    ("args", "said"),
    [
        (["--variant", "quartet"], "variant must be one of"),
        (["--epochs", "0"], "epochs"),
        (["--batch-size", "0"], "batch_size"),
        (["--learning-rate", "-1"], "learning_rate"),
        (["--dtype", "float8"], "dtype"),
        (["--set", "max_tokens=4"], "max_tokens"),
        (["--set", "max_tokens=4096"], "can read (128)"),
        (["--set", "leave_out=onee"], "Did you mean 'one'"),
        (["--set", "leave_out=one,two"], "leave out fewer"),
        (["--set", "leave_out=three,four"], "leave out fewer"),
        (["--encoder", "no/such-encoder"], "no encoder 'no/such-encoder'"),
        (["--device", "abacus"], "device"),
        (["--data", "nowhere"], "--data must name a folder"),
        (["--resume"], "holds no unfinished training"),
    ],
)
def test_it_refuses_before_any_work(run, command, tmp_path, args, said):
    before = sorted(tmp_path.rglob("*"))
    result = run(*command, *args)
    errors = [line for line in result.stderr.splitlines() if not line.startswith("note: ")]
    assert result.exit_code == 2, result.output
    assert len(errors) == 1
    assert said in errors[0]
    assert sorted(tmp_path.rglob("*")) == before


def test_a_file_that_is_not_parquet_is_refused(run, refused, command, data):
    (data / "dev.parquet").write_text("nothing")
    assert "cannot be read as Parquet" in refused(run(*command))


def test_an_out_folder_that_holds_something_else_is_refused(run, refused, command, tmp_path):
    (tmp_path / "nli").write_text("mine")
    assert "is a file" in refused(run(*command))
    (tmp_path / "nli").unlink()
    (tmp_path / "nli").mkdir()
    (tmp_path / "nli" / "mine").write_text("mine")
    assert "is not empty" in refused(run(*command))


@pytest.mark.slow
def test_a_run_stopped_by_time_resumes_to_the_same_bits(run, refused, command, tmp_path):
    straight = run(*command[:2], tmp_path / "straight", *command[3:])
    assert straight.exit_code == 0, straight.output
    stopped = run(*command, "--max-seconds", 1e-6)
    assert stopped.exit_code == 0, stopped.output
    assert "--max-seconds reached" in stopped.stderr
    assert "to go on from it: labelspace " in stopped.stderr
    assert NLIModel.load(tmp_path / "nli").header["training"]["run"]["stop_reason"] == "max_seconds"
    assert "go on with --resume" in refused(run(*command))
    other = run(*command, "--resume", "--seed", 1)
    assert other.exit_code == 2
    assert "had " in other.stderr
    resumed = run(*command, "--resume")
    assert resumed.exit_code == 0, resumed.output
    one, two = bits(tmp_path / "nli"), bits(tmp_path / "straight")
    assert all(torch.equal(one[name], two[name]) for name in two)
    assert not (tmp_path / "nli" / "checkpoint").exists()
    assert "holds no unfinished training" in refused(run(*command, "--resume"))


@pytest.mark.slow
def test_a_killed_and_an_interrupted_training_resume_to_the_same_bits(run, stopped, command, tmp_path):
    often = ("evaluate_every=0.02" if word == "evaluate_every=0.25" else word for word in command)
    longer = (*often, "--epochs", 10, "--set", "patience=1000")
    state = tmp_path / "nli" / "checkpoint" / "state.json"
    stopped(longer, state, "SIGKILL")
    said = stopped((*longer, "--resume"), state, "SIGINT")
    assert "holds the best state so far" in said
    assert NLIModel.load(tmp_path / "nli").header["training"]["run"]["stop_reason"] == "interrupted"
    for words in ((*longer, "--resume"), ("train-nli", "--out", tmp_path / "straight", *longer[3:])):
        result = run(*words)
        assert result.exit_code == 0, result.output
    one, two = bits(tmp_path / "nli"), bits(tmp_path / "straight")
    assert all(torch.equal(one[name], two[name]) for name in two)
