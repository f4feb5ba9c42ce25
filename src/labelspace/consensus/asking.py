"""Views are asked one after another: fast ones about all documents, slow ones about those that need them most."""

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, final

import numpy as np
from scipy.special import softmax

from labelspace.classify import Classifier, DescriptionClassifier
from labelspace.classify.by_joint import Seen, see
from labelspace.classify.long_texts import tell_cost
from labelspace.config import ConsensusConfig
from labelspace.consensus.calls import tell_calls
from labelspace.consensus.members import Members
from labelspace.consensus.prior import as_sure_as
from labelspace.consensus.store import ScoreStore
from labelspace.consensus.views import check_scorer, family_of, name_of, open_scorer
from labelspace.errors import ConfigError
from labelspace.progress import Progress, progress_bar, stage

OF_SLOW = ("device", "dtype", "offline")
"""What slow views take of `encoder_options`: their prompts are longer than documents, so other limits hold for them."""


@final
@dataclass(frozen=True)
class View:
    """A view that was checked."""

    name: str
    """Name for reports."""

    given: Any
    """What `Members.fit` takes; the name of a slow view."""

    slow: bool
    """Whether it reads text and label together, and so sees a part of the documents."""


def checked_views(others: Sequence[Any], members: Members) -> list[View]:
    """Return the views, the fast ones first, after looking at all of them.

    Args:
        others: the views besides words, from `check_views`.
        members: opens the fast ones.

    Raises:
        ConfigError: all are slow, or a classifier has other labels.
        EncoderError: one is not there.
    """
    slow = [View(view, view, True) for view in others if family_of(view)]
    if len(slow) == len(others):
        raise ConfigError("views needs an encoder or a saved classifier beside slow views; add all-MiniLM-L6-v2.")
    for view in slow:
        check_scorer(view.name, offline=members.options.get("offline"))
    return [View(name_of(view), members.checked(view), False) for view in others if not family_of(view)] + slow


def ask(views: Sequence[View], texts: list[str], members: Members) -> tuple[tuple[Classifier, ...], list[Seen]]:
    """Fit the fast views, and ask every view.

    Args:
        views: from `checked_views`.
        texts: the documents.
        members: opens and trains the fast views.

    Returns:
        The fast views, fitted, and what each view says; of slow ones, a row is NaN where they were not asked.
    """
    fitted: list[Classifier] = []
    seen: list[Seen] = []
    for number, view in enumerate(views):
        stage(f"view {number + 1} of {len(views)}: {view.name}", verbose=members.verbose)
        if not view.slow:
            fitted.append(members.fit(number, view.given))
            tell_cost(fitted[-1], texts)
        with progress_bar("reading the pool", verbose=members.verbose) as report:
            if view.slow:
                seen.append(ask_slow(view.name, texts, seen[: len(fitted)], members, report))
            else:
                scale = scale_of(fitted[-1], view.given, members.config)
                seen.append(see(fitted[-1], texts, members.space, scale=scale, report=report))
    return tuple(fitted), seen


def scale_of(model: Classifier, given: Any, config: ConsensusConfig) -> float:
    """Return what a view's logits are multiplied by: one trained here gets the temperature of the configuration.

    Args:
        model: the view, fitted.
        given: the view as it was given; a classifier keeps its own temperature.
        config: the settings.
    """
    trained = isinstance(model, DescriptionClassifier) and not isinstance(given, Classifier)
    return model.decision().temperature / config.temperature if trained else 1.0


def ask_slow(view: str, texts: list[str], fast: Sequence[Seen], members: Members, report: Progress) -> Seen:
    """Return what a slow view says about the documents where the fast ones are least sure together."""
    together = np.mean([softmax(one.logits, axis=1) for one in fast], axis=0)
    asked = np.sort(np.argsort(together.max(axis=1), kind="stable")[: members.config.slow_documents])
    place = None if members.checkpoint is None else Path(members.checkpoint).expanduser() / "scores"
    store = ScoreStore(place, view, [texts[row] for row in asked], members.space)
    options = {name: members.options[name] for name in OF_SLOW if name in members.options}
    tell_calls(view, store, members.space, price=members.config.price)
    scores = store.ask(lambda: open_scorer(view, **options), report)
    logits = np.full((len(texts), len(members.space)), np.nan)
    confidence = float(np.mean([softmax(one.logits[asked], axis=1).max(axis=1).mean() for one in fast]))
    logits[asked] = as_sure_as(scores.astype(np.float64), confidence)
    return Seen(logits)
