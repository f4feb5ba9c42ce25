"""The module between encoder and scores, composed of the parts in `heads/`.

    vanilla   text vector                            -> [projection] -> cosine with label embeddings, or a linear layer
    fusion    tokens, weighted by label embeddings   -> [projection] -> the same
    leam, lsan  tokens and label embeddings                          -> logits

Two things differ from the paper, for one reason: a sentence encoder returns unit vectors, while the coordinates of
BERT's [CLS] have size about one. Texts are first scaled to that size, at which the biases of a new projection are
small; beside a unit vector they would dominate.
"""

import math
from dataclasses import dataclass
from typing import Any, final

import numpy as np
import torch
from jaxtyping import Bool, Float
from torch import Tensor, nn
from torch.nn import functional as F

from labelspace.checks import check_keys
from labelspace.heads import FusionHead, LabelEmbeddings, LEAMHead, LSANHead, ProjectionHead
from labelspace.heads.layers import linear
from labelspace.losses import cosine_scores
from labelspace.notebook import Plain
from labelspace.training.features import Features

# Spread of the initial label embeddings, random or given: see `LabelEmbeddings`.
SPREAD = 0.02
# An identity projection passes every coordinate above this; coordinates have a mean square of 1.
LOWEST_COORDINATE = -3.0


@final
@dataclass(frozen=True, kw_only=True)
class HeadShape(Plain):
    """Everything that decides the weights of a head."""

    head: str
    """`"vanilla"`, `"fusion"`, `"leam"` or `"lsan"`."""

    classifies: bool
    """True: the head returns logits; False: cosines between texts and label embeddings are scored (eq. 8)."""

    projection: bool
    """Whether the head has the projection g."""

    labels: int
    """Number of labels."""

    dim: int
    """Width of the vectors."""

    @property
    def words(self) -> bool:
        """Whether the head reads token states instead of the text vector."""
        return self.head != "vanilla"

    @classmethod
    def from_dict(cls, values: dict[str, Any]) -> "HeadShape":
        """Build the shape from a result of `to_dict`."""
        check_keys("HeadShape", values, cls.__dataclass_fields__)
        return cls(**values)


@final
class LaConHead(nn.Module):
    """Projection, fusion, label embeddings and classifier of one model, as far as `shape` has them.

    Args:
        shape: the parts of the head.
        generator: draws the initial weights, on the CPU.

    Example:
        >>> shape = HeadShape(head="vanilla", classifies=False, projection=True, labels=3, dim=8)
        >>> head = LaConHead(shape, generator=torch.Generator().manual_seed(0))
        >>> head.table(Features(torch.ones(2, 8), None), temperature=0.1).shape
        torch.Size([2, 3])
    """

    def __init__(self, shape: HeadShape, *, generator: torch.Generator) -> None:
        super().__init__()
        self.shape = shape
        self.labels: LabelEmbeddings | None = None
        self.fusion: FusionHead | None = None
        self.projection: ProjectionHead | None = None
        self.classifier: nn.Linear | LEAMHead | LSANHead | None = None
        if shape.words or not shape.classifies:
            self.labels = LabelEmbeddings(shape.labels, shape.dim, generator=generator, spread=SPREAD)
        if self.labels is not None and shape.head in ("leam", "lsan"):
            kind = LEAMHead if shape.head == "leam" else LSANHead
            self.classifier = kind(self.labels, generator=generator)
            return
        if shape.head == "fusion":
            self.fusion = FusionHead(generator=generator)
        if shape.projection:
            self.projection = ProjectionHead(shape.dim, generator=generator)
        if shape.classifies:
            self.classifier = linear(shape.dim, shape.labels, generator)

    def start_from(self, vectors: Float[Tensor, "label dim"], temperature: float) -> None:
        """Initialize scores to cosines with the given vectors, as far as the head allows.

        The projection becomes the identity, label embeddings take the direction of the vectors, and a linear layer
        gives cosine / temperature. LEAM and LSAN only get the label embeddings.

        Args:
            vectors: [label dim], unit length.
            temperature: temperature of the cosines.
        """
        size = math.sqrt(self.shape.dim)
        with torch.no_grad():
            if self.projection is not None:
                _make_identity(self.projection)
            if self.labels is not None:
                self.labels.vectors.copy_(vectors * SPREAD * size)
            if isinstance(self.classifier, nn.Linear):
                self.classifier.weight.copy_(vectors / (temperature * size))
                self.classifier.bias.zero_()

    @property
    def places_labels(self) -> bool:
        """Whether label embeddings are compared with the encoder's own vectors, and decide nothing else."""
        return not (self.shape.words or self.shape.classifies or self.shape.projection)

    def place(self, columns: Bool[np.ndarray, " label"], vectors: Float[np.ndarray, "label dim"]) -> None:
        """Give some labels the direction of these vectors, [label dim], unit length."""
        assert self.labels is not None
        with torch.no_grad():
            own = self.labels.vectors
            placed = torch.from_numpy(vectors[columns] * SPREAD * math.sqrt(self.shape.dim))
            own[torch.from_numpy(columns)] = placed.to(own.device, own.dtype)

    def vectors(self, features: Features) -> Float[Tensor, "text dim"]:
        """Return the vectors H of eq. 1, not yet normalized; LEAM and LSAN have none."""
        values = features.values
        if self.fusion is not None and self.labels is not None and features.mask is not None:
            values = self.fusion(values, features.mask, self.labels())
        values = self._scaled(values)
        return values if self.projection is None else self.projection(values)

    def logits(self, features: Features) -> Float[Tensor, "text label"]:
        """Return the logits of a classifying head."""
        if isinstance(self.classifier, nn.Linear):
            return self.classifier(self.vectors(features))
        assert self.classifier is not None
        return self.classifier(self._scaled(features.values), features.mask)

    def _scaled(self, values: Tensor) -> Tensor:
        """Scale vectors, or token states, to coordinates of variance 1, which the layers expect."""
        return F.normalize(values, dim=-1) * math.sqrt(self.shape.dim)

    def table(self, features: Features, temperature: float) -> Float[Tensor, "text label"]:
        """Return the input of the softmax: cosine / temperature, or logits."""
        if self.shape.classifies:
            return self.logits(features)
        assert self.labels is not None
        return cosine_scores(self.vectors(features), self.labels(), temperature)


def _make_identity(head: ProjectionHead) -> None:
    """Make g(x) = x for coordinates above LOWEST_COORDINATE, where ReLU never cuts."""
    for layer, bias in ((head.first, -LOWEST_COORDINATE), (head.second, 0.0), (head.third, LOWEST_COORDINATE)):
        nn.init.eye_(layer.weight)
        nn.init.constant_(layer.bias, bias)
