"""Curves and answers of every estimator on the tiny encoder, which a refactoring must not change.

    python tests/golden.py            # prints a digest of each case's bits; on one machine, equal before and after
    python tests/golden.py --write    # writes tests/data/golden.json, after an intended change

`tests/test_golden.py` compares with a tolerance, because bits differ between processors.
"""

import hashlib
import json
import sys
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any
from unittest.mock import patch

import numpy as np

HERE = Path(__file__).parent
TINY = {"name": str(HERE / "data" / "tiny-bert"), "dtype": "float32", "device": "cpu"}
KEPT = HERE / "data" / "golden.json"

SPACE = {
    "name": "desk",
    "template": "This text is about {label}.",
    "labels": {
        "sports": ["Results of matches and games, with the teams that won and lost.", "News of players."],
        "money": ["Banks, markets and prices."],
        "world": ["War and peace.", "Courts and police.", "A government falls after the election."],
    },
}
ASKED = ["the team won the match", "prices will rise next year", "the minister asked the court", "my card is blue"]
Case = dict[str, list[float]]


class Curve:
    """A callback that collects its values by name."""

    def __init__(self) -> None:
        self.told: Case = {}

    def __call__(self, step: int, values: dict[str, float]) -> None:
        for name, value in values.items():
            self.told.setdefault(name, []).append(float(value))


def answers_of(clf: Any) -> Case:
    """Return scores and probabilities of a fitted classifier, with columns as in `classes_`."""
    return {
        "scores": np.asarray(clf.predict(ASKED, return_scores=True)[1], dtype=np.float64).ravel().tolist(),
        "probabilities": clf.predict_proba(ASKED).ravel().tolist(),
    }


def zero_shot(anchor: str) -> Case:
    from labelspace import ZeroShotClassifier

    return answers_of(ZeroShotClassifier(SPACE, TINY, anchor=anchor).fit())


def description(pool: bool = False, **options: Any) -> Case:
    from labelspace import DescriptionClassifier
    from labelspace.classify.settings import as_arguments
    from labelspace.config import SearchConfig
    from tiny_rows import tiny_rows

    curve = Curve()
    if pool:
        options |= {
            "search": SearchConfig(rates=(1e-5, 1e-4, 1e-3), steps=4, documents=40),
            "learning_rate": "uniformity",
        }
    given = as_arguments(DescriptionClassifier, {"max_steps": 20, **options})
    clf = DescriptionClassifier(SPACE, TINY, callbacks=[curve], seed=3, **given)
    return {**answers_of(clf.fit(tiny_rows(40)[0] if pool else None)), **curve.told}


def lacon(rows: int, **options: Any) -> Case:
    from labelspace import LaConClassifier
    from labelspace.classify.settings import as_arguments
    from labelspace.config import SearchConfig
    from labelspace.training.lacon import fit
    from tiny_rows import tiny_rows

    curve = Curve()
    texts, names = tiny_rows(rows, seed=1, doubtful=0.3)
    given = as_arguments(LaConClassifier, {"epochs": 2, "description_steps": 5, **options})
    clf = LaConClassifier(SPACE, TINY, callbacks=[curve], seed=3, **given)
    # The search for the rate on descriptions has a case of its own, and would take most of the time here.
    with patch.object(fit, "SearchConfig", lambda: SearchConfig(rates=(1e-4, 1e-3), steps=2)):
        clf.fit(texts, names) if rows else clf.fit()
    return {**answers_of(clf), **curve.told}


def uncertainty(**options: Any) -> Case:
    from labelspace import UncertaintyClassifier
    from labelspace.classify.settings import as_arguments
    from tiny_rows import tiny_rows

    curve = Curve()
    texts, names = tiny_rows(240, seed=1, doubtful=0.3)
    given = as_arguments(UncertaintyClassifier, {"epochs": 2, **options})
    clf = UncertaintyClassifier(SPACE, TINY, callbacks=[curve], seed=3, cache=None, **given)
    clf.fit(texts, names)
    found = {**answers_of(clf), **curve.told, "temperature": [clf.temperature_]}
    return {**found, "uncertainty": clf.predict_uncertainty(ASKED).astype(float).tolist()}


def prefinetuned(**options: Any) -> Case:
    from labelspace import Encoder, prefinetune
    from labelspace.config import PrefinetuneConfig
    from training.prefinetune.toy import toy_pairs

    curve = Curve()
    config = PrefinetuneConfig(epochs=2, **options)
    moved = prefinetune(toy_pairs(), Encoder(**TINY), config, seed=3, callbacks=[curve])
    return {**curve.told, "vectors": moved.encoder.encode(ASKED).astype(float).ravel().tolist()}


def nli(variant: str) -> Case:
    from labelspace.config import NLIConfig
    from labelspace.training.nli import NLIModel, train_nli
    from training.nli.toy import toy_pairs

    config = NLIConfig(variant=variant, epochs=2, batch_size=8, seed=3, evaluate_every=0.2)
    model = NLIModel.from_encoder(TINY["name"], variant, seed=3, dtype="float32", device="cpu")
    run = train_nli(model, toy_pairs(48), toy_pairs(18, seed=1), config)
    return {name: [getattr(look, name) for look in run.looks] for name in ("train_loss", "dev_loss", "dev_auroc")}


CASES: dict[str, Callable[[], Case]] = {
    "zero-shot, verbalizer": lambda: zero_shot("verbalizer"),
    "zero-shot, descriptions": lambda: zero_shot("descriptions"),
    "zero-shot, both": lambda: zero_shot("both"),
    "description": description,
    "description, rows, dropout, in chunks": lambda: description(
        objective="rows", encoder_dropout=True, max_tokens_in_memory=40
    ),
    "description, columns, one layer frozen": lambda: description(objective="columns", freeze_layers=1),
    "description, LoRA": lambda: description(lora_rank=2),
    "description, rate chosen on a pool": lambda: description(pool=True),
    "lacon, no row": lambda: lacon(0),
    "lacon, few rows": lambda: lacon(9),
    "lacon, in chunks": lambda: lacon(9, max_tokens_in_memory=40),
    "lacon, rows held out": lambda: lacon(120, validation=0.2, patience=1, epochs=4),
    "lacon, fusion": lambda: lacon(24, head="fusion"),
    "lacon, random start, balanced": lambda: lacon(24, init="random", class_weight="balanced"),
    "lacon, cross-entropy": lambda: lacon(24, objective="cross-entropy"),
    "lacon, self-contrastive": lambda: lacon(24, objective="cross-entropy+self-contrastive"),
    "lacon, supervised contrastive": lambda: lacon(24, objective="cross-entropy+supervised-contrastive"),
    "lacon, LEAM": lambda: lacon(24, objective="cross-entropy", head="leam"),
    "lacon, LSAN": lambda: lacon(24, objective="cross-entropy", head="lsan"),
    "uncertainty": uncertainty,
    "uncertainty, attention": lambda: uncertainty(extractor="attention"),
    "uncertainty, no std": lambda: uncertainty(extractor="mean", uncertain=False, contrastive="none"),
    "uncertainty, SimCSE": lambda: uncertainty(contrastive="self-supervised"),
    "uncertainty, SupCon": lambda: uncertainty(contrastive="supervised"),
    "REZE": prefinetuned,
    "plain pre-finetuning": lambda: prefinetuned(regularizer_weight=0.0),
    "NLI, binary": lambda: nli("binary"),
    "NLI, triplet": lambda: nli("triplet"),
}

DRAWS_NOTHING = (
    "zero-shot, verbalizer",
    "zero-shot, descriptions",
    "zero-shot, both",
    "description",
    "description, columns, one layer frozen",
    "description, rate chosen on a pool",
    "lacon, no row",
)
"""The cases without dropout or another draw of torch's; these hold for all of its releases."""
WRITTEN_WITH = "2.13."


def measure(name: str) -> Case:
    """Run a case, ignoring its warnings."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return CASES[name]()


def digest(case: Case) -> str:
    """Return a digest of the bits of all its numbers."""
    text = json.dumps({name: [value.hex() for value in map(float, case[name])] for name in sorted(case)})
    return hashlib.sha256(text.encode()).hexdigest()[:16]


def main() -> None:
    """Print digests, or write the expected values; on one thread, because bits depend on the number of threads."""
    import torch

    torch.set_num_threads(1)
    found = {name: measure(name) for name in CASES}
    for name, case in found.items():
        print(digest(case), name)
    if "--write" in sys.argv[1:]:
        kept = {
            name: {key: [round(value, 6) for value in values] for key, values in case.items()}
            for name, case in found.items()
        }
        KEPT.write_text(json.dumps(kept, separators=(",", ":")).replace('},"', '},\n"') + "\n", encoding="utf-8")


if __name__ == "__main__":
    sys.path[:0] = [str(HERE)]
    main()
