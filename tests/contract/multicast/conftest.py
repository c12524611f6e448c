"""The multicast server and the generator, in a private network namespace of each test's own."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from netdyno.kit.paths import build_dir, generator_path
from netdyno.measure.machine.links.namespace import Namespace, NotAllowedError, make_namespace
from netdyno.question.contestants.contestants import discover
from tests.support.chosen import startable
from tests.support.inside import Inside, inside


@pytest.fixture
def server() -> tuple[str, ...]:
    """The command of the server."""
    (contestant,) = (contestant for contestant in discover() if "multicast" in contestant.manifest.transports)
    return startable(contestant, "server").command


@pytest.fixture
def generator() -> str:
    """The program of the generator."""
    path = generator_path(build_dir())
    assert path.is_file(), f"not built: {path}"
    return str(path)


@pytest.fixture
def private() -> Iterator[Namespace]:
    """A namespace of the test's own; a skip where the system forbids it."""
    try:
        with make_namespace() as made:
            yield made
    except NotAllowedError as error:
        pytest.skip(f"no namespaces here: {error}")


@pytest.fixture
def sockets(private: Namespace) -> Iterator[Inside]:
    """Sockets of `private`."""
    with inside(private) as made:
        yield made
