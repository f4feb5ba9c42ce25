"""The uncertainty-aware paper's experiments: every part runs, the runner goes on, tables and figures come out."""

import dataclasses
import importlib
import json
import re
import statistics
import sys
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
PAPER = ROOT.parent / "shared" / "papers" / "uncertainty-aware-contrastive.txt"
TINY = ROOT / "tests" / "data" / "tiny-bert"
LABELS = ("not toxic", "toxic")
MODULES = (
    "aims",
    "choose",
    "cost",
    "draws",
    "experiments",
    "paper",
    "pictures",
    "report",
    "selection",
    "sets",
    "settings",
)
MODULES += ("states", "usage", "variants")


@pytest.fixture
def parts(monkeypatch: pytest.MonkeyPatch) -> Any:
    """The modules under test by name; they import one another from benchmarks/."""
    monkeypatch.syspath_prepend(str(ROOT / "benchmarks"))
    import pieces
    import probe
    import run_uncertainty

    names = {name: importlib.import_module(f"uncertainty.{name}") for name in MODULES}
    return type("Parts", (), {**names, "run": run_uncertainty, "pieces": pieces, "probe": probe})


@pytest.fixture(scope="module")
def data(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Two sets in the layout of the shared data, made up."""
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
    return parts.settings.Settings(data=data, out=out, states=out / "states", encoder=str(TINY), small=True, **options)


def test_draws_keep_the_shares_of_the_classes_and_are_the_same_each_time(parts, data):
    rows = parts.sets.train_rows("toxic_conversations", data, 12)
    assert [rows.truth.count(label) for label in LABELS] == [6, 6]
    assert rows == parts.sets.train_rows("toxic_conversations", data, 12)
    assert len(parts.sets.test_rows("toxic_conversations", data, 4)) == 4
    assert len(parts.sets.train_rows("massive_intent", data, None)) == 30  # the validation rows too


@pytest.mark.slow
def test_every_part_runs_and_goes_on_and_the_page_gets_its_tables(parts, data, tmp_path, monkeypatch, capsys):
    out = tmp_path / "results"
    words = ["run_uncertainty.py", "--data", str(data), "--out", str(out), "--states", str(tmp_path / "states")]
    words += ["--encoder", str(TINY), "--small"]
    wanted = ["choice", "main", "ablations", "grid"]
    monkeypatch.setattr(parts.experiments, "SHOWN", {"toxic_conversations": 8})
    monkeypatch.setattr(sys, "argv", [*words, "--parts", *wanted, "--minutes", "0"])
    parts.run.main()
    assert "pieces are left" in capsys.readouterr().out
    monkeypatch.setattr(sys, "argv", [*words, "--parts", *wanted])
    parts.run.main()
    assert "not run: textcnn-chosen;" in capsys.readouterr().out, "choices were not there when the call began"
    parts.run.main()
    printed = capsys.readouterr().out
    assert printed.count("[") == 1
    assert "toxic_conversations_textcnn-chosen_seed0\nall pieces are there" in printed
    parts.run.main()
    assert "[" not in capsys.readouterr().out, "nothing is run twice"

    monkeypatch.setattr(parts.report, "OUT", out)
    monkeypatch.setattr(parts.report, "ENCODERS", ("tiny-bert",))
    monkeypatch.setattr(parts.report, "GRID_SETS", ("toxic_conversations",))
    monkeypatch.setattr(parts.aims, "ENCODERS", ("tiny-bert",))
    every = {**parts.report.BLOCKS, **parts.aims.BLOCKS}
    for name in ("choice", "main", "extractors", "grid", "rejection", "difficulty", "gains", "targets", "seeds"):
        assert every[f"uncertainty-{name}"]() != parts.report.NOT_YET, name
    assert "| tiny-bert | TextCNN + both |" in parts.report.main()

    monkeypatch.setattr(parts.pictures, "OUT", out)
    monkeypatch.setattr(parts.pictures, "ENCODERS", ("tiny-bert",))
    monkeypatch.setattr(parts.pictures, "GRID_SETS", ("toxic_conversations",))
    monkeypatch.setattr(parts.pictures, "SHOWN", {"toxic_conversations": 8})
    monkeypatch.setattr(parts.pictures.rejection_figure, "__defaults__", ("tiny-bert",))
    drawn = parts.pictures.all_figures(tmp_path)
    assert [file.name for file in drawn] == [
        "uncertainty-options.png",
        "uncertainty-maps.png",
        "uncertainty-rejection.png",
    ]


def test_states_in_parts_are_those_of_the_whole(parts, data, tmp_path, monkeypatch):
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


def test_vectors_from_states_are_the_encoders_own(parts, data, tmp_path):
    options = settings(parts, data, tmp_path)
    vectors = parts.states.vectors_of(options, "toxic_conversations")[1]
    own = parts.states.opened(options).encode(parts.states.both(options, "toxic_conversations")[1].texts)
    assert vectors == pytest.approx(own, abs=0.01)


def test_a_gain_is_a_mean_over_seeds_of_the_same_rows(parts):
    ours = [{"right": "1111"}, {"right": "1100"}]
    gain, error = parts.aims.paired_gain(ours, [{"right": "1000"}])
    assert gain == pytest.approx((0 + 1 + 0.5 + 0.5) / 4)
    assert error == pytest.approx(statistics.stdev([0, 1, 0.5, 0.5]) / 2)


def test_a_drawn_area_is_that_of_the_drawn_rows(parts):
    rng = np.random.default_rng(0)
    doubt, right = rng.random(60), rng.random(60) < 0.7
    areas = parts.draws.drawn_areas(" ".join(f"{value:.7g}" for value in doubt), "".join("01"[int(v)] for v in right))
    rows = parts.draws.drawn_rows(60)
    assert areas.shape == (1000,)
    assert len(np.unique(rows[0])) < 60, "with replacement"
    by_hand = [rejection_curve(doubt[own], right[own]).area for own in rows[:60]]
    assert areas[:60] == pytest.approx(by_hand), "in more than one go"


def test_rows_in_doubt_alike_have_the_drawn_area_of_chance(parts):
    same = parts.draws.drawn_areas("1 1 1 1 1", "11001")
    assert same == pytest.approx(np.full(1000, 0.6))
    assert parts.draws.drawn_areas("", "11001").std() > 0.1


def test_areas_are_told_apart_where_doubt_finds_the_errors_of_enough_rows(parts):
    def run(count: int, doubts: np.ndarray) -> dict[str, Any]:
        right = np.arange(count) % 4 > 0
        kept = {
            by: " ".join(f"{value:.7g}" for value in own)
            for by, own in (("uncertainty", doubts), ("entropy", 1.0 - right))
        }
        found = {by: rejection_curve(np.array(own.split(), float), right).area for by, own in kept.items()}
        return {**kept, "right": "".join("01"[int(v)] for v in right), "area": {**found, "random": right.mean()}}

    noise = np.random.default_rng(0).random(2000)
    gap = parts.draws.area_gap([run(2000, noise)], "uncertainty", "random")
    assert gap.low < gap.value < gap.high
    assert not gap.is_told, "noise is chance"
    knows = run(2000, noise - 3.0 * (np.arange(2000) % 4 > 0))
    gap = parts.draws.area_gap([knows, knows], "uncertainty", "random")
    assert gap.is_told
    assert 0 < gap.low < gap.value < gap.high < 0.25
    worse = parts.draws.area_gap([run(2000, noise), knows], "uncertainty", "entropy")
    assert worse.is_told
    assert worse.high < 0
    assert not parts.draws.area_gap([run(8, noise[:8])], "uncertainty", "random").is_told


@pytest.mark.parametrize(
    ("curve", "does", "falls"),
    [
        ([0.8, 0.85, 0.9, 0.9, 0.95] * 2, False, 0.15),
        (np.linspace(0.8, 1.0, 10), True, 0.0),
        ([*np.linspace(0.8, 1.0, 9), 0.0], True, 0.0),  # a single text is left
        ([0.8, 0.9, 0.95, 0.945, 0.941, 0.942, 0.943, 0.95, 0.96, 1.0], True, 0.009),
        ([0.8, 0.9, 0.95, 0.94, 0.93, 0.93, 0.93, 0.95, 0.96, 1.0], False, 0.02),  # half less all would be a rise
        ([0.8] * 10, False, 0.0),
    ],
)
def test_a_curve_rises_if_no_part_of_it_falls(parts, curve, does, falls):
    runs = [{"curve": {"uncertainty": [value + 1e-12 for value in curve]}}] * 2
    assert parts.aims.largest_fall(runs) == pytest.approx(falls)
    assert parts.aims.rises(runs) == does


def test_the_average_gain_is_a_row_of_its_own(parts, monkeypatch):
    rights = {"textcnn-both": ("1111", "1100"), "probe": ("1110", "1110")}

    def runs_of(part: str, _encoder: str, name: str, variant: str) -> list[dict[str, str]]:
        assert part == "main"
        own = dict(zip(("banking77", "imdb"), rights[variant], strict=True))
        return [{"right": own[name]}] if name in own else []

    monkeypatch.setattr(parts.report, "runs_of", runs_of)
    words, reached, missed, unsure = parts.aims.average_gain("any", "textcnn-both", "probe")
    assert words == "average accuracy over 2 of 8 tasks above the linear probe's"
    error = 196 * (0.5 / 2) / 2 * 2**0.5
    assert reached == f"no, +0.00 ± {error:.2f}"
    assert missed == "Imdb"
    assert unsure == "Banking77, Imdb"


def test_costs_are_measured_only_when_asked_for(parts, monkeypatch):
    given = []
    monkeypatch.setattr(parts.run, "run_parts", lambda options, *_args, **_more: given.append(options.parts))
    for words in ([], ["--parts", "cost"]):
        monkeypatch.setattr(sys, "argv", ["run_uncertainty.py", *words])
        parts.run.main()
    assert given == [["choice", "main", "ablations", "grid", "usage"], ["cost"]]


def test_what_is_chosen_has_the_highest_mean_and_of_equal_ones_the_default_wins(parts):
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


def test_chosen_variants_wait_for_every_choice_and_take_what_won(parts, data, tmp_path, monkeypatch):
    options = dataclasses.replace(settings(parts, data, tmp_path), small=False)
    monkeypatch.setattr(parts.selection, "GRID_SETS", ("toxic_conversations", "massive_intent"))
    monkeypatch.setattr(parts.experiments, "SETS", ("toxic_conversations",))
    every = list(parts.run.PARTS["choice"](options))
    for piece in every:
        won = piece.facts["choice"] in ("textcnn_rate-0.002_lcl-0.6", "mean_rate-0.01")
        result = {**piece.facts, "accuracy": 0.9 if won else 0.8}
        piece.path(tmp_path).parent.mkdir(exist_ok=True)
        piece.path(tmp_path).write_text(json.dumps(result))

    def configs(part: str) -> dict[str, Any]:
        pieces = parts.run.PARTS[part](options)
        return {piece.facts["variant"]: piece.facts["config"] for piece in pieces if "config" in piece.facts}

    chosen = configs("main")["textcnn-chosen"]
    assert (chosen["learning_rate"], chosen["contrastive_weight"]) == (2e-3, 0.6)
    assert chosen | {"learning_rate": 8e-4, "contrastive_weight": 0.9} == configs("main")["textcnn-both"]
    assert configs("ablations")["mean-chosen"] == configs("ablations")["mean-base"] | {"learning_rate": 1e-2}
    assert configs("ablations")["simcse-chosen"] == configs("ablations")["textcnn-simcse-0.05"], "the default"
    assert configs("ablations")["cls-chosen"] == configs("ablations")["cls-base"], "equal ones: the default"
    assert parts.selection.waiting(options, ["main", "ablations"]) == []

    (gone,) = [piece for piece in every if piece.name.endswith("intent_textcnn_rate-0.0001_lcl-0.6")]
    gone.path(tmp_path).unlink()
    assert "textcnn-chosen" not in configs("main")
    assert "mean-chosen" in configs("ablations"), "its own are there"
    assert parts.selection.waiting(options, ["main", "ablations"]) == ["textcnn-chosen"]

    gone.path(tmp_path).write_text(json.dumps({**gone.facts, "accuracy": 0.8, "revision": "of last year"}))
    with pytest.raises(SystemExit, match=r"rate-0.0001_lcl-0.6.json was run with other settings \(revision"):
        configs("main")


def test_the_probe_chooses_c_among_those_of_its_study(parts):
    assert parts.probe.linear_probe(tuned=True).param_grid == {"C": [1.0, 10.0, 100.0]}, "REZE's results are of these"
    assert parts.experiments.PROBES["probe-tuned"][-1] == 1000.0
    assert parts.probe.linear_probe(tuned=True, choices=(1.0, 7.0)).param_grid == {"C": [1.0, 7.0]}
    assert parts.probe.linear_probe(tuned=False).C == 1.0


def test_choices_see_no_test_row(parts, data, tmp_path, monkeypatch):
    (piece, *_) = parts.run.PARTS["choice"](settings(parts, data, tmp_path))
    seen = []
    chooser = sys.modules["uncertainty.choose"]
    monkeypatch.setattr(chooser, "scored", lambda _logits, _std, rows, _names: seen.extend(rows.texts) or {})
    piece.work()
    assert len(seen) == 5
    assert all(text.startswith("train") for text in seen)


def test_results_of_other_data_or_options_are_refused(parts, data, tmp_path):
    options = settings(parts, data, tmp_path)
    pieces = {part: next(iter(make(options))) for part, make in parts.run.PARTS.items()}
    assert all(piece.facts["revision"].startswith("sha256:") for piece in pieces.values())
    assert pieces["main"].facts["c_choices"] == (1.0,)
    assert pieces["usage"].facts["config"]["validation"] == 0.1
    every = {field.name for field in dataclasses.fields(UncertaintyConfig)}
    assert all(set(piece.facts["config"]) == every for part, piece in pieces.items() if part != "main")
    piece = pieces["choice"]
    for key, other in (("revision", "sha256:0"), ("config", piece.facts["config"] | {"epochs": 3})):
        piece.path(tmp_path).parent.mkdir(exist_ok=True)
        piece.path(tmp_path).write_text(json.dumps(piece.facts | {key: other}))
        with pytest.raises(SystemExit, match=f"other settings \\({key} "):
            parts.pieces.refuse_stale([piece], tmp_path)


def test_the_revision_of_data_is_its_source_or_else_a_hash_of_its_files(parts, data, tmp_path):
    revision = parts.sets.revision
    hashed = [revision(data / "mteb" / name) for name in ("toxic_conversations", "massive_intent")]
    assert hashed[0] == hashed[1], "the same rows"
    (tmp_path / "meta.json").write_text(json.dumps({"source": [{"repo": "a/b", "commit": "12"}]}))
    assert revision(tmp_path) == "a/b@12"


def test_doubts_are_kept_row_by_row_with_all_their_digits(parts, data, tmp_path, monkeypatch):
    options = settings(parts, data, tmp_path)
    found = {}
    own = parts.experiments.outputs_of_states
    monkeypatch.setattr(parts.experiments, "outputs_of_states", lambda *given: found.setdefault("outputs", own(*given)))
    (piece,) = [one for one in parts.run.PARTS["main"](options) if one.facts.get("variant") == "textcnn-both"]
    result = piece.work()
    doubts = {by: np.array(result[by].split(), dtype=np.float64) for by in ("uncertainty", "entropy")}
    assert doubts["uncertainty"] == pytest.approx(found["outputs"].uncertainty, rel=1e-6)
    right = parts.report.right_of(result)
    for by, doubt in doubts.items():
        assert rejection_curve(doubt, right).area == pytest.approx(result["area"][by])


def test_the_grid_reads_from_the_main_table_what_it_has(parts):
    twin = parts.variants.grid_twin
    assert twin("kl_weight", 1e-3) == twin("learning_rate", 8e-4) == "textcnn-both"
    assert twin("contrastive_weight", 0.0) == "textcnn-ucl"
    assert twin("contrastive_weight", 0.3) is None


def test_usage_is_of_every_set(parts, data, tmp_path, monkeypatch):
    monkeypatch.setattr(parts.settings, "revision", lambda folder: folder.name)
    options = dataclasses.replace(settings(parts, data, tmp_path), small=False)
    assert {piece.facts["set"] for piece in parts.run.PARTS["usage"](options)} == set(parts.sets.SETS)


@pytest.mark.filterwarnings("ignore:fit held out 2 rows")
def test_usage_tells_what_promises_were_worth(parts, data, tmp_path):
    options = settings(parts, data, tmp_path)
    (piece, *_) = parts.run.PARTS["usage"](options)
    found = piece.work()
    assert set(found["ece"]) == {"held out, before", "held out, after", "test, before", "test, after"}
    shares = [found["coverage"][wanted]["coverage"] for wanted in ("0.9", "0.8", "0.5")]
    assert shares == sorted(shares, reverse=True)
    assert found["risk"] == dict.fromkeys(("0.1", "0.05", "0.02")), "two held-out rows promise nothing"


@pytest.mark.parametrize("what", ["latency", "epoch"])
def test_costs_are_ratios_of_what_was_measured_in_one_run(parts, data, tmp_path, what):
    options = settings(parts, data, tmp_path)
    (piece,) = [piece for piece in parts.run.PARTS["cost"](options) if piece.facts["what"] == what]
    assert piece.alone
    assert piece.work()["ratio"] > 0


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


def test_figure_3_goes_through_the_defaults_and_the_papers_own_values(parts):
    for option, values in parts.variants.GRID.items():
        assert getattr(UncertaintyConfig, option) in values
        assert list(values) == sorted(values)
    assert {0.6, 0.7, 0.9} <= set(parts.variants.GRID["contrastive_weight"])
    assert min(parts.variants.GRID["kl_weight"][1:]) < 1e-3 / 768, "the mean over coordinates, if that was meant"


def test_the_page_has_every_table_and_no_other(parts):
    page = (ROOT / "benchmarks" / "uncertainty" / "page.md").read_text(encoding="utf-8")
    opened, closed = re.findall(r"<!-- ([\w-]+) -->", page), re.findall(r"<!-- /([\w-]+) -->", page)
    assert opened == closed
    assert sorted(opened) == sorted([*parts.report.BLOCKS, *parts.aims.BLOCKS])


def test_the_papers_figures_are_those_of_its_tables(parts):
    if not PAPER.is_file():
        pytest.skip("the papers are not here")
    text = PAPER.read_text(encoding="utf-8")
    for table in (parts.paper.QWEN3, parts.paper.GEMMA):
        for row in table.values():
            for value in row.values():
                assert re.search(rf"(?<!\d){value:.2f}(?!\d)", text), value
    means = [sum(row.values()) / 8 for row in (parts.paper.QWEN3["textcnn-both"], parts.paper.QWEN3["cls-base"])]
    assert [round(mean, 2) for mean in means] == [92.05, 90.47]
