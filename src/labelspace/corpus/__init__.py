"""Documents and pairs: read from lists, tables and file streams, and written so that a kill loses little."""

from labelspace.corpus.documents import Document, Documents, Kind
from labelspace.corpus.given import as_documents, as_texts_or_pairs
from labelspace.corpus.pair_sources import PairSource, open_labelled_pairs, open_pairs, open_scored_pairs
from labelspace.corpus.pairs import Pairs, draw_pairs, mixed_batches
from labelspace.corpus.policy import MAX_CHARACTERS
from labelspace.corpus.pool import Pool, sample_pool
from labelspace.corpus.readers import DocumentTable, open_table
from labelspace.corpus.targets import as_targets
from labelspace.corpus.writers import ResumableWriter

__all__ = [
    "MAX_CHARACTERS",
    "Document",
    "DocumentTable",
    "Documents",
    "Kind",
    "PairSource",
    "Pairs",
    "Pool",
    "ResumableWriter",
    "as_documents",
    "as_targets",
    "as_texts_or_pairs",
    "draw_pairs",
    "mixed_batches",
    "open_labelled_pairs",
    "open_pairs",
    "open_scored_pairs",
    "open_table",
    "sample_pool",
]
