"""Tables 2 and 3 and figure 2: fine-tune on a target, map its vectors or not, and score a linear head or a search.

Fine-tuning uses the main loss on the target's own pairs: a text with its label's name, a query with its document.
Whitening and flow are fitted on the fine-tuned encoder's vectors of these pairs, and applied to everything that is
scored (section 4.1.3). Vectors are normalised before a head, also after a map. The C of a head is chosen with maps
fitted without the held-out fold. All mapped or scored vectors are computed in float32, as in the paper (appendix B):
whitening scales the smallest variances up to 1, including bfloat16's rounding errors.
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
from prefinetune.printed import PRINTED
from prefinetune.ranking import ndcg
from prefinetune.sets import TARGETS, Rows, search_of, sizes, targets, test_rows, train_rows
from prefinetune.settings import SCORED_IN, SIZES, Settings

Matrix = NDArray[np.floating]
Map = Callable[[Matrix], Matrix]
Fit = Callable[[Matrix], Map]
Scores = dict[str, dict[str, float]]

UNTUNED = "untuned"
"""The base encoder without fine-tuning; other starts are `"base"`, the paper's FT, and the methods."""

UNTUNED_METHODS = {f"{method}-{UNTUNED}": method for method in ("pft", "reze", UNSHRUNK)}
"""Pre-finetuned encoders without fine-tuning, the only option without rows of the target."""

MAPS = ("none", "whitening", "flow")


def main_pieces(settings: Settings) -> Iterator[Piece]:
    """Every start on every target, one seed after the other; flows for PFT only, table 3 with the most rows."""
    rounds = _rounds(settings)
    for seed, (target, size), start in product(settings.seeds, rounds, (UNTUNED, "base", *METHODS)):
        if start != "reze-mean" or size == max(sizes(settings, target)):
            maps = MAPS if start == "pft" or settings.per_target else MAPS[:1] if start == "reze-mean" else MAPS[:2]
            yield _piece(settings, "main", target, start, size, seed, maps)
    for seed, (target, size) in product(settings.seeds, rounds):
        unnamed = (
            unnamed_starts(settings, target) if size == min(SIZES) else ()
        )  # few rows, where label names may matter
        for start in (*UNTUNED_METHODS, UNSHRUNK, *unnamed):
            yield _piece(settings, "main", target, start, size, seed, MAPS[:1])
    for seed, (target, size), start in product(settings.seeds, rounds, PRINTED):
        yield _piece(settings, "main", target, start, size, seed, MAPS[:1])


def sweep_pieces(settings: Settings) -> Iterator[Piece]:
    """Figure 2: weights other than 0 (PFT) and 1 (REZE), one seed, no map, the fewest and the most rows."""
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
    """Train an encoder on all pairs of a target by the main loss, with the options of pre-finetuning."""
    pairs = Pairs(
        anchors=rows.texts,
        positives=rows.positives,
        source_ids=(0,) * len(rows),
        sources=(target,),
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
    # Cached, as all sizes and seeds of the untuned base share test rows and corpora; the largest takes 12 MB.
    return untuned(settings).encode(texts)


@lru_cache(maxsize=1)
def untuned(settings: Settings) -> Encoder:
    """Return the original encoder for scoring."""
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
    """Fit a linear probe on the labelled rows, with C chosen on them, and score the test rows."""
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
    """Choose the C of a head by five folds, each with a map fitted on the other four; ties go to the smallest.

    The map must not see the held-out fold: whitening fitted on no more rows than dimensions puts them all at the same
    distance, so every C would score alike. Without a map this is the search of `probe.linear_probe(tuned=True)`.
    """
    names = np.array(labels, dtype=object)
    right = []
    # Not stratified, because some labels have only two rows.
    for train, held_out in KFold(5, shuffle=True, random_state=0).split(vectors):
        apply = fit(vectors[train])
        seen, unseen = unit(apply(vectors[train])), unit(apply(vectors[held_out]))
        right.append([head_of(c).fit(seen, names[train]).score(unseen, names[held_out]) for c in CHOICES])
    return CHOICES[int(np.mean(right, axis=0).argmax())]


def head_of(c: float) -> Any:
    """Return an unfitted linear head."""
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
    """Score with each map; a map that cannot be fitted, or gives non-finite values, is reported and left out.

    Args:
        maps: names of `MAPS`.
        fitted_on: vectors of the target's rows.
        seed: seed of a flow.
        score: makes scores from the map fitted on these vectors, and from a function that fits one on others.
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
    """Fit a map, and return it with its facts."""
    if name == "flow":
        flow = fit_flow(vectors, seed=seed)
        return partial(finite, flow.apply), {"flow": flow_facts(flow)}
    return partial(finite, fit_whitening(vectors).apply if name == "whitening" else np.asarray), {}


def finite(apply: Map, vectors: Matrix) -> Matrix:
    """Map vectors and check them, because a search would accept infinite values.

    Raises:
        InputError: a mapped value is not finite.
    """
    found = apply(vectors)
    broken = int((~np.isfinite(found).all(axis=1)).sum())
    if broken:
        raise InputError(f"{broken} of {len(found)} vectors are not finite after the map.")
    return found


def flow_facts(flow: Flow) -> dict[str, Any]:
    """Return the facts of a flow's training: epochs, best epoch, and both parts' loss before and at the best epoch."""
    parts = {"train": flow.losses, "held_out": flow.held_out_losses}
    ends = {name: [losses[0], losses[flow.kept_epoch]] for name, losses in parts.items() if losses}
    return {"epochs": len(flow.losses) - 1, "kept_epoch": flow.kept_epoch, "losses": ends}


def unit(vectors: Matrix) -> Matrix:
    """Normalise vectors to length 1; a zero vector stays."""
    lengths = np.linalg.norm(vectors, axis=1, keepdims=True)
    return vectors / np.where(lengths > 0, lengths, 1.0)
