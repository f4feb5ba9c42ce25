"""What a service counts, for Prometheus."""

from collections.abc import Sequence
from typing import final

import numpy as np
from prometheus_client import CollectorRegistry, Counter, Gauge, Histogram, generate_latest

from labelspace.classify.answers import Answers

SECONDS = (0.005, 0.01, 0.02, 0.05, 0.1, 0.2, 0.5, 1, 2, 5, 10)
MOST_AT_0 = 1_000
TOGETHER = (1, 2, 4, 8, 16, 32, 64, 128, 256, 512, 1024)


@final
class Measures:
    """Counters of requests, seconds, documents and labels; none of them holds a text."""

    def __init__(self) -> None:
        self.registry = CollectorRegistry()
        self.requests = Counter(
            "labelspace_requests", "Requests, by path and status.", ["path", "status"], registry=self.registry
        )
        self.seconds = Histogram(
            "labelspace_request_seconds", "Seconds a request took.", ["path"], buckets=SECONDS, registry=self.registry
        )
        self.documents = Counter("labelspace_documents", "Documents that were read.", registry=self.registry)
        self.labels = Counter(
            "labelspace_labels",
            "Answers, by the model's own label.",
            ["model", "label"],
            registry=self.registry,
        )
        self.no_label = Counter(
            "labelspace_no_label",
            "Answers without a label.",
            ["model"],
            registry=self.registry,
        )
        self.together = Histogram(
            "labelspace_run_documents",
            "Documents in one run of an encoder.",
            buckets=TOGETHER,
            registry=self.registry,
        )
        self.waiting = Gauge(
            "labelspace_waiting_documents", "Documents and new options that wait.", registry=self.registry
        )

    def run(self, documents: int) -> None:
        """Count a run of an encoder."""
        self.documents.inc(documents)
        self.together.observe(documents)

    def expect(self, model: str, labels: Sequence[str]) -> None:
        """Begin at 0, so that a label's first answer is an increase; thousands of labels would be too many."""
        self.no_label.labels(model)
        for label in labels if len(labels) <= MOST_AT_0 else ():
            self.labels.labels(model, label)

    def answered(self, model: str, answers: Answers) -> None:
        """Count the labels of a model's answers."""
        own = answers.columns
        given = own[own >= 0] if answers.chosen is None else np.nonzero(answers.chosen)[1]
        for column, count in zip(*np.unique(given, return_counts=True), strict=True):
            self.labels.labels(model, answers.labels[column]).inc(int(count))
        self.no_label.labels(model).inc(int((own < 0).sum()))

    def request(self, path: str, status: int, seconds: float) -> None:
        """Count a request."""
        self.requests.labels(path, str(status)).inc()
        self.seconds.labels(path).observe(seconds)

    def text(self) -> bytes:
        """Return all counts in the format of Prometheus."""
        return generate_latest(self.registry)
