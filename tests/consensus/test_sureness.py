"""How sure a model should be, without labels."""

import json
from types import SimpleNamespace

import numpy as np
import pytest
from scipy.special import softmax

from labelspace import ConsensusClassifier, DescriptionClassifier, LabelSpace, ZeroShotClassifier, load
from labelspace.classify.saved.opening import open_to_answer
from labelspace.consensus.signals import Range
from labelspace.consensus.sureness import Sureness, of_student, sureness
from labelspace.errors import ConfigError, InputError
from labelspace.evaluate import calibrate, estimate, quality
from labelspace.training.calibration import temperature_for_accuracy
from tiny_rows import tiny_rows

SPACE = LabelSpace.from_names(["money", "sports", "world"])
TEXTS, NAMES = tiny_rows(150, doubtful=0.2)
TEXTS = [f"{text} {row}" for row, text in enumerate(TEXTS)]


def logits_of(names, strength):
    """Return logits that name these labels, more or less strongly."""
    draw = np.random.default_rng(0)
    found = draw.normal(size=(len(names), 3))
    found[np.arange(len(names)), [SPACE.index(name) for name in names]] += 3
    return found * strength


@pytest.mark.parametrize("accuracy", [0.5, 0.7, 0.95])
def test_at_the_temperature_answers_are_as_sure_on_average_as_they_are_right(accuracy):
    logits = logits_of(NAMES, 2.0)
    by = temperature_for_accuracy(logits, accuracy)
    sure = [max(np.exp(row / by) / sum(np.exp(row / by))) for row in logits]
    assert sum(sure) / len(sure) == pytest.approx(accuracy, abs=1e-6)


def test_an_accuracy_out_of_reach_gives_the_nearest_temperature():
    logits = logits_of(NAMES, 2.0)
    assert temperature_for_accuracy(logits, 0.0) == pytest.approx(20)
    assert temperature_for_accuracy(logits, 1.0) == pytest.approx(1 / 20)
    with pytest.raises(ConfigError, match="accuracy must be"):
        temperature_for_accuracy(logits, 1.2)


@pytest.mark.parametrize("strength", [0.3, 5.0])
def test_the_strength_of_the_logits_does_not_matter(strength):
    one = sureness(logits_of(NAMES, 1.0), TEXTS, SPACE, None, consensus=True, seed=0)
    other = sureness(logits_of(NAMES, strength), TEXTS, SPACE, None, consensus=True, seed=0)
    assert one is not None
    assert other is not None
    assert other.temperature == pytest.approx(strength * one.temperature, rel=1e-4)
    assert one.accuracy == other.accuracy


def test_few_documents_or_one_answer_tell_nothing():
    logits = logits_of(NAMES, 1.0)
    assert sureness(logits[:49], TEXTS[:49], SPACE, None, consensus=True, seed=0) is None
    logits[:, 0] = 9.0
    assert sureness(logits, TEXTS, SPACE, None, consensus=True, seed=0) is None


def test_a_student_that_agrees_less_is_less_sure():
    teacher = Sureness(temperature=1.0, accuracy=Range(0.7, 0.8, 0.9), confidence_before=0.9, documents=150)
    sure = [of_student(teacher, logits_of(NAMES, 1.0), agreed=agreed) for agreed in (1.0, 0.5)]
    assert [round(each.accuracy.expected, 3) for each in sure] == [0.8, 0.6]
    assert sure[0].temperature < sure[1].temperature


def test_a_consensus_is_as_sure_as_it_is_likely_to_be_right_and_its_card_says_so(tiny_encoder_folder, tmp_path):
    views = [f"zero-shot:{tiny_encoder_folder}", "words"]
    for student in (None, "words"):
        clf = ConsensusClassifier(SPACE, views, student=student, config={"guards": False}).fit(TEXTS)
        told = clf.fit_result_.probabilities
        assert told is not None
        if student is None:
            sure = clf.predict_proba(TEXTS).max(axis=1).mean()
            assert sure == pytest.approx(told["accuracy"]["expected"], abs=0.02)
        opened = load(clf.save(tmp_path / str(student)))
        assert opened.decision().temperature == clf.model_.decision().temperature != 1
        assert (opened.predict_proba(TEXTS) == clf.predict_proba(TEXTS)).all()
        card = (tmp_path / str(student) / "README.md").read_text()
        assert f"makes them {told['accuracy']['expected']:.2f} on average" in card
        assert f"off by {told['elsewhere']['mean']:.3f}" in card
        assert "Every text gets a label" in card


@pytest.mark.slow
def test_the_card_of_a_consensus_tells_no_accuracy_of_other_labels(tiny_encoder_folder, tmp_path):
    views = [f"zero-shot:{tiny_encoder_folder}", "words"]
    clf = ConsensusClassifier(SPACE, views, student=None, config={"guards": False}).fit(TEXTS).model_
    assert "likely accuracy" in card_of(clf, tmp_path / "model")
    clf.rename_label("world", "politics")
    assert "likely accuracy" in card_of(clf, tmp_path / "renamed"), "a name changes no answer"
    changed = load(tmp_path / "renamed")
    changed.remove_label("politics")
    assert changed.temperature_ == clf.temperature_
    for model in (changed, load(changed.save(tmp_path / "removed"))):
        assert "accuracy" not in card_of(model, tmp_path / "again")
    found = calibrate(changed, TEXTS)
    assert f"makes them {found.accuracy.expected:.2f} on average" in card_of(changed, tmp_path / "calibrated")


def test_calibrate_tells_what_share_its_new_probabilities_refuse(tiny_encoder_folder):
    views = [f"zero-shot:{tiny_encoder_folder}", "words"]
    clf = ConsensusClassifier(SPACE, views, student=None, config={"guards": False}).fit(TEXTS).model_
    clf.set_params(min_probability=0.6)
    texts = sorted(set(TEXTS))
    before = np.equal(clf.predict(texts), None).mean()
    found = calibrate(clf, texts)
    assert found.refused == np.equal(clf.predict(texts), None).mean() != before


def test_the_card_tells_what_calibrate_found_with_the_labels_it_had(tiny_encoder_folder, tmp_path):
    clf = ZeroShotClassifier(SPACE, tiny_encoder_folder).fit()
    assert "accuracy" not in card_of(clf, tmp_path / "fitted")
    found = calibrate(clf, TEXTS)
    card = card_of(load(clf.save(tmp_path / "without")), tmp_path / "again")
    assert f"makes them {found.accuracy.expected:.2f} on average" in card
    assert card.count("estimated without labels") == 2
    calibrate(clf, TEXTS, NAMES)
    card = card_of(clf, tmp_path / "with")
    assert card.count(f"estimated with {len(set(TEXTS))} labels") == 2, "in the head and among the limits"
    clf.set_params(temperature=0.3)
    assert "accuracy" not in card_of(clf, tmp_path / "parameter")
    calibrate(clf, TEXTS)
    clf.temperature_ = 0.1
    assert "accuracy" not in card_of(clf, tmp_path / "by hand")


def test_a_second_calibrate_changes_nothing_even_where_no_temperature_is_right(tiny_encoder_folder, monkeypatch):
    clf = ZeroShotClassifier(SPACE, tiny_encoder_folder).fit()
    for accuracy in (1.0, 0.0, 0.8):
        found = SimpleNamespace(accuracy=Range(accuracy, accuracy, accuracy), documents=len(TEXTS), labelled=0)
        monkeypatch.setattr(quality, "_estimated", lambda _, found=found: found)
        temperatures = []
        for _ in range(3):
            calibrate(clf, TEXTS)
            temperatures.append(clf.temperature_)
        assert temperatures == pytest.approx(temperatures[:1] * 3, rel=1e-3)


def card_of(model, folder):
    """Return the card of a model."""
    return (model.save(folder) / "README.md").read_text()


def test_the_card_tells_the_limit_for_none_of_these(tiny_encoder_folder, tmp_path):
    clf = ZeroShotClassifier(SPACE, tiny_encoder_folder).fit().set_coverage(0.9, TEXTS)
    card = card_of(clf, tmp_path / "model")
    assert "`predict` answers None below a closeness of" in card
    assert "of 150 unlabelled documents were." in card


def test_calibrate_changes_how_sure_answers_are_and_no_answer(tiny_encoder_folder):
    clf = ZeroShotClassifier(SPACE, tiny_encoder_folder).fit()
    before = clf.predict(TEXTS)
    found = calibrate(clf, TEXTS)
    assert (clf.predict(TEXTS) == before).all()
    assert clf.predict_proba(TEXTS).max(axis=1).mean() == pytest.approx(found.accuracy.expected, abs=0.01)
    assert json.dumps(found.to_dict()) == json.dumps(estimate(clf, TEXTS).to_dict())


def test_a_temperature_from_documents_is_saved_and_not_trained_with(tiny_encoder_folder, tmp_path):
    clf = DescriptionClassifier(SPACE, tiny_encoder_folder, max_steps=2).fit()
    losses, given = clf.fit_result_.curve.losses, clf.temperature
    calibrate(clf, TEXTS)
    sure = clf.predict_proba(TEXTS)
    folder = clf.save(tmp_path / "model")
    assert f"| temperature | {clf.temperature_}" in (folder / "README.md").read_text()
    for opened in (load(folder), open_to_answer(folder)):
        assert (opened.decision().temperature, opened.temperature) == (clf.temperature_, given)
    assert (load(folder).predict_proba(TEXTS) == sure).all()
    assert clf.set_params(**clf.get_params()).decision().temperature == clf.temperature_ != given
    assert clf.set_params(temperature=0.5).decision().temperature == 0.5, "the last word counts"
    calibrate(clf.set_params(temperature=given), TEXTS)
    assert clf.fit().fit_result_.curve.losses == losses
    assert clf.decision().temperature == given, "a new fit forgets what documents told"


def test_a_view_keeps_the_temperature_that_documents_told(tiny_encoder_folder):
    clf = ZeroShotClassifier(SPACE, tiny_encoder_folder).fit()
    calibrate(clf, TEXTS)
    joint = ConsensusClassifier(SPACE, [clf, ZeroShotClassifier(SPACE, tiny_encoder_folder).fit()]).fit(TEXTS).model_
    assert [one.temperature_ == clf.temperature_ for one in joint.head_.members] == [True, False]
    with pytest.raises(ConfigError, match="temperature must be a number above 0"):
        clf.temperature_ = 0


def test_labels_narrow_what_calibrate_goes_by(tiny_encoder_folder):
    clf = ZeroShotClassifier(SPACE, tiny_encoder_folder).fit()
    wide, narrow = calibrate(clf, TEXTS).accuracy, calibrate(clf, TEXTS, NAMES).accuracy
    assert narrow.high - narrow.low < wide.high - wide.low


def test_a_model_without_a_temperature_to_set_is_refused(doubting):
    with pytest.raises(ConfigError, match="UncertaintyClassifier has no temperature to set"):
        calibrate(doubting, TEXTS)
    with pytest.raises(InputError, match="needs 50 different documents"):
        calibrate(ZeroShotClassifier(SPACE, "tests/data/tiny-bert").fit(), TEXTS[:3])


@pytest.fixture
def doubting(tiny_encoder_folder):
    """A model whose temperature was fitted on rows."""
    from labelspace import UncertaintyClassifier

    return UncertaintyClassifier(encoder=tiny_encoder_folder, epochs=1, cache=None).fit(TEXTS, NAMES)


def test_probabilities_of_all_labels_still_sum_to_one(tiny_encoder_folder):
    clf = ZeroShotClassifier(SPACE, tiny_encoder_folder).fit()
    calibrate(clf, TEXTS)
    assert clf.predict_proba(TEXTS).sum(axis=1) == pytest.approx(1)
    scores = clf.predict(TEXTS, return_scores=True)[1].astype(float)
    assert clf.predict_proba(TEXTS) == pytest.approx(softmax(scores / clf.temperature_, axis=1), abs=1e-9)
