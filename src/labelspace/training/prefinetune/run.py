"""`prefinetune`: encoder in, encoder out."""

import math
import tempfile
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, nullcontext
from pathlib import Path
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from labelspace.checks import as_seed, check_callbacks
from labelspace.config import PrefinetuneConfig
from labelspace.corpus import Pairs
from labelspace.encoders import DEFAULT_ENCODER, Encoder
from labelspace.encoders.identity import encoder_hash
from labelspace.errors import ConfigError, InputError, OutputError
from labelspace.geometry import Eigenspace
from labelspace.progress import progress_bar
from labelspace.training import engine
from labelspace.training.callbacks import Callback
from labelspace.training.checkpoint import Place, begun, read_state
from labelspace.training.prefinetune.measures import Measures, Shift, Yardstick
from labelspace.training.prefinetune.objective import PrefinetuneObjective
from labelspace.training.prefinetune.offline import Targets, find_eigenspace
from labelspace.training.prefinetune.relations import ReferenceRelations
from labelspace.training.prefinetune.result import PrefinetuneResult
from labelspace.training.prefinetune.saving import save_prefinetuned
from labelspace.training.prefinetune.sources import (
    MOST_HELD_ASIDE,
    PairsLike,
    check_pairs,
    gather_pairs,
    hold_aside,
)
from labelspace.training.trainable import trainable_weights

MOST_TOKENS = 1024
"""Default limit of tokens per text, if the encoder can read as many (appendix B)."""

# With fewer pairs held aside, the training pairs say more about the space.
FEWEST_MEASURED = 10

# If less than this share of the uniformity remains, nearly all texts lie in one place.
COLLAPSED = 0.1

CHECKPOINT = "checkpoint"
REFERENCE = "reference"
NO_ISOSCORE = "IsoScore was not measured: it needs the extra geometry, pip install 'labelspace[geometry]'."


class Prefinetuned(NamedTuple):
    """A pre-finetuned encoder, its result and its eigenspace.

    The encoder is an ordinary one: every estimator can start from it, and `encoder.save` writes it alone. Further
    training changes only the encoder; result and eigenspace keep describing this run.
    """

    encoder: Encoder
    """The encoder with its new weights."""

    result: PrefinetuneResult
    """The record of the run, with the space before and after."""

    eigenspace: Eigenspace | None
    """REZE's eigenspace of the original encoder's relations; None if its weight was 0."""

    def save(self, folder: str | Path) -> Path:
        """Write a folder that `Encoder` and `SentenceTransformer` open, with `eigenspace.safetensors` and
        `labelspace.json` in it; the folder becomes the encoder's name.

        Args:
            folder: the target; replaced if it holds a pre-finetuned encoder.

        Raises:
            OutputError: it cannot be written, or holds something else; the old contents are unchanged.
        """
        folder = save_prefinetuned(self.encoder, self.result, self.eigenspace, folder)
        # A classifier trained from this encoder records the name, so that `fit` can start there again.
        self.encoder.name, self.encoder.trained = str(folder), False
        return folder


def prefinetune(
    pairs: PairsLike,
    encoder: Encoder | str | Path = DEFAULT_ENCODER,
    config: PrefinetuneConfig | None = None,
    *,
    seed: int = 0,
    folder: str | Path | None = None,
    resume: bool = False,
    callbacks: Sequence[Callback] = (),
    verbose: bool = False,
) -> Prefinetuned:
    """Move an encoder into a domain by anchor-positive pairs of several sources, while preserving its geometry.

    Offline, the original encoder embeds the pairs once, and these relations are shrunk along the directions that only
    separate the sources. Online, the encoder learns the pairs and is pulled towards the shrunk relations (REZE). With
    `regularizer_weight=0` there is no offline phase, and training is plain contrastive pre-finetuning.

    Anchors and positives are both encoded as texts, with the encoder's text prompt. A tenth of each source's pairs, 500
    in all at most, is held aside to measure the space before and after (`validation`). All texts are in memory, and one
    window of their vectors at a time.

    Args:
        pairs: `labelspace.corpus.Pairs`, sources of pairs (`open_pairs` and its kin), or files with the columns anchor
            and positive, and a column source if a file has several sources.
        encoder: a name, a folder, or an `Encoder`, which is never changed.
        config: losses and schedule; None: the paper's.
        seed: seed of the pairs drawn, the pairs held aside, the order and the dropout masks. The same seed gives the
            same bits on the same machine.
        folder: folder for the reference relations, which other runs can share, and for about 20 checkpoints; None:
            nothing is left on disk.
        resume: True resumes from the checkpoint in `folder`, bit-identical to an uninterrupted run, or starts afresh if
            there is none; so a script with True can simply be run again.
        callbacks: called with `loss`, `main`, `regularizer` and `learning_rate` at every step.
        verbose: True shows bars on a terminal, plain lines elsewhere.

    Returns:
        The encoder, the result and the eigenspace. After Ctrl-C the encoder has the weights of the last look, or its
        original ones if there was none; `result.training.best_step` says which.

    Raises:
        InputError: pairs cannot be read or are too few, or vectors are not finite or all equal.
        ConfigError: an option is invalid, the checkpoint belongs to another run, or `folder` has an unfinished run and
            `resume` is False.
        EncoderNotFoundError: no encoder has this name.
        TrainingError: a loss is not finite.
        OutputError: relations or a checkpoint cannot be written.

    Warns:
        LabelSpaceWarning: REZE shrinks nothing, for example because there is only one source.

    Example:
        >>> from labelspace import prefinetune
        >>> from labelspace.config import PrefinetuneConfig
        >>> from labelspace.corpus import open_pairs
        >>> import pyarrow as pa
        >>> def rows(words, positive):
        ...     anchors = [f"{word} {number}" for word in words for number in range(2)]
        ...     return pa.table({"anchor": anchors, "positive": [positive] * len(anchors)})
        >>> sources = [
        ...     open_pairs(rows(("the team", "a player", "a match"), "sports"), name="news"),
        ...     open_pairs(rows(("the bank", "a price", "a market"), "money"), name="posts"),
        ...     open_pairs(rows(("why is the court", "what of the minister", "who won"), "no answer"), name="talk"),
        ... ]
        >>> encoder, result, eigenspace = prefinetune(sources, "tests/data/tiny-bert", PrefinetuneConfig(epochs=2))
        >>> result.training.total_steps, result.pairs, eigenspace.width
        (6, {'news': 6, 'posts': 6, 'talk': 6}, 64)

    Reference:
        Lee et al., "REZE: Representation Regularization for Domain-adaptive Text Embedding Pre-finetuning", section 3
        and Algorithm 1.
    """
    seed = as_seed(seed)
    check_callbacks(callbacks)
    config = PrefinetuneConfig() if config is None else config
    if not isinstance(config, PrefinetuneConfig):
        raise ConfigError(f"config must be a PrefinetuneConfig. Got {type(config).__name__} instead.")
    if resume and folder is None:
        raise ConfigError("there is nothing to resume without a folder; pass the folder of the run, or resume=False.")
    if folder is not None and Path(folder).exists() and not Path(folder).is_dir():
        raise OutputError(f"{folder} is a file; relations and checkpoints need a folder, give another name.")
    if folder is not None and not resume:
        _check_nothing_unfinished(Path(folder) / CHECKPOINT)
    drawn = gather_pairs(pairs, per_source=config.per_source, seed=seed)
    hopeless = check_pairs(drawn, config)
    # The caller's encoder is never changed; one opened here is ours.
    trained = encoder.copy() if isinstance(encoder, Encoder) else Encoder(encoder)
    place = tempfile.TemporaryDirectory() if folder is None else nullcontext(folder)
    with place as work_folder, read_at_most(trained, config.max_tokens) as max_tokens:
        work = Path(work_folder)
        return _run(
            *(drawn, trained, config, max_tokens, work),
            seed=seed,
            keep=folder is not None,
            resume=resume and begun(work / CHECKPOINT),
            hopeless=hopeless,
            callbacks=callbacks,
            verbose=verbose,
        )


def _check_nothing_unfinished(checkpoint: Path) -> None:
    """Refuse to overwrite a run that could be resumed."""
    if not begun(checkpoint):
        return
    state = read_state(checkpoint)
    done, total = state["step"], state["run"]["total_steps"]
    if done < total:
        raise ConfigError(
            f"{checkpoint.parent} holds an unfinished run (update {done} of {total}); pass resume=True to resume it, "
            f"or another folder, or remove {checkpoint}."
        )


@contextmanager
def read_at_most(encoder: Encoder, max_tokens: int | None) -> Iterator[int]:
    """Set an encoder's token limit inside the block, and restore it afterwards.

    Args:
        encoder: its tokenizer gets the limit.
        max_tokens: the limit; None: 1,024, or the encoder's own if that is smaller.

    Yields:
        The limit.

    Raises:
        ConfigError: the encoder cannot read that many.
    """
    tokenizer, limit = encoder.backbone.tokenizer, encoder.max_tokens
    if max_tokens is not None and max_tokens > limit:
        raise ConfigError(f"max_tokens is more than the encoder reads ({limit}). Got {max_tokens} instead.")
    was = tokenizer.model_max_length
    tokenizer.model_max_length = min(MOST_TOKENS, limit) if max_tokens is None else max_tokens
    try:
        yield tokenizer.model_max_length
    finally:
        tokenizer.model_max_length = was


def _run(
    pairs: Pairs,
    encoder: Encoder,
    config: PrefinetuneConfig,
    max_tokens: int,
    work: Path,
    *,
    seed: int,
    keep: bool,
    resume: bool,
    hopeless: bool,
    callbacks: Sequence[Callback],
    verbose: bool,
) -> Prefinetuned:
    train, measured, told = _split(pairs, config.validation, seed)
    yardstick, described = Yardstick(measured, seed=seed), encoder.describe()
    run = {
        "config": config.to_dict(),
        "seed": seed,
        "encoder": encoder_hash(encoder),
        "pairs": pairs.fingerprint(),
        "tokens of a text": max_tokens,
    }
    place = Place(work / CHECKPOINT, run, resume) if keep else None
    if place is not None and resume:  # check now: computing relations of other pairs could take hours
        place.check()
    eigenspace = targets = None
    if config.regularizer_weight:
        relations = ReferenceRelations(encoder, train, work / REFERENCE)
        with progress_bar("reference", verbose=verbose) as report:
            eigenspace = find_eigenspace(relations, train, config, hopeless=hopeless, report=report)
        targets = Targets(relations, train, eigenspace)
    as_it_came = yardstick.vectors(encoder)
    before = yardstick.measure(as_it_came)
    with trainable_weights(encoder.backbone) as weights, progress_bar("training", verbose=verbose) as report:
        objective = PrefinetuneObjective(encoder, weights, train, targets, config, seed=seed)
        training = engine.train(objective, checkpoint=place, callbacks=callbacks, report=report)
    after, shift, notes = _afterwards(encoder, yardstick, as_it_came, before)
    if training.best_step:
        # The name must not lead a later classifier back to the original weights.
        encoder.name = f"{encoder.name}, pre-finetuned"
    result = PrefinetuneResult(
        training=training,
        before=before,
        after=after,
        **(shift._asdict() if shift else dict.fromkeys(Shift._fields)),
        measured_on=told,
        measured_pairs=len(measured),
        **_directions(eigenspace),
        pairs=train.counts(),
        pairs_seen=dict(zip(pairs.sources, pairs.seen, strict=True)),
        max_tokens=max_tokens,
        encoder=described,
        config=config,
        seed=seed,
        notes=(*notes, *([NO_ISOSCORE] if before.isoscore is None else [])),
    )
    return Prefinetuned(encoder, result, eigenspace)


def _split(pairs: Pairs, share: float, seed: int) -> tuple[Pairs, Pairs, str]:
    """Return training pairs, pairs to measure on, and a description of the latter."""
    rows, aside = hold_aside(pairs, seed=seed, share=share)
    train, measured = pairs.take(rows), pairs.take(aside)
    if len(measured) >= FEWEST_MEASURED:
        return train, measured, "pairs held aside"
    every = range(0, len(pairs), math.ceil(len(pairs) / MOST_HELD_ASIDE))
    return pairs, pairs.take(every), "training pairs"


def _afterwards(
    encoder: Encoder, yardstick: Yardstick, as_it_came: NDArray[np.float32], before: Measures
) -> tuple[Measures | None, Shift | None, list[str]]:
    # Keep the trained weights even if this measurement fails.
    try:
        vectors = yardstick.vectors(encoder)
        after, shift = yardstick.measure(vectors), yardstick.compare(as_it_came, vectors)
    except KeyboardInterrupt:
        return None, None, ["Measuring the space afterwards was interrupted."]
    except InputError as error:
        return None, None, [f"The space could not be measured afterwards: {error}"]
    if after.uniformity <= COLLAPSED * before.uniformity:
        return after, shift, []
    told = f"uniformity was {before.uniformity:.3f} and is {after.uniformity:.3f}"
    return after, shift, [f"The space has all but collapsed: {told}. Try a lower learning_rate or fewer epochs."]


def _directions(eigenspace: Eigenspace | None) -> dict[str, int | None]:
    if eigenspace is None:
        return dict.fromkeys(("active", "shrunk_directions", "shrunk_factors", "relation_width"))
    return {
        "active": eigenspace.active,
        "shrunk_directions": int((eigenspace.alpha < 1).any(dim=0).sum()),
        "shrunk_factors": eigenspace.shrunk,
        "relation_width": eigenspace.width,
    }
