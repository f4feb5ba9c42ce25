"""The figure of a consensus: agreement of the views, what each step changed, shares of the labels before and after."""

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from labelspace.errors import InputError
from labelspace.evaluate.drawing import drawing, files_of, short, write_figure
from labelspace.evaluate.figures.rows import EDGE, INK, MOST_ROWS, PALE, name_rows, names_inches, rows_inches

if TYPE_CHECKING:
    from matplotlib.axes import Axes

    from labelspace.classify.saved.state import SavedFit
    from labelspace.consensus import ConsensusFit

BEFORE, AFTER = "#e8a200", "#1f3b8f"
VIEW, STEP = 50, 70
"""Maximum length of a view's name, and of what a step says."""

STEP_INCHES, STEPS_WIDE, CELL_INCHES = 0.72, 5.0, 0.5


def consensus_figure(fit: "ConsensusFit | SavedFit | Mapping[str, Any]", path: str | Path) -> tuple[Path, ...]:
    """Draw what the views of a consensus agreed on, and what its steps changed.

    At the left the agreement of every two views (kappa); words are one if they learnt from the others, also where they
    were left out then. At the right the share of documents whose label each step changed, or would have changed where
    it was left out. Below the share of each label, by the mean of the views before any step, and after all. With more
    than `MOST_ROWS` labels, those whose share changed most are drawn, and the title says so.

    Args:
        fit: `fit_result_` of a ConsensusClassifier, or of a model that a consensus made or taught, loaded ones too.
        path: a .png, .svg or .pdf file; without an extension both .png and .svg are written.

    Returns:
        The files written.

    Raises:
        MissingDependencyError: matplotlib is not installed.
        InputError: `fit` is not that of a consensus.
        OutputError: an unknown extension, or a file that cannot be written.

    Example:
        >>> import tempfile
        >>> from labelspace import ConsensusClassifier
        >>> pool = [f"{text} {day}" for day in range(13) for text in ("the team won", "a match", "the bank", "prices")]
        >>> clf = ConsensusClassifier(["sports", "money"], views=["zero-shot:tests/data/tiny-bert", "words"]).fit(pool)
        >>> with tempfile.TemporaryDirectory() as folder:
        ...     [file.name for file in consensus_figure(clf.fit_result_, f"{folder}/consensus")]
        ['consensus.png', 'consensus.svg']
    """
    found = consensus_of(fit)
    if found is None:
        raise InputError(f"fit must be the fit_result_ of a consensus. Got {type(fit).__name__} without one instead.")
    files = files_of(path)
    views, agreement = agreement_of(found)
    labels = _most_changed(found)
    with drawing("the consensus") as new_figure:
        upper = max(CELL_INCHES * len(views), STEP_INCHES * len(found["steps"]), 1.2)
        lower = rows_inches(len(labels))
        square = CELL_INCHES * max(len(views), 2)
        wide = square + names_inches([f"1  {short(name, VIEW)}" for name in views]) + STEPS_WIDE + 0.6
        figure = new_figure(max(wide, 6.5 + names_inches(labels)), 2.2 + upper + lower)
        above, below = figure.subfigures(2, 1, height_ratios=[upper + 0.8, lower + 1.0])
        left, right = above.subplots(1, 2, width_ratios=[square, STEPS_WIDE])
        _draw_agreement(left, views, agreement)
        _draw_steps(right, found)
        _draw_shares(below.subplots(), found, labels)
        figure.suptitle(_title(found, labels), fontsize=10)
        return write_figure(figure, files)


def consensus_of(fit: Any) -> dict[str, Any] | None:
    """Return what a consensus did as plain values, with the student's part; None if the fit is not that of one.

    Args:
        fit: a fit result, its plain values, or None.

    Example:
        >>> consensus_of({"steps": 60}) is None
        True
    """
    values = fit.to_dict() if hasattr(fit, "to_dict") else fit
    if not isinstance(values, Mapping) or not isinstance(values.get("consensus"), Mapping):
        return None
    inner = values["consensus"]
    if "consensus" in inner:  # a student that is an encoder has a fit of its own, too
        return consensus_of(inner)
    return {**inner, "student": values["student"], "taught": values["taught"]}


def agreement_of(found: Mapping[str, Any]) -> tuple[list[str], NDArray[np.float64]]:
    """Return the names of the views, words among them if they were asked, and kappa of every two, [view view]."""
    views, agreement, words = list(found["views"]), np.array(found["agreement"], float), found["agreement_with_words"]
    if words is None:
        return views, agreement
    beside = np.array(words, float)[:, None]
    return [*views, "words"], np.block([[agreement, beside], [beside.T, np.ones((1, 1))]])


def _title(found: Mapping[str, Any], labels: Sequence[str]) -> str:
    taught = found["taught"]
    student = (
        ""
        if taught is None
        else f"\nstudent: {short(found['student'], VIEW)}, which agrees with it (kappa {taught['kappa']:.2f})"
    )
    count = len(found["shares"])
    which = f"\nthe {len(labels)} labels whose share changed most, of {count:,}" if len(labels) < count else ""
    return f"Consensus on {found['documents']:,} documents{student}{which}"


def _most_changed(found: Mapping[str, Any]) -> list[str]:
    """Return the labels to draw, the most frequent first; ties go to the first."""
    before, after = found["shares_before"], found["shares"]
    drawn = sorted(after, key=lambda name: -abs(after[name] - before[name]))[:MOST_ROWS]
    return sorted((name for name in after if name in set(drawn)), key=lambda name: -after[name])


def _draw_agreement(axes: "Axes", views: Sequence[str], agreement: NDArray[np.float64]) -> None:
    """Draw kappa of every two views; a view with itself is an empty cell."""
    import matplotlib

    count = len(views)
    shades = matplotlib.colormaps["Blues"].with_extremes(bad="#f0f0f0")
    cells = np.ma.masked_invalid(np.where(np.eye(count, dtype=bool), np.nan, agreement))
    axes.imshow(cells, cmap=shades, vmin=0, vmax=1, interpolation="nearest")
    for row, column in zip(*np.nonzero(~np.ma.getmaskarray(cells)), strict=True):
        value = float(agreement[row, column])
        ink = "white" if value > 0.6 else INK
        axes.text(column, row, f"{value:.2f}", ha="center", va="center", fontsize=9, color=ink)
    axes.set_yticks(range(count), [f"{row + 1}  {short(name, VIEW)}" for row, name in enumerate(views)], fontsize=9)
    axes.set_xticks(range(count), [f"{row + 1}" for row in range(count)], fontsize=9)
    axes.xaxis.tick_top()
    axes.tick_params(length=0)
    axes.set_anchor("NW")
    axes.set_title("agreement of views (kappa)", loc="right", fontsize=9)


def _draw_steps(axes: "Axes", found: Mapping[str, Any]) -> None:
    """Draw the share of documents whose label a step changed; a step that was left out is hollow."""
    steps = found["steps"]
    most = max([step["changed"] for step in steps], default=0.0)
    for row, step in enumerate(steps):
        kept = step["kept"]
        look: dict[str, Any] = {"color": AFTER} if kept else {"facecolor": "white", "edgecolor": EDGE, "hatch": "////"}
        axes.barh(row, step["changed"], height=0.24, linewidth=0.7, **look)
        told = f"  {step['changed']:.1%}" + ("" if kept else ", left out")
        axes.text(step["changed"], row, told, va="center", fontsize=8.5)
        axes.text(0, row - 0.27, f" {short(step['name'], STEP)}", va="center", fontsize=8.5)
        axes.text(0, row + 0.25, f" {short(step['reason'], STEP)}", va="center", fontsize=7.5, color=EDGE)
    if not steps:
        axes.text(0, 0, " no step was taken", va="center", fontsize=8.5, color=PALE)
    axes.set_ylim(max(len(steps), 1) - 0.55, -0.45)
    axes.set_xlim(0, max(1.35 * most, 0.02))
    axes.set_yticks([])
    axes.xaxis.set_visible(False)
    for side in ("top", "right", "bottom"):
        axes.spines[side].set_visible(False)
    axes.set_title(
        f"documents whose label a step changed (all together {found['changed']:.1%})", loc="left", fontsize=9
    )


def _draw_shares(axes: "Axes", found: Mapping[str, Any], labels: Sequence[str]) -> None:
    """Draw the share of each label before and after, a line from one to the other."""
    from matplotlib.ticker import PercentFormatter

    before, after = ([found[key][name] for name in labels] for key in ("shares_before", "shares"))
    rows = range(len(labels))
    axes.hlines(rows, before, after, color=EDGE, linewidth=1.2, zorder=2)
    # The circle is wider than the diamond, so that both are seen where nothing changed.
    axes.scatter(before, rows, s=62, facecolor="white", edgecolor=BEFORE, linewidth=1.5, zorder=3, clip_on=False)
    axes.scatter(after, rows, s=20, marker="D", color=AFTER, zorder=4, clip_on=False)
    told = [f"{one:.1%} → {other:.1%}" for one, other in zip(before, after, strict=True)]
    name_rows(axes, labels, told)
    most = max(*before, *after)
    axes.set_xlim(-0.015 * most, 1.05 * most)
    axes.xaxis.set_major_formatter(PercentFormatter(1))
    axes.set_title("share of each label: ○ the mean of the views, ◆ the consensus", fontsize=9)
