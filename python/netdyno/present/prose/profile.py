"""A profile in words: its notes, and the headings of its functions. Pure functions."""

from __future__ import annotations

from collections.abc import Sequence
from typing import get_args

import msgspec

from netdyno.analysis.notices.functions import FunctionShares, rank_functions
from netdyno.kit import quantities
from netdyno.model.profile import Profile, Profiled, Runtime, Sort

TITLES: dict[Sort, str] = {"on-cpu": "What it computes", "off-cpu": "What it waits for"}
WHAT_IT_IS = (
    "Recorded in separate short trials under perf, which measure nothing else: read shares of the time, never speeds. "
    "Names that end in _[k] are the kernel's."
)
LITTLE = 0.02
"""A share of the time that is not worth a sentence."""
FEW = 100
"""A number of samples below which a share says little."""
_RUNTIME_NOTES: dict[Runtime, str] = {
    "native": "",
    "go": "",
    "java": "frames of Java have names where the JDK is 17 or newer (-XX:+DumpPerfMapAtExit); what its interpreter "
    "runs has none",
    "node": "frames of JavaScript have names where Node.js wrote a map (--perf-basic-prof-only-functions); what was "
    "inlined has none",
    "python": "frames are those of the interpreter, not of Python's functions: for these take CPython 3.12 or newer, "
    "built with -fno-omit-frame-pointer",
}
assert set(_RUNTIME_NOTES) == set(get_args(Runtime))


class ProfileView(msgspec.Struct, frozen=True):
    """What servers compute, or what they wait for: notes by server, and functions by their shares."""

    title: str
    notes: tuple[tuple[str, str], ...]
    headings: tuple[str, ...]
    functions: tuple[FunctionShares, ...]


def view_profiles(load: Profiled) -> list[ProfileView]:
    """Return both kinds of profiles of a load."""
    return [_view_sort(sort, [profile for profile in load.profiles if profile.sort == sort]) for sort in TITLES]


def _view_sort(sort: Sort, profiles: Sequence[Profile]) -> ProfileView:
    recorded = [profile for profile in profiles if profile.stacks]
    columns = ("in itself", "with what it calls") if len(recorded) == 1 else (profile.server for profile in recorded)
    return ProfileView(
        title=TITLES[sort],
        notes=tuple((profile.server, "; ".join(list_notes(profile))) for profile in profiles),
        headings=("function", *columns),
        functions=tuple(rank_functions(recorded)) if recorded else (),
    )


def list_notes(profile: Profile) -> list[str]:
    """Describe the samples of a profile, and which frames are missing and why."""
    if not profile.stacks:
        return [profile.missing]
    recorded = quantities.duration(1e3 * profile.total_us)
    if profile.sort == "on-cpu":
        texts = [
            f"{recorded} of CPU time in {quantities.plural(profile.samples, 'sample')} over {profile.window_s:.2g} s"
        ]
    else:
        switches = "every switch" if profile.every == 1 else f"one switch in {profile.every}"
        texts = [
            (
                f"{recorded} off the CPU, of all threads together, in "
                f"{quantities.plural(profile.samples, 'sample')}: {switches}"
            )
        ]
    if profile.samples < FEW:
        texts.append("few samples: a longer --duration, or more load, gives more")
    if not profile.with_kernel:
        texts.append(
            "kernel frames and their time are missing: this user may not see them (as root: sysctl -w "
            "kernel.perf_event_paranoid=1)"
        )
    if profile.lost:
        texts.append(f"perf lost {quantities.plural(profile.lost, 'event')}: the machine was too busy for it")
    total = profile.total_us
    if profile.unnamed_us > LITTLE * total:
        texts.append(
            f"{quantities.share(profile.unnamed_us / total)} of the time is in stacks with a frame without a name, in "
            f"{quantities.listed(profile.unnamed)}: the symbols were stripped, or a JIT made the code"
        )
    if profile.cut_us > LITTLE * total:
        texts.append(
            f"{quantities.share(profile.cut_us / total)} of the time is in stacks that do not reach main or the start "
            "of a thread: their lower frames are missing, as some code has no unwind tables or frame pointers, or the "
            "stack is deeper than the part that perf copies"
        )
    if runtime_note := _RUNTIME_NOTES[profile.runtime]:
        texts.append(runtime_note)
    return texts
