"""The model cards of classifiers that labels have taught: what a stranger must know of them."""

from typing import Any

from labelspace.classify.base import BiEncoderClassifier
from labelspace.classify.model_card import SHOWN_LABELS, _cell


def lacon_card(model: BiEncoderClassifier, header: dict[str, Any]) -> str:
    """Return the README.md of a saved `LaConClassifier`.

    Args:
        model: the fitted model.
        header: what `labelspace.json` will hold, but the list of files.
    """
    fit = header["fit"]
    return _page(
        model,
        header,
        example='("a text", "another")' if header["lacon"]["pairs"] else '"a text"',
        origin=_origin(fit),
        facts=_lacon_facts(header),
        limits=[
            "Probabilities are shares among these labels. For texts that fit none of them set a threshold.",
            _known(fit),
        ],
    )


def uncertainty_card(model: BiEncoderClassifier, header: dict[str, Any]) -> str:
    """Return the README.md of a saved `UncertaintyClassifier`.

    Args:
        model: the fitted model.
        header: what `labelspace.json` will hold, but the list of files.
    """
    fit, learnt = header["fit"], header["uncertainty"]
    probabilities = "No row was held out, so probabilities are those of training, which are too sure, and nothing here"
    accuracy = f"{probabilities} says how good the predictions are: evaluate before use."
    if fit["calibration"]:
        accuracy = (
            f"On the {fit['held_out']} rows held out accuracy was {fit['held_out_accuracy']:.3f}, and probabilities "
            f"were off by {fit['calibration']['ece_after']:.3f} (expected calibration error), at the temperature that "
            "was chosen on them."
        )
    limit = learnt["limit"]
    answers = "`predict` names a label always; `set_coverage` and `set_risk` make it answer None where it is in doubt."
    if limit:
        answers = f"`predict` answers None where {limit['by']} is above {limit['value']:.4g}."
    return _page(
        model,
        header,
        example='"a text"',
        origin=f"The encoder is as its authors made it; a head on it was trained on {fit['labelled']} labelled rows.",
        facts=_uncertainty_facts(header),
        limits=[answers, accuracy],
    )


def _page(
    model: BiEncoderClassifier,
    header: dict[str, Any],
    *,
    example: str,
    origin: str,
    facts: dict[str, Any],
    limits: list[str],
) -> str:
    space, encoder = model.label_space_, header["encoder"]
    rows = list(zip(space.labels, space.verbalizers, strict=True))
    return "\n".join(
        [
            "---",
            "library_name: sentence-transformers",
            "pipeline_tag: text-classification",
            "tags:",
            "- labelspace",
            "- sentence-transformers",
            "---",
            "",
            f"# {space.name}",
            "",
            f"A {header['class']} of labelspace {header['labelspace']} with {len(space)} labels on "
            f"`{encoder['name']}`. {origin}",
            "",
            "```python",
            "from labelspace import load",
            "",
            'clf = load("path/to/this/folder")',
            f"clf.predict([{example}])",
            "```",
            "",
            "`SentenceTransformer` opens the folder too, as the plain encoder, without what was learnt on top of it.",
            "",
            "## Labels",
            "",
            "| label | verbalizer | descriptions |",
            "|---|---|---|",
            *(
                f"| {_cell(label.name)} | {_cell(verbalizer)} | {len(label.descriptions)} |"
                for label, verbalizer in rows[:SHOWN_LABELS]
            ),
            *([f"| ... and {len(rows) - SHOWN_LABELS} more | | |"] if len(rows) > SHOWN_LABELS else []),
            "",
            "The whole texts are in `label_space.yaml`.",
            "",
            "## Training",
            "",
            "| | |",
            "|---|---|",
            *(f"| {name} | {_cell(str(value))} |" for name, value in facts.items()),
            "",
            "## Limits",
            "",
            f"- A text is read up to {encoder['max_tokens']} tokens.",
            *(f"- {limit}" for limit in limits),
            "",
        ]
    )


def _origin(fit: dict[str, Any]) -> str:
    if fit["labelled"]:
        return f"It was trained on {fit['labelled']} labelled rows."
    return "It was trained on the labels' descriptions, without a labelled row."


def _known(fit: dict[str, Any]) -> str:
    looks = fit["curve"]["looks"] if fit["curve"] else ()
    best = next((look for look in looks if look["step"] == fit["curve"]["best_step"]), None)
    if best is None:
        return "No row was held out, so nothing here says how good the predictions are: evaluate before use."
    score = best.get("macro_f1_predicted", best.get("macro_f1"))  # in 0.1.0 it had the shorter name
    return (
        f"Macro-F1 (over predicted labels too) on the {fit['held_out']} rows held out was {score:.3f}. They chose the "
        "weights, so it is too good: evaluate before use."
    )


def _lacon_facts(header: dict[str, Any]) -> dict[str, Any]:
    fit, parameters = header["fit"], header["parameters"]
    facts = {
        "encoder": f"{header['encoder']['name']} ({header['encoder']['dtype']})",
        "objective": parameters["objective"],
        "head": parameters["head"],
        "temperature": parameters["temperature"],
        "threshold": parameters["threshold"],
        "rows": f"{fit['labelled']} labelled, of which {fit['held_out']} held out; {fit['unlabelled']} unlabelled",
    }
    if fit["curve"]:
        curve, prior = fit["curve"], fit["prior"]
        names = ("learning_rate", "head_learning_rate")  # a model saved before has those given alone
        facts |= {
            "learning rates": " and head ".join(f"{curve.get(name, parameters[name]):.0e}" for name in names),
            "steps": f"{len(curve['losses'])}, best after {curve['best_step']} ({curve['stop_reason']})",
            "loss": f"{curve['losses'][0]:.4f} to {curve['losses'][-1]:.4f}" if curve["losses"] else "no step made",
            "weight of the descriptions": f"{prior['weight']:.3f} ({prior['reason']})",
        }
    return facts | {"seed": fit["seed"]} | header["versions"]


def _uncertainty_facts(header: dict[str, Any]) -> dict[str, Any]:
    fit, parameters = header["fit"], header["parameters"]
    curve = fit["curve"]
    rate = curve.get("learning_rate", parameters["learning_rate"])  # a model saved before has it given alone
    facts = {
        "encoder": f"{header['encoder']['name']} ({header['encoder']['dtype']})",
        "extractor": header["uncertainty"]["head"]["extractor"],
        "weights": f"contrastive {parameters['contrastive_weight']}, KL {parameters['kl_weight']:g}",
        "temperature": f"{header['uncertainty']['temperature']:.4g}",
        "threshold": parameters["threshold"],
        "rows": f"{fit['labelled']} labelled, of which {fit['held_out']} held out; {fit['unlabelled']} unlabelled",
        "learning rate": f"{rate:.0e}",
        "steps": f"{len(curve['losses'])} in {curve['epochs']} epochs ({curve['stop_reason']})",
        "loss": f"{curve['losses'][0]:.4f} to {curve['losses'][-1]:.4f}",
    }
    return facts | {"seed": fit["seed"]} | header["versions"]
