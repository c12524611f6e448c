"""The link `lan`: what crosses it crosses a wire, a rate is kept, nothing leaves it and nothing of it is left over."""

from __future__ import annotations

import os
import shutil
import signal
import socket
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from errno import ENETUNREACH
from pathlib import Path

import msgspec
import pytest

from netdyno.kit.paths import ROOT, build_dir, generator_path
from netdyno.kit.units import parse_rate
from netdyno.measure.machine.links import lan
from netdyno.measure.machine.links.lan import Lan
from netdyno.measure.machine.links.namespace import Namespace, NotAllowedError
from netdyno.measure.machine.links.namespace_child import read_network
from netdyno.measure.machine.links.network import make_network
from netdyno.measure.machine.trial_log import TrialLog
from netdyno.measure.trial.context import TrialContext
from netdyno.measure.trial.trial import run_trial
from netdyno.measure.trial.window import Watch
from netdyno.model.contestant import Contestant
from netdyno.model.experiment import Scenario
from netdyno.model.load_result import LoadResult
from netdyno.model.observation import MachineObservation
from netdyno.model.options import settings
from netdyno.model.transports import LOAD_ADDRESS, SERVER_ADDRESS, TRANSPORTS
from netdyno.model.trial import Trial
from netdyno.question.contestants import contestants
from netdyno.question.plan import Cell
from tests.support.inside import inside, open_conversation
from tests.support.proc import ends

PAYLOAD = bytes(300_000)
CELL = Cell(block=1, position=0, scenario="echo", contestant="fake", levels={"connections": 2})
SCENARIO = Scenario(name="echo", workload="echo", factors={"connections": (1, 2)}, duration_s=0.1, timeout_s=1.0)
RATE = "10mbit"

HARNESS = """
import signal, subprocess
from netdyno.measure.machine.links import lan
with lan.make_link(10**9) as made:
    script = ["sh", "-c", "echo entered; exec sleep 1000"]
    left = [subprocess.Popen([*end.enter, *script], stdout=subprocess.PIPE) for end in made]
    for one in left:
        one.stdout.readline()
    print(*(end.pid for end in made), *(one.pid for one in left), flush=True)
    signal.pause()
"""


@contextmanager
def joined(rate_hz: int | None = None) -> Iterator[Lan]:
    try:
        with lan.make_link(rate_hz) as made:
            yield made
    except NotAllowedError as error:
        # The process that made the namespaces is root in them: a refusal there would be a fault of ours.
        if str(error).startswith(("ip: ", "tc: ")) and "not permitted" in str(error):
            pytest.fail(str(error))
        pytest.skip(f"no such link here: {error}")


@pytest.fixture
def made(rights: str) -> Iterator[Lan]:
    """One made with root's rights, and one made with none but a user namespace."""
    with joined() as link:
        assert [end.other_users for end in link] == [rights == "anybody"] * 2
        yield link


def carry(sender: socket.socket, receiver: socket.socket, data: bytes) -> bytes:
    """Send it in pieces that fit into the buffers, and return what arrives."""
    got = bytearray()
    for start in range(0, len(data), 1000):
        piece = data[start : start + 1000]
        sender.sendall(piece)
        while len(got) < start + len(piece):
            more = receiver.recv(65536)
            assert more, "the other side closed the connection"
            got += more
    return bytes(got)


def received(end: Namespace) -> dict[str, int]:
    """Bytes that each interface of a namespace has received (/proc/PID/net/dev, proc(5))."""
    rows = Path(f"/proc/{end.pid}/net/dev").read_text().splitlines()[2:]
    return {name.strip(): int(rest.split()[0]) for name, _, rest in (row.partition(":") for row in rows)}


def test_a_round_trip_crosses_the_wire_and_no_loopback(made: Lan) -> None:
    before = [received(end) for end in made]
    with open_conversation(made.server, made.load) as (client, served):
        assert (client.getsockname()[0], client.getpeername()[0]) == (LOAD_ADDRESS, SERVER_ADDRESS)
        assert carry(client, served, PAYLOAD) == PAYLOAD
        assert carry(served, client, PAYLOAD) == PAYLOAD
    for was, now in zip(before, map(received, made), strict=True):
        assert now.keys() == {"lo", lan.INTERFACE}
        assert now[lan.INTERFACE] - was[lan.INTERFACE] >= len(PAYLOAD)
        assert now["lo"] == was["lo"]


def test_the_two_ends_are_two_networks_and_neither_is_the_machines(made: Lan) -> None:
    assert len({read_network(made.server.pid), read_network(made.load.pid), read_network("self")}) == 3


def test_nothing_leaves_the_pair(made: Lan) -> None:
    for end in made:
        (route,) = end.run("ip", "route", "show", "table", "main").splitlines()
        assert route.startswith("10.77.0.0/30 dev lan ")
        with (
            inside(end) as sockets,
            sockets.socket(socket.AF_INET, socket.SOCK_DGRAM) as outwards,
            pytest.raises(OSError, match=os.strerror(ENETUNREACH)),
        ):
            outwards.sendto(b"anybody?", ("192.0.2.1", 9))  # for documentation (RFC 5737): no host has it


def test_before_the_load_nothing_crosses_it(made: Lan) -> None:
    """IPv6 looks for no neighbour and asks no router: all counted packets are the load's."""
    assert [received(end)[lan.INTERFACE] for end in made] == [0, 0]


def test_a_rate_is_a_token_bucket_at_both_ends(rights: str) -> None:
    with joined(parse_rate("1gbit")) as link:
        for end in link:
            assert "tbf" in end.run("tc", "qdisc", "show", "dev", lan.INTERFACE)
        with open_conversation(link.server, link.load) as (client, served):
            assert carry(client, served, PAYLOAD) == PAYLOAD


def test_its_networks_have_the_machines_settings(rights: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """One setting of those that a namespace has for itself stands for all: a value unlike the default is kept."""
    somaxconn = "/proc/sys/net/core/somaxconn"
    assert f"{somaxconn}={Path(somaxconn).read_text().strip()}" in lan._read_settings()
    monkeypatch.setattr(lan, "_read_settings", lambda: ["/proc/sys/net/core/no_such_setting=1", f"{somaxconn}=77"])
    with joined() as link:
        assert [end.run("cat", somaxconn) for end in link] == ["77\n", "77\n"]


def test_a_program_at_either_end_ends_with_it() -> None:
    with joined() as link:
        keepers = [os.pidfd_open(end.pid) for end in link]
        # no process waits for them, they hold no pipe, and each leads a session of its own
        script = "setsid sleep 1000 <&- >&- 2>&- & echo $!"
        orphans = [os.pidfd_open(int(end.run("sh", "-c", script))) for end in link]
    assert [ends(pidfd) for pidfd in (*keepers, *orphans)] == [True] * 4


def test_kill_9_of_the_harness_leaves_nothing_behind(rights: str) -> None:
    user = "import os; os.geteuid = lambda: 65534\n" if rights == "anybody" else ""
    environment = os.environ | {"PYTHONPATH": str(ROOT / "python")}
    with subprocess.Popen([sys.executable, "-c", user + HARNESS], stdout=subprocess.PIPE, env=environment) as harness:
        assert harness.stdout is not None
        words = harness.stdout.readline().split()
        if not words:
            pytest.skip("no such link here")
        left = [os.pidfd_open(int(word)) for word in words]
        harness.send_signal(signal.SIGKILL)
        assert [ends(pidfd) for pidfd in left] == [True] * 4


@pytest.mark.parametrize(
    ("tool", "complaint", "reason"),
    [
        ("ip", "Error: Unknown device type.", "ip: Error: Unknown device type. (the kernel needs veth: CONFIG_VETH"),
        (
            "tc",
            "Error: Specified qdisc kind is unknown.",
            "(a link with a rate needs tbf in the kernel: CONFIG_NET_SCH",
        ),
    ],
)
def test_what_the_kernel_lacks_is_a_stated_skip_of_the_trial(
    tool: str,
    complaint: str,
    reason: str,
    contestant: Contestant,
    context: TrialContext,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    with joined():
        pass  # namespaces can be had
    refusing = tmp_path / tool
    refusing.write_text(f"#!/bin/sh\necho '{complaint}' >&2\nexit 2\n")
    refusing.chmod(0o755)
    monkeypatch.setenv("PATH", str(tmp_path), prepend=os.pathsep)
    trial = over_lan(contestant, context, rate="1gbit")
    assert (trial.status, trial.load) == ("skipped", None)
    assert trial.reason.startswith("the link lan at 1gbit is not available here: ")
    assert reason in trial.reason


def test_a_tool_that_is_missing_is_named_with_its_package(
    contestant: Contestant, context: TrialContext, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(shutil, "which", lambda _tool, path: None)
    trial = over_lan(contestant, context)
    assert (trial.status, trial.reason) == (
        "skipped",
        "the link lan is not available here: ip not found: install iproute2",
    )


def test_multicast_over_it_is_a_stated_skip(contestant: Contestant, context: TrialContext) -> None:
    manifest = msgspec.structs.replace(contestant.manifest, transports=("multicast",))
    trial = over_lan(msgspec.structs.replace(contestant, manifest=manifest), context)
    assert (trial.status, trial.load) == ("skipped", None)
    assert trial.reason == "the link lan does not carry multicast; measure it over the loopback"


def over_lan(
    contestant: Contestant,
    context: TrialContext,
    rate: str | None = None,
    cell: Cell = CELL,
    scenario: Scenario = SCENARIO,
) -> Trial:
    over = msgspec.structs.replace(scenario, link="lan", link_rate=rate)
    return run_trial(cell, over, contestant, context)


@pytest.mark.parametrize("transport", ["tcp", "udp"])
def test_a_trial_over_it_has_its_two_programs_at_the_two_ends(
    transport: str, contestant: Contestant, context: TrialContext, tmp_path: Path
) -> None:
    """The programs write down where they are."""
    script = 'readlink /proc/self/ns/net >> "$0"; exec "$@"'
    at_server, at_load = tmp_path / "server", tmp_path / "load"
    manifest = msgspec.structs.replace(contestant.manifest, transports=(transport,))
    command = ("/bin/sh", "-c", script, str(at_server), *contestant.command)
    server = msgspec.structs.replace(contestant, manifest=manifest, command=command)
    trial = over_lan(
        server, msgspec.structs.replace(context, generator=("/bin/sh", "-c", script, str(at_load), *context.generator))
    )
    if trial.status == "skipped":
        pytest.skip(trial.reason)
    assert trial.status == "valid", trial.reason
    assert trial.load is not None
    assert trial.load.plan.url.startswith(f"{transport}://{SERVER_ADDRESS}:")
    here = str(Path("/proc/self/ns/net").readlink())
    seen = [set(path.read_text().split()) for path in (at_server, at_load)]
    assert [len(places) for places in seen] == [1, 1]  # the load and the closing check are at the same end
    assert len(seen[0] | seen[1] | {here}) == 3


def test_the_kernel_counts_at_the_servers_end(context: TrialContext) -> None:
    chosen = settings(msgspec.structs.replace(SCENARIO, link="lan"), {})
    with joined():
        pass  # it can be had
    log = TrialLog(context.folder / "log")
    with make_network(TRANSPORTS["udp"], chosen, context.pinning, log, seed=1) as network:
        knock = f"import socket; socket.socket(type=socket.SOCK_DGRAM).sendto(b'x', ('{network.address}', 9))"
        subprocess.run([*network.load, sys.executable, "-c", knock], check=True)
        udp = [line.split() for line in (network.counters / "snmp").read_text().splitlines() if line.startswith("Udp:")]
        assert dict(zip(*udp, strict=True))["NoPorts"] == "1"


@pytest.mark.calm
def test_beside_a_link_that_the_kernel_paces_foreign_load_is_not_judged(
    contestant: Contestant, context: TrialContext, monkeypatch: pytest.MonkeyPatch
) -> None:
    busy = MachineObservation(cores=2, window_s=0.1, steal_s=0.0, own_s=0.05, foreign_s=0.1, switches=0)
    monkeypatch.setattr(Watch, "machine", lambda _self: busy)
    judging = msgspec.structs.replace(context, foreign_load="strike-out")
    with joined(parse_rate(RATE)):
        pass  # it can be had
    assert over_lan(contestant, judging, rate=RATE).status == "valid"
    plain = over_lan(contestant, judging)
    assert (plain.status, plain.reason.partition(":")[0]) == ("struck_out", "foreign_load")


@pytest.mark.calm
@pytest.mark.needs_build
def test_a_rate_holds_what_the_generator_measures_below_it(context: TrialContext) -> None:
    """Not a matter of time: a load that fills the link many times over is held, and without the rate it is not."""
    limit_hz = parse_rate(RATE)
    assert payload_hz(context, None) > 3 * limit_hz
    assert 0 < payload_hz(context, RATE) < 1.1 * limit_hz


def payload_hz(context: TrialContext, rate: str | None) -> float:
    """Bits of messages per second that a real load gets through in each direction."""
    scenario = Scenario(name="echo", workload="echo", connections=4, depth=4, size=10_000, duration_s=0.5, warmup_s=0.5)
    generator = generator_path(build_dir())
    assert generator.is_file(), f"not built: {generator}"
    server = contestants.prepare(contestants.find_by_name(contestants.discover(), "epoll-reactor", "server"))
    cell = Cell(block=1, position=0, scenario="echo", contestant="epoll-reactor", levels={})
    trial = over_lan(server, msgspec.structs.replace(context, generator=(str(generator),)), rate, cell, scenario)
    if trial.status == "skipped":
        pytest.skip(trial.reason)
    assert isinstance(trial.load, LoadResult), trial.reason
    assert trial.load.messages.corrupt == trial.load.messages.lost == 0
    return trial.load.requests.per_second * scenario.size * 8
