"""`ConsensusClassifier`: views, students, saving, resuming, wrong input."""

import sys

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from sklearn.base import clone

from families.tiny_causal import tiny_causal
from labelspace import ConsensusClassifier, DescriptionClassifier, LaConClassifier, load
from labelspace.classify import WordsClassifier, ZeroShotClassifier, predict_file
from labelspace.classify.joint import JointClassifier
from labelspace.config import ConsensusConfig, StudentConfig
from labelspace.consensus.members import Members
from labelspace.consensus.store import ScoreStore
from labelspace.corpus import Pool, sample_pool
from labelspace.encoders import Encoder
from labelspace.encoders.precision import choose_device, has_native_bfloat16
from labelspace.errors import (
    ConfigError,
    EncoderError,
    InputError,
    LabelSpaceWarning,
    MissingDependencyError,
    ModelFolderError,
    RemoteCodeError,
)
from labelspace.evaluate import evaluate, evaluate_table, label_similarity_figure
from labelspace.header import UNFINISHED, kind_of
from labelspace.labels import LabelSpace
from labelspace.serve.room import Served

# A tiny encoder with random weights follows nobody; tests/consensus/test_teach.py looks at the warning.
# Some tests ask for more documents than there are, so that no step is safe.
pytestmark = [
    pytest.mark.filterwarnings("ignore:the student follows the consensus poorly"),
    pytest.mark.filterwarnings("ignore:.* documents are too few to correct the views"),
]
LABELS = {
    "labels": [
        {"name": "sports", "descriptions": ["Results of matches and games.", "Players, teams and a coach."]},
        {"name": "money", "descriptions": ["Banks, markets and prices."]},
    ]
}
POOL = [
    f"the {who} {what} the {which}"
    for who in ("team", "bank", "player", "price", "match", "market")
    for what in ("won", "lost", "closed", "opened")
    for which in ("game", "money", "cup", "rate")
]
# The tiny encoder, whose weights are random, gives one label to all; levelling it is refused as unsafe.
LEVEL = {"alpha": 0, "guards": False, "view_steps": 2}
STUDENTS = {None: JointClassifier, "words": WordsClassifier, "encoder": DescriptionClassifier}


@pytest.fixture
def make(tiny_encoder_folder):
    """Make a consensus of the tiny encoder and words."""
    tiny = str(tiny_encoder_folder)

    def made(**options):
        given = {"labels": LABELS, "views": [tiny, "words"], "config": LEVEL} | options
        if given.get("student") == "encoder":
            given["student"] = tiny
        return ConsensusClassifier(**given)

    return made


@pytest.fixture(scope="module")
def fitted(tiny_encoder_folder):
    """A consensus with each student."""
    tiny = str(tiny_encoder_folder)
    return {
        student: ConsensusClassifier(
            LABELS, [tiny, "words"], student=tiny if student == "encoder" else student, config=LEVEL
        ).fit(POOL)
        for student in STUDENTS
    }


@pytest.mark.parametrize("student", STUDENTS)
def test_a_saved_consensus_is_an_ordinary_model_with_the_same_bits(fitted, student, tmp_path):
    clf = fitted[student]
    again = load(clf.save(tmp_path / "model"))
    assert type(again) is type(clf.model_) is STUDENTS[student]
    assert (again.answers(POOL).scores == clf.answers(POOL).scores).all()
    assert (again.predict(POOL) == clf.predict(POOL)).all()
    again.save(tmp_path / "twice")
    assert (load(tmp_path / "twice").answers(POOL).scores == clf.answers(POOL).scores).all()


@pytest.mark.parametrize("student", STUDENTS)
def test_a_consensus_is_evaluated_drawn_served_and_answers_files_as_its_saved_model_does(fitted, student, tmp_path):
    clf = fitted[student]
    names = clf.predict(POOL).tolist()
    assert evaluate(clf, POOL, names, baselines=False).metrics.accuracy == 1
    table = pa.table({"text": POOL, "label": names})
    assert evaluate_table(clf, table, baselines=False).metrics.accuracy == 1
    done = predict_file(clf, table, tmp_path / "out.parquet")
    assert pq.read_table(done.path)["predicted_label"].to_pylist() == names
    served = Served("topics", clf)
    assert served.answers(POOL).names.tolist() == names
    assert not served.reads_pairs
    if student == "encoder":
        assert label_similarity_figure(clf, tmp_path / "labels.svg") == (tmp_path / "labels.svg",)


@pytest.mark.parametrize("student", STUDENTS)
def test_probabilities_agree_with_predictions(fitted, student):
    clf = fitted[student]
    assert (clf.classes_[clf.predict_proba(POOL).argmax(axis=1)] == clf.predict(POOL)).all()


@pytest.mark.parametrize("student", STUDENTS)
def test_the_same_seed_gives_the_same_bits(make, fitted, student):
    again = make(student=student).fit(POOL)
    assert (again.answers(POOL).scores == fitted[student].answers(POOL).scores).all()


@pytest.mark.parametrize("student", ["words", "encoder"])
def test_the_report_says_how_well_a_student_follows(fitted, student):
    taught = fitted[student].fit_result_.taught
    assert -1 <= taught["kappa"] <= 1
    assert taught["documents"] == len(POOL)
    assert taught["held_out"] == (student == "words")
    assert (taught["training"] is None) == (student == "words")


@pytest.mark.parametrize("student", STUDENTS)
def test_an_explanation_gives_reasons(fitted, student):
    found = fitted[student].explain("the bank opened the game")
    assert found.label in ("sports", "money")
    assert found.top[0].words or found.top[0].nearest


def test_the_views_together_explain_by_descriptions_and_by_words(fitted):
    first = fitted[None].explain("the bank opened the game", nearest=1).top[0]
    assert len(first.words) == len(first.nearest) == 1
    assert first.nearest[0][0] in [text for label in LABELS["labels"] for text in label["descriptions"]]


def test_an_encoder_that_no_step_was_safe_for_answers_itself_and_takes_labels(make):
    clf = make(config={"view_steps": 2, "documents_per_label": 1000}).fit(POOL)
    assert not any(step.kept for step in clf.consensus_.steps)
    assert isinstance(clf.model_, DescriptionClassifier)
    clf.model_.add_label({"name": "art", "descriptions": ["Paintings."]})
    assert clf.model_.fit_result_.to_dict()["consensus"]["pool_documents"] == len(POOL)


def test_a_label_can_be_added_to_an_encoder_and_to_no_other_student(fitted, tmp_path):
    art = {"name": "art", "descriptions": ["Paintings."]}
    for student in (None, "words"):
        with pytest.raises(InputError, match="fit again with it"):
            load(fitted[student].save(tmp_path / f"{student}")).add_label(art)
    model = load(fitted["encoder"].save(tmp_path / "encoder"))
    model.add_label(art)
    assert "art" in model.classes_


def test_labels_of_a_joint_model_can_be_renamed_and_removed(make, tmp_path):
    labels = {"labels": [*LABELS["labels"], {"name": "world", "descriptions": ["War and peace."]}]}
    model = make(labels=labels).fit(POOL).model_
    before = model.answers(POOL).scores
    model.rename_label("money", "finance")
    model.remove_label("world")
    again = load(model.save(tmp_path / "model"))
    assert (again.answers(POOL).scores == before[:, :2]).all()
    assert set(again.classes_) == {"sports", "finance"}
    assert again.explain(POOL[0]).top[0].words


def test_a_view_can_be_untrained_saved_or_fitted(tiny_encoder_folder, tmp_path):
    tiny = str(tiny_encoder_folder)
    model = ZeroShotClassifier(LABELS, encoder=tiny).fit()
    model.save(tmp_path / "saved")
    answers = [
        ConsensusClassifier(LABELS, [view, "words"]).fit(POOL).answers(POOL).scores
        for view in (f"zero-shot:{tiny}", str(tmp_path / "saved"), model)
    ]
    assert (answers[0] == answers[1]).all()
    assert (answers[0] == answers[2]).all()


def test_a_joint_model_of_two_encoders_keeps_both(make, tiny_encoder_folder, tmp_path):
    tiny = str(tiny_encoder_folder)
    clf = make(views=[tiny, f"zero-shot:{tiny}", "words"]).fit(POOL)
    again = load(clf.save(tmp_path / "model"))
    assert [type(member).__name__ for member in again.head_.members] == ["DescriptionClassifier", "ZeroShotClassifier"]
    assert (again.answers(POOL).scores == clf.answers(POOL).scores).all()


class Scorer:
    """A slow view that counts what it is asked, and stops after some blocks."""

    def __init__(self, blocks: int) -> None:
        self.blocks, self.asked = blocks, list[str]()

    def scores(self, texts, space):
        if not self.blocks:
            raise KeyboardInterrupt
        self.blocks -= 1
        self.asked += texts
        return np.array([[len(text), text.count("a")] for text in texts], dtype=np.float32)


def test_a_slow_view_that_is_stopped_is_never_asked_twice(tmp_path):
    space = LabelSpace.from_names(["sports", "money"])
    first, second = Scorer(2), Scorer(99)
    with pytest.raises(KeyboardInterrupt):
        ScoreStore(tmp_path, "llm:x", POOL, space).ask(lambda: first)
    scores = ScoreStore(tmp_path, "llm:x", POOL, space).ask(lambda: second)
    assert sorted(first.asked + second.asked) == sorted(POOL)
    assert (scores == Scorer(99).scores(POOL, space)).all()
    whole = ScoreStore(tmp_path, "llm:x", POOL, space).ask(lambda: pytest.fail("opened for nothing"))
    assert (whole == scores).all()


def test_scores_of_another_view_or_a_damaged_file_are_not_used(tmp_path):
    space = LabelSpace.from_names(["sports", "money"])
    ScoreStore(tmp_path, "llm:x", POOL[:32], space).ask(lambda: Scorer(9))
    other = Scorer(9)
    ScoreStore(tmp_path, "llm:y", POOL[:32], space).ask(lambda: other)
    assert len(other.asked) == 32
    for file in tmp_path.rglob("*.safetensors"):
        file.write_bytes(b"cut")
    again = Scorer(9)
    ScoreStore(tmp_path, "llm:x", POOL[:32], space).ask(lambda: again)
    assert len(again.asked) == 32


def test_a_slow_view_is_asked_where_the_fast_ones_are_unsure(make):
    slow = f"llm:{tiny_causal('qwen3')}"
    config, same = {**LEVEL, "slow_documents": 10}, {"encoder_options": {"dtype": "float32"}}
    clf = make(views=[slow, *make().views], student="words", config=config, **same).fit(POOL)
    assert clf.fit_result_.views[1] == slow
    asked = clf.consensus_.alone[1] >= 0
    plain = {**LEVEL, "neighbours": 0, "words": False, "alpha": 1}
    sure = make(config=plain, **same).fit(POOL).consensus_.probabilities.max(axis=1)
    assert asked.sum() == 10
    assert sure[asked].max() <= sure[~asked].min()


@pytest.mark.slow
def test_the_pool_can_be_a_file(make, fitted, tmp_path):
    (tmp_path / "pool.csv").write_text("text\n" + "\n".join(POOL) + "\n")
    clf = make().fit(str(tmp_path / "pool.csv"))
    assert clf.fit_result_.pool == f"pool.csv ({len(POOL)} rows)"
    assert (clf.answers(POOL).scores == fitted[None].answers(POOL).scores).all()
    pool = sample_pool(str(tmp_path / "pool.csv"), size=len(POOL), seed=0)
    fewer = make(config={"documents": 10}).fit(pool).fit_result_
    assert (fewer.pool, fewer.pool_documents) == (pool.source, 10), "a smaller draw tells of the same source"


def test_too_few_documents_to_correct_the_views_are_told(make):
    message = "^10 documents are too few to correct the views' answers for 2 labels, .* give 50 or more"
    with pytest.warns(LabelSpaceWarning, match=message) as told:
        clf = make(config={"view_steps": 2}).fit(POOL[:10])
    assert [one.filename for one in told] == [__file__]
    assert not any(step.kept for step in clf.consensus_.steps)


def test_it_is_a_scikit_learn_estimator(make):
    clf = make(student="words", seed=3)
    assert clone(clf).get_params()["seed"] == 3
    answers = clf.fit(POOL).predict(POOL).tolist()
    assert clf.score(POOL, answers) == 1
    wrong = ["money" if answer == "sports" else "sports" for answer in answers[:24]]
    assert clf.score(POOL, [*wrong, *answers[24:]]) == pytest.approx(1 - 24 / len(POOL))


@pytest.mark.slow
def test_a_student_stopped_early_resumes_with_the_same_bits(make, fitted, tmp_path):
    class Stop:
        def __call__(self, step, values):
            if step == 2 and "uniformity_before" not in values:
                self.seen = getattr(self, "seen", 0) + 1
                if self.seen == 2:  # the student's second update, after the view's
                    raise RuntimeError("killed")

    small = StudentConfig(batch_size=16)
    whole = make(student="encoder", teaching=small).fit(POOL)
    with pytest.raises(RuntimeError, match="killed"):
        make(student="encoder", teaching=small, checkpoint=tmp_path / "run", callbacks=[Stop()]).fit(POOL)
    again = make(student="encoder", teaching=small, checkpoint=tmp_path / "run").fit(POOL)
    assert (again.answers(POOL).scores == whole.answers(POOL).scores).all()


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"views": "words"}, "views must be a list"),
        ({"views": ["words"]}, "besides 'words'"),
        ({"views": [""]}, "a view is a name"),
        ({"views": ["tests/data/tiny-bert", "nli:x"]}, "give a student"),
        ({"views": ["nli:x"], "student": "words"}, "beside slow views"),
        ({"student": "nli:x"}, "student must be"),
        ({"student": "zero-shot:x"}, "student must be"),
        ({"student": 3}, "student must be"),
        ({"prior": {"sports": 1}}, "prior must give each label a share"),
        ({"prior": {"sports": 1, "money": 0}}, "above 0"),
        ({"config": {"view_steps": 0}}, "view_steps must be"),
        ({"teaching": 3}, "teaching must be"),
        ({"encoder_options": "cpu"}, "encoder_options must be a mapping"),
        ({"encoder_options": {"devise": "cpu"}}, "Did you mean 'device'"),
        ({"encoder_options": {"dtype": "float8"}}, "dtype must be one of"),
        ({"config": {"alfa": 1}}, "alpha"),
        ({"config": {"alpha": 2}}, "alpha must be"),
    ],
)
def test_a_wrong_option_is_refused_before_any_work(make, options, message):
    with pytest.raises(ConfigError, match=message):
        make(**options).fit(POOL)


def test_a_model_of_other_labels_is_no_view(make, tiny_encoder_folder):
    other = ZeroShotClassifier(["cats", "dogs"], encoder=str(tiny_encoder_folder)).fit()
    with pytest.raises(ConfigError, match="not those of the label file"):
        make(views=[other]).fit(POOL)


def test_a_student_that_is_not_there_is_told_before_any_view_is_trained(make, monkeypatch):
    monkeypatch.setattr("labelspace.consensus.members.fit_view", lambda *_, **__: pytest.fail("a view was trained"))
    with pytest.raises(EncoderError, match="nobody/nothing"):
        make(student="nobody/nothing").fit(POOL)


@pytest.mark.parametrize("view", ["nobody/nothing", "zero-shot:nobody/nothing", "llm:nobody/nothing"])
def test_a_view_that_is_not_there_is_told_before_any_other_is_trained(make, view, monkeypatch):
    monkeypatch.setattr("labelspace.consensus.members.fit_view", lambda *_, **__: pytest.fail("a view was trained"))
    with pytest.raises(EncoderError, match="nobody/nothing"):
        make(views=[*make().views, view], student="words").fit(POOL)


@pytest.mark.parametrize("place", ["views", "student"])
def test_code_of_a_view_or_student_by_name_is_refused_and_the_message_says_how_it_may_run(make, own_code_folder, place):
    named = str(own_code_folder)
    given = {"views": [*make().views, named]} if place == "views" else {"student": named}
    with pytest.raises(RemoteCodeError, match="pass an Encoder with trust_remote_code=True, or name it with --encoder"):
        make(**given).fit(POOL)


def test_views_and_student_by_name_are_opened_with_the_options_given(make):
    tiny = make().views[0]
    clf = make(views=[tiny, f"zero-shot:{tiny}", "words"], encoder_options={"dtype": "float32", "max_tokens": 7}).fit(
        POOL
    )
    taught = make(student="encoder", encoder_options={"dtype": "float32", "max_tokens": 7}).fit(POOL)
    for encoder in (*(member.encoder_ for member in clf.model_.head_.members), taught.model_.encoder_):
        assert (encoder.dtype, encoder.max_tokens) == ("float32", 7)


def test_a_pool_too_large_for_exact_neighbours_is_refused_before_any_work_without_its_package(make, monkeypatch):
    monkeypatch.setitem(sys.modules, "pynndescent", None)
    monkeypatch.setattr("labelspace.consensus.members.fit_view", lambda *_, **__: pytest.fail("a view was trained"))
    pool = Pool(tuple(f"document {number}" for number in range(50_000)), seen=50_000, source="many")
    with pytest.raises(MissingDependencyError, match=r"50,000 documents or more.*'umap-learn'.*labelspace\[plot\]"):
        make(config={**LEVEL, "documents": 50_000}).fit(pool)


def test_progress_names_each_view_and_the_student_and_counts_documents(make, capsys):
    tiny = make().views[0]
    make(views=[tiny, f"zero-shot:{tiny}", "words"], student="words", verbose=True).fit(POOL)
    lines = capsys.readouterr().err.splitlines()
    told = [line for line in lines if not line.startswith("training")]
    assert told == [
        f"view 1 of 2: {tiny}",
        "reading the pool: 96 of 96",
        f"view 2 of 2: zero-shot:{tiny}",
        "reading the pool: 96 of 96",
        "the views together, and words that learn from them",
        "student: words",
    ]


def trained(callbacks: list[int]):
    """Count the updates of a fit."""
    return lambda step, values: callbacks.append(step) if "loss" in values else None


@pytest.mark.slow
def test_a_view_that_was_trained_before_a_stop_is_opened_and_not_trained_again(make, fitted, tmp_path):
    """The student's first update comes after the view's two."""
    with pytest.raises(RuntimeError, match="killed"):
        make(student="encoder", checkpoint=tmp_path / "run", callbacks=[Kill(3)]).fit(POOL)
    steps: list[int] = []
    again = make(student="encoder", checkpoint=tmp_path / "run", callbacks=[trained(steps)]).fit(POOL)
    epochs = StudentConfig().epochs
    assert steps == list(range(1, epochs * -(-len(POOL) // 32) + 1))  # the student's alone
    assert (again.answers(POOL).scores == fitted["encoder"].answers(POOL).scores).all()
    assert not (tmp_path / "run").exists()


@pytest.mark.parametrize(
    "other", [{"seed": 1}, {"config": {**LEVEL, "view_steps": 3}}, {"labels": ["a", "b"]}, "dtype"]
)
@pytest.mark.slow
def test_a_view_of_another_fit_is_trained_again(make, tmp_path, other):
    if other == "dtype":  # the one that this processor does not take by itself
        native = has_native_bfloat16(choose_device("auto"))
        other = {"encoder_options": {"dtype": "float32" if native else "bfloat16"}}
    with pytest.raises(RuntimeError, match="killed"):
        make(student="encoder", checkpoint=tmp_path / "run", callbacks=[Kill(3)]).fit(POOL)
    steps: list[int] = []
    again = make(checkpoint=tmp_path / "run", callbacks=[trained(steps)], **other).fit(POOL)
    assert len(steps) == again.consensus_config().view_steps
    assert (again.answers(POOL).scores == make(**other).fit(POOL).answers(POOL).scores).all()


@pytest.mark.slow
def test_a_kept_view_that_is_damaged_is_trained_again(make, fitted, tmp_path):
    with pytest.raises(RuntimeError, match="killed"):
        make(student="encoder", checkpoint=tmp_path / "run", callbacks=[Kill(3)]).fit(POOL)
    kept = next((tmp_path / "run").glob("view-0/*/model.safetensors"))
    kept.write_bytes(kept.read_bytes()[:100])
    again = make(student="encoder", checkpoint=tmp_path / "run").fit(POOL)
    assert (again.answers(POOL).scores == fitted["encoder"].answers(POOL).scores).all()


def test_a_fit_stopped_between_two_views_is_known_as_unfinished(make, tmp_path):
    tiny = make().views[0]
    with pytest.raises(RuntimeError, match="killed"):
        make(views=[tiny, tiny, "words"], checkpoint=tmp_path / "run", callbacks=[Kill(3)]).fit(POOL)
    assert kind_of(tmp_path / "run") == UNFINISHED


def test_a_view_that_is_not_fitted_or_reads_pairs_is_refused(make, tiny_encoder_folder):
    tiny = str(tiny_encoder_folder)
    with pytest.raises(ConfigError, match="is not fitted"):
        make(views=[ZeroShotClassifier(LABELS, encoder=tiny)]).fit(POOL)
    pairs = [("the team", "won"), ("the bank", "closed")] * 4
    model = LaConClassifier(["sports", "money"], encoder=tiny, epochs=1).fit(pairs, ["sports", "money"] * 4)
    with pytest.raises(ConfigError, match="reads pairs"):
        make(views=[model]).fit(POOL)


class Kill:
    """A callback that stops the fit at this update, over all trainings."""

    def __init__(self, at: int) -> None:
        self.at = at

    def __call__(self, step, values):
        self.at -= "loss" in values
        if not self.at:
            raise RuntimeError("killed")


class Interrupt:
    """A callback that presses Ctrl-C at this call."""

    def __init__(self, at: int) -> None:
        self.at = at

    def __call__(self, step, values):
        self.at -= 1
        if not self.at:
            raise KeyboardInterrupt


@pytest.mark.parametrize("at", [1, 6])
def test_ctrl_c_in_a_view_or_in_the_student_ends_the_fit(make, at):
    """A half-trained view would decide with the others."""
    clf = make(student="encoder", callbacks=[Interrupt(at)], teaching=StudentConfig(batch_size=4))
    with pytest.raises(KeyboardInterrupt):  # and no warning that something is kept
        clf.fit(POOL)
    assert not hasattr(clf, "model_")


@pytest.mark.slow
def test_a_finished_fit_leaves_no_checkpoint_for_the_next_pool(make, tmp_path):
    make(student="encoder", checkpoint=tmp_path / "run").fit(POOL)
    assert not (tmp_path / "run").exists()
    own = tmp_path / "run" / "view-1" / "own.txt"
    own.parent.mkdir(parents=True)
    own.write_text("mine")
    make(student="encoder", checkpoint=tmp_path / "run").fit(POOL[:80])
    assert [path for path in (tmp_path / "run").rglob("*") if path.is_file()] == [own]


def test_a_stopped_fit_is_known_as_unfinished(make, tmp_path):
    with pytest.raises(KeyboardInterrupt):
        make(
            student="encoder",
            checkpoint=tmp_path / "run",
            callbacks=[Interrupt(9)],
            teaching=StudentConfig(batch_size=4),
        ).fit(POOL)
    assert kind_of(tmp_path / "run") == UNFINISHED


def test_a_label_may_have_the_name_of_a_fact(tiny_encoder_folder, tmp_path):
    names = ["seconds", "looks"]
    views = [f"zero-shot:{tiny_encoder_folder}", "words"]
    clf = ConsensusClassifier(names, views, config={"guards": False}).fit(POOL)
    found = load(clf.save(tmp_path / "model")).fit_result_.to_dict()["consensus"]["shares"]
    assert found == clf.fit_result_.to_dict()["consensus"]["shares"]
    assert set(found) == set(names)


def test_a_student_that_is_an_encoder_says_who_taught_it(fitted, tmp_path):
    folder = fitted["encoder"].save(tmp_path / "model")
    assert "taught by a consensus" in (folder / "README.md").read_text()
    assert load(folder).fit_result_.to_dict()["consensus"]["views"][-1] == "words"


def test_a_label_file_that_names_an_unknown_label_is_refused_on_loading(fitted, tmp_path):
    for student in (None, "words"):
        folder = fitted[student].save(tmp_path / f"{student}")
        file = folder / "label_space.yaml"
        file.write_text(file.read_text().replace("name: money", "name: finance"))
        with pytest.raises(ModelFolderError, match="names 'finance'"):
            load(folder)


def test_a_model_put_in_place_of_a_slow_view_is_asked_again(tmp_path):
    space, model = LabelSpace.from_names(["sports", "money"]), tmp_path / "model"
    model.mkdir()
    asked = []
    for content in ("one", "another"):
        (model / "model.safetensors").write_text(content)
        scorer = Scorer(9)
        ScoreStore(tmp_path / "scores", f"nli:{model}", POOL[:32], space).ask(lambda own=scorer: own)
        asked.append(len(scorer.asked))
    assert asked == [32, 32]


def test_a_pool_of_one_document_is_refused(make):
    with pytest.raises(InputError, match="two different documents or more"):
        make().fit(["one"])


def test_a_joint_model_is_not_fitted_by_itself(fitted):
    with pytest.raises(ConfigError, match="ConsensusClassifier"):
        fitted[None].model_.fit(POOL)


def test_an_untrained_view_of_which_no_step_was_kept_is_saved_and_comes_back(make, tiny_encoder_folder, tmp_path):
    clf = make(views=[f"zero-shot:{tiny_encoder_folder}", "words"], config={"documents_per_label": 1000}).fit(POOL)
    assert not any(step.kept for step in clf.consensus_.steps)
    loaded = load(clf.save(tmp_path / "model"))
    assert (loaded.answers(POOL).scores == clf.answers(POOL).scores).all()
    assert "as its authors made it" in (tmp_path / "model" / "README.md").read_text()


def test_a_view_that_gives_several_labels_is_refused(make, tiny_encoder_folder):
    several = ZeroShotClassifier(LABELS, str(tiny_encoder_folder), several=True).fit(POOL)
    with pytest.raises(ConfigError, match="gives a text several labels, and a consensus gives it one; leave it out"):
        make(views=[several, "words"]).fit(POOL)


def test_a_kept_view_that_was_opened_otherwise_is_trained_again(tiny_encoder_folder):
    given = {"space": LabelSpace.from_dict(LABELS), "config": ConsensusConfig(), "checkpoint": None, "callbacks": ()}
    ways = ({}, {"max_tokens": 8}, {"label_prompt": "label: "}, {"text_prompt": "text: "})
    members = [Members(options=options, seed=0, verbose=False, **given) for options in ways]
    assert len({each.identity(str(tiny_encoder_folder)) for each in members}) == 4


NEW_TEXTS = {
    "labels": [
        {"name": "money", "verbalizer": "the price", "descriptions": ["A rate that was opened.", "A bank."]},
        {"name": "sports", "verbalizer": "the player", "descriptions": ["A cup that was won."]},
    ]
}


def test_a_saved_view_of_the_same_names_answers_with_the_texts_of_today(make, tiny_encoder_folder, tmp_path):
    tiny = str(tiny_encoder_folder)
    ZeroShotClassifier(LABELS, encoder=tiny).fit().save(tmp_path / "untrained")
    views = [str(tmp_path / "untrained"), "words"]
    alone = make(labels=NEW_TEXTS, views=views, config={"documents_per_label": 1000}).fit(POOL)
    fresh = ZeroShotClassifier(NEW_TEXTS, encoder=tiny).fit()
    assert (alone.answers(POOL).scores == fresh.answers(POOL).scores).all()


@pytest.mark.parametrize("student", [None, "encoder"])
def test_a_saved_view_teaches_with_the_texts_of_today(make, tiny_encoder_folder, tmp_path, student):
    made = DescriptionClassifier(LABELS, encoder=str(tiny_encoder_folder), max_steps=2).fit()
    made.save(tmp_path / "trained")
    clf = make(labels=NEW_TEXTS, views=[str(tmp_path / "trained"), "words"], student=student).fit(POOL)
    assert set(clf.predict(POOL)) <= {"sports", "money"}
    texts = [text for label in NEW_TEXTS["labels"] for text in label["descriptions"]]
    assert all(text in texts for label in clf.explain(POOL[0]).top for text, _ in label.nearest)


def test_a_consensus_stays_as_it_is_when_the_view_is_changed_afterwards(make, tiny_encoder_folder):
    view = ZeroShotClassifier(LABELS, encoder=str(tiny_encoder_folder)).fit()
    clf = make(views=[view, "words"]).fit(POOL)
    before = clf.answers(POOL).scores
    view.rename_label("money", "finance")
    view.set_params(anchor="verbalizer", temperature=0.01)
    assert (clf.answers(POOL).scores == before).all()


def test_a_single_view_is_as_sure_as_it_should_be_whatever_its_own_temperature_was(make, tiny_encoder_folder):
    view = DescriptionClassifier(LABELS, encoder=str(tiny_encoder_folder), max_steps=2).fit()
    # Without a text that answers otherwise nothing is told about the temperature.
    pool = [*POOL, *(text for label in LABELS["labels"] for text in label["descriptions"])]
    found = []
    for temperature in (0.07, 0.5):
        view.set_params(temperature=temperature)
        clf = make(views=[view, "words"], config={"documents_per_label": 1000}).fit(pool)
        told = clf.fit_result_.probabilities
        assert clf.model_.temperature_ == pytest.approx(temperature * told["temperature"])
        assert view.temperature == temperature
        found.append(clf.model_.temperature_)
    assert found[0] == pytest.approx(found[1], rel=1e-3)


def test_a_fitted_view_keeps_its_temperature_beside_others(make, tiny_encoder_folder):
    tiny = str(tiny_encoder_folder)
    view = DescriptionClassifier(LABELS, encoder=tiny, max_steps=2, temperature=0.5).fit()
    clf = make(views=[view, tiny, "words"], config=LEVEL | {"temperature": 0.14}).fit(POOL)
    assert clf.model_.head_.scales == (1, 0.5)


@pytest.mark.slow
def test_a_student_that_is_an_encoder_of_other_settings_is_not_the_view_of_its_name(make, tiny_encoder_folder):
    tiny = str(tiny_encoder_folder)
    for given, steps in ((Encoder(tiny, max_tokens=9), 4), (Encoder(tiny), 2), (tiny, 2)):
        counted: list[int] = []
        short = StudentConfig(epochs=1, batch_size=96)
        clf = make(student=given, teaching=short, callbacks=[trained(counted)]).fit(POOL)
        assert len(counted) == steps + 1, "two updates for each encoder, and one of the student"
        assert clf.model_.encoder_.max_tokens == (9 if steps == 4 else Encoder(tiny).max_tokens)


def test_a_limit_of_a_single_view_stays_while_the_labels_have_their_texts(make, tiny_encoder_folder):
    view = ZeroShotClassifier(LABELS, encoder=str(tiny_encoder_folder)).fit().set_none(POOL)
    alone = {"views": [view, "words"], "config": {"documents_per_label": 1000}}
    assert make(**alone).fit(POOL).none_ == view.none_
    turned = {"name": "other", "labels": LABELS["labels"][::-1]}
    assert make(labels=turned, **alone).fit(POOL).none_ == view.none_
    with pytest.warns(LabelSpaceWarning, match="was set for other labels, names or texts"):
        clf = make(labels=NEW_TEXTS, **alone).fit(POOL)
    assert clf.none_ is None


def test_a_student_that_was_trained_before_is_taught_and_no_view_of_its_name(make, tiny_encoder_folder):
    tiny = str(tiny_encoder_folder)
    view = DescriptionClassifier(LABELS, encoder=tiny, max_steps=2).fit()
    other = DescriptionClassifier(LABELS, encoder=tiny, max_steps=3, learning_rate=1e-2).fit().encoder_
    start = other.copy().encode(POOL)
    short = StudentConfig(epochs=1, batch_size=96, learning_rate=1e-12)
    clf = make(views=[view, "words"], student=other, teaching=short, config=LEVEL | {"view_steps": 1}).fit(POOL)
    assert np.abs(clf.model_.encoder_.encode(POOL) - start).max() < np.abs(view.encoder_.encode(POOL) - start).max()


def test_a_view_that_was_trained_on_descriptions_by_lacon_has_the_texts_of_today(make, tiny_encoder_folder):
    tiny = str(tiny_encoder_folder)
    view = LaConClassifier(LABELS, encoder=tiny, description_steps=2).fit()
    alone = {"views": [view, "words"], "config": {"documents_per_label": 1000}}
    clf = make(labels=NEW_TEXTS, **alone).fit(POOL)
    expected = ZeroShotClassifier(NEW_TEXTS, encoder=view.encoder_, anchor="descriptions").fit().answers(POOL).scores
    assert clf.answers(POOL).scores == pytest.approx(expected, abs=1e-6)


@pytest.mark.usefixtures("short_search")
def test_a_view_whose_logits_have_no_temperature_keeps_its_sureness_and_none_is_told(make, tiny_encoder_folder):
    names = ["sports" if row % 3 else "money" for row in range(len(POOL))]
    short = {"epochs": 1, "description_steps": 2, "config": {"objective": "cross-entropy"}}
    view = LaConClassifier(LABELS, encoder=str(tiny_encoder_folder), **short).fit(POOL, names)
    clf = make(views=[view, "words"], config={"documents_per_label": 1000}).fit(POOL)
    assert clf.model_.temperature_ == view.temperature
    assert clf.fit_result_.probabilities is None
