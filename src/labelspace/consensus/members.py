"""The fast views of a consensus as fitted classifiers: opened, or trained on the descriptions.

    <checkpoint>/view-N/descriptions    training of view N, unfinished
    <checkpoint>/view-N/HASH            the trained view, until the whole fit ends; HASH is what it was trained from

So a fit that is killed between two views, or while its student learns, trains no view again.
"""

import json
import shutil
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, final

from labelspace.checks import check_keys
from labelspace.classify import DescriptionClassifier, load
from labelspace.classify.arguments import name_of_start
from labelspace.classify.base import Classifier
from labelspace.config import ConsensusConfig, EncodingConfig
from labelspace.consensus.views import ZERO_SHOT, fit_view, is_saved
from labelspace.encoders import Encoder
from labelspace.encoders.identity import encoder_hash
from labelspace.encoders.resolve import check_remote_code, resolve
from labelspace.errors import ConfigError, ModelFolderError, RemoteCodeError, unsaid
from labelspace.header import HEADER, refuse_no_encoder
from labelspace.labels import LabelSpace
from labelspace.training import Callback
from labelspace.training.checkpoint import clear, digest_of
from labelspace.training.engine import INTERRUPTED
from labelspace.version import __version__

OPTIONS = ("device", "dtype", "max_tokens", "token_budget", "offline")
"""Arguments of `Encoder` that hold for every view that is given by name."""

IDENTITY = 16
"""Characters of HASH."""


@final
@dataclass(frozen=True, kw_only=True)
class Members:
    """Opens views, or trains them."""

    space: LabelSpace
    """The labels."""

    config: ConsensusConfig
    """The settings."""

    options: Mapping[str, Any]
    """Arguments of `Encoder` for views that are given by name."""

    checkpoint: str | Path | None
    """Folder of the fit's checkpoints; None: none."""

    callbacks: Sequence[Callback]
    """Get the losses of every update."""

    seed: int
    """Seed of all randomness."""

    verbose: bool
    """Whether progress is shown."""

    def checked(self, view: Any) -> Any:
        """Check a view before any is trained; return it, a copy of a fitted classifier, opened if it is a saved one.

        Raises:
            ConfigError: a fitted classifier has other labels.
            EncoderError: no encoder has this name.
            RemoteCodeError: the encoder has its own code.
        """
        if isinstance(view, Classifier) or is_saved(view):
            return fit_view(view, self.space, self.options)
        if not isinstance(view, Encoder):
            self._check_name(str(view).removeprefix(ZERO_SHOT))
        return view

    def fit(self, number: int, view: Any) -> Classifier:
        """Return a view as a fitted classifier.

        Args:
            number: its place among the views, for the checkpoint.
            view: from `checked`.

        Raises:
            KeyboardInterrupt: training was interrupted; a half-trained view would decide with the others.
        """
        if isinstance(view, Classifier):
            return view
        if str(view).startswith(ZERO_SHOT):
            return fit_view(view, self.space, self.options, long_texts=self.config.long_texts)
        if self.checkpoint is None:
            return self._trained(view, None)
        place = Path(self.checkpoint).expanduser() / f"view-{number}"
        kept = place / self.identity(view)
        if kept.is_dir():
            try:
                return load(kept, device=self.options.get("device"))
            except (ModelFolderError, RemoteCodeError):  # damaged, or the caller alone may run its code
                shutil.rmtree(kept)
        model = self._trained(view, place)
        model.save(kept)
        return model

    def start_alike(self, view: Any, model: Classifier, student: Encoder) -> bool:
        """Return whether a student would start from what this view is.

        Args:
            view: from `checked`.
            model: the view as `fit` returned it.
            student: the encoder as it was given.
        """
        if not isinstance(model, DescriptionClassifier) or model.started_from_ != name_of_start(student, student):
            return False
        told = [
            (one.revision, one.dtype, one.max_tokens, one.pooling, one.prompts) for one in (model.encoder_, student)
        ]
        if told[0] != told[1] or not student.trained:
            return told[0] == told[1]
        # Of one that was trained before, the name does not tell the weights.
        return view is student or (isinstance(view, Encoder) and self.identity(view) == self.identity(student))

    def clear(self) -> None:
        """Remove the checkpoints of a fit that has ended."""
        if self.checkpoint is not None:
            for place in Path(self.checkpoint).expanduser().glob("view-[0-9]*"):
                for header in place.glob(f"{'[0-9a-f]' * IDENTITY}/{HEADER}"):
                    shutil.rmtree(header.parent, ignore_errors=True)
                clear(place)
            clear(self.checkpoint)

    def _check_name(self, name: str) -> None:
        refuse_no_encoder(name)
        try:
            check_remote_code(name, trust_remote_code=False)
            check_remote_code(resolve(name, offline=self.options.get("offline")), trust_remote_code=False)
        except RemoteCodeError as error:
            raise RemoteCodeError(
                f"{name} would run Python code of its own, which a view or student that is given by name may not; "
                "read that code, then pass an Encoder with trust_remote_code=True, or name it with --encoder and "
                "--trust-remote-code."
            ) from error

    def _trained(self, view: Any, place: Path | None) -> DescriptionClassifier:
        with unsaid(INTERRUPTED):
            model: Any = fit_view(
                view,
                self.space,
                self.options,
                steps=self.config.view_steps,
                long_texts=self.config.long_texts,
                checkpoint=place,
                callbacks=self.callbacks,
                seed=self.seed,
                verbose=self.verbose,
            )
        if model.fit_result_.curve.stop_reason == "interrupted":
            raise KeyboardInterrupt
        return model

    def identity(self, view: Any) -> str:
        """Return a hash of everything that decides the view that is trained from an encoder, given or by name."""
        encoder = view if isinstance(view, Encoder) else Encoder(view, **self.options)
        labels = json.dumps(self.space.to_dict(), sort_keys=True)
        facts = [encoder_hash(encoder), encoder.name, labels, self.config.view_steps, self.seed, __version__]
        facts += [self.config.long_texts, encoder.max_tokens, sorted(encoder.prompts.items())]
        return digest_of(facts)[:IDENTITY]


def as_options(options: Mapping[str, Any] | None) -> dict[str, Any]:
    """Return how views and students are opened.

    Raises:
        ConfigError: it is no mapping, or an option is unknown or invalid.
    """
    if options is None:
        return {}
    if not isinstance(options, Mapping):
        raise ConfigError(f"encoder_options must be a mapping or None. Got {type(options).__name__} instead.")
    check_keys("encoder_options", options, OPTIONS)
    EncodingConfig(**{name: value for name, value in options.items() if name != "offline"})
    return dict(options)
