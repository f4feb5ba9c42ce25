"""Resumable output: formats, refusals at the start, damage, full disks."""

import csv
import datetime
import decimal
import gzip
import json
import os
import stat
import zlib
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from labelspace.corpus import ResumableWriter, open_table
from labelspace.errors import ConfigError, InputError, OutputError

FORMATS = ["parquet", "csv", "tsv", "jsonl", "csv.gz", "tsv.gz", "jsonl.gz", "xlsx"]
NASTY = ["plain", "a, comma", "a\ttab", 'a "quote"', "two\nlines", "cr\rlf", "ünï 😀", " edges ", "", None]
SCHEMA = pa.schema([("id", pa.int64()), ("text", pa.string()), ("score", pa.float32())])
PRINT = {"model": {"sha256": "abc", "heads": [1, 2]}, "batch_rows": 10}


def chunk(number, rows=10):
    ids = range(number * 10, number * 10 + rows)
    return pa.record_batch([list(ids), [NASTY[i % 10] for i in ids], [i / 10 for i in ids]], schema=SCHEMA)


def writer_to(path, **options):
    return ResumableWriter(path, **{"schema": SCHEMA, "fingerprint": PRINT, **options})


def write_chunks(path, numbers, *, finish=True, **options):
    with writer_to(path, **options) as writer:
        for number in list(numbers)[writer.chunks_done :]:
            writer.write(chunk(number))
        if finish:
            writer.finish()
    return path


def names_in(folder):
    return sorted(path.name for path in folder.iterdir())


@pytest.mark.parametrize("suffix", FORMATS)
def test_written_rows_are_read_back(tmp_path, suffix):
    path = write_chunks(tmp_path / f"out.{suffix}", range(3))
    rows = [row for batch in open_table(path).batches() for row in batch.to_pylist()]
    wanted = [row for number in range(3) for row in chunk(number).to_pylist()]
    if suffix.startswith(("csv", "tsv", "xlsx")):
        wanted = [{"id": str(r["id"]), "text": r["text"] or "", "score": str(r["id"] / 10)} for r in wanted]
        wanted = [{**row, "score": row["score"].removesuffix(".0")} for row in wanted]
    if suffix.startswith("jsonl"):
        wanted = [{**row, "score": row["id"] / 10} for row in wanted]
    assert rows == wanted
    assert names_in(tmp_path) == [path.name]


@pytest.mark.parametrize("suffix", FORMATS)
def test_an_interrupted_run_ends_in_the_same_bytes(tmp_path, suffix):
    whole = write_chunks(tmp_path / f"whole.{suffix}", range(5))
    parts = write_chunks(tmp_path / f"parts.{suffix}", range(2), finish=False)
    assert not parts.exists()
    write_chunks(parts, range(4), finish=False, resume=True)
    write_chunks(parts, range(5), resume=True)
    assert parts.read_bytes() == whole.read_bytes()


def test_the_writer_reports_where_to_resume(tmp_path):
    path = write_chunks(tmp_path / "out.csv", range(3), finish=False)
    with writer_to(path, resume=True) as writer:
        assert (writer.rows_done, writer.chunks_done, writer.already_done) == (30, 3, False)


def test_row_groups_are_chunks(tmp_path):
    metadata = pq.read_metadata(write_chunks(tmp_path / "out.parquet", range(3)))
    assert [metadata.row_group(group).num_rows for group in range(metadata.num_row_groups)] == [10, 10, 10]


@pytest.mark.parametrize("suffix", FORMATS)
def test_no_rows_make_a_valid_file(tmp_path, suffix):
    path = write_chunks(tmp_path / f"out.{suffix}", [])
    assert [batch for batch in open_table(path).batches() if batch.num_rows] == []
    if suffix.startswith("csv"):
        assert open_table(path).columns == ["id", "text", "score"]


def test_chunks_without_rows_are_ignored(tmp_path):
    with writer_to(tmp_path / "out.csv") as writer:
        writer.write(chunk(0, rows=0))
        assert (writer.rows_done, writer.chunks_done) == (0, 0)


def test_csv_is_quoted_as_python_reads_it(tmp_path):
    path = write_chunks(tmp_path / "out.csv", range(1))
    with path.open(newline="") as lines:
        rows = list(csv.reader(lines))
    assert [row[1] for row in rows] == ["text", *[text or "" for text in NASTY]]
    assert path.read_bytes().startswith(
        b'id,text,score\n0,plain,0\n1,"a, comma",0.1\n2,a\ttab,0.2\n3,"a ""quote""",0.3\n'
    )


def test_an_empty_cell_alone_on_its_line_is_still_a_row(tmp_path):
    rows = pa.record_batch({"text": ["a", "", None]})
    path = tmp_path / "out.csv"
    with ResumableWriter(path, schema=rows.schema, fingerprint={}) as writer:
        writer.write(rows)
        writer.finish()
    assert path.read_text() == 'text\na\n""\n""\n'
    assert sum(batch.num_rows for batch in open_table(path).batches()) == 3


RARE = {
    "list": (pa.array([["ä", "b"], None]), '["ä", "b"]', ["ä", "b"]),
    "struct": (pa.array([{"a": 1, "b": None}, None]), '{"a": 1, "b": null}', {"a": 1, "b": None}),
    "bool": (pa.array([True, None]), "true", True),
    "date": (pa.array([datetime.date(2024, 1, 2), None]), "2024-01-02", "2024-01-02"),
    "nanoseconds": (pa.array([1, None], pa.timestamp("ns")), *["1970-01-01 00:00:00.000000001"] * 2),
    "decimal": (pa.array([decimal.Decimal("1.50"), None]), "1.50", "1.50"),
    "bytes": (pa.array([b"caf\xc3\xa9", None]), "café", "café"),
    "other bytes": (pa.array([b"\xff", None]), "/w==", "/w=="),
    "category": (pa.array(["x", None]).dictionary_encode(), "x", "x"),
    "duration": (pa.array([datetime.timedelta(seconds=5), None]), None, None),
    "large string": (pa.array(["x", None], pa.large_string()), "x", "x"),
    "float": (pa.array([0.1, None], pa.float32()), "0.1", 0.1),
    "nan": (pa.array([float("nan"), None]), "nan", None),
    "infinity in a list": (pa.array([[1.0, float("inf")], None]), "[1.0, null]", [1.0, None]),
    "nothing": (pa.nulls(2), "", None),
}


@pytest.mark.parametrize(("column", "in_csv", "in_json"), RARE.values(), ids=RARE.keys())
def test_every_type_can_be_written_in_every_format(tmp_path, column, in_csv, in_json):
    rows = pa.record_batch([pa.array(["a", "b"]), column], names=["text", "v"])
    for suffix in ("csv", "jsonl", "parquet"):
        with ResumableWriter(tmp_path / f"out.{suffix}", schema=rows.schema, fingerprint={}) as writer:
            writer.write(rows)
            writer.finish()
    cells = [row["v"] for row in csv.DictReader((tmp_path / "out.csv").read_text().splitlines())]
    assert cells[1] == ""
    values = [json.loads(line)["v"] for line in (tmp_path / "out.jsonl").read_text().splitlines()]
    assert values[1] is None
    if in_csv is not None:
        assert (cells[0], values[0]) == (in_csv, in_json)
    assert pq.read_table(tmp_path / "out.parquet").column("v").combine_chunks().equals(column) or "nan" in str(column)


def test_jsonl_keeps_non_ascii_letters(tmp_path):
    assert "ünï 😀" in write_chunks(tmp_path / "out.jsonl", range(1)).read_text(encoding="utf-8")


def test_an_existing_file_is_kept_unless_overwrite_is_set(tmp_path):
    path = tmp_path / "out.csv"
    path.write_text("precious")
    path.chmod(0o600)
    with pytest.raises(InputError, match=r"exists already; .*--overwrite"), writer_to(path):
        pass
    write_chunks(path, range(1), finish=False, overwrite=True)
    assert path.read_text() == "precious"
    write_chunks(path, range(1), resume=True)
    assert path.read_text().startswith("id,text")
    assert stat.S_IMODE(path.stat().st_mode) == 0o600
    assert names_in(tmp_path) == ["out.csv"]


@pytest.mark.parametrize("name", [".", "/"])
def test_a_folder_is_no_output(name):
    with pytest.raises(InputError, match="the extension must tell the format"):
        writer_to(name)


def test_an_unfinished_run_is_kept_unless_an_option_is_set(tmp_path):
    path = write_chunks(tmp_path / "out.csv", range(2), finish=False)
    with pytest.raises(InputError, match=r"not finished .*--resume.*--overwrite"), writer_to(path):
        pass
    assert len(names_in(path.with_name("out.csv.parts"))) == 4
    with writer_to(path, overwrite=True) as writer:
        assert writer.rows_done == 0
        writer.write(chunk(7))
        writer.finish()
    assert path.read_text().splitlines()[1].startswith("70,")


def test_a_finished_file_has_nothing_to_resume(tmp_path):
    path = write_chunks(tmp_path / "out.csv", range(2))
    before = path.read_bytes()
    with writer_to(path, resume=True) as writer:
        assert writer.already_done
        with pytest.raises(OutputError, match="it is complete"):
            writer.write(chunk(0))
        writer.finish()
    assert path.read_bytes() == before
    assert names_in(tmp_path) == ["out.csv"]


def test_resume_and_overwrite_exclude_each_other(tmp_path):
    with pytest.raises(ConfigError, match="choose one"):
        writer_to(tmp_path / "out.csv", resume=True, overwrite=True)


def test_resuming_another_run_names_the_differences(tmp_path):
    path = write_chunks(tmp_path / "out.csv", range(2), finish=False)
    other = {"model": {"sha256": "def", "heads": [1, 3]}, "batch_rows": 10, "new": None, "temperature": 2}
    with pytest.raises(InputError) as caught, writer_to(path, resume=True, fingerprint=other):
        pass
    said = str(caught.value)
    assert "model.heads.1 was 2, now 3; model.sha256 was 'abc', now 'def'; temperature was None, now 2." in said
    assert "batch_rows" not in said
    assert "\n" not in said
    with pytest.raises(InputError, match=r"columns lost \[\['score', 'float'\]\]"):
        writer_to(path, resume=True, schema=SCHEMA.remove(2)).__enter__()
    more = SCHEMA.append(pa.field("more", pa.string()))
    with pytest.raises(InputError, match=r"columns gained \[\['more', 'string'\]\]"):
        writer_to(path, resume=True, schema=more).__enter__()
    with writer_to(path, resume=True) as writer:  # the refusal lost nothing
        assert writer.rows_done == 20


def test_an_unfinished_run_without_rows_leaves_nothing(tmp_path):
    with pytest.raises(RuntimeError), writer_to(tmp_path / "out.csv"):
        raise RuntimeError
    assert names_in(tmp_path) == []


@pytest.mark.parametrize("suffix", ["parquet", "csv", "jsonl.gz"])
@pytest.mark.parametrize("damage", ["cut", "flip", "empty", "gone"])
def test_a_damaged_part_and_all_later_ones_are_written_again(tmp_path, suffix, damage):
    whole = write_chunks(tmp_path / f"whole.{suffix}", range(5))
    path = write_chunks(tmp_path / f"out.{suffix}", range(4), finish=False)
    parts = path.with_name(path.name + ".parts")
    part = next(parts.glob("000001.*"))
    data = bytearray(part.read_bytes())
    data[len(data) // 2] ^= 1
    if damage == "gone":
        part.unlink()
    else:
        part.write_bytes({"cut": part.read_bytes()[:-3], "flip": data, "empty": b""}[damage])
    (parts / "000004.10.00000000.csv.tmp").write_text("half a")
    with writer_to(path, resume=True) as writer:
        assert writer.rows_done == 10
        assert len(names_in(parts)) == 3  # lock, state, one part
    write_chunks(path, range(5), resume=True)
    assert path.read_bytes() == whole.read_bytes()
    assert names_in(tmp_path) == sorted([path.name, whole.name])


def test_a_part_damaged_during_the_run_stops_finish(tmp_path):
    path = tmp_path / "out.csv"
    with writer_to(path) as writer:
        writer.write(chunk(0))
        next(writer.parts.glob("000000.*")).write_text("x")
        with pytest.raises(OutputError, match=r"was damaged after it was written; run again with --resume"):
            writer.finish()
    assert not path.exists()


def test_a_part_lost_during_the_run_stops_finish(tmp_path):
    path = tmp_path / "out.csv"
    with writer_to(path) as writer:
        writer.write(chunk(0))
        writer.write(chunk(1))
        next(writer.parts.glob("000001.*")).unlink()
        with pytest.raises(OutputError, match="holds 1 of the 2 chunks"):
            writer.finish()
    assert not path.exists()


def test_a_damaged_state_asks_for_overwrite(tmp_path):
    path = write_chunks(tmp_path / "out.csv", range(2), finish=False)
    (tmp_path / "out.csv.parts" / "state.json").write_text("{")
    with (
        pytest.raises(InputError, match=r"state\.json: is damaged; start again with --overwrite"),
        writer_to(path, resume=True),
    ):
        pass
    write_chunks(path, range(2), overwrite=True)


@pytest.mark.skipif(not Path("/proc/self/fd").exists(), reason="no /proc to look up the names of open files")
def test_files_are_complete_and_synced_before_they_are_renamed(tmp_path, monkeypatch):
    synced, sync = [], os.fsync
    monkeypatch.setattr(
        os, "fsync", lambda handle: (synced.append(Path(f"/proc/self/fd/{handle}").readlink()), sync(handle))
    )
    write_chunks(tmp_path / "out.csv", range(2))
    files = [path.name for path in synced if path.suffix not in {".parts"} and path != tmp_path]
    assert [name.split(".")[0] for name in files] == ["state", "000000", "000001", "whole"]
    assert all(name.endswith(".tmp") for name in files)
    assert synced[-1] == tmp_path  # the final rename is on the disk before a part is removed


def test_part_names_contain_rows_and_checksum(tmp_path):
    path = write_chunks(tmp_path / "out.jsonl", range(1), finish=False)
    (part,) = (tmp_path / "out.jsonl.parts").glob("000000.*")
    assert part.name == f"000000.10.{zlib.crc32(part.read_bytes()):08x}.jsonl"
    assert not path.exists()


def test_unknown_files_in_the_parts_folder_are_left_alone(tmp_path):
    path = write_chunks(tmp_path / "out.csv", range(2), finish=False)
    (tmp_path / "out.csv.parts" / "notes.txt").write_text("mine")
    write_chunks(path, range(2), overwrite=True)
    assert (tmp_path / "out.csv.parts.finished" / "notes.txt").read_text() == "mine"
    write_chunks(path, range(3), overwrite=True)  # they are not in the way of another run
    assert {file.name for file in tmp_path.iterdir()} == {"out.csv", "out.csv.parts.finished"}


@pytest.mark.skipif(os.name == "nt", reason="a link needs a privilege there")
def test_a_link_stays_a_link_to_the_new_file(tmp_path):
    (tmp_path / "whole.csv").write_text("old")
    (tmp_path / "link.csv").symlink_to("whole.csv")
    write_chunks(tmp_path / "link.csv", range(1), overwrite=True)
    assert (tmp_path / "link.csv").is_symlink()
    assert (tmp_path / "whole.csv").read_text().startswith("id")


def test_an_empty_name_is_refused():
    with pytest.raises(InputError, match="the name of a file is empty"):
        writer_to("")


def test_two_processes_cannot_write_the_same_file(tmp_path):
    path = tmp_path / "out.csv"
    with writer_to(path) as writer:
        writer.write(chunk(0))
        for options in ({"resume": True}, {"overwrite": True}):
            with pytest.raises(OutputError, match="another process is writing it"), writer_to(path, **options):
                pass
        writer.write(chunk(1))
        writer.finish()
    assert len(open_table(path).batches().__next__()) == 20


@pytest.mark.parametrize(
    ("name", "said"),
    [
        ("nowhere/out.csv", "there is no folder"),
        ("folder.csv", "in the way"),
        ("taken.csv", "in the way"),
    ],
)
def test_an_unusable_path_is_refused_at_once(tmp_path, name, said):
    (tmp_path / "folder.csv").mkdir()
    (tmp_path / "taken.csv.parts").write_text("")
    with pytest.raises(OutputError, match=said), writer_to(tmp_path / name):
        pass


@pytest.mark.skipif(not Path("/proc/self").exists(), reason="no /proc, the one folder that root cannot write")
def test_an_unwritable_folder_is_refused_at_once():
    with pytest.raises(OutputError, match=r"/proc/out\.csv: cannot be written .*Nothing is lost") as caught:
        writer_to("/proc/out.csv").__enter__()
    assert "\n" not in str(caught.value)


def test_columns_that_the_format_cannot_hold_are_refused_at_once(tmp_path):
    with pytest.raises(InputError, match=r"out\.xlsx: the table has 16,385 columns, and \.xlsx holds 16,384; name a"):
        writer_to(tmp_path / "out.xlsx", schema=pa.schema([(f"c{number}", pa.string()) for number in range(16_385)]))
    with pytest.raises(InputError, match="parquet cannot hold these columns"):
        writer_to(tmp_path / "out.parquet", schema=pa.schema([("a", pa.struct([]))]))
    with pytest.raises(InputError, match="two columns would share a name"):
        writer_to(tmp_path / "out.csv", schema=pa.schema([("a", pa.string())] * 2))


def test_a_chunk_with_other_columns_is_refused(tmp_path):
    with writer_to(tmp_path / "out.csv") as writer, pytest.raises(InputError, match=r"expected id \(int64\), text"):
        writer.write(pa.record_batch({"id": [1]}))


def test_metadata_of_the_input_does_not_reach_the_output(tmp_path):
    rows = pa.record_batch({"text": ["a"]}).replace_schema_metadata({"huggingface": "{}"})
    with ResumableWriter(tmp_path / "out.parquet", schema=rows.schema, fingerprint={}) as writer:
        writer.write(rows)
        writer.finish()
    assert pq.read_schema(tmp_path / "out.parquet").metadata is None


def test_gzip_output_is_one_valid_file(tmp_path):
    path = write_chunks(tmp_path / "out.jsonl.gz", range(3))
    assert len(gzip.decompress(path.read_bytes()).splitlines()) == 30
