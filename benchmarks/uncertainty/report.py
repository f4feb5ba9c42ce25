"""The tables of docs/uncertainty.md, from the result files of run_uncertainty.py; see benchmarks/tables.py."""

import statistics
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
from layout import NOT_YET, markdown, spread
from pieces import read_results

from labelspace.evaluate import rejection_curve
from uncertainty import paper
from uncertainty.sets import SETS
from uncertainty.variants import GRID, GRID_SETS

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
    "textcnn-simcse": "TextCNN + SimCSE",
    "textcnn-supcon": "TextCNN + SupCon",
    "mean-base": "mean",
    "mlp-base": "MLP of the same size",
    "attention-base": "attention",
    "cls-base": "[CLS]",
}
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
                rows.append([f"paper: {name}", title, *cells, f"{statistics.fmean(table[variant].values()):.2f}"])
    return markdown(["", "", *SETS.values(), "mean"], rows)


def parts() -> str:
    """Table 3: means over the sets of UCL and LCL with each extractor."""
    rows = []
    for extractor, title in (("cls", "[CLS]"), ("attention", "attention"), ("textcnn", "TextCNN")):
        where = "main" if extractor == "textcnn" else "ablations"
        cells = []
        for part in ("base", "lcl", "ucl", "both"):
            variant = f"{extractor}-{part}"
            found = accuracies(where, ENCODERS[0], variant)
            theirs = statistics.fmean(paper.QWEN3[variant].values())
            cells.append(f"{_mean(found):.2f} ({theirs:.2f})" if len(found) == len(SETS) else "-")
        if any(cell != "-" for cell in cells):
            rows.append([title, *cells])
    return markdown(["mean accuracy", "neither", "LCL", "UCL", "both"], rows)


def extractors() -> str:
    """Tables 4 and 8: other ways to read token states, and other contrastive parts."""
    order = ("mean-base", "mlp-base", "attention-base", "cls-base", "textcnn-base")
    order += ("textcnn-simcse", "textcnn-supcon", "textcnn-lcl")
    main_part = ("textcnn-base", "textcnn-lcl")
    rows = _rows(ENCODERS[0], order, lambda one: "main" if one in main_part else "ablations", theirs=True)
    return markdown(["", *SETS.values(), "mean", "paper, mean"], [row[1:] for row in rows])


def grid() -> str:
    """Figure 3 in numbers."""
    found = {(r["variant"], r["set"]): 100 * r["accuracy"] for r in read_results(OUT, "grid")}
    words = {"kl_weight": "weight of KL", "contrastive_weight": "weight of LCL", "learning_rate": "learning rate"}
    rows = []
    for option, values in GRID.items():
        for value in values:
            cells = [found.get((f"{option}-{value:g}", name)) for name in GRID_SETS]
            if any(cell is not None for cell in cells):
                rows.append([f"{words[option]} {value:g}", *("-" if cell is None else f"{cell:.1f}" for cell in cells)])
    return markdown(["", *(SETS[name] for name in GRID_SETS)], rows)


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
            rows.append([encoder, title, *(f"{areas[by]:.1f}" for by in order), _of_base(encoder, name)])
    head = ["", "", "at random", "by uncertainty", "by entropy", "best possible", "TextCNN's errors by its uncertainty"]
    return markdown(head, rows)


def difficulty() -> str:
    """Figure 5, left: where the errors are, by the paper's thresholds of 0.8 and 1.0."""
    rows = []
    for name, title in SETS.items():
        runs = _runs("main", ENCODERS[0], name, "textcnn-both")
        if not runs:
            continue
        cells = []
        for level in ("easy", "semi-hard", "hard"):
            documents = sum(run["difficulty"][level][0] for run in runs)
            errors = sum(run["difficulty"][level][1] for run in runs)
            share = documents / sum(run["test_rows"] for run in runs)
            cells.append(f"{share:.0%}, {errors / documents:.1%} wrong" if documents else "0%")
        low, middle, high = (statistics.fmean(run["std"][place] for run in runs) for place in range(3))
        rows.append([title, *cells, f"{low:.2f}, {middle:.2f}, {high:.2f}"])
    return markdown(["", "below 0.8", "0.8 to 1.0", "above 1.0", "uncertainty: 5, 50, 95 % quantile"], rows)


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
        promised = [run["risk"]["0.05"] for run in runs if run["risk"]["0.05"]]
        risk = "never possible"
        if promised:
            worst = max(1 - kept["accuracy"] for kept in promised)
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
                    f"{epoch['ratio']:.1f}" if epoch else "-",
                    f"{epoch['encoding to reading']:.0f}" if epoch else "-",
                ]
            )
    if rows:
        more, slower = f"{paper.MORE_PARAMETERS:.1%}", f"{paper.LATENCY_RATIO:.3f}"
        rows.append(["paper: Qwen3-Embedding-0.6B", "", more, slower, "-", "-"])
    head = ["", "texts", "parameters added", "latency, batch of 32", "epoch: encoding again / stored states"]
    return markdown([*head, "encoding / reading states"], rows)


def seeds() -> str:
    """How much was run."""
    lines = []
    for encoder in ENCODERS:
        found = sorted({run["seed"] for run in read_results(OUT, "main") if run["encoder"] == encoder})
        if found:
            lines.append(f"{encoder}: seeds {', '.join(map(str, found))}")
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
        row = [encoder, TITLES[variant], *cells, f"{_mean(found):.2f}" if len(found) == len(SETS) else "-"]
        rows.append([*row, f"{statistics.fmean(paper.QWEN3[variant].values()):.2f}"] if theirs else row)
    return rows


def _of_base(encoder: str, name: str) -> str:
    """Area where TextCNN's answers are rejected by the uncertainty of the whole method, as in figure 5; one seed."""
    base = [run for run in _runs("main", encoder, name, "textcnn-base") if run["seed"] == 0]
    full = [run for run in _runs("main", encoder, name, "textcnn-both") if "uncertainty" in run]
    if not base or not full:
        return "-"
    right = np.array([value == "1" for value in base[0]["right"]])
    curve = rejection_curve(full[0]["uncertainty"], right)
    return f"{100 * curve.area:.1f} (at random {100 * curve.area_random:.1f})"


def _runs(part: str, encoder: str, name: str, variant: str) -> list[Result]:
    return [
        run
        for run in read_results(OUT, part)
        if (run["encoder"], run["set"], run["variant"]) == (encoder, name, variant)
    ]


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
