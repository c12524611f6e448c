"""Folders below the system's temporary folder that are gone with their owner: at the end of the block, or, where the
owner was killed, with the next start of its kind."""

from __future__ import annotations

import fcntl
import os
import shutil
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

UNFINISHED = "netdyno-new-"
"""The prefix of a folder until it is locked, so that no process takes it for a dead owner's."""


@contextmanager
def temporary_folder(kind: str) -> Iterator[Path]:
    """Make a folder named netdyno-KIND-…, locked as long as this process uses it (flock(2)): the kernel releases the
    lock when the process ends, however that happens. Unlocked folders of the same kind and user are removed first.
    Raises OSError."""
    prefix = f"netdyno-{kind}-"
    remove_abandoned(prefix)
    made = Path(tempfile.mkdtemp(prefix=UNFINISHED))
    folder = made.with_name(prefix + made.name.removeprefix(UNFINISHED))
    lock = os.open(made, os.O_RDONLY | os.O_DIRECTORY)
    try:
        fcntl.flock(lock, fcntl.LOCK_EX)
        made.rename(folder)
        yield folder
    finally:
        shutil.rmtree(folder if folder.exists() else made, ignore_errors=True)  # a helper may still write there
        os.close(lock)


def remove_abandoned(prefix: str) -> None:
    """Remove the folders of this user that begin with the prefix and that no process has locked."""
    for folder in Path(tempfile.gettempdir()).glob(f"{prefix}*"):
        with suppress(OSError):  # another user's, a link, or just gone
            _remove_if_abandoned(folder)


def _remove_if_abandoned(folder: Path) -> None:
    lock = os.open(folder, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW)
    try:
        if os.fstat(lock).st_uid != os.geteuid():
            return
        fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)  # BlockingIOError where its owner lives
        shutil.rmtree(folder)
    finally:
        os.close(lock)
