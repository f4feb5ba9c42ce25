"""Fixtures of the service's tests: fitted classifiers of each kind on the tiny encoder, and services that hold them."""

import itertools
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from labelspace import (
    ConsensusClassifier,
    LabelSpace,
    LaConClassifier,
    UncertaintyClassifier,
    ZeroShotClassifier,
)
from labelspace.classify import WordsClassifier
from labelspace.encoders import Encoder
from serve.service import TEXTS, Service, serving
from tiny_rows import tiny_rows

SPACE = {
    "template": "This news text is about {label}.",
    "labels": [
        {"name": "sports", "descriptions": ["A team wins a match.", "Players, a coach and a league."]},
        {"name": "money", "phrase": "banks and money", "descriptions": ["The bank raises a price."]},
        {"name": "world", "verbalizer": "War, peace and elections.", "descriptions": []},
    ],
}
ROWS, NAMES = tiny_rows(60, doubtful=0.2)


@pytest.fixture(scope="session")
def encoder(tiny_encoder_folder: Path) -> Encoder:
    """The tiny encoder; do not change it."""
    return Encoder(tiny_encoder_folder, dtype="float32", device="cpu")


@pytest.fixture(scope="session")
def space() -> LabelSpace:
    return LabelSpace.from_dict(SPACE)


@pytest.fixture(scope="session")
def news(encoder: Encoder, space: LabelSpace) -> ZeroShotClassifier:
    """A classifier that answers every text."""
    return ZeroShotClassifier(space, encoder).fit()


@pytest.fixture(scope="session")
def classifiers(encoder: Encoder, space: LabelSpace, news: ZeroShotClassifier) -> dict[str, Any]:
    """Fitted classifiers of texts, by what is special about them; do not change them."""
    several = LabelSpace.from_dict({**SPACE, "several": True})
    quick = {"encoder": encoder, "epochs": 1, "seed": 0}
    consensus = ConsensusClassifier(
        space, views=[encoder, "words"], config={"alpha": 0, "guards": False, "view_steps": 2}
    )
    choosy = ZeroShotClassifier(space, encoder).fit().set_coverage(0.5, ROWS)
    return {
        "news": news,
        "choosy": choosy,
        "sure": ZeroShotClassifier(space, encoder, threshold=float(news.answers(TEXTS).score.mean())).fit(),
        "several": ZeroShotClassifier(several, encoder).fit(ROWS),
        "words": WordsClassifier(space, min_df=1).fit(ROWS, NAMES),
        "joint": consensus.fit(ROWS).model_,
        "lacon": LaConClassifier(space, description_steps=0, **quick).fit(ROWS, NAMES),
        "doubting": UncertaintyClassifier(space, **quick).fit(ROWS, NAMES),
    }


@pytest.fixture(scope="session")
def judge(encoder: Encoder, space: LabelSpace) -> LaConClassifier:
    """A classifier of pairs of texts."""
    pairs = list(itertools.pairwise([*ROWS, ROWS[0]]))
    return LaConClassifier(space, encoder=encoder, epochs=1, description_steps=0, seed=0).fit(pairs, NAMES)


@pytest.fixture(scope="session")
def service(classifiers: dict[str, Any], judge: LaConClassifier) -> Iterator[Service]:
    """A service with a model of each kind."""
    with serving({**classifiers, "judge": judge}, created=1_790_000_000) as found:
        yield found


@pytest.fixture(scope="session")
def alone(news: ZeroShotClassifier) -> Iterator[Service]:
    """A service with one model, called `news`."""
    with serving({"news": news}) as found:
        yield found


@pytest.fixture(scope="session")
def keyed(news: ZeroShotClassifier) -> Iterator[Service]:
    """A service that asks for one of two keys."""
    with serving({"news": news}, keys=["first-key", "second-key"], own_machine=True) as found:
        yield found


@pytest.fixture(scope="session")
def folder(news: ZeroShotClassifier, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A saved model, called `news`; do not write into it."""
    return news.save(tmp_path_factory.mktemp("served") / "news")
