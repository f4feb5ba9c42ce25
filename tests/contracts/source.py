"""Rules on source code, checked on its syntax tree; shared by the contract tests and their guards."""

import ast
import builtins
import dataclasses
import functools
import importlib
import inspect
import pkgutil
import re
import textwrap
from collections.abc import Callable, Iterator
from enum import Enum
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
FORMULAS = ("labelspace.losses", "labelspace.geometry", "labelspace.heads")
# Public in spite of their names, by the manual of namedtuple; and what other libraries offer in no other way.
FOREIGN_PRIVATE = {"_asdict", "_fields", "_replace", "_verify", "_version"}
# Helpers that draw or arrange, and compute no formula of a paper.
HELPERS = {"sample_pairs"}


def python_files(folder: Path = SRC) -> list[Path]:
    """Return every Python file below a folder."""
    return sorted(folder.rglob("*.py"))


@functools.cache
def public_folders() -> list[Any]:
    """Return the package, and every folder of it with an `__all__`."""
    found = pkgutil.walk_packages(labelspace.__path__, "labelspace.")
    folders = [importlib.import_module(info.name) for info in found if info.ispkg]
    return [labelspace, *(folder for folder in folders if hasattr(folder, "__all__"))]


@functools.cache
def nodes_of(path: Path) -> list[ast.AST]:
    """Return every node of a file's syntax tree; every rule reads the same files."""
    return list(ast.walk(ast.parse(path.read_text(encoding="utf-8"), filename=str(path))))


def violations(rule: Callable[[Path], list[str]], *folders: Path) -> list[str]:
    """Return every violation of a rule in these folders, by default in the package, as `file:line what`."""
    return [found for folder in folders or (SRC,) for path in python_files(folder) for found in rule(path)]


def private_of_others(path: Path) -> list[str]:
    """Where a file takes a private name of an object that it does not define."""
    own = {node.name for node in nodes_of(path) if isinstance(node, ast.FunctionDef)}
    attributes = [node for node in nodes_of(path) if isinstance(node, ast.Attribute)]
    own |= {node.attr for node in attributes if isinstance(node.ctx, ast.Store)}
    found = []
    for node in attributes:
        on_itself = isinstance(node.value, ast.Name) and node.value.id in ("self", "cls")
        private = node.attr.startswith("_") and not node.attr.startswith("__")
        if private and not on_itself and node.attr not in own | FOREIGN_PRIVATE:
            found.append(_at(path, node, f"takes {node.attr} of another object"))
    return found


def trusts_remote_code(path: Path) -> list[str]:
    """Return where a file allows remote code by default; ruff handles pickles and `eval`, in pyproject.toml."""
    found = []
    for node in nodes_of(path):
        if isinstance(node, ast.Call):
            for keyword in node.keywords:
                if keyword.arg in ("trust_remote_code", "allow_pickle") and _is_true(keyword.value):
                    found.append(_at(path, node, f"passes {keyword.arg}=True"))
        for name, default in _defaults(node):
            if name == "trust_remote_code" and not _is_false(default):
                found.append(_at(path, node, "trusts remote code by default"))
    return found


def foreign_raises(path: Path) -> list[str]:
    """Return where a file raises a built-in error instead of one of the tree; `__getattr__` may."""
    lookups = [node for node in nodes_of(path) if isinstance(node, ast.FunctionDef) and node.name == "__getattr__"]
    allowed = {part for function in lookups for part in ast.walk(function)}
    return [
        _at(path, node, f"raises {name}")
        for node in nodes_of(path)
        if isinstance(node, ast.Raise) and (name := _raised(node)) in BUILTIN_ERRORS
        if not (name == "AttributeError" and node in allowed)
    ]


def asserts_on_arguments(path: Path) -> list[str]:
    """Return asserts on an argument of their function: they check input, and `python -O` drops them."""
    found = []
    for function in nodes_of(path):
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
    """Return where an error is raised with a line break in its message."""
    return [
        _at(path, node, "the message has a line break")
        for node in nodes_of(path)
        if isinstance(node, ast.Raise) and isinstance(node.exc, ast.Call)
        for argument in node.exc.args
        for part in ast.walk(argument)
        if isinstance(part, ast.Constant) and isinstance(part.value, str) and "\n" in part.value
    ]


def docstring_problems(function: Any, *, formula: bool = True) -> list[str]:
    """Return how a formula's docstring departs from the fixed order of its sections.

    One line, formula, Paper, Args, Returns, Raises, Example, See also (optional), Reference. A helper without a
    formula has no Paper and no Reference either.
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


def public_things() -> list[Any]:
    """Return every class and function in the `__all__` of the package or of a folder."""
    offered = [getattr(folder, name) for folder in public_folders() for name in folder.__all__]
    things = {thing for thing in offered if inspect.isclass(thing) or inspect.isfunction(thing)}
    return sorted(things, key=lambda thing: (thing.__module__, thing.__qualname__))


def docstring_gaps(thing: Any) -> list[str]:
    """Return what is missing from the docstrings of a public class or function.

    function          needs each parameter, the return value, the errors in its body, an example
    formula           the same in a fixed order, with the formula and its source: `docstring_problems`
    class             each parameter, the errors in its `__init__`, an example of its own or of a method
    made by another   the name of that function, in the words "made by `open_table`"
    record            a docstring under each field; a dataclass or a named tuple
    protocol, error, enumeration   nothing more

    All begin with one line that is a sentence. A public method has a docstring; one with `Args:` names every parameter.
    A head has the source of its formula. Code of training and the command line needs no example, unless `labelspace`
    itself exports it.
    """
    text = inspect.cleandoc(vars(thing).get("__doc__") or "") if inspect.isclass(thing) else inspect.getdoc(thing) or ""
    if not text or text.startswith(f"{thing.__name__}("):  # a record without one is given its signature
        return [f"{thing.__module__}.{thing.__qualname__} has no docstring"]
    if not inspect.isclass(thing):
        gaps = _call_gaps(thing, thing, text)
        if thing.__module__.startswith(FORMULAS):
            gaps += docstring_problems(thing, formula=thing.__name__ not in HELPERS)
            gaps += [] if "    ShapeError: " in text else ["lacks ShapeError"]
        elif ">>>" not in text and _needs_example(thing):
            gaps.append("has no example that runs")
    else:
        gaps = _method_gaps(thing)
        if dataclasses.is_dataclass(thing) or hasattr(thing, "_fields"):
            gaps += [f"lacks the field {name}" for name in _bare_fields(thing) if f"    {name}: " not in text]
        elif not (_says_it_in_one_line(thing) or "; made by `" in text):
            gaps += _call_gaps(thing, vars(thing).get("__init__"), text)
            examples = text + "".join(value.__doc__ or "" for value in vars(thing).values() if inspect.isroutine(value))
            if ">>>" not in examples and _needs_example(thing):
                gaps.append("has no example that runs")
        if thing.__module__.startswith("labelspace.heads") and "Reference:" not in text:
            gaps.append("lacks Reference:")
    if not re.match(r".+\.(\n\n|$)", text):
        gaps.append("does not begin with one line that is a sentence")
    return [f"{thing.__module__}.{thing.__qualname__} {gap}" for gap in dict.fromkeys(gaps)]


def _says_it_in_one_line(thing: type) -> bool:
    return issubclass(thing, (Exception, Enum)) or getattr(thing, "_is_protocol", False)


def may_be_subclassed(thing: Any) -> bool:
    """Return whether a public thing is a concrete class without `@final` of which there is no subclass."""
    if not inspect.isclass(thing) or _says_it_in_one_line(thing) or hasattr(thing, "_fields"):
        return False
    return not (thing.__subclasses__() or getattr(thing, "__final__", False))


def changes(offered: dict[str, Any], listed: dict[str, Any]) -> list[str]:
    """Return how what is offered departs from a list: each name that is new or gone, or the first out of place."""
    ours, theirs = (
        [f"{name} {word}".strip() for name, words in sorted(each.items()) for word in ("", *words)]
        for each in (offered, listed)
    )
    found = [f"{line} is not listed" for line in ours if line not in theirs]
    found += [f"{line} is listed, and gone" for line in theirs if line not in ours]
    pairs = zip(ours, theirs, strict=False)
    return sorted(found) or [f"{one} comes where {other} is listed" for one, other in pairs if one != other][:1]


def _call_gaps(thing: Any, body: Any, text: str) -> list[str]:
    """Return the parameters, return value and errors of a body that a docstring does not name."""
    signature = inspect.signature(thing)
    gaps = [f"lacks the parameter {name}" for name in signature.parameters if f"    {name}: " not in text]
    back = signature.return_annotation
    if inspect.isfunction(thing) and back not in (None, "None", inspect.Signature.empty) and "Returns:" not in text:
        gaps.append("lacks Returns:")
    if inspect.isfunction(body):
        raised = {_raised(node) for node in ast.walk(_syntax(body)) if isinstance(node, ast.Raise)}
        gaps += [f"lacks {name}" for name in sorted(raised) if name.endswith("Error") and f"    {name}: " not in text]
    return gaps


def _method_gaps(thing: type) -> list[str]:
    gaps = []
    for name, value in vars(thing).items():
        function = value.fget if isinstance(value, property) else getattr(value, "__func__", value)
        if not inspect.isfunction(function) or name.startswith("_"):
            continue
        text = inspect.getdoc(function) or ""
        parameters = [each for each in inspect.signature(function).parameters if each not in ("self", "cls")]
        if not text:
            gaps.append(f"lacks a docstring of {name}")
        elif "Args:" in text:
            gaps += [f"lacks the parameter {each} of {name}" for each in parameters if f"    {each}: " not in text]
    return gaps


def _bare_fields(thing: type) -> list[str]:
    """Return the fields of a class without a docstring directly below."""
    body = _syntax(thing).body
    below = [*body[1:], ast.Pass()]
    fields = [(node.target, after) for node, after in zip(body, below, strict=True) if isinstance(node, ast.AnnAssign)]
    return [target.id for target, after in fields if isinstance(target, ast.Name) and not _is_text(after)]


def _needs_example(thing: Any) -> bool:
    inside = thing.__module__.startswith(("labelspace.training", "labelspace.cli"))
    return not (inside or inspect.isabstract(thing)) or thing.__name__ in labelspace.__all__


def _syntax(thing: Any) -> Any:
    return ast.parse(textwrap.dedent(inspect.getsource(thing))).body[0]


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
