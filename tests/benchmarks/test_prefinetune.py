"""REZE's experiments: no target text in a mix, all parts run, the runner resumes, tables and figures are made."""

import contextlib
import csv
import itertools
import json
import math
import re
import shutil
from collections import Counter
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
import torch
from filelock import FileLock, Timeout
from sklearn.metrics import ndcg_score

from labelspace import Encoder
from labelspace.errors import InputError, TrainingError
from old_folders import old_folder

ROOT = Path(__file__).resolve().parents[2]
SHARED = ROOT.parent / "shared"
PAPER = SHARED / "papers" / "reze.txt"
TINY = ROOT / "tests" / "data" / "tiny-bert"
SOURCES = {"ectsum": "summarization", "finentity": "classification", "fincausal_pairs": "pair_classification"}
LABELS = {
    "fomc": ("dovish", "hawkish", "neutral"),
    "financial_phrasebank": ("negative", "neutral", "positive"),
    "gold_headline": ("negative", "neutral", "none", "positive"),
}
# Rows of a target, planted in a source as another writes them.
PLANTED = ("fomc  TEST of day 1", "fomc train of day 2", "tatqa test query 3", "tatqa report 4", "tatqa train query 5")


@pytest.fixture
def modules(study_of) -> Any:
    return study_of("prefinetune", "run")


def write(folder: Path, part: str, **columns: list[Any]) -> None:
    folder.mkdir(parents=True, exist_ok=True)
    pq.write_table(pa.table(columns), folder / f"{part}.parquet")


def write_pairs(folder: Path, rows: list[tuple[str, str]], task: str) -> None:
    names = {"source": [folder.name] * len(rows), "task_type": [task] * len(rows)}
    write(folder, "pairs", anchor=[row[0] for row in rows], positive=[row[1] for row in rows], **names)


@pytest.fixture(scope="module")
def data(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Made-up data of the finance domain in the layout of the shared data."""
    folder = tmp_path_factory.mktemp("data")
    finance = folder / "domain" / "finance"
    for number, (name, task) in enumerate(SOURCES.items()):
        rows = [(f"{name} says word {row % 7} of {row}", f"{name} means {row * (number + 1)}") for row in range(16)]
        if name == "finentity":
            rows += [(text, "planted") if place % 2 else ("planted", text) for place, text in enumerate(PLANTED)]
        write_pairs(finance / name, rows, task)
    for name, labels in LABELS.items():
        for split, count in (("train", 24), ("test", 9)):
            texts = [f"{name} {split} of day {row}" for row in range(count)]
            names = [labels[row % len(labels)] for row in range(count)]
            write(finance / name, split, text=texts, label=[labels.index(one) for one in names], label_text=names)
            if split == "train":
                write_pairs(finance / name, list(zip(texts, names, strict=True)), "classification")
        (finance / name / "meta.json").write_text(json.dumps({"label_names": labels}))
    tatqa = finance / "tatqa"
    queries = [f"tatqa test query {row}" for row in range(6)]
    write(tatqa, "queries", query_id=[f"q{row}" for row in range(6)], text=queries)
    write(tatqa, "corpus", doc_id=[f"d{row}" for row in range(14)], text=[f"tatqa report {row}" for row in range(14)])
    answers = [f"d{row}" for row in range(6)]
    write(tatqa, "qrels", query_id=[f"q{row}" for row in range(6)], doc_id=answers, score=[1] * 6)
    pairs = [(f"tatqa train query {row}", f"tatqa paragraph {row}") for row in range(20)]
    write_pairs(tatqa, [*pairs, ("Tatqa test query 0", "tatqa paragraph 0")], "retrieval")
    return folder


def made(modules: Any, data: Path, out: Path, **options: Any) -> Any:
    options = {"small": True, "per_source": 12, **options}
    return modules.settings.Settings(data=data, out=out, encoders=out / "encoders", encoder=str(TINY), **options)


# The mix


@pytest.mark.parametrize("per_target", [False, True])
def test_no_text_of_a_target_is_in_its_mix(modules, data, tmp_path, per_target):
    settings = made(modules, data, tmp_path, per_target=per_target, per_source=None)
    sets = modules.sets
    for target in sets.targets(settings):
        mix = sets.read_mix(settings, sets.mix_name(settings, target))
        words = {sets.plain(text) for text in [*mix.pairs.anchors, *mix.pairs.positives]}
        assert target not in mix.pairs.sources
        folder, task = sets.folder_of(settings, target), sets.TARGETS[target].task
        if task == "classification":
            scored = [*sets.test_rows(settings, target).texts, *sets.train_side(folder, task).texts]
        else:
            search = sets.search_of(settings, target)
            scored = [*search.queries, *(search.documents[place] for own in search.relevant for place in own)]
            scored += sets.train_side(folder, task).texts
        assert scored
        assert not words & {sets.plain(text) for text in scored}
        planted = sum(text.casefold().startswith(target) for text in PLANTED) if per_target else len(PLANTED)
        assert mix.dropped == {"finentity": planted}
    assert sets.mix_names(settings) == (
        ("finance-without-fomc", "finance-without-tatqa") if per_target else ("finance",)
    )


def test_one_mix_for_a_domain_leaves_all_its_targets_out_and_is_capped_once_for_all(modules, data, tmp_path):
    settings = made(modules, data, tmp_path)
    mix = modules.sets.read_mix(settings, "finance")
    assert set(mix.left_out) == {"fomc", "financial_phrasebank", "tatqa"}
    assert "gold_headline" in mix.pairs.sources  # not scored in a run of this size
    assert set(mix.pairs.counts().values()) == {12}
    modules.sets.read_mix.cache_clear()
    assert mix == modules.sets.read_mix(settings, "finance")


def test_sets_that_share_texts_are_excluded_together(modules, data, tmp_path, monkeypatch):
    monkeypatch.setattr(modules.sets, "SHARED_TEXTS", (("fomc", "ectsum"),))
    mix = modules.sets.read_mix(made(modules, data, tmp_path, per_source=11), "finance")
    assert "ectsum" in mix.left_out
    assert "ectsum" not in mix.pairs.sources


def test_the_mix_without_label_names_has_no_source_with_a_label_of_a_target(modules, data, tmp_path):
    settings, sets = made(modules, data, tmp_path), modules.sets
    mix = sets.read_mix(settings, sets.UNNAMED_MIX)
    assert set(mix.left_out) == {*sets.read_mix(settings, "finance").left_out, "gold_headline"}
    assert set(mix.pairs.sources) == set(SOURCES)
    assert not {*mix.pairs.positives} & {label for name in ("fomc", "financial_phrasebank") for label in LABELS[name]}
    assert sets.targets_of(settings, sets.UNNAMED_MIX) == sets.targets_of(settings, "finance") == ("fomc", "tatqa")
    folder = modules.encoders.place_of(settings, sets.UNNAMED_MIX, "reze", 0)
    assert folder != modules.encoders.place_of(settings, "finance", "reze", 0)


def test_the_score_of_guessing_equals_the_mean_of_many_guesses(modules):
    counts = [40, 160, 100]
    truth = np.repeat(np.arange(3), counts)
    found = modules.target_facts.guessing([("rare", "often", "usual")[label] for label in truth])
    guessed = np.random.default_rng(0).integers(0, 3, (400, 300))
    hits, told = (
        np.stack([(rows & (guessed == label)).sum(axis=1) for label in range(3)])
        for rows in (guessed == truth, np.True_)
    )
    f1 = 2 * hits / (told + np.array(counts)[:, None])
    assert found["guessed_macro_f1"] == pytest.approx(f1.mean(), abs=0.005)
    assert found["commonest"] == pytest.approx(160 / 300)


def test_rows_whose_document_answers_a_test_query_are_counted(modules, tmp_path):
    tatqa = tmp_path / "domain" / "finance" / "tatqa"
    write(tatqa, "queries", query_id=["q0"], text=["asked"])
    write(tatqa, "corpus", doc_id=["d0", "d1"], text=["An  Answer", "another"])
    write(tatqa, "qrels", query_id=["q0"], doc_id=["d0"], score=[1])
    write_pairs(tatqa, [("one", "an answer"), ("two", "another"), ("asked", "an answer")], "retrieval")
    found = modules.target_facts._run(made(modules, tmp_path, tmp_path), "tatqa")
    assert found == {"rows": 2, "test_rows": 1, "rows_with_a_test_answer": 1}, "the row that the test asks is no row"


def test_samples_are_stratified_and_nested(modules):
    groups = ["a"] * 60 + ["b"] * 30 + ["c"] * 10
    order = modules.sets.nested_order(groups, 0)
    assert sorted(order) == list(range(100))
    for size in (10, 20, 50):
        counts = Counter(groups[row] for row in order[:size])
        assert all(abs(counts[name] - size * share) <= 1.5 for name, share in (("a", 0.6), ("b", 0.3), ("c", 0.1)))
    assert order != modules.sets.nested_order(groups, 1)


def test_a_query_of_the_test_side_is_not_trained_on(modules, data, tmp_path):
    settings = made(modules, data, tmp_path)
    rows = modules.sets.train_rows(settings, "tatqa", 100, 0)
    assert len(rows) == 20
    assert not {modules.sets.plain(text) for text in rows.texts} & set(
        modules.sets.search_of(settings, "tatqa").queries
    )


def test_repeated_questions_are_merged_with_all_their_answers(modules, data, tmp_path, monkeypatch):
    tables = {
        "queries": {"query_id": ["a", "b", "c"], "text": ["List files", "list  files", "Copy"]},
        "corpus": {"doc_id": ["1", "2", "3", "4"], "text": ["ls", "dir", "LS", "cp"]},
        "qrels": {"query_id": ["a", "b", "b", "c"], "doc_id": ["1", "2", "3", "4"], "score": [1, 1, 1, 1]},
    }
    for name, columns in tables.items():
        pq.write_table(pa.table(columns), tmp_path / f"{name}.parquet")
    monkeypatch.setattr(modules.sets, "folder_of", lambda _settings, _name: tmp_path)
    search = modules.sets.search_of(made(modules, data, tmp_path), "tatqa")
    assert [query.casefold().split() for query in search.queries] == [["list", "files"], ["copy"]]
    answers = [{search.documents[place].casefold() for place in own} for own in search.relevant]
    assert answers == [{"ls", "dir"}, {"cp"}]


def test_a_size_that_gives_no_more_rows_is_not_run(modules, data, tmp_path):
    settings = made(modules, data, tmp_path, small=False)
    assert modules.sets.sizes(settings, "tatqa") == (100,)


# nDCG


def ndcg_by_hand(scores: list[float], gains: dict[int, float], k: int) -> float:
    order = sorted(range(len(scores)), key=lambda document: (-scores[document], document))
    got = ideal = 0.0
    for place, document in enumerate(order[:k], 1):
        got += gains.get(document, 0.0) / math.log2(place + 1)
    for place, gain in enumerate(sorted(gains.values(), reverse=True)[:k], 1):
        ideal += gain / math.log2(place + 1)
    return got / ideal if ideal else 0.0


@pytest.mark.parametrize("k", [1, 3, 10, 30])
def test_ndcg_equals_the_formula_and_scikit_learn(modules, k):
    draw = np.random.default_rng(0)
    scores = draw.normal(size=(12, 20))
    relevant = [{int(one): float(draw.integers(1, 4)) for one in draw.permutation(20)[: 1 + row]} for row in range(12)]
    found = modules.ranking.ndcg(scores, relevant, k)
    assert found == pytest.approx(
        [ndcg_by_hand(row.tolist(), gains, k) for row, gains in zip(scores, relevant, strict=True)]
    )
    truth = np.array([[gains.get(document, 0.0) for document in range(20)] for gains in relevant])
    assert found.mean() == pytest.approx(ndcg_score(truth, scores, k=k))
    assert found.std() > 0.01


def test_ndcg_of_equal_scores_takes_the_earlier_document(modules):
    scores = np.zeros((2, 30))
    found = modules.ranking.ndcg(scores, [{0: 1.0}, {29: 1.0}])
    assert found.tolist() == [1.0, 0.0]
    assert modules.ranking.ndcg(scores[:1], [{}]).tolist() == [0.0]


# The parts


@pytest.mark.slow
def test_every_part_runs_and_resumes_and_gives_tables_and_figures(modules, store, data, tmp_path, capsys):
    out, kept = tmp_path / "prefinetune.jsonl", tmp_path / "encoders"
    words = ["prefinetune", "--data", str(data), "--out", str(out), "--encoders", str(kept)]
    words += ["--encoder", str(TINY), "--small"]
    modules.run.run([*words, "--minutes", "0"])
    assert "pieces are left" in capsys.readouterr().out
    modules.run.run(words)
    assert "all pieces are done" in capsys.readouterr().out
    modules.run.run(words)
    assert "[" not in capsys.readouterr().out, "nothing is run twice"

    rows = {(row["part"], row["name"]): row for row in store.Table(out).rows()}
    files = {part: row for (part, _), row in rows.items()}
    assert set(files) == set(modules.plan.STUDY.parts)
    for found in files.values():
        assert found["provenance"]["commit"]
        assert found["protocol"]["per_source"] == 16
    assert files["main"]["provenance"]["hardware"]["dtype"] == "float32"
    assert files["encoders"]["mix_pairs"]["drawn"] == dict.fromkeys(sorted([*SOURCES, "gold_headline"]), 16)
    maps = {name: set(row["scores"]) for (part, name), row in rows.items() if part == "main"}
    assert maps["tiny-bert_fomc_pft_100_seed0"] == {"none", "whitening", "flow"}
    assert maps["tiny-bert_fomc_reze_100_seed0"] == {"none", "whitening"}
    assert maps["tiny-bert_fomc_reze-untuned_100_seed0"] == {"none"}
    unshrunk = rows["encoders", "tiny-bert_finance_reze-unshrunk_seed0"]
    assert unshrunk["result"]["shrunk_directions"] == 0
    assert unshrunk["result"]["active"] > 0
    assert maps["tiny-bert_fomc_reze-unshrunk_100_seed0"] == {"none"}
    assert maps["tiny-bert_fomc_reze-unnamed_100_seed0"] == {"none"}
    unnamed, named = (rows["encoders", f"tiny-bert_{mix}_reze_seed0"] for mix in (modules.sets.UNNAMED_MIX, "finance"))
    for part, name in (("main", "fomc_reze-unnamed_100"), ("descriptions", "fomc_reze-unnamed")):
        found = rows[part, f"tiny-bert_{name}_seed0"]
        assert found["start_sha256"] == unnamed["sha256"] != named["sha256"]
    facts = {name: rows["targets", f"tiny-bert_{name}"] for name in ("fomc", "tatqa")}
    assert facts["fomc"]["commonest"] == pytest.approx(1 / 3)
    assert facts["tatqa"]["rows_with_a_test_answer"] == 0
    assert files["maps"]["drift"]["base"] == pytest.approx(0, abs=1e-6)
    assert files["maps"]["drift"]["pft"] > 1e-5
    assert files["maps"]["drift"]["reze"] > 1e-5

    # An encoder that is gone is made again, to the same bits.
    name = "tiny-bert_fomc_reze_100_seed0"
    before = rows["main", name]
    shutil.rmtree(kept)
    modules.encoders._reopened.cache_clear()
    modules.run.run([*words, "--piece", f"main/{name}"])
    again = store.Table(out).row("main", name)
    assert again is not before
    assert [again["start_sha256"], again["scores"]] == [before["start_sha256"], before["scores"]]

    report = modules.report
    capsys.readouterr()
    modules.run.run([*words, "--tables", "--figures", str(tmp_path)])
    printed = capsys.readouterr().out
    assert [block for block in report.BLOCKS if f"{block}\n\n|" not in printed] == []
    for row in ("| tiny-bert | FT |", "| tiny-bert | PFT, whitening |", "| tiny-bert | untouched, whitening |"):
        assert row in printed
    assert "| paper: e5-base-v2, other tasks | REZE | 0.7723 | 0.8050 | 0.8220 | 0.5002 |" in printed
    assert "(0.4496)" in printed
    assert "| 5 |" in printed
    assert "| FOMC | PFT |" in printed
    assert "ectsum 16 of 16" in printed
    for name in ("weights", "isoscore", "maps"):
        assert (tmp_path / f"prefinetune-{name}.png").stat().st_size > 0
        assert str(tmp_path / f"prefinetune-{name}.png") in printed


def test_averages_are_over_seeds_with_every_target(modules):
    runs = pd.DataFrame(
        [("nl2bash", 0, 0.2), ("cosqa", 0, 0.4), ("nl2bash", 1, 0.9)], columns=["target", "seed", "score"]
    )
    scores = runs.assign(encoder="tiny", domain="code", start="pft", mapped="none", rows=100)
    (mean,) = modules.report.averages(scores).to_dict("records")
    assert (mean["seed"], mean["score"]) == (0, pytest.approx(0.3))


def test_every_encoder_with_results_is_in_table_2(modules, plant):
    common = {"part": "main", "target": "fomc", "start": "reze", "rows_wanted": 100}
    plant(
        "prefinetune",
        (
            {**common, "encoder": encoder, "seed": seed, "scores": {"none": {"score": score}}}
            for encoder, score in (("all-MiniLM-L6-v2", 0.25), ("all-mpnet-base-v2", 0.75))
            for seed in (0, 1, 2)
        ),
    )
    table = modules.report.main()
    assert "| all-MiniLM-L6-v2 | REZE | 0.2500 ± 0.0000 | - |" in table
    assert "| all-mpnet-base-v2 | REZE | 0.7500 ± 0.0000 | - |" in table
    assert "| all-mpnet-base-v2 | targets averaged | 1 | - |" in table


def test_the_small_mix_has_fewer_pairs_one_seed_and_the_fewest_rows(modules, data, tmp_path):
    quarter = modules.quarter
    for per_source, expected in ((None, 250), (1000, 250), (12, 12)):
        settings = made(modules, data, tmp_path, per_source=per_source)
        pieces = list(quarter.quarter_pieces(settings))
        assert {piece.part for piece in pieces} == {"quarter"}
        facts = [piece.facts for piece in pieces]
        assert {fact["protocol"]["per_source"] for fact in facts} == {expected}
        assert {fact["seed"] for fact in facts} == {0}
        made_first = [(fact.get("mix"), fact.get("method")) for fact in facts[: len(quarter.QUARTERED)]]
        assert made_first == [("finance", method) for method in quarter.QUARTERED]
        scored = [fact for fact in facts if "rows_wanted" in fact]
        expected_runs = {*itertools.product(("fomc", "tatqa"), quarter.STARTS)}
        assert {(fact["target"], fact["start"]) for fact in scored} == expected_runs
        assert {fact["rows_wanted"] for fact in scored} == {100}
        described = {fact["start"] for fact in facts[len(quarter.QUARTERED) :] if "rows_wanted" not in fact}
        assert described == {"base", *quarter.QUARTERED}


def test_each_run_of_the_small_mix_has_its_cell(modules, plant):
    common = {"part": "quarter", "encoder": "all-MiniLM-L6-v2", "seed": 0}
    fine_tuned = {**common, "target": "fomc", "rows_wanted": 100}
    plant(
        "prefinetune",
        [
            {
                **common,
                "mix": "finance",
                "method": "reze",
                "result": {"pairs": {"a": 900, "b": 250}},
                "targets": {"drift": 0.11, "neighbours_kept": 0.12},
            },
            {**common, "target": "fomc", "start": "reze", "trained": {"descriptions": {"macro_f1": 0.13}}},
            {**fine_tuned, "start": "reze", "scores": {"none": {"score": 0.14}}},
            {**fine_tuned, "start": "reze-untuned", "scores": {"none": {"score": 0.15}}},
            {**fine_tuned, "start": "untuned", "scores": {"none": {"score": 0.16}}},
            {**fine_tuned, "start": "base", "scores": {"none": {"score": 0.17}}},
        ],
    )
    head, _, *rows = modules.report.quarter().splitlines()
    assert head == (
        "|  | encoder | not fine-tuned, FOMC | 100 rows, FOMC | descriptions, macro-F1, FOMC | pairs "
        "| drift of target texts | nearest 10 kept |"
    )
    assert rows == [
        "| all-MiniLM-L6-v2 | as it came | 0.160 | 0.170 | - | - | - | - |",
        "| all-MiniLM-L6-v2 | REZE | 0.150 | 0.140 | 0.130 | 1,150 | 0.110 | 0.120 |",
    ]


def test_a_run_without_isoscore_is_left_out_of_its_figure(modules, tmp_path, monkeypatch):
    def run(method: str, *isoscore: float | None) -> dict[str, Any]:
        return {"mix": "finance", "method": method, "targets": {"isoscore": isoscore}}

    runs = [run("pft", 0.1, 0.2), run("pft", None, None), run("reze", None, None)]
    monkeypatch.setattr(modules.pictures, "runs_of", lambda *_: pd.json_normalize(runs))
    assert [file.name for file in modules.pictures.isotropy_figure(tmp_path / "iso")] == ["iso.png", "iso.svg"]


def test_fine_tuning_learns_from_every_row_and_leaves_the_start_alone(modules, data, tmp_path):
    settings = made(modules, data, tmp_path)
    start = modules.encoders.base(settings)
    before, tuned = start.encode(["a bank"]), start.copy()
    rows = modules.sets.train_rows(settings, "tatqa", 100, 0)
    facts = modules.experiments.fine_tune(tuned, rows, "tatqa", 0)
    assert facts["steps"] == math.ceil(len(rows) / 8)
    assert not np.allclose(tuned.encode(["a bank"]), before, atol=1e-4)
    modules.experiments._run(settings, "tatqa", "base", 100, 0, ("none",))
    assert (modules.encoders.base(settings).encode(["a bank"]) == before).all()


# The head


def clusters(rows: int, seed: int, apart: float = 3.0, middle: float = 0.6) -> tuple[np.ndarray, list[str]]:
    """Rows of unit length in 128 coordinates, of three labels of which one is the most frequent."""
    draw = np.random.default_rng(seed)
    names = draw.choice(3, size=rows, p=[(1 - middle) / 2, middle, (1 - middle) / 2])
    vectors = apart * np.eye(128)[names] + draw.normal(size=(rows, 128)) / np.sqrt(np.arange(1, 129))
    return vectors / np.linalg.norm(vectors, axis=1, keepdims=True), [f"label {name}" for name in names]


def test_without_a_map_c_equals_that_of_the_probes_own_search(modules):
    from probe import CHOICES, linear_probe

    assert modules.experiments.CHOICES is CHOICES
    assert CHOICES == (1.0, 10.0, 100.0)
    for apart, middle, best in ((2.0, 0.6, 1.0), (2.0, 0.8, 100.0)):
        vectors, labels = clusters(40, 0, apart, middle)
        grid = linear_probe(tuned=True).set_params(param_grid={"C": [1.0, 10.0, 100.0]}).fit(vectors, labels)
        chosen = modules.experiments.choose_c(lambda _rows: np.asarray, vectors, labels)
        assert chosen == grid.best_params_["C"] == best


def test_c_is_chosen_with_maps_fitted_without_the_fold(modules):
    vectors, labels = clusters(50, 0)
    seen = []

    def fit(rows: np.ndarray) -> Any:
        known = {row.tobytes() for row in rows}

        def apply(others: np.ndarray) -> np.ndarray:
            seen.append(sum(row.tobytes() in known for row in others) / len(others))
            return others

        assert len(rows) == 40
        return apply

    modules.experiments.choose_c(fit, vectors, labels)
    assert seen == [1.0, 0.0] * 5


def test_c_is_no_tie_for_whitened_rows_fewer_than_dimensions(modules):
    from probe import linear_probe

    from labelspace.geometry import fit_whitening

    (vectors, labels), (others, truth) = clusters(60, 0), clusters(400, 1)
    whitening = fit_whitening(vectors)
    seen, unseen = (modules.experiments.unit(whitening.apply(rows)) for rows in (vectors, others))
    tied = linear_probe(tuned=True).fit(seen, labels)
    assert np.ptp(tied.cv_results_["mean_test_score"]) == 0
    assert tied.score(unseen, truth) < 0.7
    chosen = modules.experiments.choose_c(lambda rows: fit_whitening(rows).apply, vectors, labels)
    assert modules.experiments.head_of(chosen).fit(seen, labels).score(unseen, truth) > 0.9


# Maps


class Negated:
    """A map that keeps cosines between two mapped vectors, and changes all others."""

    def __init__(self, vectors: np.ndarray, applied: list[np.ndarray]) -> None:
        self.fitted_on, self._applied = vectors, applied

    def apply(self, vectors: np.ndarray) -> np.ndarray:
        self._applied.append(vectors)
        return -vectors


@pytest.mark.parametrize("start", ["untuned", "base"])
@pytest.mark.parametrize("target", ["fomc", "tatqa"])
def test_a_map_is_fitted_on_training_texts_only_and_applied_to_all_scored_ones(
    modules, data, tmp_path, monkeypatch, target, start
):
    encode, text_of, fitted, applied = Encoder.encode, {}, [], []

    def remembered(encoder: Encoder, texts: Any, **options: Any) -> np.ndarray:
        vectors = encode(encoder, texts, **options)
        text_of.update(zip((vector.tobytes() for vector in vectors), texts, strict=True))
        return vectors

    def fit_whitening(vectors: np.ndarray) -> Negated:
        fitted.append(Negated(vectors, applied))
        return fitted[-1]

    modules.experiments._encoded_by_base.cache_clear()
    monkeypatch.setattr(Encoder, "encode", remembered)
    monkeypatch.setattr(modules.experiments, "fit_whitening", fit_whitening)
    settings = made(modules, data, tmp_path)
    found = modules.experiments._run(settings, target, start, 100, 0, ("none", "whitening"))

    def texts(vectors: np.ndarray) -> list[str]:
        return [text_of[vector.tobytes()] for vector in vectors]

    rows = modules.sets.train_rows(settings, target, 100, 0)
    whole, *folds = (texts(one.fitted_on) for one in fitted)
    assert found["scores"]["whitening"] == found["scores"]["none"]
    if target == "tatqa":
        search = modules.sets.search_of(settings, target)
        assert sorted(whole) == sorted({*rows.texts, *rows.positives})
        assert folds == []
        assert [texts(vectors) for vectors in applied] == [list(search.queries), list(search.documents)]
        assert not set(whole) & {*search.queries, *search.documents}
        return
    test = modules.sets.test_rows(settings, target)
    assert whole == list(rows.texts)
    held_out = [set(rows.texts) - set(fold) for fold in folds]
    assert sorted(text for fold in held_out for text in fold) == sorted(rows.texts)
    assert [texts(vectors) for vectors in applied[-2:]] == [list(rows.texts), list(test.texts)]
    assert not set(rows.texts) & set(test.texts)


# Precision


@pytest.mark.parametrize("dtype", ["bfloat16", "float32"])
def test_an_encoder_switched_to_float32_is_bit_equal_to_one_opened_in_float32(modules, dtype):
    texts = ["a bank", "the price of gold fell on the day after", "why"]
    encoder = Encoder(TINY, dtype=dtype)
    before = encoder.encode(texts)
    assert modules.encoders.in_float32(encoder) is encoder
    assert (encoder.encode(texts) == Encoder(TINY, dtype="float32").encode(texts)).all()
    assert (before == encoder.encode(texts)).all() == (dtype == "float32")


@pytest.mark.parametrize("start", ["untuned", "base"])
def test_encoders_train_in_their_own_precision_and_are_scored_in_float32(modules, data, tmp_path, monkeypatch, start):
    own = Encoder(TINY, dtype="bfloat16")
    for module in (modules.encoders, modules.experiments):
        monkeypatch.setattr(module, "base", lambda _settings: own)
    modules.experiments.untuned.cache_clear()
    modules.experiments._encoded_by_base.cache_clear()
    seen = []

    def encode(encoder: Encoder, texts: Any, **_: Any) -> np.ndarray:
        seen.append(encoder.dtype)
        return np.random.default_rng(len(texts)).normal(size=(len(texts), 4))

    monkeypatch.setattr(Encoder, "encode", encode)
    for target in ("fomc", "tatqa"):
        found = modules.experiments._run(made(modules, data, tmp_path), target, start, 100, 0, ("none",))
        assert found.get("trained_in") == (None if start == "untuned" else "bfloat16")
    modules.experiments.untuned.cache_clear()
    modules.experiments._encoded_by_base.cache_clear()
    assert seen == ["float32"] * 5
    assert own.dtype == "bfloat16", "others go on from it"


# What goes wrong


@pytest.mark.parametrize("target", ["fomc", "tatqa"])
def test_non_finite_mapped_vectors_are_reported_and_not_scored(modules, data, tmp_path, monkeypatch, target):
    class Broken:
        def apply(self, vectors: np.ndarray) -> np.ndarray:
            return np.where(np.arange(len(vectors))[:, None] % 2, np.inf, np.asarray(vectors, dtype=float))

    monkeypatch.setattr(modules.experiments, "fit_whitening", lambda _vectors: Broken())
    settings = made(modules, data, tmp_path)
    found = modules.experiments._run(settings, target, "untuned", 100, 0, ("none", "whitening"))
    assert list(found["scores"]) == ["none"]
    assert re.fullmatch(r"InputError: \d+ of \d+ vectors are not finite after the map\.", found["failed"]["whitening"])


@pytest.mark.parametrize(
    ("wrong", "raised"), [(InputError("all one"), TrainingError), (KeyboardInterrupt(), KeyboardInterrupt)]
)
def test_an_encoder_that_cannot_be_measured_stops_only_its_piece(modules, data, tmp_path, monkeypatch, wrong, raised):
    from labelspace.training.prefinetune.measures import Yardstick

    vectors, calls = Yardstick.vectors, []

    def broken(yardstick: Yardstick, encoder: Encoder) -> np.ndarray:
        calls.append(encoder)
        if len(calls) == 2:  # that after the training
            raise wrong
        return vectors(yardstick, encoder)

    monkeypatch.setattr(Yardstick, "vectors", broken)
    settings = made(modules, data, tmp_path)
    with pytest.raises(raised) as caught:
        modules.encoders.make(settings, "finance", "pft", 0)
    assert len(calls) == 2
    if raised is TrainingError:
        assert "finance, pft, seed 0: " in str(caught.value)
        assert "all one" in str(caught.value)
    assert not modules.encoders.place_of(settings, "finance", "pft", 0).exists()


# Encoders on disk


def test_an_encoder_is_made_once_and_keeps_the_result_of_that_run(modules, data, tmp_path, monkeypatch):
    encoders, calls, locked = modules.encoders, [], []
    settings = made(modules, data, tmp_path)
    prefinetune = encoders.prefinetune

    def counted(*given: Any, **options: Any) -> Any:
        lock = FileLock(f"{encoders.place_of(settings, 'finance', 'pft', 0)}.lock", timeout=0)
        with contextlib.suppress(Timeout), lock:
            locked.append(False)
        calls.append(prefinetune(*given, **options))
        return calls[-1]

    monkeypatch.setattr(encoders, "prefinetune", counted)
    encoders._reopened.cache_clear()
    _, sha256 = encoders.starting_encoder(settings, "fomc", "pft", 0)
    told = encoders._run(settings, "finance", "pft", 0)
    assert len(calls) == 1
    assert locked == [], "a second process waits while it is made"
    assert told["sha256"] == sha256
    whole = json.loads(json.dumps(calls[0].result.to_dict()))
    whole["encoder"]["name"] = "tiny-bert"
    looks = whole["training"].pop("looks")
    whole["training"]["losses"] = [looks[0]["main"], looks[-1]["main"]]
    assert told["result"] == whole


def test_another_precision_or_number_of_threads_makes_another_encoder(modules, data, tmp_path, monkeypatch):
    encoders, settings = modules.encoders, made(modules, data, tmp_path)
    own = encoders.base(settings)
    first = encoders.place_of(settings, "finance", "pft", 0)
    other = Encoder(TINY, dtype="float32" if own.dtype == "bfloat16" else "bfloat16")
    monkeypatch.setattr(encoders, "base", lambda _settings: other)
    second = encoders.place_of(settings, "finance", "pft", 0)
    monkeypatch.setattr(encoders, "base", lambda _settings: own)
    assert encoders.place_of(settings, "finance", "pft", 0) == first
    monkeypatch.setattr(encoders.torch, "get_num_threads", lambda: 99)
    assert len({first, second, encoders.place_of(settings, "finance", "pft", 0)}) == 3


def test_runs_from_another_encoder_than_the_measured_one_are_listed(modules, monkeypatch):
    pairs = {"left_out": [], "dropped": {}, "drawn": {"a": 2}, "there": {"a": 2}}
    common = {"seed": 0, "seconds": 60.0, "protocol": {}}
    fine_tuned = {**common, "target": "fomc", "rows": 100, "test_rows": 9}
    every = {
        "encoders": [{**common, "mix": "finance", "mix_pairs": pairs, "result": {"pairs": {"a": 1}}, "sha256": "one"}],
        "main": [
            {**fine_tuned, "start": "untuned"},
            {**fine_tuned, "start": "base", "start_sha256": None},
            {**fine_tuned, "start": "pft", "start_sha256": "one"},
            {**fine_tuned, "start": "reze", "start_sha256": "two"},
        ],
        "descriptions": [{**common, "target": "fomc", "start": "reze", "start_sha256": "two"}],
    }

    def runs_of(part: str, *columns: str) -> pd.DataFrame:
        return pd.DataFrame(every.get(part, [])).reindex(columns=list(columns))

    monkeypatch.setattr(modules.report, "runs_of", runs_of)
    table = modules.report.setup()
    assert "| main: FOMC, reze, 100 rows, seed 0; descriptions: FOMC, reze, seed 0 |" in table
    every["encoders"].append({**every["encoders"][0], "sha256": "two"})
    assert "FOMC, reze" not in modules.report.setup()


# What was written by hand


def test_each_label_of_a_target_has_five_descriptions(modules):
    classified = [name for name, target in modules.sets.TARGETS.items() if target.task == "classification"]
    assert {file.stem for file in modules.descriptions.LABELS.glob("*.yaml")} == set(classified)
    for name in classified:
        space = modules.descriptions.label_space(name)
        assert {len(texts) for texts in space.descriptions} == {5}
        meta = SHARED / "data" / "domain" / modules.sets.TARGETS[name].domain / name / "meta.json"
        known = json.loads(meta.read_text())["label_names"] if meta.is_file() else LABELS.get(name, space.names)
        assert set(space.names) == set(known)


PAPER_SETS = {"FinMTEB": "finance", "Code(MTEB)": "code", "FOMCClassification": "fomc", "CosQA": "cosqa"}
PAPER_METHODS = {
    "FT": "ft",
    "PFT": "pft",
    "PFTWhitening": "pft-whitening",
    "PFTNormalizingFlow": "pft-flow",
    "REZE": "reze",
}


def paper_table(text: str, number: int) -> list[list[str]]:
    """Cells of a table of the paper: the lines above its caption, without marks and blanks."""
    blocks = text.split("\n\n")
    caption = next(place for place, block in enumerate(blocks) if block.lstrip().startswith(f"Table {number}:"))
    lines = blocks[caption - 1].strip("\n").split("\n")
    return [[re.sub(r"<[^>]+>|\s", "", cell) for cell in line.split("\t")] for line in lines]


def paper_figures(text: str, number: int) -> dict[tuple[str, str, str, int], float]:
    """Figures of a table by encoder, set, method and rows; of the sets that we have too."""
    head, *rows = paper_table(text, number)
    if number == 3:
        assert head == ["Dataset", "Mean", "Median"]
        return {
            ("Qwen3-Embedding-0.6B", PAPER_SETS[name], method, 1000): float(value)
            for name, *values in rows
            if name in PAPER_SETS
            for method, value in zip(("reze-mean", "reze"), values, strict=True)
        }
    sizes, *rows = rows
    assert sizes[1:] == ["100", "500", "1000"] * 3
    found, encoder = {}, ""
    for name, *values in rows:
        if not any(values):
            encoder = name.rpartition("(")[2].rstrip(")")
            continue
        for place, value in enumerate(values):
            column = PAPER_SETS.get(head[1 + place - place % 3])  # a set's name stands above the first of its three
            if column:
                found[encoder, column, PAPER_METHODS[name], int(sizes[1 + place])] = float(value)
    return found


def test_the_papers_numbers_equal_its_tables(modules):
    figures = modules.paper.figures()
    assert len(figures) == 62
    if not PAPER.is_file():
        pytest.skip("the papers are not here")
    text = PAPER.read_text(encoding="utf-8")
    theirs = {number: paper_figures(text, number) for number in (2, 3, 5, 7)}
    assert {number: len(found) for number, found in theirs.items()} == {2: 120, 3: 2, 5: 60, 7: 60}
    with modules.paper.TABLE.open(encoding="utf-8", newline="") as file:
        for row in csv.DictReader(file):
            key = (row["encoder"], row["set"], row["method"], int(row["rows"]))
            assert theirs[int(row["table"])][key] == figures[key], row
    for number in (2, 5, 7):  # all of our encoder, and nothing left out
        assert {key for key in theirs[number] if key[0] == modules.paper.E5} <= set(figures)


@pytest.mark.slow
def test_the_page_names_labels_and_answers_seen_in_training(modules, tmp_path):
    if not (SHARED / "data" / "domain" / "code").is_dir():
        pytest.skip("the data are not here")
    sets, settings = (
        modules.sets,
        modules.settings.Settings(data=SHARED / "data", out=tmp_path / "x.jsonl", encoders=tmp_path),
    )
    page = " ".join((ROOT / "docs" / "prefinetuning-study.md").read_text(encoding="utf-8").split())
    for target in ("tatqa", "nl2bash"):
        search = sets.search_of(settings, target)
        answers = {sets.plain(search.documents[place]) for own in search.relevant for place in own}
        positives = sets.train_side(sets.folder_of(settings, target), "retrieval").positives
        assert f"{sum(sets.plain(one) in answers for one in positives)} of {len(positives):,}" in page
    held = {}
    for target in ("fomc", "financial_phrasebank", "stackoverflow_topics"):
        pairs = sets.read_mix(settings, sets.mix_name(settings, target)).pairs
        names = set(sets.label_names(settings, target))
        rows = zip(pairs.positives, pairs.source_ids, strict=True)
        held[target] = {(pairs.sources[source], name) for name, source in rows if name in names}
    assert {name for _, name in held["fomc"]} == {"neutral"}
    assert {source for source, _ in held["financial_phrasebank"]} == {"fiqa_sentiment", "finentity", "gold_headline"}
    assert not held["stackoverflow_topics"]


def test_the_result_of_an_encoder_saved_by_0_1_0_can_be_read(modules: Any, tmp_path: Path):
    told = modules.encoders.told_of(old_folder("encoder", tmp_path))
    assert told["training"]["total_steps"] == 3
    assert told["neighbours_kept"] == 1.0


def test_the_printed_equation_is_computed_as_printed_and_put_in_place_for_its_methods_only(store):
    from prefinetune.printed import as_printed, printed_factors

    from labelspace.geometry import RelationMoments
    from labelspace.training.prefinetune import offline

    means = torch.tensor([[0.0, 0.0, 0.0], [0.2, 0.1, 0.0], [0.0, 0.2, 0.1], [3.0, 0.0, 0.0], [-2.0, 0.0, 0.0]])
    corners = torch.cat([torch.eye(3), -torch.eye(3)])
    moments = RelationMoments(["a", "b", "c", "far", "below"])
    moments.update((means[:, None] + corners).flatten(0, 1), torch.arange(5).repeat_interleave(6))
    space = offline.fit_eigenspace(moments)
    expected = torch.ones_like(space.alpha)
    for source, axis in itertools.product(range(5), range(space.active)):
        mean, middle, band = (
            float(x) for x in (space.source_means[source, axis], space.reference[axis], space.bands[axis])
        )
        if space.dispersion[axis] > space.threshold and abs(mean - middle) >= band:
            sign = 1 if mean > middle else -1
            expected[source, axis] = 1 + 0.7 * (middle + sign * band - mean) / (abs(mean) + 1e-8)
    assert expected.min() < 1 < expected.max(), "half of the sources are pushed away"
    assert torch.allclose(printed_factors(space, clipped=False), expected)
    assert torch.allclose(printed_factors(space, clipped=True), expected.clamp(0, 1))
    with as_printed("reze-printed"):
        assert torch.allclose(offline.fit_eigenspace(moments).alpha, expected)
    with as_printed("reze"):
        assert torch.equal(offline.fit_eigenspace(moments).alpha, space.alpha)
