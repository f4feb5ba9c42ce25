"""Packaged models are assembled completely or not at all, and no file of a zip is written outside the folder."""

import functools
import zipfile
from pathlib import Path

import numpy as np
import pytest

from labelspace import Encoder, LabelSpace

BENCHMARKS = Path(__file__).parents[2] / "benchmarks"
SPACE = LabelSpace.from_names(["sports", "politics"])
TEXTS = ["The striker scored twice in the final.", "Parliament passed the new tax law."]


@pytest.fixture
def tool(monkeypatch):
    monkeypatch.syspath_prepend(str(BENCHMARKS))
    import packaged_models

    return packaged_models


def zipped(path: Path, *members: str) -> Path:
    with zipfile.ZipFile(path, "w") as archive:
        for name in members:
            archive.writestr(name, b"{}")
    return path


def test_missing_packages_are_named_and_nothing_is_made(tool, tmp_path, monkeypatch):
    monkeypatch.setattr(tool, "MPNET_PARTS", ("no-such-part-001",))
    with pytest.raises(SystemExit, match="no-such-part-001"):
        tool.assembled(tool.MPNET, tmp_path / "runs")
    assert list(tmp_path.iterdir()) == []


def test_an_existing_model_is_not_assembled_again(tool, tmp_path):
    (tmp_path / "gemma-3-270m.gguf").touch()
    assert tool.assembled(tool.GEMMA, tmp_path) == tmp_path / "gemma-3-270m.gguf"


def test_wrong_weights_leave_no_files(tool, tmp_path, monkeypatch):
    monkeypatch.setattr(tool, "MPNET_PARTS", ())
    monkeypatch.setattr(tool, "unzip_model", lambda archive, folder: None)
    with pytest.raises(SystemExit, match="other weights"):
        tool.assembled(tool.MPNET, tmp_path)
    assert list(tmp_path.iterdir()) == []


def test_unzipping_extracts_model_files_only(tool, tmp_path):
    members = ("m/config.json", "m/1_Pooling/config.json", "m/desktop.ini", "m/x.bin", "m/a.py")
    tool.unzip_model(zipped(tmp_path / "model.zip", *members), tmp_path / "out")
    written = [path.relative_to(tmp_path / "out").as_posix() for path in (tmp_path / "out").rglob("*.*")]
    assert sorted(written) == ["1_Pooling/config.json", "config.json"]


@pytest.mark.parametrize("name", ["m/../../evil.json", "/etc/evil.json", "m/..\\evil.json", "C:/evil.json"])
def test_a_path_outside_the_folder_is_refused(tool, name, tmp_path):
    with pytest.raises(SystemExit, match="unsafe path"):
        tool.unzip_model(zipped(tmp_path / "model.zip", name), tmp_path / "out")
    assert not list(tmp_path.rglob("evil*"))


@pytest.mark.slow
def test_mpnet_is_an_encoder_of_the_registry(tool, tmp_path):
    if tool.missing(tool.MPNET, tmp_path):
        pytest.skip("the packages of all-mpnet-base-v2 are missing")
    encoder = Encoder(tool.assembled(tool.MPNET, tmp_path), device="cpu")
    assert encoder.spec is not None
    assert encoder.spec.short_name == "all-mpnet-base-v2"
    vectors = encoder.encode(["A cat sits.", "A kitten sat.", "Stocks fell."])
    assert vectors.shape == (3, 768)
    assert vectors[0] @ vectors[1] > 0.6 > vectors[0] @ vectors[2]


@pytest.mark.slow
def test_gemma_answers_with_letters_and_the_prefix_cache_changes_no_score(tool, tmp_path, monkeypatch):
    """One test of both, because opening the GGUF file takes nearly all of the time."""
    from labelspace.families import LLMScorer
    from labelspace.families.causal import CausalModel
    from labelspace.families.generative_reranker import GenerativeReranker

    pytest.importorskip("gguf")
    pytest.importorskip("accelerate")
    if tool.missing(tool.GEMMA, tmp_path):
        pytest.skip("the packages of gemma-3-270m are missing")
    monkeypatch.setattr(CausalModel, "load", functools.cache(CausalModel.load))
    gemma = tool.assembled(tool.GEMMA, tmp_path)
    scorer = LLMScorer(gemma, dtype="float32", device="cpu")
    ids = scorer.model.encode([scorer.prompt(TEXTS[0], SPACE)])
    best = scorer.model.next_token_logits(ids)[0].topk(5).indices.tolist()
    assert set(best) & set(scorer.symbols.values())  # it understood that a letter is asked for
    assert np.isfinite(scorer.scores(TEXTS, SPACE)).all()

    reranker = GenerativeReranker(gemma, dtype="float32", device="cpu")
    labels = ["This text is about sports.", "This text is about politics."]
    texts = [TEXTS[0] * 60, TEXTS[1]]  # one passes 512 tokens
    scores = reranker.score_texts(texts, labels)
    assert len(reranker._prefixes(texts, [[0]])[0]) > 512
    assert np.allclose(scores, reranker._score_without_cache(texts, labels), rtol=0, atol=1e-4)
