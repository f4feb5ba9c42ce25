"""What a fit did, in words: the same of a fitted classifier, of the loaded one, and on the command line."""

import re
from pathlib import Path
from typing import Any

import pytest
from IPython.lib.pretty import pretty

from labelspace import ConsensusClassifier, DescriptionClassifier, LaConClassifier, UncertaintyClassifier, load
from old_folders import CLASSIFIERS, old_folder

# A tiny encoder with random weights is followed by nobody.
pytestmark = pytest.mark.filterwarnings("ignore:the student follows the consensus poorly")
LABELS = {"labels": {"sports": ["Matches and games."], "money": ["Banks and prices."]}}
TEXTS = [f"{what} {number}" for what in ("the team won", "the bank closed") for number in range(30)]
Y = ["sports"] * 30 + ["money"] * 30
UNSURE = {"view_steps": 1, "guards": False}


def described(encoder: Path) -> Any:
    return DescriptionClassifier(LABELS, encoder, max_steps=2, learning_rate=1e-3).fit(TEXTS)


def described_without_documents(encoder: Path) -> Any:
    return DescriptionClassifier(LABELS, encoder, max_steps=2, learning_rate=1e-3).fit()


def learnt(encoder: Path) -> Any:
    return LaConClassifier(LABELS, encoder, epochs=1, description_steps=2).fit(TEXTS, Y)


def learnt_from_no_row(encoder: Path) -> Any:
    return LaConClassifier(LABELS, encoder, learning_rate=1e-3, description_steps=2).fit(TEXTS)


def unsure(encoder: Path) -> Any:
    return UncertaintyClassifier(LABELS, encoder, epochs=2).fit(TEXTS, Y)


def agreed(encoder: Path) -> Any:
    return ConsensusClassifier(LABELS, views=[str(encoder), "words"], config=UNSURE).fit(TEXTS)


def taught(encoder: Path) -> Any:
    return ConsensusClassifier(LABELS, views=[str(encoder)], student="words", config=UNSURE).fit(TEXTS)


FITS = {
    described: ["learning rate", "steps", "loss", "uniformity", "pool"],
    described_without_documents: ["learning rate", "steps", "loss"],
    learnt: ["labelled", "descriptions", "learning rates", "steps", "loss"],
    learnt_from_no_row: ["labelled", "learning rate", "steps", "loss", "uniformity", "pool"],
    unsure: ["labelled", "learning rate", "steps", "loss"],
    agreed: ["views", "pool", "labels", "kappa"],
    taught: ["views", "pool", "labels", "student", "kappa"],
}
# Which steps a consensus takes is its own affair, and so is whether the documents tell a temperature.
IF_TAKEN = {"agreement", "levelled", "words", "smoothed", "probabilities"}


@pytest.mark.parametrize(("fit", "names"), FITS.items(), ids=lambda of: getattr(of, "__name__", ""))
def test_a_fit_is_told_in_words_and_told_alike_after_loading(
    fit: Any, names: list[str], tiny_encoder_folder: Path, tmp_path: Path
):
    clf = fit(tiny_encoder_folder)
    result = clf.fit_result_
    told = [name for name, _ in result.summary()]
    assert [name for name in told if name not in IF_TAKEN] == names
    assert str(result) == result.to_text() == pretty(result)
    assert len(str(result).splitlines()) == len(told)
    timeless = re.sub(r", in \d+\.\d s$", "", str(result), flags=re.MULTILINE)
    assert str(load(clf.save(tmp_path / "model")).fit_result_) == timeless


@pytest.mark.parametrize("name", sorted({*CLASSIFIERS} - {"zero-shot"}))
def test_the_fit_of_a_folder_of_an_earlier_version_is_told_too(name: str, tmp_path: Path):
    assert "steps" in dict(load(old_folder(name, tmp_path)).fit_result_.summary())


def test_the_losses_of_batches_are_told_as_means_of_a_tenth_of_the_updates(tiny_encoder_folder: Path):
    clf = LaConClassifier(LABELS, tiny_encoder_folder, description_steps=0, config={"max_steps": 20}).fit(TEXTS, Y)
    losses = clf.fit_result_.curve.losses
    first, last = sum(losses[:2]) / 2, sum(losses[-2:]) / 2
    assert dict(clf.fit_result_.summary())["loss"].startswith(f"{first:.4f} -> {last:.4f}, means of 2 updates, in ")
