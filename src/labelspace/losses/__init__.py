"""Losses: pure functions of tensors, one file a paper."""

from labelspace.losses.infonce import infonce_columns, infonce_rows, symmetric_infonce
from labelspace.losses.similarity import cosine_scores

__all__ = ["cosine_scores", "infonce_columns", "infonce_rows", "symmetric_infonce"]
