"""Where the files of the tests go: into memory, where it can hold them.

A run puts each trial on the disk before it goes on, so thousands of runs of fakes would wait for the disk and take a
quarter of their CPU in its file system."""

from __future__ import annotations

import os
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
