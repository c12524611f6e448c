"""Where the files of the tests go: into memory, where it can hold them. And the memory of the processes that have the
tests, which each program started from one pays for.

A run puts each trial on the disk before it goes on, so thousands of runs of fakes would wait for the disk and take a
quarter of their CPU in its file system."""

from __future__ import annotations

import ctypes
import os
import re
from pathlib import Path
from typing import Final

FOLDER: Final = Path("/dev/shm")  # a tmpfs (shm_overview(7)); containers often make it small, and noexec
ROOM_BYTES: Final = 4 << 30
"""Free memory that the folder must have: the files of a whole test run are some 0.4 GiB."""


def can_hold_files(folder: Path) -> bool:
    """Whether the folder has room for the files of a test run, and programs in it can be started."""
    if not os.access(folder, os.W_OK | os.X_OK):
        return False
    system = os.statvfs(folder)
    return system.f_bavail * system.f_frsize >= ROOM_BYTES and not system.f_flag & os.ST_NOEXEC


_LARGE_PAGE: Final = 2 << 20
_MADV_HUGEPAGE, _MADV_COLLAPSE = 14, 25
_ANONYMOUS: Final = re.compile(r"^([0-9a-f]+)-([0-9a-f]+) rw-p \S+ 00:00 0 *(?:\[heap\])?$", re.MULTILINE)
"""A line of /proc/self/maps, proc_pid_maps(5), of memory that no file has and no stack is."""


def join_pages() -> None:
    """Join the pages of this process into large ones, where the kernel does that (madvise(2), MADV_COLLAPSE, from Linux
    6.1). Every program that the harness starts in a test is forked, which copies the table of all pages: from a process
    with all tests (245 MB) that takes 18 ms of CPU, and 8 with large ones."""
    libc = ctypes.CDLL(None)
    libc.madvise.argtypes = (ctypes.c_void_p, ctypes.c_size_t, ctypes.c_int)
    for first, last in _ANONYMOUS.findall(Path("/proc/self/maps").read_text()):
        begin, end = -(-int(first, 16) // _LARGE_PAGE) * _LARGE_PAGE, int(last, 16) // _LARGE_PAGE * _LARGE_PAGE
        if begin < end:
            for advice in (_MADV_HUGEPAGE, _MADV_COLLAPSE):
                libc.madvise(begin, end - begin, advice)
