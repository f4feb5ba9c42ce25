"""The pool: documents that are encoded once, with their neighbours and their places on the map."""

import threading
from collections.abc import Callable
from typing import Any, final

from labelspace.classify.anchors import Matrix
from labelspace.consensus.signals import NEIGHBOURS
from labelspace.corpus import Pool
from labelspace.errors import InputError
from labelspace.geometry import project
from labelspace.geometry.neighbours import Graph
from labelspace.serve.label_texts import KnownTexts

FEWEST = 5
"""Fewest documents: a map of fewer says nothing."""


@final
class StudioPool:
    """Documents of a pool; `encode` runs in a thread of its own, and `ready` tells when it has ended.

    Args:
        pool: the documents.

    Raises:
        InputError: there are fewer than five.
    """

    vectors: Matrix
    graph: Graph
    map: list[list[float]]

    def __init__(self, pool: Pool) -> None:
        if len(pool.texts) < FEWEST:
            raise InputError(f"the studio needs {FEWEST} different documents. Got {len(pool.texts)}; give more.")
        self.texts, self.source = list(pool.texts), pool.source
        self.done = 0
        self.problem = ""
        self._ready, self._stopped = threading.Event(), threading.Event()

    @property
    def ready(self) -> bool:
        """Whether the documents are encoded."""
        return self._ready.is_set()

    def encode(self, known: KnownTexts, then: Callable[[], None]) -> None:
        """Encode the documents, find their neighbours and project them; call `then` at the end."""
        try:
            self.vectors = known.documents(self.texts, self._report)
            self.graph = Graph(self.vectors, neighbours=NEIGHBOURS, seed=0)
            self.map = _unit_square(project(self.vectors))
            self._ready.set()
            then()
        except Exception as error:  # noqa: BLE001 - a thread has nobody else to tell
            self._ready.clear()
            self.problem = f"The documents could not be read: {error}"

    def to_dict(self) -> dict[str, Any]:
        """Return the texts and the map, ready for JSON."""
        return {"texts": self.texts, "map": self.map if self.ready else [], "source": self.source}

    def stop(self) -> None:
        """End the encoding after its next documents."""
        self._stopped.set()

    def _report(self, done: int) -> None:
        self.done = done
        if self._stopped.is_set():
            raise InputError("the studio was closed.")


def _unit_square(flat: Any) -> list[list[float]]:
    """Return coordinates between 0 and 1, the same scale on both axes."""
    low, width = flat.min(axis=0), max(float((flat.max(axis=0) - flat.min(axis=0)).max()), 1e-12)
    return ((flat - low) / width).round(4).tolist()
