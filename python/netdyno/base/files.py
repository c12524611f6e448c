"""Files that are written whole or not at all, and files of others that are read."""

from __future__ import annotations

import errno
import os
import stat
from contextlib import suppress
from pathlib import Path

_KINDS = {stat.S_IFLNK: "a symbolic link", stat.S_IFIFO: "a pipe", stat.S_IFSOCK: "a socket", stat.S_IFDIR: "a folder"}

_MOST_LINKS = 40
"""As many as the kernel follows (path_resolution(7))."""


def write_whole(path: Path, content: str | bytes) -> None:
    """Write a file so that a reader sees the old one or the whole new one, behind symbolic links too. What cannot be
    replaced so (a device, a pipe, a descriptor of this process such as /dev/stdout) is opened and written, and stays
    what it is; lib/cli/whole_file.cpp does the same. Raises OSError."""
    written = content.encode() if isinstance(content, str) else content
    target = _behind_links(path)
    descriptor = _descriptor(target)
    if descriptor is not None:
        with os.fdopen(os.dup(descriptor), "wb") as file:
            file.write(written)
    elif _is_replaceable(target):
        _replace(target, written)
    else:
        with target.open("wb") as file:
            file.write(written)


def _behind_links(path: Path) -> Path:
    """What a path names. Links of descriptors are not followed: what they say need not be a path (proc(5)), and an open
    file has a place where its next byte goes."""
    for _ in range(_MOST_LINKS):
        if not path.is_symlink() or _folder(path).startswith("/proc/"):
            break
        path = path.parent / path.readlink()
    return path


def _folder(path: Path) -> str:
    return os.path.realpath(path.parent)


def _descriptor(path: Path) -> int | None:
    """The number of the descriptor of this process that a path names: /dev/fd/63 is a link into /proc/self/fd."""
    named = _folder(path) == f"/proc/{os.getpid()}/fd" and path.name.isdecimal()
    return int(path.name) if named else None


def _is_replaceable(path: Path) -> bool:
    """Nothing is there, or a regular file."""
    try:
        return stat.S_ISREG(path.lstat().st_mode)
    except FileNotFoundError:
        return True


def _replace(path: Path, content: bytes) -> None:
    unfinished = path.with_name(f".{path.name}.{os.getpid()}")
    try:
        unfinished.write_bytes(content)
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
