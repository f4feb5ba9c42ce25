"""The model card of a cross-encoder."""

from typing import Any

from labelspace.folders import shown_name
from labelspace.text_table import markdown_cell


def model_card(header: dict[str, Any]) -> str:
    """Return the README.md of a saved cross-encoder.

    Args:
        header: contents of `labelspace.json`.

    Example:
        >>> print(model_card({"variant": "binary", "labelspace": "0", "encoder": "e", "max_tokens": 8}).splitlines()[8])
        # NLI cross-encoder (binary)
    """
    dev, data = header.get("dev") or {}, header.get("data") or {}
    outputs = "one logit, of entailment" if header["variant"] == "binary" else "entailment, neutral, contradiction"
    base = shown_name(str(header.get("encoder")))
    lines = [
        "---",
        "library_name: transformers",
        "pipeline_tag: zero-shot-classification",
        "tags:",
        "- labelspace",
        "- nli",
        "---",
        "",
        f"# NLI cross-encoder ({header['variant']})",
        "",
        f"Made by labelspace {header['labelspace']} from `{base}`: it reads a premise and a "
        f"hypothesis together and returns {outputs}. It was trained on up to {header['max_tokens']} tokens per pair.",
        "",
        "The head is in `head.safetensors`; transformers opens this folder as the backbone alone.",
        "",
    ]
    if data.get("train"):
        lines += ["## Trained on", "", "| source | pairs |", "|---|---|"]
        lines += [f"| {markdown_cell(source)} | {count:,} |" for source, count in data["train"].items()]
        lines += [
            "",
            "Some sources forbid commercial use; look up the licence of each before you publish the model.",
            "",
        ]
    if dev.get("sources"):
        lines += ["## Dev set", "", "| source | pairs | loss | accuracy | AUROC |", "|---|---|---|---|---|"]
        rows = {**{markdown_cell(source): scores for source, scores in dev["sources"].items()}, "**all**": dev["all"]}
        lines += [
            f"| {source} | {scores['pairs']:,} | {scores['loss']:.4f} | {scores['accuracy']:.3f} | {_or_dash(scores)} |"
            for source, scores in rows.items()
        ]
        lines += ["", "The dev set also chose when to stop, so these numbers flatter the model a little.", ""]
    return "\n".join(lines)


def _or_dash(scores: dict[str, Any]) -> str:
    return "-" if scores["auroc"] is None else f"{scores['auroc']:.3f}"
