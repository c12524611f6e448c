"""Every option has the effect that it promises, as seen from the other end or by the kernel."""

from __future__ import annotations

import time
from itertools import pairwise
from statistics import median

import pytest

from netdyno.model.contestant import Contestant
from tests.contract.golden import wire
from tests.support import kernel, proc
from tests.support.fake_server import AcceptedConnection, fake_server, honest
from tests.support.patience import PATIENCE_S, eventually
from tests.support.running_client import ENDLESS, running

REQUESTS = 20


@pytest.mark.parametrize("level", ["on", "off"])
def test_nodelay(client: Contestant, level: str) -> None:
    """Read from the client's own socket."""
    with fake_server() as fake, running(client.command, fake.url, "-c", "2", "--nodelay", level, *ENDLESS) as runs:
        eventually(lambda: fake.requests.total() >= REQUESTS, "no requests")
        sockets = proc.tcp_sockets(runs.pid, fake.port)
        try:
            answers = []
            for fd in sockets:
                with kernel.duplicated(runs.pid, fd) as duplicate:
                    answers.append(kernel.nodelay(duplicate))
        except kernel.DescriptorNotAllowedError as error:
            pytest.skip(f"the socket of another process cannot be asked here: {error}")
        runs.stop()
    assert answers == [level == "on"] * 2


@pytest.mark.parametrize(("mode", "segments"), [("gathered", 1), ("split", 2)])
def test_write_mode(client: Contestant, mode: str, segments: int) -> None:
    """With Nagle's algorithm off every write is a segment, and the server's kernel counts what it gets."""
    counts: list[int] = []

    def count(peer: AcceptedConnection, request: wire.WorkRequest) -> bool:
        counts.append(kernel.tcp_info(peer.socket, kernel.TCPI_DATA_SEGS_IN))
        return honest(peer, request)

    options = ("--nodelay", "on", "--write-mode", mode, *ENDLESS)
    with fake_server(count) as fake, running(client.command, fake.url, *options) as runs:
        eventually(lambda: len(counts) >= REQUESTS, "no requests")
        runs.stop()
    increments = [after - before for before, after in pairwise([0, *counts[:REQUESTS]])]
    # On a busy machine the kernel sends some twice (loss probes, RFC 8985): more with one request, fewer with none.
    assert (min(increments), median(increments)) == (segments, segments), increments


@pytest.mark.parametrize(
    ("size", "mode"), [(28, "gathered"), (1000, "split"), (100_000, "gathered"), (100_000, "split")]
)
def test_size(client: Contestant, size: int, mode: str) -> None:
    sizes: set[int] = set()

    def note(peer: AcceptedConnection, request: wire.WorkRequest) -> bool:
        sizes.add(len(request.stamp))
        return honest(peer, request)

    options = ("-c", "2", "--size", str(size), "--write-mode", mode, *ENDLESS)
    with fake_server(note) as fake, running(client.command, fake.url, *options) as runs:
        eventually(lambda: fake.requests.total() >= REQUESTS, "no requests")
        done = runs.stop()
    assert sizes == {size}
    assert (done.failures, done.result.messages.lost, done.result.messages.corrupt) == ({}, 0, 0)


def test_service_time_is_requested_of_the_server(client: Contestant) -> None:
    service_times: set[int] = set()

    def note(peer: AcceptedConnection, request: wire.WorkRequest) -> bool:
        service_times.add(request.workload)
        return honest(peer, request)

    with fake_server(note) as fake, running(client.command, fake.url, "--service-time", "3ms", *ENDLESS) as runs:
        eventually(lambda: fake.requests.total() >= REQUESTS, "no requests")
        runs.stop()
    assert service_times == {3000}


def test_the_warm_up_is_no_part_of_the_window(client: Contestant) -> None:
    options = ("--warmup", "400ms", "--duration", "200ms")
    with fake_server() as fake, running(client.command, fake.url, *options) as runs:
        done = runs.wait()
        assert done.result.messages.sent == fake.requests.total()
    assert 0 < done.result.requests.sent < done.result.messages.sent


def test_connections_stay_open_after_the_last_answer(client: Contestant) -> None:
    """Also those that had theirs long before. A lower bound, which no busy machine can break."""
    answered: list[float] = []

    def late(peer: AcceptedConnection, request: wire.WorkRequest) -> bool:
        if peer.client == 0:
            time.sleep(0.3)
        answered.append(time.monotonic())
        return honest(peer, request)

    options = ("-c", "3", "--warmup", "0", "--duration", "200ms", "--linger", "1s")
    with fake_server(late) as fake, running(client.command, fake.url, *options) as runs:
        done = runs.wait()
        eventually(lambda: fake.open == 0, "connections are open after the end")
    assert min(fake.ended) - max(answered) >= 0.999
    assert len(fake.ended) == 3
    assert (done.code, done.stderr, done.failures, done.result.messages.lost) == (0, "", {}, 0)
    assert done.client.tick_lag_ns.count >= 100, "the application's loop has its ticks to the end"


def test_by_default_connections_close_with_the_last_answer(client: Contestant) -> None:
    answered: list[float] = []

    def note(peer: AcceptedConnection, request: wire.WorkRequest) -> bool:
        answered.append(time.monotonic())
        return honest(peer, request)

    options = ("-c", "3", "--warmup", "0", "--duration", "200ms")
    with fake_server(note) as fake, running(client.command, fake.url, *options) as runs:
        done = runs.wait()
        eventually(lambda: fake.open == 0, "connections are open after the end")
    assert max(fake.ended) - max(answered) < PATIENCE_S
    assert (done.code, done.failures) == (0, {})


def test_a_signal_ends_the_linger_and_nothing_else_does(client: Contestant) -> None:
    options = ("-c", "3", "--warmup", "0", "--duration", "200ms", "--linger", "10m")
    with fake_server() as fake, running(client.command, fake.url, *options) as runs:
        runs.wait_event("window_end")
        before = proc.cpu_seconds(runs.pid)
        time.sleep(0.5)  # long enough for the last answers to have come
        used = proc.cpu_seconds(runs.pid) - before
        assert fake.open == 3
        done = runs.stop()
        eventually(lambda: fake.open == 0, "connections are open after the end")
    assert used < 0.25, "it waits and does not ask the clock over and over"
    assert (done.code, done.stderr, done.failures) == (0, "", {})
    assert "window" not in done.failed_audits


def test_a_signal_within_the_window_leaves_no_linger(client: Contestant) -> None:
    with fake_server() as fake, running(client.command, fake.url, "-c", "3", "--linger", "10m", *ENDLESS) as runs:
        eventually(lambda: fake.requests.total() >= REQUESTS, "no requests")
        done = runs.stop()
    assert (done.code, done.failures) == (0, {})
    assert "window" in done.failed_audits


def test_it_connects_to_a_host_by_its_name(client: Contestant) -> None:
    """All other tests name it by its address."""
    with fake_server() as fake, running(client.command, f"tcp://localhost:{fake.port}", *ENDLESS) as runs:
        eventually(lambda: fake.requests.total() >= REQUESTS, "no requests")
        done = runs.stop()
    assert (done.code, done.failures) == (0, {})
