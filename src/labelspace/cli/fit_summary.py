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
    return [
        ("labelled", _rows(result)),
        ("descriptions", f"weigh {prior.weight:.2f} ({prior.reason})"),
        ("learning rates", f"encoder {curve.learning_rate:.2g}, head {curve.head_learning_rate:.2g}"),
        ("steps", f"{curve.steps}; {curve.stop_reason}; weights of step {curve.best_step}"),
        *_loss(curve),
    ]


def _of_consensus(result: Any) -> Pairs:
    steps = [
        (
            step["name"].partition(" ")[0],
            f"{'' if step['kept'] else 'left out: '}{step['reason']}; changed {step['changed']:.1%}",
        )
        for step in result.consensus["steps"]
    ]
    student = [] if result.student is None else [("student", f"{result.student}; kappa {result.taught['kappa']:.2f}")]
    shares = ", ".join(f"{name} {share:.0%}" for name, share in result.consensus["shares"].items())
    return [
        ("views", ", ".join(result.views)),
        ("pool", f"{result.pool}, {result.pool_documents} used"),
        *steps,
        ("labels", shares),
        *student,
    ]


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
