"""The tests of client contestants, found by their folders: clients/<name>/client.json. Those marked `once_a_language`
run against one client of each language, the others against all."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from netdyno.measure.machine.links.namespace import Namespace, NotAllowedError, make_namespace
from netdyno.model.contestant import Contestant
from netdyno.question.contestants.contestants import discover
from tests.support.chosen import NONE_CHOSEN, chosen, one_at_a_time, startable, targets


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    """Client by client; load programs of others have tests of their own (test_instruments.py)."""
    for fixture in {"client", "instrument"} & set(metafunc.fixturenames):
        if fixture == "client":
            candidates = [
                candidate for candidate in targets(metafunc, "client")[0] if not candidate.manifest.instrument
            ]
        else:
            candidates = [candidate for candidate in chosen(metafunc.config, "client") if candidate.manifest.instrument]
        parameters = [
            pytest.param(candidate, id=candidate.name, marks=one_at_a_time(candidate, "client"))
            for candidate in candidates
        ]
        metafunc.parametrize(fixture, parameters or NONE_CHOSEN, indirect=True)


@pytest.fixture
def client(request: pytest.FixtureRequest) -> Contestant:
    """One client that can be started."""
    candidate: Contestant = request.param
    return startable(candidate, "client")


@pytest.fixture
def instrument(request: pytest.FixtureRequest) -> Contestant:
    """The load program of others that is installed here."""
    candidate: Contestant = request.param
    return startable(candidate, "client")


@pytest.fixture
def server() -> Contestant:
    """A real server, where a test needs one in a process of its own: the plainest."""
    (plainest,) = (contestant for contestant in discover() if contestant.name == "threads-global-lock")
    return startable(plainest, "server")


@pytest.fixture
def hosts(tmp_path: Path) -> Path:
    """The /etc/hosts of the namespace `private`."""
    path = tmp_path / "hosts"
    path.write_text("127.0.0.1 localhost\n")
    return path


@pytest.fixture
def private(hosts: Path) -> Iterator[Namespace]:
    """A namespace of the test's own; a skip where the system forbids it."""
    try:
        with make_namespace(hosts) as made:
            yield made
    except NotAllowedError as error:
        pytest.skip(f"no namespaces here: {error}")
