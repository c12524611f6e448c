"""How long a server with a JIT gets cheaper under a load: a short trial of its own before the measured ones, without
warm-up, in which nothing else is measured. docs/adr/warm-up.md says why, and why others have none."""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress

import msgspec

from netdyno.experiment import blocks, plan
from netdyno.experiment.plan import Cell, Kind, Named
from netdyno.machine import cpu_share, jit, orphans, server_proc
from netdyno.machine.links.network import Network, NoNetworkError, Place, network_for
from netdyno.machine.pinning import server_cores
from netdyno.machine.process import Process, TrialError
from netdyno.machine.trial_log import TrialLog
from netdyno.model import transports
from netdyno.model.contestant import Contestant
from netdyno.model.experiment import Scenario
from netdyno.model.options import Settings, settings
from netdyno.model.trial import Trial, Warmup
from netdyno.statistics.block_counts import FEWEST_BLOCKS
from netdyno.statistics.settled import settled_from
from netdyno.trial import load as generate
from netdyno.trial.command import server_command
from netdyno.trial.setup import Bench, Key, key
from netdyno.trial.trial import load_program, log_path, wait_ready

LIMIT_S = 10.0
"""What is not steady by then is part of a server's figures."""
SLICE_S = 0.5
"""How often a load says how far it is (protocol/load-result.md)."""
REST_S = 2.0
"""How long the cores must have been the harness's own since it settled: where others take half of each, a compiler
needs twice as long, and what looks settled is its middle."""
MARGIN = 1.25
"""The next process compiles the same at other moments, the later the more so; beside that, a slice."""
AHEAD_OF_TIME = ("cmake", "cargo", "go")
"""Kinds of contestants whose machine code is there when they start. All others are looked at as they run."""


BEFORE_ALL = "000-000-"
"""How the log of what is no trial begins."""


class NoJitError(Exception):
    """The server makes no machine code while it runs, as far as anybody may know."""


class SettledError(Exception):
    """Nothing is left to wait for."""


def known(trials: Iterable[Trial]) -> dict[Key, Warmup | None]:
    """What trials that ran were made with, of a run that is gone on with. Pure."""
    return {key(one): one.warmup for one in trials if one.status != "skipped"}


def kinds(
    cells: Iterable[Cell], scenarios: Mapping[str, Scenario], servers: Named, clients: Named, done: Collection[Key]
) -> tuple[Kind, ...]:
    """What is to be looked at: each cell once that may run and may be ranked, of which nothing is known. Pure."""
    found = {
        key(cell): Kind(cell.scenario, cell.contestant, cell.levels)
        for cell in cells
        if servers[cell.contestant].manifest.kind not in AHEAD_OF_TIME
        and key(cell) not in done
        and blocks.most(scenarios[cell.scenario]) >= FEWEST_BLOCKS
    }
    return tuple(
        kind
        for kind in found.values()
        if not plan.why_skip(servers[kind.contestant], scenarios[kind.scenario], kind.levels, clients)
    )


def measure(
    some: Iterable[Kind], scenarios: Mapping[str, Scenario], servers: Named, bench: Bench
) -> Iterator[tuple[Kind, Warmup]]:
    """Of each that has a JIT, how long it warms up. A server that has none is started once, and ended at once; where
    one fails, its trials will say so. Never raises but for KeyboardInterrupt and faults of the harness itself."""
    without: set[str] = set()
    for kind in some:
        if kind.contestant in without:
            continue
        try:
            found = _measured(kind, scenarios[kind.scenario], servers[kind.contestant], bench)
        except NoJitError:
            without.add(kind.contestant)
            continue
        if found is not None:
            yield kind, found


def words(contestant: str, where: str, some: Sequence[Warmup]) -> str:
    """What was found in a scenario, at one level or several, in a line. Pure."""
    each = sorted({f"{one.seconds:.1f}" for one in some}, key=float)
    span = f"{each[0]} to {each[-1]} s" if len(each) > 1 else f"{each[0]} s"
    if all(one.steady for one in some):
        return f"warm-up of {contestant}: {span} in {where}, measured"
    still = f"the cost of a message had not settled after {LIMIT_S:g} s, so its JIT is part of its figures"
    return f"warm-up of {contestant}: {span} in {where}; {still}"


def carried_over(cell: Cell, bench: Bench) -> Bench:
    """With a warm-up for a level that was not planned when they were measured: the longest of the same contestant in
    the same scenario. Pure."""
    known = [warmup for (*of, _), warmup in bench.warmups.items() if of == [cell.scenario, cell.contestant]]
    if not known or key(cell) in bench.warmups:
        return bench
    longest = max(known, key=lambda one: one.seconds)
    return bench._replace(warmups={**bench.warmups, key(cell): longest})


def longer_s(cells: Iterable[Cell], scenarios: Mapping[str, Scenario], warmups: Mapping[Key, Warmup]) -> float:
    """What the warm-ups that were measured add to the length of these cells. Pure."""
    return sum(
        max(0.0, warmups[key(cell)].seconds - settings(scenarios[cell.scenario], cell.levels).warmup_s)
        for cell in cells
        if key(cell) in warmups
    )


def _measured(kind: Kind, scenario: Scenario, contestant: Contestant, bench: Bench) -> Warmup | None:
    """None where it cannot be said. Raises NoJitError."""
    # The load says how far it is within its window only, and nothing at its end.
    wanted = msgspec.structs.replace(settings(scenario, kind.levels), warmup_s=0.0, duration_s=LIMIT_S + SLICE_S)
    if wanted.link_words in bench.bad_links:
        return None
    bench = bench.for_cell(wanted)
    cell = Cell(block=0, position=0, **kind._asdict())
    path = log_path(cell)
    log = TrialLog(bench.folder / path.with_name(f"warm-up-{path.name[len(BEFORE_ALL) :]}"))
    try:
        place = Place(bench.pinning, log, bench.seed, bench.network)
        with network_for(transports.of(contestant), wanted, place) as network:
            found = _warmup(cell, wanted, contestant, network, bench, log)
    except (NoNetworkError, TrialError) as failure:
        log.note(f"not measured: {failure}")
        return None
    log.note(f"warm-up: {found}")
    return found


def _warmup(
    cell: Cell, wanted: Settings, contestant: Contestant, network: Network, bench: Bench, log: TrialLog
) -> Warmup | None:
    command = [*network.server, *server_command(contestant, wanted, network.address, cores=server_cores(bench.pinning))]
    with (
        log.section("server", command) as output,
        orphans.end(),
        Process(command, bench.pinning.server, output, talks=True) as server,
    ):
        ready = wait_ready(server, server.lines(), bench, contestant, network)
        pids = server_proc.family(ready.pid) if contestant.own is not None else (ready.pid,)
        if not ready.observed or not any(map(jit.compiles, pids)):
            raise NoJitError
        costs = Costs(lambda: _cpu_s(pids), _Others(pids))
        program, command = load_program(cell, wanted, ready, bench)
        with suppress(SettledError):
            generate.measure(
                program,
                [*network.load, *command],
                wanted,
                server,
                costs,
                bench._replace(progress=costs.progress),
                log,
            )
        return costs.warmup()


def _cpu_s(pids: Iterable[int]) -> float:
    found = 0.0
    for pid in pids:
        with suppress(OSError):  # a child that has ended
            found += time.clock_gettime(server_proc.cpu_clock(pid))
    return found


class _Others:
    """What the hypervisor and programs that the harness has not started took of a core, on average, since it was first
    asked."""

    def __init__(self, pids: Sequence[int]) -> None:
        self._pids = pids
        self._own: tuple[int, ...] = ()
        self._cores = os.sched_getaffinity(0)  # within the load this process may have fewer (pinning.punctual)
        self._first: cpu_share.Snapshot | None = None

    def __call__(self) -> float:
        if self._first is None:
            self._own = tuple({*cpu_share.own_processes(), *self._pids})  # one at an address is nobody's child here
            self._first = cpu_share.take(self._own)
            return 0.0
        seen = cpu_share.observation(self._first, cpu_share.take(self._own), self._cores)
        return 0.0 if seen is None else (seen.steal_s + seen.foreign_s) / seen.cores


class Costs:
    """What a message costs the server, slice by slice, the work of its JIT included."""

    def __init__(self, cpu_s: Callable[[], float], others_s: Callable[[], float] = lambda: 0.0) -> None:
        """`cpu_s`: what the server has used so far, `others_s`: what others took of a core."""
        self._cpu_s = cpu_s
        self._others_s = others_s
        self._last_s = 0.0
        self._last_others_s = 0.0
        self._had_s: list[float] = []
        """What the others left of each slice."""
        self._completed = 0
        self._began_s: list[float] = []
        self._costs: list[float] = []
        self._now_s = 0.0

    def connected(self) -> None:
        """Nothing: the first message is still to come."""

    def window_start(self) -> None:
        self._last_s, self._last_others_s = self._cpu_s(), self._others_s()

    def progress(self, completed: int, seconds: float) -> None:
        """A slice is over, unless nothing was answered in it: then it goes on. Raises SettledError."""
        if completed <= self._completed:
            return
        cpu_s, others_s = self._cpu_s(), self._others_s()
        self._had_s.append(seconds - self._now_s - (others_s - self._last_others_s))
        self._began_s.append(self._now_s)
        self._costs.append((cpu_s - self._last_s) / (completed - self._completed))
        self._last_s, self._last_others_s = cpu_s, others_s
        self._completed, self._now_s = completed, seconds
        first = settled_from(self._costs)
        if first is not None and sum(self._had_s[first:]) >= REST_S:
            raise SettledError

    def window_end(self) -> None:
        """Nothing: what is to be seen has been seen."""

    def generator_ended(self) -> None:
        """As above."""

    def maybe_take(self) -> None:
        """Nothing is due by the clock."""

    def next_wait(self, deadline: float) -> float:
        return max(0.0, deadline - time.monotonic())

    def warmup(self) -> Warmup | None:
        """None where the load did not say how far it was."""
        if not self._costs:
            return None
        first = settled_from(self._costs)
        if first is None:
            return Warmup(seconds=LIMIT_S, measured_s=LIMIT_S, steady=False)
        measured_s = self._began_s[first]
        return Warmup(seconds=min(LIMIT_S, MARGIN * measured_s + SLICE_S), measured_s=measured_s, steady=True)
