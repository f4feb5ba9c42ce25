"""`running`, the service in a block of a notebook: what it refuses."""

from typing import Any

import pytest
from sklearn.exceptions import NotFittedError

from labelspace import ZeroShotClassifier
from labelspace.errors import ConfigError
from labelspace.serve import running


@pytest.mark.parametrize(
    ("models", "options", "said"),
    [
        ({}, {}, "there is no model to serve"),
        ({"news": "model"}, {}, "model 'news' must be a labelspace classifier. Got str"),
        (None, {"config": {"max_waiting": 3}}, "config must be a ServingConfig. Got dict"),
        (None, {"port": 99_999}, "port must be"),
        (None, {"keys": "my-secret"}, "keys must be a list of keys"),
        (None, {"keys": ["a", ""]}, "a key is empty"),
        (None, {"keys": ["secret\n"]}, "has white space"),
        ({"owner/name": None}, {}, "has no '/'"),
    ],
)
def test_arguments_that_cannot_work_are_refused_before_a_request(
    news: ZeroShotClassifier, models: Any, options: dict[str, Any], said: str
):
    with pytest.raises(ConfigError, match=said), running({"news": news} if models is None else models, **options):
        pass


def test_a_classifier_that_is_not_fitted_is_refused(encoder: Any):
    with pytest.raises(NotFittedError), running({"news": ZeroShotClassifier(["a", "b"], encoder)}):
        pass
