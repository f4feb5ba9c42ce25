"""Every configuration is frozen, keyword-only, documented and checked, field by field."""

import dataclasses
import inspect
import json
from pathlib import Path

import numpy as np
import pytest

from contracts.source import undocumented_fields
from labelspace.config import CONFIGS, LaConConfig, PrefinetuneConfig, SearchConfig, TrainingConfig, UncertaintyConfig
from labelspace.errors import ConfigError

FIELDS = [(config, field.name) for config in CONFIGS for field in dataclasses.fields(config)]
# What no field takes, whatever its type is.
NONSENSE = {"an object": object(), "a negative number": -1, "not a number": float("nan")}
# Wrong for most; some field takes each.
WORDS = {"EncodingConfig.device"}


def id_of(value: object) -> str:
    return value.__name__ if isinstance(value, type) else str(value)


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


@pytest.mark.parametrize("config", CONFIGS, ids=id_of)
def test_every_field_has_a_docstring_under_it(config):
    assert undocumented_fields(Path(inspect.getfile(config)), config.__name__) == []


@pytest.mark.parametrize(("config", "field"), FIELDS, ids=id_of)
@pytest.mark.parametrize("what", NONSENSE)
def test_every_field_refuses_nonsense(config, field, what):
    with pytest.raises(ConfigError, match=field):
        config(**{field: NONSENSE[what]})


@pytest.mark.parametrize(("config", "field"), FIELDS, ids=id_of)
def test_every_field_refuses_an_unknown_word(config, field):
    if f"{config.__name__}.{field}" in WORDS:
        pytest.skip("any word may name a device; torch is asked when an encoder is opened")
    with pytest.raises(ConfigError, match=field):
        config(**{field: "nonsense"})


@pytest.mark.parametrize(("config", "field"), FIELDS, ids=id_of)
def test_a_number_that_counts_is_never_a_truth_value(config, field):
    if "bool" in str(config.__dataclass_fields__[field].type):
        return
    with pytest.raises(ConfigError, match=field):
        config(**{field: True})


def numpy_of(value):
    """The same in scalars of numpy, as a grid or a quantile gives them."""
    if isinstance(value, tuple):
        return tuple(numpy_of(inner) for inner in value)
    kinds = {bool: np.bool_, int: np.int64, float: np.float32}
    return kinds.get(type(value), lambda same: same)(value)


@pytest.mark.parametrize("config", CONFIGS, ids=id_of)
def test_scalars_of_numpy_are_kept_as_pythons_own(config):
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
def test_the_search_refuses_what_it_cannot_search(values):
    with pytest.raises(ConfigError):
        SearchConfig(**values)


def test_lora_and_frozen_layers_exclude_each_other():
    with pytest.raises(ConfigError, match="exclude each other"):
        TrainingConfig(lora_rank=4, freeze_layers=1)


def test_the_message_says_what_was_wrong_what_came_and_what_would_do():
    with pytest.raises(ConfigError, match=r"^temperature must be a number above 0\. Got -1 instead\.$"):
        TrainingConfig(temperature=-1)


@pytest.mark.parametrize("config", CONFIGS, ids=id_of)
def test_configs_survive_a_round_trip_through_json(config):
    value = config()
    assert config.from_dict(json.loads(json.dumps(value.to_dict()))) == value


def test_a_config_that_is_not_the_default_survives_too():
    search = SearchConfig(rates=(1e-5, 2e-5), strategy="grid", steps=7)
    assert SearchConfig.from_dict(json.loads(json.dumps(search.to_dict()))) == search


@pytest.mark.parametrize("config", CONFIGS, ids=id_of)
def test_an_unknown_key_is_refused_with_the_nearest_known_one(config):
    name = dataclasses.fields(config)[0].name
    with pytest.raises(ConfigError, match=f"no option '{name}s'. Did you mean '{name}'"):
        config.from_dict({f"{name}s": 1})


def test_the_estimator_has_every_training_option_with_the_same_default():
    from labelspace import DescriptionClassifier

    parameters = inspect.signature(DescriptionClassifier).parameters
    given = {name: parameter.default for name, parameter in parameters.items()}
    expected = vars(TrainingConfig())
    assert {name: given.get(name, "absent") for name in expected} == expected


def test_the_estimator_that_learns_from_labels_has_every_option_of_its_own_with_the_same_default():
    from labelspace import LaConClassifier

    parameters = inspect.signature(LaConClassifier).parameters
    given = {name: parameter.default for name, parameter in parameters.items()}
    expected = vars(LaConConfig())
    assert {name: given.get(name, "absent") for name in expected} == expected


def test_the_estimator_that_knows_its_doubts_has_every_option_of_its_own_with_the_same_default():
    from labelspace import UncertaintyClassifier

    parameters = inspect.signature(UncertaintyClassifier).parameters
    given = {name: parameter.default for name, parameter in parameters.items()}
    expected = vars(UncertaintyConfig())
    assert {name: given.get(name, "absent") for name in expected} == expected


@pytest.mark.parametrize(
    ("values", "message"),
    [
        ({"head": "leam"}, "head 'leam' gives logits and goes with objective 'cross-entropy' only"),
        ({"head": "lsan", "objective": "cross-entropy+supervised-contrastive"}, "'cross-entropy' only"),
        ({"objective": "cross-entropy+self-contrastive", "dropout": False}, "needs dropout=True"),
    ],
    ids=str,
)
def test_options_of_lacon_that_do_not_go_together_are_refused(values, message):
    with pytest.raises(ConfigError, match=message):
        LaConConfig(**values)


def test_a_batch_of_one_pair_has_nothing_to_be_told_from_and_is_refused():
    with pytest.raises(ConfigError, match=r"batch_size must be a whole number at least 2\. Got 1"):
        PrefinetuneConfig(batch_size=1)


def test_both_estimators_share_their_defaults():
    from labelspace import DescriptionClassifier, ZeroShotClassifier

    trained = inspect.signature(DescriptionClassifier).parameters
    for name, parameter in inspect.signature(ZeroShotClassifier).parameters.items():
        assert trained[name].default == parameter.default, name


def test_the_encoder_has_every_encoding_option_with_the_same_default():
    from labelspace import Encoder
    from labelspace.config import EncodingConfig

    parameters = inspect.signature(Encoder).parameters
    assert {name: parameters[name].default for name in vars(EncodingConfig())} == vars(EncodingConfig())
