"""`DraftJudge`: which drafts stay, which labels are confused, and the control beside them."""

import pytest

from labelspace import LabelSpace, ZeroShotClassifier
from labelspace.errors import ConfigError, InputError, LabelFileError
from labelspace.evaluate import estimate
from labelspace.evaluate.drafts import CLOSE, NEUTRAL, DraftJudge
from labelspace.labels.drafts import Draft, with_drafts
from tiny_rows import WORDS, tiny_rows

NAMES = sorted(WORDS)
SPACE = LabelSpace.from_dict({"labels": {name: [] for name in NAMES}})
POOL = list(dict.fromkeys(tiny_rows(400, doubtful=0.2)[0]))
GOOD = [Draft(name, " ".join(WORDS[name])) for name in NAMES]


@pytest.fixture(scope="module")
def judge(encoder):
    return DraftJudge(SPACE, POOL, encoder)


def test_the_figures_are_those_of_the_estimate_on_the_half_that_took_no_part_in_the_choice(judge, encoder):
    choice = judge.choose(GOOD, keep="all")
    half = [judge._texts[row] for row in judge._halves[1]]
    for drafts, figure in (([], choice.before), (GOOD, choice.chosen), (judge._neutral(GOOD), choice.control)):
        model = ZeroShotClassifier(with_drafts(SPACE, drafts), encoder=encoder).fit()
        found = estimate(model, half)
        assert (figure.accuracy, figure.macro_f1) == (found.accuracy, found.macro_f1)
        assert figure.added == len(drafts)
    assert choice.documents == len(half)


def test_what_a_label_is_not_counts_as_in_the_classifier(encoder):
    first, *others = NAMES
    not_first = {"not": [" ".join(WORDS[first])]}
    space = LabelSpace.from_dict({"labels": {first: [], **dict.fromkeys(others, not_first)}})
    judge = DraftJudge(space, POOL, encoder)
    half = [judge._texts[row] for row in judge._halves[1]]
    found = estimate(ZeroShotClassifier(space, encoder=encoder).fit(), half)
    before = judge.choose([], keep="all").before
    assert (before.accuracy, before.macro_f1) == (found.accuracy, found.macro_f1)
    assert before != DraftJudge(SPACE, POOL, encoder).choose([], keep="all").before


@pytest.mark.slow
def test_drafts_stay_where_the_estimate_rises_on_both_halves(judge):
    choice = judge.choose(GOOD)
    assert choice.kept
    assert set(choice.kept) | set(choice.dropped) == set(GOOD)
    rising = [judge._figure(choice.kept[:count], half=0).accuracy.expected for count in range(len(choice.kept) + 1)]
    assert rising == sorted(set(rising)), "each draft raises the estimate on the first half"
    assert choice.chosen.accuracy.expected > max(choice.before.accuracy.expected, choice.control.accuracy.expected)
    assert "with neutral texts" in str(choice)


@pytest.mark.slow
def test_a_draft_that_says_nothing_new_does_not_stay(judge):
    verbalizers = [Draft(name, text) for name, text in zip(NAMES, SPACE.verbalizers, strict=True)]
    choice = judge.choose(verbalizers)
    assert (choice.kept, choice.dropped) == ((), tuple(verbalizers))
    assert choice.chosen == choice.before


@pytest.mark.slow
def test_a_rise_that_neutral_texts_reach_too_keeps_nothing(judge):
    neutral = judge._neutral(GOOD)
    choice = judge.choose(neutral)
    assert choice.chosen == choice.control
    assert choice.kept == ()


def test_the_control_has_as_many_neutral_texts_for_the_same_labels(judge):
    drafts = [*GOOD, *GOOD[:1]]
    neutral = judge._neutral(drafts)
    assert [one.label for one in neutral] == [one.label for one in drafts]
    assert neutral[0].text != neutral[-1].text
    assert {one.text for one in neutral} <= set(NEUTRAL)


@pytest.mark.slow
def test_the_same_seed_gives_the_same_choice(judge, encoder):
    assert DraftJudge(SPACE, POOL, encoder).choose(GOOD) == judge.choose(GOOD)


def test_confused_labels_are_those_with_most_documents_of_a_small_margin(judge, encoder):
    scores = ZeroShotClassifier(SPACE, encoder=encoder).fit().decision_function(POOL)
    ranked = [sorted(range(len(NAMES)), key=lambda column: -row[column])[:2] for row in scores.tolist()]
    margins = [row[one] - row[other] for row, (one, other) in zip(scores.tolist(), ranked, strict=True)]
    closest = sorted(range(len(POOL)), key=lambda row: margins[row])[: round(CLOSE * len(POOL))]
    counts: dict[tuple[str, ...], int] = {}
    for row in closest:
        pair = tuple(sorted(NAMES[column] for column in ranked[row]))
        counts[pair] = counts.get(pair, 0) + 1
    found = judge.confused(10)
    assert {pair.labels: pair.documents for pair in found} == counts
    assert [pair.documents for pair in found] == sorted(counts.values(), reverse=True)
    assert POOL[closest[0]] == next(
        pair.between[0] for pair in found if set(pair.labels) == {NAMES[column] for column in ranked[closest[0]]}
    )
    assert judge.confused(1) == found[:1]


def test_answers_that_are_one_label_for_all_count_as_no_agreement(encoder):
    space = LabelSpace.from_dict({"labels": {"a": ["the"], "b": ["zzz qqq"], "c": []}})
    judge = DraftJudge(space, ["the"] * 60 + ["the the"] * 60, encoder)
    assert judge.choose([]).before.accuracy.expected < 0.6


def test_labels_of_which_a_text_may_have_several_are_refused(judge, encoder):
    several = LabelSpace(judge.space.labels, several=True)
    with pytest.raises(ConfigError, match="judged for one label a text"):
        DraftJudge(several, ["a document"] * 200, encoder)


def test_too_few_documents_and_an_unknown_choice_are_refused(judge, encoder):
    with pytest.raises(InputError, match=r"needs 100 different documents or more. Got 99"):
        DraftJudge(SPACE, POOL[:99], encoder)
    with pytest.raises(ConfigError, match="keep"):
        judge.choose(GOOD, keep="some")


def test_a_draft_for_a_label_that_is_not_there_is_refused(judge):
    with pytest.raises(LabelFileError, match="no label of this name"):
        judge.choose([Draft("Sports", "A coach and the players of a team.")], keep="all")


def test_documents_outside_of_all_labels_are_judged_by_no_draft(encoder):
    rain = [f"rain {row}" for row in range(60)]
    labels = {name: [POOL[place], POOL[50 + place]] for place, name in enumerate(NAMES)}
    space = LabelSpace.from_dict({"labels": labels, "outside": ["rain 5"]})
    answers = ZeroShotClassifier(space, encoder=encoder).fit().predict(POOL + rain)
    assert [answer is None for answer in answers] == [False] * len(POOL) + [True] * 60
    assert DraftJudge(space, POOL + rain, encoder)._texts == POOL
