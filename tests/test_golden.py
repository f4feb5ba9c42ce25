"""Every estimator has the training curve and the answers of the last `tests/golden.py --write`."""

import json
from importlib.metadata import version

import pytest

from golden import CASES, DRAWS_NOTHING, KEPT, WRITTEN_WITH, measure

GOLDEN = json.loads(KEPT.read_text(encoding="utf-8"))
OTHER_DRAWS = not version("torch").startswith(WRITTEN_WITH)


def test_each_case_has_expected_values():
    assert sorted(GOLDEN) == sorted(CASES)


@pytest.mark.parametrize("name", CASES)
def test_curves_and_answers_are_unchanged(name: str):
    if OTHER_DRAWS and name not in DRAWS_NOTHING:
        pytest.skip(f"dropout draws differ between releases of torch, and these are of {WRITTEN_WITH}")
    found = measure(name)
    assert sorted(found) == sorted(GOLDEN[name])
    for key, values in GOLDEN[name].items():
        assert found[key] == pytest.approx(values, rel=2e-3, abs=2e-3), key
