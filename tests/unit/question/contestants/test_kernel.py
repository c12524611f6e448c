"""A message about a missing kernel feature says how to get it."""

from __future__ import annotations

import errno

import pytest

from netdyno.question.contestants import kernel


@pytest.mark.parametrize(
    ("error", "setting", "reason"),
    [
        (errno.EINVAL, "0", "takes Linux 6.1 or newer, and this is 5.15.0-generic"),
        (errno.EPERM, "2", "as root, sysctl kernel.io_uring_disabled=0 (it is 2)"),
        (errno.EPERM, "0", "containers forbid it unless they are started with a seccomp profile"),
        (errno.ENOSYS, "", "or not in this kernel (Function not implemented)"),
        (errno.ENOMEM, "0", "no io_uring: Cannot allocate memory"),
    ],
)
def test_the_reason_follows_the_errno(error: int, setting: str, reason: str) -> None:
    assert reason in kernel.explain_uring_error(error, "5.15.0-generic", setting)


def test_only_a_program_that_needs_it_is_kept_from_running(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(kernel, "_test_uring", lambda: "io_uring is forbidden")
    assert kernel.explain_missing(("boost", "uring")) == "io_uring is forbidden"
    assert kernel.explain_missing(("boost",)) == ""
