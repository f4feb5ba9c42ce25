"""Tables 2 and 3 and figure 2: fine-tune on a target, map its vectors or not, and score a linear head or a search.

Fine-tuning is the main loss on the target's own pairs: a text with its label's name, a query with its document.
Whitening and flow are fitted on the vectors of these pairs by the fine-tuned encoder, and map everything that is scored
(section 4.1.3). Vectors have unit length before a head sees them, also after a map. The C of a head is chosen behind
maps that have not seen the rows it is chosen by. All vectors that are mapped or scored are computed in float32, as in
the paper (appendix B): whitening raises the smallest variances to 1, with all that bfloat16 leaves there.
"""

from collections.abc import Callable, Iterator, Sequence
from functools import lru_cache, partial
from itertools import product
from typing import Any

import numpy as np
from numpy.typing import NDArray
from pieces import Piece
from probe import CHOICES, linear_probe
from scoring import accuracy_and_macro_f1
from sklearn.model_selection import KFold

from labelspace import Encoder
from labelspace.config import PrefinetuneConfig
from labelspace.corpus import Pairs
from labelspace.errors import InputError, LabelSpaceError, MissingDependencyError
from labelspace.geometry import Flow, fit_flow, fit_whitening
from labelspace.seeds import child_seed
from labelspace.training import engine
from labelspace.training.prefinetune.objective import PrefinetuneObjective
from labelspace.training.trainable import trainable_weights
from prefinetune.encoders import (
    METHODS,
    SWEEP_SEED,
    UNSHRUNK,
    base,
    in_float32,
    starting_encoder,
    sweep_methods,
    unnamed_starts,
)
from prefinetune.ranking import ndcg
from prefinetune.sets import TARGETS, Rows, search_of, sizes, targets, test_rows, train_rows
from prefinetune.settings import SCORED_IN, SIZES, Settings

Matrix = NDArray[np.floating]
Map = Callable[[Matrix], Matrix]
Fit = Callable[[Matrix], Map]
Scores = dict[str, dict[str, float]]

UNTUNED = "untuned"
"""The base encoder without fine-tuning; the other starts are `"base"`, which is the paper's FT, and the methods."""

UNTUNED_METHODS = {f"{method}-{UNTUNED}": method for method in ("pft", "reze", UNSHRUNK)}
"""Pre-finetuned encoders without fine-tuning, which is all that can be had without rows of the target."""

MAPS = ("none", "whitening", "flow")


def main_pieces(settings: Settings) -> Iterator[Piece]:
    """Every start on every target, whole rounds first; flows for PFT alone, table 3 with the most rows, as there."""
    rounds = _rounds(settings)
    for seed, (target, size), start in product(settings.seeds, rounds, (UNTUNED, "base", *METHODS)):
        if start != "reze-mean" or size == max(sizes(settings, target)):
            maps = MAPS if start == "pft" or settings.per_target else MAPS[:1] if start == "reze-mean" else MAPS[:2]
            yield _piece(settings, "main", target, start, size, seed, maps)
    for seed, (target, size) in product(settings.seeds, rounds):
        unnamed = unnamed_starts(settings, target) if size == min(SIZES) else ()  # few rows, where names may matter
        for start in (*UNTUNED_METHODS, UNSHRUNK, *unnamed):
            yield _piece(settings, "main", target, start, size, seed, MAPS[:1])


def sweep_pieces(settings: Settings) -> Iterator[Piece]:
    """Figure 2: the weights beside 0 (PFT) and 1 (REZE), one seed, no map, the fewest and the most rows."""
    for target, size in _rounds(settings):
        there = sizes(settings, target)
        if size not in (there[0], there[-1]) and not settings.per_target:
            continue
        for start in sweep_methods(settings):
            yield _piece(settings, "sweep", target, start, size, SWEEP_SEED, ("none",))


def _rounds(settings: Settings) -> list[tuple[str, int]]:
    there = {target: sizes(settings, target) for target in targets(settings)}
    every = sorted({size for own in there.values() for size in own})
    return [(target, size) for size in every for target in there if size in there[target]]


def _piece(
    settings: Settings, part: str, target: str, start: str, size: int, seed: int, maps: tuple[str, ...]
) -> Piece:
    return Piece(
        part=part,
        name=f"{settings.short}_{target}_{start}_{size}_seed{seed}",
        facts=settings.facts(target=target, start=start, rows_wanted=size, seed=seed),
        work=partial(_run, settings, target, start, size, seed, maps),
        seeds=(seed,),
        data=f"shared/data/domain/{TARGETS[target].domain}/{target}",
        dtype=SCORED_IN,
    )


def _run(settings: Settings, target: str, start: str, size: int, seed: int, maps: tuple[str, ...]) -> dict[str, Any]:
    rows = train_rows(settings, target, size, seed)
    facts: dict[str, Any] = {"rows": len(rows)}
    if start == UNTUNED:
        encoder, encode = untuned(settings), partial(_encoded_by_base, settings)
    elif start in UNTUNED_METHODS:
        before, facts["start_sha256"] = starting_encoder(settings, target, UNTUNED_METHODS[start], seed)
        encoder = in_float32(before.copy())
        encode = encoder.encode
    else:
        before, facts["start_sha256"] = starting_encoder(settings, target, start, seed)
        encoder = before.copy()
        facts |= fine_tune(encoder, rows, target, seed)
        encode = in_float32(encoder).encode
    score = classified if TARGETS[target].task == "classification" else searched
    return {**facts, **score(settings, target, rows, encoder, encode, maps, seed)}


def fine_tune(encoder: Encoder, rows: Rows, target: str, seed: int) -> dict[str, Any]:
    """Train an encoder on the pairs of a target, all of them, by the main loss with the options of pre-finetuning."""
    pairs = Pairs(
        anchors=rows.texts,
        positives=rows.positives,
        source_ids=(0,) * len(rows),
        sources=(target,),
        task_types=(TARGETS[target].task,),
        seen=(len(rows),),
    )
    config = PrefinetuneConfig(regularizer_weight=0.0)
    with trainable_weights(encoder.backbone) as weights:
        seed = child_seed(seed, "fine-tuning")
        training = engine.train(PrefinetuneObjective(encoder, weights, pairs, None, config, seed=seed))
    if not training.finished:
        raise KeyboardInterrupt
    return {
        "training_seconds": training.seconds,
        "trained_in": encoder.dtype,
        "steps": training.total_steps,
        "losses": [training.looks[0].main, training.looks[-1].main],
        "config": config.to_dict(),
    }


@lru_cache(maxsize=16)
def _encoded_by_base(settings: Settings, texts: tuple[str, ...]) -> Matrix:
    # Test rows and corpora that every size and seed of the untuned base has in common; the largest is 12 MB.
    return untuned(settings).encode(texts)


@lru_cache(maxsize=1)
def untuned(settings: Settings) -> Encoder:
    """Return the encoder as it came, to be scored."""
    return in_float32(base(settings).copy())


def classified(
    settings: Settings,
    target: str,
    rows: Rows,
    encoder: Encoder,
    encode: Callable[[tuple[str, ...]], Matrix],
    maps: Sequence[str],
    seed: int,
) -> dict[str, Any]:
    """Fit a linear probe, its C chosen on the labelled rows, on their vectors, and score the test rows by it."""
    test = test_rows(settings, target)
    train_vectors, test_vectors = encoder.encode(rows.texts), encode(test.texts)

    def score(apply: Map, fit: Fit) -> dict[str, float]:
        chosen_c = choose_c(fit, train_vectors, rows.positives)
        head = head_of(chosen_c).fit(unit(apply(train_vectors)), rows.positives)
        chosen = head.predict(unit(apply(test_vectors)))
        found = accuracy_and_macro_f1(test.positives, chosen)
        return {"score": found["accuracy"], **found, "C": chosen_c}

    return {**mapped(maps, train_vectors, seed, score), "test_rows": len(test)}


def choose_c(fit: Fit, vectors: Matrix, labels: Sequence[str]) -> float:
    """Choose the C of a head by five folds, each behind a map of the other four; the smallest of the best.

    A map that has seen a fold tells nothing of it: whitening puts no more rows than coordinates all at the same
    distance, and any C would do. Without a map this is the search of `probe.linear_probe(tuned=True)`.
    """
    names = np.array(labels, dtype=object)
    right = []
    # Folds without classes: some labels have two rows.
    for train, held_out in KFold(5, shuffle=True, random_state=0).split(vectors):
        apply = fit(vectors[train])
        seen, unseen = unit(apply(vectors[train])), unit(apply(vectors[held_out]))
        right.append([head_of(c).fit(seen, names[train]).score(unseen, names[held_out]) for c in CHOICES])
    return CHOICES[int(np.mean(right, axis=0).argmax())]


def head_of(c: float) -> Any:
    """Return a linear head to be fitted."""
    return linear_probe(tuned=False).set_params(C=c)


def searched(
    settings: Settings,
    target: str,
    rows: Rows,
    encoder: Encoder,
    encode: Callable[[tuple[str, ...]], Matrix],
    maps: Sequence[str],
    seed: int,
) -> dict[str, Any]:
    """Search the whole corpus by cosine, and score the first ten documents of each query."""
    search = search_of(settings, target)
    train_vectors = encoder.encode(list(dict.fromkeys([*rows.texts, *rows.positives])))
    queries, documents = encode(search.queries), encode(search.documents)

    def score(apply: Map, _fit: Fit) -> dict[str, float]:
        found = float(ndcg(unit(apply(queries)) @ unit(apply(documents)).T, search.relevant).mean())
        return {"score": found, "ndcg@10": found}

    found = mapped(maps, train_vectors, seed, score)
    return {**found, "test_rows": len(search.queries), "documents": len(search.documents)}


def mapped(
    maps: Sequence[str], fitted_on: Matrix, seed: int, score: Callable[[Map, Fit], dict[str, float]]
) -> dict[str, Any]:
    """Score behind each map; one that cannot be fitted, or makes what is no number, is told and left out.

    Args:
        maps: of `MAPS`.
        fitted_on: vectors of the rows of the target.
        seed: of a flow.
        score: from the map of these vectors, and from what makes one of others.
    """
    scores: Scores = {}
    told: dict[str, Any] = {}
    for name in maps:
        try:
            apply, facts = fit_map(name, seed, fitted_on)
            scores[name] = score(apply, lambda vectors, name=name: fit_map(name, seed, vectors)[0])
            told |= facts
        except MissingDependencyError:
            raise
        except (LabelSpaceError, ValueError) as error:
            told.setdefault("failed", {})[name] = f"{type(error).__name__}: {error}"
    return {"scores": scores, **told}


def fit_map(name: str, seed: int, vectors: Matrix) -> tuple[Map, dict[str, Any]]:
    """Fit a map, and say what is to be told of it."""
    if name == "flow":
        flow = fit_flow(vectors, seed=seed)
        return partial(finite, flow.apply), {"flow": flow_facts(flow)}
    return partial(finite, fit_whitening(vectors).apply if name == "whitening" else np.asarray), {}


def finite(apply: Map, vectors: Matrix) -> Matrix:
    """Map vectors; a search would take an infinity for a vector like others.

    Raises:
        InputError: a value is not finite afterwards.
    """
    found = apply(vectors)
    broken = int((~np.isfinite(found).all(axis=1)).sum())
    if broken:
        raise InputError(f"{broken} of {len(found)} vectors are not finite behind the map.")
    return found


def flow_facts(flow: Flow) -> dict[str, Any]:
    """Say how a flow was trained: epochs, the one kept, and the loss of both parts before training and there."""
    parts = {"train": flow.losses, "held_out": flow.held_out_losses}
    ends = {name: [losses[0], losses[flow.kept_epoch]] for name, losses in parts.items() if losses}
    return {"epochs": len(flow.losses) - 1, "kept_epoch": flow.kept_epoch, "losses": ends}


def unit(vectors: Matrix) -> Matrix:
    """Return vectors of length 1; one of length 0 stays."""
    lengths = np.linalg.norm(vectors, axis=1, keepdims=True)
    return vectors / np.where(lengths > 0, lengths, 1.0)
