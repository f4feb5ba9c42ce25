"""The label space: labels in an order, with the template that turns each phrase into a sentence."""

import os
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any, final

from labelspace.checks import as_seed, check_number, did_you_mean
from labelspace.errors import LabelFileError
from labelspace.labels.document import (
    DEFAULT_NAME,
    DEFAULT_TEMPLATE,
    NOT_BOTH,
    SEPARATOR,
    Document,
    FromDict,
    check_count,
    clean_template,
    read_document,
)
from labelspace.labels.files import read_file, write_file
from labelspace.labels.label import Label, clean_name, clean_texts, described, quoted
from labelspace.seeds import child_seed


@final
@dataclass(frozen=True, init=False, repr=False)
class LabelSpace:
    """Two or more labels and what they mean.

    Immutable: `add`, `rename`, `remove`, `reorder` and `with_descriptions` return new spaces. Two spaces are equal, and
    have the same hash, if their names, templates, labels and `several` are.

    Args:
        labels: the labels, in the order of the columns of every score matrix; names are unique and case-sensitive.
        name: name of the space in reports and saved models.
        template: the sentence around each label's phrase; it contains `{label}`. `{{` and `}}` are literal braces.
        outside: texts that describe documents without any of these labels; a document nearer to one of them than to
            its label gets none.
        several: True: a text may have several of the labels, or none; no name may contain `|` then, which joins names.

    Raises:
        LabelFileError: fewer than two labels, a duplicate name, or an invalid template.

    Example:
        >>> space = LabelSpace([Label("sports", "sport and games"), Label("world")], name="news")
        >>> space
        LabelSpace('news', 2 labels, 0 descriptions)
        >>> space.verbalizers
        ('This text is about sport and games.', 'This text is about world.')
        >>> "sports" in space, space.index("world"), space["world"].name
        (True, 1, 'world')
    """

    labels: tuple[Label, ...]
    name: str
    template: str
    outside: tuple[str, ...]
    several: bool

    def __init__(
        self,
        labels: Iterable[Label],
        *,
        name: str = DEFAULT_NAME,
        template: str = DEFAULT_TEMPLATE,
        outside: Iterable[str] = (),
        several: bool = False,
    ) -> None:
        labels = tuple(labels)
        for label in labels:
            if not isinstance(label, Label):
                raise LabelFileError(
                    f"labels must be Label objects. Got {described(label)}; "
                    "LabelSpace.from_names takes names, LabelSpace.from_dict takes plain data."
                )
        object.__setattr__(self, "labels", labels)
        object.__setattr__(self, "name", clean_name(name, "name", ""))
        object.__setattr__(self, "template", clean_template(template))
        object.__setattr__(self, "outside", clean_texts(outside, "outside", ""))
        object.__setattr__(self, "several", several)
        if self.outside and several:
            raise LabelFileError(NOT_BOTH)
        check_count(self.names, "")
        for i, label in enumerate(labels):
            if self._positions[label.name] != i:
                raise LabelFileError(f"label {quoted(label.name)}: the name is used twice; rename or remove one.")
            if several and SEPARATOR in label.name:
                raise LabelFileError(
                    f"label {quoted(label.name)}: {SEPARATOR!r} stands between the names of a text's several labels; "
                    "rename it."
                )

    # ---- reading and writing

    @classmethod
    def from_file(
        cls, path: str | os.PathLike[str], *, name: str | None = None, template: str | None = None
    ) -> "LabelSpace":
        """Read a label file.

        Args:
            path: a YAML (.yaml, .yml), JSON (.json) or CSV (.csv) file, in UTF-8.
            name: replaces the name in the file.
            template: replaces the template in the file; a CSV file has none.

        Raises:
            LabelFileError: the file cannot be used; the message names the file, line and label.

        Example:
            >>> import pathlib, tempfile
            >>> with tempfile.TemporaryDirectory() as folder:
            ...     file = pathlib.Path(folder) / "labels.csv"
            ...     _ = file.write_text("label,description\\nsports,Results of matches.\\nworld,News of nations.\\n")
            ...     LabelSpace.from_file(file, name="news").descriptions
            (('Results of matches.',), ('News of nations.',))
        """
        return cls._from_document(read_document(*read_file(path)), name, template)

    @classmethod
    def from_dict(cls, data: Mapping[str, Any]) -> "LabelSpace":
        """Make a label space from plain data, shaped like a label file.

        Args:
            data: a mapping with `labels` and optionally `name`, `template` and `several`, or the value of `labels`
                alone: a list of names or of mappings (with `name`, `phrase`, `verbalizer`, `descriptions`), or a
                mapping from names to one description or a list of them.

        Raises:
            LabelFileError: the data cannot be used; the message names the place, such as `labels[2] ('world')`.

        Example:
            >>> LabelSpace.from_dict({"name": "news", "labels": {"sports": ["Results of matches."], "world": []}})
            LabelSpace('news', 2 labels, 1 description)
        """
        return cls._from_document(read_document(data, FromDict()), None, None)

    @classmethod
    def from_names(
        cls, names: Iterable[str], *, name: str = DEFAULT_NAME, template: str = DEFAULT_TEMPLATE
    ) -> "LabelSpace":
        """Make a label space from names alone; each name is its own phrase.

        Args:
            names: two or more unique names.
            name: name of the space.
            template: the sentence around each name.

        Raises:
            LabelFileError: fewer than two names, a duplicate name, or an invalid template.

        Example:
            >>> LabelSpace.from_names(["sports", "world"], template="News about {label}.").verbalizers
            ('News about sports.', 'News about world.')
        """
        if isinstance(names, str):
            raise LabelFileError(f"names must be a list of names. Got {described(names)}; put it in a list.")
        return cls([Label(label) for label in names], name=name, template=template)

    @classmethod
    def _from_document(cls, document: Document, name: str | None, template: str | None) -> "LabelSpace":
        name = name if name is not None else document.name
        template = template if template is not None else document.template
        return cls(
            document.labels,
            name=DEFAULT_NAME if name is None else name,
            template=DEFAULT_TEMPLATE if template is None else template,
            outside=document.outside,
            several=document.several,
        )

    def to_dict(self) -> dict[str, Any]:
        """Return plain data from which `from_dict` makes an equal space, without empty keys.

        Example:
            >>> LabelSpace.from_names(["sports", "world"]).to_dict()["labels"]
            [{'name': 'sports'}, {'name': 'world'}]
        """
        labels = []
        for label in self.labels:
            item: dict[str, Any] = {"name": label.name}
            if label.phrase is not None:
                item["phrase"] = label.phrase
            if label.verbalizer is not None:
                item["verbalizer"] = label.verbalizer
            if label.descriptions:
                item["descriptions"] = list(label.descriptions)
            if label.excludes:
                item["not"] = list(label.excludes)
            labels.append(item)
        outside = {"outside": list(self.outside)} if self.outside else {}
        several = {"several": True} if self.several else {}
        return {"name": self.name, "template": self.template, **several, **outside, "labels": labels}

    def to_file(self, path: str | os.PathLike[str]) -> None:
        """Write a label file from which `from_file` reads an equal space.

        Writing is atomic: a killed write leaves the old file or the new one.

        Args:
            path: a file that ends in .yaml, .yml or .json; an existing one is replaced.

        Raises:
            LabelFileError: another extension.
            OutputError: the file cannot be written.

        Example:
            >>> import tempfile
            >>> space = LabelSpace.from_names(["yes", "no"])
            >>> with tempfile.TemporaryDirectory() as folder:
            ...     space.to_file(f"{folder}/labels.yaml")
            ...     LabelSpace.from_file(f"{folder}/labels.yaml") == space
            True
        """
        write_file(path, self.to_dict())

    # ---- contents

    @cached_property
    def names(self) -> tuple[str, ...]:
        """The name of each label."""
        return tuple(label.name for label in self.labels)

    @cached_property
    def verbalizers(self) -> tuple[str, ...]:
        """The sentence for each label: its verbalizer, or the template with its phrase or name."""
        return tuple(label.verbalize(self.template) for label in self.labels)

    @cached_property
    def descriptions(self) -> tuple[tuple[str, ...], ...]:
        """The descriptions of each label."""
        return tuple(label.descriptions for label in self.labels)

    def index(self, name: str) -> int:
        """Return the position of the label with this name.

        Raises:
            LabelFileError: no label has this name.
        """
        position = self._positions.get(name) if isinstance(name, str) else None
        if position is None:
            hint = did_you_mean(str(name), self.names)
            first = ", ".join(map(quoted, self.names[:8])) + (", ..." if len(self) > 8 else "")
            raise LabelFileError(
                f"{quoted(self.name)} has no label of this name. Got {described(name)}.{hint} It has: {first}."
            )
        return position

    def __getitem__(self, name: str) -> Label:
        return self.labels[self.index(name)]

    def __contains__(self, item: object) -> bool:
        return item in self._positions if isinstance(item, str) else item in self.labels

    def __iter__(self) -> Iterator[Label]:
        return iter(self.labels)

    def __len__(self) -> int:
        return len(self.labels)

    def __repr__(self) -> str:
        count = sum(len(label.descriptions) for label in self.labels)
        return f"LabelSpace({self.name!r}, {len(self)} labels, {count} description{'' if count == 1 else 's'})"

    @cached_property
    def _positions(self) -> dict[str, int]:
        return {label.name: i for i, label in enumerate(self.labels)}

    # ---- new spaces

    def add(self, label: Label) -> "LabelSpace":
        """Return a space with one more label at the end.

        Args:
            label: a label with a new name.

        Raises:
            LabelFileError: the name is already used.

        Example:
            >>> LabelSpace.from_names(["sports", "world"]).add(Label("business")).names
            ('sports', 'world', 'business')
        """
        return replace(self, labels=(*self.labels, label))

    def rename(self, old: str, new: str) -> "LabelSpace":
        """Return a space in which one label has another name; no score changes.

        A label without phrase or verbalizer gets its old name as its phrase, so that the encoder reads the same text.
        To change the verbalizer too, build a new `Label`.

        Args:
            old: the current name.
            new: the new name.

        Raises:
            LabelFileError: no label has the old name, or another one has the new name.

        Example:
            >>> space = LabelSpace.from_names(["sports", "world"]).rename("sports", "Sport")
            >>> space.names, space.verbalizers[0]
            (('Sport', 'world'), 'This text is about sports.')
        """
        label = self[old]
        new = clean_name(new, "the new name", "")
        if new == old:
            return self
        if new in self:
            raise LabelFileError(f"label {quoted(old)}: another label is called {quoted(new)}; choose another name.")
        phrase = old if label.phrase is None and label.verbalizer is None else label.phrase
        renamed = replace(label, name=new, phrase=phrase)
        return replace(self, labels=(renamed if each is label else each for each in self.labels))

    def remove(self, name: str) -> "LabelSpace":
        """Return a space without one label.

        Raises:
            LabelFileError: no label has this name, or fewer than two would be left.

        Example:
            >>> LabelSpace.from_names(["sports", "world", "business"]).remove("world").names
            ('sports', 'business')
        """
        gone = self.index(name)
        return replace(self, labels=(label for i, label in enumerate(self.labels) if i != gone))

    def reorder(self, names: Iterable[str]) -> "LabelSpace":
        """Return a space with the same labels in another order.

        Args:
            names: every name of this space, once.

        Raises:
            LabelFileError: a name is missing, unknown or given twice.

        Example:
            >>> LabelSpace.from_names(["sports", "world"]).reorder(["world", "sports"]).names
            ('world', 'sports')
        """
        names = list(names)
        labels = [self[name] for name in names]
        given = set(names)
        missing = [name for name in self.names if name not in given]
        if missing:
            raise LabelFileError(f"the new order leaves out {', '.join(map(quoted, missing))}; give every name once.")
        return replace(self, labels=labels)

    def with_descriptions(self, count: int, seed: int = 0) -> "LabelSpace":
        """Return a space with at most `count` descriptions per label, drawn at random, in their original order.

        The rank of a description in the draw depends only on the seed, the label's name and the description. Other
        labels and descriptions do not affect it, and a draw of three contains the draw of two.

        Args:
            count: descriptions to keep per label, 0 or more; labels that have fewer keep all.
            seed: seed of the draw, 0 or more.

        Raises:
            ConfigError: the count or the seed is not a whole number, or is below 0.

        Example:
            >>> space = LabelSpace.from_dict({"labels": {"sports": ["a", "b", "c"], "world": ["d"]}})
            >>> space.with_descriptions(2).descriptions
            (('a', 'b'), ('d',))
        """
        check_number("count", count, least=0, whole=True)
        seed = as_seed(seed)

        def draw(label: Label) -> Label:
            texts = label.descriptions
            order = sorted(range(len(texts)), key=lambda i: child_seed(seed, "descriptions", label.name, texts[i]))
            return replace(label, descriptions=tuple(texts[i] for i in sorted(order[:count])))

        return replace(self, labels=(draw(label) for label in self.labels))
