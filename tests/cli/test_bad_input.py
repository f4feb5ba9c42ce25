"""Bad input: one clear line, exit code 2, no traceback, nothing written."""

import json
import shutil
from codecs import BOM_UTF8

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from labelspace.header import FORMAT


@pytest.fixture
def untouched(tmp_path):
    """Return a function to call before and after the command: it checks that no file was added or removed."""
    seen = []

    def check() -> None:
        now = sorted(tmp_path.rglob("*"))
        if seen:
            assert now == seen[0]
        seen.append(now)

    return check


LABEL_FILES = {
    "a typo in a key": ("labels:\n  - name: a\n    desciptions: [x]\n  - name: b\n", "Did you mean 'descriptions'?"),
    "a duplicate label": ("labels: [a, b, a]\n", "twice"),
    "one label only": ("labels: [a]\n", "two"),
    "no labels": ("name: x\n", "labels"),
    "an empty description": ('labels:\n  - name: a\n    descriptions: ["  "]\n  - name: b\n', "empty"),
    "an empty file": ("", "empty"),
    "no YAML": ("labels: [a, b\n", "labels.yaml"),
    "a template without a place": ("template: x\nlabels: [a, b]\n", "{label}"),
    "bytes that are no UTF-8": (b"labels: [caf\xe9, b]\n", "UTF-8"),
}


@pytest.mark.parametrize(
    ("command", "kind"), [*(("lint", kind) for kind in LABEL_FILES), ("fit", "no YAML"), ("evaluate", "no YAML")]
)
def test_an_invalid_label_file_is_refused(run, refused, untouched, documents, tmp_path, kind, command):
    content, said = LABEL_FILES[kind]
    file = tmp_path / "labels.yaml"
    file.write_bytes(content if isinstance(content, bytes) else content.encode())
    more = {"lint": (), "fit": ("--out", tmp_path / "model", "--encoder", "no/such"), "evaluate": (documents,)}
    untouched()
    assert said.lower() in refused(run(command, file, *more[command])).lower()
    untouched()


@pytest.mark.parametrize("command", ["lint", "fit", "evaluate", "explain"])
def test_a_missing_file_or_folder_is_refused(run, refused, untouched, documents, tmp_path, command):
    more = {"lint": (), "fit": ("--out", tmp_path / "m"), "evaluate": (documents,), "explain": ("a text",)}
    untouched()
    assert "nothing" in refused(run(command, tmp_path / "nothing", *more[command]))
    untouched()


def test_lint_errors_stop_fit(run, refused, untouched, tmp_path):
    file = tmp_path / "labels.yaml"
    file.write_text('labels: {a: ["The same text of five.", "The same text of five."], b: ["Another text of five."]}\n')
    untouched()
    line = refused(run("fit", file, "--out", tmp_path / "model", "--encoder", "no/such"))
    assert f"labelspace lint {file}" in line
    untouched()


@pytest.mark.parametrize("command", ["fit", "lint", "evaluate"])
def test_an_unknown_encoder_is_refused_offline(run, refused, untouched, label_file, documents, tmp_path, command):
    more = {"fit": ("--out", tmp_path / "model"), "lint": (), "evaluate": (documents,)}
    untouched()
    line = refused(run(command, label_file, *more[command], "--encoder", "no-such-encoder", "--offline"))
    assert "no encoder 'no-such-encoder'" in line
    untouched()


def test_an_encoder_with_its_own_code_is_refused(run, refused, untouched, label_file, tmp_path, tiny_folder):
    untouched()
    for encoder in ("gte-base-en-v1.5", tiny_folder("gte-remote")):
        line = refused(run("fit", label_file, "--out", tmp_path / "model", "--encoder", encoder))
        assert "--trust-remote-code" in line
    untouched()


@pytest.mark.parametrize("command", ["fit", "predict", "evaluate", "figures"])
def test_a_missing_column_is_refused(run, refused, untouched, saved, label_file, documents, tmp_path, command):
    args = {
        "fit": ("fit", label_file, "--out", tmp_path / "model", "--encoder", "no/such", "--pool", documents),
        "predict": ("predict", saved, documents, tmp_path / "out.csv"),
        "evaluate": ("evaluate", saved, documents),
        "figures": ("figures", saved, documents, "--out", tmp_path / "figures", "--projection", "pca"),
    }
    untouched()
    assert "no column 'txt'. Did you mean 'text'?" in refused(run(*args[command], "--text-column", "txt"))
    if command in ("evaluate", "figures"):
        assert "'lable'" in refused(run(*args[command], "--label-column", "lable"))
    untouched()


@pytest.mark.parametrize(
    ("value", "kind"), [(None, pa.string()), (float("nan"), pa.float64()), (b"\xff\xfe", pa.binary())]
)
@pytest.mark.parametrize("command", ["fit", "predict", "evaluate"])
def test_an_invalid_document_is_refused(
    run, untouched, saved, label_file, tiny_encoder_folder, tmp_path, command, value, kind
):
    rows = pa.table({"text": pa.array([value, value], kind), "label": ["sports", "money"]})
    file = tmp_path / "rows.parquet"
    pq.write_table(rows, file)
    args = {
        "fit": ("fit", label_file, "--out", tmp_path / "m", "--encoder", tiny_encoder_folder, "--pool", file),
        "predict": ("predict", saved, file, tmp_path / "out.csv", "--quiet"),
        "evaluate": ("evaluate", saved, file, "--quiet"),
    }
    untouched()
    result = run(*args[command])
    assert result.exit_code == 2, result.output
    assert result.stdout == ""
    lines = result.stderr.splitlines()
    assert len(lines) == 1
    assert lines[0].startswith("error: ")
    assert str(file) in lines[0]
    untouched()


def test_lines_that_are_not_utf8_are_refused_after_the_answers_before_them(run, saved):
    result = run("predict", saved, "-", input=b"a text\n\xff\xfe\nanother\n")
    assert "stdin: line 2" in result.stderr
    assert result.exit_code == 2
    assert result.stdout.endswith("\ta text\n")  # what came before is answered


@pytest.mark.parametrize(("text", "said"), [("  ", "empty"), ("the team won " * 10_000, "longer than")])
def test_empty_and_long_documents_are_kept_with_a_warning(run, saved, tmp_path, text, said):
    file = tmp_path / "rows.jsonl"
    file.write_text("".join(json.dumps({"text": each}) + "\n" for each in (text, "a loan")))
    result = run("predict", saved, file, tmp_path / "out.csv", "--quiet")
    assert result.exit_code == 0
    assert result.stderr.startswith("warning: 1 document is ")
    assert said in result.stderr
    assert result.stderr.count("\n") == 1
    assert "2 rows" in result.stdout


@pytest.fixture
def broken(saved, tmp_path):
    folder = tmp_path / "model"
    shutil.copytree(saved, folder)
    return folder


def _truncated(folder):
    weights = folder / "model.safetensors"
    weights.write_bytes(weights.read_bytes()[:1000])


def _lacking(folder):
    (folder / "label_vectors.safetensors").unlink()


def _newer(folder):
    header = folder / "labelspace.json"
    header.write_text(header.read_text().replace(f'"format": {FORMAT}', '"format": 99'))


def _with_a_pickle(folder):
    (folder / "extra.pkl").write_bytes(b"\x80\x04N.")


def _no_model(folder):
    (folder / "labelspace.json").unlink()


@pytest.mark.parametrize(
    ("command", "damage"),
    [
        *(("predict", damage) for damage in (_truncated, _lacking, _newer, _with_a_pickle, _no_model)),
        *((command, _truncated) for command in ("evaluate", "explain", "figures")),
    ],
)
def test_a_damaged_model_is_refused(run, refused, untouched, broken, documents, tmp_path, damage, command):
    damage(broken)
    args = {
        "predict": ("predict", broken, documents, tmp_path / "out.csv"),
        "evaluate": ("evaluate", broken, documents),
        "explain": ("explain", broken, "a text"),
        "figures": ("figures", broken, documents, "--out", tmp_path / "figures", "--projection", "pca"),
    }
    untouched()
    assert str(broken) in refused(run(*args[command]))
    untouched()


def test_a_label_unknown_to_the_model_is_refused(run, refused, saved, tmp_path):
    file = tmp_path / "rows.csv"
    file.write_text("text,label\na loan,money\na vote,politics\n")
    assert "'politics'" in refused(run("evaluate", saved, file, "--quiet"))
    file.write_text("text,label\na loan,money|sports\n")
    told = refused(run("evaluate", saved, file, "--quiet"))
    assert "is 'money|sports', which is no label. If a text may have several labels, say several: true in" in told


def test_a_byte_order_mark_on_stdin_is_no_part_of_the_first_text(run, saved):
    plain, marked = (
        run("predict", saved, "-", "--json", input=mark + b"the team won\nmoney") for mark in (b"", BOM_UTF8)
    )
    assert marked.stdout == plain.stdout
    assert json.loads(marked.stdout.splitlines()[0])["text"] == "the team won"
    assert json.loads(run("predict", saved, "-", "--json", input=BOM_UTF8 + b"a text").stdout)["text"] == "a text"
