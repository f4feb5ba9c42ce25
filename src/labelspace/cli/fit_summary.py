"""The summary that `labelspace fit` prints after training."""

from typing import Any

_REASONS = {
    "given": "as given",
    "base": "the encoder's published one",
    "fallback": "none is published for this encoder",
    "no pool": "the encoder's published one, or 2e-5; --pool FILE chooses one on your documents",
    "uniformity": "the pool is spread most uniformly after it",
}
_STOPS = {
    "patience": "the loss fell no more",
    "max_steps": "--max-steps reached",
    "interrupted": "interrupted",
}
_DID = {
    "levelled": "shares of the labels moved",
    "smoothed": "answers mixed with those of near documents",
    "words": "a model of words added",
}
"""What a step of a consensus does, by the first word of its name."""

MOST_SHARES = 8
Pairs = list[tuple[str, str]]


def summary_of(result: Any) -> Pairs:
    """Return the summary of a fit as names and values.

    Args:
        result: a `FitResult`, `LaConFit`, `UncertaintyFit` or `ConsensusFit`; None if nothing was trained.
    """
    if result is None:
        return [("training", "none: the encoder as it is")]
    told = {"FitResult": _of_descriptions, "LaConFit": _of_lacon, "UncertaintyFit": _of_uncertainty}
    told["ConsensusFit"] = _of_consensus
    return told[type(result).__name__](result)


def cuts_of(cuts: Any) -> Pairs:
    """Return where the cuts of several labels come from; nothing for a model of one label a text.

    Args:
        cuts: the `Cuts` of a classifier, or None.
    """
    if cuts is None:
        return []
    origin = {"pool": "unlabelled documents", "labels_per_text": "documents, from labels_per_text"}
    where = f"{cuts.documents} {origin.get(cuts.source, 'labelled rows')}"
    return [("cuts", f"set on {where}; {cuts.per_text:.2f} labels a text there")]


def _of_descriptions(result: Any) -> Pairs:
    curve = result.curve
    steps = f"{curve.steps}; {_STOPS.get(curve.stop_reason, curve.stop_reason)}; weights of step {curve.best_step}"
    pairs = [
        ("learning rate", f"{result.rate.learning_rate:.0e}: {_REASONS.get(result.rate.reason, result.rate.reason)}"),
        ("steps", steps),
        *_loss(curve),
    ]
    if result.uniformity_before is not None and result.uniformity_after is not None:
        change = f"{result.uniformity_before:.3f} -> {result.uniformity_after:.3f}"
        pairs.append(("uniformity", f"{change} (lower is better spread) on {result.pool_documents} documents"))
    if result.pool:
        pairs.append(("pool", result.pool))
    return pairs


def _of_lacon(result: Any) -> Pairs:
    curve, prior = result.curve, result.prior
    if curve is None:
        return [("labelled", "none that tells labels apart"), *_of_descriptions(result.descriptions)]
    return [
        ("labelled", _rows(result)),
        ("descriptions", f"weigh {prior.weight:.2f} ({prior.reason})"),
        ("learning rates", f"encoder {curve.learning_rate:.2g}, head {curve.head_learning_rate:.2g}"),
        ("steps", f"{curve.steps}; {curve.stop_reason}; weights of step {curve.best_step}"),
        *_loss(curve),
    ]


def _of_consensus(result: Any) -> Pairs:
    found = result.consensus
    pairs = [("views", ", ".join(result.views)), ("pool", f"{result.pool}, {result.pool_documents} used")]
    for one, name in enumerate(found["views"]):
        pairs += [
            ("agreement", f"kappa {found['agreement'][one][other]:.2f} of {name} and {found['views'][other]}")
            for other in range(one + 1, len(found["views"]))
        ]
    pairs += [_step(step) for step in found["steps"]]
    pairs.append(("labels", _shares(found["shares"])))
    if result.student is not None:
        pairs.append(("student", _student(result.student, result.taught)))
    if result.probabilities is not None:
        pairs.append(("probabilities", _sureness(result.probabilities)))
    return [*pairs, ("kappa", "agreement beyond chance: 0 none, 1 full")]


def _sureness(found: dict[str, Any]) -> str:
    likely = found["accuracy"]
    told = f"{likely['expected']:.2f} on average, as likely to be right ({likely['low']:.2f} to {likely['high']:.2f})"
    return f"{told}; {found['confidence_before']:.2f} before"


def _step(step: dict[str, Any]) -> tuple[str, str]:
    """Return the first word of a step's name, and what the step did or why it was left out."""
    name, _, where = step["name"].partition(" ")
    did = ", ".join(word for word in (_DID.get(name), where) if word)
    kept = "changed" if step["kept"] else "LEFT OUT, would have changed"
    return name, f"{did}: {kept} {step['changed']:.1%} of the answers; {step['reason']}"


def _shares(shares: dict[str, float]) -> str:
    """Return how often the labels are given, the most frequent first; of many, the ends of that list."""
    ordered = sorted(shares.items(), key=lambda named: -named[1])
    told = [f"{name} {share:.1%}" for name, share in ordered]
    if len(told) > MOST_SHARES:
        told = [*told[: MOST_SHARES // 2], f"... {len(told) - MOST_SHARES} more ...", *told[-MOST_SHARES // 2 :]]
    return ", ".join(told)


def _student(name: str, taught: dict[str, Any]) -> str:
    """Return how well a student follows."""
    on = f"{taught['documents']} documents {'that it did not learn from' if taught['held_out'] else 'it learnt from'}"
    verdict = "follows the consensus" if taught["follows"] else "follows the consensus POORLY"
    return f"{name}; {verdict}: kappa {taught['kappa']:.2f} on {on}"


def _of_uncertainty(result: Any) -> Pairs:
    curve, calibration = result.curve, result.calibration
    pairs = [
        ("labelled", _rows(result)),
        ("learning rate", f"{curve.learning_rate:.2g}"),
        ("steps", f"{curve.steps} in {len(curve.looks)} epochs"),
        *_loss(curve),
    ]
    if calibration is not None:
        errors = f"calibration error {calibration.ece_before:.3f} -> {calibration.ece_after:.3f}"
        rows = f"on {calibration.documents} rows, those that the temperature was fitted on"
        pairs.append(("held out", f"accuracy {result.held_out_accuracy:.3f}, {errors}; {rows}"))
        pairs.append(("temperature", f"{calibration.temperature:.3f}"))
    return pairs


def _rows(result: Any) -> str:
    left = f", {result.held_out} of them held out" if result.held_out else ""
    rows = "row" if result.unlabelled == 1 else "rows"
    without = f"; {result.unlabelled} {rows} without a label" if result.unlabelled else ""
    return f"{result.labelled}{left}{without}"


def _loss(curve: Any) -> Pairs:
    if not curve.losses:
        return []
    return [("loss", f"{curve.losses[0]:.4f} -> {curve.losses[-1]:.4f}, in {curve.seconds:.1f} s")]
