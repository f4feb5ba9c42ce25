"""The tables of settings in docs, from the configurations: a field's docstring is all that is said of it."""

from functools import partial
from typing import Any

from labelspace import DescriptionClassifier, LaConClassifier, UncertaintyClassifier
from labelspace.classify.settings import own_arguments
from labelspace.config import LaConConfig, PrefinetuneConfig, SearchConfig, TrainingConfig, UncertaintyConfig
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


BLOCKS = {
    "settings-description": partial(table, TrainingConfig, DescriptionClassifier),
    "settings-search": partial(table, SearchConfig),
    "settings-lacon": partial(table, LaConConfig, LaConClassifier),
    "settings-uncertainty": partial(table, UncertaintyConfig, UncertaintyClassifier),
    "settings-prefinetune": partial(table, PrefinetuneConfig),
}
