"""A full disk: one clear line, finished work stays, and the run resumes once there is space."""

import subprocess
import sys
import textwrap

import pytest

SETUP = """
    import resource, sys
    from pathlib import Path
    import pyarrow as pa
    from labelspace.corpus import ResumableWriter
    from labelspace.errors import OutputError

    def run(path, resume=False, before_finish=lambda: None):
        schema = pa.schema([("id", pa.int64()), ("text", pa.string())])
        with ResumableWriter(path, schema=schema, fingerprint={}, resume=resume) as writer:
            for number in range(20 if writer.already_done else writer.chunks_done, 20):
                texts = [f"{n} {hash((n, k)):x}" * 8 for k, n in enumerate(range(number * 50, number * 50 + 50))]
                writer.write(pa.record_batch([list(range(number * 50, number * 50 + 50)), texts], schema=schema))
            before_finish()
            writer.finish()

    def complaint(*args, **kwargs):
        try:
            run(*args, **kwargs)
        except OutputError as error:
            return str(error)

    folder, out = Path(sys.argv[1]), Path(sys.argv[2])
"""


def run_script(body, *arguments):
    script = textwrap.dedent(SETUP) + textwrap.dedent(body)
    done = subprocess.run([sys.executable, "-c", script, *map(str, arguments)], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr


@pytest.mark.slow
@pytest.mark.parametrize("suffix", ["parquet", "csv", "jsonl.gz"])
def test_a_limit_met_while_assembling_loses_nothing(tmp_path, suffix):
    body = """
        limit = lambda size: resource.setrlimit(resource.RLIMIT_FSIZE, (size, resource.RLIM_INFINITY))
        said = complaint(out, before_finish=lambda: limit(4000))
        assert "the disk is full" in said and "1000 rows are safe" in said and "--resume" in said, said
        assert not out.exists() and not list(out.with_name(out.name + ".parts").glob("*.tmp"))
        limit(100)
        said = complaint(folder / f"other-{out.name}")
        assert "the disk is full" in said and "Nothing is lost" in said, said
        limit(resource.RLIM_INFINITY)
        run(out, resume=True)
        run(folder / f"whole-{out.name}")
        assert out.read_bytes() == (folder / f"whole-{out.name}").read_bytes()
        assert sorted(path.name for path in folder.iterdir()) == [out.name, f"whole-{out.name}"]
    """
    run_script(body, tmp_path, tmp_path / f"out.{suffix}")


@pytest.mark.slow
@pytest.mark.parametrize("suffix", ["parquet", "csv", "jsonl"])
def test_a_disk_that_is_really_full_loses_nothing(tmp_path, suffix):
    disk = tmp_path / "disk"
    disk.mkdir()
    mount = ["mount", "-t", "tmpfs", "-o", "size=512k", "tmpfs", str(disk)]
    try:
        mounted = subprocess.run(mount, capture_output=True, text=True)
    except FileNotFoundError:
        pytest.skip("there is no mount command")
    if mounted.returncode:
        pytest.skip(f"a small disk cannot be mounted here: {mounted.stderr.strip()}")
    body = """
        ballast = out.with_name("ballast")
        ballast.write_bytes(bytes(452_000))
        said = complaint(out)
        rows = int(said.split(" rows are safe")[0].split()[-1])
        assert "the disk is full" in said and 0 < rows < 1000 and rows % 50 == 0, said
        again = complaint(out, resume=True)
        assert again == said, again
        ballast.unlink()
        more = complaint(out, resume=True)
        assert more is None or int(more.split(" rows are safe")[0].split()[-1]) > rows, more
    """
    larger = ["mount", "-o", "remount,size=64m", str(disk)]
    try:
        run_script(body, tmp_path, disk / f"out.{suffix}")
        subprocess.run(larger, check=True)
        run_script(
            """
            run(out, resume=True)
            run(folder / out.name)
            assert out.read_bytes() == (folder / out.name).read_bytes()
            """,
            tmp_path,
            disk / f"out.{suffix}",
        )
    finally:
        subprocess.run(["umount", str(disk)], check=True)
