"""The paper's numbers: train and test rows of table 1, accuracy in percent of tables 2, 7, 8 and 9, and table 5."""

from pathlib import Path

from papers import tables_of

_TABLES = tables_of(Path(__file__).with_name("paper.csv"))
ROWS = _TABLES["1"]["rows"]
QWEN3 = _TABLES["7"] | _TABLES["8"]
"""Qwen3-Embedding-0.6B; "cls" is EOS there."""

GEMMA = _TABLES["9"]
"""embeddinggemma-300m: the reproduced linear probe, and all of it."""

LATENCY_RATIO = 2.76 / 2.72
MORE_PARAMETERS = 614.7 / 595.9 - 1
"""Table 5: latency with the head over latency without, and what the head adds to the parameters."""
