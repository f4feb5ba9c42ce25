"""Geometry: what the space of embeddings looks like."""

from labelspace.geometry.projection import project
from labelspace.geometry.uniformity import alignment, sample_pairs, uniformity

__all__ = ["alignment", "project", "sample_pairs", "uniformity"]
