"""Callbacks that stop a training."""

from collections.abc import Callable


class Stop(BaseException):
    """An abrupt stop, like a kill: nothing in the library catches it."""


def stop_at(number: int, error: type[BaseException] = Stop) -> Callable[[int, dict[str, float]], None]:
    """Return a callback that raises an error after an update; `KeyboardInterrupt` is Ctrl-C."""

    def callback(step: int, values: dict[str, float]) -> None:
        if step == number and "loss" in values:
            raise error

    return callback
