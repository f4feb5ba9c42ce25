"""Views by name: what looks at the documents of a pool.

NAME or FOLDER        an encoder, trained on the labels' descriptions first
zero-shot:NAME        an encoder as it is
FOLDER                a classifier that labelspace saved, of the same labels
saved:NAME            the same, by its folder or its name on the hub
nli:NAME              an NLI cross-encoder
reranker:NAME         a reranker
llm:NAME[#FILE]       a local language model; FILE is a GGUF file in its folder
openai:MODEL[@URL]    a hosted model; the texts leave this machine
words                 TF-IDF and a linear model, which learns from the other views
"""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from labelspace.classify import DescriptionClassifier, ZeroShotClassifier, load
from labelspace.classify.anchors import encode_labels
from labelspace.classify.arguments import as_encoder
from labelspace.classify.base import Classifier
from labelspace.classify.bi_encoder import BiEncoderClassifier
from labelspace.classify.none_of_these import still_holding
from labelspace.classify.saved.fetching import model_folder
from labelspace.config import DecisionConfig
from labelspace.corpus import Kind
from labelspace.encoders import Encoder
from labelspace.errors import ConfigError
from labelspace.families.endpoint_address import check_endpoint
from labelspace.header import CLASSIFIER, kind_of
from labelspace.labels import LabelSpace

WORDS = "words"
ZERO_SHOT = "zero-shot:"
SAVED = "saved:"
FAMILIES = ("nli", "reranker", "llm", "openai")
STEPS, WIDTH = 60, 384
"""Updates of `"auto"` up to this width."""


def check_views(views: Any, *, student: str | None) -> tuple[tuple[Any, ...], bool]:
    """Return the views besides words, and whether words are one.

    Raises:
        ConfigError: there is no view, one is no name, a slow view has no student, or a hosted model has no usable URL
            or no key.
        MissingDependencyError: a hosted model needs the package openai.
    """
    if isinstance(views, str) or not isinstance(views, Sequence) or not views:
        raise ConfigError(f"views must be a list such as ['all-MiniLM-L6-v2', 'words']. Got {views!r} instead.")
    others = tuple(view for view in views if view != WORDS)
    for view in others:
        if not isinstance(view, (str, Path, Encoder, Classifier)) or view == "":
            raise ConfigError(f"a view is a name, a folder, an Encoder or a fitted classifier. Got {view!r} instead.")
        if isinstance(view, str) and family_of(view) == "openai":
            check_endpoint(view)
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
    if family_of(name) == "openai":  # its URL, which may hold a password, is not repeated
        raise ConfigError("student must be 'words', an encoder by name, or None. Got a hosted model; make it a view.")
    is_view = is_saved(name) or family_of(name) or name.startswith(ZERO_SHOT)
    if not isinstance(student, (str, Path)) or not name or is_view:
        raise ConfigError(f"student must be 'words', an encoder by name, or None. Got {student!r} instead.")


def is_saved(view: Any) -> bool:
    """Return whether a view is a classifier that labelspace saved: its folder, or `saved:` and its name."""
    if isinstance(view, str) and view.startswith(SAVED):
        return True
    return isinstance(view, (str, Path)) and Path(view).is_dir() and kind_of(Path(view)) == CLASSIFIER


def family_of(view: Any) -> str | None:
    """Return the family of a view that reads label and text together, `"nli"`, `"reranker"`, `"llm"` or `"openai"`.

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


def check_scorer(view: str, *, offline: bool | None) -> None:
    """Refuse a view that reads label and text together and is not there, without opening it.

    Raises:
        EncoderError: no model has this name.
        RemoteCodeError: the model has its own code.
    """
    from labelspace.families.cross_encoder import find_folder
    from labelspace.families.gguf import find_gguf

    kind, name, file = _parts(view)
    if kind == "openai":  # its server is asked first when the view is
        return
    if find_gguf(name, file or None, None, offline) is None:
        find_folder(name, trust_remote_code=False, offline=offline)


def open_scorer(view: str, **options: Any) -> Any:
    """Open a view that reads label and text together.

    Args:
        view: `"nli:NAME"`, `"reranker:NAME"`, `"llm:NAME"` or `"openai:MODEL"`.
        options: options of the scorer, such as `device`; a hosted model has none.
    """
    from labelspace.families import EndpointScorer, EntailmentScorer, LLMScorer, RerankerScorer

    kind, name, file = _parts(view)
    if kind == "openai":
        return EndpointScorer(view.removeprefix("openai:"))
    made: Any = {"nli": EntailmentScorer, "reranker": RerankerScorer, "llm": LLMScorer}[kind]
    return made(name, **options, **({"gguf_file": file} if file else {}))


def _parts(view: str) -> tuple[str, str, str]:
    """Return family, name and GGUF file of a view; the file is empty if none is named."""
    kind, _, rest = view.partition(":")
    name, _, file = rest.partition("#")
    return kind, name, file


def fit_view(
    view: Any,
    space: LabelSpace,
    options: Mapping[str, Any],
    *,
    steps: int | str = "auto",
    long_texts: str = DecisionConfig.long_texts,
    **training: Any,
) -> Classifier:
    """Return a fitted classifier of the labels; of a fitted one a copy, which knows the labels' present texts.

    Args:
        view: an encoder by name, an Encoder, `zero-shot:NAME`, a saved classifier (its folder, or `saved:NAME`) or a
            fitted one.
        space: the labels.
        options: arguments of `Encoder` for a name; a saved classifier takes device and offline alone.
        steps: updates on the descriptions, for an encoder that is trained first; `"auto"`: by its width.
        long_texts: how an encoder reads long texts, see `config.DecisionConfig`.
        training: other arguments of `DescriptionClassifier`.

    Raises:
        ConfigError: a fitted classifier has other labels, or gives a text several.
    """
    model = view
    if is_saved(view):
        place = model_folder(str(view).removeprefix(SAVED), offline=options.get("offline"))
        model = load(place, device=options.get("device"))
    if isinstance(model, Classifier):
        if not hasattr(model, "head_"):
            raise ConfigError(f"{name_of(view)} is not fitted (a clone never is); fit it, or give its saved folder.")
        if model.label_space_.several:
            raise ConfigError(
                f"{name_of(view)} gives a text several labels, and a consensus gives it one; leave it out."
            )
        if model.reads_ is not Kind.TEXTS:
            raise ConfigError(f"{name_of(view)} reads pairs of texts, and a consensus is about single ones.")
        if set(model.label_space_.names) != set(space.names):
            raise ConfigError(
                f"{name_of(view)} has the labels {', '.join(model.label_space_.names)}, which are not those of the "
                "label file; give a model of the same labels."
            )
        return _copy(model, space)
    if isinstance(view, str) and view.startswith(ZERO_SHOT):
        encoder = {"name": view.removeprefix(ZERO_SHOT), **options}
        return ZeroShotClassifier(space, encoder=encoder, long_texts=long_texts).fit()
    encoder = view if isinstance(view, Encoder) else as_encoder({"name": view, **options})
    if isinstance(steps, str):
        steps = max(1, round(STEPS * min(1, WIDTH / encoder.dimension)))
    made = {"max_steps": steps, "long_texts": long_texts, **training}
    return DescriptionClassifier(space, encoder=encoder, **made).fit()


def _copy(model: Classifier, space: LabelSpace) -> Classifier:
    """Return a copy, since the caller may go on using the model; one on an encoder has the texts of `space`."""
    state, given = model.state(), model.get_params(deep=False)
    if isinstance(model, BiEncoderClassifier) and state.space != space:
        state = replace(state, space=space, label_vectors=encode_labels(state.encoder, space))
    copy: Any = type(model).from_state(state)
    for name in ("encoder", "cache"):  # a state does not hold them
        if name in given:
            setattr(copy, name, given[name])
    copy.temperature_ = model.temperature_
    copy.none_ = still_holding(model.none_, copy.label_space_)
    return copy
