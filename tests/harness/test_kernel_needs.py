"""A kernel that forbids what a contestant needs makes a stated skip of it. Here a filter of our own forbids it, as the
seccomp profiles of containers do."""

from __future__ import annotations

import errno
import json
import subprocess
import sys
from pathlib import Path

import pytest

from netdyno.question.contestants import kernel
from netdyno.question.contestants.contestants import discover

FORBIDDEN = """
import ctypes, os, struct, sys

class Program(ctypes.Structure):
    _fields_ = [("size", ctypes.c_ushort), ("lines", ctypes.c_char_p)]

LOAD_NUMBER, IF_URING_SETUP, ALLOW = (0x20, 0, 0, 0), (0x15, 0, 1, 425), (0x06, 0, 0, 0x7FFF0000)
REFUSE = (0x06, 0, 0, 0x00050000 | int(sys.argv[1]))
lines = b"".join(struct.pack("=HBBI", *line) for line in (LOAD_NUMBER, IF_URING_SETUP, REFUSE, ALLOW))
PR_SET_SECCOMP, PR_SET_NO_NEW_PRIVS, SECCOMP_MODE_FILTER = 22, 38, 2
libc = ctypes.CDLL(None, use_errno=True)
assert libc.prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) == 0, ctypes.get_errno()
program = Program(4, lines)
assert libc.prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, ctypes.byref(program)) == 0, ctypes.get_errno()
os.execv(sys.argv[2], sys.argv[2:])
"""
"""seccomp(2): io_uring_setup(2) fails with an errno in the program whose command line follows it."""


def without_uring(error: int, *command: str) -> subprocess.CompletedProcess[str]:
    """Run a program where io_uring_setup fails with that errno."""
    forbidding = (sys.executable, "-c", FORBIDDEN, str(error))
    return subprocess.run((*forbidding, *command), capture_output=True, text=True, check=False)


@pytest.mark.parametrize(
    ("error", "printed"),
    [(errno.EPERM, "is forbidden"), (errno.ENOSYS, "not in this kernel"), (errno.EINVAL, "Linux 6.1")],
)
def test_the_kernel_is_queried(error: int, printed: str) -> None:
    asks = "from netdyno.question.contestants import kernel; print(kernel.explain_missing(['uring']))"
    done = without_uring(error, sys.executable, "-c", asks)
    assert printed in done.stdout, done


def test_a_server_that_needs_what_the_kernel_forbids_is_a_stated_skip(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    manifest = {"kind": "cmake", "model": "m", "summary": "s", "workloads": ["echo"]}
    for name, needs in (("with", ["uring"]), ("without", [])):
        (tmp_path / "servers" / name).mkdir(parents=True)
        (tmp_path / "servers" / name / "server.json").write_text(json.dumps(manifest | {"needs": needs}))
        (tmp_path / "build" / "servers").mkdir(parents=True, exist_ok=True)
        (tmp_path / "build" / "servers" / name).touch()
    monkeypatch.setattr(kernel, "_test_uring", lambda: "io_uring is forbidden")
    first, second = discover(tmp_path, tmp_path / "build")
    assert (first.available, first.why_not) == (False, "io_uring is forbidden")
    assert second.available
