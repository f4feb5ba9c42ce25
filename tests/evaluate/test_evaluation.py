"""`evaluate` scores the answers of `predict`, adds the untrained baselines, and records the provenance."""

import copy
import json
import shutil
from dataclasses import replace
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from rich.cells import cell_len
from scipy.sparse import csr_array
from sklearn.exceptions import NotFittedError

from labelspace import ConsensusClassifier, LabelSpace, LaConClassifier, ZeroShotClassifier, load
from labelspace.classify import WordsClassifier, distinct
from labelspace.cli.printing import print_pairs
from labelspace.encoders import Encoder
from labelspace.errors import ColumnError, ConfigError, InputError, LabelSpaceWarning
from labelspace.evaluate import abstaining_scorer, evaluate, evaluate_table, evaluation, write_result
from labelspace.evaluate.provenance import REQUIRED
from labelspace.evaluate.report import most_frequent_confusions
from labelspace.text_table import text_table


def confusion_by_hand(model, texts, names):
    columns = {name: column for column, name in enumerate(model.label_space_.names)}
    counts = np.zeros((len(columns), len(columns) + 1), dtype=np.int64)
    for name, answer in zip(names, model.predict(texts), strict=True):
        counts[columns[name], columns.get(answer, len(columns))] += 1
    return counts


@pytest.mark.parametrize("which", ["untrained", "trained"])
def test_it_counts_the_answers_of_predict(which, request, texts, names):
    model = request.getfixturevalue(which)
    found = evaluate(model, texts, names)
    assert np.array_equal(found.confusion, confusion_by_hand(model, texts, names))
    assert found.metrics.accuracy == pytest.approx(model.score(texts, names))
    assert found.labels == model.label_space_.names
    assert found.documents_per_second == pytest.approx(len(texts) / found.seconds)


@pytest.mark.parametrize("long_texts", ["cut", "windows"])
@pytest.mark.parametrize(
    "told",
    [
        {"outside": ["a text about a team and its game"]},
        {
            "labels": [
                {"name": "sports", "not": ["the bank lends money", "a team"]},
                {"name": "money", "not": ["a goal"]},
            ]
        },
    ],
    ids=["outside", "not"],
)
def test_it_counts_the_answers_of_predict_where_labels_say_what_they_are_not(encoder, texts, told, long_texts):
    space = LabelSpace.from_dict({"labels": ["sports", "money"], **told})
    texts = [*texts, *("word " * 40 + text for text in texts)]  # two windows of the tiny encoder
    model = ZeroShotClassifier(space, encoder, threshold=0.05, long_texts=long_texts).fit()
    own = [space.names[number % 2] for number in range(len(texts))]
    expected = confusion_by_hand(model, texts, own)
    plain = ZeroShotClassifier(["sports", "money"], encoder, threshold=0.05, long_texts=long_texts).fit()
    assert not np.array_equal(confusion_by_hand(plain, texts, own), expected), "what the labels are not counts here"
    assert np.array_equal(evaluate(model, texts, own).confusion, expected)


def test_the_baselines_are_the_untrained_classifiers(trained, encoder, space, texts, names):
    found = evaluate(trained, texts, names)
    kinds = {"untrained: nearest verbalizer": "verbalizer", "untrained: mean of descriptions": "descriptions"}
    assert [baseline.name for baseline in found.baselines] == list(kinds)
    for baseline in found.baselines:
        alone = ZeroShotClassifier(space, encoder, anchor=kinds[baseline.name]).fit()
        expected = evaluate(alone, texts, names, baselines=False).metrics
        assert baseline.metrics is not None
        assert baseline.metrics.to_dict() == pytest.approx(expected.to_dict())
        assert baseline.note == ""
        assert baseline.difference is not None
        assert baseline.difference.accuracy.value == pytest.approx(found.metrics.accuracy - expected.accuracy)
        assert baseline.difference.macro_f1.value == pytest.approx(found.metrics.macro_f1 - expected.macro_f1)


@pytest.mark.parametrize("anchor", ["verbalizer", "descriptions"])
def test_an_untrained_model_is_one_of_its_own_baselines(encoder, space, texts, names, anchor):
    model = ZeroShotClassifier(space, encoder, anchor=anchor).fit()
    found = evaluate(model, texts, names)
    assert found.metrics == found.baselines[("verbalizer", "descriptions").index(anchor)].metrics


def test_a_loaded_model_still_knows_its_untrained_encoder(trained, texts, names, tmp_path):
    again = load(trained.save(tmp_path / "model"))
    first, second = evaluate(trained, texts, names), evaluate(again, texts, names)
    assert first.metrics == second.metrics
    assert first.baselines == second.baselines
    assert second.provenance["seeds"] == [3]


def test_a_missing_encoder_leaves_the_baselines_out_with_a_reason(
    tiny_encoder_folder: Path, space, texts, names, tmp_path
):
    from labelspace import DescriptionClassifier

    folder = shutil.copytree(tiny_encoder_folder, tmp_path / "encoder")
    model = DescriptionClassifier(space, Encoder(folder, dtype="float32"), max_steps=2, learning_rate=1e-3).fit()
    shutil.rmtree(folder)
    found = evaluate(model, texts, names)
    assert [baseline.metrics for baseline in found.baselines] == [None, None]
    assert all(str(folder) in baseline.note for baseline in found.baselines)
    assert found.to_text().count("note: the untrained encoder cannot be opened") == 1
    json.dumps(found.to_dict(), allow_nan=False)


def test_baselines_can_be_left_out_and_then_no_encoder_is_opened(trained, texts, names, monkeypatch):
    monkeypatch.setattr("labelspace.evaluate.baselines.untrained_encoder", None)
    assert evaluate(trained, texts, names, baselines=False).baselines == ()


def evaluation_module():
    import sys

    return sys.modules["labelspace.evaluate.evaluation"]


def test_each_document_is_encoded_once_by_an_untrained_model(encoder, space, texts, names, monkeypatch):
    model = ZeroShotClassifier(space, encoder).fit()
    encoded = []
    kept = Encoder.encode
    monkeypatch.setattr(Encoder, "encode", lambda self, texts, **k: encoded.extend(texts) or kept(self, texts, **k))
    evaluate(model, texts, names)
    assert sorted(encoded) == sorted(texts)


def test_labels_without_descriptions_are_noted(encoder, texts):
    model = ZeroShotClassifier(["sports", "money"], encoder).fit()
    found = evaluate(model, texts[:2], ["sports", "money"])
    assert found.baselines[0].note == ""
    assert "2 of 2 labels have no description" in found.baselines[1].note


def test_abstentions_are_in_the_last_column_and_the_baselines_make_none(trained, texts, names):
    scores = trained.decision_function(texts).max(axis=1)
    threshold = float(np.sort(scores)[4] - 1e-6)
    model = load_with(trained, threshold)
    found = evaluate(model, texts, names)
    assert found.confusion[:, -1].sum() == 4
    assert found.metrics.coverage == 0.5
    assert np.array_equal(found.confusion, confusion_by_hand(model, texts, names))
    assert all(baseline.metrics.coverage == 1.0 for baseline in found.baselines)
    assert "none of these" in found.to_text()


def load_with(model, threshold):
    import copy

    return copy.copy(model).set_params(threshold=threshold)


@pytest.mark.parametrize("nothing", [None, float("nan"), -1])
def test_documents_without_a_label_are_left_out_and_counted(untrained, texts, names, nothing):
    found = evaluate(untrained, [*texts, "one more", "and one"], [*names, nothing, nothing])
    assert found.metrics.left_out == 2
    assert [baseline.metrics.left_out for baseline in found.baselines] == [2, 2]
    assert found.confusion.tolist() == evaluate(untrained, texts, names).confusion.tolist()
    assert "2 without a label left out" in found.to_text()


@pytest.mark.parametrize("which", ["lists", "file"])
def test_documents_that_fit_no_label_count_where_told(trained, texts, names, tmp_path, which):
    scores = trained.decision_function(texts).max(axis=1)
    model = load_with(trained, float(np.sort(scores)[4] - 1e-6))
    unfit = [name if row % 2 else None for row, name in enumerate(names)]
    if which == "lists":
        found = evaluate(model, texts, unfit, none=True)
    else:
        pq.write_table(pa.table({"text": texts, "label": unfit}), tmp_path / "rows.parquet")
        found = evaluate_table(model, tmp_path / "rows.parquet", none=True)
    answers = model.predict(texts)
    assert found.metrics.accuracy == np.mean([own == answer for own, answer in zip(unfit, answers, strict=True)])
    scorer = abstaining_scorer("f1_macro", none=True)
    assert found.metrics.macro_f1 == pytest.approx(scorer(model, texts, unfit))
    assert (found.labels[-1], found.metrics.left_out) == ("none of these", 0)
    assert found.per_label[-1].support == unfit.count(None)
    assert all(baseline.metrics.documents == len(texts) for baseline in found.baselines)
    assert f"{len(texts)} documents, of which {unfit.count(None)} fit no label, 3 labels" in found.to_text()
    json.dumps(found.to_dict())


def test_documents_that_all_fit_no_label_can_be_counted(untrained, texts):
    assert evaluate(untrained, texts, [None] * len(texts), none=True).metrics.accuracy == 0.0


def test_another_order_of_labels_changes_no_metric(encoder, space, texts, names):
    one = evaluate(ZeroShotClassifier(space, encoder).fit(), texts, names)
    other = evaluate(ZeroShotClassifier(space.reorder(["world", "sports", "money"]), encoder).fit(), texts, names)
    assert other.metrics.to_dict() == pytest.approx(one.metrics.to_dict())
    assert {row.label: row for row in one.per_label} == {row.label: row for row in other.per_label}


def test_blocks_of_documents_change_nothing(trained, texts, names, monkeypatch):
    whole = evaluate(trained, texts, names)
    monkeypatch.setattr(distinct, "WINDOW", 3)
    parts = evaluate(trained, texts, names)
    assert np.array_equal(whole.confusion, parts.confusion)
    assert parts.metrics.to_dict() == pytest.approx(whole.metrics.to_dict())


# ---- tables


@pytest.mark.parametrize("ending", ["csv", "jsonl", "parquet"])
def test_a_file_gives_the_same_numbers_as_lists(untrained, texts, names, tmp_path, ending):
    path = tmp_path / f"news.{ending}"
    rows = {"body": [*texts, "nobody knows"], "desk": [*names, "" if ending == "csv" else None]}
    if ending == "parquet":
        pq.write_table(pa.table(rows), path)
    elif ending == "csv":
        path.write_text("body,desk\n" + "".join(f"{a},{b}\n" for a, b in zip(*rows.values(), strict=True)))
    else:
        path.write_text("".join(json.dumps({"body": a, "desk": b}) + "\n" for a, b in zip(*rows.values(), strict=True)))
    found = evaluate_table(untrained, path, text_column="body", label_column="desk")
    expected = evaluate(untrained, [*texts, "nobody knows"], [*names, None])
    assert found.metrics == expected.metrics
    assert found.baselines == expected.baselines
    assert found.provenance["data"]["evaluated"]["files"][0]["name"] == path.name


def test_an_unknown_label_in_a_file_is_named_by_row_before_anything_is_encoded(untrained, tmp_path, monkeypatch):
    path = tmp_path / "news.csv"
    path.write_text("text,label\na match,sports\na vote,wrld\n")
    monkeypatch.setattr(Encoder, "encode", None)
    with pytest.raises(
        InputError, match=r"news\.csv: row 2: column 'label' is 'wrld', which is no label\. Did you mean"
    ):
        evaluate_table(untrained, path)


def test_a_missing_text_in_a_file_is_named_by_row_before_anything_is_encoded(untrained, tmp_path, monkeypatch):
    path = tmp_path / "news.jsonl"
    path.write_text('{"text": "a match", "label": "sports"}\n{"text": null, "label": "sports"}\n')
    monkeypatch.setattr(Encoder, "tokenize", None)
    with pytest.raises(InputError, match=r"news\.jsonl: row 2 is missing"):
        evaluate_table(untrained, path)


def test_a_file_without_the_column_or_without_a_label_is_refused(untrained, tmp_path):
    path = tmp_path / "news.csv"
    path.write_text("text,label\na match,\na vote,\n")
    with pytest.raises(InputError, match="column 'label' has no label in any of the 2 rows"):
        evaluate_table(untrained, path)
    with pytest.raises(ColumnError, match="no column 'intent'"):
        evaluate_table(untrained, path, label_column="intent")


# ---- results


def test_the_dictionary_is_plain_and_can_be_written_as_a_result(trained, texts, names, tmp_path):
    found = evaluate(trained, texts, names)
    values = found.to_dict()
    assert json.loads(json.dumps(values, allow_nan=False)) == values
    assert values["metrics"]["macro_f1"] == found.metrics.macro_f1
    assert values["per_label"][0]["label"] == "sports"
    path = write_result(tmp_path / "result.json", values, provenance=found.provenance)
    cells = json.loads(path.read_text())["confusion"]
    columns = [*found.labels, None]
    told = {(found.labels.index(cell["true"]), columns.index(cell["predicted"])): cell["documents"] for cell in cells}
    assert told == {place: count for place, count in np.ndenumerate(found.confusion) if count}


def test_the_provenance_is_there_with_seed_data_and_encoder(trained, untrained, texts, names):
    found = evaluate(trained, texts, names).provenance
    assert set(REQUIRED) <= set(found)
    assert found["seeds"] == [3]
    assert found["encoder"]["name"] == trained.encoder_.name
    assert found["hardware"]["dtype"] == "float32"
    assert found["data"]["evaluated"]["documents"] == len(texts)
    other = evaluate(untrained, texts, ["world", *names[1:]], baselines=False).provenance
    assert other["seeds"] == []
    assert other["data"]["evaluated"]["sha256"] != found["data"]["evaluated"]["sha256"]


def test_the_pool_that_training_saw_is_named(encoder, space, texts, names):
    from labelspace import DescriptionClassifier

    model = DescriptionClassifier(space, encoder, max_steps=2, learning_rate=1e-3).fit(texts)
    pool = evaluate(model, texts, names, baselines=False).provenance["data"]["unlabelled_pool"]
    assert pool["documents"] == len(texts)
    assert pool["source"]


def test_the_text_shows_the_baselines_each_label_and_the_matrix(trained, texts, names):
    found = evaluate(trained, texts, names)
    text = found.to_text()
    assert str(found) == text
    lines = text.splitlines()
    assert lines[0] == "desk: 8 labelled documents, 3 labels"
    for start in ("DescriptionClassifier", "untrained: nearest verbalizer", "untrained: mean of descriptions"):
        assert sum(line.startswith(start) for line in lines) == 2, "in the table of metrics, and in that of differences"
    matrix = lines[next(i for i, line in enumerate(lines) if line.startswith("true \\ predicted")) + 1 :][:3]
    shown = [[0 if cell == "." else int(cell) for cell in line.split()[2:]] for line in matrix]
    assert shown == found.confusion[:, :-1].tolist()
    assert "none of these" not in text
    assert max(map(len, lines)) <= 140


@pytest.mark.parametrize("label", ["体育", "\uff21\uff29", "스포츠", "cafe\u0301", "ห้อง", "भाषा"])
def test_tables_line_up_whatever_script_a_label_is_in(label, capsys):
    rows = [("label", "F1"), (label, "0.5"), ("a longer name", "0.25")]
    lines = text_table(rows).splitlines()
    assert {cell_len(line) for line in lines} == {cell_len("a longer name  0.25")}
    print_pairs(rows)
    told = capsys.readouterr().out.splitlines()
    assert [line.rpartition("  ")[2] for line in told] == ["F1", "0.5", "0.25"]
    assert {cell_len(line.rpartition("  ")[0]) for line in told} == {cell_len("a longer name")}


def test_with_many_labels_the_text_lists_the_most_frequent_confusions(encoder, texts):
    labels = [f"topic {number}" for number in range(13)]
    model = ZeroShotClassifier(labels, encoder).fit()
    wrong = [next(name for name in labels if name != answer) for answer in model.predict(texts)]
    found = evaluate(model, texts, wrong, baselines=False)
    text = found.to_text()
    assert "true \\ predicted" not in text
    for true, predicted, count in most_frequent_confusions(found.counts, found.labels):
        assert f"{true} -> {predicted}: {count}" in text
    right = evaluate(model, texts, model.predict(texts), baselines=False)
    assert "no document was confused" in right.to_text()


def test_frequent_confusions_come_largest_first_and_hold_abstentions():
    counts = csr_array(np.array([[9, 1, 0, 2], [0, 9, 3, 0], [1, 0, 9, 5]]))
    found = most_frequent_confusions(counts, ["a", "b", "c"], most=3)
    assert found == [("c", "none of these", 5), ("b", "c", 3), ("a", "none of these", 2)]


# ---- intervals, and another model beside


def test_the_scores_have_intervals(trained, texts, names):
    texts = [f"{text} {time}" for time in range(4) for text in texts]
    own = trained.predict(texts).tolist()
    own[:8] = [next(name for name in names if name != answer) for answer in own[:8]]
    found = evaluate(trained, texts, own, baselines=False)
    for interval, score in zip(found.intervals, (found.metrics.macro_f1, found.metrics.accuracy), strict=True):
        assert interval.value == pytest.approx(score)
        assert interval.low < score < interval.high
    line = next(line for line in found.to_text().splitlines() if line.startswith("95 %"))
    accuracy = found.intervals.accuracy
    assert line.endswith(f"accuracy {accuracy.low:.3f} to {accuracy.high:.3f}")
    assert "too narrow" not in found.to_text()
    few = replace(found, per_label=tuple(replace(label, support=5) for label in found.per_label[:1]))
    assert "\nthe interval of macro-F1 is too narrow: fewer than 6 documents for 1 of the labels\n" in few.to_text()
    right = evaluate(trained, texts, trained.predict(texts), baselines=False)
    assert "macro-F1 (too few rows), accuracy 0." in right.to_text()
    assert right.to_dict()["intervals"]["macro_f1"] == {"value": 1.0, "low": None, "high": None}


def test_copies_of_documents_are_told_because_intervals_take_rows_as_independent(untrained, texts, names):
    with pytest.warns(
        LabelSpaceWarning, match=rf"^{2 * len(texts)} of the {3 * len(texts)} documents repeat another\."
    ):
        evaluate(untrained, texts * 3, list(names) * 3, baselines=False)


@pytest.mark.parametrize("none", [False, True])
def test_another_model_beside_is_measured_as_it_would_be_alone(trained, encoder, texts, names, none):
    # The same labels in another order, and a limit of its own that half of the texts do not reach.
    labels = {"world": ["the court"], "sports": ["a team and players"], "money": ["a bank and money"]}
    other = ZeroShotClassifier(labels, encoder).fit()
    other.threshold = float(np.median(other.decision_function(texts).max(axis=1)))
    own = [None if row in (2, 5) else name for row, name in enumerate(names)]
    found = evaluate(trained, texts, own, beside=other, baselines=False, none=none)
    alone = evaluate(other, texts, own, baselines=False, none=none)
    assert 0 < alone.metrics.coverage < 1, "the test needs abstentions"
    (beside,) = found.baselines
    assert beside.name == "beside: ZeroShotClassifier"
    assert beside.metrics is not None
    assert beside.difference is not None
    assert beside.metrics.to_dict() == pytest.approx(alone.metrics.to_dict())
    difference = beside.difference
    assert difference.accuracy.value == pytest.approx(found.metrics.accuracy - alone.metrics.accuracy)
    documents = found.metrics.documents
    counted = difference.only_this_right - difference.only_other_right
    assert counted == round(difference.accuracy.value * documents)
    row = next(line for line in found.to_text().split("minus")[1].splitlines() if line.startswith("beside"))
    assert row.split()[-2:] == [str(difference.only_this_right), str(difference.only_other_right)]
    json.dumps(found.to_dict(), allow_nan=False)


def test_a_model_beside_itself_does_not_differ(trained, texts, names):
    table = pa.table({"text": texts, "label": names})
    (beside,) = evaluate_table(trained, table, beside=trained, baselines=False).baselines
    assert beside.difference.macro_f1 == (0, None, None)
    assert -beside.difference.accuracy.low == pytest.approx(beside.difference.accuracy.high)
    assert beside.difference[2:] == (0, 0)


def test_models_whose_labels_were_renamed_alike_are_compared(trained, encoder, texts, names):
    other, named = ZeroShotClassifier(trained.label_space_, encoder).fit(), copy.deepcopy(trained)
    for model in (other, named):
        model.rename_label("money", "cash")
    own = ["cash" if name == "money" else name for name in names]
    (beside,) = evaluate(named, texts, own, beside=other, baselines=False).baselines
    assert beside.metrics is not None
    assert beside.metrics.to_dict() == pytest.approx(evaluate(other, texts, own, baselines=False).metrics.to_dict())


def test_a_model_beside_that_cannot_be_compared_is_refused(trained, encoder, texts, names):
    def beside(labels):
        return ZeroShotClassifier(labels, encoder).fit()

    with pytest.raises(ConfigError, match="the model beside lacks the label 'money'; two models can be compared where"):
        evaluate(trained, texts, names, beside=beside(["sports", "world"]))
    with pytest.raises(ConfigError, match="the model beside also has the label 'weather'"):
        evaluate(trained, texts, names, beside=beside([*trained.label_space_.names, "weather"]))
    with pytest.raises(ConfigError, match=r"beside must be a fitted classifier of labelspace\. Got str"):
        evaluate(trained, texts, names, beside="old")  # pyright: ignore[reportArgumentType]
    with pytest.raises(NotFittedError):
        evaluate(trained, texts, names, beside=ZeroShotClassifier(["sports"]))
    pairs = LaConClassifier(list(trained.label_space_.names), encoder, epochs=1)
    pairs.fit(list(zip(texts, texts[::-1], strict=True)), names)
    with pytest.raises(ConfigError, match="the model reads texts and the model beside pairs of texts; give two of a"):
        evaluate(trained, texts, names, beside=pairs)


# ---- refusals


def test_mismatched_input_is_refused(untrained, texts, names):
    with pytest.raises(InputError, match="one label for each of the 8 documents"):
        evaluate(untrained, texts, names[:-1])
    with pytest.raises(InputError, match=r"y\[0\] is 'sport', which is no label. Did you mean 'sports'"):
        evaluate(untrained, texts, ["sport", *names[1:]])
    with pytest.raises(InputError, match="no label for any of the 8 documents"):
        evaluate(untrained, texts, [None] * 8)
    with pytest.raises(InputError, match="no label for any of the 0 documents"):
        evaluate(untrained, [], [])


def test_anything_but_a_fitted_classifier_is_refused(texts, names, space: LabelSpace):
    with pytest.raises(ConfigError, match=r"Got str instead"):
        evaluate("model/", texts, names)  # pyright: ignore[reportArgumentType]
    with pytest.raises(NotFittedError):
        evaluate(ZeroShotClassifier(space), texts, names)


def test_the_package_keeps_function_and_module_apart():
    assert callable(evaluate)
    assert evaluation is evaluation_module()


def test_the_baselines_of_a_consensus_know_its_labels_after_an_edit(encoder, texts):
    labels = {"sports": ["the team won a match"], "money": ["the bank lends"], "weather": ["rain and wind"]}
    words = WordsClassifier(list(labels)).fit(["team", "bank", "rain"] * 2, ["sports", "money", "weather"] * 2)
    limited = (
        ZeroShotClassifier(labels, encoder).fit().set_none([f"{text} {row}" for row in range(9) for text in texts])
    )
    joint = ConsensusClassifier(labels, [limited, words], config={"guards": False}).fit(texts * 4).model_
    untrained = ZeroShotClassifier(labels, encoder).fit()
    for edit in (lambda model: model.remove_label("weather"), lambda model: model.rename_label("money", "cash")):
        edit(joint)
        edit(untrained)
        answers = list(untrained.predict(texts))
        assert len(set(answers)) == 2, "the test needs texts of both"
        accuracies = {one.name: one.metrics.accuracy for one in evaluate(joint, texts, answers).baselines}
        assert accuracies["untrained: mean of descriptions"] == accuracies["alone: tiny-bert"] == 1
        assert accuracies["alone: WordsClassifier"] < 1
