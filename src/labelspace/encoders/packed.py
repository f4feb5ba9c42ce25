"""A transformer of the BERT family for inference on a CPU: the texts of a batch follow one another, without padding.

transformers runs a padded block with a mask. Here every matrix product sees only tokens, attention runs over texts of
equal length at once and needs no mask, and query, key and value are one product. The weights are the same, and so is
what is computed; sums are rounded in another order.
"""

import math
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import chain
from typing import Any, Self, final

import torch
from jaxtyping import Float
from torch import Tensor
from torch.nn import functional as F

# The names of weights, by model type: RoBERTa and XLM-R have BERT's.
_BERT = {
    "query": "attention.self.query",
    "key": "attention.self.key",
    "value": "attention.self.value",
    "joined": "attention.output.dense",
    "attended": "attention.output.LayerNorm",
    "wide": "intermediate.dense",
    "narrow": "output.dense",
    "out": "output.LayerNorm",
}
_MPNET = {
    "query": "attention.attn.q",
    "key": "attention.attn.k",
    "value": "attention.attn.v",
    "joined": "attention.attn.o",
    "attended": "attention.LayerNorm",
    "wide": "intermediate.dense",
    "narrow": "output.dense",
    "out": "output.LayerNorm",
}
_LAYERS = {"bert": _BERT, "roberta": _BERT, "xlm-roberta": _BERT, "mpnet": _MPNET}

_WORDS, _POSITIONS, _TYPES = (f"embeddings.{kind}_embeddings.weight" for kind in ("word", "position", "token_type"))
_DISTANCES = "encoder.relative_attention_bias.weight"

# Weights that no embedding reads: a head for a task, and old checkpoints' table of positions.
_UNREAD = ("pooler.", "embeddings.position_ids", "embeddings.token_type_ids")

_BUCKETS = 32  # of distances, in MPNet

# Operations of oneDNN that torch's compiler calls; without them weights are arranged at every product.
_ARRANGE, _PRODUCT, _SUPPORTED = "_reorder_linear_weight", "_linear_pointwise", "_is_mkldnn_bf16_supported"

# oneDNN makes a kernel for each number of rows, which takes longer than some rows more; few rows are rounded up less.
_ROWS, _FEW, _ROWS_OF_FEW = 64, 256, 16

POOLINGS = {"mean": "mean", "cls": "cls", "last": "lasttoken"}
"""Ways to make one vector of a text's states, and sentence-transformers' names for them."""

Linear = tuple[Tensor, Tensor]
Norm = tuple[Tensor, Tensor]


@final
@dataclass(frozen=True)
class _Layer:
    joint: Linear
    """Query, key and value in one; the query is divided by the root of its width."""

    joined: Linear
    attended: Norm
    wide: Linear
    narrow: Linear
    out: Norm


@final
@dataclass(frozen=True)
class _Group:
    """Texts of equal length that follow one another."""

    start: int
    """Index of its first token."""

    texts: int
    length: int

    @property
    def tokens(self) -> slice:
        return slice(self.start, self.start + self.texts * self.length)


@final
class PackedTransformer:
    """The weights of a transformer, arranged for inference on a CPU. It never changes; make another for other weights.

    Args:
        config: the transformer's `config.json`.
        weights: float32, by the names of its `model.safetensors`. They are copied.
        pooling: `"mean"`, `"cls"` or `"last"`.
        dtype: number format of the products; pooling is in float32.

    Raises:
        KeyError: `runs` is False for this configuration and these names.
    """

    def __init__(
        self, config: Mapping[str, Any], weights: Mapping[str, Tensor], *, pooling: str, dtype: torch.dtype
    ) -> None:
        kind = config["model_type"]
        self.pooling, self.dtype = pooling, dtype
        self._heads, self._width = int(config["num_attention_heads"]), int(config["hidden_size"])
        self._epsilon = float(config.get("layer_norm_eps", 1e-12))
        # The index of padding, where positions are counted after it; MPNet's is fixed.
        self._padding = {"bert": None, "mpnet": 1}.get(kind, config.get("pad_token_id", 1))
        self._prepacked = _can_prepack(dtype)
        with torch.no_grad():
            self._words = weights[_WORDS].detach().to(dtype, copy=True)
            positions = weights[_POSITIONS].detach().float()
            self._positions = (positions + weights[_TYPES][0] if _TYPES in weights else positions).to(dtype, copy=True)
            self._first = self._norm(weights, "embeddings.LayerNorm")
            self._layers = [
                self._layer(weights, f"encoder.layer.{number}", _LAYERS[kind])
                for number in range(config["num_hidden_layers"])
            ]
            distances = weights.get(_DISTANCES)
            self._distances = None if distances is None else distances.detach().to(dtype, copy=True)

    def _layer(self, weights: Mapping[str, Tensor], place: str, names: Mapping[str, str]) -> _Layer:
        scale = 1 / math.sqrt(self._width // self._heads)
        joint = [
            torch.cat(
                [
                    weights[f"{place}.{names['query']}.{part}"] * scale,
                    *(weights[f"{place}.{names[which]}.{part}"] for which in ("key", "value")),
                ]
            )
            for part in ("weight", "bias")
        ]
        return _Layer(
            joint=self._linear(*joint),
            joined=self._linear(*_pair(weights, f"{place}.{names['joined']}")),
            attended=self._norm(weights, f"{place}.{names['attended']}"),
            wide=self._linear(*_pair(weights, f"{place}.{names['wide']}")),
            narrow=self._linear(*_pair(weights, f"{place}.{names['narrow']}")),
            out=self._norm(weights, f"{place}.{names['out']}"),
        )

    def _linear(self, weight: Tensor, bias: Tensor) -> Linear:
        weight, bias = (part.detach().to(self.dtype, copy=True).contiguous() for part in (weight, bias))
        return (_mkldnn(_ARRANGE)(weight, None) if self._prepacked else weight), bias

    def _norm(self, weights: Mapping[str, Tensor], name: str) -> Norm:
        weight, bias = (part.detach().to(self.dtype, copy=True) for part in _pair(weights, name))
        return weight, bias

    def embed(self, token_ids: Sequence[Sequence[int]]) -> Float[Tensor, "text dim"]:
        """Embed one batch as float32 unit vectors; texts of equal length are fastest beside one another."""
        groups = list(_groups([len(ids) for ids in token_ids]))
        states = self._run(token_ids, groups).float()
        return F.normalize(torch.cat([self._pool(states[group.tokens], group) for group in groups]), dim=-1)

    def _pool(self, states: Tensor, group: _Group) -> Tensor:
        states = states.view(group.texts, group.length, self._width)
        return states.mean(1) if self.pooling == "mean" else states[:, 0 if self.pooling == "cls" else -1]

    def _run(self, token_ids: Sequence[Sequence[int]], groups: Sequence[_Group]) -> Tensor:
        """Return the last state of every token, and perhaps of some rows more, [token dim]."""
        tokens = torch.tensor(list(chain.from_iterable(token_ids)), dtype=torch.long)
        x = self._normalise(self._words[tokens] + self._positions[self._places(tokens, groups)], self._first)
        if self._prepacked:
            x = F.pad(x, (0, 0, 0, -len(x) % (_ROWS if len(x) > _FEW else _ROWS_OF_FEW)))
        biases = {group.length: self._bias(group.length) for group in groups}
        for layer in self._layers:
            joint = self._product(x, layer.joint)
            mixed = torch.zeros_like(x)
            for group in groups:
                self._attend(joint[group.tokens], biases[group.length], group, mixed[group.tokens])
            x = self._normalise(self._product(mixed, layer.joined).add_(x), layer.attended)
            wide = torch.ops.aten.gelu_(self._product(x, layer.wide))
            x = self._normalise(self._product(wide, layer.narrow).add_(x), layer.out)
        return x

    def _attend(self, joint: Tensor, bias: Tensor | None, group: _Group, out: Tensor) -> None:
        shape = (group.texts, group.length, 3, self._heads, self._width // self._heads)
        query, key, value = joint.view(shape).permute(2, 0, 3, 1, 4)
        mixed = F.scaled_dot_product_attention(query, key, value, attn_mask=bias, scale=1.0)
        out.view(group.texts, group.length, self._heads, -1).copy_(mixed.transpose(1, 2))

    def _product(self, x: Tensor, linear: Linear) -> Tensor:
        if self._prepacked:
            return _multiply(x, linear)
        return F.linear(x, *linear)

    def _normalise(self, x: Tensor, norm: Norm) -> Tensor:
        return F.layer_norm(x, (self._width,), *norm, self._epsilon)

    def _places(self, tokens: Tensor, groups: Sequence[_Group]) -> Tensor:
        """Return the position of each token in its text, as the model counts it."""
        if self._padding is None:
            return torch.cat([torch.arange(group.length).repeat(group.texts) for group in groups])
        # RoBERTa, XLM-R and MPNet start after the padding index, and a padding token that a text holds does not count.
        counts = []
        for group in groups:
            real = (tokens[group.tokens] != self._padding).view(group.texts, group.length)
            counts.append((real.cumsum(1) * real + self._padding).view(-1))
        return torch.cat(counts)

    def _bias(self, length: int) -> Tensor | None:
        """Return what MPNet adds to the attention from a token to another, [head token token]."""
        if self._distances is None:
            return None
        return self._distances[_buckets(length)].permute(2, 0, 1).contiguous()

    def __deepcopy__(self, memo: dict[int, Any]) -> Self:
        return self  # it never changes


def runs(config: Mapping[str, Any], names: Collection[str]) -> bool:
    """Return whether `PackedTransformer` computes what this transformer does.

    Args:
        config: its `config.json`.
        names: the names of its weights.
    """
    layers = _LAYERS.get(config.get("model_type", ""))
    plain = (
        config.get("hidden_act") == "gelu"
        and config.get("position_embedding_type", "absolute") == "absolute"
        and not config.get("is_decoder")
        and not config.get("add_cross_attention")
        and not config.get("quantization_config")
        and config.get("relative_attention_num_buckets", _BUCKETS) == _BUCKETS
    )
    if layers is None or not plain:
        return False
    kinds = (_WORDS, _POSITIONS, _DISTANCES if layers is _MPNET else _TYPES)
    needed = {*kinds, *_both("embeddings.LayerNorm")}
    for number in range(config["num_hidden_layers"]):
        needed.update(*(_both(f"encoder.layer.{number}.{name}") for name in layers.values()))
    return {name for name in names if not name.startswith(_UNREAD)} == needed


def read_by(names: Collection[str]) -> list[str]:
    """Return those of a transformer's weights that decide its vectors."""
    return sorted(name for name in names if not name.startswith(_UNREAD))


def _both(name: str) -> tuple[str, str]:
    return f"{name}.weight", f"{name}.bias"


def _pair(weights: Mapping[str, Tensor], name: str) -> tuple[Tensor, Tensor]:
    return weights[f"{name}.weight"], weights[f"{name}.bias"]


def _groups(lengths: Sequence[int]) -> Iterator[_Group]:
    start = first = 0
    for index in range(1, len(lengths) + 1):
        if index == len(lengths) or lengths[index] != lengths[first]:
            yield _Group(start, index - first, lengths[first])
            start, first = start + (index - first) * lengths[first], index


def _buckets(length: int) -> Tensor:
    """Return MPNet's bucket of each pair of tokens, [token token]: exact when near, coarser when far, a half each way.

    Source: `MPNetEncoder.relative_position_bucket` of transformers, after T5 (Raffel et al. 2020, section 2.1).
    """
    places = torch.arange(length)
    distance = places[None, :] - places[:, None]
    half, exact, most = _BUCKETS // 2, _BUCKETS // 4, 128
    far = distance.abs()
    coarse = exact + (torch.log(far.float().clamp(min=1) / exact) / math.log(most / exact) * (half - exact)).long()
    return (distance > 0).long() * half + torch.where(far < exact, far, coarse.clamp(max=half - 1))


def _can_prepack(dtype: torch.dtype) -> bool:
    """Return whether this torch arranges a weight for oneDNN once, in place of at every product."""
    if dtype is not torch.bfloat16 or not torch.backends.mkldnn.is_available():
        return False
    some = torch.ones(1, 1, dtype=dtype)
    try:  # private: a later torch may have none, or want other arguments
        return bool(_mkldnn(_SUPPORTED)()) and bool(_multiply(some, (_mkldnn(_ARRANGE)(some, None), some[0])) == 2)
    except (AttributeError, RuntimeError, TypeError):
        return False


def _multiply(x: Tensor, linear: Linear) -> Tensor:
    return _mkldnn(_PRODUCT)(x, *linear, "none", [], "")


def _mkldnn(name: str) -> Any:
    return getattr(torch.ops.mkldnn, name)
