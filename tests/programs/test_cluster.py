"""Runs on the hosts of a cluster: network namespaces on a bridge, whose clocks are a day apart.

Other programs may take the cores for most of a window, or keep a host from saying that it lives. So where
that decides on what is looked for, it is looked for some times, and has to be found once."""

from __future__ import annotations

import os
import re
import signal
import subprocess
import time
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, ExitStack, contextmanager, suppress
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import NamedTuple

import msgspec
import pytest

from netdyno.analysis.analysis import analyse
from netdyno.measure.cluster import authority, described, load_helper
from netdyno.measure.machine import server_proc
from netdyno.model.run import Run
from netdyno.model.trial import Trial
from netdyno.present.report import write_page
from netdyno.store import read, schema
from tests.support.builders.made_load import named
from tests.support.hosts import APART_S, BRIEF, NamespaceHost, await_child, daemon, on_a_bridge
from tests.support.patience import PATIENCE_S, eventually

pytestmark = [pytest.mark.needs_build, pytest.mark.long]
GENERATOR = "netdyno-load"
MEASURED = {"valid", "struck_out"}
"""Load by other programs beside a test is no fault of it."""
HELD_UP = re.compile(
    "was lost: (it sent nothing for a second|it closed the connection|Timed out)|not answer|the start time was already|"
    "has left|did not finish"
)
"""The reasons for no trial where a host, or its controller, had no core for too long to report each second."""
TRIES = 5


def ignore(_: subprocess.Popen[str]) -> None:
    """Leave a run alone."""


class RunningCluster(NamedTuple):
    """`server`, `client` and `second`, another client, are the workers of these hosts, and have their files in
    `temporary`."""

    folder: Path
    temporary: Path
    control: NamespaceHost
    scheduler: subprocess.Popen[str]
    server: subprocess.Popen[str]
    client: subprocess.Popen[str]
    second: subprocess.Popen[str]
    hosts: dict[str, NamespaceHost]

    def start(self, results: Path, *words: str) -> subprocess.Popen[str]:
        """A command that knows the cluster, on the controller's host."""
        words = (*words, "--cluster", str(self.folder), "--results", str(results), "--json")
        return self.control.start(*words, program=BRIEF)

    def status(self) -> list[described.Host]:
        """The status that a person sees, as JSON."""
        code, printed = ended(self.control.start("cluster", "status", "--json", "--cluster", str(self.folder)))
        assert code == 0, printed
        return msgspec.json.decode(printed, type=list[described.Host])

    def joined(self, role: str) -> AbstractContextManager[subprocess.Popen[str]]:
        """Another worker of that host."""
        return joined(self.hosts, role, self.folder)

    def measured(self, folder: Path, *words: str, watch: Callable[[subprocess.Popen[str]], None] = ignore) -> Run:
        """A run whose trials all have a load, retried where a host was held up. `watch` gets its process meanwhile."""
        complete: list[Run] = []

        def run(results: Path) -> str:
            process = self.start(results, *words)
            watch(process)
            code, printed = ended(process)
            if code not in (0, 1):
                assert HELD_UP.search(printed), printed
                return printed
            complete[:] = [stored(results)]
            reasons = [trial.reason for trial in complete[0].all_trials if trial.load is None]
            assert all(map(HELD_UP.search, reasons)), reasons
            return "; ".join(reasons)

        in_some_try(run, folder)
        return complete[0]


def written(toml: Path, text: str) -> tuple[str, ...]:
    """Write the experiment, and return the words of its run."""
    toml.write_text(text)
    return "run", str(toml), "--foreign-load", "count"


def in_some_try(check: Callable[[Path], str], folder: Path) -> None:
    """One of TRIES has to be right. `check` gets a new folder for each, and returns what is wrong, or nothing."""
    wrong: list[str] = []
    while len(wrong) < TRIES:
        if not (fault := check(folder / f"try-{len(wrong) + 1}")):
            return
        wrong.append(fault)
    raise AssertionError(wrong)


def joined(hosts: dict[str, NamespaceHost], role: str, folder: Path) -> AbstractContextManager[subprocess.Popen[str]]:
    """Servers get the first core and the loads the last; `second` is another client."""
    core = sorted(os.sched_getaffinity(0))[0 if role == "server" else -1]
    scheduler = authority.read_scheduler(folder)
    side = "server" if role == "server" else "client"
    return daemon(hosts[role], "join", scheduler, "--as", side, "--cores", str(core), "--cluster", str(folder))


@pytest.fixture(scope="module")
def cluster(tmp_path_factory: pytest.TempPathFactory) -> Iterator[RunningCluster]:
    folder = tmp_path_factory.mktemp("hosts") / "cluster"
    with ExitStack() as stack:
        hosts = stack.enter_context(on_a_bridge("control", "server", "client", "second"))
        # Not below the folder: a socket's path may have 107 bytes (unix(7)).
        temporary = stack.enter_context(TemporaryDirectory(prefix="hosts-"))
        stack.enter_context(pytest.MonkeyPatch.context()).setenv("TMPDIR", temporary)
        authority.create(folder, f"tls://{hosts['control'].address}:8786")
        scheduler = stack.enter_context(daemon(hosts["control"], "scheduler", "--cluster", str(folder)))
        server = stack.enter_context(joined(hosts, "server", folder))
        client = stack.enter_context(joined(hosts, "client", folder))
        second = stack.enter_context(joined(hosts, "second", folder))
        yield RunningCluster(folder, Path(temporary), hosts["control"], scheduler, server, client, second, hosts)


def stored(results: Path) -> Run:
    (folder,) = results.iterdir()
    return read.load(folder / schema.FILE_NAME)


def address(cluster: RunningCluster, name: str) -> str:
    """The address of the worker of that host."""
    return f"tls://{cluster.hosts[name].address}:8787"


def ended(run: subprocess.Popen[str]) -> tuple[int, str]:
    printed, _ = run.communicate(timeout=4 * PATIENCE_S)
    return run.returncode, printed


SHARED = """
question = "Is a load of two hosts the same load?"
contestants = ["epoll-reactor"]
blocks = 1
warmup = "50ms"
duration = "500ms"
timeout = "5s"
"""
ECHO = """
[[scenario]]
name = "echo"
workload = "echo"
arrivals = "constant"
connections = 5
rate = 1000

[scenario.factors]
client-hosts = [1, 2]
"""
OF_TWO = SHARED + ECHO.replace("[1, 2]", "[2]")
AUDIENCES = ("others", "all")
ROOM = """
[[scenario]]
name = "{audience}"
workload = "chat"
arrivals = "constant"
connections = 5
rate = 200

[scenario.factors]
client-hosts = [2]

[scenario.server]
audience = "{audience}"
"""


CLIENT = "asyncio"
"""A client contestant that needs nothing but Python."""
OF_CLIENT = f"""
[[scenario]]
name = "rpc"
workload = "rpc"
connections = 2
client = "{CLIENT}"
client-processes = 2
"""


class Shared(NamedTuple):
    """A run, with its results below `folder`, and the cores on which its client contestants ran."""

    run: Run
    folder: Path
    cores: set[int]

    def echo(self, hosts: int) -> Trial:
        of_echo = [trial for trial in self.run.trials if trial.scenario == "echo"]
        (trial,) = (trial for trial in of_echo if trial.levels["client-hosts"] == hosts)
        return trial


def cores_of_clients(worker: subprocess.Popen[str], run: subprocess.Popen[str]) -> set[int]:
    """The cores on which client contestants may run below the worker of a host, read while a run lasts."""
    program = f"clients/{CLIENT}/main.py".encode()
    cores: set[int] = set()
    while run.poll() is None:
        for pid in server_proc.find_family(worker.pid)[1:]:
            with suppress(OSError):  # it has just ended
                if program in Path(f"/proc/{pid}/cmdline").read_bytes():
                    cores |= os.sched_getaffinity(pid)
        with suppress(subprocess.TimeoutExpired):
            run.wait(0.05)
    return cores


@pytest.fixture(scope="module")
def shared(cluster: RunningCluster, tmp_path_factory: pytest.TempPathFactory) -> Shared:
    """One run of all loads that are shared by two hosts, of one that is not, and of a client contestant."""
    folder = tmp_path_factory.mktemp("shared")
    text = SHARED + ECHO + "".join(ROOM.format(audience=audience) for audience in AUDIENCES) + OF_CLIENT
    cores: set[int] = set()
    run = cluster.measured(
        folder / "results",
        *written(folder / "shared.toml", text),
        watch=lambda run: cores.update(cores_of_clients(cluster.client, run)),
    )
    return Shared(run, folder, cores)


def test_a_run_on_two_hosts_is_a_run_as_any_other(cluster: RunningCluster, shared: Shared) -> None:
    server, client = cluster.hosts["server"].address, address(cluster, "client")
    trial = shared.echo(1)
    assert trial.status in MEASURED
    assert trial.load is not None
    assert trial.load.client is None
    assert trial.load.plan.url.startswith(f"tcp://{server}:")
    assert trial.server is not None
    assert trial.server.cpu_s > 0  # read where the server was
    assert trial.server.totals["connections"] > 0
    assert trial.canary is not None
    assert [canary.host for canary in trial.canaries] == [client]
    assert [audit.name for audit in trial.audits if "on the host of the load" in audit.detail] == [
        "steal",
        "foreign_load",
        "throttled",
    ]
    run = shared.run
    assert "== server: " in next(shared.folder.glob(f"*/*/{run.run_id}/{trial.log}")).read_text()
    assert str(run.environment["cluster.client"]).partition(",")[0].endswith(client)
    assert run.links == ("the network between its hosts",)


def test_two_hosts_make_one_load(cluster: RunningCluster, shared: Shared) -> None:
    trial = shared.echo(2)
    alone, shared_load = shared.echo(1).load, trial.load
    assert alone is not None
    assert shared_load is not None
    assert alone.parts is msgspec.UNSET
    assert isinstance(shared_load.parts, tuple)
    hosts = [f"tls://{cluster.hosts[name].address}:8787" for name in ("client", "second")]
    assert [(part.host, part.connections, part.completed > 0) for part in shared_load.parts] == [
        (hosts[0], 3, True),
        (hosts[1], 2, True),
    ]
    for load in (alone, shared_load):
        assert load.plan.connections == load.connections.established == 5
        assert load.plan.rate_hz == pytest.approx(1000)
        assert load.requests.sent == 500
        assert load.latency.response_ns.count == 500
        assert sum(load.timeseries.completed) == load.requests.completed
    audits = {audit.name: audit for audit in trial.audits}
    assert {"common_start", "client_slower", "client_stalled"} <= audits.keys()
    assert audits["server_totals"].passed, audits["server_totals"].detail
    assert [canary.host for canary in trial.canaries] == hosts
    for canary in trial.canaries:
        assert canary.readings.unread == ""
        assert None not in (canary.readings.before, canary.readings.after)
        assert canary.readings != trial.canary
    for host in hosts:
        assert [audit.name for audit in trial.audits if f"it is only counted: {host}: " in audit.detail] == ["canary"]
    for name in ("verification", "steal"):
        assert [
            audit.detail.partition(": ")[0] for audit in trial.audits if audit.name == name and "tls://" in audit.detail
        ] == hosts


@pytest.mark.parametrize("audience", AUDIENCES)
def test_two_hosts_are_in_one_room(shared: Shared, audience: str) -> None:
    """Each hears what both say, to the last message."""
    (trial,) = (trial for trial in shared.run.trials if trial.scenario == audience)
    assert trial.load is not None
    messages = trial.load.messages
    assert messages.sent == 110  # warm-up and window
    assert messages.expected == messages.sent * (4 if audience == "others" else 5)
    assert (messages.lost, messages.corrupt, messages.reordered) == (0, 0, 0)
    assert trial.load.bytes.received == trial.load.bytes.expected
    verified = [audit for audit in trial.audits if audit.name == "verification"]
    assert [audit.passed for audit in verified] == [True, True]
    heard = [int(audit.detail.split()[1]) for audit in verified]  # "HOST: N replies verified ..."
    assert sum(heard) == messages.received
    assert all(number > messages.sent for number in heard)
    (totals,) = (audit for audit in trial.audits if audit.name == "server_totals")
    assert totals.passed, totals.detail


def test_a_client_runs_on_the_host_of_the_load(cluster: RunningCluster, shared: Shared) -> None:
    (trial,) = (trial for trial in shared.run.trials if trial.scenario == "rpc")
    assert trial.load is not None
    assert trial.load.client is not None
    assert trial.load.plan.url.startswith(f"tcp://{cluster.hosts['server'].address}:")
    assert len(trial.load.generator.threads) == 2
    assert [canary.host for canary in trial.canaries] == [address(cluster, "client")]
    audits = {audit.name: audit for audit in trial.audits}
    assert "the client is what is compared" in audits["generator"].detail
    assert audits["server_totals"].passed
    assert "foreign_load" in [audit.name for audit in trial.audits if load_helper.WHERE in audit.detail]
    assert shared.cores == {sorted(os.sched_getaffinity(0))[-1]}  # as `joined` gives them


STANDING = 300
"""Segments: to connect and to report takes a few, and a part of SHARED sends hundreds a second."""
STALLED = 400
"""Segments that the other part sends in more than half a second."""
LONGEST_S = 2.0
"""After that the other part has stood still, too, or its window is over."""


def sent(pid: int) -> int:
    """The segments of TCP that its host has sent."""
    return server_proc.parse_counters(server_proc.take_kernel(Path(f"/proc/{pid}/net")))["OutSegs"]


def test_a_part_that_is_lost_fails_its_trial_and_a_part_that_stalls_is_named(
    cluster: RunningCluster, tmp_path: Path
) -> None:
    """One run: the part is lost in the first block and stalls in the second."""
    words = written(tmp_path / "shared.toml", OF_TWO.replace("500ms", "2500ms").replace("blocks = 1", "blocks = 2"))
    second = address(cluster, "second")

    def left() -> list[str]:
        return [name for _, names, _ in os.walk(cluster.temporary) for name in names if "load-" in name]

    def check(results: Path) -> str:
        run = cluster.start(results, *words)
        killed = await_child(cluster.second.pid, GENERATOR)
        os.kill(killed, signal.SIGKILL)
        stalls = await_child(cluster.second.pid, GENERATOR, but=killed)

        least = sent(cluster.second.pid) + STANDING
        eventually(lambda: sent(cluster.second.pid) > least or run.poll() is not None, "its load never began")
        with suppress(ProcessLookupError):
            os.kill(stalls, signal.SIGSTOP)
            least, latest = sent(cluster.client.pid) + STALLED, time.monotonic() + LONGEST_S
            eventually(lambda: sent(cluster.client.pid) > least or time.monotonic() > latest, "unreachable")
            os.kill(stalls, signal.SIGCONT)
        code, printed = ended(run)
        lost, trial = stored(results).all_trials
        assert lost.status == "failed"
        assert f"the generator on {second} ended with signal SIGKILL" in lost.reason
        eventually(lambda: not left(), lambda: f"there are still {left()}")
        if trial.load is None:
            return trial.reason or printed
        assert code in (0, 1), printed
        stalled = named(trial.audits, "client_stalled")
        named_host = f"{second} stalled while other hosts did not: "
        return "" if named_host in stalled.detail and not stalled.passed else stalled.detail

    in_some_try(check, tmp_path / "results")


LINK_HZ = 20_000_000
SLOW_HZ = 4_000_000
"""A message takes 3 ms of it, and those of all connections less than TCP waits before it sends again."""
ONE_FRAME = "2kb"
"""The burst that may leave at once: few messages are in flight, and saved-up tokens must not answer them."""
MESSAGE_BYTES, FRAME_BYTES = 1448, 1514
"""Bytes of a full segment over Ethernet, with the time stamps of TCP: the message, and the frame around it."""


@contextmanager
def narrow(host: NamespaceHost, rate_hz: int, burst: str = "32kb") -> Iterator[None]:
    """Limit what leaves a host to so many bits a second. Skips the test where the kernel cannot."""
    link = [*host.enter, "tc", "qdisc"]
    limit = ["root", "tbf", "rate", str(rate_hz), "burst", burst, "limit", "1mb"]
    if subprocess.run([*link, "add", "dev", "eth0", *limit], check=False).returncode != 0:
        pytest.skip("this kernel has no token bucket (CONFIG_NET_SCH_TBF)")
    try:
        yield
    finally:
        subprocess.run([*link, "del", "dev", "eth0", "root"], check=True)


def test_the_status_shows_hosts_as_a_run_does_and_what_every_link_carries(
    cluster: RunningCluster, shared: Shared, tmp_path: Path
) -> None:
    """Each direction counts alone: what one host sends goes through a bucket, and what it hears does not."""
    client = address(cluster, "client")
    second = address(cluster, "second")

    def check(_: Path) -> str:
        hosts = cluster.status()
        addresses = {host.address for host in hosts}
        assert len(addresses) == 3
        assert all(host.links.keys() == addresses - {host.address} for host in hosts)
        (doctor,) = (host.description.findings for host in hosts if host.address == client)
        assert shared.run.environment["cluster.client.doctor"] == list(doctor)
        apart = [host.clock.offset_ns / 1e9 / APART_S for host in hosts]
        assert apart == pytest.approx([1, 2, 3], abs=1e-3)
        wrong = []
        for host in hosts:
            for neighbour, link in host.links.items():
                assert link.round_trip_ns > 0
                assert link.bits_per_second is not None
                is_narrow = link.bits_per_second == pytest.approx(LINK_HZ, rel=0.15)
                if not (is_narrow if neighbour == second else link.bits_per_second > 2 * LINK_HZ):
                    wrong.append(f"{neighbour} to {host.address}: {link.bits_per_second:g}")
        return "; ".join(wrong)

    with narrow(cluster.hosts["second"], LINK_HZ):
        in_some_try(check, tmp_path)


def test_two_hosts_fill_a_link_to_its_rate_and_the_slower_host_is_named(
    cluster: RunningCluster, tmp_path: Path
) -> None:
    """What comes back to both is what the link of the server lets through, however fast this machine is: a fifth of it
    to the second host, which can ask for no more. No connection of its own watches that host: with equal shares, the
    answers to the other do."""
    text = OF_TWO.replace("500ms", "1500ms").replace("connections = 5", "connections = 40")
    text = text.replace('arrivals = "constant"\n', "").replace("rate = 1000", f"size = {MESSAGE_BYTES}")
    words = written(tmp_path / "full.toml", text)
    had_the_cores: list[bool] = []

    def check(results: Path) -> str:
        *_, trial = cluster.measured(results, *words).trials
        assert trial.load is not None
        slower = named(trial.audits, "client_slower")
        if slower.passed or not slower.detail.endswith(f" on {address(cluster, 'second')}"):
            return slower.detail
        machine = trial.machine
        had_the_cores.append(
            machine is None or machine.foreign_s + machine.steal_s <= machine.cores * machine.window_s / 2
        )
        share = 8 * FRAME_BYTES * trial.load.requests.per_second / LINK_HZ
        return "" if 0.99 <= share <= 1.01 else f"it was full to {share:.1%}"

    with narrow(cluster.hosts["server"], LINK_HZ), narrow(cluster.hosts["second"], SLOW_HZ, burst=ONE_FRAME):
        try:
            in_some_try(check, tmp_path / "results")
        except AssertionError as never:
            if len(had_the_cores) == TRIES and not any(had_the_cores):
                pytest.skip(f"others had the cores: {never}")
            raise


def test_a_run_whose_host_is_lost_ends_whole_and_is_gone_on_with(cluster: RunningCluster, tmp_path: Path) -> None:
    """A child of a host is lost, and the run goes on; then the host's worker, and it goes on with another. Meanwhile
    who asks for the status fills no link."""
    results = tmp_path / "results"
    text = SHARED.replace("blocks = 1", "blocks = 3") + ECHO.replace("[1, 2]", "[1]")
    run = cluster.start(results, *written(tmp_path / "lost.toml", text))
    first = await_child(cluster.client.pid, GENERATOR)
    os.kill(first, signal.SIGSTOP)  # a busy machine may take longer to ask than a trial takes
    try:
        hosts = cluster.status()
    finally:
        os.kill(first, signal.SIGKILL)
    assert [host.description.is_busy for host in hosts] == [True, True, False]
    assert {link.bits_per_second for host in hosts for link in host.links.values()} == {None}
    await_child(cluster.client.pid, GENERATOR, but=first)
    cluster.client.kill()
    code, printed = ended(run)
    assert code == 4, printed
    # A request gets no answer before the scheduler has missed the host.
    assert re.search(
        r"The run ends here: the host tls://10\.88\.0\.3:8787 (has left the cluster|does not answer)\.", printed
    )
    reasons = [trial.reason for trial in stored(results).trials]
    assert "the generator was ended by signal 9" in reasons[0]
    assert "the host tls://10.88.0.3:8787, which makes the load, was lost" in reasons[1]
    eventually(lambda: len(server_proc.find_family(cluster.server.pid)) == 1, "something of its trials is left")
    with cluster.joined("client"):
        code, printed = ended(cluster.start(results, "resume", stored(results).run_id))
    assert code in (0, 1), printed
    whole = stored(results)
    write_page(analyse(whole), tmp_path / "report.html")
    trials = whole.trials
    assert [trial.status for trial in trials[:2]] == ["failed", "failed"]
    assert all(trial.status in MEASURED or HELD_UP.search(trial.reason) for trial in trials[2:])
    assert {(trial.block, trial.position) for trial in trials} == {(1, 0), (2, 0), (3, 0)}
