"""The command line: parse, call one function, print. `labelspace --help` loads no torch.

printing    results to stdout, everything else to stderr; the format of warnings
options     options that several commands share; opens encoders and models
settings    options from configurations, `--set` and `--settings`
app         all commands; turns errors and signals into one line and an exit code

Every other module holds one or two commands, or a part of one.
"""

import gc


def main() -> None:
    """Run the command line; the console script `labelspace`."""
    from labelspace.cli.app import app

    try:
        app()
    finally:
        # At exit Python would look for garbage among all that torch has imported, for a quarter of a second.
        gc.freeze()


__all__ = ["main"]
