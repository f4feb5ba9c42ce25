"""The study of long texts: its documents, its scores, and its tables."""

import importlib
from typing import Any

import numpy as np
import pytest

from labelspace import LabelSpace, ZeroShotClassifier
from labelspace.encoders import Encoder


@pytest.fixture
def study(store: Any) -> Any:
    return importlib.import_module("long_texts")


def test_a_joined_document_has_most_parts_of_its_own_label(study):
    import random

    texts = {name: [f"{name}{number}" for number in range(9)] for name in ("one", "two", "six")}
    parts = study._joined(random.Random(0), texts, "two").split()
    assert len(set(parts)) == len(parts) == study.OF_TRUTH + 2 * study.OF_OTHERS
    assert sum(part.startswith("two") for part in parts) == study.OF_TRUTH


def test_every_variant_is_scored_and_that_of_the_library_is_the_librarys(study, tiny_encoder_folder):
    encoder = Encoder(tiny_encoder_folder, dtype="float32", max_tokens=24)
    model = ZeroShotClassifier(LabelSpace.from_names(["sports", "money"]), encoder).fit()
    texts = [
        f"the team won match {number}. " * (number % 4 + 1) + "prices rise. " * (number % 7) for number in range(40)
    ]
    windows = model.set_params(long_texts="windows").predict(texts).tolist()
    scores, tokens = study.scored(model, texts, windows)
    by_variant = dict(zip(study.VARIANTS, scores, strict=True))
    assert by_variant[study.CHOSEN] == 1
    assert by_variant[None] == study.accuracy_and_macro_f1(
        windows, model.set_params(long_texts="cut").predict(texts).tolist()
    )["macro_f1"].__round__(3)
    assert all(own > 1 for own in tokens)


def test_the_tables_show_the_rows(study, plant):
    train = np.linspace(0.5, 0.58, len(study.VARIANTS)).round(3).tolist()
    own = {"train": train, "test": train[::-1], "tokens": [1.5, 1.8], "long": 0.4}
    facts = {"part": "windows", "trained": False, "256": own, "128": own}
    plant("long-texts", [{**facts, "task": task, "seed": 0} for task in study.SETS])
    assert "| cut | 0.500 | 0.500 | 0.500 | 1.0 |" in study.choice()
    place = study.VARIANTS.index(study.CHOSEN)
    assert f"| IMDB, untrained, 256 tokens | 40% | 0.580 | {train[::-1][place]:.3f} |" in study.table()
