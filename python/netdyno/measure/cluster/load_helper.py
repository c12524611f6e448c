"""Runs the load generator or a client contestant on a host of the load, for a trial elsewhere: `python -m
netdyno.measure.cluster.load_helper`.

Its first line on stdin is a PartRequest; later lines are for a generator that awaits them. The program's announcements
go out at once, a line of JSON each; the last line is a LoadEnded. When stdin ends, so does the load. It has one thread,
as measure/machine/process.py requires."""

from __future__ import annotations

import json
import os
import select
import subprocess
import sys
from contextlib import suppress
from pathlib import Path

import msgspec

from netdyno.kit.child import die_with
from netdyno.kit.errors import UserError
from netdyno.kit.paths import build_dir, canary_path, generator_path
from netdyno.measure.audits import of_trial as audits
from netdyno.measure.cluster.requests import LoadEnded, PartRequest
from netdyno.measure.machine import cpu_share
from netdyno.measure.machine.pinning import keep_punctual, place_canary
from netdyno.measure.machine.process import LineReader, Process, TrialError
from netdyno.measure.trial import client_processes
from netdyno.measure.trial.canary import Canary
from netdyno.model.contestant import GENERATOR
from netdyno.model.load_result import Audit
from netdyno.model.observation import ForeignLoad
from netdyno.question.contestants import contestants

WHERE = "on the host of the load"


class Cores:
    """The shares of the time of this host's cores over the window."""

    def __init__(self) -> None:
        self._own: tuple[int, ...] = ()
        self._taken: list[cpu_share.MachineSnapshot] = []

    def hear(self, line: str) -> None:
        """Read the cores at the window's ends, which the generator announces."""
        event = json.loads(line).get("event")
        if event == "connected":
            self._own = cpu_share.find_own_processes()
        elif event in ("window_start", "window_end"):
            self._taken.append(cpu_share.take(self._own))

    def audits(self, policy: ForeignLoad) -> tuple[Audit, ...]:
        """Return the audits of the machine; none where no window was announced."""
        if len(self._taken) != 2:
            return ()
        before, after = self._taken
        seen = cpu_share.compute_observation(before, after, os.sched_getaffinity(0))
        judged = audits.foreign_load(seen, policy)
        return tuple(msgspec.structs.replace(audit, detail=f"{WHERE}: {audit.detail}") for audit in judged)


def main() -> None:
    request = msgspec.json.decode(sys.stdin.buffer.readline(), type=PartRequest)
    die_with(request.parent)
    try:
        ended = run(request, Path(request.folder))
    except (UserError, TrialError) as failure:
        ended = LoadEnded(code=1, output=f"{failure}\n", result=None)
    _write_line(msgspec.json.encode(ended))


def run(request: PartRequest, scratch: Path) -> LoadEnded:
    """Run the program of the load until it or stdin has ended. Raises UserError where this host does not have it,
    TrialError where it cannot be started."""
    result, log = scratch / "result.json", scratch / "log"
    words = [*_find_program(request), *request.words, "--json", str(result)]
    event_reader, event_writer = os.pipe()
    cores = Cores()
    both_sides = place_canary(request.cores, is_load=True, realtime=request.realtime)
    canary = Canary(canary_path(build_dir()), both_sides, scratch)
    begun = canary.begin() if request.events else None
    awaits = "--await-go" in request.words
    order_reader, order_writer = os.pipe()
    with log.open("wb", buffering=0) as output:
        generator = Process(
            [*words, "--events-fd", str(event_writer)] if request.events else words,
            request.cores,
            output,
            name=request.program,
            realtime=request.realtime and request.events,
            pass_fds=[event_writer],
            stdin=order_reader if awaits else subprocess.DEVNULL,
        )
        os.close(event_writer)
        os.close(order_reader)
        with generator:
            with keep_punctual(realtime=request.realtime):
                _follow(generator, LineReader(event_reader), order_writer, cores)
            code = generator.exit_code()
    os.close(event_reader)
    os.close(order_writer)
    text = result.read_text(encoding="utf-8") if result.is_file() else None
    if text is not None:
        text = _add_audits(text, cores.audits(request.foreign_load))
    printed = log.read_text(encoding="utf-8", errors="replace")
    return LoadEnded(code=code, output=printed, result=text, canary=canary.end(begun) if begun else None)


def _find_program(request: PartRequest) -> list[str]:
    """Return the words that start the program on this host. Raises UserError where there is no such contestant, or it
    cannot be started."""
    if request.program == GENERATOR:
        return [str(generator_path(build_dir()))]
    client = contestants.find_by_name(contestants.discover(kind="client"), request.program, "client")
    if not client.available:
        raise UserError(f"{client.name} cannot be started here: {client.why_not}")
    return client_processes.build_command(client.command, request.processes)


def _follow(generator: Process, events: LineReader, order: int, cores: Cores) -> None:
    poll = select.poll()
    requester = LineReader(sys.stdin.fileno())
    for watched in (generator.pidfd, events.fd, requester.fd):
        poll.register(watched, select.POLLIN)
    following = True
    while following:
        Process.check_logs()
        ready = {fd for fd, _ in poll.poll(100)}
        if requester.fd in ready:
            with suppress(BrokenPipeError):  # the program has ended, which its exit code explains
                for line in requester.read_lines():
                    os.write(order, f"{line}\n".encode())
            if requester.at_end:
                sys.exit(1)  # the generator goes with it
        following = generator.pidfd not in ready
        for line in events.read_lines():
            cores.hear(line)
            _write_line(line.encode())
        if events.at_end and events.fd in ready:
            poll.unregister(events.fd)


def _add_audits(text: str, more: tuple[Audit, ...]) -> str:
    """Add the audits of the host to those of a result as the generator wrote it."""
    decoded = json.loads(text)
    decoded["audits"] += [msgspec.to_builtins(audit) for audit in more]
    return json.dumps(decoded)


def _write_line(line: bytes) -> None:
    sys.stdout.buffer.write(line + b"\n")
    sys.stdout.buffer.flush()


if __name__ == "__main__":
    main()
