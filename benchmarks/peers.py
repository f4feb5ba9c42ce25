"""The ways of others to turn texts into vectors or labels, for `speed.py`; each on the same MiniLM, from its folder.

A peer that is not installed is left out and named.
"""

import importlib.util
import tempfile
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import torch

Encode = Callable[[Sequence[str]], np.ndarray]
BATCH = 32


def installed(*packages: str) -> bool:
    """Return whether all packages are installed."""
    return all(importlib.util.find_spec(package) for package in packages)


def sentence_transformers(folder: Path, dtype: torch.dtype) -> Encode:
    """`SentenceTransformer.encode` with its defaults."""
    from sentence_transformers import SentenceTransformer

    model = SentenceTransformer(str(folder), device="cpu", model_kwargs={"dtype": dtype})
    return lambda texts: model.encode(list(texts), convert_to_tensor=True).float().numpy()


def onnx_runtime(folder: Path) -> Encode:
    """ONNX runtime, float32, in batches of texts sorted by length, as fastembed runs its models."""
    import onnxruntime
    from transformers import AutoModel, AutoTokenizer

    tokenizer: Any = AutoTokenizer.from_pretrained(folder)
    model = AutoModel.from_pretrained(folder, attn_implementation="eager").eval()
    names = ("input_ids", "attention_mask", "token_type_ids")
    sample = tokenizer(["a text", "another text here"], padding=True, return_tensors="pt")
    shape = {0: torch.export.Dim("text"), 1: torch.export.Dim("token")}
    program = torch.onnx.export(
        model,
        kwargs={name: sample[name] for name in names},
        dynamo=True,
        dynamic_shapes=dict.fromkeys(names, shape),
    )
    assert program is not None
    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = torch.get_num_threads()
    with tempfile.TemporaryDirectory() as scratch:
        program.save(f"{scratch}/model.onnx")
        session = onnxruntime.InferenceSession(f"{scratch}/model.onnx", options, providers=["CPUExecutionProvider"])

    def encode(texts: Sequence[str]) -> np.ndarray:
        order = sorted(range(len(texts)), key=lambda row: -len(texts[row]))
        vectors = np.empty((len(texts), model.config.hidden_size), dtype=np.float32)
        for start in range(0, len(order), BATCH):
            rows = order[start : start + BATCH]
            inputs = tokenizer(
                [texts[row] for row in rows], padding=True, truncation=True, max_length=256, return_tensors="np"
            )
            states = session.run(None, {name: inputs[name] for name in names})[0]
            mask = inputs["attention_mask"][..., None]
            vectors[rows] = (states * mask).sum(1) / mask.sum(1)
        return vectors / np.linalg.norm(vectors, axis=1, keepdims=True)

    return encode


def static(folder: Path, encode: Encode) -> Encode:
    """A static model of model2vec: the vector of each piece of a word is what the encoder says of it alone."""
    from model2vec import StaticModel
    from tokenizers import Tokenizer

    tokenizer = Tokenizer.from_file(str(folder / "tokenizer.json"))
    tokenizer.no_padding()
    tokenizer.no_truncation()
    pieces = [tokenizer.id_to_token(number).removeprefix("##") for number in range(tokenizer.get_vocab_size())]
    vectors = encode(pieces)
    vectors = vectors - vectors.mean(0)
    weights = 1 / (1 + np.arange(len(vectors)) / 1e3)  # pieces are in the order of how often they occur, roughly
    model = StaticModel(vectors=(vectors * (1 - weights)[:, None]).astype(np.float32), tokenizer=tokenizer)
    return lambda texts: np.asarray(model.encode(list(texts)))


def setfit(folder: Path, texts: Sequence[str], truth: Sequence[str]) -> Callable[[Sequence[str]], Any]:
    """`SetFitModel.predict` with its defaults, after its head has seen some rows; its speed does not depend on them."""
    from setfit import SetFitModel

    model = SetFitModel.from_pretrained(str(folder))
    head: Any = model.model_head
    head.fit(model.encode(list(texts)), list(truth))
    return lambda asked: model.predict(list(asked))


def zero_shot(folder: Path, names: Sequence[str]) -> Callable[[Sequence[str]], Any]:
    """The zero-shot pipeline on a cross-encoder of the encoder's size; random weights take the same time."""
    import transformers

    config = transformers.AutoConfig.from_pretrained(folder, num_labels=3, label2id={"entailment": 0})
    config.id2label = {0: "entailment", 1: "neutral", 2: "contradiction"}
    model = transformers.AutoModelForSequenceClassification.from_config(config).eval()
    tokenizer = transformers.AutoTokenizer.from_pretrained(folder)
    asked: Any = transformers.pipeline("zero-shot-classification", model=model, tokenizer=tokenizer, device="cpu")
    return lambda texts: asked(list(texts), list(names), batch_size=8)
