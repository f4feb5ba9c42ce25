"""Training on labelled texts from end to end: hold rows out, weigh the descriptions, train, report."""

import contextlib
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import final

import numpy as np
import torch
from numpy.typing import NDArray

from labelspace.config import LaConConfig, SearchConfig, TrainingConfig
from labelspace.corpus import Pool
from labelspace.encoders import Encoder
from labelspace.errors import InputError, unsaid
from labelspace.labels import LabelSpace
from labelspace.progress import progress_bar
from labelspace.seeds import child_seed
from labelspace.training import engine
from labelspace.training.callbacks import Callback
from labelspace.training.checkpoint import Place, digest_of
from labelspace.training.description import FitResult, train_on_descriptions
from labelspace.training.description.sweep import sweep_texts
from labelspace.training.engine import Training
from labelspace.training.features import width_of
from labelspace.training.fit_report import FitReport
from labelspace.training.lacon.head import HeadShape, LaConHead
from labelspace.training.lacon.objective import LaConObjective, Rates, choose_heads
from labelspace.training.lacon.prior import (
    Prior,
    choose_prior,
    label_vectors,
    measure_agreement,
    place_labels,
    short_of_rows,
    sums_of_rows,
)
from labelspace.training.rows import Document, Labelled, Targets, class_weights, different, split_texts, tokenize
from labelspace.training.trainable import trainable_weights

# `validation="auto"`: the paper's share, if each label has as many rows as in its few-shot experiments and a hundred
# rows are held out. With fewer, macro-F1 is uncertain by five points at best, more than epochs differ by: chance would
# choose the epoch, and training would lose the rows.
AUTO_SHARE = 0.05
AUTO_ROWS = 20
AUTO_HELD_OUT = 100

# `learning_rate="auto"`: the rate up to this width; a wider encoder moves as far at a lower rate.
AUTO_RATE = 1e-4
AUTO_WIDTH = 384


@final
@dataclass(frozen=True, kw_only=True)
class LaConFit(FitReport):
    """Result of training on labels: enough to judge the run and to repeat it."""

    curve: Training | None
    """The training run; None if no row was labelled."""

    prior: Prior | None
    """The weight of the descriptions, and its reason; None if no row was labelled."""

    init: str | None
    """Initial label embeddings: `"descriptions"` (and rows), `"rows"` if these contradict all descriptions, or
    `"random"`; None if no row was labelled."""

    heads: int | None
    """Number of slices in eq. 4; None if it was not used."""

    labelled: int
    """Number of labelled rows."""

    unlabelled: int
    """Number of unlabelled rows; they are used only if no row is labelled."""

    held_out: int
    """Labelled rows held out of training to decide when to stop."""

    device: str
    """Device of the training."""

    seed: int
    """The seed of the run."""

    descriptions: FitResult | None = None
    """The description-only run, before the labelled rows or instead of them; None if there was none."""


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
        space: label names and their meaning.
        documents: labelled texts or pairs of texts.
        targets: [text], the column of each document's label.
        config: objective, head, schedule.
        meaningful: False if the labels carry no meaning, such as codes.
        seed: seed of all randomness.
        described: the same labels in the order for description-only training; None: the order of `space`.
        unlabelled: number of unlabelled rows, for the record.
        pool: all documents, labelled or not, for description-only training; None: none.
        checkpoint: folder for unfinished training; a checkpoint of this run in it is resumed.
        callbacks: called with losses and rates at every step; steps continue from those of description-only training.
        verbose: True shows a bar on a terminal, plain lines elsewhere.

    Returns:
        The head, and the record of the fit.

    Warns:
        LabelSpaceWarning: training was interrupted.

    Raises:
        InputError: a validation share is set, and a label has a single row, or no row can be held out.
        ConfigError: `heads` does not divide the width, or the checkpoint belongs to another run.
        OutputError: a checkpoint cannot be written.
        TrainingError: the loss is not finite.
        KeyboardInterrupt: during the first epoch; later, the weights trained so far are kept.
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
    heads = None if config.objective != "lacon" else choose_heads(config.heads, width_of(encoder, words=words))
    everything = Labelled(tokenize(encoder, documents), targets)
    train, held_out = everything, None
    share = _share(config, targets, space)
    if share:
        given = config.validation != "auto"
        ours, theirs = split_texts(everything.rows, targets, share, seed=seed, required=given)
        train, held_out = everything.take(ours), everything.take(theirs) if theirs else None

    weights = class_weights(config.class_weight, space.names, train.targets)
    evidence = different(train)  # a copy of a row says nothing new about the descriptions
    agreement = anchors = None
    if meaningful:
        anchors = label_vectors(encoder, space, words=words)
        agreement = measure_agreement(
            encoder, anchors, evidence.rows, evidence.targets, space.names, words=words, seed=seed
        )
    counts = np.bincount(evidence.targets, minlength=len(space))
    prior = choose_prior(config, agreement, counts, space.names)
    contradicted = set(agreement.contradicted or ()) if agreement is not None else set()

    on_descriptions = None
    believed = _described(described or space, contradicted if prior.reason != "given" else set())
    if prior.weight and config.description_steps and believed is not None:
        shared = {"seed": seed, "pool": pool, "checkpoint": checkpoint, "callbacks": callbacks}
        with unsaid(engine.INTERRUPTED):
            on_descriptions = train_before_labels(encoder, believed, config, **shared, verbose=verbose)
        if on_descriptions.curve.stop_reason == "interrupted":
            raise KeyboardInterrupt  # no labelled row was used yet, so there is nothing to return
        anchors = label_vectors(encoder, space, words=words)

    placed = config.init == "descriptions" and anchors is not None
    places, columns = None, []
    if placed and anchors is not None:
        sums = sums_of_rows(encoder, evidence.rows, evidence.targets, len(space), words=words)
        columns = [column for column, name in enumerate(space.names) if name in contradicted]
        places = place_labels(anchors, sums, counts, columns)
    head = _new_head(encoder, config, len(space), places, seed=seed)
    # Squared; otherwise four rows per label undo in the encoder what the descriptions taught it (docs/LOG.md).
    rate = choose_rate(config.learning_rate, encoder.backbone.hidden_size)
    rates = Rates(encoder=rate * prior.rate**2, head=config.head_learning_rate * prior.rate)
    before = on_descriptions.curve.steps if on_descriptions is not None else 0
    with trainable_weights(encoder.backbone) as of_encoder, progress_bar("training", verbose=verbose) as report:
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
        # The best weights may be the initial ones even after epochs, so count looks too; the first precedes training.
        if not curve.best_step and len(curve.looks) < 2:
            raise KeyboardInterrupt
        engine.warn_of_interrupt(curve, checkpoint=checkpoint)
    head.eval()
    short = short_of_rows(np.bincount(different(everything).targets, minlength=len(space)))
    if places is not None and short.any() and head.places_labels:
        # Texts of the other labels have drawn the encoder towards these, so place the ones without rows anew.
        with contextlib.suppress(KeyboardInterrupt):  # what was trained is kept
            anchors = label_vectors(encoder, space, words=words)
            sums = sums_of_rows(encoder, evidence.rows, evidence.targets, len(space), words=words)
            head.place(short, place_labels(anchors, sums, counts, columns))
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


def _new_head(
    encoder: Encoder, config: LaConConfig, labels: int, places: NDArray[np.floating] | None, *, seed: int
) -> LaConHead:
    """Create a head whose label embeddings start at `places` [label dim], or at random if that is None."""
    projection = places is None if isinstance(config.projection_head, str) else config.projection_head
    shape = HeadShape(
        head=config.head,
        classifies=config.objective != "lacon",
        projection=projection and config.head not in ("leam", "lsan"),
        labels=labels,
        dim=width_of(encoder, words=config.head != "vanilla"),
    )
    head = LaConHead(shape, generator=torch.Generator().manual_seed(child_seed(seed, "head")))
    if places is not None:
        head.start_from(torch.from_numpy(places), config.temperature)
    return head.to(encoder.backbone.device)


def _descriptions_of(encoder: Encoder, space: LabelSpace, prior: Prior) -> Labelled | None:
    """Tokenize the descriptions that have weight in the prior; None if none has."""
    if not prior.weight:
        return None
    drawn = [(text, column) for text, column in zip(*sweep_texts(space), strict=True) if prior.by_label[column]]
    texts, columns = zip(*drawn, strict=True)
    return Labelled(tokenize(encoder, texts), np.array(columns, dtype=np.intp))


def choose_rate(learning_rate: float | str, width: int) -> float:
    """Return the encoder's peak learning rate for its width in coordinates; see `LaConConfig.learning_rate`.

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
    """Train an encoder, in place, on descriptions alone, before labelled rows.

    Args:
        encoder: its weights are changed.
        space: label names and their meaning.
        config: `description_steps`, and the options that both kinds of training share.
        seed: seed of all randomness.
        pool: unlabelled documents to choose the rate by if none is published; None: the published rate, or 2e-5.
        checkpoint: folder for unfinished training; a checkpoint of this run in it is resumed.
        callbacks: called with loss and rate at every step.
        verbose: True shows bars on a terminal, plain lines elsewhere.

    Returns:
        The training curve, the learning rate and how it was chosen.
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
    """Shift a callback's steps: a tracker that sees a step twice mixes two curves or drops the second."""
    return lambda step, values: callback(before + step, values)


def _described(space: LabelSpace, names: set[str]) -> LabelSpace | None:
    """Return the space without these labels; None if fewer than two labels or no description would be left."""
    kept = [label for label in space.labels if label.name not in names]
    if len(kept) < 2 or not any(label.descriptions for label in kept):
        return None
    return LabelSpace(kept, name=space.name, template=space.template, outside=space.outside) if names else space


def _share(config: LaConConfig, targets: Targets, space: LabelSpace) -> float:
    """Return the share of rows to hold out."""
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
