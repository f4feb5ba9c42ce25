"""Tables average as Table 2 does, over the same data sets for every row, and note what they left out."""

import json
import statistics

import pytest

from bench.fakes import record
from bench.paper_means import paper_row
from labelspace.bench.cards import BTZSC
from labelspace.bench.published import published_scores
from labelspace.bench.rows import measured_rows, published_rows
from labelspace.bench.tables import bench_tables
from labelspace.errors import ConfigError, InputError

FOUR = {"agnews": 0.6, "imdb": 0.9, "rottentomatoes": 0.7, "massive": 0.4}


def records_of(model="embedding:a", scores=FOUR, **more):
    return [record(model, task, score, **more) for task, score in scores.items()]


def line_of(text: str, start: str) -> str:
    (line,) = [line for line in text.splitlines() if line.startswith(start)]
    return line


def test_the_row_of_a_published_model_equals_table_2():
    (row,) = published_rows(["Qwen3-Reranker-8B"])
    summary = paper_row("Qwen3-Reranker-8B")
    assert row.mean(BTZSC) == pytest.approx(summary.overall.mean)
    assert row.deviation(BTZSC) == pytest.approx(summary.overall.std)
    assert (round(row.mean(BTZSC), 2), round(row.deviation(BTZSC), 2)) == (0.72, 0.19)
    topics = [name for name, card in BTZSC.items() if card.family == "topic"]
    assert (round(row.mean(topics), 2), round(row.deviation(topics), 2)) == (0.66, 0.19)


def test_means_per_family_and_over_all_with_how_many_of_22():
    (table,) = bench_tables(records_of())
    line = line_of(table.to_text(), "embedding:a")
    sentiment = f"0.800 ({statistics.stdev([0.9, 0.7]):.2f})"
    overall = f"{statistics.fmean(FOUR.values()):.3f} ({statistics.stdev(FOUR.values()):.2f})"
    for word in ("4 of 22", sentiment, "0.600", "0.400", overall, "22.0M", "50"):
        assert word in line
    assert "emotion" not in table.to_text()


def test_published_means_are_over_the_same_data_sets():
    (table,) = bench_tables(records_of(), beside=["bart-large-mnli"])
    own = published_scores()["bart-large-mnli"]
    mean = statistics.fmean(own[name] for name in FOUR)
    line = line_of(table.to_text(), "bart-large-mnli (published)")
    assert f"{mean:.3f}" in line
    assert "4 of 22" in line
    assert any("same data sets" in note for note in table.notes)
    assert len(bench_tables(records_of(), beside="all")[0].rows) == 39


def test_data_sets_missing_for_one_model_are_in_no_mean_and_named():
    less = {name: score for name, score in FOUR.items() if name != "massive"}
    (table,) = bench_tables([*records_of(), *records_of("nli:b", less, family="nli")])
    assert set(table.sets) == set(less)
    assert all("3 of 22" in line_of(table.to_text(), name) for name in ("embedding:a", "nli:b"))
    assert table.notes == ("not in the means, because not every model was run on them: massive.",)
    assert "massive" in table.to_text("set")
    assert "-" in line_of(table.to_text("set"), "massive")


def test_models_without_a_shared_data_set_get_a_note():
    (table,) = bench_tables([record("embedding:a", "imdb"), record("embedding:b", "agnews")])
    assert "do not compare" in table.notes[0]
    assert "1 of 22" in line_of(table.to_text(), "embedding:a")


def test_seeds_are_averaged_first_and_their_spread_shown():
    runs = [record(score=score, seed=seed, limit=100) for seed, score in enumerate((0.4, 0.5, 0.6))]
    (table,) = bench_tables(runs)
    text = table.to_text()
    assert "0.500" in line_of(text, "embedding:a [limit 100]")
    assert "± 0.100" in text
    assert "0.500 ± 0.100" in table.to_text("set")
    assert "a sample of the texts (limit)" in text


def test_seeds_that_drew_the_same_texts_are_no_repeats():
    bounds = {"level": 0.95, "repeats": 10, "macro_f1_predicted": [0.45, 0.55]}
    runs = [record(seed=seed, limit=100, fingerprint="all", intervals=bounds) for seed in range(3)]
    text = bench_tables(runs)[0].to_text("set")
    assert "0.500 [0.450, 0.550]" in text
    assert "±" not in text


def test_a_data_set_of_other_texts_for_one_model_is_in_no_mean_and_named():
    others = records_of("embedding:b", {"own/mine": 0.9, "agnews": 0.7}, fingerprint="other")
    runs = [record(task="own/mine", score=0.1), record(task="own/his", score=0.2), *others]
    runs.append(record("embedding:b", "own/his", 0.4))
    table = next(table for table in bench_tables(runs) if table.benchmark == "own")
    assert table.sets == ("own/his",)
    assert "scored on other texts or labels: own/mine." in table.to_text()


def test_each_way_of_running_a_model_is_a_separate_row():
    runs = [
        record(),
        record(dtype="bfloat16"),
        record(protocol="paper"),
        record(unverbalized="class_0"),
        record("embedding:/x/one"),
        record("embedding:/y/one"),
    ]
    names = [row.model for row in measured_rows(runs)]
    assert names == [
        "embedding:a [float32]",
        "embedding:a [bfloat16]",
        "embedding:a [paper rows, float32]",
        "embedding:a [class 0, float32]",
        "embedding:one (embedding:/x/one)",
        "embedding:one (embedding:/y/one)",
    ]


def test_intervals_are_shown_for_a_single_run():
    run = record(intervals={"level": 0.95, "repeats": 10, "macro_f1_predicted": [0.45, 0.55], "accuracy": [0.4, 0.6]})
    assert "0.500 [0.450, 0.550]" in bench_tables([run])[0].to_text("set")
    assert "0.500 [0.400, 0.600]" in bench_tables([run], metric="accuracy")[0].to_text("set")


def test_speed_is_all_texts_over_all_seconds():
    (row,) = measured_rows([record(texts=100, seconds=1.0), record(task="imdb", texts=300, seconds=7.0)])
    assert row.texts_per_second(["agnews", "imdb", "massive"]) == 50
    assert row.texts_per_second(["agnews"]) == 100
    assert row.texts_per_second(["massive"]) is None


def test_speed_and_memory_in_a_table_are_over_the_data_sets_shown():
    """The second model lacks imdb, so imdb is not in the means, speeds or memory of either row."""
    memory = {"peak_memory_mib": 900.4, "memory_before_mib": 200.0}
    slow = {"seconds": 1000.0, "peak_memory_mib": 5000.0, "memory_before_mib": 1.0}
    runs = [record(texts=100, seconds=2.0, **memory), record(task="imdb", texts=100, **slow), record("nli:b")]
    (table,) = bench_tables(runs)
    head, *rows = table.by_family()
    assert head[-3:] == ["parameters", "texts/s", "peak MiB"]
    assert [row[-2:] for row in rows] == [["50", "900"], ["50", "-"]]
    told = table.to_dict()["rows"]
    assert [row["texts_per_second"] for row in told] == [50, 50]
    assert [(row["peak_memory_mib"], row["memory_before_mib"]) for row in told] == [(900.4, 200.0), (None, None)]
    assert not any("peak MiB" in note for note in table.notes)


def test_unmeasured_memory_has_no_column_and_that_of_older_runs_a_note():
    assert "peak MiB" not in bench_tables([record()], beside="all")[0].to_text()
    (table,) = bench_tables([record(peak_memory_mib=900.0)], beside=["bart-large-mnli"])
    assert "peak MiB of older runs includes memory left by earlier models" in table.to_text()
    assert "peak MiB" not in table.to_text("set")
    assert line_of(table.to_text(), "bart-large-mnli").endswith("-")


def test_each_benchmark_has_its_own_table():
    tables = bench_tables([record(), record(task="mteb/imdb"), record(task="own/mail")], beside=["bart-large-mnli"])
    assert [table.benchmark for table in tables] == ["btzsc", "mteb", "own"]
    assert "1 of 8" in tables[1].to_text()
    assert published_scores()["bart-large-mnli"]["mteb/imdb"] == pytest.approx(tables[1].rows[1].mean(["mteb/imdb"]))
    assert [row.published for row in tables[2].rows] == [False], "nobody has published numbers on one's own file"
    assert "own files" in tables[2].to_text()


def test_nli_auroc_is_a_column_if_it_was_measured():
    nli = record(task="nli", benchmark="nli", metrics={"auroc": 0.7}, by_source={"mnli_matched_dev": 0.8, "x": 0.6})
    (table,) = bench_tables([record(), nli])
    assert "NLI AUROC" in table.to_text()
    assert table.rows[0].nli == {"mnli_m": 0.8, "x": 0.6}
    assert table.nli_sources == ("mnli_m",)
    assert "0.800" in line_of(table.to_text(), "embedding:a")
    assert "NLI AUROC" not in bench_tables([record()], beside="all")[0].to_text()


def nli_run(value: float, **more):
    pairs = {"benchmark": "nli", "task_family": "nli", "metrics": {"auroc": value}}
    return record(task="nli", **pairs, by_source={"mnli_matched_dev": value}, **more)


def test_nli_auroc_is_only_in_the_row_of_the_same_way():
    """An AUROC on ten pairs is not the AUROC on all pairs, in either order of the store."""
    runs = [record(), record(limit=10), record(dtype="bfloat16"), record(revision="sha256:2", limit=20)]
    auroc = [nli_run(0.9), nli_run(0.1, limit=10), nli_run(0.3, revision="sha256:1", limit=20)]
    for order in (auroc, auroc[::-1]):
        (table,) = bench_tables([*runs, *order])
        assert [row.nli.get("mnli_m") for row in table.rows] == [0.9, 0.1, None, None]
        assert [line[-3] for line in table.by_family()] == ["NLI AUROC", "0.900", "0.100", "-", "-"]
        assert any("an NLI AUROC with another limit" in note and "embedding:a" in note for note in table.notes)
    whole, ten = record(), nli_run(0.1, limit=10)
    (table,) = bench_tables([whole, ten])
    assert table.rows[0].nli == {}


def test_nli_auroc_is_the_mean_over_the_seeds_of_the_row():
    runs = [record(limit=10, seed=seed) for seed in (0, 1)]
    auroc = [nli_run(value, limit=10, seed=seed) for seed, value in enumerate((0.5, 0.7, 0.9))]
    assert bench_tables([*runs, *auroc])[0].rows[0].nli["mnli_m"] == pytest.approx(0.6)
    assert bench_tables([*runs, auroc[2]])[0].rows[0].nli == {}


def test_the_protocol_does_not_matter_for_nli_pairs():
    (table,) = bench_tables([record(protocol="paper", unverbalized="class_0"), nli_run(0.8)])
    assert table.rows[0].nli == {"mnli_m": 0.8}


def test_a_custom_model_is_a_row():
    assert "harness:mine" in bench_tables([record("harness:mine", family="custom")])[0].to_text()


def test_mean_auroc_is_over_the_shared_sources():
    sources = {"mnli_matched_dev": 0.8, "anli_r1_dev": 0.6, "mine": 0.1}
    nli = record(task="nli", benchmark="nli", metrics={"auroc": 0.7}, by_source=sources)
    (table,) = bench_tables([record(), nli], beside=["bart-large-mnli"])
    own = published_scores("auroc")["bart-large-mnli"]
    assert table.nli_sources == ("anli_r1", "mnli_m")
    assert table.rows[1].nli_auroc(table.nli_sources) == pytest.approx((own["anli_r1"] + own["mnli_m"]) / 2)
    assert table.to_dict()["rows"][0]["nli_auroc"] == pytest.approx(0.7)
    only_mine = record(task="nli", benchmark="nli", metrics={"auroc": 0.1}, by_source={"mine": 0.1})
    (table,) = bench_tables([record(), only_mine])
    assert table.nli_sources == ("mine",)


@pytest.mark.parametrize("by", ["family", "set"])
def test_markdown_has_as_many_cells_in_every_row(by):
    text = bench_tables([*records_of(), record("embedding:pipe|d")], beside="all")[0].to_markdown(by)
    lines = [line.replace("\\|", "") for line in text.splitlines() if line.startswith("|")]
    assert len({line.count("|") for line in lines}) == 1
    assert lines[1].startswith("|---|---:|")


def test_a_table_as_plain_values_is_json():
    (table,) = bench_tables(records_of(), beside=["bart-large-mnli"])
    told = json.loads(json.dumps(table.to_dict()))
    assert told["sets_in_benchmark"] == 22
    assert told["rows"][0]["mean"] == pytest.approx(statistics.fmean(FOUR.values()))
    assert told["rows"][0]["by_set"]["imdb"] == {"value": 0.9, "spread": None, "interval": None}
    assert [row["published"] for row in told["rows"]] == [False, True]
    assert str(table) == table.to_text()


def test_invalid_arguments_are_refused():
    with pytest.raises(ConfigError, match=r"'bart-large-mnl' is not a model of the paper. Did you mean"):
        bench_tables(records_of(), beside=["bart-large-mnl"])
    with pytest.raises(ConfigError, match="metric must be one of"):
        bench_tables(records_of(), metric="f1")
    with pytest.raises(ConfigError, match="by must be one of"):
        bench_tables(records_of())[0].to_text("model")
    with pytest.raises(InputError, match="the store holds no result"):
        bench_tables([])
    with pytest.raises(InputError, match="no result on a data set"):
        bench_tables([record(task="nli", benchmark="nli", metrics={"auroc": 0.7}, by_source={})])
