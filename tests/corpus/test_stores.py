"""Files in a store are read and written as files here, against a real S3 server: moto's, in a process of its own."""

import gzip
import importlib.util
import io
import json
import os
import signal
import socket
import subprocess
import sys
import time
import urllib.request
from collections.abc import Callable, Iterator
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from pyarrow import fs

from labelspace.corpus import ResumableWriter, open_table, writers
from labelspace.corpus.stores import StoredFile, located
from labelspace.errors import InputError, OutputError

needs_server = pytest.mark.skipif(
    importlib.util.find_spec("moto") is None, reason="needs moto: `make slow` installs it"
)
ROWS = 23
TABLE = pa.table({"id": [f"{n:03d}" for n in range(ROWS)], "text": [f'say "{n}",\nü' for n in range(ROWS)]})
BATCHES = TABLE.to_batches(max_chunksize=5)


@pytest.fixture(scope="module")
def server() -> Iterator[str]:
    """Start an S3 server on a free port; return its address, after credentials that it takes were set."""
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        address = f"127.0.0.1:{free.getsockname()[1]}"
    line = [sys.executable, "-m", "moto.server", "-p", address.partition(":")[2]]
    with (
        pytest.MonkeyPatch.context() as patch,
        subprocess.Popen(line, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL) as process,
    ):
        for name in ("AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY"):
            patch.setenv(name, "fake")
        patch.setenv("AWS_EC2_METADATA_DISABLED", "true")
        deadline = time.monotonic() + 60
        while True:
            try:
                urllib.request.urlopen(f"http://{address}/", timeout=5).close()
                break
            except OSError:
                assert time.monotonic() < deadline
                time.sleep(0.1)
        yield address
        process.terminate()


@pytest.fixture
def bucket(server: str) -> fs.FileSystem:
    """A new bucket; paths begin at its root."""
    store = fs.S3FileSystem(endpoint_override=server, scheme="http", region="us-east-1", allow_bucket_creation=True)
    name = f"bucket-{time.monotonic_ns()}"
    store.create_dir(name)
    return fs.SubTreeFileSystem(name, store)


@pytest.fixture
def address(bucket: fs.SubTreeFileSystem, server: str) -> Callable[[str], str]:
    """Return the address of a name in the bucket."""
    end = f"?endpoint_override={server}&scheme=http&region=us-east-1"
    return lambda name: f"s3://{bucket.base_path.strip('/')}/{name}{end}"


def put(bucket: fs.FileSystem, name: str, data: bytes) -> None:
    with bucket.open_output_stream(name, compression=None) as file:
        file.write(data)


def get(bucket: fs.FileSystem, name: str) -> bytes:
    with bucket.open_input_file(name) as file:
        return file.read()


def names(bucket: fs.FileSystem) -> list[str]:
    return sorted(info.path for info in bucket.get_file_info(fs.FileSelector("", recursive=True)))


def as_bytes(suffix: str) -> bytes:
    """The table as a file of this kind, written here."""
    if suffix == "parquet":
        sink = io.BytesIO()
        pq.write_table(TABLE, sink, row_group_size=4)
        return sink.getvalue()
    if suffix.startswith("jsonl"):
        text = "".join(f"{json.dumps(row)}\n" for row in TABLE.to_pylist())
    else:
        cells = [(row["id"], row["text"].replace('"', '""')) for row in TABLE.to_pylist()]
        text = "id,text\n" + "".join(f'{id},"{text}"\n' for id, text in cells)
    return gzip.compress(text.encode()) if suffix.endswith(".gz") else text.encode()


def write(place: Any, batches: list[pa.RecordBatch], *, finish: bool = True, **options: Any) -> ResumableWriter:
    with ResumableWriter(place, schema=TABLE.schema, fingerprint={"model": "m"}, **options) as writer:
        if writer.already_done:
            return writer
        for batch in batches[writer.chunks_done :]:
            writer.write(batch)
        if finish:
            writer.finish()
    return writer


@needs_server
@pytest.mark.slow
@pytest.mark.parametrize("suffix", ["parquet", "csv", "csv.gz", "jsonl", "jsonl.gz"])
def test_a_file_in_a_store_is_read_as_one_here(suffix, bucket, address, tmp_path):
    (tmp_path / f"in.{suffix}").write_bytes(as_bytes(suffix))
    put(bucket, f"some/in.{suffix}", as_bytes(suffix))
    here, there = (
        open_table(place, batch_rows=5) for place in (tmp_path / f"in.{suffix}", address(f"some/in.{suffix}"))
    )
    assert pa.Table.from_batches(there.batches()) == pa.Table.from_batches(here.batches()) == TABLE
    assert pa.Table.from_batches(there.batches(skip_rows=10)) == TABLE.slice(10)
    assert there.place(7) == f"s3://{bucket.base_path}some/in.{suffix}: row 8"
    assert {**there.fingerprint()["files"][0], "mtime_ns": 0} == {**here.fingerprint()["files"][0], "mtime_ns": 0}
    assert there.bytes_read() == there.bytes_total == len(as_bytes(suffix))


@needs_server
@pytest.mark.slow
def test_a_star_names_the_files_of_a_folder_in_sorted_order(bucket, address):
    for name, part in (("b", TABLE.slice(10)), ("a", TABLE.slice(0, 10))):
        sink = io.BytesIO()
        pq.write_table(part, sink)
        put(bucket, f"some/{name}.parquet", sink.getvalue())
    put(bucket, "some/other.txt", b"no table")
    assert pa.Table.from_batches(open_table(address("some/*.parquet")).batches()) == TABLE
    with pytest.raises(InputError, match=r"some/\*\.csv: no file matches"):
        open_table(address("some/*.csv"))
    with pytest.raises(InputError, match=r"only the last part of an address may hold \*"):
        open_table(address("*/a.parquet"))


@needs_server
@pytest.mark.slow
@pytest.mark.parametrize("suffix", ["parquet", "csv", "csv.gz", "jsonl", "xlsx"])
def test_an_interrupted_run_resumes_in_the_store_to_the_bytes_of_a_file_here(suffix, bucket, address, tmp_path):
    write(tmp_path / f"out.{suffix}", BATCHES)
    target = address(f"some/out.{suffix}")
    write(target, BATCHES[:3], finish=False)
    assert "some/out." + suffix not in names(bucket)
    with pytest.raises(InputError, match=rf"out.{suffix}: an earlier run was not finished \(out.{suffix}.parts/\)"):
        write(target, BATCHES)
    assert write(target, BATCHES, resume=True).rows_done == ROWS
    assert get(bucket, f"some/out.{suffix}") == (tmp_path / f"out.{suffix}").read_bytes()
    assert names(bucket) == ["some", f"some/out.{suffix}"], "no part and no mark of a folder stays"
    with pytest.raises(InputError, match="exists already"):
        write(target, BATCHES)
    assert write(target, BATCHES, resume=True).already_done
    write(target, BATCHES[:2], overwrite=True)
    assert len(get(bucket, f"some/out.{suffix}")) < (tmp_path / f"out.{suffix}").stat().st_size


@needs_server
@pytest.mark.slow
def test_only_the_chunks_that_are_missing_are_written_again(bucket, address):
    write(address("out.csv"), BATCHES[:4], finish=False)
    part = next(name for name in names(bucket) if "/000002." in name)
    put(bucket, part, b"damaged")
    with ResumableWriter(address("out.csv"), schema=TABLE.schema, fingerprint={"model": "m"}, resume=True) as writer:
        assert writer.rows_done == 10
    with pytest.raises(InputError, match="the earlier run was different: model was 'm', now 'other'"):
        ResumableWriter(
            address("out.csv"), schema=TABLE.schema, fingerprint={"model": "other"}, resume=True
        ).__enter__()


@needs_server
@pytest.mark.slow
def test_a_run_that_fails_while_it_puts_the_file_together_shows_no_part_of_it(bucket, address):
    with ResumableWriter(address("out.csv"), schema=TABLE.schema, fingerprint={"model": "m"}) as writer:
        for batch in BATCHES:
            writer.write(batch)
        put(bucket, next(name for name in names(bucket) if "/000003." in name), b"damaged")
        with pytest.raises(OutputError, match=r"was damaged after it was written; run again with --resume"):
            writer.finish()
    assert "out.csv" not in names(bucket)
    assert write(address("out.csv"), BATCHES, resume=True).rows_done == ROWS
    assert names(bucket) == ["out.csv"]


@needs_server
@pytest.mark.slow
def test_what_is_missing_is_told_in_one_line(bucket, address, server):
    name = bucket.base_path.strip("/")
    put(bucket, "some/in.csv", as_bytes("csv"))
    with pytest.raises(InputError, match=rf"^s3://{name}/none.csv: no such file\.$"):
        open_table(address("none.csv"))
    with pytest.raises(InputError, match=r"^s3://nobody/in.csv: no bucket s3://nobody\.$"):
        open_table(address("in.csv").replace(name, "nobody"))
    with pytest.raises(InputError, match="is a folder, not a file"):
        open_table(address("some"))
    with pytest.raises(OutputError, match=r"^s3://nobody/out.csv: there is no bucket s3://nobody; make it first\.$"):
        write(address("out.csv").replace(name, "nobody"), BATCHES)


@needs_server
@pytest.mark.slow
def test_credentials_that_the_store_refuses_are_told_in_one_line(bucket, address, server):
    put(bucket, "in.csv", as_bytes("csv"))

    def ask_for_credentials(after: str) -> None:
        kind = {"Content-Type": "application/octet-stream"}
        urllib.request.urlopen(
            urllib.request.Request(f"http://{server}/moto-api/reset-auth", after.encode(), kind)
        ).close()

    ask_for_credentials("0")
    try:
        with pytest.raises(InputError, match=r"in.csv: cannot be read from its store \(.*\); check .* credentials\.$"):
            open_table(address("in.csv"))
        with pytest.raises(OutputError, match=r"out.csv: cannot be written \(.*\)\. Nothing is lost"):
            write(address("out.csv"), BATCHES)
    finally:
        ask_for_credentials("inf")


@needs_server
@pytest.mark.slow
@pytest.mark.parametrize("how", ["SIGKILL", "SIGINT"])
def test_a_stopped_predict_goes_on_in_the_store(how, bucket, address, tmp_path, tiny_encoder_folder):
    from labelspace import ZeroShotClassifier
    from labelspace.classify import predict_file

    model = ZeroShotClassifier(["sports", "money"], {"name": str(tiny_encoder_folder), "dtype": "float32"}).fit()
    model.save(tmp_path / "model")
    rows = 20_000
    sink = io.BytesIO()
    pq.write_table(pa.table({"text": [f"the team {row}" for row in range(rows)]}), sink)
    put(bucket, "in.parquet", sink.getvalue())
    (tmp_path / "in.parquet").write_bytes(sink.getvalue())
    line = [sys.executable, "-m", "labelspace", "predict", str(tmp_path / "model")]
    line += [address("in.parquet"), address("out/done.parquet"), "--quiet"]
    env = {**os.environ, "OMP_NUM_THREADS": "1"}
    with subprocess.Popen(line, stderr=-1, text=True, env=env) as run:
        while run.poll() is None and not any("parts/000001." in name for name in names(bucket)):
            time.sleep(0.02)
        run.send_signal(getattr(signal, how))
        said = run.communicate(timeout=60)[1]
    assert run.returncode == (130 if how == "SIGINT" else -signal.SIGKILL), said
    assert how == "SIGKILL" or f"{bucket.base_path}out/done.parquet.parts; go on with the same command" in said
    assert "out/done.parquet" not in names(bucket)
    done = subprocess.run([*line, "--resume"], capture_output=True, text=True, env=env)
    assert (done.returncode, done.stderr) == (0, "")
    assert f"out/done.parquet with {rows:,} rows (" in done.stdout
    line = [*line[:5], str(tmp_path / "in.parquet"), str(tmp_path / "here.parquet"), "--quiet"]
    assert subprocess.run(line, env=env).returncode == 0
    assert get(bucket, "out/done.parquet") == (tmp_path / "here.parquet").read_bytes()
    again = predict_file(model, address("in.parquet"), address("out/done.parquet"), resume=True)
    assert again.rows == again.resumed_at == rows
    assert str(again.path) == f"s3://{bucket.base_path}out/done.parquet"


@pytest.mark.parametrize(
    ("address", "said"),
    [
        ("s3://bucket/a b.csv", r"s3://bucket/a b\.csv: is not an address that can be opened \(Cannot parse URI"),
        ("s3://me@bucket/a.csv?regio=x", r"^bucket/a\.csv: is not an address"),
        ("s3://me:secret@bucket/a.csv", r"^bucket/a\.csv: the address holds a password; take it out"),
        ("s3://me:sec/secret@bucket/a.csv", r"^bucket/a\.csv: the address holds a password"),
        ("hdfs://me:secret@host:9000/a.csv", r"^host:9000/a\.csv: the address holds a password"),
    ],
)
def test_an_address_that_cannot_be_read_or_holds_a_password_is_refused_without_its_secrets(address, said):
    with pytest.raises(InputError, match=said) as refused:
        located(address)
    assert "secret" not in str(refused.value)


def test_where_a_file_shows_while_it_is_written_it_is_moved_into_place(tmp_path):
    """HDFS is such a store; a disk stands in for it."""
    file = StoredFile("hdfs", fs.LocalFileSystem(), str(tmp_path / "out.csv"))
    for data in (b"first", b"second"):
        with file.writing() as stream:
            stream.write(data)
            assert not file.exists() or file.read_bytes() == b"first"
        assert file.read_bytes() == data

    def interrupted(stream):
        stream.write(b"third")
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt), file.writing() as stream:
        interrupted(stream)
    assert [(path.name, path.read_bytes()) for path in tmp_path.iterdir()] == [("out.csv", b"second")]


def test_a_run_on_such_a_store_resumes_to_the_same_bytes(tmp_path, monkeypatch):
    (tmp_path / "here").mkdir()
    write(tmp_path / "here" / "out.csv", BATCHES)
    disk = fs.LocalFileSystem()
    monkeypatch.setattr(writers, "located", lambda address: StoredFile("hdfs", disk, address.partition("://")[2]))
    there = f"hdfs://{tmp_path}/there/out.csv"
    (tmp_path / "there").mkdir()
    write(there, BATCHES[:3], finish=False)
    assert write(there, BATCHES, resume=True).rows_done == ROWS
    assert (tmp_path / "there" / "out.csv").read_bytes() == (tmp_path / "here" / "out.csv").read_bytes()
    assert [path.name for path in (tmp_path / "there").iterdir()] == ["out.csv"]
