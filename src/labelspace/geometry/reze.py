r"""REZE's offline phase: which directions tell the sources apart, and how far each source is pulled back (eq. 1-7).

A relation is an anchor and its positive side by side, r = [a; p]. In the eigenspace of all relations every source has a
mean. Where these means lie far apart, the source, and not the domain, decides the coordinate; there the far sources
are shrunk towards the median of all.

    RelationMoments   one pass over the relations: mean, covariance, mean of each source; never the relations themselves
    fit_eigenspace    moments -> Eigenspace, with a factor alpha for each source and direction
    debias            reference relations -> the targets of training

Axes        here            paper        meaning
            pair            n, N         anchor-positive pairs
            dim             j, D = 2d    coordinates of a relation, or directions of the eigenspace
            source          s, S         source data sets
            mean            u            mean of all relations
            eigenvectors    W            one a column
            source_means    mu           means of the sources in the eigenspace
            reference       m            their median (or mean)
            dispersion      v            how far they lie from it
            active          k            directions that may be shrunk, the first k
            threshold       theta        dispersion above which a direction is shrunk
            bands           theta_j      distance from the median beyond which a source is shrunk
            alpha           alpha        the factors, 1 where nothing is shrunk

Two things in eq. 6 are decided here, because the paper does not:

    Sign   The printed denominator is |mu| + eps. The direction of an eigenvector is arbitrary, and turning it round
           changes the sign of mu and of the numerator, but not of that denominator: alpha would become 2 - alpha, and a
           source below the median would be pushed away from it. So the denominator takes the sign of mu here. For
           mu > 0 this is eq. 6 as printed, and before the clip alpha * mu is the share eta of the way to the edge of
           the band.
    Clip   alpha lies in [1 - eta, 1]. Above 1 a source would be blown up ("divergence"): that is where the origin, and
           not the source, lies off the median, and the source is left as it is. Below 0 its relations would change
           sides ("unintended reversal"); already below 1 - eta a mean near the origin, whose band ends on the other
           side, would all but zero the direction, which section 3.1 sets REZE apart from. 1 - eta is what a band that
           ends at the origin gives. So a shrunk mean lies between where it was and the edge of the band, on its side
           of both the median and the origin.
"""

import math

import torch
from jaxtyping import Float, Int
from torch import Tensor

from labelspace.checks import as_python, check_choice, check_number
from labelspace.errors import InputError, ShapeError, warn
from labelspace.geometry.eigenspace import Eigenspace
from labelspace.geometry.relation_moments import RelationMoments, check_relations, check_source_ids

CENTRES = ("median", "mean")

# Pairs of a source: the mean of fewer says more of those pairs than of the source.
FEWEST_PAIRS = 5

# Sources no farther out than their band are not shrunk; by rounding alone two sources would lie beyond it.
_ROUNDING = 1e-9


def fit_eigenspace(
    moments: RelationMoments,
    *,
    rho: float = 0.99,
    gamma: float = 1.0,
    eta: float = 0.7,
    epsilon: float = 1e-8,
    centre: str = "median",
) -> Eigenspace:
    r"""Find the directions that tell sources apart, and the factor by which each source is shrunk along them.

    .. math::
        C = W \Lambda W^\top, \qquad \mu_s = W^\top (\bar{x}_s - u), \qquad
        \alpha_{s,j} = \operatorname{clip}\Bigl(
            1 + \eta \, \frac{m_j + \operatorname{sgn}(\Delta_{s,j}) \theta_j - \mu_{s,j}}
                             {\operatorname{sgn}(\mu_{s,j}) (|\mu_{s,j}| + \varepsilon)},
            \; 1 - \eta, \; 1 \Bigr)

    where j is active, :math:`v_j > \theta` and :math:`|\Delta_{s,j}| \ge \theta_j`; 1 elsewhere.

    Paper: eq. 1-6; C is 1/N times the scatter, :math:`\Delta = \mu - m`. The sign in the denominator and the clip are
    told at the top of `labelspace.geometry.reze`. `rho` and `gamma` are the paper's (section 3.1), `eta` is that of
    Figure 2; its :math:`\varepsilon` is only "small". It must be so beside v, whose median over the active directions
    of MiniLM's relations is some 1e-6: with 1e-5 fewer than half of the directions pass that pass with 1e-8.

    All means of eigencoordinates follow from the means of the relations, so nothing is seen twice. A source counts
    once, however many pairs it has; the mean u and the covariance weigh it by its pairs.

    With one source, and at `gamma` 1 or more with two, no source lies farther from the median than its band: all
    factors are 1, a warning says so, and what is left of REZE is a pull towards the reference model itself.

    Args:
        moments: of the relations of the reference model.
        rho: share of the variance that the active directions hold, above 0, at most 1.
        gamma: scale of the threshold and of the bands, zero or more.
        eta: strength, 0 (nothing is shrunk) to 1 (a mean goes as far as the edge of its band).
        epsilon: keeps eq. 6 from dividing by zero and eq. 4 from shrinking what is equal; above 0.
        centre: `"median"`, or `"mean"` of the source means, the rival of Table 3. Where all sources have as many pairs
            that mean is the origin, as section 5.2 says. The other medians stay.

    Returns:
        The eigenspace with all factors, in float64.

    Raises:
        ShapeError: no relation was seen.
        InputError: a source has fewer than 5 pairs, or all relations are one vector.
        ConfigError: an option is out of its range.

    Example:
        Four sources of six relations each, one of them far out along the first direction: only that one is shrunk.

        >>> means = torch.tensor([[0.0, 0.0, 0.0], [0.2, 0.1, 0.0], [0.0, 0.2, 0.1], [3.0, 0.0, 0.0]])
        >>> corners = torch.cat([torch.eye(3), -torch.eye(3)])
        >>> relations, sources = (means[:, None] + corners).flatten(0, 1), torch.arange(4).repeat_interleave(6)
        >>> moments = RelationMoments(["a", "b", "c", "far"])
        >>> moments.update(relations, sources)
        >>> space = fit_eigenspace(moments)
        >>> space.active, space.shrunk, [round(factor, 2) for factor in space.alpha[:, 0].tolist()]
        (3, 1, [1.0, 1.0, 1.0, 0.33])

    See also:
        debias: applies it.

    Reference:
        Lee et al., "REZE: Representation Regularization for Domain-adaptive Text Embedding Pre-finetuning", section
        3.1, eq. 1-6, and Algorithm 1, phase 1.
    """
    _check_settings(rho, gamma, eta, epsilon, centre)
    _check_moments(moments)
    eigenvalues, eigenvectors = _eigh(moments.covariance())
    source_means = (moments.source_means - moments.mean) @ eigenvectors
    reference = _median(source_means) if centre == "median" else source_means.mean(dim=0)
    dispersion = source_dispersion(source_means, reference)
    active = active_directions(eigenvalues, rho)
    threshold = dispersion_threshold(dispersion[:active], gamma, epsilon)
    bands = source_bands(source_means, reference, gamma)
    alpha = shrink_factors(source_means, reference, bands, eta, epsilon)
    alpha[:, active:] = 1.0
    alpha[:, dispersion <= threshold] = 1.0
    space = Eigenspace(
        sources=moments.sources,
        settings=as_python({"rho": rho, "gamma": gamma, "eta": eta, "epsilon": epsilon, "centre": centre}),
        mean=moments.mean.clone(),
        eigenvectors=eigenvectors,
        eigenvalues=eigenvalues,
        source_counts=moments.source_counts.clone(),
        source_means=source_means,
        reference=reference,
        dispersion=dispersion,
        active=active,
        threshold=threshold,
        bands=bands,
        alpha=alpha,
    )
    if not space.shrunk and eta > 0:
        warn(_nothing_shrunk(len(moments.sources)))
    return space


def debias(
    relations: Float[Tensor, "pair dim"], sources: Int[Tensor, " pair"], eigenspace: Eigenspace
) -> Float[Tensor, "pair dim"]:
    r"""Take out of the reference relations what only tells their source.

    .. math::
        \hat{r}_i = W A_{s_i} W^\top (r_i - u) + u, \qquad A_s = \operatorname{diag}(\alpha_{s,1}, \dots, \alpha_{s,D})

    Paper: eq. 7, the same names. It is computed as :math:`r_i + W (A_{s_i} - I) W^\top (r_i - u)`, the same for an
    orthogonal W, over the directions that any source is shrunk along: a source that is not shrunk keeps its bits, and
    a batch costs a few columns of W and not all.

    Args:
        relations: [pair dim], those of the reference model, anchor and positive side by side.
        sources: [pair], the id of the source of each.
        eigenspace: of `fit_eigenspace`, with the same reference model.

    Returns:
        [pair dim], the type and device of `relations`, no gradient.

    Raises:
        ShapeError: relations of another width than the eigenspace was made for, or not one id for each.
        InputError: an id is out of range or no integer.

    Example:
        >>> means = torch.tensor([[0.0, 0.0, 0.0], [0.2, 0.1, 0.0], [0.0, 0.2, 0.1], [3.0, 0.0, 0.0]])
        >>> corners = torch.cat([torch.eye(3), -torch.eye(3)])
        >>> relations, sources = (means[:, None] + corners).flatten(0, 1), torch.arange(4).repeat_interleave(6)
        >>> moments = RelationMoments(["a", "b", "c", "far"])
        >>> moments.update(relations, sources)
        >>> targets = debias(relations, sources, fit_eigenspace(moments))
        >>> [round(x, 2) for x in relations[sources == 3].mean(dim=0).tolist()]
        [3.0, 0.0, 0.0]
        >>> [round(x, 2) for x in targets[sources == 3].mean(dim=0).tolist()]
        [1.53, 0.05, 0.02]

    See also:
        labelspace.losses.relation_cosine: pulls a model's relations towards these.

    Reference:
        Lee et al., "REZE: Representation Regularization for Domain-adaptive Text Embedding Pre-finetuning", eq. 7.
    """
    check_relations(relations, sources, eigenspace.width)
    check_source_ids(sources, len(eigenspace.sources))
    relations = relations.detach()
    device = relations.device
    touched = (eigenspace.alpha != 1).any(dim=0)
    axes = eigenspace.eigenvectors[:, touched].to(device)  # [dim axis]
    less = (eigenspace.alpha[:, touched] - 1).to(device)  # [source axis]
    wide = relations.to(torch.float64)
    along = (wide - eigenspace.mean.to(device)) @ axes  # [pair axis]
    return (wide + (along * less[sources.to(device).long()]) @ axes.T).to(relations.dtype)


def source_dispersion(
    source_means: Float[Tensor, "source dim"], reference: Float[Tensor, " dim"]
) -> Float[Tensor, " dim"]:
    """Eq. 2: mean squared distance of the source means from their median, direction by direction."""
    return (source_means - reference).square().mean(dim=0)


def active_directions(eigenvalues: Float[Tensor, " dim"], rho: float) -> int:
    """Eq. 3: the fewest leading directions that hold the share `rho` of the variance."""
    held = eigenvalues.cumsum(dim=0)
    return int((held / held[-1] < rho).sum()) + 1


def dispersion_threshold(dispersion: Float[Tensor, " active"], gamma: float, epsilon: float) -> float:
    """Eq. 4: median of the dispersions of the active directions, and `gamma` times their MAD on top."""
    middle = _median(dispersion[:, None])
    return float(middle + gamma * (_median((dispersion - middle).abs()[:, None]) + epsilon))


def source_bands(
    source_means: Float[Tensor, "source dim"], reference: Float[Tensor, " dim"], gamma: float
) -> Float[Tensor, " dim"]:
    """Eq. 5: `gamma` times the mean distance of the source means from their median.

    The text calls it MAD; the formula takes the mean of the absolute deviations and not their median, and it holds.
    """
    return gamma * (source_means - reference).abs().mean(dim=0)


def shrink_factors(
    source_means: Float[Tensor, "source dim"],
    reference: Float[Tensor, " dim"],
    bands: Float[Tensor, " dim"],
    eta: float,
    epsilon: float,
) -> Float[Tensor, "source dim"]:
    """Eq. 6 and its condition (ii), clipped: the factor of each source along each direction."""
    apart = source_means - reference
    edge = reference + apart.sign() * bands
    signed = torch.where(source_means < 0, -1.0, 1.0) * (source_means.abs() + epsilon)
    factors = (1 + eta * (edge - source_means) / signed).clamp(1 - eta, 1)
    return torch.where(apart.abs() > bands * (1 + _ROUNDING), factors, 1.0)


def _eigh(covariance: Tensor) -> tuple[Tensor, Tensor]:
    """Return eigenvalues in falling order and their eigenvectors, which way round they point decided by the largest."""
    eigenvalues, eigenvectors = torch.linalg.eigh(covariance)
    eigenvalues, eigenvectors = eigenvalues.flip(0).clamp(min=0), eigenvectors.flip(1)
    largest = eigenvectors.gather(0, eigenvectors.abs().argmax(dim=0, keepdim=True))
    return eigenvalues, eigenvectors * torch.where(largest < 0, -1.0, 1.0)


def _median(rows: Tensor) -> Tensor:
    """Median down the columns; of an even number the mean of the middle two, which torch.median does not take."""
    ordered = rows.sort(dim=0).values
    return (ordered[(len(rows) - 1) // 2] + ordered[len(rows) // 2]) / 2


def _check_settings(rho: float, gamma: float, eta: float, epsilon: float, centre: str) -> None:
    check_number("rho", rho, above=0, most=1)
    check_number("gamma", gamma, least=0)
    check_number("eta", eta, least=0, most=1)
    check_number("epsilon", epsilon, above=0)
    check_choice("centre", centre, CENTRES)


def _check_moments(moments: RelationMoments) -> None:
    if not moments.count:
        raise ShapeError("an eigenspace needs relations [pair dim]. Got none; give the moments their pairs first.")
    counts = dict(zip(moments.sources, moments.source_counts.tolist(), strict=True))
    few = [f"'{name}' ({count})" for name, count in counts.items() if count < FEWEST_PAIRS]
    if few:
        raise InputError(
            f"each source needs {FEWEST_PAIRS} pairs at least, or its mean says nothing of it. Got fewer in "
            f"{', '.join(few)}; leave these sources out, or join them with others of their kind."
        )
    if not math.isfinite(moments.covariance().sum().item()):
        raise InputError("the covariance of the relations is too large for float64; scale the vectors down.")
    if moments.is_constant():
        raise InputError(
            f"the relations of all {moments.count} pairs are one vector, which has no directions to look at; "
            "look at the texts, or at an encoder that maps them all to one point."
        )


def _nothing_shrunk(sources: int) -> str:
    if sources < 3:
        count = "one source" if sources == 1 else "two sources"
        why = f"{count} cannot be told from the median of all; give three or more"
    else:
        why = "no source lies beyond its band along a direction that tells sources apart"
    return f"REZE shrinks nothing: {why}. The targets are the reference relations themselves."
