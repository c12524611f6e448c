"""Machines of other sizes and kinds than this one, as their kernels show them: a file each in machines/, unpacked into
a folder that topology.read takes for the root.

A line is what `grep -H '' FILE...` prints, a path and a line of the file, with two things to keep it short: `cpu[0-3]`
stands for each of these, and `{cpu}` for its number. `vm-2.txt` was recorded so; the others are composed after the
makers' documents and hwloc's records of such machines."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path

from netdyno.measure.machine.topology import parse_list

FOLDER = Path(__file__).parent / "machines"


def unpack(name: str, root: Path, *, allowed: str | None = None) -> Path:
    """Write a machine's files below `root`; `allowed`: the processors that taskset(1) leaves. Returns `root`."""
    for path, line in _files(name):
        if allowed is not None and path == "/proc/self/status":
            line = f"Cpus_allowed_list:\t{allowed}"
        file = root / path.lstrip("/")
        file.parent.mkdir(parents=True, exist_ok=True)
        with file.open("a", encoding="ascii") as text:
            text.write(f"{line}\n")
    return root


def _files(name: str) -> Iterator[tuple[str, str]]:
    for recorded in (FOLDER / f"{name}.txt").read_text(encoding="ascii").splitlines():
        if recorded.startswith("#"):
            continue
        path, _, line = recorded.partition(":")
        if (several := re.search(r"cpu\[([\d,-]+)\]", path)) is None:
            yield path, line
            continue
        for cpu in parse_list(several[1]):
            yield path.replace(several[0], f"cpu{cpu}"), line.replace("{cpu}", str(cpu))
