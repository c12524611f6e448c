"""Files that are written whole or not at all, and the reading of files of unknown origin."""

from __future__ import annotations

import errno
import fcntl
import os
import select
import stat
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

_KINDS = {
    stat.S_IFLNK: "a symbolic link",
    stat.S_IFIFO: "a pipe",
    stat.S_IFSOCK: "a socket",
    stat.S_IFDIR: "a folder",
    stat.S_IFREG: "a file",
}

_MOST_LINKS = 40
"""The number of links that the kernel follows (path_resolution(7))."""

MOST_GIVEN = 64 << 20
"""The most bytes of a file that the user names: a device has no end."""
PEER_MS = 3000
"""The time that a pipe has to get a program at its other end."""
AGAIN_S = 0.01


def read_if_there(path: Path | str) -> str:
    """Read a small file, such as the kernel's, stripped; empty where it is missing or may not be read."""
    try:
        return Path(path).read_text(encoding="utf-8", errors="replace").strip()
    except OSError:
        return ""


def write_whole(path: Path, content: str | bytes) -> None:
    """Write a file so that a reader sees the old one or the whole new one, behind symbolic links too. A target that
    cannot be replaced (a device, a pipe, a descriptor of this process such as /dev/stdout) is opened and written in
    place; lib/cli/whole_file.cpp does the same. Raises OSError."""
    written = content.encode() if isinstance(content, str) else content
    target = _follow_links(path)
    descriptor = _find_descriptor(target)
    if descriptor is not None:
        with os.fdopen(os.dup(descriptor), "wb") as file:
            file.write(written)
    elif _is_replaceable(target):
        _replace(target, written)
    else:
        with os.fdopen(_open_special(target), "wb") as file:
            file.write(written)


def _open_special(path: Path) -> int:
    """Open a device or a pipe to write to it. Raises OSError, also where no program reads the pipe (fifo(7))."""
    flags = os.O_WRONLY | os.O_TRUNC | os.O_NONBLOCK | os.O_CLOEXEC | os.O_NOCTTY
    give_up_s = time.monotonic() + PEER_MS / 1e3
    while True:
        try:
            descriptor = os.open(path, flags)
        except OSError as error:
            if error.errno != errno.ENXIO:
                raise
            if time.monotonic() > give_up_s:
                raise OSError(errno.ENXIO, "it is a pipe that no program reads", str(path)) from error
            time.sleep(AGAIN_S)
        else:
            os.set_blocking(descriptor, True)
            return descriptor


def _follow_links(path: Path) -> Path:
    """Return the target of a path. Links of descriptors are not followed: their text need not be a path (proc(5)), and
    an open file has its own position for the next byte."""
    for _ in range(_MOST_LINKS):
        if not path.is_symlink() or _resolve_folder(path).startswith("/proc/"):
            break
        path = path.parent / path.readlink()
    return path


def _resolve_folder(path: Path) -> str:
    return os.path.realpath(path.parent)


def _find_descriptor(path: Path) -> int | None:
    """Return the descriptor of this process that a path names, if any: /dev/fd/63 is a link into /proc/self/fd."""
    named = _resolve_folder(path) == f"/proc/{os.getpid()}/fd" and path.name.isdecimal()
    return int(path.name) if named else None


def _is_replaceable(path: Path) -> bool:
    """Whether the path does not exist, or is a regular file."""
    try:
        return stat.S_ISREG(path.lstat().st_mode)
    except FileNotFoundError:
        return True


def _replace(path: Path, content: bytes) -> None:
    unfinished = path.with_name(f".{path.name}.{os.getpid()}")
    try:
        unfinished.unlink(missing_ok=True)  # what lies there, a link perhaps, is not written through
        with unfinished.open("xb") as file:
            file.write(content)
        unfinished.replace(path)
    finally:
        with suppress(OSError):  # nothing to remove where nothing could be written
            unfinished.unlink()


@contextmanager
def lock_folder(folder: Path) -> Iterator[None]:
    """Hold a folder's lock (flock(2)) while what is in it is read, changed and written: another process waits for it.
    The lock ends with its process, however that ends. Raises OSError."""
    lock = os.open(folder, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        fcntl.flock(lock, fcntl.LOCK_EX)
        yield
    finally:
        os.close(lock)


def kind_of(mode: int) -> str:
    """Return the kind of a file from its mode (inode(7)): "a pipe"."""
    return _KINDS.get(stat.S_IFMT(mode), "a device")


def read_given(path: Path) -> bytes:
    """Read a file that the user names, or what another program writes to a pipe. Raises OSError, also where no program
    writes to the pipe; reading would wait for one without end."""
    with os.fdopen(os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC | os.O_NOCTTY), "rb") as file:
        first = _await_writer(file.fileno(), path)
        os.set_blocking(file.fileno(), True)
        content = first + file.read(MOST_GIVEN + 1)
    if len(content) > MOST_GIVEN:
        raise OSError(errno.EFBIG, f"it has more than {MOST_GIVEN >> 20} MiB", str(path))
    return content


def _await_writer(descriptor: int, path: Path) -> bytes:
    """Wait until a pipe has a writer or an end. Returns what was read to find that out."""
    poll = select.poll()
    poll.register(descriptor, select.POLLIN)
    if not stat.S_ISFIFO(os.fstat(descriptor).st_mode) or poll.poll(PEER_MS):
        return b""
    try:
        first = os.read(descriptor, 1)
    except BlockingIOError:  # a writer that has written nothing yet
        return b""
    if not first:
        raise OSError(errno.EPIPE, "it is a pipe to which no program writes", str(path))
    return first


def open_regular(path: Path) -> int:
    """Open a file of unknown origin for reading and return its descriptor. Raises OSError, also where it is a link,
    which would lead elsewhere, or a pipe, which would block."""
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
