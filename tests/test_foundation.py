"""The foundation: seeds, checks and the tree of errors."""

import inspect
import json
import sys
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from labelspace import errors
from labelspace.checks import as_python, as_seed, check_keys, check_number, did_you_mean, import_optional
from labelspace.errors import ConfigError, LabelSpaceError, MissingDependencyError, ShapeError
from labelspace.seeds import child_seed

# ---- seeds


@given(st.integers(-(2**70), 2**70), st.lists(st.one_of(st.text(max_size=5), st.integers()), max_size=3))
def test_a_child_seed_depends_on_parent_and_path_alone_and_fits_every_generator(seed: int, path: list[str | int]):
    child = child_seed(seed, *path)
    assert child == child_seed(seed, *path)
    assert 0 <= child < 2**63
    assert child != child_seed(seed + 1, *path)


def test_no_two_paths_of_a_run_share_a_child():
    paths = [(kind, step, chunk) for kind in ("dropout", "step") for step in range(50) for chunk in range(20)]
    assert len({child_seed(0, *path) for path in paths}) == len(paths)
    assert child_seed(0, 1) != child_seed(0, "1")


def test_child_seeds_never_change_because_saved_results_depend_on_them():
    assert child_seed(0, "training") == 9085041400788237037


# ---- checks


def test_did_you_mean_names_the_closest_or_nothing():
    assert did_you_mean("sprots", ["sports", "money"]) == " Did you mean 'sports'?"
    assert did_you_mean("qqq", ["sports", "money"]) == ""


@pytest.mark.parametrize(
    ("bounds", "good", "bad"),
    [
        ({"above": 0}, [1e-9, 3], [0, -1]),
        ({"least": 0, "most": 1}, [0, 1, 0.5], [-0.1, 1.1]),
        ({"least": 1, "whole": True}, [1, 10**9], [0, 1.0, 2.5]),
    ],
)
def test_each_bound_is_inclusive_or_exclusive_as_named(bounds: dict[str, float], good: list[float], bad: list[float]):
    for value in good:
        check_number("n", value, **bounds)  # type: ignore[arg-type]
    for value in bad:
        with pytest.raises(ConfigError, match=f"Got {value!r} instead"):
            check_number("n", value, **bounds)  # type: ignore[arg-type]


def test_numpy_scalars_are_numbers_but_fractions_and_booleans_are_not():
    for value in (np.float16(0.5), np.float32(0.5), np.float64(0.5), np.int64(1), np.uint8(1)):
        check_number("n", value, least=0, most=1)
    check_number("n", np.int64(3), least=1, whole=True)
    for value in (np.bool_(True), True, Fraction(1, 2), np.float32("nan"), np.float32(1.5), np.array([0.5]), "0.5"):
        with pytest.raises(ConfigError, match="n must be a number at least 0 and at most 1"):
            check_number("n", value, least=0, most=1)
    with pytest.raises(ConfigError, match="n must be a whole number"):
        check_number("n", np.float32(1), whole=True)


def test_a_seed_is_a_whole_number_from_0_on_and_becomes_an_int():
    assert type(as_seed(np.int64(7))) is int
    for value in (None, "0", 1.0, -1, True):
        with pytest.raises(ConfigError, match=f"seed must be a whole number at least 0. Got {value!r} instead"):
            as_seed(value)


def test_numpy_scalars_become_plain_at_any_depth():
    values = {"a": np.float32(0.5), "b": [np.int64(1), (np.bool_(True), None)], "c": "x", "d": np.arange(2)}
    found = as_python(values)
    assert found["d"] is values.pop("d")
    assert json.dumps({name: found[name] for name in values}) == '{"a": 0.5, "b": [1, [true, null]], "c": "x"}'
    assert found["b"][1] == (True, None)


def test_known_keys_pass():
    check_keys("x", ["a"], ["a", "b"])
    with pytest.raises(ConfigError, match="Known: a, b"):
        check_keys("x", ["c"], ["a", "b"])


def test_a_missing_package_says_how_to_install_it(monkeypatch: pytest.MonkeyPatch):
    assert import_optional("json", package="json", extra="plot", purpose="Drawing") is json
    monkeypatch.setitem(sys.modules, "umap", None)
    with pytest.raises(MissingDependencyError) as error:
        import_optional("umap", package="umap-learn", extra="plot", purpose="Drawing a map")
    assert str(error.value) == (
        "Drawing a map needs the package 'umap-learn'; install it with: pip install 'labelspace[plot]'"
    )
    assert isinstance(error.value, ImportError)


# ---- errors


def tree() -> dict[str, type[BaseException]]:
    found = {name: thing for name, thing in vars(errors).items() if inspect.isclass(thing)}
    return {name: thing for name, thing in found.items() if issubclass(thing, LabelSpaceError)}


def test_the_drawn_tree_matches_the_error_classes():
    """Every class is drawn with the built-in error that it also inherits."""
    assert errors.__doc__ is not None
    drawn = {}
    for line in errors.__doc__.splitlines():
        words = line.replace("│", " ").replace("├──", " ").replace("└──", " ").split()
        if len(words) > 1 and words[0] in tree() and words[1].startswith("("):
            drawn[words[0]] = words[1].strip("()")
    assert drawn.keys() == tree().keys() - {"LabelSpaceError"}
    for name, builtin in drawn.items():
        assert issubclass(tree()[name], getattr(__builtins__, builtin, None) or __builtins__[builtin]), name


def test_every_error_prints_its_message_on_one_line():
    for name, error in tree().items():
        if name != "MissingDependencyError":
            assert str(error("what, what came, what to do")) == "what, what came, what to do", name
    assert str(LabelSpaceError()) == ""


def test_errors_are_caught_by_the_builtin_a_caller_would_name():
    with pytest.raises(ValueError, match="x"):
        raise ShapeError("x")
    with pytest.raises(OSError, match="x"):
        raise errors.OutputError("x")
    with pytest.raises(KeyError, match="x"):
        raise errors.ColumnError("x")
