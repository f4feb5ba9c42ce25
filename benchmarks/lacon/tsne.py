"""Figure 4: t-SNE of the scored rows and the labels after training."""

from collections.abc import Iterator
from functools import partial
from typing import Any

import numpy as np
from pieces import Piece
from sklearn.metrics import silhouette_score

from labelspace.classify.head import ComparesLabels
from labelspace.geometry import project
from lacon.methods import METHODS, measured, train
from lacon.protocol import Settings
from lacon.sets import SETS, sample, shuffled, test_rows, train_rows

SHOWN = ("mrpc", "cola")
POINTS = 500


def tsne_pieces(settings: Settings) -> Iterator[Piece]:
    """Cross-entropy beside LaCon, one run each."""
    for name in ("cola",) if settings.small else SHOWN:
        for method in ("ce", "lacon-vanilla"):
            yield Piece(
                part="tsne",
                name=f"{settings.short}_{name}_{method}",
                facts=settings.facts(set=name, method=method, seed=0),
                work=partial(_run, settings, name, method),
                seeds=(0,),
                data=f"shared/data/{SETS[name].folder}: train; validation shown",
            )


def _run(settings: Settings, name: str, method: str) -> dict[str, Any]:
    rows = sample(name, train_rows(name, settings.data), settings.protocol.rows, 0)
    test = test_rows(name, settings.data, settings.protocol.test_rows)
    clf = train(settings, METHODS[method].options, rows, 0)
    shown = test.take(sorted(shuffled(range(len(test)), 0, "shown")[:POINTS]))
    texts = clf.head_.vectors(shown.texts)  # as the classifier compares them, after the projection if there is one
    # Cross-entropy has a linear layer and no label embeddings: nothing to show.
    labels = list(clf.label_space_.names) if isinstance(clf.head_, ComparesLabels) else []
    everything = np.vstack([texts, *([clf.head_.label_vectors(clf.label_space_)] if labels else [])])
    places = project(everything, projection="tsne", seed=0).round(4).tolist()
    return {
        **measured(clf, test),
        "points": [[*place, label] for place, label in zip(places[: len(shown)], shown.truth, strict=True)],
        "labels": dict(zip(labels, places[len(shown) :], strict=True)),
        # Computed on the vectors, because a t-SNE map does not preserve distances.
        "silhouette": float(silhouette_score(texts, shown.truth, metric="cosine")),
    }
