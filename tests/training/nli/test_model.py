"""The cross-encoder as a module and as a folder: limits, pairs, bit-identical reloading, and refusals."""

import json
import shutil
from pathlib import Path

import numpy as np
import pytest
import torch

from labelspace.errors import ConfigError, EncoderError, ModelFolderError, OutputError, RemoteCodeError
from labelspace.header import FORMAT, NLI, kind_of
from labelspace.training.nli import NLIModel
from training.nli.toy import toy_pairs

TINY = Path(__file__).parents[2] / "data" / "tiny-bert"
PAIRS = toy_pairs(9)


def tiny(variant: str = "binary", seed: int = 0, **options: object) -> NLIModel:
    given = {"dtype": "float32", "device": "cpu", **options}
    return NLIModel.from_encoder(TINY, variant, seed, **given)  # type: ignore[arg-type]


@torch.no_grad()
def logits_of(model: NLIModel) -> torch.Tensor:
    return model(*model.pad(model.tokenize(PAIRS.premises, PAIRS.hypotheses)))


@pytest.fixture(scope="module")
def saved(tmp_path_factory) -> Path:
    return tiny("triplet").save(
        tmp_path_factory.mktemp("nli") / "model", facts={"dev": {}, "provenance": {"seeds": [0]}}
    )


@pytest.fixture
def folder(saved, tmp_path) -> Path:
    """Return a saved model that the test may damage."""
    return Path(shutil.copytree(saved, tmp_path / "model"))


@pytest.mark.parametrize(("variant", "classes"), [("binary", 1), ("triplet", 3)])
def test_logits_are_float32_with_one_column_for_each_class(variant, classes):
    for dtype in ("float32", "bfloat16"):
        logits = logits_of(tiny(variant, dtype=dtype))
        assert logits.shape == (9, classes)
        assert logits.dtype == torch.float32


def test_bfloat16_stays_near_float32():
    torch.testing.assert_close(logits_of(tiny(dtype="bfloat16")), logits_of(tiny()), rtol=0.05, atol=0.05)


def test_the_seed_decides_the_head_and_global_state_stays():
    before = torch.get_rng_state()
    first, again, other = tiny(seed=0), tiny(seed=0), tiny(seed=1)
    assert torch.equal(first.head.inner.weight, again.head.inner.weight)
    assert not torch.equal(first.head.inner.weight, other.head.inner.weight)
    assert torch.equal(torch.get_rng_state(), before)


def test_padding_changes_no_logit():
    model = tiny()
    tokens = model.tokenize(["team", "team " * 20], ["war", "bank"])
    with torch.no_grad():
        together, alone = model(*model.pad(tokens)), model(*model.pad(tokens, [0]))
    torch.testing.assert_close(together[:1], alone, rtol=1e-4, atol=1e-5)


def test_token_types_separate_premise_and_hypothesis():
    tokens = tiny().tokenize(["the team"], ["a bank"])
    assert tokens.types == [[0, 0, 0, 0, 1, 1, 1]]
    assert len(tokens.ids[0]) == 7


def test_a_long_premise_is_truncated_and_the_hypothesis_is_kept():
    model = tiny(max_tokens=16)
    hypothesis = model.tokenizer("the bank", add_special_tokens=False)["input_ids"]
    ids = model.tokenize(["team " * 500], ["the bank"]).ids[0]
    assert len(ids) == 16
    assert ids[-3:-1] == hypothesis


def test_an_empty_list_of_pairs_gives_no_tokens():
    assert tiny().tokenize([], []).lengths == []


def test_the_limit_is_the_encoders_if_that_is_smaller(tiny_folder):
    assert tiny().max_tokens == 128
    assert NLIModel.from_encoder(tiny_folder("mpnet-mean"), "binary", 0, dtype="float32").max_tokens == 128
    with pytest.raises(EncoderError, match=r"can read \(128\)\. Got 129"):
        tiny(max_tokens=129)
    with pytest.raises(ConfigError, match="max_tokens must be a whole number at least 8"):
        tiny(max_tokens=4)


def test_a_model_with_another_tokenizer_trains(tiny_folder):
    model = NLIModel.from_encoder(tiny_folder("modernbert-cls"), "triplet", 0, dtype="float32", device="cpu")
    assert model.tokenize(["team"], ["bank"]).types is None
    with model.training_mode():
        assert model.training
    assert logits_of(model).shape == (9, 3)


@pytest.mark.parametrize("kind", ["qwen3-last", "gemma3-mean"])
def test_an_encoder_without_a_class_token_is_refused(tiny_folder, kind):
    with pytest.raises(EncoderError, match="does not begin a pair with a class token"):
        NLIModel.from_encoder(tiny_folder(kind), "binary", 0, dtype="float32", device="cpu")


def test_remote_code_does_not_run(tiny_folder):
    with pytest.raises(RemoteCodeError, match="trust_remote_code"):
        NLIModel.from_encoder(tiny_folder("gte-remote"), "binary", 0)


def test_an_unknown_variant_is_refused_before_anything_is_opened():
    with pytest.raises(ConfigError, match="variant must be one of 'binary', 'triplet'"):
        NLIModel.from_encoder("no/such", "quartet", 0)


def test_a_reopened_model_gives_the_same_bits(saved):
    model, again = tiny("triplet"), NLIModel.load(saved, dtype="float32", device="cpu")
    assert torch.equal(logits_of(again), logits_of(model))
    assert (again.variant, again.max_tokens, again.header["provenance"]) == ("triplet", 128, {"seeds": [0]})
    assert not again.training
    assert kind_of(saved) == NLI


def test_options_given_as_numpy_scalars_are_saved(tmp_path):
    folder = tiny(max_tokens=np.int64(16), dropout=np.float32(0.25)).save(tmp_path / "nli")
    again = NLIModel.load(folder)
    assert (again.max_tokens, again.head.dropout.p) == (16, 0.25)


def test_a_model_saved_twice_keeps_its_header(folder, tmp_path):
    model = NLIModel.load(folder, dtype="float32", device="cpu")
    again = NLIModel.load(model.save(tmp_path / "again"), dtype="float32", device="cpu")
    assert again.header["provenance"] == {"seeds": [0]}
    assert torch.equal(logits_of(again), logits_of(model))


def test_the_folder_holds_a_transformers_model_and_no_pickle(saved):
    from transformers import AutoModel

    names = {path.name for path in saved.iterdir()}
    assert {"config.json", "model.safetensors", "head.safetensors", "labelspace.json", "README.md"} <= names
    assert not {path.suffix for path in saved.iterdir()} - {".json", ".safetensors", ".md", ".txt"}
    assert AutoModel.from_pretrained(saved, local_files_only=True).config.hidden_size == 32
    header = json.loads((saved / "labelspace.json").read_text())
    assert (header["kind"], header["variant"], header["format"]) == ("nli-cross-encoder", "triplet", FORMAT)
    card = (saved / "README.md").read_text()
    assert "from `tiny-bert`" in card
    assert str(TINY) not in card, "a card may be published, and a path tells of a machine"


def test_saving_replaces_a_model_and_keeps_the_checkpoint_on_request(folder):
    (folder / "checkpoint").mkdir()
    (folder / "checkpoint" / "state.json").write_text("{}")
    tiny("binary").save(folder, keep_checkpoint=True)
    assert (folder / "checkpoint" / "state.json").read_text() == "{}"
    assert NLIModel.load(folder).variant == "binary"
    tiny("triplet").save(folder)
    assert not (folder / "checkpoint").exists()
    assert [path.name for path in folder.parent.iterdir()] == [folder.name]


def test_a_folder_that_holds_something_else_is_refused(tmp_path):
    (tmp_path / "file").write_text("mine")
    with pytest.raises(OutputError, match="is a file"):
        tiny().save(tmp_path / "file")
    with pytest.raises(OutputError, match="holds something else, not an NLI cross-encoder"):
        tiny().save(tmp_path)
    with pytest.raises(OutputError, match="cannot be written"):
        tiny().save(tmp_path / "file" / "model")


def test_a_save_that_fails_leaves_the_old_model(folder, monkeypatch):
    from labelspace.training.nli import model as module

    def full(*_, **__):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(module, "save_file", full)
    with pytest.raises(OutputError, match="what was there before is unchanged"):
        tiny("binary").save(folder)
    monkeypatch.undo()
    assert NLIModel.load(folder).variant == "triplet"
    assert [path.name for path in folder.parent.iterdir()] == [folder.name]


def cut(folder: Path) -> None:
    path = folder / "head.safetensors"
    path.write_bytes(path.read_bytes()[:-8])


def changed(folder: Path) -> None:
    path = folder / "head.safetensors"
    path.write_bytes(path.read_bytes()[:-1] + b"\x01")


def edited(**values: object):
    def edit(folder: Path) -> None:
        path = folder / "labelspace.json"
        path.write_text(json.dumps({**json.loads(path.read_text()), **values}))

    return edit


@pytest.mark.parametrize(
    ("damage", "said"),
    [
        (cut, "cut off or changed"),
        (changed, "is not the file that was saved"),
        (lambda folder: (folder / "model.safetensors").unlink(), "lacks model.safetensors"),
        (lambda folder: (folder / "labelspace.json").unlink(), "holds a transformers model, not an NLI"),
        (lambda folder: (folder / "labelspace.json").write_text("{"), "is damaged"),
        (lambda folder: (folder / "labelspace.json").write_text("[]"), "is damaged"),
        (lambda folder: (folder / "pytorch_model.bin").write_bytes(b"\x80"), "can run code when opened"),
        (edited(format=FORMAT + 1), f"is of format {FORMAT + 1}"),
        (edited(kind="DescriptionClassifier"), "is damaged .*DescriptionClassifier"),
        (edited(variant="quartet"), "is damaged"),
        (edited(files={"config.json": 7}), "is damaged"),
        (edited(variant="binary"), "cannot be read"),
    ],
    ids=["cut", "changed", "lacking", "bare", "half", "list", "pickle", "newer", "kind", "variant", "files", "head"],
)
def test_a_damaged_folder_is_refused(folder, damage, said):
    damage(folder)
    with pytest.raises(ModelFolderError, match=said):
        NLIModel.load(folder)


def test_a_missing_folder_is_refused(tmp_path):
    with pytest.raises(ModelFolderError, match="is no folder"):
        NLIModel.load(tmp_path / "none")


def test_a_folder_without_an_encoder_is_refused(tmp_path):
    shutil.copytree(TINY, tmp_path / "broken")
    (tmp_path / "broken" / "model.safetensors").write_bytes(b"nothing")
    with pytest.raises(EncoderError, match="cannot be opened as a transformers model"):
        NLIModel.from_encoder(tmp_path / "broken", "binary", 0)
