"""The models that a service holds, and what they say about texts."""

import json
import sys
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any, final

from labelspace.classify.answers import Answers
from labelspace.classify.fitted import answerer
from labelspace.config.serving import ServingConfig
from labelspace.corpus import Documents, Kind
from labelspace.errors import ConfigError
from labelspace.labels import LabelSpace
from labelspace.serve.batching import Batcher, Job
from labelspace.serve.measures import Measures

if TYPE_CHECKING:
    from labelspace.encoders import Encoder
    from labelspace.serve.label_texts import KnownTexts


def bare(text: str) -> str:
    """Return a statement without capital letters and the mark at its end."""
    return text.strip().rstrip(".?!").casefold()


@final
class Served:
    """A model under its name.

    Args:
        name: what requests call it.
        classifier: the fitted classifier.
        created: seconds since 1970, of its folder.
        max_options: how many vectors of options are kept.
    """

    def __init__(self, name: str, classifier: Any, *, created: int = 0, max_options: int = 10_000) -> None:
        classifier = answerer(classifier)
        self.name, self.classifier, self.created = name, classifier, created
        self.labels: tuple[str, ...] = classifier.label_space_.names
        self.encoder: Encoder | None = getattr(classifier, "encoder_", None)
        self.options = _options(classifier, max_options)

    @property
    def space(self) -> LabelSpace:
        """The labels that the model was fitted on."""
        return self.classifier.label_space_

    @cached_property
    def columns(self) -> list[dict[str, set[int]]]:
        """The columns of labels by their texts: as they are written, then by `bare`."""
        found: list[dict[str, set[int]]] = [{}, {}]
        for column, (label, verbalizer) in enumerate(zip(self.space.labels, self.space.verbalizers, strict=True)):
            for text in (label.name, verbalizer, *label.descriptions):
                for known, form in zip(found, (str.strip, bare), strict=True):
                    known.setdefault(form(text), set()).add(column)
        return found

    @property
    def reads_pairs(self) -> bool:
        """Whether a document is a pair of texts."""
        return self.classifier.reads_ is Kind.PAIRS

    def answers(self, documents: Sequence[Any]) -> Answers:
        """Return the model's own answers."""
        return self.classifier.answers(Documents(list(documents), self.classifier.reads_))

    def count_tokens(self, documents: Sequence[Any]) -> int:
        """Count the tokens that were read; words, where the model has no encoder."""
        texts = [text for document in documents for text in (document if isinstance(document, tuple) else (document,))]
        if self.encoder is None:
            return sum(len(text.split()) for text in texts)
        return sum(map(len, self.encoder.tokenize(texts)))


def _options(classifier: Any, most: int) -> "KnownTexts | None":
    """Return what reads labels that a model was not fitted on; None if it compares texts with nothing but its own."""
    if getattr(classifier, "encoder_", None) is None:
        return None  # of words; it is served where torch is not installed
    from labelspace.classify.by_anchors import ByAnchors
    from labelspace.serve.label_texts import KnownTexts

    return KnownTexts(classifier.encoder_, most) if isinstance(classifier.head_, ByAnchors) else None


@final
@dataclass(frozen=True)
class Asked:
    """What is asked of each document."""

    spaces: tuple[LabelSpace | None, ...] = (None,)
    """Other labels, or the model's own (None)."""
    count: bool = False
    """Whether the tokens are counted."""


TOGETHER = 16
"""Texts of new options that are encoded before documents of others have their turn."""

Found = tuple[list[Answers], int]
"""The answers for each label space, and the number of tokens read (0 if it was not asked for)."""


def work(jobs: Sequence[Job]) -> list[Found]:
    """Return what each job asks; documents of all jobs go through the model together."""
    served: Served = jobs[0].model
    if served.options is not None:
        for role, text in (each for job in jobs for each in job.label_texts):
            served.options.encode([text], role=role)
    own = [job for job in jobs if None in job.asked.spaces]
    other = [job for job in jobs if any(space is not None for space in job.asked.spaces)]
    answers = _apart(own, served.answers)
    vectors = _apart(other, served.encoder.encode) if other and served.encoder else {}

    def found(job: Job, space: LabelSpace | None) -> Answers:
        if space is None or served.options is None:
            return answers[job]
        return served.options.answers(vectors[job], space)

    return [
        (
            [found(job, space) for space in job.asked.spaces],
            served.count_tokens(job.documents) if job.asked.count else 0,
        )
        for job in jobs
    ]


def _apart(jobs: Sequence[Job], together: Callable[[list[Any]], Any]) -> dict[Job, Any]:
    """Apply a function to the documents of all jobs at once; return the part of each job."""
    if not jobs:
        return {}
    whole = together([document for job in jobs for document in job.documents])
    parts, start = {}, 0
    for job in jobs:
        parts[job] = whole[start : start + len(job.documents)]
        start += len(job.documents)
    return parts


@final
class Room:
    """All models of a service, behind one queue.

    Args:
        models: the models; their names differ.
        config: limits.
        measures: what is counted.
        log_texts: True writes every text with its label to stderr, as JSON lines.
    """

    def __init__(
        self,
        models: Iterable[Served],
        config: ServingConfig,
        measures: Measures,
        *,
        log_texts: bool = False,
    ) -> None:
        self.log_texts = log_texts
        self.models = {served.name: served for served in models}
        self.config = config
        self.batcher = Batcher(work, config, measures.run)
        measures.waiting.set_function(lambda: self.batcher.waiting)
        self._measures = measures
        for served in self.models.values():
            measures.expect(served.name, served.labels)

    async def ask(
        self,
        served: Served,
        documents: Sequence[Any],
        spaces: Sequence[LabelSpace | None] = (None,),
        *,
        count: bool = False,
    ) -> Found:
        """Return the answers of a model for each label space, and how many tokens were read.

        Args:
            served: the model.
            documents: texts, or pairs of texts.
            spaces: other labels, or the model's own (None).
            count: True counts the tokens.

        Raises:
            BusyError: too many documents wait.
        """
        if served.options is not None:
            for space in filter(None, spaces):
                unknown = served.options.unknown(space)
                for start in range(0, len(unknown), TOGETHER):
                    await self.batcher.submit(served, [], Asked(()), unknown[start : start + TOGETHER])
        answers, tokens = await self.batcher.submit(served, documents, Asked(tuple(spaces), count))
        for space, own in zip(spaces, answers, strict=True):
            if space is None:
                self._measures.answered(served.name, own)
        if self.log_texts:
            for document, name in zip(documents, answers[0].names, strict=True):
                told = {"model": served.name, "text": document, "label": _shown(spaces[0], name)}
                sys.stderr.write(json.dumps(told, ensure_ascii=False) + "\n")
        return answers, tokens


def _shown(space: LabelSpace | None, name: str | None) -> str | None:
    """Return what a label is called: an option that is no label of the model has a number for a name."""
    if space is None or name is None:
        return name
    return space[name].phrase or space[name].verbalizer


def open_models(folders: Sequence[Path], config: ServingConfig, **options: Any) -> list[Served]:
    """Open saved models, under the names of their folders.

    Raises:
        ConfigError: two folders have the same name.
        ModelFolderError: a folder is no model.
    """
    from labelspace.classify.saved.opening import open_to_answer

    named: dict[str, Path] = {}
    for folder in folders:
        # A link keeps its own name, so that a release behind it changes no address.
        name = (folder.resolve() if folder.name in ("", "..") else folder).name
        if name in named:
            raise ConfigError(f"two models are called {name!r}: {named[name]} and {folder}; rename one of the folders.")
        named[name] = folder
    return [
        Served(
            name,
            open_to_answer(folder, **options),
            created=int(folder.stat().st_mtime) if folder.exists() else 0,
            max_options=config.max_options,
        )
        for name, folder in named.items()
    ]
