"""Refusals before the first trial, and the pinning from the cores of two hosts."""

from __future__ import annotations

from pathlib import Path
from types import SimpleNamespace
from typing import cast

import msgspec
import pytest

from netdyno.kit.errors import UserError
from netdyno.measure.cluster import described
from netdyno.measure.cluster.controller import Controller
from netdyno.measure.cluster.described import BOOT_ID, Host, choose_default_cores, describe
from netdyno.measure.cluster.requests import NotDone, Prepared, TrialDone, WarmupsDone
from netdyno.measure.cluster.stage import (
    Stage,
    _check,
    _choose_cores,
    _count_machines,
    _describe_pinning,
    _find_only,
    _select_clients,
    _take_first,
)
from netdyno.measure.run.hosts import GoneError
from netdyno.measure.trial.prepared import log_path
from netdyno.model.experiment import Scenario
from netdyno.model.trial import Warmup
from netdyno.question.plan import Cell, CellKind
from tests.support.builders.made_claims import made_trial
from tests.support.builders.made_hosts import host

SCENARIO = Scenario(name="echo", workload="echo")
CELL = Cell(block=1, position=0, scenario="echo", contestant="epoll-reactor", levels={})
HERE = ["epoll-reactor 1111", "netdyno-load 2222", "python/ 4444"]
PREPARED = Prepared(environment={"git_commit": "abc"}, programs=tuple(HERE), why_not={})


def test_the_same_commit_and_programs_are_taken() -> None:
    _check(host("server", harness="4444"), PREPARED, HERE, "abc")


def test_a_worker_that_joined_before_its_code_was_changed_is_not_taken() -> None:
    """The programs that it starts are new, and its own code is old."""
    with pytest.raises(UserError, match=r"worker of tls://server:8787 has joined before python/ was changed"):
        _check(host("server", harness="3333"), PREPARED, HERE, "abc")


@pytest.mark.parametrize(
    ("prepared", "complaint"),
    [
        (msgspec.structs.replace(PREPARED, environment={"git_commit": "def"}), "is at commit def, and this machine"),
        (msgspec.structs.replace(PREPARED, programs=("epoll-reactor 3333", *HERE[1:])), "programs.*: epoll-reactor$"),
        (msgspec.structs.replace(PREPARED, programs=(HERE[0], HERE[2])), "programs than this machine: netdyno-load$"),
        (
            msgspec.structs.replace(PREPARED, programs=(*HERE[:2], "python/ 3333")),
            "programs than this machine: python/$",
        ),
        (msgspec.structs.replace(PREPARED, why_not={"netty": "no Java"}), "netty cannot be started on .*: no Java"),
    ],
)
def test_what_differs_is_stated(prepared: Prepared, complaint: str) -> None:
    with pytest.raises(UserError, match=complaint):
        _check(host("server", harness="4444"), prepared, HERE, "abc")


@pytest.mark.parametrize(
    ("hosts", "complaint"),
    [
        ([host("client")], "one host that has joined as server, and none has"),
        ([host("server"), host("server")], "and 2 have"),
        ([host("server", is_busy=True)], "is busy with another run"),
    ],
)
def test_a_run_has_one_idle_host_of_each_kind(hosts: list[Host], complaint: str) -> None:
    with pytest.raises(UserError, match=complaint):
        _find_only(hosts, "server")


def test_the_load_runs_before_all_else_only_where_both_hosts_allow_it() -> None:
    pinned = {
        allowed: _describe_pinning(host("server"), [host("client", realtime=allowed)]) for allowed in (True, False)
    }
    assert pinned[True].realtime
    assert not pinned[False].realtime


def test_of_several_hosts_the_first_starts_the_client_contestants_and_the_note_names_it() -> None:
    hosts = [host("client", f"tls://10.0.0.{number}:8787") for number in (3, 4)]
    on_both = "generator on tls://10.0.0.3:8787 and tls://10.0.0.4:8787 at real-time priority"
    note = _describe_pinning(host("server"), hosts, starts_clients=True).note
    assert f"{on_both}, client contestants on tls://10.0.0.3:8787; workers" in note
    assert f"{on_both}; workers" in _describe_pinning(host("server"), hosts).note
    assert "contestants" not in _describe_pinning(host("server"), hosts[:1], starts_clients=True).note


def test_a_load_of_two_hosts_takes_the_first_two_and_as_many_cores_of_each() -> None:
    hosts = [msgspec.structs.replace(host("client"), address=f"tls://10.0.0.{number}:8787") for number in (4, 3, 5)]
    chosen = _take_first(_select_clients([host("server"), *hosts]), 2)
    assert [client.address for client in chosen] == ["tls://10.0.0.3:8787", "tls://10.0.0.4:8787"]
    fewer = msgspec.structs.replace(chosen[1].description, cores=(5,))
    assert _choose_cores([chosen[0], msgspec.structs.replace(chosen[1], description=fewer)]) == [(1,), (5,)]
    with pytest.raises(UserError, match="needs 4 hosts that joined as client, and there are 3"):
        _take_first(_select_clients(hosts), 4)


@pytest.mark.parametrize(
    ("server", "clients", "machines"),
    [("a", ["b", "c"], 3), ("a", ["b", "b"], 2), ("a", ["b", "a"], 1), ("a", ["b", ""], 1), ("", ["b"], 1)],
)
def test_a_second_host_is_another_machine_than_the_servers(server: str, clients: list[str], machines: int) -> None:
    """Network namespaces and containers of one machine share its cores."""
    assert _count_machines(host("server", boot=server), [host("client", boot=boot) for boot in clients]) == machines


def test_a_host_says_of_which_machine_it_is(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    def boot() -> str:
        return describe("client", (0,), "10.0.0.2", (), is_busy=False).boot

    assert boot() == BOOT_ID.read_text().strip()
    monkeypatch.setattr(described, "BOOT_ID", tmp_path / "none")
    assert boot() == ""


def test_a_load_leaves_a_core_to_its_worker() -> None:
    assert choose_default_cores("client", (0, 1, 2)) == (1, 2)
    assert choose_default_cores("client", (3,)) == (3,)
    assert choose_default_cores("server", (0, 1, 2)) == (0, 1, 2)


@pytest.mark.parametrize(
    ("names", "complaint"),
    [
        ({"tls://server:8787": "server"}, "tls://client:8787 has left the cluster$"),
        ({"tls://server:8787": "server", "tls://client:8787": "once more"}, "has left the cluster and joined again$"),
        ({"tls://server:8787": "server", "tls://client:8787": "client"}, "tls://client:8787 does not answer$"),
    ],
)
def test_no_trial_begins_without_its_hosts(names: dict[str, str], complaint: str) -> None:
    """Nor with a host that has joined again, perhaps with other programs."""
    control = SimpleNamespace(
        hosts=lambda: (host("server"), host("client")),
        names=lambda: names,
        answers=lambda address: address == "tls://server:8787",
    )
    with pytest.raises(GoneError, match=complaint):
        Stage(cast(Controller, control)).trial(CELL, SCENARIO, None)


def staged(reply: bytes, folder: Path) -> Stage:
    """A stage whose server host gives this reply to every request."""
    control = SimpleNamespace(
        hosts=lambda: (host("server"), host("client")),
        names=lambda: {"tls://server:8787": "server", "tls://client:8787": "client"},
        answers=lambda _: True,
        perform=lambda *_: reply,
    )
    stage = Stage(cast(Controller, control))
    stage._folder = folder
    return stage


MADE = made_trial(SCENARIO, CELL.block, CELL.contestant, CELL.levels, {"throughput": 1000.0})


def done(log: str, **changed: object) -> bytes:
    """Return the reply of a trial whose log has this name."""
    return msgspec.json.encode(TrialDone(trial=msgspec.structs.replace(MADE, log=log, **changed), log="words"))


def test_why_a_host_could_not_make_a_trial_is_its_reason(tmp_path: Path) -> None:
    trial = staged(msgspec.json.encode(NotDone(why="no disk")), tmp_path).trial(CELL, SCENARIO, None)
    assert (trial.status, trial.reason) == ("failed", "the host tls://server:8787: no disk")


@pytest.mark.parametrize("log", ["logs/a.log", "../outside", "/tmp/outside", "logs/link/outside", "logs/../../outside"])
def test_a_log_is_written_where_its_trial_has_it_whatever_the_host_says(log: str, tmp_path: Path) -> None:
    folder = tmp_path / "run"
    (folder / "logs").mkdir(parents=True)
    (folder / "logs" / "link").symlink_to(tmp_path)
    trial = staged(done(log.replace("/tmp", str(tmp_path))), folder).trial(CELL, SCENARIO, None)
    assert trial.log == str(log_path(CELL))
    assert (folder / trial.log).read_text() == "words"
    assert [path.name for path in tmp_path.rglob("*") if path.is_file()] == [log_path(CELL).name]


@pytest.mark.parametrize(
    "changed",
    [
        {"block": 2},
        {"position": 1},
        {"scenario": "chat"},
        {"contestant": "epoll-coroutines"},
        {"levels": {"connections": 10}},
        {"twin": True},
        {"attempt": 2},
        {"status": "made_again"},
    ],
)
def test_the_answer_of_another_trial_is_none(changed: dict[str, object], tmp_path: Path) -> None:
    trial = staged(done("logs/a.log", **changed), tmp_path).trial(CELL, SCENARIO, None)
    assert (trial.status, trial.reason) == ("failed", "tls://server:8787 answered for another trial")
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize(
    ("reply", "reason"),
    [
        (msgspec.json.encode(PREPARED), "the host tls://server:8787 sent an answer that does not match the request"),
        (b'{"type": "TrialDone", "trial": {}}', "the host tls://server:8787 sent no reply that can be read: Object"),
        (b"\x80\x05K\x01.", "the host tls://server:8787 sent no reply that can be read: "),
    ],
)
def test_what_is_no_answer_to_a_trial_fails_it(reply: bytes, reason: str, tmp_path: Path) -> None:
    trial = staged(reply, tmp_path).trial(CELL, SCENARIO, None)
    assert trial.status == "failed"
    assert trial.reason.startswith(reason)


def test_a_warm_up_that_was_not_requested_ends_the_run(tmp_path: Path) -> None:
    warmup = Warmup(seconds=1.0, measured_s=1.0, steady=True)
    for number in (-1, 1):
        stage = staged(msgspec.json.encode(WarmupsDone(found=((number, warmup),))), tmp_path)
        with pytest.raises(GoneError, match="reported a warm-up that was not requested"):
            list(stage.warm_ups([CellKind("echo", "netty", {})], {"echo": SCENARIO}))
