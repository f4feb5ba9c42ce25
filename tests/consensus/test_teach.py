"""A student of a consensus, and how well it follows on documents that it did not learn from."""

import warnings

import numpy as np
import pytest

from labelspace import DescriptionClassifier, LabelSpace
from labelspace.classify import WordsClassifier
from labelspace.classify.by_joint import Seen
from labelspace.config import ConsensusConfig, StudentConfig
from labelspace.consensus.agreement import kappa
from labelspace.consensus.steps import Consensus, agree
from labelspace.consensus.teach import FOLLOWS, teach
from labelspace.errors import LabelSpaceWarning

SPACE = LabelSpace.from_names(["sports", "money"])
WORDS = (["team", "match", "coach", "goal"], ["bank", "price", "market", "loan"])
NOTHING = [f"word{number}" for number in range(300)]


def documents(rows: int, *, telling: bool) -> tuple[list[str], np.ndarray]:
    """Documents of four words, of their label or of nothing, and their labels."""
    draw = np.random.default_rng(0)
    truth = np.arange(rows) % 2
    return [" ".join(draw.choice(WORDS[label] if telling else NOTHING, 4)) for label in truth], truth


def sure_of(truth: np.ndarray, texts: list[str]) -> Consensus:
    """A consensus that is right, and sure of the first half of the documents."""
    logits = np.eye(2)[truth] * np.where(np.arange(len(truth)) < len(truth) / 2, 5.0, 1.0)[:, None]
    config = ConsensusConfig(neighbours=0, words=False)
    return agree([Seen(logits)], ["view"], texts, SPACE, config, seed=0)


def test_words_that_tell_are_followed_on_documents_that_were_held_out():
    texts, truth = documents(200, telling=True)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        taught = teach(sure_of(truth, texts), texts, SPACE, "words", seed=0)
    assert taught.follows
    assert (taught.kappa, taught.documents, taught.held_out) == (1.0, 200, True)


def test_words_that_tell_nothing_are_learnt_by_heart_and_the_warning_says_that_nothing_is_followed():
    texts, truth = documents(200, telling=False)
    found = sure_of(truth, texts)
    with pytest.warns(LabelSpaceWarning, match=r"poorly: kappa -?0\.\d+ on 200 documents that it did not learn from"):
        taught = teach(found, texts, SPACE, "words", seed=0)
    by_heart = kappa(taught.model.scores(texts, SPACE).argmax(axis=1), truth, 2)
    assert taught.kappa < 0.3 < by_heart


def test_a_large_pool_is_measured_on_one_of_its_parts():
    texts, truth = documents(3000, telling=True)
    assert teach(sure_of(truth, texts), texts, SPACE, "words", seed=0).documents == 600


def test_the_student_of_words_learns_from_all_documents_weighed_by_how_sure_the_consensus_is():
    texts, truth = documents(120, telling=True)
    found = sure_of(truth, texts)
    names = np.array(SPACE.names, dtype=object)[truth]
    wanted = WordsClassifier(SPACE).fit(texts, names, sample_weight=found.probabilities.max(axis=1))
    taught = teach(found, texts, SPACE, "words", seed=0).model
    assert (taught.scores(texts, SPACE) == wanted.scores(texts, SPACE)).all()


@pytest.fixture(scope="module")
def start(tiny_encoder_folder) -> DescriptionClassifier:
    return DescriptionClassifier(SPACE, str(tiny_encoder_folder), max_steps=1).fit()


@pytest.mark.filterwarnings("ignore:the student follows the consensus poorly")
@pytest.mark.parametrize(("rows", "learnt", "measured"), [(100, 100, 100), (320, 288, 32)])
def test_an_encoder_is_measured_on_a_tenth_that_it_did_not_learn_from(start, rows, learnt, measured):
    texts, truth = documents(rows, telling=True)
    taught = teach(sure_of(truth, texts), texts, SPACE, start, teaching=StudentConfig(batch_size=64), seed=0)
    assert taught.training is not None
    assert (taught.training.documents, taught.documents) == (learnt, measured)
    assert taught.held_out == (measured < rows)
    assert taught.follows == (taught.kappa >= FOLLOWS)


@pytest.mark.filterwarnings("ignore:the student follows the consensus poorly")
def test_the_model_to_start_from_stays_as_it_is(start):
    texts, truth = documents(60, telling=True)
    before = start.scores(texts, SPACE)
    teaching = StudentConfig(batch_size=16, learning_rate=1e-2)
    taught = teach(sure_of(truth, texts), texts, SPACE, start, teaching=teaching, seed=0).model
    assert (start.scores(texts, SPACE) == before).all()
    assert (taught.scores(texts, SPACE) != before).any()
