"""The texts of figure 7: how each is answered, and where its uncertainty stands among those of all test rows."""

from collections.abc import Iterator
from functools import partial
from itertools import product
from typing import Any

import numpy as np
from pieces import Piece
from scipy.stats import rankdata

from labelspace.training.uncertainty import outputs_of_states
from uncertainty.experiments import answered, trained_head
from uncertainty.settings import Settings
from uncertainty.states import both, opened, states_of
from uncertainty.variants import ABLATIONS, MAIN, Options, full_config

SET = "tweet_sentiment_extraction"
CASES = {
    "didn`t say hi": "local dependency",
    "raining the past few days": "local dependency",
    "great!! weee!! visitors!": "certain",
    "THINK EVERYONE HATES ME": "certain",
    "eat the watermelon": "ambiguous",
}
"""Words of each text -> what the paper says of it."""

VARIANTS = {
    "mean-base": ABLATIONS["mean-base"],
    "textcnn-base": MAIN["textcnn-base"],
    "textcnn-both": MAIN["textcnn-both"],
}
"""Without local contexts, with them, and the whole method."""


def cases_pieces(settings: Settings) -> Iterator[Piece]:
    """Every variant, one seed after the other, on the one set."""
    name = "toxic_conversations" if settings.small else SET
    for seed, (variant, options) in product(settings.seeds, VARIANTS.items()):
        yield Piece(
            part="cases",
            name=f"{settings.short}_{name}_{variant}_seed{seed}",
            facts=settings.facts(name, variant=variant, seed=seed, config=full_config(options)),
            work=partial(_run, settings, name, options, seed),
            seeds=(seed,),
            data=f"shared/data/mteb/{name}",
        )


def _run(settings: Settings, name: str, options: Options, seed: int) -> dict[str, Any]:
    rows, test = both(settings, name)
    names = sorted(set(rows.truth))
    head, _ = trained_head(settings, name, options, seed)
    found = outputs_of_states(opened(settings), head, states_of(settings, name)[1], range(len(test)))
    answers = answered(found.logits, found.uncertainty, test, names)
    doubts = {"uncertainty": answers.uncertainty, "entropy": answers.entropy}
    ranks = {by: (rankdata(values) - 1) / (len(values) - 1) for by, values in doubts.items() if np.ptp(values)}
    cases = {}
    for words in CASES:
        for place in [place for place, text in enumerate(test.texts) if words in text]:
            answer = names[int(found.logits[place].argmax())]
            own = {by: round(float(rank[place]), 3) for by, rank in ranks.items()}
            cases[words] = {
                "text": " ".join(str(test.texts[place]).split()),
                "truth": test.truth[place],
                "answer": answer,
                **own,
            }
    return {"cases": cases, "accuracy": float(answers.right.mean())}
