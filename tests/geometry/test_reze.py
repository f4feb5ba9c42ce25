"""REZE's offline phase says what equations 1 to 7 say, shrinks towards the median only, and sees no difference where
the space is turned, the sources renamed or an eigenvector looks the other way."""

import math
import warnings
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
import safetensors.torch
import torch
from jaxtyping import TypeCheckError
from safetensors import safe_open
from torch import Tensor

from labelspace.errors import ConfigError, InputError, LabelSpaceWarning, ModelFolderError, ShapeError
from labelspace.geometry import Eigenspace, RelationMoments, debias, fit_eigenspace, reze
from losses.checked import geometry as checked

Row = list[float]
Table = list[Row]


# ---- the equations, term by term, in Python floats


def median_by_hand(values: Row) -> float:
    ordered = sorted(values)
    middle = len(ordered) // 2
    return ordered[middle] if len(ordered) % 2 else (ordered[middle - 1] + ordered[middle]) / 2


def dispersion_by_hand(means: Table, reference: Row) -> Row:
    """REZE, equation 2."""
    return [sum((row[j] - m) ** 2 for row in means) / len(means) for j, m in enumerate(reference)]


def active_by_hand(eigenvalues: Row, rho: float) -> int:
    """REZE, equation 3."""
    for k in range(1, len(eigenvalues) + 1):
        if sum(eigenvalues[:k]) / sum(eigenvalues) >= rho:
            return k
    return len(eigenvalues)


def threshold_by_hand(dispersion: Row, gamma: float, epsilon: float) -> float:
    """REZE, equation 4, over the active directions."""
    tau = median_by_hand(dispersion)
    return tau + gamma * (median_by_hand([abs(v - tau) for v in dispersion]) + epsilon)


def bands_by_hand(means: Table, reference: Row, gamma: float) -> Row:
    """REZE, equation 5."""
    return [gamma * sum(abs(row[j] - m) for row in means) / len(means) for j, m in enumerate(reference)]


def factor_by_hand(mu: float, m: float, band: float, eta: float, epsilon: float) -> float:
    """REZE, equation 6, with the sign and the clip of `labelspace.geometry.reze`."""
    delta = mu - m
    if abs(delta) < band:
        return 1.0
    numerator = m + math.copysign(band, delta) - mu
    denominator = math.copysign(abs(mu) + epsilon, mu)
    return min(1.0, max(1.0 - eta, 1 + eta * numerator / denominator))


def printed_factor(mu: float, m: float, band: float, eta: float) -> float:
    """REZE, equation 6, as it is printed."""
    return 1 + eta * (m + math.copysign(band, mu - m) - mu) / abs(mu)


def factors_by_hand(
    means: Table, reference: Row, active: int, gamma: float, eta: float, epsilon: float = 1e-8
) -> Table:
    dispersion, bands = dispersion_by_hand(means, reference), bands_by_hand(means, reference, gamma)
    threshold = threshold_by_hand(dispersion[:active], gamma, epsilon)
    return [
        [
            factor_by_hand(mu, reference[j], bands[j], eta, epsilon)
            if j < active and dispersion[j] > threshold
            else 1.0
            for j, mu in enumerate(row)
        ]
        for row in means
    ]


def debias_by_hand(relation: Row, mean: Row, vectors: Table, alpha: Row) -> Row:
    """REZE, equation 7, with all of W; column j of `vectors` is an eigenvector."""
    width = len(mean)
    z = [sum(vectors[i][j] * (relation[i] - mean[i]) for i in range(width)) for j in range(width)]
    return [sum(vectors[i][j] * alpha[j] * z[j] for j in range(width)) + mean[i] for i in range(width)]


# ---- relations of sources that differ in some directions only

NAMES = ("a", "b", "c", "d", "e")


def relations(pairs: int = 60, width: int = 8, seed: int = 0) -> tuple[Tensor, Tensor]:
    """Five sources: they share six directions, and lie apart along the first two."""
    generator = torch.Generator().manual_seed(seed)
    spread = torch.linspace(1.0, 0.3, width, dtype=torch.float64)
    vectors = torch.randn(5, pairs, width, generator=generator, dtype=torch.float64) * spread
    vectors[:, :, 0] += torch.tensor([0.0, 0.2, -0.1, 0.1, 4.0])[:, None]
    vectors[:, :, 1] += torch.tensor([-3.0, 0.1, 0.0, -0.2, 0.2])[:, None]
    return vectors.flatten(0, 1) + 2.0, torch.arange(5).repeat_interleave(pairs)


def moments_of(vectors: Tensor, sources: Tensor, names: tuple[str, ...] = NAMES, module: Any = checked) -> Any:
    moments = module.RelationMoments(names)
    moments.update(vectors, sources)
    return moments


def space_of(vectors: Tensor, sources: Tensor, names: tuple[str, ...] = NAMES, **options: Any) -> Any:
    return checked.fit_eigenspace(moments_of(vectors, sources, names), **options)


SETTINGS = [
    {},
    {"rho": 0.9},
    {"rho": 1.0},
    {"gamma": 0.5},
    {"gamma": 2.0},
    {"gamma": 0.0},
    {"eta": 0.3},
    {"eta": 1.0},
    {"centre": "mean"},
]


# ---- values


@pytest.mark.parametrize("options", SETTINGS, ids=str)
def test_each_step_equals_the_sums_written_out(options: dict[str, Any]):
    vectors, sources = relations()
    space = space_of(vectors, sources, **options)
    given = {"rho": 0.99, "gamma": 1.0, "eta": 0.7, "centre": "median", **options}
    means = space.source_means.tolist()
    columns = [list(column) for column in zip(*means, strict=True)]
    middle = median_by_hand if given["centre"] == "median" else lambda values: sum(values) / len(values)
    reference = [middle(column) for column in columns]
    assert space.reference.tolist() == pytest.approx(reference, rel=1e-9, abs=1e-12)
    dispersion = dispersion_by_hand(means, reference)
    assert space.dispersion.tolist() == pytest.approx(dispersion, rel=1e-9)
    assert space.active == active_by_hand(space.eigenvalues.tolist(), given["rho"])
    threshold = threshold_by_hand(dispersion[: space.active], given["gamma"], 1e-8)
    assert space.threshold == pytest.approx(threshold, rel=1e-9)
    assert space.bands.tolist() == pytest.approx(bands_by_hand(means, reference, given["gamma"]), rel=1e-9)
    alpha = factors_by_hand(means, reference, space.active, given["gamma"], given["eta"])
    torch.testing.assert_close(space.alpha, torch.tensor(alpha, dtype=torch.float64), rtol=1e-9, atol=1e-9)
    assert 0 < space.shrunk < space.alpha.numel()


def test_the_eigenspace_is_that_of_the_covariance_and_the_means_are_means_of_coordinates():
    vectors, sources = relations()
    space = space_of(vectors, sources)
    covariance = vectors.T.cov(correction=0)
    rebuilt = space.eigenvectors @ space.eigenvalues.diag() @ space.eigenvectors.T
    torch.testing.assert_close(rebuilt, covariance)
    torch.testing.assert_close(space.eigenvectors.T @ space.eigenvectors, torch.eye(8, dtype=torch.float64))
    assert (space.eigenvalues.diff() <= 0).all()
    coordinates = (vectors - vectors.mean(dim=0)) @ space.eigenvectors
    for source in range(5):
        torch.testing.assert_close(space.source_means[source], coordinates[sources == source].mean(dim=0))
    assert space.source_counts.tolist() == [60] * 5


@pytest.mark.parametrize("options", SETTINGS, ids=str)
def test_debiasing_equals_the_sums_written_out(options: dict[str, Any]):
    vectors, sources = relations()
    space = space_of(vectors, sources, **options)
    found = checked.debias(vectors, sources, space)
    for row in range(0, 300, 23):
        expected = debias_by_hand(
            vectors[row].tolist(),
            space.mean.tolist(),
            space.eigenvectors.tolist(),
            space.alpha[sources[row]].tolist(),
        )
        assert found[row].tolist() == pytest.approx(expected, rel=1e-10, abs=1e-10)


def test_the_outlying_sources_are_drawn_in_along_the_directions_that_tell_sources_apart():
    """Source e lies off along the first axis, a along the second; b, c and d are near the median in both."""
    vectors, sources = relations(pairs=400)
    space = space_of(vectors, sources)
    shrunk = space.alpha[:, :2] < 1
    assert shrunk.any(dim=1).tolist() == [True, False, False, False, True]
    moved = checked.debias(vectors, sources, space)
    before = torch.stack([vectors[sources == s].mean(dim=0) for s in range(5)])[:, :2]
    after = torch.stack([moved[sources == s].mean(dim=0) for s in range(5)])[:, :2]
    assert (after.std(dim=0) < 0.75 * before.std(dim=0)).all()
    near = [1, 2, 3]
    torch.testing.assert_close(after[near], before[near], rtol=0, atol=0.05)


def test_a_source_that_is_not_shrunk_keeps_its_bits():
    vectors, sources = relations(pairs=400)
    space = space_of(vectors, sources)
    free = [source for source in range(5) if (space.alpha[source] == 1).all()]
    assert free, "else there is nothing to see"
    for source in free:
        own = sources == source
        assert torch.equal(checked.debias(vectors, sources, space)[own], vectors[own])


# ---- equation 6: sign and clip

GRID = [-2.5, -1.0, -0.3, -0.01, 0.0, 0.01, 0.4, 1.0, 3.0]
CASES = [(mu, m, band) for mu in GRID for m in GRID for band in (0.0, 0.2, 1.0) if abs(mu - m) > band]


def factor(mu: float, m: float, band: float, eta: float = 0.7) -> float:
    """The factor of the second of two sources along one direction."""
    table = torch.tensor([[m], [mu]], dtype=torch.float64)
    middle, edge = torch.tensor([m], dtype=torch.float64), torch.tensor([band], dtype=torch.float64)
    return reze.shrink_factors(table, middle, edge, eta, 1e-8)[1, 0].item()


@pytest.mark.parametrize("eta", [0.0, 0.3, 0.7, 1.0])
def test_a_shrunk_mean_stays_on_its_side_of_the_median_and_of_the_origin_and_goes_no_farther_than_its_band(eta: float):
    for mu, m, band in CASES:
        alpha = factor(mu, m, band, eta)
        moved = alpha * mu
        assert 1 - eta <= alpha <= 1
        assert moved * mu >= 0
        edge = m + math.copysign(band, mu - m)
        assert abs(moved - m) <= abs(mu - m) + 1e-12, "never farther from the median"
        assert (moved - edge) * (mu - edge) >= -1e-12, "never beyond the edge of the band"


def test_a_mean_whose_band_ends_between_it_and_the_origin_goes_the_share_eta_of_the_way_on_both_sides():
    for mu, m, band in [(3.0, 1.0, 0.2), (3.0, -0.3, 1.0), (-3.0, -1.0, 0.2), (-3.0, 0.3, 1.0)]:
        edge = m + math.copysign(band, mu - m)
        assert factor(mu, m, band) * mu == pytest.approx(mu + 0.7 * (edge - mu), rel=1e-6)


def test_it_is_the_printed_formula_for_a_positive_mean_and_its_mirror_image_for_a_negative_one():
    """As printed, a mean of -3 with the median at -1 gets a factor above 1: it would be pushed away."""
    assert factor(3.0, 1.0, 0.2) == pytest.approx(printed_factor(3.0, 1.0, 0.2, 0.7), rel=1e-6)
    assert factor(-3.0, -1.0, 0.2) == factor(3.0, 1.0, 0.2)
    assert printed_factor(-3.0, -1.0, 0.2, 0.7) == pytest.approx(2 - printed_factor(3.0, 1.0, 0.2, 0.7))
    assert printed_factor(-3.0, -1.0, 0.2, 0.7) > 1


def test_a_source_between_the_origin_and_the_median_is_not_blown_up():
    assert printed_factor(0.1, 5.0, 1.0, 0.7) > 25
    assert factor(0.1, 5.0, 1.0) == 1.0


def test_a_source_near_the_origin_with_the_median_on_the_other_side_is_neither_zeroed_nor_reversed():
    assert printed_factor(0.1, -5.0, 1.0, 0.7) < -25
    assert factor(0.1, -5.0, 1.0) == pytest.approx(0.3)
    assert factor(0.0, -5.0, 1.0) == pytest.approx(0.3)


def test_a_source_at_the_edge_of_its_band_or_within_is_left_alone():
    assert factor(1.0, 0.0, 1.0) == factor(0.9, 0.0, 1.0) == factor(0.5, 0.5, 0.0) == 1.0


# ---- symmetries


def rotation(width: int, seed: int) -> Tensor:
    generator = torch.Generator().manual_seed(seed)
    return torch.linalg.qr(torch.randn(width, width, generator=generator, dtype=torch.float64))[0]


@pytest.mark.parametrize("seed", [0, 1, 2])
def test_a_rotation_of_the_space_turns_the_targets_and_changes_no_factor(seed: int):
    """Rotated, half of the eigenvectors come out the other way round: the printed equation 6 does not survive that."""
    (vectors, sources), turn = relations(), rotation(8, seed)
    plain, turned = space_of(vectors, sources), space_of(vectors @ turn, sources)
    torch.testing.assert_close(turned.alpha, plain.alpha, rtol=1e-8, atol=1e-8)
    assert turned.threshold == pytest.approx(plain.threshold, rel=1e-9)
    moved = checked.debias(vectors @ turn, sources, turned)
    torch.testing.assert_close(moved, checked.debias(vectors, sources, plain) @ turn, rtol=1e-8, atol=1e-8)


def test_the_order_of_sources_and_pairs_changes_nothing_but_the_order():
    (vectors, sources), order = relations(), torch.tensor([3, 0, 4, 1, 2])
    shuffled = torch.randperm(300, generator=torch.Generator().manual_seed(0))
    plain = space_of(vectors, sources)
    renamed = space_of(vectors[shuffled], order[sources[shuffled]], tuple("bdeac"))
    assert [renamed.sources[place] for place in order] == list(NAMES)
    torch.testing.assert_close(renamed.alpha[order], plain.alpha, rtol=1e-8, atol=1e-8)
    moved = checked.debias(vectors[shuffled], order[sources[shuffled]], renamed)
    torch.testing.assert_close(moved, checked.debias(vectors, sources, plain)[shuffled], rtol=1e-8, atol=1e-8)


@pytest.mark.parametrize("scale", [0.01, 7.0])
@pytest.mark.parametrize("offset", [0.0, 1000.0])
def test_scale_and_offset_of_the_space_change_no_factor(scale: float, offset: float):
    vectors, sources = relations()
    plain, other = space_of(vectors, sources), space_of(vectors * scale + offset, sources)
    torch.testing.assert_close(other.alpha, plain.alpha, rtol=1e-4, atol=1e-4)  # epsilon is no share of anything
    moved = checked.debias(vectors * scale + offset, sources, other)
    torch.testing.assert_close(moved, checked.debias(vectors, sources, plain) * scale + offset, rtol=1e-3, atol=1e-3)


def test_the_same_relations_give_the_same_bits_and_a_random_state_has_no_say():
    vectors, sources = relations()
    first = space_of(vectors, sources)
    torch.manual_seed(3)
    second = space_of(vectors, sources)
    for name, tensor in first.to_tensors()[0].items():
        assert torch.equal(second.to_tensors()[0][name], tensor)


# ---- what is shrunk, and what is not


def test_one_source_or_two_shrink_nothing_and_a_warning_says_so():
    vectors, sources = relations()
    for count, said in ((1, "one source cannot be told"), (2, "two sources cannot be told")):
        few = sources < count
        moments = moments_of(vectors[few], sources[few], NAMES[:count])
        with pytest.warns(LabelSpaceWarning, match=f"REZE shrinks nothing: {said}"):
            space = checked.fit_eigenspace(moments)
        assert space.shrunk == 0
        assert torch.equal(checked.debias(vectors[few], sources[few], space), vectors[few])


def test_rounding_alone_puts_none_of_two_sources_beyond_the_band_that_both_lie_on():
    means = torch.randn(2, 20_000, generator=torch.Generator().manual_seed(0), dtype=torch.float64)
    reference = means.mean(dim=0)
    bands = reze.source_bands(means, reference, 1.0)
    assert ((means - reference).abs() > bands).any(), "else there is nothing to forgive"
    assert (reze.shrink_factors(means, reference, bands, 0.7, 1e-8) == 1).all()


def test_two_sources_are_shrunk_where_gamma_makes_their_bands_narrow():
    vectors, sources = relations()
    pair = (sources == 0) | (sources == 4)
    assert space_of(vectors[pair], sources[pair] // 4, ("a", "e"), gamma=0.5).shrunk > 0


def test_sources_that_do_not_differ_are_left_alone_with_a_warning():
    generator = torch.Generator().manual_seed(0)
    same = torch.randn(50, 6, generator=generator, dtype=torch.float64).repeat(4, 1)
    with pytest.warns(LabelSpaceWarning, match="no source lies beyond its band"):
        space = space_of(same, torch.arange(4).repeat_interleave(50), NAMES[:4])
    assert space.shrunk == 0


def test_no_strength_shrinks_nothing_without_a_word():
    vectors, sources = relations()
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert space_of(vectors, sources, eta=0.0).shrunk == 0


def test_directions_behind_the_active_ones_are_never_shrunk():
    """Source e lies off along the last axis, along which hardly anything varies otherwise."""
    generator = torch.Generator().manual_seed(0)
    sources = torch.arange(5).repeat_interleave(400)
    vectors = torch.randn(2000, 8, generator=generator, dtype=torch.float64)
    vectors[:, 7] = 0.01 * vectors[:, 7] + 0.3 * (sources == 4)
    every, most = space_of(vectors, sources, rho=1.0), space_of(vectors, sources, rho=0.99)
    assert (every.active, most.active) == (8, 7)
    assert every.dispersion[7] == every.dispersion.max()
    assert every.alpha[4, 7] < 1
    assert (most.alpha[:, 7] == 1).all()


def test_fewer_pairs_than_coordinates_leave_directions_without_variance_untouched():
    vectors, sources = relations(pairs=5, width=60)
    space = space_of(vectors, sources)
    assert space.eigenvalues.min() >= 0
    assert space.active < 25
    assert (space.alpha[:, space.active :] == 1).all()
    assert torch.isfinite(checked.debias(vectors, sources, space)).all()


def test_a_large_source_moves_the_origin_but_counts_once_among_the_medians():
    vectors, sources = relations(pairs=200)
    few = (sources != 4) | (torch.arange(1000) >= 990)  # source e has 10 pairs
    space = space_of(vectors[few], sources[few])
    assert (space.alpha[4] < 1).any()


def test_the_mean_as_reference_is_dragged_along_by_an_outlier():
    vectors, sources = relations(pairs=400)
    median, mean = space_of(vectors, sources), space_of(vectors, sources, centre="mean")
    assert mean.reference.abs().max() < 1e-9, "with as many pairs in each source it is the origin, as section 5.2 says"
    assert median.reference.abs().max() > 0.3


def test_targets_come_in_the_type_of_the_relations_and_without_a_gradient():
    vectors, sources = relations()
    space = space_of(vectors, sources)
    exact = checked.debias(vectors, sources, space)
    for kind, tolerance in ((torch.float32, 1e-6), (torch.bfloat16, 2e-2)):
        narrow = vectors.to(kind).requires_grad_()
        moved = checked.debias(narrow, sources, space)
        assert moved.dtype is kind
        assert not moved.requires_grad
        torch.testing.assert_close(moved.double(), exact, rtol=tolerance, atol=tolerance)


# ---- stored


def test_settings_that_are_scalars_of_numpy_are_stored_as_pythons_own():
    moments = moments_of(*relations(), module=reze)
    space = fit_eigenspace(moments, gamma=np.float32(0.5), eta=np.float64(0.5))
    assert space.to_tensors()[1] == fit_eigenspace(moments, gamma=0.5, eta=0.5).to_tensors()[1]


def test_an_eigenspace_survives_safetensors_to_the_bit(tmp_path):
    vectors, sources = relations()
    space = fit_eigenspace(moments_of(vectors, sources, module=reze), gamma=0.5, centre="mean")
    tensors, metadata = space.to_tensors()
    path = tmp_path / "reze.safetensors"
    safetensors.torch.save_file(tensors, path, metadata)
    with safe_open(path, framework="pt") as file:
        again = Eigenspace.from_tensors(safetensors.torch.load_file(path), file.metadata(), width=8)
    for name, value in vars(space).items():
        assert torch.equal(getattr(again, name), value) if isinstance(value, Tensor) else getattr(again, name) == value
    assert torch.equal(debias(vectors, sources, again), debias(vectors, sources, space))


def stored() -> tuple[dict[str, Tensor], dict[str, str]]:
    return space_of(*relations()).to_tensors()


SPOILT: dict[str, tuple[Callable[[Any, Any], Any], str]] = {
    "newer": (lambda t, m: m.update(format_version="2"), "has format 2, and this labelspace reads 1"),
    "no metadata": (lambda t, m: m.clear(), r"no stored eigenspace.*'format_version'"),
    "a count that is no number": (lambda t, m: m.update(active="null"), "no stored eigenspace"),
    "metadata that is no JSON": (lambda t, m: m.update(sources="["), "no stored eigenspace"),
    "a tensor less": (lambda t, m: t.pop("alpha"), "lacks alpha"),
    "a narrower matrix": (
        lambda t, m: t.update(eigenvectors=torch.eye(6)),
        r"eigenvectors of shape \(6, 6\) where \(8, 8\)",
    ),
    "a value that is not finite": (lambda t, m: t["alpha"].fill_(math.nan), "not finite in alpha"),
    "more active directions than there are": (lambda t, m: m.update(active="9"), "says 9 of 8"),
    "a source less": (lambda t, m: m.update(sources='["a", "b"]'), r"source_counts of shape \(5,\) where \(2,\)"),
}


@pytest.mark.parametrize("what", SPOILT)
def test_a_stored_eigenspace_that_cannot_be_right_is_refused(what: str):
    tensors, metadata = stored()
    spoil, said = SPOILT[what]
    spoil(tensors, metadata)
    with pytest.raises(ModelFolderError, match=said):
        Eigenspace.from_tensors(tensors, metadata)


def test_an_eigenspace_for_another_encoder_is_refused_when_opened_and_when_used():
    with pytest.raises(ShapeError, match=r"width of those before, 8 \(two embeddings of 4\)\. Got 768 instead"):
        Eigenspace.from_tensors(*stored(), width=768)
    with pytest.raises(ShapeError, match=r"8 \(two embeddings of 4\)\. Got 6 instead; use the encoder"):
        debias(torch.zeros(2, 6), torch.tensor([0, 1]), Eigenspace.from_tensors(*stored()))


# ---- bad input


def test_a_source_with_fewer_than_a_handful_of_pairs_is_refused_by_name():
    vectors, sources = relations()
    kept = (sources != 1) | (torch.arange(300) < 64)
    with pytest.raises(InputError, match=r"each source needs 5 pairs at least.*fewer in 'b' \(4\); leave"):
        space_of(vectors[kept], sources[kept])
    with pytest.raises(InputError, match=r"fewer in 'f' \(0\)"):
        space_of(vectors, sources, (*NAMES, "f"))


@pytest.mark.parametrize("kind", [torch.float32, torch.float64])
def test_relations_that_are_all_one_vector_are_refused(kind: torch.dtype):
    vectors = torch.full((300, 8), 0.1, dtype=kind)
    with pytest.raises(InputError, match="the relations of all 300 pairs are one vector"):
        space_of(vectors, relations()[1])


def test_no_relation_at_all_is_refused():
    with pytest.raises(ShapeError, match="an eigenspace needs relations"):
        fit_eigenspace(RelationMoments(["a"]))


def test_vectors_too_large_to_be_squared_are_refused():
    vectors, sources = relations()
    with pytest.raises(InputError, match="too large for float64"):
        space_of(vectors * 1e200, sources)


@pytest.mark.parametrize(
    "option",
    [{"rho": 0.0}, {"rho": 1.1}, {"gamma": -1.0}, {"eta": 1.1}, {"eta": -0.1}, {"epsilon": 0.0}, {"centre": "mode"}],
    ids=str,
)
def test_an_option_out_of_its_range_is_refused(option: dict[str, Any]):
    with pytest.raises(ConfigError, match=next(iter(option))):
        space_of(*relations(), **option)


def test_debias_refuses_what_does_not_fit():
    space = space_of(*relations())
    for vectors, ids in ((torch.zeros(8), torch.tensor([0])), (torch.zeros(2, 8), torch.tensor([0]))):
        with pytest.raises((ShapeError, TypeCheckError)):
            debias(vectors, ids, space)
    with pytest.raises(InputError, match=r"between 0 and 4\. Got 0 to 5 instead"):
        debias(torch.zeros(2, 8), torch.tensor([0, 5]), space)
    with pytest.raises(InputError, match="whole numbers"):
        debias(torch.zeros(2, 8), torch.tensor([False, True]), space)


def test_debias_reads_ids_of_any_width_as_positions():
    """As a byte mask, two bytes would choose rows of a table and not name them."""
    vectors, sources = relations()
    space = space_of(vectors, sources)
    assert torch.equal(debias(vectors, sources.to(torch.uint8), space), debias(vectors, sources, space))
