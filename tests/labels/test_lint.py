"""Lint: every code is found where it applies, and nowhere else."""

import re
import time
import tracemalloc
from collections.abc import Sequence
from pathlib import Path

import numpy as np
import pytest
from numpy.typing import NDArray

from labelspace.encoders import Encoder
from labelspace.errors import ConfigError
from labelspace.labels import Finding, Label, LabelSpace, lint, lint_meaning
from labelspace.labels.lint_codes import CODES
from labelspace.labels.lint_words import words

SPORTS = ["The team won the final match.", "A runner broke the record.", "Fans fill every stadium tonight."]
MONEY = ["Shares fell sharply on Monday.", "The company cut its profit forecast.", "Central banks raised rates again."]
CLEAN = LabelSpace([Label("sports", descriptions=SPORTS), Label("money", descriptions=MONEY)])


class Angles:
    """Measures texts by given angles, in degrees; a word is a token."""

    max_tokens = 8

    def __init__(self, angles: dict[str, float]) -> None:
        apart = {text: 45.0 * place for place, text in enumerate(lint_meaning.UNRELATED)}
        self.angles = apart | angles

    def count_tokens(self, texts: Sequence[str]) -> list[int]:
        return [len(text.split()) for text in texts]

    def tokenize(self, texts: Sequence[str]) -> list[list[int]]:
        return [[*text.encode()] for text in texts]

    def encode(self, texts: Sequence[str]) -> NDArray[np.float64]:
        degrees = np.radians([self.angles[text] for text in texts])
        return np.stack([np.cos(degrees), np.sin(degrees)], axis=1)


def space_of(**descriptions: list[str]) -> LabelSpace:
    return LabelSpace.from_dict({"labels": descriptions})


def found(space: LabelSpace, code: str, *rest, **options) -> list[Finding]:
    return [finding for finding in lint(space, *rest, **options) if finding.code == code]


def test_a_good_space_gives_no_findings():
    assert lint(CLEAN) == []


CASES = {
    "no-descriptions": (
        space_of(sports=SPORTS, money=[]),
        [("warning", ("money",), "only its verbalizer 'This text is about money.'")],
    ),
    "few-descriptions": (
        space_of(sports=SPORTS[:2], money=MONEY[:1]),
        [("info", ("sports",), "has only 2 descriptions."), ("info", ("money",), "has only 1 description.")],
    ),
    "uneven-counts": (
        space_of(sports=SPORTS[:1], money=MONEY, art=[]),
        [("warning", ("sports",), "runs from 1 ('sports') to 3 ('money')")],
    ),
    "very-short-description": (
        space_of(sports=["Ball games only", *SPORTS], money=MONEY),
        [("warning", ("sports",), "'Ball games only' has fewer than 4 words")],
    ),
    "names-differ-by-case": (
        LabelSpace.from_names(["Sports", "money", "sports", "caf\u00e9", "cafe\u0301"]),
        [
            ("warning", ("Sports", "sports"), "differ only in capital letters"),
            ("warning", ("caf\u00e9", "cafe\u0301"), "in how Unicode writes an accent"),
        ],
    ),
    "duplicate-verbalizer": (
        LabelSpace([Label("a", "sport"), Label("b", "money"), Label("c", verbalizer="This text is  about sport.")]),
        [("error", ("a", "c"), "have the same verbalizer 'This text is about sport.'")],
    ),
    "raw-name-in-verbalizer": (
        LabelSpace([Label("card_arrival"), Label("card_lost", "a lost card"), Label("card_pin", verbalizer="My PIN.")]),
        [("info", ("card_arrival",), "the encoder reads 'This text is about card_arrival.'")],
    ),
    "name-in-other-description": (
        space_of(
            **{"lost_card": ["Where is my LOST card now?"], "pin": ["My lost-card question.", "Spinning pinned."]}
        ),
        [("warning", ("pin", "lost_card"), "'My lost-card question.' contains the name of 'lost_card'")],
    ),
    "duplicate-description": (
        space_of(sports=[SPORTS[0], SPORTS[0].upper(), SPORTS[1]], money=[MONEY[0], SPORTS[1].replace(" ", "  ")]),
        [
            ("error", ("sports",), "label 'sports' has the same description 2 times: 'The team won"),
            ("error", ("sports", "money"), "the labels 'sports', 'money' share the same description 2 times"),
        ],
    ),
    "near-duplicate-description": (
        space_of(
            sports=[
                "one two three four five six seven eight nine ten",
                "Nine ten, eight seven six five four three two!",
            ],
            money=["one two three four five six seven eight nine x", "one two three four x y z"],
        ),
        [
            ("warning", ("sports",), "say nearly the same (90% of their words in common)"),
            ("warning", ("sports", "money"), "(82% of their words in common)"),
        ],
    ),
}


@pytest.mark.parametrize(("code", "space", "expected"), [(code, *case) for code, case in CASES.items()], ids=CASES)
def test_without_an_encoder_lint_finds(code: str, space: LabelSpace, expected: list[tuple]):
    findings = found(space, code)
    assert [(finding.severity, finding.labels) for finding in findings] == [(each[0], each[1]) for each in expected]
    for finding, (_, _, part) in zip(findings, expected, strict=True):
        assert part in finding.message
        assert finding.message.endswith(".")
        assert finding.cure.endswith(".")


def test_near_duplicates_equal_those_of_comparing_every_pair():
    """The prefix filter leaves out only pairs that cannot be near-duplicates."""
    words = ["red", "green", "blue", "white", "black", "grey"]
    texts = [" ".join(word for bit, word in enumerate(words) if number >> bit & 1) for number in range(1, 64)]
    space = LabelSpace([Label("a", descriptions=texts), Label("b")])
    for share in (0.2, 0.5, 2 / 3, 0.8, 1.0):
        expected = {
            (one, other)
            for i, one in enumerate(texts)
            for other in texts[i + 1 :]
            if len({*one.split()} & {*other.split()}) / len({*one.split()} | {*other.split()}) >= share
        }
        pairs = found(space, "near-duplicate-description", near_duplicate_words=share)
        assert {finding.texts for finding in pairs} == expected


def test_parts_of_the_own_name_and_very_short_names_are_not_reported():
    space = space_of(
        card=["Any card."], card_arrival=["My card has not come."], no=["Say it."], other=["No, it is no good."]
    )
    assert found(space, "name-in-other-description") == []


@pytest.mark.parametrize(
    ("sports", "money", "text", "other"),
    [
        ("体育", "财经", "昨晚的比赛很精彩", "体育股票今天大跌"),
        ("กีฬา", "การเงิน", "ทีมฟุตบอลชนะการแข่งขัน", "หุ้นกีฬาตกลงมาก"),
        ("スポーツ", "お金", "昨日の試合はすごかった", "スポーツ株が下がった"),
    ],
    ids=["Chinese", "Thai", "Japanese"],
)
def test_each_letter_of_a_script_without_spaces_is_a_word(sports, money, text, other):
    space = space_of(**{sports: [text], money: [other]})
    assert found(space, "very-short-description") == []
    assert [finding.labels for finding in found(space, "name-in-other-description")] == [(money, sports)]


def test_letters_keep_their_marks_and_accents_may_be_written_apart():
    assert words("मैच जीत लिया") == ["मैच", "जीत", "लिया"]
    assert words("Cafe\u0301 ที่ดี 東京") == ["café", "ที่", "ดี", "東", "京"]


def test_findings_are_sorted_by_severity_and_then_by_label():
    space = space_of(b=[], a=["Same text it is.", "Same text it is."], c=["One more text here."])
    findings = lint(space)
    ranks = [("error", "warning", "info").index(finding.severity) for finding in findings]
    assert ranks == sorted(ranks)
    for severity in ("error", "warning", "info"):
        places = [space.index(finding.labels[0]) for finding in findings if finding.severity == severity]
        assert places == sorted(places)


def test_another_order_of_labels_gives_the_same_findings():
    space = CASES["name-in-other-description"][0].add(Label("art", descriptions=["My lost card, as art."]))
    turned = space.reorder(["art", "pin", "lost_card"])
    assert {(each.code, frozenset(each.labels)) for each in lint(space)} == {
        (each.code, frozenset(each.labels)) for each in lint(turned)
    }


# ---- with an encoder


def measured(sports: dict[str, float], money: dict[str, float]) -> tuple[LabelSpace, Angles]:
    """Two labels whose verbalizers lie at 0 and 90 degrees, with descriptions at angles."""
    space = space_of(sports=list(sports), money=list(money))
    return space, Angles({space.verbalizers[0]: 0, space.verbalizers[1]: 90, **sports, **money})


def test_descriptions_near_their_own_label_give_no_findings():
    space, angles = measured(
        {"a b c d": 0, "e f g h": 20, "i j k l": 40}, {"m n o p": 90, "q r s t": 70, "u v w x": 110}
    )
    assert lint(space, angles) == []


def test_a_description_nearer_to_another_label_is_found_by_both_rules():
    space, angles = measured(
        {"a b c d": 0, "e f g h": 20, "i j k l": 80}, {"m n o p": 90, "q r s t": 70, "u v w x": 110}
    )
    (finding,) = found(space, "nearer-to-other-label", angles)
    assert finding.labels == ("sports", "money")
    assert finding.texts == ("i j k l",)
    # own verbalizer cos 80, other cos 10; own others mean(cos 80, cos 60), other mean(cos 10, cos 10, cos 30)
    assert "the verbalizer of 'money' (cosine 0.98, to its own 0.17)" in finding.message
    assert "to the descriptions of 'money' (cosine 0.95, to its own 0.34)" in finding.message


def test_a_description_is_left_out_of_its_own_label():
    """At 40 degrees the own verbalizer is nearer; only the cosine of 1 with itself would hide the other label."""
    space, angles = measured({"a b c d": 40, "e f g h": -60}, {"m n o p": 90, "q r s t": 90})
    (finding,) = found(space, "nearer-to-other-label", angles)
    # mean over both descriptions would be (1 + cos 100) / 2 = 0.41, without itself it is cos 100 = -0.17; other cos 50
    assert finding.message.endswith("is nearer to the descriptions of 'money' (cosine 0.64, to its own -0.17).")


def test_a_single_description_is_judged_by_its_verbalizer():
    space, angles = measured({"a b c d": 40}, {"m n o p": 40})
    (finding,) = found(space, "nearer-to-other-label", angles)
    assert finding.labels == ("money", "sports")
    assert "verbalizer" in finding.message
    assert "descriptions" not in finding.message


def test_a_label_without_descriptions_is_not_compared_by_descriptions():
    """A mean of nothing would be nearer to the descriptions of sports than they are to one another."""
    space = space_of(sports=["a b c d", "e f g h", "i j k l"], art=[])
    angles = Angles({space.verbalizers[0]: 0, space.verbalizers[1]: 180, "a b c d": 0, "e f g h": 120, "i j k l": 240})
    assert all("descriptions of 'art'" not in f.message for f in found(space, "nearer-to-other-label", angles))


def test_a_difference_within_the_margin_is_no_finding():
    space, angles = measured({"a b c d": 46}, {"m n o p": 90})
    assert found(space, "nearer-to-other-label", angles) == []
    assert len(found(space, "nearer-to-other-label", angles, margin=0)) == 1


def test_labels_overlap_when_they_are_as_near_to_each_other_as_within():
    space, angles = measured({"a b c d": 0, "e f g h": 60}, {"m n o p": 10, "q r s t": 70})
    (finding,) = found(space, "overlapping-labels", angles)
    # within: cos 60 both; between: mean of cos 10, cos 70, cos 50, cos 10
    assert finding.labels == ("sports", "money")
    assert "mean cosine is 0.74 between the labels and 0.50 within them" in finding.message
    assert found(space, "overlapping-labels", angles, overlap=1.5) == []


def test_labels_are_compared_with_texts_that_have_nothing_in_common():
    """All cosines of some encoders lie close together: 0.94 between labels is far where unrelated texts have 0.95."""
    space, angles = measured({"a b c d": 0, "e f g h": 10}, {"m n o p": 20, "q r s t": 30})
    assert len(found(space, "overlapping-labels", angles)) == 1
    angles.angles |= {text: 5.0 * place for place, text in enumerate(lint_meaning.UNRELATED)}
    assert found(space, "overlapping-labels", angles) == []


class Scattered:
    """Measures texts by random vectors, the same for the same number of texts."""

    max_tokens = 512

    def count_tokens(self, texts: Sequence[str]) -> list[int]:
        return [1] * len(texts)

    def tokenize(self, texts: Sequence[str]) -> list[list[int]]:
        return [[*text.encode()] for text in texts]

    def encode(self, texts: Sequence[str]) -> NDArray[np.float32]:
        vectors = np.random.default_rng(0).normal(size=(len(texts), 8))
        return (vectors / np.linalg.norm(vectors, axis=1, keepdims=True)).astype(np.float32)


def scattered(labels: int, *, most: int = 5) -> LabelSpace:
    """Labels with 0 to `most` descriptions."""
    names = [f"label{i:04}" for i in range(labels)]
    return space_of(**{name: [f"{name} text {j}" for j in range(i % (most + 1))] for i, name in enumerate(names)})


def by_loops(space: LabelSpace, *, cosine: float, margin: float, overlap: float) -> list[tuple[str, ...]]:
    """The three checks by meaning, one text after another."""
    vectors = Scattered().encode([*lint_meaning.all_texts(space), *lint_meaning.UNRELATED]).tolist()
    owners = [i for i, label in enumerate(space) for _ in label.descriptions]
    labels, texts = range(len(space)), range(len(owners))
    at = [[len(space) + n for n in texts if owners[n] == i] for i in labels]

    def cos(one: int, other: int) -> float:
        return sum(a * b for a, b in zip(vectors[one], vectors[other], strict=True))

    def mean(row: int, others: list[int]) -> float:
        return sum(cos(row, other) for other in others) / len(others)

    def best(scores: dict[int, float], own: int) -> int:
        others = {i: score for i, score in scores.items() if i != own}
        return max(others, key=lambda i: others[i])

    told = []
    for n in texts:
        row, own = len(space) + n, owners[n]
        for other in range(n + 1, len(owners)):
            if cos(row, len(space) + other) >= cosine:
                names = dict.fromkeys((space.names[own], space.names[owners[other]]))
                told.append(("near-duplicate-description", *names))
        beaten = []
        scores = {i: cos(row, i) for i in labels}
        if scores[i := best(scores, own)] > scores[own] + margin:
            beaten.append(space.names[i])
        if rest := [other for other in at[own] if other != row]:
            scores = {i: mean(row, rest if i == own else at[i]) for i in labels if at[i]}
            if scores[i := best(scores, own)] > scores[own] + margin:
                beaten.append(space.names[i])
        if beaten:
            told.append(("nearer-to-other-label", space.names[own], *dict.fromkeys(beaten)))
    apart = range(len(vectors) - len(lint_meaning.UNRELATED), len(vectors))
    unrelated = sum(mean(row, [o for o in apart if o != row]) for row in apart) / len(apart)
    some = [i for i in labels if len(at[i]) > 1]
    within = {i: sum(mean(row, [o for o in at[i] if o != row]) for row in at[i]) / len(at[i]) for i in some}
    for one in some:
        for other in some:
            inside = (within[one] + within[other]) / 2
            between = sum(mean(row, at[other]) for row in at[one]) / len(at[one])
            if other > one and between >= inside - (1 - overlap) * abs(inside - unrelated):
                told.append(("overlapping-labels", space.names[one], space.names[other]))
    return sorted(told)


@pytest.mark.parametrize("cells", [1, 100, lint_meaning.CELLS])
def test_meanings_are_compared_as_if_one_text_after_another(cells: int, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(lint_meaning, "CELLS", cells)
    space = scattered(18)
    expected = by_loops(space, cosine=0.8, margin=0.3, overlap=0.9)
    findings = lint(space, Scattered(), near_duplicate_words=1, near_duplicate=0.8, margin=0.3, overlap=0.9)
    told = [(finding.code, *finding.labels) for finding in findings]
    codes = {"near-duplicate-description", "nearer-to-other-label", "overlapping-labels"}
    assert {code for code, *_ in expected} == codes
    assert sorted(each for each in told if each[0] in codes) == expected


def test_of_many_labels_each_is_named_with_the_one_that_it_overlaps_most(monkeypatch: pytest.MonkeyPatch):
    space, angles = measured({"a b c d": 0, "e f g h": 60}, {"m n o p": 11, "q r s t": 71})
    space = LabelSpace([*space, Label("art", descriptions=["one two three", "four five six"])])
    angles.angles |= {"one two three": 10, "four five six": 70, space.verbalizers[2]: 45}
    everything = [finding.labels for finding in found(space, "overlapping-labels", angles)]
    assert everything == [("sports", "money"), ("sports", "art"), ("money", "art")]
    monkeypatch.setattr(lint_meaning, "MANY_LABELS", 2)
    some = [finding.labels for finding in found(space, "overlapping-labels", angles)]
    assert some == [("sports", "art"), ("money", "art")]


def test_memory_for_meanings_does_not_grow_with_the_square_of_the_texts(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(lint_meaning, "CELLS", 10_000)
    space = scattered(800)
    texts = sum(map(len, space.descriptions))
    meanings = lint_meaning.Meanings.of(space, Scattered())
    tracemalloc.start()
    assert lint_meaning.near_by_meaning(meanings, cosine=0.999) == {}
    assert list(lint_meaning.nearer_to_other(meanings, margin=2)) == []
    # Labels whose texts differ as unrelated ones do overlap by any measure; rounding decides how many there are.
    assert len(list(lint_meaning.overlapping(meanings, overlap=1e6))) < 5
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert peak < texts * texts / 4  # less than a sixteenth of the cosines of all pairs, which are four bytes each


def test_a_near_duplicate_found_by_meaning_and_words_is_reported_once():
    space, angles = measured({"a b c d": 0, "d c b a": 1, "e f g h": 10}, {"m n o p": 90})
    findings = found(space, "near-duplicate-description", angles)
    assert [finding.texts for finding in findings] == [
        ("a b c d", "d c b a"),
        ("a b c d", "e f g h"),
        ("d c b a", "e f g h"),
    ]
    assert "(cosine 1.00)" in findings[0].message


def test_descriptions_and_verbalizers_that_are_too_long_for_the_encoder_are_found():
    long = "one two three four five six seven eight nine"
    space = LabelSpace([Label("a", verbalizer=long), Label("b", descriptions=[long + " ten"])])
    angles = Angles({long: 0, "This text is about b.": 90, long + " ten": 90})
    verbalizer, description = found(space, "text-too-long", angles)
    assert "label 'a': the verbalizer" in verbalizer.message
    assert "has 9 tokens, the encoder reads the first 8" in verbalizer.message
    assert "label 'b': the description" in description.message


def test_texts_of_not_and_outside_that_are_too_long_are_found_too():
    long = "one two three four five six seven eight nine"
    space = LabelSpace.from_dict({"labels": {"a": {"not": [long]}, "b": []}, "outside": [long + " ten"]})
    angles = Angles({"This text is about a.": 0, "This text is about b.": 90, long: 0, long + " ten": 0})
    excluded, outside = found(space, "text-too-long", angles)
    assert "label 'a': the 'not' " in excluded.message
    assert outside.message.startswith("the 'outside' ")
    assert (excluded.labels, outside.labels) == (("a",), ())


@pytest.mark.parametrize(
    "option",
    [
        {"few": -1},
        {"short": 1.5},
        {"uneven": 1},
        {"near_duplicate_words": 0},
        {"near_duplicate": 2},
        {"margin": -1},
        {"overlap": 0},
    ],
)
def test_an_invalid_threshold_is_refused(option: dict):
    with pytest.raises(ConfigError, match=next(iter(option))):
        lint(CLEAN, **option)


def test_lint_of_many_labels_is_fast():
    words = [f"word{i}" for i in range(500)]
    space = space_of(
        **{
            f"label{i}": [" ".join(words[(i * 7 + j * 31 + k * k) % 500] for k in range(25)) for j in range(5)]
            for i in range(77)
        }
    )
    start = time.perf_counter()
    lint(space)
    assert time.perf_counter() - start < 2


def test_verbalizers_that_the_encoder_reads_alike_are_an_error(tiny_encoder_folder):
    encoder = Encoder(tiny_encoder_folder)
    space = LabelSpace([Label("財經"), Label("遊戲"), Label("sports"), Label("same", "sports"), Label("money")])
    found = [one for one in lint(space, encoder) if one.code == "duplicate-verbalizer"]
    assert [(one.severity, one.labels) for one in found] == [("error", ("財經", "遊戲")), ("error", ("sports", "same"))]
    assert "the encoder reads the verbalizers of '財經', '遊戲' alike" in found[0].message


def test_sharp_s_is_not_ss():
    space = space_of(Maße=["Er genießt in Maßen und ohne Reue."], Masse=["Er genießt in Massen und ohne Reue."])
    codes = {one.code for one in lint(space)}
    assert not codes & {"duplicate-verbalizer", "duplicate-description", "names-differ-by-case"}


def test_the_page_lists_every_code_with_its_severity():
    page = Path(__file__).parents[2] / "docs" / "label-files.md"
    told = re.findall(r"^\| `([a-z-]+)` \| (error|warning|info) \|", page.read_text(encoding="utf-8"), re.MULTILINE)
    assert sorted(told) == sorted(CODES.items()), "change the table of docs/label-files.md, or labels/lint_codes.py"
