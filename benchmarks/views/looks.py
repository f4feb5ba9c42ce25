"""What an encoder sees of a set, kept on disk: training a view takes minutes, a consensus of views seconds."""

from pathlib import Path
from typing import final

import numpy as np
from safetensors.numpy import load_file, save
from store import digest

from labelspace import DescriptionClassifier, load
from labelspace.classify.base import Classifier
from labelspace.classify.by_joint import Seen, see
from labelspace.consensus.views import ZERO_SHOT, fit_view
from labelspace.folders import write_atomically
from labelspace.labels import LabelSpace
from views.settings import Settings

UPDATES = {"all-MiniLM-L6-v2": 60, "all-mpnet-base-v2": 30}
"""Updates of `view_steps="auto"`, by their widths."""


@final
class View:
    """One encoder's view of a label space, trained at first use.

    Args:
        settings: say where models and scores are kept; delete that folder after a change of training.
        encoder: an encoder, or `zero-shot:` and an encoder.
        space: the labels.
        seed: seed of the training.
    """

    def __init__(self, settings: Settings, encoder: str, space: LabelSpace, seed: int) -> None:
        self.encoder, self.space, self.seed = encoder, space, seed
        self.short = Path(encoder.removeprefix(ZERO_SHOT)).name
        self.steps = 5 if settings.small else UPDATES[self.short]
        facts = [encoder.startswith(ZERO_SHOT), self.short, space.to_dict(), self.steps, seed]
        self._folder = settings.cache / f"{self.short}-{digest(facts, 16)}"
        self._model: Classifier | None = None

    def model(self) -> Classifier:
        """Return the fitted classifier."""
        if self._model is None:
            place = self._folder / "model"
            if place.is_dir():
                self._model = load(place)
            else:
                self._model = fit_view(self.encoder, self.space, {}, steps=self.steps, seed=self.seed)
                if isinstance(self._model, DescriptionClassifier):
                    self._model.save(place)
        return self._model

    def sees(self, texts: list[str]) -> Seen:
        """Return logits at temperature 0.07 and vectors of the texts."""
        file = self._folder / f"{digest(texts, 16)}.safetensors"
        if not file.is_file():
            seen = see(self.model(), texts, self.space)
            assert seen.vectors is not None
            file.parent.mkdir(parents=True, exist_ok=True)
            write_atomically(file, save({"logits": np.ascontiguousarray(seen.logits), "vectors": seen.vectors}))
        kept = load_file(file)
        return Seen(kept["logits"], kept["vectors"])
