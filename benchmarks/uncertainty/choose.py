"""Tune loss weights and learning rates per backbone on train rows: train on four fifths, score the last fifth.

Section 5.3 tunes learning rate and lambda_LCL for each backbone. No test row is used here, so the winner by the rule of
`selection.py` is shown in the tables beside the defaults.
"""

import random
from collections.abc import Iterator
from functools import partial
from typing import Any

from pieces import Piece

from labelspace.seeds import child_seed
from labelspace.training.uncertainty import outputs_of_states
from uncertainty.experiments import answered, scored, trained_head
from uncertainty.selection import choice_facts, choice_name, choices_of, sets_of
from uncertainty.settings import Settings
from uncertainty.states import both, opened, states_of
from uncertainty.variants import Options

SCORED = 0.2


def choice_pieces(settings: Settings) -> Iterator[Piece]:
    """Every choice on three sets, one seed."""
    for name in sets_of(settings):
        for choice, options in choices_of(settings).items():
            yield Piece(
                part="choice",
                name=choice_name(settings, name, choice),
                facts=choice_facts(settings, name, choice),
                work=partial(_run, settings, name, options),
                seeds=(0,),
                data=f"shared/data/mteb/{name}: train",
            )


def _run(settings: Settings, name: str, options: Options) -> dict[str, Any]:
    rows, states = both(settings, name)[0], states_of(settings, name)[0]
    order = random.Random(child_seed(0, "choice", name)).sample(range(len(rows)), len(rows))
    cut = round(SCORED * len(rows))
    held, kept = sorted(order[:cut]), sorted(order[cut:])
    head, facts = trained_head(settings, name, options, 0, kept)
    found = outputs_of_states(opened(settings), head, states, held)
    test, names = rows.take(held), sorted(set(rows.truth))
    return {**scored(found.logits, answered(found.logits, found.uncertainty, test, names), test, names), **facts}
