"""Tests of the guards: each violation is planted, and the functions of the contract tests catch it."""

import getpass
import importlib.util
import os
import subprocess
import sys
import tempfile
from pathlib import Path

import pytest

from contracts import pages, source


def page_with(tmp_path, text: str):
    page = tmp_path / "page.md"
    page.write_text(text, encoding="utf-8")
    return page


def file_with(tmp_path, text: str):
    path = tmp_path / "planted.py"
    path.write_text(text, encoding="utf-8")
    return path


# ---- docs


def test_a_planted_skip_is_caught(tmp_path):
    page = page_with(tmp_path, "# Page\n\n```python\nx = 1  # doctest: +SKIP\n```\n")
    assert pages.skips(page) == ["page.md:4"]


def test_a_broken_block_is_caught_with_page_and_line(tmp_path, tiny_encoder_folder):
    page = page_with(
        tmp_path, "# Page\n\n```python\nx = 1\n```\n\ntext\n\n```python\ny = x\nassert x == 2, 'no'\n```\n"
    )
    with pytest.raises(AssertionError, match=r"^page\.md:11: AssertionError: no$"):
        pages.run_page(page, tiny_encoder_folder)


def test_a_block_with_invalid_python_is_caught_with_page_and_line(tmp_path, tiny_encoder_folder):
    page = page_with(tmp_path, "```python\nx = 1\ny = = 2\n```\n")
    with pytest.raises(AssertionError, match=r"^page\.md:3: SyntaxError"):
        pages.run_page(page, tiny_encoder_folder)


def test_blocks_in_lists_are_run_too(tmp_path, tiny_encoder_folder):
    page = page_with(tmp_path, "- item\n\n    ```python\n    raise RuntimeError('seen')\n    ```\n")
    with pytest.raises(AssertionError, match=r"page\.md:4: RuntimeError: seen"):
        pages.run_page(page, tiny_encoder_folder)


def test_a_block_that_is_never_closed_is_caught(tmp_path):
    with pytest.raises(AssertionError, match="never closed"):
        pages.blocks_of(page_with(tmp_path, "```python\nx = 1\n"))


@pytest.mark.parametrize("language", ["py", "pycon", "", "Python"])
def test_a_block_that_would_not_run_is_caught(language, tmp_path):
    assert pages.unknown_languages(page_with(tmp_path, f"```{language}\nassert False\n```\n")) != []


def test_the_tiny_encoder_replaces_the_real_name_only_within_the_block(tmp_path, tiny_encoder_folder):
    page = page_with(tmp_path, "```python\nfrom labelspace import Encoder\nassert Encoder().dimension == 32\n```\n")
    assert pages.run_page(page, tiny_encoder_folder) == 1
    from labelspace.encoders import encoder, resolve

    assert encoder.resolve is resolve.resolve


@pytest.mark.parametrize(
    ("line", "problem"),
    [
        ("labelspace fitt labels.yaml", "no command 'fitt'"),
        ("labelspace fit labels.yaml --out model --learning-rat 1", "--learning-rat"),
        ("labelspace fit labels.yaml", "--out"),
        ("labelspace --verison", "--verison"),
        ("labelspace bench runn", "no command 'runn'"),
        ("labelspace bench run x --nonsense", "--nonsense"),
        ("labelspace bench --version", "--version"),
        ("make tset", "tset"),
        ("make check SETING=today", "SETING=today"),
    ],
)
def test_an_invalid_command_line_is_caught(line, problem, tmp_path):
    (block,) = pages.blocks_of(page_with(tmp_path, f"```console\n$ {line}\n```\n"))
    (command,) = pages.commands_of(block)
    assert problem in pages.command_problem(command.words)


def test_a_valid_command_line_has_no_problem(tmp_path):
    text = (
        "```console\n$ labelspace fit labels.yaml \\\n    --out model  # a remark\nmodel\n$ labelspace --version\n```\n"
    )
    (block,) = pages.blocks_of(page_with(tmp_path, text))
    commands = pages.commands_of(block)
    assert [(command.line, len(command.words)) for command in commands] == [(2, 5), (5, 2)]
    assert [pages.command_problem(command.words) for command in commands] == ["", ""]


@pytest.mark.parametrize(
    "line", ["labelspace bench run x --file y.csv", "make check SETTING=today", "labelspace bench"]
)
def test_a_subcommand_and_a_variable_of_make_have_no_problem(line):
    assert pages.command_problem(tuple(line.split())) == ""


def test_a_stale_block_of_a_page_is_caught_by_name(tmp_path):
    page = page_with(tmp_path, "<!-- a -->\none\n<!-- /a -->\n\n<!-- b -->\nold\n<!-- /b -->\n")
    blocks = {"a": lambda: "one", "b": lambda: "new", "c": lambda: "lost"}
    assert pages.stale_blocks(blocks, [page]) == ["page.md: the block b is stale", "the block c is on no page"]


def test_an_indented_command_line_is_found(tmp_path):
    page = page_with(
        tmp_path, "# Page\n\n    labelspace fitt x\n\n    cat a | labelspace predict m - | head\n\n    x = 1\n"
    )
    said = [(command.line, command.words[:2]) for command in pages.commands_in_prose(page)]
    assert said == [(3, ("labelspace", "fitt")), (5, ("cat", "a")), (5, ("labelspace", "predict")), (5, ("head",))]


def test_an_unknown_option_on_a_page_is_caught(tmp_path):
    page = page_with(tmp_path, "## labelspace lint\n\n- `--strict`: yes\n- `--stricter`: no\n")
    assert pages.options_by_section(page)["lint"] - pages.options_of("lint") == {"--stricter"}


def test_a_public_name_missing_from_the_docs_is_caught():
    assert pages.not_mentioned(["load", "Encoder"], "`load` opens a model; an Encoder is no code here.") == ["Encoder"]


def test_a_missing_file_on_a_page_is_caught(tmp_path):
    page = page_with(
        tmp_path,
        "See `tests/losses/test_nothing.py`, `cli/labls.py` and [here](nowhere.md), not `cli/fit.py`, `cli/fit`.\n",
    )
    assert pages.dead_paths(page) == ["tests/losses/test_nothing.py", "cli/labls.py", "nowhere.md"]


def test_an_unknown_python_name_on_a_page_is_caught(tmp_path):
    page = page_with(tmp_path, "`labelspace.losses.infonce_rows` and `labelspace.losses.infonce_diagonal`\n")
    assert pages.dead_names(page) == ["labelspace.losses.infonce_diagonal"]


# ---- security


def ruff(text: str, path: str = "src/labelspace/planted.py") -> str:
    """Return ruff's findings for a file of the project with this content."""
    command = [sys.executable, "-m", "ruff", "check", "--output-format", "concise", "--stdin-filename", path, "-"]
    return subprocess.run(command, input=text, cwd=source.ROOT, capture_output=True, text=True, check=False).stdout


def test_ruff_refuses_every_planted_line():
    planted = [
        ("import pickle\n", "TID251 `pickle`"),
        ("from pickle import loads\n", "TID251 `pickle`"),
        ("def late():\n    import joblib.externals\n", "TID251 `joblib`"),
        ("import torch as t\nt.load('x')\n", "TID251 `torch.load`"),
        ("import yaml\nyaml.load('x')\n", "TID251 `yaml.load`"),
        ("from numpy import load\nload('x')\n", "TID251 `numpy.load`"),
        ("import os\nos.system('x')\n", "TID251 `os.system`"),
        ("import warnings\nwarnings.warn('x')\n", "TID251 `warnings.warn`"),
        ("import warnings\nwith warnings.catch_warnings():\n    pass\n", "TID251 `warnings.catch_warnings`"),
        ("eval('1')\n", "S307"),
        ("exec('1')\n", "S102"),
        ("import matplotlib.pyplot\n", "TID253 `matplotlib`"),
        ("from openai import OpenAI\n", "TID253 `openai`"),
        ("print(1)\n", "T201"),
        ("x = 1  # TODO: later\n", "FIX002"),
        ("x = 1  # noqa\n", "PGH004"),
    ]
    told, first = ruff("".join(text for text, _ in planted)).splitlines(), 1
    for text, rule in planted:
        after = first + text.count("\n")
        assert [line for line in told if rule in line and first <= int(line.split(":")[1]) < after], (text, told)
        first = after


def test_ruff_refuses_running_text_as_code_in_scripts():
    assert "TID251 `pickle`" in ruff("import pickle\n", "benchmarks/planted.py")
    assert "TID251 `pickle`" in ruff("import pickle\n", "examples/planted.py")


@pytest.mark.parametrize(
    "text",
    [
        "read('x', allow_pickle=True)\n",
        "def f(*, trust_remote_code=True): ...\n",
        "def f(trust_remote_code: bool = True): ...\n",
        "open_encoder('x', trust_remote_code=True)\n",
        "class C:\n    trust_remote_code: bool = True\n",
    ],
)
def test_a_planted_trust_is_caught(text, tmp_path):
    assert source.trusts_remote_code(file_with(tmp_path, text)) != []


def test_code_that_trusts_no_remote_code_passes(tmp_path):
    text = "def f(*, trust_remote_code=False):\n    g(1, trust_remote_code=trust_remote_code)\n"
    assert source.trusts_remote_code(file_with(tmp_path, text)) == []


# ---- errors


@pytest.mark.parametrize(
    "text",
    [
        "raise ValueError('x')\n",
        "raise KeyError\n",
        "def f():\n    raise AttributeError('x')\n",
        "def __getattr__(name):\n    raise ValueError(name)\n",
    ],
)
def test_a_planted_built_in_error_is_caught(text, tmp_path):
    assert source.foreign_raises(file_with(tmp_path, text)) != []


@pytest.mark.parametrize("name", ["errors.py", "config.py", "config/training.py"])
def test_every_file_name_is_checked(name, tmp_path):
    path = tmp_path / name
    path.parent.mkdir(exist_ok=True)
    path.write_text("def f(x):\n    assert x\n    raise ValueError('a\\nb')\n", encoding="utf-8")
    for rule in (source.foreign_raises, source.asserts_on_arguments, source.messages_of_several_lines):
        assert len(source.violations(rule, tmp_path)) == 1


def test_a_module_getattr_may_raise_attribute_error(tmp_path):
    text = "def __getattr__(name):\n    raise AttributeError(name)\n"
    assert source.foreign_raises(file_with(tmp_path, text)) == []


def test_a_planted_check_by_assert_is_caught(tmp_path):
    text = "def f(x, *, y):\n    z = x\n    assert z\n    assert y > 0, 'no'\n"
    assert source.asserts_on_arguments(file_with(tmp_path, text)) == ["planted.py:4 asserts on the argument y"]


def test_a_planted_line_break_in_a_message_is_caught(tmp_path):
    assert source.messages_of_several_lines(file_with(tmp_path, "raise E(f'a {b}\\nc')\n")) != []


# ---- docstrings and configs


@pytest.fixture
def planted(tmp_path, monkeypatch):
    """Return a module with this code, whose source can be read."""

    def module(text: str, name: str = "planted"):
        spec = importlib.util.spec_from_file_location(name, file_with(tmp_path, text))
        assert spec is not None
        assert spec.loader is not None
        made = importlib.util.module_from_spec(spec)
        monkeypatch.setitem(sys.modules, name, made)
        spec.loader.exec_module(made)
        return made

    return module


FUNCTION = """
def thing(a: int, b: int) -> int:
    '''Add two numbers.

    Args:
        a: the first.
        b: the second.

    Returns:
        Their sum.

    Raises:
        InputError: a is zero.

    Example:
        >>> 1
        1
    '''
    if not a:
        raise InputError("zero")
    return a + b
"""
CLASS = """
class thing:
    '''A counter.

    Args:
        start: where it begins.

    Example:
        >>> 1
        1
    '''

    def __init__(self, start: int) -> None: ...

    def add(self, a: int, b: int) -> int:
        '''Add both.

        Args:
            a: one.
            b: another.
        '''
"""
RECORD = """
import dataclasses


@dataclasses.dataclass
class thing:
    '''A record.'''

    a: int = 1
    '''One.'''

    b: int = 2
    '''Two.'''
"""
ERROR = "class thing(Exception):\n    '''Something.'''\n"
MADE = "class thing:\n    '''A table; made by `open_thing`.'''\n\n    def __init__(self, a: int) -> None: ...\n"


@pytest.mark.parametrize("kind", [FUNCTION, CLASS, RECORD, ERROR, MADE])
def test_a_complete_docstring_has_no_gap(kind, planted):
    assert source.docstring_gaps(planted(kind).thing) == []


@pytest.mark.parametrize(
    ("kind", "old", "new", "gap"),
    [
        (FUNCTION, "Add two numbers.", "", "one line that is a sentence"),
        (FUNCTION, "        b: the second.\n", "", "lacks the parameter b"),
        (FUNCTION, "Returns:", "Back:", "lacks Returns:"),
        (FUNCTION, "InputError: a", "Error: a", "lacks InputError"),
        (FUNCTION, ">>> 1", "1", "has no example"),
        (FUNCTION, "    '''Add", "    x = '''Add", "has no docstring"),
        (CLASS, "    '''A counter.", "    x = '''A counter.", "has no docstring"),
        (CLASS, "start: where", "begin: where", "lacks the parameter start"),
        (CLASS, ">>> 1", "1", "has no example"),
        (CLASS, "            b: another.\n", "", "lacks the parameter b of add"),
        (CLASS, "        '''Add both.", "        x = '''Add both.", "lacks a docstring of add"),
        (RECORD, "    '''One.'''\n", "", "lacks the field a"),
        (RECORD, "    '''Two.'''\n", "", "lacks the field b"),
        (RECORD, "    '''A record.'''\n", "", "has no docstring"),
        (ERROR, "Something.", "Something", "one line that is a sentence"),
        (MADE, "; made by `open_thing`", "", "lacks the parameter a"),
    ],
)
def test_a_gap_of_each_kind_is_caught(kind, old, new, gap, planted):
    assert old in kind
    (said, *_) = [told for told in source.docstring_gaps(planted(kind.replace(old, new, 1)).thing) if gap in told]
    assert said.startswith("planted.thing ")


def test_a_training_function_needs_everything_but_an_example(planted):
    made = planted(FUNCTION.replace(">>> 1", "1"), "labelspace.training.planted")
    assert source.docstring_gaps(made.thing) == []
    assert source.docstring_gaps(planted(FUNCTION.replace("Returns:", ""), "labelspace.training.planted").thing) != []


def test_a_formula_and_a_head_without_their_source_are_caught(planted):
    gaps = source.docstring_gaps(planted(FUNCTION, "labelspace.losses.planted").thing)
    assert [gap.split(" ", 1)[1] for gap in gaps] == [
        "lacks .. math::",
        "lacks Paper:",
        "lacks Reference:",
        "lacks ShapeError",
    ]
    (gap,) = source.docstring_gaps(planted(CLASS, "labelspace.heads.planted").thing)
    assert gap.endswith("lacks Reference:")


GOOD = """One line.

    .. math:: a

    Paper: eq. 1.

    Args:
        a: number.

    Returns:
        It.

    Raises:
        ShapeError: never.

    Example:
        >>> 1
        1

    Reference:
        A paper, eq. 1.
    """


def with_docstring(text: str):
    def function() -> None: ...

    function.__doc__ = text
    return function


def test_a_docstring_in_order_has_no_problem():
    assert source.docstring_problems(with_docstring(GOOD)) == []


@pytest.mark.parametrize(
    ("old", "new", "problem"),
    [
        ("    Paper: eq. 1.\n\n", "", "lacks Paper:"),
        (".. math:: a", "a", "lacks .. math::"),
        ("Raises:\n        ShapeError: never.", "None.", "lacks Raises:"),
        (">>> 1\n        1", "one", "has no example that runs"),
        ("Args:\n        a: number.\n\n    Returns:", "Returns:\n        It.\n\n    Args:", "another order"),
        ("One line.\n", "Two lines,\n    or more.\n", "begin with one line"),
    ],
)
def test_a_docstring_out_of_order_is_caught(old, new, problem):
    assert old in GOOD
    problems = source.docstring_problems(with_docstring(GOOD.replace(old, new, 1)))
    assert any(problem in told for told in problems), problems


# ---- the public surface


@pytest.mark.parametrize(
    ("offered", "found"),
    [
        ({"fit": ["--out", "--to"], "lint": []}, ["lint --all is listed, and gone"]),
        ({"fit": ["--out", "--to"], "lint": ["--all", "--only"]}, ["lint --only is not listed"]),
        ({"lint": ["--all"], "fit": ["--out", "--to"], "bench": []}, ["bench is not listed"]),
        ({"lint": ["--all"], "fit": ["--to", "--out"]}, ["fit --to comes where fit --out is listed"]),
        ({"fit": ["--out", "--to"], "lint": ["--all"]}, []),
    ],
)
def test_a_changed_surface_is_told_by_name(offered, found):
    assert source.changes(offered, {"lint": ["--all"], "fit": ["--out", "--to"]}) == found


def test_a_planted_class_without_final_is_caught(planted):
    final = "from typing import final\n\n\n@final" + CLASS
    assert source.may_be_subclassed(planted(CLASS).thing)
    assert not source.may_be_subclassed(planted(final).thing)
    assert not source.may_be_subclassed(planted(f"{CLASS}\n\nclass other(thing): ...\n").thing)
    assert not source.may_be_subclassed(planted(ERROR).thing)


# ---- what tests leave behind


def session_on(tmp_path, text: str) -> subprocess.CompletedProcess[str]:
    """Run a test session on a file with this code, with our plugins and its own temporary folder."""
    path = tmp_path / "test_planted.py"
    code = f"import tempfile\n\n\ndef test_planted():\n    {text}\n\n\ndef test_last(): ...\n"
    path.write_text(code, encoding="utf-8")
    (tmp_path / "tmp").mkdir()
    environment = {**os.environ, "TMPDIR": str(tmp_path / "tmp"), "PYTHONPATH": str(source.ROOT / "tests")}
    command = [sys.executable, "-m", "pytest", "-q", "-p", "leftovers", "--rootdir", tmp_path, path]
    return subprocess.run(command, cwd=tmp_path, env=environment, capture_output=True, text=True, check=False)


@pytest.mark.parametrize(
    "text", ["tempfile.mkdtemp('-planted')", "tempfile.NamedTemporaryFile(suffix='-planted', delete=False)"]
)
@pytest.mark.slow
def test_a_file_left_in_the_temporary_folder_fails_the_run_and_is_named(text, tmp_path):
    done = session_on(tmp_path, text)
    assert done.returncode == 1, done.stdout
    assert "left behind in the temporary folder: tmp" in done.stdout
    assert "-planted (there since test_planted.py::test_planted)" in done.stdout
    assert [path.name for path in (tmp_path / "tmp").iterdir()] == [f"pytest-of-{getpass.getuser()}"]


@pytest.mark.slow
def test_a_file_that_the_test_removes_fails_nothing(tmp_path):
    done = session_on(tmp_path, "tempfile.TemporaryDirectory().cleanup()")
    assert done.returncode == 0, done.stdout


def test_the_tests_run_in_a_temporary_folder_of_their_own():
    assert Path(tempfile.gettempdir()).name.startswith("labelspace-")
