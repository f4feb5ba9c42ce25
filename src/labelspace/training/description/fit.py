"""Description-only training from end to end: choose a learning rate, train, check the space for collapse."""

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import final

from torch import nn

from labelspace.config import FALLBACK_LEARNING_RATE, SearchConfig, TrainingConfig
from labelspace.corpus import Pool
from labelspace.encoders import Encoder
from labelspace.errors import warn
from labelspace.labels import LabelSpace
from labelspace.progress import progress_bar, stage
from labelspace.seeds import child_seed
from labelspace.training.callbacks import Callback
from labelspace.training.checkpoint import RATE, Place, digest_of
from labelspace.training.description.learning_rate import PoolUniformity, RateChoice, choose_learning_rate
from labelspace.training.description.objective import run
from labelspace.training.description.sweep import Sweep, build_sweep
from labelspace.training.engine import Training, warn_of_interrupt
from labelspace.training.fit_report import FitReport
from labelspace.training.trainable import trainable_weights

MANY_TEXTS = 10_000
"""From so many texts of labels on, an update takes minutes on a processor, which is said."""

# A rise in uniformity over the untrained encoder by this much counts as collapse.
COLLAPSE = 0.25


@final
@dataclass(frozen=True, kw_only=True)
class FitResult(FitReport):
    """Result of description-only training: enough to judge the run and to repeat it."""

    curve: Training
    """The training run."""

    rate: RateChoice
    """The learning rate, and how it was chosen."""

    uniformity_before: float | None
    """Uniformity of the pool before training; None without a pool."""

    uniformity_after: float | None
    """Uniformity of the pool after training; lower is more uniform, near 0 is collapsed."""

    pool: str | None
    """Source of the unlabelled documents."""

    pool_documents: int
    """Number of unlabelled documents used."""

    seed: int
    """The seed of the run."""


def train_on_descriptions(
    encoder: Encoder,
    space: LabelSpace,
    config: TrainingConfig,
    search: SearchConfig,
    *,
    pool: Pool | None,
    seed: int,
    checkpoint: str | Path | None = None,
    callbacks: Sequence[Callback] = (),
    verbose: bool = False,
) -> FitResult:
    """Adapt an encoder, in place, to a label space.

    Args:
        encoder: its weights are changed.
        space: verbalizers and descriptions.
        config: objective, schedule, stopping rule.
        search: how to choose the learning rate, if it is not given or published.
        pool: unlabelled documents for that choice and for the collapse check, or None.
        seed: seed of all randomness.
        checkpoint: folder for unfinished training; a checkpoint of this run in it is resumed.
        callbacks: called with loss and rate at every step, and with uniformity before and after.
        verbose: True shows bars on a terminal, plain lines elsewhere.

    Returns:
        The training curve, the learning rate and how it was chosen, and the uniformity of the pool.

    Warns:
        LabelSpaceWarning: training was interrupted, or the space has become much less uniform.

    Raises:
        TrainingError: the loss is not finite.
        ConfigError: the checkpoint belongs to another run.
        OutputError: a checkpoint cannot be written.
        KeyboardInterrupt: training was interrupted before anything was learnt.
    """
    place = Place.of_fit(
        checkpoint,
        "descriptions",
        encoder,
        config=config.to_dict(),
        search=search.to_dict(),
        seed=seed,
        labels=digest_of([space.to_dict()]),
        documents=digest_of(pool.texts if pool is not None else ()),
    )
    space = (
        space.with_descriptions(config.descriptions_per_label, seed=seed) if config.descriptions_per_label else space
    )
    sweep = build_sweep(encoder, space, max_tokens_in_memory=config.max_tokens_in_memory)
    texts = sweep.descriptions + len(space)
    if texts > MANY_TEXTS:
        stage(
            f"each of at most {config.max_steps:,} updates reads all {texts:,} texts of the labels; max_steps and "
            "descriptions_per_label make it shorter",
            verbose=verbose,
        )
    measure = PoolUniformity(encoder, pool, search, seed) if pool is not None and len(pool.texts) > 1 else None
    before = measure() if measure else None
    with trainable_weights(
        encoder.backbone, freeze_layers=config.freeze_layers, lora_rank=config.lora_rank, seed=seed
    ) as weights:

        def choose() -> RateChoice:
            return _choose_rate(encoder, weights, sweep, config, search, measure, seed=seed, verbose=verbose)

        rate = choose() if place is None else RateChoice.from_dict(place.remembered(RATE, lambda: choose().to_dict()))
        with progress_bar("training", verbose=verbose) as report:
            curve = run(
                encoder.backbone,
                weights,
                sweep,
                config,
                learning_rate=rate.learning_rate,
                seed=child_seed(seed, "training"),
                checkpoint=place,
                callbacks=callbacks,
                report=report,
            )
    if curve.stop_reason == "interrupted" and not curve.best_step:
        raise KeyboardInterrupt  # nothing was learnt
    try:
        after = measure() if measure else None
    except KeyboardInterrupt:  # keep the trained weights; only this measurement is missing
        after = None
    if before is not None and after is not None:
        for callback in callbacks:
            callback(curve.steps, {"uniformity_before": before, "uniformity_after": after})
    result = FitResult(
        curve=curve,
        rate=rate,
        uniformity_before=before,
        uniformity_after=after,
        pool=pool.source if pool else None,
        pool_documents=min(len(pool.texts), search.documents) if pool else 0,
        seed=seed,
    )
    _warn(result, checkpoint)
    return result


def _choose_rate(
    encoder: Encoder,
    weights: list[tuple[str, nn.Parameter]],
    sweep: Sweep,
    config: TrainingConfig,
    search: SearchConfig,
    measure: PoolUniformity | None,
    *,
    seed: int,
    verbose: bool,
) -> RateChoice:
    if not isinstance(config.learning_rate, str):
        return RateChoice(learning_rate=config.learning_rate, reason="given")
    spec = encoder.spec
    published = spec.base_learning_rate if spec else None
    # A published rate holds only for the encoder's own pooling; configuring a search asks for one.
    suits = spec and published and encoder.pooling in (None, spec.pooling) and search == SearchConfig()
    is_base = config.learning_rate == "base" or (config.learning_rate == "auto" and suits)
    if is_base or measure is None:
        known = "base" if published else "fallback"
        return RateChoice(learning_rate=published or FALLBACK_LEARNING_RATE, reason=known if is_base else "no pool")
    search_seed = child_seed(seed, "search")
    with progress_bar("choosing the learning rate", verbose=verbose) as report:
        rate, trials = choose_learning_rate(
            encoder, weights, sweep, config, search, measure, seed=search_seed, report=report
        )
    return RateChoice(learning_rate=rate, reason="uniformity", trials=trials)


def _warn(result: FitResult, checkpoint: str | Path | None) -> None:
    rate = result.rate.learning_rate
    if result.curve.stop_reason == "interrupted":
        on = "To go on from them, save the model and pass its folder as the encoder."
        warn_of_interrupt(result.curve, checkpoint=checkpoint, otherwise=on)
    before, after = result.uniformity_before, result.uniformity_after
    if before is not None and after is not None and after > before + COLLAPSE:
        warn(
            f"the documents have moved together: uniformity rose from {before:.2f} to {after:.2f} (0 is one "
            f"point) at learning rate {rate:.0e}; try learning_rate={rate / 3:.0e}."
        )
