"""The whole workflow of a new user: init, lint, fit, predict, evaluate, explain, figures."""

import json


def test_a_new_user_gets_from_names_to_figures(run, tmp_path, documents, tiny_encoder_folder, monkeypatch):
    monkeypatch.chdir(tmp_path)

    def go(*args) -> str:
        result = run(*args)
        assert result.exit_code == 0, result.output
        return result.stdout

    go("init", "labels.yaml", "--names", "sports,money", "--descriptions-per-label", "2")
    text = (tmp_path / "labels.yaml").read_text(encoding="utf-8")
    # In an editor the user removes the comment signs and writes descriptions.
    (tmp_path / "labels.yaml").write_text(
        text.replace('# - "What a typical', '- "What a typical').replace('# - "Another', '- "Another'), encoding="utf-8"
    )
    assert run("lint", "labels.yaml").exit_code == 1  # all labels have the same description
    lines = [
        "A team wins a match and celebrates.",
        "An athlete breaks a record at the games.",
        "A bank raises the price of a loan.",
        "The market falls after a company's report.",
    ]
    written = (tmp_path / "labels.yaml").read_text(encoding="utf-8").splitlines()
    places = [number for number, line in enumerate(written) if line.lstrip().startswith('- "')]
    for number, line in zip(places, lines, strict=True):
        written[number] = f'      - "{line}"'
    (tmp_path / "labels.yaml").write_text("\n".join(written) + "\n", encoding="utf-8")
    assert "2 labels, 4 descriptions" in go("lint", "labels.yaml")
    go(
        *("fit", "labels.yaml", "--encoder", tiny_encoder_folder, "--pool", documents, "--out", "model"),
        *("--set", "view_steps=2"),
    )
    go("predict", "model", documents, "predicted.csv")
    assert len((tmp_path / "predicted.csv").read_text().splitlines()) == 7
    assert 0 <= json.loads(go("evaluate", "model", documents, "--json"))["metrics"]["macro_f1"] <= 1
    assert "margin" in go("explain", "model", "the team won the match")
    assert "map.png" in go(
        *("figures", "model", documents, "--out", "figures", "--only", "confusion,map"),
        *("--label-column", "label", "--projection", "pca"),
    )
