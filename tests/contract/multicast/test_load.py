"""The generator over multicast: against the real server, and against one that loses and doubles certain messages."""

from __future__ import annotations

import json
import os
import select
import signal
import socket
import subprocess
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from netdyno.measure.machine.links.namespace import Namespace
from netdyno.measure.trial.load import INVALID_LOAD
from tests.contract.golden import wire
from tests.contract.messages.transport import BYE, HELO, WELC, control
from tests.support.inside import Inside
from tests.support.patience import PATIENCE_S, eventually
from tests.support.server import serving

CLIENTS = 4
ON_TIME = ("--warmup", "0ms")
CHAT = ("--workload", "chat", "--audience", "all")
LoadJson = dict[str, Any]


@contextmanager
def loading(private: Namespace, generator: str, url: str, *options: str) -> Iterator[tuple[int, list[LoadJson]]]:
    """A load that runs. Gives where its events come, and a list that holds its result once the block is left."""
    events, writing = os.pipe()
    command = [*private.enter, generator, url, "-c", str(CLIENTS), "--json", "-", "--events-fd", str(writing)]
    result: list[LoadJson] = []
    with subprocess.Popen([*command, *ON_TIME, *options], stdout=subprocess.PIPE, pass_fds=(writing,)) as load:
        os.close(writing)
        try:
            yield events, result
            out, _ = load.communicate(timeout=2 * PATIENCE_S)
            assert load.returncode in {0, INVALID_LOAD}
            result.append(json.loads(out))
        finally:
            load.kill()
            os.close(events)


def load(private: Namespace, generator: str, url: str, *options: str) -> LoadJson:
    """A load from its beginning to its end."""
    with loading(private, generator, url, *options) as (_, result):
        pass
    return result[0]


def wait_for(event: str, events: int) -> None:
    """Until the generator says so."""
    output = b""
    while f'"event":"{event}"'.encode() not in output:
        assert select.select([events], [], [], PATIENCE_S)[0], f"no {event} but {output!r}"
        piece = os.read(events, 4096)
        assert piece, f"no {event} but {output!r}"
        output += piece


def failed(result: LoadJson) -> list[str]:
    """Return the generator's own failed audits of the truth of its result; its speed depends on the machine."""
    return [audit["detail"] for audit in result["audits"] if audit["name"] == "verification" and not audit["passed"]]


@pytest.mark.parametrize("workload", ["echo", "rpc", "chat"])
def test_everything_arrives_where_nothing_is_dropped(
    workload: str, server: tuple[str, ...], generator: str, private: Namespace
) -> None:
    command = (*private.enter, *server)
    with serving(command, "--workload", workload) as served:
        audience = CHAT[2:] if workload == "chat" else ()
        options = ("--workload", workload, *audience, "--rate", "400", "--duration", "500ms")
        result = load(private, generator, served.endpoint, *options)
        totals = served.stop()
    messages = result["messages"]
    copies = CLIENTS if workload == "chat" else 1
    assert messages["sent"] == 200
    assert messages["received"] == 200 * copies
    assert [messages[key] for key in ("lost", "duplicated", "reordered", "corrupt")] == [0, 0, 0, 0]
    assert failed(result) == []
    assert (totals["connections"], totals["protocol_errors"], totals["strangers"]) == (CLIENTS, 0, 0)
    if workload == "chat":  # each of them went out once; what the clients said before the load as well
        assert totals["bytes_out"] == totals["bytes_in"]


def dropped_by_the_server(pid: int, port: int) -> int:
    """Datagrams that its socket had no room for (proc(5): the last column of /proc/net/udp)."""
    rows = [row.split() for row in Path(f"/proc/{pid}/net/udp").read_text().splitlines()[1:]]
    (row,) = (row for row in rows if row[1] == f"0100007F:{port:04X}")
    return int(row[-1])


@pytest.mark.parametrize("workload", ["echo", "chat"])
def test_what_the_servers_socket_drops_is_lost_for_each_of_its_recipients(
    workload: str, server: tuple[str, ...], generator: str, private: Namespace
) -> None:
    """The server stands still while the load goes on, until its buffer is full."""
    arguments = ("--workload", workload, "--socket-buffer", "8KiB")
    with serving((*private.enter, *server), *arguments) as served:
        port = served.address[1]
        audience = CHAT[2:] if workload == "chat" else ()
        options = ("--workload", workload, *audience, "--rate", "500", "--duration", "2s")
        with loading(private, generator, served.endpoint, *options, "--timeout", "3s") as (events, result):
            wait_for("window_start", events)
            before = dropped_by_the_server(served.pid, port)
            served.signal(signal.SIGSTOP)
            eventually(lambda: dropped_by_the_server(served.pid, port) > before + 20, "the buffer is never full")
            served.signal(signal.SIGCONT)
        dropped = dropped_by_the_server(served.pid, port) - before
    messages = result[0]["messages"]
    copies = CLIENTS if workload == "chat" else 1
    assert messages["lost"] == dropped * copies
    assert messages["received"] == (messages["sent"] - dropped) * copies
    assert messages["duplicated"] == messages["corrupt"] == 0


class FaultyChat:
    """A chat server that drops each 7th message of the load, and sends each 11th twice."""

    def __init__(self, sockets: Inside) -> None:
        self.socket = sockets.socket(socket.AF_INET, socket.SOCK_DGRAM)
        self.socket.bind(("127.0.0.1", 0))
        self.port = self.socket.getsockname()[1]
        loopback = socket.inet_aton("127.0.0.1")
        self.socket.setsockopt(socket.IPPROTO_IP, socket.IP_MULTICAST_IF, loopback)
        self.socket.setsockopt(socket.IPPROTO_IP, socket.IP_MULTICAST_TTL, 0)
        self.heard = self.left_out = self.doubled = self.byes = 0

    @property
    def url(self) -> str:
        return f"multicast://239.255.0.1:{self.port}?interface=lo&server=127.0.0.1"

    def serve(self) -> None:
        """Until every client has said BYE!."""
        while self.byes < CLIENTS:
            datagram, client = self.socket.recvfrom(1 << 16)
            if datagram[:8] == control(HELO, 0)[:8]:
                self.socket.sendto(control(WELC, int.from_bytes(datagram[8:], "big")), client)
            elif datagram[:8] == control(BYE, 0)[:8]:
                self.byes += 1
            else:
                for _ in range(self._times(datagram)):
                    self.socket.sendto(datagram, ("239.255.0.1", self.port))

    def _times(self, datagram: bytes) -> int:
        client, _ = wire.read_stamp(datagram[4:])
        if client == 0xFFFFFFFF:  # said before the load
            return 1
        self.heard += 1
        if self.heard % 7 == 0:
            self.left_out += 1
            return 0
        if self.heard % 11 == 0:
            self.doubled += 1
            return 2
        return 1


def test_loss_and_doubling_are_counted_to_the_message(generator: str, private: Namespace, sockets: Inside) -> None:
    server = FaultyChat(sockets)
    with server.socket:
        thread = threading.Thread(target=server.serve, daemon=True)
        thread.start()
        options = (*CHAT, "--rate", "400", "--duration", "1s", "--timeout", "2s")
        result = load(private, generator, server.url, *options)
        thread.join(PATIENCE_S)
        assert not thread.is_alive(), f"said BYE!: {server.byes} of {CLIENTS}"
    messages = result["messages"]
    assert messages["sent"] == server.heard == 400
    assert messages["lost"] == server.left_out * CLIENTS > 0
    assert messages["duplicated"] == server.doubled * CLIENTS > 0
    assert messages["received"] == (400 - server.left_out + server.doubled) * CLIENTS
    assert messages["corrupt"] == 0


def test_what_others_send_to_the_group_is_not_heard(
    server: tuple[str, ...], generator: str, private: Namespace, sockets: Inside
) -> None:
    """Every program may send to a group. The clients take only what comes from their server's address and port."""
    options = (*CHAT, "--rate", "200", "--duration", "1s")
    with (
        serving((*private.enter, *server), "--workload", "chat") as served,
        sockets.socket(socket.AF_INET, socket.SOCK_DGRAM) as outsider,
        loading(private, generator, served.endpoint, *options) as (events, result),
    ):
        outsider.setsockopt(socket.IPPROTO_IP, socket.IP_MULTICAST_IF, socket.inet_aton("127.0.0.1"))
        wait_for("window_start", events)
        for _ in range(100):
            outsider.sendto(b"not from here", served.address)
    messages = result[0]["messages"]
    assert (messages["corrupt"], messages["lost"]) == (0, 0)
    assert messages["received"] == messages["sent"] * CLIENTS == 200 * CLIENTS


def test_without_a_server_it_says_so(generator: str, private: Namespace) -> None:
    url = "multicast://239.255.0.1:9?interface=lo"
    done = subprocess.run([*private.enter, generator, url], capture_output=True, text=True, check=False)
    assert done.returncode == 1
    assert "refused 1" in done.stderr
