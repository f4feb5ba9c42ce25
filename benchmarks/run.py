"""Run the experiments of a study piece by piece, skipping those with a row in the table of results.

    python benchmarks/run.py STUDY                    # missing pieces, for 20 minutes
    python benchmarks/run.py STUDY --parts PART ...   # some parts; --help lists them
    python benchmarks/run.py STUDY --small            # a smoke test, into build/
    python benchmarks/run.py STUDY --full --tables    # the tables of the paper's protocol
    python benchmarks/run.py STUDY --figures docs/figures

STUDY is quality (five data sets), study (description-only), consensus, mending (descriptions that hurt), lacon,
uncertainty, prefinetune, nli (binary or three-way heads), several or long-texts. Concurrent calls share the work.
`python benchmarks/tables.py` writes the tables into the docs pages.
"""

import importlib
import sys

from runner import main

PLANS = {name: f"{name}.plan" for name in ("study", "lacon", "uncertainty", "prefinetune", "several", "nli")}
PLANS |= {"quality": "quality", "mending": "mending", "consensus": "views.plan", "long-texts": "long_texts"}


def run(words: list[str]) -> None:
    """Run a study from the words of a command line."""
    if not words or words[0] not in PLANS:
        print(__doc__)
        raise SystemExit(0 if words[:1] in (["-h"], ["--help"]) else 2)
    main(importlib.import_module(PLANS[words[0]]).STUDY, __file__, words[1:])


if __name__ == "__main__":
    run(sys.argv[1:])
