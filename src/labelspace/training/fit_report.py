"""What a fit did, in words: of a classifier that was just fitted, and of one that was loaded."""

from collections.abc import Mapping
from typing import Any

from labelspace.notebook import Report
from labelspace.text_table import text_table

_REASONS = {
    "given": "as given",
    "base": "the encoder's published one",
    "fallback": "none is published for this encoder",
    "no pool": "the encoder's published one, or 2e-5; a pool of your documents chooses one",
    "uniformity": "the pool is spread most uniformly after it",
}
_STOPS = {
    "epochs": "all epochs made",
    "max_steps": "all steps made",
    "patience": "no further improvement",
    "max_seconds": "the time was over",
}
_DID = {
    "levelled": "shares of the labels moved",
    "smoothed": "answers mixed with those of near documents",
    "words": "a model of words added",
}
"""What a step of a consensus does, by the first word of its name."""

MOST_SHARES = 8
Facts = Mapping[str, Any]
Lines = list[tuple[str, str]]


class FitReport(Report):
    """The result of a fit, a dataclass: `print` and a notebook show what `labelspace fit` prints."""

    def summary(self) -> Lines:
        """Return what the fit did, as names and values."""
        return _summary(self.to_dict())

    def to_text(self) -> str:
        """Return the summary, a line for each name."""
        return text_table(self.summary(), left=(0, 1))


def _summary(fit: Facts) -> Lines:
    found = fit.get("consensus")
    if found is not None:  # of a consensus, or of the model that it taught
        return _of_consensus(found if "consensus" in found else fit)
    if "prior" in fit:
        return _of_lacon(fit)
    return _of_uncertainty(fit) if "calibration" in fit else _of_descriptions(fit)


def _of_descriptions(fit: Facts) -> Lines:
    curve, rate = fit["curve"], fit["rate"]
    pairs = [
        ("learning rate", f"{rate['learning_rate']:.0e}: {_REASONS.get(rate['reason'], rate['reason'])}"),
        ("steps", _steps(curve)),
        *_loss(curve),
    ]
    before, after = fit["uniformity_before"], fit["uniformity_after"]
    if before is not None and after is not None:
        change = f"{before:.3f} -> {after:.3f}"
        pairs.append(("uniformity", f"{change} (lower is better spread) on {fit['pool_documents']} documents"))
    return [*pairs, ("pool", fit["pool"])] if fit["pool"] else pairs


def _of_lacon(fit: Facts) -> Lines:
    curve, prior = fit["curve"], fit["prior"]
    if curve is None:
        return [("labelled", "none that tells labels apart"), *_of_descriptions(fit["descriptions"])]
    return [
        ("labelled", _rows(fit)),
        ("descriptions", f"weigh {prior['weight']:.2f} ({prior['reason']})"),
        ("learning rates", f"encoder {curve['learning_rate']:.2g}, head {curve['head_learning_rate']:.2g}"),
        ("steps", _steps(curve)),
        *_loss(curve, batches=True),
    ]


def _of_consensus(fit: Facts) -> Lines:
    found, student, sure = fit["consensus"], fit["student"], fit["probabilities"]
    pairs = [("views", ", ".join(fit["views"])), ("pool", f"{fit['pool']}, {fit['pool_documents']} used")]
    for one, name in enumerate(found["views"]):
        pairs += [
            ("agreement", f"kappa {found['agreement'][one][other]:.2f} of {name} and {found['views'][other]}")
            for other in range(one + 1, len(found["views"]))
        ]
    pairs += [_step(step) for step in found["steps"]]
    pairs.append(("labels", _shares(found["shares"])))
    if student is not None:
        pairs.append(("student", _student(student, fit["taught"])))
    if sure is not None:
        right = "{expected:.2f} on average, as likely to be right ({low:.2f} to {high:.2f})".format(**sure["accuracy"])
        pairs.append(("probabilities", f"{right}; {sure['confidence_before']:.2f} before"))
    return [*pairs, ("kappa", "agreement beyond chance: 0 none, 1 full")]


def _step(step: Facts) -> tuple[str, str]:
    """Return the first word of a step's name, and what the step did or why it was left out."""
    name, _, where = step["name"].partition(" ")
    did = ", ".join(word for word in (_DID.get(name), where) if word)
    kept = "changed" if step["kept"] else "LEFT OUT, would have changed"
    return name, f"{did}: {kept} {step['changed']:.1%} of the answers; {step['reason']}"


def _shares(shares: Mapping[str, float]) -> str:
    """Return how often the labels are given, the most frequent first; of many, the ends of that list."""
    ordered = sorted(shares.items(), key=lambda named: -named[1])
    told = [f"{name} {share:.1%}" for name, share in ordered]
    if len(told) > MOST_SHARES:
        told = [*told[: MOST_SHARES // 2], f"... {len(told) - MOST_SHARES} more ...", *told[-MOST_SHARES // 2 :]]
    return ", ".join(told)


def _student(name: str, taught: Facts) -> str:
    """Return how well a student follows."""
    on = f"{taught['documents']} documents {'that it did not learn from' if taught['held_out'] else 'it learnt from'}"
    verdict = "follows the consensus" if taught["follows"] else "follows the consensus POORLY"
    return f"{name}; {verdict}: kappa {taught['kappa']:.2f} on {on}"


def _of_uncertainty(fit: Facts) -> Lines:
    curve, calibration = fit["curve"], fit["calibration"]
    pairs = [
        ("labelled", _rows(fit)),
        ("learning rate", f"{curve['learning_rate']:.2g}"),
        ("steps", f"{_made(curve)} in {len(curve['looks']) if 'looks' in curve else curve['epochs']} epochs"),
        *_loss(curve, batches=True),
    ]
    if calibration is not None:
        errors = f"calibration error {calibration['ece_before']:.3f} -> {calibration['ece_after']:.3f}"
        rows = f"on {calibration['documents']} rows, those that the temperature was fitted on"
        pairs.append(("held out", f"accuracy {fit['held_out_accuracy']:.3f}, {errors}; {rows}"))
        pairs.append(("temperature", f"{calibration['temperature']:.3f}"))
    return pairs


def _rows(fit: Facts) -> str:
    left = f", {fit['held_out']} of them held out" if fit["held_out"] else ""
    rows = "row" if fit["unlabelled"] == 1 else "rows"
    without = f"; {fit['unlabelled']} {rows} without a label" if fit["unlabelled"] else ""
    return f"{fit['labelled']}{left}{without}"


def _steps(curve: Facts) -> str:
    why = curve["stop_reason"]
    return f"{_made(curve)}; {_STOPS.get(why, why)}; weights of step {curve['best_step']}"


def _made(curve: Facts) -> int:
    return curve.get("steps", len(curve["losses"]))  # folders of 0.1.0 hold no number of steps


def _loss(curve: Facts, *, batches: bool = False) -> Lines:
    """Return the loss at the start and at the end; single batches differ more than training changes them."""
    losses = curve["losses"]
    some = max(1, len(losses) // 10) if batches else 1
    means = f", means of {some} updates" if some > 1 else ""
    took = f", in {curve['seconds']:.1f} s" if "seconds" in curve else ""  # a saved model does not tell
    first, last = sum(losses[:some]) / some, sum(losses[-some:]) / some
    return [("loss", f"{first:.4f} -> {last:.4f}{means}{took}")] if losses else []
