"""The tables of docs/prefinetuning-study.md; see benchmarks/tables.py.

Scores are accuracy for classification and nDCG@10 for retrieval, 0 to 1 as in the paper.
"""

import itertools
import statistics
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any

import pandas as pd
import store
from layout import NOT_YET, crossed, markdown, products, signed, spread, table, titled

from prefinetune import paper
from prefinetune.encoders import UNNAMED, UNSHRUNK, WEIGHTS
from prefinetune.experiments import UNTUNED
from prefinetune.printed import PRINTED
from prefinetune.quarter import DOMAIN as QUARTERED_DOMAIN
from prefinetune.quarter import QUARTERED
from prefinetune.sets import DOMAINS, TARGETS
from prefinetune.settings import SEEDS, SIZES

Method = tuple[str, str]
"""Starting encoder of fine-tuning, and the map of its vectors."""

PRINTED_TITLES = dict(zip(PRINTED, ("REZE, eq. 6 as printed", "REZE, eq. 6 as printed, clipped"), strict=True))
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
    **{(start, "none"): (title, None) for start, title in PRINTED_TITLES.items()},
}
ALL = {**MAIN, **MORE, **BESIDE}
SIZE_TITLES = {size: f"{size:,}" for size in SIZES}
SPACES = {
    "pft": "PFT",
    "reze": "REZE",
    "reze-mean": "REZE by the mean",
    UNSHRUNK: "REZE, nothing shrunk",
} | PRINTED_TITLES
STARTS = {"base": "as it came", "pft": "PFT", "reze": "REZE"}
DESCRIBED = STARTS | {UNSHRUNK: "REZE, nothing shrunk"}
QUARTERED_TITLES = {start: title for start, title in (STARTS | PRINTED_TITLES).items() if start in ("base", *QUARTERED)}
DESCRIBED |= {start: f"{method.upper()} without label names" for start, method in UNNAMED.items()} | PRINTED_TITLES


def runs_of(part: str, *columns: str) -> pd.DataFrame:
    """Return the runs of a part with the encoder of the tables."""
    return store.frame("prefinetune", part, *columns, encoder=store.ENCODER)


def scored(part: str, **facts: Any) -> pd.DataFrame:
    """Return `score` and `macro_f1` of each run of a part with these facts and each map of its vectors (`mapped`)."""
    runs = store.frame("prefinetune", part, "encoder", "target", "start", "rows_wanted", "seed", "scores", **facts)
    rows = [
        {**run, "mapped": mapped, **own, "domain": TARGETS[run["target"]].domain}
        for run in runs.to_dict("records")
        for mapped, own in run["scores"].items()
    ]
    columns = ["encoder", "domain", "target", "start", "mapped", "rows_wanted", "seed", "score", "macro_f1"]
    return pd.DataFrame(rows, columns=columns).rename(columns={"rows_wanted": "rows"})


def averages(scores: pd.DataFrame) -> pd.DataFrame:
    """Return the mean over a domain's targets for each method and seed that has all of them.

    A target counts at a number of rows if any method was run at it: CosQA has fewer than 1,000 rows.
    """
    cell = ["encoder", "domain", "rows"]
    run = [*cell, "start", "mapped", "seed"]
    complete = scores.groupby(run).target.transform("nunique") == scores.groupby(cell).target.transform("nunique")
    return scores[complete].groupby(run).score.agg(statistics.fmean).reset_index()


def main() -> str:
    """Table 2: averages over the targets of each domain, for every encoder with results."""
    scores = scored("main")
    if store.ENCODER not in set(scores.encoder):
        return NOT_YET
    index, columns = ["encoder", "start", "mapped"], ["domain", "rows"]
    means = crossed(averages(scores), index, columns, lambda own, *_: over_seeds(own.score))
    targets = scores.assign(start="targets averaged", mapped="none")
    counts = crossed(targets, index, columns, lambda own, *_: str(own.target.nunique()))
    methods = {method: title for method, (title, _) in {**MAIN, **BESIDE}.items()}
    methods["targets averaged", "none"] = "targets averaged"
    encoders = [store.ENCODER, *sorted(set(scores.encoder) - {store.ENCODER})]
    rows = {(encoder, *method): (encoder, methods[method]) for encoder, method in itertools.product(encoders, methods)}
    heads = {(domain, size): f"{domain}, {size:,}" for domain in DOMAINS for size in SIZES}
    ours = titled(pd.concat([means, counts]), rows, heads).fillna("-")
    beside = {
        (f"paper: {paper.E5}, other tasks", title): [theirs(paper.E5, domain, key, size) for domain, size in heads]
        for title, key in MAIN.values()
    }
    return table(pd.concat([ours, pd.DataFrame(beside, index=ours.columns).T]), "", "")


def detail() -> str:
    """Tables 5 to 7: every target, with the paper's E5 in brackets for equal tasks."""
    scores = scored("main", encoder=store.ENCODER)
    index = ["target", "start", "mapped"]

    def cell(own: pd.DataFrame, target: str, start: str, mapped: str, size: int) -> str:
        number = theirs(paper.E5, target, ALL[start, mapped][1], size) if (start, mapped) in ALL else "-"
        return over_seeds(own.score) + (f" ({number})" if number != "-" else "")

    cells = crossed(scores, index, ["rows"], cell)
    f1 = crossed(scores.dropna(subset="macro_f1"), index, ["rows"], lambda own, *_: over_seeds(own.macro_f1))
    columns = SIZE_TITLES | {f"macro-F1, {title}": f"macro-F1, {title}" for title in SIZE_TITLES.values()}
    rows = {
        (name, *method): (target.title, title) for name, target in TARGETS.items() for method, (title, _) in ALL.items()
    }
    cells = cells.join(f1.rename(columns=lambda size: f"macro-F1, {size:,}"))
    return table(titled(cells, rows, columns), "", "")


def by_start() -> pd.DataFrame:
    """Return the score of every start of fine-tuning, a row for each target, number of rows and seed."""
    scores = scored("main", encoder=store.ENCODER)
    plain = scores[scores.mapped == "none"].pivot(index=["target", "rows", "seed"], columns="start", values="score")
    return plain.reindex(columns=["base", "pft", "reze", "reze-mean", UNSHRUNK, *PRINTED])


PLACES = products({name: target.title for name, target in TARGETS.items()}, SIZE_TITLES)
"""The target and number of rows of a table's row, with their titles."""


def mean_median() -> str:
    """Table 3: shrinking towards the mean or the median of the sources; the paper's numbers are with 1,000 rows."""
    scores, rows = dict(list(by_start()[["reze-mean", "reze"]].groupby(["target", "rows"]))), []
    for (name, size), titles in PLACES.items():
        own = scores.get((name, size), pd.DataFrame(columns=["reze-mean", "reze"]))
        both, shared = [own[start].dropna() for start in own], own.dropna()
        if any(one.empty for one in both):
            continue
        better = f"{sum(shared['reze'] > shared['reze-mean'])} of {len(shared)}" if len(shared) else "-"
        paper_cells = [theirs(paper.QWEN3, name, method, size) for method in own]
        rows.append([*titles, *map(over_seeds, both), better, *paper_cells])
    head = ["", "rows", "mean", "median", "seeds in which the median is better"]
    return markdown([*head, "paper, Qwen3: mean", "paper, Qwen3: median"], rows)


def gains() -> str:
    """Gains: REZE, PFT and FT against each other with the same rows and seeds, and the number of positive gains."""
    scores = by_start()
    gaps = pd.DataFrame(
        {
            "REZE minus FT; seeds above 0": scores["reze"] - scores["base"],
            "REZE minus PFT": scores["reze"] - scores["pft"],
            "PFT minus FT": scores["pft"] - scores["base"],
            "REZE minus nothing shrunk": scores["reze"] - scores[UNSHRUNK],
            "as printed minus REZE": scores["reze-printed"] - scores["reze"],
            "as printed, clipped, minus REZE": scores["reze-printed-clipped"] - scores["reze"],
        }
    ).dropna(axis=1, how="all")

    def cell(own: pd.DataFrame, *_: Any) -> str:
        return f"{signed(own.gap, '{:+.4f}')}; {sum(own.gap > 0)} of {len(own)}"

    long = gaps.reset_index().melt(["target", "rows", "seed"], var_name="what", value_name="gap").dropna()
    cells = crossed(long, ["target", "rows"], ["what"], cell)
    means = gaps.groupby(["target", "rows"]).mean().mean().map("{:+.4f}".format)
    cells.loc[("mean", 0), :] = means
    titles = {**PLACES, ("mean", 0): ("mean of these", "")}
    return table(titled(cells, titles, dict(zip(gaps, gaps, strict=True))), "", "rows")


WEIGHTED = {"pft": 0.0, **{f"reze-weight-{weight:g}": weight for weight in WEIGHTS}, "reze": 1.0}
"""Start of fine-tuning -> its weight of the regularizer; part main has 0 and 1, part sweep the others."""


def weight_averages() -> pd.DataFrame:
    """Return the means of figure 2, of one seed, by start of fine-tuning, and by domain and number of rows.

    The domain "mean" is over the domains; a mean that lacks a target is left out. The start "base" is the reference.
    """
    scores = pd.concat([scored(part, encoder=store.ENCODER, seed=SEEDS[0]) for part in ("main", "sweep")])
    means = averages(scores[scores.mapped == "none"]).pivot(index="start", columns=["domain", "rows"], values="score")
    starts = (*sorted(WEIGHTED, key=lambda start: WEIGHTED[start]), "base")
    means = means.reindex(
        index=[start for start in starts if start in set(scores.start)],
        columns=pd.MultiIndex.from_product([DOMAINS, SIZES]),
    )
    for size in SIZES:
        means["mean", size] = means[[(domain, size) for domain in DOMAINS]].mean(axis=1, skipna=False)
    return means


def sweep() -> str:
    """Figure 2 in numbers."""
    names = {start: f"{weight:g}" for start, weight in WEIGHTED.items()}
    names |= {"pft": "0 (PFT)", "reze": "1 (REZE)", "base": "fine-tuned alone (FT)"}
    means = weight_averages()
    cells = means.map("{:.4f}".format, na_action="ignore").astype(object).fillna("-").rename(names)
    return table(cells.set_axis([f"{where}, {size:,}" for where, size in means], axis=1), "weight")


def isotropy() -> str:
    """Figure 3 and further measures of the space, on held-out pairs and on target texts."""
    held = [f"result.{side}.{name}" for side in ("before", "after") for name in ("isoscore", "uniformity", "alignment")]
    moved = [f"{what}.{name}" for what in ("result", "targets") for name in ("drift", "neighbours_kept")]
    rows = []
    for mix, runs in runs_of("encoders", "mix", "method", "seed", *held, *moved, "targets.isoscore").groupby("mix"):
        rows.append([mix, "as it came", *_space(runs.drop_duplicates("seed"), held[:3], 0)])
        for method, title in SPACES.items():
            own = runs[runs.method == method]
            if len(own):
                rows.append([mix, title, *_space(own, held[3:], 1)])
    head = ["", "", "IsoScore", "uniformity", "alignment", "drift", "nearest 10 kept"]
    return markdown([*head, "IsoScore of target texts", "drift of these", "nearest 10 of these kept"], rows)


def _space(runs: pd.DataFrame, held: Sequence[str], when: int) -> list[str]:
    def cell(values: pd.Series, digits: int = 3) -> str:
        return over_seeds(values.dropna(), digits)

    def moved(what: str) -> list[str]:
        return [cell(runs[f"{what}.{name}"]) if when else "" for name in ("drift", "neighbours_kept")]

    spaces = [cell(runs[name], digits) for name, digits in zip(held, (4, 3, 3), strict=True)]
    return [*spaces, *moved("result"), cell(runs["targets.isoscore"].str[when], 4), *moved("targets")]


def descriptions() -> str:
    """Macro-F1 by descriptions alone, from the original encoder and from pre-finetuned ones."""
    columns = {
        "untrained.verbalizer.macro_f1": "untrained, verbalizer",
        "untrained.descriptions.macro_f1": "untrained, mean of descriptions",
        "trained.verbalizer.macro_f1": "trained, verbalizer",
        "trained.descriptions.macro_f1": "trained, mean of descriptions",
        "trained.descriptions.accuracy": "accuracy of these",
    }
    runs = runs_of("descriptions", "target", "start", *columns).melt(["target", "start"], var_name="way")

    def cell(own: pd.DataFrame, _target: str, start: str, _way: str) -> str:
        # The base is deterministic and has one run.
        return f"{own.value.iloc[0]:.4f}" if start == "base" else over_seeds(own.value)

    rows = products({name: target.title for name, target in TARGETS.items()}, DESCRIBED)
    return table(titled(crossed(runs, ["target", "start"], ["way"], cell), rows, columns), "macro-F1", "encoder")


def quarter() -> str:
    """One finance mix of fewer pairs, once with every encoder: scores with the fewest rows, and the space."""
    score, described = "scores.none.score", "trained.descriptions.macro_f1"
    space = {"pairs": "pairs", "targets.drift": "drift of target texts", "targets.neighbours_kept": "nearest 10 kept"}
    columns = ("encoder", "target", "start", "method", score, described, "result", *space)
    runs = store.frame("prefinetune", "quarter", *columns)
    runs["pairs"] = runs.result.map(lambda result: sum(result["pairs"].values()), na_action="ignore")
    start = runs.start.fillna(runs.method).astype(str)  # without a run it is a column of numbers
    frozen = start.str.endswith(UNTUNED)
    # A start that is not fine-tuned shares its row with the same start, fine-tuned.
    runs["start"] = start.str.removesuffix(f"-{UNTUNED}").replace(UNTUNED, "base")
    runs["frozen"], runs[score] = runs[score].where(frozen), runs[score].mask(frozen)
    index, ways = ["encoder", "start", "target"], ["frozen", score, described, *space]
    long = runs.fillna({"target": ""}).melt(index, ways, var_name="way").dropna(subset="value")
    cells = crossed(long, ["encoder", "start"], ["way", "target"], lambda own, *_: _figure(own.value.item()))
    titles = {"frozen": "not fine-tuned", score: f"{min(SIZES)} rows", described: "descriptions, macro-F1"}
    own = {name: target.title for name, target in TARGETS.items() if target.domain == QUARTERED_DOMAIN}
    heads = {key: ", ".join(title) for key, title in products(titles, own).items() if key in cells}
    heads |= {(way, ""): title for way, title in space.items()}
    encoders = {name: name for name in sorted(set(runs.encoder))}
    return table(titled(cells, products(encoders, QUARTERED_TITLES), heads), "", "encoder")


def _figure(value: float) -> str:
    return f"{value:,.0f}" if value > 1 else f"{value:.3f}"


def setup() -> str:
    """Caps, left-out sources, seeds and cost of the runs."""
    rows = []
    columns = ("mix", "mix_pairs", "method", "result", "sha256", "target", "start", "start_sha256", "rows", "test_rows")
    columns += ("failed", "protocol", "seed", "seconds")
    parts = ("encoders", "main", "sweep", "maps", "descriptions")
    every = pd.concat([runs_of(part, *columns).assign(part=part) for part in parts])
    encoders, main = every[every.part == "encoders"], every[every.part == "main"]
    for mix, runs in encoders.groupby("mix"):
        told = runs.mix_pairs.iloc[0]
        drawn = "; ".join(f"{name} {count:,} of {told['there'][name]:,}" for name, count in told["drawn"].items())
        rows.append([f"pairs drawn for {mix}", drawn])
        trained_on = sum(runs.result.iloc[0]["pairs"].values())
        rows.append(["of them trained on, the others held aside", f"{trained_on:,} of {sum(told['drawn'].values()):,}"])
        rows.append([f"left out of {mix}", ", ".join(told["left_out"])])
        dropped = "; ".join(f"{name} {count}" for name, count in told["dropped"].items())
        rows.append([f"pairs with a text of a target, dropped from {mix}", dropped or "none"])
        shrunk = runs.result[runs.method == "reze"]
        if len(shrunk):
            counts = (_range(one[what] for one in shrunk) for what in ("shrunk_directions", "active"))
            rows.append([f"directions REZE shrank of the active ones, {mix}", " of ".join(counts)])
    for domain, shown in runs_of("maps", "domain", "variance_shown").itertuples(index=False):
        rows.append([f"variance that figure 4 shows, {domain}", f"{shown:.0%}"])
    for protocol in _different(every.protocol):
        rows.append(["protocol", ", ".join(f"{name}: {_word(value)}" for name, value in protocol.items())])
    for name, runs in main.groupby("target", sort=False):
        words = ", ".join(f"{count:,.0f}" for count in sorted(runs.rows.unique()))
        rows.append([TARGETS[name].title, f"fine-tuned on {words} rows; {runs.test_rows.max():,.0f} scored"])
    for run in every[every.failed.notna()].itertuples():
        rows += [[f"{name} could not be fitted", f"{_which(run)}: {why}"] for name, why in run.failed.items()]
    others = every[every.start_sha256.notna() & ~every.start_sha256.isin(encoders.sha256)]
    if len(others):
        words = "; ".join(f"{run.part}: {_which(run)}" for run in others.itertuples())
        rows.append(["start from an encoder that is none of those measured here", words])
    for part, runs in every.groupby("part", sort=False):
        seeds = ", ".join(f"{seed:.0f}" for seed in sorted(runs.seed.unique()))
        each = f"{runs.seconds.median() / 60:.1f} minutes each"
        hours = f"{runs.seconds.sum() / 3600:.1f} hours"
        rows.append([part, f"{len(runs)} runs, seeds {seeds}, {hours}; {each} in the median"])
    return markdown([store.ENCODER, ""], rows, side="---|")


def targets() -> str:
    """Reference scores of guessing, and the share of documents common to both halves of a search."""
    columns = ("rows", "test_rows", "commonest", "guessed_macro_f1", "rows_with_a_test_answer")
    found = runs_of("targets", "target", *columns).set_index("target")
    rows = []
    for name in (name for name in TARGETS if name in found.index):
        count, test, *chance, shared = found.loc[name]
        cells = ["-" if pd.isna(value) else f"{value:.3f}" for value in chance]
        shared = "-" if pd.isna(shared) else f"{shared:,.0f} of {count:,.0f}"
        rows.append([TARGETS[name].title, f"{count:,.0f}", f"{test:,.0f}", *cells, shared])
    head = ["", "rows there", "scored", "accuracy of the commonest label", "macro-F1 of guessing"]
    return markdown([*head, "training pairs whose document answers a test query"], rows)


def _range(values: Iterable[int]) -> str:
    there = sorted(values)
    return f"{there[0]}" if there[0] == there[-1] else f"{there[0]} to {there[-1]}"


def _which(run: Any) -> str:
    rows = "" if pd.isna(run.rows) else f", {run.rows:.0f} rows"
    return f"{TARGETS[run.target].title}, {run.start}{rows}, seed {run.seed:.0f}"


def _different(protocols: Iterable[dict[str, Any]]) -> list[dict[str, Any]]:
    return list({str(sorted(protocol.items(), key=str)): protocol for protocol in protocols}.values())


def _word(value: Any) -> str:
    return "all" if value is None else str(value)


def theirs(encoder: str, name: str, method: str | None, size: int) -> str:
    """Format a number of the paper, or a dash."""
    value = None if method is None else paper.figure(encoder, name, method, size)
    return "-" if value is None else f"{value:.4f}"


def over_seeds(values: Sequence[float], digits: int = 4) -> str:
    """Format mean and standard deviation over seeds, and the number of seeds if some are missing."""
    cell = spread(values, f"{{:.{digits}f}}")
    return f"{cell} (n = {len(values)})" if 0 < len(values) < len(SEEDS) else cell


BLOCKS: dict[str, Callable[[], str]] = {
    "prefinetune-main": main,
    "prefinetune-detail": detail,
    "prefinetune-gains": gains,
    "prefinetune-mean-median": mean_median,
    "prefinetune-sweep": sweep,
    "prefinetune-isotropy": isotropy,
    "prefinetune-descriptions": descriptions,
    "prefinetune-quarter": quarter,
    "prefinetune-setup": setup,
    "prefinetune-targets": targets,
}
