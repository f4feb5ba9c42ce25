"""What Windows does differently with files, on a system that is not Windows: run as a process of its own.

Only what is documented: no folder can be opened, nothing is forced to the disk through a handle that cannot write,
nothing replaces a folder, and a file that is open or mapped is neither moved nor removed, nor is a folder around it.
"""

import ctypes
import errno
import fcntl
import os
import shutil
import sys
import types
from contextlib import suppress
from pathlib import Path
from typing import Any

REAL = {name: getattr(os, name) for name in ("open", "fsync", "rename", "replace", "unlink")}


def in_use(place: Path) -> bool:
    """Return whether this process has a file open or mapped, at a path or below it."""
    held = [each.resolve() for each in Path("/proc/self/fd").iterdir()]
    maps = Path("/proc/self/maps").read_text(encoding="utf-8").splitlines()
    held = [each for each in held if not each.is_dir()] + [Path(line.split(maxsplit=5)[-1]) for line in maps]
    return any(each.is_relative_to(place.absolute()) for each in held)


def refuse(path: Any, *, if_in_use: bool) -> None:
    if not if_in_use or in_use(Path(path)):
        raise PermissionError(errno.EACCES, "Access is denied", os.fspath(path))


def open_(path: Any, flags: int, mode: int = 0o777, **options: Any) -> int:
    if Path(path).is_dir():
        refuse(path, if_in_use=False)
    return REAL["open"](path, flags, mode, **options)


def fsync(file: Any) -> None:
    handle = file if isinstance(file, int) else file.fileno()
    if fcntl.fcntl(handle, fcntl.F_GETFL) & os.O_ACCMODE == os.O_RDONLY:
        raise OSError(errno.EBADF, "Bad file descriptor")
    REAL["fsync"](handle)


def rename(old: Any, new: Any, **options: Any) -> None:
    if os.path.lexists(new):
        raise FileExistsError(errno.EEXIST, "Cannot create a file when that file already exists", os.fspath(old))
    refuse(old, if_in_use=True)
    REAL["rename"](old, new, **options)


def replace(old: Any, new: Any, **options: Any) -> None:
    refuse(new, if_in_use=not Path(new).is_dir())
    refuse(old, if_in_use=True)
    REAL["replace"](old, new, **options)


def unlink(path: Any, **options: Any) -> None:
    if "dir_fd" not in options and "filelock-probe" not in str(path):
        refuse(path, if_in_use=True)
    REAL["unlink"](path, **options)


def no_library(name: Any = None, *args: Any, real: Any = ctypes.CDLL, **options: Any) -> Any:
    if name is None:
        raise TypeError("argument of type 'NoneType' is not iterable")
    return real(name, *args, **options)


def begin() -> None:
    """Behave so from now on; labelspace's own modules also see that the system is Windows."""
    os.open, os.fsync, os.rename, os.replace, os.unlink, os.remove = open_, fsync, rename, replace, unlink, unlink
    ctypes.CDLL = no_library  # type: ignore[assignment, misc]
    shutil._use_fd_functions = False  # type: ignore[attr-defined]
    windows = types.ModuleType("os")
    windows.__dict__.update({**vars(os), "name": "nt"})
    for name, module in list(sys.modules.items()):
        if name.startswith("labelspace") and getattr(module, "os", None) is os:
            module.os = windows  # type: ignore[attr-defined]


def road(place: Path, encoder: str) -> None:
    """Fit, save, save again, open, save into the folder that is open, resume, predict, replace, and export."""
    from labelspace import DescriptionClassifier, ZeroShotClassifier, load
    from labelspace.classify import export, predict_file
    from labelspace.classify.tables import stream
    from labelspace.encoders import backbone  # what asks for the system must be there before it begins

    labels = {"sports": ["A team wins a match."], "business": ["Shares of a bank fall."]}
    begin()
    assert backbone.os.name == "nt"  # type: ignore[attr-defined]
    saved = place / "model"
    ZeroShotClassifier(labels, encoder).fit().save(saved)
    again = load(saved)
    again.encoder_.backbone  # noqa: B018 - opens the weights
    again.save(saved)
    for stop in (15, None):
        how = {"max_steps": 40, "learning_rate": 1e-3, "callbacks": [_stop_at(stop)], "checkpoint": place / "run"}
        with suppress(SystemExit):
            DescriptionClassifier(labels, encoder, seed=0, **how).fit().save(saved)  # type: ignore[arg-type]
        assert any(place.glob("run/*")) == (stop is not None)
    load(saved).fit().save(saved)
    source = place / "in.csv"
    source.write_text("text\nthe team won the match\nshares of the bank fell\n", encoding="utf-8")
    real, stream.answered = stream.answered, _interrupted
    with suppress(KeyboardInterrupt):
        predict_file(load(saved), source, place / "out.csv")
    stream.answered = real
    for overwrite in (False, True):
        predict_file(load(saved), source, place / "out.csv", overwrite=overwrite)
    export(load(saved), place / "exported", to="onnx")
    print(*sorted(file.name for file in place.iterdir()))


def _stop_at(number: int | None) -> Any:
    def callback(step: int, values: dict[str, float]) -> None:
        if step == number:
            raise SystemExit

    return callback


def _interrupted(*_: Any, **__: Any) -> Any:
    raise KeyboardInterrupt
    yield


if __name__ == "__main__":
    road(Path(sys.argv[1]), sys.argv[2])
