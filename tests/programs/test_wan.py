"""The link `wan`: it delays, loses and limits as asked, by the relay or by netem, and says so when it cannot."""

from __future__ import annotations

import os
import shutil
import signal
import socket
import stat
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import msgspec
import pytest

from netdyno.kit.paths import ROOT, build_dir, generator_path, relay_path
from netdyno.measure.machine.links import lan, link_check, wan
from netdyno.measure.machine.links.lan import INTERFACE, Lan
from netdyno.measure.machine.links.namespace import Namespace, NotAllowedError
from netdyno.measure.machine.links.wan import Terms, Wan, Way
from netdyno.measure.machine.process import TrialError
from netdyno.measure.machine.trial_log import TrialLog
from netdyno.measure.trial.context import TrialContext
from netdyno.measure.trial.trial import CLOSING_S, _estimate_closing_s, run_trial
from netdyno.model.contestant import Contestant
from netdyno.model.experiment import Scenario
from netdyno.model.levels import level_words
from netdyno.model.observation import Relayed
from netdyno.model.options import settings
from netdyno.model.transports import LOAD_ADDRESS, SERVER_ADDRESS
from netdyno.model.trial import Trial
from netdyno.question.contestants import contestants
from netdyno.question.plan import Cell
from tests.support.inside import inside, open_conversation
from tests.support.proc import SOON_S, ends

CELL = Cell(block=1, position=0, scenario="echo", contestant="fake", levels={})
SCENARIO = Scenario(
    name="echo", workload="echo", connections=2, duration_s=0.1, timeout_s=2.0, link="wan", link_delay_s=0.005
)
HARNESS = """
import signal, sys
from pathlib import Path
from netdyno.measure.machine.links import wan
from netdyno.measure.machine.trial_log import TrialLog
with wan.make_link(wan.Terms(delay_s=0.001), TrialLog(Path(sys.argv[1]))) as made:
    print(made.server.pid, made.load.pid, made.relay.pid, flush=True)
    signal.pause()
"""


@pytest.fixture
def log(tmp_path: Path) -> TrialLog:
    return TrialLog(tmp_path / "link.log")


@pytest.fixture
def ask_again() -> Iterator[None]:
    """Forget the result about this system before the test and after it."""
    wan.choose_way.cache_clear()
    yield
    wan.choose_way.cache_clear()


@contextmanager
def joined(terms: Terms, log: TrialLog) -> Iterator[Wan]:
    """A link by the relay, with the program that was built."""
    assert relay_path(build_dir()).is_file(), f"not built: {relay_path(build_dir())}"
    can_be_had()
    try:
        with wan.make_link(terms, log) as made:
            if made.relay is None:
                pytest.skip("this kernel has netem")
            yield made
    except NotAllowedError as error:
        if "cannot open /dev/net/tun" not in str(error):
            raise  # the process that made the networks is root in them: a fault of ours
        pytest.skip(str(error))


def can_be_had() -> None:
    """Skip where no networks can be."""
    try:
        with lan.make_ends():
            pass
    except NotAllowedError as error:
        pytest.skip(str(error))


def accounted(way: Relayed) -> int:
    return way.frames_out + way.lost + way.queue_full + way.overflowed + way.refused + way.under_way


# --- what it gives --------------------------------------------------------------------------------------------------


@pytest.mark.calm
@pytest.mark.needs_build
def test_delay_and_loss_are_those_that_were_requested(rights: str, log: TrialLog) -> None:
    terms = Terms(delay_s=0.02, loss=0.1)
    with joined(terms, log) as made:
        assert [end.other_users for end in (made.server, made.load)] == [rights == "anybody"] * 2
        measured = link_check.measure(made, terms)
        assert measured.round_trip_p50_s is not None
        assert 0.04 <= measured.round_trip_p50_s < 0.08
        assert 0.05 < measured.lost_there < 0.15
        assert 0.05 < measured.lost_back < 0.15
        assert made.relay is not None
        totals = made.relay.end()
    to_load, to_server = totals.a_to_b, totals.b_to_a
    assert [accounted(direction) for direction in (to_load, to_server)] == [to_load.frames_in, to_server.frames_in]
    # Nothing crossed it but the datagrams.
    assert (to_server.frames_in, to_server.frames_out) == (measured.sent, measured.arrived)
    assert (to_load.frames_in, to_load.frames_out) == (measured.arrived, measured.returned)
    assert (to_server.lost, to_load.lost) == (measured.sent - measured.arrived, measured.arrived - measured.returned)
    assert totals.late_ns.p50 < 20_000_000
    assert totals.cpu_user_s + totals.cpu_system_s > 0


@pytest.mark.calm
@pytest.mark.needs_build
def test_without_loss_nothing_is_lost(log: TrialLog) -> None:
    terms = Terms(delay_s=0.003)
    with joined(terms, log) as made:
        measured = link_check.measure(made, terms)
    assert (measured.arrived, measured.returned) == (measured.sent, measured.sent)
    assert measured.round_trip_p50_s is not None
    assert measured.round_trip_p50_s >= 0.006


@pytest.mark.needs_build
def test_a_stream_arrives_whole_and_not_faster_than_the_rate(log: TrialLog) -> None:
    size, terms = 250_000, Terms(delay_s=0.001, loss=0.01, rate_hz=10_000_000)
    data = os.urandom(size)
    with joined(terms, log) as made, open_conversation(made.server, made.load) as (client, served):
        began = time.monotonic()
        client.sendall(data)
        client.shutdown(socket.SHUT_WR)
        got = bytearray()
        while more := served.recv(65536):
            got += more
        took_s = time.monotonic() - began
    assert bytes(got) == data
    assert took_s > size * 8 / 10_000_000


@pytest.mark.needs_build
def test_a_rate_drops_what_does_not_fit_into_its_queue_and_says_so(log: TrialLog) -> None:
    """Frames of more than 30 seconds come at once into a link whose queue holds 12 seconds. (A TAP device counts a
    frame as transmitted when it has been read.)"""
    with joined(Terms(rate_hz=1_000_000), log) as made:
        with inside(made.load) as at_load:
            sender = at_load.socket(socket.AF_INET, socket.SOCK_DGRAM)
        with sender:
            sender.setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, 8 << 20)
            for _ in range(3000):
                sender.sendto(bytes(1400), (SERVER_ADDRESS, 9))
        deadline = time.monotonic() + SOON_S
        while counts(made.load)[9] < 3000 and time.monotonic() < deadline:
            time.sleep(0.01)
        assert made.relay is not None
        totals = made.relay.end().b_to_a
    assert totals.queue_full > 0
    assert (totals.overflowed, totals.unread) == (0, 0)
    assert totals.under_way <= lan.QUEUE_FRAMES * lan.MTU_FRAME // (1400 + 42) + 1
    assert accounted(totals) == totals.frames_in


@pytest.mark.needs_build
def test_both_ends_know_each_other_and_nothing_crosses_before_the_load(log: TrialLog) -> None:
    with joined(Terms(delay_s=0.001), log) as made:
        for end, far_address in ((made.server, LOAD_ADDRESS), (made.load, SERVER_ADDRESS)):
            (neighbour,) = end.run("ip", "neigh", "show").splitlines()
            assert neighbour.startswith(f"{far_address} dev {INTERFACE} lladdr 02:")
            assert neighbour.endswith("PERMANENT ")
            assert end.run("ip", "route", "show", "table", "main").startswith(f"10.77.0.0/30 dev {INTERFACE} ")
        assert made.relay is not None
        totals = made.relay.end()
    assert (totals.a_to_b.frames_in, totals.b_to_a.frames_in) == (0, 0)


# --- that nothing is left of it -------------------------------------------------------------------------------------


@pytest.mark.needs_build
def test_its_relay_ends_with_it(log: TrialLog) -> None:
    with joined(Terms(delay_s=0.001), log) as made:
        assert made.relay is not None
        left = [os.pidfd_open(pid) for pid in (made.server.pid, made.load.pid, made.relay.pid)]
    assert [ends(pidfd) for pidfd in left] == [True] * 3


@pytest.mark.needs_build
def test_kill_9_of_the_harness_leaves_nothing_behind(rights: str, log: TrialLog, tmp_path: Path) -> None:
    with joined(Terms(), log):
        pass  # it can be had
    user = "import os; os.geteuid = lambda: 65534\n" if rights == "anybody" else ""
    environment = os.environ | {"PYTHONPATH": str(ROOT / "python"), "NETDYNO_BUILD": str(build_dir())}
    command = [sys.executable, "-c", user + HARNESS, str(tmp_path / "log")]
    with subprocess.Popen(command, stdout=subprocess.PIPE, env=environment) as harness:
        assert harness.stdout is not None
        words = harness.stdout.readline().split()
        left = [os.pidfd_open(int(word)) for word in words]
        harness.send_signal(signal.SIGKILL)
        assert [ends(pidfd) for pidfd in left] == [True] * 3


@pytest.mark.needs_build
def test_a_relay_that_has_died_fails_the_trial(log: TrialLog) -> None:
    with joined(Terms(delay_s=0.001), log) as made:
        assert made.relay is not None
        os.kill(made.relay.pid, signal.SIGKILL)
        watched = os.pidfd_open(made.relay.pid)
        assert ends(watched)
        with pytest.raises(TrialError, match="the link's relay had ended with signal SIGKILL"):
            made.relay.end()


@pytest.mark.needs_build
def test_a_relay_that_dies_while_its_link_is_measured_is_a_link_that_cannot_be_had(
    log: TrialLog, monkeypatch: pytest.MonkeyPatch
) -> None:
    with joined(Terms(delay_s=0.001), log) as made:
        assert made.relay is not None
        pid, note = made.relay.pid, link_check._Exchange._note

        def dies(exchange: link_check._Exchange) -> None:
            watched = os.pidfd_open(pid)
            os.kill(pid, signal.SIGKILL)
            assert ends(watched)
            note(exchange)

        monkeypatch.setattr(link_check._Exchange, "_note", dies)
        with pytest.raises(NotAllowedError, match="the link cannot be measured: Network is unreachable"):
            link_check.measure(made, Terms(delay_s=0.001))


# --- by netem -------------------------------------------------------------------------------------------------------


def test_what_netem_is_requested() -> None:
    assert wan.format_netem(Terms(delay_s=0.02, loss=0.01)) == [
        "delay",
        "20000us",
        "loss",
        "random",
        "1%",
        "limit",
        "16384",
    ]
    assert wan.format_netem(Terms(delay_s=0.0005)) == ["delay", "500us", "limit", "16384"]
    assert wan.format_netem(Terms(loss=0.125)) == ["loss", "random", "12.5%", "limit", "16384"]
    assert wan.format_netem(Terms(delay_s=1.0)) == ["delay", "1000000us", "limit", "200000"]
    assert wan.format_netem(Terms(delay_s=10.0))[-1] == str(1 << 20)


def fake_tool(folder: Path, name: str, script: str) -> Path:
    path = folder / name
    path.write_text(f"#!/bin/sh\n{script}\n")
    path.chmod(path.stat().st_mode | stat.S_IXUSR | stat.S_IXOTH | stat.S_IXGRP)
    return path


def test_the_kernel_is_queried_whether_it_has_netem(
    ask_again: None, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    try:
        way = wan.choose_way()
    except NotAllowedError as error:
        pytest.skip(str(error))
    assert way == Way("netem") or (way.by == "relay" and "qdisc" in way.why), way
    fake_tool(tmp_path, "tc", 'echo "$*" > "$(dirname "$0")/asked"')
    monkeypatch.setenv("PATH", str(tmp_path), prepend=os.pathsep)
    wan.choose_way.cache_clear()
    assert wan.choose_way() == Way("netem")
    arguments = (tmp_path / "asked").read_text()
    assert arguments == "qdisc add dev lo root netem delay 1000us loss random 1% limit 16384\n"


def test_without_tc_it_is_the_relay(ask_again: None, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(shutil, "which", lambda _tool, path: None)
    assert wan.choose_way() == Way("relay", "tc not found: install iproute2")


def test_with_netem_the_kernel_is_the_link(
    ask_again: None, tmp_path: Path, log: TrialLog, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A kernel without netem cannot show that it delays; a queue in its place shows that everything around it works."""
    can_be_had()
    calls = tmp_path / "calls"
    replaced = f'echo "$*" >> {calls}; case "$*" in *netem*) set -- qdisc replace dev "$4" root pfifo ;; esac'
    fake_tool(tmp_path, "tc", f'{replaced}; case "$*" in *tbf*) exit 0 ;; esac; exec {lan.find_tool("tc")} "$@"')
    monkeypatch.setenv("PATH", str(tmp_path), prepend=os.pathsep)
    terms = Terms(delay_s=0.02, loss=0.01, rate_hz=10_000_000)
    with wan.make_link(terms, log) as made:
        assert made.relay is None
        measured = link_check.measure(made, Terms())
        assert measured.returned == measured.sent
        with open_conversation(made.server, made.load) as (client, served):
            client.sendall(bytes(200_000))
            left = 200_000
            while left:
                left -= len(served.recv(65536))
        assert mean_frame_bytes(made.server) <= lan.MTU_FRAME  # so it would lose frames, and not batches of them
    bucket = " ".join(lan.format_token_bucket(10_000_000))
    commands = [
        "qdisc add dev lan root handle 1: netem delay 20000us loss random 1% limit 16384",
        f"qdisc add dev lan parent 1: tbf {bucket}",
    ]
    assert calls.read_text().splitlines()[1:] == commands * 2


def mean_frame_bytes(end: Namespace) -> float:
    """The mean size of the frames that came in at one end."""
    return counts(end)[0] / counts(end)[1]


def counts(end: Namespace) -> list[int]:
    """The columns of /proc/net/dev (proc(5)) of one end's interface: received first, transmitted from the ninth on."""
    (row,) = [line for line in Path(f"/proc/{end.pid}/net/dev").read_text().splitlines() if f"{INTERFACE}:" in line]
    return [int(column) for column in row.partition(":")[2].split()]


# --- trials over it -------------------------------------------------------------------------------------------------


@pytest.mark.calm
@pytest.mark.needs_build
@pytest.mark.parametrize("transport", ["tcp", "udp"])
def test_a_trial_over_it_keeps_what_its_relay_says(
    transport: str, contestant: Contestant, context: TrialContext
) -> None:
    manifest = msgspec.structs.replace(contestant.manifest, transports=(transport,))
    trial = run_trial(CELL, SCENARIO, msgspec.structs.replace(contestant, manifest=manifest), context)
    if trial.status == "skipped":
        pytest.skip(trial.reason)
    only_late(trial)
    assert trial.relay is not None
    assert trial.load is not None
    assert trial.load.plan.url.startswith(f"{transport}://{SERVER_ADDRESS}:")
    assert trial.relay.a_to_b.frames_out > 0
    assert "link" in [audit.name for audit in trial.audits]
    assert "netdyno-link" in (context.folder / trial.log).read_text()


def only_late(trial: Trial) -> None:
    """On a busy machine the link may be late, which is what its audit is for; nothing else may be wrong."""
    assert trial.status in ("valid", "struck_out"), trial.reason
    failed = [audit.name for audit in trial.audits if not audit.passed]
    assert set(failed) <= {"link"}, trial.reason


@pytest.mark.calm
@pytest.mark.needs_build
def test_a_server_ten_milliseconds_away_answers_after_ten_milliseconds(context: TrialContext) -> None:
    generator = generator_path(build_dir())
    assert generator.is_file(), f"not built: {generator}"
    server = contestants.prepare(contestants.find_by_name(contestants.discover(), "epoll-reactor", "server"))
    scenario = msgspec.structs.replace(SCENARIO, connections=10, duration_s=0.5, warmup_s=0.1)
    cell = msgspec.structs.replace(CELL, contestant=server.name)
    trial = run_trial(cell, scenario, server, msgspec.structs.replace(context, generator=(str(generator),)))
    if trial.status == "skipped":
        pytest.skip(trial.reason)
    assert trial.load is not None, trial.reason
    assert trial.load.messages.lost == trial.load.messages.corrupt == 0
    assert 10_000_000 <= trial.load.latency.response_ns.p50 < 30_000_000
    assert trial.server is not None
    assert trial.server.totals["protocol_errors"] == 0


def test_multicast_over_it_is_a_stated_skip(contestant: Contestant, context: TrialContext) -> None:
    manifest = msgspec.structs.replace(contestant.manifest, transports=("multicast",))
    trial = run_trial(CELL, SCENARIO, msgspec.structs.replace(contestant, manifest=manifest), context)
    assert (trial.status, trial.load) == ("skipped", None)
    assert trial.reason == "the link wan does not carry multicast; measure it over the loopback"


def test_a_link_that_is_not_what_was_requested_is_a_stated_skip(contestant: Contestant, context: TrialContext) -> None:
    link_words = settings(SCENARIO, {}).link_words
    assert link_words == "wan with 5ms each way"
    trial = run_trial(
        CELL, SCENARIO, contestant, msgspec.structs.replace(context, bad_links={link_words: "it takes 9 ms"})
    )
    assert (trial.status, trial.reason, trial.load) == ("skipped", "it takes 9 ms", None)


def test_goodbyes_over_it_are_waited_for_as_long_as_they_need() -> None:
    near = settings(msgspec.structs.replace(SCENARIO, link="loopback", link_loss=0.1), {})
    far, lossy = settings(SCENARIO, {}), settings(msgspec.structs.replace(SCENARIO, link_loss=0.1), {})
    assert _estimate_closing_s(near) == CLOSING_S
    assert CLOSING_S < _estimate_closing_s(far) < _estimate_closing_s(lossy)


def test_its_levels_are_stated_as_what_they_do() -> None:
    assert level_words("link-delay", "20ms") == "20ms each way"
    assert level_words("link-loss", 0.01) == "0.01 of the frames lost"


# --- what is missing ------------------------------------------------------------------------------------------------


def without_netem(monkeypatch: pytest.MonkeyPatch) -> None:
    can_be_had()
    monkeypatch.setattr(wan, "choose_way", lambda: Way("relay", "tc: no such qdisc"))


def test_a_relay_that_is_not_built_is_a_stated_skip(
    contestant: Contestant, context: TrialContext, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    without_netem(monkeypatch)
    monkeypatch.setenv("NETDYNO_BUILD", str(tmp_path))
    trial = run_trial(CELL, SCENARIO, contestant, context)
    assert (trial.status, trial.load) == ("skipped", None)
    assert trial.reason == (
        f"the link wan with 5ms each way is not available here: the relay is not built: {tmp_path}/link/netdyno-link "
        "is missing; run ./netdyno, which builds it (netem is not available either: tc: no such qdisc)"
    )


def test_what_the_relay_lacks_is_a_stated_skip(
    contestant: Contestant, context: TrialContext, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    without_netem(monkeypatch)
    (tmp_path / "link").mkdir()
    fake_tool(tmp_path / "link", "netdyno-link", "echo 'netdyno-link: no /dev/net/tun; modprobe tun' >&2; exit 1")
    monkeypatch.setenv("NETDYNO_BUILD", str(tmp_path))
    trial = run_trial(CELL, SCENARIO, contestant, context)
    assert trial.status == "skipped"
    assert "is not available here: netdyno-link: no /dev/net/tun; modprobe tun (netem is not available" in trial.reason


def relay_in(preparation: str, *options: str) -> subprocess.CompletedProcess[str]:
    """The relay in a network of its own, at both ends, after a preparation by the shell."""
    users = () if os.geteuid() == 0 else ("--user", "--map-root-user")
    command = f"{preparation}; exec {relay_path(build_dir())} /proc/self/ns/net /proc/self/ns/net {' '.join(options)}"
    return subprocess.run(
        ["unshare", *users, "--net", "--mount", "sh", "-c", command],
        check=False,
        capture_output=True,
        text=True,
        timeout=SOON_S,
    )


@pytest.mark.needs_build
def test_the_relay_says_how_to_get_the_device_that_it_needs() -> None:
    done = relay_in("mount -t tmpfs none /dev/net || exit 77")
    if done.returncode == 77 or "unshare" in done.stderr:
        pytest.skip(done.stderr)
    assert (done.returncode, done.stdout) == (1, "")
    assert done.stderr.startswith("netdyno-link: cannot open /dev/net/tun: No such file or directory; ")
    assert "as root: modprobe tun" in done.stderr
    assert done.stderr.count("\n") == 1


@pytest.mark.needs_build
def test_the_relay_says_how_a_user_gets_to_the_device() -> None:
    if os.geteuid() != 0 or shutil.which("setpriv") is None:
        pytest.skip("needs root, to become somebody else")
    device = Path("/dev/net/tun")
    if not device.exists() or device.stat().st_mode & stat.S_IROTH:
        pytest.skip("anybody may open the device here, or it is not there")
    unprivileged = ["setpriv", "--reuid", "65534", "--regid", "65534", "--clear-groups"]
    alone = ["unshare", "--user", "--map-root-user", "--net"]
    with tempfile.TemporaryDirectory() as folder:
        Path(folder).chmod(0o755)
        command = [*unprivileged, *alone, shutil.copy(relay_path(build_dir()), folder), *["/proc/self/ns/net"] * 2]
        done = subprocess.run(command, check=False, capture_output=True, text=True, timeout=SOON_S)
    if "unshare" in done.stderr:
        pytest.skip(done.stderr)
    assert done.returncode == 1
    assert done.stderr == (
        "netdyno-link: cannot open /dev/net/tun: Permission denied; as root: chmod 666 /dev/net/tun, which gives users "
        "devices in their own networks only\n"
    )


@pytest.mark.needs_build
def test_the_relay_takes_nothing_for_a_network_that_is_none() -> None:
    done = subprocess.run(
        [relay_path(build_dir()), "/nowhere", "/nowhere"], check=False, capture_output=True, text=True, timeout=SOON_S
    )
    assert done.returncode == 1
    assert done.stderr.startswith("netdyno-link: cannot open the network namespace /nowhere: No such file")


def test_the_command_of_the_relay() -> None:
    ends_of = Lan(Namespace(7, ("in", "7")), Namespace(8, ("in", "8")))
    terms = Terms(delay_s=0.02, loss=0.01, rate_hz=10_000_000, seed=5)
    command = wan.build_relay_command(Path("/b/relay"), ends_of, terms)
    assert " ".join(command) == (
        "in 7 /b/relay /proc/7/ns/net /proc/8/ns/net --interface lan --delay 20ms --loss 0.01 "
        "--rate 10000000bit --queue 1514000 --limit 16384 --seed 5"
    )
