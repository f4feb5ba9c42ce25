"""The model card of each classifier."""

from typing import Any

from labelspace.classify.saved.model_card import Card, Result
from labelspace.classify.saved.state import State

SHARES = "Probabilities are shares among these labels."


def _none(state: State, *, reads_outside: bool = True) -> str:
    """Return what the model does with texts that fit none of the labels."""
    limit = state.facts.get("none")
    refusing = ["what the label file puts outside"] * (reads_outside and bool(state.space.outside))
    limits = [name for name in ("threshold", "min_probability") if state.parameters.get(name) is not None]
    refusing += [f"a {name.replace('_', ' ')}" for name in limits]
    if limit is None and refusing:
        return f"Texts that fit none of the labels get None, by {' and '.join(refusing)}."
    if limit is None:
        return "Every text gets a label, also one that fits none; `set_none` changes that, with unlabelled documents."
    told = f"`predict` answers None below a closeness of {limit['value']:.3g} ({limit['way']})"
    return f"{told}, which {limit['share']:.1%} of {limit['documents']:,} unlabelled documents were."


def _sureness(state: State) -> str:
    """Return how the probabilities were set, and how far off such probabilities were elsewhere."""
    found = state.facts.get("temperature_by")
    if not found:
        return SHARES
    likely, elsewhere = found["accuracy"], found.get("elsewhere")
    told = (
        f"{SHARES} Their temperature makes them {likely['expected']:.2f} on average, which is the likely accuracy "
        f"({likely['low']:.2f} to {likely['high']:.2f} with a probability of 0.8), estimated {_with_labels(found)}."
    )
    if not elsewhere:
        return told
    off = f"off by {elsewhere['mean']:.3f} (expected calibration error; {elsewhere['worst']:.3f} at worst)"
    fixed = f"at fixed temperatures by {elsewhere['fixed']:.3f}"
    return f"{told} On {elsewhere['sets']} data sets with labels, probabilities set so were {off}, {fixed}."


def _with_labels(found: dict[str, Any]) -> str:
    return f"with {found['labelled']:,} labels" if found.get("labelled") else "without labels"


def _estimated(state: State) -> tuple[Result, ...]:
    """Return the likely accuracy that the temperature was chosen by, as an estimate; empty if there is none."""
    found = state.facts.get("temperature_by")
    if not found:
        return ()
    likely = found["accuracy"]
    sure = f"{likely['low']:.2f} to {likely['high']:.2f} with a probability of 0.8"
    return (
        Result(
            metric="estimated_accuracy",
            name=f"likely accuracy, estimated {_with_labels(found)} ({sure})",
            value=likely["expected"],
            data=f"{found['documents']:,} {'' if found.get('labelled') else 'unlabelled '}documents",
        ),
    )


SEVERAL = (
    "A text may have several of these labels, or none. Each has a probability of its own, 0.5 or more where it is "
    "predicted."
)
UNTESTED = "No labelled document taught it, so nothing here says how good the predictions are: evaluate before use."

NOT_MEASURED = (
    "No row was held out with these labels, so nothing here says how good the predictions are: evaluate before use."
)

CUT_ON_ROWS = "The cuts were set on labelled rows, on which the model looks too good: evaluate on others before use."


def anchored_card(state: State) -> Card:
    """Return the card of a classifier by anchors, trained on descriptions or untrained."""
    fit: dict[str, Any] = state.fit or {}
    trained = "curve" in fit  # a consensus tells an untrained view of itself too
    facts = {name: state.parameters[name] for name in ("anchor", "temperature", "threshold")}
    cuts = state.facts.get("cuts")
    if cuts is not None:
        facts["cuts"] = f"from {cuts['source']}, {cuts['documents']} documents; {cuts['per_text']:.2f} labels a text"
    if trained:
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
        if not trained
        else "The encoder was adapted with the labels' descriptions"
        + (" and taught by a consensus of views" if fit.get("consensus") else "")
        + ", without a labelled document.",
        facts=facts,
        limits=[
            *((_sureness(state), _none(state)) if cuts is None else (SEVERAL,)),
            UNTESTED if cuts is None or cuts["source"] != "rows" else CUT_ON_ROWS,
        ],
        tags=("zero-shot-classification",),
        learnt_on_top=False,
        results=_estimated(state) if cuts is None else (),
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
    score = None if state.facts["lacon"]["labels_changed"] else _best_score(fit)
    origin = "It was trained on the labels' descriptions, without a labelled row."
    if fit["labelled"]:
        origin = f"It was trained on {fit['labelled']} labelled rows."
    return Card(
        origin=origin,
        facts=facts | {"seed": fit["seed"]},
        limits=[_sureness(state), _none(state, reads_outside=False), _how_good(score, fit["held_out"])],
        results=_measured(score, fit["held_out"]) or _estimated(state),
        example='("a text", "another")' if state.facts["lacon"]["pairs"] else '"a text"',
    )


def uncertainty_card(state: State) -> Card:
    """Return the card of an `UncertaintyClassifier`."""
    fit: Any = state.fit
    parameters, learnt = state.parameters, state.facts["uncertainty"]
    curve, limit, config = fit["curve"], learnt["limit"], parameters["config"]
    rate = curve.get("learning_rate", parameters["learning_rate"])  # older models have only the given value
    accuracy = NOT_MEASURED
    results: tuple[Result, ...] = ()
    if not fit["calibration"]:
        accuracy = (
            "No row was held out, so probabilities are those of training, which are too sure, and nothing here says "
            "how good the predictions are: evaluate before use."
        )
    elif len(state.tensors["held_out.wrong"]):  # else the record was dropped with a label
        held_out = f"{fit['held_out']} labelled rows held out of training"
        results = (Result(metric="accuracy", name="accuracy", value=fit["held_out_accuracy"], data=held_out),)
        accuracy = (
            f"On the {fit['held_out']} rows held out accuracy was {fit['held_out_accuracy']:.3f}, and probabilities "
            f"were off by {fit['calibration']['ece_after']:.3f} (expected calibration error), at the temperature that "
            "was chosen on them."
        )
    answers = []
    if limit:
        answers.append(f"`predict` answers None where {limit['by']} is above {limit['value']:.4g}.")
    if state.facts.get("none") or parameters["min_probability"] is not None:
        answers.append(_none(state, reads_outside=False))
    if not answers:
        answers.append(
            "`predict` names a label always; `set_coverage` and `set_risk` make it answer None where it is in doubt."
        )
    return Card(
        origin=f"The encoder is as its authors made it; a head on it was trained on {fit['labelled']} labelled rows.",
        facts={
            "extractor": learnt["head"]["extractor"],
            "weights": f"contrastive {config['contrastive_weight']}, KL {config['kl_weight']:g}",
            "temperature": f"{learnt['temperature']:.4g}",
            "min_probability": parameters["min_probability"],
            "rows": _rows(fit),
            "learning rate": f"{rate:.0e}",
            "steps": f"{curve.get('steps', len(curve['losses']))} in {curve['epochs']} epochs ({curve['stop_reason']})",
            "loss": f"{curve['losses'][0]:.4f} to {curve['losses'][-1]:.4f}",
            "seed": fit["seed"],
        },
        limits=[*answers, accuracy],
        results=results,
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
            _sureness(state),
            _none(state, reads_outside=all(hasattr(member, "anchor") for member in state.members)),
            "Its files can hold words of the documents that it learnt from, and a vector of each.",
            UNTESTED,
        ],
        results=_estimated(state),
    )


def words_card(state: State) -> Card:
    """Return the card of a `WordsClassifier`."""
    return Card(
        origin="It reads words alone (TF-IDF and a linear model) and needs no encoder.",
        facts={**state.parameters, "words": len(state.tensors["idf"])},
        limits=[
            _sureness(state),
            _none(state, reads_outside=False),
            "It knows only words of the documents that it learnt from; a text without any gets the likeliest label.",
            f"Its files hold these words: what stands in {state.parameters['min_df']} or more of the documents.",
        ],
        results=_estimated(state),
    )


def _rows(fit: dict[str, Any]) -> str:
    return f"{fit['labelled']} labelled, of which {fit['held_out']} held out; {fit['unlabelled']} unlabelled"


def _steps_and_loss(curve: dict[str, Any]) -> dict[str, str]:
    losses = curve["losses"]
    return {
        "steps": f"{curve.get('steps', len(losses))}, best after {curve['best_step']} ({curve['stop_reason']})",
        "loss": f"{losses[0]:.4f} to {losses[-1]:.4f}" if losses else "no step made",
    }


def _best_score(fit: dict[str, Any]) -> float | None:
    """Return the macro-F1 on the rows held out, of the look whose weights were kept."""
    looks = fit["curve"]["looks"] if fit["curve"] else ()
    best = next((look for look in looks if look["step"] == fit["curve"]["best_step"]), None)
    # The shorter name is from 0.1.0.
    return None if best is None else best.get("macro_f1_predicted", best.get("macro_f1"))


def _measured(score: float | None, rows: int) -> tuple[Result, ...]:
    if score is None:
        return ()
    held_out = f"{rows} labelled rows held out of training"
    return (Result(metric="f1", name="macro-F1; these rows chose the weights", value=score, data=held_out),)


def _how_good(score: float | None, rows: int) -> str:
    if score is None:
        return NOT_MEASURED
    return (
        f"Macro-F1 (over predicted labels too) on the {rows} rows held out was {score:.3f}. They chose the "
        "weights, so it is too good: evaluate before use."
    )
