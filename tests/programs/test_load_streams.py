"""The generator with replies that are streams: how late their chunks come, and servers that do not keep to the
schedule."""

from __future__ import annotations

import json
import socket
import subprocess
import threading
from collections.abc import Iterator
from pathlib import Path

import msgspec
import pytest

from netdyno.kit.paths import build_dir, generator_path
from netdyno.model.load_result import Chunks, LoadResult
from tests.support.patience import PATIENCE_S
from tests.support.server import serving

pytestmark = pytest.mark.needs_build

STREAMS = ("--workload", "web", "--size", "64", "--chunks", "4", "--every", "20ms")
WINDOW = ("-c", "10", "--rate", "100", "--warmup", "100ms", "--duration", "400ms")


@pytest.fixture
def endpoint() -> Iterator[str]:
    """The URL of a server that keeps to the schedule."""
    with serving((str(build_dir() / "servers" / "epoll-coroutines"), "--workload", "web")) as server:
        yield server.endpoint


@pytest.fixture
def hasty_endpoint() -> Iterator[str]:
    """The URL of a server that sends all chunks of its first stream at once."""
    with socket.create_server(("127.0.0.1", 0)) as listener:
        listener.settimeout(PATIENCE_S)

        def serve() -> None:
            connection, _ = listener.accept()
            with connection:
                stamp = connection.recv(4096).split()[1][1:29]
                events = b"".join(
                    b"data: %s\n\n" % (b"%s%04d" % (stamp, number)).ljust(64, b"x") for number in range(4)
                )
                head = b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n"
                connection.sendall(head + b"%x\r\n%s\r\n0\r\n\r\n" % (len(events), events))
                connection.recv(4096)

        thread = threading.Thread(target=serve)
        thread.start()
        yield f"tcp://127.0.0.1:{listener.getsockname()[1]}"
        thread.join()


def load(endpoint: str, *options: str, folder: Path) -> LoadResult:
    file = folder / "result.json"
    command = [str(generator_path(build_dir())), endpoint, *STREAMS, *options, "--json", str(file)]
    subprocess.run(command, capture_output=True, timeout=PATIENCE_S, check=False)
    return msgspec.convert(json.loads(file.read_text()), LoadResult)


def test_each_chunk_is_timed_by_the_schedule_of_its_request(endpoint: str, tmp_path: Path) -> None:
    result = load(endpoint, *WINDOW, folder=tmp_path)
    chunks = result.chunks
    assert isinstance(chunks, Chunks)
    assert (chunks.per_stream, chunks.every_s, chunks.early) == (4, 0.02, 0)
    assert all(audit.passed for audit in result.audits if audit.name in ("verification", "bytes", "connections"))
    assert 0.8 * 4 * result.requests.sent <= chunks.late_ns.count <= 1.2 * 4 * result.requests.sent
    assert chunks.completed > 0
    assert result.latency.service_ns.p50 >= 60e6  # its last chunk is due after three times 20 ms
    assert 0 < chunks.late_ns.p50 < 20e6


def test_a_load_without_streams_says_nothing_of_chunks(endpoint: str, tmp_path: Path) -> None:
    file = tmp_path / "result.json"
    command = [str(generator_path(build_dir())), endpoint, "--workload", "web", "--size", "64", "-n", "5"]
    subprocess.run([*command, "--json", str(file)], capture_output=True, timeout=PATIENCE_S, check=True)
    assert "chunks" not in json.loads(file.read_text())


def test_chunks_that_come_before_they_are_due_fail_the_verification(hasty_endpoint: str, tmp_path: Path) -> None:
    result = load(hasty_endpoint, "-c", "1", "-n", "1", "--timeout", "1s", folder=tmp_path)
    assert isinstance(result.chunks, Chunks)
    assert result.chunks.early == 3
    (verification,) = [audit for audit in result.audits if audit.name == "verification"]
    assert not verification.passed
    assert verification.detail.endswith("chunks before they were due 3")
