"""Geometry: what the space of embeddings looks like, and how it is kept or made anew."""

from labelspace.geometry.eigenspace import Eigenspace
from labelspace.geometry.flow import Flow, fit_flow
from labelspace.geometry.isotropy import drift, isoscore, neighbours_kept
from labelspace.geometry.projection import project
from labelspace.geometry.relation_moments import RelationMoments
from labelspace.geometry.reze import debias, fit_eigenspace
from labelspace.geometry.uniformity import alignment, sample_pairs, uniformity
from labelspace.geometry.whitening import Whitening, fit_whitening

__all__ = [
    "Eigenspace",
    "Flow",
    "RelationMoments",
    "Whitening",
    "alignment",
    "debias",
    "drift",
    "fit_eigenspace",
    "fit_flow",
    "fit_whitening",
    "isoscore",
    "neighbours_kept",
    "project",
    "sample_pairs",
    "uniformity",
]
