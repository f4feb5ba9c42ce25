"""The paper's own figures, BERT-base, in percent: a mean and its deviation; table 4 has none, table 5 two F1."""

from pathlib import Path

from papers import tables_of

Figure = tuple[float, float]
_TABLES = tables_of(Path(__file__).with_name("paper.csv"))
TABLE_2, TABLE_4 = _TABLES["2"], _TABLES["4"]
TABLE_5 = _TABLES["5"]
"""F1 of the rarer and of the other class at a degree of 10."""

ABLATED = ("mrpc", "rte", "cola")
ABLATIONS = _TABLES["3"] | _TABLES["6"]
"""Tables 3 and 6 share what they share; "vanilla" differs from table 2 in two standard deviations."""
