"""The tables of README.md and docs/benchmarks.md: the five data sets and the single measurements; see tables.py."""

import statistics
from collections.abc import Callable, Mapping, Sequence

import pandas as pd
from commits import marked
from layout import bold_best, markdown, spread
from store import RESULTS, Row, Table, frame

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
Runs = Mapping[str, pd.DataFrame]
"""The runs of each task, in the order of `TASKS`."""


def by_task(runs: pd.DataFrame) -> Runs:
    """Split runs by task, and name the columns of macro-F1 by their anchor."""
    runs = runs.rename(columns=lambda name: name.removeprefix("macro_f1_predicted."))
    groups = dict(list(runs.groupby("task")))
    return {task: groups[task] for task in TASKS if task in groups}


def trained_runs(encoder: str, rate: str = "uniformity", strategy: str = "halving", *, default: bool = False) -> Runs:
    """Return trained runs by task, with the official verbalizers; `default`: those with the default updates."""
    facts = {"search.strategy": strategy, "training.learning_rate": rate, "verbalizers": "official"}
    runs = frame("quality", "trained", encoder=encoder, pooling=None, **facts)
    return by_task(runs[(runs["training.max_steps"] == TrainingConfig.max_steps) == default])


def untrained(encoder: str, pooling: str | None = None) -> Runs:
    """Return untrained runs by task, with the official verbalizers."""
    return by_task(frame("quality", "untrained", encoder=encoder, pooling=pooling, verbalizers="official"))


def trained(encoder: str, rate: str = "uniformity") -> str:
    """The main table: both untrained baselines, and the trained model with its default anchor; the best is bold."""
    before, rows = untrained(encoder), []
    for task, after in trained_runs(encoder, rate).items():
        base = before[task]
        cells = [spread(base.verbalizer), spread(base.descriptions), spread(after[DEFAULT_ANCHOR])]
        title = marked(TASKS[task], pd.concat([base, after]))
        rows.append([title, *bold_best(cells), ", ".join(map(str, after.seed))])
    return markdown(["", "nearest verbalizer", "mean of descriptions", "trained", "seeds"], rows)


def readme() -> str:
    """The main table, and what unlabelled documents add."""
    before, after, rows = untrained(MINILM), trained_runs(MINILM, "base", default=True), []
    runs = frame("consensus", "examples", "task", "views", "macro_f1_predicted")
    pool = dict(zip(runs["task"], runs["macro_f1_predicted"], strict=True)) if len(runs) else {}
    for task, own in after.items():
        base = before[task]
        cells = [spread(base.verbalizer), spread(base.descriptions), spread(own[DEFAULT_ANCHOR])]
        cells += [f"{pool[task]:.3f}"] if task in pool else []
        rows.append([marked(TASKS[task], pd.concat([base, own])), *[*bold_best(cells), "-"][:4]])
    return markdown(["", "nearest verbalizer", "mean of descriptions", "trained", "with unlabelled documents"], rows)


def anchors(encoder: str) -> str:
    """Every anchor, untrained and trained."""
    before, after = untrained(encoder), trained_runs(encoder, "base", default=encoder == MINILM)
    rows = []
    for task, runs in after.items():
        cells = (spread(own[kind]) for own in (before[task], runs) for kind in ANCHORS)
        rows.append([marked(TASKS[task], pd.concat([before[task], runs])), *cells])
    if rows:
        means = (statistics.mean(statistics.mean(runs[kind]) for runs in after.values()) for kind in ANCHORS)
        rows.append(["mean", "", "", "", *(f"{mean:.3f}" for mean in means)])
    return markdown(["", *(f"{when}, {kind}" for when in ("untrained", "trained") for kind in ANCHORS)], rows)


def paper() -> str:
    """Comparison with the paper's MiniLM row, with the untrained model in both poolings."""
    mean, cls, after = untrained(MINILM), untrained(MINILM, "cls"), trained_runs(MINILM)
    rows = []
    for task, (theirs_before, theirs_after) in PAPER.items():
        if task in mean and task in cls and task in after:
            before = [spread(own[task].verbalizer) for own in (cls, mean)]
            ours = [spread(after[task][kind]) for kind in ("verbalizer", DEFAULT_ANCHOR)]
            title = marked(TASKS[task], pd.concat([cls[task], mean[task], after[task]]))
            rows.append([title, f"{theirs_before:.2f}", *before, f"{theirs_after:.2f}", *ours])
    head = ["", "paper, untrained", "[CLS] pooling here", "mean pooling here", "paper, trained"]
    return markdown([*head, "here, verbalizer", f"here, {DEFAULT_ANCHOR}"], rows)


def beside(one: Runs, other: Runs, head: Sequence[str], more: Callable[..., tuple[list[str], list[str]]]) -> str:
    """Lay out learning rates and scores of two ways of training, one seed of each task.

    Args:
        one: runs by task.
        other: runs to compare with, by task.
        head: column titles.
        more: makes the cells before and after the rates and scores from two runs.
    """
    rows = []
    for task in (task for task in one if task in other):
        for seed in sorted({*one[task].seed} & {*other[task].seed})[:1]:
            pair = pd.concat([runs[task][runs[task].seed == seed][:1] for runs in (one, other)])
            first, last = more(*pair.to_dict("records"))
            cells = [*pair.learning_rate.map("{:.0e}".format), *pair[DEFAULT_ANCHOR].map("{:.3f}".format)]
            rows.append([marked(TASKS[task], pair), *first, *cells, *last])
    return markdown(["", *head], rows)


def search() -> str:
    """Halving against the full grid."""

    def cost(*pair: Row) -> tuple[list[str], list[str]]:
        halving, grid = (sum(trial["steps"] for trial in run["trials"]) for run in pair)
        return [], [f"{halving / grid:.2f}"]

    head = ["rate, halving", "rate, grid", "macro-F1, halving", "macro-F1, grid", "steps, halving / grid"]
    return beside(trained_runs(MINILM), trained_runs(MINILM, strategy="grid"), head, cost)


def rates() -> str:
    """The learning rate chosen by uniformity against the encoder's base rate, with equal steps."""
    head = ["chosen rate", "base rate", "macro-F1, chosen", "macro-F1, base"]
    return beside(trained_runs(MINILM), trained_runs(MINILM, "base"), head, lambda *_: ([], []))


def runs(encoder: str, rate: str = "uniformity") -> str:
    """Learning rates, steps and uniformity of the training runs."""
    rows = []
    for task, done in trained_runs(encoder, rate, default=(encoder, rate) == (MINILM, "base")).items():
        used = [", ".join(done.learning_rate.map("{:.0e}".format)), ", ".join(map(str, done.steps))]
        before, after = done.uniformity.iloc[0]
        most = str(done["training.max_steps"].iloc[0])
        rows.append([marked(TASKS[task], done), most, *used, f"{before:.2f} to {after:.2f}"])
    return markdown(["", "max_steps", "learning rate, each seed", "steps made", "uniformity, seed 0"], rows)


OF_MANY_LABELS = {
    "fit without training, encoding the descriptions = 1": ("fit", "of_encoding"),
    "an update of training, encoding the descriptions = 1": ("train", "update_of_encoding"),
    "lint with an encoder, encoding the descriptions = 1": ("lint_meaning", "of_encoding"),
    "`predict`, encoding the documents = 1": ("predict", "of_encode_speed"),
    "`predict_file`, encoding the documents = 1": ("predict_file", "of_encode_speed"),
    "`evaluate`, encoding the documents = 1": ("evaluate", "of_encode_speed"),
    "fit without training, MiB": ("fit", "peak_mib"),
    "training, MiB": ("train", "peak_mib"),
    "lint with an encoder, MiB": ("lint_meaning", "peak_mib"),
    "`load`, MiB": ("load", "peak_mib"),
    "`predict`, MiB": ("predict", "peak_mib"),
    "`predict_file`, MiB": ("predict_file", "peak_mib"),
    "`evaluate`, MiB": ("evaluate", "peak_mib"),
    "`explain`, MiB": ("explain", "peak_mib"),
    "saved model, MB": ("fit", "mb"),
}
"""Lines of the table of many labels: the job and its value. Speeds are turned into times."""


def single(name: str) -> list[Row]:
    """Return the result of a single measurement as a list, empty if it was not run."""
    row = Table(RESULTS / "single.jsonl").row("measured", name)
    return [row] if row else []


SPEED_SETS = {"agnews": "AG News", "emotion": "emotion", "imdb": "IMDB", "banking77": "Banking77"}
PEERS = (
    "sentence-transformers, float32",
    "sentence-transformers, bfloat16",
    "ONNX runtime, float32",
    "labelspace, float32",
    "model2vec, static",
)


def encoding() -> str:
    """How many times as fast as others `Encoder.encode` is, by set, and what that costs in macro-F1."""
    rows = []
    for row in single("speed_encode"):
        for name, title in SPEED_SETS.items():
            one = row["sets"][name]
            ratios = [one["ratios"].get(peer) for peer in PEERS]
            scores = one["macro_f1_predicted"]
            lost = max(abs(scores["labelspace"][anchor] - exact) for anchor, exact in scores[PEERS[0]].items())
            told = [f"{statistics.median(each):.2f}" if each else "" for each in ratios]
            rows.append([title, *told, f"{one['products_share']:.2f}", f"{lost:.4f}"])
    return markdown(["set", *PEERS, "share of the products' limit", "macro-F1, largest change"], rows)


def scale() -> str:
    """Workers: documents per second, memory, and the cost of a thousand million documents."""
    rows = []
    for row in single("scale"):
        runs = {workers: [run for run in row["runs"] if run["workers"] == workers] for workers in (1, 2)}
        first = [max(run["peak_mib"]["reads and writes"] for run in each) for each in runs.values()]
        second = max(peak for run in runs[2] for peak in run["peak_mib"]["each worker"])
        cost = row["cost"]
        rows = [
            ["documents per second, 1 worker = 1", "1", f"{row['ratio']:.2f}"],
            ["peak memory of the process that reads and writes, MiB", *(f"{peak:,.0f}" for peak in first)],
            ["peak memory of each worker, MiB", "", f"{second:,.0f}"],
            [f"10^9 documents, hours of {cost['instance']}", "", f"{cost['instance_hours']:,.0f}"],
            [f"10^9 documents, {cost['hosted']}, in dollars for one of the instance", "", f"{cost['ratio']:,.0f}"],
        ]
    return markdown(["", "1 worker", "2 workers"], rows)


def predicting() -> str:
    """How many times as fast as others a classifier labels documents."""
    rows = [
        [way, f"{row['predict']['labelspace'] / rate:.2f}"]
        for row in single("speed_encode")
        for way, rate in row["predict"].items()
        if way != "labelspace"
    ]
    return markdown(["`ZeroShotClassifier.predict`, AG News, against", "times as fast"], rows)


def speed() -> str:
    """Training step, products, memory: ratios of two measurements of one run."""
    rows = []
    for row in single("speed_step"):
        for task in (task for task in TASKS if task in row):
            what = marked(f"training step, {TASKS[task]}, against float32, padded, one batch", pd.json_normalize(row))
            rows.append([what, f"{row[task]['ratio']:.2f}", ""])
    for row in single("speed_products"):
        both = [f"{shape['bfloat16']:.0f} to {shape['float32']:.0f}" for shape in row["gflops"].values()]
        what = "matrix products of MiniLM's layers, bfloat16 against float32, GFLOP/s a core"
        rows.append([what, f"{row['ratio']:.2f}", ", ".join(both)])
    for row in single("memory"):
        sizes = " and ".join(f"{run['peak_mib']:,.0f} MiB" for run in row["runs"])
        rows.append(["peak memory of fit, 10,000 against 500 descriptions", f"{row['ratio']:.2f}", sizes])
    return markdown(["what", "ratio", "of which"], rows)


def serving() -> str:
    """The service: documents per second as a share of `predict`, and latency."""
    rows = []
    for row in single("serving"):
        share = row["share_of_predict"]
        rows.append(["`predict`, all texts at once", "1", "", ""])
        rows.append(["`predict`, 64 at a time", f"{share['predict, 64 at a time']:.2f}", "", ""])
        rows.append(["one text in the same process", "", f"{row['milliseconds_alone']:.1f}", ""])
        for clients in ("1", "8", "64"):
            took = row["milliseconds"][clients]
            who = f"the service, {clients} client{'s' * (clients != '1')}"
            rows.append([who, f"{share[clients]:.2f}", f"{took['median']:.1f}", f"{took['p95']:.0f}"])
        rows.append(["zero-shot pipeline of `transformers`, four labels", f"{share['pipeline']:.2f}", "", ""])
    return markdown(["", "documents per second, share of `predict`", "median ms", "95 % within ms"], rows)


def million() -> str:
    """A model of words on a million documents: speed on one core, memory, a kill; and beside an encoder."""
    rows, told = [], ""
    for row in single("million_words"):
        for kind, found in row["files"].items():
            memory = f"{found['peak_mib']:.0f} MiB, {found['peak_mib_of_a_tenth']:.0f} MiB"
            same = "the same" if found["same_bytes"] else "**others**"
            left = f"{found['rows_left_by_the_kill']:,} rows, {same} bytes"
            rows.append([f"`.{kind}`", f"{found['rows_per_processor_second']:,}", memory, left])
        ratios = ", ".join(f"{pair['ratio']:.0f}" for pair in row["pairs"])
        beside = f"{row['documents_beside']:,} of the rows ({ratios})"
        processor = row["provenance"]["hardware"]["processor"]
        told = f"\n\n{processor}. In the same run MiniLM took {row['ratio']:.0f} times as long to predict {beside}."
    head = ["files", "documents a second of processor time", "peak memory, and of a tenth", "kept at the kill"]
    return markdown(head, rows) + told


def beside_encoding() -> str:
    """What reading, checking and writing a file add to encoding its rows."""
    rows = []
    for row in single("million_encoder"):
        for what, name in (("seconds", "ratio"), ("seconds of the processor", "processor_ratio")):
            ratios = ", ".join(f"{pair[name]:.2f}" for pair in row["pairs"])
            rows.append([f"{row['rows']:,} rows, {what}", f"{row[name]:.2f}", ratios])
    told = ""
    for row in single("million_killed"):
        once = "each row is there once" if row["each_row_once"] else "**rows are missing or there twice**"
        same = "same answers" if row["same_answers"] else "**other answers**"
        told = (
            f"\n\n{row['rows']:,} rows in Parquet, killed after {row['rows_left_by_the_kill']:,} and resumed: {once}, "
            f"with the {same} as a file of a tenth in its {row['rows_compared']:,} rows. Peak memory "
            f"{row['peak_mib']:,.0f} MiB, of the tenth {row['peak_mib_of_a_tenth']:,.0f}."
        )
    head = ["", "speed of `predict_file`, share of that of `Encoder.encode`", "pairs of runs"]
    return markdown(head, rows) + told


def many_labels() -> str:
    """What more labels cost: time beside that of encoding, peak memory, size on disk; and how many codes are found."""
    told = "(not measured yet)"
    for row in single("many_labels"):
        sizes = sorted((size for size in row if size.isdigit()), key=int)
        rows = []
        for what, (job, value) in OF_MANY_LABELS.items():
            values = [row[size][job][value] for size in sizes]
            if "speed" in value:
                values = [1 / each for each in values]
            rows.append([what, *(f"{each:,.0f}" if value in ("peak_mib", "mb") else f"{each:.2f}" for each in values)])
        told = markdown(["", *(f"{int(size):,} labels" for size in sizes)], rows)
    for row in single("many_labels_icd"):
        right = f"the right code is first for {row['in_top_1']:.1%} and among ten for {row['in_top_10']:.1%}"
        told += f"\n\n{row['labels']:,} codes of ICD-10-CM, {row['documents']:,} held-out synonyms, untrained: {right}."
    return told


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
    "results": readme,
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
    "encoding": encoding,
    "predicting": predicting,
    "scale": scale,
    "speed": speed,
    "serving": serving,
    "million": million,
    "beside-encoding": beside_encoding,
    "many-labels": many_labels,
    "paper-rows": paper_rows,
    "harness": harness,
    "prefix": prefix,
}
