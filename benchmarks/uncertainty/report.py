"""The tables of docs/uncertainty.md, from the result files of run_uncertainty.py; see benchmarks/tables.py."""

import statistics
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
from layout import NOT_YET, markdown, spread
from pieces import read_results

from labelspace import evaluate
from uncertainty import paper
from uncertainty.sets import SETS
from uncertainty.variants import GRID, GRID_SETS

PARTED = {"mean": "mean, the encoder's own", "cls": "[CLS]", "attention": "attention", "textcnn": "TextCNN"}
OUT = Path(__file__).resolve().parents[1] / "results" / "uncertainty"
Result = dict[str, Any]
ENCODERS = ("all-MiniLM-L6-v2", "all-mpnet-base-v2")
TITLES = {
    "probe": "linear probe",
    "probe-tuned": "linear probe, C chosen",
    "textcnn-base": "TextCNN",
    "textcnn-lcl": "TextCNN + LCL",
    "textcnn-ucl": "TextCNN + UCL",
    "textcnn-both": "TextCNN + both",
    "textcnn-simcse": "TextCNN + SimCSE, temperature 2",
    "textcnn-simcse-0.05": "TextCNN + SimCSE, temperature 0.05",
    "textcnn-supcon": "TextCNN + SupCon, temperature 2",
    "textcnn-supcon-0.1": "TextCNN + SupCon, temperature 0.1",
    "mean-base": "mean",
    "mean-both": "mean + both",
    "mlp-base": "MLP of the same size",
    "attention-base": "attention",
    "cls-base": "[CLS]",
}
SMALL_SET = "toxic_conversations"
"""A hundred rows to train on and a hundred to score: five points of standard error."""

MAIN = ("probe", "probe-tuned", "textcnn-base", "textcnn-lcl", "textcnn-ucl", "textcnn-both")


def accuracies(part: str, encoder: str, variant: str) -> dict[str, list[float]]:
    """Accuracy in percent of every seed, by set."""
    found: dict[str, list[float]] = {}
    for result in read_results(OUT, part):
        if result["encoder"] == encoder and result["variant"] == variant:
            found.setdefault(result["set"], []).append(100 * result["accuracy"])
    return found


def main() -> str:
    """Tables 2, 7 and 9: the probe and the four TextCNNs on every set."""
    rows: list[list[str]] = []
    for encoder in ENCODERS:
        rows += _rows(encoder, MAIN, lambda _: "main")
    for name, table in (("Qwen3-Embedding-0.6B", paper.QWEN3), ("embeddinggemma-300m", paper.GEMMA)):
        for variant in ("probe", "cls-base", "textcnn-base", "textcnn-lcl", "textcnn-ucl", "textcnn-both"):
            if variant in table and rows:
                title = "EOS and a linear layer" if variant == "cls-base" else TITLES[variant]
                cells = [f"{table[variant][one]:.1f}" for one in SETS]
                rows.append([f"paper: {name}", title, *cells, *_means(table[variant])])
    return markdown(["", "", *SETS.values(), "mean", f"without {SETS[SMALL_SET]}"], rows)


def parts() -> str:
    """Table 3: means over the sets of UCL and LCL with each extractor."""
    rows = []
    for extractor, title in PARTED.items():
        where = "main" if extractor == "textcnn" else "ablations"
        cells = []
        for part in ("base", "lcl", "ucl", "both"):
            variant = f"{extractor}-{part}"
            found = accuracies(where, ENCODERS[0], variant)
            theirs = f" ({statistics.fmean(paper.QWEN3[variant].values()):.2f})" if variant in paper.QWEN3 else ""
            cells.append(f"{_mean(found):.2f}{theirs}" if len(found) == len(SETS) else "-")
        if any(cell != "-" for cell in cells):
            rows.append([title, *cells])
    return markdown(["mean accuracy", "neither", "LCL", "UCL", "both"], rows)


def extractors() -> str:
    """Tables 4 and 8: other ways to read token states, and other contrastive parts."""
    order: tuple[str, ...] = ("mean-base", "mlp-base", "attention-base", "cls-base", "textcnn-base")
    order += ("textcnn-simcse", "textcnn-simcse-0.05", "textcnn-supcon", "textcnn-supcon-0.1", "textcnn-lcl")
    main_part = ("textcnn-base", "textcnn-lcl")
    rows = _rows(ENCODERS[0], order, lambda one: "main" if one in main_part else "ablations", theirs=True)
    return markdown(["", *SETS.values(), "mean", "paper, mean"], [row[1:] for row in rows])


def grid() -> str:
    """Figure 3 in numbers."""
    runs = [run for run in read_results(OUT, "grid") if run["encoder"] == ENCODERS[0]]
    found = {(run["variant"], run["set"]): run for run in runs}
    words = {"kl_weight": "weight of KL", "contrastive_weight": "weight of LCL", "learning_rate": "learning rate"}
    rows = []
    for option, values in GRID.items():
        for value in values:
            there = [found.get((f"{option}-{value:g}", name)) for name in GRID_SETS]
            if any(there):
                rows.append(
                    [f"{words[option]} {value:g}", *("-" if run is None else _with_areas(run) for run in there)]
                )
    return markdown(["accuracy; area by uncertainty, by entropy", *(SETS[name] for name in GRID_SETS)], rows)


def rejection() -> str:
    """Figure 5 in numbers: areas under the accuracy-rejection curve, means over seeds."""
    rows = []
    for encoder in ENCODERS:
        for name, title in SETS.items():
            runs = _runs("main", encoder, name, "textcnn-both")
            if not runs:
                continue
            areas = {by: 100 * statistics.fmean(run["area"][by] for run in runs) for by in runs[0]["area"]}
            order = ("random", "uncertainty", "entropy", "best")
            rows.append([encoder, title, *(f"{areas[by]:.1f}" for by in order), _rises(runs), _of_base(encoder, name)])
    head = ["", "", "at random", "by uncertainty", "by entropy", "best possible", "gained by rejecting half"]
    return markdown([*head, "TextCNN's errors by its uncertainty"], rows)


def _rises(runs: Sequence[Result]) -> str:
    """Accuracy of the less uncertain half above that of all, in points; below 0 the doubt misleads."""
    gains = []
    for run in runs:
        curve = run["curve"]["uncertainty"]
        gains.append(100 * (curve[len(curve) // 2] - curve[0]))
    return f"{statistics.fmean(gains):+.1f}"


def difficulty() -> str:
    """Figure 5, left: the share of texts, of TextCNN's errors and of ours in each band of the paper, 0.8 and 1.0."""
    rows = []
    for name, title in SETS.items():
        runs = _runs("main", ENCODERS[0], name, "textcnn-both")
        if not runs:
            continue
        base = {run["seed"]: run for run in _runs("main", ENCODERS[0], name, "textcnn-base")}
        cells = []
        for level in ("easy", "semi-hard", "hard"):
            documents, ours = ([run["difficulty"][level][part] for run in runs] for part in (0, 1))
            theirs = [_errors(base[run["seed"]], run, level) for run in runs if run["seed"] in base]
            every = sum(1 - run["accuracy"] for run in base.values()) * runs[0]["test_rows"]
            own = sum(1 - run["accuracy"] for run in runs) * runs[0]["test_rows"]
            shares = [sum(documents) / (len(runs) * runs[0]["test_rows"])]
            shares += [sum(theirs) / every if every else 0, sum(ours) / own if own else 0]
            cells.append(", ".join(f"{share:.0%}" for share in shares))
        low, middle, high = (statistics.fmean(run["std"][place] for run in runs) for place in range(3))
        rows.append([title, *cells, f"{low:.2f}, {middle:.2f}, {high:.2f}"])
    head = ["texts, errors of TextCNN, errors of TextCNN + both", "below 0.8", "0.8 to 1.0", "above 1.0"]
    return markdown([*head, "uncertainty: 5, 50, 95 % quantile"], rows)


def _errors(base: Result, full: Result, level: str) -> int:
    """Wrong answers of one model among the texts that another finds so hard."""
    right = np.array([value == "1" for value in base["right"]])
    bands = {band.level: band.errors for band in evaluate.difficulty(np.array(full["doubts"]["uncertainty"]), right)}
    return bands[level]


def usage() -> str:
    """Calibration and promises on test rows."""
    rows = []
    for name, title in SETS.items():
        runs = [run for run in read_results(OUT, "usage") if run["set"] == name and run["encoder"] == ENCODERS[0]]
        if not runs:
            continue
        ece = [
            f"{statistics.fmean(run['ece'][which] for run in runs):.3f}" for which in ("test, before", "test, after")
        ]
        kept = [run["coverage"]["0.8"] for run in runs]
        coverage = f"{_average(kept, 'coverage'):.2f}, {_average(kept, 'accuracy'):.3f}"
        promised = [run["risk"]["0.05"] for run in runs if run["risk"]["0.05"] and run["risk"]["0.05"]["coverage"]]
        risk = "never possible"
        if promised:
            worst = max(1 - kept["accuracy"] for kept in promised if kept["accuracy"] is not None)
            risk = f"{len(promised)} of {len(runs)}: {_average(promised, 'coverage'):.2f}, worst {worst:.3f}"
        accuracy = f"{statistics.fmean(run['accuracy'] for run in runs):.3f}"
        rows.append([title, accuracy, *ece, coverage, risk, ", ".join(sorted({run["by"] for run in runs}))])
    head = ["", "accuracy", "ECE before", "ECE after", "coverage 0.8: answered, accuracy"]
    return markdown([*head, "risk 0.05: answered, wrong", "doubt by"], rows)


def cost() -> str:
    """Table 5, and an epoch from stored states."""
    rows = []
    for encoder in ENCODERS:
        for length in ("short", "long"):
            found = {
                r["what"]: r for r in read_results(OUT, "cost") if (r["encoder"], r["length"]) == (encoder, length)
            }
            if not found:
                continue
            latency, epoch = found.get("latency"), found.get("epoch")
            parameters = latency["parameters"] if latency else None
            rows.append(
                [
                    encoder,
                    f"{length}, {latency['tokens'] / latency['batch']:.0f} tokens" if latency else length,
                    f"{parameters['head'] / parameters['encoder']:.1%}" if parameters else "-",
                    f"{latency['ratio']:.3f}" if latency else "-",
                    " to ".join(f"{1000 * own:.1f}" for own in latency["seconds"].values()) if latency else "-",
                    " to ".join(f"{own:,.0f}" for own in latency["texts_per_second"].values()) if latency else "-",
                    f"{epoch['ratio']:.1f}" if epoch else "-",
                    f"{epoch['training included']:.1f}" if epoch else "-",
                    f"{epoch['encoding to reading']:.0f}" if epoch else "-",
                ]
            )
    if rows:
        more, slower = f"{paper.MORE_PARAMETERS:.1%}", f"{paper.LATENCY_RATIO:.3f}"
        rows.append(["paper: Qwen3-Embedding-0.6B", "", more, slower, *["-"] * 5])
    head = [
        "",
        "texts",
        "parameters added",
        "latency, batch of 32",
        "ms",
        "texts/s",
        "encoding / an epoch from stored states",
    ]
    return markdown([*head, "epoch that encodes / from stored states", "encoding / reading states"], rows)


def seeds() -> str:
    """How much was run."""
    lines = []
    for encoder in ENCODERS:
        found = sorted({run["seed"] for run in read_results(OUT, "main") if run["encoder"] == encoder})
        if found:
            chosen = {run["set"]: run["c"] for run in _runs_of("main", encoder, "probe-tuned")}
            lines.append(
                f"{encoder}: seeds {', '.join(map(str, found))}; C of the tuned probe "
                + ", ".join(f"{SETS[name]} {c:g}" for name, c in chosen.items())
            )
    return "; ".join(lines) + "." if lines else NOT_YET


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


def _of_base(encoder: str, name: str) -> str:
    """Area where TextCNN's answers are rejected by the uncertainty of the whole method, as in figure 5."""
    base = {run["seed"]: run for run in _runs("main", encoder, name, "textcnn-base")}
    curves = []
    for full in _runs("main", encoder, name, "textcnn-both"):
        if full["seed"] in base:
            right = np.array([value == "1" for value in base[full["seed"]]["right"]])
            curves.append(evaluate.rejection_curve(full["doubts"]["uncertainty"], right))
    if not curves:
        return "-"
    area, chance = (
        100 * statistics.fmean(getattr(curve, what) for curve in curves) for what in ("area", "area_random")
    )
    return f"{area:.1f} (at random {chance:.1f})"


def _runs(part: str, encoder: str, name: str, variant: str) -> list[Result]:
    return [
        run
        for run in read_results(OUT, part)
        if (run["encoder"], run["set"], run["variant"]) == (encoder, name, variant)
    ]


def _runs_of(part: str, encoder: str, variant: str) -> list[Result]:
    return [run for name in SETS for run in _runs(part, encoder, name, variant)]


def _with_areas(run: Result) -> str:
    areas = [f"{100 * run['area'][by]:.1f}" for by in ("uncertainty", "entropy") if by in run["area"]]
    return f"{100 * run['accuracy']:.1f}; {', '.join(areas)}"


def _means(found: Mapping[str, float]) -> list[str]:
    """Mean over the sets, and over those that are not tiny."""
    if len(found) < len(SETS):
        return ["-", "-"]
    large = [value for name, value in found.items() if name != SMALL_SET]
    return [f"{statistics.fmean(found.values()):.2f}", f"{statistics.fmean(large):.2f}"]


def _average(found: Sequence[Mapping[str, float]], what: str) -> float:
    return statistics.fmean(kept[what] for kept in found)


def _mean(found: Mapping[str, Sequence[float]]) -> float:
    return statistics.fmean(statistics.fmean(values) for values in found.values())


BLOCKS: dict[str, Callable[[], str]] = {
    "uncertainty-main": main,
    "uncertainty-parts": parts,
    "uncertainty-extractors": extractors,
    "uncertainty-grid": grid,
    "uncertainty-rejection": rejection,
    "uncertainty-difficulty": difficulty,
    "uncertainty-usage": usage,
    "uncertainty-cost": cost,
    "uncertainty-seeds": seeds,
}
