"""Exported files label texts as the model does, read by a program that knows nothing of labelspace."""

import importlib.util
import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow.parquet as pq
import pytest
from safetensors.numpy import load_file
from tokenizers import Tokenizer

import labelspace
from labelspace import Encoder, LabelSpace, LaConClassifier, ZeroShotClassifier, load
from labelspace.classify import export
from labelspace.classify.saved.exporting import ExportedEncoder
from labelspace.encoders.graph import exporting, import_onnxruntime, import_openvino
from labelspace.errors import (
    ConfigError,
    EncoderError,
    InputError,
    MissingDependencyError,
    ModelFolderError,
    OutputError,
)

ROOT = Path(__file__).parents[2]
NEWS = ROOT.parent / "shared" / "data" / "btzsc" / "agnews" / "test.parquet"
LABELS = {
    "sports": ["A team wins or loses a match.", "An athlete breaks a record at the games."],
    "money": ["A bank raises the price of a loan.", "The market falls after a loss."],
}
TEXTS = [
    "the team won the match",
    "tax on goods, and loans",
    "a record",
    "the bank lost money and " + "the market fell again and " * 40,  # longer than the encoder reads
    "a coach and a player",
]
RUNTIMES = [
    pytest.param(
        to,
        marks=pytest.mark.skipif(importlib.util.find_spec(package) is None, reason=f"{package} is not installed"),
    )
    for to, package in (("onnx", "onnxruntime"), ("openvino", "openvino"))
]

# Not `importorskip`: imported as usual, it reports to its makers.
needs_onnxruntime = pytest.mark.skipif(
    importlib.util.find_spec("onnxruntime") is None, reason="onnxruntime is not installed"
)


def zero_shot(folder: Path, **options: Any) -> ZeroShotClassifier:
    encoder = Encoder(folder, dtype="float32", text_prompt="news: ")
    return ZeroShotClassifier({"labels": LABELS}, encoder, **options).fit()


def run(folder: Path, facts: dict[str, Any], feed: dict[str, Any]) -> Any:
    """Run the graph in its runtime, by its file and names alone."""
    graph = folder / facts["graph"]["file"]
    if graph.suffix == ".onnx":
        onnxruntime = import_onnxruntime("a test")  # imported as usual, it reports to its makers
        return onnxruntime.InferenceSession(graph).run([facts["graph"]["output"]], feed)[0]
    compiled = import_openvino("a test").Core().compile_model(graph, "CPU", {"INFERENCE_PRECISION_HINT": "f32"})
    return compiled(feed)[facts["graph"]["output"]]


def read_by_another(folder: Path, texts: list[str]) -> tuple[list[str | None], np.ndarray]:
    """Label texts by what labelspace.json says, in all the texts' one batch."""
    facts = json.loads((folder / "labelspace.json").read_text(encoding="utf-8"))
    tokenizer = Tokenizer.from_file(str(folder / facts["tokenizer"]["file"]))
    rows = tokenizer.encode_batch([facts["tokenizer"]["prompt"] + text for text in texts])
    columns = {"input_ids": "ids", "attention_mask": "attention_mask", "token_type_ids": "type_ids"}
    feed = {name: np.array([getattr(row, columns[name]) for row in rows]) for name in facts["graph"]["inputs"]}
    vectors = run(folder, facts, feed)
    np.testing.assert_allclose(np.linalg.norm(vectors, axis=1), 1, atol=1e-5)
    scores = vectors @ load_file(folder / facts["labels"]["file"])[facts["labels"]["tensor"]].T
    rule, names = facts["decision"], facts["labels"]["names"]
    lowest = np.array(rule["lowest"] or [-1.1] * len(names))
    if rule["several"]:
        sets = [sorted(name for name, high in zip(names, row >= lowest, strict=True) if high) for row in scores]
        return ["|".join(own) or None for own in sets], 1 / (1 + np.exp(-(scores - lowest) / rule["widths"]))
    powers = np.exp(scores / rule["temperature"])
    best = scores.argmax(axis=1)
    found = [None if row[place] < lowest[place] else names[place] for row, place in zip(scores, best, strict=True)]
    return found, powers / powers.sum(axis=1, keepdims=True)


@pytest.mark.slow
@pytest.mark.parametrize("to", RUNTIMES)
def test_another_program_labels_texts_as_the_model_does(to, tiny_encoder_folder, tmp_path):
    clf = zero_shot(tiny_encoder_folder, temperature=0.1)
    scores = clf.answers(TEXTS).score
    clf.set_params(threshold=float(np.sort(scores)[:2].mean()))  # one text gets no label
    done = export(clf, tmp_path / "out", to=to, documents=TEXTS)
    assert (done.to, done.source, done.texts, done.differ) == (to, "documents", len(TEXTS), 0)
    assert done.largest < 1e-5
    labels, probabilities = read_by_another(tmp_path / "out", TEXTS)
    assert labels == clf.answers(TEXTS).names.tolist()
    assert labels.count(None) == 1
    assert len(set(labels)) == 3
    np.testing.assert_allclose(probabilities, clf.predict_proba(TEXTS), atol=1e-4)
    with pytest.raises(ModelFolderError, match="holds an exported model, not a classifier; run its files with ONNX"):
        load(tmp_path / "out")
    with pytest.raises(ModelFolderError, match="holds an exported model, not an encoder"):
        Encoder(tmp_path / "out")


@pytest.mark.slow
@pytest.mark.parametrize("to", RUNTIMES)
def test_an_export_tells_nothing_of_the_machine_that_wrote_it(to, tiny_encoder_folder, tmp_path):
    export(zero_shot(tiny_encoder_folder), tmp_path / "out", to=to)
    for file in (tmp_path / "out").iterdir():
        for part in (sys.prefix, str(Path(labelspace.__file__).parent), str(tiny_encoder_folder)):
            assert part.encode() not in file.read_bytes(), f"{file.name} names {part}"


@pytest.mark.slow
@pytest.mark.parametrize("to", RUNTIMES)
def test_an_export_that_computes_something_else_is_refused_and_the_older_one_stays(
    to, tiny_encoder_folder, tmp_path, monkeypatch
):
    clf = zero_shot(tiny_encoder_folder)
    export(clf, tmp_path / "out", to=to)
    before = {path.name: path.read_bytes() for path in (tmp_path / "out").iterdir()}
    encode = ExportedEncoder.encode
    for factor in np.array([-1, 0.99, np.nan], dtype=np.float32):  # a hundredth less is ten times what is allowed
        monkeypatch.setattr(ExportedEncoder, "encode", lambda self, texts, by=factor: encode(self, texts) * by)
        with pytest.raises(EncoderError, match=r"do not compute what .* Nothing was written"):
            export(clf, tmp_path / "out", to=to)
    assert {path.name: path.read_bytes() for path in (tmp_path / "out").iterdir()} == before
    assert [path.name for path in tmp_path.iterdir()] == ["out"]


@pytest.mark.slow
@needs_onnxruntime
def test_answers_that_differ_are_counted_against_float32(tiny_encoder_folder, tmp_path, monkeypatch):
    clf = zero_shot(tiny_encoder_folder)
    scores = clf.answers(TEXTS).score
    # A threshold beside one score and a graph that is 0.0002 off: this answer changes, and the export is no worse.
    clf.set_params(threshold=float(scores[0]) - 1e-4)
    encode = ExportedEncoder.encode
    monkeypatch.setattr(ExportedEncoder, "encode", lambda self, texts: encode(self, texts) * np.float32(0.9998))
    done = export(clf, tmp_path / "out", documents=TEXTS[:1])
    assert done.differ == 1
    assert 1e-4 < done.largest < 3e-4


@pytest.mark.slow
@needs_onnxruntime
def test_a_model_in_bfloat16_is_exported_in_float32(tiny_encoder_folder, tmp_path):
    clf = ZeroShotClassifier({"labels": LABELS}, Encoder(tiny_encoder_folder, dtype="bfloat16")).fit()
    assert export(clf, tmp_path / "out", documents=TEXTS).largest < 1e-5


@pytest.mark.slow
@needs_onnxruntime
def test_a_lacon_model_without_labelled_rows_is_exported(tiny_encoder_folder, tmp_path):
    encoder = Encoder(tiny_encoder_folder, dtype="float32")
    clf = LaConClassifier({"labels": LABELS}, encoder, description_steps=2).fit(TEXTS, [None] * len(TEXTS))
    done = export(clf, tmp_path / "out")
    assert (done.source, done.texts, done.differ) == ("descriptions", 4, 0)
    assert read_by_another(tmp_path / "out", TEXTS)[0] == clf.answers(TEXTS).names.tolist()


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore::labelspace.errors.LabelSpaceWarning")
@needs_onnxruntime
def test_what_lacon_learnt_from_rows_is_exported_and_so_is_a_limit_for_none_of_these(tiny_encoder_folder, tmp_path):
    pool = [f"{text} {row}" for text in TEXTS for row in range(12)]
    encoder = Encoder(tiny_encoder_folder, dtype="float32")
    clf = LaConClassifier({"labels": LABELS}, encoder, description_steps=2, epochs=2)
    clf.fit(TEXTS, ["sports", "money", None, "money", "sports"]).set_none(pool)
    done = export(clf, tmp_path / "out", documents=pool)
    assert (done.texts, done.differ) == (60, 0)
    labels, probabilities = read_by_another(tmp_path / "out", pool)
    assert labels == clf.answers(pool).names.tolist()
    assert set(labels) == {"sports", "money", None}
    np.testing.assert_allclose(probabilities, clf.predict_proba(pool), atol=1e-4)
    # The stricter of the two limits holds.
    clf.set_params(threshold=1.0)
    assert export(clf, tmp_path / "out", documents=pool).differ == 0
    assert set(read_by_another(tmp_path / "out", pool)[0]) == {None}


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore::labelspace.errors.LabelSpaceWarning")
@needs_onnxruntime
def test_of_equal_labels_the_first_by_name_is_the_first_of_the_files(tiny_encoder_folder, tmp_path):
    labels = {"zebra": ["A team wins."], "money": ["The market falls."], "apple": ["A team wins."]}
    clf = ZeroShotClassifier({"labels": labels}, Encoder(tiny_encoder_folder, dtype="float32")).fit()
    assert export(clf, tmp_path / "out", documents=TEXTS).differ == 0
    facts = json.loads((tmp_path / "out" / "labelspace.json").read_text(encoding="utf-8"))
    assert facts["labels"]["names"] == ["apple", "money", "zebra"]
    assert "apple" in clf.predict(TEXTS)
    vectors = load_file(tmp_path / "out" / facts["labels"]["file"])[facts["labels"]["tensor"]]
    np.testing.assert_array_equal(vectors, clf.head_.label_vectors(clf.label_space_)[[2, 1, 0]])


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore::labelspace.errors.LabelSpaceWarning")
@needs_onnxruntime
def test_the_cut_of_each_label_is_exported_where_a_text_may_have_several(tiny_encoder_folder, tmp_path):
    pool = [f"{text} {row}" for text in TEXTS for row in range(12)]
    clf = ZeroShotClassifier({"labels": LABELS}, Encoder(tiny_encoder_folder, dtype="float32"), several=True).fit(pool)
    assert export(clf, tmp_path / "out", documents=pool).differ == 0
    labels, probabilities = read_by_another(tmp_path / "out", pool)
    assert labels == clf.answers(pool).names.tolist()
    assert {None, "money|sports"} <= set(labels)
    np.testing.assert_allclose(probabilities, clf.predict_proba(pool), atol=1e-3)


@pytest.mark.slow
@pytest.mark.skipif(not NEWS.is_file(), reason=f"no AG News at {NEWS}")
@pytest.mark.parametrize("to", RUNTIMES)
def test_minilm_labels_two_hundred_news_in_another_runtime_as_in_float32(to, tmp_path):
    texts = pq.read_table(NEWS)["text"].to_pylist()[::38][:200]
    encoder = Encoder("all-MiniLM-L6-v2", dtype="float32", offline=True)
    clf = ZeroShotClassifier(ROOT / "examples" / "agnews.yaml", encoder).fit()
    done = export(clf, tmp_path / "out", to=to, documents=texts)
    assert (done.texts, done.differ) == (200, 0)
    assert done.largest < 1e-5


@pytest.mark.parametrize(
    ("made", "rule"),
    [
        ({"long_texts": "windows"}, "long texts in windows"),
        ({"outside": ["A recipe for a cake."]}, "texts outside of all labels"),
        ({"not": ["A game on a computer."]}, "texts that a label is not"),
    ],
    ids=lambda made: next(iter(made)) if isinstance(made, dict) else "",
)
@pytest.mark.filterwarnings("ignore::labelspace.errors.LabelSpaceWarning")
def test_rules_that_the_files_do_not_hold_are_refused(made, rule, tiny_encoder_folder, tmp_path):
    labels: dict[str, Any] = {name: {"descriptions": texts} for name, texts in LABELS.items()}
    if "not" in made:
        labels["sports"]["not"] = made["not"]
    space = LabelSpace.from_dict({"labels": labels, **{key: made[key] for key in ("outside",) if key in made}})
    encoder = Encoder(tiny_encoder_folder, dtype="float32")
    options = {key: made[key] for key in ("long_texts",) if key in made}
    clf = ZeroShotClassifier(space, encoder, **options).fit()
    with pytest.raises(ConfigError, match=f"^this model has {rule}, which exported files do not hold"):
        export(clf, tmp_path / "out")
    assert list(tmp_path.iterdir()) == []


@pytest.mark.filterwarnings("ignore::labelspace.errors.LabelSpaceWarning")
def test_models_whose_answers_are_no_cosines_are_refused(tiny_encoder_folder, tmp_path):
    encoder = Encoder(tiny_encoder_folder, dtype="float32")
    y = ["sports", "money"] * 2
    for config, X, said in (
        ({"init": "random"}, TEXTS[:4], "this model has a projection .which config={'projection_head': False} leaves"),
        ({"head": "fusion"}, TEXTS[:4], "this model has a head that weighs words"),
        ({"objective": "cross-entropy"}, TEXTS[:4], "this model has cross-entropy's logits"),
        ({}, [(text, text) for text in TEXTS[:4]], "this model has pairs of texts"),
    ):
        clf = LaConClassifier(["sports", "money"], encoder, epochs=1, description_steps=0, config=config).fit(X, y)
        with pytest.raises(ConfigError, match=said):
            export(clf, tmp_path / "out")
    with pytest.raises(
        ConfigError, match=r"exported: ZeroShotClassifier, DescriptionClassifier, LaConClassifier\. Got"
    ):
        export(object(), tmp_path / "out")  # pyright: ignore[reportArgumentType]


def test_what_is_wrong_is_refused_before_any_work(tiny_encoder_folder, tmp_path, monkeypatch):
    clf = zero_shot(tiny_encoder_folder)
    (tmp_path / "mine").mkdir()
    (tmp_path / "mine" / "thesis.txt").write_text("my only copy")
    with pytest.raises(OutputError, match="holds something else, not an exported model; give another name"):
        export(clf, tmp_path / "mine")
    with pytest.raises(ConfigError, match="to must be one of 'onnx', 'openvino'"):
        export(clf, tmp_path / "out", to="tflite")
    with pytest.raises(InputError, match="no document to check the export with"):
        export(clf, tmp_path / "out", documents=[])
    for to, package in (("onnx", "onnxscript"), ("openvino", "openvino")):
        monkeypatch.setitem(sys.modules, package, None)
        with pytest.raises(MissingDependencyError, match=r"pip install 'labelspace\[export\]'"):
            export(clf, tmp_path / "out", to=to)
    assert [path.name for path in tmp_path.rglob("*")] == ["mine", "thesis.txt"]


def test_whatever_an_exporter_raises_becomes_one_error():
    class OpConversionFailure(Exception):
        pass

    for error in (OpConversionFailure("no rule\nfor this"), ModuleNotFoundError("no rule"), KeyError("no rule")):
        told = r"cannot be made a graph for other runtimes: '?no rule'? Choose"
        with pytest.raises(EncoderError, match=told), exporting():
            raise error
    for error in (InputError("its own words"), OSError("its own words"), MemoryError("its own words")):
        with pytest.raises(type(error), match=r"^its own words$"), exporting():
            raise error


@pytest.mark.slow
def test_importing_openvino_reports_nothing_to_its_makers():
    pytest.importorskip("openvino")
    code = (
        "import sys; from labelspace.encoders.graph import import_openvino; import_openvino('a test').Core();"
        "import openvino.tools.ovc; print([name for name in sys.modules if name.startswith('openvino_telemetry')])"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True, timeout=120)
    assert done.stdout.strip() == "[]"


@pytest.mark.slow
@needs_onnxruntime
def test_importing_onnx_runtime_reports_nothing_to_its_makers_and_leaves_the_environment(tmp_path):
    code = (
        "import os; before = dict(os.environ); from labelspace.encoders.graph import import_onnxruntime;"
        "import_onnxruntime('a test'); print(dict(os.environ) == before)"
    )
    environment = {**os.environ, "TMPDIR": str(tmp_path)}
    environment.pop("ORT_DISABLE_TELEMETRY", None)
    done = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=True, timeout=120, env=environment
    )
    assert done.stdout.strip() == "True"
    assert list(tmp_path.iterdir()) == []  # where it reports, it keeps a session here
