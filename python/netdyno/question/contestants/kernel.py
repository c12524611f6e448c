"""The needs of a contestant that the kernel must meet, by their names in its manifest. A build cannot know whether it
does: the machine that measures may be another, or a container that forbids it."""

from __future__ import annotations

import ctypes
import errno
import functools
import os
import platform
import struct
from collections.abc import Iterable
from pathlib import Path

_IO_URING_SETUP = 425
"""The system call's number on every architecture that has had it from its beginning (asm-generic/unistd.h), without
Alpha."""
_PARAMS = struct.Struct("=QI108x")
"""struct io_uring_params (linux/io_uring.h): the sizes of its queues, and its flags."""
_SINGLE_ISSUER, _DEFER_TASKRUN = 1 << 12, 1 << 13
_DISABLED = Path("/proc/sys/kernel/io_uring_disabled")


def explain_missing(needs: Iterable[str]) -> str:
    """Return which of these needs the kernel lacks or forbids, and the way to get it; empty where it meets all of
    them."""
    checks = {"uring": _test_uring}
    return " ".join(reason for need in needs if need in checks and (reason := checks[need]()))


@functools.cache
def _test_uring() -> str:
    """Ask the kernel for the ring that the servers ask it for (servers/_shared/uring/ring.cpp). Return why it
    gives none; empty where it does."""
    libc = ctypes.CDLL(None, use_errno=True)
    params = ctypes.create_string_buffer(_PARAMS.pack(0, _SINGLE_ISSUER | _DEFER_TASKRUN))
    fd: int = libc.syscall(_IO_URING_SETUP, 1, params)
    if fd >= 0:
        os.close(fd)
        return ""
    return explain_uring_error(ctypes.get_errno(), platform.release(), _read_setting())


def explain_uring_error(error: int, kernel: str, setting: str) -> str:
    """Explain an errno of io_uring_setup(2); `setting` is kernel.io_uring_disabled. Pure."""
    if error == errno.EINVAL:
        return f"io_uring with deferred task work takes Linux 6.1 or newer, and this is {kernel}"
    if error not in (errno.EPERM, errno.EACCES, errno.ENOSYS):
        return f"no io_uring: {os.strerror(error)}"
    if setting not in ("", "0"):
        return f"io_uring is forbidden: as root, sysctl kernel.io_uring_disabled=0 (it is {setting})"
    return (
        f"io_uring is forbidden here, or not in this kernel ({os.strerror(error)}): containers forbid it unless they "
        "are started with a seccomp profile that allows io_uring_setup, io_uring_enter and io_uring_register"
    )


def _read_setting() -> str:
    try:
        return _DISABLED.read_text(encoding="ascii").strip()
    except OSError:
        return ""  # kernels before 6.6 do not have it
