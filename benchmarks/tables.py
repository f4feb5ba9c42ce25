"""Write the tables of README.md and of the pages in docs from the result files.

python benchmarks/tables.py            # rewrite what stands between the markers
python benchmarks/tables.py --check    # exit 1 where a page is not what the files say
"""

import argparse
import statistics
from collections import defaultdict
from collections.abc import Callable

import btzsc_tables
import commits
from commits import marked
from lacon import report as lacon_report
from layout import bold_best, markdown, spread
from prefinetune import report as prefinetune_report
from store import RESULTS, ROOT, Row
from store import results as stored
from study import report
from uncertainty import aims as uncertainty_aims
from uncertainty import report as uncertainty_report

from labelspace.config import DEFAULT_ANCHOR, TrainingConfig
from labelspace.evaluate.bench.published import published_scores
from labelspace.evaluate.bench.store import ResultStore

TASKS = {
    "agnews": "AG News",
    "rottentomatoes": "Rotten Tomatoes",
    "emotion": "Emotion",
    "banking77_cards": "Banking77, six cards",
    "banking77": "Banking77, all 77",
}
# Table 1 of the paper, MiniLM; it has no row for all 77 intents.
PAPER = {
    "agnews": (0.47, 0.76),
    "rottentomatoes": (0.34, 0.69),
    "emotion": (0.13, 0.43),
    "banking77_cards": (0.59, 0.88),
}


def single(name: str) -> list[Row]:
    """Return the one result of a script that measures once; none where it was not run."""
    return stored("single", "measured", name=name)


def trained_runs(
    encoder: str, rate: str = "uniformity", strategy: str = "halving", *, full: bool = False
) -> dict[str, list[Row]]:
    """Trained runs by task, with the official verbalizers; `full`: those with the default number of steps."""
    runs = defaultdict(list)
    for row in stored("quality", "trained"):
        same = row["encoder"] == encoder and row["pooling"] is None and row["verbalizers"] == "official"
        way = row["search"]["strategy"] == strategy and row["training"]["learning_rate"] == rate
        if same and way and (row["training"]["max_steps"] == TrainingConfig.max_steps) == full:
            runs[row["task"]].append(row)
    return runs


def untrained(encoder: str, pooling: str | None = None, verbalizers: str = "official") -> dict[str, Row]:
    """Untrained runs by task."""
    rows = stored("quality", "untrained", encoder=encoder, pooling=pooling, verbalizers=verbalizers)
    return {row["task"]: row for row in rows}


def results(encoder: str, rate: str = "uniformity") -> str:
    """The main table: both untrained baselines, and the trained model with its default anchor; the best is bold."""
    before, after = untrained(encoder), trained_runs(encoder, rate)
    rows = []
    for task, title in TASKS.items():
        if task in before and task in after:
            base = before[task]["macro_f1_predicted"]
            trained = spread([row["macro_f1_predicted"][DEFAULT_ANCHOR] for row in after[task]])
            seeds = ", ".join(str(row["seed"]) for row in after[task])
            cells = bold_best([f"{base['verbalizer']:.3f}", f"{base['descriptions']:.3f}", trained])
            rows.append([marked(title, [before[task], *after[task]]), *cells, seeds])
    return markdown(["", "nearest verbalizer", "mean of descriptions", "trained", "seeds"], rows)


def anchors(encoder: str, rate: str = "uniformity") -> str:
    """Every anchor, untrained and trained."""
    before, after = untrained(encoder), trained_runs(encoder, rate)
    kinds = ("verbalizer", "descriptions", "both")
    rows = []
    means: dict[str, list[float]] = defaultdict(list)
    for task, title in TASKS.items():
        if task in before and task in after:
            scores = {kind: [row["macro_f1_predicted"][kind] for row in after[task]] for kind in kinds}
            for kind in kinds:
                means[kind].append(statistics.mean(scores[kind]))
            base = before[task]["macro_f1_predicted"]
            cells = [*(f"{base[kind]:.3f}" for kind in kinds), *(spread(scores[kind]) for kind in kinds)]
            rows.append([marked(title, [before[task], *after[task]]), *cells])
    if rows:
        rows.append(["mean", "", "", "", *(f"{statistics.mean(means[kind]):.3f}" for kind in kinds)])
    return markdown(["", *(f"untrained, {kind}" for kind in kinds), *(f"trained, {kind}" for kind in kinds)], rows)


def paper(encoder: str) -> str:
    """Beside the paper's MiniLM row; the untrained model in both poolings."""
    mean, cls, after = untrained(encoder), untrained(encoder, "cls"), trained_runs(encoder)
    rows = []
    for task, (theirs_before, theirs_after) in PAPER.items():
        if task in mean and task in cls and task in after:
            ours = {
                kind: spread([row["macro_f1_predicted"][kind] for row in after[task]])
                for kind in ("verbalizer", DEFAULT_ANCHOR)
            }
            before = [f"{row[task]['macro_f1_predicted']['verbalizer']:.3f}" for row in (cls, mean)]
            figures = [f"{theirs_before:.2f}", *before, f"{theirs_after:.2f}", ours["verbalizer"], ours[DEFAULT_ANCHOR]]
            rows.append([marked(TASKS[task], [cls[task], mean[task], *after[task]]), *figures])
    header = ["", "paper, untrained", "[CLS] pooling here", "mean pooling here", "paper, trained"]
    return markdown([*header, "here, verbalizer", f"here, {DEFAULT_ANCHOR}"], rows)


def search(encoder: str) -> str:
    """Halving against the full grid, seed 0."""
    halving, grid = trained_runs(encoder), trained_runs(encoder, strategy="grid")
    rows = []
    for task, title in TASKS.items():
        pairs = [(one, other) for one in halving[task] for other in grid[task] if one["seed"] == other["seed"]]
        for one, other in pairs[:1]:
            cost = sum(t["steps"] for t in one["trials"]) / sum(t["steps"] for t in other["trials"])
            rates = [f"{row['learning_rate']:.0e}" for row in (one, other)]
            scores = [f"{row['macro_f1_predicted'][DEFAULT_ANCHOR]:.3f}" for row in (one, other)]
            rows.append([marked(title, [one, other]), *rates, *scores, f"{cost:.2f}"])
    return markdown(
        ["", "rate, halving", "rate, grid", "macro-F1, halving", "macro-F1, grid", "steps, halving / grid"], rows
    )


def rates(encoder: str) -> str:
    """The rate chosen by uniformity against the encoder's base rate, seed 0, the same number of steps."""
    chosen, base = trained_runs(encoder), trained_runs(encoder, "base")
    rows = []
    for task, title in TASKS.items():
        pairs = [(one, other) for one in chosen[task] for other in base[task] if one["seed"] == other["seed"]]
        for pair in pairs[:1]:
            used = [f"{row['learning_rate']:.0e}" for row in pair]
            scores = [f"{row['macro_f1_predicted'][DEFAULT_ANCHOR]:.3f}" for row in pair]
            rows.append([marked(title, pair), *used, *scores])
    return markdown(["", "chosen rate", "base rate", "macro-F1, chosen", "macro-F1, base"], rows)


def runs(encoder: str, rate: str = "uniformity") -> str:
    """How training went."""
    rows, trained = [], trained_runs(encoder, rate)
    for task, title in TASKS.items():
        if done := trained.get(task):
            rates = ", ".join(f"{row['learning_rate']:.0e}" for row in done)
            steps = ", ".join(str(row["steps"]) for row in done)
            moved = f"{done[0]['uniformity'][0]:.2f} to {done[0]['uniformity'][1]:.2f}"
            rows.append([marked(title, done), str(done[0]["training"]["max_steps"]), rates, steps, moved])
    return markdown(["", "max_steps", "learning rate, each seed", "steps made", "uniformity, seed 0"], rows)


def steps() -> str:
    """The default number of steps against the fewer of the tables above, seed 0, both with the search."""
    rows = []
    for encoder in ("all-MiniLM-L6-v2",):
        fewer, full = trained_runs(encoder), trained_runs(encoder, full=True)
        for task, title in TASKS.items():
            for one, other in [(a, b) for a in fewer[task] for b in full[task] if a["seed"] == b["seed"]][:1]:
                made = [f"{row['steps']} of {row['training']['max_steps']}" for row in (one, other)]
                scores = [f"{row['macro_f1_predicted'][DEFAULT_ANCHOR]:.3f}" for row in (one, other)]
                used = [f"{row['learning_rate']:.0e}" for row in (one, other)]
                rows.append([marked(title, [one, other]), *made, *used, *scores])
    names = ("steps, fewer", "steps, default", "rate, fewer", "rate, default")
    return markdown(["", *names, "macro-F1, fewer", "macro-F1, default"], rows)


def speed() -> str:
    """Encoding, training step, memory: ratios of two things measured in one run."""
    rows = []
    for row in single("speed_encode"):
        ratios = ", ".join(f"{pair['ratio']:.2f}" for pair in row["pairs"])
        rows.append(
            ["documents per second, AG News test, against `SentenceTransformer.encode`", f"{row['ratio']:.2f}", ratios]
        )
    for row in single("speed_step"):
        for task in (task for task in TASKS if task in row):
            what = marked(f"training step, {TASKS[task]}, against float32, padded, one batch", [row])
            rows.append([what, f"{row[task]['ratio']:.2f}", ""])
    for row in single("speed_products"):
        both = [f"{shape['bfloat16']:.0f} to {shape['float32']:.0f}" for shape in row["gflops"].values()]
        what = "matrix products of MiniLM's layers, bfloat16 against float32, GFLOP/s a core"
        rows.append([what, f"{row['ratio']:.2f}", ", ".join(both)])
    for row in single("memory"):
        sizes = " and ".join(f"{run['peak_mib']:,.0f} MiB" for run in row["runs"])
        rows.append(["peak memory of fit, 10,000 against 500 descriptions", f"{row['ratio']:.2f}", sizes])
    return markdown(["what", "ratio", "of which"], rows)


def paper_rows() -> str:
    """MiniLM with [CLS] pooling on the paper's rows, beside the published row."""
    path = RESULTS / "btzsc_paper_rows.jsonl"
    if not path.exists():
        return "(not measured yet)"
    published = published_scores()["all-MiniLM-L6-v2"]
    rows = [
        [
            row["task"],
            str(row["texts"]),
            f"{published[row['task']]:.4f}",
            f"{row['metrics']['macro_f1_predicted']:.4f}",
            f"{row['metrics']['macro_f1_predicted'] - published[row['task']]:+.4f}",
        ]
        for row in ResultStore(path).records()
    ]
    return markdown(["data set", "rows", "published macro-F1", "here", "difference"], rows)


def prefix() -> str:
    """What the shared prefix of a generative reranker is worth."""
    rows = []
    for found in single("speed_prefix"):
        for name, row in found["sets"].items():
            ratios = ", ".join(f"{pair['ratio']:.1f}" for pair in row["pairs"])
            tokens = f"{statistics.median(row['prefix_tokens']):.0f}"
            rows.append([name, tokens, f"{row['ratio']:.1f}", ratios])
    return markdown(["texts of", "tokens before the label", "times as fast", "each pair of runs"], rows)


def harness() -> str:
    """Agreement with the authors' harness, and speed against it."""
    agreed, timed = (single(f"harness_{what}") for what in ("agree", "speed"))
    rows = []
    for kind in ("embedding", "nli", "nli-triplet", "reranker"):
        if not agreed or kind not in agreed[0]:
            continue
        found = agreed[0][kind]
        ratio = "not measured"
        if timed and kind in timed[0]:
            each = ", ".join(f"{pair['ratio']:.2f}" for pair in timed[0][kind]["texts_per_second"])
            ratio = f"{timed[0][kind]['ratio']:.2f} ({each})"
        rows.append([kind, f"{found['largest_difference']:.0e}", f"{found['same_argmax']:.0%}", ratio])
    head = [
        "family",
        "largest difference, float32",
        "same argmax, float32",
        "texts/s, ours (bfloat16) to theirs (float32)",
    ]
    return markdown(head, rows)


BLOCKS: dict[str, Callable[[], str]] = {
    "results": lambda: results("all-MiniLM-L6-v2", "base"),
    "results-search": lambda: results("all-MiniLM-L6-v2"),
    "results-mpnet": lambda: results("all-mpnet-base-v2", "base"),
    "anchors-table": lambda: anchors("all-MiniLM-L6-v2", "base"),
    "anchors-mpnet": lambda: anchors("all-mpnet-base-v2", "base"),
    "paper": lambda: paper("all-MiniLM-L6-v2"),
    "search": lambda: search("all-MiniLM-L6-v2"),
    "runs": lambda: runs("all-MiniLM-L6-v2", "base"),
    "runs-search": lambda: runs("all-MiniLM-L6-v2"),
    "runs-mpnet": lambda: runs("all-mpnet-base-v2", "base"),
    "rates": lambda: rates("all-MiniLM-L6-v2"),
    "results-mpnet-search": lambda: results("all-mpnet-base-v2"),
    "steps": steps,
    "speed": speed,
    "paper-rows": paper_rows,
    "harness": harness,
    "prefix": prefix,
    "commits": commits.table,
    "btzsc-means": lambda: btzsc_tables.means("btzsc"),
    "btzsc-sets": lambda: btzsc_tables.by_set("btzsc"),
    "mteb-means": lambda: btzsc_tables.means("mteb"),
    "mteb-sets": lambda: btzsc_tables.by_set("mteb"),
    "btzsc-rows": btzsc_tables.rows,
    "btzsc-speed": btzsc_tables.speeds,
    "btzsc-places": btzsc_tables.places,
    "btzsc-nli": btzsc_tables.nli,
    "btzsc-agreement": btzsc_tables.agreement,
    **report.BLOCKS,
    **lacon_report.BLOCKS,
    **uncertainty_report.BLOCKS,
    **uncertainty_aims.BLOCKS,
    **prefinetune_report.BLOCKS,
}
DOCS = (
    "benchmarks.md",
    "few-labels.md",
    "lacon.md",
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
    """Rewrite the pages, or say which are stale."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--check", action="store_true")
    options = parser.parse_args()
    stale = [page for page in PAGES if page.read_text(encoding="utf-8") != rewritten(page.read_text(encoding="utf-8"))]
    for page in stale:
        if options.check:
            print(f"{page.relative_to(ROOT)} is not what benchmarks/results says; run benchmarks/tables.py")
        else:
            page.write_text(rewritten(page.read_text(encoding="utf-8")), encoding="utf-8")
    raise SystemExit(1 if options.check and stale else 0)


if __name__ == "__main__":
    main()
