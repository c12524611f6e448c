"""The streams behind the golden vectors over a socket: every contestant does what the reference does, in whatever
language it is written. Every client ends its stream here, so the reference gets that end, too."""

from __future__ import annotations

import itertools
from collections.abc import Iterator
from contextlib import ExitStack, suppress

import pytest

from netdyno.model.contestant import Contestant
from tests.contract.golden import wire
from tests.contract.golden.sessions import SessionOptions, SessionOutcome, serve
from tests.contract.golden.vectors import GoldenCase, cases
from tests.contract.tcp.conftest import ServedContestant, threads_for
from tests.support.client import Client
from tests.support.golden import undated
from tests.support.server import Server, serving

LONGEST_SERVICE_NS = 50_000_000
OF_LOOPS: dict[str, str] = {}
"""The options with which each loop plays the streams. What others change is decided by the session, or tested of every
loop elsewhere: test_shutdown.py has the service that burns CPU, test_options.py what is seen from outside."""
SPLIT = {"write-mode": "split"}
"""Settings that do not show in the bytes of a stream: test_options.py counts the segments."""


def outcome(case: GoldenCase) -> SessionOutcome:
    """What the reference makes of a case when the client half-closes after it."""
    return serve(case.workload, SessionOptions.parse(case.options), b"".join(case.chunks), ends=True)


def of_workload(workload: str) -> list[GoldenCase]:
    """Without those that take seconds, and by options, so that few servers are needed."""
    mine = [case for case in cases() if case.workload == workload and _service_ns(case) <= LONGEST_SERVICE_NS]
    return sorted(mine, key=lambda case: sorted(case.options.items()))


def _service_ns(case: GoldenCase) -> int:
    return sum(int(str(effect.get("wait", 0))) + int(str(effect.get("burn", 0))) for effect in outcome(case).effects)


@pytest.mark.workloads("echo", "lines", "rpc", "http")
def test_golden_streams(served: ServedContestant) -> None:
    """Against the server that other tests use. That each loop counts what is malformed is in test_shutdown.py."""
    for case in of_workload(served.workload):
        if case.options == OF_LOOPS:
            check_replies(case, converse(served.server, case))


@pytest.mark.workloads("chat")
def test_golden_streams_of_chat(contestant: Contestant, workload: str) -> None:
    """Against a server of their own: another test's listener may hear the end of them, and knows stamps alone."""
    play(contestant, workload, [case for case in of_workload(workload) if case.options == OF_LOOPS])


@pytest.mark.once_a_language
@pytest.mark.workloads("lines", "rpc", "chat", "http")
def test_golden_streams_with_other_options(contestant: Contestant, workload: str) -> None:
    """Without those that only take longer, of which no byte tells: test_options.py looks at the time."""
    visible = [case for case in of_workload(workload) if "service-time" not in case.options]
    play(contestant, workload, [case for case in visible if case.options not in (OF_LOOPS, SPLIT)])


def play(contestant: Contestant, workload: str, chosen: list[GoldenCase]) -> None:
    """Play these cases, sorted by their options, against one server for each set of options."""
    for options, group in itertools.groupby(chosen, key=lambda case: case.options):
        arguments = [part for name, value in options.items() for part in (f"--{name}", value)]
        with serving(contestant.command, "--workload", workload, *arguments, *threads_for(contestant)) as server:
            errors = sum(converse_all(server, workload, list(group)))
            assert server.stop()["protocol_errors"] == errors, options


def converse_all(server: Server, workload: str, group: list[GoldenCase]) -> Iterator[int]:
    """Play these cases in turn; yields the protocol errors of each.

    One listener hears all of a chat: a second one may meet a thread on which the case before is still on its way.
    """
    with ExitStack() as stack:
        listener = stack.enter_context(Client(server.address)) if workload == "chat" else None
        if listener is not None:
            join(server, listener, hears_itself=group[0].options.get("audience") == "all")
        for case in group:
            came = converse(server, case)
            if listener is None:
                check_replies(case, came)
            else:
                assert listener.receive(len(written(case, "broadcast"))) == written(case, "broadcast"), case.name
            yield outcome(case).protocol_errors


def converse(server: Server, case: GoldenCase) -> bytes:
    """Play one case; all that comes back to its client."""
    with Client(server.address) as client:
        with suppress(BrokenPipeError, ConnectionResetError):  # the server may have closed before all is said
            for chunk in case.chunks:
                client.send(chunk)
            client.half_close()
        return client.rest_until_closed()


def check_replies(case: GoldenCase, came: bytes) -> None:
    """Compare all that came back with what the reference sends."""
    expected = written(case, "write")
    if case.workload == "http":
        assert undated(came) == expected, case.name
        assert undated(came) != came or not expected, case.name
    else:
        assert came == expected, case.name


def join(server: Server, listener: Client, hears_itself: bool) -> None:
    """Make sure that the server knows the listener, by the shortest message there is (some cases set a low limit)."""
    listener.send(wire.frame(b"h"))
    server.wait_read(listener.address)
    if hears_itself:
        assert listener.frame() == b"h"


def written(case: GoldenCase, kind: str) -> bytes:
    """The bytes of all effects of a kind."""
    parts = [effect[kind] for effect in outcome(case).effects if kind in effect]
    return b"".join(bytes.fromhex("".join(part) if isinstance(part, list) else str(part)) for part in parts)


pytestmark = [pytest.mark.workloads("echo", "lines", "rpc", "chat", "http"), pytest.mark.quick]
