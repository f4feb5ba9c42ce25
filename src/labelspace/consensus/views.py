"""Views by name: what looks at the documents of a pool.

NAME or FOLDER        an encoder, trained on the labels' descriptions first
zero-shot:NAME        an encoder as it is
FOLDER                a classifier that labelspace saved, of the same labels
nli:NAME              an NLI cross-encoder
reranker:NAME         a reranker
llm:NAME[#FILE]       a local language model; FILE is a GGUF file in its folder
words                 TF-IDF and a linear model, which learns from the other views
"""

from collections.abc import Sequence
from pathlib import Path
from typing import Any

from labelspace.classify import DescriptionClassifier, ZeroShotClassifier, load
from labelspace.classify.base import Classifier
from labelspace.corpus import Kind
from labelspace.encoders import Encoder
from labelspace.errors import ConfigError
from labelspace.header import CLASSIFIER, kind_of
from labelspace.labels import LabelSpace

WORDS = "words"
ZERO_SHOT = "zero-shot:"
FAMILIES = ("nli", "reranker", "llm")


def check_views(views: Any, *, student: str | None) -> tuple[tuple[Any, ...], bool]:
    """Return the views besides words, and whether words are one.

    Raises:
        ConfigError: there is no view, one is no name, or a slow view has no student.
    """
    if isinstance(views, str) or not isinstance(views, Sequence) or not views:
        raise ConfigError(f"views must be a list such as ['all-MiniLM-L6-v2', 'words']. Got {views!r} instead.")
    others = tuple(view for view in views if view != WORDS)
    for view in others:
        if not isinstance(view, (str, Path, Encoder, Classifier)) or view == "":
            raise ConfigError(f"a view is a name, a folder, an Encoder or a fitted classifier. Got {view!r} instead.")
        if student is None and family_of(view):
            raise ConfigError(f"{view} is slow and not saved with a model; give a student, an encoder or 'words'.")
    if not others:
        raise ConfigError("views needs one besides 'words', which learns from the others. Add an encoder.")
    return others, len(others) < len(views)


def check_student(student: Any) -> None:
    """Refuse what cannot be a student, before any work.

    Raises:
        ConfigError: it is not None, `"words"`, the name of an encoder, or an Encoder.
    """
    if student is None or isinstance(student, Encoder) or student == WORDS:
        return
    name = str(student)
    saved = Path(name).is_dir() and kind_of(Path(name)) == CLASSIFIER
    if not isinstance(student, (str, Path)) or not name or saved or family_of(name) or name.startswith(ZERO_SHOT):
        raise ConfigError(f"student must be 'words', an encoder by name, or None. Got {student!r} instead.")


def family_of(view: Any) -> str | None:
    """Return the family of a view that reads label and text together, `"nli"`, `"reranker"` or `"llm"`.

    Example:
        >>> family_of("nli:some/model"), family_of("all-MiniLM-L6-v2")
        ('nli', None)
    """
    kind, colon, _ = str(view).partition(":")
    return kind if isinstance(view, str) and colon and kind in FAMILIES else None


def name_of(view: Any) -> str:
    """Return the name of a view for reports."""
    if isinstance(view, Classifier):
        return type(view).__name__
    return str(view.name if isinstance(view, Encoder) else view)


def open_scorer(view: str, **options: Any) -> Any:
    """Open a view that reads label and text together.

    Args:
        view: `"nli:NAME"`, `"reranker:NAME"` or `"llm:NAME"`.
        options: options of the scorer, such as `device`.
    """
    from labelspace.families import EntailmentScorer, LLMScorer, RerankerScorer

    kind, _, name = view.partition(":")
    name, _, file = name.partition("#")
    made: Any = {"nli": EntailmentScorer, "reranker": RerankerScorer, "llm": LLMScorer}[kind]
    return made(name, **options, **({"gguf_file": file} if file else {}))


def fit_view(view: Any, space: LabelSpace, **training: Any) -> Classifier:
    """Return a fitted classifier of the labels.

    Args:
        view: an encoder by name, an Encoder, `zero-shot:NAME`, a saved classifier or a fitted one.
        space: the labels.
        training: arguments of `DescriptionClassifier` for an encoder that is trained first.

    Raises:
        ConfigError: a fitted classifier has other labels.
    """
    model = view
    if isinstance(view, (str, Path)) and Path(view).is_dir() and kind_of(Path(view)) == CLASSIFIER:
        model = load(view)
    if isinstance(model, Classifier):
        if not hasattr(model, "head_"):
            raise ConfigError(f"{name_of(view)} is not fitted (a clone never is); fit it, or give its saved folder.")
        if model.reads_ is not Kind.TEXTS:
            raise ConfigError(f"{name_of(view)} reads pairs of texts, and a consensus is about single ones.")
        if set(model.label_space_.names) != set(space.names):
            raise ConfigError(
                f"{name_of(view)} has the labels {', '.join(model.label_space_.names)}, which are not those of the "
                "label file; give a model of the same labels."
            )
        return model
    if isinstance(view, str) and view.startswith(ZERO_SHOT):
        return ZeroShotClassifier(space, encoder=view.removeprefix(ZERO_SHOT)).fit()
    return DescriptionClassifier(space, encoder=view, **training).fit()
