"""The figure of a consensus: views, steps and shares are all in it, for every model that a consensus made or taught."""

from dataclasses import replace

import pytest

from labelspace import ConsensusClassifier, load
from labelspace.errors import InputError
from labelspace.evaluate import consensus_figure
from labelspace.evaluate.drawing import DOTS_PER_INCH
from labelspace.evaluate.figures.panels import MOST_INCHES
from pictures import nothing_is_cut, png_size, words_of

VIEW = "sentence-transformers/a-view-with-number-"


def written(fit, tmp_path) -> list[str]:
    (path,) = consensus_figure(fit, tmp_path / "consensus.svg")
    return words_of(path)


@pytest.fixture(scope="module")
def drawn(agreed, tmp_path_factory):
    """What a consensus found, and the words of its figure."""
    fit = agreed(3)
    return fit.consensus, written(fit, tmp_path_factory.mktemp("consensus"))


def test_the_numbers_are_the_agreement_of_views_and_words(drawn):
    found, words = drawn
    assert {f"1  {VIEW}0", f"2  {VIEW}1", "3  words"} <= set(words)
    for kappa in (found["agreement"][0][1], *found["agreement_with_words"]):
        assert words.count(f"{kappa:.2f}") >= 2


@pytest.mark.parametrize(("least", "told"), [(25, ""), (100, ", left out")])
def test_each_step_is_told_with_what_it_changed_and_why(agreed, tmp_path, least, told):
    fit = agreed(3, documents_per_label=least, min_agreement=0)  # the vectors say nothing
    words, steps = written(fit, tmp_path), fit.consensus["steps"]
    assert [step["kept"] for step in steps] == [least == 25] * 2, "120 documents are too few for 100 a label"
    for step in steps:
        assert {step["name"], step["reason"], f"{step['changed']:.1%}{told}"} <= set(words)
    assert f"documents whose label a step changed (all together {fit.consensus['changed']:.1%})" in words
    assert (fit.consensus["changed"] == 0) == (least == 100)


def test_shares_before_and_after_stand_beside_the_labels_the_most_frequent_first(drawn):
    found, words = drawn
    before, after = found["shares_before"], found["shares"]
    names = [word for word in words if word.startswith("label_")]
    assert names == sorted(after, key=lambda name: -after[name])
    assert [word for word in words if "→" in word] == [f"{before[name]:.1%} → {after[name]:.1%}" for name in names]


def test_one_view_without_a_step_is_drawn(agreed, tmp_path):
    words = written(agreed(2, views=1, words=False, neighbours=0), tmp_path)
    assert "no step was taken" in words
    assert "2  words" not in words


@pytest.mark.parametrize("count", [2, pytest.param(77, marks=pytest.mark.slow)])
@pytest.mark.parametrize(("name", "views"), [("x", 5), ("a_label_whose_name_is_as_long_as_names_get", 1)])
def test_every_label_is_named_and_nothing_is_cut_off(agreed, tmp_path, count, name, views):
    files = consensus_figure(agreed(count, views=views, name=name, rows=4 * count + 40), tmp_path / "consensus")
    assert nothing_is_cut(files[0])
    assert max(png_size(files[0])) < MOST_INCHES * DOTS_PER_INCH
    words = words_of(files[1])
    assert all(words.count(f"{name}_{number}") == 1 for number in range(count))
    assert all(f"{view + 1}  {VIEW}{view}" in words for view in range(views))


@pytest.mark.slow
def test_with_many_labels_those_whose_share_changed_most_are_drawn_and_the_title_says_so(agreed, tmp_path):
    names = [f"label_{number}" for number in range(5000)]
    shares = {"shares_before": dict.fromkeys(names, 2e-4), "shares": dict.fromkeys(names, 2e-4)}
    moved = names[7:4957:50] + names[4990:4991]
    shares["shares"] |= dict.fromkeys(moved, 3e-4)
    fit = agreed(2)
    words = written(replace(fit, consensus=fit.consensus | shares), tmp_path)
    assert {word for word in words if word.startswith("label_")} == set(moved)
    assert "the 100 labels whose share changed most, of 5,000" in words


@pytest.mark.filterwarnings("ignore:the student follows the consensus poorly")
@pytest.mark.parametrize("student", [None, pytest.param("words", marks=pytest.mark.slow), "encoder"])
def test_a_saved_model_has_the_figure_of_its_fit(tiny_encoder_folder, texts, tmp_path, student):
    tiny = str(tiny_encoder_folder)
    clf = ConsensusClassifier(
        ["sports", "money"],
        [f"zero-shot:{tiny}", "words"],
        student=tiny if student == "encoder" else student,
        config={"alpha": 0, "guards": False, "view_steps": 1},
    ).fit(texts)
    again = load(clf.save(tmp_path / "model"))
    (first,) = consensus_figure(clf.fit_result_, tmp_path / "first.svg")
    (second,) = consensus_figure(again.fit_result_, tmp_path / "second.svg")
    assert first.read_bytes() == second.read_bytes()
    assert ("student: " in " ".join(words_of(second))) == (student is not None)


@pytest.mark.parametrize("fit", [None, {}, {"consensus": None}, "model/"])
def test_what_is_not_the_fit_of_a_consensus_is_refused(tmp_path, fit):
    with pytest.raises(InputError, match="fit must be the fit_result_ of a consensus"):
        consensus_figure(fit, tmp_path / "consensus.png")
    assert list(tmp_path.iterdir()) == []


def test_a_model_without_a_consensus_is_refused(trained, tmp_path):
    with pytest.raises(InputError, match="Got FitResult without one"):
        consensus_figure(trained.fit_result_, tmp_path / "consensus.png")
