"""What the tests of figures share: an evaluation, a curve, and what is written into a figure."""

import pytest

from labelspace.evaluate import evaluate, rejection_curve


@pytest.fixture(scope="session")
def evaluation(untrained):
    """Of three documents by the untrained encoder."""
    return evaluate(untrained, ["a match", "a bank", "a vote"], ["sports", "money", "world"], baselines=False)


@pytest.fixture
def rejection():
    """A curve of ten answers, two of them wrong and one of these sure."""
    return rejection_curve([0.1, 0.2, 0.3, 0.4, 0.5, 0.6, 0.6, 0.7, 0.8, 0.9], [1, 0, 1, 1, 1, 1, 1, 1, 0, 1])


@pytest.fixture
def named(monkeypatch):
    """What is written into the axes, in that order, without what was taken away again."""
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
