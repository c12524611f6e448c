"""A check whether a process makes machine code while it runs: it then has executable memory without a file
(proc(5))."""

from __future__ import annotations

from pathlib import Path

_PROC = Path("/proc")
_OF_THE_KERNEL = ("[vdso]", "[vsyscall]", "[uprobes]")
_NO_FILE = ("[anon", "/memfd:", "/dev/zero")
"""The beginnings of the names of mappings that have a name but no file: named memory, and memory that is written and
executed at two addresses (memfd_create(2))."""


def compiles(pid: int) -> bool:
    """Return whether it does; False also for a process that has ended or may not be inspected."""
    try:
        maps = (_PROC / str(pid) / "maps").read_text(encoding="utf-8", errors="replace")
    except OSError:
        return False
    return has_made_code(maps)


def has_made_code(maps: str) -> bool:
    """Return whether a text of /proc/PID/maps has executable memory that was made while the program ran. Pure."""
    return any(_is_made(line) for line in maps.splitlines())


def _is_made(line: str) -> bool:
    _, permissions, _, _, _, *name = line.split(maxsplit=5)
    if "x" not in permissions:
        return False
    return not name or (name[0] not in _OF_THE_KERNEL and name[0].startswith(_NO_FILE))
