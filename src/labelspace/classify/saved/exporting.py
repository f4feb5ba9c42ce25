"""`export`: a fitted classifier as files that other runtimes run, checked against the classifier itself.

    export/
    ├── model.onnx               texts' tokens in, unit vectors out; or model.xml and model.bin
    ├── tokenizer.json           texts to tokens
    ├── labels.safetensors       one unit vector a label
    └── labelspace.json          labels in order, prompt, limit, how scores become an answer, the check

The folder is written under a temporary name and moved into place in one step.
"""

import tempfile
from collections.abc import Sequence
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any, final

import numpy as np
from numpy.typing import NDArray
from safetensors.numpy import save_file
from sklearn.utils.validation import check_is_fitted

from labelspace.checks import check_choice
from labelspace.classify.anchors import cosines
from labelspace.classify.base import Classifier
from labelspace.classify.by_anchors import ByAnchors
from labelspace.classify.by_label_embeddings import ByEmbeddings
from labelspace.classify.by_logits import ByLogits
from labelspace.classify.cuts import WIDTH
from labelspace.classify.decision import Decision
from labelspace.classify.long_texts import reads_windows
from labelspace.classify.saved.saving import PACKAGES
from labelspace.classify.several import joined_names
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

SCORE = "the inner product of the text's vector and the label's"
ONE = {
    "score": SCORE,
    "label": "that of the highest score, the first among equals; none if it is below that label's lowest",
    "probability": "the softmax of the scores divided by the temperature",
}
SEVERAL = {
    "score": SCORE,
    "label": "each whose score is not below its lowest",
    "probability": "of each label: the sigmoid of (score - lowest) / width",
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
        model: a fitted `ZeroShotClassifier`, `DescriptionClassifier` or `LaConClassifier` whose answers are cosines
            between the encoder's vector of a text and one vector a label.
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
    # Sorted, so that the first of equal scores is the first by name.
    order = sorted(range(len(space)), key=space.names.__getitem__)
    names = tuple(space.names[column] for column in order)
    labels, rule = head.label_vectors(space)[order], _rule(model.decision(), names)
    with staged(folder) as scratch:
        with tempfile.TemporaryDirectory(prefix="labelspace-") as place:
            exact = _in_float32(head.encoder, Path(place))
            inputs = write_encoder(exact, scratch, to)
            wanted = replace(head, encoder=exact).judge(texts, space).scores[:, order]
        save_file({VECTORS: np.ascontiguousarray(labels)}, scratch / LABELS)
        prompt = head.encoder.prompts["text"]
        found = cosines(ExportedEncoder(scratch, to).encode([prompt + text for text in texts]), labels)
        differ = model.decision().answers(names, wanted).names != _answers(rule, names, found)
        done = Exported(
            path=folder,
            to=to,
            source="descriptions" if documents is None else "documents",
            texts=len(texts),
            differ=int(differ.sum()),
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
            "labels": {"file": LABELS, "tensor": VECTORS, "names": list(names)},
            "decision": rule,
            "check": {key: value for key, value in asdict(done).items() if key != "path"},
        }
        write_header(scratch, new_header(EXPORT, PACKAGES, **facts))
    return done


def _exportable(model: Any) -> ByAnchors | ByEmbeddings:
    """Return the head of a model whose answers are cosines with one vector a label."""
    if isinstance(model, Classifier):
        check_is_fitted(model)
    head = getattr(model, "head_", None)
    if not isinstance(head, (ByAnchors, ByEmbeddings, ByLogits)):
        raise ConfigError(
            "only models that compare a text with one vector a label are exported: ZeroShotClassifier, "
            f"DescriptionClassifier, LaConClassifier. Got a {type(model).__name__} instead."
        )
    if isinstance(head, ByLogits):
        raise ConfigError("this model has cross-entropy's logits, and exported files hold cosines; train it without.")
    space, module = model.label_space_, head.module if isinstance(head, ByEmbeddings) else None
    rules = {
        "long texts in windows": reads_windows(model),
        "texts outside of all labels": isinstance(head, ByAnchors) and bool(space.outside),
        "texts that a label is not": isinstance(head, ByAnchors) and any(label.excludes for label in space.labels),
        "pairs of texts": model.reads_ is not Kind.TEXTS,
        "a head that weighs words": module is not None and module.shape.words,
        "a projection (which config={'projection_head': False} leaves out)": module is not None
        and module.shape.projection,
    }
    found = next((rule for rule, has in rules.items() if has), None)
    if found is not None:
        raise ConfigError(f"this model has {found}, which exported files do not hold; export a model without.")
    return head


def _rule(decision: Decision, names: tuple[str, ...]) -> dict[str, Any]:
    """Return how scores become answers, as plain values; `lowest` and `widths` are cosines in the order of labels."""
    if decision.cuts is not None:
        lowest = [decision.cuts.as_score(name) for name in names]
        widths = [WIDTH * decision.cuts.standard.of_labels[name][1] for name in names]
        return {"several": True, "lowest": lowest, "widths": widths, **SEVERAL}
    lowest = [-np.inf if decision.threshold is None else float(np.float32(decision.threshold))] * len(names)
    if decision.none is not None:
        lowest = [max(fixed, decision.none.as_score(name)) for fixed, name in zip(lowest, names, strict=True)]
    return {
        "several": False,
        "temperature": decision.temperature,
        "lowest": lowest if np.isfinite(lowest).all() else None,
        **ONE,
    }


def _answers(rule: dict[str, Any], names: tuple[str, ...], scores: NDArray[np.float32]) -> NDArray[np.object_]:
    """Return the names of labels by such a rule, as a program that reads the files does."""
    below = scores < np.array([-np.inf] * len(names) if rule["lowest"] is None else rule["lowest"], dtype=np.float64)
    if rule["several"]:
        return joined_names(names, ~below)
    likeliest = scores.argmax(axis=1)
    found = np.array(names, dtype=object)[likeliest]
    found[below[np.arange(len(scores)), likeliest]] = None
    return found


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
