"""netdyno-load at a host that has several addresses: all are tried in order, and the one that leads to the server is
that of all connections."""

from __future__ import annotations

import errno
import os
import socket
from pathlib import Path

import pytest

from netdyno.question.contestants.contestants import discover, find_by_name
from tests.support.chosen import startable
from tests.support.foreign import MANY, QUICK, always, expect_all_right, failed, listening, load, result_of
from tests.support.foreign import OK as REPLY
from tests.support.names import naming
from tests.support.server import serving

pytestmark = pytest.mark.needs_build

ADDRESSES = [(socket.AF_INET, "127.0.0.1"), (socket.AF_INET6, "::1")]


@pytest.mark.parametrize(("family", "address"), ADDRESSES, ids=["IPv4", "IPv6"])
def test_a_server_is_found_at_whichever_address_it_listens(
    family: socket.AddressFamily, address: str, tmp_path: Path
) -> None:
    """A failed connect to another address is not counted as a failure."""
    with listening(always(REPLY), family) as where:
        url = f"http://localhost:{where[1]}/"
        options = ("-c", "5", "--threads", "2", "--requests-per-connection", "2")
        result = result_of(url, *options, *MANY, before=naming(tmp_path))
    expect_all_right(result)
    assert result.connections.attempted == result.connections.established >= 20


@pytest.mark.parametrize(
    ("server", "scheme"), [("threads-global-lock", "tcp"), ("udp-coroutines", "udp"), ("zeromq-coroutines", "zmq+tcp")]
)
@pytest.mark.parametrize("address", ["127.0.0.1", "[::1]"])
def test_over_each_transport(server: str, scheme: str, address: str, tmp_path: Path) -> None:
    command = startable(find_by_name(discover(), server), "server").command
    before = naming(tmp_path)
    with serving(command, "--listen", f"{scheme}://{address}:0") as serves:
        url = f"{scheme}://localhost:{serves.endpoint.rpartition(':')[2]}"
        result = result_of(url, "-c", "5", "--threads", "2", *QUICK, before=before)
    assert result.connections.attempted == result.connections.established == 5
    assert result.messages.received == result.messages.sent > 0
    assert failed(result) == set()


def test_one_place_of_a_server_that_listens_at_several_is_loaded(tmp_path: Path) -> None:
    """The first, as any client would have it."""
    before = naming(tmp_path)
    taken: list[int] = []
    with listening(always(REPLY)) as (_, port):

        def serve(connection: socket.socket, number: int) -> None:
            taken.append(number)
            always(REPLY)(connection, number)

        try:
            with listening(serve, socket.AF_INET6, ("::1", port)):
                expect_all_right(result_of(f"http://localhost:{port}/", "-c", "5", *QUICK, before=before))
        except OSError as error:
            if error.errno != errno.EADDRINUSE:
                raise
            pytest.skip("another program has the port of the other family")
    assert len(taken) == 5


def test_where_no_address_leads_to_a_server_the_best_one_says_why(tmp_path: Path) -> None:
    """The second address has no route at all."""
    with socket.socket() as unserved:
        unserved.bind(("127.0.0.1", 0))
        before = naming(tmp_path, "127.0.0.1 here\n192.0.2.1 here\n::1 here\n")
        done = load(f"http://here:{unserved.getsockname()[1]}/", "-c", "3", "--connect-timeout", "2s", before=before)
    assert done.returncode == 1
    assert "got none: refused 3, timed out 0, reset 0, other 0" in done.stderr


def test_a_source_address_chooses_the_family_of_the_server(tmp_path: Path) -> None:
    with listening(always(REPLY)) as (_, port):
        url = f"http://localhost:{port}/"
        result = result_of(url, "--source-ips", "127.0.0.2,127.0.0.3", "-c", "4", *QUICK, before=naming(tmp_path))
    expect_all_right(result)


def test_a_name_without_an_address_is_one_sentence(tmp_path: Path) -> None:
    done = load("http://no-such-name.invalid/", before=naming(tmp_path))
    assert done.returncode == 1
    assert done.stderr.startswith("netdyno-load: cannot resolve 'no-such-name.invalid': ")
    assert os.strerror(0) not in done.stderr
