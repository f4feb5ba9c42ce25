"""`Encoder` gives sentence-transformers' vectors, in input order, in bounded memory, on every architecture."""

import copy
import json
import pickle
import shutil
import warnings
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from safetensors.torch import load_file, save_file
from sentence_transformers import SentenceTransformer
from sentence_transformers.sentence_transformer.modules import Dense, Pooling, StaticEmbedding, Transformer
from tokenizers import Tokenizer

from labelspace.encoders import Encoder
from labelspace.encoders.backbone import Backbone
from labelspace.encoders.identity import encoder_hash
from labelspace.encoders.packed import PackedTransformer
from labelspace.errors import ConfigError, EncoderError, InputError, LabelSpaceWarning
from tiny_models import BUILDERS, MAX_TOKENS, WIDTH

TEXTS = [
    "The team won the match.",
    "a",
    "  white space around  ",
    "",
    "Müller 北京 ☃ zyxw",
    "bank " * 60,
    "word " * 400,
    "News of prices, markets and money; the bank said no more than that on the first day of the week.",
    "The team won the match.",
]

every_kind = pytest.mark.parametrize("kind", BUILDERS)
Opener = Callable[..., Encoder]


@pytest.fixture
def open_tiny(tiny_folder: Callable[[str], Path]) -> Opener:
    def opened(kind: str = "bert-mean", **options: object) -> Encoder:
        plain = {"dtype": "float32", "device": "cpu", "text_prompt": "", "label_prompt": ""}
        return Encoder(tiny_folder(kind), **{**plain, **options})  # type: ignore[arg-type]

    return opened


@pytest.fixture(scope="module")
def shared(tiny_folder: Callable[[str], Path]) -> Encoder:
    """A tiny BERT for tests that do not change it; its small budget makes several batches of a few texts."""
    return Encoder(tiny_folder("bert-mean"), dtype="float32", device="cpu", token_budget=64)


# ---- the vectors


@every_kind
def test_vectors_are_those_of_sentence_transformers(kind: str, open_tiny: Opener, tiny_folder: Callable[[str], Path]):
    reference = SentenceTransformer(str(tiny_folder(kind)), device="cpu")
    expected = reference.encode(TEXTS, normalize_embeddings=True)
    found = open_tiny(kind, token_budget=300).encode(TEXTS)
    assert found.dtype == np.float32
    assert found.shape == (len(TEXTS), WIDTH)
    assert np.abs(found - expected).max() < 1e-5
    assert np.abs(np.linalg.norm(found, axis=1) - 1).max() < 1e-5


@pytest.mark.parametrize("kind", ["bert-mean", "unigram-mean", "gemma3-mean"])
def test_prompts_are_applied_as_in_sentence_transformers(
    kind: str, open_tiny: Opener, tiny_folder: Callable[[str], Path]
):
    reference = SentenceTransformer(str(tiny_folder(kind)), device="cpu")
    encoder = open_tiny(kind, text_prompt="query: ", label_prompt="passage: ")
    plain = open_tiny(kind, text_prompt="", label_prompt="").encode(TEXTS)
    for role, prompt in (("text", "query: "), ("label", "passage: ")):
        expected = reference.encode(TEXTS, prompt=prompt, normalize_embeddings=True)
        found = encoder.encode(TEXTS, role=role)
        assert np.abs(found - expected).max() < 1e-5
        assert np.abs(found - plain).max() > 0.01


def test_a_prompt_is_not_pooled_if_the_pooling_excludes_it(open_tiny: Opener, tmp_path: Path):
    """As in INSTRUCTOR: the prompt is read, but its tokens are not averaged."""
    encoder = open_tiny(text_prompt="news text: ")
    averaged = encoder.encode(TEXTS)
    encoder.backbone.model._modules["1"] = Pooling(WIDTH, pooling_mode="mean", include_prompt=False)
    encoder.save(tmp_path / "instructor")
    reference = SentenceTransformer(str(tmp_path / "instructor"), device="cpu")
    expected = reference.encode(TEXTS, prompt="news text: ", normalize_embeddings=True)
    found = Encoder(tmp_path / "instructor", dtype="float32", device="cpu").encode(TEXTS)
    assert np.abs(found - expected).max() < 1e-5
    assert np.abs(found - averaged).max() > 0.01


@every_kind
def test_bfloat16_stays_within_two_hundredths_of_a_cosine(kind: str, open_tiny: Opener):
    wide, low = open_tiny(kind).encode(TEXTS), open_tiny(kind, dtype="bfloat16").encode(TEXTS)
    assert low.dtype == np.float32
    assert np.abs(np.linalg.norm(low, axis=1) - 1).max() < 1e-5
    assert ((wide * low).sum(axis=1) > 1 - 2e-2).all()
    assert np.abs((wide @ wide.T) - (low @ low.T)).max() < 2e-2
    assert (wide != low).any()  # otherwise bfloat16 was not used


# ---- prompts


@pytest.fixture
def with_prompts(tiny_encoder_folder: Path, tmp_path: Path) -> Callable[..., Path]:
    """Make a tiny encoder whose folder holds prompts, in a folder of any name."""

    def made(prompts: dict[str, str], default: str | None = None, name: str = "prompted") -> Path:
        folder = shutil.copytree(tiny_encoder_folder, tmp_path / name)
        path = folder / "config_sentence_transformers.json"
        config = json.loads(path.read_text(encoding="utf-8"))
        path.write_text(json.dumps(config | {"prompts": prompts, "default_prompt_name": default}), encoding="utf-8")
        return folder

    return made


PROMPTS = {"query": "query: ", "document": "passage: "}


def test_an_unregistered_encoder_uses_its_own_default_prompt(with_prompts: Callable[..., Path]):
    folder = with_prompts(PROMPTS, "document")
    encoder = Encoder(folder, dtype="float32", device="cpu")
    assert encoder.prompts == {"text": "passage: ", "label": "passage: "}
    expected = SentenceTransformer(str(folder), device="cpu").encode(TEXTS, normalize_embeddings=True)
    for role in ("text", "label"):
        assert np.abs(encoder.encode(TEXTS, role=role) - expected).max() < 1e-5


@pytest.mark.parametrize(
    ("options", "expected"),
    [
        ({"text_prompt": ""}, {"text": "", "label": "query: "}),
        ({"label_prompt": "topic: "}, {"text": "query: ", "label": "topic: "}),
    ],
)
def test_a_default_prompt_is_overridden_separately_for_each_role(
    options: dict[str, str], expected: dict[str, str], with_prompts: Callable[..., Path]
):
    assert Encoder(with_prompts(PROMPTS, "query"), **options).prompts == expected  # type: ignore[arg-type]


def test_the_registrys_prompt_precedes_an_encoders_own_default(with_prompts: Callable[..., Path]):
    e5 = with_prompts(PROMPTS, "document", name="multilingual-e5-base")
    assert Encoder(e5).prompts == {"text": "query: ", "label": "query: "}
    assert Encoder(with_prompts(PROMPTS, "document", name="all-MiniLM-L6-v2")).prompts == {"text": "", "label": ""}


def test_prompts_without_a_default_are_named_in_one_warning(with_prompts: Callable[..., Path]):
    folder = with_prompts({**PROMPTS, "nothing": ""})
    with pytest.warns(LabelSpaceWarning) as caught:
        encoder = Encoder(folder)
    assert [str(warning.message) for warning in caught] == [
        f"{folder} has prompts ('query', 'document') but no default one, so none is used; pass text_prompt= and "
        'label_prompt=, or "" for none.'
    ]
    assert caught[0].filename == __file__
    assert encoder.prompts == {"text": "", "label": ""}


@pytest.mark.parametrize(
    ("prompts", "default", "options"),
    [
        ({}, None, {}),
        ({"query": "", "document": ""}, None, {}),
        ({"query": "query: ", "document": ""}, "document", {}),
        (PROMPTS, None, {"text_prompt": ""}),
    ],
)
def test_there_is_no_warning_if_no_prompt_is_missing(
    prompts: dict[str, str], default: str | None, options: dict[str, str], with_prompts: Callable[..., Path]
):
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        encoder = Encoder(with_prompts(prompts, default), **options)  # type: ignore[arg-type]
    assert encoder.prompts == {"text": "", "label": ""}


@pytest.mark.parametrize(
    ("default", "options"), [("query", {}), ("query", {"text_prompt": ""}), (None, {"text_prompt": ""})]
)
def test_saved_prompts_precede_the_default_without_a_warning(
    default: str | None, options: dict[str, str], with_prompts: Callable[..., Path], tmp_path: Path
):
    encoder = Encoder(with_prompts(PROMPTS, default), dtype="float32", device="cpu", **options)  # type: ignore[arg-type]
    encoder.copy().save(tmp_path / "saved")
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        again = Encoder(tmp_path / "saved", dtype="float32", device="cpu")
    assert again.prompts == encoder.prompts
    for role in ("text", "label"):
        assert (again.encode(TEXTS, role=role) == encoder.encode(TEXTS, role=role)).all()


# ---- order and batches


@given(st.lists(st.integers(0, 40), min_size=1, max_size=20), st.randoms(use_true_random=False))
@settings(max_examples=25, suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow])
def test_vectors_come_in_input_order_for_any_lengths(shared: Encoder, lengths: list[int], random):
    texts = [" ".join(random.choices(["team", "bank", "war", "film"], k=length)) for length in lengths]
    together = shared.encode(texts)
    one_by_one = np.concatenate([shared.encode([text]) for text in texts])
    assert np.abs(together - one_by_one).max() < 1e-5


@pytest.mark.parametrize("budget", [1, 7, 100, 100_000])
def test_the_budget_changes_no_vector_in_float32(budget: int, open_tiny: Opener, shared: Encoder):
    assert np.abs(open_tiny(token_budget=budget).encode(TEXTS) - shared.encode(TEXTS)).max() < 1e-5


def test_no_batch_passes_the_budget(open_tiny: Opener, monkeypatch: pytest.MonkeyPatch):
    sizes = []
    embed, packed = Backbone.embed, PackedTransformer.embed

    def padded_spy(self, batch, **options):
        sizes.append((len(batch.positions), batch.tokens))
        return embed(self, batch, **options)

    def packed_spy(self, token_ids):
        sizes.append((len(token_ids), sum(map(len, token_ids))))
        return packed(self, token_ids)

    monkeypatch.setattr(Backbone, "embed", padded_spy)
    monkeypatch.setattr(PackedTransformer, "embed", packed_spy)
    for kind in ("bert-mean", "modernbert-cls"):
        sizes.clear()
        open_tiny(kind, token_budget=64).encode(TEXTS)
        assert len(sizes) > 3
        assert all(rows == 1 or tokens <= 64 for rows, tokens in sizes)


def test_a_folder_without_a_pooler_has_the_same_weights_at_each_opening(tiny_encoder_folder: Path, tmp_path: Path):
    """transformers draws what a folder lacks at random, and a checkpoint would belong to another encoder each time."""
    folder = shutil.copytree(tiny_encoder_folder, tmp_path / "encoder")
    weights = load_file(folder / "model.safetensors")
    save_file({name: kept for name, kept in weights.items() if "pooler" not in name}, folder / "model.safetensors")
    first, second = (Encoder(folder, dtype="float32", device="cpu") for _ in range(2))
    assert encoder_hash(first) == encoder_hash(second)
    assert not first.backbone.model.state_dict()["0.model.pooler.dense.weight"].any()
    whole = Encoder(tiny_encoder_folder, dtype="float32", device="cpu")
    assert whole.backbone.model.state_dict()["0.model.pooler.dense.weight"].any()
    assert (first.encode(TEXTS) == whole.encode(TEXTS)).all()


# ---- streams


def test_encode_iter_is_lazy_and_holds_one_window(shared: Encoder):
    read = 0

    def texts() -> Iterator[str]:
        nonlocal read
        for number in range(35):
            read += 1
            yield f"text {number}"

    stream = shared.encode_iter(texts(), window=10)
    assert read == 0
    blocks = []
    for block in stream:
        blocks.append(block)
        assert read == min(35, 10 * len(blocks))
    assert [len(block) for block in blocks] == [10, 10, 10, 5]
    whole = shared.encode([f"text {number}" for number in range(35)])
    assert np.abs(np.concatenate(blocks) - whole).max() < 1e-5


def test_any_iterable_of_texts_is_accepted(shared: Encoder):
    expected = shared.encode(TEXTS)
    for same in (tuple(TEXTS), iter(TEXTS), (text for text in TEXTS), np.array(TEXTS, dtype=object)):
        assert (shared.encode(same) == expected).all()


def test_an_empty_input_gives_an_empty_array_of_the_right_width(shared: Encoder):
    for nothing in ([], iter(())):
        assert shared.encode(nothing).shape == (0, WIDTH)
        assert shared.encode(nothing).dtype == np.float32
    assert list(shared.encode_iter([])) == []


def test_a_bare_string_is_refused_because_its_letters_would_be_encoded(shared: Encoder):
    with pytest.raises(InputError, match=r"a single str.*\[text\]"):
        shared.encode("a text")


@pytest.mark.parametrize(
    ("wrong", "said"),
    [(None, r"NoneType \(None\)"), (3, "int"), (b"a", "bytes"), ("a \ud800", "lone surrogate.*ud800")],
)
def test_what_is_no_text_is_named(shared: Encoder, wrong: Any, said: str):
    for ask in (shared.encode, shared.count_tokens, shared.tokenize):
        with pytest.raises(InputError, match=said):
            ask(["a text", wrong])


def test_progress_reports_the_texts_done(shared: Encoder):
    told = []
    list(shared.encode_iter(TEXTS, window=4, total=len(TEXTS), report=lambda done, total, note="": told.append(done)))
    assert told == sorted(told)
    assert told[-1] == len(TEXTS)


# ---- options


@pytest.mark.parametrize(
    ("dtype", "expected"), [("float32", {"float32"}), ("bfloat16", {"bfloat16"}), ("auto", {"float32", "bfloat16"})]
)
def test_the_requested_dtype_is_used_and_weights_stay_float32(dtype: str, expected: set[str], open_tiny: Opener):
    encoder = open_tiny(dtype=dtype)
    encoder.encode(["a text"])
    assert encoder.dtype in expected
    assert all(parameter.dtype is torch.float32 for parameter in encoder.backbone.model.parameters())


def test_pooling_can_be_replaced_and_is_saved_with_the_folder(
    open_tiny: Opener, tiny_folder: Callable[[str], Path], tmp_path: Path
):
    as_cls = open_tiny("bert-mean", pooling="cls")
    assert np.abs(as_cls.encode(TEXTS) - open_tiny("bert-mean").encode(TEXTS)).max() > 0.01
    assert as_cls.describe()["pooling"] == "cls"
    as_cls.save(tmp_path / "cls")
    expected = SentenceTransformer(str(tmp_path / "cls"), device="cpu").encode(TEXTS)
    assert np.abs(as_cls.encode(TEXTS) - expected).max() < 1e-5


def test_another_pooling_leaves_the_prompt_out_if_the_encoders_own_does(open_tiny: Opener, tmp_path: Path):
    encoder = open_tiny(text_prompt="news text: ")
    encoder.backbone.model._modules["1"] = Pooling(WIDTH, pooling_mode="mean", include_prompt=False)
    encoder.save(tmp_path / "instructor")
    own = Encoder(tmp_path / "instructor", dtype="float32", device="cpu").encode(TEXTS)
    again = Encoder(tmp_path / "instructor", dtype="float32", device="cpu", pooling="mean").encode(TEXTS)
    assert np.abs(own - again).max() < 1e-6


def test_a_pooling_whose_vectors_later_modules_cannot_read_is_refused(
    tiny_folder: Callable[[str], Path], tmp_path: Path
):
    modules = [Transformer(str(tiny_folder("bert-mean"))), Pooling(WIDTH, ("mean", "max")), Dense(2 * WIDTH, 8)]
    SentenceTransformer(modules=modules, device="cpu").save(str(tmp_path / "dense"), create_model_card=False)
    assert Encoder(tmp_path / "dense", device="cpu").encode(["a text"]).shape == (1, 8)
    with pytest.raises(EncoderError, match="modules of this encoder read the vectors of its own pooling"):
        Encoder(tmp_path / "dense", device="cpu", pooling="cls").encode(["a text"])


def test_an_encoder_without_a_transformer_is_refused_in_one_line(tiny_folder: Callable[[str], Path], tmp_path: Path):
    tokenizer = Tokenizer.from_file(str(tiny_folder("bert-mean") / "tokenizer.json"))
    model = SentenceTransformer(modules=[StaticEmbedding(tokenizer, embedding_dim=8)], device="cpu")
    model.save(str(tmp_path / "static"), create_model_card=False)
    with pytest.raises(EncoderError, match=r"its first module is StaticEmbedding, and it must be a transformer"):
        Encoder(tmp_path / "static", device="cpu").encode(["a text"])


@pytest.mark.parametrize("role", ["text", "label"])
def test_a_prompt_that_leaves_no_room_for_a_text_is_refused(role: str, open_tiny: Opener):
    prompt = {f"{role}_prompt": "news of the day: "}
    taken = open_tiny(**prompt).count_tokens([""], role=role)[0]
    with pytest.raises(ConfigError, match=rf"the prompt of each {role} takes {taken} tokens, .* no text would be read"):
        open_tiny(max_tokens=taken, **prompt)
    vectors = open_tiny(max_tokens=taken + 1, **prompt).encode(["bank", "team"], role=role)
    assert not (vectors[0] == vectors[1]).all()


def test_last_pooling_takes_the_last_token_that_is_not_padding(open_tiny: Opener):
    encoder = open_tiny("qwen3-last", pooling="last", token_budget=10_000)
    assert np.abs(encoder.encode(TEXTS) - open_tiny("qwen3-last").encode(TEXTS)).max() < 1e-5


def test_max_tokens_truncates_a_text(open_tiny: Opener):
    encoder = open_tiny(max_tokens=8)
    assert encoder.max_tokens == 8
    long, same_start = "one two three four five six and more", "one two three four five six but less of it"
    assert max(map(len, encoder.tokenize([long, same_start]))) == 8
    assert (encoder.encode([long]) == encoder.encode([same_start])).all()
    assert not (open_tiny().encode([long]) == open_tiny().encode([same_start])).all()


def test_limits_given_as_numpy_scalars_are_saved(open_tiny: Opener, tmp_path: Path):
    encoder = open_tiny(max_tokens=np.int64(8), token_budget=np.int32(64))
    encoder.save(tmp_path / "saved")
    assert Encoder(tmp_path / "saved").max_tokens == 8
    assert encoder.config.to_dict() == open_tiny(max_tokens=8, token_budget=64).config.to_dict()


def test_tokens_are_counted_before_truncation(open_tiny: Opener):
    encoder = open_tiny(max_tokens=8, text_prompt="news: ")
    assert encoder.count_tokens(["team " * 500]) == [500 + 2 + 2]
    assert open_tiny().max_tokens == MAX_TOKENS


def test_positions_reserved_for_padding_are_not_counted(
    open_tiny: Opener, tiny_folder: Callable[[str], Path], tmp_path: Path
):
    with pytest.raises(EncoderError, match=rf"more than the encoder can read \({MAX_TOKENS}\)"):
        open_tiny("mpnet-mean", max_tokens=MAX_TOKENS + 1)
    folder = shutil.copytree(tiny_folder("mpnet-mean"), tmp_path / "without a limit")
    for name in ("tokenizer_config.json", "sentence_bert_config.json"):
        if (path := folder / name).exists():
            facts = json.loads(path.read_text(encoding="utf-8"))
            path.write_text(
                json.dumps({k: v for k, v in facts.items() if k not in ("model_max_length", "max_seq_length")}),
                encoding="utf-8",
            )
    endless = Encoder(folder, dtype="float32", device="cpu")
    assert endless.max_tokens == MAX_TOKENS
    assert np.isfinite(endless.encode(["team " * 500])).all()


@pytest.mark.parametrize(
    ("options", "error", "message"),
    [
        ({"max_tokens": 5000}, EncoderError, r"more than the encoder can read \(128\)\. Got 5000"),
        ({"max_tokens": 0}, ConfigError, "max_tokens must be a whole number at least 4. Got 0"),
        ({"dtype": "float16"}, ConfigError, "dtype must be one of 'auto', 'float32', 'bfloat16'"),
        ({"pooling": "max"}, ConfigError, "pooling must be one of 'mean', 'cls', 'last'"),
        ({"token_budget": 0}, ConfigError, "token_budget must be a whole number at least 1"),
        ({"device": "gpu"}, ConfigError, "device 'gpu' is not available on this machine"),
    ],
)
def test_an_invalid_option_is_one_clear_error(
    options: dict[str, object], error: type[Exception], message: str, open_tiny: Opener
):
    with pytest.raises(error, match=message) as caught:
        open_tiny(**options)
    assert "\n" not in str(caught.value)


def test_a_model_in_memory_is_refused_with_what_to_do(shared: Encoder):
    with pytest.raises(ConfigError, match="Got SentenceTransformer instead; save a model to a folder and pass"):
        Encoder(shared.backbone.model)  # pyright: ignore[reportArgumentType]


def test_an_unknown_role_is_refused(shared: Encoder):
    with pytest.raises(ConfigError, match=r"role must be one of 'text', 'label'\. Got 'document'"):
        shared.encode(["a"], role="document")


def test_a_folder_without_an_encoder_is_one_clear_error(tmp_path: Path):
    (tmp_path / "config.json").write_text("{}", encoding="utf-8")
    with pytest.raises(EncoderError, match="cannot be opened as a sentence-transformers model") as caught:
        Encoder(tmp_path)
    assert "\n" not in str(caught.value)


def test_truncated_weights_are_one_clear_error(tiny_encoder_folder: Path, tmp_path: Path):
    folder = shutil.copytree(tiny_encoder_folder, tmp_path / "cut")
    weights = folder / "model.safetensors"
    weights.write_bytes(weights.read_bytes()[:-100])
    with pytest.raises(EncoderError, match="cannot be opened as a sentence-transformers model"):
        Encoder(folder)


# ---- save, copy, train


@pytest.mark.parametrize(
    ("kind", "dtype"),
    [*((kind, "float32") for kind in BUILDERS), ("bert-mean", "bfloat16"), ("gemma3-mean", "bfloat16")],
)
def test_a_saved_encoder_is_the_same_to_the_bit(kind: str, dtype: str, open_tiny: Opener, tmp_path: Path):
    encoder = open_tiny(kind, dtype=dtype)
    expected = encoder.encode(TEXTS)
    encoder.save(tmp_path / "saved")
    assert (Encoder(tmp_path / "saved", dtype=dtype, device="cpu").encode(TEXTS) == expected).all()


def test_prompts_are_saved_with_the_folder_and_can_be_overridden(open_tiny: Opener, tmp_path: Path):
    open_tiny(text_prompt="query: ", label_prompt="topic: ").save(tmp_path / "saved")
    again = Encoder(tmp_path / "saved", dtype="float32")
    assert again.prompts == {"text": "query: ", "label": "topic: "}
    assert Encoder(tmp_path / "saved", text_prompt="").prompts == {"text": "", "label": "topic: "}


def test_saving_writes_no_pickle(open_tiny: Opener, tmp_path: Path):
    open_tiny().save(tmp_path / "saved")
    suffixes = {path.suffix for path in (tmp_path / "saved").rglob("*") if path.is_file()}
    assert ".safetensors" in suffixes
    assert suffixes <= {".safetensors", ".json", ".txt", ".md"}


@pytest.mark.parametrize("dtype", ["float32", "bfloat16"])
def test_a_copy_shares_no_weight(dtype: str, open_tiny: Opener):
    encoder = open_tiny(dtype=dtype)
    before = encoder.encode(TEXTS)
    twin = encoder.copy()
    assert (twin.encode(TEXTS) == before).all()
    for parameter in twin.backbone.model.parameters():
        parameter.data.add_(torch.linspace(-1, 1, parameter.numel()).view_as(parameter))
    twin.backbone.weights_changed()
    assert (encoder.encode(TEXTS) == before).all()
    assert np.abs(twin.encode(TEXTS) - before).max() > 0.01


def test_bfloat16_vectors_follow_the_weights(open_tiny: Opener):
    """The bfloat16 copy is made once; it must not outlive the weights it was made from."""
    encoder = open_tiny(dtype="bfloat16")
    before = encoder.encode(TEXTS)
    with encoder.backbone.training_mode(encoder_dropout=False):
        for parameter in encoder.backbone.model.parameters():
            parameter.data.mul_(0.5)
    assert np.abs(encoder.encode(TEXTS) - before).max() > 1e-3


def stepped(model: SentenceTransformer, *, fused: bool) -> None:
    optimizer = torch.optim.Adam(model.parameters(), lr=0.05, fused=fused)
    model(dict(model.tokenize(TEXTS)))["sentence_embedding"].std().backward()
    optimizer.step()


def written(model: SentenceTransformer) -> None:
    for parameter in model.parameters():
        parameter.data.add_(torch.linspace(-1, 1, parameter.numel()).view_as(parameter))


TRAININGS = {"step": partial(stepped, fused=False), "fused step": partial(stepped, fused=True), "data": written}
TWINS = {"deepcopy": copy.deepcopy, "pickle": lambda one: pickle.loads(pickle.dumps(one))}


@pytest.mark.parametrize("kind", ["bert-mean", "modernbert-cls"])
@pytest.mark.parametrize("dtype", ["float32", "bfloat16"])
@pytest.mark.parametrize("training", TRAININGS)
@pytest.mark.parametrize("twin", TWINS)
def test_vectors_follow_the_callers_own_training(kind: str, dtype: str, training: str, twin: str, open_tiny: Opener):
    encoder = open_tiny(kind, dtype=dtype)
    before, model = encoder.encode(TEXTS), encoder.backbone.model
    assert not encoder.trained
    TRAININGS[training](model)
    with torch.no_grad():
        own = torch.nn.functional.normalize(model(dict(model.tokenize(TEXTS)))["sentence_embedding"]).numpy()
    assert np.abs(own - before).max() > 0.01
    for one in (TWINS[twin](encoder), encoder):  # the twin first, which nothing has told of the change
        assert np.abs(one.encode(TEXTS) - own).max() < (1e-5 if dtype == "float32" else 0.05)
        assert one.trained


@pytest.mark.parametrize("said", [True, False])
def test_saying_whether_it_is_trained_hides_no_change(said: bool, open_tiny: Opener):
    encoder = open_tiny()
    before = encoder.encode(TEXTS)
    written(encoder.backbone.model)
    encoder.trained = said
    assert encoder.trained is said
    assert np.abs(encoder.encode(TEXTS) - before).max() > 0.01


def test_what_leaves_the_weights_alone_leaves_the_encoder_untrained(open_tiny: Opener):
    encoder = open_tiny()
    encoder.encode(TEXTS)
    encoder.backbone.model.train()
    with torch.inference_mode():
        encoder.backbone.model.encode(TEXTS)
    encoder.backbone.model.eval()
    twin = pickle.loads(pickle.dumps(encoder.copy()))
    assert not encoder.trained
    assert not twin.trained


def test_the_gradient_reaches_every_layer(open_tiny: Opener):
    encoder = open_tiny()
    ids = encoder.tokenize(["the team won the match"])
    with encoder.backbone.training_mode(encoder_dropout=False):
        encoder.backbone.embed(encoder.backbone.batch(ids, [0]), training=True)[0, 0].backward()
    without = {n for n, p in encoder.backbone.model.named_parameters() if p.grad is None or not p.grad.any()}
    assert all(".pooler." in name for name in without), without


def test_repr_and_describe_identify_the_encoder(open_tiny: Opener, tiny_folder: Callable[[str], Path]):
    encoder = open_tiny(text_prompt="q: ", label_prompt="")
    assert repr(encoder) == f"Encoder({str(tiny_folder('bert-mean'))!r}, dimension=32, dtype='float32')"
    assert encoder.describe() | {"name": "", "source": ""} == {
        "name": "",
        "source": "",
        "pooling": None,
        "dimension": WIDTH,
        "max_tokens": MAX_TOKENS,
        "dtype": "float32",
        "prompts": {"text": "q: ", "label": ""},
    }


@pytest.mark.parametrize("plain", [True, False])
def test_threads_that_cut_and_count_at_once_do_not_disturb_one_another(tiny_encoder_folder, plain):
    encoder = Encoder(tiny_encoder_folder, dtype="float32", device="cpu")
    texts = ["the team won the match " * 60] * 4
    if not plain:
        _ = encoder.backbone  # opened with sentence-transformers
    cut, whole = encoder.tokenize(texts), encoder.count_tokens(texts)

    def work(number: int) -> bool:
        if number % 2:
            return all(encoder.count_tokens(texts) == whole for _ in range(10))
        return all(encoder.tokenize(texts) == cut for _ in range(10))

    with ThreadPoolExecutor(4) as pool:
        assert all(pool.map(work, range(8)))
