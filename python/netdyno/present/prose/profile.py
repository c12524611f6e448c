"""What is said of a profile beside its drawing. Pure functions."""

from __future__ import annotations

from typing import get_args

from netdyno.base import quantities
from netdyno.model.profile import Profile, Runtime, Sort

TITLES: dict[Sort, str] = {"on-cpu": "What it computes", "off-cpu": "What it waits for"}
WHAT_IT_IS = (
    "Recorded in separate short trials under perf, which measure nothing else: read shares of the time, never speeds. "
    "Click a frame, or press Enter, to make it as wide as the page; Escape shows all. Arrow keys go from frame "
    "to frame. "
    "Names that end in _[k] are the kernel's."
)
LITTLE = 0.02
"""A share of the time that is not worth a sentence."""
FEW = 100
"""Samples of which a share is worth little."""
_OF_RUNTIME: dict[Runtime, str] = {
    "native": "",
    "go": "",
    "java": "frames of Java have names where the JDK is 17 or newer (-XX:+DumpPerfMapAtExit); what its interpreter "
    "runs has none",
    "node": "frames of JavaScript have names where Node.js wrote a map (--perf-basic-prof-only-functions); what was "
    "inlined has none",
    "python": "frames are those of the interpreter, not of Python's functions: for these take CPython 3.12 or newer, "
    "built with -fno-omit-frame-pointer",
}
assert set(_OF_RUNTIME) == set(get_args(Runtime))


def notes(one: Profile) -> list[str]:
    """What it stands on, and which frames are missing and why."""
    if not one.stacks:
        return [one.missing]
    seen = quantities.duration(1e3 * one.total_us)
    if one.sort == "on-cpu":
        said = [f"{seen} of CPU time in {quantities.plural(one.samples, 'sample')} over {one.window_s:.2g} s"]
    else:
        which = "every switch" if one.every == 1 else f"one switch in {one.every}"
        said = [f"{seen} off the CPU, of all threads together, in {quantities.plural(one.samples, 'sample')}: {which}"]
    if one.samples < FEW:
        said.append("few samples: a longer --duration, or more load, gives more")
    if not one.with_kernel:
        said.append(
            "kernel frames and their time are missing: this user may not see them (as root: sysctl -w "
            "kernel.perf_event_paranoid=1)"
        )
    if one.lost:
        said.append(f"perf lost {quantities.plural(one.lost, 'event')}: the machine was too busy for it")
    total = one.total_us
    if one.unnamed_us > LITTLE * total:
        where = quantities.listed(one.unnamed)
        said.append(
            f"{quantities.share(one.unnamed_us / total)} of the time is in frames without a name, in {where}: "
            "the symbols were stripped, or a JIT made the code"
        )
    if one.cut_us > LITTLE * total:
        said.append(
            f"{quantities.share(one.cut_us / total)} of the time is in stacks that do not reach main or the start "
            "of a thread: their lower frames are missing, as some code has no unwind tables or frame pointers, or the "
            "stack is deeper than the part that perf copies"
        )
    if beside := _OF_RUNTIME[one.runtime]:
        said.append(beside)
    return said
