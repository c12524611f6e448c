"""Run a client contestant as several processes:
`python -m netdyno.measure.trial.client_processes N PROGRAM URL [options]`.
From outside it is one client: it takes the same options, writes the same events and one result.

Each process has its share of the connections. All connections stand before one of them is used; then all processes
begin at one moment, and so have one window. While that lasts, this program sleeps. When it is killed, they are too."""

from __future__ import annotations

import argparse
import os
import select
import subprocess
import sys
import time
from collections.abc import Sequence
from contextlib import ExitStack
from functools import partial
from pathlib import Path

from netdyno.kit.child import die_with
from netdyno.measure.machine.process import LineReader
from netdyno.measure.trial.load import NOTHING_MEASURED
from netdyno.measure.trial.parts import Parts

GO_AHEAD_NS = 100_000_000
"""The time from the announcement to the common start: many times the wake-up time of a process."""


def build_command(program: Sequence[str], processes: int) -> list[str]:
    """Return the command that starts a client contestant as so many processes."""
    if processes == 1:
        return list(program)
    return [sys.executable, "-P", "-m", __name__, str(processes), *program]


class ClientProcess:
    """One process, with the descriptor of its events."""

    def __init__(self, client_words: Sequence[str], result: Path, stack: ExitStack) -> None:
        reading, writing = os.pipe()
        stack.callback(os.close, reading)
        self.result = result
        stack.callback(result.unlink, missing_ok=True)
        self.process = subprocess.Popen(
            [*client_words, "--json", str(result), "--events-fd", str(writing)],
            stdin=subprocess.PIPE,
            pass_fds=[writing],
            preexec_fn=partial(die_with, os.getpid()),
        )
        os.close(writing)
        stack.callback(self.process.wait)
        stack.callback(self.process.kill)
        self.events = LineReader(reading, f"process {self.process.pid}")

    def go(self, at_ns: int) -> None:
        """Tell the process when to begin."""
        assert self.process.stdin is not None
        try:
            self.process.stdin.write(b"go %d\n" % at_ns)
            self.process.stdin.flush()
        except BrokenPipeError:
            pass  # it has ended; its exit code says why


def main(arguments: Sequence[str]) -> int:
    parser = argparse.ArgumentParser(prog="client_processes", allow_abbrev=False)
    parser.add_argument("processes", type=int)
    parser.add_argument("--json", type=Path, required=True)
    parser.add_argument("--events-fd", type=int, required=True)
    options, client_words = parser.parse_known_args(arguments)
    with ExitStack() as stack:
        parts = [
            ClientProcess(
                [*client_words, "--share", f"{number}/{options.processes}", "--await-go"],
                options.json.with_suffix(f".{number}.json"),
                stack,
            )
            for number in range(1, options.processes + 1)
        ]
        _follow(parts, options.events_fd)
        for number, part in enumerate(parts, 1):
            code = part.process.wait()
            if code not in (0, NOTHING_MEASURED) or not part.result.is_file():
                print(f"process {number} of {len(parts)} ended with exit code {code}", file=sys.stderr)
                return 2
        return _write_result(parts, options.json)


def _follow(parts: Sequence[ClientProcess], events_fd: int) -> None:
    """Pass on the events, merged into those of one client, until every process has closed its descriptor."""
    merged_events = Parts(len(parts))
    poll = select.poll()
    for part in parts:
        poll.register(part.events.fd, select.POLLIN)
    open_parts = {part.events.fd: number for number, part in enumerate(parts)}
    has_begun = False
    while open_parts:
        for fd, _ in poll.poll():
            number = open_parts[fd]
            events = parts[number].events
            for line in events.read_lines():
                os.write(events_fd, merged_events.hear(number, line.encode() + b"\n"))
            if events.at_end:
                poll.unregister(fd)
                del open_parts[fd]
        if merged_events.all_stand and not has_begun:
            has_begun = True
            at_ns = time.monotonic_ns() + GO_AHEAD_NS
            for part in parts:
                part.go(at_ns)


def _write_result(parts: Sequence[ClientProcess], path: Path) -> int:
    """Write the sum of all results, and return the exit code of one program with that result."""
    import msgspec

    from netdyno.measure.trial.context import decode_load
    from netdyno.measure.trial.merged import merge_processes  # the window is over: it needs numpy

    whole = merge_processes([decode_load(part.result.read_bytes()) for part in parts])
    path.write_bytes(msgspec.json.encode(whole))
    return 0 if whole.messages.received > 0 else NOTHING_MEASURED


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
