"""LaCon's experiments: samples are correct, every method runs, the runner resumes, and the tables are made."""

import dataclasses
import json
from collections import Counter
from itertools import pairwise
from pathlib import Path
from typing import Any

import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from pictures import nothing_is_cut

ROOT = Path(__file__).resolve().parents[2]
PAPER = ROOT.parent / "shared" / "papers" / "lacon.txt"
TINY = ROOT / "tests" / "data" / "tiny-bert"
QUICK = ["--rows", "16", "--test-rows", "12", "--epochs", "1", "--few-epochs", "1"]
QUICK += ["--curve-rows", "12", "--description-steps", "2"]


@pytest.fixture
def lacon(study_of) -> Any:
    return study_of("lacon", "run")


def texts(name: str, count: int) -> list[str]:
    """Make sentences that reveal their label."""
    return [f"{name} in the news of day {number}" for number in range(count)]


def write_set(folder: Path, labels: dict[str, int], splits: dict[str, int], *, pairs: bool = False) -> None:
    """A data set in the layout of the shared data: `splits` says how many times the rows of `labels` there are."""
    folder.mkdir(parents=True)
    (folder / "meta.json").write_text(json.dumps({"label_names": list(labels)}))
    for split, times in splits.items():
        rows = [
            (f"{split} {text}", column)
            for column, (name, count) in enumerate(labels.items())
            for text in texts(name, count * times)
        ]
        columns: dict[str, Any] = {"text": [text for text, _ in rows], "label": [column for _, column in rows]}
        if pairs:
            columns["text_pair"] = [f"and {text}" for text in columns["text"]]
        pq.write_table(pa.table(columns), folder / f"{split}.parquet")


@pytest.fixture(scope="module")
def data(tmp_path_factory) -> Path:
    """Made-up data for the small runs."""
    folder = tmp_path_factory.mktemp("data")
    both = {"train": 2, "validation": 1}
    write_set(folder / "glue" / "cola", {"unacceptable": 34, "acceptable": 60}, both)
    write_set(folder / "glue" / "rte", {"entailment": 20, "not_entailment": 20}, both, pairs=True)
    write_set(folder / "glue" / "dbpedia", dict.fromkeys(["Company", "Artist", "Film", "Plant"], 12), both)
    write_set(folder / "clue" / "bustm", {"similar": 8, "not_similar": 9}, {**both, "dev": 1}, pairs=True)
    write_set(folder / "btzsc" / "rottentomatoes", {"negative": 70, "positive": 70}, {"train": 1, "test": 1})
    classes = [{"name": name, "hypothesis": f"It is {name}."} for name in ("negative", "positive")]
    (folder / "btzsc" / "rottentomatoes" / "labels.json").write_text(json.dumps({"classes": classes}))
    return folder


def settings(lacon: Any, data: Path, out: Path, **options: Any) -> Any:
    return lacon.protocol.Settings(data=data, out=out, encoder=str(TINY), **options)


def test_a_smaller_draw_is_part_of_a_larger_one(lacon, data):
    rows = lacon.sets.train_rows("cola", data)
    names = rows.names
    few, more = (lacon.sets.drawn(rows, dict.fromkeys(names, count), seed=3) for count in (5, 9))
    assert set(few.texts) < set(more.texts)
    assert Counter(few.truth) == dict.fromkeys(names, 5)
    assert few == lacon.sets.drawn(rows, dict.fromkeys(names, 5), seed=3)
    assert few != lacon.sets.drawn(rows, dict.fromkeys(names, 5), seed=4)


def test_the_samples_of_the_curve_are_nested_too(lacon, data, tmp_path):
    options = settings(lacon, data, tmp_path)
    task = lacon.curve.task_of(options, "rottentomatoes")
    draws = [lacon.curve.first(options, task, count, seed=1) for count in lacon.curve.COUNTS]
    assert [len(truth) for _, truth in draws] == [2 * count for count in lacon.curve.COUNTS]
    for (few, _), (more, _) in pairwise(draws):
        assert set(few) < set(more)


def test_samples_follow_section_3_1(lacon, data):
    rows = lacon.sets.train_rows("cola", data)
    assert lacon.sets.sample("cola", rows, None, 0) == rows  # whole in the paper
    share = Counter(lacon.sets.sample("cola", rows, 100, 0).truth)["acceptable"]
    assert 50 < share < 80  # of 188 rows, 120 are acceptable
    dbpedia = lacon.sets.train_rows("dbpedia", data)
    assert Counter(lacon.sets.sample("dbpedia", dbpedia, 20, 0).truth) == dict.fromkeys(dbpedia.names, 5)
    assert len(lacon.sets.sample("dbpedia", dbpedia, None, 0)) == 96  # at most 1,000 a class


@pytest.mark.slow
def test_few_shot_rows_come_from_both_splits_and_half_of_them_are_held_out(lacon, data, tmp_path):
    assert len(lacon.sets.train_rows("bustm", data, few=True)) == 51
    options = settings(lacon, data, tmp_path, small=True, protocol=lacon.protocol.Protocol(few_epochs=1, test_rows=10))
    found = next(iter(lacon.experiments.few_pieces(options))).work()
    assert (found["train_rows"], found["held_out"], found["test_rows"]) == (20, 20, 10)


def test_the_minority_has_32_rows_and_is_the_rarer_class(lacon, data, tmp_path):
    options = settings(lacon, data, tmp_path)
    rows, _ = lacon.experiments._imbalanced(options, "cola", 3, 0)
    assert Counter(rows.truth) == {"unacceptable": 32, "acceptable": 96}


def test_labels_of_fewer_classes_are_labels_of_more(lacon, data, tmp_path):
    options = settings(lacon, data, tmp_path)
    chosen = []
    for count in (2, 3, 4):
        rows, test = lacon.experiments._some_classes(options, count, seed=5)
        assert set(rows.truth) == set(test.truth)
        chosen.append(set(rows.truth))
    assert [len(names) for names in chosen] == [2, 3, 4]
    assert chosen[0] < chosen[1] < chosen[2]


def test_the_full_protocol_is_the_papers(lacon, data, tmp_path):
    full = lacon.protocol.PAPER
    options = settings(lacon, data, tmp_path, full=True, protocol=full)
    assert (full.epochs, full.few_epochs, full.validation, full.rows) == (10, 20, 0.05, None)
    assert options.seeds("main") == tuple(range(10))
    main = list(lacon.experiments.main_pieces(options))
    assert len(main) == 10 * 7 * 10
    counts = {(piece.facts["set"], piece.facts["per_class"]) for piece in lacon.experiments.few_pieces(options)}
    assert {count for name, count in counts if name == "qqp"} == {10, 20, 50, 100}
    assert {count for name, count in counts if name == "eprstmt"} == {10, 20, 50}  # it has no 200 rows of a class
    degrees = {piece.facts["degree"] for piece in lacon.experiments.imbalance_pieces(options)}
    assert degrees == {1, 3, 5, 10, 20}
    assert {piece.facts["classes"] for piece in lacon.experiments.class_pieces(options)} == set(range(2, 15))


def test_no_two_pieces_share_a_row(lacon, data, tmp_path):
    for full in (False, True):
        options = settings(lacon, data, tmp_path / "lacon.jsonl", full=full)
        names = [(piece.part, piece.name) for make in lacon.plan.STUDY.parts.values() for piece in make(options)]
        assert len(names) == len(set(names))


def test_every_metric_of_table_1_is_stored(lacon):
    found = lacon.methods.scores(["a", "a", "b", "b"], ["a", "a", "a", "b"])
    assert found["accuracy"] == 0.75
    assert found["f1_by_class"] == pytest.approx({"a": 0.8, "b": 2 / 3})
    assert found["macro_f1_predicted"] == pytest.approx((0.8 + 2 / 3) / 2)
    assert found["matthews"] == pytest.approx(3**-0.5)


def test_without_setfit_its_curve_is_skipped_with_a_note(lacon, data, tmp_path, monkeypatch, capsys):
    monkeypatch.setattr(lacon.setfit_curve, "find_spec", lambda name: None)
    assert list(lacon.setfit_curve.setfit_pieces(settings(lacon, data, tmp_path))) == []
    assert "setfit is not installed" in capsys.readouterr().err


def run(lacon: Any, data: Path, out: Path, *words: str) -> None:
    lacon.run.run(["lacon", "--small", "--data", str(data), "--out", str(out), "--encoder", str(TINY), *QUICK, *words])


@pytest.mark.slow
def test_the_small_run_makes_each_result_once_and_its_tables(lacon, store, data, tmp_path, capsys):
    out = tmp_path / "lacon.jsonl"
    parts = ["--parts", *(part for part in lacon.plan.STUDY.parts if part not in ("setfit", "speed"))]
    run(lacon, data, out, *parts, "--minutes", "0")
    assert "27 of 27 pieces are left" in capsys.readouterr().out
    run(lacon, data, out, *parts)
    assert "all pieces are done" in capsys.readouterr().out
    run(lacon, data, out, "--parts", "tuned")  # what was chosen is known now
    rows = store.Table(out).rows()
    assert len(rows) == 29
    for row in rows:
        assert row["provenance"]["commit"], row["name"]
        assert row["provenance"]["data"].startswith("shared/data/"), row["name"]
        own = ("description_steps", 2) if row["part"] == "curve" else ("epochs", 1)  # each has what it uses
        assert row["protocol"][own[0]] == own[1], row["name"]
        if row["part"] == "tuned":
            assert row["training"]["patience"] == row["training"]["epochs"], "no run may stop early"
    (prior,) = [row["prior"] for row in rows if "lacon_n02" in row["name"]]
    assert (prior["weight"], prior["reason"]) == (pytest.approx(0.8), "rows per label")
    assert prior["agreement"]["contradicted"] is None, "two rows a class cannot tell"

    lines = out.read_text().splitlines(keepends=True)
    out.write_text("".join(lines[1:]))
    run(lacon, data, out, *parts)
    assert out.read_text().splitlines(keepends=True)[1:] == lines[1:]
    assert store.Table(out).rows()[0]["name"] == rows[0]["name"]

    store.TABLES["lacon"], store.ENCODER = out, TINY.name
    tables = {name: make() for name, make in lacon.report.BLOCKS.items()}
    missing = {
        "lacon-few",
        "lacon-more",
        "lacon-minority",
        "lacon-speed",
        "lacon-losses",
        "lacon-loss",
        "lacon-tests",
        "lacon-setfit",
        "lacon-setfit-default",
    }  # not in a small run, or not with all methods
    assert {name for name, table in tables.items() if table == "(not run yet)"} == missing
    assert "LaCon-fusion" in tables["lacon-main"]
    drawn = {name: make(tmp_path / name) for name, make in lacon.pictures.FIGURES.items()}
    assert {name for name, paths in drawn.items() if not paths} == {"lacon-few"}  # one count makes no line
    assert all(nothing_is_cut(path) for paths in drawn.values() for path in paths if path.suffix == ".png")

    with pytest.raises(SystemExit, match=r"other settings .*'epochs': 1.* not .*'epochs': 2"):
        run(lacon, data, out, *parts, "--epochs", "2")


@pytest.mark.slow
def test_a_step_and_the_loss_are_measured_and_the_loss_in_its_own_process(lacon, store, tmp_path, capfd):
    out = tmp_path / "lacon.jsonl"
    run(lacon, tmp_path / "no data", out, "--parts", "speed")
    assert "all pieces are done" in capfd.readouterr().out
    loss, losses, step = store.Table(out).rows()
    assert set(step["ratio"]) == {"lacon-vanilla", "lacon-fusion", "lacon-few"}
    assert all(ratio > 0 for ratio in step["ratio"].values())
    assert losses["seconds_of_losses"]["32"].keys() == lacon.aims.LOSSES.keys()
    assert 0 < loss["peak_memory_mib"] < 2048
    assert loss["provenance"]["command"].startswith("run.py lacon --small"), "another process"
    assert loss["provenance"]["command"].endswith("--parts speed"), "one command for all that a call runs"


def test_the_papers_numbers_are_transcribed_correctly(lacon):
    """Compares each row of tables 2 to 7 with the paper's text, if it is there."""
    if not PAPER.is_file():
        pytest.skip(f"no paper at {PAPER}")
    text = PAPER.read_text(encoding="utf-8")

    def cells(values: Any) -> str:
        return "\t".join(f"{mean:.1f}±{spread:.1f}" for mean, spread in values)

    for method, row in lacon.paper.TABLE_2.items():
        assert f"{lacon.methods.METHODS[method].title}\t{cells(row.values())}\n" in text
    for method, row in lacon.paper.TABLE_7.items():
        assert f"{lacon.methods.METHODS[method].title}\t{cells(row.values())}\t" in text
    for row in lacon.paper.ABLATIONS.values():
        assert f"\t{cells(row[name] for name in lacon.paper.ABLATED)}\n" in text
    first, second = (["yelp_polarity", "tnews", "eprstmt", "bustm"], ["qnli", "rte", "mrpc", "qqp"])
    for method, name in (("ce", "CE"), ("lacon-vanilla", "LaCon")):
        for half in (first, second):
            values = "\t".join(f"{lacon.paper.TABLE_4[method][one]:.1f}" for one in half)
            assert f"{name}\t{values}\n" in text
        values = "\t".join(f"{value:.1f}" for one in ("qnli", "cola") for value in lacon.paper.TABLE_5[method][one])
        assert f"{name}\t{values}\n" in text


def test_p_is_wilcoxons_signed_rank_test_over_paired_repeats(lacon):
    assert lacon.runs.paired_p([0.3 + seed / 100 for seed in range(10)]) == pytest.approx(2 / 2**10)
    assert lacon.runs.paired_p([0.0] * 10) == 1.0
    assert lacon.runs.paired_p([0.3]) is None


def test_p_values_are_corrected_for_their_number(lacon):
    assert lacon.runs.holm([0.01, 0.04, 0.03]) == pytest.approx([0.03, 0.06, 0.06])  # times 3, 1 and 2, never falling
    assert lacon.runs.holm([0.9, 0.6]) == [1.0, 1.0]
    assert lacon.runs.holm([]) == []


def test_the_largest_dip_is_found_and_judged(lacon, monkeypatch):
    means = {
        ("emotion", "lacon"): {0: 0.40, 1: 0.35, 2: 0.50},
        ("emotion", "setfit"): {0: 0.30, 1: 0.34, 2: 0.55},
        ("agnews", "lacon"): {0: 0.80, 1: 0.795, 2: 0.85},
    }
    runs = [
        {**curve_run("", method, count, score), "task": task, "score": score, "provenance.commit": "a" * 40}
        for (task, method), own in means.items()
        for count, score in own.items()
    ]
    monkeypatch.setattr(lacon.aims, "curve_runs", lambda: pd.DataFrame(runs).assign(early=False))
    assert lacon.aims.largest_dip(pd.Series(means["emotion", "lacon"])) == (pytest.approx(0.05), 0, 1)
    lines = lacon.aims.aim().splitlines()
    assert lines[2] == "| Emotion | 1 | 5.0 | no, 0 to 1 | 1 (-5.0), 2 (-5.0) | none |"
    assert lines[3] == "| AG News | 1 | 0.5 | yes | 1 (-0.5) | 0, 1, 2 |"


def curve_run(part: str, method: str, count: int, score: float, seed: int = 0, **more: Any) -> dict[str, Any]:
    facts = {"part": part, "encoder": "all-MiniLM-L6-v2", "task": "emotion", "method": method}
    return {**facts, "per_class": count, "seed": seed, "macro_f1_predicted": score, **more}


def test_truncated_setfit_runs_are_marked(lacon, plant):
    rows = [curve_run("curve", "lacon", count, 0.5) for count in (0, 1)]
    rows.append(curve_run("setfit", "setfit", 0, 0.6, steps=80, whole_schedule=80))
    rows.append(curve_run("setfit", "setfit", 1, 0.6, steps=100, whole_schedule=120))
    plant("lacon", rows)
    assert "| 60.0 | 60.0* |" in lacon.aims.curve()
    assert lacon.aims.aim().splitlines()[2].endswith("| 0 (-10.0), 1 (-10.0) | 1 |")
    # A whole schedule takes the place of all that were cut at its count, also of other seeds.
    whole = curve_run("setfit-whole", "setfit-whole", 1, 0.7, seed=3, steps=120, whole_schedule=120)
    plant("lacon", [*rows, whole])
    assert "| 60.0 | 70.0 |" in lacon.aims.curve()
    assert lacon.aims.aim().splitlines()[2].endswith("| 0 (-10.0), 1 (-20.0) | none |")


def test_the_cost_of_truncating_setfit_is_over_samples_with_both_runs(lacon, plant):
    scores = {"setfit": {0: 0.5, 1: 0.1}, "setfit-whole": {0: 0.6, 2: 0.9}}
    plant("lacon", (curve_run(part, part, 16, own[seed], seed) for part, own in scores.items() for seed in own))
    cut, whole = lacon.aims.setfit_schedules().splitlines()[2:]
    assert cut == "| Emotion | 100 updates | - | - | - | - | - | 50.0 | - |"
    assert whole == "| Emotion | all of them | - | - | - | - | - | 60.0 | - |"


def test_truncated_setfit_runs_are_completed_if_the_schedule_is_short_enough(lacon, data, tmp_path, monkeypatch):
    monkeypatch.setattr(lacon.setfit_curve, "find_spec", lambda name: name)
    own = lacon.protocol.Settings(data=data, out=tmp_path)
    pieces = [piece for piece in lacon.setfit_curve.whole_pieces(own) if piece.seeds == (0,)]
    assert {piece.part for piece in pieces} == {"setfit-whole"}
    assert [(piece.facts["task"], piece.facts["per_class"]) for piece in pieces] == [
        *(("emotion", count) for count in (0, 1, 2, 4, 8, 16, 64)),
        *(("agnews", count) for count in (4, 8, 16, 64)),
        *(("rottentomatoes", count) for count in (16, 64)),
    ]
    whole = dataclasses.replace(own, protocol=lacon.protocol.PAPER)
    assert list(lacon.setfit_curve.whole_pieces(whole)) == [], "the full protocol cuts none"


def test_the_best_rate_and_the_best_temperature_on_held_out_rows_are_chosen(lacon, data, tmp_path, plant, monkeypatch):
    options = settings(lacon, data, tmp_path / "lacon.jsonl")
    monkeypatch.setattr(lacon.tuned, "CHOSEN_SETS", ("cola",))
    monkeypatch.setattr(lacon.tuned.store, "ENCODER", options.short)
    trials = list(lacon.tuned.tuning_pieces(options))
    assert not list(lacon.tuned.tuned_pieces(options)), "nothing is chosen yet"
    scores = {(3e-5, 0.1): 0.7, (1e-4, 0.1): 0.6, (3e-4, 0.1): 0.5, (1e-4, 0.3): 0.65}
    rows = []
    for piece in trials:
        tried = piece.facts["tried"]
        score = scores.get((tried["learning_rate"], tried.get("temperature", 0.1)), 0.9)
        rows.append({"part": "tuning", "name": piece.name, **piece.facts, "held_out": score})
    out = plant("lacon", rows)
    chosen = {
        piece.facts["method"]: piece.facts["chosen"]
        for pooling in (None, "cls")
        for piece in lacon.tuned.tuned_pieces(dataclasses.replace(options, out=out, pooling=pooling))
    }
    assert chosen["ce"] == {"learning_rate": 3e-5}
    assert chosen["lacon-vanilla"] == {"learning_rate": 3e-5, "temperature": 0.3}
    assert chosen["ce-scl"] == {"learning_rate": 3e-5, "temperature": 0.3}, "two rates tie at its own temperature, 0.3"


def test_another_encoder_tries_the_papers_rates_on_the_set_of_the_shortest_texts(lacon, data, tmp_path):
    trials = list(lacon.tuned.tuning_pieces(settings(lacon, data, tmp_path / "lacon.jsonl")))
    assert {piece.facts["set"] for piece in trials} == {"cola"}
    assert [piece.facts["tried"] for piece in trials if piece.facts["method"] in ("ce", "ce-scl")] == [
        {"learning_rate": 3e-5},
        {"learning_rate": 1e-5},
        {"learning_rate": 3e-5, "temperature": 0.3},
        {"learning_rate": 1e-5, "temperature": 0.3},
    ]


def test_the_table_of_whole_sets_has_the_repeats_that_all_methods_have(lacon, plant):
    rows = [
        {**curve_run("tuned", method, 0, 0.5, seed), "set": "rte", "accuracy": 0.5 + seed / 10, "majority": 0.52}
        for method in lacon.tuned.COMPARED
        for seed in range(3)
        if (method, seed) != ("ce", 2)
    ]
    plant("lacon", rows)
    lines = lacon.report.tuned().splitlines()
    assert lines[2] == "| CE | 55.0 ± 7.1 (67.3 ± 1.9) |"
    assert "| LaCon-vanilla minus CE | +0.0 ± 0.0 |" in lines
    plant("lacon", rows + [row | {"encoder": "all-mpnet-base-v2"} for row in rows if row["seed"] == 0])
    lines = lacon.report.tuned().splitlines()
    assert "| CE, mpnet | 50.0 (67.3 ± 1.9) |" in lines
    assert "| LaCon-vanilla minus CE, mpnet | +0.0 |" in lines
    assert not any("[CLS]" in line for line in lines)


def test_a_gain_is_over_common_samples_and_has_its_deviation(lacon):
    def cell(plain: dict[int, float], ours: dict[int, float]) -> str:
        return lacon.report.pair_cell(pd.DataFrame({"ce": plain, "lacon-vanilla": ours}))

    assert cell({0: 0.5, 1: 0.6, 2: 0.9}, {0: 0.6, 1: 0.8}) == "55.0 to 70.0 (+15.0 ± 7.1)"
    assert cell({0: 0.5}, {0: 0.6}) == "50.0 to 60.0 (+10.0)"
    assert cell({0: 0.5}, {1: 0.6}) == "-"


def test_the_tables_of_another_file_and_pooling_can_be_printed(lacon, data, tmp_path, capsys):
    words = ["--pooling", "cls"]
    run(lacon, data, tmp_path / "lacon.jsonl", *words, "--piece", "few/tiny-bert-cls_bustm_ce_n010_seed00")
    capsys.readouterr()
    run(lacon, data, tmp_path / "lacon.jsonl", *words, "--tables")
    printed = capsys.readouterr().out
    assert "| few | 1 |" in printed
    assert "lacon-main" not in printed


def test_an_unfinished_curve_compares_equal_draws(lacon):
    scores = pd.DataFrame({0: {0: 0.5}, 1: {0: 0.4, 1: 0.8}, 2: {0: 0.45}})
    assert lacon.aims.means_of(scores).to_dict() == {0: 0.5, 1: 0.4, 2: 0.45}
    assert lacon.aims.means_of(pd.DataFrame()).empty
