"""Figure 4: where training puts the scored rows, and the labels among them."""

from collections.abc import Iterator
from functools import partial
from typing import Any

import numpy as np
from pieces import Piece
from rows import Document
from sklearn.metrics import silhouette_score
from torch.nn import functional as F

from labelspace import LaConClassifier
from labelspace.geometry import project
from labelspace.training.features import answers
from labelspace.training.rows import tokenize
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


def vectors_of(clf: LaConClassifier, texts: list[Document]) -> np.ndarray:
    """Unit vectors of texts as the classifier compares them, [text dim]: behind the projection, if there is one."""
    head = clf.head_
    assert head is not None
    return answers(
        clf.encoder_,
        tokenize(clf.encoder_, texts),
        lambda features: F.normalize(head.vectors(features), dim=-1),
        words=head.shape.words,
        width=head.shape.dim,
    )


def _run(settings: Settings, name: str, method: str) -> dict[str, Any]:
    rows = sample(name, train_rows(name, settings.data), settings.protocol.rows, 0)
    test = test_rows(name, settings.data, settings.protocol.test_rows)
    clf = train(settings, METHODS[method].options, rows, 0)
    shown = test.take(sorted(shuffled(range(len(test)), 0, "shown")[:POINTS]))
    texts = vectors_of(clf, shown.texts)
    # Cross-entropy has a linear layer and no label embeddings: nothing to show.
    labels = list(clf.label_embeddings_)
    everything = np.vstack([texts, *(clf.label_embeddings_[label][None] for label in labels)])
    places = project(everything, method="tsne", seed=0).round(4).tolist()
    return {
        **measured(clf, test),
        "points": [[*place, label] for place, label in zip(places[: len(shown)], shown.truth, strict=True)],
        "labels": dict(zip(labels, places[len(shown) :], strict=True)),
        # Of the vectors themselves, because a t-SNE map keeps no distances.
        "silhouette": float(silhouette_score(texts, shown.truth, metric="cosine")),
    }
