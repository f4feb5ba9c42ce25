"""`labelspace init`: start a label file."""

import sys
from collections.abc import Callable
from pathlib import Path
from typing import Annotated

import typer

from labelspace.checks import check_number
from labelspace.cli.options import Overwrite, label_names
from labelspace.cli.printing import note, tell
from labelspace.cli.settings import is_given
from labelspace.errors import ConfigError, LabelFileError, OutputError
from labelspace.labels import LabelSpace, starter_file
from labelspace.shell import command_line


def init_command(
    context: typer.Context,
    file: Annotated[Path, typer.Argument(metavar="[FILE]", help="The label file to write: .yaml or .yml.")] = Path(
        "labels.yaml"
    ),
    names: Annotated[
        list[str] | None,
        typer.Option(help="Label names, comma-separated; repeatable. A name with a comma needs quotes."),
    ] = None,
    labels: Annotated[
        Path | None,
        typer.Option(
            "--from", metavar="FILE", help="Another label file, such as the CSV of a spreadsheet, to take over."
        ),
    ] = None,
    name: Annotated[str | None, typer.Option(help="Name of the label space.")] = None,
    template: Annotated[str | None, typer.Option(help="Sentence for each label, containing {label}.")] = None,
    descriptions_per_label: Annotated[int, typer.Option(help="Empty lines for descriptions per label.")] = 5,
    overwrite: Overwrite = False,
) -> None:
    """Write a commented label file, ready for your descriptions. Asks for the labels without --names."""
    check_number("--descriptions-per-label", descriptions_per_label, least=1, whole=True)
    if file.suffix not in (".yaml", ".yml"):
        raise ConfigError(f"{file}: the name of a new label file must end in .yaml or .yml.")
    if not overwrite and file.exists():
        raise ConfigError(f"{file} exists already; name another, or replace it with --overwrite.")
    found = [name for part in names or [] for name in label_names(part)]
    if labels is not None:
        if found:
            raise ConfigError("--names and --from both give the labels; leave one out.")
        if is_given(context, "descriptions_per_label"):
            raise ConfigError(
                "--descriptions-per-label is for a new file, and --from brings its descriptions; leave it out."
            )
        space = LabelSpace.from_file(labels, name=name, template=template)
        space.to_file(file)
        print(f"wrote {file} with {len(space)} labels")
        return
    if not found:
        if not sys.stdin.isatty():
            raise ConfigError('no labels; give them as --names "sports,politics", or run this on a terminal.')
        name, found, template = _ask(name or file.stem, template)
    text = starter_file(found, name=name or file.stem, template=template, descriptions_per_label=descriptions_per_label)
    try:
        with file.open("w" if overwrite else "x", encoding="utf-8") as opened:
            opened.write(text)
    except OSError as error:
        raise OutputError(f"{file} cannot be written ({error.strerror}).") from error
    print(f"wrote {file} with {len(found)} labels")
    note(f"write some descriptions into it, then: {command_line('labelspace', 'lint', file)}")


def _ask(name: str, template: str | None) -> tuple[str, list[str], str | None]:
    """Ask for name, labels and template on the terminal, again after an invalid answer."""
    two = ["one", "another"]
    name = _question("What is the task called?", name, lambda answer: starter_file(two, name=answer))
    tell("Which labels are there? Commas between them, or one a line; an empty line ends.")
    names: list[str] = []
    while True:
        answer = label_names(_read("> "))
        if not answer and len(names) > 1:
            break
        if not answer:
            tell(f"Two labels or more are needed; so far: {len(names)}.")
        for label in answer:
            if label in names:
                tell(f"{label!r} is there already.")
            else:
                names.append(label)
    if template is None:
        template = _question(
            "What sentence stands for a label?",
            "This text is about {label}.",
            lambda answer: starter_file(two, template=answer),
        )
    return name, names, template


def _question(text: str, default: str, check: Callable[[str], object]) -> str:
    while True:
        answer = _read(f"{text} [{default}] ") or default
        try:
            check(answer)
        except LabelFileError as error:
            tell(str(error))
            continue
        return answer


def _read(prompt: str) -> str:
    # Prompts go to stderr; stdout is for results.
    print(prompt, end="", file=sys.stderr, flush=True)
    line = sys.stdin.readline()
    if not line:
        tell("")
        raise typer.Abort
    return line.strip()
