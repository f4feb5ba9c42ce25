"""A label file while it is written: like a label space, but it may still have no label, or one.

An edit is a small mapping that the page sends, such as `{"do": "description", "label": 0, "place": 2, "text": "..."}`.
The page adds what it shows at that place, so that an edit meant for another label is refused: `of`, the name of the
label, and `was`, the description (None below the last one).
"""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

from labelspace.errors import InputError, LabelFileError
from labelspace.labels import Label, LabelSpace
from labelspace.labels.document import DEFAULT_NAME, DEFAULT_TEMPLATE, Document, FromFile, clean_template, read_document
from labelspace.labels.files import read_yaml
from labelspace.labels.label import quoted

FILLERS = ("\x7e filler 1", "\x7e filler 2")
"""Names of labels that stand beside those of a file with fewer than two."""

FIELDS = ("name", "phrase", "verbalizer")
"""Texts of a label that an edit may set."""


def read_draft(text: str, file: str) -> Document:
    """Return the contents of a label file that may have fewer than two labels.

    Args:
        text: YAML.
        file: its name in errors.

    Raises:
        LabelFileError: the file cannot be used, or its texts may have several labels.
    """
    data, source = read_yaml(text, file)
    if data is None:
        return Document(None, None, (), False, ())
    document = _with_fillers(data, source)
    if document.several:
        raise LabelFileError(
            f"{file}: several is true, and the studio shows one label a text; remove it, or use labelspace fit."
        )
    return document


def _with_fillers(data: Any, source: FromFile) -> Document:
    """Read data; if it has fewer than two labels, read it with others beside them and drop these."""
    labels = data.get("labels") if isinstance(data, Mapping) else None
    short = isinstance(data, Mapping) and "labels" in data and (labels is None or len(labels) < 2)
    if not short or not (labels is None or isinstance(labels, (list, Mapping))):
        return read_document(data, source)
    if isinstance(labels, Mapping):
        filled: Any = {**labels, **dict.fromkeys(FILLERS)}
    else:
        filled = [*(labels or ()), *FILLERS]
    found = read_document({**data, "labels": filled}, source)
    return replace(found, labels=found.labels[:-2])


def as_space(draft: Document) -> LabelSpace | None:
    """Return the label space of a draft; None while it has fewer than two labels."""
    if len(draft.labels) < 2:
        return None
    return LabelSpace(
        draft.labels,
        name=draft.name or DEFAULT_NAME,
        template=draft.template or DEFAULT_TEMPLATE,
        outside=draft.outside,
    )


def as_data(draft: Document) -> dict[str, Any]:
    """Return a draft as plain data, shaped like a label file."""
    space = as_space(replace(draft, labels=(*draft.labels, *map(Label, FILLERS))))
    assert space is not None
    filled = space.to_dict()
    left_out = {key for key in ("name", "template") if getattr(draft, key) is None}
    return {key: value for key, value in filled.items() if key not in left_out} | {"labels": filled["labels"][:-2]}


def edited(draft: Document, edit: Mapping[str, Any]) -> Document:
    """Return a draft after an edit.

    Raises:
        LabelFileError: a text is invalid, or a name is used twice.
        InputError: there is no such edit, label or description, or another one is at its place.
    """
    do = edit.get("do")
    if do == "template":
        return replace(draft, template=clean_template(edit.get("text")))
    labels = list(draft.labels)
    if do == "add label":
        labels.append(Label(_text(edit)))
    elif do in FIELDS:
        place = _label(edit, labels)
        labels[place] = replace(labels[place], **{str(do): _text(edit) or None})
    elif do in ("remove label", "description", "remove description"):
        place = _label(edit, labels)
        if do == "remove label":
            del labels[place]
        else:
            texts = list(labels[place].descriptions)
            _change(texts, edit, remove=do != "description")
            labels[place] = replace(labels[place], descriptions=texts)
    else:
        raise InputError(f"the studio knows no edit {do!r}; reload the page.")
    names = [label.name for label in labels]
    twice = next((name for name in names if names.count(name) > 1), None)
    if twice is not None:
        raise LabelFileError(f"another label is called {quoted(twice)}; choose another name.")
    return replace(draft, labels=tuple(labels))


def _change(texts: list[str], edit: Mapping[str, Any], *, remove: bool) -> None:
    """Set, add or remove a description; the place after the last adds one."""
    if not remove and edit.get("place") == len(texts):
        _check_shown(edit, "was", None)
        texts.append(_text(edit))
        return
    place = _place(edit, "place", texts)
    _check_shown(edit, "was", texts[place])
    if remove:
        del texts[place]
    else:
        texts[place] = _text(edit)


def _text(edit: Mapping[str, Any]) -> str:
    text = edit.get("text")
    if not isinstance(text, str):
        raise InputError(f"an edit has a text. Got {type(text).__name__} instead; reload the page.")
    return text.strip()


def _label(edit: Mapping[str, Any], labels: Sequence[Label]) -> int:
    place = _place(edit, "label", labels)
    _check_shown(edit, "of", labels[place].name)
    return place


def _check_shown(edit: Mapping[str, Any], key: str, now: str | None) -> None:
    if edit.get(key, now) != now:
        raise InputError(
            "the labels have changed since the page showed them, so this edit was left out; make it again."
        )


def _place(edit: Mapping[str, Any], key: str, items: Sequence[Any]) -> int:
    place = edit.get(key)
    if not isinstance(place, int) or isinstance(place, bool) or not 0 <= place < len(items):
        raise InputError(f"there is no {key} {place!r}; reload the page.")
    return place
