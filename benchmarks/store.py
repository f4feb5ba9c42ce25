"""Results of runs: one table per study, one row per run, sorted by part and name.

Values shared by many rows (code, machine and command; protocol; configuration) are stored once in `shared.jsonl` beside
the tables, and rows hold their keys. A table is rewritten and renamed under a lock: a killed process leaves the old
table or the new one, and several processes can add rows.
"""

import functools
import hashlib
import json
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pandas as pd
from filelock import FileLock

from labelspace.evaluate.provenance import REQUIRED, source_commit
from labelspace.folders import write_atomically

ROOT = Path(__file__).resolve().parent.parent
RESULTS = ROOT / "benchmarks" / "results"
SCRATCH = ROOT / "build"
"""Folder for trial results, ignored by git."""

COMMIT = source_commit()
"""Commit of the running code, read at import: a later commit is not the code of this process."""

CODE = ("labelspace", "commit", "versions", "hardware", "command")
"""Provenance entries shared by the runs of one call."""

SHARED = ("protocol", "config", "training", "search", "revision", "pool", "memory_method")
"""Other entries shared by many rows."""

DIGITS = 7
"""Significant digits of a stored result."""

Row = dict[str, Any]


@dataclass(frozen=True)
class Table:
    """The results of one study."""

    path: Path

    def rows(self, part: str | None = None) -> list[Row]:
        """Return the rows of a part, or all rows. They are cached, so do not change them."""
        found = _rows(self.path, *map(_stamp, (self.path, self._shared)))
        return [row for row in found if part in (None, row["part"])]

    def row(self, part: str, name: str) -> Row | None:
        """Return one row; None if it does not exist."""
        return next((row for row in self.rows(part) if row["name"] == name), None)

    def add(self, part: str, name: str, result: Mapping[str, Any], *, provenance: Mapping[str, Any]) -> None:
        """Add a row, replacing one with the same part and name.

        Raises:
            SystemExit: the code has uncommitted changes, and the table belongs to the repository.
            ValueError: the provenance lacks an entry, or the result is not plain finite values.
        """
        refuse_dirty(self.path, provenance.get("commit"))
        missing = [key for key in REQUIRED if key not in provenance]
        if missing:
            raise ValueError(f"{part}/{name}: the provenance lacks {', '.join(missing)}.")
        row, shared = _packed({"part": part, "name": name, **result}, provenance)
        with self.locked():
            rows = {(old["part"], old["name"]): old for old in _lines(self.path)}
            rows[part, name] = row
            known = {line["key"]: line["value"] for line in _lines(self._shared)}
            if not shared.keys() <= known.keys():  # written first: a row needs its shared values to be readable
                _write(self._shared, ({"key": key, "value": value} for key, value in sorted((known | shared).items())))
            _write(self.path, (rows[key] for key in sorted(rows)))

    def locked(self) -> FileLock:
        """Return the lock of the folder's tables."""
        folder = self.path.parent / ".claims"
        folder.mkdir(parents=True, exist_ok=True)
        return FileLock(folder / "tables.lock")

    @property
    def _shared(self) -> Path:
        return self.path.with_name("shared.jsonl")


TABLES: dict[str, Path] = {}
"""Study -> table to read in place of the one in `RESULTS`."""

ENCODER = "all-MiniLM-L6-v2"
"""The encoder of tables and figures that show one encoder."""


def frame(study: str, part: str, *columns: str, **facts: Any) -> pd.DataFrame:
    """Return the runs of a study's part with these facts, sorted by name.

    An entry of a nested value is a column too, such as `scores.none.f1`, beside the nested value itself.

    Args:
        study: name of the study.
        part: part of the study.
        columns: columns to return; one that no run has is empty. Without names, all there are.
        facts: column -> its value; None: the column is empty.
    """
    path = TABLES.get(study, RESULTS / f"{study}.jsonl")
    runs = _frame(path, part, *map(_stamp, (path, path.with_name("shared.jsonl"))))
    for name, value in facts.items():
        own = runs.get(name, pd.Series(index=runs.index, dtype=object))
        runs = runs[own.isna() if value is None else own == value]
    return runs.reindex(columns=list(columns) or None)


@functools.lru_cache(maxsize=32)
def _frame(path: Path, part: str, *_stamps: tuple[int, int] | None) -> pd.DataFrame:
    rows = Table(path).rows(part)
    whole, nested = pd.DataFrame(rows), pd.json_normalize(rows)
    return nested.join(whole[whole.columns.difference(nested.columns)])


def refuse_dirty(path: Path, commit: str | None = COMMIT) -> None:
    """Refuse to write results of uncommitted code into the repository.

    Raises:
        SystemExit: the code has uncommitted changes, or no commit.
    """
    place = path.resolve()
    if place.is_relative_to(ROOT) and not place.is_relative_to(SCRATCH) and (commit or "-dirty").endswith("-dirty"):
        raise SystemExit(
            f"{path.name}: the code has uncommitted changes; commit them, or give an --out outside the checkout."
        )


def _packed(row: Row, provenance: Mapping[str, Any]) -> tuple[Row, Row]:
    """Return a row as written, and its shared values by key."""
    shared: Row = {}

    def share(value: Any) -> str:
        shared[key := digest(value, 8)] = value
        return key

    packed = {key: share(value) if key in SHARED else rounded(value) for key, value in row.items()}
    packed["provenance"] = {
        "code": share({key: provenance[key] for key in CODE}),
        "data": share(provenance["data"]),
        "date": provenance["date"],
    }
    if provenance["seeds"] != [row.get("seed")]:
        packed["provenance"]["seeds"] = provenance["seeds"]
    return packed, shared


def digest(value: Any, digits: int) -> str:
    """Return the first digits of the SHA-256 of a plain value, such as a key of what was made from it."""
    return hashlib.sha256(json.dumps(value, sort_keys=True).encode()).hexdigest()[:digits]


def rounded(value: Any) -> Any:
    """Round floats to as many digits as a result can mean, and keep the table small."""
    if isinstance(value, Mapping):
        return {key: rounded(part) for key, part in value.items()}
    if isinstance(value, list | tuple):
        return [rounded(part) for part in value]
    return float(f"{value:.{DIGITS}g}") if isinstance(value, float) else value


def _unpacked(row: Row, shared: Row) -> Row:
    """Return a row with its shared values; the inverse of `_packed`."""
    origin = row["provenance"]
    provenance = {"seeds": [row.get("seed")], **shared[origin["code"]], **origin, "data": shared[origin["data"]]}
    return row | {key: shared[row[key]] for key in SHARED if key in row} | {"provenance": provenance}


def _stamp(path: Path) -> tuple[int, int] | None:
    """Return modification time and inode of a file, which change when it is written."""
    return (path.stat().st_mtime_ns, path.stat().st_ino) if path.exists() else None


@functools.lru_cache(maxsize=16)
def _rows(path: Path, *_stamps: tuple[int, int] | None) -> list[Row]:
    rows = _lines(path)  # read first: shared values are written before the rows that use them
    shared = {line["key"]: line["value"] for line in _lines(path.with_name("shared.jsonl"))}
    return [_unpacked(row, shared) for row in rows]


def _lines(path: Path) -> list[Row]:
    """Read the lines of a file; a missing file has none.

    Raises:
        SystemExit: a line is damaged.
    """
    lines = path.read_text(encoding="utf-8").splitlines() if path.exists() else []
    found = []
    for number, line in enumerate(lines, 1):
        try:
            found.append(json.loads(line))
        except ValueError as error:
            raise SystemExit(f"{path}, line {number} is damaged ({error}); remove it, and repeat its run.") from None
    return found


def _write(path: Path, lines: Iterable[Row]) -> None:
    dump = functools.partial(json.dumps, ensure_ascii=False, allow_nan=False, separators=(",", ":"))
    write_atomically(path, "".join(dump(line) + "\n" for line in lines).encode())
