"""Training callbacks, and three loggers: TensorBoard, Weights & Biases, MLflow."""

from pathlib import Path
from types import TracebackType
from typing import Any, Protocol, Self, final

from labelspace.checks import import_optional


class Callback(Protocol):
    """Receives numbers by name at a step: `{"loss": 0.4, "learning_rate": 1e-5}`. An exception stops training."""

    def __call__(self, step: int, values: dict[str, float]) -> None: ...


@final
class TensorBoardLogger:
    """Writes scalars for TensorBoard; a context manager.

    Args:
        folder: folder of the event files.

    Raises:
        MissingDependencyError: the package tensorboard is not installed.
    """

    def __init__(self, folder: str | Path) -> None:
        import_optional("tensorboard", package="tensorboard", extra="tracking", purpose="Logging to TensorBoard")
        from torch.utils.tensorboard.writer import SummaryWriter

        self._writer = SummaryWriter(str(folder))

    def __call__(self, step: int, values: dict[str, float]) -> None:
        for name, value in values.items():
            self._writer.add_scalar(name, value, step)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        self._writer.close()


@final
class WandbLogger:
    """Logs to a run of Weights & Biases that the caller has started.

    Args:
        run: what `wandb.init` returned; None: the active run at each step.

    Raises:
        MissingDependencyError: the package wandb is not installed.
    """

    def __init__(self, run: Any = None) -> None:
        self._wandb = import_optional("wandb", package="wandb", extra="tracking", purpose="Logging to W&B")
        self._run = run

    def __call__(self, step: int, values: dict[str, float]) -> None:
        (self._run or self._wandb).log(values, step=step)


@final
class MLflowLogger:
    """Logs to the active MLflow run.

    Raises:
        MissingDependencyError: the package mlflow is not installed.
    """

    def __init__(self) -> None:
        self._mlflow = import_optional("mlflow", package="mlflow", extra="tracking", purpose="Logging to MLflow")

    def __call__(self, step: int, values: dict[str, float]) -> None:
        self._mlflow.log_metrics(values, step=step)
