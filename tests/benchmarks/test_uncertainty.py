"""The uncertainty-aware paper's experiments: every part runs, the runner resumes, tables and figures are made."""

import dataclasses
import json
import re
import statistics
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
import torch

from labelspace.config import UncertaintyConfig
from labelspace.evaluate import rejection_curve

ROOT = Path(__file__).resolve().parents[2]
SHARED = ROOT.parent / "shared"
PAPER = SHARED / "papers" / "uncertainty-aware-contrastive.txt"
TINY = ROOT / "tests" / "data" / "tiny-bert"
LABELS = ("not toxic", "toxic")


@pytest.fixture
def parts(study_of) -> Any:
    return study_of("uncertainty", "run", "store", "pieces", "probe")


@pytest.fixture(scope="module")
def data(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Two made-up sets in the layout of the shared data."""
    folder = tmp_path_factory.mktemp("data")
    for name in ("toxic_conversations", "amazon_counterfactual", "massive_intent"):
        place = folder / "mteb" / name
        place.mkdir(parents=True)
        (place / "meta.json").write_text(json.dumps({"label_names": LABELS}))
        for split, count in (("train", 24), ("test", 10), ("validation", 6)):
            texts = [f"{split} {LABELS[row % 2]} words of day {row}" for row in range(count)]
            table = pa.table({"text": texts, "label": [row % 2 for row in range(count)]})
            pq.write_table(table, place / f"{split}.parquet")
    return folder


def settings(parts: Any, data: Path, out: Path, **options: Any) -> Any:
    folders = {"out": out / "uncertainty.jsonl", "states": out / "states", "answers": out / "answers"}
    return parts.settings.Settings(data=data, **folders, encoder=str(TINY), small=True, **options)


def test_samples_are_stratified_and_repeatable(parts, data):
    rows = parts.sets.train_rows("toxic_conversations", data, 12)
    assert [rows.truth.count(label) for label in LABELS] == [6, 6]
    assert rows == parts.sets.train_rows("toxic_conversations", data, 12)
    assert len(parts.sets.test_rows("toxic_conversations", data, 4)) == 4
    assert len(parts.sets.train_rows("massive_intent", data, None)) == 30  # the validation rows too


@pytest.mark.slow
def test_every_part_runs_and_resumes_and_the_page_gets_its_tables(parts, data, tmp_path, monkeypatch, capsys):
    words = ["uncertainty", "--data", str(data), "--out", str(tmp_path / "uncertainty.jsonl")]
    words += ["--states", str(tmp_path / "states"), "--answers", str(tmp_path / "answers")]
    words += ["--encoder", str(TINY), "--small", "--parts", "choice", "main", "ablations", "grid", "deviation"]
    words += ["compared"]
    monkeypatch.setattr(parts.experiments, "SHOWN", {"toxic_conversations": 8})
    monkeypatch.setattr(parts.experiments, "ENCODER", "tiny-bert")
    parts.run.run([*words, "--minutes", "0"])
    assert "pieces are left" in capsys.readouterr().out
    parts.run.run(words)
    assert "not run: textcnn-chosen;" in capsys.readouterr().out, "choices were not there when the call began"
    parts.run.run(words)
    printed = capsys.readouterr().out
    assert "toxic_conversations_textcnn-chosen_seed0\n" in printed
    assert printed.endswith("compared/tiny-bert_toxic_conversations\nall pieces are done.\n"), "once main is whole"
    assert printed.count("[") == 2
    parts.run.run(words)
    assert "[" not in capsys.readouterr().out, "nothing is run twice"

    from panels import all_figures

    parts.store.TABLES["uncertainty"] = tmp_path / "uncertainty.jsonl"
    monkeypatch.setattr(parts.report, "ENCODERS", ("tiny-bert",))
    monkeypatch.setattr(parts.report, "GRID_SETS", ("toxic_conversations",))
    monkeypatch.setattr(parts.differences, "ENCODERS", ("tiny-bert",))
    every = {**parts.report.BLOCKS, **parts.differences.BLOCKS}
    for name in (
        "choice",
        "main",
        "extractors",
        "grid",
        "rejection",
        "difficulty",
        "gains",
        "seeds",
        "deviation",
    ):
        assert every[f"uncertainty-{name}"]() != parts.report.NOT_YET, name
    assert "| tiny-bert | TextCNN + both |" in parts.report.main()

    monkeypatch.setattr(parts.pictures, "ENCODERS", ("tiny-bert",))
    monkeypatch.setattr(parts.pictures, "GRID_SETS", ("toxic_conversations",))
    monkeypatch.setattr(parts.pictures, "SHOWN", {"toxic_conversations": 8})
    drawn = all_figures(parts.pictures.FIGURES, tmp_path)
    assert [file.name for file in drawn] == [
        "uncertainty-options.png",
        "uncertainty-maps.png",
        "uncertainty-rejection.png",
    ]


def test_the_softplus_form_and_the_variance_are_what_they_say(parts, data, tmp_path):
    options, name = settings(parts, data, tmp_path), "toxic_conversations"
    head, _ = parts.experiments.trained_head(options, name, {}, 0, change=parts.deviation.with_softplus)
    values, mask = parts.states.states_of(options, name)[1].take(range(10))
    with torch.inference_mode():
        raw = head.log_variance.layer(head.extractor(values.to(parts.states.opened(options).backbone.dtype), mask))
    _, deviations = parts.deviation.outputs(options, head, name)
    assert deviations == pytest.approx(np.log1p(np.exp(raw.float().numpy())), rel=0.05)
    by_sum, by_mean = (
        parts.deviation._run(options, name, 0, form="exp", kl=kl, kl_weight=weight)
        for kl, weight in (("sum", 0.5), ("mean", 0.5 * head.dim))
    )
    assert by_sum == by_mean, "a mean over the coordinates is a sum with a smaller weight"
    plain, _ = parts.experiments.trained_head(options, name, {}, 0)
    assert parts.deviation.outputs(options, plain, name)[1].mean(axis=1) == pytest.approx(
        parts.experiments.outputs_of_states(
            parts.states.opened(options), plain, parts.states.states_of(options, name)[1], range(10)
        ).uncertainty
    )


def test_states_in_parts_equal_those_of_the_whole(parts, data, tmp_path, monkeypatch):
    options = settings(parts, data, tmp_path)
    monkeypatch.setattr(parts.states, "WHOLE_TOKENS_BYTES", 0)
    monkeypatch.setattr(parts.states, "TEXTS_OF_A_PART", 7)
    train, _ = parts.states.states_of.__wrapped__(options, "toxic_conversations")
    assert isinstance(train, parts.states.JoinedStates)
    encoder, texts = parts.states.opened(options), parts.states.both(options, "toxic_conversations")[0].texts
    ids = encoder.tokenize(texts)
    assert list(train.lengths) == [len(own) for own in ids]
    rows = [23, 0, 7, 6, 13, 14, 0]
    whole, mask = parts.states.StateCache(tmp_path / "whole").open(encoder, ids).take(rows)
    assert torch.equal(train.take(rows)[1], mask)
    assert torch.allclose(train.take(rows)[0].float(), whole.float(), atol=0.02)


def test_vectors_pooled_from_states_equal_the_encoders_own(parts, data, tmp_path):
    options = settings(parts, data, tmp_path)
    vectors = parts.states.vectors_of(options, "toxic_conversations")[1]
    own = parts.states.opened(options).encode(parts.states.both(options, "toxic_conversations")[1].texts)
    assert vectors == pytest.approx(own, abs=0.01)


def answers(parts: Any, right: str, **doubts: Any) -> Any:
    """Make the answers of a run, with a 1 for each right row."""
    nothing = np.zeros(len(right))
    flags = np.array([value == "1" for value in right])
    return parts.answers.Answers(flags, doubts.get("entropy", nothing), doubts.get("uncertainty", nothing))


def test_a_gain_is_a_mean_over_seeds_of_the_same_rows(parts):
    ours = [answers(parts, right) for right in ("1111", "1100")]
    gain, error = parts.compared.paired_gain(ours, [answers(parts, "1000")])
    assert gain == pytest.approx((0 + 1 + 0.5 + 0.5) / 4)
    assert error == pytest.approx(statistics.stdev([0, 1, 0.5, 0.5]) / 2)


def test_a_bootstrap_area_equals_that_of_the_drawn_rows(parts):
    rng = np.random.default_rng(0)
    doubt, right = rng.random(60), rng.random(60) < 0.7
    areas = parts.draws.drawn_areas(doubt, right)
    rows = parts.draws.drawn_rows(60)
    assert areas.shape == (1000,)
    assert len(np.unique(rows[0])) < 60, "with replacement"
    by_hand = [rejection_curve(doubt[own], right[own]).area for own in rows[:60]]
    assert areas[:60] == pytest.approx(by_hand), "in more than one go"


def test_equally_uncertain_rows_have_the_bootstrap_area_of_chance(parts):
    right = np.array([True, True, False, False, True])
    same = parts.draws.drawn_areas(np.ones(5), right)
    assert same == pytest.approx(np.full(1000, 0.6))
    assert parts.draws.drawn_areas(None, right).std() > 0.1


def test_an_area_gap_is_significant_with_enough_rows(parts):
    def run(count: int, doubts: np.ndarray) -> Any:
        right = np.arange(count) % 4 > 0
        return parts.answers.Answers(right, 1.0 - right, doubts)

    noise = np.random.default_rng(0).random(2000)
    gap = parts.draws.area_gap([run(2000, noise)], "uncertainty", "random")
    assert gap.low < gap.value < gap.high
    assert gap.low < 0 < gap.high, "noise is chance"
    knows = run(2000, noise - 3.0 * (np.arange(2000) % 4 > 0))
    gap = parts.draws.area_gap([knows, knows], "uncertainty", "random")
    assert 0 < gap.low < gap.value < gap.high < 0.25
    worse = parts.draws.area_gap([run(2000, noise), knows], "uncertainty", "entropy")
    assert worse.high < 0
    few = parts.draws.area_gap([run(8, noise[:8])], "uncertainty", "random")
    assert few.low <= 0 <= few.high


def test_costs_are_measured_on_request_only(parts, monkeypatch):
    from runner import new_parser

    parser = new_parser(parts.plan.STUDY)
    assert parser.parse_args([]).parts == [
        "choice",
        "main",
        "ablations",
        "grid",
        "deviation",
        "cases",
        "compared",
        "usage",
    ]
    assert parser.parse_args(["--parts", "cost"]).parts == ["cost"]


def test_the_highest_mean_is_chosen_and_ties_go_to_the_default(parts):
    family, sets = parts.variants.FAMILIES["textcnn"], ("one", "two")

    def won(best: dict[str, tuple[float, float]], missing: int = 0) -> str | None:
        results = [
            {"choice": choice, "set": name, "accuracy": best.get(choice, (0.5, 0.5))[place]}
            for choice in family
            for place, name in enumerate(sets)
        ]
        return parts.selection.winner(family, results[missing:], sets)

    assert won({"textcnn_rate-0.002_lcl-0.6": (0.4, 0.7)}) == "textcnn_rate-0.002_lcl-0.6"
    assert won({}) == "textcnn_rate-0.0008_lcl-0.9", "the default"
    best = dict.fromkeys(["textcnn_rate-0.0003_lcl-0.9", "textcnn_rate-0.002_lcl-0.6"], (0.7, 0.6))
    assert won(best) == "textcnn_rate-0.0003_lcl-0.9", "the first listed"
    assert won(best, missing=1) is None


def test_chosen_variants_wait_for_every_choice_and_use_the_winner(parts, plant, data, tmp_path, monkeypatch):
    options = dataclasses.replace(settings(parts, data, tmp_path), small=False)
    monkeypatch.setattr(parts.selection, "GRID_SETS", ("toxic_conversations", "massive_intent"))
    monkeypatch.setattr(parts.experiments, "SETS", ("toxic_conversations",))
    every = list(parts.plan.STUDY.parts["choice"](options))
    winners = ("textcnn_rate-0.002_lcl-0.6", "mean_rate-0.01")
    rows = [
        {"part": piece.part, **piece.facts, "accuracy": 0.9 if piece.facts["choice"] in winners else 0.8}
        for piece in every
    ]
    plant("uncertainty", rows)

    def configs(part: str) -> dict[str, Any]:
        pieces = parts.plan.STUDY.parts[part](options)
        return {piece.facts["variant"]: piece.facts["config"] for piece in pieces if "config" in piece.facts}

    chosen = configs("main")["textcnn-chosen"]
    assert (chosen["learning_rate"], chosen["contrastive_weight"]) == (2e-3, 0.6)
    assert chosen | {"learning_rate": 8e-4, "contrastive_weight": 0.9} == configs("main")["textcnn-both"]
    assert configs("ablations")["mean-chosen"] == configs("ablations")["mean-base"] | {"learning_rate": 1e-2}
    assert configs("ablations")["simcse-chosen"] == configs("ablations")["textcnn-simcse-0.05"], "the default"
    assert configs("ablations")["cls-chosen"] == configs("ablations")["cls-base"], "equal ones: the default"
    assert parts.selection.waiting(options, ["main", "ablations"]) == []

    (gone,) = [row for row in rows if (row["set"], row["choice"]) == ("massive_intent", "textcnn_rate-0.0001_lcl-0.6")]
    plant("uncertainty", (row for row in rows if row is not gone))
    assert "textcnn-chosen" not in configs("main")
    assert "mean-chosen" in configs("ablations"), "its own are there"
    assert parts.selection.waiting(options, ["main", "ablations"]) == ["textcnn-chosen"]

    plant("uncertainty", [{**gone, "revision": "of last year"}])
    with pytest.raises(SystemExit, match=r"rate-0.0001_lcl-0.6 was run with other settings \(revision"):
        configs("main")


def test_the_probe_chooses_c_among_those_of_its_study(parts):
    assert parts.probe.linear_probe(tuned=True).param_grid == {"C": [1.0, 10.0, 100.0]}, "REZE's results are of these"
    assert parts.experiments.PROBES["probe-tuned"][-1] == 1000.0
    assert parts.probe.linear_probe(tuned=True, choices=(1.0, 7.0)).param_grid == {"C": [1.0, 7.0]}
    assert parts.probe.linear_probe(tuned=False).C == 1.0


def test_choices_use_no_test_row(parts, data, tmp_path, monkeypatch):
    options = settings(parts, data, tmp_path)
    (piece, *_) = parts.plan.STUDY.parts["choice"](options)
    kept, held, seen = [], [], []
    train, outputs = parts.choose.trained_head, parts.choose.outputs_of_states

    def train_on(*given: Any) -> Any:
        kept.extend(given[-1])
        return train(*given)

    def outputs_of(encoder: Any, head: Any, states: Any, rows: list[int]) -> Any:
        assert states is parts.choose.states_of(options, "toxic_conversations")[0], "of the train rows"
        held.extend(rows)
        return outputs(encoder, head, states, rows)

    monkeypatch.setattr(parts.choose, "trained_head", train_on)
    monkeypatch.setattr(parts.choose, "outputs_of_states", outputs_of)
    monkeypatch.setattr(parts.choose, "scored", lambda _logits, _answers, rows, _names: seen.extend(rows.texts) or {})
    piece.work()
    rows = parts.states.both(options, "toxic_conversations")[0]
    assert not set(kept) & set(held), "what is scored was not trained on"
    assert sorted(kept + held) == list(range(len(rows))), "and all rows are one or the other, once"
    assert len(held) == 5
    assert seen == [rows.texts[row] for row in held]
    assert all(text.startswith("train") for text in seen)


def test_results_of_other_data_or_options_are_refused(parts, plant, data, tmp_path):
    options = settings(parts, data, tmp_path)
    makers = {part: make for part, make in parts.plan.STUDY.parts.items() if part != "compared"}  # it has no options
    pieces = {part: next(iter(make(options))) for part, make in makers.items()}
    assert all(piece.facts["revision"].startswith("sha256:") for piece in pieces.values())
    assert pieces["main"].facts["c_choices"] == (1.0,)
    assert pieces["usage"].facts["config"]["validation"] == 0.1
    every = {field.name for field in dataclasses.fields(UncertaintyConfig)} - {"cache_bytes"}
    assert all(set(piece.facts["config"]) == every for part, piece in pieces.items() if part != "main")
    piece = pieces["choice"]
    for key, other in (("revision", "sha256:0"), ("config", piece.facts["config"] | {"epochs": 3})):
        out = plant("uncertainty", [{"part": piece.part, "name": piece.name, **piece.facts, key: other}])
        with pytest.raises(SystemExit, match=f"other settings \\({key} "):
            parts.pieces.refuse_stale([piece], out)


def test_the_revision_of_data_is_its_source_or_else_a_hash_of_its_files(parts, data, tmp_path):
    revision = parts.sets.revision
    hashed = [revision(data / "mteb" / name) for name in ("toxic_conversations", "massive_intent")]
    assert hashed[0] == hashed[1], "the same rows"
    (tmp_path / "meta.json").write_text(json.dumps({"source": [{"repo": "a/b", "commit": "12"}]}))
    assert revision(tmp_path) == "a/b@12"


def test_answers_are_stored_row_by_row_outside_the_results(parts, data, tmp_path, monkeypatch):
    options = settings(parts, data, tmp_path)
    found = {}
    own = parts.experiments.outputs_of_states
    monkeypatch.setattr(parts.experiments, "outputs_of_states", lambda *given: found.setdefault("outputs", own(*given)))
    (piece,) = [one for one in parts.plan.STUDY.parts["main"](options) if one.facts.get("variant") == "textcnn-both"]
    result = piece.work()
    kept = parts.answers.kept(options, "toxic_conversations", "textcnn-both", 0)
    assert (kept.uncertainty == found["outputs"].uncertainty).all()
    assert kept.right.mean() == result["accuracy"]
    for by in ("uncertainty", "entropy"):
        assert rejection_curve(getattr(kept, by), kept.right).area == pytest.approx(result["area"][by])
    assert not {"right", "uncertainty", "entropy"} & set(result)
    with pytest.raises(FileNotFoundError, match=r"no .*probe_seed0.safetensors: .* run it again here"):
        parts.compared._run(options, "toxic_conversations")


def test_the_grid_reads_shared_runs_from_the_main_table(parts):
    twin = parts.variants.grid_twin
    assert twin("kl_weight", 1e-3) == twin("learning_rate", 8e-4) == "textcnn-both"
    assert twin("contrastive_weight", 0.0) == "textcnn-ucl"
    assert twin("contrastive_weight", 0.3) is None


def test_usage_covers_every_set(parts, data, tmp_path, monkeypatch):
    monkeypatch.setattr(parts.settings, "revision", lambda folder: folder.name)
    options = dataclasses.replace(settings(parts, data, tmp_path), small=False)
    assert {piece.facts["set"] for piece in parts.plan.STUDY.parts["usage"](options)} == set(parts.sets.SETS)


@pytest.mark.filterwarnings("ignore:fit held out 2 rows")
def test_usage_reports_the_promised_risks(parts, data, tmp_path):
    options = settings(parts, data, tmp_path)
    (piece, *_) = parts.plan.STUDY.parts["usage"](options)
    found = piece.work()
    assert set(found["ece"]) == {"held out, before", "held out, after", "test, before", "test, after"}
    shares = [found["coverage"][wanted]["coverage"] for wanted in ("0.9", "0.8", "0.5")]
    assert shares == sorted(shares, reverse=True)
    assert found["risk"] == dict.fromkeys(("0.1", "0.05", "0.02")), "two held-out rows promise nothing"


def cost_of(parts: Any, options: Any, what: str, extractor: str = "textcnn") -> dict[str, Any]:
    pieces = {
        (piece.facts["what"], piece.facts["extractor"]): piece for piece in parts.plan.STUDY.parts["cost"](options)
    }
    assert pieces[what, extractor].alone
    return pieces[what, extractor].work()


def test_latency_is_with_the_head_relative_to_the_encoder_alone(parts, data, tmp_path, monkeypatch):
    seconds = {"encoder": [1.0, 2.0, 4.0], "with head": [3.0, 3.0, 8.0]}
    monkeypatch.setattr(parts.cost, "_in_turns", lambda ways, _turns: {way: seconds[way] for way in ways})
    monkeypatch.setattr(parts.cost.os, "getloadavg", lambda: (1.5, 1.0, 0.5))
    found = cost_of(parts, settings(parts, data, tmp_path), "latency")
    assert found["ratio"] == 2.0, "of the quotients 3, 1.5 and 2 the median"
    assert found["texts_per_second"] == {"encoder": 32 / 2.0, "with head": 32 / 3.0}
    assert found["parameters"]["head"] > 0
    assert found["load_average"] == [1.5, 1.0, 0.5]


def test_an_epoch_is_relative_to_encoding(parts, data, tmp_path, monkeypatch):
    seconds = {"stored": 2.0, "encoded again": 12.0, "encoding": 8.0, "reading": 0.25}
    monkeypatch.setattr(parts.cost, "_in_turns", lambda ways, _turns: {way: [seconds[way]] * 3 for way in ways})
    found = cost_of(parts, settings(parts, data, tmp_path), "epoch")
    assert found["ratio"] == 8 / 2
    assert found["training included"] == 12 / 2
    assert found["encoding to reading"] == 8 / 0.25


def test_ways_are_timed_in_turns_after_a_warm_up_turn(parts, monkeypatch):
    clock, order = [0.0], []
    monkeypatch.setattr(parts.cost.time, "perf_counter", lambda: clock[0])

    def way(name: str, takes: float) -> Any:
        def run() -> None:
            order.append(name)
            clock[0] += takes * (10 if len(order) <= 2 else 1)

        return run

    found = parts.cost._in_turns({"one": way("one", 1.0), "two": way("two", 3.0)}, 2)
    assert order == ["one", "two", "two", "one", "one", "two"]
    assert found == {"one": [1.0, 1.0], "two": [3.0, 3.0]}
    assert parts.cost._in_turns({"told": lambda: 0.125}, 1) == {"told": [0.125]}, "a way that timed itself"


@pytest.mark.parametrize(("what", "extractor"), [("latency", "textcnn"), ("epoch", "attention")])
def test_costs_are_measured(parts, data, tmp_path, what, extractor):
    found = cost_of(parts, settings(parts, data, tmp_path), what, extractor)
    assert all(value > 0 for value in found["median_seconds"].values())


def test_every_variant_is_a_configuration(parts):
    everything = {**parts.variants.MAIN, **parts.variants.ABLATIONS}
    for options in everything.values():
        UncertaintyConfig(**options)
    assert set(everything) >= set(parts.paper.QWEN3)
    for chosen in parts.variants.CHOSEN.values():
        assert set(chosen.values()) <= set(parts.report.TITLES)
    for name, temperature in (("simcse", 0.05), ("supcon", 0.1)):
        family = parts.variants.FAMILIES[name].values()
        assert {options["contrastive_temperature"] for options in family} == {temperature}, "its own, not LCL's"
        assert {0.05, 0.1, 0.5, UncertaintyConfig.contrastive_weight} == {one["contrastive_weight"] for one in family}
    assert set(parts.variants.ABLATIONS) <= {*parts.report.TITLES} | {
        f"{extractor}-{part}" for extractor in parts.report.PARTED for part in parts.variants.PARTS
    }
    for name, options in parts.variants.CONTRASTIVE.items():
        assert options["contrastive_temperature"] == 2.0, f"{name}: fixed in section 5.3"


def test_figure_3_includes_the_defaults_and_the_papers_values(parts):
    for option, values in parts.variants.GRID.items():
        assert parts.variants.full_config({})[option] in values
        assert list(values) == sorted(values)
    assert {0.6, 0.7, 0.9} <= set(parts.variants.GRID["contrastive_weight"])
    assert min(parts.variants.GRID["kl_weight"][1:]) < 1e-3 / 768, "the mean over coordinates, if that was meant"


def made_up_results(parts: Any) -> list[dict[str, Any]]:
    """Minimal results of every piece of one encoder; the whole method is right on one more row."""
    rng, names = np.random.default_rng(0), ["no", "yes"]
    truth = ["no", "yes"] * 10
    test = parts.sets.Rows(["text"] * len(truth), truth)
    toward = np.array([[1.0, -1.0], [-1.0, 1.0]] * 10)

    def scored(*, right: int, doubts: bool) -> tuple[Any, dict[str, Any]]:
        signs = np.where(np.arange(len(truth)) < right, 1, -1)[:, None]
        logits = (signs * toward * rng.uniform(1, 2, (len(truth), 1))).astype(np.float32)
        doubt = (rng.random(len(truth)) + (signs[:, 0] < 0) if doubts else np.zeros(len(truth))).astype(np.float32)
        own = parts.experiments.answered(logits, doubt, test, names)
        result = parts.experiments.scored(logits, own, test, names) | parts.experiments.curves_of(own)
        return own, result | {"epochs": 7, "rows": 40, "c": 10.0}

    (ours, whole), (theirs, plain) = scored(right=16, doubts=True), scored(right=15, doubts=False)
    rows: list[dict[str, Any]] = []

    def write(part: str, **result: Any) -> None:
        rows.append({"part": part, "encoder": "tiny", "seed": 0, **result})

    every = {"main": [*parts.report.MAIN], "ablations": [*parts.variants.ABLATIONS]}
    every["ablations"] += parts.variants.CHOSEN["ablations"].values()
    for name in parts.sets.SETS:
        for part, variants in every.items():
            for variant in variants:
                found = whole if variant.endswith(("-ucl", "-both", "-chosen")) else plain
                write(part, set=name, variant=variant, **found)
        better = ("textcnn-ucl", *parts.compared.METHODS)
        runs = {variant: [ours if variant in better else theirs] for variant in parts.report.MAIN}
        write("compared", set=name, **parts.compared.compared(runs))
        kept = {"coverage": 0.8, "accuracy": 0.75}
        ece = {"test, before": 0.25, "test, after": 0.125}
        shares = {"coverage": {"0.8": kept}, "risk": {"0.05": None if name == "imdb" else kept}}
        write("usage", set=name, held_out=20, accuracy=0.5, ece=ece, by="entropy", **shares)
    for name in parts.variants.GRID_SETS:
        for choice in parts.variants.CHOICES:
            better = whole if choice == "mlp_rate-0.0003" else plain
            write("choice", set=name, choice=choice, **better)
        for option, values in parts.variants.GRID.items():
            for value in values:
                write("grid", set=name, variant=f"{option}-{value:g}", **whole)
        area = whole["area"] | {"variance": whole["area"]["random"] + 0.125}
        facts = {"form": "softplus", "kl": "mean", "kl_weight": 0.1, "levels": {"hard": 5}, "area": area}
        write("deviation", set=name, **whole | facts)
    for variant in parts.cases.VARIANTS:
        case = {"text": "a kind text", "truth": "yes", "answer": "yes", "uncertainty": 0.25, "entropy": 0.5}
        write("cases", variant=variant, cases={next(iter(parts.cases.CASES)): case})
    for length in ("short", "long"):
        parameters = {"encoder": 1000, "head": 250}
        rates = {"encoder": 64.0, "with head": 51.2}
        load = {"length": length, "load_average": [0.5, 0.2, 0.1]}
        latency = {"tokens": 320, "batch": 32, "texts_per_second": rates, "parameters": parameters}
        ratios = {"ratio": 2.5, "training included": 3.5, "encoding to reading": 40.0}
        for extractor, ratio in (("textcnn", 1.25), ("attention", 1.02)):
            load["extractor"] = extractor
            write("cost", what="latency", ratio=ratio, **latency, **load)
            write("cost", what="epoch", **ratios, **load)
    return rows


@pytest.mark.slow
def test_every_block_of_the_page_is_made_from_the_results(parts, plant, monkeypatch):
    every = {**parts.report.BLOCKS, **parts.differences.BLOCKS}
    for module in (parts.report, parts.differences):
        monkeypatch.setattr(module, "ENCODERS", ("tiny",))
    plant("uncertainty", made_up_results(parts))
    page = {name.removeprefix("uncertainty-"): make() for name, make in every.items()}
    for name, block in page.items():
        assert "not run yet" not in block, name
        assert "nan" not in block, name
        assert len({line.count("|") for line in block.splitlines() if "|" in line}) == 1 or name == "seeds", name
    assert page["deviation"].count("| softplus | mean | 0.1 | 80.0; ") == 1
    assert "+12.5, " in page["deviation"]
    assert page["deviation"].count("; 25.0 %") == 3, "IMDB was not run at 512 tokens"

    assert "| a kind text | local dependency | yes | 1 of 1 | 1 of 1 | 1 of 1 | 25% | 50% |" in page["cases"]
    assert "| eat the watermelon | ambiguous | not among these test rows |" in page["cases"]

    def cells(name: str, *starts: str) -> list[str]:
        (line,) = [
            line for line in page[name].splitlines() if line.startswith("| " + "".join(f"{one} | " for one in starts))
        ]
        return [cell.strip() for cell in line.strip("|").split("|")][len(starts) :]

    head = page["main"].splitlines()[0]
    assert " | AmazonCounterfactual, 40 of 4,018 train rows, 20 of 670 test rows | " in head
    assert " | MassiveIntent‡, 40 train rows of another corpus (the paper: 11,514), 20 of 2,974 test rows | " in head
    beside_the_paper = {"main", "gains", "parts", "every-part", "extractors"}
    assert {name for name, block in page.items() if parts.report.NOTE in block} == beside_the_paper
    assert {name for name, block in page.items() if "‡" in block} == beside_the_paper
    assert cells("main", "tiny", "TextCNN + both, chosen") == ["80.0"] * 8 + ["80.00"] * 2
    assert cells("main", "tiny", "linear probe") == ["75.0"] * 8 + ["75.00"] * 2
    assert [cell[:4] for cell in cells("gains", "tiny", "TextCNN + both", "linear probe")[:8]] == ["+5.0"] * 8
    assert cells("gains", "tiny", "TextCNN + both, chosen", "TextCNN")[-1] == "+5.00"
    assert cells("parts", "tiny", "TextCNN")[0].startswith("75.00 (")
    assert cells("parts", "tiny", "[CLS]")[3].startswith("80.00 (")
    assert page["every-part"].count("\n|") == 1 + 12, "three extractors with four parts"
    assert cells("every-part", "tiny", "attention + UCL")[-1] == "91.24", "the paper's mean"
    assert cells("extractors", "tiny", "MLP of the same size, rate chosen")[8:] == ["80.00", "-"]
    assert cells("choice", "tiny", "**mlp, rate-0.0003**")[-1] == "80.00"
    assert "**textcnn, rate-0.0008, lcl-0.9**" in page["choice"], "of equal ones the default"
    assert page["choice"].count("**") == 2 * len(parts.variants.FAMILIES)
    assert cells("usage", "tiny", "Banking77") == [
        "20",
        "0.500",
        "0.250",
        "0.125",
        "0.80, 0.750",
        "1 of 1: 0.80, worst 0.250",
        "entropy",
    ]
    assert cells("usage", "tiny", "Imdb")[5] == "never possible"
    assert cells("cost", "tiny", "TextCNN", "long, 10 tokens") == [
        "25.0%",
        "1.250",
        "500.0 to 625.0",
        "64 to 51",
        "2.5",
        "3.5",
        "40",
        "0.5",
    ]
    assert page["seeds"].startswith("tiny: seeds 0; C of the tuned probe AmazonCounterfactual 10,")
    assert "epochs AmazonCounterfactual 7, Banking77 7" in page["seeds"]

    assert cells("areas", "tiny", "TextCNN + both", "Imdb")[0].startswith("+")


def test_an_incomplete_seed_shows_its_number_of_complete_sets(parts, plant):
    runs = [(0, name, variant) for name in parts.sets.SETS for variant in ("textcnn-base", "textcnn-both")]
    runs += [(1, "imdb", "textcnn-base"), (1, "banking77", "textcnn-base"), (1, "banking77", "textcnn-both")]
    common = {"part": "main", "encoder": "tiny"}
    plant("uncertainty", ({**common, "set": name, "variant": one, "seed": seed} for seed, name, one in runs))
    assert parts.report._seeds("tiny", "main", ("textcnn-base", "textcnn-both")) == "0, 1 (1 of 8 sets)"
    assert parts.report._seeds("other", "main", ("textcnn-base",)) == ""


def test_a_set_with_all_of_the_papers_rows_has_only_its_name_as_head(parts, plant, monkeypatch):
    whole = parts.paper.ROWS.items()
    common = {"part": "main", "encoder": "tiny"}
    plant("uncertainty", [{**common, "set": name, "rows": train, "test_rows": test} for name, (train, test) in whole])
    monkeypatch.setattr(parts.report, "ENCODERS", ("tiny",))
    titles = dict(zip(parts.sets.SETS, parts.report.titles_with_rows(), strict=True))
    marked = {"mtop_domain", "massive_intent", "massive_scenario", "toxic_conversations"}
    assert {name for name, title in titles.items() if "‡" in title} == marked
    for name in set(titles) - {"massive_intent", "massive_scenario"}:  # as many rows as there, and yet others
        assert titles[name].removesuffix("‡") == parts.sets.SETS[name]


def test_the_papers_rows_match_its_table_1_and_the_notes_of_the_data(parts):
    if not (PAPER.is_file() and (SHARED / "data" / "mteb").is_dir()):
        pytest.skip("the papers or the data are not here")
    text = PAPER.read_text(encoding="utf-8")
    for name, (train, test) in parts.paper.ROWS.items():
        assert re.search(rf"{train:,}\s+{test:,}|{train}\s+{test}", text), name
        notes = json.loads((SHARED / "data" / "mteb" / name / "meta.json").read_text(encoding="utf-8"))
        assert notes["expected_rows"] == {"train": train, "test": test}, name


def test_the_papers_numbers_equal_its_tables(parts):
    if not PAPER.is_file():
        pytest.skip("the papers are not here")
    text = PAPER.read_text(encoding="utf-8")
    for table in (parts.paper.QWEN3, parts.paper.GEMMA):
        for row in table.values():
            for value in row.values():
                assert re.search(rf"(?<!\d){value:.2f}(?!\d)", text), value
    means = [sum(row.values()) / 8 for row in (parts.paper.QWEN3["textcnn-both"], parts.paper.QWEN3["cls-base"])]
    assert [round(mean, 2) for mean in means] == [92.05, 90.47]
