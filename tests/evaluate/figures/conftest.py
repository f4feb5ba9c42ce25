"""What the tests of figures share: an evaluation, and points along a training."""

import pytest

from labelspace.evaluate import RatePoint, Trajectory, TrajectoryPoint, evaluate, rejection_curve


@pytest.fixture(scope="session")
def evaluation(untrained):
    """Of three documents by the untrained encoder."""
    return evaluate(untrained, ["a match", "a bank", "a vote"], ["sports", "money", "world"], baselines=False)


@pytest.fixture
def points():
    """Of five learning rates; the last one diverged."""
    inf, nan = float("inf"), float("nan")
    return (
        RatePoint(1e-6, -2.0, 0.60, False),
        RatePoint(1e-5, -2.9, 0.81, True),
        RatePoint(5e-5, -2.5, 0.75, False),
        RatePoint(1e-4, -1.2, 0.55, False),
        RatePoint(5e-4, inf, nan, False),
    )


@pytest.fixture
def way():
    """Of a training whose best step is not its last."""
    points = [TrajectoryPoint(step, 1.2 - 0.01 * step, -2.0 - 0.02 * min(step, 40 - step)) for step in range(0, 41, 5)]
    return Trajectory(points=tuple(points), best_step=30, learning_rate=3e-5, pool="news.csv")


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
