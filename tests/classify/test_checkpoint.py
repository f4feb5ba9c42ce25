"""A killed fit resumes where it stopped, with the same bits; the checkpoint of another fit is refused in one line."""

import os
import signal
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
import torch
from sklearn.base import clone

from classify import resumed
from classify.resumed import KILLED, KINDS, facts_of, fit
from labelspace import load
from labelspace.errors import ConfigError, LabelSpaceWarning, ModelFolderError, OutputError
from labelspace.header import UNFINISHED, kind_of
from labelspace.training import description
from stops import Stop, stop_at

# LaCon counts on from its 12 steps on descriptions; an epoch of its rows has 6 steps.
STOPS = {"description": (14, 2, 24), "lacon": (5, 21, 11, 14, 30), "uncertainty": (8, 2, 15)}
AT = [
    pytest.param(kind, step, marks=[pytest.mark.slow] * (place > (kind == "lacon")))
    for kind, steps in STOPS.items()
    for place, step in enumerate(steps)
]


@pytest.fixture(scope="module")
def straight() -> Any:
    """Return the facts of a fit that was never stopped, made once per kind."""
    made: dict[str, dict[str, Any]] = {}

    def of(kind: str) -> dict[str, Any]:
        return made.setdefault(kind, facts_of(fit(kind, None)) if kind not in made else {})

    return of


@pytest.mark.slow
@pytest.mark.parametrize(("kind", "number"), AT)
def test_a_fit_stopped_anywhere_resumes_to_the_same_bits(kind: str, number: int, straight: Any, tmp_path: Path):
    place, told = tmp_path / "run", list[int]()
    with pytest.raises(Stop):
        fit(kind, place, (stop_at(number),))
    again = fit(kind, place, (lambda step, values: told.append(step) if "loss" in values else None,))
    assert facts_of(again) == straight(kind)
    assert not place.exists(), "a finished fit removes its checkpoint"
    assert number - 11 < told[0] <= number, "the steps before the checkpoint are not repeated"


@pytest.mark.parametrize("kind", ["description", "lacon"])
def test_a_fit_in_a_folder_of_other_things_removes_none_of_them(kind: str, tmp_path: Path):
    part = {"description": "descriptions", "lacon": "rows"}[kind]
    own = ["a.txt", "view-1/a.txt", "student/a.txt", "rows-2024.json", "descriptions-en.json"]
    own += [f"{other}/a.txt" for other in ("descriptions", "rows") if kind == "description" and other != part]
    for name in own:
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).write_text("mine")
    fit(kind, tmp_path, **{"description": {"max_steps": 4}, "lacon": {"epochs": 1}}[kind])
    assert sorted(path.relative_to(tmp_path).as_posix() for path in tmp_path.rglob("*") if path.is_file()) == sorted(
        own
    )
    (tmp_path / part).mkdir()
    (tmp_path / part / "a.txt").write_text("mine")
    with pytest.raises(OutputError, match=f"{part} holds something else than a checkpoint; give another place"):
        fit(kind, tmp_path)
    assert (tmp_path / part / "a.txt").read_text() == "mine"


@pytest.mark.slow
@pytest.mark.parametrize("kind", KINDS)
def test_checkpoints_change_no_bit_and_the_next_fit_starts_over(kind: str, straight: Any, tmp_path: Path):
    for _ in range(2):
        told: list[int] = []
        assert facts_of(fit(kind, tmp_path / "run", (lambda step, _, told=told: told.append(step),))) == straight(kind)
        assert min(told) <= 1


@pytest.mark.slow
@pytest.mark.parametrize(("kind", "number"), [("lacon", 21), ("uncertainty", 8)])  # description: the tests of `fit`
def test_after_a_real_kill_a_fit_resumes_to_the_same_bits(kind: str, number: int, straight: Any, tmp_path: Path):
    place = tmp_path / "run"
    command = [sys.executable, "-c", KILLED, str(Path(__file__).parents[1]), kind, str(place), str(number)]
    env = {**os.environ, "OMP_NUM_THREADS": str(torch.get_num_threads()), "HF_HUB_OFFLINE": "1"}
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True, env=env) as process:
        assert process.stdout is not None
        assert process.stdout.readline().strip() == "now"
        process.send_signal(signal.SIGKILL)
    assert process.returncode == -signal.SIGKILL
    assert kind_of(place) == UNFINISHED
    told: list[int] = []
    assert facts_of(fit(kind, place, (lambda step, _: told.append(step),))) == straight(kind)
    assert told[0] > 1


@pytest.mark.parametrize(
    ("kind", "options", "said"),
    [
        ("description", {"max_steps": 25}, r"had max_steps 24\. Got 25 instead; resume with the same data and options"),
        ("lacon", {"batch_size": 4}, r"had batch_size 8\. Got 4 instead"),
        ("uncertainty", {"extractor": "mean"}, r"had extractor 'textcnn'\. Got 'mean' instead"),
    ],
)
def test_the_checkpoint_of_another_fit_is_refused(kind: str, options: dict[str, Any], said: str, tmp_path: Path):
    with pytest.raises(Stop):
        fit(kind, tmp_path / "run", (stop_at(20 if kind == "lacon" else 8),))
    held = sorted(path for path in tmp_path.rglob("*") if path.is_file())
    with pytest.raises(ConfigError, match=said) as error:
        fit(kind, tmp_path / "run", **options)
    assert str(tmp_path / "run") in str(error.value)
    assert "\n" not in str(error.value)
    assert sorted(path for path in tmp_path.rglob("*") if path.is_file()) == held


@pytest.mark.parametrize("kind", KINDS)
def test_the_checkpoint_of_other_rows_or_another_encoder_is_refused(
    kind: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    with pytest.raises(Stop):
        fit(kind, tmp_path / "run", (stop_at(20 if kind == "lacon" else 8),))
    monkeypatch.setattr(resumed, "TINY", {**resumed.TINY, "dtype": "bfloat16"})
    with pytest.raises(ConfigError, match="had other encoder; resume with the same, or start in another folder"):
        fit(kind, tmp_path / "run")
    monkeypatch.undo()
    monkeypatch.setattr(resumed, "TEXTS", [f"{text} again" for text in resumed.TEXTS])
    with pytest.raises(ConfigError, match=r"had other (documents|rows); resume with the same"):
        fit(kind, tmp_path / "run")


def test_a_learning_rate_chosen_before_the_stop_is_not_searched_again(
    straight: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    whole = straight("description")
    with pytest.raises(Stop):
        fit("description", tmp_path / "run", (stop_at(2),))
    assert kind_of(tmp_path / "run") is None, "there are no weights before the first look"
    monkeypatch.setattr(
        description.fit, "choose_learning_rate", lambda *_, **__: pytest.fail("the rate was searched again")
    )
    assert facts_of(fit("description", tmp_path / "run")) == whole


@pytest.mark.parametrize(("kind", "number"), [("description", 14), ("lacon", 25), ("uncertainty", 8)])
def test_after_ctrl_c_the_model_can_be_used_and_the_fit_resumed(kind: str, number: int, straight: Any, tmp_path: Path):
    with pytest.warns(
        LabelSpaceWarning, match=r"training was interrupted at step .* The same fit again goes on from .*run\.$"
    ):
        clf = fit(kind, tmp_path / "run", (stop_at(number, KeyboardInterrupt),))
    assert clf.fit_result_.curve.stop_reason == "interrupted"
    assert clf.predict_proba(resumed.TEXTS).shape == (60, 3)
    assert facts_of(fit(kind, tmp_path / "run")) == straight(kind)


def test_other_files_in_the_checkpoint_folder_stay(tmp_path: Path):
    (tmp_path / "notes.txt").write_text("mine", encoding="utf-8")
    with pytest.raises(Stop):
        fit("uncertainty", tmp_path, (stop_at(8),))
    fit("uncertainty", tmp_path)
    assert [path.name for path in tmp_path.iterdir()] == ["notes.txt"]


def test_a_checkpoint_must_be_a_folder_or_none(tmp_path: Path):
    (tmp_path / "file").write_text("", encoding="utf-8")
    for given, error, said in (
        (tmp_path / "file", OutputError, r"file is a file; checkpoints are kept in a folder"),
        ("", ConfigError, r"checkpoint must be a folder or None\. Got '' instead"),
        (3, ConfigError, r"checkpoint must be a folder or None\. Got 3 instead"),
    ):
        for kind in KINDS:
            with pytest.raises(error, match=said):
                fit(kind, given)  # type: ignore[arg-type]


def test_a_damaged_checkpoint_is_refused(tmp_path: Path):
    with pytest.raises(Stop):
        fit("uncertainty", tmp_path / "run", (stop_at(8),))
    (tmp_path / "run" / "rows" / "weights.safetensors").write_bytes(b"cut off")
    with pytest.raises(ModelFolderError, match="cut off"):
        fit("uncertainty", tmp_path / "run")


def test_loading_an_unfinished_training_says_that_it_is_no_classifier(tmp_path: Path):
    with pytest.raises(Stop):
        fit("uncertainty", tmp_path / "run", (stop_at(8),))
    with pytest.raises(ModelFolderError, match="holds an unfinished training, not a classifier"):
        load(tmp_path / "run")


def test_the_checkpoint_parameter_is_cloned_but_not_saved(tmp_path: Path):
    clf = fit("description", tmp_path / "run", max_steps=2)
    assert clone(clf).checkpoint == tmp_path / "run"
    assert load(clf.save(tmp_path / "model")).checkpoint is None


def test_a_checkpoint_holds_safetensors_and_json_only(tmp_path: Path):
    with pytest.raises(Stop):
        fit("description", tmp_path / "run", (stop_at(14),))
    assert {path.suffix for path in (tmp_path / "run").rglob("*") if path.is_file()} == {".safetensors", ".json"}
