"""Several labels a text: sets, probabilities, cuts, and what goes with them."""

from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
from scipy.sparse import csr_array
from sklearn.base import clone
from sklearn.metrics import f1_score

from classify.conftest import TEXTS
from labelspace import (
    LabelSpace,
    LaConClassifier,
    UncertaintyClassifier,
    load,
)
from labelspace.classify import WordsClassifier, predict_file
from labelspace.classify.cuts import (
    WEIGHT_OF_SHARED,
    best_f1_cut,
    clear_cut,
    cuts_of_mean,
    cuts_of_pool,
    cuts_of_rows,
    otsu,
)
from labelspace.classify.editing import LabelChange
from labelspace.consensus import ConsensusClassifier
from labelspace.corpus.label_sets import as_label_sets
from labelspace.errors import ConfigError, InputError, LabelFileError, ModelFolderError
from labelspace.labels import Label

PARTS = {
    "sports": ["the team won the match", "a coach leaves the players", "results of the games"],
    "money": ["the bank raised its prices", "markets fell again", "a loan from the bank"],
    "none": ["it rains", "nothing to say", "a long walk"],
}
POOL = [f"{one} and {other}, number {row}" for one in PARTS["sports"] for other in PARTS["money"] for row in range(3)]
POOL += [f"{text}, number {row}" for texts in PARTS.values() for text in texts for row in range(3)]
SETS = [["sports", "money"]] * 27 + [["sports"]] * 9 + [["money"]] * 9 + [[]] * 9


@pytest.fixture
def several(make: Any, space: LabelSpace) -> Any:
    """Make and fit a classifier of several labels."""

    def made(method: str = "zero-shot", y: Any = None, **options: Any) -> Any:
        return make(method, several=True, **options).fit(POOL, y)

    return made


def test_sets_of_labels_may_stand_in_an_arrow_column(several: Any):
    assert (several(y=pa.array(SETS)).predict(POOL) == several(y=SETS).predict(POOL)).all()


@pytest.mark.parametrize("method", ["description", "zero-shot"])
@pytest.mark.parametrize("y", [None, SETS])
def test_a_probability_is_a_half_or_more_exactly_where_the_label_is_predicted(method: str, y: Any, several: Any):
    clf = several(method, y)
    sets, probabilities = clf.predict(TEXTS + POOL), clf.predict_proba(TEXTS + POOL)
    assert sets.shape == probabilities.shape == (len(TEXTS + POOL), 3)
    assert sets.dtype.kind == "i"
    assert ((probabilities >= 0.5) == (sets == 1)).all()
    assert ((clf.decision_function(TEXTS + POOL) >= 0) == (sets == 1)).all()
    assert ((probabilities >= 0) & (probabilities <= 1)).all()
    assert not np.allclose(probabilities.sum(axis=1), 1)


def test_columns_follow_classes_as_scikit_learns_metrics_expect(several: Any):
    clf = several(y=SETS)
    assert clf.classes_.tolist() == ["money", "sports", "world"]
    truth = np.array([["money" in own, "sports" in own, False] for own in SETS], dtype=int)
    again = several(y=truth)
    assert (again.predict(POOL) == clf.predict(POOL)).all()
    assert (several(y=csr_array(truth)).predict(POOL) == clf.predict(POOL)).all()
    assert clf.score(POOL, SETS) == clf.score(POOL, truth) == np.mean((clf.predict(POOL) == truth).all(axis=1))
    assert 0 < f1_score(truth, clf.predict(POOL), average="micro") <= 1


def test_the_order_of_the_label_file_changes_no_answer(several: Any, space: LabelSpace):
    other = several(labels=space.reorder(["world", "money", "sports"]))
    assert (other.predict_proba(TEXTS) == several().predict_proba(TEXTS)).all()


def test_names_are_joined_and_none_is_none(several: Any):
    clf = several(labels_per_text=2.9)
    found = clf.answers(POOL)
    assert found.names.tolist() == [
        "|".join(sorted(name for name, own in zip(found.labels, row, strict=True) if own)) or None
        for row in found.chosen
    ]
    assert "money|sports|world" in found.names.tolist()
    assert [column < 0 for column in found.columns] == [name is None for name in found.names]


def test_a_stated_mean_number_of_labels_is_kept_on_the_pool(several: Any):
    for per_text in (0.5, 1.4, 2.5):
        clf = several(labels_per_text=per_text)
        assert clf.predict(POOL).sum(axis=1).mean() == pytest.approx(per_text, abs=0.5 / len(POOL) + 1e-9)
        assert clf.cuts_.per_text == pytest.approx(per_text, abs=1 / len(POOL))


def test_a_label_file_says_it_and_keeps_it(make: Any, space: LabelSpace, tmp_path: Path):
    plain = space.to_dict()
    assert "several" not in plain
    told = LabelSpace.from_dict({**plain, "several": True})
    assert told != space
    for name in ("labels.yaml", "labels.json"):
        told.to_file(tmp_path / name)
        assert LabelSpace.from_file(tmp_path / name) == told
    assert told.remove("world").several
    by_file = make("zero-shot", labels=told).fit(POOL)
    assert (by_file.predict(TEXTS) == make("zero-shot", several=True).fit(POOL).predict(TEXTS)).all()
    with pytest.raises(LabelFileError, match=r"true or false\. Got the text 'perhaps'"):
        LabelSpace.from_dict({**plain, "several": "perhaps"})
    with pytest.raises(LabelFileError, match=r"'a\|b'.*stands between the names"):
        LabelSpace([Label("a|b"), Label("c")], several=True)
    assert LabelSpace.from_dict({"several": ["More than two."], "one": ["A single one."]}).names == ("several", "one")


def test_a_saved_model_answers_alike_and_refuses_other_labels(several: Any, tmp_path: Path):
    clf = several("description", labels_per_text=1.4)
    again = load(clf.save(tmp_path / "model"))
    assert (again.predict_proba(POOL) == clf.predict_proba(POOL)).all()
    assert again.label_space_.several
    assert again.labels_per_text == 1.4
    assert "labels a text" in (tmp_path / "model" / "README.md").read_text()
    file = tmp_path / "model" / "label_space.yaml"
    file.write_text(file.read_text().replace("Banks, markets", "Banks, shops"))
    with pytest.raises(ModelFolderError, match="yaml changed since the cuts"):
        load(tmp_path / "model")


def test_a_model_of_one_label_a_text_is_saved_as_before(make: Any, tmp_path: Path):
    make("zero-shot").fit().save(tmp_path / "model")
    for file in ("labelspace.json", "label_space.yaml"):
        text = (tmp_path / "model" / file).read_text()
        assert not any(word in text for word in ('several"', "several:", 'cuts"', "labels_per_text"))


def test_a_label_is_renamed_and_removed_but_not_added(several: Any):
    clf = several()
    before = clf.predict_proba(TEXTS)
    assert isinstance(clf.rename_label("sports", "sport"), LabelChange)
    assert (clf.predict_proba(TEXTS) == before).all()
    clf.remove_label("world")
    assert (clf.predict_proba(TEXTS) == before[:, :2]).all()
    assert clf.predict(TEXTS).shape == (len(TEXTS), 2)
    assert clf.decision_function(TEXTS).shape == (len(TEXTS), 2)  # no difference of two labels
    with pytest.raises(ConfigError, match="cannot be added"):
        clf.add_label({"name": "weather"})


def test_a_label_may_go_whatever_was_said_of_labels_a_text(several: Any, tmp_path: Path):
    clf = several(labels_per_text=2.2)
    before = clf.predict(TEXTS)
    clf.remove_label("world")
    assert (clf.predict(TEXTS) == before[:, :2]).all()
    clf.save(tmp_path / "model")
    assert (load(tmp_path / "model").predict(TEXTS) == before[:, :2]).all()
    with pytest.raises(ConfigError, match="labels_per_text must be a number above 0 and below 2"):
        clf.fit(POOL)


def test_rows_without_weight_are_no_score(several: Any):
    with pytest.raises(InputError, match="sample_weight is 0 for every document that has a label"):
        several().score(TEXTS[:3], [["sports"], None, ["money"]], sample_weight=[0, 1, 0])


def test_cuts_of_another_anchor_are_not_used(several: Any):
    clf = several()
    clf.set_params(anchor="verbalizer")
    with pytest.raises(ConfigError, match="another anchor"):
        clf.predict(TEXTS)
    clf.fit(POOL).predict(TEXTS)


def test_a_second_fit_forgets_the_first(several: Any, space: LabelSpace):
    clf = several()
    clf.set_params(several=False, labels=space).fit()
    assert clf.cuts_ is None
    assert clf.predict(TEXTS).ndim == 1
    assert clone(several()).several is True


@pytest.mark.parametrize(
    ("options", "X", "y", "message"),
    [
        ({}, None, None, "need documents to set their cuts on, and X is None"),
        ({}, POOL[:5], None, "need 20 different documents or more. Got 5"),
        ({}, POOL, [["sport"]] * len(POOL), r"y\[0\] holds 'sport', which is no label. Did you mean 'sports'"),
        ({}, POOL, SETS[:3], "one set of labels for each of the 54 documents. Got 3"),
        ({}, POOL, [[]] * len(POOL), "gives no document a label"),
        ({}, POOL, np.ones((54, 2)), "column for each of the 3 labels"),
        ({}, POOL, np.full((54, 3), 2), "0 and 1 alone"),
        ({"labels_per_text": 3}, POOL, None, "labels_per_text must be a number above 0 and below 3"),
        ({"labels_per_text": 1.4}, POOL, SETS, "does nothing beside labelled rows"),
        ({"threshold": 0.2}, POOL, None, "threshold does nothing with several labels"),
        ({"several": False, "labels_per_text": 1.4}, POOL, None, "labels_per_text needs several=True"),
        ({"several": "yes"}, POOL, None, "several must be True or False"),
    ],
)
def test_what_cannot_be_is_refused_in_one_line(make: Any, options: Any, X: Any, y: Any, message: str):
    with pytest.raises((ConfigError, InputError), match=message) as told:
        make("zero-shot", **{"several": True, **options}).fit(X, y)
    assert "\n" not in str(told.value)


@pytest.mark.parametrize("method", [LaConClassifier, UncertaintyClassifier, WordsClassifier, ConsensusClassifier])
def test_a_method_of_one_label_a_text_refuses_several(method: Any, space: LabelSpace):
    told = LabelSpace.from_dict({**space.to_dict(), "several": True})
    with pytest.raises(ConfigError, match=f"{method.__name__} gives each text one label"):
        method(told).fit(TEXTS, ["sports"] * len(TEXTS))


def test_an_explanation_shows_score_cut_and_probability_of_each_label(several: Any):
    clf = several(labels_per_text=2.0)
    text = next(text for text, own in zip(POOL, clf.predict(POOL), strict=True) if own.sum() == 3)
    found = clf.explain(text, top=1)
    assert found.label == "money|sports|world"
    assert len(found.top) == 3
    answers = clf.answers([text])
    for entry in found.top:
        column = clf.label_space_.index(entry.label)
        assert entry.probability == answers.probabilities[0, column]
        assert entry.score >= entry.cut - 1e-6
    assert found.margin == pytest.approx(min(entry.score - entry.cut for entry in found.top), abs=1e-6)
    assert "cut " in str(found)
    none = next(
        text for text, own in zip(POOL, several(labels_per_text=0.2).predict(POOL), strict=True) if not own.any()
    )
    assert "none of these (below every cut)" in str(several(labels_per_text=0.2).explain(none))


def test_a_file_of_predictions_joins_names_and_is_empty_for_none(several: Any, tmp_path: Path):
    clf = several()
    done = predict_file(clf, pa.table({"text": POOL}), tmp_path / "out.parquet", all_scores=True)
    table = pa.parquet.read_table(done.path)
    answers = clf.answers(POOL)
    assert table["predicted_label"].to_pylist() == answers.names.tolist()
    assert table["predicted_probability"].to_pylist() == answers.confidence.tolist()
    assert table["predicted_probability:money"].to_pylist() == answers.probabilities[:, 1].tolist()
    assert done.abstained == sum(name is None for name in answers.names)


@pytest.mark.parametrize("seed", [18, 72, 79])  # the upper Gaussian shrinks to a point, likelier nowhere on the way
def test_a_clear_cut_never_gives_a_rare_label_to_half_of_the_texts(seed):
    draw = np.random.default_rng(seed)
    values = np.concatenate([draw.normal(size=777), draw.normal(6.37, 0.13, size=16)])
    values = (values - values.mean()) / values.std()
    assert (values >= clear_cut(values)).mean() < 0.05


def test_otsus_cut_parts_where_the_means_differ_most():
    values = np.random.default_rng(0).normal(size=60).round(1)
    values[40:] += 4
    parts = {
        cut: (values >= cut).mean()
        * (values < cut).mean()
        * (values[values >= cut].mean() - values[values < cut].mean()) ** 2
        for cut in sorted(set(values.tolist()))[1:]
    }
    best = max(parts, key=lambda cut: parts[cut])
    assert ((values >= otsu(values)) == (values >= best)).all()


def test_the_best_cut_has_the_best_f1_of_all_cuts():
    random = np.random.default_rng(1)
    values, truth = random.normal(size=50).round(1), random.random(50) < 0.3
    best = max(f1_score(truth, values >= cut) for cut in values)
    assert f1_score(truth, values >= best_f1_cut(values, truth)) == pytest.approx(best)


def test_a_label_that_never_occurs_is_found_in_few_texts_and_rare_ones_share_a_cut():
    random = np.random.default_rng(2)
    truth = random.random((3000, 4)) < [0.15, 0.1, 0.02, 0]
    scores = (random.normal(0.1, 0.05, truth.shape) + 0.4 * truth).astype(np.float32)
    names = ("often", "seldom", "rare", "never")
    cuts = cuts_of_pool(names, scores)
    found = cuts.chosen(cuts.margins(names, scores))
    assert found[:, 3].mean() < 0.1
    assert ((found & truth).sum(axis=0)[:3] >= 0.95 * truth.sum(axis=0)[:3]).all()
    assert cuts.of_labels["never"] >= 1.64
    assert cuts_of_pool(names[2:], scores[:, 2:]).of_labels["never"] >= 1.64
    assert cuts_of_mean(names, scores, 0.27).per_text == pytest.approx(0.27, abs=1e-3)


def test_a_frequent_label_is_found_beside_rare_ones():
    random = np.random.default_rng(4)
    truth = random.random((3000, 21)) < [0.5, *[0.03] * 20]
    scores = (random.normal(0.1, 0.08, truth.shape) + 0.3 * truth).astype(np.float32)
    names = [str(column) for column in range(21)]
    cuts = cuts_of_pool(names, scores)
    found = cuts.chosen(cuts.margins(names, scores))
    assert (found & truth)[:, 0].sum() > 0.9 * truth[:, 0].sum()
    assert f1_score(truth, found, average="macro") > 0.75


def test_labels_of_one_topic_are_not_all_given_to_its_documents():
    random = np.random.default_rng(5)
    topic = random.random(3000) < 0.3
    own = random.integers(0, 5, 3000)
    truth = np.column_stack([topic[:, None] & (own[:, None] == np.arange(5)), random.random(3000) < 0.3])
    near = np.column_stack([np.repeat(topic[:, None], 5, axis=1), np.zeros(3000, dtype=bool)])
    scores = random.normal(0, 0.05, truth.shape) + 0.4 * near + np.array([0.15] * 5 + [0.4]) * truth
    names = ("a", "b", "c", "d", "e", "other")
    cuts = cuts_of_pool(names, scores.astype(np.float32))
    assert len({cuts.of_labels[name] for name in names[:5]}) == 1
    assert cuts.of_labels["other"] < cuts.of_labels["a"]
    assert cuts.per_text < 1.2  # 0.6 is right; a cut where the topic begins gives each of its documents all five: 1.8


def test_few_rows_of_a_label_move_its_cut_little_and_many_move_it_far():
    random = np.random.default_rng(3)
    truth = np.zeros((2000, 2), dtype=bool)
    truth[:600, 0] = truth[600:603, 1] = True
    scores = (random.normal(0, 1, truth.shape) + np.array([1.0, 8.0]) * truth).astype(np.float32)
    cuts = cuts_of_rows(("many", "few"), scores, truth, np.ones(2000, dtype=bool))
    apart = cuts.standard.apply(("many", "few"), scores)
    shared = best_f1_cut(apart.ravel(), truth.ravel())
    own = [best_f1_cut(apart[:, column], truth[:, column]) for column in range(2)]
    moved = [(cuts.of_labels[name] - shared) / (own[column] - shared) for column, name in enumerate(("many", "few"))]
    assert moved == pytest.approx([600 / (600 + WEIGHT_OF_SHARED), 3 / (3 + WEIGHT_OF_SHARED)])


def test_rows_whose_labels_are_not_known_set_no_cut():
    composed = as_label_sets(["cafe\u0301| b"], ["caf\u00e9", "b"], n_documents=1, separator="|")
    assert composed.truth.tolist() == [[True, True]]
    found = as_label_sets(["a|b", None, "", float("nan"), ["b"]], ["b", "a"], n_documents=5, separator="|")
    assert found.known.tolist() == [True, False, True, False, True]
    assert found.truth.astype(int).tolist() == [[1, 1], [0, 0], [0, 0], [0, 0], [1, 0]]
    arrays = pd.Series([np.array(["a", "b"]), np.array([]), None, " ", np.array(["b"])])
    again = as_label_sets(arrays, ["b", "a"], n_documents=5, separator="|")
    assert again.truth.astype(int).tolist() == [[1, 1], [0, 0], [0, 0], [0, 0], [1, 0]]
    assert again.known.tolist() == [True, True, False, True, True]
    with pytest.raises(InputError, match="set of labels for each document"):
        as_label_sets("a|b", ["b", "a"], n_documents=1, separator="|")


@pytest.mark.parametrize("dtype", ["Int64", "boolean", "Float64"])
def test_an_unknown_cell_of_an_indicator_frame_is_one_line(dtype: str):
    frame = pd.DataFrame({"a": [1, 0], "b": [None, 1]}, dtype=dtype)
    with pytest.raises(InputError, match="must hold 0 and 1 alone"):
        as_label_sets(frame, ["a", "b"], n_documents=2, separator="|")


def test_a_frame_that_names_its_columns_in_another_order_is_not_read_by_position():
    frame = pd.DataFrame({"b": [1, 0], "a": [0, 1]})
    with pytest.raises(InputError, match=r"columns are not the sorted label names\. Got b, a; take the columns"):
        as_label_sets(frame, ["b", "a"], n_documents=2, separator="|")
    found = as_label_sets(frame[["a", "b"]], ["b", "a"], n_documents=2, separator="|")
    assert found.truth.tolist() == [[True, False], [False, True]]
    by_polars = as_label_sets(pl.from_pandas(frame[["a", "b"]]), ["b", "a"], n_documents=2, separator="|")
    assert by_polars.truth.tolist() == found.truth.tolist()
    by_number = as_label_sets(pd.DataFrame(frame[["a", "b"]].to_numpy()), ["b", "a"], n_documents=2, separator="|")
    assert by_number.truth.tolist() == found.truth.tolist()
