"""Opening or overwriting a folder of another kind: one line names the kind and how to open it."""

import json
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner

from labelspace import Encoder, LabelSpace, ZeroShotClassifier, load, prefinetune
from labelspace.bench.models import open_model
from labelspace.cli.app import app
from labelspace.errors import ModelFolderError, OutputError
from labelspace.families import EntailmentScorer, LLMScorer, RerankerScorer
from labelspace.header import HEADER
from labelspace.training.checkpoint import Checkpoint, Place
from labelspace.training.nli import NLIModel
from old_folders import old_folder

SPACE = LabelSpace.from_dict({"labels": [{"name": "sports"}, {"name": "money"}]})
CLASSIFIER = r"holds a classifier, not .*; open it with labelspace\.load\.$"
NLI = r"holds an NLI cross-encoder, not .*; open it with labelspace\.families\.EntailmentScorer, or .* as nli:"
ENCODER = r"holds a pre-finetuned encoder, not .*; open it with labelspace\.Encoder, or .* --encoder "
UNFINISHED = r"holds an unfinished training, not .*--resume\.$"
HOLDS = {
    "classifier": CLASSIFIER,
    "old classifier": CLASSIFIER,
    "nli": NLI,
    "old nli": NLI,
    "encoder": ENCODER,
    "old encoder": ENCODER,
    "checkpoint": UNFINISHED,
    "unfinished": UNFINISHED,
    "sentence-transformers": r"holds a sentence-transformers encoder, not .*; open it with labelspace\.Encoder, or ",
    "sequence-classification": r"holds a transformers model for sequence classification, not .*EntailmentScorer if",
    "language model": r"holds a language model, not .*LLMScorer\.$",
    "transformers": r"holds a transformers model, not .*; open it with labelspace\.Encoder, or ",
}


@pytest.fixture(scope="module")
def folders(tmp_path_factory: pytest.TempPathFactory, tiny_encoder_folder: Path) -> dict[str, Path]:
    """Return one folder of each kind; do not change them."""
    place = tmp_path_factory.mktemp("folders")
    encoder = Encoder(tiny_encoder_folder, dtype="float32", device="cpu")
    made = {
        "classifier": ZeroShotClassifier(SPACE, encoder).fit().save(place / "classifier-new"),
        "nli": NLIModel.from_encoder(tiny_encoder_folder, "binary", 0, dtype="float32").save(place / "nli-new"),
        "encoder": pre_finetuned(encoder).save(place / "encoder-new"),
        "old classifier": old_folder("description", place),
        "old nli": old_folder("nli", place),
        "old encoder": old_folder("encoder", place),
        "sentence-transformers": tiny_encoder_folder,
    }
    made["unfinished"] = place / "out"
    made["checkpoint"] = made["unfinished"] / "checkpoint"
    Place(made["checkpoint"], {"config": {}}).write(unfinished(), total_steps=2)
    for name, architecture in {
        "sequence-classification": "BertForSequenceClassification",
        "language model": "LlamaForCausalLM",
        "transformers": "BertForMaskedLM",
    }.items():
        made[name] = shutil.copytree(tiny_encoder_folder, place / name)
        (made[name] / "modules.json").unlink()
        config = json.loads((made[name] / "config.json").read_text(encoding="utf-8"))
        config["architectures"] = [architecture]
        (made[name] / "config.json").write_text(json.dumps(config), encoding="utf-8")
    return made


def pre_finetuned(encoder: Encoder) -> Any:
    import pyarrow as pa

    from labelspace.config import PrefinetuneConfig
    from labelspace.corpus import open_pairs

    rows = pa.table({"anchor": [f"the team {n}" for n in range(6)], "positive": ["sports"] * 6})
    config = PrefinetuneConfig(epochs=1, regularizer_weight=0)
    return prefinetune(open_pairs(rows, name="news"), encoder, config)


def unfinished() -> Checkpoint:
    look = {"step": 1, "loss": 1.0}
    return Checkpoint(step=1, losses=[1.0], looks=[look], best_step=1, seconds=1.0, weights={}, best={}, optimizer={})


def refused(opener: Callable[[Path], object], folder: Path, said: str) -> None:
    with pytest.raises(ModelFolderError, match=said) as error:
        opener(folder)
    assert str(folder) in str(error.value)
    assert "\n" not in str(error.value)
    assert "damaged" not in str(error.value)


@pytest.mark.parametrize("kind", [kind for kind in HOLDS if "classifier" not in kind])
def test_load_names_the_kind_of_another_folder(kind: str, folders: dict[str, Path]):
    refused(load, folders[kind], HOLDS[kind])


@pytest.mark.parametrize("kind", [kind for kind in HOLDS if "nli" not in kind])
def test_an_nli_model_names_the_kind_of_another_folder(kind: str, folders: dict[str, Path]):
    refused(NLIModel.load, folders[kind], HOLDS[kind])


@pytest.mark.parametrize("scorer", [EntailmentScorer, RerankerScorer, LLMScorer])
@pytest.mark.parametrize("kind", ["classifier", "old classifier", "encoder", "old encoder", "checkpoint", "unfinished"])
def test_a_scorer_names_the_kind_of_another_folder(scorer: Any, kind: str, folders: dict[str, Path]):
    refused(scorer, folders[kind], HOLDS[kind])


@pytest.mark.parametrize("kind", ["nli", "old nli", "checkpoint", "unfinished"])
def test_an_encoder_names_the_kind_of_a_folder_without_one(kind: str, folders: dict[str, Path]):
    refused(Encoder, folders[kind], HOLDS[kind])


@pytest.mark.parametrize(
    ("model", "kind"),
    [("saved", "nli"), ("saved", "encoder"), ("saved", "checkpoint"), ("nli", "classifier"), ("embedding", "nli")],
)
def test_the_benchmark_names_the_kind_of_another_folder(model: str, kind: str, folders: dict[str, Path]):
    refused(lambda folder: open_model(f"{model}:{folder}"), folders[kind], HOLDS[kind])


@pytest.mark.parametrize("kind", ["encoder", "old encoder"])
def test_the_benchmark_opens_a_bare_pre_finetuned_folder_as_an_encoder(kind: str, folders: dict[str, Path]):
    assert open_model(str(folders[kind]), dtype="float32").family == "embedding"


@pytest.mark.parametrize("kind", ["classifier", "encoder", "old encoder"])
def test_a_folder_with_an_encoder_opens_as_an_encoder(kind: str, folders: dict[str, Path]):
    assert Encoder(folders[kind], dtype="float32").dimension == 32


COMMANDS = {
    "evaluate": ("evaluate", "MODEL", "ROWS"),
    "predict": ("predict", "MODEL", "ROWS", "OUT"),
    "explain": ("explain", "MODEL", "a text"),
    "figures": ("figures", "MODEL", "ROWS", "--out", "OUT"),
}


@pytest.mark.parametrize("kind", ["nli", "encoder", "sentence-transformers"])
@pytest.mark.parametrize("command", COMMANDS)
def test_commands_print_one_line_and_exit_with_2(command: str, kind: str, folders: dict[str, Path], tmp_path: Path):
    rows = tmp_path / "rows.csv"
    rows.write_text("text,label\nthe team won,sports\n", encoding="utf-8")
    words = {"MODEL": str(folders[kind]), "ROWS": str(rows), "OUT": str(tmp_path / "out.csv")}
    told = CliRunner().invoke(app, [words.get(word, word) for word in COMMANDS[command]])
    assert told.exit_code == 2
    (line,) = [line for line in told.stderr.splitlines() if "holds" in line]
    with pytest.raises(ModelFolderError) as error:
        load(folders[kind])
    assert str(error.value) in line
    assert told.stdout == ""
    assert "Traceback" not in told.stderr


def test_fit_on_an_nli_model_as_its_encoder_is_refused(folders: dict[str, Path], tmp_path: Path):
    labels = SPACE.to_file(tmp_path / "labels.yaml") or tmp_path / "labels.yaml"
    words = ["fit", str(labels), "--encoder", str(folders["nli"]), "--out", str(tmp_path / "out")]
    told = CliRunner().invoke(app, words)
    assert told.exit_code == 2
    assert "holds an NLI cross-encoder, not an encoder" in told.stderr


@pytest.fixture
def savers(tiny_encoder_folder: Path) -> dict[str, Callable[[Path], object]]:
    """Return a function that writes each kind of folder."""
    encoder = Encoder(tiny_encoder_folder, dtype="float32", device="cpu")
    return {
        "classifier": ZeroShotClassifier(SPACE, encoder).fit().save,
        "nli": NLIModel.from_encoder(tiny_encoder_folder, "binary", 0, dtype="float32").save,
        "encoder": pre_finetuned(encoder).save,
    }


@pytest.mark.parametrize("there", ["classifier", "nli", "encoder", "old classifier", "old nli", "old encoder"])
def test_saving_replaces_only_a_folder_of_its_own_kind(
    there: str, folders: dict[str, Path], savers: dict[str, Callable[[Path], object]], tmp_path: Path
):
    folder = shutil.copytree(folders[there], tmp_path / "model")
    before = {path: path.read_bytes() for path in folder.rglob("*") if path.is_file()}
    own = there.removeprefix("old ")
    for kind in savers.keys() - {own}:
        with pytest.raises(OutputError, match="give another name, so that nothing is lost"):
            savers[kind](folder)
    assert {path: path.read_bytes() for path in folder.rglob("*") if path.is_file()} == before
    savers[own](folder)
    assert json.loads((folder / HEADER).read_text(encoding="utf-8"))["kind"]


def test_every_kind_of_folder_has_the_same_first_keys(folders: dict[str, Path]):
    headers = [
        json.loads((folders[kind] / HEADER).read_text(encoding="utf-8")) for kind in ("classifier", "nli", "encoder")
    ]
    assert len({header["kind"] for header in headers}) == len(headers)
    for header in headers:
        assert list(header)[:4] == ["format", "kind", "labelspace", "versions"]
        assert list(header)[-1] == "files"
