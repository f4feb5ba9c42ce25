"""The model card: what a stranger must know of a saved model."""

from typing import Any

from labelspace.classify.base import BiEncoderClassifier

SHOWN_LABELS = 100


def model_card(model: BiEncoderClassifier, header: dict[str, Any]) -> str:
    """Return the README.md of a saved model.

    Args:
        model: the fitted model.
        header: what `labelspace.json` will hold, but the list of files.
    """
    space = model.label_space_
    encoder = header["encoder"]
    lines = [
        "---",
        "library_name: sentence-transformers",
        "pipeline_tag: text-classification",
        "tags:",
        "- labelspace",
        "- sentence-transformers",
        "- zero-shot-classification",
        "---",
        "",
        f"# {space.name}",
        "",
        f"A {header['class']} of labelspace {header['labelspace']} with {len(space)} labels on `{encoder['name']}`. "
        + _training_sentence(header["fit"]),
        "",
        "```python",
        "from labelspace import load",
        "",
        'clf = load("path/to/this/folder")',
        'clf.predict(["a text"])',
        "```",
        "",
        "`SentenceTransformer` opens the folder too, as the plain encoder.",
        "",
        "## Labels",
        "",
        "| label | verbalizer | descriptions |",
        "|---|---|---|",
    ]
    rows = list(zip(space.labels, space.verbalizers, strict=True))
    lines += [
        f"| {_cell(label.name)} | {_cell(verbalizer)} | {len(label.descriptions)} |"
        for label, verbalizer in rows[:SHOWN_LABELS]
    ]
    if len(rows) > SHOWN_LABELS:
        lines.append(f"| ... and {len(rows) - SHOWN_LABELS} more | | |")
    lines += ["", "The whole texts are in `label_space.yaml`.", "", "## Training", ""]
    lines += _training_table(header)
    lines += [
        "",
        "## Limits",
        "",
        "- Probabilities are shares among these labels. For texts that fit none of them set a threshold on the score.",
        f"- A text is read up to {encoder['max_tokens']} tokens.",
        "- No labelled document was used, so nothing here says how good the predictions are: evaluate before use.",
        "",
    ]
    return "\n".join(lines)


def _training_sentence(fit: dict[str, Any] | None) -> str:
    if fit is None:
        return "The encoder is as its authors made it."
    return "The encoder was adapted with the labels' descriptions, without a labelled document."


def _training_table(header: dict[str, Any]) -> list[str]:
    fit, parameters = header["fit"], header["parameters"]
    rows = {
        "encoder": f"{header['encoder']['name']} ({header['encoder']['dtype']})",
        "anchor": parameters["anchor"],
        "temperature": parameters["temperature"],
        "threshold": parameters["threshold"],
    }
    if fit is not None:
        curve = fit["curve"]
        rows |= {
            "learning rate": f"{fit['rate']['learning_rate']:.0e} ({fit['rate']['reason']})",
            "steps": f"{len(curve['losses'])}, best after {curve['best_step']} ({curve['stop_reason']})",
            "loss": f"{curve['losses'][0]:.4f} to {curve['losses'][-1]:.4f}" if curve["losses"] else "no step made",
            "unlabelled pool": fit["pool"] or "none",
            "uniformity": f"{fit['uniformity_before']} to {fit['uniformity_after']}",
            "seed": fit["seed"],
        }
    rows |= header["versions"]
    return ["| | |", "|---|---|", *(f"| {name} | {_cell(str(value))} |" for name, value in rows.items())]


def _cell(text: str) -> str:
    return text.replace("|", "\\|").replace("\n", " ")
