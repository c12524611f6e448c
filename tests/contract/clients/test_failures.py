"""Every stage of a client is made to fail for real, for each of its instances. It must count that at its stage, go on
once the cause is gone, and never block the loop of the application meanwhile."""

from __future__ import annotations

import itertools
import os
import signal
import socket
import threading
import time
from pathlib import Path

from netdyno.measure.machine.links.namespace import Namespace
from netdyno.model.contestant import Contestant
from tests.contract.golden import wire
from tests.support import proc
from tests.support.fake_server import AcceptedConnection, Behaviour, FakeServer, bound, fake_server, honest, response
from tests.support.inside import inside
from tests.support.patience import PATIENCE_S, eventually
from tests.support.running_client import ENDLESS, ClientOutcome, RunningClient, running
from tests.support.server import Server, launched, serving

INSTANCES = 3
TIMEOUT_S = 4.0
OPTIONS = ("-c", str(INSTANCES), "--timeout", "4s", "--connect-timeout", "4s", "--retry-delay", "20ms", *ENDLESS)
UNHURRIED = ("--service-time", "10ms", *OPTIONS)
"""For a server in its own process, which would otherwise get tens of thousands of requests a second."""
HIDDEN = "10.9.0.2"  # an address that only a namespace of a test ever has


def expect_never_blocked(done: ClientOutcome) -> None:
    """Whatever was waited for, the application's loop had its ticks meanwhile; unless it had no core to run on."""
    assert done.client.tick_lag_ns.count > 0
    latest_s = done.client.tick_lag_ns.max / 1e9
    blocked_s = latest_s - done.starved_s
    assert blocked_s < TIMEOUT_S / 2, f"a tick came {latest_s:g} s late; without a core for {done.starved_s:g} s"


def expect_recovered(done: ClientOutcome) -> None:
    """All instances came back, and were served."""
    assert (done.code, done.stderr) == (0, "")
    assert done.client.recovered == INSTANCES
    expect_never_blocked(done)
    assert done.failed_audits, "a run in which something failed is not to be believed"


# --- while a request is under way --------------------------------------------------------------------------------


def once(*misbehaviours: Behaviour) -> Behaviour:
    """Serve honestly, but for the third request of the first connection of each instance. With several, each instance
    meets one of them."""

    def serve(peer: AcceptedConnection, request: wire.WorkRequest) -> bool:
        if (peer.attempt, peer.requests) != (1, 3):
            return honest(peer, request)
        return misbehaviours[peer.client % len(misbehaviours)](peer, request)

    return serve


def until_all_are_back(client: Contestant, *misbehaviours: Behaviour) -> ClientOutcome:
    """Run against a server that misbehaves once to each instance, until each was answered on its second connection."""
    assert INSTANCES % len(misbehaviours) == 0
    with fake_server(once(*misbehaviours)) as fake, running(client.command, fake.url, *OPTIONS) as runs:
        all_are_back(fake)
        done = runs.stop()
        assert dict(fake.attempts) == dict.fromkeys(range(INSTANCES), 2)
        assert done.result.messages.sent == fake.requests.total()
    expect_recovered(done)
    assert done.result.messages.lost == INSTANCES
    return done


def all_are_back(fake: FakeServer) -> None:
    eventually(
        lambda: len(fake.requests) == INSTANCES and min(fake.requests.values()) >= 6,
        lambda: f"attempts {fake.attempts}, requests {fake.requests}",
    )


def never_answer(peer: AcceptedConnection, request: wire.WorkRequest) -> bool:
    peer.wait_gone()
    return False


def close(peer: AcceptedConnection, request: wire.WorkRequest) -> bool:
    return False


def die_in_mid_reply(peer: AcceptedConnection, request: wire.WorkRequest) -> bool:
    peer.socket.sendall(response(request)[:10])
    return False


def die_in_mid_header(peer: AcceptedConnection, request: wire.WorkRequest) -> bool:
    peer.socket.sendall(response(request)[:2])
    return False


def reset(peer: AcceptedConnection, request: wire.WorkRequest) -> bool:
    peer.reset()
    return False


def wrong_checksum(peer: AcceptedConnection, request: wire.WorkRequest) -> bool:
    stamp = bytearray(request.stamp)
    stamp[-1] ^= 1
    peer.socket.sendall(wire.frame(wire.response(request.job_id, bytes(stamp))))
    return True


def anothers_answer(peer: AcceptedConnection, request: wire.WorkRequest) -> bool:
    client, sequence = wire.read_stamp(request.stamp)
    stamp = wire.stamp(client + 1, sequence, len(request.stamp))
    peer.socket.sendall(wire.frame(wire.response(request.job_id, stamp)))
    return True


def answer_of_the_future(peer: AcceptedConnection, request: wire.WorkRequest) -> bool:
    client, sequence = wire.read_stamp(request.stamp)
    stamp = wire.stamp(client, sequence + 1, len(request.stamp))
    peer.socket.sendall(wire.frame(wire.response(sequence + 1, stamp)))
    return True


def not_an_answer(peer: AcceptedConnection, request: wire.WorkRequest) -> bool:
    peer.socket.sendall(wire.frame(b"\xff\xff\xff"))
    return True


def empty_frame(peer: AcceptedConnection, request: wire.WorkRequest) -> bool:
    peer.socket.sendall(wire.header(0))
    return True


def endless_frame(peer: AcceptedConnection, request: wire.WorkRequest) -> bool:
    peer.socket.sendall(wire.header(0xFFFF_FFFF))
    return True


def test_a_server_that_never_answers(client: Contestant) -> None:
    begin = time.monotonic()
    done = until_all_are_back(client, never_answer)
    assert time.monotonic() - begin >= TIMEOUT_S
    assert done.failures == {"response_timeout": INSTANCES}
    assert done.result.errors["timeout"] == INSTANCES


def test_a_server_that_ends_the_stream(client: Contestant) -> None:
    done = until_all_are_back(client, close, die_in_mid_reply, die_in_mid_header)
    assert done.failures == {"closed": INSTANCES}
    assert done.result.errors["closed_by_server"] == INSTANCES


def test_a_server_that_resets_the_connection(client: Contestant) -> None:
    """Not every framework tells that from an end."""
    done = until_all_are_back(client, reset)
    assert done.failures in ({"reset": INSTANCES}, {"closed": INSTANCES})


def test_an_answer_that_is_wrong(client: Contestant) -> None:
    done = until_all_are_back(client, wrong_checksum, anothers_answer, answer_of_the_future)
    assert done.failures == {"protocol": INSTANCES}
    assert done.result.errors["protocol"] == done.result.messages.corrupt == INSTANCES


def test_a_stream_that_cannot_be_read(client: Contestant) -> None:
    """Only what is no answer counts as a corrupt one."""
    done = until_all_are_back(client, not_an_answer, empty_frame, endless_frame)
    assert done.failures == {"protocol": INSTANCES}
    assert (done.result.errors["protocol"], done.result.messages.corrupt) == (INSTANCES, 1)


def test_an_answer_that_comes_twice(client: Contestant) -> None:
    """It is noticed, and the request that is under way gets its own answer."""

    def twice(peer: AcceptedConnection, request: wire.WorkRequest) -> bool:
        peer.socket.sendall(response(request) * 2)
        return True

    with fake_server(once(twice)) as fake, running(client.command, fake.url, *OPTIONS) as runs:
        all_are_back(fake)
        done = runs.stop()
        assert dict(fake.attempts) == dict.fromkeys(range(INSTANCES), 1)
    assert (done.failures, done.result.messages.duplicated, done.result.messages.lost) == ({}, INSTANCES, 0)
    assert "verification" in done.failed_audits


def test_an_answer_in_pieces_is_put_together(client: Contestant) -> None:
    def drip(peer: AcceptedConnection, request: wire.WorkRequest) -> bool:
        for byte in response(request):
            peer.socket.sendall(bytes([byte]))
        return True

    with fake_server(drip) as fake, running(client.command, fake.url, *OPTIONS) as runs:
        all_are_back(fake)
        done = runs.stop()
    assert (done.failures, done.result.messages.lost, done.result.messages.corrupt) == ({}, 0, 0)


def test_what_is_under_way_at_the_end_is_waited_for(client: Contestant) -> None:
    """Up to the timeout, and no longer."""

    def hold(peer: AcceptedConnection, request: wire.WorkRequest) -> bool:
        if peer.client == 0:
            time.sleep(0.7)
            return honest(peer, request)
        return never_answer(peer, request)

    options = ("-c", "2", "--warmup", "0", "--duration", "300ms", "--timeout", "1500ms")
    with fake_server(hold) as fake, running(client.command, fake.url, *options) as runs:
        done = runs.wait()
    assert done.code == 0
    assert done.failures == {"response_timeout": 1}
    assert (done.result.messages.sent, done.result.messages.received, done.result.messages.lost) == (2, 1, 1)
    assert done.client.recovered == 0


def test_a_server_that_closes_after_the_last_answer_is_no_failure(client: Contestant) -> None:
    """While the connections linger."""
    over = threading.Event()

    def hold(peer: AcceptedConnection, request: wire.WorkRequest) -> bool:
        assert over.wait(PATIENCE_S), "the window never ends"
        honest(peer, request)
        return False

    options = ("-c", str(INSTANCES), "--warmup", "0", "--duration", "200ms", "--timeout", "1m", "--linger", "300ms")
    with fake_server(hold) as fake, running(client.command, fake.url, *options) as runs:
        runs.wait_event("window_end")
        over.set()
        done = runs.wait()
    assert (done.code, done.stderr, done.failures, done.client.recovered) == (0, "", {}, 0)
    assert (done.result.messages.received, done.result.messages.lost) == (INSTANCES, 0)
    assert done.result.errors == dict.fromkeys(done.result.errors, 0)


# --- before the connection stands ---------------------------------------------------------------------------------


def test_a_port_where_nothing_listens(client: Contestant) -> None:
    with bound() as late, running(client.command, late.url, *OPTIONS) as runs:
        assert runs.wait_event("connected")["established"] == 0
        late.serve()
        all_are_back(late)
        done = runs.stop()
    expect_recovered(done)
    assert set(done.failures) == {"connect_refused"}
    assert done.failures["connect_refused"] >= INSTANCES
    assert done.result.connections.refused == done.result.connections.attempted == INSTANCES
    assert done.result.messages.lost == 0


def in_state(state: str, runs: RunningClient, port: int) -> int:
    """How many of its sockets are in that state of TCP."""
    return sum(row.state == state for row in proc.tcp_sockets(runs.pid, port).values())


def all_are_served(runs: RunningClient, server: Server) -> None:
    """Wait until every instance has its connection, and then for messages: the first one back does a hundred before a
    SYN of another, which got no answer, is sent again after a second."""

    def established() -> int:
        return in_state(proc.ESTABLISHED, runs, server.address[1])

    # In a namespace each look starts nsenter(1) and ss(8), and a connection may take seconds.
    eventually(lambda: established() == INSTANCES, lambda: f"{established()} connections", poll_s=0.2)
    runs.wait_completed(100)


def test_a_retry_keeps_its_distance(client: Contestant) -> None:
    """At least the delay: a lower bound, which no busy machine can break."""
    moments: list[float] = []

    def note(peer: AcceptedConnection, request: wire.WorkRequest) -> bool:
        moments.append(time.monotonic())
        return False

    with fake_server(note) as fake, running(client.command, fake.url, "--retry-delay", "150ms", *ENDLESS) as runs:
        eventually(lambda: len(moments) >= 4, "no further attempts")
        runs.stop()
    assert min(later - earlier for earlier, later in itertools.pairwise(moments)) >= 0.149


def test_a_server_that_is_killed_and_comes_back(client: Contestant, server: Contestant) -> None:
    with serving(server.command, "--workload", "rpc") as first:
        url = f"tcp://127.0.0.1:{first.address[1]}"
        with running(client.command, url, *UNHURRIED) as runs:
            runs.wait_completed(100)
            first.signal(signal.SIGKILL)
            first.process.wait()
            runs.wait_event("progress")
            with launched(server.command, "--workload", "rpc", "--listen", url) as second:
                second.wait_ready()
                all_are_served(runs, second)
                done = runs.stop()
    expect_recovered(done)
    assert set(done.failures) <= {"closed", "reset", "connect_refused"}
    assert done.failures.get("closed", 0) + done.failures.get("reset", 0) == INSTANCES
    assert done.failures["connect_refused"] >= INSTANCES
    assert done.result.connections.established == INSTANCES


def test_a_name_that_does_not_resolve(client: Contestant, server: Contestant, private: Namespace, hosts: Path) -> None:
    """In a namespace whose resolver has no server and whose hosts file is the test's."""
    with launched([*private.enter, *server.command], "--workload", "rpc") as serves:
        serves.wait_ready()
        url = f"tcp://late.netdyno.test:{serves.address[1]}"
        with running([*private.enter, *client.command], url, *UNHURRIED) as runs:
            assert runs.wait_event("connected")["established"] == 0
            hosts.write_text("127.0.0.1 late.netdyno.test\n")
            all_are_served(runs, serves)
            done = runs.stop()
    expect_recovered(done)
    assert set(done.failures) == {"resolve_failed"}
    assert done.failures["resolve_failed"] >= INSTANCES
    assert done.result.connections.other == done.result.connections.attempted == INSTANCES
    (detail,) = [audit.detail for audit in done.result.audits if audit.name == "connections"]
    assert "other 3: the name of the server was not resolved" in detail
    assert os.strerror(0) not in done.stdout + detail


def test_a_name_server_that_says_nothing_for_a_long_time(
    client: Contestant, server: Contestant, private: Namespace, hosts: Path
) -> None:
    """The system would wait for it longer than this test does; the load begins all the same, and a client without a
    connection gets one when the name is known."""
    patient = ("env", "RES_OPTIONS=timeout:30 attempts:5")
    resolver = hosts.with_name("resolv.conf")
    resolver.write_text("nameserver 127.0.0.1\n")
    private.run("mount", "--bind", str(resolver), "/etc/resolv.conf")
    with (
        launched([*private.enter, *server.command], "--workload", "rpc") as serves,
        inside(private) as namespace,
        namespace.socket(socket.AF_INET, socket.SOCK_DGRAM) as name_server,
    ):
        serves.wait_ready()
        name_server.bind(("127.0.0.1", 53))
        url = f"tcp://late.netdyno.test:{serves.address[1]}"
        with running([*private.enter, *patient, *client.command], url, *UNHURRIED) as runs:
            assert runs.wait_event("connected")["established"] == 0
            threading.Thread(target=answer_names, args=(name_server,), daemon=True).start()
            all_are_served(runs, serves)
            done = runs.stop()
    expect_recovered(done)
    assert set(done.failures) == {"resolve_failed"}
    assert done.failures["resolve_failed"] >= INSTANCES
    assert done.result.connections.other == INSTANCES


def answer_names(name_server: socket.socket) -> None:
    """Every name is at 127.0.0.1, and has no other address (RFC 1035, 4.1)."""
    while True:
        try:
            query, asker = name_server.recvfrom(512)
        except OSError:  # the test is over
            return
        end = query.index(b"\0", 12) + 5
        is_a = query[end - 4 : end - 2] == b"\0\1"
        head = query[:2] + b"\x81\x80\0\1" + (b"\0\1" if is_a else b"\0\0") + b"\0\0\0\0"
        address = b"\xc0\x0c\0\1\0\1" + (60).to_bytes(4, "big") + b"\0\4" + socket.inet_aton("127.0.0.1")
        name_server.sendto(head + query[12:end] + (address if is_a else b""), asker)


def test_a_server_at_the_second_address_of_its_name(
    client: Contestant, server: Contestant, private: Namespace, hosts: Path
) -> None:
    hosts.write_text("127.0.0.1 both.netdyno.test\n::1 both.netdyno.test\n")
    for address in ("127.0.0.1", "[::1]"):
        where = f"tcp://{address}:0"
        with launched([*private.enter, *server.command], "--workload", "rpc", "--listen", where) as serves:
            serves.wait_ready()
            url = f"tcp://both.netdyno.test:{serves.address[1]}"
            with running([*private.enter, *client.command], url, *UNHURRIED) as runs:
                assert runs.wait_event("connected")["established"] == INSTANCES
                runs.wait_completed(10)
                done = runs.stop()
        assert (done.code, done.failures) == (0, {})


def test_an_address_that_swallows_everything(client: Contestant, server: Contestant, private: Namespace) -> None:
    """A route to an address that no interface has: packets go out and nothing ever comes back."""
    private.run("ip", "route", "add", f"{HIDDEN}/32", "dev", "lo")
    with launched([*private.enter, *server.command], "--workload", "rpc", "--listen", "tcp://0.0.0.0:0") as serves:
        serves.wait_ready()
        url = f"tcp://{HIDDEN}:{serves.address[1]}"
        with running([*private.enter, *client.command], url, *UNHURRIED) as runs:
            assert runs.wait_event("connected")["established"] == 0
            private.run("ip", "address", "add", f"{HIDDEN}/32", "dev", "lo")
            all_are_served(runs, serves)
            done = runs.stop()
    expect_recovered(done)
    assert set(done.failures) == {"connect_timed_out"}
    assert done.failures["connect_timed_out"] >= INSTANCES
    assert done.result.connections.timed_out == done.result.connections.attempted == INSTANCES


def test_a_network_that_cannot_be_reached(client: Contestant, private: Namespace) -> None:
    with running([*private.enter, *client.command], f"tcp://{HIDDEN}:9", *OPTIONS) as runs:
        runs.wait_event("progress")
        done = runs.stop()
    assert done.code == 1
    assert set(done.failures) == {"connect_other"}
    assert done.failures["connect_other"] > INSTANCES
    assert done.result.connections.other == INSTANCES
    expect_never_blocked(done)


def test_a_signal_ends_it_also_while_it_connects(client: Contestant, private: Namespace) -> None:
    private.run("ip", "route", "add", f"{HIDDEN}/32", "dev", "lo")
    options = ("--connect-timeout", "10m", *ENDLESS)
    with running([*private.enter, *client.command], f"tcp://{HIDDEN}:9", *options) as runs:
        eventually(lambda: in_state(proc.SYN_SENT, runs, 9) > 0, "it never begins to connect")
        done = runs.stop()
    assert done.code == 1
    assert (done.failures, done.result.messages.sent) == ({}, 0)
    assert "window" in done.failed_audits
