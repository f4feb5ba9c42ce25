"""LaCon and its baselines as options of one estimator, with the same encoder and training loop."""

import functools
from collections.abc import Mapping
from typing import Any, NamedTuple

import numpy as np
from rows import Rows
from scoring import macro_f1_predicted
from sklearn.metrics import accuracy_score, f1_score, matthews_corrcoef, recall_score

from labelspace import Encoder, LaConClassifier
from labelspace.classify.settings import as_arguments
from labelspace.evaluate.metrics import NO_DIVISION
from lacon.protocol import Settings

Options = dict[str, Any]


class Method(NamedTuple):
    """A row of table 2."""

    title: str
    options: Options


# CE is the encoder with a linear layer and nothing in between (the paper lists "BERT w/ g" separately). The two
# contrastive baselines keep their own weights and temperatures, as LaCon says it does: 0.15 at 0.1 for ConSERT's joint
# training, as in the commands of its code; 0.9 to 0.1 at 0.3 for Gunel et al., from memory.
_CE: Options = {"objective": "cross-entropy", "projection_head": False}
METHODS: Mapping[str, Method] = {
    "ce": Method("CE", _CE),
    "leam": Method("LEAM", {"objective": "cross-entropy", "head": "leam", "regularizer_weight": 1.0}),  # as in its code
    "lsan": Method("LSAN", {"objective": "cross-entropy", "head": "lsan"}),
    "ce-cl": Method(
        "CE+CL", _CE | {"objective": "cross-entropy+self-contrastive", "label_weight": 0.15, "temperature": 0.1}
    ),
    "ce-scl": Method(
        "CE+SCL",
        _CE
        | {
            "objective": "cross-entropy+supervised-contrastive",
            "instance_weight": 0.1,
            "label_weight": 0.9,
            "temperature": 0.3,
        },
    ),
    "lacon-vanilla": Method("LaCon-vanilla", {}),
    "lacon-fusion": Method("LaCon-fusion", {"head": "fusion"}),
}
BASELINES = ("ce", "leam", "lsan", "ce-cl", "ce-scl")
OURS = ("lacon-vanilla", "lacon-fusion")


@functools.cache
def opened(name: str, max_tokens: int | None, pooling: str | None = None) -> Encoder:
    """Open an encoder, once per process; classifiers copy it before training."""
    return Encoder(name, max_tokens=max_tokens, pooling=pooling)


def encoder_of(settings: Settings) -> Encoder:
    """Open the encoder of the paper's experiments, with the protocol's maximum tokens."""
    return opened(settings.encoder, settings.protocol.max_tokens, settings.pooling)


def train(settings: Settings, options: Options, rows: Rows, seed: int) -> LaConClassifier:
    """Train once; options override the protocol's."""
    training = {**settings.protocol.training(), **options}
    given = as_arguments(LaConClassifier, training)
    return LaConClassifier(encoder=encoder_of(settings), seed=seed, **given).fit(rows.texts, rows.truth)


def measured(clf: LaConClassifier, test: Rows) -> dict[str, Any]:
    """Score a trained classifier, and return the facts of its training."""
    curve = clf.fit_result_.curve
    assert curve is not None
    return {
        **scores(test.truth, clf.predict(test.texts)),
        "train_rows": clf.fit_result_.labelled - clf.fit_result_.held_out,
        "held_out": clf.fit_result_.held_out,
        "test_rows": len(test),
        "steps": curve.steps,
        "best_step": curve.best_step,
        "last_loss": curve.losses[-1],
        "fit_seconds": curve.seconds,
        "training": clf.training_config().to_dict(),
    }


def scores(truth: list[str], predicted: Any) -> dict[str, Any]:
    """Compute every metric of table 1, and the F1 of each label for table 5."""
    names = sorted(set(truth))
    found = list(predicted)
    by_class = f1_score(truth, found, labels=names, average=None, **NO_DIVISION)
    return {
        "accuracy": float(accuracy_score(truth, found)),
        "macro_f1_predicted": macro_f1_predicted(truth, found),
        "mean_recall": float(recall_score(truth, found, labels=names, average="macro", **NO_DIVISION)),
        "matthews": float(matthews_corrcoef(truth, found)),
        "f1_by_class": dict(zip(names, np.asarray(by_class).tolist(), strict=True)),
    }


def majority(test: Rows, metric: str) -> float:
    """Return the score of answering the most frequent label to every row."""
    return scores(test.truth, [max(test.names, key=test.truth.count)] * len(test))[metric]
