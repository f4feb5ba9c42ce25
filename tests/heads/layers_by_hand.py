"""Layers in Python floats, term by term."""

from collections.abc import Sequence

from torch import nn

Table = Sequence[Sequence[float]]


def dot(one: Sequence[float], other: Sequence[float]) -> float:
    return sum(a * b for a, b in zip(one, other, strict=True))


def linear(layer: nn.Linear, values: Sequence[float]) -> list[float]:
    bias = layer.bias.tolist() if layer.bias is not None else [0.0] * layer.out_features
    return [dot(row, values) + shift for row, shift in zip(layer.weight.tolist(), bias, strict=True)]


def relu(values: Sequence[float]) -> list[float]:
    return [max(0.0, value) for value in values]
