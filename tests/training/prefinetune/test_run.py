"""`prefinetune` from a user's side: encoder in, encoder out, the report, the folder, and refusals."""

import json
import math
import warnings
from dataclasses import replace

import numpy as np
import pyarrow as pa
import pytest
import torch

from labelspace import DescriptionClassifier, Encoder, prefinetune
from labelspace.config import PrefinetuneConfig
from labelspace.errors import ConfigError, InputError, LabelSpaceWarning, ModelFolderError, OutputError, ShapeError
from labelspace.geometry import alignment, drift, neighbours_kept, sample_pairs, uniformity
from labelspace.header import FORMAT
from labelspace.seeds import child_seed
from labelspace.training.prefinetune import read_eigenspace, run
from labelspace.training.prefinetune.relations import ReferenceRelations
from labelspace.training.prefinetune.sources import hold_aside
from stops import stop_at
from training.prefinetune.toy import toy_pairs
from weights import same_bits

SHORT = PrefinetuneConfig(learning_rate=1e-3)
SPACE = {"sports": ["A team wins a match.", "A player leaves."], "money": ["A bank lends.", "A price falls."]}


@pytest.fixture(scope="module")
def done(base, tmp_path_factory):
    return prefinetune(toy_pairs(40), base, SHORT, seed=1, folder=tmp_path_factory.mktemp("run"))


def test_a_new_encoder_comes_out_and_the_given_one_is_unchanged(base, done, tiny_encoder_folder):
    encoder, result, _ = done
    texts = list(toy_pairs().anchors)
    assert encoder is not base
    assert np.array_equal(base.encode(texts), Encoder(tiny_encoder_folder, dtype="float32", device="cpu").encode(texts))
    assert drift(base.encode(texts), encoder.encode(texts)) > 1e-3
    assert (encoder.dimension, encoder.max_tokens, encoder.dtype) == (base.dimension, base.max_tokens, base.dtype)
    assert result.training.finished
    assert result.pairs == {"news": 36, "questions": 36, "shouts": 36}


def test_the_report_is_the_geometry_of_the_pairs_held_aside(base, done):
    encoder, result, space = done
    pairs = toy_pairs(40)
    aside = pairs.take(hold_aside(pairs, seed=1)[1])
    texts = list(dict.fromkeys([*aside.anchors, *aside.positives]))
    assert (result.measured_on, result.measured_pairs) == ("pairs held aside", 12)
    drawn = sample_pairs(len(texts), 50_000, child_seed(1, "uniformity"))
    for which, measures in ((base, result.before), (encoder, result.after)):
        vectors = torch.from_numpy(which.encode(texts))
        sides = [torch.from_numpy(which.encode(side)) for side in (aside.anchors, aside.positives)]
        assert measures.uniformity == pytest.approx(uniformity(vectors, drawn).item(), abs=1e-5)
        assert measures.alignment == pytest.approx(alignment(*sides).item(), abs=1e-5)
        assert 0 <= measures.isoscore <= 1
    assert result.drift == pytest.approx(drift(base.encode(texts), encoder.encode(texts)), abs=1e-5)
    assert result.neighbours == 10
    assert result.neighbours_kept == pytest.approx(neighbours_kept(base.encode(texts), encoder.encode(texts), k=10))
    assert (result.active, result.shrunk_factors, result.relation_width) == (space.active, space.shrunk, 64)
    assert result.shrunk_directions == int((space.alpha < 1).any(dim=0).sum()) > 0
    assert result.notes == ()
    assert [name for name, _, _ in result.table()][:3] == ["uniformity", "alignment", "isoscore"]


def test_the_result_is_plain_values(done):
    told = json.loads(json.dumps(done.result.to_dict(), allow_nan=False))
    assert told["config"] == SHORT.to_dict()
    assert told["seed"] == 1
    assert told["encoder"]["dimension"] == 32
    assert told["training"]["total_steps"] == math.ceil(108 / 8)
    assert len(told["training"]["looks"]) == 14


def test_pairs_held_aside_are_neither_trained_on_nor_in_the_eigenspace(base, done, monkeypatch):
    seen = []
    real = run.PrefinetuneObjective.__init__

    def watch(self, encoder, weights, pairs, *rest, **more):
        seen.extend(pairs.anchors)
        real(self, encoder, weights, pairs, *rest, **more)

    monkeypatch.setattr(run.PrefinetuneObjective, "__init__", watch)
    pairs = toy_pairs(40)
    prefinetune(pairs, base, replace(SHORT, batch_size=200), seed=1)
    aside = {pairs.anchors[row] for row in hold_aside(pairs, seed=1)[1]}
    assert len(seen) == 108
    assert not aside & set(seen)
    assert done.eigenspace.source_counts.tolist() == [36, 36, 36]


def test_with_nothing_held_aside_all_pairs_are_trained_on_and_measured(base):
    pairs = toy_pairs(40)
    result = prefinetune(pairs, base, replace(SHORT, validation=0.0)).result
    assert (result.measured_on, result.measured_pairs, sum(result.pairs.values())) == ("training pairs", 120, 120)


def test_with_few_pairs_measures_are_taken_on_the_training_pairs(base, pairs):
    result = prefinetune(pairs, base, SHORT).result
    assert (result.measured_on, result.measured_pairs) == ("training pairs", 36)
    assert sum(result.pairs.values()) == 36


def test_every_estimator_can_start_from_it(done, base):
    classifier = DescriptionClassifier(SPACE, encoder=done.encoder, max_steps=2, learning_rate=1e-4).fit()
    assert set(classifier.predict(["the team", "the bank"])) <= {"sports", "money"}
    plain = DescriptionClassifier(SPACE, encoder=base, max_steps=2, learning_rate=1e-4).fit()
    assert not np.allclose(classifier.decision_function(["a loan"]), plain.decision_function(["a loan"]))


def test_the_folder_is_an_encoder_for_us_and_for_sentence_transformers(done, tmp_path):
    from sentence_transformers import SentenceTransformer

    texts = list(toy_pairs().anchors)
    expected = done.encoder.encode(texts)
    assert done.save(tmp_path / "model") == tmp_path / "model"
    again = Encoder(tmp_path / "model", dtype="float32", device="cpu")
    assert np.array_equal(again.encode(texts), expected)
    theirs = SentenceTransformer(str(tmp_path / "model"), device="cpu").encode(texts, normalize_embeddings=True)
    np.testing.assert_allclose(theirs, expected, atol=1e-5)
    stored = read_eigenspace(tmp_path / "model", width=2 * again.dimension)
    assert torch.equal(stored.alpha, done.eigenspace.alpha)
    assert stored.sources == ("news", "questions", "shouts")
    header = json.loads((tmp_path / "model" / "labelspace.json").read_text())
    assert (header["format"], header["kind"]) == (FORMAT, "encoder")
    assert header["pairs"] == done.result.pairs
    assert header["files"]["eigenspace.safetensors"]["sha256"]
    card = (tmp_path / "model" / "README.md").read_text()
    assert "| news | 36 |" in card
    assert "| uniformity | " in card
    assert "from `tiny-bert`" in card
    assert not [path for path in (tmp_path / "model").rglob("*") if path.suffix in {".bin", ".pt", ".pkl"}]


def test_a_classifier_that_refits_starts_from_the_saved_folder(done, tmp_path):
    from labelspace import load

    folder = done.save(tmp_path / "model")
    DescriptionClassifier(SPACE, encoder=done.encoder, max_steps=1, learning_rate=1e-4).fit().save(tmp_path / "clf")
    loaded = load(tmp_path / "clf")
    assert loaded.get_params()["encoder"]["name"] == str(folder)
    loaded.set_params(max_steps=1).fit()


def test_an_unsaved_encoder_does_not_keep_the_name_of_the_base(base, pairs):
    assert prefinetune(pairs, base, SHORT).encoder.name == f"{base.name}, pre-finetuned"


def test_saving_replaces_its_own_and_nothing_else(done, tmp_path):
    folder = done.save(tmp_path / "model")
    assert done.save(folder) == folder
    (tmp_path / "mine").mkdir()
    (tmp_path / "mine" / "letter").write_text("dear")
    with pytest.raises(OutputError, match="holds something else, not a pre-finetuned encoder"):
        done.save(tmp_path / "mine")
    with pytest.raises(OutputError, match="is a file"):
        done.save(tmp_path / "mine" / "letter")


def test_a_stored_eigenspace_of_another_width_or_none_is_refused(done, tmp_path):
    folder = done.save(tmp_path / "model")
    with pytest.raises(ShapeError, match="Got 1536"):
        read_eigenspace(folder, width=1536)
    (folder / "eigenspace.safetensors").write_bytes(b"nothing")
    with pytest.raises(ModelFolderError, match="damaged"):
        read_eigenspace(folder)
    with pytest.raises(ModelFolderError, match="holds no eigenspace"):
        read_eigenspace(tmp_path)


def test_plain_prefinetuning_computes_no_reference(base, pairs, tmp_path, monkeypatch):
    monkeypatch.setattr(ReferenceRelations, "blocks", None)
    plain = prefinetune(pairs, base, replace(SHORT, regularizer_weight=0.0), folder=tmp_path / "run")
    assert plain.eigenspace is None
    assert plain.result.active is None
    folder = plain.save(tmp_path / "model")
    assert not (folder / "eigenspace.safetensors").exists()
    assert "without a regularizer" in (folder / "README.md").read_text()


def test_the_reference_is_computed_once_for_all_runs_on_the_same_pairs(base, pairs, tmp_path, monkeypatch):
    starts, real = [], ReferenceRelations._encode
    monkeypatch.setattr(ReferenceRelations, "_encode", lambda self, start: starts.append(start) or real(self, start))
    for weight in (0.5, 2.0):
        prefinetune(pairs, base, replace(SHORT, regularizer_weight=weight), folder=tmp_path)
    assert starts == [0]


def test_nothing_is_left_on_disk_without_a_folder(base, pairs, tmp_path, monkeypatch):
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    prefinetune(pairs, base, SHORT)
    assert list(tmp_path.iterdir()) == []


def test_max_tokens_limits_training_only(base, pairs):
    short = prefinetune(pairs, base, replace(SHORT, max_tokens=6))
    assert short.result.max_tokens == 6
    assert short.encoder.max_tokens == base.max_tokens == 128
    long = prefinetune(pairs, base, SHORT)
    assert long.result.max_tokens == 128
    assert not torch.equal(short.eigenspace.mean, long.eigenspace.mean)


def test_the_seed_decides_the_bits_and_the_pairs_drawn(base, tmp_path):
    rows = [{"anchor": f"the team {n}", "positive": "sports", "source": f"s{n % 3}"} for n in range(90)]
    path = tmp_path / "pairs.jsonl"
    path.write_text("".join(json.dumps(row) + "\n" for row in rows), encoding="utf-8")
    config = replace(SHORT, per_source=8, batch_size=24)
    one, two, other = (prefinetune(path, base, config, seed=seed) for seed in (0, np.int64(0), 1))
    assert json.dumps(two.result.to_dict()["seed"]) == "0"
    assert one.result.pairs == {"s0": 8, "s1": 8, "s2": 8}
    assert one.result.pairs_seen == {"s0": 30, "s1": 30, "s2": 30}
    assert one.result.training.looks == two.result.training.looks != other.result.training.looks
    assert same_bits(one.encoder, two.encoder)
    assert not torch.equal(one.eigenspace.mean, other.eigenspace.mean)


def test_an_interrupted_run_gives_the_last_sound_encoder_and_its_report(base, pairs, tmp_path):
    stopped = prefinetune(pairs, base, SHORT, folder=tmp_path, callbacks=[stop_at(3, KeyboardInterrupt)])
    assert (stopped.result.training.stop_reason, stopped.result.training.best_step) == ("interrupted", 2)
    assert stopped.result.after is not None
    straight = prefinetune(pairs, base, SHORT)
    went_on = prefinetune(pairs, base, SHORT, folder=tmp_path, resume=True)
    assert went_on.result.training.looks == straight.result.training.looks
    assert same_bits(went_on.encoder, straight.encoder)


def test_one_script_works_on_the_first_run_after_a_kill_and_when_done(base, pairs, tmp_path):
    folder = tmp_path / "not" / "there" / "yet"
    runs = [
        prefinetune(pairs, base, SHORT, folder=folder, resume=True, callbacks=[stop_at(3, KeyboardInterrupt)]),
        prefinetune(pairs, base, SHORT, folder=folder, resume=True),
        prefinetune(pairs, base, SHORT, folder=folder, resume=True, callbacks=[stop_at(3, KeyboardInterrupt)]),
    ]
    assert [one.result.training.best_step for one in runs] == [2, 5, 5]
    assert runs[1].result.training.looks == runs[2].result.training.looks


def test_resuming_with_other_pairs_is_refused_before_relations_are_computed(base, pairs, tmp_path, monkeypatch):
    prefinetune(pairs, base, SHORT, folder=tmp_path, callbacks=[stop_at(3, KeyboardInterrupt)])
    monkeypatch.setattr(Encoder, "embed", None)
    with pytest.raises(ConfigError, match="had other pairs"):
        prefinetune(toy_pairs(seed=1), base, SHORT, folder=tmp_path, resume=True)


def test_an_unfinished_run_is_not_overwritten_silently(base, pairs, tmp_path):
    prefinetune(pairs, base, SHORT, folder=tmp_path, callbacks=[stop_at(3, KeyboardInterrupt)])
    state = tmp_path / "checkpoint" / "state.json"
    was = state.read_text()
    with pytest.raises(ConfigError) as refused:
        prefinetune(pairs, base, replace(SHORT, epochs=2), folder=tmp_path)
    assert str(refused.value) == (
        f"{tmp_path} holds an unfinished run (update 2 of 5); pass resume=True to resume it, "
        f"or another folder, or remove {tmp_path / 'checkpoint'}."
    )
    assert state.read_text() == was
    assert prefinetune(pairs, base, SHORT, folder=tmp_path, resume=True).result.training.finished


def test_a_finished_run_is_replaced(base, pairs, tmp_path):
    assert prefinetune(pairs, base, replace(SHORT, batch_size=36), folder=tmp_path).result.training.best_step == 1
    assert prefinetune(pairs, base, replace(SHORT, batch_size=18), folder=tmp_path).result.training.best_step == 2


@pytest.mark.parametrize(
    ("bias", "said"), [(1.0, "makes one vector of all"), (float("nan"), "has a NaN or an infinity; check its")]
)
def test_plain_prefinetuning_refuses_an_encoder_without_a_space_before_it_trains(base, pairs, bias, said):
    encoder, steps = base.copy(), []
    for name, values in encoder.backbone.model.state_dict().items():
        if "LayerNorm" in name:
            values.fill_(bias if name.endswith("bias") else 0.0)
    encoder.backbone.weights_changed()
    plain = replace(SHORT, regularizer_weight=0.0)
    with pytest.raises(InputError, match=said):
        prefinetune(pairs, encoder, plain, callbacks=[lambda step, _: steps.append(step)])
    assert steps == []


def test_a_source_of_any_name_is_one_row_of_the_card(base, tmp_path):
    pairs = replace(toy_pairs(6), sources=("news", "a|b\nc", "shouts"))
    card = prefinetune(pairs, base, replace(SHORT, epochs=1)).save(tmp_path / "model") / "README.md"
    assert "| news | 6 |\n| a\\|b c | 6 |\n| shouts | 6 |\n" in card.read_text(encoding="utf-8")


def test_a_failed_measurement_costs_no_weights(base, pairs, monkeypatch):
    real, calls = run.Yardstick.measure, []

    def once(self, vectors):
        calls.append(vectors)
        if len(calls) == 2:
            raise InputError("all one")
        return real(self, vectors)

    monkeypatch.setattr(run.Yardstick, "measure", once)
    result = prefinetune(pairs, base, SHORT).result
    assert (result.after, result.drift, result.neighbours) == (None, None, None)
    assert "could not be measured afterwards: all one" in result.notes[0]
    assert result.table()[0][2] == "-"


@pytest.mark.parametrize(("kept", "notes"), [(0.05, 1), (0.5, 0)])
def test_a_collapsed_space_is_reported(base, pairs, monkeypatch, kept, notes):
    real, calls = run.Yardstick.measure, []

    def shrunk(self, vectors):
        calls.append(real(self, vectors))
        return calls[0] if len(calls) == 1 else replace(calls[0], uniformity=kept * calls[0].uniformity)

    monkeypatch.setattr(run.Yardstick, "measure", shrunk)
    told = [note for note in prefinetune(pairs, base, SHORT).result.notes if "all but collapsed" in note]
    assert len(told) == notes
    assert all("Try a lower learning_rate" in note for note in told)


def test_without_the_package_isoscore_is_none_with_a_note(base, pairs, monkeypatch):
    import sys

    monkeypatch.setitem(sys.modules, "IsoScore.IsoScore", None)
    result = prefinetune(pairs, base, SHORT).result
    assert result.before.isoscore is None
    assert "pip install 'labelspace[geometry]'" in result.notes[0]


def test_a_single_source_causes_one_warning(base):
    with warnings.catch_warnings(record=True) as told:
        warnings.simplefilter("always")
        done = prefinetune(toy_pairs(10, sources=("news",)), base, SHORT)
    ours = [str(one.message) for one in told if issubclass(one.category, LabelSpaceWarning)]
    assert len(ours) == 1
    assert "still limits drift" in ours[0]
    assert done.eigenspace.shrunk == 0
    assert done.result.training.looks[-1].regularizer > 0


@pytest.mark.parametrize(
    ("given", "error", "message"),
    [
        ({"pairs": toy_pairs(4)}, InputError, "at least 5 pairs"),
        ({"pairs": []}, InputError, "at least one source"),
        (
            {"pairs": pa.table({"anchor": ["a"], "positive": ["b"]})},
            InputError,
            "a table instead; open it with open_pairs",
        ),
        ({"pairs": None}, InputError, "must be sources or files. Got NoneType"),
        ({"config": {"epochs": 1}}, ConfigError, "must be a PrefinetuneConfig. Got dict"),
        ({"config": replace(SHORT, max_tokens=4096)}, ConfigError, r"more than the encoder reads \(128\)"),
        ({"config": replace(SHORT, per_source=3)}, ConfigError, "drawn already"),
        ({"seed": 0.5}, ConfigError, "seed"),
        ({"callbacks": print}, ConfigError, r"callbacks must be a list of callables\. Got .* instead; pass \[it\]"),
        ({"resume": True}, ConfigError, "nothing to resume"),
        ({"folder": __file__}, OutputError, "is a file; relations and checkpoints need a folder"),
    ],
    ids=[
        "four pairs",
        "no pairs",
        "a table",
        "nothing",
        "a dict",
        "tokens",
        "drawn already",
        "half a seed",
        "a callback alone",
        "no folder",
        "a file",
    ],
)
def test_invalid_input_is_refused_before_the_encoder_runs(base, pairs, monkeypatch, given, error, message):
    monkeypatch.setattr(Encoder, "embed", None)
    with pytest.raises(error, match=message):
        prefinetune(**{"pairs": pairs, "encoder": base, "config": SHORT, **given})
