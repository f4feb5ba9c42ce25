"""Importing is cheap and has no side effects: measured in a fresh process, by modules instead of seconds."""

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from labelspace import DescriptionClassifier

HEAVY = [
    "torch",
    "numpy",
    "transformers",
    "sentence_transformers",
    "sklearn",
    "pyarrow",
    "matplotlib",
    "openai",
    "openpyxl",
    "xlsxwriter",
    "pandas",
    "rich",
    "typer",
]

WATCH = """
import json, logging, os, sys, warnings

# sklearn and torch set these for themselves.
THEIRS = {"KMP_DUPLICATE_LIB_OK", "KMP_INIT_AT_FORK", "TORCHINDUCTOR_CACHE_DIR"}

def state():
    root = logging.getLogger()
    return {
        "environment": {name: value for name, value in os.environ.items() if name not in THEIRS},
        "filters": [str(entry) for entry in warnings.filters],
        "logging": [root.level, len(root.handlers), logging.raiseExceptions, logging.root.manager.disable],
        "hooks": [str(sys.excepthook), str(sys.displayhook)],
    }

before = state()
for name in sys.argv[1:]:
    __import__(name)
after = state()
changed = [key for key in before if before[key] != after[key]]
print(json.dumps({"modules": sorted(sys.modules), "changed": changed}))
"""

STORE = Path(__file__).parents[2] / "benchmarks" / "results" / "btzsc_paper_rows.jsonl"

HELP = """
import sys
from labelspace.cli import main
sys.argv = ["labelspace", *sys.argv[1:]]
try:
    main()
except SystemExit as stop:
    code = stop.code
loaded = sorted({name.partition(".")[0] for name in sys.modules})
print("\\nLOADED", *loaded, "CODE", code)
"""


def in_a_fresh_process(code: str, *arguments: str) -> subprocess.CompletedProcess[str]:
    """Run code with warnings as errors, in an environment without a terminal."""
    environment = {**os.environ, "COLUMNS": "100"}
    return subprocess.run(
        [sys.executable, "-W", "error", "-c", code, *arguments],
        capture_output=True,
        text=True,
        check=False,
        env=environment,
        timeout=120,
    )


LIGHT = ["labelspace", "labelspace.errors", "labelspace.config", "labelspace.labels", "labelspace.encoders.resolve"]


def test_importing_loads_nothing_heavy_and_changes_and_prints_nothing():
    done = in_a_fresh_process(WATCH, *LIGHT)
    assert done.returncode == 0, done.stderr
    assert done.stderr == ""
    lines = done.stdout.splitlines()
    assert len(lines) == 1, "something was printed"
    seen = json.loads(lines[0])
    assert [name for name in HEAVY if name in seen["modules"]] == []
    assert seen["changed"] == []


def test_importing_labelspace_loads_no_submodule():
    seen = json.loads(in_a_fresh_process(WATCH, "labelspace").stdout)
    own = [name for name in seen["modules"] if name.startswith("labelspace")]
    assert own == ["labelspace", "labelspace.late", "labelspace.version"]


@pytest.mark.slow
def test_using_the_library_leaves_environment_and_logging_alone():
    done = in_a_fresh_process(WATCH, "labelspace.classify.description")
    seen = json.loads(done.stdout)
    assert "torch" in seen["modules"]
    assert set(seen["changed"]) <= {"filters"}, "numpy and torch set filters of their own, and nothing else changes"


@pytest.mark.parametrize(
    "arguments",
    [
        ["--help"],
        ["--version"],
        ["fit", "--help"],
        ["predict", "--help"],
        ["bench", "tasks", "--data", "."],
        ["bench", "table", "--store", str(STORE)],
    ],
)
@pytest.mark.slow
def test_help_and_lists_load_no_torch(arguments):
    done = in_a_fresh_process(HELP, *arguments)
    assert done.returncode == 0, done.stderr
    words = done.stdout.split()
    loaded = words[words.index("LOADED") :]
    assert loaded[-1] == "0"
    assert not {"torch", "transformers", "sentence_transformers", "sklearn"} & set(loaded)


@pytest.mark.slow
def test_a_trained_model_answers_without_sentence_transformers(tmp_path):
    """Its import takes longer than the answer."""
    labels, encoder = {"a": ["one"], "b": ["two"]}, str(Path(__file__).parents[1] / "data" / "tiny-bert")
    DescriptionClassifier(labels, encoder, max_steps=1, seed=0).fit().save(tmp_path / "model")
    asked = "import sys, labelspace; labelspace.load(sys.argv[1]).predict(['x']); print(*sys.modules)"
    done = subprocess.run([sys.executable, "-c", asked, tmp_path / "model"], capture_output=True, text=True)
    assert "torch" in done.stdout.split()
    assert "sentence_transformers" not in done.stdout.split()


def test_wrong_use_is_reported_without_torch(tmp_path):
    missing = tmp_path / "missing.yaml"
    done = in_a_fresh_process(HELP, "fit", str(missing), "--out", str(tmp_path / "model"))
    words = done.stdout.split()
    loaded = words[words.index("LOADED") :]
    assert loaded[-1] == "2"
    assert "torch" not in loaded
    assert len(done.stderr.strip().splitlines()) == 1


# Run a command where importing torch, or what needs it, fails.
WITHOUT_TORCH = """
import sys

class Missing:
    def find_spec(self, name, path=None, target=None):
        if name.partition(".")[0] in ("torch", "transformers", "sentence_transformers", "huggingface_hub"):
            raise ModuleNotFoundError(f"No module named {name!r}", name=name)

sys.meta_path.insert(0, Missing())
from labelspace.cli import main
sys.argv = ["labelspace", *sys.argv[1:]]
main()
"""


@pytest.fixture(scope="module")
def words_model(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A saved model of words that may answer None."""
    from labelspace.classify import WordsClassifier

    texts = [f"the {who} {row}" for who in ("team won", "bank closed") for row in range(30)]
    clf = WordsClassifier(["sports", "money"]).fit(texts, ["sports"] * 30 + ["money"] * 30)
    return clf.set_none(texts).save(tmp_path_factory.mktemp("words") / "model")


@pytest.mark.parametrize(
    "arguments",
    [["predict", "docs.csv"], ["predict", "docs.csv", "out.parquet", "--all-scores"], ["explain", "the bank closed"]],
    ids=["predict", "predict-file", "explain"],
)
@pytest.mark.slow
def test_a_model_of_words_needs_no_torch(arguments, words_model, tmp_path):
    (tmp_path / "docs.csv").write_text("text\nthe bank closed\n", encoding="utf-8")
    command, *rest = [str(tmp_path / word) if "." in word else word for word in arguments]
    done = in_a_fresh_process(WITHOUT_TORCH, command, str(words_model), *rest)
    assert done.returncode == 0, done.stderr
    assert "money" in done.stdout or (tmp_path / "out.parquet").is_file()


def test_a_model_with_an_encoder_says_in_one_line_that_it_needs_torch(tiny_encoder_folder, tmp_path):
    from labelspace import ZeroShotClassifier

    folder = ZeroShotClassifier(["sports", "money"], str(tiny_encoder_folder)).fit().save(tmp_path / "model")
    done = in_a_fresh_process(WITHOUT_TORCH, "explain", str(folder), "a text")
    assert done.returncode == 2
    assert "holds a ZeroShotClassifier, which needs the package 'torch'" in done.stderr
    assert len(done.stderr.strip().splitlines()) == 1


# scikit-learn alone imports for half a second, half of it scipy.stats, and pandas where it is installed.
NOT_IN_THE_FIRST_SECOND = {
    *("torch", "transformers", "sentence_transformers", "huggingface_hub", "tokenizers"),
    *("sklearn", "pandas", "scipy.stats", "scipy.optimize", "scipy.special", "scipy.spatial"),
    *("matplotlib", "datasets", "openai", "openpyxl", "xlsxwriter", "starlette", "uvicorn", "httpx", "rich"),
}
NOT_FOR_HELP = (NOT_IN_THE_FIRST_SECOND | {"numpy", "scipy", "pyarrow"}) - {"rich"}


def imported_by(*arguments: str, stdin: str = "") -> set[str]:
    """Return the modules that a command imports; it must succeed."""
    done = subprocess.run(
        [sys.executable, "-X", "importtime", "-m", "labelspace", *arguments],
        input=stdin,
        capture_output=True,
        text=True,
        check=False,
        timeout=120,
    )
    assert done.returncode == 0, done.stderr
    timed = [line.split("|") for line in done.stderr.splitlines() if line.startswith("import time:")]
    return {parts[-1].strip() for parts in timed}


@pytest.mark.parametrize(
    "arguments",
    [
        ["predict", "MODEL", "-"],
        ["predict", "MODEL", "docs.csv", "--min-probability", "0.1"],
        ["predict", "MODEL", "docs.csv", "out.parquet", "--all-scores"],
        ["predict", "MODEL", "docs.csv", "out.jsonl.gz"],
        ["explain", "MODEL", "the bank closed"],
    ],
    ids=["stdin", "stdout", "parquet", "jsonl", "explain"],
)
@pytest.mark.slow
def test_a_model_of_words_answers_without_a_slow_import(arguments, words_model, tmp_path):
    (tmp_path / "docs.csv").write_text("text\nthe bank closed\n", encoding="utf-8")
    places = {"MODEL": words_model, **{name: tmp_path / name for name in arguments if "." in name and name != "0.1"}}
    found = imported_by(*(str(places.get(word, word)) for word in arguments), stdin="the bank closed\na team won\n")
    assert {"labelspace.classify.by_words", "pyarrow"} <= found
    # pyarrow imports pandas, where it is installed, as soon as it makes a column of Python values.
    allowed = {"pandas"} if any(word.startswith("out.") for word in arguments) else set()
    assert found & NOT_IN_THE_FIRST_SECOND <= allowed


def test_help_imports_no_array_library():
    found = imported_by("--help")
    assert "labelspace.cli.predict" in found
    assert found & NOT_FOR_HELP == set()


@pytest.fixture(scope="module")
def encoder_models(tiny_encoder_folder: Path, tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    """Saved models by anchors on a plain encoder, by their method."""
    from labelspace import DescriptionClassifier, ZeroShotClassifier

    labels = {"labels": {"sports": ["a match", "a team"], "money": ["a bank", "prices"]}}
    made = {
        "zero-shot": ZeroShotClassifier(labels, str(tiny_encoder_folder)),
        "description": DescriptionClassifier(labels, str(tiny_encoder_folder), max_steps=1, learning_rate=1e-3),
    }
    place = tmp_path_factory.mktemp("encoder")
    return {method: clf.fit().save(place / method) for method, clf in made.items()}


@pytest.mark.parametrize(
    ("method", "arguments"),
    [
        ("zero-shot", ["predict", "MODEL", "-"]),
        ("description", ["predict", "MODEL", "-", "--json", "--all-scores"]),
        ("zero-shot", ["predict", "MODEL", "docs.csv", "out.csv"]),
        ("description", ["predict", "MODEL", "docs.csv", "out.parquet", "--top", "2"]),
        ("zero-shot", ["explain", "MODEL", "the bank closed"]),
    ],
    ids=["stdin", "json", "csv", "parquet", "explain"],
)
@pytest.mark.slow
def test_a_model_by_anchors_answers_with_torch_and_a_tokenizer_alone(method, arguments, encoder_models, tmp_path):
    (tmp_path / "docs.csv").write_text("text\nthe bank closed\n", encoding="utf-8")
    places = {"MODEL": encoder_models[method], **{name: tmp_path / name for name in arguments if "." in name}}
    found = imported_by(*(str(places.get(word, word)) for word in arguments), stdin="the bank closed\n")
    assert {"labelspace.classify.by_anchors", "torch", "tokenizers"} <= found
    # pyarrow imports pandas, where it is installed, as soon as it makes a column of Python values.
    allowed = {"torch", "tokenizers"} | ({"pandas"} if any(word.startswith("out.") for word in arguments) else set())
    assert found & NOT_IN_THE_FIRST_SECOND <= allowed
    assert found & {"torch._dynamo", "peft", "openvino", "onnxruntime"} == set()


SERVE = """
import sys
from pathlib import Path
from labelspace.config import ServingConfig
from labelspace.serve.app import make_app
from labelspace.serve.room import open_models
served = open_models([Path(name) for name in sys.argv[1:]], ServingConfig())
make_app(served)
assert all(one.answers(["the bank closed"]).names[0] for one in served)
print(*sorted({name.partition(".")[0] for name in sys.modules}))
"""


@pytest.mark.slow
def test_a_service_of_models_of_words_and_by_anchors_imports_no_scikit_learn(words_model, encoder_models):
    done = in_a_fresh_process(SERVE, str(words_model), *map(str, encoder_models.values()))
    assert done.returncode == 0, done.stderr
    assert {"torch", "starlette"} <= set(done.stdout.split())
    assert not {"sklearn", "transformers", "sentence_transformers", "pandas"} & set(done.stdout.split())
