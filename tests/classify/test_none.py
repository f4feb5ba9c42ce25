"""None of these: the limit that unlabelled documents tell, and what label files say lies outside."""

import json

import numpy as np
import pyarrow as pa
import pytest

from labelspace import LabelSpace, UncertaintyClassifier, ZeroShotClassifier, load
from labelspace.classify import WordsClassifier, none_of_these, predict_file
from labelspace.classify.anchors import LabelVectors, cosines, less_what_it_is_not
from labelspace.classify.none_of_these import fingerprint
from labelspace.errors import ConfigError, InputError, LabelFileError, LabelSpaceWarning

NAMES = ("a", "b", "c")
SPACE = LabelSpace.from_names(NAMES)
POOL = [f"the {who} {what} {row}" for who in ("team", "bank") for what in ("won", "lost") for row in range(20)]


def left_out(scores):
    """Return the limit that scores tell."""
    return none_of_these.left_out(scores, scores.argmax(axis=1), SPACE)


def scores_of(*parts, seed=0):
    """Return scores of documents: (how many, mean cosine with their own label); other labels are near 0."""
    draw = np.random.default_rng(seed)
    rows = []
    for many, own in parts:
        found = draw.normal(0, 0.05, (many, 3))
        found[np.arange(many), np.arange(many) % 3] += own
        rows.append(found)
    return np.concatenate(rows).astype(np.float32)


@pytest.fixture
def clf(make):
    """An untrained classifier of three labels."""
    return make("zero-shot").fit()


def test_the_limit_by_left_out_labels_is_the_median_closeness_to_the_second_label():
    scores = scores_of((90, 0.05))
    best = scores.argmax(axis=1)
    others = [scores[best != column, column].astype(float) for column in range(3)]
    mean, deviation = (np.array([measure(one) for one in others]) for measure in (np.mean, np.std))
    hidden = []
    for row in scores:
        second = sorted(range(3), key=lambda column: row[column])[-2]
        hidden.append((float(row[second]) - mean[second]) / deviation[second])
    own = np.sort((scores - mean)[np.arange(90), scores.argmax(axis=1)] / deviation[scores.argmax(axis=1)])
    place = np.searchsorted(own, np.median(hidden))
    assert left_out(scores).value == pytest.approx((own[place - 1] + own[place]) / 2)


def test_a_pool_with_one_label_alone_still_tells_apart_what_fits_none():
    own, foreign = scores_of((300, 0.8)), scores_of((100, 0.1))
    own, foreign = own[own.argmax(axis=1) == 0], foreign[foreign.argmax(axis=1) != 0]
    scores = np.concatenate([own, foreign])
    limit = left_out(scores)
    closeness = limit.closeness(NAMES, scores, scores.argmax(axis=1))
    assert closeness[: len(own)].min() > limit.value
    assert np.median(closeness[: len(own)]) > np.quantile(closeness[len(own) :], 0.95)


@pytest.mark.parametrize("coverage", [0.5, 0.9, 0.95])
def test_coverage_labels_that_share_of_the_pool(coverage):
    scores = scores_of((200, 0.3))
    limit = none_of_these.coverage_of(coverage, scores, scores.argmax(axis=1), SPACE)
    assert limit.share == pytest.approx(1 - coverage, abs=0.005)


def test_the_share_without_a_label_counts_what_a_threshold_and_outside_refuse(tiny_encoder_folder):
    labels = {"labels": {"sports": ["the team won"], "money": ["the bank lost"]}, "outside": ["the team lost 3"]}
    for threshold in (None, 0.96):
        clf = ZeroShotClassifier(labels, encoder=tiny_encoder_folder, threshold=threshold).fit()
        anyway = np.mean([name is None for name in clf.predict(POOL)])
        assert anyway > 0
        for coverage in (0.5, 0.99):
            limit = clf.set_coverage(coverage, POOL).none_
            assert limit.share == pytest.approx(np.mean([name is None for name in clf.predict(POOL)]))
            assert limit.share == pytest.approx(max(anyway, 1 - coverage), abs=0.02)
            assert ("get none anyway" in str(limit)) == (anyway > 1 - coverage)
        limit = clf.set_none(POOL).none_
        assert limit.share == pytest.approx(np.mean([name is None for name in clf.predict(POOL)]))


def test_a_share_of_documents_that_all_get_no_label_is_refused(tiny_encoder_folder):
    clf = ZeroShotClassifier(["sports", "money"], encoder=tiny_encoder_folder, threshold=1.0).fit()
    with pytest.raises(InputError, match="every document gets no label anyway, because of a threshold"):
        clf.set_coverage(0.5, POOL)
    assert clf.none_ is None


def test_predict_gives_no_label_below_the_limit_and_the_same_one_above(clf):
    before = clf.predict(POOL)
    clf.set_coverage(0.8, POOL)
    after = clf.predict(POOL)
    named = np.array([name is not None for name in after])
    assert named.mean() == pytest.approx(0.8, abs=0.02)
    assert (after[named] == before[named]).all()
    assert (clf.set_coverage(1, POOL).predict(POOL) == before).all()


def test_probabilities_stay_as_they_were(clf):
    before = clf.predict_proba(POOL)
    assert (clf.set_coverage(0.5, POOL).predict_proba(POOL) == before).all()


def test_a_saved_limit_gives_the_same_answers(clf, tmp_path):
    clf.set_none(POOL)
    opened = load(clf.save(tmp_path / "model"))
    assert opened.none_ == clf.none_
    assert (opened.predict(POOL) == clf.predict(POOL)).all()


def test_the_limit_holds_in_files_and_is_counted(clf, tmp_path):
    clf.set_coverage(0.75, POOL)
    done = predict_file(clf, pa.table({"text": POOL}), tmp_path / "out.jsonl", chunk_rows=7)
    rows = [json.loads(line) for line in done.path.read_text().splitlines()]
    assert done.abstained == sum(row["predicted_label"] is None for row in rows) == 20
    assert [row["predicted_label"] for row in rows] == clf.predict(POOL).tolist()


def test_explain_tells_how_close_the_text_is_and_the_limit(clf):
    clf.set_coverage(0.5, POOL)
    far = POOL[[name is None for name in clf.predict(POOL)].index(True)]
    told = clf.explain(far)
    assert told.label is None
    assert told.closeness < told.closeness_limit == clf.none_.value
    assert "none of these (too far from all labels)" in str(told)


def test_a_renamed_or_removed_label_keeps_the_limit(clf):
    clf.set_coverage(0.8, POOL)
    before = clf.predict(POOL)
    value = clf.none_.value
    clf.rename_label("sports", "games")
    renamed = ["games" if name == "sports" else name for name in before]
    assert "games" in renamed, "the test needs texts of that label"
    assert renamed == clf.predict(POOL).tolist()
    assert "removed" not in str(clf.none_)
    clf.remove_label("world")
    assert set(clf.none_.standard.of_labels) == {"games", "money"}
    assert clf.none_.value == value
    assert str(clf.none_).endswith("that was before a label was removed, and more may get none since")
    kept = [row for row, name in enumerate(renamed) if name != "world"]
    assert [clf.predict(POOL)[row] for row in kept] == [renamed[row] for row in kept]


def test_an_added_label_takes_the_limit_away_and_says_so(clf):
    clf.set_coverage(0.8, POOL)
    with pytest.warns(LabelSpaceWarning, match="set it again with documents") as told:
        clf.add_label({"name": "food", "descriptions": ["Meals and recipes."]})
    assert clf.none_ is None
    assert told[0].filename == __file__


def test_an_edited_label_file_takes_the_limit_away_and_says_so(clf, tmp_path):
    folder = clf.set_coverage(0.8, POOL).save(tmp_path / "model")
    file = folder / "label_space.yaml"
    file.write_text(file.read_text().replace("Results of matches", "Scores of matches"))
    said = "for other labels, names or texts.*rename_label and remove_label, which keep it"
    with pytest.warns(LabelSpaceWarning, match=said):
        opened = load(folder)
    assert opened.none_ is None


def test_the_fingerprint_changes_with_every_text():
    one = {"name": "a", "descriptions": ["x"], "not": ["y"]}
    made = [{"labels": [one, "b"]}, {"labels": [{**one, "not": ["z"]}, "b"]}, {"labels": [one, "b"], "outside": ["z"]}]
    made += [{"labels": [{**one, "descriptions": ["w"]}, "b"]}, {"labels": [one, "c"]}]
    assert len({fingerprint(LabelSpace.from_dict(each)) for each in made}) == 5


def test_a_second_fit_forgets_the_limit(clf):
    assert clf.set_coverage(0.8, POOL).fit().none_ is None


@pytest.mark.parametrize("coverage", [0, 1.5, "most"])
def test_a_coverage_that_is_no_share_is_refused(clf, coverage):
    with pytest.raises(ConfigError, match="coverage must be"):
        clf.set_coverage(coverage, POOL)


def test_a_pool_of_one_document_is_refused(clf):
    with pytest.raises(InputError, match=r"needs 50 different documents or more\. Got 1;"):
        clf.set_none(POOL[:1])
    with pytest.raises(InputError, match=r"needs 50 different documents or more\. Got 1;"):
        clf.set_none(POOL[:1] * 80)
    with pytest.raises(InputError, match="no document"):
        clf.set_coverage(0.9, [])


# ---- what a label is not, and what lies outside


def test_a_text_nearer_to_what_a_label_is_not_counts_as_much_less():
    draw = np.random.default_rng(0)
    vectors = draw.normal(size=(20, 8)).astype(np.float32)
    vectors /= np.linalg.norm(vectors, axis=1, keepdims=True)
    labels = [LabelVectors(vectors[0], vectors[:0], excludes=vectors[1:3]), LabelVectors(vectors[3], vectors[:0])]
    scores = cosines(vectors, vectors[[0, 3]])
    kept = scores.copy()
    found = less_what_it_is_not(scores, vectors, labels)
    assert (scores == kept).all()
    for row, text in enumerate(vectors):
        nearest = max(float(text @ other) for other in vectors[1:3])
        own = float(scores[row, 0])
        assert found[row, 0] == pytest.approx(own - max(nearest - own, 0), abs=1e-5)
    assert (found[:, 1] == scores[:, 1]).all()


def test_not_and_outside_change_the_answer_and_survive_saving(tiny_encoder_folder, tmp_path):
    plain = {"labels": {"sports": ["A match was won."], "money": ["The bank closed."]}}
    text = "the bank closed"
    labels = [{"name": "sports", "descriptions": ["A match was won."]}]
    labels += [{"name": "money", "descriptions": ["The bank closed."], "not": [text]}]
    usual = ZeroShotClassifier(plain, encoder=tiny_encoder_folder).fit()
    assert usual.predict([text]).tolist() == ["money"]
    lowered = ZeroShotClassifier({"labels": labels}, encoder=tiny_encoder_folder).fit()
    outside = ZeroShotClassifier({**plain, "outside": [text]}, encoder=tiny_encoder_folder).fit()
    before, after = (clf.scores([text], clf.label_space_)[0] for clf in (usual, lowered))
    assert after[0] == before[0]
    assert after[1] == pytest.approx(2 * before[1] - 1, abs=1e-5)  # its cosine with itself is 1
    assert outside.predict([text, "A match was won."]).tolist() == [None, "sports"]
    assert "nearer to what lies outside" in str(outside.explain(text))
    for place, clf in enumerate((lowered, outside)):
        opened = load(clf.save(tmp_path / str(place)))
        assert (opened.predict([text]) == clf.predict([text])).all()
        assert (opened.scores([text], opened.label_space_) == clf.scores([text], clf.label_space_)).all()


def test_a_method_that_reads_neither_says_so(tiny_encoder_folder):
    labels = {"labels": [{"name": "sports", "not": ["A chess club."]}, "money"], "outside": ["A recipe."]}
    clf = UncertaintyClassifier(labels, tiny_encoder_folder, epochs=1, cache=None)
    with pytest.warns(LabelSpaceWarning, match="does not read 'outside' and 'not' of the labels"):
        clf.fit(["the team won", "the bank closed"] * 4, ["sports", "money"] * 4)
    with pytest.warns(LabelSpaceWarning, match="WordsClassifier does not read 'outside' and 'not' of the labels"):
        WordsClassifier(labels).fit(["the team won", "the bank closed"] * 4, ["sports", "money"] * 4)


def test_not_that_repeats_a_description_is_refused_with_its_line(tmp_path):
    file = tmp_path / "labels.yaml"
    file.write_text("labels:\n  - name: a\n    descriptions: [one]\n    not:\n      - two\n      - one\n  - name: b\n")
    with pytest.raises(LabelFileError, match=r"labels.yaml:6: label 'a': 'not' repeats the description 'one'"):
        LabelSpace.from_file(file)
    with pytest.raises(LabelFileError, match="not must be a list"):
        LabelSpace.from_dict({"labels": [{"name": "a", "not": "two"}, "b"]})


def test_a_label_file_with_not_and_outside_reads_back(tmp_path):
    space = LabelSpace.from_dict(
        {"labels": [{"name": "a", "descriptions": ["one"], "not": ["two"]}, "b"], "outside": ["three"]}
    )
    space.to_file(tmp_path / "labels.yaml")
    assert LabelSpace.from_file(tmp_path / "labels.yaml") == space
    assert space.rename("a", "c")["c"].excludes == ("two",)
    assert space.add(space["b"].__class__("d")).outside == ("three",)


def test_another_anchor_takes_the_limit_away_and_other_parameters_keep_it(clf):
    clf.set_none(POOL).set_params(temperature=0.5, anchor=clf.anchor)
    assert clf.none_ is not None
    with pytest.warns(LabelSpaceWarning, match="set with the anchor 'descriptions', and is not used with 'verbalizer'"):
        clf.set_params(anchor="verbalizer")
    assert clf.none_ is None
    assert None not in clf.predict(POOL).tolist()


def test_a_limit_set_while_long_texts_were_cut_stays_with_a_warning(clf):
    clf.set_none(POOL).set_params(long_texts="cut")
    said = r"limit for 'none of these' was set with long_texts='cut', and long texts score otherwise with 'windows'"
    with pytest.warns(LabelSpaceWarning, match=said):
        clf.set_params(long_texts="windows")
    assert clf.none_ is not None


def test_a_limit_that_cannot_be_set_leaves_the_one_before(clf):
    clf.set_none(POOL)
    before, answered = clf.none_, clf.predict(POOL).tolist()
    for wrong in (lambda: clf.set_none(["a", "b"]), lambda: clf.set_coverage(0.7, [])):
        with pytest.raises(InputError):
            wrong()
        assert clf.none_ == before
    assert clf.predict(POOL).tolist() == answered


@pytest.mark.parametrize(
    ("outside", "threshold", "told"), [(["The weather."], None, "puts outside"), ([], 0.5, "threshold")]
)
def test_the_card_tells_what_gets_no_label(outside, threshold, told, tmp_path):
    space = LabelSpace.from_dict({"labels": list(NAMES), "outside": outside} if outside else {"labels": list(NAMES)})
    clf = ZeroShotClassifier(space, encoder="tests/data/tiny-bert", threshold=threshold).fit()
    card = (clf.save(tmp_path / "model") / "README.md").read_text()
    assert told in card
    assert "Every text gets a label" not in card


def test_the_card_of_a_model_that_does_not_read_outside_does_not_promise_it(tmp_path):
    space = LabelSpace.from_dict({"labels": ["a", "b"], "outside": ["The weather."]})
    with pytest.warns(LabelSpaceWarning, match="does not read 'outside'"):
        clf = WordsClassifier(space, min_df=1).fit(["the team won", "the bank lost"], ["a", "b"])
    assert "Every text gets a label" in (clf.save(tmp_path / "model") / "README.md").read_text()
