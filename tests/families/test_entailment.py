"""`EntailmentScorer` gives the logits of one pair at a time on every architecture, and the paper's formula of them."""

import functools
import math
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from numpy.typing import NDArray
from transformers import AutoModelForSequenceClassification

from families.tiny_pairs import KINDS, build_pairs, change_config, plain_scores
from labelspace.errors import (
    ConfigError,
    EncoderError,
    EncoderNotFoundError,
    InputError,
    ModelFolderError,
    RemoteCodeError,
)
from labelspace.families import EntailmentScorer, cross_encoder
from labelspace.families.cross_encoder import CrossEncoder
from labelspace.families.entailment import class_index, log_odds
from labelspace.labels import LabelSpace
from tiny_models import MAX_TOKENS, build_tiny

every_kind = pytest.mark.parametrize("kind", KINDS)
PairsFolder = Callable[..., Path]
Logits = Callable[[str], NDArray[np.float32]]

TEXTS = [
    "The team won the match.",
    "a",
    "",
    "Müller 北京 ☃ zyxw",
    "bank " * 100,
    "News of prices, markets and money; the bank said no more than that on the first day of the week.",
    "The team won the match.",
]
SPACE = LabelSpace.from_names(["sports", "world", "good", "bank market money"], template="This text is about {label}.")
CPU: dict[str, Any] = {"dtype": "float32", "device": "cpu"}


@pytest.fixture(scope="module")
def tiny(pairs_folder: PairsFolder) -> EntailmentScorer:
    """Return a tiny three-way BERT for tests that do not change it."""
    return EntailmentScorer(pairs_folder("bert"), **CPU, token_budget=300)


@pytest.fixture(scope="module")
def logits_of(pairs_folder: PairsFolder) -> Logits:
    """Return the logits of every text and label in one pair at a time, by kind; do not write into them."""
    return functools.cache(lambda kind: plain_scores(pairs_folder(kind), TEXTS, SPACE.verbalizers))


def log_odds_by_hand(logits: Sequence[float], index: int) -> float:
    """Appendix C.1, term by term: l_ent - log(e^l_neut + e^l_contra)."""
    total = 0.0
    for place, logit in enumerate(logits):
        if place != index:
            total += math.exp(logit)
    return logits[index] - math.log(total)


def all_logits(model: CrossEncoder, texts: Sequence[str], labels: Sequence[str]) -> NDArray[np.float32]:
    return np.concatenate(list(model.logits(texts, labels)))


# ---- the logits


@every_kind
def test_scores_equal_those_of_one_pair_at_a_time(kind: str, pairs_folder: PairsFolder, logits_of: Logits):
    expected = logits_of(kind)
    found = all_logits(CrossEncoder.load(pairs_folder(kind), **CPU, token_budget=200), TEXTS, SPACE.verbalizers)
    assert found.dtype == np.float32
    assert np.abs(found - expected).max() < 1e-5
    assert expected.std(axis=0).min() > 0.01  # the pairs differ, so the comparison is meaningful
    assert expected.std(axis=1).min() > 0.001


@every_kind
def test_bfloat16_is_near_float32(kind: str, pairs_folder: PairsFolder, logits_of: Logits):
    narrow = CrossEncoder.load(pairs_folder(kind), dtype="bfloat16", device="cpu")
    found = all_logits(narrow, TEXTS, SPACE.verbalizers)
    assert narrow.dtype == "bfloat16"
    assert 1e-4 < np.abs(found - logits_of(kind)).max() < 0.1
    # A bfloat16 has 8 significant bits; logits of a bfloat16 head would all end in 16 zeros.
    assert (found.view(np.int32) & 0xFFFF).any()


def test_bfloat16_leaves_head_and_buffers_as_they_are(pairs_folder: PairsFolder):
    model = CrossEncoder.load(pairs_folder("modernbert"), dtype="bfloat16", device="cpu").model
    kinds = {name: weight.dtype for name, weight in model.named_parameters()}
    assert all((kind is torch.float32) == (not name.startswith("model.")) for name, kind in kinds.items())
    assert all(buffer.dtype is not torch.bfloat16 for buffer in model.buffers())


def test_half_precision_files_are_read_into_float32(pairs_folder: PairsFolder, tmp_path: Path):
    AutoModelForSequenceClassification.from_pretrained(pairs_folder("bert"), dtype=torch.bfloat16).save_pretrained(
        tmp_path
    )
    CrossEncoder.load(pairs_folder("bert"), **CPU).tokenizer.save_pretrained(tmp_path)
    weights = CrossEncoder.load(tmp_path, **CPU).model.parameters()
    assert {weight.dtype for weight in weights} == {torch.float32}


@pytest.mark.parametrize("budget", [1, 77, 100_000])
def test_scores_do_not_depend_on_the_token_budget(budget: int, pairs_folder: PairsFolder, tiny: EntailmentScorer):
    other = EntailmentScorer(pairs_folder("bert"), **CPU, token_budget=budget)
    assert np.abs(other.scores(TEXTS, SPACE) - tiny.scores(TEXTS, SPACE)).max() < 1e-5


def test_rows_and_columns_follow_the_input(tiny: EntailmentScorer):
    scores = tiny.scores(TEXTS, SPACE)
    turned = tiny.scores(TEXTS[::-1], SPACE.reorder(SPACE.names[::-1]))
    assert scores.shape == (len(TEXTS), len(SPACE))
    assert np.abs(turned[::-1, ::-1] - scores).max() < 1e-5
    assert np.abs(scores[0] - scores[-1]).max() < 1e-5  # the same text twice


@pytest.mark.usefixtures("two_threads")
def test_many_batches_on_several_threads_give_the_same(tiny: EntailmentScorer, pairs_folder: PairsFolder):
    spread = EntailmentScorer(pairs_folder("bert"), **CPU, token_budget=40).scores(TEXTS, SPACE)
    torch.set_num_threads(1)
    assert np.abs(spread - tiny.scores(TEXTS, SPACE)).max() < 1e-5


def test_an_end_token_inside_a_text_does_not_end_it(pairs_folder: PairsFolder):
    """BART needs equally many end tokens in every row, so those inside a text are removed."""
    model = CrossEncoder.load(pairs_folder("bart"), **CPU)
    found = all_logits(model, ["the bank</s> said", "the bank said", "a </s></s></s>"], ["good", "bad</s>"])
    assert np.abs(found[0] - found[1]).max() < 1e-5


# ---- what is cut


def test_truncation_leaves_the_label_whole(pairs_folder: PairsFolder):
    model = CrossEncoder.load(pairs_folder("bert"), **CPU, max_tokens=16)
    label = "one two good bank market money"
    cut = all_logits(model, ["world " * 500], [label])
    # [CLS] 7 words [SEP] 6 words [SEP]
    whole = plain_scores(pairs_folder("bert"), ["world " * 7], [label])
    assert np.abs(cut - whole).max() < 1e-5
    assert np.abs(cut - all_logits(model, ["world " * 500], ["one two good bank market"])).max() > 1e-3


def test_a_label_that_leaves_no_room_for_the_text_is_named(pairs_folder: PairsFolder):
    scorer = EntailmentScorer(pairs_folder("bert"), **CPU, max_tokens=16)
    space = LabelSpace.from_names(["good", "bank " * 14], template="{label}")
    with pytest.raises(InputError, match=r"the label 'bank bank .*' alone takes 14 of the 16 tokens"):
        scorer.scores(["a text"], space)


@pytest.mark.parametrize("kind", ["bert", "roberta", "xlm-roberta"])
def test_a_tokenizer_without_a_limit_gets_that_of_the_positions(kind: str, tmp_path: Path):
    """RoBERTa's positions start after the padding index: 130 of them read 128 tokens."""
    model = CrossEncoder.load(build_pairs(kind, tmp_path, max_tokens=int(1e30)), **CPU)
    assert model.max_tokens == MAX_TOKENS
    assert np.isfinite(all_logits(model, ["bank " * 500], ["good"])).all()


def test_more_tokens_than_the_model_reads_are_refused(pairs_folder: PairsFolder):
    with pytest.raises(EncoderError, match=r"max_tokens is more than .* can read \(64\)\. Got 65"):
        EntailmentScorer(pairs_folder("bert"), **CPU, max_tokens=65)


# ---- the formula


def test_three_way_scores_are_the_formula_written_out(tiny: EntailmentScorer):
    logits = all_logits(tiny.model, TEXTS, SPACE.verbalizers)
    scores = tiny.scores(TEXTS, SPACE)
    for text in range(len(TEXTS)):
        for label in range(len(SPACE)):
            expected = log_odds_by_hand(logits[text, label].tolist(), 0)
            assert scores[text, label] == pytest.approx(expected, abs=1e-5)


def test_one_logit_is_the_score(pairs_folder: PairsFolder):
    folder = pairs_folder("bert", "score")
    expected = plain_scores(folder, TEXTS[:2], SPACE.verbalizers)[..., 0]
    for score in ("log_odds", "logit"):
        assert np.abs(EntailmentScorer(folder, **CPU, score=score).scores(TEXTS[:2], SPACE) - expected).max() < 1e-5


def test_two_classes_score_by_their_difference(pairs_folder: PairsFolder):
    folder = pairs_folder("bert", "not_entailment", "entailment")
    logits = plain_scores(folder, TEXTS[:2], SPACE.verbalizers)
    found = EntailmentScorer(folder, **CPU).scores(TEXTS[:2], SPACE)
    assert np.abs(found - (logits[..., 1] - logits[..., 0])).max() < 1e-5


def test_the_bare_logit_is_an_option(pairs_folder: PairsFolder, tiny: EntailmentScorer, logits_of: Logits):
    bare = EntailmentScorer(pairs_folder("bert"), **CPU, score="logit").scores(TEXTS, SPACE)
    assert np.abs(bare - logits_of("bert")[..., 0]).max() < 1e-5
    assert np.abs(bare - tiny.scores(TEXTS, SPACE)).max() > 0.1


def test_log_odds_stay_finite_at_the_extremes_and_ignore_a_shift():
    logits = np.array([[900.0, -900.0, 3.0], [-900.0, 900.0, 900.0]], dtype=np.float32)
    assert log_odds(logits, 0) == pytest.approx([897.0, -1800.0 - math.log(2.0)])
    small = np.array([[0.5, -1.0, 2.0]], dtype=np.float32)
    assert log_odds(small + 8, 1) == pytest.approx(log_odds(small, 1))
    p = np.exp(small[0, 1]) / np.exp(small[0]).sum()
    assert log_odds(small, 1)[0] == pytest.approx(math.log(p / (1 - p)), abs=1e-6)


# ---- which class


@pytest.mark.parametrize(
    ("names", "index"),
    [
        (("entailment", "neutral", "contradiction"), 0),
        (("contradiction", "neutral", "entailment"), 2),
        (("CONTRADICTION", "NEUTRAL", "ENTAILMENT"), 2),
        (("not_entailment", "entailment"), 1),
        (("no", "yes"), 1),
        (("True", "False"), 0),
        (("yes", "entailment"), 1),
    ],
    ids=lambda value: "-".join(value) if isinstance(value, tuple) else str(value),
)
def test_the_entailment_class_is_found_by_its_name(names: tuple[str, ...], index: int, pairs_folder: PairsFolder):
    assert EntailmentScorer(pairs_folder("bert", *names), **CPU).entailment_index == index


@pytest.mark.parametrize(
    "names", [("LABEL_0", "LABEL_1", "LABEL_2"), ("true", "yes"), ("not_entailment", "other")], ids="-".join
)
def test_an_unnamed_class_is_not_guessed(names: tuple[str, ...], pairs_folder: PairsFolder):
    with pytest.raises(EncoderError, match=rf"0: {names[0].lower()}; 1: {names[1].lower()}.* entailment_index=\.\.\."):
        EntailmentScorer(pairs_folder("bert", *names), **CPU)


def test_the_class_can_be_given_by_its_number(pairs_folder: PairsFolder, logits_of: Logits):
    given = EntailmentScorer(pairs_folder("bert"), **CPU, entailment_index=1, score="logit")
    assert np.abs(given.scores(TEXTS[:2], SPACE) - logits_of("bert")[:2, :, 1]).max() < 1e-5


@pytest.mark.parametrize("index", [3, -1, True, "entailment"], ids=repr)
def test_an_index_out_of_range_is_refused(index: Any, pairs_folder: PairsFolder):
    with pytest.raises(EncoderError, match=r"entailment_index must be a whole number below 3\. Got .* instead"):
        EntailmentScorer(pairs_folder("bert"), **CPU, entailment_index=index)


def test_contradicting_tables_of_names_are_not_trusted(tmp_path: Path):
    folder = build_pairs("bert", tmp_path)
    change_config(folder, label2id={"contradiction": 0, "neutral": 1, "entailment": 2})
    with pytest.raises(EncoderError, match="0: contradiction, entailment"):
        EntailmentScorer(folder, **CPU)


def test_a_name_is_looked_for_in_the_order_of_the_groups():
    names = {0: frozenset({"yes"}), 1: frozenset({"entailment"})}
    assert class_index(names, [["entailment"], ["true", "yes"]]) == 1
    assert class_index(names, [["true", "yes"], ["entailment"]]) == 0
    assert class_index({}, [["entailment"]]) is None


# ---- pairs for natural language inference


def test_pair_scores_are_the_scores_of_those_pairs(tiny: EntailmentScorer):
    table = tiny.scores(TEXTS, SPACE)
    premises = [text for text in TEXTS for _ in SPACE.verbalizers]
    found = tiny.pair_scores(premises, list(SPACE.verbalizers) * len(TEXTS))
    assert found.dtype == np.float32
    assert np.abs(found - table.ravel()).max() < 1e-5


def test_pair_scores_work_in_windows(tiny: EntailmentScorer, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(cross_encoder, "WINDOW", 3)
    blocks = list(tiny.model.pair_logits(TEXTS, TEXTS[:4] + ["good"] * 3))
    assert [len(block) for block in blocks] == [3, 3, 1]


def test_pair_scores_refuse_lists_that_do_not_match(tiny: EntailmentScorer):
    with pytest.raises(InputError, match=r"each premise needs one hypothesis\. Got 2 and 1"):
        tiny.pair_scores(["a", "b"], ["c"])
    with pytest.raises(InputError, match="alone takes"):
        tiny.pair_scores(["a"], ["bank " * 100])


# ---- inputs


def test_no_texts_are_no_rows(tiny: EntailmentScorer):
    assert tiny.scores([], SPACE).shape == (0, len(SPACE))
    assert tiny.pair_scores([], []).shape == (0,)


@pytest.mark.parametrize("bad", [None, 3, b"bytes", float("nan")], ids=lambda value: type(value).__name__)
def test_the_error_for_a_text_that_is_no_string_names_its_place(bad: Any, tiny: EntailmentScorer):
    with pytest.raises(InputError, match=rf"texts must be strings\. Got {type(bad).__name__} at place 1"):
        tiny.scores(["a", bad], SPACE)


def test_a_single_string_is_no_collection(tiny: EntailmentScorer):
    with pytest.raises(InputError, match=r"single str.*pass \[text\]"):
        tiny.scores("a text", SPACE)


def test_memory_is_bounded_by_one_window(tiny: EntailmentScorer, monkeypatch: pytest.MonkeyPatch):
    planned: list[int] = []
    plan_pairs = cross_encoder.plan_pairs

    def counted(texts: Any, labels: Any, of: Any, **options: Any) -> Any:
        planned.append(len(of))
        return plan_pairs(texts, labels, of, **options)

    monkeypatch.setattr(cross_encoder, "plan_pairs", counted)
    monkeypatch.setattr(cross_encoder, "WINDOW", 15)
    blocks = tiny.model.logits(TEXTS * 4, SPACE.verbalizers)
    assert next(blocks).shape == (3, len(SPACE), 3)
    assert planned == [12]  # nothing beyond the first window is computed before it is requested
    assert sum(len(block) for block in blocks) == len(TEXTS) * 4 - 3
    assert max(planned) == 12


def test_windows_change_no_score(tiny: EntailmentScorer, monkeypatch: pytest.MonkeyPatch):
    together = all_logits(tiny.model, TEXTS, SPACE.verbalizers)
    monkeypatch.setattr(cross_encoder, "WINDOW", 1)
    assert np.abs(together - all_logits(tiny.model, TEXTS, SPACE.verbalizers)).max() < 1e-5


def test_progress_counts_pairs_up_to_the_total(tiny: EntailmentScorer, monkeypatch: pytest.MonkeyPatch):
    told: list[tuple[float, float | None]] = []

    def report(done: float, total: float | None = None, note: str = "") -> None:
        told.append((done, total))

    monkeypatch.setattr(cross_encoder, "WINDOW", 8)
    list(tiny.model.logits(TEXTS, SPACE.verbalizers, report=report))
    assert told[-1] == (len(TEXTS) * len(SPACE),) * 2
    assert [done for done, _ in told] == sorted(done for done, _ in told)


def test_the_progress_bar_is_shown_on_request(pairs_folder: PairsFolder, capsys: pytest.CaptureFixture[str]):
    EntailmentScorer(pairs_folder("bert"), **CPU, verbose=True).scores(TEXTS, SPACE)
    assert "scoring pairs: 28 of 28" in capsys.readouterr().err


# ---- what is refused


def test_pickled_weights_are_refused(pairs_folder: PairsFolder, tmp_path: Path):
    model = CrossEncoder.load(pairs_folder("bert"), **CPU)
    inner: Any = model.model
    inner.config.save_pretrained(tmp_path)
    model.tokenizer.save_pretrained(tmp_path)
    torch.save(inner.state_dict(), tmp_path / "pytorch_model.bin")
    with pytest.raises(EncoderError, match="holds weights as a pickle"):
        EntailmentScorer(tmp_path, **CPU)


def test_an_encoder_without_a_head_is_refused_rather_than_given_a_random_one(tiny_encoder_folder: Path):
    with pytest.raises(EncoderError, match=r"lacks weights .*classifier\.bias.*; it is no cross-encoder"):
        EntailmentScorer(tiny_encoder_folder, **CPU)


def test_a_truncated_file_is_refused_in_one_line(tmp_path: Path):
    weights = build_pairs("bert", tmp_path) / "model.safetensors"
    weights.write_bytes(weights.read_bytes()[:1000])
    with pytest.raises(EncoderError, match="cannot be opened as a sequence-classification model") as caught:
        EntailmentScorer(tmp_path, **CPU)
    assert "\n" not in str(caught.value)


def test_a_damaged_header_is_refused_in_one_line(tmp_path: Path):
    (build_pairs("bert", tmp_path) / "labelspace.json").write_text("{", encoding="utf-8")
    with pytest.raises(ModelFolderError, match=r"labelspace\.json is damaged"):
        EntailmentScorer(tmp_path, **CPU)


def test_remote_code_is_refused_unless_allowed_by_name(tmp_path: Path):
    with pytest.raises(RemoteCodeError, match="trust_remote_code"):
        EntailmentScorer(build_tiny("gte-remote", tmp_path / "remote"), **CPU)


def test_an_unknown_name_is_refused(tmp_path: Path):
    with pytest.raises(EncoderNotFoundError, match="someone/no-such-model"):
        EntailmentScorer("someone/no-such-model", **CPU, offline=True)


def test_a_tokenizer_without_padding_is_refused(tmp_path: Path):
    folder = build_pairs("qwen3", tmp_path, {0: "score"})
    tokenizer = CrossEncoder.load(folder, **CPU).tokenizer
    tokenizer.pad_token = None
    tokenizer.save_pretrained(folder)
    with pytest.raises(EncoderError, match="has no padding token"):
        EntailmentScorer(folder, **CPU)


@pytest.mark.parametrize(
    ("option", "value"),
    [("score", "probability"), ("dtype", "float16"), ("token_budget", 0), ("max_tokens", 2), ("device", "nowhere")],
    ids=lambda value: str(value),
)
def test_invalid_options_are_refused(option: str, value: Any, pairs_folder: PairsFolder):
    with pytest.raises(ConfigError, match=option):
        EntailmentScorer(pairs_folder("bert"), **{**CPU, option: value})


# ---- description


def test_it_describes_itself(tiny: EntailmentScorer, pairs_folder: PairsFolder):
    expected = AutoModelForSequenceClassification.from_pretrained(pairs_folder("bert")).num_parameters()
    told = tiny.describe()
    assert (tiny.family, tiny.name, tiny.parameters) == ("nli", str(pairs_folder("bert")), expected)
    assert told["kind"] == "sequence-classification"
    assert (told["score"], told["entailment_index"], told["classes"]) == ("log_odds", 0, 3)
    assert (told["dtype"], told["max_tokens"], told["parameters"]) == ("float32", 64, expected)
    assert "EntailmentScorer" in repr(tiny)
    assert "classes=3" in repr(tiny.model)


# ---- folders of train-nli


@pytest.fixture(scope="module", params=["binary", "triplet"])
def trained(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return a folder like those of `labelspace train-nli`, without training."""
    from labelspace.training.nli.model import NLIModel

    model = NLIModel.from_encoder("tests/data/tiny-bert", request.param, 0, dtype="float32", device="cpu")
    return Path(model.save(tmp_path_factory.mktemp("nli") / request.param))


def test_a_folder_of_train_nli_scores_like_its_model(trained: Path):
    from labelspace.training.nli.model import NLIModel

    model = NLIModel.load(trained, dtype="float32", device="cpu")
    rows = []
    with torch.inference_mode():
        for text in TEXTS:
            for label in SPACE.verbalizers:
                pair = model.tokenizer(text, label, truncation="only_first", max_length=128, return_tensors="pt")
                rows.append(model(**pair)[0].tolist())
    scorer = EntailmentScorer(trained, **CPU, token_budget=200)
    assert scorer.model.kind == "nli-cross-encoder"
    assert scorer.model.max_tokens == model.max_tokens == 128
    expected = [row[0] if len(row) == 1 else log_odds_by_hand(row, 0) for row in rows]
    assert np.abs(scorer.scores(TEXTS, SPACE).ravel() - expected).max() < 1e-5


def test_a_folder_of_train_nli_reads_up_to_the_encoders_limit(tmp_path: Path):
    from labelspace.training.nli.model import NLIModel

    model = NLIModel.from_encoder("tests/data/tiny-bert", "binary", 0, dtype="float32", device="cpu", max_tokens=16)
    folder = model.save(tmp_path / "short")
    scorer = EntailmentScorer(folder, **CPU)
    assert scorer.model.max_tokens == 128
    assert scorer.weights == Path(folder)
    long = " ".join(TEXTS * 20)
    short = EntailmentScorer(folder, **CPU, max_tokens=16)
    assert not np.allclose(scorer.scores([long], SPACE), short.scores([long], SPACE), atol=1e-4)


def test_a_folder_of_train_nli_runs_in_bfloat16_with_a_float32_head(trained: Path):
    narrow = EntailmentScorer(trained, dtype="bfloat16", device="cpu")
    head = {weight.dtype for name, weight in narrow.model.model.named_parameters() if "backbone" not in name}
    assert head == {torch.float32}
    assert np.abs(narrow.scores(TEXTS, SPACE) - EntailmentScorer(trained, **CPU).scores(TEXTS, SPACE)).max() < 0.1


# ---- the authors' own program


@pytest.mark.parametrize("kind", ["bert", "roberta"])  # with token types and without; every kind is compared above
def test_scores_equal_those_of_the_authors_program(kind: str, pairs_folder: PairsFolder):
    authors = pytest.importorskip("btzsc.models.nli", reason="the package btzsc is not installed")
    folder = pairs_folder(kind)
    expected = authors.NLIModel(str(folder), device="cpu").predict_scores(TEXTS, list(SPACE.verbalizers), batch_size=1)
    found = EntailmentScorer(folder, **CPU, score="logit").scores(TEXTS, SPACE)
    assert np.abs(found - expected).max() < 1e-4
