"""Tables written so that a kill, a crash or a full disk costs at most the current chunk.

    out.parquet.parts/          exists exactly as long as out.parquet is incomplete
        lock                    held by the writing process; the system frees it when that process dies
        state.json              input, model, options and columns of the run
        000000.1024.5f3a2b1c.parquet
        000001.1024.09d1c77e.parquet        chunk number, rows, CRC-32 of the bytes
        *.tmp                   unfinished; deleted at the next start
    out.parquet                 appears in one rename, made only from the parts

A part is written to a temporary file, synced and renamed, so it is complete or absent. If a crash still damages a part,
its CRC reveals it, and this part and all later ones are written again. The final file is made from the parts in every
run, killed or not, so its bytes are the same.

In an object store the parts lie beside the file too, so that another machine can go on. A store has no locks, and no
renames: a part and the file appear when their upload ends, and state.json, removed first, is the sign of an open run.

`rows_to_files` turns rows into the bytes of each format; `stores` speaks to the stores.
"""

import errno
import itertools
import json
import os
import re
import zlib
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any, final

import pyarrow as pa
from filelock import FileLock, Timeout

from labelspace.corpus.in_memory import plain_schema
from labelspace.corpus.rows_to_files import Format
from labelspace.corpus.stores import Place, StoredFile, located, reason
from labelspace.corpus.wording import listed, one_line
from labelspace.errors import ConfigError, InputError, OutputError
from labelspace.folders import keep_rights, sync

STATE_FORMAT = 1
_NO_LOCKS = {errno.ENOLCK, errno.EOPNOTSUPP}  # some network disks; there, nothing keeps a second process away
_FULL = {errno.ENOSPC, errno.EDQUOT, errno.EFBIG}
_PART = re.compile(r"(\d{6,})\.(\d+)\.([0-9a-f]{8})\..+")


@final
class ResumableWriter:
    """Writes a table chunk by chunk and resumes where it stopped, even after `kill -9`.

    The start depends on the files found:

        out    parts   neither option   resume=True               overwrite=True
        no     no      starts           starts                    starts
        no     yes     InputError       resumes                   deletes the parts, starts
        yes    no      InputError       `already_done` is True    starts; the old file stays until `finish`
        yes    yes     InputError       resumes, then replaces    deletes the parts, starts

    A file without a parts folder is complete, because the folder is removed last. Such a file is not compared with the
    fingerprint, which a CSV file could not hold: `already_done` only says that the file is complete.

    Args:
        path: the file to write, or its address in a store; its extension decides the format, as for `open_table`.
        schema: names and types of the columns; metadata is dropped.
        fingerprint: plain values that identify this run: input, model, options.
        resume: True continues from the parts of a run with the same fingerprint.
        overwrite: True deletes what an earlier run left.

    Raises:
        InputError: the file or its parts exist; the fingerprint differs (the message says where); the extension is
            unknown; the format cannot hold the schema.
        OutputError: the folder is missing or not writable, another process is writing, or the disk is full.
        ConfigError: both `resume` and `overwrite`.

    Example:
        >>> import tempfile
        >>> rows = pa.record_batch({"id": [1, 2], "label": ["sports", None]})
        >>> with tempfile.TemporaryDirectory() as folder:
        ...     out = Path(folder) / "out.csv"
        ...     with ResumableWriter(out, schema=rows.schema, fingerprint={"model": "m"}) as writer:
        ...         writer.write(rows)
        ...         writer.finish()
        ...     out.read_text()
        'id,label\\n1,sports\\n2,\\n'
    """

    def __init__(
        self,
        path: str | os.PathLike[str],
        *,
        schema: pa.Schema,
        fingerprint: Mapping[str, Any],
        resume: bool = False,
        overwrite: bool = False,
    ) -> None:
        if resume and overwrite:
            raise ConfigError("resume and overwrite cannot both be set; choose one.")
        self._given = self.path = located(path)
        if isinstance(self.path, Path) and self.path.is_symlink():  # the link stays; what it names is written
            self.path = Path(os.path.realpath(self.path))
        self.schema = plain_schema(schema)
        self._format = Format(self._given, self.schema)
        self.parts = self.path.with_name(self.path.name + ".parts")
        self.rows_done = 0
        self.chunks_done = 0
        self.already_done = False
        columns = [[field.name, str(field.type)] for field in self.schema]
        state = {"format": STATE_FORMAT, "columns": columns, "fingerprint": dict(fingerprint)}
        self._state = json.loads(json.dumps(state, default=str))  # tuples become lists, as when read from the file
        self._resume, self._overwrite = resume, overwrite
        self._lock: FileLock | None = None
        self._open = False

    def __enter__(self) -> "ResumableWriter":
        """Lock the output and find where to resume; everything that can be refused is refused here."""
        self.check_place()
        with self._safe_so_far():
            _remove_folder(self._finished_folder)
            if not self.already_done:
                self._take_lock()
                self._open = True
        try:
            with self._safe_so_far():
                if self._open:
                    self._begin()
        except BaseException:
            self._leave()
            raise
        return self

    def __exit__(self, *_: object) -> None:
        """Release the output; keep the parts unless there are none."""
        self._leave()

    def write(self, batch: pa.RecordBatch) -> None:
        """Store one chunk safely on disk; a chunk without rows is ignored.

        Raises:
            InputError: the columns of `batch` differ from `schema`, or the format cannot hold its rows.
            OutputError: the disk is full or fails; the message says how many rows are safe.
        """
        if not batch.schema.equals(self.schema, check_metadata=False):
            raise InputError(f"the chunk has the columns {listed(batch.schema)}; expected {listed(self.schema)}.")
        if not self._open:
            raise OutputError(f"{self.path}: nothing can be written; it is complete, or the writer is not open.")
        if batch.num_rows == 0:
            return
        self.check_rows(batch, self.rows_done)
        data = self._format.encode(batch)
        name = f"{self.chunks_done:06d}.{batch.num_rows}.{zlib.crc32(data):08x}.{self._format.suffix}"
        with self._safe_so_far():
            _write_whole(self.parts / name, data)
        self.chunks_done += 1
        self.rows_done += batch.num_rows

    def check_rows(self, rows: pa.RecordBatch, before: int) -> None:
        """Refuse rows, in all or some of their columns, that the format cannot hold: .xlsx has limits.

        Args:
            rows: the rows.
            before: number of rows before them.

        Raises:
            InputError: there are too many rows, or a text is too long.
        """
        self._format.check(rows, before)

    def finish(self) -> None:
        """Make the file from its parts in one rename and remove the parts; do nothing if `already_done`.

        Raises:
            OutputError: the disk is full or fails, or a part was damaged since; the parts are kept.
        """
        if self.already_done:
            return
        if not self._open:
            raise OutputError(f"{self.path}: cannot be finished; the writer is not open.")
        path, parts = self.path, self.parts
        with self._safe_so_far():
            if isinstance(path, Path) and isinstance(parts, Path):
                self._finish_here(path, parts)
            elif isinstance(path, StoredFile):
                with path.writing() as file:
                    self._format.assemble(file, self._part_bytes())
                (parts / "state.json").unlink()  # this completes the run
                _remove_folder(parts)
        self._leave()
        self.already_done = True

    def _finish_here(self, path: Path, parts: Path) -> None:
        whole = parts / "whole.tmp"
        try:
            with whole.open("wb") as file:
                keep_rights(path, whole)
                self._format.assemble(file, self._part_bytes())
                file.flush()
                os.fsync(file.fileno())
            whole.replace(path)
        finally:
            whole.unlink(missing_ok=True)
        sync(path.parent)
        self._release_on_windows()
        # This rename completes the run; removing the folder may then be interrupted anywhere.
        _remove_folder(parts.rename(_free_name(parts.with_name(self._finished_folder.name))))

    @property
    def place(self) -> Path | str:
        """The path of the file, or its address without credentials."""
        return self._given if isinstance(self._given, Path) else str(self._given)

    @property
    def _finished_folder(self) -> Place:
        return self.parts.with_name(self.parts.name + ".finished")

    def check_place(self) -> None:
        """Refuse early, without writing, what would fail later; for callers with long work before the first chunk.

        Raises:
            InputError: the file or its parts exist.
            OutputError: the folder is missing, or a folder or file is in the way.
        """
        with self._safe_so_far():
            if isinstance(self.path, StoredFile):
                if not self.path.bucket.exists():
                    raise OutputError(f"{self.path}: there is no bucket {self.path.bucket}; make it first.")
            elif not self.path.parent.is_dir():
                raise OutputError(f"{self.path}: there is no folder {self.path.parent}; make it first.")
            if self.path.is_dir() or (self.parts.exists() and not self.parts.is_dir()):
                raise OutputError(
                    f"{self.path}: cannot be written, because a folder or file of that name is in the way."
                )
            stored = isinstance(self.parts, StoredFile)
            begun = (self.parts / "state.json" if stored else self.parts).exists()
            exists = self.path.exists()
        if begun:
            if not (self._resume or self._overwrite):
                raise InputError(
                    f"{self.path}: an earlier run was not finished ({self.parts.name}/); "
                    "continue with resume=True (--resume), or start again with overwrite=True (--overwrite)."
                )
        elif exists:
            if not (self._resume or self._overwrite):
                raise InputError(
                    f"{self.path}: exists already; choose another name, or replace it with overwrite=True "
                    "(--overwrite)."
                )
            self.already_done = self._resume

    def _begin(self) -> None:
        """Keep the sound parts of an earlier run, or start without any."""
        state_file = self.parts / "state.json"
        for leftover in self.parts.iterdir():
            if leftover.suffix == ".tmp":
                leftover.unlink()
        parts = self._listed_parts()
        begun = state_file.exists()
        if not (begun or self._resume or self._overwrite) and self.path.exists():
            raise OutputError(f"{self.path}: another process has just finished it.")
        if begun and not self._overwrite:
            self._check_same_run(state_file)
            for part in parts:
                rows = _rows_if_sound(part, self.chunks_done)
                if rows is None:
                    break
                self.chunks_done, self.rows_done = self.chunks_done + 1, self.rows_done + rows
        for part in reversed(parts[self.chunks_done :]):  # backwards, so that a kill in between leaves no gap
            part.unlink()
        if not begun or self._overwrite:
            _write_whole(state_file, json.dumps(self._state, indent=1, sort_keys=True).encode())

    def _check_same_run(self, state_file: Place) -> None:
        try:
            before = json.loads(state_file.read_bytes())
        except ValueError as error:
            raise InputError(f"{state_file}: is damaged; start again with --overwrite.") from error
        differences = list(_differences(before, self._state))
        if differences:
            raise InputError(
                f"{self.path}: cannot resume, because the earlier run was different: "
                f"{'; '.join(differences[:8])}. Use the same input, options and version of labelspace, or start again "
                "with --overwrite."
            )

    def _listed_parts(self) -> list[Place]:
        found = [
            (int(match[1]), str(file), file) for file in self.parts.iterdir() if (match := _PART.fullmatch(file.name))
        ]
        return [file for *_, file in sorted(found, key=lambda part: part[:2])]

    def _part_bytes(self) -> Iterator[bytes]:
        parts = self._listed_parts()
        if len(parts) != self.chunks_done:
            raise OutputError(
                f"{self.parts}: holds {len(parts)} of the {self.chunks_done} chunks that were written; "
                "run again with --resume to write the missing ones."
            )
        for number, part in enumerate(parts):
            data = part.read_bytes()
            if _rows_if_sound(part, number, data) is None:
                raise OutputError(f"{part}: was damaged after it was written; run again with --resume to rewrite it.")
            yield data

    def _take_lock(self) -> None:
        if isinstance(self.parts, StoredFile):
            return
        lock_file = self.parts / "lock"
        while self._lock is None:
            self.parts.mkdir(exist_ok=True)
            lock = FileLock(lock_file, thread_local=False)
            try:
                lock_file.touch()
                opened = lock_file.stat()
                lock.acquire(timeout=0)
                if os.path.samestat(opened, lock_file.stat()):
                    self._lock = lock
            except Timeout as error:
                raise OutputError(f"{self.path}: another process is writing it; wait for it, or stop it.") from error
            except FileNotFoundError:  # another process has just finished and removed the folder
                if self.path.exists() and not self._overwrite:
                    raise OutputError(f"{self.path}: another process has just finished it.") from None
            except OSError as error:
                if error.errno in _NO_LOCKS:
                    self._lock = lock
                    return
                with suppress(OSError):
                    self.parts.rmdir()  # succeeds only if it is empty, so only if it is new
                raise
            finally:
                if self._lock is None:
                    lock.release()

    def _leave(self) -> None:
        if not self._open:
            return
        with suppress(OSError):
            if self.parts.is_dir() and not self._listed_parts():
                self._release_on_windows()
                _remove_folder(self.parts)
        if self._lock is not None:
            self._lock.release()
        self._lock, self._open = None, False

    def _release_on_windows(self) -> None:
        """Release the lock before its folder is moved or removed: Windows does neither with an open file in it."""
        if os.name == "nt" and self._lock is not None:
            self._lock.release()

    @contextmanager
    def _safe_so_far(self) -> Iterator[None]:
        """Turn a disk error into one line that says what is safe and what to do."""
        try:
            yield
        except OutputError:
            raise
        except OSError as error:
            full = error.errno in _FULL
            why = "the disk is full, or a quota reached" if full else one_line(error.strerror or reason(error))
            cure = "free some space" if full else "fix that"
            if self.rows_done:
                safe = f"{self.rows_done} rows are safe in {self.parts.name}/; {cure}, then continue with --resume."
            else:
                safe = f"Nothing is lost; {cure}, then run again."
            raise OutputError(f"{self.path}: cannot be written ({why}). {safe}") from error


def _rows_if_sound(part: Place, number: int, data: bytes | None = None) -> int | None:
    """Return the number of rows in a part, or None if it has another number or is damaged."""
    match = _PART.fullmatch(part.name)
    if match is None or int(match[1]) != number:
        return None
    data = part.read_bytes() if data is None else data
    return int(match[2]) if zlib.crc32(data) == int(match[3], 16) else None


def _write_whole(target: Place, data: bytes) -> None:
    """Write a file so that it appears complete or not at all, even after a power failure."""
    if isinstance(target, StoredFile):
        with target.writing() as file:
            file.write(data)
        return
    temporary = target.with_name(target.name + ".tmp")
    try:
        with temporary.open("wb") as file:
            file.write(data)
            file.flush()
            os.fsync(file.fileno())
        temporary.replace(target)
    except BaseException:
        temporary.unlink(missing_ok=True)
        raise
    sync(target.parent)


def _remove_folder(folder: Place) -> None:
    """Remove a parts folder; unknown files stay, and the folder with them."""
    if not folder.is_dir():
        return
    for file in folder.iterdir():
        if _PART.fullmatch(file.name) or file.name in {"state.json", "lock"} or file.suffix == ".tmp":
            file.unlink(missing_ok=True)
    with suppress(OSError):
        folder.rmdir()


def _free_name(folder: Path) -> Path:
    """Return the folder, or one with a number behind its name where files of others lie in it."""
    numbered = (folder.with_name(f"{folder.name}-{number}") for number in itertools.count(2))
    return next(place for place in itertools.chain([folder], numbered) if not place.exists())


def _differences(before: Any, now: Any, where: str = "") -> Iterator[str]:
    """Yield a description of every leaf in which two states differ."""
    if isinstance(before, list) and isinstance(now, list) and len(before) == len(now):
        before, now = dict(enumerate(before)), dict(enumerate(now))
    if isinstance(before, list) and isinstance(now, list):
        gone, new = ([it for it in one if it not in other] for one, other in ((before, now), (now, before)))
        parts = [f"lost {one_line(repr(gone), 80)}"] * bool(gone) + [f"gained {one_line(repr(new), 80)}"] * bool(new)
        yield f"{where} {' and '.join(parts) or 'repeat'}"
    elif isinstance(before, dict) and isinstance(now, dict):
        for key in [*before, *(key for key in now if key not in before)]:
            inner = f"{where}.{key}".removeprefix(".fingerprint").removeprefix(".")
            yield from _differences(before.get(key), now.get(key), inner)
    elif repr(before) != repr(now):  # repr, so that NaN equals itself
        yield f"{where} was {one_line(repr(before), 80)}, now {one_line(repr(now), 80)}"
