"""SetFit as in its paper: 20 pairs of each kind for each text, batches of 16, one epoch, logistic regression on top.

Alternatively with its package's defaults: every pair of texts once, with the rarer kind of pair oversampled.
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
    """Train on a data set with columns `text` and `label`, and classify texts.

    Args:
        folder: folder of the encoder.
        dataset: training rows; a label is an index into `names`.
        names: label names.
        texts: texts to classify.
        seed: seed of the pairs and their order.
        most_updates: maximum number of updates; None: the whole epoch.
        pairs_of_a_text: pairs per text, half of them of one class; None: the package's default, see
            `oversampled_updates`.

    Returns:
        A label name for each text, and the seconds of training.
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


def dataset_of(texts: Sequence[str], truth: Sequence[str], names: Sequence[str]) -> Any:
    """Return labelled texts in the form that SetFit trains on."""
    from datasets import Dataset

    return Dataset.from_dict({"text": texts, "label": [names.index(label) for label in truth]})


def updates(texts: int) -> int:
    """Return the updates of one epoch on this number of texts."""
    return -(-texts * PAIRS_OF_A_TEXT // TEXTS_OF_A_BATCH)


def oversampled_updates(counts: Sequence[int]) -> int:
    """Return the updates of one epoch at the package's defaults, from the number of texts of each class."""
    texts = sum(counts)
    alike = sum(count * (count - 1) // 2 for count in counts)
    return -(-2 * max(alike, texts * (texts - 1) // 2 - alike) // TEXTS_OF_A_BATCH)
