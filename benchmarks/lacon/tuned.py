"""Whole data sets, all epochs, rate and temperature chosen on held-out train rows: table 2 as section 3.1 has it.

Part `tuning` tries every rate at a method's own temperature, and every temperature at the middle rate, one seed and a
few epochs each. It is scored on the 5 % of the train rows that are held out. Part `tuned` takes the best of each, for
[CLS] pooling too, runs all epochs and keeps the best. Test rows are read by part `tuned` alone.
"""

from collections.abc import Iterator
from dataclasses import replace
from functools import partial
from itertools import product
from typing import Any

import store
from pieces import Piece

from labelspace.config import LaConConfig
from lacon.methods import METHODS, OURS, Options, majority, measured, train
from lacon.protocol import PAPER, Settings
from lacon.sets import SETS, sample, test_rows, train_rows

CHOSEN_SETS = ("mrpc", "rte", "cola", "qnli")
"""The paper has 10,000 rows of QNLI; here are 4,976."""

SHORTEST = ("cola",)
"""The set of the shortest texts, for small runs and for any other encoder than the study's."""

COMPARED = ("ce", "ce-cl", "ce-scl", *OURS)
RATES = (1e-4, 3e-5, 3e-4)
"""The middle one first. The paper searches 1e-5 to 3e-5 for BERT-base, which is twice as wide."""

OTHER_RATES = (3e-5, 1e-5)
"""The ends of the paper's range, for an encoder of BERT's size. With it, a method keeps its own temperature."""

TEMPERATURES = (0.1, 0.3)
WHOLE = replace(PAPER, batch_size=32, head_learning_rate=1e-3)
TUNING_EPOCHS = 2


def tuning_pieces(settings: Settings) -> Iterator[Piece]:
    """Yield the trials on held-out train rows, with the encoder's own pooling."""
    settings = _whole(settings, pooling=None)
    for name, method in product(_sets(settings), _methods(settings)):
        for options in _trials(settings, method):
            yield Piece(
                part="tuning",
                name=_tuning_name(settings, name, method, options),
                facts=settings.facts(set=name, method=method, tried=options, seed=0),
                work=partial(_tune, settings, name, method, options),
                seeds=(0,),
                data=f"shared/data/{SETS[name].folder}: train",
            )


def tuned_pieces(settings: Settings) -> Iterator[Piece]:
    """Yield every method on every set, one repeat after the other; a set waits until its trials are done."""
    settings = _whole(settings)
    for seed, name, method in product(settings.seeds("tuned"), _sets(settings), _methods(settings)):
        chosen = chosen_options(settings, name, method)
        if chosen is not None:
            yield Piece(
                part="tuned",
                name=f"{settings.short}_{name}_{method}_seed{seed:02d}",
                facts=settings.facts(set=name, method=method, chosen=chosen, seed=seed, metric=SETS[name].metric),
                work=partial(_run, settings, name, method, chosen, seed),
                seeds=(seed,),
                data=f"shared/data/{SETS[name].folder}: train; validation scored",
            )


def chosen_options(settings: Settings, name: str, method: str) -> Options | None:
    """Return the rate and the temperature that are best on held-out rows; None if a trial is missing."""
    settings, table = _whole(settings, pooling=None), store.Table(settings.out)
    trials = _trials(settings, method)
    rows = [table.row("tuning", _tuning_name(settings, name, method, trial)) for trial in trials]
    scores = [row["held_out"] for row in rows if row]
    if len(scores) < len(trials):
        return None

    def best(option: str) -> float:
        # The others are at the method's own value. Ties go to the first.
        own = [place for place, trial in enumerate(trials) if trial | {option: 0} == trials[0] | {option: 0}]
        return trials[max(own, key=scores.__getitem__)][option]

    return {option: best(option) for option in trials[0]}


def _sets(settings: Settings) -> tuple[str, ...]:
    return CHOSEN_SETS if _own_encoder(settings) and not settings.small else SHORTEST


def _own_encoder(settings: Settings) -> bool:
    return replace(settings, pooling=None).short == store.ENCODER


def _methods(settings: Settings) -> tuple[str, ...]:
    return ("ce", "lacon-vanilla") if settings.small else COMPARED


def _whole(settings: Settings, **changes: Any) -> Settings:
    protocol = replace(settings.protocol, validation=0.25) if settings.small else WHOLE
    return replace(settings, protocol=protocol, **changes)


def _trials(settings: Settings, method: str) -> list[Options]:
    """Return the options to try; the first has the middle rate and the method's own temperature."""
    rates, temperatures = (RATES, TEMPERATURES) if _own_encoder(settings) else (OTHER_RATES, ())
    if settings.small:
        rates, temperatures = RATES[:2], TEMPERATURES[:1]
    if method == "ce":
        return [{"learning_rate": rate} for rate in rates]
    own = METHODS[method].options.get("temperature", LaConConfig.temperature)
    others = [(RATES[0], temperature) for temperature in temperatures if temperature != own]
    pairs = [*((rate, own) for rate in rates), *others]
    return [{"learning_rate": rate, "temperature": temperature} for rate, temperature in pairs]


def _tuning_name(settings: Settings, name: str, method: str, options: Options) -> str:
    words = "_".join(f"{value:g}" for value in options.values())
    return f"{settings.short}_{name}_{method}_{words}"


def _tune(settings: Settings, name: str, method: str, options: Options) -> dict[str, Any]:
    rows = sample(name, train_rows(name, settings.data), settings.protocol.rows, 0)
    epochs = min(TUNING_EPOCHS, settings.protocol.epochs)
    clf = train(settings, {**METHODS[method].options, **options, "epochs": epochs}, rows, 0)
    curve = clf.fit_result_.curve
    assert curve is not None
    (best,) = (look for look in curve.looks if look.step == curve.best_step)
    return {"held_out": best.macro_f1_predicted, "best_step": curve.best_step, "steps": curve.steps}


def _run(settings: Settings, name: str, method: str, chosen: Options, seed: int) -> dict[str, Any]:
    rows = sample(name, train_rows(name, settings.data), settings.protocol.rows, seed)
    test = test_rows(name, settings.data, settings.protocol.test_rows)
    # So few held-out rows may show no gain for some epochs, and then one.
    options = {**METHODS[method].options, **chosen, "patience": settings.protocol.epochs}
    found = measured(train(settings, options, rows, seed), test)
    return {"majority": majority(test, SETS[name].metric), **found}
