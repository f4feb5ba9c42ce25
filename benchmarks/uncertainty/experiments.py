"""Train a head from stored token states, and score it once on test rows, which no choice has used."""

import random
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import partial
from itertools import product
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from pieces import Piece
from probe import linear_probe
from rows import Rows
from scoring import macro_f1_predicted
from store import ENCODER

from labelspace.config import UncertaintyConfig
from labelspace.evaluate import RejectionCurve, difficulty, rejection_curve
from labelspace.geometry import project
from labelspace.heads import GaussianHead
from labelspace.seeds import child_seed
from labelspace.training.engine import train
from labelspace.training.uncertainty import entropy, outputs_of_states
from labelspace.training.uncertainty.objective import UncertaintyObjective
from uncertainty.answers import Answers, keep
from uncertainty.selection import chosen_variants
from uncertainty.sets import SETS
from uncertainty.settings import Settings
from uncertainty.states import both, opened, states_of, vectors_of
from uncertainty.variants import ABLATIONS, GRID, GRID_SETS, MAIN, PARTS, Options, full_config, grid_twin

# C of each probe: MTEB's, or candidates to choose from on training rows. With thousands of rows 100 may be too small.
PROBES: Mapping[str, tuple[float, ...]] = {"probe": (1.0,), "probe-tuned": (1.0, 10.0, 100.0, 1000.0)}
CURVE_POINTS = 50
# Figure 4: number of test rows in all, with equally many of each label, as in the paper.
SHOWN: Mapping[str, int] = {"imdb": 2000, "banking77": 770}
SHOWN_VARIANTS = tuple(f"{extractor}-{part}" for extractor in ("mean", "textcnn") for part in PARTS)
CURVES = ("textcnn-both", "textcnn-chosen", "attention-both-chosen")
"""Variants of main whose rows store a rejection curve, and errors by uncertainty."""


def main_pieces(settings: Settings) -> Iterator[Piece]:
    """Tables 2, 3 and 7: linear probe and TextCNN, one seed after the other."""
    variants = main_variants(settings)
    for seed, name in product(settings.seeds, sets_of(settings)):
        for probe, choices in PROBES.items() if seed == settings.seeds[0] else ():
            work = partial(_probe, settings, name, probe, choices)
            yield _piece(settings, "main", name, probe, 0, work, c_choices=choices)
        for variant, options in variants.items():
            yield _trained(settings, "main", name, variant, options, seed)


def ablation_pieces(settings: Settings) -> Iterator[Piece]:
    """Tables 4, 7 and 8: other extractors and contrastive parts."""
    variants = _variants(settings, "ablations", ABLATIONS, ("attention-both", "mlp-base"))
    for seed, name, (variant, options) in product(settings.seeds, sets_of(settings), variants.items()):
        yield _trained(settings, "ablations", name, variant, options, seed)


def grid_pieces(settings: Settings) -> Iterator[Piece]:
    """Figure 3: one option at a time, one seed; runs that `main` has too are read from there."""
    for option, values in GRID.items():
        for value in values[:2] if settings.small else values:
            for name in ("toxic_conversations",) if settings.small else GRID_SETS:
                if grid_twin(option, value) is None:
                    yield _trained(settings, "grid", name, f"{option}-{value:g}", {option: value}, 0)


def sets_of(settings: Settings) -> tuple[str, ...]:
    """Return the sets that are run."""
    return ("toxic_conversations",) if settings.small else tuple(SETS)


def main_variants(settings: Settings) -> dict[str, Options]:
    """Return the variants that main trains beside the probes."""
    return _variants(settings, "main", MAIN, ("textcnn-base", "textcnn-both"))


def _variants(settings: Settings, part: str, variants: Mapping[str, Options], few: Sequence[str]) -> dict[str, Options]:
    """Return variants with defaults, and those with chosen options if the choices have results."""
    own = {variant: variants[variant] for variant in few} if settings.small else dict(variants)
    return own | chosen_variants(settings, part)


def _trained(settings: Settings, part: str, name: str, variant: str, options: Options, seed: int) -> Piece:
    work = partial(_run, settings, part, name, variant, options, seed)
    return _piece(settings, part, name, variant, seed, work, config=full_config(options))


def _piece(settings: Settings, part: str, name: str, variant: str, seed: int, work: Any, **facts: Any) -> Piece:
    return Piece(
        part=part,
        name=f"{settings.short}_{name}_{variant}_seed{seed}",
        facts=settings.facts(name, variant=variant, seed=seed, **facts),
        work=work,
        seeds=(seed,),
        data=f"shared/data/mteb/{name}",
    )


def trained_head(
    settings: Settings,
    name: str,
    options: Options,
    seed: int,
    chosen: Sequence[int] | None = None,
    change: Callable[[GaussianHead], None] | None = None,
) -> tuple[GaussianHead, dict[str, Any]]:
    """Train a head on all rows, or on those chosen, and return it with the facts of the run.

    `change` is called with the new head before training.
    """
    config = UncertaintyConfig(validation=0.0, **options)
    encoder = opened(settings)
    rows, states = both(settings, name)[0], states_of(settings, name)[0]
    chosen = range(len(rows)) if chosen is None else chosen
    names = sorted(set(rows.truth))
    head = GaussianHead(
        encoder.backbone.hidden_size,
        len(names),
        generator=torch.Generator().manual_seed(child_seed(seed, "head")),
        extractor=config.extractor,
        uncertain=config.uncertain,
        dropout=config.dropout,
    )
    if change is not None:
        change(head)
    head.to(encoder.backbone.device)
    place = {name: column for column, name in enumerate(names)}
    targets = np.array([place[truth] for truth in rows.truth], dtype=np.intp)
    objective = UncertaintyObjective(
        head,
        states,
        chosen,
        targets,
        config,
        device=encoder.backbone.device,
        dtype=encoder.backbone.dtype,
        seed=child_seed(seed, "training"),
    )
    curve = train(objective)
    if curve.stop_reason != "epochs":  # an interrupted run is not a result
        raise KeyboardInterrupt
    head.requires_grad_(False)
    facts = {
        "config": full_config(options),
        "epochs": curve.epochs,
        "steps": curve.steps,
        "last_loss": float(np.mean(curve.losses[-10:])),
        "training_seconds": curve.seconds,
        "parameters": sum(values.numel() for values in head.parameters()),
    }
    return head, facts


def _run(settings: Settings, part: str, name: str, variant: str, options: Options, seed: int) -> dict[str, Any]:
    rows, test = both(settings, name)
    head, facts = trained_head(settings, name, options, seed)
    found = outputs_of_states(opened(settings), head, states_of(settings, name)[1], range(len(test)))
    answers = answered(found.logits, found.uncertainty, test, names := sorted(set(rows.truth)))
    result = {**scored(found.logits, answers, test, names), **facts, "rows": len(rows)}
    if part == "main":
        keep(settings, name, variant, seed, answers)
        if variant in CURVES:
            result |= curves_of(answers)
    if seed == 0 and settings.short == ENCODER and name in SHOWN and variant in SHOWN_VARIANTS:
        result["points"] = _points(found.means, found.uncertainty, test, SHOWN[name])
    return result


def _points(means: NDArray[np.float32], uncertainty: NDArray[np.float32], test: Rows, most: int) -> str:
    """Return t-SNE positions of equally many test rows of each label, as `x,y,label,uncertainty`."""
    names = sorted(set(test.truth))
    own = {name: [row for row, truth in enumerate(test.truth) if truth == name] for name in names}
    drawn = [row for rows in own.values() for row in random.Random(0).sample(rows, min(most // len(names), len(rows)))]
    places = project(means[drawn], projection="tsne", seed=0)
    points = zip(places, test.take(drawn).truth, uncertainty[drawn], strict=True)
    return " ".join(
        f"{round(x, 2):g},{round(y, 2):g},{names.index(truth)},{round(std, 4):g}" for (x, y), truth, std in points
    )


def answered(
    logits: NDArray[np.float32], uncertainty: NDArray[np.float32], test: Rows, names: Sequence[str]
) -> Answers:
    """Return for each test row whether its answer is right, and its uncertainty."""
    right = np.array([names[column] == own for column, own in zip(logits.argmax(axis=1), test.truth, strict=True)])
    return Answers(right, entropy(logits, 1.0).astype(np.float64), uncertainty.astype(np.float64))


def scored(logits: NDArray[np.float32], answers: Answers, test: Rows, names: Sequence[str]) -> dict[str, Any]:
    """Return accuracy, macro-F1, and the areas under the rejection curves."""
    predicted = [names[column] for column in logits.argmax(axis=1)]
    curves = doubt_curves(answers)
    return {
        "accuracy": float(answers.right.mean()),
        "macro_f1_predicted": macro_f1_predicted(test.truth, predicted),
        "test_rows": len(test),
        "labels": len(names),
        "area": {
            **{by: curve.area for by, curve in curves.items()},
            "random": curves["entropy"].area_random,
            "best": curves["entropy"].area_best,
        },
    }


def doubt_curves(answers: Answers) -> dict[str, RejectionCurve]:
    """Return the rejection curve by each available uncertainty."""
    doubts = ("entropy", "uncertainty") if np.ptp(answers.uncertainty) else ("entropy",)
    return {by: rejection_curve(getattr(answers, by), answers.right) for by in doubts}


def curves_of(answers: Answers) -> dict[str, Any]:
    """Return the data of figure 5: a run's curves, and its errors by uncertainty."""
    places = np.linspace(0, len(answers.right) - 1, CURVE_POINTS).astype(int)
    order = np.argsort(answers.uncertainty, kind="stable")
    return {
        "curve": {by: curve.accuracy[places].round(4).tolist() for by, curve in doubt_curves(answers).items()},
        "difficulty": {
            band.level: [band.documents, band.errors] for band in difficulty(answers.uncertainty, answers.right)
        },
        "std": np.quantile(answers.uncertainty, [0.05, 0.5, 0.95]).round(4).tolist(),
        "error_by_third": [float(1 - answers.right[third].mean()) for third in np.array_split(order, 3)],
    }


def _probe(settings: Settings, name: str, probe: str, choices: Sequence[float]) -> dict[str, Any]:
    """Fit logistic regression on the encoder's vectors, with the one C or with C chosen on the training rows."""
    rows, test = both(settings, name)
    names = sorted(set(rows.truth))
    vectors, test_vectors = vectors_of(settings, name)
    started = time.perf_counter()
    tuned = len(choices) > 1
    head = linear_probe(tuned=tuned, choices=choices)
    head.fit(vectors, rows.truth)
    seconds = time.perf_counter() - started
    shares = head.predict_proba(test_vectors)
    known = [str(label) for label in head.classes_]
    logits = np.full((len(test), len(names)), -30.0, dtype=np.float32)
    logits[:, [names.index(label) for label in known]] = np.log(np.maximum(shares, 1e-13))
    answers = answered(logits, np.zeros(len(test), np.float32), test, names)
    keep(settings, name, probe, 0, answers)
    return {
        **scored(logits, answers, test, names),
        "training_seconds": seconds,
        "rows": len(rows),
        "c": head.best_params_["C"] if tuned else head.C,
    }
