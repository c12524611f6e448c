"""What every server of the workload grpc does, as the generator sees it, which verifies each reply."""

from __future__ import annotations

import pytest

from netdyno.kit.paths import build_dir, certificate_path
from netdyno.model.load_result import LoadResult
from tests.contract.grpc.conftest import GrpcServer, serving_grpc
from tests.support.foreign import expect_all_right, result_of

pytestmark = pytest.mark.needs_build
WAIT = ("--service-time", "50ms", "--service-kind", "wait")
COMPUTE = ("--service-time", "50ms", "--service-kind", "cpu")
A_WAIT_NS = 45_000_000
"""A timer may be early by its step."""


def measure(url: str, *options: str, count: int = 40) -> LoadResult:
    result = result_of(url, "--workload", "grpc", "-n", str(count), "--timeout", "2s", *options)
    expect_all_right(result)
    assert result.messages.received == count
    return result


@pytest.mark.parametrize("size", [28, 64, 2048, 65536, 1 << 20])
def test_a_reply_is_the_stamp_filled_to_the_requested_size(grpc_server: GrpcServer, size: int) -> None:
    measure(grpc_server.url, "--size", str(size))


@pytest.mark.parametrize("time", [WAIT, COMPUTE], ids=["wait", "computing"])
def test_a_reply_comes_after_the_requested_time(grpc_server: GrpcServer, time: tuple[str, ...]) -> None:
    assert measure(grpc_server.url, *time, count=3).latency.service_ns.p50 >= A_WAIT_NS


def test_requests_of_a_connection_wait_side_by_side(grpc_server: GrpcServer) -> None:
    result = measure(grpc_server.url, "--depth", "20", "--service-time", "200ms", count=20)
    assert result.latency.service_ns.max < 20 * 200e6 / 2


def test_a_connection_takes_many_requests(grpc_server: GrpcServer) -> None:
    assert measure(grpc_server.url, "--depth", "50", count=1000).connections.established == 1


def test_fifty_clients_get_their_own_replies(grpc_server: GrpcServer) -> None:
    assert measure(grpc_server.url, "-c", "50", "--depth", "4", count=400).connections.established == 50


def test_clients_come_and_go(grpc_server: GrpcServer) -> None:
    assert measure(grpc_server.url, "-c", "2", "--requests-per-connection", "5").connections.established >= 8


def test_requests_come_when_they_are_due(grpc_server: GrpcServer) -> None:
    result = result_of(
        *(grpc_server.url, "--workload", "grpc", "-c", "4", "--rate", "200", "--arrivals", "poisson"),
        *("--warmup", "0", "--duration", "500ms"),
    )
    expect_all_right(result)


def test_all_of_it_may_be_encrypted(grpc_server: GrpcServer) -> None:
    with serving_grpc(grpc_server.contestant, "--tls", str(certificate_path(build_dir()))) as url:
        encrypted = f"tls{url.removeprefix('tcp')}"
        for options in ((), ("--depth", "20"), ("--size", "65536")):
            measure(encrypted, "--insecure", "-c", "2", *options)
