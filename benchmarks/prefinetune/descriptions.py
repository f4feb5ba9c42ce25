"""The effect of pre-finetuning on classification by descriptions alone, which no paper has measured."""

from collections.abc import Iterator
from functools import partial
from itertools import product
from pathlib import Path
from typing import Any

from pieces import Piece
from scoring import accuracy_and_macro_f1, answers_by_anchor

from labelspace import DescriptionClassifier, Encoder, LabelSpace
from prefinetune.encoders import UNSHRUNK, starting_encoder, unnamed_starts
from prefinetune.printed import PRINTED
from prefinetune.sets import TARGETS, Rows, targets, test_rows
from prefinetune.settings import Settings

LABELS = Path(__file__).with_name("labels")
STARTS = ("base", "pft", "reze")
STEPS = 60
ANCHORS = ("verbalizer", "descriptions")


def description_pieces(settings: Settings) -> Iterator[Piece]:
    """Every classification target from every starting encoder; the seed is that of the encoder.

    Description training without dropout is deterministic, so the base encoder has one run.
    """
    classified = [target for target in targets(settings) if TARGETS[target].task == "classification"]
    for seed, target in product(settings.seeds, classified):
        paper = STARTS if seed == settings.seeds[0] else STARTS[1:]
        for start in (*paper, UNSHRUNK, *unnamed_starts(settings, target), *PRINTED):
            yield Piece(
                part="descriptions",
                name=f"{settings.short}_{target}_{start}_seed{seed}",
                facts=settings.facts(target=target, start=start, seed=seed),
                work=partial(_run, settings, target, start, seed),
                seeds=(seed,),
                data=f"shared/data/domain/{TARGETS[target].domain}/{target}",
            )


def label_space(target: str) -> LabelSpace:
    """Return the labels of a target with five descriptions each."""
    return LabelSpace.from_file(LABELS / f"{target}.yaml")


def _run(settings: Settings, target: str, start: str, seed: int) -> dict[str, Any]:
    space, test = label_space(target), test_rows(settings, target)
    encoder, sha256 = starting_encoder(settings, target, start, seed)
    clf = DescriptionClassifier(
        space, encoder=encoder, learning_rate="base", max_steps=2 if settings.small else STEPS, seed=seed
    ).fit()
    if clf.fit_result_.curve.stop_reason == "interrupted":  # an interrupted run is not a result
        raise KeyboardInterrupt
    return {
        "start_sha256": sha256,
        "untrained": _by_anchor(encoder, space, test),
        "trained": _by_anchor(clf.encoder_, space, test),
        "learning_rate": clf.fit_result_.rate.learning_rate,
        "steps": clf.fit_result_.curve.steps,
        "losses": [clf.fit_result_.curve.losses[0], clf.fit_result_.curve.losses[-1]],
        "test_rows": len(test),
    }


def _by_anchor(encoder: Encoder, space: LabelSpace, test: Rows) -> dict[str, dict[str, float]]:
    """Score the test texts, encoded once, with each anchor."""
    found = answers_by_anchor(encoder, space, encoder.encode(test.texts))
    return {anchor: accuracy_and_macro_f1(test.positives, found[anchor]) for anchor in ANCHORS}
