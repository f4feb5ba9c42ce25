"""The study's label spaces are correct, and its runner makes each result once."""

import random
import shutil
import subprocess
import sys
from collections import Counter
from pathlib import Path
from statistics import fmean, stdev, variance
from typing import Any

import pytest

from labelspace import Label, LabelSpace
from pictures import nothing_is_cut

ROOT = Path(__file__).resolve().parents[2]
DATA = ROOT.parent / "shared" / "data"
SPACE = LabelSpace(
    [
        Label(
            name, verbalizer=f"It is about {name}.", descriptions=[f"{name} number {count} here" for count in range(10)]
        )
        for name in ("sports", "money", "music")
    ]
)


@pytest.fixture
def spaces(store):
    from study import spaces

    return spaces


def owners(space: LabelSpace) -> dict[str, Counter]:
    """Return the owner of each label's descriptions, read from their first word."""
    return {label.name: Counter(text.split()[0] for text in label.descriptions) for label in space.labels}


def test_a_sample_keeps_labels_verbalizers_and_order(spaces):
    found = spaces.drawn(SPACE, 5, seed=3)
    assert (found.names, found.verbalizers) == (SPACE.names, SPACE.verbalizers)
    for label, whole in zip(found.labels, SPACE.labels, strict=True):
        assert len(label.descriptions) == 5
        assert list(label.descriptions) == [text for text in whole.descriptions if text in label.descriptions]
    assert found == spaces.drawn(SPACE, 5, seed=3)
    assert found != spaces.drawn(SPACE, 5, seed=4)


@pytest.mark.parametrize("seed", range(2))
def test_swapping_moves_one_description_in_five_and_loses_none(spaces, seed):
    found = spaces.swapped(SPACE, seed)
    for name, count in owners(found).items():
        assert count[name] == 8
        assert count.total() == 10
    texts = [text for label in found.labels for text in label.descriptions]
    assert sorted(texts) == sorted(text for label in SPACE.labels for text in label.descriptions)


def test_all_intents_have_sixty_updates_with_the_quick_encoder_only(spaces, tmp_path):
    from study.ablations import ablation_pieces
    from study.settings import Settings

    def changes(encoder: str) -> set[str]:
        pieces = ablation_pieces(Settings(data=tmp_path, out=tmp_path, encoder=encoder))
        return {piece.facts["change"] for piece in pieces if piece.facts["task"] == spaces.INTENTS}

    assert changes("all-MiniLM-L6-v2") == {"default", "updates-20"}
    assert changes("all-mpnet-base-v2") == {"updates-20"}


def test_an_encoder_with_prompts_reads_chinese_with_them_and_without(spaces, tmp_path):
    from study.measure import opened
    from study.multilingual import multilingual_pieces
    from study.settings import Settings

    def pieces(encoder: str) -> list:
        return list(multilingual_pieces(Settings(data=tmp_path, out=tmp_path, encoder=encoder, small=True)))

    assert [piece.facts["prompts"] for piece in pieces("runs/multilingual-e5-small")] == ["own", "none"]
    assert [piece.facts["prompts"] for piece in pieces("all-MiniLM-L6-v2")] == ["none"]
    folder = shutil.copytree(ROOT / "tests" / "data" / "tiny-bert", tmp_path / "multilingual-e5-small")
    used = [opened(piece.work.args[0]).prompts["text"] for piece in pieces(str(folder))]
    assert used == ["query: ", ""]


def test_the_chinese_table_has_a_row_for_each_prompt(spaces, plant):
    from study import report

    plant("study", [])
    assert report.multilingual() == "(not run yet)"
    untrained = {"verbalizer": 0.3, "descriptions": 0.4}
    common = {"part": "multilingual", "encoder": "multilingual-e5-small", "untrained": untrained}
    scores = [("own", 0, 0.5), ("own", 1, 0.7), ("none", 0, 0.6)]
    plant(
        "study",
        (
            {**common, "prompts": which, "seed": seed, "macro_f1_predicted": {"verbalizer": 0.3, "descriptions": score}}
            for which, seed, score in scores
        ),
    )
    _, _, own, none, gain = (line.split(" | ")[1:] for line in report.multilingual().splitlines())
    # Four of five descriptions: a deviation of 0.141 between these samples is 0.316 between samples without overlap.
    assert own == ["the encoder's", "0.300 ± 0.000", "0.400 ± 0.000", "0.300 ± 0.000", "0.600 ± 0.316 |"]
    assert none == ["none", "0.300", "0.400", "0.300", "0.600 |"]
    # Of the seed that both have.
    assert gain == [
        "the encoder's minus none",
        "+0.000; 0 of 1",
        "+0.000; 0 of 1",
        "+0.000; 0 of 1",
        "-0.100; 0 of 1 |",
    ]


def test_halved_descriptions_are_cut_and_bare_names_become_verbalizers(spaces):
    assert spaces.halved(SPACE, 0).labels[0].descriptions[0] == "sports number"
    assert spaces.bare(SPACE).verbalizers == ("sports", "money", "music")


def test_one_description_in_five_is_filler(spaces):
    for name, count in owners(spaces.filled(SPACE, 1)).items():
        assert (count[name], count.total()) == (8, 10)


def test_the_ten_descriptions_begin_with_the_five_that_are_shipped(spaces):
    for name in spaces.TASKS:
        ten = LabelSpace.from_file(spaces.LABELS / f"{name}.yaml")
        five = LabelSpace.from_file(ROOT / "examples" / f"{name}.yaml")
        assert ten.names == five.names
        for more, few in zip(ten.labels, five.labels, strict=True):
            assert more.descriptions[:5] == few.descriptions
            assert len(set(more.descriptions)) == 10


@pytest.mark.slow
def test_the_tables_of_the_docs_match_the_results():
    done = subprocess.run(
        [sys.executable, str(ROOT / "benchmarks" / "tables.py"), "--check"], capture_output=True, text=True, check=False
    )
    assert (done.stdout, done.returncode) == ("", 0)


@pytest.mark.slow
def test_the_figures_of_the_page_are_drawn_from_the_results(spaces, tmp_path):
    from panels import all_figures
    from study.pictures import FIGURES

    drawn = all_figures(FIGURES, tmp_path)
    assert [path.name for path in drawn] == ["study-rivals.png", "study-rates.png", "study-curve.png"]
    assert all(nothing_is_cut(path) for path in drawn)


def test_a_table_marks_missing_runs_and_compares_equal_samples(spaces, plant):
    from study import report

    runs = {("default", 0): 0.5, ("default", 1): 0.9, ("swapped", 0): 0.4}
    common = {"part": "ablations", "encoder": report.ENCODER, "task": "emotion"}
    plant(
        "study",
        (
            {**common, "change": change, "seed": seed, "macro_f1_predicted": {"descriptions": score}}
            for (change, seed), score in runs.items()
        ),
    )
    lines = report.ablations().splitlines()
    # Five of ten descriptions: a deviation of 0.283 between these samples is 0.400 between samples without overlap.
    assert lines[2] == "| default | - | 0.700 ± 0.400 | - | - |"
    assert lines[3] == "| swapped | - | 0.400 (-0.100) | - | - |"
    assert report.rivals() == "(not run yet)"
    assert report.ranges() == "Emotion 0.500 to 0.900.", "of the default alone"


@pytest.mark.slow
@pytest.mark.parametrize(("drawn", "written"), [(4, 5), (1, 10)])
def test_the_corrected_deviation_of_overlapping_samples_is_that_of_new_ones(spaces, drawn, written):
    """Simulation: a score is a mean over descriptions of four labels, whose values are drawn in each round."""
    from study import overlap

    labels, draws, share = 4, 6, drawn / written
    generator = random.Random(0)
    variances, means, errors = [], [], []
    for _ in range(3000):
        worth = [[generator.gauss(0, 1) for _ in range(written)] for _ in range(labels)]
        scores = [fmean(fmean(generator.sample(own, drawn)) for own in worth) for _ in range(draws)]
        variances.append(overlap.deviation(scores, share) ** 2)
        means.append(fmean(scores))
        errors.append(overlap.standard_error(scores, share) ** 2)
    assert fmean(variances) == pytest.approx(1 / (labels * drawn), rel=0.05), "the variance of fresh draws"
    assert fmean(errors) == pytest.approx(variance(means, 0.0), rel=0.07), "how far the mean is from that of fresh ones"


def test_samples_that_do_not_overlap_need_no_correction(spaces):
    from study import overlap

    scores = [0.5, 0.7, 0.9, 0.6]
    assert overlap.deviation(scores, 0) == pytest.approx(stdev(scores))
    assert overlap.standard_error(scores, 0) == pytest.approx(stdev(scores) / len(scores) ** 0.5)


def test_the_share_of_a_sample_is_of_all_written_descriptions(spaces):
    written = {
        name: LabelSpace.from_file(spaces.LABELS / f"{name}.yaml")
        for name in (*spaces.TASKS, spaces.MISLEADING, spaces.TNEWS)
    }
    written[spaces.INTENTS] = LabelSpace.from_file(ROOT / "examples" / "banking77" / "labels.yaml")
    for name, space in written.items():
        count = spaces.FEW_K if name in (spaces.INTENTS, spaces.TNEWS) else spaces.PAPER_K
        assert {count / len(label.descriptions) for label in space.labels} == {spaces.share_drawn(name)}
    assert spaces.share_drawn("agnews", 3) == 0.3


def test_a_rival_is_compared_with_the_corrected_deviation(spaces, plant):
    from study import report

    scores = {"ours": [0.7, 0.9], "setfit": [0.5, 0.7]}
    common = {"part": "rivals", "encoder": report.ENCODER, "task": "agnews"}
    common |= {"training_seconds": 1.0, "peak_memory_mib": 10.0}
    runs = [(method, score) for method, own in scores.items() for score in own]
    plant("study", ({**common, "method": method, "macro_f1_predicted": score} for method, score in runs))
    ours, setfit = (line.split(" | ")[2:7] for line in report.rivals().splitlines()[2:])
    assert ours == ["2", "0.800", "0.141", "0.200", "-"]
    # Each variance is 0.02: of the two draws 0.02 / 2 for either, and of the ten descriptions 0.02 more for ours.
    assert setfit == ["2", "0.600", "0.141", "0.141", f"+0.200 ± {0.04**0.5:.3f}"]


def test_one_label_has_fewer_descriptions_than_the_others_or_more(store):
    from study.unequal import with_counts

    def counts(space: LabelSpace) -> list[int]:
        return [len(label.descriptions) for label in space.labels]

    assert counts(with_counts(SPACE, 5)) == [5, 5, 5]
    assert counts(with_counts(SPACE, 5, label="money")) == [5, 1, 5]
    assert counts(with_counts(SPACE, 1, label="money", count=5)) == [1, 5, 1]


def test_the_senses_that_are_meant_are_some_of_the_dictionarys(spaces):
    from study.dictionary import WORDS, defined

    for name in WORDS:
        space = LabelSpace.from_file(spaces.LABELS / f"{name}.yaml")
        first, every, meant = (defined(name, senses, space) for senses in ("first", "every", "meant"))
        for one, all_of_them, some in zip(first.labels, every.labels, meant.labels, strict=True):
            assert one.descriptions == all_of_them.descriptions[:1]
            assert set(some.descriptions) < set(all_of_them.descriptions)
            assert len(set(some.descriptions)) == len(some.descriptions) > 0


def test_a_label_is_compared_with_itself_at_equal_counts(store, plant):
    from study import beyond, report

    def scored(macro: float, answers: list[float], recall: list[float]) -> dict[str, Any]:
        found = {"macro_f1_predicted": macro, "answers": answers, "recall": recall}
        return {"untrained": found, "trained": found}

    runs = {key: scored(0.5, [0.5, 0.5], [0.6, 0.6]) for key in ("five", "one", "fewer b", "more a")}
    runs["fewer a"] = scored(0.4, [0.3, 0.7], [0.4, 0.7])
    common = {"encoder": report.ENCODER, "task": "rottentomatoes", "writer": 1}
    plant("study", [{**common, "part": "unequal", "labels": ["a", "b"], "runs": runs}])
    line = beyond.unequal().splitlines()[2]
    # Of "more" label b was not run, as in small runs.
    changes = ["-10.0 ± 14.1", "-10.0 ± 14.1", "+5.0 ± 7.1", "-0.050 ± 0.071"]
    assert line == f"| {' | '.join(['one, the others five', 'untrained', 'Rotten Tomatoes', *changes])} |"


def test_a_transfer_is_the_change_from_the_untrained_encoder(store, plant):
    from study import beyond, report

    common = {"part": "transfer", "encoder": report.ENCODER, "task": "agnews", "untrained": {"imdb": 0.7}}
    plant(
        "study",
        [{**common, "writer": one, "macro_f1_predicted": {"imdb": score}} for one, score in ((1, 0.8), (2, 0.7))],
    )
    head, _, line = (row.split(" | ") for row in beyond.transfer().splitlines())
    assert dict(zip(head, line, strict=True))["AG News"] == "+0.050 ± 0.071"
    assert line[1:4] == ["IMDB", "reviews", "0.700"]


@pytest.mark.skipif(not DATA.is_dir(), reason=f"no data at {DATA}")
@pytest.mark.filterwarnings("ignore:.* does not know the language|.* reads the verbalizers")  # in Chinese
@pytest.mark.slow
def test_the_small_study_runs_once_and_resumes(store, tmp_path, capfd):
    from run import run

    out = tmp_path / "study.jsonl"
    command = ["study", "--small", "--out", str(out)]
    command += ["--encoder", str(ROOT / "tests" / "data" / "tiny-bert"), "--test-rows", "40", "--max-steps", "2"]
    run([*command, "--minutes", "0"])
    assert "19 of 19 pieces are left" in capfd.readouterr().out
    run(command)
    assert "all pieces are done" in capfd.readouterr().out
    rows = store.Table(out).rows()
    assert len(rows) == 19
    assert all(row["provenance"]["commit"] for row in rows)
    assert all("runs" in row if row["part"] == "unequal" else "macro_f1_predicted" in row for row in rows)
    lines = out.read_text().splitlines(keepends=True)
    out.write_text("".join(lines[1:]))
    run(command)
    assert out.read_text().splitlines(keepends=True)[1:] == lines[1:]
    assert store.Table(out).rows()[0]["name"] == rows[0]["name"]
