"""The paper's numbers, BERT-base, in percent: mean and deviation; table 4 has no deviation, table 5 two F1."""

from pathlib import Path

from papers import tables_of

Figure = tuple[float, float]
_TABLES = tables_of(Path(__file__).with_name("paper.csv"))
TABLE_2, TABLE_4 = _TABLES["2"], _TABLES["4"]
TABLE_7 = _TABLES["7"]
"""Without the rows of Chinese sets, and of the best baseline, which it does not name."""

TABLE_5 = _TABLES["5"]
"""F1 of the rarer and of the other class at a degree of 10."""

ABLATED = ("mrpc", "rte", "cola")
ABLATIONS = _TABLES["3"] | _TABLES["6"]
"""Rows of tables 3 and 6 in one mapping; two standard deviations of "vanilla" differ from table 2."""
