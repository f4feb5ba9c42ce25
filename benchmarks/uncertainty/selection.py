"""Select options from the results of part `choice`, which uses train rows only.

The rule: for each encoder and family of `variants.FAMILIES`, take the options with the highest mean accuracy over the
sets that choices are scored on. Ties go to TextCNN's defaults, else to the first listed.
"""

import statistics
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from pieces import differences
from store import Table

from uncertainty.settings import Settings
from uncertainty.variants import CHOICES, CHOSEN, FAMILIES, GRID_SETS, Options, full_config


def choices_of(settings: Settings) -> dict[str, Options]:
    """Return the choices that are tried."""
    return dict(list(CHOICES.items())[:2]) if settings.small else dict(CHOICES)


def sets_of(settings: Settings) -> tuple[str, ...]:
    """Return the sets that choices are tried on."""
    return ("toxic_conversations",) if settings.small else GRID_SETS


def choice_name(settings: Settings, name: str, choice: str) -> str:
    """Return the name of the piece of one choice on one set."""
    return f"{settings.short}_{name}_{choice}"


def choice_facts(settings: Settings, name: str, choice: str) -> dict[str, Any]:
    """Return the facts of the result of one choice on one set."""
    options = CHOICES[choice]
    return settings.facts(name, choice=choice, options=options, config=full_config(options), seed=0)


def winner(family: Mapping[str, Options], results: Iterable[Mapping[str, Any]], sets: Sequence[str]) -> str | None:
    """Return the winning choice by the rule above; None if results are missing.

    Args:
        family: choices of the family.
        results: results of one encoder, for any choices.
        sets: sets on which every choice must have a result.
    """
    found = {(result["choice"], result["set"]): result["accuracy"] for result in results}
    if not family or not all((choice, name) in found for choice in family for name in sets):
        return None
    means = {choice: round(statistics.fmean(found[choice, name] for name in sets), 9) for choice in family}
    tuned = {key for options in family.values() for key in options if len({own[key] for own in family.values()}) > 1}

    def is_default(options: Options) -> bool:
        return all(options[key] == full_config({})[key] for key in tuned)

    return max(family, key=lambda choice: (means[choice], is_default(family[choice])))  # ties go to the first


def chosen_variants(settings: Settings, part: str) -> dict[str, Options]:
    """Return the chosen variants of a part whose choices have all results.

    Raises:
        SystemExit: a choice was run with other settings or data.
    """
    results, found = _results(settings), {}
    for family, variant in CHOSEN.get(part, {}).items():
        choice = winner(_family(settings, family), results, sets_of(settings))
        if choice is not None:
            found[variant] = CHOICES[choice]
    return found


def waiting(settings: Settings, parts: Sequence[str]) -> list[str]:
    """Return the chosen variants of these parts that lack results of part `choice`."""
    return [
        variant
        for part in parts
        for family, variant in CHOSEN.get(part, {}).items()
        if _family(settings, family) and variant not in chosen_variants(settings, part)
    ]


def _family(settings: Settings, family: str) -> dict[str, Options]:
    there = choices_of(settings)
    return {choice: options for choice, options in FAMILIES[family].items() if choice in there}


def _results(settings: Settings) -> list[dict[str, Any]]:
    choices, sets = choices_of(settings), sets_of(settings)
    results = [
        result
        for result in Table(settings.out).rows("choice")
        if result["encoder"] == settings.short and result["choice"] in choices and result["set"] in sets
    ]
    for result in results:
        differ = differences(choice_facts(settings, result["set"], result["choice"]), result)
        if differ:
            name = choice_name(settings, result["set"], result["choice"])
            raise SystemExit(f"choice/{name} was run with other settings ({'; '.join(differ)}); give another --out.")
    return results
