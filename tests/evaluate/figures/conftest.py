"""Fixtures of the figure tests: an evaluation, a rejection curve, estimates, fits of a consensus, texts of a figure."""

import numpy as np
import pytest

from labelspace import LabelSpace
from labelspace.classify.by_joint import Seen
from labelspace.config import ConsensusConfig
from labelspace.consensus import ConsensusFit
from labelspace.consensus.signals import Range
from labelspace.consensus.steps import agree
from labelspace.evaluate import Estimate, evaluate, rejection_curve
from labelspace.evaluate.trust import LabelTrust


@pytest.fixture(scope="session")
def evaluation(untrained):
    """An evaluation of three documents by the untrained encoder."""
    return evaluate(untrained, ["a match", "a bank", "a vote"], ["sports", "money", "world"], baselines=False)


@pytest.fixture
def rejection():
    """A curve of ten answers; two are wrong, one of them with low uncertainty."""
    return rejection_curve([0.1, 0.2, 0.3, 0.4, 0.5, 0.6, 0.6, 0.7, 0.8, 0.9], [1, 0, 1, 1, 1, 1, 1, 1, 0, 1])


@pytest.fixture
def named(monkeypatch):
    """Return the texts written into the axes, in order, without removed ones."""
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure
    from matplotlib.text import Annotation

    words: list[str] = []
    write, remove = Axes.annotate, Annotation.remove

    def annotate(self, word, *args, **more):
        words.extend([word] if word else [])
        return write(self, word, *args, **more)

    for kind in (Axes, Figure):

        def text(self, x, y, word, *args, write=kind.text, **more):
            words.append(word)
            return write(self, x, y, word, *args, **more)

        monkeypatch.setattr(kind, "text", text)

    def removed(self):
        words.remove(self.get_text())
        remove(self)

    monkeypatch.setattr(Axes, "annotate", annotate)
    monkeypatch.setattr(Annotation, "remove", removed)
    return words


@pytest.fixture(scope="session")
def estimated():
    """Make an estimate of any number of labels; the first is trusted, the second doubtful, and so on."""
    kinds = ("trusted", 0.8), ("doubtful", 0.6), ("not to be trusted", 0.3), ("none found", 0.0)

    def made(count: int, name: str = "label", labelled: int = 0) -> Estimate:
        trusts = [(f"{name}_{number}", *kinds[number % 4]) for number in range(count)]
        return Estimate(
            documents=4321,
            labelled=labelled,
            accuracy=Range(0.61, 0.7, 0.78),
            macro_f1=Range(0.5, 0.58, 0.66),
            words=0.6,
            neighbours=None,
            labels=tuple(
                LabelTrust(label, 0 if trust == "none found" else 1000 + number, agreement, trust, "")
                for number, (label, trust, agreement) in enumerate(trusts)
            ),
            notes=(),
        )

    return made


@pytest.fixture(scope="session")
def agreed():
    """Make the fit of a consensus of views that are right with a probability of 0.8, on documents of any labels."""

    def made(count: int, *, views: int = 2, name: str = "label", rows: int = 120, **options) -> ConsensusFit:
        draw = np.random.default_rng(0)
        truth, space = np.arange(rows) % count, LabelSpace.from_names([f"{name}_{column}" for column in range(count)])
        texts = [f"w{label}a w{label}b w{draw.integers(9)} {row}" for row, label in enumerate(truth)]
        seen = []
        for _ in range(views):
            answers = np.where(draw.random(rows) < 0.8, truth, draw.integers(0, count, rows))
            vectors = draw.normal(size=(rows, 4)).astype(np.float32)
            seen.append(Seen(3.0 * np.eye(count)[answers] + draw.normal(scale=0.2, size=(rows, count)), vectors))
        names = [f"sentence-transformers/a-view-with-number-{number}" for number in range(views)]
        found = agree(seen, names, texts, space, ConsensusConfig(**options), seed=0)
        return ConsensusFit(
            views=found.views,
            pool="a list",
            pool_documents=rows,
            consensus=found.to_dict(),
            student=None,
            taught=None,
            probabilities=None,
            seed=0,
        )

    return made
