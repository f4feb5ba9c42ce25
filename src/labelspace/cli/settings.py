"""Commands, and options from a configuration: one option per field, `--set`, and the table of `--settings`."""

from collections import Counter
from collections.abc import Collection, Mapping, Sequence
from typing import Annotated, Any

import typer
from typer.core import TyperCommand

from labelspace.checks import did_you_mean
from labelspace.cli.printing import console, print_json
from labelspace.config.fields import Setting, settings_of
from labelspace.errors import ConfigError

# The base of typer's errors about wrong use; its module has changed between versions.
_BASES = {base.__name__: base for base in typer.BadParameter.__mro__}
UsageError: Any = _BASES.get("UsageError", typer.BadParameter)

Set = Annotated[
    list[str] | None,
    typer.Option("--set", metavar="NAME=VALUE", help="Any other setting, see --settings; repeatable."),
]
ShowSettings = Annotated[bool, typer.Option("--settings", help="List the settings for --set, and exit.")]
Known = Mapping[str, Setting]
# Settings whose option has another name.
_OPTIONS = {"slow_documents": "--limit"}


ONCE = {
    "labelled": "one file, or several as 'rows/*.csv'",
    "pool": "one file, or several as 'rows/*.csv'",
    "beside": "one model",
}
"""Options that look as if they could be given twice -> what to give."""


class Command(TyperCommand):
    """A command that refuses a second file or model, where the last one would win without a word.

    Other options may come again: the last one wins, so that a script's own can be replaced.
    """

    def parse_args(self, ctx: Any, args: list[str]) -> list[str]:
        """Parse the command line."""
        given: list[Any] = [] if ctx.resilient_parsing else self.make_parser(ctx).parse_args(args=list(args))[2]
        for option, times in Counter(given).items():
            if times > 1 and option.name in ONCE and not option.multiple:
                ctx.fail(f"--{option.name} is there {times} times; give {ONCE[option.name]}.")
        return super().parse_args(ctx, args)


class SettingsCommand(Command):
    """A command with `--settings`, which works without the required options."""

    known: Collection[str] = ()
    """The settings that `--set` takes."""

    def parse_args(self, ctx: Any, args: list[str]) -> list[str]:
        """Parse the command line; with `--settings` nothing is required."""
        if "--settings" in args:
            for parameter in self.params:
                parameter.required = False
        try:
            return super().parse_args(ctx, args)
        except UsageError as error:
            unknown = error.option_name if type(error).__name__ == "NoSuchOption" else ""
            name = unknown.lstrip("-").replace("-", "_")
            found = [
                f"--set {one}=VALUE" for one in self.known if name in (one.rpartition(".")[2], one.replace(".", "_"))
            ]
            if not found:
                raise
            told = f"{unknown} is a setting: give {' or '.join(found)}; --settings lists them."
            raise UsageError(told, ctx=ctx) from error


def from_field(made: type, name: str, *, metavar: str | None = None, panel: str | None = None) -> Any:
    """Return the option for a configuration field; its help is the field's summary and what its default means."""
    setting = settings_of(made)[name]
    meaning = f" {setting.default or 'By default'}: {setting.by_default}." if setting.by_default else ""
    return typer.Option(metavar=metavar, help=f"{setting.summary}.{meaning}", rich_help_panel=panel)


def to_change(made: type, name: str, *, metavar: str | None = None) -> Any:
    """Return the option for a configuration field that a saved model already has a value of."""
    return typer.Option(metavar=metavar, help=f"{settings_of(made)[name].summary}.")


def _read_words(words: Sequence[str] | None) -> dict[str, str]:
    found: dict[str, str] = {}
    for word in words or ():
        name, equals, value = word.partition("=")
        name = name.strip().replace("-", "_")
        if not equals or not name:
            raise ConfigError(f"--set takes NAME=VALUE. Got {word!r} instead.")
        if name in found:
            raise ConfigError(f"--set {name} is there twice; leave one out.")
        found[name] = value.strip()
    return found


def read_settings(
    known: Known, words: Sequence[str] | None, options: Mapping[str, Any], context: typer.Context | None = None
) -> dict[str, Any]:
    """Return the settings by name, from `--set` and from the options of single settings.

    Args:
        known: the settings of the command.
        words: the values of `--set`.
        options: values by name; None: not given.
        context: tells which options were given where their defaults are not None.

    Raises:
        ConfigError: a value of `--set` without a name or `=`, an unknown or repeated name, or one also given by its
            own option.
    """
    read = _read_words(words)
    given = {
        name: value
        for name, value in options.items()
        if value is not None and (context is None or is_given(context, name))
    }
    for name in read:
        if name not in known:
            raise ConfigError(f"--set has no setting {name!r}.{did_you_mean(name, known)} See them with --settings.")
        if name in given:
            raise ConfigError(f"--set {name} and {flag(name)} are one setting; leave one out.")
    return {**given, **{name: known[name].read(value) for name, value in read.items()}}


def is_given(context: typer.Context, name: str) -> bool:
    """Return whether an option stands on the command line."""
    source = context.get_parameter_source(name)
    return source is not None and source.name == "COMMANDLINE"


def check_of_use(context: typer.Context, names: Sequence[str], options: str) -> None:
    """Refuse options that do nothing here.

    Args:
        context: the context of the command.
        names: options that belong to others, none of which was given.
        options: the others, for the message.

    Raises:
        ConfigError: one of them stands on the command line.
    """
    for name in names:
        if is_given(context, name):
            raise ConfigError(f"{flag(name)} does nothing without {options}; leave it out, or give one.")


def flag(name: str) -> str:
    """Return the option of a setting, as typed on the command line."""
    return _OPTIONS.get(name, f"--{name.replace('_', '-')}")


def print_settings(tables: Mapping[str, Known], *, as_json: bool) -> None:
    """Print tables of settings, each under its title."""
    if as_json:
        print_json(
            {
                title: [
                    {"name": one.name, "type": one.takes, "default": one.default, "help": one.help}
                    for one in known.values()
                ]
                for title, known in tables.items()
            }
        )
        return
    from rich.table import Table
    from rich.text import Text

    for title, known in tables.items():
        table = Table(title=title, title_justify="left", box=None, pad_edge=False, header_style="bold")
        for column in ("name", "type", "default", "meaning"):
            table.add_column(column, no_wrap=column == "name")
        for name, one in known.items():
            table.add_row(*(Text(word) for word in (name, one.takes, default_of(one), one.help.replace("`", ""))))
        console().print(table)
        console().print()


def default_of(setting: Setting) -> str:
    """Return a default in the form that `--set` takes."""
    default = setting.default
    if isinstance(default, tuple):
        return ",".join(f"{one:g}" if isinstance(one, float) else str(one) for one in default)
    if isinstance(default, float):
        return f"{default:g}"
    return str(default).lower() if default is None or isinstance(default, bool) else str(default)
