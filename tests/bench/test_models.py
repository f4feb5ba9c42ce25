"""Model specifications are parsed, open the right model, and score as the classifier does."""

import json
import shutil
import warnings

import numpy as np
import pytest

import labelspace
from labelspace import LabelSpace, ZeroShotClassifier
from labelspace.bench.models import (
    FAMILIES_OF_MODELS,
    EncoderScorer,
    ModelSpec,
    computed_dtype,
    open_model,
)
from labelspace.bench.published import MODEL_FAMILIES
from labelspace.bench.revision import model_revision, weights_revision
from labelspace.classify import WordsClassifier
from labelspace.encoders import Encoder
from labelspace.errors import ConfigError, EncoderError, LabelSpaceWarning, ModelFolderError, RemoteCodeError

SPACE = LabelSpace.from_dict({"name": "desk", "labels": {"sports": ["Results of matches."], "money": ["Banks."]}})
TEXTS = ["the team won the match", "the bank said that prices will rise", "a film"]


@pytest.fixture(scope="module")
def saved(tmp_path_factory, tiny_encoder_folder):
    model = ZeroShotClassifier(SPACE, {"name": tiny_encoder_folder, "dtype": "float32"}, anchor="both").fit()
    return model.save(tmp_path_factory.mktemp("saved") / "desk")


@pytest.mark.parametrize(
    ("text", "kind", "name", "rest"),
    [
        ("all-MiniLM-L6-v2", "embedding", "all-MiniLM-L6-v2", {}),
        ("embedding:all-MiniLM-L6-v2@cls", "embedding", "all-MiniLM-L6-v2", {"pooling": "cls"}),
        ("intfloat/e5-base-v2@mean", "embedding", "intfloat/e5-base-v2", {"pooling": "mean"}),
        ("base:bert-base-uncased", "base", "bert-base-uncased", {}),
        ("nli:facebook/bart-large-mnli", "nli", "facebook/bart-large-mnli", {}),
        ("nli:some/model@logit", "nli", "some/model", {"score": "logit"}),
        ("reranker:BAAI/bge-reranker-base", "reranker", "BAAI/bge-reranker-base", {}),
        ("llm:Qwen/Qwen3-4B", "llm", "Qwen/Qwen3-4B", {}),
        ("llm:models/gemma#tiny.gguf", "llm", "models/gemma", {"gguf_file": "tiny.gguf"}),
        ("saved:my/model", "saved", "my/model", {}),
    ],
)
def test_a_specification_is_parsed_and_printed_back(text, kind, name, rest):
    spec = ModelSpec.parse(text)
    expected = {"kind": kind, "name": name, "pooling": None, "score": None, "gguf_file": None}
    assert vars(spec) == {**expected, **rest}
    assert ModelSpec.parse(str(spec)) == spec
    assert spec.family == ("embedding" if kind == "saved" else kind)


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("embeding:x", "Did you mean 'embedding'"),
        ("nli:", "nli: names no model"),
        ("", "one word such as"),
        (None, "one word such as"),
        ("embedding:x@max", "must be one of 'mean', 'cls', 'last'"),
        ("base:x@mean", "base:x takes no pooling"),
        ("nli:x@cls", "must be one of 'log_odds', 'logit'"),
        ("reranker:x@cls", "takes no pooling"),
    ],
)
def test_invalid_specifications_are_refused(text, said):
    with pytest.raises(ConfigError, match=said):
        ModelSpec.parse(text)


def test_a_gguf_file_or_a_score_needs_its_kind():
    with pytest.raises(ConfigError, match="takes no GGUF file"):
        ModelSpec(kind="nli", name="x", gguf_file="y.gguf")
    with pytest.raises(ConfigError, match="takes no score"):
        ModelSpec(kind="llm", name="x", score="logit")


def test_a_bare_folder_gets_its_kind_from_labelspace_json(saved, tmp_path):
    assert ModelSpec.parse(str(saved)).kind == "saved"
    (tmp_path / "labelspace.json").write_text(json.dumps({"kind": "nli-cross-encoder"}))
    assert ModelSpec.parse(str(tmp_path)).kind == "nli"
    with pytest.raises(ModelFolderError, match=f"as nli:{tmp_path}"):
        open_model(f"saved:{tmp_path}")
    for broken in ("{", "[]"):
        (tmp_path / "labelspace.json").write_text(broken)
        with pytest.raises(ModelFolderError):
            ModelSpec.parse(str(tmp_path))


def test_a_folder_may_have_signs_in_its_name(tiny_encoder_folder, tmp_path):
    folder = shutil.copytree(tiny_encoder_folder, tmp_path / "a@cls#b")
    assert ModelSpec.parse(str(folder)).name == str(folder)
    assert ModelSpec.parse(f"embedding:{folder}@cls").pooling == "cls"


@pytest.mark.parametrize(("text", "pooling"), [("embedding:{}", None), ("embedding:{}@cls", "cls"), ("base:{}", "cls")])
def test_an_encoder_scores_as_the_zero_shot_classifier_by_verbalizer(tiny_encoder_folder, text, pooling):
    model = open_model(text.format(tiny_encoder_folder), dtype="float32", device="cpu")
    encoder = Encoder(tiny_encoder_folder, dtype="float32", device="cpu", pooling=pooling)
    expected = ZeroShotClassifier(SPACE, encoder, anchor="verbalizer").fit().scores(TEXTS, SPACE)
    assert np.array_equal(model.scorer.scores(TEXTS, SPACE), expected)
    assert model.name == tiny_encoder_folder.name
    assert model.revision == model_revision(tiny_encoder_folder)
    assert model.parameters == sum(each.numel() for each in encoder.backbone.model.parameters())


def test_labels_are_encoded_once_for_a_label_space_and_again_for_another(tiny_encoder_folder, monkeypatch):
    from labelspace.classify import anchors

    calls = []
    encode_labels = anchors.encode_labels
    monkeypatch.setattr(
        anchors, "encode_labels", lambda encoder, space: calls.append(space) or encode_labels(encoder, space)
    )
    scorer = EncoderScorer(Encoder(tiny_encoder_folder, dtype="float32"))
    other = SPACE.rename("money", "cash")
    for space in (SPACE, SPACE, other, other):
        scorer.scores(TEXTS, space)
    assert calls == [SPACE, other]


def test_a_saved_model_scores_as_itself_on_its_own_labels_and_on_others(saved):
    model = open_model(f"saved:{saved}")
    loaded = labelspace.load(saved)
    for space in (SPACE, LabelSpace.from_names(["war", "peace", "art"])):
        assert np.array_equal(model.scorer.scores(TEXTS, space), loaded.scores(TEXTS, space))
    assert model.family == "embedding"
    assert model.describe["anchor"] == "both"
    assert computed_dtype(f"saved:{saved}", "bfloat16") == "float32", "it brings its own"


def test_a_saved_model_without_an_encoder_is_scored_too(tmp_path):
    saved = WordsClassifier(["sports", "money"], min_df=1).fit(TEXTS[:2], ["sports", "money"]).save(tmp_path / "model")
    assert computed_dtype(f"saved:{saved}", "float32") == "float32"
    assert open_model(f"saved:{saved}").scorer.scores(TEXTS, labelspace.load(saved).label_space_).shape == (3, 2)


def test_a_saved_model_scores_as_itself_with_what_labels_are_not_and_long_texts_in_windows(
    tiny_encoder_folder, tmp_path, monkeypatch
):
    from labelspace.classify import anchors

    space = LabelSpace.from_dict(
        {
            "name": "desk",
            "labels": {
                "sports": {"descriptions": ["Results of matches."], "not": ["A film about a match."]},
                "money": ["Banks."],
            },
            "outside": ["Weather."],
        }
    )
    clf = ZeroShotClassifier(
        space, {"name": tiny_encoder_folder, "dtype": "float32"}, anchor="both", long_texts="windows"
    ).fit()
    folder = clf.save(tmp_path / "model")
    texts = [*TEXTS, "a film about the match", "prices rise and the bank says so " * 60]
    expected = clf.scores(texts, space)
    assert (expected != clf.set_params(long_texts="cut").scores(texts, space)).any()
    other = LabelSpace.from_dict({"labels": {"war": {"not": ["A film."]}, "peace": []}})
    of_other = clf.set_params(long_texts="windows").scores(texts, other)
    spaces = []
    encode_labels = anchors.encode_labels
    monkeypatch.setattr(
        anchors, "encode_labels", lambda encoder, space: spaces.append(space) or encode_labels(encoder, space)
    )
    model = open_model(f"saved:{folder}")
    assert np.array_equal(model.scorer.scores(texts, space), expected)
    for _ in range(2):
        assert np.array_equal(model.scorer.scores(texts, other), of_other)
    assert spaces == [other], "labels of another space are encoded once"


def test_a_saved_model_trained_on_labels_scores_with_what_it_learnt(tiny_encoder_folder, tmp_path):
    encoder = Encoder(tiny_encoder_folder, dtype="float32")
    texts, y = ["red one", "blue two"] * 12, [SPACE.names[0], SPACE.names[1]] * 12
    few = {"epochs": 1, "description_steps": 0}
    for clf in (
        labelspace.LaConClassifier(SPACE, encoder, **few),
        labelspace.LaConClassifier(SPACE, encoder, **few, config={"objective": "cross-entropy"}),
        labelspace.UncertaintyClassifier(SPACE, encoder, epochs=1, cache=None),
    ):
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", LabelSpaceWarning)
            clf.fit(texts, y)
        folder = clf.save(tmp_path / "model")
        opened = open_model(f"saved:{folder}")
        assert np.array_equal(opened.scorer.scores(TEXTS, SPACE), labelspace.load(folder).scores(TEXTS, SPACE))
    pairs = labelspace.LaConClassifier(encoder=encoder, epochs=1).fit(list(zip(texts, texts, strict=True)), y)
    with pytest.raises(ConfigError, match="was fitted on pairs of texts, and the benchmark has single ones"):
        open_model(f"saved:{pairs.save(tmp_path / 'pairs')}")


def test_a_saved_model_with_code_is_opened_only_if_allowed(own_code_folder, tmp_path):
    encoder = Encoder(own_code_folder, dtype="float32", trust_remote_code=True)
    folder = labelspace.ZeroShotClassifier(SPACE, encoder).fit().save(tmp_path / "model")
    with pytest.raises(RemoteCodeError, match="trust_remote_code=True"):
        open_model(f"saved:{folder}")
    opened = open_model(f"saved:{folder}", trust_remote_code=True)
    assert opened.scorer.scores(TEXTS, SPACE).shape == (len(TEXTS), len(SPACE))


def test_different_weights_have_different_revisions(tiny_encoder_folder, tmp_path):
    folder = shutil.copytree(tiny_encoder_folder, tmp_path / "model")
    assert weights_revision(folder) == weights_revision(tiny_encoder_folder)
    with (folder / "model.safetensors").open("ab") as handle:
        handle.write(b"x")
    assert weights_revision(folder) != weights_revision(tiny_encoder_folder)
    assert weights_revision(tmp_path / "x" / "snapshots" / "0a1b") == "0a1b"
    one_file = tmp_path / "model.gguf"
    one_file.write_bytes(b"x")
    before = weights_revision(one_file)
    one_file.write_bytes(b"other")
    assert before.startswith("sha256:")
    assert weights_revision(one_file) != before
    (tmp_path / "empty").mkdir()
    assert weights_revision(tmp_path / "empty") is None
    assert ModelSpec.parse("nli:some/model").folder_revision() is None


def test_a_model_of_other_settings_has_another_revision(saved, tmp_path):
    folder = shutil.copytree(saved, tmp_path / "model")
    seen = [model_revision(folder)]
    assert seen == [model_revision(saved)], "wherever the folder lies"
    header = json.loads((folder / "labelspace.json").read_text())
    (folder / "labelspace.json").write_text(json.dumps({**header, "labelspace": "99", "versions": {}}))
    for name, key in (("config.json", "transformers_version"), ("config_sentence_transformers.json", "__version__")):
        told = json.loads((folder / name).read_text())
        (folder / name).write_text(json.dumps({**told, key: "99"}))
    assert model_revision(folder) == seen[0], "whatever wrote it"
    parameters = {**header["parameters"], "anchor": "verbalizer"}
    (folder / "labelspace.json").write_text(json.dumps({**header, "parameters": parameters}))
    seen.append(model_revision(folder))
    pooling = folder / "1_Pooling" / "config.json"
    pooling.write_text(pooling.read_text().replace("mean", "cls"))
    seen.append(model_revision(folder))
    assert len(set(seen)) == 3
    assert {each.split("+")[0] for each in seen} == {weights_revision(saved)}
    shutil.move(folder, tmp_path / "snapshots" / "0a1b")
    assert model_revision(tmp_path / "snapshots" / "0a1b") == "0a1b"


def test_the_revision_of_a_language_model_is_that_of_its_own_file(tmp_path):
    for name in ("one.gguf", "two.gguf"):
        (tmp_path / name).write_text(name)
    one = ModelSpec.parse(f"llm:{tmp_path}#one.gguf").folder_revision()
    assert (
        one
        == ModelSpec.parse(f"llm:{tmp_path / 'one.gguf'}").folder_revision()
        == model_revision(tmp_path / "one.gguf")
    )
    assert one != ModelSpec.parse(f"llm:{tmp_path}#two.gguf").folder_revision()
    (tmp_path / "one.gguf").write_text("other weights")
    assert one != ModelSpec.parse(f"llm:{tmp_path / 'one.gguf'}").folder_revision()


@pytest.mark.parametrize(
    ("kind", "family"), [("nli", "EntailmentScorer"), ("reranker", "RerankerScorer"), ("llm", "LLMScorer")]
)
def test_the_families_are_opened_with_the_options_given(kind, family, monkeypatch, tiny_encoder_folder):
    import labelspace.families

    given = {}

    class Stand:
        parameters = 7
        weights = tiny_encoder_folder

        def __init__(self, name, **options):
            given.update(options, name=name)

        def describe(self):
            return {"dtype": "float32"}

    monkeypatch.setattr(labelspace.families, family, Stand, raising=False)
    text = f"{kind}:some/model" + ("" if kind == "nli" else "#x.gguf")
    model = open_model(text, dtype="float32", device="cpu", offline=True, token_budget=64)
    assert (model.spec, model.family, model.parameters) == (text, kind, 7)
    assert model.revision == model_revision(tiny_encoder_folder), "also where the name is one of the hub"
    own = {} if kind == "nli" else {"gguf_file": "x.gguf"}
    options = {"dtype": "float32", "device": "cpu", "offline": True, "token_budget": 64, "revision": None}
    assert given == {"name": "some/model", "trust_remote_code": False, **options, **own}


def test_a_missing_model_and_an_invalid_option_are_refused(monkeypatch):
    with pytest.raises(EncoderError, match="nobody/nothing"):
        open_model("embedding:nobody/nothing", offline=True)
    with pytest.raises(ConfigError, match="dtype must be one of"):
        computed_dtype("nli:x", "float16")


def test_families_are_those_of_the_published_models():
    assert tuple(FAMILIES_OF_MODELS) == (*MODEL_FAMILIES, "custom"), "the last is for models that somebody brings"
