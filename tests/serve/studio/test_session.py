"""What the page asks: answers of the library's own classifier, findings, clicks, training, export."""

import csv
import shlex
from pathlib import Path

import numpy as np
import pytest

from labelspace import Encoder, LabelSpace, ZeroShotClassifier, load
from labelspace.classify import BiEncoderClassifier, Classifier
from labelspace.classify.joint import JointClassifier
from labelspace.corpus import open_table, sample_pool
from labelspace.errors import InputError, LabelFileError, OutputError
from labelspace.evaluate import advise, estimate
from labelspace.labels import lint
from labelspace.serve.label_texts import KnownTexts
from labelspace.serve.studio import study
from labelspace.serve.studio.answering import Answered
from labelspace.serve.studio.clicks import proposals
from labelspace.serve.studio.export import Exports
from labelspace.serve.studio.label_file import LabelFile
from labelspace.serve.studio.session import Session
from serve.studio.conftest import LABELS, POOL, wait_for

GOAL = {"do": "description", "label": 0, "place": 0, "text": "A goal is scored."}


@pytest.fixture
def at_once(monkeypatch):
    """Study the labels without waiting until the typing has stopped."""
    monkeypatch.setattr(study, "QUIET", 0.01)


def studied(session):
    """Return the findings on the newest version."""
    version = session.state()["version"]
    return wait_for(lambda: (found := session.study.found).complete and found.version == version and found).to_dict()


def test_documents_are_answered_as_by_the_zero_shot_classifier(session, encoder, label_file):
    session.edit(GOAL)
    found = session.state()["answers"]
    clf = ZeroShotClassifier(label_file, encoder=encoder).fit()
    answers = clf.answers(session.pool.texts)
    assert found["likeliest"] == answers.likeliest.tolist()
    np.testing.assert_allclose(found["score"], answers.score, atol=6e-4)
    assert [label["count"] for label in found["labels"]] == np.bincount(answers.columns, minlength=2).tolist()
    doubt = clf.decision().doubt(answers, "entropy")
    assert doubt[found["order"][0]] == pytest.approx(doubt.max(), abs=1e-6)


def test_an_edit_that_comes_twice_is_made_once(session):
    art = {"do": "add label", "text": "art"}
    assert session.edit(art, edit_id="tab 1") == session.edit(art, edit_id="tab 1")
    for _ in range(2):
        with pytest.raises(LabelFileError):
            session.edit(art, edit_id="tab 2")


def test_an_edit_embeds_only_the_new_text(session, monkeypatch):
    asked = []
    encode = type(session.known.encoder).encode
    monkeypatch.setattr(
        type(session.known.encoder),
        "encode",
        lambda self, texts, **more: asked.extend(texts) or encode(self, texts, **more),
    )
    session.edit(GOAL)
    assert asked == [GOAL["text"]]


def test_none_of_these_is_the_limit_that_the_classifier_sets(session, encoder, label_file):
    found = session.set_none(True)["answers"]
    clf = ZeroShotClassifier(label_file, encoder=encoder).fit().set_none(session.pool.texts)
    answers = clf.answers(session.pool.texts)
    clear = np.abs(answers.closeness - clf.none_.value) > 0.01  # batches may differ in a score's last bits
    assert clear.mean() > 0.9
    assert ((np.array(found["columns"]) < 0) == (answers.columns < 0))[clear].all()
    assert 0 < found["none"] == found["columns"].count(-1)
    assert session.set_none(False)["answers"]["none"] == 0


def test_an_explanation_names_the_descriptions_that_pulled(session, encoder, label_file):
    clf = ZeroShotClassifier(label_file, encoder=encoder).fit()
    mine, theirs = session.explain(3), clf.explain(session.pool.texts[3]).to_dict()
    assert [each["label"] for each in mine["top"]] == [each["label"] for each in theirs["top"]]
    assert [text for text, _ in mine["top"][0]["nearest"]] == [text for text, _ in theirs["top"][0]["nearest"]]


@pytest.mark.usefixtures("at_once")
def test_findings_are_those_of_lint_estimate_and_advice(session, encoder, label_file):
    session.edit({"do": "description", "label": 1, "place": 0, "text": "A loan."})
    found, space = studied(session), LabelSpace.from_file(label_file)
    assert [one["code"] for one in found["lint"]] == [one.code for one in lint(space, encoder)]
    assert "very-short-description" in {one["code"] for one in found["lint"]}
    own = estimate(ZeroShotClassifier(space, encoder=encoder).fit(), session.pool.texts)
    assert found["estimate"]["accuracy"]["expected"] == pytest.approx(own.accuracy.expected, abs=0.02)
    advice = advise(space, session.pool.texts, encoder=encoder)
    assert {one["text"] for one in found["advice"]["descriptions"]} == {one.text for one in advice.descriptions}
    assert {"hurts", "astray"} <= set(found["advice"]["descriptions"][0])


@pytest.mark.usefixtures("at_once")
def test_what_cannot_be_estimated_says_why(label_file, encoder):
    pool = sample_pool(POOL[:20], size=20, seed=0)
    session = Session(LabelFile(label_file), pool, encoder, pool_file="docs.csv", text_column="text")
    wait_for(lambda: session.state()["answers"])
    assert "50 different documents or more" in studied(session)["estimate"]["problem"]
    session.close()


@pytest.mark.slow
def test_the_study_goes_on_after_a_lint_that_failed(session, monkeypatch):
    studied(session)
    with monkeypatch.context() as broken:
        broken.setattr(type(session.known), "count_tokens", lambda *_: 1 / 0)
        session.edit(GOAL)
        assert "ZeroDivisionError" in studied(session)["lint"][0]["message"]
    session.edit({**GOAL, "text": "A goal is shot."})
    assert "lint-failed" not in {one["code"] for one in studied(session)["lint"]}


def test_labels_that_cannot_be_compared_with_the_documents_are_told(label_file, encoder, monkeypatch):
    monkeypatch.setattr(KnownTexts, "model", lambda *_: 1 / 0)
    pool = sample_pool(POOL, size=2000, seed=0)
    session = Session(LabelFile(label_file), pool, encoder, pool_file="docs.csv", text_column="text")
    told = wait_for(lambda: session.status()["pool"]["problem"])
    assert "division by zero" in told
    assert not session.status()["pool"]["ready"]
    session.close()


@pytest.mark.usefixtures("at_once")
def test_only_clicks_on_documents_drawn_at_random_narrow_the_estimate(session):
    for each in session.propose():
        session.click(each["row"], "money", each["source"])
    assert [row["source"] for row in session.clicks.to_dict()["rows"]] == ["random", "doubt"] * 5
    session.edit(GOAL)
    assert studied(session)["estimate"]["labelled"] == 5


def test_after_skipped_documents_others_are_proposed(session):
    rows = [each["row"] for each in session.propose()]
    more = [each["row"] for each in session.propose(skipped=10)]
    assert (len(rows), len(set(more))) == (10, 20)
    assert more[:10] == rows


def test_a_click_is_written_at_once_with_its_source_and_other_columns_stay(session, label_file):
    file = label_file.with_name("labels.clicks.csv")
    text = session.pool.texts[0]
    session.click(0, "money", "chosen")
    rows = list(csv.DictReader(file.read_text().splitlines()))
    assert rows == [{"text": text, "label": "money", "source": "chosen"}]
    file.write_text(f"text,label,who\n{text},money,me\nanother one,sports,you\n")
    session.click(1, "sports", "random")
    rows = list(csv.DictReader(file.read_text().splitlines()))
    assert [(row["label"], row["source"], row["who"]) for row in rows] == [
        ("money", "chosen", "me"),
        ("sports", "chosen", "you"),
        ("sports", "random", ""),
    ]
    session.click(0, None, "chosen")
    assert [row["text"] for row in csv.DictReader(file.read_text().splitlines())] == [
        "another one",
        session.pool.texts[1],
    ]
    table = open_table(str(file), label_column="label")
    table.check_labels(["money", "sports"])


def test_a_renamed_label_keeps_its_clicks_and_undo_too(session):
    session.click(0, "money", "random")
    session.edit({"do": "name", "label": 1, "text": "finance"})
    assert session.clicks.rows[session.pool.texts[0]]["label"] == "finance"
    session.step(back=True)
    assert session.clicks.rows[session.pool.texts[0]]["label"] == "money"


def test_clicks_of_a_removed_label_are_not_those_of_another_that_takes_its_name(session):
    texts = session.pool.texts
    session.edit({"do": "add label", "text": "world"})
    session.click(0, "sports", "random")
    session.edit({"do": "remove label", "label": 0})
    session.click(1, "world", "random")
    session.edit({"do": "name", "label": 1, "text": "sports"})
    session.click(2, "sports", "random")
    after = [session.clicks.rows[text]["label"] for text in texts[:3]]
    session.step(back=True)
    before = [session.clicks.rows[text]["label"] for text in texts[:3]]
    session.step(back=False)
    assert after == ["sports", "sports", "sports"]
    assert before == ["sports", "world", "world"]
    assert [session.clicks.rows[text]["label"] for text in texts[:3]] == after


def test_a_label_that_takes_the_place_of_another_on_disk_gets_none_of_its_clicks(session, label_file):
    session.click(0, "money", "random")
    label_file.write_text(LABELS.replace("name: money", "name: weather"))
    session.resolve("theirs")
    assert session.clicks.rows[session.pool.texts[0]]["label"] == "money"
    session.step(back=True)
    assert session.clicks.rows[session.pool.texts[0]]["label"] == "money"


def test_documents_are_labelled_anew_even_if_the_clicks_cannot_be_renamed(session):
    session.click(0, "money", "random")
    session.clicks.path.write_text("topic\nbroken\n")
    with pytest.raises(InputError, match="columns text and label are missing"):
        session.edit({"do": "name", "label": 1, "text": "finance"})
    state = session.state()
    assert state["answers"]["version"] == state["version"]
    assert [label["name"] for label in state["answers"]["labels"]] == ["sports", "finance"]


def test_an_edit_that_was_meant_for_another_label_is_refused(session, label_file):
    session.edit({"do": "add label", "text": "world"})
    session.edit({"do": "remove label", "label": 0, "of": "sports"})
    before = label_file.read_text()
    bank = session.file.draft.labels[0].descriptions[0]
    for late in (
        {"do": "description", "label": 1, "of": "money", "place": 0, "was": bank, "text": "A loan."},
        {"do": "description", "label": 0, "of": "money", "place": 0, "was": "an older text", "text": "A loan."},
        {"do": "description", "label": 0, "of": "money", "place": 2, "was": bank, "text": "A loan."},
        {"do": "remove description", "label": 0, "of": "money", "place": 1, "was": bank},
        {"do": "remove label", "label": 0, "of": "sports"},
        {"do": "phrase", "label": 0, "of": "sports", "text": "games"},
        {"do": "name", "label": 0, "of": "sports", "text": "games"},
    ):
        with pytest.raises(InputError, match="have changed since the page showed them"):
            session.edit(late)
    assert label_file.read_text() == before
    session.edit({"do": "description", "label": 0, "of": "money", "place": 0, "was": bank, "text": "A loan."})
    session.edit({"do": "description", "label": 0, "of": "money", "place": 2, "was": None, "text": "A debt."})
    assert "A loan." in label_file.read_text()
    assert "A debt." in label_file.read_text()


def test_documents_in_doubt_come_first_where_words_disagree():
    doubtful, disagree = np.array([2, 0, 1, 3]), np.array([True, False, False, True])
    found = proposals(["a", "b", "c", "d"], {}, doubtful, disagree, most=4)
    assert next(each for each in found if each["source"] == "doubt")["row"] in (0, 3)
    assert sorted(each["row"] for each in found) == [0, 1, 2, 3]
    assert (
        proposals(["a", "b"], {"a": {"source": "random"}, "b": {"source": "doubt"}}, np.array([0, 1]), None, most=4)
        == []
    )


@pytest.mark.slow
@pytest.mark.parametrize("method", ["consensus", "lacon"])
def test_training_shows_before_and_after_and_its_model_is_exported(session, method, label_file):
    for row in range(4):
        session.click(row, ("money", "sports")[row % 2], "random")
    session.train(method)
    progress = wait_for(lambda: (now := session.training.progress).state != "running" and now)
    assert progress.state == "done", progress.problem
    found = progress.to_dict()["result"]
    assert found["documents"] == len(POOL)
    assert sum(label["before"] for label in found["labels"]) == sum(label["after"] for label in found["labels"])
    assert found["changed"] >= len(found["examples"])
    assert progress.step > 0
    assert found["before"]["labelled"] == 4
    if method == "lacon":
        assert "learnt from the clicks" in found["after"]["problem"]
    else:
        assert found["after"]["labelled"] == 4
    done = session.export("trained", "model")
    assert load(done["path"]).predict(session.pool.texts[:1])[0] in ("money", "sports")
    assert session.export("trained", "model")["replaced"]


@pytest.mark.slow
@pytest.mark.parametrize("method", ["consensus", "lacon"])
def test_a_trained_model_leaves_documents_without_a_label_if_that_is_asked(session, method):
    for row in range(4):
        session.click(row, ("money", "sports")[row % 2], "random")
    session.set_none(True)
    session.train(method)
    progress = wait_for(lambda: (now := session.training.progress).state != "running" and now)
    assert progress.state == "done", progress.problem
    after = sum(label["after"] for label in progress.to_dict()["result"]["labels"])
    saved = load(session.export("trained", "model")["path"])
    assert saved.none_.documents == len(POOL)
    assert after == len(POOL) - sum(name is None for name in saved.predict(session.pool.texts)) < len(POOL)


def test_training_can_be_stopped_and_changes_nothing(session):
    session.train("consensus")
    with pytest.raises(InputError, match="a training is running"):
        session.train("consensus")
    session.training.stop()
    progress = wait_for(lambda: (now := session.training.progress).state != "running" and now)
    assert progress.state == "stopped"
    assert session.training.model is None
    with pytest.raises(InputError, match="no model is trained yet"):
        session.export("trained", "model")


@pytest.mark.slow
@pytest.mark.parametrize("method", ["consensus", "lacon"])
def test_a_stop_does_not_wait_until_the_trained_model_has_read_all_documents(session, method, monkeypatch):
    monkeypatch.setattr("labelspace.serve.studio.training.BLOCK", 10)
    read = []

    def judge(model, documents, space, before=Classifier.judge):
        read.append(len(documents))
        session.training.stop()
        return before(model, documents, space)

    monkeypatch.setattr(BiEncoderClassifier, "judge", judge, raising=False)
    monkeypatch.setattr(JointClassifier, "judge", judge, raising=False)
    for row in range(4):
        session.click(row, ("money", "sports")[row % 2], "random")
    session.train(method)
    progress = wait_for(lambda: (now := session.training.progress).state != "running" and now)
    assert progress.state == "stopped"
    assert read == [10]


@pytest.mark.slow
def test_training_leaves_the_shared_encoder_alone_and_estimates_as_the_library_does(session, monkeypatch):
    before, encode = studied(session)["estimate"], Encoder.encode
    shared, asked = session.known.encoder, []
    monkeypatch.setattr(
        Encoder, "encode", lambda self, texts, **more: asked.append(self is shared) or encode(self, texts, **more)
    )
    session.train("consensus")
    progress = wait_for(lambda: (now := session.training.progress).state != "running" and now)
    assert progress.state == "done", progress.problem
    assert asked
    assert not any(asked)
    assert progress.result["before"] == before
    own = estimate(session.training.model, session.pool.texts)
    assert progress.result["after"]["accuracy"]["expected"] == pytest.approx(own.accuracy.expected, abs=0.02)


def test_the_untrained_model_is_saved_while_nobody_else_uses_its_encoder(session, monkeypatch):
    held, save = [], ZeroShotClassifier.save
    monkeypatch.setattr(
        ZeroShotClassifier,
        "save",
        lambda self, folder: held.append(session.known.one_at_a_time.locked()) or save(self, folder),
    )
    session.export("untrained", "model")
    assert held == [True]


def test_training_on_clicks_needs_clicks_of_two_labels(session):
    session.click(0, "money", "random")
    with pytest.raises(InputError, match="of two labels at least"):
        session.train("lacon")


def test_the_untrained_model_and_the_labelled_documents_are_exported(session, label_file):
    folder = session.export("untrained", "model")["path"]
    answers = session.state()["answers"]
    names = [answers["labels"][column]["name"] for column in answers["columns"]]
    assert load(folder).predict(session.pool.texts).tolist() == names
    file = session.export("documents", "labels.documents.csv")["path"]
    rows = list(csv.DictReader(Path(file).read_text().splitlines()))
    assert [row["label"] for row in rows] == names


def test_nothing_is_written_outside_the_folder_of_the_label_file(session):
    for name in ("../model", "/tmp/model", "a/b", "", ".hidden", None, 3):
        with pytest.raises(InputError, match="and no folder"):
            session.export("untrained", name)


def test_an_export_replaces_no_folder_but_a_model(session, label_file):
    other = label_file.with_name("photos")
    other.mkdir()
    (other / "one.jpg").write_text("x")
    with pytest.raises(OutputError, match="holds something else"):
        session.export("untrained", "photos")


def test_documents_replace_an_earlier_export_and_no_other_file(session, encoder, label_file, monkeypatch):
    monkeypatch.chdir(label_file.parent)
    kept = {
        "labels.clicks.csv": "text,label,source\na,money,random\n",
        "docs-1.csv": "text,label,score,doubt\na,money,1,0\n",  # an earlier export, labelled anew
        "budget.csv": "month,sum\nMay,3\n",
    }
    for name, text in kept.items():
        Path(name).write_text(text)
    labels = LabelFile(Path("labels.yaml")).path
    exports = Exports(labels, labels.with_name("labels.clicks.csv"), "docs-*.csv", {})
    answered = Answered(session.known, session.pool, session.file.space, 0, none=False)
    for name in (*kept, "Labels.Clicks.csv"):
        with pytest.raises(InputError, match="choose another name"):
            exports.documents(name, session.pool.texts, answered)
    assert {name: Path(name).read_text() for name in kept} == kept
    assert not exports.documents("labels.documents.csv", session.pool.texts, answered)["replaced"]
    assert exports.documents("labels.documents.csv", session.pool.texts, answered)["replaced"]


def test_the_commands_of_the_export_parse_and_have_the_options_of_the_studio(label_file, encoder):
    from contracts.pages import command_problem

    options = {"text_column": "body", "delimiter": ";", "encoding": "cp1252", "dtype": "float32", "device": "cpu"}
    options |= {"trust_remote_code": True, "offline": True}
    pool = sample_pool(POOL, size=60, seed=0)
    session = Session(LabelFile(label_file), pool, encoder, pool_file="my docs.csv", **options)
    wait_for(lambda: session.state()["answers"])
    session.click(0, "money", "random")
    session.click(1, "sports", "random")
    session.set_none(True)
    session.export("untrained", "labels-model")
    commands = {name: shlex.split(line) for name, line in session.commands()["commands"].items()}
    session.close()
    assert {name: command_problem(tuple(words)) for name, words in commands.items()} == dict.fromkeys(commands, "")
    reading = {"--text-column", "--delimiter", "--encoding"}
    opening = {"--encoder", "--dtype", "--device", "--trust-remote-code", "--offline"}
    assert {name: {word for word in words if word.startswith("--")} for name, words in commands.items()} == {
        "train": {"--pool", "--none", "--out", *reading, *opening},
        "clicks": {"--labelled", "--out", *opening},
        "label": {"--device", "--trust-remote-code", *reading},
    }
    outputs = [words[words.index("--out") + 1] for words in commands.values() if "--out" in words]
    outputs.append(commands["label"][4])
    assert len(set(outputs)) == 3
    assert not any(Path(output).exists() for output in outputs)


def test_the_commands_of_the_export_run(label_file, encoder):
    from typer.testing import CliRunner

    from labelspace.cli.app import app

    documents = label_file.with_name("docs.csv")
    documents.write_text("text\n" + "\n".join(POOL) + "\n")
    options = {"encoder": encoder.name, "device": "cpu"}
    exports = Exports(label_file, label_file.with_name("labels.clicks.csv"), str(documents), options)
    commands = exports.commands(clicked=(), names=(), none=False)["commands"]
    for line in (commands["train"] + " --method description --max-steps 1 --learning-rate 1e-4", commands["label"]):
        done = CliRunner().invoke(app, shlex.split(line)[1:])
        assert done.exit_code == 0, done.output
    rows = list(csv.DictReader(label_file.with_name("labels.labelled.csv").read_text().splitlines()))
    assert len(rows) == len(POOL)
    assert {row["predicted_label"] for row in rows} <= {"money", "sports"}


def test_clicks_on_a_label_that_is_gone_have_no_command_that_would_fail_and_the_page_is_told(session):
    session.edit({"do": "add label", "text": "world"})
    session.click(0, "money", "random")
    session.click(1, "world", "random")
    session.edit({"do": "remove label", "label": 2})
    told = session.commands()
    assert "clicks" not in told["commands"]
    assert told["gone"] == ["world"]
    session.click(1, "money", "chosen")
    assert session.commands()["gone"] == []
    assert "clicks" not in session.commands()["commands"], "all are on one label, and fit refuses that"
    for label in (" sports ", "", "-1"):  # as fit reads a file that was edited by hand
        session.clicks.rows[label] = {"text": label, "label": label, "source": "chosen"}
    assert session.commands()["gone"] == []
    assert "clicks" in session.commands()["commands"]


def test_too_few_documents_are_refused(label_file, encoder):
    with pytest.raises(InputError, match="needs 5 different documents"):
        Session(
            LabelFile(label_file),
            sample_pool(["a", "b"], size=9, seed=0),
            encoder,
            pool_file="x.csv",
            text_column="text",
        )
