"""Description-only training from end to end: choose a learning rate, train, check what it did to the space."""

import warnings
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, final

from torch import nn

from labelspace.config import FALLBACK_LEARNING_RATE, SearchConfig, TrainingConfig
from labelspace.corpus import Pool
from labelspace.encoders import Encoder
from labelspace.errors import LabelSpaceWarning
from labelspace.labels import LabelSpace
from labelspace.progress import progress_bar
from labelspace.seeds import child_seed
from labelspace.training.callbacks import Callback
from labelspace.training.checkpoint import Place, digest_of
from labelspace.training.description.learning_rate import PoolUniformity, RateChoice, choose_learning_rate
from labelspace.training.description.objective import run
from labelspace.training.description.sweep import Sweep, build_sweep
from labelspace.training.engine import Training
from labelspace.training.trainable import trainable_weights

# The space counts as collapsing when uniformity rises by this much over the untrained encoder's.
COLLAPSE = 0.25


@final
@dataclass(frozen=True, kw_only=True)
class FitResult:
    """What `fit` did: everything needed to tell a good run from a bad one, and to repeat it."""

    curve: Training
    """The training run."""

    rate: RateChoice
    """The learning rate, and how it was chosen."""

    uniformity_before: float | None
    """Of the pool, untrained; None without a pool."""

    uniformity_after: float | None
    """Of the pool, trained; lower is more uniform, near 0 is collapsed."""

    pool: str | None
    """Where the unlabelled documents came from."""

    pool_documents: int
    """How many of them were used."""

    seed: int
    """The seed of the run."""

    def to_dict(self) -> dict[str, Any]:
        """Return plain values, ready for JSON."""
        return asdict(self)


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
        search: how a learning rate is chosen, where it is.
        pool: unlabelled documents for that choice and for the check of collapse, or None.
        seed: of everything random.
        checkpoint: folder to keep unfinished training in, and to go on from where it holds some of this run.
        callbacks: told loss and rate at every step, and uniformity before and after.
        verbose: True shows bars on a terminal, plain lines elsewhere.

    Returns:
        The curve of the training, the learning rate and how it was chosen, and the uniformity of the pool.

    Warns:
        LabelSpaceWarning: training was interrupted, or the space has become much less uniform.

    Raises:
        TrainingError: the loss is not finite.
        ConfigError: the checkpoint is of another run.
        OutputError: a checkpoint cannot be written.
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
    measure = PoolUniformity(encoder, pool, search, seed) if pool is not None and len(pool.texts) > 1 else None
    before = measure() if measure else None
    with trainable_weights(
        encoder.backbone, freeze_layers=config.freeze_layers, lora_rank=config.lora_rank, seed=seed
    ) as weights:

        def choose() -> RateChoice:
            return _choose_rate(encoder, weights, sweep, config, search, measure, seed=seed, show=verbose)

        rate = choose() if place is None else RateChoice.from_dict(place.remembered("rate", lambda: choose().to_dict()))
        with progress_bar("training", show=verbose) as report:
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
    try:
        after = measure() if measure else None
    except KeyboardInterrupt:  # the weights are trained; a missing figure is no reason to lose them
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
    _warn(result)
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
    show: bool,
) -> RateChoice:
    if not isinstance(config.learning_rate, str):
        return RateChoice(learning_rate=config.learning_rate, reason="given")
    spec = encoder.spec
    published = spec.base_learning_rate if spec else None
    # With another pooling the space is not the one that the rate was published for; who sets up a search wants one.
    suits = spec and published and encoder.pooling in (None, spec.pooling) and search == SearchConfig()
    is_base = config.learning_rate == "base" or (config.learning_rate == "auto" and suits)
    if is_base or measure is None:
        known = "base" if published else "fallback"
        return RateChoice(learning_rate=published or FALLBACK_LEARNING_RATE, reason=known if is_base else "no pool")
    search_seed = child_seed(seed, "search")
    with progress_bar("choosing the learning rate", show=show) as report:
        rate, trials = choose_learning_rate(
            encoder, weights, sweep, config, search, measure, seed=search_seed, report=report
        )
    return RateChoice(learning_rate=rate, reason="uniformity", trials=trials)


def _warn(result: FitResult) -> None:
    rate = result.rate.learning_rate
    if result.curve.stop_reason == "interrupted":
        warnings.warn(
            f"training was interrupted at step {result.curve.steps}; the best weights so far (step "
            f"{result.curve.best_step}) are kept and can be saved. To go on from them, save the model and give "
            "its folder as the encoder.",
            LabelSpaceWarning,
            stacklevel=4,
        )
    before, after = result.uniformity_before, result.uniformity_after
    if before is not None and after is not None and after > before + COLLAPSE:
        warnings.warn(
            f"the documents have moved together: uniformity rose from {before:.2f} to {after:.2f} (0 is one "
            f"point) at learning rate {rate:.0e}; try learning_rate={rate / 3:.0e}.",
            LabelSpaceWarning,
            stacklevel=4,
        )
