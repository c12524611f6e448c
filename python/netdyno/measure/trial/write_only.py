"""A trial of clients that write and never read: nothing is answered, so there is no window to observe and no reply to
verify. What is measured is how many finish, what they wrote, and whether the server outlived them."""

from __future__ import annotations

import os
from pathlib import Path

from netdyno.measure.audits import of_trial as audits
from netdyno.measure.machine import cpu_share, orphans, server_proc
from netdyno.measure.machine.links.network import Network
from netdyno.measure.machine.process import Process, describe_exit
from netdyno.measure.trial import load as generate
from netdyno.measure.trial.prepared import PreparedTrial, TrialMeasurements, judge_exit, load_program
from netdyno.measure.trial.serving import build_networked_command, shut_down, wait_ready
from netdyno.model.observation import MachineObservation

BROKEN_PIPE = "signal SIGPIPE"
"""The end of a server that a client ended by leaving (process.describe_exit)."""


class BurstWatch(generate.LoadListener):
    """Reads the machine's cores and the kernel's counters at both ends of the burst. The server may not outlive it."""

    def __init__(self, network: Path) -> None:
        self._network = network
        self._cores = os.sched_getaffinity(0)  # meanwhile this process may have fewer (pinning.keep_punctual)
        self._own: tuple[int, ...] = ()
        self._machine: list[cpu_share.MachineSnapshot] = []
        self._kernel: list[server_proc.Kernel] = []

    def window_start(self) -> None:
        self._take()

    def window_end(self) -> None:
        self._take()

    def generator_ended(self) -> None:
        if len(self._machine) == 1:
            self._take()

    def machine(self) -> MachineObservation | None:
        """Return the use of the cores by others; None where the kernel does not report it."""
        before, after = self._machine[0], self._machine[-1]
        return cpu_share.compute_observation(before, after, self._cores)

    def kernel(self) -> dict[str, int]:
        """Return the counters as those of the connects, which last as long as the load."""
        before, after = (reading.counters() for reading in (self._kernel[0], self._kernel[-1]))
        return {f"setup.{name}": value for name, value in server_proc.increase(before, after).items()}

    def _take(self) -> None:
        if not self._machine:
            self._own = cpu_share.find_own_processes()  # the server's keeper is one, and outlives it
        self._machine.append(cpu_share.take(self._own))
        self._kernel.append(server_proc.Kernel(server_proc.take_kernel(self._network), None))


def measure_writes(prepared: PreparedTrial, network: Network) -> TrialMeasurements:
    """Run the server and the clients, in one session as a script that starts its server does it: of two sessions each
    would have half of the cores, however many threads the server has (autogroup, sched(7)). A server that was started
    so that SIGPIPE ends it may end: that is a result."""
    settings, contestant, context, log = prepared.settings, prepared.contestant, prepared.context, prepared.log
    command = build_networked_command(contestant, settings, network, context)
    watch = BurstWatch(network.counters)
    with (
        log.section("server", command) as output,
        orphans.end(lambda names: log.note(audits.left_behind(names).detail)) as left_programs,
        Process(command, context.pinning.server, output, talks=True, kept=True, joins_session=True) as server,
    ):
        lines = server.lines()
        ready = wait_ready(server, lines, context, contestant, network)
        program, load_command = load_program(prepared.cell, settings, contestant, ready, context)
        load = generate.measure(program, [*network.load, *load_command], settings, server, watch, context, log)
        ended = describe_exit(server.exit_code()) if server.has_ended() else ""
        if not ended:
            _, ended = shut_down(server, lines, context)
    machine = watch.machine()
    ended_by = ended if ended == BROKEN_PIPE and settings.server.get("sigpipe") == "ends" else ""
    judged = (
        *load.audits,
        judge_exit("" if ended_by else ended),
        audits.left_behind(left_programs),
        *audits.foreign_load(machine, context.foreign_load, neighbour=context.neighbour),
    )
    return TrialMeasurements(load, None, machine, watch.kernel(), None, judged, ended_by)
