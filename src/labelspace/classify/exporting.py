"""`export`: a fitted classifier as files that other runtimes run, checked against the classifier itself.

    export/
    ├── model.onnx               texts' tokens in, unit vectors out; or model.xml and model.bin
    ├── tokenizer.json           texts to tokens
    ├── labels.safetensors       one unit vector a label
    └── labelspace.json          labels in order, prompt, limit, temperature, how a score becomes an answer, the check

The folder is written under a temporary name and moved into place in one step.
"""

import tempfile
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, final

import numpy as np
from safetensors.numpy import save_file
from sklearn.utils.validation import check_is_fitted

from labelspace.checks import check_choice
from labelspace.classify.anchors import cosines
from labelspace.classify.base import Classifier
from labelspace.classify.by_anchors import ByAnchors
from labelspace.classify.by_label_embeddings import ByEmbeddings
from labelspace.classify.long_texts import reads_windows
from labelspace.classify.saving import PACKAGES
from labelspace.config import RUNTIMES
from labelspace.corpus import Kind
from labelspace.encoders import Encoder
from labelspace.encoders.exported import (
    GRAPHS,
    OPSET,
    TOKENIZER,
    VECTORS,
    ExportedEncoder,
    check_runtime,
    write_encoder,
)
from labelspace.errors import ConfigError, EncoderError, InputError
from labelspace.folders import staged
from labelspace.header import EXPORT, check_place, new_header, write_header

LABELS = "labels.safetensors"

MOST = 1e-3
"""Largest difference of a cosine, above which an export is refused; rounding makes some 1e-6."""

RULE = {
    "score": "the inner product of the text's vector and the label's",
    "label": "that of the highest score, the first by name among equals; none if this score is below the threshold",
    "probability": "the softmax of the scores divided by the temperature",
}


@final
@dataclass(frozen=True, kw_only=True)
class Exported:
    """An export, and what its check found.

    The check compares the exported files, run in float32 by ONNX Runtime or OpenVINO, with the model in float32.
    """

    path: Path
    """The folder."""

    to: str
    """`"onnx"` or `"openvino"`."""

    source: str
    """Texts of the check: the caller's `"documents"`, or the labels' own `"descriptions"`."""

    texts: int
    """Number of these texts."""

    differ: int
    """How many of them get another label."""

    largest: float
    """Largest difference of a cosine between a text and a label."""


def export(model: Classifier, folder: str | Path, *, to: str = "onnx", documents: Any = None) -> Exported:
    """Write a classifier as files that run without labelspace and torch, and check that they answer as it does.

    Args:
        model: a fitted `ZeroShotClassifier` or `DescriptionClassifier`, or a `LaConClassifier` fitted without labelled
            rows: their answers are cosines between a text and the labels.
        folder: the folder to write; an older export is replaced once the new one is complete.
        to: `"onnx"`, or `"openvino"` for its own format.
        documents: texts for the check, best like those to be labelled; None: the labels' descriptions.

    Returns:
        The result of the check.

    Raises:
        ConfigError: the model is none of these, or has rules that the files do not hold.
        EncoderError: the encoder cannot be exported, or the files compute something else.
        InputError: there is no text to check with.
        MissingDependencyError: the extra `export` is not installed.
        OutputError: the folder cannot be written, or holds something else.

    Example:
        >>> from labelspace import ZeroShotClassifier
        >>> from labelspace.classify import export
        >>> clf = ZeroShotClassifier(["sports", "politics"], encoder="tests/data/tiny-bert").fit()
        >>> export(clf, "tests/data")
        Traceback (most recent call last):
        ...
        labelspace.errors.OutputError: ...
    """
    check_choice("to", to, RUNTIMES)
    head = _exportable(model)
    folder = Path(folder).absolute()
    check_place(folder, EXPORT)
    check_runtime(to)
    space = model.label_space_
    texts: Sequence[str] = model.read(documents).rows if documents is not None else _own_texts(model)
    if not len(texts):
        raise InputError("there is no document to check the export with; pass some, or None for the labels' own texts.")
    labels = head.label_vectors(space)
    with staged(folder) as scratch:
        with tempfile.TemporaryDirectory(prefix="labelspace-") as place:
            exact = _in_float32(head.encoder, Path(place))
            inputs = write_encoder(exact, scratch, to)
            wanted = cosines(exact.encode(texts), labels)
        save_file({VECTORS: np.ascontiguousarray(labels)}, scratch / LABELS)
        prompt = head.encoder.prompts["text"]
        found = cosines(ExportedEncoder(scratch, to).encode([prompt + text for text in texts]), labels)
        answers = [model.decision().answers(space.names, scores).names for scores in (wanted, found)]
        done = Exported(
            path=folder,
            to=to,
            source="descriptions" if documents is None else "documents",
            texts=len(texts),
            differ=int((answers[0] != answers[1]).sum()),
            largest=float(np.abs(wanted - found).max()),
        )
        if not done.largest <= MOST:
            raise EncoderError(
                f"the exported files do not compute what {head.encoder.name} does: cosines differ by up to "
                f"{done.largest:.2g}. Nothing was written; choose another encoder."
            )
        facts = {
            "graph": {
                "file": GRAPHS[to],
                **({"opset": OPSET} if to == "onnx" else {}),
                "inputs": inputs,
                "output": VECTORS,
                "dimension": labels.shape[1],
            },
            "tokenizer": {"file": TOKENIZER, "prompt": prompt, "max_tokens": exact.max_tokens},
            "labels": {"file": LABELS, "tensor": VECTORS, "names": list(space.names)},
            "decision": {"temperature": model.decision().temperature, "threshold": model.decision().threshold, **RULE},
            "check": {key: value for key, value in asdict(done).items() if key != "path"},
        }
        write_header(scratch, new_header(EXPORT, PACKAGES, **facts))
    return done


def _exportable(model: Any) -> ByAnchors | ByEmbeddings:
    """Return the head of a model whose answers are cosines with one vector a label."""
    if isinstance(model, Classifier):
        check_is_fitted(model)
    head = getattr(model, "head_", None)
    known = isinstance(head, (ByAnchors, ByEmbeddings))
    if not known or head.learnt_labels or model.reads_ is not Kind.TEXTS:
        raise ConfigError(
            "only models that compare a text with one vector a label are exported: ZeroShotClassifier, "
            f"DescriptionClassifier, LaConClassifier without labelled rows. Got a {type(model).__name__} instead."
        )
    space = model.label_space_
    rules = {
        "several labels a text": space.several,
        "a limit for 'none of these'": model.none_ is not None,
        "long texts in windows": reads_windows(model),
        "texts outside of all labels": isinstance(head, ByAnchors) and bool(space.outside),
        "texts that a label is not": isinstance(head, ByAnchors) and any(label.excludes for label in space.labels),
    }
    found = next((rule for rule, has in rules.items() if has), None)
    if found is not None:
        raise ConfigError(f"this model has {found}, which exported files do not hold; export a model without.")
    return head


def _own_texts(model: Classifier) -> list[str]:
    space = model.label_space_
    return [text for label in space.labels for text in label.descriptions] or list(space.verbalizers)


def _in_float32(encoder: Encoder, place: Path) -> Encoder:
    """Return an encoder with the same weights that computes in float32 on the CPU."""
    if encoder.dtype == "float32" and encoder.device.type == "cpu":
        return encoder
    encoder.save(place)
    exact = Encoder(place, dtype="float32", device="cpu", max_tokens=encoder.config.max_tokens, offline=True)
    exact.name = encoder.name
    return exact
