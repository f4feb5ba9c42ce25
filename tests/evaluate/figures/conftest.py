"""Fixtures of the figure tests: an evaluation, a rejection curve, the texts of a figure."""

import pytest

from labelspace.evaluate import evaluate, rejection_curve


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
