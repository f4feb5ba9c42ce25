"""Rules on source code, read from its syntax: what the contract tests and the guards on them share."""

import ast
import builtins
import functools
import importlib
import inspect
import pkgutil
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import labelspace

ROOT = Path(__file__).parents[2]
SRC = ROOT / "src" / "labelspace"

BUILTIN_ERRORS = {
    name for name, thing in vars(builtins).items() if inspect.isclass(thing) and issubclass(thing, Exception)
}
SECTIONS = ("Paper:", "Args:", "Returns:", "Raises:", "Example:", "See also:", "Reference:")
OPTIONAL_SECTIONS = {"See also:"}


def python_files(folder: Path = SRC) -> list[Path]:
    """Every Python file below a folder."""
    return sorted(folder.rglob("*.py"))


@functools.cache
def public_folders() -> list[Any]:
    """The package, and every folder of it that lists what it offers."""
    found = pkgutil.walk_packages(labelspace.__path__, "labelspace.")
    folders = [importlib.import_module(info.name) for info in found if info.ispkg]
    return [labelspace, *(folder for folder in folders if hasattr(folder, "__all__"))]


def violations(rule: Callable[[Path], list[str]], *folders: Path) -> list[str]:
    """Everywhere in these folders, or else in the package, that a rule is broken: `file:line what`."""
    return [found for folder in folders or (SRC,) for path in python_files(folder) for found in rule(path)]


def trusts_remote_code(path: Path) -> list[str]:
    """Where a file lets a stranger's code run unasked; pickles and `eval` are ruff's, in pyproject.toml."""
    found = []
    for node in ast.walk(_tree(path)):
        if isinstance(node, ast.Call):
            for keyword in node.keywords:
                if keyword.arg in ("trust_remote_code", "allow_pickle") and _is_true(keyword.value):
                    found.append(_at(path, node, f"passes {keyword.arg}=True"))
        for name, default in _defaults(node):
            if name == "trust_remote_code" and not _is_false(default):
                found.append(_at(path, node, "trusts remote code by default"))
    return found


def foreign_raises(path: Path) -> list[str]:
    """Where a file raises a built-in error in place of one of the error tree; `__getattr__` has to."""
    tree = _tree(path)
    lookups = [node for node in ast.walk(tree) if isinstance(node, ast.FunctionDef) and node.name == "__getattr__"]
    allowed = {part for function in lookups for part in ast.walk(function)}
    return [
        _at(path, node, f"raises {name}")
        for node in ast.walk(tree)
        if isinstance(node, ast.Raise) and (name := _raised(node)) in BUILTIN_ERRORS
        if not (name == "AttributeError" and node in allowed)
    ]


def asserts_on_arguments(path: Path) -> list[str]:
    """Asserts that look at an argument of their function: that is checking input, which `python -O` would drop."""
    found = []
    for function in ast.walk(_tree(path)):
        if not isinstance(function, (ast.FunctionDef, ast.AsyncFunctionDef)):
            continue
        every = [*function.args.posonlyargs, *function.args.args, *function.args.kwonlyargs]
        arguments = {argument.arg for argument in every} - {"self", "cls"}
        for node in ast.walk(function):
            if isinstance(node, ast.Assert):
                looked_at = {part.id for part in ast.walk(node.test) if isinstance(part, ast.Name)} & arguments
                found += [_at(path, node, f"asserts on the argument {name}") for name in sorted(looked_at)]
    return found


def messages_of_several_lines(path: Path) -> list[str]:
    """Where an error is raised with a line break written into its message."""
    return [
        _at(path, node, "the message has a line break")
        for node in ast.walk(_tree(path))
        if isinstance(node, ast.Raise) and isinstance(node.exc, ast.Call)
        for argument in node.exc.args
        for part in ast.walk(argument)
        if isinstance(part, ast.Constant) and isinstance(part.value, str) and "\n" in part.value
    ]


def undocumented_fields(path: Path, class_name: str) -> list[str]:
    """Fields of a dataclass without a docstring right under them."""
    body = next(node for node in _tree(path).body if isinstance(node, ast.ClassDef) and node.name == class_name).body
    fields = [(i, node) for i, node in enumerate(body) if isinstance(node, ast.AnnAssign)]
    return [
        node.target.id
        for i, node in fields
        if isinstance(node.target, ast.Name) and not (i + 1 < len(body) and _is_text(body[i + 1]))
    ]


def docstring_problems(function: Any, *, formula: bool = True) -> list[str]:
    """How a formula's docstring departs from the fixed order of its sections.

    One line, formula, Paper, Args, Returns, Raises, Example, See also (may be left out), Reference. A helper without
    a formula of its own has neither that nor Paper and Reference.
    """
    text = inspect.getdoc(function) or ""
    lines = text.splitlines()
    problems = []
    if not lines or not lines[0].endswith(".") or len(lines) < 2 or lines[1]:
        problems.append("does not begin with one line that is a sentence")
    places = {".. math::": text.find(".. math::")} if formula else {}
    for section in SECTIONS:
        if not formula and section in ("Paper:", "Reference:"):
            continue
        at = next((i for i, line in enumerate(lines) if line == section or line.startswith(f"{section} ")), -1)
        if at < 0 and section in OPTIONAL_SECTIONS:
            continue
        places[section] = -1 if at < 0 else sum(len(line) + 1 for line in lines[:at])
    problems += [f"lacks {section}" for section, place in places.items() if place < 0]
    present = [place for place in places.values() if place >= 0]
    if present != sorted(present):
        problems.append("has its sections in another order")
    if ">>>" not in text:
        problems.append("has no example that runs")
    return problems


def undocumented(module: Any) -> list[str]:
    """Public classes and functions of a module, and public methods of those classes, without a docstring."""
    gone = []
    for name in module.__all__:
        thing = getattr(module, name)
        if not (inspect.isclass(thing) or inspect.isfunction(thing)):
            continue
        if not (thing.__doc__ or "").strip():
            gone.append(f"{module.__name__}.{name}")
        for part, value in vars(thing).items() if inspect.isclass(thing) else ():
            function = value.fget if isinstance(value, property) else getattr(value, "__func__", value)
            if inspect.isfunction(function) and not part.startswith("_") and not (function.__doc__ or "").strip():
                gone.append(f"{module.__name__}.{name}.{part}")
    return gone


@functools.cache
def _tree(path: Path) -> ast.Module:
    return ast.parse(path.read_text(encoding="utf-8"), filename=str(path))


def _at(path: Path, node: ast.AST, what: str) -> str:
    place = path.relative_to(ROOT) if path.is_relative_to(ROOT) else path.name
    return f"{place}:{getattr(node, 'lineno', 0)} {what}"


def _dotted(node: ast.AST) -> str:
    if isinstance(node, ast.Name):
        return node.id
    return f"{_dotted(node.value)}.{node.attr}" if isinstance(node, ast.Attribute) else ""


def _raised(node: ast.Raise) -> str:
    return _dotted(node.exc.func if isinstance(node.exc, ast.Call) else node.exc) if node.exc else ""


def _defaults(node: ast.AST) -> Iterator[tuple[str, ast.expr]]:
    if isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef, ast.Lambda)):
        positional = [*node.args.posonlyargs, *node.args.args]
        for argument, default in zip(reversed(positional), reversed(node.args.defaults), strict=False):
            yield argument.arg, default
        for argument, given in zip(node.args.kwonlyargs, node.args.kw_defaults, strict=True):
            if given is not None:
                yield argument.arg, given
    if isinstance(node, ast.AnnAssign) and isinstance(node.target, ast.Name) and node.value is not None:
        yield node.target.id, node.value


def _is_true(node: ast.expr) -> bool:
    return isinstance(node, ast.Constant) and node.value is True


def _is_false(node: ast.expr) -> bool:
    return isinstance(node, ast.Constant) and node.value is False


def _is_text(node: ast.stmt) -> bool:
    return isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant) and isinstance(node.value.value, str)
