"""Mean length of the texts of each benchmark set (the paper's table 1), by the tokenizer of all-MiniLM-L6-v2.

python benchmarks/token_counts.py        # the row `btzsc_tokens` of benchmarks/results/single.jsonl
"""

import numpy as np
from measured import measure
from store import ENCODER
from tasks import DATA

from labelspace import Encoder
from labelspace.bench import find_tasks, load_task


def mean_tokens() -> dict[str, dict[str, float]]:
    """Return the mean number of tokens of the whole texts of each set, without [CLS] and [SEP]."""
    tokenizer = Encoder(ENCODER).backbone.tokenizer
    found = {}
    for name in find_tasks(DATA).present:
        ids = tokenizer(load_task(name, data=DATA).texts, add_special_tokens=False, verbose=False)["input_ids"]
        found[name] = round(float(np.mean([len(one) for one in ids])), 1)
    return {"tokens": found}


if __name__ == "__main__":
    measure("btzsc_tokens", "shared/data: btzsc, mteb", mean_tokens)
