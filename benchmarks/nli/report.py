"""The tables of a section of docs/btzsc.md; see benchmarks/tables.py."""

import statistics
from collections.abc import Callable, Mapping, Sequence

import pandas as pd
import store
from btzsc_rows import noted, with_mark
from layout import NOT_YET, crossed, products, signed, spread, table, titled

from labelspace.bench.cards import BTZSC, FAMILIES
from labelspace.bench.published import published_scores
from labelspace.config import NLI_VARIANTS
from labelspace.training.nli.data import DEV_SOURCES
from nli.heads import ANLI, SEEN
from nli.sets import SETS

F1 = "log_odds.macro_f1_predicted"
BARE = "logit.macro_f1_predicted"
RATES = {"paper": "2e-5 and 1e-4", "higher": "1e-4 and 5e-4"}
"""Titles of the learning rates of backbone and head."""

VARIANTS = dict(zip(NLI_VARIANTS, ("binary", "three-way"), strict=True))
LESS = "binary minus three-way"
COLUMNS = {**VARIANTS, "bare": "three-way, bare logit", LESS: LESS}
FORMS = {"best_step": "{:,.0f}", "steps": "{:,.0f}", "train_loss": "{:.3f}"}
TRIPLET = "-triplet"
"""End of the name of a published model with a three-way head; its binary twin has the name without it."""


def runs_of(part: str, *columns: str) -> pd.DataFrame:
    """Return the runs of a part with the encoder of the tables."""
    return store.frame("nli", part, "rates", "variant", "seed", *columns, encoder=store.ENCODER)


def gains(runs: pd.DataFrame, score: str, *along: str) -> pd.DataFrame:
    """Return the column `gain`, binary minus three-way, for each seed that has both, beside rates, seed and `along`."""
    wide = runs.pivot(index=["rates", *along, "seed"], columns="variant", values=score)
    wide = wide.reindex(columns=NLI_VARIANTS).astype(float)
    return (wide.binary - wide.triplet).dropna().rename("gain").reset_index()


def difference() -> str:
    """Binary minus three-way: mean and deviation over seeds, beside the published pairs of models."""
    runs = runs_of("btzsc", "task", F1)
    whole = complete(runs)
    if not len(whole):
        return NOT_YET
    names = [name for name in SETS if name in set(whole.task)]
    less = gains(means(whole), F1, "task")
    cells = crossed(less, ["rates"], ["task"], lambda own, *_: signed(own.gain.tolist()))
    sides = gains(runs[runs.task.isin(names)], F1, "task").groupby(["rates", "task"]).gain.agg(["min", "max"])
    for title, ahead in (("binary", sides["min"] > 0), ("three-way", sides["max"] < 0)):
        cells[f"{title} ahead"] = ahead.groupby("rates").sum().map(str)
    dev = runs_of("heads", *_columns(SEEN, "auroc"))
    dev = gains(dev.assign(auroc=dev[_columns(SEEN, "auroc")].mean(axis=1)), "auroc")
    cells["auroc"] = dev.groupby("rates").gain.agg(list).map(signed)
    cells["seeds"] = less.groupby("rates").seed.nunique().map(str)
    cells.loc["published"] = pd.Series(_published(names))
    columns = {"seeds": "seeds", "auroc": "NLI AUROC", **{name: name for name in FAMILIES if name in cells}}
    columns |= {"all": f"mean of {len(names)}"}
    columns |= {f"{title} ahead": f"sets with {title} ahead in every seed" for title in VARIANTS.values()}
    return table(titled(cells, RATES | {"published": "published, three backbones"}, columns), "learning rates")


def complete(runs: pd.DataFrame) -> pd.DataFrame:
    """Return the runs on sets with both variants, of rates and seeds with the most such sets: all on the same sets."""
    both = runs[runs.groupby(["rates", "seed", "task"]).variant.transform("count") == len(VARIANTS)]
    counts = both.groupby(["rates", "seed"]).task.transform("nunique")
    return both[counts == counts.max()]


def means(runs: pd.DataFrame) -> pd.DataFrame:
    """Return means over the sets of each family, and over all sets, as further tasks."""
    families = runs.task.map(lambda name: BTZSC[name].family)
    every = pd.concat([runs.assign(task=families), runs.assign(task="all")])
    return every.groupby(["rates", "variant", "seed", "task"]).mean().reset_index()


def _published(names: Sequence[str]) -> dict[str, str]:
    """Return the differences between published models with both heads, on the sets of the same names."""
    scores = published_scores()
    pairs = [(scores[name.removesuffix(TRIPLET)], own) for name, own in scores.items() if name.endswith(TRIPLET)]
    groups = {"all": list(names)}
    for name in names:
        groups.setdefault(BTZSC[name].family, []).append(name)
    return {
        group: signed([statistics.fmean(one[name] - other[name] for name in own) for one, other in pairs])
        for group, own in groups.items()
    }


def heads() -> str:
    """Trainings, and scores on dev pairs as means over sources; below each pair of variants their difference."""
    scores = {"accuracy": (SEEN, "accuracy"), "macro-F1": (SEEN, "macro_f1"), "AUROC": (SEEN, "auroc")}
    scores["AUROC, ANLI"] = (ANLI, "auroc")
    facts = {"best_step": "best update", "steps": "updates made", "train_loss": "last training loss"}
    runs = runs_of("heads", *_columns(DEV_SOURCES, "accuracy", "macro_f1", "auroc"), *facts, "stop_reason")
    if not len(runs):
        return NOT_YET
    for title, (sources, metric) in scores.items():
        runs[title] = runs[_columns(sources, metric)].mean(axis=1)

    def row(own: pd.DataFrame) -> dict[str, str]:
        cells = {title: spread(own[title].tolist()) for title in scores}
        cells |= {title: spread(own[name].tolist(), FORMS[name]) for name, title in facts.items()}
        return cells | {"stopped early": f"{(own.stop_reason == 'patience').sum()} of {len(own)}"}

    cells = pd.DataFrame({key: row(own) for key, own in runs.groupby(["rates", "variant"])}).T
    for title in scores:
        for rates, own in gains(runs, title).groupby("rates"):
            cells.loc[(rates, LESS), title] = signed(own.gain.tolist())
    columns = {title: title for title in (*scores, *facts.values(), "stopped early")}
    return table(titled(cells, products(RATES, VARIANTS | {LESS: LESS}), columns), "learning rates", "head")


def sources() -> str:
    """AUROC of entailment on each source of dev pairs."""
    runs = runs_of("heads", *_columns(DEV_SOURCES, "auroc", "pairs"))
    if not len(runs):
        return NOT_YET
    titles, each = {}, []
    for name in DEV_SOURCES:
        auroc, pairs = _columns((name,), "auroc", "pairs")
        titles[name] = f"{name}, {runs[pairs].iloc[0]:,} pairs"
        each.append(runs[["rates", "variant", "seed"]].assign(source=name, auroc=runs[auroc]))
    every = pd.concat(each)
    return table(_by_variant(every, "source", every, "auroc", titles), "AUROC")


def by_set() -> str:
    """Macro-F1 on each set; means are over seeds that have every set."""
    runs = runs_of("btzsc", "task", F1, BARE)
    if not len(runs):
        return NOT_YET
    every = pd.concat([runs, means(complete(runs))])
    there = set(every.task)
    titles = {name: with_mark(name) for name in BTZSC if name in there}
    titles |= {name: f"mean of {name}" for name in FAMILIES if name in there}
    titles |= {"all": "mean of all"} if "all" in there else {}
    bare = every[every.variant == "triplet"].assign(variant="bare", **{F1: lambda own: own[BARE]})
    return noted(table(_by_variant(pd.concat([every, bare]), "task", every, F1, titles), "macro-F1"))


def _by_variant(
    runs: pd.DataFrame, row: str, compared: pd.DataFrame, score: str, titles: Mapping[str, str]
) -> pd.DataFrame:
    """Make columns of each variant and of their difference, for each of the rates."""
    cells = crossed(runs, [row], ["rates", "variant"], lambda own, *_: spread(own[score].tolist()))
    for (name, rates), own in gains(compared, score, row).groupby([row, "rates"]):
        cells.loc[name, (rates, LESS)] = signed(own.gain.tolist())
    heads = {key: ": ".join(words) for key, words in products(RATES, COLUMNS).items() if key in cells}
    return titled(cells, titles, heads)


def _columns(sources: Sequence[str], *metrics: str) -> list[str]:
    return [f"sources.{source}.{metric}" for source in sources for metric in metrics]


BLOCKS: Mapping[str, Callable[[], str]] = {
    "nli-difference": difference,
    "nli-heads": heads,
    "nli-sources": sources,
    "nli-sets": by_set,
}
