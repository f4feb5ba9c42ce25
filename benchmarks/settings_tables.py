"""The tables of settings and of command-line options in docs, from the configurations and the commands themselves."""

from functools import partial
from typing import Any

from typer.main import get_command

from labelspace import DescriptionClassifier, LaConClassifier, UncertaintyClassifier
from labelspace.classify.settings import own_arguments
from labelspace.cli.app import app
from labelspace.config import (
    ConsensusConfig,
    LaConConfig,
    PrefinetuneConfig,
    SearchConfig,
    StudentConfig,
    TrainingConfig,
    UncertaintyConfig,
)
from labelspace.config.fields import settings_of


def table(made: type, estimator: Any = None) -> str:
    """Return a table of the fields of a configuration; arguments of the estimator come first."""
    arguments = () if estimator is None else own_arguments(estimator)
    settings = sorted(settings_of(made).values(), key=lambda one: one.name not in arguments)
    rows = ["| field | default | meaning |", "|---|---|---|"]
    if estimator is not None:
        rows = ["| field | given as | default | meaning |", "|---|---|---|---|"]
    for one in settings:
        way = "" if estimator is None else f" {'argument' if one.name in arguments else '`config`'} |"
        default = "the paper's nine" if one.name == "rates" else f"`{one.default!r}`"
        rows.append(f"| `{one.name}` |{way} {default} | {one.help.replace('|', chr(92) + '|')} |")
    return "\n".join(rows)


def options(command: str) -> str:
    """Return a table of the options of a command, in the order of its help."""
    commands: Any = get_command(app)
    rows = ["| option | default | meaning |", "|---|---|---|"]
    for each in commands.commands[command].params:
        if each.param_type_name == "option":
            names = ", ".join(f"`{name}`" for name in each.opts)
            choices = f" `{each.metavar}`" if "|" in (each.metavar or "") else ""
            default = "" if each.default is None or each.default is False else f"`{each.default}`"
            meaning = " ".join(each.help.replace("\\[", "[").split()) + (" Not in `--help`." if each.hidden else "")
            cells = (f"{names}{choices}", "required" if each.required else default, meaning)
            rows.append(f"| {' | '.join(cell.replace('|', chr(92) + '|') for cell in cells)} |")
    return "\n".join(rows)


BLOCKS = {
    **{
        f"options-{each}": partial(options, each)
        for each in ("draft", "fit", "predict", "evaluate", "estimate", "export", "serve")
    },
    "settings-description": partial(table, TrainingConfig, DescriptionClassifier),
    "settings-search": partial(table, SearchConfig),
    "settings-consensus": partial(table, ConsensusConfig),
    "settings-student": partial(table, StudentConfig),
    "settings-lacon": partial(table, LaConConfig, LaConClassifier),
    "settings-uncertainty": partial(table, UncertaintyConfig, UncertaintyClassifier),
    "settings-prefinetune": partial(table, PrefinetuneConfig),
}
