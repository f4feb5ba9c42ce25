"""The tables of README.md and docs/benchmarks.md: the five data sets and the single measurements; see tables.py."""

import statistics
from collections import defaultdict
from collections.abc import Callable, Mapping, Sequence

from commits import marked
from layout import bold_best, markdown, spread
from store import RESULTS, Row, results

from labelspace.bench.published import published_scores
from labelspace.bench.store import ResultStore
from labelspace.config import ANCHORS, DEFAULT_ANCHOR, TrainingConfig

TASKS = {
    "agnews": "AG News",
    "rottentomatoes": "Rotten Tomatoes",
    "emotion": "Emotion",
    "banking77_cards": "Banking77, six cards",
    "banking77": "Banking77, all 77",
}
PAPER = {
    "agnews": (0.47, 0.76),
    "rottentomatoes": (0.34, 0.69),
    "emotion": (0.13, 0.43),
    "banking77_cards": (0.59, 0.88),
}
"""Table 1 of the paper, MiniLM, untrained and trained; the table does not have all 77 intents."""

MINILM, MPNET = "all-MiniLM-L6-v2", "all-mpnet-base-v2"
Runs = Mapping[str, Sequence[Row]]


def trained_runs(encoder: str, rate: str = "uniformity", strategy: str = "halving", *, full: bool = False) -> Runs:
    """Return trained runs by task, with the official verbalizers; `full`: only those with the default steps."""
    runs: dict[str, list[Row]] = defaultdict(list)
    for row in results("quality", "trained", encoder=encoder, pooling=None, verbalizers="official"):
        way = (row["search"]["strategy"], row["training"]["learning_rate"])
        if way == (strategy, rate) and (row["training"]["max_steps"] == TrainingConfig.max_steps) == full:
            runs[row["task"]].append(row)
    return runs


def untrained(encoder: str, pooling: str | None = None) -> dict[str, Row]:
    """Return untrained runs by task, with the official verbalizers."""
    rows = results("quality", "untrained", encoder=encoder, pooling=pooling, verbalizers="official")
    return {row["task"]: row for row in rows}


def scores(runs: Sequence[Row], anchor: str = DEFAULT_ANCHOR) -> list[float]:
    """Return the macro-F1 of each run with one anchor."""
    return [row["macro_f1_predicted"][anchor] for row in runs]


def trained(encoder: str, rate: str = "uniformity") -> str:
    """The main table: both untrained baselines, and the trained model with its default anchor; the best is bold."""
    before, after = untrained(encoder), trained_runs(encoder, rate)
    rows = []
    for task in (task for task in TASKS if task in before and task in after):
        base = before[task]["macro_f1_predicted"]
        cells = [f"{base['verbalizer']:.3f}", f"{base['descriptions']:.3f}", spread(scores(after[task]))]
        seeds = ", ".join(str(row["seed"]) for row in after[task])
        rows.append([marked(TASKS[task], [before[task], *after[task]]), *bold_best(cells), seeds])
    return markdown(["", "nearest verbalizer", "mean of descriptions", "trained", "seeds"], rows)


def anchors(encoder: str, rate: str = "base") -> str:
    """Every anchor, untrained and trained."""
    before, after = untrained(encoder), trained_runs(encoder, rate)
    tasks = [task for task in TASKS if task in before and task in after]
    rows = []
    for task in tasks:
        cells = [f"{before[task]['macro_f1_predicted'][kind]:.3f}" for kind in ANCHORS]
        cells += [spread(scores(after[task], kind)) for kind in ANCHORS]
        rows.append([marked(TASKS[task], [before[task], *after[task]]), *cells])
    if rows:
        means = (statistics.mean(statistics.mean(scores(after[task], kind)) for task in tasks) for kind in ANCHORS)
        rows.append(["mean", "", "", "", *(f"{mean:.3f}" for mean in means)])
    return markdown(["", *(f"{when}, {kind}" for when in ("untrained", "trained") for kind in ANCHORS)], rows)


def paper() -> str:
    """Comparison with the paper's MiniLM row, with the untrained model in both poolings."""
    mean, cls, after = untrained(MINILM), untrained(MINILM, "cls"), trained_runs(MINILM)
    rows = []
    for task, (theirs_before, theirs_after) in PAPER.items():
        if task in mean and task in cls and task in after:
            before = [f"{row[task]['macro_f1_predicted']['verbalizer']:.3f}" for row in (cls, mean)]
            ours = [spread(scores(after[task], kind)) for kind in ("verbalizer", DEFAULT_ANCHOR)]
            cells = [f"{theirs_before:.2f}", *before, f"{theirs_after:.2f}", *ours]
            rows.append([marked(TASKS[task], [cls[task], mean[task], *after[task]]), *cells])
    head = ["", "paper, untrained", "[CLS] pooling here", "mean pooling here", "paper, trained"]
    return markdown([*head, "here, verbalizer", f"here, {DEFAULT_ANCHOR}"], rows)


def beside(one: Runs, other: Runs, head: Sequence[str], more: Callable[[Row, Row], tuple[list[str], list[str]]]) -> str:
    """Lay out learning rates and scores of two ways of training, one seed of each task.

    Args:
        one: runs by task.
        other: runs to compare with, by task.
        head: column titles.
        more: makes the cells before and after the rates and scores from two runs.
    """
    rows = []
    for task, title in TASKS.items():
        pairs = [(a, b) for a in one.get(task, ()) for b in other.get(task, ()) if a["seed"] == b["seed"]]
        for pair in pairs[:1]:
            first, last = more(*pair)
            rates = [f"{row['learning_rate']:.0e}" for row in pair]
            rows.append([marked(title, pair), *first, *rates, *(f"{score:.3f}" for score in scores(pair)), *last])
    return markdown(["", *head], rows)


def search() -> str:
    """Halving against the full grid."""

    def cost(one: Row, other: Row) -> tuple[list[str], list[str]]:
        made = [sum(trial["steps"] for trial in row["trials"]) for row in (one, other)]
        return [], [f"{made[0] / made[1]:.2f}"]

    head = ["rate, halving", "rate, grid", "macro-F1, halving", "macro-F1, grid", "steps, halving / grid"]
    return beside(trained_runs(MINILM), trained_runs(MINILM, strategy="grid"), head, cost)


def rates() -> str:
    """The learning rate chosen by uniformity against the encoder's base rate, with equal steps."""
    head = ["chosen rate", "base rate", "macro-F1, chosen", "macro-F1, base"]
    return beside(trained_runs(MINILM), trained_runs(MINILM, "base"), head, lambda *_: ([], []))


def steps() -> str:
    """The default number of steps against the smaller one of the other tables, both with the search."""

    def made(*pair: Row) -> tuple[list[str], list[str]]:
        return [f"{row['steps']} of {row['training']['max_steps']}" for row in pair], []

    head = ["steps, fewer", "steps, default", "rate, fewer", "rate, default", "macro-F1, fewer", "macro-F1, default"]
    return beside(trained_runs(MINILM), trained_runs(MINILM, full=True), head, made)


def runs(encoder: str, rate: str = "uniformity") -> str:
    """Learning rates, steps and uniformity of the training runs."""
    found, rows = trained_runs(encoder, rate), []
    for task in (task for task in TASKS if task in found):
        done = found[task]
        used = [", ".join(f"{row['learning_rate']:.0e}" for row in done), ", ".join(str(row["steps"]) for row in done)]
        moved = f"{done[0]['uniformity'][0]:.2f} to {done[0]['uniformity'][1]:.2f}"
        rows.append([marked(TASKS[task], done), str(done[0]["training"]["max_steps"]), *used, moved])
    return markdown(["", "max_steps", "learning rate, each seed", "steps made", "uniformity, seed 0"], rows)


def single(name: str) -> list[Row]:
    """Return the result of a single measurement as a list, empty if it was not run."""
    return results("single", "measured", name=name)


def speed() -> str:
    """Encoding, training step, memory: ratios of two measurements of one run."""
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
    """Speed-up by the shared prefix of a generative reranker."""
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
    "results": lambda: trained(MINILM, "base"),
    "results-search": lambda: trained(MINILM),
    "results-mpnet": lambda: trained(MPNET, "base"),
    "results-mpnet-search": lambda: trained(MPNET),
    "anchors-table": lambda: anchors(MINILM),
    "anchors-mpnet": lambda: anchors(MPNET),
    "paper": paper,
    "search": search,
    "runs": lambda: runs(MINILM, "base"),
    "runs-search": lambda: runs(MINILM),
    "runs-mpnet": lambda: runs(MPNET, "base"),
    "rates": rates,
    "steps": steps,
    "speed": speed,
    "paper-rows": paper_rows,
    "harness": harness,
    "prefix": prefix,
}
