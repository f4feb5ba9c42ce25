"""TensorBoard gets event files; the error for a missing tracker names the install command."""

import struct
import sys
from pathlib import Path

import pytest

from labelspace.encoders import Encoder
from labelspace.errors import MissingDependencyError
from labelspace.labels import LabelSpace
from labelspace.training import MLflowLogger, TensorBoardLogger, WandbLogger
from training.test_loop import train


def scalars(folder: Path) -> dict[str, list[tuple[int, float]]]:
    """Read the event files with TensorBoard's own reader."""
    from tensorboard.backend.event_processing.event_accumulator import EventAccumulator

    reader = EventAccumulator(str(folder))
    reader.Reload()
    return {tag: [(event.step, event.value) for event in reader.Scalars(tag)] for tag in reader.Tags()["scalars"]}


@pytest.mark.filterwarnings("ignore::DeprecationWarning")
def test_tensorboard_files_hold_loss_and_rate_of_every_step(encoder: Encoder, space: LabelSpace, tmp_path: Path):
    rates: list[float] = []
    with TensorBoardLogger(tmp_path / "log") as logger:
        record = lambda _, values: rates.append(values["learning_rate"])  # noqa: E731
        curve = train(encoder, space, callbacks=(logger, record), max_steps=4)
    written = scalars(tmp_path / "log")
    assert written.keys() == {"loss", "learning_rate"}
    assert len(set(rates)) > 1
    for name, values in {"loss": curve.losses, "learning_rate": rates}.items():
        as_float32 = [struct.unpack("f", struct.pack("f", value))[0] for value in values]
        assert written[name] == list(zip([1, 2, 3, 4], as_float32, strict=True))


@pytest.mark.parametrize(
    ("module", "start"),
    [("wandb", WandbLogger), ("mlflow", MLflowLogger), ("tensorboard", lambda: TensorBoardLogger("never-written"))],
)
def test_a_missing_tracker_names_the_install_command(module: str, start: object, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setitem(sys.modules, module, None)  # importing it now raises ModuleNotFoundError
    with pytest.raises(MissingDependencyError, match=rf"'{module}'.*pip install 'labelspace\[tracking\]'"):
        start()  # type: ignore[operator]
    assert not Path("never-written").exists()


class Tracker:
    """The part of W&B and MLflow that the loggers use; both packages are too large for a test."""

    def __init__(self) -> None:
        self.got: list[tuple[dict[str, float], int]] = []

    def log(self, values: dict[str, float], step: int) -> None:
        self.got.append((values, step))

    log_metrics = log


@pytest.mark.parametrize(("module", "start"), [("wandb", WandbLogger), ("mlflow", MLflowLogger)])
def test_loggers_pass_on_every_number_with_its_step(module: str, start: type, monkeypatch: pytest.MonkeyPatch):
    tracker = Tracker()
    monkeypatch.setitem(sys.modules, module, tracker)  # type: ignore[arg-type]
    start()(3, {"loss": 0.5})
    assert tracker.got == [({"loss": 0.5}, 3)]


def test_a_run_given_to_wandb_gets_the_numbers(monkeypatch: pytest.MonkeyPatch):
    module, run = Tracker(), Tracker()
    monkeypatch.setitem(sys.modules, "wandb", module)  # type: ignore[arg-type]
    WandbLogger(run)(1, {"loss": 2.0})
    assert (run.got, module.got) == ([({"loss": 2.0}, 1)], [])
