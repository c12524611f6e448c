"""Runs on made-up hosts of a cluster: trials that they cannot run are skipped, and the rest is run."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace
from typing import cast

import msgspec
import pytest
from msgspec.structs import replace

from netdyno.kit.errors import UserError
from netdyno.kit.paths import canary_path, generator_path
from netdyno.measure.cluster import load_helper, trial_helper
from netdyno.measure.cluster.controller import Controller
from netdyno.measure.cluster.described import Host
from netdyno.measure.cluster.requests import (
    HostSettings,
    LoadEnded,
    PartRequest,
    Prepare,
    Prepared,
    Reply,
    Request,
    TrialDone,
    TrialRequest,
)
from netdyno.measure.cluster.stage import Stage
from netdyno.measure.machine import digests, topology
from netdyno.measure.machine.environment import read_commit
from netdyno.measure.run import needed, resume, runner
from netdyno.model.base import type_level
from netdyno.model.experiment import Experiment, Scenario
from netdyno.model.levels import level_key
from netdyno.model.observation import Pinning
from netdyno.model.trial import Trial
from netdyno.question import experiment
from netdyno.question.contestants import building
from netdyno.question.contestants.contestants import discover
from netdyno.question.plan import Cell
from netdyno.store import read, schema
from netdyno.verbs.cli import main
from tests.support.builders.made_blocks import NAMES, Silent, permit
from tests.support.builders.made_claims import made_trial
from tests.support.builders.made_hosts import host
from tests.support.edit_store import edit_store
from tests.support.fixtures import WriteProgram
from tests.support.recorded_machine import unpack

CONTESTANT = NAMES[0]
CLIENT, MISSING = "qt-signals", "asio-callbacks"
"""Client contestants: one that the build has made, where a test says so, and one that it has not."""


@pytest.fixture
def prepared() -> list[tuple[str, Prepare]]:
    """The requests to prepare, with the addresses of their hosts."""
    return []


@pytest.fixture
def stage(
    prepared: list[tuple[str, Prepare]], fake_build: Path, monkeypatch: pytest.MonkeyPatch
) -> Callable[[int], Stage]:
    """A maker of clusters with so many hosts of the load, all of which fulfil every request."""
    servers = {contestant.name: contestant for contestant in discover(build=fake_build)}

    def perform(_: Stage, there: Host, request: Request, limit_s: float) -> Reply:
        assert limit_s > 0
        if isinstance(request, Prepare):
            prepared.append((there.address, request))
            clients = [
                contestant
                for contestant in discover(build=fake_build, kind="client")
                if contestant.name in request.clients
            ]
            of_servers = [servers[name] for name in request.servers]
            programs = digests.digest_host(generator_path(fake_build), canary_path(fake_build), of_servers, clients)
            return Prepared(environment=read_commit(), programs=tuple(programs), why_not={})
        assert isinstance(request, TrialRequest)
        assert there.description.role == "server"
        cell = request.cell
        trial = made_trial(request.scenario, cell.block, cell.contestant, cell.levels, {"throughput": 1000.0})
        return TrialDone(trial=replace(trial, position=cell.position, attempt=cell.attempt, twin=cell.twin), log="")

    monkeypatch.setattr(Stage, "_perform", perform)

    def build_stage(loads: int) -> Stage:
        harness = digests.digest_harness()
        clients = (
            host("client", f"tls://10.0.0.{number}:8787", boot="b", harness=harness) for number in range(3, 3 + loads)
        )
        hosts = (host("server", boot="a", harness=harness), *clients)
        control = SimpleNamespace(
            hosts=lambda: hosts, names=lambda: {joined.address: joined.name for joined in hosts}, answers=lambda _: True
        )
        return Stage(cast(Controller, control))

    return build_stage


@pytest.fixture
def client(fake_build: Path, write_program: WriteProgram) -> str:
    """A client contestant that the build has made, the only one of its kind."""
    write_program(fake_build / "clients" / CLIENT, "load.py")
    return CLIENT


def make_experiment(factors: dict[str, tuple[type_level, ...]], workload: str = "echo") -> Experiment:
    scenario = Scenario(name=workload, workload=workload, factors=factors)
    return Experiment(name="hosts", question="?", scenarios=(scenario,)).with_each(contestants=(CONTESTANT,), blocks=1)


def run(requested: Experiment, results: Path, build: Path, stage: Stage) -> dict[str, Trial]:
    """Run an experiment, and return its trials by their levels."""
    clients = [
        contestant
        for contestant in discover(build=build, kind="client")
        if contestant.name in experiment.list_clients(requested)
    ]
    servers = [
        contestant for contestant in discover(build=build) if contestant.name in requested.scenarios[0].contestants
    ]
    ready = needed.make(requested, servers, clients, build)
    return {level_key(trial.levels): trial for trial in executed(requested, ready, results, build, stage)}


def executed(
    requested: Experiment, ready: needed.PreparedContestants, results: Path, build: Path, stage: Stage
) -> tuple[Trial, ...]:
    outcome = runner.execute(
        requested,
        ready.servers,
        clients=ready.clients,
        results=results,
        build=build,
        argv=["netdyno", "run"],
        display=Silent(),
        hosts=stage,
    )
    return read.load(outcome.folder / schema.FILE_NAME).trials


@pytest.fixture
def built(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """The targets that were to be built."""
    targets: list[str] = []
    monkeypatch.setattr(building, "make", lambda names, _: targets.extend(names))
    return targets


def test_clients_that_are_not_there_are_skipped_and_the_rest_is_run_over_the_network_between_them(
    stage: Callable[[int], Stage], built: list[str], client: str, tmp_path: Path, fake_build: Path
) -> None:
    requested = make_experiment({"client": ("netdyno-load", client, MISSING), "link": ("loopback", "lan")}, "rpc")
    trials = run(requested, tmp_path / "results", fake_build, stage(1))
    missing = f"client {MISSING}: not built: {fake_build / 'clients' / MISSING} is missing"
    assert {level: (trial.status, trial.reason.partition(" (")[0]) for level, trial in trials.items()} == {
        "client=netdyno-load, link=loopback": ("valid", ""),
        "client=netdyno-load, link=lan": ("valid", ""),
        f"client={client}, link=loopback": ("valid", ""),
        f"client={client}, link=lan": ("valid", ""),
        f"client={MISSING}, link=loopback": ("skipped", missing),
        f"client={MISSING}, link=lan": ("skipped", missing),
    }
    assert built == [building.GENERATOR, building.CANARY, CONTESTANT, f"client-{MISSING}", f"client-{client}"]


@pytest.mark.usefixtures("built")
def test_of_several_hosts_of_the_load_the_first_starts_the_client_contestants(
    stage: Callable[[int], Stage],
    prepared: list[tuple[str, Prepare]],
    client: str,
    tmp_path: Path,
    fake_build: Path,
) -> None:
    requested = make_experiment({"client": (client, MISSING)}, "rpc")
    both = make_experiment({"client-hosts": (2,)})
    requested = replace(requested, scenarios=(*requested.scenarios, *both.scenarios))
    run(requested, tmp_path / "results", fake_build, stage(2))
    assert [(address, request.clients) for address, request in prepared] == [
        ("tls://server:8787", ()),
        ("tls://10.0.0.3:8787", (client,)),
        ("tls://10.0.0.4:8787", ()),
    ]
    (folder,) = (tmp_path / "results").iterdir()
    environment = read.load(folder / schema.FILE_NAME).environment
    assert "client contestants on tls://10.0.0.3:8787;" in str(environment["pinning.note"])
    programs = cast(list[str], environment["programs"])
    assert sorted(line.split()[0] for line in programs) == sorted(
        [CONTESTANT, f"client-{client}", "netdyno-canary", "netdyno-load", digests.HARNESS]
    )


@pytest.mark.usefixtures("built")
@pytest.mark.parametrize(
    ("factors", "reason"),
    [
        ({"client": (MISSING,)}, f"client {MISSING}: not built: "),
        ({"link": ("wan",)}, "the link wan lies within one machine"),
        ({"client-hosts": (2, 4)}, "2 client hosts make this load, and this run has one"),
    ],
)
def test_a_run_of_which_nothing_is_left_is_refused_and_leaves_no_folder(
    factors: dict[str, tuple[type_level, ...]],
    reason: str,
    stage: Callable[[int], Stage],
    tmp_path: Path,
    fake_build: Path,
) -> None:
    with pytest.raises(UserError, match=f"no contestant of 'hosts' can run on these hosts: {reason}"):
        run(make_experiment(factors), tmp_path / "results", fake_build, stage(1))
    assert not (tmp_path / "results").exists()


@pytest.mark.usefixtures("built")
def test_what_this_machine_cannot_start_is_skipped_on_every_host(
    stage: Callable[[int], Stage], tmp_path: Path, fake_build: Path
) -> None:
    requested = make_experiment({}).with_each(contestants=NAMES)
    servers = [contestant for contestant in discover(build=fake_build) if contestant.name in NAMES]
    servers = [
        replace(contestant, available=contestant.name == CONTESTANT, why_not="no Folly") for contestant in servers
    ]
    trials = executed(
        requested, needed.PreparedContestants(tuple(servers), ()), tmp_path / "results", fake_build, stage(1)
    )
    assert {trial.contestant: trial.reason for trial in trials} == {CONTESTANT: "", NAMES[1]: "no Folly"}


@pytest.mark.usefixtures("built")
def test_a_run_that_hosts_refuse_leaves_no_folder(
    stage: Callable[[int], Stage], monkeypatch: pytest.MonkeyPatch, tmp_path: Path, fake_build: Path
) -> None:
    prepared = Prepared(environment={"git_commit": "another"}, programs=(), why_not={})
    monkeypatch.setattr(Stage, "_perform", lambda *_: prepared)
    with pytest.raises(UserError, match="is at commit another, and this machine at "):
        run(make_experiment({}), tmp_path / "results", fake_build, stage(1))
    assert list((tmp_path / "results").iterdir()) == []


SKIPPED = "4 client hosts make this load, and this run has "


@pytest.mark.usefixtures("built")
def test_what_needs_more_hosts_than_have_joined_is_skipped_and_no_host_is_taken_for_it(
    stage: Callable[[int], Stage], tmp_path: Path, fake_build: Path
) -> None:
    trials = run(make_experiment({"client-hosts": (1, 2, 4)}), tmp_path / "results", fake_build, stage(3))
    assert {level: (trial.status, trial.reason) for level, trial in trials.items()} == {
        "client-hosts=1": ("valid", ""),
        "client-hosts=2": ("valid", ""),
        "client-hosts=4": ("skipped", f"{SKIPPED}3"),
    }
    (folder,) = (tmp_path / "results").iterdir()
    environment = read.load(folder / schema.FILE_NAME).environment
    assert "generator on tls://10.0.0.3:8787 and tls://10.0.0.4:8787 at" in str(environment["pinning.note"])
    assert environment["hosts"] == 2  # both loads are of one machine; claims may need a second one


@pytest.mark.usefixtures("built")
@pytest.mark.parametrize("now", [1, 4])
def test_a_run_is_gone_on_with_on_fewer_hosts_or_more_only_if_that_is_requested(
    now: int, stage: Callable[[int], Stage], tmp_path: Path, fake_build: Path
) -> None:
    run(make_experiment({"client-hosts": (1, 2, 4)}).with_each(blocks=2), tmp_path / "results", fake_build, stage(2))
    (folder,) = (tmp_path / "results").iterdir()
    path = folder / schema.FILE_NAME
    with edit_store(path) as connection:
        connection.execute("DELETE FROM trial WHERE block = 2")
        connection.execute("UPDATE run SET finished_at = NULL")

    def go_on(*, anyway: bool) -> None:
        resume.resume(path, build=fake_build, display=Silent(), anyway=anyway, permit=permit, hosts=stage(now))

    with pytest.raises(UserError, match=r"pinning\.note was server on .* and is server on .*--anyway"):
        go_on(anyway=False)
    go_on(anyway=True)
    reasons = {(trial.block, trial.levels["client-hosts"]): trial.reason for trial in read.load(path).trials}
    skipped = {(1, 4): f"{SKIPPED}2"}
    if now == 1:
        skipped |= {(2, count): f"{count} client hosts make this load, and this run has one" for count in (2, 4)}
    assert reasons == {(block, count): skipped.get((block, count), "") for block in (1, 2) for count in (1, 2, 4)}


class PlacedError(Exception):
    """The pinning that a canary was given."""


def test_the_canary_runs_where_the_programs_of_its_host_do(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    def place(_program: Path, pinning: Pinning, _folder: Path) -> None:
        raise PlacedError(pinning.server, pinning.generator, pinning.realtime)

    monkeypatch.setattr(load_helper, "Canary", place)
    monkeypatch.setattr(trial_helper, "Canary", place)
    monkeypatch.setattr(topology, "ROOT", unpack("ryzen-5800x-smt-off", tmp_path / "machine"))
    load = PartRequest(
        program="netdyno-load", words=(), events=True, cores=(5, 6, 7), realtime=True, foreign_load="count"
    )
    with pytest.raises(PlacedError) as placed:
        load_helper.run(load, tmp_path)
    assert placed.value.args == ((5,), (6, 7), True)

    pinned = Pinning(server=(2, 3), generator=(5, 6, 7), note="", realtime=True)  # the generator's, on other hosts
    host_settings = HostSettings(seed=1, pinning=pinned, foreign_load="count", address="10.0.0.2", loads=())
    scenario = make_experiment({}).scenarios[0]
    cell = Cell(block=1, position=0, scenario="echo", contestant=CONTESTANT, levels={})
    with pytest.raises(PlacedError) as placed:
        trial_helper.perform(
            TrialRequest(host_settings=host_settings, cell=cell, scenario=scenario, warmup=None), tmp_path
        )
    assert placed.value.args == ((2,), (3,), True)


@pytest.mark.usefixtures("built")
@pytest.mark.parametrize(
    ("changed", "named"),
    [
        ("canary/netdyno-canary", "netdyno-canary"),
        ("loadgen/netdyno-load", "netdyno-load"),
        (f"clients/{CLIENT}", f"client-{CLIENT}"),
    ],
)
def test_a_program_that_a_host_has_otherwise_is_named(
    changed: str,
    named: str,
    stage: Callable[[int], Stage],
    client: str,
    monkeypatch: pytest.MonkeyPatch,
    tmp_path: Path,
    fake_build: Path,
) -> None:
    """The code of both sides of a trial counts, committed or not."""
    joined, perform = stage(1), Stage._perform

    def differs(on: Stage, there: Host, request: Request, limit_s: float) -> Reply:
        reply = perform(on, there, request, limit_s)
        with (fake_build / changed).open("a") as program:
            program.write("# another one\n")
        return reply

    monkeypatch.setattr(Stage, "_perform", differs)
    with pytest.raises(UserError, match=f"has other programs than this machine: {named}$"):
        run(make_experiment({"client": (client,)}, "rpc"), tmp_path / "results", fake_build, joined)


def test_a_host_of_the_load_starts_no_program_but_those_of_its_own_copy(tmp_path: Path) -> None:
    load = PartRequest(program="/bin/true", words=(), events=False, cores=(), realtime=False, foreign_load="count")
    load = replace(load, parent=os.getpid(), folder=str(tmp_path))
    helper = [sys.executable, "-P", "-m", load_helper.__name__]
    done = subprocess.run(helper, input=msgspec.json.encode(load) + b"\n", stdout=subprocess.PIPE, check=True)
    ended = msgspec.json.decode(done.stdout, type=LoadEnded)
    assert (ended.code, ended.result) == (1, None)
    assert ended.output.startswith("unknown client '/bin/true'")


def test_code_that_was_changed_has_another_digest(tmp_path: Path) -> None:
    (tmp_path / "run").mkdir()
    (tmp_path / "run" / "runner.py").write_text("a = 1\n")
    before = digests.digest_harness(tmp_path)
    (tmp_path / "run" / "runner.pyc").write_text("")
    assert digests.digest_harness(tmp_path) == before
    (tmp_path / "run" / "runner.py").write_text("a = 2\n")
    changed = digests.digest_harness(tmp_path)
    (tmp_path / "run" / "runner.py").rename(tmp_path / "run" / "other.py")
    assert len({before, changed, digests.digest_harness(tmp_path)}) == 3


def test_what_is_of_this_machine_alone_is_refused_before_anything_is_built(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(needed, "make", lambda *_: pytest.fail("it was built"))
    words = ("--cluster", str(tmp_path), "--results", str(tmp_path / "results"))
    for own in (("--server", "cat {port}"), ("--address", "tcp://127.0.0.1:9")):
        assert main(["run", "smoke", *own, *words]) == 2
        assert "only contestants of this repository run on hosts of a cluster" in capsys.readouterr().err
    assert main(["run", "smoke", "--profile", *words]) == 2
    assert "--profile needs the servers on this machine" in capsys.readouterr().err
    assert not (tmp_path / "results").exists()
