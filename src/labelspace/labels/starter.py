"""The label file that `labelspace init` writes: with names, and room for the user's descriptions."""

from collections.abc import Iterable

from labelspace.checks import check_number
from labelspace.labels.document import DEFAULT_NAME, DEFAULT_TEMPLATE
from labelspace.labels.files import yaml_scalar
from labelspace.labels.space import LabelSpace

HEAD = """\
# A label file: it says what the labels mean. docs/label-files.md explains every key.
# Put texts in quotes. Check the file with: labelspace lint
name: {name}
# The sentence that stands for a label; {{label}} becomes its phrase.
template: {template}
labels:
"""


def starter_file(
    names: Iterable[str], *, name: str = DEFAULT_NAME, template: str | None = None, descriptions_per_label: int = 5
) -> str:
    """Return the text of a commented YAML label file, with room for descriptions.

    The file is valid before any description is written; it equals `LabelSpace.from_names`.

    Args:
        names: two or more unique label names.
        name: name of the label space.
        template: the sentence around each phrase; None: the default template.
        descriptions_per_label: number of placeholders for descriptions per label.

    Returns:
        The text of the file, in YAML.

    Raises:
        LabelFileError: the names or the template are invalid.
        ConfigError: the number of descriptions is not a whole number, or is below 1.

    Example:
        >>> print(starter_file(["sports", "world"], descriptions_per_label=1))
        # A label file: ...
        name: "labels"
        ...
          - name: "sports"
            # phrase: "what {label} becomes; the name if left out"
            descriptions:
              # - "What a typical document of this label is about, in a sentence or two."
        ...
    """
    check_number("descriptions_per_label", descriptions_per_label, least=1, whole=True)
    space = LabelSpace.from_names(names, name=name, template=DEFAULT_TEMPLATE if template is None else template)
    first = '      # - "What a typical document of this label is about, in a sentence or two."\n'
    more = '      # - "Another side of it, in the words that such documents use."\n'
    text = HEAD.format(name=yaml_scalar(space.name), template=yaml_scalar(space.template))
    for label in space.names:
        text += f"  - name: {yaml_scalar(label)}\n"
        text += '    # phrase: "what {label} becomes; the name if left out"\n'
        text += "    descriptions:\n" + first + more * (descriptions_per_label - 1)
    return text
