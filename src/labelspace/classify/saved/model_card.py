"""The model card of a saved model."""

from dataclasses import dataclass
from typing import Any, final

from labelspace.encoders.registry import find_spec
from labelspace.folders import shown_name
from labelspace.labels import LabelSpace
from labelspace.text_table import markdown_cell

SHOWN_LABELS = 100
HERE = "path/to/this/folder"
"""What a card gives to `load`; a push puts the repository's name there."""


@final
@dataclass(frozen=True, kw_only=True)
class Result:
    """A number that says how good the model is, for the head of the card."""

    metric: str
    """Its name on the hub, such as `"accuracy"`; an estimate has a name of its own."""

    name: str
    """What it is, with its caveat, for readers."""

    value: float
    """The number."""

    data: str
    """The documents that it is about."""


@final
@dataclass(frozen=True, kw_only=True)
class Card:
    """The part of a card that depends on the classifier."""

    origin: str
    """How it was trained, in a sentence."""

    facts: dict[str, Any]
    """Rows of the training table."""

    limits: list[str]
    """Limits of the model, a sentence each."""

    example: str = '"a text"'
    """An example document, as Python code."""

    tags: tuple[str, ...] = ()
    """Additional tags for the hub."""

    learnt_on_top: bool = True
    """Whether something learnt is missing if the folder is opened as a plain encoder."""

    results: tuple[Result, ...] = ()
    """Numbers that the model has; none for one that was never measured."""


def model_card(card: Card, header: dict[str, Any], space: LabelSpace) -> str:
    """Return the README.md of a saved model.

    Args:
        card: the part from the classifier.
        header: content of `labelspace.json`, without the list of files.
        space: the labels.
    """
    encoder = header["encoder"]
    name = shown_name(encoder["name"]) if encoder else ""
    used = {"encoder": f"{name} ({encoder['dtype']})"} if encoder else {}
    facts = used | card.facts | header["versions"]
    library = "sentence-transformers" if encoder else "labelspace"
    rows = list(zip(space.labels, space.verbalizers, strict=True))
    return "\n".join(
        [
            "---",
            _head(card, library, space.name, encoder and encoder["name"]),
            "---",
            "",
            f"# {space.name}",
            "",
            f"A {header['class']} of labelspace {header['labelspace']} with {len(space)} labels"
            + (f" on `{name}`" if encoder else "")
            + f". {card.origin}",
            "",
            "```python",
            "from labelspace import load",
            "",
            f'clf = load("{HERE}")',
            f"clf.predict([{card.example}])",
            "```",
            "",
            *(_opened_plain(card) if encoder else ()),
            "## Labels",
            "",
            "| label | verbalizer | descriptions |",
            "|---|---|---|",
            *(
                f"| {markdown_cell(label.name)} | {markdown_cell(verbalizer)} | {len(label.descriptions)} |"
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
            *(f"| {name} | {markdown_cell(str(value))} |" for name, value in facts.items()),
            "",
            "## Limits",
            "",
            *([f"- {_reads(encoder['max_tokens'], header['parameters'])}"] if encoder else []),
            *(f"- {limit}" for limit in card.limits),
            "",
        ]
    )


def _head(card: Card, library: str, name: str, encoder: str | None) -> str:
    """Return the YAML that the hub reads: what opens the model, and its results as a `model-index`."""
    from huggingface_hub import EvalResult, ModelCardData

    known = find_spec(encoder) if encoder else None
    results = [
        EvalResult(
            task_type="text-classification",
            dataset_type="own",
            dataset_name=result.data,
            metric_type=result.metric,
            metric_name=result.name,
            metric_value=round(result.value, 4),
        )
        for result in card.results
    ]
    data = ModelCardData(
        base_model=known.name if known else None,
        library_name=library,
        pipeline_tag="text-classification",
        tags=list(dict.fromkeys(("labelspace", library, *card.tags))),
        model_name=name if results else None,
        eval_results=results or None,
    )
    return data.to_yaml()


def _reads(max_tokens: int, parameters: dict[str, Any]) -> str:
    if parameters.get("long_texts") == "windows":
        return f"A text is read in windows of {max_tokens} tokens; of each label the best ones count."
    return f"A text is read up to {max_tokens} tokens."


def _opened_plain(card: Card) -> tuple[str, str]:
    rest = ", without what was learnt on top of it." if card.learnt_on_top else "."
    return "`SentenceTransformer` opens the folder too, as the plain encoder" + rest, ""
