"""Trials in turns: the contestants of a group stand side by side, each with a load of its own that is connected and
warm, and take slices of their windows one after the other (docs/adr/turns.md).

Within a slice nothing of the harness runs. Between two slices all servers are idle, so that a server's use of its slice
can be read at any moment between them. A turn in which others took the cores is dropped for all alike; a slice in which
a foreign program ran on the server's cores for a moment, or nothing at all on the load's, is retried at once."""

from __future__ import annotations

import math
import os
import random
import select
import time
from collections import Counter
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from contextlib import ExitStack, suppress
from typing import Self

import msgspec

from netdyno.measure.audits import of_trial as audits
from netdyno.measure.audits import turn_audits
from netdyno.measure.machine import cpu_share, orphans, server_proc, server_processes
from netdyno.measure.machine.foreign_programs import ForeignPrograms, ForeignTime
from netdyno.measure.machine.links.network import MACHINE
from netdyno.measure.machine.pinning import count_server_cores, keep_punctual
from netdyno.measure.machine.process import LineReader, Process, TrialError
from netdyno.measure.machine.server_processes import Edges, ProcessCpu, compute_measured_s
from netdyno.measure.trial import load as generate
from netdyno.measure.trial.command import build_server_command
from netdyno.measure.trial.context import TrialContext
from netdyno.measure.trial.prepared import (
    PreparedTrial,
    TrialMeasurements,
    conclude,
    fail,
    load_program,
    prepare,
    record_loss,
)
from netdyno.measure.trial.serving import start_server, wait_ready
from netdyno.measure.trial.trial import audit_trial, check_and_end, lengthen_warmup, read_observation, watch_server
from netdyno.measure.trial.warm_up import warm_up_closed
from netdyno.model import outcomes
from netdyno.model.contestant import Contestant
from netdyno.model.experiment import Scenario
from netdyno.model.levels import level_key
from netdyno.model.load_result import Audit, LoadResult
from netdyno.model.observation import MachineObservation, ServerObservation
from netdyno.model.options import Settings
from netdyno.model.trial import Slice, Trial
from netdyno.question.plan import Cell
from netdyno.question.side_by_side import Slices, divide

AHEAD_NS = 3_000_000
"""The time from the announcement of a slice to its beginning."""
MOST_LOST = 2
"""The dropped turns, as a multiple of those needed, after which the group is given up and retried."""
DEAREST_BEGINNING = 1.15
"""The most by which a message costs an honest server more where the unmeasured beginning and the last answers of a
slice are counted too: half more for 5 ms, less afterwards (docs/adr/settled-slices.md)."""
PAUSE = "pauses of a core"
"""The name in a slice where not a program, but the hypervisor or the kernel, took a core."""
MOST_TRIES = 10
"""The tries of a slice. A program that never rests is left to the audit of the whole turn."""


def run_in_turns(group: Sequence[tuple[Cell, Contestant]], scenario: Scenario, context: TrialContext) -> list[Trial]:
    """Run the cells of a group side by side and judge each; the trials stand in the order of the cells. Raises only
    KeyboardInterrupt and faults of the harness itself."""
    began = time.monotonic()
    prepared = [prepare(cell, scenario, contestant, context) for cell, contestant in group]
    contenders = [Contender(preparation) for preparation in prepared if isinstance(preparation, PreparedTrial)]
    if not contenders:
        return [preparation for preparation in prepared if isinstance(preparation, Trial)]
    turns = Turns(contenders, context)
    with (
        orphans.end(lambda names: contenders[0].note(audits.left_behind(names).detail)) as left_programs,
        ExitStack() as cleanup,
    ):
        for contender in contenders:
            cleanup.callback(contender.close)
        for step in (Contender.start_server, Contender.connect, Contender.warm_up):
            attempt(contenders, step)
        turns.take_all()
        for step in (Contender.end_load, Contender.end_server):
            attempt(contenders, step, also_over=True)
    seconds = (time.monotonic() - began) / len(contenders)
    concluded = iter(judge_together([contender.conclude(turns, left_programs, seconds) for contender in contenders]))
    return [preparation if isinstance(preparation, Trial) else next(concluded) for preparation in prepared]


def attempt(contenders: Sequence[Contender], step: Callable[[Contender], None], *, also_over: bool = False) -> None:
    """Take a step with each contender that has not failed; `also_over`: even if its load is over. Each fails alone."""
    for contender in contenders:
        if contender.takes_turns or (also_over and contender.failure is None):
            with contender.may_fail():
                step(contender)


def judge_together(trials: Sequence[Trial]) -> list[Trial]:
    """Mark all trials of a group as disturbed where one is: all are retried, as they are compared by slices. Pure."""
    disturbed = [trial for trial in trials if outcomes.is_disturbed(trial)]
    if not disturbed:
        return list(trials)
    names = ", ".join(sorted({trial.contestant for trial in disturbed}))
    audit = turn_audits.turns_of_group(names)
    return [trial if trial in disturbed else _add_audit(trial, audit) for trial in trials]


def _add_audit(trial: Trial, audit: Audit) -> Trial:
    if trial.status in ("skipped", "failed"):
        return trial
    judged = (*(earlier for earlier in trial.audits if earlier.name != audit.name), audit)
    status, reason = outcomes.verdict(judged)
    return msgspec.structs.replace(trial, audits=judged, status=status, reason=reason)


class LoadOverError(TrialError):
    """A load ended by itself: a message was never answered, or no connection is left. Its result says which."""


class SlicedLoad:
    """A load generator that waits for the beginning of each slice. Used as a context manager."""

    def __init__(self, prepared: PreparedTrial, command: Sequence[str]) -> None:
        """Start it; its events and its instructions go through pipes."""
        settings, context = prepared.settings, prepared.context
        base, log = prepared.base, prepared.log
        self._settings = settings
        self._context = context
        with ExitStack() as ending:
            name = f"result-{base.position}"
            self._result = ending.enter_context(generate.prepare_result_file(context, name))
            output = ending.enter_context(log.section("generator", command))
            reading, writing = os.pipe()
            ending.callback(os.close, reading)
            instructions, self._telling = os.pipe()
            ending.callback(os.close, self._telling)
            try:
                self.process = ending.enter_context(
                    Process(
                        [*command, "--json", str(self._result), "--events-fd", str(writing)],
                        context.load_cores,
                        output,
                        name="generator",
                        realtime=context.pinning.realtime,
                        pass_fds=[writing],
                        stdin=instructions,
                    )
                )
            finally:
                os.close(writing)
                os.close(instructions)
            self._events = LineReader(reading, "generator")
            self._ending = ending.pop_all()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self._ending.close()

    def tell(self, line: str) -> None:
        """Write a line to it. If it has ended, the line is dropped, and `wait_event` reports the end."""
        with suppress(BrokenPipeError):
            os.write(self._telling, f"{line}\n".encode())

    def wait_event(self, server: Process, limit_s: float) -> generate.LoadEvent:
        """Return its next event. Raises TrialError when the server ends or time is up before it; LoadOverError when the
        generator ends."""
        deadline = time.monotonic() + limit_s
        poll = select.poll()
        for descriptor in (self._events.fd, self.process.pidfd, server.pidfd):
            poll.register(descriptor, select.POLLIN)
        while True:
            if lines := self._events.read_lines():
                return generate.read_event(self.process, lines[0])
            left_s = deadline - time.monotonic()
            if left_s <= 0:
                raise TrialError(f"the generator reported nothing within {limit_s:g} s")
            ready = {fd for fd, _ in poll.poll(math.ceil(left_s * 1000))}
            if server.pidfd in ready:
                raise generate.make_end_error(server)
            if self.process.pidfd in ready:
                raise LoadOverError(f"the generator ended before its last slice{self.process.read_reason()}")

    def finish(self) -> LoadResult:
        """End it, and return the result over all slices that were kept."""
        self.tell("end")
        if not self.process.wait(time.monotonic() + self._settings.timeout_s + self._context.slack_s):
            raise TrialError("the generator did not end after its last slice")
        return generate.read_result(self.process, self._result, self._context.decode)


class SliceReading(msgspec.Struct, frozen=True):
    """The readings around one slice: the wait for its last answers after its end, the CPU of the harness, and what the
    kernel counts of the cores (/proc/stat) and of the network."""

    overrun_s: float
    harness_s: float
    stat_before: str
    stat_after: str
    kernel_before: server_proc.Kernel
    kernel_after: server_proc.Kernel


class Contender:
    """A contestant with its own load, beside the others of its group."""

    server: Process
    load: SlicedLoad

    def __init__(self, prepared: PreparedTrial) -> None:
        self.prepared = prepared
        self.failure: TrialError | None = None
        self.is_over = False
        """Whether its load has ended by itself, and takes no more turns."""
        self._has_begun = False
        self.division: Slices = divide(prepared.settings)
        self.slices: list[Slice] = []
        self.busy_in_others_s = 0.0
        """CPU of this contestant and its load in the slices of others."""
        self._members: tuple[int, ...] = ()
        self._cpu_after_slice: Mapping[int, ProcessCpu] = {}
        self._whole_cpu_s: list[float] = []
        """Of each slice, with what lies around its measured part."""
        self._running = ExitStack()
        self._readings: list[SliceReading] = []
        """One for each slice."""
        self._result: LoadResult | None = None

    @property
    def name(self) -> str:
        return self.prepared.contestant.name

    @property
    def takes_turns(self) -> bool:
        return self.failure is None and not self.is_over

    def note(self, text: str) -> None:
        self.prepared.log.note(text)

    def may_fail(self) -> _MayFail:
        """Return a context in which a TrialError ends this contestant and nothing else."""
        return _MayFail(self)

    def close(self) -> None:
        """End its programs."""
        self._running.close()

    def start_server(self) -> None:
        settings, contestant = self.prepared.settings, self.prepared.contestant
        context, log = self.prepared.context, self.prepared.log
        command = build_server_command(contestant, settings, cores=count_server_cores(context.pinning))
        output = self._running.enter_context(log.section("server", command))
        self.server = self._running.enter_context(start_server(command, contestant, context, output))
        self._lines = self.server.lines()

    def connect(self) -> None:
        """Wait until the server is ready, and let its load connect."""
        cell, settings = self.prepared.cell, self.prepared.settings
        contestant, context = self.prepared.contestant, self.prepared.context
        self._ready = wait_ready(self.server, self._lines, context, contestant, MACHINE)
        self.prepared = lengthen_warmup(self.prepared, self._ready)
        self.watch = watch_server(self.prepared, self._ready, self.server, MACHINE)
        self._before = warm_up_closed(self.prepared, self._ready, self.server, self.watch, MACHINE)
        self._kernel_ready = self._kernel_warm = self.watch.take_kernel()
        division = self.division
        sliced = msgspec.structs.replace(settings, warmup_s=division.skipped_s, duration_s=division.measured_s)
        _, command = load_program(cell, sliced, contestant, self._ready, context)
        self.load = self._running.enter_context(
            SlicedLoad(self.prepared, [*command, "--turns", *self._format_witness()])
        )
        self.load.wait_event(self.server, generate.connect_limit_s(settings) + context.slack_s)
        self.watch.connected()

    def warm_up(self) -> None:
        """Make slices that are dropped, for as long as the scenario's warm-up."""
        for _ in range(math.ceil(self.prepared.settings.warmup_s / self.division.length_s)):
            self._make_slice()
            self.load.tell("drop")
        self.watch.scan()
        self._kernel_warm = self.watch.take_kernel()

    def begin(self) -> None:
        self.watch.window_start()
        self._has_begun = True

    def take_slice(self, turn: int, place: int, rivals: Sequence[Contender]) -> bool:
        """Take the slice at this place of a turn; return whether it took place."""
        before, rivals_before = self.read_server_cpu(), [contender.read_cpu() for contender in rivals]
        self._charge_later(before)
        stat, kernel = read_core_times(), self.watch.take_kernel()
        harness_s = time.process_time()
        began_s = time.monotonic()
        event, at_edges = self._make_measured_slice(before)
        over_s = time.monotonic() - began_s - AHEAD_NS / 1e9 - self.division.length_s
        harness_s = time.process_time() - harness_s
        kernel_after = self.watch.take_kernel()
        self._readings.append(SliceReading(max(0.0, over_s), harness_s, stat, read_core_times(), kernel, kernel_after))
        after = self.read_server_cpu()
        others_s = [
            server_processes.sum_used_s(read, contender.read_cpu())
            for contender, read in zip(rivals, rivals_before, strict=True)
        ]
        for contender, used in zip(rivals, others_s, strict=True):
            contender.busy_in_others_s += used
        measured_share = self.division.measured_s / self.division.length_s
        cpu_s, self._cpu_after_slice = compute_measured_s(before, at_edges, after, measured_share), after
        self._whole_cpu_s.append(server_processes.sum_used_s(before, after))
        self.slices.append(
            Slice(turn=turn, place=place, kept=False, sent=event.sent, cpu_s=cpu_s, others_cpu_s=sum(others_s))
        )
        self.note_foreign(ForeignTime(PAUSE, event.paused_ns / 1e9))
        return event.event == "slice"

    def _charge_later(self, now: Mapping[int, ProcessCpu]) -> None:
        """Charge the last slice with what the server has done since it ended: work put off is work for its messages."""
        if self.slices:
            later_s = server_processes.sum_used_s(self._cpu_after_slice, now)
            self.slices[-1] = msgspec.structs.replace(self.slices[-1], later_cpu_s=later_s)

    def compute_steal_s(self, cores: Collection[int]) -> float:
        """Return what the hypervisor took of these cores during the last slice."""
        reading = self._readings[-1]
        return cpu_share.compute_steal_s(reading.stat_before, reading.stat_after, cores)

    def note_foreign(self, foreign: ForeignTime) -> None:
        """Note what took a core during the last slice, if nothing noted before did for as long."""
        if foreign.seconds > self.slices[-1].foreign_s:
            self.slices[-1] = msgspec.structs.replace(
                self.slices[-1], foreign_s=foreign.seconds, foreign_program=foreign.program
            )

    def keep(self, turn: int, *, keep: bool) -> None:
        """Decide on the slice of a turn, which must be the last one."""
        if not keep:
            self.load.tell("drop")
        elif self.slices and self.slices[-1].turn == turn:
            self.slices[-1] = msgspec.structs.replace(self.slices[-1], kept=True)

    def end_load(self) -> None:
        if self._has_begun:
            self._charge_later(self.read_server_cpu())
            self.watch.window_end()
            self.watch.generator_ended()
        self._result = self.load.finish()

    def end_server(self) -> None:
        self._closing = check_and_end(self.prepared, self.server, self._lines, self._ready, self.watch)
        self.close()

    def find_members(self, parents: Mapping[int, int]) -> None:
        """Find the processes of the server by the parents of all processes. This finds those of one with many threads,
        too, which takes milliseconds."""
        self._members = server_processes.list_members(self.watch.origin, parents)

    def read_server_cpu(self) -> dict[int, ProcessCpu]:
        """Read the CPU of each process of the server so far, those that have begun meanwhile included: it may fork for
        each connection. One with many threads is searched for them once in a turn."""
        origin = self.watch.origin
        pids = self._members if self.watch.family.threads else server_processes.find_members(origin)
        return server_processes.read_cpu(pids, origin.keeper)

    def read_cpu(self) -> dict[int, ProcessCpu]:
        """Read the CPU of each process of the server, and of its load, so far."""
        return self.read_server_cpu() | server_processes.read_cpu([self.load.process.pid])

    def conclude(self, turns: Turns, left_programs: Sequence[str], seconds: float) -> Trial:
        """Return the trial, once all programs have ended."""
        if self.failure is not None:
            return fail(self.prepared, self.failure, seconds)
        if self._result is None or not (turns.kept or self.is_over):
            judged = (*turns.audit_machine(turns.seen), turns.audit())
            return self._add_slices(record_loss(self.prepared, turns.seen, judged, seconds))
        observed = self._observe(self._result) if self.watch.saw_window else None
        slices_s = self.division.length_s * len(self.slices)
        settings = msgspec.structs.replace(self.prepared.settings, duration_s=self._result.plan.duration_s)
        prepared = msgspec.structs.replace(self.prepared, settings=settings)
        judged = (
            *audit_trial(
                prepared,
                self._ready,
                self._result,
                self._closing,
                observed,
                turns.machine,
                left_programs,
                before=self._before,
                overruns_s=[reading.overrun_s for reading in self._read_in_kept()],
            ),
            turns.audit(),
            turn_audits.side_by_side(self.name, self.busy_in_others_s, turns.seconds - slices_s),
            *self._audit_backlog(),
            *self._audit_rotation(observed),
        )
        reported = observed if self._ready.observed else None
        machine, kernel = self._replace_softirqs(self._result, turns.machine), self._count_kernel(self._result)
        measured = TrialMeasurements(self._result, reported, machine, kernel, None, judged)
        return self._add_slices(conclude(prepared, measured, seconds))

    def _add_slices(self, trial: Trial) -> Trial:
        return msgspec.structs.replace(trial, slices=tuple(self.slices))

    def _audit_backlog(self) -> tuple[Audit, ...]:
        """Audit the backlog of an open loop; a closed loop has no queue beyond the requests in flight."""
        settings, readings = self.prepared.settings, self._read_in_kept()
        if settings.arrivals == "closed" or not readings:
            return ()
        overruns_s = [reading.overrun_s for reading in readings]
        return (turn_audits.backlog(overruns_s, self.division.length_s, settings.service_time_in_all_s),)

    def _audit_rotation(self, observed: ServerObservation | None) -> tuple[Audit, ...]:
        """Audit the threads of a closed loop, which keeps the server's cores busy: then they wait for each other."""
        settings, context = self.prepared.settings, self.prepared.context
        if settings.arrivals != "closed" or observed is None:
            return ()
        cores = count_server_cores(context.pinning)
        return (turn_audits.rotation(observed.threads, cores, os.cpu_count() or cores, self.division.measured_s),)

    def _read_in_kept(self) -> list[SliceReading]:
        """Return the readings of the slices that were kept."""
        return [reading for reading, slice_ in zip(self._readings, self.slices, strict=True) if slice_.kept]

    def _format_witness(self) -> list[str]:
        """Return the option for a witness on each core of the load. It needs the real-time priority: else it would wait
        for the generator."""
        prepared = self.prepared
        return ["--witness"] if stands_a_witness(prepared.settings) and prepared.context.pinning.realtime else []

    def _make_slice(self) -> generate.LoadEvent:
        self._announce_slice()
        return self._wait_slice_end()

    def _make_measured_slice(self, before: Mapping[int, ProcessCpu]) -> tuple[generate.LoadEvent, Edges]:
        """Make a slice, and read the server's CPU at the edges of its measured part, before whatever runs there."""
        pids = [pid for pid in before if pid != server_processes.KEEPER]
        begins_s = self._announce_slice()
        with keep_punctual(realtime=self.prepared.context.pinning.realtime):
            at_edges = Edges(
                read_own_cpu_at(begins_s + self.division.skipped_s, pids),
                read_own_cpu_at(begins_s + self.division.length_s, pids),
            )
        return self._wait_slice_end(), at_edges

    def _announce_slice(self) -> float:
        """Announce a slice to the load; return the moment of CLOCK_MONOTONIC at which it begins."""
        begins_ns = time.monotonic_ns() + AHEAD_NS
        self.load.tell(f"go {begins_ns}")
        return begins_ns / 1e9

    def _wait_slice_end(self) -> generate.LoadEvent:
        settings, context = self.prepared.settings, self.prepared.context
        return self.load.wait_event(self.server, self.division.length_s + settings.timeout_s + context.slack_s)

    def _observe(self, load: LoadResult) -> ServerObservation:
        """Return the server's use in the measured parts of the kept slices: its CPU as read at their ends, and, by the
        messages' share, what it did from each of these slices to its next one, and the rest in all slices. Where it has
        put work off to the unmeasured parts, all of a slice is charged by that share."""
        whole = read_observation(self.watch, self._closing)
        kept = [slice_ for slice_ in self.slices if slice_.kept]
        sent = sum(slice_.sent for slice_ in self.slices)
        part = load.requests.sent / sent if sent else 0.0
        part_of_kept = self._compute_measured_part(load)
        measured_s, later_s = (sum(getattr(slice_, name) for slice_ in kept) for name in ("cpu_s", "later_cpu_s"))
        whole_s = sum(whole_s for whole_s, slice_ in zip(self._whole_cpu_s, self.slices, strict=True) if slice_.kept)
        cpu_s = max(measured_s + part_of_kept * later_s, part_of_kept * (whole_s + later_s) / DEAREST_BEGINNING)
        return server_proc.scale_to_part(
            whole,
            switches_share=part,
            wait_share=part,
            cpu_s=cpu_s,
            window_s=load.plan.duration_s,
            harness_cpu_s=sum(reading.harness_s for reading in self._read_in_kept()),
        )

    def _compute_measured_part(self, load: LoadResult) -> float:
        """Return the share of the messages of the kept slices that were sent in their measured parts."""
        sent = sum(slice_.sent for slice_ in self.slices if slice_.kept)
        return load.requests.sent / sent if sent else 0.0

    def _count_kernel(self, load: LoadResult) -> dict[str, int]:
        """Return the counters over the measured parts of the slices that were kept, by their share of the messages, and
        as `setup.<name>` over connects and warm-up. What was counted at all is at least 1."""
        counted = Counter[str]()
        for reading in self._read_in_kept():
            counted.update(server_proc.increase(reading.kernel_before.counters(), reading.kernel_after.counters()))
        part = self._compute_measured_part(load)
        measured = {name: max(round(part * value), min(value, 1)) for name, value in counted.items()}
        setup = server_proc.increase(self._kernel_ready.counters(), self._kernel_warm.counters())
        return measured | {f"setup.{name}": value for name, value in setup.items()}

    def _replace_softirqs(self, load: LoadResult, machine: MachineObservation | None) -> MachineObservation | None:
        """Return the machine's observation, which is of all contestants' slices, with the softirqs of this one's."""
        spans = [(reading.stat_before, reading.stat_after) for reading in self._read_in_kept()]
        return machine and cpu_share.replace_softirqs(machine, spans, self._compute_measured_part(load))


class _MayFail:
    def __init__(self, contender: Contender) -> None:
        self._contender = contender

    def __enter__(self) -> None:
        return None

    def __exit__(self, _kind: object, error: BaseException | None, _traceback: object) -> bool:
        """Prefer the reason why a server ended to the failure that its load saw."""
        if not isinstance(error, TrialError):
            return False
        contender = self._contender
        server = getattr(contender, "server", None)
        if server is not None:
            error = generate.name_end(error, server)
        if isinstance(error, LoadOverError):
            contender.is_over = True
            return True
        contender.failure = error
        contender.close()
        return True


class Turns:
    """The turns of a group, with the observations of the machine."""

    def __init__(self, contenders: Sequence[Contender], context: TrialContext) -> None:
        self._contenders = contenders
        self._context = context
        self._turns_needed = contenders[0].division.turns
        self._slices_again = 2 * self._turns_needed * len(contenders)
        """The retries of slices that are left."""
        self._cores = os.sched_getaffinity(0)  # within the turns this process may have fewer (pinning.keep_punctual)
        self._own_processes: Sequence[int] = ()
        self.kept = 0
        self.dropped = 0
        self.seconds = 0.0
        """The length of all slices, kept or not."""
        self.machine: MachineObservation | None = None
        """The observation over the turns that were kept."""
        self.seen: MachineObservation | None = None
        """The observation over the last turn."""

    def take_all(self) -> None:
        """Take turns until the window is full, or too many were dropped."""
        attempt(self._contenders, Contender.begin)
        with keep_punctual(self._context.pinning.harness, realtime=False):
            for turn, order in enumerate(self._draw_orders()):
                if self.kept == self._turns_needed or self.dropped > MOST_LOST * self._turns_needed:
                    return
                self._take(turn, order)

    def _draw_orders(self) -> Iterator[Sequence[Contender]]:
        """Yield a random order, then its reverse, so that of each pair either comes first equally often."""
        cell = self._contenders[0].prepared.cell
        chance = random.Random(f"turns {self._context.seed} {cell.block} {cell.scenario} {level_key(cell.levels)}")
        while True:
            order = chance.sample(self._contenders, len(self._contenders))
            yield order
            yield order[::-1]

    def _take(self, turn: int, order: Sequence[Contender]) -> None:
        self._find_processes()
        before = cpu_share.take(self._own_processes)
        complete, retried = True, list[tuple[cpu_share.MachineSnapshot, cpu_share.MachineSnapshot]]()
        standing = [contender for contender in order if contender.takes_turns]
        foreign = ForeignPrograms(self._own_processes, self._server_core_numbers)
        for place, contender in enumerate(standing):
            rivals = [rival for rival in standing if rival is not contender and rival.takes_turns]
            with contender.may_fail():
                complete = self._take_undisturbed(contender, turn, place, rivals, foreign, retried) and complete
        after = cpu_share.take(self._own_processes)
        self.seen = cpu_share.compute_observation(before, after, self._cores, retried)
        if not self._is_expected:
            whole = cpu_share.compute_observation(before, after, self._cores)
            complete = complete and not turn_audits.is_stolen(whole)
        keep = complete and all(audit.passed for audit in self.audit_machine(self.seen))
        for contender in standing:
            if contender.takes_turns:
                contender.keep(turn, keep=keep)
        if keep:
            self.kept += 1
            self.machine = add_observations(self.machine, self.seen)
        else:
            self.dropped += 1

    def _find_processes(self) -> None:
        """Find the processes of the run and of each contestant, who may have started more since the last turn."""
        parents = server_proc.read_parents()
        self._own_processes = cpu_share.list_own_processes(parents)
        for contender in self._contenders:
            if contender.takes_turns:
                contender.find_members(parents)

    def _take_undisturbed(
        self,
        contender: Contender,
        turn: int,
        place: int,
        rivals: Sequence[Contender],
        foreign: ForeignPrograms,
        retried: list[tuple[cpu_share.MachineSnapshot, cpu_share.MachineSnapshot]],
    ) -> bool:
        """Let a contestant take its slice, and retry it where a foreign program ran on the server's cores for too long,
        or the hypervisor took one. No figure of the load decides. Adds the readings around each try that does not
        count to `retried`. False where no slice took place, or only one that was lost."""
        begun: cpu_share.MachineSnapshot | None = None
        for tries_left in reversed(range(MOST_TRIES)):
            if begun is None and not self._is_expected:
                begun = cpu_share.take(self._own_processes)  # of many processes slow, so not within what is judged
            before = foreign.read()
            self.seconds += contender.division.length_s
            if not contender.take_slice(turn, place, rivals):
                return False
            stolen_s = contender.compute_steal_s(self._server_core_numbers)
            contender.note_foreign(foreign.find_longest(before, foreign.read()))
            contender.note_foreign(ForeignTime(PAUSE, stolen_s))
            foreign_s, slice_s = contender.slices[-1].foreign_s, contender.division.length_s
            if begun is None or turn_audits.is_free(foreign_s, slice_s, self._server_cores):
                return True
            if not tries_left or not self._slices_again:
                return not turn_audits.is_lost(foreign_s, slice_s, self._server_cores)
            self._slices_again -= 1
            ended = cpu_share.take(self._own_processes)
            retried.append((begun, ended))
            begun = ended  # each reading rounds the idle time, so there is one between two tries
            contender.keep(turn, keep=False)
        return True

    @property
    def _is_expected(self) -> bool:
        """Whether no slice is retried: foreign load is only counted, or a neighbour stays."""
        return self._context.foreign_load == "count" or self._context.neighbour is not None

    @property
    def _server_core_numbers(self) -> Collection[int]:
        return self._context.pinning.server or self._cores

    @property
    def _server_cores(self) -> int:
        return count_server_cores(self._context.pinning)

    def audit_machine(self, observed: MachineObservation | None) -> tuple[Audit, ...]:
        """Judge whether others left the cores to these contestants."""
        return audits.foreign_load(observed, self._context.foreign_load, neighbour=self._context.neighbour)

    def audit(self) -> Audit:
        """Judge whether enough turns were left to the contestants."""
        return turn_audits.turns(self.kept, self._turns_needed, self.dropped)


def add_observations(first: MachineObservation | None, second: MachineObservation | None) -> MachineObservation | None:
    """Return the sum of two observations of the machine. Pure."""
    if first is None or second is None:
        return second if first is None else first
    throttled = (
        None if first.throttled_s is None or second.throttled_s is None else first.throttled_s + second.throttled_s
    )
    return MachineObservation(
        cores=first.cores,
        window_s=first.window_s + second.window_s,
        steal_s=first.steal_s + second.steal_s,
        own_s=first.own_s + second.own_s,
        foreign_s=first.foreign_s + second.foreign_s,
        switches=first.switches + second.switches,
        softirq_s={core: used + second.softirq_s.get(core, 0.0) for core, used in first.softirq_s.items()},
        throttled_s=throttled,
        throttled_periods=first.throttled_periods + second.throttled_periods,
    )


def read_own_cpu_at(moment_s: float, pids: Sequence[int]) -> dict[int, float]:
    """Read the CPU seconds of processes at a moment of CLOCK_MONOTONIC: their clocks only, as to read a file of one
    with a hundred threads takes half a millisecond."""
    time.sleep(max(0.0, moment_s - time.monotonic()))
    return server_processes.read_own_cpu_s(pids)


def read_core_times() -> str:
    """Read the part of /proc/stat on cores; the rest is long on a machine with many interrupts, and each slice has
    two."""
    return cpu_share.read_stat().partition("intr")[0]


def stands_a_witness(settings: Settings) -> bool:
    """Whether a witness, a thread that wakes each millisecond on the generator's cores, changes nothing that is
    measured: it does in a closed loop and in a room (docs/adr/turns.md). Pure."""
    return settings.arrivals != "closed" and settings.workload != "chat"
