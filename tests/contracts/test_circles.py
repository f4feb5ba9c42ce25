"""No modules of the package import one another in a circle, be it at the top, for the type checker or in a function."""

import ast
from collections.abc import Iterator
from importlib.util import resolve_name
from pathlib import Path

import pytest

from contracts.source import SRC, nodes_of


def modules_of(package: Path) -> dict[str, Path]:
    """Dotted name -> file of every module of a package."""

    def name(path: Path) -> str:
        parts = path.relative_to(package.parent).with_suffix("").parts
        return ".".join(parts[:-1] if parts[-1] == "__init__" else parts)

    return {name(path): path for path in sorted(package.rglob("*.py"))}


def imports_of(module: str, path: Path, known: dict[str, Path]) -> Iterator[str]:
    """Modules that a file imports anywhere in it."""
    parent = module if path.stem == "__init__" else module.rpartition(".")[0]
    for node in nodes_of(path):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            origin = resolve_name("." * node.level + (node.module or ""), parent)
            for alias in node.names:
                submodule = f"{origin}.{alias.name}"
                yield submodule if submodule in known else origin


def circles(package: Path) -> list[list[str]]:
    """Groups of modules each of which leads to every other."""
    known = modules_of(package)
    imports = {module: set(imports_of(module, path, known)) & known.keys() for module, path in known.items()}
    reached: dict[str, set[str]] = {}
    for module in imports:
        found, ahead = set(), [*imports[module]]
        while ahead:
            step = ahead.pop()
            if step not in found:
                found.add(step)
                ahead += imports[step]
        reached[module] = found
    groups = {frozenset(other for other in reached[module] if module in reached[other]) for module in reached}
    return sorted(sorted(group) for group in groups if group)


def test_no_modules_import_one_another_in_a_circle():
    found = circles(SRC)
    assert found == [], "\n".join(" <-> ".join(group) for group in found)


PLANTED = {
    "at the top": ("import labelspace.two\n", "from labelspace.one import name\n"),
    "for the type checker": (
        "from typing import TYPE_CHECKING\nif TYPE_CHECKING:\n    from labelspace.two import name\n",
        "from labelspace import one\n",
    ),
    "in a function": ("def late():\n    from .two import name\n", "import labelspace.one as one\n"),
    "of itself": ("import labelspace.one\n", ""),
}


@pytest.mark.parametrize("where", PLANTED)
def test_a_planted_circle_is_found(tmp_path, where):
    package = tmp_path / "labelspace"
    package.mkdir()
    for name, text in zip(("__init__", "one", "two"), ("", *PLANTED[where]), strict=True):
        (package / f"{name}.py").write_text(text, encoding="utf-8")
    circle = ["labelspace.one"] if where == "of itself" else ["labelspace.one", "labelspace.two"]
    assert circles(package) == [circle]
