"""Geometry: what the space of embeddings looks like."""

from labelspace.geometry.uniformity import alignment, sample_pairs, uniformity

__all__ = ["alignment", "sample_pairs", "uniformity"]
