"""Moments of a stream are those of the whole, whatever the blocks and the offset, and the stream is never held."""

import gc
import math
import subprocess
import sys
import weakref

import numpy as np
import pytest
import torch
from torch import Tensor

from labelspace.errors import InputError, ShapeError
from labelspace.geometry import RelationMoments
from labelspace.geometry import moments as moments_module
from labelspace.geometry.moments import Moments, as_matrix
from losses.checked import geometry as checked
from losses.oracles import covariance_by_hand, mean_by_hand


def relations(pairs: int, width: int = 6, seed: int = 0) -> tuple[Tensor, Tensor]:
    """Vectors of three sources, of uneven size and in mixed order."""
    generator = torch.Generator().manual_seed(seed)
    sources = torch.randint(0, 3, (pairs,), generator=generator)
    vectors = torch.randn(pairs, width, generator=generator, dtype=torch.float64)
    return vectors + sources[:, None] * torch.linspace(-1, 1, width, dtype=torch.float64), sources


def seen(vectors: Tensor, sources: Tensor, cuts: list[int]) -> RelationMoments:
    moments = RelationMoments(["a", "b", "c"])
    for block, ids in zip(vectors.tensor_split(cuts), sources.tensor_split(cuts), strict=True):
        moments.update(block, ids)
    return moments


# ---- values


@pytest.mark.parametrize("cuts", [[], [1], [10, 10, 25], list(range(1, 40))], ids=len)
def test_moments_equal_the_sums_written_out_whatever_the_blocks(cuts: list[int]):
    vectors, sources = relations(40)
    moments = checked.RelationMoments(["a", "b", "c"])
    for block, ids in zip(vectors.tensor_split(cuts), sources.tensor_split(cuts), strict=True):
        moments.update(block, ids)
    assert (moments.count, moments.width) == (40, 6)
    assert moments.mean.tolist() == pytest.approx(mean_by_hand(vectors.tolist()), rel=1e-12)
    expected = torch.tensor(covariance_by_hand(vectors.tolist()), dtype=torch.float64)
    torch.testing.assert_close(moments.covariance(), expected, rtol=1e-12, atol=1e-14)
    for source in range(3):
        own = vectors[sources == source]
        assert moments.source_counts[source] == len(own)
        assert moments.source_means[source].tolist() == pytest.approx(mean_by_hand(own.tolist()), rel=1e-12)


@pytest.mark.parametrize("offset", [1e6, 1e8])
def test_a_huge_common_offset_costs_no_more_digits_than_the_vectors_lose_by_it(offset: float):
    """The naive formula, mean of squares less square of the mean, has nothing right left at 1e8."""
    vectors, sources = relations(300)
    vectors = vectors + offset
    exact = torch.tensor(covariance_by_hand(vectors.tolist()), dtype=torch.float64)
    moments = seen(vectors, sources, list(range(7, 300, 7)))
    torch.testing.assert_close(moments.covariance(), exact, rtol=1e-6, atol=1e-6)
    naive = vectors.T @ vectors / 300 - torch.outer(vectors.mean(dim=0), vectors.mean(dim=0))
    assert (naive - exact).abs().max() > 1e3 * (moments.covariance() - exact).abs().max()
    for source in range(3):
        expected = mean_by_hand(vectors[sources == source].tolist())
        assert moments.source_means[source].tolist() == pytest.approx(expected, rel=1e-14)


def test_many_small_blocks_keep_the_digits_that_a_running_sum_in_float32_would_lose():
    generator = torch.Generator().manual_seed(0)
    vectors = 100 + torch.randn(20_000, 4, generator=generator)
    moments = Moments(4)
    for block in vectors.split(10):
        moments.update(block)
    wide = vectors.double()
    torch.testing.assert_close(moments.mean, wide.mean(dim=0), rtol=1e-14, atol=0)
    torch.testing.assert_close(moments.covariance(), wide.T.cov(correction=0), rtol=1e-10, atol=1e-12)


def test_a_large_block_is_cut_and_gives_the_same(monkeypatch: pytest.MonkeyPatch):
    vectors, sources = relations(40)
    whole = seen(vectors, sources, [])
    monkeypatch.setattr(moments_module, "BLOCK", 7)
    torch.testing.assert_close(seen(vectors, sources, []).covariance(), whole.covariance(), rtol=1e-12, atol=1e-14)


def test_float32_and_bfloat16_are_taken_in_without_a_gradient():
    vectors, sources = relations(40)
    for kind in (torch.float32, torch.bfloat16):
        narrow = vectors.to(kind).requires_grad_()
        moments = seen(narrow, sources, [10])
        assert moments.covariance().dtype is torch.float64
        assert not moments.mean.requires_grad
        torch.testing.assert_close(moments.covariance(), narrow.detach().double().T.cov(correction=0))


# ---- memory


@pytest.mark.slow
def test_a_million_vectors_pass_and_none_is_held():
    """1,000,000 x 64 in float32 is 256 MB; what is kept of them is 64 x 64 + 3 x 64 numbers, and a few more."""
    moments = RelationMoments(["a", "b", "c"])
    generator = torch.Generator().manual_seed(0)
    base, ids = torch.randn(4000, 64, generator=generator), torch.randint(0, 3, (4000,), generator=generator)
    kept, alive = [], []
    for number in range(250):
        block = base + number
        alive.append(weakref.ref(block))
        moments.update(block, ids)
        del block
        gc.collect(0)
        kept.append(sum(part.untyped_storage().nbytes() for part in tensors_of(moments)))
    assert moments.count == 1_000_000
    assert [ref for ref in alive if ref() is not None] == []
    assert kept[0] == kept[-1] < 50_000
    # The blocks are one block moved by 0 .. 249: the mean and the variance of these numbers come on top.
    torch.testing.assert_close(moments.mean, base.double().mean(dim=0) + 124.5, rtol=1e-6, atol=1e-6)
    variances = moments.covariance().diagonal() - base.double().var(dim=0, correction=0)
    torch.testing.assert_close(variances, torch.full_like(variances, (250**2 - 1) / 12), rtol=1e-6, atol=0)


PASS = """
import resource
import torch
from labelspace.geometry import RelationMoments, fit_eigenspace

def peak():
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024

moments = RelationMoments(["a", "b", "c"])
generator = torch.Generator().manual_seed(0)
ids = torch.arange(1024) % 3
moments.update(torch.randn(1024, 1536, generator=generator), ids)
before = peak()
for number in range(40):
    moments.update(torch.randn(1024, 1536, generator=generator) + ids[:, None], ids)
streamed = peak()
print(moments.count, streamed - before, peak() - before if fit_eigenspace(moments).active else None)
"""


@pytest.mark.slow
@pytest.mark.skipif(sys.platform != "linux", reason="ru_maxrss counts in kilobytes on Linux alone")
def test_relations_of_768_dimensions_stream_through_and_are_fitted_in_little_memory():
    """252 MB of relations pass; what is held are matrices of 1,536 x 1,536 in float64, 19 MB each."""
    done = subprocess.run([sys.executable, "-c", PASS], capture_output=True, text=True, check=True, timeout=300)
    count, streamed, fitted = (float(word) for word in done.stdout.split())
    assert count == 41 * 1024
    assert streamed < 60
    assert fitted < 250


def tensors_of(holder: object) -> list[Tensor]:
    values = vars(holder).values()
    return [value for value in values if isinstance(value, Tensor)] + [
        part for value in values if isinstance(value, Moments) for part in tensors_of(value)
    ]


# ---- bad input


@pytest.mark.parametrize("bad", [math.nan, math.inf, -math.inf])
def test_what_is_not_finite_is_refused_with_its_source_and_nothing_is_added(bad: float):
    vectors, sources = relations(40)
    moments = seen(vectors, sources, [])
    before = moments.covariance()
    block = vectors.clone()
    row = int((sources == 2).nonzero()[3])
    block[row, 1] = bad
    with pytest.raises(InputError, match=rf"source 'c' has a NaN or an infinity \(pair {row} of its block\)"):
        moments.update(block, sources)
    assert moments.count == 40
    assert torch.equal(moments.covariance(), before)


def test_another_width_is_refused():
    moments = seen(*relations(40), [])
    with pytest.raises(ShapeError, match=r"width of those before, 6 \(two embeddings of 3\)\. Got 8 instead"):
        moments.update(torch.zeros(2, 8), torch.tensor([0, 1]))


@pytest.mark.parametrize("ids", [[0, 3], [-1, 0]])
def test_an_id_without_a_name_is_refused(ids: list[int]):
    with pytest.raises(InputError, match=r"source ids must lie between 0 and 2\. Got"):
        seen(torch.zeros(2, 4), torch.tensor(ids), [])


@pytest.mark.parametrize("kind", [torch.float32, torch.bool])
def test_ids_that_are_no_integers_are_refused_and_nothing_is_added(kind: torch.dtype):
    vectors, sources = relations(40)
    moments = seen(vectors, sources, [])
    with pytest.raises(InputError, match=rf"sources must be a torch tensor of whole numbers\. Got Tensor of {kind}"):
        moments.update(vectors, (sources % 2).to(kind))
    assert moments.count == int(moments.source_counts.sum()) == 40


@pytest.mark.parametrize("kind", [torch.int32, torch.int8, torch.uint8])
def test_ids_may_be_integers_of_any_width(kind: torch.dtype):
    vectors, sources = relations(40)
    wide, narrow = seen(vectors, sources, []), seen(vectors, sources.to(kind), [])
    assert torch.equal(narrow.source_means, wide.source_means)


@pytest.mark.parametrize(
    ("vectors", "sources"),
    [(torch.zeros(3), torch.zeros(3).long()), (torch.zeros(3, 2), torch.zeros(2).long()), (torch.zeros(2, 0), None)],
    ids=["a vector", "an id too few", "no coordinates"],
)
def test_a_wrong_shape_is_refused(vectors: Tensor, sources: Tensor | None):
    with pytest.raises(ShapeError, match=r"must (be a matrix|hold one id)"):
        seen(vectors, torch.zeros(2).long() if sources is None else sources, [])


@pytest.mark.parametrize("names", [[], ["a", "a"]], ids=["none", "twice"])
def test_sources_need_names_of_their_own(names: list[str]):
    with pytest.raises(InputError, match="sources must be names, each once"):
        RelationMoments(names)


def test_an_empty_block_adds_nothing():
    moments = seen(*relations(40), [40])
    assert moments.count == 40


# ---- matrices


def test_numpy_and_torch_are_taken_and_no_copy_is_made_without_need():
    array = np.arange(6, dtype=np.float32).reshape(3, 2)
    assert as_matrix(array).data_ptr() == array.ctypes.data
    array.flags.writeable = False  # torch warns of such, and warnings are errors here
    assert as_matrix(array).tolist() == as_matrix(array[::-1]).flip(0).tolist() == array.tolist()


def test_a_row_that_is_not_finite_is_named_and_so_is_what_is_no_matrix(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(moments_module, "BLOCK", 4)
    array = np.zeros((10, 2))
    array[6, 1] = np.nan
    with pytest.raises(InputError, match=r"the map must be finite numbers\. Got a NaN or an infinity in row 6"):
        as_matrix(array, "the map")
    for shape in ((3,), (0, 2), (2, 0)):
        with pytest.raises(ShapeError, match=r"vectors must be a matrix .* Got shape"):
            as_matrix(np.zeros(shape))
