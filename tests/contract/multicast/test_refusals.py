"""Multicast is for a private network, an interface that is there, and a group that has its sender in it. All else is
refused before anything is joined or sent."""

from __future__ import annotations

import os

import pytest

from netdyno.measure.machine.links.namespace import Namespace, make_namespace
from netdyno.measure.machine.links.namespace_child import MARK
from tests.support.server import expect_refused, launched, run

URL = "multicast://239.255.0.1:7000?interface=lo"
UNMARKED = ("env", "--unset", MARK)


@pytest.fixture(params=["server", "generator"])
def program(request: pytest.FixtureRequest, server: tuple[str, ...], generator: str) -> tuple[str, ...]:
    """Either of the two, about to use multicast."""
    return (*server, "--listen", URL) if request.param == "server" else (generator, URL)


def test_outside_a_private_network(program: tuple[str, ...]) -> None:
    assert MARK not in os.environ
    expect_refused(run(program), "refused outside a private network namespace")


def test_in_a_namespace_that_none_made_for_it(program: tuple[str, ...], private: Namespace) -> None:
    expect_refused(run((*private.enter, *UNMARKED, *program)), "refused outside a private network namespace")


def test_with_the_mark_of_another_namespace(program: tuple[str, ...], private: Namespace) -> None:
    with make_namespace() as elsewhere:
        mark = elsewhere.enter[-1]
        expect_refused(run((*private.enter, "env", mark, *program)), "refused outside a private network namespace")


def test_a_caller_that_insists_is_believed(server: tuple[str, ...], private: Namespace) -> None:
    with launched((*private.enter, *UNMARKED, *server), "--multicast-anywhere") as serving:
        serving.wait_ready()
        serving.stop()


@pytest.mark.parametrize(
    ("url", "why"),
    [
        ("multicast://10.0.0.1:7000?interface=lo", "'10.0.0.1' is no IPv4 multicast address"),
        ("multicast://224.0.0.1:7000?interface=lo", "reserved"),
        ("multicast://239.255.0.1:7000", "no interface is named"),
        ("multicast://239.255.0.1:7000?interface=none0", "there is no interface 'none0'"),
        ("multicast://239.255.0.1:7000?interface=lo&ttl=2", "ttl '2'"),
        ("multicast://239.255.0.1:7000?interface=lo&intreface=lo", "unknown key 'intreface'"),
        ("multicast://239.255.0.1:7000?interface=lo&server=somewhere", "server 'somewhere'"),
    ],
)
def test_a_url_that_cannot_be_meant(
    url: str, why: str, server: tuple[str, ...], generator: str, private: Namespace
) -> None:
    expect_refused(run((*private.enter, *server), "--listen", url), why)
    expect_refused(run((*private.enter, generator), url), why)


def test_an_interface_that_is_down(program: tuple[str, ...], private: Namespace) -> None:
    down = "import socket as s, struct, fcntl; fcntl.ioctl(s.socket(), 0x8914, struct.pack('16sh22x', b'lo', 0))"
    private.run("python3", "-c", down)
    expect_refused(run((*private.enter, *program)), "interface 'lo' is not up")


def test_an_audience_without_the_sender(server: tuple[str, ...], private: Namespace) -> None:
    expect_refused(run((*private.enter, *server), "--audience", "others"), "--audience: a group has its sender in it")
