"""Runs the load generator or a client contestant on a host of the load, for a trial elsewhere: `python -m
netdyno.cluster.load_helper`.

Its first line on stdin is a LoadWanted; what follows is for a generator that awaits it. What the program announces
goes out as it comes, a line of JSON each; the last line is a LoadEnded. When stdin ends, all is over. It has one
thread, as machine/process.py wants it."""

from __future__ import annotations

import json
import os
import select
import subprocess
import sys
from contextlib import suppress
from pathlib import Path

import msgspec

from netdyno.audits import of_trial as audits
from netdyno.base.child import die_with
from netdyno.base.errors import UserError
from netdyno.base.paths import build_dir, canary_path, generator_path
from netdyno.cluster.requests import LoadEnded, LoadWanted
from netdyno.contestants import contestants
from netdyno.machine import cpu_share
from netdyno.machine.pinning import of_one_side, punctual
from netdyno.machine.process import LineReader, Process, TrialError
from netdyno.model.contestant import GENERATOR
from netdyno.model.load_result import Audit
from netdyno.model.observation import ForeignLoad
from netdyno.trial import client_processes
from netdyno.trial.canary import Canary

WHERE = "on the host of the load"


class Cores:
    """Whose the cores of this host were over the window."""

    def __init__(self) -> None:
        self._own: tuple[int, ...] = ()
        self._taken: list[cpu_share.Snapshot] = []

    def hear(self, line: str) -> None:
        """The window's ends, as the generator announces them."""
        event = json.loads(line).get("event")
        if event == "connected":
            self._own = cpu_share.own_processes()
        elif event in ("window_start", "window_end"):
            self._taken.append(cpu_share.take(self._own))

    def audits(self, wanted: ForeignLoad) -> tuple[Audit, ...]:
        """Those of the machine; none where no window was announced."""
        if len(self._taken) != 2:
            return ()
        before, after = self._taken
        seen = cpu_share.observation(before, after, os.sched_getaffinity(0))
        found = audits.foreign_load(seen, wanted)
        return tuple(msgspec.structs.replace(audit, detail=f"{WHERE}: {audit.detail}") for audit in found)


def main() -> None:
    wanted = msgspec.json.decode(sys.stdin.buffer.readline(), type=LoadWanted)
    die_with(wanted.parent)
    try:
        ended = run(wanted, Path(wanted.folder))
    except (UserError, TrialError) as failure:
        ended = LoadEnded(code=1, said=f"{failure}\n", result=None)
    _say(msgspec.json.encode(ended))


def run(wanted: LoadWanted, scratch: Path) -> LoadEnded:
    """Until the program of the load has ended, or stdin. Raises UserError where this host does not have it, TrialError
    where it cannot be started."""
    result, log = scratch / "result.json", scratch / "log"
    words = [*_program(wanted), *wanted.words, "--json", str(result)]
    reading, writing = os.pipe()
    cores = Cores()
    beside = of_one_side(wanted.cores, is_load=True, realtime=wanted.realtime)
    canary = Canary(canary_path(build_dir()), beside, scratch)
    begun = canary.begin() if wanted.events else None
    awaits = "--await-go" in wanted.words
    orders, order = os.pipe()
    with log.open("wb", buffering=0) as output:
        generator = Process(
            [*words, "--events-fd", str(writing)] if wanted.events else words,
            wanted.cores,
            output,
            name=wanted.program,
            realtime=wanted.realtime and wanted.events,
            pass_fds=[writing],
            stdin=orders if awaits else subprocess.DEVNULL,
        )
        os.close(writing)
        os.close(orders)
        with generator:
            with punctual(realtime=wanted.realtime):
                _follow(generator, LineReader(reading), order, cores)
            code = generator.exit_code()
    os.close(reading)
    os.close(order)
    text = result.read_text(encoding="utf-8") if result.is_file() else None
    if text is not None:
        text = _with_audits(text, cores.audits(wanted.foreign_load))
    said = log.read_text(encoding="utf-8", errors="replace")
    return LoadEnded(code=code, said=said, result=text, canary=canary.end(begun) if begun else None)


def _program(wanted: LoadWanted) -> list[str]:
    """The words that start the program on this host. Raises UserError where there is no such contestant, or it cannot
    be started."""
    if wanted.program == GENERATOR:
        return [str(generator_path(build_dir()))]
    client = contestants.by_name(contestants.discover(kind="client"), wanted.program, "client")
    if not client.available:
        raise UserError(f"{client.name} cannot be started here: {client.why_not}")
    return client_processes.command(client.command, wanted.processes)


def _follow(generator: Process, events: LineReader, order: int, cores: Cores) -> None:
    poll = select.poll()
    asker = LineReader(sys.stdin.fileno())
    for watched in (generator.pidfd, events.fd, asker.fd):
        poll.register(watched, select.POLLIN)
    following = True
    while following:
        Process.look_at_logs()
        ready = {fd for fd, _ in poll.poll(100)}
        if asker.fd in ready:
            with suppress(BrokenPipeError):  # it has ended, which says more
                for line in asker.read_lines():
                    os.write(order, f"{line}\n".encode())
            if asker.at_end:
                sys.exit(1)  # the generator goes with it
        following = generator.pidfd not in ready
        for line in events.read_lines():
            cores.hear(line)
            _say(line.encode())
        if events.at_end and events.fd in ready:
            poll.unregister(events.fd)


def _with_audits(text: str, more: tuple[Audit, ...]) -> str:
    """A result as the generator wrote it, with the audits of its host beside its own."""
    found = json.loads(text)
    found["audits"] += [msgspec.to_builtins(audit) for audit in more]
    return json.dumps(found)


def _say(line: bytes) -> None:
    sys.stdout.buffer.write(line + b"\n")
    sys.stdout.buffer.flush()


if __name__ == "__main__":
    main()
