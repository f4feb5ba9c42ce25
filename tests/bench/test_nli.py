"""NLI pairs are read by source, drawn by seed, and scored by AUROC source by source."""

from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from labelspace.bench.nli import (
    PUBLISHED_COLUMNS,
    NLIPairs,
    encoder_pair_scores,
    load_nli,
    nli_auroc,
)
from labelspace.bench.published import NLI_SETS
from labelspace.encoders import Encoder
from labelspace.errors import ColumnError, ConfigError, InputError, ShapeError

REAL = Path(__file__).parents[3] / "shared" / "data" / "nli" / "dev.parquet"


def write_pairs(file: Path, rows: list[tuple]) -> Path:
    columns = dict(zip(("premise", "hypothesis", "label", "source"), map(list, zip(*rows, strict=True)), strict=True))
    file.parent.mkdir(parents=True, exist_ok=True)
    pq.write_table(pa.table(columns), file)
    return file


def rows_of(source: str, count: int) -> list[tuple[str, str, int, str]]:
    return [(f"{source} {i}", f"h {i}", i % 3, source) for i in range(count)]


@pytest.fixture
def data(tmp_path: Path) -> Path:
    """Two sources, their rows mixed."""
    mixed = [row for pair in zip(rows_of("first", 9), rows_of("second", 9), strict=True) for row in pair]
    return write_pairs(tmp_path / "nli" / "dev.parquet", mixed)


@pytest.mark.parametrize("up", [0, 1, 2], ids=["file", "folder", "folder above"])
def test_pairs_are_found_in_a_file_its_folder_or_its_parent(data, up):
    found = load_nli([data, *data.parents][up])
    assert list(found) == ["first", "second"]
    assert found["first"].premises[:2] == ["first 0", "first 1"]
    assert found["first"].hypotheses[:2] == ["h 0", "h 1"]


def test_only_label_0_is_entailment(data):
    assert load_nli(data)["second"].is_entailment.tolist() == [True, False, False] * 3


def test_a_limit_is_drawn_by_seed_from_each_source_in_order(data):
    first, again = (load_nli(data, limit=6, seed=1) for _ in range(2))
    for source, pairs in first.items():
        assert len(pairs) == 6
        places = [int(text.split()[-1]) for text in pairs.premises]
        assert places == sorted(set(places))
        assert pairs.premises == again[source].premises
        assert pairs.is_entailment.tolist() == [place % 3 == 0 for place in places]
    draws = {tuple(load_nli(data, limit=6, seed=seed)["first"].premises) for seed in range(5)}
    assert len(draws) > 1


def test_a_source_of_one_kind_is_left_out(tmp_path):
    rows = [*rows_of("mixed", 6), ("a", "b", 1, "one kind"), ("c", "d", 2, "one kind")]
    assert list(load_nli(write_pairs(tmp_path / "dev.parquet", rows))) == ["mixed"]


@pytest.mark.parametrize(
    ("row", "message"),
    [
        (("a", "b", 3, "mine"), r"row 4: column 'label' must be 0 .*Got 3"),
        (("a", None, 1, "mine"), r"row 4: column 'hypothesis' must be text\. Got None"),
        (("a", "b", 1, None), "row 4: column 'source' must be text"),
        (("a", "b", None, "mine"), "row 4: column 'label'"),
    ],
    ids=["label", "hypothesis", "source", "no label"],
)
def test_a_malformed_row_is_named(tmp_path, row, message):
    with pytest.raises(InputError, match=message):
        load_nli(write_pairs(tmp_path / "dev.parquet", [*rows_of("mine", 3), row]))


@pytest.mark.parametrize("column", ["premise", "hypothesis", "label", "source"])
def test_a_missing_column_is_named(tmp_path, column):
    file = write_pairs(tmp_path / "dev.parquet", rows_of("mine", 3))
    pq.write_table(pq.read_table(file).drop([column]), file)
    with pytest.raises(ColumnError, match=column):
        load_nli(file)


def test_a_folder_without_pairs_is_refused(tmp_path):
    with pytest.raises(InputError, match=r"no dev\.parquet"):
        load_nli(tmp_path)


def test_pairs_of_one_kind_only_are_refused(tmp_path):
    with pytest.raises(InputError, match="no source with entailed and other pairs"):
        load_nli(write_pairs(tmp_path / "dev.parquet", [("a", "b", 0, "mine")]))


def test_an_invalid_limit_is_refused(data):
    with pytest.raises(ConfigError, match="limit"):
        load_nli(data, limit=1)


def pairs_of(*kinds: bool) -> NLIPairs:
    texts = [str(i) for i in range(len(kinds))]
    return NLIPairs(premises=texts, hypotheses=texts, is_entailment=np.array(kinds))


def rising(premises: list[str], hypotheses: list[str]) -> np.ndarray:
    return np.array([float(text) for text in premises], dtype=np.float32)


def test_each_source_has_its_auroc_and_the_mean_is_unweighted():
    found = nli_auroc(rising, {"x": pairs_of(False, True), "y": pairs_of(True, False, False, True)})
    assert found == {"x": 1.0, "y": 0.5, "mean": 0.75}


def test_the_mean_is_over_the_papers_sources_if_any_are_present():
    found = nli_auroc(rising, {"anli_r1_dev": pairs_of(False, True), "other": pairs_of(True, False)})
    assert found == {"anli_r1_dev": 1.0, "other": 0.0, "mean": 1.0}


def test_the_papers_columns_are_named_once_each():
    assert len(set(PUBLISHED_COLUMNS.values())) == len(PUBLISHED_COLUMNS)
    assert set(PUBLISHED_COLUMNS.values()) == set(NLI_SETS) - {"wanli", "fevernli"}


@pytest.mark.parametrize(
    ("scorer", "error", "message"),
    [
        (lambda p, h: np.zeros(len(p) + 1), ShapeError, "one score for each of 2 pairs"),
        (lambda p, h: np.zeros((len(p), 3)), ShapeError, "one score for each of 2 pairs"),
        (lambda p, h: np.full(len(p), np.nan), InputError, "must be finite"),
    ],
    ids=["too many", "matrix", "nan"],
)
def test_invalid_pair_scores_are_refused(scorer, error, message):
    with pytest.raises(error, match=message):
        nli_auroc(scorer, {"mine": pairs_of(True, False)})


def test_nothing_to_score_is_refused():
    with pytest.raises(InputError, match="no NLI sets"):
        nli_auroc(rising, {})


def test_an_encoders_pair_score_is_the_cosine(tiny_encoder_folder, monkeypatch):
    encoder = Encoder(tiny_encoder_folder, dtype="float32", device="cpu", label_prompt="query: ")
    premises = ["the team won the match", "prices rose", "the vote was close"]
    hypotheses = ["the team won", "the market", "a film"]
    got = encoder_pair_scores(encoder)(premises, hypotheses)
    for score, premise, hypothesis in zip(got, premises, hypotheses, strict=True):
        given = encoder.encode([premise], role="text")[0].astype(float)
        followed = encoder.encode([hypothesis], role="label")[0].astype(float)
        cosine = sum(x * y for x, y in zip(given, followed, strict=True))
        cosine /= sum(x * x for x in given) ** 0.5 * sum(y * y for y in followed) ** 0.5
        assert score == pytest.approx(cosine, abs=1e-5)
    monkeypatch.setattr("labelspace.bench.nli.BLOCK", 2)
    assert encoder_pair_scores(encoder)(premises, hypotheses) == pytest.approx(got, abs=1e-5)
    assert encoder_pair_scores(encoder)([], []).shape == (0,)


@pytest.mark.slow
@pytest.mark.skipif(not REAL.is_file(), reason="the folder with the real NLI pairs is not here")
def test_the_real_pairs_have_the_sources_of_their_readme():
    found = load_nli(REAL)
    assert set(PUBLISHED_COLUMNS) < set(found)
    assert len(found["mnli_matched_dev"]) == 9814
    assert int(found["mnli_matched_dev"].is_entailment.sum()) == 3478
