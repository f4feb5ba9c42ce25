"""The command line: parse, call one function, print. `labelspace --help` loads no torch.

printing    what goes to stdout (results), what to stderr (everything else), what warnings look like
options     options that several commands share, and what they open
app         the commands put together; errors and signals become one line and an exit code
labels, encoders, fit, predict, evaluate    the commands
"""


def main() -> None:
    """Run the command line; the console script `labelspace`."""
    from labelspace.cli.app import app

    app()


__all__ = ["main"]
