"""Train a head from stored token states, and score it once on test rows that nothing was chosen by."""

import functools
import random
import time
import warnings
from collections.abc import Iterator
from functools import partial
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from pieces import Piece
from probe import linear_probe
from sklearn.metrics import f1_score

from labelspace import Encoder
from labelspace.config import UncertaintyConfig
from labelspace.encoders.state_cache import StateCache, TokenStates
from labelspace.errors import LabelSpaceWarning
from labelspace.evaluate import difficulty, rejection_curve
from labelspace.evaluate.metrics import NO_DIVISION
from labelspace.geometry import project
from labelspace.heads import GaussianHead
from labelspace.seeds import child_seed
from labelspace.training.uncertainty import entropy, outputs_of_states
from labelspace.training.uncertainty.loop import run
from uncertainty.sets import SETS, Rows, test_rows, train_rows
from uncertainty.settings import Settings
from uncertainty.variants import ABLATIONS, GRID, GRID_SETS, MAIN, Options

PROBES = ("probe", "probe-tuned")
STATES_BYTES = 30 * 1024**3
CURVE_POINTS = 50
SHOWN = ("imdb", "banking77")
SHOWN_VARIANTS = ("mean-base", "mean-both", "textcnn-base", "textcnn-both")
POINTS = 600
# Whose doubts are kept text by text: figure 5 rejects the answers of another model by them.
KEPT_DOUBTS = ("textcnn-ucl", "textcnn-both")


def main_pieces(settings: Settings) -> Iterator[Piece]:
    """Tables 2, 3 and 7: linear probe and TextCNN; whole rounds first."""
    names = ("toxic_conversations",) if settings.small else tuple(SETS)
    variants = ("textcnn-base", "textcnn-both") if settings.small else tuple(MAIN)
    for seed in settings.seeds:
        for name in names:
            if seed == settings.seeds[0]:
                for probe in PROBES:
                    yield _piece(settings, "main", name, probe, 0, partial(_probe, settings, name, probe))
            for variant in variants:
                yield _trained(settings, "main", name, variant, MAIN[variant], seed)


def ablation_pieces(settings: Settings) -> Iterator[Piece]:
    """Tables 4, 7 and 8: other extractors and contrastive parts."""
    names = ("toxic_conversations",) if settings.small else tuple(SETS)
    variants = ("attention-both", "mlp-base") if settings.small else tuple(ABLATIONS)
    for seed in settings.seeds:
        for name in names:
            for variant in variants:
                yield _trained(settings, "ablations", name, variant, ABLATIONS[variant], seed)


def grid_pieces(settings: Settings) -> Iterator[Piece]:
    """Figure 3: one option at a time, one seed."""
    for option, values in GRID.items():
        for value in values[:2] if settings.small else values:
            for name in ("toxic_conversations",) if settings.small else GRID_SETS:
                yield _trained(settings, "grid", name, f"{option}-{value:g}", {option: value}, 0)


def map_pieces(settings: Settings) -> Iterator[Piece]:
    """Figure 4: test rows as training places them."""
    for name in ("toxic_conversations",) if settings.small else SHOWN:
        for variant in SHOWN_VARIANTS:
            options = {**MAIN, **ABLATIONS}[variant]
            yield _piece(settings, "maps", name, variant, 0, partial(_map, settings, name, options))


def _trained(settings: Settings, part: str, name: str, variant: str, options: Options, seed: int) -> Piece:
    return _piece(settings, part, name, variant, seed, partial(_run, settings, name, options, seed))


def _piece(settings: Settings, part: str, name: str, variant: str, seed: int, work: Any) -> Piece:
    return Piece(
        part=part,
        name=f"{settings.short}_{name}_{variant}_seed{seed}",
        facts=settings.facts(set=name, variant=variant, seed=seed),
        work=work,
        seeds=(seed,),
        data=f"shared/data/mteb/{name}",
    )


_OPENED: dict[str, Encoder] = {}


def opened(settings: Settings) -> Encoder:
    """The encoder, opened once."""
    if settings.encoder not in _OPENED:
        _OPENED[settings.encoder] = Encoder(settings.encoder, max_tokens=settings.max_tokens)
    return _OPENED[settings.encoder]


@functools.lru_cache(maxsize=1)
def states_of(settings: Settings, name: str) -> tuple[TokenStates, TokenStates]:
    """Token states of the rows to train on and of the scored ones, computed by the first run that needs them."""
    encoder, cache = opened(settings), StateCache(settings.states, STATES_BYTES)
    with warnings.catch_warnings():
        # Without a cache every epoch would encode again, for hours.
        warnings.simplefilter("error", LabelSpaceWarning)
        train, test = (cache.open(encoder, encoder.tokenize(rows.texts)) for rows in both(settings, name))
    return train, test


def both(settings: Settings, name: str) -> tuple[Rows, Rows]:
    """Rows to train on, and scored ones."""
    return train_rows(name, settings.data, settings.rows), test_rows(name, settings.data, settings.test_rows)


def trained_head(settings: Settings, name: str, options: Options, seed: int) -> tuple[GaussianHead, dict[str, Any]]:
    """Train a head on all rows, and return it with what is to be known of the run."""
    config = UncertaintyConfig(validation=0.0, **options)
    encoder = opened(settings)
    rows, states = both(settings, name)[0], states_of(settings, name)[0]
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
        range(len(rows)),
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
        "config": config.to_dict(),
        "epochs": curve.epochs,
        "steps": curve.steps,
        "last_loss": float(np.mean(curve.losses[-10:])),
        "training_seconds": curve.seconds,
        "parameters": sum(values.numel() for values in head.parameters()),
    }
    return head, facts


def _run(settings: Settings, name: str, options: Options, seed: int) -> dict[str, Any]:
    rows, test = both(settings, name)
    head, facts = trained_head(settings, name, options, seed)
    found = outputs_of_states(opened(settings), head, states_of(settings, name)[1], range(len(test)))
    result = {**scored(found.logits, found.uncertainty, test, sorted(set(rows.truth))), **facts, "rows": len(rows)}
    if options in [MAIN[variant] for variant in KEPT_DOUBTS]:
        doubts = {"uncertainty": found.uncertainty, "entropy": entropy(found.logits, 1.0)}
        result["doubts"] = {by: doubt.astype(np.float64).round(5).tolist() for by, doubt in doubts.items()}
    return result


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
        "macro_f1": float(f1_score(test.truth, predicted, average="macro", **NO_DIVISION)),
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
    return result


def _probe(settings: Settings, name: str, probe: str) -> dict[str, Any]:
    """Logistic regression on the encoder's own vectors: as MTEB has it, or with its C chosen on the training rows."""
    rows, test = both(settings, name)
    names = sorted(set(rows.truth))
    vectors, test_vectors = _vectors(settings, name)
    started = time.perf_counter()
    head = linear_probe(tuned=probe == "probe-tuned")
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
        "c": 1.0 if probe == "probe" else head.best_params_["C"],
    }


@functools.lru_cache(maxsize=1)
def _vectors(settings: Settings, name: str) -> tuple[NDArray[np.float32], NDArray[np.float32]]:
    """The encoder's own vectors of the rows to train on and of the scored ones; two probes need them."""
    train, test = (opened(settings).encode(rows.texts) for rows in both(settings, name))
    return train, test


def _map(settings: Settings, name: str, options: Options) -> dict[str, Any]:
    test = both(settings, name)[1]
    # The files are in the order of their labels.
    drawn = sorted(random.Random(0).sample(range(len(test)), min(POINTS, len(test))))
    head, facts = trained_head(settings, name, options, 0)
    found = outputs_of_states(opened(settings), head, states_of(settings, name)[1], drawn)
    places = project(found.means, method="tsne", seed=0).round(3).tolist()
    points = [
        [*place, truth, round(float(std), 4)]
        for place, truth, std in zip(places, test.take(drawn).truth, found.uncertainty, strict=True)
    ]
    return {**facts, "points": points}
