"""The program contract: ready line, exit codes, one clear line on every mistake, loopback by default."""

from __future__ import annotations

import ipaddress
from pathlib import Path

import pytest

from netdyno.kit.paths import ROOT
from netdyno.model.contestant import Contestant
from netdyno.question.contestants.contestants import discover
from tests.contract.tcp.conftest import ServedContestant
from tests.contract.tcp.stream_talk import StreamTalk
from tests.support import proc
from tests.support.server import expect_refused, run, serving

pytestmark = pytest.mark.quick

OPTIONS = {
    "--listen": ("", "tcp", "127.0.0.1:0", "udp://127.0.0.1:0", "tcp://127.0.0.1", "tcp://127.0.0.1:70000", "tcp://:0"),
    "--workload": ("", "ech", "ECHO", "echo,lines"),
    "--threads": ("", "0", "-1", "1.5", "two", "1000000"),
    "--backlog": ("", "0", "-1", "many"),
    "--nodelay": ("", "yes", "1", "ON"),
    "--read-buffer": ("", "0", "-1", "16k", "1.5KiB", "99999999999999999999"),
    "--write-mode": ("", "both"),
    "--audience": ("", "nobody"),
    "--deliveries": ("", "all"),
    "--service-time": ("", "5", "-1ms", "soon", "inf", "1h"),
    "--service-kind": ("", "sleep"),
    "--max-frame": ("", "0", "-1", "4GiB", "big"),
    "--outbox-limit": ("", "0", "-1", "big"),
}


def test_every_folder_is_a_contestant() -> None:
    folders = {
        entry.name for entry in (ROOT / "servers").iterdir() if entry.is_dir() and not entry.name.startswith("_")
    }
    assert {contestant.name for contestant in discover()} == folders


def test_there_is_a_contestant_for_every_workload() -> None:
    spoken = {workload for contestant in discover() for workload in contestant.manifest.workloads}
    assert spoken >= {"echo", "lines", "rpc", "chat", "http"}


def test_a_server_without_tls_says_why() -> None:
    """A trial over TLS is then skipped as one of a server without the option, which is no reason."""
    without = [
        contestant
        for contestant in discover()
        if "tcp" in contestant.manifest.transports and "tls" not in contestant.manifest.options
    ]
    silent = [
        contestant.name
        for contestant in without
        if not contestant.manifest.apart
        and contestant.manifest.kind != "framework"  # its stack is its own
        and not any(caveat.startswith("no TLS: ") for caveat in contestant.manifest.caveats)
    ]
    assert silent == []


@pytest.mark.once_a_language
@pytest.mark.one_workload
def test_it_listens_on_loopback_alone(served: ServedContestant) -> None:
    server = served.server
    listening = [row for row in proc.tcp_rows(server.pid, server.address[1]) if row.state == proc.LISTEN]
    assert listening
    assert all(ipaddress.ip_address(row.local[0]).is_loopback for row in listening), listening


@pytest.mark.once_a_language
@pytest.mark.parametrize("host", ["127.0.0.2", "localhost", "0.0.0.0"])
def test_it_listens_where_the_options_say(contestant: Contestant, host: str) -> None:
    workload = contestant.manifest.workloads[0]
    scheme = "TCP" if host == "127.0.0.2" else "tcp"  # RFC 3986, 3.1: in any case
    with serving(contestant.command, "--workload", workload, "--listen", f"{scheme}://{host}:0") as server:
        if host != "localhost":
            assert server.address[0] == host
        with StreamTalk(server, workload) as talk:
            talk.check()


@pytest.mark.once_a_family
def test_a_port_that_is_taken_and_is_free_again_at_once(contestant: Contestant) -> None:
    """On IPv6 where the kernel has it: a library may choose the family of the socket for itself."""
    host = "[::1]" if Path("/proc/sys/net/ipv6/conf/lo/disable_ipv6").exists() else "127.0.0.1"
    options = ("--workload", contestant.manifest.workloads[0], "--listen")
    with (
        serving(contestant.command, *options, f"tcp://{host}:0") as server,
        StreamTalk(server, contestant.manifest.workloads[0]) as talk,
    ):
        talk.check()
        address = server.address
        assert address[0] == host.strip("[]")
        listen = (*options, f"tcp://{host}:{address[1]}")
        finished = run(contestant.command, *listen)
        assert finished.code == 1, finished
        assert finished.stdout == "", finished
        assert finished.stderr.count("\n") == 1, finished
        assert str(address[1]) in finished.stderr, finished
        assert "port 0" in finished.stderr, f"no hint at the way out: {finished}"
        server.stop()  # it closes first, so the connection stays in TIME_WAIT on its side (SO_REUSEADDR)
    with serving(contestant.command, *listen) as again:
        assert again.address == address


@pytest.mark.once_a_language
def test_an_address_that_is_not_ours(contestant: Contestant) -> None:
    workload = ("--workload", contestant.manifest.workloads[0])
    finished = run(contestant.command, *workload, "--listen", "tcp://192.0.2.1:0")  # RFC 5737: documentation only
    assert finished.code == 1, finished
    assert finished.stderr.count("\n") == 1, finished


@pytest.mark.once_a_language
def test_help_names_every_option(contestant: Contestant) -> None:
    finished = run(contestant.command, "--help")
    assert (finished.code, finished.stderr) == (0, ""), finished
    assert not [option for option in OPTIONS if option not in finished.stdout]


@pytest.mark.once_a_language
@pytest.mark.parametrize(
    "arguments", [("--colour", "red"), ("--workloads", "echo"), ("echo",), ("-q",), ("--work", "echo")]
)
def test_an_unknown_option(contestant: Contestant, arguments: tuple[str, ...]) -> None:
    expect_refused(run(contestant.command, *arguments), arguments[0].lstrip("-"))


@pytest.mark.once_a_language
@pytest.mark.parametrize("option", OPTIONS)
def test_a_bad_value(contestant: Contestant, option: str) -> None:
    """Given by either way; all of them by one, as each is a start."""
    for value in OPTIONS[option]:
        expect_refused(run(contestant.command, f"{option}={value}"), option)
    expect_refused(run(contestant.command, option, OPTIONS[option][-1]), option)
    expect_refused(run(contestant.command, option), option)


@pytest.mark.once_a_language
def test_a_workload_that_it_does_not_speak(contestant: Contestant) -> None:
    """None of them speaks grpc."""
    missing = {"echo", "lines", "rpc", "chat", "http", "grpc"} - set(contestant.manifest.workloads)
    assert missing
    for workload in missing:
        expect_refused(run(contestant.command, "--workload", workload), "--workload")


def test_it_has_as_many_threads_as_requested_or_refuses(contestant: Contestant) -> None:
    """Or processes. Counted as the difference to one thread, since a runtime may have threads of its own."""
    if contestant.manifest.threads != "any":
        expect_refused(run(contestant.command, "--threads", "2"), "--threads")
        return
    workload, counts = contestant.manifest.workloads[0], []
    for threads in (1, 4):
        options = ("--workload", workload, "--threads", str(threads))
        with serving(contestant.command, *options) as server, StreamTalk(server, workload) as talk:
            talk.check()
            counts.append((len(proc.family(server.pid)), proc.threads(server.pid)))
    assert 3 in [more - fewer for fewer, more in zip(*counts, strict=True)]
