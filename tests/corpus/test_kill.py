"""`kill -9` at any moment: no row lost or repeated, and the same bytes as an undisturbed run.

One subprocess imports everything once and forks a child for every attempt, so that hundreds of kills take seconds.
Kills come from outside after a random time, and from inside just before the n-th disk operation, for every n.
"""

import json
import subprocess
import sys

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from labelspace.corpus import open_table

ROWS = 97
SCRIPT = """
import json, os, random, signal, sys, time
from pathlib import Path
import pandas  # pyarrow would import it in every child anew
import pyarrow as pa
from labelspace.corpus import ResumableWriter, open_table

source, folder, suffix, way, seed = *sys.argv[1:5], int(sys.argv[5])
out, whole = Path(folder) / f"out.{suffix}", Path(folder) / f"whole.{suffix}"


def predict(path, *, seconds=0.0, **options):
    table = open_table(source, id_column="id", batch_rows=16)
    schema = table.schema.append(pa.field("label", pa.string())).append(pa.field("score", pa.float32()))
    fingerprint = {"input": table.fingerprint(), "model": "a slow scorer"}
    with ResumableWriter(path, schema=schema, fingerprint=fingerprint, **options) as writer:
        if writer.already_done:
            return
        for batch in table.batches(writer.rows_done):
            texts = table.texts(batch)
            time.sleep(seconds)
            scores = pa.array([len(text) / 7 for text in texts], pa.float32())
            labels = pa.array(["long" if len(text) > 40 else None for text in texts], pa.string())
            writer.write(pa.record_batch([*batch.columns, labels, scores], schema=schema))
        writer.finish()


def die_before_touch(number):
    touched = 0

    def hook(event, arguments):
        nonlocal touched
        if event in {"open", "os.rename", "os.remove", "os.rmdir", "os.mkdir"} and folder in str(arguments[0]):
            touched += 1
            if touched == number:
                os.kill(os.getpid(), signal.SIGKILL)

    sys.addaudithook(hook)


def attempt(*, touch=None, after=None, **options):
    '''Predict in a child; return whether it was killed.'''
    child = os.fork()
    if child == 0:
        code = 1
        try:
            if touch:
                die_before_touch(touch)
            predict(**options)
            code = 0
        except BaseException as error:
            print(repr(error), file=sys.stderr)
        finally:
            os._exit(code)
    if after is not None:
        time.sleep(after)
        os.kill(child, signal.SIGKILL)
    status = os.waitpid(child, 0)[1]
    if os.WIFEXITED(status):
        assert os.WEXITSTATUS(status) == 0
    return os.WIFSIGNALED(status)


def compare():
    assert out.read_bytes() == whole.read_bytes()
    assert sorted(os.listdir(folder)) == sorted([out.name, whole.name]), os.listdir(folder)
    out.unlink()


began = time.monotonic()
assert not attempt(path=whole, seconds=0.003)
duration = time.monotonic() - began
kills, draw = 0, random.Random(seed)
if way == "anywhere":
    while kills < 20:
        while attempt(path=out, resume=True, seconds=0.003, after=draw.uniform(0, 1.2 * duration)):
            kills += 1
        attempt(path=out, resume=True)
        compare()
elif way == "everywhere":
    touch = 1
    while attempt(path=out, resume=True, touch=touch):
        kills += 1
        if touch % 3 == 0:  # and once more, on the way back
            kills += attempt(path=out, resume=True, touch=draw.randrange(1, 40))
        attempt(path=out, resume=True)
        compare()
        touch += 1
else:  # an old file is replaced: at every moment there is the old one or the new one
    touch, killed = 1, True
    while killed:
        out.write_text("old")
        killed = attempt(path=out, overwrite=True, touch=touch)
        assert out.read_bytes() in (b"old", whole.read_bytes())
        kills += killed
        attempt(path=out, resume=True)
        if out.read_bytes() == b"old":  # killed before anything was begun: there was nothing to resume
            assert touch <= 4, touch
            attempt(path=out, overwrite=True)
        compare()
        touch += 1
print(json.dumps({"kills": kills}))
"""


def documents(path, suffix):
    rows = [{"id": f"{n:03d}", "text": f'say "{n}",\n' + "so " * (n % 30), "note": "ü" * (n % 3)} for n in range(ROWS)]
    if suffix == "parquet":
        pq.write_table(pa.Table.from_pylist(rows), path, row_group_size=13)
    elif suffix == "jsonl":
        path.write_text("".join(json.dumps(row) + "\n" for row in rows))
    else:
        quoted = (['"' + cell.replace('"', '""') + '"' for cell in row.values()] for row in rows)
        path.write_text("id,text,note\n" + "".join(",".join(cells) + "\n" for cells in quoted))
    return path


def killed_runs(tmp_path, suffix, way):
    """Run the script and check the undisturbed output; return the number of kills."""
    source, folder = documents(tmp_path / f"in.{suffix}", suffix), tmp_path / "work"
    folder.mkdir()
    command = [sys.executable, "-c", SCRIPT, str(source), str(folder), suffix, way, "0"]
    done = subprocess.run(command, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr[-2000:]
    rows = [row for batch in open_table(folder / f"whole.{suffix}").batches() for row in batch.to_pylist()]
    assert [row["id"] for row in rows] == [f"{n:03d}" for n in range(ROWS)]
    assert list(rows[0]) == ["id", "text", "note", "label", "score"]
    return json.loads(done.stdout)["kills"]


@pytest.mark.slow
def test_a_kill_at_a_random_moment_costs_nothing(tmp_path):
    assert killed_runs(tmp_path, "parquet", "anywhere") >= 20


@pytest.mark.slow
@pytest.mark.parametrize("suffix", ["parquet", "csv", "jsonl"])
def test_a_kill_before_each_disk_operation_costs_nothing(tmp_path, suffix):
    assert killed_runs(tmp_path, suffix, "everywhere") > 40


@pytest.mark.slow
def test_a_kill_while_replacing_leaves_the_old_file_or_the_new_one(tmp_path):
    assert killed_runs(tmp_path, "csv", "replacing") > 40
