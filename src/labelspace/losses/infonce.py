r"""InfoNCE between descriptions and verbalizers (description-only supervision, eq. 1-3).

A batch is the full table of scores: one row per description, one column per label.

    scores[i, l] = cos(e(description i), e(verbalizer l)) / temperature

Rows ask each description for its own label: one positive, L - 1 negatives.
Columns ask each label for its own descriptions: several positives, pooled by a
log-sum-exp, so a strong description can cover for a weak one.

Axes        here      paper      meaning
            desc      D          descriptions in the batch, all labels stacked
            label     L          labels; column l is label l of the LabelSpace
            targets   y          column of each description's own label

Precision   Scores must be float32 or wider: at temperature 0.07 they reach +-14.3, and
            bfloat16 keeps two to three digits. `similarity.cosine_scores` upcasts, also inside autocast.
Checks      Shapes are checked here, on every call, because that is free. Values (targets in
            range, no label without a description) are checked where batches are made,
            because on a GPU each such check waits for the device.

This file knows nothing about encoders, texts or optimisers.
"""

from collections.abc import Iterator
from typing import Any

import torch
from jaxtyping import Float
from torch import Tensor
from torch.nn import functional as F

from labelspace.axes import Scalar, Scores, Targets
from labelspace.checks import check_choice, check_scores_and_targets, check_vectors_and_targets
from labelspace.losses.similarity import Temperature, check_temperature

BLOCK_SCORES = 2**22
"""Scores that `infonce_in_blocks` computes at once, and their gradient: 16 MiB each in float32."""


def infonce_rows(scores: Scores, targets: Targets) -> Scalar:
    r"""Row-wise InfoNCE: mean cross-entropy of each description against its own label.

    .. math::
        \mathcal{L}_\text{rows}
          = \frac{1}{D} \sum_{i=1}^{D}
            \Bigl( \log \sum_{l=1}^{L} e^{S_{il}} - S_{i y_i} \Bigr)

    Paper: the sum over labels y and their descriptions k there is the sum over rows i here.

    The gradient is plain: `softmax(scores[i])` minus one at the own label, over D. Every row of
    it sums to zero, so only score *differences* within a row matter.

    The mean runs over descriptions, as in the paper. A label with ten descriptions
    therefore weighs twice as much as one with five; use `infonce_columns`, or both, when
    counts differ.

    Worth knowing when reading a log: with equal scores the value is `log L`; with cosines in
    [-1, 1] it lies between `log(1 + (L-1) * exp(-2/t))` and `log(1 + (L-1) * exp(2/t))`,
    t being the temperature.

    Args:
        scores: [desc label], similarities already divided by the temperature.
        targets: [desc], integers, the column of each description's label, `0 <= targets < L`; -100 is no ignore index.

    Returns:
        A scalar, zero or more, with the dtype and device of `scores`.

    Raises:
        ShapeError: `scores` is not a matrix, or `targets` has not one entry per row.
        InputError: `targets` are no integers.

    Example:
        Three descriptions, two labels; the last lies nearer the wrong label.

        >>> scores = torch.tensor([[2.0, 0.0], [0.0, 2.0], [1.0, 0.0]])
        >>> targets = torch.tensor([0, 1, 1])
        >>> round(infonce_rows(scores, targets).item(), 4)
        0.5224

    See also:
        infonce_columns: the other direction; symmetric_infonce: half of each.

    Reference:
        "Description-only supervision", eq. 1. The form is that of
        van den Oord et al., 2018, https://arxiv.org/abs/1807.03748
    """
    check_scores_and_targets(scores, targets)
    return F.cross_entropy(scores, targets.long())


def infonce_columns(scores: Scores, targets: Targets) -> Scalar:
    r"""Column-wise multi-positive InfoNCE: each label against the whole set of its descriptions.

    .. math::
        \mathcal{L}_\text{cols}
          = \frac{1}{L} \sum_{l=1}^{L} \bigl( \log Z_l - \log Z_l^{+} \bigr), \qquad
        Z_l = \sum_{i=1}^{D} e^{S_{il}}, \quad
        Z_l^{+} = \sum_{i : y_i = l} e^{S_{il}}

    Paper: :math:`Z_\ell` and :math:`Z_\ell^+` of eq. 2.

    Within one label's positives the gradient weighs each description by its share of
    :math:`Z_l^+`: representative descriptions pull, outliers hardly do.

    Args:
        scores: [desc label], similarities already divided by the temperature.
        targets: [desc], integers, the column of each description's label, `0 <= targets < L`; -100 is no ignore index.

    Returns:
        A scalar, zero or more, with the dtype and device of `scores`. A label without a
        description has no positives and makes it infinite: give the columns of the labels that have one.

    Raises:
        ShapeError: `scores` is not a matrix, or `targets` has not one entry per row.
        InputError: `targets` are no integers.

    Example:
        >>> scores = torch.tensor([[2.0, 0.0], [0.0, 2.0], [1.0, 0.0]])
        >>> targets = torch.tensor([0, 1, 1])
        >>> round(infonce_columns(scores, targets).item(), 4)
        0.2601

        A batch of some labels' descriptions only:

        >>> targets = torch.tensor([0, 0, 0])
        >>> present, columns = targets.unique(return_inverse=True)
        >>> infonce_columns(scores, targets).item(), infonce_columns(scores[:, present], columns).item()
        (inf, 0.0)

    See also:
        infonce_rows: the other direction; symmetric_infonce: half of each.

    Reference:
        "Description-only supervision", eq. 2.
    """
    check_scores_and_targets(scores, targets)
    label_ids = torch.arange(scores.shape[1], device=scores.device)
    own = targets[:, None] == label_ids  # [desc label]
    everything = scores.logsumexp(dim=0)  # [label]
    positives = scores.masked_fill(~own, -torch.inf).logsumexp(dim=0)  # [label]
    return (everything - positives).mean()


def symmetric_infonce(scores: Scores, targets: Targets) -> Scalar:
    r"""Half of the rows, half of the columns: the paper's objective.

    .. math::
        \mathcal{L} = \tfrac{1}{2} \mathcal{L}_\text{rows} + \tfrac{1}{2} \mathcal{L}_\text{cols}

    Paper: eq. 3, the same names.

    Args:
        scores: [desc label], similarities already divided by the temperature.
        targets: [desc], integers, the column of each description's label, `0 <= targets < L`; -100 is no ignore index.

    Returns:
        A scalar, zero or more, with the dtype and device of `scores`; infinite if a label has no description.

    Raises:
        ShapeError: `scores` is not a matrix, or `targets` has not one entry per row.
        InputError: `targets` are no integers.

    Example:
        >>> scores = torch.tensor([[2.0, 0.0], [0.0, 2.0], [1.0, 0.0]])
        >>> targets = torch.tensor([0, 1, 1])
        >>> round(symmetric_infonce(scores, targets).item(), 4)
        0.3912

        With descriptions of some labels only, rows still compare with all of them, and columns leave the others out:

        >>> targets = torch.tensor([0, 0, 0])
        >>> present, columns = targets.unique(return_inverse=True)
        >>> loss = (infonce_rows(scores, targets) + infonce_columns(scores[:, present], columns)) / 2
        >>> symmetric_infonce(scores, targets).item(), round(loss.item(), 4)
        (inf, 0.4279)

    See also:
        infonce_rows, infonce_columns: its halves.

    Reference:
        "Description-only supervision", eq. 3.
    """
    return 0.5 * infonce_rows(scores, targets) + 0.5 * infonce_columns(scores, targets)


def infonce_in_blocks(
    descriptions: Float[Tensor, "desc dim"],
    verbalizers: Float[Tensor, "label dim"],
    targets: Targets,
    temperature: Temperature,
    objective: str = "both",
) -> Scalar:
    r"""InfoNCE of embeddings, by rows, by columns or both, without ever holding the whole table of scores.

    .. math::
        \mathcal{L}_\text{rows} = \frac{1}{D} \sum_{i=1}^{D} (\log Z_i - S_{i y_i}), \qquad
        \mathcal{L}_\text{cols} = \frac{1}{L} \sum_{l=1}^{L} (\log Z_l - \log Z_l^{+})

    Paper: eq. 1-3 again. Both directions need of the table only the log-sum-exp of its rows,
    :math:`\log Z_i`, that of its columns, :math:`\log Z_l`, and each description's score with its own
    label. These are computed in blocks of rows, which are computed again for the gradient: 50,000
    descriptions and 10,000 labels are 2 GB of scores, and several times as much with their gradient.

    Value and gradient are those of `symmetric_infonce(cosine_scores(...))` and its halves, up to rounding. A second
    derivative takes the whole table at once.

    Args:
        descriptions: [desc dim], embeddings, not necessarily of unit length.
        verbalizers: [label dim], embeddings of the same width.
        targets: [desc], integers, the column of each description's label, `0 <= targets < L`; -100 is no ignore index.
        temperature: divides the cosines, above 0.
        objective: `"rows"`, `"columns"` or `"both"`.

    Returns:
        A scalar, zero or more; infinite if a label has no description and columns count.

    Raises:
        ShapeError: the embeddings are not matrices of one width, one is empty, or `targets` has not one entry per
            description.
        InputError: `targets` are no integers.
        ConfigError: `objective` is none of the three, or `temperature` a number that is not above zero.

    Example:
        >>> texts = torch.tensor([[1.0, 0.0], [0.0, 1.0], [0.8, 0.6]])
        >>> labels, targets = torch.eye(2), torch.tensor([0, 1, 1])
        >>> round(infonce_in_blocks(texts, labels, targets, 0.5).item(), 4)
        0.3645

    See also:
        symmetric_infonce: the same of scores.

    Reference:
        "Description-only supervision", eq. 1-3.
    """
    names = "descriptions [desc dim] and verbalizers [label dim]"
    check_vectors_and_targets(descriptions, verbalizers, targets, names)
    check_temperature(temperature)
    check_choice("objective", objective, ("rows", "columns", "both"))
    targets = targets.long()
    wide = torch.promote_types(torch.promote_types(descriptions.dtype, verbalizers.dtype), torch.float32)
    texts = descriptions.to(wide)
    labels = F.normalize(verbalizers.to(wide), dim=-1) / temperature
    of_rows, everything, own = _Sums.apply(texts, labels, targets)  # [desc], [label], [desc]
    losses = []
    if objective != "columns":
        losses.append((of_rows - own).mean())
    if objective != "rows":
        highest = torch.full_like(everything, -torch.inf).scatter_reduce(0, targets, own.detach(), "amax")
        shares = torch.zeros_like(everything).index_add(0, targets, (own - highest[targets]).exp())
        losses.append((everything - (highest + shares.log())).mean())
    return torch.stack(losses).mean()


class _Sums(torch.autograd.Function):
    """Log-sum-exp of each row and column of the scores, and each row's score with its own label.

    The scores are `normalize(texts) @ labels.T`: normalised in here, no copy of all texts is needed.
    """

    @staticmethod
    def forward(ctx: Any, texts: Tensor, labels: Tensor, targets: Tensor) -> tuple[Tensor, Tensor, Tensor]:
        of_rows, own = texts.new_empty(len(texts)), texts.new_empty(len(texts))
        of_columns = labels.new_full((len(labels),), -torch.inf)
        (table,) = _tables(1, texts, labels)
        for block, columns, row_sum, own_score in _blocks(len(labels), texts, targets, of_rows, own):
            scores = torch.mm(F.normalize(block, dim=-1), labels.T, out=table[: len(block)])
            torch.logsumexp(scores, dim=1, out=row_sum)
            own_score.copy_(scores.gather(1, columns[:, None])[:, 0])
            torch.logaddexp(of_columns, scores.logsumexp(dim=0), out=of_columns)
        ctx.save_for_backward(texts, labels, targets, of_rows, of_columns)
        return of_rows, of_columns, own

    @staticmethod
    def backward(ctx: Any, *grad_outputs: Tensor) -> tuple[Tensor | None, Tensor | None, None]:
        by_rows, by_columns, by_own = grad_outputs
        texts, labels, targets, of_rows, of_columns = ctx.saved_tensors
        if torch.is_grad_enabled():  # a second derivative is wanted, so autograd must see the gradient being made
            with torch.autocast(texts.device.type, enabled=False):
                # Views, since one may have been computed from the other, and that road is followed outside.
                texts, labels = texts.view_as(texts), labels.view_as(labels)
                scores = F.normalize(texts, dim=-1) @ labels.T
                sums = scores.logsumexp(dim=1), scores.logsumexp(dim=0), scores.gather(1, targets[:, None])[:, 0]
                wanted = [leaf for leaf, needed in zip((texts, labels), ctx.needs_input_grad, strict=False) if needed]
                found = iter(torch.autograd.grad(sums, wanted, grad_outputs, create_graph=True))
            return next(found) if ctx.needs_input_grad[0] else None, next(found, None), None
        by_texts, by_labels = torch.empty_like(texts), torch.zeros_like(labels)
        table, other = _tables(2, texts, labels)
        given = (texts, by_texts, targets, of_rows, by_rows, by_own)
        for block, by_text, columns, row_sum, by_row, by_score in _blocks(len(labels), *given):
            unit = F.normalize(block, dim=-1)
            scores = torch.mm(unit, labels.T, out=table[: len(block)])
            # d log-sum-exp / d score is the softmax, of the row and of the column.
            gradient = torch.sub(scores, row_sum[:, None], out=other[: len(block)]).exp_().mul_(by_row[:, None])
            gradient.addcmul_(scores.sub_(of_columns).exp_(), by_columns)
            gradient.scatter_add_(1, columns[:, None], by_score[:, None])
            by_labels.addmm_(gradient.T, unit)
            by_unit = gradient @ labels
            # A unit vector changes only across its own direction, and the less the longer the vector is.
            across = by_unit - unit * (unit * by_unit).sum(dim=-1, keepdim=True)
            torch.div(across, block.norm(dim=-1, keepdim=True).clamp_min(1e-12), out=by_text)
        return by_texts, by_labels, None


def _tables(count: int, texts: Tensor, labels: Tensor) -> Tensor:
    """Return room for the scores of a block; made once, because new room for every block leaves gaps in the memory."""
    return texts.new_empty(count, min(len(texts), _rows(len(labels))), len(labels))


def _blocks(labels: int, *rows: Tensor) -> Iterator[tuple[Tensor, ...]]:
    """Yield tensors in blocks of so many rows that a block has at most `BLOCK_SCORES` scores."""
    return zip(*(each.split(_rows(labels)) for each in rows), strict=True)


def _rows(labels: int) -> int:
    return max(1, BLOCK_SCORES // labels)
