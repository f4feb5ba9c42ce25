"""What stands between the encoder and the scores, put together from the parts in `heads/`.

    vanilla   vector of the text                     -> [projection] -> cosine with label embeddings, or a linear layer
    fusion    words, weighed by label embeddings     -> [projection] -> the same
    leam, lsan  words and label embeddings                           -> logits

Two things differ from the paper, and for one reason: what comes from a sentence encoder is of unit length, while
[CLS] of BERT has about one for each coordinate. Texts are brought to that size first, because beside it the biases
of a fresh projection are small, and beside a unit vector they are all there is.
"""

import math
from dataclasses import asdict, dataclass
from typing import Any, final

import torch
from jaxtyping import Float
from torch import Tensor, nn
from torch.nn import functional as F

from labelspace.checks import check_keys
from labelspace.heads import FusionHead, LabelEmbeddings, LEAMHead, LSANHead, ProjectionHead
from labelspace.heads.layers import linear
from labelspace.losses import cosine_scores
from labelspace.training.features import Features

# Spread of the first label embeddings, drawn or given: see `LabelEmbeddings`.
SPREAD = 0.02
# A projection that starts as the identity lets every coordinate above this pass; they have a mean square of 1.
LOWEST_COORDINATE = -3.0


@final
@dataclass(frozen=True, kw_only=True)
class HeadShape:
    """Everything that decides which weights a head has."""

    head: str
    """`"vanilla"`, `"fusion"`, `"leam"` or `"lsan"`."""

    classifies: bool
    """True: it gives logits; False: texts are matched with label embeddings by cosine (eq. 8)."""

    projection: bool
    """Whether there is the projection head g."""

    labels: int
    """How many labels."""

    dim: int
    """Width of the vectors."""

    @property
    def words(self) -> bool:
        """Whether the head looks at words, and not at the vector of the text."""
        return self.head != "vanilla"

    def to_dict(self) -> dict[str, Any]:
        """Return plain values, ready for JSON."""
        return asdict(self)

    @classmethod
    def from_dict(cls, values: dict[str, Any]) -> "HeadShape":
        """Build the shape from `to_dict`'s result."""
        check_keys("HeadShape", values, cls.__dataclass_fields__)
        return cls(**values)


@final
class LaConHead(nn.Module):
    """Projection, fusion, label embeddings or classifier of one model.

    Args:
        shape: which of them there are.
        generator: of the first values, on the CPU.

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
        """Begin where texts are scored by their cosine with given vectors, as far as the head allows.

        The projection becomes the identity, label embeddings point as the vectors do, and a linear layer gives
        cosine / temperature. LEAM and LSAN have the label embeddings alone to start from.

        Args:
            vectors: [label dim], unit length.
            temperature: of the cosines.
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

    def vectors(self, features: Features) -> Float[Tensor, "text dim"]:
        """Return the vectors H of eq. 1, not yet of unit length; LEAM and LSAN have none."""
        values = features.values
        if self.fusion is not None and self.labels is not None and features.mask is not None:
            values = self.fusion(values, features.mask, self.labels())
        values = self._scaled(values)
        return values if self.projection is None else self.projection(values)

    def logits(self, features: Features) -> Float[Tensor, "text label"]:
        """Return the logits of a head that classifies."""
        if isinstance(self.classifier, nn.Linear):
            return self.classifier(self.vectors(features))
        assert self.classifier is not None
        return self.classifier(self._scaled(features.values), features.mask)

    def _scaled(self, values: Tensor) -> Tensor:
        """Give vectors, or words, the length that layers are made for: coordinates of variance 1."""
        return F.normalize(values, dim=-1) * math.sqrt(self.shape.dim)

    def table(self, features: Features, temperature: float) -> Float[Tensor, "text label"]:
        """Return what softmax turns into probabilities: cosine / temperature, or logits."""
        if self.shape.classifies:
            return self.logits(features)
        assert self.labels is not None
        return cosine_scores(self.vectors(features), self.labels(), temperature)


def _make_identity(head: ProjectionHead) -> None:
    """Make g(x) = x wherever all coordinates are above LOWEST_COORDINATE: ReLU then never cuts."""
    for layer, bias in ((head.first, -LOWEST_COORDINATE), (head.second, 0.0), (head.third, LOWEST_COORDINATE)):
        nn.init.eye_(layer.weight)
        nn.init.constant_(layer.bias, bias)
