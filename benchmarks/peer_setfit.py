"""SetFit as in its paper: 20 pairs of each kind for each text, batches of 16, one epoch, logistic regression on top.

Or at the defaults of its package, which go through every pair of texts once, the rarer kind of pair repeated.
"""

import tempfile
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

TEXTS_OF_A_BATCH = 16
PAIRS_OF_A_TEXT = 40


def run_setfit(
    folder: Path,
    dataset: Any,
    names: Sequence[str],
    texts: list[str],
    *,
    seed: int,
    most_updates: int | None = None,
    pairs_of_a_text: int | None = PAIRS_OF_A_TEXT,
) -> tuple[list[str], float]:
    """Train on a data set of `text` and `label`, and answer texts.

    Args:
        folder: the encoder.
        dataset: labels are places in `names`.
        names: of the labels.
        texts: to answer.
        seed: of pairs and their order.
        most_updates: training ends after so many; None: after the epoch.
        pairs_of_a_text: half of them of one class; None: the package's default, `oversampled_updates`.

    Returns:
        A label for each text, and the seconds of training.
    """
    from setfit import SetFitModel, Trainer, TrainingArguments

    model = SetFitModel.from_pretrained(str(folder))
    with tempfile.TemporaryDirectory() as scratch:
        arguments = TrainingArguments(
            output_dir=scratch,
            batch_size=TEXTS_OF_A_BATCH,
            num_epochs=1,
            num_iterations=None if pairs_of_a_text is None else pairs_of_a_text // 2,
            max_steps=-1 if most_updates is None else min(most_updates, updates(len(dataset))),
            seed=seed,
            report_to="none",
            save_strategy="no",
            show_progress_bar=False,
        )
        trainer = Trainer(model=model, args=arguments, train_dataset=dataset)
        started = time.perf_counter()
        trainer.train()
        seconds = time.perf_counter() - started
    found: Any = model.predict(texts)
    return [names[int(label)] for label in found], seconds


def updates(texts: int) -> int:
    """Updates of one epoch on so many texts."""
    return -(-texts * PAIRS_OF_A_TEXT // TEXTS_OF_A_BATCH)


def oversampled_updates(counts: Sequence[int]) -> int:
    """Updates of one epoch at the package's default, for so many texts of each class."""
    texts = sum(counts)
    alike = sum(count * (count - 1) // 2 for count in counts)
    return -(-2 * max(alike, texts * (texts - 1) // 2 - alike) // TEXTS_OF_A_BATCH)
