"""From labelled texts to a trained head: hold rows out, get their token states, train, fit the temperature."""

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import final

import numpy as np
import torch
from numpy.typing import NDArray
from sklearn.metrics import roc_auc_score

from labelspace.config import UncertaintyConfig
from labelspace.encoders import Encoder
from labelspace.encoders.state_cache import FreshStates, StateCache
from labelspace.heads import GaussianHead
from labelspace.progress import progress_bar
from labelspace.seeds import child_seed
from labelspace.training.abstention import entropy
from labelspace.training.calibration import Calibration, calibrate
from labelspace.training.callbacks import Callback
from labelspace.training.checkpoint import Place, digest_of
from labelspace.training.engine import Training, train, warn_of_interrupt
from labelspace.training.fit_report import FitReport
from labelspace.training.rows import Rows, Targets, split_texts
from labelspace.training.uncertainty.objective import UncertaintyObjective
from labelspace.training.uncertainty.outputs import outputs_of_states

# `validation="auto"`. A tenth of 200 rows is 20; from fewer, a temperature may be far off (docs/LOG.md).
AUTO_SHARE = 0.1
AUTO_ROWS_PER_LABEL = 20
AUTO_ROWS = 200


@final
@dataclass(frozen=True, kw_only=True)
class UncertaintyFit(FitReport):
    """Result of training a Gaussian head: enough to judge the run and to repeat it."""

    curve: Training
    """The training run."""

    calibration: Calibration | None
    """Temperature, and calibration error before and after, on the held-out rows; None if none were held out."""

    held_out_accuracy: float | None
    """Accuracy on the held-out rows; None if there are none."""

    labelled: int
    """Number of labelled rows."""

    unlabelled: int
    """Number of unlabelled rows, which are not used."""

    held_out: int
    """Labelled rows held out of training."""

    device: str
    """Device of the training."""

    seed: int
    """The seed of the run."""


@final
@dataclass(frozen=True)
class HeldOut:
    """The head's outputs on the held-out rows, used to set limits."""

    uncertainty: NDArray[np.float32]
    """[text], the head's uncertainty."""

    entropy: NDArray[np.float64]
    """[text], entropy of the probabilities."""

    wrong: NDArray[np.bool_]
    """[text], True where the prediction is wrong."""

    def better_ranking(self) -> str:
        """Return the measure that better separates wrong from right answers: `"uncertainty"` or `"entropy"`.

        The criterion is the area under the ROC curve of wrong against right answers: the share of pairs in the right
        order. Ties, and constant uncertainties, give the entropy.
        """
        if self.wrong.all() or not self.wrong.any() or not np.ptp(self.uncertainty):
            return "entropy"
        areas = [roc_auc_score(self.wrong, doubt) for doubt in (self.uncertainty, self.entropy)]
        return "uncertainty" if areas[0] > areas[1] else "entropy"


def train_gaussian_head(
    encoder: Encoder,
    token_ids: Sequence[Sequence[int]],
    targets: Targets,
    labels: int,
    config: UncertaintyConfig,
    *,
    cache: StateCache | None,
    seed: int,
    unlabelled: int = 0,
    checkpoint: str | Path | None = None,
    callbacks: Sequence[Callback] = (),
    verbose: bool = False,
) -> tuple[GaussianHead, HeldOut, UncertaintyFit]:
    """Train a new head on the token states of labelled texts; the encoder is not changed.

    Args:
        encoder: frozen.
        token_ids: token ids of each text, from `Encoder.tokenize`.
        targets: [text], the column of each text's label.
        labels: number of labels.
        config: head, objective, schedule.
        cache: stores the token states; None computes them again in each epoch and writes nothing.
        seed: seed of all randomness.
        unlabelled: number of unlabelled rows, for the record.
        checkpoint: folder for unfinished training; a checkpoint of this run in it is resumed.
        callbacks: called with losses and the rate at every step.
        verbose: True shows bars on a terminal, plain lines elsewhere.

    Returns:
        The head, its outputs on the held-out rows, and the record of the fit.

    Warns:
        LabelSpaceWarning: training was interrupted, or the states cannot be stored.

    Raises:
        InputError: a validation share is set, but no row can be held out.
        ConfigError: the checkpoint belongs to another run.
        OutputError: a checkpoint cannot be written.
        TrainingError: the loss is not finite.
        KeyboardInterrupt: during the first epoch, when nothing was learnt yet.
    """
    place = Place.of_fit(
        checkpoint,
        "rows",
        encoder,
        config=config.to_dict(),
        seed=seed,
        labels=labels,
        rows=digest_of(zip(token_ids, targets.tolist(), strict=True)),
    )
    share = _share(config, targets, labels)
    rows, held_out = list(range(len(targets))), []
    if share:
        rows, held_out = split_texts(
            Rows(list(map(list, token_ids)), None, 0), targets, share, seed=seed, required=config.validation != "auto"
        )
    backbone = encoder.backbone
    if cache is None:
        states = FreshStates(encoder, token_ids)
    else:
        with progress_bar("encoding", verbose=verbose) as report:
            states = cache.open(encoder, token_ids, report)
    head = GaussianHead(
        backbone.hidden_size,
        labels,
        generator=torch.Generator().manual_seed(child_seed(seed, "head")),
        extractor=config.extractor,
        uncertain=config.uncertain,
        dropout=config.dropout,
    ).to(backbone.device)
    own_seed = child_seed(seed, "training")
    with progress_bar("training", verbose=verbose) as report:
        objective = UncertaintyObjective(
            head, states, rows, targets, config, device=backbone.device, dtype=backbone.dtype, seed=own_seed
        )
        curve = train(objective, checkpoint=place, callbacks=callbacks, report=report)
    if curve.stop_reason == "interrupted":
        if not curve.best_step:
            raise KeyboardInterrupt
        warn_of_interrupt(curve, checkpoint=checkpoint)
    head.eval().requires_grad_(False)
    own = targets[held_out]
    found = outputs_of_states(encoder, head, states, held_out)
    calibration = calibrate(found.logits, own) if held_out else None
    wrong = found.logits.argmax(axis=1) != own if held_out else np.zeros(0, dtype=bool)
    result = UncertaintyFit(
        curve=curve,
        calibration=calibration,
        held_out_accuracy=float(1 - wrong.mean()) if held_out else None,
        labelled=len(targets),
        unlabelled=unlabelled,
        held_out=len(held_out),
        device=str(backbone.device),
        seed=seed,
    )
    temperature = calibration.temperature if calibration else 1.0
    return head, HeldOut(found.uncertainty, entropy(found.logits, temperature), wrong), result


def _share(config: UncertaintyConfig, targets: Targets, labels: int) -> float:
    """Return the share of rows to hold out."""
    if isinstance(config.validation, str):
        return AUTO_SHARE if len(targets) >= max(AUTO_ROWS, AUTO_ROWS_PER_LABEL * labels) else 0.0
    return float(config.validation)
