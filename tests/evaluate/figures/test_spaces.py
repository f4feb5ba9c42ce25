"""A figure shows the space in which a model predicts, and only vectors that the model uses."""

import numpy as np
import pytest
import torch

from labelspace import LaConClassifier, UncertaintyClassifier
from labelspace.classify.settings import as_arguments
from labelspace.encoders import Encoder
from labelspace.errors import ConfigError, InputError
from labelspace.evaluate import label_similarity_figure, map_figure, sphere_figure
from labelspace.evaluate.figures.spaces import shown_after, shown_before, undrawable
from pictures import words_of
from tiny_rows import tiny_rows

TEXTS, NAMES = tiny_rows(12)
OWN = np.arange(12) % 3
DESCRIBED = {"money": ["banks and prices", "the market"], "sports": ["a match and a team"], "world": []}
UNREAD = {"verbalizer", "description", "label"}


def lacon(encoder: Encoder, labels=None, **options):
    quick = {"epochs": 1, "head_learning_rate": 1e-2, "description_steps": 0}
    return LaConClassifier(labels, encoder, **as_arguments(LaConClassifier, {**quick, **options})).fit(TEXTS, NAMES)


@pytest.fixture(scope="module")
def uncertain(encoder: Encoder):
    return UncertaintyClassifier(encoder=encoder, epochs=1, cache=None).fit(TEXTS, NAMES)


@pytest.fixture(scope="module")
def projected(encoder: Encoder):
    """A model with label embeddings after a projection, initialised from descriptions."""
    return lacon(encoder, {"labels": DESCRIBED}, projection_head=True)


@pytest.fixture(scope="module")
def by_logits(encoder: Encoder):
    return lacon(encoder, {"labels": DESCRIBED}, objective="cross-entropy")


def cosine(one: np.ndarray, other: np.ndarray) -> np.ndarray:
    unit = [rows / np.linalg.norm(rows, axis=1, keepdims=True) for rows in (one, other)]
    return unit[0] @ unit[1].T


def test_after_shows_the_gaussian_means_of_an_uncertainty_classifier(uncertain: UncertaintyClassifier):
    before = shown_before(uncertain, uncertain.encoder_, TEXTS, OWN)
    after = shown_after(uncertain, TEXTS, OWN)
    assert (before.documents == uncertain.encoder_.encode(TEXTS)).all()
    assert (after.documents == uncertain.transform(TEXTS)).all()
    assert not (before.documents == after.documents).any()


def test_a_label_without_a_vector_is_the_mean_of_its_documents(uncertain: UncertaintyClassifier):
    own = np.array([0, 0, 0, 2, 2, 2, -1, -1, -1, -1, -1, -1])
    shown = shown_after(uncertain, TEXTS, own)
    assert shown.stars.columns.tolist() == [0, 2], "nothing tells where the second one is"
    for vector, rows in zip(shown.stars.vectors, (slice(0, 3), slice(3, 6)), strict=True):
        assert vector == pytest.approx(np.mean(shown.documents[rows], axis=0), abs=1e-6)
    assert not len(shown.triangles.columns)


def test_after_shows_the_space_where_lacon_compares_texts_with_labels(projected: LaConClassifier):
    shown = shown_after(projected, TEXTS, OWN)
    scores = projected.scores(TEXTS, projected.label_space_)
    assert cosine(shown.documents, shown.stars.vectors) == pytest.approx(scores, abs=1e-5)
    assert shown.triangles.columns.tolist() == [0, 0, 1]
    described = [text for texts in DESCRIBED.values() for text in texts]
    direct = projected.scores(described, projected.label_space_)
    assert cosine(shown.triangles.vectors, shown.stars.vectors) == pytest.approx(direct, abs=1e-5)


def test_before_shows_the_initial_label_embeddings_of_lacon(projected: LaConClassifier, encoder: Encoder):
    shown = shown_before(projected, encoder, TEXTS, OWN)
    assert (shown.documents == encoder.encode(TEXTS)).all()
    assert shown.stars.vectors[1] == pytest.approx(encoder.encode(DESCRIBED["sports"])[0], abs=1e-5)


def test_randomly_initialised_labels_have_no_star_before_and_no_descriptions(encoder: Encoder, tmp_path):
    clf = lacon(encoder, {"labels": DESCRIBED}, init="random")
    before, after = shown_before(clf, encoder, TEXTS, OWN), shown_after(clf, TEXTS, OWN)
    assert [len(shown.stars.columns) for shown in (before, after)] == [0, 3]
    assert not len(after.triangles.columns)
    map_figure(clf, TEXTS, tmp_path / "map.svg", projection="pca")
    sphere_figure(clf, TEXTS, tmp_path / "sphere.svg")


@pytest.mark.parametrize("head", ["vanilla", "fusion"])
def test_a_classifier_by_logits_shows_the_inputs_of_its_last_layer(encoder: Encoder, head: str):
    clf = lacon(encoder, {"labels": DESCRIBED}, objective="cross-entropy", head=head)
    shown = shown_after(clf, TEXTS, OWN)
    layer = clf.head_.module.classifier
    assert isinstance(layer, torch.nn.Linear)
    with torch.inference_mode():
        logits = layer(torch.from_numpy(shown.documents) * shown.documents.shape[1] ** 0.5).numpy()
    assert logits == pytest.approx(clf.scores(TEXTS, clf.label_space_), abs=1e-3)
    assert (shown.stars.vectors == [shown.documents[column == OWN].mean(axis=0) for column in range(3)]).all()


def test_lacon_without_a_labelled_row_is_shown_as_it_was_trained(encoder: Encoder):
    clf = LaConClassifier({"labels": DESCRIBED}, encoder, description_steps=1).fit()
    shown = shown_after(clf, TEXTS, OWN)
    assert (shown.stars.vectors == [clf.label_vectors_[name].verbalizer for name in DESCRIBED]).all()


@pytest.mark.slow
@pytest.mark.parametrize("draw", [map_figure, sphere_figure])
@pytest.mark.parametrize("kind", ["uncertain", "by_logits", "projected"])
def test_panels_differ_and_the_legend_says_what_a_star_is(request, tmp_path, draw, kind):
    model = request.getfixturevalue(kind)
    options = {"projection": "pca"} if draw is map_figure else {}
    (both,) = draw(model, TEXTS, tmp_path / "both.svg", y=NAMES, **options)
    words = words_of(both)
    assert "before: the untrained encoder" in " ".join(words)
    assert f"after: {type(model).__name__}" in " ".join(words)
    read = {"label", "description"} if kind == "projected" else {"mean of its documents"}
    assert (UNREAD | {"mean of its documents"}) & set(words) == (read - {"description"} if not options else read)


def test_label_names_are_at_their_documents(uncertain, tmp_path, named):
    map_figure(uncertain, TEXTS, tmp_path / "map.svg", y=[*NAMES[:2], *[None] * 10], projection="pca", before=False)
    assert set(named) & set(NAMES) == set(NAMES[:2])


def test_without_a_labelled_document_a_map_is_drawn_without_stars(uncertain, tmp_path):
    sphere_figure(uncertain, TEXTS, tmp_path / "sphere.svg", y=[None] * 12)


def test_too_few_points_are_a_clear_error(uncertain, tmp_path):
    with pytest.raises(InputError, match=r"a map needs three points.*Got 1 and 1; give more"):
        map_figure(uncertain, TEXTS[:1], tmp_path / "map.svg", projection="pca")


def test_the_heat_map_of_lacon_compares_its_label_embeddings(projected: LaConClassifier, tmp_path):
    (path,) = label_similarity_figure(projected, tmp_path / "labels.svg")
    vectors = [projected.head_.embeddings[name] for name in projected.label_space_.names]
    words = words_of(path)
    assert "label embeddings" in words
    for one, other in ((0, 1), (0, 2), (1, 2)):
        assert words.count(f"{round(float(vectors[one] @ vectors[other]), 2) + 0.0:.2f}") >= 2


@pytest.mark.parametrize("kind", ["uncertain", "by_logits"])
def test_labels_without_vectors_have_no_heat_map(request, tmp_path, kind):
    with pytest.raises(ConfigError, match=r"the similarity compares vectors of labels.*confusion matrix instead"):
        label_similarity_figure(request.getfixturevalue(kind), tmp_path / "labels.svg")


@pytest.mark.parametrize("head", ["leam", "lsan"])
def test_a_head_without_vectors_of_texts_has_neither_map_nor_sphere(encoder: Encoder, tmp_path, head):
    clf = lacon(encoder, objective="cross-entropy", head=head)
    for draw, what in ((map_figure, "map"), (sphere_figure, "sphere")):
        with pytest.raises(
            ConfigError, match=rf"the {what} needs a vector of each text, and the head of this LaCon\w+ makes none"
        ):
            draw(clf, TEXTS, tmp_path / "figure.svg")
    assert undrawable(clf, "confusion") == ""


def test_the_error_for_a_pair_model_names_the_confusion_command(encoder: Encoder, tmp_path):
    clf = LaConClassifier(encoder=encoder, epochs=1).fit([(text, text) for text in TEXTS], NAMES)
    with pytest.raises(ConfigError, match="fitted on pairs of them; labelspace evaluate --confusion"):
        map_figure(clf, TEXTS, tmp_path / "map.svg", y=NAMES)
    assert "pairs" in undrawable(clf, "confusion")
    assert undrawable(clf, "similarity") == ""


def test_the_error_for_a_pair_model_names_no_figure_that_refuses_pairs(encoder: Encoder):
    pairs = [(text, text) for text in TEXTS]
    clf = LaConClassifier(encoder=encoder, epochs=1, config={"objective": "cross-entropy"}).fit(pairs, NAMES)
    assert undrawable(clf, "similarity") == (
        "the similarity compares vectors of labels, and this LaConClassifier has none; labelspace evaluate --confusion "
        "draws how it mistakes its pairs."
    )


def test_a_model_that_learnt_from_no_consensus_has_no_figure_of_one(projected):
    assert undrawable(projected, "consensus") == (
        "the consensus shows what views agreed on, and this LaConClassifier learnt from no consensus; fit one first."
    )
