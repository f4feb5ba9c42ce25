"""Advice on descriptions: what leaving each out does, which labels are confused, and what cannot be judged."""

import json

import numpy as np
import pytest

from labelspace import LabelSpace, ZeroShotClassifier
from labelspace.classify.anchors import LabelVectors, anchor_matrix, cosines, encode_labels
from labelspace.consensus.signals import signals
from labelspace.consensus.without import Descriptions
from labelspace.errors import ConfigError, InputError, LabelFileError
from labelspace.evaluate import advise
from labelspace.evaluate.advice import HURTS
from labelspace.evaluate.cures import Cures
from labelspace.geometry.neighbours import Graph

LABELS = {
    "sports": ["The team won the match.", "A player and a coach.", "The market and the bank fell."],
    "money": ["The bank and the loan.", "Prices on the market.", "Tax on goods."],
    "none": [],
}
WORDS = {"sports": ["team", "match", "coach", "player"], "money": ["bank", "loan", "market", "tax"]}


def pool(rows: int = 120) -> list[str]:
    draw = np.random.default_rng(0)
    words = list(WORDS.values())
    return [f"the {' '.join(draw.choice(words[row % 2], 3))} {row}" for row in range(rows)]


@pytest.fixture(scope="module")
def space() -> LabelSpace:
    return LabelSpace.from_dict(LABELS)


@pytest.fixture(scope="module")
def found(encoder, space):
    return advise(space, pool(), encoder=encoder)


def test_every_document_is_won_by_one_description_of_its_label(found, space):
    assert len(found.descriptions) == 6
    verbalized = [one for one in found.notes if one.startswith("none has no description")]
    assert len(verbalized) == 1
    assert sum(one.wins for one in found.descriptions) <= found.documents == 120


def test_answers_without_a_description_are_those_of_a_label_file_without_it(encoder, space):
    texts = pool()
    vectors = encoder.encode(texts)
    looked = Descriptions(
        texts, vectors, space, encode_labels(encoder, space), Graph(vectors, neighbours=15, seed=0), seed=0
    )
    for one in looked.each():
        texts_left = {name: list(own) for name, own in zip(space.names, space.descriptions, strict=True)}
        texts_left[space.names[one.label]].pop(one.place)
        less = LabelSpace.from_dict(texts_left)
        answers = cosines(vectors, anchor_matrix(encode_labels(encoder, less), less, "descriptions")).argmax(axis=1)
        assert np.array_equal(one.answers, answers)
        anew = signals(answers, texts, space, vectors, seed=0)
        assert anew.neighbours == pytest.approx((looked.signals.neighbours or 0.0) + one.neighbours)


def test_what_a_label_is_not_counts_with_and_without_each_description(encoder):
    labels = {name: {"descriptions": own} for name, own in LABELS.items()}
    labels["sports"]["not"] = ["the team match player"]
    space = LabelSpace.from_dict({"labels": labels})
    texts = pool()
    vectors = encoder.encode(texts)
    known, graph = encode_labels(encoder, space), Graph(vectors, neighbours=15, seed=0)
    looked = Descriptions(texts, vectors, space, known, graph, seed=0)
    names = np.array(space.names)
    assert np.array_equal(names[looked.answers], ZeroShotClassifier(space, encoder).fit().predict(texts))
    assert not np.array_equal(
        looked.answers, cosines(vectors, anchor_matrix(known, space, "descriptions")).argmax(axis=1)
    )
    for one in looked.each():
        less = {name: {**own, "descriptions": list(own["descriptions"])} for name, own in labels.items()}
        less[space.names[one.label]]["descriptions"].pop(one.place)
        model = ZeroShotClassifier(LabelSpace.from_dict({"labels": less}), encoder).fit()
        assert np.array_equal(names[one.answers], model.predict(texts))


def test_changes_are_counted_and_the_worst_come_first(found):
    judged = [one.macro_f1 for one in found.descriptions]
    assert judged == sorted(judged, reverse=True)
    for one in found.descriptions:
        assert (one.other is None) == (one.leaving == one.coming == 0)
        assert one.cure.startswith("Keep it") == (one.macro_f1 < HURTS and one.wins > 0)


def test_a_description_of_the_other_label_hurts_and_the_cure_names_words_of_that_label():
    """Vectors by hand: sports has a description in the middle of the documents of money."""
    texts = pool(200)
    truth = np.arange(200) % 2
    draw = np.random.default_rng(0)
    vectors = (np.eye(3)[truth] + draw.normal(scale=0.25, size=(200, 3))).astype(np.float32)
    vectors /= np.linalg.norm(vectors, axis=1, keepdims=True)
    space = LabelSpace.from_dict({"sports": ["the team", "bank, loan and tax"], "money": ["money"]})
    one, other, third = np.eye(3, dtype=np.float32)
    tilted = (other + third) / np.sqrt(2, dtype=np.float32)
    known = {
        "sports": LabelVectors(one, np.stack([one, other])),
        "money": LabelVectors(tilted, tilted[None]),
    }
    looked = Descriptions(texts, vectors, space, known, Graph(vectors, neighbours=15, seed=0), seed=0)
    drawn = list(looked.each())
    left = [int((each.answers != looked.answers).sum()) for each in drawn]
    assert left[1] > 30, "documents of money go back to money without it"
    assert drawn[1].neighbours > 0
    assert (truth[drawn[1].near] == 1).mean() > 0.8, "it lies among the documents of money"
    cures = Cures(texts, truth, space, seed=0)
    told = cures.of_description(drawn[1], 1, draws=True, hurts=True)
    assert "draws documents that look like money" in told
    assert all(f"'{word}'" in told.split("say what")[0] for word in ("bank", "loan", "tax"))
    assert any(f"'{word}'" in told.split("say what")[1] for word in WORDS["sports"])
    assert "'the'" not in told, "both labels have it"


def test_parting_words_are_those_that_one_label_alone_has():
    texts, truth = pool(), np.arange(120) % 2
    cures = Cures(texts, truth, LabelSpace.from_names(["sports", "money"]), seed=0)
    one, other = cures.parting(0, 1)
    assert set(one[:4]) == set(WORDS["sports"])
    assert set(other[:4]) == set(WORDS["money"])


def test_words_that_another_label_has_too_and_numbers_part_no_labels():
    ends = ["his match 39 39 39", "a loan", "his vote"]
    texts = [f"{ends[row % 3]} number {row}" for row in range(120)]
    space = LabelSpace.from_names(["sports", "money", "politics"])
    cures = Cures(texts, np.arange(120) % 3, space, seed=0)
    assert cures.parting(0, 1) == (("match",), ("loan",))
    assert cures.parting(2, 1)[0] == ("vote",)


def test_advice_is_printed_and_written_as_json(found):
    text = str(found)
    assert text.startswith("6 descriptions on 120 documents")
    for one in found.descriptions:
        assert one.cure in text
    assert json.loads(json.dumps(found.to_dict()))["documents"] == 120


def test_a_description_under_the_wrong_label_is_named_with_the_label_of_its_documents(encoder):
    """Three descriptions hold each label in its place, so one that belongs to the other label wins nothing there."""
    sports, money = (
        [f"the {' '.join(words[n:] + words[:n])} {n}" for n in range(4)] for words in (WORDS["sports"], WORDS["money"])
    )
    found = advise({"sports": [*sports[:3], money[3]], "money": money[:3]}, pool(400), encoder=encoder)
    planted = next(one for one in found.descriptions if one.text == money[3])
    assert planted.astray
    assert planted.among == "money"
    assert "descriptions among the documents of other labels (1)" in str(found)
    assert "If it describes money, move it there" in str(found)


def test_confused_labels_show_documents_between_them(encoder):
    labels = {"sports": ["the team match", "a coach"], "money": ["the bank loan", "a tax"]}
    found = advise(labels, pool(200), encoder=encoder)
    for pair in found.pairs:
        assert pair.confused >= 3
        assert len(pair.between) <= 3
        assert all(text in pool(200) for text in pair.between)


@pytest.mark.parametrize(
    ("labels", "texts", "message"),
    [
        (LABELS, ["one document"], "advice needs 50 different documents or more. Got 1; give more"),
        (LABELS, ["the same"] * 80, "Got 1; give more"),
        (["sports", "money"], pool(), "no label has a description"),
    ],
)
def test_what_cannot_be_judged_is_refused_in_one_line(encoder, labels, texts, message):
    with pytest.raises(InputError, match=message) as caught:
        advise(labels, texts, encoder=encoder)
    assert "\n" not in str(caught.value)


def test_labels_of_which_a_text_may_have_several_are_refused(encoder):
    with pytest.raises(ConfigError, match="advice is about one label a text"):
        advise({"several": True, "labels": LABELS}, pool(), encoder=encoder)


def test_a_file_that_is_not_there_is_refused(encoder):
    with pytest.raises(LabelFileError):
        advise("nowhere.yaml", pool(), encoder=encoder)


def test_documents_without_a_word_of_the_labels_are_noted_and_refused_if_answers_follow_no_words(encoder):
    """Each document has words of its own, so no model of words can learn the answers."""
    draw = np.random.default_rng(0)
    letters = list("abcdefghijklmnopqrstuvwxyz")
    strange = [" ".join("".join(draw.choice(letters, 6)) for _ in range(5)) for _ in range(80)]
    with pytest.raises(InputError, match=r"0 of the 50 most frequent words .* different languages, .*kappa"):
        advise(LABELS, strange, encoder=encoder)
    german = {"sport": ["Das Spiel.", "Die Mannschaft siegt"], "geld": ["Zinsen und Steuern.", "Ein Kredit"]}
    notes = advise(german, pool(), encoder=encoder).notes
    assert any("different languages" in note for note in notes), "answers follow words, so it is a note"


@pytest.mark.slow
def test_documents_outside_of_all_labels_are_left_out_as_the_classifier_answers_none(encoder):
    rain = [f"rain {row}" for row in range(40)]
    sports = ["the team match coach 3", "the player team match 4"]
    labels = {"sports": sports, "money": ["the bank loan tax 7", "the market bank loan 8"]}
    space = LabelSpace.from_dict({"labels": labels, "outside": ["rain 5"]})
    texts = pool() + rain
    answers = ZeroShotClassifier(space, encoder=encoder).fit().predict(texts)
    assert [answer is None for answer in answers] == [False] * 120 + [True] * 40
    found = advise(space, texts, encoder=encoder)
    assert found.documents == 120
    assert "40 documents lie outside of all labels, and are left out" in found.notes
    assert "rain" not in str(found)
    assert found.pairs == advise({"labels": labels}, pool(), encoder=encoder).pairs
    with pytest.raises(InputError, match=r"40 of 80 documents lie outside of all labels, and the other 40 are too few"):
        advise(space, pool()[:40] + rain, encoder=encoder)


def test_words_of_a_description_without_spaces_are_not_advised_for_it():
    texts = [f"{words}。" for words in ("球队，比赛", "银行，贷款")] * 30  # noqa: RUF001 - a Chinese comma
    space = LabelSpace.from_dict({"labels": {"体育": ["球队赢了。"], "财经": ["银行。"]}})
    cures = Cures(texts, np.arange(60) % 2, space, seed=0)
    assert "球队" in cures.parting(0, 1)[0]
    assert {"球队", "比赛"} & set(cures.parting(0, 1, new_to=0)[0]) == {"比赛"}


def test_runs_of_a_text_without_spaces_are_advised_whole():
    texts = [f"{word}。" for word in ("绝地求生", "银行贷款")] * 30
    space = LabelSpace.from_dict({"labels": {"游戏": ["玩家。"], "财经": ["股票。"]}})
    assert Cures(texts, np.arange(60) % 2, space, seed=0).parting(0, 1) == (("绝地求生",), ("银行贷款",))
