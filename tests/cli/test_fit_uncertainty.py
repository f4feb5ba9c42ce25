"""fit --labelled --method uncertainty: a head on a frozen encoder that measures its uncertainty."""

import json

import pytest

from labelspace import load
from labelspace.config import UncertaintyConfig


@pytest.fixture
def fit_head(run, sorted_labels, sorted_rows, tiny_encoder_folder, tmp_path, monkeypatch):
    """Return a function that fits a head on rows with its own cache; later options replace earlier ones."""
    monkeypatch.setenv("LABELSPACE_CACHE", str(tmp_path / "cache"))

    def fit(*more, rows=sorted_rows, labels=sorted_labels):
        given = ("--labelled", rows, "--method", "uncertainty", "--dtype", "float32", "--epochs", 2)
        return run("fit", labels, "--encoder", tiny_encoder_folder, "--out", tmp_path / "model", *given, *more)

    return fit


def test_fit_trains_a_head_on_a_frozen_encoder(run, fit_head, sorted_rows, tmp_path):
    more = ("--set", "weight_decay=0.1", "--seed", 3, "--set", "validation=0.1", "--set", "batch_size=9")
    result = fit_head("--learning-rate", "1e-3", *more)
    assert result.exit_code == 0, result.output
    said = {name: value.strip() for name, value in (line.split("  ", 1) for line in result.stdout.splitlines())}
    assert list(said) == ["labelled", "learning rate", "steps", "loss", "held out", "temperature", "saved"]
    assert (said["labelled"], said["steps"]) == ("90, 9 of them held out", "18 in 2 epochs")
    assert said["held out"].startswith("accuracy ")
    assert said["held out"].endswith("; on 9 rows, those that the temperature was fitted on")
    assert "training: 18 of 18" in result.stderr
    model = load(tmp_path / "model")
    given = model.get_params()
    assert type(model).__name__ == "UncertaintyClassifier"
    names = ("epochs", "learning_rate", "seed", "verbose")
    assert [given[name] for name in names] == [2, 1e-3, 3, False]
    assert (given["config"]["weight_decay"], given["config"]["batch_size"]) == (0.1, 9)
    assert len(list((tmp_path / "cache" / "token-states").glob("*/states.bf16"))) == 1
    predicted = run("predict", tmp_path / "model", sorted_rows, tmp_path / "predicted.csv")
    assert predicted.exit_code == 0, predicted.output


def test_with_cache_none_no_token_states_are_kept(fit_head, tmp_path):
    result = fit_head("--set", "cache=none", "--set", "validation=0.2", "--quiet")
    assert result.exit_code == 0, result.output
    assert not (tmp_path / "cache" / "token-states").exists()
    model = load(tmp_path / "model")
    assert (model.cache, model.validation) == (None, 0.2)
    assert "90, 18 of them held out" in result.stdout


def test_another_extractor_has_its_own_learning_rate(fit_head, tmp_path):
    result = fit_head("--set", "extractor=attention")
    assert result.exit_code == 0, result.output
    assert "learning rate  0.003" in result.stdout
    assert load(tmp_path / "model").extractor == "attention"


def test_defaults_are_those_of_the_configuration(fit_head, tmp_path):
    assert fit_head("--quiet").exit_code == 0
    assert load(tmp_path / "model").training_config() == UncertaintyConfig(epochs=2)


def test_the_json_of_a_head_has_curve_and_calibration(fit_head, tmp_path):
    result = fit_head("--json", "--quiet", "--set", "validation=0.1")
    assert result.stderr == ""
    told = json.loads(result.stdout)
    assert (told["method"], told["model"]) == ("uncertainty", str(tmp_path / "model"))
    assert told["fit"]["held_out"] == told["fit"]["calibration"]["documents"] == 9
    assert len(told["fit"]["curve"]["losses"]) == 4


def test_without_held_out_rows_the_summary_has_no_temperature(fit_head):
    result = fit_head()
    assert result.exit_code == 0, result.output
    said = dict(line.split("  ", 1) for line in result.stdout.splitlines())
    assert list(said) == ["labelled", "learning rate", "steps", "loss", "saved"]
    assert said["labelled"].strip() == "90"


def test_empty_texts_cause_one_warning_with_their_row(fit_head, tmp_path):
    rows = tmp_path / "rows.csv"
    rows.write_text("text,label\nthe team won,sports\na bank,money\n  ,money\n", encoding="utf-8")
    result = fit_head("--quiet", rows=rows)
    assert result.exit_code == 0, result.output
    assert result.stderr.count("empty or white space") == result.stderr.count("rows.csv: row 3") == 1


@pytest.mark.parametrize(
    ("more", "said"),
    [
        (("--max-steps", 3), "--max-steps does nothing with --method uncertainty; it is for description and lacon"),
        (("--set", "description_steps=3"), "--set has no setting 'description_steps'"),
        (("--pool", "documents.csv"), "--pool does nothing with --method uncertainty"),
        (("--pair-column", "other"), "--pair-column does nothing with --method uncertainty"),
        (("--threshold", 0.1), "--threshold does nothing with --method uncertainty"),
        (("--learning-rate", "base"), "learning_rate must be a number or 'auto'"),
        (("--set", "extractor=cnn"), "extractor must be one of 'textcnn',"),
        (("--learning-rate", "2"), "learning_rate must be a number above 0 and at most 1"),
        (("--epochs", 0), "epochs must be"),
        (("--set", "batch_size=0"), "batch_size must be"),
        (("--min-probability", "-0.5"), "min_probability must be a number at least 0 and at most 1"),
        (("--label-column", "nothing"), "nothing"),
    ],
    ids=lambda value: value[0] if isinstance(value, tuple) else "",
)
def test_options_without_effect_on_a_head_are_refused(more, said, refused, fit_head, tmp_path):
    assert said in refused(fit_head(*more, "--quiet"))
    assert list(tmp_path.iterdir()) == []


def test_a_head_needs_labelled_rows_of_known_and_different_labels(
    run, refused, fit_head, documents, sorted_labels, tmp_path
):
    line = refused(run("fit", sorted_labels, "--out", tmp_path / "model", "--method", "uncertainty"))
    assert "--method uncertainty needs --labelled FILE" in line
    rows = tmp_path / "rows.csv"
    rows.write_text("text,label\nthe team won,sports\na vote,politics\n", encoding="utf-8")
    assert "'politics', which is no label" in refused(fit_head("--quiet", rows=rows))
    rows.write_text("text,label\nthe team won,sports\na match,sports\n", encoding="utf-8")
    assert "nothing to tell apart" in refused(fit_head("--quiet", rows=rows))
    rows.write_text("text,label\nthe team won,\na match,\n", encoding="utf-8")
    assert "; leave --labelled and --method out" in refused(fit_head("--quiet", rows=rows))
    assert not (tmp_path / "model").exists()


def test_ctrl_c_keeps_the_last_complete_epoch_or_writes_nothing(fit_head, tmp_path, monkeypatch):
    from labelspace.training.uncertainty import objective

    real, asked = objective.batch_loss, []

    def interrupted(*given):
        asked.append(given)
        if len(asked) == last:
            raise KeyboardInterrupt
        return real(*given)

    monkeypatch.setattr(objective, "batch_loss", interrupted)
    last = 1
    result = fit_head("--quiet")
    assert (result.exit_code, result.stdout) == (130, "")
    assert "interrupted before anything was learnt that is worth keeping; nothing was written." in result.stderr
    assert not (tmp_path / "model").exists()
    last = len(asked) + 4
    result = fit_head("--quiet")
    assert result.exit_code == 130
    assert "holds the last whole epoch, and can be used as it is" in result.stderr
    assert load(tmp_path / "model").fit_result_.to_dict()["curve"]["best_step"] == 2
