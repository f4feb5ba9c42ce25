"""A plain folder is opened without sentence-transformers, to the same bits; any other one as before."""

import copy
import json
import pickle
import shutil
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import torch
from safetensors.torch import load_file, save_file

from labelspace.encoders import Encoder
from labelspace.encoders.plain import PlainFolder
from labelspace.errors import EncoderError

TEXTS = [
    "The team won the match.",
    "",
    "  white space\taround\n",
    "Müller naïve 北京 ☃ zyxw e\u0301",
    "[PAD] and [SEP] <pad> </s> <mask> in a text",
    "word " * 400,
]
PLAIN = ("bert-mean", "bert-cls", "mpnet-mean", "unigram-mean")


@pytest.fixture
def folder(tiny_folder: Callable[[str], Path], tmp_path: Path) -> Path:
    return Path(shutil.copytree(tiny_folder("bert-mean"), tmp_path / "encoder"))


def read(folder: Path, **options: Any) -> PlainFolder | None:
    return PlainFolder.read(str(folder), **{"pooling": None, "max_tokens": None, **options})


def change(file: Path, **values: Any) -> None:
    content = json.loads(file.read_text(encoding="utf-8"))
    file.write_text(json.dumps({**content, **values}), encoding="utf-8")


@pytest.mark.parametrize(("kind", "dtype"), [*((kind, "float32") for kind in PLAIN), ("bert-mean", "bfloat16")])
def test_both_ways_to_open_give_the_same_tokens_and_bits(kind: str, dtype: str, tiny_folder: Callable[[str], Path]):
    encoder = Encoder(tiny_folder(kind), dtype=dtype, device="cpu")
    assert read(tiny_folder(kind)) is not None
    tokens, counts, vectors = encoder.tokenize(TEXTS), encoder.count_tokens(TEXTS), encoder.encode(TEXTS)
    weights, facts = {name: weight.clone() for name, weight in encoder.weights().items()}, encoder.describe()
    backbone = encoder.backbone
    backbone.weights_changed()  # so that nothing is kept from before
    assert encoder.tokenize(TEXTS) == tokens
    assert encoder.count_tokens(TEXTS) == counts
    assert (encoder.encode(TEXTS) == vectors).all()
    assert encoder.describe() == facts
    assert list(encoder.weights()) == list(weights)
    assert all(torch.equal(weight, weights[name]) for name, weight in encoder.weights().items())


@pytest.mark.parametrize("kind", ["modernbert-cls", "qwen3-last", "gemma3-mean"])
def test_other_kinds_are_not_plain(kind: str, tiny_folder: Callable[[str], Path]):
    assert read(tiny_folder(kind)) is None


@pytest.mark.parametrize("options", [{"max_tokens": 20}, {"pooling": "last"}, {"pooling": "cls", "max_tokens": 9}])
def test_options_hold_both_ways(options: dict[str, Any], folder: Path):
    encoder = Encoder(folder, dtype="float32", device="cpu", **options)
    limit, vectors = encoder.max_tokens, encoder.encode(TEXTS)
    encoder.backbone.weights_changed()
    assert encoder.max_tokens == limit == options.get("max_tokens", 128)
    assert (encoder.encode(TEXTS) == vectors).all()


def test_a_saved_encoder_is_plain_again(folder: Path, tmp_path: Path):
    encoder = Encoder(folder, dtype="float32", device="cpu", text_prompt="news: ")
    encoder.save(tmp_path / "saved")
    assert read(tmp_path / "saved") is not None
    again = Encoder(tmp_path / "saved", dtype="float32", device="cpu")
    assert again.prompts == encoder.prompts
    assert (again.encode(TEXTS) == encoder.encode(TEXTS)).all()


@pytest.mark.slow
def test_opening_and_encoding_imports_no_transformers(folder: Path):
    script = (
        "import sys; from labelspace import Encoder; "
        f"Encoder({str(folder)!r}).encode(['a text']); "
        "print(sorted({'transformers', 'sentence_transformers', 'jinja2', 'peft'} & set(sys.modules)))"
    )
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"


NOT_PLAIN: dict[str, Callable[[Path], object]] = {
    "remote code": lambda folder: change(folder / "config.json", auto_map={"AutoModel": "modeling.Model"}),
    "another activation": lambda folder: change(folder / "config.json", hidden_act="relu"),
    "lower case outside": lambda folder: change(folder / "sentence_bert_config.json", do_lower_case=True),
    "prompts left out": lambda folder: change(folder / "1_Pooling" / "config.json", include_prompt=False),
    "two poolings": lambda folder: change(folder / "1_Pooling" / "config.json", pooling_mode=["cls", "mean"]),
    "truncation on the left": lambda folder: change(folder / "tokenizer_config.json", truncation_side="left"),
    "files that differ": lambda folder: change(folder / "tokenizer_config.json", do_lower_case=False),
    "an unknown tokenizer": lambda folder: change(folder / "tokenizer_config.json", tokenizer_class="Other"),
    "no tokenizer.json": lambda folder: (folder / "tokenizer.json").unlink(),
    "half precision": lambda folder: save_file(
        {name: weight.half() for name, weight in load_file(folder / "model.safetensors").items()},
        folder / "model.safetensors",
    ),
    "a cut file": lambda folder: (folder / "model.safetensors").write_bytes(b"cut"),
    "no JSON": lambda folder: (folder / "config.json").write_text("{"),
    "JSON of another form": lambda folder: (folder / "modules.json").write_text("[1]"),
    "a token of an older file": lambda folder: (folder / "added_tokens.json").write_text('{"<new>": 400}'),
    "a special token of an older file": lambda folder: (folder / "special_tokens_map.json").write_text(
        '{"additional_special_tokens": [{"content": "<new>"}]}'
    ),
}


NOT_AS_IT_IS: dict[str, Callable[[Path], object]] = {
    "a token to add": lambda folder: change(folder / "tokenizer_config.json", pad_token="<new>"),
    "a setting that may add": lambda folder: change(folder / "tokenizer_config.json", add_eos_token=True),
    "a token of an older file": lambda folder: (folder / "added_tokens.json").write_text('{"<new>": 400}'),
    "a special token of an older file": lambda folder: (folder / "special_tokens_map.json").write_text(
        '{"pad_token": "<new>"}'
    ),
    "no post-processor": lambda folder: change(folder / "tokenizer.json", post_processor=None),
    "truncation on the left": lambda folder: change(
        folder / "tokenizer.json",
        truncation={"direction": "Left", "max_length": 9, "strategy": "LongestFirst", "stride": 0},
    ),
}


@pytest.mark.parametrize("deviation", NOT_AS_IT_IS)
def test_a_tokenizer_that_transformers_would_change_is_left_to_it(
    deviation: str, tiny_folder: Callable[[str], Path], tmp_path: Path
):
    folder = shutil.copytree(tiny_folder("unigram-mean"), tmp_path / "encoder")
    assert read(folder) is not None
    NOT_AS_IT_IS[deviation](folder)
    assert read(folder) is None


def test_older_files_that_name_known_tokens_change_nothing(folder: Path):
    special = {"unk_token": next(token["content"] for token in added(folder))}
    (folder / "special_tokens_map.json").write_text(json.dumps(special))
    opened = read(folder)
    assert opened is not None
    (folder / "special_tokens_map.json").write_text(json.dumps({**special, "pad_token": "<new>"}))
    with pytest.raises(EncoderError, match="has changed"):
        opened.weights()


def added(folder: Path) -> list[dict[str, Any]]:
    return json.loads((folder / "tokenizer.json").read_text(encoding="utf-8"))["added_tokens"]


@pytest.mark.parametrize("deviation", NOT_PLAIN)
def test_what_is_not_plain_is_left_to_sentence_transformers(deviation: str, folder: Path):
    assert read(folder) is not None
    NOT_PLAIN[deviation](folder)
    assert read(folder) is None


def test_an_encoder_with_a_dense_module_is_left_to_sentence_transformers(folder: Path):
    modules = json.loads((folder / "modules.json").read_text(encoding="utf-8"))
    dense = {"idx": 2, "name": "2", "path": "2_Dense", "type": "sentence_transformers.models.Dense"}
    (folder / "modules.json").write_text(json.dumps([*modules[:2], dense]), encoding="utf-8")
    assert read(folder) is None
    assert read(folder, pooling="cls") is None


def test_a_folder_that_changed_cannot_be_trained_or_saved(folder: Path, tmp_path: Path):
    encoder = Encoder(folder, dtype="float32", device="cpu")
    vectors = encoder.encode(TEXTS)
    weights = {name: 2 * weight for name, weight in load_file(folder / "model.safetensors").items()}
    save_file(weights, folder / "model.safetensors")
    assert (encoder.encode(TEXTS) == vectors).all()
    for use in (lambda: encoder.save(tmp_path / "saved"), encoder.weights, lambda: encoder.backbone):
        with pytest.raises(EncoderError, match=r"has changed or moved since it was opened; .*open it again\.$"):
            use()
    shutil.rmtree(folder)
    with pytest.raises(EncoderError, match="has changed or moved since it was opened"):
        encoder.weights()
    assert not (tmp_path / "saved").exists()


@pytest.mark.parametrize("opened", [False, True])
def test_copies_and_pickles_give_the_same_bits(opened: bool, folder: Path):
    encoder = Encoder(folder, dtype="bfloat16", device="cpu")
    vectors = encoder.encode(TEXTS)
    if opened:
        assert encoder.backbone.packed() is not None
    for twin in (copy.deepcopy(encoder), pickle.loads(pickle.dumps(encoder))):
        assert (twin.encode(TEXTS) == vectors).all()


def test_an_encoder_remembers_that_it_was_trained_before_and_after_it_is_opened(folder: Path):
    encoder = Encoder(folder, dtype="float32", device="cpu")
    assert not encoder.trained
    encoder.trained = True
    assert encoder.backbone.trained
    assert copy.deepcopy(encoder).trained
    encoder.trained = False
    assert not encoder.backbone.trained
    with encoder.backbone.training_mode(encoder_dropout=False):
        pass
    assert encoder.trained
