"""The tables of docs/uncertainty-study.md; see benchmarks/tables.py."""

import statistics
from collections.abc import Callable, Collection, Iterable, Sequence
from itertools import product
from typing import Any

import numpy as np
import pandas as pd
import store
from layout import NOT_YET, crossed, markdown, products, spread, table, titled
from store import Row as Result

from uncertainty import paper
from uncertainty.cases import CASES, VARIANTS
from uncertainty.deviation import FORMS, KL, LONG_SETS, PAPER_TOKENS
from uncertainty.selection import winner
from uncertainty.sets import NOT_COMPARABLE, OTHER_TRAIN_ROWS, SETS
from uncertainty.variants import ABLATIONS, CHOICES, FAMILIES, GRID, GRID_SETS, PARTS, grid_twin

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
AREA_COLUMNS = ["area.uncertainty", "area.entropy"]
SMALL_SET = "toxic_conversations"
"""A set with 200 train rows and 100 test rows, 93 of them of one label."""

MARK = "‡"
NOTE = f"{MARK} Not comparable with the paper: other train rows, or few of its test rows. No set has its 512 tokens."

MAIN = ("probe", "probe-tuned", *(f"textcnn-{part}" for part in PARTS), "textcnn-chosen", "attention-both-chosen")


EOS = "EOS and a linear layer"
PUBLISHED = {"Qwen3-Embedding-0.6B": paper.QWEN3, "embeddinggemma-300m": paper.GEMMA}


def runs_of(part: str, *columns: str, **facts: Any) -> pd.DataFrame:
    """Return the runs of a part with these facts."""
    return store.frame("uncertainty", part, *columns, **facts)


def titles() -> list[str]:
    """Titles of the sets, with a mark on those not comparable with the paper; `beside_paper` explains the mark."""
    return [title + MARK * (name in NOT_COMPARABLE) for name, title in SETS.items()]


def titles_with_rows() -> list[str]:
    """Titles of the sets, with the rows left out compared with the paper."""
    runs = runs_of("main", "encoder", "set", "rows", "test_rows")
    runs = runs[runs.encoder.isin(ENCODERS)].drop_duplicates().sort_values(["rows", "test_rows"])
    return [_with_rows(*named, runs[runs["set"] == named[0]]) for named in zip(SETS, titles(), strict=True)]


def _with_rows(name: str, title: str, runs: pd.DataFrame) -> str:
    train, test = paper.ROWS[name]
    words = [title]
    for own, own_test in dict.fromkeys(zip(runs.rows, runs.test_rows, strict=True)):
        if name in OTHER_TRAIN_ROWS:
            words.append(f"{own:,} train rows of another corpus (the paper: {train:,})")
        elif own != train:
            words.append(f"{own:,} of {train:,} train rows")
        if own_test != test:
            words.append(f"{own_test:,} of {test:,} test rows")
    return ", ".join(words)


def noted(cells: str) -> str:
    """Explain the marks below a table with numbers of the paper."""
    return f"{cells}\n\n{NOTE}" if cells != NOT_YET else NOT_YET


def accuracies() -> pd.DataFrame:
    """Return the accuracy of every run in percent, by encoder, variant and set."""
    columns = ("encoder", "variant", "set", "accuracy")
    runs = pd.concat([runs_of(part, *columns) for part in ("main", "ablations")])
    return runs.assign(accuracy=100 * runs.accuracy)


def by_set(runs: pd.DataFrame) -> pd.DataFrame:
    """Format the accuracy on each set, and the means over all sets and over those that are not tiny."""
    rows = ["encoder", "variant"]
    cells = crossed(runs, rows, ["set"], lambda own, *_: spread(own.accuracy, "{:.1f}"))
    means = crossed(runs, rows, ["set"], lambda own, *_: statistics.fmean(own.accuracy))
    return with_means(cells, means)


def with_means(
    cells: pd.DataFrame, values: pd.DataFrame, form: str = "{:.2f}", sets: Iterable[str] = SETS
) -> pd.DataFrame:
    """Add the columns "mean" and "large" to cells: means over the sets, and over those that are not tiny.

    A row that lacks a set has no mean.
    """
    whole = values.reindex(columns=list(sets)).dropna()
    for name, own in (("mean", whole), ("large", whole.drop(columns=SMALL_SET, errors="ignore"))):
        means = [form.format(statistics.fmean(row)) if len(row) else "-" for row in own.to_numpy()]
        cells[name] = pd.Series(means, index=whole.index, dtype=object)
    return cells


def published(model: str) -> pd.DataFrame:
    """Return the paper's accuracies with a model, in the form of `accuracies`."""
    found = pd.DataFrame(PUBLISHED[model]).rename_axis("set").reset_index()
    return found.melt("set", var_name="variant", value_name="accuracy").assign(encoder=f"paper: {model}")


def choice() -> str:
    """Results of `choose.py`: accuracy on held-out train rows, and areas under the rejection curve.

    The choice by the rule of `selection.py` is bold.
    """
    runs = runs_of("choice", "encoder", "choice", "set", "accuracy", *AREA_COLUMNS)
    cells = crossed(runs, ["encoder", "choice"], ["set"], _with_areas)
    scores = crossed(runs, ["encoder", "choice"], ["set"], lambda own, *_: 100 * own.accuracy.iloc[0])
    cells = with_means(cells, scores, sets=GRID_SETS)
    rows = products(dict(zip(ENCODERS, ENCODERS, strict=True)), {one: one.replace("_", ", ") for one in CHOICES})
    for encoder, family in product(ENCODERS, FAMILIES.values()):
        if won := winner(family, runs[runs.encoder == encoder].to_dict("records"), GRID_SETS):
            rows[encoder, won] = (encoder, f"**{won}**".replace("_", ", "))
    return table(titled(cells, rows, {name: SETS[name] for name in GRID_SETS} | {"mean": "mean"}), "", AREAS)


def main() -> str:
    """Tables 2, 7 and 9: the probe, the four TextCNNs, and the whole method with chosen options, on every set."""
    ours = by_set(accuracies())
    rows = products({encoder: encoder for encoder in ENCODERS}, {variant: TITLES[variant] for variant in MAIN})
    if not any(row in ours.index for row in rows):
        return NOT_YET
    shown = {one: TITLES[one] for one in ("probe", "cls-base", *(f"textcnn-{part}" for part in PARTS))}
    rows |= products({f"paper: {model}": f"paper: {model}" for model in PUBLISHED}, shown | {"cls-base": EOS})
    columns = [*titles_with_rows(), "mean", f"without {SETS[SMALL_SET]}"]
    cells = pd.concat([ours, *(by_set(published(model)) for model in PUBLISHED)])
    return noted(table(titled(cells, rows, dict(zip([*SETS, "mean", "large"], columns, strict=True))), "", ""))


def _means(runs: pd.DataFrame) -> pd.Series:
    """Format the mean over the sets of each variant that has all of them, with one encoder."""
    return by_set(runs).droplevel("encoder")["mean"].dropna()


def parts() -> str:
    """Table 3: means over the sets of UCL and LCL with each extractor, and the paper's in brackets."""
    means, theirs = by_set(accuracies())["mean"], _means(published("Qwen3-Embedding-0.6B"))
    rows = products({encoder: encoder for encoder in ENCODERS}, PARTED)

    def cell(encoder: str, variant: str) -> str | None:
        own = means.get((encoder, variant), "-")
        known = variant in theirs and encoder == ENCODERS[0]
        return None if own == "-" else f"{own} ({theirs[variant]})" if known else own

    found = {part: {(encoder, name): cell(encoder, f"{name}-{part}") for encoder, name in rows} for part in PARTS}
    columns = {"base": "neither", "lcl": "LCL", "ucl": "UCL", "both": "both"}
    head = f"mean accuracy, {len(NOT_COMPARABLE)} of {len(SETS)} sets {MARK}"
    return noted(table(titled(pd.DataFrame(found), rows, columns), "", head))


def extractors() -> str:
    """Tables 4 and 8: other ways to read token states, and other contrastive parts."""
    order = [f"{name}-{which}" for name in ("mean", "mlp", "attention", "cls") for which in ("base", "chosen")]
    order += ["textcnn-base", "textcnn-simcse", "textcnn-simcse-0.05", "simcse-chosen"]
    order += ["textcnn-supcon", "textcnn-supcon-0.1", "supcon-chosen", "textcnn-lcl"]
    return _variants(order)


def every_part() -> str:
    """Table 7: each extractor with and without UCL and LCL, by set."""
    return _variants([f"{extractor}-{part}" for extractor in PARTED if extractor != "textcnn" for part in PARTS])


def _variants(order: Sequence[str]) -> str:
    """Variants of each encoder by set, and beside the first encoder's the paper's mean."""
    cells, theirs = by_set(accuracies()), _means(published("Qwen3-Embedding-0.6B"))
    cells["paper"] = pd.Series({(ENCODERS[0], variant): mean for variant, mean in theirs.items()}).reindex(cells.index)
    columns = dict(zip(SETS, titles(), strict=True)) | {"mean": "mean", "paper": "paper, mean"}
    rows = products({encoder: encoder for encoder in ENCODERS}, {variant: TITLES[variant] for variant in order})
    return noted(table(titled(cells, rows, columns), "", ""))


def grid_runs(encoder: str) -> pd.DataFrame:
    """Return the runs of figure 3 by option, value and set, seed 0; those shared with `main` come from there."""
    points = [(one, value, grid_twin(one, value) or f"{one}-{value:g}") for one in GRID for value in GRID[one]]
    columns = ("variant", "set", "accuracy", *AREA_COLUMNS)
    runs = pd.concat([runs_of(part, *columns, encoder=encoder, seed=0) for part in ("main", "grid")])
    return pd.DataFrame(points, columns=["option", "value", "variant"]).merge(runs[runs["set"].isin(GRID_SETS)])


def grid() -> str:
    """Figure 3 in numbers."""
    cells = crossed(grid_runs(ENCODERS[0]), ["option", "value"], ["set"], _with_areas)
    rows = {(option, value): f"{OPTIONS[option]} {value:g}" for option in GRID for value in GRID[option]}
    return table(titled(cells, rows, {name: SETS[name] for name in GRID_SETS}), AREAS)


def deviation() -> str:
    """What the paper leaves open: the form of the deviation, how KL is summed, what ranks documents; MiniLM."""
    runs = runs_of("deviation", encoder=ENCODERS[0])
    if runs.empty:
        return NOT_YET
    # The paper's 512 tokens are in the table of `--full`.
    runs = pd.concat([runs, store.frame("uncertainty-full", "deviation", encoder=ENCODERS[0])])
    cells = crossed(runs, ["form", "kl", "kl_weight"], ["set"], lambda own, *_: _above_random(own))
    rows = {(form, kl, weight): (form, kl, f"{weight:g}") for form in FORMS for kl in KL for weight in KL[kl]}
    sets = {name: SETS[name] for name in GRID_SETS} | {
        name: f"{SETS[name]}, {PAPER_TOKENS} tokens" for name in LONG_SETS
    }
    return table(titled(cells, rows, sets), "form", "KL", "weight")


def _above_random(runs: pd.DataFrame) -> str:
    """Format accuracy, areas above random in points (deviation, variance, entropy, best order), share of hard texts."""
    gains = [
        100 * (runs[f"area.{by}"] - runs["area.random"]).mean() for by in ("uncertainty", "variance", "entropy", "best")
    ]
    hard = 100 * runs["levels.hard"].sum() / runs.test_rows.sum()
    return f"{100 * runs.accuracy.mean():.1f}; " + ", ".join(f"{gain:+.1f}" for gain in gains) + f"; {hard:.1f} %"


def cases() -> str:
    """The texts of figure 7: right answers over the seeds, and the share of test rows with less uncertainty."""
    runs = runs_of("cases", encoder=ENCODERS[0])
    if runs.empty:
        return NOT_YET
    rows = []
    for words, what in CASES.items():
        of_text = [one for one in runs.to_dict("records") if words in one["cases"]]
        if not of_text:
            rows.append([words, what, "not among these test rows", *[""] * 5])
            continue
        first = of_text[0]["cases"][words]
        answers = {
            variant: [one["cases"][words]["answer"] == first["truth"] for one in of_text if one["variant"] == variant]
            for variant in VARIANTS
        }
        whole = [one["cases"][words] for one in of_text if one["variant"] == "textcnn-both"]
        doubts = [f"{statistics.fmean(one[by] for one in whole):.0%}" for by in ("uncertainty", "entropy")]
        shares = [f"{sum(own)} of {len(own)}" for own in answers.values()]
        rows.append([first["text"], what, first["truth"], *shares, *doubts])
    right = ["mean of words: right", "TextCNN: right", "the whole method: right"]
    return markdown(["text", "the paper's case", "label", *right, "have less deviation", "have less entropy"], rows)


def by_place(part: str, **facts: Any) -> list[tuple[str, str, pd.DataFrame]]:
    """Return encoder, set and the runs of a part on each set that has some, in the order of the tables."""
    runs = runs_of(part, **facts)
    groups = dict(list(runs.groupby(["encoder", "set"]))) if len(runs) else {}
    return [(*key, groups[key]) for key in product(ENCODERS, SETS) if key in groups]


def rejection() -> str:
    """Figure 5 in numbers: areas under the accuracy-rejection curve, means over seeds.

    The paper rejects by the uncertainty of TextCNN + UCL, whichever model answers; the table shows this beside the
    method's own. The gain from rejecting half is in points; below 0 the uncertainty misleads.
    """
    rows = []
    for encoder, name, runs in by_place("main", variant="textcnn-both"):
        areas = [statistics.fmean(runs[f"area.{by}"]) for by in ("random", "uncertainty", "entropy", "best")]
        half = statistics.fmean(curve[len(curve) // 2] - curve[0] for curve in runs["curve.uncertainty"])
        of_paper = [_by_ucl(encoder, name, variant) for variant in ("textcnn-base", "textcnn-both")]
        rows.append([encoder, SETS[name], *(f"{100 * area:.2f}" for area in areas), f"{100 * half:+.1f}", *of_paper])
    head = ["", "", "at random", "by uncertainty", "by entropy", "best possible", "gained by rejecting half"]
    return markdown([*head, "TextCNN by the uncertainty of UCL", "both by the uncertainty of UCL"], rows)


def difficulty() -> str:
    """Figure 5, left: texts and errors by the paper's bounds of uncertainty, 0.8 and 1.0, and errors by third."""
    rows = []
    for encoder, name, runs in by_place("main", variant="textcnn-both"):
        found = compared(encoder, name)
        if encoder != ENCODERS[0] or not found:
            continue
        base = runs_of("main", "accuracy", "test_rows", encoder=encoder, set=name, variant="textcnn-base")
        wrong = [max(1, sum(round((1 - own.accuracy) * own.test_rows))) for own in (base, runs)]
        cells = []
        for level in ("easy", "semi-hard", "hard"):
            documents, ours = (sum(runs[f"difficulty.{level}"].str[part]) for part in (0, 1))
            theirs = found["errors_of_base"][level]
            shares = [documents / sum(runs.test_rows), theirs / wrong[0], ours / wrong[1]]
            cells.append(", ".join(f"{share:.0%}" for share in shares))
        std, errors = (np.mean(runs[what].tolist(), axis=0) for what in ("std", "error_by_third"))
        cells += [", ".join(f"{one:.4f}" for one in std), ", ".join(f"{one:.1%}" for one in errors)]
        rows.append([SETS[name], *cells])
    head = ["texts, errors of TextCNN, errors of TextCNN + both", "below 0.8", "0.8 to 1.0", "above 1.0"]
    head += ["uncertainty: 5, 50, 95 % quantile", "errors in the least, middle, most uncertain third"]
    return markdown(head, rows)


def usage() -> str:
    """Calibration and promised risks on test rows."""
    rows = []
    for encoder, name, runs in by_place("usage"):
        columns = ["accuracy", "ece.test, before", "ece.test, after", "coverage.0.8.coverage", "coverage.0.8.accuracy"]
        accuracy, before, after, answered, right = (statistics.fmean(runs[column]) for column in columns)
        cells = [f"{accuracy:.3f}", f"{before:.3f}", f"{after:.3f}", f"{answered:.2f}, {right:.3f}"]
        risk, kept = "never possible", runs[runs["risk.0.05.coverage"] > 0]
        if len(kept):
            worst, share = 1 - kept["risk.0.05.accuracy"].min(), statistics.fmean(kept["risk.0.05.coverage"])
            risk = f"{len(kept)} of {len(runs)}: {share:.2f}, worst {worst:.3f}"
        doubts = ", ".join(sorted(runs.by.unique()))
        rows.append([encoder, SETS[name], str(runs.held_out.iloc[0]), *cells, risk, doubts])
    head = ["", "", "rows held out", "accuracy", "ECE before", "ECE after", "coverage 0.8: answered, accuracy"]
    return markdown([*head, "risk 0.05: answered, wrong", "doubt by"], rows)


def cost() -> str:
    """Table 5, and an epoch from stored states."""
    rows = []
    for encoder, extractor, length in product(ENCODERS, ("textcnn", "attention"), ("short", "long")):
        runs = runs_of("cost", encoder=encoder, extractor=extractor, length=length).to_dict("records")
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
                own = runs_of("main", "set", what, encoder=encoder, variant=variant).groupby("set")[what].last()
                if len(own):
                    values = (f"{title} {own[name]:g}" for name, title in SETS.items() if name in own)
                    parts.append(f"{words} " + ", ".join(values))
            lines.append("; ".join(parts) + ".")
    return "\n\n".join(lines) or NOT_YET


def _seeds(encoder: str, part: str, variants: Collection[str]) -> str:
    """Seeds of a part, and for an incomplete part the number of complete sets."""
    runs = runs_of(part, "seed", "set", "variant", encoder=encoder)
    there = runs[runs.variant.isin(variants)].groupby(["seed", "set"]).variant.nunique()
    complete = (there == there.max()).groupby("seed").sum()
    return ", ".join(
        f"{seed}" if whole == len(SETS) else f"{seed} ({whole} of {len(SETS)} sets)" for seed, whole in complete.items()
    )


def _by_ucl(encoder: str, name: str, variant: str) -> str:
    found = (compared(encoder, name) or {"by_ucl": {}})["by_ucl"].get(variant)
    if not found:
        return "-"
    area, chance = (100 * statistics.fmean(found[what]) for what in ("area", "area_random"))
    return f"{area:.2f} (at random {chance:.2f})"


def compared(encoder: str, name: str) -> Result | None:
    """Result of the row-by-row comparison of main's runs on one set."""
    return next(iter(runs_of("compared", encoder=encoder, set=name).to_dict("records")), None)


def _with_areas(runs: pd.DataFrame, *_: Any) -> str:
    run = runs.iloc[0]
    areas = [f"{100 * area:.1f}" for area in run[AREA_COLUMNS].dropna()]
    return f"{100 * run.accuracy:.1f}; {', '.join(areas)}"


BLOCKS: dict[str, Callable[[], str]] = {
    "uncertainty-choice": choice,
    "uncertainty-main": main,
    "uncertainty-parts": parts,
    "uncertainty-extractors": extractors,
    "uncertainty-every-part": every_part,
    "uncertainty-grid": grid,
    "uncertainty-deviation": deviation,
    "uncertainty-cases": cases,
    "uncertainty-rejection": rejection,
    "uncertainty-difficulty": difficulty,
    "uncertainty-usage": usage,
    "uncertainty-cost": cost,
    "uncertainty-seeds": seeds,
}
