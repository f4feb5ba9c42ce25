r"""Equation 6 as the paper prints it, beside the repaired one of `labelspace.geometry.reze`.

The printed denominator is :math:`|\mu| + \varepsilon`. A source below the median then has a factor above 1, and is
pushed away from it; which side of the median is "below" hangs on the arbitrary direction of an eigenvector. Of the
clipping the paper says only that it is simple and avoids "divergence or unintended reversal": to 0 and 1 here.
"""

import contextlib
from collections.abc import Iterator
from dataclasses import replace
from typing import Any
from unittest import mock

import torch

from labelspace.geometry import Eigenspace, RelationMoments, fit_eigenspace
from labelspace.training.prefinetune import offline

PRINTED = {"reze-printed": False, "reze-printed-clipped": True}
"""Method -> whether the printed factors are clipped."""


def printed_factors(space: Eigenspace, *, clipped: bool) -> torch.Tensor:
    """Return the factors of equation 6 as printed, [source dim], for a space that the repaired one shrinks."""
    apart = space.source_means - space.reference
    edge = space.reference + apart.sign() * space.bands
    epsilon, eta = float(space.settings["epsilon"]), float(space.settings["eta"])
    factors = 1 + eta * (edge - space.source_means) / (space.source_means.abs() + epsilon)
    if clipped:
        factors = factors.clamp(0, 1)
    factors[apart.abs() < space.bands] = 1.0
    factors[:, space.active :] = 1.0
    factors[:, space.dispersion <= space.threshold] = 1.0
    return factors


@contextlib.contextmanager
def as_printed(method: str) -> Iterator[None]:
    """Pre-finetune by the printed equation inside the block, if the method is of `PRINTED`."""

    def fit(moments: RelationMoments, **settings: Any) -> Eigenspace:
        space = fit_eigenspace(moments, **settings)
        return replace(space, alpha=printed_factors(space, clipped=PRINTED[method]))

    # The library offers the repaired equation only, so the study puts its own in its place.
    with mock.patch.object(offline, "fit_eigenspace", fit) if method in PRINTED else contextlib.nullcontext():
        yield
