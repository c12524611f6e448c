"""Files that are written whole or not at all, and files of others that are read."""

from __future__ import annotations

import errno
import os
import stat
from contextlib import suppress
from pathlib import Path

_KINDS = {stat.S_IFLNK: "a symbolic link", stat.S_IFIFO: "a pipe", stat.S_IFSOCK: "a socket", stat.S_IFDIR: "a folder"}


def write_whole(path: Path, text: str) -> None:
    """A reader sees the old file or the whole new one. Raises OSError."""
    unfinished = path.with_name(f".{path.name}.{os.getpid()}")
    try:
        unfinished.write_text(text, encoding="utf-8")
        unfinished.replace(path)
    finally:
        with suppress(OSError):  # where nothing could be written there is nothing to take away
            unfinished.unlink()


def kind_of(mode: int) -> str:
    """The kind of a file that is no regular one, of its mode (inode(7)): "a pipe"."""
    return _KINDS.get(stat.S_IFMT(mode), "a device")


def open_regular(path: Path) -> int:
    """Open a file of somebody else to be read and return its descriptor. Raises OSError, also where it is a link that
    would lead elsewhere, or a pipe that would be waited for."""
    try:
        descriptor = os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC)
    except OSError as error:
        if error.errno == errno.ELOOP:
            raise OSError(errno.ELOOP, "it is a symbolic link and no file", str(path)) from error
        raise
    mode = os.fstat(descriptor).st_mode
    if stat.S_ISREG(mode):
        return descriptor
    os.close(descriptor)
    raise OSError(errno.EINVAL, f"it is {kind_of(mode)} and no file", str(path))
