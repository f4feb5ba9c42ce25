"""A normalizing flow: an invertible map, learnt by maximum likelihood, that makes vectors look normally distributed.

It is one of REZE's rivals: trained on the training texts of a target, applied to all that are compared there. The
blocks are those of Glow, from the package normflows.
"""

import copy
import math
from types import ModuleType
from typing import Any, final

import numpy as np
import torch
from jaxtyping import Float
from torch import Tensor

from labelspace.checks import check_number, import_optional
from labelspace.errors import InputError, ShapeError, TrainingError, warn
from labelspace.geometry.moments import Moments, as_matrix, row_blocks
from labelspace.seeds import child_seed

BATCH_SIZE = 256
LEARNING_RATE = 1e-3

HELD_OUT = 5
"""One in so many vectors is held out, to stop by."""

FEWEST_TO_SPLIT = 10
"""With fewer vectors none is held out."""

PATIENCE = 5
"""Epochs in a row without gain on the vectors held out, after which training ends."""

# Rows that the first normalization of each block looks at; what is seen there decides its scale.
_FIRST_LOOK = 4096

# A coordinate that varies by less than this share of the one that varies most is left small. Brought to the size of the
# others it would be rounding only, and a step of training in its units would throw every vector far out.
_SMALLEST = 1e-5
_LEAST_SCALE = 1e-2


@final
class Flow:
    """A trained flow; made by `fit_flow`.

    Args:
        model: a `normflows.NormalizingFlow` on standardized vectors.
        mean: [dim], what is taken off each coordinate first.
        scale: [dim], what the rest is divided by.
        losses: mean negative log-likelihood of the standardized vectors that were trained on, in nats a vector: before
            training and after each epoch.
        held_out_losses: the same of the vectors held out, infinite where it was not finite; empty where there were too
            few to hold any out.
    """

    def __init__(
        self,
        model: Any,
        *,
        mean: Tensor,
        scale: Tensor,
        losses: tuple[float, ...],
        held_out_losses: tuple[float, ...] = (),
    ) -> None:
        self.model = model
        self.mean = mean
        self.scale = scale
        self.losses = losses
        self.held_out_losses = held_out_losses

    @property
    def kept_epoch(self) -> int:
        """The epoch after which the weights were taken, 0 for those before training."""
        if not self.held_out_losses:
            return len(self.losses) - 1
        return self.held_out_losses.index(min(self.held_out_losses))

    @property
    def width(self) -> int:
        """Coordinates of a vector."""
        return self.mean.shape[0]

    def apply(
        self, vectors: Float[np.ndarray, "text dim"] | Float[Tensor, "text dim"]
    ) -> Float[np.ndarray, "text dim"]:
        """Return where the flow maps the vectors to, in float64.

        Raises:
            ShapeError: vectors of another width.
            InputError: a value is not finite.
        """
        rows = as_matrix(vectors)
        if rows.shape[1] != self.width:
            raise ShapeError(f"this flow is for vectors of width {self.width}. Got width {rows.shape[1]} instead.")
        with torch.no_grad():
            standardized = (((block - self.mean) / self.scale).float() for _, block in row_blocks(rows))
            parts = [self.model.inverse(block).double() for block in standardized]
        return torch.cat(parts).numpy()


def fit_flow(
    vectors: Float[np.ndarray, "text dim"] | Float[Tensor, "text dim"],
    *,
    blocks: int = 4,
    epochs: int = 100,
    seed: int = 0,
) -> Flow:
    r"""Train a flow so that what it makes of the vectors is as likely as can be under a standard normal distribution.

    .. math::
        \min_f \; -\frac{1}{N} \sum_{i=1}^{N} \Bigl(
            \log \mathcal{N}(f(h_i); 0, I) + \log \Bigl| \det \frac{\partial f}{\partial h}(h_i) \Bigr| \Bigr)

    Paper: section 4.1.3 of REZE in words; no depth, rate or number of epochs is given there. A block is one step of
    Glow on vectors: a normalization set by the data, an invertible linear map (Glow's 1x1 convolution), and an affine
    coupling whose small network sees half of the coordinates and begins as the identity. Coordinates are standardized
    before the first block, which changes no likelihood but by a constant. The linear maps begin as random rotations,
    so what comes out compares with itself only: cosines and neighbours, not coordinates.

    A flow has many more weights than there are vectors, and soon knows these by heart. So a fifth of them is held out,
    training ends when five epochs have not made those likelier, and the weights that made them likeliest are kept. Of
    fewer than ten vectors none is held out, and all epochs are made.

    Args:
        vectors: [text dim], numpy or torch, two texts and two coordinates at least.
        blocks: steps of Glow, one or more.
        epochs: passes over the vectors at most, one or more, in batches of 256 by Adam at 1e-3.
        seed: of the vectors held out, of the first weights and of the order of the batches; the global random state
            stays as it was.

    Returns:
        The flow; `apply` uses it.

    Raises:
        ShapeError: `vectors` is not a matrix, or has one row or one column.
        InputError: a value is not finite, or all vectors are one.
        TrainingError: the likelihood is no longer finite; after an epoch, that of the vectors held out may be, which is
            no gain.
        ConfigError: an option is out of its range.
        MissingDependencyError: the package normflows is not installed.

    Warns:
        LabelSpaceWarning: no epoch made the vectors held out likelier.

    Example:
        >>> cloud = np.random.default_rng(0).normal(3.0, 0.1, size=(64, 4))
        >>> mapped = fit_flow(cloud, blocks=2, epochs=2).apply(cloud)
        >>> mapped.shape, bool(abs(mapped.mean()) < 0.5), bool(0.5 < mapped.std() < 1.5)
        ((64, 4), True, True)

    See also:
        fit_whitening: the rival that is linear.

    Reference:
        Kingma & Dhariwal, 2018, https://arxiv.org/abs/1807.03039, section 3; Lee et al., "REZE: Representation
        Regularization for Domain-adaptive Text Embedding Pre-finetuning", section 4.1.3.
    """
    check_number("blocks", blocks, least=1, whole=True)
    check_number("epochs", epochs, least=1, whole=True)
    check_number("seed", seed, whole=True)
    normflows = import_optional("normflows", package="normflows", extra="geometry", purpose="fit_flow")
    rows, mean, scale = _standardized(vectors)
    generator = torch.Generator().manual_seed(child_seed(seed, "flow batches"))
    # The package draws its first weights from the global generator of the CPU.
    with torch.random.fork_rng(devices=[]):
        torch.default_generator.manual_seed(child_seed(seed, "flow weights"))
        model = _build(normflows, rows.shape[1], blocks)
    train, held_out = _split(rows, seed)
    _look(model, train[:_FIRST_LOOK])
    losses, held_out_losses = _train(model, train, held_out, epochs, generator)
    model.eval().requires_grad_(False)
    flow = Flow(model, mean=mean, scale=scale, losses=losses, held_out_losses=held_out_losses)
    if flow.kept_epoch == 0:
        said = "the flow was kept as it was before training: the vectors held out grew less likely; give more texts."
        warn(said)
    return flow


def _standardized(vectors: Any) -> tuple[Tensor, Tensor, Tensor]:
    """Return the vectors in float32 with mean 0 and deviation 1 in each coordinate, and what that took."""
    rows = as_matrix(vectors)
    if rows.shape[0] < 2 or rows.shape[1] < 2:
        raise ShapeError(
            f"fit_flow needs two texts and two coordinates at least. Got shape {tuple(rows.shape)} instead."
        )
    moments = Moments(rows.shape[1])
    for _, block in row_blocks(rows):
        moments.update(block)
    if moments.is_constant():
        raise InputError(f"the {len(rows)} vectors for a flow are one and the same; give texts that differ.")
    scale = moments.covariance().diagonal().sqrt()
    scale = torch.where(scale > _SMALLEST * scale.max(), scale, scale.max())
    return torch.cat([((block - moments.mean) / scale).float() for _, block in row_blocks(rows)]), moments.mean, scale


def _build(normflows: ModuleType, width: int, count: int) -> Any:
    """Return a flow of `count` steps; normflows lists them from the normal distribution to the data."""
    seen, moved, hidden = (width + 1) // 2, width // 2, max(width, 64)
    steps = []
    for _ in range(count):
        # The scale comes as every second output, so two outputs for each coordinate that is moved.
        network = normflows.nets.MLP([seen, hidden, hidden, 2 * moved], init_zeros=True)
        steps.append(normflows.flows.AffineCouplingBlock(network, scale_map="sigmoid"))
        # Without LU: the package computes that by a function that torch is about to remove.
        steps.append(normflows.flows.InvertibleAffine(width, use_lu=False))
        steps.append(normflows.flows.ActNorm(width))
    return normflows.NormalizingFlow(normflows.distributions.DiagGaussian(width, trainable=False), steps)


def _look(model: Any, rows: Tensor) -> None:
    """Let each normalization set itself by the data; a coordinate that does not vary is not blown up."""
    with torch.no_grad():
        model.inverse(rows)
        for step in model.flows:
            if hasattr(step, "data_dep_init_done"):
                step.s.clamp_(min=math.log(_LEAST_SCALE))


def _split(rows: Tensor, seed: int) -> tuple[Tensor, Tensor]:
    """Return rows to train on, and rows to stop by; none of these where there are few."""
    aside = len(rows) // HELD_OUT if len(rows) >= FEWEST_TO_SPLIT else 0
    generator = torch.Generator().manual_seed(child_seed(seed, "flow held out"))
    order = torch.randperm(len(rows), generator=generator)
    # In the order they came: only which rows they are is drawn.
    return rows[order[aside:].sort().values], rows[order[:aside].sort().values]


def _train(
    model: Any, train: Tensor, held_out: Tensor, epochs: int, generator: torch.Generator
) -> tuple[tuple[float, ...], tuple[float, ...]]:
    """Leave the model with its best weights; return the losses of both parts, before training and after each epoch."""
    optimizer = torch.optim.Adam(model.parameters(), lr=LEARNING_RATE)
    losses, others, best, kept = [_finite_loss(model, train)], list[float](), 0, None
    if len(held_out):
        others, kept = [_finite_loss(model, held_out)], copy.deepcopy(model.state_dict())
    for epoch in range(1, epochs + 1):
        _epoch(model, optimizer, train, generator)
        losses.append(_finite_loss(model, train))
        if kept is None:
            continue
        # One vector that is thrown far out is no gain, and no reason to lose the weights that are kept.
        loss = _loss(model, held_out)
        others.append(loss if math.isfinite(loss) else math.inf)
        if others[epoch] < others[best]:
            best, kept = epoch, copy.deepcopy(model.state_dict())
        elif epoch - best == PATIENCE:
            break
    if kept is not None:
        model.load_state_dict(kept)
    return tuple(losses), tuple(others)


@torch.enable_grad()
def _epoch(model: Any, optimizer: torch.optim.Optimizer, rows: Tensor, generator: torch.Generator) -> None:
    for batch in torch.randperm(len(rows), generator=generator).split(BATCH_SIZE):
        loss = model.forward_kld(rows[batch])
        _check_finite(loss.item())
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()


def _loss(model: Any, rows: Tensor) -> float:
    """Return the mean negative log-likelihood of some rows."""
    with torch.no_grad():
        total = sum(model.forward_kld(block).double() * len(block) for block in rows.split(BATCH_SIZE))
    return float(total) / len(rows)


def _finite_loss(model: Any, rows: Tensor) -> float:
    loss = _loss(model, rows)
    _check_finite(loss)
    return loss


def _check_finite(loss: float) -> None:
    if not math.isfinite(loss):
        raise TrainingError("the likelihood of the flow is no longer finite; give it fewer blocks or more texts.")
