"""The fast tests on the oldest versions that `pyproject.toml` promises, in an environment of their own.

    python tests/oldest.py FOLDER

The floors of the package and of its extras are installed; what only development needs is as in `constraints.txt`.
"""

import re
import subprocess
import sys
import tomllib
from pathlib import Path

ROOT = Path(__file__).parents[1]
EXTRAS = ("plot", "lora", "geometry", "demo", "bench")


def floors() -> dict[str, str]:
    """Return the oldest version of each package that the library stands on, by name."""
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    extras = project["optional-dependencies"]
    given = [*project["dependencies"], *(one for extra in EXTRAS for one in extras[extra])]
    found = (re.match(r"([\w.-]+)\s*[>=]=\s*([\w.]+)", one) for one in given if not one.startswith("labelspace"))
    return {match[1]: match[2] for match in found if match}


def development() -> list[str]:
    """Return what the tests need beside it, with the versions of `constraints.txt`."""
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    wanted = {re.split(r"[<>=\[]", one)[0] for one in project["optional-dependencies"]["dev"]} - {"labelspace"}
    pinned = (
        line.split("==") for line in (ROOT / "constraints.txt").read_text(encoding="utf-8").split() if "==" in line
    )
    return [f"{name}=={version}" for name, version in pinned if name in wanted]


def main(folder: Path) -> int:
    """Make the environment where it is not there, and run the tests in it."""
    python = folder / "bin" / "python"
    if not (folder / ".ready").exists():
        subprocess.run([sys.executable, "-m", "venv", folder], check=True)
        oldest = [f"{name}=={version}" for name, version in floors().items()]
        pip = [python, "-m", "pip", "install", "--quiet"]
        # The tests' own packages may bring newer ones of the library's; the floors come last, and win.
        subprocess.run([*pip, *oldest], check=True)
        subprocess.run([*pip, *development(), *oldest], check=True)
        subprocess.run([*pip, "--no-deps", "--editable", ROOT], check=True)
        (folder / ".ready").touch()
    tests = ["-m", "pytest", "-q", "-n", "2", "-p", "no:cacheprovider", "-m", "not slow", "tests", "src"]
    return subprocess.run([python, *tests, "--doctest-modules"], cwd=ROOT, check=False).returncode


if __name__ == "__main__":
    raise SystemExit(main(Path(sys.argv[1]).absolute()))
