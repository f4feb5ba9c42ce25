"""The tables of docs/lacon.md; see benchmarks/tables.py.

Scores are in percent, as in the paper. The paper's numbers, BERT-base trained on its own samples, are in brackets.
"""

import json
import statistics
from collections import Counter, defaultdict
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from commits import marked
from layout import NOT_YET, filled, markdown, percent

from lacon import aims, paper
from lacon.experiments import ABLATIONS, BOTH, CLASS_METHODS, DEGREES, PER_CLASS
from lacon.methods import BASELINES, METHODS, OURS
from lacon.runs import BySeed, Result, by_seed, figure, paired_p, results, runs_of, sets_of, signed_rank
from lacon.sets import FEW, MAIN, SETS

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


def main() -> str:
    """Table 2: every method on every set, and p of ours against CE over the repeats."""
    found = {name: {method: by_seed("main", set=name, method=method) for method in METHODS} for name in MAIN}
    found = {name: scores for name, scores in found.items() if any(scores.values())}
    if not found:
        return NOT_YET
    rows = []
    for method, (title, _) in METHODS.items():
        cells = [
            percent(list(scores[method].values()), figure(paper.TABLE_2[method][name]))
            for name, scores in found.items()
        ]
        rows.append([title, *cells])
    rows.append(["the larger class, for all rows", *(_majority(name) for name in found)])
    for method in OURS:
        tests = [signed_rank(scores[method], scores["ce"]) for scores in found.values()]
        cells = ("-" if value is None else f"{value:.2g}" for value in tests)
        rows.append([f"p of {METHODS[method].title} against CE", *cells])
    return markdown(["", *(marked(SETS[name].title, runs_of("main", set=name)) for name in found)], rows)


def tests() -> str:
    """Ours against every baseline, tested over the data sets with one mean each."""
    rows = []
    for baseline in BASELINES:
        cells = []
        for method in OURS:
            pairs = [
                [statistics.fmean(by_seed("main", set=name, method=which).values()) for which in (method, baseline)]
                for name in MAIN
                if SETS[name].english and all(by_seed("main", set=name, method=one) for one in (method, baseline))
            ]
            gains = [100 * (ours - theirs) for ours, theirs in pairs]
            value = paired_p(gains)
            better = f"better on {sum(gain > 0 for gain in gains)} of {len(gains)}"
            cells.append("-" if value is None else f"{statistics.fmean(gains):+.1f}, {better}, p {value:.2g}")
        if any(cell != "-" for cell in cells):
            runs = (run for method in (baseline, *OURS) for run in runs_of("main", method=method))
            rows.append([marked(METHODS[baseline].title, runs), *cells])
    return markdown(["against", *(METHODS[method].title for method in OURS)], rows)


def _majority(name: str) -> str:
    """Score of the majority label by the set's metric; 0 for Matthews' correlation."""
    shares = {run["majority"] for run in runs_of("main", set=name)}
    return "-" if len(shares) != 1 else percent([*shares])


def few() -> str:
    """Table 4: 20 rows of each class."""
    return _two_methods("few", FEW, {"per_class": 20}, lambda method, name: figure(paper.TABLE_4[method][name]))


def more() -> str:
    """Figure 2: the gain over CE with increasing rows per class, over the samples that all counts have."""
    rows = []
    for name in FEW:
        own = {
            method: {count: by_seed("few", set=name, method=method, per_class=count) for count in PER_CLASS}
            for method in BOTH
        }
        there = [count for count in PER_CLASS if all(scores[count] for scores in own.values())]
        if len(there) < 2:
            continue
        seeds = set.intersection(*(set(scores[count]) for scores in own.values() for count in there))
        pairs = ([{s: own[m][count][s] for s in seeds & own[m][count].keys()} for m in own] for count in PER_CLASS)
        rows.append([SETS[name].title, *(_pair_cell(*pair) for pair in pairs), str(len(seeds))])
    return markdown(["CE to LaCon (gain)", *map(str, PER_CLASS), "draws"], rows)


def imbalance() -> str:
    """Figure 3: the score by degree of imbalance."""
    larger = {name: {run["majority"] for run in runs_of("imbalance", set=name)} for name in sets_of("imbalance")}
    rows = [[*row, percent([*own])] for row, own in zip(_by_degree(), larger.values(), strict=True)]
    return markdown(["CE to LaCon (gain)", *map(str, DEGREES), "the larger class, for all"], rows)


def balanced() -> str:
    """Figure 3 as mean recall of the two classes, which does not depend on their share of the test rows."""
    return markdown(["CE to LaCon (gain)", *map(str, DEGREES)], _by_degree("mean_recall"))


def _by_degree(metric: str | None = None) -> list[list[str]]:
    """Rows for the sets of figure 3 with a cell for each degree; metric None: the set's own."""

    def cell(name: str, degree: int) -> str:
        return _pair_cell(*(by_seed("imbalance", metric, set=name, method=one, degree=degree) for one in BOTH))

    return [[SETS[name].title, *(cell(name, degree) for degree in DEGREES)] for name in sets_of("imbalance")]


def minority() -> str:
    """Table 5: F1 of the rarer and of the other class at a degree of 10."""
    rows, names = [], sets_of("imbalance")
    for method in BOTH:
        cells = []
        for name in names:
            runs = runs_of("imbalance", set=name, method=method, degree=10)
            for place in (0, 1):
                values = [r["f1_by_class"][_rarer_first(r)[place]] for r in runs]
                theirs = paper.TABLE_5[method].get(name)
                cells.append(percent(values, figure(theirs and theirs[place])))
        if any(cell != "-" for cell in cells):
            rows.append([METHODS[method].title, *cells])
    return markdown(["", *(f"{SETS[name].title}, {which}" for name in names for which in ("rarer", "other"))], rows)


def ablation() -> str:
    """Table 3: one component removed. CE without g is added here with its numbers of table 2."""
    return _ablated(CHANGES)


def added() -> str:
    """Table 6: the losses added one by one."""
    return _ablated(ADDED)


def classes() -> str:
    """Figure 6: increasing numbers of DBpedia's labels."""
    counts = sorted({result["classes"] for result in results("classes")})
    rows = []
    for method in CLASS_METHODS:
        found = [[run["accuracy"] for run in runs_of("classes", method=method, classes=count)] for count in counts]
        rows.append([METHODS[method].title, *map(percent, found)])
    return markdown(["labels", *map(str, counts)], filled(rows))


def grid_points() -> dict[str, dict[float, list[float]]]:
    """Return scores by option and value; the defaults are a point on each line."""
    found: dict[str, dict[float, list[float]]] = defaultdict(lambda: defaultdict(list))
    runs = results("grid")
    default = next((result["point"] for result in runs if result["change"] == "default"), {})
    for result in runs:
        moved = [name for name, value in result["point"].items() if value != default.get(name)]
        for name in moved or list(result["point"]):
            found[name][result["point"][name]].append(result[result["metric"]])
    return {name: dict(sorted(points.items())) for name, points in found.items()}


def grid() -> str:
    """Figure 5 in numbers."""
    points = grid_points()
    rows = [
        [f"{title} {value:g}", percent(scores)]
        for name, title in OPTIONS.items()
        for value, scores in points.get(name, {}).items()
    ]
    heads = [f"{SETS[name].title}, {SETS[name].metric}" for name in sets_of("grid")]
    return markdown(["", *heads], rows)


def tsne() -> str:
    """Separation of the classes of figure 4: cosine silhouette of the vectors, -1 to 1."""
    rows = []
    for name in dict.fromkeys(found["set"] for found in results("tsne")):
        for found in runs_of("tsne", set=name):
            score = percent([found[SETS[name].metric]])
            rows.append([SETS[name].title, METHODS[found["method"]].title, f"{found['silhouette']:.3f}", score])
    return markdown(["", "", "silhouette", "score"], rows)


def protocol() -> str:
    """The protocol of the results; several rows if the results have several protocols."""
    parts = ("main", "few", "imbalance", "ablation", "classes", "grid", "tsne")
    found = Counter(json.dumps(result["protocol"]) for part in parts for result in results(part))
    names = ("rows", "test_rows", "max_tokens", "epochs", "few_epochs", "batch_size")
    rows = []
    for own, count in ((json.loads(words), count) for words, count in found.items()):
        rates = f"{own['learning_rate']:g}, {own['head_learning_rate']:g}"
        rows.append([str(count), *(str(own[name]) for name in names), rates])
    head = ["results", "train rows", "scored rows", "tokens", "epochs", "with few rows", "batch", "rates"]
    return markdown(head, rows)


def hours() -> str:
    """Hours of each part, one process on one core each, not corrected for other load."""
    rows = []
    for part in ("main", "few", "imbalance", "ablation", "classes", "grid", "tsne", "curve", "setfit", "setfit-whole"):
        if found := [result["seconds"] for result in results(part)]:
            rows.append([part, str(len(found)), f"{sum(found) / 3600:.1f}"])
    return markdown(["part", "results", "core-hours"], rows)


def _two_methods(part: str, names: Sequence[str], facts: Mapping[str, Any], beside: Callable[[str, str], str]) -> str:
    scores = {method: {name: by_seed(part, set=name, method=method, **facts) for name in names} for method in BOTH}
    there = [name for name in names if any(own[name] for own in scores.values())]
    if not there:
        return NOT_YET
    rows = [
        [METHODS[method].title, *(percent(list(own[name].values()), beside(method, name)) for name in there)]
        for method, own in scores.items()
    ]
    tests = [signed_rank(scores["lacon-vanilla"][name], scores["ce"][name]) for name in there]
    rows.append(["p", *("-" if value is None else f"{value:.2g}" for value in tests)])
    return markdown(["", *(SETS[name].title for name in there)], rows)


def _pair_cell(plain: BySeed, ours: BySeed) -> str:
    """Format both means over the samples that both have, and the gain with its deviation."""
    seeds = sorted(plain.keys() & ours.keys())
    if not seeds:
        return "-"
    gains = [100 * (ours[seed] - plain[seed]) for seed in seeds]
    before, after = (100 * statistics.fmean(own[seed] for seed in seeds) for own in (plain, ours))
    deviation = f" ± {statistics.stdev(gains):.1f}" if len(seeds) > 1 else ""
    return f"{before:.1f} to {after:.1f} ({statistics.fmean(gains):+.1f}{deviation})"


def _rarer_first(result: Result) -> list[str]:
    """Return the labels, the one with fewer train rows first."""
    counts = result["class_rows"]
    return sorted(counts, key=lambda name: (counts[name], name))


def _ablated(words: Mapping[str, str]) -> str:
    rows, names = [], sets_of("ablation")
    drawn = {name: by_seed("ablation", set=name).keys() for name in names}
    used: dict[str, list[Result]] = {name: [] for name in names}
    for change, title in words.items():
        cells = []
        for name in names:
            if change in ABLATIONS:
                runs = runs_of("ablation", set=name, change=change)
            else:  # only the samples that the ablations were run on
                runs = runs_of("main", set=name, method="ce" if change == "ce" else "lacon-vanilla")
                runs = [run for run in runs if run["seed"] in drawn[name]]
            used[name] += runs
            theirs = paper.TABLE_2["ce"][name] if change == "ce" else paper.ABLATIONS[change].get(name)
            cells.append(percent([run[run["metric"]] for run in runs], figure(theirs)))
        if any(cell != "-" for cell in cells):
            rows.append([title, *cells])
    return markdown(["", *(marked(SETS[name].title, used[name]) for name in names)], rows)


BLOCKS: dict[str, Callable[[], str]] = {
    "lacon-protocol": protocol,
    "lacon-hours": hours,
    "lacon-main": main,
    "lacon-tests": tests,
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
    "lacon-loss": aims.loss,
}
