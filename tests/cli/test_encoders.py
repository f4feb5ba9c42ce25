"""The command encoders."""

import json

from labelspace.encoders import DEFAULT_ENCODER, KNOWN_ENCODERS


def test_every_known_encoder_is_a_row(run):
    result = run("encoders")
    assert result.exit_code == 0
    assert result.stderr == ""
    first_words = [line.split(" ")[0] for line in result.stdout.splitlines()]
    assert first_words[1 : 1 + len(KNOWN_ENCODERS)] == [spec.short_name for spec in KNOWN_ENCODERS]
    assert DEFAULT_ENCODER in result.stdout


def test_the_table_fits_80_columns(run):
    assert max(len(line.rstrip()) for line in run("encoders").stdout.splitlines()[:-2]) <= 80


def test_json_has_names_prompts_and_sources(run):
    told = {entry["name"]: entry for entry in json.loads(run("encoders", "--json").stdout)}
    assert told["intfloat/e5-base-v2"]["text_prompt"] == "query: "
    assert told[DEFAULT_ENCODER]["default"]
    assert {entry["runs_here"] for entry in told.values()} <= {"package", "hub cache", None}
