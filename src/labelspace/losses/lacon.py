r"""LaCon: every text against the labels, every label against the texts, labels apart (LaCon, eq. 3-7).

    scores[i, p] = cos(instance i, label p) / temperature

Rows ask each text for its own label (`instance_centred`). Columns ask each label for its own texts
(`label_centred`). The labels alone are spread over the sphere (`label_regularizer`). `lacon_loss` adds
the three. The two contrastive baselines of the paper stand at the end.

Axes        here        paper      meaning
            text        N          texts in the batch
            label       C          labels; row p is label p of the LabelSpace
            dim         d          coordinates of a vector
            instances   H          vectors of the texts, after the projection head
            labels      L          vectors of the labels
            targets     y          row of each text's own label

Precision   Vectors may be of any length and of any float type; cosines and sums are float32 or wider, also
            inside autocast. Call `backward` outside it, as torch advises.
Cost        Texts against labels: O(text label dim) of time, O(text label) of memory. Labels against labels, in
            `label_regularizer`: O(label label dim) of time, and nothing of shape [label label] is ever held, only
            a block of its rows.
Checks      Shapes are checked here, on every call. Values (targets in range) are checked where batches
            are made, because on a GPU each such check waits for the device.

This file knows nothing about encoders, texts or optimisers.
"""

from typing import Any, NamedTuple

import torch
from jaxtyping import Float, Int
from torch import Tensor
from torch.nn import functional as F

from labelspace.axes import Embeddings, Scalar
from labelspace.checks import check_number, check_vectors_and_targets
from labelspace.errors import ShapeError
from labelspace.losses.infonce import infonce_rows
from labelspace.losses.similarity import Temperature, cosine_scores

# Cosines between labels that are held at once: 16 MiB of float32 for one such block.
BLOCK = 2**22


class LaConLoss(NamedTuple):
    """The sum of equation 7 and its three parts, the parts without their weights."""

    total: Scalar
    instance: Scalar
    label: Scalar
    regularizer: Scalar


def instance_centred(
    instances: Embeddings,
    labels: Float[Tensor, "label dim"],
    targets: Int[Tensor, " text"],
    temperature: Temperature,
    heads: int = 1,
) -> Scalar:
    r"""Instance-centred contrastive loss: each text against all labels, head by head.

    .. math::
        \mathcal{L}'_\text{ICL}
          = -\frac{1}{N} \sum_{k=1}^{m} \sum_{i=1}^{N}
            \log \frac{\exp(\cos(h_i^k, l_{y_i}^k) / \tau)}{\sum_{p=1}^{C} \exp(\cos(h_i^k, l_p^k) / \tau)}

    Paper: eq. 4, and eq. 3 for one head. Head k is the k-th of m equal slices of the coordinates, each
    brought to unit length of its own, because `sim` is the cosine of the slices. It is a sum over heads and
    a mean over texts: with equal scores it is `m log C`, so its weight against the other losses grows with m.

    Args:
        instances: [text dim], the vectors of the texts.
        labels: [label dim], the vectors of all labels.
        targets: [text], integers, the row of each text's label, `0 <= targets < C`; -100 is no ignore index.
        temperature: :math:`\tau`, above zero; the paper recommends 0.1 to 0.2.
        heads: m, a divisor of `dim`; 6 was best in section 4.4.

    Returns:
        A scalar, at most `m log(1 + (C-1) exp(2/t))` and above zero, float32 or wider.

    Raises:
        ShapeError: the vectors are not matrices of one width, `targets` has not one entry per text, or
            `heads` does not divide the width.
        InputError: `targets` are no integers.
        ConfigError: `temperature` or `heads` is out of its range.

    Example:
        >>> instances = torch.tensor([[1.0, 0.0], [0.0, 1.0], [1.0, 1.0]])
        >>> labels, targets = torch.eye(2), torch.tensor([0, 1, 1])
        >>> round(instance_centred(instances, labels, targets, temperature=0.5).item(), 4)
        0.3157

    See also:
        label_centred: the other direction; infonce_rows: the same on a table of scores.

    Reference:
        Zhang et al., "Label anchored contrastive learning for language understanding", eq. 3 and 4.
    """
    check_vectors_and_targets(instances, labels, targets)
    check_number("heads", heads, least=1, whole=True)
    if instances.shape[1] % heads:
        raise ShapeError(f"heads must divide the width of the vectors, {instances.shape[1]}. Got {heads} instead.")
    slices = zip(instances.chunk(heads, dim=1), labels.chunk(heads, dim=1), strict=True)
    return torch.stack([infonce_rows(cosine_scores(h, k, temperature), targets) for h, k in slices]).sum()


def label_centred(
    instances: Embeddings,
    labels: Float[Tensor, "label dim"],
    targets: Int[Tensor, " text"],
    temperature: Temperature,
) -> Scalar:
    r"""Label-centred contrastive loss: each label of the batch against the texts of the batch.

    .. math::
        \mathcal{L}_\text{LCL}
          = -\frac{1}{|P|} \sum_{p \in P} \sum_{a \in A(p)}
            \log \frac{\exp(\cos(l_p, h_a) / \tau)}{\sum_{b \in B(p)} \exp(\cos(l_p, h_b) / \tau)}

    Paper: eq. 5, the same names: A(p) are the texts of label p, B(p) all others, P the labels with a text in
    the batch. The denominator holds the negatives only, so the value may fall below zero: a term is
    :math:`\log |B| - 2/\tau` at best. The sum over A(p) is no mean: a label with many texts weighs more.
    A label without a negative has no denominator and gives no term; that happens where all texts of a
    batch are of one label, and the loss is then 0 with a gradient of zeros. The paper does not speak of it.

    Args:
        instances: [text dim], the vectors of the texts.
        labels: [label dim], the vectors of all labels.
        targets: [text], integers, the row of each text's label, `0 <= targets < C`; -100 is no ignore index.
        temperature: :math:`\tau`, above zero.

    Returns:
        A scalar of either sign, float32 or wider.

    Raises:
        ShapeError: the vectors are not matrices of one width, or `targets` has not one entry per text.
        InputError: `targets` are no integers.
        ConfigError: `temperature` is out of its range.

    Example:
        >>> instances = torch.tensor([[1.0, 0.0], [0.0, 1.0], [1.0, 1.0]])
        >>> labels, targets = torch.eye(2), torch.tensor([0, 1, 1])
        >>> round(label_centred(instances, labels, targets, temperature=0.5).item(), 4)
        -1.8912

    See also:
        instance_centred: the other direction; infonce_columns: pools the positives before the logarithm.

    Reference:
        Zhang et al., "Label anchored contrastive learning for language understanding", eq. 5.
    """
    check_vectors_and_targets(instances, labels, targets)
    scores = cosine_scores(instances, labels, temperature)  # [text label]
    own = targets[:, None] == torch.arange(labels.shape[0], device=targets.device)  # [text label]
    positives = own.sum(dim=0)  # [label]
    others = positives < len(targets)  # [label], there is a negative
    # A column of -inf alone would make the gradient nan: where there is no negative, nothing is hidden.
    denominators = scores.masked_fill(own & others, -torch.inf).logsumexp(dim=0)  # [label]
    terms = positives * denominators - torch.where(own, scores, 0.0).sum(dim=0)  # [label]
    counted = (positives > 0) & others
    return torch.where(counted, terms, 0.0).sum() / counted.sum().clamp(min=1)


def label_regularizer(labels: Float[Tensor, "label dim"]) -> Scalar:
    r"""Label embedding regularizer: how near the labels lie to one another, with the near ones felt most.

    .. math::
        \mathcal{L}_\text{LER}
          = \frac{1}{C (C - 1)} \sum_{i \neq j} \bigl( e^{1 + \cos(l_i, l_j)} - 1 \bigr)

    Paper: eq. 6, where "avg" does not say over what. Here it is the mean over the C(C-1) pairs of distinct
    labels, which is also the mean over unordered pairs, because only then the value "varies from 0 to
    e^2 - 1" as the text says: a mean over all C^2 pairs would end below it.

    Rows of cosines are made block by block, and the gradient along with the value, so C = 10,000 needs some
    tens of MiB. Time is O(C^2 d) all the same, and with thousands of labels more than that of all else in eq. 7;
    a weight of 0 still computes it. A second derivative, which training never asks for, takes all pairs at once.

    Args:
        labels: [label dim], the vectors of all labels.

    Returns:
        A scalar between 0 (two labels, opposite) and e^2 - 1 = 6.39 (all on one point), float32 or wider.
        A single label has no pair and gives 0.

    Raises:
        ShapeError: `labels` is not a matrix.

    Example:
        Two labels at a right angle: e - 1.

        >>> round(label_regularizer(torch.eye(2)).item(), 4)
        1.7183

    Reference:
        Zhang et al., "Label anchored contrastive learning for language understanding", eq. 6.
    """
    if labels.ndim != 2 or labels.shape[0] == 0:
        raise ShapeError(f"labels must be a matrix [label dim]. Got shape {tuple(labels.shape)} instead.")
    wide = labels.to(torch.promote_types(labels.dtype, torch.float32))
    with torch.autocast(labels.device.type, enabled=False):
        return _MeanOverPairs.apply(F.normalize(wide, dim=1))


def lacon_loss(
    instances: Embeddings,
    labels: Float[Tensor, "label dim"],
    targets: Int[Tensor, " text"],
    temperature: Temperature,
    heads: int = 6,
    regularizer_weight: float = 0.1,
    instance_weight: float = 1.0,
    label_weight: float = 1.0,
) -> LaConLoss:
    r"""LaCon's objective: instance-centred, label-centred, and the regularizer.

    .. math::
        \mathcal{L} = \mathcal{L}'_\text{ICL} + \mathcal{L}_\text{LCL} + \lambda \mathcal{L}_\text{LER}

    Paper: eq. 7; :math:`\lambda` is `regularizer_weight`. The other two weights are 1 there; 0 takes a part
    out, as the ablations of tables 3 and 6 do. The paper searches :math:`\lambda` from 0.1 to 1.0 and finds
    that too large a one hurts, so the default is the smallest.

    Args:
        instances: [text dim], the vectors of the texts.
        labels: [label dim], the vectors of all labels.
        targets: [text], integers, the row of each text's label, `0 <= targets < C`; -100 is no ignore index.
        temperature: :math:`\tau`, above zero; searched from 0.05 to 0.5 in the paper.
        heads: of the instance-centred part, a divisor of `dim`.
        regularizer_weight: :math:`\lambda`, zero or more.
        instance_weight: of the instance-centred part, zero or more.
        label_weight: of the label-centred part, zero or more.

    Returns:
        `total`, and the parts `instance`, `label` and `regularizer` before weighting; float32 or wider. A
        regularizer of weight 0 is not computed, and told as 0.

    Raises:
        ShapeError: as `instance_centred`.
        InputError: `targets` are no integers.
        ConfigError: an option is out of its range.

    Example:
        >>> instances = torch.tensor([[1.0, 0.0], [0.0, 1.0], [1.0, 1.0]])
        >>> labels, targets = torch.eye(2), torch.tensor([0, 1, 1])
        >>> loss = lacon_loss(instances, labels, targets, temperature=0.5, heads=1)
        >>> [round(part.item(), 4) for part in loss]
        [-1.4037, 0.3157, -1.8912, 1.7183]

    See also:
        instance_centred, label_centred, label_regularizer: its parts.

    Reference:
        Zhang et al., "Label anchored contrastive learning for language understanding", eq. 7.
    """
    weights = {
        "instance_weight": instance_weight,
        "label_weight": label_weight,
        "regularizer_weight": regularizer_weight,
    }
    for name, weight in weights.items():
        check_number(name, weight, least=0)
    instance = instance_centred(instances, labels, targets, temperature, heads)
    label = label_centred(instances, labels, targets, temperature)
    # With thousands of labels it is the dearest part by far.
    regularizer = label_regularizer(labels) if regularizer_weight else torch.zeros_like(label)
    parts = (instance, label, regularizer)
    total = torch.stack([weight * part for weight, part in zip(weights.values(), parts, strict=True)]).sum()
    return LaConLoss(total, *parts)


def supervised_contrastive(instances: Embeddings, targets: Int[Tensor, " text"], temperature: Temperature) -> Scalar:
    r"""Supervised contrastive loss: each text against the other texts of the batch, those of its label pulled.

    .. math::
        \mathcal{L}_\text{SCL}
          = \frac{1}{|I|} \sum_{i \in I} \frac{-1}{|A(i)|} \sum_{a \in A(i)}
            \log \frac{\exp(\cos(h_i, h_a) / \tau)}{\sum_{k \neq i} \exp(\cos(h_i, h_k) / \tau)}

    Paper: Gunel et al.'s eq. 3, where A(i) are the other texts of the same label and :math:`|A(i)|` is written
    :math:`N_{y_i} - 1`. A text that is alone with its label has nothing to be pulled to and is left out of I;
    a batch without any pair gives 0. The sum over texts there is a mean over I here, as in the authors' code of
    Khosla et al., so that the weight beside cross-entropy does not depend on the size of the batch.

    Args:
        instances: [text dim], the vectors of the texts.
        targets: [text], integers, the label of each text; -100 is no ignore index.
        temperature: :math:`\tau`, above zero.

    Returns:
        A scalar, zero or more, float32 or wider. Memory grows with the square of the batch.

    Raises:
        ShapeError: `instances` is not a matrix, or `targets` has not one entry per text.
        InputError: `targets` are no integers.
        ConfigError: `temperature` is out of its range.

    Example:
        >>> instances = torch.tensor([[1.0, 0.0], [1.0, 0.0], [0.0, 1.0]])
        >>> round(supervised_contrastive(instances, torch.tensor([0, 0, 1]), temperature=0.5).item(), 4)
        0.1269

    See also:
        self_supervised_contrastive: without labels; label_centred: with a label as anchor.

    Reference:
        Gunel et al., 2021, https://arxiv.org/abs/2011.01403, eq. 3; Khosla et al., 2020,
        https://arxiv.org/abs/2004.11362, eq. 2. The baseline CE+SCL of LaCon, section 3.2.
    """
    check_vectors_and_targets(instances, instances, targets)
    scores = cosine_scores(instances, instances, temperature)  # [text text]
    self_pairs = torch.eye(len(targets), dtype=torch.bool, device=scores.device)
    positive = (targets[:, None] == targets) & ~self_pairs
    # A text that is the whole batch would get a row of -inf and a gradient of nan; it counts for nothing below.
    hidden = self_pairs & (len(targets) > 1)
    log_shares = scores - scores.masked_fill(hidden, -torch.inf).logsumexp(dim=1, keepdim=True)
    positives = positive.sum(dim=1)  # [text]
    terms = -torch.where(positive, log_shares, 0.0).sum(dim=1) / positives.clamp(min=1)  # [text]
    return terms.sum() / (positives > 0).sum().clamp(min=1)


def self_supervised_contrastive(first: Embeddings, second: Embeddings, temperature: Temperature) -> Scalar:
    r"""SimCSE's loss: each text's first view against the second views of all texts of the batch.

    .. math::
        \mathcal{L}_\text{CL}
          = -\frac{1}{N} \sum_{i=1}^{N}
            \log \frac{\exp(\cos(h_i, h'_i) / \tau)}{\sum_{j=1}^{N} \exp(\cos(h_i, h'_j) / \tau)}

    Paper: Gao et al.'s eq. 1, the same names. The two views are the same text encoded under two dropout masks. It
    runs in one direction only, and the first views are not negatives of one another as in SimCLR.

    Args:
        first: [text dim], :math:`h_i`.
        second: [text dim], :math:`h'_i`, the other view of each text.
        temperature: :math:`\tau`, above zero; 0.05 in SimCSE.

    Returns:
        A scalar, zero or more, float32 or wider; `log N` at equal scores. Memory grows with the square of the batch.

    Raises:
        ShapeError: the inputs are not matrices of one shape.
        ConfigError: `temperature` is out of its range.

    Example:
        >>> round(self_supervised_contrastive(torch.eye(2), torch.eye(2), temperature=0.5).item(), 4)
        0.1269

    See also:
        supervised_contrastive: with labels.

    Reference:
        Gao et al., 2021, https://arxiv.org/abs/2104.08821, eq. 1. The baseline CE+CL of LaCon, section 3.2.
    """
    if first.ndim != 2 or first.shape != second.shape or first.shape[0] == 0:
        raise ShapeError(
            "self_supervised_contrastive needs two matrices of one shape, with one text at least. "
            f"Got shapes {tuple(first.shape)} and {tuple(second.shape)} instead."
        )
    return infonce_rows(cosine_scores(first, second, temperature), torch.arange(len(first), device=first.device))


class _MeanOverPairs(torch.autograd.Function):
    """Equation 6 on unit vectors, a block of rows at a time.

    Plain autograd would keep every block until the backward pass, which is [label label] again. The gradient
    needs the same cosines as the value, so it is made beside it and waits as [label dim]:

        d L / d u_i = 2 / (C (C - 1)) * sum over j != i of exp(1 + u_i . u_j) u_j
    """

    @staticmethod
    def forward(ctx: Any, unit: Tensor) -> Tensor:
        count = unit.shape[0]
        rows = max(BLOCK // count, 1)
        gradient = torch.empty_like(unit) if ctx.needs_input_grad[0] else None
        sums = []
        for start in range(0, count, rows):
            block = (unit[start : start + rows] @ unit.T).add_(1).expm1_()  # [rows label]
            block.diagonal(start).zero_()
            sums.append(block.sum())
            if gradient is not None:
                block.add_(1).diagonal(start).zero_()
                gradient[start : start + rows] = block @ unit
        pairs = max(count * (count - 1), 1)
        if gradient is not None:
            ctx.save_for_backward(unit, gradient.mul_(2 / pairs))
        return torch.stack(sums).sum() / pairs

    @staticmethod
    def backward(ctx: Any, *outer: Tensor) -> Tensor:
        unit, gradient = ctx.saved_tensors
        if torch.is_grad_enabled():  # a second derivative is wanted, so autograd must see the gradient being made
            with torch.autocast(unit.device.type, enabled=False):
                pull = (unit @ unit.T + 1).exp()
                pull = pull - pull.diagonal().diag_embed()
                gradient = pull @ unit * (2 / max(len(unit) * (len(unit) - 1), 1))
        return outer[0] * gradient
