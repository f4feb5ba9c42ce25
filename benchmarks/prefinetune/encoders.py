"""Pre-finetuned encoders: made once, stored on disk, and made again if missing."""

import dataclasses
import functools
import shutil
from collections.abc import Iterator, Mapping
from functools import partial
from itertools import product
from pathlib import Path
from typing import Any

import numpy as np
import torch
from filelock import FileLock
from pieces import Piece
from store import digest

from labelspace import Encoder, prefinetune
from labelspace.config import PrefinetuneConfig
from labelspace.corpus import Pairs
from labelspace.errors import TrainingError
from labelspace.folders import sha256_of
from labelspace.header import peek
from labelspace.seeds import child_seed
from labelspace.training.prefinetune import PrefinetuneResult
from labelspace.training.prefinetune.measures import Yardstick
from prefinetune.printed import PRINTED, as_printed
from prefinetune.sets import TARGETS, UNNAMED_MIX, folder_of, mix_name, mix_names, read_mix, targets_of, train_side
from prefinetune.settings import SEEDS, Settings

METHODS: Mapping[str, dict[str, Any]] = {
    "pft": {"regularizer_weight": 0.0},
    "reze": {},
    "reze-mean": {"centre": "mean"},
}
UNSHRUNK = "reze-unshrunk"
"""Control: the pull towards the original encoder by itself, without shrinking; the paper has no such run."""
CONTROLS: Mapping[str, dict[str, Any]] = {UNSHRUNK: {"eta": 0.0}}
UNNAMED = {f"{method}-unnamed": method for method in ("pft", "reze")}
"""Controls whose encoders have seen no label name of a target, to measure the effect of label names in finance."""
# Figure 2; 0 is PFT and 1 is REZE.
WEIGHTS = (0.1, 0.5, 5.0, 10.0)
FEW_WEIGHTS = (0.5, 5.0)
SWEEP: Mapping[str, dict[str, Any]] = {f"reze-weight-{weight:g}": {"regularizer_weight": weight} for weight in WEIGHTS}
SWEEP_SEED = SEEDS[0]

# Target texts for measuring a space; more than the encoder's dimensions, as IsoScore is too low otherwise.
MEASURED = 1000


def encoder_pieces(settings: Settings) -> Iterator[Piece]:
    """Every method on every mix, one seed after the other; then figure 2's weights, one seed; then the controls."""
    mixes, seeds = mix_names(settings), settings.seeds
    runs = [(mix, method, seed) for seed, mix, method in product(seeds, mixes, METHODS)]
    runs += [(mix, method, SWEEP_SEED) for mix, method in product(mixes, sweep_methods(settings))]
    unnamed = [(UNNAMED_MIX, method) for method in UNNAMED.values() if not settings.per_target]
    runs += [(*control, seed) for seed in seeds for control in (*((mix, UNSHRUNK) for mix in mixes), *unnamed)]
    runs += [(mix, method, seed) for seed, mix, method in product(seeds, mixes, PRINTED)]
    for run in runs:
        yield _piece(settings, *run)


def unnamed_starts(settings: Settings, target: str) -> tuple[str, ...]:
    """Return the starts without label names of a target; only finance has sources with label names."""
    scored = TARGETS[target]
    there = scored.domain == "finance" and scored.task == "classification" and not settings.per_target
    return tuple(UNNAMED) if there else ()


def sweep_methods(settings: Settings) -> tuple[str, ...]:
    """Return the methods of figure 2 beside PFT and REZE; all weights only with the paper's mixes."""
    weights = FEW_WEIGHTS[1:] if settings.small else WEIGHTS if settings.per_target else FEW_WEIGHTS
    return tuple(f"reze-weight-{weight:g}" for weight in weights)


def _piece(settings: Settings, mix: str, method: str, seed: int) -> Piece:
    return Piece(
        part="encoders",
        name=f"{settings.short}_{mix}_{method}_seed{seed}",
        facts=settings.facts(mix=mix, method=method, seed=seed),
        work=partial(_run, settings, mix, method, seed),
        seeds=(seed,),
        data=f"shared/data/domain/{mix.partition('-without-')[0]}",
    )


def base(settings: Settings) -> Encoder:
    """Return the original encoder, opened once per process and never trained itself."""
    return _opened(settings.encoder, settings.max_tokens)


@functools.lru_cache(maxsize=1)
def _opened(name: str, max_tokens: int | None) -> Encoder:
    return Encoder(name, max_tokens=max_tokens)


def in_float32(encoder: Encoder) -> Encoder:
    """Switch an encoder to float32 and return it; its weights are float32 in any case."""
    encoder.backbone.dtype = torch.float32
    encoder.backbone.weights_changed()  # drop the cached bfloat16 copy
    return encoder


def starting_encoder(settings: Settings, target: str, start: str, seed: int) -> tuple[Encoder, str | None]:
    """Return the encoder that fine-tuning on a target starts from, and its checksum; None for the base."""
    if start == "base":
        return base(settings), None
    mix = UNNAMED_MIX if start in UNNAMED else mix_name(settings, target)
    return _reopened(make(settings, mix, UNNAMED.get(start, start), seed), settings.max_tokens)


@functools.lru_cache(maxsize=1)
def _reopened(folder: Path, max_tokens: int | None) -> tuple[Encoder, str]:
    return Encoder(folder, max_tokens=max_tokens), checksum(folder)


def place_of(settings: Settings, mix: str, method: str, seed: int) -> Path:
    """Return the folder of an encoder; its name ends in a hash of all that determines its bits on one machine."""
    decided = [settings.encoder, settings.max_tokens, config_of(method).to_dict()]
    decided += [read_mix(settings, mix).pairs.fingerprint(), seed]
    decided += [base(settings).dtype, torch.get_num_threads(), *([method] if method in PRINTED else [])]
    return settings.encoders / f"{settings.short}-{mix}-{method}-seed{seed}-{digest(decided, 10)}"


def config_of(method: str) -> PrefinetuneConfig:
    """Return the options of a method; all others are the paper's."""
    return PrefinetuneConfig(**{**METHODS, **SWEEP, **CONTROLS, **{key: {} for key in PRINTED}}[method])


def make(settings: Settings, mix: str, method: str, seed: int) -> Path:
    """Return the folder of an encoder, pre-finetuning it if missing; concurrent processes wait for the one that does.

    Raises:
        TrainingError: the encoder has collapsed to one vector for all texts, or its loss is not finite.
    """
    folder = place_of(settings, mix, method, seed)
    settings.encoders.mkdir(parents=True, exist_ok=True)
    with FileLock(folder.with_name(folder.name + ".lock")):
        if not folder.is_dir():
            _make(settings, mix, method, seed, folder)
    return folder


def _make(settings: Settings, mix: str, method: str, seed: int, folder: Path) -> None:
    work = folder.with_name(folder.name + ".unfinished")
    with as_printed(method):
        done = prefinetune(
            read_mix(settings, mix).pairs,
            base(settings),
            config_of(method),
            seed=seed,
            folder=work,
            resume=work.is_dir(),
        )
    notes = " ".join(done.result.notes)
    if not done.result.training.finished or "interrupted" in notes:  # an interrupted run is not a result
        raise KeyboardInterrupt
    if done.result.after is None:  # ends this piece only
        raise TrainingError(f"{mix}, {method}, seed {seed}: {notes}")
    done.save(folder)
    shutil.rmtree(work, ignore_errors=True)


def told_of(folder: Path) -> dict[str, Any]:
    """Return the result of the run that made an encoder, saved beside it."""
    header = peek(folder)
    return {field.name: header[field.name] for field in dataclasses.fields(PrefinetuneResult)}


def checksum(folder: Path) -> str:
    """Return the sha256 of an encoder's weights."""
    return sha256_of(folder / "model.safetensors")


def _run(settings: Settings, mix: str, method: str, seed: int) -> dict[str, Any]:
    found = read_mix(settings, mix)
    folder = make(settings, mix, method, seed)  # may exist already, made by another piece
    told = told_of(folder)
    told["encoder"]["name"] = settings.short  # no path in a result
    looks = told["training"].pop("looks")
    told["training"]["losses"] = [looks[0]["main"], looks[-1]["main"]]
    return {
        "mix_pairs": {
            "left_out": list(found.left_out),
            "dropped": dict(found.dropped),
            "drawn": found.pairs.counts(),
            "there": dict(zip(found.pairs.sources, found.pairs.seen, strict=True)),
        },
        "result": told,
        "targets": _targets(settings, mix, folder),
        "folder": folder.name,
        "sha256": checksum(folder),
    }


def _targets(settings: Settings, mix: str, folder: Path) -> dict[str, Any]:
    """Measure the space before and after on target texts, which no pre-finetuning has seen."""
    yardstick, rows = _yardstick(settings, targets_of(settings, mix))
    vectors = (rows, yardstick.vectors(_reopened(folder, settings.max_tokens)[0]))
    before, after = (yardstick.measure(rows) for rows in vectors)
    shift = yardstick.compare(*vectors)
    return {
        "texts": len(yardstick.texts),
        **{name: [getattr(before, name), getattr(after, name)] for name in ("isoscore", "uniformity", "alignment")},
        "drift": shift.drift,
        "neighbours_kept": shift.neighbours_kept,
    }


@functools.lru_cache(maxsize=2)
def _yardstick(settings: Settings, names: tuple[str, ...]) -> tuple[Yardstick, Any]:
    """Return the measure of a space on some targets, and the original encoder's vectors."""
    yardstick = Yardstick(target_pairs(settings, names), seed=0)
    return yardstick, yardstick.vectors(base(settings))


def target_pairs(settings: Settings, names: tuple[str, ...], most: int = MEASURED) -> Pairs:
    """Draw pairs from the train sides of some targets, equally many from each."""
    anchors, positives, numbers, seen = [], [], [], []
    for number, name in enumerate(names):
        rows = train_side(folder_of(settings, name), TARGETS[name].task)
        draw = np.random.default_rng(child_seed(0, "measured", name)).permutation(len(rows))[: most // len(names)]
        anchors += [rows.texts[row] for row in draw]
        positives += [rows.positives[row] for row in draw]
        numbers += [number] * len(draw)
        seen.append(len(rows))
    return Pairs(
        anchors=tuple(anchors),
        positives=tuple(positives),
        source_ids=tuple(numbers),
        sources=names,
        seen=tuple(seen),
    )
