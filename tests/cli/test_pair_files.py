"""Files of pairs on the command line: paths, columns given for a single file, and refusals."""

import json

import pytest

from labelspace.cli.pair_files import open_files, parse_files
from labelspace.errors import ConfigError, InputError

OPTIONS = {
    **{"anchor": "anchor", "positive": "positive", "source": "source", "score": "label"},
    **{"text": "text", "label": "label", "labels": None, "min_score": None},
}


def opened(*files, **options):
    return open_files(files, {**OPTIONS, **options}, seed=options.get("seed", 0))


@pytest.mark.parametrize(
    ("kind", "word", "path", "own"),
    [
        ("pairs", "qa.tsv", "qa.tsv", {}),
        ("pairs", "C:\\data\\qa.tsv", "C:\\data\\qa.tsv", {}),
        ("pairs", "C:\\data\\qa.tsv:anchor=q, positive=a", "C:\\data\\qa.tsv", {"anchor": "q", "positive": "a"}),
        ("pairs", "2024:05/*.jsonl:source=", "2024:05/*.jsonl", {"source": ""}),
        ("labelled", "x.csv:labels=D:\\x=y.yaml", "x.csv", {"labels": "D:\\x=y.yaml"}),
        ("labelled", "x.csv:labels=,text=the body", "x.csv", {"labels": "", "text": "the body"}),
        ("scored", "sts.tsv:score=a:b,min_score=3.5", "sts.tsv", {"score": "a:b", "min_score": 3.5}),
    ],
)
def test_a_path_ends_where_the_first_key_begins(kind, word, path, own):
    (found,) = parse_files(kind, [word])
    assert (found.kind, found.given, found.path, found.own) == (kind, word, path, own)


def test_an_existing_path_is_never_split(tmp_path):
    path = tmp_path / "qa.csv:anchor=q"
    assert parse_files("pairs", [str(path)])[0].own == {"anchor": "q"}
    path.write_text("")
    assert parse_files("pairs", [str(path)])[0][2:] == (str(path), {})


def test_a_glob_that_matches_files_is_not_split(tmp_path):
    runs = tmp_path / "runs:lr=1"
    runs.mkdir()
    word = f"{runs}/*.csv"
    with pytest.raises(ConfigError, match="no key 'lr'"):
        parse_files("pairs", [word])
    (runs / "qa.csv").write_text("anchor,positive\na,A\n")
    (found,) = parse_files("pairs", [word])
    assert (found.path, found.own) == (word, {})
    (source,) = opened(found)
    assert [pair.positive for pair in source] == ["A"]
    (found,) = parse_files("pairs", [f"{tmp_path}/*/*.csv:anchor=q"])
    assert (found.path, found.own) == (f"{tmp_path}/*/*.csv", {"anchor": "q"})


def test_a_word_too_long_for_a_path_is_split():
    (found,) = parse_files("pairs", [f"qa.csv:anchor={'q' * 5000}"])
    assert (found.path, found.own) == ("qa.csv", {"anchor": "q" * 5000})


@pytest.mark.parametrize(
    ("kind", "own", "said"),
    [
        ("pairs", "anchr=q", "no key 'anchr'. Did you mean 'anchor'? There are: anchor, positive, source; for columns"),
        ("pairs", "anchor-column=q", "no key 'anchor-column'. Did you mean 'anchor'? There are"),
        ("pairs", "min_score=1", "no key 'min_score'. There are: anchor, positive, source; for columns"),
        (
            "labelled",
            "text=body,topic",
            "no key 'topic'. There are: text, label, labels; for columns with a comma use --text-column and its kin.",
        ),
        ("labelled", "text=body,label", "label has no value; say label=..., or leave it out."),
        ("scored", "score=", "score has no value; say score=..., or leave it out."),
        ("scored", "anchor=a,anchor=b", "anchor is there twice; leave one out."),
        ("scored", "min_score=high", "min_score must be a number. Got 'high' instead."),
    ],
)
def test_an_invalid_key_is_refused_in_one_line(kind, own, said):
    with pytest.raises(ConfigError) as refused:
        parse_files(kind, [f"x.csv:{own}"])
    assert str(refused.value).startswith(f"--{kind} x.csv:{own}: {said}")
    assert "\n" not in str(refused.value)


def test_an_invalid_key_is_refused_before_any_file_is_opened(run, refused, tmp_path):
    said = refused(run("prefinetune", "--pairs", "x.tsv:postive=a", "--out", tmp_path / "model"))
    assert "Did you mean 'positive'?" in said


def test_a_file_given_twice_is_refused(run, refused, tmp_path):
    path = tmp_path / "qa.csv"
    path.write_text("anchor,positive\na,b\n")
    said = refused(run("prefinetune", "--pairs", path, "--pairs", path, "--out", tmp_path / "model"))
    assert said == f"error: --pairs {path} is there 2 times; leave one of them."


def test_a_labelled_text_is_paired_with_a_description_or_the_name_of_its_label(label_file, documents):
    def positives(own="", **options):
        return [pair.positive for pair in opened(*parse_files("labelled", [f"{documents}{own}"]), **options)[0]]

    assert set(positives()) == {"sports", "money"}
    described = positives(labels=label_file)
    assert all(len(text) > 20 for text in described)
    assert described != positives(labels=label_file, seed=1)
    assert positives(f":labels={label_file}") == described
    assert set(positives(":labels=", labels=label_file)) == {"sports", "money"}


def test_an_empty_source_means_no_source_column(tmp_path):
    path = tmp_path / "qa.jsonl"
    path.write_text("".join(json.dumps({"q": f"q {n}", "positive": "a", "source": f"s{n}"}) + "\n" for n in range(3)))
    (one,) = opened(*parse_files("pairs", [f"{path}:anchor=q,source="]))
    assert {pair.source for pair in one} == {"qa"}
    (one,) = opened(*parse_files("pairs", [f"{path}:anchor=q,source=source"]), source="")
    assert {pair.source for pair in one} == {"s0", "s1", "s2"}


def test_one_file_can_be_two_sources_with_different_columns(tmp_path):
    path = tmp_path / "papers.csv"
    path.write_text("title,abstract,summary\nt,a,s\n")
    words = [f"{path}:anchor=abstract,positive={column}" for column in ("title", "summary")]
    sources = opened(*parse_files("pairs", words))
    assert [source.name for source in sources] == words
    assert [pair.positive for source in sources for pair in source] == ["t", "s"]


def test_one_file_that_is_spelt_in_two_ways_is_one_source(tmp_path):
    path = tmp_path / "qa.csv"
    path.write_text("anchor,positive\na,A\n")
    for other in (f"{tmp_path}/./qa.csv", f"{path}:anchor=anchor"):
        with pytest.raises(ConfigError, match="are one file; leave one of them"):
            opened(*parse_files("pairs", [str(path), other]))


def test_a_min_score_for_one_file_does_not_apply_to_others(tmp_path):
    path = tmp_path / "sts.tsv"
    path.write_text("anchor\tpositive\tlabel\na\tA\t4\nb\tB\t2\n")
    own = parse_files("scored", [f"{path}:min_score=2"])
    assert len(list(opened(*own)[0])) == len(list(opened(*own, min_score=5)[0])) == 2
    with pytest.raises(ConfigError, match="need one another"):
        opened(*own, *parse_files("scored", [str(path)]))


def test_a_missing_column_is_refused_with_the_name_of_the_file(tmp_path):
    path = tmp_path / "qa.csv"
    path.write_text("anchor,positive\na,A\n")
    with pytest.raises(InputError, match=r"qa\.csv has no column 'question'.*anchor, positive"):
        opened(*parse_files("pairs", [f"{path}:anchor=question"]))
