"""Texts longer than the encoder reads: cut, or in windows, by how many windows count and how far they overlap.

python benchmarks/run.py long-texts

The label files are those of `examples/`. Train rows choose, test rows are reported.
"""

import argparse
import random
from collections.abc import Iterator
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np
import pieces
from layout import NOT_YET, markdown
from pieces import Piece
from runner import Study
from scoring import accuracy_and_macro_f1
from store import frame
from tasks import ROOT, load_rows

from labelspace import DescriptionClassifier, Encoder, LabelSpace, ZeroShotClassifier
from labelspace.classify.long_texts import BEST, OVERLAP, joined, scores_of_windows
from labelspace.seeds import child_seed

LIMITS = (256, 128)
"""Tokens that the encoder reads: its own limit, and half of it, so that more texts are long."""

OVERLAPS = (0.0, 0.25)
COUNTS: tuple[int | None, ...] = (1, 2, 3, None)
"""Windows whose mean is a label's score; None: all."""

VARIANTS = [None, *((overlap, best) for overlap in OVERLAPS for best in COUNTS)]
"""Ways to read long texts, in the order of the scores of a row; None: cut."""

CHOSEN = (OVERLAP, BEST)
"""The way of the library."""

SETS = {
    "imdb": ("mteb/imdb", "rottentomatoes.yaml", "IMDB"),
    "joined": ("btzsc/agnews", "agnews.yaml", "joined news"),
}
"""Data, label file and title of each set."""

OF_TRUTH, OF_OTHERS = 4, 2
"""Parts of a joined document: texts of its label, and of each other label, in random order."""

STEPS = 60
"""Updates on the descriptions, as for a view of a consensus."""


@dataclass(frozen=True, kw_only=True)
class Settings(pieces.Settings):
    """Settings of all pieces of one call."""

    rows: int = 500
    """Documents of each split."""


def pieces_of(settings: Settings) -> Iterator[Piece]:
    """Make a piece for each set and model."""
    for task in list(SETS)[:1] if settings.small else SETS:
        for trained in (False,) if settings.small else (False, True):
            yield Piece(
                part="windows",
                name=f"{task}_{'trained' if trained else 'untrained'}",
                facts={"task": task, "trained": trained, "rows": settings.rows, "seed": 0},
                work=partial(run, settings, task, trained=trained),
                seeds=(0,),
                data=SETS[task][0],
            )


def run(settings: Settings, task: str, *, trained: bool) -> dict[str, Any]:
    """Score every way to read long texts at each limit, on train rows and on test rows."""
    found: dict[str, Any] = {}
    for limit in LIMITS:
        model = _model(settings.encoder, task, limit, trained=trained)
        own: dict[str, Any] = {}
        for split in ("train", "test"):
            texts, truth = documents(settings, task, split)
            own[split], own["tokens"] = scored(model, texts, truth)
        counts = model.encoder_.count_tokens(texts)
        found[str(limit)] = own | {"long": round(float(np.mean(np.array(counts) > limit)), 2)}
    return found


def scored(model: Any, texts: list[str], truth: list[str]) -> tuple[list[float], list[float]]:
    """Return macro-F1 of each variant, and for each overlap the tokens read, in multiples of those of cut texts."""
    space, encoder = model.label_space_, model.encoder_
    cut = model.head_.judge(texts, space).scores
    by_variant: dict[Any, Any] = {None: cut}
    tokens = [sum(map(len, encoder.tokenize(texts)))]

    def compare(windows: list[str]) -> Any:
        tokens[-1] += sum(map(len, encoder.tokenize(windows)))
        return model.head_.judge(windows, space).scores

    for overlap in OVERLAPS:
        tokens.append(tokens[0])
        by_variant |= {(overlap, best): cut.copy() for best in COUNTS}
        for rows, found in scores_of_windows(encoder, texts, cut, compare, overlap=overlap):
            for best in COUNTS:
                by_variant[overlap, best][rows] = joined(found, best)
    names = np.array(space.names, dtype=object)
    scores = [
        round(accuracy_and_macro_f1(truth, names[by_variant[each].argmax(axis=1)])["macro_f1"], 3) for each in VARIANTS
    ]
    return scores, [round(own / tokens[0], 2) for own in tokens[1:]]


def documents(settings: Settings, task: str, split: str) -> tuple[list[str], list[str]]:
    """Return documents and their labels, drawn from a split."""
    folder, file, _ = SETS[task]
    space, draw = _space(file), random.Random(child_seed(0, task, split))
    rows = list(zip(*load_rows(settings.data / folder, split, space), strict=True))
    if task != "joined":
        return tuple(map(list, zip(*draw.sample(rows, settings.rows), strict=True)))
    texts = {name: [text for text, own in rows if own == name] for name in space.names}
    truth = [space.names[number % len(space)] for number in range(settings.rows)]
    return [_joined(draw, texts, name) for name in truth], truth


def _joined(draw: random.Random, texts: dict[str, list[str]], truth: str) -> str:
    """Join texts of several labels, most of them of one."""
    parts = [text for name, own in texts.items() for text in draw.sample(own, OF_TRUTH if name == truth else OF_OTHERS)]
    draw.shuffle(parts)
    return " ".join(parts)


def _space(file: str) -> LabelSpace:
    return LabelSpace.from_file(ROOT / "examples" / file)


def _model(encoder: str, task: str, limit: int, *, trained: bool) -> Any:
    own, space = Encoder(encoder, max_tokens=limit), _space(SETS[task][1])
    return DescriptionClassifier(space, own, max_steps=STEPS).fit() if trained else ZeroShotClassifier(space, own).fit()


def choice() -> str:
    """Mean macro-F1 on train rows of each way to read long texts, and what it costs."""
    runs = frame("long-texts", "windows")
    if runs.empty:
        return NOT_YET
    rows = []
    for place, variant in enumerate(VARIANTS):
        means = [
            np.mean([run[f"{limit}.train"][place] for _, run in own.iterrows() for limit in LIMITS])
            for own in (runs[runs["task"] == task] for task in SETS)
        ]
        tokens = np.mean([_tokens(run, limit, variant) for _, run in runs.iterrows() for limit in LIMITS])
        rows.append([_title(variant), *(f"{mean:.3f}" for mean in (*means, np.mean(means))), f"{tokens:.1f}"])
    return markdown(["", *(title for *_, title in SETS.values()), "mean", "tokens read, to cut"], rows)


def table() -> str:
    """Macro-F1 on test rows of cut texts, and of windows as the library reads them."""
    runs = frame("long-texts", "windows")
    rows = []
    for _, run in runs.iterrows():
        for limit in LIMITS:
            cut, windows = (run[f"{limit}.test"][VARIANTS.index(each)] for each in (None, CHOSEN))
            name = f"{SETS[run['task']][2]}, {'trained' if run['trained'] else 'untrained'}, {limit} tokens"
            scores = [f"{cut:.3f}", f"{windows:.3f}", f"{windows - cut:+.3f}"]
            rows.append([name, f"{run[f'{limit}.long']:.0%}", *scores, f"{_tokens(run, limit, CHOSEN):.1f}"])
    return markdown(["", "long texts", "cut", "windows", "change", "tokens read, to cut"], rows)


def _tokens(run: Any, limit: int, variant: tuple[float, int | None] | None) -> float:
    return 1.0 if variant is None else run[f"{limit}.tokens"][OVERLAPS.index(variant[0])]


def _title(variant: tuple[float, int | None] | None) -> str:
    if variant is None:
        return "cut"
    overlap, best = variant
    own = " (the library's)" if variant == CHOSEN else ""
    return f"{'all windows' if best is None else f'best {best}'}, overlap {overlap:g}{own}"


def _settings(_options: argparse.Namespace, **common: Any) -> Settings:
    return Settings(**common, rows=20 if common["small"] else Settings.rows)


STUDY = Study(
    name="long-texts",
    doc=__doc__,
    parts={"windows": pieces_of},
    blocks={"long-texts-choice": choice, "long-texts": table},
    settings=_settings,
)
