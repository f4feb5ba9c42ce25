"""An encoder says once that it does not know the language of some texts."""

import json
import shutil
import unicodedata
import warnings
from pathlib import Path

import pytest
import yaml

from labelspace.encoders import Encoder
from labelspace.encoders.scripts import is_other, is_unread, language_of, unread_text
from labelspace.errors import LabelSpaceWarning

THAI = "ทีมฟุตบอลไทยชนะการแข่งขันเมื่อวานนี้"
RUSSIAN = "Команда выиграла матч, и банк снизил ставку"


CHINESE = "湖人队季后赛赢得比赛。詹姆斯得到四十分、银行下调利率"


@pytest.mark.parametrize("text", [THAI, RUSSIAN, CHINESE, " ".join([RUSSIAN] * 40)], ids=["th", "ru", "zh", "long"])
def test_it_warns_once_of_texts_in_letters_that_it_does_not_know(text):
    encoder = Encoder("tests/data/tiny-bert")
    said = "does not know the language of texts with letters such as (.), (.), (.): it reads"
    with pytest.warns(LabelSpaceWarning, match=said) as told:
        encoder.encode(["a match", text])
    assert not any(text[start : start + 4] in str(told[0].message) for start in range(len(text) - 4)), "no text in logs"
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


def test_a_folder_that_names_no_unknown_token_has_that_of_bert(tmp_path):
    folder = Path(shutil.copytree("tests/data/tiny-bert", tmp_path / "encoder"))
    told = folder / "tokenizer_config.json"
    told.write_text(
        json.dumps({key: value for key, value in json.loads(told.read_text()).items() if key != "unk_token"})
    )
    encoder = Encoder(str(folder))
    with pytest.warns(LabelSpaceWarning, match="does not know the language"):
        encoder.encode([THAI])


def letters(texts: list[str]) -> list[list[int]]:
    """Tokens of a vocabulary that knows single letters alone, those of Thai not at all."""
    return [[1, *(0 if "\u0e00" < each < "\u0e7f" else ord(each) for each in text), 2] for text in texts]


def words(texts: list[str]) -> list[list[int]]:
    """Tokens of a vocabulary that has every word and no emoji."""
    return [[1, *(len(word) if word.isalpha() else 0 for word in text.split()), 2] for text in texts]


def test_texts_of_two_languages_that_alternate_are_both_looked_at():
    assert unread_text(["a match", RUSSIAN] * 256, letters, 0) == RUSSIAN


def test_a_vocabulary_without_an_unknown_token_is_never_said_to_lack_a_language():
    assert unread_text([RUSSIAN], letters, None) is None


@pytest.mark.parametrize(
    "text", ["команда выиграла матч 🥹 🫶 🤌 👍", "КОМАНДА ВЫИГРАЛА МАТЧ!!!", "בְּרֵאשִׁית בָּרָא אֱלֹהִים אֵת"]
)
def test_emoji_capitals_and_points_are_no_sign_of_an_unknown_language(text):
    assert unread_text([text], words, 0) is None
    seen: list[str] = []
    unread_text([text], lambda some: words(seen.extend(some) or some), 0)
    assert all(each.isalpha() and each == each.lower() for each in seen[1].split())


def test_texts_in_other_scripts_have_more_of_their_letters_than_of_latin_ones():
    texts = ["iPhone 15 发布", "新款 iPhone 发布会定于下周二举行", "Ärger", "", "서울 시내"]
    assert [text for text in texts if is_other(text)] == [texts[1], texts[4]]


def test_a_vocabulary_that_knows_a_script_has_few_unknown_tokens_and_few_tokens_a_letter():
    chinese = ["湖人队季后赛赢得比赛詹姆斯得到四十分银行下调利率"]
    characters = len(chinese[0])
    assert not is_unread(chinese, tokens=characters, unknown=0)  # a token for each character
    assert is_unread(chinese, tokens=characters, unknown=3)
    assert is_unread(chinese, tokens=3 * characters, unknown=0)  # a token for each byte
    assert not is_unread([RUSSIAN], tokens=len(RUSSIAN) // 3, unknown=0)
    assert is_unread([RUSSIAN], tokens=len(RUSSIAN) * 2 // 3, unknown=0)


LANGUAGES = list(yaml.safe_load(Path("tests/data/languages.yaml").read_text(encoding="utf-8")).items())
ENGLISH = [
    "A new law was passed by the government, and it is not good for the poor.",
    "I am on the train that is late, in a care home van.",
    "Die hard is a film that we have to see; do it on Sunday.",
]


@pytest.mark.parametrize(("language", "text"), LANGUAGES)
def test_a_language_is_told_by_its_commonest_words(language: str, text: str):
    assert language_of([text]) == language
    assert language_of([unicodedata.normalize("NFD", text)]) == language
    assert language_of([text, *ENGLISH, *ENGLISH]) is None, "most texts are English"


@pytest.mark.parametrize(
    "texts",
    [
        ENGLISH,
        [],
        ["Der Zug ist spät."],
        ["iPhone 12 case black silicone"] * 9,
        [RUSSIAN] * 9,
        ["12 Main Street, New Orleans, LA 70112"] * 9,
        ["mail to jo.doe@acme.com"] * 9,
        ["os.path.join(os.getcwd(), name)"] * 9,
        ["Los Angeles, CA: Van Persie and van Dijk, Eau de Toilette"] * 9,
        ["na na na na, NA NA, se na"] * 9,
    ],
)
def test_no_language_is_told_of(texts: list[str]):
    assert language_of(texts) is None


def test_an_encoder_of_english_says_once_that_texts_seem_to_be_of_another_language():
    encoder = Encoder("tests/data/tiny-bert")
    german = dict(LANGUAGES)["German"]
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        encoder.encode([german])  # nothing is known about the tiny encoder
        encoder.name = "intfloat/multilingual-e5-small"
        encoder.encode([german])
        encoder.name = "all-MiniLM-L6-v2"
        encoder.encode(ENGLISH)
    with pytest.warns(LabelSpaceWarning, match="all-MiniLM-L6-v2 was trained on English, and texts seem to be German"):
        encoder.encode([german])
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        encoder.encode([german])
