"""The command figures draws every figure that applies to the model, or those in --only."""

import json

import pytest

PNG = b"\x89PNG"
ALL = ["confusion", "map", "sphere", "similarity"]
"""Those of a model that learnt from no consensus."""


@pytest.fixture
def untrained(run, tmp_path, label_file, tiny_encoder_folder):
    """A saved zero-shot model."""
    folder = tmp_path / "untrained"
    result = run("fit", label_file, "--method", "zero-shot", "--encoder", tiny_encoder_folder, "--out", folder)
    assert result.exit_code == 0, result.output
    return folder


def files_of(*names):
    return [f"{name}.{ending}" for name in names for ending in ("png", "svg")]


@pytest.mark.slow
def test_with_labels_all_figures_are_drawn(run, saved, documents, tmp_path):
    out = tmp_path / "figures"
    result = run("figures", saved, documents, "--out", out, "--label-column", "label", "--projection", "pca")
    assert result.exit_code == 0, result.output
    assert result.stdout.splitlines() == [str(out / name) for name in files_of(*ALL)]
    assert sorted(path.name for path in out.iterdir()) == sorted(files_of(*ALL))
    assert all(path.read_bytes().startswith(PNG) for path in out.glob("*.png"))


@pytest.mark.slow
def test_without_labels_the_confusion_matrix_is_left_out(run, saved, documents, tmp_path):
    out = tmp_path / "figures"
    result = run("figures", saved, documents, "--out", out, "--projection", "pca", "--no-before", "--quiet")
    assert result.exit_code == 0, result.output
    assert sorted(path.name for path in out.iterdir()) == sorted(files_of("map", "sphere", "similarity"))


@pytest.mark.slow
def test_an_untrained_model_has_figures(run, untrained, documents, tmp_path):
    result = run("figures", untrained, documents, "--out", tmp_path / "figures", "--projection", "pca")
    assert result.exit_code == 0, result.output


@pytest.mark.slow
@pytest.mark.parametrize("only", ["similarity", "sphere, confusion"])
def test_only_draws_the_named_figures_in_the_order_of_the_help(run, saved, documents, tmp_path, monkeypatch, only):
    import sys

    monkeypatch.setitem(sys.modules, "umap", None)  # these figures do not need it
    out = tmp_path / "figures"
    result = run("figures", saved, documents, "--out", out, "--label-column", "label", "--only", only)
    assert result.exit_code == 0, result.output
    names = [name for name in ALL if name in only]
    assert result.stdout.splitlines() == [str(out / name) for name in files_of(*names)]


@pytest.mark.parametrize(
    ("args", "said"),
    [
        (["--projection", "lda"], "--projection"),
        (["--max-documents", "0"], "--max-documents"),
        (["--out", "nowhere/deeper"], "nowhere"),
        (["--only", "sfere"], "Did you mean 'sphere'?"),
        (["--only", ""], "--only takes confusion, map, sphere, similarity, consensus"),
        (["--only", "map,confusion"], "--only confusion compares with labels"),
        (["--only", "consensus"], "this DescriptionClassifier learnt from no consensus"),
    ],
)
def test_figures_refuses(run, refused, saved, documents, tmp_path, monkeypatch, args, said):
    monkeypatch.chdir(tmp_path)
    out = [] if "--out" in args else ["--out", "figures"]
    pca = [] if "--projection" in args else ["--projection", "pca"]  # umap takes seconds to import
    assert said in refused(run("figures", saved, documents, *out, *pca, *args))
    assert not (tmp_path / "figures").exists()


def test_the_documents_of_the_map_are_drawn_from_the_whole_file(documents):
    from labelspace.cli.sampling import sample_rows
    from labelspace.corpus import open_table

    table = open_table(documents, text_column="text", label_column="label", batch_rows=2)
    everything = [sample_rows(table, 2, seed) for seed in range(30)]
    assert all(len(texts) == len(names) == 2 for texts, names in everything)
    assert len({text for texts, _ in everything for text in texts}) == 6
    assert sample_rows(table, 2, 7) == sample_rows(table, 2, 7)
    assert len(sample_rows(table, 100, 0)[0]) == 6


def test_rows_with_a_label_come_first_whatever_marks_the_others(tmp_path):
    from labelspace.cli.sampling import sample_rows
    from labelspace.corpus import open_table

    rows = [{"text": f"text {row}", "label": "sports" if row % 10 == 0 else "-1"} for row in range(100)]
    (tmp_path / "rows.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    table = open_table(tmp_path / "rows.jsonl", text_column="text", label_column="label")
    assert sample_rows(table, 15, 0, labelled_first=True)[1].count("sports") == 10


@pytest.mark.slow
def test_a_figure_that_does_not_apply_is_left_out_and_refused_if_named(run, refused, doubting, sorted_rows, tmp_path):
    out, pca = tmp_path / "figures", ("--projection", "pca")
    line = refused(run("figures", doubting, sorted_rows, "--out", out, "--only", "map,similarity", *pca))
    assert "compares vectors of labels" in line
    assert not out.exists()
    result = run("figures", doubting, sorted_rows, "--out", out, "--projection", "pca", "--max-documents", 9)
    assert result.exit_code == 0, result.output
    assert (
        "left out: the similarity compares vectors of labels, and this UncertaintyClassifier has none" in result.stderr
    )
    assert result.stdout.splitlines() == [str(out / name) for name in files_of("map", "sphere")]


@pytest.mark.slow
@pytest.mark.parametrize("student", [[], ["--student", "words"]])
def test_a_model_of_a_consensus_has_its_figure_too(run, label_file, documents, tiny_encoder_folder, tmp_path, student):
    model, out = tmp_path / "model", tmp_path / "figures"
    fit = ("fit", label_file, "--method", "consensus", "--pool", documents, "--out", model, "--quiet")
    views = ("--views", f"zero-shot:{tiny_encoder_folder},words")
    assert run(*fit, *views, *student).exit_code == 0
    result = run("figures", model, documents, "--out", out, "--only", "consensus")
    assert result.exit_code == 0, result.output
    assert result.stdout.splitlines() == [str(out / name) for name in files_of("consensus")]
    everything = run("figures", model, documents, "--out", tmp_path / "all", "--projection", "pca", "--no-before")
    assert everything.exit_code == 0, everything.output
    assert everything.stdout.splitlines() == [str(tmp_path / "all" / name) for name in files_of("consensus")]
    assert "left out: the map needs a vector of each text" in everything.stderr


@pytest.mark.slow
def test_a_model_without_a_consensus_says_that_its_figure_is_left_out(run, saved, documents, tmp_path):
    result = run("figures", saved, documents, "--out", tmp_path / "figures", "--only", "similarity,consensus")
    assert result.exit_code == 2
    result = run("figures", saved, documents, "--out", tmp_path / "figures", "--projection", "pca", "--no-before")
    assert result.exit_code == 0, result.output
    said = [line for line in result.stderr.splitlines() if "left out" in line]
    assert said == [
        "note: left out: the consensus shows what views agreed on, and this DescriptionClassifier learnt from no "
        "consensus; fit one first."
    ]
