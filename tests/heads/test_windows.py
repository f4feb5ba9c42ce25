"""The maximum over windows: its gradient, computed from the winning windows only, equals autograd's."""

import pytest
import torch
from torch import Tensor

from labelspace.heads.windows import windows_maximum

LENGTHS = torch.tensor([9, 4, 1, 6])


def batch(dtype: torch.dtype, dim: int = 5, kernel: int = 3) -> tuple[Tensor, Tensor]:
    generator = torch.Generator().manual_seed(3)
    states = torch.randn(4, 9, dim, generator=generator, dtype=torch.float64)
    states[torch.arange(9) >= LENGTHS[:, None]] = 0
    weight = torch.randn(7, kernel * dim, generator=generator, dtype=torch.float64)
    return states.to(dtype), weight.requires_grad_()


def gradient(states: Tensor, weight: Tensor, kernel: int) -> tuple[Tensor, Tensor]:
    found = windows_maximum(states, LENGTHS, weight, kernel)
    outer = torch.linspace(-1, 2, found.numel(), dtype=found.dtype).view(found.shape)
    (made,) = torch.autograd.grad((found * outer).sum(), weight)
    return found, made


@pytest.mark.parametrize("kernel", [1, 2, 3, 5])
def test_the_gradient_of_the_weights_is_autograds(kernel: int):
    states, weight = batch(torch.float64, kernel=kernel)
    fast = gradient(states, weight, kernel)
    plain = gradient(states.clone().requires_grad_(), weight, kernel)
    for one, other in zip(fast, plain, strict=True):
        assert torch.allclose(one, other, rtol=1e-12, atol=1e-12)
    assert fast[1].abs().max() > 0.1


def test_the_gradient_is_that_of_finite_differences():
    states, weight = batch(torch.float64)
    assert torch.autograd.gradcheck(lambda values: windows_maximum(states, LENGTHS, values, 3), weight)


def test_bfloat16_states_give_nearly_the_same_gradient():
    states, weight = batch(torch.bfloat16)
    weight = weight.detach().to(torch.bfloat16).float().requires_grad_()
    low = gradient(states, weight, 3)[1]
    wide = gradient(states.float(), weight, 3)[1]
    assert low.dtype is torch.float32
    assert torch.allclose(low, wide, atol=0.02 * wide.abs().max().item())


def test_states_get_a_gradient_when_they_require_one():
    states, weight = batch(torch.float64)
    states = states.requires_grad_()
    assert torch.autograd.gradcheck(lambda values: windows_maximum(values, LENGTHS, weight, 3), states)
