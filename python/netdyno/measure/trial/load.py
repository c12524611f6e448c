"""Run netdyno-load or a client contestant against a server: the measured load, and the closing check."""

from __future__ import annotations

import math
import os
import select
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

import msgspec

from netdyno.measure.machine.pinning import keep_punctual
from netdyno.measure.machine.process import (
    KILLED,
    POLL_S,
    UNREADABLE,
    GoneServerError,
    KilledError,
    LineReader,
    Process,
    ServerError,
    TrialError,
    describe_exit,
)
from netdyno.measure.machine.trial_log import TrialLog
from netdyno.measure.trial.context import TrialContext
from netdyno.model import burst
from netdyno.model.load_result import LoadResult
from netdyno.model.options import Settings

CHECK_CONNECTS_S = 10.0
"""The limit for the closing check to connect: twice the default of the generator's `--connect-timeout`."""

NEWS_S = 1.0
"""The longest delay between the failure of a load and the news that its server had ended: that of a foreign server
comes through a stand-in (question/contestants/stand_in.py)."""

EXIT_S = 10.0
"""The same where the server is gone already: its memory may still be written to a core file (core(5))."""

NOTHING_MEASURED = 1
"""The exit code of the generator and client contestants when no reply was right (docs/load.md, protocol/client.md).
They write their result all the same, and its audits judge the server; without a result, the program itself has
failed."""

INVALID_LOAD = 3
"""The exit code of the generator where one of its own audits has failed (docs/load.md). The audits then judge the
trial."""

MOST_RESULT = 64 << 20
"""The most bytes of a result: that of a window of an hour has two million."""


class LoadEvent(msgspec.Struct, frozen=True):
    """A line of --events-fd (protocol/load-result.md). `completed` counts from the start of the window, `sent` from
    that of the slice; `paused_ns` is the time within it when nothing ran on the load's cores."""

    event: str
    completed: int = 0
    seconds: float = 0.0
    sent: int = 0
    paused_ns: int = 0


class LoadListener:
    """The receiver of a load's events, which need nothing done but where it says so: window.Watch in a measured trial,
    others elsewhere."""

    def connected(self) -> None: ...
    def window_start(self) -> None: ...
    def window_end(self) -> None: ...
    def generator_ended(self) -> None: ...
    def maybe_take(self) -> None: ...

    def next_wait(self, deadline: float) -> float:
        """Return the seconds until something is due."""
        return max(0.0, deadline - time.monotonic())


def measure(
    program: str,
    command: Sequence[str],
    settings: Settings,
    server: Process,
    watch: LoadListener,
    context: TrialContext,
    log: TrialLog,
) -> LoadResult:
    """Run the load and return its result; `watch` gets the events of its window. `program` is its name in a reason:
    "generator" or "client NAME". A load without a single right reply is a result too. Raises TrialError when either
    program fails."""
    may_end = settings.is_write_only
    limit_s = (
        connect_limit_s(settings)
        + write_limit_s(settings)
        + settings.warmup_s
        + settings.duration_s
        + burst.find_patience_s(settings.timeout_s, settings.duration_s, has_burst=settings.burst_rate is not None)
        + context.slack_s
    )
    reading, writing = os.pipe()
    with os.fdopen(reading, "rb"), prepare_result_file(context) as result, log.section(program, command) as output:
        full_command = [*command, "--json", str(result), "--events-fd", str(writing)]
        try:
            generator = Process(
                full_command,
                context.load_cores,
                output,
                name=program,
                realtime=context.pinning.realtime,
                joins_session=settings.is_write_only,
                pass_fds=[writing],
            )
        finally:
            os.close(writing)
        with generator:
            try:
                with keep_punctual(context.pinning.harness, realtime=context.is_punctual):
                    serving = _follow(
                        generator, server, LineReader(reading, program), watch, context, limit_s, may_end=may_end
                    )
                load = read_result(generator, result, context.decode) if serving else None
                if (
                    load is not None
                    and not may_end
                    and load.messages.received == 0
                    and server.wait(time.monotonic() + NEWS_S)
                ):
                    load = None
                if load is not None:
                    watch.generator_ended()
            except TrialError as error:
                raise name_end(error, server) from None
            if load is None:
                raise make_end_error(server)
        return load


def name_end(error: TrialError, server: Process) -> TrialError:
    """Return the reason why the server ended, if it did: the watch or the generator may notice it first, and its exit
    says more."""
    is_gone = isinstance(error, GoneServerError)
    if isinstance(error, ServerError) and not is_gone:
        return error
    return make_end_error(server) if server.wait(time.monotonic() + (EXIT_S if is_gone else NEWS_S)) else error


def make_end_error(server: Process) -> ServerError:
    """Return the error of a server that has ended. Reaps it."""
    code = server.exit_code()
    error = KilledError if code == KILLED else ServerError
    return error(f"the server ended with {describe_exit(code)} under load{server.read_reason()}")


WRITE_SLOWDOWN = 100
"""The factor by which clients that write and never read may be slower than their pace: hundreds of threads of a server
that broadcasts take their core."""


def write_limit_s(settings: Settings) -> float:
    """Return the time limit for the writes of clients that read nothing, in seconds; 0 for all others."""
    return WRITE_SLOWDOWN * settings.messages * settings.every_s if settings.messages is not None else 0.0


def connect_limit_s(settings: Settings) -> float:
    """Return the time limit for the connections of a cell, in seconds."""
    all_s = 0.0 if isinstance(settings.connect_rate, str) else settings.connections / settings.connect_rate
    return settings.connect_timeout_s + all_s


def check(
    command: Sequence[str], settings: Settings, context: TrialContext, log: TrialLog, *, lasts_s: float = 0.0
) -> tuple[LoadResult | None, str]:
    """Send the server requests beside its load, over fresh connections, for at least `lasts_s`; return the result, or
    why there is none."""
    limit_s = CHECK_CONNECTS_S + lasts_s + settings.timeout_s + context.slack_s
    try:
        with (
            prepare_result_file(context) as result,
            log.section("check", command) as output,
            Process([*command, "--json", str(result)], context.load_cores, output, name="generator") as generator,
        ):
            if not generator.wait(time.monotonic() + limit_s):
                return None, f"no answer within {limit_s:g} s"
            return read_result(generator, result, context.decode), ""
    except TrialError as failure:
        return None, str(failure)


@contextmanager
def prepare_result_file(context: TrialContext, name: str = "result") -> Iterator[Path]:
    """Give a path for the result of a program, and remove the file afterwards."""
    path = context.folder / "logs" / f"{name}.json"
    try:
        yield path
    finally:
        path.unlink(missing_ok=True)


def _follow(
    generator: Process,
    server: Process,
    events: LineReader,
    watch: LoadListener,
    context: TrialContext,
    limit_s: float,
    *,
    may_end: bool = False,
) -> bool:
    """Handle events until the load has ended; return False when the server ends first, unless it may. Raises TrialError
    when time is up. Reaps neither (pinning.keep_punctual)."""
    deadline = time.monotonic() + limit_s
    poll = select.poll()  # lighter than a selector, as this runs within the window
    for descriptor in (generator.pidfd, *(() if may_end else (server.pidfd,)), events.fd):
        poll.register(descriptor, select.POLLIN)
    following = True
    while following:
        if time.monotonic() > deadline:
            raise TrialError(f"the {generator.name} did not finish within {limit_s:g} s")
        Process.check_logs()
        ready = {fd for fd, _ in poll.poll(math.ceil(min(watch.next_wait(deadline), POLL_S) * 1000))}
        if server.pidfd in ready:
            return False
        following = generator.pidfd not in ready
        if events.fd in ready:
            _handle_events(generator, events, watch, context)
            if events.at_end:
                poll.unregister(events.fd)
        watch.maybe_take()
    _handle_events(generator, events, watch, context)
    return True


def _handle_events(generator: Process, events: LineReader, watch: LoadListener, context: TrialContext) -> None:
    for line in events.read_lines():
        event = read_event(generator, line)
        if event.event == "connected":
            watch.connected()
        elif event.event == "window_start":
            watch.window_start()
        elif event.event == "window_end":
            watch.window_end()
        elif event.event == "progress":
            context.progress(event.completed, event.seconds)


def read_event(generator: Process, line: str) -> LoadEvent:
    """Decode a line of --events-fd. Raises TrialError where it is no event."""
    try:
        return msgspec.json.decode(line, type=LoadEvent)
    except UNREADABLE as error:
        raise TrialError(f"the {generator.name}'s event cannot be read: {line[:200]!r}") from error


def read_result(generator: Process, path: Path, decode: Callable[[bytes], LoadResult]) -> LoadResult:
    """Read the result of a program. Raises TrialError where the program itself has failed: it wrote no result, or it
    could open no connection for want of ports, descriptors or a route."""
    generator.expect_success(also={INVALID_LOAD, NOTHING_MEASURED} if path.exists() else {INVALID_LOAD})
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
        if load.replies and load.replies.faults:
            raise TrialError(f"no connection could be made: {load.replies.faults[0].what}")
        generator.expect_success()
    return load
