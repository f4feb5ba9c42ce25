"""Files in an object store (`s3://`, `gs://`) or on HDFS (`hdfs://`), through pyarrow's file systems.

    located(place)         a path, or for an address a StoredFile, which has the methods of `Path` that readers and
                           writers use
    stored_files(address)  the files that an address names; its last part may hold *
    unpacked(place)        opens a file, also .gz; arrow_source(place) what pyarrow opens

An address may end in options of pyarrow's file system: `s3://bucket/key?region=eu-west-1`, or `endpoint_override=` and
`scheme=` for a store that is not Amazon's. Credentials come from where the store's own tools look for them: an address
that holds some is refused, because commands are seen by others and kept with results.
"""

import gzip
import io
import os
import re
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from fnmatch import fnmatchcase
from pathlib import Path, PurePosixPath
from typing import Any, BinaryIO, Literal, NamedTuple, final

import pyarrow as pa
from pyarrow import fs

from labelspace.corpus.wording import one_line
from labelspace.errors import InputError

_SCHEMES = ("s3", "gs", "hdfs")
_AT_ONCE = ("s3", "gs")  # a file appears when all of it is there, also in place of another
_READ_BYTES = 1024 * 1024


class Stat(NamedTuple):
    """What readers ask of a file's `stat`."""

    st_size: int
    st_mtime_ns: int


@final
class StoredFile:
    """A file, or a folder of files, in a store; its methods do what those of `Path` with the same names do.

    Methods that ask the store raise pyarrow's OSError; `reason` makes a line of it.
    """

    def __init__(self, scheme: str, store: fs.FileSystem, path: str) -> None:
        self._scheme, self._store, self._path = scheme, store, path
        self.name = PurePosixPath(path).name
        self.suffix = PurePosixPath(path).suffix

    def __str__(self) -> str:
        return f"{self._scheme}://{self._path}"

    def __truediv__(self, name: str) -> "StoredFile":
        return StoredFile(self._scheme, self._store, f"{self._path}/{name}")

    def with_name(self, name: str) -> "StoredFile":
        return StoredFile(self._scheme, self._store, str(PurePosixPath(self._path).with_name(name)))

    def with_suffix(self, suffix: str) -> "StoredFile":
        return StoredFile(self._scheme, self._store, str(PurePosixPath(self._path).with_suffix(suffix)))

    @property
    def bucket(self) -> "StoredFile":
        """The bucket of an object, or the root of HDFS."""
        return StoredFile(self._scheme, self._store, self._path.partition("/")[0] or "/")

    def exists(self) -> bool:
        return self._info().type != fs.FileType.NotFound

    def is_file(self) -> bool:
        return self._info().type == fs.FileType.File

    def is_dir(self) -> bool:
        return self._info().type == fs.FileType.Directory

    def stat(self) -> Stat:
        info = self._info()
        return Stat(info.size or 0, info.mtime_ns or 0)

    def iterdir(self) -> Iterator["StoredFile"]:
        """Yield the files of a folder; none if there is no such folder."""
        found = self._store.get_file_info(fs.FileSelector(self._path, allow_not_found=True))
        return (StoredFile(self._scheme, self._store, info.path) for info in found if info.type == fs.FileType.File)

    def open(self, _mode: Literal["rb"] = "rb") -> BinaryIO:
        return io.BufferedReader(self.arrow_file(), _READ_BYTES)

    def arrow_file(self) -> Any:
        """Open the file for pyarrow's readers."""
        return self._store.open_input_file(self._path)

    def read_bytes(self) -> bytes:
        with self.arrow_file() as file:
            return file.read()

    @contextmanager
    def writing(self) -> Iterator[Any]:
        """Open the file for writing; it appears when the block ends, and not at all if it fails or is killed."""
        beside = self if self._scheme in _AT_ONCE else self.with_name(self.name + ".tmp")
        if beside is not self:
            self._store.create_dir(str(PurePosixPath(self._path).parent))
        # Without compression=None, a name that ends in .gz would be packed once more.
        file = self._store.open_output_stream(beside._path, compression=None)
        try:
            yield file
            file.close()
        except BaseException:
            with suppress(OSError):
                file.close()  # the store has no other end, so what came is deleted after it
            with suppress(OSError):
                beside.unlink()
            raise
        if beside is not self:
            self.unlink(missing_ok=True)
            self._store.move(beside._path, self._path)

    def unlink(self, missing_ok: bool = False) -> None:
        if not missing_ok or self.is_file():
            self._store.delete_file(self._path)

    def rmdir(self) -> None:
        """Remove a folder without files; a store without folders keeps a mark of one."""
        if self.is_dir() and not any(self.iterdir()):
            self._store.delete_dir(self._path)

    def _info(self) -> fs.FileInfo:
        return self._store.get_file_info(self._path)


Place = Path | StoredFile


def is_address(place: object) -> bool:
    """Return whether a place is the address of a store.

    Example:
        >>> is_address("s3://bucket/news.csv"), is_address("news.csv")
        (True, False)
    """
    return isinstance(place, str) and place.partition("://")[0] in _SCHEMES


def located(place: str | os.PathLike[str]) -> Place:
    """Return a place as a path, or as a file of a store.

    Raises:
        InputError: an empty name, an address with a password or one that pyarrow cannot read, or a store for which
            something is missing on this machine.

    Example:
        >>> located("news.csv").name
        'news.csv'
    """
    if not is_address(place):
        if not os.fspath(place):
            raise InputError("the name of a file is empty; give its path.")
        return Path(place)
    address = str(place)
    scheme, _, rest = address.partition("://")
    host, told = rest.partition("/")[0], address.partition("?")[0].rpartition("@")[2]
    if ":" in (host.rpartition("@")[0] if scheme == "hdfs" else host):  # HDFS alone has a port
        raise InputError(
            f"{told}: the address holds a password; take it out, and put it where the store's own tools look for it."
        )
    try:
        store, path = fs.FileSystem.from_uri(address)
    except (pa.ArrowException, OSError, ValueError) as error:
        raise InputError(
            f"{told}: is not an address that can be opened ({reason(error)}); write s3://bucket/key, gs://bucket/key "
            "or hdfs://host:port/path."
        ) from error
    return StoredFile(scheme, store, path)


def stored_files(address: str) -> list[StoredFile]:
    """Return the files that an address names, those of a `*` in its last part sorted by name.

    Raises:
        InputError: as `located`, or nothing matches.
    """
    file = located(address)
    assert isinstance(file, StoredFile)
    if "*" not in str(file):
        return [file]
    folder = StoredFile(file._scheme, file._store, str(PurePosixPath(file._path).parent))
    if "*" in str(folder):
        raise InputError(f"{file}: only the last part of an address may hold *; list the folders one by one.")
    try:
        found = [inner for inner in folder.iterdir() if fnmatchcase(inner.name, file.name)]
    except OSError as error:
        raise unreachable(file, error) from error
    if not found:
        raise InputError(f"{file}: no file matches.")
    return sorted(found, key=str)


def arrow_source(place: Place) -> Any:
    """Return what pyarrow's readers open: the name of a local file, which it reads without Python, or an open file."""
    return str(place) if isinstance(place, Path) else place.arrow_file()


@contextmanager
def unpacked(place: Place) -> Iterator[BinaryIO]:
    """Open a file for reading; one whose name ends in .gz as what is packed in it."""
    with place.open("rb") as raw:
        if place.suffix.lower() != ".gz":
            yield raw
            return
        with gzip.GzipFile(fileobj=raw) as file:
            yield file  # type: ignore[misc]


def unreachable(file: StoredFile, error: Exception) -> InputError:
    """Return the error for a store that does not answer, or does not let this user in."""
    return InputError(
        f"{file}: cannot be read from its store ({reason(error)}); check the address, its region and your credentials."
    )


def reason(error: Exception) -> str:
    """Return the part of pyarrow's message that says what went wrong, in one line.

    Example:
        >>> reason(OSError("When listing objects under key 'a': AWS Error NO_SUCH_BUCKET: none (Request ID: x)"))
        'NO_SUCH_BUCKET: none'
    """
    told = re.sub(r"^.*AWS Error ", "", one_line(error, 2000))
    return one_line(re.sub(r" \(Request ID.*$", "", told), 160)
