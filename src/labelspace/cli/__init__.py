"""The command line: parse, call one function, print. `labelspace --help` loads no torch.

printing    results to stdout, everything else to stderr; the format of warnings
options     options that several commands share; opens encoders and models
settings    options from configurations, `--set` and `--settings`
app         all commands; turns errors and signals into one line and an exit code

Every other module holds one or two commands, or a part of one.
"""

import gc
import io
import os
import signal
import sys
import threading
import time
from typing import Any

DOUBLE_PRESS = 1.0
"""Seconds within which a second Ctrl-C is taken for the same: the first one saves what there is."""


def main() -> None:
    """Run the command line; the console script `labelspace`."""
    _open_missing_streams()
    _interrupt_once()
    try:
        from labelspace.cli.app import app

        app()
    except KeyboardInterrupt:
        sys.stderr.write("interrupted.\n")
        sys.exit(130)
    finally:
        # At exit Python would look for garbage among all that torch has imported, for a quarter of a second. Triton,
        # which torch for CUDA imports to train, reports what is left as leaks.
        if "triton" not in sys.modules:
            gc.freeze()


def _open_missing_streams() -> None:
    """Give a stream that the caller has closed to nobody, and print what an encoding lacks in ASCII."""
    for name, mode in (("stdin", "r"), ("stdout", "w"), ("stderr", "w")):
        if getattr(sys, name) is None:
            setattr(sys, name, open(os.devnull, mode, encoding="utf-8"))  # noqa: PTH123, SIM115
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper):
            stream.reconfigure(errors="backslashreplace")


def _interrupt_once() -> None:
    """Take a second Ctrl-C right after the first, of a nervous hand or of a wrapper that passes it on, for the same."""
    main_thread = threading.current_thread() is threading.main_thread()
    if not main_thread or signal.getsignal(signal.SIGINT) is not signal.default_int_handler:
        return  # a shell that starts a job in the background has it ignore Ctrl-C
    last = -DOUBLE_PRESS

    def interrupt(number: int, frame: Any) -> None:
        nonlocal last
        if time.monotonic() - last >= DOUBLE_PRESS:
            last = time.monotonic()
            signal.default_int_handler(number, frame)

    signal.signal(signal.SIGINT, interrupt)


__all__ = ["main"]
