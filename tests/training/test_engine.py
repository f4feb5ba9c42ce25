"""The training loop on a toy: looks, stopping, cheap checkpoints, and bit-identical resumption."""

import json
from pathlib import Path
from typing import Any

import pytest
import torch

from labelspace.errors import ConfigError, ModelFolderError, TrainingError
from labelspace.training.checkpoint import Place
from labelspace.training.engine import Training, train
from stops import Stop, stop_at
from training.toy_objective import Toy, ToyLook

RUN = {"config": {"total": 12}, "seed": 0}


def told_of(training: Training) -> tuple[object, ...]:
    return (training.losses, training.looks, training.best_step, training.stop_reason)


def written(folder: Path) -> dict[str, Any]:
    return json.loads((folder / "state.json").read_text(encoding="utf-8"))


def test_a_run_trains_where_gradients_are_turned_off_and_leaves_them_so():
    usual, toy = Toy(), Toy()
    train(usual)
    with torch.no_grad():
        train(toy)
        assert not torch.is_grad_enabled()
    assert torch.equal(toy.weight, usual.weight)


def test_inference_mode_is_refused_around_training_and_around_the_loading_before_it():
    with torch.inference_mode():
        inside = Toy()
        with pytest.raises(ConfigError, match=r"inference_mode\(\) keeps no gradients"):
            train(Toy())
    with pytest.raises(ConfigError, match=r"inference_mode\(\) keeps no gradients"):
        train(inside)


@pytest.mark.parametrize("judges_loss", [False, True])
@pytest.mark.parametrize("number", [1, 2, 3, 6, 12])
def test_a_run_stopped_anywhere_resumes_bit_identically(number: int, judges_loss: bool, tmp_path: Path):
    whole, straight = Toy(judges_loss=judges_loss), None
    straight = train(whole)
    with pytest.raises(Stop):
        train(Toy(judges_loss=judges_loss), checkpoint=Place(tmp_path / "here", RUN), callbacks=[stop_at(number)])
    again = Toy(judges_loss=judges_loss)
    begun = (tmp_path / "here").is_dir()
    resumed = train(again, checkpoint=Place(tmp_path / "here", RUN, resume=begun))
    assert told_of(resumed) == told_of(straight)
    assert torch.equal(again.weight, whole.weight)
    assert again.updates[0] == (number - 1) // 2 * 2, "what was written is not done again"


def test_a_run_can_be_resumed_twice(tmp_path: Path):
    whole, place = Toy(), Place(tmp_path / "here", RUN)
    straight = train(whole)
    with pytest.raises(Stop):
        train(Toy(), checkpoint=place, callbacks=[stop_at(5)])
    with pytest.raises(Stop):
        train(Toy(), checkpoint=Place(place.folder, RUN, resume=True), callbacks=[stop_at(9)])
    again = Toy()
    assert told_of(train(again, checkpoint=Place(place.folder, RUN, resume=True))) == told_of(straight)
    assert torch.equal(again.weight, whole.weight)


@pytest.mark.parametrize(("total", "every", "most"), [(400, 1, 21), (400, 7, 20), (30, 10, 3), (5, 1, 5)])
def test_a_run_writes_about_twenty_checkpoints_for_any_number_of_looks(
    total: int, every: int, most: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    steps: list[int] = []
    monkeypatch.setattr(Place, "write", lambda self, state, *, total_steps: steps.append(state.step))
    looks = train(Toy(total, every), checkpoint=Place(tmp_path / "here", RUN)).looks
    assert len(looks) == -(-total // every)
    assert most - 4 < len(steps) <= most
    assert (steps[0], steps[-1]) == (every, total), "the first look, and the last"


def test_the_best_look_is_kept_and_patience_stops_the_run():
    toy = Toy(values=[5, 1, 2, 1, 3, 0], patience=3)
    seen: list[float] = []
    training = train(toy, callbacks=[lambda step, values: seen.append(toy.weight.item()) if "loss" in values else None])
    assert (training.stop_reason, training.best_step, training.steps, training.total_steps) == ("patience", 4, 10, 12)
    assert toy.weight.item() == seen[3]
    assert training.finished


def test_a_look_that_judges_the_loss_keeps_the_weights_of_that_loss():
    toy = Toy(every=3, judges_loss=True, values=[3, 2, 9, 9, 9])
    seen = [0.0]
    training = train(toy, callbacks=[lambda step, values: seen.append(toy.weight.item()) if "loss" in values else None])
    assert [look.step for look in training.looks] == [2, 5, 8, 11, 12]
    assert training.best_step == 5
    assert toy.weight.item() == seen[5]


def test_an_update_that_the_loss_judges_too_late_is_not_counted():
    training = train(Toy(every=3, judges_loss=True, values=[3, 2, 9, 9, 9], patience=2))
    assert [look.step for look in training.looks] == [2, 5, 8, 11]
    assert (training.stop_reason, training.steps, len(training.losses)) == ("patience", 11, 12)
    assert training.to_dict()["steps"] == 11


def test_a_run_out_of_patience_does_not_resume(tmp_path: Path):
    options = {"values": [1, 2, 3, 0, 0, 0], "patience": 2}
    place = Place(tmp_path / "here", RUN)
    ended = train(Toy(**options), checkpoint=place)
    again = Toy(**options)
    assert told_of(train(again, checkpoint=Place(place.folder, RUN, resume=True))) == told_of(ended)
    assert again.updates == []


def test_a_finished_run_is_returned_unchanged(tmp_path: Path):
    whole, again = Toy(), Toy()
    straight = train(whole, checkpoint=Place(tmp_path / "here", RUN))
    assert told_of(train(again, checkpoint=Place(tmp_path / "here", RUN, resume=True))) == told_of(straight)
    assert torch.equal(again.weight, whole.weight)
    assert again.updates == []


def test_the_time_limit_stops_at_a_look_with_a_checkpoint(tmp_path: Path):
    place = Place(tmp_path / "here", RUN)
    training = train(Toy(400, 1), checkpoint=place, max_seconds=1e-9)
    assert (training.stop_reason, training.steps, training.finished) == ("max_seconds", 1, False)
    assert written(place.folder)["step"] == 1
    again = train(Toy(400, 1), checkpoint=Place(place.folder, RUN, resume=True), max_seconds=1e-9)
    assert (again.stop_reason, again.steps) == ("max_seconds", 2), "however short the time, it goes on"


def test_ctrl_c_is_not_an_error_and_keeps_the_best_look():
    toy = Toy()
    training = train(toy, callbacks=[stop_at(7, KeyboardInterrupt)])
    assert (training.stop_reason, training.steps, training.best_step) == ("interrupted", 7, 6)
    assert not training.finished
    assert toy.weight.grad is None


def test_ctrl_c_during_callbacks_of_the_last_look_loses_nothing():
    def callback(step: int, values: dict[str, float]) -> None:
        if step == 12 and "distance" in values:
            raise KeyboardInterrupt

    assert train(Toy(), callbacks=[callback]).stop_reason == "epochs"


def test_callbacks_and_progress_receive_each_update_and_look():
    heard: list[tuple[int, dict[str, float]]] = []
    notes: list[str] = []
    training = train(
        Toy(total=4),
        callbacks=[lambda step, values: heard.append((step, values))],
        report=lambda done, total=None, note="": notes.append(f"{done:g} of {total:g}: {note}"),
    )
    updates = [values for _, values in heard if "loss" in values]
    assert [step for step, _ in heard] == [1, 2, 2, 3, 4, 4]
    assert [values["loss"] for values in updates] == list(training.losses)
    assert [values["learning_rate"] for values in updates] == pytest.approx([0.1, 0.075, 0.05, 0.025])
    assert [values["step"] for values in updates] == [0, 1, 2, 3]
    assert heard[2][1] == {"distance": training.looks[0].value}
    assert notes[0] == f"1 of 4: loss {training.losses[0]:.4f}"
    assert notes[2].endswith(f"distance {training.looks[0].value:.4f}, best 2")


@pytest.mark.parametrize("value", [torch.nan, torch.inf, -torch.inf])
def test_weights_that_are_not_finite_are_never_kept(monkeypatch: pytest.MonkeyPatch, value: float):
    toy = Toy(every=1)
    monkeypatch.setattr(torch.optim.AdamW, "step", lambda self: toy.weight.data.fill_(value))
    with pytest.raises(TrainingError, match="a weight is no longer finite at step 1 with learning_rate=") as error:
        train(toy)
    assert "\n" not in str(error.value)
    assert toy.weight.item() == 0


def test_the_refusal_of_another_run_names_the_difference(tmp_path: Path):
    folder = tmp_path / "here"
    train(Toy(), checkpoint=Place(folder, RUN))
    for run, said in (
        ({**RUN, "seed": 1}, r"had seed 0\. Got 1 instead; resume with the same data and options, or start in another"),
        ({**RUN, "config": {"total": 13}}, r"had total 12\. Got 13 instead"),
        ({**RUN, "rows": "a" * 64}, "had other rows; resume with the same"),
    ):
        with pytest.raises(ConfigError, match=said):
            train(Toy(), checkpoint=Place(folder, run, resume=True))


def test_a_tuple_stored_as_a_json_list_is_the_same(tmp_path: Path):
    run = {"config": {"rates": (1, 2)}}
    train(Toy(), checkpoint=Place(tmp_path / "here", run))
    Place(tmp_path / "here", run).check()


def test_a_look_with_other_fields_is_refused(tmp_path: Path):
    place = Place(tmp_path / "here", RUN)
    train(Toy(), checkpoint=place)
    state = written(place.folder)
    state["looks"][0]["other"] = 1
    (place.folder / "state.json").write_text(json.dumps(state), encoding="utf-8")
    with pytest.raises(ModelFolderError, match="the checkpoint is damaged"):
        train(Toy(), checkpoint=Place(place.folder, RUN, resume=True))


def test_a_training_can_be_written_as_json():
    values = json.loads(json.dumps(train(Toy()).to_dict()))
    assert values["looks"][0].keys() == ToyLook.__dataclass_fields__.keys()
    assert {"losses", "learning_rate", "best_step", "stop_reason", "seconds", "total_steps"} <= values.keys()
