r"""The Gaussian head on token states, with its extractors (uncertainty-aware contrastive, section 4, eq. 1-2).

    states -> extractor -> features -+-> mean                     -> logits
                                     +-> log variance -> std

Axes        here      paper      meaning
            text      -          texts in the batch
            token     -          tokens of a text, padded to the longest of the batch
            dim       -          width of the encoder, and of mean and std
            feature   -          output of the extractor
            label     k          labels

Size        `TextCNN` has d filters per kernel, and mean and std have width d. With kernels 3, 4, 5 that is
            (12 + 3 + 3) d^2 weights and 5 d biases: 18.9M at d = 1024 and 10.6M at d = 768. With the classifier for
            77 labels it is the paper's 19.0M at 1024; the paper's 10.6M at 768 holds for up to 38 labels (77 make it
            10.7M).
std         exp of half the log variance, so it is positive. The branch returns the log variance because the KL and its
            gradient are simplest in it (Kingma and Welling, 2014). It is clamped to `LOG_VARIANCES`, so that the std
            is finite.
Words       `states` [text token dim] are the rows of the encoder's last layer; `mask` [text token] is true (or 1) at
            tokens. States at padding are ignored, so no score depends on the other texts of a batch.
Dropout     Only on the features of `TextCNN`, as in section 5.3, in training, and where `forward` gets `noise`.
            Section 5.5 mentions none for the other extractors, and on a pooled state dropout would drop the encoder's
            own output.
Seeds       Initial values and dropout come only from the generator given, which is on the CPU.
Precision   The work per token runs in the dtype of the states (bfloat16 halves the time of convolutions and cuts that
            of attention to a third); everything after it runs in float32 or wider, also inside autocast. The
            weights are float32 or wider.
"""

from typing import Any, cast, final

import torch
from jaxtyping import Float, Int
from torch import Tensor, nn
from torch.nn import functional as F

from labelspace.checks import check_choice, check_number
from labelspace.config import EXTRACTORS
from labelspace.errors import ShapeError
from labelspace.heads.layers import Mask, States, check_generator, linear, widened, word_weights
from labelspace.heads.windows import windows_maximum

Features = Float[Tensor, "text feature"]

KERNELS = (3, 4, 5)
LOG_VARIANCES = (-14.0, 14.0)
"""Bounds of the log variance: a std of 0.0009 to 1100. Beyond them gradients vanish or the sampled vector is noise."""


@final
class TextCNN(nn.Module):
    r"""Convolutions along the tokens, ReLU and max-pooling, for each kernel size.

    .. math::
        f_{k,c} = \max_t \max\Bigl(0,\; b_{k,c} + \sum_{r=0}^{k-1} w_{k,c,r} \cdot e_{t+r}\Bigr)

    Paper: "filters with varying kernel sizes ... aggregated through max-pooling". No window contains padding, except
    that a text shorter than a kernel has one window, filled up with zeros. Bias and ReLU come after the maximum, which
    is equivalent and cheaper.

    Args:
        dim: d, width of the states, and number of filters per kernel.
        generator: generator of the initial values (torch's for convolutions), on the CPU.
        kernels: kernel sizes, in tokens.

    Raises:
        ConfigError: an argument is out of its range, or the generator is not on the CPU.

    Example:
        >>> extractor = TextCNN(8, generator=torch.Generator().manual_seed(0))
        >>> extractor(torch.ones(2, 6, 8), torch.ones(2, 6, dtype=torch.bool)).shape
        torch.Size([2, 24])

    Reference:
        Kim, 2014, https://arxiv.org/abs/1408.5882; "Uncertainty-aware contrastive sentence embedding", section 4.
    """

    def __init__(self, dim: int, *, generator: torch.Generator, kernels: tuple[int, ...] = KERNELS) -> None:
        super().__init__()
        check_number("dim", dim, least=1, whole=True)
        check_number("the number of kernels", len(kernels), least=1, whole=True)
        for kernel in kernels:
            check_number("kernels", kernel, least=1, whole=True)
        check_generator(generator)
        self.dim, self.kernels, self.width = dim, tuple(kernels), dim * len(kernels)
        filters = [linear(kernel * dim, dim, generator) for kernel in kernels]
        self.filters = nn.ModuleList(filters)

    def forward(self, states: States, mask: Mask) -> Features:
        """Return the features of each text, [text feature], zero or above, float32 or wider.

        The tokens of a text must be contiguous, with padding before or after.

        Raises:
            ShapeError: the shapes do not match.
        """
        _check_words(states, mask, self.dim)
        words = mask.bool()
        lengths = words.sum(dim=1)
        # Padding on the left moves to the right: windows are counted from the first token.
        first = words.int().argmax(dim=1)
        if bool(first.any()):
            states, words = _to_the_left(states, first), _to_the_left(words, first)
        states = states.masked_fill(~words[..., None], 0)
        missing = max(self.kernels) - states.shape[1]
        if missing > 0:
            states = F.pad(states, (0, 0, 0, missing))
        found = [
            windows_maximum(states, lengths, layer.weight, kernel) + layer.bias
            for layer, kernel in zip(cast(list[nn.Linear], self.filters), self.kernels, strict=True)
        ]
        return F.relu(torch.cat(found, dim=1))


@final
class MeanPooling(nn.Module):
    """The mean of the tokens; a text without tokens becomes a vector of zeros.

    Example:
        >>> MeanPooling(2)(torch.tensor([[[1.0, 2.0], [3.0, 4.0]]]), torch.tensor([[1, 1]])).tolist()
        [[2.0, 3.0]]
    """

    def __init__(self, dim: int) -> None:
        super().__init__()
        check_number("dim", dim, least=1, whole=True)
        self.width = dim

    def forward(self, states: States, mask: Mask) -> Features:
        """Return [text dim], float32 or wider."""
        _check_words(states, mask, self.width)
        words = mask.bool()
        return widened(states, words).sum(dim=1) / words.sum(dim=1, keepdim=True).clamp(min=1)


@final
class TokenPooling(nn.Module):
    """The state of the first token (CLS) or the last (EOS); a text without tokens becomes a vector of zeros.

    Args:
        dim: width of the states.
        last: True: the last token; False: the first.

    Example:
        >>> states, mask = torch.tensor([[[1.0], [2.0], [9.0]]]), torch.tensor([[1, 1, 0]])
        >>> TokenPooling(1, last=False)(states, mask).item(), TokenPooling(1, last=True)(states, mask).item()
        (1.0, 2.0)
    """

    def __init__(self, dim: int, *, last: bool) -> None:
        super().__init__()
        check_number("dim", dim, least=1, whole=True)
        self.width, self.last = dim, last

    def forward(self, states: States, mask: Mask) -> Features:
        """Return [text dim], float32 or wider."""
        _check_words(states, mask, self.width)
        words = mask.bool()
        place = words.int().argmax(dim=1)
        if self.last:
            place = words.shape[1] - 1 - words.int().flip(1).argmax(dim=1)
        rows = torch.arange(len(states), device=states.device)
        return widened(states, words)[rows, place]


@final
class AdapterMLP(nn.Module):
    """The mean of the tokens, then two layers with ReLU, as large as `TextCNN`: 3 d^2 + 9 d^2 weights.

    It serves the ablation of section 5.5: do the windows help, or only the number of weights?

    Example:
        >>> mlp = AdapterMLP(8, generator=torch.Generator().manual_seed(0))
        >>> mlp(torch.ones(2, 6, 8), torch.ones(2, 6, dtype=torch.bool)).shape
        torch.Size([2, 24])
    """

    def __init__(self, dim: int, *, generator: torch.Generator) -> None:
        super().__init__()
        check_generator(generator)
        self.pooling = MeanPooling(dim)
        self.width = 3 * dim
        self.first = linear(dim, self.width, generator)
        self.second = linear(self.width, self.width, generator)

    def forward(self, states: States, mask: Mask) -> Features:
        """Return [text feature], zero or above, float32 or wider."""
        mean = self.pooling(states, mask)
        with torch.autocast(mean.device.type, enabled=False):
            return F.relu(self.second(F.relu(self.first(mean))))


@final
class AttentionPooling(nn.Module):
    r"""Tokens weighted by a learnt query, :math:`\operatorname{softmax}_t(v \cdot \tanh(W e_t + b))`.

    The paper says only "attention-based aggregation, which assigns weights to token embeddings"; this is the usual
    additive form with one query.

    Example:
        >>> attention = AttentionPooling(8, generator=torch.Generator().manual_seed(0))
        >>> attention(torch.ones(2, 6, 8), torch.ones(2, 6, dtype=torch.bool)).shape
        torch.Size([2, 8])

    Reference:
        Yang et al., 2016, https://aclanthology.org/N16-1174, section 2.2.
    """

    def __init__(self, dim: int, *, generator: torch.Generator) -> None:
        super().__init__()
        check_number("dim", dim, least=1, whole=True)
        check_generator(generator)
        self.width = dim
        self.words = linear(dim, dim, generator)
        self.question = linear(dim, 1, generator, bias=False)

    def forward(self, states: States, mask: Mask) -> Features:
        """Return [text dim], float32 or wider."""
        _check_words(states, mask, self.width)
        words = mask.bool()
        states = states.masked_fill(~words[..., None], 0)
        hidden = torch.tanh(F.linear(states, *(weight.to(states.dtype) for weight in self.words.parameters())))
        scores = F.linear(hidden, self.question.weight.to(states.dtype))[..., 0]  # [text token]
        scores = scores.to(torch.promote_types(scores.dtype, torch.float32))
        return (word_weights(scores, words)[:, None].to(states.dtype) @ states)[:, 0].to(scores.dtype)


@final
class GaussianHead(nn.Module):
    r"""A Gaussian for each text, and a linear classifier on samples from it.

    .. math::
        \mu = W_\mu f + b_\mu, \quad \log \sigma^2 = W_\sigma f + b_\sigma, \quad
        z = \mu + \epsilon \odot \sigma, \quad \ell_c = w_c \cdot z

    Paper: eq. 1 and 2, and eq. 4 for the classifier, which has no bias there. Prediction uses the mean. States may be
    of any float type; the weights stay float32 or wider.

    Args:
        dim: width of the encoder, of mean and of std.
        labels: number of labels.
        generator: generator of the initial values, on the CPU.
        extractor: `"textcnn"`, or one of the ablation: `"cls"`, `"eos"`, `"mean"`, `"mlp"`, `"attention"`.
        uncertain: False removes the branch of std; z is then the mean.
        dropout: share of the features that are set to 0, 0 to 0.99; for `"textcnn"` only. It acts only in training, and
            only where `forward` gets `noise`.

    Raises:
        ConfigError: an argument is out of its range, or the generator is not on the CPU.

    Example:
        The gradient of a step of training:

        >>> head, noise = GaussianHead(8, 3, generator=torch.Generator().manual_seed(0)), torch.Generator()
        >>> mean, std = head(torch.ones(2, 6, 8), torch.ones(2, 6, dtype=torch.bool), noise=noise.manual_seed(1))
        >>> logits = head.logits(sample(mean, std, noise))
        >>> F.cross_entropy(logits, torch.tensor([0, 2])).backward()
        >>> mean.shape, bool((std > 0).all()), logits.shape
        (torch.Size([2, 8]), True, torch.Size([2, 3]))

    Reference:
        "Uncertainty-aware contrastive sentence embedding", section 4.
    """

    def __init__(
        self,
        dim: int,
        labels: int,
        *,
        generator: torch.Generator,
        extractor: str = "textcnn",
        uncertain: bool = True,
        dropout: float = 0.5,
    ) -> None:
        super().__init__()
        check_number("dim", dim, least=1, whole=True)
        check_number("labels", labels, least=1, whole=True)
        check_choice("extractor", extractor, EXTRACTORS)
        check_number("dropout", dropout, least=0, most=0.99)
        check_generator(generator)
        self.dim, self.dropout = dim, dropout if extractor == "textcnn" else 0.0
        self.extractor, self._name = _extractor(extractor, dim, generator), extractor
        width = self.extractor.width
        self.mean = linear(width, dim, generator)
        self.log_variance = linear(width, dim, generator) if uncertain else None
        self.classifier = linear(dim, labels, generator, bias=False)

    @property
    def options(self) -> dict[str, Any]:
        """The constructor's options without sizes and generator, as plain values."""
        return {"extractor": self._name, "uncertain": self.log_variance is not None, "dropout": self.dropout}

    def forward(
        self, states: States, mask: Mask, *, noise: torch.Generator | None = None
    ) -> tuple[Float[Tensor, "text dim"], Float[Tensor, "text dim"] | None]:
        """Return mean and std of each text, [text dim] each, float32 or wider; std is None if not `uncertain`.

        `noise` is the generator of the dropout in training, on the CPU; None: no dropout. In evaluation nothing is
        drawn from it.

        Raises:
            ShapeError: the shapes do not match.
        """
        features = self.extractor(states, mask)
        if self.training and noise is not None and self.dropout:
            kept = torch.rand(features.shape, generator=noise).to(features.device) >= self.dropout
            features = features * kept / (1 - self.dropout)
        with torch.autocast(features.device.type, enabled=False):
            if self.log_variance is None:
                return self.mean(features), None
            return self.mean(features), (self.log_variance(features).clamp(*LOG_VARIANCES) / 2).exp()

    def logits(self, vectors: Float[Tensor, "text dim"]) -> Float[Tensor, "text label"]:
        """Return the logits of samples or means, [text label]."""
        with torch.autocast(vectors.device.type, enabled=False):
            return self.classifier(vectors)


def sample(
    mean: Float[Tensor, "text dim"], std: Float[Tensor, "text dim"] | None, noise: torch.Generator
) -> Float[Tensor, "text dim"]:
    r"""Draw a sample from the Gaussian of each text, so that gradients reach mean and std.

    .. math::
        z_i = \mu_i + \epsilon_i \odot \sigma_i, \qquad \epsilon_i \sim \mathcal{N}(0, I)

    Paper: the same names, below eq. 2. Only training samples; prediction uses the mean.

    Args:
        mean: [text dim].
        std: [text dim], zero or more; None: the head has no uncertainty.
        noise: generator of :math:`\epsilon`, on the CPU.

    Returns:
        [text dim], on the device of `mean`; without a std, `mean` itself, and nothing is drawn.

    Raises:
        ShapeError: `std` has another shape than `mean`.

    Example:
        >>> sample(torch.ones(1, 2), torch.zeros(1, 2), torch.Generator()).tolist()
        [[1.0, 1.0]]

    Reference:
        "Uncertainty-aware contrastive sentence embedding", section 4; Kingma and Welling, 2014,
        https://arxiv.org/abs/1312.6114, section 2.4.
    """
    if std is None:
        return mean
    if std.shape != mean.shape:
        raise ShapeError(f"std must have the shape of mean, {tuple(mean.shape)}. Got {tuple(std.shape)} instead.")
    return mean + torch.randn(mean.shape, generator=noise).to(mean.device) * std


def _extractor(
    name: str, dim: int, generator: torch.Generator
) -> TextCNN | AdapterMLP | AttentionPooling | MeanPooling | TokenPooling:
    if name == "textcnn":
        return TextCNN(dim, generator=generator)
    if name == "mlp":
        return AdapterMLP(dim, generator=generator)
    if name == "attention":
        return AttentionPooling(dim, generator=generator)
    return MeanPooling(dim) if name == "mean" else TokenPooling(dim, last=name == "eos")


def _to_the_left(values: Tensor, first: Int[Tensor, " text"]) -> Tensor:
    """Rotate each row so that its first token is at place 0."""
    places = (torch.arange(values.shape[1], device=values.device) + first[:, None]) % values.shape[1]
    rows = torch.arange(len(values), device=values.device)[:, None]
    return values[rows, places]


def _check_words(states: Tensor, mask: Tensor, dim: int) -> None:
    """Raise ShapeError unless the shapes of words, mask and head match."""
    if states.ndim != 3 or states.shape[2] != dim or 0 in states.shape:
        raise ShapeError(f"states must be [text token dim] of width {dim}. Got shape {tuple(states.shape)} instead.")
    if mask.shape != states.shape[:2]:
        raise ShapeError(
            f"mask must be a matrix [text token] of shape {tuple(states.shape[:2])}. "
            f"Got shape {tuple(mask.shape)} instead."
        )
