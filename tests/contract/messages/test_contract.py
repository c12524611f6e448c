"""The program contract, as far as a server of messages has another one than a server of streams."""

from __future__ import annotations

from pathlib import Path

import pytest

from netdyno.question.contestants.contestants import discover
from tests.contract.messages.conftest import TRANSPORTS, Spoken
from tests.contract.messages.message_talk import talking
from tests.support.server import expect_refused

pytestmark = pytest.mark.quick

OPTIONS = {
    "--listen": ("", "udp", "127.0.0.1:0", "tcp://127.0.0.1:0", "udp://127.0.0.1", "udp://127.0.0.1:70000", "udp://:0"),
    "--workload": ("", "ech", "ECHO", "lines", "http"),
    "--threads": ("", "0", "-1", "1.5", "1000000"),
    "--audience": ("", "nobody"),
    "--service-time": ("", "5", "-1ms", "soon"),
    "--service-kind": ("", "sleep"),
    "--max-frame": ("", "0", "-1", "4GiB"),
    "--outbox-limit": ("", "0", "-1", "big"),
    "--peers": ("", "0", "-1", "many", "99999999"),
    "--peer-timeout": ("", "0s", "-1s", "5", "soon"),
    "--socket-buffer": ("", "0", "-1", "big"),
}
OF_STREAMS = ("--backlog=5", "--nodelay=on", "--read-buffer=1KiB", "--write-mode=split")


def test_every_transport_has_its_tests() -> None:
    spoken = {transport for contestant in discover() for transport in contestant.manifest.transports}
    assert spoken - {"tcp"} <= set(TRANSPORTS)


def test_stdout_is_a_ready_line_then_a_line_of_totals(spoken: Spoken) -> None:
    with spoken.transport.launched(spoken.contestant) as server:
        server.wait_ready()
        assert server.transport == spoken.transport.name
        assert server.address[1] > 0
        assert Path(f"/proc/{server.pid}").exists()
        server.stop()
        assert len(server.lines) == 2, server.lines  # stop() has checked what the second one holds
        assert server.stderr() == ""


@pytest.mark.once_a_family
def test_it_listens_where_the_options_say(spoken: Spoken, workload: str) -> None:
    for host in spoken.transport.hosts:
        with spoken.serving(workload, "--listen", f"{spoken.transport.name}://{host}:0") as server:
            if host != "localhost":
                assert server.address[0] == host.strip("[]")
            with talking(spoken.transport, server, workload) as talk:
                talk.check()


@pytest.mark.once_a_family
def test_by_default_it_listens_on_loopback(spoken: Spoken) -> None:
    if spoken.transport.arguments():
        pytest.skip("is told where to listen here")
    with spoken.serving("echo") as server:
        assert server.address[0] == "127.0.0.1"


@pytest.mark.once_a_family
def test_a_port_that_is_taken(spoken: Spoken) -> None:
    with spoken.serving("echo") as server:
        port = server.address[1]
        listen = server.endpoint.partition("?")[0]
        finished = spoken.run("--listen", listen)
        assert finished.code == 1, finished
        assert finished.stdout == "", finished
        assert finished.stderr.count("\n") == 1, finished
        assert str(port) in finished.stderr, finished
        assert "port 0" in finished.stderr, f"no hint at the way out: {finished}"


@pytest.mark.once_a_family
def test_the_port_is_free_again_at_once(spoken: Spoken) -> None:
    with spoken.serving("echo") as server, talking(spoken.transport, server, "echo"):
        endpoint = server.endpoint.partition("?")[0]
    with spoken.serving("echo", "--listen", endpoint) as again:
        assert again.endpoint.partition("?")[0] == endpoint


@pytest.mark.once_a_family
def test_help_names_every_option(spoken: Spoken) -> None:
    finished = spoken.run("--help")
    assert (finished.code, finished.stderr) == (0, ""), finished
    assert not [option for option in OPTIONS if option not in finished.stdout]


@pytest.mark.once_a_language
@pytest.mark.parametrize("argument", [*OF_STREAMS, "--colour=red", "echo", "--peer=5"])
def test_an_option_that_it_does_not_have(spoken: Spoken, argument: str) -> None:
    expect_refused(spoken.run(argument), argument.partition("=")[0].lstrip("-"))


@pytest.mark.once_a_language
@pytest.mark.parametrize("option", OPTIONS)
def test_a_bad_value(spoken: Spoken, option: str) -> None:
    for value in OPTIONS[option]:
        own = value.replace("udp", spoken.transport.name)
        expect_refused(spoken.run(option, own), option)
        expect_refused(spoken.run(f"{option}={own}"), option)
    expect_refused(spoken.run(option), option)


def test_threads_that_the_model_cannot_have_are_refused(spoken: Spoken) -> None:
    if spoken.contestant.manifest.threads == "any":
        with spoken.transport.serving(spoken.contestant, "--threads", "4"):
            pass
    else:
        expect_refused(spoken.run("--threads", "2"), "--threads")
