"""An encoder as files for other runtimes: texts in, unit vectors out, without torch and transformers.

model.onnx, or model.xml and model.bin    the transformer with pooling and normalisation, for OpenVINO the latter two
model.onnx.data                           its weights, where they are larger than ONNX Runtime reads in one file
tokenizer.json                            truncates and pads as the encoder does
"""

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import final

import numpy as np
import torch
from numpy.typing import NDArray
from tokenizers import Tokenizer

from labelspace.checks import import_optional
from labelspace.encoders.encoder import Encoder
from labelspace.encoders.graph import VECTORS, exporting, import_onnxruntime, import_openvino
from labelspace.errors import EncoderError

OPSET = 18
"""Version of ONNX's operators."""

GRAPHS = {"onnx": "model.onnx", "openvino": "model.xml"}
"""The file to open in each runtime."""

TOKENIZER = "tokenizer.json"
_PURPOSE = "exporting a model"
_TEXTS = 32  # of a batch, in the check

_Run = Callable[[dict[str, NDArray[np.int64]]], NDArray[np.float32]]


def check_runtime(to: str) -> None:
    """Raise MissingDependencyError unless what an export to this runtime needs is installed."""
    if to == "openvino":
        import_openvino(_PURPOSE)
        return
    import_onnxruntime(_PURPOSE)
    for module, package in (("onnx", "onnx"), ("onnx_ir", "onnx-ir"), ("onnxscript", "onnxscript")):
        import_optional(module, package=package, extra="export", purpose=_PURPOSE)


def write_encoder(encoder: Encoder, folder: Path, to: str) -> list[str]:
    """Write an encoder's graph, in float32, and its tokenizer.

    Args:
        encoder: an encoder on the CPU; its prompt is not part of the files.
        folder: an existing folder.
        to: a key of `GRAPHS`.

    Returns:
        The names of the graph's inputs, each [text token].

    Raises:
        EncoderError: the encoder has no such graph, or no `tokenizer.json`.
        MissingDependencyError: a package is missing.
    """
    check_runtime(to)
    _write_tokenizer(encoder, folder / TOKENIZER)
    graph = encoder.backbone.graph()
    program = graph.program()
    with exporting():
        if to == "onnx":
            made = torch.onnx.export(
                program,
                dynamo=True,
                input_names=graph.inputs,
                output_names=[VECTORS],
                opset_version=OPSET,
                verbose=False,
            )
            assert made is not None
            from onnx_ir.passes.common import ClearMetadataAndDocStringPass

            # torch notes at each operator which lines of which files of this machine it comes from.
            ClearMetadataAndDocStringPass()(made.model)
            made.save(folder / GRAPHS[to], external_data=False)
        else:
            openvino = import_openvino(_PURPOSE)
            model = openvino.convert_model(program)
            for port, name in zip([*model.inputs, *model.outputs], [*graph.inputs, VECTORS], strict=True):
                port.get_tensor().set_names({name})
            openvino.save_model(model, folder / GRAPHS[to], compress_to_fp16=False)
    return graph.inputs


def _write_tokenizer(encoder: Encoder, path: Path) -> None:
    """Write a tokenizer that truncates to the encoder's limit and pads to the longest text of a batch."""
    own = encoder.backbone.tokenizer
    backend = getattr(own, "backend_tokenizer", None)
    if not isinstance(backend, Tokenizer):
        raise EncoderError(
            f"{encoder.name} has no tokenizer.json, and exported files need one; choose another encoder."
        )
    tokenizer = Tokenizer.from_str(backend.to_str())
    tokenizer.enable_truncation(encoder.max_tokens, direction=own.truncation_side)
    tokenizer.enable_padding(
        direction=own.padding_side, pad_id=own.pad_token_id or 0, pad_token=own.pad_token or "[PAD]", pad_type_id=0
    )
    tokenizer.save(str(path))


@final
class ExportedEncoder:
    """Runs exported files, as a program without labelspace would.

    Args:
        folder: the folder that `write_encoder` wrote.
        to: a key of `GRAPHS`.
    """

    def __init__(self, folder: Path, to: str) -> None:
        self._tokenizer = Tokenizer.from_file(str(folder / TOKENIZER))
        self._run, self._inputs = (_open_onnx if to == "onnx" else _open_openvino)(folder / GRAPHS[to])

    def encode(self, texts: Sequence[str]) -> NDArray[np.float32]:
        """Return the unit vectors of texts, [text dim]; a prompt is part of the text here."""
        by_length = sorted(range(len(texts)), key=lambda index: len(texts[index]))
        parts = []
        for start in range(0, len(texts), _TEXTS):
            found = self._tokenizer.encode_batch([texts[index] for index in by_length[start : start + _TEXTS]])
            ids = {
                "input_ids": [each.ids for each in found],
                "attention_mask": [each.attention_mask for each in found],
                "token_type_ids": [each.type_ids for each in found],
            }
            parts.append(self._run({name: np.array(ids[name], dtype=np.int64) for name in self._inputs}))
        vectors = np.empty((len(texts), parts[0].shape[1]), dtype=np.float32)
        vectors[by_length] = np.concatenate(parts)
        return vectors


def _open_onnx(path: Path) -> tuple[_Run, list[str]]:
    session = import_onnxruntime(_PURPOSE).InferenceSession(path, providers=["CPUExecutionProvider"])
    return lambda feed: session.run([VECTORS], feed)[0], [each.name for each in session.get_inputs()]


def _open_openvino(path: Path) -> tuple[_Run, list[str]]:
    openvino = import_openvino(_PURPOSE)
    # By itself it computes in bfloat16 where the processor has it.
    compiled = openvino.Core().compile_model(path, "CPU", {"INFERENCE_PRECISION_HINT": "f32"})
    return lambda feed: compiled(feed)[VECTORS].copy(), [each.any_name for each in compiled.inputs]
