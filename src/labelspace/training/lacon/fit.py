"""Training on labelled texts from end to end: hold rows out, weigh the descriptions, train, tell what was done."""

import warnings
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, final

import numpy as np
import torch
from numpy.typing import NDArray

from labelspace.config import LaConConfig, SearchConfig, TrainingConfig
from labelspace.corpus import Pool
from labelspace.encoders import Encoder
from labelspace.errors import InputError, LabelSpaceWarning
from labelspace.labels import LabelSpace
from labelspace.progress import progress_bar
from labelspace.seeds import child_seed
from labelspace.training import engine
from labelspace.training.callbacks import Callback
from labelspace.training.checkpoint import Place, digest_of
from labelspace.training.description import FitResult, train_on_descriptions
from labelspace.training.description.sweep import sweep_texts
from labelspace.training.engine import Training
from labelspace.training.lacon.head import HeadShape, LaConHead
from labelspace.training.lacon.objective import LaConObjective, Rates, choose_heads
from labelspace.training.lacon.prior import (
    Prior,
    choose_prior,
    label_vectors,
    measure_agreement,
    place_labels,
    sums_of_rows,
)
from labelspace.training.rows import Document, Labelled, Targets, class_weights, split, tokenize
from labelspace.training.trainable import trainable_weights

# `validation="auto"`: the paper's share, where there are as many rows of each label as in its few-shot experiments,
# and a hundred rows are held out. Of fewer, macro-F1 is known to five points at best, which is more than epochs differ
# by, so that luck would choose the epoch and training would lose the rows.
AUTO_SHARE = 0.05
AUTO_ROWS = 20
AUTO_HELD_OUT = 100

# `learning_rate="auto"`: of an encoder this wide or less; a wider one moves as far at a lower rate.
AUTO_RATE = 1e-4
AUTO_WIDTH = 384


@final
@dataclass(frozen=True, kw_only=True)
class LaConFit:
    """What `fit` did: everything needed to tell a good run from a bad one, and to repeat it."""

    curve: Training | None
    """The training run; None where no row was labelled."""

    prior: Prior | None
    """The weight of the descriptions, and why; None where no row was labelled."""

    init: str | None
    """Where label embeddings started: `"descriptions"` (and rows), `"rows"` where these contradict all descriptions,
    or `"random"`; None where no row was labelled."""

    heads: int | None
    """Slices of eq. 4; None where it was not used."""

    labelled: int
    """Rows with a label."""

    unlabelled: int
    """Rows without one; they are used only where none has a label."""

    held_out: int
    """Labelled rows that were not trained on, but said when to stop."""

    device: str
    """Where it was trained."""

    seed: int
    """The seed of the run."""

    descriptions: FitResult | None = None
    """The run on descriptions alone: before the labelled rows, or instead of them; None where there was none."""

    def to_dict(self) -> dict[str, Any]:
        """Return plain values, ready for JSON."""
        return asdict(self)


def train_on_labels(
    encoder: Encoder,
    space: LabelSpace,
    documents: Sequence[Document],
    targets: Targets,
    config: LaConConfig,
    *,
    meaningful: bool,
    seed: int,
    described: LabelSpace | None = None,
    unlabelled: int = 0,
    pool: Pool | None = None,
    checkpoint: str | Path | None = None,
    callbacks: Sequence[Callback] = (),
    verbose: bool = False,
) -> tuple[LaConHead, LaConFit]:
    """Train an encoder, in place, and a new head on labelled texts.

    Args:
        encoder: its weights are changed.
        space: names and what they mean.
        documents: texts or pairs of texts, each of which has a label.
        targets: [text], the column of each one's label.
        config: objective, head, schedule.
        meaningful: False where the labels say nothing, as codes do.
        seed: of everything random.
        described: the same labels in the order in which descriptions alone are trained on; None: that of `space`.
        unlabelled: how many more rows there were, for the record.
        pool: all documents there are, with a label or without, for training on the descriptions; None: none.
        checkpoint: folder to keep unfinished training in, and to go on from where it holds some of this run.
        callbacks: told losses and rates at every step; steps go on counting from those on the descriptions.
        verbose: True shows a bar on a terminal, plain lines elsewhere.

    Returns:
        The head, and what was done.

    Warns:
        LabelSpaceWarning: training was interrupted.

    Raises:
        InputError: a validation share is asked for, and a label has a single row.
        ConfigError: `heads` does not divide the width, or the checkpoint is of another run.
        OutputError: a checkpoint cannot be written.
        TrainingError: the loss is not finite.
        KeyboardInterrupt: it came before the end of the first epoch; later, what was learnt of the rows is kept.
    """
    place = Place.of_fit(
        checkpoint,
        "rows",
        encoder,
        config=config.to_dict(),
        seed=seed,
        labels=digest_of([space.to_dict(), meaningful]),
        rows=digest_of(zip(documents, targets.tolist(), strict=True)),
    )
    words = config.head != "vanilla"
    heads = None if config.objective != "lacon" else choose_heads(config.heads, _width(encoder, words=words))
    everything = Labelled(tokenize(encoder, documents), targets)
    train, held_out = everything, None
    share = _share(config, targets, space)
    if share:
        ours, theirs = split(targets, share, seed=seed)
        train, held_out = everything.take(ours), everything.take(theirs)

    weights = class_weights(config.class_weight, space.names, train.targets)
    agreement = anchors = None
    if meaningful:
        anchors = label_vectors(encoder, space, words=words)
        agreement = measure_agreement(encoder, anchors, train.rows, train.targets, space.names, words=words, seed=seed)
    counts = np.bincount(train.targets, minlength=len(space))
    prior = choose_prior(config, agreement, counts, space.names)
    contradicted = set(agreement.contradicted or ()) if agreement is not None else set()

    on_descriptions = None
    believed = _described(described or space, contradicted if prior.reason != "given" else set())
    if prior.weight and config.description_steps and believed is not None:
        shared = {"seed": seed, "pool": pool, "checkpoint": checkpoint, "callbacks": callbacks}
        on_descriptions = train_before_labels(encoder, believed, config, **shared, verbose=verbose)
        if on_descriptions.curve.stop_reason == "interrupted":
            raise KeyboardInterrupt  # no labelled row was seen yet, so there is nothing that this fit is asked for
        anchors = label_vectors(encoder, space, words=words)

    placed = config.init == "descriptions" and anchors is not None
    places = None
    if placed and anchors is not None:
        sums = sums_of_rows(encoder, train.rows, train.targets, len(space), words=words)
        columns = [column for column, name in enumerate(space.names) if name in contradicted]
        places = place_labels(anchors, sums, counts, columns)
    head = _new_head(encoder, config, len(space), places, seed=seed)
    # Squared: or four rows of each label undo in the encoder what the descriptions have taught it (docs/LOG.md).
    rate = choose_rate(config.learning_rate, encoder.backbone.hidden_size)
    rates = Rates(encoder=rate * prior.rate**2, head=config.head_learning_rate * prior.rate)
    before = on_descriptions.curve.steps if on_descriptions is not None else 0
    with trainable_weights(encoder.backbone) as of_encoder, progress_bar("training", show=verbose) as report:
        objective = LaConObjective(
            encoder,
            of_encoder,
            head,
            train,
            held_out,
            _descriptions_of(encoder, space, prior),
            config,
            rates=rates,
            heads=heads or 1,
            prior=np.array(prior.by_label),
            class_weights=weights,
            seed=child_seed(seed, "training"),
        )
        told = [_counting_from(before, callback) for callback in callbacks]
        curve = engine.train(objective, checkpoint=place, callbacks=told, report=report)
    if curve.stop_reason == "interrupted":
        # Best may be what training began with, also after epochs; the first look is before them all.
        if not curve.best_step and len(curve.looks) < 2:
            raise KeyboardInterrupt
        warnings.warn(
            f"training was interrupted at step {curve.steps}; the weights of step {curve.best_step} are kept and can "
            "be saved.",
            LabelSpaceWarning,
            stacklevel=3,
        )
    head.eval()
    return head, LaConFit(
        curve=curve,
        prior=prior,
        init=("rows" if len(contradicted) == len(space) else "descriptions") if placed else "random",
        heads=heads,
        labelled=len(everything),
        unlabelled=unlabelled,
        held_out=len(held_out) if held_out else 0,
        device=str(encoder.backbone.device),
        seed=seed,
        descriptions=on_descriptions,
    )


def _width(encoder: Encoder, *, words: bool) -> int:
    return encoder.backbone.hidden_size if words else encoder.dimension


def _new_head(
    encoder: Encoder, config: LaConConfig, labels: int, places: NDArray[np.floating] | None, *, seed: int
) -> LaConHead:
    """Make a head whose labels start at these places, [label dim], or where they are None at random."""
    projection = places is None if isinstance(config.projection, str) else config.projection
    shape = HeadShape(
        head=config.head,
        classifies=config.objective != "lacon",
        projection=projection and config.head not in ("leam", "lsan"),
        labels=labels,
        dim=_width(encoder, words=config.head != "vanilla"),
    )
    head = LaConHead(shape, generator=torch.Generator().manual_seed(child_seed(seed, "head")))
    if places is not None:
        head.start_from(torch.from_numpy(places), config.temperature)
    return head.to(encoder.backbone.device)


def _descriptions_of(encoder: Encoder, space: LabelSpace, prior: Prior) -> Labelled | None:
    """Tokenise the descriptions that the prior believes; None where it has no weight."""
    if not prior.weight:
        return None
    drawn = [(text, column) for text, column in zip(*sweep_texts(space), strict=True) if prior.by_label[column]]
    texts, columns = zip(*drawn, strict=True)
    return Labelled(tokenize(encoder, texts), np.array(columns, dtype=np.intp))


def choose_rate(learning_rate: float | str, width: int) -> float:
    """Return the highest rate of an encoder so many coordinates wide; see `LaConConfig.learning_rate`.

    Example:
        >>> [choose_rate("auto", width) for width in (312, 384, 768)], choose_rate(3e-5, 768)
        ([0.0001, 0.0001, 5e-05], 3e-05)
    """
    if not isinstance(learning_rate, str):
        return learning_rate
    return AUTO_RATE * min(1.0, AUTO_WIDTH / width)


def train_before_labels(
    encoder: Encoder,
    space: LabelSpace,
    config: LaConConfig,
    *,
    seed: int,
    pool: Pool | None = None,
    checkpoint: str | Path | None = None,
    callbacks: Sequence[Callback] = (),
    verbose: bool = False,
) -> FitResult:
    """Train an encoder, in place, on descriptions alone: what few labelled rows go on from, so that they only add.

    Args:
        encoder: its weights are changed.
        space: what the labels mean.
        config: `description_steps` and what both kinds of training share.
        seed: of everything random.
        pool: unlabelled documents, to choose the rate by where none is published; None: the published one, or 2e-5.
        checkpoint: folder to keep unfinished training in, and to go on from where it holds some of this run.
        callbacks: told loss and rate at every step.
        verbose: True shows bars on a terminal, plain lines elsewhere.

    Returns:
        The curve of the training, the learning rate and how it was chosen.
    """
    training = TrainingConfig(
        max_steps=config.description_steps,
        weight_decay=config.weight_decay,
        max_tokens_in_memory=config.max_tokens_in_memory,
    )
    return train_on_descriptions(
        encoder,
        space,
        training,
        SearchConfig(),
        pool=pool,
        seed=seed,
        checkpoint=checkpoint,
        callbacks=callbacks,
        verbose=verbose,
    )


def _counting_from(before: int, callback: Callback) -> Callback:
    """A tracker that is told a step twice mixes two curves, or drops the second."""
    return lambda step, values: callback(before + step, values)


def _described(space: LabelSpace, names: set[str]) -> LabelSpace | None:
    """Return the space without these labels, or None where what is left has no two labels or no description."""
    kept = [label for label in space.labels if label.name not in names]
    if len(kept) < 2 or not any(label.descriptions for label in kept):
        return None
    return LabelSpace(kept, name=space.name, template=space.template) if names else space


def _share(config: LaConConfig, targets: Targets, space: LabelSpace) -> float:
    """Share of the rows to hold out."""
    if isinstance(config.validation, str):
        enough = max(AUTO_ROWS * len(space), AUTO_HELD_OUT / AUTO_SHARE)
        return AUTO_SHARE if len(targets) >= enough else 0.0
    if config.validation:
        counts = np.bincount(targets, minlength=len(space))
        if 1 in counts:
            alone = space.names[int(np.flatnonzero(counts == 1)[0])]
            raise InputError(
                f"validation={config.validation:g} holds rows of every label out, and {alone!r} has a single one. "
                "Give it a second, or set validation to 0 or 'auto'."
            )
    return float(config.validation)
