"""Run the fast tests on the oldest versions that `pyproject.toml` allows, in a separate environment.

    python tests/oldest.py FOLDER

The lowest versions for the package and its extras are installed. Torch of that age is a CUDA build of several GB.
"""

import re
import subprocess
import sys
import tomllib
from pathlib import Path

ROOT = Path(__file__).parents[1]
# Not export, which needs a newer torch.
EXTRAS = ("plot", "lora", "excel", "geometry", "openai", "demo", "bench", "serve", "tracking")
# Imported by the tests. Left out are checks that need current tools (style, layers, packaging) or current clients (the
# service's protocols).
RUNNERS = ("beartype", "hypothesis", "ipython", "optuna", "pandas", "polars", "psutil", "pytest", "pytest-xdist")
RUNNERS += ("tensorboard",)
LEFT_OUT = (
    *(f"contracts/test_{name}.py" for name in ("layers", "guards")),
    *(f"serve/test_{name}.py" for name in ("doors", "fuzz", "open_inference", "openai", "typesafe")),
    "classify/test_exporting.py",
    "encoders/test_plain.py",  # older transformers save tiny encoders that only they read: weights named otherwise
)
# These compare with files that current versions made: older transformers name weights of BERT otherwise when they save,
# and older scipy differs in the last digit of a test statistic.
MADE_BY_CURRENT = (
    "tests/encoders/test_tiny_models.py::test_the_committed_bert_is_what_the_script_makes",
    "tests/benchmarks/test_study.py::test_the_tables_of_the_docs_match_the_results",
    "tests/contracts/test_docs.py::test_every_python_block_of_a_page_runs[serving.md]",  # a client of today
)
# Old releases use features that other packages have since deprecated.
QUIET = ("-W", "ignore::DeprecationWarning", "-W", "ignore::FutureWarning")


def floors() -> dict[str, str]:
    """Return the oldest allowed version of each required package, by name."""
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    extras = project["optional-dependencies"]
    given = [*project["dependencies"], *(one for extra in EXTRAS for one in extras[extra])]
    found = (re.match(r"([\w.-]+)\s*[>=]=\s*([\w.]+)", one) for one in given if not one.startswith("labelspace"))
    return {match[1]: match[2] for match in found if match}


def runners() -> list[str]:
    """Return what else the tests need, in any version that is compatible with those."""
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    return [one for one in project["optional-dependencies"]["dev"] if re.split(r"[<>=\[]", one)[0] in RUNNERS]


def main(folder: Path) -> int:
    """Create the environment if it is missing, and run the tests in it."""
    python = folder / "bin" / "python"
    if not (folder / ".ready").exists():
        subprocess.run([sys.executable, "-m", "venv", folder], check=True)
        oldest = [f"{name}=={version}" for name, version in floors().items()]
        pip = [python, "-m", "pip", "install", "--quiet"]
        subprocess.run([*pip, *runners(), *oldest], check=True)
        subprocess.run([*pip, "--no-deps", "--editable", ROOT], check=True)
        (folder / ".ready").touch()
    tests = ["-m", "pytest", "-q", "-n", "2", "-p", "no:cacheprovider", "-m", "not slow", "tests", "src"]
    left_out = [f"--ignore=tests/{name}" for name in LEFT_OUT]
    left_out += [f"--deselect={test}" for test in MADE_BY_CURRENT]
    return subprocess.run([python, *tests, *QUIET, *left_out, "--doctest-modules"], cwd=ROOT, check=False).returncode


if __name__ == "__main__":
    raise SystemExit(main(Path(sys.argv[1]).absolute()))
