"""The tables of docs/lacon.md; see benchmarks/tables.py.

Scores are in percent, as in the paper. The paper's numbers, BERT-base trained on its own samples, are in brackets.
"""

import json
import statistics
from collections.abc import Callable, Mapping
from itertools import product

import pandas as pd
import store
from commits import marked
from layout import NOT_YET, crossed, markdown, percent, table, titled

from lacon import aims, paper
from lacon.experiments import BOTH, CLASS_METHODS, DEGREES, PER_CLASS
from lacon.methods import BASELINES, METHODS, OURS
from lacon.runs import by_method, figure, holm, paired_p, runs_of, scored, titles_of
from lacon.sets import FEW, MAIN, SETS
from lacon.tuned import CHOSEN_SETS, COMPARED

CHANGES = {
    "vanilla": "LaCon-vanilla",
    "one-head": "one head in L'_ICL",
    "no-instance": "without L'_ICL",
    "no-label": "without L_LCL",
    "no-regularizer": "without L_LER",
    "no-projection": "without g",
    "ce": "CE",
    "ce-projection": "CE with g",
}
OPTIONS = {"temperature": "temperature", "heads": "heads", "regularizer_weight": "weight of L_LER"}
"""Options of figure 5."""

ADDED = {
    "instance-one-head": "L_ICL",
    "instance": "L'_ICL",
    "label": "L_LCL",
    "no-regularizer": "L'_ICL + L_LCL",
    "no-label": "L'_ICL + L_LER",
    "vanilla": "LaCon-vanilla",
}
DEGREE_TITLES = {degree: str(degree) for degree in DEGREES}
PAIRED = "CE to LaCon (gain)"


def main() -> str:
    """Tables 2 and 7: every method on every set, and p of ours against CE over the repeats."""
    runs = scored("main", "method", "majority")

    def cell(own: pd.DataFrame, method: str, name: str) -> str:
        theirs = paper.TABLE_2[method] | paper.TABLE_7.get(method, {})
        return percent(own.score, figure(theirs.get(name)))

    cells = crossed(runs, ["method"], ["set"], cell)
    cells.loc["larger"] = runs.groupby("set").majority.agg(lambda own: percent(own[:1]) if own.nunique() == 1 else "-")
    titles = {method: METHODS[method].title for method in METHODS} | {"larger": "the larger class, for all rows"}
    for method in OURS:
        cells.loc[f"p {method}"] = _p(by_method(runs), method)
        titles[f"p {method}"] = f"p of {METHODS[method].title} against CE"
    groups = dict(list(runs.groupby("set")))
    columns = {name: marked(SETS[name].title, groups[name]) for name in MAIN if name in groups}
    return table(titled(cells, titles, columns), "")


def tests() -> str:
    """Ours against every baseline, tested over the data sets with one mean each."""
    runs = scored("main", "method")
    english = runs[runs["set"].isin([name for name, source in SETS.items() if source.english])]
    means = crossed(english, ["set"], ["method"], lambda own, *_: statistics.fmean(own.score))
    means = means.reindex(columns=list(METHODS))

    gains = {pair: 100 * (means[pair[0]] - means[pair[1]]).dropna() for pair in product(OURS, BASELINES)}
    found = {pair: value for pair, own in gains.items() if (value := paired_p(own)) is not None}
    corrected = dict(zip(found, holm(list(found.values())), strict=True))

    def cell(*pair: str) -> str | None:
        if pair not in found:
            return None
        own = gains[pair]
        # Equal means may part in a stored score's last digit.
        better = f"better on {sum(own > 1e-4)} of {len(own)}"
        return f"{statistics.fmean(own):+.1f}, {better}, p {found[pair]:.2g} ({corrected[pair]:.2g})"

    cells = pd.DataFrame({method: {baseline: cell(method, baseline) for baseline in BASELINES} for method in OURS})
    rows = {one: marked(METHODS[one].title, runs[runs.method.isin([one, *OURS])]) for one in BASELINES}
    return table(titled(cells, rows, {method: METHODS[method].title for method in OURS}), "against")


def tuned() -> str:
    """Table 2 on whole sets; rate and temperature are chosen. A repeat counts if no other has more of the methods."""
    runs = _tuned_runs("majority")
    if runs.empty:
        return NOT_YET
    methods = runs.groupby(["words", "set", "seed"]).method.transform("nunique")
    runs = runs[methods == methods.groupby([runs.words, runs["set"]]).transform("max")]

    def cell(own: pd.DataFrame, row: str, name: str) -> str:
        return percent(own.score, figure(paper.TABLE_2[row.partition(",")[0]][name]))

    cells = crossed(runs, ["row"], ["set"], cell)
    cells.loc["larger"] = runs.groupby("set").majority.agg(lambda own: percent(own[:1]))
    titles = {}
    for words, own in ((words, by_method(runs[runs.words == words])) for words in _tuned_encoders().values()):
        titles |= {method + words: METHODS[method].title + words for method in COMPARED}
        for method, other in product(OURS, ("ce", "ce-scl")):
            cells.loc[f"gain {method} {other}{words}"] = _gain(own, method, other)
            titles[f"gain {method} {other}{words}"] = f"{METHODS[method].title} minus {METHODS[other].title}{words}"
    titles["larger"] = "the larger class, for all rows"
    groups = dict(list(runs.groupby("set")))
    columns = {name: marked(SETS[name].title, groups[name]) for name in CHOSEN_SETS if name in groups}
    return table(titled(cells, titles, columns), "")


def chosen() -> str:
    """Rate and temperature of each method on each set, chosen on held-out rows, and runs that stayed untrained."""
    runs = _tuned_runs("chosen.learning_rate", "chosen.temperature", "best_step")
    if runs.empty:
        return NOT_YET

    def cell(own: pd.DataFrame, *_: str) -> str:
        rate, temperature = own["chosen.learning_rate"].iloc[0], own["chosen.temperature"].iloc[0]
        told = f"{rate:g}" if pd.isna(temperature) else f"{rate:g}, {temperature:g}"
        untrained = int((own.best_step == 0).sum())
        return f"{told}; untrained: {untrained} of {len(own)}" if untrained else told

    cells = crossed(runs, ["row"], ["set"], cell)
    columns = {name: SETS[name].title for name in CHOSEN_SETS if name in cells}
    titles = {
        method + words: METHODS[method].title + words for words in _tuned_encoders().values() for method in COMPARED
    }
    return table(titled(cells, titles, columns), "")


def _tuned_encoders() -> dict[str, str]:
    """Return the encoders of the whole sets, each with the words behind a method's name."""
    return {store.ENCODER: "", f"{store.ENCODER}-cls": ", [CLS]", "all-mpnet-base-v2": ", mpnet"}


def _tuned_runs(*columns: str) -> pd.DataFrame:
    """Return the runs on whole sets; `row` is the method and the `words` of its encoder."""
    runs = pd.concat(
        scored("tuned", "method", *columns, encoder=encoder).assign(words=words)
        for encoder, words in _tuned_encoders().items()
    )
    return runs.assign(row=runs.method.astype(str) + runs.words)  # without a run it is a column of numbers


def _gain(samples: pd.DataFrame, method: str, other: str) -> pd.Series:
    """Format the gain over another method in points, with its deviation over the repeats, on each data set."""
    gains = (100 * (samples[method] - samples[other])).dropna().groupby(samples["set"])
    return gains.agg(lambda own: f"{own.mean():+.1f}" + (f" ± {own.std():.1f}" if len(own) > 1 else ""))


def few() -> str:
    """Table 4: 20 rows of each class."""
    runs = scored("few", "method", per_class=20)
    cells = crossed(
        runs, ["method"], ["set"], lambda own, method, name: percent(own.score, figure(paper.TABLE_4[method][name]))
    )
    cells.loc["p"] = _p(by_method(runs), "lacon-vanilla")
    rows = {method: METHODS[method].title for method in BOTH} | {"p": "p"}
    return table(titled(cells, rows, {name: SETS[name].title for name in FEW if name in cells}), "")


def _p(samples: pd.DataFrame, method: str) -> pd.Series:
    """Format p of a method against CE on each data set."""
    gains = (samples[method] - samples["ce"]).groupby(samples["set"])
    found = {name: paired_p(own.dropna()) for name, own in gains}
    return pd.Series({name: "-" if value is None else f"{value:.2g}" for name, value in found.items()}, dtype=object)


def more() -> str:
    """Figure 2: the gain over CE with increasing rows per class, over the samples that all counts have."""
    paired = by_method(scored("few", "method", "per_class"), "per_class").dropna(subset=BOTH)
    counts = paired.groupby("set").per_class.transform("nunique")
    complete = paired[(paired.groupby(["set", "seed"]).per_class.transform("size") == counts) & (counts > 1)]
    cells = crossed(complete, ["set"], ["per_class"], lambda own, *_: pair_cell(own))
    cells["draws"] = complete.groupby("set").seed.nunique().astype(str)
    columns = {count: str(count) for count in PER_CLASS} | {"draws": "draws"}
    return table(titled(cells, {name: SETS[name].title for name in FEW}, columns), PAIRED)


def imbalance() -> str:
    """Figure 3: the score by degree of imbalance."""
    runs = scored("imbalance", "method", "degree", "majority")
    cells = _by_degree(runs)
    cells["larger"] = runs.groupby("set").majority.agg(lambda own: percent(own.unique()))
    return table(titled(cells, titles_of(runs), DEGREE_TITLES | {"larger": "the larger class, for all"}), PAIRED)


def balanced() -> str:
    """Figure 3 as mean recall of the two classes, which does not depend on their share of the test rows."""
    runs = scored("imbalance", "method", "degree", "mean_recall")
    return table(titled(_by_degree(runs, "mean_recall"), titles_of(runs), DEGREE_TITLES), PAIRED)


def _by_degree(runs: pd.DataFrame, score: str = "score") -> pd.DataFrame:
    return crossed(by_method(runs, "degree", score=score), ["set"], ["degree"], lambda own, *_: pair_cell(own))


def minority() -> str:
    """Table 5: F1 of the rarer and of the other class at a degree of 10."""
    runs = scored("imbalance", "method", "class_rows", "f1_by_class", degree=10)
    for place, which in enumerate(places := ("rarer", "other")):
        names = [sorted(counts, key=lambda name: (counts[name], name))[place] for counts in runs.class_rows]
        runs[which] = [own[name] for own, name in zip(runs.f1_by_class, names, strict=True)]

    def cell(own: pd.DataFrame, method: str, name: str, which: str) -> str:
        theirs = paper.TABLE_5[method].get(name)
        return percent(own.f1, figure(theirs and theirs[places.index(which)]))

    long = runs.melt(["method", "set"], places, "which", "f1")
    columns = {(name, which): f"{title}, {which}" for name, title in titles_of(runs).items() for which in places}
    cells = crossed(long, ["method"], ["set", "which"], cell)
    return table(titled(cells, {method: METHODS[method].title for method in BOTH}, columns), "")


def ablation() -> str:
    """Table 3: one component removed. CE without g is added here with its numbers of table 2."""
    return _ablated(CHANGES)


def added() -> str:
    """Table 6: the losses added one by one."""
    return _ablated(ADDED)


def classes() -> str:
    """Figure 6: increasing numbers of DBpedia's labels."""
    runs = scored("classes", "method", "classes")
    cells = crossed(runs, ["method"], ["classes"], lambda own, *_: percent(own.score))
    columns = {count: str(count) for count in cells}
    return table(titled(cells, {method: METHODS[method].title for method in CLASS_METHODS}, columns), "labels")


def grid_points() -> pd.Series:
    """Return the scores by option and value; the defaults are a point on each line."""
    runs = scored("grid", "change", *(f"point.{name}" for name in OPTIONS))
    points = runs.rename(columns=lambda name: name.removeprefix("point."))
    points = points.melt(["change", "score"], list(OPTIONS), "option", "value")
    default = points[points.change == "default"].drop_duplicates("option").set_index("option").value
    moved = points.value != points.option.map(default)
    return points[moved | (points.change == "default")].groupby(["option", "value"]).score.agg(list)


def grid() -> str:
    """Figure 5 in numbers."""
    rows = [
        [f"{OPTIONS[option]} {value:g}", percent(scores)]
        for (option, value), scores in grid_points().reindex(OPTIONS, level="option").items()
    ]
    heads = [f"{title}, {SETS[name].metric}" for name, title in titles_of(scored("grid")).items()]
    return markdown(["", *heads], rows)


def tsne() -> str:
    """Separation of the classes of figure 4: cosine silhouette of the vectors, -1 to 1."""
    rows = [
        [SETS[run["set"]].title, METHODS[run["method"]].title, f"{run['silhouette']:.3f}", percent([run["score"]])]
        for run in scored("tsne", "method", "silhouette").to_dict("records")
    ]
    return markdown(["", "", "silhouette", "score"], rows)


def protocol() -> str:
    """The protocol of the results; several rows if the results have several protocols."""
    parts = ("main", "few", "imbalance", "ablation", "classes", "grid", "tsne")
    found = pd.concat([runs_of(part, "protocol") for part in parts]).protocol.map(json.dumps)
    names = ("rows", "test_rows", "max_tokens", "epochs", "few_epochs", "batch_size")
    rows = []
    for words, count in found.value_counts(sort=False).items():
        own = json.loads(words)
        rates = f"{own['learning_rate']:g}, {own['head_learning_rate']:g}"
        rows.append([str(count), *(str(own[name]) for name in names), rates])
    head = ["results", "train rows", "scored rows", "tokens", "epochs", "with few rows", "batch", "rates"]
    return markdown(head, rows)


def hours() -> str:
    """Hours of each part, one process on one core each, not corrected for other load; runs on a GPU are left out."""
    rows = []
    parts = ("main", "few", "imbalance", "ablation", "classes", "grid", "tuning", "tuned", "tsne", "curve")
    for part in (*parts, "setfit", "setfit-whole"):
        runs = runs_of(part, "seconds", **{"provenance.hardware.accelerator": None})
        if len(seconds := runs.seconds):
            rows.append([part, str(len(seconds)), f"{seconds.sum() / 3600:.1f}"])
    return markdown(["part", "results", "core-hours"], rows)


def pair_cell(samples: pd.DataFrame) -> str:
    """Format both means over the samples that both methods have, and the gain with its deviation."""
    plain, ours = (samples.dropna(subset=BOTH)[method] for method in BOTH)
    if plain.empty:
        return "-"
    gains = 100 * (ours - plain)
    before, after = (100 * statistics.fmean(own) for own in (plain, ours))
    deviation = f" ± {statistics.stdev(gains):.1f}" if len(gains) > 1 else ""
    return f"{before:.1f} to {after:.1f} ({statistics.fmean(gains):+.1f}{deviation})"


def _ablated(words: Mapping[str, str]) -> str:
    ablated, main = scored("ablation", "change"), scored("main", "method")
    main["change"] = main.method.map({"ce": "ce", "lacon-vanilla": "vanilla"})
    # Of part main, only the samples that the ablations were run on.
    runs = pd.concat([ablated, main.merge(ablated[["set", "seed"]].drop_duplicates())])
    runs = runs[runs.change.isin(words)]

    def cell(own: pd.DataFrame, change: str, name: str) -> str:
        theirs = paper.TABLE_2["ce"][name] if change == "ce" else paper.ABLATIONS[change].get(name)
        return percent(own.score, figure(theirs))

    cells = crossed(runs, ["change"], ["set"], cell)
    columns = {name: marked(title, runs[runs["set"] == name]) for name, title in titles_of(ablated).items()}
    return table(titled(cells, words, columns), "")


BLOCKS: dict[str, Callable[[], str]] = {
    "lacon-protocol": protocol,
    "lacon-hours": hours,
    "lacon-main": main,
    "lacon-tests": tests,
    "lacon-tuned": tuned,
    "lacon-chosen": chosen,
    "lacon-few": few,
    "lacon-more": more,
    "lacon-imbalance": imbalance,
    "lacon-balanced": balanced,
    "lacon-minority": minority,
    "lacon-ablation": ablation,
    "lacon-added": added,
    "lacon-classes": classes,
    "lacon-grid": grid,
    "lacon-tsne": tsne,
    "lacon-curve": aims.curve,
    "lacon-aim": aims.aim,
    "lacon-setfit": aims.setfit_schedules,
    "lacon-setfit-default": aims.setfit_defaults,
    "lacon-prior": aims.prior,
    "lacon-speed": aims.speed,
    "lacon-losses": aims.losses,
    "lacon-loss": aims.loss,
}
