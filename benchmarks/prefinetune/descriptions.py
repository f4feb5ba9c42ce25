"""What pre-finetuning does to classification by descriptions alone, which no paper has measured."""

from collections.abc import Iterator
from functools import partial
from pathlib import Path
from typing import Any

from pieces import Piece
from sklearn.metrics import accuracy_score, f1_score

from labelspace import DescriptionClassifier, LabelSpace, ZeroShotClassifier
from labelspace.evaluate.metrics import NO_DIVISION
from prefinetune.encoders import starting_encoder
from prefinetune.sets import TARGETS, Rows, targets, test_rows
from prefinetune.settings import Settings

LABELS = Path(__file__).with_name("labels")
STARTS = ("base", "pft", "reze")
STEPS = 60
ANCHORS = ("verbalizer", "descriptions")


def description_pieces(settings: Settings) -> Iterator[Piece]:
    """Every classification target from every start; the seed is that of the encoder and of the training."""
    for seed in settings.seeds:
        for target in targets(settings):
            if TARGETS[target].task != "classification":
                continue
            for start in STARTS:
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
    untrained = {anchor: ZeroShotClassifier(space, encoder=encoder, anchor=anchor).fit() for anchor in ANCHORS}
    clf = DescriptionClassifier(
        space, encoder=encoder, learning_rate="base", max_steps=2 if settings.small else STEPS, seed=seed
    ).fit()
    trained = {anchor: ZeroShotClassifier(space, encoder=clf.encoder_, anchor=anchor).fit() for anchor in ANCHORS}
    return {
        "start_sha256": sha256,
        "untrained": {anchor: _scores(model.predict(test.texts), test) for anchor, model in untrained.items()},
        "trained": {anchor: _scores(model.predict(test.texts), test) for anchor, model in trained.items()},
        "learning_rate": clf.fit_result_.rate.learning_rate,
        "steps": clf.fit_result_.curve.steps,
        "losses": [clf.fit_result_.curve.losses[0], clf.fit_result_.curve.losses[-1]],
        "test_rows": len(test),
    }


def _scores(chosen: Any, test: Rows) -> dict[str, float]:
    labels = sorted(set(test.positives))
    macro = f1_score(test.positives, list(chosen), labels=labels, average="macro", **NO_DIVISION)
    return {"accuracy": float(accuracy_score(test.positives, list(chosen))), "macro_f1": float(macro)}
