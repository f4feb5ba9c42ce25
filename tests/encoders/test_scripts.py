"""An encoder says once that its vocabulary does not know the language of some texts."""

import warnings

import pytest

from labelspace.encoders import Encoder
from labelspace.encoders.scripts import in_other_scripts, is_unread
from labelspace.errors import LabelSpaceWarning

THAI = "ทีมฟุตบอลไทยชนะการแข่งขันเมื่อวานนี้"
RUSSIAN = "Команда выиграла матч, и банк снизил ставку"


@pytest.mark.parametrize("text", [THAI, RUSSIAN, "湖人队季后赛赢得比赛。詹姆斯得到四十分、银行下调利率"])
def test_it_warns_once_of_texts_in_letters_that_it_does_not_know(text):
    encoder = Encoder("tests/data/tiny-bert")
    with pytest.warns(LabelSpaceWarning, match=f"does not know the language of texts such as '{text[:10]}"):
        encoder.encode(["a match", text])
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        encoder.encode([text])


@pytest.mark.parametrize(
    "texts",
    [
        ["😀 🎉 👍 ❤️ 🚀 ⭐ 🔥 ✅ 💯 🙏 🤖"],
        ["größer, naïve, señor, œuvre et façade: Łódź"],
        ["a match"] * 99 + [THAI],
        ["你好"],
    ],
    ids=["emoji", "accents", "one of a hundred", "too short to tell"],
)
def test_it_says_nothing_of(texts):
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        Encoder("tests/data/tiny-bert").encode(texts)


def test_trained_weights_say_it_as_the_plain_folder_does():
    encoder = Encoder("tests/data/tiny-bert")
    assert encoder.backbone.unknown_id is not None
    with pytest.warns(LabelSpaceWarning, match="does not know the language"):
        encoder.encode([THAI])


def test_texts_in_other_scripts_have_more_of_their_letters_than_of_latin_ones():
    assert in_other_scripts(["iPhone 15 发布", "新款 iPhone 发布会定于下周二举行", "Ärger", "", "서울 시내"]) == [1, 4]


def test_a_vocabulary_that_knows_a_script_has_few_unknown_tokens_and_few_tokens_a_letter():
    chinese = ["湖人队季后赛赢得比赛詹姆斯得到四十分银行下调利率"]
    characters = len(chinese[0])
    assert not is_unread(chinese, tokens=characters, unknown=0)  # a token for each character
    assert is_unread(chinese, tokens=characters, unknown=3)
    assert is_unread(chinese, tokens=3 * characters, unknown=0)  # a token for each byte
    assert not is_unread([RUSSIAN], tokens=len(RUSSIAN) // 3, unknown=0)
    assert is_unread([RUSSIAN], tokens=len(RUSSIAN) * 2 // 3, unknown=0)
