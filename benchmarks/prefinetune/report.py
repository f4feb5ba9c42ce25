"""The tables of docs/prefinetuning-study.md; see benchmarks/tables.py.

Scores are accuracy for classification and nDCG@10 for retrieval, 0 to 1 as in the paper.
"""

import itertools
import statistics
from collections import defaultdict
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any

import store
from layout import NOT_YET, filled, markdown, spread
from store import Row as Result

from prefinetune import paper
from prefinetune.encoders import UNNAMED, UNSHRUNK, WEIGHTS
from prefinetune.sets import DOMAINS, TARGETS
from prefinetune.settings import SEEDS, SIZES

BySeed = dict[int, float]
Method = tuple[str, str]
"""Starting encoder of fine-tuning, and the map of its vectors."""

# Method -> title and key of paper.csv; None: the paper has no such row.
MAIN: Mapping[Method, tuple[str, str | None]] = {
    ("base", "none"): ("FT", "ft"),
    ("pft", "none"): ("PFT", "pft"),
    ("pft", "whitening"): ("PFT, whitening", "pft-whitening"),
    ("pft", "flow"): ("PFT, flow", "pft-flow"),
    ("reze", "none"): ("REZE", "reze"),
}
BESIDE: Mapping[Method, tuple[str, str | None]] = {
    ("untuned", "none"): ("untouched", None),
    ("untuned", "whitening"): ("untouched, whitening", None),
    ("pft-untuned", "none"): ("PFT, not fine-tuned", None),
    ("reze-untuned", "none"): ("REZE, not fine-tuned", None),
}
MORE: Mapping[Method, tuple[str, str | None]] = {
    ("base", "whitening"): ("FT, whitening", None),
    ("reze", "whitening"): ("REZE, whitening", None),
    ("reze-mean", "none"): ("REZE by the mean", None),
    (UNSHRUNK, "none"): ("REZE, nothing shrunk", None),
    (f"{UNSHRUNK}-untuned", "none"): ("REZE, nothing shrunk, not fine-tuned", None),
    **{(start, "none"): (f"{method.upper()} without label names", None) for start, method in UNNAMED.items()},
}
SPACES = {"pft": "PFT", "reze": "REZE", "reze-mean": "REZE by the mean", UNSHRUNK: "REZE, nothing shrunk"}
STARTS = {"base": "as it came", "pft": "PFT", "reze": "REZE"}
DESCRIBED = STARTS | {UNSHRUNK: "REZE, nothing shrunk"}
DESCRIBED |= {start: f"{method.upper()} without label names" for start, method in UNNAMED.items()}


def results(part: str, encoder: str | None = None, **facts: Any) -> list[Result]:
    """Return the results of a part with these facts and one encoder; None: the encoder of the tables."""
    return store.results("prefinetune", part, encoder=encoder or store.ENCODER, **facts)


def by_seed(found: Iterable[Result], target: str, method: Method, size: int, what: str = "score") -> BySeed:
    """Return one score of a target by seed."""
    start, mapped = method
    return {
        run["seed"]: run["scores"][mapped][what]
        for run in found
        if (run["target"], run["start"], run["rows_wanted"]) == (target, start, size) and mapped in run["scores"]
    }


def averages(found: Sequence[Result], domain: str, method: Method, size: int) -> tuple[BySeed, int]:
    """Return the mean over a domain's targets for each seed that has all of them, and the number of targets.

    A target counts at a size if any method was run at it: CosQA has fewer than 1,000 rows.
    """
    names = [
        name
        for name, target in TARGETS.items()
        if target.domain == domain and any((run["target"], run["rows_wanted"]) == (name, size) for run in found)
    ]
    scores = [by_seed(found, name, method, size) for name in names]
    complete = [seed for seed in SEEDS if scores and all(seed in own for own in scores)]
    return {seed: statistics.fmean(own[seed] for own in scores) for seed in complete}, len(names)


def main() -> str:
    """Table 2: averages over the targets of each domain, for every encoder with results."""
    if not results("main"):
        return NOT_YET
    cells = [(domain, size) for domain in DOMAINS for size in SIZES]
    others = sorted({run["encoder"] for run in store.results("prefinetune", "main")} - {store.ENCODER})
    rows = []
    for encoder in (store.ENCODER, *others):
        found = results("main", encoder)
        for method, (title, _) in {**MAIN, **BESIDE}.items():
            means = [over_seeds(averages(found, domain, method, size)[0]) for domain, size in cells]
            rows.append([encoder, title, *means])
        counts = [averages(found, domain, ("base", "none"), size)[1] for domain, size in cells]
        rows.append([encoder, "targets averaged", *(str(count or "-") for count in counts)])
    for title, key in MAIN.values():
        figures = [theirs(paper.E5, domain, key, size) for domain, size in cells]
        rows.append([f"paper: {paper.E5}, other tasks", title, *figures])
    return markdown(["", "", *(f"{domain}, {size:,}" for domain, size in cells)], rows)


def detail() -> str:
    """Tables 5 to 7: every target, with the paper's E5 in brackets for equal tasks."""
    found = results("main")
    rows = []
    for name, target in TARGETS.items():
        for method, (title, key) in {**MAIN, **MORE, **BESIDE}.items():
            cells = []
            for size in SIZES:
                cell = over_seeds(by_seed(found, name, method, size))
                number = theirs(paper.E5, name, key, size)
                cells.append(cell if number == "-" or cell == "-" else f"{cell} ({number})")
            f1 = [over_seeds(by_seed(macro(found), name, method, size, "macro_f1")) for size in SIZES]
            rows.append([target.title, title, *cells, *f1])
    head = [f"{size:,}" for size in SIZES]
    return markdown(["", "", *head, *(f"macro-F1, {size}" for size in head)], filled(rows, 2))


def macro(found: Iterable[Result]) -> list[Result]:
    """Return the results with a macro-F1."""
    return [run for run in found if TARGETS[run["target"]].task == "classification"]


def mean_median() -> str:
    """Table 3: shrinking towards the mean or the median of the sources; the paper's numbers are with 1,000 rows."""
    found = results("main")
    rows = []
    for name, target in TARGETS.items():
        for size in SIZES:
            both = [by_seed(found, name, (start, "none"), size) for start in ("reze-mean", "reze")]
            if not all(both):
                continue
            shared = sorted(set(both[0]) & set(both[1]))
            better = f"{sum(both[1][seed] > both[0][seed] for seed in shared)} of {len(shared)}" if shared else "-"
            paper_cells = [theirs(paper.QWEN3, name, method, size) for method in ("reze-mean", "reze")]
            rows.append([target.title, f"{size:,}", *map(over_seeds, both), better, *paper_cells])
    head = ["", "rows", "mean", "median", "seeds in which the median is better"]
    return markdown([*head, "paper, Qwen3: mean", "paper, Qwen3: median"], rows)


def gains() -> str:
    """Gains: REZE, PFT and FT against each other with the same rows and seeds, and the number of positive gains."""
    found = results("main")
    rows = []
    for name, target in TARGETS.items():
        for size in SIZES:
            cells = []
            for one, start in (("reze", "base"), ("reze", "pft"), ("pft", "base"), ("reze", UNSHRUNK)):
                ours, theirs = (by_seed(found, name, (which, "none"), size) for which in (one, start))
                gaps = [ours[seed] - theirs[seed] for seed in sorted(set(ours) & set(theirs))]
                above = sum(gap > 0 for gap in gaps)
                cells.append(f"{spread(gaps, '{:+.4f}').replace('± +', '± ')}; {above} of {len(gaps)}" if gaps else "-")
            rows.append([target.title, f"{size:,}", *cells])
    head = ["", "rows", "REZE minus FT; seeds above 0", "REZE minus PFT", "PFT minus FT", "REZE minus nothing shrunk"]
    return markdown(head, filled(rows, 2))


def weights() -> dict[float, list[Result]]:
    """Return results of one seed by weight of the regularizer; weights 0 and 1 come from part main."""
    starts = {0.0: "pft", 1.0: "reze", **{weight: f"reze-weight-{weight:g}" for weight in WEIGHTS}}
    every = [run for part in ("main", "sweep") for run in results(part, seed=SEEDS[0])]
    return {weight: [run for run in every if run["start"] == start] for weight, start in sorted(starts.items())}


def fine_tuned_alone() -> list[Result]:
    """Return the reference of figure 2: results of the same seed without pre-finetuning."""
    return results("main", start="base", seed=SEEDS[0])


def weight_averages(found: Sequence[Result], size: int) -> dict[str, float | None]:
    """Return the means of one weight by domain and over the domains; None if a target is missing."""
    start = found[0]["start"] if found else ""
    means: dict[str, float | None] = {}
    for domain in DOMAINS:
        wanted = {run["target"] for run in results("main", rows_wanted=size, seed=SEEDS[0])}
        own = {run["target"] for run in found if run["rows_wanted"] == size}
        needed = {name for name in wanted if TARGETS[name].domain == domain}
        means[domain] = averages(found, domain, (start, "none"), size)[0].get(SEEDS[0]) if needed <= own else None
    there = [value for value in means.values() if value is not None]
    means["mean"] = statistics.fmean(there) if len(there) == len(DOMAINS) else None
    return means


def sweep() -> str:
    """Figure 2 in numbers."""
    rows = []
    names = {0.0: "0 (PFT)", 1.0: "1 (REZE)"}
    lines = {names.get(weight, f"{weight:g}"): found for weight, found in weights().items()}
    for name, found in {**lines, "fine-tuned alone (FT)": fine_tuned_alone()}.items():
        if not found:
            continue
        means = {size: weight_averages(found, size) for size in SIZES}
        cells = [means[size][where] for where in (*DOMAINS, "mean") for size in SIZES]
        rows.append([name, *("-" if cell is None else f"{cell:.4f}" for cell in cells)])
    return markdown(["weight", *(f"{where}, {size:,}" for where in (*DOMAINS, "mean") for size in SIZES)], rows)


def isotropy() -> str:
    """Figure 3 and further measures of the space, on held-out pairs and on target texts."""
    rows = []
    for mix in sorted({run["mix"] for run in results("encoders")}):
        runs = results("encoders", mix=mix)
        rows.append([mix, "as it came", *_space(runs, 0)])
        for method, title in SPACES.items():
            own = [run for run in runs if run["method"] == method]
            if own:
                rows.append([mix, title, *_space(own, 1)])
    head = ["", "", "IsoScore", "uniformity", "alignment", "drift", "nearest 10 kept"]
    return markdown([*head, "IsoScore of target texts", "drift of these", "nearest 10 of these kept"], rows)


def _space(runs: Sequence[Result], when: int) -> list[str]:
    def cell(values: Mapping[int, float | None], digits: int = 3) -> str:
        return over_seeds({seed: value for seed, value in values.items() if value is not None}, digits)

    side = ("before", "after")[when]
    held = {
        name: {run["seed"]: (run["result"][side] or {}).get(name) for run in runs}
        for name in ("isoscore", "uniformity", "alignment")
    }
    moved = {name: {run["seed"]: run["result"][name] for run in runs} for name in ("drift", "neighbours_kept")}
    own = {run["seed"]: run["targets"]["isoscore"][when] for run in runs}
    shift = {name: {run["seed"]: run["targets"][name] for run in runs} for name in ("drift", "neighbours_kept")}
    first = [cell(held["isoscore"], 4), cell(held["uniformity"]), cell(held["alignment"])]
    if not when:
        return [*first, "", "", cell(own, 4), "", ""]
    return [*first, *(cell(moved[name]) for name in moved), cell(own, 4), *(cell(shift[name]) for name in shift)]


def descriptions() -> str:
    """Macro-F1 by descriptions alone, from the original encoder and from pre-finetuned ones."""
    rows = []
    for name, target in TARGETS.items():
        for start, title in DESCRIBED.items():
            if runs := results("descriptions", target=name, start=start):
                ways = list(itertools.product(("untrained", "trained"), ("verbalizer", "descriptions")))
                f1 = [{run["seed"]: run[when][anchor]["macro_f1"] for run in runs} for when, anchor in ways]
                accuracy = {run["seed"]: run["trained"]["descriptions"]["accuracy"] for run in runs}
                # The base is deterministic and has one run.
                cells = [f"{own[SEEDS[0]]:.4f}" if start == "base" else over_seeds(own) for own in (*f1, accuracy)]
                rows.append([target.title, title, *cells])
    head = ["macro-F1", "encoder", "untrained, verbalizer", "untrained, mean of descriptions"]
    return markdown([*head, "trained, verbalizer", "trained, mean of descriptions", "accuracy of these"], rows)


def setup() -> str:
    """Caps, left-out sources, seeds and cost of the runs."""
    rows = []
    for mix in sorted({run["mix"] for run in results("encoders")}):
        runs = results("encoders", mix=mix)
        told = runs[0]["mix_pairs"]
        drawn = "; ".join(f"{name} {count:,} of {told['there'][name]:,}" for name, count in told["drawn"].items())
        rows.append(["pairs drawn for " + mix, drawn])
        trained_on = sum(runs[0]["result"]["pairs"].values())
        rows.append(["of them trained on, the others held aside", f"{trained_on:,} of {sum(told['drawn'].values()):,}"])
        rows.append(["left out of " + mix, ", ".join(told["left_out"])])
        dropped = "; ".join(f"{name} {count}" for name, count in told["dropped"].items())
        rows.append(["pairs with a text of a target, dropped from " + mix, dropped or "none"])
        shrunk = [run["result"] for run in runs if run.get("method") == "reze"]
        if shrunk:
            counts = (_range(one[what] for one in shrunk) for what in ("shrunk_directions", "active"))
            rows.append(["directions REZE shrank of the active ones, " + mix, " of ".join(counts)])
    for run in results("maps"):
        rows.append(["variance that figure 4 shows, " + run["domain"], f"{run['variance_shown']:.0%}"])
    parts = ("encoders", "main", "sweep", "maps", "descriptions")
    every = {part: results(part) for part in parts}
    for protocol in _different(run["protocol"] for runs in every.values() for run in runs):
        rows.append(["protocol", ", ".join(f"{name}: {_word(value)}" for name, value in protocol.items())])
    used: dict[str, set[int]] = defaultdict(set)
    for run in every["main"]:
        used[run["target"]].add(run["rows"])
    for name, counts in used.items():
        scored = {run["test_rows"] for run in every["main"] if run["target"] == name}
        words = ", ".join(f"{count:,}" for count in sorted(counts))
        rows.append([TARGETS[name].title, f"fine-tuned on {words} rows; {max(scored):,} scored"])
    failed = [(run, name) for part in ("main", "sweep") for run in every[part] for name in run.get("failed", {})]
    for run, name in failed:
        rows.append([f"{name} could not be fitted", f"{_which(run)}: {run['failed'][name]}"])
    measured = {run["sha256"] for run in every["encoders"]}
    others = [
        f"{part}: {_which(run)}"
        for part, runs in every.items()
        for run in runs
        if run.get("start_sha256") not in {None, *measured}
    ]
    if others:
        rows.append(["start from an encoder that is none of those measured here", "; ".join(others)])
    for part, runs in every.items():
        if runs:
            seeds = ", ".join(str(seed) for seed in sorted({run["seed"] for run in runs}))
            hours = sum(run["seconds"] for run in runs) / 3600
            each = f"{statistics.median(run['seconds'] for run in runs) / 60:.1f} minutes each"
            rows.append([part, f"{len(runs)} runs, seeds {seeds}, {hours:.1f} hours; {each} in the median"])
    return markdown([store.ENCODER, ""], rows, side="---|")


def targets() -> str:
    """Reference scores of guessing, and the share of documents common to both halves of a search."""
    rows = []
    found = {run["target"]: run for run in results("targets")}
    for name in (name for name in TARGETS if name in found):
        run = found[name]
        chance = [run.get("commonest"), run.get("guessed_macro_f1")]
        cells = ["-" if value is None else f"{value:.3f}" for value in chance]
        shared = run.get("rows_with_a_test_answer")
        shared = "-" if shared is None else f"{shared:,} of {run['rows']:,}"
        rows.append([TARGETS[name].title, f"{run['rows']:,}", f"{run['test_rows']:,}", *cells, shared])
    head = ["", "rows there", "scored", "accuracy of the commonest label", "macro-F1 of guessing"]
    return markdown([*head, "training pairs whose document answers a test query"], rows)


def _range(values: Iterable[int]) -> str:
    there = sorted(values)
    return f"{there[0]}" if there[0] == there[-1] else f"{there[0]} to {there[-1]}"


def _which(run: Result) -> str:
    rows = f", {run['rows']} rows" if "rows" in run else ""
    return f"{TARGETS[run['target']].title}, {run['start']}{rows}, seed {run['seed']}"


def _different(protocols: Iterable[dict[str, Any]]) -> list[dict[str, Any]]:
    return list({str(sorted(protocol.items(), key=str)): protocol for protocol in protocols}.values())


def _word(value: Any) -> str:
    return "all" if value is None else str(value)


def theirs(encoder: str, name: str, method: str | None, size: int) -> str:
    """Format a number of the paper, or a dash."""
    value = None if method is None else paper.figure(encoder, name, method, size)
    return "-" if value is None else f"{value:.4f}"


def over_seeds(values: Mapping[int, float], digits: int = 4) -> str:
    """Format mean and standard deviation over seeds, and the number of seeds if some are missing."""
    cell = spread(list(values.values()), f"{{:.{digits}f}}")
    return f"{cell} (n = {len(values)})" if 0 < len(values) < len(SEEDS) else cell


BLOCKS: dict[str, Callable[[], str]] = {
    "prefinetune-main": main,
    "prefinetune-detail": detail,
    "prefinetune-gains": gains,
    "prefinetune-mean-median": mean_median,
    "prefinetune-sweep": sweep,
    "prefinetune-isotropy": isotropy,
    "prefinetune-descriptions": descriptions,
    "prefinetune-setup": setup,
    "prefinetune-targets": targets,
}
