"""The ground of a comparison in a sentence: cores of the server, which contestants could use them, and which are not
ranked together. Pure functions."""

from __future__ import annotations

from collections.abc import Collection, Sequence

from netdyno.analysis.found.cells import CellFigures
from netdyno.analysis.found.ground import Ground, ThreadsRun
from netdyno.kit import quantities

NOTHING_PARALLEL = "lock contention and parallel work cannot show here"


def list_caveats(ground: Ground) -> tuple[str, ...]:
    """All that a reader must know before quoting a ranking: one sentence, and a second where contestants could use
    different numbers of cores. None where no trial recorded the cores. A CPU quota comes first."""
    quota = describe_quota(ground.quota_cores)
    if not ground.server_cores:
        return quota
    parts = "; ".join([_describe_cores(ground), *_list_threads(ground.threads)])
    return (*quota, f"{parts}.", *_explain_separate_rankings(ground))


def describe_quota(cores: float | None) -> tuple[str, ...]:
    """Return the sentence that says how many cores' time a CPU quota left; none where there was no quota."""
    if cores is None:
        return ()
    word = "core" if cores == 1 else "cores"
    return (f"Measured under a CPU quota of {cores:g} {word} for server, generator and netdyno together.",)


def _describe_cores(ground: Ground) -> str:
    if ground.shared:
        where = format_core_counts(ground.server_cores)
        text = f"Server and generator shared {where}: every figure of the server includes the generator's work"
        return text if ground.parallel else f"{text}, and {NOTHING_PARALLEL}"
    text = f"The server had {format_core_counts(ground.server_cores)}"
    return text if ground.parallel else f"{text}: {NOTHING_PARALLEL}"


def describe_load_shares(ground: Ground, cells: Sequence[CellFigures]) -> tuple[str, ...]:
    """Return the sentence that says how much of the shared cores the generator itself used; none where it had its
    own."""
    used: dict[str, list[float]] = {}
    for cell in cells if ground.shared else ():
        used.setdefault(cell.contestant, []).append(cell.value("generator-cores"))
    shares = [f"{_format_span(values)} with {name}" for name, values in used.items()]
    return (f"Of the shared cores, the generator itself used {quantities.listed(shares)}.",) if shares else ()


def _format_span(cores: Sequence[float]) -> str:
    """The span of the numbers: "0.42", "0.31 to 0.62"."""
    return " to ".join(dict.fromkeys(f"{value:.2f}" for value in (min(cores), max(cores))))


def format_core_counts(counts: Sequence[int]) -> str:
    if tuple(counts) == (1,):
        return "one core"
    return f"{' or '.join(map(str, counts))} cores"


def describe_usable_cores(cores: Sequence[int]) -> str:
    """Return how many cores a group could use, from its numbers over all levels: "one core", "4 cores", "up to 4
    cores"."""
    if not cores:
        return "an unknown number of cores"
    return f"{'up to ' if len(cores) > 1 else ''}{format_core_counts((max(cores),))}"


def name_unranked(ground: Ground, answered: Collection[int] = (0,)) -> str:
    """Return the sentence about the groups that no answer names, with a leading space; empty where there are none.
    `answered`: the places of the others in `ground.together`."""
    rest = [group for place, group in enumerate(ground.together) if place not in answered]
    names = [
        f"{quantities.listed(group.contestants)}, which could use {describe_usable_cores(group.cores)}"
        for group in rest
    ]
    return f" Not ranked here: {'; '.join(names)}." if names else ""


def _explain_separate_rankings(ground: Ground) -> tuple[str, ...]:
    if len(ground.together) < 2:
        return ()
    could = [
        f"{quantities.listed(group.contestants)} could use {describe_usable_cores(group.cores)}"
        for group in ground.together
    ]
    apart = f"{'; '.join(could)}: servers that could use different numbers of cores are not ranked together"
    asleep = [ran.contestant for ran in ground.threads if ran.by_default]
    way_out = f'; threads = "cores" gives {quantities.listed(asleep)} a thread for each core' if asleep else ""
    return (f"{apart} (server-cores = 1 gives one core to all{way_out}).",)


def _list_threads(all_ran: Sequence[ThreadsRun]) -> list[str]:
    """List the threads of each contestant, those with the same number together, in order of the first of them."""
    groups: dict[str, list[str]] = {}
    for ran in all_ran:
        groups.setdefault(_describe_threads(ran), []).append(ran.contestant)
    return [f"{quantities.list_first(names)} ran {threads}" for threads, names in groups.items()]


def _describe_threads(ran: ThreadsRun) -> str:
    if ran.model == "per-connection":
        return "a thread for each connection"
    if ran.by_default:
        return "one thread, the default on any machine"
    if ran.model == "one":
        return "one thread, by design"
    if ran.alone:
        return "one thread"
    return f"{' or '.join(map(str, ran.counts))} threads"
