"""Tasks are read from folders, files and rows; notes tell what changes a result, and bad data is a clear error."""

import json
from dataclasses import replace
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from labelspace import LabelSpace
from labelspace.bench import tasks
from labelspace.bench.cards import BTZSC, FAMILIES, MTEB, card_of
from labelspace.bench.local import read_local
from labelspace.bench.plan import own_task
from labelspace.bench.tasks import find_tasks, load_task
from labelspace.errors import ColumnError, ConfigError, InputError

REAL = Path(__file__).parents[3] / "shared" / "data"
CLASSES = [{"name": "good", "hypothesis": "It is good."}, {"name": "bad", "hypothesis": "It is bad."}]
INTENTS = [{"name": "ask", "hypothesis": "It is a question."}, {"name": "pay", "hypothesis": "It is a payment."}]


def write_rows(file: Path, **columns: list) -> None:
    file.parent.mkdir(parents=True, exist_ok=True)
    pq.write_table(pa.table(columns), file)


def write_btzsc(data: Path, name: str, texts: list, labels: list, classes: list = CLASSES, **more) -> Path:
    folder = data / "btzsc" / name
    write_rows(folder / "test.parquet", text=texts, label=labels)
    (folder / "labels.json").write_text(json.dumps({"classes": classes, "complete": True, **more}))
    return folder


@pytest.fixture
def data(tmp_path: Path) -> Path:
    """Two BTZSC sets and one MTEB set, in the layout of the folders."""
    write_btzsc(tmp_path, "imdb", [f"film {i}" for i in range(20)], [i % 2 for i in range(20)])
    banking = write_btzsc(tmp_path, "banking77", ["a", "b", "c"], [0, 1, 1], INTENTS)
    write_rows(banking / "unverbalized.parquet", text=["x", "y"], class_name=["lost", "lost"])
    write_rows(banking / "paper_rows.parquet", text=["a", "x", "c"], label=[0, 0, 1])
    other = tmp_path / "mteb" / "imdb"
    write_rows(other / "test.parquet", text=["fine", "poor"], label=[0, 1], label_text=["good", "odd"])
    (other / "meta.json").write_text(json.dumps({"label_names": ["good", "odd"]}))
    return tmp_path


def test_there_are_22_and_8_cards_with_one_name_each():
    assert (len(BTZSC), len(MTEB), len({*BTZSC, *MTEB})) == (22, 8, 30)


def test_the_families_are_as_large_as_in_the_paper():
    count = {family: sum(card.family == family for card in BTZSC.values()) for family in FAMILIES}
    assert count == {"sentiment": 6, "topic": 11, "intent": 3, "emotion": 2}


def test_an_unknown_card_gets_a_hint():
    with pytest.raises(ConfigError, match="Did you mean 'banking77'"):
        card_of("banking7")


def test_a_task_holds_its_rows_in_order_and_its_hypotheses(data):
    task = load_task("imdb", data=data)
    assert task.texts[:2] == ["film 0", "film 1"]
    assert task.targets.tolist()[:3] == [0, 1, 0]
    assert task.targets.dtype == np.int64
    assert task.space.verbalizers == ("It is good.", "It is bad.")


@pytest.mark.parametrize("group", ["", "btzsc", "mteb"])
def test_the_parent_folder_and_either_group_folder_are_accepted(data, group):
    found = find_tasks(data / group)
    assert found.present == ["imdb", "banking77", "mteb/imdb"]
    assert len(found.absent) == 27
    assert "test.parquet" in found.why["agnews"]


def test_a_group_under_another_name_is_found(data):
    (data / "btzsc").rename(data / "sets")
    assert find_tasks(data / "sets").present == ["imdb", "banking77"]


def test_without_a_folder_the_hub_has_the_22():
    found = find_tasks(None)
    assert (found.present, found.absent) == (list(BTZSC), list(MTEB))


def test_a_missing_set_is_an_error_that_lists_the_available_ones(data):
    with pytest.raises(InputError, match=r"agnews is not in the folder.*The folder has: imdb, banking77, mteb/imdb"):
        load_task("agnews", data=data)


def test_a_missing_folder_is_an_error(tmp_path):
    with pytest.raises(InputError, match="there is no folder"):
        load_task("imdb", data=tmp_path / "nothing")


def test_rows_without_a_verbalizer_are_left_out_and_counted(data):
    task = load_task("banking77", data=data)
    assert task.texts == ["a", "b", "c"]
    assert "2 rows of classes without a verbalizer left out" in task.notes


def test_rows_without_a_verbalizer_are_class_0_on_request_only(data):
    task = load_task("banking77", data=data, unverbalized="class_0")
    assert task.texts == ["a", "b", "c", "x", "y"]
    assert task.targets.tolist() == [0, 1, 1, 0, 0]
    assert any("2 rows of classes without a verbalizer counted as class 0 (ask)" in note for note in task.notes)


def test_the_papers_rows_separate_class_0_from_no_class(data):
    left = load_task("banking77", data=data, protocol="paper", unverbalized="leave_out")
    kept = load_task("banking77", data=data, protocol="paper")
    assert (left.texts, left.targets.tolist()) == (["a", "c"], [0, 1])
    assert (kept.texts, kept.targets.tolist()) == (["a", "x", "c"], [0, 0, 1])
    assert "the rows of the paper's tables" in left.notes


def test_the_papers_rows_of_rottentomatoes_are_all_of_them(data):
    write_btzsc(data, "rottentomatoes", ["a", "b"], [0, 1])
    assert load_task("rottentomatoes", data=data, protocol="paper").texts == ["a", "b"]


@pytest.mark.parametrize("name", ["imdb", "mteb/imdb"])
def test_unknown_paper_rows_are_an_error_that_lists_the_known_sets(data, name):
    with pytest.raises(InputError, match=r"not known for .*one of: banking77"):
        load_task(name, data=data, protocol="paper")


def test_a_limit_draws_rows_by_seed_and_keeps_their_order(data):
    first, again, other = (load_task("imdb", data=data, limit=8, seed=seed) for seed in (1, 1, 2))
    places = [int(text.split()[1]) for text in first.texts]
    assert places == sorted(set(places))
    assert len(places) == 8
    assert first.texts == again.texts != other.texts
    assert first.targets.tolist() == [place % 2 for place in places]
    assert "8 rows of 20 drawn with seed 1" in first.notes


def test_a_limit_above_the_rows_changes_nothing(data):
    assert load_task("imdb", data=data, limit=20, seed=5).fingerprint == load_task("imdb", data=data).fingerprint


@pytest.mark.parametrize("limit", [0, -1, 2.5, True])
def test_an_invalid_limit_is_refused(data, limit):
    with pytest.raises(ConfigError, match="limit must be a whole number"):
        load_task("imdb", data=data, limit=limit)


@pytest.mark.parametrize("option", ["protocol", "unverbalized"])
def test_an_unknown_option_is_refused_before_anything_is_read(option):
    with pytest.raises(ConfigError, match=f"{option} must be one of"):
        load_task("imdb", **{option: "other"})


def test_the_fingerprint_depends_on_texts_targets_and_verbalizers(tmp_path):
    seen = set()
    for texts, labels, classes in (
        (["a", "b"], [0, 1], CLASSES),
        (["ab", "c"], [0, 1], CLASSES),
        (["a", "bc"], [0, 1], CLASSES),
        (["a", "b"], [1, 0], CLASSES),
        (["a", "b"], [0, 1], INTENTS),
    ):
        write_btzsc(tmp_path, "imdb", texts, labels, classes)
        seen.add(load_task("imdb", data=tmp_path).fingerprint)
    assert len(seen) == 5


def test_mteb_verbalizers_come_from_the_btzsc_twin_if_it_has_them(data):
    task = load_task("mteb/imdb", data=data)
    assert task.space.verbalizers == ("It is good.", "This film review is odd.")
    words = "the hypotheses of BTZSC's imdb for 1, labelspace's own words for 1"
    assert task.notes[0] == f"verbalizers, of 2 labels: {words}"


def test_mteb_verbalizers_without_a_twin_are_our_own(data):
    (data / "btzsc" / "imdb" / "labels.json").unlink()
    assert load_task("mteb/imdb", data=data).space.verbalizers[0] == "This film review is good."


OTHER_ROWS = "other rows than the known copy"


def test_rows_that_differ_from_the_known_copy_are_noted(data, monkeypatch):
    card = BTZSC["imdb"]
    assert OTHER_ROWS in load_task("imdb", data=data).notes
    known = tasks.rows_checksum(read_local(card, data), "btzsc")
    for checksum, noted in ((known, False), (None, False), ("0" * 64, True)):
        monkeypatch.setattr(tasks, "card_of", lambda name, checksum=checksum: replace(card, checksum=checksum))
        assert (OTHER_ROWS in load_task("imdb", data=data).notes) == noted
        assert (OTHER_ROWS in load_task("imdb", data=data, limit=3).notes) == noted, "the draw is of the same rows"


def test_the_papers_rows_are_not_compared_with_the_known_copy(data):
    assert OTHER_ROWS in load_task("banking77", data=data).notes
    assert OTHER_ROWS not in load_task("banking77", data=data, protocol="paper").notes


def test_a_checksum_depends_on_rows_classes_and_hypotheses_but_not_on_order(tmp_path):
    def checksum(texts, labels, classes=CLASSES):
        write_btzsc(tmp_path, "imdb", texts, labels, classes)
        return tasks.rows_checksum(read_local(BTZSC["imdb"], tmp_path), "btzsc")

    whole = checksum(["a", "b"], [0, 1])
    assert whole == checksum(["b", "a"], [1, 0]) == checksum(["a", "b"], [1, 0], CLASSES[::-1])
    others = [
        checksum(["a", "b"], [1, 0]),
        checksum(["a", "b", "b"], [0, 1, 1]),
        checksum(["a", "c"], [0, 1]),
        checksum(["a", "b"], [0, 1], INTENTS),
        checksum(["a", "b"], [0, 1], [*CLASSES, INTENTS[0]]),
    ]
    assert len({whole, *others}) == 6


def test_the_checksum_includes_rows_without_a_class(data):
    before = tasks.rows_checksum(read_local(BTZSC["banking77"], data), "btzsc")
    (data / "btzsc" / "banking77" / "unverbalized.parquet").unlink()
    assert tasks.rows_checksum(read_local(BTZSC["banking77"], data), "btzsc") != before


def test_the_checksum_of_an_mteb_set_ignores_our_verbalizers(data):
    whole = tasks.rows_checksum(read_local(MTEB["mteb/imdb"], data), "mteb")
    (data / "btzsc" / "imdb" / "labels.json").unlink()
    assert tasks.rows_checksum(read_local(MTEB["mteb/imdb"], data), "mteb") == whole


def test_every_checksum_belongs_to_a_known_set():
    known = [card.checksum for card in (*BTZSC.values(), *MTEB.values()) if card.checksum is not None]
    assert len(set(known)) == len(known) == 21
    assert all(len(checksum) == 64 for checksum in known)


def test_a_label_without_a_row_is_noted(data):
    write_btzsc(data, "imdb", ["a"], [0])
    assert any("no row has 1 of 2 labels (bad)" in note for note in load_task("imdb", data=data).notes)


def test_another_number_of_labels_than_expected_is_noted(data):
    assert "2 labels here, 72 were expected" in load_task("banking77", data=data).notes


def test_a_subset_is_noted(data):
    assert any("not the whole test set: 20 rows here of 10,000" in note for note in load_task("imdb", data=data).notes)


@pytest.mark.parametrize("label", [2, -1, 7])
def test_a_label_out_of_range_names_its_row(data, label):
    write_btzsc(data, "imdb", ["a", "b", "c"], [0, 1, label])
    with pytest.raises(InputError, match=rf"row 3: column 'label' must be .* 0 to 1. Got {label} instead"):
        load_task("imdb", data=data)


@pytest.mark.parametrize(("labels", "got"), [([0, None], "None"), ([0.0, 0.5], "0.0"), (["0", "1"], "'0'")])
def test_a_non_numeric_label_is_refused(data, labels, got):
    write_btzsc(data, "imdb", ["a", "b"], labels)
    with pytest.raises(InputError, match=f"Got {got} instead"):
        load_task("imdb", data=data)


def test_a_missing_column_is_named(data):
    write_rows(data / "btzsc" / "imdb" / "test.parquet", text=["a"], klass=[0])
    with pytest.raises(ColumnError, match="label"):
        load_task("imdb", data=data)


def test_an_empty_file_is_refused(data):
    write_rows(data / "btzsc" / "imdb" / "test.parquet", text=pa.array([], pa.string()), label=pa.array([], pa.int64()))
    with pytest.raises(InputError, match="has no rows"):
        load_task("imdb", data=data)


def test_a_missing_text_is_an_error_that_names_its_row(data):
    write_btzsc(data, "imdb", ["a", None], [0, 1])
    with pytest.raises(InputError, match="row 2"):
        load_task("imdb", data=data)


def test_a_truncated_file_is_refused(data):
    file = data / "btzsc" / "imdb" / "test.parquet"
    file.write_bytes(file.read_bytes()[:-20])
    with pytest.raises(InputError, match=r"test\.parquet"):
        load_task("imdb", data=data)


@pytest.mark.parametrize(
    ("content", "message"),
    [
        ("{", "not readable as JSON"),
        ("[]", "must hold a JSON object"),
        ('{"classes": 3}', "no list of mappings"),
        ('{"classes": [{"name": "good"}]}', "class 1 needs 'hypothesis' as text"),
    ],
)
def test_a_broken_list_of_labels_is_refused(data, content, message):
    (data / "btzsc" / "imdb" / "labels.json").write_text(content)
    with pytest.raises(InputError, match=message):
        load_task("imdb", data=data)


def test_mteb_without_label_names_is_refused(data):
    (data / "mteb" / "imdb" / "meta.json").write_text("{}")
    with pytest.raises(InputError, match="label_names"):
        load_task("mteb/imdb", data=data)


# ---- the user's own file


@pytest.fixture
def mood() -> LabelSpace:
    """Two labels."""
    return LabelSpace.from_names(["good", "bad"])


def csv_file(tmp_path: Path, text: str) -> Path:
    file = tmp_path / "mail.csv"
    file.write_text(text)
    return file


def test_a_file_becomes_a_task_in_the_order_of_the_space(tmp_path, mood):
    task = own_task(
        csv_file(tmp_path, "body,mood\nsun,good\nrain,bad\n"), mood, text_column="body", label_column="mood"
    )
    assert (task.name, task.texts, task.targets.tolist()) == ("own/mail (mood)", ["sun", "rain"], [0, 1])
    assert (task.card.benchmark, task.card.source, task.card.rows) == ("own", "mail.csv", 2)


def test_the_fingerprint_of_an_own_file_depends_on_all_that_its_labels_say(tmp_path):
    file = csv_file(tmp_path, "text,label\nsun,good\n")
    good = {"verbalizer": "It is good.", "descriptions": ["Sun."], "not": ["Rain."]}
    labels = {"good": good, "bad": {}}
    spaces = [
        {"labels": labels},
        {"labels": {**labels, "bad": {"verbalizer": "bad", "descriptions": ["Rain."]}}},
        {"labels": {**labels, "good": {**good, "not": ["Fog."]}}},
        {"labels": labels, "outside": ["Snow."]},
    ]
    seen = {own_task(file, LabelSpace.from_dict(space)).fingerprint for space in (*spaces, spaces[0])}
    assert len(seen) == len(spaces)


def test_an_own_file_never_has_the_name_of_a_benchmark_set(tmp_path, mood):
    file = csv_file(tmp_path, "text,label\nsun,good\n")
    assert own_task(file, mood, name="imdb").name == own_task(file, mood, name="own/imdb").name == "own/imdb"


def test_an_unknown_label_names_itself_and_its_row(tmp_path, mood):
    with pytest.raises(InputError, match=r"row 2: column 'label' is 'goood'.*Did you mean 'good'"):
        own_task(csv_file(tmp_path, "text,label\nsun,good\nrain,goood\n"), mood)


def test_rows_without_a_label_are_left_out_and_counted(tmp_path, mood):
    task = own_task(csv_file(tmp_path, "text,label\nsun,good\nrain,\nfog,\n"), mood)
    assert task.texts == ["sun"]
    assert "2 rows without a label left out" in task.notes


def test_rows_without_a_text_are_left_out_and_counted_once_without_a_warning(tmp_path, mood):
    task = own_task(csv_file(tmp_path, 'text,label\nsun,good\n,bad\n"  ",good\n,\nfog,\n'), mood)
    assert (task.texts, task.targets.tolist()) == (["sun"], [0])
    assert task.notes[:2] == ("1 row without a label left out", "2 rows without a text left out")
    assert task.card.rows == 4


def test_a_draw_is_of_rows_with_a_text(tmp_path, mood):
    task = own_task(csv_file(tmp_path, "text,label\n" + "sun,good\n,bad\n" * 10), mood, limit=8)
    assert task.texts == ["sun"] * 8


def test_a_truncated_text_is_noted(mood):
    task = own_task(pa.table({"text": ["x" * 100_001], "label": ["good"]}), mood)
    assert len(task.texts[0]) == 100_000
    assert any("1 document is longer than 100,000 characters" in note for note in task.notes)


def test_a_text_that_is_null_counts_as_one_that_is_empty(mood):
    task = own_task(pa.table({"text": ["sun", None], "label": ["good", "bad"]}), mood)
    assert (task.texts, task.notes[0]) == (["sun"], "1 row without a text left out")


@pytest.mark.parametrize(
    ("content", "message"),
    [
        ("text,label\nsun,\n", "no label in any of the 1 rows"),
        ("text,label\n,good\nsun,\n", "no text in any of the 1 labelled rows"),
        ("text,label\n", "no rows"),
        ("", "mail"),
    ],
    ids=["no label", "no text", "no rows", "no bytes"],
)
def test_a_file_with_nothing_to_score_is_refused(tmp_path, mood, content, message):
    with pytest.raises(InputError, match=message):
        own_task(csv_file(tmp_path, content), mood)


def test_a_missing_column_of_the_file_is_named(tmp_path, mood):
    with pytest.raises(ColumnError, match="mood"):
        own_task(csv_file(tmp_path, "text,label\nsun,good\n"), mood, label_column="mood")


def test_a_table_in_memory_is_accepted_too(mood):
    task = own_task(pa.table({"text": ["sun", "rain"], "label": ["good", "bad"]}), mood, limit=1)
    assert task.name == "own/a table in memory"
    assert len(task.texts) == 1


# ---- the real folders


@pytest.mark.skipif(not (REAL / "btzsc").is_dir(), reason="the folder with the real data sets is not here")
def test_the_real_sets_are_the_known_copies():
    small = [name for name in find_tasks(REAL).present if name not in ("imdb", "mteb/imdb")]
    assert len(small) > 15
    for name in small:
        card = card_of(name)
        assert tasks.rows_checksum(read_local(card, REAL), card.benchmark) == card.checksum, name


@pytest.mark.slow
@pytest.mark.skipif(not (REAL / "btzsc").is_dir(), reason="the folder with the real data sets is not here")
def test_the_real_sets_have_as_many_rows_as_their_readme_says():
    assert len(find_tasks(REAL).present) == 21
    rows = {name: len(load_task(name, data=REAL).texts) for name in ("agnews", "banking77", "massive")}
    assert rows == {"agnews": 7600, "banking77": 2880, "massive": 2805}
    whole = load_task("banking77", data=REAL, unverbalized="class_0")
    assert len(whole.texts) == 3080
    for name, counted in (("banking77", 71), ("massive", 50)):
        task = load_task(name, data=REAL, protocol="paper", unverbalized="class_0")
        assert len(task.texts) == 1000
        assert any(note.startswith(f"{counted} rows of classes without a verbalizer counted") for note in task.notes)
