r"""The heads of LaCon and of its two label-embedding baselines (LaCon, sections 2.1, 2.6 and 3.2).

    LaCon-vanilla   [CLS] -> ProjectionHead                -> cosine with LabelEmbeddings
    LaCon-fusion    words -> FusionHead -> ProjectionHead  -> cosine with LabelEmbeddings
    LEAM            words -> LEAMHead                      -> logits
    LSAN            words -> LSANHead                      -> logits

Axes        here      paper      meaning
            text      N          texts in the batch
            token     M          words of a text, padded to the longest of the batch
            label     C          labels
            dim       d          width of the encoder
            hidden    -          width inside a classifier or an attention

Words       `states` [text token dim] are the rows of the encoder's output; `mask` [text token] is true (or 1) at words.
            The paper's E includes the [CLS] row, so `mask` is the encoder's attention mask. `states` at padding are
            ignored. A text without words becomes a vector of zeros.
Seeds       Initial values come only from the generator given. It is on the CPU, so they do not depend on the device.
Precision   Words in a narrow float type are widened to float32, and so are the results; `ProjectionHead` computes in
            the type of its weights. The weights of `LEAMHead` and `LSANHead` are float32. Inside autocast, torch
            narrows the products as usual.
Baselines   Both are trained by cross-entropy on their logits, one label per text, on the words of the same encoder
            and with its dropout. LaCon gives no formula for them. Statements about their code come from the code
            (guoyinwang/LEAM, model.py and main.py; EMNLP2019LSAN/LSAN, attention/model.py and config.yml); those about
            their papers were written from memory.
"""

from typing import final

import torch
from jaxtyping import Float
from torch import Tensor, nn
from torch.nn import functional as F

from labelspace.checks import check_number
from labelspace.errors import ConfigError, ShapeError
from labelspace.heads.layers import Mask, States, check_generator, linear, widened, word_weights

Labels = Float[Tensor, "label dim"]


@final
class ProjectionHead(nn.Module):
    r"""Three linear layers of the same width, with ReLU after the first two.

    .. math::
        g(x) = W_3 \max(0, W_2 \max(0, W_1 x + b_1) + b_2) + b_3

    Paper: g of eq. 1. The paper gives no initialisation; torch's for linear layers is used.

    Args:
        dim: d, the width of the encoder.
        generator: generator of the initial values, on the CPU.

    Raises:
        ConfigError: `dim` is out of its range, or the generator is not on the CPU.

    Example:
        >>> head = ProjectionHead(8, generator=torch.Generator().manual_seed(0))
        >>> head(torch.ones(2, 8)).shape
        torch.Size([2, 8])

    Reference:
        LaCon, section 2.1.
    """

    def __init__(self, dim: int, *, generator: torch.Generator) -> None:
        super().__init__()
        check_number("dim", dim, least=1, whole=True)
        check_generator(generator)
        self.dim = dim
        self.first = linear(dim, dim, generator)
        self.second = linear(dim, dim, generator)
        self.third = linear(dim, dim, generator)

    def forward(self, states: Float[Tensor, "text dim"]) -> Float[Tensor, "text dim"]:
        """Return the vectors H of the texts, [text dim], not normalized, with the dtype of the weights.

        `states` are the [CLS] rows or the output of `FusionHead`, of any float type.

        Raises:
            ShapeError: `states` is not a matrix as wide as the head.
        """
        if states.ndim != 2 or states.shape[1] != self.dim:
            raise ShapeError(
                f"states must be a matrix [text dim] with {self.dim} columns. Got shape {tuple(states.shape)} instead."
            )
        return self.third(F.relu(self.second(F.relu(self.first(states.to(self.first.weight.dtype))))))


@final
class LabelEmbeddings(nn.Module):
    r"""One learnable vector for each label.

    Paper: :math:`W_\text{emb}` of eq. 2, "randomly initialized" with no standard deviation given. It is 0.02 here, as
    for BERT's embeddings. The value matters: only the direction of a vector is used, and AdamW moves each coordinate
    by about the learning rate, so one update turns a vector by about `learning rate / spread`. At a learning rate of
    2e-5 that is 1e-3; with torch's default of 1 for embeddings, labels would hardly move.

    Args:
        labels: C, the number of labels.
        dim: d, the width of the encoder.
        generator: generator of the initial values, on the CPU.
        spread: standard deviation of the initial values, above zero.

    Raises:
        ConfigError: an argument is out of its range, or the generator is not on the CPU.

    Example:
        >>> LabelEmbeddings(3, 8, generator=torch.Generator().manual_seed(0))().shape
        torch.Size([3, 8])

    Reference:
        LaCon, section 2.1.
    """

    def __init__(self, labels: int, dim: int, *, generator: torch.Generator, spread: float = 0.02) -> None:
        super().__init__()
        check_number("labels", labels, least=1, whole=True)
        check_number("dim", dim, least=1, whole=True)
        check_number("spread", spread, above=0)
        check_generator(generator)
        self.vectors = nn.Parameter(torch.empty(labels, dim).normal_(0, spread, generator=generator))

    def forward(self) -> Labels:
        """Return all vectors, [label dim], not normalized."""
        return self.vectors


@final
class FusionHead(nn.Module):
    r"""LaCon-fusion: words weighted by how near they and their neighbours lie to any label.

    .. math::
        G_{tp} = \cos(e_t, l_p), \quad
        m_t = \max_p \sum_{r} w_r G_{t+r,\,p}, \quad
        \beta = \operatorname{softmax}(m), \quad
        z = \sum_t \beta_t e_t

    Paper: eq. 9; :math:`e_t` is its :math:`E_j`, and G is transposed so that words come first. The paper does not
    define the convolution. Here it is that of LEAM, which inspired it: along the words, one filter w for all labels,
    zeros beyond both ends, then the maximum over labels. So scores do not depend on the order of the labels, and labels
    can be added and removed. There is no ReLU, because eq. 9 has none, and no bias, because it cancels in the softmax.
    The default window is 5: the states already know their context, and 5 is a usual width for words (Kim, 2014, takes
    3 to 5).

    Args:
        generator: generator of the filter's initial values, on the CPU.
        window: number of words under the filter, odd.

    Raises:
        ConfigError: `window` is not odd or is below 1, or the generator is not on the CPU.

    Example:
        >>> head = FusionHead(generator=torch.Generator().manual_seed(0))
        >>> mask = torch.tensor([[1, 1, 1], [1, 1, 0]])
        >>> head(torch.ones(2, 3, 8), mask, torch.ones(4, 8)).shape
        torch.Size([2, 8])

    Reference:
        LaCon, section 2.6, eq. 9; the convolution: Wang et al., 2018, https://arxiv.org/abs/1805.04174, section 4.
    """

    def __init__(self, *, generator: torch.Generator, window: int = 5) -> None:
        super().__init__()
        _check_window(window)
        check_generator(generator)
        self.filter = _filter(window, generator)

    def attention(self, states: States, mask: Mask, labels: Labels) -> Float[Tensor, "text token"]:
        """Return the weights of the words, which sum to 1 in each text and are 0 at padding.

        `labels` are the label embeddings, [label dim].

        Raises:
            ShapeError: the shapes do not match.
        """
        _check_words(states, mask, labels.shape)
        words = mask.bool()
        return word_weights(_match(widened(states, words), labels, self.filter).amax(dim=2), words)

    def forward(self, states: States, mask: Mask, labels: Labels) -> Float[Tensor, "text dim"]:
        """Return the fused vector z of each text, [text dim], float32 or wider; the input of `ProjectionHead`.

        `labels` are the label embeddings, [label dim].

        Raises:
            ShapeError: the shapes do not match.
        """
        weights = self.attention(states, mask, labels)
        return _pooled(weights, widened(states, mask.bool()))


@final
class LEAMHead(nn.Module):
    r"""LEAM: words weighted by their match with the labels, then a classifier of two layers.

    .. math::
        m_t = \max_p \max\bigl(0, b_p + \sum_{r} w_r G_{t+r,\,p}\bigr), \quad
        z = \sum_t \operatorname{softmax}(m)_t \, e_t, \quad
        \ell = U_2 \max(0, U_1 z + c_1) + c_2

    G is that of `FusionHead`. The labels share the filter, and each has its own bias, as in LEAM's paper; its code
    instead mixes the labels by a filter of C x C x window. The default window and hidden width are those of its code,
    where the regularizer has a weight of 1. States may be of any float type; the weights are float32.

    Args:
        labels: the label embeddings, trained with the head; they set the number of labels and the width.
        generator: generator of the initial values, on the CPU.
        window: number of words under the filter, odd.
        hidden: width inside the classifier.

    Raises:
        ConfigError: an argument is out of its range, or the generator is not on the CPU.

    Example:
        >>> generator = torch.Generator().manual_seed(0)
        >>> head = LEAMHead(LabelEmbeddings(4, 8, generator=generator), generator=generator)
        >>> head(torch.ones(2, 3, 8), torch.ones(2, 3, dtype=torch.bool)).shape
        torch.Size([2, 4])

    Reference:
        Wang et al., 2018, https://arxiv.org/abs/1805.04174, section 4; LaCon, section 3.2.
    """

    def __init__(
        self, labels: LabelEmbeddings, *, generator: torch.Generator, window: int = 55, hidden: int = 300
    ) -> None:
        super().__init__()
        _check_window(window)
        check_number("hidden", hidden, least=1, whole=True)
        check_generator(generator)
        count, dim = labels.vectors.shape
        self.labels = labels
        self.filter = _filter(window, generator)
        self.bias = nn.Parameter(torch.zeros(count))
        self.inner = linear(dim, hidden, generator)
        self.outer = linear(hidden, count, generator)

    def forward(self, states: States, mask: Mask) -> Float[Tensor, "text label"]:
        """Return the logits of each text, [text label], float32 or wider.

        Raises:
            ShapeError: the shapes do not match.
        """
        _check_words(states, mask, self.labels.vectors.shape)
        words = mask.bool()
        wide = widened(states, words)
        match = F.relu(_match(wide, self.labels(), self.filter) + self.bias)  # [text token label]
        return self._classify(_pooled(word_weights(match.amax(dim=2), words), wide))

    def label_logits(self) -> Float[Tensor, "label label"]:
        """Return the logits of the label embeddings themselves, [label label].

        LEAM's regularizer is the cross-entropy of row p with target p; LaCon does not say whether it used it.
        """
        return self._classify(self.labels())

    def _classify(self, vectors: Float[Tensor, "row dim"]) -> Float[Tensor, "row label"]:
        return self.outer(F.relu(self.inner(vectors)))


@final
class LSANHead(nn.Module):
    r"""LSAN: a vector of the text for each label, mixed from self-attention and label-attention.

    .. math::
        A &= \operatorname{softmax}_t(W_2 \tanh(W_1 E^\top)), & S &= A E, & M &= (L E^\top) E, \\
        \alpha &= \sigma(S w_3), & \beta &= \sigma(M w_4), &
        \ell_p &= w_6^\top \max\Bigl(0, W_5\,\frac{\alpha_p S_p + \beta_p M_p}{\alpha_p + \beta_p}\Bigr)

    E are the words, L the label embeddings. Label-attention is not normalized over the words, as in LSAN's paper and
    code, so it grows with the length of a text. The encoder replaces both directions of the LSTM; softmax over the
    logits replaces the sigmoid, as in LaCon. Each label is scored from its own vector by shared weights without
    bias, as in LSAN's paper; its code averages over labels first, and has biases. States may be of any float type; the
    weights are float32.

    Args:
        labels: the label embeddings, trained with the head; they set the number of labels and the width.
        generator: generator of the initial values, on the CPU.
        attention: rows of W_1, 200 in LSAN's code.
        hidden: rows of W_5, 256 in LSAN's paper.

    Raises:
        ConfigError: an argument is out of its range, or the generator is not on the CPU.

    Example:
        >>> generator = torch.Generator().manual_seed(0)
        >>> head = LSANHead(LabelEmbeddings(4, 8, generator=generator), generator=generator)
        >>> head(torch.ones(2, 3, 8), torch.ones(2, 3, dtype=torch.bool)).shape
        torch.Size([2, 4])

    Reference:
        Xiao et al., 2019, https://aclanthology.org/D19-1044, section 2; LaCon, section 3.2.
    """

    def __init__(
        self, labels: LabelEmbeddings, *, generator: torch.Generator, attention: int = 200, hidden: int = 256
    ) -> None:
        super().__init__()
        check_number("attention", attention, least=1, whole=True)
        check_number("hidden", hidden, least=1, whole=True)
        check_generator(generator)
        count, dim = labels.vectors.shape
        self.labels = labels
        self.words = linear(dim, attention, generator, bias=False)
        self.queries = linear(attention, count, generator, bias=False)
        self.self_gate = linear(dim, 1, generator, bias=False)
        self.label_gate = linear(dim, 1, generator, bias=False)
        self.inner = linear(dim, hidden, generator, bias=False)
        self.outer = linear(hidden, 1, generator, bias=False)

    def forward(self, states: States, mask: Mask) -> Float[Tensor, "text label"]:
        """Return the logits of each text, [text label], float32 or wider. Intermediate memory is [text label dim].

        Raises:
            ShapeError: the shapes do not match.
        """
        _check_words(states, mask, self.labels.vectors.shape)
        words = mask.bool()
        wide = widened(states, words)
        questions = self.queries(torch.tanh(self.words(wide)))  # [text token label]
        by_self = word_weights(questions.mT, words[:, None]) @ wide  # [text label dim]
        by_label = (wide @ self.labels().T).mT @ wide  # [text label dim]
        # alpha / (alpha + beta) in log space, because both gates can underflow.
        share = torch.sigmoid(F.logsigmoid(self.self_gate(by_self)) - F.logsigmoid(self.label_gate(by_label)))
        fused = share * by_self + (1 - share) * by_label
        return self.outer(F.relu(self.inner(fused)))[..., 0]


def _match(words: States, labels: Labels, kernel: Float[Tensor, " window"]) -> Float[Tensor, "text token label"]:
    """Return the cosines of words and labels, smoothed by the filter along the words; padding is zero."""
    cosines = F.normalize(words, dim=2) @ F.normalize(labels.to(words.dtype), dim=1).T  # [text token label]
    rows = cosines.mT.flatten(0, 1)[:, None]  # [text*label 1 token]
    smooth = F.conv1d(rows, kernel.to(words.dtype).view(1, 1, -1), padding=len(kernel) // 2)
    return smooth.view(cosines.mT.shape).mT


def _pooled(weights: Float[Tensor, "text token"], words: States) -> Float[Tensor, "text dim"]:
    return (weights[:, None] @ words)[:, 0]


def _filter(window: int, generator: torch.Generator) -> nn.Parameter:
    """Return a filter with torch's initialisation for a convolution of one channel."""
    return nn.Parameter(torch.empty(window).uniform_(-(window**-0.5), window**-0.5, generator=generator))


def _check_window(window: int) -> None:
    check_number("window", window, least=1, whole=True)
    if window % 2 == 0:
        raise ConfigError(f"window must be odd, so that it has a middle. Got {window} instead.")


def _check_words(states: Tensor, mask: Tensor, labels: torch.Size) -> None:
    """Raise ShapeError unless the shapes of words, mask and labels match."""
    if states.ndim != 3 or len(labels) != 2 or states.shape[2] != labels[1] or 0 in states.shape or 0 in labels:
        raise ShapeError(
            "states [text token dim] and labels [label dim] must have the same width and not be empty. "
            f"Got shapes {tuple(states.shape)} and {tuple(labels)} instead."
        )
    if mask.shape != states.shape[:2]:
        raise ShapeError(
            f"mask must be a matrix [text token] of shape {tuple(states.shape[:2])}. "
            f"Got shape {tuple(mask.shape)} instead."
        )
