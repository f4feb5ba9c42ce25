"""Train a head from stored token states, and score it once on test rows that nothing was chosen by."""

import random
import time
from collections.abc import Iterator, Mapping, Sequence
from functools import partial
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from pieces import Piece
from probe import linear_probe
from sklearn.metrics import f1_score

from labelspace.config import UncertaintyConfig
from labelspace.evaluate import difficulty, rejection_curve
from labelspace.evaluate.metrics import NO_DIVISION
from labelspace.geometry import project
from labelspace.heads import GaussianHead
from labelspace.seeds import child_seed
from labelspace.training.uncertainty import entropy, outputs_of_states
from labelspace.training.uncertainty.objective import run
from uncertainty.selection import chosen_variants
from uncertainty.sets import SETS, Rows
from uncertainty.settings import Settings
from uncertainty.states import both, opened, states_of, vectors_of
from uncertainty.variants import ABLATIONS, GRID, GRID_SETS, MAIN, PARTS, Options, full_config, grid_twin

# The C of each probe: that of MTEB, or what the training rows choose among; on thousands of rows 100 may be too stiff.
PROBES: Mapping[str, tuple[float, ...]] = {"probe": (1.0,), "probe-tuned": (1.0, 10.0, 100.0, 1000.0)}
CURVE_POINTS = 50
# Figure 4: so many test rows of each label together, as in the paper.
SHOWN: Mapping[str, int] = {"imdb": 2000, "banking77": 770}
SHOWN_VARIANTS = tuple(f"{extractor}-{part}" for extractor in ("mean", "textcnn") for part in PARTS)
# Whose doubts are kept row by row: figure 5 rejects the answers of another model by the uncertainty of UCL, and
# differences of areas are drawn again over test rows.
KEPT: Mapping[str, tuple[str, ...]] = {
    "textcnn-ucl": ("uncertainty",),
    "textcnn-both": ("uncertainty", "entropy"),
    "textcnn-chosen": ("uncertainty", "entropy"),
    "attention-both-chosen": ("uncertainty", "entropy"),
}


def main_pieces(settings: Settings) -> Iterator[Piece]:
    """Tables 2, 3 and 7: linear probe and TextCNN; whole rounds first."""
    names = ("toxic_conversations",) if settings.small else tuple(SETS)
    variants = _variants(settings, "main", MAIN, ("textcnn-base", "textcnn-both"))
    for seed in settings.seeds:
        for name in names:
            if seed == settings.seeds[0]:
                for probe, choices in PROBES.items():
                    work = partial(_probe, settings, name, choices)
                    yield _piece(settings, "main", name, probe, 0, work, c_choices=choices)
            for variant, options in variants.items():
                yield _trained(settings, "main", name, variant, options, seed)


def ablation_pieces(settings: Settings) -> Iterator[Piece]:
    """Tables 4, 7 and 8: other extractors and contrastive parts."""
    names = ("toxic_conversations",) if settings.small else tuple(SETS)
    variants = _variants(settings, "ablations", ABLATIONS, ("attention-both", "mlp-base"))
    for seed in settings.seeds:
        for name in names:
            for variant, options in variants.items():
                yield _trained(settings, "ablations", name, variant, options, seed)


def grid_pieces(settings: Settings) -> Iterator[Piece]:
    """Figure 3: one option at a time, one seed; what is one of `main` is read from there."""
    for option, values in GRID.items():
        for value in values[:2] if settings.small else values:
            for name in ("toxic_conversations",) if settings.small else GRID_SETS:
                if grid_twin(option, value) is None:
                    yield _trained(settings, "grid", name, f"{option}-{value:g}", {option: value}, 0)


def _variants(settings: Settings, part: str, variants: Mapping[str, Options], few: Sequence[str]) -> dict[str, Options]:
    """Variants with the defaults, and those with chosen options where the choices are there."""
    own = {variant: variants[variant] for variant in few} if settings.small else dict(variants)
    return own | chosen_variants(settings, part)


def _trained(settings: Settings, part: str, name: str, variant: str, options: Options, seed: int) -> Piece:
    work = partial(_run, settings, name, variant, options, seed)
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
    settings: Settings, name: str, options: Options, seed: int, chosen: Sequence[int] | None = None
) -> tuple[GaussianHead, dict[str, Any]]:
    """Train a head on all rows, or on those chosen, and return it with what is to be known of the run."""
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
    ).to(encoder.backbone.device)
    place = {name: column for column, name in enumerate(names)}
    targets = np.array([place[truth] for truth in rows.truth], dtype=np.intp)
    curve = run(
        head,
        states,
        chosen,
        targets,
        config,
        device=encoder.backbone.device,
        dtype=encoder.backbone.dtype,
        seed=child_seed(seed, "training"),
    )
    if curve.stop_reason != "epochs":  # half a run is no result
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


def _run(settings: Settings, name: str, variant: str, options: Options, seed: int) -> dict[str, Any]:
    rows, test = both(settings, name)
    head, facts = trained_head(settings, name, options, seed)
    found = outputs_of_states(opened(settings), head, states_of(settings, name)[1], range(len(test)))
    result = {**scored(found.logits, found.uncertainty, test, sorted(set(rows.truth))), **facts, "rows": len(rows)}
    doubts = {"uncertainty": found.uncertainty, "entropy": entropy(found.logits, 1.0)}
    for by in KEPT.get(variant, ()):
        # One string: a number a line would be most of the repository. As many digits as float32 has:
        # what is rounded to the same would be in doubt alike.
        result[by] = " ".join(f"{value:.7g}" for value in doubts[by])
    if seed == 0 and name in SHOWN and variant in SHOWN_VARIANTS:
        result["points"] = _points(found.means, found.uncertainty, test, SHOWN[name])
    return result


def _points(means: NDArray[np.float32], uncertainty: NDArray[np.float32], test: Rows, most: int) -> str:
    """Places by t-SNE of as many test rows of each label, `x,y,label,uncertainty` each."""
    names = sorted(set(test.truth))
    own = {name: [row for row, truth in enumerate(test.truth) if truth == name] for name in names}
    drawn = [row for rows in own.values() for row in random.Random(0).sample(rows, min(most // len(names), len(rows)))]
    places = project(means[drawn], method="tsne", seed=0)
    points = zip(places, test.take(drawn).truth, uncertainty[drawn], strict=True)
    return " ".join(f"{x:.2f},{y:.2f},{names.index(truth)},{std:.4f}" for (x, y), truth, std in points)


def scored(
    logits: NDArray[np.float32], uncertainty: NDArray[np.float32], test: Rows, names: list[str]
) -> dict[str, Any]:
    """Return accuracy, macro-F1, and how well doubt finds the errors."""
    predicted = [names[column] for column in logits.argmax(axis=1)]
    right = np.array([one == own for one, own in zip(predicted, test.truth, strict=True)])
    doubts = {"entropy": entropy(logits, 1.0)}
    if np.ptp(uncertainty):
        doubts["uncertainty"] = uncertainty.astype(np.float64)
    curves = {by: rejection_curve(doubt, right) for by, doubt in doubts.items()}
    places = np.linspace(0, len(test) - 1, CURVE_POINTS).astype(int)
    result: dict[str, Any] = {
        "accuracy": float(right.mean()),
        "macro_f1_predicted": float(f1_score(test.truth, predicted, average="macro", **NO_DIVISION)),
        "test_rows": len(test),
        "labels": len(names),
        "right": "".join("01"[int(value)] for value in right),
        "area": {
            **{by: curve.area for by, curve in curves.items()},
            "random": curves["entropy"].area_random,
            "best": curves["entropy"].area_best,
        },
        "curve": {by: curve.accuracy[places].round(4).tolist() for by, curve in curves.items()},
    }
    if "uncertainty" in doubts:
        bands = difficulty(uncertainty, right)
        result["difficulty"] = {band.level: [band.documents, band.errors] for band in bands}
        result["std"] = np.quantile(uncertainty, [0.05, 0.5, 0.95]).round(4).tolist()
        order = np.argsort(uncertainty, kind="stable")
        result["error_by_third"] = [float(1 - right[third].mean()) for third in np.array_split(order, 3)]
    return result


def _probe(settings: Settings, name: str, choices: Sequence[float]) -> dict[str, Any]:
    """Logistic regression on the encoder's own vectors: with the one C, or with that chosen on the training rows."""
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
    return {
        **scored(logits, np.zeros(len(test), np.float32), test, names),
        "training_seconds": seconds,
        "rows": len(rows),
        "c": head.best_params_["C"] if tuned else head.C,
    }
