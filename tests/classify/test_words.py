"""A classifier by words alone."""

import re
import unicodedata
from itertools import pairwise

import numpy as np
import pytest

from labelspace import load
from labelspace.classify import WordsClassifier, predict_file
from labelspace.classify.by_words import ByWords, words_in_lower_case
from labelspace.classify.opened_words import OpenedWords
from labelspace.classify.saved.opening import open_to_answer
from labelspace.classify.tables.stream import model_fingerprint
from labelspace.errors import ConfigError, InputError, ModelFolderError
from labelspace.evaluate import evaluate
from labelspace.labels.words import is_unspaced

SEEN = ["the team won", "a team lost", "the bank closed", "a bank opened", "a vote was held", "the vote is over"]
NAMES = ["sports", "sports", "money", "money", "world", "world"]
LABELS = ["world", "sports", "money"]


@pytest.fixture
def clf() -> WordsClassifier:
    return WordsClassifier(LABELS, min_df=1).fit(SEEN, NAMES)


def test_a_text_gets_the_label_of_its_words(clf):
    assert clf.predict(["my team", "your bank", "any vote"]).tolist() == ["sports", "money", "world"]


def test_probabilities_agree_with_predictions(clf):
    texts = [*SEEN, "nothing known here"]
    probabilities = clf.predict_proba(texts)
    assert probabilities.sum(axis=1) == pytest.approx(np.ones(len(texts)))
    assert (clf.classes_[probabilities.argmax(axis=1)] == clf.predict(texts)).all()


def test_two_labels_give_the_probabilities_of_logistic_regression():
    from sklearn.feature_extraction.text import TfidfVectorizer
    from sklearn.linear_model import LogisticRegression

    table = TfidfVectorizer(sublinear_tf=True, token_pattern=r"(?u)\b\w+\b").fit(SEEN[:4])
    model = LogisticRegression(C=3.0, max_iter=300, tol=1e-3).fit(table.transform(SEEN[:4]), NAMES[:4])
    clf = WordsClassifier(["sports", "money"], min_df=1).fit(SEEN[:4], NAMES[:4])
    texts = ["the bank won", "a team"]
    assert clf.predict_proba(texts) == pytest.approx(model.predict_proba(table.transform(texts)), abs=1e-6)


def test_words_are_those_of_the_expression_for_every_character():
    # Those left out join letters, or are not seen.
    every = [chr(code) for code in range(0x3000) if code not in (0xAD, 0x200C, 0x200D, 0x2060)]
    marks = {"Mn", "Mc"}
    characters = [
        each
        for each in every
        if marks.isdisjoint(map(unicodedata.category, unicodedata.normalize("NFC", each.lower())))
        and not is_unspaced(each)
    ]
    texts = [f"A{one}b {one}{two} _x-9{one}" for one, two in pairwise(characters)]
    composed = [unicodedata.normalize("NFC", text.lower()) if max(text) >= "\u0300" else text.lower() for text in texts]
    assert [words_in_lower_case(text) for text in texts] == [re.findall(r"(?u)\b\w+\b", text) for text in composed]


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("मैच, जीत लिया।", ["मैच", "जीत", "लिया"]),
        ("ที่ดี/มาก", ["ที่", "ดี", "ที่ดี", "ม", "า", "ก", "มา", "าก"]),
        ("Cafe\u0301 NOIR", ["café", "noir"]),
        ("\u0645\u06cc\u200c\u062e\u0648\u0627\u0647\u0645", ["\u0645\u06cc\u200c\u062e\u0648\u0627\u0647\u0645"]),
        ("\U00011315\U0001133e \U00011315", ["\U00011315\U0001133e", "\U00011315"]),
        ("İstanbul", ["istanbul"]),
        ("Müll\u00adabfuhr", ["müllabfuhr"]),
        ("5\ufe0f\u20e3 stars ❤\ufe0f", ["5", "stars"]),
    ],
    ids=["Hindi", "Thai", "an accent apart", "Persian", "Grantha", "Turkish", "a soft hyphen", "emoji"],
)
def test_a_letter_keeps_its_marks(text, words):
    assert words_in_lower_case(text) == words


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("湖人队。得40分", ["湖", "人", "队", "湖人", "人队", "得", "40", "分"]),
        ("iPhone手机_1", ["iphone", "手", "机", "手机", "_1"]),
        ("カフェ・バー", ["カ", "フ", "ェ", "カフ", "フェ", "バ", "ー", "バー"]),
        ("𠮷野", ["𠮷", "野", "𠮷野"]),
        ("ភាសា", ["ភា", "សា", "ភាសា"]),
        ("서울 시내", ["서울", "시내"]),
    ],
    ids=["Chinese", "Latin and Chinese", "Japanese", "beyond 16 bits", "Khmer", "Korean has spaces"],
)
def test_scripts_without_spaces_have_letters_and_pairs_of_letters_for_words(text, words):
    assert words_in_lower_case(text) == words


HEADLINES = ["湖人队赢得比赛", "国足输掉比赛了", "银行下调利率", "央行再次加息。利率上升"]


@pytest.fixture
def chinese():
    return WordsClassifier(["体育", "财经"], min_df=1).fit(HEADLINES, ["体育", "体育", "财经", "财经"])


def test_a_chinese_text_gets_the_label_whose_letters_it_shares(chinese):
    assert chinese.predict(["今晚有三场比赛", "贷款利率怎么算"]).tolist() == ["体育", "财经"]
    assert "比赛" in dict(chinese.explain("今晚有三场比赛", nearest=3).top[0].words)


def test_a_saved_model_reads_chinese_as_it_learnt_to(chinese, tmp_path):
    for opening in (load, open_to_answer):
        again = opening(chinese.save(tmp_path / opening.__name__))
        assert (again.answers(HEADLINES).scores == chinese.answers(HEADLINES).scores).all()


def test_values_have_the_bits_of_scikit_learns_vectorizer():
    from sklearn.feature_extraction.text import TfidfVectorizer

    drawn = np.random.default_rng(0)
    texts = [" ".join(f"W{word}" for word in drawn.zipf(1.3, size=40) % 300) for _ in range(200)]
    head = ByWords.learn(texts, np.arange(200) % 2, ("a", "b"))
    other = TfidfVectorizer(sublinear_tf=True, min_df=2, token_pattern=r"(?u)\b\w+\b").fit(texts)
    asked = [*texts, "w1 w1 unseen", "unseen", ""]
    expected, found = other.transform(asked), head.table(asked)
    assert found.shape == expected.shape
    assert (abs(found - expected)).nnz == 0


def test_a_saved_model_answers_with_the_same_bits_and_needs_no_encoder(clf, tmp_path):
    again = load(clf.save(tmp_path / "model"))
    assert isinstance(again, WordsClassifier)
    assert (again.answers(SEEN).scores == clf.answers(SEEN).scores).all()
    assert sorted(file.name for file in (tmp_path / "model").iterdir()) == [
        "README.md",
        "label_space.yaml",
        "labelspace.json",
        "words.safetensors",
    ]


def test_a_model_opened_to_answer_is_the_whole_model_without_fit(clf, tmp_path):
    clf.set_params(min_probability=0.4, temperature=0.5)
    clf.set_none([f"{text} {row}" for text in SEEN for row in range(10)]).save(tmp_path / "model")
    texts = [*SEEN, "nothing known here"]
    found, whole = open_to_answer(tmp_path / "model"), load(tmp_path / "model")
    assert isinstance(found, OpenedWords)
    for name in ("names", "scores", "probabilities", "closeness"):
        assert (getattr(found.answers(texts), name) == getattr(whole.answers(texts), name)).all(), name
    assert found.explain("the bank of the vote") == whole.explain("the bank of the vote")
    assert found.classes_.tolist() == whole.classes_.tolist()
    assert model_fingerprint(found) == model_fingerprint(whole)


def test_an_opened_model_refuses_what_the_whole_one_refuses(clf, tmp_path):
    clf.save(tmp_path / "model")
    for opened in (open_to_answer, load):
        with pytest.raises(InputError, match="fitted on texts"):
            opened(tmp_path / "model").answers([("a", "pair")])
    labels = tmp_path / "model" / "label_space.yaml"
    labels.write_text(labels.read_text(encoding="utf-8").replace("sports", "sport"), encoding="utf-8")
    for opened in (open_to_answer, load):
        with pytest.raises(ModelFolderError, match="names 'sport'"):
            opened(tmp_path / "model")


def test_an_explanation_names_the_words_that_speak_for_a_label(clf):
    found = clf.explain("the bank of the vote")
    assert {entry.label: entry.words[0][0] for entry in found.top[:2]} == {"money": "bank", "world": "vote"}
    assert "bank" in str(found)


def test_a_label_can_be_renamed_and_removed_but_not_added(clf, tmp_path):
    clf.rename_label("money", "finance")
    clf.remove_label("world")
    assert clf.predict(["my bank"]).tolist() == ["finance"]
    assert load(clf.save(tmp_path / "model")).predict(["my bank"]).tolist() == ["finance"]
    with pytest.raises(InputError, match="cannot learn 'art' from a description"):
        clf.add_label({"name": "art", "descriptions": ["paintings"]})


def test_a_label_without_a_document_is_never_the_likeliest():
    clf = WordsClassifier(LABELS, min_df=1).fit(SEEN[:4], NAMES[:4])
    assert clf.predict_proba(["any vote"])[0, list(clf.classes_).index("world")] < 1e-3
    assert WordsClassifier(LABELS).fit(["a"], ["money"]).predict(["b"]).tolist() == ["money"]


def test_documents_without_weight_or_label_teach_nothing(clf):
    more = WordsClassifier(LABELS, min_df=1).fit(
        [*SEEN, "bank bank", "vote"], [*NAMES, "world", None], sample_weight=[1] * 6 + [0, 1]
    )
    assert (more.answers(SEEN).scores == clf.answers(SEEN).scores).all()


def test_none_below_the_lowest_probability():
    clf = WordsClassifier(LABELS, min_df=1, min_probability=0.99).fit(SEEN, NAMES)
    assert clf.predict(["a team"]).tolist() == [None]


def test_it_is_streamed_and_evaluated_like_every_classifier(clf, tmp_path):
    (tmp_path / "in.csv").write_text("text\nmy team\nyour bank\n")
    assert predict_file(clf, str(tmp_path / "in.csv"), tmp_path / "out.csv").rows == 2
    found = evaluate(clf, SEEN, NAMES)
    assert found.metrics.accuracy == 1.0
    assert {one.note for one in found.baselines} == {"the model has no encoder"}


@pytest.mark.parametrize(
    ("options", "error", "message"),
    [
        ({"C": 0}, ConfigError, "C must be"),
        ({"min_df": 0}, ConfigError, "min_df must be"),
        ({"min_probability": 2}, ConfigError, "min_probability must be"),
    ],
)
def test_a_wrong_option_is_refused(options, error, message):
    with pytest.raises(error, match=message):
        WordsClassifier(LABELS, **options).fit(SEEN, NAMES)


def test_labels_that_teach_nothing_are_refused():
    with pytest.raises(InputError, match="nothing to learn from"):
        WordsClassifier(LABELS).fit(SEEN, [None] * 6)


@pytest.mark.parametrize(
    ("weights", "said"),
    [
        ([1], r"must be 6 numbers.*Got the shape \(1,\)"),
        ([1, 1, 1, 1, 1, -2], r"0 or more\. Got -2\.0 among them"),
        ([1, 1, 1, 1, 1, float("nan")], "Got nan among them"),
        (["a"] * 6, "could not convert string to float: 'a'"),
        ([10**400] * 6, "too large"),
        ([0] * 6, "All of them are 0"),
    ],
)
def test_weights_that_are_not_numbers_are_refused_in_learning_and_scoring(weights, said):
    with pytest.raises(InputError, match=said):
        WordsClassifier(LABELS).fit(SEEN, NAMES, sample_weight=weights)
    with pytest.raises(InputError, match=said):
        WordsClassifier(LABELS).fit(SEEN, NAMES).score(SEEN, NAMES, sample_weight=weights)


def test_numpy_parameters_are_saved_and_a_new_label_is_refused_by_name_or_label(tmp_path):
    clf = WordsClassifier(["sports", "money"], min_df=np.int64(1)).set_params(min_probability=np.float32(0.5))
    clf.fit(SEEN[:4], NAMES[:4])
    assert load(clf.save(tmp_path / "model")).predict(SEEN[:4]).tolist() == clf.predict(SEEN[:4]).tolist()
    with pytest.raises(InputError, match="cannot learn 'art' from a description"):
        clf.add_label({"name": "art"})
    with pytest.raises(ConfigError, match="a label is a Label, or a mapping"):
        clf.add_label("art")
    with pytest.raises(InputError, match=r"y\[1\] is 1 of type int; pass label names"):
        clf.score(SEEN[:2], ["sports", 1])


def test_an_explanation_is_the_same_after_a_label_is_removed_and_the_model_opened_again(clf, tmp_path):
    clf.remove_label("money")
    opened = load(clf.save(tmp_path / "model"))
    assert opened.explain("the team won a vote") == clf.explain("the team won a vote")


def test_several_labels_written_into_a_saved_model_of_one_label_a_text_are_refused(clf, tmp_path):
    folder = clf.save(tmp_path / "model")
    with (folder / "label_space.yaml").open("a") as file:
        file.write("several: true\n")
    for opening in (load, open_to_answer):
        with pytest.raises(ModelFolderError, match=r"label_space\.yaml says several: true, and this model"):
            opening(folder)
