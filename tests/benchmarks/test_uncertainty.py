"""The uncertainty-aware paper's experiments: every part runs, the runner goes on, tables and figures come out."""

import json
import re
import sys
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

ROOT = Path(__file__).resolve().parents[2]
PAPER = ROOT.parent / "shared" / "papers" / "uncertainty-aware-contrastive.txt"
TINY = ROOT / "tests" / "data" / "tiny-bert"
LABELS = ("not toxic", "toxic")


@pytest.fixture
def parts(monkeypatch: pytest.MonkeyPatch) -> Any:
    """The modules under test by name; they import one another from benchmarks/."""
    monkeypatch.syspath_prepend(str(ROOT / "benchmarks"))
    import run_uncertainty
    from uncertainty import experiments, paper, pictures, report, sets, settings, variants

    names = {"run": run_uncertainty, "experiments": experiments, "paper": paper, "pictures": pictures}
    names |= {"report": report, "sets": sets, "settings": settings, "variants": variants}
    return type("Parts", (), names)


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
    wanted = ["main", "ablations", "grid", "maps"]
    monkeypatch.setattr(sys, "argv", [*words, "--parts", *wanted, "--minutes", "0"])
    parts.run.main()
    assert "pieces are left" in capsys.readouterr().out
    monkeypatch.setattr(sys, "argv", [*words, "--parts", *wanted])
    parts.run.main()
    assert "all pieces are there" in capsys.readouterr().out
    parts.run.main()
    assert "[" not in capsys.readouterr().out, "nothing is run twice"

    monkeypatch.setattr(parts.report, "OUT", out)
    monkeypatch.setattr(parts.report, "ENCODERS", ("tiny-bert",))
    monkeypatch.setattr(parts.report, "GRID_SETS", ("toxic_conversations",))
    for name in ("main", "extractors", "grid", "rejection", "difficulty", "seeds"):
        made = parts.report.BLOCKS[f"uncertainty-{name}"]()
        assert made != parts.report.NOT_YET, name
    assert "| tiny-bert | TextCNN + both |" in parts.report.main()

    monkeypatch.setattr(parts.pictures, "OUT", out)
    monkeypatch.setattr(parts.pictures, "ENCODERS", ("tiny-bert",))
    monkeypatch.setattr(parts.pictures, "GRID_SETS", ("toxic_conversations",))
    monkeypatch.setattr(parts.pictures, "SHOWN", ("toxic_conversations",))
    monkeypatch.setattr(parts.pictures.rejection_figure, "__defaults__", ("tiny-bert",))
    drawn = parts.pictures.all_figures(tmp_path)
    assert [file.name for file in drawn] == [
        "uncertainty-options.png",
        "uncertainty-maps.png",
        "uncertainty-rejection.png",
    ]


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
    from labelspace.config import UncertaintyConfig

    everything = {**parts.variants.MAIN, **parts.variants.ABLATIONS}
    for options in everything.values():
        UncertaintyConfig(**options)
    assert set(everything) >= set(parts.paper.QWEN3)
    assert set(parts.variants.ABLATIONS) <= {*parts.report.TITLES} | {
        f"{extractor}-{part}" for extractor in parts.report.PARTED for part in parts.variants.PARTS
    }
    for name, options in parts.variants.CONTRASTIVE.items():
        assert options["contrastive_temperature"] == 2.0, f"{name}: fixed in section 5.3"


def test_figure_3_goes_through_the_defaults_and_the_papers_own_values(parts):
    from labelspace.config import UncertaintyConfig

    for option, values in parts.variants.GRID.items():
        assert getattr(UncertaintyConfig, option) in values
        assert list(values) == sorted(values)
    assert {0.6, 0.7, 0.9} <= set(parts.variants.GRID["contrastive_weight"])
    assert min(parts.variants.GRID["kl_weight"][1:]) < 1e-3 / 768, "the mean over coordinates, if that was meant"


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
