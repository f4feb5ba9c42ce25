"""The model card of a saved model."""

from dataclasses import dataclass
from typing import Any, final

from labelspace.labels import LabelSpace

SHOWN_LABELS = 100


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


def model_card(card: Card, header: dict[str, Any], space: LabelSpace) -> str:
    """Return the README.md of a saved model.

    Args:
        card: the part from the classifier.
        header: content of `labelspace.json`, without the list of files.
        space: the labels.
    """
    encoder = header["encoder"]
    used = {"encoder": f"{encoder['name']} ({encoder['dtype']})"} if encoder else {}
    facts = used | card.facts | header["versions"]
    library = "sentence-transformers" if encoder else "labelspace"
    rows = list(zip(space.labels, space.verbalizers, strict=True))
    return "\n".join(
        [
            "---",
            f"library_name: {library}",
            "pipeline_tag: text-classification",
            "tags:",
            *(f"- {tag}" for tag in dict.fromkeys(("labelspace", library, *card.tags))),
            "---",
            "",
            f"# {space.name}",
            "",
            f"A {header['class']} of labelspace {header['labelspace']} with {len(space)} labels"
            + (f" on `{encoder['name']}`" if encoder else "")
            + f". {card.origin}",
            "",
            "```python",
            "from labelspace import load",
            "",
            'clf = load("path/to/this/folder")',
            f"clf.predict([{card.example}])",
            "```",
            "",
            *(_opened_plain(card) if encoder else ()),
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
            *([f"- A text is read up to {encoder['max_tokens']} tokens."] if encoder else []),
            *(f"- {limit}" for limit in card.limits),
            "",
        ]
    )


def _opened_plain(card: Card) -> tuple[str, str]:
    rest = ", without what was learnt on top of it." if card.learnt_on_top else "."
    return "`SentenceTransformer` opens the folder too, as the plain encoder" + rest, ""


def _cell(text: str) -> str:
    return text.replace("|", "\\|").replace("\n", " ")
