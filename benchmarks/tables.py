"""Write the tables of README.md and the docs pages from the tables of results, the configurations and the commands.

python benchmarks/tables.py            # rewrite the text between the markers
python benchmarks/tables.py --check    # exit 1 if a page does not match them
"""

import argparse
from collections.abc import Callable

import btzsc_tables
import commits
import long_texts
import mending
import quality_tables
import settings_tables
from lacon import report as lacon
from nli import report as nli
from prefinetune import report as prefinetune
from several import report as several
from store import ROOT
from study import beyond
from study import report as study
from uncertainty import differences, report
from views import report as consensus

BLOCKS: dict[str, Callable[[], str]] = {
    "commits": commits.table,
    **quality_tables.BLOCKS,
    **btzsc_tables.BLOCKS,
    **nli.BLOCKS,
    **consensus.BLOCKS,
    **mending.BLOCKS,
    **study.BLOCKS,
    **beyond.BLOCKS,
    **long_texts.STUDY.blocks,
    **lacon.BLOCKS,
    **report.BLOCKS,
    **differences.BLOCKS,
    **prefinetune.BLOCKS,
    **several.BLOCKS,
    **settings_tables.BLOCKS,
}
DOCS = (
    "benchmarks.md",
    "python.md",
    "consensus.md",
    "consensus-study.md",
    "estimate.md",
    "none-of-these.md",
    "several-labels.md",
    "scale.md",
    "serving.md",
    "command-line.md",
    "label-files.md",
    "few-labels.md",
    "lacon.md",
    "long-texts.md",
    "study.md",
    "btzsc.md",
    "method.md",
    "uncertainty.md",
    "uncertainty-study.md",
    "prefinetuning.md",
    "prefinetuning-study.md",
)
PAGES = (ROOT / "README.md", *(ROOT / "docs" / page for page in DOCS))


def rewritten(text: str) -> str:
    """Put each table between its markers `<!-- name -->` and `<!-- /name -->`."""
    for name, make in BLOCKS.items():
        start, end = f"<!-- {name} -->", f"<!-- /{name} -->"
        if start in text and end in text:
            head, rest = text.split(start, 1)
            text = f"{head}{start}\n{make()}\n{end}{rest.split(end, 1)[1]}"
    return text


def main() -> None:
    """Rewrite the pages, or list those that are stale."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--check", action="store_true")
    options = parser.parse_args()
    stale = [page for page in PAGES if page.read_text(encoding="utf-8") != rewritten(page.read_text(encoding="utf-8"))]
    for page in stale:
        if options.check:
            print(f"{page.relative_to(ROOT)} does not match benchmarks/results; run benchmarks/tables.py")
        else:
            page.write_text(rewritten(page.read_text(encoding="utf-8")), encoding="utf-8")
    raise SystemExit(1 if options.check and stale else 0)


if __name__ == "__main__":
    main()
