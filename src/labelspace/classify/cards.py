"""The model card of each classifier."""

from typing import Any

from labelspace.classify.model_card import Card
from labelspace.classify.state import State

SHARES = "Probabilities are shares among these labels. For texts that fit none of them set a threshold."


def anchored_card(state: State) -> Card:
    """Return the card of a classifier by anchors, trained on descriptions or untrained."""
    fit = state.fit
    facts = {name: state.parameters[name] for name in ("anchor", "temperature", "threshold")}
    if fit is not None:
        curve = fit["curve"]
        facts |= {
            "learning rate": f"{fit['rate']['learning_rate']:.0e} ({fit['rate']['reason']})",
            **_steps_and_loss(curve),
            "unlabelled pool": fit["pool"] or "none",
            "uniformity": f"{fit['uniformity_before']} to {fit['uniformity_after']}",
            "seed": fit["seed"],
        }
        if fit.get("consensus"):
            facts["taught by"] = f"{', '.join(fit['consensus']['views'])} on {fit['consensus']['pool']}"
    return Card(
        origin="The encoder is as its authors made it."
        if fit is None
        else "The encoder was adapted with the labels' descriptions"
        + (" and taught by a consensus of views" if fit.get("consensus") else "")
        + ", without a labelled document.",
        facts=facts,
        limits=[
            SHARES,
            "No labelled document was used, so nothing here says how good the predictions are: evaluate before use.",
        ],
        tags=("zero-shot-classification",),
        learnt_on_top=False,
    )


def lacon_card(state: State) -> Card:
    """Return the card of a `LaConClassifier`."""
    fit: Any = state.fit
    parameters = state.parameters
    facts = {name: parameters["config"][name] for name in ("objective", "head")}
    facts |= {name: parameters[name] for name in ("temperature", "threshold", "min_probability")}
    facts["rows"] = _rows(fit)
    if fit["curve"]:
        curve, prior = fit["curve"], fit["prior"]
        # Models saved by older versions have only the given values.
        given = {"learning_rate": parameters["learning_rate"], **parameters["config"]}
        names = ("learning_rate", "head_learning_rate")
        facts |= {
            "learning rates": " and head ".join(f"{curve.get(name, given[name]):.0e}" for name in names),
            **_steps_and_loss(curve),
            "weight of the descriptions": f"{prior['weight']:.3f} ({prior['reason']})",
        }
    origin = "It was trained on the labels' descriptions, without a labelled row."
    if fit["labelled"]:
        origin = f"It was trained on {fit['labelled']} labelled rows."
    return Card(
        origin=origin,
        facts=facts | {"seed": fit["seed"]},
        limits=[SHARES, _how_good(fit)],
        example='("a text", "another")' if state.facts["lacon"]["pairs"] else '"a text"',
    )


def uncertainty_card(state: State) -> Card:
    """Return the card of an `UncertaintyClassifier`."""
    fit: Any = state.fit
    parameters, learnt = state.parameters, state.facts["uncertainty"]
    curve, limit, config = fit["curve"], learnt["limit"], parameters["config"]
    rate = curve.get("learning_rate", parameters["learning_rate"])  # older models have only the given value
    accuracy = (
        "No row was held out, so probabilities are those of training, which are too sure, and nothing here says how "
        "good the predictions are: evaluate before use."
    )
    if fit["calibration"]:
        accuracy = (
            f"On the {fit['held_out']} rows held out accuracy was {fit['held_out_accuracy']:.3f}, and probabilities "
            f"were off by {fit['calibration']['ece_after']:.3f} (expected calibration error), at the temperature that "
            "was chosen on them."
        )
    answers = "`predict` names a label always; `set_coverage` and `set_risk` make it answer None where it is in doubt."
    if limit:
        answers = f"`predict` answers None where {limit['by']} is above {limit['value']:.4g}."
    return Card(
        origin=f"The encoder is as its authors made it; a head on it was trained on {fit['labelled']} labelled rows.",
        facts={
            "extractor": learnt["head"]["extractor"],
            "weights": f"contrastive {config['contrastive_weight']}, KL {config['kl_weight']:g}",
            "temperature": f"{learnt['temperature']:.4g}",
            "min_probability": parameters["min_probability"],
            "rows": _rows(fit),
            "learning rate": f"{rate:.0e}",
            "steps": f"{len(curve['losses'])} in {curve['epochs']} epochs ({curve['stop_reason']})",
            "loss": f"{curve['losses'][0]:.4f} to {curve['losses'][-1]:.4f}",
            "seed": fit["seed"],
        },
        limits=[answers, accuracy],
    )


def joint_card(state: State) -> Card:
    """Return the card of a `JointClassifier`."""
    fit: Any = state.fit or {}
    facts = {"views": ", ".join(fit.get("views", ())), "unlabelled pool": fit.get("pool"), "seed": fit.get("seed")}
    for step in fit.get("steps", ()):
        facts[step["name"]] = ("kept" if step["kept"] else "left out") + f": {step['reason']}"
    return Card(
        origin="Several views of unlabelled documents answer together, without a labelled document.",
        facts=facts,
        limits=[
            SHARES,
            "No labelled document was used, so nothing here says how good the predictions are: evaluate before use.",
        ],
    )


def words_card(state: State) -> Card:
    """Return the card of a `WordsClassifier`."""
    return Card(
        origin="It reads words alone (TF-IDF and a linear model) and needs no encoder.",
        facts={**state.parameters, "words": len(state.tensors["idf"])},
        limits=[
            SHARES,
            "It knows only words of the documents that it learnt from; a text without any gets the likeliest label.",
        ],
    )


def _rows(fit: dict[str, Any]) -> str:
    return f"{fit['labelled']} labelled, of which {fit['held_out']} held out; {fit['unlabelled']} unlabelled"


def _steps_and_loss(curve: dict[str, Any]) -> dict[str, str]:
    losses = curve["losses"]
    return {
        "steps": f"{len(losses)}, best after {curve['best_step']} ({curve['stop_reason']})",
        "loss": f"{losses[0]:.4f} to {losses[-1]:.4f}" if losses else "no step made",
    }


def _how_good(fit: dict[str, Any]) -> str:
    looks = fit["curve"]["looks"] if fit["curve"] else ()
    best = next((look for look in looks if look["step"] == fit["curve"]["best_step"]), None)
    if best is None:
        return "No row was held out, so nothing here says how good the predictions are: evaluate before use."
    score = best.get("macro_f1_predicted", best.get("macro_f1"))  # the shorter name is from 0.1.0
    return (
        f"Macro-F1 (over predicted labels too) on the {fit['held_out']} rows held out was {score:.3f}. They chose the "
        "weights, so it is too good: evaluate before use."
    )
