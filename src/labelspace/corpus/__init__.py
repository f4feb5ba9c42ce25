"""Documents in and out: lists and tables as documents, files as streams, results that survive a kill."""

from labelspace.corpus.documents import MAX_CHARACTERS, as_documents, as_targets
from labelspace.corpus.pool import Pool, sample_pool
from labelspace.corpus.readers import DocumentTable, open_table
from labelspace.corpus.writers import ResumableWriter

__all__ = [
    "MAX_CHARACTERS",
    "DocumentTable",
    "Pool",
    "ResumableWriter",
    "as_documents",
    "as_targets",
    "open_table",
    "sample_pool",
]
