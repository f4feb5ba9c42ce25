"""`labelspace export`: what it prints, and what it refuses before a model is opened."""

import json

import pytest

pytest.importorskip("onnxruntime")


@pytest.mark.slow
def test_export_says_how_many_answers_differ_on_the_documents_given(saved, documents, run, tmp_path):
    done = run("export", saved, tmp_path / "out", "--documents", documents)
    assert done.exit_code == 0, done.output
    assert done.stderr == ""
    first, second = done.stdout.splitlines()
    assert first == f"wrote {tmp_path / 'out'} for ONNX Runtime"
    assert second.startswith("0 of 6 documents get another label than in float32; cosines differ by up to ")
    assert sorted(path.name for path in (tmp_path / "out").iterdir()) == [
        *("labels.safetensors", "labelspace.json", "model.onnx", "tokenizer.json")
    ]


@pytest.mark.slow
def test_export_without_documents_checks_on_the_labels_descriptions_and_says_so(saved, run, tmp_path):
    pytest.importorskip("openvino")
    done = run("export", saved, tmp_path / "out", "--to", "openvino", "--json")
    assert done.exit_code == 0, done.output
    found = json.loads(done.stdout)
    assert found.pop("largest") < 1e-5
    assert found == {
        **{"path": str(tmp_path / "out"), "to": "openvino", "source": "descriptions", "texts": 6, "differ": 0}
    }


@pytest.mark.slow
def test_export_checks_a_bounded_number_of_documents(saved, documents, run, tmp_path, monkeypatch):
    monkeypatch.setattr("labelspace.cli.export._DOCUMENTS", 3)
    result = run("export", saved, tmp_path / "out", "--documents", documents)
    assert result.exit_code == 0, result.output
    assert "of 3 documents" in result.stdout


def test_export_refuses_what_cannot_be_before_it_opens_the_model(documents, run, refused, tmp_path):
    missing = tmp_path / "no-such-model"
    assert "--to must be one of 'onnx', 'openvino'" in refused(run("export", missing, tmp_path / "out", "--to", "tf"))
    found = refused(run("export", missing, tmp_path / "out", "--documents", documents, "--text-column", "body"))
    assert "body" in found
    (tmp_path / "file").write_text("mine")
    assert "is a file" in refused(run("export", missing, tmp_path / "file"))


def test_export_refuses_a_model_that_measures_uncertainty(doubting, run, refused, tmp_path):
    found = refused(run("export", doubting, tmp_path / "out"))
    assert "are exported: ZeroShotClassifier, DescriptionClassifier, LaConClassifier. Got a Uncertainty" in found
    assert not (tmp_path / "out").exists()
