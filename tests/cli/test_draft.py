"""The command draft: what it asks, keeps, writes and refuses, with a server on this machine or a tiny local model."""

import json
import re

import pytest

from families.endpoint_server import Server
from families.tiny_causal import tiny_causal
from labelspace import LabelSpace
from tiny_rows import WORDS, tiny_rows

NAMES = sorted(WORDS)

pytestmark = pytest.mark.usefixtures("no_key_in_environment")


@pytest.fixture
def labels(tmp_path):
    file = tmp_path / "labels.yaml"
    file.write_text("# mine\nlabels:\n" + "".join(f"  - name: {name}\n" for name in NAMES), encoding="utf-8")
    return file


@pytest.fixture
def pool(tmp_path):
    file = tmp_path / "pool.jsonl"
    rows = tiny_rows(240, doubtful=0.2)[0]
    file.write_text("".join(json.dumps({"text": text}) + "\n" for text in rows), encoding="utf-8")
    return file


def answer(body) -> str:
    """Answer as a good model would: the words of the label that the question is about, or of both."""
    question = body["messages"][1]["content"]
    one, *others = re.findall(r'"(\w+)"', question[question.rindex("Write") :])
    if others:
        two = WORDS[one], WORDS[others[0]]
        texts = [f"here {own[0]} and {own[1]}, no {other[0]}" for own, other in (two, two[::-1])]
    else:
        texts = [f"the {' and the '.join(WORDS[one][start : start + 3])}" for start in range(3)]
    return json.dumps({"descriptions": texts})


@pytest.fixture
def draft(run, labels, pool, tiny_encoder_folder, tmp_path):
    """A function that runs the command against a server, and returns its result and the server."""

    def go(*options, says=answer):
        with Server(says=says) as server:
            model = ("--model", f"openai:m@{server.url}", "--encoder", tiny_encoder_folder)
            return run("draft", labels, *model, *options), server

    return go


@pytest.mark.slow
def test_drafts_that_raise_the_estimate_are_written_and_marked_and_the_control_stands_beside(
    draft, pool, tmp_path, monkeypatch
):
    # The tiny encoder knows no language: with most seeds neutral texts help as much, and nothing is kept. So its
    # numbers must be the same on every processor.
    monkeypatch.setattr("labelspace.encoders.precision.has_native_bfloat16", lambda device: False)
    out = tmp_path / "out.yaml"
    result, server = draft("--pool", pool, "--out", out, "--price", 2, "--seed", 8)
    assert result.exit_code == 0, result.output
    kept, of = map(int, re.findall(r"kept (\d+) of (\d+) drafts", result.stdout)[0])
    assert 0 < kept <= of == 3 * 3 + 2 * (len(server.bodies) - 3)
    written = out.read_text(encoding="utf-8")
    assert written.startswith("# mine\nlabels:\n")
    assert written.count(f"# draft by openai:m@{server.url}, prompt 1, seed 8") == kept
    assert sum(map(len, LabelSpace.from_file(out).descriptions)) == kept == result.stdout.count("  + ")
    for name in ("label file", "with drafts", "with neutral texts"):
        assert re.search(rf"{name} .* 0\.\d\d \(", result.stdout)
    (told,) = [line for line in result.stderr.splitlines() if " calls, " in line]
    assert re.search(
        rf"m@.*: {len(server.bodies)} calls, about [\d,]+ tokens of input, about [\d.e-]+ at 2 per million; .*"
        "names, descriptions and some documents of the pool leave this machine",
        told,
    )


@pytest.mark.slow
def test_the_documents_of_a_question_are_drawn_by_the_seed(draft, pool):
    first, same, other = (
        draft("--pool", pool, "--seed", seed, "--pairs", 0, "--keep", "all")[1].bodies for seed in (0, 0, 1)
    )
    assert first == [{**body, "model": "m"} for body in same]
    assert [body["messages"] for body in first] != [body["messages"] for body in other]
    assert first[0]["messages"][1]["content"].count("- the ") == 6


def test_without_a_pool_drafts_are_printed_or_all_kept(draft, refused, tmp_path):
    out = tmp_path / "out.yaml"
    result, server = draft("--out", out)
    assert "without --pool nothing tells which drafts help" in refused(result)
    assert server.bodies == []
    result, _ = draft()
    assert (result.exit_code, result.stdout.count("  + ")) == (0, 9)
    assert "names and descriptions leave this machine" in result.stderr
    result, _ = draft("--out", out, "--keep", "all", "--each", 2)
    assert result.exit_code == 0, result.output
    assert list(map(len, LabelSpace.from_file(out).descriptions)) == [2, 2, 2]


def test_json_holds_drafts_and_figures(draft, pool):
    told = json.loads(draft("--pool", pool, "--json", "--quiet", "--pairs", 1, "--keep", "all")[0].stdout)
    assert [one["label"] for one in told["drafts"][:9]] == [name for name in NAMES for _ in range(3)]
    assert [one["against"] is None for one in told["drafts"]] == [True] * 9 + [False] * 2
    assert told["estimate"]["with_neutral_texts"]["accuracy"]["expected"] > 0


def test_with_keep_all_a_small_pool_only_shows_the_style(draft, tmp_path):
    small = tmp_path / "small.jsonl"
    small.write_text('{"text": "the coach and the player"}\n', encoding="utf-8")
    result, server = draft("--pool", small, "--keep", "all")
    assert "1 documents are too few for an estimate" in result.stderr
    assert "- the coach and the player" in server.bodies[0]["messages"][1]["content"]


def test_drafts_for_texts_of_several_labels_are_all_kept_without_an_estimate(draft, labels, pool, tmp_path):
    labels.write_text(f"several: true\n{labels.read_text(encoding='utf-8')}", encoding="utf-8")
    result, _ = draft("--pool", pool, "--keep", "all", "--out", tmp_path / "out.yaml")
    assert "estimate" not in result.stdout
    assert LabelSpace.from_file(tmp_path / "out.yaml").several


def test_what_cannot_work_is_refused_before_any_call(run, draft, refused, pool, labels, tmp_path):
    small = tmp_path / "small.jsonl"
    small.write_text('{"text": "the coach"}\n', encoding="utf-8")
    several = tmp_path / "several.yaml"
    several.write_text("several: true\nlabels: [sports, money]\n", encoding="utf-8")
    assert "judged for one label a text" in refused(run("draft", several, "--model", "llm:m", "--pool", pool))
    for options, message in (
        (("--pool", small), "needs 100 different documents or more. Got 1;"),
        (("--pool", pool, "--out", tmp_path / "out.json"), "must end in .yaml or .yml, because comments mark"),
        (("--pool", pool, "--out", labels), "exists already"),
        (("--pool", pool, "--out", tmp_path / "no" / "out.yaml"), "there is no folder"),
        (("--each", 0), "--each must be"),
        (("--keep", "some"), "keep"),
    ):
        result, server = draft(*options)
        assert message in refused(result)
        assert server.bodies == []


def test_a_model_that_is_none_is_refused(run, refused, labels, tmp_path):
    for model, message in (
        ("nli:some/model", "--model must be openai:MODEL"),
        ("openai:gpt", "OPENAI_API_KEY is not set"),
        (f"llm:{tmp_path / 'nowhere'}", "nowhere"),
    ):
        assert message in refused(run("draft", labels, "--model", model))


def test_a_model_without_a_usable_answer_is_an_error_and_writes_nothing(draft, pool, tmp_path):
    result, server = draft("--pool", pool, "--out", tmp_path / "out.yaml", "--pairs", 0, says=lambda body: "no")
    assert result.exit_code == 2
    assert "gave no usable description in 3 questions; try another model" in result.stderr
    assert len(server.bodies) == 6
    assert not (tmp_path / "out.yaml").exists()


def test_drafts_that_arrived_before_an_error_are_printed(run, labels):
    def status(body):
        return 401 if body["messages"][1]["content"].endswith('"world".') else None

    with Server(says=answer, fails=status) as server:
        result = run("draft", labels, "--model", f"openai:m@{server.url}")
    assert result.exit_code == 2
    assert "wants a key (401)" in result.stderr
    assert result.stdout.count("  - the ") == 6


@pytest.mark.slow
def test_a_local_model_is_asked_on_this_machine(run, labels, tmp_path):
    """Its weights are random, so it writes words in no order, among them control characters."""
    model, out = f"llm:{tiny_causal('qwen3-chat')}", tmp_path / "out.yaml"
    options = ("--each", 1, "--keep", "all", "--device", "cpu")
    result = run("draft", labels, "--model", model, "--out", out, *options)
    assert result.exit_code == 0, result.output
    assert "3 calls" in result.stderr
    assert "leave this machine" not in result.stderr
    assert f"# draft by {model}, prompt 1, seed 0" in out.read_text(encoding="utf-8")
    assert result.stdout.replace("\n", "").isprintable()
