"""`RerankerScorer` reads the kind from the folder, and scores pairs by one logit or the log-odds."""

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from families.tiny_pairs import build_pairs, change_config, plain_scores
from labelspace.errors import ConfigError, EncoderError, InputError
from labelspace.families import EntailmentScorer, RerankerScorer
from labelspace.labels import LabelSpace
from labelspace.progress import Progress

PairsFolder = Callable[..., Path]

TEXTS = ["The team won the match.", "a", "", "bank " * 100, "The team won the match."]
SPACE = LabelSpace.from_names(["sports", "world", "good"], template="This text is about {label}.")
CPU: dict[str, Any] = {"dtype": "float32", "device": "cpu"}


# ---- cross-encoders


@pytest.mark.parametrize("kind", ["bert", "qwen3"])  # the scorer of entailment is compared on every kind
def test_a_single_logit_equals_that_of_one_pair_at_a_time(kind: str, pairs_folder: PairsFolder):
    folder = pairs_folder(kind, "LABEL_0")
    expected = plain_scores(folder, TEXTS, SPACE.verbalizers)[..., 0]
    found = RerankerScorer(folder, **CPU, token_budget=150).scores(TEXTS, SPACE)
    assert found.dtype == np.float32
    assert np.abs(found - expected).max() < 1e-5


@pytest.mark.parametrize(
    "names",
    [
        ("irrelevant", "Relevant"),
        ("not_entailment", "entailment"),
        ("false", "true"),
        ("no", "yes"),
        ("entailment", "relevant"),
    ],
    ids="-".join,
)
def test_the_relevant_class_is_found_by_its_name(names: tuple[str, ...], pairs_folder: PairsFolder):
    assert RerankerScorer(pairs_folder("bert", *names), **CPU).relevant_index == 1


def test_two_logits_score_by_the_relevant_class(pairs_folder: PairsFolder):
    folder = pairs_folder("bert", "irrelevant", "relevant")
    logits = plain_scores(folder, TEXTS, SPACE.verbalizers)
    for index, given in ((1, None), (0, 0)):
        found = RerankerScorer(folder, **CPU, relevant_index=given).scores(TEXTS, SPACE)
        assert np.abs(found - (logits[..., index] - logits[..., 1 - index])).max() < 1e-5


def test_classes_without_names_are_not_guessed(pairs_folder: PairsFolder):
    with pytest.raises(EncoderError, match=r"'relevant'.*0: label_0; 1: label_1.*relevant_index=\.\.\."):
        RerankerScorer(pairs_folder("bert", "LABEL_0", "LABEL_1"), **CPU)


@pytest.mark.parametrize("variant", ["binary", "triplet"])
def test_a_folder_of_train_nli_is_a_reranker_too(variant: str, tmp_path: Path):
    from labelspace.training.nli.model import NLIModel

    model = NLIModel.from_encoder("tests/data/tiny-bert", variant, 0, dtype="float32", device="cpu")
    folder = model.save(tmp_path / variant)
    found = RerankerScorer(folder, **CPU).scores(TEXTS, SPACE)
    assert np.array_equal(found, EntailmentScorer(folder, **CPU).scores(TEXTS, SPACE))


@pytest.mark.parametrize("names", [("LABEL_0",), ("irrelevant", "relevant")], ids="-".join)
def test_pair_scores_are_the_scores_of_those_pairs(names: tuple[str, ...], pairs_folder: PairsFolder):
    scorer = RerankerScorer(pairs_folder("bert", *names), **CPU)
    premises = [text for text in TEXTS for _ in SPACE.verbalizers]
    found = scorer.pair_scores(premises, list(SPACE.verbalizers) * len(TEXTS))
    assert found.dtype == np.float32
    assert np.abs(found - scorer.scores(TEXTS, SPACE).ravel()).max() < 1e-5
    assert scorer.pair_scores([], []).shape == (0,)
    with pytest.raises(InputError, match=r"each premise needs one hypothesis\. Got 2 and 1"):
        scorer.pair_scores(["a", "b"], ["c"])


def test_no_texts_are_no_rows_and_a_text_that_is_no_string_is_refused(pairs_folder: PairsFolder):
    scorer = RerankerScorer(pairs_folder("bert", "LABEL_0"), **CPU)
    assert scorer.scores([], SPACE).shape == (0, len(SPACE))
    texts: Any = ["a", None]
    with pytest.raises(InputError, match=r"texts must be strings\. Got NoneType at place 1"):
        scorer.scores(texts, SPACE)


def test_an_instruction_is_refused_for_a_cross_encoder(pairs_folder: PairsFolder):
    with pytest.raises(ConfigError, match="instruction is for generative rerankers"):
        RerankerScorer(pairs_folder("bert", "score"), **CPU, instruction="find the label")


def test_an_encoder_is_no_reranker(tiny_encoder_folder: Path):
    with pytest.raises(EncoderError, match=r"is no reranker: its config\.json names BertModel"):
        RerankerScorer(tiny_encoder_folder, **CPU)


def test_it_describes_itself(pairs_folder: PairsFolder):
    scorer = RerankerScorer(pairs_folder("bert", "score"), **CPU)
    told = scorer.describe()
    assert (scorer.family, scorer.name) == ("reranker", str(pairs_folder("bert", "score")))
    assert (told["family"], told["classes"], told["relevant_index"]) == ("reranker", 1, 0)
    assert told["parameters"] == scorer.parameters > 1000
    assert "RerankerScorer" in repr(scorer)


@pytest.mark.parametrize("kind", ["bert", "roberta"])
def test_scores_equal_those_of_the_authors_program(kind: str, pairs_folder: PairsFolder):
    authors = pytest.importorskip("btzsc.models.reranker", reason="the package btzsc is not installed")
    folder = pairs_folder(kind, "LABEL_0")
    expected = authors.RerankerModel(str(folder), device="cpu").predict_scores(
        TEXTS, list(SPACE.verbalizers), batch_size=1
    )
    assert np.abs(RerankerScorer(folder, **CPU).scores(TEXTS, SPACE) - expected).max() < 1e-4


# ---- generative rerankers


class Recorded:
    """A stand-in for the generative reranker that records its arguments."""

    made: dict[str, Any]
    asked: tuple[Sequence[str], Sequence[str]]

    def __init__(self, name: str, **options: Any) -> None:
        Recorded.made = {"name": name, **options}
        self.parameters = 7

    def score_texts(self, texts: Sequence[str], labels: Sequence[str], report: Progress) -> Any:
        Recorded.asked = (texts, labels)
        report(1, 1)
        return np.full((len(texts), len(labels)), 0.5, dtype=np.float32)

    def pair_scores(self, premises: Sequence[str], hypotheses: Sequence[str], report: Progress) -> Any:
        Recorded.asked = (premises, hypotheses)
        report(1, 1)
        return np.full(len(premises), 0.5, dtype=np.float32)

    def describe(self) -> dict[str, Any]:
        return {"kind": "generative"}


@pytest.fixture
def recorded(monkeypatch: pytest.MonkeyPatch) -> type[Recorded]:
    from labelspace.families import generative_reranker

    monkeypatch.setattr(generative_reranker, "GenerativeReranker", Recorded)
    return Recorded


def test_a_language_model_is_asked_for_yes_or_no(recorded: type[Recorded], tmp_path: Path):
    folder = change_config(build_pairs("qwen3", tmp_path), architectures=["Qwen3ForCausalLM"])
    scorer = RerankerScorer(folder, **CPU, instruction="find the label", token_budget=99)
    assert scorer.scores(TEXTS, SPACE).shape == (len(TEXTS), len(SPACE))
    assert recorded.asked == (TEXTS, SPACE.verbalizers)
    made = recorded.made
    assert (made["name"], made["instruction"], made["gguf_file"]) == (str(folder), "find the label", None)
    assert (made["dtype"], made["token_budget"], made["trust_remote_code"]) == ("float32", 99, False)
    assert (scorer.parameters, scorer.describe()["kind"], scorer.describe()["family"]) == (7, "generative", "reranker")


def test_a_gguf_file_is_a_language_model(recorded: type[Recorded], tmp_path: Path):
    scorer = RerankerScorer(tmp_path, **CPU, gguf_file="model.gguf")
    assert recorded.made["gguf_file"] == "model.gguf"
    assert scorer.pair_scores(["it rains"], ["it is wet"]).tolist() == [0.5]
    assert recorded.asked == (["it rains"], ["it is wet"])
    assert "token_budget" not in recorded.made  # each kind has its own


def test_a_name_ending_in_gguf_needs_no_further_option(recorded: type[Recorded]):
    RerankerScorer("some/file.gguf", **CPU)
    assert (recorded.made["name"], recorded.made["gguf_file"]) == ("some/file.gguf", None)


@pytest.mark.parametrize(("option", "value"), [("dtype", "float16"), ("token_budget", 0), ("max_tokens", 2)])
def test_invalid_options_are_refused_before_anything_is_opened(option: str, value: Any, tmp_path: Path):
    with pytest.raises(ConfigError, match=option):
        RerankerScorer(tmp_path / "nothing", **{"device": "cpu", option: value})


def test_relevant_index_is_refused_for_a_language_model(recorded: type[Recorded], tmp_path: Path):
    with pytest.raises(ConfigError, match="relevant_index is for cross-encoders"):
        RerankerScorer(tmp_path, **CPU, gguf_file="model.gguf", relevant_index=0)


# ---- the package


def test_unknown_names_of_the_package_are_an_attribute_error():
    import labelspace.families as package

    with pytest.raises(AttributeError, match="no attribute 'Nothing'"):
        _ = package.Nothing
    assert set(package.__all__) == {"EndpointScorer", "EntailmentScorer", "LLMScorer", "RerankerScorer"}
    assert all(hasattr(package, name) for name in package.__all__)
