"""All commands as one application, and their exit codes.

0    done
1    failed on the way (a full disk, a killed worker, a loss not finite, a missing package), or `lint` found errors
2    wrong use or bad input: one line on stderr, nothing was written
130  interrupted with Ctrl-C; the message says what was saved
141  the reader of the output has closed the pipe
"""

import errno
import os
import sys
from concurrent.futures import BrokenExecutor
from typing import Annotated, Any

import typer
from typer.core import TyperGroup

from labelspace.cli import (
    bench,
    draft,
    encoders,
    estimate,
    evaluate,
    explain,
    export,
    figures,
    fit,
    init,
    lint,
    predict,
    prefinetune,
    serve,
    studio,
    train_nli,
)
from labelspace.cli.printing import one_line, only_our_words, tell
from labelspace.cli.settings import Command, UsageError
from labelspace.errors import LabelSpaceError, MissingDependencyError, OutputError, TrainingError
from labelspace.version import __version__

INTERRUPTED = 130
READER_GONE = 141


class Commands(TyperGroup):
    """The group of commands; turns errors into one line and an exit code."""

    def main(self, *args: Any, standalone_mode: bool = True, **extra: Any) -> Any:
        """Run a command line and exit, or return the exit code where `standalone_mode` is False."""
        with only_our_words():
            code = self._run(*args, **extra)
        if standalone_mode:
            sys.exit(code)
        return code

    def _run(self, *args: Any, **extra: Any) -> int:
        try:
            result = super().main(*args, standalone_mode=False, **extra)
            sys.stdout.flush()
        except UsageError as error:
            if not error.format_message():  # no command; the help has been shown
                return 2
            see = f" See: {error.ctx.command_path} --help" if error.ctx else ""
            tell(f"error: {one_line(error.format_message())}{see}")
            return 2
        except typer.Abort:  # end of input at a prompt
            tell("stopped; nothing was written.")
            return 1
        except OSError as error:  # --help and --version print before a command is invoked
            return _output_failed(error)
        return result if isinstance(result, int) else 0

    def invoke(self, ctx: Any) -> Any:
        """Run the command that was parsed."""
        try:
            result = super().invoke(ctx)
            sys.stdout.flush()
        except LabelSpaceError as error:
            tell(f"error: {one_line(error)}")
            raise typer.Exit(exit_code(error)) from error
        except KeyboardInterrupt as error:
            tell("interrupted.")
            raise typer.Exit(INTERRUPTED) from error
        except OSError as error:
            raise typer.Exit(_output_failed(error)) from error
        return result


def exit_code(error: LabelSpaceError) -> int:
    """Return the exit code of an error: 1 for a failure on the way, 2 for wrong use or bad input.

    Example:
        >>> exit_code(TrainingError("the loss is nan")), exit_code(LabelSpaceError("bad input"))
        (1, 2)
    """
    # An invalid output path is wrong use; a refusal by the operating system, or a killed worker, is a failure.
    refused = isinstance(error, OutputError) and isinstance(error.__cause__, (OSError, BrokenExecutor))
    return 1 if refused or isinstance(error, (TrainingError, MissingDependencyError)) else 2


def _output_failed(error: OSError) -> int:
    """Tell of an error of the operating system, unless the reader has closed the pipe; return the exit code."""
    _forget_stdout()
    if isinstance(error, BrokenPipeError) or (os.name == "nt" and error.errno == errno.EINVAL):  # Windows has both
        return READER_GONE
    where = f"{error.filename}: " if error.filename else ""
    tell(f"error: {where}{error.strerror or one_line(error)}.")
    return 1


def _forget_stdout() -> None:
    # The buffer cannot be written; without this, the interpreter would try again at exit and print an error.
    try:
        descriptor = sys.stdout.fileno()
    except (OSError, ValueError):  # no real file
        return
    with open(os.devnull, "w") as nowhere:  # noqa: PTH123
        os.dup2(nowhere.fileno(), descriptor)


app = typer.Typer(
    name="labelspace",
    cls=Commands,
    no_args_is_help=True,
    pretty_exceptions_enable=False,
    rich_markup_mode="rich",
    context_settings={"help_option_names": ["--help", "-h"]},
    help="Write down what your labels mean, get a fast text classifier: no labelled documents needed.",
    epilog="First steps: labelspace init, then lint, fit and predict. Every command has --help.",
)


def _version(wanted: bool) -> None:
    if wanted:
        print(f"labelspace {__version__}")
        raise typer.Exit


@app.callback()
def _options(
    version: Annotated[
        bool, typer.Option("--version", callback=_version, is_eager=True, help="Print the version and exit.")
    ] = False,
) -> None:
    pass


app.command("init", cls=Command)(init.init_command)
app.command("lint", cls=Command)(lint.lint_command)
app.command("draft", cls=Command)(draft.draft_command)
app.command("encoders", cls=Command)(encoders.encoders_command)
app.command("fit", cls=fit.FitCommand)(fit.fit_command)
app.command("predict", cls=Command)(predict.predict_command)
app.command("evaluate", cls=Command)(evaluate.evaluate_command)
app.command("estimate", cls=Command)(estimate.estimate_command)
app.command("explain", cls=Command)(explain.explain_command)
app.command("figures", cls=Command)(figures.figures_command)
app.command("export", cls=Command)(export.export_command)
app.command("serve", cls=Command)(serve.serve_command)
app.command("studio", cls=Command)(studio.studio_command)
app.command("prefinetune", cls=prefinetune.PrefinetuneCommand)(prefinetune.prefinetune_command)
app.command("train-nli", cls=train_nli.TrainNliCommand)(train_nli.train_nli_command)
app.add_typer(bench.app, name="bench")
