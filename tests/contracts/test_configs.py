"""Every configuration is frozen, keyword-only and checked, field by field."""

import dataclasses
import inspect
import json

import numpy as np
import pytest

import labelspace
from labelspace.config import (
    CONFIGS,
    DecisionConfig,
    EncodingConfig,
    LaConConfig,
    PrefinetuneConfig,
    SearchConfig,
    TrainingConfig,
    UncertaintyConfig,
)
from labelspace.encoders import DEFAULT_ENCODER
from labelspace.errors import ConfigError

FIELDS = [(config, field.name) for config in CONFIGS for field in dataclasses.fields(config)]
# Values that every field refuses, whatever its type.
NONSENSE = {"an object": object(), "a negative number": -2, "not a number": float("nan")}


def id_of(value: object) -> str:
    return value.__name__ if isinstance(value, type) else str(value)


def defaults_of(name: str) -> dict[str, object]:
    """Return the parameters of a public class with their defaults."""
    parameters = inspect.signature(getattr(labelspace, name)).parameters.values()
    return {parameter.name: parameter.default for parameter in parameters}


@pytest.mark.parametrize("config", CONFIGS, ids=id_of)
def test_configs_are_frozen(config):
    value = config()
    name = dataclasses.fields(config)[0].name
    with pytest.raises(dataclasses.FrozenInstanceError):
        setattr(value, name, None)


@pytest.mark.parametrize("config", CONFIGS, ids=id_of)
def test_configs_take_keywords_only(config):
    parameters = inspect.signature(config).parameters.values()
    assert {parameter.kind for parameter in parameters} == {inspect.Parameter.KEYWORD_ONLY}


def takes(config: type, field: str, value: object) -> bool:
    """Return whether a field takes a value; a refusal must name the field."""
    try:
        config(**{field: value})
    except ConfigError as error:
        return field not in str(error)
    return True


@pytest.mark.parametrize("what", NONSENSE)
def test_every_field_refuses_nonsense(what):
    assert [f"{config.__name__}.{field}" for config, field in FIELDS if takes(config, field, NONSENSE[what])] == []


def test_every_field_refuses_an_unknown_word_except_a_device():
    taken = [f"{config.__name__}.{field}" for config, field in FIELDS if takes(config, field, "nonsense")]
    assert taken == ["EncodingConfig.device", "NLIConfig.device"]


def test_counts_refuse_booleans():
    counts = [(config, field) for config, field in FIELDS if "bool" not in str(config.__dataclass_fields__[field].type)]
    assert [f"{config.__name__}.{field}" for config, field in counts if takes(config, field, True)] == []


def numpy_of(value):
    """Return the value as numpy scalars, as a grid or a quantile gives them."""
    if isinstance(value, tuple):
        return tuple(numpy_of(inner) for inner in value)
    kinds = {bool: np.bool_, int: np.int64, float: np.float32}
    return kinds.get(type(value), lambda same: same)(value)


@pytest.mark.parametrize("config", CONFIGS, ids=id_of)
def test_numpy_scalars_become_python_numbers(config):
    defaults = {name: value for name, value in vars(config()).items() if value is not None}
    kept = config(**{name: numpy_of(value) for name, value in defaults.items()})
    for name, value in defaults.items():
        assert type(getattr(kept, name)) is type(value), name
        if not isinstance(value, str):
            assert getattr(kept, name) == pytest.approx(value, rel=1e-6), name
    assert config.from_dict(json.loads(json.dumps(kept.to_dict()))) == kept


@pytest.mark.parametrize(
    "values",
    [{"rates": ()}, {"rates": (0.0,)}, {"rates": (1e-5, -1e-5)}, {"rates": (2.0,)}, {"documents": 1}],
    ids=str,
)
def test_the_search_refuses_an_invalid_grid(values):
    with pytest.raises(ConfigError):
        SearchConfig(**values)


def test_lora_and_frozen_layers_exclude_each_other():
    with pytest.raises(ConfigError, match="exclude each other"):
        TrainingConfig(lora_rank=4, freeze_layers=1)


def test_the_message_says_what_was_wrong_what_came_and_what_to_do():
    with pytest.raises(ConfigError, match=r"^temperature must be a number above 0\. Got -1 instead\.$"):
        TrainingConfig(temperature=-1)


@pytest.mark.parametrize("config", CONFIGS, ids=id_of)
def test_configs_survive_a_round_trip_through_json(config):
    value = config()
    assert config.from_dict(json.loads(json.dumps(value.to_dict()))) == value


def test_a_changed_config_survives_a_round_trip():
    search = SearchConfig(rates=(1e-5, 2e-5), strategy="grid", steps=7)
    assert SearchConfig.from_dict(json.loads(json.dumps(search.to_dict()))) == search


@pytest.mark.parametrize("config", CONFIGS, ids=id_of)
def test_an_unknown_key_is_refused_with_the_nearest_known_one(config):
    name = dataclasses.fields(config)[0].name
    with pytest.raises(ConfigError, match=f"no option '{name}s'. Did you mean '{name}'"):
        config.from_dict({f"{name}s": 1})


@pytest.mark.parametrize(
    ("name", "config"),
    [
        ("ZeroShotClassifier", DecisionConfig),
        ("DescriptionClassifier", TrainingConfig),
        ("LaConClassifier", LaConConfig),
        ("UncertaintyClassifier", UncertaintyConfig),
        ("Encoder", EncodingConfig),
    ],
)
def test_estimators_share_option_defaults_with_their_configuration(name, config):
    arguments = defaults_of(name)
    shared = {option: default for option, default in vars(config()).items() if option in arguments}
    assert shared
    assert {option: arguments[option] for option in shared} == shared


@pytest.mark.parametrize("name", ["DescriptionClassifier", "LaConClassifier", "UncertaintyClassifier"])
def test_an_estimator_has_at_most_sixteen_arguments(name):
    assert len(defaults_of(name)) <= 16


def test_every_estimator_starts_from_the_default_encoder():
    estimators = [name for name in labelspace.__all__ if name.endswith("Classifier")]
    defaults = [defaults_of(name) for name in estimators]
    assert {own.get("encoder") or own["views"][0] for own in defaults} == {DEFAULT_ENCODER}


@pytest.mark.parametrize(
    ("values", "message"),
    [
        ({"head": "leam"}, "head 'leam' gives logits and goes with objective 'cross-entropy' only"),
        ({"head": "lsan", "objective": "cross-entropy+supervised-contrastive"}, "'cross-entropy' only"),
        ({"objective": "cross-entropy+self-contrastive", "encoder_dropout": False}, "needs encoder_dropout=True"),
    ],
    ids=str,
)
def test_incompatible_options_of_lacon_are_refused(values, message):
    with pytest.raises(ConfigError, match=message):
        LaConConfig(**values)


def test_a_batch_of_one_pair_has_no_negatives_and_is_refused():
    with pytest.raises(ConfigError, match=r"batch_size must be a whole number at least 2\. Got 1"):
        PrefinetuneConfig(batch_size=1)


def test_both_estimators_of_labels_without_rows_share_their_defaults():
    assert defaults_of("ZeroShotClassifier").items() <= defaults_of("DescriptionClassifier").items()
