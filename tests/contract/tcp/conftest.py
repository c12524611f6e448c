"""The conformance tests of contestants that speak TCP, found by their manifests: servers/<name>/server.json. Those of
other transports have a suite of their own in tests/contract/messages.

One server of each language meets every test in every workload; what a session decides is the same code for all of a
language, so mark a test of that `once_a_language`. One server of each family, which stands on the same libraries, meets
the tests of loops in one workload; mark them `once_a_family`. Without a mark a test runs against every server: those
are a few of each kind, as each writes its loop out. `--contestant NAME` runs everything against one, `--all` everything
against all.

A test that takes `served` runs once per contestant and workload, against a server that such tests share; it must leave
that server as it found it, which the fixture `talk` checks. A test that takes `contestant` starts servers of its own:
only where it needs other options or looks at the end, for to start a server of an interpreted language costs more than
most tests. Mark a test with `workloads(...)` when it concerns only those, with `one_workload` when every one of them
shows the same, with `asynchronous(True or False)` when it concerns only models that never block, or only the others,
with `clients(...)` when it concerns only models that serve so many, with `several_clients(True)` when it has several
clients served at a time, which not every model can, with `speaks_tls(True)` when it encrypts, with `has_pool(True)`
when it asks a backend, and with `unsafe(False)` when it asks for what a contestant may say of itself that it cannot do
(docs/adr/unranked.md).
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest

from netdyno.model.contestant import Contestant
from tests.contract.tcp.stream_talk import StreamTalk, TalkInTurns
from tests.support import proc
from tests.support.chosen import (
    NONE_CHOSEN,
    list_tested_workloads,
    one_at_a_time,
    quickly_compiled,
    startable,
    targets,
    workloads_to_test,
)
from tests.support.patience import eventually
from tests.support.server import Server, serving

EXPLICIT = ("--nodelay", "on", "--write-mode", "gathered", "--audience", "others", "--deliveries", "joined")
"""The defaults of options that tests of a shared server see the effect of."""
MOST_CLIENTS = 128
"""No test that leaves its number of clients to `threads_for` has more at a time."""


@dataclass(frozen=True)
class ServedContestant:
    """A running server of one contestant for one workload."""

    contestant: Contestant
    workload: str
    server: Server


def pytest_configure(config: pytest.Config) -> None:
    """The marks of this suite."""
    config.addinivalue_line("markers", "workloads(*names): the test concerns only these workloads")
    config.addinivalue_line("markers", "one_workload: the test runs in one workload of each contestant")
    config.addinivalue_line("markers", "asynchronous(yes): only models that never block, or only the others")
    config.addinivalue_line("markers", "clients(*how_many): only models of which server.json says one of these")
    config.addinivalue_line("markers", "several_clients(yes): only models that serve several at a time, or the others")
    config.addinivalue_line("markers", "speaks_tls(yes): only servers that have the option --tls, or the others")
    config.addinivalue_line("markers", "has_pool(yes): only servers with a pool for a backend, or the others")
    config.addinivalue_line("markers", "unsafe(yes): only contestants whose server.json says so, or only the others")


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    """Contestant by contestant, so that few servers run at a time."""
    servers, in_full = targets(metafunc, "server", lambda candidate: _concerns(metafunc, candidate))
    in_full = set() if metafunc.definition.get_closest_marker("one_workload") is not None else in_full
    pairs = [
        (candidate, workload)
        for candidate in servers
        for workload in workloads_to_test(_workloads(metafunc, candidate), in_full=candidate.name in in_full)
    ]
    if "served" in metafunc.fixturenames:
        served = [
            pytest.param(pair, id=f"{pair[0].name}-{pair[1]}", marks=one_at_a_time(pair[0], "server")) for pair in pairs
        ]
        metafunc.parametrize("served", served or NONE_CHOSEN, indirect=True, scope="session")
    elif "workload" in metafunc.fixturenames:
        parameters = [
            pytest.param(
                candidate, workload, id=f"{candidate.name}-{workload}", marks=one_at_a_time(candidate, "server")
            )
            for candidate, workload in pairs
        ]
        no_pairs = [pytest.param(None, None, marks=NONE_CHOSEN[0].marks)]
        metafunc.parametrize(("contestant", "workload"), parameters or no_pairs, indirect=["contestant"])
    elif "contestant" in metafunc.fixturenames:
        alone = [
            pytest.param(candidate, id=candidate.name, marks=one_at_a_time(candidate, "server"))
            for candidate in servers
        ]
        metafunc.parametrize("contestant", alone or NONE_CHOSEN, indirect=True)


@pytest.hookimpl(trylast=True)
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Tests of one shared server follow each other, so that it is started once. By itself pytest goes by the place that
    the server has among those of each test, which is another where a test does not concern all."""
    places = [place for place, item in enumerate(items) if _shared_server(item) is not None]
    ordered = sorted((items[place] for place in places), key=lambda item: _shared_server(item) or "")
    for place, item in zip(places, ordered, strict=True):
        items[place] = item


def _shared_server(item: pytest.Item) -> str | None:
    """The name and the workload of the server that `served` is for a test."""
    callspec = item.callspec if isinstance(item, pytest.Function) and hasattr(item, "callspec") else None
    pair = None if callspec is None else callspec.params.get("served")
    return f"{pair[0].name} {pair[1]}" if isinstance(pair, tuple) else None


def _concerns(metafunc: pytest.Metafunc, contestant: Contestant) -> bool:
    manifest = contestant.manifest
    if "tcp" not in manifest.transports:
        return False
    stated = {
        "asynchronous": manifest.asynchronous,
        "clients": manifest.clients,
        "several_clients": not serves_one_at_a_time(contestant),
        "unsafe": bool(manifest.unsafe),
        "speaks_tls": "tls" in manifest.options,
        "has_pool": "pool" in manifest.options,
    }
    marks = ((metafunc.definition.get_closest_marker(name), value) for name, value in stated.items())
    return all(mark is None or value in mark.args for mark, value in marks)


def _workloads(metafunc: pytest.Metafunc, contestant: Contestant) -> list[str]:
    mark = metafunc.definition.get_closest_marker("workloads")
    return [workload for workload in list_tested_workloads(contestant) if mark is None or workload in mark.args]


def serves_one_at_a_time(contestant: Contestant) -> bool:
    """Its one thread serves a client until it leaves, and accepts no other before."""
    return contestant.manifest.clients == "limited-by-threads" and contestant.manifest.threads == "one"


def threads_for(contestant: Contestant, clients: int = MOST_CLIENTS) -> tuple[str, ...]:
    """More than one thread where the model can have them: that is where its data races are. At least one for each of
    the test's clients where others would wait."""
    several = ("--threads", "3") if contestant.manifest.threads == "any" else ()
    return room_for(contestant, clients) or several


def room_for(contestant: Contestant, clients: int) -> tuple[str, ...]:
    """As many threads as the test has clients, where a client beyond the thread count waits; else the default."""
    limited = contestant.manifest.limits_clients and not serves_one_at_a_time(contestant)
    return ("--threads", str(clients)) if limited else ()


@pytest.fixture
def contestant(request: pytest.FixtureRequest, tmp_path: Path) -> Contestant:
    """One contestant that can be started. With the command of its manifest alone it starts for `served`."""
    candidate: Contestant = request.param
    return quickly_compiled(startable(candidate, "server"), tmp_path)


@pytest.fixture(scope="session")
def served(request: pytest.FixtureRequest) -> Iterator[ServedContestant]:
    """A server shared by all tests of one contestant and workload. It must end in order when they are done."""
    contestant, workload = request.param
    startable(contestant, "server")
    with serving(contestant.command, "--workload", workload, *EXPLICIT, *threads_for(contestant)) as server:
        yield ServedContestant(contestant, workload, server)


@pytest.fixture
def talk(served: ServedContestant) -> Iterator[StreamTalk]:
    """A healthy conversation beside whatever the test does. It is answered before and after the test (and during it,
    where the test calls `check` and the server serves several at a time), and afterwards the server holds no more
    descriptors than before."""
    server = served.server
    server.expect_alive()
    with StreamTalk(server, served.workload) as first:
        first.check()
    descriptors = _settled_descriptors(server)
    conversation = TalkInTurns if serves_one_at_a_time(served.contestant) else StreamTalk
    with conversation(server, served.workload) as talking:
        talking.check()
        yield talking
        talking.check()
    eventually(
        lambda: proc.descriptors(server.pid) <= descriptors,
        lambda: f"descriptors leak: {descriptors} before the test, {proc.descriptors(server.pid)} after it",
    )
    server.expect_alive()
    server.expect_clean()


def _settled_descriptors(server: Server) -> int:
    """Descriptors once no connection is open on the server's side."""
    eventually(lambda: not server.has_connections(), "a connection of an earlier test stays open in the server")
    return proc.descriptors(server.pid)
