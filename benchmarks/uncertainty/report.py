"""The tables of docs/uncertainty-study.md; see benchmarks/tables.py."""

import statistics
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from itertools import product

from layout import NOT_YET, filled, markdown, spread
from store import Row as Result
from store import results

from uncertainty import paper
from uncertainty.selection import winner
from uncertainty.sets import NOT_COMPARABLE, OTHER_TRAIN_ROWS, SETS
from uncertainty.variants import ABLATIONS, CHOICES, FAMILIES, GRID, GRID_SETS, PARTS, grid_twin

STUDY = "uncertainty"
PARTED = {"mean": "mean", "cls": "[CLS]", "attention": "attention", "textcnn": "TextCNN"}
ENCODERS = ("all-MiniLM-L6-v2", "all-mpnet-base-v2")
WITH = {"base": "", "lcl": " + LCL", "ucl": " + UCL", "both": " + both"}
TITLES = {
    **{f"{extractor}-{part}": f"{title}{more}" for extractor, title in PARTED.items() for part, more in WITH.items()},
    "probe": "linear probe",
    "probe-tuned": "linear probe, C chosen",
    "textcnn-simcse": "TextCNN + SimCSE, temperature 2",
    "textcnn-simcse-0.05": "TextCNN + SimCSE, temperature 0.05",
    "textcnn-supcon": "TextCNN + SupCon, temperature 2",
    "textcnn-supcon-0.1": "TextCNN + SupCon, temperature 0.1",
    "mlp-base": "MLP of the same size",
    "textcnn-chosen": "TextCNN + both, chosen",
    "attention-both-chosen": "attention + both, chosen",
    **{f"{extractor}-chosen": f"{PARTED[extractor]}, rate chosen" for extractor in ("mean", "cls", "attention")},
    "simcse-chosen": "TextCNN + SimCSE, temperature 0.05, weight chosen",
    "supcon-chosen": "TextCNN + SupCon, temperature 0.1, weight chosen",
    "mlp-chosen": "MLP of the same size, rate chosen",
}
OPTIONS = {"kl_weight": "weight of KL", "contrastive_weight": "weight of LCL", "learning_rate": "learning rate"}
"""Options of figure 3."""

AREAS = "accuracy; area by uncertainty, by entropy"
SMALL_SET = "toxic_conversations"
"""A set with 200 train rows and 100 test rows, 93 of them of one label."""

MARK = "‡"
NOTE = f"{MARK} Not comparable with the paper: other train rows, or few of its test rows. No set has its 512 tokens."

MAIN = ("probe", "probe-tuned", *(f"textcnn-{part}" for part in PARTS), "textcnn-chosen", "attention-both-chosen")


def titles() -> list[str]:
    """Titles of the sets, with a mark on those not comparable with the paper; `beside_paper` explains the mark."""
    return [title + MARK * (name in NOT_COMPARABLE) for name, title in SETS.items()]


def titles_with_rows() -> list[str]:
    """Titles of the sets, with the rows left out compared with the paper."""
    runs = [run for run in results(STUDY, "main") if run["encoder"] in ENCODERS]
    return [_with_rows(*named, runs) for named in zip(SETS, titles(), strict=True)]


def _with_rows(name: str, title: str, runs: Sequence[Result]) -> str:
    train, test = paper.ROWS[name]
    words = [title]
    for own, own_test in sorted({(run["rows"], run["test_rows"]) for run in runs if run["set"] == name}):
        if name in OTHER_TRAIN_ROWS:
            words.append(f"{own:,} train rows of another corpus (the paper: {train:,})")
        elif own != train:
            words.append(f"{own:,} of {train:,} train rows")
        if own_test != test:
            words.append(f"{own_test:,} of {test:,} test rows")
    return ", ".join(words)


def beside_paper(head: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    """Lay out a table with numbers of the paper, and explain the marks."""
    return f"{markdown(head, rows)}\n\n{NOTE}" if rows else NOT_YET


def accuracies(part: str, encoder: str, variant: str) -> dict[str, list[float]]:
    """Accuracy in percent of every seed, by set."""
    found: dict[str, list[float]] = {}
    for result in results(STUDY, part, encoder=encoder, variant=variant):
        found.setdefault(result["set"], []).append(100 * result["accuracy"])
    return found


def choice() -> str:
    """Results of `choose.py`: accuracy on held-out train rows, and areas under the rejection curve.

    The choice by the rule of `selection.py` is bold.
    """
    rows = []
    for encoder in ENCODERS:
        runs = {(run["choice"], run["set"]): run for run in results(STUDY, "choice", encoder=encoder)}
        won = {winner(family, runs.values(), GRID_SETS) for family in FAMILIES.values()}
        for name in CHOICES:
            there = [runs.get((name, one)) for one in GRID_SETS]
            title = f"**{name}**" if name in won else name
            mean = f"{statistics.fmean(100 * run['accuracy'] for run in there if run):.2f}" if all(there) else "-"
            rows.append([encoder, title.replace("_", ", "), *map(_with_areas, there), mean])
    return markdown(["", AREAS, *(SETS[one] for one in GRID_SETS), "mean"], filled(rows, 2))


def main() -> str:
    """Tables 2, 7 and 9: the probe, the four TextCNNs, and the whole method with chosen options, on every set."""
    rows: list[list[str]] = []
    for encoder in ENCODERS:
        rows += _rows(encoder, MAIN, lambda _: "main")
    for name, table in (("Qwen3-Embedding-0.6B", paper.QWEN3), ("embeddinggemma-300m", paper.GEMMA)):
        for variant in ("probe", "cls-base", "textcnn-base", "textcnn-lcl", "textcnn-ucl", "textcnn-both"):
            if variant in table and rows:
                title = "EOS and a linear layer" if variant == "cls-base" else TITLES[variant]
                cells = [f"{table[variant][one]:.1f}" for one in SETS]
                rows.append([f"paper: {name}", title, *cells, *_means(table[variant])])
    return beside_paper(["", "", *titles_with_rows(), "mean", f"without {SETS[SMALL_SET]}"], rows)


def parts() -> str:
    """Table 3: means over the sets of UCL and LCL with each extractor."""

    def cell(variant: str) -> str:
        found = accuracies("main" if variant.startswith("textcnn") else "ablations", ENCODERS[0], variant)
        theirs = f" ({statistics.fmean(paper.QWEN3[variant].values()):.2f})" if variant in paper.QWEN3 else ""
        return (
            f"{statistics.fmean(map(statistics.fmean, found.values())):.2f}{theirs}" if len(found) == len(SETS) else "-"
        )

    rows = [[title, *(cell(f"{extractor}-{part}") for part in PARTS)] for extractor, title in PARTED.items()]
    head = [f"mean accuracy, {len(NOT_COMPARABLE)} of {len(SETS)} sets {MARK}", "neither", "LCL", "UCL", "both"]
    return beside_paper(head, filled(rows))


def extractors() -> str:
    """Tables 4 and 8: other ways to read token states, and other contrastive parts."""
    order = tuple(f"{name}-{which}" for name in ("mean", "mlp", "attention", "cls") for which in ("base", "chosen"))
    order += ("textcnn-base",)
    order += ("textcnn-simcse", "textcnn-simcse-0.05", "simcse-chosen")
    order += ("textcnn-supcon", "textcnn-supcon-0.1", "supcon-chosen", "textcnn-lcl")
    main_part = ("textcnn-base", "textcnn-lcl")
    rows = _rows(ENCODERS[0], order, lambda one: "main" if one in main_part else "ablations", theirs=True)
    return beside_paper(["", *titles(), "mean", "paper, mean"], [row[1:] for row in rows])


def every_part() -> str:
    """Table 7: each extractor with and without UCL and LCL, by set."""
    order = [f"{extractor}-{part}" for extractor in PARTED if extractor != "textcnn" for part in PARTS]
    rows = _rows(ENCODERS[0], order, lambda _: "ablations", theirs=True)
    return beside_paper(["", *titles(), "mean", "paper, mean"], [row[1:] for row in rows])


def grid_runs(encoder: str) -> dict[tuple[str, float, str], Result]:
    """Runs of figure 3, seed 0, by option, value and set; those shared with `main` come from there."""
    found = {}
    for option, values in GRID.items():
        for value, name in product(values, GRID_SETS):
            twin = grid_twin(option, value)
            runs = runs_of("main" if twin else "grid", encoder, name, twin or f"{option}-{value:g}")
            if first := [run for run in runs if run["seed"] == 0]:
                found[option, value, name] = first[0]
    return found


def grid() -> str:
    """Figure 3 in numbers."""
    found = grid_runs(ENCODERS[0])
    rows = [
        [f"{OPTIONS[option]} {value:g}", *(_with_areas(found.get((option, value, name))) for name in GRID_SETS)]
        for option in GRID
        for value in GRID[option]
    ]
    return markdown([AREAS, *(SETS[name] for name in GRID_SETS)], filled(rows))


def rejection() -> str:
    """Figure 5 in numbers: areas under the accuracy-rejection curve, means over seeds.

    The paper rejects by the uncertainty of TextCNN + UCL, whichever model answers; the table shows this beside the
    method's own. The gain from rejecting half is in points; below 0 the uncertainty misleads.
    """
    rows = []
    for encoder, (name, title) in product(ENCODERS, SETS.items()):
        if runs := runs_of("main", encoder, name, "textcnn-both"):
            areas = [
                _mean(runs, lambda run, by=by: run["area"][by]) for by in ("random", "uncertainty", "entropy", "best")
            ]
            curves = [run["curve"]["uncertainty"] for run in runs]
            half = statistics.fmean(curve[len(curve) // 2] - curve[0] for curve in curves)
            of_paper = [_by_ucl(encoder, name, variant) for variant in ("textcnn-base", "textcnn-both")]
            rows.append([encoder, title, *(f"{100 * area:.2f}" for area in areas), f"{100 * half:+.1f}", *of_paper])
    head = ["", "", "at random", "by uncertainty", "by entropy", "best possible", "gained by rejecting half"]
    return markdown([*head, "TextCNN by the uncertainty of UCL", "both by the uncertainty of UCL"], rows)


def difficulty() -> str:
    """Figure 5, left: texts and errors by the paper's bounds of uncertainty, 0.8 and 1.0, and errors by third."""
    rows = []
    for name, title in SETS.items():
        base, runs = (runs_of("main", ENCODERS[0], name, variant) for variant in ("textcnn-base", "textcnn-both"))
        found = compared(ENCODERS[0], name)
        if not (runs and found):
            continue
        wrong = [max(1, sum(map(_errors, own))) for own in (base, runs)]
        cells = []
        for level in ("easy", "semi-hard", "hard"):
            documents, ours = (sum(run["difficulty"][level][part] for run in runs) for part in (0, 1))
            theirs = found["errors_of_base"][level]
            shares = [documents / (len(runs) * runs[0]["test_rows"]), theirs / wrong[0], ours / wrong[1]]
            cells.append(", ".join(f"{share:.0%}" for share in shares))
        thirds = zip(*(run["error_by_third"] for run in runs), strict=True)
        low, middle, high = (statistics.fmean(run["std"][place] for run in runs) for place in range(3))
        shares = ", ".join(f"{statistics.fmean(third):.1%}" for third in thirds)
        rows.append([title, *cells, f"{low:.4f}, {middle:.4f}, {high:.4f}", shares])
    head = ["texts, errors of TextCNN, errors of TextCNN + both", "below 0.8", "0.8 to 1.0", "above 1.0"]
    head += ["uncertainty: 5, 50, 95 % quantile", "errors in the least, middle, most uncertain third"]
    return markdown(head, rows)


def _errors(run: Result) -> int:
    """Number of test rows that a run answered wrongly."""
    return round((1 - run["accuracy"]) * run["test_rows"])


def usage() -> str:
    """Calibration and promised risks on test rows."""
    rows = []
    for encoder, (name, title) in product(ENCODERS, SETS.items()):
        runs = results(STUDY, "usage", encoder=encoder, set=name)
        if not runs:
            continue
        cells = [f"{_mean(runs, lambda run: run['accuracy']):.3f}"]
        cells += [f"{_mean(runs, lambda run, w=w: run['ece'][w]):.3f}" for w in ("test, before", "test, after")]
        kept = [run["coverage"]["0.8"] for run in runs]
        cells.append(f"{_mean(kept, lambda one: one['coverage']):.2f}, {_mean(kept, lambda one: one['accuracy']):.3f}")
        kept = [run["risk"]["0.05"] for run in runs if run["risk"]["0.05"] and run["risk"]["0.05"]["coverage"]]
        risk = "never possible"
        if kept:
            worst = max(1 - one["accuracy"] for one in kept if one["accuracy"] is not None)
            risk = f"{len(kept)} of {len(runs)}: {_mean(kept, lambda one: one['coverage']):.2f}, worst {worst:.3f}"
        doubts = ", ".join(sorted({run["by"] for run in runs}))
        rows.append([encoder, title, str(runs[0]["held_out"]), *cells, risk, doubts])
    head = ["", "", "rows held out", "accuracy", "ECE before", "ECE after", "coverage 0.8: answered, accuracy"]
    return markdown([*head, "risk 0.05: answered, wrong", "doubt by"], rows)


def cost() -> str:
    """Table 5, and an epoch from stored states."""
    rows = []
    for encoder, extractor, length in product(ENCODERS, ("textcnn", "attention"), ("short", "long")):
        runs = results(STUDY, "cost", encoder=encoder, extractor=extractor, length=length)
        if not runs:
            continue
        found = {run["what"]: run for run in runs}
        texts, cells = length, ["-"] * 4
        if one := found.get("latency"):
            texts = f"{length}, {one['tokens'] / one['batch']:.0f} tokens"
            rates = one["texts_per_second"].values()
            cells = [f"{one['parameters']['head'] / one['parameters']['encoder']:.1%}", f"{one['ratio']:.3f}"]
            cells += [" to ".join(f"{1000 * one['batch'] / rate:.1f}" for rate in rates)]
            cells += [" to ".join(f"{rate:,.0f}" for rate in rates)]
        one = found.get("epoch")
        of_epoch = (("ratio", 1), ("training included", 1), ("encoding to reading", 0))
        cells += [f"{one[what]:.{digits}f}" if one else "-" for what, digits in of_epoch]
        rows.append([encoder, PARTED[extractor], texts, *cells, f"{max(run['load_average'][0] for run in runs):.1f}"])
    if rows:
        more, slower = f"{paper.MORE_PARAMETERS:.1%}", f"{paper.LATENCY_RATIO:.3f}"
        rows.append(["paper: Qwen3-Embedding-0.6B", PARTED["textcnn"], "", more, slower, *["-"] * 6])
    head = ["", "", "texts", "parameters added", "latency, batch of 32", "ms", "texts/s"]
    head += ["encoding / an epoch from stored states", "epoch that encodes / from stored states"]
    return markdown([*head, "encoding / reading states", "load at the start"], rows)


def seeds() -> str:
    """Seeds that were run, and the values of options that depend on the rows."""
    lines = []
    for encoder in ENCODERS:
        found = _seeds(encoder, "main", MAIN[2:])
        if found:
            parts = [f"{encoder}: seeds {found}"]
            other = _seeds(encoder, "ablations", ABLATIONS)
            parts += [f"of other extractors and losses {other}"] if other and other != found else []
            for words, variant, what in (
                ("C of the tuned probe", "probe-tuned", "c"),
                ("epochs", "textcnn-both", "epochs"),
            ):
                own = {run["set"]: run[what] for run in results(STUDY, "main", encoder=encoder, variant=variant)}
                if own:
                    values = (f"{title} {own[name]:g}" for name, title in SETS.items() if name in own)
                    parts.append(f"{words} " + ", ".join(values))
            lines.append("; ".join(parts) + ".")
    return "\n\n".join(lines) or NOT_YET


def _seeds(encoder: str, part: str, variants: Collection[str]) -> str:
    """Seeds of a part, and for an incomplete part the number of complete sets."""
    there: dict[int, dict[str, set[str]]] = {}
    for run in results(STUDY, part, encoder=encoder):
        if run["variant"] in variants:
            there.setdefault(run["seed"], {}).setdefault(run["set"], set()).add(run["variant"])
    most = max((len(own) for sets in there.values() for own in sets.values()), default=0)
    words = []
    for seed, sets in sorted(there.items()):
        whole = sum(len(own) == most for own in sets.values())
        words.append(f"{seed}" if whole == len(SETS) else f"{seed} ({whole} of {len(SETS)} sets)")
    return ", ".join(words)


def _rows(
    encoder: str, variants: Sequence[str], where: Callable[[str], str], *, theirs: bool = False
) -> list[list[str]]:
    rows = []
    for variant in variants:
        found = accuracies(where(variant), encoder, variant)
        if not found:
            continue
        cells = [spread(found.get(name, []), "{:.1f}") for name in SETS]
        means = _means({name: statistics.fmean(values) for name, values in found.items()})
        row = [encoder, TITLES[variant], *cells, *means]
        of_paper = paper.QWEN3.get(variant)
        rows.append([*row[:-1], f"{statistics.fmean(of_paper.values()):.2f}" if of_paper else "-"] if theirs else row)
    return rows


def _by_ucl(encoder: str, name: str, variant: str) -> str:
    found = (compared(encoder, name) or {"by_ucl": {}})["by_ucl"].get(variant)
    if not found:
        return "-"
    area, chance = (100 * statistics.fmean(found[what]) for what in ("area", "area_random"))
    return f"{area:.2f} (at random {chance:.2f})"


def runs_of(part: str, encoder: str, name: str, variant: str) -> list[Result]:
    """Results of one variant on one set, one per seed."""
    return results(STUDY, part, encoder=encoder, set=name, variant=variant)


def compared(encoder: str, name: str) -> Result | None:
    """Result of the row-by-row comparison of main's runs on one set."""
    return next(iter(results(STUDY, "compared", encoder=encoder, set=name)), None)


def _with_areas(run: Result | None) -> str:
    if run is None:
        return "-"
    areas = [f"{100 * run['area'][by]:.1f}" for by in ("uncertainty", "entropy") if by in run["area"]]
    return f"{100 * run['accuracy']:.1f}; {', '.join(areas)}"


def _mean(runs: Iterable[Result], value: Callable[[Result], float]) -> float:
    return statistics.fmean(map(value, runs))


def _means(found: Mapping[str, float]) -> list[str]:
    """Mean over the sets, and over those that are not tiny."""
    if len(found) < len(SETS):
        return ["-", "-"]
    large = [value for name, value in found.items() if name != SMALL_SET]
    return [f"{statistics.fmean(found.values()):.2f}", f"{statistics.fmean(large):.2f}"]


BLOCKS: dict[str, Callable[[], str]] = {
    "uncertainty-choice": choice,
    "uncertainty-main": main,
    "uncertainty-parts": parts,
    "uncertainty-extractors": extractors,
    "uncertainty-every-part": every_part,
    "uncertainty-grid": grid,
    "uncertainty-rejection": rejection,
    "uncertainty-difficulty": difficulty,
    "uncertainty-usage": usage,
    "uncertainty-cost": cost,
    "uncertainty-seeds": seeds,
}
