"""The ground of a comparison in a sentence: cores of the server, and who could use them. Pure functions."""

from __future__ import annotations

from collections.abc import Sequence

from netdyno.analysis.ground import Ground, ThreadsRun
from netdyno.base import quantities


def sentences(ground: Ground) -> tuple[str, ...]:
    """What a reader must know before quoting a ranking: one sentence, and a second where some ran one thread while
    others could use several cores. None where no trial tells."""
    if not ground.server_cores:
        return ()
    first = f"The server had {_cores(ground.server_cores)}"
    if not ground.parallel:
        first += ": lock contention and parallel work cannot show here"
    parts = "; ".join([first, *_threads(ground.threads)])
    held = ground.held_to_one_core
    if not held:
        return (f"{parts}.",)
    others = [ran.contestant for ran in ground.threads if not ran.alone]
    able = [ran.contestant for ran in held if ran.model == "any"]
    way_out = f' (threads = "cores" gives {quantities.listed(able)} a thread for each core)' if able else ""
    unequal = (
        f"{quantities.listed([ran.contestant for ran in held])} had the use of one core and "
        f"{quantities.listed(others)} of "
        f"several: what they differ by there is more than the model{way_out}."
    )
    return f"{parts}.", unequal


def _cores(counts: Sequence[int]) -> str:
    if tuple(counts) == (1,):
        return "one core"
    return f"{' or '.join(map(str, counts))} cores"


def _threads(all_ran: Sequence[ThreadsRun]) -> list[str]:
    """Who ran how many, those alike together, in the order in which the first of them comes."""
    groups: dict[str, list[str]] = {}
    for ran in all_ran:
        groups.setdefault(_how_many(ran), []).append(ran.contestant)
    return [f"{quantities.listed(names)} ran {how_many}" for how_many, names in groups.items()]


def _how_many(ran: ThreadsRun) -> str:
    if ran.model == "per-connection":
        return "a thread for each connection"
    if ran.by_default:
        return "one thread, which is the default on any machine"
    if ran.model == "one":
        return "one thread, which is the model"
    if ran.alone:
        return "one thread"
    return f"{' or '.join(map(str, ran.counts))} threads"
