"""The result store: a JSONL file with one line for each finished run of a model on a task.

A line is written with one call, under a lock file beside the store, and synced. A killed run leaves whole lines, and at
worst one half-written last line, which the next run cuts off. Any other line that cannot be read, or that fails the
checks of `records`, is an error.
"""

import contextlib
import json
import os
from collections.abc import Mapping
from pathlib import Path
from typing import IO, Any, NamedTuple, final

from filelock import FileLock

from labelspace.bench.cards import THEIR_NAMES
from labelspace.bench.records import problem_of
from labelspace.bench.revision import same_revision
from labelspace.errors import ConfigError, InputError, OutputError, warn

SCHEMA_VERSION = 2  # version 1 named the macro figures as in `cards.THEIR_NAMES`


class RunKey(NamedTuple):
    """The key of a run in the store."""

    model: str
    """The model's specification, for example `"embedding:all-MiniLM-L6-v2"`."""

    task: str
    """Name of the data set."""

    protocol: str
    """`"full"` or `"paper"`."""

    unverbalized: str
    """Treatment of rows whose class has no hypothesis: `"leave_out"` or `"class_0"`."""

    limit: int | None
    """Maximum texts, drawn by the seed; None: all."""

    seed: int
    """Seed of that draw."""

    dtype: str
    """Dtype of the computation."""

    def __str__(self) -> str:
        drawn = f", {self.limit} texts, seed {self.seed}" if self.limit is not None else ""
        return f"{self.model} on {self.task} ({self.protocol}{drawn}, {self.dtype})"


def key_of(record: Mapping[str, Any]) -> RunKey:
    """Return the key of a record.

    Example:
        >>> record = {"model": "embedding:x", "task": "agnews", "protocol": "full", "unverbalized": "leave_out"}
        >>> print(key_of({**record, "limit": 100, "seed": 1, "dtype": "float32"}))
        embedding:x on agnews (full, 100 texts, seed 1, float32)
    """
    return RunKey(**{field: record[field] for field in RunKey._fields})


@final
class ResultStore:
    """Records of finished runs in a JSONL file.

    Args:
        path: the file, created by the first `append`.

    Example:
        >>> import tempfile
        >>> from labelspace.evaluate.provenance import provenance
        >>> run = {"model": "embedding:x", "task": "agnews", "protocol": "full", "unverbalized": "leave_out"}
        >>> run |= {"limit": None, "seed": 0, "dtype": "float32", "fingerprint": "9f", "family": "embedding"}
        >>> run |= {"benchmark": "btzsc", "task_family": "topic", "texts": 10, "seconds": 0.5}
        >>> run |= {"metrics": dict.fromkeys(THEIR_NAMES, 0.5)}
        >>> with tempfile.TemporaryDirectory() as folder:
        ...     store = ResultStore(f"{folder}/results.jsonl")
        ...     written = store.append({**run, "provenance": provenance(data="agnews")})
        ...     [record["metrics"]["macro_f1_predicted"] for record in store.records()]
        [0.5]
    """

    def __init__(self, path: str | Path) -> None:
        self.path = Path(path)
        self._said = False

    def records(self) -> list[dict[str, Any]]:
        """Return the records in the order of their first lines; of lines with one key the last one counts.

        A half-written last line, as a killed run leaves it, is skipped with a warning.

        Raises:
            InputError: a line is not a record, or has an invalid value; the message names file, line and field.
        """
        return list(self.by_key().values())

    def by_key(self) -> dict[RunKey, dict[str, Any]]:
        """Return the records by key; see `records`."""
        content = self._read()
        whole, rest = _whole_lines(content)
        if rest:
            self._warn_of_half_a_line()
        found: dict[RunKey, dict[str, Any]] = {}
        for number, line in enumerate(whole.split(b"\n"), 1):
            if line.strip():
                record = self._record(line, number)
                found[key_of(record)] = record
        return found

    def append(self, record: Mapping[str, Any]) -> dict[str, Any]:
        """Append one finished run and sync it to disk; a half-written last line is cut off first.

        Args:
            record: plain finite values: the fields of `records.NEEDED`, and any others.

        Returns:
            The record as it will be read back, with the schema version.

        Raises:
            ConfigError: a field is missing or invalid, or a value is not finite.
            OutputError: the file cannot be written; its content is unchanged.
        """
        line = written = _line_of(record)
        try:
            # Open the file before taking the lock: the lock would create a missing folder.
            with self.path.open("a+b", buffering=0) as handle, self._writing():
                whole, rest = _whole_lines(_from_start(handle))
                if rest:
                    self._warn_of_half_a_line()
                    handle.truncate(len(whole))
                elif whole and not whole.endswith(b"\n"):
                    line = b"\n" + line
                # A single write, so that a reader hardly ever sees half a line.
                if os.write(handle.fileno(), line) < len(line):
                    handle.truncate(len(whole))
                    raise OutputError(f"{self.path} cannot be written (no space left); what it held is unchanged.")
                os.fsync(handle.fileno())
        except OutputError:
            raise
        except OSError as error:
            raise OutputError(
                f"{self.path} cannot be written ({error.strerror or error}); what it held is unchanged."
            ) from error
        return json.loads(written)

    def check_writable(self) -> None:
        """Raise OutputError before any scoring if the store cannot be written."""
        try:
            existed = self.path.exists()
            with self.path.open("ab"):
                pass
            if not existed:
                self.path.unlink()
        except OSError as error:
            raise OutputError(
                f"{self.path} cannot be written ({error.strerror or error}); give another place."
            ) from error

    def _warn_of_half_a_line(self) -> None:
        if not self._said:
            self._said = True
            message = f"{self.path}: the last line is half-written, as a killed run leaves it; it is cut off."
            warn(message)

    def _read(self) -> bytes:
        try:
            content = self.path.read_bytes()
            if _whole_lines(content)[1]:  # half a line: of a killed run, or of a writer at work
                with contextlib.suppress(OSError), self._writing():
                    content = self.path.read_bytes()
        except FileNotFoundError:
            return b""
        except OSError as error:
            raise InputError(f"{self.path} cannot be read ({error.strerror or error}).") from error
        return content

    def _writing(self) -> FileLock:
        """Return the lock that one writer at a time holds."""
        return FileLock(self.path.with_name(f".{self.path.name}.lock"))

    def _record(self, line: bytes, number: int) -> dict[str, Any]:
        where = f"{self.path}, line {number}"
        try:
            record = json.loads(line)
        except (ValueError, RecursionError) as error:
            raise InputError(f"{where} is not JSON ({error}); repair the line or remove it.") from error
        if not isinstance(record, dict):
            raise InputError(f"{where} is not a record. Got {type(record).__name__} instead; repair it or remove it.")
        version = record.get("schema")
        if not isinstance(version, int) or isinstance(version, bool) or version < 1:
            raise InputError(f"{where} is not a record: it has no schema version. Repair the line or remove it.")
        if version > SCHEMA_VERSION:
            raise InputError(
                f"{where} was written by a newer labelspace (schema {version}, this one knows {SCHEMA_VERSION}); "
                "update labelspace."
            )
        if version == 1:
            _rename(record)
        wrong = problem_of(record)
        if wrong is not None:
            raise InputError(f"{where}: {wrong}; repair the line or remove it.")
        return record


def _rename(record: dict[str, Any]) -> None:
    ours = {theirs: ours for ours, theirs in THEIR_NAMES.items()}
    for field in ("metrics", "intervals"):
        if isinstance(record.get(field), dict):
            record[field] = {ours.get(name, name): value for name, value in record[field].items()}


def chosen(
    known: Mapping[RunKey, dict[str, Any]],
    key: RunKey,
    *,
    fingerprint: str | None = None,
    revision: str | None = None,
) -> tuple[dict[str, Any] | None, str]:
    """Return the record of a run, if its texts, labels and model match.

    Args:
        known: result of `ResultStore.by_key`.
        key: key of the run.
        fingerprint: fingerprint that the record's task must have; None: not checked.
        revision: `model_revision` that the record must have, if known; None: not checked.

    Returns:
        The record or None, and a note if a record with this key was rejected, else "".
    """
    record = known.get(key)
    if record is None:
        return None, ""
    if fingerprint is not None and record["fingerprint"] != fingerprint:
        other = "texts or labels"
    elif not same_revision(record.get("revision"), revision):
        other = "weights or settings"
    else:
        return record, ""
    return None, f"{key}: the stored result is of other {other} and is replaced; another store keeps both."


def _line_of(record: Mapping[str, Any]) -> bytes:
    try:
        text = json.dumps({"schema": SCHEMA_VERSION, **record}, ensure_ascii=False, allow_nan=False)
    except (TypeError, ValueError) as error:
        raise ConfigError(f"a record must hold plain finite values ({error}); convert them first.") from error
    wrong = problem_of(json.loads(text))  # checks the record as it will be read back
    if wrong is not None:
        raise ConfigError(f"the record cannot be stored: {wrong}.")
    return text.encode() + b"\n"


def _whole_lines(content: bytes) -> tuple[bytes, bytes]:
    """Split off a half-written last line; a last line that only lacks its line break is whole."""
    at = content.rfind(b"\n") + 1
    whole, rest = content[:at], content[at:]
    if not rest.strip():
        return whole, rest
    try:
        complete = isinstance(json.loads(rest), dict)
    except (ValueError, RecursionError):
        complete = False
    return (content, b"") if complete else (whole, rest)


def _from_start(handle: IO[bytes]) -> bytes:
    handle.seek(0)
    return handle.read()
