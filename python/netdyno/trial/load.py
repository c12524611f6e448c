"""Run netdyno-load or a client contestant against a server: the measured load, and the closing check."""

from __future__ import annotations

import math
import os
import select
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Protocol

import msgspec

from netdyno.machine.pinning import punctual
from netdyno.machine.process import (
    LOOK_S,
    UNREADABLE,
    LineReader,
    Process,
    ServerError,
    TrialError,
    describe_exit,
)
from netdyno.machine.trial_log import TrialLog
from netdyno.model.load_result import LoadResult
from netdyno.model.options import Settings
from netdyno.trial.setup import Bench

CHECK_CONNECTS_S = 10.0
"""How long the closing check may take to connect: twice the default of the generator's `--connect-timeout`."""

NEWS_S = 1.0
"""How long after the load has failed the news may take that its server had ended: another's comes through a program of
ours (contestants/stand_in.py)."""

NOTHING_MEASURED = 1
"""How the generator and client contestants end when no reply was right (docs/load.md, protocol/client.md). They write
their result all the same, and its audits judge the server; without a result, the program itself has failed."""

NOT_BELIEVED = 3
"""How the generator ends where an audit of its own has failed (docs/load.md). What that means for the trial, its audits
say."""

MOST_RESULT = 64 << 20
"""Bytes of a result: of a window of an hour it has two million."""


class Event(msgspec.Struct, frozen=True):
    """A line of --events-fd (protocol/load-result.md). `completed` counts from the start of the window, `sent` from
    that of the slice; `paused_ns` is how long nothing ran on the witnessed cores within it."""

    event: str
    completed: int = 0
    seconds: float = 0.0
    sent: int = 0
    paused_ns: int = 0


class Watch(Protocol):
    """Who is told as the load announces its window: watch.Watch, but where a trial is not measured."""

    def connected(self) -> None: ...
    def window_start(self) -> None: ...
    def window_end(self) -> None: ...
    def generator_ended(self) -> None: ...
    def maybe_take(self) -> None: ...
    def next_wait(self, deadline: float) -> float: ...


def measure(
    program: str, command: Sequence[str], wanted: Settings, server: Process, watch: Watch, bench: Bench, log: TrialLog
) -> LoadResult:
    """The load: `watch` learns of its window, and its result is read. `program` is what a reason calls it: "generator"
    or "client NAME". A load without a single right reply is a result too. Raises TrialError when either program
    fails."""
    limit_s = connect_limit_s(wanted) + wanted.warmup_s + wanted.duration_s + wanted.timeout_s + bench.slack_s
    reading, writing = os.pipe()
    with os.fdopen(reading, "rb"), result_file(bench) as result, log.section(program, command) as output:
        full = [*command, "--json", str(result), "--events-fd", str(writing)]
        try:
            generator = Process(
                full,
                bench.load_cores,
                output,
                name=program,
                realtime=bench.pinning.realtime,
                pass_fds=[writing],
            )
        finally:
            os.close(writing)
        with generator:
            try:
                with punctual(bench.pinning.harness, realtime=bench.is_punctual):
                    serving = _follow(generator, server, LineReader(reading, program), watch, bench, limit_s)
                load = read_result(generator, result, bench.decode) if serving else None
                if load is not None and load.messages.received == 0 and server.wait(time.monotonic() + NEWS_S):
                    load = None
            except TrialError:
                # Whoever notices first that it is gone, the watch or the generator: why it ended says more.
                if server.wait(time.monotonic() + NEWS_S):
                    raise ended_under_load(server) from None
                raise
            if load is None:
                raise ended_under_load(server)
        watch.generator_ended()
        return load


def ended_under_load(server: Process) -> ServerError:
    """Return what is raised of a server that has ended. Reaps it."""
    return ServerError(f"the server ended with {describe_exit(server.exit_code())} under load{server.last_words()}")


def connect_limit_s(wanted: Settings) -> float:
    """Return how long the connections of a cell may take to stand, in seconds."""
    all_s = 0.0 if wanted.connect_rate == "burst" else wanted.connections / float(wanted.connect_rate)
    return wanted.connect_timeout_s + all_s


def check(command: Sequence[str], wanted: Settings, bench: Bench, log: TrialLog) -> tuple[LoadResult | None, str]:
    """Ask the server once more, over fresh connections: the result, or why there is none."""
    limit_s = CHECK_CONNECTS_S + wanted.timeout_s + bench.slack_s
    try:
        with (
            result_file(bench) as result,
            log.section("check", command) as output,
            Process([*command, "--json", str(result)], bench.load_cores, output, name="generator") as generator,
        ):
            if not generator.wait(time.monotonic() + limit_s):
                return None, f"no answer within {limit_s:g} s"
            return read_result(generator, result, bench.decode), ""
    except TrialError as failure:
        return None, str(failure)


@contextmanager
def result_file(bench: Bench, name: str = "result") -> Iterator[Path]:
    """A file for the result of a program, which is gone afterwards."""
    path = bench.folder / "logs" / f"{name}.json"
    try:
        yield path
    finally:
        path.unlink(missing_ok=True)


def _follow(
    generator: Process, server: Process, events: LineReader, watch: Watch, bench: Bench, limit_s: float
) -> bool:
    """Attend to events until the load has ended; False when the server ends before. Raises TrialError when time is up.
    Reaps neither (pinning.punctual)."""
    deadline = time.monotonic() + limit_s
    poll = select.poll()  # lighter than a selector, as this runs within the window
    for watched in (generator.pidfd, server.pidfd, events.fd):
        poll.register(watched, select.POLLIN)
    following = True
    while following:
        if time.monotonic() > deadline:
            raise TrialError(f"the {generator.name} did not finish within {limit_s:g} s")
        Process.look_at_logs()
        ready = {fd for fd, _ in poll.poll(math.ceil(min(watch.next_wait(deadline), LOOK_S) * 1000))}
        if server.pidfd in ready:
            return False
        following = generator.pidfd not in ready
        if events.fd in ready:
            _attend(generator, events, watch, bench)
            if events.at_end:
                poll.unregister(events.fd)
        watch.maybe_take()
    _attend(generator, events, watch, bench)
    return True


def _attend(generator: Process, events: LineReader, watch: Watch, bench: Bench) -> None:
    for line in events.read_lines():
        event = read_event(generator, line)
        if event.event == "connected":
            watch.connected()
        elif event.event == "window_start":
            watch.window_start()
        elif event.event == "window_end":
            watch.window_end()
        elif event.event == "progress":
            bench.progress(event.completed, event.seconds)


def read_event(generator: Process, line: str) -> Event:
    """Return what a line of --events-fd says. Raises TrialError where it is none."""
    try:
        return msgspec.json.decode(line, type=Event)
    except UNREADABLE as error:
        raise TrialError(f"the {generator.name}'s event cannot be read: {line[:200]!r}") from error


def read_result(generator: Process, path: Path, decode: Callable[[bytes], LoadResult]) -> LoadResult:
    """Raises TrialError where the program itself has failed: it wrote no result, or it could open no connection for
    want of ports, descriptors or a route."""
    generator.expect_success(also={NOT_BELIEVED, NOTHING_MEASURED} if path.exists() else {NOT_BELIEVED})
    try:
        with path.open("rb") as file:
            text = file.read(MOST_RESULT + 1)
    except FileNotFoundError as error:
        raise TrialError(f"the {generator.name} ended without a result") from error
    if len(text) > MOST_RESULT:
        raise TrialError(f"the {generator.name}'s result has more than {MOST_RESULT >> 20} MiB")
    try:
        load = decode(text)
    except UNREADABLE as error:
        raise TrialError(f"the {generator.name}'s result cannot be read: {error}") from error
    if load.connections.established == 0 and load.connections.other > 0:
        generator.expect_success()
    return load
