"""The study of NLI heads: all heads share their pairs, a training goes on over calls, and the tables pair the heads."""

import dataclasses
import json
import shutil
import time
from collections import Counter
from itertools import count, islice, product
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from labelspace.bench import run as bench_run
from labelspace.training.nli import NLIModel, Pairs
from labelspace.training.nli.data import DEV_SOURCES
from labelspace.training.nli.schedule import highest_rates
from training.nli.toy import HYPOTHESES, write_pairs

ROOT = Path(__file__).resolve().parents[2]
TINY = ROOT / "tests" / "data" / "tiny-bert"
TITLES = {"paper": "2e-5 and 1e-4", "higher": "1e-4 and 5e-4"}


@pytest.fixture
def nli(study_of) -> Any:
    return study_of("nli", "run", "pieces")


@pytest.fixture(scope="module")
def data(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Made-up pairs, of which none is there twice, and one set of BTZSC."""
    folder, numbers = tmp_path_factory.mktemp("data"), count()
    (folder / "nli").mkdir()
    for split, sources, each in (("train", ("one", "two"), 48), ("dev", DEV_SOURCES, 18)):
        pairs = [
            (f"the team of day {next(numbers)}", HYPOTHESES[row % 3], row % 3, source)
            for source in sources
            for row in range(each)
        ]
        premises, hypotheses, labels, names = zip(*pairs, strict=True)
        made = Pairs(premises=premises, hypotheses=hypotheses, labels=labels, sources=names)
        write_pairs(folder / "nli" / f"{split}.parquet", made)
    place = folder / "btzsc" / "rottentomatoes"
    place.mkdir(parents=True)
    texts = [f"the team was good on day {number}" for number in range(30)]
    pq.write_table(pa.table({"text": texts, "label": [row % 2 for row in range(30)]}), place / "test.parquet")
    classes = [{"name": name, "hypothesis": f"It is {name}."} for name in ("negative", "positive")]
    (place / "labels.json").write_text(json.dumps({"classes": classes}))
    return folder


def made(nli: Any, data: Path, folder: Path, **options: Any) -> Any:
    sizes = {"max_pairs": 64, "epochs": 2, "stop_per_class": 2, "dev_per_class": 3, "rows": 20, "small": True}
    own = {"data": data, "out": folder / "nli.jsonl", "models": folder / "models", "encoder": str(TINY)}
    return nli.settings.Settings(**own, **{**sizes, **options})


# Pairs and pieces


def test_heads_are_compared_on_balanced_pairs_that_stopped_no_training(nli, data, tmp_path):
    found = nli.heads._data(made(nli, data, tmp_path))
    assert found.stop.counts() == dict.fromkeys(sorted(nli.heads.SEEN), 6)
    assert set(found.compared) == set(DEV_SOURCES)
    for name, pairs in found.compared.items():
        assert pairs.counts() == {name: 9}
        assert set(Counter(pairs.labels).values()) == {3}
        assert not set(pairs.premises) & {*found.stop.premises, *found.train.premises}


def test_every_seed_has_all_four_heads_before_the_next_begins(nli, data, tmp_path):
    settings = made(nli, data, tmp_path, small=False)
    trained = [piece.facts for piece in nli.heads.head_pieces(settings)]
    assert [facts["seed"] for facts in trained] == [0] * 4 + [1] * 4 + [2] * 4
    assert {(facts["rates"], facts["variant"]) for facts in trained[:4]} == set(
        product(("paper", "higher"), ("binary", "triplet"))
    )
    scored = [piece.facts for piece in nli.sets.set_pieces(settings)]
    assert len(scored) == 12 * 13
    assert [(facts["seed"], facts["task"]) for facts in islice(scored, 3, 5)] == [
        (0, "rottentomatoes"),
        (0, "emotiondair"),
    ]


def test_only_variant_rates_and_seed_differ_between_trainings(nli, data, tmp_path):
    settings = made(nli, data, tmp_path)
    binary, triplet = (nli.heads.config_of(settings, nli.heads.Head(1, "higher", name)) for name in nli.report.VARIANTS)
    assert dataclasses.replace(binary, variant="triplet") == triplet
    assert (binary.learning_rate, binary.head_learning_rate, binary.seed) == (1e-4, 5e-4, 1)
    paper = nli.heads.config_of(settings, nli.heads.Head(0, "paper", "binary"))
    assert (paper.learning_rate, paper.head_learning_rate) == (None, None)


# A training over several calls


def head_piece(nli: Any, settings: Any, variant: str) -> Any:
    return next(piece for piece in nli.heads.head_pieces(settings) if piece.facts["variant"] == variant)


@pytest.mark.slow
def test_a_training_that_goes_on_call_by_call_gives_the_result_of_one_call(nli, data, tmp_path, capsys):
    whole = head_piece(nli, made(nli, data, tmp_path / "whole"), "triplet").work()
    capsys.readouterr()
    settings = made(nli, data, tmp_path / "parts", ends=time.monotonic())  # stops at the first look of every call
    piece, calls = head_piece(nli, settings, "triplet"), 1
    while nli.pieces.run_pieces([piece], settings.out, minutes=1, command=[]):
        assert piece.result(settings.out) is None, "an unfinished training has no row"
        assert [path.suffix for path in settings.models.iterdir() if path.is_dir()] == [".unfinished"]
        assert f"seed0: {calls} of 4 updates are made" in capsys.readouterr().out
        calls += 1
    assert calls == 4
    row = piece.result(settings.out)
    for fact in set(whole) - {"training_seconds"}:
        assert same(row[fact], whole[fact]), fact
    assert (row["weights"], row["folder"], row["steps"]) == (whole["weights"], whole["folder"], 4)
    one, other = (NLIModel.load(tmp_path / way / "models" / whole["folder"]) for way in ("whole", "parts"))
    assert all((one.state_dict()[name] == weight).all() for name, weight in other.state_dict().items())
    assert not list(settings.models.glob("*.unfinished"))


def same(stored: Any, expected: Any) -> bool:
    """Compare values of a row, whose floats are rounded."""
    if isinstance(expected, dict):
        return stored.keys() == expected.keys() and all(same(stored[name], own) for name, own in expected.items())
    return stored == (pytest.approx(expected) if isinstance(expected, float) else expected)


def test_ctrl_c_is_not_taken_for_a_result(nli, data, tmp_path, monkeypatch):
    settings = made(nli, data, tmp_path)
    stopped = dataclasses.make_dataclass("Stopped", [("stop_reason", str, "interrupted")])
    monkeypatch.setattr(nli.heads, "train_nli", lambda *_, **__: stopped())
    with pytest.raises(KeyboardInterrupt):
        head_piece(nli, settings, "binary").work()


def test_a_head_that_another_process_trains_is_left_to_it(nli, data, tmp_path):
    settings = made(nli, data, tmp_path)
    piece, other = islice(nli.sets.set_pieces(settings), 2)
    place = nli.heads.place_of(settings, nli.heads.Head(0, "paper", "binary"))
    place.parent.mkdir()
    with nli.heads.FileLock(place.with_name(f"{place.name}.lock")):
        assert nli.pieces.run_pieces([piece, other], settings.out, minutes=1, command=[]) == 1
    assert other.result(settings.out)


# Results and tables


@pytest.mark.slow
def test_the_small_run_makes_each_result_once_and_its_tables(nli, store, data, tmp_path, capsys):
    out, models = tmp_path / "nli.jsonl", tmp_path / "models"
    words = ["nli", "--small", "--data", str(data), "--out", str(out), "--encoder", str(TINY), "--models", str(models)]
    nli.run.run([*words, "--minutes", "0"])
    assert "8 of 8 pieces are left" in capsys.readouterr().out
    nli.run.run(words)
    assert "all pieces are done" in capsys.readouterr().out
    nli.run.run(words)
    assert "[" not in capsys.readouterr().out, "nothing is run twice"
    rows = store.Table(out).rows()
    head = store.Table(out).row("heads", "tiny-bert_triplet_higher_seed0")
    assert (head["train_pairs"], head["steps"], head["stop_reason"]) == (64, 2, "epochs")
    assert set(head["sources"]["anli_r1_dev"]) == {"pairs", "accuracy", "macro_f1", "auroc"}

    # What `labelspace bench` finds in two passes.
    folder = models / head["folder"]
    specs = [f"nli:{folder}", f"nli:{folder}@logit"]
    asked = {"limit": 20, "data": data, "bootstrap": 0}
    log_odds, logit = bench_run(specs, ["rottentomatoes"], tmp_path / "store.jsonl", **asked).records
    found = store.Table(out).row("btzsc", "tiny-bert_rottentomatoes_triplet_higher_seed0")
    assert found["log_odds"] == pytest.approx(log_odds["metrics"])
    assert found["logit"] == pytest.approx(logit["metrics"])
    assert found["weights"] == head["weights"]
    assert log_odds["revision"].startswith(f"{head['weights']}+"), "the weights, and a hash of the settings"
    binary = [row for row in rows if row["part"] == "btzsc" and row["variant"] == "binary"]
    assert [("log_odds" in row, "logit" in row) for row in binary] == [(True, False)] * 2

    # A head that is gone is trained again, to the same bits.
    shutil.rmtree(models)
    nli.run.run([*words, "--piece", "heads/tiny-bert_triplet_higher_seed0"])
    assert store.Table(out).row("heads", "tiny-bert_triplet_higher_seed0")["weights"] == head["weights"]

    capsys.readouterr()
    nli.run.run([*words, "--tables"])
    printed = capsys.readouterr().out
    assert [block for block in nli.report.BLOCKS if f"{block}\n\n|" not in printed] == []


def set_row(rates: str, variant: str, seed: int, task: str, score: float) -> dict[str, Any]:
    facts = {"part": "btzsc", "encoder": "all-MiniLM-L6-v2", "rates": rates, "variant": variant, "seed": seed}
    scores = {"log_odds": {"macro_f1_predicted": score}}
    scores |= {"logit": {"macro_f1_predicted": score - 0.01}} if variant == "triplet" else {}
    return {**facts, "task": task, **scores}


def head_row(rates: str, variant: str, seed: int, auroc: float, anli: float) -> dict[str, Any]:
    own = {
        name: {"pairs": 900, "accuracy": 0.7, "macro_f1": 0.6, "auroc": anli if "anli" in name else auroc}
        for name in DEV_SOURCES
    }
    facts = {"part": "heads", "encoder": "all-MiniLM-L6-v2", "rates": rates, "variant": variant, "seed": seed}
    trained = {"best_step": 800 + seed, "steps": 900, "train_loss": 0.4, "stop_reason": "epochs"}
    return {**facts, **trained, "sources": own}


def test_differences_are_between_heads_of_one_seed_on_the_sets_that_all_have(nli, plant):
    scores = {("binary", 0): 0.6, ("binary", 1): 0.7, ("triplet", 0): 0.5, ("triplet", 1): 0.5}
    runs = [
        set_row("paper", variant, seed, task, score)
        for task, ((variant, seed), score) in product(("rottentomatoes", "agnews"), scores.items())
    ]
    runs += [set_row("paper", "binary", 0, "imdb", 0.9), set_row("paper", "binary", 2, "agnews", 0.9)]  # no twin
    runs += [set_row("paper", variant, 2, "rottentomatoes", 0.1) for variant in ("binary", "triplet")]  # half a seed
    runs += [head_row("paper", variant, seed, 0.8, 0.4) for seed, variant in product((0, 1), ("binary", "triplet"))]
    plant("nli", runs)
    report = nli.report
    cells = dict(zip(*(line.split(" | ") for line in report.difference().splitlines()[::2][:2]), strict=True))
    assert cells == {
        "| learning rates": f"| {TITLES['paper']}",
        "seeds": "2",
        "NLI AUROC": "+0.000 ± 0.000",
        "sentiment": "+0.150 ± 0.071",
        "topic": "+0.150 ± 0.071",
        "mean of 2": "+0.150 ± 0.071",
        "sets with binary ahead in every seed": "1",  # seed 2 is a tie on Rotten Tomatoes
        "sets with three-way ahead in every seed |": "0 |",
    }
    published = report.difference().splitlines()[3]
    assert published.startswith("| published, three backbones | - | - |")
    lines = report.by_set().splitlines()
    assert "| imdb | 0.900 | - | - | - |" in lines
    assert "| agnews | 0.733 ± 0.153 | 0.500 ± 0.000 | 0.490 ± 0.000 | +0.150 ± 0.071 |" in lines
    assert "| mean of all | 0.650 ± 0.071 | 0.500 ± 0.000 | 0.490 ± 0.000 | +0.150 ± 0.071 |" in lines


def test_the_means_of_dev_pairs_leave_anli_out(nli, plant):
    scores = {("binary", 0): 0.8, ("triplet", 0): 0.7, ("binary", 1): 0.9, ("triplet", 1): 0.7}
    plant("nli", [head_row("higher", variant, seed, auroc, 0.4) for (variant, seed), auroc in scores.items()])
    lines = nli.report.heads().splitlines()
    assert lines[2] == (
        "| 1e-4 and 5e-4 | binary | 0.700 ± 0.000 | 0.600 ± 0.000 | 0.850 ± 0.071 | 0.400 ± 0.000 "
        "| 800 ± 1 | 900 ± 0 | 0.400 ± 0.000 | 0 of 2 |"
    )
    assert "| 1e-4 and 5e-4 | binary minus three-way | +0.000 ± 0.000 | +0.000 ± 0.000 | +0.150 ± 0.071 |" in lines[4]
    assert "| mnli_matched_dev, 900 pairs | 0.850 ± 0.071 | 0.700 ± 0.000 | +0.150 ± 0.071 |" in nli.report.sources()
    assert "not run yet" in nli.report.difference()


def test_the_rates_of_the_tables_are_those_that_were_run(nli):
    for name, rates in nli.heads.RATES.items():
        backbone, head = (float(word) for word in nli.report.RATES[name].split(" and "))
        assert highest_rates(384, **rates) == (backbone, head)
    assert nli.report.RATES == TITLES
